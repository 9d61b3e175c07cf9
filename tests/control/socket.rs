//! The control socket: its permissions, its clients, and its life when trays start and exit.

use super::trays::{Tray, answer, connect, folder, socket};
use crate::support::running_time::running_time;
use crate::support::synthetic::User;
use crate::support::{SOON, wait_until};
use pilotlight_core::order::{OrderReport, Outcome};
use rustix::process::Signal;
use std::fs::{self, Permissions};
use std::io::Write;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// A session on which every order is refused: its owner looks like a server of Copilot, but listens nowhere.
fn unreachable(user: &User) -> (crate::support::synthetic::Folder, crate::support::synthetic::Owner) {
    let session = user.session(1);
    session.workspace(&format!("id: {}\ncwd: /home/dev/project\nclient_name: sdk\n", session.id));
    let owner = session.owner(user);
    session.prompt();
    (session, owner)
}

fn approve(user: &User) -> Output {
    user.run(&["approve", "--yes", "00000001"])
}

fn reason(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(4), "{output:?}");
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[test]
fn the_socket_is_accessible_only_to_the_user_and_is_removed_at_exit() {
    let user = User::new();
    let mode = |path: &std::path::Path| fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777;
    // Whatever the umask.
    let mut command = Command::new("sh");
    command.args(["-c", "umask 0; exec \"$0\" tray", env!("CARGO_BIN_EXE_pilotlight")]).env_clear();
    command.env("HOME", user.scratch.path()).env("PILOTLIGHT_DISCOVER", "false");
    let tray = Tray::start_from(&user, command);
    wait_until(SOON, "the tray serves its socket", || tray.output(), || socket(&user).exists().then_some(()));
    assert!(fs::symlink_metadata(socket(&user)).unwrap().file_type().is_socket());
    assert_eq!((mode(&socket(&user)), mode(&folder(&user))), (0o600, 0o700));
    tray.end(Signal::TERM);
    assert!(!socket(&user).exists());
}

#[test]
fn the_runtime_folder_of_the_login_session_is_preferred() {
    let user = User::new();
    let run = user.scratch.path().join("run");
    fs::create_dir(&run).unwrap();
    let mut command = user.pilotlight(&["tray"]);
    command.env("XDG_RUNTIME_DIR", &run);
    let tray = Tray::start_from(&user, command);
    let expected = run.join("pilotlight/pilotlight.sock");
    wait_until(SOON, "the socket is there", || tray.output(), || expected.exists().then_some(()));
    assert!(!socket(&user).exists());
}

#[test]
fn in_a_folder_that_others_may_write_to_no_socket_is_served() {
    let user = User::new();
    fs::create_dir_all(folder(&user)).unwrap();
    fs::set_permissions(folder(&user), Permissions::from_mode(0o770)).unwrap();
    let (_session, _owner) = unreachable(&user);
    let tray = Tray::start_from(&user, user.pilotlight(&["tray"]));
    tray.wait_output("commands cannot reach this tray: others may write to the folder");
    assert!(!socket(&user).exists());
    reason(&approve(&user));
}

/// A running command, and its standard error.
struct Waiting {
    child: std::process::Child,
    stderr: std::path::PathBuf,
    started: Instant,
    started_running_time: Duration,
}

impl Waiting {
    fn start(user: &User) -> Self {
        Self::start_as(user, &["approve", "--yes", "00000001"])
    }

    fn start_as(user: &User, args: &[&str]) -> Self {
        let stderr = user.scratch.path().join(format!("waits-{}", args.join("-")));
        let mut command = user.pilotlight(args);
        let child = command.stderr(fs::File::create(&stderr).unwrap()).stdout(Stdio::null()).spawn().unwrap();
        Self { child, stderr, started: Instant::now(), started_running_time: running_time() }
    }

    /// Waits until standard error contains this text, and asserts that the command is still running. Returns the time
    /// since its start, and how much of that time this process could run.
    fn says(&mut self, text: &str) -> (Duration, Duration) {
        let stderr = || fs::read_to_string(&self.stderr).unwrap();
        wait_until(SOON, &format!("it says {text:?}"), stderr, || stderr().contains(text).then_some(()));
        assert!(self.child.try_wait().unwrap().is_none(), "it still waits");
        (self.started.elapsed(), running_time() - self.started_running_time)
    }
}

/// The command still waits, because the order is for the tray. It also says what to do.
#[test]
fn case_137_a_tray_that_does_not_answer_is_named_within_two_seconds() {
    let user = User::new();
    let (_session, _owner) = unreachable(&user);
    let tray = Tray::start(&user);
    reason(&approve(&user));
    // Far more idle clients than the tray accepts.
    let idle: Vec<_> = (0..400).map(|_| connect(&user)).collect();
    let begun = running_time();
    reason(&approve(&user));
    let took = running_time() - begun;
    println!("with 400 idle clients a command is answered after {took:?}");
    assert!(took < Duration::from_secs(5), "{took:?}");
    tray.freeze();
    let more: Vec<_> = (0..400).map(|_| connect(&user)).collect();
    let mut command = Waiting::start(&user);
    let pid = tray.pid();
    let (took, running) =
        command.says(&format!("Pilotlight's tray (process {pid}) is stopped: `kill -CONT {pid}` continues it"));
    println!("a frozen tray is named after {took:?}");
    assert!(took >= Duration::from_secs(2) && running < Duration::from_secs(6), "{took:?}, {running:?}");
    // `doctor` needs no answer to see that the tray is stopped.
    let doctor = user.run(&["doctor"]);
    let stdout = String::from_utf8_lossy(&doctor.stdout);
    assert!(stdout.contains(&format!("does not answer: process {pid} is stopped")), "{stdout}");
    tray.signal(Signal::CONT);
    let status = command.child.wait().unwrap();
    assert_eq!(status.code(), Some(4), "{}", fs::read_to_string(&command.stderr).unwrap());
    drop((idle, more));
}

/// With what to do. Orders wait for the tray; commands that only read continue without it.
#[test]
fn case_137_every_command_names_a_frozen_tray() {
    let user = User::new();
    let (_session, _owner) = unreachable(&user);
    // A crashed session may be hosted by the tray, so `explain` and `status` ask it.
    let (gone, program) = (user.session(2), "client_name: sdk\n");
    gone.workspace(&format!("id: {}\ncwd: /home/dev/project\n{program}", gone.id));
    let owner = gone.owner(&user);
    gone.prompt();
    owner.kill();
    let tray = Tray::start(&user);
    tray.freeze();
    let pid = tray.pid();
    let named = format!("Pilotlight's tray (process {pid}) is stopped: `kill -CONT {pid}` continues it");
    let orders: [&[&str]; 8] = [
        &["approve", "--yes", "00000001"],
        &["deny", "--yes", "00000001"],
        &["answer", "00000001", "yes"],
        &["stop", "00000001", "--yes"],
        &["reconnect", "00000001"],
        &["reconnect", "00000002", "--continue", "--yes"],
        &["resume", "00000002"],
        &["show", "00000001"],
    ];
    let mut waiting: Vec<_> = orders.iter().map(|args| Waiting::start_as(&user, args)).collect();
    for (order, args) in waiting.iter_mut().zip(orders) {
        let (took, _) = order.says(&named);
        println!("{args:?}: named after {took:.1?}");
    }
    for args in [&["status"][..], &["status", "--json"], &["status", "--format", "tmux"], &["explain", "00000002"]] {
        let begun = running_time();
        let output = user.run(args);
        let (took, stderr) = (running_time() - begun, String::from_utf8_lossy(&output.stderr));
        assert_eq!(output.status.code(), Some(0), "{args:?}: {output:?}");
        assert!(stderr.contains(&named) && stderr.contains("is missing here"), "{args:?}: {stderr}");
        assert!(took < Duration::from_secs(6), "{args:?}: {took:?}");
    }
    for mut order in waiting {
        order.child.kill().unwrap();
        order.child.wait().unwrap();
    }
}

/// The socket's backlog is full.
#[test]
fn case_137_a_tray_that_accepts_no_connection_is_named_too() {
    let user = User::new();
    let (_session, _owner) = unreachable(&user);
    fs::create_dir_all(folder(&user)).unwrap();
    let listener = std::os::unix::net::UnixListener::bind(socket(&user)).unwrap();
    rustix::net::listen(&listener, 0).unwrap();
    let _full = connect(&user);
    fs::write(folder(&user).join("pilotlight.pid"), r#"{"process":4711,"doing":"its icon is in the panel"}"#).unwrap();
    let mut command = Waiting::start(&user);
    let (_, took) = command.says("Pilotlight's tray (process 4711) does not answer; this command waits for it");
    assert!(took < Duration::from_secs(6), "{took:?}");
    command.child.kill().unwrap();
    command.child.wait().unwrap();
}

#[test]
fn a_second_tray_leaves_the_socket_alone_and_the_next_one_replaces_a_stale_socket() {
    let user = User::new();
    let (_session, _owner) = unreachable(&user);
    let tray = Tray::start(&user);
    let second = user.run(&["tray"]);
    assert!(
        second.status.success() && String::from_utf8_lossy(&second.stdout).contains("already running"),
        "{second:?}"
    );
    reason(&approve(&user));
    tray.end(Signal::KILL);
    assert!(socket(&user).exists(), "a killed tray leaves its socket");
    // Nobody serves it, so the command acts by itself.
    reason(&approve(&user));
    let next = Tray::start(&user);
    reason(&approve(&user));
    next.end(Signal::TERM);
    assert!(!socket(&user).exists());
}

#[test]
fn misbehaving_clients_do_not_affect_others() {
    let user = User::new();
    let (session, _owner) = unreachable(&user);
    let _tray = Tray::start(&user);
    let refused = |answer: String| match serde_json::from_str(&answer) {
        Ok(OrderReport::End(Outcome::Refused(reason))) => reason,
        other => panic!("{other:?}: {answer}"),
    };
    // Silent ones, few enough to leave room for those below.
    let silent: Vec<_> = (0..10).map(|_| connect(&user)).collect();
    for (bytes, words) in [(&b"nonsense\n"[..], "does not understand"), (&[b'x'; 1 << 20], "64 KB")] {
        let mut stream = connect(&user);
        let _ = stream.write_all(bytes); // it may be refused before all is written
        let reason = refused(answer(stream));
        assert!(reason.contains(words), "{reason}");
    }
    // Clients that disconnect: before their order, in the middle of it, after it.
    let order = format!("{{\"id\":\"{}\",\"ask\":\"detach\"}}\n", session.id);
    for bytes in ["", "{\"id\":", &order] {
        connect(&user).write_all(bytes.as_bytes()).unwrap();
    }
    reason(&approve(&user));
    for stream in silent {
        assert!(refused(answer(stream)).contains("no order came within 5 s"));
    }
    reason(&approve(&user));
}

#[test]
fn another_users_connection_is_closed() {
    if !rustix::process::geteuid().is_root() {
        return; // only root can start another user's process
    }
    let user = User::new();
    let (session, _owner) = unreachable(&user);
    let tray = Tray::start(&user);
    let socket = socket(&user);
    let order = format!("{{\"id\":\"{}\",\"ask\":\"stop\"}}", session.id);
    let script = r#"use IO::Socket::UNIX; $SIG{PIPE} = "IGNORE"; $s = IO::Socket::UNIX->new(Peer => $ARGV[0]) or die "not let in: $!";
        print $s "$ARGV[1]\n"; $s->flush; print "answered: ", <$s>"#;
    let ask = || {
        let mut command = Command::new("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all"]);
        command.args(["perl", "-e", script]).arg(&socket).arg(&order).output().unwrap()
    };
    let closed = ask();
    assert!(String::from_utf8_lossy(&closed.stderr).contains("not let in"), "{closed:?}");
    // Even if the permissions of every folder allow it.
    for path in socket.ancestors().take_while(|path| path.starts_with(user.scratch.path())) {
        fs::set_permissions(path, Permissions::from_mode(0o777)).unwrap();
    }
    let closed = ask();
    assert_eq!(String::from_utf8_lossy(&closed.stdout), "answered: ", "{closed:?}");
    tray.wait_output("another user (number 65534) tried the control socket");
    // No order is sent to another user's socket in its place.
    tray.end(Signal::TERM);
    let mut squatter = Command::new("setpriv");
    squatter.args(["--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all", "perl", "-e"]);
    squatter.arg("use IO::Socket::UNIX; $l = IO::Socket::UNIX->new(Local => $ARGV[0], Listen => 1) or die; alarm 60; $l->accept while 1");
    let mut squatter = squatter.arg(&socket).spawn().unwrap();
    wait_until(SOON, "it listens", String::new, || socket.exists().then_some(()));
    let output = approve(&user);
    squatter.kill().unwrap();
    squatter.wait().unwrap();
    let refusal = reason(&output);
    assert!(refusal.contains("no tray can be asked: others may write to the folder"), "{refusal}");
    fs::set_permissions(folder(&user), Permissions::from_mode(0o700)).unwrap();
    let refusal = reason(&approve(&user));
    assert!(refusal.contains("pilotlight.sock belongs to another user (number 65534): remove it"), "{refusal}");
}

/// With as many owners as descriptors, and idle clients. `doctor` reports it.
#[test]
fn case_138_a_tray_short_of_descriptors_still_answers() {
    let user = User::new();
    let (_session, _owner) = unreachable(&user);
    let more: Vec<_> = (2..61).map(|n| user.session(n)).collect();
    let owners: Vec<_> = more.iter().map(|session| session.owner(&user)).collect();
    let program = user.pilotlight(&["tray"]);
    let mut command = Command::new("prlimit");
    command.arg("--nofile=64:64").arg(program.get_program()).args(program.get_args()).env_clear();
    command.envs(program.get_envs().filter_map(|(key, value)| Some((key, value?))));
    let tray = Tray::start_from(&user, command);
    tray.wait_output("the end of some owners cannot be waited for");
    let idle: Vec<_> = (0..60).map(|_| connect(&user)).collect();
    let begun = running_time();
    reason(&approve(&user));
    let took = running_time() - begun;
    println!("answered after {took:?}");
    assert!(took < Duration::from_secs(5), "{took:?}");
    let doctor = user.run(&["doctor"]);
    let stdout = String::from_utf8_lossy(&doctor.stdout);
    assert!(stdout.contains("of at most 64 files open, and keeps the rest in reserve"), "{stdout}");
    assert_eq!(tray.output().matches("the end of some owners cannot be waited for").count(), 1, "{}", tray.output());
    drop((idle, owners));
}
