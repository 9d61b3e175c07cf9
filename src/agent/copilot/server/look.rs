//! A look at sessions through their server, without attaching: what they do, and whether a permission request is open.
//!
//! Nothing is resumed and nothing joined, so nothing changes for anybody, and our leaving ends nothing. It is bounded in time: a
//! server that hangs says nothing, and nothing is made of that. What a tool asks the user is not told to one who only looks.

use super::client::Link;
use super::servers::Endpoint;
use std::path::Path;
use std::time::Duration;
use tokio::time::timeout;

/// How long a server may take, for all of its sessions together. Copilot takes milliseconds.
pub(crate) const LOOKED_WITHIN: Duration = Duration::from_secs(2);

/// What a server says of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Told {
    /// It has active work.
    pub active: bool,
    /// How many permission requests are open.
    pub requests: usize,
}

/// Asks for these sessions of one process, over one connection to each of its endpoints until all are found. `None` for those
/// of which nobody said anything in time: nothing follows from that.
pub(crate) async fn look(endpoints: &[Endpoint], ids: &[Box<str>], within: Duration) -> Vec<Option<Told>> {
    let mut told = vec![None; ids.len()];
    // What was told before the time was over counts.
    let _ = timeout(within, async {
        for endpoint in endpoints {
            if told.iter().all(Option::is_some) {
                break;
            }
            // Why it failed is of interest to who wants to act.
            let Ok(link) = Link::open(endpoint, Path::new("")).await else { continue };
            for (told, id) in told.iter_mut().zip(ids).filter(|(told, _)| told.is_none()) {
                *told = ask(&link, id).await;
            }
            link.leave();
        }
    })
    .await;
    told
}

async fn ask(link: &Link, id: &str) -> Option<Told> {
    let active = link.activity(id).await.ok()?.has_active_work;
    let requests = link.pending(id).await.ok()?.len();
    Some(Told { active, requests })
}

#[cfg(test)]
mod tests {
    use super::super::fake::{Fake, Say, greeting};
    use super::*;
    use serde_json::json;
    use std::time::Instant;

    fn run<F: Future>(future: F) -> F::Output {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
    }

    fn ids(ids: &[&str]) -> Vec<Box<str>> {
        ids.iter().map(|&id| id.into()).collect()
    }

    #[test]
    fn a_look_attaches_to_nothing_and_leaves() {
        run(async {
            let fake = Fake::start(|method, params, _| match (method, params["sessionId"].as_str()) {
                ("connect", _) => greeting(),
                (_, Some("gone")) => Say::Error(-32603, "Session not found"),
                ("session.metadata.activity", id) => {
                    Say::Answer(json!({"abortable": true, "hasActiveWork": id == Some("a")}))
                }
                ("session.permissions.pendingRequests", _) => Say::Answer(json!({"items": []})),
                _ => Say::Close,
            })
            .await;
            let told = look(std::slice::from_ref(&fake.endpoint), &ids(&["a", "gone", "b"]), LOOKED_WITHIN).await;
            assert_eq!(
                told,
                [Some(Told { active: true, requests: 0 }), None, Some(Told { active: false, requests: 0 })]
            );
            let calls = fake.calls.lock().unwrap().clone();
            let looks = ["connect", "session.metadata.activity", "session.permissions.pendingRequests"];
            assert!(calls.iter().all(|call| looks.contains(&&**call)), "{calls:?}");
            assert_eq!(fake.called("connect"), 1, "one connection for all");
            let left = async {
                while fake.left.load(std::sync::atomic::Ordering::SeqCst) == 0 {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
            };
            timeout(Duration::from_secs(30), left).await.expect("it leaves");
        });
    }

    /// A server that goes wrong says nothing, and is not waited for beyond the time that a look may take.
    #[test]
    fn a_server_that_does_not_answer_changes_nothing() {
        run(async {
            for wrong in ["nothing", "close", "babble", "refuse", "other"] {
                let fake = Fake::start(move |method, _, _| match (method, wrong) {
                    ("connect", _) => greeting(),
                    (_, "nothing") => Say::Nothing,
                    (_, "close") => Say::Close,
                    (_, "babble") => Say::Raw(b"HTTP/1.1 500 Sorry\r\n\r\n".to_vec()),
                    (_, "refuse") => Say::Error(-32603, "no"),
                    _ => Say::Answer(json!([1, 2])),
                })
                .await;
                let begun = Instant::now();
                let told =
                    look(std::slice::from_ref(&fake.endpoint), &ids(&["a", "b"]), Duration::from_millis(500)).await;
                assert_eq!(told, [None, None], "{wrong}");
                assert!(begun.elapsed() < Duration::from_secs(4), "{wrong}: {:?}", begun.elapsed());
            }
        });
    }
}
