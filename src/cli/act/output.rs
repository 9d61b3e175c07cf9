//! Prints the reports of an order: requests and results on standard output, steps and errors on standard error.
//!
//! Write errors are ignored: closed output neither stops the order nor changes its outcome. A request is the exception:
//! one that could not be written out is not approved.

use crate::cli::charset::{has_unicode_stdout, words};
use crate::cli::fold::{folded_request, on_stderr, on_stdout};
use crate::cli::report::{LINE_MAX, say};
use pilotlight_core::confusable::{Confusable, find_confusable};
use pilotlight_core::fleet::{Label, Session};
use pilotlight_core::form::Form;
use pilotlight_core::order::{OrderReport, Outcome, ShownRequest};
use pilotlight_core::text::{NAME_MAX, is_invisible, plain};
use std::io::{self, Write};

/// Takes the reports of an order, the last one included.
pub(super) trait Reporter {
    fn report(&mut self, report: &OrderReport);
}

/// Prints steps and the outcome, but no requests.
pub(super) struct Printer;

impl Reporter for Printer {
    fn report(&mut self, report: &OrderReport) {
        match report {
            OrderReport::Step(step, said) => {
                let said = format!("{}: {}", step.doing(), plain(said, LINE_MAX));
                let _ = writeln!(io::stderr(), "{}", on_stderr(&said));
            }
            OrderReport::Request(_) | OrderReport::Question(_) => {}
            OrderReport::End(outcome) => print_outcome(outcome),
        }
    }
}

/// Prints steps, the outcome, and requests.
pub(super) struct RequestPrinter {
    /// The session's label.
    who: String,
}

impl RequestPrinter {
    pub(super) fn new(label: &Label) -> Self {
        Self { who: shown(label) }
    }
}

impl Reporter for RequestPrinter {
    fn report(&mut self, report: &OrderReport) {
        if let OrderReport::Request(shown) = report {
            let _ = write_out(&request(&self.who, None, shown));
        }
        Printer.report(report);
    }
}

/// Prints a request, and keeps its text. Prints neither steps nor the outcome.
pub(super) struct RequestReader {
    /// The session's label, and its sub-agent that asks.
    who: String,
    /// The request's id.
    id: String,
    /// The request, as its server shows it.
    pub(super) request: Option<ShownRequest>,
    /// Why it could not be written out.
    pub(super) failed: Option<io::Error>,
}

impl RequestReader {
    pub(super) fn new(session: &Session, label: &Label, id: &str) -> Self {
        let facts = &session.observed.facts;
        let asks = facts.requests.iter().find(|request| *request.request == *id);
        let by = asks.and_then(|request| facts.asker(request)).map(|by| words(by, has_unicode_stdout()));
        let by = by.map(|by| format!(", by its sub-agent {by}")).unwrap_or_default();
        Self { who: shown(label) + &by, id: id.to_owned(), request: None, failed: None }
    }
}

impl Reporter for RequestReader {
    fn report(&mut self, report: &OrderReport) {
        if let OrderReport::Request(shown) = report {
            self.failed = write_out(&request(&self.who, Some(&self.id), shown)).err();
            self.request = Some(shown.clone());
        }
    }
}

/// Writes all of a text to standard output, folded to the width of a terminal.
///
/// # Errors
/// If not all of it could be written, or if standard output is the null device, which takes the place of a closed
/// output when a program starts.
pub(super) fn write_out(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    if is_discarded(&out) {
        return Err(io::Error::other("standard output is closed, or thrown away"));
    }
    out.write_all(folded_request(text).as_bytes()).and_then(|()| out.flush())
}

#[cfg(unix)]
fn is_discarded(out: &io::StdoutLock<'_>) -> bool {
    use rustix::fs::{FileType, fstat, stat};
    let Ok(out) = fstat(out) else { return true };
    let is_device = FileType::from_raw_mode(out.st_mode) == FileType::CharacterDevice;
    is_device && stat("/dev/null").is_ok_and(|null| null.st_rdev == out.st_rdev)
}

#[cfg(windows)]
fn is_discarded(out: &io::StdoutLock<'_>) -> bool {
    std::os::windows::io::AsRawHandle::as_raw_handle(out).is_null()
}

/// Prints an outcome: success on standard output, anything else on standard error.
pub(super) fn print_outcome(outcome: &Outcome) {
    match outcome {
        Outcome::Done(said) => {
            let _ = writeln!(io::stdout(), "{}", on_stdout(&plain(said, LINE_MAX)));
        }
        Outcome::Failed(_) | Outcome::Unconfirmed(_) | Outcome::Refused(_) | Outcome::Unknown => say(outcome.words()),
    }
}

/// A session's name, as the terminal can show it. What the session asks is never altered.
pub(super) fn shown(label: &Label) -> String {
    words(&label.to_string(), has_unicode_stdout()).into_owned()
}

/// Formats a request in full. Its lines are indented, so that none passes for ours, and control and invisible
/// characters are escaped. A warning follows if something may read as something else, or if the session's log says
/// something else.
fn request(who: &str, id: Option<&str>, shown: &ShownRequest) -> String {
    let mut out = format!("The request of {who}:\n");
    push_indented(&mut out, "", &shown.text);
    out.extend(id.filter(|id| !id.is_empty()).map(id_line));
    if let Some(in_log) = &shown.in_log {
        out.push_str("Careful, its log says something else:\n");
        push_indented(&mut out, "", in_log);
    }
    push_warning(&mut out);
    out
}

/// Formats a question in the same way, with its numbered choices under a heading of their own, so that no list in the
/// question passes for them.
pub(super) fn question(who: &str, form: &Form) -> String {
    let mut out = format!("The question of {who}:\n");
    push_indented(&mut out, "", &form.text);
    out.push_str(&id_line(&form.request));
    if !form.choices.is_empty() {
        out.push_str("Its choices:\n");
    }
    for (number, choice) in (1..).zip(&form.choices) {
        push_indented(&mut out, &format!("{number}) "), &choice.words);
    }
    if form.is_filled_in() {
        out.push_str("Its fields:\n");
        for field in form.fields() {
            let about: Vec<_> = field.about.iter().map(|about| &**about).collect();
            let about = [about.join(" — "), field.words()].into_iter().filter(|words| !words.is_empty());
            push_indented(&mut out, "", &format!("{}: {}", field.name, about.collect::<Vec<_>>().join("; ")));
            for (number, named) in (1..).zip(field.listed()) {
                push_indented(&mut out, &format!("    {number}) "), &named.words);
            }
        }
    }
    push_warning(&mut out);
    out
}

/// Tells an id, by which exactly this request or question can be answered.
fn id_line(id: &str) -> String {
    format!("Its id, for --request: {}\n", plain(id, LINE_MAX))
}

/// Appends a text with each line indented, and with a prefix before the first.
fn push_indented(out: &mut String, prefix: &str, text: &str) {
    let mut prefix = prefix;
    for line in text.split('\n') {
        out.push_str("    ");
        out.push_str(std::mem::take(&mut prefix));
        for c in line.chars() {
            // U+2028 and U+2029 are in neither of the first two classes.
            if c.is_control() || is_invisible(c) || matches!(c, '\u{2028}' | '\u{2029}') {
                out.extend(c.escape_default());
            } else {
                out.push(c);
            }
        }
        out.push('\n');
    }
}

/// Appends a warning if a line after the first may read as something else.
fn push_warning(out: &mut String) {
    let warning = out.lines().skip(1).find_map(find_confusable).map(|doubt| match doubt {
        Confusable::Lookalike(piece) | Confusable::RightToLeft(piece) => {
            let piece = plain(piece, NAME_MAX);
            format!("Careful, it may not be what it looks like: {} is {piece}\n", piece.escape_unicode())
        }
        Confusable::Unseen(_) | Confusable::Space(_) => {
            format!("Careful, it may not be what it looks like: {}\n", doubt.words())
        }
    });
    out.extend(warning);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_shown_in_full_with_control_characters_escaped() {
        let text = "shell: rm -rf x\t\u{1b}[2Kls\r\u{202e}\u{2028}\u{9b}J\nReport: \"done\" \\ é 日本語\n";
        assert_eq!(
            request("api · Fix it", Some("r1"), &ShownRequest::verbatim(text)),
            "The request of api · Fix it:\n    shell: rm -rf x\\t\\u{1b}[2Kls\\r\\u{202e}\\u{2028}\\u{9b}J\n    Report: \"done\" \\ é 日本語\n    \nIts id, for --request: r1\n"
        );
        let long = "x".repeat(100_000);
        assert!(request("api", None, &ShownRequest::verbatim(&long)).contains(&long));
    }

    #[test]
    fn case_114_text_that_may_read_as_something_else_is_pointed_out() {
        let shown = request("api", None, &ShownRequest::verbatim("Run this command:\n\nrm -rf /тмр"));
        let line = shown.lines().last().unwrap_or_default();
        assert_eq!(line, "Careful, it may not be what it looks like: \\u{442}\\u{43c}\\u{440} is тмр");
        assert!(!request("api", None, &ShownRequest::verbatim("cat 報告.txt")).contains("Careful"));
    }
}
