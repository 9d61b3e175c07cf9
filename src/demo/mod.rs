//! Scripted sessions, without Copilot: real folders with logs that are written live, and a process for each session.
//!
//! Several kinds of processes take part, all running this program. The *demo* is the one that the user started: all of
//! Pilotlight, watching a Copilot home of its own. The [`stage`] is its child. It creates that home in a scratch
//! folder, plays the [`script`] there, and removes everything when the pipe from the demo closes, however the demo
//! ended. The *players* are the stage's children and own the sessions. Each ends when the pipe from the stage closes,
//! so none outlives it. A [`window`] is what a terminal shows in which the user resumed a session.
//!
//! What the user does in a demo takes the way that it always takes, with every check, and arrives at the stage in place of
//! a terminal or a program: over [`bridge`] for sessions in terminals, over the [`server`] in its player for the session
//! of a program. The table's keys run their commands inside of the demo (`cli/demo`).
//!
//! Nothing of the user's is touched: home, state, control socket and working folders are in the scratch folder. The
//! players count as Copilot in the demo alone, by a name in its settings.
//!
//! [`script`] is a timetable, [`events`] turns its acts into log lines; both are pure. [`pipe`] is what stage and demo
//! tell each other.
//!
//! May import: core, system, agent, config.

pub(crate) mod bridge;
pub mod events;
pub(crate) mod pipe;
pub mod script;
pub(crate) mod server;
mod session;
pub mod stage;
pub(crate) mod window;

use crate::config::{Actions, Config};
use crate::core::limits::Limits;
use crate::core::time::Span;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The Copilot home, in the stage's folder.
pub(crate) const HOME: &str = "copilot";
/// The demo's state folder, in the stage's folder.
pub(crate) const STATE: &str = "state";

/// The program that stands for Copilot, in the stage's folder.
pub(crate) const COPILOT: &str = if cfg!(windows) { "bin/copilot.cmd" } else { "bin/copilot" };

/// A demo that runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct World {
    /// The stage's folder.
    pub folder: PathBuf,
    /// How many times the usual pace.
    pub speed: u32,
}

impl World {
    /// The arguments that come before those of a command, to run it inside of the demo.
    pub(super) fn inside(&self) -> Vec<OsString> {
        let speed = self.speed.to_string();
        let mut words: Vec<OsString> =
            ["demo", "--part", "command", "--speed", &speed, "--stage"].map(Into::into).into();
        words.extend([self.folder.clone().into(), "--".into()]);
        words
    }
}

/// The demo's limits at `speed` times the usual pace, short enough for every status to appear within two minutes.
pub(crate) fn limits(speed: u32) -> Limits {
    let usual = Limits::default();
    let at = |span: Span| Span(span.0 / i64::from(speed.max(1)));
    Limits {
        fresh_quiet: at(Span::seconds(20)),
        fresh_stuck: at(Span::seconds(40)),
        thinking_quiet: at(Span::seconds(20)),
        thinking_stuck: at(Span::seconds(40)),
        tool_quiet: at(Span::seconds(60)),
        tool_stuck: at(Span::seconds(100)),
        tool_busy_stuck: at(Span::seconds(100)),
        finishing: at(usual.finishing),
        ..usual
    }
}

/// The demo's settings: the user's own for display and notifications, and none that reach outside the demo. `player` is
/// the file name of the players' program, `folder` is the stage's.
pub(crate) fn config(user: &Config, speed: u32, player: &str, folder: &Path) -> Config {
    let mut config = Config {
        limits: limits(speed),
        // So that no click starts the real Copilot on a scripted session.
        actions: Actions {
            copilot: Some(folder.join(COPILOT)),
            terminal: user.actions.terminal.clone(),
            ..Actions::default()
        },
        list: user.list,
        notifications: user.notifications.clone(),
        ..Config::default()
    };
    config.owners.names = vec![player.to_owned()];
    config
}

#[cfg(test)]
mod tests;
