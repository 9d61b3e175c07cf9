//! Why an action is refused.

use crate::action::spec::Action;
use crate::agent::Agent;
use crate::attempts::ATTEMPTS;
use crate::owner::{Doubt, UNHELD, doubtful, process};
use crate::remote::Unreached;
use crate::session::NoAnswer;
use crate::text::{counted, plain};
use std::borrow::Cow;

/// Maximum length of a folder in a refusal, in characters.
const FOLDER_MAX: usize = 200;

said! {
    /// Why an action is refused.
    Refusal {
        UnderWay { action: Action } => "{} is under way", action.name();
        Unanswering { no_answer: NoAnswer } => "{no_answer}, so what it does now is unknown";

        ReadOnly { why: Cow<'static, str> } => "{why}";

        AnswerOnlyThere { agent: Agent, remedy: Remedy } => "answer it in its terminal{}", only_there(agent, remedy);
        AnsweredThere => "it was answered in the terminal first";
        SubAgentAsks =>
            "it asks in its terminal: a sub-agent; set `hold-sub-agents` to answer it from here";
        NoHook =>
            "answer it in its terminal: Claude Code calls no hook for this, or the session is older than the bridge (enter `/reload-plugins`) or than this Pilotlight (start it anew)";
        UntriedHook { agent: Agent, release: Box<str> } =>
            "answer it in its terminal: the bridge was not tried with {agent} {release}; `bridge-untried` in the settings allows it";
        StopOnlyThere { agent: Agent } =>
            "press Esc in its terminal, or end the session: {agent} can be stopped from nowhere else";
        NoOrders { agent: Agent, resumable: bool } => "{agent} takes no orders from other programs: {}",
            if *resumable { "resume it, and tell it there to go on" } else { "tell it where it runs" };
        NeverKilled => "end it instead: a killed process leaves its tool running";
        Supervised { stop: Box<str> } => "its supervisor would start it again: to end it, type `{stop}`";
        InBackground { attach: Box<str> } => "it runs in the background: to see it, type `{attach}`";

        FolderGone { folder: Box<str>, id: Box<str> } =>
            "its folder {} is gone: make it again, or choose another with `pilotlight resume {id} --in DIR`", plain(folder, FOLDER_MAX);

        NoProcess => "no process runs it";
        NothingToStop => "no process runs it, there is nothing to stop";
        NothingToEnd => "no process runs it, there is nothing to end";
        Unheld { pid: u32 } => "{UNHELD}: process {pid}";
        Opened { pid: u32 } =>
            "process {pid} has it open, not prompted yet: go on there, or close it first";
        Runs { pid: u32 } => "process {pid} runs it: a second process would corrupt its history";
        IsServed { pid: u32 } =>
            "process {pid} runs it for all terminals: run its resume command in a terminal, which joins it there";
        MayRun { pid: u32 } => "{} may run it, and cannot be inspected", process(*pid);
        Uninspectable { pid: u32 } =>
            "{} may run it, and cannot be inspected: {}", process(*pid), UNSEEN;
        Doubtful { pid: u32, why: Doubt } =>
            "{}, so it may still run: go on there, or try again once that has ended", doubtful(*pid, *why);
        Unreachable { instead: Instead, remedy: Remedy } => "{instead}{remedy}";
        NoService { instead: Instead, agent: Agent } =>
            "{instead}: {agent}'s daemon is off in the settings, or has no socket of yours";
        NoPort { instead: Instead, pid: u32 } => "{instead}: process {pid} listens on no port";

        OfProgram => "a program runs it, not a terminal";
        NotShown { why: Cow<'static, str> } => "{why}";
        NoTurn => "no turn is open, there is nothing to stop";
        NotAttached => "Pilotlight is not attached to it";

        Hosted => "it runs in a server of Pilotlight's own: detach instead";
        CloseThere => "it was opened and not prompted yet: close it in its terminal";
        NeverSignalled { pid: u32 } =>
            "{} cannot be inspected, and is never signalled: {}", process(*pid), UNSEEN;
        NotItsAgent { pid: u32, agent: Agent } =>
            "process {pid} is not known to run {agent}, and is never signalled: end it where it was started";
        NoTerminal { pid: u32 } =>
            "process {pid} is not a terminal session: end it in the program that started it";
        IsService { pid: u32 } =>
            "process {pid} is a service that runs the sessions of all terminals, and is never signalled: close the session in its terminal";
        ServesTerminals { pid: u32 } =>
            "process {pid} runs the sessions of all terminals, and nothing tells which of them shows this one";
        Contested { agent: Agent } =>
            "two live processes have {}: end it in the terminal you want to close", agent.contested();
        OthersOpen { pid: u32, others: usize } =>
            "process {pid} has {} open, which would end as well: end it in its terminal",
            counted(*others, "other session");
        Unproven { pid: u32 } =>
            "only a file, which any program can write, says that process {pid} runs it: type `pilotlight stop --end`, which shows the process and asks";
        OnlyByLock { pid: u32 } =>
            "only its lock says that process {pid} runs it: use `pilotlight stop`, which asks first";

        AlreadyAttached => "Pilotlight is already attached to it";
        NotCutOff { resumable: bool } =>
            "its last turn was neither denied nor cut off{}",
            if *resumable { ": there is nothing to go on with; resume it instead" } else { "" };
        NoPrompt => "its last prompt is not known";
        ResumeAndTell => "a terminal resumes it: resume it, and tell it there to go on";
        StopFirst => "its turn is still open: stop that first";
        ToolRan => "a tool ran since, and what it did might be done twice";
        TurnOpen => "its turn is still open";
        SendThere => "a terminal resumes it: send it there";
        TriedEnough =>
            "it was tried {ATTEMPTS} times, and no turn has completed since: send it a prompt, or start a new session";
        OwnerUnknown => "it was written to a moment ago, and its owner is not known";
        JustResumed => "it was resumed less than a minute ago, and its new process does not show yet";
        NotAnId { agent: Agent } => "its id is not in {agent}'s form, and no other is passed to a program";

        NothingAsked => "it asks for no permission";
        OnlyYou { about_us: bool } => "{}: only you can say that", consent(*about_us);
        Managed => "answer it in its terminal: your organisation wants a person to answer it there";
        Watched { release: Box<str> } => "answer it in its terminal: {}", untried(release);
        AnswerThere =>
            "answer it in its terminal; once the session is idle, “{}” in its menu is for the next ones",
            Action::LetAnswer.menu_label().trim_end_matches('…');
        Declined => "answer it in its terminal: you told Copilot there that Pilotlight may not";
        AsksFirst => "Copilot asks in its terminal whether Pilotlight may answer: answer that first";

        AnswerIn { place: Place, remedy: Remedy } => "answer it in {place}{remedy}";
        Unanswerable { why: Box<str> } => "answer it where it asks: {why}";
        NoQuestion => "it asks nothing that Pilotlight can see";
        AsksInMessage => "it asks in its last message: send it a prompt where it runs";
        ReconnectFirst { place: Place } =>
            "answer it in {place}, or reconnect first: its server shows questions to attached clients only";
        NotReported { place: Place } =>
            "its server reports no open question: it was answered just now, or answer it in {place}";

        AtServer => "it is answered over its server";
        BridgeUnheard => "{}", UNHEARD;
        NoBridge { remedy: Remedy } => "there is no bridge to its terminal{remedy}";
        MayAnswer => "Pilotlight may already answer there";
        OnlyWatches { release: Box<str> } => "{}", untried(release);
        DeclinedForSession =>
            "you told Copilot there that Pilotlight may not: that holds until the session is restarted";
        AlreadyAsking => "Copilot is already asking in its terminal";
        Autopilot => "not in autopilot, where Copilot asks nobody";
        There { host: Box<str>, why: Box<str> } => "on {host}: {why}";
        Unreached { host: Box<str>, unreached: Unreached } => "{host} is {unreached}";
        Untold { host: Box<str> } => "{host} does not say whether it can be done there";
        ShownThere { host: Box<str> } => "its terminal is on {host}, and nothing on this machine shows it";
        ResumedThere { host: Box<str> } =>
            "resume it on {host}: it is reached by a command of the settings, which opens no terminal there";
        WouldInterrupt => "only while it waits for your next prompt: the question would interrupt its work";
    }
}

impl From<Refusal> for String {
    fn from(refusal: Refusal) -> Self {
        refusal.to_string()
    }
}

said! {
    /// What to do instead, where a session's server cannot be reached, or why that is needed.
    Instead {
        PressEsc => "press Esc there, or end the session with `pilotlight stop --end`";
        EscThere => "press Esc in its terminal";
        StopThere => "stop it in its own program";
        NoSecondProcess => "a second process would corrupt its history";
        OnlyItsProgram => "only the program that started it can talk to it";
        AnswerThere => "answer it where it asks";
    }
}

said! {
    /// What would lift a refusal.
    Remedy {
        None => "";
        Bridge =>
            "; no bridge answers in its terminal: run `pilotlight bridge install` once, and start the session anew";
        Anew =>
            "; no bridge answers in its terminal, which is older than the bridge or has no extensions: start the session anew";
        Unheard => "; {}", UNHEARD;
        Release { release: Box<str> } => "; {}", untried(release);
    }
}

/// Why a session of an agent that takes no orders is answered in its terminal alone.
fn only_there(agent: &Agent, remedy: &Remedy) -> String {
    match remedy {
        Remedy::None => format!(": {agent} takes answers from nowhere else"),
        remedy => remedy.to_string(),
    }
}

/// What keeps a process from being inspected.
pub(crate) const UNSEEN: &str = "it is another user's, a container's, or just ending";

/// What a command says where no tray runs that would hear of a bridge.
const UNHEARD: &str = "whether a bridge reaches its terminal is not known without a tray";

/// Why a bridge only watches.
pub(crate) fn untried(release: &str) -> String {
    format!(
        "the bridge was not tried with Copilot {release} and only watches; `bridge-untried` in the settings allows more"
    )
}

said! {
    /// Where a question is answered.
    #[derive(Copy)]
    Place {
        Terminal => "its terminal";
        Program => "the program that runs it";
    }
}

/// Describes a question about an extension's rights, which may be our bridge.
pub const fn consent(about_us: bool) -> &'static str {
    match about_us {
        true => "Copilot asks in its terminal whether Pilotlight may answer there",
        false => "Copilot asks in its terminal whether an extension may do more",
    }
}
