//! A model server for the Copilot CLI on loopback. It implements the part of the chat completions API that the CLI
//! uses, and answers from [`script`](super::script).
//!
//! A test controls it in two ways: a word in the prompt chooses the script, and a [`Hold`] keeps the model silent at
//! one round of a script while the test checks the state. Requests are counted, so a test can wait until the CLI has
//! really reached a round ([`Model::wait_requested`]). An answer that takes its time is a play
//! ([`stream`](super::stream)).

use super::script::{self, Answer};
use super::stream::{FINISHED, Performance, Play};
use super::{COPILOT, block_on, spawn, wait_until};
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::serve::ListenerExt;
use axum::{Json, Router};
use serde_json::{Value, json};
use std::collections::{HashMap, HashSet};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// A round of a script: the answer to the prompt is round 0.
type Round = (String, usize);

/// A running model server. It stops when this value is dropped.
pub(crate) struct Model {
    address: SocketAddr,
    shared: Arc<Shared>,
    task: JoinHandle<()>,
}

struct Shared {
    held: watch::Sender<HashSet<Round>>,
    /// The delay before each answer.
    delay: Mutex<Duration>,
    /// Every requested round, in order, including repeated ones (retries).
    requested: Mutex<Vec<Round>>,
    /// The system message of each round, when it was last requested.
    instructions: Mutex<HashMap<Round, String>>,
    /// The registered plays, by name.
    plays: Mutex<HashMap<String, Registered>>,
    /// The last request that offered tools, as JSON.
    last: Mutex<String>,
}

/// A registered play.
struct Registered {
    play: Play,
    /// How often the test has told it to go on.
    told: watch::Sender<usize>,
    /// The text of its current or last answer.
    text: Arc<Mutex<String>>,
}

/// Keeps the model silent at one round of a script, until released or dropped.
pub(crate) struct Hold {
    shared: Arc<Shared>,
    round: Round,
}

impl Model {
    /// Starts the server on a free port of loopback.
    pub(crate) fn start() -> Self {
        Self::at(Ipv4Addr::LOCALHOST.into(), false)
    }

    /// Starts the server on a free port of this address. `resets` makes it reset connections instead of closing them.
    pub(crate) fn at(address: IpAddr, resets: bool) -> Self {
        let shared = Arc::new(Shared {
            held: watch::channel(HashSet::new()).0,
            delay: Mutex::default(),
            requested: Mutex::default(),
            instructions: Mutex::default(),
            plays: Mutex::default(),
            last: Mutex::default(),
        });
        let router = Router::new()
            .route("/v1/models", get(models))
            .route("/v1/chat/completions", post(chat))
            .route("/v1beta/models/{call}", post(generate))
            .with_state(Arc::clone(&shared));
        let listener = block_on(tokio::net::TcpListener::bind((address, 0))).unwrap();
        let address = listener.local_addr().unwrap();
        let listener = listener.tap_io(move |connection| {
            // Each piece of an answer is sent when it is there, as by real servers.
            connection.set_nodelay(true).unwrap();
            if resets {
                connection.set_zero_linger().unwrap();
            }
        });
        let task = spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { address, shared, task }
    }

    /// The provider's base URL for Copilot.
    pub(crate) fn url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// Keeps the model silent at this round from now on.
    pub(crate) fn hold(&self, script: &str, round: usize) -> Hold {
        let round = (script.to_owned(), round);
        self.shared.held.send_modify(|held| {
            held.insert(round.clone());
        });
        Hold { shared: Arc::clone(&self.shared), round }
    }

    /// Registers a play: a prompt names it as it names a script. The name does not end in a digit.
    pub(crate) fn play(&self, name: &str, play: Play) {
        let registered = Registered { play, told: watch::Sender::new(0), text: Arc::default() };
        self.shared.plays.lock().unwrap().insert(name.to_owned(), registered);
    }

    /// Ends the part of this play that lasts until the test says so.
    pub(crate) fn go_on(&self, play: &str) {
        self.shared.plays.lock().unwrap()[play].told.send_modify(|told| *told += 1);
    }

    /// Ends all parts of all plays, now and in later answers.
    pub(crate) fn finish(&self) {
        for registered in self.shared.plays.lock().unwrap().values() {
            registered.told.send_replace(FINISHED);
        }
    }

    /// The text of the play's current or last answer so far.
    pub(crate) fn text(&self, play: &str) -> String {
        self.shared.plays.lock().unwrap()[play].text.lock().unwrap().clone()
    }

    /// Delays every answer from now on.
    pub(crate) fn set_delay(&self, delay: Duration) {
        *self.shared.delay.lock().unwrap() = delay;
    }

    /// The system message with which this round was last requested.
    pub(crate) fn instructions(&self, script: &str, round: usize) -> String {
        self.shared.instructions.lock().unwrap()[&(script.to_owned(), round)].clone()
    }

    /// How often this round was requested.
    pub(crate) fn request_count(&self, script: &str, round: usize) -> usize {
        self.shared.requested.lock().unwrap().iter().filter(|(s, r)| s == script && *r == round).count()
    }

    /// Waits until this round has been requested.
    pub(crate) fn wait_requested(&self, script: &str, round: usize) {
        let what = format!("round {round} of {script} is requested from the model");
        let dump = || format!("requested so far: {:?}", self.shared.requested.lock().unwrap());
        wait_until(COPILOT, &what, dump, || (self.request_count(script, round) > 0).then_some(()));
    }

    /// Waits until a request contains this, as JSON has it.
    pub(crate) fn wait_heard(&self, words: &str) {
        let last = || self.shared.last.lock().unwrap().clone();
        let what = format!("the model hears {words:?}");
        wait_until(COPILOT, &what, last, || last().contains(words).then_some(()));
    }

    /// Stops listening: later connections are refused.
    pub(crate) fn stop(&self) {
        self.task.abort();
        let what = "the model server has stopped";
        wait_until(COPILOT, what, String::new, || self.task.is_finished().then_some(()));
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Hold {
    /// Lets the model answer.
    pub(crate) fn release(self) {}
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.shared.held.send_modify(|held| {
            held.remove(&self.round);
        });
    }
}

async fn models() -> Json<Value> {
    Json(json!({"object": "list", "data": [{"id": "fake-model", "object": "model", "owned_by": "tests"}]}))
}

async fn chat(State(shared): State<Arc<Shared>>, Json(request): Json<Value>) -> Response {
    if request["tools"].is_array() {
        *shared.last.lock().unwrap() = request["messages"].to_string();
    }
    let (script, number, round) = place_in_script(&request);
    let key = (script.clone(), round);
    let instructions =
        request["messages"].as_array().into_iter().flatten().filter(|message| message["role"] == "system");
    let instructions: Vec<_> = instructions.map(|message| text_of(&message["content"])).collect();
    shared.instructions.lock().unwrap().insert(key.clone(), instructions.join("\n"));
    let call = {
        let mut requested = shared.requested.lock().unwrap();
        requested.push(key.clone());
        requested.len()
    };
    let delay = *shared.delay.lock().unwrap();
    tokio::time::sleep(delay).await;
    // Fails only if the sender is dropped, and `shared` owns it.
    shared.held.subscribe().wait_for(|held| !held.contains(&key)).await.unwrap();
    let performance = shared.plays.lock().unwrap().get(&script).and_then(|registered| {
        let parts = registered.play.get(round)?.clone();
        Some(Performance {
            call,
            parts,
            told: registered.told.subscribe(),
            waited: 0,
            text: Arc::clone(&registered.text),
        })
    });
    if let Some(performance) = performance {
        return performance.respond(request["stream"] == true).await;
    }
    match script::answer(&script, number, round) {
        // The terminal interface requests a stream, a session of the SDK does not.
        Answer::Say(text, tools) if request["stream"] == true => stream(completion(call, &text, &tools), None),
        Answer::Say(text, tools) => Json(whole(call, &text, &tools)).into_response(),
        Answer::Status(code) => {
            let status = StatusCode::from_u16(code).unwrap();
            (status, Json(json!({"error": {"message": "scripted failure", "code": code}}))).into_response()
        }
        Answer::Broken => {
            let first = completion(call, "I was about to", &[]).remove(0);
            stream(vec![first], Some(std::io::Error::other("scripted break")))
        }
        Answer::Silence => std::future::pending().await,
    }
}

/// The same over Gemini's API, as far as its CLI uses it: no holds, no plays.
async fn generate(Path(call): Path<String>, Json(request): Json<Value>) -> Response {
    let (mut script, mut number, mut round) = ("plain".to_owned(), 0, 0);
    for content in request["contents"].as_array().into_iter().flatten() {
        if content["role"] == "model" {
            round += 1;
        } else if let Some(named) = script::named_in(&text_of(&content["parts"])) {
            (script, number) = named;
            round = 0;
        }
    }
    let (text, tools) = match script::answer(&script, number, round) {
        // Asked without tools: which model is to answer, and who speaks next.
        _ if request["tools"].is_null() => (r#"{"model_choice":"flash","next_speaker":"user"}"#.to_owned(), Vec::new()),
        Answer::Say(text, tools) => (text, tools),
        _ => std::future::pending().await,
    };
    let mut parts = vec![json!({"text": text})];
    parts.extend(tools.into_iter().map(|(name, arguments)| {
        let name = if name == "bash" { "run_shell_command" } else { name };
        json!({"functionCall": {"id": format!("call_{round}"), "name": name, "args": arguments}})
    }));
    let candidate = json!({"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0});
    let usage = json!({"promptTokenCount": 100, "candidatesTokenCount": 10, "totalTokenCount": 110});
    let answer = json!({"candidates": [candidate], "usageMetadata": usage});
    if call.contains("stream") {
        return ([("content-type", "text/event-stream")], format!("data: {answer}\r\n\r\n")).into_response();
    }
    Json(answer).into_response()
}

/// The script of a request, its number, and its round: the number of answers since the prompt that named the script.
fn place_in_script(request: &Value) -> (String, u64, usize) {
    let mut place = ("plain".to_owned(), 0, 0);
    for message in request["messages"].as_array().into_iter().flatten() {
        match message["role"].as_str() {
            Some("user") => {
                if let Some((script, number)) = script::named_in(&text_of(&message["content"])) {
                    place = (script, number, 0);
                }
            }
            Some("assistant") => place.2 += 1,
            _ => {}
        }
    }
    place
}

/// The text of a message: a string, or the text parts of a list.
fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect::<Vec<_>>().join("\n"),
        _ => String::new(),
    }
}

/// The tools of an answer. `call` makes their ids unique.
fn tool_calls(call: usize, tools: &[(&'static str, Value)]) -> Vec<Value> {
    let one = |(index, (name, arguments)): (usize, &(&'static str, Value))| {
        json!({"index": index, "id": format!("call_{call}_{index}"), "type": "function",
            "function": {"name": name, "arguments": arguments.to_string()}})
    };
    tools.iter().enumerate().map(one).collect()
}

fn finish_reason(tools: &[(&'static str, Value)]) -> &'static str {
    if tools.is_empty() { "stop" } else { "tool_calls" }
}

fn usage() -> Value {
    json!({"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110})
}

/// An answer in one piece.
fn whole(call: usize, text: &str, tools: &[(&'static str, Value)]) -> Value {
    let mut message = json!({"role": "assistant", "content": text});
    if !tools.is_empty() {
        message["tool_calls"] = tool_calls(call, tools).into();
    }
    json!({"id": format!("chatcmpl-{call}"), "object": "chat.completion", "created": 0, "model": "fake-model",
        "choices": [{"index": 0, "message": message, "finish_reason": finish_reason(tools)}], "usage": usage()})
}

/// An answer as the chunks of a stream.
fn completion(call: usize, text: &str, tools: &[(&'static str, Value)]) -> Vec<Value> {
    let mut deltas = vec![json!({"role": "assistant", "content": text})];
    deltas.extend(tool_calls(call, tools).into_iter().map(|tool| json!({"tool_calls": [tool]})));
    let chunk = |delta: Value, finish: Value| {
        json!({"id": format!("chatcmpl-{call}"), "object": "chat.completion.chunk", "created": 0, "model": "fake-model",
            "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})
    };
    let mut chunks: Vec<Value> = deltas.into_iter().map(|delta| chunk(delta, Value::Null)).collect();
    let mut last = chunk(json!({}), finish_reason(tools).into());
    last["usage"] = usage();
    chunks.push(last);
    chunks
}

/// Chunks as server-sent events. `broken` breaks the connection instead of ending the stream.
fn stream(chunks: Vec<Value>, broken: Option<std::io::Error>) -> Response {
    let mut events: Vec<Result<String, std::io::Error>> =
        chunks.into_iter().map(|chunk| Ok(format!("data: {chunk}\n\n"))).collect();
    events.push(broken.map_or_else(|| Ok("data: [DONE]\n\n".to_owned()), Err));
    ([("content-type", "text/event-stream")], Body::from_stream(tokio_stream::iter(events))).into_response()
}
