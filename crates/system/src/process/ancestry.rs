//! The processes that a process descends from.

#[cfg(not(target_os = "linux"))]
use super::elsewhere::families;
#[cfg(target_os = "linux")]
use super::linux::families;
use super::reading::Family;

/// The most ancestors that are listed. Hardly any process has more than twenty.
const MOST: usize = 1024;

/// The process's parent, its parent's parent and so on, nearest first, as far as they can be read; at most 1024. Empty
/// if there is no such process.
///
/// Some 15 us an ancestor on Linux; a listing of all processes elsewhere.
pub fn ancestors(pid: u32) -> Vec<u32> {
    climb(pid, families())
}

/// When a process started, in the system's unit: with its id, this identifies it among all that ever have the id. `None` if
/// there is no such process.
pub fn birth_of(pid: u32) -> Option<u64> {
    families()(pid).map(|family| family.started)
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
        // The parent has ended and its id was reused. Windows keeps the id of a dead parent; elsewhere this can happen
        // between the two reads.
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
    fn a_climb_has_a_limit() {
        let line = climb(u32::MAX, |pid| Some(Family { parent: pid - 1, started: 0 }));
        assert_eq!(line.len(), MOST);
    }

    #[test]
    fn a_parent_younger_than_its_child_is_another_process() {
        assert_eq!(climbed(9, &[(9, 7, 30), (7, 4, 31), (4, 0, 0)]), [0; 0]);
    }
}
