//! Reminders: a popup for a cause that still holds, raised once more.

use super::super::story::Story;
use super::quiet::TROUBLES;
use super::stage::Stage;
use pilotlight_core::alert::Cause;
use pilotlight_core::verdict::Status;

#[test]
fn a_reminder_says_that_nothing_has_changed() {
    for (status, first, again) in [
        (Status::NeedsPermission, "a wants to run", "a still wants to run"),
        (Status::NeedsInput, "a waits for your answer", "a still waits for your answer"),
        (Status::PermissionLost, "a lost its permissions", "a lost its permissions and has not been reconnected"),
        (Status::Stuck, "a is stuck", "a is still stuck"),
        (Status::Crashed, "a crashed", "a crashed and has not been resumed"),
        (Status::Failed, "a failed", "a failed, and nothing has been done since"),
    ] {
        let mut stage = Stage::new();
        match status {
            Status::NeedsPermission => stage.asks("a", 1, Some("make")),
            _ => stage.is("a", status),
        };
        stage.at(3600);
        let titles: Vec<_> = stage.raised.iter().map(|(_, popup)| &*popup.title).collect();
        assert_eq!(titles, [first, again]);
    }
}

/// Its popup expired while the run still went on.
#[test]
fn case_128_a_run_that_ends_denied_has_no_reminder() {
    let denied = Story::prompted().denied(1, "t1").denied(2, "t2").denied(3, "t3");
    for (story, times) in [(denied.clone(), 2), (denied.answers(20, "I may not.").shutdown(21), 1)] {
        let mut stage = Stage::new();
        stage.follows("a", &story).at(10);
        stage.closes("a", false);
        stage.at(3600);
        assert_eq!(stage.notified(), vec![(4_000, Cause::PermissionLost), (605_000, Cause::PermissionLost)][..times]);
    }
}

/// After a sleep it waits like any other popup.
#[test]
fn the_popup_stays_open_until_its_reminder_is_raised() {
    let mut stage = Stage::new();
    stage.is("a", Status::NeedsInput).at(592.5).wakes();
    let first = stage.popup("a").unwrap();
    for at in [601.0, 652.0, 653.0] {
        stage.at(at);
        assert_eq!(stage.popup("a").as_ref(), Some(&first), "at {at} s");
    }
    stage.at(654);
    assert_eq!(stage.notified(), [(1_000, Cause::NeedsInput), (653_500, Cause::NeedsInput)]);
    assert_ne!(stage.popup("a").unwrap().id, first.id);
}

#[test]
fn case_67_signs_of_waking_five_seconds_apart_are_one_wakeup() {
    let due = |second: f64| {
        let mut stage = Stage::new();
        stage.is("a", Status::Working).at(100).wakes().at(second).wakes().is("a", Status::Failed).at(500);
        stage.notified()
    };
    assert_eq!(due(105.0), [(161_000, Cause::Failed)]);
    assert_eq!(due(105.001), [(166_001, Cause::Failed)], "the next sleep");
}

#[test]
fn a_popup_waits_for_an_answer_only_if_the_session_does() {
    for status in TROUBLES {
        let mut stage = Stage::new();
        stage.is("a", status).at(10);
        let waits = matches!(status, Status::NeedsPermission | Status::NeedsInput);
        assert_eq!(stage.popup("a").unwrap().cause.awaits_answer(), waits, "{status}");
    }
}
