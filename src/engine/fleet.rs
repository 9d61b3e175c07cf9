//! The sessions that the engine holds, each with its last verdict and the row that was made of it.

use crate::agent::copilot::owner::Lock;
use crate::agent::copilot::store::Folder;
use crate::core::fleet::{Label, Row, Session, ShortIds, distinguish};
use crate::core::limits::Limits;
use crate::core::time::{Moment, Span, Time};
use crate::core::verdict::{SAMPLE_TAKES, Sample, Status, Verdict};
use crate::system::process::{CpuSample, cpu_of_descendants};
use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::Arc;

/// A session: the index of its home, and its id.
pub type Key = (usize, Arc<str>);

/// An owner counts as busy when its descendants used at least this much CPU in [`SAMPLE_TAKES`]: one per cent of a core.
pub const BUSY: Span = Span(50);

/// A limit that passes is told at most so much later. What is due within this of each other is done in one waking: a silence
/// of a minute is told a blink later, and sessions that fell silent together wake the program once.
const TOGETHER: Span = Span::seconds(1);
/// The same for what a user may be waiting for, and for looks at the CPU, which are to be over before their limit.
const AT_ONCE: Span = Span(100);
/// A look at the CPU that is due within this is begun by whatever wakes the program: a little earlier it says the same.
const SAMPLE_EARLY: Span = Span::seconds(20);
/// The same for a further look at the same tool.
const SAMPLE_AGAIN_EARLY: Span = Span::seconds(30);

/// A session that is held.
#[derive(Debug)]
pub struct Entry {
    folder: Folder,
    /// The judgement on it.
    pub verdict: Verdict,
    /// What is shown of it.
    pub row: Row,
    /// Its name and label before it was told apart from others.
    own: (String, Label),
    listed: bool,
    /// The processes that were counted as having it open.
    counted: Vec<u32>,
    /// A look at the CPU use of its owner's descendants, begun then by the awake clock.
    sampling: Option<(CpuSample, Time)>,
}

/// All sessions that are held.
#[derive(Debug)]
pub struct Fleet {
    entries: BTreeMap<Key, Entry>,
    limits: Limits,
    names_stale: bool,
    /// Some session's owner, or who else has it open, is another than before.
    owners_stale: bool,
    /// Before then, by the awake clock, time alone changes nothing: what happens all the time need not ask every session.
    due: Option<Time>,
}

impl Entry {
    /// What was observed of it.
    pub(crate) const fn session(&self) -> &Session {
        &self.folder.session
    }

    /// The lock of its owner.
    pub(super) fn owners_lock(&self) -> Option<Lock> {
        self.folder.owners_lock()
    }

    /// Where its folder is.
    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// By when it is to be told that its next limit passed.
    fn limit_told_at(&self) -> Option<Time> {
        let late = if self.verdict.status == Status::Finishing { AT_ONCE } else { TOGETHER };
        self.verdict.limit_at.map(|at| at + late)
    }

    /// By when a sample is to be begun. It ends with the first waking that is late enough: the one that tells the limit it was
    /// begun for, or the rescan.
    fn sampled_at(&self) -> Option<Time> {
        self.verdict.sample_at.filter(|_| self.sampling.is_none()).map(|at| at + AT_ONCE)
    }

    /// The earliest moment at which time alone may change its verdict, or a sample may be begun or ended.
    fn due(&self) -> Option<Time> {
        let sample = match self.sampling {
            Some((_, begun)) => Some(begun + SAMPLE_TAKES),
            None => self.verdict.sample_at.map(|at| at - SAMPLE_AGAIN_EARLY),
        };
        self.verdict.recheck_at.into_iter().chain(sample).min()
    }

    /// How much before its time a sample may be begun.
    fn sample_early(&self) -> Span {
        let session = &self.folder.session;
        let since = session.facts.progress.unwrap_or_default().awake;
        if session.live.busy.is_some_and(|sample| sample.at.awake > since) { SAMPLE_AGAIN_EARLY } else { SAMPLE_EARLY }
    }
}

impl Fleet {
    pub(super) const fn new(limits: Limits) -> Self {
        Self { entries: BTreeMap::new(), limits, names_stale: false, owners_stale: false, due: None }
    }

    /// Judges by these limits from now on: what is held is to be judged anew.
    pub(super) const fn set_limits(&mut self, limits: Limits) {
        self.limits = limits;
    }

    /// The rows of all sessions that are to be shown, in no order of interest.
    pub(crate) fn rows(&self) -> impl Iterator<Item = &Row> {
        self.entries.values().filter(|entry| entry.listed).map(|entry| &entry.row)
    }

    /// The ids of all sessions, those that are not shown included.
    pub(crate) fn short_ids(&self) -> ShortIds<'_> {
        ShortIds::new(self.entries.keys().map(|(_, id)| &**id))
    }

    /// All sessions that are to be shown, in no order of interest.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (&Key, &Entry)> {
        self.entries.iter().filter(|(_, entry)| entry.listed)
    }

    /// A session that is to be shown.
    pub(crate) fn get(&self, key: &Key) -> Option<&Entry> {
        self.entries.get(key).filter(|entry| entry.listed)
    }

    pub(super) fn keys(&self) -> impl Iterator<Item = Key> {
        self.entries.keys().cloned()
    }

    pub(super) fn folder(&mut self, key: &Key) -> Option<&mut Folder> {
        self.entries.get_mut(key).map(|entry| &mut entry.folder)
    }

    /// Judges a session anew. Whether its row differs from what was told.
    pub(super) fn judge(&mut self, key: &Key, now: Moment) -> bool {
        let Some(entry) = self.entries.get_mut(key) else { return false };
        let session = &mut entry.folder.session;
        if session.control.under_way.is_none() {
            session.control.attempts.settle(&session.facts.marks, now.wall);
        }
        let listed = session.is_listed();
        let (mut row, verdict) = session.row(now, &self.limits);
        // A process may come to hold a session whose owner it was already taken for.
        self.owners_stale |= entry.row.owner != row.owner || entry.counted != session.holders;
        let same_name = entry.own.0 == row.name
            && entry.own.1 == row.label
            && entry.row.cwd == row.cwd
            && entry.row.branch == row.branch;
        if same_name {
            row.name.clone_from(&entry.row.name);
            row.label.clone_from(&entry.row.label);
        } else {
            entry.own = (row.name.clone(), row.label.clone());
        }
        self.names_stale |= !same_name || listed != entry.listed;
        let differs = listed != entry.listed || listed && row.differs_from(&entry.row);
        entry.verdict = verdict;
        entry.row = row;
        entry.listed = listed;
        self.due = self.due.into_iter().chain(entry.due()).min();
        differs
    }

    /// Whether the session is to be shown.
    pub(super) fn insert(&mut self, key: Key, folder: Folder, now: Moment) -> bool {
        let (row, verdict) = folder.session.row(now, &self.limits);
        let listed = folder.session.is_listed();
        self.names_stale |= listed;
        self.owners_stale = true;
        let own = (row.name.clone(), row.label.clone());
        let entry = Entry { own, folder, verdict, row, listed, counted: Vec::new(), sampling: None };
        self.due = self.due.into_iter().chain(entry.due()).min();
        self.entries.insert(key, entry);
        listed
    }

    /// Whether the session was shown.
    pub(super) fn remove(&mut self, key: &Key) -> bool {
        let Some(entry) = self.entries.remove(key) else { return false };
        self.names_stale |= entry.listed;
        self.owners_stale = true;
        entry.listed
    }

    /// Counts anew how many sessions each process runs, where that may have changed; adds those whose row changed by it.
    pub(super) fn share_owners(&mut self, now: Moment, changed: &mut Vec<Key>) {
        if !std::mem::take(&mut self.owners_stale) {
            return;
        }
        let mut owners: HashMap<u32, usize> = HashMap::new();
        for pid in self.entries.values().flat_map(|entry| &entry.folder.session.holders) {
            *owners.entry(*pid).or_default() += 1;
        }
        let shared = |session: &Session| {
            let count = session.owner.pid().and_then(|pid| owners.get(&pid)).copied().unwrap_or(0);
            count.saturating_sub(1)
        };
        let mut keys = Vec::new();
        for (key, entry) in &mut self.entries {
            let session = &mut entry.folder.session;
            entry.counted.clone_from(&session.holders);
            let others = shared(session);
            if std::mem::replace(&mut session.control.others, others) != others {
                keys.push(key.clone());
            }
        }
        changed.extend(keys.into_iter().filter(|key| self.judge(key, now)));
    }

    /// Tells rows apart that read alike, where that may have changed; adds those whose name changed by it.
    pub(super) fn name_rows(&mut self, changed: &mut Vec<Key>) {
        if !std::mem::take(&mut self.names_stale) {
            return;
        }
        let shown = || self.entries.iter().filter(|(_, entry)| entry.listed);
        let own = |entry: &Entry| {
            let (name, label) = entry.own.clone();
            Row { name, label, ..entry.row.clone() }
        };
        let mut rows: Vec<_> = shown().map(|(_, entry)| own(entry)).collect();
        distinguish(&mut rows);
        for ((key, entry), row) in self.entries.iter_mut().filter(|(_, entry)| entry.listed).zip(rows) {
            if (&entry.row.name, &entry.row.label) != (&row.name, &row.label) {
                (entry.row.name, entry.row.label) = (row.name, row.label);
                changed.push(key.clone());
            }
        }
    }

    /// By when a status must be looked at again, or a sample be begun. A reason whose age alone will be worded otherwise
    /// is no reason to wake: it goes along with whatever wakes next, at the latest the rescan.
    pub(super) fn wake_at(&self) -> Option<Time> {
        self.entries.values().flat_map(|entry| [entry.limit_told_at(), entry.sampled_at()]).flatten().min()
    }

    /// Does what time alone asks for: samples are taken, and what may have changed is judged. The sessions whose row differs.
    pub(super) fn pass(&mut self, now: Moment) -> Vec<Key> {
        if self.due.is_none_or(|due| due > now.awake) {
            return Vec::new();
        }
        let changed = [self.take_samples(now), self.recheck(now)].concat();
        self.due = self.entries.values().filter_map(Entry::due).min();
        changed
    }

    /// Begins and ends the looks at CPU use that verdicts ask for; the sessions whose row differs by it.
    fn take_samples(&mut self, now: Moment) -> Vec<Key> {
        let mut sampled = Vec::new();
        for (key, entry) in &mut self.entries {
            let cpu = || entry.folder.session.owner.pid().and_then(cpu_of_descendants);
            match entry.sampling.take() {
                Some((before, begun)) if begun + SAMPLE_TAKES <= now.awake => {
                    let took = now.awake - begun;
                    let used = cpu().map_or(Span::ZERO, |after| after.used_since(&before));
                    let busy = used.0 * SAMPLE_TAKES.0 >= BUSY.0 * took.0;
                    entry.folder.session.live.busy = Some(Sample { busy, at: now });
                    sampled.push(key.clone());
                }
                Some(under_way) => entry.sampling = Some(under_way),
                None if entry.verdict.sample_at.is_some_and(|at| at <= now.awake + entry.sample_early()) => {
                    entry.sampling = cpu().map(|sample| (sample, now.awake));
                    if entry.sampling.is_none() {
                        // What cannot be read counts as not busy, and is tried again as an old sample is.
                        entry.folder.session.live.busy = Some(Sample { busy: false, at: now });
                        sampled.push(key.clone());
                    }
                }
                None => {}
            }
        }
        sampled.retain(|key| self.judge(key, now));
        sampled
    }

    /// Judges what time alone may have changed; those whose row differs.
    fn recheck(&mut self, now: Moment) -> Vec<Key> {
        let is_due = |entry: &Entry| entry.verdict.recheck_at.is_some_and(|at| at <= now.awake);
        let due: Vec<_> = self.entries.iter().filter(|(_, entry)| is_due(entry)).map(|(key, _)| key.clone()).collect();
        due.into_iter().filter(|key| self.judge(key, now)).collect()
    }

    /// The sessions of which some lock names this process.
    pub(super) fn with_pid(&self, pid: u32) -> Vec<Key> {
        let names_it = |entry: &Entry| entry.folder.pids().any(|named| named == pid);
        self.entries.iter().filter(|(_, entry)| names_it(entry)).map(|(key, _)| key.clone()).collect()
    }

    /// A session that this process is just opening: it has made its lock, and does not hold the session yet.
    pub(super) fn opened_soon_by(&self, pid: u32) -> Option<&Key> {
        self.entries.iter().find(|(_, entry)| entry.folder.newcomers().contains(&pid)).map(|(key, _)| key)
    }

    /// Whether no process is just opening this session.
    pub(super) fn is_settled(&self, key: &Key) -> bool {
        self.entries.get(key).is_none_or(|entry| entry.folder.newcomers().is_empty())
    }
}

#[cfg(test)]
mod tests;
