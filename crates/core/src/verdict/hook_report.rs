//! What a session's own hook says of it, where nothing else is known, no log, no lock, no server; and how such a session is
//! judged.
//!
//! A hook reports changes, and may miss some: a stopped or killed agent often runs none. So its last report counts as current
//! only for a time ([`REPORT_VALID_FOR`]), and no rule draws conclusions from it.

use super::status::Status;
use super::{Asking, Verdict};
use crate::short_reason::{ShortReason, age_step};
use crate::text::{COMMAND_MAX, plain};
use crate::time::{Moment, Span, Time};
use crate::turn::Request;
use crate::words::reason::{Background, Because, Note, Reason};
use serde::{Deserialize, Serialize};

/// For how long a hook's word that its session works, or waits for its user, is taken for what is. A tool may take as
/// long as this; whoever says nothing for longer may have lost the word that it is over.
const REPORT_VALID_FOR: Span = Span::minutes(20);

/// What a session does, by its hook.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HookActivity {
    /// It works.
    Working,
    /// It waits for its user.
    Blocked,
    /// Nothing is going on.
    Idle,
}

/// What a session's own hook says of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HookReport {
    /// What it does.
    pub said: HookActivity,
    /// Why, in the hook's words.
    pub reason: Option<Box<str>>,
    /// Since when it does that, by the wall clock.
    pub since: Time,
    /// When the hook last said so.
    pub at: Moment,
    /// It was at work before, so that being idle is news.
    pub has_worked: bool,
}

/// Takes the hook's last word for what is, as long as it is fresh. It is never taken for a failure, a crash or a stuck
/// turn: of those, a hook knows nothing.
pub(crate) fn judge_hooked(told: &HookReport, now: Moment) -> Verdict {
    let HookReport { said, ref reason, since, at, .. } = *told;
    let status = match said {
        HookActivity::Working => Status::Working,
        HookActivity::Blocked => Status::NeedsInput,
        HookActivity::Idle => Status::Idle,
    };
    let silence = now.since(at);
    if said == HookActivity::Idle || silence < REPORT_VALID_FOR {
        let limit = (said != HookActivity::Idle).then_some(at.awake + REPORT_VALID_FOR);
        let because = Reason::ByHook { said, reason: reason.clone() };
        let short_reason = match said {
            HookActivity::Working => ShortReason::Work(plain(&because.to_string(), COMMAND_MAX), at.wall),
            HookActivity::Blocked => ShortReason::of(&because),
            HookActivity::Idle => ShortReason::rested(&because, since),
        };
        return verdict(status, since, because.into(), short_reason, limit, limit);
    }
    let (step, next) = age_step(silence);
    let because = Reason::NoWord { silence: step.max(REPORT_VALID_FOR), said, reason: reason.clone() };
    let short_reason = ShortReason::of(&because);
    verdict(Status::Quiet, at.wall + REPORT_VALID_FOR, because.into(), short_reason, Some(at.awake + next), None)
}

/// What its bridge reports as open, if anything is: a permission, or else a question. The bridge is connected as long as that
/// is open, so that it does not wear off.
pub(crate) fn judge_asking(requests: &[Request], questions: &[Asking]) -> Option<Verdict> {
    let (status, since, because) = match (requests, questions) {
        ([first, ..], _) => {
            let open = requests.len();
            let asks = Reason::AsksPermission { kind: first.kind.clone(), text: first.asks.clone() };
            let more = (open > 1).then_some(Note::Requests { open });
            (Status::NeedsPermission, first.at.wall, asks.and(more))
        }
        ([], [first, ..]) => {
            let open = questions.len();
            let asks = Reason::Asks { question: first.question.clone() };
            (Status::NeedsInput, first.since, asks.and((open > 1).then_some(Note::Questions { open })))
        }
        ([], []) => return None,
    };
    let short_reason = because.reason.short_reason(status, since, Moment::default());
    Some(verdict(status, since, because, short_reason, None, None))
}

fn verdict(
    status: Status,
    since: Time,
    because: Because,
    short_reason: ShortReason,
    recheck_at: Option<Time>,
    limit_at: Option<Time>,
) -> Verdict {
    Verdict {
        status,
        since,
        because,
        short_reason,
        recheck_at,
        limit_at,
        sample_at: None,
        probe: None,
        turn: None,
        background: Background::default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Time = Time(1_700_000_000_000);

    fn after(said: HookActivity, minutes: i64) -> Verdict {
        let told = HookReport {
            said,
            reason: Some("cargo test".into()),
            since: START,
            at: Moment::of(START),
            has_worked: true,
        };
        judge_hooked(&told, Moment::of(START + Span::minutes(minutes)))
    }

    #[test]
    fn case_270_a_hooks_word_is_taken_for_twenty_minutes() {
        for (said, status, words) in [
            (HookActivity::Working, Status::Working, "working, says its hook: cargo test"),
            (HookActivity::Blocked, Status::NeedsInput, "waits for you, says its hook: cargo test"),
        ] {
            let fresh = after(said, 19);
            assert_eq!((fresh.status, fresh.since, &*fresh.because.to_string()), (status, START, words));
            let limit = START + REPORT_VALID_FOR;
            assert_eq!((fresh.recheck_at, fresh.limit_at), (Some(limit), Some(limit)));
            let old = after(said, 20);
            assert_eq!((old.status, old.since, old.limit_at), (Status::Quiet, limit, None));
            assert_eq!(old.because.to_string(), format!("no report for 20 min; before that: {words}"));
            assert_eq!(old.recheck_at, Some(START + Span::minutes(21)));
            let because = after(said, 95).because.to_string();
            assert!(because.starts_with("no report for 90 min"), "{because}");
        }
    }

    #[test]
    fn case_270_being_idle_does_not_wear_off() {
        for minutes in [0, 20, 10_000] {
            let idle = after(HookActivity::Idle, minutes);
            assert_eq!((idle.status, idle.since, idle.recheck_at), (Status::Idle, START, None));
            assert_eq!(idle.because.to_string(), "idle, says its hook: cargo test");
        }
    }
}
