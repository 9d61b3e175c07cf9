//! Resumes a session in this terminal: the agent takes this process's place.
//!
//! Everything is checked, and recorded for other processes, as for a resume in a terminal of its own, but by an engine of
//! this command alone: a tray could only open another terminal.

use super::order::refuse;
use super::output::{Printer, Reporter};
use super::staying::SessionWatch;
use crate::cli::context::{Context, runtime};
use crate::cli::pick::Picked;
use crate::cli::report::say;
use pilotlight_agents::home::Resume;
use pilotlight_core::agent::Agent;
use pilotlight_core::order::{Order, OrderReport, Outcome};
use pilotlight_core::text::is_uuid;
use pilotlight_engine::control::{Command, PendingOrder};
use pilotlight_engine::hosts::command;
use pilotlight_engine::terminal::Terminals;
use pilotlight_system::signals::Signals;
use pilotlight_system::{descriptors, paths};
use std::ffi::OsString;
use std::path::Path;
use std::pin::pin;
use tokio::sync::mpsc::unbounded_channel;

/// Carries out the order to resume a session. If that works, it returns only where a program cannot take the place of
/// another.
pub(super) fn resume(context: &Context, session: &Picked, order: &Order) -> anyhow::Result<Outcome> {
    let (order, folder) = (context.with_home(order.clone()), order.folder.clone());
    let (outcome, resume) = runtime()?.block_on(permitted(context, order))?;
    match resume {
        Some(resume) => become_agent(&resume, folder.as_deref().or(session.cwd()).map(Path::new)),
        None => Ok(outcome),
    }
}

/// Resumes a session on another machine in this terminal, by `ssh`.
pub(super) fn resume_there(context: &Context, session: &Picked, host: &str) -> anyhow::Result<Outcome> {
    match command_there(context, &session.id, &session.observed.agent, host) {
        Ok(command) => become_command(command),
        Err(why) => Ok(refuse(&why)),
    }
}

/// The words that resume a session on another machine in this terminal.
///
/// # Errors
/// Why that is not possible.
pub(in crate::cli) fn command_there(
    context: &Context,
    id: &str,
    agent: &Agent,
    host: &str,
) -> Result<Vec<OsString>, String> {
    if let Agent::Reported(_) = agent {
        return Err(format!("it cannot be resumed: Pilotlight knows only what a hook on {host} reports"));
    }
    let Some(host) = context.hosts().find(|one| *one.name == *host) else {
        return Err("that machine is no longer in the settings".into());
    };
    if !is_uuid(id) {
        return Err("it cannot be resumed: its id is not valid for its agent".into());
    }
    let of_command = || format!("resume it on {}: it cannot be resumed from here", host.name);
    command::resume(host, id).ok_or_else(of_command)
}

/// Runs it in place of this program where the system can do that.
pub(in crate::cli) fn become_command(command: Vec<OsString>) -> anyhow::Result<Outcome> {
    become_agent(&Resume { command, env: Vec::new() }, None)
}

/// Has an engine of our own carry out the order. Returns what is to be run, if it may be.
async fn permitted(context: &Context, order: Order) -> anyhow::Result<(Outcome, Option<Resume>)> {
    let signals = Signals::new()?;
    let (mut engine, (here, mut resumes), (reply, mut reports)) =
        (context.engine(), unbounded_channel(), unbounded_channel());
    engine.resume_here(here);
    engine.forward_to_holders(paths::project().iter().flat_map(paths::runtime_folders).collect());
    let commander = engine.command_sender();
    let (mut view, _observed) = SessionWatch::new(&order.id);
    // Both fail only when the engine has ended.
    let _ = commander.send(Command::Act(PendingOrder::by_caller(order, reply, std::process::id())));
    let mut run = pin!(engine.run(signals, &mut view));
    let mut outcome = Outcome::Failed("interrupted; nothing was done".into());
    loop {
        tokio::select! {
            biased;
            Some(report) = reports.recv() => {
                match report {
                    OrderReport::End(end) => {
                        outcome = end;
                        let _ = commander.send(Command::Quit);
                    }
                    step => Printer.report(&step),
                }
            }
            () = &mut run => break,
        }
    }
    Printer.report(&OrderReport::End(outcome.clone()));
    let resume = resumes.try_recv().ok().filter(|_| matches!(outcome, Outcome::Done(_)));
    Ok((outcome, resume))
}

/// Runs the agent in the session's folder, in place of this program where the system can do that.
fn become_agent(resume: &Resume, folder: Option<&Path>) -> anyhow::Result<Outcome> {
    let (folder, elsewhere) = Terminals::new(None).place(folder);
    if let Some(elsewhere) = elsewhere {
        say(&format!("it is resumed {elsewhere}"));
    }
    let Some((program, arguments)) = resume.command.split_first() else {
        return Ok(Outcome::Failed("there is nothing to run".into()));
    };
    let mut command = std::process::Command::new(program);
    command.args(arguments).envs(resume.env.iter().map(|(name, value)| (name, value))).current_dir(folder);
    descriptors::restore(&mut command);
    let program = Path::new(program).display();
    #[cfg(unix)]
    let failed = std::os::unix::process::CommandExt::exec(&mut command);
    #[cfg(not(unix))]
    let failed = match command.status() {
        Ok(status) if status.success() => return Ok(Outcome::Done("it has ended".into())),
        Ok(status) => return Ok(Outcome::Failed(format!("{program} ended with {status}"))),
        Err(error) => error,
    };
    anyhow::bail!("{program} cannot be started: {failed}")
}
