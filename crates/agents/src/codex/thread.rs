//! Reads one thread: who has it loaded, its log, its sub-agents, and what it probably asks.

mod owner;
#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests;

use super::adapter::resume_line;
use super::asking::Asking;
use super::head::{Head, Opening};
use super::lock::Lock;
use super::log_format::LOG_FORMAT;
use super::store;
use super::sub_agents::SubAgents;
use super::target::runs_codex;
use crate::evidence::Evidence;
use crate::reader::SessionReader;
use crate::reading::{ReadStatus, Reading};
use crate::tail::{ReadOutcome, Tail};
use owner::AT_REST;
use pilotlight_core::owner::Owner;
use pilotlight_core::session::{About, Kind, Observed};
use pilotlight_core::time::{Span, Time};
use pilotlight_system::file_times::modified;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The releases that this was tried with.
const TRIED: [&str; 2] = ["0.169.0", "0.171.0"];
/// The originator of `codex exec`.
const EXEC: &str = "codex_exec";
/// The originator of terminals.
const TERMINAL: &str = "codex-tui";

/// A thread, and what was read of it.
#[derive(Debug)]
pub struct Thread {
    root: PathBuf,
    id: Box<str>,
    /// Its log, or where that would be.
    path: PathBuf,
    /// The homes that have its log: its own first, and those that share it.
    homes: Vec<PathBuf>,
    head: Option<Head>,
    /// Its first prompt, which is its title, and its branch.
    opening: Opening,
    tail: Tail,
    lock: Option<Lock>,
    /// The home that the lock is in.
    lock_home: PathBuf,
    /// The process that may run it although nobody holds its lock.
    stray: Option<u32>,
    /// Who has it loaded, as of the last look.
    claim: Option<owner::Claim>,
    /// The last owner that ended, and when.
    departed: Option<Time>,
    /// When it was first seen that its lock is gone.
    closed: Option<Time>,
    sub_agents: SubAgents,
    asking: Asking,
    /// Whether a process runs Codex.
    runs_codex: fn(u32) -> bool,
    /// When to read it again, by the awake clock, even without an event.
    recheck_at: Option<Time>,
}

impl Thread {
    /// A thread that has not been read yet.
    pub(crate) fn new(root: &Path, id: &str, log: PathBuf) -> Self {
        Self {
            root: root.to_owned(),
            id: id.into(),
            path: log,
            homes: Vec::new(),
            head: None,
            opening: Opening::default(),
            tail: Tail::default(),
            lock: None,
            lock_home: root.parent().unwrap_or(root).to_owned(),
            stray: None,
            claim: None,
            departed: None,
            closed: None,
            sub_agents: SubAgents::default(),
            asking: Asking::default(),
            runs_codex,
            recheck_at: None,
        }
    }

    /// The home that it is in.
    fn home(&self) -> &Path {
        self.root.parent().unwrap_or(&self.root)
    }

    /// Reads a thread without a log: nobody has prompted it. It is known only if it has a terminal of its own: of a thread
    /// that the daemon has loaded, nothing tells where it is.
    fn refresh_unprompted(&mut self, reading: &Reading<'_>, observed: &mut Observed) -> io::Result<ReadStatus> {
        self.find_owner(reading, observed);
        let (Some(lock), Owner::Alive { .. }, Some(claim), false) =
            (self.lock, &observed.owner, &self.claim, observed.is_served)
        else {
            return Err(io::ErrorKind::NotFound.into());
        };
        (observed.touched, observed.has_log, observed.unread) = (lock.loaded, false, false);
        observed.about =
            About { cwd: claim.folder.clone(), kind: Kind::Terminal, created: Some(lock.loaded), ..About::default() };
        Ok(ReadStatus::Complete)
    }

    fn read(&mut self, reading: &Reading<'_>, observed: &mut Observed, buffer: &mut Vec<u8>) -> ReadStatus {
        observed.unread = false;
        observed.facts.shut_down = None; // it is ours, and no log's
        self.asking.begin();
        let mut is_partial = self.read_log(reading, observed, buffer);
        let mut asked = Vec::new();
        if let (Some(pid), Some(loaded)) = (observed.owner.live(), self.lock.map(|lock| lock.loaded)) {
            let thread = (&*self.root, &*self.lock_home, &*self.id, loaded);
            is_partial |= self.sub_agents.read(thread, pid, (&mut self.asking, &mut asked), reading.context, buffer);
            asked.extend(self.asking.requests(&observed.facts, pid, None, reading.context.now));
        } else {
            self.sub_agents.clear();
        }
        observed.facts.set_sub_agents(self.sub_agents.known());
        observed.facts.requests = asked;
        self.note_owner(reading, observed);
        let again = self.asking.again_in.map(|span| reading.context.now.awake + span);
        self.recheck_at = self.recheck_at.into_iter().chain(again).min();
        if is_partial { ReadStatus::Partial } else { ReadStatus::Complete }
    }

    /// Reads what is new in the log. Returns whether there is more.
    fn read_log(&mut self, reading: &Reading<'_>, observed: &mut Observed, buffer: &mut Vec<u8>) -> bool {
        let result = reading.log(&mut self.tail, &LOG_FORMAT, &self.path, observed, buffer);
        if let Some(progress) = observed.facts.progress {
            observed.touched = observed.touched.max(progress.wall);
        }
        if self.opening.prompt.is_none() && result.is_ok() {
            self.opening = Opening::read(&self.path);
        }
        observed.about = self.describe(observed.facts.title.as_deref());
        observed.untried =
            self.head.as_ref().map(|head| head.version.clone()).filter(|version| !TRIED.contains(&&**version));
        matches!(result, Ok(ReadOutcome::More))
    }

    /// Describes a thread whose log is packed: it was over for long. What it said is not read.
    fn describe_packed(&mut self, observed: &mut Observed) {
        self.head = self.head.take().or_else(|| Head::read(&self.path));
        if self.opening.prompt.is_none() {
            self.opening = Opening::read(&self.path);
        }
        (observed.owner, observed.unread, observed.allows) = (Owner::Never, true, AT_REST);
        observed.about = self.describe(None);
    }

    /// Its description, with the title that the log has, if it has one.
    fn describe(&self, title: Option<&str>) -> About {
        let Some(head) = &self.head else { return About::default() };
        let kind = match &*head.originator {
            TERMINAL | EXEC => Kind::Terminal,
            // Editors have processes of their own.
            _ => Kind::Sdk,
        };
        About {
            name: title.map(Into::into).or_else(|| self.opening.prompt.clone()),
            cwd: head.cwd.clone(),
            branch: self.opening.branch.clone(),
            kind,
            created: head.created,
        }
    }

    fn recheck_in(&mut self, reading: &Reading<'_>, span: Span) {
        let at = reading.context.now.awake + span;
        self.recheck_at = Some(self.recheck_at.map_or(at, |sooner| sooner.min(at)));
    }
}

impl SessionReader for Thread {
    fn refresh(
        &mut self,
        reading: &Reading<'_>,
        observed: &mut Observed,
        buffer: &mut Vec<u8>,
    ) -> io::Result<ReadStatus> {
        let mut log = fs::symlink_metadata(&self.path);
        if log.is_err() {
            // The first prompt creates it; an archived one is gone.
            self.path = store::path(&self.root, &self.id);
            log = fs::symlink_metadata(&self.path);
        }
        self.find_lock(reading);
        let Ok(meta) = log else { return self.refresh_unprompted(reading, observed) };
        if self.head.is_none() {
            self.head = Head::read(&self.path);
        }
        if self.head.as_ref().is_some_and(|head| head.is_part_of_another(&self.id)) {
            return Err(io::ErrorKind::NotFound.into());
        }
        (observed.touched, observed.has_log) = (modified(&meta), true);
        if store::is_packed(&self.path) {
            self.describe_packed(observed);
            return Ok(ReadStatus::Complete);
        }
        self.find_owner(reading, observed);
        // Where nobody has it open, its log tells whether it was just left in its turn.
        let was_left = || observed.owner == Owner::Never && !store::is_over(&self.path, observed.touched, reading);
        observed.unread = reading.is_history(observed) && !was_left();
        if observed.unread {
            return Ok(ReadStatus::Complete);
        }
        Ok(self.read(reading, observed, buffer))
    }

    fn read_history(&mut self, reading: &Reading<'_>, observed: &mut Observed, buffer: &mut Vec<u8>) -> ReadStatus {
        if store::is_packed(&self.path) {
            self.describe_packed(observed);
            return ReadStatus::Complete;
        }
        self.find_lock(reading);
        self.head = self.head.take().or_else(|| Head::read(&self.path));
        self.find_owner(reading, observed);
        self.read(reading, observed, buffer)
    }

    fn about(&self) -> About {
        let head = self.head.clone().or_else(|| Head::read(&self.path));
        let prompt = self.opening.prompt.clone().or_else(|| Opening::read(&self.path).prompt);
        head.map_or(About::default(), |head| About { name: prompt, cwd: head.cwd, ..About::default() })
    }

    fn forget_log(&mut self) {
        self.tail = Tail::default();
        self.sub_agents.clear();
    }

    fn path(&self) -> &Path {
        &self.path
    }

    fn resume_line(&self) -> Option<String> {
        resume_line(&self.id)
    }

    fn pids(&self) -> Vec<u32> {
        self.claim.as_ref().map(|claim| claim.pid).or(self.stray).into_iter().collect()
    }

    fn owner_recheck_at(&self) -> Option<Time> {
        self.recheck_at
    }

    fn owner_home(&self) -> Option<&Path> {
        Some(&self.lock_home)
    }

    fn evidence(&self, observed: &Observed) -> Option<Arc<dyn Evidence>> {
        Some(Arc::new(self.held(observed)?))
    }

    fn process_ended(&mut self, observed: &mut Observed, pid: u32, at: Time) {
        self.note_end(observed, pid, at);
    }
}
