//! When nothing is notified: after a start or a sleep, while muted, paused or in quiet hours, whatever the clocks do.

use super::super::story::{START, Story};
use super::stage::Stage;
use pilotlight_core::alert::{Cause, Pause, Settings};
use pilotlight_core::time::Span;
use pilotlight_core::verdict::Status;

pub(super) const TROUBLES: [Status; 6] = [
    Status::NeedsPermission,
    Status::NeedsInput,
    Status::PermissionLost,
    Status::Stuck,
    Status::Crashed,
    Status::Failed,
];

#[test]
fn case_11_old_trouble_is_not_notified_and_new_trouble_is_at_once() {
    let mut stage = Stage::starting();
    stage.is("old", Status::Failed).is("b", Status::Working).at(10).is("b", Status::Failed).at(30);
    let raised: Vec<_> = stage.raised.iter().map(|(at, popup)| (*at, popup.about.keys()[0].id.to_string())).collect();
    assert_eq!(raised, [(11_000, "b".to_owned())]);
    stage.at(3600);
    assert!(stage.raised.iter().all(|(_, popup)| *popup.about.keys()[0].id == *"b"));
}

/// After a silence that began before the start.
fn turns_stuck(actor: &mut super::stage::Actor) {
    (actor.row.status, actor.row.since) = (Status::Stuck, actor.row.since - Span::seconds(110));
}

/// A silence from before the start that reaches its limit after it.
#[test]
fn case_11_trouble_from_before_the_start_that_shows_later_waits_30_seconds() {
    let mut stage = Stage::starting();
    stage.is("b", Status::Working).at(10).change("b", turns_stuck).at(30);
    assert_eq!(stage.notified(), []);
    stage.at(40);
    assert_eq!(stage.notified(), [(31_000, Cause::Stuck)]);
}

#[test]
fn case_11_trouble_that_is_over_within_the_30_seconds_is_not_notified() {
    let mut stage = Stage::starting();
    stage.is("b", Status::Working).at(10).change("b", turns_stuck).at(29);
    stage.is("b", Status::Working).at(3600);
    assert_eq!(stage.notified(), []);
}

#[test]
fn case_17_a_restart_causes_no_storm_of_popups() {
    let mut stage = Stage::starting();
    let ids: Vec<_> = (0..40).map(|n| n.to_string()).collect();
    let (now, updates) = (stage.moment().wall, stage.updates);
    for (n, id) in ids.iter().enumerate() {
        let row = super::stage::row(id, TROUBLES[n % TROUBLES.len()], now - Span::hours(1));
        stage.actors.extend([(super::stage::key(id), actor(id, row))]);
    }
    stage.at(7200);
    assert_eq!((stage.notified(), stage.updates), (vec![], updates + 1), "nothing to wake for");
}

fn actor(id: &str, row: pilotlight_core::fleet::Row) -> super::stage::Actor {
    let mut stage = Stage::new();
    stage.is(id, Status::Working).change(id, |actor| actor.row = row);
    stage.actors.remove(&super::stage::key(id)).unwrap()
}

/// From before our start, or from long ago.
#[test]
fn case_17_a_session_found_later_causes_no_popup_for_old_trouble() {
    for (at, age, is_notified) in [(10, 12, false), (10, 5, true), (100, 31, false), (100, 29, true)] {
        let mut stage = Stage::starting();
        stage.is("other", Status::Working).at(at);
        let row = super::stage::row("a", Status::Failed, stage.moment().wall - Span::seconds(age));
        stage.actors.extend([(super::stage::key("a"), actor("a", row))]);
        stage.at(at + 1).at(200);
        assert_eq!(!stage.notified().is_empty(), is_notified, "found after {at} s, failed {age} s before");
    }
}

/// A home on a network can disappear and come back.
#[test]
fn sessions_that_reappear_cause_no_popup_for_old_trouble() {
    let mut stage = Stage::new();
    stage.are(&["a", "b", "c"], Status::Failed).at(60);
    let absent = std::mem::take(&mut stage.actors);
    stage.update();
    assert_eq!((stage.open.len(), stage.alerts.remembered()), (0, 0));
    stage.actors = absent;
    stage.at(61).at(3600);
    assert_eq!(stage.notified().len(), 3);
}

#[test]
fn case_66_a_sleep_makes_nothing_stuck() {
    for slept in [Span::minutes(40), Span::hours(8)] {
        let mut stage = Stage::new();
        stage.wall_jumps(60, slept);
        stage.follows("a", &Story::prompted().wall_jumps(60, slept)).at(60).wakes().at(119);
        assert_eq!(stage.notified(), []);
        stage.at(400);
        assert_eq!(stage.notified(), [(121_000, Cause::Stuck)], "two minutes awake");
    }
}

#[test]
fn case_66_new_trouble_after_a_sleep_waits_60_seconds() {
    let mut stage = Stage::new();
    stage.are(&["a", "b"], Status::Working).at(100).wakes().at(101).are(&["a", "b"], Status::Failed);
    stage.at(130).is("b", Status::Working).at(160.9);
    assert_eq!(stage.notified(), []);
    stage.at(400);
    assert_eq!(stage.notified(), [(161_000, Cause::Failed)]);
}

#[test]
fn case_66_a_popup_that_was_due_waits_too_and_so_does_a_reminder() {
    let mut stage = Stage::new();
    stage.is("a", Status::NeedsInput).at(590).asks("b", 1, None).at(592.5).wakes().at(652);
    assert_eq!(stage.notified(), [(1_000, Cause::NeedsInput)]);
    stage.at(700);
    assert_eq!(stage.notified()[1..], [(653_500, Cause::NeedsInput), (653_500, Cause::NeedsPermission)]);
}

#[test]
fn case_67_three_signs_of_waking_are_one_wakeup() {
    let mut stage = Stage::new();
    stage.is("a", Status::Working).at(100).is("a", Status::Failed).wakes();
    let wake = stage.alerts.wake_at();
    stage.at(100.3).wakes().at(100.6).wakes();
    assert_eq!(stage.alerts.wake_at(), wake);
    let updates = stage.updates;
    stage.at(500);
    assert_eq!(stage.notified(), [(161_000, Cause::Failed)]);
    assert_eq!(stage.updates - updates, 2, "the one check, and the end of this test");
}

#[test]
fn a_second_sleep_has_its_own_grace() {
    let mut stage = Stage::new();
    stage.is("a", Status::Working).at(100).wakes().at(130).wakes().is("a", Status::Failed).at(500);
    assert_eq!(stage.notified(), [(191_000, Cause::Failed)]);
}

#[test]
fn case_68_setting_the_clock_changes_nothing() {
    for by in [Span::hours(1), Span::ZERO - Span::hours(1)] {
        let mut stage = Stage::new();
        stage.wall_jumps(60, by);
        stage.wall_jumps(400, Span::ZERO - by);
        stage.follows("a", &Story::prompted().wall_jumps(60, by).wall_jumps(400, Span::ZERO - by));
        stage.is("b", Status::NeedsInput).at(30).is("b", Status::Working).at(59).is("b", Status::NeedsInput);
        stage.at(119);
        assert_eq!(stage.notified(), [(1_000, Cause::NeedsInput)], "set by {by:?}");
        stage.at(900);
        let rest = [(121_000, Cause::Stuck), (302_000, Cause::NeedsInput)];
        assert_eq!(stage.notified()[1..3], rest, "set by {by:?}");
        // The reminder after 10 min, and nothing else.
        assert_eq!(stage.notified()[3..], [(721_000, Cause::Stuck)], "set by {by:?}");
    }
}

/// superset.
#[test]
fn case_101_a_muted_session_is_not_notified_then_or_later() {
    for folder in [false, true] {
        let mut stage = Stage::new();
        let mute = |stage: &mut Stage| {
            if folder { stage.alerts.quiet.mute_folder("/code") } else { stage.alerts.quiet.mute_session("a") }
        };
        stage.is("a", Status::Working).at(10);
        mute(&mut stage);
        stage.is("a", Status::Failed).at(100);
        assert_eq!(stage.notified(), []);
        stage.alerts.quiet.unmute_all();
        stage.at(3600);
        assert_eq!(stage.notified(), [], "not late");
        stage.is("a", Status::Working).is("a", Status::Crashed).at(3610);
        assert_eq!(stage.notified(), [(3_601_000, Cause::Crashed)], "new trouble is notified");
        mute(&mut stage);
        stage.update();
        assert_eq!(stage.open.len(), 0, "muting closes the popup");
    }
}

#[test]
fn case_101_a_mute_does_not_affect_other_sessions() {
    let mut stage = Stage::new();
    stage.alerts.quiet.mute_session("a");
    stage.alerts.quiet.mute_folder("/code/b");
    stage.are(&["a", "b", "c"], Status::Failed).at(10);
    assert_eq!(stage.raised.len(), 1);
    assert!(stage.popup("c").is_some());
}

/// superset.
#[test]
fn case_101_a_pause_ends_without_a_backlog() {
    let mut stage = Stage::new();
    stage.are(&["a", "b", "c", "d"], Status::Working).is("a", Status::Failed).at(10);
    assert_eq!(stage.open.len(), 1);
    stage.alerts.quiet.pause(Pause::Until(START + Span::hours(1)));
    stage.update();
    assert_eq!(stage.open.len(), 0, "a pause closes all popups");
    stage.at(100).are(&["b", "c", "d"], Status::NeedsInput).at(3599);
    assert!(stage.alerts.quiet.paused().is_some());
    assert_eq!(stage.alerts.wake_at(), Some(START + Span::hours(1)), "the end of the pause is a wakeup");
    stage.at(3600);
    assert_eq!(stage.alerts.quiet.paused(), None);
    stage.at(9000);
    assert_eq!(stage.notified(), [(1_000, Cause::Failed)]);
    stage.is("b", Status::Failed).at(9010);
    assert_eq!(stage.notified()[1..], [(9_001_000, Cause::Failed)]);
}

#[test]
fn case_101_a_pause_until_resumed_ends_only_by_hand() {
    let mut stage = Stage::new();
    stage.alerts.quiet.pause(Pause::UntilResumed);
    stage.is("a", Status::Failed).at(100_000);
    assert_eq!((stage.notified(), stage.alerts.wake_at()), (vec![], None));
    stage.alerts.quiet.resume();
    stage.at(200_000);
    assert_eq!(stage.notified(), []);
    stage.is("a", Status::Stuck).at(200_010);
    assert_eq!(stage.notified().len(), 1);
}

/// superset.
#[test]
fn case_101_quiet_hours_end_without_a_backlog() {
    for (from, to) in [(600, 660), (1320, 420)] {
        let mut stage = Stage::with(Settings { quiet_hours: Some((from, to)), ..Settings::default() });
        stage.minute = from - 1;
        stage.are(&["a", "b", "c"], Status::Working).is("a", Status::Failed).at(10);
        assert_eq!(stage.open.len(), 1);
        let wake = stage.alerts.wake_at().unwrap();
        assert!(wake - stage.moment().awake <= Span::minutes(1), "their beginning is a wakeup");
        stage.minute = from;
        stage.at(70);
        assert_eq!(stage.open.len(), 0);
        stage.are(&["a", "b", "c"], Status::NeedsInput).at(1000);
        stage.minute = to - 1;
        stage.at(2000);
        stage.minute = to;
        stage.at(3000);
        assert_eq!(stage.notified(), [(1_000, Cause::Failed)]);
        stage.is("b", Status::Failed).at(3010);
        assert_eq!(stage.notified().len(), 2, "afterwards, popups are as usual");
    }
}

#[test]
fn quiet_hours_that_begin_when_they_end_do_not_apply() {
    let mut stage = Stage::with(Settings { quiet_hours: Some((600, 600)), ..Settings::default() });
    stage.minute = 600;
    stage.is("a", Status::Failed).at(10);
    assert_eq!(stage.notified().len(), 1);
}
