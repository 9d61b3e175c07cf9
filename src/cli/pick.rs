//! Which session an id on the command line means: any beginning of an id that no other shares.

use super::{Context, NO_HOME, USAGE, say};
use crate::core::fleet::Session;
use crate::core::text::counted;
use crate::core::time::Moment;
use crate::survey::survey;
use std::process::ExitCode;

/// So many ids are named where one is ambiguous.
const NAMED: usize = 5;

/// The session, and when it was looked at. Where there is none, or more than one, this says so, and what to exit with is
/// the error. `all`: even logs that are too old to matter are read.
pub(super) fn pick(context: &Context, id: &str, all: bool) -> Result<(Session, Moment), ExitCode> {
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
    let mut found: Vec<_> = survey.sessions.into_iter().filter(|session| session.id.starts_with(id)).collect();
    if found.iter().any(|session| *session.id == *id) {
        found.retain(|session| *session.id == *id);
    }
    match found.len() {
        1 => found.pop().map(|session| (session, survey.now)).ok_or(ExitCode::from(USAGE)),
        0 => {
            say(&format!("no session's id begins with {id:?}; `pilotlight status --all --json` lists them"));
            Err(ExitCode::from(USAGE))
        }
        n => {
            let ids: Vec<_> = found.iter().map(|session| &*session.id).take(NAMED).collect();
            say(&format!("{} begin with {id:?}: {}", counted(n, "session's id"), ids.join(", ")));
            Err(ExitCode::from(USAGE))
        }
    }
}
