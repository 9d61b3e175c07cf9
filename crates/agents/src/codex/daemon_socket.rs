//! The daemon's socket, and whether it is the daemon's.
//!
//! The socket asks for no token: whoever opens it is believed. So what listens there is verified instead, before a word is
//! said: the socket belongs to our user and to nobody else, in a folder of which the same holds, and the process at the
//! other end is the one that the home notes as its daemon, which is verified by its start. The daemon is never started.

use super::daemon;
use crate::channel::failure::Failure;
#[cfg(not(unix))]
use crate::channel::{Channel, Service, ServiceReport, action_context::ActionContext, request::Request};
#[cfg(not(unix))]
use async_trait::async_trait;
use pilotlight_core::order::Step;
#[cfg(not(unix))]
use pilotlight_core::order::{Decision, Reply, Which};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Where a home has its daemon's socket: a link to one in the folder for temporary files.
const SOCKET: &str = "app-server-control/app-server-control.sock";

/// How long the daemon may take for an answer.
pub(super) const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);

/// How the daemon of a home is reached, for one of its threads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DaemonSocket {
    home: PathBuf,
    /// The thread, and the sub-agents of it that are at work.
    pub(super) threads: Vec<Box<str>>,
}

impl DaemonSocket {
    /// The socket to these threads, if `owner`, which has them loaded, is the daemon of this home.
    pub(crate) fn of(home: &Path, owner: u32, threads: Vec<Box<str>>) -> Option<Self> {
        let is_there = daemon::running(home) == Ok(owner) && home.join(SOCKET).exists();
        is_there.then(|| Self { home: home.to_owned(), threads })
    }

    /// Opens it, and verifies what is behind it.
    ///
    /// # Errors
    /// Why it is not opened.
    #[cfg(unix)]
    pub(super) async fn open(&self) -> Result<tokio::net::UnixStream, Failure> {
        let refused = |why: &str| Failure::refusal(Step::Attach, why);
        let daemon = daemon::running(&self.home).map_err(|why| refused(&why))?;
        let socket = private_socket(&self.home.join(SOCKET)).map_err(|why| refused(&why))?;
        let connecting = tokio::net::UnixStream::connect(&socket);
        let stream = match tokio::time::timeout(ANSWER_TIMEOUT, connecting).await {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => return Err(refused(&format!("no connection to Codex's daemon: {error}"))),
            Err(_) => return Err(refused("no connection to Codex's daemon within 5 s")),
        };
        let peer = stream.peer_cred().map_err(|error| {
            refused(&format!("the system does not say who listens at the daemon's socket: {error}"))
        })?;
        let is_it = peer.uid() == rustix::process::geteuid().as_raw()
            && peer.pid().and_then(|pid| u32::try_from(pid).ok()) == Some(daemon);
        // The note may name another process by now.
        if !is_it || daemon::running(&self.home) != Ok(daemon) {
            return Err(refused("what listens at the socket of Codex's daemon is another program; nothing was sent"));
        }
        Ok(stream)
    }
}

/// Why a question is not answered.
pub(super) const TAKES_NO_ANSWERS: &str = "its service takes no answers: answer it where it asks";

/// Without Unix sockets, there is no daemon.
#[cfg(not(unix))]
#[async_trait]
impl Channel for DaemonSocket {
    async fn request(&self, _: &ActionContext, _: &str) -> Result<Request, Failure> {
        Err(Failure::no_longer_open())
    }

    async fn answer(&self, _: &ActionContext, _: &Which, _: &Decision) -> Result<String, Failure> {
        Err(Failure::no_longer_open())
    }

    async fn reply(&self, _: &ActionContext, _: &Reply) -> Result<String, Failure> {
        Err(Failure::refusal(Step::Answer, TAKES_NO_ANSWERS))
    }

    async fn stop(&self, _: &ActionContext) -> Result<String, Failure> {
        Err(Failure::no_longer_open())
    }
}

#[cfg(not(unix))]
#[async_trait]
impl Service for DaemonSocket {
    async fn watch(&self, _: &(dyn Fn(ServiceReport) + Sync)) -> Result<(), Failure> {
        Ok(())
    }
}

/// The socket that this link leads to, if nobody else can open it, nor put another into its place.
#[cfg(unix)]
fn private_socket(link: &Path) -> Result<PathBuf, String> {
    use std::os::unix::fs::{FileTypeExt, MetadataExt};
    let unreadable = |error: std::io::Error| format!("the socket of Codex's daemon cannot be found: {error}");
    let socket = link.canonicalize().map_err(unreadable)?;
    let meta = std::fs::symlink_metadata(&socket).map_err(unreadable)?;
    let folder = socket.parent().unwrap_or(&socket).metadata().map_err(unreadable)?;
    let is_ours =
        |meta: &std::fs::Metadata| meta.uid() == rustix::process::geteuid().as_raw() && meta.mode() & 0o077 == 0;
    if !meta.file_type().is_socket() {
        return Err("the home has something else in place of its daemon's socket; nothing was sent".to_owned());
    }
    if !is_ours(&meta) || !is_ours(&folder) {
        return Err("other users can reach the socket of Codex's daemon, or its folder; nothing was sent".to_owned());
    }
    Ok(socket)
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;
    use crate::codex::fake;
    use pilotlight_system::process::testing::alone;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::net::UnixListener;

    async fn open(home: &Path) -> Result<(), String> {
        let socket = DaemonSocket { home: home.to_owned(), threads: Vec::new() };
        socket.open().await.map(drop).map_err(|failure| failure.to_string())
    }

    async fn refusal(home: &Path) -> String {
        open(home).await.unwrap_err()
    }

    #[tokio::test]
    async fn case_262_only_the_noted_daemon_behind_a_private_socket_is_spoken_to() {
        alone!();
        let home = fake::home(std::process::id());
        let (link, folder) = (home.path().join(SOCKET), home.path().join("private"));
        assert!(DaemonSocket::of(home.path(), std::process::id(), Vec::new()).is_none(), "there is no socket yet");
        assert!(refusal(home.path()).await.contains("cannot be found"));
        fs::create_dir_all(link.parent().unwrap()).unwrap();
        fs::create_dir(&folder).unwrap();
        fs::set_permissions(&folder, Permissions::from_mode(0o700)).unwrap();
        let socket = folder.join("socket");
        std::os::unix::fs::symlink(&socket, &link).unwrap();
        fs::write(&socket, "").unwrap();
        assert!(refusal(home.path()).await.contains("something else in place"));
        fs::remove_file(&socket).unwrap();
        let listener = UnixListener::bind(&socket).unwrap();
        fs::set_permissions(&socket, Permissions::from_mode(0o666)).unwrap();
        assert!(refusal(home.path()).await.contains("other users can reach"));
        fs::set_permissions(&socket, Permissions::from_mode(0o600)).unwrap();
        fs::set_permissions(&folder, Permissions::from_mode(0o755)).unwrap();
        assert!(refusal(home.path()).await.contains("other users can reach"));
        fs::set_permissions(&folder, Permissions::from_mode(0o700)).unwrap();
        let socket = DaemonSocket::of(home.path(), std::process::id(), Vec::new()).unwrap();
        assert!(socket.open().await.is_ok());
        assert!(DaemonSocket::of(home.path(), 1, Vec::new()).is_none(), "another process has the thread loaded");
        // The daemon that is noted lives, and another program listens: ourselves.
        let mut daemon = std::process::Command::new("sleep").arg("100").spawn().unwrap();
        fake::note(home.path(), daemon.id());
        assert!(refusal(home.path()).await.contains("another program"));
        daemon.kill().unwrap();
        daemon.wait().unwrap();
        assert!(refusal(home.path()).await.contains("has ended"));
        fake::note(home.path(), std::process::id());
        drop(listener);
        assert!(refusal(home.path()).await.contains("no connection"));
    }
}
