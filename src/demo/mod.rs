//! Sessions that play themselves: real folders with real logs, written live, and a process for each, without Copilot.
//!
//! Three kinds of processes take part, all of them this program. The *demo* is what the user started: the whole of
//! Pilotlight, looking at a Copilot home that nobody else looks at. The [`stage`] is its child: it makes that home in a
//! scratch folder, plays the [`script`] there, and takes everything away again when the pipe from the demo closes, however
//! the demo ended. The *players* are the stage's children, and own the sessions; each ends when the pipe from the stage
//! closes, so none outlives it.
//!
//! Nothing of the user's is touched: home, state and work are below the scratch folder, there is no control socket and no
//! claim to be the one light. The players pass for Copilot in the demo alone, by a name in its settings.
//!
//! [`script`] is a table over time, and [`events`] turns what it says into lines of a log: both are pure.
//!
//! May import: core, system, agent, config.

pub mod events;
pub mod script;
pub mod stage;

use crate::config::{Actions, Config};
use crate::core::limits::Limits;
use crate::core::time::Span;
use std::path::Path;

/// The folder below the stage's own that stands for `~/.copilot`.
pub(crate) const HOME: &str = "copilot";
/// The folder below the stage's own that the demo remembers things in.
pub(crate) const STATE: &str = "state";

/// The limits of the demo, at `speed` times the usual pace: short enough for every status to show within two minutes.
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

/// The demo's settings: the user's own for how things are told, and nothing that leads out of the demo. `player` is the
/// file name of the players' program, `folder` the stage's own.
pub(crate) fn config(users: &Config, speed: u32, player: &str, folder: &Path) -> Config {
    let mut config = Config {
        limits: limits(speed),
        // What resumes a session is not there, so no click starts a real Copilot on a session that is none.
        actions: Actions { copilot: Some(folder.join("no-copilot-in-a-demo")), ..Actions::default() },
        list: users.list,
        notifications: users.notifications.clone(),
        ..Config::default()
    };
    config.owners.names = vec![player.to_owned()];
    config
}

#[cfg(test)]
mod tests;
