//! Which processes run Codex, and what each shows of the threads that it has loaded.
//!
//! A process keeps the lock and the log of a thread open while it has that loaded, also if they are deleted or moved.

use crate::runners::{Role, is_itself};
use pilotlight_core::text::is_uuid;
use pilotlight_system::identity::Identity;
use std::ffi::OsString;
use std::path::Path;

/// The commands of it that load threads, besides none at all. Observed: 0.171.0.
const LOADERS: [&str; 5] = ["exec", "e", "review", "resume", "fork"];
/// The others that are known. What a server has loaded shows in its open files.
const HELPERS: [&str; 24] = [
    "app-server",
    "agents",
    "login",
    "logout",
    "mcp",
    "mcp-server",
    "plugin",
    "remote-control",
    "completion",
    "update",
    "doctor",
    "sandbox",
    "debug",
    "apply",
    "a",
    "queue",
    "archive",
    "delete",
    "unarchive",
    "cloud",
    "exec-server",
    "features",
    "migrate-rollouts",
    "help",
];

/// The tools that are the same program, by the names that it starts them by. Observed: 0.171.0.
const TOOLS: [&str; 4] = ["codex-linux-sandbox", "codex-execve-wrapper", "apply_patch", "applypatch"];

/// What a process is by its command line. `None`: one of the tools that are the same program.
pub(crate) fn role(_: &Path, arguments: &[OsString]) -> Option<Role> {
    if !is_itself(arguments, &TOOLS) {
        return None;
    }
    let words: Vec<&str> = arguments.iter().skip(1).filter_map(|word| word.to_str()).collect();
    let command = words.iter().find(|word| LOADERS.contains(word) || HELPERS.contains(word)).copied();
    let is_helper = command.is_some_and(|command| HELPERS.contains(&command));
    let resumes = words.iter().position(|word| *word == "resume");
    let named = resumes.and_then(|at| words[at..].iter().find(|word| is_uuid(word)));
    Some(Role { named: named.map(|id| (*id).into()), is_helper, ..Role::default() })
}

/// Whether a process has this log open.
#[cfg(target_os = "linux")]
pub(super) fn has_open(pid: u32, log: Identity) -> bool {
    pilotlight_system::process::open_files(pid).into_iter().flatten().any(|file| file.identity() == Some(log))
}

/// Whether a process has this log open: the system does not tell.
#[cfg(not(target_os = "linux"))]
pub(super) const fn has_open(_: u32, _: Identity) -> bool {
    false
}

/// Completes what a process shows: the threads whose lock and whose log it has open. One that is a terminal of its home's
/// daemon loads none itself.
#[cfg(target_os = "linux")]
pub(crate) fn complete(runner: &mut crate::runners::Runner) {
    use super::lock::{LOCKS, session_of_lock};
    use super::{daemon, store};
    use pilotlight_system::process::open_files;
    for file in open_files(runner.pid).into_iter().flatten() {
        let Some(name) = file.path.file_name().and_then(|name| name.to_str()) else { continue };
        let is_lock = file.path.parent().is_some_and(|folder| folder.ends_with(LOCKS));
        if let Some(id) = session_of_lock(name).filter(|_| is_lock) {
            runner.claims.push(id.into());
        } else if let (Some(id), Some(identity)) = (store::session_of(name), file.identity()) {
            runner.logs.push((id.into(), identity));
        }
    }
    runner.claims.sort_unstable();
    runner.claims.dedup();
    runner.logs.dedup();
    let daemon = runner.home.as_deref().and_then(|home| daemon::running(home).ok());
    runner.is_helper |= daemon.is_some_and(|daemon| daemon != runner.pid) && runner.claims.is_empty();
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "01a20053-8e6c-7863-a4ca-0d958e862685";

    #[test]
    fn case_511_a_command_line_says_what_a_process_of_codex_is() {
        let role = |line: &str| {
            let words: Vec<OsString> = line.split(' ').map(Into::into).collect();
            role(Path::new("/opt/codex"), &words)
        };
        let one =
            |named: Option<&str>, is_helper| Some(Role { named: named.map(Into::into), is_helper, ..Role::default() });
        for (line, is) in [
            ("codex", one(None, false)),
            ("/opt/codex --no-daemon", one(None, false)),
            ("codex exec fix", one(None, false)),
            (&format!("codex exec resume {ID} go"), one(Some(ID), false)),
            (&format!("codex resume {ID}"), one(Some(ID), false)),
            ("codex app-server --listen unix://", one(None, true)),
            ("codex mcp-server", one(None, true)),
            ("codex login", one(None, true)),
            ("codex-linux-sandbox --sandbox x bash", None),
            ("apply_patch", None),
            (&format!("cx resume {ID}"), one(Some(ID), false)),
        ] {
            assert_eq!(role(line), is, "{line}");
        }
    }
}
