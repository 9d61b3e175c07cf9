use super::*;
use crate::time::Time;

impl OpenTool {
    /// For tests: a command that runs.
    pub(crate) fn running(id: &str, at: Moment) -> Self {
        Self {
            call: Call::of(id),
            name: "bash".into(),
            command: None,
            question: None,
            detached: false,
            asks: false,
            unasked: false,
            asks_by: None,
            at,
        }
    }
}

impl Request {
    /// For tests: one of this kind, of which nothing else is known.
    pub(crate) fn of_kind(id: &str, kind: &str, at: Moment) -> Self {
        Self {
            id: Call::of(id),
            request: id.into(),
            call: None,
            kind: kind.into(),
            asks: None,
            paths: Vec::new(),
            command: None,
            sub_agent: None,
            is_managed: false,
            is_probable: false,
            over_bridge: None,
            at,
        }
    }
}

/// What `explain` and Why show is what the verdict applies, see `verdict/open.rs`.
#[test]
fn the_limits_of_a_silence_depend_on_what_is_open() {
    let limits = Limits::default();
    let at = Moment::of(Time(0));
    let mut turn = Turn::new(at, true, true);
    let tool = (limits.tool_quiet, limits.tool_stuck);
    let of = |turn: &Turn, is_compacting| {
        let (what, quiet, stuck) = turn.silence_limits(is_compacting, None, &limits);
        (what, (quiet, stuck))
    };
    assert_eq!(of(&turn, false), ("while no tool was used", (limits.fresh_quiet, limits.fresh_stuck)));
    assert_eq!(of(&turn, true), ("while its history is compacted", tool));
    turn.used = 1;
    let thinking = (limits.thinking_quiet, limits.thinking_stuck);
    assert_eq!(of(&turn, false), ("while no tool is running", thinking));
    assert_eq!(of(&turn, true), ("while its history is compacted", tool));
    turn.tools.push(OpenTool::running("t1", at));
    assert_eq!(of(&turn, false), ("while a tool is running", tool));
    assert_eq!(of(&turn, true), ("while a tool is running", tool));
}

#[test]
fn what_was_denied_before_a_new_start_does_not_count() {
    let at = |millis| Moment::of(Time(millis));
    let mut denials = Denials::default();
    for (millis, denied) in [(1, true), (2, true), (3, false), (4, true)] {
        denials.push(at(millis), denied);
    }
    assert_eq!([None, Some(1), Some(4)].map(|start| denials.after(start.map(Time))), [3, 2, 0]);
    assert_eq!((denials.of(), denials.since()), (4, Some(at(4))));
    denials.push(at(5), false);
    denials.push(at(6), false);
    assert_eq!((denials.of(), denials.since()), (RESULTS, None), "the first one is forgotten");
}

#[test]
fn a_command_is_whole_or_not_there() {
    let whole = "é".repeat(COMMAND_MAX);
    assert_eq!(&*whole_command(&whole), whole);
    assert_eq!(&*whole_command(&format!("{whole}é")), COMMAND_TOO_LONG);
}

#[test]
fn only_an_end_that_no_event_tells_of_is_a_guess() {
    for (ending, is_guess) in [
        (Ending::Completed, false),
        (Ending::Aborted, false),
        (Ending::NoActiveWork, false),
        (Ending::Unanswered, true),
        (Ending::NeverClosed, true),
        (Ending::ResumedSilent, true),
    ] {
        let closed = Closed { ending, at: Moment::of(Time(0)), asks: false };
        assert_eq!(closed.is_guess(), is_guess, "{closed:?}");
    }
}
