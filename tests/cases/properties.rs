//! What must hold for every log, clock and owner, however unlikely, checked with random stories.

use super::random::{gap, play, steps, with_context};
use super::story::{START, Story};
use pilotlight_agents::copilot::log_format::{end_of, is_fresh_prompt, parse, parse_ends};
use pilotlight_core::facts::Facts;
use pilotlight_core::limits::Limits;
use pilotlight_core::owner::Owner;
use pilotlight_core::replay::{OwnerStory, Replay};
use pilotlight_core::time::{Moment, Span};
use pilotlight_core::verdict::{Observations, Status, judge};
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

/// As many stories as `PROPTEST_CASES` says; tests/long.sh has more of them, to find rare ones.
fn config() -> ProptestConfig {
    ProptestConfig { failure_persistence: None, ..ProptestConfig::default() }
}

/// Checks that status and reason do not change between a verdict and its recheck.
fn is_stable_until_its_recheck(story: &Story, now: Span, part: f64) -> Result<(), TestCaseError> {
    let verdict = story.verdict(now);
    let awake = story.moment(now).awake;
    let until = match verdict.recheck_at {
        Some(recheck) => {
            prop_assert!(recheck > awake, "a recheck at or before now");
            recheck - awake
        }
        None => Span::hours(24 * 40),
    };
    #[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, reason = "any point in between is fine")]
    let between = (until.0 as f64 * part) as i64;
    for ahead in [1, between, until.0 - 1].into_iter().filter(|&ahead| (0..until.0).contains(&ahead)) {
        let later = story.verdict(now + Span(ahead));
        prop_assert_eq!(
            (later.status, &later.because.to_string()),
            (verdict.status, &verdict.because.to_string()),
            "{} ms later, with a recheck after {} ms",
            ahead,
            until.0
        );
    }
    Ok(())
}

fn fold(facts: &mut Facts, lines: &[&[u8]], limits: &Limits) {
    for line in lines {
        match parse(line) {
            Ok(event) => facts.fold(&event, Moment::of(event.at.unwrap()), limits),
            Err(_) => facts.skip(),
        }
    }
}

#[test]
fn case_12_a_request_outside_a_turn_ends_with_the_next_prompt() {
    let story = Story::prompted().answers(1, "Done.").permission(2, "r", "t").prompt(3);
    story.is(2, Status::NeedsPermission).is(3, Status::Working);
}

/// A shutdown after it is not a shutdown after an error.
#[test]
fn case_12_a_failure_ends_with_the_next_prompt() {
    let failed = Story::prompted().error(1);
    failed.clone().shutdown(2).says(2, Status::Ended, "after an error");
    let verdict = failed.prompt(2).shutdown(3).verdict(3);
    assert!(!verdict.because.to_string().contains("error"), "{}", verdict.because.to_string());
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn nothing_changes_before_the_recheck(
        steps in steps(25), after in gap(), owner: u8, liveness in 0..3u8, when in 0..10_000_000i64, part in 0.0..1.0f64
    ) {
        let (story, end) = play(Story::new(), &steps);
        let now = end + Span(after);
        is_stable_until_its_recheck(&with_context(story, now, owner, liveness, when), now, part)?;
    }

    #[test]
    fn nothing_changes_before_the_recheck_of_a_log_that_is_cut(
        steps in steps(12), after in gap(), owner: u8, liveness in 0..3u8, when in 0..10_000_000i64, part in 0.0..1.0f64
    ) {
        let (story, end) = play(Story::cut(), &steps);
        let now = end + Span(after);
        is_stable_until_its_recheck(&with_context(story, now, owner, liveness, when), now, part)?;
    }

    #[test]
    fn nothing_changes_before_the_recheck_of_an_attached_session(
        steps in steps(25), after in gap(), owner: u8, liveness in 3..72u8, when in 0..10_000_000i64, part in 0.0..1.0f64
    ) {
        let (story, end) = play(Story::new(), &steps);
        let now = end + Span(after);
        is_stable_until_its_recheck(&with_context(story, now, owner, liveness, when), now, part)?;
    }

    /// The machine slept, or the clock was set.
    #[test]
    fn nothing_changes_before_the_recheck_whatever_the_wall_clock_did(
        steps in steps(12), after in gap(), owner: u8, liveness in 0..3u8, when in 0..10_000_000i64, part in 0.0..1.0f64,
        by in -4_000_000..40_000_000i64, at in 0..3_000_000i64
    ) {
        let (_, end) = play(Story::new(), &steps);
        let now = end + Span(after);
        let (story, _) = play(Story::new().wall_jumps(Span(at.min(now.0)), Span(by)), &steps);
        is_stable_until_its_recheck(&with_context(story, now, owner, liveness, when), now, part)?;
    }

    /// As the engine does.
    #[test]
    fn judging_only_at_the_rechecks_misses_nothing(
        steps in steps(25), owner: u8, liveness in 0..72u8, when in 0..10_000_000i64,
        probes in prop::collection::vec(0..50_000_000i64, 4)
    ) {
        let (story, end) = play(Story::new(), &steps);
        let story = with_context(story, end, owner, liveness, when);
        let facts = story.facts(end);
        let judge_at = |at: Span| judge(Observations::by_log(&facts), &story.owner, &story.liveness, story.seen, story.moment(at), &story.limits);
        let mut probes: Vec<_> = probes.into_iter().map(|after| end + Span(after)).collect();
        probes.sort_unstable_by_key(|at| at.0);
        let mut last = judge_at(end);
        for probe in probes {
            let mut rechecks = 0;
            while let Some(recheck) = last.recheck_at.filter(|&at| at <= story.moment(probe).awake) {
                last = judge_at(recheck - START);
                rechecks += 1;
                prop_assert!(rechecks < 200, "rechecked again and again");
            }
            let now = judge_at(probe);
            prop_assert_eq!((now.status, &now.because.to_string()), (last.status, &last.because.to_string()), "at {} ms", probe.0);
        }
    }

    #[test]
    fn a_verdict_is_a_function_of_its_inputs(
        steps in steps(25), after in gap(), owner: u8, liveness in 0..72u8, when in 0..10_000_000i64
    ) {
        let (story, end) = play(Story::new(), &steps);
        let now = end + Span(after);
        let story = with_context(story, now, owner, liveness, when);
        let first = story.verdict(now);
        let facts = story.facts(now);
        for _ in 0..2 {
            let (at, limits) = (story.moment(now), &story.limits);
            prop_assert_eq!(&judge(Observations::by_log(&facts), &story.owner, &story.liveness, story.seen, at, limits), &first);
        }
        prop_assert_eq!(facts, story.facts(now), "judging changes no facts");
    }

    #[test]
    fn a_status_does_not_begin_in_the_future(
        steps in steps(25), after in gap(), owner: u8, liveness in 0..72u8, when in 0..10_000_000i64
    ) {
        let (story, end) = play(Story::new(), &steps);
        let now = end + Span(after);
        let verdict = with_context(story.clone(), now, owner, liveness, when).verdict(now);
        prop_assert!(verdict.since <= story.moment(now).wall, "{verdict:?}");
    }

    #[test]
    fn case_12_nothing_of_a_turn_survives_its_end(steps in steps(40), after in gap(), how in 0..4u8) {
        let (story, end) = play(Story::new(), &steps);
        let at = end + Span(after);
        let story = match how {
            0 => story.abort(at),
            1 => story.error(at),
            2 => story.shutdown(at),
            _ => story.resume(at),
        };
        let facts = story.facts(at);
        prop_assert_eq!(&facts.turn, &None);
        prop_assert!(facts.requests.is_empty());
        prop_assert_eq!(facts.compaction, None);
        prop_assert!(!facts.waits_for_model());
        prop_assert!(facts.unfinished().is_empty());
    }

    #[test]
    fn case_12_a_prompt_begins_a_turn_like_the_first_one(steps in steps(40), after in gap()) {
        let (story, end) = play(Story::new(), &steps);
        let at = end + Span(after);
        let facts = story.prompt(at).facts(at);
        prop_assert_eq!(facts.turn, Story::new().prompt(at).facts(at).turn);
        prop_assert_eq!((facts.compaction, facts.shut_down), (None, None));
        prop_assert!(facts.denials.of() == 0, "until a prompt");
        prop_assert!(facts.requests.iter().all(|request| request.sub_agent.is_some()), "of the last turn");
    }

    /// UP, files.
    #[test]
    fn case_84_any_bytes_are_survived(bytes in any::<Vec<u8>>(), cut in any::<prop::sample::Index>()) {
        let _ = parse(&bytes);
        let _ = (end_of(&bytes), is_fresh_prompt(&bytes));
        let cut = cut.index(bytes.len() + 1);
        let _ = parse_ends(&bytes[..cut], &bytes[cut..]);
        let mut replay = Replay::new(OwnerStory::Alive, Limits::default(), parse);
        replay.line(&bytes, &mut Vec::new());
        replay.finish(Span::minutes(1), &mut Vec::new());
    }

    /// UP, files.
    #[test]
    fn case_84_lines_with_any_damage_are_survived(
        steps in steps(6), damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0..4u8), 1..6)
    ) {
        let (story, _) = play(Story::prompted(), &steps);
        let mut log = story.log();
        for (at, byte, how) in damage {
            let at = at.index(log.len());
            match how {
                0 => log[at] = byte,
                1 => log.insert(at, byte),
                2 => log.truncate(at.max(1)),
                _ => { log.remove(at); if log.is_empty() { log.push(b' ') } }
            }
        }
        let mut replay = Replay::new(OwnerStory::Unknown, Limits::default(), parse);
        let lines = log.split(|&byte| byte == b'\n').filter(|line| !line.trim_ascii().is_empty());
        lines.clone().for_each(|line| replay.line(line, &mut Vec::new()));
        let (events, skipped) = (replay.facts.events, replay.facts.skipped);
        prop_assert!(events + skipped <= lines.count() as u64);
    }

    #[test]
    fn a_log_in_any_pieces_gives_the_same_facts(steps in steps(40), pieces in prop::collection::vec(0..6usize, 0..40)) {
        let (story, _) = play(Story::new(), &steps);
        let limits = Limits::default();
        let lines: Vec<_> = story.lines().collect();
        let mut whole = Facts::default();
        fold(&mut whole, &lines, &limits);
        let (mut pieced, mut rest) = (Facts::default(), &lines[..]);
        for piece in pieces {
            let (now, later) = rest.split_at(piece.min(rest.len()));
            fold(&mut pieced, now, &limits);
            pieced = pieced.clone(); // as a reader does between reads
            rest = later;
        }
        fold(&mut pieced, rest, &limits);
        prop_assert_eq!(pieced, whole);
    }

    /// At each line, and at any time in between.
    #[test]
    fn a_replay_has_the_statuses_that_a_watcher_sees(steps in steps(25), after in gap(), probes in prop::collection::vec(0.0..1.0f64, 4)) {
        let (story, end) = play(Story::new(), &steps);
        let story = story.without_parts().sign(end).owned(Owner::Alive { pid: 0, started: None });
        let mut replay = Replay::new(OwnerStory::Alive, Limits::default(), parse);
        let mut changes = Vec::new();
        for line in story.lines() {
            replay.line(line, &mut changes);
            prop_assert_eq!(changes.last().map(|change| change.status), Some(replay.verdict().status));
        }
        replay.finish(Span(after), &mut changes);
        prop_assert_eq!(changes.last().map(|change| change.status), Some(replay.verdict().status));
        for pair in changes.windows(2) {
            prop_assert!(pair[0].status != pair[1].status, "no change: {:?}", pair);
            prop_assert!(pair[0].at <= pair[1].at, "out of order: {:?}", pair);
        }
        #[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, reason = "any point is fine")]
        let probes = probes.iter().map(|part| Span((end.0 as f64 * part) as i64)).chain([end, end + Span(after)]);
        for at in probes {
            let replayed = changes.iter().rev().find(|change| change.at <= START + at).map(|change| change.status);
            prop_assert_eq!(replayed, Some(story.status(at)), "at {} ms of {:?}", at.0, changes);
        }
    }
}
