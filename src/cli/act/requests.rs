//! `pilotlight approve` and `deny`: show a session's permission requests, and answer them.
//!
//! On a terminal they ask, once the text of the request's server or bridge was shown: the session's log, from which its
//! status is, may say something else. A script says that it means a request, by `--request` or by `--yes`.

use super::carry::carry_out;
use super::order::{order, refuse, refused_to_agent, with_asking};
use super::output::{self, Printer, RequestPrinter, RequestReader};
use super::window::let_be_read;
use crate::cli::ask::{CANNOT_ASK, confirm, has_terminal, prompt};
use crate::cli::asking::{Asks, MaybeNamed};
use crate::cli::context::Context;
use crate::cli::pick::{Named, Picked};
use crate::cli::report::{USAGE, say};
use pilotlight_core::confusable::find_confusable;
use pilotlight_core::fleet::Session;
use pilotlight_core::order::{Denial, LOG_DIFFERS, Operation, Outcome, Which};
use pilotlight_engine::control::ORDER_MAX;
use sha2::{Digest, Sha256};
use std::process::ExitCode;
use tokio::time::Instant;

/// Arguments of `approve` and `deny`.
#[derive(Debug, Default, clap::Args)]
pub(in crate::cli) struct Arguments {
    #[command(flatten)]
    session: MaybeNamed,
    /// Answer the request with this id instead of the oldest, and do not ask first; `pilotlight explain NAME` lists the ids
    #[arg(long, value_name = "RID", conflicts_with = "all")]
    request: Option<String>,
    /// Answer every open request of the session, one after another
    #[arg(long)]
    all: bool,
    /// Do not ask first. Without a terminal, this option or `--request` is required
    #[arg(long, conflicts_with = "ask", requires = "id")]
    yes: bool,
    /// Show each request and ask you, even with `--request`
    #[arg(long)]
    ask: bool,
    /// Answer only if the request's text has this SHA-256. If the text has misleading characters, `--request` approves only
    /// with this option; without it, `approve` prints the SHA-256 instead
    #[arg(long, value_name = "HASH", requires = "request", conflicts_with = "ask")]
    sha256: Option<String>,
}

/// Arguments of `approve`.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Approve {
    #[command(flatten)]
    which: Arguments,
    /// Also add the permission rules that the request suggests, after showing them and asking you. Claude Code only
    #[arg(long, conflicts_with_all = ["all", "yes", "sha256"])]
    always: bool,
}

/// Arguments of `deny`.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Deny {
    #[command(flatten)]
    which: Arguments,
    /// Tell the agent why. Claude Code and opencode only
    #[arg(long, value_name = "TEXT")]
    note: Option<String>,
    /// Also stop the session's turn; the agent then never reads the note. Claude Code and opencode only
    #[arg(long)]
    stop: bool,
}

impl Approve {
    /// Those that show the request of the session that is named, and ask.
    pub(in crate::cli) fn of(named: &Named) -> Self {
        Self { which: Arguments { session: MaybeNamed::of(named), ..Arguments::default() }, always: false }
    }
}

impl Arguments {
    /// Whether each request is asked about.
    const fn asks(&self) -> bool {
        self.ask || !self.yes && self.request.is_none()
    }
}

pub(in crate::cli) fn approve(context: &Context, arguments: &Approve) -> anyhow::Result<ExitCode> {
    let verb = ActionSpec {
        name: "approve",
        question: "Approve this request, once?",
        operation: &Operation::Approve,
        approves: true,
        always: arguments.always,
        asks_for_note: false,
    };
    answer(context, &arguments.which, &verb)
}

pub(in crate::cli) fn deny(context: &Context, arguments: &Deny) -> anyhow::Result<ExitCode> {
    let denial = Denial { note: arguments.note.clone(), stop: arguments.stop };
    if denial.note.as_deref().is_some_and(|note| note.trim().is_empty()) {
        say("an empty note says nothing: leave `--note` out, or say why");
        return Ok(ExitCode::from(USAGE));
    }
    let operation = |which| match &denial {
        Denial { note: None, stop: false } => Operation::Deny(which),
        denial => Operation::DenyWith { which, denial: denial.clone() },
    };
    let verb = ActionSpec {
        name: "deny",
        question: "Deny this request?",
        operation: &operation,
        approves: false,
        always: false,
        asks_for_note: denial == Denial::default(),
    };
    answer(context, &arguments.which, &verb)
}

/// A way to answer requests.
struct ActionSpec<'a> {
    name: &'static str,
    question: &'static str,
    operation: &'a dyn Fn(Which) -> Operation,
    /// Whether it approves: nobody can approve what nobody could read.
    approves: bool,
    /// Whether it adds the rules that the request suggests.
    always: bool,
    /// Whether it asks what the agent is told.
    asks_for_note: bool,
}

fn answer(context: &Context, arguments: &Arguments, verb: &ActionSpec<'_>) -> anyhow::Result<ExitCode> {
    with_asking(context, &arguments.session, Asks::Permission, |session| {
        if let Some(refused) = refused_to_agent(context) {
            return Ok(refused);
        }
        if arguments.asks() && !has_terminal() {
            let (name, session) = (verb.name, &session.id);
            let (which, option) = if arguments.all { ("all", " --all") } else { ("the oldest", "") };
            return Ok(refuse(&format!(
                "{CANNOT_ASK}. To {name} {which} of its requests, run `pilotlight {name} {session}{option} --yes`. To choose one, use `--request RID` instead of `--yes`"
            )));
        }
        if !arguments.asks() && !verb.approves && arguments.sha256.is_none() {
            let all = order(session, (verb.operation)(Which::These(named_requests(arguments, session))));
            return carry_out(context, session, &all, false, &mut RequestPrinter::new(&session.label));
        }
        let mut ids = named_requests(arguments, session);
        if ids.is_empty() {
            ids.push(String::new()); // no request has this id: the engine refuses it, with the reason
        }
        let mut outcome = None;
        for id in ids {
            outcome = Some(worse(outcome, answer_one(context, arguments, session, id, verb)?));
        }
        Ok(outcome.unwrap_or(Outcome::Unknown))
    })
}

/// The ids of the open requests that the arguments name.
fn named_requests(arguments: &Arguments, session: &Session) -> Vec<String> {
    let most = if arguments.all { usize::MAX } else { 1 };
    match &arguments.request {
        Some(id) => vec![id.clone()],
        None => {
            let open = session.observed.facts.requests.iter().filter(|request| !request.is_consent());
            open.take(most).map(|request| request.request.to_string()).collect()
        }
    }
}

/// Shows a request, asks about it unless the arguments say that it is meant, and answers it. Only the request that was
/// shown is answered: if it has been answered elsewhere since, or its text has changed, nothing is.
fn answer_one(
    context: &Context,
    arguments: &Arguments,
    session: &Picked,
    id: String,
    verb: &ActionSpec<'_>,
) -> anyhow::Result<Outcome> {
    let mut reader = RequestReader::new(session, &session.label, &id);
    let look = order(session, Operation::Look(id.clone()));
    let outcome = carry_out(context, session, &look, false, &mut reader)?;
    let Some(request) = reader.request else {
        let outcome = match outcome {
            // This order only reads: even if it was interrupted, nothing was answered.
            Outcome::Unconfirmed(_) => Outcome::Failed(
                "the request could not be shown, because reading it broke off: nothing was answered".into(),
            ),
            outcome => outcome,
        };
        output::print_outcome(&outcome);
        return Ok(outcome);
    };
    let shown_at = Instant::now();
    if let Some(error) = reader.failed.filter(|_| verb.approves || arguments.asks()) {
        return Ok(refuse(&format!("the request could not be written out ({error}): it was left open")));
    }
    if verb.approves && request.in_log.is_some() {
        return Ok(refuse(LOG_DIFFERS));
    }
    match &arguments.sha256 {
        Some(meant) if !meant.eq_ignore_ascii_case(&sha256(&request.text)) => {
            return Ok(refuse("the request's text has another SHA-256: the request was left open"));
        }
        None if verb.approves
            && !arguments.asks()
            && (!request.verbatim || find_confusable(&request.text).is_some()) =>
        {
            let why = find_confusable(&request.text).map(|doubt| format!(": {}", doubt.words())).unwrap_or_default();
            let (session, hash) = (&session.id, sha256(&request.text));
            let by_hash = format!("`pilotlight approve {session} --request {id} --sha256 {hash}`");
            return Ok(refuse(&format!(
                "part of the request may not be what it looks like{why}. The request was left open. Read and answer it on a terminal with `pilotlight approve {session}`. A script can approve exactly this text with {by_hash}"
            )));
        }
        _ => {}
    }
    if verb.always {
        let Some(rules) = suggested_rules(session, &id) else {
            return Ok(refuse("the request suggests no rule that could be shown: the request was left open"));
        };
        say(&format!("also allowed from now on: {rules}"));
        if confirm("Approve this request, and allow that from now on?") != Some(true) {
            return Ok(refuse("the request was left open"));
        }
        let operation = |which| Operation::Always { which, rules: rules.clone() };
        let answer = order(session, operation(as_shown(context, session, id, request.text, &operation)));
        let_be_read(context, shown_at)?;
        return carry_out(context, session, &answer, false, &mut Printer);
    }
    if arguments.asks() && confirm(verb.question) != Some(true) {
        return Ok(refuse("the request was left open"));
    }
    let note = if verb.asks_for_note && arguments.asks() && takes_note(session, &id) { ask_for_note() } else { None };
    let operation = |which| match &note {
        Some(note) => Operation::DenyWith { which, denial: Denial { note: Some(note.clone()), stop: false } },
        None => (verb.operation)(which),
    };
    let answer = order(session, operation(as_shown(context, session, id, request.text, &operation)));
    let_be_read(context, shown_at)?;
    carry_out(context, session, &answer, false, &mut Printer)
}

/// Whether a note can go with the refusal of a request.
fn takes_note(session: &Session, id: &str) -> bool {
    session.observed.facts.requests.iter().any(|request| *request.request == *id && request.over_bridge.is_some())
}

/// What the agent is told of a refusal.
fn ask_for_note() -> Option<String> {
    prompt("What should the agent be told? Enter alone: nothing. ").filter(|note| !note.is_empty())
}

/// The rules that a request suggests, in words.
fn suggested_rules(session: &Session, id: &str) -> Option<String> {
    let request = session.observed.facts.requests.iter().find(|request| *request.request == *id)?;
    request.over_bridge.as_ref()?.always.as_deref().map(str::to_owned)
}

/// The SHA-256 of a text, in hexadecimal digits.
fn sha256(text: &str) -> String {
    Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Names the request that was shown: by id and text if the text fits into an order, else by id alone.
fn as_shown(
    context: &Context,
    session: &Session,
    id: String,
    text: String,
    operation: &dyn Fn(Which) -> Operation,
) -> Which {
    let shown = Which::Shown { id, text };
    let whole = context.with_home(order(session, operation(shown.clone())));
    let length = serde_json::to_vec(&whole).map_or(usize::MAX, |line| line.len());
    match shown {
        Which::Shown { id, .. } if length >= ORDER_MAX => Which::These(vec![id]),
        shown => shown,
    }
}

/// The worse of two outcomes: unconfirmed, then failed, then refused, then done.
fn worse(before: Option<Outcome>, this: Outcome) -> Outcome {
    let rank = |outcome: &Outcome| match outcome {
        Outcome::Done(_) => 0,
        Outcome::Refused(_) | Outcome::Unknown => 1,
        Outcome::Failed(_) => 2,
        Outcome::Unconfirmed(_) => 3,
    };
    before.filter(|before| rank(before) >= rank(&this)).unwrap_or(this)
}
