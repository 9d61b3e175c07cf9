use super::super::fake::{Fake, Say, event, greeting, site_at};
use super::*;
use crate::agent::copilot::server::recover::Sight;
use crate::core::attempts::Mark;
use crate::core::form::{Form, With};
use crate::core::order::Reply;
use crate::core::time::Time;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::timeout;

fn run<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

/// What every server answers here, with what is special about one.
fn answers(method: &str) -> Say {
    Say::Answer(match method {
        "connect" => return greeting(),
        "session.resume" => json!({"sessionId": "s"}),
        "session.metadata.activity" => json!({"abortable": false, "hasActiveWork": false}),
        "session.permissions.pendingRequests" => json!({"items": []}),
        _ => json!({"success": true}),
    })
}

async fn attached(fake: &Fake, policy: Policy) -> (Attached, mpsc::UnboundedReceiver<Event>) {
    let (site, _sender) = site_at(vec![fake.endpoint.clone()], Sight::default());
    let (events, heard) = mpsc::unbounded_channel();
    (attach(&site, policy, events, 9, &|_, _| ()).await.unwrap(), heard)
}

async fn next(heard: &mut mpsc::UnboundedReceiver<Event>) -> What {
    let event = timeout(Duration::from_secs(30), heard.recv()).await.expect("an event comes").expect("events come");
    assert_eq!((event.generation, &*event.id), (9, "s"));
    event.what
}

#[test]
fn case_51_an_event_that_comes_while_attaching_is_not_lost() {
    run(async {
        let fake = Fake::start(|method, _, _| match method {
            "session.resume" => Say::Events(vec![event("1", "session.idle", &json!({}))], json!({"sessionId": "s"})),
            _ => answers(method),
        })
        .await;
        let (_attached, mut heard) = attached(&fake, Policy::Ask).await;
        assert_eq!(next(&mut heard).await, What::Active(false));
        assert_eq!(next(&mut heard).await, What::Idle);
    });
}

/// Its next turn begins before its server is asked what it does.
#[test]
fn a_session_that_was_idle_for_a_moment_is_at_work_again() {
    run(async {
        let fake = Fake::start(|method, _, _| match method {
            "session.resume" => Say::Events(vec![event("1", "session.idle", &json!({}))], json!({"sessionId": "s"})),
            "session.metadata.activity" => Say::Answer(json!({"abortable": true, "hasActiveWork": true})),
            _ => answers(method),
        })
        .await;
        let (_attached, mut heard) = attached(&fake, Policy::Observe).await;
        for what in [What::Active(true), What::Idle, What::Happened, What::Active(true)] {
            assert_eq!(next(&mut heard).await, what);
        }
    });
}

#[test]
fn a_server_that_stops_answering_is_lost() {
    run(async {
        let fake = Fake::start(|method, _, before| match method {
            "ping" if before > 1 => Say::Nothing,
            _ => answers(method),
        })
        .await;
        let (_attached, mut heard) = attached(&fake, Policy::Ask).await;
        assert_eq!(next(&mut heard).await, What::Active(false));
        assert!(matches!(next(&mut heard).await, What::Lost(Fault::Silent { .. })));
        assert_eq!(heard.recv().await, None, "that was the last");
        assert_eq!(fake.called("ping"), 5, "it is asked three times in a row");
    });
}

/// To leave may end the session, so a server that is held up for a moment is no reason to.
#[test]
fn a_server_that_is_slow_for_once_is_kept() {
    run(async {
        let fake = Fake::start(|method, _, before| match method {
            "ping" if before == 1 || before == 2 => Say::Nothing,
            _ => answers(method),
        })
        .await;
        let (_attached, mut heard) = attached(&fake, Policy::Ask).await;
        assert_eq!(next(&mut heard).await, What::Active(false));
        let asked_on = async {
            while fake.called("ping") < 5 {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        timeout(Duration::from_secs(30), asked_on).await.unwrap();
        assert_eq!(heard.try_recv(), Err(mpsc::error::TryRecvError::Empty));
    });
}

/// A server tells nobody that a session was deleted.
#[test]
fn a_session_that_its_server_has_not_any_more_is_lost() {
    run(async {
        let deleted = Arc::new(std::sync::atomic::AtomicBool::new(false));
        let asked = Arc::clone(&deleted);
        let fake = Fake::start(move |method, _, _| match method {
            "session.metadata.activity" if asked.load(std::sync::atomic::Ordering::SeqCst) => {
                Say::Error(-32603, "Session not found")
            }
            _ => answers(method),
        })
        .await;
        let (attached, mut heard) = attached(&fake, Policy::Ask).await;
        assert_eq!(next(&mut heard).await, What::Active(false));
        // The folder may only have been moved: where the server has the session, nothing is over.
        attached.doubt();
        let looked = async {
            while fake.called("session.metadata.activity") < 4 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        timeout(Duration::from_secs(20), looked).await.expect("it is asked again with each heartbeat");
        while let Ok(event) = heard.try_recv() {
            assert_eq!(event.what, What::Happened);
        }
        deleted.store(true, std::sync::atomic::Ordering::SeqCst);
        let lost = async {
            loop {
                if let What::Lost(fault) = next(&mut heard).await {
                    break fault;
                }
            }
        };
        assert!(matches!(timeout(Duration::from_secs(20), lost).await, Ok(Fault::NotLoaded(_))));
        let left = async {
            while fake.left.load(std::sync::atomic::Ordering::SeqCst) == 0 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        timeout(Duration::from_secs(20), left).await.expect("its connection is closed");
    });
}

/// Case 7: what was decided for one turn is not done to the next.
#[test]
fn case_7_a_prompt_is_not_sent_again_after_another_one() {
    run(async {
        let fake = Fake::start(|method, _, _| answers(method)).await;
        let (attached, _heard) = attached(&fake, Policy::Ask).await;
        let (site, _sender) =
            site_at(Vec::new(), Sight { prompt: Some(Mark { event: 2, at: Time(2) }), ..Sight::default() });
        let span = Duration::from_millis(10);
        let failure = recover::resend(
            &attached,
            &recover::Prompt::Again("Paint it".into()),
            Some(Mark { event: 1, at: Time(1) }),
            &site,
            span,
            &|_, _| (),
        )
        .await
        .unwrap_err();
        assert!(failure.refused && failure.why.contains("another prompt was sent meanwhile"), "{failure}");
        assert_eq!(fake.called("session.send"), 0);
    });
}

#[test]
fn what_is_approved_by_itself_is_approved_once_and_only_where_that_is_allowed() {
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
            let fake = Fake::start(move |method, params: &Value, _| match method {
                // Two are asked while we attach, and are in the list as well; the list has one more, and one for a person.
                "session.resume" => Say::Events(vec![asked("a", false), asked("m", true)], json!({"sessionId": "s"})),
                "session.permissions.pendingRequests" => {
                    Say::Answer(json!({"items": [open("a", false), open("b", false), open("m", true)]}))
                }
                "session.permissions.handlePendingPermissionRequest" => {
                    assert_eq!(params["result"], json!({"kind": "approve-once"}));
                    sender.send(params["requestId"].as_str().unwrap().to_owned()).unwrap();
                    answers(method)
                }
                _ => answers(method),
            })
            .await;
            let (attached, _heard) = attached(&fake, policy).await;
            // Whatever is still under way is answered before this.
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

/// A question that is open when we come, its server's answer to ours, and what it tells of the end.
async fn replied(answer: Say, told: Option<Value>, reply: &Reply) -> (Result<String, Failure>, usize, bool) {
    const ANSWER: &str = "session.ui.handlePendingUserInput";
    let asked = json!({"requestId": "r", "question": "Which color?", "choices": ["red", "blue"]});
    let log = json!({"events": [event("1", "user_input.requested", &asked)], "cursor": "1", "hasMore": false});
    let (answer, said) = (Mutex::new(Some(answer)), told);
    let fake = Fake::start(move |method, params, _| match method {
        "session.eventLog.read" => Say::Answer(log.clone()),
        "session.metadata.activity" => Say::Answer(json!({"abortable": true, "hasActiveWork": true})),
        ANSWER => {
            assert_eq!(params["response"], json!({"answer": "blue", "wasFreeform": false}));
            let told = said.iter().map(|data| event("2", "user_input.completed", data)).collect();
            match answer.lock().unwrap().take() {
                Some(Say::Answer(result)) => Say::Events(told, result),
                other => other.unwrap(),
            }
        }
        _ => answers(method),
    })
    .await;
    let (attached, _heard) = attached(&fake, Policy::Ask).await;
    let (site, _sender) = site_at(Vec::new(), Sight::default());
    let posed = std::sync::atomic::AtomicBool::new(false);
    let pose = |_: Form| posed.store(true, std::sync::atomic::Ordering::Relaxed);
    let came = attached.reply(QuestionAnswer { site: &site, reply, pose: &pose, steps: &|_, _| () }).await;
    (came, fake.called(ANSWER), posed.into_inner())
}

/// The open question of these tests, answered by its second choice.
fn blue() -> Reply {
    let asked = json!({"requestId": "r", "question": "Which color?", "choices": ["red", "blue"]});
    let shown = Form::read("user_input.requested", &asked).unwrap().mark();
    Reply::Give { request: "r".into(), shown, with: With::Choice(1) }
}

#[test]
fn an_answer_is_done_when_its_server_tells_of_it() {
    let told = json!({"requestId": "r", "answer": "blue", "wasFreeform": false});
    let (came, calls, _) = run(replied(Say::Answer(json!({"success": true})), Some(told), &blue()));
    assert_eq!((came, calls), (Ok("answered".to_owned()), 1));
}

#[test]
fn an_answer_that_was_taken_and_is_not_told_of_may_have_happened() {
    for told in [None, Some(json!({"requestId": "r", "answer": "red", "wasFreeform": false}))] {
        let (came, calls, _) = run(replied(Say::Answer(json!({"success": true})), told.clone(), &blue()));
        let failure = came.unwrap_err();
        assert!(
            failure.sent && calls == 1 && failure.to_string().starts_with("may have happened: "),
            "{told:?}: {failure}"
        );
    }
    let (came, ..) = run(replied(Say::Nothing, None, &blue()));
    assert!(came.unwrap_err().sent, "its server says nothing");
    let (came, ..) = run(replied(Say::Close, None, &blue()));
    assert!(came.unwrap_err().sent, "its server is gone");
}

/// An event may be lost on its way; the server's log of events has it all the same.
#[test]
fn an_answer_whose_end_was_not_heard_is_looked_for() {
    run(async {
        let asked = json!({"requestId": "r", "question": "Which color?", "choices": ["red", "blue"]});
        let told = json!({"requestId": "r", "answer": "blue", "wasFreeform": false});
        let fake = Fake::start(move |method, _, before| match method {
            "session.eventLog.read" => {
                let mut events = vec![event("1", "user_input.requested", &asked)];
                events.extend((before > 0).then(|| event("2", "user_input.completed", &told)));
                Say::Answer(json!({"events": events, "cursor": "1", "hasMore": false}))
            }
            "session.metadata.activity" => Say::Answer(json!({"abortable": true, "hasActiveWork": true})),
            _ => answers(method),
        })
        .await;
        let (attached, _heard) = attached(&fake, Policy::Ask).await;
        let (site, _sender) = site_at(Vec::new(), Sight::default());
        let came =
            attached.reply(QuestionAnswer { site: &site, reply: &blue(), pose: &|_| (), steps: &|_, _| () }).await;
        assert_eq!(came, Ok("answered".to_owned()));
    });
}

#[test]
fn an_answer_that_its_server_refuses_did_not_happen() {
    let (came, ..) = run(replied(Say::Answer(json!({"success": false})), None, &blue()));
    let failure = came.unwrap_err();
    assert!(failure.refused && !failure.sent && failure.why.contains("no longer open"), "{failure}");
    let (came, ..) = run(replied(Say::Error(-32603, "no"), None, &blue()));
    let failure = came.unwrap_err();
    assert!(!failure.refused && !failure.sent, "{failure}");
}

#[test]
fn only_the_question_that_was_shown_is_answered_and_a_look_answers_nothing() {
    let give = |request: &str, shown| Reply::Give { request: request.into(), shown, with: With::Choice(1) };
    let Reply::Give { shown, .. } = blue() else { panic!() };
    for (reply, why) in [(give("r", shown + 1), "something else"), (give("x", shown), "no longer open")] {
        let (came, calls, posed) = run(replied(Say::Answer(json!({"success": true})), None, &reply));
        let failure = came.unwrap_err();
        assert!(failure.refused && failure.why.contains(why) && calls == 0 && !posed, "{failure}");
    }
    for request in [None, Some("r".to_owned())] {
        let (came, calls, posed) = run(replied(Say::Nothing, None, &Reply::Look(request)));
        assert!(came.is_ok() && calls == 0 && posed);
    }
    let (came, calls, posed) = run(replied(Say::Nothing, None, &Reply::Look(Some("x".into()))));
    assert!(came.unwrap_err().refused && calls == 0 && !posed);
}
