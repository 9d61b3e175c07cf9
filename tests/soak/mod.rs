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
//! At the same time, synthetic sessions are written in ways in which Copilot never writes ([`writers`]).
//!
//! `PILOTLIGHT_SOAK_SEED` repeats a run's choices; `PILOTLIGHT_SOAK_SECONDS` sets its length.

pub(crate) mod actor;
pub(crate) mod audit;
mod beside;
mod claude_code;
mod codex;
pub(crate) mod person;
pub(crate) mod pilots;
mod played;
pub(crate) mod troubled;
pub(crate) mod truth;
pub(crate) mod twice;
mod writers;

use self::actor::{Actor, Rng};
use self::audit::Audit;
use self::beside::Unlucky;
use self::claude_code::ClaudeCode;
use self::codex::Codex;
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
use std::thread::ScopedJoinHandle;
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
    let (ledgers, audit, over) = (AGENTS.map(|_| Ledger::default()), Audit::default(), AtomicBool::new(false));
    let [ledger, claude_ledger, codex_ledger] = &ledgers;
    let model = Model::start();
    let pilots = Pilots::start(&home, &[&claude, &codex], &model);
    let start = Instant::now();
    let memory = std::thread::scope(|scope| {
        let mut actors: Vec<_> = (0..ACTORS)
            .map(|n| {
                let (home, audit, over) = (&home, &audit, &over);
                scope.spawn(move || {
                    let mut actor = Actor::new(home, ledger, audit, Rng::new(seed * 1000 + n));
                    while !over.load(Ordering::Relaxed) {
                        actor.act();
                    }
                    actor.settle();
                })
            })
            .collect();
        actors.push(scope.spawn(|| {
            let mut person = AtTerminal::new(&home, ledger, Rng::new(seed * 1000 + ACTORS));
            while !over.load(Ordering::Relaxed) {
                person.act();
            }
        }));
        if time > SHORT {
            actors.push(scope.spawn(|| {
                let mut person = Unlucky::new(&home, ledger, Rng::new(seed * 1000 + 50));
                while !over.load(Ordering::Relaxed) {
                    person.act();
                }
            }));
        }
        for n in 0..PLAYED {
            let (claude, work, codex, over) = (&*claude, &*work, &*codex, &over);
            let stage = |home, ledger, n| Stage { home, ledger, over, rng: Rng::new(seed * 1000 + 100 + n) };
            let mut person = ClaudeCode(stage(claude, claude_ledger, n));
            actors.push(scope.spawn(move || {
                while !over.load(Ordering::Relaxed) {
                    person.act();
                }
            }));
            if time > SHORT {
                let mut person = ClaudeCode(stage(work, claude_ledger, 2 * PLAYED + n));
                actors.push(scope.spawn(move || {
                    while !over.load(Ordering::Relaxed) {
                        person.act();
                    }
                }));
            }
            let mut person = Codex(stage(codex, codex_ledger, PLAYED + n));
            actors.push(scope.spawn(move || {
                while !over.load(Ordering::Relaxed) {
                    person.act();
                }
            }));
        }
        if with_orders {
            actors.push(scope.spawn(|| {
                let mut hasty = Hasty::new(&home, &model, &pilots, &audit, Rng::new(seed * 1000 + ACTORS + 1));
                while !over.load(Ordering::Relaxed) {
                    hasty.act();
                }
            }));
            actors.push(scope.spawn(|| {
                let mut troubled = Troubled::new(&home, &pilots, &audit, Rng::new(seed * 1000 + ACTORS + 2));
                while !over.load(Ordering::Relaxed) {
                    troubled.act();
                }
            }));
        }
        let mut memory = vec![pilots.memory()];
        while start.elapsed() < time && !actors.iter().any(ScopedJoinHandle::is_finished) {
            pilots.run_status();
            if start.elapsed() > time * memory.len() as u32 / SAMPLES {
                memory.push(pilots.memory());
            }
            wait(Duration::from_secs(3), || (start.elapsed() >= time).then_some(()));
        }
        over.store(true, Ordering::Relaxed);
        for actor in actors {
            actor.join().unwrap();
        }
        memory.push(pilots.memory());
        memory
    });
    let reports = pilots.end();
    println_always(&format!("seed {seed}, {} s, {audit}", start.elapsed().as_secs()));
    let agree = AGENTS.iter().zip(&ledgers).filter(|(agent, ledger)| agrees(agent, ledger, &reports, &home)).count();
    for (index, (name, _)) in memory[0].iter().enumerate() {
        let samples: Vec<u64> = memory.iter().map(|sample| sample[index].1).collect();
        println_always(&format!("memory of {name}, over time: {samples:?} KiB"));
        let (early, late) = (samples[samples.len() / 3], samples[samples.len() - 1]);
        assert!(late <= early + GROWTH, "the memory of {name} grows: {early} KiB, then {late} KiB");
    }
    assert_eq!(agree, AGENTS.len(), "of some agent too little happened, or too little agrees: see above");
    assert_eq!(audit.harm(), Vec::<String>::new());
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
