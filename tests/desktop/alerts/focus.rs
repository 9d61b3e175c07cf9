//! Popups about a session that the user looks at. The test is the compositor, whose only window is its own: the sessions'
//! processes are its children. Real windows are in `crates/engine/src/terminal/show/tests/focus.rs`.

use super::*;
use std::io::{Read, Write};
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use tempfile::TempDir;

/// A compositor that speaks as sway does.
struct Compositor {
    scratch: TempDir,
    has_focus: Arc<AtomicBool>,
    /// How often it was asked.
    asked: Arc<AtomicUsize>,
}

impl Compositor {
    fn start() -> Self {
        let new = Self { scratch: tempfile::tempdir().unwrap(), has_focus: Arc::default(), asked: Arc::default() };
        new.has_focus.store(true, Ordering::SeqCst);
        let listener = UnixListener::bind(new.socket()).unwrap();
        let (has_focus, asked) = (Arc::clone(&new.has_focus), Arc::clone(&new.asked));
        std::thread::spawn(move || {
            for mut stream in listener.incoming().map(Result::unwrap) {
                stream.read_exact(&mut [0; 14]).unwrap();
                let (pid, focused) = (std::process::id(), has_focus.load(Ordering::SeqCst));
                let tree =
                    format!(r#"{{"id": 1, "pid": {pid}, "focused": {focused}, "nodes": [], "floating_nodes": []}}"#);
                let length = u32::try_from(tree.len()).unwrap().to_ne_bytes();
                stream.write_all(&[b"i3-ipc", &length[..], &[4, 0, 0, 0], tree.as_bytes()].concat()).unwrap();
                asked.fetch_add(1, Ordering::SeqCst);
            }
        });
        new
    }

    fn socket(&self) -> PathBuf {
        self.scratch.path().join("socket")
    }

    /// A desktop with this compositor, without tmux: the tests may run in one.
    fn desk(&self, settings: &str) -> Desk {
        let environment = [("SWAYSOCK", &*self.socket()), ("PATH", Path::new("/nowhere"))];
        Desk::with_environment(&format!("{NO_GRACE}{settings}"), |_| {}, &environment)
    }

    fn wait_asked(&self, times: usize) {
        let asked = || self.asked.load(Ordering::SeqCst);
        wait_until(SOON, "it is asked for the focus", || asked().to_string(), || (asked() >= times).then_some(()));
    }
}

#[test]
fn case_339_a_popup_waits_while_its_terminal_has_the_focus_and_is_dropped_when_answered() {
    let compositor = Compositor::start();
    let told = compositor.scratch.path().join("told");
    let settings = format!(
        "focus-delay = \"10m\"\n[[on-change]]\nrun = [\"/bin/sh\", \"-c\", \"exec /bin/cat >>'{}'\"]\n",
        told.display()
    );
    let desk = compositor.desk(&settings);
    let session = desk.working("Fix the parser");
    session.tool("a", "bash", "make");
    session.ask("r", "a");
    compositor.wait_asked(1);
    // Only the popup waits.
    desk.user.wait_status(&desk.panel, &session, "needs-permission");
    assert!(desk.panel.tooltip().contains("1 needs you"), "{}", desk.panel.tooltip());
    session.permit("r");
    session.tool_done("a");
    desk.user.wait_status(&desk.panel, &session, "working");
    compositor.has_focus.store(false, Ordering::SeqCst);
    desk.marker(1);
    compositor.wait_asked(2);
    let read = || std::fs::read_to_string(&told).unwrap_or_default();
    // Case 335: so does a command.
    let row = wait_until(SOON, "the command is run", read, || read().contains('\n').then(read));
    assert!(row.contains("\"failed\"") && !row.contains("needs-permission"), "{row}");
}

#[test]
fn case_339_a_popup_that_waited_comes_when_nothing_was_answered() {
    let compositor = Compositor::start();
    let desk = compositor.desk("focus-delay = \"4s\"\n");
    let session = desk.working("Fix the parser");
    let failed = Instant::now();
    session.fail("it is broken");
    let popup = desk.popups.wait_for(1);
    assert!(failed.elapsed() >= Duration::from_secs(5), "the delay, and the second for others: {:?}", failed.elapsed());
    assert_eq!(popup.title, "work failed");
    assert_eq!(compositor.asked.load(Ordering::SeqCst), 1, "asked once");
}

#[test]
fn case_339_a_popup_comes_at_once_where_nobody_can_tell() {
    let compositor = Compositor::start();
    let silent = UnixListener::bind(compositor.scratch.path().join("silent")).unwrap();
    for socket in ["absent", "silent"] {
        let socket = compositor.scratch.path().join(socket);
        let environment = [("SWAYSOCK", &*socket), ("PATH", Path::new("/nowhere"))];
        let settings = format!("{NO_GRACE}focus-delay = \"10m\"\n");
        let desk = Desk::with_environment(&settings, |_| {}, &environment);
        desk.marker(1);
    }
    drop(silent);
}
