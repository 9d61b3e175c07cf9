//! Processes that hold a session, and processes that only have a lock.

use std::fs;
use std::path::{Path, PathBuf};

use super::super::testing::{World, holding};
use super::super::*;
use pilotlight_system::process::testing::{Running, after, copy, now};

fn claimed(pid: u32, folder: &Path) -> Claim {
    claim(Lock { pid, made: now() }, folder, &[], now())
}

fn is_held(pid: u32, folder: &Path) -> bool {
    let claim = claimed(pid, folder);
    claim.held == HoldProof::Verified && matches!(claim.owner, Owner::Alive { .. })
}

fn unheld(pid: u32) -> Claim {
    Claim { owner: Owner::Unheld { pid }, held: HoldProof::Unverified }
}

#[test]
fn a_process_with_the_folders_own_file_open_and_locked_holds_it() {
    let world = World::new();
    let folder = world.folder("home");
    let process = after(&holding(&folder), &world.program(), &[]);
    assert!(is_held(process.pid(), &folder));
    // Even if the clock was set since.
    let old = Lock { pid: process.pid(), made: now() - Span::hours(1) };
    assert_eq!(claim(old, &folder, &[], now()).held, HoldProof::Verified);
    // By another name of the folder, too.
    let link = world.scratch.path().join("link");
    std::os::unix::fs::symlink(world.home("home"), &link).unwrap();
    assert!(is_held(process.pid(), &link.join("session-state").join("one")));
}

/// As Nix wraps a program, and as the dynamic loader starts one: the process that holds the session is its owner.
#[test]
fn case_716_what_holds_a_session_owns_it_whatever_its_program_is_called() {
    let world = World::new();
    let folder = world.folder("home");
    let program = world.scratch.path().join(".copilot-wrapped");
    copy("/bin/cat", &program);
    let process = after(&holding(&folder), &program, &[]);
    assert!(is_held(process.pid(), &folder));
    assert_eq!(claimed(process.pid(), &world.folder("other")).owner, Owner::Gone { pid: process.pid(), at: None });
}

/// A process of a container has another id there, and one of another user shows no files: only the lock is seen.
#[test]
fn case_581_a_hold_that_somebody_has_locked_is_nobodys_who_is_gone() {
    let world = World::new();
    let folder = world.folder("home");
    let inside = u32::try_from(i32::MAX - 1).unwrap();
    let hold = fs::File::create(folder.join(format!("inuse.{inside}.hold"))).unwrap();
    let gone = Claim { owner: Owner::Gone { pid: inside, at: None }, held: HoldProof::Unverified };
    assert_eq!(claimed(inside, &folder), gone);
    hold.lock().unwrap();
    assert_eq!(claimed(inside, &folder), Claim { owner: Owner::Unknown { pid: inside }, held: HoldProof::Unverified });
    hold.unlock().unwrap();
    assert_eq!(claimed(inside, &folder), gone);
}

/// A container's Copilot is often the first process there. Here, that id is init's, which shows nothing to a user, and the
/// next ones are the kernel's.
#[test]
fn case_712_an_unlocked_hold_of_a_process_that_cannot_be_looked_into_is_left_behind() {
    let world = World::new();
    let folder = world.folder("home");
    let shows_nothing = |pid: u32| fs::read_link(format!("/proc/{pid}/exe")).is_err();
    for pid in [1, 2] {
        let hold = fs::File::create(folder.join(format!("inuse.{pid}.hold"))).unwrap();
        hold.lock().unwrap();
        let held = claimed(pid, &folder);
        let is_visible = !shows_nothing(pid);
        assert!(is_visible || held.owner == Owner::Unknown { pid }, "somebody holds it: {held:?}");
        hold.unlock().unwrap();
        let left = claimed(pid, &folder);
        if pilotlight_system::process::sees_all() {
            assert_eq!(left, Claim { owner: Owner::Gone { pid, at: None }, held: HoldProof::Unverified });
        }
        fs::remove_file(folder.join(format!("inuse.{pid}.hold"))).unwrap();
        // A release that makes no such file leaves nothing to judge by, but the kernel's threads run no program.
        let is_kernels = fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| line.is_empty());
        if shows_nothing(pid) && pilotlight_system::process::sees_all() {
            let owner = if is_kernels { Owner::Gone { pid, at: None } } else { Owner::Unknown { pid } };
            assert_eq!(claimed(pid, &folder).owner, owner);
        }
    }
}

/// A process that has the session's own file open, but not locked.
fn opening(world: &World) -> (PathBuf, Running) {
    let folder = world.folder("home");
    let opens = holding(&folder).replace("flock(F, 6) or die;", "");
    let process = after(&opens, &world.program(), &[]);
    (folder, process)
}

#[test]
fn a_file_that_is_open_but_not_locked_is_not_held() {
    let world = World::new();
    let (folder, process) = opening(&world);
    assert_eq!(claimed(process.pid(), &folder), unheld(process.pid()));
}

/// Copilot makes its lock first, and then locks its hold.
#[test]
fn the_process_of_a_new_lock_counts_as_the_owner_for_now_but_not_for_orders() {
    let world = World::new();
    let (folder, process) = opening(&world);
    let (pid, made) = (process.pid(), now());
    let so_far = |age| claim_so_far(Lock { pid, made }, &folder, &[], made + age);
    for age in [Span(0), Span(6), GRACE - Span(1)] {
        let claim = so_far(age);
        assert!(matches!(claim.owner, Owner::Alive { .. }) && claim.held == HoldProof::Pending, "{age:?}: {claim:?}");
        assert_eq!(super::super::claim(Lock { pid, made }, &folder, &[], made + age), unheld(pid));
    }
    assert_eq!(so_far(GRACE), unheld(pid));
    // Only a change of the clock makes a lock from the future, which would seem new for too long.
    assert_eq!(so_far(Span::ZERO - SLACK), unheld(pid));
    let lock = Lock { pid, made };
    let waits = [Span(0), Span(249), GRACE, Span(1999), SLACK, Span::hours(1)].map(|age| lock.recheck_in(made + age));
    assert_eq!(waits, [Some(Span(250)), Some(Span(1)), Some(Span(1750)), Some(Span(1)), None, None]);
}

/// A copy of a home has a lock and a hold, but they are other files.
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
    assert_eq!(claimed(pid, &copy), unheld(pid), "it holds another, so it would hold this one, too");
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
        assert!(
            matches!(claim.owner, Owner::Alive { .. }) && claim.held == HoldProof::Unverified,
            "{files:?}: {claim:?}"
        );
        assert_eq!(claimed(pid, &world.folder("other")), unheld(pid), "{files:?}");
    }
}

#[test]
fn case_125_a_program_that_only_has_the_name_does_not_hold_it() {
    let world = World::new();
    let process = world.with_open(&[]);
    assert_eq!(claimed(process.pid(), &world.folder("home")), unheld(process.pid()));
}

/// A second name of the real hold: the path by which the process opened it decides.
#[test]
fn case_124_a_hard_link_of_the_hold_is_not_the_hold() {
    let world = World::new();
    let (folder, other) = (world.folder("home"), world.folder("other"));
    let process = after(&holding(&folder), &world.program(), &[]);
    let (pid, name) = (process.pid(), format!("inuse.{}.hold", process.pid()));
    fs::hard_link(folder.join(&name), other.join(&name)).unwrap();
    assert_eq!(claimed(pid, &other), unheld(pid));
    assert!(is_held(pid, &folder), "the real one still counts");
    // By another name of its folder, too.
    let link = world.scratch.path().join("link");
    std::os::unix::fs::symlink(world.home("home"), &link).unwrap();
    assert!(is_held(pid, &link.join("session-state").join("one")));
    // Moving a home moves its hold.
    fs::rename(world.home("home"), world.home("moved")).unwrap();
    assert!(is_held(pid, &world.folder("moved")));
    assert_eq!(claimed(pid, &other), unheld(pid));
    // Without the name that it was opened by, the other one still is not the hold.
    fs::remove_file(world.folder("moved").join(&name)).unwrap();
    assert_eq!(claimed(pid, &other), unheld(pid));
}
