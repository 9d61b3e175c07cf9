//! A permission request, whole, as its server reports it: what the user decides on must be what will be done.
//!
//! Any release may add kinds of requests, and details to existing kinds. So unknown fields are shown as they are. One
//! text alone represents a request only if no such field is left ([`Request::decisive`]).

use super::action_context::LoggedRequest;
use pilotlight_core::confusable::{find_confusable, is_seen};
use pilotlight_core::order::ShownRequest;
use pilotlight_core::text::plain;
use pilotlight_core::time::Moment;
use pilotlight_core::turn::{
    self, ASKS_MAX, AnswerOptions, COMMAND_TOO_LONG, Call, access_words, path_words, request_verb,
};
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::fmt::Write;

/// Stands in place of a text that is too large to be received, or to be sent by a bridge (`crates/agents/src/copilot/bridge/extension.mjs`).
pub(crate) const CUT: &str = "(too large for Pilotlight)";

/// An open permission request.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// The id to answer it by.
    pub id: Box<str>,
    /// The kind of permission, in Copilot's terms: `commands`, `write`, `read`, `path`, `url`, `mcp`, ...
    pub kind: Box<str>,
    /// The subject, whole and unaltered: the command, the path, the URL, the file's name and its changes, or a tool
    /// with its arguments. For unknown kinds, the request's JSON.
    pub text: String,
    /// The purpose that the agent states.
    pub intention: Option<Box<str>>,
    /// What is to be done with the paths of a `path` request: `read`, `write`, ...
    pub access: Option<Box<str>>,
    /// The command that needs this access. Its server does not report it, but the log does.
    pub command: Option<Box<str>>,
    /// Other fields that may matter, as JSON: a warning, a sandbox bypass, anything unknown.
    pub more: Option<String>,
    /// Whether the organisation's policy requires a person to answer.
    pub managed: bool,
    /// Whether a part of it is missing because it is too large.
    pub too_large: bool,
    /// Whether the text is from the usual field of its kind.
    known: bool,
}

/// Fields that do not affect the decision: references to the request, and what else a client may offer.
const IRRELEVANT: [&str; 10] = [
    "kind",
    "toolCallId",
    "intention",
    "commandIdentifiers",
    "canOfferSessionApproval",
    "canOfferServerWideApproval",
    "managedApprovalRequired",
    "assistedApproval",
    "readOnlyDirectories",
    "_permissionRequestSessionId",
];

impl Request {
    /// Reads an item of `session.permissions.pendingRequests`. Returns `None` if it is malformed.
    pub fn read(item: &Value) -> Option<Self> {
        Self::from_parts(item.get("requestId")?.as_str()?, item.get("request")?)
    }

    /// Reads a request that has this id. `None` if it is malformed.
    pub(crate) fn from_parts(id: &str, request: &Value) -> Option<Self> {
        let id = id.into();
        let mut rest = request.as_object()?.clone();
        let kind: Box<str> = rest.get("kind").and_then(Value::as_str).unwrap_or("unknown").into();
        let intention = rest.get("intention").and_then(Value::as_str).filter(|text| !text.is_empty()).map(Box::from);
        let access = rest.get("accessKind").and_then(Value::as_str).map(Box::from);
        let too_large = is_cut(request);
        let managed = rest.get("managedApprovalRequired").is_some_and(|required| *required != Value::Bool(false));
        let Some((text, used)) = subject(&kind, &rest) else {
            let text = pretty(&Value::Object(rest));
            return Some(Self {
                id,
                kind,
                text,
                intention,
                access,
                command: None,
                more: None,
                managed,
                too_large,
                known: false,
            });
        };
        // A resolved path that repeats the path adds nothing.
        let same = |key| rest.get("resolvedPath").is_some_and(|path| Some(path) == rest.get(key));
        if same("path") || same("fileName") {
            rest.remove("resolvedPath");
        }
        rest.retain(|key, value| {
            let is_unset = value.is_null() || *value == Value::Bool(false);
            !is_unset && !IRRELEVANT.contains(&key.as_str()) && !used.contains(&key.as_str())
        });
        let more = (!rest.is_empty()).then(|| pretty(&Value::Object(rest)));
        Some(Self { id, kind, text, intention, access, command: None, more, managed, too_large, known: true })
    }

    /// Adds the command that a `path` request is for, from the log.
    #[must_use]
    pub(crate) fn with_command(self, commands: &[(Call, Box<str>)]) -> Self {
        let call = Call::of(&self.id);
        let command = commands.iter().find(|(open, _)| *open == call && *self.kind == *"path");
        let command = command.map(|(_, command)| command.clone());
        let too_large = self.too_large || command.as_deref() == Some(COMMAND_TOO_LONG);
        Self { command, too_large, ..self }
    }

    /// About how much memory it takes, in bytes.
    pub(crate) fn size(&self) -> usize {
        let optional = [&self.intention, &self.access, &self.command].into_iter().flatten().map(|text| text.len());
        self.text.len() + self.kind.len() + self.more.as_ref().map_or(0, String::len) + optional.sum::<usize>()
    }

    /// Marks a request of which a part is missing.
    #[must_use]
    pub(crate) fn unread(self, is_unread: bool) -> Self {
        Self { too_large: self.too_large || is_unread, ..self }
    }

    /// The whole request, for a terminal. Control characters, and invisible ones that change what is shown, are escaped
    /// as `\u{202e}`.
    pub fn shown(&self) -> ShownRequest {
        let mut text = match &*self.kind {
            "commands" => "Run this command".to_owned(),
            "write" => "Write this file".to_owned(),
            "read" => "Read this".to_owned(),
            "path" => match &self.access {
                Some(access) => {
                    format!("Reach this outside of the allowed folders, to {}", visible(access_words(access)))
                }
                None => "Reach this outside of the allowed folders".to_owned(),
            },
            "url" => "Fetch this URL".to_owned(),
            "mcp" => "Call this tool of an MCP server".to_owned(),
            kind => format!("A request of the kind {:?}", visible(kind)),
        };
        let _ = write!(text, ":\n\n{}", visible(&self.text));
        if let Some(command) = &self.command {
            let _ = write!(text, "\n\nBy the session's log, for this command:\n\n{}", visible(command));
        }
        // The agent's own words come after it, quoted and on one line: they must not look like a part of the request.
        if let Some(intention) = &self.intention {
            let _ = write!(text, "\n\nThe agent says: {:?}", &**intention);
        }
        if let Some(more) = &self.more {
            let _ = write!(text, "\n\nIt also says:\n{}", visible(more));
        }
        let optional = [&self.access, &self.command, &self.intention].map(Option::as_deref);
        let parts = [Some(&*self.kind), Some(&*self.text), self.more.as_deref()].into_iter().chain(optional);
        ShownRequest { text, verbatim: parts.flatten().all(|part| find_confusable(part).is_none()), in_log: None }
    }

    /// Whether the log says something else of this request. Of a text that is too long for it, or of details that it has
    /// no words for, the log says nothing.
    pub(crate) fn differs_from(&self, logged: &LoggedRequest) -> bool {
        let is_other_kind = logged.kind.as_deref().is_some_and(|kind| request_verb(&self.kind) != request_verb(kind));
        let is_other_command = logged.command.as_deref().is_some_and(|command| !self.may_run(command));
        let is_other_text = logged.asks.as_deref().is_some_and(|asks| self.single().as_deref() != Some(asks));
        let paths = || logged.paths.iter().map(|path| &**path);
        let are_other_paths = !logged.paths.is_empty() && !self.too_large && !self.paths().eq(paths());
        is_other_kind || is_other_command || is_other_text || are_other_paths
    }

    /// Whether it may be for the command that begins so, as one line: by itself, or as what a shell is told to run. Of other
    /// kinds of request that is not known.
    fn may_run(&self, command: &str) -> bool {
        let begins = |text: &str| plain(text, text.len()).starts_with(command);
        let script = || shlex::split(&self.text).and_then(|words| words.into_iter().next_back());
        &*self.kind != "commands" || begins(&self.text) || script().is_some_and(|script| begins(&script))
    }

    /// The paths that it asks for.
    fn paths(&self) -> impl Iterator<Item = &str> {
        let (paths, most) = match &*self.kind {
            "path" => (&*self.text, usize::MAX),
            "read" | "write" => (&*self.text, 1),
            _ => ("", 0),
        };
        paths.split('\n').take(most)
    }

    /// The same as it is kept in the facts of its session, if a bridge reports it. `path`: the one that it asks for.
    pub(crate) fn open_over_bridge(
        &self,
        path: Option<&str>,
        sub_agent: Option<Box<str>>,
        options: AnswerOptions,
        at: Moment,
    ) -> turn::Request {
        let asks = self.decisive().filter(|text| text.chars().count() <= ASKS_MAX).map(|text| (*text).into());
        let path = path.filter(|path| self.known && path.len() <= ASKS_MAX && !path.contains('\n'));
        turn::Request {
            id: Call::of(&self.id),
            request: self.id.clone(),
            call: None,
            kind: if &*self.kind == "commands" { "shell".into() } else { self.kind.clone() },
            asks,
            paths: path.map(Into::into).into_iter().collect(),
            command: None,
            sub_agent,
            is_managed: false,
            is_probable: false,
            over_bridge: Some(options),
            at,
        }
    }

    /// The text that represents it, if there is one, whatever else it says.
    fn single(&self) -> Option<Cow<'_, str>> {
        let is_single = match &*self.kind {
            "commands" | "read" | "url" => true,
            "path" => !self.text.contains('\n'),
            _ => false,
        };
        let text = || match &*self.kind {
            "path" => path_words(&self.text, self.access.as_deref(), self.command.as_deref()).into(),
            _ => self.text.as_str().into(),
        };
        (is_single && self.known).then(text)
    }

    /// The text that represents the whole request, if there is one: the command, the only path with what needs it, or the
    /// URL. A user who has seen it has seen the request.
    pub fn decisive(&self) -> Option<Cow<'_, str>> {
        self.single().filter(|_| self.more.is_none() && !self.too_large)
    }
}

/// The subject of a request of a known kind, and the fields that it covers. `None` if the kind is unknown or its fields
/// have changed.
fn subject(kind: &str, request: &Map<String, Value>) -> Option<(String, Vec<&'static str>)> {
    let text = |key: &str| Some(request.get(key)?.as_str()?.to_owned());
    Some(match kind {
        "commands" => (text("fullCommandText")?, vec!["fullCommandText"]),
        "read" => (text("path")?, vec!["path"]),
        "url" => (text("url")?, vec!["url"]),
        "path" => {
            let paths: Option<Vec<&str>> = request.get("paths")?.as_array()?.iter().map(Value::as_str).collect();
            (paths?.join("\n"), vec!["paths", "accessKind"])
        }
        "write" => {
            // The edits repeat the diff. A new file has contents in place of a diff.
            let change = text("diff").filter(|diff| !diff.is_empty()).or_else(|| text("newFileContents"))?;
            (format!("{}\n\n{change}", text("fileName")?), vec!["fileName", "diff", "newFileContents", "fileEdits"])
        }
        "mcp" => {
            let arguments = request.get("args").map(pretty).unwrap_or_default();
            let words = format!("server: {}\ntool: {}\n{arguments}", text("serverName")?, text("toolName")?);
            (words, vec!["serverName", "toolName", "toolTitle", "args"])
        }
        _ => return None,
    })
}

/// Whether a text of this message was left out.
pub(crate) fn is_cut(message: &Value) -> bool {
    match message {
        Value::String(text) => text == CUT,
        Value::Array(items) => items.iter().any(is_cut),
        Value::Object(fields) => fields.values().any(is_cut),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

fn pretty(value: &Value) -> String {
    // Fails only for map keys that are not strings, which a `Value` cannot have.
    serde_json::to_string_pretty(value).unwrap_or_default()
}

/// Escapes characters that are [not seen as what they are](is_seen). The result is unambiguous: in text that looks like
/// an escape, the backslash is escaped as well.
fn visible(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut before = None;
    for (at, c) in text.char_indices() {
        let after = text[at + c.len_utf8()..].chars().next();
        if text[at..].starts_with("\\u{") || !is_seen(c, before, after) {
            out.extend(c.escape_unicode());
        } else {
            out.push(c);
        }
        before = Some(c);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(request: &Value) -> Request {
        Request::read(&json!({"requestId": "r", "request": request})).unwrap()
    }

    #[test]
    fn case_198_what_the_agent_says_is_one_quoted_line_after_the_request() {
        let says = "list the files):\n\n    ls -la\n\n\u{202e}\"";
        let request = read(&json!({"kind": "commands", "fullCommandText": "rm -r x", "intention": says}));
        let shown = request.shown().text;
        let words = r#"The agent says: "list the files):\n\n    ls -la\n\n\u{202e}\"""#;
        assert_eq!(shown, format!("Run this command:\n\nrm -r x\n\n{words}"));
    }

    #[test]
    fn a_command_is_shown_whole() {
        let command = format!("echo {}\n\trm -rf 'x  y'", "long ".repeat(1000));
        let request = read(&json!({"kind": "commands", "fullCommandText": command, "intention": "tidy up",
            "commandIdentifiers": ["echo"], "canOfferSessionApproval": false, "toolCallId": "c"}));
        assert_eq!((request.text.as_str(), request.decisive()), (command.as_str(), Some(command.as_str().into())));
        let shown = format!("Run this command:\n\n{command}\n\nThe agent says: \"tidy up\"");
        assert_eq!(request.shown(), ShownRequest::verbatim(shown));
    }

    #[test]
    fn invisible_characters_are_escaped() {
        let request = read(
            &json!({"kind": "commands", "fullCommandText": "a\u{202e}b\u{1b}[2Jc\r\u{a0}d\u{200b}\u{2028}e\u{200d}f"}),
        );
        let shown = r"a\u{202e}b\u{1b}[2Jc\u{d}\u{a0}d\u{200b}\u{2028}e\u{200d}f";
        assert_eq!(request.shown().text, format!("Run this command:\n\n{shown}"));
        for (field, text) in [("warning", "a\u{202e}"), ("intention", "a\u{202e}"), ("warning", "\u{a0}")] {
            let request = read(&json!({"kind": "commands", "fullCommandText": "ls", field: text}));
            assert!(!request.shown().verbatim, "{field}: {text:?}");
        }
        assert!(!request.shown().verbatim);
        let looks_alike = read(&json!({"kind": "commands", "fullCommandText": shown}));
        assert_ne!(looks_alike.shown().text, request.shown().text);
        assert_eq!(
            request.decisive().as_deref(),
            Some("a\u{202e}b\u{1b}[2Jc\r\u{a0}d\u{200b}\u{2028}e\u{200d}f"),
            "unaltered"
        );
    }

    #[test]
    fn a_relevant_detail_leaves_no_decisive_text() {
        for detail in [("requestSandboxBypass", json!(true)), ("warning", json!("dangerous")), ("new", json!({"a": 1}))]
        {
            let mut plain = json!({"kind": "commands", "fullCommandText": "ls", "intention": ""});
            assert_eq!(read(&plain).decisive().as_deref(), Some("ls"));
            plain[detail.0] = detail.1;
            let request = read(&plain);
            assert_eq!(request.decisive(), None, "{request:?}");
            assert!(request.shown().text.contains(detail.0), "{}", request.shown().text);
        }
        let elsewhere =
            read(&json!({"kind": "read", "path": "/a/link", "resolvedPath": "/etc/shadow", "intention": ""}));
        assert_eq!(elsewhere.decisive(), None);
        let same = read(&json!({"kind": "read", "path": "/a/b", "resolvedPath": "/a/b", "intention": ""}));
        assert_eq!(same.decisive().as_deref(), Some("/a/b"));
    }

    #[test]
    fn every_kind_shows_its_subject() {
        let paths = read(&json!({"kind": "path", "accessKind": "read", "paths": ["/etc/hosts", "/etc/passwd"]}));
        assert_eq!((paths.text.as_str(), paths.decisive()), ("/etc/hosts\n/etc/passwd", None));
        let path = read(&json!({"kind": "path", "accessKind": "read", "paths": ["/etc/hosts"]}));
        assert_eq!(path.decisive().as_deref(), Some("/etc/hosts, to read"));
        assert_eq!(path.shown().text, "Reach this outside of the allowed folders, to read:\n\n/etc/hosts");
        let url = read(&json!({"kind": "url", "url": "https://example.com/", "intention": "look"}));
        assert_eq!(url.decisive().as_deref(), Some("https://example.com/"));
        let write = read(&json!({"kind": "write", "fileName": "/p/a", "diff": "-a\n+b", "intention": "edit",
            "canOfferSessionApproval": true}));
        assert_eq!((write.text.as_str(), write.decisive()), ("/p/a\n\n-a\n+b", None));
        let new = read(&json!({"kind": "write", "fileName": "/p/a", "diff": "", "newFileContents": "hello"}));
        assert_eq!(new.text, "/p/a\n\nhello");
        let tool =
            read(&json!({"kind": "mcp", "serverName": "s", "toolName": "t", "toolTitle": "T", "args": {"x": 1}}));
        assert_eq!(tool.text, "server: s\ntool: t\n{\n  \"x\": 1\n}");
        let unknown = json!({"kind": "teleport", "to": "moon", "toolCallId": "c"});
        assert_eq!(serde_json::from_str::<Value>(&read(&unknown).text).unwrap(), unknown);
        let broken = json!({"kind": "commands", "fullCommandText": 7});
        assert_eq!((read(&broken).text.contains('7'), read(&broken).decisive()), (true, None));
    }

    #[test]
    fn case_192_a_request_that_is_too_large_says_so_and_is_represented_by_no_text() {
        let write = read(&json!({"kind": "write", "fileName": "/p/a", "diff": CUT, "newFileContents": CUT}));
        assert!(
            write.too_large && write.shown().text.contains("/p/a\n\n(too large for Pilotlight)"),
            "{}",
            write.shown().text
        );
        let command = read(&json!({"kind": "commands", "fullCommandText": CUT}));
        assert_eq!((command.too_large, command.decisive()), (true, None));
        let edits = read(&json!({"kind": "write", "fileName": "/p/a", "diff": "-a", "fileEdits": [{"text": CUT}]}));
        assert!(edits.too_large);
    }

    #[test]
    fn malformed_requests_are_rejected() {
        for item in [json!(null), json!({}), json!({"requestId": 1, "request": {}}), json!({"requestId": "r"})] {
            assert_eq!(Request::read(&item), None);
        }
    }
}
