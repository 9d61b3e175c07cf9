//! The row of a session on another machine.

use super::background::BackgroundView;
use super::label::{FOLDER_WIDTH, Label};
use super::row::{OwnerView, RequestView, Row};
use crate::action::{Action, offer};
use crate::remote::Remote;
use crate::session::Session;
use crate::short_reason::ShortReason;
use crate::text::fit;
use crate::time::Moment;
use crate::verdict::{Status, Verdict};
use crate::words::reason::{Background, Because, Note, Reason};
use unicode_width::UnicodeWidthStr;

/// The least that is shown of a folder before its machine, in columns.
pub(super) const FOLDER_MIN: usize = 6;

/// A folder with the host that it is on, if it is on one: `billing-api @devbox`.
pub(super) fn at_host(folder: &str, host: Option<&str>) -> String {
    host.map_or_else(|| folder.to_owned(), |host| format!("{folder} @{host}"))
}

/// Its name for people: with the machine, which is not cut off with the rest.
fn label(remote: &Remote) -> Label {
    let host = &*remote.host.name;
    let room = FOLDER_WIDTH.saturating_sub(at_host("", Some(host)).width()).max(FOLDER_MIN);
    Label { who: at_host(&fit(&remote.who, room), Some(host)), title: remote.title.clone(), agent: None }
}

/// What is known of a session whose machine is not reached: nothing but what was told last. One that has ended has ended.
fn remote_status(remote: &Remote) -> (Status, Because, ShortReason) {
    let Some(unreached) = &remote.unreached else {
        return (remote.status, remote.because.clone(), remote.short_reason.clone());
    };
    let before = Note::Before { status: remote.status, because: Box::new(remote.because.clone()) };
    let reason = Reason::Unreached { unreached: unreached.clone() };
    let status = if remote.status.has_ended() { remote.status } else { Status::Quiet };
    let short_reason = reason.short_reason(Status::Quiet, remote.since, Moment::default());
    (status, reason.and([before]), short_reason)
}

impl Session {
    /// Its row as its host tells it, and what stands for a verdict.
    pub(super) fn remote_row(&self, remote: &Remote) -> (Row, Verdict) {
        let about = &self.observed.about;
        let (status, because, short_reason) = remote_status(remote);
        let (turn, background) = match remote.unreached {
            Some(_) => (None, Background::default()),
            None => (remote.turn, remote.background),
        };
        let oldest = self.observed.facts.requests.first();
        let can = |action: &Action| offer(*action, self, remote.status).is_ok();
        let row = Row {
            id: self.id.clone(),
            name: remote.name.to_string(),
            cwd: about.cwd.clone(),
            branch: about.branch.clone(),
            kind: about.kind,
            status,
            since: remote.since,
            last_progress: remote.last_progress,
            because: because.clone(),
            unseen: remote.unseen,
            owner: remote.owner.as_ref().map(|owner| OwnerView {
                pid: owner.pid,
                state: owner.state,
                attachable: owner.attachable,
                bridge: owner.bridge,
            }),
            background: BackgroundView::of(
                background,
                if remote.unreached.is_some() { Vec::new() } else { remote.sub_agents.clone() },
            ),
            actions: Action::ALL.into_iter().filter(can).collect(),
            label: label(remote),
            turn,
            request: oldest
                .filter(|_| status == Status::NeedsPermission)
                .map(|request| RequestView::of(request, &self.observed.facts)),
            question: self
                .liveness
                .questions
                .first()
                .filter(|_| remote.unreached.is_none())
                .map(|asking| asking.question.clone()),
            agent: self.observed.agent.clone(),
            host: Some(remote.host.name.clone()),
            reached: remote.unreached.is_none(),
            limit_until: remote.limit_until.filter(|_| status == Status::Failed),
            context: remote.context.filter(|_| remote.unreached.is_none()),
            wakes_at: remote.wakes_at.filter(|_| status == Status::Idle),
            short_reason: short_reason.clone(),
            is_seen: remote.is_seen,
        };
        let verdict = Verdict {
            status,
            since: remote.since,
            because,
            short_reason,
            recheck_at: None,
            limit_at: None,
            sample_at: None,
            probe: None,
            turn,
            background,
        };
        (row, verdict)
    }
}
