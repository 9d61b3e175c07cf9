use super::*;
use crate::attempts::Mark;
use crate::event::{Besides, Body, Event, Limit, ScheduleChange};
use crate::scan::Text;
use crate::session::NoAnswer;
use crate::turn::{Closed, Ending};
use crate::verdict::reported_state::{ReportedState, State};

const START: Time = Time(1_700_000_000_000);

fn row(status: Status, because: &str) -> Row {
    let (row, _) = Session::default().row(Moment::of(START), &Limits::default());
    Row { status, because: because.into(), since: START, last_progress: Some(START), ..row }
}

fn turn(since: Time) -> Option<TurnView> {
    Some(TurnView { since, tools: 8, older: false })
}

#[test]
fn a_reason_has_the_age_of_the_turn_or_the_text_of_the_request() {
    let now = START + Span::minutes(12);
    let works = Row { last_progress: Some(now), ..row(Status::Working, "running bash") };
    assert_eq!(works.reason(now), "running bash");
    let works = Row { turn: turn(START), ..works };
    assert_eq!(works.reason(now), "running bash; turn: 12 min, 8 tools");
    assert_eq!(works.reason(START + Span::seconds(59)), "running bash", "nothing in the first minute");
    let asks = |text: Option<&str>| {
        let text = text.map(Into::into);
        let request =
            RequestView { id: "r".into(), kind: "shell".into(), text, paths: Vec::new(), reads_plain: true, by: None };
        Row { request: Some(request), ..row(Status::NeedsPermission, "asks for permission: shell") }
    };
    assert_eq!(asks(Some("rm -rf\nbuild")).reason(now), "rm -rf build (asks for permission: shell)");
    assert_eq!(asks(None).reason(now), "asks for permission: shell");
    let asks = Row { turn: turn(START), ..asks(None) };
    assert_eq!(asks.reason(now), "asks for permission: shell; turn: 12 min, 8 tools");
    let other = Row { status: Status::NeedsInput, ..asks };
    assert_eq!(other.reason(now), "asks for permission: shell; turn: 12 min, 8 tools");
}

#[test]
fn case_293_a_turn_that_was_silent_from_its_beginning_tells_its_age_once() {
    let now = START + Span::minutes(2);
    let silent = |status, began, tools| {
        let turn = Some(TurnView { since: START - Span::seconds(began), tools, older: false });
        Row { turn, ..row(status, "silent 2 min") }.reason(now)
    };
    assert_eq!(silent(Status::Quiet, 1, 0), "silent 2 min");
    assert_eq!(silent(Status::Stuck, 1, 3), "silent 2 min; turn: 2 min, 3 tools");
    assert_eq!(silent(Status::Stuck, 59, 0), "silent 2 min");
    assert_eq!(silent(Status::Stuck, 60, 0), "silent 2 min; turn: 3 min", "it said something before");
    assert_eq!(silent(Status::NeedsInput, 1, 0), "silent 2 min; turn: 2 min");
}

#[test]
fn case_162_a_row_at_work_says_when_it_was_last_seen() {
    let now = START + Span::minutes(12);
    let last_seen = |row: &Row, seconds| Row { last_progress: Some(now - Span::seconds(seconds)), ..row.clone() };
    let works = Row { turn: turn(START), ..row(Status::Working, "running bash") };
    for (seconds, age, reason) in [
        (0, "now", "running bash; turn: 12 min, 8 tools"),
        (9, "now", "running bash; turn: 12 min, 8 tools"),
        (10, "10 s", "running bash; turn: 12 min, 8 tools, last seen 10 s ago"),
        (51, "50 s", "running bash; turn: 12 min, 8 tools, last seen 50 s ago"),
        (299, "4 min", "running bash; turn: 12 min, 8 tools, last seen 4 min ago"),
    ] {
        let row = last_seen(&works, seconds);
        assert_eq!((row.age(now).unwrap(), row.reason(now)), (age.to_owned(), reason.to_owned()));
        assert_eq!(row.brief_reason(now), "running bash; turn: 12 min, 8 tools", "an age is next to it");
    }
    let early = Row { turn: turn(now - Span::seconds(59)), ..works };
    assert_eq!(last_seen(&early, 51).reason(now), "running bash; last seen 50 s ago");
    assert_eq!(last_seen(&early, 9).reason(now), "running bash");
    let without_turn = row(Status::Working, "1 background agent");
    assert_eq!(last_seen(&without_turn, 900).reason(now), "1 background agent; last seen 15 min ago");
    // A session that waits for the user is not silent.
    let asks = Row { turn: turn(START), ..row(Status::NeedsInput, "asks") };
    assert_eq!(last_seen(&asks, 51).reason(now), "asks; turn: 12 min, 8 tools");
}

#[test]
fn an_age_counts_from_the_last_progress_or_from_the_status() {
    let at = |row: &Row, seconds| row.age(START + Span::seconds(seconds)).unwrap();
    let old = row(Status::Idle, "done");
    let ages = [0, 59, 60, 299, 300].map(|seconds| at(&old, seconds));
    assert_eq!(ages, ["<1 min", "<1 min", "1 min", "4 min", "5 min"]);
    assert_eq!(at(&old, -90), "<1 min", "the clock was set back");
    assert_eq!(at(&Row { status: Status::Working, ..old.clone() }, -90), "now");
    let since = Row { last_progress: None, since: START - Span::hours(2), ..row(Status::Quiet, "unreadable") };
    assert_eq!(at(&since, 0), "2 h");
    assert_eq!(at(&Row { since: START - Span::hours(2), ..old }, 0), "<1 min");
}

#[test]
fn case_173_a_session_that_was_never_prompted_has_no_age() {
    let opened = Row { last_progress: None, ..row(Status::Idle, "no prompt yet") };
    assert_eq!((opened.age(START), opened.next_age(START)), (None, None));
}

/// A view that is redrawn then is never wrong, and never redrawn for nothing.
#[test]
fn the_words_of_a_row_change_exactly_when_it_says() {
    let words = |row: &Row, at: Time| (row.age(at), row.reason(at));
    let rest = row(Status::Idle, "done");
    let early = Row { turn: turn(START - Span::seconds(25)), ..row(Status::Quiet, "silent") };
    let late = Row { turn: turn(START + Span::seconds(70)), ..early.clone() };
    let works = Row { status: Status::Working, ..early.clone() };
    let without_turn = row(Status::Working, "1 background agent");
    let bare = |since| Row { turn: Some(TurnView { tools: 0, ..turn(since).unwrap() }), ..early.clone() };
    let (silent, spoke) = (bare(START - Span::seconds(5)), bare(START - Span::minutes(3)));
    for row in [rest, early, late, works, without_turn, silent, spoke] {
        for seconds in (0..8000).step_by(7) {
            let now = START + Span::seconds(seconds);
            let next = row.next_age(now).unwrap();
            assert!(next > now);
            assert_eq!(words(&row, next - Span(1)), words(&row, now), "{seconds} s: {:?}", row.turn);
            assert_ne!(words(&row, next), words(&row, now), "{seconds} s: {:?}", row.turn);
        }
    }
}

#[test]
fn only_what_a_row_tells_of_must_be_redrawn_when_it_ends() {
    let ended = |status, seconds| row(status, "x").ended_lull(START - Span::seconds(seconds));
    assert!(ended(Status::Working, 10) && !ended(Status::Working, 9) && !ended(Status::Idle, 10));
}

/// Case 350: who prompts it has looked at it.
#[test]
fn case_350_that_a_command_approved_is_told_until_the_session_is_looked_at_or_prompted() {
    let mut session = Session::default();
    session.control.approved_by_command = Some(START);
    let tells = |session: &Session| {
        let (row, _) = session.row(Moment::of(START + Span::minutes(1)), &Limits::default());
        row.because.to_string().contains("approved by `pilotlight approve`")
    };
    assert!(tells(&session));
    let mut unconfirmed = Session::default();
    unconfirmed.control.approval_unconfirmed = Some(START);
    let (row, _) = unconfirmed.row(Moment::of(START + Span::minutes(1)), &Limits::default());
    let because = row.because.to_string();
    assert!(because.contains("nothing confirms that it took effect") && !tells(&unconfirmed), "{because}");
    for (seconds, told) in [(-1, true), (0, false), (1, false)] {
        let at = START + Span::seconds(seconds);
        session.observed.facts.marks.prompt = Some(Mark { event: 1, at });
        assert_eq!(tells(&session), told);
    }
}

/// Case 352: how it ended is not known before.
#[test]
fn case_352_a_long_log_that_is_still_being_read_is_not_called_ended() {
    let status = |is_loading: bool| {
        let mut session = Session::default();
        session.observed.owner = Owner::Gone { pid: 7, at: None };
        session.observed.problem = Some("its log is long, and still being read".into());
        session.observed.is_loading = is_loading;
        session.row(Moment::of(START), &Limits::default()).0.status
    };
    assert_eq!([true, false].map(status), [Status::Quiet, Status::Ended]);
}

/// Case 358: words and JSON tell the same of what goes on beside a turn.
#[test]
fn case_358_what_is_told_of_background_work_is_one_and_ends_with_its_process() {
    let mut session = Session::default();
    let row = |session: &Session| session.row(Moment::of(START), &Limits::default()).0;
    session.observed.facts.progress = Some(Moment::of(START));
    session.observed.facts.shells = vec!["one".into()];
    session.observed.owner = Owner::Alive { pid: 7, started: None };
    assert_eq!(row(&session).background.shells, 1);
    let reported_state = |shell| {
        let state = State::Idle { shell };
        Some(ReportedState {
            state,
            since: Moment::of(START - Span::minutes(1)),
            by: "its process".into(),
            waiting_tool: None,
        })
    };
    session.observed.reported_state = reported_state(false);
    assert_eq!(row(&session).background.shells, 0);
    // Its log tells of no shell, and its process does.
    session.observed.facts.shells.clear();
    session.observed.reported_state = reported_state(true);
    let told = row(&session);
    assert!(told.background.shells == 1 && told.because.to_string().contains("1 background shell"), "{}", told.because);
    session.observed.facts.shells = vec!["one".into()];
    session.observed.owner = Owner::Gone { pid: 7, at: None };
    assert_eq!((row(&session).status, row(&session).background.counts()), (Status::Ended, Background::default()));
}

#[test]
fn what_is_as_new_as_the_look_at_it_was_seen() {
    let seen = |seconds: i64| {
        let mut session = Session::default();
        session.observed.facts.progress = Some(Moment::of(START));
        session.observed.facts.closed = Some(Closed { ending: Ending::Completed, at: Moment::of(START), asks: false });
        session.observed.owner = Owner::Alive { pid: 7, started: None };
        session.seen = Some(START + Span::seconds(seconds));
        let row = session.row(Moment::of(START + Span::minutes(1)), &Limits::default()).0;
        assert_eq!((row.status, row.since), (Status::Idle, START));
        (row.is_seen, row.unseen)
    };
    assert_eq!([-1, 0, 1].map(seen), [(false, true), (true, false), (true, false)]);
}

#[test]
fn a_session_that_is_not_read_any_more_is_quiet_unless_its_process_is_known_to_be_gone() {
    let status = |owner: Owner| {
        let mut session = Session::default();
        session.observed.facts.progress = Some(Moment::of(START));
        session.observed.owner = owner;
        let since = Moment::of(START + Span::hours(24));
        session.no_answer = Some(NoAnswer { file_system: "nfs".into(), since, is_behind: false });
        let row = session.row(Moment::of(START + Span::hours(25)), &Limits::default()).0;
        (row.status, row.because.to_string().contains("does not answer"))
    };
    assert_eq!(status(Owner::Alive { pid: 7, started: None }), (Status::Quiet, true));
    assert_eq!(status(Owner::Gone { pid: 7, at: None }), (Status::Ended, false));
    assert_eq!(status(Owner::Never), (Status::Quiet, true), "whether it ended is in what is not read");
}

#[test]
fn nothing_can_be_done_with_what_was_not_read_and_has_no_log() {
    let actions = |has_log: bool| {
        let mut session = Session { id: "36535f61-5c7b-4f09-a70b-2f8aed970001".into(), ..Session::default() };
        (session.observed.unread, session.observed.has_log) = (true, has_log);
        session.row(Moment::of(START), &Limits::default()).0.actions
    };
    assert_eq!([true, false].map(actions), [vec![Action::Reconnect, Action::Resume], vec![]]);
}

#[test]
fn a_log_that_cannot_be_read_tells_no_more_than_its_owner_does() {
    let status = |owner: Owner, has_log: bool| {
        let mut session = Session::default();
        session.observed.problem = Some("its log cannot be read".into());
        (session.observed.owner, session.observed.has_log) = (owner, has_log);
        session.row(Moment::of(START), &Limits::default()).0.status
    };
    assert_eq!([true, false].map(|log| status(Owner::Never, log)), [Status::Ended, Status::Quiet]);
    assert_eq!(status(Owner::Alive { pid: 7, started: None }, true), Status::Quiet);
    assert_eq!(status(Owner::Gone { pid: 7, at: None }, false), Status::Ended);
}

#[test]
fn case_765_an_idle_session_says_when_it_wakes_and_when_that_is_overdue() {
    let at = START + Span::minutes(30);
    let change = ScheduleChange::Armed { id: Text(b"1"), at: Some(at), after: None, repeats: false, persists: false };
    let event =
        Event { besides: Besides { schedule: Some(change), ..Besides::NONE }, ..Event::of(b"x", START, Body::Step) };
    let mut session = Session::default();
    session.observed.facts.fold(&event, Moment::of(START), &Limits::default());
    session.observed.facts.whole = true;
    let owner = |started| Owner::Alive { pid: 7, started };
    session.observed.owner = owner(Some(START));
    let judged =
        |session: &Session, minutes: i64| session.row(Moment::of(START + Span::minutes(minutes)), &Limits::default());
    let (idle, verdict) = judged(&session, 5);
    assert_eq!((idle.status, idle.wakes_at), (Status::Idle, Some(at)));
    assert!(idle.because.to_string().ends_with("wakes at 22:43"), "{}", idle.because);
    assert_eq!(idle.short_reason.words(Moment::of(START)), "wakes at 22:43");
    assert_eq!(verdict.limit_at, Some(at + WAKES_WITHIN), "then it is judged again");
    let (late, verdict) = judged(&session, 31);
    assert!(late.because.to_string().ends_with("should have woken at 22:43"), "{}", late.because);
    assert_eq!((late.wakes_at, verdict.limit_at), (Some(at), None));
    session.observed.owner = owner(Some(START + Span::minutes(1)));
    assert_eq!(judged(&session, 5).0.wakes_at, None, "a process that was started later knows nothing of it");
    session.observed.owner = Owner::Gone { pid: 7, at: None };
    assert_eq!(judged(&session, 5).0.wakes_at, None, "nothing wakes it");
}

#[test]
fn case_769_a_limit_is_told_until_it_is_over_and_then_is_news_again() {
    let until = START + Span::minutes(30);
    let failed = |kind: &'static [u8], limit: Option<Limit>| {
        let error = Body::Error { kind: Some(Text(kind)), message: None, status: Some(429) };
        let events = [(Body::prompt(), None), (error, limit)]
            .map(|(body, limit)| Event { besides: Besides { limit, ..Besides::NONE }, ..Event::of(b"x", START, body) });
        let mut session = Session::default();
        session.observed.owner = Owner::Alive { pid: 7, started: None };
        events.iter().for_each(|event| session.observed.facts.fold(event, Moment::of(START), &Limits::default()));
        session
    };
    let at = |minutes: i64| Moment::of(START + Span::minutes(minutes));
    let mut session = failed(b"rate_limit", Some(Limit::Until(until)));
    session.seen = Some(START + Span::minutes(1));
    let (row, verdict) = session.row(at(5), &Limits::default());
    assert_eq!((row.status, row.limit_until, row.since), (Status::Failed, Some(until), START));
    assert!(row.because.to_string().ends_with("; usage limit until 22:43") && row.is_seen, "{}", row.because);
    assert_eq!(verdict.limit_at, Some(until));
    let (row, _) = session.row(at(31), &Limits::default());
    assert_eq!((row.status, row.limit_until, row.since, row.is_seen), (Status::Failed, Some(until), until, false));
    assert!(row.because.to_string().ends_with("its usage limit ended at 22:43"), "{}", row.because);
    for (kind, limit) in [
        (&b"authentication"[..], Some(Limit::Until(until))),
        (b"rate_limit", Some(Limit::Free)),
        (b"rate_limit", None),
        (b"rate_limit", Some(Limit::Until(Time(253_402_300_799_000)))),
        (b"rate_limit", Some(Limit::Until(Time(i64::MAX)))),
    ] {
        let (row, _) = failed(kind, limit).row(at(5), &Limits::default());
        assert_eq!((row.status, row.limit_until), (Status::Failed, None), "{limit:?}");
    }
}
