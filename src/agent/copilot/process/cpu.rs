//! CPU time of a process's descendants, and the difference between two samples of it.
//!
//! Whether an open tool is busy decides between `stuck` and "running long". A tool is rarely one process: a build starts
//! hundreds that live for milliseconds, few of which a sample meets. On Unix a parent inherits the CPU time of each child
//! that it waited for, so what ran and ended between two samples is found at the parent, less what the child had used
//! by the first sample. Where that is not kept (macOS and Windows, through `sysinfo`), only what lives at the second
//! sample counts. Either way the result is a lower bound: nothing is counted twice, and nothing that is not there.

use std::collections::HashMap;

use crate::core::time::Span;

/// A process by its id and its start, in whatever unit the system gives that: the id alone may change hands.
pub(super) type Key = (u32, u64);

/// One descendant's share of a sample.
#[derive(Clone, Copy, Debug)]
pub(super) struct Usage {
    /// Its parent when the sample was taken.
    pub(super) parent: Key,
    /// CPU time of all its threads, user and system, in milliseconds.
    pub(super) own: i64,
    /// CPU time of its children that ended and that it waited for, in milliseconds; 0 where the system does not say.
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

    /// Whether the process was among them.
    #[cfg(test)]
    pub(super) fn has(&self, pid: u32) -> bool {
        self.descendants.keys().any(|key| key.0 == pid)
    }

    /// How many descendants there were.
    #[cfg(test)]
    pub(crate) fn descendants(&self) -> usize {
        self.descendants.len()
    }

    /// CPU time used between the two samples, of all cores together, by the descendants that are in both, by those
    /// started since (all of theirs), and by those that ended since and were waited for by another descendant.
    ///
    /// Zero for samples of different processes. The clock behind it ticks every 10 ms on Linux and every 16 ms on
    /// Windows: less than a few ticks says nothing.
    pub(crate) fn used_since(&self, earlier: &Self) -> Span {
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

    /// What processes that ended since `earlier` had used by then, under the nearest ancestor that survives: it is part
    /// of what that ancestor inherited, but was not used since.
    fn settled_with_survivors(&self, earlier: &Self) -> HashMap<Key, i64> {
        let mut settled = HashMap::new();
        for (key, usage) in &earlier.descendants {
            if self.descendants.contains_key(key) {
                continue;
            }
            let mut heir = usage.parent;
            // Each parent was met before its children when the sample was taken, so this climbs to the root.
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
    fn what_lives_in_both_counts_by_its_difference_and_what_is_new_in_full() {
        let earlier = sample(&[(2, 1, 1000, 0), (3, 2, 70, 0)]);
        let later = sample(&[(2, 1, 1200, 0), (3, 2, 70, 0), (4, 2, 30, 0)]);
        assert_eq!(later.used_since(&earlier), Span(230));
        assert_eq!(later.used_since(&later), Span::ZERO);
        assert_eq!(later.descendants(), 3);
    }

    #[test]
    fn what_ran_and_ended_in_between_is_found_at_its_parent() {
        let earlier = sample(&[(2, 1, 10, 500)]);
        let later = sample(&[(2, 1, 10, 1300)]);
        assert_eq!(later.used_since(&earlier), Span(800));
    }

    #[test]
    fn what_an_ended_child_had_used_before_is_not_counted_again() {
        let earlier = sample(&[(2, 1, 10, 0), (3, 2, 900, 0), (4, 3, 300, 50)]);
        assert_eq!(sample(&[(2, 1, 10, 1250)]).used_since(&earlier), Span::ZERO);
        assert_eq!(sample(&[(2, 1, 10, 1300)]).used_since(&earlier), Span(50));
        // One that nobody waited for is lost; its share must not turn another's use into less than nothing.
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
