//! `pilotlight resume` without an id, in a real terminal: a stand-in for Copilot says how it was run.

use crate::support::executable::executable;
use crate::support::synthetic::{Folder, User};
use crate::support::tmux::Tmux;
use crate::support::{SOON, wait_until};
use std::fs;
use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::time::Duration;

/// A user whose Copilot is a stand-in, with sessions that ended, each in a folder of its own.
pub(crate) fn user(titles: &[&str]) -> (User, Vec<Folder>) {
    let user = User::new();
    let copilot = user.scratch.path().join("copilot-double");
    let script = "#!/bin/sh\ncase $1 in --resume=*) ;; *) echo 'GitHub Copilot CLI 1.0.102.'; exit ;; esac\n\
                  echo \"run with $* in $(pwd)\"\nread -r line && echo \"read $line\"\nexit 7\n";
    executable(&copilot, script);
    let config = user.scratch.path().join(".config/pilotlight/config.toml");
    fs::create_dir_all(config.parent().unwrap()).unwrap();
    fs::write(config, format!("[actions]\ncopilot = {:?}\n", copilot.display().to_string())).unwrap();
    let made = (1..).zip(titles).map(|(n, title)| {
        let session = user.session(n);
        let folder = user.scratch.path().join(format!("work-{n}"));
        fs::create_dir(&folder).unwrap();
        session.workspace(&format!("name: {title}\ncwd: {}\nclient_name: github/cli\n", folder.display()));
        // Also such as no list shows that is not of all sessions.
        session.ended(Duration::from_secs(u64::from(n) * 86_400));
        session
    });
    let made = made.collect();
    (user, made)
}

fn picker(user: &User) -> Tmux {
    let terminal = Tmux::with_exit_code(&user.pilotlight(&["resume"]), 120, 12);
    terminal.shows("arrows choose");
    terminal
}

#[test]
fn case_309_an_old_session_is_found_and_resumed_in_this_terminal() {
    let (user, sessions) = user(&["Write the migration", "Rotate TLS", "Write the docs"]);
    let terminal = picker(&user);
    terminal.shows("3 sessions");
    assert!(terminal.screen().lines().nth(1).unwrap().contains("› 1 d "), "the latest first: {}", terminal.screen());
    terminal.text("WRITE zz9q");
    terminal.shows("No session has all of these words.");
    terminal.press(&["C-w"]);
    terminal.shows("2 of 3");
    terminal.press(&["Down", "Enter"]);
    let folder = user.scratch.path().join("work-3");
    terminal.shows(&format!("run with --resume={} in {}", sessions[2].id, folder.display()));
    // It has the terminal, as it was before.
    terminal.text("hello");
    terminal.press(&["Enter"]);
    terminal.shows("read hello");
    terminal.shows("exited with 7");
}

#[test]
fn case_309_whoever_leaves_the_picker_has_the_terminal_back() {
    let (user, _sessions) = user(&["Write the migration"]);
    for key in ["Escape", "C-c", "C-d"] {
        let terminal = picker(&user);
        terminal.press(&[key]);
        terminal.shows("no session was chosen");
        terminal.shows("exited with 4");
        assert!(!terminal.screen().contains("arrows choose"), "{key}: {}", terminal.screen());
    }
}

/// A second process would corrupt its history.
#[test]
fn case_309_a_session_that_a_process_runs_is_not_resumed() {
    let (user, sessions) = user(&["Write the migration"]);
    let terminal = picker(&user);
    // Since the list was read.
    let owner = sessions[0].owner(&user);
    sessions[0].prompt();
    terminal.press(&["Enter"]);
    terminal.shows(&format!("process {} runs it", owner.pid()));
    terminal.shows("exited with 4");
    assert!(!terminal.screen().contains("run with"), "{}", terminal.screen());
}

#[test]
fn case_309_without_a_terminal_the_sessions_are_listed() {
    let (user, sessions) = user(&["Write the migration", "Rotate TLS"]);
    let output = user.run(&["resume"]);
    let (text, said) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert_eq!(output.status.code(), Some(4), "{said}");
    assert!(said.contains("name the session, as in `pilotlight resume NAME`"), "{said}");
    let at = |session: &Folder| text.find(&session.id[..8]).unwrap_or_else(|| panic!("{}: {text}", session.id));
    assert!(at(&sessions[0]) < at(&sessions[1]) && text.contains("Rotate TLS"), "{text}");
}

/// What it would do in its folder, it would do elsewhere.
#[test]
fn case_632_a_session_whose_folder_is_gone_is_resumed_only_where_the_user_says() {
    let (user, sessions) = user(&["Write the migration"]);
    let (id, gone) = (sessions[0].id.clone(), user.scratch.path().join("work-1"));
    fs::remove_dir(&gone).unwrap();
    let why = format!("its folder {} is gone", gone.display());
    let advice = format!("pilotlight resume {id} --in DIR");
    let explained = String::from_utf8(user.run(&["explain", &id]).stdout).unwrap();
    let resume = explained.lines().find(|line| line.starts_with("resume ")).unwrap();
    assert!(resume.contains(&why) && resume.contains(&advice), "{explained}");
    for more in [&["--here"][..], &[]] {
        let refused = user.run(&[&["resume", &*id], more].concat());
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(refused.status.code() == Some(4) && said.contains(&why) && said.contains(&advice), "{said}");
    }
    let nowhere = user.run(&["resume", &id, "--here", "--in", "/nowhere"]);
    assert_eq!(nowhere.status.code(), Some(2), "{}", String::from_utf8_lossy(&nowhere.stderr));
    let elsewhere = user.scratch.path().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    // Nothing of the refusals counts as a resume.
    let here = ["resume", &id, "--here", "--in", elsewhere.to_str().unwrap()];
    let terminal = Tmux::with_exit_code(&user.pilotlight(&here), 120, 12);
    terminal.shows(&format!("run with --resume={id} in {}", elsewhere.display()));
}

#[test]
fn case_633_nearly_the_name_of_an_agent_is_not_taken_for_another() {
    let user = User::new();
    for (name, meant) in
        [("claude", "claude-code"), ("claud", "claude-code"), ("codx", "codex"), ("copilots", "copilot")]
    {
        let run = user.run(&["status", "--agent", name]);
        let said = String::from_utf8_lossy(&run.stderr).into_owned();
        let expected = format!("no agent is called {name}: did you mean {meant}? The agents are ");
        assert!(run.status.code() == Some(2) && said.contains(&expected), "{name}: {said}");
    }
    for other in ["opencode", "cody"] {
        assert!(user.run(&["status", "--agent", other]).status.success(), "a hook may report {other} later");
    }
}

/// Also where no session is open, and nothing changes.
#[test]
fn case_634_the_table_ends_with_its_reader() {
    let user = User::new();
    user.session(1);
    let mut live = user.pilotlight(&["live"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(live.stdout.take().unwrap()).lines();
    assert!(lines.next().unwrap().unwrap().starts_with("Pilotlight: "));
    drop(lines);
    // Nothing more happens that it would write.
    let ended = || live.try_wait().unwrap();
    let status = wait_until(SOON, "it ends", String::new, ended);
    assert!(status.success(), "{status}");
}

#[test]
fn case_635_esc_and_q_lead_back_to_the_table() {
    let user = User::new();
    let session = user.session(1);
    let _owner = session.owner(&user);
    session.prompt();
    let table = Tmux::with_exit_code(&user.pilotlight(&["live"]), 120, 30);
    for (opens, shows) in [("Enter", "not possible"), ("?", "this help")] {
        for back in ["Escape", "q"] {
            table.shows("Enter explain");
            table.press(&[opens]);
            table.shows(shows);
            table.press(&[back]);
        }
    }
    table.shows("Enter explain");
    table.press(&["q"]);
    table.shows("exited with 0");
}
