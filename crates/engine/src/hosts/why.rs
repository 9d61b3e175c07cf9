//! Why a host cannot be reached, in words for the user.

use super::stderr::last_line;
use crate::config::{HostSetting, Reach};
use pilotlight_core::text::plain;
use std::time::Duration;

/// Maximum length of what is quoted, in characters.
const QUOTED_MAX: usize = 160;
/// The exit code of `ssh` if it could not connect.
const SSH_FAILED: i32 = 255;
/// The exit codes of a shell that found no such program, or could not run it.
pub(super) const NOT_FOUND: [i32; 2] = [126, 127];

/// What each of these lines of OpenSSH means, to be done about it.
const KNOWN: [(&str, &str); 7] = [
    (
        "IDENTIFICATION HAS CHANGED",
        "its host key has changed: find out why; run `ssh` by hand to see how to accept the new one",
    ),
    ("Host key verification failed", "its host key is not known: connect once by hand, and compare it"),
    ("Too many authentication failures", "it accepts none of the keys that ssh offers"),
    ("Permission denied", "it asks for a password: use a key that needs none, or an ssh agent that holds the key"),
    ("Connection refused", "nothing listens for ssh there"),
    ("No route to host", "no network route leads to it now"),
    ("timed out", "it did not answer in time"),
];

/// Why the child of a host ended, by its exit code, if it has one, and by what it said last. `has_greeted`: Pilotlight had
/// answered.
pub(super) fn ended(host: &HostSetting, has_greeted: bool, code: Option<i32>, stderr: &str) -> String {
    let is_ssh = matches!(host.reach, Reach::Ssh { .. });
    if let Some(why) = unreached(is_ssh, code, stderr) {
        return why;
    }
    let last = last_line(stderr, QUOTED_MAX);
    let child = if is_ssh { "`ssh`" } else { "the `command` in your settings" };
    match code {
        Some(code) if NOT_FOUND.contains(&code) => match &host.reach {
            Reach::Ssh { program, .. } => {
                format!("there is no program `{program}` there: install Pilotlight there, or set `program` to its path")
            }
            Reach::Command(_) => {
                format!("there is no such program: {}", last.as_deref().unwrap_or("the command was not found"))
            }
        },
        Some(0) if !has_greeted => match last {
            Some(last) => format!("Pilotlight did not answer there: {last} (exit code 0)"),
            None => format!("Pilotlight did not answer there: {child} ended with exit code 0"),
        },
        Some(0) | None => "the connection ended".into(),
        Some(code) => match last {
            Some(last) => format!("{last} (exit code {code})"),
            None => format!("{child} ended with exit code {code}"),
        },
    }
}

/// What `ssh` alone says: a command may run it, too.
const OF_SSH: [&str; 4] =
    ["Permission denied (", "Host key verification failed", "ssh: Could not resolve hostname", "ssh: connect to host"];
/// What it says before the name that it finds no address for.
const UNRESOLVED: &str = "Could not resolve hostname ";

/// That a host has said too much for as long.
pub(super) fn flood(after: Duration) -> String {
    format!("for {} s it sent data faster than any Pilotlight does", after.as_secs())
}

/// Why `ssh` did not connect, if it did not.
pub(super) fn unreached(is_ssh: bool, code: Option<i32>, stderr: &str) -> Option<String> {
    let is_by_ssh = is_ssh || OF_SSH.iter().any(|said| stderr.contains(said));
    if !is_by_ssh || code != Some(SSH_FAILED) {
        return None;
    }
    if let Some((_, said)) = stderr.split_once(UNRESOLVED) {
        // It may be of a host between, or another one by the ssh config.
        let (name, reason) = said.lines().next().unwrap_or_default().split_once(": ").unwrap_or((said, ""));
        let (name, reason) = (plain(name, QUOTED_MAX), plain(reason, QUOTED_MAX));
        let reason = if reason.is_empty() { String::new() } else { format!(": {reason}") };
        return Some(format!("no address is known for {name}{reason}"));
    }
    let known = KNOWN.iter().find(|(said, _)| stderr.contains(said)).map(|(_, means)| (*means).to_owned());
    Some(known.or_else(|| last_line(stderr, QUOTED_MAX).map(Into::into)).unwrap_or_else(|| "ssh cannot connect".into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_404_why_a_host_is_not_reached_is_said_in_words_that_help() {
        let ssh = HostSetting {
            name: "a".into(),
            reach: Reach::Ssh { to: "a".into(), program: "pilotlight".into(), last_message: false },
        };
        let boxed = HostSetting { name: "b".into(), reach: Reach::Command(vec!["docker".into()]) };
        for (host, code, said, words) in [
            (&ssh, Some(255), "ada@a: Permission denied (publickey,password).\r\n", "it asks for a password"),
            (
                &ssh,
                Some(255),
                "@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @\nHost key verification failed.",
                "its host key has changed",
            ),
            (
                &ssh,
                Some(255),
                "kex_exchange_identification: \u{1b}[31mwhatever",
                "kex_exchange_identification: [31mwhatever",
            ),
            (&ssh, Some(127), "bash: line 1: pilotlight: command not found", "there is no program `pilotlight` there"),
            (
                &ssh,
                Some(2),
                "error: unrecognized subcommand 'serve'",
                "error: unrecognized subcommand 'serve' (exit code 2)",
            ),
            (&ssh, None, "", "the connection ended"),
            (&boxed, Some(255), "Permission denied", "Permission denied (exit code 255)"),
            (&boxed, Some(1), "Error: No such container: box\n\n", "Error: No such container: box (exit code 1)"),
            (&boxed, Some(0), "", "the connection ended"),
            (
                &ssh,
                Some(255),
                "ssh: Could not resolve hostname a.corp: No such host\r\n",
                "no address is known for a.corp: No such host",
            ),
            (&ssh, Some(255), "ssh: Could not resolve hostname", "ssh: Could not resolve hostname"),
            (&boxed, Some(255), "ada@a: Permission denied (publickey).", "it asks for a password"),
            (&boxed, Some(1), "", "the `command` in your settings ended with exit code 1"),
        ] {
            let why = ended(host, true, code, said);
            assert!(why.starts_with(words), "{why}");
            assert!(!why.chars().any(char::is_control), "{why:?}");
        }
        assert!(ended(&boxed, false, Some(0), "").starts_with("Pilotlight did not answer there"));
    }
}
