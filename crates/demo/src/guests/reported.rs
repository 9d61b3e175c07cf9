//! A session in a demo whose agent's hook reports it.

use super::guest::{Act, Guest, Part, Post};
use crate::STATE;
use pilotlight_agents::reported::{Process, Report, Reported, State, put};
use pilotlight_core::time::Time;
use std::fs;

/// What a demo has of it. Its home is the demo's own folder for state, where reports are put and read.
pub(crate) const PART: Part = Part {
    adapter: &Reported,
    home: STATE,
    make_home: |home, _| fs::create_dir_all(home),
    guest: |post| Box::new(Scripted { post, pid: 0 }),
    // That it lives is all.
    hold: |_, _| Ok(Box::new(|| {})),
    ends_by_signals: false,
    resumes_with: None,
};

/// The agent.
const AGENT: &str = "opencode";
/// Nanoseconds in a millisecond.
const MILLISECOND: i64 = 1_000_000;

/// The session.
struct Scripted {
    post: Post,
    /// The process that runs it.
    pid: u32,
}

impl Guest for Scripted {
    fn is_taken(&self, _now: Time) -> bool {
        false
    }

    fn enter(&mut self, pid: u32, now: Time) -> anyhow::Result<()> {
        self.pid = pid;
        self.report(State::Idle, None, now)
    }

    fn act(&mut self, act: Act, now: Time) -> anyhow::Result<()> {
        match act {
            Act::Enter => Ok(()),
            Act::Prompt(_) | Act::Done => self.report(State::Working, None, now),
            Act::Runs(what) => self.report(State::Working, Some(what), now),
            Act::Asks(what) => self.report(State::Blocked, Some(what), now),
            Act::Says(_) => self.report(State::Idle, None, now),
        }
    }
}

impl Scripted {
    /// Reports, as its hook would.
    fn report(&self, state: State, reason: Option<&str>, now: Time) -> anyhow::Result<()> {
        let report = Report {
            agent: AGENT.into(),
            session: self.post.id.clone(),
            state,
            reason: reason.map(Into::into),
            title: Some(self.post.title.into()),
            cwd: Some(self.post.work.to_string_lossy().into()),
            here: None,
            at: now.0.saturating_mul(MILLISECOND),
            process: Process::of(self.pid),
        };
        put(&[self.post.home.folder().to_owned()], &report, || report.at)
    }
}
