//! `pilotlight resume` without an id over several machines: each is another user of this machine, behind a stand-in for
//! `ssh` or a command of the settings.

use super::resume::user;
use crate::control::hosts::serves;
use crate::control::trays::Tray;
use crate::support::executable::executable;
use crate::support::running_time::running_time;
use crate::support::synthetic::User;
use crate::support::tmux::Tmux;
use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;
use std::time::Duration;

/// A stand-in for `ssh` that leads to this user, as a folder for PATH.
fn ssh_to(remote: &User) -> String {
    let folder = remote.scratch.path().join("bin");
    fs::create_dir_all(&folder).unwrap();
    let (path, home) = (std::env::var("PATH").unwrap(), remote.scratch.path().display());
    let script = format!(
        "#!/bin/sh\nwhile [ \"$1\" != -- ]; do [ \"$1\" = -t ] && t=1; shift; done\n[ -n \"$t\" ] && echo \"a terminal on $2\"; shift 2\n\
         exec env -i HOME={home} PATH={path} LANG=C.UTF-8 PILOTLIGHT_DISCOVER=false TERM=\"$TERM\" \"$@\"\n"
    );
    executable(&folder.join("ssh"), &script);
    format!("{}:{path}", folder.display())
}

/// Adds machines to a user's settings.
fn add_hosts(user: &User, hosts: &[(&str, Option<&[String]>)]) {
    let config = user.scratch.path().join(".config/pilotlight/config.toml");
    let mut text = fs::read_to_string(&config).unwrap();
    for (name, command) in hosts {
        match command {
            Some(words) => {
                let words = serde_json::to_string(words).unwrap();
                let _ = writeln!(text, "[[host]]\nname = \"{name}\"\ncommand = {words}");
            }
            None => {
                let program = env!("CARGO_BIN_EXE_pilotlight");
                let _ = writeln!(text, "[[host]]\nname = \"{name}\"\nprogram = \"{program}\"");
            }
        }
    }
    fs::write(config, text).unwrap();
}

fn words(script: &str) -> Vec<String> {
    ["sh", "-c", script].map(Into::into).into()
}

#[test]
fn case_446_a_session_of_another_machine_is_found_and_resumed_in_this_terminal() {
    let ((near, _here), (remote, there)) =
        (user(&["Rotate TLS"]), user(&["Write the migration", "Rotate keys", "Old"]));
    add_hosts(&near, &[("devbox", None)]);
    let mut command = near.pilotlight(&["resume"]);
    command.env("PATH", ssh_to(&remote));
    let terminal = Tmux::with_exit_code(&command, 120, 12);
    terminal.shows("4 sessions");
    terminal.text("rotate");
    terminal.shows("2 of 4");
    terminal.text(" @devbox");
    terminal.shows("1 of 4");
    assert!(terminal.screen().contains("› 2 d "), "with its age: {}", terminal.screen());
    terminal.press(&["Enter"]);
    terminal.shows("a terminal on devbox");
    let folder = remote.scratch.path().join("work-2");
    terminal.shows(&format!("run with --resume={} in {}", there[1].id, folder.display()));
    terminal.text("hello");
    terminal.press(&["Enter"]);
    terminal.shows("read hello");
    terminal.shows("exited with 7");
}

#[test]
fn case_449_machines_that_do_not_answer_keep_nobody_from_choosing() {
    let ((near, _here), (remote, _there)) = (user(&["Rotate TLS"]), user(&["Write the migration"]));
    let boxed = serves(&remote);
    let (mute, absent) = (words("read line; read line"), words("echo gone >&2; exit 3"));
    add_hosts(&near, &[("box", Some(&boxed)), ("mute", Some(&mute)), ("absent", Some(&absent))]);
    let begun = running_time();
    let terminal = Tmux::with_exit_code(&near.pilotlight(&["resume"]), 120, 12);
    terminal.shows("2 sessions");
    let took = running_time() - begun;
    assert!(took < Duration::from_secs(3), "{took:?}");
    terminal.shows("absent is not reached: gone (exit code 3)");
    // One line for all.
    terminal.shows("absent is not reached: gone (exit code 3); mute has not told of all sessions yet");
    terminal.text("migration");
    terminal.shows("1 of 2");
    terminal.press(&["Enter"]);
    terminal.shows("resume it on box: it cannot be resumed from here");
    terminal.press(&["C-u"]);
    terminal.shows("2 sessions");
    assert!(!terminal.screen().contains("box is reached"), "{}", terminal.screen());
    terminal.press(&["Escape"]);
    terminal.shows("exited with 4");
}

#[test]
fn case_446_without_a_terminal_and_in_all_rows_those_of_other_machines_are_listed() {
    let ((near, _here), (remote, there)) = (user(&["Rotate TLS"]), user(&["Write the migration", "Old"]));
    add_hosts(&near, &[("box", Some(&serves(&remote)))]);
    let output = near.run(&["resume"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.code() == Some(4) && text.contains("work-2 @box") && text.contains("work-1 "), "{text}");
    let all = near.rows(&["--all"]);
    assert_eq!(all.iter().filter(|row| row["host"] == "box").count(), 2, "{all:?}");
    assert!(near.rows(&[]).iter().all(|row| row["id"] != there[1].id.as_str()), "only what ended not long ago");
    // By its id, too, where a terminal could be opened.
    let output = near.run(&["resume", "--here", &there[1].id]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        output.status.code() == Some(4) && said.contains("resume it on box: it cannot be resumed from here"),
        "{said}"
    );
}

/// By `serve` alone, and where it passes on what a tray tells: between the lines of the tray, which never sees the
/// question.
#[test]
fn case_448_serve_tells_of_old_sessions_when_it_is_asked() {
    for has_tray in [false, true] {
        let (remote, there) = user(&["Write the migration", "Rotate TLS", "Old"]);
        let _tray = has_tray.then(|| Tray::start(&remote));
        let mut serve = remote.pilotlight(&["serve", "--stdio"]);
        let mut child = serve.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut to = child.stdin.take().unwrap();
        to.write_all(b"\"history\"\n{\"ping\":7}\n").unwrap();
        let (mut past, mut has_answered) = (Vec::new(), false);
        for line in BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok) {
            let said: serde_json::Value = serde_json::from_str(&line).unwrap();
            has_answered |= said["pong"] == 7;
            if let Some(report) = said.get("past") {
                assert_eq!((&report["offers"], &report["status"]), (&serde_json::json!([]), &"ended".into()));
                past.push(report["id"].as_str().unwrap().to_owned());
            }
            if said == "all-past" && !has_answered {
                to.write_all(b"{\"ping\":7}\n").unwrap();
            } else if said == "all-past" || past.len() == 3 && has_answered && said["pong"] == 7 {
                break;
            }
        }
        assert_eq!(past, there.iter().map(|session| session.id.clone()).collect::<Vec<_>>(), "{has_tray}");
        drop(to);
        assert!(child.wait().unwrap().success(), "it ends with its pipe");
    }
}
