//! The row of a session on another machine.

use super::label::{LABEL_DISTINCT_WIDTH, Label};
use super::row::{OwnerView, Row};
use crate::core::action::{Action, offer};
use crate::core::request_view::RequestView;
use crate::core::session::Session;
use crate::core::session::far::Far;
use crate::core::text::fit;
use crate::core::verdict::{Status, Verdict};
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
    let room = LABEL_DISTINCT_WIDTH.saturating_sub(at_host("", Some(host)).width()).max(FOLDER_MIN);
    Label { who: at_host(&fit(&far.who, room), Some(host)), of_agent: None, title: far.title.clone() }
}

impl Session {
    /// Its row as its host tells it, and what stands for a verdict.
    pub(super) fn far_row(&self, far: &Far) -> (Row, Verdict) {
        let about = &self.observed.about;
        let oldest = self.observed.facts.requests.first();
        let can = |action: &Action| offer(*action, self, far.status).is_ok();
        let row = Row {
            id: self.id.clone(),
            name: far.name.to_string(),
            cwd: about.cwd.clone(),
            branch: about.branch.clone(),
            kind: about.kind,
            status: far.status,
            since: far.since,
            last_progress: far.last_progress,
            because: far.because.clone(),
            unseen: far.unseen,
            owner: far.owner.as_ref().map(|owner| OwnerView {
                pid: owner.pid,
                state: owner.state,
                attachable: owner.attachable,
                bridge: owner.bridge,
            }),
            background: far.background,
            actions: Action::ALL.into_iter().filter(can).collect(),
            label: label(far),
            turn: far.turn,
            request: oldest.filter(|_| far.status == Status::NeedsPermission).map(RequestView::of),
            question: self.vitals.questions.first().map(|asking| asking.question.clone()),
            agent: self.observed.agent.clone(),
            host: Some(far.host.name.clone()),
            gist: far.gist.clone(),
            is_seen: far.is_seen,
        };
        let verdict = Verdict {
            status: far.status,
            since: far.since,
            because: far.because.clone(),
            gist: far.gist.clone(),
            recheck_at: None,
            limit_at: None,
            sample_at: None,
            look: None,
            turn: far.turn,
            background: far.background,
        };
        (row, verdict)
    }
}
