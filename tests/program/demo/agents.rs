//! The sessions of other agents in a demo: what is shown of them, and what comes of each thing that is offered.

use super::{Demo, tmp, user};
use crate::support::desktop::panel::Entry;
use crate::support::executable::executable;
use crate::support::process::{is_live, signal};
use crate::support::{SOON, wait_until};
use rustix::process::Signal;
use serde_json::Value;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Their ids, and whose they are, as rows say it.
const AGENTS: [(&str, &str); 5] =
    [("de12", "Claude"), ("de13", "Claude"), ("de14", "Codex"), ("de15", "Codex"), ("de16", "opencode")];

/// A demo whose user has agents on the search path that note each start, and a terminal whose keys this test presses.
struct Spied {
    demo: Demo,
    keys: fs::File,
}

/// Writes a program.
fn program(path: &Path, script: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    executable(path, &format!("#!/bin/sh\n{script}\n"));
}

impl Spied {
    fn at_speed(speed: &str) -> Self {
        let user = user();
        let at = |name: &str| user.scratch.path().join(name);
        for name in ["claude", "codex", "copilot", "opencode"] {
            program(&at("spies").join(name), &format!("echo \"$0 $@\" >>{}", at("spied").display()));
            program(&at(".local/bin").join(name), &format!("echo \"$0 $@\" >>{}", at("spied").display()));
        }
        assert!(Command::new("mkfifo").arg(at("keys")).status().unwrap().success());
        program(
            &at("terminal"),
            &format!("shift\nexec \"$@\" <{} >>{} 2>&1", at("keys").display(), at("screen").display()),
        );
        let config = at(".config/pilotlight/config.toml");
        fs::create_dir_all(config.parent().unwrap()).unwrap();
        fs::write(config, format!("[actions]\nterminal = [{:?}]\n", at("terminal").display())).unwrap();
        // Real homes of the user's, with a session each that must not be read.
        for folder in
            [".claude/projects/-x", ".claude/sessions", ".codex/thread-writer-locks", ".codex/sessions/2026/01/01"]
        {
            fs::create_dir_all(at(folder)).unwrap();
        }
        fs::write(at(".claude/projects/-x/0c6b5ed9-8b2e-4c5d-9a11-1f2e3d4c5b6a.jsonl"), "{}\n").unwrap();
        let keys = fs::File::options().read(true).write(true).open(at("keys")).unwrap();
        let (spies, claude_code, codex) = (at("spies"), at(".claude"), at(".codex"));
        let demo = Demo::of(user, speed, |command| {
            let path = std::env::var("PATH").unwrap();
            command.env("PATH", format!("{}:{path}", spies.display()));
            command.env("CLAUDE_CONFIG_DIR", claude_code).env("CODEX_HOME", codex);
        });
        Self { demo, keys }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.demo.user.scratch.path().join(name)
    }

    /// The rows of `status`, inside of the demo.
    fn rows(&self, more: &[&str]) -> Vec<Value> {
        let (code, said) = self.demo.run(&[&["status", "--json"], more].concat());
        assert_eq!(code, Some(0), "{said}");
        // What stands behind it is about other processes of this machine.
        serde_json::Deserializer::from_str(&said).into_iter().next().unwrap().unwrap()
    }

    fn row(&self, id: &str) -> Option<Value> {
        self.rows(&[]).into_iter().find(|row| row["id"].as_str().unwrap().starts_with(id))
    }

    fn wait_row(&self, id: &str, what: &str, fits: impl Fn(&Value) -> bool) -> Value {
        wait_until(SOON, &format!("{id} {what}"), || self.dump(id), || self.row(id).filter(|row| fits(row)))
    }

    /// What a failing test says.
    fn dump(&self, id: &str) -> String {
        let screen = fs::read_to_string(self.at("screen")).unwrap_or_default();
        format!("{:#?}\n{:#?}\n{}\n{screen}", self.row(id), self.offers(id), self.demo.tray.output())
    }

    fn owner(row: &Value) -> Option<u32> {
        (row["owner"]["state"] == "alive").then(|| u32::try_from(row["owner"]["pid"].as_u64().unwrap()).unwrap())
    }

    /// What can be clicked in the menu of this session's row.
    fn offers(&self, id: &str) -> Option<Vec<Entry>> {
        let label = self.row(id)?["label"].as_str().unwrap().to_owned();
        let row = self.demo.panel.layout().1.find(&|entry: &Entry| entry.is_row_of(&label)).cloned()?;
        let (mut offers, mut entries) = (Vec::new(), row.entries);
        while let Some(entry) = entries.pop() {
            entries.extend(entry.entries.iter().cloned());
            if entry.enabled && entry.entries.is_empty() && !entry.separator {
                offers.push(entry);
            }
        }
        Some(offers)
    }

    /// Clicks one of them.
    fn click(&self, id: &str, label: &str) {
        let dump = || self.dump(id);
        // A line of `Why` begins with the label, too, and says why that is not possible.
        let reason = format!("{label}:");
        let fits = |entry: &Entry| entry.shown().starts_with(label) && !entry.shown().starts_with(&reason);
        let find = || self.offers(id)?.into_iter().find(fits);
        wait_until(SOON, &format!("{label} of {id} is clicked"), dump, || {
            find()?;
            // An open menu stands still. Right after a change a click might have been meant for another entry.
            self.demo.panel.open();
            self.demo.panel.wait_menu_stable();
            let clicked = find().filter(|entry| self.demo.panel.click(entry.id));
            self.demo.panel.close();
            clicked
        });
    }

    /// Nothing of the user's was started, whatever was clicked.
    fn started_nothing(&self) {
        assert!(!self.at("spied").exists(), "{:?}", fs::read_to_string(self.at("spied")));
    }
}

/// The program that a process runs.
fn program_of(pid: u32) -> PathBuf {
    fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default()
}

#[test]
fn case_314_a_demo_shows_sessions_of_other_agents_and_whose_they_are() {
    let spied = Spied::at_speed("2");
    for (id, agent) in AGENTS {
        let row = spied.wait_row(id, "says whose it is", |row| row["label"].as_str().unwrap().contains(": "));
        let label = row["label"].as_str().unwrap();
        assert!(label.contains(&format!("({agent})")) && label.contains("Demo: "), "{label}");
        spied.demo.panel.wait_for(&format!("{id} is in the menu"), |entry| entry.is_row_of(label));
    }
    let because = |row: &Value, words: &str| row["because"].as_str().unwrap().contains(words);
    for (id, status, words) in [
        ("de12", "working", "running Bash"),
        ("de14", "working", "running exec_command"),
        ("de13", "needs-permission", "asks for permission: Bash"),
        ("de15", "needs-permission", "probably asks in its terminal: curl -O https://example.org/fonts.zip"),
        ("de16", "needs-input", "says its hook: may it change index.md?"),
    ] {
        spied.wait_row(id, &format!("is {status}"), |row| row["status"] == status && because(row, words));
    }
    for (agent, ids) in
        [("claude-code", ["de12", "de13"].as_slice()), ("codex", &["de14", "de15"]), ("opencode", &["de16"])]
    {
        let mut rows: Vec<_> =
            spied.rows(&["--agent", agent]).iter().map(|row| row["id"].as_str().unwrap()[..4].to_owned()).collect();
        rows.sort();
        assert_eq!(rows, ids, "{agent}: the demo's alone, and none of the user's own");
    }
    assert_eq!(spied.rows(&["--agent", "copilot"]).len(), 11);
    // What its terminal alone takes is refused for the reason that is told.
    for (id, why) in [
        ("de13", "`pilotlight bridge install` makes it possible here"),
        ("de15", "it runs without Codex's daemon"),
        ("de16", "its hook only sends reports"),
    ] {
        let refused = spied.demo.run(&["approve", "--yes", id]);
        assert!(refused.0 == Some(4) && refused.1.contains(why), "{refused:?}");
        assert!(spied.demo.run(&["explain", id]).1.contains(why));
        assert!(spied.offers(id).unwrap().iter().all(|entry| entry.label != "Approve once"));
    }
    // The menu offers what the row says, and nothing else.
    for (id, _) in AGENTS {
        let (row, offers) = (spied.row(id).unwrap(), spied.offers(id).unwrap());
        for (name, label) in
            [("end", "End it"), ("force-quit", "Force quit: nothing is saved"), ("resume", "Resume in a terminal")]
        {
            let is_said = row["actions"].as_array().unwrap().contains(&name.into());
            assert_eq!(offers.iter().any(|entry| entry.label == label), is_said, "{label} of {id}: {offers:#?}");
        }
    }
    spied.started_nothing();
}

#[test]
fn case_315_each_is_ended_alone_and_comes_back_with_the_script() {
    let spied = Spied::at_speed("8");
    let works = |row: &Value| Spied::owner(row).is_some() && row["turn"] != Value::Null;
    let mut ended = Vec::new();
    for (id, name, offer) in [
        ("de12", "claude", "End it"),
        ("de13", "claude", "End it"),
        ("de14", "codex", "End it"),
        ("de15", "codex", "Force quit: nothing is saved"),
    ] {
        let pid = Spied::owner(&spied.wait_row(id, "works", works)).unwrap();
        assert_eq!(program_of(pid), spied.demo.left()[0].join("players").join(name));
        let others = AGENTS.iter().filter(|(other, _)| *other != id);
        let others: Vec<_> = others.filter_map(|(other, _)| Spied::owner(&spied.row(other)?)).collect();
        assert!(!others.is_empty() && !others.contains(&pid), "each has a process of its own");
        spied.click(id, offer);
        spied.wait_row(id, "has ended", |row| Spied::owner(row) != Some(pid));
        assert!(!is_live(pid) && others.iter().all(|other| is_live(*other)), "no other ends with it");
        ended.push((id, pid));
    }
    for (id, pid) in ended {
        spied.wait_row(id, "comes back", |row| works(row) && Spied::owner(row) != Some(pid));
    }
    let row = spied.row("de16").unwrap();
    assert_eq!(row["actions"], Value::Array(Vec::new()), "a hook's word allows nothing");
    assert!(spied.offers("de16").unwrap().iter().all(|entry| !entry.shown().starts_with("End it")));
    spied.started_nothing();
}

#[test]
fn case_316_a_click_on_resume_starts_the_demos_own_stand_in_and_no_real_agent() {
    let mut spied = Spied::at_speed("1");
    // The turn that was open when Codex was ended stays open in its log.
    for (id, name, left) in [("de12", "claude", "ended"), ("de14", "codex", "crashed")] {
        let row = spied.wait_row(id, "works", |row| Spied::owner(row).is_some() && row["turn"] != Value::Null);
        let first = Spied::owner(&row).unwrap();
        spied.click(id, "End it");
        spied.wait_row(id, "has ended", |row| Spied::owner(row).is_none() && row["status"] == left);
        spied.click(id, "Resume in a terminal");
        let row = spied.wait_row(id, "runs in a terminal", |row| Spied::owner(row).is_some());
        let window = Spied::owner(&row).unwrap();
        assert_ne!(window, first);
        assert_eq!(program_of(window), spied.demo.left()[0].join("players").join(name));
        let screen = || fs::read_to_string(spied.at("screen")).unwrap_or_default();
        let says = format!("Demo: {}", row["name"].as_str().unwrap().trim_start_matches("Demo: "));
        wait_until(SOON, "the terminal says what it is", screen, || screen().contains(&says).then_some(()));
        spied.keys.write_all(b"\n").unwrap();
        let row = spied.wait_row(id, "is left by Enter", |row| Spied::owner(row).is_none());
        assert_eq!(row["status"], left, "{row}");
    }
    spied.started_nothing();
}

#[test]
#[ignore = "tests/long.sh"]
fn case_317_a_demo_leaves_nothing_of_the_other_agents_either() {
    for end in [Signal::TERM, Signal::KILL] {
        let mut spied = Spied::at_speed("8");
        let mut pids: Vec<u32> = AGENTS
            .iter()
            .map(|(id, _)| Spied::owner(&spied.wait_row(id, "runs", |row| Spied::owner(row).is_some())).unwrap())
            .collect();
        // One that was killed leaves its file; one is open in a terminal.
        signal(pids[0], Signal::KILL);
        spied.wait_row("de12", "has crashed", |row| {
            row["status"] == "crashed" || Spied::owner(row).is_some_and(|pid| pid != pids[0])
        });
        spied.click("de14", "End it");
        spied.wait_row("de14", "has ended", |row| Spied::owner(row) != Some(pids[2]));
        pids.extend(AGENTS.iter().filter_map(|(id, _)| Spied::owner(&spied.row(id)?)));
        spied.demo.tray.signal(end);
        spied.demo.tray.wait_exit();
        let left = || format!("{:?} {pids:?}\n{}", spied.demo.left(), spied.demo.tray.output());
        wait_until(SOON, "nothing is left", left, || {
            (fs::read_dir(tmp(&spied.demo.user)).unwrap().count() == 0 && !pids.iter().any(|pid| is_live(*pid)))
                .then_some(())
        });
        assert_eq!(fs::read_dir(spied.at("run")).unwrap().count(), 0);
        assert!(!spied.at(".local/state").exists(), "nothing is written beside the demo");
        spied.started_nothing();
    }
}
