//! What is remembered about one session: its current cause, how far notifying about it has got, and earlier
//! notifications.
//!
//! Of fixed size, and dropped together with the session.

use super::alertable::{Alertable, Now};
use super::cause::Cause;
use super::focus::Focus;
use super::popup::PopupId;
use super::settings::Settings;
use crate::fleet::Row;
use crate::time::{Span, Time};
use crate::verdict::Status;

/// A newly listed session whose status is older than this is not news: its folder was away for a while, or its home has
/// only now been added.
const OLD_NEWS: Span = Span::seconds(30);

/// What is remembered about one session.
#[derive(Clone, Debug, Default)]
pub(super) struct Tracked {
    pub(super) episode: Option<Episode>,
    /// When each cause was last notified, and its mark.
    notified: [Option<(Time, Mark)>; Cause::ALL.len()],
    /// The end of the last turn that had a `Done` episode.
    done: Option<Time>,
    /// The end of the last complete turn.
    completed: Option<Time>,
    /// How often it got stuck since then.
    stuck: u32,
    /// The last progress before it last got stuck.
    stuck_at: Option<Time>,
}

/// One period during which a cause holds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Episode {
    pub(super) cause: Cause,
    pub(super) mark: Mark,
    pub(super) stage: Stage,
    /// Whether its session's terminal has the focus.
    pub(super) focus: Focus,
    /// It has been notified before.
    pub(super) again: bool,
    /// It began after our start, and so is news.
    pub(super) is_news: bool,
}

/// Distinguishes two consecutive episodes of the same cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mark {
    /// No distinction is possible.
    None,
    /// The time of the underlying event, by the log.
    At(Time),
    /// The permission request.
    Request(u64),
    /// The permission request, since a command wants to approve it: the user is asked anew.
    ApprovalRequested(u64),
}

/// How far notifying about an episode has got. Times are on the awake clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// Not notified, or no longer.
    Silent,
    /// Due at this time, if it lasts until then.
    Waiting(Time),
    /// Its popup is open, and is raised again at the given time.
    Open(PopupId, Option<Time>),
}

impl Episode {
    /// Schedules a repeated notification at `from`, if it lasts until then.
    const fn notify_again(&mut self, from: Time) {
        self.stage = Stage::Waiting(from);
        self.focus = Focus::Unknown;
        self.again = true;
    }
}

impl Tracked {
    /// Updates from the session's current state. `is_new`: it was not listed before. `calm`: notifications are allowed
    /// now.
    pub(super) fn follow(&mut self, session: &Alertable<'_>, now: &Now, is_new: bool, calm: bool, on: &Settings) {
        self.count_stuck(session);
        let Some((cause, mark)) = cause(session, on) else {
            self.episode = None;
            return;
        };
        if let Some(episode) = self.episode.as_mut().filter(|episode| (episode.cause, episode.mark) == (cause, mark)) {
            match episode.stage {
                // A run that is over is not notified again.
                Stage::Open(popup, Some(_)) if session.row.ended_denied() => episode.stage = Stage::Open(popup, None),
                Stage::Waiting(_) if session.row.ended_denied() && episode.again => episode.stage = Stage::Silent,
                Stage::Open(_, Some(at)) if at <= now.at.awake && calm => {
                    episode.notify_again(now.at.awake - on.gather);
                }
                _ => {}
            }
            return;
        }
        if let (Cause::Done, Mark::At(at)) = (cause, mark)
            && self.done.replace(at) == Some(at)
        {
            self.episode = None; // idle again because a sub-agent ended, not its turn
            return;
        }
        let was_so = is_new && is_old_news(session.row, now);
        let stage = if was_so { Stage::Silent } else { Stage::Waiting(self.due_at(cause, mark, now.at.awake, on)) };
        let is_news = now.at.wall - session.row.since <= now.at.awake - now.started;
        self.episode = Some(Episode { cause, mark, stage, focus: Focus::Unknown, again: false, is_news });
    }

    /// When a cause that begins at `now` may be notified.
    fn due_at(&self, cause: Cause, mark: Mark, now: Time, on: &Settings) -> Time {
        let delay = if cause == Cause::NeedsPermission { on.permission_delay } else { Span::ZERO };
        // Another request needs an answer of its own, so the cooldown does not apply to it.
        let again = |notified: &(Time, Mark)| cause != Cause::NeedsPermission || notified.1 == mark;
        let notified = self.notified[cause as usize].filter(again);
        notified.map_or(now + delay, |(at, _)| (at + on.cooldown).max(now + delay))
    }

    /// Counts how often it got stuck in a row, that is, without a complete turn in between. One silence counts once,
    /// however often it is judged.
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

    /// How often it got stuck since its last complete turn.
    pub(super) const fn stuck_in_a_row(&self) -> u32 {
        self.stuck
    }

    /// Its open popup.
    pub(super) const fn popup(&self) -> Option<PopupId> {
        match self.episode {
            Some(Episode { stage: Stage::Open(popup, _), .. }) => Some(popup),
            _ => None,
        }
    }

    /// Whether its episode may make a sound. If the same cause was notified within the cooldown (for another request),
    /// the new popup is silent.
    pub(super) fn may_sound(&self, now: Time, on: &Settings) -> bool {
        let just_told = |cause: Cause| self.notified[cause as usize].is_some_and(|(at, _)| now < at + on.cooldown);
        self.episode.is_some_and(|episode| episode.again || !just_told(episode.cause))
    }

    /// Records that this popup notifies about its episode: one of its own, which is raised again after a while, or the
    /// summary.
    pub(super) fn notify(&mut self, popup: PopupId, alone: bool, now: Time, on: &Settings) {
        let Some(episode) = &mut self.episode else { return };
        let again = on.escalate_after.filter(|_| alone && !episode.again && episode.cause != Cause::Done);
        episode.stage = Stage::Open(popup, again.map(|span| now + span));
        self.notified[episode.cause as usize] = Some((now, episode.mark));
    }

    /// Records that another popup took the place of its popup.
    pub(super) const fn moved(&mut self, popup: PopupId) {
        if let Some(Episode { stage: Stage::Open(shown, _), .. }) = &mut self.episode {
            *shown = popup;
        }
    }

    /// Records that its popup was closed, by the user or not.
    pub(super) const fn closed(&mut self, by_user: bool) {
        let Some(episode) = &mut self.episode else { return };
        match episode.stage {
            Stage::Open(_, Some(at)) if !by_user => episode.notify_again(at),
            Stage::Open(..) => episode.stage = Stage::Silent,
            Stage::Silent | Stage::Waiting(_) => {}
        }
    }
}

/// Whether the status of a newly listed session predates our start, or its appearance.
pub(super) fn is_old_news(row: &Row, now: &Now) -> bool {
    now.at.wall - row.since > OLD_NEWS.min(now.at.awake - now.started)
}

/// Why to notify about a session now, if at all.
fn cause(session: &Alertable<'_>, on: &Settings) -> Option<(Cause, Mark)> {
    let row = session.row;
    let Some(cause) = Cause::of_row(row) else {
        let rests = row.status == Status::Idle && row.unseen;
        let turn = session.completed.filter(|turn| rests && turn.took >= on.done_min)?;
        return Some((Cause::Done, Mark::At(turn.at)));
    };
    let mark = match cause {
        Cause::NeedsPermission => match session.request {
            Some(request) if request.approval_requested => Mark::ApprovalRequested(request.id),
            Some(request) => Mark::Request(request.id),
            None => Mark::At(row.since),
        },
        Cause::NeedsInput | Cause::Failed => Mark::At(row.since),
        // Their `since` can be revised while they last.
        Cause::PermissionLost | Cause::Stuck | Cause::Crashed | Cause::Done => Mark::None,
    };
    Some((cause, mark))
}
