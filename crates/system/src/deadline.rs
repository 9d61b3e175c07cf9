//! Waits a limited time for work that may block forever: a bus, a display, a program or a folder that does not answer.

use std::fs::{File, TryLockError};
use std::io::{self, Write};
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
pub fn run_within<T: Send + 'static>(
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
pub fn start<T: Send + 'static>(name: &str, work: impl FnOnce() -> T + Send + 'static) -> io::Result<Receiver<T>> {
    let (sender, result) = channel();
    let send = move || {
        let _ = sender.send(work()); // fails if nobody waits any longer
    };
    Builder::new().name(name.into()).spawn(send)?;
    Ok(result)
}

/// Waits for the lock of a file whose content is nobody's, for as long as it goes from one to the next: whoever gets it
/// marks that in the file. `None` if nobody did for `patience`: its holder has stopped.
///
/// # Errors
/// The file cannot be locked, or the system refuses a thread.
pub fn lock_in_turn(file: File, patience: Duration) -> io::Result<Option<File>> {
    match file.try_lock() {
        Ok(()) => return Ok(Some(marked(file))),
        Err(TryLockError::WouldBlock) => {}
        Err(TryLockError::Error(error)) => return Err(error),
    }
    let marks = file.try_clone()?;
    let last_mark = || marks.metadata().and_then(|meta| meta.modified()).ok();
    let mut seen = last_mark();
    let turn = start("lock", move || file.lock().map(|()| file))?;
    loop {
        if let Ok(locked) = turn.recv_timeout(patience) {
            return locked.map(|file| Some(marked(file)));
        }
        let last = last_mark();
        if last == seen {
            return Ok(None);
        }
        seen = last;
    }
}

fn marked(file: File) -> File {
    let _ = (&file).write(b"."); // without a mark, others are less patient
    file
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::Sender;
    use std::time::Instant;

    /// As of many that report at once on a busy machine.
    #[test]
    fn case_506_a_lock_is_waited_for_while_it_goes_from_one_to_the_next() {
        let scratch = tempfile::tempdir().unwrap();
        let open =
            || File::options().create(true).truncate(false).write(true).open(scratch.path().join("lock")).unwrap();
        let held = lock_in_turn(open(), Duration::ZERO).unwrap().unwrap();
        assert!(lock_in_turn(open(), Duration::from_millis(20)).unwrap().is_none(), "its holder has stopped");
        let patience = Duration::from_secs(2);
        let file = open();
        let waits = std::thread::spawn(move || lock_in_turn(file, patience).unwrap().is_some());
        let begun = Instant::now();
        while begun.elapsed() < patience + patience / 2 {
            (&held).write_all(b".").unwrap();
            std::thread::park_timeout(Duration::from_millis(20));
        }
        drop(held);
        assert!(waits.join().unwrap());
    }

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
