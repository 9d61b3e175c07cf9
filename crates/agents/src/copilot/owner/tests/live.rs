//! Owners that really run, on Linux.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Command, Stdio};

use super::super::*;
use pilotlight_system::process::testing::{Running, Thread, WAITING, copy, named, now, waiting, zombie};

/// A shell of this name that waits for input, with a script among its arguments.
fn node(name: &str, folder: &Path, script: &Path) -> Running {
    let path = folder.join(name);
    copy("/bin/sh", &path);
    let mut command = Command::new(&path);
    command.args(["-c", "read line"]).arg(script).current_dir(folder);
    Running::start(command.stdin(Stdio::piped()))
}

fn owner(pid: u32) -> Owner {
    owner_of(Lock { pid, made: now() }, &[], now())
}

fn gone(pid: u32) -> Owner {
    Owner::Gone { pid, at: None }
}

fn is_alive(owner: &Owner) -> bool {
    matches!(owner, Owner::Alive { started: Some(_), .. })
}

#[test]
fn a_live_copilot_is_alive_with_its_start() {
    let before = now();
    let (_folder, _, process) = named("copilot".as_ref());
    let Owner::Alive { pid, started: Some(started) } = owner(process.pid()) else { panic!("not alive") };
    assert_eq!(pid, process.pid());
    assert!((started - before).0.abs() < 1000, "{started} is not about {before}");
}

#[test]
fn a_copilot_whose_file_an_update_removed_is_alive() {
    let (_folder, path, process) = named("copilot".as_ref());
    fs::remove_file(path).unwrap();
    assert!(is_alive(&owner(process.pid())));
    assert!(fs::read_link(format!("/proc/{}/exe", process.pid())).unwrap().to_str().unwrap().ends_with(" (deleted)"));
}

#[test]
fn a_link_to_copilot_is_copilot_and_a_link_named_copilot_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let [real, link] = ["copilot", "cp"].map(|name| folder.path().join(name));
    copy("/bin/cat", &real);
    std::os::unix::fs::symlink(&real, &link).unwrap();
    let process = Running::start(Command::new(&link).stdin(Stdio::piped()).stdout(Stdio::null()));
    assert!(is_alive(&owner(process.pid())));
    let link = folder.path().join("other").join("copilot");
    fs::create_dir(link.parent().unwrap()).unwrap();
    std::os::unix::fs::symlink("/bin/cat", &link).unwrap();
    let process = Running::start(Command::new(&link).stdin(Stdio::piped()).stdout(Stdio::null()));
    assert_eq!(owner(process.pid()), gone(process.pid()));
}

#[test]
fn case_71_dead_pid() {
    let (_folder, _, mut process) = named("copilot".as_ref());
    process.end();
    assert_eq!(owner(process.pid()), gone(process.pid()));
}

#[test]
fn case_71_zombie() {
    let process = zombie();
    let names = [WAITING.to_owned()];
    let lock = Lock { pid: process.pid(), made: now() };
    assert_eq!(owner_of(lock, &names, now()), gone(process.pid()));
}

#[test]
fn case_72_recycled_pid() {
    let (_folder, _, process) = named("copilot".as_ref());
    let Owner::Alive { pid, started: Some(started) } = owner(process.pid()) else { panic!("not alive") };
    let with_lock = |made| owner_of(Lock { pid, made }, &[], now());
    // The start is counted back from the clock each time, hence 100 ms of tolerance.
    assert!(is_alive(&with_lock(started - SLACK + Span(100))));
    assert_eq!(with_lock(started - SLACK - Span(100)), gone(pid));
    assert_eq!(with_lock(Time(0)), gone(pid));
}

#[test]
fn case_72_another_program() {
    let process = waiting();
    assert_eq!(owner(process.pid()), gone(process.pid()));
}

#[test]
fn case_72_the_id_of_a_thread_is_no_process() {
    let thread = Thread::start();
    let names = [std::env::current_exe().unwrap().file_name().unwrap().to_string_lossy().into_owned()];
    let lock = Lock { pid: thread.id, made: now() };
    assert!(fs::exists(format!("/proc/{}", thread.id)).unwrap());
    assert_eq!(owner_of(lock, &names, now()), gone(thread.id));
}

#[test]
fn case_73_of_two_locks_one_is_alive() {
    let [(_one, _, live), (_two, _, mut dead)] = [named("copilot".as_ref()), named("copilot".as_ref())];
    dead.end();
    assert!(is_alive(&owner(live.pid())));
    assert_eq!(owner(dead.pid()), gone(dead.pid()));
}

#[test]
fn node_running_the_package_is_alive() {
    let folder = tempfile::tempdir().unwrap();
    let package = folder.path().join("lib/node_modules/@github/copilot");
    fs::create_dir_all(&package).unwrap();
    fs::write(package.join("npm-loader.js"), "").unwrap();
    fs::write(folder.path().join("server.js"), "").unwrap();
    // npm installs the command as a symlink, and node's command line shows only the path of that.
    std::os::unix::fs::symlink(package.join("npm-loader.js"), folder.path().join("copilot")).unwrap();
    for (name, script, alive) in [
        ("node", package.join("npm-loader.js"), true),
        ("nodejs", folder.path().join("copilot"), true),
        ("node", "./copilot".into(), true),
        ("node", folder.path().join("server.js"), false),
        ("node", "lib/node_modules/@github/missing.js".into(), false),
        ("bash", package.join("npm-loader.js"), false),
    ] {
        let process = node(name, folder.path(), &script);
        let owner = owner(process.pid());
        assert!(if alive { is_alive(&owner) } else { owner == gone(process.pid()) }, "{name} {}", script.display());
    }
}

#[test]
fn a_name_from_the_config_is_alive() {
    let (_folder, _, process) = named("agency".as_ref());
    let lock = Lock { pid: process.pid(), made: now() };
    assert_eq!(owner_of(lock, &[], now()), gone(lock.pid));
    assert!(is_alive(&owner_of(lock, &["other".into(), "agency".into()], now())));
}

#[test]
fn a_name_may_hold_anything() {
    for name in [&b"a) R 1 (b"[..], b"c\nTgid:\t1\n", b"\xff\xfe) Z 0", b") ) ("] {
        let (_folder, _, process) = named(OsStr::from_bytes(name));
        let lock = Lock { pid: process.pid(), made: now() };
        assert_eq!(owner_of(lock, &[], now()), gone(lock.pid), "{name:?}");
        if let Ok(name) = std::str::from_utf8(name) {
            assert!(is_alive(&owner_of(lock, &[name.to_owned()], now())), "{name:?}");
        }
    }
}

/// Every machine has an init; whether it can be read depends on who runs the tests.
#[test]
fn case_74_init_is_never_alive() {
    assert!(!is_alive(&owner(1)));
    let readable = fs::read_link("/proc/1/exe").is_ok();
    let lock = Lock { pid: 1, made: now() };
    assert_eq!(owner_of(lock, &[], now()), if readable { gone(1) } else { Owner::Unknown { pid: 1 } });
}
