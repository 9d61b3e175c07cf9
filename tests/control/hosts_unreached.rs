//! Other machines that are not reached, and settings, notes and words about them that are not as they should be: what is
//! said, and what is left alone.

use super::host_add::Two;
use super::hosts::{has_ended, name_hosts, says, serves, told_by};
use super::trays::Tray;
use crate::support::executable::executable;
use crate::support::running_time::running_time;
use crate::support::synthetic::User;
use crate::support::{SOON, wait_until};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::symlink;
use std::process::Stdio;
use std::time::Duration;

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
    let (near, remote) = (User::new(), User::new());
    let session = remote.session(1);
    let _owner = session.owner(&remote);
    session.prompt();
    name_hosts(&near, &[("dead", vec!["false".into()]), ("devbox", serves(&remote))]);
    let why = "the `command` in your settings ended with exit code 1";
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
    let install = |name: &str, script: &str| executable(&bin.join(name), &format!("#!/bin/sh\n{script}\n"));
    install("docker", "sleep 60");
    install("podman", "echo 'cannot connect to Podman' >&2; exit 125");
    install("wsl.exe", "seq -f vm%g 101");
    fs::create_dir_all(two.near.scratch.path().join(".ssh/config")).unwrap();
    let began = running_time();
    let (code, text) = two.run(&["host", "suggest", "--json"]);
    assert!(code == Some(0) && running_time() - began < Duration::from_secs(10), "{text}");
    for line in [
        "docker listed no machine: `docker ps --format {{.Names}}` did not answer within 2 s",
        "podman listed no machine: `podman ps --format {{.Names}}` ended with exit code 125: cannot connect to Podman",
        "wsl names more than 100 machines: only the first 100 are listed",
        "/.ssh/config cannot be read, so its hosts are not listed: it is a folder, not a file",
    ] {
        assert_eq!(text.matches(line).count(), 1, "{line}\n{text}");
    }
    assert!(text.contains("\"vm100\"") && !text.contains("\"vm101\""), "{text}");
    install("docker", "yes name | head -c 2000000");
    let (_, text) = two.run(&["host", "suggest"]);
    let line = "docker listed no machine: `docker ps --format {{.Names}}` printed more than 1 MiB";
    assert_eq!(text.matches(line).count(), 1, "{text}");
}

#[test]
fn case_459_a_wrong_argument_is_named_as_it_was_given() {
    let two = Two::new();
    for (args, words) in [
        (
            &["a b"][..],
            "\"a b\" cannot be a machine's name: use up to 24 letters, digits, \"-\", \"_\" and \".\", without \"-\" in front, and not dots alone",
        ),
        (&[""], "\"\" cannot be a machine's name"),
        (&["."], "\".\" cannot be a machine's name"),
        (&["..", "--ssh", "devbox"], "\"..\" cannot be a machine's name"),
        (&["box", "--ssh", ""], "\"\" is neither a host of your ssh config nor user@address"),
        (&["box", "--", ""], "the words after `--` are no command: its first word is not a program"),
        (&["box", "--", "pilotlight", "serve", "--stdio"], "the words after `--` run Pilotlight on this machine"),
    ] {
        let (code, text) = two.run(&[&["host", "add", "--yes"], args].concat());
        assert!(code == Some(2) && text.contains(words) && !text.contains("host."), "{text}");
    }
    assert!(!two.config().exists());
}

#[test]
fn case_460_nothing_is_removed_while_the_settings_are_not_understood() {
    let two = Two::new();
    assert_eq!(two.run(&["host", "add", "devbox", "--yes"]).0, Some(0));
    let good = fs::read_to_string(two.config()).unwrap();
    for (broken, problem) in [(format!("{good}[[host"), "not TOML"), (good.replace("~/", "~ /"), "host.program")] {
        fs::write(two.config(), &broken).unwrap();
        let (code, text) = two.run(&["host", "remove", "devbox", "--yes"]);
        assert!(code == Some(1) && text.contains(problem), "{text}");
        assert!(text.contains("the settings cannot be used as they are, so devbox was not removed"), "{text}");
        assert_eq!((fs::read_to_string(two.config()).unwrap(), two.copied()), (broken, vec!["pilotlight".to_owned()]));
    }
    let (code, _, said) = texts(&two.near, &["status", "--host", "devbox"]);
    assert!(code == Some(2) && said.contains("host.program"), "{said}");
    fs::write(two.config(), good).unwrap();
    assert_eq!(two.run(&["host", "remove", "devbox", "--yes"]).0, Some(0));
}

#[test]
fn case_461_a_note_of_what_was_copied_that_cannot_be_read_is_kept_and_told() {
    let two = Two::new();
    let (code, text) = two.run(&["host", "add", "devbox", "--yes"]);
    assert_eq!(code, Some(0), "{text}");
    let note = two.near.scratch.path().join(".local/state/pilotlight/copied.json");
    let good = fs::read_to_string(&note).unwrap();
    fs::write(&note, &good[..good.len() - 1]).unwrap();
    let is_kept = || fs::read_to_string(&note).unwrap() == good[..good.len() - 1];
    let (code, text) = two.run(&["host", "add", "other", "--ssh", "devbox", "--yes", "--program", "/bin/true"]);
    assert!(
        code == Some(1) && text.contains("nothing was changed: ") && text.contains("/copied.json says which"),
        "{text}"
    );
    assert!(is_kept() && !fs::read_to_string(two.config()).unwrap().contains("\"other\""), "{text}");
    let (code, text) = two.run(&["host", "remove", "devbox", "--yes"]);
    assert!(code == Some(1) && text.contains("devbox is no longer in the settings"), "{text}");
    assert!(text.contains("If `host add` copied a program to devbox, it is still there"), "{text}");
    assert!(is_kept() && two.copied() == ["pilotlight"], "{text}");
    fs::write(&note, good).unwrap();
    let (code, text) = two.run(&["host", "remove", "devbox", "--yes"]);
    assert!(code == Some(0) && two.copied().is_empty(), "{text}");
}

#[test]
fn case_463_settings_that_are_a_link_to_nothing_are_not_replaced() {
    let two = Two::new();
    fs::create_dir_all(two.config().parent().unwrap()).unwrap();
    let target = two.near.scratch.path().join("dotfiles/config.toml");
    symlink(&target, two.config()).unwrap();
    let (code, text) = two.run(&["host", "add", "devbox", "--yes"]);
    assert!(code == Some(1) && text.contains("which is not there, so nothing was changed"), "{text}");
    assert!(fs::read_link(two.config()).unwrap() == target && two.copied().is_empty(), "{text}");
    fs::create_dir(target.parent().unwrap()).unwrap();
    fs::write(&target, "").unwrap();
    let (code, text) = two.run(&["host", "add", "devbox", "--yes"]);
    assert!(code == Some(0) && fs::read_link(two.config()).unwrap() == target, "{text}");
    assert!(fs::read_to_string(&target).unwrap().contains("devbox"));
    // Where nothing can be written, that is said once, and nothing is copied.
    let mut elsewhere = two.command(&["host", "add", "again", "--ssh", "devbox", "--yes"]);
    let ran = elsewhere.env("PILOTLIGHT_CONFIG", "/proc/pilotlight.toml").output().unwrap();
    let said = String::from_utf8_lossy(&ran.stderr).into_owned();
    let once = "pilotlight: /proc/pilotlight.toml cannot be written, so nothing was changed: No such file or directory";
    assert!(ran.status.code() == Some(1) && said.starts_with(once) && said.lines().count() == 1, "{said}");
}

#[test]
fn case_464_a_session_of_a_hook_on_another_machine_is_not_resumed_and_why_is_said() {
    let (near, remote) = (User::new(), User::new());
    name_hosts(&near, &[("devbox", serves(&remote))]);
    let report = ["report", "--agent", "other", "--session", "s1", "--state", "idle"];
    assert!(remote.run(&report).status.success());
    let (code, _, said) = texts(&near, &["resume", "--here", "s1"]);
    assert_eq!(said, "pilotlight: it cannot be resumed: Pilotlight knows only what a hook on devbox reports\n");
    assert_eq!(code, Some(4));
}

#[test]
fn case_465_nonsense_of_a_machine_is_no_log_line_on_standard_error() {
    let (near, remote) = (User::new(), User::new());
    let session = remote.session(1);
    let _owner = session.owner(&remote);
    session.prompt();
    let said = told_by(&remote);
    let odd = said.replacen("\"working\"", "\"dancing\"", 1).replace("\"ready\"\n", "");
    assert_ne!(odd, said);
    name_hosts(&near, &[("odd", says(&near, &(odd + said.split_once('\n').unwrap().1)))]);
    let mut watch = near.pilotlight(&["watch", "--json"]);
    let mut child = watch.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    lines.find(|line| line.contains(&session.id)).unwrap();
    child.kill().unwrap();
    let said = String::from_utf8(child.wait_with_output().unwrap().stderr).unwrap();
    assert_eq!(said, "");
}

#[test]
fn case_466_serve_fails_if_it_is_told_nonsense() {
    let remote = User::new();
    for nonsense in ["nonsense\n".to_owned(), "x".repeat(2 << 20)] {
        let mut serve = remote.pilotlight(&["serve", "--stdio"]);
        let piped = serve.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = piped.spawn().unwrap();
        let _ = child.stdin.take().unwrap().write_all(nonsense.as_bytes());
        let ran = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&ran.stderr).into_owned();
        assert!(ran.status.code() == Some(1) && said.contains("a line of standard input is "), "{said}");
    }
    let ran = remote.pilotlight(&["serve", "--stdio"]).stdin(Stdio::null()).output().unwrap();
    assert!(ran.status.success() && !ran.stdout.is_empty(), "{ran:?}");
}

/// It never learns from its pipe that nobody waits any more.
#[cfg(target_os = "linux")]
#[test]
fn case_486_nothing_stays_of_a_connection_whose_machine_never_answers() {
    let near = User::new();
    let pid = near.scratch.path().join("pid");
    let mute = format!("echo $$ >'{0}.new'; mv '{0}.new' '{0}'; exec sleep 600", pid.display());
    name_hosts(&near, &[("mute", words(&mute))]);
    for (signal, verb) in [(Signal::INT, "status"), (Signal::KILL, "status"), (Signal::KILL, "tray")] {
        let mut child = near.pilotlight(&[verb]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let started = || fs::read_to_string(&pid).ok()?.trim().parse().ok();
        let connection: u32 = wait_until(SOON, "it connects", String::new, started);
        kill_process(Pid::from_child(&child), signal).unwrap();
        child.wait().unwrap();
        wait_until(SOON, "it ends", || format!("{verb} {signal:?}"), || has_ended(connection).then_some(()));
        fs::remove_file(&pid).unwrap();
    }
}

/// As on a laptop from which somebody only looks at other machines.
#[test]
fn case_489_who_watches_other_machines_is_not_told_of_homes_that_are_missing_here() {
    let (near, remote) = (User::new(), User::new());
    let session = remote.session(1);
    let _owner = session.owner(&remote);
    session.prompt();
    fs::remove_dir_all(near.home()).unwrap();
    name_hosts(&near, &[("devbox", serves(&remote))]);
    let (code, listed, said) = texts(&near, &["status", "--json"]);
    assert_eq!((code, &*said), (Some(0), ""));
    assert!(listed.contains(&session.id), "{listed}");
    let (_, found, _) = texts(&near, &["doctor"]);
    assert!(found.contains("no Copilot home on this machine; the settings name other machines"), "{found}");
    assert!(!found.contains("problem  home") && !found.contains("problem  copilot"), "{found}");
    let (_, found, _) = texts(&near, &["doctor", "--home", "/nonexistent"]);
    assert!(found.contains("problem  home") && found.contains("/nonexistent"), "one that is named is missed: {found}");
    let (_, _, said) = texts(&near, &["status", "--home", "/nonexistent"]);
    assert!(said.contains("/nonexistent"), "one that is named is missed: {said}");
}

#[test]
fn case_490_where_the_machine_tells_sessions_apart_that_is_said() {
    let (near, remote, other) = (User::new(), User::new(), User::new());
    let sessions = [remote.session(1), remote.session(2), other.session(3)];
    let _owners = [sessions[0].owner(&remote), sessions[1].owner(&remote), sessions[2].owner(&other)];
    for session in &sessions {
        session.workspace("cwd: /code/billing-api\n");
        session.prompt();
    }
    name_hosts(&near, &[("devbox", serves(&remote)), ("gpu", serves(&other))]);
    let (code, _, said) = texts(&near, &["explain", "billing-api"]);
    assert!(code == Some(2) && said.contains("means 3 sessions"), "{said}");
    assert!(said.ends_with("by its id, folder or title, or its machine by `--host NAME`\n"), "{said}");
    let (code, _, said) = texts(&near, &["explain", "--host", "devbox", "billing-api"]);
    assert!(code == Some(2) && said.ends_with("by its id, folder or title\n"), "{said}");
}
