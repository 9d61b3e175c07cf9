//! What was observed of one session: its log, its folder, its owner, its server, and our own relation to it.

mod control;

pub use control::{Bridge, BridgeSetup, Control, LetGo, ServerState};

use super::action::spec::Action;
use super::agent::Agent;
use super::facts::Facts;
use super::limits::Limits;
use super::owner::{HoldProof, Owner};
use super::remote::Remote;
use super::stream_probe::ProbeResult;
use super::time::Moment;
use super::time::{Span, Time};
use super::verdict::hook_report::{HookActivity, HookReport};
use super::verdict::reported_state::{ReportedState, State, Wait};
use super::verdict::{Answer, Liveness};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::sync::Arc;

/// The number of one home of one agent. A home keeps its number as long as the program runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HomeId(pub usize);

/// Identifies a session among all sources.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// The remote machine that it is on. `home` means nothing then.
    pub host: Option<Arc<str>>,
    /// Its source.
    pub home: HomeId,
    /// Its id, which is unique within its home.
    pub id: Arc<str>,
}

impl Key {
    /// The session of this source with this id.
    pub fn new(home: HomeId, id: impl Into<Arc<str>>) -> Self {
        Self { host: None, home, id: id.into() }
    }

    /// The session of another machine with this id.
    pub fn remote(host: impl Into<Arc<str>>, id: impl Into<Arc<str>>) -> Self {
        Self { host: Some(host.into()), home: HomeId::default(), id: id.into() }
    }
}

/// One session: what was observed of it, and our own relation to it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Session {
    /// Its id.
    pub id: Box<str>,
    /// What its agent's files and processes say of it.
    pub observed: Observed,
    /// What is known from sources other than the log.
    pub liveness: Liveness,
    /// What we do with it.
    pub control: Control,
    /// When the user last looked at it.
    pub seen: Option<Time>,
    /// Why changes of its files may cause no file event, if they may not.
    pub no_file_events: Option<NoFileEvents>,
    /// Its host's report, if it is on another machine. This machine neither runs nor controls it.
    #[serde(skip)]
    pub remote: Option<Box<Remote>>,
    /// The process that runs it, and why its terminal cannot be brought to the front, if it cannot.
    pub terminal: Option<(u32, Option<Cow<'static, str>>)>,
    /// Its file system does not answer: everything else is from before.
    pub no_answer: Option<NoAnswer>,
}

/// What an agent's files and processes say of a session.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Observed {
    /// Which agent it is of.
    pub agent: Agent,
    /// How the agent describes it.
    pub about: About,
    /// The facts from its log.
    pub facts: Facts,
    /// What its own hook says of it, if nothing else is known.
    pub hook_report: Option<HookReport>,
    /// Who runs it.
    pub owner: Owner,
    /// This release of its agent leaves no trace of who runs a session, so an unknown owner may still exist.
    pub is_untold: bool,
    /// How well it is established that its owner has it open.
    pub held: HoldProof,
    /// The processes that have, or may have, it open. Excludes those that created their lock just now
    /// ([`HoldProof::Pending`]).
    pub holders: Vec<u32>,
    /// Several live processes have a lock on it, or say that they run it.
    pub contested: bool,
    /// Why its log cannot be read, in words for the user.
    pub problem: Option<Box<str>>,
    /// Its log is long, and nothing of it is known yet: it is still being read.
    pub is_loading: bool,
    /// When its log was last written; its folder, if it has no log.
    pub touched: Time,
    /// A log exists, or something else under its name.
    pub has_log: bool,
    /// Its log was not read: no process has it open, and the log is too old to matter.
    pub unread: bool,
    /// What its agent allows other programs to do with it.
    pub allows: Allows,
    /// What an authority beside its log states.
    pub reported_state: Option<ReportedState>,
    /// The tmux pane that shows it, by tmux's id.
    pub pane: Option<Box<str>>,
    /// Its process is stopped, by a signal or a debugger.
    pub is_stopped: bool,
    /// Its process is not known to run its agent: it is never signalled.
    pub is_foreign: bool,
    /// The version of its agent that wrote it, if that was not tried.
    pub untried: Option<Box<str>>,
    /// After how long a silence of its model its agent asks again by itself, if it does.
    pub asks_again_after: Option<Span>,
    /// How its user reaches it, if a supervisor of its agent runs it and would start it again.
    pub supervised: Option<Supervised>,
    /// Its owner is a service of its agent, which runs the sessions of all terminals: it is never signalled.
    pub is_served: bool,
    /// How far the user's clock, which they are told times by, is ahead of UTC.
    #[serde(default)]
    pub clock_offset: Span,
}

/// How the user reaches a session that a supervisor of its agent runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Supervised {
    /// The command that shows it.
    pub attach: Box<str>,
    /// The command that ends it.
    pub stop: Box<str>,
}

/// What a session's agent allows other programs to do with it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Allows {
    /// All that its server, its bridge and its process allow.
    #[default]
    All,
    /// These actions alone.
    Only {
        /// The actions.
        actions: Cow<'static, [Action]>,
        /// Why not the others.
        why: Cow<'static, str>,
    },
    /// What needs nothing but its process and its terminal: it takes no orders.
    Process,
    /// Nothing but to look at it.
    Nothing {
        /// Why.
        why: Cow<'static, str>,
    },
}

impl Allows {
    /// Whether it names what can be done: then some of that may be done over a service of its agent.
    pub const fn names_actions(&self) -> bool {
        matches!(self, Self::Only { .. })
    }
}

/// Why changes of a session's folder may cause no file event. It is looked at every few seconds instead while a process
/// may have it open, else with the rescan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum NoFileEvents {
    /// What the folder is on, in a word for the user.
    FileSystem(Cow<'static, str>),
    /// The system refused to watch it.
    Refused,
}

/// How an agent describes a session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct About {
    /// Its title.
    pub name: Option<Box<str>>,
    /// The folder it works in.
    pub cwd: Option<Box<str>>,
    /// The git branch there.
    pub branch: Option<Box<str>>,
    /// How it is used.
    pub kind: Kind,
    /// When it was created.
    pub created: Option<Time>,
}

impl Kind {
    /// Its name in JSON.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Terminal => "terminal",
            Self::Sdk => "sdk",
            Self::Unknown => "unknown",
        }
    }

    /// The kind of this name; unknown if there is none.
    pub(crate) fn named(name: &str) -> Self {
        [Self::Terminal, Self::Sdk].into_iter().find(|kind| kind.name() == name).unwrap_or_default()
    }
}

/// How a session is used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// In a terminal.
    Terminal,
    /// By a program, over the SDK.
    Sdk,
    /// Unknown.
    #[default]
    Unknown,
}

impl Session {
    /// A session of this agent, of which nothing else is known yet.
    pub fn new(agent: Agent, id: &str) -> Self {
        Self { id: id.into(), observed: Observed { agent, ..Observed::default() }, ..Self::default() }
    }

    /// The limits that apply to it: it is not stuck before its agent would ask its model again.
    pub fn limits(&self, limits: &Limits) -> Limits {
        let at_least = self.observed.asks_again_after.unwrap_or_default();
        Limits {
            fresh_stuck: limits.fresh_stuck.max(at_least),
            thinking_stuck: limits.thinking_stuck.max(at_least),
            ..*limits
        }
    }

    /// Whether to list it. A session without a prompt is listed only while its owner may be alive.
    pub fn is_listed(&self) -> bool {
        self.remote.is_some()
            || self.observed.facts.progress.is_some()
            || self.observed.problem.is_some()
            || self.no_answer.is_some()
            || self.observed.unread && self.observed.has_log
            || self.observed.hook_report.is_some() && !matches!(self.observed.owner, Owner::Gone { .. })
            || self.may_be_open()
    }

    /// Whether a live process may have it open.
    pub const fn may_be_open(&self) -> bool {
        match self.observed.owner {
            Owner::Alive { .. }
            | Owner::Opened { .. }
            | Owner::Unheld { .. }
            | Owner::Unknown { .. }
            | Owner::Doubtful { .. } => true,
            Owner::Never | Owner::Gone { .. } => false,
        }
    }

    /// The process that runs it: its owner, or a server of our own that has not written a lock yet.
    pub fn runner(&self) -> Owner {
        match (&self.observed.owner, &self.control.server) {
            (Owner::Alive { .. }, _) => self.observed.owner.clone(),
            (_, &ServerState::Hosted(pid)) => Owner::Alive { pid, started: None },
            (owner, _) => owner.clone(),
        }
    }

    /// Whether secrets may be sent to its owner: a live one that provably holds the session, or for which that cannot
    /// be checked. Never one that has only just created its lock ([`HoldProof::Pending`]).
    pub const fn may_be_trusted(&self) -> bool {
        matches!(self.observed.owner, Owner::Alive { .. }) && !matches!(self.observed.held, HoldProof::Pending)
    }

    /// The server's answer to what it does, without attaching, if nothing has happened since.
    pub fn answer(&self) -> Option<&Answer> {
        self.liveness.answer(&self.observed.facts)
    }

    /// When it last asked its model, if it waits for an answer now: its turn does, or one of its sub-agents may.
    pub fn asked_model(&self) -> Option<Time> {
        let may_wait = self.observed.facts.waits_for_model() || !self.observed.facts.sub_agents.is_empty();
        self.observed.facts.asked.filter(|_| may_wait).map(|at| at.wall)
    }

    /// Whether it is known to have its answers streamed: a terminal always has.
    pub fn streams(&self) -> bool {
        self.observed.about.kind != Kind::Sdk || self.liveness.streams
    }

    /// What was found out about its model's answer, if its turn waits for one and nothing has happened since.
    pub fn probe_result(&self) -> Option<ProbeResult> {
        let stream_probe =
            self.liveness.stream_probe(&self.observed.facts).filter(|_| self.observed.facts.waits_for_model())?;
        Some(stream_probe.probe_result)
    }

    /// Whether it runs, and everything is approved without asking, by its log, its bridge or its server.
    pub fn approves_all(&self) -> bool {
        self.may_be_open() && (self.observed.facts.approves_all.is_some() || self.reported_approvals() == Some(true))
    }

    /// Whether everything is approved without asking, by the word of its bridge, or of its server if the log tells of no
    /// change since. `None`: they were not asked, or do not tell.
    pub fn reported_approvals(&self) -> Option<bool> {
        let is_current = |at| self.observed.facts.approvals_at.is_none_or(|changed| changed <= at);
        let server = self.liveness.approves_all.filter(|(_, at)| is_current(*at)).map(|(all, _)| all);
        self.control.approves_all.into_iter().chain(server).reduce(|one, other| one || other)
    }

    /// Whether a command that may not be a person's wants to approve its oldest request.
    pub fn is_approval_requested(&self) -> bool {
        let open = self.observed.facts.requests.iter().find(|request| !request.is_consent());
        self.control
            .approval_requested
            .as_deref()
            .is_some_and(|wanted| open.is_some_and(|open| *open.request == *wanted))
    }

    /// Whether what its bridge reported last, in this turn, was answered in its terminal.
    pub(crate) fn is_answered_there(&self) -> bool {
        // Of a session that is known by its reports, no turn is known.
        if self.observed.hook_report.is_some() {
            return self.control.answered_there.is_some();
        }
        let waits = self.waits_for().is_some();
        !waits && self.control.answered_there.is_some() && self.control.answered_there == self.observed.facts.turn_id
    }

    /// Whether a sub-agent asks in its terminal, as its process says.
    pub(crate) fn is_asked_by_sub_agent(&self) -> bool {
        let root_waits = self.observed.facts.turn.as_ref().is_some_and(|turn| !turn.tools.is_empty());
        self.lacks_hook() && !root_waits && !self.observed.facts.sub_agents.is_empty()
    }

    /// Whether it waits for its user, and none of its hooks asks us, although they are listened for.
    pub(crate) fn lacks_hook(&self) -> bool {
        let is_reached = self.control.bridge_setup == BridgeSetup::Installed && self.control.bridge.is_none();
        is_reached && self.waits_for().is_some()
    }

    /// Whether its own hook says that it waits for its user.
    pub(crate) fn is_blocked(&self) -> bool {
        self.observed.hook_report.as_ref().is_some_and(|told| told.said == HookActivity::Blocked)
    }

    /// What it waits for, as an authority states it.
    fn waits_for(&self) -> Option<Wait> {
        match self.observed.reported_state.as_ref()?.state {
            State::Waiting(wait) => Some(wait),
            State::Busy | State::Idle { .. } | State::Ended => None,
        }
    }

    /// The folder it works in.
    pub fn cwd(&self) -> Option<&str> {
        self.observed.about.cwd.as_deref().or(self.observed.facts.cwd.as_deref())
    }
}

/// A file system that does not answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NoAnswer {
    /// What it is, in a word for the user.
    pub file_system: Cow<'static, str>,
    /// When it was first asked in vain.
    pub since: Moment,
    /// It could not even be asked: all of them are asked in turn, and one before it does not answer.
    pub is_behind: bool,
}

#[cfg(test)]
mod tests;
