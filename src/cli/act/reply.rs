//! `pilotlight answer`: shows a session's question in full, and answers it.
//!
//! The question is read and printed first. The answer then comes from the arguments or from the terminal, and is for
//! exactly the question that was shown: if that one is no longer open, nothing is answered. An answer in the arguments
//! was written before the question was shown, so it must name its question.

use super::carry::carry_out;
use super::order::{order, refuse, refused_to_agent, with_asking};
use super::output::{self, Printer, Reporter, question, shown, write_out};
use super::window::let_be_read;
use crate::cli::ask::{CANNOT_ASK, confirm, prompt};
use crate::cli::asking::{Asks, MaybeNamed};
use crate::cli::context::Context;
use crate::cli::pick::{Named, Picked};
use crate::cli::report::say;
use pilotlight_core::confusable::find_confusable;
use pilotlight_core::form::{Field, FieldType, Form, FormAnswer, Kind};
use pilotlight_core::order::{Operation, OrderReport, Outcome, Reply};
use pilotlight_core::text::{NAME_MAX, plain};
use pilotlight_engine::control::ORDER_MAX;
use std::process::ExitCode;
use tokio::time::Instant;

/// Arguments of `answer`.
#[derive(Debug, Default, clap::Args)]
#[group(multiple = true)]
pub(in crate::cli) struct Arguments {
    #[command(flatten)]
    session: MaybeNamed,
    /// The words of a choice, or any text if the question takes text. If you give no answer, the command asks you for it
    #[arg(value_name = "ANSWER", conflicts_with_all = ["choice", "text", "decline", "cancel"])]
    answer: Option<String>,
    /// Pick the choice with this number, counted from 1
    #[arg(long, value_name = "N", conflicts_with_all = ["text", "decline", "cancel"])]
    choice: Option<usize>,
    /// Answer in your own words; for a plan, say what the agent should change
    #[arg(long, value_name = "TEXT", conflicts_with_all = ["decline", "cancel"])]
    text: Option<String>,
    /// Fill in a field of a form; repeat the option for each field, and for each choice in a field that takes several
    #[arg(long, value_name = "NAME=VALUE", value_parser = field_value, conflicts_with_all = ["answer", "choice", "text", "decline", "cancel"])]
    field: Vec<(String, String)>,
    /// Decline a form or a plan
    #[arg(long, conflicts_with = "cancel")]
    decline: bool,
    /// Dismiss a form without answering
    #[arg(long)]
    cancel: bool,
    /// The question's id, which `answer NAME` shows. Required if you give the answer on the command line, because the
    /// session may have asked another question since; otherwise the default is the oldest question
    #[arg(long, value_name = "RID")]
    request: Option<String>,
}

impl Arguments {
    /// Those that show the question of the session that is named, and ask.
    pub(in crate::cli) fn of(named: &Named) -> Self {
        Self { session: MaybeNamed::of(named), ..Self::default() }
    }

    /// Whether they contain an answer.
    const fn has_answer(&self) -> bool {
        let Self { answer, choice, text, field, decline, cancel, .. } = self;
        answer.is_some() || choice.is_some() || text.is_some() || !field.is_empty() || *decline || *cancel
    }
}

/// Parses NAME=VALUE.
fn field_value(text: &str) -> Result<(String, String), &'static str> {
    let (name, value) = text.split_once('=').ok_or("it has the form NAME=VALUE")?;
    Ok((name.into(), value.into()))
}

const LEFT_OPEN: &str = "the question was left open";

/// Keeps the question that is reported, and prints nothing.
#[derive(Default)]
struct FormReader(Option<Form>);

impl Reporter for FormReader {
    fn report(&mut self, report: &OrderReport) {
        if let OrderReport::Question(form) = report {
            self.0 = Some((**form).clone());
        }
    }
}

pub(in crate::cli) fn reply(context: &Context, arguments: &Arguments) -> anyhow::Result<ExitCode> {
    with_asking(context, &arguments.session, Asks::Answer, |session| match refused_to_agent(context) {
        Some(refused) => Ok(refused),
        None => answer(context, arguments, session),
    })
}

fn answer(context: &Context, arguments: &Arguments, session: &Picked) -> anyhow::Result<Outcome> {
    let mut reader = FormReader::default();
    let read = order(session, Operation::Answer(Reply::Look(arguments.request.clone())));
    let outcome = carry_out(context, session, &read, false, &mut reader)?;
    let Some(form) = reader.0 else {
        let outcome = match outcome {
            // This order only reads: even if it was interrupted, nothing was answered.
            Outcome::Unconfirmed(_) | Outcome::Done(_) => Outcome::Failed(
                "the question could not be shown, because reading it broke off: nothing was answered".into(),
            ),
            outcome => outcome,
        };
        output::print_outcome(&outcome);
        return Ok(outcome);
    };
    let shown_at = Instant::now();
    if let Err(error) = write_out(&question(&shown(&session.label), &form)) {
        return Ok(refuse(&format!("the question could not be written out ({error}): it was left open")));
    }
    if arguments.has_answer() && arguments.request.is_none() {
        // The question that the user had in mind may have been answered since, and another have taken its place.
        return Ok(refuse(&format!(
            "say which question this answers: the one shown here is `--request {}`. The question was left open",
            form.request
        )));
    }
    let answer = match from_arguments(arguments, &form) {
        Ok(Some(answer)) => answer,
        Ok(None) => match from_terminal(&form) {
            Ok(answer) => answer,
            Err(why) => return Ok(refuse(&why)),
        },
        Err(why) => return Ok(refuse(&why)),
    };
    // Servers do not check answers, so an invalid one is refused here.
    if let Err(why) = form.result(&answer) {
        return Ok(refuse(&format!("{why}: the question was left open")));
    }
    let operation =
        Operation::Answer(Reply::Give { request: form.request.to_string(), shown: form.mark(), with: answer.into() });
    let order = order(session, operation);
    if serde_json::to_vec(&order).map_or(true, |line| line.len() >= ORDER_MAX) {
        return Ok(refuse("the answer is too long to be sent: the question was left open"));
    }
    let_be_read(context, shown_at)?;
    carry_out(context, session, &order, false, &mut Printer)
}

/// The answer in the arguments, if there is one.
fn from_arguments(arguments: &Arguments, form: &Form) -> Result<Option<FormAnswer>, String> {
    let Arguments { answer, choice, text, field, decline, cancel, .. } = arguments;
    let with = match (answer, choice, text) {
        (Some(words), ..) => in_words(words, form)?,
        (_, Some(number), _) => nth(*number, form)?,
        (_, _, Some(text)) => FormAnswer::Text(text.clone()),
        _ if !field.is_empty() => fields(field, form)?,
        _ if *decline => FormAnswer::Decline,
        _ if *cancel => FormAnswer::Cancel,
        _ => return Ok(None),
    };
    if let Some(doubt) = form.texts().find_map(find_confusable) {
        let why = "the question may not be what it looks like";
        return Err(format!(
            "{why}: {}. The question was left open. Read it, and answer on a terminal, with `pilotlight answer NAME` alone",
            doubt.words()
        ));
    }
    Ok(Some(with))
}

/// Asks for the answer on the terminal.
fn from_terminal(form: &Form) -> Result<FormAnswer, String> {
    if form.is_filled_in() {
        return fields_from_terminal(form);
    }
    let numbers = match form.choices.len() {
        0 => None,
        1 => Some("1".to_owned()),
        n => Some(format!("1 to {n}")),
    };
    let text = form.takes_text.then_some(match form.kind {
        Kind::Plan => "what to change, in words",
        Kind::Input | Kind::Form(_) => "any text",
    });
    // If any text is an answer, this word is one too.
    let decline = (matches!(form.kind, Kind::Form(_)) && !form.takes_text).then_some("\"decline\"");
    let ways: Vec<_> = numbers.iter().map(String::as_str).chain(text).chain(decline).collect();
    let text = format!("Your answer ({}; Enter alone leaves it open): ", ways.join(", or "));
    let Some(typed) = prompt(&text) else {
        return Err(format!(
            "{CANNOT_ASK}: answer with `--request` and `--choice` or `--text`; the question was left open"
        ));
    };
    match (&*typed, typed.parse()) {
        ("", _) => Err(LEFT_OPEN.into()),
        (_, Ok(number)) if !form.choices.is_empty() => nth(number, form),
        ("decline", _) if decline.is_some() => Ok(FormAnswer::Decline),
        _ => in_words(&typed, form),
    }
}

/// Asks for each field on the terminal, until its value is valid.
fn fields_from_terminal(form: &Form) -> Result<FormAnswer, String> {
    let mut values = Vec::new();
    for field in form.fields() {
        let name = plain(&field.name, NAME_MAX);
        let numbers =
            Some(field.listed().len()).filter(|count| *count > 0).map(|count| format!(", by number: 1 to {count}"));
        let text = format!("{name} ({}{}): ", field.words(), numbers.unwrap_or_default());
        loop {
            let Some(typed) = prompt(&text) else {
                return Err(format!("{CANNOT_ASK}: answer with `--request` and `--field`; the question was left open"));
            };
            if typed.is_empty() {
                if field.is_required {
                    return Err(LEFT_OPEN.into());
                }
                break;
            }
            let chosen = parse_field(field, &typed);
            match field.value(&chosen) {
                Ok(_) => {
                    values.extend(chosen.into_iter().map(|value| (field.name.to_string(), value.to_owned())));
                    break;
                }
                Err(why) => say(why),
            }
        }
    }
    match confirm("Send this?") {
        Some(true) => fields(&values, form),
        _ => Err(LEFT_OPEN.into()),
    }
}

/// Parses a line typed for a field: a text, or choices, each by its number or its words.
fn parse_field<'a>(field: &'a Field, typed: &'a str) -> Vec<&'a str> {
    let listed = field.listed();
    let choice = |typed: &'a str| {
        let number = typed.parse().ok().and_then(|number: usize| listed.get(number.checked_sub(1)?));
        number.map_or(typed, |named| &*named.words)
    };
    match field.takes {
        FieldType::Some { .. } => typed.split(',').map(str::trim).map(choice).collect(),
        FieldType::One(_) => vec![choice(typed)],
        FieldType::Text { .. } | FieldType::Number { .. } => vec![typed],
    }
}

/// The answer that fills in the fields of these names.
fn fields(given: &[(String, String)], form: &Form) -> Result<FormAnswer, String> {
    let fields = form.fields();
    let name = |name: &str| plain(name, NAME_MAX);
    if let Some((unknown, _)) = given.iter().find(|(given, _)| !fields.iter().any(|field| *field.name == **given)) {
        let names: Vec<_> = fields.iter().map(|field| name(&field.name)).collect();
        let names = if names.is_empty() { "none".into() } else { names.join(", ") };
        return Err(format!(
            "the form has no field {}; its fields: {names}. The question was left open",
            name(unknown)
        ));
    }
    let mut values = serde_json::Map::new();
    for field in fields {
        let given: Vec<_> = given.iter().filter(|(name, _)| *field.name == **name).map(|(_, value)| &**value).collect();
        if given.is_empty() && field.is_required {
            return Err(format!(
                "the form's field {} must be filled in, too: the question was left open",
                name(&field.name)
            ));
        }
        if !given.is_empty() {
            let value = field
                .value(&given)
                .map_err(|why| format!("{}: {why}; the question was left open", name(&field.name)))?;
            values.insert(field.name.to_string(), value);
        }
    }
    Ok(FormAnswer::Fields(values))
}

fn nth(number: usize, form: &Form) -> Result<FormAnswer, String> {
    let index = number.checked_sub(1).filter(|index| *index < form.choices.len());
    let invalid =
        || format!("there are {} choices, and no number {number}: the question was left open", form.choices.len());
    index.map(FormAnswer::Choice).ok_or_else(invalid)
}

/// The choice with these words, exactly so if any text is an answer; else a text answer if the question takes one.
fn in_words(words: &str, form: &Form) -> Result<FormAnswer, String> {
    let is_exact = form.takes_text || form.choices.iter().any(|choice| *choice.words == *words);
    let reads = |choice: &str| choice == words || !is_exact && choice.eq_ignore_ascii_case(words);
    let mut matching = form.choices.iter().enumerate().filter(|(_, choice)| reads(&choice.words));
    match (matching.next(), matching.next()) {
        (Some((index, _)), None) => Ok(FormAnswer::Choice(index)),
        (Some(_), Some(_)) => {
            Err("two choices read like this: pick one by --choice; the question was left open".into())
        }
        (None, _) if form.takes_text => Ok(FormAnswer::Text(words.to_owned())),
        (None, _) => {
            // A choice may also be given by its value, or by its title alone.
            let value = form.fields().first().map(|field| (field.name.to_string(), field.value(&[words])));
            let Some((name, Ok(value))) = value.filter(|_| form.fields().len() == 1) else {
                let why =
                    "no choice reads like this, and the question takes no other answer: the question was left open";
                return Err(why.into());
            };
            Ok(FormAnswer::Fields([(name, value)].into_iter().collect()))
        }
    }
}
