//! More events than anybody could look at.

use crate::desk::bus::Bus;
use crate::desk::light::User;
use crate::desk::panel::Panel;
use crate::desk::sessions::Sessions;
use crate::support::made_up::{self, Watch};
use crate::support::{SOON, wait_until};
use rustix::process::Signal;
use std::fs;
use std::time::{Duration, Instant};

/// So many batches a second are written to each log.
const RATE: u32 = 200;

/// Twenty sessions that write 200 batches a second each: nothing is lost, and the panel is not flooded.
#[test]
fn a_storm_of_batches_loses_nothing_and_floods_nobody() {
    const LASTS: u32 = 3;
    let (bus, sessions) = (Bus::start(), Sessions::new());
    let (user, panel) = (User::new(&sessions), Panel::start(&bus));
    let made: Vec<_> = (1..=20).map(|n| sessions.add(&format!("session number {n}"))).collect();
    let light = user.light(&bus);
    panel.wait_for_icon();
    let watch = Watch::start(user.command(None, &["watch", "--json"]));
    for session in &made {
        session.prompt();
        user.agrees(&panel, session, "working");
    }
    panel.settle();
    let (signals, ticks, begun) = (panel.all_signals(), light.ticks(), Instant::now());
    for batch in 0..RATE * LASTS {
        for session in &made {
            // Of two tools in turn, so that the reason changes with every batch.
            match batch % 4 {
                0 => session.tool("a", "view", "x"),
                1 => session.tool_done("a"),
                2 => session.tool("b", "grep", "x"),
                _ => session.tool_done("b"),
            }
        }
        let due = begun + Duration::from_secs(1) * (batch + 1) / RATE;
        #[expect(clippy::disallowed_methods, reason = "what is measured is a rate")]
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
    }
    let took = begun.elapsed();
    for (n, session) in made.iter().enumerate() {
        session.tool("last", &format!("tool{n}"), "x");
    }
    let dump = || format!("{:#?}\n{:#?}", watch.latest(), panel.menu());
    for (n, session) in made.iter().enumerate() {
        let last = format!("tool{n} is open");
        wait_until(SOON, &format!("all say {last:?}"), dump, || {
            let told = watch.latest().get(&session.id)?["because"].as_str()?.to_owned();
            let shown = panel.layout().1.find(&|entry| entry.shown().contains(&last)).is_some();
            (told == last && shown).then_some(())
        });
    }
    panel.settle();
    let (signals, ticks) = (panel.all_signals() - signals, light.ticks() - ticks);
    println!(
        "{} batches in {took:.1?}: {signals} signals to the panel, {} ms of CPU in the light",
        RATE * LASTS * 20,
        ticks * 10
    );
    // Many changes go in one update, and the shape of the menu rests.
    assert!(signals * 40 < (RATE * LASTS * 20) as usize, "{signals} signals in {took:?}");
    // Nothing was counted twice, nothing was broken: what a reader that comes now finds is one chain.
    for session in &made {
        let row = user.row(session).unwrap();
        assert_eq!(row["status"], "working", "{row}");
        assert!(!row["because"].as_str().unwrap().contains("conflict"), "{row}");
    }
}

/// How many file events the system keeps for a program that does not read them.
fn queue() -> u32 {
    fs::read_to_string("/proc/sys/fs/inotify/max_queued_events").unwrap().trim().parse().unwrap()
}

/// More file events come than the system keeps, while we are stopped: what changed is found all the same, and what was
/// made anew meanwhile is followed on.
#[test]
fn events_that_are_lost_cost_nothing_but_a_look() {
    let user = made_up::User::new();
    let sessions: Vec<_> = (0..6).map(|n| user.session(n)).collect();
    let owners: Vec<_> = sessions.iter().map(|session| session.owner(&user)).collect();
    let watch = user.watch();
    for session in &sessions {
        session.prompt();
        watch.told(session, "working");
    }
    watch.freeze();
    // Two files in turn: the same event twice in a row is kept once.
    for n in 0..queue() {
        sessions[(n % 2) as usize].append("\n");
    }
    // None of this is told any more.
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
        watch.told(session, "idle");
    }
    watch.until(&sessions[4], "removed", |row| row["removed"] == true);
    watch.told(&again, "working");
    watch.told(&new, "idle");
    // Followed, and not by the rescan alone, which would be too late for this.
    for session in [&again, &new] {
        session.prompt();
        session.answer();
        session.prompt();
        session
            .say("permission.requested", r#"{"requestId":"r","permissionRequest":{"kind":"shell","toolCallId":"c"}}"#);
        watch.told(session, "needs-permission");
    }
}

/// However busy the sessions are, ten menus a second are the most that a panel has to draw: each of them is laid out, compared and
/// drawn by two programs.
#[test]
fn busy_sessions_send_a_panel_ten_menus_a_second_at_most() {
    let (bus, sessions) = (Bus::start(), Sessions::new());
    let (user, panel) = (User::new(&sessions), Panel::start(&bus));
    let made: Vec<_> = (1..=20).map(|n| sessions.add(&format!("session number {n}"))).collect();
    let _light = user.light(&bus);
    panel.wait_for_icon();
    for session in &made {
        user.agrees(&panel, session, "idle");
    }
    panel.settle();
    const SENT: [&str; 4] = ["LayoutUpdated", "ItemsPropertiesUpdated", "NewIcon", "NewToolTip"];
    let (before, begun) = (SENT.map(|name| panel.signals(name)), Instant::now());
    let mut changes = 0;
    for round in 0.. {
        for session in &made {
            if round % 2 == 0 {
                session.prompt();
            } else {
                session.answer("Done.");
            }
            changes += 1;
            #[expect(clippy::disallowed_methods, reason = "what is measured is a rate")]
            std::thread::sleep(Duration::from_millis(5));
        }
        if begun.elapsed() > Duration::from_secs(4) {
            break;
        }
    }
    panel.settle();
    let took = begun.elapsed();
    let sent: Vec<_> = SENT.iter().zip(before).map(|(name, before)| (*name, panel.signals(name) - before)).collect();
    println!("{changes} changes in {took:.1?}: {sent:?}");
    // The one that was on its way, and the one that is due as we stop.
    let most = took.as_secs_f64() * 10.0 + 2.0;
    assert!(sent.iter().all(|(_, count)| (*count as f64) < most), "{sent:?} in {took:?}");
    assert!(sent[0].1 + sent[1].1 > 0, "menus are sent all the same: {sent:?}");
}
