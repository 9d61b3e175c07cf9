//! Work on tens of thousands of folders, by all processors.

use std::ops::{ControlFlow, Range};
use std::sync::atomic::{AtomicUsize, Ordering};

/// How many folders a thread takes at once; fewer are not worth another thread.
const FOLDERS_AT_ONCE: usize = 64;

/// Works on all numbers below `folders`, a share at a time. `worker` is called once in each thread; one that breaks is
/// given no further share.
pub(crate) fn for_shares<W: FnMut(Range<usize>) -> ControlFlow<()>>(folders: usize, worker: impl Fn() -> W + Sync) {
    let next = AtomicUsize::new(0);
    let take_shares = || {
        let mut work = worker();
        loop {
            let from = next.fetch_add(FOLDERS_AT_ONCE, Ordering::Relaxed);
            if from >= folders || work(from..folders.min(from + FOLDERS_AT_ONCE)).is_break() {
                return;
            }
        }
    };
    // To learn how many processors there are costs the reading of several files.
    let threads = match folders.div_ceil(FOLDERS_AT_ONCE) {
        0 | 1 => 1,
        shares => std::thread::available_parallelism().map_or(1, usize::from).min(shares),
    };
    std::thread::scope(|scope| {
        for _ in 1..threads {
            // If the system refuses a thread, the others do its share.
            let _ = std::thread::Builder::new().spawn_scoped(scope, take_shares);
        }
        take_shares();
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    #[test]
    fn each_number_is_worked_on_once() {
        for folders in [0, 1, 64, 65, 1000] {
            let done = Mutex::new(Vec::new());
            for_shares(folders, || {
                |share| {
                    done.lock().unwrap().extend(share);
                    ControlFlow::Continue(())
                }
            });
            let mut done = done.into_inner().unwrap();
            done.sort_unstable();
            assert_eq!(done, (0..folders).collect::<Vec<_>>());
        }
    }
}
