//! Reads one session: the file of the process that runs it, its log, and those of its sub-agents.

use super::adapter::resume_line;
use super::head::{self, Head, kind};
use super::jobs::{self, Job};
use super::log_format::LOG_FORMAT;
use super::pid_file::{self, Life, Listed, PidFile};
use super::running::{may_run, runs_it};
use super::store;
use super::strays;
use super::sub_agents::SubAgents;
use super::target::{self, Claim};
use crate::claude_code::ClaudeCode;
use crate::evidence::Evidence;
use crate::openings::OpenSessions;
use crate::reader::SessionReader;
use crate::reading::{ReadStatus, Reading};
use crate::runners::{Runner, identity};
use crate::tail::{ReadContext, ReadOutcome, Tail};
use pilotlight_core::limits::Limits;
use pilotlight_core::owner::{Doubt, HoldProof, Owner};
use pilotlight_core::session::{About, Allows, Observed, Supervised};
use pilotlight_core::text::{NAME_MAX, plain};
use pilotlight_core::time::{Moment, Span, Time};
use pilotlight_core::verdict::reported_state::{ReportedState, State, Wait};
use pilotlight_system::file_times::modified;
use pilotlight_system::process::is_stopped;
use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The releases that this was tried with.
const TRIED: [&str; 3] = ["2.1.197", "2.1.330", "2.1.332"];
/// Who says what a session does.
const BY: &str = "its process";
/// After how long a silence of its model Claude Code asks again. Seen with 2.1.330.
const ASKS_AGAIN_AFTER: Span = Span::seconds(300);
/// How long after its file a process may live on: a clean end deletes the file first. Seen: 0.2 s, and 0.6 s until the
/// last line of the log.
const ENDS_WITHIN: Span = Span::seconds(1);
/// How late a change of what a process says of itself may be read.
const SEEN_WITHIN: Span = Span::seconds(2);
/// A prompt this long after the last update of a process's file went to another process: a prompted process updates its file
/// with the prompt, and briefly reports idle even between two turns. Seen: 1.4 s.
const PROMPTED_WITHIN: Span = Span::seconds(5);

/// A session, and what was read of it.
#[derive(Debug)]
pub(crate) struct ClaudeReader {
    home: PathBuf,
    root: PathBuf,
    id: Box<str>,
    log: PathBuf,
    /// The homes that have its log: its own, and those that share it.
    homes: Vec<PathBuf>,
    /// The process, with its start, whose claim to the session other evidence confirmed.
    shown: Option<(u32, Option<Box<str>>)>,
    tail: Tail,
    sub_agents: SubAgents,
    /// What its processes last said of themselves.
    files: Vec<PidFile>,
    /// Processes of its home whose file cannot be read.
    unreadable: Vec<u32>,
    /// Those of them that run, or did when they were last heard of.
    live: Vec<u32>,
    /// Those of them that run in a container, by their ids here.
    contained: Vec<u32>,
    /// The file by which it is known who runs it, or did.
    last: Option<PidFile>,
    /// When the process of that file was seen to have ended while its file was still there: it was killed.
    killed: Option<Option<Time>>,
    /// When that file was found missing while its process lived, by the awake clock.
    missed: Option<Time>,
    /// When its process was seen to end, by the wall clock.
    exited: Option<Time>,
    /// What its log's beginning says.
    head: Option<Head>,
    recheck_at: Option<Time>,
}

impl ClaudeReader {
    pub(crate) fn new(home: &Path, root: &Path, id: &str, log: PathBuf) -> Self {
        Self {
            home: home.to_owned(),
            root: root.to_owned(),
            id: id.into(),
            log,
            homes: vec![home.to_owned()],
            shown: None,
            tail: Tail::default(),
            sub_agents: SubAgents::default(),
            files: Vec::new(),
            unreadable: Vec::new(),
            live: Vec::new(),
            contained: Vec::new(),
            last: None,
            killed: None,
            missed: None,
            exited: None,
            head: None,
            recheck_at: None,
        }
    }

    fn read_log(&mut self, reading: &Reading<'_>, observed: &mut Observed, buffer: &mut Vec<u8>) -> ReadStatus {
        // Its log has none. Those that its bridge reports are not the log's.
        observed.facts.requests.clear();
        let result = reading.log(&mut self.tail, &LOG_FORMAT, &self.log, observed, buffer);
        let is_cut = self.sub_agents.refresh(&self.log, reading, buffer);
        observed.facts.set_sub_agents(self.sub_agents.known());
        if is_cut || matches!(result, Ok(ReadOutcome::More)) { ReadStatus::Partial } else { ReadStatus::Complete }
    }

    /// Reads what its processes say of themselves. The file by which it is known who runs it is tried once more: it may have
    /// been in the middle of being written. While it cannot be read, what it said last holds.
    ///
    /// # Errors
    /// Where their folder cannot be listed.
    fn read_files(&mut self) -> io::Result<()> {
        let is_its = |file: &PidFile| *file.session == *self.id;
        let (mut listed, error) = match pid_file::list(&self.home) {
            Ok(listed) => (listed, None),
            Err(error) => (Listed::default(), Some(error)),
        };
        // What another home does not show is not known there either.
        // Two paths may lead to the same files.
        let folder = |home: &Path| identity(&home.join(pid_file::FOLDER));
        let mut seen = vec![folder(&self.home)];
        for home in self.homes.iter().filter(|home| **home != self.home) {
            let its = folder(home);
            if !seen.contains(&its) {
                listed.files.extend(pid_file::all(home));
                seen.push(its);
            }
        }
        let mut files: Vec<_> = listed.files.into_iter().filter(is_its).collect();
        let unread = self.last.as_ref().filter(|last| files.iter().all(|file| file.pid != last.pid));
        files.extend(unread.and_then(|last| pid_file::read(&last.home, last.pid)).filter(is_its));
        let is_cut =
            |last: &&PidFile| files.iter().all(|file| file.pid != last.pid) && listed.unreadable.contains(&last.pid);
        let kept = self.last.as_ref().filter(is_cut).cloned();
        files.extend(kept);
        (self.files, self.unreadable) = (files, listed.unreadable);
        error.map_or(Ok(()), Err)
    }

    /// Finds out who runs it, by the files of its processes. Of two that live, the one that waits for its user counts,
    /// else the one that works.
    fn find_owner(&mut self, observed: &mut Observed, reading: &Reading<'_>) {
        let now = reading.context.now;
        self.recheck_at = None;
        let mut lives: Vec<_> = self.files.iter().map(|file| (self.life(file, now.wall), file)).collect();
        lives.retain(|(life, file)| *life != Life::Dead || !self.is_outdated(file, observed));
        let weight = |life: Life, file: &PidFile| {
            let state = match file.state {
                // Of those that were killed, the last one left what is there.
                _ if life == Life::Dead => 0,
                Some(State::Waiting(_)) => 3,
                Some(State::Busy) => 2,
                Some(State::Idle { .. } | State::Ended) => 1,
                None => 0,
            };
            (matches!(life, Life::Alive), matches!(life, Life::Unknown), state, file.since)
        };
        lives.sort_by_key(|(life, file)| weight(*life, file));
        observed.holders = lives.iter().filter(|(life, _)| *life != Life::Dead).map(|(_, file)| file.pid).collect();
        observed.contested = lives.iter().filter(|(life, _)| *life == Life::Alive).count() > 1;
        let alive = lives.iter().filter(|(life, _)| *life == Life::Alive).map(|(_, file)| file.pid);
        if !lives.is_empty() {
            // The end of a process in a container is known by its id here.
            let contained = |(_, file): &&(Life, &PidFile)| {
                file.is_elsewhere() && !self.contained.iter().any(|pid| file.is_by(*pid))
            };
            let contained = lives.iter().filter(|(life, _)| *life == Life::Unknown).filter(contained);
            let contained: Vec<_> = contained.filter_map(|(_, file)| file.contained().flatten()).collect();
            self.live = alive.collect();
            self.contained.extend(contained);
            self.live.extend(&self.contained);
        }
        if let Some((life, file)) = lives.pop() {
            let file = file.clone();
            let is_known = self.last.as_ref().is_some_and(|last| last.is_same_process(&file));
            if !is_known {
                (self.killed, self.exited) = (None, None);
            }
            self.missed = None;
            (observed.held, observed.owner) = match life {
                Life::Alive => (self.held(&file, now.wall), Owner::Alive { pid: file.pid, started: file.started }),
                Life::Unknown => (HoldProof::Unverified, Owner::Unknown { pid: file.pid }),
                Life::Dead => {
                    self.killed = Some(self.exited);
                    (HoldProof::Unverified, Owner::Gone { pid: file.pid, at: self.exited })
                }
            };
            observed.is_stopped = life == Life::Alive && is_stopped(file.pid);
            observed.is_foreign = life == Life::Alive && !runs_it(file.pid, &file.home);
            self.last = Some(file);
            if life == Life::Dead {
                self.doubt(observed, reading);
            }
            return;
        }
        observed.is_stopped = false;
        observed.owner = self.former_owner(now, observed);
        self.doubt(observed, reading);
        // A command that looks once reads again what is being written.
        let is_doubtful = matches!(observed.owner, Owner::Doubtful { .. });
        let is_pending = self.last.is_none() && self.recheck_at.is_some() && !is_doubtful;
        observed.held = if is_pending { HoldProof::Pending } else { HoldProof::Unverified };
    }

    /// Whether the process of a file still runs. One in a container is not searched for again while it is there.
    fn life(&self, file: &PidFile, now: Time) -> Life {
        if self.contained.iter().any(|pid| file.is_by(*pid)) { Life::Unknown } else { file.life(now) }
    }

    /// Whether another process has run the session since the one that left this file was killed. A file is only cleared
    /// away by a terminal that starts, and not everywhere: it may outlive a later process, which ends cleanly.
    fn is_outdated(&self, file: &PidFile, observed: &Observed) -> bool {
        // Its supervisor started another one, or none, and was told to stop that.
        if file.is_background && jobs::of(&self.home, &self.id).is_some_and(|job| job.is_stopped()) {
            return true;
        }
        let Some(since) = file.since else { return false };
        let later = |last: &PidFile| !last.is_same_process(file) && last.started.is_some_and(|at| at > since);
        let prompted = observed.facts.marks.prompt.map(|prompt| prompt.at);
        // One that says nothing of what it does says nothing of its prompts either.
        let by_another = file.state.is_some() && prompted.is_some_and(|at| at - since > PROMPTED_WITHIN);
        by_another || self.last.as_ref().is_some_and(later)
    }

    /// Finds the homes that have its log: their processes may run it, too.
    fn find_homes(&mut self, openings: &OpenSessions) {
        self.homes = openings.homes_with(&ClaudeCode, (&self.home, &self.root), &self.log);
        // One that ended left its file where it was.
        let known = self.last.as_ref().map(|last| last.home.clone());
        self.homes.extend(known.filter(|home| !self.homes.contains(home)));
    }

    /// How well it is established that the process of this file runs it: whether more than the file shows that.
    fn held(&mut self, file: &PidFile, now: Time) -> HoldProof {
        let process = (file.pid, file.start.clone());
        if self.shown.as_ref() != Some(&process) {
            self.shown = target::is_shown(file, &self.log, now).then_some(process);
        }
        if self.shown.is_some() { HoldProof::Verified } else { HoldProof::Unverified }
    }

    /// Sets the owner to [`Owner::Doubtful`] if a process may run the session although no file names it.
    fn doubt(&mut self, observed: &mut Observed, reading: &Reading<'_>) {
        let now = reading.context.now;
        // Its file is gone, and yet its process has not ended within the time that this takes.
        let is_missed =
            matches!(observed.owner, Owner::Unknown { .. }) && self.last.is_some() && self.recheck_at.is_none();
        if !is_missed && !matches!(observed.owner, Owner::Never | Owner::Gone { .. }) {
            return;
        }
        let Some(touched) = fs::symlink_metadata(&self.log).ok().as_ref().map(modified) else { return };
        // What a file says of a process that was killed stands, unless a later one goes on with its session.
        let killed = self.last.as_ref().filter(|_| self.killed.is_some());
        let is_later = |runner: &&Runner| killed.is_none_or(|last| last.since.is_some_and(|at| runner.started > at));
        let runners = reading.openings.runners(&ClaudeCode).filter(is_later);
        let its = (&*self.root, &*self.log, &*self.id);
        if let Some((pid, why)) = strays::find(runners, its, touched, &self.homes, now.wall) {
            self.live = vec![pid];
            return observed.owner = Owner::Doubtful { pid, why };
        }
        if killed.is_some() || is_missed {
            return;
        }
        // Its last process writes to the end.
        let is_later = self.exited.is_none_or(|at| touched > at + ENDS_WITHIN);
        if let Some(rests_at) = reading.rests_at(touched).filter(|_| is_later) {
            self.recheck_at = self.recheck_at.into_iter().chain([rests_at]).min();
            observed.owner = Owner::Doubtful { pid: Owner::UNNAMED, why: Doubt::Growing };
        }
    }

    /// Who ran it, if no file says that anybody does.
    fn former_owner(&mut self, now: Moment, observed: &Observed) -> Owner {
        if self.last.as_ref().is_some_and(|last| self.killed.is_some() && self.is_outdated(last, observed)) {
            (self.last, self.killed, self.exited) = (None, None, None);
        }
        let Some(last) = &self.last else { return self.unnamed_owner(now) };
        let pid = last.pid;
        if self.killed.is_some() {
            return Owner::Gone { pid, at: self.exited };
        }
        // Nothing names the process that ended: who comes later does not know it either.
        if last.life(now.wall) == Life::Dead {
            return Owner::Never;
        }
        // It runs another session by now.
        if pid_file::read(&last.home, pid).is_some_and(|file| *file.session != *self.id) {
            self.live.clear();
            self.last = None;
            return Owner::Never;
        }
        let missed = *self.missed.get_or_insert(now.awake);
        self.recheck_at = Some(missed + ENDS_WITHIN).filter(|at| *at > now.awake);
        // It is about to end. Should it not, it is not known what it does.
        Owner::Unknown { pid }
    }

    /// The possible owner among processes with unreadable files: one that was alive when the log was last written.
    fn unnamed_owner(&mut self, now: Moment) -> Owner {
        let Some(touched) = fs::symlink_metadata(&self.log).ok().as_ref().map(modified) else { return Owner::Never };
        let pid = may_run(&self.home, &self.unreadable, now.wall).find(|may| may.since <= touched).map(|may| may.pid);
        self.live = pid.into_iter().collect();
        let Some(pid) = pid else { return Owner::Never };
        let missed = *self.missed.get_or_insert(now.awake);
        self.recheck_at = Some(missed + ENDS_WITHIN).filter(|at| *at > now.awake);
        Owner::Unknown { pid }
    }

    /// Whether nobody runs it any more, and nobody was killed.
    fn has_ended(&self, observed: &Observed) -> bool {
        match observed.owner {
            Owner::Never => true,
            Owner::Gone { .. } => self.killed.is_none(),
            Owner::Alive { .. }
            | Owner::Opened { .. }
            | Owner::Unheld { .. }
            | Owner::Unknown { .. }
            | Owner::Doubtful { .. } => false,
        }
    }

    /// Sets what the file of its process says that it does.
    fn state(&mut self, observed: &mut Observed, now: Moment) {
        let job = jobs::of(&self.home, &self.id);
        observed.supervised = self.supervised(job.as_ref());
        let state = match &self.last {
            _ if self.has_ended(observed) => Some(State::Ended),
            // Whoever runs it now, it is not the process of that file.
            _ if matches!(observed.owner, Owner::Doubtful { .. }) => None,
            Some(last) => last.state.or_else(|| is_fresh(last, observed).then_some(State::Idle { shell: false })),
            None => None,
        };
        let Some(state) = state else { return observed.reported_state = None };
        // Not every end of a background shell is in the log. Its process knows whether one runs.
        if matches!(state, State::Idle { shell: false } | State::Ended) {
            observed.facts.shells.clear();
        }
        let wall = match state {
            State::Ended => self.exited.or(self.missed.map(|at| now.wall - (now.awake - at))),
            _ => self.last.as_ref().and_then(|last| last.since.or(last.started)),
        };
        let wall = wall.or(observed.facts.progress.map(|last| last.wall)).unwrap_or(observed.touched).min(now.wall);
        // On a busy machine a change is read late: that it came to rest counts from when it was seen, so that the end of
        // a step of a turn is not taken for that of the turn.
        let changes = observed.reported_state.as_ref().is_some_and(|reported_state| reported_state.state != state);
        let is_seen = changes && matches!(state, State::Idle { .. }) && now.wall - wall < SEEN_WITHIN;
        let wall = if is_seen { now.wall } else { wall };
        // A time that was known before keeps its place on the awake clock.
        let is_same = |since: Moment| since.wall >= wall && since.wall - wall < SEEN_WITHIN;
        let known = observed
            .reported_state
            .as_ref()
            .filter(|reported_state| reported_state.state == state && is_same(reported_state.since));
        let since =
            known.map_or(Moment { wall, awake: now.awake - (now.wall - wall) }, |reported_state| reported_state.since);
        let root_waits = observed.facts.turn.as_ref().is_some_and(|turn| !turn.tools.is_empty());
        let asks = match state {
            State::Waiting(Wait::Permission | Wait::Input | Wait::Dialog) => {
                let needs = job.and_then(|job| job.asks());
                needs.or_else(|| self.sub_agents.asks().filter(|_| !root_waits))
            }
            State::Busy | State::Idle { .. } | State::Ended => None,
        };
        observed.reported_state = Some(ReportedState { state, since, by: BY.into(), waiting_tool: asks });
    }

    /// How its user reaches it, if a supervisor runs it.
    fn supervised(&self, job: Option<&Job>) -> Option<Supervised> {
        let runs = self.files.iter().any(|file| file.is_background) || job.is_some_and(Job::is_kept);
        let id = jobs::short(&self.id);
        runs.then(|| Supervised {
            attach: format!("claude attach {id}").into(),
            stop: format!("claude stop {id}").into(),
        })
    }

    /// Describes it, by the file of its process, or else by the beginning of its log.
    fn describe(&mut self, observed: &mut Observed) {
        if self.head.is_none() && observed.has_log {
            self.head = head::read(&self.log);
        }
        let head = self.head.clone().unwrap_or_default();
        let last = self.last.as_ref();
        let name = last.and_then(|last| last.name.clone()).or_else(|| observed.facts.title.clone());
        observed.about = About {
            name: name.map(|name| plain(&name, NAME_MAX)),
            cwd: last.and_then(|last| last.cwd.clone()).or(head.cwd),
            branch: None,
            kind: last.and_then(|last| last.entrypoint.as_deref()).map_or(head.kind, kind),
            created: head.created.or_else(|| last?.started),
        };
        observed.pane = last.filter(|_| observed.owner.live().is_some()).and_then(|last| last.pane.clone());
        let version = last.and_then(|last| last.version.as_deref()).filter(|version| !TRIED.contains(version));
        observed.untried = version.map(|version| plain(version, NAME_MAX));
    }

    /// What shows that its owner runs it.
    pub(crate) fn claim(&self, observed: &Observed) -> Option<Claim> {
        let pid = observed.owner.live()?;
        Some(Claim::new(self.files.iter().find(|file| file.pid == pid)?))
    }
}

impl SessionReader for ClaudeReader {
    fn refresh(
        &mut self,
        reading: &Reading<'_>,
        observed: &mut Observed,
        buffer: &mut Vec<u8>,
    ) -> io::Result<ReadStatus> {
        let now = reading.context.now;
        let mut log = fs::symlink_metadata(&self.log).ok();
        if log.is_none() {
            self.log = store::path(&self.home, &self.root, &self.id);
            log = fs::symlink_metadata(&self.log).ok();
        }
        self.find_homes(reading.openings);
        let unlisted = self.read_files().err();
        self.find_owner(observed, reading);
        if unlisted.is_some() {
            observed.owner = Owner::Unknown { pid: Owner::UNNAMED };
        }
        let is_run = match observed.owner {
            Owner::Never | Owner::Gone { .. } => !self.files.is_empty(),
            // Its file is gone, and it is about to end. Should it not, nothing is left of the session.
            Owner::Unknown { .. } | Owner::Doubtful { .. } => !self.files.is_empty() || self.recheck_at.is_some(),
            Owner::Alive { .. } | Owner::Opened { .. } | Owner::Unheld { .. } => true,
        };
        if log.is_none() && !is_run {
            self.state(observed, now);
            return Err(io::ErrorKind::NotFound.into());
        }
        observed.allows = Allows::Process;
        observed.asks_again_after = Some(ASKS_AGAIN_AFTER);
        observed.has_log = log.is_some();
        observed.touched = log.as_ref().map_or(observed.touched, modified);
        let may_be_run = matches!(observed.owner, Owner::Unknown { .. } | Owner::Doubtful { .. });
        let is_unclear = self.last.is_none() && unlisted.is_none() && may_be_run;
        // Not `Reading::is_history`: an old session is history even where its owner is unknown or gone.
        observed.unread = self.last.is_none()
            && !is_unclear
            && observed.facts.progress.is_none()
            && !reading.all
            && reading.is_past(observed.touched);
        if observed.unread {
            return Ok(ReadStatus::Complete);
        }
        let status = self.read_log(reading, observed, buffer);
        // The log may say that another process went on after the one that was killed.
        if self.last.as_ref().is_some_and(|last| self.killed.is_some() && self.is_outdated(last, observed)) {
            self.find_owner(observed, reading);
        }
        self.describe(observed);
        self.state(observed, now);
        if let Some(error) = unlisted {
            let folder = self.home.join(pid_file::FOLDER);
            observed.problem =
                Some(format!("who runs it is not known, as {} cannot be listed: {error}", folder.display()).into());
        }
        if let Owner::Unknown { pid } = observed.owner
            && is_unclear
            && pid != Owner::UNNAMED
        {
            let file = pid_file::path(&self.home, pid);
            observed.problem = Some(format!("who runs it is not known, as {} cannot be read", file.display()).into());
        }
        Ok(status)
    }

    fn read_history(&mut self, reading: &Reading<'_>, observed: &mut Observed, buffer: &mut Vec<u8>) -> ReadStatus {
        (observed.unread, observed.allows) = (false, Allows::Process);
        let status = self.read_log(reading, observed, buffer);
        self.describe(observed);
        self.state(observed, reading.context.now);
        status
    }

    fn about(&self) -> About {
        let head = head::read(&self.log).unwrap_or_default();
        About { cwd: head.cwd, kind: head.kind, created: head.created, ..About::default() }
    }

    fn forget_log(&mut self) {
        (self.tail, self.sub_agents) = (Tail::default(), SubAgents::default());
    }

    fn folders(&self) -> Vec<PathBuf> {
        self.sub_agents.folders(&self.log)
    }

    fn resume_line(&self) -> Option<String> {
        resume_line(&self.id)
    }

    fn process_ended(&mut self, observed: &mut Observed, pid: u32, at: Time) {
        self.live.retain(|live| *live != pid);
        self.contained.retain(|contained| *contained != pid);
        let Some(last) = self.last.as_ref().filter(|last| last.pid == pid) else { return };
        self.exited = Some(at);
        // A clean end deletes the file first.
        let is_left = pid_file::read(&last.home, pid).is_some_and(|file| file.is_same_process(last));
        if is_left || pid_file::is_unreadable(&last.home, pid) {
            self.killed = Some(Some(at));
        }
        if observed.owner.pid() == Some(pid) {
            observed.owner = Owner::Gone { pid, at: Some(at) };
        }
    }

    fn path(&self) -> &Path {
        &self.log
    }

    fn pids(&self) -> Vec<u32> {
        self.live.clone()
    }

    fn owner_recheck_at(&self) -> Option<Time> {
        self.recheck_at
    }

    fn evidence(&self, observed: &Observed) -> Option<Arc<dyn Evidence>> {
        Some(Arc::new(self.claim(observed)?))
    }
}

/// Whether a process has not been given a prompt yet: it says nothing of what it does for up to 3 s after its start, and
/// whatever the log has open was left by another.
fn is_fresh(file: &PidFile, observed: &Observed) -> bool {
    let last = observed.facts.progress.map(|last| last.wall);
    file.started.is_some_and(|started| last.is_none_or(|last| last < started))
}

/// Who runs a session now, determined from scratch.
pub(crate) fn owner_now(home: &Path, root: &Path, id: &str, now: Time) -> Owner {
    let mut observed = Observed::default();
    let mut session = ClaudeReader::new(home, root, id, store::path(home, root, id));
    if session.read_files().is_err() {
        return Owner::Unknown { pid: Owner::UNNAMED };
    }
    let (limits, known) = (Limits::default(), HashSet::new());
    let reading = Reading {
        context: ReadContext { now: Moment { wall: now, awake: now }, limits: &limits, until: None },
        owner_names: &[],
        known: &known,
        openings: OpenSessions::NONE,
        all: false,
    };
    session.find_owner(&mut observed, &reading);
    observed.owner
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests;
