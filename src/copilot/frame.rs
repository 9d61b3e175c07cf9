//! A bound on what a server may make us hold: the reader between a socket and the SDK.
//!
//! The SDK reads frames of any length, and lines of any length in front of them. Whoever listens on a port may be anything,
//! so the stream is watched on its way: its headers are followed far enough to know where each frame ends, and reading
//! fails at the first one that is too long, or that is none. What was wrong is remembered, because the SDK tells its
//! callers no more than that the connection is over.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, ReadBuf};

/// The longest frame that is read, in bytes: many times the longest line seen in a log (430 KB).
const FRAME_MAX: u64 = 64 << 20;
/// The longest header, in bytes. Copilot's has some 30.
const HEADER_MAX: usize = 4096;
/// What may come before the handshake is over, in bytes: its answer has some 150.
const HANDSHAKE_MAX: u64 = 1 << 20;
/// How a frame's length is given: exactly so, as the SDK takes it.
const LENGTH: &[u8] = b"Content-Length: ";

/// How a stream ended, for whoever asks after the SDK has given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    /// It has not, as far as can be told here.
    No,
    /// The other side closed it, or it broke.
    Closed,
    /// What came are no frames.
    NoFrames,
    /// A frame was longer than is read, or too much came before the handshake was over.
    TooLong,
}

/// What the reader has seen, shared with the connection that it serves.
#[derive(Debug)]
pub(super) struct Watch {
    ended: AtomicU8,
    /// How much may come yet, in bytes.
    allowance: AtomicU64,
}

impl Watch {
    /// How the stream ended.
    pub(super) fn ended(&self) -> Ended {
        match self.ended.load(Ordering::Acquire) {
            0 => Ended::No,
            1 => Ended::Closed,
            2 => Ended::NoFrames,
            _ => Ended::TooLong,
        }
    }

    /// The handshake is over: frames of the usual bound may come, as many as there are.
    pub(super) fn trust(&self) {
        self.allowance.store(u64::MAX, Ordering::Release);
    }

    /// Only the first end counts.
    fn end(&self, how: Ended) {
        let _ = self.ended.compare_exchange(0, how as u8, Ordering::AcqRel, Ordering::Acquire);
    }
}

/// A reader that follows the frames it hands on.
pub(super) struct Bounded<R> {
    inner: R,
    watch: Arc<Watch>,
    /// What of the header of the next frame has come.
    header: Vec<u8>,
    /// What of the present frame is still to come, in bytes.
    body: u64,
}

impl<R> Bounded<R> {
    /// Watches over `inner`.
    pub(super) fn new(inner: R) -> (Self, Arc<Watch>) {
        let watch = Arc::new(Watch { ended: AtomicU8::new(0), allowance: AtomicU64::new(HANDSHAKE_MAX) });
        (Self { inner, watch: Arc::clone(&watch), header: Vec::new(), body: 0 }, watch)
    }

    /// Follows what has come.
    fn follow(&mut self, mut bytes: &[u8]) -> Result<(), Ended> {
        let allowance = self.watch.allowance.load(Ordering::Acquire);
        if allowance != u64::MAX {
            let left = allowance.checked_sub(bytes.len() as u64).ok_or(Ended::TooLong)?;
            // Fails only where the stream was trusted meanwhile.
            let _ = self.watch.allowance.compare_exchange(allowance, left, Ordering::AcqRel, Ordering::Acquire);
        }
        while !bytes.is_empty() {
            if self.body > 0 {
                let taken = bytes.len().min(usize::try_from(self.body).unwrap_or(usize::MAX));
                self.body -= taken as u64;
                bytes = &bytes[taken..];
                continue;
            }
            let byte = bytes[0];
            bytes = &bytes[1..];
            // The SDK takes more than this for white space; what it would read otherwise than we do is refused.
            if self.header.len() >= HEADER_MAX || !(byte.is_ascii_graphic() || b" \t\r\n".contains(&byte)) {
                return Err(Ended::NoFrames);
            }
            if byte == b'\n' && is_blank(self.header.rsplit(|&byte| byte == b'\n').next().unwrap_or_default()) {
                self.body = length(&self.header)?;
                self.header.clear();
            } else {
                self.header.push(byte);
            }
        }
        Ok(())
    }
}

/// Whether a line ends the header.
fn is_blank(line: &[u8]) -> bool {
    line.trim_ascii().is_empty()
}

/// The length that a header gives: the last one counts.
fn length(header: &[u8]) -> Result<u64, Ended> {
    let mut lines = header.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii);
    let digits = lines.rfind(|line| line.starts_with(LENGTH)).ok_or(Ended::NoFrames)?[LENGTH.len()..].trim_ascii();
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return Err(Ended::NoFrames);
    }
    // More digits than a number can hold are a length that is too long as well.
    let length = std::str::from_utf8(digits).ok().and_then(|digits| digits.parse().ok()).unwrap_or(u64::MAX);
    if length > FRAME_MAX { Err(Ended::TooLong) } else { Ok(length) }
}

impl<R: AsyncRead + Unpin> AsyncRead for Bounded<R> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buf.filled().len();
        match Pin::new(&mut this.inner).poll_read(cx, buf) {
            Poll::Ready(Ok(())) if buf.filled().len() > before || buf.remaining() == 0 => {
                let followed = this.follow(&buf.filled()[before..]);
                Poll::Ready(followed.map_err(|ended| {
                    this.watch.end(ended);
                    io::Error::from(io::ErrorKind::InvalidData)
                }))
            }
            Poll::Ready(over) => {
                this.watch.end(Ended::Closed);
                Poll::Ready(over)
            }
            Poll::Pending => Poll::Pending,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::AsyncReadExt;

    /// What of `bytes` is handed on, and how the stream ended, where they come in pieces of this size.
    fn read(bytes: &[u8], piece: usize, trusted: bool) -> (usize, Ended) {
        let (mut reader, watch) = Bounded::new(bytes);
        if trusted {
            watch.trust();
        }
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let mut got = 0;
        runtime.block_on(async {
            let mut buffer = vec![0; piece];
            while let Ok(n @ 1..) = reader.read(&mut buffer).await {
                got += n;
            }
        });
        (got, watch.ended())
    }

    #[test]
    fn frames_pass_however_they_are_cut() {
        let frames = b"Content-Length: 2\r\n\r\n{}Content-Length: 13\r\nMore: x\r\n\r\n\r\n\r\n{\n\n}\r\n\r\n";
        for piece in [1, 2, 3, 7, 4096] {
            assert_eq!(read(frames, piece, false), (frames.len(), Ended::Closed), "pieces of {piece}");
        }
    }

    #[test]
    fn what_is_too_long_or_no_frame_is_not_handed_on() {
        let long = format!("Content-Length: {}\r\n\r\nx", 4_u64 << 30);
        assert_eq!(read(long.as_bytes(), 4096, true), (0, Ended::TooLong));
        let longer = format!("Content-Length: {}\r\n\r\nx", "9".repeat(40));
        assert_eq!(read(longer.as_bytes(), 4096, true), (0, Ended::TooLong));
        for none in [
            "Content-Length: -1\r\n\r\n",
            "Content-Length: \r\n\r\n",
            "HTTP/1.1 400 Bad Request\r\n\r\n",
            "\r\n\r\n",
            "Content-Length: 2\r\n\u{a0}\r\n{}",
        ] {
            assert_eq!(read(none.as_bytes(), 4096, true), (0, Ended::NoFrames), "{none:?}");
        }
        let endless = vec![b'x'; 1 << 20];
        assert_eq!(read(&endless, 512, true), (4096, Ended::NoFrames));
    }

    #[test]
    fn little_is_taken_before_the_handshake_is_over() {
        let frame = [b"Content-Length: 3000000\r\n\r\n".as_slice(), &vec![b' '; 3_000_000]].concat();
        assert_eq!(read(&frame, 4096, false), (1 << 20, Ended::TooLong));
        assert_eq!(read(&frame, 4096, true), (frame.len(), Ended::Closed));
    }
}
