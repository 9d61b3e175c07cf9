//! `pilotlight demo`: the whole program, on sessions that play themselves.

use super::{Context, USAGE, say, tray};
use crate::demo::{self, HOME, STATE, script::LENGTH, stage};
use crate::engine::last_seen::{self, Seen};
use crate::system::paths;
use crate::tray::WELCOMED;
use anyhow::Context as _;
use clap::ValueEnum;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitCode, Stdio};

/// Arguments of `demo`.
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// How many times the usual pace, for tests
    #[arg(long, hide = true, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=60))]
    speed: u32,
    /// What this process does for the demo that started it
    #[arg(long, hide = true, value_enum)]
    part: Option<Part>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Part {
    /// It plays the sessions.
    Stage,
    /// It owns one.
    Player,
}

impl Arguments {
    /// What this process does for the demo that started it, if it is one of those: the settings and the sessions of the
    /// user are none of its business.
    pub(super) fn part(&self) -> Option<anyhow::Result<ExitCode>> {
        let done = match self.part? {
            Part::Stage => stage::run(self.speed, || ourselves(Part::Player, self.speed)),
            Part::Player => {
                stage::wait_for_end(&mut io::stdin());
                Ok(())
            }
        };
        Some(done.map(|()| ExitCode::SUCCESS))
    }
}

pub(super) fn run(users: Context, arguments: &Arguments) -> anyhow::Result<ExitCode> {
    if !users.named_homes.is_empty() {
        say("a demo plays in a home of its own: leave out --home");
        return Ok(ExitCode::from(USAGE));
    }
    let troupe = Troupe::hire(arguments.speed)?;
    let exe = program()?;
    let player = exe.file_name().unwrap_or_default().to_string_lossy();
    let config = demo::config(&users.config, arguments.speed, &player, &troupe.folder);
    let state = troupe.folder.join(STATE);
    // Who watches a demo need not be welcomed.
    let _ = std::fs::write(state.join(WELCOMED), "");
    let stuck = config.limits.fresh_stuck;
    say(&format!(
        "this is a demo: its sessions play themselves in a loop, and show every status within {LENGTH} s; silence counts as stuck after {stuck} here. Nothing of yours is read or changed. Ctrl-C or Quit ends it"
    ));
    let context = Context {
        named_homes: Vec::new(),
        homes: vec![troupe.folder.join(HOME)],
        config,
        config_path: None,
        seen: Seen::load(Some(state.join(last_seen::FILE))),
        problems: users.problems,
        demo: true,
        color: users.color,
    };
    let shown = tray::run(context);
    let played = troupe.dismiss();
    shown.and_then(|code| played.map(|()| code))
}

/// The stage, from the demo's side.
struct Troupe {
    stage: Child,
    /// As long as it is open, the play goes on.
    rope: Option<ChildStdin>,
    folder: PathBuf,
}

impl Troupe {
    /// Starts the play, and waits until there is a folder to look at.
    fn hire(speed: u32) -> anyhow::Result<Self> {
        let failed = "the demo cannot start the process that plays its sessions";
        let mut command = ourselves(Part::Stage, speed).context(failed)?;
        // Ctrl-C is for the demo, which then tells the stage.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        #[cfg(windows)]
        std::os::windows::process::CommandExt::creation_flags(
            &mut command,
            windows_sys::Win32::System::Threading::CREATE_NEW_PROCESS_GROUP,
        );
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut stage = command.spawn().context(failed)?;
        let mut line = String::new();
        if let Some(stdout) = stage.stdout.take() {
            BufReader::new(stdout).read_line(&mut line).context(failed)?;
        }
        let mut troupe =
            Self { rope: stage.stdin.take(), stage, folder: PathBuf::from(line.trim_end_matches(['\r', '\n'])) };
        if !Path::new(&troupe.folder).is_absolute() {
            troupe.close()?;
            anyhow::bail!("{failed}: it did not say where they are");
        }
        Ok(troupe)
    }

    /// Ends the play, and sees that nothing is left of it.
    fn dismiss(mut self) -> anyhow::Result<()> {
        let closed = self.close();
        // What we wrote after the stage had looked, or all of it if the stage was killed.
        stage::remove(&self.folder);
        closed
    }

    fn close(&mut self) -> anyhow::Result<()> {
        drop(self.rope.take());
        let mut said = String::new();
        if let Some(stderr) = &mut self.stage.stderr {
            let _ = stderr.read_to_string(&mut said); // words for the user, at most
        }
        let status = self.stage.wait().context("the process that plays the demo's sessions is lost")?;
        let said = said.trim().trim_start_matches("pilotlight: ");
        anyhow::ensure!(status.success(), "the demo's sessions were not played to the end ({status}). {said}");
        Ok(())
    }
}

fn program() -> io::Result<PathBuf> {
    std::env::current_exe()
}

/// This program once more, for a part of the demo.
fn ourselves(part: Part, speed: u32) -> io::Result<Command> {
    let mut command = Command::new(program()?);
    let part = match part {
        Part::Stage => "stage",
        Part::Player => "player",
    };
    command.args(["demo", "--part", part, "--speed", &speed.to_string()]).stderr(Stdio::null());
    if let Some(home) = paths::user_home() {
        command.current_dir(home); // the folder that the user is in need not stay
    }
    Ok(command)
}

/// What to say where there is no Copilot to look at.
pub(super) fn offer() -> String {
    // Cargo says so to what it runs.
    let command = if std::env::var_os("CARGO").is_some() { "cargo run --release -- demo" } else { "pilotlight demo" };
    format!("To see what this looks like without Copilot: {command}")
}
