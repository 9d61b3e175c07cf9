use super::*;
use crate::event::{Besides, SessionInfo, Tokens, ToolResult};
use crate::scan::Text;
use crate::text::COMMAND_MAX;
use crate::time::Time;

const PROMPT: Body<'_> = Body::Prompt { joins: false, continuation: false, autopilot: None };
const OVER: Body<'_> = Body::Answer { asks: false, model: None };

fn at(seconds: i64) -> Moment {
    Moment::of(Time(1_763_700_000_000 + seconds * 1000))
}

fn event<'a>(id: &'a str, parent: &'a str, body: Body<'a>) -> Event<'a> {
    Event {
        kind: b"x",
        at: None,
        id: id.as_bytes(),
        parent: parent.as_bytes(),
        round: b"",
        sub_agent: None,
        body,
        besides: Besides::NONE,
    }
}

fn facts(events: &[(i64, Event<'_>)]) -> Facts {
    let mut facts = Facts::default();
    for (seconds, event) in events {
        facts.fold(event, at(*seconds), &Limits::default());
    }
    facts
}

fn tool<'a>(call: &'a str, command: &'a str, nested: bool) -> Body<'a> {
    let (call, command) = (Text(call.as_bytes()), Some(Text(command.as_bytes())));
    Body::ToolStart {
        call,
        name: Some(Text(b"bash")),
        command,
        detached: false,
        asks: false,
        question: None,
        nested,
        asks_unseen: true,
    }
}

fn resume(continues: bool) -> Body<'static> {
    let info = SessionInfo { model: None, cwd: None, branch: None, in_use: false, joins: false };
    Body::Resume { info, continues }
}

#[test]
fn a_line_that_grows_is_progress_only_after_the_last_event() {
    for (seconds, is_part) in [(4, false), (5, false), (6, true)] {
        let mut facts = facts(&[(5, event("", "", PROMPT))]);
        facts.grew(at(seconds), &Limits::default());
        assert_eq!((facts.last_written == LastWritten::Part, facts.progress), (is_part, Some(at(seconds.max(5)))));
    }
}

#[test]
fn what_is_no_progress_makes_no_sub_agent() {
    let by_sub_agent = |body: Body<'static>| {
        let event = Event { sub_agent: Some(Text(b"a")), ..event("", "", body) };
        facts(&[(0, event)]).sub_agents.len()
    };
    assert_eq!((by_sub_agent(Body::Step), by_sub_agent(Body::Usage { context: None })), (1, 0));
}

#[test]
fn only_a_failure_is_passed_over_by_a_resume_that_continues() {
    let error = || Body::Error { kind: None, message: None, status: None };
    let ending = |over: Body<'static>| {
        let events = [(0, event("", "", PROMPT)), (1, event("", "", over)), (2, event("", "", resume(true)))];
        facts(&events).closed.unwrap().ending
    };
    assert_eq!((ending(OVER), ending(error())), (Ending::Completed, Ending::PassedOver));
}

#[test]
fn a_new_process_is_asked_anew_what_it_approves() {
    let resumed = |continues| {
        let resumed =
            facts(&[(0, event("", "", Body::Approvals { all: true })), (5, event("", "", resume(continues)))]);
        (resumed.approves_all, resumed.approvals_at)
    };
    assert_eq!(resumed(true), (Some(at(0).wall), Some(at(0).wall)));
    assert_eq!(resumed(false), (None, Some(at(5).wall)));
}

#[test]
fn a_record_of_a_call_is_no_link_of_the_chain() {
    let forks = |body: Body<'static>| {
        facts(&[(0, event("a", "", PROMPT)), (1, event("b", "a", body)), (2, event("c", "a", Body::Step))]).forked
    };
    assert!(forks(Body::Step) && !forks(Body::Record));
}

#[test]
fn a_command_that_is_escaped_twice_is_read_up_to_the_same_length() {
    let command = |quotes: usize| {
        let escaped = r#"\\\""#.repeat(quotes);
        let facts = facts(&[(0, event("", "", PROMPT)), (1, event("", "", tool("t", &escaped, true)))]);
        facts.turn.unwrap().tools.remove(0).command.unwrap()
    };
    assert_eq!(*command(COMMAND_MAX), *"\"".repeat(COMMAND_MAX));
}

#[test]
fn only_the_tool_whose_shell_is_done_was_allowed() {
    let mut facts = facts(&[
        (0, event("", "", PROMPT)),
        (1, event("", "", tool("t1", "make", false))),
        (1, event("", "", tool("t2", "make", false))),
    ]);
    let turn = facts.turn.as_mut().unwrap();
    turn.tools.iter_mut().for_each(|tool| tool.asks_by = Some("r".into()));
    let done = Body::ShellDone { shell: None, call: Some(Text(b"t1")) };
    facts.fold(&event("", "", done), at(2), &Limits::default());
    let asks: Vec<_> = facts.turn.unwrap().tools.iter().map(|tool| tool.asks_by.is_some()).collect();
    assert_eq!(asks, [false, true]);
}

/// Some releases say at the start that a shell goes on, some only at its end, and some then without its id.
#[test]
fn a_shell_goes_on_if_its_start_or_its_end_says_so() {
    let shells = |goes_on: bool, shell: Option<&'static str>| {
        let mut start = tool("t1", "make", false);
        if let Body::ToolStart { detached, .. } = &mut start {
            *detached = goes_on;
        }
        let done = Body::ToolDone {
            call: Text(b"t1"),
            result: ToolResult::Success,
            by_user: false,
            shell: shell.map(|id| Text(id.as_bytes())),
            ended: None,
        };
        facts(&[(0, event("", "", PROMPT)), (1, event("", "", start)), (2, event("", "", done))]).shells.len()
    };
    let told = [(true, Some("s")), (true, None), (false, Some("s")), (false, None)];
    assert_eq!(told.map(|(goes_on, shell)| shells(goes_on, shell)), [1, 1, 1, 0]);
}

#[test]
fn a_type_of_event_is_shown_as_it_is_written() {
    let LastWritten::Event { kind, .. } = facts(&[(0, event("", "", PROMPT))]).last_written else { panic!() };
    assert_eq!((format!("{kind:?}"), kind.is("x"), kind.is("y")), ("x".into(), true, false));
}

#[test]
fn case_768_what_a_log_counts_is_kept_until_it_counts_anew() {
    const MOST: i64 = 1_000_000_000_000;
    let counted = |counts: &[(Option<i64>, Option<i64>, Option<i64>)]| {
        let count = |(context, window, total): &(Option<i64>, Option<i64>, Option<i64>)| {
            let tokens = Some(Tokens { context: *context, window: *window, total: *total });
            (1, Event { besides: Besides { tokens, ..Besides::NONE }, ..event("", "", Body::Aside) })
        };
        let facts = facts(&counts.iter().map(count).collect::<Vec<_>>());
        (facts.context().map(|context| (context.used, context.window, context.is_nearly_full())), facts.tokens)
    };
    assert_eq!(counted(&[]), (None, None));
    assert_eq!(counted(&[(Some(90), Some(100), Some(300))]), (Some((90, Some(100), false)), Some(300)));
    assert_eq!(counted(&[(Some(90), Some(100), None), (Some(91), None, None)]).0, Some((91, Some(100), true)));
    assert_eq!(counted(&[(Some(91), Some(100), None), (Some(10), None, None)]).0, Some((10, Some(100), false)));
    assert_eq!(counted(&[(Some(91), None, None)]).0, Some((91, None, false)), "its limit is not known");
    for nonsense in [0, -1, i64::MIN, i64::MAX] {
        assert_eq!(counted(&[(Some(nonsense), Some(nonsense), Some(nonsense))]), (None, None));
    }
    assert_eq!(counted(&[(Some(MOST), Some(1), None)]).0, Some((MOST, Some(1), true)));
    assert_eq!(counted(&[(Some(MOST), Some(MOST + 1), None)]).0, Some((MOST, None, false)));
}
