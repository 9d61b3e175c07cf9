//! Measures clicks on a session of a Copilot server, while twenty other sessions write their logs.
//!
//! Measures from "Approve once" to the approved tool's first effect, from "Stop the turn" to the abort in the log, and
//! from "Reconnect and continue", in a session that could ask nobody, to the start of its next tool.

use crate::clicks::timing::{Appended, click, print, ready, until};
use crate::support::desktop::bus::Bus;
use crate::support::desktop::panel::{Entry, Panel};
use crate::support::desktop::sessions::{Session as Made, Sessions};
use crate::support::desktop::tray::{TrayProcess, User};
use crate::support::home::Home;
use crate::support::model::Model;
use crate::support::person::{Manner, Person};
use crate::support::server::{Client, Server, Session};
use crate::support::{SOON, wait_until};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How many other sessions work at the same time.
const OTHERS: usize = 20;
/// How often each of them starts or ends a tool. A start is two lines, an end one: 20 lines a second.
const WRITE_INTERVAL: Duration = Duration::from_millis(75);
/// The folder that the measured sessions work in; their rows in the menu begin with it.
const FOLDER: &str = "fence";

pub(crate) fn measure(clicks: usize) {
    let desk = Desk::new();
    desk.approvals(clicks);
    desk.stops(clicks);
    desk.recoveries(clicks);
    let (written, took) = desk.others.written();
    let rate = written as f64 / took.as_secs_f64() / OTHERS as f64;
    println!("{OTHERS} other sessions wrote {rate:.1} lines a second each; the tray: {}", desk.tray.memory());
}

/// A desktop with the tray, a Copilot server, and the other sessions. Fields are dropped in order.
struct Desk {
    tray: TrayProcess,
    panel: Panel,
    others: Others,
    client: Client,
    server: Server,
    home: Home,
    _model: Model,
    _sessions: Sessions,
    _user: User,
    _bus: Bus,
}

impl Desk {
    fn new() -> Self {
        let (home, model, sessions, bus) = (Home::new(FOLDER), Model::start(), Sessions::new(), Bus::start());
        let server = Server::start(&home, &model);
        let client = server.connect();
        let others = Others::start(&sessions);
        let (user, panel) = (User::new(&sessions), Panel::start(&bus));
        let (one, other) = (home.dir(), sessions.home());
        let homes = ["--home", one.to_str().unwrap(), "--home", other.to_str().unwrap()];
        let tray = user.start_tray_as(user.command_without_home(Some(&bus), &homes));
        panel.wait_for_icon();
        panel.wait_for("the others are shown", |entry| entry.shown().contains("session 19"));
        Self { tray, panel, others, client, server, home, _model: model, _sessions: sessions, _user: user, _bus: bus }
    }

    fn ready(&self, label: &str) -> i32 {
        ready(&self.panel, &self.tray, FOLDER, label)
    }

    fn approvals(&self, clicks: usize) {
        let effect = self.home.project().join("denied0.txt");
        let measure = |clicked: bool| {
            let person = Person::new(Manner::Waits);
            let session = self.server.create(&self.client, Some(&person));
            let once = |n: usize| {
                let _ = std::fs::remove_file(&effect);
                session.send(&format!("SCRIPT:denied1 Paint plank {n}"));
                session.folder.wait_nth("permission.requested", n);
                let entry = self.ready("Approve once");
                let begun = Instant::now();
                if clicked {
                    click(&self.panel, entry);
                } else {
                    person.set_manner(Manner::Approves);
                }
                let took = until(begun, || effect.exists());
                session.folder.wait_nth("assistant.turn_end", 2 * n);
                person.set_manner(Manner::Waits);
                took
            };
            let took = (1..=clicks).map(once).collect();
            session.folder.assert_one_chain();
            self.client.delete(&session.id());
            took
        };
        print("approve -> the tool's first effect", measure(true));
        print("  approved by the session's own client", measure(false));
    }

    fn stops(&self, clicks: usize) {
        let measure = |clicked: bool| {
            let session = self.server.create(&self.client, Some(&Person::new(Manner::Approves)));
            let once = |n: usize| {
                session.send(&format!("SCRIPT:hang Paint plank {n}"));
                let entry = self.ready("Stop the turn");
                let from = Appended::of(&session.folder);
                let begun = Instant::now();
                if clicked {
                    click(&self.panel, entry);
                } else {
                    session.abort();
                }
                let took = until(begun, || from.has("abort"));
                // The round's own end follows.
                session.folder.wait_nth("assistant.turn_end", n);
                took
            };
            let took = (1..=clicks).map(once).collect();
            session.folder.assert_one_chain();
            self.client.delete(&session.id());
            took
        };
        print("stop -> abort on disk", measure(true));
        print("  stopped by the session's own client", measure(false));
    }

    /// Uses a new session each time, because a session is recovered at most twice before its user's next prompt.
    fn recoveries(&self, clicks: usize) {
        let once = |n: usize| {
            let session = self.server.create(&self.client, None);
            session.send(&format!("SCRIPT:denied3 Paint plank {n}"));
            session.folder.wait_nth("assistant.turn_end", 4);
            let entry = self.ready("Reconnect and continue");
            let from = Appended::of(&session.folder);
            let begun = Instant::now();
            click(&self.panel, entry);
            let took = until(begun, || from.has("tool.execution_start"));
            // It now asks where it was denied before.
            session.folder.wait("permission.requested");
            self.leave(&session);
            took
        };
        print("reconnect and continue -> tool start", (1..=clicks).map(once).collect());
    }

    /// Deletes the session once the tray is done with it. A deleted session stays in the menu for a while, disabled.
    fn leave(&self, session: &Session) {
        self.panel.wait_for("it is attached", |entry| entry.shown().contains("attached to its server"));
        session.folder.assert_one_chain();
        self.client.delete(&session.id());
        let shown = |entry: &Entry| entry.enabled && entry.shown().contains(FOLDER);
        let gone = || self.panel.menu().iter().all(|entry| !shown(entry)).then_some(());
        wait_until(SOON, "it is gone from the menu", || format!("{:#?}", self.panel.menu()), gone);
    }
}

/// Sessions that work, each running one tool after the other.
struct Others {
    stopped: Arc<AtomicBool>,
    lines: Arc<AtomicUsize>,
    begun: Instant,
    thread: Option<JoinHandle<()>>,
}

impl Others {
    fn start(sessions: &Sessions) -> Self {
        let made: Vec<Made> = (0..OTHERS).map(|n| sessions.add(&format!("session {n}"))).collect();
        let (stopped, lines) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let (stop, count) = (Arc::clone(&stopped), Arc::clone(&lines));
        let thread = std::thread::spawn(move || write(&made, &stop, &count));
        Self { stopped, lines, begun: Instant::now(), thread: Some(thread) }
    }

    /// How many lines were written so far, and in what time.
    fn written(&self) -> (usize, Duration) {
        (self.lines.load(Ordering::Relaxed), self.begun.elapsed())
    }
}

impl Drop for Others {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::Relaxed);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// Writes at even intervals, to each session in turn.
fn write(made: &[Made], stop: &AtomicBool, lines: &AtomicUsize) {
    made.iter().for_each(Made::prompt);
    let begun = Instant::now();
    let due = |turn: u32| WRITE_INTERVAL * turn / OTHERS as u32;
    for turn in 0u32.. {
        while let Some(rest) = due(turn).checked_sub(begun.elapsed()) {
            std::thread::park_timeout(rest);
        }
        if stop.load(Ordering::Relaxed) {
            return;
        }
        let (session, round) = (&made[turn as usize % OTHERS], turn as usize / OTHERS);
        let call = format!("call-{}", round / 2);
        if round % 2 == 0 {
            session.tool(&call, "bash", "make");
        } else {
            session.tool_done(&call);
        }
        lines.fetch_add(2 - round % 2, Ordering::Relaxed);
    }
}
