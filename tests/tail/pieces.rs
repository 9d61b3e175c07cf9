//! Random stories as files: they arrive in any pieces, are cut anywhere, and are read from either end.

use crate::cases::random::{Kind, Step, play, steps};
use crate::cases::story::{START, Story};
use pilotlight_agents::copilot::log_format::LOG_FORMAT;
use pilotlight_agents::copilot::log_format::parse;
use pilotlight_agents::tail::{ReadContext, Tail};
use pilotlight_core::facts::Facts;
use pilotlight_core::limits::Limits;
use pilotlight_core::owner::Owner;
use pilotlight_core::time::{Moment, Span};
use pilotlight_core::verdict::{Liveness, Observations, Status, judge};
use proptest::prelude::*;
use proptest::sample::Index;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

/// A live owner.
const OWNER: Owner = Owner::Alive { pid: 1, started: None };

/// Reads the log at `path`.
fn read(tail: &mut Tail, path: &Path, facts: &mut Facts, now: Moment) {
    let limits = Limits::default();
    tail.read(&LOG_FORMAT, path, facts, ReadContext { now, limits: &limits, until: None }, &mut Vec::new()).unwrap();
}

/// Appends, and dates the file after all events of a story, because an event is never dated later than its file.
fn append(path: &Path, bytes: &[u8]) {
    if !bytes.is_empty() {
        let mut file = OpenOptions::new().append(true).create(true).open(path).unwrap();
        file.write_all(bytes).unwrap();
        file.set_modified(UNIX_EPOCH + Duration::from_secs(4_000_000_000)).unwrap();
    }
}

/// The facts folded from whole lines, and the time of the last line that is progress.
fn folded(log: &[u8]) -> (Facts, Moment) {
    let (mut facts, mut last) = (Facts::default(), Moment::of(START));
    for line in log.split_inclusive(|&byte| byte == b'\n').filter_map(|line| line.strip_suffix(b"\n")) {
        match parse(line) {
            Ok(event) => {
                facts.fold(&event, Moment::of(event.at.unwrap()), &Limits::default());
                if event.body.is_progress() {
                    last = Moment::of(event.at.unwrap());
                }
            }
            Err(_) if line.trim_ascii().is_empty() => {}
            Err(_) => facts.skip(),
        }
    }
    (facts, last)
}

/// The part of a log that is whole lines.
fn whole_lines(log: &[u8]) -> &[u8] {
    &log[..log.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1)]
}

/// The ends of the pieces of a log that these cuts make.
fn cut(log: &[u8], cuts: &[Index]) -> Vec<usize> {
    let mut cuts: Vec<_> = cuts.iter().map(|cut| cut.index(log.len() + 1)).chain([log.len()]).collect();
    cuts.sort_unstable();
    cuts
}

/// A story's log.
fn log(steps: &[Step]) -> Vec<u8> {
    play(Story::new(), steps).0.log()
}

/// Makes a log more like Copilot's in two respects: no prompt depends on a mode set before it, and no sub-agent writes
/// without having been started.
fn plausible(log: &[u8]) -> Vec<u8> {
    let contains = |line: &[u8], part: &[u8]| line.windows(part.len()).any(|window| window == part);
    let is_plausible = |line: &&[u8]| {
        let started = contains(line, b"subagent.started") || contains(line, b"subagent.completed");
        !contains(line, b"session.mode_changed")
            && !contains(line, b"agentMode")
            && (started || !contains(line, b"\"agentId\""))
    };
    log.split_inclusive(|&byte| byte == b'\n').filter(is_plausible).flatten().copied().collect()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Cut anywhere, even inside a line or a character, and read after each piece.
    #[test]
    fn any_pieces_of_any_story_give_the_facts_of_the_whole(
        steps in steps(30), cuts in prop::collection::vec(any::<Index>(), 0..12)
    ) {
        let log = log(&steps);
        check_pieces(&log, &cut(&log, &cuts))?;
    }

    /// Both are read with the same buffer.
    #[test]
    fn logs_that_grow_in_turn_do_not_mix(
        one in steps(15), other in steps(15), cuts in prop::collection::vec((any::<bool>(), any::<Index>()), 0..16)
    ) {
        let logs = [log(&one), log(&other)];
        let scratch = tempfile::tempdir().unwrap();
        let paths = ["one", "other"].map(|name| scratch.path().join(name));
        let (mut tails, mut facts) = ([Tail::default(), Tail::default()], [Facts::default(), Facts::default()]);
        let (mut written, mut buffer, limits) = ([0, 0], Vec::new(), Limits::default());
        for path in &paths {
            fs::write(path, "").unwrap();
        }
        let ends = [(0, logs[0].len()), (1, logs[1].len())];
        let cuts = cuts.into_iter().map(|(which, cut)| (usize::from(which), cut.index(logs[usize::from(which)].len())));
        for (which, to) in [(0, 0), (1, 0)].into_iter().chain(cuts).chain(ends) {
            if to > written[which] || to == 0 {
                append(&paths[which], &logs[which][written[which]..to.max(written[which])]);
                written[which] = to.max(written[which]);
                let context = ReadContext { now: folded(whole_lines(&logs[which][..written[which]])).1, limits: &limits, until: None };
                tails[which].read(&LOG_FORMAT, &paths[which], &mut facts[which], context, &mut buffer).unwrap();
            }
        }
        assert_same_but_for_halves(&mut facts[0], &folded(&logs[0]).0)?;
        assert_same_but_for_halves(&mut facts[1], &folded(&logs[1]).0)?;
    }

    /// For example, by a full disk. Lines that are appended after the cut count again.
    #[test]
    fn a_log_that_is_cut_anywhere_has_the_facts_of_its_remaining_lines(
        steps in steps(30), until in any::<Index>(), cut in any::<Index>()
    ) {
        let log = plausible(&log(&steps));
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("events.jsonl");
        let read_first = until.index(log.len() + 1);
        fs::write(&path, "").unwrap();
        append(&path, &log[..read_first]);
        let (mut tail, mut facts) = (Tail::default(), Facts::default());
        read(&mut tail, &path, &mut facts, folded(&log).1);
        let remaining = whole_lines(&log[..cut.index(read_first + 1)]);
        let file = fs::File::options().write(true).open(&path).unwrap();
        file.set_len(remaining.len() as u64).unwrap();
        file.set_modified(UNIX_EPOCH + Duration::from_secs(4_000_000_000)).unwrap();
        let (whole, now) = folded(remaining);
        read(&mut tail, &path, &mut facts, now);
        assert_same(&facts, &whole, now)?;
        // Another writer continues.
        let at = now.wall + Span::seconds(1);
        let prompt = format!("{{\"type\":\"user.message\",\"data\":{{}},\"id\":\"x\",\"timestamp\":\"{at}\",\"parentId\":null}}\n");
        append(&path, prompt.as_bytes());
        let (whole, now) = folded(&[remaining, prompt.as_bytes()].concat());
        read(&mut tail, &path, &mut facts, now);
        assert_same(&facts, &whole, now)?;
    }

    /// A log is first read from its end.
    #[test]
    fn any_story_read_backwards_has_the_status_of_reading_it_forwards(steps in steps(40), after in 0..8_000_000i64) {
        let log = plausible(&log(&steps));
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("events.jsonl");
        append(&path, &log);
        let (whole, last) = folded(&log);
        let mut facts = Facts::default();
        read(&mut Tail::default(), &path, &mut facts, last);
        assert_same(&facts, &whole, last)?;
        assert_same(&facts, &whole, last.plus(Span(after)))?;
    }
}

/// Reads a log after each of its pieces, given by their ends, and compares the facts with those of its lines.
fn check_pieces(log: &[u8], ends: &[usize]) -> Result<(), TestCaseError> {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("events.jsonl");
    fs::write(&path, "").unwrap();
    let (mut tail, mut facts, mut from) = (Tail::default(), Facts::default(), 0);
    read(&mut tail, &path, &mut facts, Moment::of(START));
    for &to in ends {
        append(&path, &log[from..to]);
        // Read at once: half a line is dated like the line before it.
        let lines = whole_lines(&log[..to]);
        let (mut whole, now) = folded(lines);
        if lines.len() < to {
            // Half a line is progress, so a turn that only time has ended is now closed in the facts, too.
            whole.grew(now, &Limits::default());
        }
        read(&mut tail, &path, &mut facts, now);
        prop_assert_eq!((&facts.turn, &facts.closed), (&whole.turn, &whole.closed), "at byte {}", to);
        from = to;
    }
    assert_same_but_for_halves(&mut facts, &folded(log).0)
}

/// Half a line was progress, even if the whole line is none.
fn assert_same_but_for_halves(facts: &mut Facts, whole: &Facts) -> Result<(), TestCaseError> {
    let awake = |facts: &Facts| facts.progress.map(|progress| progress.awake);
    prop_assert!(awake(facts) >= awake(whole));
    (facts.progress, facts.last_written) = (whole.progress, whole.last_written);
    prop_assert_eq!(&*facts, whole);
    Ok(())
}

/// Half a line arrives exactly when time alone ends the turn. Found by a random story.
#[test]
fn half_a_line_at_the_end_of_an_answered_turn_closes_it() {
    let step = |gap, kind, id, agent| Step { gap, kind, id, agent };
    let steps = [
        step(0, Kind::Steers, 0, None),
        step(0, Kind::Answer, 0, None),
        step(0, Kind::Permission, 2, None),
        step(300_000, Kind::Abort, 0, Some(0)),
        step(0, Kind::Denied, 2, None),
        step(0, Kind::Abort, 0, None),
    ];
    let log = log(&steps);
    for to in 0..=log.len() {
        check_pieces(&log, &[to, log.len()]).unwrap();
    }
}

/// A background sub-agent counts although it was started before the last prompt. One in the foreground, whose turn was
/// aborted, does not, although its last event is as recent.
#[test]
fn a_sub_agent_from_before_the_last_prompt_is_found() {
    let old = || Story::prompted().answers(10, "Done.").prompt(3600).tool(3605, "t1", "task");
    let background = old().sub_agent_started(3606, "a1", "t1", "background").done(3607, "t1").answers(3700, "Started.");
    let foreground = old().sub_agent_started(3606, "a1", "t1", "sync").by("a1").sign(3700).abort(3701);
    for (story, at, status) in [(background, 3606 + 1199, Status::Working), (foreground, 3700 + 1199, Status::Idle)] {
        let story = story.prompt(3800).answers(3810, "And this.").prompt(at - 10).abort(at);
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("events.jsonl");
        append(&path, &story.log());
        let (whole, last) = folded(&story.log());
        let mut facts = Facts::default();
        read(&mut Tail::default(), &path, &mut facts, last);
        assert_same(&facts, &whole, last).unwrap();
        assert_eq!(
            judge(Observations::by_log(&facts), &OWNER, &Liveness::default(), None, last, &Limits::default()).status,
            status
        );
    }
}

/// Compares everything that a status depends on: a log read backwards is not read completely.
fn assert_same(backwards: &Facts, forwards: &Facts, now: Moment) -> Result<(), TestCaseError> {
    let relevant = |facts: &Facts| {
        // How the last turn ended does not matter while another is open.
        let closed = facts.closed.clone().filter(|_| facts.turn.is_none());
        let Facts { turn, shut_down, requests, denials, compaction, progress, .. } = facts.clone();
        (turn, closed, shut_down, requests, denials, compaction, progress)
    };
    prop_assert_eq!(relevant(backwards), relevant(forwards));
    let verdict = |facts: &Facts| {
        judge(Observations::by_log(facts), &OWNER, &Liveness::default(), None, now, &Limits::default()).status
    };
    prop_assert_eq!(verdict(backwards), verdict(forwards));
    Ok(())
}
