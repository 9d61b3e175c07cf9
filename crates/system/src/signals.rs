//! Signals to the program, as a future: to exit, to suspend, and that its terminal has changed.

use std::io;

/// A signal, by its meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// Ctrl-C was pressed.
    Interrupt,
    /// The program must exit.
    End,
    /// The terminal was resized, or the program was continued: redraw.
    Redraw,
    /// Ctrl-Z was pressed: restore the terminal and stop until continued.
    Suspend,
}

/// Receives signals.
#[cfg(unix)]
pub struct Signals {
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
    /// Starts to receive signals, which then no longer have their default effects.
    ///
    /// # Errors
    /// The system refuses a handler.
    pub fn new() -> io::Result<Self> {
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

    pub async fn next(&mut self) -> Signal {
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

/// Stops this process until it is continued: the default effect of Ctrl-Z.
#[cfg(unix)]
pub fn suspend() {
    let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::STOP);
}

/// Does nothing: there is no such signal.
#[cfg(not(unix))]
pub fn suspend() {}

impl Signals {
    /// Waits for a signal to exit. Until then, Ctrl-Z has its default effect.
    pub async fn end(&mut self) {
        loop {
            match self.next().await {
                Signal::Interrupt | Signal::End => return,
                Signal::Suspend => suspend(),
                Signal::Redraw => {}
            }
        }
    }
}

/// Receives Ctrl-C, the only signal here.
#[cfg(not(unix))]
pub struct Signals;

#[cfg(not(unix))]
impl Signals {
    /// Never fails; the signature is that of the other systems.
    pub fn new() -> io::Result<Self> {
        Ok(Self)
    }

    /// The next signal. A resize is not reported: the next redraw notices it.
    pub async fn next(&mut self) -> Signal {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
        Signal::Interrupt
    }
}
