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
    pub(crate) fn read(home: &Path) -> Option<Self> {
        parse(bytes(&home.join("settings.json"))?).map(Self)
    }

    /// Reads what an organisation lays down, which is plain JSON.
    pub(crate) fn policy(path: &Path) -> Option<Self> {
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

fn parse(mut text: Vec<u8>) -> Option<serde_json::Value> {
    json_strip_comments::strip_slice(&mut text).ok()?;
    serde_json::from_slice(&text).ok()
}

/// Whether the terminals of this home tell by themselves that a turn is done: `"notifications": true`, as the CLI 1.0.102
/// reads it. A file that is missing or broken says no.
pub(crate) fn notifies(home: &Path) -> bool {
    Settings::read(home).is_some_and(|settings| settings.0["notifications"] == true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_trailing_commas_are_read_over() {
        let read = |text: &str| parse(text.into());
        let plain = serde_json::json!({"a": ["x // y", "/* z */", "\\\" // "], "b": {}});
        let commented = r#"// first
            { /* a, */ "a": ["x // y", "/* z */", "\\\" // ", ], // ] }
              "b": {}, /* , */ } // last"#;
        assert_eq!(read(commented), Some(plain.clone()));
        assert_eq!(read(&plain.to_string()), Some(plain));
        for broken in ["{", "{\"a", "{\"a\\", "{,}x", "{\"a\": 1,,}", "/"] {
            assert_eq!(read(broken), None, "{broken}");
        }
        // A comment that never ends hides nothing.
        for whole in ["{} /*", "{} /"] {
            assert_eq!(read(whole), Some(serde_json::json!({})), "{whole}");
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
