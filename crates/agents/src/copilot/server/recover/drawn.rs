//! Whether the terminal of a server (`copilot --ui-server`) has drawn what its session asks. A dialog that is answered
//! before it appears is drawn all the same, and takes the user's keys.

use crate::channel::failure::Failure;
use pilotlight_core::order::Step;
use pilotlight_system::process::thread_times;
use std::time::{Duration, Instant};
use tokio::time::{sleep, timeout};

/// How long a terminal may take to draw a request. For a new file of 300 kB it took half a minute on a busy machine.
pub(crate) const DRAWN_WITHIN: Duration = Duration::from_secs(60);
/// How long Copilot is watched to see whether it still draws, as in the bridge.
const DRAWING: Duration = Duration::from_millis(250);

/// How often in a row it must be seen not to draw, after a request whose text is longer than this, in bytes.
const CALM: u32 = 2;
pub(super) const LONG: usize = 1 << 14;
/// How long its other threads may take to prepare such a request. Later they do something else.
const PREPARED_WITHIN: Duration = Duration::from_secs(20);

/// The failure for a request that is not answered because its terminal still draws.
pub(crate) fn still_drawing(step: Step) -> Failure {
    Failure::because(step, "its terminal is still drawing, so nothing was done", "answer it there")
}

/// Waits until the terminal that this process draws shows what it asks: its main thread, which draws, has hardly run or
/// waited to run meanwhile; if the text `is_long`, neither has any other, for twice as long, because the main thread waits
/// for those that compare and colour it. Where the system does not show that, nothing is waited for.
///
/// # Errors
/// If it takes too long.
pub(super) async fn drawn(process: u32, is_long: bool) -> Result<(), Failure> {
    let rests = async {
        let begun = Instant::now();
        let prepares = || is_long && begun.elapsed() < PREPARED_WITHIN;
        let (mut before, mut calm) = (thread_times(process, is_long), 0);
        while calm < if prepares() { CALM } else { 1 } {
            sleep(DRAWING).await;
            let now = thread_times(process, prepares());
            let Some((earlier, later)) = before.as_ref().zip(now.as_ref()) else { return };
            let ran = |task, time: Duration| time.saturating_sub(earlier.get(task).copied().unwrap_or_default());
            let works = later.iter().any(|(task, time)| ran(task, *time) >= DRAWING / 2);
            calm = if works { 0 } else { calm + 1 };
            before = now;
        }
    };
    timeout(DRAWN_WITHIN, rests).await.map_err(|_| still_drawing(Step::Answer))
}
