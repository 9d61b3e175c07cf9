//! The bridge to sessions in plain terminals: whether Copilot finds what its settings start, and where it runs.

use super::check::CheckContext;
use super::finding::{Finding, Level};
use super::fix::Fix;
use super::program::is_used;
use pilotlight_agents::bridge::Installed;
use pilotlight_agents::copilot;
use pilotlight_agents::copilot::bridge::files::Files;
use pilotlight_agents::copilot::bridge::plugin::installed;
use pilotlight_core::fleet::{Kind, Session};
use pilotlight_core::owner::Owner;
use pilotlight_core::session::{Allows, Observed};
use pilotlight_core::text::counted;
use pilotlight_system::paths;
use std::path::Path;

const CHECK: &str = "bridge";

/// The bridge on disk, and in Copilot's settings.
pub(super) fn bridge(context: &CheckContext) -> Vec<Finding> {
    let Some(project) = paths::project() else { return Vec::new() };
    if !is_used(context) {
        return Vec::new();
    }
    let files = Files::new(&project);
    let of_homes =
        (1..).zip(copilot::homes(&context.homes)).filter_map(|(number, home)| of_home(&files, number, &home));
    let mut findings: Vec<_> = of_homes.collect();
    if findings.is_empty() {
        let text = "not installed: sessions in plain terminals are watched, and `pilotlight bridge install` lets you answer them";
        findings.push(Finding::ok(CHECK, text).redacted("the bridge is not installed"));
    }
    findings
}

/// What was found: how bad it is, what to tell the user, the same for strangers, and what to do about it.
type Found = (Level, String, &'static str, &'static str);

/// The bridge in one of Copilot's homes; `None` if it is not installed there.
fn of_home(files: &Files, number: usize, home: &Path) -> Option<Finding> {
    let state = installed(home, &files.marketplace);
    let (level, text, redacted, remedy) = match state {
        Installed::No => return None,
        Installed::Yes => of_files(files),
        Installed::Forbidden => (
            Level::Warning,
            "a policy of your organisation keeps Copilot from starting the bridge".into(),
            "a policy forbids the bridge",
            "ask whoever made /etc/github-copilot/managed-settings.json, or run `pilotlight bridge remove`",
        ),
        Installed::SwitchedOff => (
            Level::Warning,
            "the bridge is switched off in Copilot".into(),
            "the bridge is switched off in Copilot",
            "`copilot plugin enable pilotlight@pilotlight` switches it on, unless extensions are switched off altogether \
             (`extensions` in its settings.json); `pilotlight bridge remove` removes it",
        ),
        Installed::Unreadable => (
            Level::Warning,
            "Copilot's settings.json cannot be read: whether the bridge is installed is unknown".into(),
            "Copilot's settings cannot be read",
            "correct the mistake in that file",
        ),
        Installed::Elsewhere => (
            Level::Warning,
            format!("a bridge is installed there from another folder than {}", files.marketplace.display()),
            "the bridge is installed from another folder",
            "`pilotlight bridge install` puts this one in its place",
        ),
    };
    let is_well = level == Level::Ok;
    Some(Finding {
        check: CHECK,
        level,
        said: format!("{}: {text}", home.display()),
        remedy: (!is_well).then(|| remedy.to_owned()),
        redacted: format!("home {number}: {redacted}"),
        fix: (state == Installed::Yes && !is_well).then(|| Fix::Bridge(files.clone())),
    })
}

/// What the bridge's own files say of a bridge that Copilot is set to start. The first trouble hides the others.
fn of_files(files: &Files) -> Found {
    let folder = files.marketplace.display();
    if !files.extension().is_file() {
        return (
            Level::Problem,
            format!("Copilot looks for the bridge in {folder}, which is gone"),
            "the bridge's folder is gone",
            "`pilotlight bridge install` puts it back; `pilotlight bridge remove` takes it out of Copilot's settings, which else \
             complains at each start",
        );
    }
    if files.key().is_none() {
        return (
            Level::Problem,
            "the bridge is installed, and its key is gone: it reaches nobody".into(),
            "the bridge's key is gone",
            "run `pilotlight bridge install`, and restart your sessions",
        );
    }
    if files.is_changed() {
        return (
            Level::Problem,
            format!("the bridge in {folder} was changed since it was installed: it does not run"),
            "the bridge was changed since it was installed",
            "if that was not you, find out who did; `pilotlight bridge install` puts it back",
        );
    }
    if !files.is_current() {
        return (
            Level::Warning,
            "the bridge is of another version than this program".into(),
            "the bridge is of another version",
            "run `pilotlight bridge install`: it counts for sessions that are started from then on",
        );
    }
    if let Some(program) = files.other_program() {
        return (
            Level::Warning,
            format!("the bridge takes {} for Pilotlight, and not this program", program.display()),
            "the bridge takes another program for Pilotlight",
            "if that is not the tray that you run, run `pilotlight bridge install` with the right program",
        );
    }
    (Level::Ok, "sessions in plain terminals have the bridge".into(), "the bridge is on", "")
}

/// Where the bridge runs, by what the tray knows of `sessions`.
pub(crate) fn running(sessions: &[Session]) -> Option<Finding> {
    let (bridged, others): (Vec<_>, Vec<_>) = sessions.iter().partition(|session| session.control.bridge.is_some());
    let is_open = |owner: &Owner| matches!(owner, Owner::Alive { .. } | Owner::Opened { .. });
    let is_bare = |session: &&&Session| {
        let Observed { owner, about, allows, .. } = &session.observed;
        // The other agents have no bridges.
        is_open(owner) && about.kind == Kind::Terminal && *allows == Allows::All
    };
    let bare = others.iter().filter(is_bare).count();
    let old = bridged.iter().filter(|session| session.control.old_bridge).count();
    let finding = if bridged.is_empty() {
        return None;
    } else if old > 0 {
        let text = format!("another version of the bridge runs in {}", counted(old, "session"));
        Finding::warning(CHECK, text, "it still works; restart these sessions to have this one")
    } else if bare > 0 {
        let text = format!(
            "{} in a terminal without a bridge: started before it, or extensions are off",
            counted(bare, "session")
        );
        Finding::warning(CHECK, text, "restart those that you want to answer from here")
    } else {
        Finding::ok(CHECK, format!("it runs in {}", counted(bridged.len(), "session")))
    };
    Some(finding.public())
}

#[cfg(test)]
mod tests {
    use super::*;
    use pilotlight_core::session::Bridge;

    #[test]
    fn case_560_sessions_of_agents_that_have_no_bridge_are_not_missing_one() {
        let open = |allows, bridge| {
            let mut session = Session::default();
            session.observed.owner = Owner::Alive { pid: 7, started: None };
            (session.observed.about.kind, session.observed.allows) = (Kind::Terminal, allows);
            session.control.bridge = bridge;
            session
        };
        let told = |sessions: &[Session]| running(sessions).unwrap().said;
        let bridged = || open(Allows::All, Some(Bridge::Joined));
        let others =
            [Allows::Process, Allows::Only { actions: [].as_slice().into(), why: "its agent has none".into() }];
        let others: Vec<_> = others.map(|allows| open(allows, None)).into_iter().chain([bridged()]).collect();
        assert_eq!(told(&others), "it runs in 1 session");
        assert!(told(&[bridged(), open(Allows::All, None)]).starts_with("1 session in a terminal without a bridge"));
    }
}
