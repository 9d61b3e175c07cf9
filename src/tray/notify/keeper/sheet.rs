//! A popup, as a server is given it.

use super::super::server::{Server, Sheet};
use super::super::{TITLE, body};
use crate::core::action::Action;
use crate::core::alert::{Button, Cause, Popup};
use crate::core::text::plain;
use crate::tray::icon;

/// So many actions a server shows that [`few`](super::super::server::Can::few) is true of.
const FEW: usize = 3;

/// What is to be shown, in the place of the popup of that number.
pub(super) fn sheet(popup: &Popup, buttons: &[Button], server: &Server, replaces: u32) -> Sheet {
    // A click beside the buttons; xfce4-notifyd knows none, and makes a button of it where it has a label.
    let opens = |button: &Button| {
        matches!(button, Button::Details | Button::Review | Button::Act(Action::Answer | Action::ShowTerminal))
    };
    let opened = if buttons.iter().any(opens) { "" } else { "Open" };
    let click = server.can.actions.then_some(["default", opened]);
    let named = |&button: &Button| [button.name(), button.label_among(buttons, popup.asked.as_ref())];
    // What quietens it stands last, and away from the answers.
    let (answers, mute): (Vec<_>, Vec<_>) = buttons.iter().partition(|button| **button != Button::Mute);
    let mut actions: Vec<_> = answers.into_iter().map(named).chain(click).chain(mute.into_iter().map(named)).collect();
    while server.can.few && actions.len() > FEW {
        // The click beside them goes first, then what stands last.
        actions.remove(actions.iter().position(|[name, _]| *name == "default").unwrap_or(actions.len() - 1));
    }
    Sheet {
        replaces,
        title: plain(&popup.title, TITLE).into(),
        body: if server.can.body { body(&popup.body, server.can.markup) } else { String::new() },
        actions: actions.into_iter().flatten().map(String::from).collect(),
        icon: match popup.cause {
            Cause::NeedsPermission | Cause::NeedsInput | Cause::PermissionLost => icon::State::NeedsYou,
            Cause::Stuck | Cause::Crashed | Cause::Failed => icon::State::Trouble,
            Cause::Done => icon::State::Well,
        },
        is_quiet: popup.cause == Cause::Done,
        waits: popup.cause.awaits_an_answer(),
        category: Some(format!("x-pilotlight.{}", popup.cause.name())),
        sound: popup.sound,
        plays: popup.sound && server.can.sound,
    }
}
