//! `pilotlight next`: brings the first session that needs the user to the front, by a key of the desktop.
//!
//! Its terminal is shown, if it has one that can be. Else its request or question is shown in this terminal; a key has
//! none, so one is opened for that.

use super::act;
use super::ask::{has_terminal, prompt};
use super::asking::candidates;
use super::context::{Context, World};
use super::explain;
use super::fold::on_stdout;
use super::observe::Effort;
use super::pick::{Named, Picked, pick};
use super::report::{FAILED, exit_code, say};
use pilotlight_core::action::{Action, offer};
use pilotlight_core::fleet::{Row, Session};
use pilotlight_core::text::{NAME_MAX, plain};
use pilotlight_core::verdict::Status;
use pilotlight_engine::past::Depth;
use pilotlight_engine::terminal::Terminals;
use std::ffi::OsString;
use std::io::{self, Write};
use std::process::ExitCode;

/// Arguments of `next`.
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// This terminal was opened for a session whose own cannot be shown: this one
    #[arg(long, value_name = "ID", hide = true)]
    opened_for: Option<String>,
    /// The machine that it is on
    #[arg(long, value_name = "NAME", hide = true)]
    host: Option<String>,
}

pub(super) fn run(context: &Context, arguments: &Arguments) -> anyhow::Result<ExitCode> {
    if let Some(id) = &arguments.opened_for {
        let named = Named { id: id.clone(), host: arguments.host.clone() };
        let picked = pick(context, &named, Depth::Quick, Effort::Ask);
        let shown = picked.map_or_else(Ok, |picked| {
            let status = picked.row(picked.now, &context.config.limits).0.status;
            here(context, &named, &picked, status)
        });
        let code = exit_code(shown);
        // It closes when this program ends.
        prompt("Press Enter to close this window. ");
        return Ok(code);
    }
    let mut candidates = match candidates(context, None, Effort::Ask) {
        Ok(candidates) => candidates,
        Err(code) => return Ok(code),
    };
    let Some(first) = first(&candidates.rows) else {
        writeln!(io::stdout(), "no session needs you")?;
        return Ok(ExitCode::SUCCESS);
    };
    let (session, row) = (candidates.sessions.remove(first), candidates.rows.remove(first));
    let named = Named { id: (*row.id).into(), host: row.host.as_deref().map(Into::into) };
    let line = format!("{}: {}, {}", row.label, row.status, row.ageless_reason());
    let picked = Picked { session, label: row.label.clone(), now: candidates.now };
    if offer(Action::ShowTerminal, &picked, row.status).is_ok() {
        writeln!(io::stdout(), "{}", on_stdout(&plain(&line, NAME_MAX * 2)))?;
        if act::show(context, &picked)? {
            return Ok(ExitCode::SUCCESS);
        }
    }
    if has_terminal() { here(context, &named, &picked, row.status) } else { in_new_terminal(context, &named) }
}

/// The first that needs the user, in the order of all lists. What a machine told last that is not reached may be over.
fn first(rows: &[Row]) -> Option<usize> {
    let needing = rows.iter().enumerate().filter(|(_, row)| row.reached && row.needs_you());
    needing.min_by(|(_, a), (_, b)| a.sort_key().cmp(&b.sort_key())).map(|(n, _)| n)
}

/// Shows in this terminal what a session asks, and takes the answer; of one that asks nothing that can be answered here, why
/// it needs the user.
fn here(context: &Context, named: &Named, session: &Session, status: Status) -> anyhow::Result<ExitCode> {
    let can = |action| offer(action, session, status).is_ok();
    match status {
        Status::NeedsPermission if can(Action::Approve) => act::approve(context, &act::Approve::of(named)),
        Status::NeedsInput if can(Action::Answer) => act::reply(context, &act::Reply::of(named)),
        _ => explain::run(context, &explain::Arguments::of(named)),
    }
}

/// Does the same in a terminal of its own.
fn in_new_terminal(context: &Context, named: &Named) -> anyhow::Result<ExitCode> {
    let mut command: Vec<OsString> = vec![std::env::current_exe()?.into()];
    command.extend(context.demo.iter().flat_map(World::inside));
    for home in context.named_homes.iter().filter(|_| context.demo.is_none()) {
        command.extend(["--home".into(), std::path::absolute(home)?.into()]);
    }
    command.extend(["next".into(), "--opened-for".into(), named.id.clone().into()]);
    command.extend(named.host.iter().flat_map(|host| ["--host".into(), host.into()]));
    match Terminals::new(Some(context.config.actions.terminal.clone())).open(&command, None, &[]) {
        Ok(_) => Ok(ExitCode::SUCCESS),
        Err(why) => {
            say(&why);
            Ok(ExitCode::from(FAILED))
        }
    }
}
