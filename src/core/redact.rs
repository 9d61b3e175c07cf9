//! Redacts a session's texts, for a log that may be shown to anybody but must still give reasons.
//!
//! The usual rules word the reason, but from facts in which every text chosen by a session, a model or a server is
//! replaced: names of tools other than Copilot's own, error messages, unknown kinds of requests. So no reason can
//! contain a prompt, a command, a question or a title, whichever rule words it.

use super::facts::Facts;
use super::question::Question;
use super::session::{About, Observed, Session};
use super::stated::{Asks, Stated};
use super::turn::{Closed, Ending, Fault};
use super::verdict::{Asking, Vitals};

/// The agents' own tools. Names of other tools were chosen by their author or the user.
const TOOLS: [&str; 47] = [
    "bash",
    "read_bash",
    "write_bash",
    "stop_bash",
    "list_bash",
    "local_shell",
    "powershell",
    "view",
    "create",
    "edit",
    "str_replace_editor",
    "apply_patch",
    "glob",
    "grep",
    "rg",
    "task",
    "read_agent",
    "ask_user",
    "exit_plan_mode",
    "task_complete",
    "report_intent",
    "update_todo",
    "web_fetch",
    "skill",
    "Agent",
    "AskUserQuestion",
    "Bash",
    "BashOutput",
    "Edit",
    "EnterPlanMode",
    "ExitPlanMode",
    "Glob",
    "Grep",
    "KillShell",
    "LS",
    "Monitor",
    "MultiEdit",
    "NotebookEdit",
    "Read",
    "Skill",
    "Task",
    "TaskOutput",
    "TaskStop",
    "TodoWrite",
    "WebFetch",
    "WebSearch",
    "Write",
];
/// Kinds of permission requests, by the CLI's schema.
const PERMISSIONS: [&str; 14] = [
    "shell",
    "commands",
    "write",
    "read",
    "mcp",
    "url",
    "memory",
    "custom-tool",
    "hook",
    "path",
    "workflow",
    "extension-management",
    "extension-permission-access",
    "extension-env-access",
];
/// Kinds of errors, by the schemas of the CLIs.
const ERRORS: [&str; 14] = [
    "authentication",
    "authorization",
    "policy",
    "quota",
    "rate_limit",
    "context_limit",
    "query",
    "authentication_failed",
    "billing_error",
    "invalid_request",
    "max_output_tokens",
    "overloaded",
    "server_error",
    "unknown",
];

/// Returns the session as needed to judge it, with all its own texts replaced.
pub(crate) fn redacted(session: &Session) -> Session {
    let observed = &session.observed;
    Session {
        observed: Observed {
            about: About { kind: observed.about.kind, created: observed.about.created, ..About::default() },
            facts: facts(&observed.facts),
            problem: observed.problem.as_ref().map(|_| "its log cannot be read".into()),
            stated: observed.stated.as_ref().map(stated),
            ..observed.clone()
        },
        vitals: vitals(&session.vitals),
        ..session.clone()
    }
}

fn stated(stated: &Stated) -> Stated {
    let asks = stated.asks.clone().map(|Asks { mut tool, .. }| {
        replace(&mut tool, &TOOLS, "a tool");
        Asks { tool, text: None }
    });
    Stated { asks, ..stated.clone() }
}

fn vitals(vitals: &Vitals) -> Vitals {
    let question = |asking: &Asking| Asking {
        question: Question { id: None, text: "…".into(), choices: Vec::new() },
        since: asking.since,
        form: Err("".into()),
    };
    Vitals { questions: vitals.questions.iter().map(question).collect(), ..vitals.clone() }
}

fn facts(facts: &Facts) -> Facts {
    let mut facts = facts.clone();
    facts.title = None;
    if let Some(turn) = &mut facts.turn {
        for tool in &mut turn.tools {
            replace(&mut tool.name, &TOOLS, "a tool");
            tool.command = None;
            tool.question = None;
        }
    }
    for request in &mut facts.requests {
        replace(&mut request.kind, &PERMISSIONS, "of a kind unknown here");
        // What Copilot asks about our own extension is said in words of ours.
        if !request.is_about_us() {
            request.asks = None;
        }
        request.paths = Vec::new();
        request.command = None;
    }
    if let Some(Closed { ending, .. }) = &mut facts.closed {
        plain_ending(ending);
    }
    facts
}

fn plain_ending(ending: &mut Ending) {
    match ending {
        Ending::Failed(fault) => plain_fault(fault),
        Ending::Shutdown { unfinished, error } => {
            unfinished.iter_mut().for_each(|name| replace(name, &TOOLS, "a tool"));
            error.iter_mut().for_each(plain_fault);
        }
        _ => {}
    }
}

fn plain_fault(fault: &mut Fault) {
    fault.message = None;
    fault.kind.iter_mut().for_each(|kind| replace(kind, &ERRORS, "error"));
}

fn replace(text: &mut Box<str>, known: &[&str], other: &str) {
    if !known.contains(&&**text) {
        *text = other.into();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::action::ServerState;
    use crate::core::form::Form;
    use crate::core::limits::Limits;
    use crate::core::session::Kind;
    use crate::core::stated::{State, Wait};
    use crate::core::time::{Moment, Time};
    use crate::core::turn::{Call, OpenTool, Request, Turn};

    #[test]
    fn a_redacted_reason_contains_nothing_of_the_question() {
        let now = Moment::of(Time(1_000_000));
        let asked = serde_json::json!({"requestId": "r", "question": "Launch the rockets?", "choices": ["hunter2"]});
        let form = Form::read("user_input.requested", &asked).map_err(Into::into);
        let question = Question { id: None, text: "Launch the rockets?".into(), choices: vec!["hunter2".into()] };
        let mut session = Session { observed: Observed { has_log: true, ..Observed::default() }, ..Session::default() };
        session.observed.facts.progress = Some(now);
        session.control.server = ServerState::Hosted(1);
        session.vitals.has_active_work = Some(true);
        session.vitals.questions = vec![Asking { question, since: now.wall, form }];
        let reason = |session: &Session| session.row(now, &Limits::default()).0.because.to_string();
        assert_eq!(reason(&session), "asks: \"Launch the rockets?\" (hunter2)");
        assert_eq!(reason(&redacted(&session)), "asks: \"…\"");
        assert!(!format!("{:?}", redacted(&session)).contains("hunter2"));
    }

    /// A session with this text wherever a session, a model or a server chooses it.
    fn full_of(text: &str, now: Moment) -> Session {
        let text = || Box::from(text);
        let about = About {
            name: Some(text()),
            cwd: Some(text()),
            branch: Some(text()),
            kind: Kind::Sdk,
            created: Some(now.wall),
        };
        let mut session = Session {
            observed: Observed { about, has_log: true, touched: Time(0), ..Observed::default() },
            ..Session::default()
        };
        let mut turn = Turn::new(now, true, true);
        turn.tools.push(OpenTool {
            call: Call::of("t1"),
            name: text(),
            command: Some(text()),
            question: Some(Box::new(Question { id: None, text: text(), choices: vec![text()] })),
            detached: false,
            asks: false,
            unasked: false,
            asks_by: None,
            at: now,
        });
        session.observed.facts.turn = Some(turn);
        session.observed.facts.requests.push(Request {
            id: Call::of("r1"),
            request: "r1".into(),
            call: Some(Call::of("t1")),
            kind: text(),
            asks: Some(text()),
            paths: vec![text()],
            command: Some(text()),
            sub_agent: None,
            is_managed: false,
            is_probable: false,
            at: now,
        });
        session
    }

    /// Case 236: what Copilot's own dialog asks is said in words of ours, so it may stay.
    #[test]
    fn case_236_copilots_question_about_an_extension_keeps_its_words() {
        let now = Moment::of(Time(1_000_000));
        let mut session = full_of("hunter2", now);
        let because = |session: &Session| redacted(session).row(now, &Limits::default()).0.because.to_string();
        assert_eq!(because(&session), "asks for permission: of a kind unknown here");
        session.observed.facts.requests[0].kind = "extension-permission-access".into();
        assert_eq!(because(&session), "Copilot asks in its terminal whether an extension may do more");
        assert!(!format!("{:?}", redacted(&session)).contains("hunter2"));
        session.observed.facts.requests[0].asks = Some("plugin:pilotlight:pilotlight".into());
        assert_eq!(because(&session), "Copilot asks in its terminal whether Pilotlight may answer there");
    }

    fn failed(kind: &str, message: &str) -> Fault {
        Fault { kind: Some(kind.into()), message: Some(message.into()), status: Some(429) }
    }

    #[test]
    fn nothing_that_others_chose_survives_redaction() {
        let now = Moment::of(Time(1_000_000));
        let mut session = full_of("hunter2", now);
        let error = failed("hunter2", "hunter2");
        let unfinished = vec!["hunter2".into()];
        for ending in [Ending::Failed(error.clone()), Ending::Shutdown { unfinished, error: Some(error) }] {
            session.observed.facts.closed = Some(Closed { ending, at: now, asks: false });
            session.observed.problem = Some("hunter2".into());
            let redacted = redacted(&session);
            assert!(!format!("{redacted:?}").contains("hunter2"), "{redacted:#?}");
            assert!(redacted.observed.problem.is_some());
        }
    }

    #[test]
    fn of_what_a_process_waits_with_only_the_agents_own_tools_survive() {
        let now = Moment::of(Time(1_000_000));
        for (tool, shown) in [("hunter2", "a tool"), ("bash", "bash")] {
            let asks = Some(Asks { tool: tool.into(), text: Some("hunter2".into()) });
            let state = State::Waiting(Wait::Permission);
            let mut session = full_of("hunter2", now);
            session.observed.stated = Some(Stated { state, since: now, by: "its process", asks });
            let stated = redacted(&session).observed.stated.unwrap();
            assert_eq!((stated.state, stated.asks), (state, Some(Asks { tool: shown.into(), text: None })));
        }
    }

    #[test]
    fn redaction_changes_no_status() {
        let now = Moment::of(Time(1_000_000));
        let judged = |session: &Session| {
            let (row, _) = session.row(now, &Limits::default());
            (row.status, row.since, row.kind, row.actions)
        };
        let mut session = full_of("hunter2", now);
        assert_eq!(judged(&redacted(&session)), judged(&session));
        session.observed.facts.requests.clear();
        session.observed.facts.turn = None;
        session.observed.facts.closed =
            Some(Closed { ending: Ending::Failed(failed("quota", "hunter2")), at: now, asks: false });
        assert_eq!(judged(&redacted(&session)), judged(&session));
        let (row, _) = redacted(&session).row(now, &Limits::default());
        assert_eq!(row.because.to_string(), "quota, HTTP 429", "Copilot's own words stay");
        assert_eq!(judged(&session).1, now.wall, "since it was created");
    }
}
