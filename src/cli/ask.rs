//! Questions on the terminal: before something is ended, answered or put right.

use std::io::{self, BufRead, IsTerminal, Write};

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
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer).ok()?;
    Some(matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
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
