//! A clock that stands still while the machine is too busy to run us.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How often the clock's thread checks how much time has passed.
const TICK: Duration = Duration::from_millis(5);

/// How long this process could run since the first call. A gap between two ticks counts as two ticks at most, so a
/// machine that is suspended or overloaded hardly advances the clock. What it measures is how long others took, not how
/// busy the machine was.
pub(crate) fn running_time() -> Duration {
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
