//! Copilot's homes and their sessions: what can be read, whose locks are stale, and which logs are not files.
//!
//! Nothing is opened that could block (a pipe, a device), and no link is followed out of a session's folder.

use super::check::{CheckContext, EACH, HomeOrigin, HomeReason};
use super::finding::Finding;
use pilotlight_agents::adapter::{ADAPTERS, FIRST};
use pilotlight_agents::home::Home;
use pilotlight_agents::tail::{LogError, length};
use pilotlight_core::fleet::Session;
use pilotlight_core::owner::Owner;
use pilotlight_core::text::{any_of, counted, is_uuid, plain};
use pilotlight_engine::discovered::MOST;
use pilotlight_system::clock::short;
use pilotlight_system::file_system;
use pilotlight_system::watcher::POLLING;
use std::collections::HashSet;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

/// A larger log takes a noticeable time to read, and the start of a turn that lies further back is not searched for. In
/// bytes; the largest that users reported had 20 MB.
const HUGE: u64 = 64 << 20;
/// How many ids one line names.
const NAMED: usize = 5;
/// The check of the sessions' logs.
const LOG: &str = "log";

pub(super) fn homes(context: &CheckContext) -> Vec<Finding> {
    let mut findings = Vec::new();
    for silent in &context.silent {
        let remedy =
            "start its server, restore the network, or unmount it (`umount --force` or `--lazy`); other homes are read";
        findings
            .push(Finding::problem("home", silent.words(), remedy).redacted("one: its file system does not answer"));
    }
    if context.homes.is_empty() && context.silent.is_empty() && context.config.agents.off.is_empty() {
        let variables = ADAPTERS.iter().map(|adapter| adapter.profile().home_variable);
        let variables: Vec<_> = variables.filter(|variable| !variable.is_empty()).collect();
        let remedy = format!("name one with --home DIR or {}", any_of(&variables));
        findings.push(Finding::problem("home", "cannot tell where the home of any agent is", remedy));
    }
    let sessions = &context.sessions;
    let ids: HashSet<_> = sessions.iter().map(|session| &*session.id).collect();
    for (number, (home, origin)) in (1..).zip(context.homes.iter().zip(&context.origins)) {
        findings.push(one_home(home, number, origin, context.misses(home), &ids));
        findings.extend(without_file_events(home, number, sessions));
        if !home.follows_links() {
            findings.extend(links(home.root()));
        }
    }
    if context.are_discovered_full {
        let text = format!(
            "Pilotlight follows {MOST} discovered homes, and no more at once: a home in use replaces one that is not"
        );
        let remedy = "to keep some of them, list them under `also` in `[homes]` of the settings";
        findings.push(Finding::warning("home", text, remedy).public());
    }
    findings.extend(locks(sessions));
    findings.extend(logs(&context.homes, sessions));
    findings
}

/// Why a home is followed, and since when, in words; for strangers, without the process.
fn origin_words(home: &Home, HomeOrigin { why, followed }: &HomeOrigin) -> (String, &'static str) {
    let (why, redacted) = match why {
        HomeReason::Default => ("the default home".to_owned(), "default"),
        HomeReason::Named(by) => (format!("named by {by}"), "named"),
        HomeReason::Discovered { since, pid } => {
            (format!("discovered {}, by process {pid} of {}", short(*since), home.agent()), "discovered")
        }
    };
    (followed.map_or(why.clone(), |since| format!("{why}; followed since {}", short(since))), redacted)
}

/// A home, with the number of its sessions: those of `known`, since a sub-agent may have a log of its own.
fn one_home(home: &Home, number: usize, origin: &HomeOrigin, is_missed: bool, known: &HashSet<&str>) -> Finding {
    const CHECK: &str = "home";
    let (origin, kind) = origin_words(home, origin);
    let (folder, profile) = (home.folder(), home.adapter().profile());
    let (shown, word) = (folder.display(), profile.names.word);
    let (finding, redacted) = match home.list() {
        Ok(ids) => {
            let count = counted(ids.filter(|id| known.contains(&**id)).count(), "session");
            (Finding::ok(CHECK, format!("{shown}: {count} ({origin})")), format!("{count}, {kind}"))
        }
        Err(error) if error.kind() == ErrorKind::NotFound && folder.is_dir() => (
            Finding::ok(CHECK, format!("{shown}: no session was ever started in it ({origin})")),
            format!("empty, {kind}"),
        ),
        Err(error) if error.kind() == ErrorKind::NotFound && !is_missed => {
            let text = format!("there is no {word} home on this machine; the settings name other machines");
            (Finding::ok(CHECK, text), "not there, and not missed".into())
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let remedy = format!(
                "start `{}` once, or name another with --home DIR, {} or `homes` in the settings",
                profile.program, profile.home_variable
            );
            (Finding::problem(CHECK, format!("there is no {word} home at {shown}"), remedy), "not there".into())
        }
        Err(error) => {
            let text = format!("the {word} home {shown} cannot be read: {error}");
            let remedy =
                "its sessions are not seen: give yourself permission to read it, or take it out of the settings";
            (Finding::problem(CHECK, text, remedy), "cannot be read".into())
        }
    };
    finding.redacted(format!("home {number}: {redacted}"))
}

/// Case 161: a home, or a live session in it, on a file system that may not report changes.
fn without_file_events(home: &Home, number: usize, sessions: &[Session]) -> Option<Finding> {
    let live = sessions.iter().filter(|session| session.may_be_open()).map(|session| home.path(&session.id));
    let mut folders = [home.folder().to_owned(), home.root().to_owned()].into_iter().chain(live);
    let (name, folder) = folders.find_map(|folder| Some((file_system::without_file_events(&folder)?, folder)))?;
    let text = format!("{} is on {name}, which may not report changes of files", folder.display());
    Some(Finding::warning("home", text, POLLING).redacted(format!("home {number}: on {name}, without file events")))
}

/// Links among the session folders: they are not followed, so sessions behind them are not seen.
fn links(sessions: &Path) -> Vec<Finding> {
    let entries = fs::read_dir(sessions).into_iter().flatten().filter_map(Result::ok);
    let links = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_symlink()));
    let finding = |link: fs::DirEntry| {
        let shown = link.path();
        let text =
            format!("{} is a symbolic link, so Pilotlight does not show the sessions behind it", shown.display());
        let remedy = "name the home that it leads to with `--home DIR`, or as `homes` in the settings";
        Finding::warning("session", text, remedy).redacted("a link among the session folders")
    };
    links.take(EACH).map(finding).collect()
}

/// Live owners, locks of other kinds, and sessions that two processes have open.
fn locks(sessions: &[Session]) -> Vec<Finding> {
    const CHECK: &str = "lock";
    let owned_by =
        |is: fn(&Owner) -> bool| sessions.iter().filter(|session| is(&session.observed.owner)).collect::<Vec<_>>();
    let alive = owned_by(|owner| matches!(owner, Owner::Alive { .. } | Owner::Opened { .. }));
    let mut findings = vec![Finding::ok("session", format!("{} running", being(alive.len()))).public()];
    for (sessions, owner, remedy) in [
        (
            owned_by(|owner| matches!(owner, Owner::Gone { .. }))
                .into_iter()
                .filter(|session| session.observed.agent == FIRST.agent())
                .collect(),
            "is gone",
            "nothing to do: Copilot leaves its lock behind when it crashes, and replaces it when you resume the session",
        ),
        (
            owned_by(|owner| matches!(owner, Owner::Unheld { .. })),
            "does not have it open",
            "the lock was copied with its folder, or another program made it. Pilotlight shows the session, and does not act on it",
        ),
        (
            owned_by(|owner| matches!(owner, Owner::Unknown { .. })),
            "cannot be inspected",
            "the process is another user's, or in a container. Pilotlight shows the session. To act on it, run Pilotlight there",
        ),
    ] {
        if !sessions.is_empty() {
            let count = format!("{} a lock of a process that {owner}", having(sessions.len()));
            let text = format!("{count}: {}", named(&sessions));
            findings.push(Finding::warning(CHECK, text, remedy).redacted(count));
        }
    }
    let conflicts = sessions.iter().filter_map(|session| {
        let is_forked = session.observed.facts.forked && matches!(session.observed.owner, Owner::Alive { .. });
        let what = match session.observed.contested {
            true => session.observed.agent.contested().to_owned(),
            false => is_forked.then(|| "two processes write its log".to_owned())?,
        };
        let text = format!("session {}: {what}", shown(session));
        let remedy = match session.observed.hook_report {
            Some(_) => "answer it in its terminal; if you did not start both programs, find out what started the other",
            None => "end it in one of the two places: each continues with a history of its own",
        };
        Some(Finding::problem(CHECK, text, remedy).redacted(format!("conflict: {what}")))
    });
    findings.extend(conflicts.take(EACH));
    findings
}

fn being(n: usize) -> String {
    format!("{} {}", counted(n, "session"), if n == 1 { "is" } else { "are" })
}

fn having(n: usize) -> String {
    format!("{} {}", counted(n, "session"), if n == 1 { "has" } else { "have" })
}

/// Case 88: a log that is not a file is named, never followed, and never waited for.
fn logs(homes: &[Home], sessions: &[Session]) -> Vec<Finding> {
    let (mut troubled, mut without, mut readable) = (Vec::new(), Vec::new(), 0);
    for session in sessions {
        match log_of(homes, session) {
            Log::Unseen => {}
            Log::Readable => readable += 1,
            Log::Missing => without.push(session),
            Log::Troubled(finding) => troubled.push(*finding),
        }
    }
    let mut findings = match readable {
        0 if troubled.is_empty() => vec![Finding::ok(LOG, "there is no log yet").public()],
        0 => Vec::new(),
        readable => vec![Finding::ok(LOG, format!("{} can be read", counted(readable, "log"))).public()],
    };
    if !without.is_empty() {
        let count = having(without.len());
        let text = format!("{count} no log yet, as before the first prompt: {}", named(&without));
        findings.push(Finding::ok(LOG, text).redacted(format!("{count} none")));
    }
    let more = troubled.len().saturating_sub(EACH);
    findings.extend(troubled.into_iter().take(EACH));
    if more > 0 {
        let text = format!("{more} more logs are broken or huge");
        findings.push(Finding::warning(LOG, text, "fix those above, and run this again").public());
    }
    findings
}

/// What a session's log is like.
enum Log {
    /// The session's folder is gone by now.
    Unseen,
    Readable,
    Missing,
    Troubled(Box<Finding>),
}

fn log_of(homes: &[Home], session: &Session) -> Log {
    if let Some(no_answer) = &session.no_answer {
        let text = format!("the log of session {} cannot be read: {}", shown(session), no_answer);
        let remedy = "start its server, restore the network, or unmount it (`umount --force` or `--lazy`)";
        let finding = Finding::problem(LOG, text, remedy).redacted("one: its file system does not answer");
        return Log::Troubled(Box::new(finding));
    }
    // A snapshot does not record which of several homes a session is in.
    let mut homes = homes.iter();
    let Some(home) = homes.find(|home| home.has(&session.id)) else { return Log::Unseen };
    let path = home.log(&session.id);
    let shown = path.display();
    let finding = match length(&path) {
        Ok(length) if length > HUGE => {
            let size = format!("{} MiB", length >> 20);
            let remedy = "Pilotlight reads only part of it. `/compact` does not shorten it: start a new session";
            Finding::warning(LOG, format!("{shown} is {size} long"), remedy).redacted(format!("one of {size}"))
        }
        Ok(_) if session.observed.facts.skipped > 0 => {
            let lines = counted(usize::try_from(session.observed.facts.skipped).unwrap_or(usize::MAX), "line");
            let text = format!("{shown}: skipped {lines} that are no events");
            let remedy = "Pilotlight reads the rest. If the session's status is wrong, please report it with `pilotlight diagnostics`";
            Finding::warning(LOG, text, remedy).redacted(format!("{lines} of one are not events"))
        }
        Ok(_) => return Log::Readable,
        Err(LogError::Io(error)) if error.kind() == ErrorKind::NotFound => return Log::Missing,
        Err(LogError::NotAFile(what)) => {
            let text = format!("{shown} is {what}, not a file, so Pilotlight does not open it");
            let remedy = format!(
                "{} does not create it: find out what did, and move it away when the session has ended",
                home.agent()
            );
            Finding::problem(LOG, text, remedy).redacted(format!("one is {what}"))
        }
        Err(LogError::Io(error)) => {
            let remedy = "the session's status is unknown until you have permission to read it";
            Finding::problem(LOG, format!("{shown} cannot be read: {error}"), remedy).redacted("one cannot be read")
        }
    };
    Log::Troubled(Box::new(finding))
}

fn named(sessions: &[&Session]) -> String {
    let mut ids: Vec<_> = sessions.iter().take(NAMED).map(|session| shown(session)).collect();
    if sessions.len() > NAMED {
        ids.push(format!("and {} more", sessions.len() - NAMED));
    }
    ids.join(", ")
}

/// The session's id, shortened if it is a UUID.
fn shown(session: &Session) -> String {
    if is_uuid(&session.id) { session.id[..8].to_owned() } else { plain(&session.id, 80).into() }
}
