//! A silent log while the model's answer arrives, or does not: what a probe of the session's connections adds.

use super::story::{At, Story};
use pilotlight_core::stream_probe::{Blind, ProbeResult, WINDOW};
use pilotlight_core::time::{Span, Time};
use pilotlight_core::verdict::Status::{Idle, NeedsPermission, Quiet, Stuck, Working};
use pilotlight_core::verdict::{Liveness, ProbePlan, StreamProbe};

const RECEIVING: ProbeResult = ProbeResult::Receiving { bytes: Some(2_280), within: WINDOW };
const SILENT: ProbeResult = ProbeResult::Silent { may_not_stream: false };

impl Story {
    /// A probe that ended at this offset found this. Something arrived last at `last`.
    fn looked(mut self, at: impl Into<At>, probe_result: ProbeResult, last: Option<i32>) -> Self {
        let at = at.into();
        let progress = self.facts(at).progress.map_or(Time(0), |progress| progress.wall);
        let last = last.map(|last| self.moment(last));
        self.liveness.stream_probe = Some(StreamProbe { progress, at: self.moment(at), probe_result, last });
        self
    }

    fn still_probing(mut self) -> Self {
        self.liveness.probing_stream = true;
        self
    }

    /// When the next probe begins, in seconds, and its window.
    #[track_caller]
    fn next_probe(&self, at: impl Into<At>) -> (Option<i64>, Span) {
        let probe = self.verdict(at).probe.expect("it waits for its model");
        (probe.at.map(|at| (at - self.moment(0).awake).0 / 1000), probe.window)
    }
}

#[test]
fn case_155_an_answer_that_arrives_is_work() {
    let story = Story::prompted().looked(60, RECEIVING, Some(59));
    story.says(60, Working, "receiving an answer: 2 KB in the last 10 s");
    // The limits are measured from its last byte.
    story.turns(119, Working, Quiet).turns(179, Quiet, Stuck);
    assert_eq!(story.next_probe(60), (Some(109), WINDOW));
    let three_minutes = Story::prompted().looked(180, RECEIVING, Some(179));
    three_minutes.is(180, Working).is(238, Working);
    let unmeasured = ProbeResult::Receiving { bytes: None, within: WINDOW };
    Story::prompted().looked(60, unmeasured, None).says(60, Working, "receiving an answer");
    // The next event is news, and what was seen before is not.
    Story::prompted()
        .looked(60, RECEIVING, Some(59))
        .round(61)
        .says(62, Working, "the model thinks")
        .turns(121, Working, Quiet);
}

#[test]
fn case_155_a_silence_is_looked_into_before_each_limit_and_at_no_other_time() {
    let story = Story::prompted();
    assert_eq!(story.next_probe(0), (Some(50), WINDOW));
    let quiet = story.looked(60, SILENT, None);
    assert_eq!(quiet.next_probe(60), (Some(110), WINDOW));
    let stuck = Story::prompted().looked(120, SILENT, None);
    assert_eq!(stuck.next_probe(120), (None, WINDOW), "no limit is left");
    // A limit of a few seconds has a shorter probe.
    let mut short = Story::prompted();
    (short.limits.fresh_quiet, short.limits.fresh_stuck) = (Span::seconds(4), Span::seconds(30));
    assert_eq!(short.next_probe(0), (Some(2), Span::seconds(2)));
    // Nothing is looked at where no model is waited for, or nobody could receive anything.
    let none = |story: &Story, at: i32| assert_eq!(story.verdict(at).probe, None::<ProbePlan>);
    none(&Story::after_a_tool(5).round_end(5).answer(6, "Done.").round_end(6), 60);
    none(&Story::prompted().requests(1, &["bash"]).tool(1, "t1", "bash"), 599);
    none(&Story::prompted().requests(1, &["bash"]).permission(1, "r1", "t1"), 60);
    none(&Story::prompted().compacts(1), 60);
    none(&Story::prompted().owner_gone(), 60);
}

#[test]
fn case_155_a_limit_waits_for_the_look_that_is_for_it() {
    let probing_stream = Story::prompted().still_probing();
    probing_stream.is(60, Working).is(121, Working);
    // The probe for the second limit leaves the status of the first.
    let quiet = Story::prompted().looked(60, SILENT, None).still_probing();
    quiet.is(60, Quiet).is(121, Quiet);
    let stuck = Story::prompted().looked(120, SILENT, None).still_probing();
    stuck.is(120, Stuck).is(600, Stuck);
    // An open tool is not looked into.
    Story::prompted().requests(0, &["bash"]).tool(0, "t1", "bash").still_probing().turns(600, Working, Quiet);
}

#[test]
fn case_157_a_dead_connection_is_stuck_as_soon_as_it_is_proven() {
    let proven = |probe_result| Story::prompted().looked(60, probe_result, None);
    proven(ProbeResult::Unanswered).says(60, Stuck, "the network does not answer; agent tries again by itself");
    proven(ProbeResult::Connecting).says(60, Stuck, "it cannot reach its model; agent tries again by itself");
    let unread = proven(ProbeResult::Unread);
    unread.says(60, Stuck, "silent 1 min, agent does not read the data that arrived");
    assert_eq!(unread.verdict(90).since, unread.moment(60).wall, "since it was seen");
    assert!(!unread.verdict(60).because.to_string().contains("tries again"));
    // What has come since overrules it.
    proven(ProbeResult::Unanswered).sign(61).is(62, Working);
}

#[test]
fn a_silent_connection_is_the_reason() {
    let story = Story::prompted().looked(120, SILENT, None);
    story.turns(60, Working, Quiet).turns(120, Quiet, Stuck);
    story.says(
        240,
        Stuck,
        "silent 4 min, no tool used in this turn; its connection to the model has been silent for 4 min",
    );
    let stalled = Story::prompted().looked(300, SILENT, Some(60));
    stalled.says(300, Stuck, "silent 4 min").says(300, Stuck, "has been silent for 4 min");
    // The limits count from the last byte of what has arrived.
    let just_now = Story::prompted().looked(600, SILENT, Some(599));
    just_now.turns(659, Working, Quiet).turns(719, Quiet, Stuck);
    assert_eq!(just_now.next_probe(600), (Some(649), WINDOW));
}

#[test]
fn case_158_signs_of_life_are_no_answer() {
    let story = Story::prompted().looked(120, ProbeResult::Kept, Some(119));
    story.turns(60, Working, Quiet).turns(3600, Quiet, Stuck);
    story.says(300, Quiet, "its model gives signs of life, but no text for 5 min");
    assert_eq!(story.next_probe(120), (Some(3590), WINDOW));
}

#[test]
fn what_copilot_mends_by_itself_is_not_stuck_at_once() {
    let waits = Story::prompted().looked(120, ProbeResult::NoConnection, None);
    waits.turns(60, Working, Quiet).turns(600, Quiet, Stuck);
    waits.says(120, Quiet, "no connection to a model is open; agent tries again by itself");
}

#[test]
fn what_cannot_be_seen_has_the_longer_limits_and_says_so() {
    for blind in [Blind::System, Blind::Shared, Blind::Client] {
        let story = Story::prompted().looked(60, ProbeResult::Unknown(blind), None);
        story.turns(120, Working, Quiet).turns(600, Quiet, Stuck);
        story.says(120, Quiet, "Pilotlight cannot see whether it receives an answer");
    }
    let whole = Story::prompted().looked(60, ProbeResult::Silent { may_not_stream: true }, None);
    whole.turns(60, Working, Quiet).turns(600, Quiet, Stuck);
    whole.says(60, Quiet, "the answer may come in one piece");
}

#[test]
fn a_sub_agents_turn_is_looked_into() {
    let story = || {
        let root = Story::prompted().requests(1, &["task"]).tool(1, "t1", "task");
        root.sub_agent_started(2, "helper", "t1", "sync").by("helper").round(2)
    };
    assert_eq!(story().next_probe(3), (Some(112), WINDOW));
    let receiving = story().looked(122, RECEIVING, Some(121));
    receiving.says(122, Working, "receiving an answer").turns(241, Working, Quiet);
    let silent = story().looked(602, SILENT, None);
    silent.turns(122, Working, Quiet).turns(602, Quiet, Stuck);
    silent.says(602, Stuck, "a sub-agent waits for its model; its connection to the model has been silent");
    // Even if a server reports that it works: it waits.
    story().looked(602, SILENT, None).server_says(true).is(602, Stuck);
    // Without a probe, it is an open tool.
    story().turns(602, Working, Quiet);
    let with_tool = story().by("helper").tool(3, "t2", "bash");
    assert_eq!(with_tool.verdict(60).probe, None, "its tool works");
}

#[test]
fn what_a_look_finds_changes_no_other_status() {
    Story::after_a_tool(5)
        .round_end(5)
        .answer(6, "Done.")
        .round_end(6)
        .looked(60, ProbeResult::Unread, None)
        .is(60, Idle);
    Story::prompted()
        .requests(1, &["bash"])
        .permission(1, "r1", "t1")
        .looked(60, ProbeResult::Unread, None)
        .is(60, NeedsPermission);
    let stale = Liveness {
        stream_probe: Story::prompted().looked(60, RECEIVING, None).liveness.stream_probe,
        ..Liveness::default()
    };
    Story::prompted().sign(70).with_liveness(stale).turns(130, Working, Quiet);
}
