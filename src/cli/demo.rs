//! `pilotlight demo`: the whole program, on scripted sessions.

use super::context::Context;
use super::report::{USAGE, say};
use super::tray;
use crate::demo::{self, HOME, STATE, script::LENGTH, stage};
use crate::engine::last_seen::{self, Seen};
use crate::system::paths;
use crate::system::plain_file;
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
    /// Runs as a helper process of a demo, if the arguments say so. This happens before the user's settings and
    /// sessions are read.
    pub(super) fn part(&self) -> Option<anyhow::Result<ExitCode>> {
        let result = match self.part? {
            Part::Stage => stage::run(self.speed, &|| own_command(Part::Player, self.speed)),
            Part::Player => {
                stage::wait_for_end(&mut io::stdin());
                Ok(())
            }
        };
        Some(result.map(|()| ExitCode::SUCCESS))
    }
}

pub(super) fn run(user: Context, arguments: &Arguments) -> anyhow::Result<ExitCode> {
    if !user.named_homes.is_empty() {
        say("the demo uses a Copilot home of its own: leave out --home");
        return Ok(ExitCode::from(USAGE));
    }
    let stage = StageProcess::start(arguments.speed)?;
    let exe = program()?;
    let player = exe.file_name().unwrap_or_default().to_string_lossy();
    let config = demo::config(&user.config, arguments.speed, &player, &stage.folder);
    let state = stage.folder.join(STATE);
    // Suppresses the welcome message.
    let _ = plain_file::create(&state.join(WELCOMED));
    let stuck = config.limits.fresh_stuck;
    say(&format!(
        "this is a demo: its sessions play themselves in a loop, and show every status within {LENGTH} s; silence counts as stuck after {stuck} here. Nothing of yours is read or changed. Ctrl-C or Quit ends it"
    ));
    let context = Context {
        named_homes: Vec::new(),
        silent: Vec::new(),
        homes: vec![stage.folder.join(HOME)],
        config,
        config_path: None,
        seen: Seen::load(Some(state.join(last_seen::FILE))),
        problems: user.problems,
        demo: true,
        color: user.color,
    };
    let shown = tray::run(context);
    let stopped = stage.stop();
    shown.and_then(|code| stopped.map(|()| code))
}

/// The child process that plays the sessions.
struct StageProcess {
    child: Child,
    /// Closing it ends the child.
    stdin: Option<ChildStdin>,
    folder: PathBuf,
}

impl StageProcess {
    /// Starts the child, and waits until it reports its folder.
    fn start(speed: u32) -> anyhow::Result<Self> {
        let failed = "the demo cannot start the process that plays its sessions";
        let mut command = own_command(Part::Stage, speed).context(failed)?;
        // Ctrl-C must reach the demo alone, which then ends the child.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        #[cfg(windows)]
        std::os::windows::process::CommandExt::creation_flags(
            &mut command,
            windows_sys::Win32::System::Threading::CREATE_NEW_PROCESS_GROUP,
        );
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().context(failed)?;
        let mut line = String::new();
        if let Some(stdout) = child.stdout.take() {
            BufReader::new(stdout).read_line(&mut line).context(failed)?;
        }
        let folder = PathBuf::from(line.trim_end_matches(['\r', '\n']));
        let mut stage = Self { stdin: child.stdin.take(), child, folder };
        if !Path::new(&stage.folder).is_absolute() {
            stage.close()?;
            anyhow::bail!("{failed}: it did not report its folder");
        }
        Ok(stage)
    }

    /// Ends the child, and removes whatever is left of its folder.
    fn stop(mut self) -> anyhow::Result<()> {
        let closed = self.close();
        // Files that we wrote after the child cleaned up, or the whole folder if the child was killed.
        stage::remove(&self.folder);
        closed
    }

    fn close(&mut self) -> anyhow::Result<()> {
        drop(self.stdin.take());
        let mut errors = String::new();
        if let Some(stderr) = &mut self.child.stderr {
            let _ = stderr.read_to_string(&mut errors); // only for the message below
        }
        let status = self.child.wait().context("the process that plays the demo's sessions cannot be waited for")?;
        let errors = errors.trim().trim_start_matches("pilotlight: ");
        anyhow::ensure!(status.success(), "the demo's sessions were not played to the end ({status}). {errors}");
        Ok(())
    }
}

fn program() -> io::Result<PathBuf> {
    std::env::current_exe()
}

/// A command that runs this program as a helper process of the demo.
fn own_command(part: Part, speed: u32) -> io::Result<Command> {
    let mut command = Command::new(program()?);
    let part = match part {
        Part::Stage => "stage",
        Part::Player => "player",
    };
    command.args(["demo", "--part", part, "--speed", &speed.to_string()]).stderr(Stdio::null());
    if let Some(home) = paths::user_home() {
        command.current_dir(home); // the user's working folder may be removed meanwhile
    }
    Ok(command)
}
