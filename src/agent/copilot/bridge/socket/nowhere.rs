//! Where there are no Unix sockets, nobody listens.

use super::Heard;
use std::path::Path;
use tokio::sync::mpsc;

/// The socket, of which there is none.
#[derive(Debug)]
pub(crate) struct Served(());

/// Serves nothing.
///
/// # Errors
/// Always.
pub(crate) fn serve(
    _folder: &Path,
    _key: Vec<u8>,
    _by_itself: bool,
) -> anyhow::Result<(Served, mpsc::Receiver<Heard>)> {
    anyhow::bail!("there is no bridge to terminals on this system yet")
}

/// Whether somebody listens in this folder.
pub(crate) const fn is_listened_to(_folder: &Path) -> bool {
    false
}
