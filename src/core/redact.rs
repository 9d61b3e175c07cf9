//! A session without what it wrote: for a log that anybody may be shown, and that must still say why.
//!
//! A reason is worded by the same judgement as ever, but from facts in which every text that a session, a model or a server
//! chose is replaced: the name of a tool that is not Copilot's own, the message of an error, the kind of a request that is not
//! known. So a reason cannot hold a prompt, a command, a question or a title, whatever rule words it.

use super::asked::Question;
use super::fleet::{About, Session};
use super::session::Facts;
use super::turn::{Closed, Ending};
use super::verdict::{Asking, Live};

/// Copilot's own tools; another one's name is its maker's, or the user's.
const TOOLS: [&str; 24] = [
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
];
/// What a permission may be asked for, by the CLI's schema.
const ASKED_FOR: [&str; 10] =
    ["shell", "commands", "write", "read", "mcp", "url", "memory", "custom-tool", "hook", "path"];
/// Kinds of errors, by the CLI's schema.
const ERRORS: [&str; 7] =
    ["authentication", "authorization", "policy", "quota", "rate_limit", "context_limit", "query"];

/// The session, as far as its judgement needs it, with every text of its own replaced.
pub(crate) fn redacted(session: &Session) -> Session {
    Session {
        about: About { kind: session.about.kind, created: session.about.created, ..About::default() },
        facts: facts(&session.facts),
        live: live(&session.live),
        problem: session.problem.as_ref().map(|_| "its log cannot be read".into()),
        ..session.clone()
    }
}

fn live(live: &Live) -> Live {
    let question = |asking: &Asking| Asking {
        question: Question { text: "…".into(), choices: Vec::new() },
        since: asking.since,
        form: Err("".into()),
    };
    Live { questions: live.questions.iter().map(question).collect(), ..live.clone() }
}

fn facts(facts: &Facts) -> Facts {
    let mut facts = facts.clone();
    if let Some(turn) = &mut facts.turn {
        for tool in &mut turn.tools {
            replace(&mut tool.name, &TOOLS, "a tool");
            tool.command = None;
            tool.question = None;
        }
    }
    for request in &mut facts.requests {
        replace(&mut request.kind, &ASKED_FOR, "something");
        request.asks = None;
    }
    if let Some(Closed { ending, .. }) = &mut facts.closed {
        plain_ending(ending);
    }
    facts
}

fn plain_ending(ending: &mut Ending) {
    match ending {
        Ending::Failed { kind, message, .. } => {
            *message = None;
            if let Some(kind) = kind {
                replace(kind, &ERRORS, "error");
            }
        }
        Ending::Shutdown { unfinished, error } => {
            unfinished.iter_mut().for_each(|name| replace(name, &TOOLS, "a tool"));
            if let Some(error) = error {
                plain_ending(error);
            }
        }
        _ => {}
    }
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
    use crate::core::time::{Moment, Time};

    #[test]
    fn a_reason_for_the_log_holds_no_word_of_a_question() {
        let now = Moment::of(Time(1_000_000));
        let asked = serde_json::json!({"requestId": "r", "question": "Launch the rockets?", "choices": ["hunter2"]});
        let form = Form::read("user_input.requested", &asked).map_err(Into::into);
        let question = Question { text: "Launch the rockets?".into(), choices: vec!["hunter2".into()] };
        let mut session = Session { has_log: true, ..Session::default() };
        session.facts.progress = Some(now);
        session.control.server = ServerState::Hosted(1);
        session.live.has_active_work = Some(true);
        session.live.questions = vec![Asking { question, since: now.wall, form }];
        let reason = |session: &Session| session.row(now, &Limits::default()).0.because;
        assert_eq!(reason(&session), "asks: \"Launch the rockets?\" (hunter2)");
        assert_eq!(reason(&redacted(&session)), "asks: \"…\"");
        assert!(!format!("{:?}", redacted(&session)).contains("hunter2"));
    }
}
