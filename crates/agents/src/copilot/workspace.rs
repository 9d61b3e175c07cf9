//! `workspace.yaml` -> [`About`].
//!
//! The file is a flat list of `key: value`, written by Copilot and replaced by rename. Only that subset of YAML is
//! read: scalars in the three quoting styles that YAML writers use for a line of text, and the first line of a block.
//! Anything else is ignored, and nothing is an error: a session without a title is named by its folder.

use pilotlight_core::fleet::{About, Kind};
use pilotlight_core::text::{NAME_MAX, plain};
use pilotlight_core::time::Time;

/// At most this much is read, in bytes; a real file has 300.
pub(crate) const LENGTH_MAX: u64 = 64 * 1024;

/// Parses the file's text.
pub fn parse(text: &[u8]) -> About {
    let text = String::from_utf8_lossy(text);
    let mut about = About::default();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        if line.starts_with([' ', '\t', '#', '-']) {
            continue;
        }
        let Some((key, value)) = line.split_once(':') else { continue };
        let value = match value.trim() {
            block if block.starts_with(['|', '>']) => lines.peek().map_or("", |next| next.trim()).to_owned(),
            scalar => unquoted(scalar),
        };
        if value.is_empty() {
            continue;
        }
        match key.trim_end() {
            "name" => about.name = Some(plain(&value, NAME_MAX)),
            "cwd" => about.cwd = Some(value.into()),
            "branch" => about.branch = Some(plain(&value, NAME_MAX)),
            "client_name" => {
                about.kind = match &*value {
                    "github/cli" => Kind::Terminal,
                    "sdk" => Kind::Sdk,
                    _ => Kind::Unknown,
                };
            }
            "created_at" => about.created = Time::parse(value.as_bytes()),
            _ => {}
        }
    }
    about
}

/// A YAML scalar on one line, without its quotes.
fn unquoted(scalar: &str) -> String {
    if let Some(inside) = scalar.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) {
        // Double-quoted YAML has JSON's escapes, and a few more that no title needs.
        return serde_json::from_str(scalar).unwrap_or_else(|_| inside.to_owned());
    }
    if let Some(inside) = scalar.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\'')) {
        return inside.replace("''", "'");
    }
    let bare = scalar.split(" #").next().unwrap_or_default().trim_end();
    if matches!(bare, "null" | "~") { String::new() } else { bare.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recorded_file_is_read() {
        let about = parse(include_bytes!(
            "../../../../tests/traces/20a-tui-permission-pending/3aac719f-417a-4d8d-8f65-497fcb1526c7/workspace.yaml"
        ));
        assert_eq!(about.name.as_deref(), Some("SCRIPT:two"));
        assert_eq!(about.cwd.as_deref(), Some("/home/dev/project"));
        assert_eq!((about.kind, about.branch), (Kind::Terminal, None));
        assert_eq!(about.created, Time::parse(b"2026-11-20T18:11:06.197Z"));
    }

    #[test]
    fn titles_are_read_in_any_quoting() {
        let name = |text: &str| parse(text.as_bytes()).name.map(String::from);
        assert_eq!(name("name: Fix it: now # later\n").as_deref(), Some("Fix it: now"));
        assert_eq!(name("name: \"a \\\"b\\\" \\u00e9\"\r\n").as_deref(), Some("a \"b\" é"));
        assert_eq!(name("name: 'it''s'\n").as_deref(), Some("it's"));
        assert_eq!(name("name: |-\n  first line\n  second\ncwd: /x\n").as_deref(), Some("first line"));
        assert_eq!(name("  name: nested\nname: ~\n"), None);
        assert_eq!(name("name: \"a\\u001b[31m\"\n").as_deref(), Some("a [31m"));
    }

    #[test]
    fn garbage_is_ignored() {
        assert_eq!(parse(b"\0\xff\xfe: :\n:::\n\n- a\n{}"), About::default());
    }
}
