//! Writes standard output on a thread of its own: a slow reader blocks nothing else, and a closed pipe is noticed at
//! once instead of at the next write.

use anyhow::Context;
use std::io::{self, Write};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::Builder;

/// Maximum number of bytes queued. A reader that falls further behind will not catch up.
const WAITING_MAX: usize = 64 << 20;

/// Has `gone` called when the reader of standard output closes the pipe, as `head` does.
///
/// # Errors
/// The system refuses a thread.
#[cfg(unix)]
pub(super) fn notice_reader(gone: impl Fn() + Send + 'static) -> io::Result<()> {
    let notice = move || {
        use rustix::event::{PollFd, PollFlags, poll};
        let stdout = io::stdout();
        // Without requested events, poll returns when the other end is closed, and never for a file, which has none.
        let mut closed = [PollFd::new(&stdout, PollFlags::empty())];
        while let Err(rustix::io::Errno::INTR) = poll(&mut closed, None) {}
        if closed[0].revents().intersects(PollFlags::ERR | PollFlags::HUP) {
            gone();
        }
    };
    Builder::new().name("reader".into()).spawn(notice).map(drop)
}

/// Elsewhere, the next write fails.
#[cfg(not(unix))]
pub(super) fn notice_reader(_gone: impl Fn() + Send + 'static) -> io::Result<()> {
    Ok(())
}

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
    /// Starts the threads. `gone` is called when the reader closes the pipe or a write fails.
    ///
    /// # Errors
    /// If the system refuses a thread.
    pub(super) fn start(gone: impl Fn() + Clone + Send + 'static) -> anyhow::Result<Self> {
        const REFUSED: &str = "the system refuses a thread to write with";
        let (blocks, queue) = channel::<Vec<u8>>();
        let shared = Arc::new(Shared::default());
        let (thread_shared, write_failed) = (Arc::clone(&shared), gone.clone());
        let write = move || {
            for block in queue {
                let mut stdout = io::stdout().lock();
                let written = stdout.write_all(&block).and_then(|()| stdout.flush());
                thread_shared.waiting.fetch_sub(block.len(), Ordering::Relaxed);
                if let Err(error) = written {
                    *thread_shared.failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                    return write_failed();
                }
            }
        };
        Builder::new().name("output".into()).spawn(write).context(REFUSED)?;
        notice_reader(gone).context(REFUSED)?;
        Ok(Self { blocks, shared })
    }

    /// Queues a block. Returns false if it will not be written.
    pub(super) fn write(&self, block: Vec<u8>) -> bool {
        let waiting = self.shared.waiting.fetch_add(block.len(), Ordering::Relaxed) + block.len();
        if waiting > WAITING_MAX {
            let error = io::Error::other("the reader of the output is too far behind");
            self.shared.failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
            return false;
        }
        self.blocks.send(block).is_ok()
    }

    /// Returns the first error, if there was one.
    pub(super) fn end(self) -> io::Result<()> {
        self.shared.failed.lock().unwrap_or_else(PoisonError::into_inner).take().map_or(Ok(()), Err)
    }
}
