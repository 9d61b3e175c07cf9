//! Passes everything on between standard input and output and whoever tells of the sessions here, a tray or an engine of
//! this process; and answers what only this process does: which sessions there are besides those that are watched. They
//! are read for whoever asks, and nobody keeps them.

use crate::cli::context::Context;
use crate::cli::observe::{Effort, Observer, Picture};
use anyhow::bail;
use pilotlight_core::fleet::Session;
use pilotlight_core::remote::SessionReport;
use pilotlight_engine::control::pipe::lines::{FromHost, PAST_MAX, STARTS_AGAIN, ToHost};
use pilotlight_engine::control::pipe::read_line;
use pilotlight_engine::past::Depth;
use std::cmp::Reverse;
use std::io;
use std::pin::pin;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader, split, stdin, stdout};
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::time::timeout;

/// Maximum number of bytes that are passed on at a time.
const BLOCK: usize = 64 << 10;
/// How long it may take at the end to pass on what was told before. Only a reader that takes nothing lets it pass.
const SAID_WITHIN: Duration = Duration::from_secs(5);
/// How many lines about past sessions may wait to be written, and are written at a time: each write costs a switch to
/// another thread and back.
const QUEUED: usize = 256;

/// Passes on everything in both directions, until one end closes.
///
/// # Errors
/// If something came that is not understood.
pub(super) async fn relay(teller: impl AsyncRead + AsyncWrite, context: &Context) -> anyhow::Result<()> {
    let (from, to) = split(teller);
    let (ask, asked) = channel(1);
    let mut telling = pin!(tell(from, asked, context));
    let taken = tokio::select! {
        // An error is an end as well.
        _ = &mut telling => return Ok(()),
        taken = take(to, &ask) => taken,
    };
    // Whoever tells of sessions learns of the end as well, and ends. What was told before is still passed on: a program
    // that is only asked who it is has no more standard input than that.
    let _ = timeout(SAID_WITHIN, telling).await;
    match taken {
        Taken::All => Ok(()),
        Taken::TooLong => bail!("a line of standard input is too long"),
        Taken::Nonsense => {
            bail!("a line of standard input is not understood: `serve` is for a Pilotlight on another machine")
        }
    }
}

/// Why nothing more is taken.
enum Taken {
    /// There is no more, or nobody takes it.
    All,
    /// A line that is passed on, and not understood.
    Nonsense,
    /// A line that is not passed on.
    TooLong,
}

/// Passes on what is asked for here, and that there is no more.
async fn take(mut to: impl AsyncWrite + Unpin, ask: &Sender<()>) -> Taken {
    let taken = take_lines(&mut to, ask).await;
    let _ = to.shutdown().await; // fails only if the other end has gone
    taken
}

async fn take_lines(to: &mut (impl AsyncWrite + Unpin), ask: &Sender<()>) -> Taken {
    let (mut from, mut line) = (BufReader::new(stdin()), Vec::new());
    loop {
        match read_line(&mut from, &mut line).await {
            Ok(true) => {}
            Err(error) if error.kind() == io::ErrorKind::InvalidData => return Taken::TooLong,
            Ok(false) | Err(_) => return Taken::All,
        }
        if line.starts_with(STARTS_AGAIN.as_bytes()) {
            line.clear();
            continue;
        }
        let asked = serde_json::from_slice(&line);
        if matches!(asked, Ok(ToHost::History)) {
            // Whoever asks again before it is told is told once.
            let _ = ask.try_send(());
        } else if to.write_all(&line).await.is_err() || to.flush().await.is_err() {
            return Taken::All;
        }
        if asked.is_err() {
            return Taken::Nonsense;
        }
        line.clear();
    }
}

/// Passes on what is told, in whole lines: lines about past sessions go between them.
async fn tell(mut from: impl AsyncRead + Unpin, mut asked: Receiver<()>, context: &Context) -> io::Result<()> {
    let (mut to, mut held) = (stdout(), Vec::new());
    let mut past: Option<Receiver<Vec<u8>>> = None;
    loop {
        held.reserve(BLOCK);
        tokio::select! {
            read = from.read_buf(&mut held) => {
                if read? == 0 {
                    return Ok(());
                }
                let Some(end) = memchr::memrchr(b'\n', &held) else { continue };
                to.write_all(&held[..=end]).await?;
                held.drain(..=end);
            }
            Some(()) = asked.recv(), if past.is_none() => past = Some(read_past(context)),
            lines = next_of(&mut past) => match &*lines {
                [] => {
                    past = None;
                    to.write_all(&line_of(&FromHost::AllPast)).await?;
                }
                lines => to.write_all(&lines.concat()).await?,
            },
        }
        to.flush().await?;
    }
}

/// The next lines; none: there are no more. Cancel-safe.
async fn next_of(past: &mut Option<Receiver<Vec<u8>>>) -> Vec<Vec<u8>> {
    let Some(past) = past else { return std::future::pending().await };
    let mut lines = Vec::new();
    past.recv_many(&mut lines, QUEUED).await;
    lines
}

/// Reads all sessions beside the loop, and makes a line of each, the last one heard of first.
fn read_past(context: &Context) -> Receiver<Vec<u8>> {
    let (sender, lines) = channel(QUEUED);
    let (observer, limits) = (Observer::of(context), context.config.limits);
    let read = move || {
        let Ok(Picture { sessions, now, .. }) = observer.observe(Effort::Look, Some(Depth::Whole)) else { return };
        let listed = sessions.into_iter().filter(Session::is_listed);
        let mut listed: Vec<_> = listed.map(|session| (session.row(now, &limits).0, session)).collect();
        listed.sort_by_cached_key(|(row, _)| Reverse((row.last(), row.id.clone())));
        for (row, session) in listed.into_iter().take(PAST_MAX) {
            let report = SessionReport::of(&session, &row, (&row.name, &row.label), now).in_brief();
            if sender.blocking_send(line_of(&FromHost::Past(Box::new(report)))).is_err() {
                return; // nobody listens any more
            }
        }
    };
    // If no thread can be started, there are none to tell of.
    drop(std::thread::Builder::new().name("past".into()).spawn(read));
    lines
}

fn line_of(message: &FromHost) -> Vec<u8> {
    let mut line = serde_json::to_vec(message).unwrap_or_default();
    line.push(b'\n');
    line
}
