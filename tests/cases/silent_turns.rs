//! Open turns: the reasons given for their work and their silence, and when their processes are sampled.

use super::story::Story;
use pilotlight_core::verdict::Sample;
use pilotlight_core::verdict::Status::{Quiet, Stuck, Working};

#[test]
fn the_reason_for_working_names_the_work() {
    let prompted = Story::prompted();
    prompted.says(5, Working, "the model thinks");
    prompted.clone().compacts(5).says(6, Working, "compacting its history");
    prompted.clone().resume_pending(5).says(6, Working, "resumed with its pending work");
    let one = prompted.clone().tool(5, "t1", "bash");
    one.says(6, Working, "running bash");
    one.clone().tool(5, "t2", "view").says(6, Working, "running bash and view");
    let four = one.tool(5, "t2", "view").tool(5, "t3", "grep").tool(5, "t4", "glob");
    four.says(6, Working, "running bash, view and grep");
}

/// Results from before a resumption do not count.
#[test]
fn a_silent_turn_says_that_an_answer_is_missing_only_after_a_result() {
    let ran = Story::prompted().requests(1, &["bash"]).ran(2, "t1");
    let owes = "no answer to the last tool result";
    ran.says(122, Quiet, owes).says(602, Stuck, owes);
    let resumed = ran.resume_pending(10).sign(11);
    resumed.says(131, Quiet, "no tool running").says(611, Stuck, "no tool running");
    Story::prompted().says(60, Quiet, "no tool used in this turn");
}

#[test]
fn a_silence_counts_from_the_moment_it_passed_its_limit() {
    let story = Story::prompted().sign(5);
    for at in [65, 70, 124] {
        let verdict = story.verdict(at);
        assert_eq!((verdict.status, verdict.since), (Quiet, story.moment(65).wall), "at {at} s");
    }
    for at in [125, 500] {
        let verdict = story.verdict(at);
        assert_eq!((verdict.status, verdict.since), (Stuck, story.moment(125).wall), "at {at} s");
    }
}

/// A sample that ended with the last progress says nothing about the silence after it.
#[test]
fn an_old_sample_does_not_put_off_the_next_one() {
    let story = Story::prompted().tool(1, "t1", "bash");
    let sampled = |at: f64| {
        let mut story = story.clone();
        story.liveness.busy = Some(Sample { busy: false, at: story.moment(at) });
        story
    };
    let due = story.verdict(5).sample_at;
    assert_eq!(due, Some(story.moment(655).awake), "ahead of the limit");
    for old in [0.0, 1.0] {
        for at in [5, 700, 4000] {
            assert_eq!(sampled(old).verdict(at).sample_at, due, "{old}, at {at} s");
        }
    }
    let new = sampled(660.0);
    assert_eq!(new.verdict(661).sample_at, Some(story.moment(720).awake), "a minute later");
    assert_eq!(new.verdict(3601).sample_at, None, "another would change nothing");
}
