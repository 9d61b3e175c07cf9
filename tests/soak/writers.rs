//! Thirty sessions that are written in every way at once: at any speed, in half lines, truncated, overwritten,
//! replaced, and with killed owners. `watch`, the menu and a fresh `status` agree, and every change to a lasting status
//! is reported.

use crate::support::desktop::bus::Bus;
use crate::support::desktop::panel::{Entry, Panel};
use crate::support::desktop::tray;
use crate::support::synthetic::{Folder, Owner, User, Watch};
use crate::support::{self, SOON};
use rustix::process::Signal;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::sync::RwLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const WRITERS: u32 = 30;
/// The minimum time between two changes: shorter ones may be reported as one change. A status also lasts until it is
/// reported, so that a slow machine causes no failure.
const LASTS: Duration = Duration::from_millis(300);
/// The interval between two comparisons of the rows.
const COMPARE_EVERY: Duration = Duration::from_secs(8);

#[test]
fn all_changes_of_thirty_writers_are_reported() {
    storm(Duration::from_secs(120));
}

#[test]
#[ignore = "ten minutes"]
fn all_changes_of_thirty_writers_are_reported_for_ten_minutes() {
    storm(Duration::from_secs(600));
}

fn wait(time: Duration) {
    #[expect(clippy::disallowed_methods, reason = "the writer's speed is part of the test")]
    std::thread::sleep(time);
}

/// The writer of one session.
struct Writer<'a> {
    user: &'a User,
    watch: &'a Watch,
    session: &'a Folder,
    owner: Option<Owner>,
    /// The state of the random generator.
    dice: u64,
    /// The log's length before the last prompt.
    idle_length: u64,
    works: bool,
    /// The statuses that it had, in order.
    statuses: Vec<&'static str>,
}

impl Writer<'_> {
    fn roll(&mut self, sides: u64) -> u64 {
        self.dice ^= self.dice << 13;
        self.dice ^= self.dice >> 7;
        self.dice ^= self.dice << 17;
        self.dice % sides
    }

    fn length(&self) -> u64 {
        fs::metadata(self.session.log()).unwrap().len()
    }

    /// A write that does not change the status.
    fn noise(&mut self) {
        let size = if self.roll(16) == 0 { 70_000 } else { 300 };
        let line =
            self.session.line(Duration::ZERO, "session.info", &format!(r#"{{"message":"{}"}}"#, "x".repeat(size)));
        match self.roll(5) {
            0 | 1 => self.session.append(line),
            2 => {
                let (half, rest) = line.split_at(line.len() / 2);
                self.session.append(half);
                wait(Duration::from_millis(self.roll(20)));
                self.session.append(rest);
            }
            3 => {
                // The log is replaced by a copy.
                let copy = self.session.path.join("copy");
                fs::copy(self.session.log(), &copy).unwrap();
                fs::rename(copy, self.session.log()).unwrap();
            }
            _ => {
                // The log is overwritten in the middle, with the same length and the same end.
                self.session.append(&line);
                self.session.append(self.session.line(
                    Duration::ZERO,
                    "session.info",
                    r#"{"message":"the end of it"}"#,
                ));
                let text = fs::read(self.session.log()).unwrap();
                let at = text.len() - line.len();
                let file = File::options().write(true).open(self.session.log()).unwrap();
                let x = text[..at].iter().rposition(|byte| *byte == b'x').unwrap_or(0);
                if text[x] == b'x' {
                    file.write_all_at(b"y", x as u64).unwrap();
                }
            }
        }
    }

    /// A write that changes the status.
    fn change(&mut self) {
        match (self.works, self.roll(6)) {
            (false, _) => {
                self.idle_length = self.length();
                self.session.prompt();
                self.set_status("working");
            }
            (true, 0) => {
                // The prompt is removed.
                File::options().write(true).open(self.session.log()).unwrap().set_len(self.idle_length).unwrap();
                self.set_status("idle");
            }
            (true, 1) => {
                let gone = self.owner.take().unwrap().kill();
                self.set_status("crashed");
                let since = Instant::now();
                while since.elapsed() < LASTS || !self.is_reported() && since.elapsed() < SOON {
                    wait(Duration::from_millis(20));
                }
                fs::remove_file(self.session.path.join(format!("inuse.{gone}.lock"))).unwrap();
                self.owner = Some(self.session.owner(self.user));
                self.session.prompt();
                self.set_status("working");
            }
            (true, _) => {
                self.session.answer();
                self.set_status("idle");
            }
        }
    }

    /// Records a new status.
    fn set_status(&mut self, status: &'static str) {
        self.works = status != "idle";
        self.statuses.push(status);
    }

    fn is_reported(&self) -> bool {
        self.watch.status(self.session).as_deref() == self.statuses.last().copied()
    }

    fn write(mut self, gate: &RwLock<()>, done: &AtomicBool) -> (Vec<&'static str>, Option<Owner>) {
        while !done.load(Ordering::Relaxed) {
            let open = gate.read().unwrap();
            self.change();
            drop(open);
            let since = Instant::now();
            while since.elapsed() < LASTS || !self.is_reported() && since.elapsed() < SOON {
                let open = gate.read().unwrap();
                self.noise();
                drop(open);
                let pause = [5, 50, 250][self.roll(3) as usize];
                wait(Duration::from_millis(pause));
            }
        }
        (self.statuses, self.owner)
    }
}

fn storm(lasts: Duration) {
    let user = User::new();
    let sessions: Vec<_> = (1..=WRITERS).map(|n| user.session(n)).collect();
    let owners: Vec<_> = sessions.iter().map(|session| session.owner(&user)).collect();
    for session in &sessions {
        session.prompt();
        session.answer();
    }
    let watch = user.watch();
    let (bus, desktop) = (Bus::start(), tray::User::with_home(user.home()));
    let panel = Panel::start(&bus);
    let tray = desktop.start_tray(&bus);
    panel.wait_for_icon();
    for session in &sessions {
        watch.wait_status(session, "idle");
    }
    let (gate, done) = (RwLock::new(()), AtomicBool::new(false));
    let (mut comparisons, start) = (0, Instant::now());
    let ended: Vec<_> = std::thread::scope(|scope| {
        let writers: Vec<_> = sessions
            .iter()
            .zip(owners)
            .zip(1..)
            .map(|((session, owner), n)| {
                let dice = 0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(n);
                let (user, watch, owner, statuses) = (&user, &watch, Some(owner), vec!["idle"]);
                let writer = Writer { user, watch, session, owner, dice, idle_length: 0, works: false, statuses };
                let (gate, done) = (&gate, &done);
                scope.spawn(move || writer.write(gate, done))
            })
            .collect();
        while start.elapsed() < lasts {
            wait(COMPARE_EVERY);
            let closed = gate.write().unwrap();
            wait_agreement(&user, &watch, &panel);
            drop(closed);
            comparisons += 1;
        }
        done.store(true, Ordering::Relaxed);
        writers.into_iter().map(|writer| writer.join().unwrap()).collect()
    });
    wait_agreement(&user, &watch, &panel);
    let lines = watch.lines();
    let mut changes = 0;
    for (session, (statuses, _)) in sessions.iter().zip(&ended) {
        let mut reported: Vec<_> =
            lines.iter().filter(|row| row["id"] == session.id).map(|row| row["status"].as_str().unwrap()).collect();
        reported.dedup();
        let mut rest = reported.iter();
        let missing: Vec<_> =
            statuses.iter().enumerate().filter(|(_, status)| !rest.any(|reported| reported == *status)).collect();
        assert!(
            missing.is_empty(),
            "{}: missing {missing:?}\nstatuses {statuses:?}\nreported {reported:?}",
            session.id
        );
        changes += statuses.len();
    }
    println!(
        "{WRITERS} writers for {:.0?}: {changes} changes reported, {comparisons} comparisons agree",
        start.elapsed()
    );
    assert_eq!(watch.end(Signal::TERM), Some(0));
    drop(tray);
}

/// Waits until `watch`, the menu and a fresh `status` agree on every session, except for progress, which `watch` does
/// not report.
#[track_caller]
fn wait_agreement(user: &User, watch: &Watch, panel: &Panel) {
    let by_id = |rows: Vec<Value>| -> BTreeMap<String, Value> {
        let without_progress = |mut row: Value| {
            row.as_object_mut().unwrap().remove("last_progress");
            (row["id"].as_str().unwrap().to_owned(), row)
        };
        rows.into_iter().map(without_progress).collect()
    };
    let views = || (by_id(user.rows(&[])), by_id(watch.latest().into_values().collect()), panel.layout().1);
    let shown = |menu: &Entry, row: &Value| menu.find(&|entry: &Entry| entry.matches_row(row)).is_some();
    let dump = || {
        let (status, watched, menu) = views();
        let differ = status.iter().filter(|(id, row)| watched.get(*id) != Some(row));
        let differ = differ.map(|(id, row)| (row, watched.get(id)));
        let differ: Vec<_> = differ.collect();
        let unshown: Vec<_> = status.values().filter(|row| !shown(&menu, row)).collect();
        format!("watch differs: {differ:#?}\nnot in the menu: {unshown:#?}\n{menu:#?}")
    };
    support::wait_until(SOON, "all three agree", dump, || {
        let (status, watched, menu) = views();
        (status == watched && status.len() == WRITERS as usize && status.values().all(|row| shown(&menu, row)))
            .then_some(())
    });
}
