//! From a click in the tray's menu to its effect, with the real Copilot CLI, while twenty other sessions write their logs.
//!
//! Prints how long it takes from "Approve once" to what the approved tool does first, from "Stop the turn" to the abort in the
//! log, and from "Reconnect and continue", in a session that nobody could be asked for, to the start of its next tool. The model
//! answers at once. Beside the first two stands how long Copilot takes where the session's own client does the same, so that
//! our part is the difference. Linux only; it needs `dbus-daemon` and the CLI that `tests/all.sh` installs.
//!
//!     cargo bench --bench clicks               # each click 30 times
//!     cargo bench --bench clicks -- 100

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a benchmark that cannot go on should say where")]

#[cfg(target_os = "linux")]
#[path = "../tests/support/mod.rs"]
mod support;

#[cfg(target_os = "linux")]
fn main() {
    linux::main();
}

#[cfg(not(target_os = "linux"))]
fn main() {
    eprintln!("this benchmark reads /proc: it runs on Linux");
}

#[cfg(target_os = "linux")]
mod linux {
    use crate::support::desktop::bus::Bus;
    use crate::support::desktop::light::{Light, User};
    use crate::support::desktop::panel::{Entry, Panel};
    use crate::support::desktop::sessions::{Session as Made, Sessions};
    use crate::support::home::{Folder, Home};
    use crate::support::model::Model;
    use crate::support::person::{Manner, Person};
    use crate::support::server::{Client, Server, Session};
    use crate::support::{SOON, wait_until};
    use std::io::{Read, Seek, SeekFrom};
    use std::path::Path;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
    use std::thread::JoinHandle;
    use std::time::{Duration, Instant};

    /// How often each click is measured, where nothing else is said.
    const CLICKS: usize = 30;
    /// So many other sessions work meanwhile.
    const OTHERS: usize = 20;
    /// Each of them starts or ends a tool so often. A start is two lines, an end one: 20 lines a second.
    const WRITES_EVERY: Duration = Duration::from_millis(75);
    /// How often the disk is looked at for the effect: the error of what is measured.
    const LOOKS_EVERY: Duration = Duration::from_micros(300);
    /// The folder that the measured sessions work in; their rows in the menu begin with it.
    const FOLDER: &str = "fence";

    pub(super) fn main() {
        let clicks = std::env::args().skip(1).find_map(|argument| argument.parse().ok()).unwrap_or(CLICKS);
        println!("load of the machine before: {}", load());
        let desk = Desk::new();
        desk.approvals(clicks);
        desk.stops(clicks);
        desk.recoveries(clicks);
        let (written, took) = desk.others.end();
        let rate = written as f64 / took.as_secs_f64() / OTHERS as f64;
        println!("{OTHERS} other sessions wrote {rate:.1} lines a second each; the tray: {}", desk.light.memory());
        println!("load of the machine after: {}", load());
    }

    fn load() -> String {
        std::fs::read_to_string("/proc/loadavg").unwrap().trim().to_owned()
    }

    /// A desktop with the light, a Copilot server, and the others. Fields drop from the top.
    struct Desk {
        light: Light,
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
            let light = user.light_from(user.homeless(Some(&bus), &homes));
            panel.wait_for_icon();
            panel.wait_for("the others are shown", |entry| entry.shown().contains("session 19"));
            Self {
                light,
                panel,
                others,
                client,
                server,
                home,
                _model: model,
                _sessions: sessions,
                _user: user,
                _bus: bus,
            }
        }

        /// Waits until this can be clicked in the menu of the measured session, and the menu has been at rest for long enough.
        fn ready(&self, fits: impl Fn(&str) -> bool) -> i32 {
            let dump = || format!("{:#?}\n{}", self.panel.menu(), self.light.said());
            let find = || {
                let menu = self.panel.layout().1;
                let ours =
                    menu.find(&|entry| entry.enabled && !entry.entries.is_empty() && entry.shown().contains(FOLDER))?;
                ours.find(&|entry: &Entry| entry.enabled && entry.entries.is_empty() && fits(&entry.shown())).cloned()
            };
            wait_until(SOON, "it can be clicked", dump, find);
            self.panel.rest();
            wait_until(SOON, "it can be clicked", dump, find).id
        }

        fn click(&self, entry: i32) {
            assert!(self.panel.click(entry), "the menu does not know the entry any more");
        }

        fn approvals(&self, clicks: usize) {
            let effect = self.home.project().join("denied0.txt");
            let measure = |clicked: bool| {
                let person = Person::who(Manner::Waits);
                let session = self.server.create(&self.client, Some(&person));
                let once = |n: usize| {
                    let _ = std::fs::remove_file(&effect);
                    session.send(&format!("SCRIPT:denied1 Paint plank {n}"));
                    session.folder.wait_nth("permission.requested", n);
                    let entry = self.ready(|label| label.starts_with("Approve once"));
                    let begun = Instant::now();
                    if clicked {
                        self.click(entry);
                    } else {
                        person.now(Manner::Approves);
                    }
                    let took = until(begun, || effect.exists());
                    session.folder.wait_nth("assistant.turn_end", 2 * n);
                    person.now(Manner::Waits);
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
                let session = self.server.create(&self.client, Some(&Person::who(Manner::Approves)));
                let once = |n: usize| {
                    session.send(&format!("SCRIPT:hang Paint plank {n}"));
                    let entry = self.ready(|label| label.starts_with("Stop the turn"));
                    let from = Grown::of(&session.folder);
                    let begun = Instant::now();
                    if clicked {
                        self.click(entry);
                    } else {
                        session.abort();
                    }
                    let took = until(begun, || from.has("abort"));
                    // The round's own end comes after it.
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

        /// A new session each time: nothing but the user's next word lets one be recovered more than twice.
        fn recoveries(&self, clicks: usize) {
            let once = |n: usize| {
                let session = self.server.create(&self.client, None);
                session.send(&format!("SCRIPT:denied3 Paint plank {n}"));
                session.folder.wait_nth("assistant.turn_end", 4);
                let entry = self.ready(|label| label.starts_with("Reconnect and continue"));
                let from = Grown::of(&session.folder);
                let begun = Instant::now();
                self.click(entry);
                let took = until(begun, || from.has("tool.execution_start"));
                // It asks again, where it was denied before.
                session.folder.wait("permission.requested");
                self.leave(&session);
                took
            };
            print("reconnect and continue -> tool start", (1..=clicks).map(once).collect());
        }

        /// Deletes the session, once the tray is done with it. What is gone keeps its place in the menu for a while, disabled.
        fn leave(&self, session: &Session) {
            self.panel.wait_for("it is attached", |entry| entry.shown().contains("attached to its server"));
            session.folder.assert_one_chain();
            self.client.delete(&session.id());
            let shown = |entry: &Entry| entry.enabled && entry.shown().contains(FOLDER);
            let gone = || self.panel.menu().iter().all(|entry| !shown(entry)).then_some(());
            wait_until(SOON, "the menu offers it no more", || format!("{:#?}", self.panel.menu()), gone);
        }
    }

    /// Looks until it is so.
    fn until(begun: Instant, so: impl Fn() -> bool) -> Duration {
        while !so() {
            assert!(begun.elapsed() < SOON, "the click has no effect");
            std::thread::park_timeout(LOOKS_EVERY);
        }
        begun.elapsed()
    }

    fn print(what: &str, mut took: Vec<Duration>) {
        took.sort_unstable();
        let at = |share: usize| took[(took.len() - 1) * share / 100].as_secs_f64() * 1e3;
        println!("{what:<42}p50 {:>7.2} ms, p95 {:>7.2}, worst {:>7.2}, of {}", at(50), at(95), at(100), took.len());
    }

    /// What is written into a log from now on.
    struct Grown {
        log: std::path::PathBuf,
        from: u64,
    }

    impl Grown {
        fn of(folder: &Folder) -> Self {
            let log = folder.log();
            let from = length(&log);
            Self { log, from }
        }

        /// Whether an event of this type is among it.
        fn has(&self, kind: &str) -> bool {
            if length(&self.log) == self.from {
                return false;
            }
            let (mut file, mut text) = (std::fs::File::open(&self.log).unwrap(), String::new());
            file.seek(SeekFrom::Start(self.from)).unwrap();
            file.read_to_string(&mut text).unwrap();
            text.contains(&format!("\"type\":\"{kind}\""))
        }
    }

    fn length(log: &Path) -> u64 {
        std::fs::metadata(log).unwrap().len()
    }

    /// Sessions that work, each with one tool after the other.
    struct Others {
        over: Arc<AtomicBool>,
        lines: Arc<AtomicUsize>,
        begun: Instant,
        thread: Option<JoinHandle<()>>,
    }

    impl Others {
        fn start(sessions: &Sessions) -> Self {
            let made: Vec<Made> = (0..OTHERS).map(|n| sessions.add(&format!("session {n}"))).collect();
            let (over, lines) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
            let (until, count) = (Arc::clone(&over), Arc::clone(&lines));
            let thread = std::thread::spawn(move || write(&made, &until, &count));
            Self { over, lines, begun: Instant::now(), thread: Some(thread) }
        }

        /// How many lines were written, in which time.
        fn end(&self) -> (usize, Duration) {
            (self.lines.load(Ordering::Relaxed), self.begun.elapsed())
        }
    }

    impl Drop for Others {
        fn drop(&mut self) {
            self.over.store(true, Ordering::Relaxed);
            let _ = self.thread.take().map(JoinHandle::join);
        }
    }

    /// One write after the other, evenly spread over the sessions and the time.
    fn write(made: &[Made], over: &AtomicBool, lines: &AtomicUsize) {
        made.iter().for_each(Made::prompt);
        let begun = Instant::now();
        let due = |turn: u32| WRITES_EVERY * turn / OTHERS as u32;
        for turn in 0u32.. {
            while let Some(rest) = due(turn).checked_sub(begun.elapsed()) {
                std::thread::park_timeout(rest);
            }
            if over.load(Ordering::Relaxed) {
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
}
