//! The forms that values have: how each is described to the user, read from a document and written as TOML.

use std::path::{Path, PathBuf};

use toml::Spanned;
use toml::de::DeValue;

use super::printable::shown;
use super::span;
use super::values::{Permissions, ServiceUse};
use pilotlight_core::alert::Detail;
use pilotlight_core::time::Span;
use pilotlight_system::log::LogLevel;

/// Stands for the command in the words of a terminal.
pub(crate) const COMMAND: &str = "{command}";
/// Stands for the folder in the words of a terminal.
pub(crate) const FOLDER: &str = "{folder}";

/// A value in a document.
pub(super) type Value<'t> = Spanned<DeValue<'t>>;

/// A value that its key cannot have.
pub(super) struct Wrong {
    /// Its offset in the text.
    pub(super) at: usize,
    pub(super) what: String,
}

impl Wrong {
    pub(super) fn new(value: &Value<'_>, what: impl Into<String>) -> Self {
        Self { at: value.span().start, what: what.into() }
    }

    /// The same with the key's name and form before it.
    pub(super) fn of(self, name: &str, form: &str) -> Self {
        Self { what: format!("`{name}` must be {form}; {}", self.what), ..self }
    }
}

/// One form of values.
pub(super) struct Form<T: 'static> {
    /// What a value must be, for the user.
    pub(super) text: &'static str,
    pub(super) read: fn(&Value<'_>) -> Result<T, Wrong>,
    /// Writes a value as TOML.
    pub(super) show: fn(&T) -> String,
}

pub(super) const SPAN: Form<Span> = Form {
    text: "a span of time, such as \"90s\" or \"1h30m\", or an integer of seconds",
    read: read_span,
    show: |span| quoted(&span::text(*span)),
};

/// A span for which something is held up, which nobody is to wait for long.
pub(super) const HOLD: Form<Span> = Form {
    text: "a span of time of at most \"15s\", or \"0s\" for not at all",
    read: |value| match (WAIT.read)(value)?.unwrap_or(Span::ZERO) {
        span if span > Span::seconds(15) => Err(Wrong::new(value, "this is longer")),
        span => Ok(span),
    },
    show: |span| quoted(&if *span == Span::ZERO { NEVER.to_owned() } else { span::text(*span) }),
};

/// A span after which something is done, if ever.
pub(super) const WAIT: Form<Option<Span>> = Form {
    text: "a span of time, such as \"90s\" or \"1h30m\", or \"0s\" for never",
    read: |value| {
        let is_zero = value.get_ref().as_str().is_some_and(|text| text.trim() == NEVER);
        if is_zero || as_integer(value) == Some(Some(0)) { Ok(None) } else { read_span(value).map(Some) }
    },
    show: |span| quoted(&span.map_or(NEVER.to_owned(), span::text)),
};
const NEVER: &str = "0s";

pub(super) const COUNT: Form<usize> = Form {
    text: "an integer, 0 or more",
    read: |value| {
        let integer = as_integer(value).ok_or_else(|| wrong_type(value))?;
        integer.and_then(|n| usize::try_from(n).ok()).ok_or_else(|| Wrong::new(value, "this is out of range"))
    },
    show: usize::to_string,
};

pub(super) const SWITCH: Form<bool> = Form {
    text: "true or false",
    read: |value| value.get_ref().as_bool().ok_or_else(|| wrong_type(value)),
    show: bool::to_string,
};

pub(super) const FOLDERS: Form<Vec<PathBuf>> = Form {
    text: "a list of folders, each absolute or beginning with ~/",
    read: |value| list(value, as_path),
    show: |folders| texts(folders.iter().map(|path| path.to_string_lossy().into_owned())),
};

pub(super) const PROGRAMS: Form<Vec<String>> = Form {
    text: "a list of file names of programs",
    read: |value| list(value, as_program),
    show: |names| texts(names.iter().cloned()),
};

pub(super) const TERMINAL: Form<Vec<String>> = Form {
    text: "a list of words, the first of which is a program on PATH, absolute or beginning with ~/",
    read: read_terminal,
    show: |words| texts(words.iter().cloned()),
};

/// The path of a program; `None` for an empty text.
pub(super) const OWN_PROGRAM: Form<Option<PathBuf>> = Form {
    text: "the path of a program, absolute or beginning with ~/, or \"\"",
    read: |value| match text(value)? {
        "" => Ok(None),
        text => as_path(text).map(Some).map_err(|why| quoting(value, text, why)),
    },
    show: |path| path.as_ref().map_or(quoted(""), |path| quoted(&path.to_string_lossy())),
};

/// A prompt; `None` for an empty text.
pub(super) const PROMPT: Form<Option<String>> = Form {
    text: "a text that is not blank, or \"\"",
    read: |value| match text(value)? {
        "" => Ok(None),
        text if text.trim().is_empty() => Err(Wrong::new(value, "this is blank")),
        text => Ok(Some(text.to_owned())),
    },
    show: |text| quoted(text.as_deref().unwrap_or_default()),
};

pub(super) const PERMISSIONS: Form<Permissions> = Form {
    text: "\"ask\", \"approve-all\" or \"observe\"",
    read: |value| one_of(value, Permissions::ALL, Permissions::word),
    show: |permissions| quoted(permissions.word()),
};

pub(super) const SERVICE: Form<ServiceUse> = Form {
    text: "\"ask\", \"watch\" or \"off\"",
    read: |value| one_of(value, ServiceUse::ALL, ServiceUse::word),
    show: |service| quoted(service.word()),
};

pub(super) const LOG_LEVEL: Form<LogLevel> = Form {
    text: "\"error\", \"warn\", \"info\" or \"debug\"",
    read: |value| one_of(value, LogLevel::ALL, LogLevel::word),
    show: |level| quoted(level.word()),
};

pub(super) const DETAIL: Form<Detail> = Form {
    text: "\"full\", \"title\" or \"none\"",
    read: |value| one_of(value, [Detail::Full, Detail::Title, Detail::None], detail_word),
    show: |detail| quoted(detail_word(*detail)),
};

const fn detail_word(detail: Detail) -> &'static str {
    match detail {
        Detail::Full => "full",
        Detail::Title => "title",
        Detail::None => "none",
    }
}

/// `22:00-07:00` in minutes since midnight; `None` for an empty text.
pub(super) const HOURS: Form<Option<(u16, u16)>> = Form {
    text: "two times of the day, such as \"22:00-07:00\", or \"\"",
    read: |value| {
        let text = text(value)?;
        if text.is_empty() {
            return Ok(None);
        }
        let hours = text.split_once('-').and_then(|(from, to)| Some((minute(from.trim())?, minute(to.trim())?)));
        match hours {
            None => Err(quoting(value, text, "has another form")),
            Some((from, to)) if from == to => Err(quoting(value, text, "ends when it begins")),
            hours => Ok(hours),
        }
    },
    show: |hours| {
        let text = |(from, to)| format!("{:02}:{:02}-{:02}:{:02}", from / 60, from % 60, to / 60, to % 60);
        quoted(&hours.map(text).unwrap_or_default())
    },
};

/// A time of the day in minutes since midnight. The minutes have two digits: 7:5 may be meant for 7:50.
fn minute(text: &str) -> Option<u16> {
    let (hours, minutes) = text.split_once(':')?;
    let number = |text: &str, lengths: &[usize], below: u16| {
        let is_number = lengths.contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse::<u16>().ok().filter(|number| is_number && *number < below)
    };
    Some(number(hours, &[1, 2], 24)? * 60 + number(minutes, &[2], 60)?)
}

pub(super) fn text<'v>(value: &'v Value<'_>) -> Result<&'v str, Wrong> {
    value.get_ref().as_str().ok_or_else(|| wrong_type(value))
}

/// A text as TOML.
pub(super) fn quoted(text: &str) -> String {
    toml::Value::from(text).to_string()
}

fn wrong_type(value: &Value<'_>) -> Wrong {
    Wrong::new(value, format!("this is of type {}", value.get_ref().type_str()))
}

fn quoting(value: &Value<'_>, text: &str, why: &str) -> Wrong {
    Wrong::new(value, format!("\"{}\" {why}", shown(text)))
}

/// `None` if the value is no integer, `Some(None)` if it is too large.
fn as_integer(value: &Value<'_>) -> Option<Option<i64>> {
    value.get_ref().as_integer().map(|integer| i64::from_str_radix(integer.as_str(), integer.radix()).ok())
}

fn one_of<T: Copy, const N: usize>(value: &Value<'_>, all: [T; N], word: fn(T) -> &'static str) -> Result<T, Wrong> {
    let text = text(value)?;
    all.into_iter().find(|&one| word(one) == text).ok_or_else(|| quoting(value, text, "is not one of them"))
}

fn list<T>(value: &Value<'_>, item: fn(&str) -> Result<T, &'static str>) -> Result<Vec<T>, Wrong> {
    items(value, |value| text(value).and_then(|text| item(text).map_err(|why| quoting(value, text, why))))
}

/// The items of a list.
pub(super) fn items<T>(value: &Value<'_>, read: impl Fn(&Value<'_>) -> Result<T, Wrong>) -> Result<Vec<T>, Wrong> {
    let items = value.get_ref().as_array().ok_or_else(|| wrong_type(value))?;
    items.iter().map(read).collect()
}

/// Texts as a list in TOML.
pub(super) fn texts(texts: impl Iterator<Item = String>) -> String {
    toml::Value::from(texts.collect::<Vec<_>>()).to_string()
}

fn read_span(value: &Value<'_>) -> Result<Span, Wrong> {
    match as_integer(value) {
        Some(seconds) => span::of_seconds(seconds).map_err(|why| Wrong::new(value, format!("this {why}"))),
        None => text(value).and_then(|text| span::parse(text).map_err(|why| quoting(value, text, why))),
    }
}

/// The words that a terminal is started with. A placeholder is a word of its own: each argument is passed separately,
/// so nothing can be inserted into the middle of another.
fn read_terminal(value: &Value<'_>) -> Result<Vec<String>, Wrong> {
    const PLACEHOLDERS: [&str; 2] = [COMMAND, FOLDER];
    let words = list(value, |word| {
        if word.contains('\0') {
            Err("has a null character")
        } else if PLACEHOLDERS.iter().any(|placeholder| word.contains(placeholder) && word != *placeholder) {
            Err("has more than its placeholder, which must be a word of its own")
        } else {
            Ok(word.to_owned())
        }
    })?;
    let Some(program) = words.first() else { return Ok(words) };
    if PLACEHOLDERS.contains(&program.as_str()) {
        Err(Wrong::new(value, NO_PROGRAM))
    } else if let Some(why) = wrong_program(program) {
        Err(Wrong::new(value, why))
    } else if words.iter().filter(|word| *word == COMMAND).count() > 1 {
        Err(Wrong::new(value, "it has the command twice"))
    } else {
        Ok(words)
    }
}

const NO_PROGRAM: &str = "its first word is not a program";

/// The words of a command, the first of which may be a program.
pub(super) fn command(value: &Value<'_>) -> Result<Vec<String>, Wrong> {
    let words = items(value, |item| {
        let text = text(item)?;
        if text.contains('\0') { Err(Wrong::new(item, "this has a null character")) } else { Ok(text.to_owned()) }
    })?;
    let Some(program) = words.first() else { return Err(Wrong::new(value, "it is empty")) };
    wrong_program(program).map_or(Ok(words), |why| Err(Wrong::new(value, why)))
}

/// Why the first word of a command cannot be one.
fn wrong_program(word: &str) -> Option<&'static str> {
    if word.is_empty() || word.starts_with('-') {
        Some(NO_PROGRAM)
    } else if word.contains(std::path::is_separator) && as_path(word).is_err() {
        Some("its first word is a path, but neither absolute nor beginning with ~/")
    } else {
        None
    }
}

pub(super) fn as_path(text: &str) -> Result<PathBuf, &'static str> {
    let path = Path::new(text);
    if text.contains('\0') {
        Err("has a null character")
    } else if path.is_absolute() || path.starts_with("~") {
        Ok(path.to_owned())
    } else {
        // A relative path would depend on who reads it: the tray and a command start in different folders.
        Err("is neither")
    }
}

fn as_program(text: &str) -> Result<String, &'static str> {
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
