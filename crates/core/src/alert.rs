//! Notifications: decides which popups to raise and withdraw, from the sessions' current state and what is remembered
//! about them.
//!
//! The reason for notifying about a session is its *cause*; the time during which one cause holds is an *episode*. An
//! episode first waits until it is due: a permission may be granted within 2 s, the same cause is not notified twice in
//! 5 minutes, and nothing is notified right after a start or a sleep. It then waits briefly for others to join it, or
//! longer while the user looks at the session, and is notified once, or silenced for good. It ends when the session does something else, disappears or asks for
//! something else; its popup is then withdrawn. A silenced episode is never notified later: the menu shows it.
//!
//! A session has at most one popup. Up to three are open at once; any more are merged into one summary. A popup's text
//! never changes; if its answers become available only later, it is raised again.
//!
//! Everything follows from the sessions, the settings and the time passed to [`Alerts::update`]. Nothing is queued: a
//! mute, a pause or a changed setting takes effect with the next update. Spans are measured on the awake clock, so
//! neither sleep nor a change of the system time triggers anything. Only quiet hours and the end of a pause use the
//! wall clock.
//!
//! - `alertable`: a session as it is seen here; `cause`: why to notify about it; `popup`: what comes out.
//! - `rules`: the state and its single step, the update; `episode`: what is remembered about one session.
//! - `focus`: whether the user looks at the session.
//! - `quiet`: what survives a restart: mutes and a pause.
//! - `trigger`: when commands of the settings are run, by the same rules.
//! - `settings`: the user's settings; `words`: a popup's text and buttons.

mod alertable;
mod cause;
mod episode;
mod focus;
mod popup;
mod quiet;
mod rules;
mod settings;
mod trigger;
mod words;

pub use alertable::{Alertable, Completed, Now, OpenQuestion, Request};
pub use cause::Cause;
pub use focus::FOCUS_TIMEOUT;
pub use popup::{About, Button, Change, Popup, PopupId, ShownRequest};
pub use quiet::{Pause, Quiet};
pub use rules::Alerts;
pub use settings::{Detail, Kinds, Settings};
pub use trigger::{Trigger, Triggers, told};
