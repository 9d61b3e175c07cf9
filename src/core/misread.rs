//! Whether text reads as it is: whoever approves a command must see the one that is run.
//!
//! Commands and paths are judged word by word, a word being a run of letters, digits and marks. Each must be Highly Restrictive
//! by [UTS 39](https://www.unicode.org/reports/tr39/), and none of a foreign script may look all Latin, so that
//! `git commit -m "Исправлено"` and `cat 報告.txt` pass, and `rm -rf /tмp` does not. Strong right-to-left letters turn
//! arguments around; they never pass. Beside words, what looks like a quotation mark, a slash or a dot is not one.
//!
//! The price is that a word of the language itself may look all Latin, as the Russian "тест" does: it is for Review.

use super::text::is_seen_whole;
use unicode_security::confusable_detection::skeleton;
use unicode_security::{GeneralSecurityProfile, MixedScript, RestrictionLevel, RestrictionLevelDetection};
use unicode_width::UnicodeWidthChar;

/// Whether text that is shown as one line of at most `most` characters is seen whole there and reads as it is. Only such text
/// may be approved where it is shown.
pub(crate) fn reads_as_it_is(text: &str, most: usize) -> bool {
    is_seen_whole(text, most) && misread(text).is_none()
}

/// The first piece of a text that may read as something else.
pub(crate) fn misread(text: &str) -> Option<&str> {
    if text.is_ascii() {
        return None;
    }
    let mut rest = text;
    let mut before = None;
    while let Some(first) = rest.chars().next() {
        let length =
            if is_in_word(first) { rest.find(|c| !is_in_word(c)).unwrap_or(rest.len()) } else { first.len_utf8() };
        let (piece, after) = rest.split_at(length);
        let reads = if is_in_word(first) { word_reads(piece) } else { mark_reads(first, before, after.chars().next()) };
        if !reads {
            return Some(piece);
        }
        before = piece.chars().next_back();
        rest = after;
    }
    None
}

/// Letters, digits and marks. What UTS 39 allows in identifiers beside letters and digits are marks, and some punctuation of no
/// script.
fn is_in_word(c: char) -> bool {
    let is_mark = || c.width() == Some(0) || !goes_with_latin(c);
    c.is_alphanumeric() || !c.is_ascii() && GeneralSecurityProfile::identifier_allowed(c) && is_mark()
}

fn word_reads(word: &str) -> bool {
    if word.is_ascii() {
        return true;
    }
    let mut foreign = word.chars().filter(|c| !goes_with_latin(*c)).peekable();
    // A letter that stands alone has no company to pass in: only what is drawn like a letter of ASCII is taken for it.
    let looks = if word.chars().nth(1).is_some() { looks_latin } else { looks_ascii };
    let all_look_latin = foreign.peek().is_some() && foreign.all(looks);
    let looks_a_mark = |c: char| goes_with_latin(c) && looks_syntax(c);
    word.check_restriction_level(RestrictionLevel::HighlyRestrictive)
        && !all_look_latin
        && !word.chars().any(|c| is_right_to_left(c) || looks_a_mark(c))
}

/// What stands between words. The ellipsis, an apostrophe inside a word, and the wide marks of Chinese and Japanese sentences
/// are everyday.
fn mark_reads(mark: char, before: Option<char>, after: Option<char>) -> bool {
    let is_letter = |c: Option<char>| c.is_some_and(char::is_alphabetic);
    match mark {
        _ if mark.is_ascii() => true,
        '\u{2026}' => true,
        '\u{2019}' => is_letter(before) && is_letter(after),
        _ => !is_right_to_left(mark) && mark.width() != Some(0) && !looks_syntax(mark),
    }
}

/// Latin, or of no script of its own.
fn goes_with_latin(c: char) -> bool {
    c.is_ascii() || ['a', c].iter().collect::<String>().is_single_script()
}

/// Drawn like ASCII, marks above and below aside, or like what passes for it among others: small capitals, the k without an
/// ascender, the m of the turned w, the soft sign.
fn looks_latin(c: char) -> bool {
    let passes = |c: char| matches!(c, 'ʙ' | 'ʜ' | 'ᴛ' | 'ʍ' | 'ĸ' | 'ƅ' | 'ß' | '\u{300}'..='\u{36f}');
    skeleton_of(c).all(|c| c.is_ascii() || passes(c))
}

fn looks_ascii(c: char) -> bool {
    !c.is_ascii() && skeleton_of(c).all(|c| c.is_ascii())
}

/// Looks like what quotes, escapes, begins a comment, or divides a path or commands.
fn looks_syntax(c: char) -> bool {
    let is_syntax = |c: char| matches!(c, '\'' | '"' | '`' | '\\' | '#' | '/' | '.' | ';');
    looks_ascii(c) && c != '；' && skeleton_of(c).any(is_syntax)
}

/// What UTS 39 holds to look the same.
fn skeleton_of(c: char) -> impl Iterator<Item = char> {
    skeleton(c.encode_utf8(&mut [0; 4])).collect::<Vec<_>>().into_iter()
}

/// The blocks whose characters are strong right-to-left ones, those not yet assigned included (Unicode's
/// DerivedBidiClass.txt, defaults R and AL).
const fn is_right_to_left(c: char) -> bool {
    matches!(c as u32, 0x590..=0x8FF | 0xFB1D..=0xFDFF | 0xFE70..=0xFEFF | 0x1_0800..=0x1_0FFF | 0x1_E800..=0x1_EFFF)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_114_commands_in_the_languages_that_people_write_can_be_approved() {
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
            assert_eq!(misread(command), None, "{command}");
            assert!(reads_as_it_is(command, 200), "{command}");
        }
    }

    #[test]
    fn case_114_what_reads_as_something_else_is_for_review() {
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
            // Arabic commands that people run: the order of what is shown is not that of what is run.
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
            assert_eq!(misread(command), Some(piece), "{command}");
            assert!(!reads_as_it_is(command, 200), "{command}");
        }
    }

    /// What is not seen, or not whole, does not read as it is either.
    #[test]
    fn what_is_not_seen_is_for_review() {
        for sly in ["", "ls ", "a  b", "l\u{200d}s", "ls\u{2800}-l", "l\u{202e}s", "ls\u{20dd}", "a\nb"] {
            assert!(!reads_as_it_is(sly, 200), "{sly:?}");
        }
        assert!(reads_as_it_is("修复登录", 4) && !reads_as_it_is("修复登录错", 4));
    }
}
