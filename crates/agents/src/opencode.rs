//! opencode: its sessions are known by the [reports](crate::reported) of its plugin, and can be answered over the `bridge`, which
//! is that plugin. opencode's own store is a database that also holds secrets: it is not read.

pub mod bridge;

use crate::adapter::Adapter;
use crate::bridge::Installer;
use crate::fingerprint::Fingerprint;
use crate::home::Home;
use crate::profile::Profile;
use crate::reader::Reader;
use crate::reported::ReportReader;
use pilotlight_core::agent::Names;
use pilotlight_system::paths::Folders;
use std::path::PathBuf;

/// What it is recognised by. Observed: 1.18.33.
pub(crate) const FINGERPRINT: Fingerprint =
    Fingerprint { program: "opencode", releases: None, package: "opencode-ai", marks: &["OPENCODE"], content: None };

/// What its reports call it, and our program as its hook is called.
pub const NAME: &str = "opencode";

const PROFILE: Profile = Profile {
    names: Names::new(NAME, NAME, NAME),
    program: NAME,
    fingerprint: Some(FINGERPRINT),
    tried: "1.18.33",
    ..Profile::SHOWN
};

/// opencode, as who has a bridge. It has no home that is read, so that it is none of the agents that are looked for.
pub struct OpenCode;

impl Adapter for OpenCode {
    fn profile(&self) -> &'static Profile {
        &PROFILE
    }

    fn open(&self, home: &Home, _id: &str, path: PathBuf) -> Reader {
        Box::new(ReportReader::new(path, home.only()))
    }

    fn is_by_reports(&self) -> bool {
        true
    }

    fn installer(&self, project: &Folders) -> Option<Box<dyn Installer>> {
        Some(Box::new(bridge::files::Files::new(project)))
    }
}
