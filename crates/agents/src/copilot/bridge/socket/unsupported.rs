//! Stub for systems without a bridge.

use super::BridgeEvent;
use std::path::Path;
use tokio::sync::mpsc;

/// Never created.
#[derive(Debug)]
pub struct BridgeSocket(());

impl BridgeSocket {
    /// Nowhere.
    pub(crate) fn path(&self) -> std::path::PathBuf {
        std::path::PathBuf::new()
    }

    /// Does nothing.
    pub(crate) const fn renew(&mut self) {}
}

/// Fails.
///
/// # Errors
/// Always.
pub fn serve(
    _folder: &Path,
    _key: Vec<u8>,
    _auto_elevate: bool,
    _is_users: fn(u32) -> bool,
) -> anyhow::Result<(BridgeSocket, mpsc::Receiver<BridgeEvent>)> {
    anyhow::bail!("there is no bridge to terminals on this system yet")
}

/// Whether anybody listens in this folder.
pub const fn is_listened_to(_folder: &Path) -> bool {
    false
}
