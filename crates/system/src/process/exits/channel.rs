//! Exits on systems that report them on a thread of their own: a channel carries them to the waiting task.

use std::io;

use tokio::sync::mpsc;

#[cfg(target_os = "macos")]
use super::macos as platform;
#[cfg(windows)]
use super::windows as platform;

/// The watched processes.
pub(super) struct Waits {
    waits: platform::Waits,
    ended: mpsc::UnboundedReceiver<u32>,
}

impl Waits {
    pub(super) fn new() -> io::Result<Self> {
        let (sender, ended) = mpsc::unbounded_channel();
        Ok(Self { waits: platform::Waits::new(sender)?, ended })
    }

    pub(super) fn watch(&self, pid: u32) -> io::Result<bool> {
        self.waits.watch(pid)
    }

    pub(super) async fn ended(&mut self) -> io::Result<u32> {
        self.ended.recv().await.ok_or_else(|| io::ErrorKind::BrokenPipe.into())
    }
}
