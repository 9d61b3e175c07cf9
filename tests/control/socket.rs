//! The socket: whose it is, who is heard, and what becomes of it when trays come and go.

use super::trays::{Tray, answer, connect, folder, socket};
use crate::support::made_up::User;
use crate::support::ran::ran;
use crate::support::{SOON, wait_until};
use pilotlight::core::order::{Outcome, Report};
use rustix::process::Signal;
use std::fs::{self, Permissions};
use std::io::Write;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// A session that nobody can do anything with: a process that passes for a server of Copilot's, and listens nowhere.
fn unreachable(user: &User) -> (crate::support::made_up::Folder, crate::support::made_up::Owner) {
    let session = user.session(1);
    session.workspace(&format!("id: {}\ncwd: /home/dev/project\nclient_name: sdk\n", session.id));
    let owner = session.owner(user);
    session.prompt();
    (session, owner)
}

fn approve(user: &User) -> Output {
    user.run(&["approve", "00000001"])
}

fn reason(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(4), "{output:?}");
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[test]
fn the_socket_is_the_users_alone_and_goes_with_the_tray() {
    let user = User::new();
    let mode = |path: &std::path::Path| fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777;
    // Whatever the umask says.
    let mut command = Command::new("sh");
    command.args(["-c", "umask 0; exec \"$0\" tray", env!("CARGO_BIN_EXE_pilotlight")]).env_clear();
    command.env("HOME", user.scratch.path());
    let tray = Tray::start_from(&user, command);
    wait_until(SOON, "the tray serves its socket", || tray.said(), || socket(&user).exists().then_some(()));
    assert!(fs::symlink_metadata(socket(&user)).unwrap().file_type().is_socket());
    assert_eq!((mode(&socket(&user)), mode(&folder(&user))), (0o600, 0o700));
    tray.end(Signal::TERM);
    assert!(!socket(&user).exists());
}

#[test]
fn the_folder_of_the_login_session_comes_first() {
    let user = User::new();
    let run = user.scratch.path().join("run");
    fs::create_dir(&run).unwrap();
    let mut command = user.pilotlight(&["tray"]);
    command.env("XDG_RUNTIME_DIR", &run);
    let tray = Tray::start_from(&user, command);
    let there = run.join("pilotlight/pilotlight.sock");
    wait_until(SOON, "the socket is there", || tray.said(), || there.exists().then_some(()));
    assert!(!socket(&user).exists());
}

#[test]
fn where_others_may_write_nothing_is_served_and_commands_act_by_themselves() {
    let user = User::new();
    fs::create_dir_all(folder(&user)).unwrap();
    fs::set_permissions(folder(&user), Permissions::from_mode(0o770)).unwrap();
    let (_session, _owner) = unreachable(&user);
    let tray = Tray::start_from(&user, user.pilotlight(&["tray"]));
    tray.says("commands cannot reach this tray: others may write to the folder");
    assert!(!socket(&user).exists());
    reason(&approve(&user));
}

/// A command under way, and what it says on standard error.
struct Waits {
    child: std::process::Child,
    said: std::path::PathBuf,
    begun: Instant,
    ran: Duration,
}

impl Waits {
    fn start(user: &User) -> Self {
        Self::start_as(user, &["approve", "00000001"])
    }

    fn start_as(user: &User, args: &[&str]) -> Self {
        let said = user.scratch.path().join(format!("waits-{}", args.join("-")));
        let mut command = user.pilotlight(args);
        let child = command.stderr(fs::File::create(&said).unwrap()).stdout(Stdio::null()).spawn().unwrap();
        Self { child, said, begun: Instant::now(), ran: ran() }
    }

    /// Waits until it says this, and still waits itself. How long that took, and how much of that the machine had time for.
    fn says(&mut self, what: &str) -> (Duration, Duration) {
        let said = || fs::read_to_string(&self.said).unwrap();
        wait_until(SOON, &format!("it says {what:?}"), said, || said().contains(what).then_some(()));
        assert!(self.child.try_wait().unwrap().is_none(), "it waits on");
        (self.begun.elapsed(), ran() - self.ran)
    }
}

/// The order goes to the tray: while that stands still nothing happens, and the command says what it waits for, and what to do.
#[test]
fn case_137_a_tray_that_does_not_answer_is_named_within_two_seconds() {
    let user = User::new();
    let (_session, _owner) = unreachable(&user);
    let tray = Tray::start(&user);
    reason(&approve(&user));
    // Idle clients, far more than are let in.
    let idle: Vec<_> = (0..400).map(|_| connect(&user)).collect();
    let begun = ran();
    reason(&approve(&user));
    let took = ran() - begun;
    println!("with 400 idle clients a command is answered after {took:?}");
    assert!(took < Duration::from_secs(5), "{took:?}");
    tray.freeze();
    let more: Vec<_> = (0..400).map(|_| connect(&user)).collect();
    let mut command = Waits::start(&user);
    let pid = tray.pid();
    let (took, ran) =
        command.says(&format!("Pilotlight's tray (process {pid}) is stopped: `kill -CONT {pid}` lets it go on"));
    println!("a frozen tray is named after {took:?}");
    assert!(took >= Duration::from_secs(2) && ran < Duration::from_secs(6), "{took:?}, {ran:?}");
    // To be looked at it need not answer.
    let doctor = user.run(&["doctor"]);
    let said = String::from_utf8_lossy(&doctor.stdout);
    assert!(said.contains(&format!("does not answer: process {pid} is stopped")), "{said}");
    tray.signal(Signal::CONT);
    let status = command.child.wait().unwrap();
    assert_eq!(status.code(), Some(4), "{}", fs::read_to_string(&command.said).unwrap());
    drop((idle, more));
}

/// Whatever is asked of a tray that stands still: it is named, with what to do. Orders wait for it; who only looks goes on without.
#[test]
fn case_137_every_command_names_a_tray_that_stands_still() {
    let user = User::new();
    let (_session, _owner) = unreachable(&user);
    // The tray may hold it: that is asked for.
    let (gone, program) = (user.session(2), "client_name: sdk\n");
    gone.workspace(&format!("id: {}\ncwd: /home/dev/project\n{program}", gone.id));
    let owner = gone.owner(&user);
    gone.prompt();
    owner.kill();
    let tray = Tray::start(&user);
    tray.freeze();
    let pid = tray.pid();
    let named = format!("Pilotlight's tray (process {pid}) is stopped: `kill -CONT {pid}` lets it go on");
    let orders: [&[&str]; 8] = [
        &["approve", "00000001"],
        &["deny", "00000001"],
        &["answer", "00000001", "yes"],
        &["stop", "00000001", "--yes"],
        &["reconnect", "00000001"],
        &["reconnect", "00000002", "--continue"],
        &["resume", "00000002"],
        &["show", "00000001"],
    ];
    let mut waiting: Vec<_> = orders.iter().map(|args| Waits::start_as(&user, args)).collect();
    for (order, args) in waiting.iter_mut().zip(orders) {
        let (took, _) = order.says(&named);
        println!("{args:?}: named after {took:.1?}");
    }
    for args in [&["status"][..], &["status", "--json"], &["status", "--format", "tmux"], &["explain", "00000002"]] {
        let begun = ran();
        let output = user.run(args);
        let (took, said) = (ran() - begun, String::from_utf8_lossy(&output.stderr));
        assert_eq!(output.status.code(), Some(0), "{args:?}: {output:?}");
        assert!(said.contains(&named) && said.contains("is missing here"), "{args:?}: {said}");
        assert!(took < Duration::from_secs(6), "{args:?}: {took:?}");
    }
    for mut order in waiting {
        order.child.kill().unwrap();
        order.child.wait().unwrap();
    }
}

/// As many clients wait to be let in as the system allows: the command waits with them, and says so.
#[test]
fn case_137_a_tray_that_lets_nobody_in_is_named_as_well() {
    let user = User::new();
    let (_session, _owner) = unreachable(&user);
    fs::create_dir_all(folder(&user)).unwrap();
    let listener = std::os::unix::net::UnixListener::bind(socket(&user)).unwrap();
    rustix::net::listen(&listener, 0).unwrap();
    let _full = connect(&user);
    fs::write(folder(&user).join("pilotlight.pid"), "process 4711, its icon is in the panel\n").unwrap();
    let mut command = Waits::start(&user);
    let (_, took) = command.says("Pilotlight's tray (process 4711) does not answer; this command waits for it");
    assert!(took < Duration::from_secs(6), "{took:?}");
    command.child.kill().unwrap();
    command.child.wait().unwrap();
}

#[test]
fn the_second_tray_leaves_the_socket_alone_and_the_next_replaces_what_a_dead_one_left() {
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
    assert!(socket(&user).exists(), "it was killed without a word");
    // Nobody answers there: the command does it itself.
    reason(&approve(&user));
    let next = Tray::start(&user);
    reason(&approve(&user));
    next.end(Signal::TERM);
    assert!(!socket(&user).exists());
}

#[test]
fn clients_that_misbehave_harm_nobody_else() {
    let user = User::new();
    let (session, _owner) = unreachable(&user);
    let _tray = Tray::start(&user);
    let refused = |answer: String| match serde_json::from_str(&answer) {
        Ok(Report::End(Outcome::Refused(reason))) => reason,
        other => panic!("{other:?}: {answer}"),
    };
    // Slow ones, as many as leave room for those below.
    let slow: Vec<_> = (0..10).map(|_| connect(&user)).collect();
    for (bytes, words) in [(&b"nonsense\n"[..], "does not understand"), (&[b'x'; 1 << 20], "64 KB")] {
        let mut stream = connect(&user);
        let _ = stream.write_all(bytes); // it is refused before it is written
        let reason = refused(answer(stream));
        assert!(reason.contains(words), "{reason}");
    }
    // Those that vanish: without a word, in the middle of a word, after their order.
    let order = format!("{{\"id\":\"{}\",\"ask\":\"detach\"}}\n", session.id);
    for bytes in ["", "{\"id\":", &order] {
        connect(&user).write_all(bytes.as_bytes()).unwrap();
    }
    reason(&approve(&user));
    for stream in slow {
        assert!(refused(answer(stream)).contains("no order came within 5 s"));
    }
    reason(&approve(&user));
}

#[test]
fn another_users_connection_is_closed() {
    if !rustix::process::geteuid().is_root() {
        return; // another user's process cannot be made without being root
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
    // Even where somebody opened every door.
    for path in socket.ancestors().take_while(|path| path.starts_with(user.scratch.path())) {
        fs::set_permissions(path, Permissions::from_mode(0o777)).unwrap();
    }
    let closed = ask();
    assert_eq!(String::from_utf8_lossy(&closed.stdout), "answered: ", "{closed:?}");
    tray.says("another user (number 65534) tried the control socket");
    // And another user's socket in that place is not trusted with an order.
    tray.end(Signal::TERM);
    let mut squatter = Command::new("setpriv");
    squatter.args(["--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all", "perl", "-e"]);
    squatter.arg("use IO::Socket::UNIX; $l = IO::Socket::UNIX->new(Local => $ARGV[0], Listen => 1) or die; alarm 60; $l->accept while 1");
    let mut squatter = squatter.arg(&socket).spawn().unwrap();
    wait_until(SOON, "it listens", String::new, || socket.exists().then_some(()));
    let output = approve(&user);
    squatter.kill().unwrap();
    squatter.wait().unwrap();
    let said = reason(&output);
    assert!(said.contains("no tray can be asked: others may write to the folder"), "{said}");
    fs::set_permissions(folder(&user), Permissions::from_mode(0o700)).unwrap();
    let said = reason(&approve(&user));
    assert!(said.contains("pilotlight.sock belongs to another user (number 65534): remove it"), "{said}");
}

/// As many owners as there are descriptors, and idle clients on top: a command is answered, and `doctor` tells of it.
#[test]
fn case_138_a_tray_that_is_short_of_descriptors_still_answers() {
    let user = User::new();
    let (_session, _owner) = unreachable(&user);
    let more: Vec<_> = (2..61).map(|n| user.session(n)).collect();
    let owners: Vec<_> = more.iter().map(|session| session.owner(&user)).collect();
    let program = user.pilotlight(&["tray"]);
    let mut command = Command::new("prlimit");
    command.arg("--nofile=64:64").arg(program.get_program()).args(program.get_args()).env_clear();
    command.envs(program.get_envs().filter_map(|(key, value)| Some((key, value?))));
    let tray = Tray::start_from(&user, command);
    tray.says("the end of some owners cannot be waited for");
    let idle: Vec<_> = (0..60).map(|_| connect(&user)).collect();
    let begun = ran();
    reason(&approve(&user));
    let took = ran() - begun;
    println!("answered after {took:?}");
    assert!(took < Duration::from_secs(5), "{took:?}");
    let doctor = user.run(&["doctor"]);
    let said = String::from_utf8_lossy(&doctor.stdout);
    assert!(said.contains("of 64 that it may have: it keeps the rest in reserve"), "{said}");
    assert_eq!(tray.said().matches("the end of some owners cannot be waited for").count(), 1, "{}", tray.said());
    drop((idle, owners));
}
