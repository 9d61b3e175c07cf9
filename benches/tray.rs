//! Measures the tray on a session bus of the bench's own. The bench is also its panel.
//!
//! Prints the latency from a write to the menu on the bus, with 5, 50 and 500 live sessions; and the idle cost of the
//! tray with 0, 20 and 200 of them: context switches and memory. Linux only; it needs `dbus-daemon`.
//!
//!     cargo bench --bench tray               # idle over 10 s
//!     cargo bench --bench tray -- 60
//!     cargo bench --bench tray -- stay HOME  # the first menu of this home; then runs until its standard input ends

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
    use crate::support::desktop::panel::Panel;
    use crate::support::desktop::sessions::{Session, Sessions};
    use crate::support::desktop::tray::{TrayProcess, User, sum};
    use std::io::Read;
    use std::time::{Duration, Instant};

    const CHANGES: usize = 40;
    /// Long enough for delayed tasks to have started, and for the menu to have settled.
    const SETTLE: Duration = Duration::from_secs(8);
    /// Longer than the menu keeps its shape, and than its throttle remembers the last change: they are not measured.
    const CALM: Duration = Duration::from_millis(1100);

    pub(super) fn main() {
        let arguments: Vec<_> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
        if let [first, home] = &arguments[..]
            && first == "stay"
        {
            return stay(home.into());
        }
        let idle = arguments.iter().find_map(|argument| argument.parse().ok()).unwrap_or(10);
        for live in [5, 50, 500] {
            Desk::new(live).changes();
        }
        for live in [0, 20, 200] {
            Desk::new(live).idle(Duration::from_secs(idle));
        }
    }

    /// Runs the tray on an existing home for other tools to measure, and prints its pid.
    fn stay(home: std::path::PathBuf) {
        let bus = Bus::start();
        let (user, panel) = (User::with_home(home), Panel::start(&bus));
        let begun = Instant::now();
        let tray = user.start_tray(&bus);
        let until = |what: &mut dyn FnMut() -> bool| {
            while !what() {
                assert!(begun.elapsed() < Duration::from_secs(30), "it does not appear");
                wait(Duration::from_micros(500));
            }
            begun.elapsed().as_secs_f64() * 1e3
        };
        let icon = until(&mut || panel.registered() > 0);
        // Like a panel, asks once for each signal.
        let mut signals = usize::MAX;
        let menu = until(&mut || {
            let before = std::mem::replace(&mut signals, panel.signals("LayoutUpdated"));
            signals != before && panel.menu().first().is_some_and(|entry| entry.label != "Looking for sessions")
        });
        println!("process {} icon_ms {icon:.1} menu_ms {menu:.1}", tray.pid());
        let _ = std::io::stdin().read_to_end(&mut Vec::new()); // any outcome means the end
        println!("{}", tray.memory());
    }

    /// A desktop with the tray and idle sessions.
    struct Desk {
        tray: TrayProcess,
        panel: Panel,
        made: Vec<Session>,
        _sessions: Sessions,
        _user: User,
        _bus: Bus,
    }

    impl Desk {
        fn new(live: usize) -> Self {
            let (bus, sessions) = (Bus::start(), Sessions::new());
            let (user, panel) = (User::new(&sessions), Panel::start(&bus));
            let made: Vec<_> = (0..live).map(|n| sessions.add(&format!("session {n}"))).collect();
            for session in &made {
                session.prompt();
                session.answer("Done.");
            }
            let tray = user.start_tray(&bus);
            panel.wait_for_icon();
            panel.wait_for("the sessions", |entry| entry.label != "Looking for sessions" && !entry.label.is_empty());
            panel.wait_idle();
            Self { tray, panel, made, _sessions: sessions, _user: user, _bus: bus }
        }

        /// Measures from the write to the signal. Each change waits until the previous one has settled.
        fn changes(&self) {
            let mut took = Vec::new();
            for n in 0..CHANGES {
                self.panel.wait_idle();
                wait(CALM);
                let session = &self.made[n / 2 % self.made.len()];
                let before = self.panel.all_signals();
                let begun = Instant::now();
                if n % 2 == 0 {
                    session.prompt();
                } else {
                    session.answer("Done.");
                }
                while self.panel.all_signals() == before {
                    assert!(begun.elapsed() < Duration::from_secs(30), "the menu does not change");
                    std::thread::yield_now();
                }
                took.push(begun.elapsed());
            }
            took.sort_unstable();
            let at = |share: usize| took[(took.len() - 1) * share / 100].as_secs_f64() * 1e3;
            println!(
                "{:<34}{:>9.2} ms (p95 {:.2}, worst {:.2}, of {CHANGES})",
                format!("append -> menu, {} live, p50", self.made.len()),
                at(50),
                at(95),
                at(100)
            );
        }

        /// Measures the cost while nothing is written.
        fn idle(&self, idle: Duration) {
            wait(SETTLE);
            let before = self.tray.switches();
            wait(idle);
            let switches = sum(&self.tray.switches().since(&before));
            println!(
                "{:<34}{:>9.2} a second over {idle:?} ({})",
                format!("context switches, {} live, idle", self.made.len()),
                switches as f64 / idle.as_secs_f64(),
                self.tray.memory()
            );
        }
    }

    fn wait(time: Duration) {
        #[expect(clippy::disallowed_methods, reason = "the wait is the measurement")]
        std::thread::sleep(time);
    }
}
