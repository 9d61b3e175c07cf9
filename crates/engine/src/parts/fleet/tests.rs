//! When the fleet asks to be woken, with a clock that the test controls.

#[cfg(target_os = "linux")]
mod clocks;

use super::*;
use pilotlight_agents::copilot::log_format::parse;
use pilotlight_agents::home::Home;
use pilotlight_core::agent::Agent;
use pilotlight_core::owner::Owner;
use pilotlight_core::session::{HomeId, Key};
use std::path::Path;

const START: Moment = Moment::of(Time(1_700_000_000_000));

/// Adds a session that wrote these events `later` after the start.
fn session(fleet: &mut Fleet, name: &str, later: Span, events: &[&str]) -> Key {
    let key: Key = Key::new(HomeId::default(), name);
    let (reader, mut session) = (Home::at(Path::new("/nowhere")).reader(name), Session::new(Agent::default(), name));
    session.observed.owner = Owner::Alive { pid: std::process::id(), started: None };
    let at = START.plus(later);
    for (n, event) in events.iter().enumerate() {
        let line = format!(r#"{{"type":{event},"id":"{name}-{n}","timestamp":"{}","parentId":null}}"#, at.wall);
        session.observed.facts.fold(&parse(line.as_bytes()).unwrap(), at, &Limits::default());
    }
    fleet.insert(key.clone(), reader, session, at);
    key
}

const PROMPT: &str = r#""user.message","data":{"content":"go"}"#;
const ROUND: &str = r#""assistant.turn_start","data":{"turnId":"0"}"#;
const TOOL: &str =
    r#""tool.execution_start","data":{"toolCallId":"a","toolName":"bash","arguments":{"command":"make"}}"#;
const ENDS: &str = r#""assistant.turn_end","data":{"turnId":"0"}"#;

fn fleet() -> Fleet {
    Fleet::new(Limits::default())
}

#[test]
fn limits_that_pass_within_a_second_cause_one_wakeup() {
    let mut fleet = fleet();
    let keys: Vec<_> = (0..20).map(|n| session(&mut fleet, &format!("{n:02}"), Span(n * 50), &[PROMPT])).collect();
    let quiet = START.plus(Limits::default().fresh_quiet);
    let woken = fleet.wake_at().unwrap();
    assert_eq!(woken, quiet.awake + COALESCE_WITHIN, "the first is a second late at most");
    assert_eq!(fleet.advance(quiet.plus(COALESCE_WITHIN)), keys, "and reports the others with it");
    assert!(fleet.wake_at().unwrap() - woken > Span::seconds(50), "nothing is left for later");
}

#[test]
fn what_the_user_may_wait_for_is_reported_at_once() {
    let mut fleet = fleet();
    session(&mut fleet, "one", Span::ZERO, &[PROMPT, ROUND, ENDS]);
    assert_eq!(fleet.wake_at(), Some(START.awake + Limits::default().finishing + SHORT_DELAY));
}

#[test]
fn an_age_in_a_reason_causes_no_wakeup_and_is_updated_at_the_next_one() {
    let mut fleet = fleet();
    let key = session(&mut fleet, "one", Span::ZERO, &[PROMPT]);
    let stuck = START.plus(Limits::default().fresh_stuck);
    fleet.judge(&key, stuck);
    let because = |fleet: &Fleet| fleet.entries[&key].row.because.to_string();
    assert_eq!((because(&fleet), fleet.wake_at()), ("silent 2 min, no tool used in this turn".into(), None));
    // At the next wakeup, whatever its reason.
    assert!(fleet.advance(START.plus(Span::minutes(5))).contains(&key));
    assert_eq!(because(&fleet), "silent 5 min, no tool used in this turn");
}

/// A terminal opens a second session: its process is that session's owner at once, and holds it a moment later.
#[test]
fn an_owner_that_starts_to_hold_its_session_is_counted() {
    let (mut fleet, pid) = (fleet(), std::process::id());
    let keys = ["one", "two"].map(|name| session(&mut fleet, name, Span::ZERO, &[PROMPT]));
    fleet.session(&keys[0]).unwrap().observed.holders = vec![pid];
    let others = |fleet: &mut Fleet| {
        let mut changed = Vec::new();
        for key in &keys {
            fleet.judge(key, START);
        }
        fleet.count_shared_owners(START, &mut changed);
        keys.each_ref().map(|key| fleet.entries[key].session().control.other_sessions)
    };
    assert_eq!(others(&mut fleet), [0, 0]);
    for (holders, expected) in [(vec![pid], 1), (vec![], 0)] {
        fleet.session(&keys[1]).unwrap().observed.holders = holders;
        assert_eq!(others(&mut fleet)[0], expected);
    }
}

#[test]
fn cpu_samples_start_together_and_end_with_the_limit_they_are_for() {
    let mut fleet = fleet();
    let keys = [0, 10, 60].map(|n| session(&mut fleet, &format!("{n:02}"), Span::seconds(n), &[PROMPT, TOOL]));
    let sampling = |fleet: &Fleet| keys.iter().filter(|key| fleet.entries[*key].sampling.is_some()).count();
    let busy = |fleet: &Fleet, n: usize| fleet.entries[&keys[n]].session().liveness.busy;
    let stuck = START.awake + Limits::default().tool_stuck;
    fleet.advance(Moment::of(fleet.wake_at().unwrap()));
    for key in &keys {
        fleet.judge(key, Moment::of(START.awake + Span::minutes(10) + Span::seconds(1)));
    }
    while sampling(&fleet) == 0 {
        let now = Moment::of(fleet.wake_at().unwrap());
        assert!(now.awake + SAMPLE_DURATION < stuck, "it is started in time");
        fleet.advance(now);
    }
    assert_eq!(sampling(&fleet), 2, "the one that is due, and the one of ten seconds later");
    let wake = fleet.wake_at().unwrap();
    assert_eq!(wake, stuck + COALESCE_WITHIN, "its end causes no wakeup");
    fleet.advance(Moment::of(wake));
    assert_eq!(sampling(&fleet), 0, "and is known when the limit is checked");
    assert!(busy(&fleet, 0).is_some() && busy(&fleet, 1).is_some() && busy(&fleet, 2).is_none());
    // Another sample starts up to half a minute early, at any wakeup.
    fleet.advance(Moment::of(wake + Span::seconds(29)));
    assert_eq!(sampling(&fleet), 0);
    fleet.advance(Moment::of(wake + Span::seconds(31)));
    assert_eq!(sampling(&fleet), 2);
}

#[test]
fn no_silence_is_reported_more_than_a_second_late() {
    let mut fleet = fleet();
    let keys: Vec<_> = (0..10).map(|n| session(&mut fleet, &format!("{n}"), Span(n * 700), &[PROMPT, TOOL])).collect();
    let quiet = START.awake + Limits::default().tool_quiet;
    let (mut reported, mut wakeups) = (Vec::new(), 0);
    while reported.len() < keys.len() {
        let at = fleet.wake_at().unwrap();
        reported.extend(fleet.advance(Moment::of(at)).into_iter().map(|key| (key, at)));
        wakeups += 1;
    }
    for (n, key) in (0..).zip(&keys) {
        let late = reported.iter().find(|(reported, _)| reported == key).unwrap().1 - (quiet + Span(n * 700));
        assert!((Span::ZERO..=COALESCE_WITHIN).contains(&late), "{n}: {late:?}");
    }
    assert_eq!(wakeups, 5, "two at a time");
}

/// What `figures_idle` measures, without a clock: sessions in all states, started together, for an hour. A wakeup that
/// changes nothing costs one context switch, one that changes the menu up to three.
#[test]
fn twenty_ageing_sessions_cost_less_than_one_context_switch_in_five_seconds() {
    for apart in [0, 20, 45].map(Span) {
        let costs = costs(apart);
        assert!(costs.iter().all(|&cost| cost <= 12), "made {} ms apart: {costs:?}", apart.0);
    }
}

/// The cost of each minute.
fn costs(apart: Span) -> Vec<u32> {
    let done = r#""tool.execution_complete","data":{"toolCallId":"a","success":true}"#;
    let answer = r#""assistant.message","data":{"content":"Done.","toolRequests":[]}"#;
    let kinds: [&[&str]; 4] =
        [&[PROMPT, ROUND, answer, ENDS], &[PROMPT, TOOL], &[PROMPT, ROUND], &[PROMPT, TOOL, done]];
    let mut fleet = fleet();
    let mut now = START;
    let mut rescan = START.awake + Span::seconds(27);
    let (mut costs, mut made) = (vec![0; 62], 0);
    while now.since(START) < Span::minutes(61) {
        let next = START.awake + Span(apart.0 * made);
        let wake = fleet.wake_at().map_or(rescan, |at| at.min(rescan)).max(now.awake + Span(1));
        if made < 20 && next <= wake {
            session(&mut fleet, &format!("{made:02}"), next - START.awake, kinds[usize::try_from(made).unwrap() % 4]);
            made += 1;
            continue;
        }
        now = Moment::of(wake);
        let changed = fleet.advance(now);
        // Ages in the menu change too, at most at each rescan.
        let ages = rescan <= wake + if changed.is_empty() { Span::ZERO } else { Span::seconds(20) };
        rescan = if ages { wake + Span::minutes(1) } else { rescan };
        costs[usize::try_from(now.since(START).0 / 60_000).unwrap()] += if changed.is_empty() && !ages { 1 } else { 3 };
    }
    costs
}
