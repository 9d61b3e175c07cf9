//! What a session's files show of an order, when nothing else tells what became of it.

use pilotlight_core::fleet::Session;
use pilotlight_core::order::{Operation, Which};
use pilotlight_core::owner::Owner;
use pilotlight_core::turn::Call;

/// What a session's files show of an order.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Evidence {
    /// It was carried out.
    Done(&'static str),
    /// It may or may not have been; with what is known.
    Inconclusive(&'static str),
}

/// What the files of a session show of what was asked, before and now.
pub(super) fn evidence(operation: &Operation, before: &Session, now: &Session) -> Evidence {
    let (before, facts) = (&before.observed.facts, &now.observed.facts);
    match operation {
        Operation::Approve(which)
        | Operation::Always { which, .. }
        | Operation::Deny(which)
        | Operation::DenyWith { which, .. } => {
            let wanted = operation.approved().is_some();
            let ids: Vec<&str> = match which {
                Which::These(ids) => ids.iter().map(String::as_str).collect(),
                Which::Shown { id, .. } => vec![id],
            };
            let answer = |id: &&str| {
                let call = Call::of(id);
                facts.answered.iter().rev().find(|(other, _)| *other == call).map(|(_, allowed)| *allowed)
            };
            let answers: Vec<_> = ids.iter().map(answer).collect();
            match wanted {
                _ if answers.contains(&None) => Evidence::Inconclusive("its log has no answer yet"),
                true if answers.iter().all(|answer| *answer == Some(true)) => {
                    Evidence::Done("approved: the session's log confirms it")
                }
                false if answers.iter().all(|answer| *answer == Some(false)) => {
                    Evidence::Done("denied: the session's log confirms it")
                }
                _ => Evidence::Inconclusive("its log has another answer"),
            }
        }
        Operation::Answer(_) => Evidence::Inconclusive("its log does not record answers to questions"),
        Operation::Stop if before.turn.is_none() => Evidence::Inconclusive("its log has no turn that could end"),
        Operation::Stop if facts.turn_id == before.turn_id && facts.turn.is_some() => {
            Evidence::Inconclusive("its log says that the turn is still running")
        }
        Operation::Stop => Evidence::Done("its log says that the turn has ended"),
        Operation::End { .. } | Operation::ForceQuit if !matches!(now.observed.owner, Owner::Alive { .. }) => {
            Evidence::Done("its process has ended")
        }
        Operation::End { .. } | Operation::ForceQuit => Evidence::Inconclusive("its process lives"),
        Operation::Reconnect { .. } | Operation::Continue if facts.marks.prompt != before.marks.prompt => {
            Evidence::Inconclusive("its log has another prompt now")
        }
        Operation::Reconnect { .. } | Operation::Continue => Evidence::Inconclusive("its log has no new prompt"),
        _ => Evidence::Inconclusive("check whether it did"),
    }
}
