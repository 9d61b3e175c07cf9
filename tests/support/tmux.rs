//! A terminal for programs that need one: tmux, with a separate server for each terminal.
//!
//! The socket is in a scratch folder. So no other tmux on this machine is affected, and killing the server ends only
//! what was started in it.

use super::process::{PATIENCE, is_live};
use super::{SOON, wait, wait_until};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

/// The output of a tmux command for the server at this socket, which the program under test started.
pub(crate) fn on(socket: &Path, arguments: &[&str]) -> String {
    let mut command = Command::new("tmux");
    command.env_remove("TMUX").arg("-S").arg(socket).args(arguments);
    String::from_utf8_lossy(&command.output().unwrap().stdout).into_owned()
}

/// Sends a prompt to a Copilot in a terminal of that server, once it accepts one.
pub(crate) fn prompt(socket: &Path, pane: &str, words: &str) {
    let screen = || on(socket, &["capture-pane", "-p", "-t", pane]);
    let accepts = || screen().lines().any(|line| line.trim_start().starts_with('❯')).then_some(());
    wait_until(SOON, "the resumed terminal accepts a prompt", screen, accepts);
    on(socket, &["set-buffer", "--", words, ";", "paste-buffer", "-d", "-p", "-t", pane]);
    let shows = || screen().rsplit_once('❯').filter(|(_, input)| input.contains(words)).map(drop);
    wait_until(SOON, "it shows the prompt", screen, shows);
    on(socket, &["send-keys", "-t", pane, "Enter"]);
}

/// One program in one terminal. The terminal hangs up when this value is dropped.
pub(crate) struct Tmux {
    scratch: TempDir,
    /// The program's pid.
    pub(crate) pid: u32,
}

impl Tmux {
    /// Starts `program` in a terminal of this size.
    pub(crate) fn start(program: &Command, columns: u16, rows: u16) -> Self {
        let scratch = tempfile::Builder::new().prefix("pilotlight-tmux-").tempdir().unwrap();
        let (x, y) = (columns.to_string(), rows.to_string());
        let mut command = tmux(&scratch);
        command.args(["-f", "/dev/null", "new-session", "-d", "-P", "-F", "#{pane_pid}", "-x", &x, "-y", &y]);
        if let Some(dir) = program.get_current_dir() {
            command.arg("-c").arg(dir);
        }
        // Separate arguments avoid quoting: tmux passes a single one to a shell. `env` execs the program, so the pane's
        // pid is the program's.
        command.args(["--", "env", "-i"]);
        for (key, value) in program.get_envs() {
            let Some(value) = value else { continue };
            let mut pair = key.to_owned();
            pair.push("=");
            pair.push(value);
            command.arg(pair);
        }
        command.arg(program.get_program()).args(program.get_args());
        let output = command.output().expect("tmux is needed for the tests with a terminal");
        assert!(output.status.success(), "tmux: {}", String::from_utf8_lossy(&output.stderr));
        let pid = String::from_utf8_lossy(&output.stdout).trim().parse().expect("tmux prints the pane's pid");
        Self { scratch, pid }
    }

    /// Starts a command in a terminal of this size that finally shows the exit code.
    pub(crate) fn with_exit_code(command: &Command, columns: u16, rows: u16) -> Self {
        // Whatever the command's PATH is.
        let mut shell = Command::new("/bin/sh");
        // The shell ignores Ctrl-C, so that it can show the exit code.
        shell.args(["-c", "trap : INT; \"$0\" \"$@\"; echo \"exited with $?\"; exec /bin/sleep 600"]);
        shell.arg(command.get_program()).args(command.get_args());
        shell.envs(command.get_envs().filter_map(|(key, value)| Some((key, value?)))).env("TERM", "xterm-256color");
        Self::start(&shell, columns, rows)
    }

    /// The text on the screen, one line per row.
    pub(crate) fn screen(&self) -> String {
        String::from_utf8_lossy(&self.run(["capture-pane", "-p"]).stdout).into_owned()
    }

    /// Waits until it shows this text.
    pub(crate) fn shows(&self, text: &str) {
        let shown = || self.screen().contains(text).then_some(());
        wait_until(SOON, &format!("the terminal shows {text:?}"), || self.screen(), shown);
    }

    /// Presses keys by their tmux names: `Enter`, `Escape`, `Down`, `C-c`.
    pub(crate) fn press(&self, keys: &[&str]) {
        for key in keys {
            self.run(["send-keys", key]);
        }
    }

    /// Types this text literally.
    pub(crate) fn text(&self, text: &str) {
        self.run(["send-keys", "-l", text]);
    }

    /// Pastes this text. Copilot draws the whole screen for each typed key, and once for this: a prompt then takes 0.03 s
    /// of CPU instead of a second.
    pub(crate) fn paste(&self, text: &str) {
        self.run(["set-buffer", "--", text, ";", "paste-buffer", "-d", "-p"]);
    }

    /// Records what the program draws from now on.
    pub(crate) fn record(&self) {
        self.run(["pipe-pane", "-O", &format!("exec cat >'{}'", self.recording().display())]);
        wait_until(SOON, "its output is recorded", || self.screen(), || self.recording().exists().then_some(()));
    }

    fn recording(&self) -> PathBuf {
        self.scratch.path().join("recording")
    }

    /// The text that was drawn since the recording began, whatever became of it on the screen.
    pub(crate) fn recorded(&self) -> String {
        let drawn = std::fs::read(self.recording()).unwrap();
        let mut parts = drawn.split(|byte| *byte == 0x1b).map(String::from_utf8_lossy);
        let first = parts.next().unwrap_or_default().into_owned();
        // Each other part begins with an escape sequence: `[`, parameters and a letter.
        let text = |part: &str| match part.strip_prefix('[') {
            Some(rest) => rest.split_once(|end: char| ('@'..='~').contains(&end)).map(|(_, text)| text.to_owned()),
            None => None,
        };
        first + &parts.filter_map(|part| text(&part)).collect::<String>()
    }

    /// Opens another window, in which `program` runs, and returns its pid.
    pub(crate) fn new_window(&self, program: &Command) -> u32 {
        let mut command = tmux(&self.scratch);
        command.args(["new-window", "-P", "-F", "#{pane_pid}"]);
        if let Some(dir) = program.get_current_dir() {
            command.arg("-c").arg(dir);
        }
        let output = command.arg("--").arg(program.get_program()).args(program.get_args()).output().unwrap();
        String::from_utf8_lossy(&output.stdout).trim().parse().expect("tmux prints the pane's pid")
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.scratch.path().join("socket")
    }

    fn run<const N: usize>(&self, args: [&str; N]) -> Output {
        tmux(&self.scratch).args(args).output().unwrap()
    }
}

impl Drop for Tmux {
    /// Hangs up, and waits until the program is gone: it might still write into folders that are about to be removed.
    fn drop(&mut self) {
        self.run(["kill-server"]);
        wait(PATIENCE, || (!is_live(self.pid)).then_some(()));
    }
}

/// A tmux command for the server whose socket is in this folder.
fn tmux(scratch: &TempDir) -> Command {
    let mut command = Command::new("tmux");
    command.env_remove("TMUX").arg("-S").arg(scratch.path().join("socket"));
    command
}
