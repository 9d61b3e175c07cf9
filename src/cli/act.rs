//! `pilotlight reconnect`, `stop`, `approve`, `deny`, `answer`, `resume` and `show`: the menu's actions, from a
//! terminal or a script.
//!
//! This module turns the arguments into an order and, before one that ends a session, asks the user. [`requests`] is
//! `approve` and `deny`, [`reply`] is `answer`. [`carry`] carries an order out, through the running tray or in this
//! process; [`output`] prints the reports.

mod carry;
mod evidence;
mod here;
mod order;
mod output;
mod remote;
mod reply;
mod requests;
mod staying;
mod window;

use super::ask::{CANNOT_ASK, confirm};
use super::asking::{Asks, MaybeNamed};
use super::bridges::has_bridge;
use super::context::{Context, runtime};
use super::pick::{Named, Picked};
use super::report::{USAGE, say};
use carry::carry_out;
use order::{code, order, refuse, refused_to_agent, with, with_asking, with_one_of};
use output::Printer;
use pilotlight_agents::channel::ACTIVITY_TIMEOUT;
use pilotlight_agents::control::KnownServers;
use pilotlight_agents::home::homes_of;
use pilotlight_agents::scanner::OpenScanner;
use pilotlight_core::action::{Action, ActionFlag, ServerState, has_open_tool, is_hosting, offer, unproven};
use pilotlight_core::attempts::UNCOUNTED;
use pilotlight_core::fleet::{Kind, Session};
use pilotlight_core::order::{Operation, Order, Outcome, Risk};
use pilotlight_core::owner::{Owner, may_have_it_open};
use pilotlight_core::text::{NAME_MAX, plain};
use pilotlight_core::words::offer::without_program;
use pilotlight_core::words::refusal::Refusal;
use pilotlight_engine::control::caller::is_reserved_for_people;
use pilotlight_engine::past::Depth;
use pilotlight_system::clock::Clock;
use pilotlight_system::paths::is_local_folder;
use pilotlight_system::process;
use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

pub(super) use here::command_there;
pub(super) use reply::{Arguments as Reply, reply};
pub(super) use requests::{Approve, Deny, approve, deny};
pub(super) use window::keep_open;

/// Arguments of `reconnect`.
#[derive(Debug, clap::Args)]
pub(super) struct Reconnect {
    #[command(flatten)]
    session: Named,
    /// Send your last prompt again, if no tool has run since
    #[arg(long)]
    resend: bool,
    /// Let the session continue: send your last prompt again or, if a tool has run since, the `continue-prompt` of the
    /// settings
    #[arg(long = "continue", conflicts_with = "resend")]
    go_on: bool,
    /// Do not ask first, even if the session loses tools, hooks or instructions that an editor or other program gave it
    #[arg(long)]
    yes: bool,
}

/// Arguments of `stop`.
#[derive(Debug, clap::Args)]
pub(super) struct Stop {
    #[command(flatten)]
    session: Named,
    /// End the session, not only its turn
    #[arg(long)]
    end: bool,
    /// Do not ask before ending the session
    #[arg(long)]
    yes: bool,
}

pub(super) fn reconnect(context: &Context, arguments: &Reconnect) -> anyhow::Result<ExitCode> {
    with(context, &arguments.session, |session| {
        if arguments.go_on
            && session.remote.is_none()
            && let Some(why) = only_resumable(context, session)
        {
            return match confirm(&format!("pilotlight: {why}. Resume it in a terminal now?")) {
                Some(true) => act(context, session, Operation::Resume, Vec::new(), false),
                Some(false) => Ok(refuse("the session was left as it is")),
                None => Ok(refuse(&format!("{why}: `pilotlight resume {}`", session.id))),
            };
        }
        let operation =
            if arguments.go_on { Operation::Continue } else { Operation::Reconnect { resend: arguments.resend } };
        let page = context.page_of(session).filter(|_| session.remote.is_none());
        if page.as_ref().is_some_and(|page| !page.is_lockable()) {
            // It is left alone, whatever the user would say here; the order's refusal names the reason.
            return act(context, session, operation, Vec::new(), false);
        }
        if let Err(error) = page.map_or(Ok(()), |page| page.check_countable()) {
            match confirm(&format!("{UNCOUNTED} ({error}). Recover it anyway, this once?")) {
                Some(true) => {}
                Some(false) => return Ok(refuse("the session was left as it is")),
                None => {
                    return Ok(refuse(&format!("{UNCOUNTED} ({error}). {CANNOT_ASK}: nothing was done")));
                }
            }
        }
        let mut agreed = Vec::new();
        if arguments.yes && (arguments.go_on || arguments.resend) {
            agreed.push(Risk::WithoutProgram); // its server may end just now
        } else if session.remote.is_none() && is_hosting(session) && (arguments.go_on || arguments.resend) {
            let home = context.home_of(session);
            let lacks = without_program(home.is_some_and(|home| home.has_instructions(&session.id)));
            let question = format!("It would continue {lacks}. Continue anyway?");
            match confirm(&question) {
                Some(true) => agreed.push(Risk::WithoutProgram),
                Some(false) => return Ok(refuse("the session was left as it is")),
                None => {
                    return Ok(refuse(&format!("it would continue {lacks}. {CANNOT_ASK}: add `--yes` if you agree")));
                }
            }
        }
        act(context, session, operation, agreed, needs_connection(session))
    })
}

pub(super) fn stop(context: &Context, arguments: &Stop) -> anyhow::Result<ExitCode> {
    with(context, &arguments.session, |session| {
        // The sessions of a demo have theirs without an installation.
        let is_reachable = context.demo.is_some() || has_bridge();
        let operation = if arguments.end || needs_end(session) && !is_reachable {
            Operation::End { confirmed: true }
        } else {
            Operation::Stop
        };
        if operation != Operation::Stop
            && let Some(pid) = unproven(session)
        {
            let process = shown_process(pid);
            let only = format!("nly a file says that {process} runs {}", session.label.cut(NAME_MAX));
            return match confirm(&format!("O{only}. End that process?")) {
                Some(true) => act(context, session, operation, vec![Risk::OtherProcess], false),
                Some(false) => Ok(refuse("the session was left as it is")),
                None => Ok(refuse(&format!("o{only}. {CANNOT_ASK}: nothing was signalled"))),
            };
        }
        if operation != Operation::Stop && !arguments.yes {
            let tool = if has_open_tool(session) { " This kills its tool." } else { "" };
            let question =
                format!("End the session \"{}\"?{tool} You can resume it later.", session.label.cut(NAME_MAX));
            match confirm(&question) {
                Some(true) => {}
                Some(false) => return Ok(refuse("the session was left as it is")),
                None => {
                    let ends = if arguments.end {
                        "`--end` ends the session"
                    } else {
                        "its turn cannot be stopped, only the session ended"
                    };
                    return Ok(refuse(&format!("{ends}. {CANNOT_ASK}: add `--yes` if you agree")));
                }
            }
        }
        act(context, session, operation, Vec::new(), false)
    })
}

/// What is to be known of a process before it is ended.
fn shown_process(pid: u32) -> String {
    let now = Clock::start().now().wall;
    let started = match process::read(pid, now) {
        process::PidStatus::Process { started, .. } => started,
        _ => None,
    };
    let folder = process::folder_of(pid).map(|folder| format!("works in {}", folder.display()));
    let known: Vec<_> = folder.into_iter().chain(started.map(|at| format!("started {} ago", now - at))).collect();
    let known = if known.is_empty() { String::new() } else { format!(", which {},", known.join(" and ")) };
    plain(&format!("process {pid}{known}"), 400).into()
}

/// `show`: brings the terminal of a session to the front, or of the one that asks if none is named.
pub(super) fn show_asking(context: &Context, session: &MaybeNamed) -> anyhow::Result<ExitCode> {
    with_asking(context, session, Asks::Anything, |session| {
        act(context, session, Operation::ShowTerminal, Vec::new(), false)
    })
}

/// Brings the terminal of a session to the front. Returns whether that is done.
pub(super) fn show(context: &Context, session: &Picked) -> anyhow::Result<bool> {
    let outcome = act(context, session, Operation::ShowTerminal, Vec::new(), false)?;
    Ok(matches!(outcome, Outcome::Done(_)))
}

/// `let-answer`.
pub(super) fn give(context: &Context, session: &Named, operation: Operation) -> anyhow::Result<ExitCode> {
    with(context, session, |session| act(context, session, operation, Vec::new(), false))
}

/// Resumes a session in a terminal of its own, or in this one if it is to be `here`, where one that a process runs is shown
/// in its own terminal instead. `folder` takes the place of its own.
pub(super) fn resume(
    context: &Context,
    session: &Named,
    folder: Option<&Path>,
    here: bool,
) -> anyhow::Result<ExitCode> {
    let folder = match folder.map(chosen_folder).transpose() {
        Ok(folder) => folder,
        Err(why) => {
            say(&why);
            return Ok(ExitCode::from(USAGE));
        }
    };
    // Its own folder, which is for the engine to find elsewhere, is needed here.
    let depth = if here { Depth::Whole } else { Depth::Quick };
    with_one_of(context, session, depth, |session| {
        if session.remote.is_some() && folder.is_some() {
            return Ok(refuse("`--in` names a folder of this machine, and the session is on another: resume it there"));
        }
        if let (Some(remote), true) = (&session.remote, here) {
            return here::resume_there(context, session, &remote.host.name);
        }
        if let (Some(pid), true) = (session.runner().live(), here) {
            say(&format!("process {pid} runs it: showing its terminal instead"));
            return act(context, session, Operation::ShowTerminal, Vec::new(), false);
        }
        match settled(context, session, Order { folder, ..order(session, Operation::Resume) }) {
            Ok(order) if here => here::resume(context, session, &order),
            Ok(order) => carry_out(context, session, &order, false, &mut Printer),
            Err(refused) => Ok(refused),
        }
    })
}

/// The whole path of a folder that was named.
///
/// # Errors
/// Why it cannot be used.
fn chosen_folder(named: &Path) -> Result<Box<str>, String> {
    let shown = named.display();
    let folder = std::path::absolute(named).map_err(|error| format!("{shown}: {error}"))?;
    if !is_local_folder(&folder) {
        return Err(format!("there is no folder {shown} to resume it in"));
    }
    folder.into_os_string().into_string().map(Into::into).map_err(|_| format!("the name of {shown} is not UTF-8"))
}

/// Runs what [`command_there`] made, in place of this program where the system can do that.
pub(super) fn resume_there(command: Vec<OsString>) -> anyhow::Result<ExitCode> {
    here::become_command(command).map(|outcome| code(&outcome))
}

/// Gives the order, unless only a person may, and an agent runs this command. `stays`: see [`carry_out`].
fn act(
    context: &Context,
    session: &Picked,
    operation: Operation,
    agreed: Vec<Risk>,
    stays: bool,
) -> anyhow::Result<Outcome> {
    if is_reserved_for_people(&operation)
        && let Some(refused) = refused_to_agent(context)
    {
        return Ok(refused);
    }
    match settled(context, session, Order { agreed, ..order(session, operation) }) {
        Ok(order) => carry_out(context, session, &order, stays, &mut Printer),
        Err(refused) => Ok(refused),
    }
}

/// The order, once it is clear that no other process has the session open, or the user says so.
///
/// # Errors
/// The outcome, if it is refused.
fn settled(context: &Context, session: &Picked, mut order: Order) -> Result<Order, Outcome> {
    if order.operation.action().is(ActionFlag::Recovery)
        && session.remote.is_none()
        && session.runner().live().is_none()
    {
        match suspicion(context, session) {
            None => {}
            Some(Suspicion::Unfounded) => order.agreed.push(Risk::OtherOwner),
            Some(Suspicion::Loaded(pid)) => {
                return Err(refuse(&format!("process {pid} has it open: continue there")));
            }
            Some(Suspicion::Untold(pid)) => {
                let may = may_have_it_open(pid, &session.observed.agent);
                match confirm(&format!("{may}. A second process would corrupt its history. Continue anyway?")) {
                    Some(true) => order.agreed.push(Risk::OtherOwner),
                    Some(false) => return Err(refuse("the session was left as it is")),
                    None => return Err(refuse(&format!("{may}. {CANNOT_ASK}: nothing was done"))),
                }
            }
        }
    }
    Ok(order)
}

/// Whether a Copilot that does not log what it opens has a session open.
enum Suspicion {
    /// Each says over its server that it does not.
    Unfounded,
    /// This process says that it does.
    Loaded(u32),
    /// Of this one it cannot be known.
    Untold(u32),
}

/// Looks for Copilots that may have a session open, and asks those that listen. `None` if there are none.
fn suspicion(context: &Context, session: &Session) -> Option<Suspicion> {
    let home = context.home_of(session)?;
    let now = Clock::start().now().wall;
    let openings = OpenScanner::default().scan(&[&home], &context.config.owners.names, now);
    let (folder, last) = (session.cwd().map(Path::new), session.observed.facts.progress.map(|last| last.wall));
    let suspects: Vec<u32> = openings.suspects(home.root(), &session.id, folder, last).collect();
    let mut worst = None;
    let homes = homes_of(home.adapter(), &context.homes);
    let known = KnownServers { homes: &homes, settings: &context.config.servers, is_trusted: false };
    for pid in suspects {
        let servers = home.control().and_then(|control| control.servers(pid, &known));
        let loaded = async { servers?.has_loaded(&session.id, ACTIVITY_TIMEOUT).await };
        match runtime().ok()?.block_on(loaded) {
            Some(true) => return Some(Suspicion::Loaded(pid)),
            Some(false) => worst = worst.or(Some(Suspicion::Unfounded)),
            None => worst = Some(Suspicion::Untold(pid)),
        }
    }
    worst
}

/// Why a session that no process runs cannot be told to go on, if it can be resumed in a terminal.
fn only_resumable(context: &Context, session: &Picked) -> Option<Refusal> {
    let status = session.row(session.now, &context.config.limits).1.status;
    offer(Action::Resume, session, status).ok()?;
    offer(Action::Continue, session, status).err()
}

/// Whether nothing but its terminal, or a bridge to it, can abort a session's turn.
fn needs_end(session: &Session) -> bool {
    matches!(session.observed.owner, Owner::Alive { .. })
        && session.observed.about.kind == Kind::Terminal
        && session.control.server == ServerState::NotListening
        && !session.observed.is_served
}

/// Whether a session depends on our connection once it is reconnected. One that is resumed in a terminal does not.
fn needs_connection(session: &Session) -> bool {
    session.observed.owner.live().is_some() || session.observed.about.kind != Kind::Terminal
}
