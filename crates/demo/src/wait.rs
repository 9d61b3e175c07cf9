//! What ends a process of the demo that runs a session.

use pilotlight_system::process::Exits;
use pilotlight_system::signals::Signals;
use std::future::pending;
use std::io::{self, BufRead};
use tokio::sync::oneshot;

/// What ends it, besides the end of its standard input.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Until {
    /// A line on its standard input.
    pub line: bool,
    /// The end of this process.
    pub exit: Option<u32>,
    /// A signal, which would otherwise kill it.
    pub signal: bool,
}

impl Until {
    /// Calls `ready` when nothing of that can be missed any more, and waits.
    ///
    /// # Errors
    /// If the system refuses a thread, a handler or to watch the process.
    pub(crate) fn wait(self, ready: impl FnOnce() -> io::Result<()>) -> anyhow::Result<()> {
        tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
            let mut signals = self.signal.then(Signals::new).transpose()?;
            let mut exits = self.exit.map(|_| Exits::new()).transpose()?;
            if let (Some(exits), Some(pid)) = (&mut exits, self.exit)
                && !exits.watch(pid)?
            {
                return Ok(());
            }
            ready()?;
            let input = self.input()?;
            let signal = async {
                match &mut signals {
                    Some(signals) => signals.end().await,
                    None => pending().await,
                }
            };
            let exit = async {
                match &mut exits {
                    Some(exits) => exits.ended().await.map(drop),
                    None => pending().await,
                }
            };
            tokio::select! {
                _ = input => {}
                () = signal => {}
                ended = exit => ended?,
            }
            Ok(())
        })
    }

    /// What comes over standard input.
    fn input(self) -> io::Result<oneshot::Receiver<()>> {
        let (ended, input) = oneshot::channel();
        let read = move || {
            let mut stdin = io::stdin().lock();
            // An error is an end, too.
            let _ = if self.line {
                stdin.read_line(&mut String::new()).map(drop)
            } else {
                io::copy(&mut stdin, &mut io::sink()).map(drop)
            };
            let _ = ended.send(()); // fails only if something else has ended it
        };
        std::thread::Builder::new().name("input".into()).spawn(read)?;
        Ok(input)
    }
}
