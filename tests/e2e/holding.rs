//! A session that is kept alive by a command alone: its requests can be answered there and from elsewhere, and its end
//! is reported before and after.

use super::actions::{environment, settings};
use super::hosted::servers_in;
use super::orders::Staying;
use crate::support::executable::executable;
use crate::support::freeze::freeze;
use crate::support::home::{Folder, Home, cli};
use crate::support::model::Model;
use crate::support::person::{Manner, Person};
use crate::support::pilotlight::{CommandOutput, Pilot};
use crate::support::process::signal;
use crate::support::server::{Client, Server, Session};
use crate::support::terminal::Terminal;
use crate::support::tmux::Tmux;
use crate::support::{SOON, wait, wait_until};
use github_copilot_sdk::hooks::{HookContext, PreToolUseInput, PreToolUseOutput, SessionHooks};
use rustix::process::Signal;
use serde_json::Value;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// A session of a program whose server was killed while a tool ran, and a Pilotlight.
struct Crashed {
    pilot: Pilot,
    folder: Folder,
    id: String,
    model: Model,
    home: Home,
}

const GO_ON: &str = "continue-prompt = \"SCRIPT:tool Go on\"\n";

impl Crashed {
    fn new() -> Self {
        Self::configured(|_| settings(GO_ON))
    }

    /// As [`new`](Self::new), but the new server is stopped when a prompt is sent to it, before it has read the prompt.
    /// Its pid is in the file `pid`.
    fn with_freezing_server() -> Self {
        Self::configured(|home| {
            let (at, cli) = (home.root().display(), cli().display());
            let filter = format!(
                "while (sysread STDIN, my $read, 65536) {{ if ($read =~ /\"session\\.send\"/ and !$stopped++) {{ \
                 open my $file, q(<), q({at}/pid); kill STOP => int <$file> }} syswrite STDOUT, $read }}"
            );
            let script = format!(
                "#!/bin/sh\n[ \"$1\" = --server ] || exec '{cli}' \"$@\"\n\
                 perl -e '{filter}' | sh -c 'echo $$ >{at}/pid; exec \"$@\"' sh '{cli}' \"$@\"\n"
            );
            let path = home.root().join("freezing.sh");
            executable(&path, &script);
            format!("[actions]\ncopilot = {:?}\n{GO_ON}", path.display().to_string())
        })
    }

    fn configured(config: impl FnOnce(&Home) -> String) -> Self {
        Self::with(config, |server, client| server.create(client, Some(&Person::new(Manner::Approves))))
    }

    fn with(config: impl FnOnce(&Home) -> String, create: impl FnOnce(&Server, &Client) -> Session) -> Self {
        let (home, model) = (Home::new("project"), Model::start());
        let pilot = Pilot::with(&[&home], &config(&home), &environment(&home, &model));
        let mut server = Server::start(&home, &model);
        let client = server.connect();
        let session = create(&server, &client);
        session.send("SCRIPT:tool Paint the fence");
        session.folder.wait("permission.completed");
        let (id, folder) = (session.id(), session.folder.clone());
        server.kill();
        home.release_tools(); // the tool's shell outlives its server
        pilot.wait_status(&id, "crashed", "unfinished");
        std::fs::remove_file(home.project().join("go")).unwrap();
        Self { pilot, folder, id, model, home }
    }

    /// A command that cannot find the tray, with the environment of the session's model.
    fn command(&self, args: &[&str]) -> Command {
        let mut command = self.pilot.command(args);
        command.envs(environment(&self.home, &self.model));
        command
    }

    /// The number of events of this type in the log.
    fn count(&self, kind: &str) -> usize {
        self.folder.types().iter().filter(|other| *other == kind).count()
    }
}

/// Waits until the terminal shows this text, possibly wrapped.
fn wait_screen(terminal: &Tmux, what: &str) {
    let contains = || terminal.screen().split_whitespace().collect::<Vec<_>>().join(" ").contains(what).then_some(());
    wait_until(SOON, &format!("the terminal shows {what:?}"), || terminal.screen(), contains);
}

/// A command that is killed in the middle of resuming a session.
#[test]
#[ignore = "tests/long.sh"]
fn case_182_a_resume_that_is_killed_is_over_at_once_and_leaves_no_server() {
    let crashed = Crashed::new();
    let project = crashed.home.project();
    for signal in [Signal::KILL, Signal::INT] {
        for millis in [100, 400, 700, 1000, 1400, 1900, 2600] {
            let mut one = Staying::start(crashed.command(&["reconnect", &crashed.id]));
            let until = Instant::now() + Duration::from_millis(millis);
            wait(SOON, || (Instant::now() >= until).then_some(()));
            one.signal(signal);
            // What is already held is named first.
            let warns = |one: &mut Staying| one.try_code().is_some() || one.output().contains("press Ctrl-C again");
            wait_until(SOON, "it ends or warns", String::new, || warns(&mut one).then_some(()));
            if one.try_code().is_none() {
                one.signal(signal);
            }
            one.code();
            let row = crashed.pilot.row(&crashed.id).unwrap();
            // A server that is still exiting has it open, which is said.
            let is_free = |row: &Value| row["actions"].as_array().unwrap().contains(&"continue".into());
            assert!(is_free(&row) || row["status"] == "idle", "after {millis} ms: {row}");
            wait_until(SOON, "no server is left", String::new, || servers_in(&project).is_empty().then_some(()));
            let explained = crashed.pilot.run_without_tray(&["explain", &crashed.id]);
            assert!(!explained.out.contains("it was just resumed"), "after {millis} ms: {explained:?}");
            crashed.pilot.wait_status(&crashed.id, "crashed", "unfinished");
            let offered =
                |row: &Value| is_free(row) && crashed.pilot.row_in_tray(&crashed.id).is_some_and(|row| is_free(&row));
            crashed.pilot.row_where(&crashed.id, "it can be continued", offered);
            // Each was an attempt.
            let _ = std::fs::remove_dir_all(crashed.pilot.user().join(".local/state/pilotlight/sessions"));
        }
    }
    let again = Staying::start(crashed.command(&["reconnect", "--continue", "--yes", &crashed.id]));
    again.wait_output("stays connected");
    crashed.folder.assert_one_chain();
}

/// Only its program knew which tools, hooks and instructions it had.
#[test]
fn case_188_a_hosted_session_is_sent_nothing_before_the_user_knows_what_it_lacks() {
    let crashed = Crashed::new();
    for flag in ["--continue", "--resend"] {
        let ran = CommandOutput::of(crashed.command(&["reconnect", flag, &crashed.id]));
        let lacks = "without the tools and hooks that its program gave it";
        assert!(ran.code == Some(4) && ran.err.contains(lacks) && ran.err.contains("--yes"), "{ran:?}");
    }
    let explained = crashed.pilot.run(&["explain", &crashed.id]);
    assert!(explained.out.contains("sends nothing until you choose this once more"), "{explained:?}");
    let mut one = Staying::start(crashed.command(&["reconnect", &crashed.id]));
    one.wait_output("without the tools and hooks that its program gave it");
    one.wait_output("stays connected");
    assert_eq!(crashed.count("user.message"), 1);
    one.signal(Signal::TERM);
    one.code();
    let terminal = Tmux::start(&crashed.command(&["reconnect", "--continue", &crashed.id]), 160, 50);
    wait_screen(&terminal, "Continue anyway?");
    terminal.press(&["y", "Enter"]);
    crashed.folder.wait_nth("user.message", 2);
    wait_screen(&terminal, "stays connected");
    assert_eq!(crashed.count("user.message"), 2);
}

/// Counts the tools about which Copilot asks the program that guards the session.
#[derive(Default)]
struct Guard(AtomicUsize);

#[async_trait::async_trait]
impl SessionHooks for Guard {
    async fn on_pre_tool_use(&self, _: PreToolUseInput, _: HookContext) -> Option<PreToolUseOutput> {
        self.0.fetch_add(1, Ordering::SeqCst);
        None
    }
}

#[test]
#[ignore = "tests/long.sh"]
fn case_188_a_session_with_hooks_goes_on_without_them_only_after_that_was_said() {
    let (guard, person) = (Arc::new(Guard::default()), Person::new(Manner::Approves));
    let hooks = Arc::clone(&guard);
    let crashed = Crashed::with(|_| settings(GO_ON), |server, client| server.create_with_hooks(client, &person, hooks));
    let asked = || guard.0.load(Ordering::SeqCst);
    assert_eq!(asked(), 1, "its program guards its tools");
    let ran = CommandOutput::of(crashed.command(&["reconnect", "--continue", &crashed.id]));
    assert!(ran.code == Some(4) && ran.err.contains("hooks that its program gave it"), "{ran:?}");
    assert_eq!((crashed.count("user.message"), crashed.count("tool.execution_start")), (1, 1));
    let mut one = Staying::start(crashed.command(&["reconnect", "--continue", "--yes", &crashed.id]));
    one.wait_output("hooks that its program gave it");
    crashed.folder.wait_nth("permission.requested", 2);
    assert_eq!(asked(), 1, "what was said is so");
    one.signal(Signal::TERM);
    one.code();
}

/// The server dies while the command waits for a frozen tray, so that nobody could be asked beforehand.
#[test]
#[ignore = "tests/long.sh"]
fn case_207_a_command_whose_server_dies_meanwhile_does_not_succeed_without_sending() {
    for agrees in [false, true] {
        let (home, model) = (Home::new("project"), Model::start());
        let pilot = Pilot::with(&[&home], &settings(GO_ON), &environment(&home, &model));
        let mut server = Server::start(&home, &model);
        let client = server.connect();
        let session = server.create(&client, None);
        let (id, folder) = (session.id(), session.folder.clone());
        session.send("SCRIPT:denied3 Paint the fence");
        folder.wait_nth("assistant.turn_end", 4);
        pilot.wait_status(&id, "permission-lost", "");
        freeze(pilot.tray_pid());
        let yes: &[&str] = if agrees { &["--yes"] } else { &[] };
        let mut one =
            Staying::start(pilot.command_with_tray(&[&["reconnect", "--continue", id.as_str()][..], yes].concat()));
        one.wait_output("this command waits for it");
        server.kill();
        signal(pilot.tray_pid(), Signal::CONT);
        let (code, output) = (one.code(), one.output());
        if agrees {
            assert_eq!(code, Some(0), "{output}");
            folder.wait_nth("user.message", 2);
        } else {
            assert!(code == Some(4) && output.contains("nothing was sent") && output.contains("--yes"), "{output}");
            assert_eq!(folder.types().iter().filter(|kind| *kind == "user.message").count(), 1);
            assert!(servers_in(&home.project()).is_empty());
        }
    }
}

/// Its instructions are in its log, and its model gets the same ones as before. Without them in the log, that is said.
#[test]
#[ignore = "tests/long.sh"]
fn case_188a_a_hosted_session_keeps_the_instructions_of_its_program() {
    const INSTRUCTIONS: &str = "Paint everything in \"Pilot blue\".\nNever paint a door.";
    let person = Person::new(Manner::Approves);
    let crashed = Crashed::with(
        |_| settings(GO_ON),
        |server, client| server.create_with_instructions(client, &person, INSTRUCTIONS, &["view"]),
    );
    let before = crashed.model.instructions("tool", 0);
    assert!(before.contains(INSTRUCTIONS), "{before}");
    let requests = crashed.model.request_count("tool", 0);
    let mut one = Staying::start(crashed.command(&["reconnect", "--continue", "--yes", &crashed.id]));
    one.wait_output("stays connected");
    crashed.folder.wait_nth("user.message", 2);
    let asked = || (crashed.model.request_count("tool", 0) > requests).then_some(());
    wait_until(SOON, "the model is asked again", || one.output(), asked);
    assert_eq!(crashed.model.instructions("tool", 0), before);
    assert!(one.output().contains("without the tools and hooks that"), "{}", one.output());
    one.signal(Signal::TERM);
    one.code();

    let crashed = Crashed::new();
    let log = crashed.folder.path.join("events.jsonl");
    let text = std::fs::read_to_string(&log).unwrap();
    let other = text.replace("\"type\":\"system.message\"", "\"type\":\"system.another\"");
    assert_ne!(text, other);
    std::fs::write(&log, other).unwrap();
    let ran = CommandOutput::of(crashed.command(&["reconnect", "--continue", &crashed.id]));
    let lacks = "without the tools, hooks and instructions that its program gave it";
    assert!(ran.code == Some(4) && ran.err.contains(lacks), "{ran:?}");
}

#[test]
#[ignore = "tests/long.sh"]
fn case_132_requests_of_a_session_held_by_a_command_can_be_answered_by_any_command() {
    let crashed = Crashed::new();
    let terminal = Tmux::start(&crashed.command(&["reconnect", "--continue", "--yes", &crashed.id]), 160, 50);
    wait_screen(&terminal, "this command stays connected");
    crashed.folder.wait_nth("permission.requested", 2);
    // In the command's own terminal.
    wait_screen(&terminal, "seq 600");
    wait_screen(&terminal, "y approves, n denies, anything else leaves it open:");
    terminal.press(&["y", "Enter"]);
    crashed.folder.wait_nth("permission.completed", 2);
    wait_screen(&terminal, "approved 1 request");
    // The turn is stopped from another shell that cannot find the tray.
    let ran = crashed.pilot.run_without_tray(&["stop", &crashed.id]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    crashed.folder.wait("abort");
    // A second command does not resume the session at the same time.
    for args in [&["reconnect", &crashed.id][..], &["resume", &crashed.id]] {
        let ran = crashed.pilot.run_without_tray(args);
        assert_eq!(ran.code, Some(4), "{ran:?}");
    }
    // A turn that the user stopped is not continued, and its tool ran.
    for flag in ["--continue", "--resend"] {
        let ran = crashed.pilot.run_without_tray(&["reconnect", flag, &crashed.id]);
        assert_eq!(ran.code, Some(4), "{flag}: {ran:?}");
    }
    crashed.folder.assert_one_chain();
}

/// The same from the menu: a tray is running, but the command cannot find it.
#[test]
#[ignore = "tests/long.sh"]
fn case_132_the_menu_answers_requests_of_a_session_held_by_a_command() {
    let crashed = Crashed::new();
    let mut one = Staying::start(crashed.command(&["reconnect", "--continue", "--yes", &crashed.id]));
    one.wait_output("this command stays connected");
    crashed.folder.wait_nth("permission.requested", 2);
    one.wait_output("it asks for a permission: `pilotlight approve");
    crashed.pilot.wait_status(&crashed.id, "needs-permission", "");
    crashed.pilot.click(&crashed.id, "Approve once");
    crashed.folder.wait_nth("permission.completed", 2);
    crashed.home.release_tools();
    crashed.pilot.wait_status(&crashed.id, "idle", "");
    one.signal(Signal::INT);
    one.wait_output("press Ctrl-C again to end it");
    one.signal(Signal::INT);
    assert_eq!(one.code(), Some(0), "{}", one.output());
    crashed.folder.assert_one_chain();
}

#[test]
fn case_131_the_first_ctrl_c_names_the_sessions_and_the_second_ends_them() {
    let crashed = Crashed::new();
    let mut one = Staying::start(crashed.command(&["reconnect", "--continue", "--yes", &crashed.id]));
    one.wait_output("this command stays connected");
    crashed.folder.wait_nth("permission.requested", 2);
    one.signal(Signal::INT);
    one.wait_output("press Ctrl-C again to end it");
    // It stays alive, and its request can be answered.
    let ran = crashed.pilot.run_without_tray(&["approve", "--yes", &crashed.id]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(crashed.count("session.shutdown"), 0);
    one.signal(Signal::INT);
    assert_eq!(one.code(), Some(0), "{}", one.output());
    crashed.folder.wait("session.shutdown");
    let quiet = crashed.pilot.run_without_tray(&["status"]);
    assert!(!quiet.err.contains("was told to end"), "a user's Ctrl-C is not reported: {quiet:?}");
}

#[test]
#[ignore = "tests/long.sh"]
fn case_131_an_end_by_a_signal_is_reported_once_by_the_next_command() {
    let crashed = Crashed::new();
    let mut one = Staying::start(crashed.command(&["reconnect", "--continue", "--yes", &crashed.id]));
    one.wait_output("this command stays connected");
    crashed.folder.wait_nth("permission.requested", 2);
    one.signal(Signal::TERM);
    assert_eq!(one.code(), Some(0), "{}", one.output());
    one.wait_output("was told to end");
    crashed.folder.wait("session.shutdown");
    let json = crashed.pilot.run_without_tray(&["status", "--json"]);
    assert_eq!(json.err, "", "nothing is reported to a script");
    let first = crashed.pilot.run_without_tray(&["status"]);
    assert!(first.err.contains("was told to end") && first.err.contains(&crashed.id), "{first:?}");
    let again = crashed.pilot.run_without_tray(&["status"]);
    assert!(!again.err.contains("was told to end"), "{again:?}");
    let row = crashed.pilot.row_where(&crashed.id, "it can be brought back", |row| row["status"] == "ended");
    assert!(row["actions"].as_array().unwrap().contains(&"reconnect".into()), "{row}");
}

/// Cases 130 and 132: other commands can reach it before it sends anything. If the send is not confirmed, it stays for
/// its possible effects.
#[test]
#[ignore = "tests/long.sh"]
fn case_130_a_command_stays_connected_after_an_unconfirmed_prompt() {
    let crashed = Crashed::with_freezing_server();
    let mut one = Staying::start(crashed.command(&["reconnect", "--continue", "--yes", &crashed.id]));
    one.wait_output("prompting: sends the prompt");
    // A command in any other shell reaches it at once, and reports what it is doing.
    let ran = crashed.pilot.run_without_tray(&["resume", &crashed.id]);
    assert!(ran.code == Some(4) && ran.err.contains("continue is under way"), "{ran:?}");
    one.wait_output("may have happened");
    one.wait_output("what was sent may still be carried out: this command stays connected");
    assert_eq!(crashed.count("user.message"), 1, "{}", crashed.folder.dump());
    let server = std::fs::read_to_string(crashed.home.root().join("pid")).unwrap().trim().parse().unwrap();
    signal(server, Signal::CONT);
    // Now the prompt is carried out, and its request is answered.
    crashed.folder.wait_nth("permission.requested", 2);
    one.wait_output("it asks for a permission: `pilotlight approve");
    let ran = crashed.pilot.run_without_tray(&["approve", "--yes", &crashed.id]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    crashed.folder.wait_nth("permission.completed", 2);
    crashed.home.release_tools();
    crashed.folder.wait_nth("tool.execution_complete", 2);
    one.signal(Signal::INT);
    one.wait_output("press Ctrl-C again to end it");
    one.signal(Signal::INT);
    assert_eq!(one.code(), Some(5), "{}", one.output());
    assert_eq!(crashed.count("user.message"), 2, "it was sent once");
    crashed.folder.assert_one_chain();
}

/// A lost connection ends the command.
#[test]
#[ignore = "tests/long.sh"]
fn case_132_a_command_whose_server_dies_reports_it_and_exits() {
    let crashed = Crashed::new();
    let mut one = Staying::start(crashed.command(&["reconnect", "--continue", "--yes", &crashed.id]));
    one.wait_output("this command stays connected");
    crashed.folder.wait_nth("permission.requested", 2);
    let server = crashed.folder.locks().pop().unwrap();
    signal(server, Signal::KILL);
    one.wait_output("the connection is gone");
    assert_eq!(one.code(), Some(0), "{}", one.output());
    crashed.home.release_tools();
}

/// The tray is older than the server that runs the session now. It could not be reached when the command was started.
#[test]
#[ignore = "tests/long.sh"]
fn case_196b_a_click_in_the_tray_counts_where_a_command_holds_the_session() {
    let mut crashed = Crashed::new();
    crashed.pilot.restart_tray_apart();
    // With its whole folder: a socket alone is made anew.
    let folder = crashed.pilot.user().join("run/pilotlight");
    let hidden = folder.with_extension("hidden");
    std::fs::rename(&folder, &hidden).unwrap();
    let mut command = crashed.pilot.command_with_tray(&["reconnect", "--continue", "--yes", &crashed.id]);
    command.envs(environment(&crashed.home, &crashed.model));
    let one = Staying::start(command);
    one.wait_output("this command stays connected");
    for file in std::fs::read_dir(hidden).unwrap().map(Result::unwrap) {
        std::fs::rename(file.path(), folder.join(file.file_name())).unwrap();
    }
    let asked = crashed.folder.wait_nth("permission.requested", 2);
    crashed.pilot.wait_status_in_tray(&crashed.id, "needs-permission", "");
    crashed.pilot.click(&crashed.id, "Approve");
    let done = crashed.folder.wait_nth("permission.completed", 2);
    assert_eq!(done["data"]["requestId"], asked["data"]["requestId"], "{done}");
    assert_eq!(done["data"]["result"]["kind"], "approved", "{done}");
    crashed.home.release_tools();
}

/// The terminal keeps its session alive, whoever leaves. That a session ends with a command is said where it is so: 131.
#[test]
#[ignore = "tests/long.sh"]
fn case_229_a_command_does_not_say_that_it_alone_keeps_a_terminals_session_alive() {
    let (home, model) = (Home::new("project"), Model::start());
    let pilot = Pilot::with(&[&home], &settings(""), &environment(&home, &model));
    let terminal = Terminal::start(&home, &model, &["--ui-server", "--port", "0"]);
    let id = terminal.folder.id();
    terminal.enter("SCRIPT:tool Paint the fence");
    terminal.approve();
    terminal.folder.wait("permission.completed");
    pilot.wait_status(&id, "working", "");
    let mut command = pilot.command(&["reconnect", &id]);
    command.envs(environment(&home, &model));
    let mut one = Staying::start(command);
    one.wait_output("stays connected");
    one.signal(Signal::INT);
    one.code();
    assert!(!one.output().contains("only Pilotlight keeps"), "{}", one.output());
    assert!(!pilot.run_without_tray(&["status"]).err.contains("was told to end"));
    home.release_tools();
    terminal.folder.wait_nth("assistant.turn_end", 2);
    terminal.enter("SCRIPT:plain And the gate");
    terminal.folder.wait_nth("assistant.turn_end", 3);
    assert_eq!(terminal.folder.locks(), [terminal.pid()]);
}
