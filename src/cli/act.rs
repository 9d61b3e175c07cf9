//! `pilotlight reconnect`, `stop`, `approve`, `deny`, `answer`, `resume` and `show`: what the menu does, from a terminal or a
//! script.
//!
//! Here an order is made out of the arguments and, where it ends something or answers somebody, out of what the user says
//! when asked. [`carry`] sees that it is carried out, by the tray that runs or else here; [`tell`] shows what comes back;
//! [`reply`] is `answer`.

mod carry;
mod reply;
mod staying;
mod tell;

use super::ask::{confirm, has_terminal};
use super::pick::{Picked, complete, pick};
use super::{Context, USAGE, beside, say};
use crate::config::Permissions;
use crate::control::{ORDER_MAX, caller};
use crate::core::action::{Bridge, ServerState};
use crate::core::fleet::{Kind, Session};
use crate::core::misread::misread;
use crate::core::order::{Ask, Order, Outcome, Which};
use crate::core::owner::Owner;
use carry::carry_out;
pub(super) use carry::place_for_bridges;
use clap_complete::ArgValueCompleter;
pub(super) use reply::{Arguments as Reply, reply};
use std::process::ExitCode;
use tell::{Shown, Teller, Telling};

/// Exit code: tried in vain.
const FAILED: u8 = 1;
/// Exit code: not tried; the reason is on standard error.
const REFUSED: u8 = 4;
/// Exit code: sent, and not confirmed; what is known of it is on standard error.
const UNCONFIRMED: u8 = 5;
/// What no request reads: one that must ask for exactly this is shown, and stays unanswered.
const UNSHOWN: &str = "\0";

/// Arguments of `reconnect`.
#[derive(Debug, clap::Args)]
pub(super) struct Reconnect {
    /// The session: its id (any beginning that no other shares), its folder or its title
    #[arg(value_name = "ID", add = ArgValueCompleter::new(complete))]
    id: String,
    /// Send its last prompt again, if no tool has run since
    #[arg(long)]
    resend: bool,
    /// Let it work on: with its last prompt, if no tool has run since, else with a short prompt (setting `continue-prompt`)
    #[arg(long = "continue", conflicts_with = "resend")]
    go_on: bool,
}

/// Arguments of `stop`.
#[derive(Debug, clap::Args)]
pub(super) struct Stop {
    /// The session: its id (any beginning that no other shares), its folder or its title
    #[arg(value_name = "ID", add = ArgValueCompleter::new(complete))]
    id: String,
    /// End the session, not only its turn
    #[arg(long)]
    end: bool,
    /// Do not ask before ending a session that cannot be stopped otherwise
    #[arg(long)]
    yes: bool,
}

/// Arguments of `approve` and `deny`.
#[derive(Debug, clap::Args)]
pub(super) struct Answer {
    /// The session: its id (any beginning that no other shares), its folder or its title
    #[arg(value_name = "ID", add = ArgValueCompleter::new(complete))]
    id: String,
    /// Answer the request with this id instead of the oldest; `pilotlight explain ID` lists them
    #[arg(long, value_name = "RID", conflicts_with = "all")]
    request: Option<String>,
    /// Answer every open request
    #[arg(long)]
    all: bool,
    /// Show each request, and ask before answering it
    #[arg(long)]
    ask: bool,
}

/// Arguments of `resume` and `show`.
#[derive(Debug, clap::Args)]
pub(super) struct One {
    /// The session: its id (any beginning that no other shares), its folder or its title
    #[arg(value_name = "ID", add = ArgValueCompleter::new(complete))]
    id: String,
}

pub(super) fn reconnect(context: &Context, arguments: &Reconnect) -> anyhow::Result<ExitCode> {
    with(context, &arguments.id, |session| {
        let ask = if arguments.go_on { Ask::Continue } else { Ask::Reconnect { resend: arguments.resend } };
        let sends = ask != Ask::Reconnect { resend: false };
        // A prompt is the user's word; and where all is approved that the session asks for, so is this.
        if (sends || context.config.actions.permissions == Permissions::ApproveAll)
            && let Some(reason) = caller::agent_behind(std::process::id(), &context.config.owners.names)
        {
            return Ok(refuse(&reason));
        }
        carry_out(context, session, &order(session, ask), keeps_connection(session), &mut Teller)
    })
}

pub(super) fn stop(context: &Context, arguments: &Stop) -> anyhow::Result<ExitCode> {
    with(context, &arguments.id, |session| {
        let ask = if arguments.end || needs_end(session) && !beside::meets_bridge(session, context) {
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
        carry_out(context, session, &order(session, ask), false, &mut Teller)
    })
}

pub(super) fn approve(context: &Context, arguments: &Answer) -> anyhow::Result<ExitCode> {
    answer(context, arguments, &Verb { question: "Approve this request, once?", ask: Ask::Approve, is_read: true })
}

pub(super) fn deny(context: &Context, arguments: &Answer) -> anyhow::Result<ExitCode> {
    answer(context, arguments, &Verb { question: "Deny this request?", ask: Ask::Deny, is_read: false })
}

pub(super) fn resume(context: &Context, arguments: &One) -> anyhow::Result<ExitCode> {
    with(context, &arguments.id, |session| {
        carry_out(context, session, &order(session, Ask::Resume), false, &mut Teller)
    })
}

pub(super) fn let_answer(context: &Context, arguments: &One) -> anyhow::Result<ExitCode> {
    with(context, &arguments.id, |session| {
        if let Some(reason) = caller::agent_behind(std::process::id(), &context.config.owners.names) {
            return Ok(refuse(&reason));
        }
        carry_out(context, session, &order(session, Ask::LetAnswer), false, &mut Teller)
    })
}

pub(super) fn show(context: &Context, arguments: &One) -> anyhow::Result<ExitCode> {
    with(context, &arguments.id, |session| {
        carry_out(context, session, &order(session, Ask::ShowTerminal), false, &mut Teller)
    })
}

/// Finds the session, has something done with it, and makes an exit code of how that ended.
fn with(context: &Context, id: &str, act: impl FnOnce(&Picked) -> anyhow::Result<Outcome>) -> anyhow::Result<ExitCode> {
    context.tell_ended();
    let session = match pick(context, id, false) {
        Ok(session) => session,
        Err(code) => return Ok(code),
    };
    Ok(match act(&session)? {
        Outcome::Done(_) => ExitCode::SUCCESS,
        Outcome::Failed(_) => ExitCode::from(FAILED),
        Outcome::Unconfirmed(_) => ExitCode::from(UNCONFIRMED),
        Outcome::Refused(_) => ExitCode::from(REFUSED),
        Outcome::Unknown => ExitCode::from(USAGE),
    })
}

fn order(session: &Session, ask: Ask) -> Order {
    Order::new(&session.id, ask).on(session.facts.root.as_deref())
}

/// Whether only the end of its process stops a session: nobody else than its terminal can abort its turn.
fn needs_end(session: &Session) -> bool {
    matches!(session.owner, Owner::Alive { .. })
        && session.about.kind == Kind::Terminal
        && session.control.server == ServerState::Nowhere
        && !session.control.bridge.is_some_and(Bridge::obeys)
}

/// Whether a session that was reconnected depends on our connection: one that is resumed in a terminal does not.
fn keeps_connection(session: &Session) -> bool {
    session.owner.live().is_some() || session.about.kind != Kind::Terminal
}

/// How requests are answered.
struct Verb {
    question: &'static str,
    ask: fn(Which) -> Ask,
    /// Only what could be written out is answered so: what nobody can read, nobody can allow.
    is_read: bool,
}

fn answer(context: &Context, arguments: &Answer, verb: &Verb) -> anyhow::Result<ExitCode> {
    with(context, &arguments.id, |session| {
        // The tray looks at this too; but whoever answers here must not be an agent either.
        if let Some(reason) = caller::agent_behind(std::process::id(), &context.config.owners.names) {
            return Ok(refuse(&reason));
        }
        if !arguments.ask && !verb.is_read {
            let all = order(session, (verb.ask)(Which::These(meant(arguments, session))));
            return carry_out(context, session, &all, false, &mut Telling::of(&session.label));
        }
        if arguments.ask && !has_terminal() {
            return Ok(refuse(
                "there is no terminal here to ask you on; without `--ask` the request is shown and answered at once",
            ));
        }
        let mut ids = meant(arguments, session);
        if ids.is_empty() {
            ids.push(String::new()); // the id of no request: whoever carries orders out says why nothing is answered
        }
        let mut outcome = None;
        for id in ids {
            outcome = Some(worse(outcome, answer_one(context, arguments, session, id, verb)?));
        }
        Ok(outcome.unwrap_or(Outcome::Unknown))
    })
}

/// The ids of the requests that the arguments mean, of those that are open now.
fn meant(arguments: &Answer, session: &Session) -> Vec<String> {
    let most = if arguments.all { usize::MAX } else { 1 };
    match &arguments.request {
        Some(id) => vec![id.clone()],
        None => {
            let open = session.facts.requests.iter().filter(|request| !request.is_consent());
            open.take(most).map(|request| request.request.to_string()).collect()
        }
    }
}

/// Shows a request, asks about it where that is wanted, and answers it. Only what was shown is answered: one that is answered
/// elsewhere meanwhile, or asks for something else now, is not.
fn answer_one(
    context: &Context,
    arguments: &Answer,
    session: &Picked,
    id: String,
    verb: &Verb,
) -> anyhow::Result<Outcome> {
    let mut shown = Shown::of(&session.label);
    let look = (verb.ask)(Which::Shown { id: id.clone(), text: UNSHOWN.into() });
    let looked = carry_out(context, session, &order(session, look), false, &mut shown)?;
    let Some(text) = shown.request else {
        let looked = match looked {
            // It was only looked at: whatever broke off, nothing was sent.
            Outcome::Unconfirmed(_) => Outcome::Failed(
                "the request could not be shown, because reading it broke off: nothing was answered".into(),
            ),
            looked => looked,
        };
        tell::end(&looked);
        return Ok(looked);
    };
    if let Some(error) = shown.failed.filter(|_| verb.is_read) {
        return Ok(refuse(&format!("the request could not be written out ({error}): it was left open")));
    }
    if verb.is_read && !arguments.ask && text.lines().any(|line| misread(line).is_some()) {
        let why = "part of the request may not be what it looks like, so it was left open. Read it, and answer with";
        return Ok(refuse(&format!("{why} `pilotlight approve --ask {}`", session.id)));
    }
    if arguments.ask && confirm(verb.question) != Some(true) {
        return Ok(refuse("the request was left open"));
    }
    let answer = order(session, (verb.ask)(as_shown(context, session, id, text, verb.ask)));
    carry_out(context, session, &answer, false, &mut Teller)
}

/// The request that was shown: by its text as well where that fits into an order, else by its id alone.
fn as_shown(context: &Context, session: &Session, id: String, text: String, ask: fn(Which) -> Ask) -> Which {
    let shown = Which::Shown { id, text };
    let whole = context.in_its_home(order(session, ask(shown.clone())));
    let length = serde_json::to_vec(&whole).map_or(usize::MAX, |line| line.len());
    match shown {
        Which::Shown { id, .. } if length >= ORDER_MAX => Which::These(vec![id]),
        shown => shown,
    }
}

/// The outcome that counts of several: what is not confirmed before a failure before a refusal before success.
fn worse(before: Option<Outcome>, this: Outcome) -> Outcome {
    let rank = |outcome: &Outcome| match outcome {
        Outcome::Done(_) => 0,
        Outcome::Refused(_) | Outcome::Unknown => 1,
        Outcome::Failed(_) => 2,
        Outcome::Unconfirmed(_) => 3,
    };
    before.filter(|before| rank(before) >= rank(&this)).unwrap_or(this)
}

/// Says why something is not done.
fn refuse(reason: &str) -> Outcome {
    say(reason);
    Outcome::Refused(reason.into())
}
