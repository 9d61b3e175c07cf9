//! A cursor over one JSON text, for reading a few fields out of a long line.
//!
//! Event lines run to hundreds of kilobytes, nearly all of it strings that do not matter here. The cursor hands out the
//! requested fields, borrowed from the line, and skips everything else at the speed of a search for the closing quote:
//! no tree of values, no copy, no allocation. It checks what must hold for the fields to be the right ones (quotes and
//! brackets match, values are where values belong), not every letter of the JSON grammar inside skipped values.

use memchr::memchr;
use std::borrow::Cow;

/// The text is not JSON where it was read, or ends too early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

/// The result of reading.
pub type Result<T> = std::result::Result<T, Malformed>;

/// Containers nested deeper than this are refused: no event comes near it, and a hostile line must not cost a stack.
const DEPTH_MAX: usize = 512;

/// A cursor over a JSON text.
#[derive(Clone, Debug)]
pub struct Scan<'a> {
    bytes: &'a [u8],
    at: usize,
}

/// The inside of a JSON string, as in the text: escapes are not resolved, UTF-8 is not checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Text<'a>(pub &'a [u8]);

impl<'a> Scan<'a> {
    /// A cursor at the start of `bytes`.
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    fn peek(&mut self) -> Result<u8> {
        while let Some(&byte) = self.bytes.get(self.at) {
            if !matches!(byte, b' ' | b'\t' | b'\r' | b'\n') {
                return Ok(byte);
            }
            self.at += 1;
        }
        Err(Malformed)
    }

    fn take(&mut self, wanted: u8) -> Result<()> {
        if self.peek()? != wanted {
            return Err(Malformed);
        }
        self.at += 1;
        Ok(())
    }

    /// Nothing but white space may follow.
    pub fn end(mut self) -> Result<()> {
        if self.peek().is_err() { Ok(()) } else { Err(Malformed) }
    }

    /// A string; the cursor must be at its opening quote.
    fn string(&mut self) -> Result<Text<'a>> {
        self.take(b'"')?;
        let start = self.at;
        loop {
            let quote = self.at + memchr(b'"', &self.bytes[self.at..]).ok_or(Malformed)?;
            self.at = quote + 1;
            // A quote is escaped if an odd number of backslashes precedes it. Runs before different quotes
            // do not overlap, so this stays linear.
            let backslashes = self.bytes[start..quote].iter().rev().take_while(|&&byte| byte == b'\\').count();
            if backslashes % 2 == 0 {
                return Ok(Text(&self.bytes[start..quote]));
            }
        }
    }

    /// An object: `each` is called with every key, the cursor at its value, which `each` must read or
    /// [`skip`](Self::skip).
    pub fn object(&mut self, mut each: impl FnMut(&'a [u8], &mut Self) -> Result<()>) -> Result<()> {
        self.take(b'{')?;
        if self.peek()? == b'}' {
            self.at += 1;
            return Ok(());
        }
        loop {
            self.peek()?;
            let key = self.string()?;
            self.take(b':')?;
            each(key.0, self)?;
            match self.peek()? {
                b',' => self.at += 1,
                b'}' => {
                    self.at += 1;
                    return Ok(());
                }
                _ => return Err(Malformed),
            }
        }
    }

    /// Like [`object`](Self::object), for the first element of an array, if that is an object. The cursor stays behind it.
    pub fn first_object(&mut self, each: impl FnMut(&'a [u8], &mut Self) -> Result<()>) -> Result<()> {
        self.take(b'[')?;
        if self.peek()? == b'{' { self.object(each) } else { Ok(()) }
    }

    /// Like [`object`](Self::object), but skips a value of another kind.
    pub fn object_or_skip(&mut self, each: impl FnMut(&'a [u8], &mut Self) -> Result<()>) -> Result<()> {
        if self.peek()? == b'{' { self.object(each) } else { self.skip() }
    }

    /// A string, or `None` where the value is something else.
    pub fn text(&mut self) -> Result<Option<Text<'a>>> {
        if self.peek()? == b'"' {
            return self.string().map(Some);
        }
        self.skip().map(|()| None)
    }

    /// The string with this key in a value that breaks off in it: what there is of it. Another string is not taken for the key.
    pub fn cut_text(bytes: &'a [u8], key: &[u8]) -> Option<Text<'a>> {
        let quoted = [b"\"", key, b"\""].concat();
        let is_key = |at: &usize| !bytes[..*at].ends_with(b"\\");
        let at = memchr::memmem::find_iter(bytes, &quoted).find(is_key)? + quoted.len();
        let value = bytes[at..].trim_ascii_start().strip_prefix(b":")?.trim_ascii_start();
        if Scan::new(value).text().is_ok() {
            return None;
        }
        value.strip_prefix(b"\"").map(Text)
    }

    /// `true` or `false`, or `None` where the value is something else.
    pub fn bool(&mut self) -> Result<Option<bool>> {
        let start = {
            self.peek()?;
            self.at
        };
        self.skip()?;
        Ok(match &self.bytes[start..self.at] {
            b"true" => Some(true),
            b"false" => Some(false),
            _ => None,
        })
    }

    /// A whole number (a fraction is cut off), or `None` where the value is something else.
    pub fn number(&mut self) -> Result<Option<i64>> {
        let start = {
            self.peek()?;
            self.at
        };
        self.skip()?;
        let number = &self.bytes[start..self.at];
        // Its digits alone would be another number.
        if number.iter().any(|byte| matches!(byte, b'e' | b'E')) {
            return Ok(None);
        }
        let digits = number.split(|&byte| byte == b'.').next().unwrap_or_default();
        Ok(std::str::from_utf8(digits).ok().and_then(|digits| digits.parse().ok()))
    }

    /// Whether the value is a non-empty array; skips it.
    pub fn filled_array(&mut self) -> Result<bool> {
        let mut inside = self.clone();
        let filled = inside.take(b'[').is_ok() && inside.peek()? != b']';
        self.skip()?;
        Ok(filled)
    }

    /// The elements of an array of at most `most` strings. Any other value is skipped, and has none.
    pub fn texts(&mut self, most: usize) -> Result<Vec<Text<'a>>> {
        let inside = self.clone();
        self.skip()?;
        Ok(inside.elements(most).unwrap_or_default())
    }

    fn elements(mut self, most: usize) -> Result<Vec<Text<'a>>> {
        let mut texts = Vec::new();
        self.take(b'[')?;
        while texts.len() < most {
            self.peek()?;
            texts.push(self.string()?);
            if self.take(b',').is_err() {
                return self.take(b']').map(|()| texts);
            }
        }
        Err(Malformed)
    }

    /// The bytes from `start` to the cursor.
    pub fn since(&self, start: &Self) -> &'a [u8] {
        self.bytes.get(start.at..self.at).unwrap_or_default()
    }

    /// Skips one value of any kind.
    pub fn skip(&mut self) -> Result<()> {
        let mut closers = [0u8; DEPTH_MAX];
        let mut depth = 0;
        loop {
            match self.peek()? {
                b'"' => {
                    self.string()?;
                }
                open @ (b'{' | b'[') => {
                    *closers.get_mut(depth).ok_or(Malformed)? = open + 2; // ASCII: '{'+2 is '}', '['+2 is ']'
                    depth += 1;
                    self.at += 1;
                }
                close @ (b'}' | b']') => {
                    if depth == 0 || closers[depth - 1] != close {
                        return Err(Malformed);
                    }
                    depth -= 1;
                    self.at += 1;
                }
                b',' | b':' if depth > 0 => self.at += 1,
                b'-' | b'0'..=b'9' | b't' | b'f' | b'n' => self.word(),
                _ => return Err(Malformed),
            }
            if depth == 0 {
                return Ok(());
            }
        }
    }

    /// Skips a number, `true`, `false` or `null`.
    fn word(&mut self) {
        let rest = &self.bytes[self.at..];
        self.at += rest.iter().take_while(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(byte)).count();
    }
}

/// Calls `each` with the keys of an object and the cursor at its value, as [`Scan::object`] does, as far as they are there:
/// the text may be cut.
pub fn keys<'a>(json: &'a [u8], each: impl FnMut(&'a [u8], &mut Scan<'a>) -> Result<()>) {
    let _ = Scan::new(json).object(each); // what was read before the cut counts
}

/// The members of an object from its last one back to the second, each with its value if that is a string, as far as no
/// object and no array comes. Reads only the end of the text.
pub struct LastMembers<'a>(&'a [u8]);

impl<'a> LastMembers<'a> {
    /// `None` if this is not the end of an object.
    pub fn of(object: &'a [u8]) -> Option<Self> {
        object.trim_ascii_end().strip_suffix(b"}").map(Self)
    }

    /// What stands before the members that were taken.
    pub const fn rest(&self) -> &'a [u8] {
        self.0.trim_ascii_end()
    }
}

impl<'a> Iterator for LastMembers<'a> {
    type Item = (&'a [u8], Option<&'a [u8]>);

    /// This is sound without reading what stands before: a JSON string has no quote that is not escaped. One with a
    /// backslash ends the members.
    fn next(&mut self) -> Option<Self::Item> {
        let text = self.rest();
        let (before, value) = match last_string(text) {
            Some((before, value)) => (before, Some(value)),
            None => {
                let bare = text.iter().rev().take_while(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(byte));
                let length = bare.count();
                if length == 0 {
                    return None;
                }
                (&text[..text.len() - length], None)
            }
        };
        let (before, name) = last_string(before.trim_ascii_end().strip_suffix(b":")?.trim_ascii_end())?;
        self.0 = before.trim_ascii_end().strip_suffix(b",")?;
        Some((name, value))
    }
}

/// The string that a text ends in, and what stands before it, if nothing in the string is escaped.
fn last_string(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let open = text.strip_suffix(b"\"")?;
    let quote = memchr::memrchr(b'"', open)?;
    let value = &open[quote + 1..];
    (!value.contains(&b'\\')).then_some((&open[..quote], value))
}

impl<'a> Text<'a> {
    /// The text with escapes resolved, cut after at most `most` characters; what is not UTF-8 becomes U+FFFD.
    pub fn read(self, most: usize) -> Cow<'a, str> {
        // No character takes more than 12 bytes of JSON (an escaped surrogate pair).
        let cut = &self.0[..self.0.len().min(most.saturating_mul(12))];
        if !cut.contains(&b'\\') {
            let text = String::from_utf8_lossy(cut);
            return match text.char_indices().nth(most) {
                Some((end, _)) => Cow::Owned(text[..end].to_owned()),
                None => text,
            };
        }
        Cow::Owned(unescape(cut).chars().take(most).collect())
    }

    /// The end of the text: its last `most` bytes, escapes resolved. The cut may fall into an escape, so the first few
    /// characters may be broken where the text is longer.
    pub(crate) fn read_end(self, most: usize) -> Cow<'a, str> {
        let end = &self.0[self.0.len().saturating_sub(most)..];
        if end.contains(&b'\\') { Cow::Owned(unescape(end)) } else { String::from_utf8_lossy(end) }
    }
}

/// Resolves JSON's escapes; what is broken becomes U+FFFD.
fn unescape(raw: &[u8]) -> String {
    let raw = String::from_utf8_lossy(raw);
    let mut out = String::with_capacity(raw.len());
    let mut rest = raw.chars();
    while let Some(next) = rest.next() {
        if next != '\\' {
            out.push(next);
            continue;
        }
        match rest.next() {
            Some('n') => out.push('\n'),
            Some('r') => out.push('\r'),
            Some('t') => out.push('\t'),
            Some('b') => out.push('\u{8}'),
            Some('f') => out.push('\u{c}'),
            Some('u') => out.push(unicode_escape(&mut rest)),
            Some(plain @ ('"' | '\\' | '/')) => out.push(plain),
            _ => out.push(char::REPLACEMENT_CHARACTER),
        }
    }
    out
}

/// What follows `\u`: four hexadecimal digits, twice for a surrogate pair.
fn unicode_escape(rest: &mut std::str::Chars<'_>) -> char {
    fn unit(rest: &mut std::str::Chars<'_>) -> Option<u32> {
        let digits = rest.as_str().get(..4)?;
        let unit = u32::from_str_radix(digits, 16).ok()?;
        *rest = rest.as_str()[4..].chars();
        Some(unit)
    }
    let Some(first) = unit(rest) else { return char::REPLACEMENT_CHARACTER };
    if !(0xD800..0xDC00).contains(&first) {
        return char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER);
    }
    let mut ahead = rest.clone();
    if ahead.next() == Some('\\')
        && ahead.next() == Some('u')
        && let Some(second) = unit(&mut ahead).filter(|unit| (0xDC00..0xE000).contains(unit))
    {
        *rest = ahead;
        return char::from_u32(0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00))
            .unwrap_or(char::REPLACEMENT_CHARACTER);
    }
    char::REPLACEMENT_CHARACTER
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn field<'a>(json: &'a [u8], name: &str) -> Result<Option<Text<'a>>> {
        let mut found = None;
        let mut scan = Scan::new(json);
        scan.object(|key, scan| {
            if key == name.as_bytes() {
                found = scan.text()?;
                return Ok(());
            }
            scan.skip()
        })?;
        scan.end()?;
        Ok(found)
    }

    #[test]
    fn case_839_a_whole_number_is_read_as_it_is_or_not_at_all() {
        for (json, number) in [
            ("7", Some(7)),
            ("-7", Some(-7)),
            ("1795956319342.926", Some(1_795_956_319_342)),
            ("9223372036854775807", Some(i64::MAX)),
            ("9223372036854775808", None),
            ("1.5e300", None),
            ("2E3", None),
            (r#""7""#, None),
            ("null", None),
            ("[7]", None),
        ] {
            assert_eq!(Scan::new(json.as_bytes()).number(), Ok(number), "{json}");
        }
    }

    #[test]
    fn a_field_is_found_after_any_value() {
        let json = br#" { "a" : [1,{"b":"]}"},"\\\"",null,-2.5e3,true] , "b":{} ,"c":"x\"\\" , "z":"here" } "#;
        assert_eq!(field(json, "z"), Ok(Some(Text(b"here"))));
        assert_eq!(field(json, "c"), Ok(Some(Text(br#"x\"\\"#))));
        assert_eq!(field(json, "a"), Ok(None));
    }

    #[test]
    fn only_true_and_false_are_truth_values() {
        for (json, value) in
            [("true", Some(true)), (" false", Some(false)), ("null", None), ("1", None), ("\"true\"", None)]
        {
            assert_eq!(Scan::new(json.as_bytes()).bool(), Ok(value), "{json}");
        }
    }

    #[test]
    fn of_an_array_the_first_element_is_read_if_it_is_an_object() {
        let keys = |json: &str| {
            let mut keys = Vec::new();
            let read = Scan::new(json.as_bytes()).first_object(|key, scan| {
                keys.push(String::from_utf8_lossy(key).into_owned());
                scan.skip()
            });
            read.map(|()| keys)
        };
        assert_eq!(keys("[{\"a\": 1, \"b\": {}}, {\"c\": 2}]"), Ok(vec!["a".to_owned(), "b".to_owned()]));
        for other in ["[]", "[1, {\"a\": 1}]", "[\"a\"]", "[[{\"a\": 1}]]"] {
            assert_eq!(keys(other), Ok(vec![]), "{other}");
        }
        assert_eq!(keys("{\"a\": 1}"), Err(Malformed));
    }

    #[test]
    fn broken_json_is_malformed() {
        for broken in [
            &b""[..],
            b"{",
            b"[]",
            b"{\"a\":}",
            b"{\"a\":1",
            b"{\"a\":[}",
            b"{\"a\":\"x}",
            b"{\"a\" 1}",
            b"{\"a\":1}x",
            b"{\"a\":\0}",
        ] {
            assert_eq!(field(broken, "z"), Err(Malformed), "{}", String::from_utf8_lossy(broken));
        }
    }

    #[test]
    fn nesting_is_bounded() {
        let deep = |n: usize| format!("{{\"a\":{}{}}}", "[".repeat(n), "]".repeat(n));
        assert!(field(deep(DEPTH_MAX).as_bytes(), "z").is_ok());
        assert!(field(deep(DEPTH_MAX + 1).as_bytes(), "z").is_err());
    }

    proptest! {
        #[test]
        fn strings_read_as_serde_json_reads_them(text in any::<String>()) {
            let json = serde_json::to_string(&serde_json::json!({ "before": [&text, { &text: 1 }], "z": &text })).unwrap();
            let found = field(json.as_bytes(), "z").unwrap().unwrap();
            prop_assert_eq!(found.read(usize::MAX), text.as_str());
            prop_assert_eq!(found.read(3), text.chars().take(3).collect::<String>());
        }

        #[test]
        fn any_bytes_are_read_without_panic(bytes in any::<Vec<u8>>()) {
            let _ = field(&bytes, "z");
            let text = Text(&bytes);
            let _ = (text.read(8), text.read_end(8));
        }
    }

    #[test]
    fn every_escape_is_resolved() {
        for inside in [
            r#"\"a\" \\ \/ \b\f\n\r\t."#,
            r"\u0041\u00e9\u65E5\uffff",
            r"\ud83d\ude42!",
            r"\ud800\udc00\uDBFF\uDFFF\ud83c\udf89",
        ] {
            let expected: String = serde_json::from_str(&format!("\"{inside}\"")).unwrap();
            assert_eq!(Text(inside.as_bytes()).read(usize::MAX), expected, "{inside}");
            assert_eq!(Text(inside.as_bytes()).read_end(usize::MAX), expected, "{inside}");
        }
    }

    /// Half a surrogate pair is one character, and what follows it is read.
    #[test]
    fn a_broken_escape_is_replaced_and_the_rest_is_read() {
        for (inside, expected) in [
            (r"a\qb", "a\u{fffd}b"),
            (r"a\", "a\u{fffd}"),
            (r"\u12", "\u{fffd}12"),
            (r"\u12g4.", "\u{fffd}12g4."),
            (r"\ud83d", "\u{fffd}"),
            (r"\ud83dx", "\u{fffd}x"),
            (r"\ud83d\n", "\u{fffd}\n"),
            (r"\ud83d\u0041", "\u{fffd}A"),
            (r"\ud83d\ud83d\ude42", "\u{fffd}🙂"),
            (r"\ude42\ud83d.", "\u{fffd}\u{fffd}."),
        ] {
            assert_eq!(Text(inside.as_bytes()).read(usize::MAX), expected, "{inside}");
        }
    }

    #[test]
    fn case_770_of_a_string_that_breaks_off_the_beginning_is_told() {
        let cut = |text: &'static str| Scan::cut_text(text.as_bytes(), b"content").map(|text| text.0);
        assert_eq!(cut(r#"{"data":{"content" : "It is"#), Some(&b"It is"[..]));
        assert_eq!(cut(r#"{"data":{"content":"It \"is"#), Some(&br#"It \"is"#[..]));
        assert_eq!(cut(r#"{"data":{"content":""#), Some(&b""[..]));
        for whole_or_none in
            [r#"{"content":"It is"}"#, r#"{"content":[7"#, r#"{"content""#, r#"{"x":"\"content\":\"a"#, ""]
        {
            assert_eq!(cut(whole_or_none), None, "{whole_or_none}");
        }
    }

    #[test]
    fn a_comma_is_no_value() {
        for json in [&b","[..], b":", b",1", b"]"] {
            assert!(Scan::new(json).skip().is_err(), "{json:?}");
        }
    }
}
