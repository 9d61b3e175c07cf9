//! A person whose terminal is killed while it works, or idles, beside whatever else runs Copilot's program in the same home:
//! servers that log nothing, commands, another terminal. What was told of it stays.

use super::actor::{Rng, Since};
use super::truth::{Ledger, Truth, now, time_of};
use crate::support::home::Home;
use crate::support::model::Model;
use crate::support::server::Server;
use crate::support::terminal::Terminal;
use crate::support::wait;
use rustix::process::Signal;
use std::process::{Child, Stdio};
use std::time::Duration;

/// What a command of Copilot's is run with.
const COMMANDS: [&[&str]; 4] = [&["update"], &["plugin", "list"], &["mcp", "list"], &["--version"]];
/// At which nothing is logged of what a process opens.
const SILENT: [&str; 2] = ["--log-level", "error"];

/// One person, who has one session at a time.
pub(crate) struct Unlucky<'a> {
    home: &'a Home,
    ledger: &'a Ledger,
    rng: Rng,
    model: Model,
}

/// What runs beside the session. Ends when it is dropped.
#[derive(Default)]
struct Beside {
    server: Option<Server>,
    terminal: Option<Terminal>,
    commands: Vec<Child>,
}

impl Drop for Beside {
    fn drop(&mut self) {
        for command in &mut self.commands {
            let _ = command.kill();
            let _ = command.wait();
        }
    }
}

impl<'a> Unlucky<'a> {
    /// A person who has not started anything.
    pub(crate) fn new(home: &'a Home, ledger: &'a Ledger, rng: Rng) -> Self {
        Self { home, ledger, rng, model: Model::start() }
    }

    /// Runs one session from its start to the removal of its folder.
    pub(crate) fn act(&mut self) {
        let mut beside = Beside::default();
        self.add(&mut beside);
        let terminal = Terminal::start(self.home, &self.model, &[]);
        let id = terminal.folder.id();
        self.ledger.note(&id, now(), Truth::Is("idle"));
        self.rest();
        let works = self.rng.below(3) > 0;
        let words = format!("SCRIPT:{} Paint the fence", if works { "hang" } else { "plain" });
        terminal.enter(&words);
        let since = Since::typed(&terminal, &words);
        self.ledger.note(&id, time_of(&since.nth("user.message", 1)), Truth::Is("working"));
        if !works {
            self.ledger.note(&id, time_of(&since.end_of_turn()), Truth::Is("idle"));
        }
        self.rest();
        self.add(&mut beside);
        self.ledger.note(&id, now(), Truth::Unknown);
        terminal.signal(Signal::KILL);
        self.ledger.note(&id, now(), Truth::Is(if works { "crashed" } else { "ended" }));
        for _ in 0..2 + self.rng.below(4) {
            self.add(&mut beside);
            self.rest();
        }
        drop(beside);
        self.rest();
        self.ledger.note(&id, now(), Truth::Unknown);
        std::fs::remove_dir_all(&terminal.folder.path).unwrap();
        self.ledger.note(&id, now(), Truth::Absent);
    }

    /// Starts something that runs Copilot's program in the home.
    fn add(&mut self, beside: &mut Beside) {
        match self.rng.below(4) {
            0 if beside.server.is_none() => {
                beside.server = Some(Server::with_arguments(self.home, &self.model, &SILENT));
            }
            1 => beside.terminal = Some(Terminal::start(self.home, &self.model, &[])),
            _ => {
                let mut command = self.home.copilot(&self.model);
                command.args(COMMANDS[self.rng.below(COMMANDS.len())]);
                command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
                beside.commands.push(command.spawn().unwrap());
            }
        }
    }

    /// Keeps the truth unchanged for a moment.
    fn rest(&mut self) {
        let time = Duration::from_millis(1200 + self.rng.below(2500) as u64);
        wait(time, || None::<()>);
    }
}
