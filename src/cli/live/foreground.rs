//! A command that has the terminal in place of the live table, until it ends.

use super::super::context::{Context, World};
use pilotlight_agents::home::Home;
use pilotlight_core::fleet::Row;
use std::io::{self, BufRead, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// A Ctrl-C reaches the command and this program. The command may have ended of it by the time that it is handled here.
const INTERRUPT_WITHIN: Duration = Duration::from_millis(500);

/// A command that runs, or whose output the user is reading.
pub(super) struct ForegroundCommand {
    /// When it ended.
    over: Arc<OnceLock<Instant>>,
    /// Set once the user has read its output.
    ended: Arc<OnceLock<End>>,
}

/// What the user wants after a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// The table again.
    Return,
    /// Nothing more.
    Quit,
}

impl ForegroundCommand {
    /// Runs this program with these arguments on that session. Once it has ended and the user has pressed Enter,
    /// `on_end` is called.
    pub(super) fn start(
        context: &Context,
        discovered: &[PathBuf],
        arguments: &[&str],
        row: &Row,
        on_end: impl Fn() + Send + 'static,
    ) -> io::Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(context.demo.iter().flat_map(World::inside));
        // The ticket is this table's own.
        command.args(context.window.iter().map(|_| "--window=")).args(arguments);
        if context.demo.is_none() {
            // The same homes as this table, wherever they come from; on another machine, the ones that are there.
            let mut homes: Vec<&Path> = context.homes.iter().map(Home::folder).collect();
            homes.extend(
                discovered
                    .iter()
                    .map(PathBuf::as_path)
                    .filter(|home| context.homes.iter().all(|it| it.folder() != *home)),
            );
            command.args(row.host.iter().map(|host| format!("--host={host}")));
            let homes = homes.into_iter().filter(|_| row.host.is_none());
            command.args(homes.flat_map(|home| ["--home".as_ref(), home.as_os_str()]));
        }
        command.args(["--", &*row.id]);
        let (over, ended) = (Arc::<OnceLock<Instant>>::default(), Arc::<OnceLock<End>>::default());
        let (thread_over, thread_ended) = (Arc::clone(&over), Arc::clone(&ended));
        let mut running = command.spawn()?;
        let wait = move || {
            let _ = running.wait(); // the command has printed its own errors
            let _ = thread_over.set(Instant::now()); // set nowhere else
            let mut out = io::stdout();
            // Fails only if the terminal is gone.
            let _ =
                write!(out, "\nPress Enter to return to the table, q and Enter to quit. ").and_then(|()| out.flush());
            let mut typed = String::new();
            let _ = io::stdin().lock().read_line(&mut typed);
            let _ = thread_ended.set(if typed.trim() == "q" { End::Quit } else { End::Return });
            on_end();
        };
        std::thread::Builder::new().name("foreground".into()).spawn(wait)?;
        Ok(Self { over, ended })
    }

    /// Whether a Ctrl-C that is handled now was meant for the command.
    pub(super) fn takes_interrupt(&self) -> bool {
        self.over.get().is_none_or(|over| over.elapsed() < INTERRUPT_WITHIN)
    }

    /// What the user wants now that it has ended; `None` while it has not.
    pub(super) fn ended(&self) -> Option<End> {
        self.ended.get().copied()
    }
}
