//! The settings of Copilot that matter to us: `settings.json` in its home.

use pilotlight_system::plain_file::{self, Links};
use std::io::{self, Read};
use std::path::Path;

/// Copilot's file is never this large. In bytes.
const LENGTH_MAX: u64 = 1 << 20;

/// The contents of a home's `settings.json`.
#[derive(Debug)]
pub struct Settings(pub serde_json::Value);

impl Settings {
    /// Reads the file; `None` where it is missing or malformed. Like Copilot, accepts comments and trailing commas.
    pub(crate) fn read(home: &Path) -> Option<Self> {
        parse(bytes(&home.join("settings.json")).ok()?).map(Self)
    }

    /// Whether the home has such a file, readable or not. An empty one says nothing.
    pub(crate) fn exist(home: &Path) -> bool {
        match bytes(&home.join("settings.json")) {
            Ok(text) => !text.trim_ascii().is_empty(),
            Err(error) => error.kind() != io::ErrorKind::NotFound,
        }
    }

    /// Reads an organisation's policy, which is plain JSON.
    pub(crate) fn policy(path: &Path) -> Option<Self> {
        serde_json::from_slice(&bytes(path).ok()?).ok().map(Self)
    }
}

fn bytes(path: &Path) -> io::Result<Vec<u8>> {
    let (file, _) = plain_file::open(path, Links::Followed)?;
    let mut text = Vec::new();
    file.take(LENGTH_MAX).read_to_end(&mut text)?;
    Ok(text)
}

fn parse(mut text: Vec<u8>) -> Option<serde_json::Value> {
    json_strip_comments::strip_slice(&mut text).ok()?;
    serde_json::from_slice(&text).ok()
}

/// Whether Copilot itself notifies the user of this home when a turn is done: `"notifications": true`, as CLI 1.0.102
/// reads it. `false` where the file is missing or malformed.
pub(crate) fn notifies(home: &Path) -> bool {
    Settings::read(home).is_some_and(|settings| settings.0["notifications"] == true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_trailing_commas_are_ignored() {
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
        // An unterminated comment is ignored.
        for whole in ["{} /*", "{} /"] {
            assert_eq!(read(whole), Some(serde_json::json!({})), "{whole}");
        }
    }

    #[test]
    fn only_the_value_true_switches_notifications_on() {
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
