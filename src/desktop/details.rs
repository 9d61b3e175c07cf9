//! What is said of one session in its submenu, and in the notification that a click on its popup raises.
//!
//! The lines are always the same in number and order, whatever is known: a line that came and went would be a change of
//! shape, and close the menu under the user's hand each time a tool starts.

use super::actions::{self, Asked};
use super::hush::Notices;
use super::view::{Effect, Item, ItemId, Kind, Summary};
use crate::core::alert::Detail;
use crate::core::fleet::{Row, Session, mark};
use crate::core::limits::Limits;
use crate::core::owner::Owner;
use crate::core::text::{counted, fit, is_uuid, listed, plain};
use crate::core::time::Time;
use crate::engine::Key;
use std::path::{Path, PathBuf};

/// Lines of a submenu are at most this long, in characters: a menu does not wrap, and grows as wide as its longest line.
const LINE: usize = 96;
/// A label in a row, in columns.
const NAME: usize = 44;
/// A reason in a row.
const REASON: usize = 60;

/// What a submenu is made of.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    /// Which session.
    pub key: &'a Key,
    /// What is shown of it everywhere.
    pub row: &'a Row,
    /// What was observed of it.
    pub session: &'a Session,
    /// Its folder.
    pub path: &'a Path,
}

/// What words depend on beside the session.
#[derive(Clone, Copy, Debug)]
pub struct Words<'a> {
    /// The limits that statuses rest on.
    pub limits: &'a Limits,
    /// The user's home, which is written `~`.
    pub user_home: Option<&'a str>,
    /// Ages are counted up to this.
    pub aged: Time,
    /// What is muted.
    pub notices: &'a Notices,
}

/// The row: `⚑ needs-permission   Fix the parser · 2 min · asks permission: shell`.
pub fn row(source: &Source<'_>, words: &Words<'_>) -> String {
    let row = source.row;
    let (shape, _) = mark(row.status);
    let unseen = if row.unseen { "● " } else { "" };
    let (name, because) = (row.label.cut(NAME), plain(&row.reason(words.aged), REASON));
    let muted = if words.notices.quiet.is_muted(&row.id, row.cwd.as_deref()) { " · muted" } else { "" };
    format!("{shape} {}   {unseen}{name} · {} · {because}{muted}", row.status, row.age(words.aged))
}

/// The row of a session whose folder is gone.
pub fn gone(name: &str) -> String {
    format!("○ gone   {}", fit(name, NAME))
}

/// The submenu of a session; `asked` are the requests that it shows.
pub fn submenu(source: &Source<'_>, words: &Words<'_>, asked: &[Asked]) -> Vec<Item> {
    let Source { key, row, session, path } = *source;
    let id = |kind| ItemId::of(key, kind);
    let folder = row.cwd.as_deref().map(Path::new).filter(|cwd| cwd.is_absolute()).map(Path::to_owned);
    // Only what has the form of an id reaches a command line or the clipboard: what else a folder may be called is not Copilot's.
    let resume = is_uuid(&row.id).then(|| format!("copilot --resume={}", row.id));
    let wants_a_look =
        row.unseen || super::icon::colours(row, session.seen) && super::icon::keeps_when_seen(row.status);
    // Enabled, though they only say something: a panel shows what is disabled in a grey that is hard to read. Whoever clicks
    // one has looked.
    let mut lines = 0..;
    let mut fact =
        |line: String| Item::action(id(Kind::Fact(lines.next().unwrap_or(0))), plain(&line, LINE), true, Effect::Seen);
    let (mut items, actions) = actions::items(source, asked);
    if !items.is_empty() {
        items.push(Item::Separator);
    }
    items.extend(facts(source, words).into_iter().map(&mut fact));
    items.push(Item::Submenu {
        id: id(Kind::Why),
        text: "Why this status".into(),
        enabled: true,
        items: why(source, words).into_iter().map(fact).collect(),
    });
    items.push(Item::Separator);
    items.extend(actions);
    items.push(Item::Separator);
    items.push(Item::action(
        id(Kind::OpenFolder),
        "Open folder",
        folder.is_some(),
        Effect::OpenFolder(folder.unwrap_or_default()),
    ));
    items.push(Item::action(id(Kind::CopyId), "Copy id", resume.is_some(), Effect::Copy(plain(&row.id, 200).into())));
    items.push(Item::action(
        id(Kind::CopyResume),
        match &resume {
            Some(_) => format!("Copy “copilot --resume={}…”", crate::core::fleet::short_id(&row.id)),
            None => "Copy the command that resumes it: its id is none".into(),
        },
        resume.is_some(),
        Effect::Copy(resume.unwrap_or_default()),
    ));
    let log = session.has_log.then(|| path.join(crate::watch::store::LOG));
    items.push(Item::action(
        id(Kind::OpenLog),
        "Open log",
        log.is_some(),
        Effect::OpenLog(log.unwrap_or_else(PathBuf::new)),
    ));
    items.push(Item::action(id(Kind::Seen), "Mark as seen", wants_a_look, Effect::Seen));
    items.extend(words.notices.of_session(key, row));
    items
}

/// The session in the words of a notification: as many of them as the user wants to have on the screen.
pub fn summary(source: &Source<'_>, words: &Words<'_>) -> Summary {
    let row = source.row;
    let facts = facts(source, words);
    let because = plain(&row.reason(words.aged), 200);
    let title = format!("{} {}: {}", mark(row.status).0, row.status, row.label.cut(80));
    let (title, body) = match words.notices.detail {
        Detail::Full => (title, [&*because, &facts[0], &facts[3], &facts[4]].join("\n")),
        Detail::Title => (title, String::new()),
        Detail::None if row.needs_you() => ("A Copilot session needs you".into(), "The menu shows which.".into()),
        Detail::None => ("No Copilot session needs you".into(), "The menu shows how they are.".into()),
    };
    Summary { title, body }
}

/// Folder, branch, model, what goes on, last activity, owner, background work, our part.
fn facts(source: &Source<'_>, words: &Words<'_>) -> [String; 8] {
    let Source { row, session, .. } = *source;
    let folder = row.cwd.as_deref().map_or("not known".into(), |cwd| short_path(cwd, words.user_home));
    let age = match row.last_progress {
        None => "none yet".into(),
        Some(_) => match &*row.age(words.aged) {
            "now" => "just now".into(),
            age => format!("{age} ago"),
        },
    };
    [
        format!("Folder: {folder}"),
        format!("Branch: {}", row.branch.as_deref().unwrap_or("none")),
        format!("Model: {}", session.facts.model.as_deref().unwrap_or("not known")),
        format!("Now: {}", doing(session)),
        format!("Last activity: {age}"),
        format!("Owner: {}", owner(&session.owner)),
        format!("Background: {}", background(row)),
        actions::dealings(source),
    ]
}

fn short_path(path: &str, home: Option<&str>) -> String {
    match home.filter(|home| home.len() > 1).and_then(|home| path.strip_prefix(home)) {
        Some("") => "~".into(),
        Some(rest) if rest.starts_with(['/', '\\']) => format!("~{rest}"),
        _ => path.into(),
    }
}

/// The tool that is open and what it works on.
fn doing(session: &Session) -> String {
    let facts = &session.facts;
    match &facts.turn {
        _ if facts.compaction.is_some() => "compacting its log".into(),
        None => "no turn is open".into(),
        Some(turn) => match turn.tools.last() {
            None => "a turn is open, no tool in it".into(),
            Some(tool) => {
                let more = turn.tools.len() - 1;
                let more = if more > 0 { format!("{} more, ", counted(more, "tool")) } else { String::new() };
                let command = tool.command.as_deref().map(|command| format!(": {command}")).unwrap_or_default();
                format!("{more}{}{command}", tool.name)
            }
        },
    }
}

fn owner(owner: &Owner) -> String {
    match owner {
        Owner::Never => "no process".into(),
        Owner::Alive { pid, .. } => format!("process {pid}"),
        Owner::Opened { pid, .. } => format!("process {pid}, not prompted yet"),
        Owner::Unheld { pid } => format!("not known; process {pid}, which the lock names, does not hold it"),
        Owner::Gone { pid, .. } => format!("process {pid}, which is gone"),
        Owner::Unknown { pid } => format!("process {pid}, which cannot be looked at"),
    }
}

fn background(row: &Row) -> String {
    let (agents, shells) = (row.background.agents, row.background.shells);
    let counts = [(agents, "agent"), (shells, "shell")];
    let parts: Vec<_> = counts.iter().filter(|(n, _)| *n > 0).map(|(n, what)| counted(*n, what)).collect();
    if parts.is_empty() { "nothing".into() } else { listed(&parts) }
}

/// What the status rests on, what would change it, what the turn has come to, and who was refused.
fn why(source: &Source<'_>, words: &Words<'_>) -> [String; 4] {
    let Source { row, session, .. } = *source;
    let limits = words.limits;
    let changes = match &session.facts.turn {
        Some(turn) if turn.question().is_none() && session.facts.requests.is_empty() => {
            let (situation, quiet, stuck) = turn.silence_limits(limits);
            format!("Silence counts as quiet after {quiet} and as stuck after {stuck}: {situation}")
        }
        _ => "Changes with its next event, or the end of its process".into(),
    };
    let turn = match &session.facts.turn {
        None => "Turn: none is open".into(),
        Some(turn) => format!("Turn: open, {} used, {} succeeded", counted(turn.used as usize, "tool"), turn.succeeded),
    };
    let (results, denied) = (session.facts.denials.of(), session.facts.denials.after(session.live.attached));
    let denials = match denied {
        0 => "Permissions: nothing was denied for want of somebody to ask".into(),
        _ => format!("Permissions: {denied} of the last {results} tools denied, because nobody could be asked"),
    };
    [format!("{}: {}", row.status, row.because), changes, turn, denials]
}
