//! Helpers to measure the time between a click and its effect.

use crate::support::desktop::panel::{Entry, Panel};
use crate::support::desktop::tray::TrayProcess;
use crate::support::home::Folder;
use crate::support::{SOON, wait_until};
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The interval at which the effect is polled: the error of the measurement.
const POLL_INTERVAL: Duration = Duration::from_micros(300);

pub(crate) fn load() -> String {
    std::fs::read_to_string("/proc/loadavg").unwrap().trim().to_owned()
}

/// The id of the clickable entry with this prefix in the submenu of the session in this folder.
fn find(panel: &Panel, folder: &str, label: &str) -> Option<i32> {
    let menu = panel.layout().1;
    let ours = menu.find(&|entry| entry.enabled && !entry.entries.is_empty() && entry.shown().contains(folder))?;
    // A colon precedes the reason why an action is unavailable.
    let matches_label = |shown: &str| shown.starts_with(label) && !shown.contains(": ");
    let fits = |entry: &Entry| entry.enabled && entry.entries.is_empty() && matches_label(&entry.shown());
    ours.find(&fits).map(|entry| entry.id)
}

/// Waits until the entry can be clicked and the menu accepts clicks.
pub(crate) fn ready(panel: &Panel, tray: &TrayProcess, folder: &str, label: &str) -> i32 {
    let dump = || format!("{:#?}\n{}", panel.menu(), tray.output());
    let find = || find(panel, folder, label);
    wait_until(SOON, "it can be clicked", dump, find);
    panel.wait_menu_stable();
    wait_until(SOON, "it can be clicked", dump, find)
}

/// Waits until the entry can no longer be clicked.
pub(crate) fn over(panel: &Panel, folder: &str, label: &str) {
    let dump = || format!("{:#?}", panel.menu());
    wait_until(SOON, "it is over", dump, || find(panel, folder, label).is_none().then_some(()));
}

pub(crate) fn click(panel: &Panel, entry: i32) {
    assert!(panel.click(entry), "the entry is no longer in the menu");
}

/// Polls until the condition holds. Returns the time since `begun`.
pub(crate) fn until(begun: Instant, condition: impl Fn() -> bool) -> Duration {
    while !condition() {
        assert!(begun.elapsed() < SOON, "the click has no effect");
        std::thread::park_timeout(POLL_INTERVAL);
    }
    begun.elapsed()
}

pub(crate) fn print(label: &str, mut took: Vec<Duration>) {
    took.sort_unstable();
    let at = |share: usize| took[(took.len() - 1) * share / 100].as_secs_f64() * 1e3;
    println!("{label:<46} p50 {:>7.2} ms, p95 {:>7.2}, worst {:>7.2}, of {}", at(50), at(95), at(100), took.len());
}

pub(crate) fn wait(time: Duration) {
    #[expect(clippy::disallowed_methods, reason = "the wait is the measurement")]
    std::thread::sleep(time);
}

/// The part of a log that is appended from now on.
pub(crate) struct Appended {
    log: PathBuf,
    from: u64,
}

impl Appended {
    pub(crate) fn of(folder: &Folder) -> Self {
        let log = folder.log();
        let from = length(&log);
        Self { log, from }
    }

    /// Whether it has an event of this type.
    pub(crate) fn has(&self, kind: &str) -> bool {
        if length(&self.log) == self.from {
            return false;
        }
        let (mut file, mut text) = (std::fs::File::open(&self.log).unwrap(), String::new());
        file.seek(SeekFrom::Start(self.from)).unwrap();
        file.read_to_string(&mut text).unwrap();
        text.contains(&format!("\"type\":\"{kind}\""))
    }
}

fn length(log: &Path) -> u64 {
    std::fs::metadata(log).unwrap().len()
}
