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
    /// Reads it; `None` where there is none, or what is there is not Copilot's.
    pub fn read(home: &Path) -> Option<Self> {
        let path = home.join("settings.json");
        // Only a plain file: to open a pipe may take for ever.
        let file = path.is_file().then(|| File::open(&path).ok()).flatten()?;
        let mut text = Vec::new();
        file.take(LENGTH_MAX).read_to_end(&mut text).ok()?;
        serde_json::from_slice(&text).ok().map(Self)
    }
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
