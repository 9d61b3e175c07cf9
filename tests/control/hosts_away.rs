//! A machine that goes out of reach, and comes back: what is known of its sessions stays, and is said to be from before.

use super::hosts::{child_of, name_hosts, serves, texts};
use super::trays::Tray;
use crate::support::freeze::freeze;
use crate::support::synthetic::{Folder, User};
use crate::support::{SOON, wait_until};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// A connection that is lost is made anew for 10 s before that is said, which a machine under load takes longer for.
const LONG: Duration = Duration::from_secs(60);

/// A user here, and a machine that is reached as long as its gate is there.
struct Away {
    near: User,
    remote: User,
}

impl Away {
    fn new() -> Self {
        let away = Self { near: User::new(), remote: User::new() };
        let serve: Vec<_> = serves(&away.remote).iter().map(|word| format!("'{word}'")).collect();
        let script = format!(
            "[ -e '{}' ] || {{ echo 'no way there' >&2; exit 3; }}; exec {}",
            away.gate().display(),
            serve.join(" ")
        );
        away.open();
        name_hosts(&away.near, &[("devbox", vec!["sh".into(), "-c".into(), script])]);
        away
    }

    fn gate(&self) -> PathBuf {
        self.remote.scratch.path().join("gate")
    }

    fn open(&self) {
        fs::write(self.gate(), "").unwrap();
    }

    /// Puts the machine out of reach of this process.
    fn cut(&self, process: u32) {
        fs::remove_file(self.gate()).unwrap();
        let child = Pid::from_raw(i32::try_from(child_of(process)).unwrap()).unwrap();
        kill_process(child, Signal::KILL).unwrap();
    }

    fn row(&self, session: &Folder) -> Option<Value> {
        self.near.row(session)
    }

    /// Waits until commands say that the machine is reached, or is not.
    fn wait_reached(&self, session: &Folder, reached: bool) -> Value {
        let shown = || format!("{:?}", self.row(session));
        wait_until(LONG, &format!("reached: {reached}"), shown, || {
            self.row(session).filter(|row| row["reached"] == reached)
        })
    }
}

#[test]
fn case_595_the_rows_of_a_machine_out_of_reach_stay_and_count_as_unknown() {
    let away = Away::new();
    let (asks, rests) = (away.remote.session(1), away.remote.session(2));
    let (_owner, _other) = (asks.owner(&away.remote), rests.owner(&away.remote));
    asks.prompt();
    asks.asks_permission("r1");
    rests.prompt();
    rests.answer();
    let tray = Tray::start(&away.near);
    let row = away.wait_reached(&asks, true);
    assert_eq!((&row["status"], &row["reached"]), (&Value::from("needs-permission"), &Value::from(true)));
    let watch = away.near.watch();
    watch.wait_status(&asks, "needs-permission");
    away.cut(tray.pid());
    let child = Pid::from_raw(i32::try_from(child_of(watch.pid())).unwrap()).unwrap();
    kill_process(child, Signal::KILL).unwrap();

    // It is tried again, and told of each time.
    let row = away.wait_reached(&asks, false);
    assert_eq!(row["status"], "quiet");
    let because = row["because"].as_str().unwrap();
    assert!(because.starts_with("not reached since ") && because.contains(", next try at "), "{because}");
    assert!(because.contains("before that: needs-permission, asks for permission"), "{because}");
    assert!(row["actions"].as_array().unwrap().is_empty() && row["request"].is_null(), "{row}");
    let status = || texts(&away.near, &["status"]);
    wait_until(SOON, "it is tried again", || status().1, || status().1.contains("no way there").then_some(()));
    let (code, text) = status();
    assert!(code == Some(0) && text.contains("2 not reached\n"), "{text}");
    assert!(text.contains("devbox is not reached since ") && text.contains("no way there"), "{text}");
    assert!(!text.contains("no session is open") && !text.contains("idle\n"), "{text}");
    assert_eq!(texts(&away.near, &["status", "--host", "devbox"]).0, Some(1));
    let (_, text) = texts(&away.near, &["status", "--format", "waybar"]);
    assert!(text.contains("\"alt\":\"unknown\"") && text.contains("\"class\":[\"unknown\""), "{text}");
    let (_, text) = texts(&away.near, &["status", "--format", "tmux"]);
    assert!(text.starts_with("#[fg=white]◌2"), "{text}");
    let (_, text) = texts(&away.near, &["status", "--format", "plain"]);
    assert!(text.starts_with("◌2"), "{text}");
    let (_, text) = texts(&away.near, &["status", "--openmetrics"]);
    assert!(text.contains("pilotlight_host_reached{host=\"devbox\"} 0"), "{text}");
    assert!(text.contains("host=\"devbox\",agent=\"copilot\",status=\"unknown\"} 2"), "{text}");
    assert!(!text.contains("status=\"idle\"} 1") && !text.contains("status=\"needs-permission\"} 1"), "{text}");
    let (code, text) = texts(&away.near, &["explain", &asks.id]);
    assert!(code == Some(0) && text.contains("because         not reached since "), "{text}");
    let (_, text) = texts(&away.near, &["host", "list"]);
    assert!(text.contains("not reached since ") && text.contains(", next try at "), "{text}");
    let (_, json) = texts(&away.near, &["host", "list", "--json"]);
    let listed: Value = serde_json::from_str(&json).unwrap();
    assert!(listed[0]["since"].is_string() && listed[0]["next_try"].is_string(), "{listed}");

    // `watch` says so after a while, and removes nothing.
    watch.wait_row(&asks, "it is not reached", |row| row["reached"] == false);
    assert!(watch.lines().iter().all(|line| line["removed"] != true), "{:?}", watch.lines());

    // What is gone there goes once the machine is back, and not before.
    fs::remove_dir_all(&rests.path).unwrap();
    away.open();
    let (code, text) = texts(&away.near, &["host", "retry", "devbox"]);
    assert!(code == Some(0) && text.contains("devbox: reached, 1 session"), "{text}");
    let row = away.row(&asks).unwrap();
    assert_eq!((&row["status"], &row["reached"]), (&Value::from("needs-permission"), &Value::from(true)));
    assert!(away.row(&rests).is_none());
    watch.wait_row(&rests, "it is removed", |row| row["removed"] == true);
    assert_eq!(watch.status(&asks).as_deref(), Some("needs-permission"));
    tray.end(Signal::TERM);
}

#[test]
fn case_596_of_a_machine_that_was_never_reached_nothing_is_known_and_that_is_said() {
    let away = Away::new();
    fs::remove_file(away.gate()).unwrap();
    for has_tray in [false, true] {
        let _tray = has_tray.then(|| Tray::start(&away.near));
        let said = || texts(&away.near, &["status"]).1;
        let is_tried = || said().contains("no way there").then_some(());
        wait_until(SOON, "it was tried", said, is_tried);
        let text = said();
        assert!(text.contains("no session is known to be open · nothing is known of 1 machine"), "{has_tray}: {text}");
        let (_, text) = texts(&away.near, &["status", "--format", "waybar"]);
        assert!(text.contains("\"alt\":\"unknown\"") && text.contains("nothing is known of 1 machine"), "{text}");
        assert!(texts(&away.near, &["status", "--format", "plain"]).1.starts_with('◌'));
    }
}

#[test]
fn case_597_an_order_tries_the_machine_at_once_and_goes_there_if_it_is_back() {
    let away = Away::new();
    let session = away.remote.session(1);
    let mut owner = Some(session.owner(&away.remote));
    session.prompt();
    let tray = Tray::start(&away.near);
    away.wait_reached(&session, true);
    away.cut(tray.pid());
    away.wait_reached(&session, false);
    // It has failed several times by now, and the next attempt is far away.
    let (_, text) = texts(&away.near, &["host", "retry"]);
    assert!(text.contains("devbox: not reached since "), "{text}");
    let (code, text) = texts(&away.near, &["stop", "--end", "--yes", &session.id]);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("devbox is not reached: ") && text.contains("nothing was sent"), "{text}");
    away.open();
    let reaped = std::thread::spawn({
        let pid = owner.as_ref().unwrap().pid();
        move || wait_until(SOON, "its process ends", || pid.to_string(), || super::hosts::has_ended(pid).then_some(()))
    });
    let (code, text) = texts(&away.near, &["stop", "--end", "--yes", &session.id]);
    assert_eq!(code, Some(0), "{text}");
    reaped.join().unwrap();
    drop(owner.take());
    away.wait_reached(&session, true);
    tray.end(Signal::TERM);
}

/// The tray takes up what `host test` found out.
#[test]
fn case_598_a_machine_that_a_command_reaches_is_reached_by_the_tray() {
    let away = Away::new();
    let session = away.remote.session(1);
    let _owner = session.owner(&away.remote);
    session.prompt();
    let tray = Tray::start(&away.near);
    away.wait_reached(&session, true);
    away.cut(tray.pid());
    away.wait_reached(&session, false);
    away.open();
    let (code, text) = texts(&away.near, &["host", "test", "devbox"]);
    assert!(code == Some(0) && text.contains("it tells of 1 session"), "{text}");
    assert!(away.row(&session).unwrap()["reached"] == true, "{text}");
    assert_eq!(texts(&away.near, &["host", "retry", "nowhere"]).0, Some(2));
    tray.end(Signal::TERM);
    let (code, text) = texts(&away.near, &["host", "retry", "devbox"]);
    assert!(code == Some(1) && text.contains("no tray is running"), "{text}");
}

/// It answers nothing, and nothing ends the connection.
#[test]
#[ignore = "tests/long.sh"]
fn case_599_a_machine_that_hangs_is_unknown_even_if_its_sessions_only_wait() {
    let away = Away::new();
    let session = away.remote.session(1);
    let _owner = session.owner(&away.remote);
    session.prompt();
    session.asks_permission("r1");
    let tray = Tray::start(&away.near);
    away.wait_reached(&session, true);
    let frozen = child_of(tray.pid());
    freeze(frozen);
    fs::remove_file(away.gate()).unwrap();
    let began = Instant::now();
    let shown = || format!("{:?}", away.row(&session));
    let lost = || away.row(&session).filter(|row| row["reached"] == false);
    wait_until(Duration::from_secs(240), "it is not reached", shown, lost);
    assert!(began.elapsed() < Duration::from_secs(200), "{:?}", began.elapsed());
    // A command that asks it finds out sooner.
    away.open();
    assert_eq!(texts(&away.near, &["host", "retry", "devbox"]).0, Some(0));
    let frozen = child_of(tray.pid());
    freeze(frozen);
    let began = Instant::now();
    let (_, text) = texts(&away.near, &["host", "retry", "devbox"]);
    assert!(text.contains("it has not answered for 10 s") && began.elapsed() < Duration::from_secs(30), "{text}");
    tray.end(Signal::TERM);
}

#[test]
fn case_600_one_machine_by_two_names_and_this_machine_itself_are_noticed() {
    let (near, remote) = (User::new(), User::new());
    let session = remote.session(1);
    let _owner = session.owner(&remote);
    session.prompt();
    name_hosts(&near, &[("devbox", serves(&remote)), ("gpu", serves(&remote)), ("self", serves(&near))]);
    let tray = Tray::start(&near);
    let listed = || texts(&near, &["host", "list"]).1;
    let is_told = || (listed().matches("reached, ").count() == 3).then(listed);
    let text = wait_until(SOON, "all are reached", listed, is_told);
    assert!(text.contains("(it is the same machine as gpu)") && text.contains("(it is this machine itself)"), "{text}");
    let (code, text) = texts(&near, &["host", "test", "self"]);
    assert!(code == Some(0) && text.contains("it is this machine itself"), "{text}");
    let mut watch = near.pilotlight(&["watch", "--json"]);
    let file = near.scratch.path().join("said");
    let mut child = watch.stdout(Stdio::null()).stderr(fs::File::create(&file).unwrap()).spawn().unwrap();
    let said = || fs::read_to_string(&file).unwrap();
    for words in ["gpu and devbox are one machine, so its sessions are listed twice", "self is this machine itself"] {
        wait_until(SOON, "it is said", said, || said().contains(words).then_some(()));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    tray.end(Signal::TERM);
}

/// A desktop's runtime folder is not that of a connection by `ssh`.
#[test]
fn case_601_a_tray_of_another_environment_is_found_and_no_second_one_acts() {
    let (near, remote) = (User::new(), User::new());
    let session = remote.session(1);
    let _owner = session.owner(&remote);
    session.prompt();
    let desktop = remote.scratch.path().join("run");
    fs::create_dir(&desktop).unwrap();
    let with = |args: &[&str], place: &PathBuf| -> Command {
        let mut command = remote.pilotlight(args);
        command.env("XDG_RUNTIME_DIR", place);
        command
    };
    let tray = Tray::start_from(&remote, with(&["tray"], &desktop));
    let served = || desktop.join("pilotlight/pilotlight.sock").exists().then_some(());
    wait_until(SOON, "the tray serves its socket", || tray.output(), served);
    name_hosts(&near, &[("devbox", serves(&remote))]);
    let (code, text) = texts(&near, &["host", "test", "devbox"]);
    assert!(code == Some(0) && text.contains("; a tray runs there"), "{text}");
    // Nor does a second tray, wherever it is started from.
    let elsewhere = remote.scratch.path().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    for mut second in [remote.pilotlight(&["tray"]), with(&["tray"], &elsewhere)] {
        let ran = second.env("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nowhere/bus").output().unwrap();
        let text = String::from_utf8_lossy(&ran.stdout).into_owned();
        assert!(ran.status.success() && text.contains("already running"), "{text}");
    }
    tray.end(Signal::TERM);
    let (_, text) = texts(&near, &["host", "test", "devbox"]);
    assert!(text.contains("no tray runs there"), "{text}");
}
