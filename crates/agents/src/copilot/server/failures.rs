//! Servers that fail at each call of every operation: each time, the operation must fail with a message, in time, and
//! never succeed.

use super::attached::{Attached, attach};
use super::fake::{FakeServer, Response, context_at, greeting};
use super::recover;
use crate::channel::action_context::LogView;
use crate::channel::failure::Failure;
use crate::channel::order::{Policy, Prompt};
use crate::channel::{Channel, Keep};
use pilotlight_core::order::{Decision, Step, Which};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::timeout;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Operation {
    Approve,
    DenyAll,
    Stop,
    Attach(Policy),
    /// Attaches to a silent session, and so aborts its turn.
    AttachToSilent,
    ApproveAttached,
    AbortAttached,
    Resend,
}

const OPERATIONS: [Operation; 10] = [
    Operation::Approve,
    Operation::DenyAll,
    Operation::Stop,
    Operation::Attach(Policy::Ask),
    Operation::Attach(Policy::ApproveAll),
    Operation::Attach(Policy::Observe),
    Operation::AttachToSilent,
    Operation::ApproveAttached,
    Operation::AbortAttached,
    Operation::Resend,
];

/// How a server fails.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Defect {
    /// Closes the connection.
    Closes,
    /// Sends bytes that are no frame.
    Garbage,
    /// Returns a result of the wrong type.
    WrongResult,
    /// Returns an error.
    Error,
}

/// A server on which every operation succeeds until it fails from the call `fails_from` on.
async fn server(operation: Operation, fails_from: usize, defect: Defect) -> (FakeServer, Arc<AtomicUsize>) {
    let calls = Arc::new(AtomicUsize::new(0));
    let (counted, answered, aborted) = (Arc::clone(&calls), AtomicUsize::new(0), AtomicUsize::new(0));
    let fake = FakeServer::start(move |method, params, _| {
        // Case 42: no operation names another session.
        assert!(params.get("sessionId").is_none_or(|id| id == "s"), "{method} {params}");
        if counted.fetch_add(1, Ordering::SeqCst) >= fails_from {
            return match defect {
                Defect::Closes => Response::Close,
                Defect::Garbage => Response::Raw(b"HTTP/1.1 500 Sorry\r\n\r\n".to_vec()),
                Defect::WrongResult => Response::Result(json!([1, "two", null])),
                Defect::Error => Response::Error(-32603, "something went wrong here"),
            };
        }
        let open = matches!(
            operation,
            Operation::Approve | Operation::DenyAll | Operation::ApproveAttached | Operation::Attach(_)
        );
        Response::Result(match method {
            "connect" => return greeting(),
            "session.resume" => json!({"sessionId": "s"}),
            "session.abort" => {
                aborted.fetch_add(1, Ordering::SeqCst);
                json!({"success": true})
            }
            "session.metadata.activity" => {
                // A prompt is sent only to a session that rests.
                let is_working = operation != Operation::Resend && aborted.load(Ordering::SeqCst) == 0;
                json!({"abortable": is_working, "hasActiveWork": is_working})
            }
            "session.permissions.pendingRequests" if open && answered.load(Ordering::SeqCst) == 0 => {
                json!({"items": [{"requestId": "r", "request": {"kind": "commands", "fullCommandText": "ls"}}]})
            }
            "session.permissions.pendingRequests" => json!({"items": []}),
            "session.permissions.handlePendingPermissionRequest" => {
                answered.fetch_add(1, Ordering::SeqCst);
                json!({"success": true})
            }
            _ => json!({"success": true}),
        })
    })
    .await;
    (fake, calls)
}

/// The only open request.
fn open() -> Which {
    Which::These(vec!["r".to_owned()])
}

async fn perform(operation: Operation, fake: &FakeServer) -> Result<(), Failure> {
    let log_view = LogView { turn_open: true, silent: operation == Operation::AttachToSilent, ..LogView::default() };
    let (context, sender) = context_at(vec![fake.endpoint.clone()], log_view);
    let (events, _receiver) = mpsc::unbounded_channel();
    let attached = async |policy| -> Result<Attached, Failure> {
        let (attached, silent) =
            attach(&context.servers, &context, Keep { policy, events: events.clone(), generation: 1 }).await?;
        silent.map(|_| attached)
    };
    let which = open();
    match operation {
        Operation::Approve => context.servers.answer(&context, &which, &Decision::Approve).await.map(drop),
        Operation::DenyAll => context.servers.answer(&context, &which, &Decision::DENY).await.map(drop),
        Operation::Stop => context.servers.stop(&context).await.map(drop),
        Operation::Attach(policy) => attached(policy).await.map(drop),
        Operation::AttachToSilent => attached(Policy::Ask).await.map(drop),
        Operation::ApproveAttached => attached(Policy::Ask).await?.answer(&context, &which, true).await.map(drop),
        Operation::AbortAttached => attached(Policy::Ask).await?.abort(&context).await.map(drop),
        Operation::Resend => {
            let attached = attached(Policy::Ask).await?;
            // The log grows as soon as the prompt is sent.
            let context = context.at_steps(move |step| {
                if step == Step::Resend {
                    sender.send_modify(|log_view| log_view.events += 1);
                }
            });
            let prompt = Prompt::Repeat("go on".into());
            recover::resend(&attached, &prompt, None, &context, Duration::from_secs(5)).await.map(drop)
        }
    }
}

/// Case 42: an operation on one session touches no other, and lists no sessions.
#[test]
fn case_42_an_operation_touches_only_its_own_session() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        for operation in OPERATIONS {
            // A call that names another session closes the connection, and so the operation fails.
            let (fake, _) = server(operation, usize::MAX, Defect::Closes).await;
            perform(operation, &fake).await.unwrap_or_else(|failure| panic!("{operation:?}: {failure}"));
            let calls = fake.calls.lock().unwrap().clone();
            assert!(
                calls.iter().all(|call| call == "connect" || call.starts_with("session.") || call == "ping"),
                "{calls:?}"
            );
        }
    });
}

/// Case 41: a recovery that fails at any of its steps reports that.
#[test]
fn case_41_a_server_that_fails_at_any_call_is_reported() {
    // In parallel, because most of them wait for a response that never arrives.
    std::thread::scope(|threads| {
        for operation in OPERATIONS {
            threads.spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
                runtime.block_on(fails_at_any_call(operation));
            });
        }
    });
}

async fn fails_at_any_call(operation: Operation) {
    let (working, calls) = server(operation, usize::MAX, Defect::Closes).await;
    perform(operation, &working)
        .await
        .unwrap_or_else(|failure| panic!("{operation:?} fails on a working server: {failure}"));
    // Calls after the last step only clean up.
    let needed = working.calls.lock().unwrap().iter().rposition(|call| is_step(call)).unwrap() + 1;
    assert!(calls.load(Ordering::SeqCst) >= needed && needed >= 2);
    for defect in [Defect::Closes, Defect::Garbage, Defect::WrongResult, Defect::Error] {
        for call in 0..needed {
            let case = format!("{operation:?}, {defect:?} from call {call} of {needed} on");
            let (fake, called) = server(operation, call, defect).await;
            let result = timeout(Duration::from_secs(20), perform(operation, &fake)).await;
            let result = result.unwrap_or_else(|_| panic!("{case}: it never returns"));
            match result {
                // It waited once less than the first time, and did not come so far.
                Ok(()) if called.load(Ordering::SeqCst) <= call => {}
                // The result of sending a prompt does not matter: the log shows whether it was accepted.
                Ok(()) if defect == Defect::WrongResult && fake.calls.lock().unwrap()[call] == "session.send" => {}
                Ok(()) => panic!("{case}: it succeeds, after {:?}", fake.calls.lock().unwrap()),
                Err(failure) => assert!(!failure.to_string().is_empty(), "{case}"),
            }
        }
    }
}

/// Whether a call is a step of an operation, and neither a check of its effect nor the end of the connection.
fn is_step(call: &str) -> bool {
    !matches!(
        call,
        "ping" | "session.destroy" | "session.detach" | "session.getForeground" | "session.permissions.getMode"
    ) && !call.ends_with(".eventLog")
}
