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
//! Sessions of other agents play beside these ([`crate::demo`]).
//!
//! [`script`] is a timetable, [`events`] turns its acts into log lines; both are pure. [`pipe`] is what stage and demo
//! tell each other.

pub mod bridge;
pub mod events;
pub mod pipe;
pub mod script;
pub mod server;
mod session;
pub mod stage;
pub mod window;

use pilotlight_core::limits::Limits;
use pilotlight_core::time::Span;

/// The Copilot home, in the stage's folder.
pub(crate) const HOME: &str = "copilot";
/// The demo's state folder, in the stage's folder.
pub const STATE: &str = "state";

/// The program for which another stands in the stage's folder.
pub const PROGRAM: &str = "copilot";

/// The demo's limits at `speed` times the usual pace, short enough for every status to appear within two minutes.
pub fn limits(speed: u32) -> Limits {
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

#[cfg(test)]
mod tests;
