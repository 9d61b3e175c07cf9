//! Other machines that are not reached, and settings, notes and words about them that are not as they should be: what is
//! said, and what is left alone.

use super::host_add::Two;
use super::hosts::{name_hosts, serves};
use super::trays::Tray;
use crate::support::executable::executable;
use crate::support::synthetic::User;
use rustix::process::Signal;
use std::fs;
use std::io::Write;
use std::process::Stdio;
use std::time::{Duration, Instant};

fn texts(user: &User, args: &[&str]) -> (Option<i32>, String, String) {
    let ran = user.run(args);
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    (ran.status.code(), text(ran.stdout), text(ran.stderr))
}

fn words(script: &str) -> Vec<String> {
    ["sh", "-c", script].map(Into::into).into()
}

#[test]
fn case_456_a_machine_that_is_named_and_not_reached_is_a_failure() {
    let (near, far) = (User::new(), User::new());
    let session = far.session(1);
    let _owner = session.owner(&far);
    session.prompt();
    name_hosts(&near, &[("dead", vec!["false".into()]), ("devbox", serves(&far))]);
    let why = "what runs there ended with exit code 1";
    for verb in ["stop", "approve", "explain", "reconnect"] {
        let (code, _, said) = texts(&near, &[verb, "--host", "dead", &session.id]);
        assert_eq!(said, format!("pilotlight: dead is not reached ({why}), so nothing was done\n"), "{verb}");
        assert_eq!(code, Some(1), "{verb}");
    }
    let (code, listed, said) = texts(&near, &["status", "--host", "dead", "--host", "devbox", "--json"]);
    assert_eq!((code, &*said), (Some(1), &*format!("pilotlight: dead is not reached: {why}\n")));
    assert!(listed.contains(&session.id), "{listed}");
    assert_eq!(texts(&near, &["status", "--host", "dead"]).0, Some(1));
    // Not asked for by its name, it is told of, and no more.
    assert_eq!(texts(&near, &["status"]).0, Some(0));
    let (code, _, said) = texts(&near, &["stop", "nobody"]);
    assert!(code == Some(2) && said.contains("dead is not reached: ") && said.contains("no session has"), "{said}");
    let (code, _, said) = texts(&near, &["stop", "--host", "devbox", "nobody"]);
    assert!(code == Some(2) && said.contains("no session has \"nobody\""), "{said}");
}

#[test]
fn case_456_a_tray_that_is_still_connecting_says_so() {
    let near = User::new();
    name_hosts(&near, &[("mute", words("read line"))]);
    let tray = Tray::start(&near);
    let (code, _, said) = texts(&near, &["status", "--host", "mute"]);
    assert_eq!((code, &*said), (Some(1), "pilotlight: mute is not reached: the tray is still connecting to it\n"));
    let (_, listed, _) = texts(&near, &["host", "list"]);
    assert!(listed.contains("not reached: the tray is still connecting to it"), "{listed}");
    tray.end(Signal::TERM);
}

#[test]
fn case_457_whose_machines_are_not_suggested_is_said() {
    let two = Two::new();
    let bin = two.near.scratch.path().join("bin");
    for (name, script) in [
        ("docker", "sleep 60"),
        ("podman", "echo 'cannot connect to Podman' >&2; exit 125"),
        ("tailscale", "echo nonsense"),
        ("gh", "yes '[' | head -c 2000000"),
        ("incus", "seq -f vm%g 101"),
    ] {
        executable(&bin.join(name), &format!("#!/bin/sh\n{script}\n"));
    }
    fs::create_dir_all(two.near.scratch.path().join(".ssh/config")).unwrap();
    let began = Instant::now();
    let (code, text) = two.run(&["host", "suggest", "--json"]);
    assert!(code == Some(0) && began.elapsed() < Duration::from_secs(10), "{text}");
    for line in [
        "no machine of docker is listed: `docker ps --format {{.Names}}` did not answer within 2 s",
        "no machine of podman is listed: `podman ps --format {{.Names}}` ended with exit code 125: cannot connect to Podman",
        "no machine of tailscale is listed: `tailscale status --json` printed what is not understood",
        "no machine of gh is listed: `gh codespace list --json name,state` printed more than 1 MiB",
        "incus names more than 100 machines: only the first 100 are listed",
        "/.ssh/config cannot be read, so its hosts are not listed: it is a folder, not a file",
    ] {
        assert_eq!(text.matches(line).count(), 1, "{line}\n{text}");
    }
    assert!(text.contains("\"vm100\"") && !text.contains("\"vm101\""), "{text}");
}

#[test]
fn case_466_serve_fails_if_it_is_told_nonsense() {
    let far = User::new();
    for nonsense in ["nonsense\n".to_owned(), "x".repeat(2 << 20)] {
        let mut serve = far.pilotlight(&["serve", "--stdio"]);
        let piped = serve.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = piped.spawn().unwrap();
        let _ = child.stdin.take().unwrap().write_all(nonsense.as_bytes());
        let ran = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&ran.stderr).into_owned();
        assert!(ran.status.code() == Some(1) && said.contains("a line of standard input is "), "{said}");
    }
    let ran = far.pilotlight(&["serve", "--stdio"]).stdin(Stdio::null()).output().unwrap();
    assert!(ran.status.success() && !ran.stdout.is_empty(), "{ran:?}");
}
