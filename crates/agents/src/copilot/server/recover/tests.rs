use super::*;
use crate::channel::action_context::{LogView, LoggedRequest, ReportSink};
use crate::channel::answering::choose;
use crate::channel::failure::{Failure, FailureKind};
use crate::channel::request::Request;
use crate::copilot::server::fake::{FakeServer, Response, context_at, greeting};
use crate::copilot::server::testing::TestContext;
use pilotlight_core::order::{Decision, LOG_DIFFERS, OrderReport, Step, Which};
use pilotlight_core::time::Time;
use pilotlight_core::turn::Call;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

fn run<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

fn request(id: &str, command: &str) -> Value {
    json!({"requestId": id, "request": {"kind": "commands", "fullCommandText": command, "intention": ""}})
}

fn open(commands: &[(&str, &str)]) -> Vec<Request> {
    commands.iter().map(|(id, command)| Request::read(&request(id, command)).unwrap()).collect()
}

fn these(ids: &[&str]) -> Which {
    Which::These(ids.iter().map(|id| (*id).to_owned()).collect())
}

fn context(fakes: &[&FakeServer]) -> (TestContext, watch::Sender<LogView>) {
    let endpoints = fakes.iter().map(|fake| fake.endpoint.clone()).collect();
    let (mut context, sender) = context_at(endpoints, LogView { turn_open: true, ..LogView::default() });
    context.owned = false;
    (context, sender)
}

#[test]
fn case_122_only_what_was_named_is_answered() {
    let (context, _sender) = context(&[]);
    let both = || open(&[("a", "one"), ("b", "two")]);
    let ids =
        |chosen: Result<Vec<Request>, Failure>| chosen.unwrap().iter().map(|r| r.id.to_string()).collect::<Vec<_>>();
    // Another request was opened since, or one of the chosen ones is gone.
    assert_eq!(ids(choose(&context, both(), &these(&["b"]))), ["b"]);
    assert_eq!(ids(choose(&context, both(), &these(&["z", "b", "a"]))), ["a", "b"]);
    for which in [&[][..], &["z"]] {
        assert!(choose(&context, both(), &these(which)).unwrap_err().kind == FailureKind::Refused);
    }
}

#[test]
fn case_107b_a_request_that_is_not_what_was_shown_is_refused() {
    let shown = |id: &str, text: &str| Which::Shown { id: id.to_owned(), text: text.to_owned() };
    let (context, _sender) = context(&[]);
    let now = || open(&[("b", "rm -rf /")]);
    // A was answered elsewhere, and B opened, while A's popup was shown.
    assert!(choose(&context, now(), &shown("a", "ls")).unwrap_err().kind == FailureKind::Refused);
    assert!(choose(&context, now(), &these(&["a"])).unwrap_err().kind == FailureKind::Refused);
    // The id matches, but the text differs by at least one character.
    for text in ["ls", "rm -rf / ", "rm -rf", ""] {
        assert!(choose(&context, now(), &shown("b", text)).unwrap_err().kind == FailureKind::Refused, "{text:?}");
    }
    assert_eq!(choose(&context, now(), &shown("b", "rm -rf /")).unwrap().len(), 1);
}

/// Whoever can write the log decides what rows, popups and scripts are told; what is run is the server's to say.
#[test]
fn case_702_a_request_that_the_log_has_in_other_words_is_not_approved() {
    run(async {
        let answered = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&answered);
        let fake = FakeServer::start(move |method, _, _| match method {
            "connect" => greeting(),
            "session.metadata.activity" => Response::Result(json!({"abortable": true, "hasActiveWork": true})),
            "session.permissions.pendingRequests" => {
                let items = [
                    request("a", "echo DANGER"),
                    json!({"requestId": "w", "request": {"kind": "write", "fileName": "/p/.bashrc", "diff": "+x"}}),
                    json!({"requestId": "s", "request": {"kind": "commands", "fullCommandText": "ls", "warning": "!"}}),
                ];
                Response::Result(json!({"items": items}))
            }
            _ => {
                count.fetch_add(1, Ordering::Relaxed);
                Response::Result(json!({"success": false}))
            }
        })
        .await;
        let logged = |id: &str, kind: &str, asks: Option<&str>, paths: &[&str]| LoggedRequest {
            id: Call::of(id),
            kind: Some(kind.into()),
            asks: asks.map(Into::into),
            paths: paths.iter().map(|path| (*path).into()).collect(),
            command: None,
        };
        let guessed =
            |command: &str| LoggedRequest { kind: None, command: Some(command.into()), ..logged("a", "", None, &[]) };
        let done = |id: &str| LogView { answered: vec![(Call::of(id), true)], ..LogView::default() };
        let has = |logged: LoggedRequest| LogView { requests: vec![logged], ..LogView::default() };
        for (id, log_view, says) in [
            ("a", has(logged("a", "shell", Some("echo benign"), &[])), "to run: echo benign"),
            ("a", has(logged("a", "shell", Some("echo  DANGER"), &[])), "to run: echo  DANGER"),
            ("a", has(logged("a", "shell", Some("echo DANGER "), &[])), "to run: echo DANGER "),
            ("a", has(logged("a", "read", Some("echo DANGER"), &[])), "to read: echo DANGER"),
            ("a", has(logged("a", "write", None, &["/p/notes"])), "to write: /p/notes"),
            ("a", has(guessed("echo benign")), "to run: echo benign"),
            ("a", done("a"), "that it was answered already"),
            ("a", LogView { shows_requests: true, ..LogView::default() }, "nothing of such a request"),
            ("w", has(logged("w", "write", None, &["/p/notes"])), "to write: /p/notes"),
            ("w", has(logged("w", "shell", Some("ls"), &[])), "to run: ls"),
            // That it also warns does not make the log's text true.
            ("s", has(logged("s", "shell", Some("echo benign"), &[])), "to run: echo benign"),
        ] {
            let reports = Arc::new(Mutex::new(Vec::new()));
            let kept = Arc::clone(&reports);
            let (mut context, _sender) = context_at(vec![fake.endpoint.clone()], log_view);
            context.owned = false;
            context.reports = ReportSink::to(move |report| kept.lock().unwrap().push(report));
            let refused = context.servers.answer(&context, &these(&[id]), &Decision::Approve).await.unwrap_err();
            assert_eq!((refused.kind, &*refused.why), (FailureKind::Refused, LOG_DIFFERS), "{says}");
            let told = reports.lock().unwrap().iter().any(|report| {
                matches!(report, OrderReport::Request(shown) if shown.in_log.as_deref() == Some(says) && !shown.text.contains(says))
            });
            assert!(told, "both texts are shown: {:?}", reports.lock().unwrap());
        }
        assert_eq!(answered.load(Ordering::Relaxed), 0);
        // What agrees is answered; a denial is, whatever the log says.
        for (id, log_view, approve) in [
            ("a", has(logged("a", "shell", Some("echo DANGER"), &[])), true),
            ("a", has(guessed("echo DANGER")), true),
            ("a", has(guessed("echo DAN")), true),
            ("w", has(logged("w", "write", None, &["/p/.bashrc"])), true),
            ("s", has(logged("s", "shell", Some("ls"), &[])), true),
            ("a", LogView::default(), true),
            ("a", has(logged("a", "shell", Some("echo benign"), &[])), false),
        ] {
            let before = answered.load(Ordering::Relaxed);
            let (mut context, _sender) = context_at(vec![fake.endpoint.clone()], log_view);
            context.owned = false;
            let decision = if approve { Decision::Approve } else { Decision::DENY };
            let gone = context.servers.answer(&context, &these(&[id]), &decision).await.unwrap_err();
            assert!(gone.why.starts_with("the request is no longer open"), "{id}: {gone}");
            assert_eq!(answered.load(Ordering::Relaxed), before + 1, "{id}");
        }
    });
}

#[test]
fn case_92_a_request_that_somebody_else_answered_is_reported() {
    run(async {
        let fake = FakeServer::start(|method, _, _| match method {
            "connect" => greeting(),
            "session.metadata.activity" => Response::Result(json!({"abortable": true, "hasActiveWork": true})),
            "session.permissions.pendingRequests" => Response::Result(json!({"items": [request("a", "ls")]})),
            _ => Response::Result(json!({"success": false})),
        })
        .await;
        let (context, _sender) = context(&[&fake]);
        let failure = context.servers.answer(&context, &these(&["a"]), &Decision::Approve).await.unwrap_err();
        assert!(failure.kind == FailureKind::Refused, "{failure}");
        assert!(failure.to_string().starts_with("the request is no longer open"), "{failure}");
    });
}

/// A request that is too large to be received is never approved unread, but can be denied, and hides no other.
#[test]
fn case_192_a_request_beside_a_huge_one_is_answered() {
    run(async {
        let answered = Arc::new(Mutex::new(Vec::<(String, String)>::new()));
        let kept = Arc::clone(&answered);
        let fake = FakeServer::start(move |method, params, _| match method {
            "connect" => greeting(),
            "session.metadata.activity" => Response::Result(json!({"abortable": true, "hasActiveWork": true})),
            "session.permissions.pendingRequests" => {
                let mut items = vec![request("huge", &"x".repeat(3 << 20)), request("small", "ls")];
                items.retain(|item| !kept.lock().unwrap().iter().any(|(id, _)| item["requestId"] == **id));
                Response::Result(json!({"items": items}))
            }
            _ => {
                let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
                kept.lock().unwrap().push((word(&params["requestId"]), word(&params["result"]["kind"])));
                Response::Result(json!({"success": true}))
            }
        })
        .await;
        let (context, _sender) = context(&[&fake]);
        let refused = context.servers.answer(&context, &these(&["huge"]), &Decision::Approve).await.unwrap_err();
        assert!(
            refused.kind == FailureKind::Refused && refused.to_string().contains("too large to be read here"),
            "{refused}"
        );
        assert!(
            context.servers.answer(&context, &these(&["huge", "small"]), &Decision::Approve).await.unwrap_err().kind
                == FailureKind::Refused,
            "none of several unread"
        );
        context.servers.answer(&context, &these(&["small"]), &Decision::Approve).await.unwrap();
        context.servers.answer(&context, &these(&["huge"]), &Decision::DENY).await.unwrap();
        let done = [("small", "approve-once"), ("huge", "reject")].map(|(id, kind)| (id.to_owned(), kind.to_owned()));
        assert_eq!(*answered.lock().unwrap(), done);
    });
}

/// Each answer uses a connection of its own, and closes it.
#[test]
fn answering_and_stopping_close_their_connections() {
    run(async {
        let fake = abortable(|_| false).await;
        let (context, _sender) = context(&[&fake]);
        context.servers.stop(&context).await.unwrap();
        context.servers.answer(&context, &these(&["a"]), &Decision::Approve).await.unwrap_err();
        let all_left = async {
            while fake.left.load(Ordering::SeqCst) < 2 {
                sleep(Duration::from_millis(5)).await;
            }
        };
        timeout(Duration::from_secs(30), all_left).await.expect("both connections are closed");
    });
}

#[test]
fn an_answer_without_effect_is_a_failure() {
    run(async {
        let fake = FakeServer::start(|method, params, _| match method {
            "connect" => greeting(),
            "session.metadata.activity" => Response::Result(json!({"abortable": true, "hasActiveWork": true})),
            "session.permissions.pendingRequests" => Response::Result(json!({"items": [request("a", "ls")]})),
            _ => {
                assert_eq!(params["result"]["kind"], "reject");
                Response::Result(json!({"success": true}))
            }
        })
        .await;
        let (mut context, _sender) = context(&[&fake]);
        let shown = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&shown);
        let reports = ReportSink::to(move |report| {
            if let OrderReport::Request(request) = report {
                seen.lock().unwrap().push(request.text);
            }
        });
        context.reports = reports;
        let failure = context.servers.answer(&context, &these(&["a"]), &Decision::DENY).await.unwrap_err();
        assert_eq!((failure.step, failure.kind), (Some(Step::Verify), FailureKind::Unconfirmed), "{failure}");
        assert!(failure.to_string().starts_with("may have happened: "), "{failure}");
        assert_eq!(*shown.lock().unwrap(), ["Run this command:\n\nls"]);
    });
}

#[test]
fn the_server_that_has_the_session_is_found_among_others() {
    run(async {
        let without = FakeServer::start(|method, _, _| match method {
            "connect" => greeting(),
            _ => Response::Error(-32603, "Session not found"),
        })
        .await;
        let with = FakeServer::start(|method, _, _| match method {
            "connect" => greeting(),
            _ => Response::Result(json!({"abortable": false, "hasActiveWork": false})),
        })
        .await;
        let gone = FakeServer::start(|_, _, _| Response::Close).await;
        let (both, _sender) = context(&[&gone, &without, &with]);
        let (link, _) = both.servers.find(&both).await.unwrap();
        assert_eq!(link.place().to_string(), format!("the Copilot server at {}", with.endpoint.address));

        let (neither, _sender) = context(&[&gone, &without]);
        let failure = neither.servers.find(&neither).await.unwrap_err();
        assert_eq!((failure.step, failure.faults.len()), (Some(Step::Attach), 2));
        assert!(failure.to_string().starts_with("connecting failed: the Copilot server at"), "{failure}");
        let (none, _sender) = context(&[]);
        assert!(none.servers.find(&none).await.unwrap_err().kind == FailureKind::Refused);
    });
}

/// A server that accepts every abort. `busy` returns whether it still works after that many.
async fn abortable(busy: impl Fn(usize) -> bool + Send + Sync + 'static) -> FakeServer {
    let aborts = AtomicUsize::new(0);
    FakeServer::start(move |method, _, _| match method {
        "connect" => greeting(),
        "session.abort" => {
            aborts.fetch_add(1, Ordering::SeqCst);
            Response::Result(json!({"success": true}))
        }
        _ => Response::Result(json!({"abortable": true, "hasActiveWork": busy(aborts.load(Ordering::SeqCst))})),
    })
    .await
}

#[test]
fn a_stop_is_seen_at_the_server_or_on_disk() {
    run(async {
        let fake = abortable(|aborts| aborts == 0).await;
        let (by_server, _sender) = context(&[&fake]);
        assert_eq!(by_server.servers.stop(&by_server).await.unwrap(), "stopped");

        // Background work continues, but the log shows that the turn was aborted.
        let fake = abortable(|_| true).await;
        let (by_disk, log_view) = context(&[&fake]);
        let by_disk = by_disk.at_steps(move |step| {
            if step == Step::Abort {
                log_view.send_modify(|log_view| log_view.aborted = Some(Time(1)));
            }
        });
        assert_eq!(by_disk.servers.stop(&by_disk).await.unwrap(), "stopped");
    });
}

/// Background work has no turn that could end.
#[test]
fn a_stop_of_background_work_is_seen_at_the_server() {
    run(async {
        let fake = abortable(|_| true).await;
        let (context, log_view) = context(&[&fake]);
        log_view.send_modify(|log_view| log_view.turn_open = false);
        let failure = context.servers.stop(&context).await.unwrap_err();
        assert_eq!(failure.step, Some(Step::Verify), "{failure}");
    });
}

#[test]
fn a_stop_without_effect_names_what_to_do_next() {
    run(async {
        let fake = abortable(|_| true).await;
        let (context, _sender) = context(&[&fake]);
        let failure = context.servers.stop(&context).await.unwrap_err();
        assert_eq!(failure.step, Some(Step::Verify));
        assert!(failure.to_string().contains("reconnect the session, or end its process"), "{failure}");
    });
}
