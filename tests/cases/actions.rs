//! What may be done with a session, and what is refused with which reason. What really happens then is tested with the real
//! CLI, in tests/e2e; here are the rules.

use super::story::{PID, Story};
use pilotlight::core::action::{Action, Bridge, Control, ServerState, may_end_unasked, offer};
use pilotlight::core::asked::Question;
use pilotlight::core::attempts::{Attempts, Mark, Marks};
use pilotlight::core::fleet::{About, Kind, Session};
use pilotlight::core::form::Form;
use pilotlight::core::limits::Limits;
use pilotlight::core::owner::{Held, Owner};
use pilotlight::core::time::Time;
use pilotlight::core::verdict::Status::{Idle, Working};
use pilotlight::core::verdict::{Asking, Live, Status};
use serde_json::json;

const ID: &str = "36535f61-5c7b-4f09-a70b-2f8aed97280f";

/// A story's session, so many seconds after its start.
pub(super) struct Case {
    session: Session,
    story: Story,
    at: i32,
}

impl Case {
    pub(super) fn of(story: Story, at: i32, kind: Kind) -> Self {
        let session = Session {
            id: ID.into(),
            live: story.live.clone(),
            about: About { kind, cwd: Some("/home/dev/project".into()), ..About::default() },
            facts: story.facts(at),
            owner: story.owner.clone(),
            has_log: true,
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

    /// Its status.
    pub(super) fn status(&self) -> Status {
        self.session.row(self.story.moment(self.at), &Limits::default()).0.status
    }

    fn offer(&self, action: Action) -> Result<String, String> {
        offer(action, &self.session, self.status())
    }

    fn because(&self) -> String {
        self.session.row(self.story.moment(self.at), &Limits::default()).0.because
    }

    /// What may be done with it.
    pub(super) fn actions(&self) -> Vec<&'static str> {
        self.session.row(self.story.moment(self.at), &Limits::default()).0.actions
    }

    #[track_caller]
    pub(super) fn refuses(&self, action: Action, why: &str) -> &Self {
        let refused = self.offer(action).expect_err("it is allowed");
        assert!(refused.contains(why), "{refused:?} does not say {why:?}");
        self
    }

    /// What it would do says so.
    #[track_caller]
    pub(super) fn says(&self, action: Action, what: &str) -> &Self {
        let does = self.offer(action).expect("it is refused");
        assert!(does.contains(what), "{does:?} does not say {what:?}");
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
    let sdk = Case::of(asking(), 3, Kind::Sdk).server(ServerState::Listens);
    assert_eq!(sdk.actions(), ["approve", "deny", "reconnect", "stop"]);
    let stdio = Case::of(asking(), 3, Kind::Sdk).server(ServerState::Nowhere);
    assert_eq!(stdio.actions(), [""; 0]);
    stdio.refuses(Action::Reconnect, "listens on no port").refuses(Action::Stop, "listens on no port");
    let terminal = Case::of(asking(), 3, Kind::Terminal).server(ServerState::Nowhere);
    assert_eq!(terminal.actions(), ["end", "force-quit", "show-terminal"]);
    terminal.refuses(Action::Approve, "answer it where it asks").refuses(Action::Reconnect, "fork its log");
    let with_server = Case::of(asking(), 3, Kind::Terminal).server(ServerState::Listens);
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

/// While a process has it open, it is nobody else's, prompted or not.
#[test]
fn case_116_what_is_open_somewhere_is_not_opened_again() {
    let opened = Owner::Opened { pid: PID, started: None };
    for story in [asking(), Story::prompted().answers(1, "Done.").shutdown(2)] {
        for kind in [Kind::Terminal, Kind::Sdk, Kind::Unknown] {
            let case = Case::of(story.clone().owned(opened.clone()), 3, kind).server(ServerState::Nowhere);
            for action in [Action::Resume, Action::Reconnect, Action::Resend] {
                case.refuses(action, "has it open, not prompted yet");
            }
            case.refuses(Action::End, "close it in its terminal").refuses(Action::Stop, "has it open");
            let terminal = if kind == Kind::Sdk { vec![] } else { vec!["show-terminal"] };
            assert_eq!(case.actions(), terminal);
        }
    }
    // Its server can be joined, and then it is asked whether it really has it.
    let listens = Case::of(asking().owned(opened), 3, Kind::Sdk).server(ServerState::Listens);
    listens.allows(Action::Reconnect).refuses(Action::Resend, "has it open");
}

/// Cases 123 to 125: nothing at all is done with it.
#[test]
fn case_124_a_session_that_its_process_does_not_hold_is_left_alone() {
    for kind in [Kind::Terminal, Kind::Sdk, Kind::Unknown] {
        let case = Case::of(asking().owned(Owner::Unheld { pid: PID }), 3, kind).server(ServerState::Listens);
        assert_eq!(case.actions(), [""; 0]);
        for action in Action::ALL.into_iter().filter(|action| *action != Action::Detach) {
            case.refuses(action, "the process that its lock names does not hold it");
        }
    }
}

/// Where nothing but the lock says whose the process is, a click is not enough to end it.
#[test]
fn what_only_its_lock_says_is_ended_by_a_command_that_asks() {
    let with =
        |held| Case::of(asking(), 3, Kind::Terminal).server(ServerState::Nowhere).with(|session| session.held = held);
    with(Held::Seen).allows(Action::End);
    with(Held::Untold).allows(Action::End);
    assert_eq!(may_end_unasked(&with(Held::Seen).session), Ok(()));
    for held in [Held::Untold, Held::Soon] {
        assert!(may_end_unasked(&with(held).session).unwrap_err().contains("pilotlight stop"));
    }
    // And whose lock was made just now is told no secret.
    assert!(with(Held::Untold).session.may_be_trusted() && !with(Held::Soon).session.may_be_trusted());
}

/// PP#230 and #285: what is tried a third time would not help either.
#[test]
fn case_37_a_third_recovery_is_refused_and_says_so() {
    let mut attempts = Attempts::default();
    let (marks, at) = (mid_tool().facts(300).marks, mid_tool().moment(300).wall);
    attempts.tried(&marks, at);
    let twice = {
        let mut twice = attempts;
        twice.tried(&marks, at);
        twice
    };
    let case = |attempts| {
        Case::of(mid_tool(), 700, Kind::Sdk)
            .server(ServerState::Listens)
            .with(|session| session.control = Control { attempts, ..session.control.clone() })
    };
    case(attempts).allows(Action::Reconnect);
    case(twice).refuses(Action::Reconnect, "tried 2 times").allows(Action::Stop);
}

/// PP#285: what comes while one is under way is refused, whatever it is.
#[test]
fn case_38_two_clicks_at_once_are_one_recovery() {
    let busy = Case::of(asking(), 3, Kind::Sdk)
        .server(ServerState::Listens)
        .with(|session| session.control.under_way = Some(Action::Reconnect));
    for action in Action::ALL.into_iter().filter(|action| *action != Action::ShowTerminal) {
        busy.refuses(action, "reconnect is under way");
    }
}

/// PP#285.
#[test]
fn case_39_only_a_completed_turn_and_the_user_count_attempts_anew() {
    let at = |second: i64| Time(1_700_000_000_000 + second * 1000);
    let mark = |event: u64, second: i64| Some(Mark { event, at: at(second) });
    let before = Marks { prompt: mark(1, 0), completed: Some(at(-9)), aborted: mark(2, -5) };
    let tried = {
        let mut attempts = Attempts::default();
        attempts.tried(&before, at(100));
        attempts.tried(&before, at(110));
        attempts
    };
    assert_eq!(tried.counted(&before), 2, "a tool's success is no mark");
    assert_eq!(tried.counted(&Marks { completed: Some(at(120)), ..before }), 0, "a completed turn");
    assert_eq!(tried.counted(&Marks { prompt: mark(3, 120), ..before }), 0, "the user's prompt");
    assert_eq!(tried.counted(&Marks { aborted: mark(4, 120), ..before }), 0, "the user's abort");
    // Another process, which read less of the log, or more.
    assert_eq!(tried.counted(&Marks::default()), 2);
    let mut cut = Attempts::default();
    cut.tried(&Marks::default(), at(100));
    assert_eq!((cut.counted(&before), cut.counted(&Marks { prompt: mark(3, 120), ..before })), (1, 0));

    let mut ours = tried;
    ours.aborts(at(120));
    let aborted = Marks { aborted: mark(4, 121), ..before };
    assert_eq!(ours.counted(&aborted), 2, "an abort of ours");
    ours.ended(&before, at(120));
    assert_eq!(ours.counted(&aborted), 2, "though it comes into the log when all is over");
    assert_eq!(ours.counted(&Marks { aborted: mark(4, 200), ..before }), 0, "the user's, later");
    ours.prompts(at(122));
    let resent = Marks { prompt: mark(5, 123), ..aborted };
    assert_eq!(ours.counted(&resent), 2, "a prompt of ours");
    ours.ended(&resent, at(124));
    assert_eq!(ours.counted(&Marks { completed: Some(at(125)), ..resent }), 2, "what it came to");
    assert_eq!(ours.counted(&Marks { prompt: mark(6, 126), ..resent }), 0, "the user's next prompt");
    // As it is kept.
    let kept: Attempts = serde_json::from_str(&serde_json::to_string(&ours).unwrap()).unwrap();
    assert_eq!(kept, ours);

    let next = Marks { prompt: mark(3, 120), ..before };
    let mut settled = tried;
    settled.settle(&next, at(121));
    assert_eq!(settled.counted(&next), 0);
    settled.tried(&next, at(122));
    assert_eq!(settled.counted(&next), 1, "counted anew");
}

/// PP#285.
#[test]
fn case_40_where_a_tool_succeeded_the_prompt_is_not_sent_again() {
    let hosted = |story: Story, at| Case::of(story.owner_gone(), at, Kind::Sdk);
    hosted(Story::prompted().requests(1, &["bash"]), 3).allows(Action::Resend);
    let ran = Story::prompted().requests(1, &["bash"]).tool(1, "t1", "bash").done(2, "t1").tool(3, "t2", "bash");
    hosted(ran.clone(), 4).refuses(Action::Resend, "might be done twice").allows(Action::Reconnect);
    // Its shell may live on, whatever became of its result.
    hosted(mid_tool(), 3).refuses(Action::Resend, "might be done twice");
    let died = Story::prompted()
        .tool(1, "t1", "bash")
        .fails(2, "t1", "interrupted", "it was interrupted")
        .tool(3, "t2", "bash");
    hosted(died, 4).refuses(Action::Resend, "might be done twice");
    let failed = Story::after_a_tool(1).error(2);
    hosted(failed, 3).refuses(Action::Resend, "might be done twice");
    // What was denied never ran, whoever denied it.
    let denied =
        Story::prompted().denied(1, "t1").tool(2, "t2", "bash").fails(3, "t2", "denied", "The user rejected this");
    hosted(denied.clone(), 4).allows(Action::Resend);
    hosted(denied.tool(4, "t3", "bash"), 5).refuses(Action::Resend, "might be done twice");
    // A sub-agent that was denied says nothing of the tool that it was started by.
    let agent = Story::prompted().tool(1, "t1", "task").agent_started(1, "a", "t1", "sync").by("a").denied(2, "t2");
    hosted(agent, 3).refuses(Action::Resend, "might be done twice");
    // The next prompt is another one.
    hosted(ran.prompt(5).round(5), 6).allows(Action::Resend);
    hosted(Story::new(), 1).refuses(Action::Resend, "not known");
    let working = Case::of(Story::prompted(), 5, Kind::Sdk).server(ServerState::Listens);
    working.refuses(Action::Resend, "still open");
}

/// PP#417.
#[test]
fn case_70_a_live_lock_of_another_process_refuses_reconnect_with_the_reason() {
    let plain = Case::of(mid_tool(), 700, Kind::Terminal).server(ServerState::Nowhere);
    plain.refuses(Action::Reconnect, "a second owner would fork its log").refuses(Action::Resume, "second owner");
    plain.refuses(Action::Resend, "might be done twice").refuses(Action::Continue, "a second owner would fork its log");
}

/// PP#417.
#[test]
fn case_74_and_107g_what_cannot_be_looked_at_is_neither_signalled_nor_resumed() {
    let story = mid_tool().owned(Owner::Unknown { pid: PID });
    let unknown = Case::of(story, 3, Kind::Terminal);
    assert_eq!(unknown.actions(), [""; 0]);
    for action in [Action::End, Action::ForceQuit, Action::Resume, Action::Reconnect, Action::Stop] {
        unknown.refuses(action, "cannot be inspected");
    }
}

/// Safety.
#[test]
fn case_107d_a_process_with_two_sessions_is_never_signalled() {
    let shared = Case::of(mid_tool(), 3, Kind::Terminal).with(|session| session.control.others = 1);
    shared.refuses(Action::End, "1 other session").refuses(Action::ForceQuit, "1 other session");
    let contested = Case::of(mid_tool(), 3, Kind::Terminal).with(|session| session.contested = true);
    contested.refuses(Action::End, "two live processes");
    let server = Case::of(mid_tool(), 3, Kind::Sdk).server(ServerState::Listens);
    server.refuses(Action::End, "not a terminal session");
}

#[test]
fn only_ids_of_copilots_form_reach_a_command_line() {
    for id in ["--help", "a b", "$(reboot)", "36535f61-5c7b-4f09-a70b-2f8aed97280g", "", "36535f61"] {
        let odd = Case::of(mid_tool().owner_gone(), 3, Kind::Terminal).with(|session| session.id = id.into());
        odd.refuses(Action::Resume, "form");
    }
}

#[test]
fn a_session_without_an_owner_is_resumed_only_when_it_is_over() {
    let story = mid_tool().owned(Owner::Never);
    Case::of(story.clone(), 30, Kind::Terminal).refuses(Action::Resume, "a moment ago");
    Case::of(story, 700, Kind::Terminal).allows(Action::Resume);
}

/// PP#399.
#[test]
fn case_53_a_round_after_our_stop_is_ignored_for_5_s() {
    let stopped = Story::prompted().tool(1, "t1", "bash").abort(10).round(11);
    let at = stopped.moment(10).wall;
    let stopped = stopped.with_live(Live { stopped: Some(at), ..Live::default() });
    stopped.is(11, Idle).is(14.999, Idle).is(15, Working);
    assert_eq!(stopped.verdict(11).recheck_at, Some(stopped.moment(15).awake));
    // A prompt of the user's is none of the rest.
    let prompted = Story::prompted().abort(10).prompt(11).round(11).with_live(stopped.live.clone());
    prompted.is(11, Working);
    Story::prompted().abort(10).round(16).with_live(stopped.live).is(16, Working);
}

/// An order names the turn that it was given for by the event that opened it.
#[test]
fn case_122_a_turn_is_named_by_the_event_that_opened_it() {
    let root = |story: &Story| story.facts(60).root;
    let first = Story::prompted();
    let named = root(&first);
    assert!(named.is_some());
    // What belongs to the turn does not rename it, and neither does its end.
    let goes_on =
        first.clone().round(1).requests(2, &["bash"]).tool(2, "t1", "bash").steers(3).done(4, "t1").round_end(5);
    assert_eq!(root(&goes_on), named);
    assert_eq!(root(&goes_on.clone().answers(6, "Done.")), named);
    assert_eq!(root(&goes_on.clone().abort(6)), named);
    let autopilot = first.mode(1, "autopilot").answers(2, "Done.").continues(3);
    assert_eq!(root(&autopilot), named, "Copilot goes on by itself");
    let next = goes_on.answers(6, "Done.").prompt(7);
    assert!(root(&next).is_some() && root(&next) != named);
    // Where the beginning was not read, nobody can name it.
    assert_eq!(root(&Story::cut().tool(1, "t1", "bash")), None);
}

/// Who is attached is told what is asked, and may answer; elsewhere is said where.
#[test]
fn a_question_is_answered_where_pilotlight_is_attached_and_nowhere_else() {
    let data = json!({"toolCallId": "t1", "toolName": "ask_user", "arguments": {"question": "Why?"}});
    let story = Story::prompted().event(1, "tool.execution_start", data);
    let heard = |form: Result<Form, Box<str>>| {
        let question = Question { text: "Why?".into(), choices: Vec::new() };
        let asking = Asking { question, since: Time(0), form };
        story.clone().with_live(Live { has_active_work: Some(true), questions: vec![asking], ..Live::default() })
    };
    let form = || Ok(Form::read("user_input.requested", &json!({"requestId": "r", "question": "Why?"})).unwrap());
    for server in [ServerState::Attached, ServerState::Hosted(PID)] {
        let case = Case::of(heard(form()), 3, Kind::Sdk).server(server.clone());
        case.says(Action::Answer, "answers what it asks you (1 question open)");
        assert!(case.actions().contains(&"answer"));
        let unknown = Case::of(heard(Err("its form has more than one field".into())), 3, Kind::Sdk).server(server);
        unknown.refuses(Action::Answer, "answer it where it asks: its form has more than one field");
        assert!(!unknown.actions().contains(&"answer"));
    }
    // What was heard is of no use any more where the connection is gone, or the turn is.
    Case::of(heard(form()), 3, Kind::Sdk).server(ServerState::Listens).refuses(Action::Answer, "reconnect first");
    let over = heard(form()).abort(2).server_says(false);
    Case::of(over, 3, Kind::Sdk).server(ServerState::Attached).refuses(Action::Answer, "it asks nothing");
    let told = story.clone().server_says(true);
    Case::of(told, 3, Kind::Sdk).server(ServerState::Attached).refuses(Action::Answer, "it was answered just now");
    let terminal = Case::of(story.clone(), 3, Kind::Terminal).server(ServerState::Nowhere);
    terminal.refuses(Action::Answer, "answer it in its terminal");
    // A bridge tells what is asked, and answers where it was tried.
    bridged(heard(form()), 3, Bridge::Joined).says(Action::Answer, "answers what it asks you");
    bridged(heard(form()), 3, Bridge::Watches).refuses(Action::Answer, "not tried with Copilot 1.2.3");
    let stdio = Case::of(story.clone(), 3, Kind::Sdk).server(ServerState::Nowhere);
    stdio.refuses(Action::Answer, "answer it in the program that runs it");
    let by_message = Case::of(Story::prompted().answers(1, "Which one?"), 3, Kind::Sdk).server(ServerState::Listens);
    by_message.refuses(Action::Answer, "it asks in its last message: send it a prompt");
}

/// A terminal with a bridge that may do this.
fn bridged(story: Story, at: i32, bridge: Bridge) -> Case {
    let with = |session: &mut Session| {
        session.control.bridge = Some(bridge);
        session.control.release = Some("1.2.3".into());
    };
    Case::of(story, at, Kind::Terminal).server(ServerState::Nowhere).with(with)
}

#[test]
fn a_terminal_with_a_bridge_is_stopped_answered_and_once_its_user_allows_it_approved() {
    let idle = || Story::prompted().answers(1, "Done.");
    bridged(asking(), 3, Bridge::Elevated)
        .allows(Action::Approve)
        .allows(Action::Deny)
        .allows(Action::Stop)
        .refuses(Action::Reconnect, "fork its log")
        .refuses(Action::LetAnswer, "already");
    bridged(asking(), 3, Bridge::Joined)
        .allows(Action::Stop)
        .refuses(Action::Approve, "answer it in its terminal")
        .refuses(Action::LetAnswer, "only while it waits for your next prompt");
    bridged(idle(), 3, Bridge::Joined).allows(Action::LetAnswer);
    bridged(idle(), 3, Bridge::Declined).refuses(Action::LetAnswer, "may not");
    bridged(idle(), 3, Bridge::Asking).refuses(Action::LetAnswer, "already");
    // What an organisation wants a person to answer is answered in the terminal.
    let asks = json!({"requestId": "r1", "permissionRequest": {"kind": "shell", "managedApprovalRequired": true}});
    let managed = Story::prompted().event(1, "permission.requested", asks);
    for action in [Action::Approve, Action::Deny] {
        bridged(managed.clone(), 3, Bridge::Elevated).refuses(action, "your organisation wants a person");
    }
    // What was not tried only watches, and says so.
    let untried = bridged(asking(), 3, Bridge::Watches);
    for action in [Action::Approve, Action::Deny, Action::Stop, Action::LetAnswer] {
        untried.refuses(action, "not tried with Copilot 1.2.3");
    }
    // A refusal that a bridge would lift says so.
    let bare = Case::of(asking(), 3, Kind::Terminal).server(ServerState::Nowhere);
    for action in [Action::Approve, Action::Deny, Action::Stop, Action::LetAnswer] {
        bare.refuses(action, "bridge");
    }
    // A server is the better way.
    let server = bridged(asking(), 3, Bridge::Watches).server(ServerState::Listens);
    server.allows(Action::Stop).allows(Action::Approve);
    // A bridge of a session that nobody runs is nobody's.
    bridged(asking().owner_gone(), 3, Bridge::Elevated).refuses(Action::Approve, "no process runs it");
}

#[test]
fn a_terminal_is_sent_on_only_while_it_waits_for_a_prompt() {
    let failed = || Story::prompted().error(1);
    let case = bridged(failed(), 3, Bridge::Joined);
    case.says(Action::Continue, "sends your last prompt again, in its terminal");
    assert!(!case.offer(Action::Continue).unwrap().contains("permission"));
    let ran = Story::prompted().requests(1, &["bash"]).tool(1, "t1", "bash").done(2, "t1").error(3);
    bridged(ran, 4, Bridge::Joined).says(Action::Continue, "tells it in its terminal to go on");
    bridged(mid_tool(), 900, Bridge::Joined).refuses(Action::Continue, "still open");
    bridged(Story::prompted().answers(1, "Done."), 3, Bridge::Joined).refuses(Action::Continue, "neither denied");
    bridged(failed(), 3, Bridge::Watches).refuses(Action::Continue, "fork");
}

/// What Copilot asks about an extension is asked in its own words, and answered by nobody in its user's stead.
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
        ours.refuses(action, "only you can say that");
        Case::of(asks("other"), 3, Kind::Terminal)
            .server(ServerState::Listens)
            .refuses(action, "whether an extension may do more");
    }
}

/// A tool that reaches elsewhere has its user asked about the path first: that is what stands in the terminal's dialog, and what an
/// answer is for.
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
    assert_eq!(asks(json!(["/etc/hostname"])), path(Some("/etc/hostname")));
    for several in [json!(["/etc/hostname", "/etc/passwd"]), json!([]), json!([7]), json!("/etc"), json!(null)] {
        assert_eq!(asks(several.clone()), path(None), "no one text says all of it: {several}");
    }
}
