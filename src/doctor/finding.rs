//! The result of a check: what was seen, how bad it is, and what to do.

use super::fix::Fix;
use serde::Serialize;
use std::borrow::Cow;

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Level {
    /// All is well.
    Ok,
    /// Worth knowing; Pilotlight works.
    Warning,
    /// Something does not work because of it.
    Problem,
}

impl Level {
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Problem => "problem",
        }
    }
}

/// One result of a check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Finding {
    /// The subject, in a word.
    pub check: &'static str,
    pub level: Level,
    /// What was seen, for the user.
    pub said: String,
    /// What to do about it.
    pub remedy: Option<String>,
    /// What was seen, for strangers: fixed words and numbers alone.
    #[serde(skip)]
    pub redacted: String,
    #[serde(skip)]
    pub fix: Option<Fix>,
}

impl Finding {
    /// A fixed text holds no name and no path, so strangers may read it; a formatted one has to be
    /// [`redacted`](Self::redacted), or declared [`public`](Self::public).
    pub(super) fn ok(check: &'static str, text: impl Into<Cow<'static, str>>) -> Self {
        let text = text.into();
        let redacted = if let Cow::Borrowed(fixed) = text { fixed.to_owned() } else { String::new() };
        Self { check, level: Level::Ok, said: text.into_owned(), remedy: None, redacted, fix: None }
    }

    pub(super) fn warning(check: &'static str, text: impl Into<Cow<'static, str>>, remedy: impl Into<String>) -> Self {
        Self { level: Level::Warning, remedy: Some(remedy.into()), ..Self::ok(check, text) }
    }

    pub(super) fn problem(check: &'static str, text: impl Into<Cow<'static, str>>, remedy: impl Into<String>) -> Self {
        Self { level: Level::Problem, ..Self::warning(check, text, remedy) }
    }

    /// Sets the text for strangers.
    pub(super) fn redacted(self, redacted: impl Into<String>) -> Self {
        Self { redacted: redacted.into(), ..self }
    }

    /// The text holds no name and no path: strangers read the same.
    pub(super) fn public(self) -> Self {
        Self { redacted: self.said.clone(), ..self }
    }

    pub(super) fn fixed_by(self, fix: Fix) -> Self {
        Self { fix: Some(fix), ..self }
    }
}
