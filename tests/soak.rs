//! The real Copilot CLI, worked at random for a long time, and Pilotlight beside it: does it say what is true, always?
//!
//! Actors ([`actor`](soak::actor)) make sessions, prompt them, answer them, leave them waiting, abort, kill and resume them;
//! a [`person`](soak::person) does so at a terminal.
//! Each knows what is true of its sessions, from what it did and from the time that Copilot wrote on the event, and writes
//! it down ([`truth`](soak::truth)). What `watch --json` said, and what `status --json` was asked now and then, is held
//! against it at the end: a deviation counts once the truth has held for longer than [`REACTION`](soak::truth::REACTION).
//!
//! In the long run, orders are given meanwhile in the worst of moments: somebody resumes a session twice at once
//! ([`twice`](soak::twice)), and a server is frozen, ordered twice, copied, and waits for its user
//! ([`troubled`](soak::troubled)). Of the harm that this could do ([`deeds`](soak::deeds)) none is allowed: no fork, no prompt
//! sent twice, no process signalled that was not the session's, no request answered that was not shown, nothing done that was
//! said not to be.
//!
//! Beside it, sessions that are made up are written in ways that Copilot never writes ([`writers`](soak::writers)).
//!
//! `PILOTLIGHT_SOAK_SEED` repeats a run's choices; `PILOTLIGHT_SOAK_SECONDS` sets the length of the long one.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on should say where")]

mod support;

mod soak {
    pub(crate) mod actor;
    pub(crate) mod deeds;
    pub(crate) mod person;
    pub(crate) mod pilots;
    pub(crate) mod troubled;
    pub(crate) mod truth;
    pub(crate) mod twice;
    mod writers;
}

use soak::actor::{Actor, Chance};
use soak::deeds::Deeds;
use soak::person::AtTerminal;
use soak::pilots::Pilots;
use soak::troubled::Troubled;
use soak::truth::{Ledger, score};
use soak::twice::Hasty;
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::ScopedJoinHandle;
use std::time::{Duration, Instant};
use support::home::Home;
use support::model::Model;
use support::wait;

/// So many servers run at once, each with sessions of its own.
const ACTORS: u64 = 3;
/// So much of the time that is judged must agree.
const BAR: f64 = 99.5;
/// How often memory is looked at.
const SAMPLES: u32 = 12;
/// Memory may grow by this much between a third of the time and the end, in KiB: what an allocator keeps, no leak.
const GROWTH: u64 = 1536;

fn from_environment(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

fn soak(time: Duration, with_orders: bool) {
    let seed = from_environment("PILOTLIGHT_SOAK_SEED").unwrap_or(1);
    let home = Home::new("project");
    let (ledger, deeds, over) = (Ledger::default(), Deeds::default(), AtomicBool::new(false));
    let model = Model::start();
    let pilots = Pilots::start(&home, &model);
    let begun = Instant::now();
    let memory = std::thread::scope(|scope| {
        let mut actors: Vec<_> = (0..ACTORS)
            .map(|n| {
                let (home, ledger, deeds, over) = (&home, &ledger, &deeds, &over);
                scope.spawn(move || {
                    let mut actor = Actor::new(home, ledger, deeds, Chance::new(seed * 1000 + n));
                    while !over.load(Ordering::Relaxed) {
                        actor.act();
                    }
                    actor.settle();
                })
            })
            .collect();
        actors.push(scope.spawn(|| {
            let mut person = AtTerminal::new(&home, &ledger, Chance::new(seed * 1000 + ACTORS));
            while !over.load(Ordering::Relaxed) {
                person.act();
            }
        }));
        if with_orders {
            actors.push(scope.spawn(|| {
                let mut hasty = Hasty::new(&home, &model, &pilots, &deeds, Chance::new(seed * 1000 + ACTORS + 1));
                while !over.load(Ordering::Relaxed) {
                    hasty.act();
                }
            }));
            actors.push(scope.spawn(|| {
                let mut troubled = Troubled::new(&home, &pilots, &deeds, Chance::new(seed * 1000 + ACTORS + 2));
                while !over.load(Ordering::Relaxed) {
                    troubled.act();
                }
            }));
        }
        let mut memory = vec![pilots.memory()];
        while begun.elapsed() < time && !actors.iter().any(ScopedJoinHandle::is_finished) {
            pilots.ask();
            if begun.elapsed() > time * memory.len() as u32 / SAMPLES {
                memory.push(pilots.memory());
            }
            wait(Duration::from_secs(3), || (begun.elapsed() >= time).then_some(()));
        }
        over.store(true, Ordering::Relaxed);
        for actor in actors {
            actor.join().unwrap();
        }
        memory.push(pilots.memory());
        memory
    });
    let heard = pilots.end();
    let score = score(&ledger.end(), &heard);
    // Past the test's own capture: the figure is what a run is for.
    let tell = |line: String| std::io::stdout().write_all(format!("{line}\n").as_bytes()).unwrap();
    tell(format!("seed {seed}, {} s: {score}", begun.elapsed().as_secs()));
    tell(format!("{deeds}"));
    for deviation in score.deviations.iter().take(20) {
        tell(format!("  {deviation}"));
    }
    // A log says what its session really did.
    let deviates = |id: &str| score.deviations.iter().any(|deviation| deviation.starts_with(id));
    for folder in home.sessions().iter().filter(|folder| deviates(&folder.id())) {
        println!("{}", folder.dump());
    }
    for (index, (name, _)) in memory[0].iter().enumerate() {
        let held: Vec<u64> = memory.iter().map(|sample| sample[index].1).collect();
        tell(format!("memory of {name}, over time: {held:?} KiB"));
        let (early, late) = (held[held.len() / 3], held[held.len() - 1]);
        assert!(late <= early + GROWTH, "the memory of {name} grows: {early} KiB, then {late} KiB");
    }
    assert!(score.changes > 10 && score.asked > 10, "too little happened: {score}");
    assert!(score.percent() >= BAR, "{score}");
    assert_eq!(deeds.harm(), Vec::<String>::new());
    let tried = ["frozen", "homes copied", "questions asked", "requests answered"].map(|what| deeds.counted(what));
    assert!(
        !with_orders || begun.elapsed() < Duration::from_secs(600) || tried.iter().all(|count| *count > 0),
        "too little: {deeds}"
    );
    assert!(!with_orders || deeds.counted("checks") > 10, "too little: {deeds}");
}

#[test]
fn two_minutes() {
    soak(Duration::from_secs(from_environment("PILOTLIGHT_SOAK_SECONDS").unwrap_or(110)), false);
}

#[test]
#[ignore = "takes an hour"]
fn an_hour() {
    soak(Duration::from_secs(from_environment("PILOTLIGHT_SOAK_SECONDS").unwrap_or(3600)), true);
}
