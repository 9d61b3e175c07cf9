//! Folders whose locks name processes that live.

use super::*;
use crate::agent::copilot::owner::GRACE;
use crate::core::limits::Limits;
use crate::core::owner::Held;
use crate::core::time::Moment;
use crate::system::process::SLACK;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// A Copilot that does not hold its session before it is told to: a copy of perl by that name.
struct Copilot {
    process: Child,
    tell: ChildStdin,
    told: BufReader<ChildStdout>,
}

impl Copilot {
    fn start(scratch: &Path) -> Self {
        let program = scratch.join("copilot");
        // By `cp`: what this process had open for writing may not run (ETXTBSY).
        assert!(Command::new("cp").arg("/usr/bin/perl").arg(&program).status().unwrap().success());
        let script = r#"$| = 1; print "ready\n"; chomp(my $hold = <STDIN>);
            open(F, "+<", $hold) or die; flock(F, 6) or die; print "held\n"; <STDIN>"#;
        let mut process =
            Command::new(&program).args(["-e", script]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (tell, told) = (process.stdin.take().unwrap(), BufReader::new(process.stdout.take().unwrap()));
        let mut copilot = Self { process, tell, told };
        copilot.says("ready");
        copilot
    }

    fn says(&mut self, word: &str) {
        let mut line = String::new();
        self.told.read_line(&mut line).unwrap();
        assert_eq!(line.trim_end(), word);
    }

    fn hold(&mut self, path: &Path) {
        writeln!(self.tell, "{}", path.display()).unwrap();
        self.says("held");
    }
}

impl Drop for Copilot {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn now() -> Time {
    Time(jiff::Timestamp::now().as_millisecond())
}

/// What a process has open is looked at once in five seconds, however much it writes, and at once where somebody wrote to the
/// session's folder.
#[test]
fn that_a_process_does_not_hold_a_session_is_believed_for_five_seconds() {
    for writes in [false, true] {
        let scratch = tempfile::tempdir().unwrap();
        let mut copilot = Copilot::start(scratch.path());
        let pid = copilot.process.id();
        let path = scratch.path().join("home/session-state/one");
        fs::create_dir_all(&path).unwrap();
        let hold = path.join(format!("inuse.{pid}.hold"));
        fs::write(&hold, "").unwrap();
        fs::write(path.join(format!("inuse.{pid}.lock")), pid.to_string()).unwrap();
        // Older than what may just be beginning.
        let made = now();
        while now() <= made + SETTLES + Span(100) {
            std::thread::park_timeout(std::time::Duration::from_millis(50));
        }
        let (limits, known) = (Limits::default(), HashSet::from([pid]));
        let mut folder = Folder::new(path.parent().unwrap(), "one");
        let mut owner_at = |awake: i64| {
            let look =
                Look { now: Moment { wall: now(), awake: Time(1_000_000 + awake) }, limits: &limits, until: None };
            let reading = Reading { look, owner_names: &[], known: &known, openings: Openings::NONE, all: false };
            folder.look(&reading, &mut Vec::new()).unwrap();
            folder.session.owner.clone()
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

/// Copilot makes its lock, and holds the session a moment later, of which no event tells: until then its process counts as the
/// owner for a while, and it is looked at again however long that takes.
#[test]
fn a_lock_that_is_too_new_to_tell_is_looked_at_again() {
    let scratch = tempfile::tempdir().unwrap();
    let mut copilot = Copilot::start(scratch.path());
    let pid = copilot.process.id();
    let path = scratch.path().join("home/session-state/one");
    fs::create_dir_all(&path).unwrap();
    let hold = path.join(format!("inuse.{pid}.hold"));
    fs::write(&hold, "").unwrap();
    let lock = path.join(format!("inuse.{pid}.lock"));
    fs::write(&lock, pid.to_string()).unwrap();
    let (limits, known, made) = (Limits::default(), HashSet::from([pid]), modified(&fs::metadata(lock).unwrap()));
    let mut folder = Folder::new(path.parent().unwrap(), "one");
    // The awake clock is another one.
    let mut seen_at = |age: Span| {
        let now = Moment { wall: made + age, awake: Time(5_000_000) + age };
        let reading = Reading {
            look: Look { now, limits: &limits, until: None },
            owner_names: &[],
            known: &known,
            openings: Openings::NONE,
            all: false,
        };
        assert_eq!(folder.look(&reading, &mut Vec::new()).unwrap(), Looked::Whole);
        let is_alive = matches!(folder.session.owner, Owner::Alive { pid: of, .. } if of == pid);
        let holders: &[u32] = if folder.session.held == Held::Seen { &[pid] } else { &[] };
        assert_eq!(folder.session.holders, holders, "a new lock makes no process the owner of one session more");
        let newcomers: &[u32] = if folder.session.held == Held::Soon { &[pid] } else { &[] };
        assert_eq!(folder.newcomers(), newcomers);
        (is_alive, folder.session.held, folder.tells_at().map(|at| at - Time(5_000_000)))
    };
    assert_eq!(seen_at(Span(3)), (true, Held::Soon, Some(GRACE)));
    assert_eq!(owner_now(path.parent().unwrap(), "one", &[], made + Span(3)), Owner::Unheld { pid }, "for who acts");
    assert_eq!(seen_at(GRACE), (false, Held::Untold, Some(SLACK)));
    copilot.hold(&hold);
    assert_eq!(seen_at(SLACK), (true, Held::Seen, None));
}

/// A folder that cannot be read tells nothing more by waiting: who looked at it again when its lock should have told would do so
/// all the time.
#[test]
fn a_folder_that_cannot_be_read_is_not_looked_at_again_for_its_new_lock() {
    let scratch = tempfile::tempdir().unwrap();
    let copilot = Copilot::start(scratch.path());
    let pid = copilot.process.id();
    let path = scratch.path().join("home/session-state/one");
    fs::create_dir_all(&path).unwrap();
    fs::write(path.join(format!("inuse.{pid}.hold")), "").unwrap();
    let lock = path.join(format!("inuse.{pid}.lock"));
    fs::write(&lock, pid.to_string()).unwrap();
    let made = modified(&fs::metadata(lock).unwrap());
    let (limits, known) = (Limits::default(), HashSet::from([pid]));
    let look = Look { now: Moment { wall: made + Span(3), awake: Time(5_000_000) }, limits: &limits, until: None };
    let reading = Reading { look, owner_names: &[], known: &known, openings: Openings::NONE, all: false };
    let mut folder = Folder::new(path.parent().unwrap(), "one");
    folder.look(&reading, &mut Vec::new()).unwrap();
    assert!(folder.tells_at().is_some());
    folder.unreadable(io::ErrorKind::PermissionDenied.into()).unwrap();
    assert!(folder.tells_at().is_none() && folder.newcomers() == [pid], "who was about to come is still about to");
}
