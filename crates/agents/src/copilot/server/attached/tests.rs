mod silence;

use super::super::fake::{FakeServer, Response, context_at, event, greeting};
use super::*;
use crate::channel::Channel;
use crate::channel::action_context::{LogView, ReportSink};
use crate::channel::connection_event::{ConnectionEvent, ConnectionEventKind};
use crate::channel::failure::FailureKind;
use crate::channel::order::{Policy, Prompt};
use crate::copilot::server::recover;
use pilotlight_core::attempts::Mark;
use pilotlight_core::form::{Form, FormAnswer};
use pilotlight_core::order::{OrderReport, Reply};
use pilotlight_core::time::Time;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::mpsc;
use tokio::time::timeout;

fn run<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

/// The default response to a call.
fn default_response(method: &str) -> Response {
    Response::Result(match method {
        "connect" => return greeting(),
        "session.resume" => json!({"sessionId": "s"}),
        "session.metadata.activity" => json!({"abortable": false, "hasActiveWork": false}),
        "session.permissions.pendingRequests" => json!({"items": []}),
        _ => json!({"success": true}),
    })
}

async fn attached(fake: &FakeServer, policy: Policy) -> (Attached, mpsc::UnboundedReceiver<ConnectionEvent>) {
    let (context, _sender) = context_at(vec![fake.endpoint.clone()], LogView::default());
    let (sender, events) = mpsc::unbounded_channel();
    let (attached, silent) =
        attach(&context.servers, &context, Keep { policy, events: sender, generation: 9 }).await.unwrap();
    silent.unwrap();
    (attached, events)
}

async fn next(events: &mut mpsc::UnboundedReceiver<ConnectionEvent>) -> ConnectionEventKind {
    let event = timeout(Duration::from_secs(30), events.recv()).await.expect("an event arrives").expect("still open");
    assert_eq!((event.generation, &*event.id), (9, "s"));
    event.kind
}

#[test]
fn case_51_an_event_during_attaching_is_not_lost() {
    run(async {
        let fake = FakeServer::start(|method, _, _| match method {
            "session.resume" => {
                Response::Events(vec![event("1", "session.idle", &json!({}))], json!({"sessionId": "s"}))
            }
            _ => default_response(method),
        })
        .await;
        let (_attached, mut events) = attached(&fake, Policy::Ask).await;
        assert_eq!(next(&mut events).await, ConnectionEventKind::Active(false));
        assert_eq!(next(&mut events).await, ConnectionEventKind::Idle);
    });
}

/// The next turn begins before the server is asked about the session's activity.
#[test]
fn a_session_that_was_briefly_idle_is_working_again() {
    run(async {
        let fake = FakeServer::start(|method, _, _| match method {
            "session.resume" => {
                Response::Events(vec![event("1", "session.idle", &json!({}))], json!({"sessionId": "s"}))
            }
            "session.metadata.activity" => Response::Result(json!({"abortable": true, "hasActiveWork": true})),
            _ => default_response(method),
        })
        .await;
        let (_attached, mut events) = attached(&fake, Policy::Observe).await;
        for kind in [
            ConnectionEventKind::Active(true),
            ConnectionEventKind::Idle,
            ConnectionEventKind::Activity,
            ConnectionEventKind::Active(true),
        ] {
            assert_eq!(next(&mut events).await, kind);
        }
    });
}

#[test]
fn a_server_that_stops_responding_is_lost() {
    run(async {
        let fake = FakeServer::start(|method, _, before| match method {
            "ping" if before > 1 => Response::Nothing,
            _ => default_response(method),
        })
        .await;
        let (_attached, mut events) = attached(&fake, Policy::Ask).await;
        assert_eq!(next(&mut events).await, ConnectionEventKind::Active(false));
        assert!(matches!(next(&mut events).await, ConnectionEventKind::Lost(Fault::Silent { .. })));
        assert_eq!(events.recv().await, None, "that was the last");
        assert_eq!(fake.called("ping"), 5, "three in a row timed out");
    });
}

/// Leaving may end the session, so a server that is briefly slow is kept.
#[test]
fn a_server_that_is_slow_once_is_kept() {
    run(async {
        let fake = FakeServer::start(|method, _, before| match method {
            "ping" if before == 1 || before == 2 => Response::Nothing,
            _ => default_response(method),
        })
        .await;
        let (_attached, mut events) = attached(&fake, Policy::Ask).await;
        assert_eq!(next(&mut events).await, ConnectionEventKind::Active(false));
        let more_pings = async {
            while fake.called("ping") < 5 {
                sleep(Duration::from_millis(10)).await;
            }
        };
        timeout(Duration::from_secs(30), more_pings).await.unwrap();
        assert_eq!(events.try_recv(), Err(mpsc::error::TryRecvError::Empty));
    });
}

/// A server does not report that a session was deleted.
#[test]
fn a_session_that_its_server_no_longer_has_is_lost() {
    run(async {
        let deleted = Arc::new(AtomicBool::new(false));
        let is_deleted = Arc::clone(&deleted);
        let fake = FakeServer::start(move |method, _, _| match method {
            "session.metadata.activity" if is_deleted.load(Ordering::SeqCst) => {
                Response::Error(-32603, "Session not found")
            }
            _ => default_response(method),
        })
        .await;
        let (attached, mut events) = attached(&fake, Policy::Ask).await;
        assert_eq!(next(&mut events).await, ConnectionEventKind::Active(false));
        // The folder may only have been moved: while the server has the session, the attachment lasts.
        attached.recheck_loaded();
        let rechecked = async {
            while fake.called("session.metadata.activity") < 4 {
                sleep(Duration::from_millis(5)).await;
            }
        };
        timeout(Duration::from_secs(20), rechecked).await.expect("each heartbeat asks again");
        while let Ok(event) = events.try_recv() {
            assert_eq!(event.kind, ConnectionEventKind::Activity);
        }
        deleted.store(true, Ordering::SeqCst);
        let lost = async {
            loop {
                if let ConnectionEventKind::Lost(fault) = next(&mut events).await {
                    break fault;
                }
            }
        };
        assert!(matches!(timeout(Duration::from_secs(20), lost).await, Ok(Fault::NotLoaded(_))));
        let left = async {
            while fake.left.load(Ordering::SeqCst) == 0 {
                sleep(Duration::from_millis(5)).await;
            }
        };
        timeout(Duration::from_secs(20), left).await.expect("its connection is closed");
    });
}

/// Case 7: an order for one turn is not applied to the next.
#[test]
fn case_7_a_prompt_is_not_sent_again_after_another_one() {
    run(async {
        let fake = FakeServer::start(|method, _, _| default_response(method)).await;
        let (attached, _events) = attached(&fake, Policy::Ask).await;
        let (context, _sender) =
            context_at(Vec::new(), LogView { prompt: Some(Mark { event: 2, at: Time(2) }), ..LogView::default() });
        let span = Duration::from_millis(10);
        let failure = recover::resend(
            &attached,
            &Prompt::Repeat("Paint it".into()),
            Some(Mark { event: 1, at: Time(1) }),
            &context,
            span,
        )
        .await
        .unwrap_err();
        assert!(
            failure.kind == FailureKind::Refused && failure.why.contains("another prompt was sent meanwhile"),
            "{failure}"
        );
        assert_eq!(fake.called("session.send"), 0);
    });
}

/// Case 185: another prompt came between our last question and our prompt, so that ours waits behind it.
#[test]
fn case_185_a_prompt_behind_another_one_is_taken_back() {
    for (ours_is_first, removed) in [(false, true), (false, false), (true, true)] {
        run(async {
            let (context, sender) = context_at(Vec::new(), LogView::default());
            let (sender, withdrawn) = (Arc::new(sender), Arc::new(Mutex::new(Value::Null)));
            let (log, was_sent, seen) = (Arc::clone(&sender), Arc::new(AtomicBool::new(false)), Arc::clone(&withdrawn));
            let fake = FakeServer::start(move |method, params, _| match method {
                "session.eventLog.tail" => Response::Result(json!({"cursor": "7"})),
                "session.eventLog.read" => {
                    let first = if ours_is_first { "ours" } else { "theirs" };
                    let events: Vec<_> = was_sent.load(Ordering::SeqCst).then_some(first).into_iter().collect();
                    let event = |id| json!({"type": "user.message", "data": {"messageId": id}});
                    Response::Result(json!({"events": events.into_iter().map(event).collect::<Vec<_>>()}))
                }
                "session.send" => {
                    was_sent.store(true, Ordering::SeqCst);
                    log.send_modify(|log_view| log_view.events += 1);
                    Response::Result(json!({"messageId": "ours"}))
                }
                "session.queue.withdrawMessage" => {
                    *seen.lock().unwrap() = params.clone();
                    Response::Result(json!({"removed": removed, "interrupted": false}))
                }
                _ => default_response(method),
            })
            .await;
            let (attached, _events) = attached(&fake, Policy::Ask).await;
            let prompt = Prompt::Repeat("Paint it".into());
            let sent = recover::resend(&attached, &prompt, None, &context, Duration::from_secs(20)).await;
            assert_eq!(fake.called("session.send"), 1);
            if ours_is_first {
                assert_eq!((sent.unwrap().as_str(), fake.called("session.queue.withdrawMessage")), ("sent", 0));
                return;
            }
            let failure = sent.unwrap_err();
            let kind = if removed { FailureKind::Refused } else { FailureKind::Unconfirmed };
            assert_eq!(failure.kind, kind, "{failure}");
            let asked = json!({"sessionId": "s", "messageId": "ours", "expectedPrompt": "Paint it"});
            assert_eq!(*withdrawn.lock().unwrap(), asked);
        });
    }
}

#[test]
fn automatic_approval_answers_each_request_once_and_only_if_allowed() {
    let asked = |id: &str, managed: bool| {
        let request = json!({"kind": "shell", "fullCommandText": "ls", "managedApprovalRequired": managed});
        event(id, "permission.requested", &json!({"requestId": id, "permissionRequest": request}))
    };
    let open = |id: &str, managed: bool| {
        let request = json!({"kind": "commands", "fullCommandText": "ls", "managedApprovalRequired": managed});
        json!({"requestId": id, "request": request})
    };
    let answered = |policy: Policy| {
        run(async {
            let (sender, mut answered) = mpsc::unbounded_channel();
            let fake = FakeServer::start(move |method, params: &Value, _| match method {
                // Two requests arrive while attaching, and the list has both and a third. One of the two requires a
                // person.
                "session.resume" => {
                    Response::Events(vec![asked("a", false), asked("m", true)], json!({"sessionId": "s"}))
                }
                "session.permissions.pendingRequests" => {
                    Response::Result(json!({"items": [open("a", false), open("b", false), open("m", true)]}))
                }
                "session.permissions.handlePendingPermissionRequest" => {
                    assert_eq!(params["result"], json!({"kind": "approve-once"}));
                    sender.send(params["requestId"].as_str().unwrap().to_owned()).unwrap();
                    default_response(method)
                }
                _ => default_response(method),
            })
            .await;
            let (attached, _events) = attached(&fake, policy).await;
            // The server answers everything still in flight before this.
            attached.link.ping(Duration::from_secs(5)).await.unwrap();
            drop(attached);
            let mut ids = Vec::new();
            while let Ok(id) = answered.try_recv() {
                ids.push(id);
            }
            ids.sort();
            ids
        })
    };
    assert_eq!(answered(Policy::ApproveAll), ["a", "b"]);
    assert!(answered(Policy::Ask).is_empty());
    assert!(answered(Policy::Observe).is_empty());
}

/// Replies to an open question on a server that responds with `response` and then sends `completed`. Returns the
/// outcome, the number of answers sent, and whether the question was shown.
async fn replied(
    response: Response,
    completed: Option<Value>,
    reply: &Reply,
) -> (Result<String, Failure>, usize, bool) {
    const ANSWER: &str = "session.ui.handlePendingUserInput";
    let asked = json!({"requestId": "r", "question": "Which color?", "choices": ["red", "blue"]});
    let log = json!({"events": [event("1", "user_input.requested", &asked)], "cursor": "1", "hasMore": false});
    let response = Mutex::new(Some(response));
    let fake = FakeServer::start(move |method, params, _| match method {
        "session.eventLog.read" => Response::Result(log.clone()),
        "session.metadata.activity" => Response::Result(json!({"abortable": true, "hasActiveWork": true})),
        ANSWER => {
            assert_eq!(params["response"], json!({"answer": "blue", "wasFreeform": false}));
            let completed = completed.iter().map(|data| event("2", "user_input.completed", data)).collect();
            match response.lock().unwrap().take() {
                Some(Response::Result(result)) => Response::Events(completed, result),
                other => other.unwrap(),
            }
        }
        _ => default_response(method),
    })
    .await;
    let (attached, _events) = attached(&fake, Policy::Ask).await;
    let (context, _sender) = context_at(Vec::new(), LogView::default());
    let shown = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&shown);
    let reports = ReportSink::to(move |report| {
        seen.fetch_or(matches!(report, OrderReport::Question(_)), Ordering::Relaxed);
    });
    let outcome = attached.reply(&context.with(reports), reply).await;
    (outcome, fake.called(ANSWER), shown.load(Ordering::Relaxed))
}

/// The second choice as the reply to the question of these tests.
fn blue() -> Reply {
    let asked = json!({"requestId": "r", "question": "Which color?", "choices": ["red", "blue"]});
    let shown = Form::read("user_input.requested", &asked).unwrap().mark();
    Reply::Give { request: "r".into(), shown, with: FormAnswer::Choice(1).into() }
}

#[test]
fn an_answer_succeeds_when_the_server_confirms_it() {
    let completed = json!({"requestId": "r", "answer": "blue", "wasFreeform": false});
    let (outcome, calls, _) = run(replied(Response::Result(json!({"success": true})), Some(completed), &blue()));
    assert_eq!((outcome, calls), (Ok("answered “blue”".to_owned()), 1));
}

#[test]
fn an_unconfirmed_answer_may_have_happened() {
    for completed in [None, Some(json!({"requestId": "r", "answer": "red", "wasFreeform": false}))] {
        let (outcome, calls, _) = run(replied(Response::Result(json!({"success": true})), completed.clone(), &blue()));
        let failure = outcome.unwrap_err();
        assert!(
            failure.kind == FailureKind::Unconfirmed
                && calls == 1
                && failure.to_string().starts_with("may have happened: "),
            "{completed:?}: {failure}"
        );
    }
    let (outcome, ..) = run(replied(Response::Nothing, None, &blue()));
    assert_eq!(outcome.unwrap_err().kind, FailureKind::Unconfirmed, "its server says nothing");
    let (outcome, ..) = run(replied(Response::Close, None, &blue()));
    assert_eq!(outcome.unwrap_err().kind, FailureKind::Unconfirmed, "its server is gone");
}

/// An event may be lost, but the server's event log still has it.
#[test]
fn a_confirmation_that_was_lost_is_read_from_the_event_log() {
    run(async {
        let asked = json!({"requestId": "r", "question": "Which color?", "choices": ["red", "blue"]});
        let completed = json!({"requestId": "r", "answer": "blue", "wasFreeform": false});
        let fake = FakeServer::start(move |method, _, before| match method {
            "session.eventLog.read" => {
                let mut events = vec![event("1", "user_input.requested", &asked)];
                events.extend((before > 0).then(|| event("2", "user_input.completed", &completed)));
                Response::Result(json!({"events": events, "cursor": "1", "hasMore": false}))
            }
            "session.metadata.activity" => Response::Result(json!({"abortable": true, "hasActiveWork": true})),
            _ => default_response(method),
        })
        .await;
        let (attached, _events) = attached(&fake, Policy::Ask).await;
        let (context, _sender) = context_at(Vec::new(), LogView::default());
        let outcome = attached.reply(&context, &blue()).await;
        assert_eq!(outcome, Ok("answered “blue”".to_owned()));
    });
}

#[test]
fn an_answer_that_the_server_refuses_did_not_happen() {
    let (outcome, ..) = run(replied(Response::Result(json!({"success": false})), None, &blue()));
    let failure = outcome.unwrap_err();
    assert!(failure.kind == FailureKind::Refused && failure.why.contains("no longer open"), "{failure}");
    let (outcome, ..) = run(replied(Response::Error(-32603, "no"), None, &blue()));
    let failure = outcome.unwrap_err();
    assert!(failure.kind == FailureKind::Failed, "{failure}");
}

#[test]
fn only_the_question_that_was_shown_is_answered_and_showing_it_answers_nothing() {
    let give =
        |request: &str, shown| Reply::Give { request: request.into(), shown, with: FormAnswer::Choice(1).into() };
    let Reply::Give { shown, .. } = blue() else { panic!() };
    for (reply, why) in [(give("r", shown + 1), "something else"), (give("x", shown), "no longer open")] {
        let (outcome, calls, was_shown) = run(replied(Response::Result(json!({"success": true})), None, &reply));
        let failure = outcome.unwrap_err();
        assert!(
            failure.kind == FailureKind::Refused && failure.why.contains(why) && calls == 0 && !was_shown,
            "{failure}"
        );
    }
    for request in [None, Some("r".to_owned())] {
        let (outcome, calls, was_shown) = run(replied(Response::Nothing, None, &Reply::Look(request)));
        assert!(outcome.is_ok() && calls == 0 && was_shown);
    }
    let (outcome, calls, was_shown) = run(replied(Response::Nothing, None, &Reply::Look(Some("x".into()))));
    assert!(outcome.unwrap_err().kind == FailureKind::Refused && calls == 0 && !was_shown);
}
