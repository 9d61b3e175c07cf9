//! Which session the command line means: by its id, or any beginning of it that no other shares, by its folder or by its title.

use super::beside::{has_bridge, take_over_from_tray};
use super::{Context, NO_HOME, USAGE, say};
use crate::core::fleet::{Label, Row, Session, ShortIds, distinguish, shorten};
use crate::core::misread::misread;
use crate::core::text::{NAME_MAX, counted, plain};
use crate::core::time::Moment;
use crate::engine::snapshot::{self, Snapshot};
use clap_complete::CompletionCandidate;
use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::ops::Deref;
use std::path::PathBuf;
use std::process::ExitCode;

/// So many sessions are named where several are meant.
const NAMED: usize = 5;
/// A name that is less like what was typed is no help (of `strsim`'s likeness, from 0 to 1).
const ALIKE: f64 = 0.6;

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
pub(super) fn pick(context: &Context, named: &str, all: bool) -> Result<Picked, ExitCode> {
    context.tell_problems();
    let unreadable = context.unreadable_homes();
    if context.has_no_home() {
        unreadable.iter().for_each(|problem| say(problem));
        return Err(ExitCode::from(NO_HOME));
    }
    // Every id begins with nothing: a script's variable that is not set must not name a session.
    if named.is_empty() {
        say("name a session by its id, folder or title; `pilotlight status --all` lists them");
        return Err(ExitCode::from(USAGE));
    }
    let Snapshot { sessions, ids, now } = snapshot::take(&context.homes, &context.config, &context.seen, all);
    let shown = sessions.into_iter().filter(|session| session.is_listed() || session.id.starts_with(named));
    let (sessions, mut rows): (Vec<_>, Vec<Row>) =
        shown.map(|session| (session.row(now, &context.config.limits).0, session)).map(|(row, it)| (it, row)).unzip();
    distinguish(&mut rows);
    let mut found: Vec<_> = sessions.into_iter().zip(&rows).filter(|(_, row)| is_meant(row, named)).collect();
    if found.iter().any(|(session, _)| *session.id == *named) {
        found.retain(|(session, _)| *session.id == *named);
    }
    let ids = ShortIds::new(ids.iter().map(|id| &**id));
    match found.len() {
        1 => {
            let (mut session, row) = found.remove(0);
            let label = row.label.clone();
            // What its bridge may do decides what is asked before.
            if has_bridge() {
                take_over_from_tray(std::slice::from_mut(&mut session), &context.homes);
            }
            Ok(Picked { session, label, now })
        }
        0 => {
            let nearest =
                nearest(named, &rows, &ids).map(|near| format!("; the nearest is {near}")).unwrap_or_default();
            say(&format!(
                "no session has {named:?} as its id, folder or title{nearest}. `pilotlight status --all` lists them"
            ));
            Err(ExitCode::from(USAGE))
        }
        n if found.iter().all(|(session, _)| session.id == found[0].0.id) => {
            let id = &found[0].0.id;
            say(&format!("{n} homes have a session {id}: say which is meant with `pilotlight --home DIR`"));
            Err(ExitCode::from(USAGE))
        }
        n => {
            let mut named_so: Vec<_> = found.iter().take(NAMED).map(|(_, row)| with_id(row, &ids)).collect();
            if n > NAMED {
                named_so.push(format!("{} more", n - NAMED));
            }
            say(&format!("{named:?} means {}: {}. Name one by its id", counted(n, "session"), named_so.join(", ")));
            Err(ExitCode::from(USAGE))
        }
    }
}

/// `3aac (billing-api · Write the migration)`.
fn with_id(row: &Row, ids: &ShortIds<'_>) -> String {
    format!("{} ({})", plain(ids.of(&row.id), NAME_MAX), row.label.cut(40))
}

/// All that a session is called beside its id: its folder's path and name, its title, and what tables show.
fn names(row: &Row) -> impl Iterator<Item = Cow<'_, str>> {
    let folder = row.cwd.as_deref().and_then(|path| path.rsplit(['/', '\\']).find(|part| !part.is_empty()));
    let known = [row.cwd.as_deref(), folder, Some(&*row.label.who), row.label.title.as_deref()];
    known.into_iter().flatten().map(Cow::Borrowed).chain([Cow::Owned(row.label.to_string())])
}

fn is_meant(row: &Row, named: &str) -> bool {
    let lower = named.to_lowercase();
    row.id.starts_with(named) || names(row).any(|name| name.to_lowercase() == lower)
}

/// The session whose id or name is most like what was typed, if any is much like it.
fn nearest(named: &str, rows: &[Row], ids: &ShortIds<'_>) -> Option<String> {
    let lower = named.to_lowercase();
    let alike = |row: &Row| {
        let beginning: String = row.id.chars().take(named.chars().count()).collect();
        let known = names(row).map(|name| name.to_lowercase()).chain([beginning]);
        known.map(|name| strsim::normalized_damerau_levenshtein(&lower, &name)).fold(0.0, f64::max)
    };
    let best = rows.iter().map(|row| (alike(row), row)).max_by(|(a, _), (b, _)| a.total_cmp(b))?;
    (best.0 >= ALIKE).then(|| with_id(best.1, ids))
}

/// What completes the name of a session: ids, and the folders and titles that name one alone.
pub(super) fn complete(typed: &OsStr) -> Vec<CompletionCandidate> {
    let Some(typed) = typed.to_str() else { return Vec::new() };
    // Bash puts a candidate into the line as it is, and hands over what stands there.
    let is_bash = std::env::var_os("_CLAP_COMPLETE_COMP_TYPE").is_some();
    let context = Context::new(&homes_in(std::env::args_os()));
    let Snapshot { sessions, ids, now } = snapshot::take_listed(&context.homes, &context.config, &context.seen);
    let listed = sessions.iter().filter(|session| session.is_listed());
    let mut rows: Vec<Row> = listed.map(|session| session.row(now, &context.config.limits).0).collect();
    shorten(&mut rows, now.wall - context.config.list.ended_for, context.config.list.ended_most);
    distinguish(&mut rows);
    let ids = ShortIds::new(ids.iter().map(|id| &**id));
    let mut candidates = Vec::new();
    for row in &rows {
        let known = [Some(ids.of(&row.id)), Some(&*row.label.who), row.label.title.as_deref()];
        for name in known.into_iter().flatten() {
            let value = if is_bash { escaped(name) } else { name.to_owned() };
            let alone = rows.iter().filter(|row| is_meant(row, name)).count() == 1;
            if alone && (value.starts_with(typed) || name.starts_with(typed)) && misread(name).is_none() {
                let help = format!("{}: {}", row.status, row.label.cut(60));
                candidates.push(CompletionCandidate::new(value).help(Some(help.into())));
            }
        }
    }
    candidates
}

/// The homes that a command line which is not whole yet names.
fn homes_in(words: impl Iterator<Item = OsString>) -> Vec<PathBuf> {
    let words: Vec<_> = words.collect();
    words.windows(2).filter(|pair| pair[0] == "--home").map(|pair| PathBuf::from(&pair[1])).collect()
}

/// A word as Bash reads it whole.
fn escaped(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "-_./:@%+,…·".contains(c);
    word.chars().flat_map(|c| (!is_plain(c)).then_some('\\').into_iter().chain([c])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(id: &str, cwd: &str, title: &str) -> Row {
        let row = Session { id: id.into(), ..Session::default() }.row(Moment::default(), &Default::default()).0;
        let who = cwd.rsplit('/').next().unwrap_or_default().to_owned();
        Row { cwd: Some(cwd.into()), label: Label { who, title: Some(title.into()) }, ..row }
    }

    #[test]
    fn a_session_is_meant_by_its_id_its_folder_and_its_title() {
        let row = row("3aac-11", "/code/billing-api", "Write the migration");
        for named in [
            "3aac",
            "3aac-11",
            "billing-api",
            "Billing-API",
            "/code/billing-api",
            "write the migration",
            "billing-api · Write the migration",
        ] {
            assert!(is_meant(&row, named), "{named}");
        }
        for other in ["aac", "billing", "3AAC", "Write"] {
            assert!(!is_meant(&row, other), "{other}");
        }
    }

    #[test]
    fn the_nearest_is_named_where_it_is_near() {
        let rows =
            [row("3aac-11", "/code/billing-api", "Write the migration"), row("90ff-22", "/code/infra", "Load test")];
        let ids = ShortIds::new(rows.iter().map(|row| &*row.id));
        let near = |named| nearest(named, &rows, &ids);
        assert_eq!(near("biling-api").as_deref(), Some("3aac (billing-api · Write the migration)"));
        assert_eq!(near("load tests").as_deref(), Some("90ff (infra · Load test)"));
        assert_eq!(near("90fe").as_deref(), Some("90ff (infra · Load test)"));
        assert_eq!(near("something else"), None);
    }

    #[test]
    fn a_word_is_one_word_to_bash() {
        assert_eq!(escaped("Fix it; $(rm) 'x'"), "Fix\\ it\\;\\ \\$\\(rm\\)\\ \\'x\\'");
        assert_eq!(escaped("billing-api_2.0"), "billing-api_2.0");
        let line = ["pilotlight", "--", "pilotlight", "--home", "/a", "stop", "--home", "/b", ""].map(OsString::from);
        assert_eq!(homes_in(line.into_iter()), [PathBuf::from("/a"), PathBuf::from("/b")]);
    }
}
