//! What a host says, line by line: bounded in size, in rate and, in the long run, in number.

use super::rate_limiter::RateLimiter;
use crate::control::pipe::lines::{AnyHello, FromHost, Hello, SCHEMA};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, BufReader};
use tokio::time::{Instant, sleep_until};

/// Maximum length of a line, in bytes: a session with all that it asks.
const LINE_MAX: usize = 1 << 20;
/// The same while an order is under way: a request is reported in full.
const REPORT_MAX: usize = 8 << 20;
/// How many bytes and lines are read in each [`SLICE`]: enough for hundreds of sessions at once.
const BYTES_MAX: usize = 1 << 20;
const LINES_MAX: usize = 1000;
const SLICE: Duration = Duration::from_millis(100);
/// From so many lines in a [`SLICE`] on, the others are gathered until it ends.
const GATHERED_FROM: usize = 64;
/// How much may come before the first line of ours: what a shell prints when it starts.
const NOISE_MAX: usize = 64 << 10;
/// How the first line of ours begins.
const HELLO_STARTS: &[u8] = b"{\"pilotlight\":";

/// Reads the lines of a host.
pub(super) struct Incoming<R> {
    from: BufReader<R>,
    line: Vec<u8>,
    /// Reading goes on then, if the present slice is used up.
    until: Instant,
    bytes: usize,
    lines: usize,
    limiter: RateLimiter,
}

/// Why a host is not listened to any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Unheard {
    /// It said no more.
    Ended,
    /// It says what it must not, or what is not understood here.
    Nonsense(String),
    /// It says more than there can be to say, without end.
    Flood,
    /// Another connection takes its place.
    Replaced,
}

impl<R: AsyncRead + Unpin> Incoming<R> {
    pub(super) fn new(from: R) -> Self {
        let (now, from) = (Instant::now(), BufReader::new(from));
        Self { from, line: Vec::new(), until: now + SLICE, bytes: 0, lines: 0, limiter: RateLimiter::new(now) }
    }

    /// Reads the first line.
    ///
    /// # Errors
    /// If none comes, or it is of another schema.
    pub(super) async fn hello(&mut self) -> Result<Hello, Unheard> {
        let mut noise = 0;
        loop {
            self.read_line(NOISE_MAX).await?;
            // What starts with a shell may have begun a line that it did not end.
            if let Some(at) = memchr::memmem::find(&self.line, HELLO_STARTS) {
                noise += self.line.drain(..at).len();
            }
            if let Ok(AnyHello { pilotlight: there }) = serde_json::from_slice(&self.line) {
                if there.schema != SCHEMA {
                    let here = env!("CARGO_PKG_VERSION");
                    let shown = pilotlight_core::text::plain(&there.version, 20);
                    let words = format!(
                        "its Pilotlight {shown} and your {here} do not understand each other: update the older one"
                    );
                    return Err(Unheard::Nonsense(words));
                }
                if let Ok(FromHost::Pilotlight(hello)) = serde_json::from_slice(&self.line) {
                    self.line.clear();
                    return Ok(hello);
                }
            }
            noise += self.line.len();
            self.line.clear();
            if noise > NOISE_MAX {
                return Err(Unheard::Nonsense("what answers there is not Pilotlight".into()));
            }
        }
    }

    /// Reads the next line. Cancel-safe.
    ///
    /// # Errors
    /// If there is none, or it is too long or not understood.
    pub(super) async fn next(&mut self, expects_report: bool) -> Result<FromHost, Unheard> {
        self.read_line(if expects_report { REPORT_MAX } else { LINE_MAX }).await?;
        let said = serde_json::from_slice(&self.line);
        if self.line.capacity() > LINE_MAX {
            self.line = Vec::new();
        }
        self.line.clear();
        said.map_err(|_| Unheard::Nonsense("it sends something that is not understood here".into()))
    }

    /// Withholds budget for the time that the receiver spent on this host's lines.
    pub(super) fn withhold(&mut self, time: Duration) {
        self.limiter.withhold(time);
    }

    /// Until when to gather lines into one batch, if the host sends many: the receiver handles a batch at the cost of one line.
    /// `None`: pass each line on at once.
    pub(super) fn gathers_until(&self) -> Option<Instant> {
        let is_busy = self.lines >= GATHERED_FROM;
        (is_busy || memchr::memchr(b'\n', self.from.buffer()).is_some()).then_some(self.until)
    }

    /// Reads on until the line is whole.
    ///
    /// # Errors
    /// If that does not happen, or it says too much.
    async fn read_line(&mut self, most: usize) -> Result<(), Unheard> {
        loop {
            let now = Instant::now();
            if now >= self.until {
                (self.until, self.bytes, self.lines) = (now + SLICE, 0, 0);
                self.limiter.renew(now);
                if self.limiter.is_flooded(now) {
                    return Err(Unheard::Flood);
                }
            }
            if self.bytes >= BYTES_MAX || self.lines >= LINES_MAX || self.limiter.is_used_up() {
                sleep_until(self.until).await;
                continue;
            }
            // In pieces, so that a line that comes fast is slowed down as well.
            let room = (most.saturating_sub(self.line.len())).min(BYTES_MAX - self.bytes);
            let before = self.line.len();
            let read = (&mut self.from).take(room as u64).read_until(b'\n', &mut self.line).await;
            // Counted after the fact if this is cancelled: what was read is in the line.
            self.bytes += self.line.len() - before;
            self.limiter.take(before, self.line.len(), now);
            match (self.line.last(), read) {
                (Some(b'\n'), _) => {
                    self.lines += 1;
                    return Ok(());
                }
                _ if self.line.len() >= most => {
                    return Err(Unheard::Nonsense("it sends a line that is too long".into()));
                }
                (_, Ok(0) | Err(_)) if room > 0 => return Err(Unheard::Ended),
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::rate_limiter::FLOODS_AFTER;
    use super::*;

    fn reader(said: &[u8]) -> Incoming<&[u8]> {
        Incoming::new(said)
    }

    fn wait<T>(future: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
    }

    #[test]
    fn what_a_shell_prints_first_is_skipped_and_another_schema_is_not() {
        let hello = |schema: u32| {
            format!(
                r#"{{"pilotlight":{{"version":"9.9","schema":{schema},"now":"2026-01-01T00:00:00Z","system":"linux","architecture":"x86_64","has-tray":true}}}}"#
            )
        };
        let said = format!("Welcome!\n{{}}\n{}\n\"ready\"\n", hello(SCHEMA));
        wait(async {
            let mut incoming = reader(said.as_bytes());
            assert!(incoming.hello().await.unwrap().has_tray);
            assert!(incoming.gathers_until().is_some(), "another line has come");
            assert!(matches!(incoming.next(false).await, Ok(FromHost::Ready)));
            assert_eq!(incoming.next(false).await.unwrap_err(), Unheard::Ended);
            let other = hello(SCHEMA + 1) + "\n";
            let Err(Unheard::Nonsense(words)) = reader(other.as_bytes()).hello().await else { panic!("understood") };
            assert!(words.starts_with("its Pilotlight 9.9 and your "), "{words}");
            assert_eq!(reader(b"bash: nonsense\n").hello().await.unwrap_err(), Unheard::Ended);
            let unended = format!("Last login: now {}", hello(SCHEMA) + "\n");
            assert!(reader(unended.as_bytes()).hello().await.unwrap().has_tray);
            let noise = "x\n".repeat(NOISE_MAX);
            assert!(matches!(reader(noise.as_bytes()).hello().await, Err(Unheard::Nonsense(_))));
        });
    }

    #[test]
    fn case_403_a_line_is_bounded_and_so_is_the_rate_of_lines() {
        wait(async {
            let long = vec![b'x'; LINE_MAX + 1];
            assert!(matches!(reader(&long).next(false).await, Err(Unheard::Nonsense(_))));
            assert_eq!(reader(b"\"rea").next(false).await.unwrap_err(), Unheard::Ended);
            assert!(matches!(reader(b"{\"reboot\":1}\n").next(false).await, Err(Unheard::Nonsense(_))));
            let flood = "\"ready\"\n".repeat(2 * LINES_MAX);
            let mut incoming = reader(flood.as_bytes());
            let began = Instant::now();
            for _ in 0..2 * LINES_MAX {
                incoming.next(false).await.unwrap();
            }
            assert!(began.elapsed() >= SLICE / 2, "{:?}", began.elapsed());
        });
    }

    #[test]
    fn case_473_a_host_that_floods_is_not_listened_to_any_more() {
        wait(async {
            let mut incoming = reader(b"\"ready\"\n");
            // Long ago, and so much that time has not made up for it.
            let then = Instant::now().checked_sub(FLOODS_AFTER).unwrap();
            incoming.limiter = RateLimiter::new(then);
            incoming.limiter.take(0, 1 << 40, then);
            assert_eq!(incoming.gathers_until(), None);
            assert_eq!(incoming.next(false).await.unwrap_err(), Unheard::Flood);
        });
    }
}
