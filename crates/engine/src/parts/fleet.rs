//! The held sessions, each with its last verdict and the row made from it.

mod last_progress;
mod remote;

pub use last_progress::LastProgress;
pub use remote::{Trouble, Twin, unreached};

use crate::terminal::why_not;
use pilotlight_agents::channel::Service;
use pilotlight_agents::evidence::Evidence;
use pilotlight_agents::home::Home;
use pilotlight_agents::reader::Reader;
use pilotlight_core::fleet::{Label, Row, Session, ShortIds, distinguish};
use pilotlight_core::limits::Limits;
use pilotlight_core::remote::SessionReport;
use pilotlight_core::session::Key;
use pilotlight_core::time::{Moment, Span, Time};
use pilotlight_core::verdict::{ProbePlan, SAMPLE_DURATION, Sample, Status, Verdict};
use pilotlight_system::process::{CpuSample, cpu_of_descendants};
use remote::{RemoteEntry, RemoteSessions};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// An owner counts as busy if its descendants used at least this much CPU in [`SAMPLE_DURATION`]: one per cent of a
/// core.
const BUSY: Span = Span(50);

/// How late a passed limit may be reported. Limits that pass within this time of each other cause only one wakeup: a
/// second more hardly matters for a silence of a minute, and sessions that fell silent together wake the program once.
const COALESCE_WITHIN: Span = Span::seconds(1);
/// The same for what a user may be waiting for, and for CPU samples, which must end before their limit.
const SHORT_DELAY: Span = Span(100);
/// A CPU sample that is due within this is started by whatever wakes the program: a little earlier, it has the same
/// result.
const SAMPLE_EARLY: Span = Span::seconds(20);
/// The same for another sample of the same tool.
const SAMPLE_AGAIN_EARLY: Span = Span::seconds(30);

/// Ends a CPU sample of the descendants of a session's owner, which began `took` ago.
pub(crate) fn end_sample(session: &mut Session, before: &CpuSample, took: Span, now: Moment) {
    let after = session.observed.owner.pid().and_then(cpu_of_descendants);
    let used = after.map_or(Span::ZERO, |after| after.used_since(before));
    session.liveness.busy = Some(Sample { busy: is_busy(used, took), at: now });
}

/// Whether an owner whose descendants used this much CPU in the time `took` counts as busy.
fn is_busy(used: Span, took: Span) -> bool {
    used.0 * SAMPLE_DURATION.0 >= BUSY.0 * took.0
}

/// Finds out whether the terminal of a session's process can be shown, once for each process.
pub(crate) fn find_terminal(session: &mut Session) {
    if let Some(pid) = session.observed.owner.live()
        && session.terminal.as_ref().is_none_or(|(known, _)| *known != pid)
    {
        session.terminal = Some((pid, why_not(pid, session.observed.pane.is_some()).map(Into::into)));
    }
}

/// How many of these sessions each process has open.
pub(crate) fn count_holders<'a>(sessions: impl Iterator<Item = &'a Session>) -> HashMap<u32, usize> {
    let mut owners = HashMap::new();
    for pid in sessions.flat_map(|session| &session.observed.holders) {
        *owners.entry(*pid).or_default() += 1;
    }
    owners
}

/// How many other sessions a session's owner has open, of those that were counted.
pub(crate) fn others_of_owner(session: &Session, owners: &HashMap<u32, usize>) -> usize {
    let count = session.observed.owner.pid().and_then(|pid| owners.get(&pid)).copied().unwrap_or(0);
    count.saturating_sub(1)
}

/// A session that is held.
#[derive(Debug)]
pub struct Entry {
    pub reader: Reader,
    /// It, as observed, and our relation to it.
    pub session: Session,
    pub verdict: Verdict,
    /// When that was judged, by the awake clock.
    judged_at: Time,
    /// Its row, as shown.
    pub row: Row,
    /// When something was last heard of it.
    pub last_progress: LastProgress,
    /// Its name and label before they were changed to distinguish it from others.
    plain_name: (String, Label),
    listed: bool,
    /// The processes that were last counted as having it open.
    counted_holders: Vec<u32>,
    /// The running CPU sample of its owner's descendants, and when it was started, by the awake clock.
    sampling: Option<(CpuSample, Time)>,
}

/// A session as views are shown it.
#[derive(Clone, Copy, Debug)]
pub struct Shown<'a> {
    pub key: &'a Key,
    /// Its row, as all lists show it.
    pub row: &'a Row,
    /// What is known about it.
    pub session: &'a Session,
    /// When something was last heard of it.
    pub last_progress: &'a LastProgress,
    /// What reads it. `None` if it is on another machine.
    pub reader: Option<&'a Reader>,
}

/// All held sessions.
#[derive(Debug)]
pub struct Fleet {
    entries: BTreeMap<Key, Entry>,
    remote: RemoteSessions,
    limits: Limits,
    names_stale: bool,
    /// Some session's owner, or the processes that have it open, have changed.
    owners_stale: bool,
    /// Before this time, by the awake clock, nothing changes through time alone. Frequent events then need not check
    /// every session.
    next_check: Option<Time>,
}

impl Entry {
    /// The observed session.
    pub const fn session(&self) -> &Session {
        &self.session
    }

    fn shown<'a>(&'a self, key: &'a Key) -> Shown<'a> {
        let Self { row, session, last_progress, reader, .. } = self;
        Shown { key, row, session, last_progress, reader: Some(reader) }
    }

    /// What is told of it to another machine.
    pub(crate) fn report(&self, now: Moment) -> SessionReport {
        SessionReport::of(&self.session, &self.row, (&self.plain_name.0, &self.plain_name.1), now)
    }

    /// The service that runs it, if its owner is one that takes orders.
    pub(crate) fn service(&self, home: &Home) -> Option<Arc<dyn Service>> {
        home.service(&self.session.id, &*self.reader, &self.session.observed)
    }

    /// What shows that its owner owns it, where that is enough to signal a process.
    pub(crate) fn evidence(&self) -> Option<Arc<dyn Evidence>> {
        self.reader.evidence(&self.session.observed)
    }

    /// By when it must be reported that its next limit has passed.
    fn limit_wake_at(&self) -> Option<Time> {
        let at = self.verdict.limit_at?;
        // A limit that was near when it was judged is part of what has just happened: half a second of rest, say.
        let is_near = self.verdict.status == Status::Finishing || at - self.judged_at <= COALESCE_WITHIN;
        let late = if is_near { SHORT_DELAY } else { COALESCE_WITHIN };
        Some(at + late)
    }

    /// By when a sample must be started. It ends at the first wakeup that is late enough: the one for the limit that it
    /// was started for, or the rescan.
    fn sample_wake_at(&self) -> Option<Time> {
        self.verdict.sample_at.filter(|_| self.sampling.is_none()).map(|at| at + SHORT_DELAY)
    }

    /// By when a probe must be begun.
    fn probe_wake_at(&self) -> Option<Time> {
        self.due_probe().and_then(|probe| probe.at).map(|at| at + SHORT_DELAY)
    }

    /// The probe to begin next.
    fn due_probe(&self) -> Option<ProbePlan> {
        self.verdict.probe.filter(|probe| probe.at.is_some() && !self.session.liveness.probing_stream)
    }

    /// The earliest time at which time alone may change its verdict, or a sample may start or end.
    fn next_check_at(&self) -> Option<Time> {
        let sample = match self.sampling {
            Some((_, started)) => Some(started + SAMPLE_DURATION),
            None => self.verdict.sample_at.map(|at| at - SAMPLE_AGAIN_EARLY),
        };
        self.verdict.recheck_at.into_iter().chain(sample).min()
    }

    /// How early a sample may be started.
    fn sample_early(&self) -> Span {
        let session = &self.session;
        let since = session.observed.facts.progress.unwrap_or_default().awake;
        if session.liveness.busy.is_some_and(|sample| sample.at.awake > since) {
            SAMPLE_AGAIN_EARLY
        } else {
            SAMPLE_EARLY
        }
    }
}

impl Fleet {
    pub(crate) fn new(limits: Limits) -> Self {
        Self {
            entries: BTreeMap::new(),
            remote: RemoteSessions::default(),
            limits,
            names_stale: false,
            owners_stale: false,
            next_check: None,
        }
    }

    /// Sets the limits. The caller must judge the held sessions again.
    pub(crate) const fn set_limits(&mut self, limits: Limits) {
        self.limits = limits;
    }

    /// All that is shown, in no meaningful order.
    pub fn shown(&self) -> impl Iterator<Item = Shown<'_>> {
        let here = self.entries().map(|(key, entry)| entry.shown(key));
        here.chain(self.remote.entries.iter().map(|(key, entry)| entry.shown(key)))
    }

    /// One that is shown.
    pub fn shown_as(&self, key: &Key) -> Option<Shown<'_>> {
        if key.host.is_none() {
            let (key, entry) = self.entries.get_key_value(key).filter(|(_, entry)| entry.listed)?;
            return Some(entry.shown(key));
        }
        self.remote.entries.get_key_value(key).map(|(key, entry)| entry.shown(key))
    }

    /// The rows of all that is shown, in no meaningful order.
    pub fn rows(&self) -> impl Iterator<Item = &Row> {
        self.shown().map(|shown| shown.row)
    }

    /// The ids of all sessions, including unlisted ones.
    pub fn short_ids(&self) -> ShortIds<'_> {
        ShortIds::new(self.entries.keys().chain(self.remote.entries.keys()).map(|key| &*key.id))
    }

    /// All listed sessions of this machine, in no meaningful order.
    pub fn entries(&self) -> impl Iterator<Item = (&Key, &Entry)> {
        self.entries.iter().filter(|(_, entry)| entry.listed)
    }

    /// A listed session of this machine.
    pub fn get(&self, key: &Key) -> Option<&Entry> {
        self.entries.get(key).filter(|entry| entry.listed)
    }

    pub(crate) fn keys(&self) -> impl Iterator<Item = Key> {
        self.entries.keys().cloned()
    }

    /// Whether a session is held, listed or not.
    pub(crate) fn holds(&self, key: &Key) -> bool {
        self.entries.contains_key(key)
    }

    /// All held sessions, listed or not.
    pub(crate) fn sessions(&self) -> impl Iterator<Item = (&Key, &Session)> {
        self.entries.iter().map(|(key, entry)| (key, &entry.session))
    }

    /// The sessions whose owner's descendants must be sampled by now, each with that owner.
    pub(crate) fn due_samples(&self, now: Time) -> impl Iterator<Item = (&Key, u32)> {
        let due = self.entries.iter().filter(move |(_, entry)| entry.verdict.sample_at.is_some_and(|at| at <= now));
        due.filter_map(|(key, entry)| Some((key, entry.session.observed.owner.pid()?)))
    }

    /// A held session with its reader, listed or not.
    pub(crate) fn entry(&mut self, key: &Key) -> Option<&mut Entry> {
        self.entries.get_mut(key)
    }

    /// A held session, listed or not.
    pub(crate) fn session(&mut self, key: &Key) -> Option<&mut Session> {
        self.entries.get_mut(key).map(|entry| &mut entry.session)
    }

    /// Judges a session. Returns whether its row differs from the last one.
    pub(crate) fn judge(&mut self, key: &Key, now: Moment) -> bool {
        let Some(entry) = self.entries.get_mut(key) else { return false };
        let session = &mut entry.session;
        if session.control.under_way.is_none() {
            session.control.attempts.settle(&session.observed.facts.marks, now.wall);
        }
        let listed = session.is_listed();
        let (mut row, verdict) = session.row(now, &self.limits);
        // A process that was already considered the owner may start to hold the session.
        self.owners_stale |= entry.row.owner != row.owner || entry.counted_holders != session.observed.holders;
        let same_name = entry.plain_name.0 == row.name
            && entry.plain_name.1 == row.label
            && entry.row.cwd == row.cwd
            && entry.row.branch == row.branch;
        if same_name {
            row.name.clone_from(&entry.row.name);
            row.label.clone_from(&entry.row.label);
        } else {
            entry.plain_name = (row.name.clone(), row.label.clone());
        }
        self.names_stale |= !same_name || listed != entry.listed;
        let differs = listed != entry.listed || listed && row.differs_from(&entry.row);
        entry.verdict = verdict;
        entry.judged_at = now.awake;
        entry.last_progress.set(row.last());
        entry.row = row;
        entry.listed = listed;
        self.next_check = self.next_check.into_iter().chain(entry.next_check_at()).min();
        differs
    }

    /// Adds a session. Returns whether it is listed.
    pub(crate) fn insert(&mut self, key: Key, reader: Reader, session: Session, now: Moment) -> bool {
        let (row, verdict) = session.row(now, &self.limits);
        let listed = session.is_listed();
        self.names_stale |= listed;
        self.owners_stale = true;
        let plain_name = (row.name.clone(), row.label.clone());
        let last_progress = LastProgress::default();
        last_progress.set(row.last());
        let counted_holders = Vec::new();
        let entry = Entry {
            plain_name,
            reader,
            session,
            verdict,
            judged_at: now.awake,
            row,
            last_progress,
            listed,
            counted_holders,
            sampling: None,
        };
        self.next_check = self.next_check.into_iter().chain(entry.next_check_at()).min();
        self.entries.insert(key, entry);
        listed
    }

    /// Removes a session. Returns whether it was listed.
    pub(crate) fn remove(&mut self, key: &Key) -> bool {
        let Some(entry) = self.entries.remove(key) else { return false };
        self.names_stale |= entry.listed;
        self.owners_stale = true;
        entry.listed
    }

    /// Recounts how many sessions each process runs if that may have changed. Adds the sessions whose row changes to
    /// `changed`.
    pub(crate) fn count_shared_owners(&mut self, now: Moment, changed: &mut Vec<Key>) {
        if !std::mem::take(&mut self.owners_stale) {
            return;
        }
        let owners = count_holders(self.entries.values().map(Entry::session));
        let mut keys = Vec::new();
        for (key, entry) in &mut self.entries {
            let session = &mut entry.session;
            entry.counted_holders.clone_from(&session.observed.holders);
            let other_sessions = others_of_owner(session, &owners);
            if std::mem::replace(&mut session.control.other_sessions, other_sessions) != other_sessions {
                keys.push(key.clone());
            }
        }
        changed.extend(keys.into_iter().filter(|key| self.judge(key, now)));
    }

    /// Gives distinct names to rows that read alike if that may have changed. Adds the sessions whose name changes to
    /// `changed`.
    pub(crate) fn disambiguate_rows(&mut self, changed: &mut Vec<Key>) {
        if !std::mem::take(&mut self.names_stale) {
            return;
        }
        let shown = || self.entries.iter().filter(|(_, entry)| entry.listed);
        let own_row = |entry: &Entry| {
            let (name, label) = entry.plain_name.clone();
            Row { name, label, ..entry.row.clone() }
        };
        let remote = self.remote.entries.values().map(RemoteEntry::plain_row);
        let mut rows: Vec<_> = shown().map(|(_, entry)| own_row(entry)).chain(remote).collect();
        distinguish(&mut rows);
        let here = self.entries.iter_mut().filter(|(_, entry)| entry.listed).map(|(key, entry)| (key, &mut entry.row));
        let remote = self.remote.entries.iter_mut().map(|(key, entry)| (key, &mut entry.row));
        for ((key, shown), row) in here.chain(remote).zip(rows) {
            if (&shown.name, &shown.label) != (&row.name, &row.label) {
                (shown.name, shown.label) = (row.name, row.label);
                changed.push(key.clone());
            }
        }
    }

    /// By when a status must be judged again, or a sample started. A reason that only its age would reword is not worth
    /// a wakeup: it is updated at the next one, at the latest by the rescan.
    pub(crate) fn wake_at(&self) -> Option<Time> {
        self.entries.values().flat_map(|entry| [entry.limit_wake_at(), entry.sample_wake_at()]).flatten().min()
    }

    /// By when the next probe must be begun.
    pub(crate) fn probe_at(&self) -> Option<Time> {
        self.entries.values().filter_map(Entry::probe_wake_at).min()
    }

    /// The probes to begin by now, each with its session.
    pub(crate) fn take_due_probes(&self, now: Time) -> Vec<(Key, ProbePlan)> {
        let is_due = |probe: &ProbePlan| probe.at.is_some_and(|at| at <= now);
        let due = |(key, entry): (&Key, &Entry)| Some((key.clone(), entry.due_probe().filter(is_due)?));
        self.entries.iter().filter_map(due).collect()
    }

    /// Does what is due through time alone: takes samples, and judges what may have changed. Returns the sessions whose
    /// row differs.
    pub(crate) fn advance(&mut self, now: Moment) -> Vec<Key> {
        if self.next_check.is_none_or(|due| due > now.awake) {
            return Vec::new();
        }
        let changed = [self.take_samples(now), self.recheck(now)].concat();
        self.next_check = self.entries.values().filter_map(Entry::next_check_at).min();
        changed
    }

    /// Starts and ends the CPU samples that verdicts ask for. Returns the sessions whose row differs because of them.
    fn take_samples(&mut self, now: Moment) -> Vec<Key> {
        let mut sampled = Vec::new();
        for (key, entry) in &mut self.entries {
            match entry.sampling.take() {
                Some((before, started)) if started + SAMPLE_DURATION <= now.awake => {
                    end_sample(&mut entry.session, &before, now.awake - started, now);
                    sampled.push(key.clone());
                }
                Some(running) => entry.sampling = Some(running),
                None if entry.verdict.sample_at.is_some_and(|at| at <= now.awake + entry.sample_early()) => {
                    let cpu = entry.session.observed.owner.pid().and_then(cpu_of_descendants);
                    entry.sampling = cpu.map(|sample| (sample, now.awake));
                    if entry.sampling.is_none() {
                        // An unreadable CPU use counts as not busy, and is tried again like an outdated sample.
                        entry.session.liveness.busy = Some(Sample { busy: false, at: now });
                        sampled.push(key.clone());
                    }
                }
                None => {}
            }
        }
        sampled.retain(|key| self.judge(key, now));
        sampled
    }

    /// Judges what time alone may have changed. Returns the sessions whose row differs.
    fn recheck(&mut self, now: Moment) -> Vec<Key> {
        let is_due = |entry: &Entry| entry.verdict.recheck_at.is_some_and(|at| at <= now.awake);
        let due: Vec<_> = self.entries.iter().filter(|(_, entry)| is_due(entry)).map(|(key, _)| key.clone()).collect();
        due.into_iter().filter(|key| self.judge(key, now)).collect()
    }

    /// The sessions of which this process may be the owner.
    pub(crate) fn with_pid(&self, pid: u32) -> Vec<Key> {
        let names_it = |entry: &Entry| entry.reader.pids().contains(&pid);
        self.entries.iter().filter(|(_, entry)| names_it(entry)).map(|(key, _)| key.clone()).collect()
    }

    /// The session that this process is just opening: it has created its lock and does not hold the session yet.
    pub(crate) fn being_opened_by(&self, pid: u32) -> Option<&Key> {
        self.entries.iter().find(|(_, entry)| entry.reader.newcomers().contains(&pid)).map(|(key, _)| key)
    }

    /// Whether no process is just opening this session.
    pub(crate) fn is_settled(&self, key: &Key) -> bool {
        self.entries.get(key).is_none_or(|entry| entry.reader.newcomers().is_empty())
    }
}

#[cfg(test)]
mod tests;
