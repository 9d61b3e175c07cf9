//! Memory is released after a storm of sessions.

use crate::desk::bus::Bus;
use crate::desk::panel::Panel;
use crate::desk::sessions::Sessions;
use crate::desk::tray;
use crate::support::synthetic::User;
use crate::support::wait_until;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

/// How long the release may take.
const WITHIN: Duration = Duration::from_secs(300);
/// How much more memory than before may remain in use, in KiB.
const TOLERANCE: u64 = 3 << 10;

/// A process's memory in KiB: anonymous, resident in total, and the peak of the total. The total includes pages of the
/// program file, which grow with use; the system reclaims them when others need memory.
fn memory(pid: u32) -> [u64; 3] {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    ["RssAnon:", "VmRSS:", "VmHWM:"].map(|name| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.trim().trim_end_matches(" kB").parse().unwrap()
    })
}

/// Creates sessions with a log of 100 KB each, every other one in the middle of a turn, and removes them all.
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
            // No process has this pid, so the owner is gone.
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

/// Waits until a program's memory is back to what it was before, within the tolerance.
fn wait_released(pid: u32, before: [u64; 3]) {
    let (start, dump) = (Instant::now(), || format!("KiB before and now: {before:?}, {:?}", memory(pid)));
    wait_until(WITHIN, "memory is released", dump, || (memory(pid)[0] <= before[0] + TOLERANCE).then_some(()));
    println!("{} (anonymous, total, peak), {:.1?} after the storm", dump(), start.elapsed());
}

fn watch_after(folders: u32) {
    let (user, session, _owner, watch) = User::working(0xffff_ffff);
    let before = memory(watch.pid());
    for _ in 0..2 {
        storm(&user.sessions(), folders);
        session.answer();
        watch.wait_status(&session, "idle");
        session.prompt();
        watch.wait_status(&session, "working");
        let left = || watch.latest().into_values().filter(|row| row["removed"] != true).count();
        wait_until(WITHIN, "all removals are reported", || left().to_string(), || (left() == 1).then_some(()));
    }
    wait_released(watch.pid(), before);
}

fn tray_after(folders: u32) {
    let (bus, sessions) = (Bus::start(), Sessions::new());
    let (user, panel) = (tray::User::new(&sessions), Panel::start(&bus));
    let session = sessions.add("the one that stays");
    let tray = user.start_tray(&bus);
    panel.wait_for_icon();
    user.wait_status(&panel, &session, "idle");
    panel.wait_idle();
    let before = memory(tray.pid());
    for _ in 0..2 {
        storm(&sessions.home().join("session-state"), folders);
        session.prompt();
        user.wait_status(&panel, &session, "working");
        session.answer("Done.");
        user.wait_status(&panel, &session, "idle");
    }
    wait_released(tray.pid(), before);
}

#[test]
#[ignore = "waits for the rescan, which comes once a minute"]
fn the_memory_of_a_watch_is_released_after_a_storm() {
    watch_after(500);
}

/// Including the memory of the menu and the popups.
#[test]
#[ignore = "waits for the rescan, which comes once a minute"]
fn the_memory_of_a_tray_is_released_after_a_storm() {
    tray_after(500);
}

#[test]
#[ignore = "five thousand folders, twice"]
fn memory_is_released_within_five_minutes_of_a_storm_of_five_thousand_folders() {
    watch_after(5000);
    tray_after(5000);
}
