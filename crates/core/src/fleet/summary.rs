//! All sessions at a glance: which of them need the user, their order and marks, and the overall state.
//!
//! Icon, tooltip, menu, tables and status bars all use this module, so that none of them contradicts another.

use super::row::Row;
use crate::text::counted;
use crate::time::Time;
use crate::verdict::status::{Group, Phase, Remedy, Status};
use std::borrow::Borrow;
use std::fmt;
use unicode_width::UnicodeWidthStr;

/// The overall state of all sessions: the icon's shape and colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// No session works, and none needs anything.
    Well,
    /// As far as is known, the same: a machine is not reached.
    Unknown,
    /// At least one session works.
    Working,
    /// A session waits for the user.
    NeedsYou,
    /// A session is stuck, crashed or failed, and none waits for the user.
    Trouble,
}

/// The sessions in numbers, and their overall state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Summary {
    /// The icon's state.
    pub state: State,
    /// Number of sessions that need the user.
    pub need_you: usize,
    /// Number of quiet sessions.
    pub quiet: usize,
    /// Number of sessions whose machine is not reached.
    pub unreached: usize,
    /// Number of machines that are not reached, and of which no session is known.
    pub blank: usize,
    /// Number of working sessions.
    pub working: usize,
    /// Number of sessions that the user has seen and left as they are.
    pub aside: usize,
    /// Number of idle sessions.
    pub idle: usize,
    /// Number of sessions that became idle, or asked, since the user last looked at them.
    pub unseen: usize,
}

impl Row {
    /// The group it is listed in.
    pub const fn group(&self) -> Group {
        if self.is_seen && self.is_set_aside_when_seen() { Group::Aside } else { self.status.spec().group }
    }

    /// Whether it stops needing the user once seen, even though it keeps its status.
    pub const fn is_set_aside_when_seen(&self) -> bool {
        matches!(self.status.spec().remedy, Remedy::UntilSeen)
    }

    /// Whether it needs the user: if it failed, crashed or lost its permissions, until seen; otherwise for as long as
    /// its status lasts.
    pub const fn needs_you(&self) -> bool {
        matches!(self.group(), Group::NeedsYou)
    }

    /// Its sort key. Sessions that need the user come first, by urgency and then longest wait; the others follow,
    /// latest change first.
    pub fn sort_key(&self) -> impl Ord + use<'_> {
        let group = self.group();
        let (urgency, since) = match group {
            Group::NeedsYou => (self.status.spec().urgency, self.since),
            _ => (0, Time(-self.since.0)),
        };
        (group, urgency, since, &self.id)
    }
}

impl Summary {
    /// Summarizes these rows.
    pub fn of<'a>(rows: impl Iterator<Item = &'a Row>) -> Self {
        let mut summary = Self {
            state: State::Well,
            need_you: 0,
            quiet: 0,
            unreached: 0,
            blank: 0,
            working: 0,
            aside: 0,
            idle: 0,
            unseen: 0,
        };
        let mut first: Option<Status> = None;
        for row in rows {
            summary.unseen += usize::from(row.unseen);
            let count = match row.group() {
                Group::Ended => continue,
                _ if !row.reached => &mut summary.unreached,
                Group::NeedsYou => {
                    if first.is_none_or(|first| row.status.spec().urgency < first.spec().urgency) {
                        first = Some(row.status);
                    }
                    &mut summary.need_you
                }
                Group::Quiet => &mut summary.quiet,
                Group::Working => &mut summary.working,
                Group::Aside => &mut summary.aside,
                Group::Idle => &mut summary.idle,
            };
            *count += 1;
        }
        summary.state = match first {
            Some(first) if first.spec().phase == Phase::Waits => State::NeedsYou,
            Some(_) => State::Trouble,
            None if summary.working + summary.quiet > 0 => State::Working,
            None if summary.unreached > 0 => State::Unknown,
            None => State::Well,
        };
        summary
    }

    /// The same where these machines are not reached: of those that have no row, nothing is known.
    pub fn and_unreached<'a>(mut self, hosts: impl Iterator<Item = &'a str>, rows: &[impl Borrow<Row>]) -> Self {
        let is_known = |host: &&str| rows.iter().any(|row| row.borrow().host.as_deref() == Some(*host));
        self.blank = hosts.filter(|host| !is_known(host)).count();
        if self.blank > 0 && self.state == State::Well {
            self.state = State::Unknown;
        }
        self
    }
}

impl Summary {
    /// Its counts, that of sessions that need the user first: `4 need you`, `3 working`, `5 idle`.
    pub fn counts(&self) -> Vec<String> {
        let need = if self.need_you == 1 { "needs you" } else { "need you" };
        let counts = [
            (self.need_you, need),
            (self.quiet, "quiet"),
            (self.unreached, "not reached"),
            (self.working, "working"),
            (self.aside, "set aside"),
            (self.idle, "idle"),
        ];
        let counts = counts.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}"));
        counts
            .chain((self.blank > 0).then(|| format!("nothing is known of {}", counted(self.blank, "machine"))))
            .collect()
    }
}

/// `4 need you · 3 working · 5 idle`.
impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts = self.counts();
        f.write_str(&match &counts[..] {
            [] => "no session is open".to_owned(),
            [unknown] if self.blank > 0 => format!("no session is known to be open · {unknown}"),
            counts => counts.join(" · "),
        })
    }
}

/// What a fold holds besides the sessions that have a row: `5 more: 2 ask, 1 stuck, 2 crashed`, `3 more working`. What is longer
/// than `max` columns ends after a count: a number that lost its word would be read as that of something else.
pub fn folded<'a>(rows: impl Iterator<Item = &'a Row>, max: usize) -> String {
    let mut counts: Vec<([&'static str; 2], usize)> = Vec::new();
    let mut total = 0;
    for row in rows {
        let does = if !row.reached && row.group() != Group::Ended {
            ["not reached"; 2]
        } else if row.group() == Group::Aside {
            ["set aside"; 2]
        } else {
            row.status.spec().does
        };
        total += 1;
        match counts.iter_mut().find(|(other, _)| *other == does) {
            Some((_, n)) => *n += 1,
            None => counts.push((does, 1)),
        }
    }
    let words = |(does, n): &([&'static str; 2], usize)| does[usize::from(*n > 1)];
    match &counts[..] {
        [one] => format!("{total} more {}", words(one)),
        all => {
            let all: Vec<_> = all.iter().map(|count| format!("{} {}", count.1, words(count))).collect();
            let text = |shown: usize| {
                let rest = if shown < all.len() { ", …" } else { "" };
                format!("{total} more: {}{rest}", all[..shown].join(", "))
            };
            let fits = |shown: &usize| text(*shown).width() <= max;
            text((1..=all.len()).rev().find(fits).unwrap_or(1))
        }
    }
}

/// Sorts rows for display.
pub fn sort(rows: &mut [Row]) {
    rows.sort_by(|a, b| a.sort_key().cmp(&b.sort_key()));
}

/// Sorts rows, and removes ended sessions but for the latest `most` that ended no earlier than `earliest`.
pub fn limit_ended(rows: &mut Vec<Row>, earliest: Time, most: usize) {
    sort(rows);
    let mut ended = 0;
    rows.retain(|row| {
        ended += usize::from(row.status.has_ended());
        !row.status.has_ended() || row.since >= earliest && ended <= most
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::Limits;
    use crate::session::Session;
    use crate::time::{Moment, Span};

    const START: Time = Time(1_700_000_000_000);

    fn row(id: &str, status: Status, seconds: i64) -> Row {
        let (row, _) = Session::default().row(Moment::of(START), &Limits::default());
        Row { id: id.into(), status, since: START + Span::seconds(seconds), ..row }
    }

    #[test]
    fn who_needs_the_user_comes_first_by_urgency_then_by_the_longest_wait() {
        let mut rows = [
            row("idle long ago", Status::Idle, 0),
            row("idle just now", Status::Idle, 9),
            row("asks just now", Status::NeedsInput, 9),
            row("asks long ago", Status::NeedsInput, 1),
            row("wants to run", Status::NeedsPermission, 9),
            row("failed", Status::Failed, 0),
        ];
        sort(&mut rows);
        let order = rows.map(|row| row.id.to_string());
        let expected = ["wants to run", "asks long ago", "asks just now", "failed", "idle just now", "idle long ago"];
        assert_eq!(order, expected);
    }

    #[test]
    fn a_glance_counts_every_group_and_what_was_not_seen() {
        let mut rows = vec![
            row("a", Status::Failed, 0),
            Row { is_seen: true, ..row("b", Status::Failed, 0) },
            row("c", Status::Quiet, 0),
            row("d", Status::Working, 0),
            row("e", Status::Finishing, 0),
            row("f", Status::Ended, 0),
        ];
        rows.extend((0..3).map(|_| Row { unseen: true, ..row("g", Status::Idle, 0) }));
        let summary = Summary::of(rows.iter());
        let expected = Summary {
            state: State::Trouble,
            need_you: 1,
            quiet: 1,
            unreached: 0,
            blank: 0,
            working: 2,
            aside: 1,
            idle: 3,
            unseen: 3,
        };
        assert_eq!(summary, expected);
        assert_eq!(summary.to_string(), "1 needs you · 1 quiet · 2 working · 1 set aside · 3 idle");
        // Who waits goes before who is in trouble, whatever comes first.
        rows.push(row("h", Status::NeedsInput, 0));
        assert_eq!(Summary::of(rows.iter()).state, State::NeedsYou);
        assert_eq!(Summary::of(rows.iter().rev()).state, State::NeedsYou);
        assert_eq!(Summary::of(rows[5..6].iter()).to_string(), "no session is open");
    }

    #[test]
    fn case_611_what_is_on_a_machine_out_of_reach_is_unknown_and_never_well() {
        let remote = |status| Row { host: Some("devbox".into()), reached: false, ..row("a", status, 0) };
        let summary =
            |rows: &[Row], hosts: &[&str]| Summary::of(rows.iter()).and_unreached(hosts.iter().copied(), rows);
        let known = summary(&[remote(Status::Quiet), remote(Status::Ended)], &["devbox"]);
        assert_eq!((known.state, &*known.to_string()), (State::Unknown, "1 not reached"));
        let words = "no session is known to be open · nothing is known of 1 machine";
        assert_eq!(summary(&[], &["devbox"]).to_string(), words);
        let both = summary(&[row("b", Status::Idle, 0), remote(Status::Quiet)], &["devbox", "gpu"]);
        assert_eq!(both.state, State::Unknown);
        assert_eq!(both.to_string(), "1 not reached · 1 idle · nothing is known of 1 machine");
        // What is known goes before what is not.
        assert_eq!(summary(&[remote(Status::Quiet), row("b", Status::NeedsInput, 0)], &["gpu"]).state, State::NeedsYou);
        assert_eq!(summary(&[remote(Status::Quiet), row("b", Status::Working, 0)], &["gpu"]).state, State::Working);
    }

    #[test]
    fn a_fold_says_what_it_holds() {
        let rows = |all: &[(Status, usize)]| -> Vec<Row> {
            all.iter().flat_map(|&(status, n)| (0..n).map(move |_| row("a", status, 0))).collect()
        };
        let words = |all: &[(Status, usize)]| folded(rows(all).iter(), 48);
        assert_eq!(words(&[(Status::Working, 3)]), "3 more working");
        assert_eq!(
            (words(&[(Status::NeedsInput, 1)]), words(&[(Status::NeedsInput, 2)])),
            ("1 more asks".into(), "2 more ask".into())
        );
        assert_eq!(
            words(&[(Status::NeedsPermission, 1), (Status::NeedsInput, 1), (Status::Stuck, 1), (Status::Crashed, 2)]),
            "5 more: 2 ask, 1 stuck, 2 crashed"
        );
        let seen: Vec<_> = rows(&[(Status::Failed, 2)]).into_iter().map(|row| Row { is_seen: true, ..row }).collect();
        assert_eq!(folded(seen.iter(), 48), "2 more set aside");
        let all = [Status::NeedsInput, Status::Stuck, Status::Crashed, Status::Failed, Status::Working, Status::Idle];
        let many = rows(&all.map(|status| (status, 11)));
        assert_eq!(folded(many.iter(), 48), "66 more: 11 ask, 11 stuck, 11 crashed, …");
        assert_eq!(folded(many.iter(), 99), "66 more: 11 ask, 11 stuck, 11 crashed, 11 failed, 11 working, 11 idle");
        assert_eq!(folded(many.iter(), 5), "66 more: 11 ask, …");
    }
}
