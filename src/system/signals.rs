//! The signals that end the program, or tell it that its terminal changed, as a future.

use std::io;

/// What a signal asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Signal {
    /// Somebody pressed Ctrl-C.
    Interrupt,
    /// End the program.
    End,
    /// The terminal has another size now, or is ours again.
    Redraw,
    /// Give the terminal back and stop until continued.
    Suspend,
}

/// Waits for signals.
#[cfg(unix)]
pub(crate) struct Signals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
    hang_up: tokio::signal::unix::Signal,
    quit: tokio::signal::unix::Signal,
    resize: tokio::signal::unix::Signal,
    resume: tokio::signal::unix::Signal,
    suspend: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    /// From now on the signals are waited for, and have no other effect.
    ///
    /// # Errors
    /// Where the system refuses.
    pub(crate) fn new() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hang_up: signal(SignalKind::hangup())?,
            quit: signal(SignalKind::quit())?,
            resize: signal(SignalKind::window_change())?,
            resume: signal(SignalKind::from_raw(rustix::process::Signal::CONT.as_raw()))?,
            suspend: signal(SignalKind::from_raw(rustix::process::Signal::TSTP.as_raw()))?,
        })
    }

    /// The next signal.
    pub(crate) async fn next(&mut self) -> Signal {
        tokio::select! {
            _ = self.interrupt.recv() => Signal::Interrupt,
            _ = self.terminate.recv() => Signal::End,
            _ = self.hang_up.recv() => Signal::End,
            _ = self.quit.recv() => Signal::End,
            _ = self.resize.recv() => Signal::Redraw,
            _ = self.resume.recv() => Signal::Redraw,
            _ = self.suspend.recv() => Signal::Suspend,
        }
    }
}

/// Stops this process until it is continued, as Ctrl-Z does by itself where nobody waits for it.
#[cfg(unix)]
pub(crate) fn suspend() {
    let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::STOP);
}

/// There is no such signal here.
#[cfg(not(unix))]
pub(crate) fn suspend() {}

impl Signals {
    /// Waits for a signal that ends a program; Ctrl-Z works meanwhile as it does elsewhere.
    pub(crate) async fn end(&mut self) {
        loop {
            match self.next().await {
                Signal::Interrupt | Signal::End => return,
                Signal::Suspend => suspend(),
                Signal::Redraw => {}
            }
        }
    }
}

/// Waits for Ctrl-C.
#[cfg(not(unix))]
pub(crate) struct Signals;

#[cfg(not(unix))]
impl Signals {
    /// Nothing can fail here; the signature is that of the other systems.
    ///
    /// # Errors
    /// None.
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self)
    }

    /// The next signal. A new size is not told here: the next redraw takes it.
    pub(crate) async fn next(&mut self) -> Signal {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
        Signal::Interrupt
    }
}
