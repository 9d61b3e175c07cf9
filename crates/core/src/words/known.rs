//! The words for what is known of a session besides its status.

use super::reason::{Background, Reason};
use super::refusal::UNSEEN;
use crate::facts::{ContextUse, Facts};
use crate::fleet::SubAgentView;
use crate::owner::{Owner, doubtful, process};
use crate::session::Session;
use crate::text::{counted, listed};
use crate::time::Time;

/// Which process runs a session, or why none is named. `clock` words a time for people.
pub fn owner(session: &Session, clock: impl Fn(Time) -> String) -> String {
    let observed = &session.observed;
    let started = |at: &Option<Time>| at.map(|at| format!(", started {}", clock(at))).unwrap_or_default();
    match &observed.owner {
        Owner::Never if observed.hook_report.is_some() => "none: the process that ran its hook has ended".into(),
        Owner::Never if observed.is_untold => format!("not known: this release of {} does not say", observed.agent),
        Owner::Never => format!("none: {}", observed.agent.no_owner()),
        Owner::Alive { pid, started: at } => format!("process {pid}, alive{}", started(at)),
        owner @ Owner::Opened { pid, started: at } => {
            let lacks = if owner.is_unprompted(&observed.facts) { "not prompted yet" } else { "its lock is gone" };
            let since = at.map(|at| format!(", open since {}", clock(at))).unwrap_or_default();
            format!("process {pid}, {lacks}{since}")
        }
        Owner::Unheld { pid } => {
            format!("not known: its lock names process {pid}, which does not have the session open")
        }
        Owner::Gone { pid, .. } => format!("{}, gone: {}", process(*pid), observed.agent.left_behind()),
        Owner::Doubtful { pid, why } => format!("not known: {}", doubtful(*pid, *why)),
        Owner::Unknown { pid } => {
            format!("{}, which cannot be inspected: {UNSEEN}", process(*pid))
        }
    }
}

/// What works in a session's background, if anything does.
pub fn background(Background { agents, shells }: Background) -> Option<String> {
    let counts = [(agents, "agent"), (shells, "shell")].into_iter().filter(|(n, _)| *n > 0);
    let parts: Vec<_> = counts.map(|(n, what)| counted(n, what)).collect();
    (!parts.is_empty()).then(|| listed(&parts))
}

/// How much of its context a session uses.
pub fn context_use(context: &ContextUse) -> String {
    match (context.window, context.percent()) {
        (Some(window), Some(percent)) => format!("{} of {window} tokens ({percent} %)", context.used),
        _ => format!("{} tokens; its limit is not known", context.used),
    }
}

/// The same, and how many tokens it has used in all, as far as its log tells.
pub fn context(facts: &Facts) -> Option<String> {
    let used = context_use(&facts.context()?);
    let total = facts.tokens.map(|tokens| format!("; {tokens} in the whole session")).unwrap_or_default();
    Some(format!("{used}{total}"))
}

/// The sub-agents behind a session, each on a line, at most as many as this.
pub fn sub_agents(list: &[SubAgentView], now: Time, most: usize) -> Vec<String> {
    let mut words: Vec<_> = list.iter().take(most).map(|sub_agent| sub_agent.words(now)).collect();
    if let Some(more) = list.len().checked_sub(most).filter(|more| *more > 0) {
        words.push(format!("{more} more"));
    }
    words
}

/// How many tools were denied since we last attached to a session, if any was.
pub fn denials(session: &Session) -> Option<String> {
    let denials = &session.observed.facts.denials;
    let (denied, of) = (denials.after(session.liveness.attached), denials.of());
    (denied > 0).then(|| Reason::PermissionLost { denied, of }.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_is_named_or_why_none_is() {
        let words = |is: Owner| {
            let mut session = Session::default();
            session.observed.owner = is;
            owner(&session, |at| format!("at {}", at.0))
        };
        assert_eq!(words(Owner::Never), "none: no process is known to run it");
        assert_eq!(words(Owner::Alive { pid: 7, started: None }), "process 7, alive");
        let started = Some(Time(1_700_000_000_000));
        let opened = words(Owner::Opened { pid: 7, started });
        assert_eq!(opened, "process 7, not prompted yet, open since at 1700000000000");
        assert!(words(Owner::Gone { pid: 7, at: None }).starts_with("process 7, gone: "));
        assert!(words(Owner::Gone { pid: Owner::UNNAMED, at: None }).starts_with("a process, gone: "));
        assert!(words(Owner::Unknown { pid: Owner::UNNAMED }).starts_with("a process, which cannot be inspected"));
    }

    #[test]
    fn only_what_works_in_the_background_is_counted() {
        assert_eq!(background(Background::default()), None);
        assert_eq!(background(Background { agents: 0, shells: 2 }).as_deref(), Some("2 shells"));
        assert_eq!(background(Background { agents: 1, shells: 2 }).as_deref(), Some("1 agent and 2 shells"));
    }
}
