//! When what is waited for is true.
//!
//! A session on a machine that is not reached has no status that is known: nothing is true of it but that it has ended.
//! Where no session is named, those that had ended before the wait began do not count, and of all that count each must be
//! so, or have ended meanwhile.

use pilotlight_core::fleet::{Label, Row, Session};
use pilotlight_core::limits::Limits;
use pilotlight_core::session::Key;
use pilotlight_core::time::Moment;
use pilotlight_core::verdict::Status;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What a session may be waited to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Until {
    /// One that needs the user, as the icon counts it.
    NeedsYou,
    /// One of this status.
    Status(Status),
}

/// The word for [`Until::NeedsYou`].
const NEEDS_YOU: &str = "needs-you";

/// All that can be waited for.
pub(super) const NAMES: [&str; Status::ALL.len() + 1] = {
    let mut names = [NEEDS_YOU; Status::ALL.len() + 1];
    let mut n = 0;
    while n < Status::ALL.len() {
        names[n + 1] = Status::ALL[n].name();
        n += 1;
    }
    names
};

impl Until {
    pub(super) fn named(word: &str) -> Option<Self> {
        if word == NEEDS_YOU {
            return Some(Self::NeedsYou);
        }
        Status::ALL.into_iter().find(|status| status.name() == word).map(Self::Status)
    }

    /// What is waited for if nothing is said: a session that is named is no longer at work, any other needs the user.
    pub(super) fn usual(is_unnamed: bool) -> Vec<Self> {
        let all = vec![Self::NeedsYou, Self::Status(Status::Idle), Self::Status(Status::Ended)];
        if is_unnamed { vec![Self::NeedsYou] } else { all }
    }

    fn holds(self, row: &Row) -> bool {
        match self {
            Self::Status(Status::Ended) => row.status.has_ended(),
            _ if !row.reached => false,
            Self::NeedsYou => row.needs_you(),
            Self::Status(status) => row.status == status,
        }
    }
}

/// A session that is waited for.
pub(super) struct Target {
    id: Arc<str>,
    host: Option<Arc<str>>,
    /// As last seen.
    row: Row,
    is_gone: bool,
}

impl Target {
    pub(super) fn new(session: &Session, label: Label, now: Moment, limits: &Limits) -> Self {
        let row = Row { label, ..session.row(now, limits).0 };
        Self { id: (*row.id).into(), host: row.host.as_deref().map(Into::into), row, is_gone: false }
    }

    pub(super) fn is_same(&self, other: &Self) -> bool {
        (&self.id, &self.host) == (&other.id, &other.host)
    }

    fn is(&self, key: &Key) -> bool {
        (&self.id, &self.host) == (&key.id, &key.host)
    }
}

/// Which sessions are waited for.
pub(super) enum Which {
    These(Vec<Target>),
    Every,
}

/// A session of which it is true.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Hit {
    /// As last seen.
    pub(super) row: Row,
    /// It is gone, with its folder.
    pub(super) is_gone: bool,
}

/// What is waited for, and what is known of it.
pub(super) struct Awaited {
    which: Which,
    until: Vec<Until>,
    all: bool,
    /// Where none is named: those that have been seen before they ended.
    seen: BTreeMap<Key, Hit>,
}

impl Awaited {
    pub(super) fn new(which: Which, until: Vec<Until>, all: bool) -> Self {
        Self { which, until, all, seen: BTreeMap::new() }
    }

    /// Takes up how the sessions are now, and which are gone.
    pub(super) fn take<'a>(&mut self, rows: impl Iterator<Item = (&'a Key, &'a Row)>, removed: &[Key]) {
        match &mut self.which {
            Which::These(targets) => {
                let is_removed = |target: &Target| removed.iter().any(|key| target.is(key));
                targets.iter_mut().filter(|target| is_removed(target)).for_each(|target| target.is_gone = true);
                for (key, row) in rows {
                    if let Some(target) = targets.iter_mut().find(|target| target.is(key)) {
                        (target.row, target.is_gone) = (row.clone(), false);
                    }
                }
            }
            Which::Every => {
                for key in removed {
                    if let Some(seen) = self.seen.get_mut(key) {
                        seen.is_gone = true;
                    }
                }
                for (key, row) in rows {
                    if !row.status.has_ended() || self.seen.contains_key(key) {
                        self.seen.insert(key.clone(), Hit { row: row.clone(), is_gone: false });
                    }
                }
            }
        }
    }

    /// Notes which of this machine's named sessions went before the engine looked for the first time, which therefore
    /// tells of no removal. `is_listed`: the engine knows it. `is_there`: its files are there.
    pub(super) fn note_missed(&mut self, is_listed: impl Fn(&str) -> bool, is_there: impl Fn(&str) -> bool) {
        let Which::These(targets) = &mut self.which else { return };
        for target in targets.iter_mut().filter(|target| target.host.is_none() && !target.is_gone) {
            target.is_gone = !is_listed(&target.id) && !is_there(&target.id);
        }
    }

    fn holds(&self, row: &Row, is_gone: bool) -> bool {
        match is_gone {
            true => self.until.contains(&Until::Status(Status::Ended)),
            false => self.until.iter().any(|until| until.holds(row)),
        }
    }

    /// The sessions of which it is true, if that is so before anything changes: those that are named may have ended long
    /// ago, and are not watched then.
    pub(super) fn hits_at_start(&self) -> Option<Vec<Hit>> {
        matches!(self.which, Which::These(_)).then(|| self.hits(true))?
    }

    /// The sessions of which it is true, if that ends the wait. `is_complete`: all sessions are known.
    pub(super) fn hits(&self, is_complete: bool) -> Option<Vec<Hit>> {
        let candidates: Vec<Hit> = match &self.which {
            Which::These(targets) => {
                targets.iter().map(|target| Hit { row: target.row.clone(), is_gone: target.is_gone }).collect()
            }
            Which::Every => self.seen.values().cloned().collect(),
        };
        let is_over = |hit: &Hit| hit.is_gone || hit.row.status.has_ended();
        let may_end = matches!(self.which, Which::Every);
        let (hits, others): (Vec<_>, Vec<_>) =
            candidates.into_iter().partition(|hit| self.holds(&hit.row, hit.is_gone));
        let is_true = match self.all {
            true => (is_complete || !may_end) && others.iter().all(|hit| may_end && is_over(hit)),
            false => !hits.is_empty(),
        };
        is_true.then_some(hits)
    }

    /// The name of a session that is gone, if it was needed.
    pub(super) fn lost(&self) -> Option<String> {
        let Which::These(targets) = &self.which else { return None };
        let gone = || targets.iter().filter(|target| target.is_gone && !self.holds(&target.row, true));
        let is_needed = self.all || gone().count() == targets.len();
        gone().next().filter(|_| is_needed).map(|target| target.row.label.to_string())
    }

    /// Of which it is not true, and what they do.
    pub(super) fn missing(&self) -> Vec<String> {
        let rows: Vec<&Row> = match &self.which {
            Which::These(targets) => targets.iter().map(|target| &target.row).collect(),
            Which::Every => self.seen.values().filter(|seen| !seen.is_gone).map(|seen| &seen.row).collect(),
        };
        let missing = rows.into_iter().filter(|row| !self.holds(row, false));
        missing.map(|row| format!("{} is {}", row.label, row.status)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pilotlight_core::session::HomeId;

    fn row(id: &str, status: Status) -> Row {
        let row = Session { id: id.into(), ..Session::default() }.row(Moment::default(), &Limits::default()).0;
        Row { status, ..row }
    }

    fn key(id: &str) -> Key {
        Key::new(HomeId::default(), id)
    }

    fn every(until: &[&str], all: bool) -> Awaited {
        Awaited::new(Which::Every, until.iter().map(|word| Until::named(word).unwrap()).collect(), all)
    }

    #[test]
    fn case_874_a_named_session_that_went_before_the_first_look_is_gone() {
        let mut awaited = these(&["a", "b"], &["idle"], false);
        awaited.note_missed(|id| id == "a", |_| false);
        assert_eq!(awaited.lost(), None, "a is listed");
        awaited.note_missed(|_| false, |id| id == "a");
        assert_eq!(awaited.lost(), None, "a ended long ago, and may be resumed");
        awaited.note_missed(|_| false, |_| false);
        assert!(awaited.lost().is_some());
    }

    fn these(ids: &[&str], until: &[&str], all: bool) -> Awaited {
        let target = |id: &&str| Target { id: (*id).into(), host: None, row: row(id, Status::Working), is_gone: false };
        let which = Which::These(ids.iter().map(target).collect());
        Awaited::new(which, until.iter().map(|word| Until::named(word).unwrap()).collect(), all)
    }

    fn take(awaited: &mut Awaited, rows: &[(&str, Status)], removed: &[&str]) -> Option<Vec<Box<str>>> {
        let rows: Vec<_> = rows.iter().map(|(id, status)| (key(id), row(id, *status))).collect();
        let removed: Vec<_> = removed.iter().map(|id| key(id)).collect();
        awaited.take(rows.iter().map(|(key, row)| (key, row)), &removed);
        awaited.hits(true).map(|hits| hits.into_iter().map(|hit| hit.row.id).collect())
    }

    #[test]
    fn every_word_is_known_and_no_other() {
        for name in NAMES {
            assert!(Until::named(name).is_some(), "{name}");
        }
        for wrong in ["", "Idle", "needs", "needs-you ", "asleep"] {
            assert_eq!(Until::named(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn case_760_the_first_session_of_which_it_is_true_ends_the_wait() {
        let mut awaited = every(&["needs-you"], false);
        assert_eq!(take(&mut awaited, &[("a", Status::Idle), ("b", Status::Working)], &[]), None);
        assert_eq!(
            take(&mut awaited, &[("a", Status::Idle), ("b", Status::NeedsPermission)], &[]),
            Some(vec!["b".into()])
        );
        let mut awaited = these(&["a", "b"], &["idle", "ended"], false);
        assert_eq!(take(&mut awaited, &[("b", Status::Working), ("c", Status::Idle)], &[]), None, "another session");
        assert_eq!(take(&mut awaited, &[], &["b"]), Some(vec!["b".into()]), "it is gone, so it has ended");
    }

    #[test]
    fn case_760_all_must_be_so_at_once() {
        let mut awaited = these(&["a", "b"], &["idle"], true);
        assert_eq!(take(&mut awaited, &[("a", Status::Idle)], &[]), None);
        assert_eq!(take(&mut awaited, &[("a", Status::Working), ("b", Status::Idle)], &[]), None);
        assert_eq!(take(&mut awaited, &[("a", Status::Idle)], &[]), Some(vec!["a".into(), "b".into()]));
    }

    #[test]
    fn case_760_of_those_that_are_not_named_what_is_over_holds_nothing_up() {
        let mut awaited = every(&["idle"], true);
        let sessions = [("a", Status::Working), ("b", Status::Idle), ("old", Status::Ended)];
        assert_eq!(take(&mut awaited, &sessions, &[]), None);
        assert_eq!(take(&mut awaited, &[("a", Status::Ended)], &[]), Some(vec!["b".into()]));
        let mut ends = every(&["ended"], false);
        assert_eq!(take(&mut ends, &sessions, &[]), None, "one that had ended before is not waited for");
        assert_eq!(take(&mut ends, &[("a", Status::Ended)], &[]), Some(vec!["a".into()]));
        assert_eq!(every(&["idle"], true).hits(true), Some(Vec::new()), "no session is open");
        assert_eq!(every(&["idle"], true).hits(false), None, "a machine has not told of its sessions");
    }

    #[test]
    fn case_760_a_session_that_is_gone_cannot_become_anything_else() {
        let mut awaited = these(&["a", "b"], &["idle"], false);
        take(&mut awaited, &[], &["a"]);
        assert_eq!(awaited.lost(), None, "the other one may");
        take(&mut awaited, &[], &["b"]);
        assert!(awaited.lost().is_some());
        let mut all = these(&["a", "b"], &["idle"], true);
        take(&mut all, &[], &["a"]);
        assert!(all.lost().is_some());
        take(&mut all, &[("a", Status::Working)], &[]);
        assert_eq!(all.lost(), None, "it is back");
    }

    #[test]
    fn case_760_what_a_machine_out_of_reach_told_last_is_not_so_now() {
        let unreached = |status| Row { reached: false, ..row("a", status) };
        assert!(!Until::NeedsYou.holds(&unreached(Status::NeedsInput)));
        assert!(!Until::Status(Status::Quiet).holds(&unreached(Status::Quiet)));
        assert!(Until::Status(Status::Ended).holds(&unreached(Status::Ended)));
    }
}
