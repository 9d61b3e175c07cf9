//! `pilotlight reconnect`, `stop`, `approve`, `deny`, `answer`, `resume` and `show`: the menu's actions, from a
//! terminal or a script.
//!
//! This module turns the arguments into an order and, before one that ends a session, asks the user. [`requests`] is
//! `approve` and `deny`, [`reply`] is `answer`. [`carry`] carries an order out, through the running tray or in this
//! process; [`output`] prints the reports.

mod carry;
mod order;
mod output;
mod reply;
mod requests;
mod staying;

use super::ask::confirm;
use super::bridges::finds_bridge;
use super::context::Context;
use super::pick::{Named, Picked};
use crate::config::Permissions;
use crate::control::caller::is_reserved_for_people;
use crate::core::action::{Bridge, ServerState};
use crate::core::fleet::{Kind, Session};
use crate::core::order::{Ask, Outcome};
use crate::core::owner::Owner;
use carry::carry_out;
use order::{order, refuse, refused_to_agent, with};
use output::Printer;
use std::process::ExitCode;

pub(super) use reply::{Arguments as Reply, reply};
pub(super) use requests::{Arguments as Answer, approve, deny};

/// Arguments of `reconnect`.
#[derive(Debug, clap::Args)]
pub(super) struct Reconnect {
    #[command(flatten)]
    session: Named,
    /// Send its last prompt again, if no tool has run since
    #[arg(long)]
    resend: bool,
    /// Let it work on: with its last prompt, if no tool has run since, else with a short prompt (setting
    /// `continue-prompt`)
    #[arg(long = "continue", conflicts_with = "resend")]
    go_on: bool,
}

/// Arguments of `stop`.
#[derive(Debug, clap::Args)]
pub(super) struct Stop {
    #[command(flatten)]
    session: Named,
    /// End the session, not only its turn
    #[arg(long)]
    end: bool,
    /// Do not ask before ending a session that cannot be stopped otherwise
    #[arg(long)]
    yes: bool,
}

pub(super) fn reconnect(context: &Context, arguments: &Reconnect) -> anyhow::Result<ExitCode> {
    with(context, &arguments.session, |session| {
        let ask = if arguments.go_on { Ask::Continue } else { Ask::Reconnect { resend: arguments.resend } };
        act(context, session, ask, needs_connection(session))
    })
}

pub(super) fn stop(context: &Context, arguments: &Stop) -> anyhow::Result<ExitCode> {
    with(context, &arguments.session, |session| {
        let ask = if arguments.end || needs_end(session) && !finds_bridge(session, context) {
            Ask::End { confirmed: true }
        } else {
            Ask::Stop
        };
        if ask != Ask::Stop && !arguments.yes {
            match confirm("End this session? Its tool is killed; it can be resumed.") {
                Some(true) => {}
                Some(false) => return Ok(refuse("the session was left as it is")),
                None => {
                    return Ok(refuse(
                        "stopping a session in a plain terminal ends it, and there is no terminal here to ask you on: add `--yes` if you mean it",
                    ));
                }
            }
        }
        act(context, session, ask, false)
    })
}

/// `resume`, `show` and `let-answer`.
pub(super) fn give(context: &Context, session: &Named, ask: Ask) -> anyhow::Result<ExitCode> {
    with(context, session, |session| act(context, session, ask, false))
}

/// Gives the order, unless only a person may, and an agent runs this command. `stays`: see [`carry_out`].
fn act(context: &Context, session: &Picked, ask: Ask, stays: bool) -> anyhow::Result<Outcome> {
    let approves_all = context.config.actions.permissions == Permissions::ApproveAll;
    if is_reserved_for_people(&ask, approves_all)
        && let Some(refused) = refused_to_agent(context)
    {
        return Ok(refused);
    }
    carry_out(context, session, &order(session, ask), stays, &mut Printer)
}

/// Whether a session can only be stopped by ending its process, because nothing but its terminal can abort its turn.
fn needs_end(session: &Session) -> bool {
    matches!(session.owner, Owner::Alive { .. })
        && session.about.kind == Kind::Terminal
        && session.control.server == ServerState::NotListening
        && !session.control.bridge.is_some_and(Bridge::accepts_orders)
}

/// Whether a session depends on our connection once it is reconnected. One that is resumed in a terminal does not.
fn needs_connection(session: &Session) -> bool {
    session.owner.live().is_some() || session.about.kind != Kind::Terminal
}
