//! Waits a limited time for work that may block forever: a bus, a display, a program or a folder that does not answer.

use std::io;
use std::sync::mpsc::{Receiver, channel};
use std::thread::Builder;
use std::time::Duration;

/// Runs `work` on a thread of this name and waits for its result. `None` if it is not there in time, or `work` panics.
///
/// Work that takes longer is not stopped: its thread remains until the work returns or the process exits, and the
/// result is dropped. So nothing that must be undone may depend on the result.
///
/// # Errors
/// The system refuses a thread.
pub(crate) fn run_within<T: Send + 'static>(
    name: &str,
    limit: Duration,
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<Option<T>> {
    Ok(start(name, work)?.recv_timeout(limit).ok())
}

/// Starts `work` on a thread of this name, as [`run_within`] does, and returns what will receive its result.
///
/// # Errors
/// The system refuses a thread.
pub(crate) fn start<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<Receiver<T>> {
    let (sender, result) = channel();
    let send = move || {
        let _ = sender.send(work()); // fails if nobody waits any longer
    };
    Builder::new().name(name.into()).spawn(send)?;
    Ok(result)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::Sender;

    #[test]
    fn a_result_in_time_is_returned() {
        assert_eq!(run_within("test", Duration::from_secs(20), || 7).unwrap(), Some(7));
    }

    #[test]
    fn work_that_takes_longer_is_left_to_finish_alone() {
        let (release, released): (Sender<()>, _) = channel();
        let (done, finished) = channel();
        let work = move || {
            let _ = released.recv();
            let _ = done.send(());
        };
        assert_eq!(run_within("test", Duration::from_millis(20), work).unwrap(), None);
        drop(release);
        finished.recv_timeout(Duration::from_secs(20)).unwrap();
    }
}
