//! What a tool of an earlier run of a session left behind. It is older than the process that runs the session now, as the
//! user's own shells are.

use super::bridge::callers::words;
use super::stage::Stage;
use crate::support::executable::executable;
use crate::support::person::{Manner, Person};
use crate::support::server::Server;
use crate::support::tmux::Tmux;
use crate::support::{COPILOT, wait_until};
use std::process::Command;

#[test]
#[ignore = "tests/long.sh"]
fn case_196a_what_an_earlier_run_left_behind_approves_nothing() {
    let mut stage = Stage::new(Manner::Approves);
    let (id, project) = (stage.session.id(), stage.home.project());
    let commands =
        [stage.pilot.command_with_tray(&["approve", "--yes", &id]), stage.pilot.command(&["approve", "--yes", &id])];
    let [with_tray, without_tray] = commands.map(|command| words(&command));
    let left = format!(
        "until [ -e now ]; do sleep 0.05; done; {{ {with_tray}; echo $?; {without_tray}; echo $?; }} >out 2>&1; touch done"
    );
    let line =
        format!("setsid -f env -i PATH=\"$PATH\" sh -c '{}' </dev/null >/dev/null 2>&1", left.replace('\'', r"'\''"));
    executable(&project.join("script.sh"), &format!("#!/bin/sh\n{line}\n"));
    stage.session.send("SCRIPT:script Paint it black");
    stage.session.folder.wait_nth("assistant.turn_end", 2);
    stage.wait_status("idle", "");
    stage.server.terminate();
    stage.pilot.wait_status(&id, "ended", "");
    let mut shell = Command::new("bash");
    shell.args(["--norc", "-i"]).env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin").env("TERM", "xterm-256color");
    let between = Tmux::start(&shell, 200, 20);
    between.shows("bash-");

    let server = Server::start(&stage.home, &stage.model);
    let client = server.connect();
    let session = server.resume(&client, &id, &Person::new(Manner::Waits), None);
    session.send("SCRIPT:tool Paint the fence");
    let asked = session.folder.wait_nth("permission.requested", 2);
    stage.pilot.wait_status(&id, "needs-permission", "");
    // Case 196c: the session is older than this setting, which a tool may have made.
    stage.pilot.configure("[actions]\nscripts-may-answer = true\n");
    std::fs::write(project.join("now"), "").unwrap();
    let out = || std::fs::read_to_string(project.join("out")).unwrap_or_default();
    wait_until(COPILOT, "what was left behind has run", out, || project.join("done").exists().then_some(()));
    assert_eq!(out().lines().filter(|line| *line == "4").count(), 2, "{}", out());
    assert_eq!(out().matches("a tool of the session may have started").count(), 2, "{}", out());
    assert_eq!(session.folder.types().iter().filter(|kind| *kind == "permission.completed").count(), 1);

    // The user's shell was opened after the session's first tool, and before it was resumed.
    executable(&project.join("approve.sh"), &format!("#!/bin/sh\nexec {with_tray}\n"));
    between.text(&project.join("approve.sh").display().to_string());
    between.press(&["Enter"]);
    let done = session.folder.wait_nth("permission.completed", 2);
    assert_eq!(done["data"]["requestId"], asked["data"]["requestId"], "{done}");
    stage.home.release_tools();
}
