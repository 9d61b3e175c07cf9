//! Popups by what is asked for, and by how the session is reached.

use super::super::story::START;
use super::stage::{Stage, key, row};
use pilotlight_core::action::Action;
use pilotlight_core::alert::{Alertable, Alerts, Button, Cause, Change, Now, Quiet, Request, Settings};
use pilotlight_core::fleet::{OwnerView, Row};
use pilotlight_core::time::{Moment, Span};
use pilotlight_core::verdict::Status;

/// The title of the popup for a permission request of this kind.
fn title(kind: &str) -> String {
    let (key, row) = (key("a"), row("a", Status::NeedsPermission, START));
    let mut alerts = Alerts::new(Settings::default(), Quiet::default());
    let mut at = |second: i64, sessions: &[Alertable<'_>]| {
        let at = Moment::of(START + Span::seconds(second));
        let now = Now { at, minute: 720, started: START - Span::hours(1), woke: None };
        alerts.update(sessions.iter().copied(), &now)
    };
    let request = Some(Request {
        id: 1,
        kind,
        what: None,
        probable: false,
        answerable: false,
        can_be_let: false,
        approval_requested: false,
    });
    let (question, completed) = (None, None);
    let session = Alertable {
        key: &key,
        row: &row,
        request,
        question,
        completed,
        last_message: None,
        cli_notifies: false,
        has_terminal: false,
    };
    at(-1, &[]);
    at(0, &[session]);
    match &at(60, &[session])[..] {
        [Change::Raise(popup)] => popup.title.clone(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_title_says_what_the_session_wants_to_do() {
    for (kind, wants) in [
        ("shell", "to run"),
        ("commands", "to run"),
        ("read", "to read"),
        ("write", "to write"),
        ("path", "to reach"),
        ("url", "to fetch"),
        ("mcp", "to call a tool"),
        ("unheard-of", "a permission"),
    ] {
        assert_eq!(title(kind), format!("a wants {wants}"), "{kind}");
    }
}

/// In a plain terminal with a bridge there is nothing to reconnect, but a prompt can be entered.
#[test]
fn a_failed_session_is_sent_on_only_over_a_bridge() {
    use Action::ShowTerminal;
    use Button::{Act, Mute, SendOn};
    let buttons = |bridge: Option<&'static str>, attachable: Option<bool>| {
        let mut stage = Stage::new();
        stage.change("a", |actor| {
            let owner = Some(OwnerView { pid: 4711, state: "alive", attachable, bridge });
            let actions = vec![Action::Continue, ShowTerminal];
            actor.row = Row { owner, actions, ..row("a", Status::Failed, actor.row.since) };
        });
        stage.at(10);
        stage.popup("a").unwrap().buttons
    };
    assert_eq!(buttons(Some("joined"), Some(false)), [SendOn, Act(ShowTerminal), Mute]);
    for (bridge, attachable) in
        [(None, Some(false)), (None, None), (Some("joined"), Some(true)), (Some("joined"), None)]
    {
        assert_eq!(buttons(bridge, attachable), [Act(ShowTerminal), Mute], "{bridge:?}, {attachable:?}");
    }
}

/// Whoever is asked again may give it at once again.
#[test]
fn a_request_that_is_back_after_its_cooldown_waits_as_it_did_at_first() {
    let mut stage = Stage::new();
    stage.asks("a", 1, None).at(5).is("a", Status::Working).at(3600).asks("a", 1, None).at(3700);
    assert_eq!(stage.notified(), [3_000, 3_603_000].map(|at| (at, Cause::NeedsPermission)));
}
