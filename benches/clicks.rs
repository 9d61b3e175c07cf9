//! From a click in the tray's menu to its effect, with the real Copilot CLI.
//!
//! - `servers`: a session of a Copilot server, while twenty other sessions write their logs.
//! - `terminals`: a session in a plain terminal, over the bridge; and what the bridge costs that terminal.
//! - `bridges`: what thirty bridges cost the tray while nothing happens.
//!
//! The model answers at once. Beside each click stands how long Copilot takes where the same is done without us, so that our part
//! is the difference. Linux only; it needs `dbus-daemon`, tmux and the CLI that `tests/all.sh` installs.
//!
//!     cargo bench --bench clicks               # all three, each click 30 times
//!     cargo bench --bench clicks -- 100 terminals

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a benchmark that cannot go on should say where")]

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
    /// Measures each click so often.
    type Measure = fn(usize);
    const PARTS: [(&str, Measure); 3] =
        [("servers", servers::measure), ("terminals", terminals::measure), ("bridges", bridges::measure)];
    /// How often each click is measured, where nothing else is said.
    const CLICKS: usize = 30;
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    if bridges::is_a_double(&arguments) {
        return;
    }
    let clicks = arguments.iter().find_map(|argument| argument.parse().ok()).unwrap_or(CLICKS);
    let names = |name: &str| arguments.iter().any(|argument| argument == name);
    let is_any_named = PARTS.iter().any(|(name, _)| names(name));
    for (name, measure) in PARTS {
        if names(name) || !is_any_named {
            println!("-- {name}; load of the machine before: {}", timing::load());
            measure(clicks);
        }
    }
    println!("load of the machine after: {}", timing::load());
}

#[cfg(not(target_os = "linux"))]
fn main() {
    eprintln!("this benchmark reads /proc: it runs on Linux");
}
