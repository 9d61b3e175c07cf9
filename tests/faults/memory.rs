//! What a storm took of memory comes back.

use crate::desk::bus::Bus;
use crate::desk::light;
use crate::desk::panel::Panel;
use crate::desk::sessions::Sessions;
use crate::support::made_up::User;
use crate::support::{SOON, wait_until};
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

/// When it is to be back at the latest.
const WITHIN: Duration = Duration::from_secs(300);
/// So much more than before may stay, in KiB.
const STAYS: u64 = 3 << 10;

/// What a process has in memory, in KiB: of its own, in all, and the most that it ever had. Of the program file more is read in as
/// more is done; that is the system's, and goes when somebody else needs the room.
fn memory(pid: u32) -> [u64; 3] {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    ["RssAnon:", "VmRSS:", "VmHWM:"].map(|name| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.trim().trim_end_matches(" kB").parse().unwrap()
    })
}

/// So many sessions come, every other of them in the middle of a turn, with a log of 100 KB each; and all of them go.
fn storm(sessions: &Path, folders: u32) {
    let at = jiff::Timestamp::now();
    let event = |kind: &str, data: &str| {
        format!("{{\"type\":\"{kind}\",\"data\":{data},\"id\":\"e\",\"timestamp\":\"{at:.3}\",\"parentId\":null}}\n")
    };
    let long = event("session.info", &format!("{{\"message\":\"{}\"}}", "x".repeat(100_000)));
    let prompt = event("user.message", "{\"content\":\"go on and on\"}");
    let end = event("session.shutdown", "{}");
    let made: Vec<_> = (0..folders).map(|n| sessions.join(format!("{n:08x}-0000-4000-b000-000000000000"))).collect();
    for (n, folder) in made.iter().enumerate() {
        fs::create_dir(folder).unwrap();
        fs::write(folder.join("workspace.yaml"), format!("name: {n}\ncwd: /nowhere/{n}\n")).unwrap();
        let is_open = n % 2 == 0;
        if is_open {
            // No process has such a number: whoever ran it is gone.
            fs::write(folder.join(format!("inuse.{}.lock", 2_000_000_000 + n)), "").unwrap();
        }
        fs::write(
            folder.join("events.jsonl"),
            [&prompt, &long, if is_open { &prompt } else { &end }].map(|line| &**line).concat(),
        )
        .unwrap();
    }
    for folder in made {
        fs::remove_dir_all(folder).unwrap();
    }
}

/// Waits until a program that had so much before has no more to speak of.
fn comes_back(pid: u32, before: [u64; 3]) {
    let (begun, dump) = (Instant::now(), || format!("KiB before, and now: {before:?}, {:?}", memory(pid)));
    wait_until(WITHIN, "memory comes back", dump, || (memory(pid)[0] <= before[0] + STAYS).then_some(()));
    println!("{} (own, all, at most), {:.1?} after the storm", dump(), begun.elapsed());
}

fn watch_after(folders: u32) {
    let (user, session, _owner, watch) = User::working(0xffff_ffff);
    let before = memory(watch.pid());
    for _ in 0..2 {
        storm(&user.sessions(), folders);
        session.answer();
        watch.told(&session, "idle");
        session.prompt();
        watch.told(&session, "working");
        let left = || watch.latest().into_values().filter(|row| row["removed"] != true).count();
        wait_until(WITHIN, "all that went was told", || left().to_string(), || (left() == 1).then_some(()));
    }
    comes_back(watch.pid(), before);
}

fn tray_after(folders: u32) {
    let (bus, sessions) = (Bus::start(), Sessions::new());
    let (user, panel) = (light::User::new(&sessions), Panel::start(&bus));
    let session = sessions.add("the one that stays");
    let light = user.light(&bus);
    panel.wait_for_icon();
    user.agrees(&panel, &session, "idle");
    panel.settle();
    let before = memory(light.pid());
    for _ in 0..2 {
        storm(&sessions.home().join("session-state"), folders);
        session.prompt();
        user.agrees(&panel, &session, "working");
        session.answer("Done.");
        user.agrees(&panel, &session, "idle");
    }
    comes_back(light.pid(), before);
}

/// Of the program file, what its start read.
#[test]
fn what_only_the_start_needed_is_let_go_of() {
    let (_user, session, _owner, watch) = User::working(1);
    let dump = || format!("{:?} KiB own, all, at most", memory(watch.pid()));
    wait_until(SOON, "memory is less than it was", dump, || {
        let [_, all, most] = memory(watch.pid());
        (all * 4 < most * 3).then_some(())
    });
    session.answer();
    watch.told(&session, "idle");
}

#[test]
#[ignore = "waits for the rescan, which comes once a minute"]
fn memory_of_a_watch_comes_back_after_a_storm() {
    watch_after(500);
}

/// With what the menu and the popups needed.
#[test]
#[ignore = "waits for the rescan, which comes once a minute"]
fn memory_of_a_tray_comes_back_after_a_storm() {
    tray_after(500);
}

#[test]
#[ignore = "five thousand folders, twice"]
fn memory_comes_back_within_five_minutes_of_a_storm_of_five_thousand_folders() {
    watch_after(5000);
    tray_after(5000);
}
