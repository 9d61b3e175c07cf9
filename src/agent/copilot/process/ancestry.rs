//! Who started a process: its ancestors, and whether one of them is Copilot.
//!
//! An agent must not approve its own requests, so `approve` asks here who calls it. What a tool of a session starts is a
//! descendant of Copilot, unless it was handed to init on the way, as `setsid`, `nohup ... &` and every double fork do it.
//! Copilot marks what it starts, though: its tools' environment has `COPILOT_CLI=1` and `COPILOT_AGENT_SESSION_ID` (the
//! session's id), and environments are handed down. So both are looked at.
//!
//! This keeps a script from answering for the user by accident or by habit. It is no wall: a program that clears its
//! environment *and* leaves its family cannot be told from one that the user started.

use super::{is_copilot, platform};

/// How far up is looked. Hardly any process has more than twenty ancestors.
const MOST: usize = 1024;

/// The variables that Copilot sets for its tools and its MCP servers, and not for itself.
pub const AGENT_MARKS: [&str; 2] = ["COPILOT_CLI", "COPILOT_AGENT_SESSION_ID"];

/// What a process is told of.
#[derive(Clone, Copy, Debug)]
pub(super) struct Family {
    /// The id of its parent; 0 where it has none.
    pub(super) parent: u32,
    /// When it started, in the system's unit.
    pub(super) started: u64,
}

/// The process's parent, its parent's parent and so on, nearest first, as far as they can be read; at most 1024. Empty
/// where there is no such process.
///
/// Some 15 us an ancestor on Linux; a listing of all processes elsewhere.
pub fn ancestors(pid: u32) -> Vec<u32> {
    climb(pid, platform::families())
}

/// The nearest process, `pid` itself included, that is Copilot: it runs Copilot by the rules that owners are known by, with
/// the same further `names`. If there is none, the nearest that Copilot's tools' marks are on, which was started by a
/// process of Copilot's that handed it to init, or has ended.
///
/// A process that cannot be read (another user's, like `sudo`) is passed over: it is not taken for Copilot.
pub fn copilot_ancestor(pid: u32, names: &[String]) -> Option<u32> {
    let mut line = vec![pid];
    line.extend(ancestors(pid));
    let runs = line.iter().find(|pid| is_copilot(**pid, names));
    runs.or_else(|| line.iter().find(|pid| platform::is_started_with(**pid, &AGENT_MARKS))).copied()
}

fn climb(pid: u32, family: impl Fn(u32) -> Option<Family>) -> Vec<u32> {
    let mut found = Vec::new();
    let Some(mut child) = family(pid) else { return found };
    while found.len() < MOST {
        let parent = child.parent;
        if parent == 0 || parent == pid || found.contains(&parent) {
            break;
        }
        let Some(next) = family(parent) else { break };
        // The parent ended, and its id is another's by now: Windows keeps it, and elsewhere it may happen between two looks.
        if next.started > child.started {
            break;
        }
        found.push(parent);
        child = next;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Processes as (pid, parent, started).
    fn climbed(pid: u32, processes: &[(u32, u32, u64)]) -> Vec<u32> {
        climb(pid, |pid| {
            let &(_, parent, started) = processes.iter().find(|process| process.0 == pid)?;
            Some(Family { parent, started })
        })
    }

    #[test]
    fn ancestors_are_listed_nearest_first() {
        assert_eq!(climbed(9, &[(9, 7, 30), (7, 4, 20), (4, 1, 20), (1, 0, 0)]), [7, 4, 1]);
        assert_eq!(climbed(9, &[]), [0; 0]);
        assert_eq!(climbed(9, &[(9, 7, 30)]), [0; 0], "its parent cannot be read");
    }

    #[test]
    fn a_cycle_ends_the_climb() {
        assert_eq!(climbed(9, &[(9, 9, 1)]), [0; 0]);
        assert_eq!(climbed(9, &[(9, 7, 1), (7, 9, 1)]), [7]);
        assert_eq!(climbed(9, &[(9, 7, 1), (7, 5, 1), (5, 7, 1)]), [7, 5]);
    }

    #[test]
    fn a_climb_ends_somewhere() {
        let line = climb(u32::MAX, |pid| Some(Family { parent: pid - 1, started: 0 }));
        assert_eq!(line.len(), MOST);
    }

    #[test]
    fn a_parent_younger_than_its_child_is_another_process() {
        assert_eq!(climbed(9, &[(9, 7, 30), (7, 4, 31), (4, 0, 0)]), [0; 0]);
    }
}
