//! Clicks on a session in a plain terminal, which the bridge carries out; and what the bridge costs that terminal.
//!
//! What Copilot and the extension take by themselves is measured without a tray: the bench is at the other end of the socket, and
//! orders at once. What Copilot takes alone, where its user answers by a key, stands beside that.

use crate::clicks::timing::{Grown, click, over, print, ready, until, wait};
use crate::support::desktop::bus::Bus;
use crate::support::desktop::light::{Light, Switches, User, sum, ticks};
use crate::support::desktop::panel::Panel;
use crate::support::home::Home;
use crate::support::listener::{Line, Listener, be_pilotlight};
use crate::support::model::Model;
use crate::support::terminal::{DIALOG, Terminal};
use crate::support::{COPILOT, wait_until};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// The folder that the measured sessions work in; their rows in the menu begin with it.
const FOLDER: &str = "fence";
/// So many terminals are started with the bridge, and as many without.
const STARTS: usize = 10;
/// An extension that rests is watched for so long.
const IDLE: Duration = Duration::from_secs(30);
/// What begins late has begun by now.
const SETTLES: Duration = Duration::from_secs(8);

pub(crate) fn measure(clicks: usize) {
    let mut desk = Desk::new();
    desk.approvals(clicks);
    desk.stops(clicks);
    desk.starts();
    desk.idle();
    drop(desk);
    let far = FarEnd::new();
    far.approvals(clicks);
    far.stops(clicks);
}

/// A user whose home has the bridge.
fn installed(home: &Home, model: &Model) -> User {
    let user = User::of(home.dir());
    let config = user.scratch.path().join("pilotlight.toml");
    std::fs::write(&config, format!("[actions]\ncopilot = {:?}\n", home.program(model))).unwrap();
    let mut install = user.command(None, &["bridge", "install", "--yes"]);
    let installed = install.env("PILOTLIGHT_CONFIG", config).output().unwrap();
    assert!(installed.status.success(), "{installed:?}");
    user
}

/// Has a terminal ask for one permission, for the `n`th time, and waits until its dialog is there.
fn asks(terminal: &Terminal, n: usize) -> Grown {
    terminal.enter(&format!("SCRIPT:many1 Paint plank {n}"));
    // The first request was Copilot's own, for the bridge.
    terminal.folder.wait_nth("permission.requested", n + 1);
    terminal.wait_screen(DIALOG);
    Grown::of(&terminal.folder)
}

/// From the answer to the log, and to the end of the dialog. tmux takes some milliseconds to show its screen.
fn answered(terminal: &Terminal, grown: &Grown, begun: Instant, n: usize) -> (Duration, Duration) {
    let logged = until(begun, || grown.has("permission.completed"));
    let closed = until(begun, || !terminal.screen().contains(DIALOG));
    terminal.folder.wait_nth("assistant.turn_end", 2 * n + 1);
    (logged, closed)
}

fn print_answers(who: &str, took: impl Iterator<Item = (Duration, Duration)>) {
    let (logged, closed) = took.unzip();
    print(&format!("{who} -> approved on disk"), logged);
    print("  -> its dialog is closed", closed);
}

/// Copilot's user lets the bridge answer.
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

/// A process' share of the memory that it has with others.
fn shared_memory(pid: u32) -> String {
    let rollup = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap();
    rollup.lines().find(|line| line.starts_with("Pss:")).unwrap().split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Has a turn begin in which the model says nothing.
fn hang(terminal: &Terminal, model: &Model, n: usize) {
    let asked = model.asked("hang", 0);
    terminal.enter(&format!("SCRIPT:hang Paint plank {n}"));
    let is_asked = || (model.asked("hang", 0) > asked).then_some(());
    wait_until(COPILOT, "the model is asked", || terminal.dump(), is_asked);
}

/// A desktop with the light, and a terminal with the bridge. Fields drop from the top.
struct Desk {
    terminal: Terminal,
    light: Light,
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
        let light = user.light(&bus);
        panel.wait_for_icon();
        let terminal = Terminal::start(&home, &model, &[]);
        allow(&terminal, || {
            let entry = ready(&panel, &light, FOLDER, "Let Pilotlight answer here");
            click(&panel, entry);
        });
        Self { terminal, light, panel, model, home, _user: user, _bus: bus }
    }

    fn approvals(&self, clicks: usize) {
        let once = |n: usize, clicked: bool| {
            let grown = asks(&self.terminal, n);
            // A key is pressed where the menu is as well, so that the terminal has had as long.
            let entry = ready(&self.panel, &self.light, FOLDER, "Approve once");
            let begun = Instant::now();
            if clicked {
                click(&self.panel, entry);
            } else {
                self.terminal.press(&["Enter"]);
            }
            answered(&self.terminal, &grown, begun, n)
        };
        print_answers("approve clicked", (1..=clicks).map(|n| once(n, true)));
        print_answers("approved by a key", (clicks + 1..=2 * clicks).map(|n| once(n, false)));
    }

    fn stops(&self, clicks: usize) {
        let once = |n: usize| {
            hang(&self.terminal, &self.model, n);
            let entry = ready(&self.panel, &self.light, FOLDER, "Stop the turn");
            let grown = Grown::of(&self.terminal.folder);
            let begun = Instant::now();
            click(&self.panel, entry);
            let took = until(begun, || grown.has("abort"));
            over(&self.panel, FOLDER, "Stop the turn");
            took
        };
        print("stop clicked -> abort on disk", (1..=clicks).map(once).collect());
    }

    /// The extension while nothing happens: with the tray, with one that is stopped, with none. It ends the tray.
    fn idle(&mut self) {
        let extension = self.terminal.extension();
        let rests = |beside: &str| {
            wait(SETTLES);
            let (before, used) = (Switches::of(extension), ticks(extension));
            wait(IDLE);
            let (used, switches) = (ticks(extension) - used, sum(&Switches::of(extension).since(&before)));
            println!(
                "{:<46} {} ms of CPU and {switches} context switches in {IDLE:?}, {}",
                format!("a bridge that rests, {beside}"),
                used * 10, // a tick is 10 ms wherever Linux is used today
                shared_memory(extension),
            );
        };
        rests("with a tray");
        self.light.freeze(); // it lives on, and says nothing: what a bridge does of itself
        rests("with a tray that is stopped");
        self.light.signal(Signal::CONT);
        self.light.signal(Signal::TERM);
        self.light.ended();
        rests("without a tray");
    }

    /// Terminals with the bridge and without, in turns.
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

/// A terminal with the bridge, and the bench at the other end of its socket. Fields drop from the top.
struct FarEnd {
    terminal: Terminal,
    line: Line,
    _listener: Listener,
    model: Model,
    _home: Home,
    _user: User,
}

impl FarEnd {
    fn new() -> Self {
        let (home, model) = (Home::new(FOLDER), Model::start());
        let user = installed(&home, &model);
        let extension = ".local/share/pilotlight/bridge/plugins/pilotlight/extensions/pilotlight/bridge.json";
        be_pilotlight(&user.scratch.path().join(extension));
        let key = std::fs::read(user.state().join("bridge.key")).unwrap();
        let listener = Listener::start(&user.scratch.path().join("run/pilotlight"), &key);
        let terminal = Terminal::start(&home, &model, &[]);
        let line = listener.accept();
        let far = Self { terminal, line, _listener: listener, model, _home: home, _user: user };
        allow(&far.terminal, || {
            far.line.event("session.idle");
            far.say(json!({"t": "elevate", "after": far.root()}));
        });
        far
    }

    fn say(&self, mut order: Value) {
        order["id"] = 1.into();
        self.line.say(&format!("{order}\n"));
    }

    fn root(&self) -> Value {
        let events = self.terminal.folder.events();
        events.iter().rfind(|event| event["type"] == "user.message").unwrap()["id"].clone()
    }

    fn approvals(&self, clicks: usize) {
        let once = |n: usize| {
            let grown = asks(&self.terminal, n);
            let of_nth = |said: &Value| said["type"] == "permission.requested";
            let nth = || self.line.heard().into_iter().filter(of_nth).nth(n - 1);
            let said = wait_until(COPILOT, "it is heard of", || self.terminal.dump(), nth);
            let request = &said["data"]["promptRequest"];
            let order = json!({"t": "approve", "requestId": said["data"]["requestId"], "toolCallId": request["toolCallId"],
                "text": said["mark"]});
            let begun = Instant::now();
            self.say(order);
            answered(&self.terminal, &grown, begun, n)
        };
        print_answers("approved over the bridge, without a tray", (1..=clicks).map(once));
    }

    fn stops(&self, clicks: usize) {
        let once = |n: usize| {
            let before = self.root();
            hang(&self.terminal, &self.model, n);
            let is_logged = || (self.root() != before).then_some(());
            wait_until(COPILOT, "its log has the prompt", || self.terminal.dump(), is_logged);
            let (grown, order) = (Grown::of(&self.terminal.folder), json!({"t": "stop", "after": self.root()}));
            let begun = Instant::now();
            self.say(order);
            until(begun, || grown.has("abort"))
        };
        print("stopped over the bridge, without a tray", (1..=clicks).map(once).collect());
    }
}
