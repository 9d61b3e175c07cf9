//! Values of a document read in the form that their setting wants.

use std::path::{Path, PathBuf};

use toml::Spanned;
use toml::de::DeValue;

use super::problem::shown;
use super::{Permissions, span};
use crate::core::alert::Detail;
use crate::core::time::Span;
use crate::system::log::LogLevel;

/// Stands for the command in the words of a terminal.
pub(crate) const COMMAND: &str = "{command}";
/// Stands for the folder in the words of a terminal.
pub(crate) const FOLDER: &str = "{folder}";
const PLACEHOLDERS: [&str; 2] = [COMMAND, FOLDER];

/// A value that its setting cannot have.
pub(super) struct Wrong {
    /// Its offset in the text.
    pub(super) at: usize,
    /// What it is instead of what the setting wants.
    pub(super) what: String,
}

/// `value` is wrong, and this is why.
pub(super) fn wrong(value: &Spanned<DeValue<'_>>, what: impl Into<String>) -> Wrong {
    Wrong { at: value.span().start, what: what.into() }
}

/// `value` is of a type that its setting does not take.
pub(super) fn wrong_type(value: &Spanned<DeValue<'_>>) -> Wrong {
    wrong(value, format!("this is of type {}", value.get_ref().type_str()))
}

fn as_integer(value: &DeValue<'_>) -> Option<Option<i64>> {
    value.as_integer().map(|integer| i64::from_str_radix(integer.as_str(), integer.radix()).ok())
}

pub(super) fn as_span(value: &Spanned<DeValue<'_>>) -> Result<Span, Wrong> {
    if let Some(text) = value.get_ref().as_str() {
        span::parse(text).map_err(|why| wrong(value, format!("\"{}\" {why}", shown(text))))
    } else if let Some(seconds) = as_integer(value.get_ref()) {
        span::of_seconds(seconds).map_err(|why| wrong(value, format!("this {why}")))
    } else {
        Err(wrong_type(value))
    }
}

pub(super) fn as_count(value: &Spanned<DeValue<'_>>) -> Result<usize, Wrong> {
    let integer = as_integer(value.get_ref()).ok_or_else(|| wrong_type(value))?;
    let count = integer.and_then(|n| usize::try_from(n).ok());
    count.ok_or_else(|| wrong(value, "this is out of range"))
}

pub(super) fn as_switch(value: &Spanned<DeValue<'_>>) -> Result<bool, Wrong> {
    value.get_ref().as_bool().ok_or_else(|| wrong_type(value))
}

pub(super) fn as_permissions(value: &Spanned<DeValue<'_>>) -> Result<Permissions, Wrong> {
    let text = value.get_ref().as_str().ok_or_else(|| wrong_type(value))?;
    let named = Permissions::ALL.into_iter().find(|permissions| permissions.word() == text);
    named.ok_or_else(|| wrong(value, format!("\"{}\" is not one of them", shown(text))))
}

pub(super) fn as_log_level(value: &Spanned<DeValue<'_>>) -> Result<LogLevel, Wrong> {
    let text = value.get_ref().as_str().ok_or_else(|| wrong_type(value))?;
    let named = LogLevel::ALL.into_iter().find(|level| level.word() == text);
    named.ok_or_else(|| wrong(value, format!("\"{}\" is not one of them", shown(text))))
}

/// What a popup shows, each by its word.
pub(super) const DETAILS: [(Detail, &str); 3] =
    [(Detail::Full, "full"), (Detail::Title, "title"), (Detail::None, "none")];

pub(super) fn as_detail(value: &Spanned<DeValue<'_>>) -> Result<Detail, Wrong> {
    let text = value.get_ref().as_str().ok_or_else(|| wrong_type(value))?;
    let named = DETAILS.into_iter().find(|(_, word)| *word == text);
    named.map(|(detail, _)| detail).ok_or_else(|| wrong(value, format!("\"{}\" is not one of them", shown(text))))
}

/// A span of time; none for no time at all.
pub(super) fn as_wait(value: &Spanned<DeValue<'_>>) -> Result<Option<Span>, Wrong> {
    let is_zero = value.get_ref().as_str().is_some_and(|text| text.trim() == NEVER);
    if is_zero || as_integer(value.get_ref()) == Some(Some(0)) { Ok(None) } else { as_span(value).map(Some) }
}

/// The span that stands for never.
pub(super) const NEVER: &str = "0s";

/// `22:00-07:00`, as minutes since midnight; none for an empty text, and for hours that end when they begin.
pub(super) fn as_hours(value: &Spanned<DeValue<'_>>) -> Result<Option<(u16, u16)>, Wrong> {
    let text = value.get_ref().as_str().ok_or_else(|| wrong_type(value))?;
    if text.is_empty() {
        return Ok(None);
    }
    let hours = text.split_once('-').and_then(|(from, to)| Some((minute(from.trim())?, minute(to.trim())?)));
    let hours = hours.ok_or_else(|| wrong(value, format!("\"{}\" has another form", shown(text))))?;
    if hours.0 == hours.1 {
        return Err(wrong(value, format!("\"{}\" ends when it begins", shown(text))));
    }
    Ok(Some(hours))
}

/// A time of the day, as minutes since midnight.
fn minute(text: &str) -> Option<u16> {
    let (hours, minutes) = text.split_once(':')?;
    let number = |text: &str, length: &[usize], below: u16| {
        let is_number = length.contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse::<u16>().ok().filter(|number| is_number && *number < below)
    };
    Some(number(hours, &[1, 2], 24)? * 60 + number(minutes, &[2], 60)?)
}

/// What [`as_hours`] reads.
pub(super) fn hours(hours: Option<(u16, u16)>) -> String {
    let text = |(from, to): (u16, u16)| format!("{:02}:{:02}-{:02}:{:02}", from / 60, from % 60, to / 60, to % 60);
    hours.map(text).unwrap_or_default()
}

/// A program's path; none for an empty text.
pub(super) fn as_own_program(value: &Spanned<DeValue<'_>>) -> Result<Option<PathBuf>, Wrong> {
    let text = value.get_ref().as_str().ok_or_else(|| wrong_type(value))?;
    if text.is_empty() {
        return Ok(None);
    }
    as_path(text).map(Some).map_err(|why| wrong(value, format!("\"{}\" {why}", shown(text))))
}

/// A prompt. What is blank would be none.
pub(super) fn as_prompt(value: &Spanned<DeValue<'_>>) -> Result<String, Wrong> {
    let text = value.get_ref().as_str().ok_or_else(|| wrong_type(value))?;
    if text.trim().is_empty() { Err(wrong(value, "this is blank")) } else { Ok(text.to_owned()) }
}

/// The words that a terminal is started with. What stands for the command or the folder is a word of its own: where each
/// argument is handed over as one, nothing can be put into the middle of another.
pub(super) fn as_terminal(value: &Spanned<DeValue<'_>>) -> Result<Vec<String>, Wrong> {
    let is_placeholder = |word: &str| PLACEHOLDERS.contains(&word);
    let words = as_list(value, |word| {
        if word.contains('\0') {
            Err("has a null character")
        } else if PLACEHOLDERS.iter().any(|placeholder| word.contains(placeholder) && word != *placeholder) {
            Err("has more than its placeholder: that must be a word of its own")
        } else {
            Ok(word.to_owned())
        }
    })?;
    let Some(program) = words.first() else { return Ok(words) };
    let path = Path::new(program);
    let amiss = if program.is_empty() || program.starts_with('-') || is_placeholder(program) {
        Some("its first word is not a program")
    } else if program.contains(std::path::is_separator) && !path.is_absolute() && !path.starts_with("~") {
        Some("its first word is a path, but neither absolute nor beginning with ~/")
    } else if words.iter().filter(|word| *word == COMMAND).count() > 1 {
        Some("it has the command twice")
    } else {
        None
    };
    amiss.map_or(Ok(words), |amiss| Err(wrong(value, amiss)))
}

pub(super) fn as_list<T>(
    value: &Spanned<DeValue<'_>>,
    item: fn(&str) -> Result<T, &'static str>,
) -> Result<Vec<T>, Wrong> {
    let items = value.get_ref().as_array().ok_or_else(|| wrong_type(value))?;
    let read = |value: &Spanned<DeValue<'_>>| {
        let text = value.get_ref().as_str().ok_or_else(|| wrong_type(value))?;
        item(text).map_err(|why| wrong(value, format!("\"{}\" {why}", shown(text))))
    };
    items.iter().map(read).collect()
}

pub(super) fn as_path(text: &str) -> Result<PathBuf, &'static str> {
    let path = Path::new(text);
    if text.contains('\0') {
        Err("has a null character")
    } else if path.is_absolute() || path.starts_with("~") {
        Ok(path.to_owned())
    } else {
        // Relative to what? The tray starts somewhere else than a command in a terminal.
        Err("is neither")
    }
}

pub(super) fn as_program(text: &str) -> Result<String, &'static str> {
    if text.is_empty() {
        Err("is empty")
    } else if text.contains(['/', '\\']) {
        Err("is a path")
    } else if text.contains(char::is_control) {
        Err("has control characters")
    } else {
        Ok(text.to_owned())
    }
}
