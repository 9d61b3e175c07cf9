//! What a bug report shows of our log: what is public.
//!
//! A value in the log is marked as private where it is written, unless its type is harmless ([`log`]). Each marked value,
//! such as a path, a name or the words of an error, becomes `…`. An id becomes a number, the same each time, so that lines
//! can still be related. A line that is not as we write it is left out: one that an older version wrote has no marks.
//!
//! [`log`]: pilotlight_system::log

use pilotlight_core::text::is_uuid;
use pilotlight_system::log::{Line, Piece};
use std::collections::HashMap;

/// The field with a session's id, at the end of what is before the id.
const SESSION: &str = " session=";
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
    if names.is_empty() { "unknown: XDG_CURRENT_DESKTOP is not set".into() } else { names.join(", ") }
}

/// The first number with dots in a text: `6.1.0`.
pub(crate) fn version(text: &str) -> String {
    let start = text.find(|c: char| c.is_ascii_digit()).unwrap_or(text.len());
    let number: String = text[start..].chars().take_while(|c| c.is_ascii_digit() || *c == '.').take(16).collect();
    number.trim_end_matches('.').to_owned()
}

/// Redacts lines of our log.
#[derive(Default)]
pub(crate) struct Redactor {
    ids: HashMap<String, usize>,
}

impl Redactor {
    /// A redacted line of our log; `None` for a line that is not as we write it.
    pub(crate) fn line(&mut self, line: &str) -> Option<String> {
        let line = Line::parse(line)?;
        let mut out = format!("{} {}: ", line.at, line.level);
        for piece in line.pieces {
            match piece {
                Piece::Public(text) => out += text,
                Piece::Private(id) if out.ends_with(SESSION) => out += &self.number_of(id),
                Piece::Private(_) => out.push('…'),
            }
        }
        Some(out)
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
    use pilotlight_system::log::{self, captured, cause, private};
    use proptest::prelude::*;

    fn redacted(log: &str) -> Vec<String> {
        let mut redactor = Redactor::default();
        // The time differs each time.
        let shown = |line: String| line.split_once(' ').map(|(_, rest)| rest.to_owned());
        log.lines().filter_map(|line| redactor.line(line)).filter_map(shown).collect()
    }

    #[test]
    fn only_public_values_pass() {
        let (one, other) = ("36535f61-5c7b-4f09-a70b-2f8aed970001", "../launchcodes");
        let log = captured(|| {
            log::info!(tag = "status", session = private(one), was = "quiet", is = "stuck", "{}", "Silent, NoTool");
            log::info!(tag = "status", session = private(other), was = "none", is = "quiet", "{}", "Silent");
            log::info!(action = "stop", session = private(one), host = private("alice"), "{}", private("hunter2"));
            log::warn!("the menu cannot be shown: {}", cause(&std::io::Error::other("hunter2")));
        });
        assert_eq!(
            redacted(&(log + "hunter2 is the password\n2026-11-20T18:07:25.003Z  WARN hunter2\n")),
            [
                "INFO: Silent, NoTool tag=status session=#1 was=quiet is=stuck",
                "INFO: Silent tag=status session=#2(no-uuid) was=none is=quiet",
                "INFO: … action=stop session=#1 host=…",
                "WARN: the menu cannot be shown: … (Other)",
            ]
        );
    }

    proptest! {
        #[test]
        fn no_value_passes_whatever_it_is(
            before in "[«»\n\r\u{1b}\u{202e}= a-z]{0,8}",
            after in "[«»\n\r\u{1b}\u{202e}= a-z]{0,8}",
            imitates in any::<bool>(),
        ) {
            let line = if imitates { "2026-11-20T18:07:25.003Z  WARN: " } else { "" };
            let hostile = format!("{before}\n{line}HUNTER2 session=«HUNTER2» {after}");
            let error = anyhow::anyhow!(hostile.clone()).context("HUNTER2");
            let log = captured(|| {
                log::warn!(session = private(&hostile), host = private(&hostile), "the end");
                log::warn!("{}, {}", private(&hostile), cause(error.as_ref()));
            });
            prop_assert_eq!(redacted(&log), ["WARN: the end session=#1(no-uuid) host=…", "WARN: …, …"]);
        }
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
