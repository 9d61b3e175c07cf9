//! Which session an id on the command line means: any beginning of an id that no other shares.

use super::{Context, NO_HOME, USAGE, say};
use crate::core::fleet::{Label, Row, Session, distinguish};
use crate::core::text::counted;
use crate::core::time::Moment;
use crate::survey::survey;
use std::ops::Deref;
use std::process::ExitCode;

/// So many ids are named where one is ambiguous.
const NAMED: usize = 5;

/// A session that was named.
pub(super) struct Picked {
    pub(super) session: Session,
    /// What people are shown for it, told apart from all that a list shows.
    pub(super) label: Label,
    /// When it was looked at.
    pub(super) now: Moment,
}

impl Deref for Picked {
    type Target = Session;

    fn deref(&self) -> &Session {
        &self.session
    }
}

/// The session. Where there is none, or more than one, this says so, and what to exit with is
/// the error. `all`: even logs that are too old to matter are read.
pub(super) fn pick(context: &Context, id: &str, all: bool) -> Result<Picked, ExitCode> {
    context.tell_problems();
    let unreadable = context.unreadable_homes();
    if context.has_no_home() {
        unreadable.iter().for_each(|problem| say(problem));
        return Err(ExitCode::from(NO_HOME));
    }
    // Every id begins with nothing: a script's variable that is not set must not name a session.
    if id.is_empty() {
        say("an id is needed, or its beginning; `pilotlight status --all --json` lists them");
        return Err(ExitCode::from(USAGE));
    }
    let survey = survey(&context.homes, &context.config, &context.seen, all);
    let now = survey.now;
    let shown = survey.sessions.iter().filter(|session| session.is_listed() || session.id.starts_with(id));
    let mut rows: Vec<Row> = shown.map(|session| session.row(now, &context.config.limits).0).collect();
    distinguish(&mut rows);
    let mut found: Vec<_> = survey.sessions.into_iter().filter(|session| session.id.starts_with(id)).collect();
    if found.iter().any(|session| *session.id == *id) {
        found.retain(|session| *session.id == *id);
    }
    match found.len() {
        1 => {
            let session = found.remove(0);
            let label = rows.into_iter().find(|row| row.id == session.id).map(|row| row.label).unwrap_or_default();
            Ok(Picked { session, label, now })
        }
        0 => {
            say(&format!("no session's id begins with {id:?}; `pilotlight status --all --json` lists them"));
            Err(ExitCode::from(USAGE))
        }
        n if found.iter().all(|session| session.id == found[0].id) => {
            let id = &found[0].id;
            say(&format!("{n} homes have a session {id}: say which is meant with `pilotlight --home DIR`"));
            Err(ExitCode::from(USAGE))
        }
        n => {
            let ids: Vec<_> = found.iter().map(|session| &*session.id).take(NAMED).collect();
            say(&format!("{} begin with {id:?}: {}", counted(n, "session's id"), ids.join(", ")));
            Err(ExitCode::from(USAGE))
        }
    }
}
