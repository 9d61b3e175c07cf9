//! What a note about a session offers: what became of the session, and the next thing to do about it.

use super::actions::{looking_at, remedy};
use super::details::Source;
use super::menu::needs;
use super::notify::Offer;
use super::view::{Effect, Item, Reviewed};
use pilotlight_core::action::{Action, ActionFlag};
use pilotlight_core::alert::Detail;
use pilotlight_core::fleet::{Row, Session};
use pilotlight_core::verdict::Status;

/// What became of a session, in a sentence.
pub(super) fn became(row: &Row, session: &Session, detail: Detail) -> String {
    match row.status {
        _ if row.needs_you() && detail == Detail::Full => format!("It {} now.", needs(row, session)),
        Status::NeedsPermission | Status::NeedsInput => "It waits for you now.".into(),
        Status::Ended | Status::Crashed | Status::Failed | Status::PermissionLost => {
            format!("It has {} now.", row.status.spec().does[0])
        }
        status => format!("It is {} now.", status.spec().does[0]),
    }
}

/// The next thing to do about a session: to answer what it asks, to mend it, or to look at it. `failed` is what did not
/// work just now: a terminal that could not be shown is not offered again.
pub(super) fn next(source: &Source<'_>, failed: Option<Action>) -> Offer {
    let is_hidden = |effect: &Effect| {
        let action = if let Effect::Act(order) = effect { order.operation.action() } else { return false };
        failed == Some(action) && action.is(ActionFlag::OnlyShows)
    };
    let look =
        Some(looking_at(source.row, source.session)).filter(|look| !is_hidden(look)).unwrap_or(Effect::LiveTable);
    let label = match &look {
        Effect::Review { what: Reviewed::Permission | Reviewed::Denial, .. } => Some("Review…"),
        Effect::Review { what: Reviewed::Question, .. } => Some("Answer…"),
        _ => None,
    };
    if let Some(label) = label {
        return Offer::new(label, look);
    }
    if let Some(Item::Action { effect, .. }) = remedy(source, |_| String::new())
        && let Effect::Act(order) = &effect
        && !is_hidden(&effect)
    {
        let action = order.operation.action();
        // A click beside the button may be an accident.
        let on_body = if action.is(ActionFlag::OnlyShows) || action == Action::Resume { effect.clone() } else { look };
        return Offer { label: action.menu_label().into(), effect, on_body };
    }
    match look {
        Effect::Act(_) => Offer::new(Action::ShowTerminal.menu_label(), look),
        _ => Offer::all(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pilotlight_agents::copilot::log_format;
    use pilotlight_core::action::ServerState;
    use pilotlight_core::fleet::Kind;
    use pilotlight_core::limits::Limits;
    use pilotlight_core::order::Operation;
    use pilotlight_core::owner::Owner;
    use pilotlight_core::session::{HomeId, Key, Observed};
    use pilotlight_core::time::{Moment, Time};
    use pilotlight_engine::LastProgress;
    use std::path::Path;

    const ID: &str = "36535f61-5c7b-4f09-a70b-2f8aed972800";

    fn offered(session: &Session, status: Status) -> (String, Offer) {
        offered_after(session, status, None)
    }

    fn offered_after(session: &Session, status: Status, failed: Option<Action>) -> (String, Offer) {
        let row = Row { status, ..session.row(Moment::of(Time(1_700_000_000_000)), &Limits::default()).0 };
        let (key, last_progress) = (Key::new(HomeId::default(), "a"), LastProgress::default());
        let reader = pilotlight_agents::home::Home::at(Path::new("/x")).reader(ID);
        let source = Source { key: &key, row: &row, session, last_progress: &last_progress, reader: Some(&reader) };
        (became(&row, session, Detail::Full), next(&source, failed))
    }

    fn does(effect: &Effect) -> Option<Action> {
        if let Effect::Act(order) = effect { Some(order.operation.action()) } else { None }
    }

    #[test]
    fn case_212_a_note_says_what_became_of_the_session_and_offers_the_next_thing() {
        let mut session = Session {
            id: ID.into(),
            observed: Observed { owner: Owner::Alive { pid: 1, started: None }, ..Observed::default() },
            ..Session::default()
        };
        session.observed.about.kind = Kind::Terminal;
        let (words, offer) = offered(&session, Status::Working);
        assert_eq!((&*words, &*offer.label), ("It is working now.", "Show its terminal"));
        assert_eq!((does(&offer.effect), offer.effect), (Some(Action::ShowTerminal), offer.on_body));
        let requested = br#"{"type":"permission.requested","data":{"requestId":"r","permissionRequest":{"kind":"shell","fullCommandText":"make"}},"id":"e","timestamp":"2023-11-14T22:13:20.000Z"}"#;
        let now = Moment::of(Time(1_700_000_000_000));
        let prompt =
            br#"{"type":"user.message","data":{"content":"Go on"},"id":"p","timestamp":"2023-11-14T22:13:20.000Z"}"#;
        session.observed.facts.fold(&log_format::parse(prompt).unwrap(), now, &Limits::default());
        session.control.server = ServerState::Listening;
        let (words, offer) = offered(&session, Status::Stuck);
        assert_eq!(words, "It is stuck now.");
        assert_eq!(does(&offer.effect), Some(Action::Stop), "{offer:?}");
        assert_ne!(does(&offer.on_body), Some(Action::Stop), "a click beside the button stops nothing");
        session.observed.facts.fold(&log_format::parse(requested).unwrap(), now, &Limits::default());
        let (words, offer) = offered(&session, Status::NeedsPermission);
        assert_eq!((&*words, &*offer.label), ("It wants to run make now.", "Review…"));
        assert_eq!(
            offer.effect,
            Effect::Review { what: Reviewed::Permission, id: ID.into(), host: None, request: "r".into() }
        );
        session.observed.facts.requests.clear();
        (session.observed.owner, session.control.server) = (Owner::Gone { pid: 1, at: None }, ServerState::Unknown);
        let (words, offer) = offered(&session, Status::Crashed);
        assert_eq!(
            (&*words, does(&offer.effect), does(&offer.on_body)),
            ("It crashed now.", Some(Action::Resume), Some(Action::Resume))
        );
        let Effect::Act(order) = offer.effect else { panic!("an order") };
        assert_eq!(order.operation, Operation::Resume);
        let (_, again) = offered_after(&session, Status::Crashed, Some(Action::Resume));
        assert_eq!(does(&again.effect), Some(Action::Resume), "it may work the next time");
        let (words, offer) = offered(&session, Status::Ended);
        assert_eq!((&*words, offer), ("It has ended now.", Offer::all()));
    }

    #[test]
    fn case_218_a_terminal_that_could_not_be_shown_is_not_offered_again() {
        let mut session = Session {
            id: ID.into(),
            observed: Observed { owner: Owner::Alive { pid: 1, started: None }, ..Observed::default() },
            ..Session::default()
        };
        session.observed.about.kind = Kind::Terminal;
        let failed = Some(Action::ShowTerminal);
        for status in [Status::Working, Status::PermissionLost] {
            assert_eq!(does(&offered(&session, status).1.effect), failed, "{status:?}");
            assert_eq!(offered_after(&session, status, failed).1, Offer::all(), "{status:?}");
        }
        let prompt =
            br#"{"type":"user.message","data":{"content":"Go on"},"id":"p","timestamp":"2023-11-14T22:13:20.000Z"}"#;
        let now = Moment::of(Time(1_700_000_000_000));
        session.observed.facts.fold(&log_format::parse(prompt).unwrap(), now, &Limits::default());
        session.control.server = ServerState::Listening;
        let (_, offer) = offered_after(&session, Status::Stuck, failed);
        assert_eq!((does(&offer.effect), offer.on_body), (Some(Action::Stop), Effect::LiveTable));
    }
}
