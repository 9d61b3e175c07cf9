//! The row of a session on another machine.

use super::label::{FOLDER_WIDTH, Label};
use super::row::{OwnerView, Row};
use crate::action::{Action, offer};
use crate::gist::Gist;
use crate::request_view::RequestView;
use crate::session::Session;
use crate::session::far::Far;
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
fn label(far: &Far) -> Label {
    let host = &*far.host.name;
    let room = FOLDER_WIDTH.saturating_sub(at_host("", Some(host)).width()).max(FOLDER_MIN);
    Label { who: at_host(&fit(&far.who, room), Some(host)), title: far.title.clone(), agent: None }
}

/// What is known of a session whose machine is not reached: nothing but what was told last. One that has ended has ended.
fn far_status(far: &Far) -> (Status, Because, Gist) {
    let Some(unreached) = &far.unreached else { return (far.status, far.because.clone(), far.gist.clone()) };
    let before = Note::Before { status: far.status, because: Box::new(far.because.clone()) };
    let reason = Reason::Unreached { unreached: unreached.clone() };
    let status = if far.status.has_ended() { far.status } else { Status::Quiet };
    let gist = reason.gist(Status::Quiet, far.since, Moment::default());
    (status, reason.and([before]), gist)
}

impl Session {
    /// Its row as its host tells it, and what stands for a verdict.
    pub(super) fn far_row(&self, far: &Far) -> (Row, Verdict) {
        let about = &self.observed.about;
        let (status, because, gist) = far_status(far);
        let (turn, background) = match far.unreached {
            Some(_) => (None, Background::default()),
            None => (far.turn, far.background),
        };
        let oldest = self.observed.facts.requests.first();
        let can = |action: &Action| offer(*action, self, far.status).is_ok();
        let row = Row {
            id: self.id.clone(),
            name: far.name.to_string(),
            cwd: about.cwd.clone(),
            branch: about.branch.clone(),
            kind: about.kind,
            status,
            since: far.since,
            last_progress: far.last_progress,
            because: because.clone(),
            unseen: far.unseen,
            owner: far.owner.as_ref().map(|owner| OwnerView {
                pid: owner.pid,
                state: owner.state,
                attachable: owner.attachable,
                bridge: owner.bridge,
            }),
            background,
            actions: Action::ALL.into_iter().filter(can).collect(),
            label: label(far),
            turn,
            request: oldest.filter(|_| status == Status::NeedsPermission).map(RequestView::of),
            question: self
                .vitals
                .questions
                .first()
                .filter(|_| far.unreached.is_none())
                .map(|asking| asking.question.clone()),
            agent: self.observed.agent.clone(),
            host: Some(far.host.name.clone()),
            reached: far.unreached.is_none(),
            gist: gist.clone(),
            is_seen: far.is_seen,
        };
        let verdict = Verdict {
            status,
            since: far.since,
            because,
            gist,
            recheck_at: None,
            limit_at: None,
            sample_at: None,
            look: None,
            turn,
            background,
        };
        (row, verdict)
    }
}
