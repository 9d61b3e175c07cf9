//! Looks into silences before they reach a limit: whether the session receives its model's answer, which its log does
//! not have until it is whole.

use crate::Entry;
use crate::contacts::Contacts;
use crate::disk::Disk;
use crate::parts::looks::{BeginLook, EndedLook, SocketReader, SocketView, asked_by};
use crate::parts::tasks::TaskMessage;
use crate::world::{Pace, World};
use pilotlight_agents::channel::Listener;
use pilotlight_agents::channel::site::{PIECE_WITHIN, PIECE_WITHIN_UNSEEN};
use pilotlight_core::fleet::Kind;
use pilotlight_core::reception::{Finding, Found, WINDOW, Word};
use pilotlight_core::session::Key;
use pilotlight_core::time::{Span, Time};
use pilotlight_core::verdict::{Look, Reception};
use pilotlight_system::log::{self, private};
use std::sync::Arc;

/// A look that is so much overdue was missed, not late: its limit has passed already.
const MISSED: Span = Span::seconds(1);

impl Contacts {
    /// Begins and ends the looks that are due. `asks_servers`: servers may be asked.
    pub(crate) fn look_into_silences(&mut self, world: &mut World, disk: &Disk, asks_servers: bool) {
        let now = world.now();
        let progress = |key: &Key| world.fleet.get(key)?.session().observed.facts.progress.map(|at| at.wall);
        for key in self.looks.drop_outdated(progress) {
            self.stop_looking(world, &key);
        }
        let mut reader = SocketReader::default();
        for EndedLook { key, pid, progress, view, word } in self.looks.end_due(&mut reader, now.awake) {
            self.stop_looking(world, &key);
            self.apply_look(world, &key, pid, progress, &view, word);
        }
        for (key, look) in world.fleet.take_due_looks(now.awake) {
            self.begin_look(world, disk, &key, look, asks_servers, &mut reader);
        }
    }

    /// Looks again at the sessions that are silent beyond every limit. Called with the rescan, which wakes the program
    /// anyway.
    pub(crate) fn look_again_at_silences(&mut self, world: &mut World, disk: &Disk, asks_servers: bool) {
        let now = world.now().awake;
        let is_silent = |entry: &Entry| {
            entry.verdict.status.is_silent() && entry.verdict.look.is_some_and(|look| look.at.is_none_or(|at| at > now))
        };
        let silent: Vec<_> =
            world.fleet.entries().filter(|(_, entry)| is_silent(entry)).map(|(key, _)| key.clone()).collect();
        let mut reader = SocketReader::default();
        for key in silent {
            let owner = world.fleet.get(&key).and_then(owner_and_progress);
            let Some((pid, progress)) = owner.filter(|_| !self.looks.is_running(&key)) else { continue };
            if self.listener_for(world, disk, &key, asks_servers).is_some() {
                // Whoever can be asked is listened to for a while.
                let look = Look { at: None, window: WINDOW };
                self.begin_look(world, disk, &key, look, asks_servers, &mut reader);
            } else {
                let view = self.looks.look_again(&key, pid, &mut reader, now);
                self.apply_look(world, &key, pid, progress, &view, None);
            }
        }
    }

    /// What the connections of a session's process show right now, if its turn waits for its model.
    pub(crate) fn finding_now(&mut self, world: &World, key: &Key) -> Option<Finding> {
        let session = world.fleet.get(key)?.session();
        let is_sdk = session.observed.about.kind == Kind::Sdk;
        let (pid, progress) =
            world.fleet.get(key).filter(|_| session.observed.facts.waits_for_model()).and_then(owner_and_progress)?;
        let now = world.now();
        let view = self.looks.look_again(key, pid, &mut SocketReader::default(), now.awake);
        Some(view.found(&self.asked_by(world, key, pid, progress), is_sdk, now.wall).finding)
    }

    /// Notes that a session was just found to receive an answer.
    pub(crate) fn note_receiving(&mut self, world: &mut World, key: &Key) {
        let now = world.now();
        let Some((_, progress)) = world.fleet.get(key).and_then(owner_and_progress) else { return };
        if let Some(session) = world.fleet.session(key) {
            let found = Found { finding: Finding::Receiving { bytes: None, within: WINDOW }, last: Some(Span::ZERO) };
            session.vitals.reception = Some(Reception::new(found, progress, now));
        }
        world.judge(key);
    }

    fn stop_looking(&mut self, world: &mut World, key: &Key) {
        if let Some(session) = world.fleet.session(key) {
            session.vitals.looking = false;
        }
    }

    fn begin_look(
        &mut self,
        world: &mut World,
        disk: &Disk,
        key: &Key,
        look: Look,
        asks_servers: bool,
        reader: &mut SocketReader,
    ) {
        let now = world.now().awake;
        let Some((pid, progress)) = world.fleet.get(key).and_then(owner_and_progress) else { return };
        let mut listener = self.listener_for(world, disk, key, asks_servers);
        let mut window = look.window;
        if world.pace == Pace::Once {
            let view = reader.view(pid);
            let seen = self.apply_look(world, key, pid, progress, &view, None);
            listener.take_if(|_| matches!(seen, Some(Finding::Receiving { .. })));
            let is_unseen = matches!(seen, Some(Finding::Unknown(_)));
            window = match listener {
                None => Span::ZERO,
                Some(_) => Span::of(if is_unseen { PIECE_WITHIN_UNSEEN } else { PIECE_WITHIN }),
            };
        }
        let begin = BeginLook { pid, progress, window, is_asked: listener.is_some() };
        let (id, view) = self.looks.begin(key, &begin, reader, now);
        if look.at.is_some_and(|at| at + look.window + MISSED <= now) {
            // A session that was found silent is judged at once, by what can be seen in one look.
            self.apply_look(world, key, pid, progress, &view, None);
        }
        if let Some(session) = world.fleet.session(key) {
            session.vitals.looking = true;
        }
        world.judge(key);
        let Some(listener) = listener else { return };
        let (sender, key, window) = (self.tasks.sender(), key.clone(), window.to_std());
        tokio::spawn(async move {
            let word = listener.listen(&key.id, window).await;
            let _ = sender.send(TaskMessage::Heard(key, id, word)); // fails only when the engine has ended
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
    fn apply_look(
        &mut self,
        world: &mut World,
        key: &Key,
        pid: u32,
        progress: Time,
        view: &SocketView,
        word: Option<Word>,
    ) -> Option<Finding> {
        let now = world.now();
        let asked = self.asked_by(world, key, pid, progress);
        let session = world.fleet.session(key)?;
        let found =
            view.found(&asked, session.observed.about.kind == Kind::Sdk, now.wall).with_word(word, session.streams());
        log::debug!(
            session = private(&key.id),
            finding = private(&format_args!("{:?}", found.finding)),
            "looked whether it receives an answer"
        );
        session.vitals.streams |= matches!(found.finding, Finding::Receiving { .. });
        session.vitals.reception = Some(Reception::new(found, progress, now));
        world.judge(key);
        Some(found.finding)
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
