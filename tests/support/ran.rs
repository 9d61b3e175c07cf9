//! A clock of what this machine had time for.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How often it is looked whether time has passed.
const TICK: Duration = Duration::from_millis(5);

/// How long this process was let run since the first call. Where the machine stands still, or has no time for anybody, this
/// clock does, too: what is measured by it is how long others took, and not how busy the machine was.
pub(crate) fn ran() -> Duration {
    static MICROS: LazyLock<&AtomicU64> = LazyLock::new(|| {
        let micros: &AtomicU64 = Box::leak(Box::default());
        std::thread::spawn(move || {
            let mut last = Instant::now();
            loop {
                #[expect(clippy::disallowed_methods, reason = "a clock ticks")]
                std::thread::sleep(TICK);
                let now = Instant::now();
                let passed = (now - last).min(2 * TICK);
                micros.fetch_add(u64::try_from(passed.as_micros()).unwrap(), Ordering::Relaxed);
                last = now;
            }
        });
        micros
    });
    Duration::from_micros(MICROS.load(Ordering::Relaxed))
}
