//! The costs of the tray. Not run with the other tests: they need a release build and an otherwise idle machine.
//!
//! ```text
//! cargo build --release
//! PILOTLIGHT_TEST_PROGRAM=target/release/pilotlight PILOTLIGHT_TEST_HOME=a/home/with/3000/folders \
//!     cargo test --test program figures -- --ignored --nocapture --test-threads 1
//! ```
//!
//! `PILOTLIGHT_TEST_MINUTES` sets for how many minutes the idle program is measured; the default is three. The program
//! is responsible for its own context switches; forced ones mean that another program needed the processor.

use crate::desk::bus::Bus;
use crate::desk::panel::Panel;
use crate::desk::sessions::Sessions;
use crate::desk::tray::User;
use std::process::Command;
use std::time::{Duration, Instant};

/// The program and home of those variables, or the defaults.
fn program(user: &User, bus: &Bus) -> Command {
    let usual = user.command(Some(bus), &[]);
    let env = |name| std::env::var_os(name);
    let mut command = Command::new(usual.get_program());
    command.env_clear();
    command.envs(usual.get_envs().filter_map(|(key, value)| Some((key, value?))));
    match env("PILOTLIGHT_TEST_HOME") {
        Some(home) => command.arg("--home").arg(home),
        None => command.args(usual.get_args()),
    };
    command
}

/// Spins until the condition holds: `wait_until` of the other tests polls only every 20 ms.
fn spin(begun: Instant, mut condition: impl FnMut() -> bool) -> Duration {
    while !condition() {
        assert!(begun.elapsed() < Duration::from_secs(30));
        std::thread::yield_now();
    }
    begun.elapsed()
}

fn percentiles(mut times: Vec<Duration>) -> String {
    times.sort();
    let at = |share: usize| times[(times.len() - 1) * share / 100];
    format!("p50 {:?}, p95 {:?}, worst {:?}, of {}", at(50), at(95), at(100), times.len())
}

#[test]
#[ignore = "a figure"]
fn figures_start_to_registered() {
    let (bus, sessions) = (Bus::start(), Sessions::new());
    let panel = Panel::start(&bus);
    let (mut registered, mut first_menus) = (Vec::new(), Vec::new());
    for n in 0..15 {
        let user = User::new(&sessions);
        let begun = Instant::now();
        let tray = user.start_tray_as(program(&user, &bus));
        registered.push(spin(begun, || panel.registered() > n));
        let layouts = panel.signals("LayoutUpdated");
        // The first menu with sessions.
        first_menus.push(spin(begun, || {
            panel.signals("LayoutUpdated") > layouts || panel.menu()[0].label != "Looking for sessions"
        }));
        drop(tray);
    }
    println!("start to registered: {}", percentiles(registered));
    println!("start to the first menu with sessions: {}", percentiles(first_menus));
}

#[test]
#[ignore = "a figure"]
fn figures_append_to_menu() {
    let (bus, sessions) = (Bus::start(), Sessions::new());
    let (user, panel) = (User::new(&sessions), Panel::start(&bus));
    let made: Vec<_> = (0..20).map(|n| sessions.add(&format!("session {n}"))).collect();
    let mut command = program(&user, &bus);
    if std::env::var_os("PILOTLIGHT_TEST_HOME").is_some() {
        command.arg("--home").arg(sessions.home()); // both homes
    }
    let _tray = user.start_tray_as(command);
    panel.wait_for_icon();
    for session in &made {
        user.wait_status(&panel, session, "idle");
    }
    let mut times = Vec::new();
    for n in 0..100 {
        panel.wait_idle();
        let session = &made[n % made.len()];
        panel.open(); // nothing is sent while it is closed
        panel.wait_idle();
        let before = panel.signals("ItemsPropertiesUpdated");
        let begun = Instant::now();
        if (n / made.len()) % 2 == 0 {
            session.prompt();
        } else {
            session.answer("Done.");
        }
        times.push(spin(begun, || panel.signals("ItemsPropertiesUpdated") > before));
    }
    println!("append to menu on the bus: {}", percentiles(times));
}

/// Twenty sessions in all states that only time changes, created a second apart: answered ones grow older, silent
/// models and tools pass one limit after another, and the CPU use of open tools is sampled.
#[test]
#[ignore = "a figure"]
fn figures_idle() {
    let (bus, sessions) = (Bus::start(), Sessions::new());
    let (user, panel) = (User::new(&sessions), Panel::start(&bus));
    let wait = |time| {
        #[expect(clippy::disallowed_methods, reason = "a minute is measured")]
        std::thread::sleep(time);
    };
    // A given home is measured without other sessions.
    let made = if std::env::var_os("PILOTLIGHT_TEST_HOME").is_some() { 0 } else { 20 };
    let _made: Vec<_> = (0..made)
        .map(|n| {
            let session = sessions.add(&format!("session {n}"));
            session.prompt();
            match n % 4 {
                0 => session.answer("Done."),
                1 => session.tool("a", "bash", "make"),
                2 => {}
                _ => {
                    session.tool("a", "bash", "make");
                    session.tool_done("a");
                }
            }
            wait(Duration::from_secs(1));
            session
        })
        .collect();
    let tray = user.start_tray_as(program(&user, &bus));
    panel.wait_for_icon();
    wait(Duration::from_secs(8));
    let minutes = std::env::var("PILOTLIGHT_TEST_MINUTES").ok().and_then(|n| n.parse().ok()).unwrap_or(3);
    let mut worst = (0, 0);
    for minute in 1..=minutes {
        let (before, ticks, signals) = (tray.switches(), tray.ticks(), panel.all_signals());
        wait(Duration::from_secs(60));
        let threads = tray.switches().since(&before);
        let (own, forced) = threads.iter().fold((0, 0), |sum, thread| (sum.0 + thread.own, sum.1 + thread.forced));
        worst = worst.max((own, forced));
        println!(
            "minute {minute}: {:.2} context switches a second ({own} of its own, {forced} forced; {} threads), {} ticks of CPU, \
             {} signals",
            (own + forced) as f64 / 60.0,
            threads.len(),
            tray.ticks() - ticks,
            panel.all_signals() - signals
        );
        for thread in threads.iter().filter(|thread| thread.own + thread.forced > 0) {
            println!("  {}: {} of its own, {} forced", thread.name, thread.own, thread.forced);
        }
    }
    println!("the worst minute: {:.2} a second of its own", worst.0 as f64 / 60.0);
    println!("memory: {}", tray.memory());
}
