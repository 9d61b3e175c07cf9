//! The sessions that the engine holds, under clocks that do not go as they should: every reading is passed in.

use super::Key;
use super::fleet::Fleet;
use crate::agent::copilot::opened::Openings;
use crate::agent::copilot::store::{Folder, LOG, Reading};
use crate::agent::copilot::tail::Look;
use crate::core::limits::Limits;
use crate::core::owner::Owner;
use crate::core::time::{Moment, Span};
use crate::core::verdict::Status;
use crate::system::clock::Clock;
use std::collections::HashSet;
use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, UNIX_EPOCH};
use tempfile::TempDir;

/// A session with a process that sleeps, held by a fleet, and both clocks.
struct Desk {
    scratch: TempDir,
    process: Child,
    fleet: Fleet,
    key: Key,
    limits: Limits,
    names: Vec<String>,
    known: HashSet<u32>,
    now: Moment,
}

impl Desk {
    /// A turn was opened just now, and nothing came since.
    fn new() -> Self {
        let (scratch, limits) = (tempfile::tempdir().unwrap(), Limits::default());
        let process = Command::new("sleep").arg("600").stdin(Stdio::null()).spawn().unwrap();
        let pid = process.id();
        let path = scratch.path().join("s");
        fs::create_dir(&path).unwrap();
        fs::write(path.join(format!("inuse.{pid}.lock")), pid.to_string()).unwrap();
        // Whatever the program is called that sleeps here passes for Copilot's.
        let program = fs::canonicalize(format!("/proc/{pid}/exe")).unwrap();
        let names = vec![program.file_name().unwrap().to_string_lossy().into_owned()];
        let key = (0, "s".into());
        let (fleet, now, known) = (Fleet::new(limits), Clock::start().now(), HashSet::new());
        let mut desk = Self { scratch, process, fleet, key, limits, names, known, now };
        desk.write("user.message", r#"{"content":"x"}"#);
        let mut folder = Folder::new(desk.scratch.path(), "s");
        folder.look(&desk.reading(), &mut Vec::new()).unwrap();
        let owner = &folder.session.owner;
        assert!(matches!(owner, Owner::Alive { .. }), "{owner:?}");
        desk.fleet.insert(desk.key.clone(), folder, desk.now);
        desk.known.insert(pid);
        desk
    }

    fn log(&self) -> PathBuf {
        self.scratch.path().join("s").join(LOG)
    }

    /// Copilot writes, by the wall clock as it is now.
    fn write(&self, kind: &str, data: &str) {
        let mut log = fs::File::options().append(true).create(true).open(self.log()).unwrap();
        writeln!(log, r#"{{"type":"{kind}","data":{data},"id":"","timestamp":"{}","parentId":null}}"#, self.now.wall)
            .unwrap();
        log.set_modified(UNIX_EPOCH + Duration::from_millis(self.now.wall.0.try_into().unwrap())).unwrap();
    }

    fn reading(&self) -> Reading<'_> {
        let look = Look { now: self.now, limits: &self.limits, until: None };
        Reading { look, owner_names: &self.names, known: &self.known, openings: Openings::NONE, all: false }
    }

    /// Both clocks go on by this, and what is due is done.
    fn on(&mut self, wall: Span, awake: Span) -> &mut Self {
        self.now = Moment { wall: self.now.wall + wall, awake: self.now.awake + awake };
        self.fleet.pass(self.now);
        self
    }

    /// Everything is looked at, as after a rescan.
    fn look(&mut self) -> &mut Self {
        let reading = Reading {
            look: Look { now: self.now, limits: &self.limits, until: None },
            owner_names: &self.names,
            known: &self.known,
            openings: Openings::NONE,
            all: false,
        };
        self.fleet.folder(&self.key).unwrap().look(&reading, &mut Vec::new()).unwrap();
        self.fleet.judge(&self.key, self.now);
        self
    }

    /// The status that stands, by itself and after a look.
    #[track_caller]
    fn is(&mut self, status: Status) -> &mut Self {
        for _ in 0..2 {
            let entry = self.fleet.get(&self.key).unwrap();
            assert_eq!(entry.verdict.status, status, "{:?}", entry.verdict);
            let wake = self.fleet.wake_at();
            assert!(wake.is_none_or(|at| at > self.now.awake), "due at once, for ever: {wake:?}");
            self.look();
        }
        self
    }
}

impl Drop for Desk {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

const HOUR: Span = Span::hours(1);

/// Case 66 (PP#402): asleep for 40 min or 8 h, the silence is what passed awake.
#[test]
fn case_66_a_sleep_is_no_silence() {
    for asleep in [Span::minutes(40), Span::hours(8), Span::hours(24 * 30)] {
        let mut desk = Desk::new();
        desk.on(Span::seconds(30), Span::seconds(30)).is(Status::Working);
        desk.on(asleep, Span(5)).is(Status::Working);
        desk.on(Span::seconds(29), Span::seconds(29)).is(Status::Working);
        desk.on(Span::seconds(1), Span::seconds(1)).is(Status::Quiet);
        desk.on(Span::seconds(60), Span::seconds(60)).is(Status::Stuck);
        // What is written on waking is of now.
        desk.write("assistant.turn_start", "{}");
        desk.look().is(Status::Working);
        desk.on(Span::seconds(59), Span::seconds(59)).is(Status::Working);
        desk.on(Span::seconds(1), Span::seconds(1)).is(Status::Quiet);
    }
}

/// Case 68 (PP#402): the wall clock is set back or forward, by a little, an hour, a day or years.
#[test]
fn case_68_a_clock_that_is_set_changes_nothing() {
    for by in [Span::seconds(1), Span::minutes(5), HOUR, Span::hours(24), Span::hours(24 * 3650)] {
        for by in [by, Span(-by.0)] {
            let mut desk = Desk::new();
            desk.on(Span::seconds(30), Span::seconds(30)).is(Status::Working);
            desk.on(by, Span(1)).is(Status::Working);
            desk.on(Span::seconds(30), Span::seconds(30)).is(Status::Quiet);
            desk.on(Span::seconds(60), Span::seconds(60)).is(Status::Stuck);
            // Written by the clock as it is now, before or behind all that stands in the log.
            desk.write("assistant.turn_start", "{}");
            desk.look().is(Status::Working);
            desk.on(Span::seconds(60), Span::seconds(60)).is(Status::Quiet);
            // And set right again.
            desk.on(Span(-by.0), Span(1)).is(Status::Quiet);
            desk.on(Span::seconds(60), Span::seconds(60)).is(Status::Stuck);
            desk.write("abort", "{}");
            desk.look().is(Status::Idle);
        }
    }
}

/// Whoever comes while the clock is wrong sees a log from the future, or one from the past; neither is silent for ever.
#[test]
fn a_log_from_the_future_grows_silent_all_the_same() {
    let mut desk = Desk::new();
    desk.now.wall = desk.now.wall + HOUR;
    desk.write("assistant.turn_start", "{}");
    desk.now = Moment { wall: desk.now.wall - HOUR, ..desk.now };
    desk.look().is(Status::Working);
    desk.on(Span::seconds(60), Span::seconds(60)).is(Status::Quiet);
    desk.on(Span::seconds(60), Span::seconds(60)).is(Status::Stuck);
    assert!(desk.fleet.wake_at().is_none_or(|at| at - desk.now.awake < Span::hours(24 * 400)));
}
