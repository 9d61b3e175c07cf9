//! All sessions at a glance: which need the user, in which order, under which mark, and what that comes to.
//!
//! Icon, tooltip, menu, tables and bars ask here and nowhere else, so that none of them contradicts another.

use super::Row;
use crate::core::time::Time;
use crate::core::verdict::Status;
use std::fmt;

/// Where a session belongs, what needs the user first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Group {
    /// It needs the user.
    NeedsYou,
    /// It is silent for long, but not beyond doubt.
    Quiet,
    /// It works.
    Working,
    /// It failed, crashed or lost its permissions, and the user has seen that.
    Aside,
    /// It rests.
    Idle,
    /// It is over.
    Ended,
}

/// What all sessions together come to: the shape and colour of the icon.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// Nothing is going on, or nothing that wants anything.
    Well,
    /// At least one session works.
    Working,
    /// A session waits for the user.
    NeedsYou,
    /// A session is stuck, crashed or failed, and none waits for the user.
    Trouble,
}

/// What all sessions together come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Glance {
    /// The icon's state.
    pub state: State,
    /// How many need the user.
    pub need_you: usize,
    /// How many are silent for long.
    pub quiet: usize,
    /// How many work.
    pub working: usize,
    /// How many the user has left as they are.
    pub aside: usize,
    /// How many rest.
    pub idle: usize,
    /// How many came to rest, or asked, since the user last looked.
    pub unseen: usize,
}

impl Row {
    /// Where it belongs.
    pub(crate) const fn group(&self) -> Group {
        match self.status {
            _ if self.looked_at && self.is_put_aside_when_seen() => Group::Aside,
            Status::NeedsPermission
            | Status::NeedsInput
            | Status::PermissionLost
            | Status::Stuck
            | Status::Crashed
            | Status::Failed => Group::NeedsYou,
            Status::Quiet => Group::Quiet,
            Status::Working | Status::Finishing => Group::Working,
            Status::Idle => Group::Idle,
            Status::Ended => Group::Ended,
        }
    }

    /// Whether the user's look is all that it wants: it keeps its status, and no longer needs the user.
    pub(crate) const fn is_put_aside_when_seen(&self) -> bool {
        matches!(self.status, Status::Failed | Status::Crashed | Status::PermissionLost)
    }

    /// Whether it needs the user: what failed, crashed or lost its permissions does until it was looked at, the rest for as
    /// long as it lasts.
    pub const fn needs_you(&self) -> bool {
        matches!(self.group(), Group::NeedsYou)
    }

    /// Where it stands among others: what needs the user first, by how much and then by how long it waits; then the latest
    /// change first.
    pub(crate) fn place(&self) -> impl Ord + use<'_> {
        let group = self.group();
        let since = if group == Group::NeedsYou { self.since } else { Time(-self.since.0) };
        (group, if group == Group::NeedsYou { rank(self.status) } else { 0 }, since, &self.id)
    }
}

impl Glance {
    /// That of these sessions.
    pub fn of<'a>(rows: impl Iterator<Item = &'a Row>) -> Self {
        let mut glance = Self { state: State::Well, need_you: 0, quiet: 0, working: 0, aside: 0, idle: 0, unseen: 0 };
        let mut first: Option<Status> = None;
        for row in rows {
            glance.unseen += usize::from(row.unseen);
            let count = match row.group() {
                Group::NeedsYou => {
                    if first.is_none_or(|first| rank(row.status) < rank(first)) {
                        first = Some(row.status);
                    }
                    &mut glance.need_you
                }
                Group::Quiet => &mut glance.quiet,
                Group::Working => &mut glance.working,
                Group::Aside => &mut glance.aside,
                Group::Idle => &mut glance.idle,
                Group::Ended => continue,
            };
            *count += 1;
        }
        glance.state = match first {
            Some(Status::Stuck | Status::Crashed | Status::Failed) => State::Trouble,
            Some(_) => State::NeedsYou,
            None if glance.working + glance.quiet > 0 => State::Working,
            None => State::Well,
        };
        glance
    }
}

/// `4 need you · 3 working · 5 idle`.
impl fmt::Display for Glance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let need = if self.need_you == 1 { "needs you" } else { "need you" };
        let counts = [
            (self.need_you, need),
            (self.quiet, "quiet"),
            (self.working, "working"),
            (self.aside, "set aside"),
            (self.idle, "idle"),
        ];
        let parts: Vec<_> = counts.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}")).collect();
        f.write_str(&if parts.is_empty() { "no session is open".into() } else { parts.join(" · ") })
    }
}

/// How much a status needs the user; the less the more.
const fn rank(status: Status) -> u8 {
    match status {
        Status::NeedsPermission => 0,
        Status::NeedsInput => 1,
        Status::PermissionLost => 2,
        Status::Stuck => 3,
        Status::Crashed => 4,
        Status::Failed => 5,
        Status::Quiet | Status::Working | Status::Finishing | Status::Idle | Status::Ended => 6,
    }
}

/// The mark of a status, which tells it without colour: in Unicode, and in ASCII.
pub const fn mark(status: Status) -> (&'static str, &'static str) {
    match status {
        Status::NeedsPermission => ("⚑", "!"),
        Status::NeedsInput => ("?", "?"),
        Status::PermissionLost => ("⊘", "0"),
        Status::Stuck => ("◷", "@"),
        Status::Crashed => ("╳", "X"),
        Status::Failed => ("✗", "x"),
        Status::Quiet => ("◌", "."),
        Status::Working => ("▶", ">"),
        Status::Finishing => ("▷", ">"),
        Status::Idle => ("✓", "-"),
        Status::Ended => ("○", "o"),
    }
}

/// Sorts for showing.
pub fn sort(rows: &mut [Row]) {
    rows.sort_by(|a, b| a.place().cmp(&b.place()));
}

/// Leaves of the ended sessions only those that ended after `earliest`, and of these the last `most`. Sorts.
pub fn shorten(rows: &mut Vec<Row>, earliest: Time, most: usize) {
    sort(rows);
    let mut ended = 0;
    rows.retain(|row| {
        ended += usize::from(row.status == Status::Ended);
        row.status != Status::Ended || row.since >= earliest && ended <= most
    });
}
