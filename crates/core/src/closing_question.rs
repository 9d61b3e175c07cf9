//! Whether a message ends by asking the user something.
//!
//! Both errors are a nuisance: a missed question waits forever, a false one cries wolf. So only the plain case counts:
//! the message's last sentence is a question. A question in quotes or in code is not addressed to the user (case 96).

use super::scan::Text;

/// Number of bytes inspected at the end of a message: enough for any last paragraph, so that its quotation marks pair
/// up.
const TAIL_MAX: usize = 4096;

/// Whether a message's text ends in a question to the user.
pub fn ends_in_question(text: Text<'_>) -> bool {
    // Most messages do not. That shows in the raw bytes, before anything is unescaped.
    let near = &text.0[text.0.len().saturating_sub(TAIL_MAX)..];
    if !MARKS.iter().any(|&mark| memchr::memmem::find(near, mark.as_bytes()).is_some()) && !near.contains(&b'\\') {
        return false;
    }
    let end = text.read_end(TAIL_MAX);
    let Some(last_line) = end.trim_end().lines().next_back().map(str::trim) else { return false };
    if last_line.starts_with('>') || last_line.starts_with("```") || last_line.starts_with("~~~") {
        return false;
    }
    asks(last_line) && !in_code_block(text)
}

/// Question marks of several scripts.
const MARKS: [&str; 4] = ["?", "？", "؟", "⁇"];

fn asks(line: &str) -> bool {
    let bare = line.trim_end_matches(|c: char| c.is_whitespace() || matches!(c, '*' | '_' | '~') || is_decoration(c));
    if MARKS.iter().any(|mark| bare.ends_with(mark)) {
        return !in_quotes(bare);
    }
    // "Shall I go on? (y/n)": the parenthesis belongs to the question.
    let Some((before, _)) = bare.strip_suffix([')', ']']).and_then(|inside| inside.rsplit_once(['(', '['])) else {
        return false;
    };
    let before = before.trim_end();
    MARKS.iter().any(|mark| before.ends_with(mark)) && !in_quotes(before)
}

/// Emoji and dingbats, which may follow a sentence.
fn is_decoration(c: char) -> bool {
    matches!(u32::from(c), 0x2600..=0x27BF | 0xFE0F | 0x200D | 0x1F300..=0x1FAFF)
}

/// Whether the text ends inside a quotation or inline code.
fn in_quotes(text: &str) -> bool {
    let odd = |mark: char| text.matches(mark).count() % 2 == 1;
    odd('"')
        || odd('`')
        || text.matches('“').count() > text.matches('”').count()
        || text.matches('«').count() > text.matches('»').count()
}

/// Whether the text ends inside a fenced code block, that is, after an odd number of fences.
fn in_code_block(text: Text<'_>) -> bool {
    memchr::memmem::find_iter(text.0, b"```").count() % 2 == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asks(text: &str) -> bool {
        let json = serde_json::to_string(text).unwrap();
        ends_in_question(Text(&json.as_bytes()[1..json.len() - 1]))
    }

    #[test]
    fn case_96_a_message_that_ends_in_a_question_asks() {
        for text in [
            "Shall I go on?",
            "Done so remote.\n\nWhich of the two do you want?\n",
            "**Shall I proceed?**",
            "Proceed? (y/n)",
            "Want me to push it? 🙂",
            "He said \"no\". Why?",
            "```\ncode\n```\nIs that right?",
            "続けますか？",
        ] {
            assert!(asks(text), "{text}");
        }
        assert!(asks(&format!("{}?", "é\n".repeat(5000))));
    }

    #[test]
    fn case_96_questions_in_code_or_quotes_do_not_count() {
        for text in [
            "",
            "Done.",
            "Is it? Yes.",
            "```\nlet x = maybe?\n```",
            "```\nlet x = maybe?",
            "> Shall I go on?",
            "The prompt reads \"Continue?\"",
            "The prompt reads \"Continue?",
            "It prints `ok?`",
            "It says “really?”",
            "I ran foo(bar)",
            "See https://example.org/?q=1",
        ] {
            assert!(!asks(text), "{text}");
        }
    }

    #[test]
    fn case_96_escapes_and_fences_are_seen_through() {
        assert!(ends_in_question(Text(br"Shall I go on\u003f")));
        for text in ["~~~\ncode\n~~~ ok?", "```\ncode\n``` ok?", "It prints \"Go on? (y/n)", "I ran (what) (now)"] {
            assert!(!asks(text), "{text}");
        }
    }
}
