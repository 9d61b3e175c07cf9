//! What is asked of a session, and what comes back: the same words for the menu, the commands and the control socket.

use super::action::Action;
use crate::core::action::{Bridge, ServerState};
use crate::core::asked::Question;
use crate::core::fleet::{Label, Session};
use crate::core::form::{Form, With};
use crate::core::text::{NAME_MAX, plain};
use crate::core::time::Time;
use crate::core::verdict::{Answer, Asking, Sample};
use serde::{Deserialize, Serialize};
use std::path::Path;
use tokio::sync::mpsc::UnboundedSender;

/// Something to be done with one session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Order {
    /// The session's whole id.
    pub id: Box<str>,
    /// The Copilot home that the session is in, by its real path: a copy of it has a session of the same id. `None` where whoever
    /// gives the order watches the same homes as whoever takes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub home: Option<Box<str>>,
    /// What.
    pub ask: Ask,
    /// The turn that it is for, by the event that opened it; nothing is done to another. `None` where the turn does not matter, or
    /// cannot be named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<Box<str>>,
    /// What people are shown for the session, where whoever gives the order says later what came of it. It goes nowhere else.
    #[serde(skip)]
    pub who: Box<str>,
}

/// What can be asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ask {
    /// Open requests are allowed, once.
    Approve(Which),
    /// Open requests are refused.
    Deny(Which),
    /// An open question is answered, or only shown.
    Answer(Reply),
    /// The session is brought back under control.
    Reconnect {
        /// The last prompt is sent again, if no tool ran since.
        resend: bool,
    },
    /// The session is brought back under control, and goes on with what it was told to do.
    Continue,
    /// The turn that runs is aborted.
    Stop,
    /// The process that owns the session is interrupted, then terminated.
    End {
        /// The user was asked whether this session is to be ended, and said yes.
        confirmed: bool,
    },
    /// The process that owns the session is killed.
    ForceQuit,
    /// The session is resumed in a terminal.
    Resume,
    /// The terminal that the session runs in is brought to the front.
    ShowTerminal,
    /// Copilot asks in the session's terminal whether we may answer its permission requests.
    LetAnswer,
    /// We let go of a session that we are attached to.
    Detach,
    /// Bridges are listened for from now on, or no longer: the key was made, or taken away. Whichever session the order names.
    Listen,
    /// What is known of sessions beside their logs is told: of all of them, whichever the order names.
    Said,
}

impl Ask {
    /// What it asks for, as it is offered.
    pub(crate) const fn action(&self) -> Action {
        match self {
            Self::Approve(_) => Action::Approve,
            Self::Deny(_) => Action::Deny,
            Self::Answer(_) => Action::Answer,
            Self::Continue => Action::Continue,
            Self::Reconnect { resend: false } => Action::Reconnect,
            Self::Reconnect { resend: true } => Action::Resend,
            Self::Stop => Action::Stop,
            Self::End { .. } => Action::End,
            Self::ForceQuit => Action::ForceQuit,
            Self::Resume => Action::Resume,
            Self::ShowTerminal => Action::ShowTerminal,
            Self::LetAnswer => Action::LetAnswer,
            // Answered before it comes to this.
            Self::Detach | Self::Listen | Self::Said => Action::Detach,
        }
    }

    /// What asks for an action. `None` where it must be said which request or question is answered.
    pub(crate) const fn of(action: Action) -> Option<Self> {
        Some(match action {
            Action::Approve | Action::Deny | Action::Answer => return None,
            Action::Continue => Self::Continue,
            Action::Reconnect => Self::Reconnect { resend: false },
            Action::Resend => Self::Reconnect { resend: true },
            Action::Stop => Self::Stop,
            Action::End => Self::End { confirmed: false },
            Action::ForceQuit => Self::ForceQuit,
            Action::Resume => Self::Resume,
            Action::ShowTerminal => Self::ShowTerminal,
            Action::Detach => Self::Detach,
            Action::LetAnswer => Self::LetAnswer,
        })
    }
}

/// Which of a session's open permission requests. Each is named: one that comes later is never meant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Which {
    /// Those of these ids.
    These(Vec<String>),
    /// The one of this id, provided that it asks for exactly what the user was shown.
    Shown {
        /// Its id.
        id: String,
        /// What the user was shown.
        text: String,
    },
}

/// What is done about an open question. Each is named: one that comes later is never answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reply {
    /// It is shown, and left open: the one of this id, else the oldest that can be answered.
    Look(Option<String>),
    /// It is answered, provided that it is the one that the user was shown.
    Give {
        /// Its id.
        request: String,
        /// [`Form::mark`] of what the user was shown.
        shown: u64,
        /// The answer.
        with: With,
    },
}

/// What comes back, in order: any number of steps, then one end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Report {
    /// Something was done on the way.
    Step(Step, String),
    /// A permission request, whole: what is about to be answered.
    Request(String),
    /// An open question, whole.
    Question(Box<Form>),
    /// What is known of sessions beside their logs.
    Said(Vec<Said>),
    /// It is over.
    End(Outcome),
}

/// What the tray knows of a session beside its log: what its server said, and whether we are attached to it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Said {
    /// The session's whole id.
    pub id: Box<str>,
    /// The Copilot home that it is in, by its real path.
    pub home: Box<str>,
    /// The last sign of life in its log, by the wall clock, in milliseconds: what was said was said after that.
    progress: i64,
    /// Whether it has active work, as the server that we are attached to says.
    works: Option<bool>,
    /// What its server said when it was asked without attaching: whether it has active work, how many requests are open.
    answer: Option<(bool, usize)>,
    /// It is being asked.
    asking: bool,
    /// Whether its tool's process used the CPU when that was last looked at, and when, by the wall clock, in milliseconds.
    #[serde(default)]
    busy: Option<(bool, i64)>,
    /// What the bridge to its terminal may do.
    #[serde(default)]
    bridge: Option<Bridge>,
    /// The release of Copilot that it runs in.
    #[serde(default)]
    release: Option<Box<str>>,
    /// It is of another version than ours.
    #[serde(default)]
    old_bridge: bool,
    /// We are attached to it.
    attached: bool,
    /// In a server of our own, with this process id.
    hosted: Option<u32>,
    /// What it asks its user.
    questions: Vec<Asked>,
}

/// What a session asks its user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Asked {
    /// Since when, by the wall clock, in milliseconds.
    since: i64,
    text: String,
    choices: Vec<String>,
    form: Result<Form, Box<str>>,
}

impl Said {
    /// What is known of this session, if anything is.
    pub(crate) fn of(home: &Path, session: &Session) -> Option<Self> {
        let live = &session.live;
        let attached = session.control.server.is_attached();
        let hosted = match session.control.server {
            ServerState::Hosted(pid) => Some(pid),
            _ => None,
        };
        let answer = session.answer().map(|answer| (answer.active, answer.requests));
        let bridge = session.control.bridge;
        if !attached && bridge.is_none() && answer.is_none() && !live.asking && live.busy.is_none() {
            return None;
        }
        let question = |Asking { question, since, form }: &Asking| Asked {
            since: since.0,
            text: question.text.to_string(),
            choices: question.choices.iter().map(ToString::to_string).collect(),
            form: form.clone(),
        };
        Some(Self {
            id: session.id.clone(),
            home: real(home),
            progress: session.facts.progress?.wall.0,
            works: live.has_active_work,
            answer,
            asking: live.asking,
            busy: live.busy.map(|sample| (sample.busy, sample.at.wall.0)),
            bridge,
            release: session.control.release.clone(),
            old_bridge: session.control.old_bridge,
            attached,
            hosted,
            questions: live.questions.iter().map(question).collect(),
        })
    }

    /// Takes it for true of this session, if nothing happened since that whoever said it had not seen.
    pub(crate) fn apply(self, session: &mut Session) {
        let Some(progress) = session.facts.progress else { return };
        match self.hosted {
            Some(pid) => session.control.server = ServerState::Hosted(pid),
            None if self.attached => session.control.server = ServerState::Attached,
            None => {}
        }
        (session.control.bridge, session.control.release) = (self.bridge, self.release);
        session.control.old_bridge = self.old_bridge;
        let live = &mut session.live;
        // That it works may be older than the log; that it does not must not be.
        let is_fresh = progress.wall.0 <= self.progress;
        live.has_active_work = self.works.filter(|works| *works || is_fresh);
        live.asking = self.asking && is_fresh;
        let sample = |(busy, at)| Sample { busy, at: progress.plus(Time(at) - progress.wall) };
        live.busy = self.busy.map(sample);
        live.answer = self.answer.filter(|_| is_fresh).map(|(active, requests)| Answer {
            progress: progress.wall,
            active,
            requests,
        });
        let asking = |Asked { since, text, choices, form }: Asked| Asking {
            question: Question { text: text.into(), choices: choices.into_iter().map(Into::into).collect() },
            since: Time(since),
            form,
        };
        live.questions = self.questions.into_iter().map(asking).collect();
    }
}

/// The steps of a recovery. Their names are the tags in the log. What sends something is reported before it does: from there on it
/// may have happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Step {
    /// A connection to the session's server, as one more client.
    Attach,
    /// Its open requests are ours to answer.
    TakeOver,
    /// The turn that ran is stopped.
    Abort,
    /// The session is loaded in a server of our own, or in a terminal.
    Resume,
    /// The last prompt was sent again.
    Resend,
    /// It was looked whether that had its effect.
    Verify,
    /// Nothing more is tried.
    GiveUp,
}

/// How it ended, in words for the user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// As asked.
    Done(String),
    /// Tried in vain: which step failed, why, and what to do next.
    Failed(String),
    /// Sent, and not confirmed: what may have happened, and what is known of it.
    Unconfirmed(String),
    /// Not tried, and why.
    Refused(String),
    /// Whoever was asked does not watch this session.
    Unknown,
}

/// One way to write a home, however it was given.
pub(crate) fn real(home: &Path) -> Box<str> {
    home.canonicalize().as_deref().unwrap_or(home).to_string_lossy().into()
}

impl Order {
    /// An order that is for no turn in particular.
    pub fn new(id: &str, ask: Ask) -> Self {
        Self { id: id.into(), home: None, ask, turn: None, who: "".into() }
    }

    /// The same, for a session that people know by this.
    #[must_use]
    pub(crate) fn to(self, label: &Label) -> Self {
        Self { who: plain(&label.who, NAME_MAX), ..self }
    }

    /// The same for the session of this home, and no other.
    pub fn in_home(self, home: &Path) -> Self {
        Self { home: Some(real(home)), ..self }
    }

    /// Whether it may be for a session of this home.
    pub(crate) fn is_for(&self, home: &Path) -> bool {
        self.home.as_ref().is_none_or(|meant| *meant == real(home))
    }

    /// The same for one turn, where what it asks for is done to a turn.
    pub fn on(mut self, turn: Option<&str>) -> Self {
        let turn =
            turn.filter(|_| matches!(self.ask, Ask::Stop | Ask::LetAnswer | Ask::Reconnect { .. } | Ask::Continue));
        self.turn = turn.map(Into::into);
        self
    }
}

impl Step {
    /// Whether something is sent with it.
    pub(crate) const fn sends(self) -> bool {
        matches!(self, Self::TakeOver | Self::Abort | Self::Resume | Self::Resend)
    }

    /// Its tag in the log.
    pub(crate) const fn tag(self) -> &'static str {
        match self {
            Self::Attach => "attach",
            Self::TakeOver => "take-over",
            Self::Abort => "abort",
            Self::Resume => "resume",
            Self::Resend => "resend",
            Self::Verify => "verify",
            Self::GiveUp => "give-up",
        }
    }
}

/// An order on its way to the engine, and where its reports go.
#[derive(Clone, Debug)]
pub(crate) struct Given {
    /// What is asked.
    pub order: Order,
    /// Takes the reports, the last of which is an end.
    pub reply: UnboundedSender<Report>,
    /// The order is dropped when nobody listens to its reports any more, up to the moment at which something is sent. Where we
    /// gave it ourselves, nobody need listen.
    pub lapses: bool,
}

impl Given {
    /// An order of somebody else's, which is dropped when that one leaves.
    pub(crate) const fn by_caller(order: Order, reply: UnboundedSender<Report>) -> Self {
        Self { order, reply, lapses: true }
    }

    /// An order of our own.
    pub(crate) const fn by_us(order: Order, reply: UnboundedSender<Report>) -> Self {
        Self { order, reply, lapses: false }
    }

    /// Whether whoever gave it has left.
    pub(crate) fn is_abandoned(&self) -> bool {
        self.lapses && self.reply.is_closed()
    }

    /// Sends a report, if somebody still listens.
    pub(crate) fn report(&self, report: Report) {
        let _ = self.reply.send(report);
    }
}

impl Outcome {
    /// Its words for the user.
    pub(crate) fn words(&self) -> &str {
        match self {
            Self::Done(words) | Self::Failed(words) | Self::Unconfirmed(words) | Self::Refused(words) => words,
            Self::Unknown => "this session no longer exists",
        }
    }
}
