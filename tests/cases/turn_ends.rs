//! Ends of turns: what belongs to a turn, what its end leaves, and when a replay says that it happened.

use super::story::Story;
use pilotlight_core::replay::OwnerStory;
use pilotlight_core::time::Span;
use pilotlight_core::verdict::Status::{Finishing, Idle, NeedsInput, NeedsPermission, Quiet, Working};
use serde_json::json;

/// The request of a sub-agent whose tool is open.
#[test]
fn a_sub_agents_request_ends_with_the_turn_unless_it_is_in_the_background() {
    let asks = |mode: &str, story: fn(Story) -> Story| {
        let story = story(Story::prompted().tool(1, "t1", "task").sub_agent_started(1, "a1", "t1", mode));
        story.by("a1").permission(3, "r1", "t2")
    };
    let foreground = asks("sync", |story| story);
    foreground.is(4, NeedsPermission);
    foreground.clone().server_says(false).says(4, Idle, "no active work");
    let background = asks("background", |story| story.done(2, "t1"));
    background.is(4, NeedsPermission);
    background.server_says(false).is(4, NeedsPermission);
}

#[test]
fn the_next_prompt_ends_all_requests_but_those_of_the_background() {
    let agent = |story: Story, agent: &str, call: &str| {
        story.tool(1, call, "task").sub_agent_started(1, agent, call, "background").done(2, call)
    };
    let story = agent(agent(Story::prompted(), "a1", "t1"), "a2", "t2").tool(3, "t3", "bash");
    let story = story.by("a1").permission(4, "r1", "t9").permission(5, "r2", "t3").by("a2").permission(6, "r3", "t8");
    let open = |at: i32| story.clone().prompt(10).facts(at).requests.into_iter().map(|open| open.request.into());
    assert_eq!(open(9).collect::<Vec<String>>(), ["r1", "r2", "r3"]);
    assert_eq!(open(10).collect::<Vec<String>>(), ["r1", "r3"]);
}

#[test]
fn only_a_completed_turn_counts_as_completed() {
    let completed = |story: &Story| story.facts(60).marks.completed;
    let done = Story::prompted().answers(10, "Done.");
    assert_eq!(completed(&done), Some(done.moment(10).wall));
    let accepted = Story::prompted().event(5, "session.task_complete", json!({ "success": true })).round_end(6);
    assert_eq!(completed(&accepted), Some(accepted.moment(6).wall));
    for other in [
        Story::prompted(),
        Story::prompted().prompt(10),
        Story::prompted().abort(10),
        Story::prompted().error(10),
        Story::prompted().resume(10),
        Story::prompted().shutdown(10),
        Story::prompted().round_end(10).sign(20),
    ] {
        assert_eq!(completed(&other), None, "{:?}", other.facts(60).closed);
    }
    // The last one stays known.
    assert_eq!(completed(&done.clone().prompt(20).abort(30)), Some(done.moment(10).wall));
}

/// A turn that Copilot begins by itself, as after a sub-agent's end.
#[test]
fn the_start_of_a_turn_is_known_if_nothing_before_it_is_missing() {
    let known = |story: &Story| {
        let facts = story.facts(60);
        let start_known = facts.turn.unwrap().start_known;
        assert_eq!(facts.turn_id.is_some(), start_known, "it is named by its first event");
        let because = story.verdict(70).because.to_string();
        assert_eq!(because.contains("the start of its turn is unknown"), !start_known, "{because}");
        story.is(70, Quiet);
        start_known
    };
    assert!(known(&Story::prompted()));
    assert!(known(&Story::cut().prompt(0)));
    assert!(known(&Story::new().round(0)), "the log is whole");
    assert!(known(&Story::cut().prompt(0).answers(1, "Done.").round(2)), "the turn before it was read");
    assert!(!known(&Story::cut().round(0)));
}

#[test]
fn case_96_a_question_inside_any_quotation_does_not_count() {
    let after = |content: &str| Story::prompted().answers(1, content).status(2);
    for quoted in ["It says “really?", "Il dit « vraiment ?", "It says \"really?", "It prints `ok?"] {
        assert_eq!(after(quoted), Idle, "{quoted}");
    }
    for asks in ["It says “really”, and you?", "Il dit « oui », et vous ?", "Is it \"a\" or \"b\"?", "Is it `a`?"]
    {
        assert_eq!(after(asks), NeedsInput, "{asks}");
    }
}

/// The events in between do not move it.
#[test]
fn case_78_a_replay_dates_the_5_min_from_the_answer_whatever_follows() {
    let mut story = Story::prompted().answer(10, "Done.");
    for at in (20..=300).step_by(20) {
        story = story.sign(at).metric(at);
    }
    let changes = story.changes(OwnerStory::Alive, Span::minutes(6));
    let dated: Vec<_> = changes.iter().map(|change| (change.status, change.at)).collect();
    let expected = [(Idle, 0), (Working, 0), (Finishing, 10), (Idle, 310)];
    assert_eq!(dated, expected.map(|(status, at)| (status, story.moment(at).wall)));
}

/// No time passes while the wall clock is set back.
#[test]
fn a_replay_survives_a_clock_that_is_set_back() {
    let story = Story::prompted().wall_jumps(30, Span::ZERO - Span::hours(1)).sign(30);
    let changes = story.changes(OwnerStory::Alive, Span::seconds(61));
    let last = changes.last().unwrap();
    assert_eq!((last.status, last.at), (Quiet, story.moment(90).wall));
}
