//! A crash beside other Copilots of the same home: whatever else runs there, it is told and stays told, and the session can
//! be resumed.

use super::bridge::bridged_config;
use crate::support::desktop::popups::Popups;
use crate::support::home::{Folder, Home};
use crate::support::model::Model;
use crate::support::pilotlight::Pilot;
use crate::support::process::is_live;
use crate::support::server::Server;
use crate::support::terminal::Terminal;
use crate::support::tmux;
use crate::support::{COPILOT, SOON, wait, wait_until};
use rustix::process::Signal;
use serde_json::json;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

/// Longer than the minute between two rescans.
const WATCHED: Duration = Duration::from_secs(90);

/// One home, with Pilotlight and whatever else runs there. Fields drop from the top.
struct Stage {
    popups: Popups,
    pilot: Pilot,
    home: Home,
    model: Model,
}

impl Stage {
    fn new(with_bridge: bool) -> Self {
        let (home, model) = (Home::new("project"), Model::start());
        let words = ["tmux", "-S", &*socket(&home), "-f", "/dev/null", "new-session", "-d", "-x", "140", "-y", "45"];
        let terminal: Vec<_> = words.into_iter().chain(["{command}"]).collect();
        let config =
            bridged_config(&home, &model).replace("[actions]\n", &format!("[actions]\nterminal = {terminal:?}\n"));
        let pilot = Pilot::configured(&[&home], &config);
        if with_bridge {
            let ran = pilot.run(&["bridge", "install", "--yes"]);
            assert_eq!(ran.code, Some(0), "{ran:?}");
        }
        let popups = pilot.popups();
        Self { popups, pilot, home, model }
    }

    /// A terminal that works.
    fn working(&self) -> Terminal {
        let terminal = Terminal::start(&self.home, &self.model, &[]);
        terminal.enter("SCRIPT:hang Paint the fence");
        terminal.folder.wait("assistant.turn_start");
        self.pilot.wait_status(&terminal.folder.id(), "working", "");
        terminal
    }

    /// Kills a terminal that works, and waits until that is told.
    fn crash(&self, terminal: &Terminal, popups: usize) {
        terminal.signal(Signal::KILL);
        self.pilot.wait_status(&terminal.folder.id(), "crashed", "");
        let told = self.popups.wait_for(popups);
        assert!(told.title.ends_with("crashed"), "{told:#?}");
    }

    /// Runs one of Copilot's commands in the home.
    fn command(&self, arguments: &[&str]) -> Child {
        let mut command = self.home.copilot(&self.model);
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().unwrap()
    }

    /// Asserts that these crashes stay told for a time, in all views.
    fn assert_told(&self, folders: &[&Folder], time: Duration) {
        let until = Instant::now() + time;
        loop {
            for folder in folders {
                self.pilot.wait_status(&folder.id(), "crashed", "");
                let history = self.pilot.history(&folder.id());
                assert!(history.ends_with(&["working".into(), "crashed".into()]), "{history:?}");
            }
            let crashed = self.popups.received().into_iter().filter(|popup| popup.title.contains("crashed"));
            let closed = self.popups.closed();
            let withdrawn: Vec<_> = crashed.filter(|popup| closed.contains(&popup.number)).collect();
            assert!(withdrawn.is_empty(), "{withdrawn:#?}");
            if wait(Duration::from_secs(2), || (Instant::now() >= until).then_some(())).is_some() {
                return;
            }
        }
    }

    /// Resumes a crashed session in a terminal, by its menu entry or by a command, and prompts there.
    fn resume(&self, folder: &Folder, by_menu: bool) {
        let row = self.pilot.row(&folder.id()).unwrap();
        assert!(row["actions"].as_array().unwrap().contains(&json!("resume")), "{row}");
        let prompts = |folder: &Folder| folder.types().iter().filter(|kind| *kind == "user.message").count();
        let before = (prompts(folder), self.panes().len());
        if by_menu {
            self.pilot.click(&folder.id(), "Resume");
        } else {
            let ran = self.pilot.run(&["resume", &folder.id()]);
            assert_eq!(ran.code, Some(0), "{ran:?}");
        }
        let dump = || format!("{}\n{}", folder.dump(), self.pilot.log());
        let opened = || self.panes().get(before.1).cloned();
        let pane = wait_until(COPILOT, "a terminal opens", dump, opened);
        self.pilot.wait_status(&folder.id(), "idle", "opened, not prompted yet");
        tmux::prompt(socket(&self.home).as_ref(), &pane, "SCRIPT:plain Go on");
        wait_until(COPILOT, "it was prompted", dump, || (prompts(folder) > before.0).then_some(()));
        self.pilot.wait_status(&folder.id(), "idle", "done");
        folder.assert_one_chain();
    }

    fn panes(&self) -> Vec<String> {
        let panes = tmux::on(socket(&self.home).as_ref(), &["list-panes", "-a", "-F", "#{pane_id}"]);
        panes.lines().map(str::to_owned).collect()
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        let socket = socket(&self.home);
        let pids = tmux::on(socket.as_ref(), &["list-panes", "-a", "-F", "#{pane_pid}"]);
        let pids: Vec<u32> = pids.lines().filter_map(|pid| pid.parse().ok()).collect();
        tmux::on(socket.as_ref(), &["kill-server"]);
        // They might still write into folders that are about to be removed.
        wait(SOON, || (!pids.iter().any(|pid| is_live(*pid))).then_some(()));
    }
}

/// Where the terminals open that Pilotlight opens.
fn socket(home: &Home) -> String {
    home.root().join("tmux").display().to_string()
}

/// Case 554: of two terminals with the bridge, one is killed while it works. A third that starts then makes Pilotlight look
/// for what processes have open, and removes the lock that was left.
#[test]
fn case_554_a_crash_beside_a_bridge_stays_told() {
    let stage = Stage::new(true);
    let (one, two) = (stage.working(), Terminal::start(&stage.home, &stage.model, &[]));
    stage.pilot.wait_bridges(2, "");
    stage.crash(&one, 1);
    let third = Terminal::start(&stage.home, &stage.model, &[]);
    third.extension();
    stage.assert_told(&[&one.folder], Duration::from_secs(3));
    stage.resume(&one.folder, true);
    assert!(is_live(two.pid()) && is_live(third.pid()));
}

/// Case 554: the same, three terminals, two of them killed, until a rescan is over.
#[test]
#[ignore = "tests/long.sh"]
fn case_554_two_crashes_beside_a_bridge_stay_told_for_a_minute_and_a_half() {
    let stage = Stage::new(true);
    let [one, two, three] = [stage.working(), stage.working(), Terminal::start(&stage.home, &stage.model, &[])];
    stage.pilot.wait_bridges(3, "");
    stage.crash(&one, 1);
    stage.crash(&two, 2);
    stage.assert_told(&[&one.folder, &two.folder], WATCHED);
    stage.resume(&one.folder, false);
    stage.resume(&two.folder, true);
    assert!(is_live(three.pid()));
}

/// Case 555: a server that logs nothing has recorded nothing either, and says itself that it has not loaded the session.
fn beside_a_server(is_older: bool) {
    let stage = Stage::new(false);
    let server = || Server::with_arguments(&stage.home, &stage.model, &["--log-level", "error"]);
    let older = is_older.then(server);
    let one = stage.working();
    stage.crash(&one, 1);
    let younger = (!is_older).then(server);
    let other = Terminal::start(&stage.home, &stage.model, &[]);
    stage.assert_told(&[&one.folder], WATCHED);
    stage.resume(&one.folder, is_older);
    drop((older, younger, other));
}

#[test]
#[ignore = "tests/long.sh"]
fn case_555_a_crash_beside_a_server_that_logs_nothing_stays_told_for_a_minute_and_a_half() {
    beside_a_server(true);
    beside_a_server(false);
}

/// What Copilot is run for besides sessions.
#[test]
#[ignore = "tests/long.sh"]
fn case_556_a_crash_beside_copilots_commands_stays_told_for_a_minute_and_a_half() {
    let stage = Stage::new(false);
    let one = stage.working();
    let before = [&["update"][..], &["mcp", "list"]].map(|arguments| stage.command(arguments));
    stage.crash(&one, 1);
    let commands = [&["update"][..], &["plugin", "list"], &["--version"], &["-p", "SCRIPT:sleep20 Paint the gate"]];
    let during = commands.map(|arguments| stage.command(arguments));
    stage.assert_told(&[&one.folder], WATCHED);
    for mut child in before.into_iter().chain(during) {
        let _ = child.kill();
        let _ = child.wait();
    }
    stage.assert_told(&[&one.folder], Duration::from_secs(3));
    stage.resume(&one.folder, true);
}

/// Case 557: a terminal that logs nothing may have opened a session that has ended, and says nothing about one that crashed.
#[test]
#[ignore = "tests/long.sh"]
fn case_557_a_terminal_that_logs_nothing_hides_no_crash() {
    let stage = Stage::new(false);
    let silent = Terminal::start(&stage.home, &stage.model, &["--log-level", "error"]);
    let [one, idle] = [stage.working(), Terminal::start(&stage.home, &stage.model, &[])];
    idle.enter("SCRIPT:plain Paint the door");
    idle.folder.wait("assistant.turn_end");
    stage.crash(&one, 1);
    idle.signal(Signal::KILL);
    stage.pilot.wait_status(&idle.folder.id(), "ended", "");
    let other = Terminal::start(&stage.home, &stage.model, &[]);
    stage.assert_told(&[&one.folder], WATCHED);
    let row = stage.pilot.wait_status(&idle.folder.id(), "ended", "");
    assert!(row["actions"].as_array().unwrap().contains(&json!("resume")), "{row}");
    // Whether it opened the crashed session since nobody knows, so it is asked about.
    silent.enter(&format!("/resume {}", one.folder.id()));
    silent.wait_screen("Paint the fence");
    stage.assert_told(&[&one.folder], Duration::from_secs(3));
    let ran = stage.pilot.run(&["resume", &one.folder.id()]);
    assert!(ran.code == Some(4) && ran.err.contains("may have it open"), "{ran:?}");
    drop(other);
}
