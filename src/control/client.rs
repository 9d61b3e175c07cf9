//! The command's side: hands an order to the tray that runs, if one does.

use super::{HEARD, ORDER_MAX, place};
use crate::core::order::{Order, Report};
use std::io;
use std::path::Path;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};

/// A report is at most so long, in bytes: a request is told whole, and a server's answer is at most 1 MiB long, of which each
/// byte may be written as seven.
const REPORT_MAX: u64 = 8 << 20;

/// An order that a tray was given. Dropping it leaves the order with the tray.
#[derive(Debug)]
pub(crate) struct Asked {
    stream: BufReader<place::ClientStream>,
    /// What has come of the next line.
    line: Vec<u8>,
    heard: bool,
    over: bool,
}

/// Hands an order to the tray that serves the control socket in `folder`; `None` where none does.
///
/// # Errors
/// Where the socket is there and cannot be used, or is another user's; where the order is longer than a tray takes. In words
/// for the user.
pub(crate) async fn ask(folder: &Path, order: &Order) -> io::Result<Option<Asked>> {
    let mut line = serde_json::to_vec(order)?;
    line.push(b'\n');
    if line.len() > ORDER_MAX {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "the order is longer than the tray accepts"));
    }
    let failed = |error: io::Error| {
        let words = format!("the running tray cannot be reached over {}: {error}", place::shown(folder));
        io::Error::new(error.kind(), words)
    };
    let Some(mut stream) = place::connect(folder).await.map_err(failed)? else { return Ok(None) };
    stream.write_all(&line).await.map_err(failed)?;
    stream.flush().await.map_err(failed)?;
    Ok(Some(Asked { stream: BufReader::new(stream), line: Vec::new(), heard: false, over: false }))
}

impl Asked {
    /// The process that serves the socket, where the system tells.
    pub(crate) fn tray(&self) -> Option<u32> {
        place::server_of(self.stream.get_ref())
    }

    /// Waits until the tray has said anything: that the order arrived, or already a report, which [`next`](Self::next) returns
    /// then. May be dropped and called again.
    ///
    /// # Errors
    /// As of [`next`](Self::next).
    pub(crate) async fn heard(&mut self) -> io::Result<()> {
        if !self.heard {
            self.read_line().await?;
            self.heard = true;
            if self.line == HEARD {
                self.line.clear();
            }
        }
        Ok(())
    }

    /// The next report, as soon as there is one; `None` after the end was reported. May be dropped and called again.
    ///
    /// # Errors
    /// Where the tray ends, or breaks off, before it reported an end. In words for the user.
    pub(crate) async fn next(&mut self) -> io::Result<Option<Report>> {
        if self.over {
            return Ok(None);
        }
        self.heard().await?;
        self.read_line().await?;
        let report = serde_json::from_slice(&self.line).map_err(|error| {
            let words = format!("the tray's answer makes no sense here ({error}); is it another version?");
            io::Error::new(io::ErrorKind::InvalidData, words)
        })?;
        self.line.clear();
        self.over = matches!(report, Report::End(_));
        Ok(Some(report))
    }

    /// Reads the line that has begun to its end.
    async fn read_line(&mut self) -> io::Result<()> {
        if self.line.last() == Some(&b'\n') {
            return Ok(());
        }
        let mut bounded = (&mut self.stream).take(REPORT_MAX - self.line.len() as u64);
        // A connection that is reset says no more than one that is closed.
        let _ = bounded.read_until(b'\n', &mut self.line).await;
        if self.line.last() == Some(&b'\n') {
            return Ok(());
        }
        Err(io::Error::new(
            io::ErrorKind::UnexpectedEof,
            "the tray broke off before it said how it ended; `pilotlight status` tells how the session is",
        ))
    }
}
