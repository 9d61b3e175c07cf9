//! Where the hooks of an agent are listened for, and when.

use super::listener::{HookEvent, Listener, Listening};
use super::memory::Memory;
use pilotlight_system::log::{self, cause};
use pilotlight_system::runtime::is_listened_to;
use std::fmt;
use std::path::PathBuf;
use std::task::{Context, Poll};

/// Where to listen for hooks, and when.
pub struct HookConfig {
    /// The runtime folder.
    pub folder: PathBuf,
    /// Whether the user has installed the bridge.
    pub is_installed: Box<dyn Fn() -> bool + Send>,
    /// Whether no tool of a session that this process runs can have started us.
    pub is_users: fn(u32) -> bool,
    /// Other processes may listen there as well, one at a time: this one begins when it is told to, and not while another
    /// does.
    pub shared: bool,
    /// The memory for what waits, shared with the other bridges that are hooks.
    pub memory: Memory,
}

#[cfg(test)]
impl HookConfig {
    /// Of an installed bridge to which nobody connects.
    pub(crate) fn nowhere() -> Self {
        Self {
            folder: "/nowhere".into(),
            is_installed: Box::new(|| true),
            is_users: |_| true,
            shared: false,
            memory: Memory::default(),
        }
    }
}

impl fmt::Debug for HookConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HookConfig").field("folder", &self.folder).finish_non_exhaustive()
    }
}

/// The hooks of an agent that connect to us.
#[derive(Debug)]
pub(crate) struct HookSource<A> {
    pub(crate) config: HookConfig,
    listening: Listening<A>,
    listener: Option<Listener<A>>,
}

impl<A: Send + Sync + 'static> HookSource<A> {
    pub(crate) const fn new(config: HookConfig, listening: Listening<A>) -> Self {
        Self { config, listening, listener: None }
    }

    /// Begins to listen, unless it waits to be told to.
    pub(crate) fn start(&mut self) {
        if !self.config.shared {
            self.update();
        }
    }

    /// Listens from now on if the user has installed the bridge, and not if it was removed. Returns whether the bridge is
    /// installed.
    pub(crate) fn update(&mut self) -> bool {
        let (config, listening) = (&self.config, self.listening);
        if !(config.is_installed)() {
            self.listener = None;
            return false;
        }
        if self.listener.is_none() && !(config.shared && is_listened_to(&config.folder.join(listening.socket))) {
            match Listener::serve(&config.folder, listening) {
                Ok(listener) => self.listener = Some(listener),
                Err(error) => log::warn!("hooks cannot reach Pilotlight: {}", cause(&error)),
            }
        }
        true
    }

    /// Where we listen, if we do.
    pub(crate) fn socket(&self) -> Option<PathBuf> {
        Some(self.listener.as_ref()?.socket.path())
    }

    /// Makes the socket again if its file was removed.
    pub(crate) fn renew(&mut self) {
        if let Some(listener) = &mut self.listener {
            listener.socket.renew();
        }
    }

    /// The next event. Never ready while nobody listens.
    pub(crate) fn poll(&mut self, context: &mut Context<'_>) -> Poll<HookEvent<A>> {
        let Some(listener) = &mut self.listener else { return Poll::Pending };
        match listener.events.poll_recv(context) {
            Poll::Ready(Some(event)) => Poll::Ready(event),
            Poll::Ready(None) | Poll::Pending => Poll::Pending,
        }
    }

    /// Whether we listen.
    pub(crate) const fn is_listening(&self) -> bool {
        self.listener.is_some()
    }
}

/// An id that no other request has: hooks have none, or any. A UUID, as nothing else becomes a part of a command.
pub(crate) fn new_id() -> Option<Box<str>> {
    let mut random = [0; 16];
    getrandom::fill(&mut random).ok()?;
    let (high, low) =
        (u64::from_be_bytes(random[..8].try_into().ok()?), u64::from_be_bytes(random[8..].try_into().ok()?));
    let id = format!(
        "{:08x}-{:04x}-4{:03x}-8{:03x}-{:012x}",
        high >> 32,
        high >> 16 & 0xffff,
        high & 0xfff,
        low >> 48 & 0xfff,
        low & 0xffff_ffff_ffff
    );
    Some(id.into())
}
