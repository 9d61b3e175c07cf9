//! `pilotlight demo`: the whole program, on scripted sessions.

use super::context::{Context, World};
use super::report::{USAGE, exit_code, say};
use super::{carry_out, descriptors, parse, print_usage, tray};
use crate::tray::WELCOMED;
use anyhow::Context as _;
use clap::{ColorChoice, ValueEnum};
use pilotlight_demo::bridge::{self, StageInput};
use pilotlight_demo::guests::owner;
use pilotlight_demo::pipe::StageEvent;
use pilotlight_demo::programs::{Programs, stand_in};
use pilotlight_demo::{PROGRAM, STATE, homes, limits, script::LENGTH, server, stage, window};
use pilotlight_engine::config::{Actions, Config};
use pilotlight_engine::last_seen::{self, LastSeen};
use pilotlight_system::paths;
use pilotlight_system::plain_file;
use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitCode, Stdio};

/// Arguments of `demo`.
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// How many times the usual pace, for tests
    #[arg(long, hide = true, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=60))]
    speed: u32,
    /// What this process does for the demo that started it
    #[arg(long, hide = true, value_enum)]
    part: Option<Part>,
    /// The folder of the demo that this process belongs to
    #[arg(long, hide = true, requires = "part")]
    stage: Option<PathBuf>,
    /// The process that plays in that folder
    #[arg(long, hide = true, default_value_t = 0)]
    player: u32,
    /// What a command or a window of the demo was started with
    #[arg(last = true, hide = true)]
    rest: Vec<OsString>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Part {
    /// It plays the sessions.
    Stage,
    /// It owns one.
    Player,
    /// It owns a program's, and has a server.
    Server,
    /// It has resumed one in a terminal.
    Window,
    /// It owns one of another agent.
    Guest,
    /// It has resumed one of another agent in a terminal.
    GuestWindow,
    /// It is a command inside of the demo.
    Command,
}

impl Part {
    /// What it is called on the command line.
    fn name(self) -> String {
        self.to_possible_value().map(|part| part.get_name().to_owned()).unwrap_or_default()
    }
}

impl Arguments {
    /// Runs as a helper process of a demo, if the arguments say so. This happens before the user's settings and
    /// sessions are read.
    pub(super) fn part(&self) -> Option<ExitCode> {
        let folder = self.stage.clone().unwrap_or_default();
        let result = match self.part? {
            Part::Stage => stage::run(self.speed, &Helpers { speed: self.speed }),
            Part::Player => {
                stage::wait_for_end(&mut io::stdin());
                Ok(())
            }
            Part::Server => server::serve().context("the demo's server cannot be started"),
            Part::Window => window::run(&folder, self.player, &self.rest),
            Part::Guest => owner::play(&folder, &self.rest.first().unwrap_or(&OsString::new()).to_string_lossy()),
            Part::GuestWindow => owner::resume(&folder, self.player, &self.rest),
            Part::Command => return Some(run_inside(World { folder, speed: self.speed }, &self.rest)),
        };
        Some(exit_code(result.map(|()| ExitCode::SUCCESS)))
    }
}

/// Runs a command on the sessions of a demo, in its world.
fn run_inside(world: World, words: &[OsString]) -> ExitCode {
    let program = OsString::from("pilotlight");
    let arguments = match parse(std::iter::once(program).chain(words.iter().cloned())) {
        Ok(arguments) => arguments,
        Err(error) => return print_usage(&error),
    };
    descriptors::raise();
    match context(&Config::default(), world, arguments.color) {
        Ok(context) => carry_out(arguments.command, Context { window: arguments.window, ..context }),
        Err(error) => exit_code(Err(error)),
    }
}

/// What a process of the demo starts from. From here on, this process knows of no files of the user's.
fn context(user: &Config, world: World, color: ColorChoice) -> anyhow::Result<Context> {
    let exe = std::env::current_exe()?;
    let player = exe.file_name().unwrap_or_default().to_string_lossy();
    let state = world.folder.join(STATE);
    paths::move_into(state.clone());
    Ok(Context {
        only_hosts: Vec::new(),
        named_homes: Vec::new(),
        silent: Vec::new(),
        homes: homes(&world.folder),
        only: Vec::new(),
        unread: Vec::new(),
        config: config(user, world.speed, &player, &world.folder),
        config_path: None,
        seen: LastSeen::load(Some(state.join(last_seen::FILE))),
        discovered: None,
        problems: Vec::new(),
        demo: Some(world),
        color,
        window: None,
    })
}

pub(super) fn run(user: Context, arguments: &Arguments) -> anyhow::Result<ExitCode> {
    if !user.named_homes.is_empty() {
        say("the demo uses homes of its own: leave out --home");
        return Ok(ExitCode::from(USAGE));
    }
    let (stage, told) = StageProcess::start(arguments.speed)?;
    let world = World { folder: stage.folder.clone(), speed: arguments.speed };
    let context = Context { problems: user.problems, ..context(&user.config, world, user.color)? };
    // Suppresses the welcome message.
    let _ = plain_file::create(&stage.folder.join(STATE).join(WELCOMED));
    let (stuck, with_tool) = (context.config.limits.fresh_stuck, context.config.limits.tool_stuck);
    say(&format!(
        "this is a demo. Its sessions run in a loop, do what you click, and show every status within {LENGTH} s. Here a \
         session is stuck after {stuck} of silence, or {with_tool} while a tool is running. Nothing of yours is read or changed. Ctrl-C or Quit ends the demo"
    ));
    let bridges = bridge::connect(told, stage.child.id(), stage.input.clone());
    let bridges = bridges.context("the demo cannot listen to its sessions")?;
    let at_end = move || stage.stop().inspect_err(|error| say(&format!("{error:#}"))).is_ok();
    tray::run_with(context, Some(bridges), Box::new(at_end))
}

/// The child process that plays the sessions.
struct StageProcess {
    child: Child,
    /// Closing it ends the child.
    input: StageInput,
    folder: PathBuf,
}

impl StageProcess {
    /// Starts the child, and waits until it reports its folder. Returns also what it tells from then on.
    fn start(speed: u32) -> anyhow::Result<(Self, BufReader<ChildStdout>)> {
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
        let input = StageInput::new(child.stdin.take());
        let mut told = BufReader::new(child.stdout.take().context(failed)?);
        let mut stage = Self { child, input, folder: PathBuf::new() };
        let mut line = String::new();
        told.read_line(&mut line).context(failed)?;
        match serde_json::from_str(&line) {
            Ok(StageEvent::Ready { folder }) if folder.is_absolute() => stage.folder = folder,
            _ => {
                stage.close()?;
                anyhow::bail!("{failed}: it did not report its folder");
            }
        }
        Ok((stage, told))
    }

    /// Ends the child, and removes whatever is left of its folder.
    fn stop(mut self) -> anyhow::Result<()> {
        self.close()
    }

    fn close(&mut self) -> anyhow::Result<()> {
        self.input.close();
        let mut errors = String::new();
        if let Some(stderr) = &mut self.child.stderr {
            let _ = stderr.read_to_string(&mut errors); // only for the message below
        }
        let status = self.child.wait().context("the process that plays the demo's sessions cannot be waited for")?;
        let errors = errors.trim().trim_start_matches("pilotlight: ");
        let why = if errors.is_empty() { String::new() } else { format!(": {errors}") };
        anyhow::ensure!(status.success(), "the demo's sessions were not played to the end ({status}){why}");
        Ok(())
    }
}

impl Drop for StageProcess {
    fn drop(&mut self) {
        let _ = self.close(); // has told why, if anyone asked
        // Files that we wrote after the child cleaned up, or the whole folder if the child was killed.
        if self.folder.is_absolute() {
            stage::remove(&self.folder);
        }
    }
}

/// The other processes of the demo.
struct Helpers {
    speed: u32,
}

impl Programs for Helpers {
    fn player(&self, has_server: bool) -> io::Result<Command> {
        own_command(if has_server { Part::Server } else { Part::Player }, self.speed)
    }

    fn guest(&self, program: &Path, folder: &Path, id: &str) -> Command {
        let mut command = command_of(program, Part::Guest, self.speed);
        command.arg("--stage").arg(folder).args(["--", id]);
        command
    }

    fn write_stand_in(&self, path: &Path, folder: &Path, guest: Option<&Path>) -> io::Result<()> {
        let (own, player) = (std::env::current_exe()?, std::process::id());
        let (program, part) = guest.map_or((&*own, Part::Window), |guest| (guest, Part::GuestWindow));
        let part = part.name();
        let words = |quoted: &dyn Fn(&Path) -> String| {
            format!("{} demo --part {part} --player {player} --stage {} --", quoted(program), quoted(folder))
        };
        #[cfg(windows)]
        std::fs::write(path, format!("@{} %*\r\n", words(&|path| format!("\"{}\"", path.display()))))?;
        #[cfg(unix)]
        {
            let quoted = |path: &Path| format!("'{}'", path.to_string_lossy().replace('\'', r"'\''"));
            std::fs::write(path, format!("#!/bin/sh\nexec {} \"$@\"\n", words(&quoted)))?;
            std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o700))?;
        }
        Ok(())
    }
}

/// A command that runs this program as a helper process of the demo.
fn own_command(part: Part, speed: u32) -> io::Result<Command> {
    Ok(command_of(&std::env::current_exe()?, part, speed))
}

/// The same for a program that is this one by another name.
fn command_of(program: &Path, part: Part, speed: u32) -> Command {
    let mut command = Command::new(program);
    command.args(["demo", "--part", &part.name(), "--speed", &speed.to_string()]).stderr(Stdio::null());
    if let Some(home) = paths::user_home() {
        command.current_dir(home); // the user's working folder may be removed meanwhile
    }
    command
}

/// The demo's settings: the user's own for display and notifications, and none that reach outside the demo. `player` is
/// the file name of the players' program, `folder` is the stage's.
fn config(user: &Config, speed: u32, player: &str, folder: &Path) -> Config {
    let mut config = Config {
        limits: limits(speed),
        // So that no click starts the real Copilot on a scripted session.
        actions: Actions {
            program: Some(stand_in(folder, PROGRAM)),
            terminal: user.actions.terminal.clone(),
            ..Actions::default()
        },
        list: user.list,
        notifications: user.notifications.clone(),
        ..Config::default()
    };
    config.owners.names = vec![player.to_owned()];
    config
}

#[cfg(test)]
mod tests {
    use super::*;
    use pilotlight_engine::config::OnChange;

    #[test]
    fn the_demos_settings_do_not_reach_outside_it() {
        let mut user = Config::default();
        user.homes.also.push("/somewhere".into());
        user.actions.auto_reconnect = true;
        user.on_change.push(OnChange { triggers: Vec::new(), run: vec!["program".into()] });
        user.list.ended_most = 3;
        let config = config(&user, 1, "player", Path::new("/scratch"));
        assert!(config.on_change.is_empty(), "a demo's sessions are nobody's news");
        assert!(config.homes.also.is_empty() && config.servers.is_empty() && !config.actions.auto_reconnect);
        assert_eq!(config.list.ended_most, 3, "display settings are the user's");
        assert_eq!(config.owners.names, ["player"]);
        assert!(config.actions.program.is_some_and(|path| path.starts_with("/scratch")));
    }
}
