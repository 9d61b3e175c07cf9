//! Who may approve, once the user has let the bridge answer: the user, and not a tool that runs as the user.

use super::Bridged;
use crate::support::executable::executable;
use crate::support::pilotlight::Pilot;
use crate::support::terminal::DIALOG;
use crate::support::tmux::Tmux;
use crate::support::{COPILOT, wait_until};
use std::process::Command;

/// Words of a shell that run a command in its own environment.
pub(crate) fn words(command: &Command) -> String {
    let quote = |word: &std::ffi::OsStr| format!("'{}'", word.to_string_lossy().replace('\'', r"'\''"));
    let variables = command.get_envs().filter_map(|(name, value)| Some((name.to_string_lossy(), quote(value?))));
    let variables: Vec<_> = variables.map(|(name, value)| format!("{name}={value}")).collect();
    let words: Vec<_> = std::iter::once(command.get_program()).chain(command.get_args()).map(quote).collect();
    format!("env -i {} {}", variables.join(" "), words.join(" "))
}

/// A shell that the user opened before the session, in which commands are typed.
pub(super) struct OlderShell(Tmux);

impl OlderShell {
    pub(super) fn start() -> Self {
        let mut shell = Command::new("bash");
        shell.args(["--norc", "-i"]).env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin").env("TERM", "xterm-256color");
        let shell = Tmux::start(&shell, 200, 20);
        shell.shows("bash-");
        Self(shell)
    }

    /// Types a command. Returns its exit code and what it said.
    pub(super) fn run(&self, pilot: &Pilot, args: &[&str]) -> (String, String) {
        let [script, code, out] = ["typed", "code", "out"].map(|name| pilot.user().join(name));
        let _ = std::fs::remove_file(&code); // of an earlier one
        let command = words(&pilot.command_with_tray(args));
        let [code_path, out_path] = [&code, &out].map(|path| path.display().to_string());
        executable(
            &script,
            &format!(
                "#!/bin/sh\n{command} >'{out_path}' 2>&1\necho $? >'{code_path}.new'; mv '{code_path}.new' '{code_path}'\n"
            ),
        );
        self.0.text(&script.display().to_string());
        self.0.press(&["Enter"]);
        let ended = || std::fs::read_to_string(&code).ok();
        let code = wait_until(COPILOT, "the command ends", || self.0.screen(), ended);
        (code.trim().to_owned(), std::fs::read_to_string(out).unwrap_or_default())
    }
}

impl Bridged {
    /// Waits until its row has this status, with or without a tray.
    fn wait_row(&self, status: &str) {
        self.pilot.row_where(&self.id(), status, |row| row["status"] == status);
    }

    /// Has a tool, which the user approves, leave a process behind that runs `script` once the next request is open, in an
    /// environment changed by these `options` of `env`.
    /// Returns the exit code and the output of `script`. The request stays open, and its user's answer counts.
    pub(super) fn leave_behind(&self, asked_before: usize, options: &str, script: &str) -> (String, String) {
        let project = self.home.project();
        let path = |name: &str| project.join(name);
        for name in ["now", "code", "out"] {
            let _ = std::fs::remove_file(path(name)); // of an earlier one
        }
        let left = format!("until [ -e now ]; do sleep 0.05; done; {{ {script}; }} >out 2>&1; echo $? >code");
        let left = left.replace('\'', r"'\''");
        executable(
            &path("script.sh"),
            &format!("#!/bin/sh\nsetsid -f env {options} sh -c '{left}' </dev/null >/dev/null 2>&1\n"),
        );
        self.terminal.enter("SCRIPT:script Paint it black");
        self.terminal.approve();
        self.terminal.wait_no_screen(DIALOG);
        self.wait_row("idle");
        self.terminal.enter("SCRIPT:tool Paint it again");
        let code =
            || Some(std::fs::read_to_string(path("code")).ok()?.trim().to_owned()).filter(|code| !code.is_empty());
        let mut ended = String::new();
        self.assert_only_user_answers(asked_before, || {
            self.wait_row("needs-permission");
            std::fs::write(path("now"), "").unwrap();
            ended = wait_until(COPILOT, "what was left behind has run", || self.terminal.dump(), code);
        });
        self.terminal.wait_no_screen(DIALOG);
        self.wait_row("idle");
        (ended, std::fs::read_to_string(path("out")).unwrap_or_default())
    }
}

/// A process that a tool left behind, in an environment changed by these `options` of `env`, approves nothing: neither by
/// the tray nor without one.
fn left_behind_approves_nothing(options: &str) {
    let mut bridged = Bridged::consented();
    let id = bridged.id();
    let command = words(&bridged.pilot.command_with_tray(&["approve", "--yes", &id]));
    for (asked, has_tray) in [(2, true), (4, false)] {
        if !has_tray {
            bridged.pilot.end_tray();
        }
        let (code, out) = bridged.leave_behind(asked, options, &command);
        assert_eq!(code, "4", "{out}");
        // Without a tray, the bridge itself does not let the command answer.
        let why = if has_tray { "a tool of the session may have started" } else { "answer it in its terminal" };
        assert!(out.contains(why), "{out}");
    }
}

#[test]
fn case_196_a_process_that_a_tool_left_behind_approves_nothing() {
    left_behind_approves_nothing("-i");
}

#[test]
#[ignore = "tests/long.sh"]
fn case_196_a_process_left_behind_without_copilots_marks_approves_nothing() {
    left_behind_approves_nothing("-u COPILOT_CLI -u COPILOT_AGENT_SESSION_ID");
}

/// A tool may have set it.
#[test]
#[ignore = "tests/long.sh"]
fn case_196c_the_setting_for_scripts_does_not_hold_for_older_sessions() {
    let mut bridged = Bridged::consented();
    let id = bridged.id();
    bridged.pilot.configure("[actions]\nscripts-may-answer = true\n");
    let said = "actions.scripts-may-answer takes effect when Pilotlight starts next";
    wait_until(COPILOT, said, || bridged.pilot.log(), || bridged.pilot.log().contains(said).then_some(()));
    let with_tray = words(&bridged.pilot.command_with_tray(&["approve", "--yes", &id]));
    for asked in [2, 4] {
        if asked == 4 {
            bridged.pilot.restart_tray();
        }
        let (code, out) = bridged.leave_behind(asked, "-i", &with_tray);
        assert_eq!((&*code, out.contains("a tool of the session may have started")), ("4", true), "{out}");
    }
}

/// By the command itself, for the tray that starts later. A look in the menu, or at its details in a terminal, ends it.
#[test]
#[ignore = "tests/long.sh"]
fn case_203_an_approval_by_a_command_without_a_tray_is_told_until_seen() {
    let mut bridged = Bridged::consented();
    let (id, told) = (bridged.id(), "an earlier request was approved by");
    for (round, sees) in ["in the menu", "in a terminal"].into_iter().enumerate() {
        bridged.pilot.end_tray();
        bridged.terminal.enter("SCRIPT:sleep0 Paint the gate");
        bridged.terminal.folder.wait_nth("permission.requested", 2 + round);
        bridged.terminal.wait_screen(DIALOG);
        let ran = bridged.pilot.run_without_tray(&["approve", "--yes", &id]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        bridged.terminal.folder.wait_nth("permission.completed", 2 + round);
        let is_told = |row: &serde_json::Value| row["because"].as_str().unwrap_or_default().contains(told);
        bridged.pilot.row_where(&id, "a command tells", is_told);
        let ran = bridged.pilot.run_without_tray(&["explain", &id]);
        assert!(ran.out.contains(told), "{ran:?}");
        bridged.pilot.restart_tray();
        bridged.pilot.wait_status_in_tray(&id, "idle", told);
        let mut terminal = None;
        if sees == "in the menu" {
            bridged.pilot.click(&id, "Mark as seen");
        } else {
            let script = bridged.pilot.user().join("explain.sh");
            let command = words(&bridged.pilot.command_with_tray(&["explain", &id]));
            executable(&script, &format!("#!/bin/sh\n{command}\nsleep 60\n"));
            terminal = Some(Tmux::start(&Command::new(script), 140, 45));
        }
        bridged.pilot.row_where(&id, sees, |row| row["status"] == "idle" && !is_told(row));
        drop(terminal);
    }
}

/// The user is asked instead, in the session's row and by a popup.
#[test]
fn case_196_the_user_is_asked_whether_a_command_may_approve() {
    let bridged = Bridged::consented();
    let (id, pilot) = (bridged.id(), &bridged.pilot);
    let popups = pilot.popups();
    bridged.terminal.enter("SCRIPT:tool Paint the gate");
    let asked = bridged.terminal.folder.wait_nth("permission.requested", 2);
    bridged.terminal.wait_screen(DIALOG);
    pilot.wait_status(&id, "needs-permission", "");
    // By a shell that ends at once, so that the command has no older parent.
    let command = words(&pilot.command_with_tray(&["approve", "--yes", &id]));
    let out = pilot.user().join("out");
    let line = format!("setsid -f {command} >'{}' 2>&1 </dev/null", out.display());
    assert!(Command::new("sh").args(["-c", &line]).status().unwrap().success());
    pilot.wait_status_in_tray(&id, "needs-permission", "a program tried to approve this: do you approve it?");
    let title = "project wants to run, and a program tried to approve it: do you approve it?";
    let is_asked = || popups.received().into_iter().any(|popup| popup.title == title).then_some(());
    wait_until(COPILOT, "a popup asks", || format!("{:#?}", popups.received()), is_asked);
    pilot.click(&id, "Approve");
    let done = bridged.terminal.folder.wait_nth("permission.completed", 2);
    assert_eq!(done["data"]["requestId"], asked["data"]["requestId"], "{done}");
    pilot.wait_status(&id, "working", "");
    bridged.home.release_tools();
}

/// In a shell that was open before, in a new pane of an older tmux, and by a script that the settings allow.
#[test]
#[ignore = "tests/long.sh"]
fn case_196_the_users_own_terminals_are_not_asked_about() {
    let shell = OlderShell::start();
    let bridged = Bridged::consented();
    let (id, pilot) = (bridged.id(), &bridged.pilot);
    bridged.terminal.enter("SCRIPT:sleep0 Paint the gate");
    bridged.terminal.folder.wait_nth("permission.requested", 2);
    bridged.terminal.wait_screen(DIALOG);
    pilot.wait_status(&id, "needs-permission", "");
    let (code, said) = shell.run(pilot, &["approve", "--yes", &id]);
    assert_eq!(code, "0", "{said}");
    bridged.terminal.folder.wait_nth("permission.completed", 2);
    bridged.terminal.wait_no_screen(DIALOG);
    pilot.wait_status(&id, "idle", "");
    pilot.wait_status_in_tray(&id, "idle", "an earlier request was approved by");
}
