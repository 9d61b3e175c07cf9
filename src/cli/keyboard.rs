//! What is typed while the live table is shown: keys that move about in it and act, taken one at a time. Nothing is echoed into
//! the table. Ctrl-C, Ctrl-Z and the like still are the terminal's.

/// A key that the table knows.
#[cfg_attr(not(unix), allow(dead_code, reason = "keys are read on Unix alone"))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Key {
    /// The table ends.
    Quit,
    /// The session above is chosen.
    Up,
    /// The session below is.
    Down,
    /// What is known of the chosen session is shown.
    Explain,
    /// What it asks for is allowed.
    Approve,
    /// What it asks for is refused.
    Deny,
    /// It is brought back under control.
    Reconnect,
    /// Its turn is stopped.
    Stop,
}

/// The keys in what a terminal sent. Sequences that mean other keys are passed over whole, so that no letter in them acts.
#[cfg(unix)]
fn keys(bytes: &[u8]) -> Vec<Key> {
    let (mut keys, mut rest) = (Vec::new(), bytes);
    while let [first, after @ ..] = rest {
        rest = after;
        keys.extend(match first {
            0x1b => {
                let [b'[' | b'O', sequence @ ..] = after else { continue };
                let end = sequence.iter().position(|byte| (0x40..0x7f).contains(byte));
                rest = end.map_or(&[][..], |end| &sequence[end + 1..]);
                match sequence.first() {
                    Some(b'A') => Some(Key::Up),
                    Some(b'B') => Some(Key::Down),
                    _ => None,
                }
            }
            b'k' => Some(Key::Up),
            b'j' => Some(Key::Down),
            b'\r' | b'\n' => Some(Key::Explain),
            b'q' => Some(Key::Quit),
            b'a' => Some(Key::Approve),
            b'd' => Some(Key::Deny),
            b'r' => Some(Key::Reconnect),
            b's' => Some(Key::Stop),
            _ => None,
        });
    }
    keys
}

/// The terminal's keyboard.
#[derive(Default)]
pub(super) struct Keyboard {
    /// How the terminal took what is typed before it was made to keep quiet.
    #[cfg(unix)]
    before: Option<rustix::termios::Termios>,
    #[cfg(unix)]
    reader: Option<Reader>,
}

/// The thread that reads. It reads no further before it is told to: what is typed while a command asks is for that command.
#[cfg(unix)]
struct Reader {
    keys: std::sync::mpsc::Receiver<Key>,
    go_on: std::sync::mpsc::Sender<Rest>,
    /// Closed, it ends the thread.
    _end: std::os::fd::OwnedFd,
}

/// What becomes of the keys that were read together with the one that was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rest {
    /// They are next.
    Next,
    /// They were for something else.
    Dropped,
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

    /// Reads keys from now on, where there is a terminal to read them from; `typed` is called for each.
    pub(super) fn read(&mut self, typed: impl Fn() + Send + 'static) -> std::io::Result<()> {
        use std::io::IsTerminal;
        if !std::io::stdin().is_terminal() || !is_in_front() || self.reader.is_some() {
            return Ok(());
        }
        let (ended, end) = rustix::pipe::pipe()?;
        let (send, keys) = std::sync::mpsc::channel();
        let (go_on, may_go_on) = std::sync::mpsc::channel();
        let reads = move || read_keys(&ended, &send, &may_go_on, &typed);
        std::thread::Builder::new().name("keys".into()).spawn(reads)?;
        self.reader = Some(Reader { keys, go_on, _end: end });
        Ok(())
    }

    /// Whether keys are read.
    pub(super) const fn is_read(&self) -> bool {
        self.reader.is_some()
    }

    /// The key that was typed. No further one comes before [`go_on`](Self::go_on).
    pub(super) fn typed(&self) -> Option<Key> {
        self.reader.as_ref()?.keys.try_recv().ok()
    }

    /// Takes the next key.
    pub(super) fn go_on(&self, rest: Rest) {
        if let Some(reader) = &self.reader {
            let _ = reader.go_on.send(rest); // a thread that has ended reads no more
        }
    }
}

/// Whether what is typed is for this program. One in the background that reads is stopped.
#[cfg(unix)]
fn is_in_front() -> bool {
    rustix::termios::tcgetpgrp(std::io::stdin()).is_ok_and(|front| front == rustix::process::getpgrp())
}

#[cfg(unix)]
fn read_keys(
    ended: &std::os::fd::OwnedFd,
    send: &std::sync::mpsc::Sender<Key>,
    may_go_on: &std::sync::mpsc::Receiver<Rest>,
    typed: &impl Fn(),
) {
    use rustix::event::{PollFd, PollFlags, poll};
    let stdin = std::io::stdin();
    let mut buffer = [0; 64];
    loop {
        let mut ready = [PollFd::new(&stdin, PollFlags::IN), PollFd::new(ended, PollFlags::IN)];
        match poll(&mut ready, None) {
            Err(rustix::io::Errno::INTR) => continue,
            Ok(_) if ready[1].revents().is_empty() && is_in_front() => {}
            _ => return,
        }
        let Ok(read @ 1..) = rustix::io::read(&stdin, &mut buffer) else { return };
        for key in keys(&buffer[..read]) {
            if send.send(key).is_err() {
                return;
            }
            typed();
            match may_go_on.recv() {
                Ok(Rest::Next) => {}
                Ok(Rest::Dropped) => break,
                Err(_) => return,
            }
        }
    }
}

#[cfg(not(unix))]
impl Keyboard {
    /// Windows' console echoes only what is read.
    pub(super) fn quieten(&mut self) {}

    /// There is nothing to restore.
    pub(super) fn restore(&mut self) {}

    /// Keys are not read here.
    pub(super) fn read(&mut self, _typed: impl Fn() + Send + 'static) -> std::io::Result<()> {
        Ok(())
    }

    pub(super) const fn is_read(&self) -> bool {
        false
    }

    pub(super) fn typed(&self) -> Option<Key> {
        None
    }

    pub(super) fn go_on(&self, _rest: Rest) {}
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn keys_are_known_and_no_letter_of_another_key_acts() {
        assert_eq!(keys(b"\x1b[A\x1bOBkj\rq"), [Key::Up, Key::Down, Key::Up, Key::Down, Key::Explain, Key::Quit]);
        assert_eq!(keys(b"adrs"), [Key::Approve, Key::Deny, Key::Reconnect, Key::Stop]);
        // Ctrl-Right of some terminals, page up, F5, a click, Alt-x, an unfinished one, and keys that mean nothing here.
        assert_eq!(keys(b"\x1bOd\x1b[5~\x1b[15~\x1b[<0;1;2M\x1bx\x1b[1;5a?A\xc3\xa4"), []);
        assert_eq!(keys(b"\x1b[1;5"), []);
        assert_eq!(keys(b"\x1b[3~q"), [Key::Quit]);
    }
}
