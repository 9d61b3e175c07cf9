//! What the light costs. Not run with the other tests: figures want a release build and a machine that does nothing else.
//!
//! ```text
//! cargo build --release
//! PILOTLIGHT_TEST_PROGRAM=target/release/pilotlight PILOTLIGHT_TEST_HOME=a/home/with/3000/folders \
//!     cargo test --test desktop figures -- --ignored --nocapture --test-threads 1
//! ```

use crate::desk::bus::Bus;
use crate::desk::light::User;
use crate::desk::panel::Panel;
use crate::desk::sessions::Sessions;
use std::process::Command;
use std::time::{Duration, Instant};

/// The program of that build, on that home.
fn program(user: &User, bus: &Bus) -> Command {
    let usual = user.command(Some(bus), &[]);
    let env = |name| std::env::var_os(name);
    let mut command = Command::new(env("PILOTLIGHT_TEST_PROGRAM").unwrap_or_else(|| usual.get_program().to_owned()));
    command.env_clear();
    command.envs(usual.get_envs().filter_map(|(key, value)| Some((key, value?))));
    match env("PILOTLIGHT_TEST_HOME") {
        Some(home) => command.arg("--home").arg(home),
        None => command.args(usual.get_args()),
    };
    command
}

/// Waits for something that comes within milliseconds, without the steps of 20 ms of the other tests.
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
    let (mut registered, mut told) = (Vec::new(), Vec::new());
    for n in 0..15 {
        let user = User::new(&sessions);
        let begun = Instant::now();
        let light = user.light_from(program(&user, &bus));
        registered.push(spin(begun, || panel.registered() > n));
        let layouts = panel.signals("LayoutUpdated");
        // The first menu that holds sessions.
        told.push(spin(begun, || {
            panel.signals("LayoutUpdated") > layouts || panel.menu()[0].label != "Looking for sessions"
        }));
        drop(light);
    }
    println!("start to registered: {}", percentiles(registered));
    println!("start to the first menu with sessions: {}", percentiles(told));
}

#[test]
#[ignore = "a figure"]
fn figures_append_to_menu() {
    let (bus, sessions) = (Bus::start(), Sessions::new());
    let (user, panel) = (User::new(&sessions), Panel::start(&bus));
    let made: Vec<_> = (0..20).map(|n| sessions.add(&format!("session {n}"))).collect();
    let mut command = program(&user, &bus);
    if std::env::var_os("PILOTLIGHT_TEST_HOME").is_some() {
        command.arg("--home").arg(sessions.home()); // both
    }
    let _light = user.light_from(command);
    panel.wait_for_icon();
    for session in &made {
        user.agrees(&panel, session, "idle");
    }
    let mut times = Vec::new();
    for n in 0..100 {
        panel.settle();
        let session = &made[n % made.len()];
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

#[test]
#[ignore = "a figure"]
fn figures_idle() {
    let (bus, sessions) = (Bus::start(), Sessions::new());
    let (user, panel) = (User::new(&sessions), Panel::start(&bus));
    let made: Vec<_> = (0..20).map(|n| sessions.add(&format!("session {n}"))).collect();
    if std::env::var_os("PILOTLIGHT_TEST_HOME").is_none() {
        for (n, session) in made.iter().enumerate() {
            session.prompt();
            if n % 2 == 0 {
                session.answer("Done.");
            } else {
                session.tool("a", "bash", "make");
            }
        }
    }
    let light = user.light_from(program(&user, &bus));
    panel.wait_for_icon();
    let wait = |time| {
        #[expect(clippy::disallowed_methods, reason = "a minute is measured")]
        std::thread::sleep(time);
    };
    wait(Duration::from_secs(8));
    for _ in 0..3 {
        let (before, ticks, signals) = (light.switches(), light.ticks(), panel.all_signals());
        wait(Duration::from_secs(60));
        let after = light.switches();
        println!(
            "idle: {:.2} context switches a second over a minute ({} threads), {} ticks of CPU, {} signals",
            (after.iter().map(|(_, count)| count).sum::<u64>() - before.iter().map(|(_, count)| count).sum::<u64>())
                as f64
                / 60.0,
            after.len(),
            light.ticks() - ticks,
            panel.all_signals() - signals
        );
        for ((name, count), (_, earlier)) in
            after.iter().zip(&before).filter(|((_, count), (_, earlier))| count > earlier)
        {
            println!("  {name}: {} times", count - earlier);
        }
    }
    println!("memory: {}", light.memory());
}
