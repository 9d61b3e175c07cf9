//! Questions on the terminal.

use super::fold::on_stderr;
use pilotlight_system::signals::Signals;
use std::io::{self, BufRead, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::oneshot;

/// Said where a question would have to be asked, and nobody can be.
pub(super) const CANNOT_ASK: &str = "Pilotlight cannot ask you without a terminal";

/// Whether there is a terminal to ask on.
pub(super) fn has_terminal() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Asks a yes-or-no question; `None` without a terminal. Anything but a yes is a no.
pub(super) fn confirm(question: &str) -> Option<bool> {
    let answer = prompt(&format!("{question} [y/N] "))?;
    Some(matches!(answer.to_ascii_lowercase().as_str(), "y" | "yes"))
}

/// Asks for a line; `None` without a terminal. Empty if nothing was typed, and from the first Ctrl-C on.
pub(super) fn prompt(question: &str) -> Option<String> {
    static INTERRUPTED: AtomicBool = AtomicBool::new(false);
    if !has_terminal() {
        return None;
    }
    if INTERRUPTED.load(Ordering::Relaxed) {
        return Some(String::new());
    }
    let runtime = super::context::runtime().ok()?;
    // Ctrl-C is for the question from its first character on.
    let mut signals = runtime.block_on(async { Signals::new() }).ok()?;
    discard_typeahead();
    let mut stderr = io::stderr();
    let question = on_stderr(question);
    let _ = write!(stderr, "{question}").and_then(|()| stderr.flush()); // it is a terminal
    let typed = read_line()?;
    let typed = runtime.block_on(async {
        tokio::select! {
            line = typed => line.ok()?.ok(),
            () = signals.end() => {
                INTERRUPTED.store(true, Ordering::Relaxed);
                let _ = writeln!(stderr);
                Some(String::new())
            }
        }
    })?;
    Some(typed.trim().to_owned())
}

/// Reads a line from the terminal, in a thread of its own: nothing ends such a reading but a line.
fn read_line() -> Option<oneshot::Receiver<io::Result<String>>> {
    let (line, typed) = oneshot::channel();
    let read = move || {
        let mut answer = String::new();
        let read = io::stdin().lock().read_line(&mut answer);
        let _ = line.send(read.map(|_| answer)); // fails only after Ctrl-C
    };
    std::thread::Builder::new().name("typed".into()).spawn(read).ok()?;
    Some(typed)
}

/// Discards what was typed before the question was shown: those keys may have been meant for something else.
pub(super) fn discard_typeahead() {
    #[cfg(unix)]
    {
        use rustix::termios::{QueueSelector, tcflush};
        let _ = tcflush(io::stdin(), QueueSelector::IFlush); // fails only if there is nothing to discard
    }
}
