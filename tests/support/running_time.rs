//! A clock that runs as fast as the machine has time for a single program.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How often the clock's thread checks how much time has passed.
const TICK: Duration = Duration::from_millis(20);

/// How long a program that always wants to run could do so since the first call. While there are four of them for each
/// core, the clock runs at a quarter of its speed; and a gap between two ticks counts as two ticks at most, so that a
/// machine that is suspended hardly advances it. What it measures is how long others took, not how busy the machine was.
pub(crate) fn running_time() -> Duration {
    static MICROS: LazyLock<&AtomicU64> = LazyLock::new(|| {
        let micros: &AtomicU64 = Box::leak(Box::default());
        // Asking reads control groups, which would cost more than all the rest.
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        std::thread::spawn(move || {
            let mut last = Instant::now();
            loop {
                #[expect(clippy::disallowed_methods, reason = "a clock ticks")]
                std::thread::sleep(TICK);
                let now = Instant::now();
                let passed = (now - last).min(2 * TICK).mul_f64(share(cores));
                micros.fetch_add(u64::try_from(passed.as_micros()).unwrap(), Ordering::Relaxed);
                last = now;
            }
        });
        micros
    });
    Duration::from_micros(MICROS.load(Ordering::Relaxed))
}

/// The part of a core that is there for each program that wants to run: at most one, and no less than a tenth, so that a
/// deadline comes.
fn share(cores: usize) -> f64 {
    let load = std::fs::read_to_string("/proc/loadavg").unwrap();
    // 1.31 0.92 0.40 3/512 4711: of 512 threads, 3 run or could.
    let could_run = load.split(' ').nth(3).and_then(|counts| counts.split_once('/')?.0.parse::<u32>().ok()).unwrap();
    (f64::from(u32::try_from(cores).unwrap()) / f64::from(could_run.max(1))).clamp(0.1, 1.0)
}
