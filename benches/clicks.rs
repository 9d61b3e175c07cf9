//! From a click in the tray's menu to its effect, with the real Copilot CLI.
//!
//! - `servers`: a session of a Copilot server, while twenty other sessions write their logs.
//! - `terminals`: a session in a plain terminal, over the bridge; and what the bridge costs that terminal.
//! - `bridges`: the cost of thirty idle bridges for the tray.
//!
//! The model answers at once. Next to each click is printed how long Copilot takes for the same without us: the
//! difference is our part. Linux only; it needs `dbus-daemon`, tmux and the CLI that `tests/all.sh` installs.
//!
//!     cargo bench --bench clicks               # all three, each click 30 times
//!     cargo bench --bench clicks -- 100 terminals

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failing benchmark should say where")]

#[cfg(target_os = "linux")]
#[path = "../tests/support/mod.rs"]
mod support;

#[cfg(target_os = "linux")]
mod clicks {
    pub(crate) mod bridges;
    pub(crate) mod servers;
    pub(crate) mod terminals;
    pub(crate) mod timing;
}

#[cfg(target_os = "linux")]
fn main() {
    use clicks::{bridges, servers, terminals, timing};
    /// Takes the number of measurements for each click.
    type Measure = fn(usize);
    const PARTS: [(&str, Measure); 3] =
        [("servers", servers::measure), ("terminals", terminals::measure), ("bridges", bridges::measure)];
    /// The default number of measurements for each click.
    const CLICKS: usize = 30;
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    if bridges::run_fake(&arguments) {
        return;
    }
    let clicks = arguments.iter().find_map(|argument| argument.parse().ok()).unwrap_or(CLICKS);
    let is_named = |name: &str| arguments.iter().any(|argument| argument == name);
    let is_any_named = PARTS.iter().any(|(name, _)| is_named(name));
    for (name, measure) in PARTS {
        if is_named(name) || !is_any_named {
            println!("-- {name}; machine load before: {}", timing::load());
            measure(clicks);
        }
    }
    println!("machine load after: {}", timing::load());
}

#[cfg(not(target_os = "linux"))]
fn main() {
    eprintln!("this benchmark reads /proc: it runs on Linux");
}
