//! Folders whose locks name live processes.

use super::owner::owner_now;
use super::*;
use crate::agent::openings::OpenSessions;
use crate::agent::reading::GRACE;
use crate::agent::tail::ReadContext;
use crate::core::limits::Limits;
use crate::core::owner::Held;
use crate::core::time::Moment;
use crate::system::process::SLACK;
use crate::system::process::testing::{copy, now};
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
        let holders: &[u32] = if observed.held == Held::Verified { &[pid] } else { &[] };
        assert_eq!(observed.holders, holders, "a new lock does not make its process a holder");
        let newcomers: &[u32] = if observed.held == Held::Pending { &[pid] } else { &[] };
        assert_eq!(folder.newcomers(), newcomers);
        (is_alive, observed.held, folder.owner_recheck_at().map(|at| at - Time(5_000_000)))
    };
    assert_eq!(seen_at(Span(3)), (true, Held::Pending, Some(GRACE)));
    assert_eq!(owner_now(path.parent().unwrap(), "one", &[], made + Span(3)), Owner::Unheld { pid }, "for actions");
    assert_eq!(seen_at(GRACE), (false, Held::Unverified, Some(SLACK)));
    copilot.hold(&hold);
    assert_eq!(seen_at(SLACK), (true, Held::Verified, None));
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
