//! What is remembered of one session: the cause that holds, how far it is with being told, and what was told before.
//!
//! It is dropped with the session, and of a fixed size until then.

use super::{Alertable, Cause, Now, PopupId, Settings};
use crate::core::time::{Span, Time};
use crate::core::verdict::Status;

/// A session that appears with something that has been so for longer than this has been so all along: its folder was away for
/// a while, or its home is watched anew.
const OLD_NEWS: Span = Span::seconds(30);

/// What is remembered of one session.
#[derive(Clone, Debug, Default)]
pub(super) struct Watched {
    /// The cause that holds.
    pub(super) episode: Option<Episode>,
    /// When each cause was last told, and of what.
    told: [Option<(Time, Mark)>; Cause::ALL.len()],
    /// The end of the last turn that had its episode.
    done: Option<Time>,
    /// The end of the last turn that is complete.
    completed: Option<Time>,
    /// How often it got stuck since.
    stuck: u32,
    /// The last sign of life before it last got stuck.
    stuck_at: Option<Time>,
}

/// A cause, for as long as it holds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Episode {
    pub(super) cause: Cause,
    pub(super) mark: Mark,
    pub(super) stage: Stage,
    /// It was told before.
    pub(super) again: bool,
}

/// What tells two episodes of one cause apart, where nothing came between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mark {
    /// Nothing can.
    None,
    /// What it rests on happened then, by the log.
    At(Time),
    /// The permission request.
    Request(u64),
}

/// How far an episode is with being told. Times are the awake clock's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// It is not told any more, or not at all.
    Silent,
    /// It is told from then on, if it lasts.
    Waiting(Time),
    /// Its popup is open, and raised once more then.
    Open(PopupId, Option<Time>),
}

impl Episode {
    /// It is to be told once more from then on, if it lasts.
    const fn tell_again(&mut self, from: Time) {
        self.stage = Stage::Waiting(from);
        self.again = true;
    }
}

impl Watched {
    /// Takes note of how the session is now. `is_new` says that it was not there before, `calm` that anything may be told now.
    pub(super) fn follow(&mut self, session: &Alertable<'_>, now: &Now, is_new: bool, calm: bool, on: &Settings) {
        self.count_stuck(session);
        let Some((cause, mark)) = cause(session, on) else {
            self.episode = None;
            return;
        };
        if let Some(episode) = self.episode.as_mut().filter(|episode| (episode.cause, episode.mark) == (cause, mark)) {
            match episode.stage {
                // A run that is over is not told once more.
                Stage::Open(popup, Some(_)) if session.row.ended_denied => episode.stage = Stage::Open(popup, None),
                Stage::Waiting(_) if session.row.ended_denied && episode.again => episode.stage = Stage::Silent,
                Stage::Open(_, Some(at)) if at <= now.at.awake && calm => {
                    episode.tell_again(now.at.awake - on.gather);
                }
                _ => {}
            }
            return;
        }
        if let (Cause::Done, Mark::At(at)) = (cause, mark)
            && self.done.replace(at) == Some(at)
        {
            self.episode = None; // a sub-agent's end makes the session rest anew, not its turn
            return;
        }
        // What was already so when we came, or when the session came to us, is no news.
        let was_so = is_new && now.at.wall - session.row.since > OLD_NEWS.min(now.at.awake - now.started);
        let stage = if was_so { Stage::Silent } else { Stage::Waiting(self.ripe(cause, mark, now.at.awake, on)) };
        self.episode = Some(Episode { cause, mark, stage, again: false });
    }

    /// When a cause that holds from `now` on may be told.
    fn ripe(&self, cause: Cause, mark: Mark, now: Time, on: &Settings) -> Time {
        let delay = if cause == Cause::NeedsPermission { on.permission_delay } else { Span::ZERO };
        // Another request is another thing that somebody has to answer.
        let again = |told: &(Time, Mark)| cause != Cause::NeedsPermission || told.1 == mark;
        let told = self.told[cause as usize].filter(again);
        told.map_or(now + delay, |(at, _)| (at + on.cooldown).max(now + delay))
    }

    /// In a row: without a turn between that was completed. A silence counts once, however often it is judged anew.
    fn count_stuck(&mut self, session: &Alertable<'_>) {
        let completed = session.completed.map(|turn| turn.at);
        if completed.is_some() && completed != self.completed {
            self.completed = completed;
            self.stuck = 0;
        }
        let progress = Some(session.row.last_progress.unwrap_or(session.row.since));
        if session.row.status == Status::Stuck && progress != self.stuck_at {
            self.stuck_at = progress;
            self.stuck = self.stuck.saturating_add(1);
        }
    }

    /// How often it got stuck since its last turn that is complete.
    pub(super) const fn stuck_in_a_row(&self) -> u32 {
        self.stuck
    }

    /// Its popup that is open.
    pub(super) const fn popup(&self) -> Option<PopupId> {
        match self.episode {
            Some(Episode { stage: Stage::Open(popup, _), .. }) => Some(popup),
            _ => None,
        }
    }

    /// Whether its episode may be heard: a cause that was told a moment ago, of another request, is only shown.
    pub(super) fn may_sound(&self, now: Time, on: &Settings) -> bool {
        let just_told = |cause: Cause| self.told[cause as usize].is_some_and(|(at, _)| now < at + on.cooldown);
        self.episode.is_some_and(|episode| episode.again || !just_told(episode.cause))
    }

    /// Its episode is told, by this popup: one of its own, which is raised once more after a while, or the summary.
    pub(super) fn tell(&mut self, popup: PopupId, alone: bool, now: Time, on: &Settings) {
        let Some(episode) = &mut self.episode else { return };
        let again = on.escalate_after.filter(|_| alone && !episode.again && episode.cause != Cause::Done);
        episode.stage = Stage::Open(popup, again.map(|span| now + span));
        self.told[episode.cause as usize] = Some((now, episode.mark));
    }

    /// Another popup took the place of the one that told it.
    pub(super) const fn moved(&mut self, popup: PopupId) {
        if let Some(Episode { stage: Stage::Open(shown, _), .. }) = &mut self.episode {
            *shown = popup;
        }
    }

    /// Its popup went: the user saw it, or did not.
    pub(super) const fn closed(&mut self, by_user: bool) {
        let Some(episode) = &mut self.episode else { return };
        match episode.stage {
            Stage::Open(_, Some(at)) if !by_user => episode.tell_again(at),
            Stage::Open(..) => episode.stage = Stage::Silent,
            Stage::Silent | Stage::Waiting(_) => {}
        }
    }
}

/// What a session is to be notified for.
fn cause(session: &Alertable<'_>, on: &Settings) -> Option<(Cause, Mark)> {
    let row = session.row;
    let Some(cause) = Cause::of_row(row) else {
        let rests = row.status == Status::Idle && row.unseen;
        let turn = session.completed.filter(|turn| rests && turn.took >= on.done_min)?;
        return Some((Cause::Done, Mark::At(turn.at)));
    };
    let mark = match cause {
        Cause::NeedsPermission => session.request.map_or(Mark::At(row.since), |request| Mark::Request(request.id)),
        Cause::NeedsInput | Cause::Failed => Mark::At(row.since),
        // Their `since` may be found to be another one while they last.
        Cause::PermissionLost | Cause::Stuck | Cause::Crashed | Cause::Done => Mark::None,
    };
    Some((cause, mark))
}
