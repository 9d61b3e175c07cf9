//! One connection to one server. Every call has a deadline, and every failure is a [`Fault`] in a person's words.
//!
//! Connecting does not attach to a session: a server accepts answers and aborts for any session that is loaded in it,
//! and disconnecting changes nothing. Only the terminal interface's own session (`--ui-server`) must be *joined* once
//! before its server reports it as loaded; see [`ServerClient::reach`].

use super::frame::{FrameReader, StreamEnd, StreamState};
use super::frame_filter::TOO_LARGE;
use super::listening::{PIECE, listen};
use super::peers;
use super::questions::{self, Questions};
use crate::channel::endpoint::{Endpoint, Token};
use crate::channel::fault::{Fault, Place};
use crate::channel::request::{Request, is_cut};
use github_copilot_sdk::{Client, ErrorKind, ProtocolErrorKind, ResumeSessionConfig, SDK_PROTOCOL_VERSION};
use github_copilot_sdk::{SessionErrorKind, session::Session};
use pilotlight_core::form::Kind;
use pilotlight_core::stream_probe::Word;
use pilotlight_core::text;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// The deadline of a call, and of connecting with the handshake. Copilot takes milliseconds.
pub(crate) const CALL_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a server may take to load a session, which may include starting the session's tools.
pub(crate) const LOAD_TIMEOUT: Duration = Duration::from_secs(30);
/// The deadline of calls while detaching. It is short, because they delay the exit of Pilotlight.
const DETACH_TIMEOUT: Duration = Duration::from_millis(500);
/// The longest error message of a server that is shown, in characters.
const MESSAGE_MAX: usize = 200;

/// How many events of a server's log are read per call, and in how many calls at most. The first is the server's own
/// limit. Together they are far more than a session has of the few types that are read.
const EVENT_PAGE: u32 = 1000;
const EVENT_PAGES: u32 = 50;

/// A page of a server's event log.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct EventPage {
    events: Vec<questions::Event>,
    cursor: String,
    has_more: bool,
}

/// What a session does, as its server reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Activity {
    /// Whether a turn runs, or something in the background.
    pub has_active_work: bool,
}

/// The answer to a permission request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Allowed once, by a person who was shown it.
    Approve,
    /// Allowed once, because the user's settings say so.
    ApproveUnseen,
    /// Refused. This ends the turn, like a refusal in the terminal: the user writes next.
    Deny,
    /// Refused because nobody can be asked.
    Unanswered,
}

/// A connection. Clones share it.
#[derive(Clone, Debug)]
pub struct ServerClient {
    sdk: Client,
    place: Place,
    stream: Arc<StreamState>,
    /// Our own address, for a socket.
    local: Option<SocketAddr>,
}

impl ServerClient {
    /// Connects to a server on this machine. `cwd` is our working folder for the SDK, which does not use it.
    pub async fn open(endpoint: &Endpoint, cwd: &Path) -> Result<Self, Fault> {
        Self::open_within(endpoint, cwd, CALL_TIMEOUT).await
    }

    async fn open_within(endpoint: &Endpoint, cwd: &Path, span: Duration) -> Result<Self, Fault> {
        let (address, place) = (endpoint.address, Place::At(endpoint.address));
        if !address.ip().is_loopback() {
            return Err(Fault::NotLocal(address));
        }
        let connected = timeout(span, async {
            let stream = TcpStream::connect(address).await.map_err(|error| match error.kind() {
                io::ErrorKind::ConnectionRefused => Fault::Refused(address),
                _ => Fault::Unreachable(place, error.to_string().into()),
            })?;
            let local = stream.local_addr().ok();
            let (read, write) = stream.into_split();
            Ok(Self { local, ..Self::greet(read, write, cwd, place, endpoint.token.as_ref()).await? })
        });
        connected.await.unwrap_or(Err(silent(place, span)))
    }

    /// Connects to a server of our own over its standard input and output. It may take a while to start.
    pub async fn over_stdio(
        output: impl AsyncRead + Unpin + Send + 'static,
        input: impl AsyncWrite + Unpin + Send + 'static,
        cwd: &Path,
        span: Duration,
    ) -> Result<Self, Fault> {
        let connected = timeout(span, Self::greet(output, input, cwd, Place::Own, None)).await;
        connected.unwrap_or(Err(silent(Place::Own, span)))
    }

    /// The handshake. One call both presents the token and returns the protocol's version. The SDK would send a second
    /// one without the token, which the server refuses.
    async fn greet(
        read: impl AsyncRead + Unpin + Send + 'static,
        write: impl AsyncWrite + Unpin + Send + 'static,
        cwd: &Path,
        place: Place,
        token: Option<&Token>,
    ) -> Result<Self, Fault> {
        let (read, stream) = FrameReader::new(read);
        // Fails if the other side is gone already.
        let sdk = Client::from_streams(read, write, cwd.to_owned()).map_err(|_| stream_fault(&stream, place))?;
        let link = Self { sdk, place, stream, local: None };
        let params = token.map_or_else(|| json!({}), |token| json!({"token": token.expose()}));
        let greeting = link.sdk.call("connect", Some(params)).await.map_err(|error| match error.rpc_code() {
            Some(-32001 | -32002) if token.is_some() => Fault::WrongToken(place),
            Some(-32001 | -32002) => Fault::TokenNeeded(place),
            Some(-32003) => Fault::TokenUnexpected(place),
            // The server's message might repeat the token.
            Some(_) => Fault::NotCopilot(place),
            None => link.fault(&error, "connect"),
        })?;
        match greeting["protocolVersion"].as_i64() {
            Some(version) if version == i64::from(SDK_PROTOCOL_VERSION) => {}
            Some(version) => return Err(Fault::Protocol(place, version)),
            None => return Err(Fault::NotCopilot(place)),
        }
        link.stream.trust();
        Ok(link)
    }

    /// Whether we are this server's only client. `None` if that is unknown or if there are others, because a server
    /// does not report who is attached to which of its sessions.
    pub(crate) fn is_only_client(&self) -> Option<bool> {
        match (self.place, self.local) {
            (Place::Own, _) => Some(true),
            (Place::At(server), Some(local)) => peers::is_only_client(server, local),
            (Place::At(_), None) => None,
        }
    }

    /// The server.
    pub(crate) fn place(&self) -> Place {
        self.place
    }

    /// The ports of this server's other clients, `None` if unknown.
    pub(super) fn other_clients(&self) -> Option<BTreeSet<u16>> {
        match (self.place, self.local) {
            (Place::At(server), Some(local)) => peers::other_clients(server, local),
            _ => None,
        }
    }

    /// Makes the calls below work for this session, and returns its activity.
    ///
    /// The terminal interface's own session is not reported as loaded until it is joined: resumed with the fewest
    /// parameters and without any handler. This writes nothing, changes nothing for the other clients, and outlasts our
    /// connection. Any other server would load the session a second time, and two processes would write to one log. So
    /// a session is joined only if this server's process **provably holds the session** (`owned`), or if the server
    /// itself reports it as the one in its terminal.
    pub(crate) async fn reach(&self, id: &str, owned: bool) -> Result<Activity, Fault> {
        match self.activity(id).await {
            Err(Fault::NotLoaded(_)) if owned || self.is_foreground(id).await => {
                let params = json!({"sessionId": id, "disableResume": true, "requestPermission": false});
                self.call_within(LOAD_TIMEOUT, "session.resume", params).await?;
                self.activity(id).await
            }
            other => other,
        }
    }

    /// Whether the server has the session loaded, or shows it in its terminal.
    pub(super) async fn is_loaded(&self, id: &str) -> Result<bool, Fault> {
        match self.activity(id).await {
            Ok(_) => Ok(true),
            Err(Fault::NotLoaded(_)) => Ok(self.is_foreground(id).await),
            Err(fault) => Err(fault),
        }
    }

    /// Whether the server reports this session as the one in its terminal. `false` without a terminal or an answer.
    pub(super) async fn is_foreground(&self, id: &str) -> bool {
        self.call("session.getForeground", json!({})).await.is_ok_and(|answer| answer["sessionId"] == id)
    }

    /// The session's activity.
    pub async fn activity(&self, id: &str) -> Result<Activity, Fault> {
        const CALL: &str = "session.metadata.activity";
        let answer = self.call(CALL, json!({"sessionId": id})).await?;
        let flag = |name: &str| answer[name].as_bool().ok_or(Fault::Misunderstood(self.place, CALL));
        Ok(Activity { has_active_work: flag("hasActiveWork")? })
    }

    /// Whether a session approves everything without asking. `None` if the server does not tell: older releases cannot.
    pub(crate) async fn approves_all(&self, id: &str) -> Option<bool> {
        let answer = self.call("session.permissions.getMode", json!({"sessionId": id})).await.ok()?;
        Some(answer["mode"].as_str()? == "allow-all")
    }

    /// A session's open permission requests, in the server's order: the oldest first.
    pub async fn pending(&self, id: &str) -> Result<Vec<Request>, Fault> {
        const CALL: &str = "session.permissions.pendingRequests";
        // A request that is too large says so itself.
        let answer = self.call_shortened(CALL_TIMEOUT, CALL, json!({"sessionId": id})).await?;
        let items = answer["items"].as_array().ok_or(Fault::Misunderstood(self.place, CALL))?;
        items.iter().map(|item| Request::read(item).ok_or(Fault::Misunderstood(self.place, CALL))).collect()
    }

    /// A session's questions to its user, from the server's event log, which includes those from before we attached.
    pub(super) async fn questions(&self, id: &str) -> Result<Questions, Fault> {
        const CALL: &str = "session.eventLog.read";
        let mut questions = Questions::default();
        let mut cursor: Option<String> = None;
        for _ in 0..EVENT_PAGES {
            let mut params = json!({"sessionId": id, "types": questions::TYPES, "max": EVENT_PAGE});
            if let Some(cursor) = cursor {
                params["cursor"] = cursor.into();
            }
            let page: EventPage = serde_json::from_value(self.call(CALL, params).await?)
                .map_err(|_| Fault::Misunderstood(self.place, CALL))?;
            for event in &page.events {
                questions.apply(event);
            }
            if !page.has_more {
                return Ok(questions);
            }
            cursor = Some(page.cursor);
        }
        Ok(questions)
    }

    /// Waits for the next piece of the session's answer, for at most `wait`. Returns the size of the answer so far.
    /// Attaches to nothing.
    async fn next_piece(&self, id: &str, wait: Duration) -> Result<Option<u64>, Fault> {
        const READ: &str = "session.eventLog.read";
        let cursor = self.log_end(id).await?;
        let wait_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
        let params = json!({"sessionId": id, "cursor": cursor, "waitMs": wait_ms, "types": [PIECE], "max": 1,
            "agentScope": "all"});
        let page = self.call_within(wait + CALL_TIMEOUT, READ, params).await?;
        let events = page["events"].as_array().ok_or(Fault::Misunderstood(self.place, READ))?;
        Ok(events.first().map(|event| event["data"]["totalResponseSizeBytes"].as_u64().unwrap_or(0)))
    }

    /// Whether a piece of the session's answer comes within `wait`.
    pub(crate) async fn hears(&self, id: &str, wait: Duration) -> bool {
        matches!(self.next_piece(id, wait).await, Ok(Some(_)))
    }

    /// Listens for `window` whether the session receives an answer.
    pub(crate) async fn listen(&self, id: &str, window: Duration) -> Result<Word, Fault> {
        listen(window, |wait| self.next_piece(id, wait)).await
    }

    /// The end of the server's event log of a session, from which [`prompt_since`](Self::prompt_since) reads on.
    pub(super) async fn log_end(&self, id: &str) -> Result<String, Fault> {
        const CALL: &str = "session.eventLog.tail";
        let answer = self.call(CALL, json!({"sessionId": id})).await?;
        answer["cursor"].as_str().map(str::to_owned).ok_or(Fault::Misunderstood(self.place, CALL))
    }

    /// The id of the first prompt, by anybody, after this place in its server's event log of a session. Empty if that
    /// prompt has none.
    pub(super) async fn prompt_since(&self, id: &str, cursor: &str) -> Result<Option<String>, Fault> {
        const CALL: &str = "session.eventLog.read";
        let params = json!({"sessionId": id, "cursor": cursor, "types": ["user.message"], "max": 1});
        let answer = self.call(CALL, params).await?;
        let events = answer["events"].as_array().ok_or(Fault::Misunderstood(self.place, CALL))?;
        Ok(events.first().map(|event| event["data"]["messageId"].as_str().unwrap_or_default().to_owned()))
    }

    /// Takes back a prompt that still waits for its turn. Returns `false` if it no longer does.
    pub(super) async fn withdraw(&self, id: &str, message: &str, prompt: &str) -> Result<bool, Fault> {
        const CALL: &str = "session.queue.withdrawMessage";
        let params = json!({"sessionId": id, "messageId": message, "expectedPrompt": prompt});
        let answer = self.call(CALL, params).await?;
        answer["removed"].as_bool().ok_or(Fault::Misunderstood(self.place, CALL))
    }

    /// Sends a prompt. Returns its id, if the server gives one.
    pub(crate) async fn send(&self, id: &str, prompt: &str) -> Result<Option<String>, Fault> {
        let answer = self.call("session.send", json!({"sessionId": id, "prompt": prompt})).await?;
        Ok(answer["messageId"].as_str().map(str::to_owned))
    }

    /// Answers a permission request. Returns `false` if it was no longer open.
    pub async fn answer(&self, id: &str, request: &str, decision: Decision) -> Result<bool, Fault> {
        let result = match decision {
            Decision::Approve => json!({"kind": "approve-once", "approvedInteractively": true}),
            Decision::ApproveUnseen => json!({"kind": "approve-once"}),
            Decision::Deny => json!({"kind": "reject"}),
            Decision::Unanswered => json!({"kind": "user-not-available"}),
        };
        const CALL: &str = "session.permissions.handlePendingPermissionRequest";
        let answer = self.call(CALL, json!({"sessionId": id, "requestId": request, "result": result})).await?;
        answer["success"].as_bool().ok_or(Fault::Misunderstood(self.place, CALL))
    }

    /// Answers a question, with a result as by [`Form::result`](pilotlight_core::form::Form::result). Returns `false` if it
    /// was no longer open.
    pub(crate) async fn reply(&self, id: &str, kind: &Kind, request: &str, result: Value) -> Result<bool, Fault> {
        let (method, key) = match kind {
            Kind::Input => ("session.ui.handlePendingUserInput", "response"),
            Kind::Form(_) => ("session.ui.handlePendingElicitation", "result"),
            Kind::Plan => ("session.ui.handlePendingExitPlanMode", "response"),
        };
        let answer = self.call(method, json!({"sessionId": id, "requestId": request, key: result})).await?;
        answer["success"].as_bool().ok_or(Fault::Misunderstood(self.place, method))
    }

    /// Aborts the running turn. No error if none runs.
    pub(crate) async fn abort(&self, id: &str) -> Result<(), Fault> {
        let answer = self.call("session.abort", json!({"sessionId": id})).await?;
        if answer["success"] == false {
            return Err(Fault::Rejected(
                self.place,
                server_message(answer["error"].as_str().unwrap_or("it could not abort")),
            ));
        }
        Ok(())
    }

    /// Whether another live process has a lock in the session's folder, as far as this server knows.
    pub(crate) async fn in_use_elsewhere(&self, id: &str) -> Result<bool, Fault> {
        const CALL: &str = "sessions.checkInUse";
        let answer = self.call(CALL, json!({"sessionIds": [id]})).await?;
        let ids = answer["inUse"].as_array().ok_or(Fault::Misunderstood(self.place, CALL))?;
        Ok(ids.iter().any(|other| other == id))
    }

    /// Stops the session from asking any of its clients for permission.
    pub(crate) async fn stop_asking(&self, id: &str) -> Result<(), Fault> {
        const CALL: &str = "session.permissions.setRequired";
        self.call_within(DETACH_TIMEOUT, CALL, json!({"sessionId": id, "required": false})).await.map(drop)
    }

    /// Checks that the server responds at all.
    pub async fn ping(&self, span: Duration) -> Result<(), Fault> {
        self.call_within(span, "ping", json!({})).await.map(drop)
    }

    /// Attaches as one more client of the session, with the handlers in `config`.
    pub(super) async fn resume(&self, config: ResumeSessionConfig) -> Result<Session, Fault> {
        let resumed = timeout(LOAD_TIMEOUT, self.sdk.resume_session(config)).await;
        let resumed = resumed.map_err(|_| silent(self.place, LOAD_TIMEOUT))?;
        resumed.map_err(|error| self.fault(&error, "session.resume"))
    }

    /// Why the connection is over.
    pub(super) fn end_fault(&self) -> Fault {
        stream_fault(&self.stream, self.place)
    }

    /// Closes the connection for all clones.
    pub fn leave(&self) {
        self.sdk.force_stop();
    }

    /// The SDK's client, for calls without a method here.
    pub fn sdk(&self) -> &Client {
        &self.sdk
    }

    async fn call(&self, method: &'static str, params: Value) -> Result<Value, Fault> {
        self.call_within(CALL_TIMEOUT, method, params).await
    }

    async fn call_within(&self, span: Duration, method: &'static str, params: Value) -> Result<Value, Fault> {
        let answer = self.call_shortened(span, method, params).await?;
        if is_cut(&answer) { Err(Fault::TooLong(self.place)) } else { Ok(answer) }
    }

    /// As [`call_within`](Self::call_within), of a response that is too large without its longest texts.
    async fn call_shortened(&self, span: Duration, method: &'static str, params: Value) -> Result<Value, Fault> {
        let answer = timeout(span, self.sdk.call(method, Some(params))).await;
        answer.map_err(|_| silent(self.place, span))?.map_err(|error| self.fault(&error, method))
    }

    /// Converts an error of the SDK's.
    fn fault(&self, error: &github_copilot_sdk::Error, method: &'static str) -> Fault {
        let place = self.place;
        match error.kind() {
            ErrorKind::Session(SessionErrorKind::NotFound(_)) => Fault::NotLoaded(place),
            ErrorKind::Rpc { code: -32601 } => Fault::Unknown(place, method),
            ErrorKind::Rpc { code } if i64::from(*code) == TOO_LARGE => Fault::TooLong(place),
            ErrorKind::Rpc { .. } => Fault::Rejected(place, server_message(error.message().unwrap_or_default())),
            // The SDK's reader stops at bytes that it cannot parse, and cancels the pending calls.
            ErrorKind::Protocol(ProtocolErrorKind::RequestCancelled) if self.stream.end() == StreamEnd::Open => {
                Fault::NotCopilot(place)
            }
            ErrorKind::Json => Fault::Misunderstood(place, method),
            _ => self.end_fault(),
        }
    }
}

/// The fault for a stream that is over.
fn stream_fault(stream: &StreamState, place: Place) -> Fault {
    match stream.end() {
        StreamEnd::NotFrames => Fault::NotCopilot(place),
        StreamEnd::TooLong => Fault::TooLong(place),
        StreamEnd::Open | StreamEnd::Closed => Fault::Gone(place),
    }
}

fn silent(place: Place, span: Duration) -> Fault {
    Fault::Silent { place, seconds: span.as_secs() }
}

/// A server's error message as one short line. Quoted parts may be the session's content, and are left out.
fn server_message(message: &str) -> Box<str> {
    let mut out = String::new();
    let (mut quote, mut escaped, mut before) = (None, false, ' ');
    for c in message.chars() {
        let literal = std::mem::take(&mut escaped);
        // A single quote within a word is an apostrophe.
        let begins_word = !std::mem::replace(&mut before, c).is_alphanumeric();
        match quote {
            Some(_) if literal => {}
            Some(_) if c == '\\' => escaped = true,
            Some(open) if c == open => quote = None,
            Some(_) => {}
            None if matches!(c, '"' | '`' | '“' | '‘') || c == '\'' && begins_word => {
                quote = Some(match c {
                    '“' => '”',
                    '‘' => '’',
                    same => same,
                });
                out.push('…');
            }
            None => out.push(c),
        }
    }
    text::plain(&out, MESSAGE_MAX)
}

#[cfg(test)]
mod tests;
