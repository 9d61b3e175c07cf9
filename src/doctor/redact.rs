//! The words of a bug report: only known words pass.
//!
//! To remove secrets from a text, one would have to know them all. Instead, a line of our log is split into words, and
//! only those pass that our own messages consist of, the names of reasons among them, with times and small numbers.
//! Everything else, such as a path, a name or a piece of a command, becomes `…`. An id becomes a number, the same each
//! time, so that lines can still be related.

use pilotlight_core::text::is_uuid;
use pilotlight_core::time::Time;
use pilotlight_core::words::reason;
use std::collections::{HashMap, HashSet};

/// The words of our own messages.
const WORDS: &str = include_str!("words.txt");
/// Fields of the log whose values are words of ours.
const KEPT_FIELDS: [&str; 5] = ["tag", "was", "is", "action", "resend"];
/// The most digits of a number that passes: it counts seconds, minutes or sessions. A longer one may be anything.
const DIGITS: usize = 3;
/// Desktops that are named; any other is "another".
const DESKTOPS: &str = "GNOME KDE XFCE LXQt LXDE MATE X-Cinnamon Cinnamon Unity Budgie Pantheon COSMIC sway i3 Hyprland niri \
                        river ubuntu";
/// Notification servers that are named.
const SERVERS: &str = "gnome-shell, Plasma, Xfce Notify Daemon, xfce4-notifyd, dunst, mako, swaync, notify-osd, \
                       lxqt-notificationd, cinnamon, mate-notification-daemon, quickshell";

/// The name and version of a notification server, if it is a known one.
pub(crate) fn server(about: &str) -> String {
    let known = SERVERS.split(", ").find(|name| about.to_lowercase().starts_with(&name.to_lowercase()));
    known.map_or("another server".to_owned(), |name| format!("{name} {}", version(about)))
}

/// The known names among the desktops that `XDG_CURRENT_DESKTOP` lists.
pub(crate) fn desktops(list: &str) -> String {
    let known = |name: &str| DESKTOPS.split(' ').find(|known| known.eq_ignore_ascii_case(name)).unwrap_or("another");
    let names: Vec<_> = list.split(':').filter(|name| !name.is_empty()).map(known).collect();
    if names.is_empty() { "none is named".into() } else { names.join(", ") }
}

/// The first number with dots in a text: `6.1.0`.
pub(crate) fn version(text: &str) -> String {
    let start = text.find(|c: char| c.is_ascii_digit()).unwrap_or(text.len());
    let number: String = text[start..].chars().take_while(|c| c.is_ascii_digit() || *c == '.').take(16).collect();
    number.trim_end_matches('.').to_owned()
}

/// Redacts lines of our log.
pub(crate) struct Redactor {
    words: HashSet<&'static str>,
    ids: HashMap<String, usize>,
}

impl Default for Redactor {
    fn default() -> Self {
        Self { words: WORDS.split_whitespace().chain(reason::names()).collect(), ids: HashMap::new() }
    }
}

impl Redactor {
    /// A redacted line of our log; `None` for a text that does not begin like one.
    pub(crate) fn line(&mut self, line: &str) -> Option<String> {
        let mut words = line.split_whitespace();
        let at = Time::parse(words.next()?.as_bytes())?;
        let level = words.next().filter(|level| ["ERROR", "WARN", "INFO", "DEBUG", "TRACE"].contains(level))?;
        let mut passed: Vec<_> = words.map(|word| self.word(word).unwrap_or_else(|| "…".to_owned())).collect();
        passed.dedup_by(|word, before| word == "…" && before == "…");
        Some(format!("{at} {level} {}", passed.join(" ")).trim_end().to_owned())
    }

    fn word(&mut self, word: &str) -> Option<String> {
        if let Some((key, value)) = word.split_once('=') {
            let value = value.trim_matches('"');
            if key == "session" {
                return Some(format!("session={}", self.number_of(value)));
            }
            return (KEPT_FIELDS.contains(&key) && self.is_known(value)).then(|| format!("{key}={value}"));
        }
        let bare = word.trim_matches([',', '.', ';', ':', '(', ')', '"']);
        let is_number = (1..=DIGITS).contains(&bare.len()) && bare.bytes().all(|byte| byte.is_ascii_digit());
        (is_number || self.is_known(bare)).then(|| word.to_owned())
    }

    fn is_known(&self, word: &str) -> bool {
        self.words.contains(word) || self.words.contains(word.to_lowercase().as_str())
    }

    /// A number in place of a session's id, the same each time.
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
    fn only_known_words_pass() {
        let mut redactor = Redactor::default();
        let id = "36535f61-5c7b-4f09-a70b-2f8aed970001";
        let line = format!(
            "2026-11-20T18:07:25.003Z  INFO Silent, NoTool, StartUnknown tag=\"status\" session={id} was=\"quiet\" is=\"stuck\""
        );
        assert_eq!(
            redactor.line(&line).unwrap(),
            "2026-11-20T18:07:25.003Z INFO Silent, NoTool, StartUnknown tag=status session=#1 was=quiet is=stuck"
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
            let redacted = redactor.line(&line).unwrap();
            for word in ["ghp_", "alice", "secret", "hunter2", "rm", "aunchcodes", "4155", "\u{1b}", "\u{202e}", "plan"]
            {
                assert!(!redacted.contains(word), "{word} in {redacted}");
            }
            assert!(redacted.contains("WARN the menu cannot be shown: "), "{redacted}");
        }
        assert_eq!(redactor.line("hunter2 is the password"), None, "not a line of ours");
        assert_eq!(redactor.line("2026-11-20T18:07:25.003Z hunter2"), None);
    }

    #[test]
    fn unknown_names_do_not_pass() {
        assert_eq!(desktops("ubuntu:GNOME"), "ubuntu, GNOME");
        assert_eq!(desktops("alices-desk"), "another");
        assert_eq!(server("dunst 1.9.2 of alice"), "dunst 1.9.2");
        assert_eq!(server("alice 1.0"), "another server");
        assert_eq!(version("6.1.0-alice-23"), "6.1.0");
    }
}
