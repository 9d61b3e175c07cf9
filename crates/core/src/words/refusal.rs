//! Why an action is refused.

use crate::action::spec::Action;
use crate::agent::Agent;
use crate::attempts::ATTEMPTS;
use crate::owner::{Doubt, doubtful, process};
use crate::remote::Unreached;
use crate::session::{LetGo, NoAnswer};
use crate::text::{counted, plain};
use std::borrow::Cow;

/// Maximum length of a folder in a refusal, in characters.
const FOLDER_MAX: usize = 200;

said! {
    /// Why an action is refused.
    Refusal {
        UnderWay { action: Action } => "{} is under way", action.name();
        Unanswering { no_answer: NoAnswer } => "{no_answer}, so the session's state is unknown";

        ReadOnly { why: Cow<'static, str> } => "{why}";

        AnswerOnlyThere { agent: Agent, remedy: Remedy } => "answer it in its terminal{}", only_there(agent, remedy);
        AnsweredThere => "it was answered in the terminal first";
        SubAgentAsks =>
            "a sub-agent asks: answer in its terminal, or set `hold-sub-agents`";
        NoHook =>
            "the bridge was not asked: answer in its terminal, then restart the session";
        LetGo { why: LetGo } => "{}: answer in its terminal", let_go(*why);
        UntriedHook { agent: Agent, release: Box<str> } =>
            "bridge untested with {agent} {release}: use its terminal, or set `bridge-untried`";
        StopOnlyThere { agent: Agent } =>
            "press Esc in its terminal: other programs cannot stop {agent}";
        NoOrders { agent: Agent, resumable: bool } => "{agent} takes no prompts from other programs: {}",
            if *resumable { "resume it in a terminal" } else { "prompt it yourself" };
        OnlyCopilot => "only sessions of Copilot need this";
        NeverKilled => "end the session instead: a killed process leaves its tool running";
        Supervised { stop: Box<str> } => "its supervisor would start it again: to end it, type `{stop}`";
        InBackground { attach: Box<str> } => "it runs in the background: to see it, type `{attach}`";

        FolderGone { folder: Box<str>, id: Box<str> } =>
            "its folder {} is gone: run `pilotlight resume {id} --in DIR`", plain(folder, FOLDER_MAX);

        NoProcess => "no process runs it";
        NothingToStop => "no process runs it, so there is nothing to stop";
        NothingToEnd => "no process runs it, so there is nothing to end";
        Unheld { pid: u32 } => "its lock names process {pid}, which does not have it open";
        Opened { pid: u32 } =>
            "process {pid} has it open, not prompted yet: continue there";
        Runs { pid: u32 } => "process {pid} runs it: a second process would corrupt its history";
        IsServed { pid: u32 } =>
            "process {pid} serves all terminals: run the session's resume command in one";
        MayRun { pid: u32 } => "{} may run it, and cannot be inspected", process(*pid);
        Doubtful { pid: u32, why: Doubt } =>
            "it may still run: {}", doubtful(*pid, *why);
        Unreachable { instead: Instead, remedy: Remedy } => "{instead}{remedy}";
        NoService { instead: Instead, agent: Agent } =>
            "{instead}: {agent}'s daemon is off or not yours";
        NoPort { instead: Instead, pid: u32 } => "{instead}: process {pid} listens on no port";

        OfProgram => "a program runs it, not a terminal";
        NotShown { why: Cow<'static, str> } => "{why}";
        NoTurn => "no turn is open, so there is nothing to stop";
        NotAttached => "Pilotlight is not attached to it";

        Hosted => "it runs in a server of Pilotlight's own: detach instead";
        CloseThere => "it was opened and not prompted yet: close it in its terminal";
        NeverSignalled { pid: u32 } =>
            "{} cannot be inspected, so it is never signalled", process(*pid);
        NotItsAgent { pid: u32, agent: Agent } =>
            "process {pid} may not be {agent}: end it where it started";
        NoTerminal { pid: u32 } =>
            "another program started process {pid}: end the session there";
        IsService { pid: u32 } =>
            "process {pid} serves all terminals: close the session in its terminal";
        ServesTerminals { pid: u32 } =>
            "process {pid} serves all terminals: which one shows the session is unknown";
        Contested { agent: Agent } =>
            "{}: close one in its terminal", agent.contested();
        OthersOpen { pid: u32, others: usize } =>
            "process {pid} also runs {}: end this one in its terminal",
            counted(*others, "other session");
        Unproven { pid: u32 } =>
            "only a file names process {pid}: type `pilotlight stop --end`";
        OnlyByLock { pid: u32 } =>
            "only its lock names process {pid}: type `pilotlight stop`";

        AlreadyAttached => "Pilotlight is already attached to it";
        NotCutOff { resumable: bool } =>
            "its last turn was not cut off{}",
            if *resumable { ": resume it instead" } else { ", so there is nothing to continue" };
        NoPrompt => "its last prompt is not known";
        ResumeAndTell => "resume it in a terminal, then send it a prompt";
        StopFirst => "stop its turn first: it is still open";
        ToolRan => "a tool has run since your prompt: its work might be done twice";
        TurnOpen => "its turn is still open";
        SendThere => "resume it in a terminal, then send the prompt there";
        TriedEnough =>
            "tried {ATTEMPTS} times without a completed turn: send it a prompt";
        OwnerUnknown => "an unknown process just wrote its log";
        JustResumed => "it was just resumed: its new process does not show yet";
        NotAnId { agent: Agent } => "its id is not a valid {agent} id";

        NothingAsked => "it asks for no permission";
        OnlyYou { about_us: bool } => "only you can answer that: Copilot asks about {} rights", whose(*about_us);
        Managed => "your organisation's policy requires a person: answer it in its terminal";
        Watched { release: Box<str> } => "bridge untested with Copilot {release}: use its terminal, or set `bridge-untried`";
        AnswerThere =>
            "answer it in its terminal; `pilotlight let-answer` lets Pilotlight answer later requests";
        Declined => "you said no to Pilotlight in its terminal: answer it there";
        AsksFirst => "Copilot asks in its terminal whether Pilotlight may answer: answer that first";

        AnswerIn { place: Place, remedy: Remedy } => "answer it in {place}{remedy}";
        Unanswerable { why: Box<str> } => "answer it where it asks: {why}";
        NoQuestion => "it asks nothing that Pilotlight can see";
        AsksInMessage => "its last message asks you: reply where it runs";
        ReconnectFirst { place: Place } =>
            "reconnect first, or answer it in {place}";
        NotReported { place: Place } =>
            "its server reports no question: look in {place}";

        AtServer => "its server already takes your answers";
        BridgeUnheard => "{}", UNHEARD;
        NoBridge { remedy: Remedy } => "there is no bridge to its terminal{remedy}";
        MayAnswer => "you have already let Pilotlight answer in this session";
        OnlyWatches { release: Box<str> } => "{}", untried(release);
        DeclinedForSession =>
            "you said no to Pilotlight in its terminal: restart the session";
        AlreadyAsking => "Copilot is already asking in its terminal";
        Autopilot => "not possible in autopilot, in which Copilot asks nobody";
        There { host: Box<str>, why: Box<str> } => "on {host}: {why}";
        Unreached { host: Box<str>, unreached: Unreached } => "{host} is {unreached}";
        Untold { host: Box<str> } => "{host} does not say whether this is possible";
        ShownThere { host: Box<str> } => "its terminal is on {host}, and nothing on this machine shows it";
        ResumedThere { host: Box<str> } =>
            "resume it on {host}: it cannot be resumed from here";
        WouldInterrupt => "try again when it is idle: asking now would interrupt its work";
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
        PressEsc => "press Esc in its terminal, or end it with `pilotlight stop --end`";
        EscThere => "press Esc in its terminal";
        StopThere => "stop it in its own program";
        NoSecondProcess => "this would start a second process, which would corrupt its history";
        OnlyItsProgram => "only the program that started it can talk to it";
        AnswerThere => "answer it where it asks";
    }
}

said! {
    /// What would lift a refusal.
    Remedy {
        None => "";
        Bridge =>
            "; `pilotlight bridge install` makes it possible here";
        Anew =>
            "; restart the session to connect its bridge";
        Unheard => "; {}", UNHEARD;
        Release { release: Box<str> } => "; bridge untested with Copilot {release}: see `bridge-untried`";
    }
}

/// Why a session of an agent that takes no orders is answered in its terminal alone.
fn only_there(agent: &Agent, remedy: &Remedy) -> String {
    match remedy {
        Remedy::None => format!(": {agent} takes answers from nowhere else"),
        remedy => remedy.to_string(),
    }
}

/// Why what a hook asks is left to its terminal.
const fn let_go(why: LetGo) -> &'static str {
    match why {
        LetGo::TwoAsk => "two hooks ask in its name at once",
        LetGo::Full => "too much else waits for you",
        LetGo::TooMuch => "its request has too many parts to be shown",
    }
}

/// What keeps a process from being inspected.
pub(crate) const UNSEEN: &str = "it is another user's, in a container or just ending";

/// What a command says where no tray runs that would hear of a bridge.
const UNHEARD: &str = "the bridge answers only while `pilotlight` runs";

/// Why a bridge only watches.
pub(crate) fn untried(release: &str) -> String {
    format!("the bridge is untested with Copilot {release} and only watches; see `bridge-untried`")
}

said! {
    /// Where a question is answered.
    #[derive(Copy)]
    Place {
        Terminal => "its terminal";
        Program => "the program that runs it";
    }
}

/// Whose rights a question about an extension concerns.
const fn whose(about_us: bool) -> &'static str {
    if about_us { "Pilotlight's" } else { "an extension's" }
}

/// Describes a question about an extension's rights, which may be our bridge.
pub const fn consent(about_us: bool) -> &'static str {
    match about_us {
        true => "Copilot asks in its terminal whether Pilotlight may answer there",
        false => "Copilot asks in its terminal whether to give an extension more rights",
    }
}
