//! A bound on what a server may make us hold: the reader between a socket and the SDK.
//!
//! The SDK reads frames of any length, and lines of any length in front of them. Whoever listens on a port may be anything,
//! and a server that was verified may break. So frames are taken in here first, up to a bound; the [`sieve`](super::sieve) says
//! what of each is handed on. Reading fails at what is no frame. What was wrong is remembered, because the SDK tells its
//! callers no more than that the connection is over.

use super::sieve::{HEAD, LENGTH_MAX, Sieve, TooMuch, Weight};
use std::io;
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, ReadBuf};
use tokio::time::Instant;

/// The longest frame that is passed over, in bytes: many times the longest line seen in a log (430 KB). What of that is kept
/// is bounded by the [sieve](super::sieve).
const FRAME_MAX: u64 = 64 << 20;
/// So much is read at once, and so much before others are let go on, in bytes.
const READ: usize = 8 << 10;
const TURN: usize = 32 << 10;
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

/// A reader that takes frames in, and hands on what is needed of them.
pub(super) struct Bounded<R> {
    inner: R,
    watch: Arc<Watch>,
    /// What of the header of the next frame has come.
    header: Vec<u8>,
    frame: Option<Frame>,
    sieve: Sieve,
    /// What is to be handed on, and how much of that was.
    out: Vec<u8>,
    handed: usize,
    /// How much was read since others were let go on.
    read: usize,
    over: bool,
}

/// A frame under way.
struct Frame {
    /// What of it is still to come, in bytes.
    left: u64,
    /// What of it has come; its beginning, once that is more than is handed on.
    body: Vec<u8>,
    weight: Weight,
    is_whole: bool,
}

impl Frame {
    fn take(&mut self, bytes: &[u8]) {
        self.left -= bytes.len() as u64;
        if self.is_whole {
            self.weight.add(bytes);
            self.body.extend_from_slice(bytes);
            if self.weight.is_too_much() || self.body.len() > LENGTH_MAX {
                self.is_whole = false;
                self.body.truncate(HEAD);
                self.body.shrink_to_fit();
            }
        } else {
            let missing = HEAD.saturating_sub(self.body.len()).min(bytes.len());
            self.body.extend_from_slice(&bytes[..missing]);
        }
    }
}

impl<R> Bounded<R> {
    /// Watches over `inner`.
    pub(super) fn new(inner: R) -> (Self, Arc<Watch>) {
        let watch = Arc::new(Watch { ended: AtomicU8::new(0), allowance: AtomicU64::new(HANDSHAKE_MAX) });
        let reader = Self {
            inner,
            watch: Arc::clone(&watch),
            header: Vec::new(),
            frame: None,
            sieve: Sieve::new(Instant::now()),
            out: Vec::new(),
            handed: 0,
            read: 0,
            over: false,
        };
        (reader, watch)
    }

    /// Takes in what has come.
    fn take(&mut self, mut bytes: &[u8]) -> Result<(), Ended> {
        let allowance = self.watch.allowance.load(Ordering::Acquire);
        if allowance != u64::MAX {
            let left = allowance.checked_sub(bytes.len() as u64).ok_or(Ended::TooLong)?;
            // Fails only where the stream was trusted meanwhile.
            let _ = self.watch.allowance.compare_exchange(allowance, left, Ordering::AcqRel, Ordering::Acquire);
        }
        while !bytes.is_empty() {
            if let Some(frame) = &mut self.frame {
                let taken = bytes.len().min(usize::try_from(frame.left).unwrap_or(usize::MAX));
                frame.take(&bytes[..taken]);
                bytes = &bytes[taken..];
                self.finish()?;
                continue;
            }
            let byte = bytes[0];
            bytes = &bytes[1..];
            // The SDK takes more than this for white space; what it would read otherwise than we do is refused.
            if self.header.len() >= HEADER_MAX || !(byte.is_ascii_graphic() || b" \t\r\n".contains(&byte)) {
                return Err(Ended::NoFrames);
            }
            if byte == b'\n' && is_blank(self.header.rsplit(|&byte| byte == b'\n').next().unwrap_or_default()) {
                let left = length(&self.header)?;
                self.header.clear();
                self.frame = Some(Frame { left, body: Vec::new(), weight: Weight::default(), is_whole: true });
                self.finish()?;
            } else {
                self.header.push(byte);
            }
        }
        Ok(())
    }

    /// Hands a frame on that has come to its end.
    fn finish(&mut self) -> Result<(), Ended> {
        let Some(frame) = self.frame.take_if(|frame| frame.left == 0) else { return Ok(()) };
        let sifted = self.sieve.sift(frame.body, frame.is_whole, &frame.weight, Instant::now());
        if let Some(body) = sifted.map_err(|TooMuch| Ended::TooLong)? {
            self.out.extend_from_slice(format!("Content-Length: {}\r\n\r\n", body.len()).as_bytes());
            self.out.extend_from_slice(&body);
        }
        Ok(())
    }

    /// Hands on what was taken in. Whether there was any.
    fn hand_on(&mut self, buf: &mut ReadBuf<'_>) -> bool {
        let rest = &self.out[self.handed..];
        let some = rest.len().min(buf.remaining());
        buf.put_slice(&rest[..some]);
        self.handed += some;
        if self.handed == self.out.len() {
            self.handed = 0;
            self.out.clear();
            self.out.shrink_to(READ);
        }
        some > 0
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
        loop {
            if this.hand_on(buf) || buf.remaining() == 0 {
                return Poll::Ready(Ok(()));
            }
            if this.over {
                return Poll::Ready(match this.watch.ended() {
                    Ended::No | Ended::Closed => Ok(()),
                    Ended::NoFrames | Ended::TooLong => Err(io::ErrorKind::InvalidData.into()),
                });
            }
            if this.read >= TURN {
                // Whoever reads what was handed on comes before what else a server sends.
                this.read = 0;
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            let mut bytes = [MaybeUninit::uninit(); READ];
            let mut bytes = ReadBuf::uninit(&mut bytes);
            match Pin::new(&mut this.inner).poll_read(cx, &mut bytes) {
                Poll::Ready(Ok(())) if !bytes.filled().is_empty() => {
                    this.read += bytes.filled().len();
                    if let Err(ended) = this.take(bytes.filled()) {
                        this.watch.end(ended);
                        this.over = true;
                    }
                }
                Poll::Ready(over) => {
                    this.watch.end(Ended::Closed);
                    this.over = true;
                    over?;
                }
                Poll::Pending => {
                    this.read = 0;
                    return Poll::Pending;
                }
            }
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
        let frames = b"Content-Length: 2\r\n\r\n{}Content-Length: 12\r\nMore: x\r\n\r\n\r\n\r\n{\n\n}\r\n\r\nContent-Length: 0\r\n\r\n";
        let without_more = frames.len() - b"More: x\r\n".len();
        for piece in [1, 2, 3, 7, 4096] {
            assert_eq!(read(frames, piece, false), (without_more, Ended::Closed), "pieces of {piece}");
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
        assert_eq!(read(&vec![b'x'; 1 << 20], 512, true), (0, Ended::NoFrames));
    }

    #[test]
    fn little_is_taken_before_the_handshake_is_over() {
        let call = br#"{"jsonrpc":"2.0","method":"session.lifecycle"}"#;
        let frame = [format!("Content-Length: {}\r\n\r\n", call.len()).as_bytes(), call].concat();
        let many = frame.repeat(50_000);
        assert_eq!(read(&many, 4096, false), (0, Ended::TooLong));
        assert_eq!(read(&many, 4096, true), (0, Ended::Closed), "told to nobody, for as long as it likes");
    }

    #[test]
    fn case_135_in_place_of_an_answer_that_is_too_large_the_call_fails() {
        let answer =
            format!(r#"{{"jsonrpc":"2.0","id":7,"result":{{"items":[{}0]}}}}"#, r#"{"":0},"#.repeat(3_000_000));
        let next = r#"{"jsonrpc":"2.0","id":8,"result":{}}"#;
        let frames: String =
            [&*answer, next].iter().map(|body| format!("Content-Length: {}\r\n\r\n{body}", body.len())).collect();
        let (mut reader, watch) = Bounded::new(frames.as_bytes());
        watch.trust();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let mut text = String::new();
        runtime.block_on(reader.read_to_string(&mut text)).unwrap();
        let failed = r#""id":7"#;
        assert!(text.contains(failed) && text.contains("-32098") && text.ends_with(next) && text.len() < 300, "{text}");
        assert!(reader.out.capacity() <= READ, "what it took is given back");
    }
}
