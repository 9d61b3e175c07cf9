//! The notification of a popup.

use crate::tray::icon;
use crate::tray::notify::server::{Notification, Server};
use crate::tray::notify::text::{TITLE_MAX, body};
use pilotlight_core::action::{Action, ActionFlag};
use pilotlight_core::alert::{Button, Cause, Popup};
use pilotlight_core::text::plain;

/// Maximum number of actions for a server with
/// [`few_actions`](super::super::server::Capabilities::few_actions). GNOME Shell draws as many, and drops the rest.
pub(super) const FEW_ACTIONS: usize = 3;

/// The name of the action that only closes the popup.
pub(super) const LATER: &str = "later";

/// The notification of a popup, which replaces the one with this number, limited to what the server supports.
pub(super) fn notification(popup: &Popup, buttons: &[Button], server: &Server, replaces: u32) -> Notification {
    // The default action, a click outside the buttons. swaync ignores it without a label; xfce4-notifyd draws it as one more
    // button, which is of use only where no other opens anything.
    let opens = |button: &Button| match button {
        Button::Details | Button::Review | Button::Act(Action::Answer) => true,
        Button::Act(action) => action.is(ActionFlag::OnlyShows),
        Button::Choice(_) | Button::SendOn | Button::Mute => false,
    };
    let has_opener = buttons.iter().any(opens);
    let label = if has_opener && !server.capabilities.names_default { "" } else { "Open" };
    let is_wanted = server.capabilities.actions && !(server.capabilities.draws_default && has_opener);
    let default = is_wanted.then_some(["default", label]);
    let named = |&button: &Button| [button.name(), button.label_among(buttons, popup.asked.as_ref())];
    // Mute comes last, apart from the answers.
    let (answers, mute): (Vec<_>, Vec<_>) = buttons.iter().partition(|button| **button != Button::Mute);
    let (answers, mute) = (answers.into_iter().map(named), mute.into_iter().map(named));
    let mut actions: Vec<_> = if server.capabilities.drops_after_default {
        answers.chain(mute).chain(default).collect()
    } else {
        answers.chain(default).chain(mute).collect()
    };
    // Whoever types in another window while the popup appears must not press a button that acts.
    if server.capabilities.focuses_first && !buttons.is_empty() {
        actions.insert(0, [LATER, "Not now"]);
    }
    while server.capabilities.few_actions && actions.len() > FEW_ACTIONS {
        // The default action is dropped first, then the last one.
        actions.remove(actions.iter().position(|[name, _]| *name == "default").unwrap_or(actions.len() - 1));
    }
    Notification {
        replaces,
        title: plain(&popup.title, TITLE_MAX).into(),
        body: if server.capabilities.body {
            body(&popup.body, server.capabilities.markup, server.capabilities.joins_lines)
        } else {
            String::new()
        },
        actions: actions.into_iter().flatten().map(String::from).collect(),
        icon: match popup.cause {
            Cause::NeedsPermission | Cause::NeedsInput | Cause::PermissionLost => icon::State::NeedsYou,
            Cause::Stuck | Cause::Crashed | Cause::Failed => icon::State::Trouble,
            Cause::Done => icon::State::Well,
        },
        low_urgency: popup.cause == Cause::Done,
        persistent: popup.cause.awaits_answer(),
        category: Some(format!("x-pilotlight.{}", popup.cause.name())),
        sound: popup.sound,
        names_sound: popup.sound && server.capabilities.sound,
    }
}
