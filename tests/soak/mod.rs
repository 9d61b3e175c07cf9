//! A soak test: the real Copilot CLI is driven at random for a long time, and Pilotlight must report the truth
//! throughout.
//!
//! Actors ([`actor`]) create sessions, prompt them, answer them, leave them waiting, abort, kill and resume them. A
//! [`person`] does the same at a terminal. Another one's terminals are killed [`beside`] servers, commands and terminals that
//! have nothing to do with them. Each knows the true status of its sessions from its own actions and from the
//! time of Copilot's events, and records it ([`truth`]). At the end, the lines of `watch --json` and some answers of
//! `status --json` are compared with the record. A deviation counts once the truth has held for longer than
//! [`REACTION`](truth::REACTION).
//!
//! The long run also gives orders at the worst moments: somebody resumes a session twice at once ([`twice`]), and a
//! server is frozen, ordered twice, copied, and waits for its user ([`troubled`]). None of the possible harm
//! ([`audit`]) is allowed: no fork, no prompt sent twice, no signal to a process that does not own the session, no
//! answer to a request that was not shown, and no effect of an order that was reported as not done.
//!
//! Beside them, people use Claude Code ([`claude_code`]) and Codex ([`codex`]), [`played`] by recordings of the real
//! programs; some of them in a profile that nobody names, which shares the logs. What is shown of each agent must agree with the truth for itself.
//!
//! All that while, what commands say with the tray is [`compared`] with what they say without.
//! Whatever an actor waits for in vain ends what it does, not the run ([`acts`]).
//!
//! At the same time, synthetic sessions are written in ways in which Copilot never writes ([`writers`]).
//!
//! `PILOTLIGHT_SOAK_SEED` repeats a run's choices; `PILOTLIGHT_SOAK_SECONDS` sets its length.

pub(crate) mod actor;
mod acts;
pub(crate) mod audit;
mod beside;
mod claude_code;
mod codex;
mod compared;
pub(crate) mod person;
pub(crate) mod pilots;
mod played;
pub(crate) mod troubled;
pub(crate) mod truth;
pub(crate) mod twice;
mod writers;

use self::actor::{Actor, Rng};
use self::acts::Acts;
use self::audit::Audit;
use self::beside::Unlucky;
use self::claude_code::ClaudeCode;
use self::codex::Codex;
use self::compared::Compared;
use self::person::AtTerminal;
use self::pilots::Pilots;
use self::played::Stage;
use self::troubled::Troubled;
use self::truth::{Ledger, Report, score};
use self::twice::Hasty;
use crate::support::home::Home;
use crate::support::model::Model;
use crate::support::wait;
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The number of servers that run at once, each with its own sessions.
const ACTORS: u64 = 3;
/// The agents, of each of which [`MIN_PERCENT`] must agree.
const AGENTS: [&str; 3] = ["Copilot", "Claude Code", "Codex"];
/// How many people use each agent that is played.
const PLAYED: u64 = 2;
/// The percentage of the judged time that must agree.
const MIN_PERCENT: f64 = 99.5;
/// A run of up to this time has neither the person whose terminals are killed nor the profile that nobody names: what they
/// meet first takes long to be seen.
const SHORT: Duration = Duration::from_secs(300);
/// How many samples of memory are taken.
const SAMPLES: u32 = 12;
/// How much memory may grow between a third of the time and the end, in KiB: an allocator's reserve, no leak.
const GROWTH: u64 = 1536;

fn from_environment(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

fn soak(time: Duration, with_orders: bool) {
    let seed = from_environment("PILOTLIGHT_SOAK_SEED").unwrap_or(1);
    let home = Home::new("project");
    let others = tempfile::Builder::new().prefix("pilotlight-soak-others-").tempdir().unwrap();
    let (claude, codex) = (others.path().join(".claude"), others.path().join(".codex"));
    for folder in
        [claude.join("projects"), claude.join("sessions"), codex.join("sessions"), codex.join("thread-writer-locks")]
    {
        std::fs::create_dir_all(folder).unwrap();
    }
    // A profile whose logs are the same, which nobody names.
    let work = others.path().join(".claude-work");
    std::fs::create_dir_all(work.join("sessions")).unwrap();
    std::os::unix::fs::symlink("../.claude/projects", work.join("projects")).unwrap();
    let (ledgers, over) = (AGENTS.map(|_| Ledger::default()), AtomicBool::new(false));
    let (audit, acts) = (Audit::default(), Acts::new(println_always));
    let [ledger, claude_ledger, codex_ledger] = &ledgers;
    let (model, compared) = (Model::start(), Compared::default());
    let pilots = Pilots::start(&home, &[&claude, &codex], &model);
    let start = Instant::now();
    let memory = std::thread::scope(|scope| {
        let (home, pilots, model, audit, acts, over) = (&home, &pilots, &model, &audit, &acts, &over);
        let rng = move |n| Rng::new(seed * 1000 + n);
        for n in 0..ACTORS {
            scope.spawn(move || {
                let make = || Actor::new(home, ledger, audit, rng(n));
                let actor = acts.go_on("actors", (Some(ledger), over), make, Actor::act);
                acts.once("actors", || {
                    if let Some(mut actor) = actor {
                        actor.settle();
                    }
                });
            });
        }
        scope.spawn(move || {
            let make = || AtTerminal::new(home, ledger, rng(ACTORS));
            acts.go_on("at a terminal", (Some(ledger), over), make, AtTerminal::act);
        });
        if time > SHORT {
            scope.spawn(move || {
                let make = || Unlucky::new(home, ledger, rng(50));
                acts.go_on("beside others", (Some(ledger), over), make, Unlucky::act);
            });
        }
        for n in 0..PLAYED {
            let stage = move |home, ledger, n| Stage { home, ledger, over, rng: rng(100 + n) };
            let (claude, work, codex) = (&*claude, &*work, &*codex);
            let play = move |home, n| {
                let make = || ClaudeCode(stage(home, claude_ledger, n));
                acts.go_on("Claude Code", (Some(claude_ledger), over), make, ClaudeCode::act);
            };
            scope.spawn(move || play(claude, n));
            if time > SHORT {
                scope.spawn(move || play(work, 2 * PLAYED + n));
            }
            scope.spawn(move || {
                let make = || Codex(stage(codex, codex_ledger, PLAYED + n));
                acts.go_on("Codex", (Some(codex_ledger), over), make, Codex::act);
            });
        }
        if with_orders {
            scope.spawn(move || {
                let make = || Hasty::new(home, model, pilots, audit, rng(ACTORS + 1));
                acts.go_on("hasty", (None, over), make, Hasty::act);
            });
            scope.spawn(move || {
                let make = || Troubled::new(home, pilots, audit, rng(ACTORS + 2));
                acts.go_on("troubled", (None, over), make, Troubled::act);
            });
        }
        let mut memory = vec![pilots.memory()];
        acts.once("who looks", || {
            while start.elapsed() < time {
                pilots.run_status();
                compared.compare(pilots, audit);
                if start.elapsed() > time * memory.len() as u32 / SAMPLES {
                    memory.push(pilots.memory());
                }
                wait(Duration::from_secs(3), || (start.elapsed() >= time).then_some(()));
            }
        });
        over.store(true, Ordering::Relaxed);
        memory
    });
    let last = pilots.memory();
    let reports = pilots.end();
    let (moments, rows, differing) = compared.end();
    println_always(&format!(
        "{rows} rows compared at {moments} moments with the tray and without: {} differ",
        differing.len()
    ));
    differing.iter().take(20).for_each(|row| println_always(row));
    println_always(&format!("seed {seed}, {} s, {audit}; {acts}", start.elapsed().as_secs()));
    let agree = AGENTS.iter().zip(&ledgers).filter(|(agent, ledger)| agrees(agent, ledger, &reports, &home)).count();
    let mut growing = Vec::new();
    for (index, (name, last)) in last.iter().enumerate() {
        let samples: Vec<u64> = memory.iter().map(|sample| sample[index].1).chain([*last]).collect();
        println_always(&format!("memory of {name}, over time: {samples:?} KiB"));
        let early = samples[samples.len() / 3];
        if *last > early + GROWTH {
            growing.push(format!("{name}: {early} KiB, then {last} KiB"));
        }
    }
    assert_eq!(acts.faults(), Vec::<String>::new());
    assert_eq!(growing, Vec::<String>::new(), "memory grows");
    assert_eq!(agree, AGENTS.len(), "of some agent too little happened, or too little agrees: see above");
    assert_eq!(audit.harm(), Vec::<String>::new());
    assert_eq!(differing, Vec::<String>::new(), "the tray and a command of its own do not say the same");
    let tried =
        ["frozen", "homes copied", "questions asked", "requests answered", "forks"].map(|what| audit.total(what));
    assert!(
        !with_orders || start.elapsed() < Duration::from_secs(600) || tried.iter().all(|count| *count > 0),
        "too little: {audit}"
    );
    assert!(!with_orders || audit.total("checks") > 10, "too little: {audit}");
}

/// Prints, bypassing the capture of the test harness: the figures must always be seen.
fn println_always(line: &str) {
    std::io::stdout().write_all(format!("{line}\n").as_bytes()).unwrap();
}

/// Prints how well the reports agree with the truth of one agent's sessions. Returns whether that is enough.
fn agrees(agent: &str, ledger: &Ledger, reports: &[Report], home: &Home) -> bool {
    let score = score(&ledger.end(), reports);
    println_always(&format!("{agent}: {score}"));
    for deviation in score.deviations.iter().take(20) {
        println_always(&format!("  {deviation}"));
    }
    // The logs of deviating sessions show what really happened.
    let deviates = |id: &str| score.deviations.iter().any(|deviation| deviation.starts_with(id));
    for folder in home.sessions().iter().filter(|folder| deviates(&folder.id())) {
        println!("{}", folder.dump());
    }
    score.changes > 10 && score.rows > 10 && score.percent() >= MIN_PERCENT
}

#[test]
fn case_294_295_and_517_two_minutes() {
    soak(Duration::from_secs(from_environment("PILOTLIGHT_SOAK_SECONDS").unwrap_or(110)), false);
}

#[test]
#[ignore = "takes an hour"]
fn an_hour() {
    soak(Duration::from_secs(from_environment("PILOTLIGHT_SOAK_SECONDS").unwrap_or(3600)), true);
}
