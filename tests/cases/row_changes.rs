//! What counts as a change of a row, and the row of a session whose log cannot be read.

use super::story::{PID, START, Story};
use pilotlight_core::action::Action;
use pilotlight_core::facts::ContextUse;
use pilotlight_core::fleet::{
    BackgroundView, Kind, Label, OwnerView, RequestView, Row, Session, SubAgentView, TurnView,
};
use pilotlight_core::owner::Owner;
use pilotlight_core::question::Question;
use pilotlight_core::session::Observed;
use pilotlight_core::short_reason::ShortReason;
use pilotlight_core::time::Span;
use pilotlight_core::verdict::Status::{Ended, Quiet};
use pilotlight_core::words::reason::Note;

fn row() -> Row {
    let story = Story::prompted().tool(1, "t1", "bash");
    let session = Session {
        id: "36535f61-5c7b-4f09-a70b-2f8aed97280f".into(),
        observed: Observed { facts: story.facts(1), owner: story.owner.clone(), ..Observed::default() },
        ..Session::default()
    };
    session.row(story.moment(2), &story.limits).0
}

fn story_request() -> RequestView {
    RequestView { id: "r".into(), kind: "shell".into(), text: None, paths: Vec::new(), reads_plain: false, by: None }
}

/// Watchers are notified of each of these alone.
#[test]
fn every_shown_field_makes_a_difference() {
    type Change = (&'static str, fn(&mut Row));
    let changes: [Change; 19] = [
        ("id", |row| row.id = "b".into()),
        ("name", |row| row.name.push('!')),
        ("cwd", |row| row.cwd = None),
        ("branch", |row| row.branch = Some("fix".into())),
        ("kind", |row| row.kind = Kind::Sdk),
        ("status", |row| row.status = Quiet),
        ("since", |row| row.since = row.since + Span(1)),
        ("because", |row| row.because.notes.push(Note::Approved)),
        ("unseen", |row| row.unseen = true),
        ("owner", |row| row.owner = None),
        ("background", |row| row.background.agents = 1),
        ("actions", |row| row.actions.push(Action::Approve)),
        ("label", |row| row.label = Label { who: "shed".into(), agent: None, title: None }),
        ("turn", |row| row.turn = None),
        ("request", |row| row.request = Some(story_request())),
        ("question", |row| row.question = Some(Question { id: None, text: "Why?".into(), choices: Vec::new() })),
        ("wakes_at", |row| row.wakes_at = Some(START)),
        ("limit_until", |row| row.limit_until = Some(START)),
        ("short_reason", |row| row.short_reason = ShortReason::Words("reconnect under way".into())),
    ];
    let before = row();
    assert!(!before.differs_from(&before));
    for (field, change) in changes {
        let mut after = before.clone();
        change(&mut after);
        assert!(after.differs_from(&before) && before.differs_from(&after), "{field}");
    }
}

#[test]
fn one_gist_differs_from_another() {
    let with = |words: &str| Row { short_reason: ShortReason::Words(words.into()), ..row() };
    assert!(with("rm -rf build").differs_from(&with("ls")));
    assert!(!with("ls").differs_from(&with("ls")));
}

/// Ages and counts that mere progress changes.
#[test]
fn progress_in_a_turn_makes_no_difference() {
    let before = row();
    let mut after = before.clone();
    after.last_progress = Some(START + Span::seconds(90));
    after.is_seen = true;
    let turn = before.turn.unwrap();
    after.turn = Some(TurnView { tools: turn.tools + 1, ..turn });
    after.short_reason = ShortReason::Turn(TurnView { tools: turn.tools + 1, ..turn }, START + Span::seconds(90));
    assert!(!after.differs_from(&before));
    after.turn = Some(TurnView { older: true, ..turn });
    assert!(after.differs_from(&before), "its start is unknown now");
}

/// Sub-agents that begin and end do make one.
#[test]
fn case_767_what_sub_agents_do_and_what_of_a_context_is_used_makes_no_difference() {
    let sub_agent =
        |does: Option<&str>, last| SubAgentView { name: "a".into(), does: does.map(Into::into), since: START, last };
    let with = |list: Vec<SubAgentView>| Row { background: BackgroundView { list, ..row().background }, ..row() };
    let before = with(vec![sub_agent(None, START)]);
    let after = with(vec![sub_agent(Some("bash"), START + Span::seconds(9))]);
    assert!(!after.differs_from(&before));
    assert!(with(Vec::new()).differs_from(&before));
    let context = |used| Row { context: Some(ContextUse { used, window: Some(10) }), ..row() };
    assert!(!context(2).differs_from(&context(1)) && !context(1).differs_from(&row()));
}

/// A log that cannot be read says nothing about a turn; only the end of the owner is certain.
#[test]
fn a_session_whose_log_cannot_be_read_has_ended_only_with_its_owner() {
    let problem = "its log cannot be read: permission denied";
    let row = |owner: Owner, has_log: bool| {
        let problem = Some(problem.into());
        let session = Session {
            id: "a".into(),
            observed: Observed { owner, has_log, problem, touched: START, ..Observed::default() },
            ..Session::default()
        };
        assert!(session.is_listed());
        session.row(Story::new().moment(3600), &Story::new().limits).0
    };
    for (owner, has_log, status) in [
        (Owner::Gone { pid: PID, at: None }, true, Ended),
        (Owner::Gone { pid: PID, at: None }, false, Ended),
        (Owner::Never, true, Ended),
        (Owner::Never, false, Quiet),
        (Owner::Alive { pid: PID, started: None }, true, Quiet),
        (Owner::Unknown { pid: PID }, true, Quiet),
    ] {
        let row = row(owner.clone(), has_log);
        assert_eq!(
            (row.status, &*row.because.to_string(), row.since),
            (status, problem, START),
            "{owner:?}, log: {has_log}"
        );
        let pid = row.owner.map(|OwnerView { pid, .. }| pid);
        assert_eq!(pid, if owner == Owner::Never { None } else { Some(PID) });
    }
}
