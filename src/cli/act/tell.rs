//! What comes back of an order, on the terminal: steps on standard error, the request and the result on standard output, what
//! went wrong on standard error.
//!
//! Nobody need read it: an output that is closed neither stops the order nor changes how it ended. A request is the exception:
//! what could not be written out is not approved.

use crate::cli::{LINE_MAX, say};
use crate::core::fleet::Label;
use crate::core::form::Form;
use crate::core::misread::misread;
use crate::core::order::{Outcome, Report};
use crate::core::text::{NAME_MAX, is_invisible, plain};
use std::io::{self, Write};

/// Takes the reports of an order, the end included.
pub(super) trait Tell {
    /// One report.
    fn report(&mut self, report: &Report);
}

/// Shows everything but requests.
pub(super) struct Teller;

impl Tell for Teller {
    fn report(&mut self, report: &Report) {
        match report {
            Report::Step(step, words) => {
                let _ = writeln!(io::stderr(), "{}: {}", step.tag(), plain(words, LINE_MAX));
            }
            Report::Request(_) | Report::Question(_) | Report::Said(_) => {}
            Report::End(outcome) => end(outcome),
        }
    }
}

/// Shows everything, requests included.
pub(super) struct Telling {
    who: String,
}

impl Telling {
    /// Of this session.
    pub(super) fn of(label: &Label) -> Self {
        Self { who: label.to_string() }
    }
}

impl Tell for Telling {
    fn report(&mut self, report: &Report) {
        if let Report::Request(text) = report {
            let _ = write_out(&request(&self.who, text));
        }
        Teller.report(report);
    }
}

/// Shows a request, and keeps it. The steps on the way to it, and how that ended, are left to others.
pub(super) struct Shown {
    /// Whose request it is.
    who: String,
    /// The request, as it came.
    pub(super) request: Option<String>,
    /// Why it could not be written out.
    pub(super) failed: Option<io::Error>,
}

impl Shown {
    /// Of this session.
    pub(super) fn of(label: &Label) -> Self {
        Self { who: label.to_string(), request: None, failed: None }
    }
}

impl Tell for Shown {
    fn report(&mut self, report: &Report) {
        if let Report::Request(text) = report {
            self.failed = write_out(&request(&self.who, text)).err();
            self.request = Some(text.clone());
        }
    }
}

/// Writes to standard output, to the end.
///
/// # Errors
/// Where not all of it was taken, or where it goes nowhere: a program that is started with its output closed is given the null
/// device in its place.
pub(super) fn write_out(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    if goes_nowhere(&out) {
        return Err(io::Error::other("standard output is closed, or thrown away"));
    }
    out.write_all(text.as_bytes()).and_then(|()| out.flush())
}

#[cfg(unix)]
fn goes_nowhere(out: &io::StdoutLock<'_>) -> bool {
    use rustix::fs::{FileType, fstat, stat};
    let Ok(out) = fstat(out) else { return true };
    let is_device = FileType::from_raw_mode(out.st_mode) == FileType::CharacterDevice;
    is_device && stat("/dev/null").is_ok_and(|null| null.st_rdev == out.st_rdev)
}

#[cfg(windows)]
fn goes_nowhere(out: &io::StdoutLock<'_>) -> bool {
    std::os::windows::io::AsRawHandle::as_raw_handle(out).is_null()
}

/// Says how it ended.
pub(super) fn end(outcome: &Outcome) {
    match outcome {
        Outcome::Done(words) => {
            let _ = writeln!(io::stdout(), "{}", plain(words, LINE_MAX));
        }
        Outcome::Failed(_) | Outcome::Unconfirmed(_) | Outcome::Refused(_) | Outcome::Unknown => say(outcome.words()),
    }
}

/// A request, whole, line by line: set in, so that no line of it passes for one of ours, and with everything that would
/// act on the terminal or would not be seen as an escape. What reads as something else is pointed out.
fn request(who: &str, text: &str) -> String {
    let mut out = format!("The request of {who}:\n");
    set_in(&mut out, "", text);
    careful(&mut out);
    out
}

/// What is asked, whole, in the same way, with the answers to choose from by their numbers: apart, so that no list in the question
/// passes for them.
pub(super) fn question(who: &str, form: &Form) -> String {
    let mut out = format!("The question of {who}:\n");
    set_in(&mut out, "", &form.text);
    if !form.choices.is_empty() {
        out.push_str("Its choices:\n");
    }
    for (number, choice) in (1..).zip(&form.choices) {
        set_in(&mut out, &format!("{number}) "), &choice.words);
    }
    if form.is_filled_in() {
        out.push_str("Its fields:\n");
        for field in form.fields() {
            let about: Vec<_> = field.about.iter().map(|about| &**about).collect();
            let about = [about.join(" — "), field.words()].into_iter().filter(|words| !words.is_empty());
            set_in(&mut out, "", &format!("{}: {}", field.name, about.collect::<Vec<_>>().join("; ")));
            for (number, named) in (1..).zip(field.listed()) {
                set_in(&mut out, &format!("    {number}) "), &named.words);
            }
        }
    }
    careful(&mut out);
    out
}

/// Adds a text, line by line; the first has this before it.
fn set_in(out: &mut String, first: &str, text: &str) {
    let mut before = first;
    for line in text.split('\n') {
        out.push_str("    ");
        out.push_str(std::mem::take(&mut before));
        for c in line.chars() {
            // Line and paragraph separators are neither control characters nor invisible.
            if c.is_control() || is_invisible(c) || matches!(c, '\u{2028}' | '\u{2029}') {
                out.extend(c.escape_default());
            } else {
                out.push(c);
            }
        }
        out.push('\n');
    }
}

/// Points out what reads as something else, behind the title.
fn careful(out: &mut String) {
    let careful = out.lines().skip(1).find_map(misread).map(|piece| {
        let piece = plain(piece, NAME_MAX);
        format!("Careful, it may not be what it looks like: {} is {piece}\n", piece.escape_unicode())
    });
    out.extend(careful);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_shown_whole_and_acts_on_nothing() {
        let text = "shell: rm -rf x\t\u{1b}[2Kls\r\u{202e}\u{2028}\u{9b}J\nReport: \"done\" \\ é 日本語\n";
        assert_eq!(
            request("api · Fix it", text),
            "The request of api · Fix it:\n    shell: rm -rf x\\t\\u{1b}[2Kls\\r\\u{202e}\\u{2028}\\u{9b}J\n    Report: \"done\" \\ é 日本語\n    \n"
        );
        let long = "x".repeat(100_000);
        assert!(request("api", &long).contains(&long));
    }

    #[test]
    fn case_114_what_may_read_as_something_else_is_pointed_out() {
        let said = request("api", "Run this command:\n\nrm -rf /тмр");
        let line = said.lines().last().unwrap_or_default();
        assert_eq!(line, "Careful, it may not be what it looks like: \\u{442}\\u{43c}\\u{440} is тмр");
        assert!(!request("api", "cat 報告.txt").contains("Careful"));
    }
}
