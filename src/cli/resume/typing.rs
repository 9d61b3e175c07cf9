//! What is typed into the picker: text, and the keys that edit it and choose.

use std::io;

/// A key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Typed {
    Character(char),
    /// Deletes the last character.
    Erase,
    /// Deletes the last word.
    EraseWord,
    /// Deletes everything.
    EraseAll,
    Up,
    Down,
    PageUp,
    PageDown,
    /// Resumes the selected session.
    Choose,
    /// Ends the picker.
    Leave,
}

/// The key of a control character, as shells and editors of a line take them.
fn control(character: char) -> Option<Typed> {
    Some(match character {
        '\r' | '\n' => Typed::Choose,
        '\u{7f}' | '\u{8}' => Typed::Erase,
        '\u{17}' => Typed::EraseWord,
        '\u{15}' => Typed::EraseAll,
        '\u{10}' => Typed::Up,
        '\u{e}' => Typed::Down,
        '\u{4}' => Typed::Leave,
        _ => return None,
    })
}

/// The keys of a terminal's input. What is not complete yet stays in `input`, but for a lone Escape: that is the key.
#[cfg(unix)]
fn keys(input: &mut Vec<u8>) -> Vec<Typed> {
    let complete = match std::str::from_utf8(input) {
        Err(error) if error.error_len().is_none() => error.valid_up_to(),
        _ => input.len(),
    };
    let rest = input.split_off(complete);
    let text = String::from_utf8_lossy(&std::mem::replace(input, rest)).into_owned();
    let (mut keys, mut text) = (Vec::new(), &*text);
    while let Some(first) = text.chars().next() {
        text = &text[first.len_utf8()..];
        if first != '\u{1b}' {
            keys.extend(control(first).or_else(|| (!first.is_control()).then_some(Typed::Character(first))));
            continue;
        }
        // A sequence is skipped whole, so that no letter in it is text.
        let Some(sequence) = text.strip_prefix(['[', 'O']) else {
            if text.is_empty() {
                keys.push(Typed::Leave);
            }
            continue;
        };
        let end = sequence.find(|c: char| ('@'..='~').contains(&c)).map_or(sequence.len(), |at| at + 1);
        keys.extend(match &sequence[..end] {
            "A" => Some(Typed::Up),
            "B" => Some(Typed::Down),
            "5~" => Some(Typed::PageUp),
            "6~" => Some(Typed::PageDown),
            _ => None,
        });
        text = &sequence[end..];
    }
    keys
}

/// Reads keys from the terminal, on a thread of its own, which reads only what is asked for: what is typed after the last
/// key is for whoever reads next.
#[cfg(unix)]
pub(super) struct Typing {
    /// Asks for input. The thread waits for that.
    ask: std::sync::mpsc::Sender<()>,
    is_asked: bool,
    /// What was read; empty at the end of the input.
    read: tokio::sync::mpsc::UnboundedReceiver<Vec<u8>>,
    input: Vec<u8>,
    /// The thread ends when this is closed.
    _end: std::os::fd::OwnedFd,
}

#[cfg(unix)]
impl Typing {
    /// How long the rest of a sequence may take after its Escape.
    const REST_WITHIN: std::time::Duration = std::time::Duration::from_millis(50);

    pub(super) fn new() -> io::Result<Self> {
        let (ended, end) = rustix::pipe::pipe()?;
        let (ask, asked) = std::sync::mpsc::channel();
        let (send, read) = tokio::sync::mpsc::unbounded_channel();
        let work = move || while asked.recv().is_ok() && read_into(&send, &ended) {};
        std::thread::Builder::new().name("typed".into()).spawn(work)?;
        Ok(Self { ask, is_asked: false, read, input: Vec::new(), _end: end })
    }

    /// The next keys. The terminal's end leaves the picker.
    pub(super) async fn next(&mut self) -> io::Result<Vec<Typed>> {
        if !self.read().await {
            return Ok(vec![Typed::Leave]);
        }
        if self.input == b"\x1b" {
            let _ = tokio::time::timeout(Self::REST_WITHIN, self.read()).await; // a lone Escape has no rest
        }
        Ok(keys(&mut self.input))
    }

    /// Reads what was typed. False at the end of the input.
    async fn read(&mut self) -> bool {
        if !std::mem::replace(&mut self.is_asked, true) {
            let _ = self.ask.send(()); // without the thread, nothing is read
        }
        let read = self.read.recv().await.unwrap_or_default();
        self.is_asked = false;
        self.input.extend(&read);
        !read.is_empty()
    }
}

/// Waits for input, and sends it. False at its end, or if nobody waits any more.
#[cfg(unix)]
fn read_into(send: &tokio::sync::mpsc::UnboundedSender<Vec<u8>>, ended: &std::os::fd::OwnedFd) -> bool {
    use rustix::event::{PollFd, PollFlags, poll};
    let stdin = io::stdin();
    let mut buffer = vec![0; 1024];
    loop {
        let mut ready = [PollFd::new(&stdin, PollFlags::IN), PollFd::new(ended, PollFlags::IN)];
        match poll(&mut ready, None) {
            Err(rustix::io::Errno::INTR) => continue,
            Ok(_) if ready[1].revents().is_empty() => {}
            _ => return false,
        }
        let length = rustix::io::read(&stdin, &mut buffer[..]).unwrap_or(0);
        buffer.truncate(length);
        let has_ended = buffer.is_empty();
        return send.send(buffer).is_ok() && !has_ended;
    }
}

/// Reads keys from the console.
#[cfg(not(unix))]
pub(super) struct Typing;

#[cfg(not(unix))]
impl Typing {
    pub(super) fn new() -> io::Result<Self> {
        crossterm::terminal::enable_raw_mode().map(|()| Self)
    }

    /// The next key. Blocks: the console gives its keys to whoever reads them.
    pub(super) async fn next(&mut self) -> io::Result<Vec<Typed>> {
        Ok(key_of(&crossterm::event::read()?).into_iter().collect())
    }
}

#[cfg(not(unix))]
impl Drop for Typing {
    fn drop(&mut self) {
        let _ = crossterm::terminal::disable_raw_mode(); // fails only if the console is gone
    }
}

#[cfg(not(unix))]
fn key_of(event: &crossterm::event::Event) -> Option<Typed> {
    use crossterm::event::{Event, KeyCode, KeyEventKind, KeyModifiers};
    let Event::Key(pressed) = event else { return None };
    if pressed.kind == KeyEventKind::Release {
        return None;
    }
    Some(match pressed.code {
        KeyCode::Char('c' | 'd') if pressed.modifiers == KeyModifiers::CONTROL => Typed::Leave,
        KeyCode::Char('w') if pressed.modifiers == KeyModifiers::CONTROL => Typed::EraseWord,
        KeyCode::Char('u') if pressed.modifiers == KeyModifiers::CONTROL => Typed::EraseAll,
        // AltGr is both.
        KeyCode::Char(c) if pressed.modifiers != KeyModifiers::CONTROL => {
            return control(c).or_else(|| (!c.is_control()).then_some(Typed::Character(c)));
        }
        KeyCode::Enter => Typed::Choose,
        KeyCode::Backspace => Typed::Erase,
        KeyCode::Up => Typed::Up,
        KeyCode::Down => Typed::Down,
        KeyCode::PageUp => Typed::PageUp,
        KeyCode::PageDown => Typed::PageDown,
        KeyCode::Esc => Typed::Leave,
        _ => return None,
    })
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;

    fn of(bytes: &[u8]) -> (Vec<Typed>, Vec<u8>) {
        let mut input = bytes.to_vec();
        (keys(&mut input), input)
    }

    #[test]
    fn text_and_keys_are_told_apart() {
        use Typed::{Character, Choose, Down, Erase, EraseAll, EraseWord, Leave, PageDown, PageUp, Up};
        let text = |text: &str| text.chars().map(Character).collect::<Vec<_>>();
        assert_eq!(of("q ä?".as_bytes()).0, text("q ä?"));
        assert_eq!(of(b"\x1b[A\x1bOB\x1b[5~\x1b[6~\x10\x0e").0, [Up, Down, PageUp, PageDown, Up, Down]);
        assert_eq!(of(b"\x7f\x08\x17\x15\r\x04\x1b").0, [Erase, Erase, EraseWord, EraseAll, Choose, Leave, Leave]);
        // Ctrl-Right, F5, a click, and keys without a meaning here.
        assert_eq!(of(b"\x1b[1;5C\x1b[15~\x1b[<0;1;2M\x01\x00x").0, text("x"));
        assert_eq!(of(b"\x1b[1;").0, []);
    }

    #[test]
    fn a_character_that_arrives_in_pieces_is_one() {
        let (typed, rest) = of(b"a\xc3");
        assert_eq!((typed, &*rest), (vec![Typed::Character('a')], &b"\xc3"[..]));
        assert_eq!(of(b"\xc3\xa4").0, [Typed::Character('ä')]);
        assert_eq!(of(b"\xffa").0, [Typed::Character('\u{fffd}'), Typed::Character('a')], "no terminal sends that");
    }
}
