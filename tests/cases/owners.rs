//! The status of a session whose owner lives, is gone, cannot be inspected, or was never known.

use super::story::{PID, START, Story};
use pilotlight_core::action::{Action, offer};
use pilotlight_core::fleet::{About, Session};
use pilotlight_core::owner::{Doubt, Owner};
use pilotlight_core::replay::OwnerStory;
use pilotlight_core::session::Observed;
use pilotlight_core::time::{Span, Time};
use pilotlight_core::verdict::Status::{
    Crashed, Ended, Failed, Finishing, Idle, NeedsInput, NeedsPermission, Quiet, Stuck, Working,
};

fn mid_tool() -> Story {
    Story::prompted().requests(1, &["bash"]).tool(1, "t1", "bash")
}

fn gone_at(story: &Story, at: i32) -> Story {
    story.clone().owned(Owner::Gone { pid: PID, at: Some(story.moment(at).wall) })
}

#[test]
fn case_3_an_owner_that_dies_mid_turn_is_crashed() {
    Story::prompted().owner_gone().is(1, Crashed);
    Story::prompted().answer(1, "Done.").ran(2, "t1").round(3).owner_gone().is(4, Crashed);
    let request = Story::prompted().tool(1, "t1", "bash").permission(2, "r1", "t1").owner_gone();
    request.is(3, Crashed);
    Story::prompted().tool(1, "t1", "ask_user").owner_gone().is(3, Crashed);
    let changes = Story::prompted().changes(OwnerStory::Dead, Span::seconds(1));
    let last = changes.last().unwrap();
    assert_eq!((last.status, last.at), (Crashed, START + Span(1)), "1 ms after the last event");
}

#[test]
fn case_13_an_open_turn_without_any_owner_is_not_working_after_601_s() {
    let story = Story::prompted().ran(1, "t1").owned(Owner::Never);
    story.is(601, Stuck).is(601.001, Ended).says(602, Ended, "no process").is(90_000, Ended);
    let waits = Story::prompted().tool(1, "t1", "bash").permission(1, "r1", "t1").owned(Owner::Never);
    waits.is(601, NeedsPermission).is(601.001, Ended);
    mid_tool().owned(Owner::Never).says(700, Ended, "bash"); // the reason keeps unfinished work
    let failed = Story::prompted().round_end(1).error(1).owned(Owner::Never);
    failed.is(601, Failed).says(700, Ended, "500"); // and a last error
    Story::prompted().answers(1, "Done.").owned(Owner::Never).is(601, Idle).is(601.001, Ended);
}

#[test]
fn case_58_a_shutdown_without_an_owner_is_ended() {
    let story = Story::prompted().answers(1, "Done.").shutdown(2);
    story.is(2, Ended).is(9000, Ended);
    story.clone().owner_gone().is(3, Ended).is(9000, Ended);
    story.clone().owned(Owner::Never).is(3, Ended);
    assert_eq!(story.verdict(9000).since, story.moment(2).wall);
    story.prompt(10).is(10, Working); // written to since
}

#[test]
fn case_60_an_unfinished_tool_and_a_dead_owner_is_crashed() {
    mid_tool().owner_gone().says(2, Crashed, "unfinished: bash");
    mid_tool().round_end(2).owner_gone().is(3, Crashed);
    mid_tool().abort(2).owner_gone().is(3, Ended);
}

#[test]
fn case_61_an_unfinished_tool_and_a_shutdown_is_ended() {
    let story = mid_tool().shutdown(3);
    story.says(3, Ended, "unfinished: bash").is(9000, Ended);
    story.owner_gone().says(4, Ended, "unfinished: bash");
    let failed = Story::prompted().round_end(1).error(1).shutdown(3);
    failed.says(3, Ended, "500");
}

/// Without open work, nothing was lost, so it is no crash.
#[test]
fn case_71_a_dead_pid_is_not_running() {
    Story::prompted().answers(1, "Done.").owner_gone().is(2, Ended);
    Story::prompted().answer(1, "Done.").owner_gone().is(2, Ended); // it was answered
    Story::prompted().answers(1, "Shall I?").owner_gone().is(2, Ended);
    Story::prompted().round_end(1).error(1).owner_gone().says(2, Ended, "500");
    Story::prompted().owner_gone().is(2, Crashed);
    let denied = Story::prompted().denied(1, "t1").denied(2, "t2").denied(3, "t3").answers(4, "No.");
    denied.owner_gone().says(5, Failed, "ended with permissions lost");
}

/// After a day, only the reason mentions the crash.
#[test]
fn case_71_a_crash_is_crashed_for_24_h_and_then_ended() {
    let day = 24 * 3600;
    let story = gone_at(&Story::prompted().sign(10), 10);
    story.turns(10 + day, Crashed, Ended).says(10 + 3 * day + 60, Ended, "crashed 3 d ago");
    let verdict = story.verdict(11);
    assert_eq!(verdict.since, story.moment(10).wall);
}

/// The day begins when the owner exits, not when the log last grew.
#[test]
fn case_71_an_owner_that_exits_after_a_day_of_silence_is_crashed() {
    let day = 24 * 3600;
    let story = gone_at(&mid_tool(), day + 3600);
    story.is(day + 3601, Crashed).is(2 * day, Crashed).is(2 * day + 3602, Ended);
}

/// If another program has the pid, the owner module reports the owner as gone.
#[test]
fn case_72_a_recycled_pid_is_not_the_owner() {
    let recycled = Owner::Gone { pid: 1, at: None };
    mid_tool().owned(recycled.clone()).is(2, Crashed);
    Story::prompted().answers(1, "Done.").owned(recycled).is(2, Ended);
}

/// Two live processes are reported as a conflict.
#[test]
fn case_73_with_two_locks_the_live_one_counts() {
    let story = mid_tool();
    let mut session = Session {
        observed: Observed { facts: story.facts(2), owner: story.owner.clone(), ..Observed::default() },
        ..Session::default()
    };
    let (row, _) = session.row(story.moment(2), &story.limits);
    assert_eq!((row.status, row.owner.unwrap().state), (Working, "alive"));
    assert!(!row.because.to_string().contains("conflict"), "{}", row.because.to_string());
    session.observed.contested = true;
    let (row, _) = session.row(story.moment(2), &story.limits);
    assert_eq!(row.status, Working);
    assert!(row.because.to_string().contains("conflict"), "{}", row.because.to_string());
}

#[test]
fn case_107g_an_owner_that_cannot_be_inspected_is_not_crashed() {
    let unknown = Owner::Unknown { pid: PID };
    let story = mid_tool().owned(unknown.clone());
    story.is(2, Working).turns(601, Working, Quiet).turns(661, Quiet, Stuck).is(90_000, Stuck);
    Story::prompted().answers(1, "Done.").owned(unknown.clone()).is(90_000, Idle);
    Story::prompted().answer(1, "Done.").owned(unknown.clone()).is(2, Finishing);
    Story::prompted().answers(1, "Shall I?").owned(unknown.clone()).is(90_000, NeedsInput);
    let session = Session { observed: Observed { owner: unknown, ..Observed::default() }, ..Session::default() };
    let (row, _) = session.row(story.moment(2), &story.limits);
    assert_eq!(row.owner.unwrap().state, "unknown");
}

/// Nothing claims it, and yet somebody may run it: it is judged by its log, and left alone.
#[test]
fn case_518_a_session_that_a_process_may_run_unclaimed_is_neither_over_nor_touched() {
    for (why, words) in [
        (Doubt::Growing, "an unknown process just wrote its log"),
        (Doubt::HadOpen, "may still have it open"),
        (Doubt::HasOpen, "has its log open"),
        (Doubt::Mute, "may have it open"),
        (Doubt::Named, "names it on its command line"),
        (Doubt::WorksThere, "works in its folder"),
    ] {
        let doubtful = Owner::Doubtful { pid: PID, why };
        mid_tool().owned(doubtful.clone()).is(2, Working).is(90_000, Stuck);
        Story::prompted().answers(1, "Done.").owned(doubtful.clone()).is(90_000, Idle);
        Story::prompted().answers(1, "Done.").shutdown(2).owned(doubtful.clone()).is(90_000, Idle);
        let story = Story::prompted().answers(1, "Done.");
        let id = "36535f61-5c7b-4f09-a70b-2f8aed970001".into();
        let observed = Observed { facts: story.facts(2), owner: doubtful, has_log: true, ..Observed::default() };
        let session = Session { id, observed, ..Session::default() };
        let (row, _) = session.row(story.moment(90_000), &story.limits);
        let because = row.because.to_string();
        assert!(because.contains("unclear who runs it: ") && because.contains(words), "{because}");
        assert_eq!((row.owner.unwrap().state, row.actions), ("unknown", vec![]));
        for action in Action::ALL {
            assert!(offer(action, &session, row.status).is_err(), "{action:?}");
        }
    }
}

fn opened() -> Owner {
    Owner::Opened { pid: PID, started: Some(START + Span::seconds(100)) }
}

/// Whatever its status was when it was closed: a terminal that was just resumed waits for its user.
#[test]
fn case_119_a_session_that_was_just_opened_is_idle() {
    let words = "opened, not prompted yet";
    for story in [
        mid_tool(),
        Story::prompted(),
        Story::prompted().answers(1, "Done.").shutdown(2),
        Story::prompted().answers(1, "Shall I?"),
        Story::prompted().round_end(1).error(1),
        mid_tool().permission(2, "r1", "t1"),
        Story::prompted().denied(1, "t1").denied(2, "t2").denied(3, "t3"),
    ] {
        let story = story.owned(opened());
        story.says(101, Idle, words).says(90_000, Idle, words);
        let verdict = story.verdict(101);
        assert_eq!((verdict.since, verdict.recheck_at), (START + Span::seconds(100), None));
    }
    mid_tool().owned(opened()).says(101, Idle, "opened, not prompted yet; unfinished: bash");
    // From its first prompt on, its lock and its log count.
    mid_tool().owned(opened()).prompt(110).owned(Owner::Alive { pid: PID, started: None }).is(111, Working);
    let mut session = Session {
        observed: Observed { facts: mid_tool().facts(2), owner: opened(), has_log: true, ..Observed::default() },
        ..Session::default()
    };
    let row = |session: &Session| session.row(Story::new().moment(101), &Story::new().limits).0;
    assert_eq!(row(&session).owner.unwrap().state, "alive");
    assert!(!row(&session).unseen, "whoever opened it sees it");
    session = Session { observed: Observed { owner: opened(), ..Observed::default() }, ..Session::default() };
    assert!(session.is_listed());
    assert_eq!(row(&session).status, Idle);
}

/// A terminal in a container clears away the locks of processes that it does not see, and its sessions work on.
#[test]
fn case_580_a_session_that_was_prompted_and_lost_its_lock_is_judged_by_its_log() {
    let lost = || Owner::Opened { pid: PID, started: Some(START - Span::seconds(5)) };
    mid_tool().owned(lost()).is(2, Working).turns(661, Quiet, Stuck);
    mid_tool().permission(2, "r1", "t1").owned(lost()).is(3, NeedsPermission);
    Story::prompted().answers(1, "Done.").owned(lost()).says(2, Idle, "done");
    mid_tool().owned(Owner::Gone { pid: PID, at: None }).is(2, Crashed);
    let session = Session {
        observed: Observed { facts: mid_tool().facts(2), owner: lost(), has_log: true, ..Observed::default() },
        ..Session::default()
    };
    let (row, _) = session.row(Story::new().moment(3), &Story::new().limits);
    assert!(!row.actions.contains(&Action::Resume), "{:?}", row.actions);
}

/// The lock names some other process, so nothing is concluded from that process.
#[test]
fn case_124_a_lock_not_held_by_its_process_is_reported_and_proves_no_crash() {
    let unheld = Owner::Unheld { pid: PID };
    mid_tool().owned(unheld.clone()).is(2, Working).turns(661, Quiet, Stuck).is(90_000, Stuck);
    Story::prompted().answers(1, "Done.").owned(unheld.clone()).is(90_000, Idle);
    let session = Session {
        observed: Observed { facts: mid_tool().facts(2), owner: unheld, has_log: true, ..Observed::default() },
        ..Session::default()
    };
    let (row, _) = session.row(Story::new().moment(3), &Story::new().limits);
    assert!(
        row.because.to_string().ends_with("; its lock names a process that does not have it open"),
        "{}",
        row.because.to_string()
    );
    assert_eq!((row.owner.unwrap().state, row.actions), ("unknown", vec![]));
}

/// Before the first prompt there is no log.
#[test]
fn a_session_without_a_log_is_listed_while_its_owner_lives() {
    let created = Some(START);
    let session = |owner| Session {
        observed: Observed { owner, about: About { created, ..About::default() }, ..Observed::default() },
        ..Session::default()
    };
    let live = session(Owner::Alive { pid: PID, started: None });
    assert!(live.is_listed());
    let (row, _) = live.row(Story::new().moment(9000), &Story::new().limits);
    assert_eq!((row.status, row.since, row.last_progress), (Idle, START, None));
    assert!(row.because.to_string().contains("no prompt yet"), "{}", row.because.to_string());
    assert!(!row.unseen, "nothing has become idle");
    assert!(session(Owner::Unknown { pid: PID }).is_listed(), "it may live");
    assert!(!session(Owner::Gone { pid: PID, at: None }).is_listed());
    assert!(!session(Owner::Gone { pid: PID, at: Some(Time(0)) }).is_listed());
    assert!(!session(Owner::Never).is_listed());
}
