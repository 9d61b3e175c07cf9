//! `pilotlight watch`: prints a line for each change, as long as somebody reads.

use super::agents::Agents;
use super::bars::{Bar, Format};
use super::context::{Context, watch_until_stopped};
use super::json::{self, RowWithMessage};
use super::report::{USAGE, say};
use super::writer::Writer;
use pilotlight_core::fleet::{Row, Session};
use pilotlight_core::limits::Limits;
use pilotlight_core::session::Key;
use pilotlight_core::time::{Moment, Time};
use pilotlight_engine::control::Command;
use pilotlight_engine::hosts::Purpose;
use pilotlight_engine::{Fleet, Settings, Trouble, Twin, View};
use serde::Serialize;
use std::ops::ControlFlow;
use std::process::ExitCode;

/// Arguments of `watch`.
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Print JSON: one object for each session, again whenever its status, reason, process or actions change
    #[arg(long, conflicts_with = "format")]
    json: bool,
    /// With `--json`: add the beginning of each session's last message, as `last_message`
    #[arg(long, requires = "json")]
    messages: bool,
    /// Print the text for a status bar, again whenever it changes
    #[arg(long, value_enum)]
    format: Option<Format>,
    #[command(flatten)]
    pub(super) agents: Agents,
}

pub(super) fn run(context: &Context, arguments: &Arguments) -> anyhow::Result<ExitCode> {
    if !arguments.json && arguments.format.is_none() {
        say(
            "say in which form: `watch --json` for scripts, `watch --format waybar` for a bar; `pilotlight live` is for people",
        );
        return Ok(ExitCode::from(USAGE));
    }
    context.report_problems();
    for problem in context.unreadable_homes() {
        say(&format!("{problem}; Pilotlight waits for this home"));
    }
    let engine = context.engine_with_hosts(Purpose::Watch);
    let commander = engine.command_sender();
    let writer = Writer::start(move || {
        let _ = commander.send(Command::Quit); // fails only when the engine has ended
    })?;
    if let Some(format) = arguments.format {
        let mut bar = BarView { format, last: String::new(), writer };
        watch_until_stopped(engine, &mut bar)?;
        bar.writer.end()?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut lines = JsonView {
        limits: context.config.limits,
        messages: arguments.messages.then_some(context.config.list.last_message),
        troubles: Vec::new(),
        twins: Vec::new(),
        out: Vec::new(),
        writer,
    };
    watch_until_stopped(engine, &mut lines)?;
    lines.writer.end()?;
    Ok(ExitCode::SUCCESS)
}

/// A long list is flushed whenever this many bytes are buffered.
const FLUSH_AT: usize = 1 << 16;

/// Writes rows as lines of JSON.
struct JsonView {
    limits: Limits,
    /// Whether it is said how last messages begin, if that is asked for.
    messages: Option<bool>,
    /// The machines that are known not to be reached.
    troubles: Vec<Trouble>,
    /// The machines that are known to be listed twice.
    twins: Vec<Twin>,
    out: Vec<u8>,
    writer: Writer,
}

/// A session that is gone.
#[derive(Serialize)]
pub(super) struct Removed<'a> {
    pub(super) id: &'a str,
    pub(super) removed: bool,
    /// The machine that it was on, if that is another one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) host: Option<&'a str>,
}

impl JsonView {
    fn line(&mut self, value: &impl Serialize) {
        // Writing to a Vec, of values without maps, cannot fail.
        let _ = json::write(&mut self.out, value);
        self.out.push(b'\n');
    }

    fn row(&mut self, row: &Row, session: &Session) {
        match self.messages {
            Some(may_tell) => {
                let last_message = session.observed.facts.last_message.as_deref().filter(|_| may_tell);
                self.line(&RowWithMessage { row, last_message });
            }
            None => self.line(row),
        }
    }

    /// Says which machines are not reached any more, on standard error.
    fn say_troubles(&mut self, troubles: &[Trouble], now: Time) {
        for trouble in troubles.iter().filter(|trouble| !self.troubles.iter().any(|said| said.host == trouble.host)) {
            say(&trouble.words(now));
        }
        self.troubles = troubles.to_vec();
    }

    /// Writes all buffered lines in one block, so that no reader sees half an update.
    fn flush(&mut self) -> ControlFlow<()> {
        match self.writer.write(std::mem::take(&mut self.out)) {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        }
    }
}

impl View for JsonView {
    fn show(&mut self, fleet: &Fleet, changed: &[Key], removed: &[Key], now: Moment) -> ControlFlow<()> {
        // Removals come first: a session that was removed and added again within one update ends up present.
        for Key { id, host, .. } in removed {
            self.line(&Removed { id, removed: true, host: host.as_deref() });
            // Another home may have a session of the same id.
            let is_other = |key: &Key| (&key.id, &key.host) == (id, host) && !changed.contains(key);
            for shown in fleet.shown().filter(|shown| is_other(shown.key)) {
                self.row(shown.row, shown.session);
            }
        }
        for key in changed {
            if let Some(shown) = fleet.shown_as(key) {
                self.row(shown.row, shown.session);
            }
        }
        self.say_troubles(fleet.troubles(), now.wall);
        for twin in fleet.twins().iter().filter(|twin| !self.twins.contains(twin)) {
            say(&twin.to_string());
        }
        self.twins = fleet.twins().to_vec();
        if self.out.is_empty() { ControlFlow::Continue(()) } else { self.flush() }
    }

    fn configure(&mut self, settings: &Settings<'_>) {
        self.limits = settings.config.limits;
        self.messages = self.messages.map(|_| settings.config.list.last_message);
        if !settings.at_start {
            settings.lines().iter().for_each(|line| say(line));
        }
    }

    fn wants_history(&self) -> bool {
        true
    }

    fn show_history(&mut self, sessions: &mut dyn Iterator<Item = Session>, now: Moment) -> ControlFlow<()> {
        for session in sessions {
            self.row(&session.row(now, &self.limits).0, &session);
            if self.out.len() >= FLUSH_AT {
                self.flush()?;
            }
        }
        self.flush()
    }
}

/// Writes the text of a bar whenever it changes.
struct BarView {
    format: Format,
    last: String,
    writer: Writer,
}

impl View for BarView {
    fn show(&mut self, fleet: &Fleet, _changed: &[Key], _removed: &[Key], _now: Moment) -> ControlFlow<()> {
        let unreached = fleet.troubles().iter().map(|trouble| &*trouble.host);
        let text = Bar::new(fleet.rows().cloned(), unreached).next(self.format);
        if text == self.last {
            return ControlFlow::Continue(());
        }
        self.last.clone_from(&text);
        match self.writer.write(text.into_bytes()) {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        }
    }
}
