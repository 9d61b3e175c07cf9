//! The clipboard.
//!
//! A thread of its own copies: a clipboard that does not answer may not hold the menu. Under Wayland, `wl-copy` does it
//! where it is installed, as a program without a window of its own has no other way that every compositor offers; without
//! it, XWayland's clipboard does.

#[cfg(target_os = "linux")]
use crate::system::descriptors;
use std::sync::mpsc::{Sender, channel};

/// The clipboard. On X11 what was copied is there for as long as the program that copied it: it is kept open.
#[derive(Debug, Default)]
pub(super) struct Clipboard {
    copies: Option<Sender<String>>,
}

impl Clipboard {
    /// Copies text. `failed` is called, on another thread, with the reason where that cannot be done.
    pub(super) fn copy(&mut self, text: String, failed: impl Fn(String) + Send + 'static) {
        let unsent = match &self.copies {
            Some(copies) => copies.send(text).err().map(|unsent| unsent.0),
            None => Some(text),
        };
        let Some(text) = unsent else { return };
        let (copies, wanted) = channel();
        let _ = copies.send(text); // the receiver is right here
        let keeper = move || {
            let mut board = None;
            while let Ok(text) = wanted.recv() {
                if let Err(error) = copy(&mut board, text) {
                    failed(error);
                }
            }
        };
        let started = std::thread::Builder::new().name("clipboard".into()).spawn(keeper);
        self.copies = started.is_ok().then_some(copies);
    }
}

fn copy(board: &mut Option<arboard::Clipboard>, text: String) -> Result<(), String> {
    #[cfg(target_os = "linux")]
    let wayland = std::env::var_os("WAYLAND_DISPLAY").is_some_and(|display| !display.is_empty());
    #[cfg(not(target_os = "linux"))]
    let wayland = false;
    #[cfg(target_os = "linux")]
    if wayland && by_program(std::process::Command::new("wl-copy"), &text).is_ok() {
        return Ok(());
    }
    let copied = match board {
        Some(board) => board.set_text(text),
        None => arboard::Clipboard::new().and_then(|new| board.insert(new).set_text(text)),
    };
    copied.map_err(|error| match wayland {
        true => {
            format!("{error}. Copying under Wayland needs the package wl-clipboard: install it and try again")
        }
        false => error.to_string(),
    })
}

/// Has a program copy what it reads. It goes on in the background to hand the text out, and is not ended by a Ctrl-C that is
/// for us.
#[cfg(target_os = "linux")]
fn by_program(mut program: std::process::Command, text: &str) -> std::io::Result<()> {
    use std::io::Write;
    use std::os::unix::process::CommandExt;
    use std::process::Stdio;
    descriptors::give_back(&mut program);
    let mut running =
        program.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0).spawn()?;
    let written = running.stdin.take().map_or(Ok(()), |mut stdin| stdin.write_all(text.as_bytes()));
    let status = running.wait()?;
    written?;
    if status.success() { Ok(()) } else { Err(std::io::Error::other(status.to_string())) }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::by_program;
    use std::process::Command;

    #[test]
    fn a_program_is_given_the_text_and_its_failure_is_told() {
        let scratch = tempfile::tempdir().unwrap();
        let file = scratch.path().join("copied");
        let shell = |script: &str| {
            let mut command = Command::new("sh");
            command.args(["-c", script]).env("FILE", &file);
            command
        };
        by_program(shell("cat > \"$FILE\""), "copilot --resume=1").unwrap();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "copilot --resume=1");
        assert!(by_program(shell("exit 1"), "text").is_err());
        assert!(by_program(Command::new("/nonexistent/wl-copy"), "text").is_err());
    }
}
