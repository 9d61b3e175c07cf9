//! Reads keys for the live table, one at a time, without echo. Ctrl-C, Ctrl-Z and the like keep their usual effect.

use std::sync::mpsc::{self, Receiver, Sender};

/// A key that the table handles. Those that act do so on the selected session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Key {
    /// Leaves what is shown; the table itself ends.
    Quit,
    /// Goes back to the table.
    Back,
    /// Selects the session above.
    Up,
    /// Selects the session below.
    Down,
    /// Explains the session's status.
    Explain,
    /// Approves its request.
    Approve,
    /// Denies its request.
    Deny,
    /// Reconnects to it, or resumes it.
    Reconnect,
    /// Stops its turn.
    Stop,
    /// Answers its question.
    Answer,
    /// Brings its terminal to the front.
    Show,
    /// Says why some actions are not possible.
    More,
    /// Tries again to reach the machines that are not reached.
    Retry,
    /// Explains the keys.
    Help,
}

/// The key for a letter.
const fn letter(letter: char) -> Option<Key> {
    Some(match letter {
        'k' => Key::Up,
        'j' => Key::Down,
        'q' => Key::Quit,
        'a' => Key::Approve,
        'd' => Key::Deny,
        'r' => Key::Reconnect,
        's' => Key::Stop,
        'n' => Key::Answer,
        'o' => Key::Show,
        'm' => Key::More,
        't' => Key::Retry,
        '?' => Key::Help,
        _ => return None,
    })
}

/// The keys in a terminal's input. Escape sequences of other keys are skipped whole, so that no letter in them acts.
#[cfg(unix)]
fn keys(bytes: &[u8]) -> Vec<Key> {
    let (mut keys, mut rest) = (Vec::new(), bytes);
    while let [first, after @ ..] = rest {
        rest = after;
        keys.extend(match first {
            0x1b => match after {
                [b'[' | b'O', sequence @ ..] => {
                    let end = sequence.iter().position(|byte| (0x40..0x7f).contains(byte));
                    rest = end.map_or(&[][..], |end| &sequence[end + 1..]);
                    match sequence.first() {
                        Some(b'A') => Some(Key::Up),
                        Some(b'B') => Some(Key::Down),
                        _ => None,
                    }
                }
                // Esc itself comes alone; before another key, it is that one with Alt.
                [] => Some(Key::Back),
                [_, after @ ..] => {
                    rest = after;
                    None
                }
            },
            b'\r' | b'\n' => Some(Key::Explain),
            byte => letter(char::from(*byte)),
        });
    }
    keys
}

/// The terminal's keyboard.
#[derive(Default)]
pub(super) struct Keyboard {
    /// The terminal's original modes, to be restored.
    #[cfg(unix)]
    original: Option<rustix::termios::Termios>,
    reader: Option<Reader>,
}

/// The thread that reads keys. It pauses after each key until it is resumed: input typed while a command runs is for
/// that command.
struct Reader {
    keys: Receiver<Key>,
    resume: Sender<Rest>,
    /// The thread ends when this is closed.
    #[cfg(unix)]
    _end: std::os::fd::OwnedFd,
}

/// The reading thread's end of the channels.
struct KeySender<F> {
    keys: Sender<Key>,
    resumed: Receiver<Rest>,
    typed: F,
}

impl<F: Fn()> KeySender<F> {
    /// Creates both ends.
    fn new(typed: F) -> (Receiver<Key>, Sender<Rest>, Self) {
        let (send, keys) = mpsc::channel();
        let (resume, resumed) = mpsc::channel();
        (keys, resume, Self { keys: send, resumed, typed })
    }

    /// Sends a key, and waits to be resumed. `None` if the receiver is gone.
    fn send(&self, key: Key) -> Option<Rest> {
        self.keys.send(key).ok()?;
        (self.typed)();
        self.resumed.recv().ok()
    }
}

/// What to do with input that was read together with the last key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rest {
    /// Handle it next.
    Keep,
    /// Discard it.
    Drop,
}

impl Keyboard {
    /// Whether keys are read.
    pub(super) const fn is_reading(&self) -> bool {
        self.reader.is_some()
    }

    /// The key that was typed, if any. The next one arrives only after [`resume`](Self::resume).
    pub(super) fn typed(&self) -> Option<Key> {
        self.reader.as_ref()?.keys.try_recv().ok()
    }

    /// Lets the next key be read.
    pub(super) fn resume(&self, rest: Rest) {
        if let Some(reader) = &self.reader {
            let _ = reader.resume.send(rest); // fails only if the thread has ended
        }
    }
}

#[cfg(unix)]
impl Keyboard {
    /// Turns off echo and line buffering, if standard input is a terminal.
    pub(super) fn disable_echo(&mut self) {
        use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};
        let Ok(original) = tcgetattr(std::io::stdin()) else { return };
        let mut quiet = original.clone();
        quiet.local_modes.remove(LocalModes::ECHO | LocalModes::ICANON);
        if tcsetattr(std::io::stdin(), OptionalActions::Now, &quiet).is_ok() {
            self.original.get_or_insert(original);
        }
    }

    /// Restores the terminal, and discards pending input.
    pub(super) fn restore(&mut self) {
        use rustix::termios::{OptionalActions, tcsetattr};
        if let Some(original) = self.original.take() {
            let _ = tcsetattr(std::io::stdin(), OptionalActions::Flush, &original); // the terminal may be gone
        }
    }

    /// Starts reading keys, if standard input is a terminal and we are in its foreground. `typed` is called for each
    /// key.
    pub(super) fn start(&mut self, typed: impl Fn() + Send + 'static) -> std::io::Result<()> {
        use std::io::IsTerminal;
        if !std::io::stdin().is_terminal() || !is_foreground() || self.reader.is_some() {
            return Ok(());
        }
        let (ended, end) = rustix::pipe::pipe()?;
        let (keys, resume, sender) = KeySender::new(typed);
        std::thread::Builder::new().name("keys".into()).spawn(move || read_keys(&ended, &sender))?;
        self.reader = Some(Reader { keys, resume, _end: end });
        Ok(())
    }
}

/// Whether this program is in the terminal's foreground process group. A background process that reads is stopped
/// (SIGTTIN).
#[cfg(unix)]
fn is_foreground() -> bool {
    rustix::termios::tcgetpgrp(std::io::stdin()).is_ok_and(|foreground| foreground == rustix::process::getpgrp())
}

#[cfg(unix)]
fn read_keys(ended: &std::os::fd::OwnedFd, sender: &KeySender<impl Fn()>) {
    use rustix::event::{PollFd, PollFlags, poll};
    let stdin = std::io::stdin();
    let mut buffer = [0; 64];
    loop {
        let mut ready = [PollFd::new(&stdin, PollFlags::IN), PollFd::new(ended, PollFlags::IN)];
        match poll(&mut ready, None) {
            Err(rustix::io::Errno::INTR) => continue,
            Ok(_) if ready[1].revents().is_empty() && is_foreground() => {}
            _ => return,
        }
        let Ok(read @ 1..) = rustix::io::read(&stdin, &mut buffer) else { return };
        for key in keys(&buffer[..read]) {
            match sender.send(key) {
                Some(Rest::Keep) => {}
                Some(Rest::Drop) => break,
                None => return,
            }
        }
    }
}

#[cfg(not(unix))]
impl Keyboard {
    /// Does nothing: the Windows console only echoes what is read by lines.
    pub(super) fn disable_echo(&mut self) {}

    /// Does nothing.
    pub(super) fn restore(&mut self) {}

    /// Starts reading keys, if standard input is a console. `typed` is called for each key. The thread ends with the
    /// program.
    pub(super) fn start(&mut self, typed: impl Fn() + Send + 'static) -> std::io::Result<()> {
        use std::io::IsTerminal;
        if !std::io::stdin().is_terminal() || self.reader.is_some() {
            return Ok(());
        }
        let (keys, resume, sender) = KeySender::new(typed);
        std::thread::Builder::new().name("keys".into()).spawn(move || read_keys(&sender))?;
        self.reader = Some(Reader { keys, resume });
        Ok(())
    }
}

#[cfg(not(unix))]
fn read_keys(sender: &KeySender<impl Fn()>) {
    use crossterm::event::{poll, read};
    while let Ok(event) = read() {
        let Some(key) = key_of(&event) else { continue };
        match sender.send(key) {
            Some(Rest::Keep) => {}
            Some(Rest::Drop) => while poll(std::time::Duration::ZERO).unwrap_or(false) && read().is_ok() {},
            None => return,
        }
    }
}

/// The key of a key press. Combinations with Ctrl or Alt are not ours.
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
        KeyCode::Esc => Some(Key::Back),
        KeyCode::Char(c) => letter(c),
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
    fn keys_are_recognized_and_other_escape_sequences_are_skipped() {
        assert_eq!(keys(b"\x1b[A\x1bOBkj\rq"), [Key::Up, Key::Down, Key::Up, Key::Down, Key::Explain, Key::Quit]);
        assert_eq!(keys(b"adrs"), [Key::Approve, Key::Deny, Key::Reconnect, Key::Stop]);
        assert_eq!(keys(b"nom?"), [Key::Answer, Key::Show, Key::More, Key::Help]);
        // Ctrl-Right of some terminals, page up, F5, a click, Alt-x, an incomplete sequence, and keys without a meaning
        // here.
        assert_eq!(keys(b"\x1bOd\x1b[5~\x1b[15~\x1b[<0;1;2M\x1bx\x1b[1;5a!A\xc3\xa4"), []);
        assert_eq!(keys(b"\x1b[1;5"), []);
        assert_eq!(keys(b"\x1b[3~q"), [Key::Quit]);
        assert_eq!(keys(b"j\x1b"), [Key::Down, Key::Back], "Esc comes alone");
        assert_eq!(keys(b"\x1bq\x1bsj"), [Key::Down], "with Alt");
    }
}
