//! Reconnecting, and going on: what was denied or cut off is told as left undone until a prompt comes, and nothing is sent twice
//! whose effects may stand.

use super::actions::Case;
use super::story::Story;
use pilotlight::core::action::{Action, ServerState};
use pilotlight::core::fleet::Kind;
use pilotlight::core::verdict::Live;
use pilotlight::core::verdict::Status::{Crashed, Idle, NeedsInput, PermissionLost, Working};

/// A turn in which three tools were denied; its answer comes at 5.
fn denied() -> Story {
    Story::prompted().denied(1, "t1").denied(2, "t2").denied(3, "t3")
}

/// What we remember of a reconnection at this second that sent nothing.
fn reconnected(story: Story, at: i32) -> Story {
    let at = Some(story.moment(at).wall);
    story.with_live(Live { attached: at, left_undone: at, ..Live::default() })
}

/// What hard use found.
#[test]
fn case_127_reconnected_and_not_sent_on_is_not_idle() {
    let over = denied().answers(5, "I could not do it.");
    over.is(6, PermissionLost);
    let back = reconnected(over.clone(), 10);
    back.is(11, NeedsInput).says(11, NeedsInput, "reconnected; its last prompt was not carried out");
    // It is no question: to have looked at it changes nothing, and time neither.
    back.clone().seen(20).is(21, NeedsInput).is(1_000_000, NeedsInput);
    assert!(!back.verdict(11).by_message);
    // Over with the next prompt, and no word of it afterwards.
    let prompted = back.clone().prompt(30).round(30);
    prompted.is(30, Working);
    prompted.answers(40, "Done.").is(41, Idle);
    // A turn that was still open went on without permissions at first; whatever ran after that was carried out.
    let goes_on = reconnected(denied(), 4);
    goes_on.is(5, Working);
    goes_on.clone().answers(6, "I could not do it.").is(7, NeedsInput);
    goes_on.ran(6, "t4").answers(7, "Done.").is(8, Idle);
    // A turn that died, in a server of our own: it says that it does nothing.
    let crashed = Story::prompted().tool(1, "t1", "bash").owner_gone();
    crashed.is(2, Crashed);
    let hosted = Case::of(reconnected(crashed, 10).server_says(false), 20, Kind::Sdk).server(ServerState::Hosted(1));
    assert_eq!(hosted.status(), NeedsInput);
    // Nothing was lost: nothing was left undone.
    Story::prompted()
        .answers(1, "Done.")
        .with_live(Live { attached: over.live.attached, ..Live::default() })
        .is(2, Idle);
}

/// What was lost can be brought back by one action, as long as it is not carried out.
#[test]
fn case_127_what_was_left_undone_can_still_be_gone_on_with() {
    let over = denied().answers(5, "I could not do it.");
    let lost = Case::of(over.clone(), 6, Kind::Sdk).server(ServerState::Listens);
    lost.allows(Action::Continue).says(Action::Continue, "sends your last prompt again");
    assert_eq!(lost.actions(), ["continue", "reconnect", "resend"]);
    let back = Case::of(reconnected(over.clone(), 10), 11, Kind::Sdk).server(ServerState::Attached);
    back.allows(Action::Continue).refuses(Action::Reconnect, "already attached to it");
    let done =
        Case::of(reconnected(over, 10).prompt(12).answers(13, "Done."), 14, Kind::Sdk).server(ServerState::Attached);
    done.refuses(Action::Continue, "neither denied nor cut off");
    let idle = Case::of(Story::prompted().answers(1, "Done."), 2, Kind::Sdk).server(ServerState::Listens);
    idle.refuses(Action::Continue, "neither denied nor cut off");
    let stopped = Case::of(Story::prompted().abort(1), 2, Kind::Sdk).server(ServerState::Listens);
    stopped.refuses(Action::Continue, "neither denied nor cut off");
}

/// PP#285, and what hard use found: a tool that was started counts as done.
#[test]
fn case_40_where_a_tool_ran_it_is_told_to_go_on() {
    let mixed =
        Story::prompted().ran(1, "t1").denied(2, "t2").denied(3, "t3").denied(4, "t4").answers(5, "I could not.");
    let lost = Case::of(mixed, 6, Kind::Sdk).server(ServerState::Listens);
    lost.says(Action::Continue, "is not sent again").refuses(Action::Resend, "might be done twice");
    // Its turn is open: what is sent has to wait, and is offered all the same.
    let open = Case::of(denied(), 4, Kind::Sdk).server(ServerState::Listens);
    open.says(Action::Continue, "when its turn is over, sends your last prompt again");
    open.refuses(Action::Resend, "still open");
    // A terminal's that is gone is resumed there.
    let gone = Case::of(Story::prompted().tool(1, "t1", "bash").owner_gone(), 2, Kind::Terminal);
    gone.refuses(Action::Continue, "tell it there");
}

/// What waits for the end of a turn is the rest of a recovery that was counted.
#[test]
fn case_39_what_waits_for_its_turn_is_not_counted_twice() {
    let over = denied().answers(5, "I could not do it.");
    let (marks, at) = (over.facts(6).marks, over.moment(6).wall);
    let twice = Case::of(reconnected(over, 10), 11, Kind::Sdk).server(ServerState::Attached).with(|session| {
        session.control.attempts.tried(&marks, at);
        session.control.attempts.tried(&marks, at);
    });
    twice.refuses(Action::Continue, "tried 2 times");
    twice.with(|session| session.control.goes_on = Some(marks)).allows(Action::Continue);
}
