//! The live table and its keys: choosing and explaining a session; keys that act ask first, as their commands do.

use crate::support::process::is_live;
use crate::support::synthetic::User;
use crate::support::tmux::Tmux;
use crate::support::{SOON, wait_until};
use rustix::process::Signal;
use std::fs;
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
    table.shows(&format!("Folder: {}", user.scratch.path().join("project").display()));
    table.shows("Enter explain   ↑↓ choose   ? help   q quit");
    table.press(&["Down"]);
    is_chosen(&table, "Session 1");
    table.press(&["Down", "Up", "k"]);
    is_chosen(&table, "Session 2");
    table.press(&["j"]);
    is_chosen(&table, "Session 1");
    table.press(&["Enter"]);
    table.shows(&format!("session         {}", sessions[0].id));
    table.shows("Esc back");
    table.press(&["Enter"]);
    is_chosen(&table, "Session 1");
    table.press(&["a"]);
    table.shows("approve refused: it asks for no permission");
    // The other session moves to the top between the look and the key.
    let stopped = rustix::process::Pid::from_raw(table.pid.cast_signed()).unwrap();
    rustix::process::kill_process(stopped, Signal::STOP).unwrap();
    sessions[0].prompt();
    table.press(&["s"]);
    rustix::process::kill_process(stopped, Signal::CONT).unwrap();
    table.shows("Session 1\"? ");
    table.shows("You can resume it later. [y/N]");
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

/// How long this process has used the CPU, in hundredths of a second.
fn cpu_time(pid: u32) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<_> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
    fields[11..13].iter().map(|field| field.parse::<u64>().unwrap()).sum()
}

/// Case 241: ages go on while a command of the table asks, and the tray that shows the table carries out what it orders.
#[test]
fn case_241_a_question_over_the_table_keeps_the_tray_neither_busy_nor_deaf() {
    let user = User::new();
    let session = user.session(1);
    let _owner = session.owner(&user);
    session.prompt();
    let mut tray = user.pilotlight(&[]);
    tray.env("TERM", "xterm-256color").env("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nowhere/bus");
    let table = Tmux::start(&tray, 120, 40);
    is_chosen(&table, "Session 1");
    table.press(&["s"]);
    table.shows("You can resume it later. [y/N]");
    let status = || String::from_utf8(user.run(&["status"]).stdout).unwrap();
    let is_aged = |age: &str| wait_until(SOON, age, status, || status().contains(age).then_some(()));
    is_aged("10 s");
    let before = cpu_time(table.pid);
    is_aged("20 s");
    let used = cpu_time(table.pid) - before;
    assert!(used < 100, "it used the CPU for {used}0 ms of 10 s");
    table.press(&["y", "Enter"]);
    table.shows("Press Enter to return to the table");
    let screen = table.screen();
    assert!(!screen.contains("does not answer") && screen.contains("ended"), "{screen}");
    table.press(&["Enter"]);
    table.shows("crashed");
    // What was so at the start is not said above the table for ever.
    let screen = table.screen();
    assert!(screen.contains("no icon and no notifications") && !screen.contains("is running"), "{screen}");
}

/// Case 242: Ctrl-C at a question of the table is for the question; where the table waits to return, it ends the table.
#[test]
fn case_242_ctrl_c_at_a_question_leads_back_to_the_table() {
    let user = User::new();
    let session = user.session(1);
    let _owner = session.owner(&user);
    session.prompt();
    let mut live = user.pilotlight(&["live"]);
    live.env("TERM", "xterm-256color");
    let table = Tmux::start(&live, 100, 40);
    is_chosen(&table, "Session 1");
    table.press(&["s"]);
    table.shows("You can resume it later. [y/N]");
    table.press(&["C-c"]);
    table.shows("the session was left as it is");
    table.shows("Press Enter to return to the table");
    table.press(&["Enter"]);
    is_chosen(&table, "Session 1");
    table.press(&["s"]);
    table.shows("You can resume it later. [y/N]");
    table.press(&["n", "Enter"]);
    table.shows("Press Enter to return to the table");
    // Again and again: one that comes at once may have been meant for the question.
    let ended = || {
        table.press(&["C-c"]);
        (!is_live(table.pid)).then_some(())
    };
    wait_until(SOON, "Ctrl-C ends the table", || table.screen(), ended);
}
