//! A popup, as a server is given it.

use super::super::server::{Server, Sheet};
use super::super::{TITLE, body};
use crate::core::alert::{Button, Cause, Popup, Urgency};
use crate::core::text::plain;
use crate::desktop::icon;

/// What is to be shown, in the place of the popup of that number.
pub(super) fn sheet(popup: &Popup, buttons: &[Button], server: &Server, replaces: u32) -> Sheet {
    // A click beside the buttons; xfce4-notifyd knows none, and makes a button of it where it has a label.
    let opens = |button: &Button| matches!(button, Button::Details | Button::Review | Button::Answer);
    let opened = if buttons.iter().any(opens) { "" } else { "Open" };
    let click = server.can.actions.then_some(["default", opened]);
    let label = |button: Button| button.label_among(buttons, popup.asked.as_ref());
    let buttons = buttons.iter().map(|&button| [button.name(), label(button)]);
    Sheet {
        replaces,
        title: plain(&popup.title, TITLE).into(),
        body: if server.can.body { body(&popup.body, server.can.markup) } else { String::new() },
        actions: buttons.chain(click).flatten().map(String::from).collect(),
        icon: match popup.cause {
            Cause::NeedsPermission | Cause::NeedsInput | Cause::PermissionLost => icon::State::NeedsYou,
            Cause::Stuck | Cause::Crashed | Cause::Failed => icon::State::Trouble,
            Cause::Done => icon::State::Well,
        },
        urgency: popup.urgency,
        category: Some(format!("x-pilotlight.{}", popup.cause.name())),
        sound: popup.sound,
        sound_name: (popup.sound && server.can.sound).then_some(match popup.urgency {
            Urgency::Low | Urgency::Normal => "message-new-instant",
            Urgency::Critical => "dialog-warning",
        }),
    }
}
