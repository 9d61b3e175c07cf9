//! CPU time of a process's descendants, and the difference between two samples of it.
//!
//! A job is rarely one process: a build starts hundreds that live for milliseconds, and a sample catches few of them.
//! On Linux a parent inherits the CPU time of each child that it waited for, so the time of a process that ran and
//! ended between two samples shows up at its parent, less what the process had already used by the first sample.
//! `sysinfo` does not report that time (macOS, Windows), so only processes alive at the second sample count there.
//! Either way the result is a lower bound: nothing is counted twice.

use std::collections::HashMap;

use pilotlight_core::time::Span;

/// A process: its id and its start in the system's unit, as an id alone may be reused.
pub(super) type Key = (u32, u64);

/// One descendant's share of a sample.
#[derive(Clone, Copy, Debug)]
pub(super) struct Usage {
    /// Its parent at the time of the sample.
    pub(super) parent: Key,
    /// CPU time of all its threads, user and system, in milliseconds.
    pub(super) own: i64,
    /// CPU time of its children that ended and that it waited for, in milliseconds; 0 where the system does not report
    /// it.
    pub(super) waited_for: i64,
}

/// CPU time used so far by each descendant of a process; taken by [`cpu_of_descendants`](super::cpu_of_descendants).
#[derive(Clone, Debug)]
pub struct CpuSample {
    root: Key,
    descendants: HashMap<Key, Usage>,
}

impl CpuSample {
    pub(super) fn new(root: Key, descendants: HashMap<Key, Usage>) -> Self {
        Self { root, descendants }
    }

    /// Whether the process is among them.
    #[cfg(test)]
    pub(super) fn has(&self, pid: u32) -> bool {
        self.descendants.keys().any(|key| key.0 == pid)
    }

    /// The number of descendants.
    #[cfg(test)]
    pub(crate) fn descendants(&self) -> usize {
        self.descendants.len()
    }

    /// CPU time used between the two samples, on all cores together: by the descendants that are in both, by those
    /// started since (all of theirs), and by those that ended since and were waited for by another descendant.
    ///
    /// Zero for samples of different processes. The underlying clock ticks every 10 ms on Linux and every 16 ms on
    /// Windows: a difference of a few ticks means nothing.
    pub fn used_since(&self, earlier: &Self) -> Span {
        if self.root != earlier.root {
            return Span::ZERO;
        }
        let settled = self.settled_with_survivors(earlier);
        let used = self.descendants.iter().map(|(key, now)| match earlier.descendants.get(key) {
            None => now.own + now.waited_for,
            Some(before) => {
                let inherited = now.waited_for - before.waited_for - settled.get(key).copied().unwrap_or(0);
                (now.own - before.own).max(0) + inherited.max(0)
            }
        });
        Span(used.sum())
    }

    /// For each surviving process, the CPU time that its descendants which ended since `earlier` had used by then: it
    /// has inherited that time, but it was not used since.
    fn settled_with_survivors(&self, earlier: &Self) -> HashMap<Key, i64> {
        let mut settled = HashMap::new();
        for (key, usage) in &earlier.descendants {
            if self.descendants.contains_key(key) {
                continue;
            }
            let mut heir = usage.parent;
            // The sample visits each parent before its children, so this loop reaches the root.
            while let Some(ended) = earlier.descendants.get(&heir).filter(|_| !self.descendants.contains_key(&heir)) {
                heir = ended.parent;
            }
            *settled.entry(heir).or_insert(0) += usage.own + usage.waited_for;
        }
        settled
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWNER: Key = (1, 0);

    /// A sample from (pid, parent's pid, own, waited for).
    fn sample(processes: &[(u32, u32, i64, i64)]) -> CpuSample {
        let usage = |&(pid, parent, own, waited_for): &(u32, u32, i64, i64)| {
            ((pid, 0), Usage { parent: (parent, 0), own, waited_for })
        };
        CpuSample::new(OWNER, processes.iter().map(usage).collect())
    }

    #[test]
    fn a_survivor_counts_by_its_difference_and_a_new_process_in_full() {
        let earlier = sample(&[(2, 1, 1000, 0), (3, 2, 70, 0)]);
        let later = sample(&[(2, 1, 1200, 0), (3, 2, 70, 0), (4, 2, 30, 0)]);
        assert_eq!(later.used_since(&earlier), Span(230));
        assert_eq!(later.used_since(&later), Span::ZERO);
        assert_eq!(later.descendants(), 3);
    }

    #[test]
    fn a_process_between_the_samples_counts_through_its_parent() {
        let earlier = sample(&[(2, 1, 10, 500)]);
        let later = sample(&[(2, 1, 10, 1300)]);
        assert_eq!(later.used_since(&earlier), Span(800));
    }

    #[test]
    fn what_an_ended_child_had_used_before_is_not_counted_again() {
        let earlier = sample(&[(2, 1, 10, 0), (3, 2, 900, 0), (4, 3, 300, 50)]);
        assert_eq!(sample(&[(2, 1, 10, 1250)]).used_since(&earlier), Span::ZERO);
        assert_eq!(sample(&[(2, 1, 10, 1300)]).used_since(&earlier), Span(50));
        // The time of a child that nobody waited for is lost; subtracting it must not go below zero.
        assert_eq!(sample(&[(2, 1, 40, 0)]).used_since(&earlier), Span(30));
    }

    #[test]
    fn a_recycled_id_is_a_new_process() {
        let earlier = sample(&[(2, 1, 5000, 0)]);
        let mut later = sample(&[]);
        later.descendants.insert((2, 99), Usage { parent: OWNER, own: 20, waited_for: 0 });
        assert_eq!(later.used_since(&earlier), Span(20));
    }

    #[test]
    fn samples_of_different_owners_are_not_compared() {
        let mut later = sample(&[(2, 1, 5000, 0)]);
        later.root = (1, 7);
        assert_eq!(later.used_since(&sample(&[])), Span::ZERO);
    }
}
