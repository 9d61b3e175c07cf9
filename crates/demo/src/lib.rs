//! The scripted world of `pilotlight demo`: sessions that play themselves and do what the user clicks, without any agent
//! installed. The folders and logs are real, and so is a process for each session.
//!
//! Several kinds of processes take part, all running this program. The *demo* is the one that the user started: all of
//! Pilotlight, watching homes of its own. The [`stage`] is its child. It creates those homes in a scratch folder, plays
//! there, and removes everything when the pipe from the demo closes, however the demo ended. The *players* are the stage's
//! children and own the sessions. Each ends when the pipe from the stage closes, so none outlives it. What a terminal shows
//! in which the user resumed a session is a process, too ([`window`], [`guests::owner`]).
//!
//! The main parts:
//!
//! - [`script`] is the timetable of Copilot's sessions, [`events`] turns its acts into log lines; both are pure.
//! - [`stage`] plays it. What the user does takes the way that it always takes, with every check, and arrives here in place
//!   of a terminal or a program: over [`bridge`] for sessions in terminals, over the [`server`] in its player for the
//!   session of a program. [`pipe`] is what stage and demo tell each other.
//! - [`guests`] are sessions of the other agents, beside those. They take no orders, as their agents take none, so they only
//!   play and can be ended and resumed. Each agent gives a `Part`: which files its process leaves, and how it holds a
//!   session.
//! - [`programs`] gives a player the name of its agent's program, so that whoever ends it verifies it as always, and nothing
//!   counts as an agent only because this is a demo. Whatever would start an agent's program starts a stand-in.
//! - [`homes`] are the homes, as Pilotlight watches them.
//!
//! Nothing of the user's is touched: homes, state, control socket and working folders are in the scratch folder. Copilot's
//! players count as Copilot in the demo alone, by a name in its settings. The files of an agent are written here as the
//! agent writes them, and read by its adapter as always; a demo that plays is a test of that, too.
//!
//! Begin with `script.rs` and `stage.rs`. The table's keys run their commands inside of the demo (`src/cli/demo.rs`).

pub mod bridge;
pub mod events;
pub mod guests;
pub mod pipe;
pub mod programs;
pub mod script;
pub mod server;
mod session;
pub mod stage;
mod wait;
pub mod window;

use guests::cast::PARTS;
use pilotlight_agents::home::Home;
use pilotlight_core::limits::Limits;
use pilotlight_core::time::Span;
use programs::stand_in;
use std::path::Path;

/// The Copilot home, in the stage's folder.
pub(crate) const HOME: &str = "copilot";
/// The demo's state folder, in the stage's folder.
pub const STATE: &str = "state";

/// The program for which another stands in the stage's folder.
pub const PROGRAM: &str = "copilot";

/// The homes of a demo, in the stage's folder. What is reported is in none of them.
pub fn homes(folder: &Path) -> Vec<Home> {
    let guests = PARTS.iter().filter(|part| part.resumes_with.is_some()).map(|part| {
        let program = stand_in(folder, part.adapter.profile().program);
        Home::of(part.adapter, folder.join(part.home)).with_stand_in(&program)
    });
    std::iter::once(Home::at(&folder.join(HOME))).chain(guests).collect()
}

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
