//! `pilotlight` in a terminal: the table, for as long as it is looked at. Redrawn when something changed, when an age must be
//! worded otherwise, and when a key was pressed; never on a beat.
//!
//! Below the table stands what is known of the chosen session, and what the keys do with it. Each does what its command does, by
//! running it: the terminal is the command's until it has ended, and is given back to the table then.

mod aside;
mod chosen;

use super::keyboard::{Key as Pressed, Keyboard, Rest};
use super::table::{Style, fit_painted, lines, next_age, window};
use super::{Context, LINE_MAX, watch_until_told};
use crate::config::List;
use crate::core::fleet::{Glance, Row, ShortIds, shorten};
use crate::core::text::{counted, plain, wrap};
use crate::core::time::{Moment, Span, Time};
use crate::engine::{Command, Fleet, Key, Settings, View};
use aside::Aside;
use chosen::Chosen;
use crossterm::terminal::{self, ClearType};
use crossterm::{cursor, execute, queue};
use std::io::{self, IsTerminal, Write};
use std::ops::ControlFlow;
use std::process::ExitCode;
use std::sync::Arc;
use tokio::sync::mpsc::UnboundedSender;

/// A terminal with fewer lines shows the table alone.
const ROOM: usize = 12;
/// A name in a line beside the table is cut after so many columns.
const CUT: usize = 40;
/// The mark of the chosen session, and its like without Unicode.
const CHOSEN: (&str, &str) = ("› ", "> ");

pub(super) fn run(context: Context) -> anyhow::Result<ExitCode> {
    if !io::stdout().is_terminal() {
        context.tell_problems();
    }
    context.tell_ended();
    let engine = context.engine();
    let mut table = Live::new(Arc::new(context), engine.commander())?;
    let result = watch_until_told(engine, &mut table);
    let written = std::mem::replace(&mut table.result, Ok(()));
    drop(table); // the terminal is as it was before anything is said
    result?;
    written?;
    Ok(ExitCode::SUCCESS)
}

/// The table, as long as it is held.
pub(super) struct Live {
    context: Arc<Context>,
    list: List,
    /// What is wrong with the settings.
    problems: Vec<String>,
    /// What there is to say beside the sessions.
    pub(super) notice: Option<String>,
    terminal: bool,
    keyboard: Keyboard,
    commander: UnboundedSender<Command>,
    chosen: Chosen,
    /// A command that has the terminal.
    aside: Option<Aside>,
    /// Why the last key did nothing.
    refused: Option<String>,
    drawn: Vec<String>,
    redraw_at: Option<Time>,
    result: io::Result<()>,
}

impl Live {
    /// Takes the terminal over, where there is one. `commander` is how the engine is woken when a key was pressed.
    pub(super) fn new(context: Arc<Context>, commander: UnboundedSender<Command>) -> io::Result<Self> {
        let terminal = io::stdout().is_terminal() && std::env::var_os("TERM").is_none_or(|term| term != "dumb");
        let mut live = Self {
            list: context.config.list,
            problems: context.problems.iter().map(ToString::to_string).collect(),
            context,
            notice: None,
            terminal,
            keyboard: Keyboard::default(),
            commander,
            chosen: Chosen::default(),
            aside: None,
            refused: None,
            drawn: Vec::new(),
            redraw_at: None,
            result: Ok(()),
        };
        live.take_terminal()?;
        if live.terminal {
            let redraws = live.redraws();
            live.keyboard.read(redraws)?;
        }
        Ok(live)
    }

    /// Has the view called.
    fn redraws(&self) -> impl Fn() + Send + 'static {
        let commander = self.commander.clone();
        move || {
            let _ = commander.send(Command::Redraw); // fails only when the engine has ended
        }
    }

    fn take_terminal(&mut self) -> io::Result<()> {
        self.drawn.clear();
        if self.terminal && self.aside.is_none() {
            self.keyboard.quieten();
            execute!(io::stdout(), terminal::EnterAlternateScreen, cursor::Hide)?;
        }
        Ok(())
    }

    fn give_terminal_back(&mut self) {
        if self.terminal && self.aside.is_none() {
            // The terminal may be gone: then there is nothing to restore.
            let _ = execute!(io::stdout(), cursor::Show, terminal::LeaveAlternateScreen);
            self.keyboard.restore();
        }
    }

    /// Does what the keys say that were pressed. Breaks where the table is to end.
    fn follow_keys(&mut self, rows: &[Row]) -> io::Result<ControlFlow<()>> {
        if self.aside.as_ref().is_some_and(Aside::is_over) {
            self.aside = None;
            self.take_terminal()?;
            self.keyboard.go_on(Rest::Dropped);
        }
        while self.aside.is_none()
            && let Some(key) = self.keyboard.typed()
        {
            self.refused = None;
            match key {
                Pressed::Quit => return Ok(ControlFlow::Break(())),
                Pressed::Up | Pressed::Down => self.chosen.step(rows, key == Pressed::Down),
                _ => {
                    if let Some(row) = self.chosen.among(rows).map(|at| &rows[at]) {
                        self.do_with(key, row)?;
                    }
                }
            }
            if self.aside.is_none() {
                self.keyboard.go_on(Rest::Next);
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    fn do_with(&mut self, key: Pressed, row: &Row) -> io::Result<()> {
        match chosen::command(key, row) {
            Ok(command) => {
                self.give_terminal_back();
                let begun = Aside::begin(&self.context, command, &row.id, self.redraws());
                match begun {
                    Ok(aside) => self.aside = Some(aside),
                    Err(error) => {
                        self.take_terminal()?;
                        self.refused = Some(format!("`pilotlight {}` cannot be started: {error}", command.join(" ")));
                    }
                }
            }
            Err(what) => {
                let who = row.label.cut(CUT);
                self.refused = Some(format!("{what} does nothing for {who} now; Enter says why"));
            }
        }
        Ok(())
    }

    fn rows(&self, mut rows: Vec<Row>, now: Moment) -> Vec<Row> {
        shorten(&mut rows, now.wall - self.list.ended_for, self.list.ended_most);
        rows
    }

    fn draw(&mut self, rows: &[Row], ids: &ShortIds<'_>, now: Moment) -> io::Result<()> {
        let style = Style::of_stdout(self.context.color);
        let mut drawn =
            vec![format!("Pilotlight{}: {}", if self.context.demo { " demo" } else { "" }, Glance::of(rows.iter()))];
        let notice = self.notice.iter().map(|notice| plain(notice, LINE_MAX));
        drawn.extend(
            notice.flat_map(|notice| wrap(&notice, style.width.filter(|_| self.terminal).unwrap_or(usize::MAX))),
        );
        drawn.push(String::new());
        let mut below = Vec::new();
        if self.terminal {
            below.extend(self.problems.iter().map(|problem| String::from(plain(problem, LINE_MAX))));
        }
        let at = self.chosen.among(rows).filter(|_| self.keyboard.is_read());
        if rows.is_empty() {
            drawn.push("Waiting for a Copilot session. Start `copilot` in another terminal.".into());
            let unreadable = self.context.unreadable_homes();
            let offer = (unreadable.len() >= self.context.homes.len()).then(super::demo::offer);
            drawn.extend(unreadable.into_iter().chain(offer));
        }
        if self.keyboard.is_read() && style.height.is_none_or(|height| height >= ROOM) {
            below.push(String::new());
            below.extend(at.map(|at| chosen::details(&rows[at], now.wall, style)).into_iter().flatten());
            below.extend(self.refused.clone());
            below.push(chosen::keys(at.map(|at| &rows[at]), style));
        }
        if !rows.is_empty() {
            let gutter = if at.is_some() { CHOSEN.0.chars().count() } else { 0 };
            let style = Style { width: style.width.map(|width| width.saturating_sub(gutter)), ..style };
            let room = style.height.map(|height| height.saturating_sub(drawn.len() + below.len()));
            let mark = |index| match at {
                Some(at) if index == at => {
                    if style.unicode {
                        CHOSEN.0
                    } else {
                        CHOSEN.1
                    }
                }
                Some(_) => "  ",
                None => "",
            };
            let mut table = lines(rows, ids, now.wall, style).into_iter();
            drawn.extend(table.next().map(|head| format!("{:gutter$}{head}", "")));
            let told: Vec<_> = table.enumerate().map(|(index, lines)| format!("{}{lines}", mark(index))).collect();
            drawn.extend(window(&told, at, room.map(|room| room.saturating_sub(1))));
        }
        drawn.extend(below);
        if let Some(height) = style.height
            && drawn.len() > height
        {
            let left_out = drawn.len() - height.saturating_sub(1);
            drawn.truncate(height.saturating_sub(1).max(1));
            if height > 1 {
                drawn.push(format!("... and {}", counted(left_out, "more line")));
            }
        }
        if self.terminal {
            drawn = drawn.iter().map(|line| fit_painted(line, style.width)).collect();
        }
        // Ages are told by the wall clock, the timer runs by the awake one: what is left to wait is the same.
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
}

/// Draws these lines in place of what the terminal shows.
fn redraw(out: &mut impl Write, lines: &[String]) -> io::Result<()> {
    queue!(out, terminal::BeginSynchronizedUpdate, cursor::MoveTo(0, 0))?;
    for (index, line) in lines.iter().enumerate() {
        let is_last = index + 1 == lines.len();
        let rest = if is_last { ClearType::FromCursorDown } else { ClearType::UntilNewLine };
        // Cleared before it is written: after a line of full width, the cursor still stands on its last character.
        write!(out, "{}", if index == 0 { "" } else { "\r\n" })?;
        queue!(out, terminal::Clear(rest))?;
        write!(out, "{line}")?;
    }
    queue!(out, terminal::EndSynchronizedUpdate)
}

impl View for Live {
    fn show(&mut self, fleet: &Fleet, _changed: &[Key], _removed: &[Key], now: Moment) -> ControlFlow<()> {
        let rows = self.rows(fleet.rows().cloned().collect(), now);
        let drawn = self.follow_keys(&rows).and_then(|flow| match self.aside {
            None => self.draw(&rows, &fleet.short_ids(), now).map(|()| flow),
            Some(_) => Ok(flow),
        });
        drawn.unwrap_or_else(|error| {
            self.result = Err(error);
            ControlFlow::Break(())
        })
    }

    fn configure(&mut self, settings: &Settings<'_>) {
        self.list = settings.config.list;
        if !settings.at_start {
            self.problems = settings.lines();
        }
    }

    fn redraw_at(&self) -> Option<Time> {
        self.redraw_at
    }

    fn suspend(&mut self) {
        self.give_terminal_back();
    }

    fn resume(&mut self) {
        self.result = self.take_terminal();
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.give_terminal_back();
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    /// A terminal clears from its cursor on, which stands on the last character of a full line until another one comes.
    #[test]
    fn nothing_is_cleared_behind_a_line() {
        let mut out = Vec::new();
        redraw(&mut out, &["full".into(), "width".into()]).unwrap();
        let said = String::from_utf8(out).unwrap();
        assert_eq!(said, "\x1b[?2026h\x1b[1;1H\x1b[Kfull\r\n\x1b[Jwidth\x1b[?2026l");
    }
}
