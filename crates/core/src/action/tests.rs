use super::*;
use crate::agent::Agent;
use crate::attempts::Mark;
use crate::limits::Limits;
use crate::question::Question;
use crate::session::{BridgeSetup, NoAnswer, Supervised};
use crate::time::{Moment, Span, Time};
use crate::turn::{Closed, DENIED, Ending, Request, Turn};
use crate::verdict::Asking;
use crate::verdict::hook_report::{HookActivity, HookReport};
use crate::verdict::reported_state::{ReportedState, State, Wait};
use crate::words::offer::{Sends, Way};
use crate::words::refusal::Place;

const AT: Moment = Moment::of(Time(1_763_700_000_000));
const ALIVE: Owner = Owner::Alive { pid: 7, started: None };
const OPENED: Owner = Owner::Opened { pid: 7, started: None };
const GONE: Owner = Owner::Gone { pid: 7, at: None };

fn agent() -> Agent {
    Agent::reported("Robot").unwrap()
}

/// A session in a terminal whose process lives and has no server, with this difference.
fn with(change: impl FnOnce(&mut Session)) -> Session {
    let mut session = Session::new(agent(), "36535f61-5c7b-4f09-a70b-2f8aed970001");
    session.observed.owner = ALIVE;
    session.observed.about.kind = Kind::Terminal;
    session.control.server = ServerState::NotListening;
    session.observed.facts.marks.prompt = Some(Mark { event: 1, at: AT.wall });
    change(&mut session);
    session
}

fn turn() -> Option<Turn> {
    Some(Turn::new(AT, true, true))
}

fn request(kind: &str) -> Request {
    Request::of_kind("r", kind, AT)
}

fn attach() -> Refusal {
    Refusal::InBackground { attach: "robot attach".into() }
}

fn supervised(session: &mut Session) {
    session.observed.supervised = Some(Supervised { attach: "robot attach".into(), stop: "robot stop".into() });
}

/// What an agent's sessions allow that takes no orders, and what is said instead.
#[test]
fn an_agent_that_takes_no_orders_leaves_the_process_and_the_terminal() {
    let unreachable = |instead| Refusal::Unreachable { instead, remedy: Remedy::None };
    let no_orders = |resumable| Refusal::NoOrders { agent: agent(), resumable };
    let stop = Refusal::Supervised { stop: "robot stop".into() };
    let expected = |session: fn(&mut Session), expected: &[(Action, Result<Does, Refusal>)]| {
        let session = with(|it| {
            it.observed.allows = Allows::Process;
            session(it);
        });
        for (action, result) in expected {
            assert_eq!(&offer(*action, &session, Status::Idle), result, "{action:?} of {session:?}");
        }
    };
    let orders = [Action::Continue, Action::Resend, Action::Reconnect];
    let answers = [Action::Approve, Action::Deny, Action::Answer];
    let none = |actions: &[Action], why: Refusal| -> Vec<_> {
        actions.iter().map(|&action| (action, Err(why.clone()))).collect()
    };
    expected(|_| (), &none(&orders, no_orders(false)));
    expected(|_| (), &[(Action::LetAnswer, Err(Refusal::OnlyCopilot))]);
    let only_there = |remedy| Refusal::AnswerOnlyThere { agent: agent(), remedy };
    expected(|_| (), &none(&answers, only_there(Remedy::Bridge)));
    expected(|it| it.control.bridge_setup = BridgeSetup::Installed, &none(&answers, only_there(Remedy::None)));
    let alive = [
        (Action::Stop, Err(Refusal::StopOnlyThere { agent: agent() })),
        (Action::Detach, Err(Refusal::NotAttached)),
        (Action::End, Ok(Does::Ends { pid: 7, tool: false })),
        (Action::ForceQuit, Err(Refusal::NeverKilled)),
        (Action::Resume, Err(Refusal::Runs { pid: 7 })),
        (Action::ShowTerminal, Ok(Does::ShowsTerminal)),
    ];
    expected(|_| (), &alive);
    // A program runs it.
    let of_program = |it: &mut Session| it.observed.about.kind = Kind::Sdk;
    expected(of_program, &none(&answers, unreachable(Instead::AnswerThere)));
    expected(of_program, &[(Action::Stop, Err(unreachable(Instead::StopThere)))]);
    expected(of_program, &none(&[Action::End, Action::ForceQuit], Refusal::NoTerminal { pid: 7 }));
    expected(of_program, &[(Action::ShowTerminal, Err(Refusal::OfProgram))]);
    // What a supervisor would start again is neither ended nor resumed, even if its process is gone.
    expected(supervised, &none(&answers, attach()));
    expected(supervised, &none(&[Action::Stop, Action::ShowTerminal], attach()));
    expected(supervised, &none(&[Action::End, Action::Resume, Action::ForceQuit], stop));
    expected(supervised, &none(&orders, no_orders(false)));
    let supervised_and_gone = |it: &mut Session| {
        supervised(it);
        it.observed.owner = GONE;
    };
    expected(supervised_and_gone, &none(&orders, no_orders(false)));
    expected(supervised_and_gone, &[(Action::Stop, Err(attach()))]);
    // Nobody runs it: what an order would have done, a resumed session can be told.
    let gone = |it: &mut Session| it.observed.owner = GONE;
    expected(gone, &none(&orders, no_orders(true)));
    expected(gone, &[(Action::Resume, Ok(Does::Recovers { by: Way::Resume }))]);
    expected(gone, &[(Action::Stop, Err(Refusal::NothingToStop))]);
    expected(gone, &none(&[Action::End, Action::ForceQuit], Refusal::NothingToEnd));
}

/// What a session that is answered over its hooks, and in its terminal, says where no hook asks.
#[test]
fn case_757_what_no_hook_asks_is_left_to_the_terminal_with_its_reason() {
    let refused = |change: &dyn Fn(&mut Session)| {
        let mut session = with(|it| it.observed.allows = Allows::Process);
        session.control.bridge_setup = BridgeSetup::Installed;
        let state = State::Waiting(Wait::Permission);
        session.observed.reported_state = Some(ReportedState { state, since: AT, by: "it".into(), waiting_tool: None });
        (session.observed.facts.turn, session.observed.facts.turn_id) = (turn(), Some("turn".into()));
        change(&mut session);
        offer(Action::Approve, &session, Status::NeedsPermission).unwrap_err()
    };
    assert_eq!(refused(&|_| ()), Refusal::NoHook);
    let untried = Refusal::UntriedHook { agent: agent(), release: "9.9".into() };
    assert_eq!(refused(&|it| it.observed.untried = Some("9.9".into())), untried);
    let not_installed = |it: &mut Session| it.control.bridge_setup = BridgeSetup::NotInstalled;
    let only_there = Refusal::AnswerOnlyThere { agent: agent(), remedy: Remedy::Bridge };
    assert_eq!(refused(&not_installed), only_there);
    let answered = |it: &mut Session| it.control.answered_there = Some("turn".into());
    assert_eq!(refused(&answered), Refusal::NoHook, "it asks again");
    let goes_on = |it: &mut Session| {
        it.observed.reported_state.as_mut().unwrap().state = State::Busy;
        answered(it);
    };
    assert_eq!(refused(&goes_on), Refusal::AnsweredThere);
    let later = |it: &mut Session| {
        goes_on(it);
        it.observed.facts.turn_id = Some("another".into());
    };
    assert_ne!(refused(&later), Refusal::AnsweredThere);
    // A hook asks.
    let mut session = with(|it| it.observed.allows = Allows::Process);
    session.control.bridge = Some(Bridge::Elevated);
    session.observed.facts.requests.push(request("shell"));
    let approves = Ok(Does::Answers { verb: "approves", open: 1 });
    assert_eq!(offer(Action::Approve, &session, Status::NeedsPermission), approves);
}

/// A session that is known by its reports alone is answered over its bridge, if it has one, and nothing else is done with it.
#[test]
fn case_784_what_a_bridge_asks_of_a_session_that_is_reported_is_answered_and_no_more() {
    let why = || "only its hook is known".into();
    let reported = |change: &dyn Fn(&mut Session)| {
        let mut session = with(|it| it.observed.allows = Allows::Nothing { why: why() });
        let said = HookActivity::Blocked;
        session.observed.hook_report =
            Some(HookReport { said, reason: None, since: AT.wall, at: AT, has_worked: true });
        change(&mut session);
        session
    };
    let offered = |action, change: &dyn Fn(&mut Session)| {
        let session = reported(change);
        let (row, _) = session.row(AT.plus(Span::minutes(60)), &Limits::default());
        (row.status, offer(action, &session, row.status))
    };
    let bridged = |it: &mut Session| {
        it.control.bridge = Some(Bridge::Elevated);
        it.observed.facts.requests.push(request("shell"));
    };
    let approves = Ok(Does::Answers { verb: "approves", open: 1 });
    assert_eq!(offered(Action::Approve, &bridged), (Status::NeedsPermission, approves), "it does not wear off");
    let read_only = || Err(Refusal::ReadOnly { why: why() });
    for action in [Action::Stop, Action::End, Action::Resume, Action::Continue, Action::LetAnswer] {
        assert_eq!(offered(action, &bridged).1, read_only(), "{action:?}");
    }
    assert_eq!(offered(Action::Approve, &|_| ()), (Status::Quiet, read_only()));
    let asks = |it: &mut Session| {
        bridged(it);
        it.observed.facts.requests.clear();
        let question = Question { id: None, text: "Which?".into(), choices: Vec::new() };
        it.liveness.questions.push(Asking { question, since: AT.wall, form: Err("it is odd".into()) });
    };
    let odd = Err(Refusal::Unanswerable { why: "it is odd".into() });
    assert_eq!(offered(Action::Answer, &asks), (Status::NeedsInput, odd));
    let answered = |it: &mut Session| it.control.answered_there = Some("".into());
    assert_eq!(offered(Action::Deny, &answered).1, Err(Refusal::AnsweredThere));
}

#[test]
fn what_is_allowed_limits_the_actions_but_never_the_look() {
    let offered = |change: fn(&mut Session), action| offer(action, &with(change), Status::Idle);
    let nothing = |it: &mut Session| it.observed.allows = Allows::Nothing { why: "it is old".into() };
    let read_only = || Err(Refusal::ReadOnly { why: "it is old".into() });
    assert_eq!(offered(nothing, Action::End), read_only());
    assert_eq!(offered(nothing, Action::ShowTerminal), Ok(Does::ShowsTerminal));
    let only = |it: &mut Session| {
        it.observed.allows = Allows::Only { actions: [Action::End].as_slice().into(), why: "it is old".into() }
    };
    assert_eq!(offered(only, Action::End), Ok(Does::Ends { pid: 7, tool: false }));
    assert_eq!(offered(only, Action::Stop), read_only());
    let no_answer = NoAnswer { file_system: "nfs".into(), since: AT, is_behind: false };
    let silent = |it: &mut Session| {
        it.no_answer = Some(NoAnswer { file_system: "nfs".into(), since: AT, is_behind: false });
        it.control.server = ServerState::Attached;
    };
    assert_eq!(offered(silent, Action::End), Err(Refusal::Unanswering { no_answer }));
    assert_eq!(offered(silent, Action::ShowTerminal), Ok(Does::ShowsTerminal));
    assert_eq!(offered(silent, Action::Detach), Ok(Does::Detaches));
    let busy = |it: &mut Session| it.control.under_way = Some(Action::Stop);
    assert_eq!(offered(busy, Action::End), Err(Refusal::UnderWay { action: Action::Stop }));
    assert_eq!(offered(busy, Action::ShowTerminal), Ok(Does::ShowsTerminal));
}

#[test]
fn to_detach_ends_a_server_of_our_own() {
    for (server, expected) in [
        (ServerState::Hosted(9), Ok(Does::EndsHosting)),
        (ServerState::Attached, Ok(Does::Detaches)),
        (ServerState::Listening, Err(Refusal::NotAttached)),
    ] {
        assert_eq!(offer(Action::Detach, &with(|it| it.control.server = server), Status::Idle), expected);
    }
}

#[test]
fn a_terminal_is_shown_unless_its_process_serves_all_or_cannot_be_shown() {
    let shown = |change: fn(&mut Session)| offer(Action::ShowTerminal, &with(change), Status::Idle);
    assert_eq!(shown(|it| it.observed.is_served = true), Err(Refusal::ServesTerminals { pid: 7 }));
    assert_eq!(
        shown(|it| it.terminal = Some((7, Some("it has none".into())))),
        Err(Refusal::NotShown { why: "it has none".into() })
    );
    // That was said of the process before.
    assert_eq!(shown(|it| it.terminal = Some((6, Some("it has none".into())))), Ok(Does::ShowsTerminal));
    assert_eq!(shown(|it| it.observed.owner = GONE), Err(Refusal::NoProcess));
}

#[test]
fn what_cannot_be_stopped_from_here_is_stopped_where_it_runs() {
    let stopped = |kind, bridge| {
        let session = with(|it| {
            (it.observed.about.kind, it.control.bridge) = (kind, bridge);
            it.observed.facts.turn = turn();
        });
        offer(Action::Stop, &session, Status::Working)
    };
    let press_esc = Refusal::Unreachable { instead: Instead::PressEsc, remedy: Remedy::Bridge };
    assert_eq!(stopped(Kind::Terminal, None), Err(press_esc));
    assert_eq!(stopped(Kind::Sdk, None), Err(Refusal::NoPort { instead: Instead::StopThere, pid: 7 }));
    assert_eq!(stopped(Kind::Terminal, Some(Bridge::Joined)), Ok(Does::Stops { even_if_waiting: false }));
}

#[test]
fn only_a_plain_terminal_is_advised_to_have_a_bridge() {
    for (owner, kind, server, advised) in [
        (ALIVE, Kind::Terminal, ServerState::NotListening, Remedy::Bridge),
        (ALIVE, Kind::Terminal, ServerState::Listening, Remedy::None),
        (ALIVE, Kind::Sdk, ServerState::NotListening, Remedy::None),
        (GONE, Kind::Terminal, ServerState::NotListening, Remedy::None),
    ] {
        let session = with(|it| {
            (it.observed.owner, it.observed.about.kind, it.control.server) = (owner, kind, server);
        });
        assert_eq!(reach::remedy(&session), advised, "{session:?}");
    }
    let names_actions = with(|it| {
        it.observed.allows = Allows::Only { actions: [Action::End].as_slice().into(), why: "it is old".into() }
    });
    assert_eq!(reach::remedy(&names_actions), Remedy::None);
}

/// What is advised lifts the refusal: nobody is told to install what is installed.
#[test]
fn case_559_a_terminal_without_a_bridge_is_advised_by_what_is_known_of_bridges() {
    let plain = |setup| with(|it| (it.control.server, it.control.bridge_setup) = (ServerState::NotListening, setup));
    for (setup, words) in [
        (BridgeSetup::NotInstalled, "`pilotlight bridge install` makes it possible here"),
        (BridgeSetup::Installed, "restart the session to connect its bridge"),
        (BridgeSetup::Unheard, "the bridge answers only while `pilotlight` runs"),
    ] {
        let why = offer(Action::LetAnswer, &plain(setup), Status::Idle).unwrap_err().to_string();
        assert!(why.contains(words), "{why}");
        assert_eq!(why.contains("there is no bridge"), setup != BridgeSetup::Unheard, "{why}");
        assert_eq!(why.contains("bridge install"), setup == BridgeSetup::NotInstalled, "{why}");
    }
}

#[test]
fn a_request_is_answered_as_was_said() {
    let session = with(|it| {
        it.control.bridge = Some(Bridge::Elevated);
        it.observed.facts.requests.push(request("shell"));
    });
    for (action, verb) in [(Action::Approve, "approves"), (Action::Deny, "denies")] {
        assert_eq!(offer(action, &session, Status::NeedsPermission), Ok(Does::Answers { verb, open: 1 }));
    }
}

/// The question would take the keys meant for what is open in the terminal.
#[test]
fn it_is_asked_to_let_answer_only_where_nothing_else_is_open() {
    let asked = |change: fn(&mut Session)| {
        let session = with(|it| {
            it.control.bridge = Some(Bridge::Joined);
            change(it);
        });
        offer(Action::LetAnswer, &session, Status::Idle)
    };
    assert_eq!(asked(|_| ()), Ok(Does::AsksThere));
    let open: [fn(&mut Session); 3] = [
        |it| it.observed.facts.turn = turn(),
        |it| it.observed.facts.requests.push(request("shell")),
        |it| {
            it.liveness.has_active_work = Some(true);
            let question = Question::told(None, "Which?", &[]);
            it.liveness.questions.push(Asking { question, since: AT.wall, form: Err("unseen".into()) });
        },
    ];
    for change in open {
        assert_eq!(asked(change), Err(Refusal::WouldInterrupt));
    }
    let at_server = |it: &mut Session| (it.control.bridge, it.control.server) = (None, ServerState::Listening);
    assert_eq!(asked(at_server), Err(Refusal::AtServer));
    assert_eq!(asked(|it| it.control.bridge = None), Err(Refusal::NoBridge { remedy: Remedy::Bridge }));
}

#[test]
fn only_a_program_s_session_that_nobody_runs_is_hosted() {
    for (owner, kind, server, hosted) in [
        (GONE, Kind::Sdk, ServerState::Unknown, true),
        (GONE, Kind::Sdk, ServerState::Attached, false),
        (GONE, Kind::Terminal, ServerState::Unknown, false),
        (ALIVE, Kind::Sdk, ServerState::Unknown, false),
    ] {
        let session = with(|it| {
            (it.observed.owner, it.observed.about.kind, it.control.server) = (owner, kind, server);
        });
        assert_eq!(is_hosting(&session), hosted, "{session:?}");
    }
}

#[test]
fn an_ended_session_was_cut_off_by_any_of_three_things() {
    let cut_off = |change: fn(&mut Session)| is_cut_off(&with(change), Status::Ended);
    assert!(!cut_off(|_| ()));
    assert!(cut_off(|it| it.observed.facts.turn = turn()));
    assert!(cut_off(|it| (0..DENIED).for_each(|_| it.observed.facts.denials.push(AT, true))));
    let shut_down = |it: &mut Session, unfinished: Vec<Box<str>>| {
        let ending = Ending::Shutdown { unfinished, error: None };
        it.observed.facts.closed = Some(Closed { ending, at: AT, asks: false });
    };
    assert!(is_cut_off(&with(|it| shut_down(it, vec!["bash".into()])), Status::Ended));
    assert!(!is_cut_off(&with(|it| shut_down(it, Vec::new())), Status::Ended));
}

#[test]
fn who_has_it_open_may_be_about_to_type() {
    let sent = |server| {
        let session = with(|it| (it.observed.owner, it.control.server) = (OPENED, server));
        offer(Action::Continue, &session, Status::Failed)
    };
    assert_eq!(sent(ServerState::Listening), Err(Refusal::Opened { pid: 7 }));
    assert_eq!(
        sent(ServerState::Attached),
        Ok(Does::Continues { by: None, after_turn: false, sends: Sends::Prompt }),
        "its server queues what is sent"
    );
}

#[test]
fn only_a_denied_turn_that_is_still_open_is_waited_for() {
    for (status, turn, waited_for) in
        [(Status::PermissionLost, turn(), true), (Status::PermissionLost, None, false), (Status::Stuck, turn(), false)]
    {
        let session = with(|it| (it.control.server, it.observed.facts.turn) = (ServerState::Attached, turn));
        let continues = Does::Continues { by: None, after_turn: waited_for, sends: Sends::Prompt };
        assert_eq!(offer(Action::Continue, &session, status), Ok(continues), "{status:?}");
    }
}

#[test]
fn a_question_in_a_terminal_that_only_watches_is_answered_there() {
    let session = with(|it| {
        (it.control.bridge, it.control.release) = (Some(Bridge::Watches), Some("9.9".into()));
        it.observed.facts.turn = turn();
        let question = Question::told(None, "Which?", &[]);
        it.liveness.questions.push(Asking { question, since: AT.wall, form: Err("unseen".into()) });
    });
    let remedy = Remedy::Release { release: "9.9".into() };
    let expected = Err(Refusal::AnswerIn { place: Place::Terminal, remedy });
    assert_eq!(offer(Action::Answer, &session, Status::NeedsInput), expected);
}
