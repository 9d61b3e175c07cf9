//! What a host says of one of its sessions: all of it, in one line of JSON.

use super::Clocks;
use crate::action::{Action, has_open_tool, is_bridged, may_end_without_asking, offer, questions};
use crate::facts::ContextUse;
use crate::fleet::{Label, Row, Session, SubAgentView};
use crate::form::Form;
use crate::short_reason::ShortReason;
use crate::text::{COMMAND_MAX, plain};
use crate::time::{Moment, Time};
use crate::turn::{AnswerOptions, Ending};
use crate::words::offer::Does;
use serde::{Deserialize, Serialize};

/// Maximum number of requests that are told of a session.
pub(super) const REQUESTS_MAX: usize = 20;

/// What a host says of one of its sessions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct SessionReport {
    pub(crate) id: Box<str>,
    pub(super) name: Option<Box<str>>,
    /// Its folder's name.
    pub(super) who: Option<Box<str>>,
    pub(super) title: Option<Box<str>>,
    pub(super) cwd: Option<Box<str>>,
    pub(super) branch: Option<Box<str>>,
    pub(super) kind: Box<str>,
    pub(super) status: Box<str>,
    pub(super) since: Time,
    pub(super) last_progress: Option<Time>,
    pub(super) because: Box<str>,
    pub(super) ended_denied: bool,
    pub(super) unseen: bool,
    pub(super) is_seen: bool,
    pub(super) owner: Option<OwnerReport>,
    pub(super) agents: usize,
    pub(super) shells: usize,
    pub(super) turn: Option<TurnReport>,
    pub(super) agent: Box<str>,
    pub(super) short_reason: ShortReasonReport,
    /// The event that opened its last turn.
    #[serde(rename = "root")]
    pub(super) turn_id: Option<Box<str>>,
    /// The requests that can be answered, the oldest first.
    pub(super) requests: Vec<RequestReport>,
    pub(super) question: Option<QuestionReport>,
    /// The same question, if it can be answered from elsewhere.
    pub(super) form: Option<Form>,
    pub(super) offers: Vec<OfferReport>,
    pub(super) stops_if_waiting: bool,
    pub(super) is_resumed_only: bool,
    pub(super) is_bridged: bool,
    pub(super) has_open_tool: bool,
    pub(super) not_ended_unasked: Option<Box<str>>,
    /// When it was created, or its process started, whichever is later.
    pub(super) opened: Option<Time>,
    pub(super) completed: Option<Time>,
    /// The request that a command wanted to approve.
    #[serde(rename = "wanted")]
    pub(super) approval_requested: Option<Box<str>>,
    /// When it prompts itself.
    pub(super) wakes_at: Option<Time>,
    /// When the limit of usage is over by which its last turn failed.
    pub(super) limit_until: Option<Time>,
    /// How much of its context it uses.
    pub(super) context: Option<ContextUse>,
    /// How its last message begins, if that is asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) last_message: Option<Box<str>>,
    /// Its sub-agents.
    #[serde(default)]
    pub(super) sub_agents: Vec<SubAgentView>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct OwnerReport {
    pub(super) pid: u32,
    pub(super) state: Box<str>,
    pub(super) attachable: Option<bool>,
    pub(super) bridge: Option<Box<str>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct TurnReport {
    pub(super) since: Time,
    pub(super) tools: u32,
    pub(super) older: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct RequestReport {
    pub(super) id: Box<str>,
    pub(super) kind: Box<str>,
    pub(super) text: Option<Box<str>>,
    pub(super) paths: Vec<Box<str>>,
    pub(super) is_probable: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) over_bridge: Option<AnswerOptions>,
    /// The sub-agent that asks, by its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) by: Option<Box<str>>,
    /// When it was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) since: Option<Time>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct QuestionReport {
    pub(super) id: Option<Box<str>>,
    pub(super) text: Box<str>,
    pub(super) choices: Vec<Box<str>>,
}

/// Why it has its status, in the fewest words.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ShortReasonReport {
    Words(Box<str>),
    /// By the awake clock there: a span is the same here.
    Silent {
        for_ms: i64,
        what: Box<str>,
        runs_long: bool,
    },
    Turn,
    Work(Box<str>),
    Ago(Box<str>, Time),
}

/// Whether an action is possible, and what it does, or why it is not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct OfferReport {
    pub(super) action: Box<str>,
    pub(super) is_possible: bool,
    pub(super) words: Box<str>,
}

impl OfferReport {
    fn of(action: Action, session: &Session, row: &Row) -> Self {
        let offered = offer(action, session, row.status);
        let words = match &offered {
            Ok(does) => does.to_string(),
            Err(refusal) => refusal.to_string(),
        };
        Self { action: action.name().into(), is_possible: offered.is_ok(), words: plain(&words, COMMAND_MAX) }
    }
}

impl SessionReport {
    /// The report of a session of this machine, with its name and label before they were made unique.
    pub fn of(session: &Session, row: &Row, (name, label): (&str, &Label), now: Moment) -> Self {
        let facts = &session.observed.facts;
        let does = |action| offer(action, session, row.status);
        let resume = does(Action::Resume);
        let requests = facts.requests.iter().filter(|request| !request.is_consent());
        let closed = facts.closed.as_ref().filter(|closed| facts.turn.is_none() && closed.ending == Ending::Completed);
        Self {
            id: row.id.clone(),
            name: Some(name.into()),
            who: Some(label.who.as_str().into()),
            title: label.title.clone(),
            cwd: row.cwd.clone(),
            branch: row.branch.clone(),
            kind: row.kind.name().into(),
            status: row.status.name().into(),
            since: row.since,
            last_progress: row.last_progress,
            because: row.because.to_string().into(),
            ended_denied: row.ended_denied(),
            unseen: row.unseen,
            is_seen: row.is_seen,
            owner: row.owner.as_ref().map(|owner| OwnerReport {
                pid: owner.pid,
                state: owner.state.into(),
                attachable: owner.attachable,
                bridge: owner.bridge.map(Into::into),
            }),
            agents: row.background.agents,
            shells: row.background.shells,
            turn: row.turn.map(|turn| TurnReport { since: turn.since, tools: turn.tools, older: turn.older }),
            agent: row.agent.name().into(),
            short_reason: ShortReasonReport::of(&row.short_reason, now),
            turn_id: facts.turn_id.clone(),
            requests: requests
                .take(REQUESTS_MAX)
                .map(|request| RequestReport {
                    id: request.request.clone(),
                    kind: request.kind.clone(),
                    text: request.asks.clone(),
                    paths: request.paths.clone(),
                    is_probable: request.is_probable,
                    over_bridge: request.over_bridge.clone(),
                    by: facts.asker(request).map(Into::into),
                    since: Some(request.at.wall),
                })
                .collect(),
            question: row.question.as_ref().map(|question| QuestionReport {
                id: question.id.clone(),
                text: question.text.clone(),
                choices: question.choices.clone(),
            }),
            form: questions(session).iter().find_map(|asking| asking.form.as_ref().ok()).cloned(),
            offers: Action::ALL.into_iter().map(|action| OfferReport::of(action, session, row)).collect(),
            stops_if_waiting: does(Action::Stop) == Ok(Does::Stops { even_if_waiting: true }),
            is_resumed_only: resume.is_ok() && does(Action::Reconnect) == resume,
            is_bridged: is_bridged(session),
            has_open_tool: has_open_tool(session),
            not_ended_unasked: may_end_without_asking(session).err().map(|why| why.to_string().into()),
            opened: session.observed.about.created,
            completed: closed.map(|closed| closed.at.wall),
            approval_requested: session.control.approval_requested.clone().filter(|_| session.is_approval_requested()),
            wakes_at: row.wakes_at,
            limit_until: row.limit_until,
            context: row.context,
            last_message: facts.last_message.clone(),
            sub_agents: row.background.list.clone(),
        }
    }
}

impl SessionReport {
    /// The same, of one that is only to be found again.
    pub fn in_brief(self) -> Self {
        Self { offers: Vec::new(), requests: Vec::new(), question: None, form: None, ..self.without_message() }
    }

    /// The same, without what the session said last.
    pub fn without_message(self) -> Self {
        Self { last_message: None, ..self }
    }

    /// The session's id.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The same, told once more: with what was heard since. `row` is what was made of it.
    pub fn told_again(self, row: &Row, clocks: &Clocks) -> Self {
        let short_reason = match ShortReasonReport::of(&row.short_reason, clocks.now) {
            silent @ ShortReasonReport::Silent { .. } => silent,
            _ => self.short_reason,
        };
        Self { last_progress: row.last_progress.map(|at| clocks.there(at)), short_reason, ..self }
    }
}

impl ShortReasonReport {
    fn of(short_reason: &ShortReason, now: Moment) -> Self {
        match short_reason {
            ShortReason::Words(words) => Self::Words(words.clone()),
            ShortReason::Silent { since, what, runs_long } => {
                Self::Silent { for_ms: now.since(*since).0, what: what.clone(), runs_long: *runs_long }
            }
            ShortReason::Turn(..) => Self::Turn,
            ShortReason::Work(what, _) => Self::Work(what.clone()),
            ShortReason::Ago(what, at) => Self::Ago(what.clone(), *at),
        }
    }
}
