//! Sessions that were resumed a moment ago: they must not be resumed again before their new owner appears.

use crate::ledger::{Ledger, Page, Section};
use pilotlight_core::session::Key;
use pilotlight_core::time::{Moment, Span, Time};
use pilotlight_system::process::{PidStatus, SLACK, read};
use serde::{Deserialize, Serialize};
use std::collections::HashSet;

/// How long a resume of ours keeps others from resuming the session, unless its new owner appears earlier.
pub(crate) const RESUME_TIMEOUT: Span = Span::seconds(60);

/// The record on a session's page that it was resumed. Copilot shows no sign of that for the first half second, and a
/// terminal may take long to open. Removed when the new owner appears, and when the resume failed.
#[derive(Serialize, Deserialize)]
pub(crate) struct ResumeRecord {
    /// When, by the wall clock, in milliseconds since 1970.
    pub(crate) at: i64,
    /// The process with which the resume ends: ours, until it has opened a terminal, which outlives it. A server of our
    /// own does not.
    #[serde(default)]
    pub(crate) by: Option<Resumer>,
}

/// A process, told apart from others with its id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Resumer {
    pid: u32,
    /// When it started, by the wall clock, in milliseconds since 1970.
    started: i64,
}

impl Resumer {
    /// This process. `None` if the system does not show when it started.
    pub(crate) fn ours(now: Time) -> Option<Self> {
        let pid = std::process::id();
        match read(pid, now) {
            PidStatus::Process { started: Some(started), .. } => Some(Self { pid, started: started.0 }),
            _ => None,
        }
    }

    fn has_ended(&self, now: Time) -> bool {
        match read(self.pid, now) {
            PidStatus::Absent => true,
            PidStatus::Process { started: Some(started), .. } => {
                started.0.abs_diff(self.started) > SLACK.0.unsigned_abs()
            }
            PidStatus::Hidden | PidStatus::Process { started: None, .. } => false,
        }
    }
}

impl Section for ResumeRecord {
    const NAME: &'static str = "resumed";
}

impl ResumeRecord {
    /// How long ago that was. `None` if the record no longer counts: it is too old, from the future because the clock
    /// was set back, or its process has ended.
    pub(crate) fn age(&self, now: Time) -> Option<Span> {
        let age = now.0.checked_sub(self.at).map(Span).filter(|_| self.by.is_none_or(|by| !by.has_ended(now)))?;
        (Span::ZERO..RESUME_TIMEOUT).contains(&age).then(|| Span(age.0 - age.0 % 1000))
    }
}

struct RecentResume {
    id: Box<str>,
    /// The key of its page.
    page: Box<str>,
    /// When, by the wall clock.
    at: Time,
    /// The process with whose exit the resume is over.
    by: Option<u32>,
}

/// The sessions that were resumed recently.
#[derive(Default)]
pub(crate) struct RecentResumes {
    /// Those that any process of ours resumed recently.
    recent: Vec<RecentResume>,
    /// When, by the awake clock, the first of them no longer counts.
    until: Option<Time>,
    /// Those that this process resumed and whose new owner has not appeared yet.
    pub(crate) awaited: HashSet<Key>,
}

impl RecentResumes {
    /// Reads which sessions any process of ours resumed recently, and whose new owner has not appeared yet.
    pub(crate) fn refresh(&mut self, ledger: &Ledger, now: Moment) {
        let pages = ledger.written_since::<ResumeRecord>(now.wall - RESUME_TIMEOUT).into_iter();
        let valid = pages.filter(|(_, _, resumed)| resumed.age(now.wall).is_some());
        let resume = |(page, id, resumed): (Box<str>, Box<str>, ResumeRecord)| RecentResume {
            id,
            page,
            at: Time(resumed.at),
            by: resumed.by.map(|by| by.pid),
        };
        self.recent = valid.map(resume).collect();
        self.until = self.recent.iter().map(|resumed| now.awake + (RESUME_TIMEOUT - (now.wall - resumed.at))).min();
    }

    /// The processes with whose exit a resume is over.
    pub(crate) fn resumers(&self) -> impl Iterator<Item = u32> {
        self.recent.iter().filter_map(|resumed| resumed.by)
    }

    /// When the first of them no longer counts, by the awake clock.
    pub(crate) const fn until(&self) -> Option<Time> {
        self.until
    }

    /// When the session with this id and page was resumed, if that was recently.
    pub(crate) fn at(&self, id: &str, page: impl FnOnce() -> Page) -> Option<Time> {
        let mut named = self.recent.iter().filter(|resumed| *resumed.id == *id).peekable();
        named.peek()?;
        let page = page();
        named.find(|resumed| *resumed.page == *page.key()).map(|resumed| resumed.at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pilotlight_system::clock::Clock;

    #[test]
    fn case_117_a_record_counts_for_a_minute_and_never_for_ever() {
        let resumed = ResumeRecord { at: 1_000_000, by: None };
        for (now, age) in [(1_000_000, Some(0)), (1_002_900, Some(2)), (1_059_999, Some(59)), (1_060_000, None)] {
            assert_eq!(resumed.age(Time(now)), age.map(Span::seconds), "{now}");
        }
        assert_eq!(resumed.age(Time(999_999)), None, "from the future");
        for at in [i64::MIN, i64::MAX] {
            assert_eq!(ResumeRecord { at, by: None }.age(Time(5)), None);
        }
    }

    #[test]
    fn case_182_a_record_ends_with_the_process_that_it_names() {
        let now = Clock::start().now().wall;
        let ours = Resumer::ours(now).unwrap();
        let age = |by| ResumeRecord { at: now.0, by: Some(by) }.age(now);
        assert_eq!(age(ours), Some(Span::ZERO));
        let ended = Resumer { pid: pilotlight_system::process::testing::ended(), ..ours };
        assert_eq!(age(ended), None);
        assert_eq!(age(Resumer { started: ours.started - 3000, ..ours }), None, "another process has its id");
    }
}
