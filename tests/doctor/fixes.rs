//! Repairs: only of our own files, only after consent, and never without a copy.

use super::checks::examined;
use crate::support::synthetic::User;
use crate::support::tmux::Tmux;
use std::fs;
use std::os::unix::net::UnixListener;
use std::process::Command;

/// Runs a command in a terminal, which finally shows the exit code.
pub(super) fn in_terminal(command: &Command) -> Tmux {
    Tmux::with_exit_code(command, 200, 60)
}

#[test]
fn each_repair_is_confirmed_and_keeps_a_copy() {
    let user = User::new();
    let scratch = user.scratch.path();
    let (config, state) = (scratch.join("config.toml"), scratch.join(".local/state/pilotlight"));
    fs::write(&config, "bogus = 1\n").unwrap();
    fs::create_dir_all(&state).unwrap();
    fs::write(state.join("quiet.json"), "{").unwrap();
    let run = scratch.join("run");
    fs::create_dir_all(run.join("pilotlight")).unwrap();
    let socket = run.join("pilotlight/pilotlight.sock");
    drop(UnixListener::bind(&socket).unwrap());
    // A stale lock is Copilot's: it is not removed.
    let session = user.session(1);
    session.prompt();
    let lock = session.lock(session.owner(&user).kill());

    let mine = |arguments: &[&str]| {
        let mut mine = user.pilotlight(arguments);
        mine.env("PILOTLIGHT_CONFIG", &config).env("XDG_RUNTIME_DIR", &run);
        mine
    };
    let refused = mine(&["doctor", "--fix"]).output().unwrap();
    assert_eq!(refused.status.code(), Some(4), "there is no terminal to ask on");

    let terminal = in_terminal(&mine(&["doctor", "--fix"]));
    let answer = |question: &str, answer: &str| {
        terminal.shows(question);
        terminal.text(answer);
        terminal.press(&["Enter"]);
    };
    answer("into comments, and keep a copy of it as it is? [y/N]", "y");
    answer("quiet.json aside? [y/N]", "n");
    answer("where nothing listens? [y/N]", "y");
    terminal.shows("exited with");
    assert_eq!(fs::read_to_string(&config).unwrap(), "# bogus = 1\n");
    assert_eq!(fs::read_to_string(scratch.join("config.toml.before-fix")).unwrap(), "bogus = 1\n");
    assert_eq!(fs::read_to_string(state.join("quiet.json")).unwrap(), "{", "the answer was no");
    assert!(!socket.exists() && lock.exists());
    let found = examined(&mut mine(&[])).0;
    assert!(found.iter().all(|it| it["check"] != "config" || it["level"] == "ok"), "{found:#?}");
}
