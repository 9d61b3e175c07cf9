//! The real Codex in a terminal, with a home and a model of its own.
//!
//! `PILOTLIGHT_TEST_CODEX` names the program. Its daemon runs a copy of itself (300 MB) from the home; both end, and are
//! deleted, with the home.

use super::process::{is_live, signal};
use super::responses::Responses;
use super::tmux::Tmux;
use super::{COPILOT, wait, wait_until};
use rustix::process::Signal;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// A home of Codex, its project and its model.
pub(crate) struct CodexHome {
    model: Responses,
    folder: TempDir,
}

fn program() -> PathBuf {
    std::env::var_os("PILOTLIGHT_TEST_CODEX").expect("PILOTLIGHT_TEST_CODEX names Codex: see tests/all.sh").into()
}

impl CodexHome {
    /// A home where commands outside of the sandbox are asked about, or none is and there is no sandbox.
    pub(crate) fn new(asks: bool) -> Self {
        let folder = tempfile::Builder::new().prefix("pilotlight-codex-").tempdir().unwrap();
        let model = Responses::start(folder.path().join("release"));
        // Of an empty home, nothing would tell whose it is.
        for name in [".codex/thread-writer-locks", "project"] {
            fs::create_dir_all(folder.path().join(name)).unwrap();
        }
        let (policy, sandbox) = if asks { ("on-request", "read-only") } else { ("never", "danger-full-access") };
        let project = folder.path().join("project");
        let config = format!(
            "model = \"fake\"\nmodel_provider = \"fake\"\ncheck_for_update_on_startup = false\napproval_policy = \"{policy}\"\n\
             sandbox_mode = \"{sandbox}\"\n[analytics]\nenabled = false\n[model_providers.fake]\nname = \"fake\"\nbase_url = \"{}\"\n\
             wire_api = \"responses\"\nenv_key = \"FAKE_KEY\"\nrequest_max_retries = 0\n[projects.{:?}]\ntrust_level = \"trusted\"\n",
            model.url(),
            project.display().to_string(),
        );
        fs::write(folder.path().join(".codex/config.toml"), config).unwrap();
        Self { model, folder }
    }

    /// The home.
    pub(crate) fn dir(&self) -> PathBuf {
        self.folder.path().join(".codex")
    }

    /// The folder that it works in.
    pub(crate) fn project(&self) -> PathBuf {
        self.folder.path().join("project")
    }

    /// Lets the tool of the script `tool` end.
    pub(crate) fn release(&self) {
        fs::write(self.folder.path().join("release"), "").unwrap();
    }

    /// A command of Codex's in this home.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(program());
        command.args(args).current_dir(self.project()).env_clear();
        for (name, value) in
            [("TERM", "xterm-256color"), ("LANG", "C.UTF-8"), ("SHELL", "/bin/bash"), ("FAKE_KEY", "made-up")]
        {
            command.env(name, value);
        }
        command.env("PATH", std::env::var_os("PATH").unwrap()).env("HOME", self.folder.path());
        command.env("CODEX_HOME", self.dir());
        command
    }

    /// Starts a terminal, and waits until it takes a prompt.
    pub(crate) fn terminal(&self, args: &[&str]) -> CodexTerminal {
        let terminal = CodexTerminal(Tmux::start(&self.command(args), 150, 45));
        terminal.shows("›");
        terminal
    }

    /// The logs of its threads.
    pub(crate) fn logs(&self) -> Vec<PathBuf> {
        fn below(folder: &Path, found: &mut Vec<PathBuf>) {
            for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
                if entry.path().is_dir() { below(&entry.path(), found) } else { found.push(entry.path()) }
            }
        }
        let mut found = Vec::new();
        below(&self.dir().join("sessions"), &mut found);
        found.sort();
        found
    }

    /// The id of its only root thread, once that was prompted.
    pub(crate) fn id(&self) -> String {
        let id = || {
            let log = self.logs().into_iter().next()?;
            let stem = log.file_stem()?.to_str()?.to_owned();
            Some(stem[stem.len() - 36..].to_owned())
        };
        wait_until(COPILOT, "the thread has a log", String::new, id)
    }

    /// The daemon's pid, if there is one.
    pub(crate) fn daemon(&self) -> Option<u32> {
        self.noted("daemon.pid")
    }

    fn noted(&self, file: &str) -> Option<u32> {
        let note = fs::read(self.dir().join("app-server-daemon").join(file)).ok()?;
        let note: Value = serde_json::from_slice(&note).ok()?;
        u32::try_from(note["pid"].as_u64()?).ok().filter(|pid| is_live(*pid))
    }
}

impl Drop for CodexHome {
    fn drop(&mut self) {
        for pid in ["daemon-updater.pid", "daemon.pid"].iter().filter_map(|file| self.noted(file)) {
            signal(pid, Signal::KILL);
            wait(super::SOON, || (!is_live(pid)).then_some(()));
        }
    }
}

/// Codex in a terminal.
pub(crate) struct CodexTerminal(Tmux);

impl CodexTerminal {
    /// The terminal's process.
    pub(crate) const fn pid(&self) -> u32 {
        self.0.pid
    }

    /// Waits until the screen has this text.
    pub(crate) fn shows(&self, text: &str) {
        let shown = || self.0.screen().contains(text).then_some(());
        wait_until(COPILOT, &format!("Codex shows {text:?}"), || self.0.screen(), shown);
    }

    /// Whether the screen has this text.
    pub(crate) fn has(&self, text: &str) -> bool {
        self.0.screen().contains(text)
    }

    /// Sends a prompt.
    pub(crate) fn enter(&self, prompt: &str) {
        self.0.paste(prompt);
        self.shows(prompt);
        self.0.press(&["Enter"]);
    }

    /// Presses keys.
    pub(crate) fn press(&self, keys: &[&str]) {
        self.0.press(keys);
    }
}
