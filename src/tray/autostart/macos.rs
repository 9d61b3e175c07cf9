//! Start at login on macOS: a launch agent of the user. Whether it is also disabled in the system settings (Login
//! Items) is unknown here, because no program may read that.

use super::arguments;
use super::state::State;
use anyhow::Context;
use pilotlight_system::paths;
use pilotlight_system::state_file;
use std::path::{Path, PathBuf};

/// The bundle's identifier, and the agent's.
const LABEL: &str = "io.github.pilotlight.pilotlight";

/// The launch agent's file.
#[derive(Debug)]
pub(super) struct Backend {
    program: PathBuf,
    /// The homes to pass on, if any were named.
    homes: Vec<PathBuf>,
    file: PathBuf,
}

impl Backend {
    /// Finds the file for this program. `None` if the user has no home.
    pub(super) fn find(program: PathBuf, homes: Vec<PathBuf>) -> Option<Self> {
        let file = paths::user_home()?.join("Library/LaunchAgents").join(format!("{LABEL}.plist"));
        Some(Self { program, homes, file })
    }

    /// What the system would do at the next login, according to the file.
    pub(super) fn read(&self) -> State {
        if !self.file.is_file() {
            return State::off();
        }
        let text = state_file::read(&self.file);
        let after = |key: &str| text.split_once(&format!("<key>{key}</key>")).map(|(_, rest)| rest.trim_start());
        let is_true = |key: &str| after(key).is_some_and(|rest| rest.starts_with("<true/>"));
        if is_true("Disabled") || !is_true("RunAtLoad") {
            return State::off().because("its launch agent is switched off");
        }
        let array = after("ProgramArguments").and_then(|rest| rest.split_once("</array>"));
        let word = array.and_then(|(array, _)| array.split_once("<string>")?.1.split_once("</string>"));
        match word.map(|(word, _)| PathBuf::from(unescaped(word))) {
            Some(program) if program == self.program => State::on(),
            Some(program) => State::off().because(format!("its launch agent starts {}", program.display())),
            None => State::off().because("its launch agent cannot be read"),
        }
    }

    /// Turns the start at login on or off.
    pub(super) fn write(&self, on: bool) -> anyhow::Result<()> {
        let written = match on {
            true => state_file::replace(&self.file, launch_agent(&self.program, &arguments(&self.homes)?).as_bytes()),
            false if !self.file.exists() => Ok(()),
            false => std::fs::remove_file(&self.file).map_err(Into::into),
        };
        written.with_context(|| format!("cannot change {}", self.file.display()))
    }
}

/// The launch agent that starts `program` with these arguments. Its child processes, terminals above all, survive it.
fn launch_agent(program: &Path, arguments: &[&str]) -> String {
    let program = program.to_string_lossy();
    let words = std::iter::once(&*program).chain(arguments.iter().copied());
    let words: String = words.map(|word| format!("\n\t\t<string>{}</string>", escaped(word))).collect();
    format!(
        r#"<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
<dict>
	<key>Label</key>
	<string>{LABEL}</string>
	<key>AssociatedBundleIdentifiers</key>
	<string>{LABEL}</string>
	<key>ProgramArguments</key>
	<array>{words}
	</array>
	<key>RunAtLoad</key>
	<true/>
	<key>ProcessType</key>
	<string>Interactive</string>
	<key>AbandonProcessGroup</key>
	<true/>
</dict>
</plist>
"#
    )
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

fn unescaped(text: &str) -> String {
    text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
}
