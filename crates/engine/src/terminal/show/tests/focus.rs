//! Whether a terminal has the focus: with a real tmux, and a compositor that is the test; with a real X server and
//! window manager, if `tests/visible/terminal.sh` provides them.

use super::*;
use std::io::{Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A compositor that speaks as sway does and has one window, of this process.
struct Fake {
    socket: PathBuf,
    has_focus: Arc<AtomicBool>,
}

impl Fake {
    fn start(scratch: &Path, pid: u32) -> Self {
        let (socket, has_focus) = (scratch.join("sway"), Arc::new(AtomicBool::new(true)));
        let (listener, focused) = (UnixListener::bind(&socket).unwrap(), Arc::clone(&has_focus));
        std::thread::spawn(move || {
            for mut stream in listener.incoming().map(Result::unwrap) {
                stream.read_exact(&mut [0; 14]).unwrap();
                let focused = focused.load(Ordering::SeqCst);
                let tree =
                    format!(r#"{{"id": 1, "pid": {pid}, "focused": {focused}, "nodes": [], "floating_nodes": []}}"#);
                let length = u32::try_from(tree.len()).unwrap().to_ne_bytes();
                stream.write_all(&[b"i3-ipc", &length[..], &[4, 0, 0, 0], tree.as_bytes()].concat()).unwrap();
            }
        });
        Self { socket, has_focus }
    }
}

#[test]
fn case_338_in_tmux_only_the_active_pane_that_a_client_shows_has_the_focus() {
    let (server, outer) = (Server::new(), Server::start(&["-s", "outer", "cat"]));
    // The terminal of the client is the outer server.
    let terminal = outer.ask(&["display-message", "-p", "#{pid}"]).parse().unwrap();
    let fake = Fake::start(server.scratch.path(), terminal);
    let desktop = Desktop { compositor: Some(Compositor::Sway(fake.socket.clone())), ..server.desktop("tmux") };
    let has_focus = |target: &str| {
        let (pid, tty) = server.pane(target);
        desktop.has_focus(pid, &[], Some(&tty))
    };
    let of_all = || ["a b:0.0", "a b:0.1", "a b:1.0", "other:0.0"].map(&has_focus);
    assert_eq!(of_all(), [false; 4], "no client shows them");
    let attach = format!("TMUX= exec tmux -S '{}' attach -t 'a b'", server.socket().display());
    outer.ask(&["new-window", "-d", "-t", "outer:1", &attach]);
    wait_until("a client", || !server.ask(&["list-clients"]).is_empty());
    assert_eq!(of_all(), [false, false, true, false]);
    server.ask(&["select-window", "-t", "a b:0"]);
    assert_eq!(of_all(), [false, true, false, false]);
    server.ask(&["select-pane", "-t", "a b:0.0"]);
    assert_eq!(of_all(), [true, false, false, false]);
    // Another session shows the same windows, and another one of them.
    server.ask(&["new-session", "-d", "-s", "twin", "-t", "a b"]);
    server.ask(&["select-window", "-t", "twin:1"]);
    assert_eq!(of_all(), [true, false, false, false]);
    // By the id that its agent names.
    let id = server.ask(&["display-message", "-p", "-t", "a b:0.0", "#{pane_id}"]);
    let named = Desktop { pane: Some(&id), compositor: desktop.compositor.clone(), ..server.desktop("tmux") };
    assert!(named.has_focus(u32::MAX, &[], None));
    fake.has_focus.store(false, Ordering::SeqCst);
    assert_eq!(of_all(), [false; 4], "another window has the focus");
    fake.has_focus.store(true, Ordering::SeqCst);
    assert_eq!(of_all(), [true, false, false, false]);
    // Nobody can tell.
    let silent = server.desktop("tmux");
    let (pid, tty) = server.pane("a b:0.0");
    assert!(!silent.has_focus(pid, &[], Some(&tty)));
    server.ask(&["detach-client", "-s", "a b"]);
    wait_until("no client", || server.ask(&["list-clients"]).is_empty());
    assert_eq!(of_all(), [false; 4]);
}

/// With a real display and window manager: a window, and a pane of tmux in another one.
#[test]
#[ignore = "wants a display: tests/visible/terminal.sh"]
fn case_338_a_real_window_has_the_focus() {
    if std::env::var_os("PILOTLIGHT_TEST_DISPLAY").is_none() {
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    let lasting = "echo $$ >\"$2\"; exec sleep 60";
    let [first, second] = ["first", "second"].map(|name| xterm(scratch.path(), name, lasting));
    let server = Server::new();
    let attach = format!("echo $$ >\"$2\"; exec tmux -S '{}' attach -t 'a b'", server.socket().display());
    let client = xterm(scratch.path(), "third", &attach);
    wait_until("a client", || !server.ask(&["list-clients"]).is_empty());
    let desktop = Desktop { display: None, ..server.desktop("tmux") };
    let of_all = || {
        let [first, second] = [first, second].map(|pid| has_focus(pid, &ancestors(pid), None, None));
        let [shown, hidden] = ["a b:1.0", "a b:0.0"].map(|target| {
            let (pid, tty) = server.pane(target);
            desktop.has_focus(pid, &[], Some(&tty))
        });
        [first, second, shown, hidden]
    };
    for (pid, expected) in [
        (first, [true, false, false, false]),
        (second, [false, true, false, false]),
        (client, [false, false, true, false]),
        (first, [true, false, false, false]),
    ] {
        show(pid, &ancestors(pid), None, None).unwrap();
        assert_eq!(of_all(), expected, "{pid}");
    }
    assert!(!has_focus(u32::MAX, &[1], None, None), "a process without a window");
}

/// Starts a terminal, killed on drop, with a program in it that records its pid. Returns that, too.
fn terminal(scratch: &Path, words: &[&str], script: &str) -> (KilledOnDrop, u32) {
    let (program, pid) = (scratch.join(words.join("-")), scratch.join(words.join("-") + ".pid"));
    write_program(&program, &format!("#!/bin/sh\necho $$ >'{}'\n{script}\n", pid.display()));
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).arg("-e").arg(&program).env_remove("TMUX").stderr(Stdio::null());
    let started = command.spawn().unwrap();
    let mut found = None;
    wait_until("the program in the terminal", || {
        found = std::fs::read_to_string(&pid).ok().and_then(|pid| pid.trim().parse().ok());
        found.is_some()
    });
    (KilledOnDrop(started), found.unwrap())
}

struct KilledOnDrop(Child);

impl Drop for KilledOnDrop {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

/// With a real sway: windows of its own and of Xwayland, and a pane of tmux in one.
#[test]
#[ignore = "wants sway: tests/visible/terminal.sh"]
fn case_338_a_real_window_under_sway_has_the_focus() {
    if std::env::var_os("PILOTLIGHT_TEST_SWAY").is_none() {
        return;
    }
    let (scratch, server) = (tempfile::tempdir().unwrap(), Server::new());
    let swaymsg =
        |words: &[&str]| Command::new("swaymsg").args(words).stdout(Stdio::null()).status().unwrap().success();
    let (_foot, first) = terminal(scratch.path(), &["foot", "-T", "first"], "exec sleep 60");
    let attach = format!("exec tmux -S '{}' attach -t 'a b'", server.socket().display());
    let (_client, _) = terminal(scratch.path(), &["foot", "-T", "client"], &attach);
    wait_until("a client", || !server.ask(&["list-clients"]).is_empty());
    let (_xterm, second) = terminal(scratch.path(), &["xterm", "-T", "second"], "exec sleep 60");
    let desktop = Desktop { compositor: Compositor::ours(), ..server.desktop("tmux") };
    let of_all = || {
        let [first, second] = [first, second].map(|pid| has_focus(pid, &ancestors(pid), None, None));
        let [shown, hidden] = ["a b:1.0", "a b:0.0"].map(|target| {
            let (pid, tty) = server.pane(target);
            desktop.has_focus(pid, &[], Some(&tty))
        });
        [first, second, shown, hidden]
    };
    for (title, expected) in [
        ("first", [true, false, false, false]),
        ("second", [false, true, false, false]),
        ("client", [false, false, true, false]),
        ("first", [true, false, false, false]),
    ] {
        wait_until("the window", || swaymsg(&[&format!("[title=\"^{title}$\"] focus")]));
        assert_eq!(of_all(), expected, "{title}");
    }
    assert!(swaymsg(&["workspace 2"]));
    assert_eq!(of_all(), [false; 4], "an empty workspace has the focus");
    // Case 346.
    for (pid, expected) in [(first, [true, false, false, false]), (second, [false, true, false, false])] {
        let words = show(pid, &ancestors(pid), None, None).unwrap();
        assert!(words.starts_with("the window of ") && words.ends_with(" is in front"), "{words}");
        assert_eq!(of_all(), expected, "{words}");
    }
    let (pid, tty) = server.pane("a b:0.0");
    let words = desktop.show(pid, &[], Some(&tty)).unwrap();
    assert!(words.contains("is selected, and the window of foot"), "{words}");
    assert_eq!(of_all(), [false, false, false, true], "{words}");
}
