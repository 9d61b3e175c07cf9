//! The daemon of a home: one process that runs the threads of all terminals.
//!
//! It notes itself in `app-server-daemon/daemon.pid`, by its id, the machine's boot and its start in clock ticks: nothing
//! else can be meant by that. It outlives every terminal, and is never signalled: what a signal ends is not one session.

#![allow(clippy::disallowed_methods, reason = "`/proc` holds no pipes")]

use pilotlight_system::plain_file::{self, Links};
#[cfg(target_os = "linux")]
use pilotlight_system::process::{is_of_our_user, start_ticks};
use serde::Deserialize;
use std::io::Read;
use std::path::Path;

/// Where a home notes its daemon.
const NOTE: &str = "app-server-daemon/daemon.pid";
/// The longest note that is read, in bytes.
const NOTE_MAX: u64 = 64 << 10;
/// The argument by which a process of Codex serves others: the daemon, and that of an editor.
const SERVES: &str = "app-server";

/// Whether a process with these arguments serves others, and is no terminal.
pub(super) fn serves(arguments: &[std::ffi::OsString]) -> bool {
    arguments.iter().skip(1).any(|argument| argument == SERVES)
}

/// What the daemon notes of itself.
#[derive(Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
struct Note {
    pid: u32,
    process_identity: Identity,
}

#[derive(Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
struct Identity {
    boot_id: Box<str>,
    start_ticks: u64,
}

fn note(home: &Path) -> Result<Note, String> {
    let said = |why: &dyn std::fmt::Display| format!("{NOTE} in {} cannot be read: {why}", home.display());
    let (file, _) = plain_file::open(&home.join(NOTE), Links::Refused).map_err(|error| said(&error))?;
    let mut text = Vec::new();
    file.take(NOTE_MAX).read_to_end(&mut text).map_err(|error| said(&error))?;
    if text.trim_ascii().is_empty() {
        return Err("the daemon is just starting: try again in a moment".to_owned());
    }
    serde_json::from_slice(&text).map_err(|error| said(&error))
}

/// The daemon of a home, if it runs, and is our user's.
///
/// # Errors
/// Why none is known, for the user.
#[cfg(target_os = "linux")]
pub(crate) fn running(home: &Path) -> Result<u32, String> {
    let Note { pid, process_identity: identity } = note(home)?;
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    if boot.trim() != &*identity.boot_id || start_ticks(pid) != Some(identity.start_ticks) {
        return Err(format!("the daemon that this home had (process {pid}) has ended"));
    }
    if !is_of_our_user(pid) {
        return Err(format!("the daemon of this home (process {pid}) is another user's"));
    }
    Ok(pid)
}

/// The daemon of a home: what identifies it was seen on Linux only.
///
/// # Errors
/// Always: no process is taken for it.
#[cfg(not(target_os = "linux"))]
pub(crate) fn running(home: &Path) -> Result<u32, String> {
    let Note { pid, .. } = note(home)?;
    Err(format!("this system does not show whether process {pid} is the daemon of this home"))
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;
    use pilotlight_system::process::testing::make_pipe;
    use std::fs;

    #[test]
    fn only_the_process_that_noted_itself_is_the_daemon() {
        let home = tempfile::tempdir().unwrap();
        assert!(running(home.path()).unwrap_err().contains("cannot be read"));
        fs::create_dir(home.path().join("app-server-daemon")).unwrap();
        let write = |text: &str| fs::write(home.path().join(NOTE), text).unwrap();
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
        let me = std::process::id();
        let ticks = start_ticks(me).unwrap();
        let text = |pid: u32, boot: &str, ticks: u64| {
            format!(r#"{{"pid":{pid},"processIdentity":{{"bootId":"{}","startTicks":{ticks}}}}}"#, boot.trim())
        };
        write(&text(me, &boot, ticks));
        assert_eq!(running(home.path()), Ok(me));
        for other in [
            text(me, "another boot", ticks),
            text(me, &boot, ticks + 1),
            text(1, &boot, ticks),
            text(u32::MAX, &boot, 1),
        ] {
            write(&other);
            assert!(running(home.path()).unwrap_err().contains("has ended"), "{other}");
        }
        for (broken, why) in [
            ("", "just starting"),
            ("\n", "just starting"),
            ("{}", "missing field"),
            ("7", "cannot be read"),
            ("\u{0}", "cannot be read"),
        ] {
            write(broken);
            assert!(running(home.path()).unwrap_err().contains(why), "{broken:?}");
        }
        fs::remove_file(home.path().join(NOTE)).unwrap();
        make_pipe(&home.path().join(NOTE));
        assert!(running(home.path()).unwrap_err().contains("a pipe or a device"));
    }

    #[test]
    fn a_process_that_serves_others_is_no_terminal() {
        let arguments = |line: &str| line.split(' ').map(Into::into).collect::<Vec<_>>();
        assert!(
            serves(&arguments("codex app-server --listen unix://")) && serves(&arguments("codex -c a=b app-server"))
        );
        assert!(
            !serves(&arguments("codex")) && !serves(&arguments("app-server")) && !serves(&arguments("codex exec hi"))
        );
    }
}
