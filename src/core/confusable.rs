//! Detection of confusable text: whoever approves a command must see exactly what will run.
//!
//! Commands and paths are checked word by word, where a word is a run of letters, digits and marks. Each word must be
//! Highly Restrictive by [UTS 39](https://www.unicode.org/reports/tr39/), and no word in another script may look
//! entirely Latin. So `git commit -m "Исправлено"` and `cat 報告.txt` pass, and `rm -rf /tмp` does not. Strong
//! right-to-left letters never pass, because they reorder arguments on display. Between words, lookalikes of quotation
//! marks, slashes or dots fail.
//!
//! The price: an honest word that happens to look entirely Latin, like the Russian "тест", fails and has to go through
//! Review.

use super::text::{is_fully_visible, is_right_to_left, renders_blank};
use unicode_security::confusable_detection::skeleton;
use unicode_security::{GeneralSecurityProfile, MixedScript, RestrictionLevel, RestrictionLevelDetection};
use unicode_width::UnicodeWidthChar;

/// Whether text is fully visible on one line of at most `most` characters and cannot be mistaken for other text. Only
/// such text may be approved right where it is shown.
pub(crate) fn is_unambiguous(text: &str, most: usize) -> bool {
    is_fully_visible(text, most) && find_confusable(text).is_none()
}

/// Whether every part of a text is visible as it is, and cannot be mistaken for other text. It may have many lines.
pub(crate) fn reads_as_it_is(text: &str) -> bool {
    let is_visible = |c: char| matches!(c, '\n' | '\t') || !c.is_control() && !renders_blank(c);
    text.chars().all(is_visible) && text.lines().all(|line| find_confusable(line).is_none())
}

/// Returns the first piece of a text that can be mistaken for something else.
pub(crate) fn find_confusable(text: &str) -> Option<&str> {
    if text.is_ascii() {
        return None;
    }
    let mut rest = text;
    let mut before = None;
    while let Some(first) = rest.chars().next() {
        let length =
            if is_word_char(first) { rest.find(|c| !is_word_char(c)).unwrap_or(rest.len()) } else { first.len_utf8() };
        let (piece, after) = rest.split_at(length);
        let reads =
            if is_word_char(first) { is_word_clear(piece) } else { is_mark_clear(first, before, after.chars().next()) };
        if !reads {
            return Some(piece);
        }
        before = piece.chars().next_back();
        rest = after;
    }
    None
}

/// Letters, digits and marks. Besides letters and digits, UTS 39 allows marks in identifiers, and some punctuation
/// without a script, which is excluded here.
fn is_word_char(c: char) -> bool {
    let is_mark = || c.width() == Some(0) || !goes_with_latin(c);
    c.is_alphanumeric() || !c.is_ascii() && GeneralSecurityProfile::identifier_allowed(c) && is_mark()
}

fn is_word_clear(word: &str) -> bool {
    if word.is_ascii() {
        return true;
    }
    let mut foreign = word.chars().filter(|c| !goes_with_latin(*c)).peekable();
    // A single letter has no neighbours to blend in with: it is mistaken for ASCII only if drawn just like ASCII.
    let looks = if word.chars().nth(1).is_some() { looks_latin } else { looks_ascii };
    let all_look_latin = foreign.peek().is_some() && foreign.all(looks);
    let looks_a_mark = |c: char| goes_with_latin(c) && looks_syntax(c);
    word.check_restriction_level(RestrictionLevel::HighlyRestrictive)
        && !all_look_latin
        && !word.chars().any(|c| is_right_to_left(c) || looks_a_mark(c))
}

/// Checks a character between words. The ellipsis, an apostrophe inside a word, and the wide punctuation of Chinese and
/// Japanese sentences are common and pass.
fn is_mark_clear(mark: char, before: Option<char>, after: Option<char>) -> bool {
    let is_letter = |c: Option<char>| c.is_some_and(char::is_alphabetic);
    match mark {
        _ if mark.is_ascii() => true,
        '\u{2026}' => true,
        '\u{2019}' => is_letter(before) && is_letter(after),
        _ => !is_right_to_left(mark) && mark.width() != Some(0) && !looks_syntax(mark),
    }
}

/// Latin, or common to all scripts.
fn goes_with_latin(c: char) -> bool {
    c.is_ascii() || ['a', c].iter().collect::<String>().is_single_script()
}

/// Drawn like ASCII, ignoring marks above and below, or passing for it among other letters: small capitals, kra (a k
/// without an ascender), the turned w (like m), the soft sign.
fn looks_latin(c: char) -> bool {
    let passes = |c: char| matches!(c, 'ʙ' | 'ʜ' | 'ᴛ' | 'ʍ' | 'ĸ' | 'ƅ' | 'ß' | '\u{300}'..='\u{36f}');
    skeleton_of(c).all(|c| c.is_ascii() || passes(c))
}

fn looks_ascii(c: char) -> bool {
    !c.is_ascii() && skeleton_of(c).all(|c| c.is_ascii())
}

/// Looks like a character that quotes, escapes, starts a comment, or separates paths or commands.
fn looks_syntax(c: char) -> bool {
    let is_syntax = |c: char| matches!(c, '\'' | '"' | '`' | '\\' | '#' | '/' | '.' | ';');
    looks_ascii(c) && c != '；' && skeleton_of(c).any(is_syntax)
}

/// The UTS 39 skeleton: characters with the same skeleton look the same.
fn skeleton_of(c: char) -> impl Iterator<Item = char> {
    skeleton(c.encode_utf8(&mut [0; 4])).collect::<Vec<_>>().into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_many_lines_reads_as_it_is_if_nothing_in_it_acts_or_hides() {
        for text in ["", "make\n\tcargo test\n", "mkdir Документы\ncd Документы"] {
            assert!(reads_as_it_is(text), "{text:?}");
        }
        for text in ["a\u{1b}[2J", "a\rb", "a\u{7f}b", "a\u{3164}b", "a\u{200b}b", "ls\ncаt"] {
            assert!(!reads_as_it_is(text), "{text:?}");
        }
    }

    #[test]
    fn case_114_commands_in_other_languages_can_be_approved() {
        for command in [
            "ls -l",
            "rm -rf ./build && cargo test -- --nocapture",
            // Russian
            "git commit -m \"Исправлено\"",
            "mkdir -p ~/Документы/Отчёты && mv отчёт.pdf ~/Документы/Отчёты/",
            "grep -rn 'Ошибка подключения' src/",
            "git commit -m 'Ошибка в запросе к базе исправлена'",
            // Japanese
            "cat 報告.txt",
            "git commit -m 'バグを修正'",
            "cp ~/ダウンロード/ノート.md ./メモ/",
            "echo テスト完了 > 結果v2.txt",
            // Chinese
            "git commit -m \"修复登录错误\"",
            "cp 报告.docx ~/文档/備份/",
            "mv 第2版.txt 第3版.txt",
            "git commit -m '更正：修复登录（紧急）；补充测试！'",
            // Korean, Hindi, Thai, Greek, Vietnamese, French, German, Turkish
            "git commit -m \"오류 수정\"",
            "mkdir परियोजना",
            "cat รายงาน.txt",
            "echo 'Διόρθωση σφάλματος'",
            "git commit -m \"Sửa lỗi đăng nhập\"",
            "git commit -m \"L’été est fini — déjà…\"",
            "echo 'Größe: 5 mm – ok ✓ №2 ×3'",
            "echo İstanbul ığdır",
            "cat e\u{301}te\u{301}.txt",
            "echo '🎉 done'",
        ] {
            assert_eq!(find_confusable(command), None, "{command}");
            assert!(is_unambiguous(command, 200), "{command}");
        }
    }

    #[test]
    fn case_114_confusable_text_needs_review() {
        for (command, piece) in [
            ("rm -rf /tмp", "tмp"),
            ("rm -rf /тмр", "тмр"),
            ("rm а b", "а"),
            ("cat /еtс/passwd", "еtс"),
            ("ls αρρ", "αρρ"),
            ("rm -rf МАКЕ", "МАКЕ"),
            ("git commit -m 'тест'", "тест"),
            ("mv א ב", "א"),
            ("echo א; rm 1 2 ב", "א"),
            // Real Arabic commands: their display order differs from the order in which they run.
            ("git commit -m \"إصلاح الخطأ\"", "إصلاح"),
            ("cp تقرير.txt نسخة.txt", "تقرير"),
            ("echo ٣ ٤", "٣"),
            ("ｒｍ x", "ｒｍ"),
            ("cat m².txt", "m²"),
            ("rm -rf ノtmp", "ノtmp"),
            ("rm -rf ∕tmp", "∕"),
            ("echo “; rm -rf ~; echo ”", "“"),
            ("echo ’; rm x; echo ’", "’"),
            ("echo ʼ; rm x", "ʼ"),
            ("ls\u{37e} rm x", "\u{37e}"),
            ("cat ⁄etc", "⁄"),
            ("cat ․․/x", "․"),
            ("echo ＂; rm x; echo ＂", "＂"),
            ("make ＃ && rm x", "＃"),
        ] {
            assert_eq!(find_confusable(command), Some(piece), "{command}");
            assert!(!is_unambiguous(command, 200), "{command}");
        }
    }

    #[test]
    fn text_that_is_not_fully_visible_needs_review() {
        for sly in ["", "ls ", "a  b", "l\u{200d}s", "ls\u{2800}-l", "l\u{202e}s", "ls\u{20dd}", "a\nb"] {
            assert!(!is_unambiguous(sly, 200), "{sly:?}");
        }
        assert!(is_unambiguous("修复登录", 4) && !is_unambiguous("修复登录错", 4));
    }

    /// At the edge of a word it passes for a quotation mark.
    #[test]
    fn case_114_an_apostrophe_is_clear_only_inside_a_word() {
        assert_eq!(find_confusable("git commit -m \"L’été\""), None);
        for command in ["echo été’; rm x", "echo ’été; rm x", "echo 5’é", "echo ’"] {
            assert_eq!(find_confusable(command), Some("’"), "{command}");
        }
    }
}
