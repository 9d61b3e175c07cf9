//! `pilotlight host` with a machine that is another home here: what stands for `ssh` runs a shell in it, as `sshd` does.

use crate::support::executable::executable;
use crate::support::process::is_live;
use crate::support::synthetic::User;
use crate::support::tmux::Tmux;
use crate::support::{SOON, wait_until};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// A user here, and the same user's home on a machine that is called devbox.
pub(super) struct Two {
    pub(super) near: User,
    pub(super) remote: User,
}

impl Two {
    /// The home there is empty.
    pub(super) fn new() -> Self {
        let two = Self { near: User::new(), remote: User::new() };
        let (home, bin) = (two.remote.scratch.path().display(), two.remote.scratch.path().join("bin"));
        fs::create_dir_all(&bin).unwrap();
        let path = format!("{}:/usr/bin:/bin", bin.display());
        let ssh = format!(
            "#!/bin/sh\nwhile [ \"$1\" != -- ]; do shift; done\n[ \"$2\" = devbox ] || {{ echo \"ssh: Could not resolve hostname $2: Name or service not known\" >&2; exit 255; }}\nshift 2\nexec env -i HOME={home} LANG=C.UTF-8 PILOTLIGHT_DISCOVER=false PATH={path} sh -c \"$*\"\n"
        );
        fs::create_dir_all(two.near.scratch.path().join("bin")).unwrap();
        executable(&two.near.scratch.path().join("bin/ssh"), &ssh);
        two
    }

    pub(super) fn command(&self, args: &[&str]) -> Command {
        let mut command = self.near.pilotlight(args);
        let path = std::env::var("PATH").unwrap_or_default();
        command.env("PATH", format!("{}:{path}", self.near.scratch.path().join("bin").display()));
        command
    }

    pub(super) fn run(&self, args: &[&str]) -> (Option<i32>, String) {
        let ran = self.command(args).output().unwrap();
        (ran.status.code(), String::from_utf8_lossy(&[ran.stdout, ran.stderr].concat()).into_owned())
    }

    pub(super) fn config(&self) -> PathBuf {
        self.near.scratch.path().join(".config/pilotlight/config.toml")
    }

    /// What is where a program is copied to.
    pub(super) fn copied(&self) -> Vec<String> {
        let entries = fs::read_dir(self.remote.scratch.path().join(".local/bin")).into_iter().flatten().flatten();
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
    }

    /// Has the far side read what is sent to it slowly.
    fn slow_down(&self) {
        let slow = "#!/bin/sh\nwhile dd bs=4096 count=1 of=\"$HOME/piece\" 2>/dev/null && [ -s \"$HOME/piece\" ]; do\n/bin/cat \"$HOME/piece\"\nsleep 0.05\ndone\n";
        executable(&self.remote.scratch.path().join("bin/cat"), slow);
    }
}

#[test]
fn case_428_a_machine_is_added_from_nothing_tried_listed_and_removed() {
    let two = Two::new();
    fs::create_dir_all(two.config().parent().unwrap()).unwrap();
    let before = "# mine\n[tray]\ncount = true # so\n";
    fs::write(two.config(), before).unwrap();
    let session = two.remote.session(2);
    session.prompt();
    // Nobody is there to be asked.
    let (code, text) = two.run(&["host", "add", "devbox"]);
    assert_eq!(code, Some(4), "{text}");
    assert!(text.contains("linux on x86_64, no Pilotlight") || text.contains("linux on aarch64"), "{text}");
    assert!(text.contains("    name = \"devbox\"") && text.contains("nothing was changed"), "{text}");
    assert!(two.copied().is_empty() && fs::read_to_string(two.config()).unwrap() == before);

    let (code, text) = two.run(&["host", "add", "devbox", "--yes"]);
    assert_eq!(code, Some(0), "{text}");
    assert_eq!(two.copied(), ["pilotlight"]);
    let entry = "[[host]]\nname = \"devbox\"\nprogram = \"~/.local/bin/pilotlight\"\n";
    assert_eq!(fs::read_to_string(two.config()).unwrap(), format!("{before}\n{entry}"));
    let (code, text) = two.run(&["host", "test", "devbox"]);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("reached in ") && text.contains("it tells of 1 session"), "{text}");
    assert_eq!(two.run(&["host", "add", "devbox", "--yes"]).0, Some(2));
    assert_eq!(two.run(&["host", "test", "gpu"]).0, Some(2));
    let (code, text) = two.run(&["host", "add", "gpu", "--yes"]);
    assert!(
        code == Some(1) && text.contains("gpu is not reached: no address is known for gpu: Name or service not known"),
        "{text}"
    );
    // A second name for it: what is there is used.
    let (code, text) = two.run(&["host", "add", "again", "--ssh", "devbox", "--yes"]);
    assert!(code == Some(0) && !text.contains("a copy of"), "{text}");
    let listed: Value = serde_json::from_str(&two.run(&["host", "list", "--json"]).1).unwrap();
    assert_eq!((&listed[1]["ssh"], &listed[1]["state"]), (&"devbox".into(), &"not-asked".into()), "{listed}");
    assert_eq!(two.run(&["host", "remove", "again", "--yes"]).0, Some(0));
    assert_eq!(two.copied(), ["pilotlight"], "it was not copied for that one");

    assert_eq!(two.run(&["host", "remove", "devbox"]).0, Some(4));
    let (code, text) = two.run(&["host", "remove", "devbox", "--yes"]);
    assert_eq!(code, Some(0), "{text}");
    assert!(two.copied().is_empty(), "{text}");
    assert_eq!(fs::read_to_string(two.config()).unwrap().trim_end(), before.trim_end());
    assert_eq!(two.run(&["host", "remove", "devbox", "--yes"]).0, Some(2));
}

#[test]
fn case_429_a_machine_that_is_out_of_reach_is_removed_and_its_program_later() {
    let two = Two::new();
    assert_eq!(two.run(&["host", "add", "devbox", "--yes"]).0, Some(0));
    let made = fs::read_to_string(two.config()).unwrap();
    assert!(made.contains("# Other machines") && made.ends_with("program = \"~/.local/bin/pilotlight\"\n"), "{made}");
    let ssh = two.near.scratch.path().join("bin/ssh");
    let works = fs::read_to_string(&ssh).unwrap();
    executable(&ssh, "#!/bin/sh\necho 'ssh: connect to host devbox port 22: No route to host' >&2\nexit 255\n");
    let (code, text) = two.run(&["host", "remove", "devbox", "--yes"]);
    assert!(code == Some(1) && text.contains("still there: no network route leads to it now"), "{text}");
    assert!(!two.config().exists(), "it was made for the machine");
    executable(&ssh, &works);
    let (code, text) = two.run(&["host", "remove", "devbox", "--yes"]);
    assert!(code == Some(0) && two.copied().is_empty(), "{text}");
}

#[test]
fn case_430_ctrl_c_and_a_cut_connection_leave_nothing_half() {
    let two = Two::new();
    two.slow_down();
    let copying = || two.copied().iter().any(|name| name.starts_with(".pilotlight-new.")).then_some(());
    let clean = || two.copied().is_empty().then_some(());
    let terminal = Tmux::with_exit_code(&two.command(&["host", "add", "devbox"]), 100, 30);
    wait_until(SOON, "it asks", || terminal.screen(), || terminal.screen().contains("Do it? [y/N]").then_some(()));
    terminal.press(&["y", "Enter"]);
    wait_until(SOON, "it copies", || terminal.screen(), copying);
    terminal.press(&["C-c"]);
    let said = || terminal.screen().contains("exited with 1").then_some(());
    wait_until(SOON, "it ends", || terminal.screen(), said);
    assert!(terminal.screen().contains("interrupted; nothing was changed"), "{}", terminal.screen());
    wait_until(SOON, "nothing is left", || format!("{:?}", two.copied()), clean);
    assert!(!two.config().exists());

    let mut child = two.command(&["host", "add", "devbox", "--yes"]).spawn().unwrap();
    wait_until(SOON, "it copies", String::new, copying);
    kill_process(Pid::from_child(&child), Signal::KILL).unwrap();
    child.wait().unwrap();
    wait_until(SOON, "nothing is left", || format!("{:?}", two.copied()), clean);
    assert!(!two.config().exists());
}

#[test]
fn case_431_a_no_changes_nothing() {
    let two = Two::new();
    let ask = |args: &[&str], question: &str, key: &str| {
        let terminal = Tmux::with_exit_code(&two.command(args), 100, 30);
        wait_until(SOON, question, || terminal.screen(), || terminal.screen().contains(question).then_some(()));
        terminal.press(&[key, "Enter"]);
        let ended = || terminal.screen().contains("exited with ").then(|| terminal.screen());
        wait_until(SOON, "it ends", || terminal.screen(), ended)
    };
    for key in ["n", "x", "C-c"] {
        let text = ask(&["host", "add", "devbox"], "Do it? [y/N]", key);
        assert!(text.contains("nothing was changed") && text.contains("exited with 4"), "{text}");
        assert!(two.copied().is_empty() && !two.config().exists());
    }
    assert!(ask(&["host", "add", "devbox"], "Do it? [y/N]", "y").contains("exited with 0"));
    let written = fs::read_to_string(two.config()).unwrap();
    let text = ask(&["host", "remove", "devbox"], "config.toml? [y/N]", "n");
    assert!(text.contains("exited with 4") && fs::read_to_string(two.config()).unwrap() == written, "{text}");
}

#[test]
fn case_431_a_machine_is_chosen_among_those_that_are_found() {
    let two = Two::new();
    let ssh = two.near.scratch.path().join(".ssh");
    fs::create_dir_all(&ssh).unwrap();
    fs::write(ssh.join("config"), "Host alpha devbox *.corp\n").unwrap();
    let (code, text) = two.run(&["host", "suggest"]);
    assert!(code == Some(0) && text.contains("ssh config  pilotlight host add devbox\n"), "{text}");
    let choose = |typed: &str| {
        let terminal = Tmux::with_exit_code(&two.command(&["host", "add"]), 100, 40);
        terminal.shows("Which one?");
        terminal.press(&[typed, "Enter"]);
        terminal
    };
    for typed in ["x", "C-c"] {
        let terminal = choose(typed);
        terminal.shows("exited with 4");
        assert!(terminal.screen().contains("nothing was changed"), "{}", terminal.screen());
    }
    let terminal = choose("devbox");
    terminal.shows("Do it? [y/N]");
    terminal.press(&["y", "Enter"]);
    terminal.shows("exited with 0");
    assert!(fs::read_to_string(two.config()).unwrap().contains("\nname = \"devbox\""));
    let (_, text) = two.run(&["host", "suggest"]);
    assert!(!text.contains("devbox") && text.contains("host add alpha"), "{text}");
}

#[test]
fn case_438_machines_that_are_added_at_once_are_all_added() {
    let two = Two::new();
    assert_eq!(two.run(&["host", "add", "devbox", "--yes"]).0, Some(0));
    let names = ["one", "two", "three", "four", "five", "six"];
    let add = |name: &&str| {
        let mut command = two.command(&["host", "add", name, "--ssh", "devbox", "--yes"]);
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    };
    let adding: Vec<_> = names.iter().map(add).collect();
    for mut child in adding {
        assert!(child.wait().unwrap().success());
    }
    let listed: Value = serde_json::from_str(&two.run(&["host", "list", "--json"]).1).unwrap();
    assert_eq!(listed.as_array().unwrap().len(), 7, "{listed}");
}

#[test]
fn case_439_a_program_that_another_machines_entry_uses_goes_with_the_last() {
    let two = Two::new();
    assert_eq!(two.run(&["host", "add", "devbox", "--yes"]).0, Some(0));
    assert_eq!(two.run(&["host", "add", "again", "--ssh", "devbox", "--yes"]).0, Some(0));
    let (code, text) = two.run(&["host", "remove", "devbox", "--yes"]);
    assert!(code == Some(0) && text.contains("the program there stays: again uses it, too"), "{text}");
    assert_eq!(two.run(&["host", "test", "again"]).0, Some(0));
    let (code, text) = two.run(&["host", "remove", "again", "--yes"]);
    assert!(code == Some(0) && two.copied().is_empty(), "{text}");
}

#[test]
fn case_440_what_is_no_program_is_not_sent_and_nothing_is_copied_that_cannot_be_noted() {
    let two = Two::new();
    let notes = two.near.scratch.path().join("notes.txt");
    fs::write(&notes, "touch \"$HOME/ran\"\n").unwrap();
    let (code, text) = two.run(&["host", "add", "devbox", "--yes", "--program", notes.to_str().unwrap()]);
    assert!(code == Some(4) && text.contains("is no program for Linux or macOS; nothing was changed"), "{text}");
    let state = two.near.scratch.path().join(".local/state");
    fs::create_dir_all(&state).unwrap();
    fs::remove_dir_all(state.join("pilotlight")).ok();
    fs::write(state.join("pilotlight"), "").unwrap();
    let (code, text) = two.run(&["host", "add", "devbox", "--yes"]);
    assert!(code == Some(1) && text.contains("cannot be written"), "{text}");
    assert!(two.copied().is_empty() && !two.remote.scratch.path().join("ran").exists() && !two.config().exists());
}

#[test]
fn case_441_what_a_machines_command_started_ends_with_it() {
    let two = Two::new();
    let pid = two.near.scratch.path().join("pid");
    let command = format!("sleep 1000 & echo $! > {}; wait", pid.display());
    fs::create_dir_all(two.config().parent().unwrap()).unwrap();
    fs::write(two.config(), format!("[[host]]\nname = \"mute\"\ncommand = [\"sh\", \"-c\", \"{command}\"]\n")).unwrap();
    let (_, text) = two.run(&["status"]);
    assert!(text.contains("mute is not reached"), "{text}");
    let pid: u32 = fs::read_to_string(&pid).unwrap().trim().parse().unwrap();
    wait_until(SOON, "it ends", String::new, || (!is_live(pid)).then_some(()));
}
