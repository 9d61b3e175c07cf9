//! What sessions do, as their server tells it without attaching: whether they work, how many permission requests are open,
//! and whether they approve everything.
//!
//! Asking neither resumes nor joins a session, so it changes nothing for its clients, and disconnecting ends nothing.
//! It has a deadline: a server that hangs gives no result, and nothing follows from that. Tools' questions to the user
//! are not visible without attaching.

use super::client::ServerClient;
use crate::channel::ServerActivity;
use crate::channel::endpoint::Endpoint;
use std::path::Path;
use std::time::Duration;
use tokio::time::timeout;

/// How long it may take to tell whether a session approves everything, which older releases do not know.
const MODE_TIMEOUT: Duration = Duration::from_millis(500);

/// Asks about these sessions of one process. Connects to each of its endpoints in turn until all are found. `None` for
/// a session that no server reported on in time: nothing follows from that.
pub async fn activity(endpoints: &[Endpoint], ids: &[Box<str>], within: Duration) -> Vec<Option<ServerActivity>> {
    let mut results = vec![None; ids.len()];
    // Results from before the timeout count.
    let _ = timeout(within, async {
        for endpoint in endpoints {
            if results.iter().all(Option::is_some) {
                break;
            }
            // The fault only matters to an action, which connects again.
            let Ok(link) = ServerClient::open(endpoint, Path::new("")).await else { continue };
            for (result, id) in results.iter_mut().zip(ids).filter(|(result, _)| result.is_none()) {
                *result = probe_session(&link, id).await;
            }
            link.leave();
        }
    })
    .await;
    results
}

async fn probe_session(link: &ServerClient, id: &str) -> Option<ServerActivity> {
    let active = link.activity(id).await.ok()?.has_active_work;
    let requests = link.pending(id).await.ok()?.len();
    let approves_all = timeout(MODE_TIMEOUT, link.approves_all(id)).await.ok().flatten();
    Some(ServerActivity { active, requests, approves_all })
}

/// Whether a process has a session loaded, by the word of its server. `None` if no endpoint answers, or one of them does
/// not.
pub async fn has_loaded(endpoints: &[Endpoint], id: &str, within: Duration) -> Option<bool> {
    let asked = async {
        for endpoint in endpoints {
            let link = ServerClient::open(endpoint, Path::new("")).await.ok()?;
            let loaded = link.is_loaded(id).await;
            link.leave();
            if loaded.ok()? {
                return Some(true);
            }
        }
        (!endpoints.is_empty()).then_some(false)
    };
    timeout(within, asked).await.ok().flatten()
}

#[cfg(test)]
mod tests {
    use super::super::fake::{FakeServer, Response, greeting};
    use super::*;
    use crate::channel::ACTIVITY_TIMEOUT;
    use serde_json::json;
    use std::time::Instant;

    fn run<F: Future>(future: F) -> F::Output {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
    }

    fn ids(ids: &[&str]) -> Vec<Box<str>> {
        ids.iter().map(|&id| id.into()).collect()
    }

    #[test]
    fn a_probe_attaches_to_nothing_and_leaves() {
        run(async {
            let fake = FakeServer::start(|method, params, _| match (method, params["sessionId"].as_str()) {
                ("connect", _) => greeting(),
                (_, Some("gone")) => Response::Error(-32603, "Session not found"),
                ("session.metadata.activity", id) => {
                    Response::Result(json!({"abortable": true, "hasActiveWork": id == Some("a")}))
                }
                ("session.permissions.pendingRequests", _) => Response::Result(json!({"items": []})),
                ("session.permissions.getMode", Some("a")) => Response::Result(json!({"mode": "allow-all"})),
                ("session.permissions.getMode", _) => Response::Error(-32601, "Unhandled method"),
                _ => Response::Close,
            })
            .await;
            let results =
                activity(std::slice::from_ref(&fake.endpoint), &ids(&["a", "gone", "b"]), ACTIVITY_TIMEOUT).await;
            assert_eq!(
                results,
                [
                    Some(ServerActivity { active: true, requests: 0, approves_all: Some(true) }),
                    None,
                    Some(ServerActivity { active: false, requests: 0, approves_all: None })
                ]
            );
            let calls = fake.calls.lock().unwrap().clone();
            let allowed = [
                "connect",
                "session.metadata.activity",
                "session.permissions.pendingRequests",
                "session.permissions.getMode",
            ];
            assert!(calls.iter().all(|call| allowed.contains(&&**call)), "{calls:?}");
            assert_eq!(fake.called("connect"), 1, "one connection for all sessions");
            let left = async {
                while fake.left.load(std::sync::atomic::Ordering::SeqCst) == 0 {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
            };
            timeout(Duration::from_secs(30), left).await.expect("it leaves");
        });
    }

    /// A faulty server gives no result, and is not waited for beyond the timeout.
    #[test]
    fn a_server_that_does_not_answer_changes_nothing() {
        run(async {
            for wrong in ["nothing", "close", "babble", "refuse", "other"] {
                let fake = FakeServer::start(move |method, _, _| match (method, wrong) {
                    ("connect", _) => greeting(),
                    (_, "nothing") => Response::Nothing,
                    (_, "close") => Response::Close,
                    (_, "babble") => Response::Raw(b"HTTP/1.1 500 Sorry\r\n\r\n".to_vec()),
                    (_, "refuse") => Response::Error(-32603, "no"),
                    _ => Response::Result(json!([1, 2])),
                })
                .await;
                let begun = Instant::now();
                let results =
                    activity(std::slice::from_ref(&fake.endpoint), &ids(&["a", "b"]), Duration::from_millis(500)).await;
                assert_eq!(results, [None, None], "{wrong}");
                assert!(begun.elapsed() < Duration::from_secs(4), "{wrong}: {:?}", begun.elapsed());
            }
        });
    }
}
