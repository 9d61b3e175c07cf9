//! The owner of a session of the real CLI: an open session is not opened again, and a process that does not hold it is
//! left alone.

use crate::support::freeze::freeze;
use crate::support::home::{Folder, Home, old_cli};
use crate::support::model::Model;
use crate::support::person::{Manner, Person};
use crate::support::pilotlight::{CommandOutput, Pilot};
use crate::support::process::{is_live, kill, signal};
use crate::support::server::Server;
use crate::support::terminal::Terminal;
use crate::support::tmux;
use crate::support::{SOON, record, wait, wait_until};
use pilotlight_agents::copilot::log_format;
use pilotlight_core::limits::Limits;
use pilotlight_core::replay::{OwnerStory, Replay};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// A session of a terminal with one answered prompt, terminated cleanly.
fn ended(home: &Home, model: &Model) -> Folder {
    let terminal = Terminal::start(home, model, &[]);
    terminal.enter("SCRIPT:plain Paint the fence");
    terminal.folder.wait("assistant.turn_end");
    terminal.signal(Signal::TERM);
    terminal.folder.clone()
}

/// A session of a terminal that was killed while a tool ran.
fn crashed(home: &Home, model: &Model) -> Folder {
    let terminal = Terminal::start(home, model, &["--allow-all"]);
    terminal.enter("SCRIPT:tool Paint the fence");
    terminal.folder.wait("tool.execution_start");
    terminal.signal(Signal::KILL);
    home.release_tools();
    terminal.folder.clone()
}

fn offers(row: &Value, action: &str) -> bool {
    row["actions"].as_array().unwrap().contains(&json!(action))
}

/// Case 119: reported at once by all views, however the terminal resumed the session, and withdrawn when it closes.
#[test]
#[ignore = "tests/long.sh"]
fn case_119_a_resumed_terminal_is_idle_however_it_was_resumed() {
    let (home, model) = (Home::new("project"), Model::start());
    let folder = ended(&home, &model);
    let id = folder.id();
    let pilot = Pilot::start(&[&home]);
    pilot.wait_status(&id, "ended", "");
    let by_id = format!("--resume={id}");
    for arguments in [&[&*by_id][..], &["--resume", &id[..9]], &["--continue"]] {
        let terminal = Terminal::resume_by(&home, &model, &id, arguments);
        let row = pilot.wait_status(&id, "idle", "opened, not prompted yet");
        assert_eq!((&row["owner"]["pid"], &row["owner"]["state"]), (&json!(terminal.pid()), &json!("alive")), "{row}");
        assert!(folder.locks().is_empty() && !offers(&row, "resume") && !offers(&row, "end"), "{row}");
        for command in ["resume", "reconnect"] {
            for ran in [pilot.run(&[command, &id]), pilot.run_without_tray(&[command, &id])] {
                assert!(ran.code == Some(4) && ran.err.contains("has it open, not prompted yet"), "{ran:?}");
            }
        }
        drop(terminal);
        let row = pilot.wait_status(&id, "ended", "");
        assert!(offers(&row, "resume"), "{row}");
    }
}

/// Case 119: resumed from within a terminal that has another session.
#[test]
#[ignore = "tests/long.sh"]
fn case_119_a_session_chosen_from_the_list_is_found_by_the_log_of_its_process() {
    let (home, model) = (Home::new("project"), Model::start());
    let folder = ended(&home, &model);
    let terminal = Terminal::start(&home, &model, &[]);
    let pilot = Pilot::start(&[&home]);
    pilot.wait_status(&folder.id(), "ended", "");
    terminal.enter(&format!("/resume {}", folder.id()));
    terminal.wait_screen("Paint the fence");
    pilot.wait_status(&folder.id(), "idle", "opened, not prompted yet");
    let first = pilot.row(&terminal.folder.id()).unwrap();
    assert!(!offers(&first, "end"), "that would end both: {first}");
    terminal.enter("SCRIPT:plain And the gate");
    folder.wait_nth("assistant.turn_end", 2);
    let row = pilot.wait_status(&folder.id(), "idle", "done");
    assert_eq!(row["owner"]["pid"], terminal.pid());
    folder.assert_one_chain();
}

/// Case 181: the process writes no log of what it opens.
#[test]
#[ignore = "tests/long.sh"]
fn case_181_a_session_opened_by_a_terminal_that_writes_no_log_is_not_opened_again() {
    let (home, model) = (Home::new("project"), Model::start());
    let folder = ended(&home, &model);
    let id = folder.id();
    let pilot = Pilot::start(&[&home]);
    pilot.wait_status(&id, "ended", "");
    for level in ["none", "error"] {
        let refused = || {
            for command in ["resume", "reconnect"] {
                for ran in [pilot.run(&[command, &id]), pilot.run_without_tray(&[command, &id])] {
                    assert!(
                        ran.code == Some(4) && ran.err.contains("has it open, not prompted yet"),
                        "{level}: {ran:?}"
                    );
                }
            }
        };
        for arguments in [&["--continue"][..], &["--resume", &id[..9]]] {
            let arguments = [&["--log-level", level], arguments].concat();
            let terminal = Terminal::resume_by(&home, &model, &id, &arguments);
            pilot.wait_status(&id, "idle", "opened, not prompted yet");
            refused();
            drop(terminal);
            pilot.wait_status(&id, "ended", "");
        }
        // Even if its command line names another session.
        let other = Terminal::start(&home, &model, &["--log-level", level]);
        other.enter(&format!("/resume {id}"));
        other.wait_screen("Paint the fence");
        pilot.wait_status(&id, "idle", "opened, not prompted yet");
        refused();
        drop(other);
        pilot.wait_status(&id, "ended", "");
    }
}

/// Case 181: a server notes nothing either, but can be asked if it listens.
#[test]
#[ignore = "tests/long.sh"]
fn case_181_a_session_that_a_server_without_a_log_may_have_is_not_opened_unasked() {
    let (home, model) = (Home::new("project"), Model::start());
    let folder = ended(&home, &model);
    let id = folder.id();
    let server = Server::with_arguments(&home, &model, &["--log-level", "none"]);
    let client = server.connect();
    let desk = Desk::new(home, model);
    desk.configure("");
    let resume = || CommandOutput::of(pilotlight(desk.user.path(), &desk.home.dir(), &["resume", &id]));
    let session = server.resume(&client, &id, &Person::new(Manner::Approves), None);
    let ran = resume();
    assert!(ran.code == Some(4) && ran.err.contains(&format!("process {} has it open", server.pid())), "{ran:?}");
    // While it does not answer, nobody knows.
    freeze(server.pid());
    let ran = resume();
    assert!(ran.code == Some(4) && ran.err.contains("may have it open"), "{ran:?}");
    signal(server.pid(), Signal::CONT);
    assert!(desk.panes().is_empty());
    session.destroy();
    let ran = resume();
    assert_eq!((ran.code, desk.panes().len()), (Some(0), 1), "{ran:?}");
}

/// Case 119: loaded by a server for a client, which only that server's own log shows.
#[test]
#[ignore = "tests/long.sh"]
fn case_119_a_session_resumed_in_a_server_is_reported() {
    let (home, model) = (Home::new("project"), Model::start());
    let folder = ended(&home, &model);
    let server = Server::start(&home, &model);
    let client = server.connect();
    let pilot = Pilot::start(&[&home]);
    pilot.wait_status(&folder.id(), "ended", "");
    for _ in 0..2 {
        let session = server.resume(&client, &folder.id(), &Person::new(Manner::Approves), None);
        let row = pilot.wait_status(&folder.id(), "idle", "opened, not prompted yet");
        assert_eq!(row["owner"]["pid"], server.pid(), "{row}");
        assert!(folder.locks().is_empty() && !offers(&row, "resume"), "{row}");
        session.destroy();
        let row = pilot.wait_status(&folder.id(), "ended", "");
        assert!(offers(&row, "resume"), "{row}");
    }
}

/// Case 118: a program's session that its user resumed in a terminal is neither hosted nor prompted.
fn resumed_by_hand() {
    let (home, model) = (Home::new("project"), Model::start());
    let mut server = Server::start(&home, &model);
    let session = {
        let client = server.connect();
        let person = Person::new(Manner::Approves);
        let session = server.create(&client, Some(&person));
        session.send("SCRIPT:tool Paint the fence");
        session.folder.wait("permission.completed");
        session.folder.clone()
    };
    server.kill();
    home.release_tools();
    let pilot = Pilot::start(&[&home]);
    pilot.wait_status(&session.id(), "crashed", "");
    let terminal = Terminal::resume(&home, &model, &session.id());
    pilot.wait_status(&session.id(), "idle", "opened, not prompted yet");
    let before = session.types().len();
    for arguments in [&["reconnect", &session.id()][..], &["reconnect", "--resend", &session.id()]] {
        for ran in [pilot.run(arguments), pilot.run_without_tray(arguments)] {
            assert!(ran.code == Some(4) && ran.err.contains("has it open, not prompted yet"), "{ran:?}");
        }
    }
    assert_eq!(session.types().len(), before);
    terminal.enter("SCRIPT:plain Go on");
    session.wait("session.resume");
    session.wait("assistant.turn_end");
    session.assert_one_chain();
}

#[test]
fn case_118_a_session_resumed_by_hand_is_not_hosted() {
    resumed_by_hand();
}

#[test]
#[ignore = "ten times as often: tests/long.sh"]
fn case_118_a_session_resumed_by_hand_is_not_hosted_often() {
    (0..10).for_each(|_| resumed_by_hand());
}

/// Case 124: a planted lock in an ended session, which names the process of another session.
fn planted_lock() {
    let (home, model) = (Home::new("project"), Model::start());
    let planted = ended(&home, &model);
    let terminal = Terminal::start(&home, &model, &["--ui-server", "--port", "0"]);
    terminal.enter("SCRIPT:plain Paint the gate");
    terminal.folder.wait("assistant.turn_end");
    let pid = terminal.pid();
    std::fs::write(planted.path.join(format!("inuse.{pid}.lock")), format!("{pid}\n")).unwrap();
    let pilot = Pilot::start(&[&home]);
    let row = pilot.wait_status(&planted.id(), "ended", "");
    assert_eq!((&row["owner"]["state"], &row["actions"]), (&json!("unknown"), &json!([])), "{row}");
    for command in [&["stop", "--yes"][..], &["reconnect"], &["resume"]] {
        let ran = pilot.run(&[command, &[&planted.id()]].concat());
        assert!(ran.code == Some(4) && ran.err.contains("does not have it open"), "{command:?}: {ran:?}");
    }
    assert!(is_live(pid) && !planted.types().contains(&"session.resume".to_owned()));
    let row = pilot.row(&terminal.folder.id()).unwrap();
    assert!(offers(&row, "end") && offers(&row, "reconnect"), "{row}");
    pilot.click(&terminal.folder.id(), "End it");
    terminal.folder.wait("session.shutdown");
}

#[test]
#[ignore = "tests/long.sh"]
fn case_124_a_planted_lock_affects_neither_session() {
    planted_lock();
}

#[test]
#[ignore = "ten times as often: tests/long.sh"]
fn case_124_a_planted_lock_affects_neither_session_often() {
    (0..10).for_each(|_| planted_lock());
}

/// Case 123: in a copy of a home with a running terminal, nothing is stopped.
fn copied_home() {
    let (home, model) = (Home::new("project"), Model::start());
    let terminal = Terminal::start(&home, &model, &["--allow-all"]);
    terminal.enter("SCRIPT:tool Paint the fence");
    terminal.folder.wait("tool.execution_start");
    stop_in_a_copy(&home, &terminal);
    home.release_tools();
    terminal.folder.wait_nth("assistant.turn_end", 2);
}

#[test]
fn case_123_an_order_in_a_copied_home_stops_nothing() {
    copied_home();
}

#[test]
#[ignore = "ten times as often: tests/long.sh"]
fn case_123_an_order_in_a_copied_home_stops_nothing_often() {
    (0..10).for_each(|_| copied_home());
}

/// Copies the home of a terminal, and tries to stop its session there.
fn stop_in_a_copy(home: &Home, terminal: &Terminal) {
    let copy = home.root().join("copy");
    assert!(Command::new("cp").arg("-a").arg(home.dir()).arg(&copy).status().unwrap().success());
    let ran = CommandOutput::of(pilotlight(home.root(), &copy, &["stop", "--yes", &terminal.folder.id()]));
    assert!(ran.code == Some(4) && ran.err.contains("does not have it open"), "{ran:?}");
    assert!(is_live(terminal.pid()));
}

/// Pilotlight as run by a user without a desktop, for one Copilot home.
fn pilotlight(user: &Path, home: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pilotlight"));
    command
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", user)
        .env("PILOTLIGHT_CONFIG", user.join("pilotlight.toml"))
        .env("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nowhere/bus")
        .env("LANG", "C.UTF-8")
        .args(arguments)
        .arg("--home")
        .arg(home)
        .stdin(Stdio::null());
    command
}

/// A user without a desktop, whose terminals open in a separate tmux server.
struct Desk {
    user: TempDir,
    model: Model,
    home: Home,
}

impl Desk {
    fn new(home: Home, model: Model) -> Self {
        let user = tempfile::Builder::new().prefix("pilotlight-user-").tempdir().unwrap();
        Self { user, model, home }
    }

    fn configure(&self, more: &str) {
        let program = self.home.program(&self.model).display().to_string();
        let socket = self.socket().display().to_string();
        let words =
            ["tmux", "-S", &socket, "-f", "/dev/null", "new-session", "-d", "-x", "140", "-y", "45", "{command}"];
        let text = format!("[actions]\ncopilot = {program:?}\nterminal = {words:?}\n{more}");
        std::fs::write(self.user.path().join("pilotlight.toml"), text).unwrap();
    }

    fn socket(&self) -> PathBuf {
        self.user.path().join("tmux")
    }

    fn start(&self, arguments: &[&str]) -> Child {
        let mut command = pilotlight(self.user.path(), &self.home.dir(), arguments);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// Starts a tray that serves commands and shows nothing.
    fn tray(&self) -> Child {
        let mut command = pilotlight(self.user.path(), &self.home.dir(), &["tray"]);
        let tray = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let socket = self.user.path().join(".local/state/pilotlight/pilotlight.sock");
        wait_until(SOON, "the tray serves", String::new, || socket.exists().then_some(()));
        tray
    }

    fn tmux(&self, arguments: &[&str]) -> String {
        tmux::on(&self.socket(), arguments)
    }

    /// The opened terminals.
    fn panes(&self) -> Vec<String> {
        self.tmux(&["list-panes", "-a", "-F", "#{pane_id}"]).lines().map(str::to_owned).collect()
    }

    /// Prompts in a terminal, once it accepts a prompt.
    fn prompt(&self, pane: &str, words: &str) {
        tmux::prompt(&self.socket(), pane, words);
    }
}

impl Drop for Desk {
    fn drop(&mut self) {
        let pids: Vec<u32> =
            self.tmux(&["list-panes", "-a", "-F", "#{pane_pid}"]).lines().filter_map(|pid| pid.parse().ok()).collect();
        self.tmux(&["kill-server"]);
        // They might still write into folders that are about to be removed.
        wait(SOON, || (!pids.iter().any(|pid| is_live(*pid))).then_some(()));
    }
}

/// How one session is resumed twice.
#[derive(Clone, Copy, Debug)]
struct Twice {
    crashed: bool,
    apart: Duration,
    tray: bool,
    short_limits: bool,
}

/// Resumes a session twice, prompts in every opened terminal, and asserts that only one process wrote the log.
fn resume_twice(how: Twice) {
    let (home, model) = (Home::new("project"), Model::start());
    let folder = if how.crashed { crashed(&home, &model) } else { ended(&home, &model) };
    let desk = Desk::new(home, model);
    let limits = "[limits]\nfresh-quiet = \"1s\"\nfresh-stuck = \"2s\"\nthinking-quiet = \"1s\"\nthinking-stuck = \"2s\"\nresumed = \"1s\"\n";
    desk.configure(if how.short_limits { limits } else { "" });
    let mut tray = how.tray.then(|| desk.tray());
    let start = Instant::now();
    let first = desk.start(&["resume", &folder.id()]);
    wait(how.apart, || (start.elapsed() >= how.apart).then_some(()));
    let second = desk.start(&["resume", &folder.id()]);
    let outputs: Vec<_> = [first, second].map(|child| child.wait_with_output().unwrap()).into();
    let panes = desk.panes();
    for (n, pane) in panes.iter().enumerate() {
        desk.prompt(pane, &format!("SCRIPT:plain Go on {n}"));
    }
    let prompts = |folder: &Folder| folder.types().iter().filter(|kind| *kind == "user.message").count();
    wait_until(SOON, "it was prompted", || folder.dump(), || (prompts(&folder) > panes.len()).then_some(()));
    folder.wait("session.resume");
    let live: Vec<u32> = folder.locks().into_iter().filter(|pid| is_live(*pid)).collect();
    let mut codes: Vec<_> = outputs.iter().map(|output| output.status.code()).collect();
    codes.sort_unstable();
    if let Some(tray) = &mut tray {
        let _ = tray.kill();
        let _ = tray.wait();
    }
    assert_eq!(
        (panes.len(), live.len(), &codes[..]),
        (1, 1, &[Some(0), Some(4)][..]),
        "{how:?}: {outputs:?}\n{}",
        folder.dump()
    );
    folder.assert_one_chain();
}

/// Case 117: two combinations. tests/long.sh runs all.
#[test]
#[ignore = "tests/long.sh"]
fn case_117_a_session_resumed_twice_opens_once() {
    for (crashed, millis, tray) in [(true, 0, false), (false, 600, true)] {
        resume_twice(Twice { crashed, apart: Duration::from_millis(millis), tray, short_limits: !crashed });
    }
}

/// Kills the terminal of a working session, and resumes the session at once. The resume waits while the process is
/// still exiting.
fn resume_right_after_a_kill(tray: bool) {
    let (home, model) = (Home::new("project"), Model::start());
    let terminal = Terminal::start(&home, &model, &["--allow-all"]);
    terminal.enter("SCRIPT:tool Paint the fence");
    terminal.folder.wait("tool.execution_start");
    home.release_tools();
    let (folder, pid) = (terminal.folder.clone(), terminal.pid());
    let desk = Desk::new(home, model);
    desk.configure("");
    let mut tray = tray.then(|| desk.tray());
    signal(pid, Signal::KILL);
    let output = desk.start(&["resume", &folder.id()]).wait_with_output().unwrap();
    if let Some(tray) = &mut tray {
        let _ = tray.kill();
        let _ = tray.wait();
    }
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    // Just after the kill, Copilot may ask whether the session is in use, so the screen is not checked.
    assert_eq!(desk.panes().len(), 1, "{output:?}");
}

#[test]
fn case_117_a_session_whose_terminal_was_just_killed_is_resumed() {
    [false, true].into_iter().for_each(resume_right_after_a_kill);
}

#[test]
#[ignore = "ten times as often: tests/long.sh"]
fn case_117_a_session_whose_terminal_was_just_killed_is_resumed_often() {
    (0..10).for_each(|_| [false, true].into_iter().for_each(resume_right_after_a_kill));
}

/// Copilot takes a zombie for a live owner, and asks what to do. So the resume waits until the killed process is
/// reaped. If it is not, the command reports what Copilot will ask.
#[test]
#[ignore = "tests/long.sh"]
fn case_117_copilots_question_about_a_zombie_is_avoided_or_announced() {
    for is_reaped in [true, false] {
        let (home, model) = (Home::new("project"), Model::start());
        let mut server = Server::start(&home, &model);
        let session = server.create(&server.connect(), Some(&Person::new(Manner::Approves)));
        session.send("SCRIPT:tool Paint the fence");
        session.folder.wait("tool.execution_start");
        home.release_tools();
        let folder = session.folder.clone();
        // It is not reaped yet.
        kill(server.pid());
        let desk = Desk::new(home, model);
        desk.configure("");
        let resume = desk.start(&["resume", &folder.id()]);
        if is_reaped {
            server.kill();
        }
        let output = resume.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(stdout.contains("asks there whether the session is in use"), !is_reaped, "{stdout}");
        let panes = desk.panes();
        assert_eq!(panes.len(), 1, "{output:?}");
        let screen = || desk.tmux(&["capture-pane", "-p", "-t", &panes[0]]);
        if is_reaped {
            desk.prompt(&panes[0], "SCRIPT:plain Go on");
            folder.wait("session.resume");
            assert!(!screen().contains("Session in use"), "{}", screen());
        } else {
            let asks = || screen().contains("Resume anyway").then_some(());
            wait_until(SOON, "Copilot asks", screen, asks);
        }
    }
}

/// Cases 116 and 117: 40 sessions, crashed and ended, with and without a tray.
#[test]
#[ignore = "takes minutes: tests/long.sh"]
fn case_116_forty_sessions_resumed_twice_open_once() {
    let mut tried = 0;
    for millis in [0, 600, 1200, 1800, 2500, 5000, 12_000, 15_000, 0, 600] {
        for (crashed, tray) in [(true, false), (true, true), (false, false), (false, true)] {
            let how = Twice { crashed, apart: Duration::from_millis(millis), tray, short_limits: tried % 2 == 0 };
            resume_twice(how);
            tried += 1;
            eprintln!("{tried}: {how:?}");
        }
    }
    assert_eq!(tried, 40);
}

/// Cases 119, 123 and 125 with a release that creates no hold file: the open files of its process identify its home,
/// and only a confirmed command ends it.
#[test]
#[ignore = "needs an older CLI: tests/long.sh"]
fn case_125_an_older_release_is_ended_only_by_a_confirmed_command() {
    let (home, model) = (Home::with_cli("project", old_cli()), Model::start());
    let terminal = Terminal::start(&home, &model, &[]);
    terminal.enter("SCRIPT:plain Paint the fence");
    terminal.folder.wait("assistant.turn_end");
    let id = terminal.folder.id();
    assert!(!terminal.folder.path.join(format!("inuse.{}.hold", terminal.pid())).exists());
    let pilot = Pilot::start(&[&home]);
    let row = pilot.wait_status(&id, "idle", "done");
    assert_eq!(row["owner"]["state"], "alive");
    pilot.wait_menu(&id, "use `pilotlight stop`");
    // A copy of its home does not belong to this process.
    stop_in_a_copy(&home, &terminal);
    let ran = pilot.run(&["stop", "--yes", &id]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    pilot.wait_status(&id, "ended", "");
    // It owns the session again as soon as it resumes it.
    let again = Terminal::resume(&home, &model, &id);
    let row = pilot.row_where(&id, "it is owned again", |row| row["owner"]["state"] == "alive");
    assert_eq!(row["owner"]["pid"], again.pid());
    let ran = pilot.run(&["resume", &id]);
    assert_eq!(ran.code, Some(4), "{ran:?}");
}

/// Whether the log of this session says that two processes write it.
fn is_forked(folder: &Folder) -> bool {
    let mut replay = Replay::new(OwnerStory::Alive, Limits::default(), log_format::parse);
    let log = std::fs::read(folder.log()).unwrap();
    log.split(|&byte| byte == b'\n').for_each(|line| replay.line(line, &mut Vec::new()));
    replay.facts.forked
}

/// Case 160: Copilot writes the abort, the request's end and the round's end in another order than that of their chain.
#[test]
#[ignore = "tests/long.sh"]
fn case_160_a_stop_while_a_request_is_open_is_no_conflict() {
    let (home, model) = (Home::new("project"), Model::start());
    let mut server = Server::start(&home, &model);
    let pilot = Pilot::start(&[&home]);
    let client = server.connect();
    let session = server.create(&client, Some(&Person::new(Manner::Waits)));
    let (id, folder) = (session.id(), session.folder.clone());
    let reason = |row: &Value| row["because"].as_str().unwrap_or_default().to_owned();
    for (n, script) in ["subtool", "tool", "two"].iter().enumerate() {
        session.send(&format!("SCRIPT:{script} Paint the fence"));
        folder.wait_nth("permission.requested", n + 1);
        pilot.wait_status(&id, "needs-permission", "");
        session.abort();
        folder.wait_nth("abort", n + 1);
        let row = pilot.wait_status(&id, "idle", "stopped");
        assert!(!reason(&row).contains("conflict") && !is_forked(&folder), "{row}\n{}", folder.dump());
    }
    // Another connection to the same process, and then another process.
    let other = server.connect();
    let joined = server.resume(&other, &id, &Person::new(Manner::Waits), None);
    let asked = folder.types().iter().filter(|kind| *kind == "permission.requested").count();
    joined.send("SCRIPT:tool And the gate");
    folder.wait_nth("permission.requested", asked + 1);
    joined.abort();
    folder.wait_nth("abort", 4);
    pilot.wait_status(&id, "idle", "stopped");
    assert!(!is_forked(&folder), "{}", folder.dump());
    server.kill();
    let server = Server::start(&home, &model);
    let client = server.connect();
    server.resume(&client, &id, &Person::new(Manner::Approves), None).send("SCRIPT:plain Go on");
    let row = pilot.wait_status(&id, "idle", "done");
    assert!(!reason(&row).contains("conflict") && !is_forked(&folder), "{row}\n{}", folder.dump());
    record::keep(&home, "51-stopped-while-a-request-is-open");
}

/// Case 87: neither of them had a lock when the other one resumed the session.
#[test]
#[ignore = "tests/long.sh"]
fn case_87_two_terminals_that_resumed_a_session_are_a_conflict() {
    let (home, model) = (Home::new("project"), Model::start());
    let folder = ended(&home, &model);
    let id = folder.id();
    let [one, two] = [(); 2].map(|()| Terminal::resume(&home, &model, &id));
    one.enter("SCRIPT:plain Go on");
    folder.wait_nth("assistant.turn_end", 2);
    assert!(!is_forked(&folder), "{}", folder.dump());
    two.enter("SCRIPT:plain And the gate");
    folder.wait_nth("assistant.turn_end", 3);
    assert!(is_forked(&folder), "{}", folder.dump());
    assert!(folder.events().iter().all(|event| event["data"]["alreadyInUse"] != true), "{}", folder.dump());
    one.enter("SCRIPT:plain And the door");
    folder.wait_nth("assistant.turn_end", 4);
    assert!(is_forked(&folder), "{}", folder.dump());
    Pilot::start(&[&home]).wait_status(&id, "idle", "conflict");
}

/// Case 87: a server that loaded a terminal's session long ago.
#[test]
#[ignore = "tests/long.sh"]
fn case_87_a_terminal_and_a_server_are_a_conflict_however_much_was_written_between() {
    let (home, model) = (Home::new("project"), Model::start());
    let terminal = Terminal::start(&home, &model, &["--allow-all"]);
    terminal.enter("SCRIPT:plain Paint the fence");
    let folder = terminal.folder.clone();
    folder.wait("assistant.turn_end");
    let server = Server::start(&home, &model);
    let client = server.connect();
    let session = server.resume(&client, &folder.id(), &Person::new(Manner::Approves), None);
    terminal.enter("SCRIPT:mixed9 And the gate");
    folder.wait_nth("assistant.turn_end", 12);
    session.send("SCRIPT:plain And the door");
    folder.wait_nth("assistant.turn_end", 13);
    assert!(is_forked(&folder), "{}", folder.dump());
    Pilot::start(&[&home]).wait_status(&folder.id(), "idle", "conflict");
}
