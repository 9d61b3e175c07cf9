//! What is typed while the live table is shown: keys that move about in it and act, taken one at a time. Nothing is echoed into
//! the table. Ctrl-C, Ctrl-Z and the like still are the terminal's.

use std::sync::mpsc::{self, Receiver, Sender};

/// A key that the table knows.
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

/// The key that a letter is.
const fn letter(letter: char) -> Option<Key> {
    Some(match letter {
        'k' => Key::Up,
        'j' => Key::Down,
        'q' => Key::Quit,
        'a' => Key::Approve,
        'd' => Key::Deny,
        'r' => Key::Reconnect,
        's' => Key::Stop,
        _ => return None,
    })
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
            b'\r' | b'\n' => Some(Key::Explain),
            byte => letter(char::from(*byte)),
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
    reader: Option<Reader>,
}

/// The thread that reads. It reads no further before it is told to: what is typed while a command asks is for that command.
struct Reader {
    keys: Receiver<Key>,
    go_on: Sender<Rest>,
    /// Closed, it ends the thread.
    #[cfg(unix)]
    _end: std::os::fd::OwnedFd,
}

/// The thread's end of it.
struct Hand<F> {
    send: Sender<Key>,
    may_go_on: Receiver<Rest>,
    typed: F,
}

impl<F: Fn()> Hand<F> {
    /// With the other ends of it.
    fn new(typed: F) -> (Receiver<Key>, Sender<Rest>, Self) {
        let (send, keys) = mpsc::channel();
        let (go_on, may_go_on) = mpsc::channel();
        (keys, go_on, Self { send, may_go_on, typed })
    }

    /// Hands a key over, and waits until it was taken. `None`: nobody takes keys any more.
    fn over(&self, key: Key) -> Option<Rest> {
        self.send.send(key).ok()?;
        (self.typed)();
        self.may_go_on.recv().ok()
    }
}

/// What becomes of the keys that were read together with the one that was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rest {
    /// They are next.
    Next,
    /// They were for something else.
    Dropped,
}

impl Keyboard {
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
        let (keys, go_on, hand) = Hand::new(typed);
        std::thread::Builder::new().name("keys".into()).spawn(move || read_keys(&ended, &hand))?;
        self.reader = Some(Reader { keys, go_on, _end: end });
        Ok(())
    }
}

/// Whether what is typed is for this program. One in the background that reads is stopped.
#[cfg(unix)]
fn is_in_front() -> bool {
    rustix::termios::tcgetpgrp(std::io::stdin()).is_ok_and(|front| front == rustix::process::getpgrp())
}

#[cfg(unix)]
fn read_keys(ended: &std::os::fd::OwnedFd, hand: &Hand<impl Fn()>) {
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
            match hand.over(key) {
                Some(Rest::Next) => {}
                Some(Rest::Dropped) => break,
                None => return,
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

    /// Reads keys from now on, where there is a console to read them from; `typed` is called for each. The thread ends with the
    /// program.
    pub(super) fn read(&mut self, typed: impl Fn() + Send + 'static) -> std::io::Result<()> {
        use std::io::IsTerminal;
        if !std::io::stdin().is_terminal() || self.reader.is_some() {
            return Ok(());
        }
        let (keys, go_on, hand) = Hand::new(typed);
        std::thread::Builder::new().name("keys".into()).spawn(move || read_keys(&hand))?;
        self.reader = Some(Reader { keys, go_on });
        Ok(())
    }
}

#[cfg(not(unix))]
fn read_keys(hand: &Hand<impl Fn()>) {
    use crossterm::event::{poll, read};
    while let Ok(event) = read() {
        let Some(key) = key_of(&event) else { continue };
        match hand.over(key) {
            Some(Rest::Next) => {}
            Some(Rest::Dropped) => while poll(std::time::Duration::ZERO).unwrap_or(false) && read().is_ok() {},
            None => return,
        }
    }
}

/// The key that was pressed. What is held together with Ctrl or Alt means something else.
#[cfg(not(unix))]
fn key_of(event: &crossterm::event::Event) -> Option<Key> {
    use crossterm::event::{Event, KeyCode, KeyEventKind, KeyModifiers};
    let Event::Key(pressed) = event else { return None };
    if pressed.kind == KeyEventKind::Release || pressed.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT)
    {
        return None;
    }
    match pressed.code {
        KeyCode::Up => Some(Key::Up),
        KeyCode::Down => Some(Key::Down),
        KeyCode::Enter => Some(Key::Explain),
        KeyCode::Char(of) => letter(of),
        _ => None,
    }
}

#[cfg(all(test, not(unix)))]
mod tests {
    use super::*;
    use crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

    #[test]
    fn a_key_acts_when_it_is_pressed_alone() {
        let of = |code, modifiers, kind| key_of(&Event::Key(KeyEvent::new_with_kind(code, modifiers, kind)));
        let pressed = |code| of(code, KeyModifiers::NONE, KeyEventKind::Press);
        let codes = [KeyCode::Up, KeyCode::Char('j'), KeyCode::Enter, KeyCode::Char('a'), KeyCode::Char('x')];
        assert_eq!(codes.map(pressed), [Some(Key::Up), Some(Key::Down), Some(Key::Explain), Some(Key::Approve), None]);
        assert_eq!(of(KeyCode::Char('a'), KeyModifiers::NONE, KeyEventKind::Release), None);
        assert_eq!(of(KeyCode::Char('d'), KeyModifiers::CONTROL, KeyEventKind::Press), None);
    }
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
