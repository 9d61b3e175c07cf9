//! A session's row, as every view shows it.

use super::background::BackgroundView;
use super::label::Label;
use crate::action::reach::bridge_of;
use crate::action::{Action, offer};
use crate::agent::Agent;
use crate::confusable::find_confusable;
use crate::facts::{ContextUse, Facts};
use crate::limits::Limits;
use crate::owner::Owner;
use crate::question::Question;
use crate::session::{Bridge, Kind, Observed, ServerState, Session};
use crate::short_reason::{ShortReason, TurnView, last_seen, lull, next_lull};
use crate::text::{COMMAND_MAX, plain};
use crate::time::{Moment, Span, Time};
use crate::turn::Request;
use crate::verdict::hook_report::{judge_asking, judge_hooked};
use crate::verdict::{Observations, Status, Verdict, age_step, judge, last_activity};
use crate::words::clock::clock;
pub use crate::words::reason::Background;
use crate::words::reason::{Because, Note, Reason};
use serde::Serialize;

/// The mark of a session whose context is nearly full, and the same in ASCII.
pub const NEARLY_FULL: (&str, &str) = ("◕", "%");
/// How late a session may prompt itself before it is said that it was to.
const WAKES_WITHIN: Span = Span::minutes(1);

/// One session as shown in the table, in the menu and in JSON.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// The session's id.
    pub id: Box<str>,
    /// Its title, else its folder; unique among the rows.
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
    /// When something was last heard of it: the last progress in its log, or an answer that arrives.
    pub last_progress: Option<Time>,
    /// Why it has this status.
    pub because: Because,
    /// It became idle, or asked by its last message, since the user last looked at it.
    pub unseen: bool,
    /// Who runs it.
    pub owner: Option<OwnerView>,
    /// Its background work.
    pub background: BackgroundView,
    /// The actions available now.
    pub actions: Vec<Action>,
    /// Its name for people: the folder first, then the title. Made unique before it is truncated anywhere.
    pub label: Label,
    /// The open turn.
    pub turn: Option<TurnView>,
    /// Its oldest permission request, if it is `needs-permission` and the request can be answered by its id.
    pub request: Option<RequestView>,
    /// What it asks, if it is `needs-input` and the question is known.
    pub question: Option<Question>,
    /// Which agent it is of.
    pub agent: Agent,
    /// The machine that it is on, by its name in the settings. `None`: this one.
    pub host: Option<Box<str>>,
    /// Its machine is reached. If not, all else is as that machine told it last, and what it does now is unknown.
    pub reached: bool,
    /// When it prompts itself, if it is `idle` until then.
    pub wakes_at: Option<Time>,
    /// When the limit of usage is over by which its last turn failed, if its log tells.
    pub limit_until: Option<Time>,
    /// How much of its context it uses, if that is known.
    pub context: Option<ContextUse>,
    /// Why it has this status, in the fewest words.
    #[serde(skip)]
    pub short_reason: ShortReason,
    /// The user has looked at it since it got this status.
    #[serde(skip)]
    pub is_seen: bool,
}

/// A permission request, in JSON. Its texts are unaltered: JSON escapes what a terminal must not print.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RequestView {
    /// The id to answer it by.
    pub id: Box<str>,
    /// The kind of permission: `shell`, `read`, `write`...
    pub kind: Box<str>,
    /// All that it asks for, if one text says that: a command, a path with what needs it, an address.
    pub text: Option<Box<str>>,
    /// The paths that it asks to reach, to read or to write.
    pub paths: Vec<Box<str>>,
    /// Whether `text` says all, and cannot be mistaken for another text.
    pub reads_plain: bool,
    /// The sub-agent that asks: what it is for, or its kind, or its id. `None`: the session itself.
    pub by: Option<Box<str>>,
}

impl RequestView {
    /// The view of a request of the session with these facts.
    pub(super) fn of(request: &Request, facts: &Facts) -> Self {
        Self {
            by: facts.asker(request).map(Into::into),
            id: request.request.clone(),
            kind: request.kind.clone(),
            text: request.asks.clone(),
            paths: request.paths.clone(),
            reads_plain: request.asks.as_deref().is_some_and(|asks| find_confusable(asks).is_none()),
        }
    }
}

/// An owner as it is shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OwnerView {
    /// Its process id.
    pub pid: u32,
    /// `alive`, `gone` or `unknown`.
    pub state: &'static str,
    /// Whether it is a server that we can attach to. `None`: not tried.
    pub attachable: Option<bool>,
    /// The bridge to its terminal: `joined`, or `elevated` if it may answer permission requests. `None`: there is none,
    /// or no tray listens for it.
    pub bridge: Option<&'static str>,
}

impl Session {
    /// Judges the session, and builds its row.
    pub fn row(&self, now: Moment, limits: &Limits) -> (Row, Verdict) {
        if let Some(remote) = &self.remote {
            return self.remote_row(remote);
        }
        let mut verdict = self.judge(now, limits);
        verdict.because.notes.extend(self.notes());
        if self.is_approval_requested() {
            verdict.short_reason = ShortReason::of(Note::ApprovalRequested);
        }
        let (wakes_at, limit_until) = (self.note_wake(&mut verdict, now), self.note_limit(&mut verdict, now));
        let (name, label) = self.names();
        let row = Row {
            id: self.id.clone(),
            name,
            cwd: self.cwd().map(Into::into),
            branch: self.observed.about.branch.clone().or_else(|| self.observed.facts.branch.clone()),
            kind: self.observed.about.kind,
            status: verdict.status,
            since: verdict.since,
            last_progress: last_activity(&self.observed.facts, &self.liveness)
                .map(|last| last.at.wall)
                .or_else(|| self.observed.hook_report.as_ref().map(|told| told.at.wall))
                .or_else(|| self.observed.unread.then_some(self.observed.touched)),
            because: verdict.because.clone(),
            unseen: self.is_unseen(&verdict),
            owner: self.owner_shown(),
            background: self.background_shown(&verdict, now, limits),
            actions: self.actions(verdict.status),
            label,
            turn: verdict.turn,
            request: self.request_shown(verdict.status),
            question: verdict.question().cloned(),
            agent: self.observed.agent.clone(),
            host: None,
            reached: true,
            wakes_at,
            limit_until,
            context: self.observed.facts.context(),
            short_reason: match self.control.under_way {
                Some(action) => ShortReason::of(format!("{} under way", action.name())),
                None => verdict.short_reason.clone(),
            },
            is_seen: self.seen.is_some_and(|seen| seen >= verdict.since),
        };
        (row, verdict)
    }

    fn judge(&self, now: Moment, limits: &Limits) -> Verdict {
        let plain = |status, since, because: Because| Verdict {
            status,
            since,
            short_reason: because.reason.short_reason(status, since, Moment::default()),
            because,
            recheck_at: None,
            limit_at: None,
            sample_at: None,
            probe: None,
            turn: None,
            background: Background::default(),
        };
        if self.observed.unread {
            return plain(Status::Ended, self.observed.touched, Reason::Unread.into());
        }
        // What is not read any more is judged as of the last time that it was.
        let at = self.no_answer.as_ref().map_or(now, |no_answer| no_answer.since);
        if let Some(hook_report) = &self.observed.hook_report {
            let asking = judge_asking(&self.observed.facts.requests, &self.liveness.questions);
            return asking.unwrap_or_else(|| judge_hooked(hook_report, at));
        }
        let limits = self.limits(limits);
        let Observed { agent, facts, reported_state, .. } = &self.observed;
        let told = Observations { agent, facts, reported_state: reported_state.as_ref() };
        let mut verdict = judge(told, &self.runner(), &self.liveness, self.seen, at, &limits);
        let is_over = verdict.status.is_over();
        if let Some(no_answer) = self.no_answer.as_ref().filter(|_| !is_over || self.observed.owner == Owner::Never) {
            let before = Note::Before { status: verdict.status, because: Box::new(verdict.because) };
            let before = self.observed.facts.progress.is_some().then_some(before);
            return plain(
                Status::Quiet,
                no_answer.since.wall,
                Reason::NoAnswer { no_answer: no_answer.clone() }.and(before),
            );
        }
        if let Some(problem) = &self.observed.problem {
            // Without its log it cannot be judged. Only the end of its owner is certain.
            let over = matches!(self.observed.owner, Owner::Gone { .. })
                || self.observed.owner == Owner::Never && self.observed.has_log;
            // How it ended is in what is still to be read.
            let status = if over && !self.observed.is_loading { Status::Ended } else { Status::Quiet };
            return plain(status, self.observed.touched, Because::from(&**problem));
        }
        if self.observed.facts.progress.is_none()
            && !matches!(self.observed.owner, Owner::Opened { started: Some(_), .. })
        {
            verdict.since = self.observed.about.created.unwrap_or(self.observed.touched);
        }
        verdict
    }

    /// Says when it prompts itself, or that it was to, if nothing goes on in it.
    fn note_wake(&self, verdict: &mut Verdict, now: Moment) -> Option<Time> {
        let started = if let Owner::Alive { started, .. } = self.observed.owner { started } else { None };
        let at = self.observed.facts.wakes_at(started).filter(|_| verdict.status == Status::Idle)?;
        let left = at + WAKES_WITHIN - now.wall;
        let words = clock(at, now.wall, self.observed.clock_offset).into();
        let note = if left > Span::ZERO { Note::Wakes { at: words } } else { Note::Overdue { at: words } };
        verdict.short_reason = ShortReason::of(&note);
        verdict.because.notes.push(note);
        if left > Span::ZERO {
            verdict.judge_again(now.awake + left);
        }
        Some(at)
    }

    /// Says until when a limit refuses what its last turn failed by. Once that is over it is news again: its user may go on.
    fn note_limit(&self, verdict: &mut Verdict, now: Moment) -> Option<Time> {
        let Reason::Failed { fault } = &verdict.because.reason else { return None };
        let until = self.observed.facts.limit_until.filter(|_| fault.is_limit())?;
        let at = clock(until, now.wall, self.observed.clock_offset).into();
        let note = if until > now.wall {
            verdict.judge_again(now.awake + (until - now.wall));
            Note::LimitUntil { at }
        } else {
            verdict.since = verdict.since.max(until);
            Note::LimitOver { at }
        };
        verdict.short_reason = ShortReason::of(&note);
        verdict.because.notes.push(note);
        Some(until)
    }

    /// What is to be known of it whatever its status.
    fn notes(&self) -> impl Iterator<Item = Note> + use<> {
        // Until the user looks at it, here or where the next prompt is typed.
        let prompted = self.observed.facts.marks.prompt.map(|prompt| prompt.at);
        let looked = self.seen.max(prompted);
        let is_new = |at: Option<Time>| at.is_some_and(|at| looked.is_none_or(|looked| looked < at));
        let (approved, unconfirmed) = (self.control.approved_by_command, self.control.approval_unconfirmed);
        let notes = [
            (self.observed.contested, Note::Contested { agent: self.observed.agent.clone() }),
            (matches!(self.observed.owner, Owner::Unheld { .. }), Note::Unheld),
            (self.observed.is_untold, Note::Untold { agent: self.observed.agent.clone() }),
            (self.is_approval_requested(), Note::ApprovalRequested),
            (self.approves_all(), Note::ApprovesAll),
            (is_new(approved), Note::Approved),
            (is_new(unconfirmed), Note::ApprovalUnconfirmed),
            (
                self.may_be_open() && self.observed.facts.context().is_some_and(|it| it.is_nearly_full()),
                Note::NearlyFull,
            ),
            (self.observed.is_stopped && self.may_be_open(), Note::Stopped),
        ];
        let untried = self.observed.untried.clone().map(|version| Note::Untried { version });
        let doubtful = match self.observed.owner {
            Owner::Doubtful { pid, why } => Some(Note::Doubtful { pid, why }),
            _ => None,
        };
        doubtful
            .into_iter()
            .chain(notes.into_iter().filter_map(|(is_true, note)| is_true.then_some(note)))
            .chain(untried)
    }

    /// Whether it became idle, or asked something in its last message, since the user last looked at it. A question that
    /// rests on the last message alone turns `idle` once seen. A failure, a crash and lost permissions keep their status
    /// when seen, but stop colouring the icon.
    fn is_unseen(&self, verdict: &Verdict) -> bool {
        let had_turn = self.observed.facts.closed.is_some()
            || self.observed.facts.turn.is_some()
            || self.observed.hook_report.as_ref().is_some_and(|told| told.has_worked);
        // The user who reopened it has it on screen.
        let reopened = self.observed.owner.is_unprompted(&self.observed.facts);
        let news = verdict.status == Status::Idle && had_turn && !reopened || verdict.is_by_message();
        news && self.seen.is_none_or(|seen| seen < verdict.since)
    }

    /// The actions available now.
    fn actions(&self, status: Status) -> Vec<Action> {
        if self.observed.unread && !self.observed.has_log {
            return Vec::new();
        }
        Action::ALL.into_iter().filter(|action| offer(*action, self, status).is_ok()).collect()
    }

    /// Copilot's questions about an extension are answered in its terminal alone.
    fn request_shown(&self, status: Status) -> Option<RequestView> {
        let oldest = self.observed.facts.requests.iter().find(|request| !request.is_consent());
        let facts = &self.observed.facts;
        oldest.filter(|_| status == Status::NeedsPermission).map(|request| RequestView::of(request, facts))
    }

    fn owner_shown(&self) -> Option<OwnerView> {
        let runner = self.runner();
        let (state, attachable) = match runner {
            Owner::Never => return None,
            Owner::Alive { .. } | Owner::Opened { .. } => {
                let attachable = match self.control.server {
                    ServerState::Attached | ServerState::Hosted(_) => Some(true),
                    ServerState::NotListening | ServerState::Refused(_) => Some(false),
                    ServerState::Listening | ServerState::Unknown => None,
                };
                ("alive", attachable)
            }
            Owner::Gone { .. } => ("gone", Some(false)),
            Owner::Unheld { .. } | Owner::Unknown { .. } | Owner::Doubtful { .. } => ("unknown", None),
        };
        let bridge = bridge_of(self).map(Bridge::name);
        Some(OwnerView { pid: runner.pid()?, state, attachable, bridge })
    }
}

impl Row {
    /// Whether it was shut down while its tools were denied. Notified as lost permissions.
    pub const fn ended_denied(&self) -> bool {
        matches!(self.because.reason, Reason::EndedDenied { .. } | Reason::There { ended_denied: true, .. })
    }

    /// What its row ends with, and the same in ASCII: that its context is nearly full.
    pub fn end_mark(&self) -> Option<(&'static str, &'static str)> {
        let is_full = self.context.is_some_and(|context| context.is_nearly_full());
        (is_full && self.reached && !self.status.has_ended()).then_some(NEARLY_FULL)
    }

    /// Whether anything but mere progress changed since `before`, so that watchers must be notified.
    pub fn differs_from(&self, before: &Self) -> bool {
        let shown = |row: &Self| Self {
            // When an unreached machine is tried again is the view's to tell, and no change of the session.
            because: if row.reached { row.because.clone() } else { Reason::Unread.into() },
            last_progress: None,
            // Each request uses more. That it is nearly full is in the reason, from which the mark follows.
            context: None,
            background: row.background.without_progress(),
            turn: row.turn.map(|turn| TurnView { tools: 0, ..turn }),
            short_reason: row.short_reason.without_progress().cloned().unwrap_or_default(),
            // Views are notified of this by other means.
            is_seen: false,
            ..row.clone()
        };
        self != before && shown(self) != shown(before)
    }

    /// The time since its last progress: at work from 10 s on ("now" before), else from a minute on. `None` if it was
    /// never prompted.
    pub fn age(&self, now: Time) -> Option<String> {
        if self.status.is_work() {
            return Some(lull(self.last(), now).unwrap_or_else(|| "now".into()));
        }
        let (step, _) = self.age_step(now)?;
        let minute = Span::minutes(1);
        Some(if step < minute { format!("<{minute}") } else { step.to_string() })
    }

    /// Why it has its status, how long its turn has taken, and at work how long ago something last happened: "bash is
    /// open; turn: 12 min, 8 tools, last seen 45 s ago". The text of a permission request comes first, if known: "rm -rf
    /// build (asks permission: shell)".
    pub fn reason(&self, now: Time) -> String {
        self.reason_with(self.status.is_work().then(|| self.last()), now)
    }

    /// The same without how long ago something last happened, for a place next to its [`age`](Self::age).
    pub fn brief_reason(&self, now: Time) -> String {
        self.reason_with(None, now)
    }

    fn reason_with(&self, last: Option<Time>, now: Time) -> String {
        if self.request_text().is_some() {
            return self.ageless_reason();
        }
        let ages = match self.turn_told() {
            Some(turn) => turn.words(last, now),
            None => last.and_then(|last| last_seen(last, now)),
        };
        match ages {
            Some(ages) => format!("{}; {ages}", self.because),
            None => self.because.to_string(),
        }
    }

    /// The text of its permission request, on one line, if known: all of it, or what its log or agent says of it.
    pub fn request_text(&self) -> Option<Box<str>> {
        let text = match &self.request {
            Some(request) => request.text.as_deref(),
            None => self.because.reason.asks_permission().and_then(|(_, text)| text),
        };
        Some(plain(text?, COMMAND_MAX))
    }

    /// Why it has its status, in words that do not age.
    pub fn ageless_reason(&self) -> String {
        let asks = self.request_text().map(|asks| format!("{asks} ({})", self.because));
        asks.unwrap_or_else(|| self.because.to_string())
    }

    /// When the wording of its age, or of its turn's age, changes next, by the wall clock.
    pub fn next_age(&self, now: Time) -> Option<Time> {
        let age = match self.status.is_work() {
            true => Some(next_lull(self.last(), now)),
            false => self.age_step(now).map(|(_, next)| self.last() + next.max(Span::minutes(1))),
        };
        age.into_iter().chain(self.turn_told().map(|turn| turn.next_words(now))).min()
    }

    /// The turn, if its age is to be told: not where it has been silent from the beginning, which the reason says.
    fn turn_told(&self) -> Option<TurnView> {
        let is_silence = |turn: &TurnView| turn.tools == 0 && self.last() - turn.since < Span::minutes(1);
        self.turn.filter(|turn| !(self.status.is_silent() && is_silence(turn)))
    }

    /// Whether something happened after a silence that it told of. `before`: when something had happened last.
    pub fn ended_lull(&self, before: Time) -> bool {
        self.status.is_work() && lull(before, self.last()).is_some()
    }

    fn age_step(&self, now: Time) -> Option<(Span, Span)> {
        let was_prompted = self.status != Status::Idle || self.last_progress.is_some();
        was_prompted.then(|| age_step((now - self.last()).max(Span::ZERO)))
    }

    /// When something was last heard of it; else since when it has its status.
    pub fn last(&self) -> Time {
        self.last_progress.unwrap_or(self.since)
    }
}

#[cfg(test)]
mod tests;
