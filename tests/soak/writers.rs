//! Thirty sessions that are written in every way at once: at any speed, in half lines, cut, written over, replaced, and their
//! owners killed. `watch`, the rows of the menu and a fresh `status` say the same, and every change of a status that stood is
//! told.

use crate::support::desktop::bus::Bus;
use crate::support::desktop::light;
use crate::support::desktop::panel::{Entry, Panel};
use crate::support::made_up::{Folder, Owner, User, Watch};
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
/// For so long a status stands at least before the next: what is shorter may be told as one change. It stands until it is told;
/// that a busy machine is slow is no fault.
const STANDS: Duration = Duration::from_millis(300);
/// How often the rows are compared.
const LOOKS: Duration = Duration::from_secs(8);

#[test]
fn thirty_writers_are_told_of_without_a_change_missing() {
    storm(Duration::from_secs(120));
}

#[test]
#[ignore = "ten minutes"]
fn thirty_writers_for_ten_minutes_are_told_of_without_a_change_missing() {
    storm(Duration::from_secs(600));
}

fn wait(time: Duration) {
    #[expect(clippy::disallowed_methods, reason = "the speed of a writer is what is tried")]
    std::thread::sleep(time);
}

/// One session, and whoever writes it.
struct Writer<'a> {
    user: &'a User,
    watch: &'a Watch,
    session: &'a Folder,
    owner: Option<Owner>,
    /// A number that goes on at random.
    dice: u64,
    /// Where the log ended when the session last rested.
    rested: u64,
    works: bool,
    /// The statuses that stood, in their order.
    stood: Vec<&'static str>,
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

    /// Something that changes no status.
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
                // Another file with what this one says.
                let beside = self.session.path.join("beside");
                fs::copy(self.session.log(), &beside).unwrap();
                fs::rename(beside, self.session.log()).unwrap();
            }
            _ => {
                // Written over, as long as it was and with the same end.
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

    /// Something that changes the status.
    fn change(&mut self) {
        match (self.works, self.roll(6)) {
            (false, _) => {
                self.rested = self.length();
                self.session.prompt();
                self.stands("working");
            }
            (true, 0) => {
                // As if the prompt had never been.
                File::options().write(true).open(self.session.log()).unwrap().set_len(self.rested).unwrap();
                self.stands("idle");
            }
            (true, 1) => {
                let gone = self.owner.take().unwrap().kill();
                self.stands("crashed");
                let since = Instant::now();
                while since.elapsed() < STANDS || !self.is_told() && since.elapsed() < SOON {
                    wait(Duration::from_millis(20));
                }
                fs::remove_file(self.session.path.join(format!("inuse.{gone}.lock"))).unwrap();
                self.owner = Some(self.session.owner(self.user));
                self.session.prompt();
                self.stands("working");
            }
            (true, _) => {
                self.session.answer();
                self.stands("idle");
            }
        }
    }

    fn stands(&mut self, status: &'static str) {
        self.works = status != "idle";
        self.stood.push(status);
    }

    fn is_told(&self) -> bool {
        self.watch.status(self.session).as_deref() == self.stood.last().copied()
    }

    fn write(mut self, gate: &RwLock<()>, done: &AtomicBool) -> (Vec<&'static str>, Option<Owner>) {
        while !done.load(Ordering::Relaxed) {
            let open = gate.read().unwrap();
            self.change();
            drop(open);
            let since = Instant::now();
            while since.elapsed() < STANDS || !self.is_told() && since.elapsed() < SOON {
                let open = gate.read().unwrap();
                self.noise();
                drop(open);
                let pause = [5, 50, 250][self.roll(3) as usize];
                wait(Duration::from_millis(pause));
            }
        }
        (self.stood, self.owner)
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
    let (bus, desktop) = (Bus::start(), light::User::of(user.home()));
    let panel = Panel::start(&bus);
    let light = desktop.light(&bus);
    panel.wait_for_icon();
    for session in &sessions {
        watch.told(session, "idle");
    }
    let (gate, done) = (RwLock::new(()), AtomicBool::new(false));
    let (mut looks, begun) = (0, Instant::now());
    let ended: Vec<_> = std::thread::scope(|scope| {
        let writers: Vec<_> = sessions
            .iter()
            .zip(owners)
            .zip(1..)
            .map(|((session, owner), n)| {
                let dice = 0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(n);
                let (user, watch, owner, stood) = (&user, &watch, Some(owner), vec!["idle"]);
                let writer = Writer { user, watch, session, owner, dice, rested: 0, works: false, stood };
                let (gate, done) = (&gate, &done);
                scope.spawn(move || writer.write(gate, done))
            })
            .collect();
        while begun.elapsed() < lasts {
            wait(LOOKS);
            let closed = gate.write().unwrap();
            agree(&user, &watch, &panel);
            drop(closed);
            looks += 1;
        }
        done.store(true, Ordering::Relaxed);
        writers.into_iter().map(|writer| writer.join().unwrap()).collect()
    });
    agree(&user, &watch, &panel);
    let lines = watch.lines();
    let mut changes = 0;
    for (session, (stood, _)) in sessions.iter().zip(&ended) {
        let mut told: Vec<_> =
            lines.iter().filter(|row| row["id"] == session.id).map(|row| row["status"].as_str().unwrap()).collect();
        told.dedup();
        let mut rest = told.iter();
        let missing: Vec<_> =
            stood.iter().enumerate().filter(|(_, status)| !rest.any(|told| told == *status)).collect();
        assert!(missing.is_empty(), "{}: missing {missing:?}\nstood {stood:?}\ntold {told:?}", session.id);
        changes += stood.len();
    }
    println!("{WRITERS} writers for {:.0?}: {changes} changes told, {looks} looks agree", begun.elapsed());
    assert_eq!(watch.end(Signal::TERM), Some(0));
    drop(light);
}

/// `watch`, the menu and a `status` of now say the same of every session, but for what is not told by itself.
#[track_caller]
fn agree(user: &User, watch: &Watch, panel: &Panel) {
    let by_id = |rows: Vec<Value>| -> BTreeMap<String, Value> {
        let untold = |mut row: Value| {
            row.as_object_mut().unwrap().remove("last_progress");
            (row["id"].as_str().unwrap().to_owned(), row)
        };
        rows.into_iter().map(untold).collect()
    };
    let look = || (by_id(user.rows(&[])), by_id(watch.latest().into_values().collect()), panel.layout().1);
    let shown = |menu: &Entry, row: &Value| menu.find(&|entry: &Entry| entry.says(row)).is_some();
    let dump = || {
        let (now, told, menu) = look();
        let differ = now.iter().filter(|(id, row)| told.get(*id) != Some(row)).map(|(id, row)| (row, told.get(id)));
        let differ: Vec<_> = differ.collect();
        let unshown: Vec<_> = now.values().filter(|row| !shown(&menu, row)).collect();
        format!("watch says otherwise: {differ:#?}\nthe menu does not say: {unshown:#?}\n{menu:#?}")
    };
    support::wait_until(SOON, "all three say the same", dump, || {
        let (now, told, menu) = look();
        (now == told && now.len() == WRITERS as usize && now.values().all(|row| shown(&menu, row))).then_some(())
    });
}
