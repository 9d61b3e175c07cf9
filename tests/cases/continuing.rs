//! Reconnecting and continuing: denied or interrupted work is reported as left undone until the next prompt, and no
//! prompt is sent twice if its tools may have had effects.

use super::actions::Case;
use super::story::Story;
use pilotlight_core::action::{Action, ServerState};
use pilotlight_core::fleet::Kind;
use pilotlight_core::verdict::Liveness;
use pilotlight_core::verdict::Status::{Crashed, Idle, NeedsInput, PermissionLost, Working};

/// A turn in which three tools were denied.
fn denied() -> Story {
    Story::prompted().denied(1, "t1").denied(2, "t2").denied(3, "t3")
}

/// The story after a reconnection at `at` seconds that sent no prompt.
fn reconnected(story: Story, at: i32) -> Story {
    let at = Some(story.moment(at).wall);
    story.with_liveness(Liveness { attached: at, left_undone: at, ..Liveness::default() })
}

#[test]
fn case_127_reconnected_without_continuing_is_not_idle() {
    let over = denied().answers(5, "I could not do it.");
    over.is(6, PermissionLost);
    let back = reconnected(over.clone(), 10);
    back.is(11, NeedsInput).says(11, NeedsInput, "reconnected; its last prompt was not carried out");
    // It is no question: neither seeing it nor time changes it.
    back.clone().seen(20).is(21, NeedsInput).is(1_000_000, NeedsInput);
    assert!(!back.verdict(11).is_by_message());
    // The next prompt ends it.
    let prompted = back.clone().prompt(30).round(30);
    prompted.is(30, Working);
    prompted.answers(40, "Done.").is(41, Idle);
    // An open turn lacks permissions only before the reconnection; tools that ran after it were carried out.
    let open = reconnected(denied(), 4);
    open.is(5, Working);
    open.clone().answers(6, "I could not do it.").is(7, NeedsInput);
    open.ran(6, "t4").answers(7, "Done.").is(8, Idle);
    // A turn that crashed, now hosted by us: our server reports no work.
    let crashed = Story::prompted().tool(1, "t1", "bash").owner_gone();
    crashed.is(2, Crashed);
    let hosted = Case::of(reconnected(crashed, 10).server_says(false), 20, Kind::Sdk).server(ServerState::Hosted(1));
    assert_eq!(hosted.status(), NeedsInput);
    // Nothing was denied, so nothing was left undone.
    Story::prompted()
        .answers(1, "Done.")
        .with_liveness(Liveness { attached: over.liveness.attached, ..Liveness::default() })
        .is(2, Idle);
}

/// Until the next prompt.
#[test]
fn case_127_work_left_undone_can_be_continued() {
    let over = denied().answers(5, "I could not do it.");
    let lost = Case::of(over.clone(), 6, Kind::Sdk).server(ServerState::Listening);
    lost.allows(Action::Continue).says(Action::Continue, "sends your last prompt again");
    assert_eq!(lost.actions(), ["continue", "reconnect", "resend"]);
    let back = Case::of(reconnected(over.clone(), 10), 11, Kind::Sdk).server(ServerState::Attached);
    back.allows(Action::Continue).refuses(Action::Reconnect, "already attached to it");
    let done =
        Case::of(reconnected(over, 10).prompt(12).answers(13, "Done."), 14, Kind::Sdk).server(ServerState::Attached);
    done.refuses(Action::Continue, "was not cut off");
    let idle = Case::of(Story::prompted().answers(1, "Done."), 2, Kind::Sdk).server(ServerState::Listening);
    idle.refuses(Action::Continue, "was not cut off");
    let stopped = Case::of(Story::prompted().abort(1), 2, Kind::Sdk).server(ServerState::Listening);
    stopped.refuses(Action::Continue, "was not cut off");
}

/// A tool that was started may have had its effect.
#[test]
fn case_40_after_a_tool_ran_the_session_is_told_to_continue() {
    let mixed =
        Story::prompted().ran(1, "t1").denied(2, "t2").denied(3, "t3").denied(4, "t4").answers(5, "I could not.");
    let lost = Case::of(mixed, 6, Kind::Sdk).server(ServerState::Listening);
    lost.says(Action::Continue, "instead of sending your prompt again").refuses(Action::Resend, "might be done twice");
    // While its turn is open, continuing is offered, but waits for the end of the turn.
    let open = Case::of(denied(), 4, Kind::Sdk).server(ServerState::Listening);
    open.says(Action::Continue, "when its turn is over, sends your last prompt again");
    open.refuses(Action::Resend, "still open");
    // A terminal session without an owner is resumed in a terminal.
    let gone = Case::of(Story::prompted().tool(1, "t1", "bash").owner_gone(), 2, Kind::Terminal);
    gone.refuses(Action::Continue, "then send it a prompt");
}

/// It belongs to a recovery that was counted.
#[test]
fn case_39_continuing_that_waits_for_its_turn_is_not_counted_again() {
    let over = denied().answers(5, "I could not do it.");
    let (marks, at) = (over.facts(6).marks, over.moment(6).wall);
    let twice = Case::of(reconnected(over, 10), 11, Kind::Sdk).server(ServerState::Attached).with(|session| {
        session.control.attempts.note_attempt(&marks, at);
        session.control.attempts.note_attempt(&marks, at);
    });
    twice.refuses(Action::Continue, "tried 2 times");
    twice.with(|session| session.control.pending_continue = Some(marks)).allows(Action::Continue);
}
