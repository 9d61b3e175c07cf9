//! What an action's offer promises: how the session is reached, what that does to its turn, and the names in JSON.

use super::actions::Case;
use super::story::{PID, Story};
use pilotlight_core::action::{Action, Bridge, Control, ServerState, bridge_words};
use pilotlight_core::fleet::{Kind, Session};
use pilotlight_core::owner::Owner;
use pilotlight_core::session::Observed;
use pilotlight_core::verdict::Status::{NeedsPermission, Quiet, Stuck};
use std::collections::HashSet;

/// docs/json.md: scripts rely on these.
#[test]
fn every_action_has_its_promised_name() {
    let promised = [
        "approve",
        "deny",
        "answer",
        "continue",
        "reconnect",
        "resend",
        "stop",
        "end",
        "force-quit",
        "resume",
        "show-terminal",
        "detach",
        "let-answer",
    ];
    assert_eq!(Action::ALL.map(Action::name), promised);
}

/// Nobody knows of an open tool whether it waits for its user, unless we are attached or have a bridge.
#[test]
fn stopping_a_silent_turn_warns_if_it_may_be_waiting_for_the_user() {
    let (warns, plain) = ("even if it only waits for you", "stops the running turn, not the session");
    let tool = Story::prompted().tool(1, "t1", "asker-ask");
    for (story, at, server, bridge, words) in [
        (&tool, 700, ServerState::Listening, None, warns),
        // Its server or the bridge reports its questions to us.
        (&tool, 700, ServerState::Attached, None, plain),
        (&tool, 700, ServerState::Hosted(PID), None, plain),
        (&tool, 700, ServerState::NotListening, Some(Bridge::Joined), plain),
        // A silent model asks nobody.
        (&Story::prompted(), 70, ServerState::Listening, None, plain),
    ] {
        let case = Case::of(story.clone(), at, Kind::Terminal).server(server);
        let case = case.with(|session| session.control.bridge = bridge);
        assert!(matches!(case.status(), Quiet | Stuck), "{}", case.status());
        case.says(Action::Stop, words);
    }
    // Nor is it doubtful while it works.
    Case::of(tool, 3, Kind::Sdk).server(ServerState::Listening).says(Action::Stop, plain);
}

#[test]
fn reconnecting_says_what_becomes_of_the_turn() {
    let sdk = |story: Story, at: i32| Case::of(story, at, Kind::Sdk).server(ServerState::Listening);
    let tool = Story::prompted().tool(1, "t1", "bash");
    let asks = sdk(tool.clone().permission(2, "r1", "t1"), 3);
    assert_eq!(asks.status(), NeedsPermission);
    asks.says(Action::Reconnect, "shows its requests here");
    let may_wait = sdk(tool, 700);
    assert_eq!(may_wait.status(), Stuck);
    may_wait.says(Action::Reconnect, "shows its requests here");
    let silent = sdk(Story::prompted(), 130);
    assert_eq!(silent.status(), Stuck);
    silent.says(Action::Reconnect, "and stops the silent turn");
    let attached = sdk(Story::prompted(), 130).server(ServerState::Attached);
    attached.says(Action::Reconnect, "and stops the silent turn");
    sdk(Story::prompted(), 5).server(ServerState::Attached).refuses(Action::Reconnect, "already attached");
    let open = sdk(Story::prompted().tool(1, "t1", "bash"), 700).server(ServerState::Attached);
    assert_eq!(open.status(), Stuck);
    open.refuses(Action::Reconnect, "already attached");
}

/// A program's session has no terminal to go on in.
#[test]
fn a_session_without_a_process_is_resumed_where_it_was_used() {
    let gone = Story::prompted().tool(1, "t1", "bash").owner_gone();
    let case = |kind| Case::of(gone.clone(), 3, kind);
    case(Kind::Sdk).says(Action::Reconnect, "in a server of Pilotlight's own").says(Action::Resume, "in a terminal");
    for kind in [Kind::Terminal, Kind::Unknown] {
        case(kind).says(Action::Reconnect, "in a terminal, in its folder").says(Action::Resume, "in a terminal");
    }
}

#[test]
fn the_state_of_a_bridge_is_described_while_its_owner_lives() {
    let control = |bridge| Control { bridge, release: Some("1.2.3".into()), ..Control::default() };
    let session = |owner, bridge| Session {
        control: control(bridge),
        observed: Observed { owner, ..Observed::default() },
        ..Session::default()
    };
    let alive = Owner::Alive { pid: PID, started: None };
    let words = |bridge| bridge_words(&session(alive.clone(), Some(bridge))).unwrap();
    let all = [Bridge::Watches, Bridge::Joined, Bridge::Declined, Bridge::Asking, Bridge::Elevated];
    assert_eq!(all.map(words).into_iter().collect::<HashSet<_>>().len(), all.len());
    assert!(words(Bridge::Watches).contains("untested with Copilot 1.2.3"));
    assert!(words(Bridge::Elevated).contains("may answer its permission requests"));
    assert_eq!(bridge_words(&session(alive, None)), None);
    for owner in [Owner::Never, Owner::Gone { pid: PID, at: None }, Owner::Unknown { pid: PID }] {
        assert_eq!(bridge_words(&session(owner, Some(Bridge::Elevated))), None);
    }
}

/// Case 243: what ending a session kills is said only where a tool is open.
#[test]
fn case_243_no_tool_is_said_to_be_killed_where_none_is_open() {
    let working = Case::of(Story::prompted().requests(1, &["bash"]).tool(1, "t1", "bash"), 3, Kind::Terminal);
    working.says(Action::End, "and kills its tool").says(Action::ForceQuit, "may leave its tool running");
    let thinking = Story::prompted().requests(1, &["bash"]).tool(1, "t1", "bash").done(2, "t1");
    let idle = Story::prompted().answer(1, "Done.").round_end(2);
    for story in [thinking, idle] {
        let case = Case::of(story, 3, Kind::Terminal);
        case.says(Action::End, &format!("ends process {PID}; you can resume the session"));
        let kills = format!("kills process {PID} before it can save anything; you can resume the session");
        case.says(Action::ForceQuit, &kills);
    }
}
