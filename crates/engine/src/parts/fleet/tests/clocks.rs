//! Tests of held sessions under misbehaving clocks: every reading of a clock is passed in.

use super::super::Fleet;
use pilotlight_agents::copilot::store::{LOG, SESSIONS};
use pilotlight_agents::home::Home;
use pilotlight_agents::openings::OpenSessions;
use pilotlight_agents::reading::Reading;
use pilotlight_agents::tail::ReadContext;
use pilotlight_core::agent::Agent;
use pilotlight_core::limits::Limits;
use pilotlight_core::owner::Owner;
use pilotlight_core::session::{HomeId, Key, Session};
use pilotlight_core::time::{Moment, Span};
use pilotlight_core::verdict::Status;
use pilotlight_system::clock::Clock;
use std::collections::HashSet;
use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, UNIX_EPOCH};
use tempfile::TempDir;

/// A session with a sleeping process, held by a fleet, and both clocks.
struct Fixture {
    scratch: TempDir,
    process: Child,
    fleet: Fleet,
    key: Key,
    limits: Limits,
    names: Vec<String>,
    known: HashSet<u32>,
    now: Moment,
}

impl Fixture {
    /// A session whose turn was just opened.
    fn new() -> Self {
        let (scratch, limits) = (tempfile::tempdir().unwrap(), Limits::default());
        let process = Command::new("sleep").arg("600").stdin(Stdio::null()).spawn().unwrap();
        let pid = process.id();
        let path = scratch.path().join(SESSIONS).join("s");
        fs::create_dir_all(&path).unwrap();
        fs::write(path.join(format!("inuse.{pid}.lock")), pid.to_string()).unwrap();
        // Whatever the sleeping program is called passes for Copilot.
        let program = fs::canonicalize(format!("/proc/{pid}/exe")).unwrap();
        let names = vec![program.file_name().unwrap().to_string_lossy().into_owned()];
        let key = Key::new(HomeId::default(), "s");
        let (fleet, now, known) = (Fleet::new(limits), Clock::start().now(), HashSet::new());
        let mut fixture = Self { scratch, process, fleet, key, limits, names, known, now };
        fixture.write("user.message", r#"{"content":"x"}"#);
        let (mut reader, mut session) =
            (Home::at(fixture.scratch.path()).reader("s"), Session::new(Agent::default(), "s"));
        reader.refresh(&fixture.reading(), &mut session.observed, &mut Vec::new()).unwrap();
        let owner = &session.observed.owner;
        assert!(matches!(owner, Owner::Alive { .. }), "{owner:?}");
        fixture.fleet.insert(fixture.key.clone(), reader, session, fixture.now);
        fixture.known.insert(pid);
        fixture
    }

    fn log(&self) -> PathBuf {
        self.scratch.path().join(SESSIONS).join("s").join(LOG)
    }

    /// Appends an event to the log, dated by the current wall clock.
    fn write(&self, kind: &str, data: &str) {
        let mut log = fs::File::options().append(true).create(true).open(self.log()).unwrap();
        writeln!(log, r#"{{"type":"{kind}","data":{data},"id":"","timestamp":"{}","parentId":null}}"#, self.now.wall)
            .unwrap();
        log.set_modified(UNIX_EPOCH + Duration::from_millis(self.now.wall.0.try_into().unwrap())).unwrap();
    }

    fn reading(&self) -> Reading<'_> {
        let context = ReadContext { now: self.now, limits: &self.limits, until: None };
        Reading { context, owner_names: &self.names, known: &self.known, openings: OpenSessions::NONE, all: false }
    }

    /// Advances both clocks and does what is due.
    fn advance(&mut self, wall: Span, awake: Span) -> &mut Self {
        self.now = Moment { wall: self.now.wall + wall, awake: self.now.awake + awake };
        self.fleet.advance(self.now);
        self
    }

    /// Reads the session again, as a rescan does.
    fn read_again(&mut self) -> &mut Self {
        let reading = Reading {
            context: ReadContext { now: self.now, limits: &self.limits, until: None },
            owner_names: &self.names,
            known: &self.known,
            openings: OpenSessions::NONE,
            all: false,
        };
        let entry = self.fleet.entry(&self.key).unwrap();
        entry.reader.refresh(&reading, &mut entry.session.observed, &mut Vec::new()).unwrap();
        self.fleet.judge(&self.key, self.now);
        self
    }

    /// Asserts the status, before and after the session is read again.
    #[track_caller]
    fn is(&mut self, status: Status) -> &mut Self {
        for _ in 0..2 {
            let entry = self.fleet.get(&self.key).unwrap();
            assert_eq!(entry.verdict.status, status, "{:?}", entry.verdict);
            let wake = self.fleet.wake_at();
            assert!(wake.is_none_or(|at| at > self.now.awake), "due at once, for ever: {wake:?}");
            self.read_again();
        }
        self
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

const HOUR: Span = Span::hours(1);

/// Case 66: the machine sleeps for 40 min or 8 h. Only time awake counts as silence.
#[test]
fn case_66_sleep_does_not_count_as_silence() {
    for asleep in [Span::minutes(40), Span::hours(8), Span::hours(24 * 30)] {
        let mut fixture = Fixture::new();
        fixture.advance(Span::seconds(30), Span::seconds(30)).is(Status::Working);
        fixture.advance(asleep, Span(5)).is(Status::Working);
        fixture.advance(Span::seconds(29), Span::seconds(29)).is(Status::Working);
        fixture.advance(Span::seconds(1), Span::seconds(1)).is(Status::Quiet);
        fixture.advance(Span::seconds(60), Span::seconds(60)).is(Status::Stuck);
        // An event that is written on waking is current.
        fixture.write("assistant.turn_start", "{}");
        fixture.read_again().is(Status::Working);
        fixture.advance(Span::seconds(59), Span::seconds(59)).is(Status::Working);
        fixture.advance(Span::seconds(1), Span::seconds(1)).is(Status::Quiet);
    }
}

/// Case 68: the wall clock is set back or forward, by a little, an hour, a day or years.
#[test]
fn case_68_setting_the_clock_changes_nothing() {
    for by in [Span::seconds(1), Span::minutes(5), HOUR, Span::hours(24), Span::hours(24 * 3650)] {
        for by in [by, Span(-by.0)] {
            let mut fixture = Fixture::new();
            fixture.advance(Span::seconds(30), Span::seconds(30)).is(Status::Working);
            fixture.advance(by, Span(1)).is(Status::Working);
            fixture.advance(Span::seconds(30), Span::seconds(30)).is(Status::Quiet);
            fixture.advance(Span::seconds(60), Span::seconds(60)).is(Status::Stuck);
            // Dated by the wrong clock: before or after everything else in the log.
            fixture.write("assistant.turn_start", "{}");
            fixture.read_again().is(Status::Working);
            fixture.advance(Span::seconds(60), Span::seconds(60)).is(Status::Quiet);
            // The clock is corrected.
            fixture.advance(Span(-by.0), Span(1)).is(Status::Quiet);
            fixture.advance(Span::seconds(60), Span::seconds(60)).is(Status::Stuck);
            fixture.write("abort", "{}");
            fixture.read_again().is(Status::Idle);
        }
    }
}

/// If Pilotlight starts while the clock is wrong, the log is from the future or the past. Neither hides silence for
/// ever.
#[test]
fn a_log_from_the_future_becomes_silent_too() {
    let mut fixture = Fixture::new();
    fixture.now.wall = fixture.now.wall + HOUR;
    fixture.write("assistant.turn_start", "{}");
    fixture.now = Moment { wall: fixture.now.wall - HOUR, ..fixture.now };
    fixture.read_again().is(Status::Working);
    fixture.advance(Span::seconds(60), Span::seconds(60)).is(Status::Quiet);
    fixture.advance(Span::seconds(60), Span::seconds(60)).is(Status::Stuck);
    assert!(fixture.fleet.wake_at().is_none_or(|at| at - fixture.now.awake < Span::hours(24 * 400)));
}
