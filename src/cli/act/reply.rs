//! `pilotlight answer`: what a session asks its user, shown whole and answered.
//!
//! First the question is looked at and written out, then the answer is taken: from the arguments, or from whoever sits at the
//! terminal. It is for exactly the question that was shown; one that is over, or another one, is not answered. An answer in the
//! arguments was thought of before it was shown: so it names its question.

use super::carry::carry_out;
use super::tell::{self, Tell, Teller, question, write_out};
use super::{order, refuse, with};
use crate::cli::ask::{confirm, line};
use crate::cli::pick::{Picked, complete};
use crate::cli::{Context, say};
use crate::control::{ORDER_MAX, caller};
use crate::core::form::{Field, Form, Kind, Takes, With};
use crate::core::misread::misread;
use crate::core::order::{Ask, Outcome, Reply, Report};
use crate::core::text::{NAME_MAX, plain};
use clap_complete::ArgValueCompleter;
use std::process::ExitCode;

/// Arguments of `answer`.
#[derive(Debug, clap::Args)]
#[group(multiple = true)]
pub(in crate::cli) struct Arguments {
    /// The session: its id (any beginning that no other shares), its folder or its title
    #[arg(value_name = "ID", add = ArgValueCompleter::new(complete))]
    id: String,
    /// The answer: the words of a choice, or any text if the question takes one. Without it, and without an option that
    /// answers, you are asked on the terminal
    #[arg(value_name = "ANSWER", conflicts_with_all = ["choice", "text", "decline", "cancel"])]
    answer: Option<String>,
    /// Pick the choice with this number, counted from 1
    #[arg(long, value_name = "N", conflicts_with_all = ["text", "decline", "cancel"])]
    choice: Option<usize>,
    /// Answer in your own words; for a plan, say what to change
    #[arg(long, value_name = "TEXT", conflicts_with_all = ["decline", "cancel"])]
    text: Option<String>,
    /// Fill in a field of a form; repeat it for each field, and for each choice of a field that takes several
    #[arg(long, value_name = "NAME=VALUE", value_parser = named, conflicts_with_all = ["answer", "choice", "text", "decline", "cancel"])]
    field: Vec<(String, String)>,
    /// Decline a form or a plan
    #[arg(long, conflicts_with = "cancel")]
    decline: bool,
    /// Dismiss a form without answering
    #[arg(long)]
    cancel: bool,
    /// The id of the question to show or answer; without it, the oldest is shown, with its id. Needed with an answer in the
    /// arguments, because another question may have come meanwhile
    #[arg(long, value_name = "RID")]
    request: Option<String>,
}

impl Arguments {
    /// Whether they say an answer.
    const fn says_one(&self) -> bool {
        let Self { answer, choice, text, field, decline, cancel, .. } = self;
        answer.is_some() || choice.is_some() || text.is_some() || !field.is_empty() || *decline || *cancel
    }
}

/// A field's name, and what it is to be.
fn named(text: &str) -> Result<(String, String), &'static str> {
    let (name, value) = text.split_once('=').ok_or("it has the form NAME=VALUE")?;
    Ok((name.into(), value.into()))
}

const NO_TERMINAL: &str = "there is no terminal here to ask you on: answer with";
const LEFT_OPEN: &str = "the question was left open";

/// Keeps the question that is shown. Its end is told by whoever looks.
#[derive(Default)]
struct Looked(Option<Form>);

impl Tell for Looked {
    fn report(&mut self, report: &Report) {
        if let Report::Question(form) = report {
            self.0 = Some((**form).clone());
        }
    }
}

pub(in crate::cli) fn reply(context: &Context, arguments: &Arguments) -> anyhow::Result<ExitCode> {
    with(context, &arguments.id, |session| {
        // The tray looks at this too; but whoever answers here must not be an agent either.
        if let Some(reason) = caller::agent_behind(std::process::id(), &context.config.owners.names) {
            return Ok(refuse(&reason));
        }
        answer(context, arguments, session)
    })
}

fn answer(context: &Context, arguments: &Arguments, session: &Picked) -> anyhow::Result<Outcome> {
    let mut looked = Looked::default();
    let look = order(session, Ask::Answer(Reply::Look(arguments.request.clone())));
    let outcome = carry_out(context, session, &look, false, &mut looked)?;
    let Some(form) = looked.0 else {
        let outcome = match outcome {
            // It was only looked at: whatever broke off, nothing was sent.
            Outcome::Unconfirmed(_) | Outcome::Done(_) => Outcome::Failed(
                "the question could not be shown, because reading it broke off: nothing was answered".into(),
            ),
            outcome => outcome,
        };
        tell::end(&outcome);
        return Ok(outcome);
    };
    if let Err(error) = write_out(&question(&session.label.to_string(), &form)) {
        return Ok(refuse(&format!("the question could not be written out ({error}): it was left open")));
    }
    if arguments.says_one() && arguments.request.is_none() {
        // What was meant may have been answered, and another question have taken its place, before this was looked at.
        return Ok(refuse(&format!(
            "say which question this answers: the one shown here is `--request {}`. It was left open",
            form.request
        )));
    }
    let given = match given(arguments, &form) {
        Ok(Some(with)) => with,
        Ok(None) => match asked_for(&form) {
            Ok(with) => with,
            Err(why) => return Ok(refuse(&why)),
        },
        Err(why) => return Ok(refuse(&why)),
    };
    // Nothing is sent that its server would be told wrongly; why, is known here already.
    if let Err(why) = form.result(&given) {
        return Ok(refuse(&format!("{why}: it was left open")));
    }
    let ask = Ask::Answer(Reply::Give { request: form.request.to_string(), shown: form.mark(), with: given });
    let order = order(session, ask);
    if serde_json::to_vec(&order).map_or(true, |line| line.len() >= ORDER_MAX) {
        return Ok(refuse("the answer is too long to be sent: the question was left open"));
    }
    carry_out(context, session, &order, false, &mut Teller)
}

/// The answer that the arguments say, if they do.
fn given(arguments: &Arguments, form: &Form) -> Result<Option<With>, String> {
    let Arguments { answer, choice, text, field, decline, cancel, .. } = arguments;
    let with = match (answer, choice, text) {
        (Some(words), ..) => in_words(words, form)?,
        (_, Some(number), _) => nth(*number, form)?,
        (_, _, Some(text)) => With::Text(text.clone()),
        _ if !field.is_empty() => filled_in(field, form)?,
        _ if *decline => With::Decline,
        _ if *cancel => With::Cancel,
        _ => return Ok(None),
    };
    if form.texts().flat_map(str::lines).any(|line| misread(line).is_some()) {
        let why = "part of the question may not be what it looks like, so it was left open. Read it, and answer on a terminal, with";
        return Err(format!("{why} `pilotlight answer ID` alone"));
    }
    Ok(Some(with))
}

/// The answer that is typed, on a terminal.
fn asked_for(form: &Form) -> Result<With, String> {
    if form.is_filled_in() {
        return asked_for_each(form);
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
    // Where any text is an answer, this word is one.
    let decline = (matches!(form.kind, Kind::Form(_)) && !form.takes_text).then_some("\"decline\"");
    let ways: Vec<_> = numbers.iter().map(String::as_str).chain(text).chain(decline).collect();
    let prompt = format!("Your answer ({}; Enter alone leaves it open): ", ways.join(", or "));
    let Some(typed) = line(&prompt) else {
        return Err(format!("{NO_TERMINAL} --request and --choice or --text; the question was left open"));
    };
    match (&*typed, typed.parse()) {
        ("", _) => Err(LEFT_OPEN.into()),
        (_, Ok(number)) if !form.choices.is_empty() => nth(number, form),
        ("decline", _) if decline.is_some() => Ok(With::Decline),
        _ => in_words(&typed, form),
    }
}

/// The fields that are typed, one after the other: each is asked for until it fits.
fn asked_for_each(form: &Form) -> Result<With, String> {
    let mut given = Vec::new();
    for field in form.fields() {
        let name = plain(&field.name, NAME_MAX);
        let numbers =
            Some(field.listed().len()).filter(|count| *count > 0).map(|count| format!(", by number: 1 to {count}"));
        let prompt = format!("{name} ({}{}): ", field.words(), numbers.unwrap_or_default());
        loop {
            let Some(typed) = line(&prompt) else {
                return Err(format!("{NO_TERMINAL} --request and --field; the question was left open"));
            };
            if typed.is_empty() {
                if field.is_required {
                    return Err(LEFT_OPEN.into());
                }
                break;
            }
            let typed = typed_for(field, &typed);
            match field.value(&typed) {
                Ok(_) => {
                    given.extend(typed.into_iter().map(|value| (field.name.to_string(), value.to_owned())));
                    break;
                }
                Err(why) => say(why),
            }
        }
    }
    match confirm("Send this?") {
        Some(true) => filled_in(&given, form),
        _ => Err(LEFT_OPEN.into()),
    }
}

/// What is meant by a line: a text, or choices, each by its number or in its own words.
fn typed_for<'a>(field: &'a Field, typed: &'a str) -> Vec<&'a str> {
    let listed = field.listed();
    let choice = |typed: &'a str| {
        let number = typed.parse().ok().and_then(|number: usize| listed.get(number.checked_sub(1)?));
        number.map_or(typed, |named| &*named.words)
    };
    match field.takes {
        Takes::Some { .. } => typed.split(',').map(str::trim).map(choice).collect(),
        Takes::One(_) => vec![choice(typed)],
        Takes::Text { .. } | Takes::Number { .. } => vec![typed],
    }
}

/// What the fields are to be, by their names.
fn filled_in(given: &[(String, String)], form: &Form) -> Result<With, String> {
    let fields = form.fields();
    let name = |name: &str| plain(name, NAME_MAX);
    if let Some((other, _)) = given.iter().find(|(given, _)| !fields.iter().any(|field| *field.name == **given)) {
        let names: Vec<_> = fields.iter().map(|field| name(&field.name)).collect();
        let has = if names.is_empty() { "none".into() } else { names.join(", ") };
        return Err(format!("it has no field {}; its fields: {has}. It was left open", name(other)));
    }
    let mut values = serde_json::Map::new();
    for field in fields {
        let given: Vec<_> = given.iter().filter(|(name, _)| *field.name == **name).map(|(_, value)| &**value).collect();
        if given.is_empty() && field.is_required {
            return Err(format!("its field {} must be filled in, too: it was left open", name(&field.name)));
        }
        if !given.is_empty() {
            let value = field.value(&given).map_err(|why| format!("{}: {why}; it was left open", name(&field.name)))?;
            values.insert(field.name.to_string(), value);
        }
    }
    Ok(With::Fields(values))
}

fn nth(number: usize, form: &Form) -> Result<With, String> {
    let index = number.checked_sub(1).filter(|index| *index < form.choices.len());
    let none = || format!("it has {} choices, and no number {number}: it was left open", form.choices.len());
    index.map(With::Choice).ok_or_else(none)
}

/// A choice that has exactly these words, else a text, where any is an answer.
fn in_words(words: &str, form: &Form) -> Result<With, String> {
    let mut named = form.choices.iter().enumerate().filter(|(_, choice)| *choice.words == *words);
    match (named.next(), named.next()) {
        (Some((index, _)), None) => Ok(With::Choice(index)),
        (Some(_), Some(_)) => Err("two of its choices read like this: pick one by --choice; it was left open".into()),
        (None, _) if form.takes_text => Ok(With::Text(words.to_owned())),
        (None, _) => Err("none of its choices reads like this, and it takes no other answer: it was left open".into()),
    }
}
