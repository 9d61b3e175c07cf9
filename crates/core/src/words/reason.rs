//! Why a session has its status.

use super::calls::Calls;
use super::refusal::consent;
use crate::agent::Agent;
use crate::owner::{Doubt, UNHELD, doubtful};
use crate::question::Question;
use crate::remote::Unreached;
use crate::session::NoAnswer;
use crate::short_reason::ShortReason;
use crate::text::{COMMAND_MAX, any_of, counted, plain, size};
use crate::time::{Moment, Span, Time};
use crate::turn::{Ending, Fault};
use crate::verdict::hook_report::HookActivity;
use crate::verdict::status::Status;
use serde::Serialize;
use std::borrow::Cow;
use std::fmt;

/// Maximum length of an error's message in a reason, in characters.
const FAULT_MAX: usize = 120;

said! {
    /// Why a session has its status.
    Reason {
        Unread => "no process has it open";
        Unowned { limit: Span } => "no process has it open, and it has been silent for more than {limit}";
        There { words: Box<str>, ended_denied: bool } => "{words}";
        ShutDown => "shut down";
        ShutDownAfterError { fault: Fault } => "shut down {}", after(fault);
        ProcessGone { is_seen: bool } => "its process is gone";
        ProcessEnded => "no process runs it any more";
        Crashed { ago: Span, is_seen: bool } => "crashed{} {ago} ago", if *is_seen { "" } else { ", last seen" };
        EndedDenied { denied: usize, of: usize } => "ended with permissions lost: {denied} of its last {of} tools denied";
        Failed { fault: Fault } => "{fault}";
        NoAnswer { no_answer: NoAnswer } => "{no_answer}";
        Unreached { unreached: Unreached } => "{unreached}";
        Unreadable { problem: Box<str> } => "{problem}";

        Consent { about_us: bool } => "{}", consent(*about_us);
        AsksPermission { kind: Box<str>, text: Option<Box<str>> } => "asks for permission: {kind}";
        ProbablyAsks { command: Option<Box<str>> } =>
            "probably asks in its terminal{}", command.iter().map(|it| format!(": {it}")).collect::<String>();
        ServerHasRequests { open: usize } =>
            "its server says that {} {} open",
            counted(*open, "permission request"), if *open == 1 { "is" } else { "are" };
        PermissionLost { denied: usize, of: usize } =>
            "{denied} of the last {of} tools denied: nobody could be asked";
        Asks { question: Question } =>
            "asks: \"{}\"{}", question.text, some(!question.choices.is_empty(), " ", any_of(&question.choices), "");
        LeftQuestion { question: Question } => "{}", Self::Asks { question: question.clone() };
        ToolAsks { tool: Box<str> } => "asks a question, by {tool}";
        AsksThere => "asks a question in its terminal";
        DialogAsks { tool: Box<str> } => "a dialog is open in its terminal, and {tool} waits for it";
        LeftUndone => "reconnected; its last prompt was not carried out";
        AsksInMessage => "its last message ends in a question";

        Silent { silence: Span, situation: Situation } => "silent {silence}, {situation}";
        Unheard { silence: Span, proof: Proof, agent: Agent } =>
            "{}{proof}{}", some(*silence > Span::ZERO, "silent ", silence, ", "),
            some(!matches!(proof, Proof::Unread { .. }), "; ", tries_again(agent), "");
        Answered => "the answer has come, but its turn has not ended yet";
        MayContinue => "answered; in autopilot it may continue by itself";
        WithoutMessage => "the model stopped without an answer";
        Works { work: Work, background: Background } => "{work}{background}";
        InBackground { background: Background } => "{}", background.parts().join(", ");
        WorksAsStated { by: Cow<'static, str> } => "{by} says that it works";
        ServerWorks => "its server reports active work";

        ByHook { said: HookActivity, reason: Option<Box<str>> } => "{}", by_its_hook(*said, reason.as_deref());
        NoWord { silence: Span, said: HookActivity, reason: Option<Box<str>> } =>
            "no report for {silence}; before that: {}", by_its_hook(*said, reason.as_deref());

        Opened => "opened, not prompted yet";
        Rests { unprompted: bool, ending: Option<Ending>, background: Background } =>
            "{}{background}", match rest(*unprompted, ending.as_ref()) {
                (why, true) => format!("{why}, your turn"),
                (why, false) => why.to_owned(),
            };
    }
}

said! {
    /// What is to be known besides the reason.
    Note {
        BySubAgent { name: Box<str> } => "by its sub-agent: {name}";
        Requests { open: usize } => "{open} requests are open";
        Questions { open: usize } => "{open} questions are open";
        NeverClosed => "answered, but never ended its turn";
        Unfinished { tools: Calls } => "unfinished: {tools}";
        RequestOpen => "unfinished: a permission request";
        TurnOpen => "in the middle of a turn";
        AfterError { fault: Fault } => "{}", after(fault);
        EndedDenied { denied: usize, of: usize } => "{}", Reason::EndedDenied { denied: *denied, of: *of };
        Dialog => "a dialog is open in its terminal";
        Denied { denied: usize, of: usize } => "{denied} of its last {of} tools denied: nobody could be asked";
        Stopped => "its process is stopped, and does nothing until it is continued";
        Untried { version: Box<str> } => "written by version {version}, which is untested";
        StartUnknown => "the start of its turn is unknown";
        NoProcess => "no process is known to run it";
        Untold { agent: Agent } => "this version of {agent} does not say which process runs it";
        TwoWriters => "conflict: two processes write this log";
        Contested { agent: Agent } => "conflict: {}", agent.contested();
        Unheld => "{UNHELD}";
        Doubtful { pid: u32, why: Doubt } => "unclear who runs it: {}", doubtful(*pid, *why);
        ApprovalRequested => "a program tried to approve this: do you approve it?";
        ApprovesAll => "approvals are switched off: it approves everything";
        Approved => "an earlier request was approved by `pilotlight approve`";
        ApprovalUnconfirmed => "a command sent an approval, and nothing confirms that it took effect";
        LimitUntil { at: Box<str> } => "usage limit until {at}";
        LimitOver { at: Box<str> } => "its usage limit ended at {at}";
        NearlyFull => "its context is nearly full";
        Wakes { at: Box<str> } => "wakes at {at}";
        Overdue { at: Box<str> } => "should have woken at {at}";
        Before { status: Status, because: Box<Because> } => "before that: {status}, {because}";
    }
}

said! {
    /// What is open during a silence, or what is waited for.
    What {
        Tool { name: Box<str> } => "running {name}";
        Compaction => "{}", Work::Compacts;
        SubAgent => "a sub-agent waits for its model";
        Untold => "what it does is not in its log";
        NoTool => "no tool running";
        ToolResult => "no answer to the last tool result";
        Prompt => "no tool used in this turn";
    }
}

said! {
    /// What was found out about a silence that only its limits can judge.
    ProbeFinding {
        Silent { age: Span, in_one_piece: bool } =>
            "its connection to the model has been silent {}{}",
            lasting(*age), if *in_one_piece { "; the answer may come in one piece" } else { "" };
        Kept { age: Span } => "its model gives signs of life, but no text {}", lasting(*age);
        NoConnection { agent: Agent } => "no connection to a model is open; {}", tries_again(agent);
        Unknown => "Pilotlight cannot see whether it receives an answer";
    }
}

said! {
    /// Why no answer can arrive as things are.
    Proof {
        Unanswered => "the network does not answer";
        Connecting => "it cannot reach its model";
        Unread { agent: Agent } => "{agent} does not read the data that arrived";
    }
}

said! {
    /// What a turn is at.
    Work {
        Receives { bytes: Option<u64>, within: Span } =>
            "receiving an answer{}", bytes.map(|bytes| format!(": {} in the last {within}", size(bytes))).unwrap_or_default();
        Compacts => "compacting its history";
        Resumed => "resumed with its pending work";
        Thinks => "the model thinks";
        Retries { tries: usize } => "no answer from its model: asked again {}", times(*tries);
        Tools { calls: Calls } => "running {calls}";
    }
}

/// What is going on during a silence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Situation {
    /// What is open, or waited for.
    pub what: What,
    /// A tool is open and its process busy: slow, but not stuck.
    pub runs_long: bool,
    /// What was found out about its model's answer.
    pub seen: Option<ProbeFinding>,
    /// The beginning of its turn was read.
    pub start_known: bool,
    /// It may be waiting for the user unseen: its server reports work, or its log does not show requests.
    pub may_ask: bool,
}

impl fmt::Display for Situation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, runs_long, seen, start_known, may_ask } = self;
        match what {
            What::Tool { name } if *runs_long => write!(f, "running long: {name}, its process is busy")?,
            what => write!(f, "{what}")?,
        }
        seen.iter().try_for_each(|seen| write!(f, "; {seen}"))?;
        f.write_str(if *start_known { "" } else { "; the start of its turn is unknown" })?;
        f.write_str(if *may_ask { "; it may be busy, or waiting for you" } else { "" })
    }
}

/// A session's background work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Background {
    /// Sub-agents at work.
    pub agents: usize,
    /// Running shells.
    pub shells: usize,
}

impl Background {
    fn parts(self) -> Vec<String> {
        let parts = [(self.agents, "background agent"), (self.shells, "background shell")];
        parts.into_iter().filter(|(n, _)| *n > 0).map(|(n, what)| counted(n, what)).collect()
    }
}

impl fmt::Display for Background {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.parts().iter().try_for_each(|part| write!(f, ", {part}"))
    }
}

impl fmt::Display for NoAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = if self.is_behind { "is not read while another one does not answer" } else { "does not answer" };
        write!(f, "its {} file system {what}", self.file_system)
    }
}

/// `rate limit (429): try again later`.
impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.kind_and_status())?;
        let message = self.message.as_deref().map(|message| plain(message, FAULT_MAX)).unwrap_or_default();
        if message.is_empty() { Ok(()) } else { write!(f, ": {message}") }
    }
}

/// `after an error (500): try again later`, `after an error: rate limit (429)`.
fn after(fault: &Fault) -> String {
    if fault.telling_kind().is_none() { format!("after an {fault}") } else { format!("after an error: {fault}") }
}

impl Fault {
    /// In the fewest words: `rate limit (429)`, or only the message where the kind tells nothing.
    fn brief(&self) -> String {
        match (self.telling_kind(), &self.message) {
            (None, Some(message)) if !message.is_empty() => message.to_string(),
            _ => self.kind_and_status(),
        }
    }

    fn kind_and_status(&self) -> String {
        let kind = self.telling_kind().unwrap_or("error").replace('_', " ");
        self.status.map_or_else(|| kind.clone(), |status| format!("{kind} ({status})"))
    }

    /// The kind, unless it is Copilot's generic one.
    fn telling_kind(&self) -> Option<&str> {
        self.kind.as_deref().filter(|kind| *kind != "query")
    }
}

/// Why a session has its status, and what is to be known besides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Because {
    /// The reason.
    pub reason: Reason,
    /// The rest, in the order in which it is said.
    pub notes: Vec<Note>,
}

impl From<Reason> for Because {
    fn from(reason: Reason) -> Self {
        Self { reason, notes: Vec::new() }
    }
}

impl Because {
    /// The same by name, for a log that may be shown to anybody: without anything that a session, a model or a server
    /// chose, but for the number of an HTTP status.
    pub fn named(&self) -> String {
        let mut names = vec![self.reason.name().to_owned()];
        match &self.reason {
            Reason::Failed { fault } | Reason::ShutDownAfterError { fault } => {
                names.extend(fault.status.map(|status| format!("HTTP {status}")));
            }
            Reason::Silent { situation: Situation { what, seen, .. }, .. } => {
                names.extend(
                    [Some(what.name()), seen.as_ref().map(ProbeFinding::name)].into_iter().flatten().map(Into::into),
                );
            }
            Reason::Unheard { proof, .. } => names.push(proof.name().into()),
            Reason::Works { work, .. } => names.push(work.name().into()),
            Reason::Rests { unprompted, ending, .. } => names.push(rest(*unprompted, ending.as_ref()).0.into()),
            _ => {}
        }
        names.extend(self.notes.iter().map(|note| note.name().into()));
        names.join(", ")
    }
}

/// What whoever read the log says of it.
impl From<&str> for Because {
    fn from(problem: &str) -> Self {
        Reason::Unreadable { problem: problem.into() }.into()
    }
}

impl fmt::Display for Because {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.reason)?;
        self.notes.iter().try_for_each(|note| write!(f, "; {note}"))
    }
}

impl Serialize for Because {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl Reason {
    /// The same with what is to be known besides.
    pub(crate) fn and(self, notes: impl IntoIterator<Item = Note>) -> Because {
        Because { reason: self, notes: notes.into_iter().collect() }
    }

    /// The kind and, if known, the text of the permission that it says is asked for.
    pub fn asks_permission(&self) -> Option<(&str, Option<&str>)> {
        match self {
            Self::AsksPermission { kind, text } => Some((kind, text.as_deref())),
            _ => None,
        }
    }

    /// In the fewest words, for a status that the session has since then. `last_activity`: what its silence counts from, if it is
    /// silent.
    pub(crate) fn short_reason(&self, status: Status, since: Time, last_activity: Moment) -> ShortReason {
        match self {
            Self::Failed { fault } => ShortReason::of(fault.brief()),
            Self::AsksPermission { text: Some(text), .. } => ShortReason::of(text),
            Self::AsksPermission { kind, .. } => ShortReason::of(format!("asks for {kind}")),
            Self::ProbablyAsks { command: Some(command) } => ShortReason::of(format!("probably asks: {command}")),
            Self::ProbablyAsks { command: None } => ShortReason::of("probably asks"),
            Self::ServerHasRequests { .. } => ShortReason::of("asks for permission"),
            Self::PermissionLost { .. } => ShortReason::of("permissions lost"),
            Self::Asks { question } | Self::LeftQuestion { question } => {
                ShortReason::of(format!("“{}”", question.text))
            }
            Self::ToolAsks { .. } | Self::AsksThere | Self::AsksInMessage => ShortReason::of("asks a question"),
            Self::NoAnswer { .. } => ShortReason::of("file system does not answer"),
            Self::Unreached { unreached } => ShortReason::of(format!("not reached since {}", unreached.since)),
            Self::Unheard { proof, .. } => ShortReason::of(proof),
            Self::Silent { situation, .. } => {
                let what = plain(&situation.to_string(), COMMAND_MAX);
                ShortReason::Silent { since: last_activity, what, runs_long: situation.runs_long }
            }
            Self::ProcessGone { is_seen: true } if status == Status::Crashed => ShortReason::rested("died", since),
            Self::ProcessGone { is_seen: false } if status == Status::Crashed => {
                ShortReason::Work("died".into(), since)
            }
            // What was never prompted is not done: it has no age. That it is the user's turn goes without saying.
            Self::Rests { unprompted: true, ending, .. } => ShortReason::of(rest(true, ending.as_ref()).0),
            Self::Rests { ending, background, .. } => {
                ShortReason::rested(format!("{}{background}", rest(false, ending.as_ref()).0), since)
            }
            Self::Crashed { .. } => ShortReason::of(self),
            _ if status == Status::Ended => ShortReason::rested(self, since),
            _ => ShortReason::of(self),
        }
    }
}

/// Why a session is at rest, and whether it is said that it is the user's turn.
fn rest(unprompted: bool, ending: Option<&Ending>) -> (&'static str, bool) {
    match ending {
        None if unprompted => ("no prompt yet", false),
        None => ("no turn is open", false),
        Some(Ending::Aborted) => ("stopped", true),
        Some(Ending::Resumed) => ("resumed", true),
        Some(Ending::PassedOver) => ("it went on after an error", true),
        Some(Ending::Unanswered) => ("its turn ended without an answer", false),
        Some(Ending::NeverClosed) => ("answered, but never ended its turn", false),
        Some(Ending::ResumedSilent) => ("resumed, nothing since", false),
        Some(Ending::ByFormerOwner) => ("its process was restarted", true),
        Some(Ending::NoActiveWork) => ("its server reports no active work", false),
        Some(_) => ("done", true),
    }
}

/// What an agent does about a model that it cannot hear.
fn tries_again(agent: &Agent) -> String {
    format!("{agent} tries again by itself")
}

fn times(n: usize) -> String {
    if n == 1 { "once".into() } else { counted(n, "time") }
}

/// What a hook says of its session.
fn by_its_hook(said: HookActivity, reason: Option<&str>) -> String {
    let what = match said {
        HookActivity::Working => "working",
        HookActivity::Blocked => "waits for you",
        HookActivity::Idle => "idle",
    };
    format!("{what}, says its hook{}", reason.map(|reason| format!(": {reason}")).unwrap_or_default())
}

fn lasting(age: Span) -> String {
    if age == Span::ZERO { format!("for less than {}", Span::minutes(1)) } else { format!("for {age}") }
}

fn some(is: bool, before: &str, words: impl fmt::Display, after: &str) -> String {
    if is { format!("{before}{words}{after}") } else { String::new() }
}

#[cfg(test)]
mod tests {
    use super::*;
    /// What a reason is called in the menu for this status, a minute on.
    fn brief(reason: &Reason, status: Status) -> String {
        let since = Moment::of(Time(1_700_000_000_000));
        reason.short_reason(status, since.wall, since).words(since.plus(Span::minutes(1)))
    }

    #[test]
    fn a_reason_is_told_in_the_fewest_words() {
        let no_answer = NoAnswer { file_system: "nfs".into(), since: Moment::default(), is_behind: false };
        let unheard = |proof| Reason::Unheard { silence: Span::ZERO, proof, agent: Agent::default() };
        let rests = |unprompted| Reason::Rests { unprompted, ending: None, background: Background::default() };
        for (reason, status, words) in [
            (Reason::ProbablyAsks { command: Some("make".into()) }, Status::NeedsPermission, "probably asks: make"),
            (Reason::ProbablyAsks { command: None }, Status::NeedsPermission, "probably asks"),
            (Reason::NoAnswer { no_answer }, Status::Quiet, "file system does not answer"),
            (unheard(Proof::Connecting), Status::Stuck, "it cannot reach its model"),
            (Reason::ProcessGone { is_seen: true }, Status::Crashed, "died, 1 min ago"),
            (Reason::ProcessGone { is_seen: false }, Status::Crashed, "died, last seen 1 min ago"),
            (Reason::ProcessGone { is_seen: true }, Status::Ended, "its process is gone, 1 min ago"),
            (Reason::ProcessGone { is_seen: false }, Status::Ended, "its process is gone, 1 min ago"),
            (Reason::Crashed { ago: Span::hours(2), is_seen: true }, Status::Ended, "crashed 2 h ago"),
            (rests(true), Status::Idle, "no prompt yet"),
            (rests(false), Status::Idle, "no turn is open, 1 min ago"),
        ] {
            assert_eq!(brief(&reason, status), words, "{reason:?}");
        }
    }

    /// Case 236: Copilot's own question about an extension is told from a request of a session.
    #[test]
    fn case_236_a_reason_is_named_without_what_others_chose() {
        let text = || Box::from("hunter2");
        let fault = || Fault { kind: Some(text()), message: Some(text()), status: Some(429) };
        let what = What::Tool { name: text() };
        let situation = Situation { what, runs_long: false, seen: None, start_known: true, may_ask: false };
        let silent =
            |seen| Reason::Silent { silence: Span::minutes(2), situation: Situation { seen, ..situation.clone() } };
        let question = Question { id: None, text: text(), choices: vec![text()] };
        let none = Background::default();
        let ending = Some(Ending::Shutdown { unfinished: vec![text()], error: Some(fault()) });
        for (reason, named) in [
            (Reason::Consent { about_us: false }, "Consent"),
            (Reason::AsksPermission { kind: text(), text: Some(text()) }, "AsksPermission"),
            (Reason::Failed { fault: fault() }, "Failed, HTTP 429"),
            (Reason::ShutDownAfterError { fault: fault() }, "ShutDownAfterError, HTTP 429"),
            (Reason::Unreadable { problem: text() }, "Unreadable"),
            (Reason::Asks { question }, "Asks"),
            (silent(None), "Silent, Tool"),
            (silent(Some(ProbeFinding::Unknown)), "Silent, Tool, Unknown"),
            (Reason::Works { work: Work::Thinks, background: none }, "Works, Thinks"),
            (
                Reason::Unheard { silence: Span::ZERO, proof: Proof::Connecting, agent: Agent::default() },
                "Unheard, Connecting",
            ),
            (Reason::Rests { unprompted: false, ending: None, background: none }, "Rests, no turn is open"),
            (Reason::Rests { unprompted: false, ending, background: none }, "Rests, done"),
        ] {
            assert_eq!(reason.and([]).named(), named);
        }
        let notes = [Note::TurnOpen, Note::AfterError { fault: fault() }, Note::Untried { version: text() }];
        let named = Reason::ProcessGone { is_seen: true }.and(notes).named();
        assert_eq!(named, "ProcessGone, TurnOpen, AfterError, Untried");
    }

    #[test]
    fn a_file_system_that_does_not_answer_is_named() {
        let words = |is_behind| NoAnswer { file_system: "nfs".into(), since: Moment::default(), is_behind }.to_string();
        assert_eq!(words(false), "its nfs file system does not answer");
        assert_eq!(words(true), "its nfs file system is not read while another one does not answer");
    }
}
