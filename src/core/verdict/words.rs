//! The wording of reasons: age steps, how a turn ended, why a session is at rest.

use crate::core::facts::Facts;
use crate::core::question::Question;
use crate::core::text::{counted, listed};
use crate::core::time::Span;
use crate::core::turn::{Closed, Ending};

/// The step that an age is rounded down to, and the next step. An exact age would change all the time.
pub fn age_step(age: Span) -> (Span, Span) {
    const STEPS: [Span; 8] = [
        Span::ZERO,
        Span::minutes(1),
        Span::minutes(2),
        Span::minutes(5),
        Span::minutes(10),
        Span::minutes(15),
        Span::minutes(30),
        Span::hours(1),
    ];
    if let Some(next) = STEPS.iter().position(|&step| step > age) {
        return (STEPS[next - 1], STEPS[next]);
    }
    let unit = match age {
        _ if age < Span::hours(24) => Span::hours(1),
        _ if age < Span::hours(24 * 100) => Span::hours(24),
        _ => Span::hours(24 * 100),
    };
    let whole = age.0 / unit.0 * unit.0;
    (Span(whole), Span(whole.saturating_add(unit.0)))
}

/// "1 permission request is", "2 permission requests are".
pub(super) fn are(requests: usize) -> String {
    format!("{} {}", counted(requests, "permission request"), if requests == 1 { "is" } else { "are" })
}

/// `asks: "Which color?" (red, blue)`.
pub(super) fn asks_words(question: &Question, open: usize) -> String {
    let mut words = format!("asks: \"{}\"", question.text);
    if !question.choices.is_empty() {
        words.push_str(&format!(" ({})", question.choices.join(", ")));
    }
    if open > 1 {
        words.push_str(&format!("; {open} questions are open"));
    }
    words
}

/// Whether a session was never prompted.
pub(super) const fn is_unprompted(facts: &Facts, closed: Option<&Closed>) -> bool {
    closed.is_none() && (facts.progress.is_none() || facts.whole)
}

/// Why a session is at rest, and whether it is said that it is the user's turn.
pub(super) fn rest_words(facts: &Facts, closed: Option<&Closed>) -> (&'static str, bool) {
    match closed.map(|closed| &closed.ending) {
        None if is_unprompted(facts, closed) => ("no prompt yet", false),
        None => ("no turn is open", false),
        Some(Ending::Aborted) => ("stopped", true),
        Some(Ending::Resumed) => ("resumed", true),
        Some(Ending::PassedOver) => ("it went on after an error", true),
        Some(Ending::Unanswered) => ("its turn ended without an answer", false),
        Some(Ending::NeverClosed) => ("answered, never closed its turn", false),
        Some(Ending::ResumedSilent) => ("resumed, nothing since", false),
        Some(Ending::ByFormerOwner) => ("its process was restarted", true),
        Some(Ending::NoActiveWork) => ("its server reports no active work", false),
        Some(_) => ("done", true),
    }
}

/// "rate_limit, HTTP 429: try again later".
pub(super) fn error_words(closed: &Closed) -> String {
    match &closed.ending {
        Ending::Failed { kind, message, status } => {
            let kind = kind.as_deref().unwrap_or("error");
            let status = status.map(|status| format!(", HTTP {status}")).unwrap_or_default();
            let message: String = message.iter().flat_map(|message| message.chars()).take(120).collect();
            if message.is_empty() { format!("{kind}{status}") } else { format!("{kind}{status}: {message}") }
        }
        _ => String::new(),
    }
}

/// The same in the fewest words: "rate limit (429)". For Copilot's generic kind `query`, only the message.
pub(super) fn error_gist(closed: &Closed) -> String {
    match &closed.ending {
        Ending::Failed { kind, message, status } => match (kind.as_deref(), message) {
            (None | Some("query"), Some(message)) if !message.is_empty() => message.to_string(),
            (kind, _) => {
                let kind = kind.unwrap_or("error").replace('_', " ");
                status.map_or_else(|| kind.clone(), |status| format!("{kind} ({status})"))
            }
        },
        _ => String::new(),
    }
}

/// How a session was shut down, and with what unfinished, as a suffix.
pub(super) fn ended_words(closed: &Closed) -> (String, String) {
    let plainly = || ("shut down".to_owned(), String::new());
    let Ending::Shutdown { unfinished, error } = &closed.ending else { return plainly() };
    if !unfinished.is_empty() {
        return ("shut down".to_owned(), format!("; unfinished: {}", listed(unfinished)));
    }
    let Some(error) = error else { return plainly() };
    let failed = Closed { ending: (**error).clone(), at: closed.at, asks: false };
    (format!("shut down after an error: {}", error_words(&failed)), String::new())
}

/// The error of the last turn, as a suffix for an end that is not in the log.
pub(super) fn after_words(closed: Option<&Closed>) -> String {
    match closed {
        Some(closed @ Closed { ending: Ending::Failed { .. }, .. }) => {
            format!("; after an error: {}", error_words(closed))
        }
        _ => String::new(),
    }
}
