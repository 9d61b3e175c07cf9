//! `pilotlight` in a terminal: the table, for as long as it is looked at. Redrawn when something changed, and when an age
//! must be worded otherwise; never on a beat.

use super::keyboard::Keyboard;
use super::table::{Style, cut, fit_painted, lines, next_age};
use super::{Context, LINE_MAX, watch_until_told};
use crate::config::List;
use crate::core::fleet::{Glance, Row, ShortIds, shorten};
use crate::core::text::plain;
use crate::core::time::{Moment, Span, Time};
use crate::engine::{Fleet, Key, Settings, View};
use crossterm::{cursor, execute, queue, terminal};
use std::io::{self, IsTerminal, Write};
use std::ops::ControlFlow;
use std::process::ExitCode;
use std::sync::Arc;

pub(super) fn run(context: Context) -> anyhow::Result<ExitCode> {
    if !io::stdout().is_terminal() {
        context.tell_problems();
    }
    context.tell_ended();
    let engine = context.engine();
    let mut table = Live::new(Arc::new(context))?;
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
    drawn: Vec<String>,
    redraw_at: Option<Time>,
    result: io::Result<()>,
}

impl Live {
    /// Takes the terminal over, where there is one.
    pub(super) fn new(context: Arc<Context>) -> io::Result<Self> {
        let terminal = io::stdout().is_terminal() && std::env::var_os("TERM").is_none_or(|term| term != "dumb");
        let mut live = Self {
            list: context.config.list,
            problems: context.problems.iter().map(ToString::to_string).collect(),
            context,
            notice: None,
            terminal,
            keyboard: Keyboard::default(),
            drawn: Vec::new(),
            redraw_at: None,
            result: Ok(()),
        };
        live.take_terminal()?;
        Ok(live)
    }

    fn take_terminal(&mut self) -> io::Result<()> {
        self.drawn.clear();
        if self.terminal {
            self.keyboard.quieten();
            execute!(io::stdout(), terminal::EnterAlternateScreen, cursor::Hide)?;
        }
        Ok(())
    }

    fn give_terminal_back(&mut self) {
        if self.terminal {
            // The terminal may be gone: then there is nothing to restore.
            let _ = execute!(io::stdout(), cursor::Show, terminal::LeaveAlternateScreen);
            self.keyboard.restore();
        }
    }

    fn draw(&mut self, mut rows: Vec<Row>, ids: &ShortIds<'_>, now: Moment) -> io::Result<()> {
        let list = self.list;
        shorten(&mut rows, now.wall - list.ended_for, list.ended_most);
        let style = Style::of_stdout(self.context.color);
        let mut drawn =
            vec![format!("Pilotlight{}: {}", if self.context.demo { " demo" } else { "" }, Glance::of(rows.iter()))];
        drawn.extend(self.notice.clone());
        drawn.push(String::new());
        if rows.is_empty() {
            drawn.push("Waiting for a Copilot session. Start `copilot` in another terminal.".into());
            let unreadable = self.context.unreadable_homes();
            let offer = (unreadable.len() >= self.context.homes.len()).then(super::demo::offer);
            drawn.extend(unreadable.into_iter().chain(offer));
        } else {
            drawn.extend(lines(&rows, ids, now.wall, style));
        }
        if self.terminal {
            drawn.extend(self.problems.iter().map(|problem| String::from(plain(problem, LINE_MAX))));
        }
        if self.terminal {
            drawn = drawn.iter().map(|line| fit_painted(line, style.width)).collect();
        }
        cut(&mut drawn, style.height);
        // Ages are told by the wall clock, the timer runs by the awake one: what is left to wait is the same.
        self.redraw_at = next_age(&rows, now.wall).map(|at| now.awake + (at - now.wall).max(Span::seconds(1)));
        if drawn == self.drawn {
            return Ok(());
        }
        let mut out = io::BufWriter::new(io::stdout().lock());
        if self.terminal {
            queue!(out, terminal::BeginSynchronizedUpdate, cursor::MoveTo(0, 0))?;
            for (index, line) in drawn.iter().enumerate() {
                write!(out, "{}{line}", if index == 0 { "" } else { "\r\n" })?;
                queue!(out, terminal::Clear(terminal::ClearType::UntilNewLine))?;
            }
            queue!(out, terminal::Clear(terminal::ClearType::FromCursorDown), terminal::EndSynchronizedUpdate)?;
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

impl View for Live {
    fn show(&mut self, fleet: &Fleet, _changed: &[Key], _removed: &[Key], now: Moment) -> ControlFlow<()> {
        match self.draw(fleet.rows().cloned().collect(), &fleet.short_ids(), now) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                self.result = Err(error);
                ControlFlow::Break(())
            }
        }
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
