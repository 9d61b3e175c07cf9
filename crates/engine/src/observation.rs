//! The sessions as a command sees them: those of a running tray, or of an engine that runs until its first complete scan. Both
//! are the same engine, so a command agrees with the tray's menu.

use crate::disk::Disk;
use crate::parts::fleet::end_sample;
use crate::steps::wakeups::{SignalSource, WakeupSources};
use crate::world::World;
use crate::{Engine, Fleet, View};
use pilotlight_agents::adapter::agent_named;
use pilotlight_agents::reading::GRACE;
use pilotlight_core::action::awaits_bridge;
use pilotlight_core::fleet::Session;
use pilotlight_core::owner::HoldProof;
use pilotlight_core::session::Key;
use pilotlight_core::time::{Moment, Span, Time};
use pilotlight_system::paths::canonical;
use pilotlight_system::process::cpu_of_descendants;
use serde::{Deserialize, Serialize};
use std::io;
use std::ops::ControlFlow;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::timeout;

/// How long whoever waits for the first complete picture waits at most: files may change faster than they are read.
const COMPLETE_WITHIN: Duration = Duration::from_secs(10);
/// How long a CPU sample takes for whoever waits for it. A tray takes five seconds; a tenth of that reveals a busy process
/// as well.
const SAMPLE_TIME: Duration = Duration::from_millis(500);
/// How long a new lock may take to show who holds the session, twice over: a lock of the future stays new.
const LOCKS_SHOW_WITHIN: Span = Span(2 * GRACE.0);
/// How long bridges have to connect: they watch for somebody who listens, and are there within two seconds.
const BRIDGES_CONNECT_WITHIN: Span = Span::seconds(3);
/// How long whoever asks a tray waits for what the tray is still reading.
const REPORT_WITHIN: Span = Span(300);

/// The sessions that an engine holds: all that are open, and those that ended last.
#[derive(Debug, Serialize, Deserialize)]
pub struct Observation {
    /// When it was made, by the clocks that all its times are of.
    pub now: Moment,
    /// The homes that are watched, without those that are for their processes alone.
    pub homes: Vec<ObservedHome>,
}

/// A home, and its sessions.
#[derive(Debug, Serialize, Deserialize)]
pub struct ObservedHome {
    /// The name of its agent.
    pub agent: Box<str>,
    /// Its real path.
    pub path: Box<str>,
    /// Since when it is followed, by the wall clock.
    #[serde(default)]
    pub since: Option<Time>,
    /// Its sessions, in no meaningful order.
    pub sessions: Vec<Session>,
}

impl Observation {
    fn of(world: &World, disk: &Disk) -> Self {
        let observed = |number| {
            let home = disk.homes.home(number);
            let sessions = world.fleet.sessions().filter(|(key, _)| key.home == number);
            ObservedHome {
                agent: home.adapter().name().into(),
                path: canonical(home.folder()),
                since: Some(disk.homes.since(number)),
                sessions: sessions.map(|(_, session)| session.clone()).collect(),
            }
        };
        let named = disk.homes.numbers().into_iter().filter(|number| !disk.homes.is_beside(*number));
        Self { now: world.now(), homes: named.map(observed).collect() }
    }

    /// The same, as it came from another process: with the agents that are known here.
    pub(crate) fn received(mut self) -> Self {
        for session in self.homes.iter_mut().flat_map(|home| &mut home.sessions) {
            let agent = &mut session.observed.agent;
            if let Some(known) = agent_named(agent.name()) {
                *agent = known;
            }
        }
        self
    }
}

/// Those who asked for the sessions. They are answered once everything is read that was written before they asked.
#[derive(Default)]
pub(crate) struct PendingObservations {
    waiting: Vec<oneshot::Sender<Observation>>,
    /// When they are answered in any case, by the awake clock.
    until: Option<Time>,
}

/// Shows nothing.
struct Unshown {
    asks_servers: bool,
}

impl View for Unshown {
    fn show(&mut self, _fleet: &Fleet, _changed: &[Key], _removed: &[Key], _now: Moment) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    fn asks_servers(&self) -> bool {
        self.asks_servers
    }
}

impl Engine {
    /// Runs until the first complete picture of the sessions. With `asks`, servers are asked about silent sessions, and if
    /// it [listens to bridges](Self::listen_to_bridges), it waits for them.
    ///
    /// # Errors
    /// If file descriptors are too few to read everything: the picture would lack sessions.
    pub async fn observe(mut self, asks: bool) -> io::Result<Observation> {
        let (mut signals, mut view) = (SignalSource(None), Unshown { asks_servers: asks });
        // Only a signal would break it.
        let _ = self.start_up(&mut signals, &mut view).await;
        let _ = self.show_changes(&mut view);
        let started = self.world.now().awake;
        let mut sources = WakeupSources::new(signals);
        let complete = async {
            loop {
                let waited = self.world.now().awake - started;
                if self.is_complete(waited) {
                    break;
                }
                let patience = [LOCKS_SHOW_WITHIN, BRIDGES_CONNECT_WITHIN].into_iter().find(|until| waited <= *until);
                let until = patience.map_or(COMPLETE_WITHIN, |until| (until - waited + Span(1)).to_std());
                let Ok(wakeup) = timeout(until, self.next_wakeup(&mut sources, &view)).await else { continue };
                let _ = self.handle_wakeup(wakeup, &mut view);
                let _ = self.run_due_work(&mut view);
            }
        };
        let _ = timeout(COMPLETE_WITHIN, complete).await; // what is known by then is shown
        self.sample_cpu().await;
        let observation = Observation::of(&self.world, &self.disk);
        let lacks_descriptors = self.disk.lacks_descriptors;
        self.shut_down().await;
        if lacks_descriptors {
            return Err(io::Error::other("the sessions cannot be read: too few files may be open (`ulimit -n`)"));
        }
        Ok(observation)
    }

    /// Whether all is known that can be found out in `waited`.
    fn is_complete(&mut self, waited: Span) -> bool {
        let Self { world, disk, connections, .. } = self;
        let waits_for_bridges = connections.awaits_bridges() && waited <= BRIDGES_CONNECT_WITHIN;
        let is_settled = |session: &Session| {
            (session.observed.held != HoldProof::Pending || waited > LOCKS_SHOW_WITHIN)
                && !session.liveness.probing_stream
                && !session.liveness.querying_server
                && !(waits_for_bridges && awaits_bridge(session))
        };
        !disk.is_reading() && world.fleet.sessions().all(|(_, session)| is_settled(session))
    }

    /// Samples the CPU use of open tools whose silence has reached the limit at which it decides.
    async fn sample_cpu(&mut self) {
        let World { fleet, clock, .. } = &mut self.world;
        let samples: Vec<_> = fleet
            .due_samples(clock.now().awake)
            .filter_map(|(key, pid)| Some((key.clone(), cpu_of_descendants(pid)?, clock.now().awake)))
            .collect();
        if samples.is_empty() {
            return;
        }
        tokio::time::sleep(SAMPLE_TIME).await;
        for (key, before, started) in samples {
            let now = self.world.now();
            if let Some(session) = self.world.fleet.session(&key) {
                end_sample(session, &before, now.awake - started, now);
            }
            self.world.judge(&key);
        }
    }

    /// Queues a request for the sessions. Reads all sessions that may be open again first, because file events for their last lines
    /// may still be on the way.
    pub(crate) fn begin_observation(&mut self, asker: oneshot::Sender<Observation>) {
        let open = self.world.fleet.sessions().filter(|(_, session)| session.may_be_open());
        let open: Vec<_> = open.map(|(key, _)| key.clone()).collect();
        open.into_iter().for_each(|key| self.disk.agenda.push_urgent(key));
        self.reports.waiting.push(asker);
        self.reports.until.get_or_insert(self.world.now().awake + REPORT_WITHIN);
    }

    /// Answers those who asked for the sessions, if all is read, or they have waited for long enough.
    pub(crate) fn send_observations(&mut self) {
        let Some(until) = self.reports.until else { return };
        if self.disk.is_reading() && self.world.now().awake < until {
            return;
        }
        for asker in std::mem::take(&mut self.reports).waiting {
            let _ = asker.send(Observation::of(&self.world, &self.disk)); // who asked may have gone
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::last_seen::LastSeen;
    use pilotlight_agents::claude_code::ClaudeCode;
    use pilotlight_agents::home::Home;
    use std::fs;

    /// Else a command would take it for a home that hides sessions, and not use what the tray knows.
    #[test]
    fn a_home_that_is_followed_for_its_processes_alone_is_not_told() {
        let scratch = tempfile::tempdir().unwrap();
        let [named, beside] = ["a", "b"].map(|name| scratch.path().join(name));
        fs::create_dir_all(named.join("projects/p")).unwrap();
        fs::create_dir_all(beside.join("sessions")).unwrap();
        std::os::unix::fs::symlink(named.join("projects"), beside.join("projects")).unwrap();
        let [named, beside] = [named, beside].map(|home| Home::of(&ClaudeCode, home));
        let mut engine = Engine::for_one_look(&[named], Config::default(), LastSeen::default());
        engine.disk.check_homes(&engine.world);
        assert!(engine.disk.homes.follow_beside(beside).is_some());
        assert_eq!(engine.disk.homes.numbers().len(), 2);
        assert_eq!(Observation::of(&engine.world, &engine.disk).homes.len(), 1);
    }

    /// Where the system allows no further watch, a command that looks once has nothing to complain of.
    #[test]
    fn one_look_reads_all_and_watches_nothing() {
        let home = tempfile::tempdir().unwrap();
        let home = Home::at(home.path());
        fs::create_dir_all(home.path("one")).unwrap();
        let prompt =
            r#"{"type":"user.message","data":{"content":"hi"},"id":"1","timestamp":"2026-11-20T18:07:25.003Z"}"#;
        fs::write(home.log("one"), format!("{prompt}\n")).unwrap();
        let engine = Engine::for_one_look(&[home], Config::default(), LastSeen::default());
        assert!(!engine.disk.watcher.has_room() && engine.disk.watcher.trouble.is_none());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let observation = runtime.block_on(engine.observe(false)).unwrap();
        let sessions = &observation.homes[0].sessions;
        assert_eq!(sessions.iter().map(|session| &*session.id).collect::<Vec<_>>(), ["one"]);
        assert_eq!(sessions[0].no_file_events, None);
    }
}
