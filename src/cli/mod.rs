//! The command line: one file a subcommand. Arguments are read here; what they mean is decided in each command.
//!
//! May import: core, system, agent, config, terminal, control, engine, tray, doctor, demo.

mod act;
mod ask;
mod bars;
mod beside;
mod bridge;
mod color;
mod config;
mod demo;
mod diagnostics;
mod doctor;
mod explain;
mod help;
mod json;
mod keyboard;
mod live;
mod notify_test;
mod pages;
mod pick;
mod replay;
mod setup;
mod status;
mod table;
mod tray;
mod watch;
mod writer;

use crate::agent::copilot::store::SESSIONS;
use crate::config::{Config, Problem};
use crate::core::order::Order;
use crate::core::text::plain;
use crate::doctor::Ground;
use crate::engine::ended;
use crate::engine::last_seen::{self, Seen};
use crate::engine::{Engine, Source, View};
use crate::system::descriptors;
use crate::system::log;
use crate::system::paths;
use crate::system::refused;
use crate::system::signals::Signals;
use anyhow::Context as _;
use clap::{ColorChoice, CommandFactory, FromArgMatches, Parser, Subcommand};
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

/// A line to the user is at most so long, in characters: it may quote what a session wrote, or a path.
const LINE_MAX: usize = 2000;
/// Exit code: bad usage, an id that is unknown or ambiguous.
const USAGE: u8 = 2;
/// Exit code: no home could be read.
const NO_HOME: u8 = 3;

/// A pilot light for your coding agents: what every GitHub Copilot session on this machine does, how stale it is, and why.
#[derive(Debug, Parser)]
#[command(version = crate::VERSION, about, max_term_width = 100)]
struct Arguments {
    /// A Copilot home to watch; repeat it to watch several. Default: $COPILOT_HOME, else ~/.copilot, and the homes in the
    /// config
    #[arg(long, value_name = "DIR", global = true, display_order = 900)]
    home: Vec<PathBuf>,
    /// When to use colours. With auto: on a terminal, unless NO_COLOR is set; everywhere, if CLICOLOR_FORCE is
    #[arg(long, value_name = "WHEN", global = true, default_value = "auto", display_order = 901)]
    color: ColorChoice,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Show an icon in the panel with a menu of all sessions (the default)
    Tray,
    /// Show a live table of all sessions, with keys that act
    Live,
    /// Show every session, once
    Status(status::Arguments),
    /// Print every change as it happens
    Watch(watch::Arguments),
    /// Explain why a session has its status, and what would change it
    Explain(explain::Arguments),
    /// Approve a permission request, once
    Approve(act::Answer),
    /// Deny a permission request
    Deny(act::Answer),
    /// Answer what a session asks you: a question, a tool's form, a plan
    Answer(act::Reply),
    /// Have Copilot ask, in its terminal, whether Pilotlight may answer there
    LetAnswer(act::One),
    /// Stop a session's turn; end a plain terminal without the bridge, after asking
    Stop(act::Stop),
    /// Reconnect to a session that lost its client or its process
    Reconnect(act::Reconnect),
    /// Resume a session in a terminal
    Resume(act::One),
    /// Bring the terminal of a session to the front
    Show(act::One),
    /// Replay a log: which statuses it had, when and why
    Replay(replay::Arguments),
    /// Try Pilotlight on scripted sessions, without Copilot
    Demo(demo::Arguments),
    /// Send a test notification, and say what this desktop supports
    NotifyTest,
    /// Find what keeps Pilotlight from working, and say what to do
    Doctor(doctor::Arguments),
    /// Print what a bug report needs, without names, paths, prompts, commands or tokens
    Diagnostics,
    /// Install, remove or check the bridge to sessions in plain terminals
    Bridge(bridge::Arguments),
    /// Show or edit the settings
    Config(config::Arguments),
    /// Write completions, desktop entry and systemd unit if no package did; asks first
    Setup(setup::Arguments),
    /// Print the completion script for a shell
    Completions(pages::Completions),
    /// Print the manual page, or write all pages into a folder
    Man(pages::Man),
}

/// What every command is given.
struct Context {
    /// What `--home` named.
    named_homes: Vec<PathBuf>,
    homes: Vec<PathBuf>,
    config: Config,
    config_path: Option<PathBuf>,
    seen: Seen,
    problems: Vec<Problem>,
    /// The sessions play themselves.
    demo: bool,
    /// What `--color` said.
    color: ColorChoice,
}

/// Runs the command that the arguments name.
pub fn run() -> ExitCode {
    // Asked by a shell: nothing else is done.
    clap_complete::CompleteEnv::with_factory(Arguments::command).var(pages::COMPLETES).complete();
    refused::tell_of_threads();
    let parsed = help::command().try_get_matches().and_then(|matches| Arguments::from_arg_matches(&matches));
    let arguments = match parsed {
        Ok(arguments) => arguments,
        Err(error) => return told(&error),
    };
    if let Some(Command::Demo(arguments)) = &arguments.command
        && let Some(played) = arguments.part()
    {
        return ended(played);
    }
    descriptors::raise();
    let context = Context { color: arguments.color, ..Context::new(&arguments.home) };
    if !matches!(arguments.command, None | Some(Command::Tray | Command::Demo(_))) {
        log::start(None, context.config.log.level);
    }
    // Its output is written apart, and may wait for a reader for ever.
    let streams = matches!(arguments.command, Some(Command::Watch(_)));
    let result = match arguments.command {
        None | Some(Command::Tray) => tray::run(context),
        Some(Command::Live) => live::run(context),
        Some(Command::Status(arguments)) => status::run(&context, &arguments),
        Some(Command::Watch(arguments)) => watch::run(&context, &arguments),
        Some(Command::Explain(arguments)) => explain::run(&context, &arguments),
        Some(Command::Approve(arguments)) => act::approve(&context, &arguments),
        Some(Command::Deny(arguments)) => act::deny(&context, &arguments),
        Some(Command::Answer(arguments)) => act::reply(&context, &arguments),
        Some(Command::LetAnswer(arguments)) => act::let_answer(&context, &arguments),
        Some(Command::Stop(arguments)) => act::stop(&context, &arguments),
        Some(Command::Reconnect(arguments)) => act::reconnect(&context, &arguments),
        Some(Command::Resume(arguments)) => act::resume(&context, &arguments),
        Some(Command::Show(arguments)) => act::show(&context, &arguments),
        Some(Command::Replay(arguments)) => replay::run(&context, &arguments),
        Some(Command::Demo(arguments)) => demo::run(context, &arguments),
        Some(Command::NotifyTest) => notify_test::run(&context),
        Some(Command::Doctor(arguments)) => doctor::run(&context, &arguments),
        Some(Command::Diagnostics) => diagnostics::run(&context),
        Some(Command::Bridge(arguments)) => bridge::run(&context, &arguments),
        Some(Command::Config(arguments)) => config::run(&context, &arguments),
        Some(Command::Setup(arguments)) => setup::run(&arguments),
        Some(Command::Completions(arguments)) => pages::completions(&arguments),
        Some(Command::Man(arguments)) => pages::man(&arguments),
    };
    ended(if streams { result } else { result.and_then(written_out) })
}

/// Prints what the arguments ask for by themselves (help, the version) or what is wrong with them.
fn told(error: &clap::Error) -> ExitCode {
    let written = error.print();
    if error.use_stderr() {
        return ExitCode::from(USAGE);
    }
    ended(written.map(|()| ExitCode::SUCCESS).map_err(anyhow::Error::from).and_then(written_out))
}

/// What was not written is not done.
fn written_out(code: ExitCode) -> anyhow::Result<ExitCode> {
    io::stdout().flush()?;
    Ok(code)
}

/// The exit code of a command, and what there is to say of it.
fn ended(result: anyhow::Result<ExitCode>) -> ExitCode {
    match result {
        Ok(code) => code,
        // Whoever reads has had enough: no error of ours.
        Err(error) if error.downcast_ref::<io::Error>().is_some_and(|io| io.kind() == io::ErrorKind::BrokenPipe) => {
            ExitCode::SUCCESS
        }
        Err(error) if error.downcast_ref::<io::Error>().is_some_and(|io| io.kind() == io::ErrorKind::StorageFull) => {
            say(&format!("the output cannot be written: {error:#}"));
            ExitCode::FAILURE
        }
        Err(error) => {
            say(&format!("{error:#}"));
            ExitCode::FAILURE
        }
    }
}

impl Context {
    fn new(homes: &[PathBuf]) -> Self {
        let env = |name| std::env::var_os(name).filter(|value| !value.is_empty());
        let project = paths::project();
        let config_path = paths::config_file(env("PILOTLIGHT_CONFIG"), project.as_ref());
        let (config, problems) = config_path.as_deref().map(crate::config::load).unwrap_or_default();
        let named_homes = homes.to_vec();
        let homes = homes_of(&named_homes, &config);
        let seen = Seen::load(project.as_ref().map(|project| paths::state_folder(project).join(last_seen::FILE)));
        Self { named_homes, homes, config, config_path, seen, problems, demo: false, color: ColorChoice::Auto }
    }

    /// An order for the session of this id in the home that is looked into here: whoever takes it may watch a copy of that home.
    fn in_its_home(&self, order: Order) -> Order {
        let home = self.homes.iter().find(|home| home.join(SESSIONS).join(&*order.id).is_dir());
        match home {
            Some(home) => order.in_home(home),
            None => order,
        }
    }

    /// What is looked at by `doctor` and `diagnostics`.
    fn ground(&self) -> Ground {
        let project = paths::project();
        Ground {
            homes: self.homes.clone(),
            config: self.config.clone(),
            config_path: self.config_path.clone(),
            problems: self.problems.clone(),
            seen: self.seen.clone(),
            state_folder: project.as_ref().map(paths::state_folder),
            runtime_folders: project.as_ref().map(paths::runtime_folders).unwrap_or_default(),
            user_home: paths::user_home(),
        }
    }

    fn engine(&self) -> Engine {
        let mut engine = Engine::new(&self.homes, self.config.clone(), self.seen.clone());
        if let Some(path) = self.config_path.clone() {
            let named = self.named_homes.clone();
            let homes = move |config: &Config| homes_of(&named, config);
            engine.take_settings_from(Source { path, problems: self.problems.clone(), homes: Box::new(homes) });
        }
        engine
    }

    /// Says what ended with Pilotlight when it was told to end, if nobody has said that yet.
    fn tell_ended(&self) {
        let project = paths::project();
        let ended = project.as_ref().map(|project| ended::take(&paths::state_folder(project))).unwrap_or_default();
        ended.iter().for_each(|ended| say(&ended.words()));
    }

    /// Says what is wrong with the config, once a run.
    fn tell_problems(&self) {
        for problem in &self.problems {
            say(&problem.to_string());
        }
    }

    /// Whether no home can be read at all.
    fn has_no_home(&self) -> bool {
        self.unreadable_homes().len() >= self.homes.len()
    }

    /// Why a home cannot be read, for those that cannot.
    fn unreadable_homes(&self) -> Vec<String> {
        if self.homes.is_empty() {
            return vec!["cannot find Copilot's home: name it with --home DIR or COPILOT_HOME".into()];
        }
        self.homes.iter().filter_map(|home| home_problem(home)).map(|line| plain(&line, LINE_MAX).into()).collect()
    }
}

/// Copilot's homes: those that `--home` named, else those of the environment and of the settings.
fn homes_of(named: &[PathBuf], config: &Config) -> Vec<PathBuf> {
    let env = std::env::var_os("COPILOT_HOME").filter(|value| !value.is_empty());
    paths::homes(named, env, &config.homes, paths::user_home())
}

/// Why a home cannot be read.
fn home_problem(home: &std::path::Path) -> Option<String> {
    let shown = home.display();
    let error = std::fs::read_dir(home.join(SESSIONS)).err()?;
    Some(match (error.kind(), home.is_dir()) {
        // A home in which no session was ever started.
        (io::ErrorKind::NotFound, true) => return None,
        (io::ErrorKind::NotFound, false) => format!(
            "there is no Copilot home at {shown}: start `copilot` once, or name another with --home DIR or COPILOT_HOME"
        ),
        _ => format!("the Copilot home {shown} cannot be read: {error}"),
    })
}

/// One line to the user beside the output.
fn say(line: &str) {
    let _ = writeln!(io::stderr(), "pilotlight: {}", plain(line, LINE_MAX)); // without a standard error there is nobody to tell
}

/// Watches with this view until it or a signal has enough.
fn watch_until_told(engine: Engine, view: &mut dyn View) -> anyhow::Result<()> {
    runtime()?.block_on(async {
        engine.run(Signals::new()?, view).await;
        Ok(())
    })
}

/// The runtime of the commands that watch: one thread.
fn runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("the system refuses what waiting for events needs")
}
