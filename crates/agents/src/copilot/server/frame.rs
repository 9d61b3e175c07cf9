//! Bounds the memory that a server can make us use: the reader between a socket and the SDK.
//!
//! The SDK reads frames and header lines of any length. Anything may listen on a port, and even a verified server may
//! break. So frames are buffered here first, up to a limit, and the [`frame_filter`](super::frame_filter) decides what
//! of each to pass on. Bytes that are no frame fail the read. The reason is kept, because the SDK only reports that the
//! connection is over.

use super::frame_filter::{Extent, FrameFilter, HEAD, LENGTH_MAX, Overload, Weight};
use super::shorten::Shortener;
use std::io;
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, ReadBuf};
use tokio::time::Instant;

/// The longest frame that is accepted, in bytes: many times the longest line seen in a log (430 KB). How much of it is
/// kept is bounded by the [filter](super::frame_filter).
const FRAME_MAX: u64 = 64 << 20;
/// The size of one read, and how much is read before yielding to other tasks, in bytes.
const READ: usize = 8 << 10;
const YIELD_AFTER: usize = 32 << 10;
/// The longest header, in bytes. Copilot's takes about 30.
const HEADER_MAX: usize = 4096;
/// How much may arrive before the handshake is over, in bytes. Its response takes about 150.
const HANDSHAKE_MAX: u64 = 1 << 20;
/// The header that gives a frame's length, spelled exactly as the SDK expects it.
const LENGTH: &[u8] = b"Content-Length: ";

/// How a stream ended. Asked after the SDK has given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StreamEnd {
    /// It has not ended, as far as the reader knows.
    Open,
    /// The other side closed it, or it broke.
    Closed,
    /// The bytes were no frames.
    NotFrames,
    /// A frame was too long, or too much arrived before the handshake was over.
    TooLong,
}

/// The reader's state, shared with the connection that it serves.
#[derive(Debug)]
pub(super) struct StreamState {
    end: AtomicU8,
    /// How many more bytes may arrive.
    allowance: AtomicU64,
}

impl StreamState {
    /// How the stream ended.
    pub(super) fn end(&self) -> StreamEnd {
        match self.end.load(Ordering::Acquire) {
            0 => StreamEnd::Open,
            1 => StreamEnd::Closed,
            2 => StreamEnd::NotFrames,
            _ => StreamEnd::TooLong,
        }
    }

    /// Lifts the handshake's limit. The limit of each frame stays.
    pub(super) fn trust(&self) {
        self.allowance.store(u64::MAX, Ordering::Release);
    }

    /// Records how the stream ended. Only the first call counts.
    fn set_end(&self, end: StreamEnd) {
        let _ = self.end.compare_exchange(0, end as u8, Ordering::AcqRel, Ordering::Acquire);
    }
}

/// A reader that buffers frames and passes on what the filter lets through.
pub(super) struct FrameReader<R> {
    inner: R,
    state: Arc<StreamState>,
    /// The next frame's header, as far as it has arrived.
    header: Vec<u8>,
    frame: Option<Frame>,
    filter: FrameFilter,
    /// Output for the SDK, and how much of it was already read.
    out: Vec<u8>,
    out_read: usize,
    /// How much was read since the last yield, in bytes.
    read: usize,
    over: bool,
}

/// A frame that is still arriving.
struct Frame {
    /// How much of it is still missing, in bytes.
    left: u64,
    /// What has arrived of it. Only its head, once it is too large to be passed on.
    body: Vec<u8>,
    weight: Weight,
    extent: Extent,
    /// Leaves its longest texts out, once it is too long.
    shortener: Option<Shortener>,
}

impl Frame {
    fn push(&mut self, bytes: &[u8]) {
        self.left -= bytes.len() as u64;
        if self.extent != Extent::Head {
            self.weight.add(bytes);
            match &mut self.shortener {
                None => self.body.extend_from_slice(bytes),
                Some(shortener) => shortener.push(bytes, &mut self.body),
            }
            if self.extent == Extent::Whole && self.body.len() > LENGTH_MAX {
                let body = std::mem::take(&mut self.body);
                let shortener = self.shortener.insert(Shortener::default());
                shortener.push(&body, &mut self.body);
                self.extent = Extent::Shortened;
            }
            if self.weight.is_too_large() || self.body.len() > LENGTH_MAX {
                self.extent = Extent::Head;
                self.body.truncate(HEAD);
                self.body.shrink_to_fit();
            }
        } else {
            let missing = HEAD.saturating_sub(self.body.len()).min(bytes.len());
            self.body.extend_from_slice(&bytes[..missing]);
        }
    }
}

impl<R> FrameReader<R> {
    pub(super) fn new(inner: R) -> (Self, Arc<StreamState>) {
        let state = Arc::new(StreamState { end: AtomicU8::new(0), allowance: AtomicU64::new(HANDSHAKE_MAX) });
        let reader = Self {
            inner,
            state: Arc::clone(&state),
            header: Vec::new(),
            frame: None,
            filter: FrameFilter::new(Instant::now()),
            out: Vec::new(),
            out_read: 0,
            read: 0,
            over: false,
        };
        (reader, state)
    }

    /// Takes in bytes that have arrived.
    fn receive(&mut self, mut bytes: &[u8]) -> Result<(), StreamEnd> {
        let allowance = self.state.allowance.load(Ordering::Acquire);
        if allowance != u64::MAX {
            let left = allowance.checked_sub(bytes.len() as u64).ok_or(StreamEnd::TooLong)?;
            // Fails only where the stream has just been trusted.
            let _ = self.state.allowance.compare_exchange(allowance, left, Ordering::AcqRel, Ordering::Acquire);
        }
        while !bytes.is_empty() {
            if let Some(frame) = &mut self.frame {
                let taken = bytes.len().min(usize::try_from(frame.left).unwrap_or(usize::MAX));
                frame.push(&bytes[..taken]);
                bytes = &bytes[taken..];
                self.finish()?;
                continue;
            }
            let byte = bytes[0];
            bytes = &bytes[1..];
            // The SDK accepts more characters as white space. Headers that it would read differently are refused.
            if self.header.len() >= HEADER_MAX || !(byte.is_ascii_graphic() || b" \t\r\n".contains(&byte)) {
                return Err(StreamEnd::NotFrames);
            }
            if byte == b'\n' && is_blank(self.header.rsplit(|&byte| byte == b'\n').next().unwrap_or_default()) {
                let left = length(&self.header)?;
                self.header.clear();
                self.frame = Some(Frame {
                    left,
                    body: Vec::new(),
                    weight: Weight::default(),
                    extent: Extent::Whole,
                    shortener: None,
                });
                self.finish()?;
            } else {
                self.header.push(byte);
            }
        }
        Ok(())
    }

    /// Passes the frame on once it is complete.
    fn finish(&mut self) -> Result<(), StreamEnd> {
        let Some(frame) = self.frame.take_if(|frame| frame.left == 0) else { return Ok(()) };
        let filtered = self.filter.filter(frame.body, frame.extent, &frame.weight, Instant::now());
        if let Some(body) = filtered.map_err(|Overload| StreamEnd::TooLong)? {
            self.out.extend_from_slice(format!("Content-Length: {}\r\n\r\n", body.len()).as_bytes());
            self.out.extend_from_slice(&body);
        }
        Ok(())
    }

    /// Copies pending output into `buf`. Returns whether there was any.
    fn copy_out(&mut self, buf: &mut ReadBuf<'_>) -> bool {
        let rest = &self.out[self.out_read..];
        let copied = rest.len().min(buf.remaining());
        buf.put_slice(&rest[..copied]);
        self.out_read += copied;
        if self.out_read == self.out.len() {
            self.out_read = 0;
            self.out.clear();
            self.out.shrink_to(READ);
        }
        copied > 0
    }
}

/// Whether the line is blank and so ends the header.
fn is_blank(line: &[u8]) -> bool {
    line.trim_ascii().is_empty()
}

/// The frame's length from its header. The last one counts.
fn length(header: &[u8]) -> Result<u64, StreamEnd> {
    let mut lines = header.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii);
    let digits = lines.rfind(|line| line.starts_with(LENGTH)).ok_or(StreamEnd::NotFrames)?[LENGTH.len()..].trim_ascii();
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return Err(StreamEnd::NotFrames);
    }
    // A length that overflows is too long.
    let length = std::str::from_utf8(digits).ok().and_then(|digits| digits.parse().ok()).unwrap_or(u64::MAX);
    if length > FRAME_MAX { Err(StreamEnd::TooLong) } else { Ok(length) }
}

impl<R: AsyncRead + Unpin> AsyncRead for FrameReader<R> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        loop {
            if this.copy_out(buf) || buf.remaining() == 0 {
                return Poll::Ready(Ok(()));
            }
            if this.over {
                return Poll::Ready(match this.state.end() {
                    StreamEnd::Open | StreamEnd::Closed => Ok(()),
                    StreamEnd::NotFrames | StreamEnd::TooLong => Err(io::ErrorKind::InvalidData.into()),
                });
            }
            if this.read >= YIELD_AFTER {
                // Lets the consumer run before more is read from the server.
                this.read = 0;
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            let mut bytes = [MaybeUninit::uninit(); READ];
            let mut bytes = ReadBuf::uninit(&mut bytes);
            match Pin::new(&mut this.inner).poll_read(cx, &mut bytes) {
                Poll::Ready(Ok(())) if !bytes.filled().is_empty() => {
                    this.read += bytes.filled().len();
                    if let Err(end) = this.receive(bytes.filled()) {
                        this.state.set_end(end);
                        this.over = true;
                    }
                }
                Poll::Ready(result) => {
                    this.state.set_end(StreamEnd::Closed);
                    this.over = true;
                    result?;
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

    /// Reads `bytes` in pieces of this size. Returns how many are passed on, and how the stream ended.
    fn read(bytes: &[u8], piece: usize, trusted: bool) -> (usize, StreamEnd) {
        let (mut reader, state) = FrameReader::new(bytes);
        if trusted {
            state.trust();
        }
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let mut got = 0;
        runtime.block_on(async {
            let mut buffer = vec![0; piece];
            while let Ok(n @ 1..) = reader.read(&mut buffer).await {
                got += n;
            }
        });
        (got, state.end())
    }

    #[test]
    fn frames_pass_however_they_are_cut() {
        let frames = b"Content-Length: 2\r\n\r\n{}Content-Length: 12\r\nMore: x\r\n\r\n\r\n\r\n{\n\n}\r\n\r\nContent-Length: 0\r\n\r\n";
        let without_more = frames.len() - b"More: x\r\n".len();
        for piece in [1, 2, 3, 7, 4096] {
            assert_eq!(read(frames, piece, false), (without_more, StreamEnd::Closed), "pieces of {piece}");
        }
    }

    #[test]
    fn a_frame_that_is_too_long_or_malformed_is_not_passed_on() {
        let long = format!("Content-Length: {}\r\n\r\nx", 4_u64 << 30);
        assert_eq!(read(long.as_bytes(), 4096, true), (0, StreamEnd::TooLong));
        let longer = format!("Content-Length: {}\r\n\r\nx", "9".repeat(40));
        assert_eq!(read(longer.as_bytes(), 4096, true), (0, StreamEnd::TooLong));
        for malformed in [
            "Content-Length: -1\r\n\r\n",
            "Content-Length: \r\n\r\n",
            "HTTP/1.1 400 Bad Request\r\n\r\n",
            "\r\n\r\n",
            "Content-Length: 2\r\n\u{a0}\r\n{}",
        ] {
            assert_eq!(read(malformed.as_bytes(), 4096, true), (0, StreamEnd::NotFrames), "{malformed:?}");
        }
        assert_eq!(read(&vec![b'x'; 1 << 20], 512, true), (0, StreamEnd::NotFrames));
    }

    #[test]
    fn little_is_accepted_before_the_handshake_is_over() {
        let call = br#"{"jsonrpc":"2.0","method":"session.lifecycle"}"#;
        let frame = [format!("Content-Length: {}\r\n\r\n", call.len()).as_bytes(), call].concat();
        let many = frame.repeat(50_000);
        assert_eq!(read(&many, 4096, false), (0, StreamEnd::TooLong));
        assert_eq!(read(&many, 4096, true), (0, StreamEnd::Closed), "ignored notifications are unlimited");
    }

    #[test]
    fn case_192_a_response_with_a_huge_text_is_passed_on_without_it() {
        let huge = format!(r#"{{"jsonrpc":"2.0","id":7,"result":{{"huge":"{}","small":"ls"}}}}"#, "x".repeat(5 << 20));
        let event = huge.replace(r#""id":7"#, r#""method":"session.event","params":{"sessionId":"s"}"#);
        let frames: String =
            [huge, event].iter().map(|body| format!("Content-Length: {}\r\n\r\n{body}", body.len())).collect();
        let (mut reader, state) = FrameReader::new(frames.as_bytes());
        state.trust();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let mut text = String::new();
        runtime.block_on(reader.read_to_string(&mut text)).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        let (body, rest) = body.split_at(head.split_once(' ').unwrap().1.parse().unwrap());
        let message: serde_json::Value = serde_json::from_str(body).unwrap();
        assert_eq!(message["result"], serde_json::json!({"huge": crate::channel::request::CUT, "small": "ls"}));
        assert!(rest.is_empty() || rest.contains("pilotlight.happened"), "an event is never shortened: {rest}");
    }

    #[test]
    fn case_135_a_response_that_is_too_large_fails_its_call() {
        let answer =
            format!(r#"{{"jsonrpc":"2.0","id":7,"result":{{"items":[{}0]}}}}"#, r#"{"":0},"#.repeat(3_000_000));
        let next = r#"{"jsonrpc":"2.0","id":8,"result":{}}"#;
        let frames: String =
            [&*answer, next].iter().map(|body| format!("Content-Length: {}\r\n\r\n{body}", body.len())).collect();
        let (mut reader, state) = FrameReader::new(frames.as_bytes());
        state.trust();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let mut text = String::new();
        runtime.block_on(reader.read_to_string(&mut text)).unwrap();
        let failed = r#""id":7"#;
        assert!(text.contains(failed) && text.contains("-32098") && text.ends_with(next) && text.len() < 300, "{text}");
        assert!(reader.out.capacity() <= READ, "the buffer shrinks again");
    }
}
