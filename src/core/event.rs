//! One line of `events.jsonl` -> one [`Event`].
//!
//! A line is `{type, data, id, timestamp, parentId, agentId?}`, in this order. What Copilot's logs are made of decides how it
//! is read: most lines, and most of their bytes, say nothing but "something happened". Those are told by their type alone,
//! and their envelope is read from the line's end, so that `data` is not even looked at. Of the others only the fields that
//! a rule needs are taken, borrowed from the line.
//!
//! Anything else (another order of fields, further fields, white space) is read too, only slower. What cannot be read is
//! [`Malformed`], never a panic.

mod data;

use self::data::Data;
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
        /// Its arguments, as JSON.
        arguments: &'a [u8],
        /// A shell that runs on in the background.
        detached: bool,
    },
    /// `tool.execution_complete`.
    ToolDone {
        /// Pairs it with its start.
        call: Text<'a>,
        /// The tool did what it was asked.
        success: bool,
        /// It was refused before it ran, by whomever.
        denied: bool,
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
        /// The one text that says all that is asked for, where one does.
        asks: Option<Text<'a>>,
        /// A hook has answered already: nobody waits.
        by_hook: bool,
        /// An organisation's policy wants a person to answer it.
        managed: bool,
    },
    /// `permission.completed`.
    PermissionDone {
        /// Pairs it with its request.
        request: Text<'a>,
        /// The tool call that asked.
        call: Option<Text<'a>>,
        /// Refused because nobody could be asked.
        unasked: bool,
        /// Allowed.
        approved: bool,
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
    /// Another client had it open (`alreadyInUse`).
    pub in_use: bool,
    /// It joined work that goes on in the same process (`sessionWasActive`).
    pub joins: bool,
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
        && memchr::memmem::find(&line[1..], TYPE_PREFIX).is_none() // nothing torn stands in front of another event
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

/// Whether a line says that the session was shut down, and with it everything in the background.
pub fn is_shutdown(line: &[u8]) -> bool {
    kind_by_prefix(line) == Some(b"session.shutdown")
}

/// When a line was written, and whether by a sub-agent; read from its end alone.
pub fn end_of(line: &[u8]) -> Option<(Time, bool)> {
    let envelope = Envelope::from_end(line.trim_ascii_end())?;
    Some((Time::parse(envelope.timestamp)?, envelope.agent.is_some()))
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

/// Events that are written without anything having happened (ARCHITECTURE.md, "The rules of the turn").
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
    /// Reads `...}[,"agentId":".."],"id":"..","timestamp":"..","parentId":..}` from the line's end.
    ///
    /// Sound without looking at what stands before: inside a JSON string no quote stands unescaped, and what the last brace
    /// of a line closes is the event itself.
    fn from_end(line: &'a [u8]) -> Option<Self> {
        let field = |text: &'a [u8], wanted: &[u8]| {
            let (rest, name, value) = last_field(text)?;
            (name == wanted).then_some((rest, value))
        };
        let (rest, parent) = field(line.strip_suffix(b"}")?, b"parentId")?;
        let (rest, timestamp) = field(rest, b"timestamp")?;
        let (rest, id) = field(rest, b"id")?;
        let (rest, agent) = field(rest, b"agentId").map_or((rest, None), |(rest, agent)| (rest, agent));
        rest.ends_with(b"}").then_some(Self {
            id: id?,
            parent: parent.unwrap_or_default(),
            timestamp: timestamp?,
            agent: agent.map(Text),
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

/// A field and what stands before it: the rest, the name, the value where it is a string.
type LastField<'a> = (&'a [u8], &'a [u8], Option<&'a [u8]>);

/// Splits `rest,"name":"value"` or `rest,"name":null`, where neither holds a quote or a backslash.
fn last_field(text: &[u8]) -> Option<LastField<'_>> {
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
