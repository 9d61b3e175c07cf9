//! Other machines: a Pilotlight with a `[[host]]` whose command runs `serve` as another user of this machine, or something
//! hostile.

use super::trays::Tray;
use crate::support::freeze::freeze;
use crate::support::running_time::running_time;
use crate::support::synthetic::User;
use crate::support::{SOON, wait, wait_until};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The words that run `serve` as this user.
pub(crate) fn serves(user: &User) -> Vec<String> {
    let path = std::env::var("PATH").unwrap_or_default();
    let home = user.scratch.path().display();
    let program = env!("CARGO_BIN_EXE_pilotlight");
    [
        "env".into(),
        "-i".into(),
        format!("HOME={home}"),
        format!("PATH={path}"),
        "LANG=C.UTF-8".into(),
        "PILOTLIGHT_DISCOVER=false".into(),
        program.into(),
        "serve".into(),
        "--stdio".into(),
    ]
    .into()
}

/// Gives a user these hosts, each with its command.
pub(crate) fn name_hosts(user: &User, hosts: &[(&str, Vec<String>)]) {
    let folder = user.scratch.path().join(".config/pilotlight");
    fs::create_dir_all(&folder).unwrap();
    let table = |(name, command): &(&str, Vec<String>)| {
        format!("[[host]]\nname = \"{name}\"\ncommand = {}\n", serde_json::to_string(command).unwrap())
    };
    fs::write(folder.join("config.toml"), hosts.iter().map(table).collect::<String>()).unwrap();
}

/// A user here, and one on a machine that is called devbox here.
fn two() -> (User, User) {
    let (near, remote) = (User::new(), User::new());
    name_hosts(&near, &[("devbox", serves(&remote))]);
    (near, remote)
}

pub(super) fn texts(user: &User, args: &[&str]) -> (Option<i32>, String) {
    let ran = user.run(args);
    (ran.status.code(), String::from_utf8_lossy(&[ran.stdout, ran.stderr].concat()).into_owned())
}

/// A command that says these lines, and then waits for the end of its input.
pub(super) fn says(user: &User, lines: &str) -> Vec<String> {
    let file = user.scratch.path().join("said");
    fs::write(&file, lines).unwrap();
    vec!["sh".into(), "-c".into(), format!("cat {}; cat >/dev/null", file.display())]
}

/// The number of the schema that this version speaks.
const SCHEMA: u32 = 3;

fn hello(schema: u32) -> String {
    format!(
        r#"{{"pilotlight":{{"version":"0.1.0","schema":{schema},"now":"2026-01-01T00:00:00Z","system":"linux","architecture":"x86_64","has-tray":false}}}}"#
    ) + "\n"
}

/// The lines with which a user's `serve` tells of its sessions, up to `"ready"`.
pub(super) fn told_by(user: &User) -> String {
    let mut serve = user.pilotlight(&["serve", "--stdio"]);
    let mut child = serve.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut out = String::new();
    for line in BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok) {
        out += &format!("{line}\n");
        if line == "\"ready\"" {
            break;
        }
    }
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success(), "it ends with its pipe");
    out
}

/// `host add` asks a program that it has just copied so, on a machine that may be busy.
#[test]
fn case_500_what_serve_has_said_is_passed_on_though_its_standard_input_has_ended() {
    let remote = User::new();
    let (mut reader, mut writer) = std::io::pipe().unwrap();
    let room = rustix::pipe::fcntl_getpipe_size(&writer).unwrap();
    writer.write_all(&vec![b'\n'; room]).unwrap();
    let mut serve = remote.pilotlight(&["serve", "--stdio"]);
    let mut child = serve.stdout(writer).spawn().unwrap();
    drop(serve); // the other end of the pipe is its own now
    // Nobody has taken yet what it says.
    assert!(wait(Duration::from_millis(300), || child.try_wait().unwrap()).is_none());
    let mut said = String::new();
    reader.read_to_string(&mut said).unwrap();
    assert!(said.trim_start().starts_with("{\"pilotlight\":"), "{said:?}");
    assert!(child.wait().unwrap().success());
}

#[test]
fn case_409_sessions_of_another_machine_are_in_the_one_list() {
    let (near, remote) = two();
    let (here, there) = (near.session(1), remote.session(2));
    let (_owner, _other) = (here.owner(&near), there.owner(&remote));
    here.prompt();
    there.prompt();
    let watch = near.watch();
    let row = watch.wait_status(&there, "working");
    assert_eq!(row["host"], "devbox");
    assert_eq!(row["label"], "project @devbox · Session 2");
    assert_eq!(watch.wait_status(&here, "working")["host"], Value::Null);
    there.asks_permission("r1");
    assert_eq!(watch.wait_status(&there, "needs-permission")["request"]["id"], "r1");
    let asks = |user: &User| {
        let (code, page) = texts(user, &["explain", &there.id]);
        assert_eq!(code, Some(0), "{page}");
        let line = page.lines().find(|line| line.starts_with("asks permission")).map(str::to_owned).unwrap_or(page);
        let (before, after) = line.split_once(", asked ").unwrap_or_else(|| panic!("{line}"));
        let (since, request) = after.split_once(" ago").unwrap_or_else(|| panic!("{line}"));
        assert!(since.ends_with(" s"), "not since the start of time: {line}");
        format!("{before}, asked ago{request}")
    };
    let asked = asks(&near);
    assert!(asked.contains("to use shell") && asked.ends_with("; request r1"), "{asked}");
    assert_eq!(asked, asks(&remote), "in the words of its own machine");
    let hosts: Vec<_> = near.rows(&[]).iter().map(|row| row["host"].clone()).collect();
    assert_eq!(hosts, [Value::from("devbox"), Value::Null], "what needs the user comes first");
    let ids = |args: &[&str]| near.rows(args).iter().map(|row| row["id"].clone()).collect::<Vec<_>>();
    assert_eq!(ids(&["--host", "devbox"]), [Value::from(there.id.as_str())]);
    assert_eq!(texts(&near, &["status", "--host", "nowhere"]).0, Some(2));
    let (code, page) = texts(&near, &["explain", &there.id]);
    assert!(code == Some(0) && page.contains("machine         devbox"), "{page}");
    assert!(texts(&near, &["status"]).1.contains("project @devbox"));
    fs::remove_dir_all(&there.path).unwrap();
    let gone = watch.wait_row(&there, "gone", |row| row["removed"] == true);
    assert_eq!(gone["host"], "devbox");
}

/// Over a connection of the command's own, and over that of the tray.
#[test]
fn case_410_an_order_is_carried_out_where_the_session_is() {
    for has_tray in [false, true] {
        let (near, remote) = two();
        let (here, there) = (near.session(1), remote.session(2));
        let (_owner, mut other) = (here.owner(&near), Some(there.owner(&remote)));
        here.prompt();
        there.prompt();
        let _tray = has_tray.then(|| Tray::start(&near));
        if has_tray {
            wait_until(SOON, "the tray knows it", String::new, || near.row(&there).map(drop));
        }
        let (code, text) = texts(&near, &["stop", "--end", &there.id]);
        assert_eq!(code, Some(4), "it asks first: {text}");
        let (code, text) = texts(&near, &["show", &there.id]);
        assert!(code == Some(4) && text.contains("its terminal is on devbox"), "{text}");
        let (code, text) = texts(&near, &["resume", &there.id]);
        assert!(code == Some(4) && text.contains("on devbox"), "{text}");
        let (code, text) = texts(&near, &["reconnect", &there.id]);
        assert!(code == Some(4), "{text}");
        let reaped = std::thread::spawn({
            let pid = other.as_ref().unwrap().pid();
            move || wait_until(SOON, "its process ends", || pid.to_string(), || has_ended(pid).then_some(()))
        });
        let (code, text) = texts(&near, &["stop", "--end", "--yes", "--host", "devbox", &there.id]);
        assert_eq!(code, Some(0), "{text}");
        reaped.join().unwrap();
        drop(other.take());
        assert_eq!(near.row(&here).unwrap()["status"], "working", "nothing happens to any other");
    }
}

/// Whether a process has ended, and only waits for its parent.
pub(crate) fn has_ended(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(')').next().is_none_or(|rest| rest.trim_start().starts_with('Z') || rest.is_empty())
}

/// It says that it has the session of this machine, and that it wants something.
#[test]
fn case_411_a_host_names_no_session_but_its_own() {
    let (near, liar) = (User::new(), User::new());
    let (here, same) = (near.session(1), liar.session(1));
    let _owner = here.owner(&near);
    here.prompt();
    same.prompt();
    same.asks_permission("r1");
    let other = liar.session(2);
    other.prompt();
    let said = told_by(&liar);
    name_hosts(&near, &[("liar", says(&near, &said)), ("other", serves(&liar))]);
    let rows = near.rows(&[]);
    let of = |host: Value, id: &str| rows.iter().filter(|row| row["host"] == host && row["id"] == id).count();
    assert_eq!(of(Value::Null, &here.id), 1, "{rows:?}");
    assert_eq!((of("liar".into(), &here.id), of("other".into(), &here.id), rows.len()), (1, 1, 5), "{rows:?}");
    let status =
        |host: Value| rows.iter().find(|row| row["host"] == host && row["id"] == *here.id).unwrap()["status"].clone();
    assert_eq!(status(Value::Null), "working");
    // Without a machine, the session of this one is meant.
    let (_, page) = texts(&near, &["explain", &here.id]);
    assert!(!page.contains("machine"), "{page}");
    let (code, text) = texts(&near, &["deny", "--yes", &here.id]);
    assert!(code == Some(4) && !text.contains("liar"), "{text}");
    let (code, text) = texts(&near, &["explain", &other.id]);
    assert!(code == Some(2) && text.contains("2 machines have a session"), "{text}");
}

#[test]
fn case_412_what_a_hostile_host_says_costs_only_that_host() {
    let (near, remote) = two();
    let session = remote.session(1);
    let _owner = session.owner(&remote);
    session.prompt();
    let good = told_by(&remote);
    let sh = |script: String| vec!["sh".to_owned(), "-c".into(), script];
    let file = near.scratch.path().join("hello");
    fs::write(&file, hello(SCHEMA)).unwrap();
    let after_hello = |script: &str| sh(format!("cat {}; {script}", file.display()));
    let shell_noise = good.replacen('{', "Last login: today\n{", 1);
    name_hosts(
        &near,
        &[
            ("devbox", serves(&remote)),
            ("noisy", says(&near, &shell_noise)),
            ("endless", after_hello("yes x | tr -d '\\n'")),
            ("flood", after_hello("yes '\"ready\"'")),
            ("mute", sh("read line".into())),
            ("stderr", sh("yes >&2".into())),
            ("later", sh(format!("printf '%s' '{}'; cat >/dev/null", hello(SCHEMA + 1).trim_end().to_owned() + "\n"))),
            ("banner", sh("yes Welcome".into())),
        ],
    );
    let began = running_time();
    let (code, text) = texts(&near, &["status", "--json"]);
    let took = running_time() - began;
    assert!(took < Duration::from_secs(8), "{took:?}");
    assert_eq!(code, Some(0));
    for words in [
        "endless is not reached: it sends a line that is too long",
        "mute is not reached: it did not send its sessions within 3 s",
        "later is not reached: its Pilotlight 0.1.0 and your 0.1.0 do not understand each other",
        "banner is not reached: what answers there is not Pilotlight",
    ] {
        assert!(text.contains(words), "{words}\n{text}");
    }
    assert!(text.contains(r#""host":"devbox""#) && text.contains(r#""host":"noisy""#), "{text}");
    // A flood costs the others nothing that a user would notice.
    let watch = near.watch();
    let is_devbox = |status: &str| watch.lines().iter().any(|row| row["host"] == "devbox" && row["status"] == status);
    wait_until(SOON, "it is told", || format!("{:?}", watch.lines()), || is_devbox("working").then_some(()));
    let changed = running_time();
    session.asks_permission("r1");
    wait_until(SOON, "it is told", || format!("{:?}", watch.lines()), || is_devbox("needs-permission").then_some(()));
    let took = running_time() - changed;
    assert!(took < Duration::from_secs(2), "{took:?}");
}

/// The tray is told of nothing but `"ready"`, again and again. Its use of a processor is printed.
#[test]
#[ignore = "tests/long.sh"]
fn case_473_a_machine_that_floods_costs_little_and_is_left_with_a_word() {
    let near = User::new();
    let file = near.scratch.path().join("hello");
    fs::write(&file, hello(SCHEMA)).unwrap();
    let words = format!("cat {}; exec yes '\"ready\"'", file.display());
    name_hosts(&near, &[("flood", vec!["sh".into(), "-c".into(), words])]);
    let tray = Tray::start(&near);
    let began = Instant::now();
    let seconds = |of: f64| {
        let (from, before) = (Instant::now(), ticks(tray.pid()));
        let _ = wait(Duration::from_secs_f64(of), || None::<()>);
        f64::from(u32::try_from(ticks(tray.pid()) - before).unwrap()) / 100.0 / from.elapsed().as_secs_f64()
    };
    println!("a flood, at once: {:.1} % of a processor", 100.0 * seconds(3.0));
    let _ = wait(Duration::from_secs(10), || None::<()>);
    println!("a flood, slowed down: {:.1} % of a processor", 100.0 * seconds(5.0));
    let child = child_of(tray.pid());
    let said = || texts(&near, &["status"]).1;
    let is_said = || {
        let words = ": for 30 s it sent data faster than any Pilotlight does";
        let said = said();
        (said.contains("flood is not reached since ") && said.contains(words)).then_some(())
    };
    wait_until(Duration::from_secs(60), "it is said", said, is_said);
    assert!(began.elapsed() > Duration::from_secs(25), "not before: {:?}", began.elapsed());
    assert!(has_ended(child), "its child ends");
    let after = 100.0 * seconds(5.0);
    println!("a flood, left: {after:.1} % of a processor");
    assert!(after < 5.0, "it is not tried again at once: {after}");
}

/// How many hundredths of a second a process has used.
fn ticks(pid: u32) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<_> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
}

/// A short interruption is no news; the children end with the program.
#[test]
fn case_413_a_connection_is_made_anew_and_ends_with_the_program() {
    let (near, remote) = two();
    let session = remote.session(1);
    let _owner = session.owner(&remote);
    session.prompt();
    let watch = near.watch();
    watch.wait_status(&session, "working");
    let first = child_of(watch.pid());
    kill_process(Pid::from_raw(i32::try_from(first).unwrap()).unwrap(), Signal::KILL).unwrap();
    session.asks_permission("r1");
    watch.wait_status(&session, "needs-permission");
    assert!(watch.lines().iter().all(|line| line["removed"] != true), "{:?}", watch.lines());
    let second = child_of(watch.pid());
    assert_ne!(first, second);
    assert_eq!(watch.end(Signal::TERM), Some(0));
    wait_until(SOON, "it ends", || second.to_string(), || has_ended(second).then_some(()));
}

/// The process that a program runs for its host.
pub(crate) fn child_of(pid: u32) -> u32 {
    let tasks = || fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let children = || -> String {
        tasks().filter_map(|task| fs::read_to_string(task.path().join("children")).ok()).collect::<Vec<_>>().join(" ")
    };
    wait_until(SOON, "it runs a child", children, || children().split_whitespace().next()?.parse().ok())
}

/// There is never a second engine that acts: what the tray there knows and does is what is told.
#[test]
fn case_414_where_a_tray_runs_it_is_asked() {
    let (near, remote) = two();
    let session = remote.session(1);
    let owner = session.owner(&remote);
    session.prompt();
    let tray = Tray::start(&remote);
    assert!(told_by(&remote).starts_with(r#"{"pilotlight":"#));
    assert!(told_by(&remote).lines().next().unwrap().contains(r#""has-tray":true"#));
    let watch = near.watch();
    watch.wait_status(&session, "working");
    session.asks_permission("r1");
    watch.wait_status(&session, "needs-permission");
    tray.end(Signal::TERM);
    session.log_event("permission.completed", r#"{"requestId":"r1","result":{"kind":"approved"}}"#);
    watch.wait_status(&session, "working");
    assert!(watch.lines().iter().all(|line| line["removed"] != true), "{:?}", watch.lines());
    drop(owner);
}

/// What is asked over the pipe by whoever should not.
#[test]
fn case_415_the_pipe_takes_no_order_for_elsewhere_and_opens_no_window() {
    let remote = User::new();
    let session = remote.session(1);
    let _owner = session.owner(&remote);
    session.prompt();
    let mut serve = remote.pilotlight(&["serve", "--stdio"]);
    let mut child = serve.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let (mut to, mut lines) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()).lines());
    let mut report = |order: &str| {
        writeln!(to, r#"{{"order":{{"n":1,"order":{order}}}}}"#).unwrap();
        let mut lines = lines.by_ref().map_while(Result::ok);
        lines.find(|line| line.starts_with(r#"{"report""#)).unwrap()
    };
    let id = &session.id;
    for (order, words) in [
        (format!(r#"{{"id":"{id}","ask":"resume"}}"#), "opens no window here"),
        (format!(r#"{{"id":"{id}","ask":"show-terminal"}}"#), "opens no window here"),
        (format!(r#"{{"id":"{id}","ask":"stop","host":"third"}}"#), "no order on to a third machine"),
        (r#"{"id":"nobody","ask":"stop"}"#.into(), "unknown"),
    ] {
        let told = report(&order);
        assert!(told.contains(words), "{told}");
    }
    writeln!(to, "nonsense").unwrap();
    let over = lines.by_ref().map_while(Result::ok).find(|line| line.starts_with(r#"{"over""#)).unwrap();
    assert!(over.contains("not understood"), "{over}");
    assert_eq!(child.wait().unwrap().code(), Some(1));
    // What an agent starts there may look, and no more.
    let mut serve: Command = remote.pilotlight(&["serve", "--stdio"]);
    serve.env("COPILOT_AGENT_SESSION_ID", "x").stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = serve.spawn().unwrap();
    let mut to = child.stdin.take().unwrap();
    writeln!(to, r#"{{"order":{{"n":1,"order":{{"id":"{id}","ask":"stop"}}}}}}"#).unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let told = lines.find(|line| line.starts_with(r#"{"report""#)).unwrap();
    assert!(told.contains("started by Copilot"), "{told}");
    drop(to);
    child.wait().unwrap();
}

#[test]
fn case_420_what_the_user_has_seen_here_is_seen_there() {
    let remote = User::new();
    let session = remote.session(1);
    let _owner = session.owner(&remote);
    let mut serve = remote.pilotlight(&["serve", "--stdio"]);
    let mut child = serve.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let (mut to, lines) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()).lines());
    let mut lines = lines.map_while(Result::ok);
    lines.find(|line| line == "\"ready\"").unwrap();
    session.prompt();
    session.answer();
    lines.find(|line| line.contains(r#""unseen":true"#)).unwrap();
    writeln!(to, r#"{{"seen":["{}"]}}"#, session.id).unwrap();
    lines.find(|line| line.contains(r#""unseen":false"#)).unwrap();
    writeln!(to, r#"{{"ping":7}}"#).unwrap();
    lines.find(|line| line == r#"{"pong":7}"#).unwrap();
    assert_eq!(remote.row(&session).unwrap()["unseen"], false);
    drop(to);
    assert!(child.wait().unwrap().success());
}

/// It is not waited for, and what was asked may have happened.
#[test]
#[ignore = "tests/long.sh"]
fn case_405_a_machine_that_is_frozen_is_said_to_be_and_is_left() {
    let (near, remote) = two();
    let session = remote.session(1);
    let _owner = session.owner(&remote);
    session.prompt();
    let tray = Tray::start(&near);
    wait_until(SOON, "the tray knows it", String::new, || near.row(&session).map(drop));
    freeze(child_of(tray.pid()));
    let began = Instant::now();
    let (code, text) = texts(&near, &["stop", &session.id]);
    assert!(code == Some(5) && text.contains("may have happened"), "{code:?} {text}");
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    // Another connection is made at once.
    let again = || near.row(&session).filter(|row| row["reached"] == true).map(drop);
    wait_until(SOON, "it is reached again", String::new, again);
}

/// How long a change there takes to be a line here, beside a `watch` on the machine itself.
#[test]
#[ignore = "tests/long.sh"]
fn figures_a_change_there_is_a_line_here() {
    const ROUNDS: usize = 200;
    let (near, remote) = two();
    let session = remote.session(1);
    let _owner = session.owner(&remote);
    session.prompt();
    for (name, user) in [("there", &remote), ("here", &near)] {
        let mut watch = user.pilotlight(&["watch", "--json"]).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(watch.stdout.take().unwrap()).lines().map_while(Result::ok);
        lines.find(|line| line.contains(r#""status":"working""#)).unwrap();
        let mut took = Vec::new();
        for round in 0..ROUNDS {
            let request = format!("{name}{round}");
            let began = Instant::now();
            session.asks_permission(&request);
            lines.find(|line| line.contains(r#""status":"needs-permission""#)).unwrap();
            took.push(began.elapsed());
            let answer = format!(r#"{{"requestId":"{request}","result":{{"kind":"approved"}}}}"#);
            session.log_event("permission.completed", &answer);
            lines.find(|line| line.contains(r#""status":"working""#)).unwrap();
        }
        watch.kill().unwrap();
        watch.wait().unwrap();
        took.sort_unstable();
        let at = |share: usize| took[took.len() * share / 100];
        println!("a change is a line {name}: p50 {:?}, p99 {:?}", at(50), at(99));
        assert!(at(50) < Duration::from_millis(100), "{:?}", at(50));
    }
}
