//! The fields of a line that the rules need, and what they mean together.

use super::super::cron;
use crate::asked::question;
use pilotlight_core::closing_question::ends_in_question;
use pilotlight_core::event::{Besides, Body, Event, Limit, ScheduleChange, Tokens, ToolResult};
use pilotlight_core::scan::{Malformed, Scan, Text};
use pilotlight_core::time::Time;

/// Tools that ask the user.
const ASKING: [&[u8]; 2] = [b"AskUserQuestion", b"ExitPlanMode"];
/// Arguments that say what a tool works on, the most telling first.
const SUBJECTS: [&[u8]; 6] = [b"command", b"file_path", b"path", b"url", b"pattern", b"description"];
/// How a result of 2.1.197 begins that was refused because nobody may be asked, as its mode says.
const REFUSED_BY_MODE: &[u8] = b"denied because Claude Code is running in don't ask mode";
/// How a result of 2.1.197 begins that its user refused.
const REFUSED_BY_USER: &[u8] = b"The user doesn't want to proceed with this tool use";
/// What names the one schedule of a loop that paces itself. No other has such an id.
const LOOP: Text<'_> = Text(b"loop");

/// The fields of a line.
#[derive(Default)]
pub(super) struct Line<'a> {
    pub(super) kind: Option<Text<'a>>,
    pub(super) at: Option<Time>,
    id: &'a [u8],
    /// The id of its message, which may have several lines.
    message: &'a [u8],
    subtype: Option<Text<'a>>,
    origin: Option<Text<'a>>,
    is_meta: bool,
    is_summary: bool,
    /// The content of its message, or of the line itself, if that is a string.
    text: Option<Text<'a>>,
    block: Block<'a>,
    stop_reason: Option<Text<'a>>,
    model: Option<Text<'a>>,
    is_error: bool,
    error: Option<Text<'a>>,
    status: Option<i64>,
    attachment: Attachment<'a>,
    request: Option<Text<'a>>,
    title: Option<Text<'a>>,
    /// The background shell that the tool started, and that it ended.
    shell: Option<Text<'a>>,
    ended: Option<Text<'a>>,
    /// What is done with the queue of what the session is told.
    operation: Option<Text<'a>>,
    /// Who decided about the tool, and by what kind of reason, if it was rejected.
    rejected_by: Option<(Text<'a>, Option<Text<'a>>)>,
    /// How the tool was denied.
    denial: Option<Text<'a>>,
    mode: Option<Text<'a>>,
    /// The tokens of the request that the message answers, and of the message.
    used: Option<i64>,
    /// When the limit ends that refused the request, in seconds since 1970.
    limit_resets: Option<i64>,
    scheduled: Scheduled<'a>,
    /// The schedule that fires, its times, and its kind, if that is not the usual one.
    task: Option<Text<'a>>,
    cron: Option<Text<'a>>,
    task_kind: Option<Text<'a>>,
}

/// The schedule that a tool has made, changed or removed.
#[derive(Default)]
struct Scheduled<'a> {
    id: Option<Text<'a>>,
    /// When it fires, in milliseconds since 1970.
    next: Option<i64>,
    /// When a loop goes on that paces itself, in the same unit.
    wakeup: Option<i64>,
    repeats: bool,
    is_kept: bool,
}

impl<'a> Scheduled<'a> {
    fn change(&self) -> Option<ScheduleChange<'a>> {
        let armed = |id, at, repeats, persists| ScheduleChange::Armed {
            id,
            at: Some(Time(at)),
            after: None,
            repeats,
            persists,
        };
        match (self.wakeup, self.id, self.next) {
            // It is armed anew when the session is resumed.
            (Some(at), None, None) => Some(armed(LOOP, at, false, true)),
            (None, Some(id), Some(at)) => Some(armed(id, at, self.repeats, self.is_kept)),
            (None, Some(id), None) => Some(ScheduleChange::Cancelled { id }),
            _ => None,
        }
    }
}

/// What stands between the messages.
#[derive(Default)]
struct Attachment<'a> {
    kind: Option<Text<'a>>,
    event: Option<Text<'a>>,
    decision: Option<Text<'a>>,
    call: Option<Text<'a>>,
}

impl<'a> Attachment<'a> {
    fn read(&mut self, scan: &mut Scan<'a>) -> Result<(), Malformed> {
        scan.object_or_skip(|key, scan| {
            match key {
                b"type" => self.kind = scan.text()?,
                b"hookEvent" => self.event = scan.text()?,
                b"decision" => self.decision = scan.text()?,
                b"toolUseID" => self.call = scan.text()?,
                _ => scan.skip()?,
            }
            Ok(())
        })
    }

    /// What a hook decided about a permission, such as ours.
    fn decision(self) -> Option<Body<'a>> {
        let is_decided = is(self.kind, b"hook_permission_decision") && is(self.event, b"PermissionRequest");
        let (approved, call) = (is(self.decision, b"allow"), self.call.filter(|_| is_decided)?);
        Some(Body::PermissionDone { request: call, call: Some(call), unasked: false, approved })
    }
}

/// The first block of a message: a line has one.
#[derive(Default)]
struct Block<'a> {
    kind: Option<Text<'a>>,
    text: Option<Text<'a>>,
    call: Option<Text<'a>>,
    name: Option<Text<'a>>,
    input: &'a [u8],
    subject: Option<(usize, Text<'a>)>,
    failed: bool,
}

impl<'a> Line<'a> {
    /// Reads the fields. What was read before a fault is kept.
    pub(super) fn read(&mut self, scan: &mut Scan<'a>) -> Result<(), Malformed> {
        scan.object(|key, scan| {
            match key {
                b"type" => self.kind = scan.text()?,
                b"subtype" => self.subtype = scan.text()?,
                b"uuid" => self.id = scan.text()?.map_or(&b""[..], |text| text.0),
                b"timestamp" => self.at = scan.text()?.and_then(|text| Time::parse(text.0)),
                b"isMeta" => self.is_meta = scan.bool()? == Some(true),
                b"isCompactSummary" => self.is_summary = scan.bool()? == Some(true),
                b"isApiErrorMessage" => self.is_error = scan.bool()? == Some(true),
                b"error" => self.error = scan.text()?,
                b"apiErrorStatus" => self.status = scan.number()?,
                b"requestDigest" => self.request = scan.text()?,
                b"aiTitle" => self.title = scan.text()?,
                b"permissionMode" => self.mode = scan.text()?,
                b"taskId" => self.task = scan.text()?,
                b"cron" => self.cron = scan.text()?,
                b"taskKind" => self.task_kind = scan.text()?,
                b"quotaLimits" => self.quota(scan)?,
                b"toolDenialKind" => self.denial = scan.text()?,
                b"origin" => self.origin = field(scan, b"kind")?,
                b"attachment" => self.attachment.read(scan)?,
                b"toolUseResult" => self.tool_result(scan)?,
                b"operation" => self.operation = scan.text()?,
                b"content" => self.text = scan.text()?.or(self.text),
                b"permissionDecision" => self.decision(scan)?,
                b"message" => self.message(scan)?,
                _ => scan.skip()?,
            }
            Ok(())
        })
    }

    /// What the tool did with background shells and schedules. One that stops a shell names the one that it has stopped.
    fn tool_result(&mut self, scan: &mut Scan<'a>) -> Result<(), Malformed> {
        scan.object_or_skip(|key, scan| {
            match key {
                b"backgroundTaskId" => self.shell = scan.text()?,
                b"task_id" => self.ended = scan.text()?,
                b"id" => self.scheduled.id = scan.text()?,
                b"nextFireAt" => self.scheduled.next = scan.number()?,
                b"scheduledFor" => self.scheduled.wakeup = scan.number()?,
                b"recurring" => self.scheduled.repeats = scan.bool()? == Some(true),
                b"durable" => self.scheduled.is_kept = scan.bool()? == Some(true),
                _ => scan.skip()?,
            }
            Ok(())
        })
    }

    fn decision(&mut self, scan: &mut Scan<'a>) -> Result<(), Malformed> {
        let (mut rejects, mut source, mut reason) = (false, None, None);
        scan.object_or_skip(|key, scan| {
            match key {
                b"decision" => rejects = scan.text()?.is_some_and(|text| text.0 == b"reject"),
                b"source" => source = scan.text()?,
                b"reasonType" => reason = scan.text()?,
                _ => scan.skip()?,
            }
            Ok(())
        })?;
        self.rejected_by = source.filter(|_| rejects).map(|source| (source, reason));
        Ok(())
    }

    fn message(&mut self, scan: &mut Scan<'a>) -> Result<(), Malformed> {
        scan.object_or_skip(|key, scan| {
            match key {
                b"content" => {
                    // First, because the value may be cut off.
                    let _ = self.block.read(&mut scan.clone());
                    self.text = scan.text()?.or(self.text);
                }
                b"id" => self.message = scan.text()?.map_or(&b""[..], |text| text.0),
                b"usage" => self.usage(scan)?,
                b"stop_reason" => self.stop_reason = scan.text()?,
                b"model" => self.model = scan.text()?.filter(|model| !model.0.starts_with(b"<")),
                _ => scan.skip()?,
            }
            Ok(())
        })
    }

    /// The tokens of a request, with those that came from a cache, and of its answer.
    fn usage(&mut self, scan: &mut Scan<'a>) -> Result<(), Malformed> {
        scan.object_or_skip(|key, scan| {
            match key {
                b"input_tokens" | b"cache_creation_input_tokens" | b"cache_read_input_tokens" | b"output_tokens" => {
                    let count = scan.number()?.unwrap_or(0).max(0);
                    self.used = Some(self.used.unwrap_or(0).saturating_add(count));
                }
                _ => scan.skip()?,
            }
            Ok(())
        })
    }

    /// The event that the line is.
    pub(super) fn event(self) -> Result<Event<'a>, Malformed> {
        let Text(kind) = self.kind.ok_or(Malformed)?;
        let (at, id) = (self.at, self.id);
        // What was said without a model is part of no response.
        let round = if kind == b"assistant" && self.model.is_some() { self.message } else { b"" };
        let context = self.used.filter(|_| kind == b"assistant" && self.model.is_some());
        let tokens = context.map(|context| Tokens { context: Some(context), ..Tokens::default() });
        let besides = Besides {
            schedule: self.schedule(kind),
            tokens,
            limit: self.limit(),
            message: self.message_of(kind),
            sub_agent: None,
        };
        let body = self.body(kind)?;
        Ok(Event { kind, at, id, parent: b"", round, sub_agent: None, body, besides })
    }

    /// The limit of an account that refused a request.
    fn quota(&mut self, scan: &mut Scan<'a>) -> Result<(), Malformed> {
        scan.object_or_skip(|key, scan| match key {
            b"resetsAt" => scan.number().map(|at| self.limit_resets = at),
            _ => scan.skip(),
        })
    }

    /// What the model says.
    fn message_of(&self, kind: &[u8]) -> Option<Text<'a>> {
        let is_said = kind == b"assistant" && self.model.is_some() && !self.is_error && is(self.block.kind, b"text");
        self.block.text.filter(|_| is_said)
    }

    fn limit(&self) -> Option<Limit> {
        let at = self.limit_resets.filter(|_| self.is_error)?;
        Some(Limit::Until(Time(at.saturating_mul(1000))))
    }

    /// What became of a schedule.
    fn schedule(&self, kind: &[u8]) -> Option<ScheduleChange<'a>> {
        match kind {
            b"user" if is(self.block.kind, b"tool_result") => self.scheduled.change(),
            b"system" if is(self.subtype, b"scheduled_task_fire") => {
                let id = if is(self.task_kind, b"loop") { LOOP } else { self.task? };
                Some(ScheduleChange::Fired { id, every: self.cron.and_then(cron::interval) })
            }
            _ => None,
        }
    }

    fn body(self, kind: &[u8]) -> Result<Body<'a>, Malformed> {
        Ok(match kind {
            b"user" => self.user()?,
            b"assistant" => self.assistant()?,
            b"api-request" => self.request.map_or(Body::Aside, |request| Body::ModelAsked { request }),
            b"system" => match self.subtype.map(|subtype| subtype.0) {
                Some(b"api_error") => Body::ModelFailed,
                Some(b"compact_boundary") => Body::Step,
                _ => Body::Aside,
            },
            b"attachment" if is(self.attachment.kind, b"queued_command") => {
                Body::Prompt { joins: true, continuation: false, autopilot: None }
            }
            b"attachment" => self.attachment.decision().unwrap_or(Body::Aside),
            b"queue-operation" if is(self.operation, b"enqueue") => match self.text.and_then(ended_task) {
                Some(task) => Body::ShellDone { shell: Some(task), call: None },
                None => Body::Aside,
            },
            b"ai-title" => self.title.map_or(Body::Aside, Body::Title),
            b"permission-mode" => Body::Approvals { all: is(self.mode, b"bypassPermissions") },
            _ => Body::Aside,
        })
    }

    fn user(self) -> Result<Body<'a>, Malformed> {
        let prompt = |continuation| Body::Prompt { joins: false, continuation, autopilot: None };
        if is(self.block.kind, b"tool_result") {
            let call = self.block.call.ok_or(Malformed)?;
            return Ok(Body::ToolDone {
                call,
                result: self.result(),
                by_user: false,
                shell: self.shell,
                ended: self.ended,
            });
        }
        let Some(text) = self.text.or(self.block.text) else { return Ok(Body::Aside) };
        if text.0.starts_with(b"[Request interrupted by user") {
            return Ok(Body::Abort);
        }
        if is(self.origin, b"task-notification") {
            return Ok(prompt(true));
        }
        if self.is_meta || self.is_summary {
            return Ok(Body::Aside);
        }
        Ok(match text.0 {
            text if text.starts_with(b"<bash-input>") => Body::UserTool,
            text if is_local(text) => Body::Aside,
            _ => prompt(false),
        })
    }

    fn assistant(self) -> Result<Body<'a>, Malformed> {
        let text = self.block.text;
        if self.is_error {
            let kind = self.error.filter(|kind| kind.0 != b"unknown");
            return Ok(Body::Error { kind, message: text, status: self.status });
        }
        let block = &self.block;
        if is(block.kind, b"tool_use") {
            let asks = block.name.is_some_and(|name| ASKING.contains(&name.0));
            return Ok(Body::ToolStart {
                call: block.call.ok_or(Malformed)?,
                name: block.name,
                command: block.subject.map(|(_, text)| text),
                // The result of its tool tells the shell that it started.
                detached: false,
                asks,
                question: if asks { question(block.input).map(Box::new) } else { None },
                nested: false,
                asks_unseen: false,
            });
        }
        Ok(match self.stop_reason.map(|reason| reason.0) {
            Some(b"tool_use") => Body::Message { requests_tools: true, asks: false, model: self.model },
            // What was said without a model: it answers nothing.
            _ if self.model.is_none() => Body::Aside,
            Some(_) => Body::Answer { asks: text.is_some_and(ends_in_question), model: self.model },
            None => Body::Step,
        })
    }

    /// What became of a tool.
    fn result(&self) -> ToolResult {
        let begins = |text: &[u8]| self.block.text.is_some_and(|result| memchr::memmem::find(result.0, text).is_some());
        let by_rule = |reason: Option<Text<'_>>| is(reason, b"rule");
        match (self.rejected_by, self.denial.map(|denial| denial.0)) {
            (Some((Text(b"config"), reason)), _) if !by_rule(reason) => ToolResult::Unasked,
            (Some(_), _) | (None, Some(b"permission-rule")) => ToolResult::Denied,
            // Without a prompt before it, the user stopped it while it ran.
            (None, Some(b"user-rejected")) => ToolResult::Denied,
            (None, Some(_)) => ToolResult::Failure,
            (None, None) if !self.block.failed => ToolResult::Success,
            (None, None) if begins(REFUSED_BY_MODE) => ToolResult::Unasked,
            (None, None) if begins(REFUSED_BY_USER) => ToolResult::Denied,
            (None, None) => ToolResult::Failure,
        }
    }
}

impl<'a> Block<'a> {
    /// Reads the first block of an array. What was read before a fault is kept.
    fn read(&mut self, scan: &mut Scan<'a>) -> Result<(), Malformed> {
        scan.first_object(|key, scan| {
            match key {
                b"type" => self.kind = scan.text()?,
                b"text" => self.text = scan.text()?,
                b"content" => {
                    let mut inside = scan.clone();
                    self.text = scan.text()?;
                    let _ = inside.first_object(|key, scan| {
                        if key == b"text" {
                            self.text = scan.text()?;
                        } else {
                            scan.skip()?;
                        }
                        Ok(())
                    });
                }
                b"id" | b"tool_use_id" => self.call = scan.text()?,
                b"name" => self.name = scan.text()?,
                b"is_error" => self.failed = scan.bool()? == Some(true),
                b"input" => {
                    let start = scan.clone();
                    self.arguments(scan)?;
                    self.input = scan.since(&start);
                }
                _ => scan.skip()?,
            }
            Ok(())
        })
    }

    fn arguments(&mut self, scan: &mut Scan<'a>) -> Result<(), Malformed> {
        scan.object_or_skip(|key, scan| {
            match SUBJECTS.iter().position(|subject| *subject == key) {
                Some(rank) => {
                    let text = scan.text()?.map(|text| (rank, text));
                    self.subject = self.subject.into_iter().chain(text).min_by_key(|(rank, _)| *rank);
                }
                None => scan.skip()?,
            }
            Ok(())
        })
    }
}

/// Whether a text is what a command of the interface left, and no prompt.
fn is_local(text: &[u8]) -> bool {
    let marks: [&[u8]; 5] =
        [b"<local-command-", b"<command-name>", b"<command-message>", b"<bash-stdout>", b"<bash-stderr>"];
    marks.iter().any(|mark| text.starts_with(mark))
}

/// The background task whose end a notification tells of. Of one that runs on it tells no status.
fn ended_task(Text(notification): Text<'_>) -> Option<Text<'_>> {
    const ID: &[u8] = b"<task-id>";
    if !notification.starts_with(b"<task-notification>") || memchr::memmem::find(notification, b"<status>").is_none() {
        return None;
    }
    let id = &notification[memchr::memmem::find(notification, ID)? + ID.len()..];
    Some(Text(&id[..memchr::memchr(b'<', id)?]))
}

/// One field of an object, if it is a string.
fn field<'a>(scan: &mut Scan<'a>, wanted: &[u8]) -> Result<Option<Text<'a>>, Malformed> {
    let mut found = None;
    scan.object_or_skip(|key, scan| {
        if key == wanted {
            found = scan.text()?;
        } else {
            scan.skip()?;
        }
        Ok(())
    })?;
    Ok(found)
}

fn is(text: Option<Text<'_>>, wanted: &[u8]) -> bool {
    text.is_some_and(|text| text.0 == wanted)
}
