//! `[notifications]`.

use proptest::prelude::*;

use super::*;
use pilotlight_core::alert::{Detail, Kinds, Settings};

#[test]
fn notifications_are_read() {
    let config = right(
        r#"
        [notifications]
        stuck = false
        done = true
        done-min = "5m"
        sound = false
        cooldown = 60
        escalate = "0s"
        quiet-hours = "22:00-7:30"
        detail = "title"
        permission-delay = "500ms"
        focus-delay = "5s"
        after-start = "1s"
        after-sleep = "2s"
        "#,
    );
    let rules = Settings {
        kinds: Kinds { stuck: false, done: true, ..Kinds::default() },
        done_min: Span::minutes(5),
        sound: false,
        cooldown: Span::minutes(1),
        escalate_after: None,
        quiet_hours: Some((22 * 60, 7 * 60 + 30)),
        detail: Detail::Title,
        permission_delay: Span(500),
        focus_delay: Some(Span::seconds(5)),
        start_grace: Span::seconds(1),
        wake_grace: Span::seconds(2),
        ..Settings::default()
    };
    assert_eq!(config.notifications, Notifications { enabled: true, rules });
    assert!(!right("notifications.enabled = false").notifications.enabled);
    assert_eq!(right("notifications.escalate = 0").notifications.rules.escalate_after, None);
    assert_eq!(right("notifications.focus-delay = \"0s\"").notifications.rules.focus_delay, None);
    assert_eq!(right("notifications.quiet-hours = \"\"").notifications, Notifications::default());
}

#[test]
fn wrong_values_are_reported() {
    for (text, what) in [
        ("quiet-hours = \"22-7\"", "\"22-7\" has another form"),
        ("quiet-hours = \"24:00-07:00\"", "has another form"),
        ("quiet-hours = \"22:60-07:00\"", "has another form"),
        ("quiet-hours = \"7:5-8:00\"", "has another form"),
        ("quiet-hours = \"22: 00-07:00\"", "has another form"),
        ("quiet-hours = \"+2:00-07:00\"", "has another form"),
        ("quiet-hours = \"07:00-7:00\"", "ends when it begins"),
        ("quiet-hours = 22", "this is of type integer"),
        ("detail = \"Full\"", "\"Full\" is not one of them"),
        ("escalate = \"soon\"", "\"soon\" is not a number with a unit"),
        ("cooldown = 0", "this is not positive"),
        ("done = \"yes\"", "this is of type string"),
    ] {
        let problems = wrong(&format!("[notifications]\n{text}"));
        assert!(problems.len() == 1 && problems[0].contains(what), "{problems:?}");
    }
}

/// Any `[notifications]` that a file could set.
pub(super) fn any_notifications() -> impl Strategy<Value = Notifications> {
    let span = || (1i64..=36_500 * 86_400_000).prop_map(Span);
    let hours = prop::option::of((0u16..1440, 0u16..1440).prop_filter("some time", |(from, to)| from != to));
    let detail = prop_oneof![Just(Detail::Full), Just(Detail::Title), Just(Detail::None)];
    let spans = (span(), span(), span(), prop::option::of(span()));
    (any::<[bool; 3]>(), spans, hours, detail).prop_map(|([enabled, failed, done], spans, quiet_hours, detail)| {
        let (done_min, cooldown, wake_grace, escalate_after) = spans;
        let kinds = Kinds { failed, done, ..Kinds::default() };
        let rules = Settings {
            kinds,
            done_min,
            cooldown,
            wake_grace,
            escalate_after,
            quiet_hours,
            detail,
            ..Settings::default()
        };
        Notifications { enabled, rules }
    })
}
