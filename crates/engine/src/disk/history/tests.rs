//! Sessions that a process opens after they were taken for history.

use super::*;
use crate::config::Config;
use crate::last_seen::LastSeen;
use crate::{Engine, Fleet};
use pilotlight_agents::home::Home;
use pilotlight_core::fleet::Session;
use pilotlight_core::session::HomeId;
use pilotlight_core::session::Key;
use pilotlight_core::time::Moment;
use std::fs;
use std::future::Future;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tempfile::TempDir;

/// An engine that has read a home with one session and taken it for history, and a process that passes for Copilot.
struct Fixture {
    _scratch: TempDir,
    session: PathBuf,
    process: Child,
    engine: Engine,
    key: Key,
}

impl Fixture {
    /// Creates the session's folder with these files.
    fn new(files: &[&str]) -> Self {
        let scratch = tempfile::tempdir().unwrap();
        let session = Home::at(scratch.path()).path("one");
        fs::create_dir_all(&session).unwrap();
        for file in files {
            fs::write(session.join(file), "").unwrap();
        }
        let process = Command::new("sleep").arg("600").stdin(Stdio::null()).spawn().unwrap();
        let mut config = Config::default();
        let program = fs::canonicalize(format!("/proc/{}/exe", process.id())).unwrap();
        config.owners.names = vec![program.file_name().unwrap().to_string_lossy().into_owned()];
        let engine = Engine::new(&[Home::at(scratch.path())], config, LastSeen::default());
        let mut fixture = Self { _scratch: scratch, session, process, engine, key: Key::new(HomeId::default(), "one") };
        fixture.engine.disk.check_homes(&fixture.engine.world);
        fixture.run_agenda();
        assert!(fixture.engine.disk.history.contains(&fixture.key), "{files:?}");
        fixture
    }

    /// Creates the process's lock.
    fn make_lock(&self) {
        let pid = self.process.id();
        fs::write(self.session.join(format!("inuse.{pid}.lock")), pid.to_string()).unwrap();
    }

    /// Runs the agenda until it is empty. Returns what a view was shown.
    fn run_agenda(&mut self) -> RecordingView {
        let mut view = RecordingView::default();
        while self.engine.disk.agenda.is_busy() || self.engine.disk.history.has_unwatched() {
            self.engine.disk.work_on_agenda(&mut self.engine.world);
        }
        self.engine.take_up_disk_changes();
        assert!(self.engine.show_changes(&mut view).is_continue());
        view
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Records what a view is shown.
#[derive(Default)]
struct RecordingView {
    history: Vec<Box<str>>,
    changed: Vec<Key>,
    removed: Vec<Key>,
}

impl View for RecordingView {
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

/// Waits for something that arrives almost at once or never.
fn wait_for<T>(event: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async { tokio::time::timeout(Duration::from_secs(30), event).await.expect("nothing arrived") })
}

/// A killed Copilot leaves its lock behind, and one that opens a session may create its `.hold` file before its lock.
/// In both cases a quick scan cannot show that nobody has the session open, so it is read like a held session.
#[test]
fn a_session_of_the_history_stays_watched_whatever_its_folder_contains() {
    for files in [&[][..], &["inuse.2000000000.lock"], &["inuse.2000000000.hold"]] {
        let mut fixture = Fixture::new(files);
        fixture.make_lock();
        let hints = wait_for(fixture.engine.disk.watcher.changed(true));
        assert!(hints.folders.contains(&fixture.key), "{files:?}: {hints:?}");
    }
}

/// The history is shown only once. So a session that a process has open must be shown with the held ones, or its end
/// would go unnoticed.
#[test]
fn a_session_that_is_opened_before_the_history_is_shown_is_shown_with_the_held_ones() {
    let mut fixture = Fixture::new(&[]);
    fixture.engine.disk.history.queue_all_to_show();
    fixture.make_lock();
    let mut view = RecordingView::default();
    assert!(fixture.engine.disk.show_history(&fixture.engine.world, &mut view).is_continue());
    assert!(view.history.is_empty(), "{:?}", view.history);
    assert_eq!(fixture.run_agenda().changed, [fixture.key.clone()]);
    assert!(fixture.engine.world.fleet.get(&fixture.key).is_some());
    fixture.process.kill().unwrap();
    fixture.process.wait().unwrap();
    let ended = wait_for(fixture.engine.disk.owners.next_exit());
    fixture.engine.disk.owner_exited(&mut fixture.engine.world, ended);
    assert_eq!(fixture.run_agenda().removed, [fixture.key.clone()]);
}
