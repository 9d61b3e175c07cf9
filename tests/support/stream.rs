//! Answers that arrive over time: while they do, Copilot writes nothing to the log, and only the connection to the model
//! tells an answer from a model that hangs.
//!
//! A test registers a [`Play`] under a name with [`Model::play`](super::model::Model::play), and a prompt names it as it
//! names a script. What lasts [`UNTIL_TOLD`] lasts until the test calls
//! [`Model::go_on`](super::model::Model::go_on). [`Model::finish`](super::model::Model::finish) ends every part, and the
//! answer arrives as a whole one. The sizes on the wire are those of real providers: 228 bytes a piece of text, 18 a
//! comment that keeps the connection alive.

use super::spawn;
use axum::body::Body;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use std::io::Error;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, watch};
use tokio_stream::wrappers::ReceiverStream;

/// The rounds of a play. A further round is answered with a word.
pub(crate) type Play = Vec<Vec<Part>>;

/// How long a part lasts that the test ends. In truth an hour, in which every test is over.
pub(crate) const UNTIL_TOLD: Duration = Duration::from_secs(3600);
/// How often a test has told a play to go on that it wants finished.
pub(crate) const FINISHED: usize = usize::MAX;

/// The words of an answer.
const WORDS: [&str; 8] = ["lorem ", "ipsum ", "dolor ", "amet, ", "fugit ", "velit ", "magna ", "nulla "];

/// A part of an answer.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Part {
    /// Nothing for this long. As the first part, not even headers.
    Silent(Duration),
    /// The headers of the response.
    Headers,
    /// One piece after another, at this interval, for this long.
    Pieces(Piece, Duration, Duration),
    /// The connection breaks, unless the play is finished.
    Broken,
    /// An HTTP status, with this many seconds in `Retry-After`, unless the play is finished. Only as the first part.
    Status(u16, Option<u32>),
    /// A sub-agent is started at the end of the answer, with the prompt that names this play.
    SubAgent(&'static str),
}

/// What arrives at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    /// A word of text.
    Text,
    /// A word of reasoning.
    Reasoning,
    /// A word of a tool's arguments: a shell command that prints them.
    Argument,
    /// A delta that holds nothing.
    Empty,
    /// A comment, as gateways send it to keep the connection alive.
    Comment,
    /// An event `ping`, as some providers send it for the same reason.
    Ping,
}

/// One answer of a play.
pub(crate) struct Performance {
    /// Makes the ids of the answer and its tools unique.
    pub(crate) call: usize,
    /// The parts of this round.
    pub(crate) parts: Vec<Part>,
    /// How often the test has told the play to go on.
    pub(crate) told: watch::Receiver<usize>,
    /// How many parts of this answer have waited for that.
    pub(crate) waited: usize,
    /// The text of the answer so far.
    pub(crate) text: Arc<Mutex<String>>,
}

impl Performance {
    /// The response to a request, which wants a stream or the whole answer at once.
    pub(crate) async fn respond(mut self, streams: bool) -> Response {
        self.text.lock().unwrap().clear();
        // A response begins with its headers, so what comes before them is waited for here.
        let mut parts = std::mem::take(&mut self.parts).into_iter().peekable();
        while let Some(Part::Silent(time)) = parts.peek().copied() {
            self.pass(time).await;
            parts.next();
        }
        if let Some(Part::Status(code, retry_after)) = parts.peek().copied()
            && !self.is_finished()
        {
            return refuse(code, retry_after);
        }
        self.parts = parts.collect();
        if !streams {
            return self.whole().await;
        }
        // As good as unbuffered: what the client does not take is not written.
        let (sender, receiver) = mpsc::channel(1);
        spawn(async move {
            let client = sender.clone();
            tokio::select! {
                () = self.perform(&sender) => (),
                () = client.closed() => (),
            }
        });
        ([("content-type", "text/event-stream")], Body::from_stream(ReceiverStream::new(receiver))).into_response()
    }

    /// Waits for this long, or until the test ends it.
    async fn pass(&mut self, time: Duration) {
        let until = self.until(time);
        self.pass_until(time, until).await;
    }

    /// How often the test must have told the play to go on to end a part that lasts this long.
    fn until(&mut self, time: Duration) -> usize {
        if time < UNTIL_TOLD {
            return FINISHED;
        }
        self.waited += 1;
        self.waited
    }

    async fn pass_until(&mut self, time: Duration, until: usize) {
        // An error means that the model is gone, and nobody waits for the answer.
        let _ = tokio::time::timeout(time, self.told.wait_for(|told| *told >= until)).await;
    }

    fn is_finished(&self) -> bool {
        *self.told.borrow() == FINISHED
    }

    /// Sends the answer.
    async fn perform(mut self, out: &mpsc::Sender<Result<String, Error>>) {
        let (mut calls, mut arguments) = (Vec::new(), 0);
        for part in std::mem::take(&mut self.parts) {
            match part {
                Part::Silent(time) => self.pass(time).await,
                Part::Pieces(piece, interval, time) => {
                    let (end, until) = (Instant::now() + time, self.until(time));
                    for index in 0.. {
                        if *self.told.borrow() >= until || Instant::now() >= end {
                            break;
                        }
                        let _ = out.send(Ok(self.piece(piece, index))).await;
                        arguments += usize::from(piece == Piece::Argument);
                        self.pass_until(interval, until).await;
                    }
                }
                Part::Broken if !self.is_finished() => {
                    let _ = out.send(Err(Error::other("scripted break"))).await;
                    return;
                }
                Part::SubAgent(play) => calls.push(self.sub_agent(play)),
                Part::Headers | Part::Broken | Part::Status(..) => {}
            }
        }
        if arguments > 0 {
            let _ = out
                .send(Ok(self.delta(&json!({"tool_calls": [{"index": 0, "function": {"arguments": "\"}"}}]}))))
                .await;
        }
        for call in &calls {
            let _ = out.send(Ok(self.delta(&json!({"role": "assistant", "tool_calls": [call]})))).await;
        }
        // Copilot does not accept an empty answer.
        if arguments == 0 && calls.is_empty() && self.text.lock().unwrap().is_empty() {
            let _ = out.send(Ok(self.piece(Piece::Text, 0))).await;
        }
        let reason = if arguments > 0 || !calls.is_empty() { "tool_calls" } else { "stop" };
        let mut last = self.chunk(&json!({}), Some(reason));
        last["usage"] = usage();
        let _ = out.send(Ok(format!("data: {last}\n\ndata: [DONE]\n\n"))).await;
    }

    /// The answer in one piece, after the time that its stream would take.
    async fn whole(mut self) -> Response {
        for part in std::mem::take(&mut self.parts) {
            if let Part::Silent(time) | Part::Pieces(_, _, time) = part {
                self.pass(time).await;
            }
        }
        self.text.lock().unwrap().push_str("Done.");
        let message = json!({"role": "assistant", "content": "Done."});
        axum::Json(json!({"id": self.id(), "object": "chat.completion", "created": 0, "model": "fake-model",
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}], "usage": usage()}))
        .into_response()
    }

    /// A piece as a server-sent event.
    fn piece(&self, piece: Piece, index: usize) -> String {
        let word = WORDS[index % WORDS.len()];
        match piece {
            Piece::Text => {
                self.text.lock().unwrap().push_str(word);
                self.delta(&json!({"role": "assistant", "content": word}))
            }
            Piece::Reasoning => {
                self.delta(&json!({"role": "assistant", "reasoning_text": word, "reasoning_content": word}))
            }
            Piece::Argument if index == 0 => {
                let start = "{\"description\":\"print\",\"command\":\"echo ";
                let function = json!({"name": "bash", "arguments": start});
                let call =
                    json!({"index": 0, "id": format!("call_{}", self.call), "type": "function", "function": function});
                self.delta(&json!({"role": "assistant", "tool_calls": [call]}))
            }
            Piece::Argument => self.delta(&json!({"tool_calls": [{"index": 0, "function": {"arguments": word}}]})),
            Piece::Empty => self.delta(&json!({})),
            Piece::Comment => ": keepalive\n\n".to_owned(),
            Piece::Ping => "event: ping\ndata: {\"type\": \"ping\"}\n\n".to_owned(),
        }
    }

    fn sub_agent(&self, play: &str) -> Value {
        let arguments = json!({"agent_type": "general-purpose", "name": "painter", "description": "paint it",
            "prompt": format!("SCRIPT:{play} Paint it"), "mode": "sync"});
        json!({"index": 0, "id": format!("call_{}", self.call), "type": "function",
            "function": {"name": "task", "arguments": arguments.to_string()}})
    }

    fn id(&self) -> String {
        format!("chatcmpl-{:024}", self.call)
    }

    fn chunk(&self, delta: &Value, finish: Option<&str>) -> Value {
        json!({"id": self.id(), "object": "chat.completion.chunk", "created": 1_750_000_000, "model": "fake-model",
            "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})
    }

    fn delta(&self, delta: &Value) -> String {
        format!("data: {}\n\n", self.chunk(delta, None))
    }
}

fn usage() -> Value {
    json!({"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110})
}

fn refuse(code: u16, retry_after: Option<u32>) -> Response {
    let code_in_words = if code == 429 { "rate_limited" } else { "server_error" };
    let body =
        axum::Json(json!({"error": {"message": "scripted refusal", "type": "server_error", "code": code_in_words}}));
    let mut response = (StatusCode::from_u16(code).unwrap(), body).into_response();
    if let Some(seconds) = retry_after {
        response.headers_mut().insert("retry-after", seconds.into());
    }
    response
}
