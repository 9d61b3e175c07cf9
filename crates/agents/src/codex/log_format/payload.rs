//! The payload of a line, and what it says happened.

use crate::asked::question;
use pilotlight_core::closing_question::ends_in_question;
use pilotlight_core::event::{Body, Limit, SessionInfo, Tokens, ToolResult};
use pilotlight_core::question::Question;
use pilotlight_core::scan::{Malformed, Scan, Text};
use pilotlight_core::time::Time;

/// How much of a tool's output shows what became of the tool, in bytes.
const OUTPUT: usize = 400;
/// The tool that asks the user, and the one that does so without waiting for the answer.
const ASKS: &[u8] = b"request_user_input";
const ASKS_ON: &[u8] = b"request_user_input_async";
/// Before the id of a shell that runs on, in a tool's output.
const RUNNING: &[u8] = b"Process running with session ID ";
/// Before the exit code of a program, in a tool's output.
const EXITED: &[u8] = b"Process exited with code ";
/// How much of the arguments of a call that asks is read, in characters.
const ARGUMENTS_MAX: usize = 32 << 10;
/// How much of a plan is read, in characters.
const PLAN_MAX: usize = 4096;
/// The mark of a call that asks to run outside of the sandbox, in its arguments: JSON in a JSON string.
const ESCALATED: [&[u8]; 2] = [b"sandbox_permissions", b"require_escalated"];

/// The fields of a payload that matter, whatever its kind.
#[derive(Default)]
pub(super) struct Payload<'a> {
    pub(super) kind: Option<Text<'a>>,
    pub(super) turn: Option<Text<'a>>,
    /// The content of a message, as JSON.
    content: &'a [u8],
    call: Option<Text<'a>>,
    name: Option<Text<'a>>,
    title: Option<Text<'a>>,
    arguments: Option<Text<'a>>,
    output: &'a [u8],
    last_message: Option<Text<'a>>,
    failure: Option<Failure<'a>>,
    info: SessionInfo<'a>,
    policy: Option<Text<'a>>,
    reviewer: Option<Text<'a>>,
    item: Option<Text<'a>>,
    process: Option<Text<'a>>,
    item_id: Option<Text<'a>>,
    /// The text of an item.
    text: Option<Text<'a>>,
    role: Option<Text<'a>>,
    tokens: Tokens,
    /// The limits of the account, and when the last of those ends that are reached, in seconds since 1970.
    tells_limits: bool,
    limit_resets: Option<i64>,
}

/// Why a turn failed.
#[derive(Default)]
struct Failure<'a> {
    message: Option<Text<'a>>,
    kind: Option<&'a [u8]>,
    status: Option<i64>,
}

impl<'a> Payload<'a> {
    pub(super) fn read(&mut self, scan: &mut Scan<'a>) -> Result<(), Malformed> {
        scan.object_or_skip(|key, scan| {
            match key {
                b"type" => self.kind = scan.text()?,
                b"turn_id" => self.turn = scan.text()?,
                b"call_id" => self.call = scan.text()?,
                b"role" => self.role = scan.text()?,
                b"content" => self.content = value(scan)?,
                b"name" => self.name = scan.text()?,
                b"thread_name" => self.title = scan.text()?,
                b"arguments" => self.arguments = scan.text()?,
                b"output" => self.output = value(scan)?,
                b"last_agent_message" => self.last_message = scan.text()?,
                b"error" => self.failure = failure(scan)?,
                b"cwd" => self.info.cwd = scan.text()?,
                b"model" => self.info.model = scan.text()?,
                b"approval_policy" => self.policy = scan.text()?,
                b"approvals_reviewer" => self.reviewer = scan.text()?,
                b"git" => scan.object_or_skip(|key, scan| {
                    if key == b"branch" { scan.text().map(|branch| self.info.branch = branch) } else { scan.skip() }
                })?,
                b"info" => self.count(scan)?,
                b"rate_limits" => self.rate_limits(scan)?,
                b"item" => self.read_item(scan)?,
                _ => scan.skip()?,
            }
            Ok(())
        })
    }

    /// Reads what a `token_count` counts.
    fn count(&mut self, scan: &mut Scan<'a>) -> Result<(), Malformed> {
        scan.object_or_skip(|key, scan| {
            match key {
                b"last_token_usage" => self.tokens.context = total(scan)?,
                b"total_token_usage" => self.tokens.total = total(scan)?,
                b"model_context_window" => self.tokens.window = scan.number()?,
                _ => scan.skip()?,
            }
            Ok(())
        })
    }

    /// Reads the windows of the account's limits.
    fn rate_limits(&mut self, scan: &mut Scan<'a>) -> Result<(), Malformed> {
        scan.object_or_skip(|key, scan| {
            if !matches!(key, b"primary" | b"secondary" | b"individual_limit") {
                return scan.skip();
            }
            let (mut used, mut resets) = (None, None);
            scan.object_or_skip(|key, scan| {
                match key {
                    b"used_percent" => used = scan.number()?,
                    b"resets_at" => resets = scan.number()?,
                    _ => scan.skip()?,
                }
                Ok(())
            })?;
            self.tells_limits |= used.is_some();
            self.limit_resets = self.limit_resets.max(resets.filter(|_| used.is_some_and(|used| used >= 100)));
            Ok(())
        })
    }

    /// What it says of the limits of the account.
    pub(super) fn limit(&self) -> Option<Limit> {
        let is_count = self.kind == Some(Text(b"token_count"));
        let until = |at: i64| Limit::Until(Time(at.saturating_mul(1000)));
        (is_count && self.tells_limits).then(|| self.limit_resets.map_or(Limit::Free, until))
    }

    /// What it counts, if it is a count of tokens.
    pub(super) fn tokens(&self) -> Option<Tokens> {
        (self.kind == Some(Text(b"token_count"))).then_some(self.tokens)
    }

    /// Reads what an `item_completed` is about.
    fn read_item(&mut self, scan: &mut Scan<'a>) -> Result<(), Malformed> {
        scan.object_or_skip(|key, scan| {
            match key {
                b"type" => self.item = scan.text()?,
                b"id" => self.item_id = scan.text()?,
                b"text" => self.text = scan.text()?,
                b"process_id" => self.process = scan.text()?,
                b"content" => self.content = value(scan)?,
                _ => scan.skip()?,
            }
            Ok(())
        })
    }

    /// The text of a prompt, if this is one of the user's.
    pub(super) fn prompt(&self) -> Option<Text<'a>> {
        let first = self.content.strip_prefix(b"[").filter(|_| self.item == Some(Text(b"UserMessage")))?;
        let mut found = None;
        let mut each = |key: &'a [u8], scan: &mut Scan<'a>| match key {
            b"text" => scan.text().map(|text| found = text),
            _ => scan.skip(),
        };
        let _ = Scan::new(first).object(&mut each); // what is no message has no text
        found
    }

    /// What the model says.
    pub(super) fn message(&self, line: &[u8]) -> Option<Text<'a>> {
        match (line, self.kind?.0) {
            (b"event_msg", b"task_complete") => self.last_message,
            (b"response_item", b"message") if self.is_by_model() => {
                let mut found = None;
                // What is no message has no text.
                let _ = Scan::new(self.content).first_object(|key, scan| match key {
                    b"text" => scan.text().map(|text| found = text),
                    _ => scan.skip(),
                });
                found
            }
            _ => None,
        }
    }

    /// Whether it is an item that the model wrote.
    pub(super) fn is_by_model(&self) -> bool {
        match self.kind.map_or(&b""[..], |kind| kind.0) {
            b"function_call" | b"custom_tool_call" | b"reasoning" => true,
            b"message" => self.role == Some(Text(b"assistant")),
            _ => false,
        }
    }

    /// What an item that is complete says happened.
    fn item_done(&self) -> Body<'a> {
        match self.item.map_or(&b""[..], |item| item.0) {
            // Also of a shell that a tool waited for: that is no background shell, and known by no such id. Of several calls
            // at once each is told so when it is done; their outputs come together.
            b"CommandExecution" => Body::ShellDone { shell: self.process, call: self.item_id },
            // The terminal asks whether to carry it out.
            b"Plan" => {
                let plan = self.text.and_then(|text| Question::asked(&text.read(PLAN_MAX), &[]));
                plan.map_or(Body::Step, |plan| Body::Asks(Box::new(plan)))
            }
            // It opens no turn: that was done by a line of its own.
            b"UserMessage" => Body::Prompt { joins: true, continuation: false, autopilot: None },
            _ => Body::Step,
        }
    }

    /// What a line of this type says happened.
    pub(super) fn body(&self, line: &[u8]) -> Result<Body<'a>, Malformed> {
        let kind = self.kind.map_or(&b""[..], |kind| kind.0);
        Ok(match (line, kind) {
            (b"session_meta", _) => Body::Start(self.info.clone()),
            (b"turn_context", _) => Body::Context { info: self.info.clone(), asks_unseen: self.asks_user() },
            (b"response_item", b"function_call" | b"custom_tool_call") => self.tool_start()?,
            (b"response_item", b"function_call_output" | b"custom_tool_call_output") => self.tool_done()?,
            (b"response_item" | b"retained_context", _) => Body::Step,
            (b"event_msg", b"task_started") => Body::Prompt { joins: false, continuation: false, autopilot: None },
            (b"event_msg", b"task_complete") => self.turn_over(),
            (b"event_msg", b"turn_aborted") => Body::Abort,
            (b"event_msg", b"thread_name_updated") if let Some(title) = self.title => Body::Title(title),
            (b"event_msg", b"item_completed") => self.item_done(),
            (b"token_usage_record", _) => Body::ResponseEnd,
            // Counts of tokens, settings, and the state of the world: nothing that a turn does.
            _ => Body::Aside,
        })
    }

    /// Whether the user is asked for permissions, and not an automatic reviewer or nobody.
    fn asks_user(&self) -> bool {
        self.policy.is_some_and(|policy| policy.0 != b"never")
            && self.reviewer.is_none_or(|reviewer| reviewer.0 == b"user")
    }

    fn tool_start(&self) -> Result<Body<'a>, Malformed> {
        let arguments = self.arguments.map_or(&b""[..], |arguments| arguments.0);
        let asks = self.name == Some(Text(ASKS));
        Ok(Body::ToolStart {
            call: self.call.ok_or(Malformed)?,
            name: self.name,
            command: nested_text(arguments, b"cmd").or_else(|| nested_text(arguments, b"command")),
            detached: false,
            asks,
            question: if asks || self.name == Some(Text(ASKS_ON)) {
                question(Text(arguments).read(ARGUMENTS_MAX).as_bytes()).map(Box::new)
            } else {
                None
            },
            nested: true,
            asks_unseen: ESCALATED.iter().all(|mark| memchr::memmem::find(arguments, mark).is_some()),
        })
    }

    fn tool_done(&self) -> Result<Body<'a>, Malformed> {
        let output = &self.output[..self.output.len().min(OUTPUT)];
        let says = |words: &[u8]| memchr::memmem::find(output, words).map(|at| &output[at + words.len()..]);
        let begins = |words: &[u8]| output.strip_prefix(b"\"").is_some_and(|output| output.starts_with(words));
        let digits = |rest: &'a [u8]| &rest[..rest.iter().take_while(|byte| byte.is_ascii_digit()).count()];
        let result = if begins(b"approval policy is Never; reject") {
            ToolResult::Unasked
        } else if says(b"rejected by user").is_some() && begins(b"exec_command failed") {
            ToolResult::Denied
        } else if begins(b"exec_command failed")
            || begins(b"unsupported call")
            || begins(ASKS)
            || begins(b"aborted by user")
            || says(EXITED).is_some_and(|code| digits(code) != b"0")
        {
            ToolResult::Failure
        } else {
            ToolResult::Success
        };
        let shell = says(RUNNING).map(digits).filter(|id| !id.is_empty()).map(Text);
        Ok(Body::ToolDone { call: self.call.ok_or(Malformed)?, result, by_user: false, shell, ended: None })
    }

    fn turn_over(&self) -> Body<'a> {
        match &self.failure {
            Some(Failure { message, kind, status }) => {
                Body::Error { kind: kind.map(Text), message: *message, status: *status }
            }
            None => Body::TurnOver { asks: self.last_message.is_some_and(ends_in_question) },
        }
    }
}

/// Reads `error`: `{message, codex_error_info}`, where the latter is a word or an object with one key, and in that maybe
/// the HTTP status.
fn failure<'a>(scan: &mut Scan<'a>) -> Result<Option<Failure<'a>>, Malformed> {
    let mut found = None;
    scan.object_or_skip(|key, scan| {
        let failure: &mut Failure<'a> = found.get_or_insert_default();
        match key {
            b"message" => failure.message = scan.text()?,
            b"codex_error_info" => {
                let start = scan.clone();
                scan.object_or_skip(|key, scan| {
                    failure.kind = Some(key);
                    scan.object_or_skip(|key, scan| match key {
                        b"http_status_code" => scan.number().map(|status| failure.status = status),
                        _ => scan.skip(),
                    })
                })?;
                if failure.kind.is_none() {
                    failure.kind = start.clone().text()?.map(|word| word.0);
                }
            }
            _ => scan.skip()?,
        }
        Ok(())
    })?;
    Ok(found)
}

/// The number of all tokens in a count.
fn total(scan: &mut Scan<'_>) -> Result<Option<i64>, Malformed> {
    let mut found = None;
    scan.object_or_skip(|key, scan| match key {
        b"total_tokens" => scan.number().map(|count| found = count),
        _ => scan.skip(),
    })?;
    Ok(found)
}

/// The text of a value of any kind, which is skipped.
fn value<'a>(scan: &mut Scan<'a>) -> Result<&'a [u8], Malformed> {
    let start = scan.clone();
    scan.skip()?;
    Ok(scan.since(&start).trim_ascii_start())
}

/// The text with this key in JSON that stands in a JSON string, its escapes as in the line.
fn nested_text<'a>(json: &'a [u8], key: &[u8]) -> Option<Text<'a>> {
    let quoted = [b"\\\"", key, b"\\\""].concat();
    let after = &json[memchr::memmem::find(json, &quoted)? + quoted.len()..];
    let value = after.trim_ascii_start().strip_prefix(b":")?.trim_ascii_start().strip_prefix(b"\\\"")?;
    // A quote in the text itself has an escaped backslash before its own: an odd number of pairs.
    let is_end = |quote: &usize| {
        let backslashes = value[..*quote].iter().rev().take_while(|byte| **byte == b'\\').count();
        backslashes % 4 == 1
    };
    let end = memchr::memchr_iter(b'"', value).find(is_end)?;
    Some(Text(&value[..end - 1]))
}
