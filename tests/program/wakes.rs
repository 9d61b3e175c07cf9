//! Sessions that sleep until a schedule prompts them.

use crate::support::synthetic::User;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

/// Without a tray, over a host, and in words.
#[test]
fn case_765_a_session_says_when_its_schedule_wakes_it() {
    let user = User::new();
    let (sleeps, late, far) = (user.session(1), user.session(2), user.session(3));
    let _owners = [&sleeps, &late, &far].map(|session| session.owner(&user));
    let in_minutes = |minutes: i64| (Timestamp::now() + SignedDuration::from_mins(minutes)).as_millisecond();
    let at = in_minutes(90);
    for (session, at) in [(&sleeps, at), (&late, in_minutes(-5)), (&far, 253_402_300_799_000)] {
        session.prompt();
        session.log_event("session.schedule_created", &format!(r#"{{"id":1,"at":{at},"prompt":"go on"}}"#));
        session.answer();
    }
    let row = user.row(&sleeps).unwrap();
    let wakes: Timestamp = row["wakes_at"].as_str().unwrap().parse().unwrap();
    assert_eq!((row["status"].as_str(), wakes.as_millisecond()), (Some("idle"), at));
    assert!(row["because"].as_str().unwrap().contains("wakes at "), "{row}");
    let row = user.row(&late).unwrap();
    assert!(row["status"] == "idle" && row["because"].as_str().unwrap().contains("should have woken at "), "{row}");
    assert_eq!(user.row(&far).unwrap()["wakes_at"], Value::Null);
    let page = String::from_utf8(user.run(&["explain", &sleeps.id]).stdout).unwrap();
    assert!(page.contains("wakes at "), "{page}");
    // Once it fires, the session works, and then knows of no more.
    let watch = user.watch();
    watch.wait_row(&sleeps, "asleep", |row| row["wakes_at"] != Value::Null);
    sleeps.log_event("user.message", r#"{"content":"go on","source":"schedule-1"}"#);
    watch.wait_row(&sleeps, "working", |row| row["status"] == "working" && row["wakes_at"] == Value::Null);
    sleeps.answer();
    watch.wait_row(&sleeps, "idle", |row| row["status"] == "idle" && row["wakes_at"] == Value::Null);
}
