//! Which sessions live processes have open, beyond what the sessions' own files say, whichever agents they are.

use super::adapter::Adapter;
use super::runners::{HomeInUse, Runner, shares};
use pilotlight_core::owner::{Doubt, Owner};
use pilotlight_core::time::Time;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::{Path, PathBuf};

/// A session that a live process has open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenSession {
    pub pid: u32,
    /// The id by which it is known, and names itself in its files, inside of the container that it runs in, if it does.
    pub(super) inside: Option<u32>,
    /// The folder that holds the sessions of its home.
    pub(super) root: PathBuf,
    pub(super) opened: Opened,
    /// When the process opened it, or else when the process started.
    pub(super) since: Option<Time>,
    /// Whether it is not certain which program the process runs.
    pub(super) is_uncertain: bool,
    /// Whether the process may have closed it since: it does not say so.
    pub(super) may_be_closed: bool,
    /// Set for a guess: the process names no session, and at this time its home recorded the session as opened, not by
    /// which process.
    pub(super) guessed: Option<Time>,
}

/// What a process has open.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Opened {
    /// One session, but it is not known yet which.
    Some,
    /// Maybe sessions, of which it leaves no trace.
    Untold {
        /// The folder it works in; `None` if that cannot be read.
        folder: Option<PathBuf>,
        /// Whether it can be asked, should it listen.
        may_answer: bool,
    },
    /// The session with this id.
    Session(Box<str>),
}

impl Opened {
    pub(super) fn id(&self) -> Option<&str> {
        match self {
            Self::Session(id) => Some(id),
            Self::Some | Self::Untold { .. } => None,
        }
    }
}

/// The result of a scan.
#[derive(Clone, Debug, Default)]
pub struct OpenSessions {
    /// Sorted by session id.
    open: Vec<OpenSession>,
    /// The live processes of agents that may run sessions.
    runners: Vec<Runner>,
    /// Whether these are all that run.
    lists_runners: bool,
    /// The homes that are followed.
    homes: Vec<(&'static dyn Adapter, PathBuf)>,
    /// The files of the programs that all these processes run.
    programs: Vec<PathBuf>,
    /// The homes that live processes name.
    in_use: Vec<HomeInUse>,
}

/// The sessions that the terminals of a home recorded as open, each with the time at which it was opened. It changes
/// when a session is opened or closed, and not with every turn.
pub type Noted = BTreeMap<Box<str>, Box<str>>;

impl OpenSession {
    /// The owner of the session, by this evidence. `lock`: the process that a lock of the session names, and that is not
    /// there.
    pub(crate) fn owner(&self, lock: Option<u32>) -> Owner {
        let (pid, started) = (self.pid, self.since);
        // It was prompted, so it made that lock, in its container.
        if lock.is_some() && lock == self.inside {
            return Owner::Unknown { pid };
        }
        match (self.is_uncertain, self.may_be_closed) {
            (true, _) => Owner::Unknown { pid },
            (false, true) => Owner::Doubtful { pid, why: Doubt::HadOpen },
            (false, false) => Owner::Opened { pid, started },
        }
    }
}

impl OpenSessions {
    /// Nothing was scanned.
    pub const NONE: &'static Self = &Self {
        open: Vec::new(),
        runners: Vec::new(),
        lists_runners: false,
        homes: Vec::new(),
        programs: Vec::new(),
        in_use: Vec::new(),
    };

    pub(super) fn new(mut open: Vec<OpenSession>) -> Self {
        open.sort_by(|one, other| one.opened.cmp(&other.opened));
        Self { open, ..Self::default() }
    }

    /// The same with the live processes of agents, and the homes that are followed.
    #[must_use]
    pub(super) fn with(self, runners: Vec<Runner>, homes: Vec<(&'static dyn Adapter, PathBuf)>) -> Self {
        Self { runners, lists_runners: cfg!(target_os = "linux"), homes, ..self }
    }

    /// The same with the files of the programs that these processes run.
    #[must_use]
    pub(super) fn with_programs(mut self, find: impl FnOnce(&mut dyn Iterator<Item = u32>) -> Vec<PathBuf>) -> Self {
        let opened = self.open.iter().map(|opening| opening.pid);
        self.programs = find(&mut opened.chain(self.runners.iter().map(|runner| runner.pid)));
        self
    }

    /// The same with the homes that live processes name.
    #[must_use]
    pub(super) fn with_in_use(self, in_use: Vec<HomeInUse>) -> Self {
        Self { in_use, ..self }
    }

    /// The homes that live processes name, of the agents that were [sought](super::scanner::OpenScanner::seek), followed or not.
    pub fn homes_in_use(&self) -> &[HomeInUse] {
        &self.in_use
    }

    /// The files of the programs that the processes run which were found: whoever starts another opens one.
    pub fn programs(&self) -> &[PathBuf] {
        &self.programs
    }

    /// The live processes of this agent that may run sessions.
    pub(crate) fn runners(&self, adapter: &'static dyn Adapter) -> impl Iterator<Item = &Runner> {
        self.runners.iter().filter(move |runner| runner.adapter == adapter)
    }

    /// Whether no live process of this agent can have a session open that it does not show.
    pub(crate) fn show_all(&self, adapter: &'static dyn Adapter) -> bool {
        self.lists_runners
            && self.runners(adapter).all(|it| it.is_helper || !it.claims.is_empty() || !it.logs.is_empty())
    }

    /// The homes of this agent: those that are followed, and those of its live processes.
    pub fn homes(&self, adapter: &'static dyn Adapter) -> impl Iterator<Item = &Path> {
        let followed = self.homes.iter().filter(move |(of, _)| *of == adapter).map(|(_, home)| home);
        let homes: BTreeSet<_> = followed
            .chain(self.runners(adapter).filter_map(|runner| runner.home.as_ref()))
            .map(PathBuf::as_path)
            .collect();
        homes.into_iter()
    }

    /// The homes of this agent that have a log: the one that it was found in, and those that share it.
    pub(crate) fn homes_with(
        &self,
        adapter: &'static dyn Adapter,
        (home, root): (&Path, &Path),
        log: &Path,
    ) -> Vec<PathBuf> {
        let sessions = adapter.profile().sessions;
        let others = self.homes(adapter).filter(|other| *other != home && shares(&other.join(sessions), root, log));
        [home].into_iter().chain(others).map(Path::to_owned).collect()
    }

    /// The homes of live processes, of any agent, that are not followed.
    pub fn homes_besides(&self) -> impl Iterator<Item = (&'static dyn Adapter, &Path)> {
        let is_followed = |adapter: &'static dyn Adapter, home: &Path| {
            self.homes.iter().any(|(of, its)| *of == adapter && its == home)
        };
        let homes = self.runners.iter().filter_map(|runner| Some((runner.adapter, runner.home.as_deref()?)));
        homes.filter(move |(adapter, home)| !is_followed(*adapter, home))
    }

    /// Whether other processes of agents run than at another scan, or show other sessions, or that they do not show theirs.
    pub fn has_other_runners(&self, before: &Self) -> bool {
        // When one started is counted back from now, and comes out a little different each time. `born` tells them apart.
        let differs = |(one, other): (&Runner, &Runner)| Runner { started: other.started, ..one.clone() } != *other;
        let untold = |of: &Self| -> Vec<(u32, PathBuf, Opened)> {
            let untold = of.open.iter().filter(|opening| matches!(opening.opened, Opened::Untold { .. }));
            untold.map(|opening| (opening.pid, opening.root.clone(), opening.opened.clone())).collect()
        };
        self.runners.len() != before.runners.len()
            || self.runners.iter().zip(&before.runners).any(differs)
            || untold(self) != untold(before)
    }

    /// Keeps only some, for tests.
    #[cfg(test)]
    pub(super) fn retain(&mut self, keeps: impl Fn(&OpenSession) -> bool) {
        self.open.retain(keeps);
    }

    #[cfg(test)]
    pub(crate) fn all(&self) -> &[OpenSession] {
        &self.open
    }

    /// The process that has this session open: it says so itself, in its log or on its command line. One that may have closed
    /// it counts only where no other has it.
    pub(crate) fn of(&self, root: &Path, id: &str) -> Option<&OpenSession> {
        self.with_id(root, id).filter(|opening| opening.guessed.is_none()).min_by_key(|opening| opening.may_be_closed)
    }

    /// A process that may have this session open, which was recorded as opened later than `since`, and when. Only a guess:
    /// it must not override what is known of the session.
    pub(crate) fn guess(&self, root: &Path, id: &str, since: Option<Time>) -> Option<(&OpenSession, Time)> {
        let guesses = self.with_id(root, id).filter_map(|opening| Some((opening, opening.guessed?)));
        guesses.filter(|(_, at)| since.is_none_or(|since| since < *at)).max_by_key(|(_, at)| *at)
    }

    /// Whether a process has this session open, or may have.
    pub(crate) fn has(&self, root: &Path, id: &str) -> bool {
        self.with_id(root, id).next().is_some()
    }

    /// What was found about a session. A binary search, because every folder is looked up, of which there may be tens of
    /// thousands.
    fn with_id(&self, root: &Path, id: &str) -> impl Iterator<Item = &OpenSession> {
        let from = self.open.partition_point(|opening| opening.opened.id() < Some(id));
        let of_id = self.open[from..].iter().take_while(move |opening| opening.opened.id() == Some(id));
        of_id.filter(move |opening| *opening.root == *root)
    }

    /// The process that has this session open, or may be about to open it.
    pub fn opener(&self, root: &Path, id: &str) -> Option<&OpenSession> {
        self.of(root, id)
            .filter(|opening| !opening.may_be_closed)
            .or_else(|| self.open.iter().find(|opening| opening.root == root && opening.opened == Opened::Some))
    }

    /// The processes that may have a session open, and do not say so: those of which nothing shows what they have open, in
    /// the session's `folder`, above or below, and those that may have opened it since its `last` event.
    pub fn suspects(
        &self,
        root: &Path,
        id: &str,
        folder: Option<&Path>,
        last: Option<Time>,
    ) -> impl Iterator<Item = u32> {
        let guessed = self.guess(root, id, last).map(|(opening, _)| opening.pid);
        guessed.into_iter().chain(self.untold(root, folder, |_| true))
    }

    /// A process that may have a session of this folder open, shows nothing of that, and cannot be asked.
    pub(crate) fn mute(&self, root: &Path, folder: Option<&Path>) -> Option<u32> {
        self.untold(root, folder, |may_answer| !may_answer).next()
    }

    /// The processes of which nothing shows what they have open, in this folder, above or below, of those that may be asked
    /// or may not.
    fn untold(&self, root: &Path, folder: Option<&Path>, counts: impl Fn(bool) -> bool) -> impl Iterator<Item = u32> {
        let is_near = move |theirs: &Option<PathBuf>| match (theirs, folder) {
            (Some(theirs), Some(ours)) if theirs.parent().is_some() => {
                theirs.starts_with(ours) || ours.starts_with(theirs)
            }
            (Some(_), Some(_)) => false,
            _ => true,
        };
        let may_have = move |opening: &&OpenSession| match &opening.opened {
            Opened::Untold { folder, may_answer } => counts(*may_answer) && is_near(folder),
            Opened::Some | Opened::Session(_) => false,
        };
        self.open.iter().filter(move |opening| opening.root == root).filter(may_have).map(|opening| opening.pid)
    }

    /// Removes the sessions of a process that has ended.
    pub fn forget(&mut self, pid: u32) {
        self.open.retain(|opening| opening.pid != pid);
        self.runners.retain(|runner| runner.pid != pid);
    }

    /// The sessions whose entries differ between these and `others`: the folder that holds the sessions, and the
    /// session's id.
    pub fn differing<'a>(&'a self, others: &'a Self) -> HashSet<(&'a Path, &'a str)> {
        let only = |some: &'a Self, others: &'a Self| some.open.iter().filter(|opening| !others.open.contains(opening));
        let both = only(self, others).chain(only(others, self));
        both.filter_map(|opening| Some((&*opening.root, opening.opened.id()?))).collect()
    }
}
