//! How the sessions of an agent are acted on, beyond what signals to their processes do.

use crate::channel::action_context::ActionContext;
use crate::channel::endpoint::ServerSetting;
use crate::channel::failure::Failure;
use crate::channel::{Bridge, Connection, Keep, Servers, Service};
use async_trait::async_trait;
use pilotlight_core::action;
use pilotlight_core::order::Step;
use pilotlight_core::session::{About, LetGo, Observed};
use pilotlight_core::time::Span;
use pilotlight_core::turn::Request;
use pilotlight_core::verdict::Asking;
use pilotlight_system::clock::Clock;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::task::{Context, Poll};

/// How the sessions of an agent are acted on. Each method has the answer that is right for an agent without that way.
#[async_trait]
pub trait Control: Send + Sync {
    /// The servers of a process of it, without connecting to any. `None` if it has none. Takes under a millisecond on
    /// Linux.
    fn servers(&self, _pid: u32, _known: &KnownServers<'_>) -> Option<Arc<dyn Servers>> {
        None
    }

    /// The service that runs a session, if its owner is one that takes orders. `home`: the one in which its owner has it.
    fn service(&self, _home: &Path, _id: &str, _observed: &Observed) -> Option<Arc<dyn Service>> {
        None
    }

    /// Resumes a session in a server of our own: `program`, with this home. The caller has verified that its process is
    /// gone.
    ///
    /// # Errors
    /// It is not resumed.
    async fn host(
        &self,
        _program: &Path,
        _home: &Path,
        _context: &ActionContext,
        _keep: Keep,
    ) -> Result<Arc<dyn Connection>, Failure> {
        Err(Failure::refusal(Step::Resume, "its agent has no server that could resume it"))
    }

    /// Whether a process is a server that we started to host a session.
    fn is_of_our_server(&self, _pid: u32) -> bool {
        false
    }
}

/// What tells where the servers of an agent's processes listen.
#[derive(Clone, Copy, Debug)]
pub struct KnownServers<'a> {
    /// The homes of the agent.
    pub homes: &'a [PathBuf],
    /// The servers that the settings name.
    pub settings: &'a [ServerSetting],
    /// Whether the process may be shown their tokens: it provably holds the session that it is asked about.
    pub is_trusted: bool,
}

/// The bridges of an agent: connections that its terminals make to us.
pub trait Bridges: Send {
    /// The name of the agent.
    fn agent(&self) -> &'static str;

    /// Whether a session's bridge is connected as long as the session runs. If not, it connects when the session asks.
    fn stays_connected(&self) -> bool {
        true
    }

    /// Puts settings in force. Called before it begins to listen.
    fn configure(&mut self, _settings: BridgeSettings) {}

    /// Whether we have answered what the session's bridge reported last, and does no more.
    fn was_answered(&self, _session: &str) -> bool {
        false
    }

    /// Takes note of what the session's files say, before it [reports](Self::report): of what is open in the session, some may
    /// have been answered in its terminal.
    fn observe(&mut self, _session: &str, _observed: &Observed) {}

    /// Lets go of what was heard of a session that nobody watches.
    fn forget_unwatched(&mut self, _session: &str) {}

    /// Begins to listen, unless it waits to be told to.
    fn start(&mut self);

    /// Listens from now on if the user has installed the bridge, and not if it was removed.
    fn update_listener(&mut self);

    /// The socket at which we listen, if we do and it has a file.
    fn socket(&self) -> Option<PathBuf> {
        None
    }

    /// Makes the socket again if its file was removed.
    fn renew_socket(&mut self) {}

    /// What is next heard of one. Never ready while nobody listens.
    fn poll_news(&mut self, context: &mut Context<'_>, clock: &Clock) -> Poll<BridgeNews>;

    /// Whether we listen for bridges.
    fn is_listening(&self) -> bool;

    /// Whether the bridge of a session is connected and has reported what is open there.
    fn has_reported(&self, session: &str) -> bool;

    /// What the bridge of a session that this process owns has reported, if it is connected. `untried` allows releases of
    /// the agent that it was not tested with.
    fn report(&self, session: &str, owner: u32, untried: bool) -> Option<BridgeReport>;

    /// Why what a session asks over its bridge, which this process owns, is left to its terminal, if it is.
    fn let_go(&self, _session: &str, _owner: u32) -> Option<LetGo> {
        None
    }

    /// The bridge of a session that this process owns.
    fn bridge(&self, session: &str, owner: u32) -> Option<Arc<dyn Bridge>>;
}

/// The settings of bridges.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BridgeSettings {
    /// Releases of an agent that a bridge was not tried with may be answered, too.
    pub untried: bool,
    /// How long a sub-agent's request is held, which its terminal does not show meanwhile.
    pub hold_sub_agents: Span,
}

/// What was heard of a bridge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BridgeNews {
    /// Something is new about the session with this id.
    Of(Box<str>),
    /// All bridges were disconnected: none of them may make use of a remembered consent any more.
    StoppedElevating,
}

/// What a session's bridge reports.
#[derive(Clone, Debug, PartialEq)]
pub struct BridgeReport {
    /// What it may do.
    pub bridge: action::Bridge,
    /// The release of the agent that the session runs in.
    pub release: Option<Box<str>>,
    /// Whether it is of another version than ours. After an update, an old one runs as long as its session.
    pub is_other: bool,
    /// Whether everything is approved without asking. `None`: it has not told yet, or the release does not tell.
    pub approves_all: Option<bool>,
    /// The session's open questions to its user.
    pub questions: Vec<Asking>,
    /// Its open requests, where its log has none.
    pub requests: Vec<Request>,
    /// Its title and folder, where only its reports tell them, which any program can write.
    pub about: Option<About>,
}
