//! What the parts measure with: a click, its effect, and the time between.

use crate::support::desktop::light::Light;
use crate::support::desktop::panel::{Entry, Panel};
use crate::support::home::Folder;
use crate::support::{SOON, wait_until};
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How often the effect is looked for: the error of what is measured.
const LOOKS_EVERY: Duration = Duration::from_micros(300);

pub(crate) fn load() -> String {
    std::fs::read_to_string("/proc/loadavg").unwrap().trim().to_owned()
}

/// What can be clicked in the menu of the session in this folder, by how its words begin.
fn find(panel: &Panel, folder: &str, label: &str) -> Option<i32> {
    let menu = panel.layout().1;
    let ours = menu.find(&|entry| entry.enabled && !entry.entries.is_empty() && entry.shown().contains(folder))?;
    // Behind a colon stands why it cannot be done.
    let says = |shown: &str| shown.starts_with(label) && !shown.contains(": ");
    let fits = |entry: &Entry| entry.enabled && entry.entries.is_empty() && says(&entry.shown());
    ours.find(&fits).map(|entry| entry.id)
}

/// Waits until that can be clicked, and the menu has been at rest for long enough.
pub(crate) fn ready(panel: &Panel, light: &Light, folder: &str, label: &str) -> i32 {
    let dump = || format!("{:#?}\n{}", panel.menu(), light.said());
    let find = || find(panel, folder, label);
    wait_until(SOON, "it can be clicked", dump, find);
    panel.rest();
    wait_until(SOON, "it can be clicked", dump, find)
}

/// Waits until it cannot be clicked any more.
pub(crate) fn over(panel: &Panel, folder: &str, label: &str) {
    let dump = || format!("{:#?}", panel.menu());
    wait_until(SOON, "it is over", dump, || find(panel, folder, label).is_none().then_some(()));
}

pub(crate) fn click(panel: &Panel, entry: i32) {
    assert!(panel.click(entry), "the menu does not know the entry any more");
}

/// Looks until it is so.
pub(crate) fn until(begun: Instant, so: impl Fn() -> bool) -> Duration {
    while !so() {
        assert!(begun.elapsed() < SOON, "the click has no effect");
        std::thread::park_timeout(LOOKS_EVERY);
    }
    begun.elapsed()
}

pub(crate) fn print(what: &str, mut took: Vec<Duration>) {
    took.sort_unstable();
    let at = |share: usize| took[(took.len() - 1) * share / 100].as_secs_f64() * 1e3;
    println!("{what:<46} p50 {:>7.2} ms, p95 {:>7.2}, worst {:>7.2}, of {}", at(50), at(95), at(100), took.len());
}

/// The wait is the measurement.
pub(crate) fn wait(time: Duration) {
    #[expect(clippy::disallowed_methods, reason = "the wait is the measurement")]
    std::thread::sleep(time);
}

/// What is written into a log from now on.
pub(crate) struct Grown {
    log: PathBuf,
    from: u64,
}

impl Grown {
    pub(crate) fn of(folder: &Folder) -> Self {
        let log = folder.log();
        let from = length(&log);
        Self { log, from }
    }

    /// Whether an event of this type is among it.
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
