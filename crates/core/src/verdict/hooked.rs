//! Judges a session of which only its hook's word is known.

use super::Verdict;
use super::status::Status;
use crate::gist::{Gist, age_step};
use crate::hooked::{Hooked, Said, WORD};
use crate::text::{COMMAND_MAX, plain};
use crate::time::{Moment, Time};
use crate::words::reason::{Background, Because, Reason};

/// Takes the hook's last word for what is, as long as it is fresh. It is never taken for a failure, a crash or a stuck
/// turn: of those, a hook knows nothing.
pub(crate) fn judge_hooked(told: &Hooked, now: Moment) -> Verdict {
    let Hooked { said, ref reason, since, at, .. } = *told;
    let status = match said {
        Said::Working => Status::Working,
        Said::Blocked => Status::NeedsInput,
        Said::Idle => Status::Idle,
    };
    let silence = now.since(at);
    if said == Said::Idle || silence < WORD {
        let limit = (said != Said::Idle).then_some(at.awake + WORD);
        let because = Reason::Told { said, reason: reason.clone() };
        let gist = match said {
            Said::Working => Gist::Work(plain(&because.to_string(), COMMAND_MAX), at.wall),
            Said::Blocked => Gist::of(&because),
            Said::Idle => Gist::rested(&because, since),
        };
        return verdict(status, since, because.into(), gist, limit, limit);
    }
    let (step, next) = age_step(silence);
    let because = Reason::NoWord { silence: step.max(WORD), said, reason: reason.clone() };
    let gist = Gist::of(&because);
    verdict(Status::Quiet, at.wall + WORD, because.into(), gist, Some(at.awake + next), None)
}

fn verdict(
    status: Status,
    since: Time,
    because: Because,
    gist: Gist,
    recheck_at: Option<Time>,
    limit_at: Option<Time>,
) -> Verdict {
    Verdict {
        status,
        since,
        because,
        gist,
        recheck_at,
        limit_at,
        sample_at: None,
        look: None,
        turn: None,
        background: Background::default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Span;

    const START: Time = Time(1_700_000_000_000);

    fn after(said: Said, minutes: i64) -> Verdict {
        let told =
            Hooked { said, reason: Some("cargo test".into()), since: START, at: Moment::of(START), has_worked: true };
        judge_hooked(&told, Moment::of(START + Span::minutes(minutes)))
    }

    #[test]
    fn case_270_a_hooks_word_is_taken_for_twenty_minutes() {
        for (said, status, words) in [
            (Said::Working, Status::Working, "working, by its hook: cargo test"),
            (Said::Blocked, Status::NeedsInput, "waits for you, by its hook: cargo test"),
        ] {
            let fresh = after(said, 19);
            assert_eq!((fresh.status, fresh.since, &*fresh.because.to_string()), (status, START, words));
            let limit = START + WORD;
            assert_eq!((fresh.recheck_at, fresh.limit_at), (Some(limit), Some(limit)));
            let old = after(said, 20);
            assert_eq!((old.status, old.since, old.limit_at), (Status::Quiet, limit, None));
            assert_eq!(old.because.to_string(), format!("no word for 20 min; before that: {words}"));
            assert_eq!(old.recheck_at, Some(START + Span::minutes(21)));
            let because = after(said, 95).because.to_string();
            assert!(because.starts_with("no word for 90 min"), "{because}");
        }
    }

    #[test]
    fn case_270_being_idle_does_not_wear_off() {
        for minutes in [0, 20, 10_000] {
            let idle = after(Said::Idle, minutes);
            assert_eq!((idle.status, idle.since, idle.recheck_at), (Status::Idle, START, None));
            assert_eq!(idle.because.to_string(), "idle, by its hook: cargo test");
        }
    }
}
