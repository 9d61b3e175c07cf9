//! When the fleet wants to be woken, with a clock that the test turns.

use super::*;
use crate::core::event::parse;
use crate::core::owner::Owner;

const START: Moment = Moment::of(Time(1_700_000_000_000));

/// A session that last wrote these events `later` than the start.
fn session(fleet: &mut Fleet, name: &str, later: Span, events: &[&str]) -> Key {
    let key: Key = (0, name.into());
    let mut folder = Folder::new(Path::new("/nowhere"), name);
    folder.session.owner = Owner::Alive { pid: std::process::id(), started: None };
    let at = START.plus(later);
    for (n, event) in events.iter().enumerate() {
        let line = format!(r#"{{"type":{event},"id":"{name}-{n}","timestamp":"{}","parentId":null}}"#, at.wall);
        folder.session.facts.fold(&parse(line.as_bytes()).unwrap(), at, &Limits::default());
    }
    fleet.insert(key.clone(), folder, at);
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
fn limits_that_pass_within_a_second_are_told_in_one_waking() {
    let mut fleet = fleet();
    let keys: Vec<_> = (0..20).map(|n| session(&mut fleet, &format!("{n:02}"), Span(n * 50), &[PROMPT])).collect();
    let quiet = START.plus(Limits::default().fresh_quiet);
    let woken = fleet.wake_at().unwrap();
    assert_eq!(woken, quiet.awake + TOGETHER, "the first is a second late at most");
    assert_eq!(fleet.pass(quiet.plus(TOGETHER)), keys, "and takes the others along");
    assert!(fleet.wake_at().unwrap() - woken > Span::seconds(50), "nothing is left for later");
}

#[test]
fn what_the_user_may_wait_for_is_told_at_once() {
    let mut fleet = fleet();
    session(&mut fleet, "one", Span::ZERO, &[PROMPT, ROUND, ENDS]);
    assert_eq!(fleet.wake_at(), Some(START.awake + Limits::default().finishing + AT_ONCE));
}

#[test]
fn an_age_in_a_reason_wakes_nobody_and_goes_along() {
    let mut fleet = fleet();
    let key = session(&mut fleet, "one", Span::ZERO, &[PROMPT]);
    let stuck = START.plus(Limits::default().fresh_stuck);
    fleet.judge(&key, stuck);
    let because = |fleet: &Fleet| fleet.entries[&key].row.because.clone();
    assert_eq!((because(&fleet), fleet.wake_at()), ("silent 2 min, no tool used in this turn".into(), None));
    // Whatever wakes it next.
    assert!(fleet.pass(START.plus(Span::minutes(5))).contains(&key));
    assert_eq!(because(&fleet), "silent 5 min, no tool used in this turn");
}

/// A terminal that opens a second session: its process counts as that one's owner at once, and as who holds it a moment later.
#[test]
fn who_comes_to_hold_a_session_whose_owner_it_was_already_is_counted() {
    let (mut fleet, pid) = (fleet(), std::process::id());
    let keys = ["one", "two"].map(|name| session(&mut fleet, name, Span::ZERO, &[PROMPT]));
    fleet.folder(&keys[0]).unwrap().session.holders = vec![pid];
    let others = |fleet: &mut Fleet| {
        let mut changed = Vec::new();
        for key in &keys {
            fleet.judge(key, START);
        }
        fleet.share_owners(START, &mut changed);
        keys.each_ref().map(|key| fleet.entries[key].session().control.others)
    };
    assert_eq!(others(&mut fleet), [0, 0]);
    for (holders, expected) in [(vec![pid], 1), (vec![], 0)] {
        fleet.folder(&keys[1]).unwrap().session.holders = holders;
        assert_eq!(others(&mut fleet)[0], expected);
    }
}

#[test]
fn looks_at_the_cpu_are_begun_together_and_end_with_the_limit_they_are_for() {
    let mut fleet = fleet();
    let keys = [0, 10, 60].map(|n| session(&mut fleet, &format!("{n:02}"), Span::seconds(n), &[PROMPT, TOOL]));
    let sampling = |fleet: &Fleet| keys.iter().filter(|key| fleet.entries[*key].sampling.is_some()).count();
    let busy = |fleet: &Fleet, n: usize| fleet.entries[&keys[n]].session().live.busy;
    let stuck = START.awake + Limits::default().tool_stuck;
    fleet.pass(Moment::of(fleet.wake_at().unwrap()));
    for key in &keys {
        fleet.judge(key, Moment::of(START.awake + Span::minutes(10) + Span::seconds(1)));
    }
    while sampling(&fleet) == 0 {
        let now = Moment::of(fleet.wake_at().unwrap());
        assert!(now.awake + SAMPLE_TAKES < stuck, "it is begun in time");
        fleet.pass(now);
    }
    assert_eq!(sampling(&fleet), 2, "the one that is due, and the one of ten seconds later");
    let told = fleet.wake_at().unwrap();
    assert_eq!(told, stuck + TOGETHER, "its end wakes nobody");
    fleet.pass(Moment::of(told));
    assert_eq!(sampling(&fleet), 0, "and is known when the limit is looked at");
    assert!(busy(&fleet, 0).is_some() && busy(&fleet, 1).is_some() && busy(&fleet, 2).is_none());
    // A further look is begun up to half a minute before its time, by whatever comes by.
    fleet.pass(Moment::of(told + Span::seconds(29)));
    assert_eq!(sampling(&fleet), 0);
    fleet.pass(Moment::of(told + Span::seconds(31)));
    assert_eq!(sampling(&fleet), 2);
}

#[test]
fn no_silence_is_told_more_than_a_second_late() {
    let mut fleet = fleet();
    let keys: Vec<_> = (0..10).map(|n| session(&mut fleet, &format!("{n}"), Span(n * 700), &[PROMPT, TOOL])).collect();
    let quiet = START.awake + Limits::default().tool_quiet;
    let (mut told, mut wakings) = (Vec::new(), 0);
    while told.len() < keys.len() {
        let at = fleet.wake_at().unwrap();
        told.extend(fleet.pass(Moment::of(at)).into_iter().map(|key| (key, at)));
        wakings += 1;
    }
    for (n, key) in (0..).zip(&keys) {
        let late = told.iter().find(|(told, _)| told == key).unwrap().1 - (quiet + Span(n * 700));
        assert!((Span::ZERO..=TOGETHER).contains(&late), "{n}: {late:?}");
    }
    assert_eq!(wakings, 5, "two at a time");
}

/// What `figures_idle` measures, without a clock: sessions in all states, made together, for an hour. A waking that changes
/// nothing costs one switch of context, one that changes the menu up to three.
#[test]
fn twenty_sessions_that_grow_old_together_cost_less_than_a_switch_in_five_seconds() {
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
        let changed = fleet.pass(now);
        // The menu's own ages change too, at the most with each look around.
        let ages = rescan <= wake + if changed.is_empty() { Span::ZERO } else { Span::seconds(20) };
        rescan = if ages { wake + Span::minutes(1) } else { rescan };
        costs[usize::try_from(now.since(START).0 / 60_000).unwrap()] += if changed.is_empty() && !ages { 1 } else { 3 };
    }
    costs
}
