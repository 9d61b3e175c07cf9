//! When notifications are raised, grouped, withdrawn and withheld. Cases that need a desktop are in `tests/desktop`.

mod bounds;
mod focus;
mod hours;
mod on_change;
mod quiet;
mod reminders;
mod requests;
mod stage;
mod words;

use super::story::Story;
use pilotlight_core::action::Action;
use pilotlight_core::alert::{About, Button, Cause, Kinds, Settings};
use pilotlight_core::time::Span;
use pilotlight_core::verdict::Status;
use stage::Stage;

/// Settings with every cause on: `done` is off by default.
fn with_done() -> Settings {
    Settings { kinds: Kinds { done: true, ..Kinds::default() }, ..Settings::default() }
}

#[test]
fn case_2_stuck_is_notified_once() {
    let mut stage = Stage::new();
    stage.follows("a", &Story::prompted()).at(119);
    assert_eq!(stage.notified(), []);
    stage.at(600);
    assert_eq!(stage.notified(), [(121_000, Cause::Stuck)]);
    assert_eq!(stage.popup("a").unwrap().title, "project is stuck");
}

#[test]
fn case_23_an_error_right_after_an_answer_is_notified_as_a_failure() {
    for answered in [true, false] {
        let story = Story::prompted();
        let story = if answered { story.answer(100.0, "Done.") } else { story };
        let mut stage = Stage::with(with_done());
        stage.follows("a", &story.round_end(100.1).error(100.106)).at(600);
        assert_eq!(stage.notified(), [(101_106, Cause::Failed)], "answered: {answered}");
    }
}

#[test]
fn case_29_lost_permissions_are_notified_once_and_case_32_another_denial_adds_nothing() {
    let story = Story::prompted().denied(1, "t1").denied(2, "t2").denied(3, "t3").denied(4, "t4").denied(500, "t5");
    let mut stage = Stage::new();
    stage.follows("a", &story).at(599);
    assert_eq!(stage.notified(), [(4_000, Cause::PermissionLost)]);
    assert_eq!((stage.open.len(), stage.replaced), (1, 0));
}

#[test]
fn case_44_nothing_is_notified_before_the_cli_gives_up() {
    // A rate limit: 90 s of silent retries, then the error.
    let mut stage = Stage::new();
    stage.follows("a", &Story::prompted().error(90)).at(89.9);
    assert_eq!(stage.notified(), []);
    stage.at(600);
    assert_eq!(stage.notified(), [(91_000, Cause::Failed)]);
}

#[test]
fn case_47_the_third_stuck_in_a_row_advises_a_new_session() {
    let advises = |stage: &Stage| stage.raised.last().unwrap().1.body.contains("start a new session");
    let story = Story::prompted().signs(1000, 1000, 1).signs(2000, 2000, 1).signs(3000, 3000, 1);
    let mut stage = Stage::new();
    stage.follows("a", &story);
    for (until, count, advice) in [(200, 1, false), (1200, 2, false), (2200, 3, true), (3200, 4, true)] {
        stage.at(until);
        assert_eq!((stage.notified().len(), advises(&stage)), (count, advice), "at {until}: {:#?}", stage.raised);
        stage.closes("a", true);
    }
    assert!(stage.raised[2].1.body.ends_with("Stuck 3 times in a row: start a new session"));
}

#[test]
fn case_47_a_completed_turn_resets_the_count_of_stuck_turns() {
    let story = Story::prompted()
        .sign(1000)
        .sign(2000)
        .answers(2500, "Done.")
        .prompt(2600)
        .round(2600)
        .sign(3600)
        .abort(4500)
        .prompt(4600)
        .round(4600);
    let mut stage = Stage::with(Settings { escalate_after: None, ..Settings::default() });
    stage.follows("a", &story);
    for (until, count, words) in
        [(2400, 3, "3 times in a row"), (3500, 4, ""), (4400, 5, ""), (5000, 6, "3 times in a row")]
    {
        stage.at(until);
        let body = &stage.raised.last().unwrap().1.body;
        assert_eq!(
            (stage.notified().len(), body.contains("new session")),
            (count, !words.is_empty()),
            "at {until}: {body}"
        );
        assert!(body.contains(words), "{body}");
    }
}

/// UP, permissions.
#[test]
fn case_92_a_request_answered_elsewhere_closes_its_popup() {
    let story = Story::prompted().tool(1, "t1", "bash").permission(1, "r1", "t1");
    let story = story.permission_done(30, "r1", "t1", "approved").done(31, "t1");
    let mut stage = Stage::new();
    stage.follows("a", &story).at(29);
    assert_eq!(stage.notified(), [(4_000, Cause::NeedsPermission)]);
    assert_eq!(stage.open.len(), 1);
    stage.at(30);
    assert_eq!(stage.open.len(), 0, "at once");
}

#[test]
fn case_94_a_sub_agents_request_is_notified_and_its_end_is_not() {
    let story = Story::prompted()
        .tool(1, "t1", "task")
        .sub_agent_started(1, "agent", "t1", "background")
        .done(2, "t1")
        .answers(90, "It works on.")
        .by("agent")
        .permission(100, "r1", "t9")
        .by("agent")
        .permission_done(200, "r1", "t9", "approved")
        .sub_agent_done(300, "agent", "t1");
    let mut stage = Stage::with(with_done());
    stage.follows("a", &story).at(299);
    assert_eq!(stage.notified(), [(103_000, Cause::NeedsPermission)]);
    assert_eq!(stage.open.len(), 0);
    stage.at(400);
    // Now everything is idle: the end of the turn is notified once.
    assert_eq!(stage.notified()[1..], [(301_000, Cause::Done)]);
}

/// The session becomes idle again when a sub-agent ends, but its turn was already notified as done.
#[test]
fn a_sub_agents_end_is_not_the_end_of_a_turn() {
    let mut stage = Stage::with(with_done());
    stage.is("a", Status::Working).at(100).completes("a", Span::minutes(2)).at(200);
    assert_eq!(stage.notified(), [(101_000, Cause::Done)]);
    stage.closes("a", true);
    stage.is("a", Status::Working).at(1000).is("a", Status::Idle).at(3000);
    assert_eq!(stage.notified().len(), 1);
}

/// IR.
#[test]
fn case_97_five_sessions_done_within_a_second_are_one_summary() {
    let mut stage = Stage::with(with_done());
    let ids = ["a", "b", "c", "d", "e"];
    stage.are(&ids, Status::Working).at(100);
    for (at, id) in (0..).zip(ids) {
        stage.at(100.0 + f64::from(at) * 0.2).completes(id, Span::minutes(2));
    }
    stage.at(200);
    assert_eq!(stage.notified(), [(101_000, Cause::Done)]);
    let popup = &stage.raised[0].1;
    assert_eq!((&*popup.title, popup.about.keys().len()), ("5 agent sessions are done", 5));
}

#[test]
fn two_together_are_two_popups_and_neither_waits_longer_than_the_window() {
    let mut stage = Stage::new();
    stage.are(&["a", "b"], Status::Working).at(10).is("a", Status::Failed).at(10.9).is("b", Status::Crashed).at(20);
    assert_eq!(stage.notified(), [(11_000, Cause::Failed), (11_000, Cause::Crashed)]);
}

/// As lost permissions, whether the popup was due before its end or not.
#[test]
fn case_128_a_run_that_ends_denied_is_notified_once() {
    let denied = |at: [f64; 3]| at.iter().fold(Story::prompted(), |story, at| story.denied(*at, &at.to_string()));
    for (story, at) in [
        (denied([1.0, 2.0, 3.0]).answers(20, "I may not.").shutdown(21), 4000),
        (denied([1.0, 1.1, 1.2]).answers(1.3, "I may not.").shutdown(1.4), 2200),
    ] {
        let mut stage = Stage::new();
        stage.follows("a", &story).at(7200);
        assert_eq!(stage.notified(), [(at, Cause::PermissionLost)]);
        assert_eq!(stage.popup("a").unwrap().title, "project lost its permissions", "it stays until it is seen");
        stage.follows("a", &story.seen(7200)).at(7300);
        assert_eq!((stage.popup("a"), stage.notified().len()), (None, 1));
    }
}

#[test]
fn a_summary_names_only_sessions_that_still_wait_and_closes_with_the_last() {
    let mut stage = Stage::new();
    let four = ["a", "b", "c", "d"];
    stage.are(&four, Status::Working).at(10).are(&four, Status::Failed).at(20);
    let body = "Failed: a · Session a\nFailed: b · Session b\nFailed: c · Session c\nFailed: d · Session d";
    let first = stage.popup("a").unwrap();
    assert_eq!(
        (&*first.title, &*first.body, &first.buttons[..]),
        ("4 agent sessions need you", body, &[Button::Details][..])
    );
    stage.is("b", Status::Working).is("d", Status::Working);
    let summary = stage.popup("a").unwrap();
    assert_eq!((summary.id, &*summary.title, summary.sound), (first.id, "2 agent sessions need you", false));
    assert_eq!(summary.body, "Failed: a · Session a\nFailed: c · Session c");
    stage.is("c", Status::Crashed).at(30);
    assert_eq!(stage.popup("a").unwrap().title, "1 agent session needs you");
    assert_eq!(stage.popup("c").unwrap().title, "c crashed", "there is room for it now");
    stage.disappears("a");
    assert_eq!((stage.open.len(), stage.replaced), (1, 3));
}

/// Whether the sessions need the user one after the other, or at once.
#[test]
fn at_most_three_popups_are_shown_and_a_summary_has_the_rest() {
    let mut stage = Stage::new();
    let ids = ["a", "b", "c", "d", "e", "f"];
    for (n, id) in (0..).zip(ids) {
        stage.at(10 * n).is(id, Status::NeedsInput);
    }
    stage.at(100);
    assert_eq!(stage.open.len(), 4);
    let summary = stage.popup("f").unwrap();
    assert_eq!(summary.about.keys().iter().map(|key| &*key.id).collect::<Vec<_>>(), ["d", "e", "f"]);
    assert!(ids[..3].iter().all(|id| matches!(stage.popup(id).unwrap().about, About::One(_))));
    stage.closes("a", true);
    stage.at(110).is("g", Status::Failed).at(120);
    assert_eq!(stage.popup("g").unwrap().title, "g failed", "a free slot is used");
    // No session moves from its popup into the summary, or out of the summary.
    assert_eq!(stage.popup("f").unwrap().id, summary.id);
    stage.at(130).are(&["h", "i", "j", "k"], Status::Failed).at(140);
    assert_eq!((stage.open.len(), stage.popup("k").unwrap().about.keys().len()), (4, 7));
}

/// superset.
#[test]
fn case_98_a_permission_given_within_two_seconds_is_not_notified() {
    let mut stage = Stage::new();
    stage.is("a", Status::Working).at(10).asks("a", 1, None).at(11.9).is("a", Status::Working).at(100);
    assert_eq!(stage.notified(), []);
    stage.asks("a", 2, None).at(102);
    assert_eq!(stage.notified(), []);
    stage.at(200);
    assert_eq!(stage.notified(), [(103_000, Cause::NeedsPermission)]);
}

/// copilot-cli.
#[test]
fn case_99_the_same_cause_is_not_notified_twice_in_five_minutes() {
    for status in [Status::NeedsInput, Status::Failed, Status::Crashed, Status::PermissionLost] {
        let mut stage = Stage::new();
        stage.is("a", Status::Working).at(10).is("a", status).at(20);
        stage.is("a", Status::Working).at(30).is("a", status).at(310.9);
        assert_eq!(stage.notified().len(), 1, "{status}");
        assert_eq!(stage.open.len(), 0, "{status}: the first one is over");
        stage.at(400);
        assert_eq!(stage.notified().len(), 2, "{status}: a cause that still holds is notified");
    }
}

/// A second failure, with nothing read in between: the popup that the user dismissed was for the first one.
#[test]
fn case_99_a_new_occurrence_is_notified_after_the_cooldown() {
    for (status, times) in [(Status::Failed, 2), (Status::NeedsInput, 2), (Status::Crashed, 1), (Status::Stuck, 1)] {
        let mut stage = Stage::new();
        stage.is("a", status).at(10);
        stage.closes("a", true);
        stage.at(20).is("a", status).at(300);
        assert_eq!(stage.notified().len(), 1, "{status}");
        stage.at(400);
        assert_eq!(stage.notified().len(), times, "{status}");
    }
}

#[test]
fn another_cause_of_the_same_session_is_notified_at_once() {
    let mut stage = Stage::new();
    stage.is("a", Status::Stuck).at(10).is("a", Status::Crashed).at(20);
    assert_eq!(stage.notified(), [(1_000, Cause::Stuck), (11_000, Cause::Crashed)]);
    assert_eq!(stage.open.len(), 1);
}

/// clawd.
#[test]
fn case_100_stuck_working_stuck_in_a_minute_is_notified_once() {
    let mut stage = Stage::new();
    stage.is("a", Status::Working).at(10).is("a", Status::Stuck).at(30).is("a", Status::Working).at(50);
    stage.is("a", Status::Stuck).at(70);
    assert_eq!(stage.notified(), [(11_000, Cause::Stuck)]);
}

/// IR.
#[test]
fn case_102_done_is_left_to_a_cli_that_notifies_by_itself() {
    let mut stage = Stage::with(with_done());
    stage.is("a", Status::Working).change("a", |actor| actor.cli_notifies = true);
    stage.at(100).completes("a", Span::minutes(2)).at(200);
    assert_eq!(stage.notified(), []);
    stage.is("a", Status::Failed).at(300);
    assert_eq!(stage.notified(), [(201_000, Cause::Failed)], "other causes are not left to it");
}

#[test]
fn done_is_notified_only_if_on_and_for_long_turns() {
    let mut stage = Stage::new();
    stage.is("a", Status::Working).at(100).completes("a", Span::minutes(2)).at(200);
    assert_eq!(stage.notified(), [], "off by default");
    let mut stage = Stage::with(with_done());
    stage.is("a", Status::Working).at(10).completes("a", Span(59_999)).at(200).is("a", Status::Working);
    stage.at(300).completes("a", Span::minutes(1)).at(400);
    assert_eq!(stage.notified(), [(301_000, Cause::Done)]);
    assert_eq!(stage.popup("a").unwrap().title, "a is done");
    stage.change("a", |actor| actor.row.unseen = false);
    assert_eq!(stage.open.len(), 0, "the user has looked");
    stage.is("a", Status::Working).at(1000);
    // Idle without a newly completed turn, as after a stop by the user.
    stage.is("a", Status::Idle).at(1100);
    assert_eq!(stage.notified().len(), 1);
}

#[test]
fn what_was_seen_is_not_notified_and_seeing_closes_a_popup() {
    for status in [Status::Failed, Status::Crashed, Status::PermissionLost] {
        let mut stage = Stage::new();
        stage.is("a", Status::Working).at(10).is("a", status).change("a", |actor| actor.row.is_seen = true).at(20);
        assert_eq!(stage.notified(), [], "{status}");
        stage.is("a", Status::Working).is("a", status).at(30).change("a", |actor| actor.row.is_seen = true);
        assert_eq!((stage.notified().len(), stage.open.len()), (1, 0), "{status}");
    }
    let mut stage = Stage::new();
    stage.asks("a", 1, Some("ls")).at(30).change("a", |actor| actor.row.is_seen = true);
    assert_eq!(stage.open.len(), 1, "seeing a request does not answer it");
}

#[test]
fn case_107b_another_request_gets_a_popup_of_its_own() {
    let mut stage = Stage::new();
    stage.asks("a", 1, Some("rm -rf build")).at(10);
    let first = stage.popup("a").unwrap();
    assert_eq!(
        first.buttons,
        [Button::Act(Action::Approve), Button::Act(Action::Deny), Button::Act(Action::ShowTerminal), Button::Mute]
    );
    stage.asks("a", 2, Some("git push --force"));
    assert_eq!(stage.open.len(), 0, "the old one closes at once");
    assert_eq!(stage.alerts.closed(first.id, true), None, "a click on it has no effect");
    stage.at(20);
    let second = stage.popup("a").unwrap();
    assert_ne!(first.id, second.id);
    assert_eq!(second.asked.as_ref().map(|asked| (asked.request, &*asked.text)), Some((2, "git push --force")));
    assert_eq!(stage.notified(), [(3_000, Cause::NeedsPermission), (13_000, Cause::NeedsPermission)]);
    assert_eq!((first.sound, second.sound), (true, false), "the second makes no sound");
    stage.is("a", Status::Working);
    assert_eq!(stage.open.len(), 0, "an answer closes it");
}

#[test]
fn the_same_request_is_not_notified_twice() {
    let mut stage = Stage::new();
    stage.asks("a", 1, None).at(10).is("a", Status::Working).at(11).asks("a", 1, None).at(100);
    assert_eq!(stage.notified().len(), 1);
}

/// A request's text may arrive late, and the connection may be lost again. A click on Approve after that reports it.
#[test]
fn a_popup_that_can_offer_approve_only_later_is_raised_again_once() {
    let mut stage = Stage::new();
    stage.asks("a", 1, None).at(10);
    let first = stage.popup("a").unwrap();
    assert_eq!(first.buttons, [Button::Act(Action::ShowTerminal), Button::Mute]);
    for at in 11..20 {
        let reachable = at % 2 == 1;
        stage.at(at).change("a", |actor| actor.request = Some((1, Some("make".into()), reachable)));
        let popup = stage.popup("a").unwrap();
        assert_eq!((popup.asked.is_some(), popup.buttons[0], popup.sound), (true, Button::Act(Action::Approve), false));
        assert_ne!(popup.id, first.id, "never replaced in place");
    }
    assert_eq!((stage.raised.len(), stage.open.len(), stage.replaced), (2, 1, 0));
}

#[test]
fn a_cause_that_still_holds_is_notified_once_more() {
    let mut stage = Stage::new();
    stage.is("a", Status::NeedsInput).at(3600);
    assert_eq!(stage.notified(), [(1_000, Cause::NeedsInput), (601_000, Cause::NeedsInput)]);
    assert_eq!(stage.raised[1].1.title, "a still waits for your answer");
    assert_eq!(stage.open.len(), 1);
}

#[test]
fn a_reminder_makes_a_sound_however_soon() {
    let mut stage = Stage::with(Settings { escalate_after: Some(Span::seconds(30)), ..Settings::default() });
    stage.is("a", Status::NeedsInput).at(100);
    assert_eq!(
        stage.raised.iter().map(|(at, popup)| (*at, popup.sound)).collect::<Vec<_>>(),
        [(1_000, true), (31_000, true)]
    );
}

#[test]
fn a_popup_closed_by_the_user_has_no_reminder_and_one_that_expired_has() {
    for (by_user, times) in [(true, 1), (false, 2)] {
        let mut stage = Stage::new();
        stage.is("a", Status::NeedsInput).at(10);
        stage.closes("a", by_user);
        stage.at(3600);
        assert_eq!(stage.notified().len(), times, "by the user: {by_user}");
    }
    let mut stage = Stage::with(Settings { escalate_after: None, ..Settings::default() });
    stage.is("a", Status::NeedsInput).at(10);
    stage.closes("a", false);
    stage.at(3600);
    assert_eq!(stage.notified().len(), 1, "no reminder if they are off");
}

/// It has no reminder, because the menu shows all of it.
#[test]
fn a_summary_is_notified_once() {
    let mut stage = Stage::new();
    stage.are(&["a", "b", "c", "d"], Status::NeedsInput).at(300).is("b", Status::Working).at(3600);
    assert_eq!((stage.notified().len(), stage.open.len()), (1, 1));
    assert!(stage.popup("a").unwrap().cause.awaits_answer());
    stage.closes("a", false);
    stage.at(9000);
    assert_eq!((stage.notified().len(), stage.open.len()), (1, 0));
}

#[test]
fn a_kind_that_is_off_is_not_notified() {
    let kinds = Kinds { stuck: false, ..Kinds::default() };
    let mut stage = Stage::with(Settings { kinds, ..Settings::default() });
    stage.is("a", Status::Stuck).is("b", Status::Failed).at(30);
    assert_eq!(stage.notified(), [(1_000, Cause::Failed)]);
    stage.alerts.settings.kinds.failed = false;
    stage.update();
    assert_eq!(stage.open.len(), 0, "switching a kind off closes its popup");
    stage.alerts.settings.kinds = Kinds::default();
    stage.at(700);
    assert_eq!(stage.notified().len(), 1, "nothing is notified late");
}

/// Given: a turn that a usage limit refused, which failed anew when the limit was over, as its row says. -> Notified when it fails,
/// and once more when it may go on; not if it went on by itself.
#[test]
fn case_769_a_limit_that_is_over_is_notified_once_more() {
    let settings = Settings { escalate_after: None, ..Settings::default() };
    let mut stage = Stage::with(settings.clone());
    stage.is("a", Status::Failed).at(1800);
    assert_eq!(stage.notified(), [(1_000, Cause::Failed)]);
    stage.closes("a", true);
    let over = stage.moment().wall;
    stage.change("a", |actor| actor.row.since = over).at(7200);
    assert_eq!(stage.notified(), [(1_000, Cause::Failed), (1_801_000, Cause::Failed)]);
    let mut stage = Stage::with(settings);
    stage.is("a", Status::Failed).at(60);
    stage.is("a", Status::Working).at(7200);
    assert_eq!(stage.notified(), [(1_000, Cause::Failed)]);
}
