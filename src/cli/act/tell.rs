//! What comes back of an order, on the terminal: steps on standard error, the request and the result on standard output, what
//! went wrong on standard error.
//!
//! Nobody need read it: an output that is closed neither stops the order nor changes how it ended.

use crate::act::{Outcome, Report};
use crate::cli::{LINE_MAX, say};
use crate::core::text::{is_invisible, plain};
use std::io::{self, Write};

/// Takes the reports of an order, the end included.
pub(super) trait Tell {
    /// One report.
    fn report(&mut self, report: &Report);
}

/// Shows everything.
pub(super) struct Teller;

impl Tell for Teller {
    fn report(&mut self, report: &Report) {
        match report {
            Report::Step(step, words) => {
                let _ = writeln!(io::stderr(), "{}: {}", step.tag(), plain(words, LINE_MAX));
            }
            Report::Request(text) => {
                let _ = io::stdout().write_all(request(text).as_bytes());
            }
            Report::End(outcome) => end(outcome),
        }
    }
}

/// Shows a request, and keeps it. How that ended is left to others.
#[derive(Default)]
pub(super) struct Shown {
    /// The request, as it came.
    pub(super) request: Option<String>,
}

impl Tell for Shown {
    fn report(&mut self, report: &Report) {
        match report {
            Report::End(_) => return,
            Report::Request(text) => self.request = Some(text.clone()),
            Report::Step(..) => {}
        }
        Teller.report(report);
    }
}

/// Shows everything but the request, which was shown before.
pub(super) struct AfterShown;

impl Tell for AfterShown {
    fn report(&mut self, report: &Report) {
        if !matches!(report, Report::Request(_)) {
            Teller.report(report);
        }
    }
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
/// act on the terminal or would not be seen as an escape.
fn request(text: &str) -> String {
    let mut out = String::from("The request:\n");
    for line in text.split('\n') {
        out.push_str("    ");
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
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_shown_whole_and_acts_on_nothing() {
        let text = "shell: rm -rf x\t\u{1b}[2Kls\r\u{202e}\u{2028}\u{9b}J\nReport: \"done\" \\ é 👩\u{200d}💻\n";
        assert_eq!(
            request(text),
            "The request:\n    shell: rm -rf x\\t\\u{1b}[2Kls\\r\\u{202e}\\u{2028}\\u{9b}J\n    Report: \"done\" \\ é 👩\u{200d}💻\n    \n"
        );
        let long = "x".repeat(100_000);
        assert!(request(&long).contains(&long));
    }
}
