//! Questions on the terminal: before something is ended, answered or put right.

use crate::system::signals::Signals;
use std::io::{self, BufRead, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::oneshot;

/// Whether there is a terminal that a question can be put on, and answered.
pub(super) fn has_terminal() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Asks on the terminal; `None` where there is none. Anything but a yes is a no.
pub(super) fn confirm(question: &str) -> Option<bool> {
    if !has_terminal() {
        return None;
    }
    forget_typed();
    let mut stderr = io::stderr();
    let _ = write!(stderr, "{question} [y/N] ").and_then(|()| stderr.flush()); // it is a terminal
    let answer = typed()?;
    Some(matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
}

/// Asks for a line on the terminal; `None` where there is none. Empty where nothing was typed, or Ctrl-C.
pub(super) fn line(question: &str) -> Option<String> {
    if !has_terminal() {
        return None;
    }
    forget_typed();
    let mut stderr = io::stderr();
    let _ = write!(stderr, "{question}").and_then(|()| stderr.flush()); // it is a terminal
    Some(typed()?.trim().to_owned())
}

/// The line that is typed next; nothing from the first Ctrl-C on. Whoever carried an order out before has taken Ctrl-C over, so
/// that it is waited for here as well.
fn typed() -> Option<String> {
    static INTERRUPTED: AtomicBool = AtomicBool::new(false);
    if INTERRUPTED.load(Ordering::Relaxed) {
        return Some(String::new());
    }
    let runtime = super::runtime().ok()?;
    let (line, typed) = oneshot::channel();
    let read = move || {
        let mut answer = String::new();
        let read = io::stdin().lock().read_line(&mut answer);
        let _ = line.send(read.map(|_| answer)); // nobody waits for it after Ctrl-C
    };
    std::thread::Builder::new().name("typed".into()).spawn(read).ok()?;
    runtime.block_on(async {
        let mut signals = Signals::new().ok()?;
        tokio::select! {
            line = typed => line.ok()?.ok(),
            () = signals.end() => {
                INTERRUPTED.store(true, Ordering::Relaxed);
                let _ = writeln!(io::stderr());
                Some(String::new())
            }
        }
    })
}

/// What was typed before a question stood there is no answer to it: a new window may take the keys that were meant for
/// another.
pub(super) fn forget_typed() {
    #[cfg(unix)]
    {
        use rustix::termios::{QueueSelector, tcflush};
        let _ = tcflush(io::stdin(), QueueSelector::IFlush); // a terminal that cannot has nothing waiting
    }
}
