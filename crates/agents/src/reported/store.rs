//! Puts a report in its place.
//!
//! Reports of one session are processes of their own, which may run at once and overtake each other. So each compares
//! itself with what stands there, under a lock, and gives way to a later one. Each has its time from its very start.

#![allow(clippy::disallowed_methods, reason = "passes options to the one place")]

use super::places::{FOLDER, MOST, apart, list, path};
use super::record::{Process, Record, Report, State};
use crate::adapter::Adapter as _;
use crate::opencode::OpenCode;
use anyhow::{Context, ensure};
use pilotlight_core::time::{Span, Time};
use pilotlight_system::deadline::lock_in_turn;
use pilotlight_system::paths::make_folder;
use pilotlight_system::plain_file::{self, Links};
use pilotlight_system::runtime::Runtime;
use pilotlight_system::state_file;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// From this many files on, a new session first has those removed that nobody needs any more.
const TIDY_FROM: usize = 50;
/// For how long the end of a session stands, so that a report from before it, which comes late, changes nothing.
const END_STANDS: Span = Span::minutes(1);
/// The lock of the folder.
const LOCK: &str = ".lock";
/// How long to wait for that lock while nobody else gets it. It is held for less than a millisecond, unless its holder was
/// stopped: that must not keep all others from reporting.
const PATIENCE: Duration = Duration::from_millis(500);

/// Puts a report in its place, in the first of these folders that is ours alone. `now` reads the wall clock, in
/// nanoseconds.
///
/// # Errors
/// It cannot be written anywhere, or there are too many sessions.
pub fn put(homes: &[PathBuf], report: &Report, now: impl Fn() -> i64) -> anyhow::Result<()> {
    let mut refused = None;
    for home in homes {
        match Runtime::make(home).and_then(|_| folder_in(home)) {
            Ok(folder) => return put_in(&folder, report, now),
            Err(error) => refused = Some(anyhow::Error::from(error)),
        }
    }
    Err(refused.context("the user has no home folder")?.context("there is no place for reports"))
}

/// The folder of the reports, which is made if it is not there.
fn folder_in(home: &Path) -> std::io::Result<PathBuf> {
    let folder = home.join(FOLDER);
    make_folder(&folder)?;
    // Nobody else can write beside it, but one of our own processes may have put a link there.
    if fs::symlink_metadata(&folder)?.is_dir() { Ok(folder) } else { Err(std::io::ErrorKind::NotADirectory.into()) }
}

fn put_in(folder: &Path, report: &Report, now: impl Fn() -> i64) -> anyhow::Result<()> {
    let _lock = lock(folder);
    let path = place(folder, report);
    let before = Record::read(&path);
    // One that seems to come from the future is from before the clock was set back.
    if before.as_ref().is_some_and(|before| before.at > report.at && before.at <= now()) {
        return Ok(());
    }
    let time = Time(now() / 1_000_000);
    if let Some(before) = &before
        && is_kept(before, report, time)
    {
        let Some(rival) = report.process.filter(|rival| runs(&report.agent, *rival)) else { return Ok(()) };
        return write(&path, &before.clone().contested(report, rival, time));
    }
    if before.is_none() {
        if report.state == State::Ended {
            return Ok(());
        }
        make_room(folder, time)?;
    }
    write(&path, &Record::of(report.clone(), before.clone()).beside(before.as_ref(), time))
}

fn write(path: &Path, record: &Record) -> anyhow::Result<()> {
    state_file::replace_without_sync(path, &serde_json::to_vec(record)?)
}

/// Whether the process that a session's record names keeps it: it lives, and another one reports. Only where that process can ask
/// its user something over a hook: else what it asks could be shown in the name of another's session.
fn is_kept(before: &Record, report: &Report, now: Time) -> bool {
    let owner = before.process.filter(|owner| before.state != State::Ended && report.process != Some(*owner));
    owner.is_some_and(|owner| owner.lives(now) && runs(&report.agent, owner))
}

/// Whether a process runs the agent of this name, which asks over a hook.
fn runs(agent: &str, process: Process) -> bool {
    let profile = OpenCode.profile();
    profile.names.name == agent && profile.fingerprint.as_ref().is_some_and(|its| its.is_run_by(process.pid))
}

/// Where the reports of a session are: by its id, and apart from another agent's with the same id.
fn place(folder: &Path, report: &Report) -> PathBuf {
    let (plain, agent) = (path(folder, &report.session), &report.agent);
    let apart = path(folder, &apart(&report.session, agent));
    let is_anothers = || Record::read(&plain).is_some_and(|record| record.agent != *agent);
    if apart.exists() || is_anothers() { apart } else { plain }
}

/// Takes the lock of the folder. `None` if it is not to be had soon: what is written all the same is written as a whole.
fn lock(folder: &Path) -> Option<File> {
    let mut options = File::options();
    options.read(true).write(true).create(true).truncate(false);
    let (file, _) = plain_file::open_with(&mut options, &folder.join(LOCK), Links::Refused).ok()?;
    lock_in_turn(file, PATIENCE).ok()?
}

/// Makes room for one more session, if there are many.
fn make_room(folder: &Path, now: Time) -> anyhow::Result<()> {
    let ids = list(folder).context("the reports cannot be listed")?;
    if ids.len() < TIDY_FROM {
        return Ok(());
    }
    let (mut left, mut over) = (0, Vec::new());
    for id in ids {
        let path = path(folder, &id);
        let record = Record::read(&path);
        let stands = |record: &Record| record.state == State::Ended && now - record.given(now) < END_STANDS;
        match record {
            Some(record) if record.is_current(now) => left += 1,
            Some(record) if stands(&record) => over.push(path),
            _ => drop(fs::remove_file(path)), // if it remains, it is not shown either
        }
    }
    // That an end is not kept for its whole time is better than a session that is not shown.
    for path in over.iter().skip(MOST.saturating_sub(left + 1)) {
        let _ = fs::remove_file(path);
    }
    ensure!(left < MOST, "{MOST} sessions are reported already, and none of them is over");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reported::places::given_id;

    fn report(agent: &str, session: &str, state: State, at: i64) -> Report {
        let process = Process::of(std::process::id());
        let (agent, session) = (agent.into(), session.into());
        let reason = Some(format!("reason {at}").into());
        Report { agent, session, state, reason, title: None, cwd: None, here: None, at, process }
    }

    /// Puts a report given at `at` by a process that is done at `now`.
    fn put_at(folder: &Path, report: &Report, now: i64) {
        put_in(folder, report, || now).unwrap();
    }

    fn stored(folder: &Path, id: &str) -> (State, i64) {
        let record = Record::read(&path(folder, id)).unwrap();
        (record.state, record.at)
    }

    #[test]
    fn case_274_a_report_that_was_overtaken_changes_nothing() {
        let scratch = tempfile::tempdir().unwrap();
        let folder = scratch.path();
        put_at(folder, &report("aider", "s", State::Blocked, 200), 201);
        put_at(folder, &report("aider", "s", State::Working, 100), 300);
        assert_eq!(stored(folder, "s"), (State::Blocked, 200));
        // The end stands, too.
        put_at(folder, &report("aider", "s", State::Ended, 400), 401);
        put_at(folder, &report("aider", "s", State::Working, 399), 402);
        assert_eq!(stored(folder, "s"), (State::Ended, 400));
        // The clock was set back: what stands is from the future.
        put_at(folder, &report("aider", "s", State::Working, 50), 51);
        assert_eq!(stored(folder, "s"), (State::Working, 50));
    }

    #[test]
    fn case_274_of_fifty_at_once_the_newest_stands() {
        let scratch = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            for n in 0..50_i64 {
                let at = n * 17 % 50;
                let folder = scratch.path();
                scope.spawn(move || put_at(folder, &report("aider", "s", State::Working, at), 100));
            }
        });
        let record = Record::read(&path(scratch.path(), "s")).unwrap();
        assert_eq!((record.at, record.reason.as_deref()), (49, Some("reason 49")));
        let names: Vec<_> = fs::read_dir(scratch.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names.len(), 2, "it, and the lock: {names:?}");
    }

    #[test]
    fn case_274_whoever_holds_the_lock_for_ever_keeps_nobody_from_reporting() {
        let scratch = tempfile::tempdir().unwrap();
        let held = lock(scratch.path()).unwrap();
        put_at(scratch.path(), &report("aider", "s", State::Working, 1), 2);
        assert_eq!(stored(scratch.path(), "s"), (State::Working, 1));
        drop(held);
    }

    #[test]
    fn case_275_an_agent_cannot_change_the_session_of_another() {
        let scratch = tempfile::tempdir().unwrap();
        let folder = scratch.path();
        put_at(folder, &report("aider", "s", State::Working, 1), 1);
        put_at(folder, &report("goose", "s", State::Ended, 2), 2);
        put_at(folder, &report("goose", "s", State::Idle, 3), 3);
        put_at(folder, &report("aider", "s", State::Blocked, 4), 4);
        put_at(folder, &report("goose", "s", State::Ended, 5), 5);
        assert_eq!((stored(folder, "s"), stored(folder, "s@goose")), ((State::Blocked, 4), (State::Ended, 5)));
        assert_eq!(given_id("s@goose"), "s");
    }

    /// A tool may run a program of that name, and report the session of another one as its own.
    #[test]
    #[cfg(target_os = "linux")]
    fn case_860_a_session_stays_with_its_process_while_that_lives() {
        use pilotlight_system::process::testing::named;
        let scratch = tempfile::tempdir().unwrap();
        let folder = scratch.path();
        let run = |name: &str| named(std::ffi::OsStr::new(name));
        let ((_a, _, mut owner), (_b, _, mut other), (_c, _, tool)) = (run("opencode"), run("opencode"), run("bash"));
        let by = |pid: u32, state, at, title: &str| {
            let process = Some(Process::of(pid).unwrap());
            Report { process, title: Some(title.into()), ..report("opencode", "s", state, at) }
        };
        let stored = || Record::read(&path(folder, "s")).unwrap();
        let runners = || stored().living(Time(1)).iter().map(|process| process.pid).collect::<Vec<_>>();
        put_at(folder, &by(tool.pid(), State::Idle, 1, "By hand"), 1);
        put_at(folder, &by(owner.pid(), State::Blocked, 2, "Paint it"), 2);
        assert_eq!(runners(), [owner.pid()], "only a program that can ask keeps it");
        put_at(folder, &by(other.pid(), State::Working, 3, "Other"), 3);
        let record = stored();
        assert_eq!((record.state, record.title.as_deref(), record.reason), (State::Working, Some("Paint it"), None));
        assert_eq!(runners(), [owner.pid(), other.pid()]);
        // Neither what is no such program nor nobody has a say.
        put_at(folder, &by(tool.pid(), State::Ended, 4, "Tool"), 4);
        let nobody = Report { process: None, ..by(tool.pid(), State::Ended, 5, "Nobody") };
        put_at(folder, &nobody, 5);
        put_at(folder, &by(other.pid(), State::Ended, 6, "Other"), 6);
        assert_eq!((stored().state, stored().at, runners()), (State::Working, 3, vec![owner.pid()]));
        put_at(folder, &by(other.pid(), State::Blocked, 7, "Other"), 7);
        put_at(folder, &by(owner.pid(), State::Blocked, 8, "Paint it twice"), 8);
        assert_eq!((runners(), stored().title.as_deref()), (vec![owner.pid(), other.pid()], Some("Paint it twice")));
        owner.end();
        assert!(stored().is_current(Time(8)) && runners() == [other.pid()], "the other one goes on with it");
        put_at(folder, &by(other.pid(), State::Idle, 9, "Other"), 9);
        assert_eq!((stored().title.as_deref(), runners()), (Some("Other"), vec![other.pid()]));
        other.end();
        assert!(!stored().is_current(Time(9)));
    }

    #[test]
    fn case_275_a_flood_fills_no_disk_and_ends_no_session() {
        let scratch = tempfile::tempdir().unwrap();
        let folder = scratch.path();
        for n in 0..MOST {
            put_at(folder, &report("aider", &format!("s{n}"), State::Working, 1), 1);
        }
        let more = put_in(folder, &report("aider", "more", State::Working, 2), || 2).unwrap_err();
        assert!(more.to_string().starts_with("200 sessions are reported already"), "{more}");
        // Those that are there can still be reported.
        put_at(folder, &report("aider", "s7", State::Ended, 3), 3);
        let later = 3 + END_STANDS.0 * 1_000_000 + 1;
        put_at(folder, &report("aider", "more", State::Working, later), later);
        assert!(!path(folder, "s7").exists() && path(folder, "more").exists());
        // One that has just ended gives way at once.
        put_at(folder, &report("aider", "s8", State::Ended, later), later);
        put_at(folder, &report("aider", "another", State::Working, later), later);
        assert!(!path(folder, "s8").exists() && path(folder, "another").exists());
        // Of what never was, no end is kept.
        put_at(folder, &report("aider", "unknown", State::Ended, later), later);
        assert!(!path(folder, "unknown").exists());
    }

    #[test]
    fn case_275_nothing_is_written_through_a_link() {
        let scratch = tempfile::tempdir().unwrap();
        let (home, elsewhere) = (scratch.path().join("home"), scratch.path().join("elsewhere"));
        fs::create_dir_all(&elsewhere).unwrap();
        Runtime::make(&home).unwrap();
        #[cfg(unix)]
        std::os::unix::fs::symlink(&elsewhere, home.join(FOLDER)).unwrap();
        #[cfg(unix)]
        assert!(put(std::slice::from_ref(&home), &report("aider", "s", State::Working, 1), || 1).is_err());
        let next = scratch.path().join("next");
        put(&[home, next.clone()], &report("aider", "s", State::Working, 1), || 1).unwrap();
        assert!(path(&next.join(FOLDER), "s").exists() || !cfg!(unix));
        assert_eq!(fs::read_dir(elsewhere).unwrap().count(), 0);
    }
}
