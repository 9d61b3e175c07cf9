//! The live table and its keys: choosing and explaining a session; keys that act ask first, as their commands do.

use crate::support::synthetic::User;
use crate::support::tmux::Tmux;
use crate::support::{SOON, wait_until};
use rustix::process::Signal;
use std::time::Duration;

/// Waits until this session's row is chosen.
fn is_chosen(table: &Tmux, title: &str) {
    let chosen = || table.screen().lines().any(|line| line.starts_with("› ") && line.contains(title)).then_some(());
    wait_until(SOON, &format!("{title:?} is chosen"), || table.screen(), chosen);
}

/// Case 175: a key is for the session that is marked, wherever its row is by then, and the question names it.
#[test]
fn case_175_the_live_table_chooses_explains_and_asks_before_it_ends_a_session() {
    let user = User::new();
    let sessions = [user.session(1), user.session(2)];
    let _owners = sessions.each_ref().map(|session| {
        let owner = session.owner(&user);
        session.prompt();
        owner
    });
    let mut live = user.pilotlight(&["live"]);
    live.env("TERM", "xterm-256color");
    let table = Tmux::start(&live, 90, 40);
    // The session that changed last is first.
    is_chosen(&table, "Session 2");
    table.shows("Folder: /home/dev/project");
    table.shows("Enter explain   ↑↓ choose   ? help   q quit");
    table.press(&["Down"]);
    is_chosen(&table, "Session 1");
    table.press(&["Down", "Up", "k"]);
    is_chosen(&table, "Session 2");
    table.press(&["j"]);
    is_chosen(&table, "Session 1");
    table.press(&["Enter"]);
    table.shows(&format!("session         {}", sessions[0].id));
    table.shows("Enter back");
    table.press(&["Enter"]);
    is_chosen(&table, "Session 1");
    table.press(&["a"]);
    table.shows("approve does nothing for ");
    // The other session moves to the top between the look and the key.
    let stopped = rustix::process::Pid::from_raw(table.pid.cast_signed()).unwrap();
    rustix::process::kill_process(stopped, Signal::STOP).unwrap();
    sessions[0].prompt();
    table.press(&["s"]);
    rustix::process::kill_process(stopped, Signal::CONT).unwrap();
    table.shows("Session 1? ");
    table.shows("can be resumed. [y/N]");
    table.text("n");
    table.press(&["Enter"]);
    table.shows("the session was left as it is");
    table.shows("Press Enter to return to the table");
    table.press(&["Enter"]);
    is_chosen(&table, "Session 1");
    let row = user.row(&sessions[0]).unwrap();
    assert_eq!(row["status"], "working", "it still runs: {row}");
    table.press(&["q"]);
    let ended = || rustix::process::test_kill_process(rustix::process::Pid::from_raw(table.pid.cast_signed())?).err();
    wait_until(Duration::from_secs(30), "q ends it", || table.screen(), ended);
}
