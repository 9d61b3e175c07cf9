//! Copilot's homes and the sessions in them: what can be read, whose locks are left behind, and which logs are none.
//!
//! Nothing here is opened that could wait for somebody (a pipe, a device), and no link is followed out of a session's folder.

use super::{EACH, Finding, Ground};
use crate::agent::copilot::store::{LOG, SESSIONS};
use crate::agent::copilot::tail::{LogError, length};
use crate::core::fleet::Session;
use crate::core::owner::Owner;
use crate::core::text::{counted, is_uuid, plain};
use crate::engine::snapshot::{self, Snapshot};
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

/// A log of more than this costs a noticeable time to read, and the start of a turn that lies further back is not looked for.
/// In bytes; the largest that others reported had 20 MB.
const HUGE: u64 = 64 << 20;
/// So many ids are named in one line.
const NAMED: usize = 5;

/// What is found, and the sessions that could be looked at.
pub(super) fn homes(ground: &Ground) -> (Vec<Finding>, Vec<Session>) {
    let mut findings = Vec::new();
    if ground.homes.is_empty() {
        findings.push(
            Finding::problem("home", "cannot tell where Copilot's home is", "name one with --home DIR or COPILOT_HOME")
                .told_to_all(),
        );
    }
    let Snapshot { sessions, .. } = snapshot::take(&ground.homes, &ground.config, &ground.seen, false);
    for (number, home) in ground.homes.iter().enumerate() {
        findings.push(one_home(home, number + 1));
        findings.extend(strange_entries(&home.join(SESSIONS)));
    }
    findings.extend(locks(&sessions));
    findings.extend(logs(&ground.homes, &sessions));
    (findings, sessions)
}

fn one_home(home: &Path, number: usize) -> Finding {
    const CHECK: &str = "home";
    let (shown, place) = (home.display(), format!("home {number}"));
    let listed = fs::read_dir(home.join(SESSIONS));
    match listed {
        Ok(entries) => {
            let count = entries.filter_map(Result::ok).filter(is_session).count();
            let count = counted(count, "session");
            Finding::ok(CHECK, format!("{shown}: {count}")).redacted(format!("{place}: {count}"))
        }
        Err(error) if error.kind() == ErrorKind::NotFound && home.is_dir() => {
            Finding::ok(CHECK, format!("{shown}: no session was ever started in it"))
                .redacted(format!("{place}: empty"))
        }
        Err(error) if error.kind() == ErrorKind::NotFound => Finding::problem(
            CHECK,
            format!("there is no Copilot home at {shown}"),
            "start `copilot` once, or name another with --home DIR, COPILOT_HOME or `homes` in the settings",
        )
        .redacted(format!("{place}: not there")),
        Err(error) => Finding::problem(
            CHECK,
            format!("the Copilot home {shown} cannot be read: {error}"),
            "its sessions are not seen: give yourself permission to read it, or take it out of the settings",
        )
        .redacted(format!("{place}: cannot be read")),
    }
}

fn is_session(entry: &fs::DirEntry) -> bool {
    let hidden = entry.file_name().to_string_lossy().starts_with('.');
    !hidden && entry.file_type().is_ok_and(|kind| kind.is_dir())
}

/// Links among the session folders: they are not followed, so what is behind them is not seen.
fn strange_entries(sessions: &Path) -> Vec<Finding> {
    let Ok(entries) = fs::read_dir(sessions) else { return Vec::new() };
    let links = entries.filter_map(Result::ok).filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_symlink()));
    let said = |entry: fs::DirEntry| {
        Finding::warning(
            "session",
            format!(
                "{} is a symbolic link, and is not followed: what is behind it is not shown",
                entry.path().display()
            ),
            "name the home that it leads to with --home DIR, or `homes` in the settings",
        )
        .redacted("a link among the session folders")
    };
    links.take(EACH).map(said).collect()
}

/// Locks that were left behind, that cannot be told, and of which there are too many.
fn locks(sessions: &[Session]) -> Vec<Finding> {
    const CHECK: &str = "lock";
    let mut findings = Vec::new();
    let (mut alive, mut stale, mut unheld, mut unknown) = (0, Vec::new(), Vec::new(), Vec::new());
    for session in sessions {
        match session.owner {
            Owner::Alive { .. } | Owner::Opened { .. } => alive += 1,
            Owner::Gone { .. } => stale.push(session),
            Owner::Unheld { .. } => unheld.push(session),
            Owner::Unknown { .. } => unknown.push(session),
            Owner::Never => {}
        }
    }
    findings.push(Finding::ok(CHECK, format!("{} a live owner", having(alive))).told_to_all());
    if !stale.is_empty() {
        let count = having(stale.len());
        findings.push(
            Finding::warning(
                CHECK,
                format!("{count} a lock of a process that is gone: {}", named(&stale)),
                "harmless, and Copilot's own: it stays after a crash, and resuming the session replaces it",
            )
            .redacted(format!("{count} a lock of a process that is gone")),
        );
    }
    if !unheld.is_empty() {
        let count = having(unheld.len());
        findings.push(
            Finding::warning(
                CHECK,
                format!("{count} a lock of a process that does not hold it: {}", named(&unheld)),
                "it was copied along with its folder, or made by another program: the session is shown, and nothing is done with it",
            )
            .redacted(format!("{count} a lock of a process that does not hold it")),
        );
    }
    if !unknown.is_empty() {
        let count = having(unknown.len());
        findings.push(
            Finding::warning(
                CHECK,
                format!("{count} a lock of a process that cannot be looked at: {}", named(&unknown)),
                "another user's, or one in a container: it is shown, and nothing is done with it; run Pilotlight where that process runs",
            )
            .redacted(format!("{count} a lock of a process that cannot be looked at")),
        );
    }
    let conflicts =
        |session: &&Session| session.contested || session.facts.forked && matches!(session.owner, Owner::Alive { .. });
    for session in sessions.iter().filter(conflicts).take(EACH) {
        let what =
            if session.contested { "two live processes have a lock on it" } else { "two processes write its log" };
        findings.push(
            Finding::problem(
                CHECK,
                format!("session {}: {what}", shown(session)),
                "end it in one of the two places: each goes on with a history of its own",
            )
            .redacted(format!("conflict: {what}")),
        );
    }
    findings
}

fn having(n: usize) -> String {
    format!("{} {}", counted(n, "session"), if n == 1 { "has" } else { "have" })
}

/// Case 88: what is no log is named, never followed, and never waited for.
fn logs(homes: &[std::path::PathBuf], sessions: &[Session]) -> Vec<Finding> {
    const CHECK: &str = "log";
    let (mut findings, mut never, mut sound, mut left_out) = (Vec::new(), Vec::new(), 0, 0);
    for session in sessions {
        // The snapshot keeps no path: of several homes, the one that has the folder.
        let folders = homes.iter().map(|home| home.join(SESSIONS).join(&*session.id));
        let Some(folder) = folders.into_iter().find(|folder| folder.is_dir()) else { continue };
        let path = folder.join(LOG);
        let finding = match length(&path) {
            Ok(length) if length > HUGE => Finding::warning(
                CHECK,
                format!("{} has {} MiB", path.display(), length >> 20),
                "only part of it is read; /compact does not shorten it, a new session begins a new one",
            )
            .redacted(format!("one of {} MiB", length >> 20)),
            Ok(_) if session.facts.skipped > 0 => Finding::warning(
                CHECK,
                format!("{}: {} of it are not events, and were skipped", path.display(), lines(session.facts.skipped)),
                "the rest is read; where a status is wrong because of it, please report it with `pilotlight diagnostics`",
            )
            .redacted(format!("{} of one are not events", lines(session.facts.skipped))),
            Ok(_) => {
                sound += 1;
                continue;
            }
            Err(LogError::Io(error)) if error.kind() == ErrorKind::NotFound => {
                never.push(session);
                continue;
            }
            Err(LogError::NotAFile(what)) => Finding::problem(
                CHECK,
                format!("{} is {what}, not a file: it is neither opened nor followed", path.display()),
                "Copilot writes no such thing: find out who put it there, and move it away once the session is over",
            )
            .redacted(format!("one is {what}")),
            Err(LogError::Io(error)) => Finding::problem(
                CHECK,
                format!("{} cannot be read: {error}", path.display()),
                "its session's status is unknown: give yourself permission to read it",
            )
            .redacted("one cannot be read"),
        };
        if findings.len() < EACH {
            findings.push(finding);
        } else {
            left_out += 1;
        }
    }
    if left_out > 0 {
        let more = format!("{left_out} more that are broken or huge");
        findings.push(Finding::warning(CHECK, more, "fix those above, and run this again").told_to_all());
    }
    if !never.is_empty() {
        let count = having(never.len());
        let said = format!("{count} no log (there is none before the first prompt): {}", named(&never));
        findings.insert(0, Finding::ok(CHECK, said).redacted(format!("{count} none")));
    }
    findings.insert(0, Finding::ok(CHECK, format!("{} can be read", counted(sound, "log"))).told_to_all());
    findings
}

fn lines(n: u64) -> String {
    counted(usize::try_from(n).unwrap_or(usize::MAX), "line")
}

fn named(sessions: &[&Session]) -> String {
    let mut ids: Vec<_> = sessions.iter().take(NAMED).map(|session| shown(session)).collect();
    if sessions.len() > NAMED {
        ids.push(format!("and {} more", sessions.len() - NAMED));
    }
    ids.join(", ")
}

/// Its id, shortened where it is one.
fn shown(session: &Session) -> String {
    if is_uuid(&session.id) { session.id[..8].to_owned() } else { plain(&session.id, 80).into() }
}
