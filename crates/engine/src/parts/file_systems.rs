//! The file systems of homes and sessions that may stop answering, and whether they answer.
//!
//! Whoever touches one that has stopped waits for ever. So one thread beside the loop touches them, in turn, and the loop
//! touches nothing on one that has not answered a moment ago. Where no home is on such a file system there is no thread,
//! and nothing is asked. One that was unmounted without ever answering (`umount -l`) keeps its thread: another goes on
//! with the rest.

use super::homes::Homes;
use pilotlight_agents::reader::Reader;
use pilotlight_agents::reading::ReadStatus;
use pilotlight_core::session::{HomeId, Key, NoAnswer, Observed};
use pilotlight_core::time::{Moment, Span, Time};
use pilotlight_system::mounts::{Mount, Mounts, PATIENCE, touch};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;
use std::mem;
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// How long the loop waits for an answer before it goes on without: answers usually come within a tenth of a millisecond,
/// and this delays everything else once when a file system stops answering.
const WAIT: Duration = Duration::from_millis(50);
/// How long an answer counts: long enough for the reads that it was asked for.
const FRESH: Duration = Duration::from_millis(20);
/// The same as a multiple of the time that the answer took: what answers slowly is also read slowly.
const FRESH_FACTOR: u32 = 2;
/// What takes longer is not slow, but silent for a while.
const SLOW_MAX: Duration = Duration::from_millis(500);
/// The most threads that are left to file systems which are no longer mounted. With more, the others wait.
const LEFT_MAX: usize = 3;

/// The file systems that may stop answering.
pub(crate) struct FileSystems {
    mounts: Mounts,
    /// Homes on one, and sessions in other homes with one at or below their folder.
    homes: HashMap<HomeId, Mount>,
    sessions: HashMap<Key, Mount>,
    /// By the number of the mount.
    states: BTreeMap<u64, State>,
    ask: fn(&Path),
    asker: Asker,
    /// What was read beside the loop and not taken yet.
    reads: Vec<Read>,
}

/// A session that was read beside the loop.
pub(crate) struct Read {
    pub(crate) key: Key,
    pub(crate) reader: Reader,
    pub(crate) observed: Observed,
    pub(crate) status: io::Result<ReadStatus>,
}

/// What the thread does with a file system.
type Work = Box<dyn FnOnce() -> Option<Read> + Send>;

#[derive(Clone, Copy, Debug)]
enum State {
    /// It answered, and that counts until then.
    Answered { until: Instant },
    /// It was asked then and has not answered yet.
    Asked { since: Moment, at: Instant },
}

impl FileSystems {
    /// Asks them with `ask`, which may block.
    pub(crate) fn new(ask: fn(&Path)) -> Self {
        Self {
            mounts: Mounts::default(),
            homes: HashMap::new(),
            sessions: HashMap::new(),
            states: BTreeMap::new(),
            ask,
            asker: Asker::default(),
            reads: Vec::new(),
        }
    }

    /// Finds out which homes and sessions are on one.
    pub(crate) fn reload(&mut self, homes: &Homes) {
        self.mounts = Mounts::read();
        self.homes.clear();
        self.sessions.clear();
        if !self.mounts.is_empty() {
            self.find_mounts(homes);
        }
        self.forget_unused();
    }

    fn find_mounts(&mut self, homes: &Homes) {
        for (home, root) in homes.all() {
            let folder = root.parent().unwrap_or(root);
            match self.mounts.resolve(root) {
                Err(mount) => drop(self.homes.insert(home, mount)),
                Ok(real) => {
                    let session = |mount: &Mount| {
                        let first = mount.path.strip_prefix(&real).ok()?.components().next()?;
                        Some((Key::new(home, first.as_os_str().to_str()?), mount.clone()))
                    };
                    self.sessions.extend(self.mounts.below(&real).filter_map(session));
                    // Its logs are read with it.
                    let folder = self.mounts.resolve(folder).unwrap_or_else(|mount| mount.path);
                    let beside = self.mounts.below(&folder).find(|mount| !mount.path.starts_with(&real));
                    self.homes.extend(beside.map(|mount| (home, mount.clone())));
                }
            }
        }
    }

    fn used(&self) -> impl Iterator<Item = &Mount> {
        self.homes.values().chain(self.sessions.values())
    }

    /// Forgets those that nothing is on any more. Some are unmounted without ever answering, and whoever is in one stays
    /// there.
    fn forget_unused(&mut self) {
        let used: BTreeSet<u64> = self.used().map(|mount| mount.id).collect();
        self.states.retain(|mount, _| used.contains(mount));
        if self.asker.current().is_some_and(|mount| !used.contains(&mount)) {
            self.asker.leave();
        }
    }

    /// Whether nothing is on one.
    pub(crate) fn is_empty(&self) -> bool {
        self.homes.is_empty() && self.sessions.is_empty()
    }

    /// Whether one has not answered yet.
    pub(crate) fn is_any_silent(&self) -> bool {
        self.states.values().any(|state| matches!(state, State::Asked { .. }))
    }

    /// Asks those that have not answered a moment ago, and waits for the answer a moment.
    pub(crate) fn ask(&mut self, now: Moment) {
        self.take_answers();
        let used: Vec<_> = self.used().map(|mount| (mount.id, mount.path.clone())).collect();
        for (mount, path) in used {
            let is_fresh = match self.states.get(&mount) {
                None => false,
                Some(State::Answered { until }) => Instant::now() < *until,
                Some(State::Asked { .. }) => true,
            };
            if is_fresh {
                continue;
            }
            // While one is silent, the others wait for it: asking them would only be another wait.
            let is_behind = self.is_any_silent();
            self.states.insert(mount, State::Asked { since: now, at: Instant::now() });
            let ask = self.ask;
            let work = move || {
                ask(&path);
                None
            };
            if self.asker.start(mount, Box::new(work)).is_err() {
                // Without a thread they are read as any other.
                self.states.insert(mount, State::Answered { until: Instant::now() + FRESH });
            } else if !is_behind {
                self.wait();
            }
        }
    }

    fn wait(&mut self) {
        self.asker.wait(WAIT);
        self.take_answers();
    }

    /// Whether a session is on one.
    pub(crate) fn has(&self, key: &Key) -> bool {
        self.homes.contains_key(&key.home) || self.sessions.contains_key(key)
    }

    /// Reads a session's folder that is on one beside the loop, and waits for the result a moment. It is in
    /// [`take_reads`](Self::take_reads), then or later.
    pub(crate) fn read(&mut self, key: &Key, now: Moment, read: impl FnOnce() -> Read + Send + 'static) {
        let Some(mount) = self.homes.get(&key.home).or_else(|| self.sessions.get(key)) else { return };
        let mount = mount.id;
        self.states.insert(mount, State::Asked { since: now, at: Instant::now() });
        if self.asker.start(mount, Box::new(|| Some(read()))).is_ok() {
            self.wait();
        }
    }

    /// Whether there is a thread that can read. It was started to ask.
    pub(crate) const fn has_thread(&self) -> bool {
        self.asker.jobs.is_some()
    }

    /// Takes what was read beside the loop.
    pub(crate) fn take_reads(&mut self) -> Vec<Read> {
        mem::take(&mut self.reads)
    }

    fn take_answers(&mut self) {
        for (mount, read) in self.asker.take() {
            self.reads.extend(read);
            if let Some(state) = self.states.get_mut(&mount)
                && let State::Asked { at, .. } = *state
            {
                *state = State::Answered { until: Instant::now() + fresh_for(at.elapsed()) };
            }
        }
    }

    fn is_asked(&self, mount: &Mount) -> bool {
        matches!(self.states.get(&mount.id), Some(State::Asked { .. }))
    }

    /// Whether a home may be touched.
    pub(crate) fn answers_for_home(&self, home: HomeId) -> bool {
        !self.homes.get(&home).is_some_and(|mount| self.is_asked(mount))
    }

    /// Whether a session's folder may be touched.
    pub(crate) fn answers_for(&self, key: &Key) -> bool {
        self.answers_for_home(key.home) && !self.sessions.get(key).is_some_and(|mount| self.is_asked(mount))
    }

    /// What does not answer for this session, if that has gone on for so long that it must be said.
    pub(crate) fn no_answer(&self, key: &Key, now: Time) -> Option<NoAnswer> {
        let mounts = [self.homes.get(&key.home), self.sessions.get(key)];
        mounts.into_iter().flatten().find_map(|mount| {
            let Some(State::Asked { since, .. }) = self.states.get(&mount.id) else { return None };
            let is_behind = self.asker.current().is_some_and(|current| current != mount.id);
            let no_answer = NoAnswer { file_system: mount.kind.into(), since: *since, is_behind };
            (since.awake + patience() <= now).then_some(no_answer)
        })
    }

    /// The homes that must be said not to answer, and why.
    pub(crate) fn silent_homes(&self, now: Time) -> impl Iterator<Item = (HomeId, String)> {
        let is_silent = move |mount: &Mount| matches!(self.states.get(&mount.id), Some(State::Asked { since, .. }) if since.awake + patience() <= now);
        self.homes.iter().filter(move |(_, mount)| is_silent(mount)).map(|(home, mount)| (*home, mount.no_answer()))
    }

    /// When the next one must be said not to answer.
    pub(crate) fn wake_at(&self, now: Time) -> Option<Time> {
        let due = self.states.values().filter_map(|state| match state {
            State::Asked { since, .. } => Some(since.awake + patience()),
            State::Answered { .. } => None,
        });
        due.filter(|at| *at > now).min()
    }

    /// Waits until one answers that the loop did not wait for. Cancel-safe.
    pub(crate) async fn answered(&self) {
        self.asker.shared.late.notified().await;
    }
}

/// How long an answer counts that took so long. One that came after a silence says nothing of the next.
fn fresh_for(took: Duration) -> Duration {
    if took < SLOW_MAX { FRESH.max(took * FRESH_FACTOR) } else { FRESH }
}

fn patience() -> Span {
    Span(i64::try_from(PATIENCE.as_millis()).unwrap_or(i64::MAX))
}

/// The thread that asks.
#[derive(Default)]
struct Asker {
    jobs: Option<Jobs>,
    shared: Arc<Shared>,
}

/// What there is to do. The thread at work takes the next from the receiver.
struct Jobs {
    sender: Sender<Job>,
    receiver: Arc<Mutex<Receiver<Job>>>,
}

/// What to do, and with which mount.
type Job = (u64, Work);

#[derive(Default)]
struct Shared {
    answers: Mutex<Answers>,
    arrived: Condvar,
    late: Notify,
}

#[derive(Default)]
struct Answers {
    answered: Vec<(u64, Option<Read>)>,
    /// The mount that is being asked.
    current: Option<u64>,
    /// Whether the loop waits for the next answer.
    is_awaited: bool,
    /// The number of the thread at work. Those before it were left, and end with what they are doing.
    thread: usize,
    /// How many of them have not ended.
    left: usize,
}

impl Asker {
    /// Starts the thread, unless it runs.
    fn prepare(&mut self) -> io::Result<&Jobs> {
        if self.jobs.is_none() {
            let (sender, receiver) = channel();
            let jobs = Jobs { sender, receiver: Arc::new(Mutex::new(receiver)) };
            self.spawn(&jobs, 0)?;
            self.jobs = Some(jobs);
        }
        self.jobs.as_ref().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// Starts a thread, which ends when there is a newer one, or with the sender.
    fn spawn(&self, jobs: &Jobs, number: usize) -> io::Result<()> {
        let (shared, receiver) = (Arc::clone(&self.shared), Arc::clone(&jobs.receiver));
        let next = move || receiver.lock().unwrap_or_else(PoisonError::into_inner).recv().ok();
        let work = move || {
            while let Some((mount, work)) = next() {
                shared.lock().current = Some(mount);
                let read = work();
                if !shared.add(number, mount, read) {
                    return;
                }
            }
        };
        std::thread::Builder::new().name("file systems".into()).spawn(work).map(drop)
    }

    /// Leaves the thread to what it is doing, and has another go on with the rest.
    fn leave(&self) {
        let Some(jobs) = &self.jobs else { return };
        let mut answers = self.shared.lock();
        if answers.left == LEFT_MAX || self.spawn(jobs, answers.thread + 1).is_err() {
            return;
        }
        answers.current = None;
        answers.thread += 1;
        answers.left += 1;
    }

    /// Has the thread do this with a file system.
    fn start(&mut self, mount: u64, work: Work) -> io::Result<()> {
        let _ = self.prepare()?.sender.send((mount, work)); // we hold the receiver, too
        Ok(())
    }

    /// Waits until the thread has answered everything.
    fn wait(&self, limit: Duration) {
        let mut answers = self.shared.lock();
        answers.is_awaited = true;
        let is_waiting = |answers: &mut Answers| answers.answered.is_empty();
        let waited = self.shared.arrived.wait_timeout_while(answers, limit, is_waiting);
        waited.unwrap_or_else(PoisonError::into_inner).0.is_awaited = false;
    }

    fn take(&self) -> Vec<(u64, Option<Read>)> {
        mem::take(&mut self.shared.lock().answered)
    }

    fn current(&self) -> Option<u64> {
        self.shared.lock().current
    }
}

impl Shared {
    fn lock(&self) -> std::sync::MutexGuard<'_, Answers> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds what this thread found. Returns false if it was left: nobody waits for that any more.
    fn add(&self, thread: usize, mount: u64, read: Option<Read>) -> bool {
        let mut answers = self.lock();
        if answers.thread != thread {
            answers.left -= 1;
            return false;
        }
        answers.current = None;
        answers.answered.push((mount, read));
        if answers.is_awaited {
            self.arrived.notify_all();
        } else {
            self.late.notify_one();
        }
        true
    }
}

/// Those of the system.
impl Default for FileSystems {
    fn default() -> Self {
        Self::new(touch)
    }
}

#[cfg(test)]
pub(crate) mod tests;
