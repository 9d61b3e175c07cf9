//! The clipboard.
//!
//! Copying runs on its own thread, so that a clipboard that does not answer does not block the menu. On Wayland,
//! `wl-copy` is used if installed: every compositor supports it, while a program without a window has no other way that
//! all of them offer. Without it, GNOME takes what Xwayland's clipboard gets; elsewhere the user is told what to install.

#[cfg(target_os = "linux")]
use pilotlight_system::descriptors;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};

/// The clipboard. It is kept open because on X11 a copied text is lost when its owner closes the clipboard. Clones share
/// it.
#[derive(Clone, Debug, Default)]
pub(super) struct Clipboard {
    copies: Arc<Mutex<Option<Sender<String>>>>,
}

impl Clipboard {
    /// Copies text. If that fails, `failed` is called with the reason, on another thread.
    pub(super) fn copy(&self, text: String, failed: impl Fn(String) + Send + 'static) {
        let mut open = self.copies.lock().unwrap_or_else(PoisonError::into_inner);
        let unsent = match &*open {
            Some(copies) => copies.send(text).err().map(|unsent| unsent.0),
            None => Some(text),
        };
        let Some(text) = unsent else { return };
        let (copies, requests) = channel();
        let _ = copies.send(text); // the receiver is right here
        let work = move || {
            let mut board = None;
            while let Ok(text) = requests.recv() {
                if let Err(error) = copy(&mut board, text) {
                    failed(error);
                }
            }
        };
        let started = std::thread::Builder::new().name("clipboard".into()).spawn(work);
        *open = started.is_ok().then_some(copies);
    }
}

fn copy(board: &mut Option<arboard::Clipboard>, text: String) -> Result<(), String> {
    #[cfg(target_os = "linux")]
    let wayland = std::env::var_os("WAYLAND_DISPLAY").is_some_and(|display| !display.is_empty());
    #[cfg(not(target_os = "linux"))]
    let wayland = false;
    #[cfg(target_os = "linux")]
    if wayland {
        match pipe_to(std::process::Command::new("wl-copy"), &text) {
            Ok(()) => return Ok(()),
            // What Xwayland is given does not reach Wayland's windows while none of X11 is in front.
            Err(_) if !shares_with_x11(std::env::var("XDG_CURRENT_DESKTOP").ok().as_deref()) => {
                return Err(
                    "Copying under Wayland needs `wl-copy`: install the package wl-clipboard, and try again".into()
                );
            }
            Err(_) => {}
        }
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

/// Whether this desktop, by `XDG_CURRENT_DESKTOP`, takes over what X11's clipboard gets whatever window is in front.
#[cfg(target_os = "linux")]
pub(crate) fn shares_with_x11(desktop: Option<&str>) -> bool {
    desktop.is_some_and(|names| names.split(':').any(|name| name == "GNOME"))
}

/// Pipes text to a program that copies it. Its background process, which serves the text, is in its own process group,
/// so that a Ctrl-C for us does not end it.
#[cfg(target_os = "linux")]
fn pipe_to(mut program: std::process::Command, text: &str) -> std::io::Result<()> {
    use std::io::Write;
    use std::os::unix::process::CommandExt;
    use std::process::Stdio;
    descriptors::restore(&mut program);
    let mut running =
        program.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0).spawn()?;
    let written = running.stdin.take().map_or(Ok(()), |mut stdin| stdin.write_all(text.as_bytes()));
    let status = running.wait()?;
    written?;
    if status.success() { Ok(()) } else { Err(std::io::Error::other(status.to_string())) }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::{pipe_to, shares_with_x11};
    use std::process::Command;

    #[test]
    fn the_program_gets_the_text_and_its_failure_is_reported() {
        let scratch = tempfile::tempdir().unwrap();
        let file = scratch.path().join("copied");
        let shell = |script: &str| {
            let mut command = Command::new("sh");
            command.args(["-c", script]).env("FILE", &file);
            command
        };
        pipe_to(shell("cat > \"$FILE\""), "copilot --resume=1").unwrap();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "copilot --resume=1");
        assert!(pipe_to(shell("exit 1"), "text").is_err());
        assert!(pipe_to(Command::new("/nonexistent/wl-copy"), "text").is_err());
    }

    #[test]
    fn case_659_only_gnome_takes_over_what_x11s_clipboard_gets() {
        assert!(shares_with_x11(Some("ubuntu:GNOME")));
        for desktop in [None, Some("sway"), Some("KDE"), Some("GNOME-Flashback:X")] {
            assert!(!shares_with_x11(desktop), "{desktop:?}");
        }
    }
}
