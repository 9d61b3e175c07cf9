//! Looks into silences before they reach a limit: whether the session receives its model's answer, which its log does
//! not have until it is whole.
//!
//! The verdict plans a probe ten seconds before the next limit of a silence, if the turn waits for its model. The sockets
//! of the owner's process are read when the probe begins and when the limit passes. In between, the session's server or
//! bridge is asked for the next piece of its answer, which is exact about text. Of several sessions in one process, a
//! connection belongs to the one that asked its model when the connection last sent; if that fits two, the result is
//! unknown. A limit that passes while a probe runs waits for its end, and a received byte counts like an event.
//!
//! Beyond its last limit, a session is probed again with the rescan. A recovery, and a stop that was offered for the
//! silence, look once more right before they abort.

use crate::Entry;
use crate::connections::Connections;
use crate::disk::Disk;
use crate::parts::stream_probes::{BeginProbe, EndedProbe, SocketReader, SocketView, asked_by};
use crate::parts::tasks::TaskMessage;
use crate::world::{Pace, World};
use pilotlight_agents::channel::Listener;
use pilotlight_agents::channel::action_context::{PIECE_WITHIN, PIECE_WITHIN_UNSEEN};
use pilotlight_core::fleet::Kind;
use pilotlight_core::session::Key;
use pilotlight_core::stream_probe::{ProbeResult, ProbedStream, WINDOW, Word};
use pilotlight_core::time::{Span, Time};
use pilotlight_core::verdict::{ProbePlan, StreamProbe};
use pilotlight_system::log::{self, private};
use std::sync::Arc;

/// A probe that is so much overdue was missed, not late: its limit has passed already.
const MISSED: Span = Span::seconds(1);

impl Connections {
    /// Begins and ends the probes that are due. `asks_servers`: servers may be asked.
    pub(crate) fn probe_silences(&mut self, world: &mut World, disk: &Disk, asks_servers: bool) {
        let now = world.now();
        let progress = |key: &Key| world.fleet.get(key)?.session().observed.facts.progress.map(|at| at.wall);
        for key in self.stream_probes.drop_outdated(progress) {
            self.end_probe(world, &key);
        }
        let mut reader = SocketReader::default();
        for EndedProbe { key, pid, progress, view, word } in self.stream_probes.end_due(&mut reader, now.awake) {
            self.end_probe(world, &key);
            self.apply_probe(world, &key, pid, progress, &view, word);
        }
        for (key, probe) in world.fleet.take_due_probes(now.awake) {
            self.begin_probe(world, disk, &key, probe, asks_servers, &mut reader);
        }
    }

    /// Looks again at the sessions that are silent beyond every limit. Called with the rescan, which wakes the program
    /// anyway.
    pub(crate) fn probe_silences_again(&mut self, world: &mut World, disk: &Disk, asks_servers: bool) {
        let now = world.now().awake;
        let is_silent = |entry: &Entry| {
            entry.verdict.status.is_silent()
                && entry.verdict.probe.is_some_and(|probe| probe.at.is_none_or(|at| at > now))
        };
        let silent: Vec<_> =
            world.fleet.entries().filter(|(_, entry)| is_silent(entry)).map(|(key, _)| key.clone()).collect();
        let mut reader = SocketReader::default();
        for key in silent {
            let owner = world.fleet.get(&key).and_then(owner_and_progress);
            let Some((pid, progress)) = owner.filter(|_| !self.stream_probes.is_running(&key)) else { continue };
            if self.listener_for(world, disk, &key, asks_servers).is_some() {
                // Whoever can be asked is listened to for a while.
                let probe = ProbePlan { at: None, window: WINDOW };
                self.begin_probe(world, disk, &key, probe, asks_servers, &mut reader);
            } else {
                let view = self.stream_probes.probe_again(&key, pid, &mut reader, now);
                self.apply_probe(world, &key, pid, progress, &view, None);
            }
        }
    }

    /// What the connections of a session's process show right now, if its turn waits for its model.
    pub(crate) fn finding_now(&mut self, world: &World, key: &Key) -> Option<ProbeResult> {
        let session = world.fleet.get(key)?.session();
        let is_sdk = session.observed.about.kind == Kind::Sdk;
        let (pid, progress) =
            world.fleet.get(key).filter(|_| session.observed.facts.waits_for_model()).and_then(owner_and_progress)?;
        let now = world.now();
        let view = self.stream_probes.probe_again(key, pid, &mut SocketReader::default(), now.awake);
        Some(view.found(&self.asked_by(world, key, pid, progress), is_sdk, now.wall).probe_result)
    }

    /// Notes that a session was just found to receive an answer.
    pub(crate) fn note_receiving(&mut self, world: &mut World, key: &Key) {
        let now = world.now();
        let Some((_, progress)) = world.fleet.get(key).and_then(owner_and_progress) else { return };
        if let Some(session) = world.fleet.session(key) {
            let found = ProbedStream {
                probe_result: ProbeResult::Receiving { bytes: None, within: WINDOW },
                last: Some(Span::ZERO),
            };
            session.liveness.stream_probe = Some(StreamProbe::new(found, progress, now));
        }
        world.judge(key);
    }

    fn end_probe(&mut self, world: &mut World, key: &Key) {
        if let Some(session) = world.fleet.session(key) {
            session.liveness.probing_stream = false;
        }
    }

    fn begin_probe(
        &mut self,
        world: &mut World,
        disk: &Disk,
        key: &Key,
        probe: ProbePlan,
        asks_servers: bool,
        reader: &mut SocketReader,
    ) {
        let now = world.now().awake;
        let Some((pid, progress)) = world.fleet.get(key).and_then(owner_and_progress) else { return };
        let mut listener = self.listener_for(world, disk, key, asks_servers);
        let mut window = probe.window;
        if world.pace == Pace::Once {
            let view = reader.view(pid);
            let seen = self.apply_probe(world, key, pid, progress, &view, None);
            listener.take_if(|_| matches!(seen, Some(ProbeResult::Receiving { .. })));
            let is_unseen = matches!(seen, Some(ProbeResult::Unknown(_)));
            window = match listener {
                None => Span::ZERO,
                Some(_) => Span::of(if is_unseen { PIECE_WITHIN_UNSEEN } else { PIECE_WITHIN }),
            };
        }
        let begin = BeginProbe { pid, progress, window, is_asked: listener.is_some() };
        let (id, view) = self.stream_probes.begin(key, &begin, reader, now);
        if probe.at.is_some_and(|at| at + probe.window + MISSED <= now) {
            // A session that was found silent is judged at once, by what can be seen in one probe.
            self.apply_probe(world, key, pid, progress, &view, None);
        }
        if let Some(session) = world.fleet.session(key) {
            session.liveness.probing_stream = true;
        }
        world.judge(key);
        let Some(listener) = listener else { return };
        let (sender, key, window) = (self.tasks.sender(), key.clone(), window.to_std());
        tokio::spawn(async move {
            let word = listener.listen(&key.id, window).await;
            let _ = sender.send(TaskMessage::StreamProbed(key, id, word)); // fails only when the engine has ended
        });
    }

    /// Who can be asked about a session: a kept connection, its server, or the bridge to its terminal.
    fn listener_for(&self, world: &World, disk: &Disk, key: &Key, asks_servers: bool) -> Option<Arc<dyn Listener>> {
        if let Some(connection) = self.tasks.connection_to(key) {
            return Some(connection.listener());
        }
        if let Some(bridge) = self.bridge_to(world, key) {
            return Some(bridge);
        }
        let may_ask = asks_servers && world.config.actions.ask_servers;
        Some(may_ask.then(|| self.listed_servers_of(world, disk, key))??)
    }

    /// Applies what was seen and heard of a session's model, and returns it.
    fn apply_probe(
        &mut self,
        world: &mut World,
        key: &Key,
        pid: u32,
        progress: Time,
        view: &SocketView,
        word: Option<Word>,
    ) -> Option<ProbeResult> {
        let now = world.now();
        let asked = self.asked_by(world, key, pid, progress);
        let session = world.fleet.session(key)?;
        let found =
            view.found(&asked, session.observed.about.kind == Kind::Sdk, now.wall).with_word(word, session.streams());
        log::debug!(
            session = private(&key.id),
            probe_result = private(&format_args!("{:?}", found.probe_result)),
            "looked whether it receives an answer"
        );
        session.liveness.streams |= matches!(found.probe_result, ProbeResult::Receiving { .. });
        session.liveness.stream_probe = Some(StreamProbe::new(found, progress, now));
        world.judge(key);
        Some(found.probe_result)
    }

    /// When the sessions of a process that wait for their models asked them: first this one, then all others.
    fn asked_by(&self, world: &World, key: &Key, pid: u32, progress: Time) -> Vec<Time> {
        let others = world.fleet.entries().filter(|(other, _)| *other != key).map(|(_, entry)| entry.session());
        world.fleet.get(key).map_or_else(|| vec![progress], |entry| asked_by(pid, entry.session(), progress, others))
    }
}

/// A session's live owner, and the last progress in its log, by the wall clock.
fn owner_and_progress(entry: &Entry) -> Option<(u32, Time)> {
    let session = entry.session();
    Some((session.observed.owner.live()?, session.observed.facts.progress?.wall))
}
