//! Who may ask for what.
//!
//! An agent must not approve itself. Whatever a session of Copilot's starts, a tool's shell, a script, a program of its own, may
//! look at sessions, and may stop, reconnect or resume them: all of that it could do without us as well, being the same user.
//! Answering a permission request or a question is what Copilot asks the *user*, and a prompt is the user's word: so `approve`,
//! `deny`, `answer` and what sends a prompt are refused to it, and `reconnect` where the user has set that all is approved that
//! attached sessions ask for.
//!
//! Two signs tell such a process: a Copilot among its ancestors, and the mark that Copilot leaves in the environment of what
//! it starts. The mark is still there when a process has let go of its parent (`setsid -f`, `nohup ... &` after the shell's
//! end) and has no such ancestor any more. This keeps out an agent that does what agents do; it is no wall against
//! a program that sets out to deceive, which on the same user's account nothing is.

use crate::agent::copilot::identity::copilot_ancestor;
use crate::core::order::Ask;

/// How callers are judged.
#[derive(Clone, Debug, Default)]
pub(crate) struct Judge {
    /// File names of further executables that count as Copilot, from the config.
    pub names: Vec<String>,
    /// Whatever an attached session asks for is allowed, by the config: to have a session reconnected is to have all its
    /// requests approved.
    pub approves_all: bool,
}

/// Whether only a person may ask for this.
///
/// Every kind is named, so that a new one is not forgotten.
const fn is_for_people(ask: &Ask, approves_all: bool) -> bool {
    match ask {
        Ask::Approve(_) | Ask::Deny(_) | Ask::Answer(_) => true,
        Ask::Continue | Ask::LetAnswer => true,
        Ask::Reconnect { resend } => *resend || approves_all,
        Ask::Stop
        | Ask::End { .. }
        | Ask::ForceQuit
        | Ask::Resume
        | Ask::ShowTerminal
        | Ask::Detach
        | Ask::Listen
        | Ask::Said => false,
    }
}

/// Why this process must not answer permission requests, in words for the user; `None` if it may. `names` are file names of
/// further executables that count as Copilot, from the config.
pub(crate) fn agent_behind(pid: u32, names: &[String]) -> Option<String> {
    let behind = copilot_ancestor(pid, names)?;
    Some(format!(
        "an agent must not answer permission requests or questions, or send prompts, and this was started by Copilot (it, or its mark \
         in the environment, is process {behind}); do it from the menu, or in a terminal of your own"
    ))
}

/// Whether a client of the control socket may ask for this; the reason, if not. `caller` is its process, where the system
/// tells.
pub(super) fn may_ask(ask: &Ask, caller: Option<u32>, judge: &Judge) -> Result<(), String> {
    if !is_for_people(ask, judge.approves_all) {
        return Ok(());
    }
    let unknown = || {
        "an agent must not answer permission requests or questions, or send prompts, and it is unclear who asks: the process is gone or hidden; do it from the menu"
            .to_owned()
    };
    let caller = caller.ok_or_else(unknown)?;
    if let Some(reason) = agent_behind(caller, &judge.names) {
        return Err(reason);
    }
    // Asked last: what was told of a process that went meanwhile may have been told of another one.
    if exists(caller) { Ok(()) } else { Err(unknown()) }
}

#[cfg(unix)]
fn exists(pid: u32) -> bool {
    use rustix::process::{Pid, test_kill_process};
    i32::try_from(pid).ok().and_then(Pid::from_raw).is_some_and(|pid| test_kill_process(pid).is_ok())
}

#[cfg(windows)]
fn exists(pid: u32) -> bool {
    // What has ended cannot be watched.
    crate::system::process::Exits::new().and_then(|mut exits| exits.watch(pid)).unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::form::With;
    use crate::core::order::{Reply, Which};

    /// What Copilot's shells have in their environment: the id of their session. Observed with the CLI 1.0.102.
    const MARK: &str = "COPILOT_AGENT_SESSION_ID";

    #[test]
    fn a_caller_that_cannot_be_told_may_not_answer_but_may_do_the_rest() {
        let gone = {
            let mut child = std::process::Command::new("true").spawn().unwrap();
            child.wait().unwrap();
            child.id()
        };
        for caller in [None, Some(0), Some(gone), Some(u32::MAX)] {
            for ask in [
                Ask::Approve(Which::These(Vec::new())),
                Ask::Deny(Which::These(vec!["r".into()])),
                Ask::Reconnect { resend: true },
                Ask::Answer(Reply::Look(None)),
                Ask::Answer(Reply::Give { request: "r".into(), shown: 1, with: With::Choice(0) }),
            ] {
                let reason = may_ask(&ask, caller, &Judge::default()).unwrap_err();
                assert!(reason.contains("it is unclear who asks"), "{caller:?}: {reason}");
            }
            // Where that approves all that the session asks for.
            let approves = Judge { approves_all: true, ..Judge::default() };
            assert!(may_ask(&Ask::Reconnect { resend: false }, caller, &approves).is_err());
            assert_eq!(may_ask(&Ask::Stop, caller, &approves), Ok(()));
            for ask in [Ask::Continue, Ask::Reconnect { resend: true }] {
                assert!(may_ask(&ask, caller, &Judge::default()).is_err(), "{ask:?}");
            }
            let rest = [
                Ask::Reconnect { resend: false },
                Ask::Stop,
                Ask::End { confirmed: true },
                Ask::ForceQuit,
                Ask::Resume,
                Ask::Detach,
            ];
            for ask in rest {
                assert_eq!(may_ask(&ask, caller, &Judge::default()), Ok(()), "{ask:?}");
            }
        }
    }

    /// Case 107c: a process that let go of its parent still carries Copilot's mark.
    #[cfg(target_os = "linux")]
    #[test]
    fn case_107c_the_mark_in_the_environment_tells_an_agent() {
        let start = |session: Option<&str>| {
            let mut command = std::process::Command::new("sleep");
            command.arg("600").env_remove(MARK).env("NOT_THE_MARK", MARK);
            command.envs(session.map(|session| (MARK, session)));
            let child = command.spawn().unwrap();
            // A process that is being replaced has no environment for a moment.
            while std::fs::read(format!("/proc/{}/environ", child.id())).unwrap().is_empty() {
                std::thread::yield_now();
            }
            child
        };
        let (mut agent, mut person) = (start(Some("1234\u{1b}[31m")), start(None));
        let approve = Ask::Approve(Which::These(Vec::new()));
        let judged = |pid| may_ask(&approve, Some(pid), &Judge::default());
        let (refused, allowed) = (judged(agent.id()), judged(person.id()));
        for child in [&mut agent, &mut person] {
            child.kill().unwrap();
            child.wait().unwrap();
        }
        let reason = refused.unwrap_err();
        assert!(reason.contains("started by Copilot"), "{reason}");
        assert_eq!(allowed, Ok(()));
    }
}
