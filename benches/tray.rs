//! The tray on a session bus of the bench's own, which is also its panel.
//!
//! Prints how long a change takes from the write to the menu on the bus, with 5, 50 and 500 live sessions, and what the tray
//! costs while nothing happens, with none, 20 and 200 of them: context switches and memory. Linux only; it needs `dbus-daemon`.
//!
//!     cargo bench --bench tray               # idle over 10 s
//!     cargo bench --bench tray -- 60
//!     cargo bench --bench tray -- stay HOME  # the first menu of this home; then it stays until its standard input ends

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
    use crate::support::desktop::light::{Light, User, sum};
    use crate::support::desktop::panel::Panel;
    use crate::support::desktop::sessions::{Session, Sessions};
    use std::io::Read;
    use std::time::{Duration, Instant};

    const CHANGES: usize = 40;
    /// What begins late has begun by now, and a menu was laid out long enough ago.
    const SETTLES: Duration = Duration::from_secs(8);

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

    /// The light on a home that is there, for others to measure: its process is told.
    fn stay(home: std::path::PathBuf) {
        let bus = Bus::start();
        let (user, panel) = (User::of(home), Panel::start(&bus));
        let begun = Instant::now();
        let light = user.light(&bus);
        let until = |what: &mut dyn FnMut() -> bool| {
            while !what() {
                assert!(begun.elapsed() < Duration::from_secs(30), "it does not come");
                wait(Duration::from_micros(500));
            }
            begun.elapsed().as_secs_f64() * 1e3
        };
        let icon = until(&mut || panel.registered() > 0);
        // Asked as a panel asks: once for each time that it is told to.
        let mut told = usize::MAX;
        let menu = until(&mut || {
            let before = std::mem::replace(&mut told, panel.signals("LayoutUpdated"));
            told != before && panel.menu().first().is_some_and(|entry| entry.label != "Looking for sessions")
        });
        println!("process {} icon_ms {icon:.1} menu_ms {menu:.1}", light.pid());
        let _ = std::io::stdin().read_to_end(&mut Vec::new()); // whatever ends it, ends it
        println!("{}", light.memory());
    }

    /// A desktop with the light and so many sessions that rest.
    struct Desk {
        light: Light,
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
            let light = user.light(&bus);
            panel.wait_for_icon();
            panel.wait_for("the sessions", |entry| entry.label != "Looking for sessions" && !entry.label.is_empty());
            panel.settle();
            Self { light, panel, made, _sessions: sessions, _user: user, _bus: bus }
        }

        /// From the write to the signal, each change after everything before it has settled.
        fn changes(&self) {
            let mut took = Vec::new();
            for n in 0..CHANGES {
                self.panel.settle();
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

        /// What it costs while nothing is written.
        fn idle(&self, idle: Duration) {
            wait(SETTLES);
            let before = self.light.switches();
            wait(idle);
            let switches = sum(&self.light.switches().since(&before));
            println!(
                "{:<34}{:>9.2} a second over {idle:?} ({})",
                format!("context switches, {} live, idle", self.made.len()),
                switches as f64 / idle.as_secs_f64(),
                self.light.memory()
            );
        }
    }

    fn wait(time: Duration) {
        #[expect(clippy::disallowed_methods, reason = "the wait is the measurement")]
        std::thread::sleep(time);
    }
}
