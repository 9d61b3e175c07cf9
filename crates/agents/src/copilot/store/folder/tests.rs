//! Folders whose locks name live processes.

use super::owner::owner_now;
use super::*;
use crate::openings::{OpenSession, OpenSessions, Opened};
use crate::reading::GRACE;
use crate::tail::ReadContext;
use pilotlight_core::limits::Limits;
use pilotlight_core::owner::{Doubt, HoldProof};
use pilotlight_core::time::Moment;
use pilotlight_system::process::SLACK;
use pilotlight_system::process::testing::{copy, now};
use std::collections::HashSet;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// A Copilot that holds its session only on command: a copy of perl named `copilot`.
struct Copilot {
    process: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Copilot {
    fn start(scratch: &Path) -> Self {
        let program = scratch.join("copilot");
        copy("/usr/bin/perl", &program);
        let script = r#"$| = 1; print "ready\n"; chomp(my $hold = <STDIN>);
            open(F, "+<", $hold) or die; flock(F, 6) or die; print "held\n"; <STDIN>"#;
        let mut process =
            Command::new(&program).args(["-e", script]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (input, output) = (process.stdin.take().unwrap(), BufReader::new(process.stdout.take().unwrap()));
        let mut copilot = Self { process, input, output };
        copilot.expect("ready");
        copilot
    }

    fn expect(&mut self, word: &str) {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        assert_eq!(line.trim_end(), word);
    }

    fn hold(&mut self, path: &Path) {
        writeln!(self.input, "{}", path.display()).unwrap();
        self.expect("held");
    }
}

impl Drop for Copilot {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The folder of a session with a process's lock, which that process does not hold yet.
struct Locked {
    path: PathBuf,
    hold: PathBuf,
    lock: PathBuf,
}

impl Locked {
    fn by(pid: u32, scratch: &Path) -> Self {
        let path = scratch.join("home/session-state/one");
        fs::create_dir_all(&path).unwrap();
        let [hold, lock] = ["hold", "lock"].map(|kind| path.join(format!("inuse.{pid}.{kind}")));
        fs::write(&hold, "").unwrap();
        fs::write(&lock, pid.to_string()).unwrap();
        Self { path, hold, lock }
    }
}

/// A process's open files are checked at most every five seconds, and at once after a write to the session's folder.
#[test]
fn a_process_found_not_to_hold_a_session_is_rechecked_after_five_seconds() {
    for writes in [false, true] {
        let scratch = tempfile::tempdir().unwrap();
        let mut copilot = Copilot::start(scratch.path());
        let pid = copilot.process.id();
        let Locked { path, hold, .. } = Locked::by(pid, scratch.path());
        // Wait until the lock no longer counts as new.
        let made = now();
        while now() <= made + SETTLES + Span(100) {
            std::thread::park_timeout(std::time::Duration::from_millis(50));
        }
        let (limits, known) = (Limits::default(), HashSet::from([pid]));
        let (mut folder, mut observed) = (Folder::new(path.parent().unwrap(), "one"), Observed::default());
        let mut owner_at = |awake: i64| {
            let context = ReadContext {
                now: Moment { wall: now(), awake: Time(1_000_000 + awake) },
                limits: &limits,
                until: None,
            };
            let reading =
                Reading { context, owner_names: &[], known: &known, openings: OpenSessions::NONE, all: false };
            folder.refresh(&reading, &mut observed, &mut Vec::new()).unwrap();
            observed.owner.clone()
        };
        assert_eq!(owner_at(0), Owner::Unheld { pid });
        copilot.hold(&hold);
        if writes {
            fs::write(path.join("workspace.yaml"), "name: x\n").unwrap();
        } else {
            assert_eq!(owner_at(4999), Owner::Unheld { pid });
        }
        let owner = owner_at(if writes { 1 } else { 5000 });
        assert!(matches!(owner, Owner::Alive { .. }), "{owner:?}, written: {writes}");
    }
}

/// Copilot makes its lock and holds the session a moment later, without an event. Until then its process counts as the
/// owner for a while, and is rechecked.
#[test]
fn a_new_locks_process_is_rechecked() {
    let scratch = tempfile::tempdir().unwrap();
    let mut copilot = Copilot::start(scratch.path());
    let pid = copilot.process.id();
    let Locked { path, hold, lock } = Locked::by(pid, scratch.path());
    let (limits, known, made) = (Limits::default(), HashSet::from([pid]), modified(&fs::metadata(lock).unwrap()));
    let (mut folder, mut observed) = (Folder::new(path.parent().unwrap(), "one"), Observed::default());
    // The awake clock differs from the wall clock.
    let mut seen_at = |age: Span| {
        let now = Moment { wall: made + age, awake: Time(5_000_000) + age };
        let reading = Reading {
            context: ReadContext { now, limits: &limits, until: None },
            owner_names: &[],
            known: &known,
            openings: OpenSessions::NONE,
            all: false,
        };
        assert_eq!(folder.refresh(&reading, &mut observed, &mut Vec::new()).unwrap(), ReadStatus::Complete);
        let is_alive = matches!(observed.owner, Owner::Alive { pid: of, .. } if of == pid);
        let holders: &[u32] = if observed.held == HoldProof::Verified { &[pid] } else { &[] };
        assert_eq!(observed.holders, holders, "a new lock does not make its process a holder");
        let newcomers: &[u32] = if observed.held == HoldProof::Pending { &[pid] } else { &[] };
        assert_eq!(folder.newcomers(), newcomers);
        (is_alive, observed.held, folder.owner_recheck_at().map(|at| at - Time(5_000_000)))
    };
    assert_eq!(seen_at(Span(3)), (true, HoldProof::Pending, Some(GRACE)));
    assert_eq!(owner_now(path.parent().unwrap(), "one", &[], made + Span(3)), Owner::Unheld { pid }, "for actions");
    assert_eq!(seen_at(GRACE), (false, HoldProof::Unverified, Some(SLACK)));
    copilot.hold(&hold);
    assert_eq!(seen_at(SLACK), (true, HoldProof::Verified, None));
}

/// Rechecking a new lock in an unreadable folder cannot succeed, and would be repeated all the time.
#[test]
fn an_unreadable_folder_is_not_rechecked_for_its_new_lock() {
    let scratch = tempfile::tempdir().unwrap();
    let copilot = Copilot::start(scratch.path());
    let pid = copilot.process.id();
    let Locked { path, lock, .. } = Locked::by(pid, scratch.path());
    let made = modified(&fs::metadata(lock).unwrap());
    let (limits, known) = (Limits::default(), HashSet::from([pid]));
    let context =
        ReadContext { now: Moment { wall: made + Span(3), awake: Time(5_000_000) }, limits: &limits, until: None };
    let reading = Reading { context, owner_names: &[], known: &known, openings: OpenSessions::NONE, all: false };
    let (mut folder, mut observed) = (Folder::new(path.parent().unwrap(), "one"), Observed::default());
    folder.refresh(&reading, &mut observed, &mut Vec::new()).unwrap();
    assert!(folder.owner_recheck_at().is_some());
    folder.unreadable(&mut observed, io::ErrorKind::PermissionDenied.into()).unwrap();
    assert!(folder.owner_recheck_at().is_none() && folder.newcomers() == [pid], "a newcomer stays one");
}

const A: &str = "beabf016-0350-4b30-ae8f-181db7acd479";

/// A session's folder, and a process that has ended.
struct Left {
    scratch: tempfile::TempDir,
    gone: u32,
    now: Time,
}

impl Left {
    fn new() -> Self {
        let scratch = tempfile::tempdir().unwrap();
        fs::create_dir_all(scratch.path().join("session-state").join(A)).unwrap();
        fs::create_dir(scratch.path().join("logs")).unwrap();
        let mut ended = Command::new("true").spawn().unwrap();
        ended.wait().unwrap();
        Self { scratch, gone: ended.id(), now: now() }
    }

    fn root(&self) -> PathBuf {
        self.scratch.path().join("session-state")
    }

    /// Its last event was written a minute ago.
    fn log(&self, is_open: bool) {
        let at = self.now - Span::minutes(1);
        let end = format!(r#"{{"type":"abort","data":{{}},"id":"2","timestamp":"{at}"}}"#);
        let start = format!(r#"{{"type":"user.message","data":{{"content":"x"}},"id":"1","timestamp":"{at}"}}"#);
        let path = self.root().join(A).join(LOG);
        fs::write(&path, if is_open { format!("{start}\n") } else { format!("{start}\n{end}\n") }).unwrap();
        let time = std::time::UNIX_EPOCH + std::time::Duration::from_millis(at.0.unsigned_abs());
        fs::File::options().append(true).open(path).unwrap().set_modified(time).unwrap();
    }

    fn lock(&self) {
        fs::write(self.root().join(A).join(format!("inuse.{}.lock", self.gone)), "").unwrap();
    }

    /// The log of the process that has ended, which names the session or none.
    fn process_log(&self, names_it: bool) {
        let words = if names_it { format!("Workspace initialized: {A} (checkpoints: 0)") } else { "Starting".into() };
        let name = format!("process-{}-{}.log", (self.now - Span::minutes(2)).0, self.gone);
        fs::write(self.scratch.path().join("logs").join(name), format!("{} [INFO] {words}\n", self.now)).unwrap();
    }

    /// The owner, where another terminal that logs nothing may have opened the session `ago`.
    fn owner(&self, ago: Span) -> Owner {
        let openings = OpenSessions::new(vec![OpenSession {
            pid: 1,
            inside: None,
            root: self.root(),
            opened: Opened::Session(A.into()),
            since: Some(self.now - Span::minutes(9)),
            is_uncertain: false,
            may_be_closed: false,
            guessed: Some(self.now - ago),
        }]);
        let (limits, known) = (Limits::default(), HashSet::new());
        let context =
            ReadContext { now: Moment { wall: self.now, awake: Time(5_000_000) }, limits: &limits, until: None };
        let reading = Reading { context, owner_names: &[], known: &known, openings: &openings, all: false };
        let (mut folder, mut observed) = (Folder::new(&self.root(), A), Observed::default());
        folder.refresh(&reading, &mut observed, &mut Vec::new()).unwrap();
        observed.owner
    }
}

/// Nothing but a proof of another owner overrides that a process is gone, which a lock or a process's own log names.
#[test]
fn case_552_a_guess_never_overrides_a_process_that_is_gone() {
    let ago = Span::seconds(20); // since its last event, so it may be true
    for is_open in [true, false] {
        let left = Left::new();
        left.log(is_open);
        left.lock();
        assert_eq!(left.owner(ago), Owner::Gone { pid: left.gone, at: None }, "a lock, open: {is_open}");
    }
    // The next terminal that starts removes the lock of one that was killed.
    for is_open in [true, false] {
        let left = Left::new();
        left.log(is_open);
        left.process_log(true);
        assert_eq!(left.owner(ago), Owner::Gone { pid: left.gone, at: None }, "a process log, open: {is_open}");
    }
}

#[test]
fn case_552_an_entry_that_is_older_than_the_last_event_says_nothing() {
    for is_open in [true, false] {
        for process_log in [None, Some(false)] {
            let left = Left::new();
            left.log(is_open);
            if let Some(names_it) = process_log {
                left.process_log(names_it);
            }
            assert_eq!(left.owner(Span::minutes(2)), Owner::Never, "open: {is_open}, {process_log:?}");
            // What was recorded later is all that is known of it.
            assert!(matches!(left.owner(Span::seconds(20)), Owner::Opened { pid: 1, .. }), "open: {is_open}");
        }
    }
}

/// A terminal that opened the session and was seen to end explains the entry that it left.
#[test]
fn case_552_the_entry_of_a_terminal_that_has_ended_is_not_anothers() {
    let left = Left::new();
    left.log(false);
    let opening = |pid, guessed| OpenSession {
        pid,
        inside: None,
        root: left.root(),
        opened: Opened::Session(A.into()),
        since: Some(left.now - Span::minutes(9)),
        is_uncertain: false,
        may_be_closed: false,
        guessed,
    };
    let noted = Some(left.now - Span::seconds(20));
    let (limits, known) = (Limits::default(), HashSet::new());
    let context = ReadContext { now: Moment { wall: left.now, awake: Time(5_000_000) }, limits: &limits, until: None };
    let (mut folder, mut observed) = (Folder::new(&left.root(), A), Observed::default());
    let owner = |folder: &mut Folder, observed: &mut Observed, openings: &OpenSessions| {
        let reading = Reading { context, owner_names: &[], known: &known, openings, all: false };
        folder.refresh(&reading, observed, &mut Vec::new()).unwrap();
        observed.owner.clone()
    };
    let named = OpenSessions::new(vec![opening(2, None), opening(1, noted)]);
    assert!(
        matches!(owner(&mut folder, &mut observed, &named), Owner::Opened { pid: 2, .. }),
        "a proof is not a guess"
    );
    folder.process_ended(&mut observed, 2, left.now);
    let other = OpenSessions::new(vec![opening(1, noted)]);
    assert_eq!(owner(&mut folder, &mut observed, &other), Owner::Never);
}

/// The lock of a container's process names it by its id there, and its log is read all the same.
#[test]
fn case_553_a_container_of_the_same_home_runs_its_own_sessions() {
    let left = Left::new();
    left.log(true);
    left.lock();
    let opening = |inside| OpenSession {
        pid: 1,
        inside,
        root: left.root(),
        opened: Opened::Session(A.into()),
        since: None,
        is_uncertain: false,
        may_be_closed: false,
        guessed: None,
    };
    assert_eq!(opening(Some(left.gone)).owner(Some(left.gone)), Owner::Unknown { pid: 1 }, "it made the lock");
    assert_eq!(opening(Some(7)).owner(Some(left.gone)), Owner::Opened { pid: 1, started: None });
    assert_eq!(opening(None).owner(Some(left.gone)), Owner::Opened { pid: 1, started: None });
}

/// As a server for an editor that loads a session by its id: nothing on disk shows that.
#[test]
fn case_711_a_session_that_a_mute_server_may_have_open_is_neither_ended_nor_crashed() {
    for lock in [true, false] {
        let left = Left::new();
        left.log(false);
        if lock {
            left.lock();
        }
        let openings = OpenSessions::new(vec![OpenSession {
            pid: 7,
            inside: None,
            root: left.root(),
            opened: Opened::Untold { folder: None, may_answer: false },
            since: None,
            is_uncertain: false,
            may_be_closed: false,
            guessed: None,
        }]);
        let (limits, known) = (Limits::default(), HashSet::new());
        let context =
            ReadContext { now: Moment { wall: left.now, awake: Time(5_000_000) }, limits: &limits, until: None };
        let owner = |openings: &OpenSessions| {
            let (mut folder, mut observed) = (Folder::new(&left.root(), A), Observed::default());
            let reading = Reading { context, owner_names: &[], known: &known, openings, all: false };
            folder.refresh(&reading, &mut observed, &mut Vec::new()).unwrap();
            (observed.owner, folder.pids().contains(&7))
        };
        assert_eq!(owner(&openings), (Owner::Doubtful { pid: 7, why: Doubt::Mute }, true), "its end is waited for");
        let gone = if lock { Owner::Gone { pid: left.gone, at: None } } else { Owner::Never };
        assert_eq!(owner(OpenSessions::NONE), (gone, false));
    }
}

/// Between the look whether there is a log and its reading, it may go, with the folder that is being deleted.
#[test]
fn case_799_a_log_that_goes_before_it_is_read_leaves_what_was_read() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("session-state/one");
    fs::create_dir_all(&path).unwrap();
    let prompt = r#"{"type":"user.message","data":{"content":"go"},"id":"1","timestamp":"2026-11-30T12:00:00.000Z","parentId":null}"#;
    fs::write(path.join(LOG), format!("{prompt}\n")).unwrap();
    let limits = Limits::default();
    let context = ReadContext { now: Moment { wall: now(), awake: Time(0) }, limits: &limits, until: None };
    let known = HashSet::new();
    let reading = Reading { context, owner_names: &[], known: &known, openings: OpenSessions::NONE, all: true };
    let (mut folder, mut observed) = (Folder::new(path.parent().unwrap(), "one"), Observed::default());
    folder.read_log(&reading, &mut observed, &mut Vec::new());
    assert!(observed.facts.turn.is_some());
    fs::remove_file(path.join(LOG)).unwrap();
    assert_eq!(folder.read_log_if_there(&reading, &mut observed, &mut Vec::new()), None);
    assert!(observed.facts.turn.is_some(), "it is being deleted");
    folder.read_log(&reading, &mut observed, &mut Vec::new());
    assert!(observed.facts.turn.is_none(), "it is gone");
}
