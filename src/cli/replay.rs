//! `pilotlight replay FILE`: judges a recorded log, in its own time.

use super::charset::{has_unicode_stdout, words};
use super::context::Context;
use super::json;
use super::report::say;
use anyhow::Context as _;
use pilotlight_agents::adapter::{FIRST, FIRST_LOG_FORMAT, log_of};
use pilotlight_core::agent::Agent;
use pilotlight_core::replay::{Change, OwnerStory, Replay};
use pilotlight_core::text;
use pilotlight_core::time::Span;
use pilotlight_engine::config;
use pilotlight_system::packed;
use pilotlight_system::plain_file::{self, Links};
use serde::Serialize;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::process::ExitCode;

/// The longest line that is read, in bytes, as of a session that is followed.
const LINE_MAX: u64 = 64 << 20;

/// Arguments of `replay`.
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// An agent's log, such as events.jsonl, plain or compressed with zstd; `-` reads standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// What to assume of the session's process after the last event: it lives on, it dies at once, or it is unknown
    #[arg(long, value_enum, default_value = "alive")]
    owner: Owner,
    /// Let the clock run on after the last event: +30s, +11m, +24h
    #[arg(long, value_name = "+DURATION", value_parser = until, allow_hyphen_values = true)]
    until: Option<Span>,
    /// Print JSON: one object per change, {at, status, because, agent}
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Owner {
    Alive,
    Dead,
    Unknown,
}

fn until(text: &str) -> Result<Span, String> {
    let text = text.strip_prefix('+').unwrap_or(text);
    match text.parse() {
        Ok(seconds @ 0..=1_000_000_000) => Ok(Span::seconds(seconds)),
        _ => config::parse_span_or_zero(text).map_err(|error| format!("it {error}")),
    }
}

pub(super) fn run(context: &Context, arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let story = match arguments.owner {
        Owner::Alive => OwnerStory::Alive,
        Owner::Dead => OwnerStory::Dead,
        Owner::Unknown => OwnerStory::Unknown,
    };
    let mut out = io::BufWriter::new(io::stdout().lock());
    let mut changes = Vec::new();
    let mut lines: Box<dyn BufRead> = if arguments.file.as_os_str() == "-" {
        Box::new(io::stdin().lock())
    } else {
        // A pipe or a device may never end.
        let opened = plain_file::open(&arguments.file, Links::Followed);
        let (file, _) = opened
            .with_context(|| format!("cannot open the log {} (`-` for standard input)", arguments.file.display()))?;
        Box::new(BufReader::with_capacity(1 << 17, file))
    };
    if packed::is_packed(read(&mut *lines, arguments)?) {
        let text = packed::unpack(lines).with_context(|| format!("cannot unpack {}", arguments.file.display()))?;
        lines = Box::new(BufReader::with_capacity(1 << 17, text));
    }
    let start = read(&mut *lines, arguments)?;
    let log = log_of(start);
    let agent = log.map(|(adapter, _)| adapter.agent());
    if !arguments.json {
        let heading = match &agent {
            Some(agent) => format!("a log of {agent}"),
            None => format!("its beginning does not tell whose log it is: read as one of {}", FIRST.agent()),
        };
        writeln!(out, "{}", words(&heading, has_unicode_stdout()))?;
    }
    let log_format = log.map_or(&FIRST_LOG_FORMAT, |(_, log_format)| log_format);
    let mut replay = Replay::new(story, context.config.limits, log_format.parse);
    let mut line = Vec::new();
    while next_line(&mut *lines, &mut line).with_context(|| format!("cannot read {}", arguments.file.display()))? {
        replay.line(&line, &mut changes);
        print(&mut changes, agent.as_ref(), arguments.json, &mut out)?;
    }
    let rest = arguments.until.unwrap_or(if matches!(arguments.owner, Owner::Dead) { Span(1) } else { Span::ZERO });
    replay.finish(rest, &mut changes);
    print(&mut changes, agent.as_ref(), arguments.json, &mut out)?;
    out.flush()?;
    if replay.facts.skipped > 0 {
        let lines = usize::try_from(replay.facts.skipped + replay.facts.events).unwrap_or(usize::MAX);
        say(&format!("skipped {} of {}: no event", replay.facts.skipped, text::counted(lines, "line")));
    }
    Ok(ExitCode::SUCCESS)
}

/// The beginning of the log.
fn read<'a>(lines: &'a mut dyn BufRead, arguments: &Arguments) -> anyhow::Result<&'a [u8]> {
    lines.fill_buf().with_context(|| format!("cannot read {}", arguments.file.display()))
}

/// Reads the next line, of which no more is kept than [`LINE_MAX`]: then it is no event. Returns whether there is one.
fn next_line(mut lines: &mut dyn BufRead, line: &mut Vec<u8>) -> io::Result<bool> {
    line.clear();
    Read::by_ref(&mut lines).take(LINE_MAX).read_until(b'\n', line)?;
    if line.len() as u64 == LINE_MAX && line.last() != Some(&b'\n') {
        lines.skip_until(b'\n')?;
    }
    Ok(!line.is_empty())
}

/// A change as a line of JSON.
#[derive(Serialize)]
struct Line<'a> {
    #[serde(flatten)]
    change: &'a Change,
    /// Whose log it is. `null` if that is not told.
    agent: Option<&'a Agent>,
}

fn print(changes: &mut Vec<Change>, agent: Option<&Agent>, json: bool, out: &mut impl Write) -> io::Result<()> {
    for change in changes.drain(..) {
        if json {
            json::write(out, &Line { change: &change, agent })?;
            writeln!(out)?;
        } else {
            let line = format!("{}  {:<16}  {}", change.at, change.status, change.because);
            writeln!(out, "{}", words(&line, has_unicode_stdout()))?;
        }
    }
    Ok(())
}
