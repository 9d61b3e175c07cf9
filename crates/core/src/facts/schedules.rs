//! The schedules by which a session prompts itself later.

use super::{Facts, OPEN_MAX};
use crate::event::ScheduleChange;
use crate::time::{Moment, Span, Time};
use crate::turn::Call;
use serde::{Deserialize, Serialize};

/// A schedule further ahead than this is not credible: nothing waits for it. Neither is one further back.
const AHEAD_MAX: Span = Span::hours(24 * 366);
const BEHIND_MAX: Span = Span::hours(24);

/// A schedule that is armed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Schedule {
    id: Call,
    /// When that was done.
    armed: Time,
    /// When it fires next, if that is known.
    at: Option<Time>,
    /// How long after it has fired it fires again.
    every: Option<Span>,
    repeats: bool,
    /// It outlives the process that armed it.
    persists: bool,
}

impl Facts {
    pub(super) fn fold_schedule(&mut self, change: &ScheduleChange<'_>, now: Moment) {
        let (ScheduleChange::Armed { id, .. } | ScheduleChange::Fired { id, .. } | ScheduleChange::Cancelled { id }) =
            change;
        let id = Call::new(*id);
        let known = self.schedules.iter().position(|schedule| schedule.id == id);
        match *change {
            ScheduleChange::Armed { at, after, repeats, persists, .. } => {
                let at = at.or(after.map(|span| now.wall + span));
                let before = known.map(|index| self.schedules.remove(index));
                let credible = at.filter(|at| (Span::ZERO - BEHIND_MAX..=AHEAD_MAX).contains(&(*at - now.wall)));
                if self.schedules.len() < OPEN_MAX && (credible.is_some() || at.is_none()) {
                    let repeats = repeats || before.as_ref().is_some_and(|before| before.repeats);
                    let every = after.filter(|_| repeats).or(before.and_then(|before| before.every));
                    self.schedules.push(Schedule { id, armed: now.wall, at: credible, every, repeats, persists });
                }
            }
            ScheduleChange::Fired { every, .. } => {
                let Some(index) = known else { return };
                let schedule = &mut self.schedules[index];
                if !schedule.repeats {
                    self.schedules.remove(index);
                    return;
                }
                schedule.every = schedule.every.or(every);
                schedule.at = schedule.every.map(|every| now.wall + every);
            }
            ScheduleChange::Cancelled { .. } => {
                known.map(|index| self.schedules.remove(index));
            }
        }
    }

    /// When the session next prompts itself. `started`: since when its process runs; one that did not arm a schedule may not
    /// know of it.
    pub fn wakes_at(&self, started: Option<Time>) -> Option<Time> {
        let is_armed =
            |schedule: &&Schedule| schedule.persists || started.is_none_or(|started| started <= schedule.armed);
        self.schedules.iter().filter(is_armed).filter_map(|schedule| schedule.at).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scan::Text;

    const MINUTE: Span = Span::minutes(1);

    fn at(minute: i64) -> Moment {
        Moment::of(Time(1_700_000_000_000) + Span::minutes(minute))
    }

    fn armed(id: &'static [u8], when: Option<i64>, after: Option<Span>, repeats: bool) -> ScheduleChange<'static> {
        let when = when.map(|minute| at(minute).wall);
        ScheduleChange::Armed { id: Text(id), at: when, after, repeats, persists: false }
    }

    fn wakes(changes: &[(i64, ScheduleChange<'_>)]) -> Option<i64> {
        let mut facts = Facts::default();
        changes.iter().for_each(|(minute, change)| facts.fold_schedule(change, at(*minute)));
        facts.wakes_at(None).map(|time| (time - at(0).wall).0 / MINUTE.0)
    }

    #[test]
    fn case_765_the_next_of_all_schedules_counts() {
        let fired = |id, every| ScheduleChange::Fired { id: Text(id), every };
        let cancelled = |id| ScheduleChange::Cancelled { id: Text(id) };
        let (once, soon) = (armed(b"1", Some(30), None, false), armed(b"2", None, Some(MINUTE), true));
        assert_eq!(wakes(&[]), None);
        assert_eq!(wakes(&[(0, once.clone())]), Some(30));
        assert_eq!(wakes(&[(0, once.clone()), (5, soon.clone())]), Some(6));
        assert_eq!(wakes(&[(0, once.clone()), (5, soon.clone()), (6, fired(b"2", None))]), Some(7), "it repeats");
        assert_eq!(wakes(&[(0, once.clone()), (5, soon.clone()), (6, cancelled(b"2"))]), Some(30));
        assert_eq!(wakes(&[(0, once.clone()), (30, fired(b"1", Some(MINUTE)))]), None, "it fires once");
        assert_eq!(wakes(&[(0, once), (9, armed(b"1", Some(40), None, false))]), Some(40), "it is armed anew");
        let by_cron = armed(b"1", Some(30), None, true);
        assert_eq!(wakes(&[(0, by_cron.clone()), (30, fired(b"1", None))]), None, "when it fires again is not known");
        assert_eq!(wakes(&[(0, by_cron.clone()), (30, fired(b"1", Some(MINUTE)))]), Some(31));
        assert_eq!(wakes(&[(0, by_cron), (30, fired(b"9", Some(MINUTE)))]), Some(30), "another one");
    }

    #[test]
    fn case_766_a_schedule_of_the_year_9999_or_of_no_year_is_none() {
        for far in [253_402_300_799_000, i64::MAX, i64::MIN] {
            let change = ScheduleChange::Armed {
                id: Text(b"1"),
                at: Some(Time(far)),
                after: None,
                repeats: false,
                persists: true,
            };
            let mut facts = Facts::default();
            facts.fold_schedule(&change, at(0));
            assert_eq!(facts.wakes_at(None), None, "{far}");
        }
        let forever = armed(b"1", None, Some(Span(i64::MAX)), true);
        assert_eq!(wakes(&[(0, forever)]), None);
        let mut facts = Facts::default();
        for n in 0..5000u32 {
            let id = n.to_string();
            let change = ScheduleChange::Armed {
                id: Text(id.as_bytes()),
                at: Some(at(5).wall),
                after: None,
                repeats: false,
                persists: false,
            };
            facts.fold_schedule(&change, at(0));
        }
        assert_eq!(facts.schedules.len(), OPEN_MAX);
    }

    #[test]
    fn case_765_a_process_that_came_later_knows_only_what_outlives_the_one_before() {
        let mut facts = Facts::default();
        facts.fold_schedule(&armed(b"1", Some(30), None, false), at(0));
        assert_eq!(facts.wakes_at(Some(at(-5).wall)), Some(at(30).wall));
        assert_eq!(facts.wakes_at(Some(at(5).wall)), None);
        let persists = ScheduleChange::Armed {
            id: Text(b"2"),
            at: Some(at(40).wall),
            after: None,
            repeats: false,
            persists: true,
        };
        facts.fold_schedule(&persists, at(0));
        assert_eq!(facts.wakes_at(Some(at(5).wall)), Some(at(40).wall));
    }
}
