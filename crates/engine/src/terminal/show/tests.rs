//! Tests with a real tmux on its own sockets, a tmux that hangs and, if `tests/visible/terminal.sh` provides a display,
//! windows.

mod focus;
mod place;

use super::*;
use crate::terminal::Terminals;
use crate::terminal::tests::{wait_until, write_program};
use std::ffi::OsStr;
use std::os::unix::net::UnixListener;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// A display without an X server.
const NO_DISPLAY: &str = ":4242";

impl Desktop<'_> {
    /// One without anything.
    fn none() -> Self {
        Self {
            tmux: Path::new("tmux"),
            socket: None,
            display: Some(NO_DISPLAY),
            programs: None,
            pane: None,
            wayland: false,
            compositor: None,
        }
    }
}

/// A tmux server, killed on drop.
struct Server {
    scratch: TempDir,
}

impl Server {
    /// Two sessions: the first has two windows, of which the first has two panes. `cat` runs in each pane.
    fn new() -> Self {
        let server = Self::start(&["-s", "a b", "-x", "80", "-y", "24", "cat"]);
        server.ask(&["split-window", "-t", "a b:0", "cat"]);
        server.ask(&["new-window", "-t", "a b:1", "cat"]);
        server.ask(&["new-session", "-d", "-s", "other", "cat"]);
        server
    }

    fn start(words: &[&str]) -> Self {
        let server = Self { scratch: tempfile::tempdir().unwrap() };
        server.ask(&[&["new-session", "-d"], words].concat());
        server
    }

    fn socket(&self) -> PathBuf {
        self.scratch.path().join("a socket,1")
    }

    fn ask(&self, words: &[&str]) -> String {
        let mut command = Command::new("tmux");
        command.env_remove("TMUX").args(["-u", "-f", "/dev/null", "-S"]).arg(self.socket()).args(words);
        let output = command.output().unwrap();
        assert!(output.status.success(), "tmux {words:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    /// The pid in a pane, and its terminal.
    fn pane(&self, target: &str) -> (u32, PathBuf) {
        let answer = self.ask(&["display-message", "-p", "-t", target, "#{pane_pid} #{pane_tty}"]);
        let (pid, tty) = answer.split_once(' ').unwrap();
        (pid.parse().unwrap(), tty.into())
    }

    /// The window and pane that the session shows.
    fn shown(&self, session: &str) -> String {
        self.ask(&["display-message", "-p", "-t", session, "#{window_index}.#{pane_index}"])
    }

    fn desktop<'a>(&self, tmux: &'a str) -> Desktop<'a> {
        Desktop { tmux: Path::new(tmux), socket: Some(self.socket()), ..Desktop::none() }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.ask(&["kill-server"]);
    }
}

#[test]
fn a_pane_is_found_by_its_terminal_and_selected() {
    let server = Server::new();
    let (pid, tty) = server.pane("a b:0.0");
    assert_eq!(server.shown("a b"), "1.0");
    let no_process = u32::MAX;
    let why = server.desktop("tmux").show(no_process, &[], Some(&tty)).unwrap_err();
    let socket = server.socket();
    let expected = format!(
        "the terminal of process {no_process} cannot be shown: it runs in pane 0.0 of the tmux session a b, but no terminal \
         shows that tmux session. In a terminal, type: tmux -S '{}' attach -t '$0'",
        socket.display()
    );
    assert_eq!(why, expected);
    assert_eq!(server.shown("a b"), "0.0");
    // The command in the message works in a shell.
    let line = why.rsplit("type: ").next().unwrap().replace("attach", "has-session");
    assert!(Command::new("sh").args(["-c", &line]).status().unwrap().success(), "{line}");
    // By the pane's first process, for a program in it that has a terminal of its own.
    server
        .desktop("tmux")
        .show(no_process, &[no_process, server.pane("a b:1.0").0, 1], Some(Path::new("/dev/pts/x")))
        .unwrap_err();
    assert_eq!(server.shown("a b"), "1.0");
    assert_eq!(server.shown("other"), "0.0");
    assert_ne!(pid, server.pane("other:0.0").0);
}

/// The session's tmux is shown in a pane of another tmux, which has no client.
#[test]
fn the_client_of_a_tmux_may_be_in_another() {
    let (inner, outer) = (Server::new(), Server::start(&["-s", "outer", "cat"]));
    let attach = format!("TMUX= exec tmux -S '{}' attach -t 'a b'", inner.socket().display());
    outer.ask(&["new-window", "-d", "-t", "outer:1", &attach]);
    wait_until("a client", || !inner.ask(&["list-clients"]).is_empty());
    let (pid, tty) = inner.pane("a b:0.1");
    // The outer server is normally found by the environment of the client. `attach` above cleared it, so it is set
    // here.
    let mut desktop = inner.desktop("tmux");
    let message = desktop.show(pid, &[], Some(&tty)).unwrap();
    assert!(
        message.starts_with("pane 0.1 of the tmux session a b is selected in a terminal that could not be brought to"),
        "{message}"
    );
    assert_eq!(inner.shown("a b"), "0.1");
    desktop.socket = Some(outer.socket());
    let message = desktop.show(pid, &[], Some(&tty)).unwrap();
    assert!(
        message.contains("it runs in pane 1.0 of the tmux session outer, but no terminal shows that tmux session"),
        "{message}"
    );
    assert_eq!(outer.shown("outer"), "1.0");
}

#[test]
fn a_session_with_a_client_is_preferred_to_another_with_the_same_pane() {
    let (inner, outer) = (Server::new(), Server::start(&["-s", "outer", "cat"]));
    inner.ask(&["link-window", "-d", "-s", "a b:0", "-t", "other:7"]);
    let attach = format!("TMUX= exec tmux -S '{}' attach -t other", inner.socket().display());
    outer.ask(&["new-window", "-d", "-t", "outer:1", &attach]);
    wait_until("a client", || !inner.ask(&["list-clients"]).is_empty());
    let (pid, tty) = inner.pane("a b:0.0");
    let message = inner.desktop("tmux").show(pid, &[], Some(&tty)).unwrap();
    assert!(message.starts_with("pane 7.0 of the tmux session other is selected"), "{message}");
}

#[test]
fn a_terminal_that_cannot_be_found_is_explained() {
    let server = Server::new();
    let show = |desktop: &Desktop<'_>| desktop.show(4_000_000, &[1], None).unwrap_err();
    let mut desktop = server.desktop("tmux");
    let begin = "the terminal of process 4000000 cannot be shown: it runs in no tmux pane, and ";
    assert_eq!(show(&desktop), format!("{begin}there is no display that could show its window"));
    desktop.wayland = true;
    let wayland = "this desktop is Wayland, which lets no program raise another's window";
    assert_eq!(show(&desktop), format!("{begin}{wayland}"));
    desktop.socket = None;
    assert_eq!(show(&desktop), format!("{begin}{wayland}"));
    let desktop = server.desktop("/absent/tmux");
    assert!(show(&desktop).contains("because there is no tmux program here, and there is no display"));
    let desktop = server.desktop("/bin/false");
    assert!(show(&desktop).starts_with(begin));
}

#[test]
fn a_tmux_that_hangs_is_not_waited_for() {
    let scratch = tempfile::tempdir().unwrap();
    let (program, pid, socket) =
        (scratch.path().join("tmux"), scratch.path().join("pid"), scratch.path().join("socket"));
    write_program(&program, &format!("#!/bin/sh\necho $$ >'{}'\nexec sleep 600\n", pid.display()));
    let _listener = UnixListener::bind(&socket).unwrap();
    let desktop = Desktop { tmux: &program, socket: Some(socket), ..Desktop::none() };
    let begun = Instant::now();
    let why = desktop.show(4_000_000, &[], Some(Path::new("/dev/pts/0"))).unwrap_err();
    assert!(why.contains("tmux did not answer within 2 s, and there is no display"), "{why}");
    assert!(begun.elapsed() < Duration::from_secs(10));
    let pid = std::fs::read_to_string(pid).unwrap();
    assert!(!Path::new("/proc").join(pid.trim()).exists(), "it is killed, and leaves no zombie");
}

/// A process with a variable in its environment, killed on drop.
struct Running(Child);

impl Running {
    fn with(name: &str, value: impl AsRef<OsStr>) -> Self {
        let mut command = Command::new("cat");
        let running = Self(command.env(name, value).stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap());
        wait_until("the new program", || variable(running.0.id(), name).is_some());
        running
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

/// Anything but a socket of ours is ignored.
#[test]
fn the_server_of_a_process_is_found_by_its_environment() {
    let server = Server::new();
    let socket = server.socket();
    let found = |value: &str| tmux::socket_in(OsStr::new(value));
    assert_eq!(found(&format!("{},123,0", socket.display())), Some(socket.clone()));
    let scratch = server.scratch.path().display();
    for nothing in [
        "",
        ",,",
        "1,2",
        "relative,1,2",
        "/etc/passwd,1,2",
        &format!("{scratch},1,2"),
        &format!("{scratch}/absent,1,2"),
    ] {
        assert_eq!(found(nothing), None, "{nothing}");
    }
    // It is found without a default server, too.
    let running = Running::with("TMUX", format!("{},1,0", socket.display()));
    wait_until("the new program", || variable(running.0.id(), "TMUX").is_some());
    let desktop = Desktop::none();
    let (_, tty) = server.pane("other:0.0");
    let why = desktop.show(running.0.id(), &[], Some(&tty)).unwrap_err();
    assert!(why.contains("it runs in pane 0.0 of the tmux session other, but"), "{why}");
}

#[test]
fn the_variables_of_a_process_are_read() {
    let running = Running::with("PILOTLIGHT_X", "a=b");
    let child = running.0.id();
    assert_eq!(variable(child, "PILOTLIGHT_X").unwrap(), "a=b");
    assert_eq!(variable(child, "PILOTLIGHT"), None);
    assert_eq!(variable(u32::MAX, "PILOTLIGHT_X"), None);
}

/// Opens an xterm with a program that records its pid, and returns the pid.
fn xterm(scratch: &Path, name: &str, script: &str) -> u32 {
    let (program, pid) = (scratch.join(name), scratch.join(format!("{name}.pid")));
    write_program(&program, &format!("#!/bin/sh\n{script}\n"));
    let command = [program.into(), "--resume=36535f61-5c7b-4f09-a70b-2f8aed970001".into(), pid.clone().into()];
    Terminals::new(Some(vec!["xterm".into()])).open(&command, None, &[]).unwrap();
    let mut found = None;
    wait_until("the program in the terminal", || {
        found = std::fs::read_to_string(&pid).ok().and_then(|pid| pid.trim().parse().ok());
        found.is_some()
    });
    found.unwrap()
}

/// With two real windows and a window manager: raises a window directly, and through tmux.
#[test]
#[ignore = "wants a display: tests/visible/terminal.sh"]
fn a_real_window_comes_to_the_front() {
    if std::env::var_os("PILOTLIGHT_TEST_DISPLAY").is_none() {
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    let lasting = "echo $$ >\"$2\"; exec sleep 20";
    let first = xterm(scratch.path(), "first", lasting);
    let second = xterm(scratch.path(), "second", lasting);
    for pid in [first, second, first] {
        let ancestors = ancestors(pid);
        let message = show(pid, &ancestors, None, None).unwrap();
        assert_eq!(message, format!("the window of xterm (process {}) is in front", ancestors[0]));
    }
    let server = Server::new();
    let attach = format!("echo $$ >\"$2\"; exec tmux -S '{}' attach -t 'a b'", server.socket().display());
    let client = xterm(scratch.path(), "third", &attach);
    wait_until("a client", || !server.ask(&["list-clients"]).is_empty());
    show(second, &ancestors(second), None, None).unwrap();
    let (pid, tty) = server.pane("a b:0.0");
    let desktop = Desktop { display: None, ..server.desktop("tmux") };
    let message = desktop.show(pid, &[], Some(&tty)).unwrap();
    let window = format!("the window of xterm (process {}) is in front", ancestors(client)[0]);
    assert_eq!(message, format!("pane 0.0 of the tmux session a b is selected, and {window}"));
    // A process without a window gets none raised.
    let why = show(u32::MAX, &[1], None, None).unwrap_err();
    assert!(why.ends_with("it runs in no tmux pane, and no window here belongs to it or to what started it"), "{why}");
}
