//! Signals to real processes, on Linux: stand-ins for Copilot that are children of the test.

use std::ffi::OsStr;
use std::io::Write;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitStatus, Stdio};

use rustix::process::Signal;

use super::*;
use crate::copilot::owner::testing::{World, holding};
use crate::evidence::Target as _;
use pilotlight_core::time::Span;
use pilotlight_system::process::testing::{
    Running, Thread, WAITING, after, copy, named, now, wait_until, waiting, zombie,
};

fn lock_of(pid: u32) -> Lock {
    Lock { pid, made: now() }
}

fn open(lock: Lock, folder: &Path) -> Result<Target, String> {
    Target::open(lock, folder, &[], now(), false)
}

/// A Copilot that holds the session in the folder of its program.
fn holder(program: &str) -> (tempfile::TempDir, Running) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("copilot");
    copy(program, &path);
    let process = after(&holding(folder.path()), &path, &[]);
    (folder, process)
}

fn refused(lock: Lock) -> String {
    let reason =
        Target::open(lock, Path::new("/nonexistent"), &[], now(), true).map(|target| target.pid()).unwrap_err();
    assert!(reason.contains(&lock.pid.to_string()), "{reason}");
    reason
}

/// Waits for its end, and returns the signal that ended it.
fn ended_by(process: &mut Running) -> Option<i32> {
    let status: ExitStatus = process.0.wait().unwrap();
    status.signal()
}

#[test]
fn each_force_ends_exactly_its_process() {
    for (force, signal) in
        [(Force::Interrupt, Signal::INT), (Force::Terminate, Signal::TERM), (Force::Kill, Signal::KILL)]
    {
        let [(folder, mut process), (_other, mut bystander)] = [holder("/bin/cat"), holder("/bin/cat")];
        let target = open(lock_of(process.pid()), folder.path()).unwrap();
        assert_eq!((target.pid(), target.has_ended()), (process.pid(), false));
        target.signal(force).unwrap();
        assert_eq!(ended_by(&mut process), Some(signal.as_raw()));
        assert!(target.has_ended());
        let reason = target.signal(Force::Kill).unwrap_err();
        assert!(reason.contains("has ended"), "{reason}");
        assert!(bystander.0.try_wait().unwrap().is_none());
    }
}

#[test]
fn a_zombie_has_ended() {
    let (folder, mut process) = holder("/bin/cat");
    let target = open(lock_of(process.pid()), folder.path()).unwrap();
    process.kill();
    wait_until("the end", || target.has_ended());
    assert!(target.signal(Force::Interrupt).is_err());
}

#[test]
fn case_72_a_recycled_pid_is_refused() {
    let (_folder, _, mut process) = named("copilot".as_ref());
    let reason = refused(Lock { pid: process.pid(), made: now() - Span::hours(1) });
    assert!(reason.contains("another program's"), "{reason}");
    assert!(process.0.try_wait().unwrap().is_none());
}

#[test]
fn case_72_another_program_is_refused() {
    let mut process = waiting();
    refused(lock_of(process.pid()));
    assert!(process.0.try_wait().unwrap().is_none());
    let names = [WAITING.to_owned()];
    // The config says that it is Copilot; nothing shows that it holds the session, so it takes a confirmation.
    let open = |confirmed| Target::open(lock_of(process.pid()), Path::new(""), &names, now(), confirmed);
    let reason = open(false).map(|target| target.pid()).unwrap_err();
    assert!(reason.contains("only its lock") && reason.contains("pilotlight stop"), "{reason}");
    let target = open(true).unwrap();
    target.signal(Force::Interrupt).unwrap();
    assert_eq!(ended_by(&mut process), Some(Signal::INT.as_raw()), "a name from the config counts here too");
}

#[test]
fn case_72_a_process_that_became_another_program_is_not_signalled() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("copilot");
    copy("/bin/sh", &path);
    let words = ["-c", "read line; exec cat"].map(OsStr::new);
    let mut process = after(&holding(folder.path()), &path, &words);
    let target = open(lock_of(process.pid()), folder.path()).unwrap();
    process.0.stdin.as_mut().unwrap().write_all(b"go\n").unwrap();
    wait_until("the other program", || !is_copilot(process.pid(), &[]));
    let reason = target.signal(Force::Interrupt).unwrap_err();
    assert!(reason.contains("no longer runs Copilot"), "{reason}");
    assert!(!target.has_ended() && process.0.try_wait().unwrap().is_none());
}

#[test]
fn case_71_a_process_that_has_ended_is_refused() {
    let (_folder, _, mut process) = named("copilot".as_ref());
    process.end();
    refused(lock_of(process.pid()));
    refused(lock_of(zombie().pid()));
}

#[test]
fn ids_that_cannot_own_a_session_are_refused() {
    for pid in [0, std::process::id(), i32::MAX as u32, i32::MAX as u32 + 1, u32::MAX] {
        refused(lock_of(pid));
    }
    let thread = Thread::start();
    refused(lock_of(thread.id));
}

/// Only root can start such a process, and only root could signal it.
#[test]
fn case_74_another_users_process_is_refused() {
    const NOBODY: u32 = 65534;
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let folder = tempfile::tempdir_in("/tmp").unwrap();
    std::fs::set_permissions(folder.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let path = folder.path().join("copilot");
    copy("/bin/cat", &path);
    let mut command = Command::new(&path);
    let mut process = Running::start(command.uid(NOBODY).stdin(Stdio::piped()).stdout(Stdio::null()));
    assert!(!is_of_our_user(process.pid()));
    let reason = refused(lock_of(process.pid()));
    assert!(reason.contains("another user's"), "{reason}");
    assert!(process.0.try_wait().unwrap().is_none());
}

#[test]
fn case_125_a_program_that_only_has_the_name_is_not_signalled() {
    let world = World::new();
    let process = world.with_open(&[]);
    let target = Target::open(lock_of(process.pid()), &world.folder("home"), &[], now(), true);
    assert!(target.unwrap_err().contains("does not have it open"));
}

#[test]
fn case_125_nothing_is_signalled_that_holds_another_session() {
    let world = World::new();
    let process = after(&holding(&world.folder("other")), &world.program(), &[]);
    let lock = lock_of(process.pid());
    for confirmed in [false, true] {
        let refused = Target::open(lock, &world.folder("home"), &[], now(), confirmed);
        assert!(refused.unwrap_err().contains("does not have it open"));
    }
    assert!(Target::open(lock, &world.folder("other"), &[], now(), false).is_ok());
}
