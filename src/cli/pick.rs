//! Finds the session that the command line names: by its id or a unique prefix of it, by its folder, or by its title.

use super::context::Context;
use super::hosts::{Known, Which, known};
use super::observe::{Effort, Picture, observe};
use super::report::{FAILED, NO_HOME, USAGE, say};
use clap_complete::{ArgValueCompleter, CompletionCandidate};
use pilotlight_core::confusable::find_confusable;
use pilotlight_core::fleet::{Label, Row, Session, ShortIds, distinguish, limit_ended};
use pilotlight_core::text::{NAME_MAX, counted, plain};
use pilotlight_core::time::Moment;
use pilotlight_engine::past::Depth;
use pilotlight_system::clock::Clock;
use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::ops::Deref;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

/// Maximum number of sessions listed when a name is ambiguous.
const AMBIGUOUS_MAX: usize = 5;
/// Minimum similarity of a suggested name to what was typed, as `strsim` measures it, from 0 to 1.
const SIMILARITY_MIN: f64 = 0.6;

/// The argument that names a session.
#[derive(Debug, clap::Args)]
pub(super) struct Named {
    /// The session's id, the beginning of its id, its folder or its title
    #[arg(value_name = "NAME", add = ArgValueCompleter::new(complete))]
    pub(super) id: String,
    /// The session's machine, by its name in the settings. Without this option, sessions of this machine come first
    #[arg(long, value_name = "HOST")]
    pub(super) host: Option<String>,
}

/// The session that was named.
pub(super) struct Picked {
    pub(super) session: Session,
    /// Its name for people, unique among all listed sessions.
    pub(super) label: Label,
    /// When it was read.
    pub(super) now: Moment,
}

impl Deref for Picked {
    type Target = Session;

    fn deref(&self) -> &Session {
        &self.session
    }
}

/// Why no session was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NotFound {
    /// No home can be read.
    NoHome,
    /// The sessions, or those of a machine that may have it, could not be read.
    Failed,
    /// None is called so.
    Unknown,
    /// The name is no name, names several, or names an unknown machine.
    Unclear,
}

impl NotFound {
    /// How a command ends that needs the session.
    pub(super) fn code(self) -> ExitCode {
        ExitCode::from(match self {
            Self::NoHome => NO_HOME,
            Self::Failed => FAILED,
            Self::Unknown | Self::Unclear => USAGE,
        })
    }
}

/// Finds the session. `depth` says how much is read of those that are over.
///
/// # Errors
/// The exit code, if no session or several match. The user has been told then.
pub(super) fn pick(context: &Context, named: &Named, depth: Depth, effort: Effort) -> Result<Picked, ExitCode> {
    context.report_problems();
    find(context, named, depth, effort).map_err(NotFound::code)
}

/// The same.
///
/// # Errors
/// Why it was not found. The user has been told then.
pub(super) fn find(
    context: &Context,
    Named { id: named, host }: &Named,
    depth: Depth,
    effort: Effort,
) -> Result<Picked, NotFound> {
    let unreadable = context.unreadable_homes();
    if context.has_no_home() && context.hosts().next().is_none() {
        unreadable.iter().for_each(|problem| say(problem));
        return Err(NotFound::NoHome);
    }
    let unknown = host.as_ref().filter(|host| !context.hosts().any(|one| one.name == **host));
    let unknown = unknown.map(|host| format!("no machine in the settings is called {host:?}"));
    // Every id starts with the empty string: an unset variable in a script must not name a session.
    let unnamed = "name a session by its id, folder or title; `pilotlight status --all` lists them";
    if let Some(wrong) = unknown.or_else(|| named.is_empty().then(|| unnamed.into())) {
        say(&wrong);
        return Err(NotFound::Unclear);
    }
    let found = candidates(context, named, host.as_deref(), depth, effort);
    let Candidates { shown, ids, now, unreached } = found.map_err(|error| {
        say(&format!("{error:#}"));
        NotFound::Failed
    })?;
    let (sessions, mut rows): (Vec<_>, Vec<Row>) = shown
        .into_iter()
        .map(|session| (session.row(now, &context.config.limits).0, session))
        .map(|(row, it)| (it, row))
        .unzip();
    distinguish(&mut rows);
    let mut found: Vec<_> = sessions.into_iter().zip(&rows).filter(|(_, row)| matches_name(row, named)).collect();
    if is_named_in_full(named, found.iter().map(|(session, _)| session)) {
        found.retain(|(session, _)| *session.id == *named);
    }
    let ids = ShortIds::new(ids.iter().map(|id| &**id));
    let words = if found.is_empty() && host.is_some() { Known::nothing_done } else { Known::not_reached };
    unreached.iter().filter_map(words).for_each(|words| say(&words));
    match found.len() {
        1 => {
            let (session, row) = found.remove(0);
            Ok(Picked { session, label: row.label.clone(), now })
        }
        // It may be there all the same.
        0 if host.is_some() && !unreached.is_empty() => Err(NotFound::Failed),
        0 => {
            let meant = beginning(named, &rows, &ids).map(|meant| format!("; did you mean {meant}?"));
            let nearest = || nearest(named, &rows, &ids).map(|near| format!("; the nearest is {near}."));
            let nearest = meant.or_else(nearest).unwrap_or_else(|| ".".into());
            say(&format!(
                "no session has {named:?} as its id, folder or title{nearest} `pilotlight status --all` lists them"
            ));
            // It may be there all the same.
            context.silent.iter().for_each(|silent| say(&silent.words()));
            Err(NotFound::Unknown)
        }
        n if found.iter().all(|(session, _)| session.id == found[0].0.id) => {
            let id = &found[0].0.id;
            say(&match found.iter().any(|(session, _)| session.remote.is_some()) {
                true => format!("{n} machines have a session {id}: say which is meant with `--host NAME`"),
                false => format!("{n} homes have a session {id}: say which is meant with `pilotlight --home DIR`"),
            });
            Err(NotFound::Unclear)
        }
        n => {
            let matches = enumerated(found.iter().map(|(_, row)| with_id(row, &ids)).collect(), ", ");
            let ways = ways_to_name(found.iter().map(|(session, _)| session));
            say(&format!("{named:?} means {}: {matches}. Name one by {ways}", counted(n, "session")));
            Err(NotFound::Unclear)
        }
    }
}

/// What tells these apart.
fn ways_to_name<'a>(found: impl Iterator<Item = &'a Session>) -> &'static str {
    let mut machines = found.map(|session| session.remote.as_ref().map(|remote| &remote.host.name));
    let first = machines.next();
    if machines.any(|machine| Some(machine) != first) {
        "its id, folder or title, or its machine by `--host NAME`"
    } else {
        "its id, folder or title"
    }
}

/// Whether one of these is meant by its whole id. Any process can report a session with an id that others are shortened to:
/// it does not take their place.
fn is_named_in_full<'a>(named: &str, mut found: impl Iterator<Item = &'a Session> + Clone) -> bool {
    let is_reported = |session: &Session| session.observed.hook_report.is_some();
    let has_other = found.clone().any(|other| !is_reported(other) && other.id.starts_with(named));
    found.any(|session| *session.id == *named && !(is_reported(session) && has_other))
}

/// What may be meant.
struct Candidates {
    shown: Vec<Session>,
    /// The ids of all.
    ids: Vec<Arc<str>>,
    /// When they were read.
    now: Moment,
    /// The machines that were asked and are not reached.
    unreached: Vec<Known>,
}

/// The sessions that may be meant. Other machines are only asked about what is not here.
fn candidates(
    context: &Context,
    named: &str,
    host: Option<&str>,
    depth: Depth,
    effort: Effort,
) -> anyhow::Result<Candidates> {
    let (sessions, mut ids, now) = match host {
        Some(_) => (Vec::new(), Vec::new(), Clock::start().now()),
        None => {
            let mut picture = observe(context, effort, Some(depth))?;
            let ids = picture.ids();
            (picture.sessions, ids, picture.now)
        }
    };
    let mut shown: Vec<_> =
        sessions.into_iter().filter(|session| session.is_listed() || session.id.starts_with(named)).collect();
    let is_here = |session: &Session| matches_name(&session.row(now, &context.config.limits).0, named);
    let mut unreached = Vec::new();
    if !shown.iter().any(is_here) {
        let which = if depth == Depth::Whole { Which::All } else { Which::Recent };
        for mut known in known(context, host, which, now) {
            shown.append(&mut known.sessions);
            unreached.extend(known.trouble.is_some().then_some(known));
        }
        ids.extend(shown.iter().map(|session| session.id.as_ref().into()));
    }
    Ok(Candidates { shown, ids, now, unreached })
}

/// `3aac (billing-api · Write the migration)`.
pub(super) fn with_id(row: &Row, ids: &ShortIds<'_>) -> String {
    format!("{} ({})", plain(ids.of(&row.id), NAME_MAX), row.label.cut(40))
}

/// These, or the first of them and how many more there are.
pub(super) fn enumerated(mut sessions: Vec<String>, joint: &str) -> String {
    let more = sessions.len().saturating_sub(AMBIGUOUS_MAX);
    sessions.truncate(AMBIGUOUS_MAX);
    if more > 0 {
        sessions.push(format!("{more} more"));
    }
    sessions.join(joint)
}

/// A session's names besides its id: its folder's path and name, its title, and its label in tables.
fn names(row: &Row) -> impl Iterator<Item = Cow<'_, str>> {
    let folder = row.cwd.as_deref().and_then(|path| path.rsplit(['/', '\\']).find(|part| !part.is_empty()));
    let known = [row.cwd.as_deref(), folder, Some(&*row.label.who), row.label.title.as_deref()];
    let shown = [row.label.to_string(), row.label.without_agent().to_string()].map(Cow::Owned);
    known.into_iter().flatten().map(Cow::Borrowed).chain(shown)
}

fn matches_name(row: &Row, named: &str) -> bool {
    let lower = named.to_lowercase();
    row.id.starts_with(named) || names(row).any(|name| name.to_lowercase() == lower)
}

/// The sessions whose folder or title begins with what was typed, or has a word that does.
fn beginning(named: &str, rows: &[Row], ids: &ShortIds<'_>) -> Option<String> {
    let lower = named.to_lowercase();
    let begins = |name: &str| {
        let name = name.to_lowercase();
        let mut at = name.match_indices(&lower);
        at.any(|(at, _)| name[..at].chars().next_back().is_none_or(|before| !before.is_alphanumeric()))
    };
    let is_meant = |row: &&Row| [Some(&*row.label.who), row.label.title.as_deref()].into_iter().flatten().any(begins);
    let meant: Vec<_> = rows.iter().filter(is_meant).map(|row| with_id(row, ids)).collect();
    (!meant.is_empty()).then(|| enumerated(meant, ", or "))
}

/// The session whose id or name is most similar to what was typed, if it is similar enough.
fn nearest(named: &str, rows: &[Row], ids: &ShortIds<'_>) -> Option<String> {
    let lower = named.to_lowercase();
    let similarity = |row: &Row| {
        let prefix: String = row.id.chars().take(named.chars().count()).collect();
        let names = names(row).map(|name| name.to_lowercase()).chain([prefix]);
        names.map(|name| strsim::normalized_damerau_levenshtein(&lower, &name)).fold(0.0, f64::max)
    };
    let best = rows.iter().map(|row| (similarity(row), row)).max_by(|(a, _), (b, _)| a.total_cmp(b))?;
    (best.0 >= SIMILARITY_MIN).then(|| with_id(best.1, ids))
}

/// Completions for a session argument: short ids, and the folders and titles that are unique.
pub(super) fn complete(typed: &OsStr) -> Vec<CompletionCandidate> {
    let Some(typed) = typed.to_str() else { return Vec::new() };
    // Bash inserts a candidate verbatim, and passes the word as typed, so candidates must be escaped for it.
    let is_bash = std::env::var_os("_CLAP_COMPLETE_COMP_TYPE").is_some();
    let context = Context::new(&homes_in(std::env::args_os()));
    let Ok(mut picture) = observe(&context, Effort::Look, None) else { return Vec::new() };
    let ids = picture.ids();
    let Picture { sessions, now, .. } = picture;
    let listed = sessions.iter().filter(|session| session.is_listed());
    let mut rows: Vec<Row> = listed.map(|session| session.row(now, &context.config.limits).0).collect();
    limit_ended(&mut rows, now.wall - context.config.list.ended_for, context.config.list.ended_most);
    distinguish(&mut rows);
    let ids = ShortIds::new(ids.iter().map(|id| &**id));
    let mut candidates = Vec::new();
    for row in &rows {
        let names = [Some(ids.of(&row.id)), Some(&*row.label.who), row.label.title.as_deref()];
        for name in names.into_iter().flatten() {
            let value = if is_bash { escaped(name) } else { name.to_owned() };
            let is_unique = rows.iter().filter(|row| matches_name(row, name)).count() == 1;
            if is_unique && (value.starts_with(typed) || name.starts_with(typed)) && find_confusable(name).is_none() {
                let help = format!("{}: {}", row.status, row.label.cut(60));
                candidates.push(CompletionCandidate::new(value).help(Some(help.into())));
            }
        }
    }
    candidates
}

/// The homes that an incomplete command line names.
fn homes_in(words: impl Iterator<Item = OsString>) -> Vec<PathBuf> {
    let words: Vec<_> = words.collect();
    words.windows(2).filter(|pair| pair[0] == "--home").map(|pair| PathBuf::from(&pair[1])).collect()
}

/// Escapes a string so that Bash reads it as one literal word.
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
        Row { cwd: Some(cwd.into()), label: Label { who, agent: None, title: Some(title.into()) }, ..row }
    }

    #[test]
    fn a_session_matches_by_id_prefix_folder_and_title() {
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
            assert!(matches_name(&row, named), "{named}");
        }
        for other in ["aac", "billing", "3AAC", "Write"] {
            assert!(!matches_name(&row, other), "{other}");
        }
    }

    #[test]
    fn the_nearest_name_is_suggested_if_it_is_similar() {
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
    fn sessions_whose_name_begins_so_are_suggested() {
        let rows = [
            row("3aac-11", "/code/web-shop", "Cart"),
            row("90ff-22", "/code/infra", "Load the web test"),
            row("77aa-33", "/code/cobweb", "Dust"),
        ];
        let ids = ShortIds::new(rows.iter().map(|row| &*row.id));
        let meant = |named| beginning(named, &rows, &ids);
        let both = "3aac (web-shop · Cart), or 90ff (infra · Load the web test)";
        assert_eq!((meant("web").as_deref(), meant("WEB").as_deref()), (Some(both), Some(both)));
        assert_eq!(meant("shop").as_deref(), Some("3aac (web-shop · Cart)"));
        assert_eq!((meant("eb"), meant("webs")), (None, None));
        let many: Vec<_> = (0..7).map(|n| row(&format!("{n}aaa-0"), "/code/web", "Cart")).collect();
        let ids = ShortIds::new(many.iter().map(|row| &*row.id));
        assert!(beginning("we", &many, &ids).unwrap().ends_with(", or 2 more"));
    }

    #[test]
    fn an_escaped_name_is_one_word_to_bash() {
        assert_eq!(escaped("Fix it; $(rm) 'x'"), "Fix\\ it\\;\\ \\$\\(rm\\)\\ \\'x\\'");
        assert_eq!(escaped("billing-api_2.0"), "billing-api_2.0");
        let line = ["pilotlight", "--", "pilotlight", "--home", "/a", "stop", "--home", "/b", ""].map(OsString::from);
        assert_eq!(homes_in(line.into_iter()), [PathBuf::from("/a"), PathBuf::from("/b")]);
    }
}
