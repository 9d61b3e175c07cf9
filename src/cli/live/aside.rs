//! A command that has the terminal for a while, in place of the live table.

use super::super::Context;
use std::io::{self, BufRead, Write};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A command that runs, or whose output is being read.
pub(super) struct Aside {
    is_over: Arc<AtomicBool>,
}

impl Aside {
    /// Runs this program with these words on that session, and waits until its user has read what it said. `over` is called then.
    pub(super) fn begin(
        context: &Context,
        words: &[&str],
        id: &str,
        over: impl Fn() + Send + 'static,
    ) -> io::Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(words);
        // The homes that this table shows, however it came to know of them.
        command.args(context.homes.iter().flat_map(|home| ["--home".as_ref(), home.as_os_str()]));
        command.args(["--", id]);
        let is_over = Arc::<AtomicBool>::default();
        let done = Arc::clone(&is_over);
        let mut running = command.spawn()?;
        let wait = move || {
            let _ = running.wait(); // what it has to say it has said
            let mut out = io::stdout();
            let _ = write!(out, "\nEnter goes back to the table. ").and_then(|()| out.flush()); // a terminal that is gone needs none
            let _ = io::stdin().lock().read_line(&mut String::new());
            done.store(true, Ordering::Release);
            over();
        };
        std::thread::Builder::new().name("aside".into()).spawn(wait)?;
        Ok(Self { is_over })
    }

    /// Whether the terminal is the table's again.
    pub(super) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire)
    }
}
