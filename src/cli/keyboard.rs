//! What is typed while the live table is shown: nothing takes it, so it is not echoed into the table either. Ctrl-C, Ctrl-Z
//! and the like still are the terminal's.

/// How the terminal took what is typed before it was made to keep quiet.
#[derive(Default)]
pub(super) struct Keyboard {
    #[cfg(unix)]
    before: Option<rustix::termios::Termios>,
}

#[cfg(unix)]
impl Keyboard {
    /// Nothing typed is echoed from now on. Where standard input is no terminal there is nothing to do.
    pub(super) fn quieten(&mut self) {
        use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};
        let Ok(before) = tcgetattr(std::io::stdin()) else { return };
        let mut quiet = before.clone();
        quiet.local_modes.remove(LocalModes::ECHO | LocalModes::ICANON);
        if tcsetattr(std::io::stdin(), OptionalActions::Now, &quiet).is_ok() {
            self.before.get_or_insert(before);
        }
    }

    /// As it was before; what was typed meanwhile is thrown away.
    pub(super) fn restore(&mut self) {
        use rustix::termios::{OptionalActions, tcsetattr};
        if let Some(before) = self.before.take() {
            let _ = tcsetattr(std::io::stdin(), OptionalActions::Flush, &before); // the terminal may be gone
        }
    }
}

#[cfg(not(unix))]
impl Keyboard {
    /// Windows' console echoes only what is read.
    pub(super) fn quieten(&mut self) {}

    /// There is nothing to restore.
    pub(super) fn restore(&mut self) {}
}
