//! `pilotlight status`: lists every session, once.

use super::agents::Agents;
use super::bars::{Bar, Format};
use super::charset::words;
use super::context::Context;
use super::hosts::{Known, Which};
use super::json::RowWithMessage;
use super::observe::{Effort, Picture, observe};
use super::report::{FAILED, NO_HOME, say};
use super::table::{Style, lines};
use super::{hosts, json, openmetrics};
use pilotlight_core::fleet::{Row, Session, ShortIds, Summary, distinguish, limit_ended, sort};
use pilotlight_core::time::{Moment, Time};
use pilotlight_engine::past::Depth;
use std::collections::HashMap;
use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::Arc;

/// Arguments of `status`.
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Print JSON: an array with one object per session
    #[arg(long)]
    json: bool,
    /// With `--json`: add the beginning of each session's last message, as `last_message`
    #[arg(long, requires = "json")]
    messages: bool,
    /// Print the text for a status bar, once; `watch --format` keeps it up to date
    #[arg(long, value_enum, conflicts_with_all = ["json", "all"])]
    format: Option<Format>,
    /// Print metrics in the format of OpenMetrics: sessions by status, agent and machine, how long they have waited for
    /// you, and which machines are reached
    #[arg(long, conflicts_with_all = ["json", "format", "all"])]
    openmetrics: bool,
    /// Show every session on disk, not only those that are open or ended recently
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    pub(super) agents: Agents,
}

pub(super) fn run(context: &Context, arguments: &Arguments) -> anyhow::Result<ExitCode> {
    context.report_problems();
    if !arguments.json && arguments.format.is_none() && !arguments.openmetrics {
        context.report_ended();
    }
    let unreadable = context.unreadable_homes();
    for problem in &unreadable {
        say(problem);
    }
    if context.has_no_home() && context.hosts().next().is_none() {
        print_nothing(arguments)?;
        return Ok(ExitCode::from(NO_HOME));
    }
    let past = match arguments.all {
        true => Some(Depth::Whole),
        // They count all.
        false => (arguments.format.is_some() || arguments.openmetrics).then_some(Depth::Quick),
    };
    let mut picture = observe(context, Effort::Ask, past)?;
    // Only the table shortens ids.
    let mut ids = if arguments.json { Vec::new() } else { picture.ids() };
    let Picture { mut sessions, now, .. } = picture;
    let which = if arguments.all { Which::All } else { Which::Recent };
    let mut known = hosts::known(context, None, which, now);
    known.iter().filter_map(Known::not_reached).for_each(|trouble| say(&trouble));
    let remote: Vec<_> = known.iter_mut().flat_map(|known| std::mem::take(&mut known.sessions)).collect();
    ids.extend(remote.iter().map(|session| session.id.as_ref().into()));
    sessions.extend(remote);
    let unreached = || known.iter().filter(|known| known.trouble.is_some()).map(|known| &*known.host);
    if let Some(format) = arguments.format {
        let listed = sessions.iter().filter(|session| session.is_listed());
        let bar = Bar::new(listed.map(|session| session.row(now, &context.config.limits).0), unreached());
        writeln!(io::stdout(), "{}", bar.text(format))?;
        return Ok(ExitCode::SUCCESS);
    }
    if arguments.openmetrics {
        let listed = sessions.iter().filter(|session| session.is_listed());
        let rows: Vec<_> = listed.map(|session| session.row(now, &context.config.limits).0).collect();
        let hosts = known.iter();
        let hosts = hosts.map(|known| openmetrics::Host { name: &known.host, is_reached: known.trouble.is_none() });
        let hosts: Vec<_> = hosts.collect();
        write!(io::stdout(), "{}", openmetrics::text(rows.iter(), &hosts, now.wall))?;
        return Ok(ExitCode::SUCCESS);
    }
    let problem = |session: &Session| Some((session.id.clone(), session.observed.problem.clone()?));
    let problems: Vec<_> = sessions.iter().filter_map(problem).collect();
    let messages = arguments.messages.then(|| messages(&sessions, context));
    let rows = rows(sessions, context, now, arguments.all);
    let mut out = io::BufWriter::new(io::stdout().lock());
    if arguments.json {
        write_json(&mut out, &rows, messages.as_ref())?;
    } else {
        let summary = Summary::of(rows.iter()).and_unreached(unreached(), &rows);
        write_table(&mut out, &rows, &summary, &ids, now, Style::of_stdout(context.color))?;
        for (id, problem) in &problems {
            out.flush()?;
            say(&format!("session {id}: {problem}"));
        }
    }
    out.flush()?;
    // Of a machine that was asked for by its name, the list lacks what is there now.
    let is_missing = !context.only_hosts.is_empty() && known.iter().any(|known| known.trouble.is_some());
    Ok(if is_missing { ExitCode::from(FAILED) } else { ExitCode::SUCCESS })
}

/// Prints what there is without a home, in the form that a script expects.
fn print_nothing(arguments: &Arguments) -> io::Result<()> {
    if arguments.json {
        writeln!(io::stdout(), "[]")?;
    }
    if let Some(format) = arguments.format {
        writeln!(io::stdout(), "{}", Bar::new(std::iter::empty(), std::iter::empty()).text(format))?;
    }
    if arguments.openmetrics {
        write!(io::stdout(), "{}", openmetrics::text(std::iter::empty(), &[], Time::default()))?;
    }
    Ok(())
}

/// The rows to list, in their order.
fn rows(sessions: Vec<Session>, context: &Context, now: Moment, all: bool) -> Vec<Row> {
    // There may be tens of thousands of sessions: each is dropped as soon as its row is made.
    let listed = sessions.into_iter().filter(Session::is_listed);
    let mut rows: Vec<Row> = listed.map(|session| session.row(now, &context.config.limits).0).collect();
    if all {
        sort(&mut rows);
    } else {
        let list = context.config.list;
        limit_ended(&mut rows, now.wall - list.ended_for, list.ended_most);
    }
    distinguish(&mut rows);
    rows
}

/// How the last messages of sessions begin, by their machines and ids.
type Messages = HashMap<(Option<Box<str>>, Box<str>), Box<str>>;

fn messages(sessions: &[Session], context: &Context) -> Messages {
    let told = sessions.iter().filter(|_| context.config.list.last_message);
    let message = |session: &Session| {
        let host = session.remote.as_ref().map(|remote| (*remote.host.name).into());
        Some(((host, session.id.clone()), session.observed.facts.last_message.clone()?))
    };
    told.filter_map(message).collect()
}

/// One row per line: valid JSON for parsers, and easy to grep.
fn write_json(out: &mut impl Write, rows: &[Row], messages: Option<&Messages>) -> io::Result<()> {
    for (index, row) in rows.iter().enumerate() {
        write!(out, "{}", if index == 0 { "[\n" } else { ",\n" })?;
        match messages {
            Some(messages) => {
                let last_message = messages.get(&(row.host.clone(), row.id.clone())).map(|message| &**message);
                json::write(out, &RowWithMessage { row, last_message })?;
            }
            None => json::write(out, row)?,
        }
    }
    writeln!(out, "{}", if rows.is_empty() { "[]" } else { "\n]" })
}

/// A line that counts the sessions, and the table. `ids` are those of all sessions on disk: a shortened id must be
/// unique among them.
fn write_table(
    out: &mut impl Write,
    rows: &[Row],
    summary: &Summary,
    ids: &[Arc<str>],
    now: Moment,
    style: Style,
) -> io::Result<()> {
    writeln!(out, "{}", words(&summary.to_string(), style.unicode))?;
    if !rows.is_empty() {
        let short = ShortIds::new(ids.iter().map(|id| &**id));
        for line in lines(rows, &short, now.wall, style) {
            writeln!(out, "{line}")?;
        }
    }
    Ok(())
}
