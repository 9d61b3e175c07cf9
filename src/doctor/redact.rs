//! Words for a stranger: what stands in a bug report is let through word by word, and what is not known is left out.
//!
//! Taking secrets out of a text means to know them all. Here it is the other way round: a line of our log is cut into words,
//! and only those stay that our own messages are made of, with times and small numbers. Everything else, a path, a name, a
//! piece of a command, becomes `…`. What a reader loses, an id for example, is replaced by a number that is the same each time.

use crate::core::text::is_uuid;
use crate::core::time::Time;
use std::collections::{HashMap, HashSet};

/// The words of our own messages.
const WORDS: &str = include_str!("words.txt");
/// Fields of the log whose values are words of ours.
const KEPT_FIELDS: [&str; 5] = ["tag", "was", "is", "action", "resend"];
/// A number of at most so many digits counts seconds, minutes or sessions; a longer one may be anything.
const DIGITS: usize = 3;
/// Desktops that are called by their name; any other is another one.
const DESKTOPS: [&str; 18] = [
    "GNOME",
    "KDE",
    "XFCE",
    "LXQt",
    "LXDE",
    "MATE",
    "X-Cinnamon",
    "Cinnamon",
    "Unity",
    "Budgie",
    "Pantheon",
    "COSMIC",
    "sway",
    "i3",
    "Hyprland",
    "niri",
    "river",
    "ubuntu",
];
/// Notification servers that are.
const SERVERS: [&str; 12] = [
    "gnome-shell",
    "Plasma",
    "Xfce Notify Daemon",
    "xfce4-notifyd",
    "dunst",
    "mako",
    "swaync",
    "notify-osd",
    "lxqt-notificationd",
    "cinnamon",
    "mate-notification-daemon",
    "quickshell",
];

/// The name of a notification server, where it is a known one.
pub(crate) fn server(about: &str) -> String {
    let known = |name: &&&str| about.to_lowercase().starts_with(&name.to_lowercase());
    SERVERS.iter().find(known).map_or_else(|| "another server".to_owned(), |name| format!("{name} {}", version(about)))
}

/// The names of desktops, as `XDG_CURRENT_DESKTOP` lists them, where they are known ones.
pub(crate) fn desktops(list: &str) -> String {
    let known = |name: &str| DESKTOPS.iter().find(|known| known.eq_ignore_ascii_case(name)).copied();
    let names: Vec<_> =
        list.split(':').filter(|name| !name.is_empty()).map(|name| known(name).unwrap_or("another")).collect();
    if names.is_empty() { "none is named".into() } else { names.join(", ") }
}

/// The first number with dots in a text: `6.1.0`.
pub(crate) fn version(text: &str) -> String {
    let digits = |c: char| c.is_ascii_digit() || c == '.';
    let start = text.find(|c: char| c.is_ascii_digit()).unwrap_or(text.len());
    let number: String = text[start..].chars().take_while(|c| digits(*c)).take(16).collect();
    number.trim_end_matches('.').to_owned()
}

/// Lets through what a stranger may read of our log.
pub(crate) struct Reader {
    words: HashSet<&'static str>,
    ids: HashMap<String, usize>,
}

impl Default for Reader {
    fn default() -> Self {
        Self { words: WORDS.split_whitespace().collect(), ids: HashMap::new() }
    }
}

impl Reader {
    /// A line of our log, word by word; `None` for what does not begin as a line of it does.
    pub(crate) fn line(&mut self, line: &str) -> Option<String> {
        let mut parts = line.split_whitespace();
        let at = parts.next()?;
        let at = Time::parse(at.as_bytes())?;
        let level = parts.next().filter(|level| ["ERROR", "WARN", "INFO", "DEBUG", "TRACE"].contains(level))?;
        let mut out = format!("{at} {level}");
        let mut gap = false;
        for part in parts {
            match self.part(part) {
                Some(kept) => {
                    out.push(' ');
                    out.push_str(&kept);
                    gap = false;
                }
                None if gap => {}
                None => {
                    out.push_str(" …");
                    gap = true;
                }
            }
        }
        Some(out)
    }

    fn part(&mut self, part: &str) -> Option<String> {
        if let Some((key, value)) = part.split_once('=') {
            let value = value.trim_matches('"');
            if key == "session" {
                return Some(format!("session={}", self.number_of(value)));
            }
            return (KEPT_FIELDS.contains(&key) && self.is_known(value)).then(|| format!("{key}={value}"));
        }
        let is_mark = |c: char| matches!(c, ',' | '.' | ';' | ':' | '(' | ')' | '"');
        let bare = part.trim_matches(is_mark);
        let is_number = (1..=DIGITS).contains(&bare.len()) && bare.bytes().all(|byte| byte.is_ascii_digit());
        (is_number || self.is_known(bare)).then(|| part.to_owned())
    }

    fn is_known(&self, word: &str) -> bool {
        self.words.contains(word) || self.words.contains(word.to_lowercase().as_str())
    }

    /// The same number for the same session, which is not told.
    fn number_of(&mut self, id: &str) -> String {
        let next = self.ids.len() + 1;
        let number = *self.ids.entry(id.to_owned()).or_insert(next);
        if is_uuid(id) { format!("#{number}") } else { format!("#{number}(no-uuid)") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_words_of_ours_pass() {
        let mut reader = Reader::default();
        let id = "36535f61-5c7b-4f09-a70b-2f8aed970001";
        let line = format!(
            "2026-11-20T18:07:25.003Z  INFO silent 2 min, no tool used in this turn tag=\"status\" session={id} was=\"quiet\" is=\"stuck\""
        );
        assert_eq!(
            reader.line(&line).unwrap(),
            "2026-11-20T18:07:25.003Z INFO silent 2 min, no tool used in this turn tag=status session=#1 was=quiet is=stuck"
        );
        for hostile in [
            "ghp_16C7e42F292c6912E7710c838347Ae178B4a",
            "/home/alice/secret-project/plan.md",
            "alice@example.com",
            "hunter2",
            "rm -rf Launchcodes",
            "tag=launchcodes",
            "launchcodes=tag",
            "session=../../launchcodes",
            "\u{202e}Launchcodes\u{1b}[31m",
            "4155550123",
        ] {
            let line = format!("2026-11-20T18:07:25.003Z WARN the menu cannot be shown: {hostile} {hostile}");
            let told = reader.line(&line).unwrap();
            for word in ["ghp_", "alice", "secret", "hunter2", "rm", "aunchcodes", "4155", "\u{1b}", "\u{202e}", "plan"]
            {
                assert!(!told.contains(word), "{word} in {told}");
            }
            assert!(told.contains("WARN the menu cannot be shown: "), "{told}");
        }
        assert_eq!(reader.line("hunter2 is the password"), None, "no line of ours");
        assert_eq!(reader.line("2026-11-20T18:07:25.003Z hunter2"), None);
    }

    #[test]
    fn names_that_are_not_known_are_not_told() {
        assert_eq!(desktops("ubuntu:GNOME"), "ubuntu, GNOME");
        assert_eq!(desktops("alices-desk"), "another");
        assert_eq!(server("dunst 1.9.2 of alice"), "dunst 1.9.2");
        assert_eq!(server("alice 1.0"), "another server");
        assert_eq!(version("6.1.0-alice-23"), "6.1.0");
    }
}
