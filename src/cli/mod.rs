//! The command line, one file per subcommand. Arguments are parsed here and interpreted by each command.

mod act;
mod agent_hook;
mod agents;
mod ask;
mod asking;
mod bars;
mod bridge;
mod bridges;
mod charset;
mod color;
mod config;
mod context;
mod demo;
mod diagnostics;
mod doctor;
mod explain;
mod fold;
mod help;
mod hook;
mod host;
mod hosts;
mod json;
mod keyboard;
mod live;
mod next;
mod notify_test;
mod observe;
mod openmetrics;
mod pages;
mod pick;
mod replay;
mod report;
mod resume;
mod serve;
mod setup;
mod status;
mod table;
mod tray;
mod trays;
mod wait;
mod watch;
mod writer;

use clap::error::{ContextKind, ContextValue};
use clap::{ColorChoice, CommandFactory, FromArgMatches, Parser, Subcommand};
use context::Context;
use pick::Named;
use pilotlight_core::order::Operation;
use pilotlight_system::clock::wall_nanoseconds;
use pilotlight_system::{descriptors, log};
use report::{USAGE, exit_code, flush_stdout, say};
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

/// The arguments of `pilotlight`.
#[derive(Debug, Parser)]
#[command(version = crate::VERSION, about, max_term_width = 100)]
struct Arguments {
    /// A home: the folder in which an agent keeps its sessions. Repeat the option for several homes. Default: each agent's
    /// usual home (for Copilot, $COPILOT_HOME or ~/.copilot), the `homes` in the settings, and the homes of running agents
    #[arg(long, value_name = "DIR", global = true, display_order = 900)]
    home: Vec<PathBuf>,
    /// When to use colours. `auto` uses them on a terminal, but never if NO_COLOR is set, and always if CLICOLOR_FORCE is
    /// set
    #[arg(long, value_name = "WHEN", global = true, default_value = "auto", display_order = 901)]
    color: ColorChoice,
    /// The tray runs this in a window that it opened at a click
    #[arg(long, value_name = "TICKET", hide = true)]
    window: Option<String>,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Show an icon in the panel, or a table if there is no panel (the default command)
    Tray,
    /// Show a live table of all sessions, with a key for each action
    Live(agents::Agents),
    /// List all sessions once
    Status(status::Arguments),
    /// Print each change of a session when it happens, as JSON or as text for a status bar
    Watch(watch::Arguments),
    /// Wait until a session is done, needs you or has the status that you name
    Wait(wait::Arguments),
    /// Explain why a session has its status, and what you can do about it
    Explain(explain::Arguments),
    /// Approve a permission request, once
    Approve(act::Approve),
    /// Deny a permission request
    Deny(act::Deny),
    /// Answer a session's question, fill in its form, or decide on its plan
    Answer(act::Reply),
    /// Ask in a Copilot session's terminal whether Pilotlight may approve and deny there
    LetAnswer(Named),
    /// Stop a session's turn; if that is impossible, offer to end the session
    Stop(act::Stop),
    /// Reconnect a session that lost its permissions, or whose turn was cut off
    Reconnect(act::Reconnect),
    /// Resume a session in a new terminal; without a name, choose one from a list
    Resume(resume::Arguments),
    /// Show a session's terminal: bring its window to the front
    Show(asking::MaybeNamed),
    /// Bring up the first session that needs you: its terminal, else its request or question
    Next(next::Arguments),
    /// Report what a session is doing; the hook of an agent runs this command
    Report(hook::Arguments),
    /// Answer what an agent asks its user, started by the agent's hook
    #[command(hide = true)]
    Hook(agent_hook::Arguments),
    /// Replay a session's log: which statuses it had, when, and why
    Replay(replay::Arguments),
    /// Try Pilotlight on scripted sessions, without an agent
    Demo(demo::Arguments),
    /// Send a test notification, and say what this desktop supports
    NotifyTest,
    /// Find what keeps Pilotlight from working, and say what to do
    Doctor(doctor::Arguments),
    /// Print what a bug report needs, without names, paths, prompts, commands or tokens
    Diagnostics,
    /// Install, remove or check the bridge, which lets you answer sessions in terminals
    Bridge(bridge::Arguments),
    /// Show or edit the settings
    Config(config::Arguments),
    /// Add, test, list, update or remove other machines, to show their sessions on this one
    Host(host::Arguments),
    /// Let a Pilotlight on another machine see this machine's sessions and act on them
    Serve(serve::Arguments),
    /// Write completions, a desktop entry and a systemd unit if no package did; asks first
    Setup(setup::Arguments),
    /// Print the completion script for a shell
    Completions(pages::Completions),
    /// Print the manual page, or write all pages into a folder
    Man(pages::Man),
}

/// The command line's definition.
fn command_line() -> clap::Command {
    help::quoted(Arguments::command())
}

/// Parses the arguments and runs the command.
pub fn run() -> ExitCode {
    // Before anything that takes time: its agent waits.
    if let Some(code) = agent_hook::run_first(std::env::args_os()) {
        return code;
    }
    let began = wall_nanoseconds();
    // Answers a shell's request for completions, and exits.
    clap_complete::CompleteEnv::with_factory(command_line).var(pages::COMPLETES).complete();
    let arguments = match parse(std::env::args_os()) {
        Ok(arguments) => arguments,
        Err(error) if error.use_stderr() && hook::is_asked_for(std::env::args_os()) => {
            say(&hook::usage(&error));
            return ExitCode::FAILURE;
        }
        Err(error) => return print_usage(&error),
    };
    match &arguments.command {
        Some(Command::Demo(arguments)) if let Some(code) = arguments.part() => return code,
        Some(Command::Report(arguments)) => return hook::run(arguments, began),
        Some(Command::Hook(arguments)) => return agent_hook::run(arguments),
        _ => {}
    }
    descriptors::raise();
    let context = Context { color: arguments.color, window: arguments.window, ..Context::new(&arguments.home) };
    carry_out(arguments.command, context)
}

/// Reads the arguments. Writing the help takes longer than reading them, so only what shows it pays for it.
fn parse(words: impl IntoIterator<Item = OsString>) -> Result<Arguments, clap::Error> {
    let words: Vec<_> = words.into_iter().collect();
    let matches = Arguments::command().try_get_matches_from(&words);
    let matches = matches.or_else(|_| help::command(command_line()).try_get_matches_from(&words));
    matches.map_err(without_hidden).and_then(|matches| Arguments::from_arg_matches(&matches))
}

/// The same error, suggesting no command that the help does not list.
fn without_hidden(mut error: clap::Error) -> clap::Error {
    let is_listed =
        |name: &String| Arguments::command().find_subcommand(name).is_some_and(|found| !found.is_hide_set());
    if let Some(ContextValue::Strings(mut names)) = error.remove(ContextKind::SuggestedSubcommand) {
        names.retain(is_listed);
        if !names.is_empty() {
            error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(names));
        }
    }
    error
}

fn carry_out(command: Option<Command>, context: Context) -> ExitCode {
    if !matches!(command, None | Some(Command::Tray | Command::Demo(_))) {
        log::start(None, context.config.log.level);
    }
    // `watch` writes its output on another thread. Flushing here could block forever on a reader that does not read.
    let flushes_itself = matches!(command, Some(Command::Watch(_)));
    let result = match command {
        None | Some(Command::Tray) => tray::run(context),
        Some(Command::Live(agents)) => agents.limit(context).map_or_else(Ok, live::run),
        Some(Command::Status(arguments)) => {
            arguments.agents.limit(context).map_or_else(Ok, |context| status::run(&context, &arguments))
        }
        Some(Command::Watch(arguments)) => {
            arguments.agents.limit(context).map_or_else(Ok, |context| watch::run(&context, &arguments))
        }
        Some(Command::Wait(arguments)) => {
            arguments.agents.limit(context).map_or_else(Ok, |context| wait::run(&context, &arguments))
        }
        Some(Command::Explain(arguments)) => explain::run(&context, &arguments),
        Some(Command::Approve(arguments)) => act::keep_open(&context, act::approve(&context, &arguments)),
        Some(Command::Deny(arguments)) => act::keep_open(&context, act::deny(&context, &arguments)),
        Some(Command::Answer(arguments)) => act::keep_open(&context, act::reply(&context, &arguments)),
        Some(Command::LetAnswer(session)) => act::give(&context, &session, Operation::LetAnswer),
        Some(Command::Stop(arguments)) => act::stop(&context, &arguments),
        Some(Command::Reconnect(arguments)) => act::reconnect(&context, &arguments),
        Some(Command::Resume(arguments)) => resume::run(&context, &arguments),
        Some(Command::Show(session)) => act::show_asking(&context, &session),
        Some(Command::Next(arguments)) => next::run(&context, &arguments),
        Some(Command::Report(arguments)) => return hook::run(&arguments, wall_nanoseconds()),
        Some(Command::Hook(arguments)) => return agent_hook::run(&arguments),
        Some(Command::Replay(arguments)) => replay::run(&context, &arguments),
        Some(Command::Demo(arguments)) => demo::run(context, &arguments),
        Some(Command::NotifyTest) => notify_test::run(&context),
        Some(Command::Doctor(arguments)) => doctor::run(&context, &arguments),
        Some(Command::Diagnostics) => diagnostics::run(&context),
        Some(Command::Bridge(arguments)) => bridge::run(&context, &arguments),
        Some(Command::Config(arguments)) => config::run(&context, &arguments),
        Some(Command::Host(arguments)) => host::run(&context, &arguments),
        Some(Command::Serve(arguments)) => serve::run(&context, &arguments),
        Some(Command::Setup(arguments)) => setup::run(&arguments),
        Some(Command::Completions(arguments)) => pages::completions(&arguments),
        Some(Command::Man(arguments)) => pages::man(&arguments, command_line()),
    };
    exit_code(if flushes_itself { result } else { result.and_then(flush_stdout) })
}

/// Prints help, the version, or a usage error: all arrive as a clap error.
fn print_usage(error: &clap::Error) -> ExitCode {
    let written = error.print();
    if error.use_stderr() {
        return ExitCode::from(USAGE);
    }
    exit_code(written.map(|()| ExitCode::SUCCESS).map_err(anyhow::Error::from).and_then(flush_stdout))
}

#[cfg(test)]
mod tests;
