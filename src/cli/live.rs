//! `pilotlight live`: the table of sessions, kept up to date. It is redrawn when something changes, when the text of an
//! age changes, and when a key is pressed, never on a fixed interval.
//!
//! Below the table are details of the selected session, and its keys. A key that acts runs its command as a child process,
//! which has the terminal until it ends. `screens` is what takes the table's place: all that is known of a session, and
//! the help.

mod foreground;
mod screens;
mod selection;

use super::bridges::installed_bridges;
use super::charset::columns;
use super::context::{Context, demo_hint, runtime, watch_until_stopped};
use super::keyboard::{Key as Pressed, Keyboard, Rest};
use super::report::LINE_MAX;
use super::table::{Style, fit_painted, lines, next_age, window};
use super::trays::ask_first;
use super::writer::notice_reader;
use crossterm::terminal::{self, ClearType};
use crossterm::{cursor, execute, queue};
use foreground::{End, ForegroundCommand};
use pilotlight_agents::home::Home;
use pilotlight_core::action::offer;
use pilotlight_core::agent::Agent;
use pilotlight_core::fleet::{Row, ShortIds, Summary, limit_ended};
use pilotlight_core::limits::Limits;
use pilotlight_core::session::Key;
use pilotlight_core::text::{any_of, counted, fit, listed, plain, wrap};
use pilotlight_core::time::{Moment, Span, Time};
use pilotlight_engine::config::List;
use pilotlight_engine::control::{Command, RetryHost, ask_to_hold_window};
use pilotlight_engine::hosts::Purpose;
use pilotlight_engine::{Fleet, Settings, Shown, View};
use pilotlight_system::log;
use screens::Screen;
use selection::Selection;
use std::io::{self, IsTerminal, Write};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use tokio::sync::mpsc::UnboundedSender;

/// A terminal with fewer lines shows the table alone.
const MIN_HEIGHT_FOR_DETAILS: usize = 12;
/// One with fewer lines shows the keys below it, and the selected session's reason only in its row.
const MIN_HEIGHT_FOR_REASON: usize = 20;
/// Maximum width of a name in a message, in columns.
const NAME_WIDTH: usize = 40;
/// The mark of the selected session, with and without Unicode.
const SELECTED: (&str, &str) = ("› ", "> ");

pub(super) fn run(context: Context) -> anyhow::Result<ExitCode> {
    if !io::stdout().is_terminal() {
        context.report_problems();
    }
    context.report_ended();
    let engine = context.engine_with_hosts(Purpose::Watch);
    if !io::stdout().is_terminal() {
        let commander = engine.command_sender();
        notice_reader(move || {
            let _ = commander.send(Command::Quit); // fails only when the engine has ended
        })?;
    }
    if context.window.as_ref().is_some_and(|ticket| !ticket.is_empty()) {
        // Before anything else can come with its ticket. Without a tray, its keys say why they are refused.
        let _ = runtime()?.block_on(ask_first(ask_to_hold_window));
    }
    let mut table = LiveTable::new(Arc::new(context), engine.command_sender())?;
    table.is_beside_tray = table.context.demo.is_none();
    table.look_for_bridges();
    let result = watch_until_stopped(engine, &mut table);
    let written = std::mem::replace(&mut table.result, Ok(()));
    drop(table); // restores the terminal before any error is printed
    result?;
    written?;
    Ok(ExitCode::SUCCESS)
}

/// The live table. Restores the terminal on drop.
pub(super) struct LiveTable {
    context: Arc<Context>,
    /// The homes that nobody named, and that are followed by now.
    discovered: Vec<PathBuf>,
    list: List,
    /// Mistakes in the settings.
    problems: Vec<String>,
    /// A message above the table.
    pub(super) notice: Option<String>,
    /// The machines that are not reached, with the reasons, and those that are listed twice.
    troubles: Vec<String>,
    /// The names of those that are not reached.
    unreached: Vec<Arc<str>>,
    terminal: bool,
    keyboard: Keyboard,
    commander: UnboundedSender<Command>,
    selection: Selection,
    screen: Screen,
    limits: Limits,
    /// The command that has the terminal, if any.
    foreground: Option<ForegroundCommand>,
    /// Another process listens for bridges, if any does: the tray.
    is_beside_tray: bool,
    /// The agents whose bridge it may answer by.
    bridged: Vec<&'static str>,
    /// Why the last key had no effect.
    refused: Option<String>,
    drawn: Vec<String>,
    redraw_at: Option<Time>,
    result: io::Result<()>,
}

impl LiveTable {
    /// Takes over the terminal, if there is one. `commander` wakes the engine when a key is pressed.
    pub(super) fn new(context: Arc<Context>, commander: UnboundedSender<Command>) -> io::Result<Self> {
        let terminal = io::stdout().is_terminal() && std::env::var_os("TERM").is_none_or(|term| term != "dumb");
        let mut table = Self {
            list: context.config.list,
            discovered: Vec::new(),
            problems: context.problems.iter().map(ToString::to_string).collect(),
            limits: context.config.limits,
            screen: Screen::Table,
            context,
            notice: None,
            troubles: Vec::new(),
            unreached: Vec::new(),
            terminal,
            keyboard: Keyboard::default(),
            commander,
            selection: Selection::default(),
            foreground: None,
            is_beside_tray: false,
            bridged: Vec::new(),
            refused: None,
            drawn: Vec::new(),
            redraw_at: None,
            result: Ok(()),
        };
        table.take_terminal()?;
        if table.terminal {
            let trigger = table.redraw_trigger();
            table.keyboard.start(trigger)?;
        }
        Ok(table)
    }

    /// Returns a function that has the engine call this view.
    fn redraw_trigger(&self) -> impl Fn() + Send + 'static {
        let commander = self.commander.clone();
        move || {
            let _ = commander.send(Command::Redraw); // fails only when the engine has ended
        }
    }

    fn take_terminal(&mut self) -> io::Result<()> {
        self.drawn.clear();
        if self.terminal && self.foreground.is_none() {
            self.keyboard.disable_echo();
            log::keep_off_screen(true);
            execute!(io::stdout(), terminal::EnterAlternateScreen, cursor::Hide)?;
        }
        Ok(())
    }

    fn give_terminal_back(&mut self) {
        if self.terminal && self.foreground.is_none() {
            // If this fails, the terminal is gone.
            let _ = execute!(io::stdout(), cursor::Show, terminal::LeaveAlternateScreen);
            log::keep_off_screen(false);
            self.keyboard.restore();
        }
    }

    /// Looks which bridges are installed: on disk, so that no redraw does.
    fn look_for_bridges(&mut self) {
        if self.is_beside_tray {
            self.bridged = installed_bridges();
        }
    }

    /// Handles the keys that were pressed. Breaks if the table is to end.
    fn handle_keys(&mut self, fleet: &Fleet, rows: &[Row]) -> io::Result<ControlFlow<()>> {
        match self.foreground.as_ref().and_then(ForegroundCommand::ended) {
            Some(End::Quit) => return Ok(ControlFlow::Break(())),
            Some(End::Return) => {
                self.foreground = None;
                self.take_terminal()?;
                self.keyboard.resume(Rest::Drop);
            }
            None => {}
        }
        while self.foreground.is_none()
            && let Some(key) = self.keyboard.typed()
        {
            self.refused = None;
            self.look_for_bridges();
            match (key, &mut self.screen) {
                (Pressed::Quit, Screen::Table) => return Ok(ControlFlow::Break(())),
                (Pressed::Quit | Pressed::Back, _)
                | (Pressed::Help, Screen::Help(_))
                | (Pressed::Explain, Screen::Help(_) | Screen::Details { .. }) => self.screen = Screen::Table,
                (Pressed::Help, _) => self.screen = Screen::Help(0),
                (Pressed::Down, Screen::Details { from, .. } | Screen::Help(from)) => *from += 1,
                (Pressed::Up, Screen::Details { from, .. } | Screen::Help(from)) => *from = from.saturating_sub(1),
                (_, Screen::Help(_)) => {}
                (Pressed::Explain, Screen::Table) if self.selection.drawn(rows).is_some() => {
                    self.screen = Screen::Details { all: false, from: 0 };
                }
                (Pressed::More, Screen::Details { all, from }) => (*all, *from) = (!*all, 0),
                (Pressed::More, Screen::Table) => {}
                (Pressed::Retry, _) => self.retry(None),
                (Pressed::Up | Pressed::Down, Screen::Table) => self.selection.step(rows, key == Pressed::Down),
                _ => match self.selection.drawn(rows) {
                    Some(Row { reached: false, host, .. }) => self.retry(host.as_deref()),
                    Some(row) => self.run_command(key, row, fleet)?,
                    None if rows.is_empty() => {}
                    None => self.refused = Some("that session is gone".into()),
                },
            }
            if self.foreground.is_none() {
                self.keyboard.resume(Rest::Keep);
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Tries the machine of this name again, or all that are not reached.
    fn retry(&mut self, host: Option<&str>) {
        let hosts: Vec<_> = self.unreached.iter().filter(|one| host.is_none_or(|host| ***one == *host)).collect();
        for host in &hosts {
            let retry = RetryHost { host: (***host).into(), anew: false, reply: None };
            let _ = self.commander.send(Command::RetryHost(retry)); // fails only when the engine has ended
        }
        let names: Vec<_> = hosts.iter().map(|host| &***host).collect();
        self.refused = Some(match &names[..] {
            [] if self.context.hosts().next().is_none() => "there is no other machine in the settings".into(),
            [] => "every machine in the settings is reached".into(),
            [one] => format!("trying again to reach {one}"),
            all => format!("trying again to reach {}", listed(all)),
        });
    }

    fn run_command(&mut self, key: Pressed, row: &Row, fleet: &Fleet) -> io::Result<()> {
        match selection::command(key, row, &self.bridged) {
            Ok(Some(selection::Command { arguments, .. })) => {
                self.give_terminal_back();
                let started =
                    ForegroundCommand::start(&self.context, &self.discovered, arguments, row, self.redraw_trigger());
                match started {
                    Ok(foreground) => self.foreground = Some(foreground),
                    Err(error) => {
                        self.take_terminal()?;
                        self.refused = Some(format!("`pilotlight {}` cannot be started: {error}", arguments.join(" ")));
                    }
                }
            }
            Ok(None) => {}
            Err(action) => {
                let why = session_of(row, fleet).and_then(|shown| offer(action, shown.session, row.status).err());
                self.refused = Some(selection::refusal(action, row, why));
            }
        }
        Ok(())
    }

    fn rows(&self, mut rows: Vec<Row>, now: Moment) -> Vec<Row> {
        limit_ended(&mut rows, now.wall - self.list.ended_for, self.list.ended_most);
        rows
    }

    fn draw(&mut self, fleet: &Fleet, rows: &[Row], now: Moment) -> io::Result<()> {
        let style = Style::of_stdout(self.context.color);
        let at = self.selection.index_in(rows).filter(|_| self.keyboard.is_reading());
        let selected = at.map(|at| &rows[at]);
        let session = selected.and_then(|row| session_of(row, fleet));
        let mut drawn = match (&mut self.screen, session.zip(selected)) {
            (Screen::Help(from), _) => screens::help(from, style),
            (Screen::Details { all, from }, Some((shown, row))) => screens::details(
                (shown.session, row, &self.bridged),
                now,
                &self.limits,
                (*all, self.list.last_message, from),
                style,
            ),
            _ => {
                self.screen = Screen::Table;
                self.table(rows, &fleet.short_ids(), at, now, style)
            }
        };
        if let Some(height) = style.height
            && drawn.len() > height
        {
            let hidden = drawn.len() - height.saturating_sub(1);
            drawn.truncate(height.saturating_sub(1).max(1));
            if height > 1 {
                drawn.push(format!("... and {}", counted(hidden, "more line")));
            }
        }
        drawn.iter_mut().for_each(|line| *line = columns(line, style.unicode).into_owned());
        if self.terminal {
            drawn = drawn.iter().map(|line| fit_painted(line, style.width)).collect();
        }
        // Ages use the wall clock and the timer uses the awake clock; the remaining time is the same on both.
        self.redraw_at = next_age(rows, now.wall).map(|at| now.awake + (at - now.wall).max(Span::seconds(1)));
        if drawn == self.drawn {
            return Ok(());
        }
        let mut out = io::BufWriter::new(io::stdout().lock());
        if self.terminal {
            redraw(&mut out, &drawn)?;
        } else {
            for line in &drawn {
                writeln!(out, "{line}")?;
            }
            writeln!(out)?;
        }
        out.flush()?;
        self.drawn = drawn;
        Ok(())
    }

    /// The lines above the table.
    fn heading(&self, rows: &[Row], style: Style) -> Vec<String> {
        let width = style.width.filter(|_| self.terminal).unwrap_or(usize::MAX);
        let demo = if self.context.demo.is_some() { " demo" } else { "" };
        let summary = Summary::of(rows.iter()).and_unreached(self.unreached.iter().map(|host| &**host), rows);
        let mut lines = wrap(&format!("Pilotlight{demo}: {summary}"), width);
        if let Some(notice) = self.notice.as_deref().map(|notice| plain(notice, LINE_MAX)) {
            let is_small = style.height.is_some_and(|height| height < MIN_HEIGHT_FOR_REASON);
            lines.extend(if is_small { vec![fit(&notice, width)] } else { wrap(&notice, width) });
        }
        lines.extend(self.troubles.iter().map(|trouble| fit(&plain(trouble, LINE_MAX), width)));
        lines.push(String::new());
        if rows.is_empty() {
            let unreadable = self.context.unreadable_local_homes();
            let has_home = unreadable.len() < self.context.homes.len();
            let followed = if has_home { self.context.followed() } else { Vec::new() };
            let offer = (self.context.silent.is_empty() && !has_home).then(demo_hint);
            let said = [waiting(&followed)].into_iter().chain(unreadable).chain(offer);
            lines.extend(said.flat_map(|line| wrap(&line, width)));
        }
        lines
    }

    /// The lines below the table: mistakes in the settings, details of the selected session, and the keys.
    fn footing(&self, selected: Option<&Row>, now: Moment, style: Style) -> Vec<String> {
        let width = style.width.unwrap_or(usize::MAX);
        let mut lines = Vec::new();
        if self.terminal {
            lines.extend(self.problems.iter().flat_map(|problem| wrap(&plain(problem, LINE_MAX), width)));
        }
        if self.keyboard.is_reading() && style.height.is_none_or(|height| height >= MIN_HEIGHT_FOR_DETAILS) {
            lines.push(String::new());
            if style.height.is_none_or(|height| height >= MIN_HEIGHT_FOR_REASON) {
                lines.extend(selected.map(|row| selection::details(row, now.wall, style)).into_iter().flatten());
            }
            lines.extend(self.refused.iter().flat_map(|refused| wrap(refused, width)));
            lines.extend(selection::keys(selected, &self.bridged, !self.unreached.is_empty(), style));
        }
        lines
    }

    fn table(&self, rows: &[Row], ids: &ShortIds<'_>, at: Option<usize>, now: Moment, style: Style) -> Vec<String> {
        let mut drawn = self.heading(rows, style);
        let below = self.footing(at.map(|at| &rows[at]), now, style);
        if !rows.is_empty() {
            let gutter = if at.is_some() { SELECTED.0.chars().count() } else { 0 };
            let style = Style { width: style.width.map(|width| width.saturating_sub(gutter)), ..style };
            let room = style.height.map(|height| height.saturating_sub(drawn.len() + below.len()));
            let mark = |index| match at {
                Some(at) if index == at && style.unicode => SELECTED.0,
                Some(at) if index == at => SELECTED.1,
                Some(_) => "  ",
                None => "",
            };
            let mut table = lines(rows, ids, now.wall, style).into_iter();
            drawn.extend(table.next().map(|head| format!("{:gutter$}{head}", "")));
            let marked: Vec<_> = table.enumerate().map(|(index, lines)| format!("{}{lines}", mark(index))).collect();
            drawn.extend(window(&marked, at, room.map(|room| room.saturating_sub(1))));
        }
        drawn.extend(below);
        drawn
    }
}

/// Replaces the terminal's content by these lines.
pub(super) fn redraw(out: &mut impl Write, lines: &[String]) -> io::Result<()> {
    queue!(out, terminal::BeginSynchronizedUpdate, cursor::MoveTo(0, 0))?;
    for (index, line) in lines.iter().enumerate() {
        let is_last = index + 1 == lines.len();
        let rest = if is_last { ClearType::FromCursorDown } else { ClearType::UntilNewLine };
        // Clears before writing: after a line of full width the cursor is still on its last character.
        write!(out, "{}", if index == 0 { "" } else { "\r\n" })?;
        queue!(out, terminal::Clear(rest))?;
        write!(out, "{line}")?;
    }
    queue!(out, terminal::EndSynchronizedUpdate)
}

/// The session of a row, unless it is gone.
fn session_of<'a>(row: &Row, fleet: &'a Fleet) -> Option<Shown<'a>> {
    fleet.shown().find(|shown| shown.row.id == row.id && shown.row.host == row.host)
}

impl View for LiveTable {
    fn show(&mut self, fleet: &Fleet, _changed: &[Key], _removed: &[Key], now: Moment) -> ControlFlow<()> {
        let rows = self.rows(fleet.rows().cloned().collect(), now);
        let troubles = fleet.troubles().iter().map(|trouble| trouble.words(now.wall));
        self.troubles = troubles.chain(fleet.twins().iter().map(ToString::to_string)).collect();
        self.unreached = fleet.troubles().iter().map(|trouble| Arc::clone(&trouble.host)).collect();
        let drawn = self.handle_keys(fleet, &rows).and_then(|flow| match self.foreground {
            None => self.draw(fleet, &rows, now).map(|()| flow),
            Some(_) => Ok(flow),
        });
        drawn.unwrap_or_else(|error| {
            self.result = Err(error);
            ControlFlow::Break(())
        })
    }

    fn configure(&mut self, settings: &Settings<'_>) {
        self.list = settings.config.list;
        self.limits = settings.config.limits;
        if !settings.at_start {
            self.problems = settings.lines();
        }
    }

    fn follow_also(&mut self, homes: &[PathBuf]) {
        self.discovered = homes.to_vec();
    }

    fn redraw_at(&self) -> Option<Time> {
        // While a command has the terminal, nothing is drawn: that time would pass, and stay passed.
        self.redraw_at.filter(|_| self.foreground.is_none())
    }

    fn shows_ages(&self) -> bool {
        true
    }

    fn leaves_interrupt(&mut self) -> bool {
        self.foreground.as_ref().is_some_and(ForegroundCommand::takes_interrupt)
    }

    fn suspend(&mut self) {
        self.give_terminal_back();
    }

    fn resume(&mut self) {
        self.result = self.take_terminal();
    }
}

impl Drop for LiveTable {
    fn drop(&mut self) {
        self.give_terminal_back();
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    /// A terminal clears from its cursor, which stays on the last character of a full line until the next character.
    #[test]
    fn a_line_is_cleared_before_it_is_written() {
        let mut out = Vec::new();
        redraw(&mut out, &["full".into(), "width".into()]).unwrap();
        let written = String::from_utf8(out).unwrap();
        assert_eq!(written, "\x1b[?2026h\x1b[1;1H\x1b[Kfull\r\n\x1b[Jwidth\x1b[?2026l");
    }
}
/// What a table says in which there is nothing yet.
fn waiting(followed: &[Home]) -> String {
    let mut adapters: Vec<_> = followed.iter().map(Home::adapter).collect();
    adapters.retain(|adapter| !adapter.profile().program.is_empty());
    adapters.dedup();
    if adapters.is_empty() {
        return "Waiting for a session.".into();
    }
    let programs: Vec<_> = adapters.iter().map(|adapter| format!("`{}`", adapter.profile().program)).collect();
    let agents: Vec<_> = adapters.iter().map(|adapter| adapter.agent()).collect();
    let session = Agent::common(agents.iter()).map_or_else(|| "a session".to_owned(), Agent::a_session);
    format!("Waiting for {session}. Start {} in another terminal.", any_of(&programs))
}
