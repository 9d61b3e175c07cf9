//! What the daemon asks: an approval, whole, as the terminal's dialog has it.

use crate::channel::request::Request;
use serde_json::{Map, Value, json};
use std::path::Path;

/// An open approval.
pub(super) struct Asked {
    /// The id to answer it by over this connection.
    pub(super) id: Value,
    /// The item that it is about: a tool call.
    pub(super) item: String,
    /// The request, with the item's id, which is the same over every connection and in the log.
    pub(super) request: Request,
}

/// The approvals that are answered from here. All others (an MCP server's questions, wider permissions for a session) are
/// answered in the terminal.
const COMMAND: &str = "item/commandExecution/requestApproval";
const FILES: &str = "item/fileChange/requestApproval";
/// Fields that do not affect the decision: references, and what else a client may offer.
const IRRELEVANT: [&str; 11] = [
    "kind",
    "threadId",
    "turnId",
    "itemId",
    "startedAtMs",
    "environmentId",
    "command",
    "reason",
    "commandActions",
    "proposedExecpolicyAmendment",
    "availableDecisions",
];

/// Whether a message is an approval of this thread.
pub(super) fn is_of(message: &Value, thread: &str) -> bool {
    let is_approval = matches!(message.get("method").and_then(Value::as_str), Some(COMMAND | FILES));
    is_approval && message.get("id").is_some() && message.pointer("/params/threadId").is_some_and(|of| of == thread)
}

/// Whether one of these messages says that the request with this id is closed.
pub(super) fn is_closed(heard: &[Value], id: &Value) -> bool {
    heard.iter().any(|message| {
        message.get("method").is_some_and(|method| method == "serverRequest/resolved")
            && message.pointer("/params/requestId") == Some(id)
    })
}

/// Whether the item was declined, if this message says what became of it.
pub(super) fn outcome(message: &Value, item: &str) -> Option<bool> {
    let is_it = message.get("method").is_some_and(|method| method == "item/completed")
        && message.pointer("/params/item/id").is_some_and(|id| id == item);
    is_it.then(|| message.pointer("/params/item/status").is_some_and(|status| status == "declined"))
}

impl Asked {
    /// Reads an approval of a session that works in this folder. `None` if it is malformed.
    pub(super) fn read(message: &Value, cwd: Option<&Path>) -> Option<Self> {
        let params = message.get("params")?.as_object()?;
        let item = params.get("itemId")?.as_str()?.to_owned();
        // Several approvals may belong to one item.
        let part = params.get("approvalId").and_then(Value::as_str);
        let request = part.map_or_else(|| item.clone(), |part| format!("{item}/{part}"));
        let rest = |also: &[&str]| {
            let is_rest =
                |(key, _): &(&String, &Value)| !IRRELEVANT.contains(&key.as_str()) && !also.contains(&key.as_str());
            params.iter().filter(is_rest).map(|(key, value)| (key.clone(), value.clone())).collect::<Map<_, _>>()
        };
        let reason = params.get("reason").cloned().unwrap_or_default();
        let is_here = params.get("cwd").and_then(Value::as_str).map(Path::new) == cwd;
        let command = params.get("command").and_then(Value::as_str).filter(|_| message["method"] == COMMAND);
        let mut shown = rest(if is_here { &["cwd", "approvalId"] } else { &["approvalId"] });
        match command {
            Some(command) => {
                shown.insert("kind".to_owned(), json!("commands"));
                shown.insert("fullCommandText".to_owned(), json!(command));
            }
            // What would be changed is only in the terminal: it cannot be approved unread.
            None => {
                let kind = if message["method"] == FILES { "changes to files" } else { "access to the network" };
                shown.insert("kind".to_owned(), json!(kind));
            }
        }
        shown.insert("intention".to_owned(), reason);
        let whole = json!({"requestId": request, "request": shown});
        let request = Request::read(&whole)?.unread(command.is_none() && message["method"] == FILES);
        Some(Self { id: message.get("id")?.clone(), item, request })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn approval(more: &Value) -> Value {
        let mut params = json!({
            "kind": "command", "threadId": "t", "turnId": "u", "itemId": "call_1", "startedAtMs": 1, "environmentId": "local",
            "reason": "Need to write here. OK?", "command": "/bin/bash -lc 'touch x'", "cwd": "/p",
            "commandActions": [{"type": "unknown", "command": "touch x"}], "proposedExecpolicyAmendment": ["touch", "x"],
            "availableDecisions": ["accept", "cancel"]
        });
        for (key, value) in more.as_object().unwrap() {
            params[key] = value.clone();
        }
        json!({"method": COMMAND, "id": 0, "params": params})
    }

    #[test]
    fn case_263_a_command_is_shown_whole_and_alone_only_if_nothing_else_matters() {
        let of = |more: &Value| Asked::read(&approval(more), Some(Path::new("/p"))).unwrap().request;
        let plain = of(&json!({}));
        assert_eq!((&*plain.id, plain.decisive().as_deref()), ("call_1", Some("/bin/bash -lc 'touch x'")));
        let shown = "Run this command:\n\n/bin/bash -lc 'touch x'\n\nThe agent says: \"Need to write here. OK?\"";
        assert_eq!(plain.shown().text, shown);
        for more in [json!({"cwd": "/elsewhere"}), json!({"networkApprovalContext": {"host": "h"}}), json!({"new": 1})]
        {
            let request = of(&more);
            assert_eq!(request.decisive(), None, "{more}");
            let value = more.as_object().unwrap().keys().next().unwrap();
            assert!(request.shown().text.contains(value.as_str()), "{}", request.shown().text);
        }
        assert_eq!(&*of(&json!({"approvalId": "a7"})).id, "call_1/a7");
    }

    #[test]
    fn case_263_changes_to_files_that_are_not_shown_cannot_be_approved() {
        let mut message = approval(&json!({"grantRoot": "/p/out"}));
        message["method"] = json!(FILES);
        let request = Asked::read(&message, Some(Path::new("/p"))).unwrap().request;
        assert!(request.too_large && request.decisive().is_none());
        assert!(
            request.shown().text.contains("/p/out") && request.shown().text.contains("changes to files"),
            "{}",
            request.shown().text
        );
    }

    #[test]
    fn what_is_no_approval_is_left_alone() {
        assert!(is_of(&approval(&json!({})), "t") && !is_of(&approval(&json!({})), "other"));
        for other in [
            json!(null),
            json!({"method": COMMAND}),
            json!({"method": "item/tool/requestUserInput", "id": 1, "params": {"threadId": "t"}}),
        ] {
            assert!(!is_of(&other, "t"), "{other}");
        }
        for broken in [
            json!({"id": 1, "params": 7}),
            json!({"id": 1, "params": {"itemId": 7}}),
            json!({"params": {"itemId": "i"}}),
        ] {
            assert!(Asked::read(&broken, None).is_none(), "{broken}");
        }
        let resolved = json!({"method": "serverRequest/resolved", "params": {"threadId": "t", "requestId": 0}});
        assert!(is_closed(std::slice::from_ref(&resolved), &json!(0)) && !is_closed(&[resolved], &json!(1)));
        let completed = |status| json!({"method": "item/completed", "params": {"item": {"id": "i", "status": status}}});
        assert_eq!(
            (outcome(&completed("declined"), "i"), outcome(&completed("completed"), "i")),
            (Some(true), Some(false))
        );
        assert_eq!(outcome(&completed("declined"), "other"), None);
    }
}
