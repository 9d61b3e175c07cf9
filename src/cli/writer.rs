//! Standard output, written by a thread of its own: a reader that does not read holds up nothing else, and one that went away
//! is noticed at once, not at the next change.

use anyhow::Context;
use std::io::{self, Write};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::Builder;

/// So many bytes may wait for a reader; who is behind further than that is not going to catch up.
const WAITING_MAX: usize = 64 << 20;

/// Writes blocks to standard output, in order.
pub(super) struct Writer {
    blocks: Sender<Vec<u8>>,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    waiting: AtomicUsize,
    failed: Mutex<Option<io::Error>>,
}

impl Writer {
    /// Starts to write. `gone` is called when nobody reads any more, or writing fails.
    ///
    /// # Errors
    /// Where the system refuses a thread.
    pub(super) fn start(gone: impl Fn() + Clone + Send + 'static) -> anyhow::Result<Self> {
        const REFUSED: &str = "the system refuses a thread to write with";
        let (blocks, queue) = channel::<Vec<u8>>();
        let shared = Arc::new(Shared::default());
        let (of_thread, tell) = (Arc::clone(&shared), gone.clone());
        let write = move || {
            for block in queue {
                let mut stdout = io::stdout().lock();
                let written = stdout.write_all(&block).and_then(|()| stdout.flush());
                of_thread.waiting.fetch_sub(block.len(), Ordering::Relaxed);
                if let Err(error) = written {
                    *of_thread.failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                    return tell();
                }
            }
        };
        Builder::new().name("output".into()).spawn(write).context(REFUSED)?;
        #[cfg(unix)]
        let notice = move || {
            use rustix::event::{PollFd, PollFlags, poll};
            let stdout = io::stdout();
            // Without a wish of ours it returns when the other end is closed, and never for what has no other end.
            let mut closed = [PollFd::new(&stdout, PollFlags::empty())];
            while let Err(rustix::io::Errno::INTR) = poll(&mut closed, None) {}
            if closed[0].revents().intersects(PollFlags::ERR | PollFlags::HUP) {
                gone();
            }
        };
        #[cfg(unix)]
        Builder::new().name("reader".into()).spawn(notice).context(REFUSED)?;
        Ok(Self { blocks, shared })
    }

    /// Hands a block over. Whether it will be written.
    pub(super) fn write(&self, block: Vec<u8>) -> bool {
        let waiting = self.shared.waiting.fetch_add(block.len(), Ordering::Relaxed) + block.len();
        if waiting > WAITING_MAX {
            let error = io::Error::other("the reader of the output is too far behind");
            self.shared.failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
            return false;
        }
        self.blocks.send(block).is_ok()
    }

    /// What went wrong, if anything did.
    pub(super) fn end(self) -> io::Result<()> {
        self.shared.failed.lock().unwrap_or_else(PoisonError::into_inner).take().map_or(Ok(()), Err)
    }
}
