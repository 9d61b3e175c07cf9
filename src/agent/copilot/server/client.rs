//! One connection to one server: every call has a deadline, and every failure is told in a person's words.
//!
//! A connection by itself attaches to nothing: a server answers and aborts for any session that is loaded in it, and our
//! leaving changes nothing. Only the terminal interface's own session (`--ui-server`) must be *joined* once before its
//! server admits to having it; see [`Link::reach`].

use super::asking::{self, Questions};
use super::fault::{Fault, Place};
use super::frame::{Bounded, Ended, Watch};
use super::peers;
use super::request::Request;
use super::servers::{Endpoint, Token};
use super::sieve::TOO_LARGE;
use crate::core::form::Kind;
use crate::core::text;
use github_copilot_sdk::{Client, ErrorKind, ProtocolErrorKind, ResumeSessionConfig, SDK_PROTOCOL_VERSION};
use github_copilot_sdk::{SessionErrorKind, session::Session};
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

/// How long a server may take to answer, and to become a connection at all. Copilot takes milliseconds.
pub(crate) const ANSWERED_WITHIN: Duration = Duration::from_secs(5);
/// How long a server may take to load a session: it may have to start the session's tools for that.
pub(crate) const LOADED_WITHIN: Duration = Duration::from_secs(30);
/// How long a server may take to let us go: where Pilotlight ends, nobody waits longer.
const LEFT_WITHIN: Duration = Duration::from_millis(500);
/// How much of a server's own words is shown, in characters.
const WORDS_MAX: usize = 200;

/// How many events are read at once of a server's log of them, and how many times: the most that the server gives, and far
/// more of the few kinds asked for than a session has.
const EVENT_PAGE: u32 = 1000;
const EVENT_PAGES: u32 = 50;

/// A part of a server's log of events.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Events {
    events: Vec<asking::Event>,
    cursor: String,
    has_more: bool,
}

/// What a server says that a session does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Activity {
    /// Something runs that can be aborted.
    pub abortable: bool,
    /// A turn runs, or something in the background.
    pub has_active_work: bool,
}

/// What is answered to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Allowed, this time, by a person who was shown it.
    Approve,
    /// Allowed, this time, because the user's settings say so.
    ApproveUnseen,
    /// Refused. With that the turn ends, as it does where somebody says no in the terminal: the user has the next word.
    Deny,
    /// Refused because nobody can be asked.
    Unanswered,
}

/// A connection. Its clones are the same connection.
#[derive(Clone, Debug)]
pub struct Link {
    sdk: Client,
    place: Place,
    watch: Arc<Watch>,
    /// Our own end of it, where it has an address.
    local: Option<SocketAddr>,
}

impl Link {
    /// Connects to a server on this machine. `cwd` is what the SDK is told as our working folder; it means nothing.
    pub async fn open(endpoint: &Endpoint, cwd: &Path) -> Result<Self, Fault> {
        Self::open_within(endpoint, cwd, ANSWERED_WITHIN).await
    }

    async fn open_within(endpoint: &Endpoint, cwd: &Path, span: Duration) -> Result<Self, Fault> {
        let (address, place) = (endpoint.address, Place::At(endpoint.address));
        if !address.ip().is_loopback() {
            return Err(Fault::NotLocal(address));
        }
        let made = timeout(span, async {
            let stream = TcpStream::connect(address).await.map_err(|error| match error.kind() {
                io::ErrorKind::ConnectionRefused => Fault::Refused(address),
                _ => Fault::Unreachable(place, error.to_string().into()),
            })?;
            let local = stream.local_addr().ok();
            let (read, write) = stream.into_split();
            Ok(Self { local, ..Self::greet(read, write, cwd, place, endpoint.token.as_ref()).await? })
        });
        made.await.unwrap_or(Err(silent(place, span)))
    }

    /// Speaks to a server of our own over its standard input and output, which may take a while to start.
    pub async fn over_stdio(
        output: impl AsyncRead + Unpin + Send + 'static,
        input: impl AsyncWrite + Unpin + Send + 'static,
        cwd: &Path,
        span: Duration,
    ) -> Result<Self, Fault> {
        let made = timeout(span, Self::greet(output, input, cwd, Place::Own, None)).await;
        made.unwrap_or(Err(silent(Place::Own, span)))
    }

    /// The handshake. One call both shows the token and tells the protocol's version; a second one without the token, as
    /// the SDK would send it, is refused.
    async fn greet(
        read: impl AsyncRead + Unpin + Send + 'static,
        write: impl AsyncWrite + Unpin + Send + 'static,
        cwd: &Path,
        place: Place,
        token: Option<&Token>,
    ) -> Result<Self, Fault> {
        let (read, watch) = Bounded::new(read);
        // Refused where the other side has gone already.
        let sdk = Client::from_streams(read, write, cwd.to_owned()).map_err(|_| over(&watch, place))?;
        let link = Self { sdk, place, watch, local: None };
        let params = token.map_or_else(|| json!({}), |token| json!({"token": token.expose()}));
        let greeted = link.sdk.call("connect", Some(params)).await.map_err(|error| match error.rpc_code() {
            Some(-32001 | -32002) if token.is_some() => Fault::WrongToken(place),
            Some(-32001 | -32002) => Fault::TokenNeeded(place),
            Some(-32003) => Fault::TokenUnexpected(place),
            // In its own words it might repeat what we sent.
            Some(_) => Fault::NotCopilot(place),
            None => link.fault(&error, "connect"),
        })?;
        match greeted["protocolVersion"].as_i64() {
            Some(version) if version == i64::from(SDK_PROTOCOL_VERSION) => {}
            Some(version) => return Err(Fault::Protocol(place, version)),
            None => return Err(Fault::NotCopilot(place)),
        }
        link.watch.trust();
        Ok(link)
    }

    /// Whether nobody but us is connected to this server: `None` where that cannot be told, and where somebody is, because
    /// a server does not say who is attached to which of its sessions.
    pub(crate) fn is_only_client(&self) -> Option<bool> {
        match (self.place, self.local) {
            (Place::Own, _) => Some(true),
            (Place::At(server), Some(local)) => peers::is_alone(server, local),
            (Place::At(_), None) => None,
        }
    }

    /// Which server this is.
    pub(crate) fn place(&self) -> Place {
        self.place
    }

    /// The other clients of this server; `None` where that cannot be told.
    pub(super) fn peers(&self) -> Option<BTreeSet<u16>> {
        match (self.place, self.local) {
            (Place::At(server), Some(local)) => peers::others(server, local),
            _ => None,
        }
    }

    /// Makes the calls below work for this session, and says what it does.
    ///
    /// A session that the server does not admit to having is joined where it is this server's all the same: resumed with the
    /// fewest parameters and without any handler, so that nothing is written, nothing changes for those who are there, and the
    /// join survives our leaving. That is what the terminal interface's own session wants. Any other server would load the
    /// session a second time, and two processes would write to one log. So either `owned` says that this server's process
    /// **provably holds the session**, or the server itself says that it is the one in its terminal.
    pub(crate) async fn reach(&self, id: &str, owned: bool) -> Result<Activity, Fault> {
        match self.activity(id).await {
            Err(Fault::NotLoaded(_)) if owned || self.shows(id).await => {
                let params = json!({"sessionId": id, "disableResume": true, "requestPermission": false});
                self.call_within(LOADED_WITHIN, "session.resume", params).await?;
                self.activity(id).await
            }
            other => other,
        }
    }

    /// Whether the server says that this is the session in its terminal. One that has no terminal, or does not answer, does not.
    async fn shows(&self, id: &str) -> bool {
        self.call("session.getForeground", json!({})).await.is_ok_and(|answer| answer["sessionId"] == id)
    }

    /// What a session does.
    pub async fn activity(&self, id: &str) -> Result<Activity, Fault> {
        const CALL: &str = "session.metadata.activity";
        let answer = self.call(CALL, json!({"sessionId": id})).await?;
        let flag = |name: &str| answer[name].as_bool().ok_or(Fault::Misunderstood(self.place, CALL));
        Ok(Activity { abortable: flag("abortable")?, has_active_work: flag("hasActiveWork")? })
    }

    /// A session's open permission requests, in the server's order: the first one has been open for longest.
    pub async fn pending(&self, id: &str) -> Result<Vec<Request>, Fault> {
        const CALL: &str = "session.permissions.pendingRequests";
        let answer = self.call(CALL, json!({"sessionId": id})).await?;
        let items = answer["items"].as_array().ok_or(Fault::Misunderstood(self.place, CALL))?;
        items.iter().map(|item| Request::read(item).ok_or(Fault::Misunderstood(self.place, CALL))).collect()
    }

    /// What a session asks its user, from the server's log of events: what was asked before we came, too.
    pub(super) async fn questions(&self, id: &str) -> Result<Questions, Fault> {
        const CALL: &str = "session.eventLog.read";
        let mut questions = Questions::default();
        let mut cursor: Option<String> = None;
        for _ in 0..EVENT_PAGES {
            let mut params = json!({"sessionId": id, "types": asking::TYPES, "max": EVENT_PAGE});
            if let Some(cursor) = cursor {
                params["cursor"] = cursor.into();
            }
            let page: Events = serde_json::from_value(self.call(CALL, params).await?)
                .map_err(|_| Fault::Misunderstood(self.place, CALL))?;
            for event in &page.events {
                questions.hear(event);
            }
            if !page.has_more {
                return Ok(questions);
            }
            cursor = Some(page.cursor);
        }
        Ok(questions)
    }

    /// Answers a request. `false`: it was no longer open, and nothing was done.
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

    /// Answers a question, as [`Form::result`](crate::core::form::Form::result) says. `false`: it was no longer open, and nothing
    /// was done.
    pub(crate) async fn reply(&self, id: &str, kind: &Kind, request: &str, result: Value) -> Result<bool, Fault> {
        let (method, key) = match kind {
            Kind::Input => ("session.ui.handlePendingUserInput", "response"),
            Kind::Form(_) => ("session.ui.handlePendingElicitation", "result"),
            Kind::Plan => ("session.ui.handlePendingExitPlanMode", "response"),
        };
        let answer = self.call(method, json!({"sessionId": id, "requestId": request, key: result})).await?;
        answer["success"].as_bool().ok_or(Fault::Misunderstood(self.place, method))
    }

    /// Aborts the turn that runs. No error where none does.
    pub(crate) async fn abort(&self, id: &str) -> Result<(), Fault> {
        let answer = self.call("session.abort", json!({"sessionId": id})).await?;
        if answer["success"] == false {
            return Err(Fault::Rejected(self.place, words(answer["error"].as_str().unwrap_or("it could not abort"))));
        }
        Ok(())
    }

    /// Sends a prompt.
    pub(crate) async fn send(&self, id: &str, prompt: &str) -> Result<(), Fault> {
        self.call("session.send", json!({"sessionId": id, "prompt": prompt})).await.map(drop)
    }

    /// Whether a live lock of another process lies in the session's folder, as far as this server can tell.
    pub(crate) async fn in_use_elsewhere(&self, id: &str) -> Result<bool, Fault> {
        const CALL: &str = "sessions.checkInUse";
        let answer = self.call(CALL, json!({"sessionIds": [id]})).await?;
        let ids = answer["inUse"].as_array().ok_or(Fault::Misunderstood(self.place, CALL))?;
        Ok(ids.iter().any(|other| other == id))
    }

    /// From now on the session asks nobody, of whatever client.
    pub(crate) async fn ask_no_more(&self, id: &str) -> Result<(), Fault> {
        const CALL: &str = "session.permissions.setRequired";
        self.call_within(LEFT_WITHIN, CALL, json!({"sessionId": id, "required": false})).await.map(drop)
    }

    /// Whether the server answers at all.
    pub async fn ping(&self, span: Duration) -> Result<(), Fault> {
        self.call_within(span, "ping", json!({})).await.map(drop)
    }

    /// Attaches: one more client of the session, with its handlers.
    pub(super) async fn resume(&self, config: ResumeSessionConfig) -> Result<Session, Fault> {
        let resumed = timeout(LOADED_WITHIN, self.sdk.resume_session(config)).await;
        let resumed = resumed.map_err(|_| silent(self.place, LOADED_WITHIN))?;
        resumed.map_err(|error| self.fault(&error, "session.resume"))
    }

    /// Why nothing comes any more.
    pub(super) fn over(&self) -> Fault {
        over(&self.watch, self.place)
    }

    /// Closes the connection, for all clones.
    pub fn leave(&self) {
        self.sdk.force_stop();
    }

    /// The SDK's client, for calls that have no method here.
    pub fn sdk(&self) -> &Client {
        &self.sdk
    }

    async fn call(&self, method: &'static str, params: Value) -> Result<Value, Fault> {
        self.call_within(ANSWERED_WITHIN, method, params).await
    }

    async fn call_within(&self, span: Duration, method: &'static str, params: Value) -> Result<Value, Fault> {
        let answer = timeout(span, self.sdk.call(method, Some(params))).await;
        answer.map_err(|_| silent(self.place, span))?.map_err(|error| self.fault(&error, method))
    }

    /// A failure of the SDK's in our words.
    fn fault(&self, error: &github_copilot_sdk::Error, method: &'static str) -> Fault {
        let place = self.place;
        match error.kind() {
            ErrorKind::Session(SessionErrorKind::NotFound(_)) => Fault::NotLoaded(place),
            ErrorKind::Rpc { code: -32601 } => Fault::Unknown(place, method),
            ErrorKind::Rpc { code } if i64::from(*code) == TOO_LARGE => Fault::TooLong(place),
            ErrorKind::Rpc { .. } => Fault::Rejected(place, words(error.message().unwrap_or_default())),
            // The SDK's reader gives up on what it cannot read, and drops whoever waits.
            ErrorKind::Protocol(ProtocolErrorKind::RequestCancelled) if self.watch.ended() == Ended::No => {
                Fault::NotCopilot(place)
            }
            ErrorKind::Json => Fault::Misunderstood(place, method),
            _ => self.over(),
        }
    }
}

/// Why a connection is over.
fn over(watch: &Watch, place: Place) -> Fault {
    match watch.ended() {
        Ended::NoFrames => Fault::NotCopilot(place),
        Ended::TooLong => Fault::TooLong(place),
        Ended::No | Ended::Closed => Fault::Gone(place),
    }
}

fn silent(place: Place, span: Duration) -> Fault {
    Fault::Silent { place, seconds: span.as_secs() }
}

/// What a server says of itself, as one short line. What stands in quotes may be the session's, and is left out.
fn words(message: &str) -> Box<str> {
    let mut out = String::new();
    let (mut quote, mut escaped, mut before) = (None, false, ' ');
    for c in message.chars() {
        let literal = std::mem::take(&mut escaped);
        // Within a word it is an apostrophe.
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
    text::plain(&out, WORDS_MAX)
}

#[cfg(test)]
mod tests;
