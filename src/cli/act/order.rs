//! What every acting command does: finds its session, makes the order, and turns the outcome into an exit code.

use crate::cli::asking::{Asks, MaybeNamed};
use crate::cli::context::Context;
use crate::cli::observe::Effort;
use crate::cli::pick::{Named, Picked, pick};
use crate::cli::report::{FAILED, REFUSED, UNCONFIRMED, USAGE, say};
use pilotlight_core::fleet::Session;
use pilotlight_core::order::{Operation, Order, Outcome};
use pilotlight_engine::control::caller::agent_behind;
use pilotlight_engine::past::Depth;
use std::process::ExitCode;

/// Finds the session, runs `act` on it, and turns the outcome into an exit code.
pub(super) fn with(
    context: &Context,
    named: &Named,
    act: impl FnOnce(&Picked) -> anyhow::Result<Outcome>,
) -> anyhow::Result<ExitCode> {
    with_one_of(context, named, Depth::Quick, act)
}

/// As [`with`], of the one that asks if none is named.
pub(super) fn with_asking(
    context: &Context,
    named: &MaybeNamed,
    asks: Asks,
    act: impl FnOnce(&Picked) -> anyhow::Result<Outcome>,
) -> anyhow::Result<ExitCode> {
    context.report_ended();
    // What is asked may be known to a bridge alone.
    let effort = if named.id.is_none() && asks != Asks::Permission { Effort::Ask } else { Effort::Look };
    match named.pick(context, asks, Depth::Quick, effort) {
        Ok(session) => Ok(code(&act(&session)?)),
        Err(code) => Ok(code),
    }
}

/// As [`with`]. `depth` says how much is read of sessions that are over.
pub(super) fn with_one_of(
    context: &Context,
    named: &Named,
    depth: Depth,
    act: impl FnOnce(&Picked) -> anyhow::Result<Outcome>,
) -> anyhow::Result<ExitCode> {
    context.report_ended();
    let session = match pick(context, named, depth, Effort::Look) {
        Ok(session) => session,
        Err(code) => return Ok(code),
    };
    Ok(code(&act(&session)?))
}

/// How a command ends whose order ended so.
pub(super) fn code(outcome: &Outcome) -> ExitCode {
    match outcome {
        Outcome::Done(_) => ExitCode::SUCCESS,
        Outcome::Failed(_) => ExitCode::from(FAILED),
        Outcome::Unconfirmed(_) => ExitCode::from(UNCONFIRMED),
        Outcome::Refused(_) => ExitCode::from(REFUSED),
        Outcome::Unknown => ExitCode::from(USAGE),
    }
}

pub(super) fn order(session: &Session, operation: Operation) -> Order {
    let host = session.remote.as_ref().map(|remote| &*remote.host.name);
    Order::new(&session.id, operation).at(host).on(session.observed.facts.turn_id.as_deref())
}

/// Reports that an agent runs this command, if one does, and returns that outcome. The tray checks this too, but the
/// order may be carried out here.
pub(super) fn refused_to_agent(context: &Context) -> Option<Outcome> {
    agent_behind(std::process::id(), context.agent_names()).map(|reason| refuse(&reason))
}

/// Reports why nothing is done, and returns that outcome.
pub(super) fn refuse(reason: &str) -> Outcome {
    say(reason);
    Outcome::Refused(reason.into())
}
