//! Text for people, folded to the width of the terminal that it is printed on, between words: a terminal breaks a line
//! wherever it is full. What is no terminal gets each line whole.

use super::charset::{has_unicode_stderr, has_unicode_stdout, words};
use crossterm::terminal;
use std::io::{self, IsTerminal};
use textwrap::{Options, WordSeparator, WordSplitter};

/// How much further than its first line the rest of a line is indented.
const HANG: usize = 2;

/// Lines for standard output.
pub(super) fn on_stdout(text: &str) -> String {
    on_stdout_from(text, 0)
}

/// The same, where what follows the first line of each begins in this column.
pub(super) fn on_stdout_from(text: &str, column: usize) -> String {
    folded(&words(text, has_unicode_stdout()), width(&io::stdout()), column)
}

/// A request or question for standard output, whose characters stay as they are.
pub(super) fn folded_request(text: &str) -> String {
    folded(text, width(&io::stdout()), 0)
}

/// Lines for standard error.
pub(super) fn on_stderr(text: &str) -> String {
    folded(&words(text, has_unicode_stderr()), width(&io::stderr()), 0)
}

/// The width of the terminal that a stream is, if it is one.
fn width(stream: &impl IsTerminal) -> Option<usize> {
    let size = stream.is_terminal().then(terminal::size)?.ok()?;
    Some(usize::from(size.0)).filter(|width| *width > 0)
}

fn folded(text: &str, width: Option<usize>, column: usize) -> String {
    let Some(width) = width else { return text.to_owned() };
    text.split_inclusive('\n').map(|line| folded_line(line, width, column)).collect()
}

fn folded_line(line: &str, width: usize, column: usize) -> String {
    let own = line.len() - line.trim_start_matches(' ').len();
    // Where hardly anything fits beside it, the rest is worth more than where it stands.
    let hang = Some(column).filter(|column| *column > 0 && column * 2 < width).unwrap_or(own + HANG);
    let indent = " ".repeat(hang.min(width / 2));
    let options = Options::new(width)
        .subsequent_indent(&indent)
        .break_words(false)
        .word_separator(WordSeparator::AsciiSpace)
        .word_splitter(WordSplitter::NoHyphenation);
    // The line's end, and the blank that ends a question, stay.
    let (text, end) = line.split_at(line.trim_end_matches([' ', '\n']).len());
    textwrap::wrap(text, options).join("\n") + end
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_630_no_word_is_broken_in_the_middle() {
        let text = "Its request:\n    cargo test --test pilotlight-bridge -- --nocapture\n\nRun it? [y/N] ";
        assert_eq!(folded(text, None, 0), text);
        assert_eq!(
            folded(text, Some(30), 0),
            "Its request:\n    cargo test --test\n      pilotlight-bridge --\n      --nocapture\n\nRun it? [y/N] "
        );
        assert_eq!(
            folded("folder          /a/very-long/path and more\n", Some(40), 16),
            "folder          /a/very-long/path and\n                more\n"
        );
        for width in 1..80 {
            let folded = folded(text, Some(width), 16);
            let whole = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
            assert_eq!(whole(&folded), whole(text), "{width}: {folded}");
        }
    }
}
