//! Measures clicks on a session in a plain terminal, which the bridge carries out; and the cost of the bridge for that
//! terminal.
//!
//! The share of Copilot and the extension is measured without a tray: the bench is at the other end of the socket, and
//! sends its orders at once. For comparison, it also measures Copilot alone, answered by a key.

use crate::clicks::timing::{Appended, click, over, print, ready, until, wait};
use crate::support::desktop::bus::Bus;
use crate::support::desktop::panel::Panel;
use crate::support::desktop::tray::{Switches, TrayProcess, User, sum, ticks};
use crate::support::home::Home;
use crate::support::listener::{Connection, Listener, pose_as_pilotlight};
use crate::support::model::Model;
use crate::support::terminal::{DIALOG, Terminal};
use crate::support::{COPILOT, wait_until};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// The folder that the measured sessions work in; their rows in the menu begin with it.
const FOLDER: &str = "fence";
/// How many terminals are started with the bridge, and how many without.
const STARTS: usize = 10;
/// How long an idle extension is measured.
const IDLE: Duration = Duration::from_secs(30);
/// Long enough for delayed tasks to have started.
const SETTLE: Duration = Duration::from_secs(8);

pub(crate) fn measure(clicks: usize) {
    let mut desk = Desk::new();
    desk.approvals(clicks);
    desk.stops(clicks);
    desk.starts();
    desk.idle();
    drop(desk);
    let socket_end = SocketEnd::new();
    socket_end.approvals(clicks);
    socket_end.stops(clicks);
}

/// Installs the bridge in the home.
fn installed(home: &Home, model: &Model) -> User {
    let user = User::with_home(home.dir());
    let config = user.scratch.path().join("pilotlight.toml");
    std::fs::write(&config, format!("[actions]\ncopilot = {:?}\n", home.program(model))).unwrap();
    let mut install = user.command(None, &["bridge", "install", "--yes"]);
    let installed = install.env("PILOTLIGHT_CONFIG", config).output().unwrap();
    assert!(installed.status.success(), "{installed:?}");
    user
}

/// Makes the terminal ask for the `n`th permission, and waits for its dialog.
fn request_permission(terminal: &Terminal, n: usize) -> Appended {
    terminal.enter(&format!("SCRIPT:many1 Paint plank {n}"));
    // The first request was Copilot's own, for the bridge.
    terminal.folder.wait_nth("permission.requested", n + 1);
    terminal.wait_screen(DIALOG);
    Appended::of(&terminal.folder)
}

/// Measures from the answer to the log, and to the end of the dialog. tmux takes some milliseconds to show its screen.
fn measure_answer(terminal: &Terminal, appended: &Appended, begun: Instant, n: usize) -> (Duration, Duration) {
    let logged = until(begun, || appended.has("permission.completed"));
    let closed = until(begun, || !terminal.screen().contains(DIALOG));
    terminal.folder.wait_nth("assistant.turn_end", 2 * n + 1);
    (logged, closed)
}

fn print_answers(who: &str, took: impl Iterator<Item = (Duration, Duration)>) {
    let (logged, closed) = took.unzip();
    print(&format!("{who} -> approved on disk"), logged);
    print("  -> its dialog is closed", closed);
}

/// Lets the bridge answer, by a key in Copilot's dialog.
fn allow(terminal: &Terminal, ask: impl FnOnce() + Send) {
    terminal.enter("SCRIPT:plain Paint the wall");
    terminal.folder.wait("assistant.turn_end");
    std::thread::scope(|threads| {
        threads.spawn(ask);
        terminal.wait_screen("wants elevated permissions");
        terminal.press(&["1"]);
    });
    terminal.folder.wait("permission.completed");
    terminal.wait_no_screen("wants elevated permissions");
}

/// A process's proportional set size.
fn proportional_memory(pid: u32) -> String {
    let rollup = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap();
    rollup.lines().find(|line| line.starts_with("Pss:")).unwrap().split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Starts a turn in which the model never answers.
fn hang(terminal: &Terminal, model: &Model, n: usize) {
    let asked = model.request_count("hang", 0);
    terminal.enter(&format!("SCRIPT:hang Paint plank {n}"));
    let is_asked = || (model.request_count("hang", 0) > asked).then_some(());
    wait_until(COPILOT, "the model is asked", || terminal.dump(), is_asked);
}

/// A desktop with the tray, and a terminal with the bridge. Fields are dropped in order.
struct Desk {
    terminal: Terminal,
    tray: TrayProcess,
    panel: Panel,
    model: Model,
    home: Home,
    _user: User,
    _bus: Bus,
}

impl Desk {
    fn new() -> Self {
        let (home, model, bus) = (Home::new(FOLDER), Model::start(), Bus::start());
        let (user, panel) = (installed(&home, &model), Panel::start(&bus));
        let tray = user.start_tray(&bus);
        panel.wait_for_icon();
        let terminal = Terminal::start(&home, &model, &[]);
        allow(&terminal, || {
            let entry = ready(&panel, &tray, FOLDER, "Let Pilotlight answer here");
            click(&panel, entry);
        });
        Self { terminal, tray, panel, model, home, _user: user, _bus: bus }
    }

    fn approvals(&self, clicks: usize) {
        let once = |n: usize, clicked: bool| {
            let appended = request_permission(&self.terminal, n);
            // Waits for the menu before a key press as well, so that the terminal has had the same time.
            let entry = ready(&self.panel, &self.tray, FOLDER, "Approve once");
            let begun = Instant::now();
            if clicked {
                click(&self.panel, entry);
            } else {
                self.terminal.press(&["Enter"]);
            }
            measure_answer(&self.terminal, &appended, begun, n)
        };
        print_answers("approve clicked", (1..=clicks).map(|n| once(n, true)));
        print_answers("approved by a key", (clicks + 1..=2 * clicks).map(|n| once(n, false)));
    }

    fn stops(&self, clicks: usize) {
        let once = |n: usize| {
            hang(&self.terminal, &self.model, n);
            let entry = ready(&self.panel, &self.tray, FOLDER, "Stop the turn");
            let appended = Appended::of(&self.terminal.folder);
            let begun = Instant::now();
            click(&self.panel, entry);
            let took = until(begun, || appended.has("abort"));
            over(&self.panel, FOLDER, "Stop the turn");
            took
        };
        print("stop clicked -> abort on disk", (1..=clicks).map(once).collect());
    }

    /// Measures the idle extension: with the tray, with a stopped one, and with none. Ends the tray.
    fn idle(&mut self) {
        let extension = self.terminal.extension();
        let measure = |label: &str| {
            wait(SETTLE);
            let (before, used) = (Switches::of(extension), ticks(extension));
            wait(IDLE);
            let (used, switches) = (ticks(extension) - used, sum(&Switches::of(extension).since(&before)));
            println!(
                "{:<46} {} ms of CPU and {switches} context switches in {IDLE:?}, {}",
                format!("an idle bridge, {label}"),
                used * 10, // a tick is 10 ms wherever Linux is used today
                proportional_memory(extension),
            );
        };
        measure("with a tray");
        self.tray.freeze(); // alive but silent: measures what a bridge does on its own
        measure("with a stopped tray");
        self.tray.signal(Signal::CONT);
        self.tray.signal(Signal::TERM);
        self.tray.wait_exit();
        measure("without a tray");
    }

    /// Starts terminals with and without the bridge, alternately.
    fn starts(&self) {
        let bare = Home::new(FOLDER);
        let start = |home: &Home| {
            let begun = Instant::now();
            let terminal = Terminal::start(home, &self.model, &[]);
            let started = begun.elapsed();
            terminal.enter("SCRIPT:plain Paint the wall");
            let answered = until(begun, || terminal.folder.types().iter().any(|kind| kind == "assistant.turn_end"));
            (started, answered)
        };
        let (with, without): (Vec<_>, Vec<_>) = (0..STARTS).map(|_| (start(&self.home), start(&bare))).unzip();
        for (which, took) in [("with the bridge", with), ("without", without)] {
            let (started, answered): (Vec<_>, Vec<_>) = took.into_iter().unzip();
            print(&format!("a terminal {which} -> takes a prompt"), started);
            print("  -> its first answer, the prompt typed at once", answered);
        }
    }
}

/// A terminal with the bridge, and the bench at the other end of its socket. Fields are dropped in order.
struct SocketEnd {
    terminal: Terminal,
    line: Connection,
    _listener: Listener,
    model: Model,
    _home: Home,
    _user: User,
}

impl SocketEnd {
    fn new() -> Self {
        let (home, model) = (Home::new(FOLDER), Model::start());
        let user = installed(&home, &model);
        let extension = ".local/share/pilotlight/bridge/plugins/pilotlight/extensions/pilotlight/bridge.json";
        pose_as_pilotlight(&user.scratch.path().join(extension));
        let key = std::fs::read(user.state().join("bridge.key")).unwrap();
        let listener = Listener::start(&user.scratch.path().join("run/pilotlight"), &key);
        let terminal = Terminal::start(&home, &model, &[]);
        let line = listener.accept();
        let socket_end = Self { terminal, line, _listener: listener, model, _home: home, _user: user };
        allow(&socket_end.terminal, || {
            socket_end.line.event("session.idle");
            socket_end.send(json!({"t": "elevate", "after": socket_end.root()}));
        });
        socket_end
    }

    fn send(&self, mut order: Value) {
        order["id"] = 1.into();
        self.line.send(&format!("{order}\n"));
    }

    fn root(&self) -> Value {
        let events = self.terminal.folder.events();
        events.iter().rfind(|event| event["type"] == "user.message").unwrap()["id"].clone()
    }

    fn approvals(&self, clicks: usize) {
        let once = |n: usize| {
            let appended = request_permission(&self.terminal, n);
            let is_request = |event: &Value| event["type"] == "permission.requested";
            let nth = || self.line.received().into_iter().filter(is_request).nth(n - 1);
            let event = wait_until(COPILOT, "the event arrives", || self.terminal.dump(), nth);
            let request = &event["data"]["promptRequest"];
            let order = json!({"t": "approve", "requestId": event["data"]["requestId"], "toolCallId": request["toolCallId"],
                "text": event["mark"]});
            let begun = Instant::now();
            self.send(order);
            measure_answer(&self.terminal, &appended, begun, n)
        };
        print_answers("approved over the bridge, without a tray", (1..=clicks).map(once));
    }

    fn stops(&self, clicks: usize) {
        let once = |n: usize| {
            let before = self.root();
            hang(&self.terminal, &self.model, n);
            let is_logged = || (self.root() != before).then_some(());
            wait_until(COPILOT, "its log has the prompt", || self.terminal.dump(), is_logged);
            let (appended, order) = (Appended::of(&self.terminal.folder), json!({"t": "stop", "after": self.root()}));
            let begun = Instant::now();
            self.send(order);
            until(begun, || appended.has("abort"))
        };
        print("stopped over the bridge, without a tray", (1..=clicks).map(once).collect());
    }
}
