//! When to look for agents that were just started. One that goes on with a session may write nothing for minutes, while it
//! waits for an answer or a prompt: what tells of it is that its program was opened.
//!
//! Programs on the search path and those that were seen to run are watched, with the links that lead to them: a handful.
//! After one was opened, processes are scanned if a session has no live process that is known to run it. Each watch tells
//! once and is renewed after the scan, which another scan follows, so that no start falls in between and an update is
//! followed. Elsewhere than on Linux, on a file system that may not answer, and in a container, the start of a process
//! that writes nothing is seen with the rescan.

use pilotlight_core::time::{Span, Time};
use std::collections::VecDeque;
use std::path::PathBuf;

/// How long after its start to look for a process: by then it is what it was started as.
const SOON: Span = Span(300);
/// How long after a look to look again, if programs were opened: some start others, and all take a moment to show what they
/// do. Programs that are opened all the time cause no more looks than this.
const AGAIN: Span = Span::seconds(2);
/// The most programs that are remembered after their processes have ended.
const REMEMBERED_MAX: usize = 16;

/// The programs of agents, and when to look for processes that run them. Times are of the awake clock.
#[derive(Debug, Default)]
pub(crate) struct Starts {
    /// Those on the search path. `None`: not looked up yet.
    installed: Option<Vec<PathBuf>>,
    /// Those that were seen to run, the latest last.
    ran: VecDeque<PathBuf>,
    look_at: Option<Time>,
}

impl Starts {
    /// Has the search path looked through again: programs are installed and removed.
    pub(crate) fn forget_installed(&mut self) {
        self.installed = None;
    }

    /// The programs to watch, now that these run. `find` looks through the search path.
    pub(crate) fn programs(&mut self, running: &[PathBuf], find: impl FnOnce() -> Vec<PathBuf>) -> Vec<PathBuf> {
        self.ran.retain(|program| !running.contains(program));
        self.ran.extend(running.iter().cloned());
        self.ran.drain(..self.ran.len().saturating_sub(REMEMBERED_MAX));
        self.installed.get_or_insert_with(find).iter().chain(&self.ran).cloned().collect()
    }

    /// A program was opened.
    pub(crate) fn opened(&mut self, now: Time) {
        self.look_at.get_or_insert(now + SOON);
    }

    /// A program is watched that was not for a moment: it may have been opened meanwhile.
    pub(crate) fn watched_anew(&mut self, now: Time) {
        self.look_at.get_or_insert(now + AGAIN);
    }

    /// When to look.
    pub(crate) const fn look_at(&self) -> Option<Time> {
        self.look_at
    }

    /// Whether to look now.
    pub(crate) fn take_due(&mut self, now: Time) -> bool {
        self.look_at.take_if(|at| *at <= now).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_start_is_followed_by_two_looks_and_programs_opened_all_the_time_by_one_in_two_seconds() {
        let mut starts = Starts::default();
        assert!(!starts.take_due(Time(0)) && starts.look_at().is_none());
        starts.opened(Time(1000));
        assert!(!starts.take_due(Time(1299)) && starts.take_due(Time(1300)));
        starts.watched_anew(Time(1300));
        // Nothing was opened meanwhile, so its watch is not a new one afterwards.
        assert!(starts.take_due(Time(3300)) && starts.look_at().is_none());

        let mut looks = 0;
        for at in 10_000..30_000 {
            starts.opened(Time(at));
            if starts.take_due(Time(at)) {
                looks += 1;
                starts.watched_anew(Time(at));
            }
        }
        assert_eq!(looks, 10);
    }

    #[test]
    fn programs_are_those_on_the_path_and_the_last_that_ran() {
        let program = |n: usize| PathBuf::from(format!("/opt/{n}/claude"));
        let mut starts = Starts::default();
        assert_eq!(starts.programs(&[program(0)], || vec![program(100)]), [program(100), program(0)]);
        for n in 1..40 {
            let programs = starts.programs(&[program(n)], || unreachable!("it was looked up"));
            assert!(programs.len() <= REMEMBERED_MAX + 1 && programs.last() == Some(&program(n)), "{programs:?}");
        }
        assert_eq!(starts.programs(&[program(30)], Vec::new).last(), Some(&program(30)), "it ran last");
        starts.forget_installed();
        assert!(!starts.programs(&[], Vec::new).contains(&program(100)), "it was removed");
    }
}
