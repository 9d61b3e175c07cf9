//! Which actions a session offers, and why it refuses the others. `tests/e2e` carries them out with the real CLI.

use super::story::{PID, Story};
use pilotlight_core::action::{Action, Bridge, Control, ServerState, may_end_without_asking, offer};
use pilotlight_core::attempts::{Attempts, Mark, RecoveryMarks};
use pilotlight_core::fleet::{About, Kind, Session};
use pilotlight_core::form::Form;
use pilotlight_core::limits::Limits;
use pilotlight_core::owner::{HoldProof, Owner};
use pilotlight_core::question::Question;
use pilotlight_core::session::Observed;
use pilotlight_core::time::Time;
use pilotlight_core::verdict::Status::{Idle, Working};
use pilotlight_core::verdict::{Asking, Liveness, Status};
use serde_json::json;

const ID: &str = "36535f61-5c7b-4f09-a70b-2f8aed97280f";

/// A story's session, `at` seconds after its start.
pub(super) struct Case {
    session: Session,
    story: Story,
    at: i32,
}

impl Case {
    pub(super) fn of(story: Story, at: i32, kind: Kind) -> Self {
        let session = Session {
            id: ID.into(),
            liveness: story.liveness.clone(),
            observed: Observed {
                about: About { kind, cwd: Some("/home/dev/project".into()), ..About::default() },
                facts: story.facts(at),
                owner: story.owner.clone(),
                has_log: true,
                ..Observed::default()
            },
            ..Session::default()
        };
        Self { session, story, at }
    }

    pub(super) fn server(mut self, server: ServerState) -> Self {
        self.session.control.server = server;
        self
    }

    pub(super) fn with(mut self, change: impl FnOnce(&mut Session)) -> Self {
        change(&mut self.session);
        self
    }

    pub(super) fn status(&self) -> Status {
        self.session.row(self.story.moment(self.at), &Limits::default()).0.status
    }

    fn offer(&self, action: Action) -> Result<String, String> {
        offer(action, &self.session, self.status()).map(|does| does.to_string()).map_err(Into::into)
    }

    fn because(&self) -> String {
        self.session.row(self.story.moment(self.at), &Limits::default()).0.because.to_string()
    }

    pub(super) fn actions(&self) -> Vec<&'static str> {
        let row = self.session.row(self.story.moment(self.at), &Limits::default()).0;
        row.actions.into_iter().map(Action::name).collect()
    }

    #[track_caller]
    pub(super) fn refuses(&self, action: Action, why: &str) -> &Self {
        let refused = self.offer(action).expect_err("it is allowed");
        assert!(refused.contains(why), "{refused:?} does not say {why:?}");
        self
    }

    /// Asserts that the action is offered, and that its description contains `what`.
    #[track_caller]
    pub(super) fn says(&self, action: Action, what: &str) -> &Self {
        let offered = self.offer(action).expect("it is refused");
        assert!(offered.contains(what), "{offered:?} does not say {what:?}");
        self
    }

    #[track_caller]
    pub(super) fn allows(&self, action: Action) -> &Self {
        self.offer(action).expect("it is refused");
        self
    }
}

fn mid_tool() -> Story {
    Story::prompted().requests(1, &["bash"]).tool(1, "t1", "bash")
}

fn asking() -> Story {
    mid_tool().permission(2, "r1", "t1")
}

#[test]
fn the_table_of_actions_by_owner() {
    let sdk = Case::of(asking(), 3, Kind::Sdk).server(ServerState::Listening);
    assert_eq!(sdk.actions(), ["approve", "deny", "reconnect", "stop"]);
    let stdio = Case::of(asking(), 3, Kind::Sdk).server(ServerState::NotListening);
    assert_eq!(stdio.actions(), [""; 0]);
    stdio.refuses(Action::Reconnect, "listens on no port").refuses(Action::Stop, "listens on no port");
    let terminal = Case::of(asking(), 3, Kind::Terminal).server(ServerState::NotListening);
    assert_eq!(terminal.actions(), ["end", "force-quit", "show-terminal"]);
    terminal.refuses(Action::Approve, "answer it where it asks").refuses(Action::Reconnect, "corrupt its history");
    let with_server = Case::of(asking(), 3, Kind::Terminal).server(ServerState::Listening);
    let all = ["approve", "deny", "reconnect", "stop", "end", "force-quit", "show-terminal"];
    assert_eq!(with_server.actions(), all);
    let crashed = Case::of(asking().owner_gone(), 3, Kind::Sdk);
    assert_eq!(crashed.actions(), ["continue", "reconnect", "resume"]);
    crashed.refuses(Action::Stop, "nothing to stop").refuses(Action::Approve, "no process runs it");
    let crashed = Case::of(asking().owner_gone(), 3, Kind::Terminal);
    assert_eq!(crashed.actions(), ["reconnect", "resume"]);
    let ended = Case::of(Story::prompted().answers(1, "Done.").shutdown(2).owner_gone(), 3, Kind::Terminal);
    assert_eq!(ended.actions(), ["reconnect", "resume"]);
}

/// Prompted or not.
#[test]
fn case_116_a_session_open_in_a_process_is_not_opened_again() {
    let opened = Owner::Opened { pid: PID, started: None };
    for story in [asking(), Story::prompted().answers(1, "Done.").shutdown(2)] {
        for kind in [Kind::Terminal, Kind::Sdk, Kind::Unknown] {
            let case = Case::of(story.clone().owned(opened.clone()), 3, kind).server(ServerState::NotListening);
            for action in [Action::Resume, Action::Reconnect, Action::Resend] {
                case.refuses(action, "has it open, not prompted yet");
            }
            case.refuses(Action::End, "close it in its terminal").refuses(Action::Stop, "has it open");
            let terminal = if kind == Kind::Sdk { vec![] } else { vec!["show-terminal"] };
            assert_eq!(case.actions(), terminal);
        }
    }
    // A server that listens can be attached to; it is then asked whether it has the session.
    let listens = Case::of(asking().owned(opened), 3, Kind::Sdk).server(ServerState::Listening);
    listens.allows(Action::Reconnect).refuses(Action::Resend, "has it open");
}

/// Cases 123 to 125: every action is refused.
#[test]
fn case_123_124_and_125_a_session_not_held_by_the_process_of_its_lock_is_left_alone() {
    for kind in [Kind::Terminal, Kind::Sdk, Kind::Unknown] {
        let case = Case::of(asking().owned(Owner::Unheld { pid: PID }), 3, kind).server(ServerState::Listening);
        assert_eq!(case.actions(), [""; 0]);
        for action in Action::ALL.into_iter().filter(|action| *action != Action::Detach) {
            case.refuses(action, &format!("its lock names process {PID}, which does not have it open"));
        }
    }
}

/// If only the lock names the owner, ending it needs a confirmation: a click is not enough.
#[test]
fn an_owner_known_only_by_its_lock_is_ended_only_after_a_confirmation() {
    let with = |held| {
        Case::of(asking(), 3, Kind::Terminal)
            .server(ServerState::NotListening)
            .with(|session| session.observed.held = held)
    };
    with(HoldProof::Verified).allows(Action::End);
    with(HoldProof::Unverified).allows(Action::End);
    assert_eq!(may_end_without_asking(&with(HoldProof::Verified).session), Ok(()));
    for held in [HoldProof::Unverified, HoldProof::Pending] {
        assert!(may_end_without_asking(&with(held).session).unwrap_err().to_string().contains("pilotlight stop"));
    }
    // A process whose lock was created just now gets no token.
    assert!(with(HoldProof::Unverified).session.may_be_trusted() && !with(HoldProof::Pending).session.may_be_trusted());
}

/// A third attempt would not help either.
#[test]
fn case_37_a_third_recovery_is_refused_and_says_so() {
    let mut attempts = Attempts::default();
    let (marks, at) = (mid_tool().facts(300).marks, mid_tool().moment(300).wall);
    attempts.note_attempt(&marks, at);
    let twice = {
        let mut twice = attempts;
        twice.note_attempt(&marks, at);
        twice
    };
    let case = |attempts| {
        Case::of(mid_tool(), 700, Kind::Sdk)
            .server(ServerState::Listening)
            .with(|session| session.control = Control { attempts, ..session.control.clone() })
    };
    case(attempts).allows(Action::Reconnect);
    case(twice).refuses(Action::Reconnect, "tried 2 times").allows(Action::Stop);
}

/// While an action is under way, every other one is refused.
#[test]
fn case_38_two_clicks_at_once_are_one_recovery() {
    let busy = Case::of(asking(), 3, Kind::Sdk)
        .server(ServerState::Listening)
        .with(|session| session.control.under_way = Some(Action::Reconnect));
    for action in Action::ALL.into_iter().filter(|action| *action != Action::ShowTerminal) {
        busy.refuses(action, "reconnect is under way");
    }
}

#[test]
fn case_39_only_a_completed_turn_or_the_user_resets_the_count_of_attempts() {
    let at = |second: i64| Time(1_700_000_000_000 + second * 1000);
    let mark = |event: u64, second: i64| Some(Mark { event, at: at(second) });
    let before = RecoveryMarks { prompt: mark(1, 0), completed: Some(at(-9)), aborted: mark(2, -5) };
    let tried = {
        let mut attempts = Attempts::default();
        attempts.note_attempt(&before, at(100));
        attempts.note_attempt(&before, at(110));
        attempts
    };
    assert_eq!(tried.count(&before), 2, "a tool's success is no mark");
    assert_eq!(tried.count(&RecoveryMarks { completed: Some(at(120)), ..before }), 0, "a completed turn");
    assert_eq!(tried.count(&RecoveryMarks { prompt: mark(3, 120), ..before }), 0, "the user's prompt");
    assert_eq!(tried.count(&RecoveryMarks { aborted: mark(4, 120), ..before }), 0, "the user's abort");
    // Marks of another process, which read less of the log, or more.
    assert_eq!(tried.count(&RecoveryMarks::default()), 2);
    let mut cut = Attempts::default();
    cut.note_attempt(&RecoveryMarks::default(), at(100));
    assert_eq!((cut.count(&before), cut.count(&RecoveryMarks { prompt: mark(3, 120), ..before })), (1, 0));

    let mut ours = tried;
    ours.note_abort(at(120));
    let aborted = RecoveryMarks { aborted: mark(4, 121), ..before };
    assert_eq!(ours.count(&aborted), 2, "an abort of ours");
    ours.note_end(&before, at(120));
    assert_eq!(ours.count(&aborted), 2, "though it is logged only after the order ended");
    assert_eq!(ours.count(&RecoveryMarks { aborted: mark(4, 200), ..before }), 0, "the user's, later");
    ours.note_prompt(at(122));
    let resent = RecoveryMarks { prompt: mark(5, 123), ..aborted };
    assert_eq!(ours.count(&resent), 2, "a prompt of ours");
    ours.note_end(&resent, at(124));
    assert_eq!(
        ours.count(&RecoveryMarks { completed: Some(at(125)), ..resent }),
        2,
        "the completion of our own prompt"
    );
    assert_eq!(ours.count(&RecoveryMarks { prompt: mark(6, 126), ..resent }), 0, "the user's next prompt");
    // As saved and loaded.
    let saved: Attempts = serde_json::from_str(&serde_json::to_string(&ours).unwrap()).unwrap();
    assert_eq!(saved, ours);

    let next = RecoveryMarks { prompt: mark(3, 120), ..before };
    let mut settled = tried;
    settled.settle(&next, at(121));
    assert_eq!(settled.count(&next), 0);
    settled.note_attempt(&next, at(122));
    assert_eq!(settled.count(&next), 1, "counted from 0 again");
}

#[test]
fn case_40_after_a_tool_succeeded_the_prompt_is_not_sent_again() {
    let hosted = |story: Story, at| Case::of(story.owner_gone(), at, Kind::Sdk);
    hosted(Story::prompted().requests(1, &["bash"]), 3).allows(Action::Resend);
    let ran = Story::prompted().requests(1, &["bash"]).tool(1, "t1", "bash").done(2, "t1").tool(3, "t2", "bash");
    hosted(ran.clone(), 4).refuses(Action::Resend, "might be done twice").allows(Action::Reconnect);
    // The tool's shell may still be running, whatever its result.
    hosted(mid_tool(), 3).refuses(Action::Resend, "might be done twice");
    let died = Story::prompted()
        .tool(1, "t1", "bash")
        .fails(2, "t1", "interrupted", "it was interrupted")
        .tool(3, "t2", "bash");
    hosted(died, 4).refuses(Action::Resend, "might be done twice");
    let failed = Story::after_a_tool(1).error(2);
    hosted(failed, 3).refuses(Action::Resend, "might be done twice");
    // A denied tool never ran, whoever denied it.
    let denied =
        Story::prompted().denied(1, "t1").tool(2, "t2", "bash").fails(3, "t2", "denied", "The user rejected this");
    hosted(denied.clone(), 4).allows(Action::Resend);
    hosted(denied.tool(4, "t3", "bash"), 5).refuses(Action::Resend, "might be done twice");
    // The tool that started a sub-agent counts as run, even if the sub-agent's own tools were denied.
    let agent = Story::prompted().tool(1, "t1", "task").sub_agent_started(1, "a", "t1", "sync").by("a").denied(2, "t2");
    hosted(agent, 3).refuses(Action::Resend, "might be done twice");
    // The next prompt may be sent again.
    hosted(ran.prompt(5).round(5), 6).allows(Action::Resend);
    hosted(Story::new(), 1).refuses(Action::Resend, "not known");
    let working = Case::of(Story::prompted(), 5, Kind::Sdk).server(ServerState::Listening);
    working.refuses(Action::Resend, "still open");
}

#[test]
fn case_70_another_process_with_a_live_lock_is_the_reason_for_a_refusal() {
    let plain = Case::of(mid_tool(), 700, Kind::Terminal).server(ServerState::NotListening);
    plain
        .refuses(Action::Reconnect, "a second process, which would corrupt its history")
        .refuses(Action::Resume, "second process");
    plain
        .refuses(Action::Resend, "might be done twice")
        .refuses(Action::Continue, "a second process, which would corrupt its history");
}

#[test]
fn case_74_and_107g_an_owner_that_cannot_be_inspected_is_neither_signalled_nor_resumed() {
    let story = mid_tool().owned(Owner::Unknown { pid: PID });
    let unknown = Case::of(story, 3, Kind::Terminal);
    assert_eq!(unknown.actions(), [""; 0]);
    for action in [Action::End, Action::ForceQuit, Action::Resume, Action::Reconnect, Action::Stop] {
        unknown.refuses(action, "cannot be inspected");
    }
}

#[test]
fn case_107d_a_process_with_two_sessions_is_never_signalled() {
    let shared = Case::of(mid_tool(), 3, Kind::Terminal).with(|session| session.control.other_sessions = 1);
    shared.refuses(Action::End, "1 other session").refuses(Action::ForceQuit, "1 other session");
    let contested = Case::of(mid_tool(), 3, Kind::Terminal).with(|session| session.observed.contested = true);
    contested.refuses(Action::End, "two live processes");
    let server = Case::of(mid_tool(), 3, Kind::Sdk).server(ServerState::Listening);
    server.refuses(Action::End, "another program started process");
}

#[test]
fn only_well_formed_ids_reach_a_command_line() {
    for id in ["--help", "a b", "$(reboot)", "36535f61-5c7b-4f09-a70b-2f8aed97280g", "", "36535f61"] {
        let odd = Case::of(mid_tool().owner_gone(), 3, Kind::Terminal).with(|session| session.id = id.into());
        odd.refuses(Action::Resume, "its id is not a valid ");
    }
}

#[test]
fn a_session_without_an_owner_is_resumed_only_when_it_is_over() {
    let story = mid_tool().owned(Owner::Never);
    Case::of(story.clone(), 30, Kind::Terminal).refuses(Action::Resume, "an unknown process just wrote its log");
    Case::of(story, 700, Kind::Terminal).allows(Action::Resume);
}

#[test]
fn case_53_a_round_after_our_stop_is_ignored_for_5_s() {
    let stopped = Story::prompted().tool(1, "t1", "bash").abort(10).round(11);
    let at = stopped.moment(10).wall;
    let stopped = stopped.with_liveness(Liveness { stopped: Some(at), ..Liveness::default() });
    stopped.is(11, Idle).is(14.999, Idle).is(15, Working);
    assert_eq!(stopped.verdict(11).recheck_at, Some(stopped.moment(15).awake));
    // The user's own prompt opens a turn at once.
    let prompted = Story::prompted().abort(10).prompt(11).round(11).with_liveness(stopped.liveness.clone());
    prompted.is(11, Working);
    Story::prompted().abort(10).round(16).with_liveness(stopped.liveness).is(16, Working);
}

/// An order names its turn in this way.
#[test]
fn case_122_a_turn_is_named_by_the_event_that_opened_it() {
    let root = |story: &Story| story.facts(60).turn_id;
    let first = Story::prompted();
    let named = root(&first);
    assert!(named.is_some());
    // Neither the turn's events nor its end change its name.
    let continued =
        first.clone().round(1).requests(2, &["bash"]).tool(2, "t1", "bash").steers(3).done(4, "t1").round_end(5);
    assert_eq!(root(&continued), named);
    assert_eq!(root(&continued.clone().answers(6, "Done.")), named);
    assert_eq!(root(&continued.clone().abort(6)), named);
    let autopilot = first.mode(1, "autopilot").answers(2, "Done.").continues(3);
    assert_eq!(root(&autopilot), named, "Copilot prompted itself");
    let next = continued.answers(6, "Done.").prompt(7);
    assert!(root(&next).is_some() && root(&next) != named);
    // A turn whose start was not read has no name.
    assert_eq!(root(&Story::cut().tool(1, "t1", "bash")), None);
}

/// Elsewhere, the refusal says where to answer.
#[test]
fn a_question_is_answered_only_where_pilotlight_is_attached() {
    let data = json!({"toolCallId": "t1", "toolName": "ask_user", "arguments": {"question": "Why?"}});
    let story = Story::prompted().event(1, "tool.execution_start", data);
    let reported = |form: Result<Form, Box<str>>| {
        let question = Question { id: None, text: "Why?".into(), choices: Vec::new() };
        let asking = Asking { question, since: Time(0), form };
        story.clone().with_liveness(Liveness {
            has_active_work: Some(true),
            questions: vec![asking],
            ..Liveness::default()
        })
    };
    let form = || Ok(Form::read("user_input.requested", &json!({"requestId": "r", "question": "Why?"})).unwrap());
    for server in [ServerState::Attached, ServerState::Hosted(PID)] {
        let case = Case::of(reported(form()), 3, Kind::Sdk).server(server.clone());
        case.says(Action::Answer, "answers its open question");
        assert!(case.actions().contains(&"answer"));
        let unknown = Case::of(reported(Err("its form has more than one field".into())), 3, Kind::Sdk).server(server);
        unknown.refuses(Action::Answer, "answer it where it asks: its form has more than one field");
        assert!(!unknown.actions().contains(&"answer"));
    }
    // Without the connection, or after the turn, a reported question cannot be answered.
    Case::of(reported(form()), 3, Kind::Sdk).server(ServerState::Listening).refuses(Action::Answer, "reconnect first");
    let over = reported(form()).abort(2).server_says(false);
    Case::of(over, 3, Kind::Sdk).server(ServerState::Attached).refuses(Action::Answer, "it asks nothing");
    let answered = story.clone().server_says(true);
    Case::of(answered, 3, Kind::Sdk)
        .server(ServerState::Attached)
        .refuses(Action::Answer, "its server reports no question");
    let terminal = Case::of(story.clone(), 3, Kind::Terminal).server(ServerState::NotListening);
    terminal.refuses(Action::Answer, "answer it in its terminal");
    // A bridge reports the question, and answers it with releases of Copilot that it was tried with.
    bridged(reported(form()), 3, Bridge::Joined).says(Action::Answer, "answers its open question");
    bridged(reported(form()), 3, Bridge::Watches).refuses(Action::Answer, "untested with Copilot 1.2.3");
    let stdio = Case::of(story.clone(), 3, Kind::Sdk).server(ServerState::NotListening);
    stdio.refuses(Action::Answer, "answer it in the program that runs it");
    let by_message = Case::of(Story::prompted().answers(1, "Which one?"), 3, Kind::Sdk).server(ServerState::Listening);
    by_message.refuses(Action::Answer, "its last message asks you");
}

/// A terminal session with a bridge in this state.
fn bridged(story: Story, at: i32, bridge: Bridge) -> Case {
    let with = |session: &mut Session| {
        session.control.bridge = Some(bridge);
        session.control.release = Some("1.2.3".into());
    };
    Case::of(story, at, Kind::Terminal).server(ServerState::NotListening).with(with)
}

#[test]
fn what_a_terminal_session_offers_depends_on_its_bridge() {
    let idle = || Story::prompted().answers(1, "Done.");
    bridged(asking(), 3, Bridge::Elevated)
        .allows(Action::Approve)
        .allows(Action::Deny)
        .allows(Action::Stop)
        .refuses(Action::Reconnect, "corrupt its history")
        .refuses(Action::LetAnswer, "already");
    bridged(asking(), 3, Bridge::Joined)
        .allows(Action::Stop)
        .refuses(Action::Approve, "answer it in its terminal")
        .refuses(Action::LetAnswer, "try again when it is idle");
    bridged(idle(), 3, Bridge::Joined).allows(Action::LetAnswer);
    bridged(idle(), 3, Bridge::Declined).refuses(Action::LetAnswer, "you said no to Pilotlight in its terminal");
    bridged(idle(), 3, Bridge::Asking).refuses(Action::LetAnswer, "already");
    // A request that an organisation requires a person to answer is answered in the terminal.
    let asks = json!({"requestId": "r1", "permissionRequest": {"kind": "shell", "managedApprovalRequired": true}});
    let managed = Story::prompted().event(1, "permission.requested", asks);
    for action in [Action::Approve, Action::Deny] {
        bridged(managed.clone(), 3, Bridge::Elevated).refuses(action, "your organisation's policy requires a person");
    }
    // With an untried release of Copilot, a bridge only watches.
    let untried = bridged(asking(), 3, Bridge::Watches);
    for action in [Action::Approve, Action::Deny, Action::Stop, Action::LetAnswer] {
        untried.refuses(action, "untested with Copilot 1.2.3");
    }
    // If a bridge would make the action possible, the refusal mentions it.
    let bare = Case::of(asking(), 3, Kind::Terminal).server(ServerState::NotListening);
    for action in [Action::Approve, Action::Deny, Action::Stop, Action::LetAnswer] {
        bare.refuses(action, "bridge");
    }
    // A server is preferred to a bridge.
    let server = bridged(asking(), 3, Bridge::Watches).server(ServerState::Listening);
    server.allows(Action::Stop).allows(Action::Approve);
    // Without an owner, a bridge does not count.
    bridged(asking().owner_gone(), 3, Bridge::Elevated).refuses(Action::Approve, "no process runs it");
}

#[test]
fn a_terminal_session_is_continued_only_while_it_waits_for_a_prompt() {
    let failed = || Story::prompted().error(1);
    let case = bridged(failed(), 3, Bridge::Joined);
    case.says(Action::Continue, "sends your last prompt again, in its terminal");
    assert!(!case.offer(Action::Continue).unwrap().contains("permission"));
    let ran = Story::prompted().requests(1, &["bash"]).tool(1, "t1", "bash").done(2, "t1").error(3);
    bridged(ran, 4, Bridge::Joined).says(Action::Continue, "tells it in its terminal to continue");
    bridged(mid_tool(), 900, Bridge::Joined).refuses(Action::Continue, "still open");
    bridged(Story::prompted().answers(1, "Done."), 3, Bridge::Joined).refuses(Action::Continue, "nothing to continue");
    bridged(failed(), 3, Bridge::Watches).refuses(Action::Continue, "corrupt its history");
}

/// Only the user may decide what an extension may do.
#[test]
fn copilots_own_question_about_the_bridge_is_never_answered_from_here() {
    let asks = |name: &str| {
        let request = json!({"kind": "extension-permission-access", "extensionName": name,
            "capabilities": ["handle permission requests"]});
        Story::prompted().answers(1, "Done.").event(
            2,
            "permission.requested",
            json!({"requestId": "r1", "permissionRequest": request}),
        )
    };
    let ours = bridged(asks("plugin:pilotlight:pilotlight"), 3, Bridge::Elevated);
    assert_eq!(ours.status(), Status::NeedsPermission);
    assert_eq!(ours.because(), "Copilot asks in its terminal whether Pilotlight may answer there");
    for action in [Action::Approve, Action::Deny] {
        ours.refuses(action, "only you can answer that: Copilot asks about Pilotlight's rights");
        Case::of(asks("other"), 3, Kind::Terminal)
            .server(ServerState::Listening)
            .refuses(action, "Copilot asks about an extension's rights");
    }
}

/// For a tool that uses a path outside the folder, Copilot first asks about the path. The answer is for that question.
#[test]
fn a_request_is_for_what_the_dialog_asks() {
    let asks = |paths: serde_json::Value| {
        let request = json!({"kind": "shell", "toolCallId": "c", "fullCommandText": "cat /etc/hostname"});
        let dialog = json!({"kind": "path", "accessKind": "read", "paths": paths, "toolCallId": "c"});
        let asked = json!({"requestId": "r1", "permissionRequest": request, "promptRequest": dialog});
        let facts = Story::prompted().event(1, "permission.requested", asked).facts(3);
        facts.requests.iter().map(|request| (request.kind.to_string(), request.asks.clone())).collect::<Vec<_>>()
    };
    let path = |asks: Option<&str>| vec![("path".to_owned(), asks.map(Box::from))];
    assert_eq!(asks(json!(["/etc/hostname"])), path(Some("/etc/hostname, to read, for: cat /etc/hostname")));
    for several in [json!(["/etc/hostname", "/etc/passwd"]), json!([]), json!([7]), json!("/etc"), json!(null)] {
        assert_eq!(asks(several.clone()), path(None), "no one text says all of it: {several}");
    }
}
