//! Lists of what is open: they stay short whatever a log contains, and only what is over leaves them.

use super::story::Story;
use serde_json::json;

/// Real sessions have fewer than ten of each.
const MANY: usize = 300;

fn with_many(story: Story, one: impl Fn(Story, &str) -> Story) -> Story {
    (0..MANY).fold(story, |story, n| one(story, &n.to_string()))
}

#[test]
fn a_hostile_log_does_not_fill_the_memory() {
    let tools = with_many(Story::prompted(), |story, id| story.tool(1, id, "bash")).facts(1);
    assert_eq!(tools.turn.unwrap().tools.len(), 256);
    let requests = with_many(Story::prompted(), |story, id| story.permission(1, id, id)).facts(1);
    assert_eq!(requests.requests.len(), 256);
    let story = with_many(Story::prompted(), |story, id| story.sub_agent_started(1, id, id, "background")).facts(1);
    assert_eq!(story.sub_agents.len(), 256);
    let one = Story::prompted().sub_agent_started(1, "a1", "t1", "background");
    let tools = with_many(one, |story, id| story.by("a1").tool(1, id, "bash")).facts(1);
    assert_eq!(tools.sub_agents[0].tools.len(), 256);
    let shells = with_many(Story::prompted(), with_shell).facts(1);
    assert_eq!(shells.shells.len(), 256);
}

/// A shell that goes on in the background under this id.
fn with_shell(story: Story, id: &str) -> Story {
    let result = json!({ "content": format!("<command started in background with shellId: {id}>") });
    let arguments = json!({ "command": "make", "mode": "async" });
    let start = json!({ "toolCallId": id, "toolName": "bash", "arguments": arguments });
    let done = json!({ "toolCallId": id, "success": true, "result": result });
    story.event(1, "tool.execution_start", start).event(1, "tool.execution_complete", done)
}

#[test]
fn a_background_shell_ends_only_by_the_notification_that_it_completed() {
    let shells = |story: &Story| story.facts(9).shells.into_iter().map(String::from).collect::<Vec<_>>();
    let both = with_shell(with_shell(Story::prompted(), "0"), "1");
    assert_eq!(shells(&both), ["0", "1"]);
    let notified = |kind: &str, id: &str| {
        let data = json!({ "content": "x", "kind": { "type": kind, "shellId": id } });
        shells(&both.clone().event(2, "system.notification", data))
    };
    assert_eq!(notified("shell_completed", "0"), ["1"]);
    assert_eq!(notified("shell_completed", "7"), ["0", "1"]);
    assert_eq!(notified("agent_idle", "0"), ["0", "1"]);
}

/// An answer given elsewhere can be reported.
#[test]
fn the_latest_answers_to_requests_are_remembered() {
    let answer = |story: Story, n: i32| {
        let (id, kind) = (n.to_string(), if n % 2 == 0 { "approved" } else { "denied-interactively-by-user" });
        story.permission(n, &id, &id).permission_done(n, &id, &id, kind)
    };
    let story = (1..=10).fold(Story::prompted(), answer);
    let allowed = |at: i32| story.facts(at).answered.into_iter().map(|(_, allowed)| allowed).collect::<Vec<_>>();
    assert_eq!(allowed(3), [false, true, false]);
    assert_eq!(allowed(8), [false, true, false, true, false, true, false, true]);
    let (before, after) = (story.facts(8).answered, story.facts(10).answered);
    assert_eq!(after.len(), 8);
    assert!(before.iter().skip(2).eq(after.iter().take(6)), "the oldest two have made room");
}
