//! All sessions together: what is shown of each, in which order, under which name, and what changed.

mod glance;
mod naming;

pub use super::gist::TurnShown;
pub use glance::{Glance, Group, State, mark, shorten, sort};
pub use naming::{Label, ShortIds, TOLD_APART, distinguish, short_id};

use super::action::{Bridge, Control, ServerState, bridge_of, offers};
use super::asked::Question;
use super::gist::Gist;
use super::limits::Limits;
use super::owner::{Held, Owner, UNHELD};
use super::session::Facts;
use super::time::{Moment, Span, Time};
use super::verdict::{Answer, Live, Status, Verdict, age_step, judge};
use serde::Serialize;

/// What was observed of one session.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Session {
    /// Its folder's name.
    pub id: Box<str>,
    /// What its `workspace.yaml` says.
    pub about: About,
    /// What its log says.
    pub facts: Facts,
    /// Who runs it.
    pub owner: Owner,
    /// What shows that its owner has it open.
    pub held: Held,
    /// The processes that have it open, or may have. Not those that made their lock just now ([`Held::Soon`]).
    pub holders: Vec<u32>,
    /// More than one live process has a lock on it.
    pub contested: bool,
    /// What is known beside the log.
    pub live: Live,
    /// What we have to do with it.
    pub control: Control,
    /// Why its log cannot be read, in words for the user.
    pub problem: Option<Box<str>>,
    /// When its log, or else its folder, was last written.
    pub touched: Time,
    /// There is a log, or something in its place.
    pub has_log: bool,
    /// Only the folder was looked at: no process has it open, and its log is too old to matter.
    pub unread: bool,
    /// When the user last looked at it.
    pub seen: Option<Time>,
}

/// What `workspace.yaml` says of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
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

/// How a session is used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// In a terminal.
    Terminal,
    /// By a program, over the SDK.
    Sdk,
    /// Not known.
    #[default]
    Unknown,
}

/// One session as it is shown everywhere: in the table, in the menu, in JSON.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// The session's id.
    pub id: Box<str>,
    /// Its title, else its folder; told apart from the others'.
    pub name: String,
    /// The folder it works in.
    pub cwd: Option<Box<str>>,
    /// The git branch there.
    pub branch: Option<Box<str>>,
    /// How it is used.
    pub kind: Kind,
    /// What it does.
    pub status: Status,
    /// Since when.
    pub since: Time,
    /// The last sign of life in its log.
    pub last_progress: Option<Time>,
    /// Why it has this status.
    pub because: String,
    /// It became idle, or asked, since the user last looked.
    pub unseen: bool,
    /// Who runs it.
    pub owner: Option<OwnerShown>,
    /// What goes on in the background.
    pub background: Background,
    /// What can be done with it now.
    pub actions: Vec<&'static str>,
    /// What people are shown for it: its folder first, then its title. Told apart from the others' before any cut.
    pub label: Label,
    /// The turn that is open.
    pub turn: Option<TurnShown>,
    /// What it asks, where it is `needs-input` and that is known.
    pub question: Option<Question>,
    /// It was shut down while its tools were denied: told as lost permissions.
    #[serde(skip)]
    pub ended_denied: bool,
    /// Why it has this status, in the fewest words.
    #[serde(skip)]
    pub gist: Gist,
    /// The user has looked at it since it has this status.
    #[serde(skip)]
    pub looked_at: bool,
}

/// An owner as it is shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OwnerShown {
    /// Its process id.
    pub pid: u32,
    /// `alive`, `gone` or `unknown`.
    pub state: &'static str,
    /// Whether it is a server that we can attach to; `None` where that was not tried.
    pub attachable: Option<bool>,
    /// The bridge to its terminal: `joined`, or `elevated` where it may answer permission requests. `None`: there is none, or nobody
    /// listens for it.
    pub bridge: Option<&'static str>,
}

/// What goes on in the background of a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Background {
    /// Sub-agents at work.
    pub agents: usize,
    /// Shells that run on.
    pub shells: usize,
}

impl Session {
    /// Whether there is anything to show: a session without a prompt shows only while its owner may live.
    pub fn is_listed(&self) -> bool {
        self.facts.progress.is_some()
            || self.problem.is_some()
            || self.unread && self.has_log
            || match self.owner {
                Owner::Alive { .. } | Owner::Opened { .. } | Owner::Unheld { .. } | Owner::Unknown { .. } => true,
                Owner::Never | Owner::Gone { .. } => false,
            }
    }

    /// Who runs it: its owner, or a server of our own that has not written a lock yet.
    pub(crate) fn runner(&self) -> Owner {
        match (&self.owner, &self.control.server) {
            (Owner::Alive { .. }, _) => self.owner.clone(),
            (_, &ServerState::Hosted(pid)) => Owner::Alive { pid, started: None },
            (owner, _) => owner.clone(),
        }
    }

    /// Whether a secret may be told to its owner: the owner provably holds it, or there is nothing by which that could be seen.
    pub const fn may_be_trusted(&self) -> bool {
        matches!(self.owner, Owner::Alive { .. }) && !matches!(self.held, Held::Soon)
    }

    /// What its server said when it was asked without attaching, if nothing happened since.
    pub fn answer(&self) -> Option<&Answer> {
        self.live.answer(&self.facts)
    }

    /// Judges the session, and words it.
    pub fn row(&self, now: Moment, limits: &Limits) -> (Row, Verdict) {
        let mut verdict = self.judge(now, limits);
        if self.contested {
            verdict.because.push_str("; conflict: two live processes have a lock on it");
        }
        if let Owner::Unheld { .. } = self.owner {
            verdict.because.push_str(&format!("; {UNHELD}"));
        }
        let (name, label) = self.names();
        let row = Row {
            id: self.id.clone(),
            name,
            cwd: self.cwd().map(Into::into),
            branch: self.about.branch.clone().or_else(|| self.facts.branch.clone()),
            kind: self.about.kind,
            status: verdict.status,
            since: verdict.since,
            last_progress: self.facts.progress.map(|at| at.wall).or_else(|| self.unread.then_some(self.touched)),
            because: verdict.because.clone(),
            unseen: self.is_unseen(&verdict),
            owner: self.owner_shown(),
            background: Background {
                agents: self.facts.background_agents(now, limits).count(),
                shells: self.facts.shells.len(),
            },
            actions: self.actions(verdict.status),
            label,
            turn: verdict.turn,
            ended_denied: verdict.ended_denied,
            question: verdict.question.clone(),
            gist: match self.control.under_way {
                Some(action) => Gist::of(&format!("{} under way", action.name())),
                None => verdict.gist.clone(),
            },
            looked_at: self.seen.is_some_and(|seen| seen >= verdict.since),
        };
        (row, verdict)
    }

    fn judge(&self, now: Moment, limits: &Limits) -> Verdict {
        let plain = |status, since, because: String| Verdict {
            status,
            since,
            gist: if status == Status::Ended { Gist::rested(&because, since) } else { Gist::of(&because) },
            because,
            by_message: false,
            question: None,
            recheck_at: None,
            limit_at: None,
            sample_at: None,
            turn: None,
            ended_denied: false,
        };
        if self.unread {
            return plain(Status::Ended, self.touched, "no process has it open".into());
        }
        let mut verdict = judge(&self.facts, &self.runner(), &self.live, self.seen, now, limits);
        if let Some(problem) = &self.problem {
            // What cannot be read cannot be judged: no guess, but for what the owner's end says.
            let over = matches!(self.owner, Owner::Gone { .. }) || self.owner == Owner::Never && self.has_log;
            let status = if over { Status::Ended } else { Status::Quiet };
            return plain(status, self.touched, problem.to_string());
        }
        if self.facts.progress.is_none() && !matches!(self.owner, Owner::Opened { started: Some(_), .. }) {
            verdict.since = self.about.created.unwrap_or(self.touched);
        }
        verdict
    }

    fn cwd(&self) -> Option<&str> {
        self.about.cwd.as_deref().or(self.facts.cwd.as_deref())
    }

    fn is_unseen(&self, verdict: &Verdict) -> bool {
        let had_turn = self.facts.closed.is_some() || self.facts.turn.is_some();
        // Whoever opened it again has it before their eyes.
        let reopened = matches!(self.owner, Owner::Opened { .. });
        let news = verdict.status == Status::Idle && had_turn && !reopened || verdict.by_message;
        news && self.seen.is_none_or(|seen| seen < verdict.since)
    }

    /// The names of what can be done with it now.
    fn actions(&self, status: Status) -> Vec<&'static str> {
        if self.unread && !self.has_log {
            return Vec::new();
        }
        offers(self, status).into_iter().filter(|offer| offer.what.is_ok()).map(|offer| offer.action.name()).collect()
    }

    fn owner_shown(&self) -> Option<OwnerShown> {
        let runner = self.runner();
        let (state, attachable) = match runner {
            Owner::Never => return None,
            Owner::Alive { .. } | Owner::Opened { .. } => {
                let attachable = match self.control.server {
                    ServerState::Attached | ServerState::Hosted(_) => Some(true),
                    ServerState::Nowhere | ServerState::Refused(_) => Some(false),
                    ServerState::Listens | ServerState::Unknown => None,
                };
                ("alive", attachable)
            }
            Owner::Gone { .. } => ("gone", Some(false)),
            Owner::Unheld { .. } | Owner::Unknown { .. } => ("unknown", None),
        };
        let bridge = bridge_of(self).map(Bridge::name);
        Some(OwnerShown { pid: runner.pid()?, state, attachable, bridge })
    }
}

impl Row {
    /// Whether a reader who was told `before` must be told of this row: anything but mere progress.
    pub fn differs_from(&self, before: &Self) -> bool {
        let Self {
            id,
            name,
            cwd,
            branch,
            kind,
            status,
            since,
            last_progress: _,
            because,
            unseen,
            owner,
            background,
            actions,
            label,
            turn,
            question,
            ended_denied,
            gist,
            // Whoever looks is told of it otherwise.
            looked_at: _,
        } = self;
        let told = |turn: &TurnShown| (turn.since, turn.older);
        *status != before.status
            || *since != before.since
            || *because != before.because
            || turn.as_ref().map(told) != before.turn.as_ref().map(told)
            || (unseen, owner, background, actions)
                != (&before.unseen, &before.owner, &before.background, &before.actions)
            || (question, ended_denied) != (&before.question, &before.ended_denied)
            || gist.without_progress() != before.gist.without_progress()
            || (id, name, label, kind) != (&before.id, &before.name, &before.label, &before.kind)
            || (cwd, branch) != (&before.cwd, &before.branch)
    }

    /// How long ago the last sign of life was, in steps: "now", "5 min".
    pub(crate) fn age(&self, now: Time) -> String {
        let (step, _) = self.age_step(now);
        if step == Span::ZERO { "now".into() } else { step.to_string() }
    }

    /// Why it has its status, and how long its turn has taken: "bash is open; 12 min, 8 tools". What it asks for comes first, in
    /// its own words, where they are known: "rm -rf build (asks permission: shell)".
    pub(crate) fn reason(&self, now: Time) -> String {
        if let (Status::NeedsPermission, Gist::Words(asks)) = (self.status, &self.gist)
            && !asks.starts_with("asks ")
            && **asks != *self.because
        {
            return format!("{asks} ({})", self.because);
        }
        match self.turn.and_then(|turn| turn.words(now)) {
            Some(turn) => format!("{}; {turn}", self.because),
            None => self.because.clone(),
        }
    }

    /// When, by the wall clock, its age or that of its turn will be worded otherwise.
    pub(crate) fn next_age(&self, now: Time) -> Time {
        let age = self.quiet_since() + self.age_step(now).1;
        self.turn.map_or(age, |turn| age.min(turn.next_words(now)))
    }

    fn age_step(&self, now: Time) -> (Span, Span) {
        age_step((now - self.quiet_since()).max(Span::ZERO))
    }

    fn quiet_since(&self) -> Time {
        self.last_progress.unwrap_or(self.since)
    }
}
