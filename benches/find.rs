//! Measures a key in the picker of `pilotlight resume`, over 10,000 sessions: what the search itself takes, and the time
//! from a key to the screen of a real terminal (tmux), which includes two runs of tmux. Linux only.
//!
//!     cargo bench --bench find

#![expect(clippy::unwrap_used, reason = "a failing benchmark stops")]

#[cfg(unix)]
#[path = "../tests/support/mod.rs"]
mod support;

use pilotlight_core::fleet::{Finder, Label, Row, Session};
use pilotlight_core::limits::Limits;
use pilotlight_core::time::{Moment, Time};
use std::time::{Duration, Instant};

const SESSIONS: i64 = 10_000;
const TYPED: &str = "write the migration 77";

fn main() {
    let words = ["Write the migration", "Rotate TLS", "Load test", "Fix the parser"];
    let title = |n: i64| format!("{} {n}", words[usize::try_from(n).unwrap() % words.len()]);
    let empty = Session::default().row(Moment::default(), &Limits::default()).0;
    let row = |n: i64| Row {
        id: format!("{n:08x}-0000-4000-8000-000000000000").into(),
        label: Label { who: format!("service-{}", n % 97), title: Some(title(n).into()), agent: None },
        cwd: Some(format!("/home/dev/code/company/service-{}", n % 97).into()),
        last_progress: Some(Time(n)),
        ..empty.clone()
    };
    let mut finder = Finder::new((0..SESSIONS).map(row).collect());
    let mut keys = Vec::new();
    for _ in 0..10 {
        for c in TYPED.chars() {
            let begun = Instant::now();
            finder.push(c);
            keys.push(begun.elapsed());
        }
        assert!(finder.count().0 > 0);
        while !finder.typed().is_empty() {
            let begun = Instant::now();
            finder.pop();
            keys.push(begun.elapsed());
        }
    }
    report("the search, a key", keys);
    #[cfg(unix)]
    in_a_terminal(&title);
}

fn report(what: &str, mut times: Vec<Duration>) {
    times.sort();
    let at = |part: usize| times[(times.len() - 1) * part / 100];
    println!("{what}: p50 {:.1?}, p99 {:.1?}, worst {:.1?} of {}", at(50), at(99), at(100), times.len());
}

#[cfg(unix)]
fn in_a_terminal(title: &dyn Fn(i64) -> String) {
    use support::synthetic::User;
    use support::tmux::Tmux;
    let user = User::new();
    for n in 0..SESSIONS {
        let session = user.session(u32::try_from(n).unwrap());
        session.workspace(&format!("name: {}\ncwd: /home/dev/service-{}\nclient_name: github/cli\n", title(n), n % 97));
        session.ended(Duration::from_secs(86_400));
    }
    let begun = Instant::now();
    let terminal = Tmux::start(&user.pilotlight(&["resume"]), 120, 40);
    terminal.shows("10000 sessions");
    println!("start -> the picker with {SESSIONS} sessions: {:.1?}", begun.elapsed());
    let mut keys = Vec::new();
    for _ in 0..5 {
        for (n, c) in TYPED.char_indices() {
            let begun = Instant::now();
            terminal.text(&c.to_string());
            let shown = format!("Resume: {}▏", TYPED[..=n].trim_end());
            while !terminal.screen().contains(shown.trim_end_matches('▏')) {}
            keys.push(begun.elapsed());
        }
        terminal.press(&["C-u"]);
        terminal.shows("10000 sessions");
    }
    report("a key -> the screen of tmux", keys);
    terminal.press(&["Escape"]);
}
