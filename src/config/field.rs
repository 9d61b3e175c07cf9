//! The forms that the value of a setting has: what it is called, how it is read from the file, and how it is printed.

use std::path::PathBuf;

use toml::Spanned;
use toml::de::DeValue;

use super::value::{
    DETAILS, NEVER, Wrong, as_count, as_detail, as_hours, as_list, as_log_level, as_own_program, as_path,
    as_permissions, as_program, as_prompt, as_span, as_switch, as_terminal, as_wait, hours,
};
use super::{Config, Permissions, span};
use crate::core::alert::Detail;
use crate::core::time::Span;
use crate::system::log::LogLevel;

/// The field of the config that a setting sets, which is also the form that its value has. To read one through its
/// `&mut`, a copy of the config is made: settings are few and seldom read, and one accessor a field cannot disagree with
/// itself.
pub(super) enum Field {
    Span(fn(&mut Config) -> &mut Span),
    Count(fn(&mut Config) -> &mut usize),
    Folders(fn(&mut Config) -> &mut Vec<PathBuf>),
    Programs(fn(&mut Config) -> &mut Vec<String>),
    Terminal(fn(&mut Config) -> &mut Vec<String>),
    OwnProgram(fn(&mut Config) -> &mut Option<PathBuf>),
    /// What a session is told.
    Prompt(fn(&mut Config) -> &mut String),
    Permissions(fn(&mut Config) -> &mut Permissions),
    Switch(fn(&mut Config) -> &mut bool),
    /// A span after which something is done, if ever.
    Wait(fn(&mut Config) -> &mut Option<Span>),
    /// A part of the day.
    Hours(fn(&mut Config) -> &mut Option<(u16, u16)>),
    Detail(fn(&mut Config) -> &mut Detail),
    LogLevel(fn(&mut Config) -> &mut LogLevel),
}

impl Field {
    /// What a value of this form is, for the user.
    pub(super) fn form(&self) -> &'static str {
        match self {
            Self::Span(_) => "a span of time, such as \"90s\" or \"1h30m\", or an integer of seconds",
            Self::Count(_) => "an integer, 0 or more",
            Self::Folders(_) => "a list of folders, each absolute or beginning with ~/",
            Self::Programs(_) => "a list of file names of programs",
            Self::Terminal(_) => {
                "a list of words, the first of which is a program on PATH, absolute or beginning with ~/"
            }
            Self::Prompt(_) => "a text that is not blank",
            Self::OwnProgram(_) => "the path of a program, absolute or beginning with ~/, or \"\"",
            Self::Permissions(_) => "\"ask\", \"approve-all\" or \"observe\"",
            Self::Switch(_) => "true or false",
            Self::Wait(_) => "a span of time, such as \"90s\" or \"1h30m\", or \"0s\" for never",
            Self::Hours(_) => "two times of the day, such as \"22:00-07:00\", or \"\"",
            Self::Detail(_) => "\"full\", \"title\" or \"none\"",
            Self::LogLevel(_) => "\"error\", \"warn\", \"info\" or \"debug\"",
        }
    }

    /// Sets the field from the value in a document; leaves it as it was if the value is wrong.
    pub(super) fn set(&self, config: &mut Config, value: &Spanned<DeValue<'_>>) -> Result<(), Wrong> {
        match self {
            Self::Span(field) => *field(config) = as_span(value)?,
            Self::Count(field) => *field(config) = as_count(value)?,
            Self::Folders(field) => *field(config) = as_list(value, as_path)?,
            Self::Programs(field) => *field(config) = as_list(value, as_program)?,
            Self::Terminal(field) => *field(config) = as_terminal(value)?,
            Self::OwnProgram(field) => *field(config) = as_own_program(value)?,
            Self::Prompt(field) => *field(config) = as_prompt(value)?,
            Self::Permissions(field) => *field(config) = as_permissions(value)?,
            Self::Switch(field) => *field(config) = as_switch(value)?,
            Self::Wait(field) => *field(config) = as_wait(value)?,
            Self::Hours(field) => *field(config) = as_hours(value)?,
            Self::Detail(field) => *field(config) = as_detail(value)?,
            Self::LogLevel(field) => *field(config) = as_log_level(value)?,
        }
        Ok(())
    }

    /// Sets the field back to its default.
    pub(super) fn reset(&self, config: &mut Config) {
        let mut default = Config::default();
        match self {
            Self::Span(field) => *field(config) = *field(&mut default),
            Self::Count(field) => *field(config) = *field(&mut default),
            Self::Folders(field) => field(config).clone_from(field(&mut default)),
            Self::Programs(field) | Self::Terminal(field) => field(config).clone_from(field(&mut default)),
            Self::OwnProgram(field) => field(config).clone_from(field(&mut default)),
            Self::Prompt(field) => field(config).clone_from(field(&mut default)),
            Self::Permissions(field) => *field(config) = *field(&mut default),
            Self::Switch(field) => *field(config) = *field(&mut default),
            Self::Wait(field) => *field(config) = *field(&mut default),
            Self::Hours(field) => *field(config) = *field(&mut default),
            Self::Detail(field) => *field(config) = *field(&mut default),
            Self::LogLevel(field) => *field(config) = *field(&mut default),
        }
    }

    /// The field's value as TOML writes it.
    pub(super) fn show(&self, config: &Config) -> String {
        let mut config = config.clone();
        let list = |texts: Vec<String>| toml::Value::from(texts).to_string();
        match self {
            Self::Span(field) => format!("\"{}\"", span::text(*field(&mut config))),
            Self::Count(field) => field(&mut config).to_string(),
            Self::Folders(field) => list(field(&mut config).iter().map(|p| p.to_string_lossy().into_owned()).collect()),
            Self::Programs(field) | Self::Terminal(field) => list(std::mem::take(field(&mut config))),
            Self::Prompt(field) => toml::Value::from(field(&mut config).clone()).to_string(),
            Self::OwnProgram(field) => {
                let path = field(&mut config).take().unwrap_or_default();
                toml::Value::from(&*path.to_string_lossy()).to_string()
            }
            Self::Permissions(field) => format!("\"{}\"", field(&mut config).word()),
            Self::Switch(field) => field(&mut config).to_string(),
            Self::Wait(field) => format!("\"{}\"", field(&mut config).map_or(NEVER.into(), span::text)),
            Self::Hours(field) => format!("\"{}\"", hours(*field(&mut config))),
            Self::LogLevel(field) => format!("\"{}\"", field(&mut config).word()),
            Self::Detail(field) => {
                let detail = *field(&mut config);
                format!("\"{}\"", DETAILS.iter().find(|(one, _)| *one == detail).map_or("", |(_, word)| word))
            }
        }
    }

    /// The field's value, if it is a span of time.
    pub(super) fn span(&self, config: &Config) -> Option<Span> {
        match self {
            Self::Span(field) => Some(*field(&mut config.clone())),
            _ => None,
        }
    }
}
