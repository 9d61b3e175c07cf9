//! Scripted sessions, without Copilot: real folders with logs that are written live, and a process for each session.
//!
//! Three kinds of processes take part, all running this program. The *demo* is the one that the user started: all of
//! Pilotlight, watching a Copilot home of its own. The [`stage`] is its child. It creates that home in a scratch
//! folder, plays the [`script`] there, and removes everything when the pipe from the demo closes, however the demo
//! ended. The *players* are the stage's children and own the sessions. Each ends when the pipe from the stage closes,
//! so none outlives it.
//!
//! Nothing of the user's is touched: home, state and working folders are in the scratch folder, and there is neither a
//! control socket nor an instance lock. The players count as Copilot in the demo alone, by a name in its settings.
//!
//! [`script`] is a timetable, and [`events`] turns its acts into log lines. Both are pure.
//!
//! May import: core, system, agent, config.

pub mod events;
pub mod script;
pub mod stage;

use crate::config::{Actions, Config};
use crate::core::limits::Limits;
use crate::core::time::Span;
use std::path::Path;

/// The Copilot home, in the stage's folder.
pub(crate) const HOME: &str = "copilot";
/// The demo's state folder, in the stage's folder.
pub(crate) const STATE: &str = "state";

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
        // A path that does not exist, so that no click starts the real Copilot on a scripted session.
        actions: Actions { copilot: Some(folder.join("no-copilot-in-a-demo")), ..Actions::default() },
        list: user.list,
        notifications: user.notifications.clone(),
        ..Config::default()
    };
    config.owners.names = vec![player.to_owned()];
    config
}

#[cfg(test)]
mod tests;
