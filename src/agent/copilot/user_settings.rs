//! What the user set in Copilot itself, as far as it matters to us: `settings.json` in its home.

use std::fs::File;
use std::io::Read;
use std::path::Path;

/// A larger file is not Copilot's. In bytes.
const LENGTH_MAX: u64 = 1 << 20;

/// What `settings.json` of a home says.
#[derive(Debug)]
pub struct Settings(pub serde_json::Value);

impl Settings {
    /// Reads it; `None` where there is none, or what is there is not Copilot's. Copilot takes comments in it, and a comma before an
    /// end.
    pub fn read(home: &Path) -> Option<Self> {
        serde_json::from_slice(&plain_json(&bytes(&home.join("settings.json"))?)).ok().map(Self)
    }

    /// Reads what an organisation lays down, which is plain JSON.
    pub fn policy(path: &Path) -> Option<Self> {
        serde_json::from_slice(&bytes(path)?).ok().map(Self)
    }
}

fn bytes(path: &Path) -> Option<Vec<u8>> {
    // Only a plain file: to open a pipe may take for ever.
    let file = path.is_file().then(|| File::open(path).ok()).flatten()?;
    let mut text = Vec::new();
    file.take(LENGTH_MAX).read_to_end(&mut text).ok()?;
    Some(text)
}

/// The same text without comments, and without commas before an end.
fn plain_json(text: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(text.len());
    // Where a comma is that nothing but space has followed.
    let mut comma = None;
    let mut rest = text;
    while let [byte, after @ ..] = rest {
        let skipped = match rest {
            [b'/', b'/', ..] => memchr::memchr(b'\n', rest).unwrap_or(rest.len()),
            [b'/', b'*', inside @ ..] => memchr::memmem::find(inside, b"*/").map_or(rest.len(), |end| end + 4),
            _ => 0,
        };
        if skipped > 0 {
            rest = &rest[skipped..];
            continue;
        }
        match byte {
            b'"' => {
                let whole = 1 + string(after);
                plain.extend_from_slice(&rest[..whole]);
                (comma, rest) = (None, &rest[whole..]);
                continue;
            }
            b',' => comma = Some(plain.len()),
            b'}' | b']' => {
                if let Some(at) = comma.take() {
                    plain[at] = b' ';
                }
            }
            byte if byte.is_ascii_whitespace() => {}
            _ => comma = None,
        }
        plain.push(*byte);
        rest = after;
    }
    plain
}

/// The length of the rest of a string that has begun, its end included.
fn string(text: &[u8]) -> usize {
    let mut at = 0;
    while let Some(byte) = text.get(at) {
        at += match byte {
            b'"' => return at + 1,
            b'\\' => 2,
            _ => 1,
        };
    }
    text.len()
}

/// Whether the terminals of this home tell by themselves that a turn is done: `"notifications": true`, as the CLI 1.0.102
/// reads it. A file that is missing or broken says no.
pub fn notifies(home: &Path) -> bool {
    Settings::read(home).is_some_and(|settings| settings.0["notifications"] == true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_trailing_commas_are_read_over() {
        let read = |text: &str| serde_json::from_slice::<serde_json::Value>(&plain_json(text.as_bytes())).ok();
        let plain = serde_json::json!({"a": ["x // y", "/* z */", "\\\" // "], "b": {}});
        let commented = r#"// first
            { /* a, */ "a": ["x // y", "/* z */", "\\\" // ", ], // ] }
              "b": {}, /* , */ } // last"#;
        assert_eq!(read(commented), Some(plain.clone()));
        assert_eq!(read(&plain.to_string()), Some(plain));
        for broken in ["{", "{\"a", "{\"a\\", "{} /*", "{} /", "{,}x", "{\"a\": 1,,}", "/"] {
            assert!(read(broken).is_none() || broken == "{} /*", "{broken}");
        }
    }

    #[test]
    fn only_what_is_switched_on_counts() {
        let home = tempfile::tempdir().unwrap();
        assert!(!notifies(home.path()));
        for (text, on) in [
            (r#"{"notifications": true, "beep": false}"#, true),
            (r#"{"notifications": false}"#, false),
            (r#"{"notifications": "true"}"#, false),
            (r#"{"notifications": true"#, false),
            ("[]", false),
        ] {
            std::fs::write(home.path().join("settings.json"), text).unwrap();
            assert_eq!(notifies(home.path()), on, "{text}");
        }
    }
}
