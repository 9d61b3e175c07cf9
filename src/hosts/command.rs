//! What is run to reach a host.

use crate::config::{Host, Reach};
use crate::system::paths::{expand, user_home};
use std::ffi::OsString;
use std::path::Path;

/// The words that run `serve` on a host. `ssh` takes what follows `--` for no option, and asks nothing.
pub(super) fn serve(host: &Host) -> Vec<OsString> {
    match &host.reach {
        Reach::Ssh { to, program } => {
            ["ssh", "-T", "-o", "BatchMode=yes", "--", to, program, "serve", "--stdio"].map(OsString::from).into()
        }
        Reach::Command(words) => {
            let mut words: Vec<OsString> = words.iter().map(OsString::from).collect();
            if let Some(program) = words.first_mut()
                && let Some(expanded) = expand(Path::new(&program), user_home().as_deref())
            {
                *program = expanded.into_os_string();
            }
            words
        }
    }
}

/// The words that resume a session of a host in a terminal of this machine. `None` if the host is not reached by `ssh`: then
/// nothing is known that opens a terminal there.
pub(crate) fn resume(host: &Host, id: &str) -> Option<Vec<OsString>> {
    match &host.reach {
        Reach::Ssh { to, program } => {
            Some(["ssh", "-t", "--", to, program, "resume", "--here", id].map(OsString::from).into())
        }
        Reach::Command(_) => None,
    }
}

/// Whether a terminal of this machine can run a command there.
pub(crate) const fn has_terminal(host: &Host) -> bool {
    matches!(host.reach, Reach::Ssh { .. })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_402_ssh_is_told_what_it_must_not_take_for_an_option() {
        let reach = Reach::Ssh { to: "devbox".into(), program: "pilotlight".into() };
        let host = Host { name: "devbox".into(), reach };
        let words = ["ssh", "-T", "-o", "BatchMode=yes", "--", "devbox", "pilotlight", "serve", "--stdio"];
        assert_eq!(serve(&host), words.map(OsString::from));
        let words = ["ssh", "-t", "--", "devbox", "pilotlight", "resume", "--here", "3aac"];
        assert_eq!(resume(&host, "3aac").unwrap(), words.map(OsString::from));
        let boxed = Host { name: "box".into(), reach: Reach::Command(vec!["docker".into(), "exec".into()]) };
        assert_eq!(resume(&boxed, "3aac"), None);
    }
}
