//! Whether the terminal of a server (`copilot --ui-server`) has drawn what its session asks. A dialog that is answered
//! before it appears is drawn all the same, and takes the user's keys.

use super::failure::Failure;
use crate::core::order::Step;
use crate::system::process::main_thread_time;
use std::time::Duration;
use tokio::time::{sleep, timeout};

/// How long a terminal may take to draw a request. For a new file of 300 kB it took half a minute on a busy machine.
pub(crate) const DRAWN_WITHIN: Duration = Duration::from_secs(60);
/// How long Copilot is watched to see whether it still draws, as in the bridge.
const DRAWING: Duration = Duration::from_millis(250);

/// The failure for a request that is not answered because its terminal still draws.
pub(crate) fn still_drawing(step: Step) -> Failure {
    Failure::because(step, "its terminal is still drawing, so nothing was done", "answer it there")
}

/// Waits until the terminal that this process draws shows what it asks: its main thread, which draws, has hardly run or
/// waited to run meanwhile. Where the system does not show that, nothing is waited for.
///
/// # Errors
/// If it takes too long.
pub(super) async fn drawn(process: u32) -> Result<(), Failure> {
    let rests = async {
        let mut before = main_thread_time(process);
        loop {
            sleep(DRAWING).await;
            let now = main_thread_time(process);
            match before.zip(now) {
                Some((before, now)) if now.saturating_sub(before) >= DRAWING / 2 => {}
                _ => return,
            }
            before = now;
        }
    };
    timeout(DRAWN_WITHIN, rests).await.map_err(|_| still_drawing(Step::TakeOver))
}
