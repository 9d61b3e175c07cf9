//! Bridges to terminals: which session each is of, and what it tells of that.

use super::{Engine, Key, Round};
use crate::agent::copilot::bridge::carry::Way;
use crate::agent::copilot::bridge::files::Files;
use crate::agent::copilot::bridge::known::Known;
use crate::agent::copilot::bridge::socket::{Heard, Line, Served, serve};
use crate::agent::copilot::bridge::wire::{Consent, Told};
use crate::core::time::{Span, Time};
use crate::system::process::is_gone;
use std::collections::HashMap;
use std::path::PathBuf;
use tokio::sync::{mpsc, watch};

/// A bridge that is there connects within milliseconds of our listening; on a busy machine it takes longer.
const COMES_WITHIN: Span = Span::seconds(2);

/// Where bridges are listened for, and where the key is by which they are known: where there is none, nobody has installed one.
#[derive(Clone, Debug)]
pub(crate) struct Listening {
    /// The runtime folder.
    pub folder: PathBuf,
    /// What lies on our disk of the bridge.
    pub files: Files,
    /// Only for an order or two: each waits for the bridge to its session.
    pub briefly: bool,
}

/// The bridges that are connected.
#[derive(Default)]
pub(super) struct Bridges {
    listening: Option<Listening>,
    served: Option<(Served, mpsc::Receiver<Heard>)>,
    lines: HashMap<Line, Connected>,
    /// Until when, by the awake clock, whoever is there may still come.
    pub(super) come_until: Option<Time>,
}

/// One of them.
struct Connected {
    /// The session that it has joined, and the process that it says owns it.
    session: Box<str>,
    owner: u32,
    /// Its own process.
    process: u32,
    way: Way,
    known: watch::Sender<Known>,
}

impl Connected {
    fn is_of(&self, session: &str, owner: u32) -> bool {
        *self.session == *session && self.owner == owner
    }
}

impl Bridges {
    /// What is heard next; never, where nothing is listened to.
    pub(super) async fn heard(&mut self) -> Heard {
        if let Some((_, heard)) = &mut self.served
            && let Some(heard) = heard.recv().await
        {
            return heard;
        }
        std::future::pending().await
    }

    /// Whether the bridge of this session has come, and has told what is open there.
    pub(super) fn has_told(&self, session: &str) -> bool {
        self.lines.values().any(|line| *line.session == *session && line.known.borrow().has_told)
    }

    /// The bridge of a session that this process owns.
    fn of(&self, session: &str, owner: u32) -> Option<&Connected> {
        self.lines.values().find(|line| line.is_of(session, owner))
    }
}

impl Engine {
    /// From now on bridges are listened for there.
    pub(crate) fn listen_to_bridges(&mut self, at: Listening) {
        self.bridges.listening = Some(at);
    }

    /// The bridge was installed, or removed: listens from now on, or no longer.
    pub(super) fn listen_anew(&mut self, round: &mut Round) {
        self.listen();
        self.look_at_bridges(None, round);
    }

    /// Copilot asked its user where nobody wanted it to: no bridge elevates by itself any more. Each is told when it comes again.
    fn was_misread(&mut self, round: &mut Round) {
        let Some(at) = self.bridges.listening.as_ref().filter(|at| at.files.may_elevate()) else { return };
        tracing::warn!("Copilot asked in a terminal whether Pilotlight may answer, though it was told before");
        at.files.was_misread();
        self.bridges.served = None;
        self.bridges.lines.clear();
        self.listen_anew(round);
    }

    /// Listens where there is a key, and not where there is none.
    pub(super) fn listen(&mut self) {
        let Some(at) = &self.bridges.listening else { return };
        let Some(key) = at.files.key() else {
            self.bridges.served = None;
            self.bridges.lines.clear();
            return;
        };
        if self.bridges.served.is_some() {
            return;
        }
        match serve(&at.folder, key.to_vec(), at.files.may_elevate()) {
            Ok(served) => {
                self.bridges.served = Some(served);
                self.bridges.come_until = at.briefly.then(|| self.clock.now().awake + COMES_WITHIN);
            }
            Err(error) => tracing::warn!("sessions in terminals cannot be reached: {error:#}"),
        }
    }

    /// A bridge has come, told something, or gone.
    pub(super) fn heard(&mut self, heard: Heard, round: &mut Round) {
        let (line, changed) = match heard {
            Heard::Joined(line, hello, bridge) => {
                // The first one that is there is the session's, for as long as it lives.
                let now = self.clock.now().wall;
                let first = self.bridges.lines.iter().find(|(_, line)| line.is_of(&hello.session, hello.ppid));
                if let Some((&first, connected)) = first {
                    if !is_gone(connected.process, now) {
                        tracing::warn!(session = %hello.session, "a second bridge for a session was sent away");
                        return;
                    }
                    self.bridges.lines.remove(&first);
                }
                tracing::info!(session = %hello.session, pid = hello.pid, "a bridge has come");
                let (known, knows) = watch::channel(Known::new(&hello));
                let way = Way { bridge, known: knows };
                let (process, owner) = (hello.pid, hello.ppid);
                let connected = Connected { session: hello.session, owner, process, way, known };
                self.bridges.lines.insert(line, connected);
                (line, true)
            }
            Heard::Told(line, Told::Consent(Consent { unexpected: true, .. })) => {
                if self.bridges.lines.contains_key(&line) {
                    self.was_misread(round);
                }
                return;
            }
            Heard::Told(line, told) => {
                let connected = self.bridges.lines.get(&line);
                let changed = connected.is_some_and(|line| line.known.send_if_modified(|known| known.hear(told)));
                (line, changed)
            }
            Heard::Gone(line) => {
                // Its word goes with it.
                let Some(gone) = self.bridges.lines.remove(&line) else { return };
                tracing::info!(session = %gone.session, "a bridge has gone");
                return self.look_at_bridges(Some(&gone.session), round);
            }
        };
        if changed && let Some(session) = self.bridges.lines.get(&line).map(|line| line.session.clone()) {
            self.look_at_bridges(Some(&session), round);
        }
    }

    /// Looks at the bridge of the sessions of this id, in the home of one and in those that are copies of it; at all bridges, where
    /// none is named.
    fn look_at_bridges(&mut self, session: Option<&str>, round: &mut Round) {
        let keys: Vec<_> = self.fleet.keys().filter(|key| session.is_none_or(|session| *key.1 == *session)).collect();
        for key in keys {
            if self.look_at_bridge(&key) {
                round.redraw = true;
                self.judge(&key, round);
            }
        }
    }

    /// Takes over what the bridge of a session tells. Whether that is something new.
    pub(super) fn look_at_bridge(&mut self, key: &Key) -> bool {
        let is_attached = self.acting.attached(key).is_some();
        let untried = self.config.actions.bridge_untried;
        let Some(folder) = self.fleet.folder(key) else { return false };
        let session = &mut folder.session;
        // Of a process that provably does not hold this very session nobody is the owner.
        let line = session.owner.live().and_then(|owner| self.bridges.of(&session.id, owner));
        let known = line.map(|line| line.known.borrow());
        let bridge = known.as_ref().map(|known| known.bridge(untried));
        let release = known.as_ref().and_then(|known| known.release.clone());
        let (had, asked) = (session.control.bridge, session.live.questions.clone());
        (session.control.bridge, session.control.release) = (bridge, release);
        session.control.old_bridge = known.as_ref().is_some_and(|known| known.is_other);
        if !is_attached {
            // Only a tool asks, and the log has that: a bridge may be somebody else's invention.
            let asks = session.facts.turn.as_ref().is_some_and(|turn| !turn.tools.is_empty())
                || !session.facts.agents.is_empty();
            session.live.questions = known.filter(|_| asks).map(|known| known.questions.open()).unwrap_or_default();
        }
        had != bridge || asked != session.live.questions
    }

    /// The way to a session's terminal.
    pub(super) fn way_to(&self, key: &Key) -> Option<Way> {
        let session = self.fleet.get(key)?.session();
        session.control.bridge.filter(|bridge| bridge.obeys())?;
        self.bridges.of(&session.id, session.owner.live()?).map(|line| line.way.clone())
    }
}
