//! A person at a terminal who starts Copilot, prompts it, answers its dialog, and exits, or whose terminal is killed.

use super::actor::{Rng, Since};
use super::truth::{Ledger, Truth, now, time_of};
use crate::support::home::Home;
use crate::support::model::Model;
use crate::support::terminal::Terminal;
use crate::support::wait;
use rustix::process::Signal;
use std::time::Duration;

/// One person, who has one session at a time.
pub(crate) struct AtTerminal<'a> {
    home: &'a Home,
    ledger: &'a Ledger,
    rng: Rng,
    model: Model,
}

impl<'a> AtTerminal<'a> {
    /// A person who has not started anything.
    pub(crate) fn new(home: &'a Home, ledger: &'a Ledger, rng: Rng) -> Self {
        Self { home, ledger, rng, model: Model::start() }
    }

    /// Runs one session from its start to the removal of its folder.
    pub(crate) fn act(&mut self) {
        let terminal = Terminal::start(self.home, &self.model, &[]);
        let id = terminal.folder.id();
        self.ledger.note(&id, now(), Truth::Is("idle"));
        self.rest();
        let mut is_open = false;
        for number in 0..=self.rng.below(3) {
            is_open = self.prompt(&terminal, number);
            if is_open {
                break; // the next prompt would be queued behind the running turn
            }
            self.rest();
        }
        self.leave(&terminal, is_open);
        self.rest();
        self.ledger.note(&id, now(), Truth::Unknown);
        std::fs::remove_dir_all(&terminal.folder.path).unwrap();
        self.ledger.note(&id, now(), Truth::Absent);
    }

    /// Keeps the truth unchanged for a moment.
    fn rest(&mut self) {
        let time = Duration::from_millis(1200 + self.rng.below(2500) as u64);
        wait(time, || None::<()>);
    }

    /// Prompts once. Returns whether the turn is left open.
    fn prompt(&mut self, terminal: &Terminal, number: usize) -> bool {
        let folder = &terminal.folder;
        let id = folder.id();
        let choice = self.rng.below(4);
        let script = ["plain", "question", "sleep3", "hang"][choice];
        let words = format!("SCRIPT:{script} Paint fence {number}");
        terminal.enter(&words);
        let since = Since::typed(terminal, &words);
        let note = |at, status| self.ledger.note(&id, at, Truth::Is(status));
        note(time_of(&since.nth("user.message", 1)), "working");
        match script {
            "plain" => note(time_of(&since.end_of_turn()), "idle"),
            "question" => note(time_of(&since.end_of_turn()), "needs-input"),
            "sleep3" => {
                note(time_of(&since.nth("permission.requested", 1)), "needs-permission");
                self.rest();
                if self.rng.below(3) == 0 {
                    return true;
                }
                terminal.approve();
                let note = |at, status| self.ledger.note(&id, at, Truth::Is(status));
                note(time_of(&since.nth("permission.completed", 1)), "working");
                note(time_of(&since.end_of_turn()), "idle");
            }
            // The model is silent, and the turn is left open.
            _ => {
                self.rest();
                return true;
            }
        }
        false
    }

    fn leave(&mut self, terminal: &Terminal, is_open: bool) {
        let id = terminal.folder.id();
        self.ledger.note(&id, now(), Truth::Unknown);
        let truth = match (self.rng.below(3), is_open) {
            (0, false) => {
                terminal.exit();
                "ended"
            }
            (1, _) => {
                terminal.signal(Signal::TERM);
                "ended"
            }
            _ => {
                terminal.signal(Signal::KILL);
                if is_open { "crashed" } else { "ended" }
            }
        };
        self.ledger.note(&id, now(), Truth::Is(truth));
    }
}
