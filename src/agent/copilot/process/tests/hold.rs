//! Processes that hold a session's folder, and processes whose locks only say so.

use super::super::*;
use super::owner::copy;
use super::support::{Running, after, holding, now};
use std::fs;
use std::path::{Path, PathBuf};

/// A home with one session's folder in it, and Copilot's program.
struct World {
    scratch: tempfile::TempDir,
}

impl World {
    fn new() -> Self {
        let world = Self { scratch: tempfile::tempdir().unwrap() };
        fs::create_dir_all(world.folder("home")).unwrap();
        fs::create_dir_all(world.folder("other")).unwrap();
        fs::create_dir(world.home("home").join("logs")).unwrap();
        copy("/bin/cat", &world.program());
        world
    }

    fn home(&self, home: &str) -> PathBuf {
        self.scratch.path().join(home)
    }

    fn folder(&self, home: &str) -> PathBuf {
        self.home(home).join("session-state").join("one")
    }

    fn program(&self) -> PathBuf {
        self.scratch.path().join("copilot")
    }

    /// Becomes Copilot with these files of the home open.
    fn with_open(&self, files: &[&str]) -> Running {
        let opens = |file: &&str| {
            let path = self.home("home").join(file);
            format!(r#"open(my $f{}, ">", "{}") or die;"#, file.len(), path.display())
        };
        after(&files.iter().map(opens).collect::<String>(), &self.program(), &[])
    }
}

fn claimed(pid: u32, folder: &Path) -> Claim {
    claim(Lock { pid, made: now() }, folder, &[], now())
}

fn is_held(pid: u32, folder: &Path) -> bool {
    let claim = claimed(pid, folder);
    claim.held == Held::Seen && matches!(claim.owner, Owner::Alive { .. })
}

fn unheld(pid: u32) -> Claim {
    Claim { owner: Owner::Unheld { pid }, held: Held::Untold }
}

#[test]
fn who_has_the_folders_own_file_open_and_locked_holds_it() {
    let world = World::new();
    let folder = world.folder("home");
    let process = after(&holding(&folder), &world.program(), &[]);
    assert!(is_held(process.pid(), &folder));
    // A clock that was set since does not unmake it.
    let old = Lock { pid: process.pid(), made: now() - Span::hours(1) };
    assert_eq!(claim(old, &folder, &[], now()).held, Held::Seen);
    // By another name of the folder it is the same.
    let link = world.scratch.path().join("link");
    std::os::unix::fs::symlink(world.home("home"), &link).unwrap();
    assert!(is_held(process.pid(), &link.join("session-state").join("one")));
}

/// A process that has the session's own file open, and has not locked it.
fn opening(world: &World) -> (PathBuf, Running) {
    let folder = world.folder("home");
    let opens = holding(&folder).replace("flock(F, 6) or die;", "");
    let process = after(&opens, &world.program(), &[]);
    (folder, process)
}

#[test]
fn open_and_not_locked_is_not_held() {
    let world = World::new();
    let (folder, process) = opening(&world);
    assert_eq!(claimed(process.pid(), &folder), unheld(process.pid()));
}

/// Copilot makes its lock first and then locks its hold.
#[test]
fn who_looks_again_takes_the_process_of_a_new_lock_for_the_owner_and_who_acts_does_not() {
    let world = World::new();
    let (folder, process) = opening(&world);
    let (pid, made) = (process.pid(), now());
    let so_far = |age| claim_so_far(Lock { pid, made }, &folder, &[], made + age);
    for age in [Span(0), Span(6), GRACE - Span(1)] {
        let claim = so_far(age);
        assert!(matches!(claim.owner, Owner::Alive { .. }) && claim.held == Held::Soon, "{age:?}: {claim:?}");
        assert_eq!(super::super::claim(Lock { pid, made }, &folder, &[], made + age), unheld(pid));
    }
    assert_eq!(so_far(GRACE), unheld(pid));
    // Of the future it is only when the clock was set: then it is as old as it says for ever.
    assert_eq!(so_far(Span::ZERO - SLACK), unheld(pid));
    let lock = Lock { pid, made };
    let tells = [Span(0), Span(249), GRACE, Span(1999), SLACK, Span::hours(1)].map(|age| lock.tells_in(made + age));
    assert_eq!(tells, [Some(Span(250)), Some(Span(1)), Some(Span(1750)), Some(Span(1)), None, None]);
}

/// A copy of a home has the lock and the hold, and its files are others.
#[test]
fn case_123_a_copied_home_is_not_held() {
    let world = World::new();
    let (folder, copy) = (world.folder("home"), world.folder("other"));
    let process = after(&holding(&folder), &world.program(), &[]);
    let pid = process.pid();
    fs::write(copy.join(format!("inuse.{pid}.hold")), "").unwrap();
    assert_eq!(claimed(pid, &copy), unheld(pid));
    assert!(is_held(pid, &folder));
    fs::remove_file(copy.join(format!("inuse.{pid}.hold"))).unwrap();
    assert_eq!(claimed(pid, &copy), unheld(pid), "it holds another: it would hold this one, too");
}

#[test]
fn case_123_a_copied_home_of_an_older_release_is_not_held() {
    let world = World::new();
    for files in
        [&["session-store.db"][..], &["logs/.copilot-log.lock"], &["session-store.db", "logs/.copilot-log.lock"]]
    {
        let process = world.with_open(files);
        let pid = process.pid();
        let claim = claimed(pid, &world.folder("home"));
        assert!(matches!(claim.owner, Owner::Alive { .. }) && claim.held == Held::Untold, "{files:?}: {claim:?}");
        assert_eq!(claimed(pid, &world.folder("other")), unheld(pid), "{files:?}");
    }
}

#[test]
fn case_125_a_program_that_only_has_the_name_does_not_hold_it() {
    let world = World::new();
    let process = world.with_open(&[]);
    assert_eq!(claimed(process.pid(), &world.folder("home")), unheld(process.pid()));
    let target = Target::open(Lock { pid: process.pid(), made: now() }, &world.folder("home"), &[], now(), true);
    assert!(target.unwrap_err().contains("does not hold it"));
}

#[test]
fn case_125_nothing_is_signalled_that_holds_another_session() {
    let world = World::new();
    let process = after(&holding(&world.folder("other")), &world.program(), &[]);
    let lock = Lock { pid: process.pid(), made: now() };
    for confirmed in [false, true] {
        let refused = Target::open(lock, &world.folder("home"), &[], now(), confirmed);
        assert!(refused.unwrap_err().contains("does not hold it"));
    }
    assert!(Target::open(lock, &world.folder("other"), &[], now(), false).is_ok());
}

#[test]
fn every_copilot_is_found_with_its_home_and_its_log() {
    let world = World::new();
    let log = format!(r#"open(L, ">", "{}/logs/process-1700000000000-$$.log") or die;"#, world.home("home").display());
    let opens = format!(r#"open(D, ">", "{}/session-store.db") or die;"#, world.home("home").display());
    let process = after(&(log + &opens), &world.program(), &["-".as_ref()]);
    let found = programs(&[], now());
    let program = found.iter().find(|program| program.pid == process.pid()).unwrap();
    assert_eq!(program.parent, std::process::id());
    assert!(program.homes.contains(&world.home("home")) && !program.hidden && !program.is_script, "{program:?}");
    assert!(program.log.as_ref().is_some_and(|log| log.starts_with("/proc") && fs::read(log).is_ok()), "{program:?}");
    assert_eq!(program.arguments[1], "-");
    assert!((program.started.unwrap() - now()).0.abs() < 20_000);
    assert!(!found.iter().any(|program| program.pid == std::process::id()));
}

/// The true hold by another name: the path by which the process opened it tells which is meant.
#[test]
fn case_124_a_hard_link_of_the_hold_is_not_the_hold() {
    let world = World::new();
    let (folder, other) = (world.folder("home"), world.folder("other"));
    let process = after(&holding(&folder), &world.program(), &[]);
    let (pid, name) = (process.pid(), format!("inuse.{}.hold", process.pid()));
    fs::hard_link(folder.join(&name), other.join(&name)).unwrap();
    assert_eq!(claimed(pid, &other), unheld(pid));
    assert!(is_held(pid, &folder), "the true one stays");
    // By another name of its folder, too.
    let link = world.scratch.path().join("link");
    std::os::unix::fs::symlink(world.home("home"), &link).unwrap();
    assert!(is_held(pid, &link.join("session-state").join("one")));
    // A home that is moved takes its hold along.
    fs::rename(world.home("home"), world.home("moved")).unwrap();
    assert!(is_held(pid, &world.folder("moved")));
    assert_eq!(claimed(pid, &other), unheld(pid));
    // The name that it was opened by is gone: what is left is not it.
    fs::remove_file(world.folder("moved").join(&name)).unwrap();
    assert_eq!(claimed(pid, &other), unheld(pid));
}
