//! A terminal for programs that want one: tmux, with a server of its own for each terminal.
//!
//! The socket lies in a scratch folder, so no other tmux of this machine is met, and ending the server ends only what
//! was started in it.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::{Command, Output};
use tempfile::TempDir;

/// One program in one terminal. The terminal hangs up when this value is dropped.
pub(crate) struct Tmux {
    scratch: TempDir,
}

impl Tmux {
    /// Starts `program` in a terminal of this size.
    pub(crate) fn start(program: &Command, columns: u16, rows: u16) -> Self {
        let scratch = tempfile::Builder::new().prefix("pilotlight-tmux-").tempdir().unwrap();
        let this = Self { scratch };
        let (x, y) = (columns.to_string(), rows.to_string());
        let mut command = this.tmux();
        command.args(["-f", "/dev/null", "new-session", "-d", "-x", &x, "-y", &y]);
        if let Some(dir) = program.get_current_dir() {
            command.arg("-c").arg(dir);
        }
        // tmux joins several words with spaces for a shell; `env` and separate words avoid any quoting.
        command.args(["--", "env", "-i"]);
        for (key, value) in program.get_envs() {
            let Some(value) = value else { continue };
            let mut pair = key.to_owned();
            pair.push("=");
            pair.push(value);
            command.arg(pair);
        }
        command.arg(program.get_program()).args(program.get_args());
        let output = command.output().expect("tmux is needed for the tests that want a terminal");
        assert!(output.status.success(), "tmux: {}", String::from_utf8_lossy(&output.stderr));
        this
    }

    /// What the terminal shows, a line of text each row.
    pub(crate) fn screen(&self) -> String {
        String::from_utf8_lossy(&self.run(["capture-pane", "-p"]).stdout).into_owned()
    }

    /// Presses keys by their tmux names: `Enter`, `Escape`, `Down`, `C-c`.
    pub(crate) fn press(&self, keys: &[&str]) {
        for key in keys {
            self.run(["send-keys", key]);
        }
    }

    /// Types text as it is.
    pub(crate) fn text(&self, text: &str) {
        self.run(["send-keys", "-l", text]);
    }

    fn run<const N: usize>(&self, args: [&str; N]) -> Output {
        self.tmux().args(args).output().unwrap()
    }

    fn tmux(&self) -> Command {
        let mut command = Command::new("tmux");
        command.env_remove("TMUX").arg("-S").arg::<&OsStr>(self.socket().as_os_str());
        command
    }

    fn socket(&self) -> PathBuf {
        self.scratch.path().join("socket")
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        self.run(["kill-server"]);
    }
}
