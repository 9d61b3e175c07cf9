//! The windows that the tray opens at a click: what is typed there is the user's, however the terminal starts its windows,
//! and however the tray was started.

use super::stage::Stage;
use crate::support::desktop::bus::Bus;
use crate::support::desktop::panel::Entry;
use crate::support::desktop::popups::Popups;
use crate::support::executable::executable;
use crate::support::person::Manner;
use crate::support::pilotlight::Pilot;
use crate::support::process::{is_live, signal};
use crate::support::{COPILOT, tmux, wait_until};
use std::cell::Cell;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

/// What a request is approved by: too long for the menu, so that it is reviewed in a window.
const ASKED: &str = "Approve this request, once? [y/N]";

/// A shell into which somebody types.
const TYPED_INTO: [&str; 3] = ["bash", "--norc", "-i"];

/// How a terminal opens a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Terminal {
    /// The program that is started has the window, as xterm or Alacritty.
    Child,
    /// It leaves, and a process of its own has the window, as Konsole.
    Forks,
    /// A process that is older than the session has the window, as kitty with a single instance.
    Older,
    /// The bus starts the process that has the window, as gnome-terminal's.
    Bus,
    /// A server of tmux that is older than the session.
    Tmux,
    /// One that is younger.
    YoungTmux,
}

/// How many windows the bus opens in a test at most.
const BUS_WINDOWS_MAX: usize = 8;

/// How a tray was started, as lines of a shell in a folder where `./tray` is the tray.
const BY_HAND: &str = "echo ./tray | script --quiet --command 'bash --norc -i' /dev/null";
const BY_AUTOSTART: &str = "setsid -f ./tray";
const BY_SYSTEMD: &str = "cp /bin/bash systemd; setsid -f ./systemd -c 'setsid ./tray & wait'";
const BY_BUS: &str = "dbus-send --session --dest=org.pilotlight.Start / org.pilotlight.Start.Run";

/// A stand-in for a terminal, whose windows can be read and typed into.
struct Windows {
    folder: PathBuf,
    /// Holds what is typed.
    keys: File,
    server: Child,
    /// How many windows the bus has opened, each by a name of its own: while it waits for a name, it starts nothing else.
    by_bus: Cell<usize>,
}

impl Windows {
    /// Its server, which is as old as this value.
    fn new(pilot: &Pilot) -> Self {
        let folder = pilot.user().join("windows");
        fs::create_dir(&folder).unwrap();
        let here = folder.display();
        // As a terminal's, the command leads the session of its window.
        executable(
            &folder.join("window"),
            &format!(
                "#!/bin/sh\necho $$ >>'{here}/pids'\nexec script --quiet --flush --command \"exec sh '{here}/line'\" '{here}/screen' <'{here}/keys' >/dev/null 2>&1\n"
            ),
        );
        executable(
            &folder.join("terminal"),
            &format!(
                "#!/bin/sh\ncd '{here}'\n{{ printf exec; for word; do printf \" '%s'\" \"$word\"; done; echo; }} >line\n\
             case $(cat how) in\n\
             child) exec ./window ;;\n\
             forks) setsid -f ./window ;;\n\
             older) echo >asked ;;\n\
             bus*) dbus-send --session --dest=org.pilotlight.Window.$(cat how) / org.pilotlight.Window.Open ;;\n\
             tmux) exec env -u TMUX tmux -S \"$(cat tmux)\" new-window -- \"$@\" ;;\n\
             esac\n"
            ),
        );
        for pipe in ["keys", "asked"] {
            assert!(Command::new("mkfifo").arg(folder.join(pipe)).status().unwrap().success());
        }
        let keys = File::options().read(true).write(true).open(folder.join("keys")).unwrap();
        // Leads a session of its own, as whatever the desktop started.
        let mut server = pilot.command_with_tray(&[]);
        server = {
            let mut own = Command::new("setsid");
            own.args(["sh", "-c", "exec 3<>asked; while read -r _ <&3; do ./window & done"]).current_dir(&folder);
            own.env_clear().envs(server.get_envs().filter_map(|(name, value)| Some((name, value?))));
            own
        };
        let server = server.stdin(Stdio::null()).spawn().unwrap();
        // With the user's environment, as the bus of a desktop has it.
        let set = pilot.command_with_tray(&[]);
        let set = set.get_envs().filter_map(|(name, value)| Some((name.to_str()?, value?.to_str()?)));
        let set: String = set.map(|(name, value)| format!(" '{name}={value}'")).collect();
        executable(&folder.join("by-bus"), &format!("#!/bin/sh\nexec env -i{set} '{here}/window'\n"));
        for nth in 0..BUS_WINDOWS_MAX {
            pilot.session_bus().add_service(&format!("org.pilotlight.Window.bus{nth}"), &folder.join("by-bus"));
        }
        pilot.session_bus().add_service("org.pilotlight.Start", &pilot.user().join("tray-there"));
        executable(
            &pilot.user().join("tray-there"),
            &format!("#!/bin/sh\ncd '{}' && ./tray\nexit 1\n", pilot.user().display()),
        );
        let windows = Self { folder, keys, server, by_bus: Cell::default() };
        windows.opens(Terminal::Child);
        windows
    }

    /// The setting for the terminal.
    fn setting(pilot: &Pilot) -> String {
        format!("[actions]\nterminal = [\"{}/windows/terminal\", \"{{command}}\"]\n", pilot.user().display())
    }

    /// From now on, windows are opened so.
    fn opens(&self, terminal: Terminal) {
        let how = match terminal {
            Terminal::Child => "child",
            Terminal::Forks => "forks",
            Terminal::Older => "older",
            Terminal::Bus => {
                let nth = self.by_bus.get();
                self.by_bus.set(nth + 1);
                &format!("bus{nth}")
            }
            Terminal::Tmux | Terminal::YoungTmux => "tmux",
        };
        fs::write(self.folder.join("how"), how).unwrap();
        let _ = fs::remove_file(self.folder.join("screen"));
    }

    fn screen(&self) -> String {
        String::from_utf8_lossy(&fs::read(self.folder.join("screen")).unwrap_or_default()).into_owned()
    }

    fn shows(&self, text: &str) {
        let shown = || self.screen().contains(text).then_some(());
        wait_until(COPILOT, &format!("the window shows {text:?}"), || self.screen(), shown);
    }

    fn types(&self, text: &str) {
        (&self.keys).write_all(text.as_bytes()).unwrap();
    }
}

impl Drop for Windows {
    fn drop(&mut self) {
        let pids = fs::read_to_string(self.folder.join("pids")).unwrap_or_default();
        for pid in pids.lines().map(|pid| pid.parse().unwrap()).filter(|pid| is_live(*pid)) {
            signal(pid, rustix::process::Signal::TERM);
        }
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

/// A server of tmux, with the environment of the user's programs, where nothing else runs.
struct Server(PathBuf);

impl Server {
    fn start(pilot: &Pilot, name: &str) -> Self {
        let socket = pilot.user().join(name);
        let mut command = Command::new("tmux");
        command
            .arg("-S")
            .arg(&socket)
            .args(["-f", "/dev/null", "new-session", "-d", "-x", "150", "-y", "40"])
            .args(TYPED_INTO);
        let with_tray = pilot.command_with_tray(&[]);
        command.env_clear().envs(with_tray.get_envs().filter_map(|(name, value)| Some((name, value?))));
        assert!(command.status().unwrap().success());
        Self(socket)
    }

    fn run(&self, words: &[&str]) -> String {
        tmux::on(&self.0, words)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.run(&["kill-server"]);
    }
}

/// Programs with what they started in their groups.
struct Groups(Vec<Child>);

impl Drop for Groups {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let group = rustix::process::Pid::from_child(child);
            let _ = rustix::process::kill_process_group(group, rustix::process::Signal::TERM); // it may have ended
            let _ = child.wait();
        }
    }
}

/// A session that asks for what is reviewed in a window.
struct Reviewing {
    // Before the user's folder goes, with the socket and the numbers of the windows.
    older: Server,
    windows: Windows,
    stage: Stage,
    asked: usize,
}

impl Reviewing {
    fn new() -> Self {
        Self::after(|_| ()).0
    }

    /// With what this starts before the session.
    fn after<T>(start: impl FnOnce(&Pilot) -> T) -> (Self, T) {
        // The terminals are older than the session.
        let (home, model) = (crate::support::home::Home::new("project"), crate::support::model::Model::start());
        let pilot = Pilot::start(&[&home]);
        let windows = Windows::new(&pilot);
        pilot.configure(&Windows::setting(&pilot));
        let older = Server::start(&pilot, "older");
        let started = start(&pilot);
        let server = crate::support::server::Server::start(&home, &model);
        let client = server.connect();
        let person = crate::support::person::Person::new(Manner::Waits);
        let session = server.create(&client, Some(&person));
        let stage = Stage { pilot, session, client, person, server, model, home };
        (Self { stage, windows, older, asked: 0 }, started)
    }

    /// Opens a request, and the window for it by a click.
    fn opens_window(&mut self, terminal: Terminal, young: Option<&Server>) -> usize {
        self.asked += 1;
        let Self { stage, windows, older, asked } = self;
        windows.opens(terminal);
        fs::write(windows.folder.join("tmux"), young.unwrap_or(older).0.display().to_string()).unwrap();
        let id = stage.session.id();
        stage.session.send("SCRIPT:long Paint the fence");
        stage.session.folder.wait_nth("permission.requested", *asked);
        stage.pilot.wait_status_in_tray(&id, "needs-permission", "");
        stage.pilot.click(&id, "Review in a terminal");
        *asked
    }

    fn assert_approved(&self, nth: usize) {
        let done = self.stage.session.folder.wait_nth("permission.completed", nth);
        assert_eq!(done["data"]["result"]["kind"], "approved", "{done}");
        self.stage.wait_status("idle", "");
    }

    /// Approves a request in a window that is opened so.
    fn approves_in(&mut self, terminal: Terminal) {
        let young = (terminal == Terminal::YoungTmux).then(|| Server::start(&self.stage.pilot, "young"));
        let nth = self.opens_window(terminal, young.as_ref());
        match terminal {
            Terminal::Tmux | Terminal::YoungTmux => {
                let server = young.as_ref().unwrap_or(&self.older);
                let screen = || server.run(&["capture-pane", "-p"]);
                let asks = || screen().contains(ASKED).then_some(());
                wait_until(COPILOT, &format!("a window of {terminal:?} asks"), screen, asks);
                server.run(&["send-keys", "y", "Enter"]);
            }
            _ => {
                self.windows.shows(ASKED);
                self.windows.types("y\n");
            }
        }
        self.assert_approved(nth);
    }

    /// A file of the user's.
    fn path(&self, name: &str) -> PathBuf {
        self.stage.pilot.user().join(name)
    }

    /// Writes a program that approves what the session asks and keeps what came of it, and one that types its name into a
    /// shell of a terminal that it makes.
    fn make_attack(&self) {
        for name in ["code", "out"] {
            let _ = fs::remove_file(self.path(name)); // of an earlier one
        }
        let approve = self.stage.pilot.command_with_tray(&["approve", "--yes", &self.stage.session.id()]);
        let approve = super::bridge::callers::words(&approve);
        let [out, code, attack] = ["out", "code", "attack"].map(|name| self.path(name).display().to_string());
        executable(
            &self.path("attack"),
            &format!(
                "#!/bin/sh\n{approve} </dev/null >'{out}' 2>&1\necho $? >'{code}.new'; mv '{code}.new' '{code}'\n"
            ),
        );
        executable(
            &self.path("typed"),
            &format!("#!/bin/sh\necho \"'{attack}'\" | script --quiet --command 'bash --norc -i' /dev/null\n"),
        );
    }

    /// Waits until that program has run. Returns its exit code and what it said.
    fn attack_result(&self, by: &str) -> (String, String) {
        let read = |name: &str| fs::read_to_string(self.path(name)).unwrap_or_default();
        let ended = || Some(read("code")).filter(|code| !code.is_empty());
        let code = wait_until(COPILOT, &format!("it has approved by {by}, or not"), || self.windows.screen(), ended);
        (code.trim().to_owned(), read("out"))
    }

    fn in_each_terminal(&mut self) {
        for terminal in
            [Terminal::Child, Terminal::Forks, Terminal::Older, Terminal::Bus, Terminal::Tmux, Terminal::YoungTmux]
        {
            self.approves_in(terminal);
        }
    }
}

#[test]
fn case_567_what_is_typed_in_a_window_that_a_click_opened_is_the_users() {
    Reviewing::new().in_each_terminal();
}

#[test]
#[ignore = "tests/long.sh"]
fn case_568_so_it_is_however_the_tray_was_started() {
    let mut reviewing = Reviewing::new();
    for start in [BY_HAND, BY_AUTOSTART, BY_SYSTEMD, BY_BUS] {
        reviewing.stage.pilot.restart_tray_by(start);
        reviewing.in_each_terminal();
        reviewing.stage.pilot.end_tray_by();
    }
}

/// What it shows can be read, and what was typed is not lost.
#[test]
fn case_569_a_window_whose_answer_is_refused_stays_and_says_why() {
    let mut reviewing = Reviewing::new();
    reviewing.opens_window(Terminal::Child, None);
    reviewing.windows.shows(ASKED);
    reviewing.stage.pilot.end_tray();
    reviewing.windows.types("y\n");
    reviewing.windows.shows("a tool of the session may have started this program");
    reviewing.windows.shows("this window stays open");
    let completed =
        reviewing.stage.session.folder.types().iter().filter(|kind| *kind == "permission.completed").count();
    assert_eq!(completed, 0);
}

/// Whoever reads the ticket of a window on its command line has no window of its own.
#[test]
fn case_570_a_ticket_is_for_one_process_and_one_request() {
    let mut reviewing = Reviewing::new();
    reviewing.opens_window(Terminal::Child, None);
    reviewing.windows.shows(ASKED);
    let line = fs::read_to_string(reviewing.windows.folder.join("line")).unwrap();
    let pilot = &reviewing.stage.pilot;
    let environment = pilot.command_with_tray(&[]);
    let copied = format!(
        "(sleep 3; echo y; sleep 3; echo) | script --quiet --command \"{} ; echo $?\" /dev/null",
        line.trim().trim_start_matches("exec ")
    );
    let mut copy = Command::new("setsid");
    copy.args(["--wait", "sh", "-c", &copied]).env_clear();
    copy.envs(environment.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let out = copy.stdin(Stdio::null()).output().unwrap();
    let out = String::from_utf8_lossy(&out.stdout).into_owned();
    assert!(out.contains("a tool of the session may have started this program"), "{out}");
    // Nor has the window any more: which of both is the user's is unknown.
    reviewing.windows.types("y\n");
    reviewing.windows.shows("this window stays open");
    let completed =
        reviewing.stage.session.folder.types().iter().filter(|kind| *kind == "permission.completed").count();
    assert_eq!(completed, 0);
}

/// Runs `approve` in a shell of a window that a tool has something open that is older than the session. Returns its exit
/// code and what it said.
fn approves_by_tool(reviewing: &Reviewing, terminal: Terminal, words: &[&str]) -> (String, String) {
    let Reviewing { stage, windows, older, .. } = reviewing;
    reviewing.make_attack();
    windows.opens(terminal);
    fs::write(windows.folder.join("tmux"), older.0.display().to_string()).unwrap();
    let mut tool = Command::new("setsid");
    tool.arg("-f").arg(windows.folder.join("terminal")).args(words).stdin(Stdio::null());
    tool.env_clear()
        .envs(stage.pilot.command_with_tray(&[]).get_envs().filter_map(|(name, value)| Some((name, value?))));
    tool.env("DBUS_SESSION_BUS_ADDRESS", stage.pilot.bus());
    assert!(tool.status().unwrap().success());
    let typed = format!("'{}'", reviewing.path("attack").display());
    match terminal {
        _ if words != TYPED_INTO => {}
        Terminal::Tmux => {
            let screen = || older.run(&["capture-pane", "-p"]);
            // Not the shell that was there before.
            let is_new = || older.run(&["display-message", "-p", "#{window_index}"]).trim() != "0";
            let asks = || (is_new() && screen().contains("bash-")).then_some(());
            wait_until(COPILOT, "a window of the server", screen, asks);
            older.run(&["send-keys", &typed, "Enter"]);
        }
        _ => {
            windows.shows("bash-");
            windows.types(&format!("{typed}\n"));
        }
    }
    let result = reviewing.attack_result(&format!("{terminal:?}"));
    if terminal == Terminal::Tmux && words == TYPED_INTO {
        older.run(&["kill-window"]);
    } else if words == TYPED_INTO {
        windows.types("exit\n");
    }
    result
}

/// The bus, a window manager, a terminal's server and tmux do what any program asks of them, and are older than the session.
#[test]
fn case_572_what_a_tool_has_something_older_start_approves_nothing() {
    let mut reviewing = Reviewing::new();
    let id = reviewing.stage.session.id();
    reviewing.stage.session.send("SCRIPT:sleep0 Paint the fence");
    reviewing.stage.session.folder.wait("permission.requested");
    reviewing.stage.pilot.wait_status_in_tray(&id, "needs-permission", "");
    let attack = reviewing.stage.pilot.user().join("attack");
    let attack = attack.to_str().unwrap().to_owned();
    for has_tray in [true, false] {
        if !has_tray {
            reviewing.stage.pilot.end_tray();
        }
        for terminal in [Terminal::Child, Terminal::Forks, Terminal::Older, Terminal::Bus, Terminal::Tmux] {
            for words in [&TYPED_INTO[..], &[&*attack]] {
                let (code, out) = approves_by_tool(&reviewing, terminal, words);
                assert_eq!(code, "4", "{terminal:?} {words:?} {has_tray}: {out}");
                assert!(out.contains("a tool of the session may have started this program"), "{out}");
                let what_to_do = if has_tray {
                    "approve or answer in its menu or popup"
                } else {
                    "in a shell that is older than the session"
                };
                assert!(out.contains(what_to_do), "{out}");
            }
        }
    }
    assert!(!reviewing.stage.session.folder.types().iter().any(|kind| kind == "permission.completed"));
    // The shell that was open before the session is the user's.
    reviewing.older.run(&["send-keys", &format!("'{attack}'"), "Enter"]);
    reviewing.stage.session.folder.wait("permission.completed");
}

/// Where the server of the next test listens.
const BUS: &str = "PILOTLIGHT_TEST_TAKEN_BUS";

/// Not a test of its own: the notification server of the next one, which presses Approve where it can.
#[test]
#[ignore = "tests/long.sh"]
fn presses_approve() {
    let Ok(address) = std::env::var(BUS) else { return };
    let popups = Popups::start(&Bus::at(address));
    let popup = popups.wait_for(1);
    popups.read();
    popups.click(popup.number, "approve");
    println!("it may press {}", popup.actions.join(" "));
    let mut end = String::new();
    std::io::stdin().read_line(&mut end).unwrap();
}

/// The same of the user's own server that was started anew. What shows popups before the session may press Approve.
#[test]
fn case_573_a_notification_server_that_is_younger_than_the_session_approves_nothing() {
    let reviewing = Reviewing::new();
    let (stage, id) = (&reviewing.stage, reviewing.stage.session.id());
    let mut server = Command::new("setsid");
    server.arg(std::env::current_exe().unwrap());
    server.args(["e2e::windows::presses_approve", "--exact", "--include-ignored", "--nocapture"]);
    server.env_clear().env("PATH", std::env::var_os("PATH").unwrap()).env(BUS, stage.pilot.bus());
    let mut server = server.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let names = || stage.pilot.session_bus().names();
    let is_there = || names().iter().any(|name| name == "org.freedesktop.Notifications").then_some(());
    wait_until(COPILOT, "the server is there", || format!("{:?}", names()), is_there);
    stage.session.send("SCRIPT:sleep0 Paint the fence");
    let said = BufReader::new(server.stdout.take().unwrap()).lines().map_while(Result::ok);
    let said = said.into_iter().find(|line| line.starts_with("it may press")).unwrap();
    assert!(said.contains("review") && !said.contains("approve"), "{said}");
    stage.pilot.wait_menu(&id, "Popups cannot approve");
    assert!(!stage.session.folder.types().iter().any(|kind| kind == "permission.completed"));
    drop(server.stdin.take());
    server.wait().unwrap();
    let popups = stage.pilot.popups();
    let shown = || popups.received().into_iter().find(|popup| popup.actions.iter().any(|action| action == "approve"));
    let popup = wait_until(COPILOT, "the older server may approve", || format!("{:#?}", popups.received()), shown);
    popups.click_after_reading(popup.number, "approve");
    let done = stage.session.folder.wait("permission.completed");
    assert_eq!(done["data"]["result"]["kind"], "approved", "{done}");
}

/// Given: the table that a click opens, and later a tool that comes with its ticket. -> What is typed in the table is the
/// user's; the tool answers nothing.
#[test]
fn case_576_a_tables_ticket_is_its_own_from_its_start() {
    let reviewing = Reviewing::new();
    reviewing.windows.opens(Terminal::Child);
    let stage = &reviewing.stage;
    stage.session.send("SCRIPT:sleep0 Paint the fence");
    stage.session.folder.wait("permission.requested");
    stage.pilot.wait_status_in_tray(&stage.session.id(), "needs-permission", "");
    let refused = stage.pilot.panel().click_icon().unwrap_err();
    assert!(refused.to_string().contains("the icon is a menu"), "{refused}");
    reviewing.windows.shows("Enter explain");
    reviewing.windows.types("a");
    reviewing.windows.shows(ASKED);
    reviewing.windows.types("y\n");
    reviewing.assert_approved(1);
    reviewing.windows.types("\n");
    // A second process with its ticket makes it void, though the table has given no order of its own since.
    let line = fs::read_to_string(reviewing.windows.folder.join("line")).unwrap();
    let ticket = line.split('\'').find(|word| word.starts_with("--window=")).unwrap().to_owned();
    let stage = &reviewing.stage;
    stage.session.send("SCRIPT:sleep0 Paint the gate");
    stage.session.folder.wait_nth("permission.requested", 2);
    let id = stage.session.id();
    let words = super::bridge::callers::words(&stage.pilot.command_with_tray(&[&ticket, "approve", "--yes", &id]));
    let mut stolen = Command::new("setsid");
    stolen.args(["--wait", "script", "--quiet", "--command", &words, "/dev/null"]);
    // It keeps its window open, too, until Enter is pressed there.
    let mut stolen = stolen.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    let mut said = BufReader::new(stolen.stdout.take().unwrap()).lines().map_while(Result::ok);
    let refused = said.find(|line| line.contains("approved") || line.contains("a tool of the session may have"));
    stolen.kill().unwrap();
    stolen.wait().unwrap();
    assert!(refused.is_some_and(|line| !line.contains("approved")));
    let completed = || stage.session.folder.types().iter().filter(|kind| *kind == "permission.completed").count();
    assert_eq!(completed(), 1);
}

/// It opens the window that asks.
#[test]
fn case_574_a_program_on_the_bus_that_clicks_approve_in_the_menu_approves_nothing() {
    let reviewing = Reviewing::new();
    let (stage, id) = (&reviewing.stage, reviewing.stage.session.id());
    stage.session.send("SCRIPT:sleep0 Paint the fence");
    stage.session.folder.wait("permission.requested");
    stage.pilot.wait_status_in_tray(&id, "needs-permission", "");
    let panel = stage.pilot.panel();
    let approve = || panel.layout().1.find(&|entry: &Entry| entry.label == "Approve once" && entry.enabled).cloned();
    let approve = wait_until(COPILOT, "the menu offers it", || format!("{:#?}", panel.menu()), approve);
    panel.wait_menu_stable();
    let mut program = Command::new("dbus-send");
    program.arg(format!("--dest={}", panel.icon())).args(["--print-reply", "/MenuBar", "com.canonical.dbusmenu.Event"]);
    program.args([&format!("int32:{}", approve.id), "string:clicked", "variant:int32:0", "uint32:0"]);
    let sent = program.env("DBUS_SESSION_BUS_ADDRESS", stage.pilot.bus()).output().unwrap();
    assert!(sent.status.success(), "{sent:?}");
    reviewing.windows.shows(ASKED);
    assert!(!stage.session.folder.types().iter().any(|kind| kind == "permission.completed"));
    reviewing.windows.types("y\n");
    let done = stage.session.folder.wait("permission.completed");
    assert_eq!(done["data"]["result"]["kind"], "approved", "{done}");
}

/// Programs that run what they are told to, older than the session: how each is started, and how a tool has it run
/// `./attack`, or `./typed`, with `$HOME` as its folder.
const TOLD: [(&str, &str, &[&str]); 5] = [
    (
        "i3",
        "printf '# i3 config file (v4)\nipc-socket %s/i3.sock\n' \"$HOME\" >i3; exec xvfb-run -a i3 -c i3",
        &["i3-msg -s i3.sock \"exec $HOME/attack\"", "i3-msg -s i3.sock \"exec $HOME/typed\""],
    ),
    (
        "emacs",
        "exec emacs -Q --fg-daemon=$HOME/emacs.sock",
        &[
            "emacsclient -s $HOME/emacs.sock -e '(call-process (expand-file-name \"~/attack\") nil 0)'",
            "emacsclient -s $HOME/emacs.sock -e '(let ((process-connection-type t)) (start-process \"t\" nil (expand-file-name \"~/typed\")))'",
        ],
    ),
    (
        "screen",
        "SCREENDIR=$HOME/screens; export SCREENDIR; exec screen -D -m -S older bash --norc -i",
        &[
            "SCREENDIR=$HOME/screens screen -S older -X screen $HOME/attack",
            "SCREENDIR=$HOME/screens screen -S older -X screen -t new bash --norc -i; sleep 1; SCREENDIR=$HOME/screens screen -S older -p new -X stuff './attack\n'",
        ],
    ),
    (
        "systemd",
        "mkfifo told; cp /bin/bash systemd; exec ./systemd -c 'while read -r line; do setsid -f sh -c \"$line\" <&- 3<&-; done <>told'",
        &["echo $HOME/attack >told", "echo $HOME/typed >told"],
    ),
    (
        "sshd",
        "ssh-keygen -q -t ed25519 -N '' -f key; ssh-keygen -q -t ed25519 -N '' -f host; cp key.pub authorized; mkdir -p /run/sshd; \
         /usr/sbin/sshd -D -f /dev/null -o Port=$PORT -o ListenAddress=127.0.0.1 -o HostKey=$HOME/host -o StrictModes=no -o UsePAM=no \
         -o AuthorizedKeysFile=$HOME/authorized -o PidFile=none & \
         until exec 3<>/dev/tcp/127.0.0.1/$PORT; do sleep 0.1; done; exec 3<&-; exec ssh -N -M -S $HOME/master -i key -p $PORT -o UserKnownHostsFile=/dev/null -o StrictHostKeyChecking=no 127.0.0.1",
        &[
            "ssh -S master x $HOME/attack",
            "ssh -S master -tt x bash --norc -i <<<$HOME/attack",
            "ssh -S master x $HOME/typed",
        ],
    ),
];

/// With the real programs, as far as they are installed.
#[test]
#[ignore = "tests/long.sh"]
fn case_575_a_real_program_that_does_what_it_is_told_approves_nothing() {
    let has = |name: &str| {
        name == "systemd" || Command::new("which").arg(name).output().is_ok_and(|out| out.status.success())
    };
    let told: Vec<_> = TOLD.into_iter().filter(|(name, ..)| has(name)).collect();
    let free = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = free.local_addr().unwrap().port().to_string();
    drop(free);
    let run = |pilot: &Pilot, line: &str| {
        let mut shell = Command::new("setsid");
        shell.args(["bash", "-c", line]).current_dir(pilot.user()).stdin(Stdio::null());
        shell
            .env_clear()
            .envs(pilot.command_with_tray(&[]).get_envs().filter_map(|(name, value)| Some((name, value?))));
        shell.env("SHELL", "/bin/bash").env("PORT", &port).spawn().unwrap()
    };
    let (reviewing, _started) =
        Reviewing::after(|pilot| Groups(told.iter().map(|(_, start, _)| run(pilot, start)).collect()));
    let (stage, id) = (&reviewing.stage, reviewing.stage.session.id());
    stage.session.send("SCRIPT:sleep0 Paint the fence");
    stage.session.folder.wait("permission.requested");
    stage.pilot.wait_status_in_tray(&id, "needs-permission", "");
    for (name, _, tells) in &told {
        for tell in *tells {
            reviewing.make_attack();
            let mut tool = run(&stage.pilot, tell);
            let (code, out) = reviewing.attack_result(tell);
            assert_eq!(code, "4", "{name}: {tell}: {out}");
            assert!(out.contains("a tool of the session may have started this program"), "{tell}: {out}");
            println!("{name}: {tell}: {}", out.lines().next().unwrap_or_default());
            let _ = tool.kill();
            tool.wait().unwrap();
        }
    }
    assert!(!stage.session.folder.types().iter().any(|kind| kind == "permission.completed"));
}
