//! Who may give which order.
//!
//! An agent must not approve its own requests, nor another agent's. Whatever a session starts (a tool's shell, a script,
//! a program of its own) may look at sessions, resume one in a terminal that the user sees, and show it. A permission request or a
//! question, however, is addressed to the *user*, a prompt is the user's word, and another session's work is the user's
//! to stop or to take over. So everything else is refused to such a process.
//!
//! Two signs identify such a process: an agent among its ancestors, and the variable with which agents mark the
//! environment of what they start. The mark remains when a process has left its parent (`setsid -f`, `nohup ... &` after
//! the shell's end) and has no such ancestor any more. This stops an agent that does what agents usually do. What shows
//! neither sign, and would answer for the user, is judged by its [`origin`](super::origin). No rule stops a program that
//! sets out to deceive: within one user account, nothing can.

use pilotlight_agents::callers::{CallingAgent, agent_above};
use pilotlight_core::action::{Callers, Operation};

/// How callers are judged.
#[derive(Clone, Debug, Default)]
pub struct CallerPolicy {
    /// File names of further executables that count as Copilot, from the config.
    pub names: Vec<String>,
}

/// Whether only a person may order this.
pub const fn is_reserved_for_people(operation: &Operation) -> bool {
    match operation.action().spec().callers {
        Callers::Anyone => false,
        Callers::People => true,
    }
}

/// Why this process must not give orders that are a person's, in words for the user; `None` if it may. `names` are file
/// names of further executables that count as Copilot, from the config.
pub fn agent_behind(pid: u32, names: &[String]) -> Option<String> {
    let CallingAgent { pid: behind, agent } = agent_above(pid, names)?;
    Some(format!(
        "an agent must not answer, prompt, stop or take over sessions, and this was started by {agent} (see process {behind}): use the menu, or a terminal of your own"
    ))
}

/// Checks whether a client of the control socket may give this order. `caller` is its process, if the system reports
/// that.
///
/// # Errors
/// If it may not, with the reason for the user.
pub(super) fn may_order(operation: &Operation, caller: Option<u32>, policy: &CallerPolicy) -> Result<(), String> {
    if !is_reserved_for_people(operation) {
        return Ok(());
    }
    let unknown = || {
        "an agent must not answer, prompt, stop or take over sessions, and it is unclear who asks, because the process is gone or hidden: use the menu"
            .to_owned()
    };
    let caller = caller.ok_or_else(unknown)?;
    if let Some(reason) = agent_behind(caller, &policy.names) {
        return Err(reason);
    }
    // Checked last: if the process has exited by now, what was read above may belong to another one with its pid.
    if exists(caller) { Ok(()) } else { Err(unknown()) }
}

#[cfg(unix)]
fn exists(pid: u32) -> bool {
    use rustix::process::{Pid, test_kill_process};
    i32::try_from(pid).ok().and_then(Pid::from_raw).is_some_and(|pid| test_kill_process(pid).is_ok())
}

#[cfg(windows)]
fn exists(pid: u32) -> bool {
    // A process that has exited cannot be watched.
    pilotlight_system::process::Exits::new().and_then(|mut exits| exits.watch(pid)).unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pilotlight_core::action::{Reply, Which};
    use pilotlight_core::form::FormAnswer;

    /// The variable in the environment of Copilot's shells: the id of their session. Observed with the CLI 1.0.102.
    const MARK: &str = "COPILOT_AGENT_SESSION_ID";

    #[test]
    fn an_unknown_caller_may_only_resume_and_show() {
        let gone = pilotlight_system::process::testing::ended();
        for caller in [None, Some(0), Some(gone), Some(u32::MAX)] {
            for operation in [
                Operation::Approve(Which::These(Vec::new())),
                Operation::Deny(Which::These(vec!["r".into()])),
                Operation::Reconnect { resend: true },
                Operation::Answer(Reply::Look(None)),
                Operation::Answer(Reply::Give { request: "r".into(), shown: 1, with: FormAnswer::Choice(0).into() }),
            ] {
                let reason = may_order(&operation, caller, &CallerPolicy::default()).unwrap_err();
                assert!(reason.contains("it is unclear who asks"), "{caller:?}: {reason}");
            }
            for operation in [
                Operation::Continue,
                Operation::Reconnect { resend: false },
                Operation::Stop,
                Operation::End { confirmed: true },
                Operation::ForceQuit,
                Operation::Detach,
            ] {
                assert!(may_order(&operation, caller, &CallerPolicy::default()).is_err(), "{operation:?}");
            }
            for operation in [Operation::Resume, Operation::ShowTerminal] {
                assert_eq!(may_order(&operation, caller, &CallerPolicy::default()), Ok(()), "{operation:?}");
            }
        }
    }

    /// Case 107c: a process that left its parent still carries Copilot's mark.
    #[cfg(target_os = "linux")]
    #[test]
    fn case_107c_the_mark_in_the_environment_reveals_an_agent() {
        let start = |session: Option<&str>| {
            let mut command = std::process::Command::new("sleep");
            command.arg("600").env_remove(MARK).env("NOT_THE_MARK", MARK);
            command.envs(session.map(|session| (MARK, session)));
            let child = command.spawn().unwrap();
            // A process has no environment for a moment during `exec`.
            while std::fs::read(format!("/proc/{}/environ", child.id())).unwrap().is_empty() {
                std::thread::yield_now();
            }
            child
        };
        let (mut agent, mut person) = (start(Some("1234\u{1b}[31m")), start(None));
        let approve = Operation::Approve(Which::These(Vec::new()));
        let judged = |pid| may_order(&approve, Some(pid), &CallerPolicy::default());
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
