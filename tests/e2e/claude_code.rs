//! The real Claude Code in a terminal: what its sessions are said to do, and what may be done with them.

mod answers;
mod installed;
mod rough;
mod rows;

use crate::support::claude::{Claude, ClaudeHome, program};
use crate::support::pilotlight::{CommandOutput, Pilot};
use crate::support::{SOON, tmux, wait_until};
use rustix::process::Signal;
use serde_json::Value;
use std::ffi::OsString;
use std::path::Path;
use std::time::{Duration, Instant};

/// Claude Code in a terminal, and Pilotlight. Fields drop from the top.
struct Stage {
    pilot: Pilot,
    claude: Claude,
    home: ClaudeHome,
    id: String,
}

impl Stage {
    fn new() -> Self {
        Self::with(&[])
    }

    /// One whose program has these arguments.
    fn with(arguments: &[&str]) -> Self {
        let home = ClaudeHome::new();
        let pilot = Pilot::of_folders(vec![home.dir()]);
        let claude = home.start(arguments);
        let id = claude.id();
        Self { pilot, claude, home, id }
    }

    fn wait_status(&self, status: &str, because: &str) -> Value {
        self.pilot.wait_status(&self.id, status, because)
    }
}

/// The whole life of a session: its process says what it does, the log what it is about.
#[test]
fn from_a_prompt_to_a_kill_and_a_resume() {
    let stage = Stage::new();
    let row = stage.wait_status("idle", "no prompt yet");
    assert_eq!((&row["agent"], &row["kind"]), (&"claude-code".into(), &"terminal".into()));
    assert_eq!(row["owner"]["pid"], stage.claude.pid());

    stage.claude.enter("SCRIPT:tool Paint the fence");
    stage.claude.wait_screen("Do you want to");
    let row = stage.wait_status("needs-permission", "asks for permission: Bash");
    let actions: Vec<_> = row["actions"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert!(!actions.contains(&"approve") && !actions.contains(&"resume"), "{actions:?}");
    stage.claude.accept("Do you want to");
    stage.wait_status("working", "running Bash");
    std::fs::write(stage.home.project().join("go"), "").unwrap();
    stage.claude.wait_screen("It is done.");
    stage.wait_status("idle", "done, your turn");

    stage.claude.enter("SCRIPT:ask Paint the gate");
    let row = stage.wait_status("needs-input", "Which colour?");
    assert_eq!(row["question"]["choices"], serde_json::json!(["Red", "Blue"]));
    stage.claude.accept("Enter to select");
    stage.wait_status("idle", "");

    stage.claude.enter("SCRIPT:silence Paint the shed");
    stage.wait_status("working", "the model thinks");
    stage.claude.signal(Signal::KILL);
    let row = stage.wait_status("crashed", "its process is gone");
    assert!(row["actions"].as_array().unwrap().contains(&"resume".into()), "{row}");

    let again = stage.home.start(&["--resume", &stage.id]);
    let row = stage.wait_status("idle", "");
    assert_eq!(row["owner"]["pid"], again.pid());
}

/// Given: the real program runs a workflow, whose agent asks and then works in a shell while the turn is over. -> What it asks
/// is told, and that it works in the background.
#[test]
fn case_542_an_agent_of_a_workflow_asks_and_works_in_the_background() {
    let stage = Stage::new();
    stage.claude.enter("SCRIPT:workflow Paint the fence");
    stage.claude.accept("Run a dynamic workflow?");
    let row = stage.wait_status("needs-permission", "asks for permission: Bash");
    assert_eq!(row["background"]["agents"], 1, "{row}");
    stage.claude.accept("Do you want to");
    let row = stage.wait_status("working", "1 background agent");
    assert_eq!(row["background"]["agents"], 1, "{row}");
    std::fs::write(stage.home.project().join("go"), "").unwrap();
    let row = stage.wait_status("idle", "");
    assert_eq!(row["background"]["agents"], 0, "{row}");
}

/// The session is ended by the process's own way, and what it left undone is said.
#[test]
#[ignore = "tests/long.sh"]
fn ended_by_a_command_in_the_middle_of_a_turn() {
    let stage = Stage::new();
    stage.claude.enter("SCRIPT:silence Paint the shed");
    stage.wait_status("working", "");
    let run = stage.pilot.run(&["stop", &stage.id, "--end", "--yes"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    stage.wait_status("ended", "no process runs it any more; in the middle of a turn");
}

/// Esc while the model is silent leaves nothing in the log.
#[test]
#[ignore = "tests/long.sh"]
fn interrupted_while_the_model_is_silent() {
    let stage = Stage::new();
    stage.claude.enter("SCRIPT:silence Paint the shed");
    stage.wait_status("working", "");
    stage.claude.wait_screen("esc to interrupt");
    stage.claude.press(&["Escape"]);
    stage.wait_status("idle", "");
}

/// With a display, as `tests/visible/terminal.sh` has: the pane that its process names is selected and its window raised,
/// and after a kill, a new window continues the session.
#[test]
#[ignore = "needs a display: tests/visible/terminal.sh"]
fn its_pane_is_shown_and_killed_it_is_resumed_in_xterm() {
    let Some(display) = display() else { return };
    let home = ClaudeHome::new();
    let pilot = Pilot::watching(vec![home.dir()], "", &on_display(&home, display));
    let claude = home.start_in_second_window();
    let id = claude.id();
    pilot.wait_status(&id, "idle", "no prompt yet");
    let socket = claude.tmux().socket();
    let attach = ["tmux", "-S", socket.to_str().unwrap(), "attach"];
    let (its, window) = Xterm::open("its terminal", &attach);
    let (other, front) = Xterm::open("in front", &["sleep", "600"]);
    xdotool(&["windowactivate", "--sync", &front]);
    tmux::on(&socket, &["select-window", "-t", ":0"]);

    pilot.click(&id, "Show its terminal");
    let is_active = || tmux::on(&socket, &["display-message", "-p", "#{pane_pid}"]).trim() == claude.pid().to_string();
    wait_until(SOON, "its pane is selected", || pilot.log(), || is_active().then_some(()));
    let in_front = || xdotool(&["getactivewindow"]).trim() == window;
    wait_until(SOON, "its window is in front", || pilot.log(), || in_front().then_some(()));
    picture("shown");
    drop((its, other));

    claude.enter("SCRIPT:plain Paint the fence");
    pilot.wait_status(&id, "idle", "done, your turn");
    claude.signal(Signal::KILL);
    pilot.wait_status(&id, "ended", "");
    pilot.click(&id, "Resume in a terminal");
    let row = pilot.wait_status(&id, "idle", "");
    assert_ne!(row["owner"]["pid"], claude.pid());
    wait_until(SOON, "the terminal's window is there", || pilot.log(), || find_window("xterm|claude|Claude"));
    picture("resumed");
    let pid = row["owner"]["pid"].as_u64().unwrap().try_into().unwrap();
    crate::support::process::signal(pid, Signal::TERM);
    // Without a prompt in between, a command that looks once takes the killed one, whose file is left, for the last.
    let ended = || (pilot.history(&id).last()? == "ended").then_some(());
    wait_until(SOON, "its end is seen", || pilot.log(), ended);
}

/// Case 339, with a display: whoever looks at the terminal that asks is not told of it, unless no answer comes.
#[test]
#[ignore = "needs a display: tests/visible/terminal.sh"]
fn case_339_its_popup_waits_while_its_terminal_has_the_focus_in_xterm() {
    let Some(display) = display() else { return };
    let home = ClaudeHome::new();
    let config = "[notifications]\nafter-start = \"1ms\"\n";
    let pilot = Pilot::watching(vec![home.dir()], config, &on_display(&home, display));
    let popups = pilot.popups();
    let claude = home.start_in_second_window();
    let id = claude.id();
    let socket = claude.tmux().socket();
    let attach = ["tmux", "-S", socket.to_str().unwrap(), "attach"];
    let (_its, window) = Xterm::open("its terminal", &attach);
    let (_other, front) = Xterm::open("elsewhere", &["sleep", "600"]);
    let ask = |focused: &str| {
        pilot.wait_status(&id, "idle", "");
        xdotool(&["windowactivate", "--sync", focused]);
        claude.enter("SCRIPT:tool Paint the fence");
        claude.wait_screen("Do you want to");
        pilot.wait_status(&id, "needs-permission", "");
        Instant::now()
    };
    let answer = || {
        claude.accept("Do you want to");
        std::fs::write(home.project().join("go"), "").unwrap();
        pilot.wait_status(&id, "idle", "done, your turn");
    };

    // Answered before it is due, it never comes: the next popup is the first.
    ask(&window);
    answer();
    let asked = ask(&window);
    let popup = popups.wait_for(1);
    assert!(asked.elapsed() >= Duration::from_secs(8), "{:?}, {popup:#?}", asked.elapsed());
    answer();
    let asked = ask(&front);
    popups.wait_for(2);
    assert!(asked.elapsed() < Duration::from_secs(8), "{:?}", asked.elapsed());
    assert_eq!(popups.received().len(), 2, "{:#?}", popups.received());
}

/// The display of `tests/visible/terminal.sh`.
fn display() -> Option<OsString> {
    std::env::var_os("PILOTLIGHT_TEST_DISPLAY").and_then(|_| std::env::var_os("DISPLAY"))
}

/// The variables of a tray on this display that finds Claude Code, and xterm as its terminal.
fn on_display(home: &ClaudeHome, display: OsString) -> Vec<(OsString, OsString)> {
    let path = format!("{}:/usr/bin:/bin", program().parent().unwrap().display());
    let of_home = home.environment().into_iter().filter(|(name, _)| *name != "HOME");
    let of_home = of_home.map(|(name, value)| (name.into(), value.into()));
    let own = [("DISPLAY".into(), display), ("TERMINAL".into(), "xterm".into()), ("PATH".into(), path.into())];
    of_home.chain(own).collect()
}

/// A window of xterm, closed in the end.
struct Xterm(std::process::Child);

impl Xterm {
    /// Opens it, and waits for its window. Returns the number of that, too.
    fn open(title: &str, program: &[&str]) -> (Self, String) {
        let mut command = std::process::Command::new("xterm");
        let child = command.args(["-T", title, "-e"]).args(program).env_remove("TMUX").spawn().unwrap();
        let window = wait_until(SOON, "its window is there", String::new, || find_window(title));
        (Self(child), window)
    }
}

impl Drop for Xterm {
    fn drop(&mut self) {
        let _ = self.0.kill(); // it may have been closed
        let _ = self.0.wait();
    }
}

/// Takes a picture of the display, if `PILOTLIGHT_TEST_PICTURE` names a file; `-what` is added to its name.
fn picture(what: &str) {
    let Some(file) = std::env::var_os("PILOTLIGHT_TEST_PICTURE") else { return };
    let file = Path::new(&file);
    let name = format!("{}-{what}.png", file.file_stem().unwrap().display());
    let mut command = std::process::Command::new("import");
    command.args(["-window", "root"]).arg(file.with_file_name(name));
    CommandOutput::of(command);
}

fn find_window(title: &str) -> Option<String> {
    xdotool(&["search", "--onlyvisible", "--name", title]).lines().next().map(str::to_owned)
}

fn xdotool(arguments: &[&str]) -> String {
    let mut command = std::process::Command::new("xdotool");
    command.args(arguments);
    CommandOutput::of(command).out
}
