//! Popups about a session that the user looks at.

use super::stage::Stage;
use pilotlight_core::alert::{About, Cause, FOCUS_TIMEOUT, Kinds, Pause, Settings, Trigger, Triggers};
use pilotlight_core::time::Span;
use pilotlight_core::verdict::Status;

/// A stage with a session in a terminal, of which the desktop says this.
fn stage(has_focus: Option<bool>) -> Stage {
    let mut stage = Stage::new();
    stage.is("a", Status::Working).in_terminal("a", has_focus);
    stage
}

#[test]
fn case_331_a_popup_waits_while_the_terminal_has_the_focus_and_is_dropped_if_that_is_answered() {
    for (answered, notified) in [(12.9, vec![]), (13.1, vec![(13_000, Cause::NeedsPermission)])] {
        let mut stage = stage(Some(true));
        stage.asks("a", 1, Some("make")).at(answered);
        stage.is("a", Status::Working).at(3600);
        assert_eq!(stage.notified(), notified, "answered after {answered} s");
        assert_eq!(stage.queries, [(2_000, "a".to_owned())], "asked once, when it is due");
    }
}

#[test]
fn case_331_a_cause_that_changes_is_asked_about_anew() {
    let mut stage = stage(Some(true));
    stage.asks("a", 1, None).at(5).is("a", Status::Failed).at(15);
    assert_eq!(stage.notified(), []);
    stage.in_terminal("a", Some(false)).asks("a", 2, None).at(100);
    assert_eq!(stage.notified(), [(18_000, Cause::NeedsPermission)], "the user looks elsewhere by then");
    assert_eq!(stage.queries.iter().map(|(at, _)| *at).collect::<Vec<_>>(), [2_000, 5_000, 17_000]);
}

#[test]
fn case_332_a_popup_comes_at_once_where_the_focus_is_elsewhere_or_nobody_can_tell() {
    for has_focus in [Some(false), None] {
        let mut stage = stage(has_focus);
        stage.is("a", Status::Failed).at(30);
        assert_eq!(stage.notified(), [(1_000, Cause::Failed)], "{has_focus:?}: as without a question");
        assert_eq!(stage.queries.len(), 1);
    }
    let mut stage = Stage::new();
    stage.is("a", Status::Working).is("a", Status::Crashed).at(30);
    assert_eq!((stage.notified(), stage.queries.len()), (vec![(1_000, Cause::Crashed)], 0), "it has no terminal");
}

/// An answer that comes too late delays nothing that is shown.
#[test]
fn case_332_a_late_answer_changes_nothing() {
    let mut stage = stage(None);
    stage.is("a", Status::Failed).at(FOCUS_TIMEOUT);
    let key = stage.alerts.open().next().unwrap().about.keys()[0].clone();
    stage.alerts.focus(&key, true);
    stage.at(3600);
    assert_eq!(stage.notified(), [(1_000, Cause::Failed), (601_000 + FOCUS_TIMEOUT.0, Cause::Failed)]);
}

#[test]
fn case_333_a_held_popup_is_not_lost() {
    // Others that need the user go on without it, and join it no later than its time.
    let mut stage = stage(Some(true));
    stage.is("a", Status::Failed).at(3).is("b", Status::Failed).at(100);
    assert_eq!(stage.notified(), [(4_000, Cause::Failed), (11_000, Cause::Failed)]);
    // Settings that change.
    for (focus_delay, at) in [(Some(Span::seconds(20)), 21_000), (Some(Span::seconds(10)), 11_000), (None, 5_000)] {
        let mut stage = self::stage(Some(true));
        stage.is("a", Status::Failed).at(5);
        stage.alerts.settings = Settings { focus_delay, cooldown: Span::minutes(1), ..Settings::default() };
        stage.update();
        stage.at(60);
        assert_eq!(stage.notified(), [(at, Cause::Failed)], "{focus_delay:?}");
    }
    // A sleep.
    let mut stage = self::stage(Some(true));
    stage.is("a", Status::Failed).at(5).wakes().at(200);
    assert_eq!(stage.notified(), [(66_000, Cause::Failed)], "after the grace period of the sleep");
    // What silences any popup silences it, too; a session that is gone needs nobody.
    let mut stage = self::stage(Some(true));
    stage.is("a", Status::Failed).at(5);
    stage.alerts.quiet.pause(Pause::UntilResumed);
    stage.at(100);
    let mut gone = self::stage(Some(true));
    gone.is("a", Status::Failed).at(5).disappears("a").at(100);
    assert_eq!((stage.notified(), gone.notified()), (vec![], vec![]));
}

/// Each has its answer at once: together they are one summary, after the time that they were held for.
#[test]
fn case_333_many_that_were_held_are_one_summary() {
    let mut stage = Stage::new();
    let ids = ["a", "b", "c", "d"];
    stage.are(&ids, Status::Working);
    for id in ids {
        stage.in_terminal(id, Some(true));
    }
    stage.are(&ids, Status::Failed).at(100);
    assert_eq!((stage.notified(), stage.queries.len()), (vec![(11_000, Cause::Failed)], 4));
    assert!(matches!(stage.raised[0].1.about, About::Summary(_)));
}

/// It is a popup of its own.
#[test]
fn case_333_a_reminder_waits_as_well() {
    let mut stage = stage(Some(false));
    stage.is("a", Status::Failed).at(100).in_terminal("a", Some(true)).at(3600);
    assert_eq!(stage.notified(), [(1_000, Cause::Failed), (612_000, Cause::Failed)]);
}

#[test]
fn case_334_without_the_setting_nothing_is_asked() {
    let mut stage = Stage::with(Settings { focus_delay: None, ..Settings::default() });
    stage.is("a", Status::Working).in_terminal("a", Some(true)).is("a", Status::Failed).at(3600);
    assert_eq!(stage.notified(), [(1_000, Cause::Failed), (601_000, Cause::Failed)]);
    assert_eq!(stage.queries, []);
}

#[test]
fn case_335_a_command_waits_like_a_popup() {
    let (mut stage, mut triggers) = (stage(Some(true)), Triggers::default());
    let wanted = [Trigger::Status(Status::NeedsInput), Trigger::Status(Status::Working)];
    triggers.configure(wanted.to_vec(), &Settings::default());
    stage.triggers = Some(triggers);
    stage.update();
    stage.is("a", Status::NeedsInput).at(5).is("a", Status::Working).at(300).is("a", Status::NeedsInput).at(400);
    let told: Vec<_> = stage.told.iter().map(|(at, _, name)| (*at, *name)).collect();
    assert_eq!(told, [(6_000, "working"), (311_000, "needs-input")]);
    assert_eq!(stage.queries.len(), 2, "one answer is enough for both");
}

#[test]
fn case_335_a_command_waits_where_there_are_no_popups_either() {
    let none = Kinds { needs_input: false, ..Kinds::default() };
    let (mut stage, mut triggers) = (Stage::with(Settings { kinds: none, ..Settings::default() }), Triggers::default());
    stage.is("a", Status::Working).in_terminal("a", Some(true));
    triggers.configure(vec![Trigger::Status(Status::NeedsInput)], &Settings::default());
    stage.triggers = Some(triggers);
    stage.update();
    stage.is("a", Status::NeedsInput).at(100);
    assert_eq!(stage.notified(), []);
    assert_eq!(stage.told, [(11_000, "a".to_owned(), "needs-input")]);
}
