//! Looks into silences: whether a session whose log is silent receives its model's answer.
//!
//! A probe begins shortly before a limit of the silence and ends at it: the sockets of the session's process are read
//! twice, and its server or bridge is asked meanwhile if there is one.

use pilotlight_core::session::{Key, Session};
use pilotlight_core::stream_probe::{ProbedStream, Sockets, Word, found};
use pilotlight_core::time::{Span, Time};
use pilotlight_system::log::{self, cause, private};
use pilotlight_system::process::connections;
use std::collections::HashMap;
use std::sync::Arc;

/// How much longer than its probe a server or bridge may take to answer. Copilot takes milliseconds, and 1.5 s to measure
/// a rate.
const ANSWERS_WITHIN: Span = Span::seconds(3);
/// An earlier probe that is older than this is not compared with.
const COMPARABLE: Span = Span::seconds(120);

/// A number for each probe, so that an answer to an earlier one is not taken for an answer to the current one.
pub(crate) type ProbeId = u64;

#[derive(Default)]
pub(crate) struct StreamProbes {
    running: HashMap<Key, RunningProbe>,
    /// The sockets that were last seen in the silence of each session, for a later probe to compare with.
    last: HashMap<Key, SeenSockets>,
    next_id: ProbeId,
}

/// The sockets of a process, and when they were seen, by the awake clock. `None` if they cannot be seen.
#[derive(Clone)]
struct SeenSockets {
    sockets: Option<Arc<Sockets>>,
    at: Time,
}

struct RunningProbe {
    id: ProbeId,
    /// The session's owner.
    pid: u32,
    /// The last progress in its log, by the wall clock: a later event ends the probe.
    progress: Time,
    first: SeenSockets,
    /// When to probe again, by the awake clock.
    until: Time,
    inquiry: Inquiry,
}

/// What its server or bridge says.
enum Inquiry {
    /// Neither is asked.
    Nobody,
    /// It has not answered yet.
    Waiting,
    /// `None` if it gave no usable answer.
    Answered(Option<Word>),
}

pub(crate) struct BeginProbe {
    /// The session's owner.
    pub(crate) pid: u32,
    /// The last progress in its log, by the wall clock.
    pub(crate) progress: Time,
    pub(crate) window: Span,
    /// Its server or bridge is asked meanwhile.
    pub(crate) is_asked: bool,
}

/// A probe that is over.
pub(crate) struct EndedProbe {
    pub(crate) key: Key,
    pub(crate) pid: u32,
    /// The last progress in its log when it began.
    pub(crate) progress: Time,
    pub(crate) view: SocketView,
    pub(crate) word: Option<Word>,
}

/// The sockets of a process in one or two probes.
pub(crate) struct SocketView {
    earlier: Option<(Arc<Sockets>, Span)>,
    now: Option<Arc<Sockets>>,
}

impl SocketView {
    /// What it shows of the first of the sessions that asked their models at these times. `has_client`: a program may
    /// answer the process's requests to its model.
    pub(crate) fn found(&self, asked: &[Time], has_client: bool, now: Time) -> ProbedStream {
        let earlier = self.earlier.as_ref().map(|(sockets, ago)| (&**sockets, *ago));
        found(earlier, self.now.as_deref(), asked, has_client, now)
    }
}

/// When the sessions of this process that wait for their models asked them: first this one, whose last progress was at
/// `progress`, then all others.
pub(crate) fn asked_by<'a>(
    pid: u32,
    session: &Session,
    progress: Time,
    others: impl Iterator<Item = &'a Session>,
) -> Vec<Time> {
    let others = others.filter(|session| session.observed.owner.live() == Some(pid));
    let own = session.asked_model().unwrap_or(progress);
    std::iter::once(own).chain(others.filter_map(Session::asked_model)).collect()
}

/// Reads the sockets of processes, each once.
#[derive(Default)]
pub(crate) struct SocketReader {
    read: HashMap<u32, Option<Arc<Sockets>>>,
}

impl SocketReader {
    /// The sockets of a process now, with nothing to compare them with.
    pub(crate) fn view(&mut self, pid: u32) -> SocketView {
        SocketView { earlier: None, now: self.read(pid) }
    }

    fn read(&mut self, pid: u32) -> Option<Arc<Sockets>> {
        let read = || connections(pid).map(Arc::new);
        let log = |error: &std::io::Error| {
            log::debug!(pid = private(&pid), "its connections cannot be seen: {}", cause(error));
        };
        self.read.entry(pid).or_insert_with(|| read().inspect_err(log).ok()).clone()
    }
}

impl StreamProbes {
    /// Begins a probe of a session, which ends after `window`, or when whoever `is_asked` has answered. Returns its id,
    /// and what can be seen at once.
    pub(crate) fn begin(
        &mut self,
        key: &Key,
        begin: &BeginProbe,
        reader: &mut SocketReader,
        now: Time,
    ) -> (ProbeId, SocketView) {
        let &BeginProbe { pid, progress, window, is_asked } = begin;
        self.next_id += 1;
        let first = SeenSockets { sockets: reader.read(pid), at: now };
        let view = self.view(key, first.clone());
        let inquiry = if is_asked { Inquiry::Waiting } else { Inquiry::Nobody };
        let probe = RunningProbe { id: self.next_id, pid, progress, first, until: now + window, inquiry };
        self.running.insert(key.clone(), probe);
        (self.next_id, view)
    }

    /// Probes once, and compares with the last probe in the same silence.
    pub(crate) fn probe_again(&mut self, key: &Key, pid: u32, reader: &mut SocketReader, now: Time) -> SocketView {
        let seen = SeenSockets { sockets: reader.read(pid), at: now };
        let view = self.view(key, seen.clone());
        self.last.insert(key.clone(), seen);
        view
    }

    fn view(&self, key: &Key, now: SeenSockets) -> SocketView {
        let last = self.last.get(key).filter(|last| now.at - last.at <= COMPARABLE);
        let earlier = last.and_then(|last| Some((last.sockets.clone()?, now.at - last.at)));
        SocketView { earlier: earlier.filter(|(_, ago)| *ago > Span::ZERO), now: now.sockets }
    }

    /// Whether a probe of this session is running.
    pub(crate) fn is_running(&self, key: &Key) -> bool {
        self.running.contains_key(key)
    }

    /// Notes what a session's server or bridge says.
    pub(crate) fn answered(&mut self, key: &Key, id: ProbeId, word: Option<Word>) {
        if let Some(probe) = self.running.get_mut(key).filter(|probe| probe.id == id) {
            probe.inquiry = Inquiry::Answered(word);
        }
    }

    /// Drops the probes whose silence is over, because `progress` of their session differs: returns these sessions.
    pub(crate) fn drop_outdated(&mut self, progress: impl Fn(&Key) -> Option<Time>) -> Vec<Key> {
        let is_outdated = |key: &Key, probe: &RunningProbe| progress(key) != Some(probe.progress);
        let outdated: Vec<_> =
            self.running.iter().filter(|(key, probe)| is_outdated(key, probe)).map(|(key, _)| key.clone()).collect();
        for key in &outdated {
            self.forget(key);
        }
        outdated
    }

    pub(crate) fn forget(&mut self, key: &Key) {
        self.running.remove(key);
        self.last.remove(key);
    }

    pub(crate) fn end_due(&mut self, reader: &mut SocketReader, now: Time) -> Vec<EndedProbe> {
        let due: Vec<_> =
            self.running.iter().filter(|(_, probe)| probe.ends_at() <= now).map(|(key, _)| key.clone()).collect();
        let end = |key: Key| {
            let probe = self.running.remove(&key)?;
            self.last.insert(key.clone(), probe.first);
            let view = self.probe_again(&key, probe.pid, reader, now);
            let word = match probe.inquiry {
                Inquiry::Answered(word) => word,
                Inquiry::Nobody | Inquiry::Waiting => None,
            };
            Some(EndedProbe { key, pid: probe.pid, progress: probe.progress, view, word })
        };
        due.into_iter().filter_map(end).collect()
    }

    /// When the next probe ends.
    pub(crate) fn wake_at(&self) -> Option<Time> {
        self.running.values().map(RunningProbe::ends_at).min()
    }
}

impl RunningProbe {
    /// When it ends: whoever is asked measures for as long as we do.
    fn ends_at(&self) -> Time {
        match self.inquiry {
            Inquiry::Waiting => self.until + ANSWERS_WITHIN,
            Inquiry::Nobody | Inquiry::Answered(_) => self.until,
        }
    }
}
