//! Agents that run in a container or a sandbox of this machine: their homes are not here, so neither are their sessions.

use super::callers::agent_that_runs;
use pilotlight_system::process::{Place, arguments, executable, place_of, sees_same, variables};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Maximum number of places that are told of.
const PLACES_MAX: usize = 20;

/// The agents that run elsewhere on this machine, as their users know them, and where; each once a place. Looks at every
/// process. `names` are further programs that count as the first agent.
pub fn agents_elsewhere(names: &[String]) -> BTreeSet<(&'static str, Place)> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let found = pids.filter_map(|pid| {
        let arguments = || arguments(pid);
        // Of another user's process, only the arguments can be read.
        let path = executable(pid).or_else(|| Some(PathBuf::from(arguments()?.first()?)))?;
        let agent = agent_that_runs(&path, names, arguments)?;
        let place = place_of(pid)?;
        (place != Place::Sandbox || has_other_home(pid)).then_some((agent, place))
    });
    places(found)
}

/// As many places as are told of. An agent of many processes is in one of them.
fn places(found: impl Iterator<Item = (&'static str, Place)>) -> BTreeSet<(&'static str, Place)> {
    let mut places = BTreeSet::new();
    for (agent, place) in found {
        if places.len() < PLACES_MAX {
            places.insert((agent, place));
        }
    }
    places
}

/// Whether a process in a sandbox has another home than the path of it means here. Most share it, and so do their sessions.
fn has_other_home(pid: u32) -> bool {
    let home = variables(pid, &["HOME"]).and_then(|set| set.into_iter().next()).map(|(_, home)| home);
    home.is_some_and(|home| sees_same(pid, Path::new(&home)) == Some(false))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pilotlight_system::process::testing::{copy, now};
    use std::process::{Command, Stdio};
    use std::time::{Duration, Instant};

    #[test]
    fn case_471_an_agent_of_many_processes_hides_no_other_container() {
        let docker = |n: usize| Place::Docker(format!("{n:012x}").into());
        let crowd = std::iter::repeat_n(("Codex", docker(1)), 3 * PLACES_MAX);
        let found = places(crowd.chain([("Copilot", docker(1)), ("Copilot", docker(2))]));
        assert_eq!(found, [("Codex", docker(1)), ("Copilot", docker(1)), ("Copilot", docker(2))].into());
        assert_eq!(places((0..2 * PLACES_MAX).map(|n| ("Codex", docker(n)))).len(), PLACES_MAX);
    }

    /// A program in a sandbox whose home is its own, and one that shares the home. Nothing is checked where the system makes
    /// no sandboxes.
    #[test]
    fn case_436_an_agent_with_a_home_of_its_own_is_seen_and_owns_nothing_here() {
        let scratch = tempfile::tempdir().unwrap();
        let (home, program) = (scratch.path().join("home"), scratch.path().join("copilot"));
        std::fs::create_dir_all(home.join(".copilot/session-state")).unwrap();
        copy("/bin/sleep", &program);
        let start = |hides: &str| {
            let script = format!("{hides} && exec {} 600", program.display());
            let mut command = Command::new("unshare");
            command.args(["--map-root-user", "--mount", "sh", "-c", &script]).env("HOME", &home);
            command.stdin(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
        };
        // A program that has just been started has no environment yet.
        let has_home = |pid: u32| variables(pid, &["HOME"]).is_some_and(|set| !set.is_empty());
        let runs = |pid: u32| executable(pid).is_some_and(|path| path.ends_with("copilot")) && has_home(pid);
        let ours = |pid: u32| {
            let all = crate::copilot::running::programs(&[], now());
            all.iter().any(|program| program.pid == pid)
        };
        for (hides, is_other) in [("mount -t tmpfs none \"$HOME\"", true), (":", false)] {
            let mut child = start(hides);
            let until = Instant::now() + Duration::from_secs(10);
            while !runs(child.id()) && Instant::now() < until && child.try_wait().unwrap().is_none() {
                std::thread::yield_now();
            }
            if runs(child.id()) {
                assert_eq!(has_other_home(child.id()), is_other, "{hides}");
                assert_eq!(ours(child.id()), !is_other, "{hides}");
                let found = agents_elsewhere(&[]);
                assert!(!is_other || found.iter().any(|(_, place)| *place == Place::Sandbox), "{found:?}");
            }
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }
}
