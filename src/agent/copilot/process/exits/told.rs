//! Exits where the system tells of them on a thread of its own: what it tells is handed on to whoever waits.

use std::io;

use tokio::sync::mpsc;

use super::platform;

/// All that is watched.
pub(super) struct Waits {
    waits: platform::Waits,
    told: mpsc::UnboundedReceiver<u32>,
}

impl Waits {
    pub(super) fn new() -> io::Result<Self> {
        let (tell, told) = mpsc::unbounded_channel();
        let waits = platform::Waits::new(Box::new(move |pid| {
            let _ = tell.send(pid); // fails only when nobody waits any more
        }))?;
        Ok(Self { waits, told })
    }

    pub(super) fn watch(&self, pid: u32) -> io::Result<bool> {
        self.waits.watch(pid)
    }

    pub(super) async fn ended(&mut self) -> io::Result<u32> {
        self.told.recv().await.ok_or_else(|| io::ErrorKind::BrokenPipe.into())
    }
}
