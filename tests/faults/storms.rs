//! More file events than can be handled one by one.

use crate::desk::bus::Bus;
use crate::desk::panel::Panel;
use crate::desk::sessions::Sessions;
use crate::desk::tray::User;
use crate::support::synthetic::{self, Watch};
use crate::support::{SOON, wait_until};
use rustix::process::Signal;
use std::fs;
use std::time::{Duration, Instant};

/// Batches per second written to each log.
const RATE: u32 = 200;

/// Twenty sessions that write 200 batches a second each: nothing is lost, and the panel is not flooded.
#[test]
#[ignore = "tests/long.sh"]
fn a_storm_of_batches_loses_nothing_and_does_not_flood_the_panel() {
    const LASTS: u32 = 3;
    let (bus, sessions) = (Bus::start(), Sessions::new());
    let (user, panel) = (User::new(&sessions), Panel::start(&bus));
    let made: Vec<_> = (1..=20).map(|n| sessions.add(&format!("session number {n}"))).collect();
    let tray = user.start_tray(&bus);
    panel.wait_for_icon();
    let watch = Watch::start(user.command(None, &["watch", "--json"]));
    for session in &made {
        session.prompt();
        user.wait_status(&panel, session, "working");
    }
    panel.wait_idle();
    let (signals, ticks, start) = (panel.all_signals(), tray.ticks(), Instant::now());
    for batch in 0..RATE * LASTS {
        for session in &made {
            // Two tools in turn, so the reason changes with every batch.
            match batch % 4 {
                0 => session.tool("a", "view", "x"),
                1 => session.tool_done("a"),
                2 => session.tool("b", "grep", "x"),
                _ => session.tool_done("b"),
            }
        }
        let due = start + Duration::from_secs(1) * (batch + 1) / RATE;
        #[expect(clippy::disallowed_methods, reason = "the test needs a constant rate")]
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
    }
    let took = start.elapsed();
    for (n, session) in made.iter().enumerate() {
        session.tool("last", &format!("tool{n}"), "x");
    }
    let dump = || format!("{:#?}\n{:#?}", watch.latest(), panel.menu());
    for (n, session) in made.iter().enumerate() {
        let last = format!("running tool{n}");
        wait_until(SOON, &format!("all show {last:?}"), dump, || {
            let reported = watch.latest().get(&session.id)?["because"].as_str()?.to_owned();
            let shown = panel.layout().1.find(&|entry| entry.shown().contains(&last)).is_some();
            (reported == last && shown).then_some(())
        });
    }
    panel.wait_idle();
    let (signals, ticks) = (panel.all_signals() - signals, tray.ticks() - ticks);
    println!(
        "{} batches in {took:.1?}: {signals} signals to the panel, {} ms of CPU in the tray",
        RATE * LASTS * 20,
        ticks * 10
    );
    // Many changes are sent in one update, and the menu's layout does not change.
    assert!(signals * 40 < (RATE * LASTS * 20) as usize, "{signals} signals in {took:?}");
    // Nothing was counted twice or broken: a new reader finds one chain.
    for session in &made {
        let row = user.row(session).unwrap();
        assert_eq!(row["status"], "working", "{row}");
        assert!(!row["because"].as_str().unwrap().contains("conflict"), "{row}");
    }
}

/// The maximum number of file events that the system queues.
fn queue_length() -> u32 {
    fs::read_to_string("/proc/sys/fs/inotify/max_queued_events").unwrap().trim().parse().unwrap()
}

/// The event queue overflows while the program is stopped. All changes are still found, and recreated folders are
/// followed.
#[test]
fn lost_events_lose_no_changes() {
    let user = synthetic::User::new();
    let sessions: Vec<_> = (0..6).map(|n| user.session(n)).collect();
    let owners: Vec<_> = sessions.iter().map(|session| session.owner(&user)).collect();
    let watch = user.watch();
    for session in &sessions {
        session.prompt();
        watch.wait_status(session, "working");
    }
    watch.freeze();
    // Two files in turn: the system merges identical consecutive events.
    for n in 0..queue_length() {
        sessions[(n % 2) as usize].append("\n");
    }
    // The events of all this are lost.
    for session in &sessions[..4] {
        session.answer();
    }
    fs::remove_dir_all(&sessions[4].path).unwrap();
    fs::remove_dir_all(&sessions[5].path).unwrap();
    let again = user.session(5);
    again.lock(owners[5].pid());
    again.prompt();
    let new = user.session(6);
    let _of_new = new.owner(&user);
    watch.signal(Signal::CONT);
    for session in &sessions[..4] {
        watch.wait_status(session, "idle");
    }
    watch.wait_row(&sessions[4], "removed", |row| row["removed"] == true);
    watch.wait_status(&again, "working");
    watch.wait_status(&new, "idle");
    // They are watched: the rescan alone would be too late.
    for session in [&again, &new] {
        session.prompt();
        session.answer();
        session.prompt();
        session.asks_permission("r");
        watch.wait_status(session, "needs-permission");
    }
}

/// A panel receives at most ten menus a second, however busy the sessions are: each costs two programs the work of
/// laying it out, comparing and drawing it.
#[test]
fn busy_sessions_send_a_panel_at_most_ten_menus_a_second() {
    let (bus, sessions) = (Bus::start(), Sessions::new());
    let (user, panel) = (User::new(&sessions), Panel::start(&bus));
    let made: Vec<_> = (1..=20).map(|n| sessions.add(&format!("session number {n}"))).collect();
    let _tray = user.start_tray(&bus);
    panel.wait_for_icon();
    for session in &made {
        user.wait_status(&panel, session, "idle");
    }
    panel.wait_idle();
    const SENT: [&str; 4] = ["LayoutUpdated", "ItemsPropertiesUpdated", "NewIcon", "NewToolTip"];
    let (before, start) = (SENT.map(|name| panel.signals(name)), Instant::now());
    let mut changes = 0;
    for round in 0.. {
        for session in &made {
            if round % 2 == 0 {
                session.prompt();
            } else {
                session.answer("Done.");
            }
            changes += 1;
            #[expect(clippy::disallowed_methods, reason = "the test needs a constant rate")]
            std::thread::sleep(Duration::from_millis(5));
        }
        if start.elapsed() > Duration::from_secs(4) {
            break;
        }
    }
    panel.wait_idle();
    let took = start.elapsed();
    let sent: Vec<_> = SENT.iter().zip(before).map(|(name, before)| (*name, panel.signals(name) - before)).collect();
    println!("{changes} changes in {took:.1?}: {sent:?}");
    // Plus one that was pending at the start, and one that was due at the end.
    let most = took.as_secs_f64() * 10.0 + 2.0;
    assert!(sent.iter().all(|(_, count)| (*count as f64) < most), "{sent:?} in {took:?}");
    assert!(sent[0].1 + sent[1].1 > 0, "some menus are sent: {sent:?}");
}
