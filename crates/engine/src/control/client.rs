//! The command's side: hands an order to the running tray, if there is one.

use super::command::HostReport;
use super::transport;
use super::wire::{ACK, ORDER_MAX, TrayRequest};
use crate::observation::Observation;
use pilotlight_core::order::{Order, OrderReport};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io;
use std::path::Path;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};

/// Maximum length of a report in bytes: a request is reported in full, a server's answer has at most 1 MiB, and each of
/// its bytes may be escaped to seven.
const REPORT_MAX: u64 = 8 << 20;

/// An order that was given to a tray, and the connection over which it reports. Dropping it takes the order back, as
/// long as nothing was sent for it.
#[derive(Debug)]
pub struct OrderConnection {
    stream: BufReader<transport::ClientStream>,
    /// The received part of the next line.
    line: Vec<u8>,
    is_acknowledged: bool,
    over: bool,
}

/// Hands an order to the tray that serves the control socket in `folder`; `None` if none does.
///
/// # Errors
/// If the socket exists but cannot be used, or belongs to another user; if the order is longer than a tray accepts. The
/// message is for the user.
pub async fn ask(folder: &Path, order: &Order) -> io::Result<Option<OrderConnection>> {
    send(folder, order).await
}

/// Asks the tray for its sessions; `None` if no tray serves the socket.
///
/// # Errors
/// If the tray cannot be reached, breaks off, or does not understand this version.
pub async fn ask_for_sessions(folder: &Path) -> io::Result<Option<Observation>> {
    Ok(answer(folder, TrayRequest::Sessions).await?.map(Observation::received))
}

/// Asks the tray what it knows of other machines; `None` if no tray serves the socket.
///
/// # Errors
/// If the tray cannot be reached, breaks off, or does not understand this version.
pub async fn ask_for_hosts(folder: &Path) -> io::Result<Option<Vec<HostReport>>> {
    answer(folder, TrayRequest::Hosts).await
}

/// Has the tray try to reach another machine again now, by another connection if `anew`, and returns what came of it: `None`
/// if no tray serves the socket, or that one knows no such machine.
///
/// # Errors
/// If the tray cannot be reached, breaks off, or does not understand this version.
pub async fn ask_to_retry(folder: &Path, host: &str, anew: bool) -> io::Result<Option<HostReport>> {
    Ok(answer(folder, TrayRequest::RetryHost { host: host.into(), anew }).await?.flatten())
}

/// Has the tray know that the window has come in which this process runs, which it opened at a click; `None` if no tray serves
/// the socket.
///
/// # Errors
/// If the tray cannot be reached, breaks off, or does not understand this version.
pub async fn ask_to_hold_window(folder: &Path) -> io::Result<Option<()>> {
    answer(folder, TrayRequest::HoldWindow).await
}

/// Has the tray start or stop listening for bridges, because the bridge key was created or removed; `None` if no tray
/// serves the socket.
///
/// # Errors
/// If the tray cannot be reached, breaks off, or does not understand this version.
pub async fn ask_to_listen_to_bridges(folder: &Path) -> io::Result<Option<()>> {
    answer(folder, TrayRequest::ListenToBridges).await
}

/// Has the tray tell of its sessions over the connection that is returned, and take orders there, as a
/// [`pipe`](super::pipe), with how their last messages begin only if `messages`; `None` if no tray serves the socket.
///
/// # Errors
/// If the tray cannot be reached, breaks off, or does not understand this version.
pub async fn ask_to_serve(folder: &Path, messages: bool) -> io::Result<Option<BufReader<transport::ClientStream>>> {
    let Some(mut connection) = send(folder, &TrayRequest::Serve { messages }).await? else { return Ok(None) };
    connection.acknowledged().await?;
    if connection.line.is_empty() {
        return Ok(Some(connection.stream));
    }
    Err(io::Error::new(
        io::ErrorKind::InvalidData,
        "the tray does not tell other machines of its sessions; is it another version?",
    ))
}

/// Makes a request that is not an order, and waits for its answer.
async fn answer<T: DeserializeOwned>(folder: &Path, request: TrayRequest) -> io::Result<Option<T>> {
    match send(folder, &request).await? {
        Some(mut connection) => connection.read().await.map(Some),
        None => Ok(None),
    }
}

/// Connects, and sends a request.
async fn send(folder: &Path, request: &impl Serialize) -> io::Result<Option<OrderConnection>> {
    let mut line = serde_json::to_vec(request)?;
    line.push(b'\n');
    if line.len() > ORDER_MAX {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "the order is longer than the tray accepts"));
    }
    let failed = |error: io::Error| {
        let words = format!("the running tray cannot be reached over {}: {error}", transport::display_path(folder));
        io::Error::new(error.kind(), words)
    };
    let Some(mut stream) = transport::connect(folder).await.map_err(failed)? else { return Ok(None) };
    stream.write_all(&line).await.map_err(failed)?;
    stream.flush().await.map_err(failed)?;
    Ok(Some(OrderConnection { stream: BufReader::new(stream), line: Vec::new(), is_acknowledged: false, over: false }))
}

impl OrderConnection {
    /// The process that serves the socket, if the system reports that.
    pub fn tray(&self) -> Option<u32> {
        transport::server_of(self.stream.get_ref())
    }

    /// Whether the tray has said that it has the order.
    pub fn is_acknowledged(&self) -> bool {
        self.is_acknowledged
    }

    /// Takes the order back, and keeps listening for what became of it. Returns `false` where the system cannot close only
    /// one direction (Windows): there, dropping the connection takes the order back.
    pub async fn take_back(&mut self) -> bool {
        cfg!(unix) && self.stream.get_mut().shutdown().await.is_ok()
    }

    /// Waits for the tray's first line: the acknowledgement, or already a report, which [`next`](Self::next) then
    /// returns. Cancel-safe.
    ///
    /// # Errors
    /// The same as those of [`next`](Self::next).
    pub async fn acknowledged(&mut self) -> io::Result<()> {
        if !self.is_acknowledged {
            self.read_line().await?;
            self.is_acknowledged = true;
            if self.line == ACK {
                self.line.clear();
            }
        }
        Ok(())
    }

    /// Waits for the next report; `None` after the end was reported. Cancel-safe.
    ///
    /// # Errors
    /// If the tray closes the connection before it reported an end. The message is for the user.
    pub async fn next(&mut self) -> io::Result<Option<OrderReport>> {
        if self.over {
            return Ok(None);
        }
        let report = self.read().await?;
        self.over = matches!(report, OrderReport::End(_));
        Ok(Some(report))
    }

    /// Reads the next line that is not the acknowledgement.
    async fn read<T: DeserializeOwned>(&mut self) -> io::Result<T> {
        self.acknowledged().await?;
        self.read_line().await?;
        let message = serde_json::from_slice(&self.line).map_err(|error| {
            let words = format!("the tray's answer makes no sense here ({error}); is it another version?");
            io::Error::new(io::ErrorKind::InvalidData, words)
        })?;
        self.line.clear();
        Ok(message)
    }

    /// Reads the rest of the current line.
    async fn read_line(&mut self) -> io::Result<()> {
        if self.line.last() == Some(&b'\n') {
            return Ok(());
        }
        let mut bounded = (&mut self.stream).take(REPORT_MAX - self.line.len() as u64);
        // A reset counts as an end of the stream.
        let _ = bounded.read_until(b'\n', &mut self.line).await;
        if self.line.last() == Some(&b'\n') {
            return Ok(());
        }
        Err(io::Error::new(
            io::ErrorKind::UnexpectedEof,
            "the tray broke off before it reported the outcome; `pilotlight status` shows how the session is",
        ))
    }
}
