//! Sessions on other machines, the hosts: what a host says of one of its sessions, and what is made of that here.
//!
//! A [`SessionReport`] describes one session: its status and reason, the actions it allows or refuses, and what it asks. Its
//! host judges the session; this machine only shows it, as [`Remote`] in an otherwise empty session. Reports are hostile
//! input: [`read`] bounds every text, and sanitizes those that need not stay verbatim. The id names a session of its host,
//! and no other: it is always kept together with the host's name, which only the settings give.

pub(crate) mod session_report;

pub use session_report::SessionReport;

use super::action::{Action, Bridge};
use super::agent::Agent;
use super::confusable::find_confusable;
use super::facts::ContextUse;
use super::fleet::{SubAgentView, short_id};
use super::form::Form;
use super::question::Question;
use super::session::{About, Control, Kind, Observed, Session};
use super::short_reason::{ShortReason, TurnView};
use super::text::{COMMAND_MAX, MESSAGE_MAX, NAME_MAX, legible, plain};
use super::time::{Moment, Span, Time};
use super::turn::{AnswerOptions, Call, Request};
use super::verdict::{Asking, Liveness, Status};
use super::words::offer::Does;
use super::words::reason::{Background, Because, Reason};
use super::words::refusal::Refusal;
use session_report::{OwnerReport, QuestionReport, RequestReport, ShortReasonReport};
use std::fmt;

/// Maximum length of an id, in bytes.
const ID_MAX: usize = 200;
/// Maximum length of a path, a branch and the like, in bytes.
const PATH_MAX: usize = 4096;
/// Maximum length of a request's text, in bytes.
const TEXT_MAX: usize = 32 << 10;
/// Maximum length of a reason, in characters.
const REASON_MAX: usize = 1000;

/// How a host is reached, as far as that says what can be done with its sessions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteHost {
    /// Its name in the settings.
    pub name: Box<str>,
    /// Whether a terminal of this machine can run a command there.
    pub has_terminal: bool,
}

/// What its host says of a session.
#[derive(Clone, Debug, PartialEq)]
pub struct Remote {
    /// Where it is.
    pub host: RemoteHost,
    /// Its name, for scripts.
    pub name: Box<str>,
    /// Its folder's name.
    pub who: Box<str>,
    pub title: Option<Box<str>>,
    pub status: Status,
    pub since: Time,
    pub last_progress: Option<Time>,
    pub because: Because,
    pub short_reason: ShortReason,
    pub turn: Option<TurnView>,
    pub background: Background,
    pub owner: Option<RemoteOwner>,
    pub unseen: bool,
    pub is_seen: bool,
    /// What may be done with it.
    pub offers: Vec<RemoteOffer>,
    /// A stop is offered although it may only wait for its user.
    pub stops_if_waiting: bool,
    /// To reconnect to it means to resume it.
    pub is_resumed_only: bool,
    /// Orders go over the bridge to its terminal.
    pub is_bridged: bool,
    /// A tool is open.
    pub has_open_tool: bool,
    /// Why a click is not enough to end it.
    pub not_ended_unasked: Option<Box<str>>,
    /// When its last turn was completed, if it was.
    pub completed: Option<Time>,
    /// When it prompts itself.
    pub wakes_at: Option<Time>,
    /// When the limit of usage is over by which its last turn failed.
    pub limit_until: Option<Time>,
    /// How much of its context it uses.
    pub context: Option<ContextUse>,
    /// Its sub-agents.
    pub sub_agents: Vec<SubAgentView>,
    /// Its machine is not reached: all else is as that machine told it last.
    pub unreached: Option<Unreached>,
}

/// That a machine is not reached, in words for the user, as times of day are told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreached {
    /// Since when: `14:05`.
    pub since: Box<str>,
    /// When it is tried again, if that is known.
    pub again: Option<Box<str>>,
}

/// `not reached since 14:05, next try at 14:10`.
impl fmt::Display for Unreached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not reached since {}", self.since)?;
        self.again.iter().try_for_each(|again| write!(f, ", next try at {again}"))
    }
}

/// Who runs it there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteOwner {
    pub pid: u32,
    pub state: &'static str,
    pub attachable: Option<bool>,
    pub bridge: Option<&'static str>,
}

/// Whether an action is possible.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteOffer {
    pub action: Action,
    pub is_possible: bool,
    /// What it does, or why it is not possible.
    pub words: Box<str>,
}

impl Remote {
    /// What an action would do to it: what its host offers, but for what needs a screen there.
    ///
    /// # Errors
    /// Why it is refused.
    pub(crate) fn offer(&self, action: Action) -> Result<Does, Refusal> {
        let host = || self.host.name.clone();
        let Some(told) = self.offers.iter().find(|told| told.action == action) else {
            return Err(Refusal::Untold { host: host() });
        };
        if let Some(unreached) = &self.unreached {
            return Err(Refusal::Unreached { host: host(), unreached: unreached.clone() });
        }
        if action == Action::ShowTerminal {
            return Err(Refusal::ShownThere { host: host() });
        }
        if !told.is_possible {
            return Err(Refusal::There { host: host(), why: told.words.clone() });
        }
        match action {
            Action::Resume if !self.host.has_terminal => Err(Refusal::ResumedThere { host: host() }),
            // It opens a terminal, which is here.
            Action::Resume => Ok(Does::ResumesThere { host: host() }),
            Action::Reconnect if self.is_resumed_only && self.host.has_terminal => {
                Ok(Does::ResumesThere { host: host() })
            }
            Action::Reconnect if self.is_resumed_only => Err(Refusal::ResumedThere { host: host() }),
            Action::Stop => Ok(Does::Stops { even_if_waiting: self.stops_if_waiting }),
            _ => Ok(Does::There { what: told.words.clone() }),
        }
    }
}

/// The host's clock counts as right if it differs from ours by less: this includes how long a line was on its way.
const CLOCKS_AGREE: Span = Span::seconds(2);

/// The clocks of this machine as a line of a host arrives, and how far the host's wall clock is behind.
#[derive(Clone, Copy, Debug, Default)]
pub struct Clocks {
    pub now: Moment,
    pub behind: Span,
}

impl Clocks {
    /// How far a clock is behind that said this.
    pub fn behind(now: Moment, there: Time) -> Span {
        let behind = now.wall - there;
        if behind.0.saturating_abs() > CLOCKS_AGREE.0 { behind } else { Span::ZERO }
    }

    /// A time of the host's clock, by ours.
    pub fn here(&self, there: Time) -> Time {
        there + self.behind
    }

    /// A time of ours, by the host's clock.
    fn there(&self, here: Time) -> Time {
        here - self.behind
    }
}

/// Builds the session that a report describes. `agent` finds an agent by name.
///
/// # Errors
/// What is wrong with the report. It is not quoted.
pub fn read(
    host: &RemoteHost,
    report: SessionReport,
    clocks: &Clocks,
    agent: impl Fn(&str) -> Option<Agent>,
) -> Result<Session, &'static str> {
    if report.id.is_empty() || report.id.len() > ID_MAX || report.id.chars().any(char::is_control) {
        return Err("an id is not valid");
    }
    let status = Status::ALL.into_iter().find(|status| *status.name() == *report.status);
    let status = status.ok_or("a status is unknown here")?;
    let agent = agent(&plain(&report.agent, NAME_MAX)).ok_or("an agent has no name")?;
    let remote = remote(host, &report, status, clocks);
    let short = |text: Option<Box<str>>| text.filter(|text| text.len() <= PATH_MAX);
    let about = About {
        cwd: short(report.cwd),
        branch: short(report.branch),
        kind: Kind::named(&report.kind),
        created: report.opened.map(|at| clocks.here(at)),
        ..About::default()
    };
    // An older version there does not tell when a request was asked.
    let status_since = remote.since;
    let request = |told: RequestReport| {
        let since = told.since.map_or(status_since, |at| clocks.here(at));
        request(told, since)
    };
    let mut session = Session {
        id: report.id,
        observed: Observed { agent, about, ..Observed::default() },
        control: Control {
            approval_requested: report.approval_requested.filter(|id| id.len() <= ID_MAX),
            ..Control::default()
        },
        liveness: Liveness { questions: asked(report.question, report.form, status_since), ..Liveness::default() },
        remote: Some(Box::new(remote)),
        ..Session::default()
    };
    session.observed.facts.last_message = report.last_message.and_then(|message| legible(&message, MESSAGE_MAX));
    session.observed.facts.turn_id = report.turn_id.filter(|id| id.len() <= ID_MAX);
    session.observed.facts.requests =
        report.requests.into_iter().take(session_report::REQUESTS_MAX).filter_map(request).collect();
    Ok(session)
}

/// What is said of a session besides what every session has.
fn remote(host: &RemoteHost, report: &SessionReport, status: Status, clocks: &Clocks) -> Remote {
    let turn =
        report.turn.map(|turn| TurnView { since: clocks.here(turn.since), tools: turn.tools, older: turn.older });
    let (since, last) = (clocks.here(report.since), report.last_progress.map(|at| clocks.here(at)));
    let id_shown = || plain(short_id(&report.id), NAME_MAX);
    let who = report.who.as_deref().and_then(|who| legible(who, NAME_MAX)).unwrap_or_else(id_shown);
    Remote {
        host: host.clone(),
        name: report.name.as_deref().and_then(|name| legible(name, NAME_MAX)).unwrap_or_else(|| who.clone()),
        title: report.title.as_deref().and_then(|title| legible(title, NAME_MAX)).filter(|title| *title != who),
        who,
        status,
        since,
        last_progress: last,
        because: Reason::There { words: plain(&report.because, REASON_MAX), ended_denied: report.ended_denied }.into(),
        short_reason: short_reason(&report.short_reason, turn, last.unwrap_or(since), clocks),
        turn,
        background: Background { agents: report.agents, shells: report.shells },
        owner: report.owner.as_ref().and_then(owner),
        unseen: report.unseen,
        is_seen: report.is_seen,
        offers: report.offers.iter().take(Action::ALL.len()).filter_map(offer).collect(),
        stops_if_waiting: report.stops_if_waiting,
        is_resumed_only: report.is_resumed_only,
        is_bridged: report.is_bridged,
        has_open_tool: report.has_open_tool,
        not_ended_unasked: report.not_ended_unasked.as_deref().map(|why| plain(why, COMMAND_MAX)),
        completed: report.completed.map(|at| clocks.here(at)),
        limit_until: report.limit_until.map(|at| clocks.here(at)),
        context: report.context,
        sub_agents: sub_agents(&report.sub_agents, clocks),
        wakes_at: report.wakes_at.map(|at| clocks.here(at)),
        unreached: None,
    }
}

fn sub_agents(told: &[SubAgentView], clocks: &Clocks) -> Vec<SubAgentView> {
    let read = |told: &SubAgentView| SubAgentView {
        name: plain(&told.name, NAME_MAX),
        does: told.does.as_deref().map(|does| plain(does, COMMAND_MAX)),
        since: clocks.here(told.since),
        last: clocks.here(told.last),
    };
    told.iter().take(SubAgentView::MOST).map(read).collect()
}

fn owner(told: &OwnerReport) -> Option<RemoteOwner> {
    let state = ["alive", "gone", "unknown"].into_iter().find(|known| **known == *told.state)?;
    let bridges = [Bridge::Elevated, Bridge::Joined].map(Bridge::name);
    let bridge = told.bridge.as_deref().and_then(|bridge| bridges.into_iter().find(|known| *known == bridge));
    Some(RemoteOwner { pid: told.pid, state, attachable: told.attachable, bridge })
}

/// What is offered, with words that are safe to show. `None` for an action that is unknown here.
fn offer(told: &session_report::OfferReport) -> Option<RemoteOffer> {
    let (is_possible, words) = (told.is_possible, plain(&told.words, COMMAND_MAX));
    Some(RemoteOffer { action: Action::named(&told.action)?, is_possible, words })
}

/// A request. The text of one that is too long is left out, and it cannot be approved unread then.
fn request(told: RequestReport, since: Time) -> Option<Request> {
    if told.id.is_empty() || told.id.len() > ID_MAX || told.kind.len() > ID_MAX {
        return None;
    }
    let are_short = told.paths.iter().all(|path| path.len() <= PATH_MAX);
    Some(Request {
        id: Call::of(&told.id),
        request: told.id,
        call: None,
        kind: told.kind,
        asks: told.text.filter(|text| text.len() <= TEXT_MAX),
        paths: if are_short { told.paths } else { Vec::new() },
        command: None,
        sub_agent: told.by.map(|by| plain(&by, NAME_MAX)),
        is_managed: false,
        is_probable: told.is_probable,
        over_bridge: told.over_bridge.map(options),
        at: Moment { wall: since, ..Moment::default() },
    })
}

/// What a bridge takes there. Rules that do not read as they are, are not offered here.
fn options(told: AnswerOptions) -> AnswerOptions {
    let is_shown = |rules: &str| rules.len() <= COMMAND_MAX && find_confusable(rules).is_none();
    AnswerOptions { always: told.always.filter(|rules| is_shown(rules)), ..told }
}

/// What it asks, and how that is answered.
fn asked(question: Option<QuestionReport>, form: Option<Form>, since: Time) -> Vec<Asking> {
    let form = form.filter(|form| form.is_bounded() && form.request.len() <= ID_MAX);
    let told = question.map(|question| Question::told(question.id, &question.text, &question.choices));
    let of_form = || form.as_ref().map(|form| Question::told(Some(form.request.clone()), &form.text, &[]));
    let Some(question) = told.or_else(of_form) else { return Vec::new() };
    let form = form.ok_or_else(|| "it cannot be answered from here".into());
    vec![Asking { question, since, form }]
}

fn short_reason(told: &ShortReasonReport, turn: Option<TurnView>, last: Time, clocks: &Clocks) -> ShortReason {
    let words = |words: &str| plain(words, COMMAND_MAX);
    match (told, turn) {
        (ShortReasonReport::Silent { for_ms, what, runs_long }, _) => {
            let age = Span((*for_ms).max(0));
            let since = Moment { wall: clocks.now.wall - age, awake: clocks.now.awake - age };
            ShortReason::Silent { since, what: words(what), runs_long: *runs_long }
        }
        (ShortReasonReport::Turn, Some(turn)) => ShortReason::Turn(turn, last),
        (ShortReasonReport::Turn, None) => ShortReason::default(),
        (ShortReasonReport::Work(what), _) => ShortReason::Work(words(what), last),
        (ShortReasonReport::Ago(what, at), _) => ShortReason::Ago(words(what), clocks.here(*at)),
        (ShortReasonReport::Words(what), _) => ShortReason::of(words(what)),
    }
}

#[cfg(test)]
mod tests;
