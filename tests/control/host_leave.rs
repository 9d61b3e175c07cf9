//! What `pilotlight host remove` and `host update` leave behind: nothing, or what is in use.

use super::host_add::Two;
use super::hosts::child_of;
use super::trays::Tray;
use crate::support::executable::executable;
use crate::support::{SOON, wait_until};
use rustix::process::Signal;
use serde_json::json;
use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// All that is below a folder.
fn below(folder: &Path) -> BTreeSet<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let all = entries.flat_map(|entry| {
        let path = entry.path();
        below(&path).into_iter().chain([path])
    });
    all.collect()
}

#[test]
fn case_605_a_machine_that_is_removed_leaves_nothing_here_or_there() {
    for before in
        [None, Some(""), Some("[tray]\ncount = true"), Some("# mine\n"), Some("# mine\n\n"), Some("# mine\n\n\n")]
    {
        let two = Two::new();
        if let Some(before) = before {
            fs::create_dir_all(two.config().parent().unwrap()).unwrap();
            fs::write(two.config(), before).unwrap();
        }
        let there = below(two.remote.scratch.path());
        let (code, text) = two.run(&["host", "add", "devbox", "--yes"]);
        assert_eq!(code, Some(0), "{text}");
        assert_eq!(two.run(&["host", "test", "devbox"]).0, Some(0));
        let (code, text) = two.run(&["host", "remove", "devbox", "--yes"]);
        assert!(code == Some(0) && text.contains("the program there is removed"), "{text}");
        assert_eq!(below(two.remote.scratch.path()), there, "{before:?}");
        assert_eq!(fs::read_to_string(two.config()).ok().as_deref(), before);
    }
}

/// What was there before stays, and so does what somebody else put there.
#[test]
fn case_606_folders_that_hold_something_else_stay() {
    let two = Two::new();
    let home = two.remote.scratch.path();
    fs::create_dir_all(home.join(".local/state/pilotlight")).unwrap();
    fs::write(home.join(".local/state/pilotlight/seen.json"), "{}").unwrap();
    assert_eq!(two.run(&["host", "add", "devbox", "--yes"]).0, Some(0));
    fs::write(home.join(".local/bin/mine"), "").unwrap();
    assert_eq!(two.run(&["host", "remove", "devbox", "--yes"]).0, Some(0));
    assert_eq!(two.copied(), ["mine"]);
    assert!(home.join(".local/state/pilotlight/seen.json").exists());
}

#[test]
fn case_607_a_program_that_another_machine_uses_stays_until_it_does_not() {
    let two = Two::new();
    assert_eq!(two.run(&["host", "add", "devbox", "--yes"]).0, Some(0));
    let program = two.remote.scratch.path().join(".local/bin/pilotlight");
    let mut other = Command::new(&program);
    other
        .env_clear()
        .env("HOME", two.remote.scratch.path())
        .env("PILOTLIGHT_DISCOVER", "false")
        .args(["serve", "--stdio"]);
    let mut other = other.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut told = BufReader::new(other.stdout.take().unwrap()).lines();
    told.next().unwrap().unwrap();
    let (code, text) = two.run(&["host", "remove", "devbox", "--yes"]);
    assert_eq!(code, Some(0), "{text}");
    let process = format!("process {}", other.id());
    assert!(text.contains("the program there stays: it is in use") && text.contains(&process), "{text}");
    assert!(program.exists() && !fs::read_to_string(two.config()).unwrap_or_default().contains("devbox"), "{text}");
    drop(other.stdin.take());
    other.wait().unwrap();
    let (code, text) = two.run(&["host", "remove", "devbox", "--yes"]);
    assert!(code == Some(0) && text.contains("the program there is removed") && !program.exists(), "{text}");
}

#[test]
fn case_608_the_bridge_there_is_removed_before_its_program_or_both_stay() {
    let two = Two::new();
    let home = two.remote.scratch.path();
    assert_eq!(two.run(&["host", "add", "devbox", "--yes"]).0, Some(0));
    let key = home.join(".local/state/pilotlight/bridge.key");
    fs::create_dir_all(key.parent().unwrap()).unwrap();
    fs::write(&key, "secret").unwrap();
    let has_bridge = |agent: &str, folder: &str| {
        let path = home.join(".local/share/pilotlight").join(folder);
        let settings =
            json!({"extraKnownMarketplaces": {"pilotlight": {"source": {"source": "directory", "path": path}}}});
        fs::create_dir_all(home.join(agent)).unwrap();
        fs::write(home.join(agent).join("settings.json"), settings.to_string()).unwrap();
    };
    has_bridge(".copilot", "bridge");
    let program = home.join(".local/bin/pilotlight");
    // Its own words are passed on.
    let kept = fs::read(&program).unwrap();
    let (code, text) = two.run(&["host", "remove", "devbox", "--yes"]);
    assert!(code == Some(1) && text.contains("the bridge could not be removed there: "), "{text}");
    assert!(
        text.contains("the program is still there") && fs::read(&program).unwrap() == kept && key.exists(),
        "{text}"
    );
    executable(
        &home.join("bin/copilot"),
        "#!/bin/sh\necho 'GitHub Copilot CLI 1.0.94'\n[ \"$1\" != plugin ] || rm -f ~/.copilot/settings.json\n",
    );
    // Claude Code's, too.
    has_bridge(".claude", "bridge-claude-code");
    let (hook, list) =
        (".local/share/pilotlight/bridge-claude-code", ".local/state/pilotlight/bridge-claude-code.homes");
    fs::create_dir_all(home.join(hook)).unwrap();
    fs::write(home.join(list), "[]").unwrap();
    let (code, text) = two.run(&["host", "remove", "devbox", "--yes"]);
    assert!(code == Some(1) && text.contains("the bridge could not be removed there: "), "{text}");
    assert!(home.join(list).exists() && program.exists(), "{text}");
    executable(&home.join("bin/claude"), "#!/bin/sh\nrm -f ~/.claude/settings.json\n");
    let (code, text) = two.run(&["host", "remove", "devbox", "--yes"]);
    assert!(code == Some(0) && text.contains("the bridge there is removed"), "{text}");
    assert!(!key.exists() && !home.join(hook).exists() && !home.join(list).exists() && !program.exists(), "{text}");
}

#[test]
fn case_609_what_cannot_be_removed_is_said_in_true_words() {
    let two = Two::new();
    assert_eq!(two.run(&["host", "add", "devbox", "--yes"]).0, Some(0));
    let failing = "#!/bin/sh\necho \"rm: cannot remove '$2': Read-only file system\" >&2\nexit 1\n";
    executable(&two.remote.scratch.path().join("bin/rm"), failing);
    let (code, text) = two.run(&["host", "remove", "devbox", "--yes"]);
    assert!(code == Some(1) && text.contains("devbox is no longer in the settings"), "{text}");
    assert!(text.contains("the program is still there: it cannot be removed there: rm: cannot remove"), "{text}");
    assert!(!text.contains("not reached") && !text.contains("nothing was changed"), "{text}");
    fs::remove_file(two.remote.scratch.path().join("bin/rm")).unwrap();
    let (code, text) = two.run(&["host", "remove", "devbox", "--yes"]);
    assert!(code == Some(0) && two.copied().is_empty(), "{text}");
}

#[test]
fn case_610_the_program_there_is_replaced_by_this_one_and_the_tray_uses_it() {
    let two = Two::new();
    assert_eq!(two.run(&["host", "update", "devbox"]).0, Some(2));
    let (code, text) = two.run(&["host", "update", "--all"]);
    assert!(code == Some(0) && text.contains("copied a program to no machine"), "{text}");
    assert_eq!(two.run(&["host", "add", "devbox", "--yes"]).0, Some(0));
    let settings = fs::read(two.config()).unwrap();
    let program = two.remote.scratch.path().join(".local/bin/pilotlight");
    let own = fs::metadata(&program).unwrap().len();
    // One that is older, as far as it differs.
    let older = program.with_extension("older");
    fs::copy(&program, &older).unwrap();
    fs::OpenOptions::new().append(true).open(&older).unwrap().write_all(b"older").unwrap();
    fs::rename(&older, &program).unwrap();
    let tray = Tray::start_from(&two.near, two.command(&["tray"]));
    let reached = || two.run(&["host", "list"]).1;
    wait_until(SOON, "it is reached", reached, || reached().contains("reached, 0 sessions").then_some(()));
    let before = child_of(tray.pid());
    assert_eq!(two.run(&["host", "update", "devbox"]).0, Some(4), "nobody is there to be asked");
    let (code, text) = two.run(&["host", "update", "--all", "--yes"]);
    assert!(code == Some(0) && text.contains("devbox is updated"), "{text}");
    assert_eq!(fs::metadata(&program).unwrap().len(), own);
    assert_ne!(child_of(tray.pid()), before, "by another connection");
    wait_until(SOON, "it is reached again", reached, || reached().contains("reached, 0 sessions").then_some(()));
    assert_eq!(fs::read(two.config()).unwrap(), settings);
    tray.end(Signal::TERM);
    let (code, text) = two.run(&["host", "remove", "devbox", "--yes"]);
    assert!(code == Some(0) && two.copied().is_empty(), "{text}");
}
