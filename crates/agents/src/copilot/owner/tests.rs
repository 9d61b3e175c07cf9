//! The rules, on readings made up here; the files below test them on real processes.

#[cfg(target_os = "linux")]
mod hold;
#[cfg(target_os = "linux")]
mod live;

use super::*;
use pilotlight_system::process::testing::{WAITING, now, waiting};

const STARTED: Time = Time(1_700_000_000_000);
const LOCK: Lock = Lock { pid: 42, made: Time(STARTED.0 + 500) };
const ALIVE: Owner = Owner::Alive { pid: 42, started: Some(STARTED) };
const GONE: Owner = Owner::Gone { pid: 42, at: None };
const UNKNOWN: Owner = Owner::Unknown { pid: 42 };

fn running(executable: &str) -> PidStatus {
    PidStatus::Process { started: Some(STARTED), executable: Some(executable.into()) }
}

fn decided(reading: PidStatus) -> Owner {
    decide(LOCK, reading, &[], || panic!("only the arguments of a node matter"))
}

fn node(executable: &str, arguments: Option<&[&str]>) -> Owner {
    decide(LOCK, running(executable), &[], || Some(arguments?.iter().map(OsString::from).collect()))
}

#[test]
fn copilot_is_recognized_by_its_file_name() {
    assert_eq!(decided(running("/opt/copilot-linux-x64/copilot")), ALIVE);
    for other in ["/usr/bin/copilot-helper", "/copilot/bash", "/usr/bin/mycopilot", "/usr/bin/node18"] {
        assert_eq!(decided(running(other)), GONE, "{other}");
    }
    let case = if cfg!(target_os = "linux") { GONE } else { ALIVE };
    assert_eq!(decided(running("/usr/bin/Copilot")), case);
    let suffix = if cfg!(windows) { ALIVE } else { GONE };
    assert_eq!(decided(running("/tools/copilot.exe")), suffix);
}

#[test]
fn case_71_no_process() {
    assert_eq!(decided(PidStatus::Absent), GONE);
}

#[test]
fn case_72_a_process_younger_than_the_lock_is_not_its_owner() {
    let with_lock = |made| decide(Lock { made, ..LOCK }, running("/bin/copilot"), &[], || None);
    assert_eq!(with_lock(STARTED - SLACK), ALIVE);
    assert_eq!(with_lock(STARTED - SLACK - Span(1)), GONE);
    assert_eq!(with_lock(STARTED + Span::hours(999)), ALIVE, "a resumed session's lock is younger than its owner");
}

#[test]
fn case_74_and_107g_what_cannot_be_read_is_unknown() {
    assert_eq!(decided(PidStatus::Hidden), UNKNOWN);
    assert_eq!(decided(PidStatus::Process { started: Some(STARTED), executable: None }), UNKNOWN);
    assert_eq!(decided(PidStatus::Process { started: None, executable: None }), UNKNOWN);
    assert_eq!(decided(PidStatus::Process { started: None, executable: Some("/bin/copilot".into()) }), UNKNOWN);
    assert_eq!(decided(PidStatus::Process { started: Some(STARTED), executable: Some("/".into()) }), UNKNOWN);
    assert_eq!(node("/usr/bin/node", None), UNKNOWN);
}

#[test]
fn one_proof_is_enough() {
    let late = Some(LOCK.made + SLACK + Span(1));
    assert_eq!(decided(PidStatus::Process { started: late, executable: None }), GONE);
    assert_eq!(decided(PidStatus::Process { started: None, executable: Some("/bin/bash".into()) }), GONE);
}

#[test]
fn node_is_copilot_if_it_runs_the_package() {
    let script = |path| ["node", "--no-warnings", path, "--resume"];
    for path in [
        "/usr/lib/node_modules/@github/copilot/index.js",
        "node_modules/@github/copilot/npm-loader.js",
        "/home/u/node_modules/@github/copilot",
        "/home/u/.pnpm/@github+copilot@1.0.102/node_modules/@github//copilot/index.js",
    ] {
        assert_eq!(node("/usr/bin/node", Some(&script(path))), ALIVE, "{path}");
        assert_eq!(node("/usr/bin/nodejs", Some(&script(path))), ALIVE, "{path}");
    }
    for path in [
        "/usr/lib/node_modules/@github/copilot-language-server/dist/index.js",
        "/home/u/x@github/copilot/index.js",
        "/home/u/@github/x/copilot/index.js",
        "server.js",
        "",
    ] {
        assert_eq!(node("/usr/bin/node", Some(&script(path))), GONE, "{path}");
    }
    assert_eq!(node("/usr/bin/node", Some(&[])), GONE);
    let windows = script(r"C:\npm\node_modules\@github\copilot\index.js");
    assert_eq!(node("C:/node.exe", Some(&windows)), if cfg!(windows) { ALIVE } else { GONE });
}

#[test]
fn the_config_adds_names() {
    let names = ["agency".to_owned(), "code-insiders".to_owned()];
    let named = |executable| decide(LOCK, running(executable), &names, || None);
    assert_eq!(named("/usr/share/code-insiders/code-insiders"), ALIVE);
    assert_eq!(named("/usr/bin/agency"), ALIVE);
    assert_eq!(named("/usr/bin/agency2"), GONE);
    assert_eq!(named("/usr/bin/copilot"), ALIVE);
}

#[test]
fn ids_that_cannot_own_a_session_are_gone() {
    for pid in [0, std::process::id(), i32::MAX as u32, i32::MAX as u32 + 1, u32::MAX] {
        let names = [std::env::current_exe().unwrap().file_name().unwrap().to_string_lossy().into_owned()];
        let lock = Lock { pid, made: now() };
        assert_eq!(owner_of(lock, &names, now()), Owner::Gone { pid, at: None });
    }
}

/// With a real process, on every system: it has another name, and its lock is younger than it.
#[test]
fn a_live_process_is_alive_by_its_name_and_case_71_gone_when_it_ended() {
    let mut child = waiting();
    let lock = Lock { pid: child.pid(), made: now() };
    let names = [WAITING.to_owned()];
    let owner = owner_of(lock, &names, now());
    let Owner::Alive { pid, started: Some(started) } = owner else { panic!("{owner:?}") };
    assert_eq!(pid, child.pid());
    assert!((lock.made - started).0.abs() <= SLACK.0, "{started} is not about {}", lock.made);
    assert_eq!(owner_of(lock, &[], now()), Owner::Gone { pid, at: None }, "case 72: another program");
    child.end();
    assert_eq!(owner_of(lock, &names, now()), Owner::Gone { pid, at: None }, "case 71");
}
