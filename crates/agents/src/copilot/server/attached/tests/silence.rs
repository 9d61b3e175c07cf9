//! Silent turns: one whose answer arrives is left alone.

use super::*;
use crate::channel::order::SilentTurn;
use pilotlight_core::stream_probe::{ProbeResult, WINDOW};

/// The server of a silent session whose answer arrives, or does not.
async fn silent(receives: bool) -> FakeServer {
    FakeServer::start(move |method, params, _| match method {
        "session.metadata.activity" => Response::Result(json!({"abortable": true, "hasActiveWork": true})),
        "session.eventLog.tail" => Response::Result(json!({"cursor": "c"})),
        // The questions are read from the same log.
        "session.eventLog.read" if params["types"][0] == "assistant.streaming_delta" => {
            assert!(params["waitMs"].as_u64().is_some_and(|wait| wait > 0), "an earlier piece is not news");
            let piece = json!({"type": "assistant.streaming_delta", "data": {"totalResponseSizeBytes": 2280}});
            Response::Result(json!({"events": if receives { vec![piece] } else { vec![] }, "cursor": "c"}))
        }
        "session.eventLog.read" => Response::Result(json!({"events": [], "cursor": "c", "hasMore": false})),
        _ => default_response(method),
    })
    .await
}

#[test]
fn case_156_nothing_that_receives_an_answer_is_aborted_for_its_silence() {
    run(async {
        for receives in [true, false] {
            let fake = silent(receives).await;
            let log_view = LogView { turn_open: true, silent: true, ..LogView::default() };
            let (context, seen) = context_at(vec![fake.endpoint.clone()], log_view);
            let (sender, _events) = mpsc::unbounded_channel();
            let context = context.at_steps(move |step| {
                if step == Step::Abort {
                    seen.send_modify(|log_view| {
                        log_view.aborted = Some(Time(log_view.aborted.map_or(1, |at| at.0 + 1)));
                    });
                }
            });
            let (_attached, silent) =
                attach(&context.servers, &context, Keep { policy: Policy::Ask, events: sender, generation: 9 })
                    .await
                    .unwrap();
            assert_eq!(silent.unwrap(), if receives { SilentTurn::Receives } else { SilentTurn::Over });
            assert_eq!(fake.called("session.abort"), usize::from(!receives));
            // A stop that was offered for the silence; the user's own stops.
            assert_eq!(context.servers.receives(&context).await.unwrap(), receives);
            context.servers.stop(&context).await.unwrap();
        }
    });
}

/// Its server may know nothing of pieces: then what arrives on its connection counts.
#[test]
fn case_156_what_arrives_on_its_connection_is_an_answer() {
    run(async {
        let fake = silent(false).await;
        let (mut context, _seen) =
            context_at(vec![fake.endpoint.clone()], LogView { turn_open: true, ..LogView::default() });
        context.probe_result = Some(ProbeResult::Receiving { bytes: None, within: WINDOW });
        assert!(context.servers.receives(&context).await.unwrap());
    });
}
