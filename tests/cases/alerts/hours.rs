//! Wakeups for quiet hours.

use super::stage::Stage;
use pilotlight_core::alert::Settings;
use pilotlight_core::time::Span;

/// Past midnight, too, and never sooner.
#[test]
fn quiet_hours_wake_at_their_next_beginning_or_end() {
    let midnight = 24 * 60;
    for (from, to, minute, ahead) in [
        (600, 660, 0, 600),
        (600, 660, 599, 1),
        (600, 660, 600, 60),
        (600, 660, 659, 1),
        (600, 660, 660, midnight - 60),
        (600, 660, midnight - 1, 601),
        (1320, 420, 720, 600),
        (1320, 420, 1320, 540),
        (1320, 420, 0, 420),
        (1320, 420, 420, 900),
        (0, midnight - 1, 1, midnight - 2),
        // The clock reads both now: not before tomorrow.
        (600, 600, 600, midnight),
        (0, 0, 0, midnight),
    ] {
        let mut stage = Stage::with(Settings { quiet_hours: Some((from, to)), ..Settings::default() });
        stage.minute = minute;
        stage.update();
        let wake = stage.alerts.wake_at().unwrap() - stage.moment().awake;
        assert_eq!(wake, Span::minutes(ahead.into()), "from {from} to {to}, at {minute}");
    }
}
