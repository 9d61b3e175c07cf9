//! `data`: the part of a line whose fields depend on the type.

use super::types::without_data;
use crate::asked::question;
use pilotlight_core::closing_question;
use pilotlight_core::event::{Besides, Body, ScheduleChange, SessionInfo, SubAgentInfo, Tokens, ToolResult};
use pilotlight_core::scan::{Malformed, Scan, Text};
use pilotlight_core::time::{Span, Time};
use pilotlight_core::turn::{PATHS_MAX, is_consent};

/// The fields of `data` that some rule needs, for all types together: a name means the same in each of them.
#[derive(Default)]
pub(super) struct Data<'a> {
    round: &'a [u8],
    call: Option<Text<'a>>,
    request: Option<Text<'a>>,
    tool: Option<Text<'a>>,
    command: Option<Text<'a>>,
    arguments: &'a [u8],
    detached: bool,
    success: Option<bool>,
    by_user: bool,
    error_code: Option<Text<'a>>,
    error_kind: Option<Text<'a>>,
    message: Option<Text<'a>>,
    status: Option<i64>,
    shell: Option<Text<'a>>,
    result_kind: Option<Text<'a>>,
    permission_kind: Option<Text<'a>>,
    asked_command: Option<Text<'a>>,
    asked_path: Option<Text<'a>>,
    asked_file: Option<Text<'a>>,
    asked_url: Option<Text<'a>>,
    asking_extension: Option<Text<'a>>,
    dialog_kind: Option<Text<'a>>,
    dialog_paths: Vec<Text<'a>>,
    access: Option<Text<'a>>,
    by_hook: bool,
    managed: bool,
    delivery: Option<Text<'a>>,
    source: Option<Text<'a>>,
    mode: Option<Text<'a>>,
    new_mode: Option<Text<'a>>,
    allows_all: bool,
    continuation: bool,
    continues: bool,
    requests_tools: bool,
    content: Option<Text<'a>>,
    notified: Option<Text<'a>>,
    context_tokens: Option<i64>,
    context_window: Option<i64>,
    new_model: Option<Text<'a>>,
    agent_name: Option<Text<'a>>,
    info: SessionInfo<'a>,
    schedule: Schedule<'a>,
}

/// What an event about a schedule says. Times are in milliseconds, and since 1970.
#[derive(Default)]
struct Schedule<'a> {
    id: &'a [u8],
    at: Option<i64>,
    next: Option<i64>,
    interval: Option<i64>,
    repeats: Option<bool>,
}

impl<'a> Schedule<'a> {
    fn read(&mut self, scan: &mut Scan<'a>) -> Result<(), Malformed> {
        scan.object_or_skip(|key, scan| {
            match key {
                b"id" => {
                    let start = scan.clone();
                    scan.skip()?;
                    self.id = scan.since(&start).trim_ascii();
                }
                b"at" => self.at = scan.number()?,
                b"nextRunAt" => self.next = scan.number()?,
                b"intervalMs" => self.interval = scan.number()?.filter(|span| *span > 0),
                b"recurring" => self.repeats = scan.bool()?,
                _ => scan.skip()?,
            }
            Ok(())
        })
    }
}

/// How the source of a prompt begins that a schedule gave.
const BY_SCHEDULE: &[u8] = b"schedule-";

impl<'a> Data<'a> {
    /// Reads the value of `data`. A value that is not an object is skipped.
    pub(super) fn read(&mut self, kind: &[u8], scan: &mut Scan<'a>) -> Result<(), Malformed> {
        if without_data(kind).is_some() {
            return scan.skip();
        }
        if kind.starts_with(b"session.schedule_") {
            return self.schedule.read(scan);
        }
        scan.object_or_skip(|key, scan| {
            match key {
                b"turnId" => self.round = scan.text()?.map_or(&b""[..], |text| text.0),
                b"toolCallId" => self.call = scan.text()?,
                b"toolName" => self.tool = scan.text()?,
                b"requestId" => self.request = scan.text()?,
                b"arguments" => {
                    let start = scan.clone();
                    self.arguments(scan)?;
                    self.arguments = scan.since(&start);
                }
                b"success" => self.success = scan.bool()?,
                b"isUserRequested" => self.by_user = scan.bool()?.unwrap_or(false),
                b"error" => self.error(scan)?,
                b"message" => self.message = scan.text()?,
                b"errorType" => self.error_kind = scan.text()?,
                b"statusCode" => self.status = scan.number()?,
                b"result" => self.result(scan)?,
                b"permissionRequest" => self.permission_request(scan)?,
                b"promptRequest" => self.prompt_request(scan)?,
                b"resolvedByHook" => self.by_hook = scan.bool()?.unwrap_or(false),
                b"delivery" => self.delivery = scan.text()?,
                b"source" => self.source = scan.text()?,
                b"agentMode" => self.mode = scan.text()?,
                b"newMode" => self.new_mode = scan.text()?,
                b"allowAllPermissions" => self.allows_all |= scan.bool()?.unwrap_or(false),
                // Later releases.
                b"mode" => self.allows_all |= is(scan.text()?, b"allow-all"),
                b"isAutopilotContinuation" => self.continuation = scan.bool()?.unwrap_or(false),
                b"continuePendingWork" => self.continues = scan.bool()?.unwrap_or(false),
                b"toolRequests" => self.requests_tools = scan.filled_array()?,
                b"content" => self.content = scan.text()?,
                b"kind" => self.notification(scan)?,
                b"usage" => self.usage(scan)?,
                b"model" | b"selectedModel" => self.info.model = scan.text()?,
                b"alreadyInUse" => self.info.in_use = scan.bool()?.unwrap_or(false),
                b"sessionWasActive" => self.info.joins = scan.bool()?.unwrap_or(false),
                // What it is to do, else its kind.
                b"agentDescription" => self.agent_name = scan.text()?.or(self.agent_name),
                b"agentDisplayName" => self.agent_name = self.agent_name.or(scan.text()?),
                b"newModel" => self.new_model = scan.text()?,
                b"context" => self.context(scan)?,
                _ => scan.skip()?,
            }
            Ok(())
        })
    }

    /// The round that it is of, by its number in the turn.
    pub(super) const fn round(&self) -> &'a [u8] {
        self.round
    }

    /// What it says besides.
    pub(super) fn besides(&self, kind: &[u8]) -> Besides<'a> {
        let id = Text(self.schedule.id);
        let schedule = match kind {
            b"user.message" => {
                let id = self.source.and_then(|source| source.0.strip_prefix(BY_SCHEDULE));
                id.map(|id| ScheduleChange::Fired { id: Text(id), every: None })
            }
            _ if id.0.is_empty() => None,
            // It is loaded again when the session is resumed.
            b"session.schedule_created" => Some(ScheduleChange::Armed {
                id,
                at: self.schedule.at.map(Time),
                after: self.schedule.interval.map(Span),
                repeats: self.schedule.repeats.unwrap_or(self.schedule.at.is_none()),
                persists: true,
            }),
            b"session.schedule_rearmed" => Some(ScheduleChange::Armed {
                id,
                at: self.schedule.next.map(Time),
                after: None,
                repeats: true,
                persists: true,
            }),
            b"session.schedule_cancelled" => Some(ScheduleChange::Cancelled { id }),
            _ => None,
        };
        let tokens = Tokens { context: self.context_tokens, window: self.context_window, total: None };
        let sub_agent = self.agent_name.map(|name| SubAgentInfo { name });
        Besides {
            schedule,
            tokens: (kind == b"session.usage_record").then_some(tokens),
            // Its errors do not tell when a limit is over.
            limit: None,
            message: self.content.filter(|_| kind == b"assistant.message"),
            sub_agent: sub_agent.filter(|_| kind == b"subagent.started"),
        }
    }

    /// A tool's arguments: what it works on, and whether to run it in the background.
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

    /// The error of a tool.
    fn error(&mut self, scan: &mut Scan<'a>) -> Result<(), Malformed> {
        scan.object_or_skip(|key, scan| {
            match key {
                b"code" => self.error_code = scan.text()?,
                b"message" => self.message = scan.text()?,
                _ => scan.skip()?,
            }
            Ok(())
        })
    }

    /// What a permission request asks for, as the tool made it.
    fn permission_request(&mut self, scan: &mut Scan<'a>) -> Result<(), Malformed> {
        scan.object_or_skip(|key, scan| {
            match key {
                b"kind" => self.permission_kind = scan.text()?,
                b"fullCommandText" => self.asked_command = scan.text()?,
                b"path" => self.asked_path = scan.text()?,
                b"fileName" => self.asked_file = scan.text()?,
                b"url" => self.asked_url = scan.text()?,
                b"extensionName" => self.asking_extension = scan.text()?,
                b"toolCallId" => self.call = self.call.or(scan.text()?),
                b"managedApprovalRequired" => self.managed = scan.bool()?.unwrap_or(false),
                _ => scan.skip()?,
            }
            Ok(())
        })
    }

    /// What a permission request asks the user. It may be about the paths that the tool reaches, and not the tool itself.
    fn prompt_request(&mut self, scan: &mut Scan<'a>) -> Result<(), Malformed> {
        scan.object_or_skip(|key, scan| {
            match key {
                b"kind" => self.dialog_kind = scan.text()?,
                b"paths" => self.dialog_paths = scan.texts(PATHS_MAX)?,
                b"accessKind" => self.access = scan.text()?,
                _ => scan.skip()?,
            }
            Ok(())
        })
    }

    /// The tokens of a request to the model, and the most that one can have.
    fn usage(&mut self, scan: &mut Scan<'a>) -> Result<(), Malformed> {
        scan.object_or_skip(|key, scan| {
            match key {
                b"inputTokens" => self.context_tokens = scan.number()?,
                b"maxPromptTokens" => self.context_window = scan.number()?,
                _ => scan.skip()?,
            }
            Ok(())
        })
    }

    /// Where the session works.
    fn context(&mut self, scan: &mut Scan<'a>) -> Result<(), Malformed> {
        scan.object_or_skip(|key, scan| {
            match key {
                b"cwd" => self.info.cwd = scan.text()?,
                b"branch" => self.info.branch = scan.text()?,
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

    /// Builds the event from the fields, for the types not covered by [`without_data`].
    pub(super) fn body(self, kind: &[u8]) -> Result<Body<'a>, Malformed> {
        Ok(match kind {
            b"user.message" => Body::Prompt {
                joins: is(self.delivery, b"steering")
                    || self.source.is_some_and(|source| source.0.starts_with(b"skill-")),
                continuation: self.continuation,
                autopilot: self.mode.map(|mode| mode.0 == b"autopilot"),
            },
            b"assistant.message" => Body::Message {
                requests_tools: self.requests_tools,
                asks: !self.requests_tools && self.content.is_some_and(closing_question::ends_in_question),
                model: self.info.model,
            },
            b"tool.execution_start" => Body::ToolStart {
                call: self.call.ok_or(Malformed)?,
                name: self.tool,
                command: self.command,
                detached: self.detached,
                asks: self.asks_user(),
                question: if self.asks_user() { question(self.arguments).map(Box::new) } else { None },
                nested: false,
                asks_unseen: false,
            },
            b"tool.execution_complete" => self.tool_done()?,
            b"permission.requested" => Body::PermissionAsked {
                request: self.request.ok_or(Malformed)?,
                call: self.call,
                kind: if self.is_path() { self.dialog_kind } else { self.permission_kind },
                asks: self.asks(),
                paths: self.paths(),
                access: self.access.filter(|_| self.is_path()),
                command: self.asked_command.filter(|_| self.is_path()),
                by_hook: self.by_hook,
                managed: self.managed,
            },
            b"permission.completed" => Body::PermissionDone {
                request: self.request.ok_or(Malformed)?,
                call: self.call,
                unasked: self.result_kind.is_some_and(|kind| kind.0.starts_with(UNASKED_KIND)),
                approved: self.result_kind.is_some_and(|kind| kind.0.starts_with(b"approved")),
            },
            b"session.start" => Body::Start(self.info),
            b"session.resume" => Body::Resume { info: self.info, continues: self.continues },
            b"session.error" => Body::Error { kind: self.error_kind, message: self.message, status: self.status },
            b"session.task_complete" => Body::TaskComplete { accepted: self.success.unwrap_or(true) },
            b"session.mode_changed" => Body::Mode { autopilot: is(self.new_mode, b"autopilot") },
            b"session.permissions_changed" => Body::Approvals { all: self.allows_all },
            b"session.model_change" => Body::Model(self.new_model),
            b"session.usage_record" => Body::Usage { context: self.context_tokens },
            b"subagent.started" => Body::SubAgentStart { call: self.call },
            b"system.notification" if is(self.notified, b"shell_completed") => {
                Body::ShellDone { shell: self.shell, call: None }
            }
            _ => Body::Aside,
        })
    }

    fn tool_done(&self) -> Result<Body<'a>, Malformed> {
        let (call, result) = (self.call.ok_or(Malformed)?, self.tool_result());
        Ok(Body::ToolDone { call, result, by_user: self.by_user, shell: self.shell, ended: None })
    }

    /// Whether it is a tool that asks the user.
    fn asks_user(&self) -> bool {
        self.tool.is_some_and(|Text(name)| matches!(name, b"ask_user" | b"exit_plan_mode"))
    }

    /// Whether it asks for access to a path. Any tool does that first, and asks for the rest afterwards.
    fn is_path(&self) -> bool {
        is(self.dialog_kind, b"path")
    }

    /// The text that fully describes a permission request. Writing a file, calling a server's tool and the like have
    /// none.
    fn asks(&self) -> Option<Text<'a>> {
        if self.is_path() {
            return self.dialog_paths.first().filter(|_| self.dialog_paths.len() == 1).copied();
        }
        match self.permission_kind?.0 {
            b"shell" => self.asked_command,
            b"read" => self.asked_path,
            b"url" => self.asked_url,
            kind if is_consent(kind) => self.asking_extension,
            _ => None,
        }
    }

    /// The paths that a permission request asks to reach, to read or to write.
    fn paths(&self) -> Vec<Text<'a>> {
        if self.is_path() {
            return self.dialog_paths.clone();
        }
        let path = match self.permission_kind.map(|kind| kind.0) {
            Some(b"read") => self.asked_path,
            Some(b"write") => self.asked_file,
            _ => None,
        };
        path.into_iter().collect()
    }

    /// What became of a tool. One that failed may report that nobody could be asked (three signatures, recorded in
    /// tests/traces 03a, 03b and 44a). A refusal by the user has the same code; a program's own "Permission denied" is in
    /// a result, not in an error.
    fn tool_result(&self) -> ToolResult {
        let says = |words: &[u8]| self.message.is_some_and(|text| memchr::memmem::find(text.0, words).is_some());
        let denied = is(self.error_code, b"denied");
        let unasked = || says(b"could not request permission") || says(b"no interactive user response");
        match self.success {
            Some(true) => ToolResult::Success,
            _ if says(UNASKED_KIND) || denied && unasked() => ToolResult::Unasked,
            _ if denied => ToolResult::Denied,
            _ => ToolResult::Failure,
        }
    }
}

/// The result of a permission request when nobody could be asked; older versions put it into the error.
const UNASKED_KIND: &[u8] = b"denied-no-approval-rule";

fn is(text: Option<Text<'_>>, wanted: &[u8]) -> bool {
    text.is_some_and(|text| text.0 == wanted)
}

/// The id in `<command started in background with shellId: 0>`, and in `<command with shellId: 0 moved to background by
/// the user. ...>`, which follows a steering message.
fn shell_started(content: Text<'_>) -> Option<Text<'_>> {
    let id_in = |rest: &'_ [u8]| rest.iter().position(|byte| !byte.is_ascii_alphanumeric() && *byte != b'-');
    if let Some(rest) = content.0.strip_prefix(b"<command started in background with shellId: ") {
        return Some(Text(&rest[..id_in(rest)?]));
    }
    let rest = content.0.strip_prefix(b"<command with shellId: ")?;
    let (id, after) = rest.split_at(id_in(rest)?);
    after.starts_with(b" moved to background").then_some(Text(id))
}
