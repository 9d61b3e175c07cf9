//! What is run to reach a host.
#![cfg_attr(target_os = "linux", allow(unsafe_code))]

use crate::config::{HostSetting, Reach};
use crate::control::pipe::lines::STARTS_AGAIN;
use pilotlight_system::paths::{expand, user_home};
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::path::Path;
use std::process::Stdio;
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};

/// A child that leads a process group of its own, so that what is typed into the terminal of this program is not meant for
/// it. If it is dropped before it has ended, what it started ends, too, as far as that stayed in its group.
#[derive(Debug)]
pub(super) struct Leader(Child);

/// What becomes of a child when this program is killed, before it could end the child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Orphan {
    /// It ends at once: one that waits for a machine that never answers would not find out. Only on Linux; elsewhere as
    /// below.
    Ends,
    /// It reads the end of its input, and tidies up.
    TidiesUp,
}

/// The ends of its standard streams.
pub(super) type Pipes = (ChildStdin, ChildStdout, ChildStderr);

impl Leader {
    /// Starts these words, with pipes for its standard streams.
    ///
    /// # Errors
    /// Why it cannot be started, in words for the user.
    pub(super) fn piped(words: &[OsString], orphan: Orphan) -> Result<(Self, Pipes), String> {
        let (program, arguments) = words.split_first().ok_or("there is no command")?;
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        #[cfg(target_os = "linux")]
        if orphan == Orphan::Ends {
            end_with_us(&mut command);
        }
        #[cfg(not(target_os = "linux"))]
        let _ = orphan;
        let mut child = Self::start(&mut command)?;
        match (child.stdin.take(), child.stdout.take(), child.stderr.take()) {
            (Some(to), Some(from), Some(said)) => Ok((child, (to, from, said))),
            _ => Err("it has no pipes".into()),
        }
    }

    /// Starts it.
    ///
    /// # Errors
    /// Why it cannot be started, in words for the user.
    pub(super) fn start(command: &mut Command) -> Result<Self, String> {
        command.kill_on_drop(true);
        #[cfg(unix)]
        command.process_group(0);
        #[cfg(windows)]
        command.creation_flags(NO_WINDOW);
        let started = command.spawn();
        let name = || Path::new(command.as_std().get_program()).display().to_string();
        started.map(Self).map_err(|error| format!("`{}` cannot be started: {error}", name()))
    }
}

/// Has the system end the child once the thread has ended that starts it, which is the one that runs the loop.
#[cfg(target_os = "linux")]
fn end_with_us(command: &mut Command) {
    use rustix::process::{Signal, set_parent_process_death_signal};
    let bind = || set_parent_process_death_signal(Some(Signal::TERM)).map_err(std::io::Error::from);
    // SAFETY: only this system call is made between fork and exec, and nothing is allocated.
    unsafe { command.pre_exec(bind) };
}

impl Deref for Leader {
    type Target = Child;

    fn deref(&self) -> &Child {
        &self.0
    }
}

impl DerefMut for Leader {
    fn deref_mut(&mut self) -> &mut Child {
        &mut self.0
    }
}

#[cfg(unix)]
impl Drop for Leader {
    fn drop(&mut self) {
        use rustix::process::{Pid, Signal, kill_process_group};
        // Of one that was waited for, the number may be another's by now.
        let id = self.0.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        for signal in [Signal::TERM, Signal::CONT] {
            let _ = id.map(|id| kill_process_group(id, signal)); // what has ended needs none
        }
    }
}

/// Windows opens no console window for it.
#[cfg(windows)]
const NO_WINDOW: u32 = 0x0800_0000;

/// How a command is run on another machine, to look what is there and to copy a program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Way {
    /// By `ssh` to this host.
    Ssh(String),
    /// By the words before the command, such as `docker exec -i box`.
    Command(Vec<String>),
}

/// What each `ssh` of ours is told about itself, whatever the user set for their own.
///
/// It becomes no master of the user's other connections, which would end with it; one that is there may be used. It takes no
/// port that the user forwards, runs no command of the user's settings, here or there, and needs none of these to work.
const OF_OURS: [&str; 4] =
    ["ControlMaster=no", "ClearAllForwardings=yes", "RemoteCommand=none", "PermitLocalCommand=no"];
/// The same of one that lasts as long as this program: the user's keys and screen stay out of reach there, and nothing
/// translates line ends.
const UNATTENDED: [&str; 4] = ["BatchMode=yes", "ForwardAgent=no", "ForwardX11=no", "RequestTTY=no"];

/// `ssh` to a host, in a terminal of the user's or without one. It takes what follows `--` for no option.
fn ssh(to: &str, has_terminal: bool) -> Vec<OsString> {
    let of_kind: &[&str] = if has_terminal { &[] } else { &UNATTENDED };
    let options = OF_OURS.iter().chain(of_kind).flat_map(|option| ["-o", option]);
    let tty = if has_terminal { "-t" } else { "-T" };
    ["ssh", tty].into_iter().chain(options).chain(["--", to]).map(OsString::from).collect()
}

impl Way {
    /// The words that run a command there.
    pub(crate) fn words(&self, command: &[&str]) -> Vec<OsString> {
        let mut words: Vec<OsString> = match self {
            Self::Ssh(to) => ssh(to, false),
            Self::Command(before) => before.iter().map(OsString::from).collect(),
        };
        if let Self::Command(_) = self
            && let Some(program) = words.first_mut()
            && let Some(expanded) = expand(Path::new(&program), user_home().as_deref())
        {
            *program = expanded.into_os_string();
        }
        words.extend(command.iter().map(OsString::from));
        words
    }

    /// The host of this name in the settings, with the program at this place there, in this home.
    pub fn host(&self, name: &str, program: &str, home: &str) -> HostSetting {
        let reach = match self {
            // A shell there expands it.
            Self::Ssh(to) => {
                let below = program.strip_prefix(home).filter(|below| below.starts_with('/'));
                let program = below.map_or_else(|| program.to_owned(), |below| format!("~{below}"));
                Reach::Ssh { to: to.clone(), program, last_message: false }
            }
            Self::Command(before) => {
                let serve = [program, "serve", "--stdio"].map(str::to_owned);
                Reach::Command(before.iter().cloned().chain(serve).collect())
            }
        };
        HostSetting { name: name.to_owned(), reach }
    }

    /// Whether a host is reached so.
    pub fn is_of(&self, host: &HostSetting) -> bool {
        match (self, &host.reach) {
            (Self::Ssh(one), Reach::Ssh { to, .. }) => one == to,
            (Self::Command(before), Reach::Command(words)) => words.starts_with(before),
            _ => false,
        }
    }

    pub(super) const fn is_ssh(&self) -> bool {
        matches!(self, Self::Ssh(_))
    }
}

/// For the user: a command line.
impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ssh(to) => write!(f, "ssh {to}"),
            Self::Command(before) => f.write_str(&before.join(" ")),
        }
    }
}

/// Has `serve` tell how the last messages of its sessions begin.
const MESSAGES: &str = "--messages";

/// The words that run `serve` on a host.
pub(super) fn serve(host: &HostSetting) -> Vec<OsString> {
    match &host.reach {
        Reach::Ssh { to, program, last_message } => {
            let words = [program, "serve", "--stdio", MESSAGES];
            Way::Ssh(to.clone()).words(if *last_message { &words } else { &words[..3] })
        }
        Reach::Command(words) => Way::Command(words.clone()).words(&[]),
    }
}

/// What a shell there is sent before all else, if there is one: it runs `serve`, if what starts with a shell took the place of
/// the one that was asked to. If that reads a line of the input, it reads this one; else `serve` does, and passes it over.
pub(super) fn again(host: &HostSetting) -> Option<String> {
    match &host.reach {
        Reach::Ssh { program, last_message, .. } => {
            let messages = if *last_message { format!(" {MESSAGES}") } else { String::new() };
            Some(format!("{STARTS_AGAIN}{program} serve --stdio{messages}\n"))
        }
        Reach::Command(_) => None,
    }
}

/// The words that resume a session of a host in a terminal of this machine. `None` if the host is not reached by `ssh`: then
/// nothing is known that opens a terminal there. What the user works with in that terminal, such as forwarded keys, is as in
/// their own `ssh`.
pub fn resume(host: &HostSetting, id: &str) -> Option<Vec<OsString>> {
    match &host.reach {
        Reach::Ssh { to, program, .. } => {
            let mut words = ssh(to, true);
            words.extend([program, "resume", "--here", id].map(OsString::from));
            Some(words)
        }
        Reach::Command(_) => None,
    }
}

/// Whether a terminal of this machine can run a command there.
pub const fn has_terminal(host: &HostSetting) -> bool {
    matches!(host.reach, Reach::Ssh { .. })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_402_ssh_is_told_what_it_must_not_take_for_an_option() {
        let reach = Reach::Ssh { to: "devbox".into(), program: "pilotlight".into(), last_message: false };
        let host = HostSetting { name: "devbox".into(), reach };
        let ends =
            |words: &[OsString], end: &[&str]| words.ends_with(&end.iter().map(OsString::from).collect::<Vec<_>>());
        assert!(ends(&serve(&host), &["--", "devbox", "pilotlight", "serve", "--stdio"]));
        let reach = Reach::Ssh { to: "devbox".into(), program: "pilotlight".into(), last_message: true };
        let asked = HostSetting { name: "devbox".into(), reach };
        assert!(ends(&serve(&asked), &["--", "devbox", "pilotlight", "serve", "--stdio", "--messages"]));
        assert_eq!(again(&asked).unwrap(), "exec pilotlight serve --stdio --messages\n");
        assert!(ends(&resume(&host, "3aac").unwrap(), &["--", "devbox", "pilotlight", "resume", "--here", "3aac"]));
        let boxed = HostSetting { name: "box".into(), reach: Reach::Command(vec!["docker".into(), "exec".into()]) };
        assert_eq!(resume(&boxed, "3aac"), None);
    }
}
