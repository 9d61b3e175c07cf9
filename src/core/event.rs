//! One line of `events.jsonl` -> one [`Event`].
//!
//! A line is `{type, data, id, timestamp, parentId, agentId?}`, in this order. What Copilot's logs are made of decides how it
//! is read: most lines, and most of their bytes, say nothing but "something happened". Those are told by their type alone,
//! and their envelope is read from the line's end, so that `data` is not even looked at. Of the others only the fields that
//! a rule needs are taken, borrowed from the line.
//!
//! Anything else (another order of fields, further fields, white space) is read too, only slower. What cannot be read is
//! [`Malformed`], never a panic.

use super::question;
use super::scan::{Malformed, Scan, Text};
use super::time::Time;

/// One event of a session's log.
#[derive(Clone, Debug, PartialEq)]
pub struct Event<'a> {
    /// When it was written, by the writer's wall clock.
    pub at: Time,
    /// The event's own id, to tell a line that was written twice. Empty where there is none.
    pub id: &'a [u8],
    /// The id of the event that it follows. Empty for the first.
    pub parent: &'a [u8],
    /// The sub-agent that wrote it; `None` for the root.
    pub agent: Option<Text<'a>>,
    /// What happened.
    pub body: Body<'a>,
}

/// What happened, as far as a rule depends on it.
#[derive(Clone, Debug, PartialEq)]
pub enum Body<'a> {
    /// `session.start`.
    Start(Begun<'a>),
    /// `session.resume`.
    Resume {
        /// What it says of the session.
        begun: Begun<'a>,
        /// What was open stays open (`continuePendingWork`).
        continues: bool,
    },
    /// `user.message`.
    Prompt {
        /// It joins the turn that runs (`delivery: "steering"`, or injected by a skill).
        joins: bool,
        /// Copilot prompted itself (`isAutopilotContinuation`).
        continuation: bool,
        /// The agent's mode, where the prompt names one (`agentMode`): whether it is autopilot.
        autopilot: Option<bool>,
    },
    /// `assistant.turn_start`: a round begins.
    RoundStart,
    /// `assistant.message`.
    Message {
        /// It asks for tools.
        requests_tools: bool,
        /// Its text ends in a question.
        asks: bool,
        /// The model that wrote it.
        model: Option<Text<'a>>,
    },
    /// `assistant.turn_end`: a round is over.
    RoundEnd,
    /// `tool.execution_start`.
    ToolStart {
        /// Pairs it with its completion.
        call: Text<'a>,
        /// The tool's name.
        name: Option<Text<'a>>,
        /// What it works on: a command, a path.
        command: Option<Text<'a>>,
        /// A shell that runs on in the background.
        detached: bool,
    },
    /// `tool.execution_complete`.
    ToolDone {
        /// Pairs it with its start.
        call: Text<'a>,
        /// The tool did what it was asked.
        success: bool,
        /// Refused because nobody could be asked.
        unasked: bool,
        /// The user's own `!command`.
        of_user: bool,
        /// The background shell that it started.
        shell: Option<Text<'a>>,
    },
    /// `tool.user_requested`: the user's own `!command`.
    UserTool,
    /// `permission.requested`.
    PermissionAsked {
        /// Pairs it with its answer.
        request: Text<'a>,
        /// The tool call that asks.
        call: Option<Text<'a>>,
        /// What kind of thing: `shell`, `read`, `write`, `mcp`, `url`...
        kind: Option<Text<'a>>,
        /// A hook has answered already: nobody waits.
        by_hook: bool,
    },
    /// `permission.completed`.
    PermissionDone {
        /// Pairs it with its request.
        request: Text<'a>,
        /// The tool call that asked.
        call: Option<Text<'a>>,
        /// Refused because nobody could be asked.
        unasked: bool,
    },
    /// `session.error`.
    Error {
        /// Copilot's category: `query`, `rate_limit`, `authentication`...
        kind: Option<Text<'a>>,
        /// Copilot's own words.
        message: Option<Text<'a>>,
        /// The HTTP status of the model's answer.
        status: Option<i64>,
    },
    /// `abort`: the user stopped the turn.
    Abort,
    /// `session.shutdown`.
    Shutdown,
    /// `session.compaction_start`.
    CompactionStart,
    /// `session.compaction_complete`.
    CompactionDone,
    /// `session.task_complete`; `accepted` is false where it was rejected.
    TaskComplete {
        /// The task counts as done.
        accepted: bool,
    },
    /// `session.mode_changed`.
    Mode {
        /// The new mode is autopilot.
        autopilot: bool,
    },
    /// `session.model_change`.
    Model(Option<Text<'a>>),
    /// `session.usage_record`: a metric; `context` is the size of the last request to the model, in tokens.
    Usage {
        /// Tokens sent with the request.
        context: Option<i64>,
    },
    /// `subagent.started`.
    AgentStart {
        /// The tool call that started it.
        call: Option<Text<'a>>,
    },
    /// `subagent.completed` and `subagent.failed`.
    AgentDone,
    /// `system.notification` of a background shell's end.
    ShellDone {
        /// Its id, as the tool that started it reported it.
        shell: Option<Text<'a>>,
    },
    /// Anything else that is a sign of life.
    Progress,
    /// A mere metric: no sign of life.
    Metric,
}

/// What `session.start` and `session.resume` say of a session.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Begun<'a> {
    /// The model selected.
    pub model: Option<Text<'a>>,
    /// The folder it works in.
    pub cwd: Option<Text<'a>>,
    /// The git branch there.
    pub branch: Option<Text<'a>>,
}

/// Reads one line, without its line end.
///
/// # Errors
/// [`Malformed`] where the line is no event: broken JSON, no `type`, no readable `timestamp`, or one of the fields missing
/// without which its type means nothing (an id that pairs it with another event).
pub fn parse(line: &[u8]) -> Result<Event<'_>, Malformed> {
    let line = line.trim_ascii();
    if let Some(kind) = kind_by_prefix(line)
        && let Some(body @ (Body::Progress | Body::Metric)) = without_data(kind)
        && let Some(envelope) = Envelope::from_end(line)
    {
        return envelope.event(body);
    }
    parse_whole(line).or_else(|malformed| after_torn_line(line).ok_or(malformed))
}

/// A writer that died in the middle of a line leaves a piece of it, or a run of NULs, in front of the next one.
///
/// Inside a string the mark would be escaped, and no nested object reads as an event, so what is found is a whole line.
fn after_torn_line(line: &[u8]) -> Option<Event<'_>> {
    memchr::memmem::rfind_iter(line, TYPE_PREFIX)
        .filter(|&at| at > 0)
        .take(4)
        .find_map(|at| parse_whole(&line[at..]).ok())
}

/// Reads the first and the last bytes of a line too long to be held in memory. What stands in between is unknown, so that
/// only types told without their data, and fields that stand at the front of `data`, are found.
///
/// # Errors
/// As [`parse`].
pub fn parse_ends<'a>(head: &'a [u8], tail: &'a [u8]) -> Result<Event<'a>, Malformed> {
    let kind = kind_by_prefix(head).ok_or(Malformed)?;
    let envelope = Envelope::from_end(tail.trim_ascii_end()).ok_or(Malformed)?;
    if let Some(body) = without_data(kind) {
        return envelope.event(body);
    }
    let mut data = Data::default();
    let mut scan = Scan::new(head);
    // The head ends in the middle of a value: what was read before that is kept.
    let _ = scan.object(|key, scan| if key == b"data" { data.read(kind, scan) } else { scan.skip() });
    envelope.event(data.body(kind).unwrap_or(Body::Progress))
}

/// Whether a line can be a prompt that closes whatever was open: what a log read backwards looks for.
pub fn is_fresh_prompt(line: &[u8]) -> bool {
    kind_by_prefix(line).is_none_or(|kind| kind == b"user.message")
        && matches!(
            parse(line),
            Ok(Event { agent: None, body: Body::Prompt { joins: false, continuation: false, .. }, .. })
        )
}

/// When a line was written, read from its end alone.
pub fn time_of(line: &[u8]) -> Option<Time> {
    Time::parse(Envelope::from_end(line.trim_ascii_end())?.timestamp)
}

const TYPE_PREFIX: &[u8] = b"{\"type\":\"";

fn kind_by_prefix(line: &[u8]) -> Option<&[u8]> {
    let rest = line.strip_prefix(TYPE_PREFIX)?;
    rest.get(..rest.iter().take(64).position(|&byte| byte == b'"')?)
}

/// The types whose data no rule looks at. `None`: the data must be read.
fn without_data(kind: &[u8]) -> Option<Body<'static>> {
    Some(match kind {
        b"assistant.turn_start" => Body::RoundStart,
        b"assistant.turn_end" => Body::RoundEnd,
        b"tool.user_requested" => Body::UserTool,
        b"abort" => Body::Abort,
        b"session.shutdown" => Body::Shutdown,
        b"session.compaction_start" => Body::CompactionStart,
        b"session.compaction_complete" => Body::CompactionDone,
        b"subagent.completed" | b"subagent.failed" => Body::AgentDone,
        b"user.message"
        | b"assistant.message"
        | b"tool.execution_start"
        | b"tool.execution_complete"
        | b"permission.requested"
        | b"permission.completed"
        | b"session.start"
        | b"session.resume"
        | b"session.error"
        | b"session.task_complete"
        | b"session.mode_changed"
        | b"session.model_change"
        | b"session.usage_record"
        | b"subagent.started"
        | b"system.notification" => return None,
        _ if is_metric(kind) => Body::Metric,
        _ => Body::Progress,
    })
}

/// Events that are written without anything having happened (DESIGN.md, "progress").
fn is_metric(kind: &[u8]) -> bool {
    kind.starts_with(b"session.usage_") || kind == b"assistant.usage" || kind.starts_with(b"model.")
}

/// The fields around `data`.
#[derive(Default)]
struct Envelope<'a> {
    id: &'a [u8],
    parent: &'a [u8],
    timestamp: &'a [u8],
    agent: Option<Text<'a>>,
}

impl<'a> Envelope<'a> {
    /// Reads `...},"id":"..","timestamp":"..","parentId":..[,"agentId":".."]}` from the line's end.
    ///
    /// Sound without looking at what stands before: inside a JSON string no quote stands unescaped, and what the last brace
    /// of a line closes is the event itself.
    fn from_end(line: &'a [u8]) -> Option<Self> {
        let (rest, mut name, mut value) = last_field(line.strip_suffix(b"}")?)?;
        let mut rest = rest;
        let mut agent = None;
        if name == b"agentId" {
            agent = Some(Text(value?));
            (rest, name, value) = last_field(rest)?;
        }
        if name != b"parentId" {
            return None;
        }
        let (rest, name, timestamp) = last_field(rest)?;
        if name != b"timestamp" {
            return None;
        }
        let (rest, name, id) = last_field(rest)?;
        (name == b"id" && rest.ends_with(b"}")).then_some(Self {
            id: id?,
            parent: value.unwrap_or_default(),
            timestamp: timestamp?,
            agent,
        })
    }

    fn event(self, body: Body<'a>) -> Result<Event<'a>, Malformed> {
        Ok(Event {
            at: Time::parse(self.timestamp).ok_or(Malformed)?,
            id: self.id,
            parent: self.parent,
            agent: self.agent,
            body,
        })
    }
}

/// Splits `rest,"name":"value"` or `rest,"name":null`, where neither holds a quote or a backslash.
fn last_field(text: &[u8]) -> Option<(&[u8], &[u8], Option<&[u8]>)> {
    let (before, value) = match text.strip_suffix(b":null") {
        Some(before) => (before, None),
        None => {
            let open = text.strip_suffix(b"\"")?;
            let quote = memchr::memrchr(b'"', open)?;
            let value = &open[quote + 1..];
            if value.contains(&b'\\') {
                return None;
            }
            (open[..quote].strip_suffix(b":")?, Some(value))
        }
    };
    let open = before.strip_suffix(b"\"")?;
    let quote = memchr::memrchr(b'"', open)?;
    Some((open[..quote].strip_suffix(b",")?, &open[quote + 1..], value))
}

/// Reads a line in any order of fields.
fn parse_whole(line: &[u8]) -> Result<Event<'_>, Malformed> {
    let mut kind = None;
    let mut envelope = Envelope::default();
    let mut data = Data::default();
    let mut unread = None; // data that came before its type
    let mut scan = Scan::new(line);
    scan.object(|key, scan| {
        match key {
            b"type" => kind = scan.text()?,
            b"id" => envelope.id = raw(scan)?,
            b"parentId" => envelope.parent = raw(scan)?,
            b"timestamp" => envelope.timestamp = raw(scan)?,
            b"agentId" => envelope.agent = scan.text()?.filter(|text| !text.0.is_empty()),
            b"data" => match kind {
                Some(Text(kind)) => data.read(kind, scan)?,
                None => {
                    unread = Some(scan.clone());
                    scan.skip()?;
                }
            },
            _ => scan.skip()?,
        }
        Ok(())
    })?;
    scan.end()?;
    let Text(kind) = kind.ok_or(Malformed)?;
    if let Some(mut scan) = unread {
        data.read(kind, &mut scan)?;
    }
    envelope.event(without_data(kind).map_or_else(|| data.body(kind), Ok)?)
}

fn raw<'a>(scan: &mut Scan<'a>) -> Result<&'a [u8], Malformed> {
    Ok(scan.text()?.map_or(&b""[..], |text| text.0))
}

/// The fields of `data` that any rule needs, of all types together: names mean the same wherever they stand.
#[derive(Default)]
struct Data<'a> {
    call: Option<Text<'a>>,
    request: Option<Text<'a>>,
    tool: Option<Text<'a>>,
    command: Option<Text<'a>>,
    detached: bool,
    success: Option<bool>,
    of_user: bool,
    error_code: Option<Text<'a>>,
    error_kind: Option<Text<'a>>,
    message: Option<Text<'a>>,
    status: Option<i64>,
    shell: Option<Text<'a>>,
    result_kind: Option<Text<'a>>,
    permission_kind: Option<Text<'a>>,
    by_hook: bool,
    delivery: Option<Text<'a>>,
    source: Option<Text<'a>>,
    mode: Option<Text<'a>>,
    new_mode: Option<Text<'a>>,
    continuation: bool,
    continues: bool,
    requests_tools: bool,
    content: Option<Text<'a>>,
    notified: Option<Text<'a>>,
    context_tokens: Option<i64>,
    new_model: Option<Text<'a>>,
    begun: Begun<'a>,
}

impl<'a> Data<'a> {
    /// Reads the value of `data`; a value that is no object says nothing.
    fn read(&mut self, kind: &[u8], scan: &mut Scan<'a>) -> Result<(), Malformed> {
        if without_data(kind).is_some() {
            return scan.skip();
        }
        scan.object_or_skip(|key, scan| {
            match key {
                b"toolCallId" => self.call = scan.text()?,
                b"toolName" => self.tool = scan.text()?,
                b"requestId" => self.request = scan.text()?,
                b"arguments" => self.arguments(scan)?,
                b"success" => self.success = scan.bool()?,
                b"isUserRequested" => self.of_user = scan.bool()?.unwrap_or(false),
                b"error" => scan.object_or_skip(|key, scan| {
                    match key {
                        b"code" => self.error_code = scan.text()?,
                        b"message" => self.message = scan.text()?,
                        _ => scan.skip()?,
                    }
                    Ok(())
                })?,
                b"message" => self.message = scan.text()?,
                b"errorType" => self.error_kind = scan.text()?,
                b"statusCode" => self.status = scan.number()?,
                b"result" => self.result(scan)?,
                b"permissionRequest" => scan.object_or_skip(|key, scan| {
                    match key {
                        b"kind" => self.permission_kind = scan.text()?,
                        b"toolCallId" => self.call = self.call.or(scan.text()?),
                        _ => scan.skip()?,
                    }
                    Ok(())
                })?,
                b"resolvedByHook" => self.by_hook = scan.bool()?.unwrap_or(false),
                b"delivery" => self.delivery = scan.text()?,
                b"source" => self.source = scan.text()?,
                b"agentMode" => self.mode = scan.text()?,
                b"newMode" => self.new_mode = scan.text()?,
                b"isAutopilotContinuation" => self.continuation = scan.bool()?.unwrap_or(false),
                b"continuePendingWork" => self.continues = scan.bool()?.unwrap_or(false),
                b"toolRequests" => self.requests_tools = scan.filled_array()?,
                b"content" => self.content = scan.text()?,
                b"kind" => self.notification(scan)?,
                b"usage" => scan.object_or_skip(|key, scan| {
                    if key == b"inputTokens" {
                        self.context_tokens = scan.number()?;
                        return Ok(());
                    }
                    scan.skip()
                })?,
                b"model" | b"selectedModel" => self.begun.model = scan.text()?,
                b"newModel" => self.new_model = scan.text()?,
                b"context" => scan.object_or_skip(|key, scan| {
                    match key {
                        b"cwd" => self.begun.cwd = scan.text()?,
                        b"branch" => self.begun.branch = scan.text()?,
                        _ => scan.skip()?,
                    }
                    Ok(())
                })?,
                _ => scan.skip()?,
            }
            Ok(())
        })
    }

    /// A tool's arguments: what it works on, and whether it is to run in the background.
    fn arguments(&mut self, scan: &mut Scan<'a>) -> Result<(), Malformed> {
        scan.object_or_skip(|key, scan| {
            match key {
                b"command" => self.command = scan.text()?,
                b"path" => self.command = self.command.or(scan.text()?),
                b"mode" => self.detached = scan.text()?.is_some_and(|mode| mode.0 == b"async"),
                _ => scan.skip()?,
            }
            Ok(())
        })
    }

    /// The result of a tool (`content` names the background shell that it started) or of a permission request (`kind`).
    fn result(&mut self, scan: &mut Scan<'a>) -> Result<(), Malformed> {
        scan.object_or_skip(|key, scan| {
            match key {
                b"kind" => self.result_kind = scan.text()?,
                b"content" => self.shell = scan.text()?.and_then(shell_started),
                _ => scan.skip()?,
            }
            Ok(())
        })
    }

    fn notification(&mut self, scan: &mut Scan<'a>) -> Result<(), Malformed> {
        scan.object_or_skip(|key, scan| {
            match key {
                b"type" => self.notified = scan.text()?,
                b"shellId" => self.shell = scan.text()?,
                _ => scan.skip()?,
            }
            Ok(())
        })
    }

    /// The event that the fields make, for the types that [`without_data`] leaves.
    fn body(self, kind: &[u8]) -> Result<Body<'a>, Malformed> {
        Ok(match kind {
            b"user.message" => Body::Prompt {
                joins: is(self.delivery, b"steering")
                    || self.source.is_some_and(|source| source.0.starts_with(b"skill-")),
                continuation: self.continuation,
                autopilot: self.mode.map(|mode| mode.0 == b"autopilot"),
            },
            b"assistant.message" => Body::Message {
                requests_tools: self.requests_tools,
                asks: !self.requests_tools && self.content.is_some_and(question::ends_in_question),
                model: self.begun.model,
            },
            b"tool.execution_start" => Body::ToolStart {
                call: self.call.ok_or(Malformed)?,
                name: self.tool,
                command: self.command,
                detached: self.detached,
            },
            b"tool.execution_complete" => Body::ToolDone {
                call: self.call.ok_or(Malformed)?,
                success: self.success.unwrap_or(false),
                unasked: self.tool_unasked(),
                of_user: self.of_user,
                shell: self.shell,
            },
            b"permission.requested" => Body::PermissionAsked {
                request: self.request.ok_or(Malformed)?,
                call: self.call,
                kind: self.permission_kind,
                by_hook: self.by_hook,
            },
            b"permission.completed" => Body::PermissionDone {
                request: self.request.ok_or(Malformed)?,
                call: self.call,
                unasked: self.result_kind.is_some_and(|kind| kind.0.starts_with(UNASKED_KIND)),
            },
            b"session.start" => Body::Start(self.begun),
            b"session.resume" => Body::Resume { begun: self.begun, continues: self.continues },
            b"session.error" => Body::Error { kind: self.error_kind, message: self.message, status: self.status },
            b"session.task_complete" => Body::TaskComplete { accepted: self.success.unwrap_or(true) },
            b"session.mode_changed" => Body::Mode { autopilot: is(self.new_mode, b"autopilot") },
            b"session.model_change" => Body::Model(self.new_model),
            b"session.usage_record" => Body::Usage { context: self.context_tokens },
            b"subagent.started" => Body::AgentStart { call: self.call },
            b"system.notification" if is(self.notified, b"shell_completed") => Body::ShellDone { shell: self.shell },
            _ => Body::Progress,
        })
    }

    /// Whether a failed tool says that nobody could be asked (FACTS-copilot.md, "Permissions"). A refusal by the user has
    /// the same code, and a program's own "Permission denied" stands in a result, not in an error.
    fn tool_unasked(&self) -> bool {
        if self.success == Some(true) {
            return false;
        }
        let says = |words: &[u8]| self.message.is_some_and(|text| memchr::memmem::find(text.0, words).is_some());
        says(UNASKED_KIND)
            || is(self.error_code, b"denied")
                && (says(b"could not request permission") || says(b"no interactive user response"))
    }
}

/// The kind of a permission's result, and in older versions' errors: nobody could be asked.
const UNASKED_KIND: &[u8] = b"denied-no-approval-rule";

fn is(text: Option<Text<'_>>, wanted: &[u8]) -> bool {
    text.is_some_and(|text| text.0 == wanted)
}

/// The id in `<command started in background with shellId: 0>`.
fn shell_started(content: Text<'_>) -> Option<Text<'_>> {
    let rest = content.0.strip_prefix(b"<command started in background with shellId: ")?;
    Some(Text(&rest[..rest.iter().position(|byte| !byte.is_ascii_alphanumeric() && *byte != b'-')?]))
}
