//! `pilotlight resume`: resumes the session that is named in a terminal of its own; without a name, the one that is
//! chosen among all, here.
//!
//! The picker reads all sessions once, and those of other machines come in ([`sessions`]). What is typed narrows them
//! ([`Finder`]), and a key costs no more than that and a screen of rows.

mod sessions;
mod typing;

use super::act;
use super::charset::columns;
use super::context::{Context, runtime};
use super::hosts::{Which, sessions_or_say};
use super::keyboard::Keyboard;
use super::live::redraw;
use super::observe::{Effort, Picture, observe};
use super::pick::{self, Named};
use super::report::{NO_HOME, REFUSED, say};
use super::table::{Style, fit_painted, lines, pad, paint, shape};
use clap::ValueHint;
use clap_complete::ArgValueCompleter;
use crossterm::{cursor, execute, terminal};
use pilotlight_core::fleet::{Finder, Row, Session, ShortIds, distinguish};
use pilotlight_core::text::{counted, fit, plain};
use pilotlight_core::time::{Moment, Time};
use pilotlight_engine::past::Depth;
use pilotlight_system::clock::Clock;
use pilotlight_system::log;
use pilotlight_system::signals::{Signal, Signals, suspend};
use sessions::Sessions;
use std::ffi::OsString;
use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use tokio::task::spawn_blocking;
use typing::{Typed, Typing};
use unicode_width::UnicodeWidthStr;

/// Arguments of `resume`.
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// The session's id, the beginning of its id, its folder or its title. Without it, you choose from the sessions of all machines and resume one in this terminal
    #[arg(value_name = "NAME", add = ArgValueCompleter::new(pick::complete))]
    id: Option<String>,
    /// The session's machine, by its name in the settings
    #[arg(long, value_name = "HOST", requires = "id")]
    host: Option<String>,
    /// Resume the session in this terminal
    #[arg(long, requires = "id")]
    here: bool,
    /// Resume the session in this folder, for example if its own folder is gone
    #[arg(long = "in", value_name = "DIR", requires = "id", conflicts_with = "host", value_hint = ValueHint::DirPath)]
    folder: Option<PathBuf>,
}

pub(super) fn run(context: &Context, arguments: &Arguments) -> anyhow::Result<ExitCode> {
    if let Some(id) = &arguments.id {
        let named = Named { id: id.clone(), host: arguments.host.clone() };
        return act::resume(context, &named, arguments.folder.as_deref(), arguments.here);
    }
    if context.has_no_home() && context.hosts().next().is_none() {
        context.report_problems();
        context.unreadable_homes().iter().for_each(|problem| say(problem));
        return Ok(ExitCode::from(NO_HOME));
    }
    let mut picture = observe(context, Effort::Look, Some(Depth::Whole))?;
    let mut ids = picture.ids();
    let Picture { sessions, now, .. } = picture;
    let listed = sessions.into_iter().filter(Session::is_listed);
    let mut rows: Vec<Row> = listed.map(|session| session.row(now, &context.config.limits).0).collect();
    if !io::stdin().is_terminal() || !io::stdout().is_terminal() {
        context.report_problems();
        let remote = sessions_or_say(context, None, Which::All, now);
        ids.extend(remote.iter().map(|session| session.id.as_ref().into()));
        rows.extend(remote.iter().map(|session| session.row(now, &context.config.limits).0));
        distinguish(&mut rows);
        let finder = Finder::new(rows);
        let mut out = io::BufWriter::new(io::stdout().lock());
        for line in
            lines(finder.rows(), &ShortIds::new(ids.iter().map(|id| &**id)), now.wall, Style::of_stdout(context.color))
        {
            writeln!(out, "{line}")?;
        }
        out.flush()?;
        say("you can choose from this list only on a terminal: name the session, as in `pilotlight resume NAME`");
        return Ok(ExitCode::from(REFUSED));
    }
    match choose(context, rows, now)? {
        Some(Chosen::Here(id)) => act::resume(context, &Named { id: id.into(), host: None }, None, true),
        Some(Chosen::There(command)) => act::resume_there(command),
        None => {
            say("no session was chosen");
            Ok(ExitCode::from(REFUSED))
        }
    }
}

/// The session that was chosen.
enum Chosen {
    /// The id of one of this machine.
    Here(Box<str>),
    /// What resumes one of another machine in this terminal.
    There(Vec<OsString>),
}

/// What is chosen by this row.
///
/// # Errors
/// Why the session cannot be resumed in this terminal.
fn chosen(context: &Context, row: &Row) -> Result<Chosen, String> {
    match &row.host {
        None => Ok(Chosen::Here(row.id.clone())),
        Some(host) => act::command_there(context, &row.id, &row.agent, host).map(Chosen::There),
    }
}

/// Has the user choose among the sessions of this machine and those of others. Returns `None` if the user leaves, or a
/// signal ends the program.
fn choose(context: &Context, here: Vec<Row>, now: Moment) -> anyhow::Result<Option<Chosen>> {
    let clock = Clock::start();
    runtime()?.block_on(async {
        let (mut signals, mut typing) = (Signals::new()?, Typing::new()?);
        let mut screen = Screen::take()?;
        let (mut sessions, mut finder) = Sessions::start(context, here, now)?;
        let mut refused: Option<String> = None;
        loop {
            let style = Style::of_stdout(context.color);
            let note = refused.as_deref().or_else(|| sessions.note());
            screen.show(&picture(&finder, note, clock.now().wall, style), style)?;
            tokio::select! {
                biased;
                typed = typing.next() => for typed in typed? {
                    refused = None;
                    match typed {
                        Typed::Choose => match finder.selected().map(|row| chosen(context, row)) {
                            Some(Ok(chosen)) => return Ok(Some(chosen)),
                            Some(Err(why)) => refused = Some(why),
                            None => {}
                        },
                        Typed::Leave => return Ok(None),
                        other => apply(other, &mut finder, page_height(style)),
                    }
                },
                all = sessions.change() => if let Some(all) = all {
                    let before = finder.renew(all);
                    // Elsewhere, as it takes longer than a key may.
                    drop(spawn_blocking(move || drop(before)));
                },
                signal = signals.next() => match signal {
                    Signal::Interrupt | Signal::End => return Ok(None),
                    Signal::Redraw => screen.forget(),
                    Signal::Suspend => {
                        drop(screen);
                        suspend();
                        screen = Screen::take()?;
                    }
                },
            }
        }
    })
}

fn apply(typed: Typed, finder: &mut Finder, page: usize) {
    let page = isize::try_from(page).unwrap_or(isize::MAX);
    match typed {
        Typed::Character(c) => finder.push(c),
        Typed::Erase => finder.pop(),
        Typed::EraseWord => finder.pop_word(),
        Typed::EraseAll => finder.clear(),
        Typed::Up => finder.step(-1),
        Typed::Down => finder.step(1),
        Typed::PageUp => finder.step(-page),
        Typed::PageDown => finder.step(page),
        Typed::Choose | Typed::Leave => {}
    }
}

/// Lines besides those of sessions: the heading, the note or a blank line, and the keys.
const OTHER_LINES: usize = 3;
/// Maximum length of a note, in characters.
const NOTE_MAX: usize = 1000;
/// The height of a terminal that does not tell it.
const HEIGHT: usize = 24;
/// The width of such a terminal.
const WIDTH: usize = 80;

fn page_height(style: Style) -> usize {
    style.height.unwrap_or(HEIGHT).saturating_sub(OTHER_LINES).max(1)
}

/// The whole screen: what is typed, the sessions that it finds, a note, and the keys.
fn picture(finder: &Finder, note: Option<&str>, now: Time, style: Style) -> Vec<String> {
    let width = style.width.unwrap_or(WIDTH);
    let (found, all) = finder.count();
    let count = if found == all { counted(all, "session") } else { format!("{found} of {all}") };
    let typed = fit(&plain(finder.typed(), width), width.saturating_sub(count.width() + 12));
    let cursor = if style.unicode { "▏" } else { "_" };
    let mut drawn = vec![paint(&format!("Resume: {typed}{cursor}  {count}"), "1", style)];
    drawn.extend(finder.page(page_height(style)).map(|(is_selected, row)| line(row, is_selected, width, now, style)));
    if found == 0 {
        drawn.push(if all == 0 { "There is no session yet." } else { "No session has all of these words." }.to_owned());
    }
    drawn.push(fit(&plain(note.unwrap_or_default(), NOTE_MAX), width));
    drawn.push(fit("Type to narrow · arrows choose · Enter resumes it here · Esc leaves", width));
    drawn.iter().map(|line| fit_painted(&columns(line, style.unicode), Some(width))).collect()
}

/// `› 3 d       ○ ended             billing-api · Write the migration`.
fn line(row: &Row, is_selected: bool, width: usize, now: Time, style: Style) -> String {
    const AGE_WIDTH: usize = 8;
    const STATUS_WIDTH: usize = "! needs-permission".len();
    let mark = match (is_selected, style.unicode) {
        (true, true) => "› ",
        (true, false) => "> ",
        (false, _) => "  ",
    };
    let age = pad(&row.age(now).unwrap_or_else(|| "-".into()), AGE_WIDTH);
    let status = pad(&format!("{} {}", shape(row.status, style.unicode), row.status), STATUS_WIDTH);
    let before = format!("{mark}{age}  {status}  ");
    let line = format!("{before}{}", row.label.cut(width.saturating_sub(before.width())));
    if is_selected { paint(&line, "7", style) } else { line }
}

/// The terminal, which is restored on drop.
struct Screen {
    keyboard: Keyboard,
    drawn: Vec<String>,
}

impl Screen {
    fn take() -> io::Result<Self> {
        let mut screen = Self { keyboard: Keyboard::default(), drawn: Vec::new() };
        screen.keyboard.disable_echo();
        log::keep_off_screen(true);
        execute!(io::stdout(), terminal::EnterAlternateScreen, cursor::Hide)?;
        Ok(screen)
    }

    /// Draws everything anew the next time: the terminal may show something else.
    fn forget(&mut self) {
        self.drawn.clear();
    }

    fn show(&mut self, lines: &[String], style: Style) -> io::Result<()> {
        let lines = &lines[..style.height.unwrap_or(usize::MAX).min(lines.len())];
        if lines != self.drawn {
            let mut out = io::BufWriter::new(io::stdout().lock());
            redraw(&mut out, lines)?;
            out.flush()?;
            self.drawn = lines.to_vec();
        }
        Ok(())
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // If this fails, the terminal is gone.
        let _ = execute!(io::stdout(), cursor::Show, terminal::LeaveAlternateScreen);
        log::keep_off_screen(false);
        self.keyboard.restore();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pilotlight_core::agent::Agent;
    use pilotlight_core::fleet::Label;
    use pilotlight_core::limits::Limits;
    use pilotlight_core::time::Moment;
    use pilotlight_core::verdict::Status;

    const STYLE: Style = Style { width: Some(60), height: Some(7), colour: false, unicode: true };

    fn row(n: i64, title: &str) -> Row {
        let row =
            Session { id: format!("{n}aaa").into(), ..Session::default() }.row(Moment::default(), &Limits::default()).0;
        let label = Label { who: "billing-api".into(), agent: None, title: Some(title.into()) };
        Row { label, status: Status::Ended, last_progress: Some(Time(n * 60_000)), ..row }
    }

    #[test]
    fn case_309_the_picture_fits_the_terminal_and_shows_the_selected_session() {
        let mut finder = Finder::new((1..=9).map(|n| row(n, &format!("Write the migration {n}"))).collect());
        let drawn = picture(&finder, None, Time(9 * 60_000), STYLE);
        assert_eq!(drawn.len(), 7);
        assert_eq!(drawn[0], "Resume: ▏  9 sessions");
        assert_eq!(drawn[1], "› <1 min    ○ ended             billing-api · Write the mig…");
        assert!(drawn[2].starts_with("  1 min ") && drawn[6].starts_with("Type to narrow"), "{drawn:#?}");
        "n 3".chars().for_each(|c| apply(Typed::Character(c), &mut finder, 4));
        let drawn = picture(&finder, None, Time(9 * 60_000), STYLE);
        assert_eq!((&*drawn[0], drawn.len()), ("Resume: n 3▏  1 of 9", 4));
        apply(Typed::Character('x'), &mut finder, 4);
        assert_eq!(picture(&finder, None, Time(0), STYLE)[1], "No session has all of these words.");
        apply(Typed::EraseAll, &mut finder, 4);
        apply(Typed::PageDown, &mut finder, 4);
        apply(Typed::Down, &mut finder, 4);
        let drawn = picture(&finder, None, Time(9 * 60_000), STYLE);
        assert!(drawn[4].starts_with("› 5 min "), "{drawn:#?}");
        for (width, height) in [(1, 1), (12, 2), (30, 3)] {
            let style = Style { width: Some(width), height: Some(height), unicode: false, ..STYLE };
            let drawn = picture(&finder, None, Time(0), style);
            assert!(drawn.iter().all(|line| line.width() <= width && line.is_ascii()), "{width}: {drawn:#?}");
        }
    }

    #[test]
    fn several_agents_are_named() {
        let mut rows = vec![row(1, "one"), Row { agent: Agent::reported("other").unwrap(), ..row(2, "two") }];
        distinguish(&mut rows);
        let drawn = picture(&Finder::new(rows), None, Time(0), STYLE);
        assert!(drawn[1].contains("  billing-api · two (other)"), "{drawn:#?}");
    }

    #[test]
    fn hostile_text_stays_on_its_line() {
        let mut finder = Finder::new(vec![row(1, "a\n\u{1b}[2J\u{202e}b")]);
        let drawn = picture(&finder, None, Time(0), STYLE);
        assert!(!drawn.join("").contains(['\n', '\u{1b}', '\u{202e}']), "{drawn:?}");
        apply(Typed::Character('\u{202e}'), &mut finder, 1);
        assert!(!picture(&finder, None, Time(0), STYLE)[0].contains('\u{202e}'));
    }
}
