//! A hasty person who resumes a terminal's session twice at once: by two commands, or by a click and a command, which
//! must open it once; or by hand, in two terminals, which then write one log.

use super::actor::Rng;
use super::audit::Audit;
use super::pilots::Pilots;
use crate::support::home::{Folder, Home};
use crate::support::model::Model;
use crate::support::process::is_live;
use crate::support::terminal::Terminal;
use crate::support::tmux;
use crate::support::{SOON, wait, wait_until};
use rustix::process::Signal;
use std::process::Child;
use std::time::Duration;

/// One person, with one session at a time.
pub(crate) struct Hasty<'a> {
    home: &'a Home,
    pilots: &'a Pilots,
    audit: &'a Audit,
    rng: Rng,
    /// The model of the resumed terminals.
    model: &'a Model,
    made: usize,
}

impl<'a> Hasty<'a> {
    /// A person who has not started anything.
    pub(crate) fn new(home: &'a Home, model: &'a Model, pilots: &'a Pilots, audit: &'a Audit, rng: Rng) -> Self {
        Self { home, pilots, audit, rng, model, made: 0 }
    }

    /// Runs one session from its start to the removal of its folder.
    pub(crate) fn act(&mut self) {
        self.made += 1;
        // The row is found in the menu by the start of the prompt.
        let name = format!("Twice {}", self.made);
        let (folder, pid) = self.left(&name);
        if self.rng.below(4) == 0 {
            return self.fork(&folder);
        }
        let apart = Duration::from_millis(self.rng.below(4) as u64 * 400);
        let (how, clicked, commands) = match self.rng.below(3) {
            0 => ("two commands with the tray", false, [true, true].to_vec()),
            1 => ("a command with the tray and one without", false, [true, false].to_vec()),
            _ => {
                let clicked = self.pilots.click(&format!("{name} "), "Resume in a terminal");
                let how = if clicked { "a click and a command" } else { "one command" };
                (how, clicked, [self.rng.below(2) == 0].to_vec())
            }
        };
        let started: Vec<Child> = commands
            .iter()
            .map(|with_tray| {
                let child = self.pilots.command(*with_tray, None, &["resume", &folder.id()]).spawn().unwrap();
                wait(apart, || None::<()>);
                child
            })
            .collect();
        let outputs: Vec<_> = started.into_iter().map(|child| child.wait_with_output().unwrap()).collect();
        // A click may still be running. It opens a terminal within its deadlines.
        wait(if clicked { SOON } else { Duration::ZERO }, || (!self.panes().is_empty()).then_some(()));
        wait(Duration::from_secs(2), || (self.panes().len() > 1).then_some(()));
        let refused = || outputs.iter().all(|output| output.status.code() == Some(4));
        if self.panes().is_empty() && refused() {
            // That is not a second owner, but the log should show why there is not even one.
            self.audit.count("resumes refused");
            println!("REFUSED, left by process {pid}: {outputs:#?}\n{}", folder.dump());
            std::fs::remove_dir_all(&folder.path).unwrap();
            return;
        }
        let panes = self.panes();
        self.audit.count(format!("resumed by {how}"));
        let dump = || format!("{how}, {apart:?} apart: {panes:?} {outputs:#?}\n{}", folder.dump());
        self.audit.require(panes.len() == 1, "a session that was resumed twice did not open exactly once", dump);
        for (n, (pane, _)) in panes.iter().enumerate() {
            self.prompt(pane, &format!("SCRIPT:plain Go on {n}"));
        }
        wait_until(SOON, "it continues", dump, || folder.types().contains(&"session.resume".to_owned()).then_some(()));
        let answered = |n: usize| folder.types().iter().filter(|kind| *kind == "assistant.turn_end").count() >= n;
        wait(SOON, || answered(panes.len()).then_some(()));
        self.audit.check_log(&folder, None);
        let live = folder.locks().into_iter().filter(|pid| is_live(*pid)).count();
        self.audit.require(live <= 1, "two live processes have a lock of one session", dump);
        self.close(&panes);
        std::fs::remove_dir_all(&folder.path).unwrap();
    }

    /// Opens it in two terminals, and prompts both. That two processes write its log is said once they do.
    fn fork(&self, folder: &Folder) {
        let terminals = [(); 2].map(|()| Terminal::resume(self.home, self.model, &folder.id()));
        let ends = || folder.types().iter().filter(|kind| *kind == "assistant.turn_end").count();
        let is_named = || {
            let row = self.pilots.row(&folder.id());
            row.is_some_and(|row| row["because"].as_str().is_some_and(|because| because.contains("conflict")))
        };
        for (n, terminal) in terminals.iter().enumerate() {
            self.audit.require(!is_named(), "a conflict was reported before there was one", || folder.dump());
            let before = ends();
            terminal.enter(&format!("SCRIPT:plain Go on {n}"));
            wait_until(SOON, "it continues", || terminal.dump(), || (ends() > before).then_some(()));
        }
        let named = wait(SOON, || is_named().then_some(())).is_some();
        self.audit.require(named, "a fork was not reported", || folder.dump());
        self.audit.count("forks");
        drop(terminals);
        std::fs::remove_dir_all(&folder.path).unwrap();
    }

    /// A session whose terminal was terminated after a turn, or killed while the model was silent.
    fn left(&mut self, name: &str) -> (Folder, u32) {
        let terminal = Terminal::start(self.home, self.model, &[]);
        if self.rng.below(2) == 0 {
            terminal.enter(&format!("{name} SCRIPT:plain Paint it"));
            terminal.wait_logged("assistant.turn_end");
            terminal.signal(Signal::TERM);
        } else {
            terminal.enter(&format!("{name} SCRIPT:hang Paint it"));
            terminal.wait_logged("assistant.turn_start");
            terminal.signal(Signal::KILL);
        }
        (terminal.folder.clone(), terminal.pid())
    }

    fn tmux(&self, arguments: &[&str]) -> String {
        tmux::on(&self.pilots.socket(), arguments)
    }

    /// The resumed terminals, each with its pid.
    fn panes(&self) -> Vec<(String, u32)> {
        let list = self.tmux(&["list-panes", "-a", "-F", "#{pane_id} #{pane_pid}"]);
        let pane = |line: &str| {
            let (pane, pid) = line.split_once(' ')?;
            Some((pane.to_owned(), pid.parse().ok()?))
        };
        list.lines().filter_map(pane).collect()
    }

    /// Prompts in a terminal, once it accepts a prompt.
    fn prompt(&self, pane: &str, words: &str) {
        tmux::prompt(&self.pilots.socket(), pane, words);
    }

    /// Hangs up, and waits until the processes are gone.
    fn close(&self, panes: &[(String, u32)]) {
        self.tmux(&["kill-server"]);
        let gone = || (!panes.iter().any(|(_, pid)| is_live(*pid))).then_some(());
        wait_until(SOON, "the resumed terminals are gone", || format!("{panes:?}"), gone);
    }
}
