//! A session that only a command keeps alive: it is answered there and from anywhere else, and its end is named before and after.

use super::actions::{environment, settings};
use super::orders::Staying;
use crate::support::executable::executable;
use crate::support::home::{Folder, Home, cli};
use crate::support::model::Model;
use crate::support::person::{Manner, Person};
use crate::support::pilotlight::Pilot;
use crate::support::process::signal;
use crate::support::server::Server;
use crate::support::tmux::Tmux;
use crate::support::{SOON, wait_until};
use rustix::process::Signal;
use std::process::Command;

/// A session of a program whose server was killed while a tool ran, and a Pilotlight beside it.
struct Crashed {
    pilot: Pilot,
    folder: Folder,
    id: String,
    model: Model,
    home: Home,
}

const GO_ON: &str = "continue-prompt = \"SCRIPT:tool Go on\"\n";

impl Crashed {
    fn set() -> Self {
        Self::configured(|_| settings(GO_ON))
    }

    /// One whose new server stops as soon as it is sent a prompt, and before it has read that. Its process is in the file `pid`.
    fn set_freezing() -> Self {
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
        let (home, model) = (Home::new("project"), Model::start());
        let pilot = Pilot::with(&[&home], &config(&home), &environment(&home, &model));
        let mut server = Server::start(&home, &model);
        let client = server.connect();
        let session = server.create(&client, Some(&Person::who(Manner::Approves)));
        session.send("SCRIPT:tool Paint the fence");
        session.folder.wait("permission.completed");
        let (id, folder) = (session.id(), session.folder.clone());
        server.kill();
        home.go(); // the tool's shell outlives its server
        pilot.told(&id, "crashed", "unfinished");
        std::fs::remove_file(home.project().join("go")).unwrap();
        Self { pilot, folder, id, model, home }
    }

    /// A command that knows of no tray, and of the session's model.
    fn alone(&self, args: &[&str]) -> Command {
        let mut command = self.pilot.command(args);
        command.envs(environment(&self.home, &self.model));
        command
    }

    /// How often this stands in the log.
    fn count(&self, kind: &str) -> usize {
        self.folder.types().iter().filter(|other| *other == kind).count()
    }
}

fn shows(terminal: &Tmux, what: &str) {
    let says = || terminal.screen().split_whitespace().collect::<Vec<_>>().join(" ").contains(what).then_some(());
    wait_until(SOON, &format!("the terminal shows {what:?}"), || terminal.screen(), says);
}

#[test]
fn case_132_what_a_session_that_a_command_holds_asks_is_answered_there_or_by_any_other() {
    let crashed = Crashed::set();
    let terminal = Tmux::start(&crashed.alone(&["reconnect", "--continue", &crashed.id]), 160, 50);
    shows(&terminal, "this command stays connected");
    crashed.folder.wait_nth("permission.requested", 2);
    // There.
    shows(&terminal, "seq 600");
    shows(&terminal, "y approves, n denies, anything else leaves it open:");
    terminal.press(&["y", "Enter"]);
    crashed.folder.wait_nth("permission.completed", 2);
    shows(&terminal, "approved 1 request");
    // The turn is stopped from another shell, which knows of no tray.
    let ran = crashed.pilot.run_alone(&["stop", &crashed.id]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    crashed.folder.wait("abort");
    // A second command does not take the session up beside the first.
    for args in [&["reconnect", &crashed.id][..], &["resume", &crashed.id]] {
        let ran = crashed.pilot.run_alone(args);
        assert_eq!(ran.code, Some(4), "{ran:?}");
    }
    // What the user stopped is nothing to go on with, and its tool ran.
    for flag in ["--continue", "--resend"] {
        let ran = crashed.pilot.run_alone(&["reconnect", flag, &crashed.id]);
        assert_eq!(ran.code, Some(4), "{flag}: {ran:?}");
    }
    crashed.folder.assert_one_chain();
}

/// From the menu, too: the tray was there all the time, the command did not reach it.
#[test]
fn case_132_the_menu_answers_for_a_command_that_holds_a_session() {
    let crashed = Crashed::set();
    let mut one = Staying::start(crashed.alone(&["reconnect", "--continue", &crashed.id]));
    one.says("this command stays connected");
    crashed.folder.wait_nth("permission.requested", 2);
    one.says("it asks for a permission: `pilotlight approve");
    crashed.pilot.told(&crashed.id, "needs-permission", "");
    crashed.pilot.click(&crashed.id, "Approve once");
    crashed.folder.wait_nth("permission.completed", 2);
    crashed.home.go();
    crashed.pilot.told(&crashed.id, "idle", "");
    one.signal(Signal::INT);
    one.says("press Ctrl-C again to end it");
    one.signal(Signal::INT);
    assert_eq!(one.code(), Some(0), "{}", one.said());
    crashed.folder.assert_one_chain();
}

#[test]
fn case_131_the_first_ctrl_c_names_what_ends_and_the_second_ends_it() {
    let crashed = Crashed::set();
    let mut one = Staying::start(crashed.alone(&["reconnect", "--continue", &crashed.id]));
    one.says("this command stays connected");
    crashed.folder.wait_nth("permission.requested", 2);
    one.signal(Signal::INT);
    one.says("press Ctrl-C again to end it");
    // It lives on, and is answered.
    let ran = crashed.pilot.run_alone(&["approve", &crashed.id]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(crashed.count("session.shutdown"), 0);
    one.signal(Signal::INT);
    assert_eq!(one.code(), Some(0), "{}", one.said());
    crashed.folder.wait("session.shutdown");
    let quiet = crashed.pilot.run_alone(&["status"]);
    assert!(!quiet.err.contains("was told to end"), "the user knows: {quiet:?}");
}

#[test]
fn case_131_what_ended_by_a_signal_is_told_by_the_next_start_and_once() {
    let crashed = Crashed::set();
    let mut one = Staying::start(crashed.alone(&["reconnect", "--continue", &crashed.id]));
    one.says("this command stays connected");
    crashed.folder.wait_nth("permission.requested", 2);
    one.signal(Signal::TERM);
    assert_eq!(one.code(), Some(0), "{}", one.said());
    one.says("was told to end");
    crashed.folder.wait("session.shutdown");
    let json = crashed.pilot.run_alone(&["status", "--json"]);
    assert_eq!(json.err, "", "a script is not told");
    let told = crashed.pilot.run_alone(&["status"]);
    assert!(told.err.contains("was told to end") && told.err.contains(&crashed.id), "{told:?}");
    let again = crashed.pilot.run_alone(&["status"]);
    assert!(!again.err.contains("was told to end"), "{again:?}");
    let row = crashed.pilot.row_where(&crashed.id, "it can be brought back", |row| row["status"] == "ended");
    assert!(row["actions"].as_array().unwrap().contains(&"reconnect".into()), "{row}");
}

/// Cases 130 and 132: it is reached before anything is sent, and where that is not confirmed, it stays for what may come of it.
#[test]
fn case_130_a_command_stays_for_what_it_sent_and_nobody_confirmed() {
    let crashed = Crashed::set_freezing();
    let mut one = Staying::start(crashed.alone(&["reconnect", "--continue", &crashed.id]));
    one.says("resend: sends it");
    // Any other shell reaches it at once, and is told what it does.
    let ran = crashed.pilot.run_alone(&["resume", &crashed.id]);
    assert!(ran.code == Some(4) && ran.err.contains("continue is under way"), "{ran:?}");
    one.says("may have happened");
    one.says("what was sent may still be carried out: this command stays connected");
    assert_eq!(crashed.count("user.message"), 1, "{}", crashed.folder.dump());
    let server = std::fs::read_to_string(crashed.home.root().join("pid")).unwrap().trim().parse().unwrap();
    signal(server, Signal::CONT);
    // Now it is carried out, and what it asks is answered.
    crashed.folder.wait_nth("permission.requested", 2);
    one.says("it asks for a permission: `pilotlight approve");
    let ran = crashed.pilot.run_alone(&["approve", &crashed.id]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    crashed.folder.wait_nth("permission.completed", 2);
    crashed.home.go();
    crashed.folder.wait_nth("tool.execution_complete", 2);
    one.signal(Signal::INT);
    one.says("press Ctrl-C again to end it");
    one.signal(Signal::INT);
    assert_eq!(one.code(), Some(5), "{}", one.said());
    assert_eq!(crashed.count("user.message"), 2, "it was sent once");
    crashed.folder.assert_one_chain();
}

/// A connection that is lost keeps no command.
#[test]
fn case_132_a_command_whose_server_dies_ends_and_says_so() {
    let crashed = Crashed::set();
    let mut one = Staying::start(crashed.alone(&["reconnect", "--continue", &crashed.id]));
    one.says("this command stays connected");
    crashed.folder.wait_nth("permission.requested", 2);
    let server = crashed.folder.locks().pop().unwrap();
    signal(server, Signal::KILL);
    one.says("the connection is gone");
    assert_eq!(one.code(), Some(0), "{}", one.said());
    crashed.home.go();
}
