//! What a child says besides, such as why `ssh` gave up: its end is kept.

use pilotlight_core::text::plain;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::time::sleep;

/// How much of it is kept, in bytes.
const KEPT: usize = 4 << 10;
/// How much is read at a time, in bytes: in four pieces all that a pipe holds.
const PIECE: usize = 16 << 10;
/// A pause after each piece, so that a child that floods costs little.
const PAUSE: Duration = Duration::from_millis(20);

/// The last line of what was said that is not blank, fit to be shown.
pub(super) fn last_line(stderr: &str, most: usize) -> Option<Box<str>> {
    stderr.lines().rfind(|line| !line.trim().is_empty()).map(|line| plain(line, most))
}

/// The end of what a child has said.
#[derive(Clone, Debug, Default)]
pub(super) struct StderrTail(Arc<Mutex<Vec<u8>>>);

impl StderrTail {
    /// Reads everything, to the end.
    pub(super) async fn read(self, mut from: impl AsyncRead + Unpin) {
        let mut piece = vec![0; PIECE];
        while let Ok(read @ 1..) = from.read(&mut piece).await {
            {
                let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
                kept.extend_from_slice(&piece[..read]);
                let surplus = kept.len().saturating_sub(KEPT);
                kept.drain(..surplus);
            }
            sleep(PAUSE).await;
        }
    }

    /// What it said last.
    pub(super) fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().unwrap_or_else(PoisonError::into_inner)).into_owned()
    }
}
