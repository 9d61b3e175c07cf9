//! What shows the engine's state to the user: the tray, the table in a terminal, or a command.

use super::parts::fleet::Fleet;
use crate::config::{Config, Problem};
use pilotlight_core::fleet::Session;
use pilotlight_core::session::Key;
use pilotlight_core::time::{Moment, Time};
use std::ops::ControlFlow;
use std::path::PathBuf;

/// Shows the engine's state to the user.
pub trait View {
    /// Called when something changed. `changed` lists the sessions whose row differs from the last call, `removed`
    /// those that are gone; one that was removed may be back by now. The first call has every session. Breaks to exit
    /// the program.
    fn show(&mut self, fleet: &Fleet, changed: &[Key], removed: &[Key], now: Moment) -> ControlFlow<()>;

    /// Sessions of the history, of which only the folder was checked. Each is shown once, in batches, and not kept.
    fn show_history(&mut self, _sessions: &mut dyn Iterator<Item = Session>, _now: Moment) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    /// The settings have changed, or the settings file is now invalid.
    fn configure(&mut self, _settings: &Settings<'_>) {}

    /// Other homes are followed than before that nobody named: these.
    fn follow_also(&mut self, _homes: &[PathBuf]) {}

    /// Whether the engine may reconnect sessions automatically if the settings ask for it. Only for views that stay to
    /// hold the connection: a command that watches next to the tray would interfere with it.
    fn may_auto_reconnect(&self) -> bool {
        false
    }

    /// When, by the awake clock, the view wants to be called even if nothing changed. It is called once a minute
    /// anyway.
    fn redraw_at(&self) -> Option<Time> {
        None
    }

    /// Whether ages are on the screen all the time, so that it must be called when a silence ends that they tell of.
    fn shows_ages(&self) -> bool {
        false
    }

    /// A line for the user about sessions that end, or would end, with the program.
    fn show_exit_notice(&mut self, _line: &str) {}

    /// Whether Ctrl-C is meant for a command that has the terminal, and not for this program.
    fn leaves_interrupt(&mut self) -> bool {
        false
    }

    /// Gives the terminal back while the program is stopped.
    fn suspend(&mut self) {}

    /// Takes the terminal again, or redraws after its size changed: the screen's contents are lost.
    fn resume(&mut self) {}

    /// Whether servers may be queried about silent sessions. Not for a process that runs a single order.
    fn asks_servers(&self) -> bool {
        true
    }

    /// Whether [`show_history`](Self::show_history) is wanted.
    fn wants_history(&self) -> bool {
        false
    }
}

/// The settings as a view sees them.
#[derive(Clone, Copy, Debug)]
pub struct Settings<'a> {
    /// The settings in force.
    pub config: &'a Config,
    /// The homes that they lead to.
    pub homes: &'a [PathBuf],
    /// The problems in the file. If they make all of it unusable, the previous settings stay in force.
    pub problems: &'a [Problem],
    /// What takes effect only at the next start, in words.
    pub later: &'a [String],
    /// Whether the program has just started, so that the problems were reported already.
    pub at_start: bool,
}

impl Settings<'_> {
    /// Messages for the user, one per line.
    pub fn lines(&self) -> Vec<String> {
        let (problems, later) = (self.problems.iter(), self.later.iter());
        if self.at_start {
            return problems.map(ToString::to_string).collect();
        }
        let mut lines: Vec<_> = problems
            .map(|problem| match problem.spoils_all() {
                true => format!("{} The previous settings stay in force.", problem.complaint()),
                false => problem.to_string(),
            })
            .collect();
        lines.extend(later.cloned());
        lines
    }
}
