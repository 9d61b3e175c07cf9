//! What a tool of a session does that was allowed to run as the user, and means no good: it reads the key, passes for the extension,
//! takes the tray's place, or stands between both. Nothing runs by it that nobody approved, and the dialog in the terminal stays.

use super::Bridged;
use crate::support::executable::executable;
use crate::support::home::cli;
use crate::support::process::{is_live, kill};
use crate::support::terminal::{DIALOG, Terminal};
use crate::support::{COPILOT, SOON, wait_until};
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

/// The program that plays.
const ROGUE: &str = include_str!("rogue.mjs");

/// A tool that plays something. It ends with this value.
struct Rogue {
    pid: u32,
    out: PathBuf,
}

impl Rogue {
    /// Has the session run it, which its user approves in the terminal.
    fn plays(bridged: &Bridged, part: &str, session: &str) -> Self {
        let (root, user) = (bridged.home.root(), bridged.pilot.user());
        let (program, out, pid) = (root.join("rogue.mjs"), root.join("rogue.out"), root.join("rogue.pid"));
        std::fs::write(&program, ROGUE).unwrap();
        let script = bridged.home.project().join("script.sh");
        // Of the words on its command line only the name counts: Copilot's program takes its own file of that name.
        let bootstrap = root.join("extension_bootstrap.mjs");
        let text = format!(
            "#!/bin/sh\n\
             echo $$ >'{pid}'\n\
             export ROGUE={part} ROGUE_OUT='{out}' ROGUE_SESSION={session} ROGUE_TRAY={tray}\n\
             export ROGUE_SOCKET='{user}/run/pilotlight/bridge.sock' ROGUE_KEY='{user}/.local/state/pilotlight/bridge.key'\n\
             export EXTENSION_PATH='{program}' COPILOT_EXTENSION_PARENT_PID=$PPID SESSION_ID={session}\n\
             exec '{cli}' '{bootstrap}' </dev/null >/dev/null 2>&1\n",
            pid = pid.display(),
            out = out.display(),
            tray = bridged.pilot.tray(),
            user = user.display(),
            program = program.display(),
            cli = cli().display(),
            bootstrap = bootstrap.display(),
        );
        executable(&script, &text);
        let _ = std::fs::remove_file(&pid); // one that played before may have left them
        let _ = std::fs::remove_file(&out);
        bridged.terminal.enter("SCRIPT:become Paint it black");
        bridged.terminal.approve();
        let read = || std::fs::read_to_string(&pid).ok()?.trim().parse().ok();
        let pid = wait_until(COPILOT, "the rogue runs", || bridged.terminal.dump(), read);
        Self { pid, out }
    }

    /// What it noted so far.
    fn notes(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(&self.out).unwrap_or_default();
        let lines = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
        lines.map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Waits until it noted this.
    fn wait(&self, bridged: &Bridged, what: &str, is_it: impl Fn(&Value) -> bool) -> Value {
        let dump = || format!("{:#?}\n{}\n{}", self.notes(), bridged.pilot.log(), bridged.terminal.dump());
        wait_until(COPILOT, what, dump, || self.notes().into_iter().find(&is_it))
    }
}

impl Drop for Rogue {
    fn drop(&mut self) {
        if is_live(self.pid) {
            kill(self.pid);
        }
    }
}

impl Bridged {
    /// The tool that asks beside the rogue: that has done what it can when `done` returns. The dialog is still there, and its user answers.
    fn only_its_user_answers(&self, asked_before: usize, done: impl FnOnce()) {
        let asked = self.terminal.folder.wait_nth("permission.requested", asked_before + 1);
        self.terminal.wait_screen(DIALOG);
        done();
        let of_it = |event: &Value| event["data"]["requestId"] == asked["data"]["requestId"];
        let completed =
            || self.terminal.folder.events().into_iter().find(|e| e["type"] == "permission.completed" && of_it(e));
        assert_eq!(completed(), None, "{}", self.terminal.dump());
        self.terminal.approve();
        let completed = wait_until(COPILOT, "the user's answer counts", || self.terminal.dump(), completed);
        assert_eq!(completed["data"]["result"]["kind"], "approved");
        assert_eq!(completed["data"]["decisionSource"], "human_response", "{completed}");
        self.home.go();
    }
}

/// Has a tool play the tray to a bridge that may answer, and the user answer what is asked beside it. What the tool noted, which is
/// no approval.
fn played_to_the_bridge(part: &str) -> Vec<Value> {
    let bridged = Bridged::set(&[]);
    bridged.allowed();
    let rogue = Rogue::plays(&bridged, part, &bridged.id());
    rogue.wait(&bridged, "the bridge has left it", |note| note["closed"] == "bridge");
    bridged.only_its_user_answers(2, || {});
    let notes = rogue.notes();
    assert!(!notes.iter().any(|note| !note["approves"].is_null()), "{notes:?}");
    notes
}

/// It knows the key, and proves to the bridge that it does.
#[test]
fn a_tool_that_takes_the_trays_place_approves_nothing() {
    let notes = played_to_the_bridge("tray");
    assert!(!notes.iter().any(|note| note["said"]["t"] == "proof"), "{notes:?}");
}

/// The tray proves to it who it is, the bridge does, and it hands on what each says.
#[test]
fn a_tool_between_the_bridge_and_the_tray_approves_nothing() {
    played_to_the_bridge("relay");
}

#[test]
fn a_tool_that_passes_for_the_bridge_is_sent_away_while_that_lives() {
    let bridged = Bridged::set(&[]);
    let rogue = Rogue::plays(&bridged, "bridge", &bridged.id());
    rogue.wait(&bridged, "it is sent away", |note| note["closed"] == "tray");
    bridged.only_its_user_answers(1, || {});
    let ordered = rogue.notes().iter().any(|note| note["from"] == "tray" && note["said"]["t"] != "welcome");
    assert!(!ordered, "{:?}", rogue.notes());
}

/// One that killed the bridge is believed, and can still approve nothing.
#[test]
fn a_tool_that_passes_for_the_bridge_approves_nothing() {
    let bridged = Bridged::set(&[]);
    let (id, log) = (bridged.id(), || bridged.pilot.log());
    kill(bridged.terminal.extension());
    wait_until(SOON, "the bridge has gone", log, || log().contains("a bridge has gone").then_some(()));
    let rogue = Rogue::plays(&bridged, "bridge", &id);
    rogue.wait(&bridged, "the tray greets it", |note| note["said"]["t"] == "welcome");
    bridged.only_its_user_answers(1, || {
        bridged.pilot.told(&id, "needs-permission", "");
        let ran = bridged.pilot.run(&["approve", &id]);
        assert_ne!(ran.code, Some(0), "{ran:?}");
    });
}

/// What no extension says is told in the tray's log, once for many, and nothing else comes of it.
#[test]
#[ignore = "tests/long.sh"]
fn a_tool_that_talks_nonsense_to_the_tray_is_turned_away() {
    let bridged = Bridged::set(&[]);
    let id = bridged.id();
    kill(bridged.terminal.extension());
    let rogue = Rogue::plays(&bridged, "nonsense", &id);
    rogue.wait(&bridged, "it is turned away at last", |note| note["closed"] == "flooded");
    let told = bridged.pilot.log().matches("a bridge was turned away").count();
    assert!((1..4).contains(&told), "{}", bridged.pilot.log());
    bridged.only_its_user_answers(1, || {
        bridged.pilot.told(&id, "needs-permission", "");
    });
}

/// It says that it is another session's, which has a bridge or has none.
#[test]
#[ignore = "tests/long.sh"]
fn a_tool_that_names_another_session_gets_nothing_of_that() {
    let bridged = Bridged::set(&[]);
    let id = bridged.id();
    let other = Terminal::start(&bridged.home, &bridged.model, &[]);
    let its = other.folder.id();
    bridged.pilot.has_bridges(1, &its);
    kill(bridged.terminal.extension());
    let rogue = Rogue::plays(&bridged, "bridge", &its);
    rogue.wait(&bridged, "the tray greets it", |note| note["said"]["t"] == "welcome");
    other.enter("SCRIPT:tool Paint the gate");
    other.wait_screen(DIALOG);
    bridged.pilot.told(&its, "needs-permission", "");
    // It said that it may answer, and the other's bridge may not.
    let ran = bridged.pilot.run(&["approve", &its]);
    assert_ne!(ran.code, Some(0), "{ran:?}");
    bridged.done(&["stop", &its]);
    other.folder.wait("abort");
    let ran = bridged.pilot.run(&["stop", &id]);
    assert_ne!(ran.code, Some(0), "{ran:?}");
    let ordered = rogue.notes().iter().any(|note| note["from"] == "tray" && note["said"]["t"] != "welcome");
    assert!(!ordered, "{:?}", rogue.notes());
}

/// Connects as whoever runs it, says something, and prints what it is told.
const CALLER: &str = r#"use IO::Socket::UNIX; $SIG{PIPE} = "IGNORE"; $s = IO::Socket::UNIX->new(Peer => $ARGV[0]) or die "not let in: $!";
    print $s "$ARGV[1]\n"; $s->flush; print "answered: ", <$s>"#;

/// Any program of the same user, and any of another user: the one may know the key, and neither is an extension.
#[test]
fn who_is_no_extension_is_not_even_greeted() {
    let bridged = Bridged::set(&[]);
    let socket = bridged.pilot.user().join("run/pilotlight/bridge.sock");
    let hello = json!({"t": "hello", "v": 1, "session": bridged.id(), "pid": bridged.terminal.extension(), "ppid": bridged.terminal.pid(),
        "elevated": true, "nonce": "00"});
    let call =
        |mut command: Command| command.args(["-e", CALLER]).arg(&socket).arg(hello.to_string()).output().unwrap();
    let said = call(Command::new("perl"));
    assert_eq!(String::from_utf8_lossy(&said.stdout), "answered: ", "{said:?}");
    let log = || bridged.pilot.log();
    wait_until(SOON, "its log says so", log, || log().contains("a bridge was turned away").then_some(()));
    if !rustix::process::geteuid().is_root() {
        return; // another user's process cannot be made without being root
    }
    let another = || {
        let mut command = Command::new("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all", "perl"]);
        call(command)
    };
    assert!(String::from_utf8_lossy(&another().stderr).contains("not let in"));
    // Even where somebody opened every door.
    for path in socket.ancestors().take_while(|path| path.starts_with(bridged.pilot.user())) {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o777)).unwrap();
    }
    let said = another();
    assert_eq!(String::from_utf8_lossy(&said.stdout), "answered: ", "{said:?}");
    for path in socket.parent().unwrap().ancestors().take_while(|path| path.starts_with(bridged.pilot.user())) {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o700)).unwrap();
    }
    bridged.terminal.enter("SCRIPT:tool Paint the fence");
    bridged.terminal.wait_screen(DIALOG);
    bridged.pilot.told(&bridged.id(), "needs-permission", "");
    bridged.done(&["stop", &bridged.id()]);
    bridged.terminal.folder.wait("abort");
}
