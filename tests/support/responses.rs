//! A model server for Codex on loopback: the part of the Responses API that it uses. A word in the prompt, `SCRIPT:name`,
//! chooses what it does.

use super::{block_on, spawn};
use axum::body::Body;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde_json::{Value, json};
use std::fmt::Write;
use std::future::pending;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinHandle;

/// A running model server. It stops when this value is dropped.
pub(crate) struct Responses {
    address: SocketAddr,
    task: JoinHandle<()>,
}

impl Responses {
    /// Starts the server on a free port of loopback. The tool of the script `tool` runs until this file exists, and so does
    /// a compaction.
    pub(crate) fn start(release: PathBuf) -> Self {
        let router = Router::new()
            .route("/v1/models", get(async || Json(json!({"object": "list", "data": [], "models": []}))))
            .route("/v1/responses", post(respond))
            .with_state(Arc::new(release));
        let listener = block_on(tokio::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))).unwrap();
        let address = listener.local_addr().unwrap();
        Self { address, task: spawn(async move { axum::serve(listener, router).await.unwrap() }) }
    }

    /// The provider's base URL.
    pub(crate) fn url(&self) -> String {
        format!("http://{}/v1", self.address)
    }
}

impl Drop for Responses {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// What the model does next.
enum Answer {
    Says(&'static str),
    /// Calls a shell, outside of the sandbox if it must be asked for.
    Runs {
        command: String,
        escalated: bool,
    },
    /// Calls another tool.
    Calls(&'static str, Value),
    Fails,
    Never,
}

/// The last script that a prompt names, and how many of its tools have ended.
fn script_of(input: &Value) -> (String, usize) {
    let (mut script, mut done) = ("plain".to_owned(), 0);
    for item in input.as_array().into_iter().flatten() {
        if item["type"] == "function_call_output" {
            done += 1;
        }
        let texts = item["content"].as_array().into_iter().flatten().filter_map(|part| part["text"].as_str());
        for text in texts.filter(|_| item["role"] == "user") {
            if let Some((_, rest)) = text.rsplit_once("SCRIPT:") {
                (script, done) = (rest.split_whitespace().next().unwrap_or_default().to_owned(), 0);
            }
        }
    }
    (script, done)
}

fn answer(script: &str, done: usize, release: &str) -> Answer {
    let runs = |command: &str, escalated| Answer::Runs { command: command.to_owned(), escalated };
    match (script, done) {
        ("tool", 0) => runs(&format!("while [ ! -e '{release}' ]; do sleep 0.1; done; echo released"), false),
        ("perm", 0) => runs("touch made-by-agent.txt", true),
        ("agent", 0) => Answer::Calls("spawn_agent", json!({"message": "SCRIPT:perm", "task_name": "sub_job"})),
        ("ask", 0) => {
            let options = json!([{"label": "Red", "description": "warm"}, {"label": "Blue", "description": "cold"}]);
            let question = json!({"id": "c", "header": "Colour", "question": "Which colour?", "options": options});
            Answer::Calls("request_user_input", json!({"questions": [question]}))
        }
        ("question", _) => Answer::Says("There are two ways. Which one do you want?"),
        ("fail", _) => Answer::Fails,
        ("hang", _) => Answer::Never,
        _ => Answer::Says("All done."),
    }
}

async fn respond(State(release): State<Arc<PathBuf>>, Json(request): Json<Value>) -> Response {
    let (script, done) = script_of(&request["input"]);
    // The request of a compaction, in Codex's own words.
    let last = request["input"].as_array().and_then(|items| items.last()).map(Value::to_string);
    while last.as_ref().is_some_and(|last| last.contains("CONTEXT CHECKPOINT COMPACTION")) && !release.exists() {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let item = match answer(&script, done, &release.display().to_string()) {
        Answer::Never => pending().await,
        Answer::Fails => {
            let error = json!({"error": {"type": "authentication_error", "message": "scripted"}});
            return (StatusCode::UNAUTHORIZED, Json(error)).into_response();
        }
        Answer::Says(text) => {
            json!({"type": "message", "role": "assistant", "id": "m1", "content": [{"type": "output_text", "text": text}]})
        }
        Answer::Runs { command, escalated } => {
            let mut arguments = json!({"cmd": command, "yield_time_ms": 120_000});
            if escalated {
                arguments["sandbox_permissions"] = json!("require_escalated");
                arguments["justification"] = json!("It must be written.");
            }
            call("exec_command", &arguments, &format!("{script}_{done}"))
        }
        Answer::Calls(name, arguments) => call(name, &arguments, &format!("{script}_{done}")),
    };
    let usage = json!({"input_tokens": 100, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 10,
        "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 110});
    let events = [
        json!({"type": "response.created", "response": {"id": "r1"}}),
        json!({"type": "response.output_item.done", "output_index": 0, "item": item}),
        json!({"type": "response.completed", "response": {"id": "r1", "output": [item], "usage": usage}}),
    ];
    let mut body = String::new();
    for event in events {
        let _ = write!(body, "event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap());
    }
    Response::builder().header("content-type", "text/event-stream").body(Body::from(body)).unwrap()
}

/// A call of a tool. Its id differs between calls, as Codex expects.
fn call(name: &str, arguments: &Value, id: &str) -> Value {
    use std::sync::atomic::{AtomicUsize, Ordering};
    static CALLS: AtomicUsize = AtomicUsize::new(0);
    let id = format!("call_{id}_{}", CALLS.fetch_add(1, Ordering::Relaxed));
    let mut call = json!({"type": "function_call", "id": format!("fc_{id}"), "call_id": id, "name": name,
        "arguments": arguments.to_string()});
    if name == "spawn_agent" {
        call["namespace"] = json!("multi_agent_v1");
    }
    call
}
