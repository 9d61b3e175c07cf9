//! A server that goes away, or stops to make sense, at every single call of everything that is done with a session: each time
//! that is a failure in words, in its time, and never taken for done.

use super::attached::{Attached, Policy, attach};
use super::fake::{Fake, Say, greeting, site_at};
use super::recover::{self, Failure, RequestAnswer, Sight};
use crate::core::order::{Step, Which};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::timeout;

/// What is done with a session.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Deed {
    Approve,
    DenyAll,
    Stop,
    Attach(Policy),
    /// Attached, and then silent: what runs is aborted.
    AttachToSilence,
    ApproveAttached,
    AbortAttached,
    Resend,
}

const DEEDS: [Deed; 10] = [
    Deed::Approve,
    Deed::DenyAll,
    Deed::Stop,
    Deed::Attach(Policy::Ask),
    Deed::Attach(Policy::ApproveAll),
    Deed::Attach(Policy::Observe),
    Deed::AttachToSilence,
    Deed::ApproveAttached,
    Deed::AbortAttached,
    Deed::Resend,
];

/// How a server goes wrong.
#[derive(Clone, Copy, Debug)]
enum Wrong {
    /// It closes the connection, and every other.
    Dies,
    /// What it says is no frame.
    Babbles,
    /// It answers with something else than was asked for.
    Answers,
    /// It refuses.
    Refuses,
}

/// A server on which every deed succeeds, but for what it does from the call `wrong_from` on.
async fn server(deed: Deed, wrong_from: usize, wrong: Wrong) -> (Fake, Arc<AtomicUsize>) {
    let calls = Arc::new(AtomicUsize::new(0));
    let (counted, answered, aborted) = (Arc::clone(&calls), AtomicUsize::new(0), AtomicUsize::new(0));
    let fake = Fake::start(move |method, params, _| {
        // Case 42: whatever is done with one session, no other is named.
        assert!(params.get("sessionId").is_none_or(|id| id == "s"), "{method} {params}");
        if counted.fetch_add(1, Ordering::SeqCst) >= wrong_from {
            return match wrong {
                Wrong::Dies => Say::Close,
                Wrong::Babbles => Say::Raw(b"HTTP/1.1 500 Sorry\r\n\r\n".to_vec()),
                Wrong::Answers => Say::Answer(json!([1, "two", null])),
                Wrong::Refuses => Say::Error(-32603, "something went wrong here"),
            };
        }
        let open = matches!(deed, Deed::Approve | Deed::DenyAll | Deed::ApproveAttached | Deed::Attach(_));
        Say::Answer(match method {
            "connect" => return greeting(),
            "session.resume" => json!({"sessionId": "s"}),
            "session.abort" => {
                aborted.fetch_add(1, Ordering::SeqCst);
                json!({"success": true})
            }
            "session.metadata.activity" => {
                let works = aborted.load(Ordering::SeqCst) == 0;
                json!({"abortable": works, "hasActiveWork": works})
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

/// The one request that is open.
fn open() -> Which {
    Which::These(vec!["r".to_owned()])
}

async fn does(deed: Deed, fake: &Fake) -> Result<(), Failure> {
    let sight = Sight { turn_open: true, silent: deed == Deed::AttachToSilence, ..Sight::default() };
    let (site, sender) = site_at(vec![fake.endpoint.clone()], sight);
    let (events, _heard) = mpsc::unbounded_channel();
    let attached =
        async |policy| -> Result<Attached, Failure> { attach(&site, policy, events.clone(), 1, &|_, _| ()).await };
    let which = open();
    let answering = |approve| RequestAnswer { site: &site, which: &which, approve, show: &|_| (), steps: &|_, _| () };
    match deed {
        Deed::Approve => recover::answer(answering(true)).await.map(drop),
        Deed::DenyAll => recover::answer(answering(false)).await.map(drop),
        Deed::Stop => recover::stop(&site, &|_, _| ()).await.map(drop),
        Deed::Attach(policy) => attached(policy).await.map(drop),
        Deed::AttachToSilence => attached(Policy::Ask).await.map(drop),
        Deed::ApproveAttached => attached(Policy::Ask).await?.answer(answering(true)).await.map(drop),
        Deed::AbortAttached => attached(Policy::Ask).await?.abort(&site, &|_, _| ()).await.map(drop),
        Deed::Resend => {
            let attached = attached(Policy::Ask).await?;
            // The log grows as soon as the prompt is sent.
            let grows = |step, _| {
                if step == Step::Resend {
                    sender.send_modify(|sight| sight.events += 1);
                }
            };
            let prompt = recover::Prompt::Again("go on".into());
            recover::resend(&attached, &prompt, None, &site, Duration::from_secs(5), &grows).await.map(drop)
        }
    }
}

/// Case 42 (PP#285): what is done with one session touches no other, and a list of all is not asked for.
#[test]
fn case_42_whatever_is_done_touches_one_session_alone() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        for deed in DEEDS {
            // A call that names another session costs the connection, and the deed fails.
            let (fake, _) = server(deed, usize::MAX, Wrong::Dies).await;
            does(deed, &fake).await.unwrap_or_else(|failure| panic!("{deed:?}: {failure}"));
            let calls = fake.calls.lock().unwrap().clone();
            assert!(
                calls.iter().all(|call| call == "connect" || call.starts_with("session.") || call == "ping"),
                "{calls:?}"
            );
        }
    });
}

/// Case 41 (PP#285): a recovery that fails at each of its steps says so.
#[test]
fn case_41_whatever_is_done_a_server_that_goes_wrong_at_any_call_is_told() {
    // Side by side: most of them wait for an answer that never comes.
    std::thread::scope(|threads| {
        for deed in DEEDS {
            threads.spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
                runtime.block_on(goes_wrong_at_any_call(deed));
            });
        }
    });
}

async fn goes_wrong_at_any_call(deed: Deed) {
    let (sound, calls) = server(deed, usize::MAX, Wrong::Dies).await;
    does(deed, &sound).await.unwrap_or_else(|failure| panic!("{deed:?} fails on a sound server: {failure}"));
    // What its end brings about beside it is none of its steps.
    let needed = sound.calls.lock().unwrap().iter().rposition(|call| is_of_a_deed(call)).unwrap() + 1;
    assert!(calls.load(Ordering::SeqCst) >= needed && needed >= 2);
    for wrong in [Wrong::Dies, Wrong::Babbles, Wrong::Answers, Wrong::Refuses] {
        for call in 0..needed {
            if let (Deed::Resend, Wrong::Answers, true) = (deed, wrong, call + 1 == needed) {
                continue; // what is answered to a prompt does not matter: the log tells whether it was taken
            }
            let what = format!("{deed:?}, {wrong:?} from call {call} of {needed} on");
            let (fake, _) = server(deed, call, wrong).await;
            let done = timeout(Duration::from_secs(20), does(deed, &fake)).await;
            let done = done.unwrap_or_else(|_| panic!("{what}: it is waited for and waited for"));
            match done {
                Ok(()) => panic!("{what}: taken for done, after {:?}", fake.calls.lock().unwrap()),
                Err(failure) => assert!(!failure.to_string().is_empty(), "{what}"),
            }
        }
    }
}

/// Whether a call is a step of what is done, and not a look at what came of it or the end of a connection.
fn is_of_a_deed(call: &str) -> bool {
    !matches!(call, "ping" | "session.destroy" | "session.detach") && !call.ends_with(".eventLog")
}
