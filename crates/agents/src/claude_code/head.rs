//! The beginning of a session's log: where it works, how it is used, and since when.

use pilotlight_core::session::Kind;
use pilotlight_core::time::Time;
use pilotlight_system::plain_file::{self, Links};
use serde::Deserialize;
use std::io::Read;
use std::path::Path;

/// How much of a log's beginning is searched for where the session works.
const HEAD_MAX: u64 = 256 << 10;

/// What the beginning of a log says.
#[derive(Clone, Debug, Default)]
pub(super) struct Head {
    pub(super) cwd: Option<Box<str>>,
    pub(super) kind: Kind,
    pub(super) created: Option<Time>,
}

#[derive(Deserialize)]
struct HeadLine {
    cwd: Option<String>,
    entrypoint: Option<String>,
    timestamp: Option<String>,
}

/// How a session is used that was begun by this entry.
pub(super) fn kind(entrypoint: &str) -> Kind {
    match entrypoint {
        "cli" => Kind::Terminal,
        _ if entrypoint.starts_with("sdk") => Kind::Sdk,
        _ => Kind::Unknown,
    }
}

/// Reads the first line of a log that says where its session works.
pub(super) fn read(log: &Path) -> Option<Head> {
    let (file, _) = plain_file::open(log, Links::Refused).ok()?;
    let mut text = Vec::new();
    file.take(HEAD_MAX).read_to_end(&mut text).ok()?;
    let line = text.split(|byte| *byte == b'\n').find_map(|line| {
        let line: HeadLine = serde_json::from_slice(line).ok()?;
        line.cwd.is_some().then_some(line)
    })?;
    Some(Head {
        cwd: line.cwd.map(Into::into),
        kind: line.entrypoint.as_deref().map_or(Kind::Unknown, kind),
        created: line.timestamp.and_then(|at| Time::parse(at.as_bytes())),
    })
}
