//! Sessions that somebody opens after they were taken for history.

use super::*;
use crate::config::Config;
use crate::core::fleet::Session;
use crate::core::time::Moment;
use crate::engine::last_seen::Seen;
use crate::engine::{Fleet, SESSIONS};
use std::fs;
use std::future::Future;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tempfile::TempDir;

/// An engine that has looked at a home with one session, and taken that for history. And a process that passes for Copilot.
struct Desk {
    _scratch: TempDir,
    session: PathBuf,
    process: Child,
    engine: Engine,
    key: Key,
}

impl Desk {
    /// These files are in the session's folder.
    fn new(files: &[&str]) -> Self {
        let scratch = tempfile::tempdir().unwrap();
        let session = scratch.path().join(SESSIONS).join("one");
        fs::create_dir_all(&session).unwrap();
        for file in files {
            fs::write(session.join(file), "").unwrap();
        }
        let process = Command::new("sleep").arg("600").stdin(Stdio::null()).spawn().unwrap();
        let mut config = Config::default();
        let program = fs::canonicalize(format!("/proc/{}/exe", process.id())).unwrap();
        config.owners.names = vec![program.file_name().unwrap().to_string_lossy().into_owned()];
        let engine = Engine::new(&[scratch.path().to_owned()], config, Seen::default());
        let mut desk = Self { _scratch: scratch, session, process, engine, key: (0, "one".into()) };
        desk.engine.look_at_homes();
        desk.works();
        assert!(desk.engine.history.contains(&desk.key), "{files:?}");
        desk
    }

    /// The process makes its lock.
    fn opens(&self) {
        let pid = self.process.id();
        fs::write(self.session.join(format!("inuse.{pid}.lock")), pid.to_string()).unwrap();
    }

    /// All that is to be done is done.
    fn works(&mut self) -> Told {
        let (mut round, mut told) = (Round::default(), Told::default());
        while self.engine.agenda.is_busy() || self.engine.history.has_unwatched() {
            self.engine.work(&mut round);
        }
        assert!(self.engine.show(&mut round, &mut told).is_continue());
        told
    }
}

impl Drop for Desk {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// What a view was told.
#[derive(Default)]
struct Told {
    history: Vec<Box<str>>,
    changed: Vec<Key>,
    removed: Vec<Key>,
}

impl View for Told {
    fn show(&mut self, _: &Fleet, changed: &[Key], removed: &[Key], _: Moment) -> ControlFlow<()> {
        self.changed.extend_from_slice(changed);
        self.removed.extend_from_slice(removed);
        ControlFlow::Continue(())
    }

    fn show_history(&mut self, sessions: &mut dyn Iterator<Item = Session>, _: Moment) -> ControlFlow<()> {
        self.history.extend(sessions.map(|session| session.id));
        ControlFlow::Continue(())
    }
}

/// What is told at once, or not at all.
fn soon<T>(told: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async { tokio::time::timeout(Duration::from_secs(30), told).await.expect("nothing is told") })
}

/// A killed Copilot leaves its lock, and one that takes a session may make its hold first: neither shows in a glimpse that nobody
/// has the session open, and so it is looked at as what is held is.
#[test]
fn a_session_of_the_history_stays_watched_whatever_was_found_in_it() {
    for files in [&[][..], &["inuse.2000000000.lock"], &["inuse.2000000000.hold"]] {
        let mut desk = Desk::new(files);
        desk.opens();
        let hints = soon(desk.engine.watcher.changed(true));
        assert!(hints.folders.contains(&desk.key), "{files:?}: {hints:?}");
    }
}

/// The history is told once, and whoever is told of a session that somebody has open must hear of that one's end.
#[test]
fn a_session_that_is_opened_before_the_history_is_told_is_told_with_what_is_held() {
    let mut desk = Desk::new(&[]);
    desk.engine.history.tell_all();
    desk.opens();
    let mut told = Told::default();
    assert!(desk.engine.show_history(&mut told).is_continue());
    assert!(told.history.is_empty(), "{:?}", told.history);
    assert_eq!(desk.works().changed, [desk.key.clone()]);
    assert!(desk.engine.fleet.get(&desk.key).is_some());
    desk.process.kill().unwrap();
    desk.process.wait().unwrap();
    let ended = soon(desk.engine.owners.ended());
    desk.engine.owner_ended(ended);
    assert_eq!(desk.works().removed, [desk.key.clone()]);
}
