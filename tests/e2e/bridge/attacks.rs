//! Attacks by a malicious tool that a session may run as the user: it reads the key, impersonates the extension or the
//! tray, or relays between both. Nothing runs without the user's approval, and the dialog in the terminal stays.

use super::{Bridged, extension_in};
use crate::support::executable::{copy_program, executable};
use crate::support::home::cli;
use crate::support::process::{is_live, kill};
use crate::support::terminal::{DIALOG, Terminal};
use crate::support::{COPILOT, SOON, wait_until};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

/// The malicious program.
const ROGUE: &str = include_str!("rogue.mjs");

/// A running malicious tool. It is killed when this value is dropped.
struct Rogue {
    pid: u32,
    out: PathBuf,
}

impl Rogue {
    /// Makes the session run it, which its user approves in the terminal.
    fn start(bridged: &Bridged, part: &str, session: &str) -> Self {
        let (root, user) = (bridged.home.root(), bridged.pilot.user());
        let (program, out, pid) = (root.join("rogue.mjs"), root.join("rogue.out"), root.join("rogue.pid"));
        std::fs::write(&program, ROGUE).unwrap();
        let script = bridged.home.project().join("script.sh");
        // Only the file's name on the command line matters: Copilot's program loads its own file of that name.
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
            tray = bridged.pilot.tray_pid(),
            user = user.display(),
            program = program.display(),
            cli = cli().display(),
            bootstrap = bootstrap.display(),
        );
        executable(&script, &text);
        let _ = std::fs::remove_file(&pid); // an earlier one may have left them
        let _ = std::fs::remove_file(&out);
        bridged.terminal.enter("SCRIPT:become Paint it black");
        bridged.terminal.approve();
        let read = || std::fs::read_to_string(&pid).ok()?.trim().parse().ok();
        let pid = wait_until(COPILOT, "the rogue runs", || bridged.terminal.dump(), read);
        Self { pid, out }
    }

    /// Everything that it recorded so far.
    fn notes(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(&self.out).unwrap_or_default();
        let lines = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
        lines.map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Waits for a recorded note that fits.
    fn wait(&self, bridged: &Bridged, what: &str, fits: impl Fn(&Value) -> bool) -> Value {
        let dump = || format!("{:#?}\n{}\n{}", self.notes(), bridged.pilot.log(), bridged.terminal.dump());
        wait_until(COPILOT, what, dump, || self.notes().into_iter().find(&fits))
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
    /// Asserts that a second tool's request stays open while `attack` runs, and that its user's answer in the dialog
    /// counts.
    pub(super) fn assert_only_user_answers(&self, asked_before: usize, attack: impl FnOnce()) {
        let asked = self.terminal.folder.wait_nth("permission.requested", asked_before + 1);
        self.terminal.wait_screen(DIALOG);
        attack();
        let is_its = |event: &Value| event["data"]["requestId"] == asked["data"]["requestId"];
        let completed =
            || self.terminal.folder.events().into_iter().find(|e| e["type"] == "permission.completed" && is_its(e));
        assert_eq!(completed(), None, "{}", self.terminal.dump());
        self.terminal.approve();
        // The user gave the first answer, too. Older releases do not note by whom.
        let first = self.terminal.folder.events().into_iter().find(|event| event["type"] == "permission.completed");
        let by_user = first.unwrap()["data"]["decisionSource"].clone();
        let completed = wait_until(COPILOT, "the user's answer counts", || self.terminal.dump(), completed);
        assert_eq!(completed["data"]["result"]["kind"], "approved");
        assert_eq!(completed["data"]["decisionSource"], by_user, "{completed}");
        self.home.release_tools();
    }
}

/// A tool relays between the tray and a bridge that may answer, which both authenticate to it. Then it poses as the tray
/// itself: it knows the key, and can prove that to the bridge.
#[test]
fn a_tool_that_poses_as_the_tray_approves_nothing() {
    let bridged = Bridged::consented();
    let attack = |part: &str, asked_before: usize| {
        let rogue = Rogue::start(&bridged, part, &bridged.id());
        rogue.wait(&bridged, "the bridge has left it", |note| note["closed"] == "bridge");
        bridged.assert_only_user_answers(asked_before, || {});
        let notes = rogue.notes();
        assert!(!notes.iter().any(|note| !note["approves"].is_null()), "{notes:?}");
        notes
    };
    let notes = attack("relay", 2);
    assert!(notes.iter().any(|note| note["from"] == "tray"), "{notes:?}");

    bridged.terminal.wait_no_screen(DIALOG);
    bridged.pilot.wait_status(&bridged.id(), "idle", "");
    let socket = bridged.pilot.user().join("run/pilotlight/bridge.sock");
    std::fs::rename(socket.with_extension("sock.aside"), socket).unwrap();
    bridged.pilot.wait_bridges(2, &bridged.id());
    let notes = attack("tray", 4);
    assert!(!notes.iter().any(|note| note["message"]["t"] == "proof"), "{notes:?}");
}

/// A tool poses as a bridge that is connected, and is turned away. Then it kills the bridge and is accepted in its
/// place, but can still approve nothing.
#[test]
fn a_tool_that_poses_as_the_bridge_approves_nothing() {
    let bridged = Bridged::new(&[]);
    let (id, log) = (bridged.id(), || bridged.pilot.log());
    let rogue = Rogue::start(&bridged, "bridge", &id);
    rogue.wait(&bridged, "it is sent away", |note| note["closed"] == "tray");
    bridged.assert_only_user_answers(1, || {});
    let ordered = rogue.notes().iter().any(|note| note["from"] == "tray" && note["message"]["t"] != "welcome");
    assert!(!ordered, "{:?}", rogue.notes());
    drop(rogue);

    bridged.terminal.wait_no_screen(DIALOG);
    bridged.pilot.wait_status(&id, "idle", "");
    kill(bridged.terminal.extension());
    wait_until(SOON, "the bridge has gone", log, || log().contains("a bridge has disconnected").then_some(()));
    let rogue = Rogue::start(&bridged, "bridge", &id);
    rogue.wait(&bridged, "the tray greets it", |note| note["message"]["t"] == "welcome");
    bridged.assert_only_user_answers(3, || {
        bridged.pilot.wait_status(&id, "needs-permission", "");
        let ran = bridged.pilot.run(&["approve", "--yes", &id]);
        assert_ne!(ran.code, Some(0), "{ran:?}");
    });
}

/// Messages that no extension sends are reported in the tray's log, once for many, and have no other effect.
#[test]
#[ignore = "tests/long.sh"]
fn a_tool_that_sends_invalid_messages_to_the_tray_is_turned_away() {
    let bridged = Bridged::new(&[]);
    let id = bridged.id();
    kill(bridged.terminal.extension());
    let rogue = Rogue::start(&bridged, "nonsense", &id);
    rogue.wait(&bridged, "it is turned away at last", |note| note["closed"] == "flooded");
    let reported = bridged.pilot.log().matches("a bridge was turned away").count();
    assert!((1..4).contains(&reported), "{}", bridged.pilot.log());
    bridged.assert_only_user_answers(1, || {
        bridged.pilot.wait_status(&id, "needs-permission", "");
    });
}

/// It claims to be the bridge of another session, which has a bridge.
#[test]
#[ignore = "tests/long.sh"]
fn a_tool_that_names_another_session_receives_none_of_its_orders() {
    let bridged = Bridged::new(&[]);
    let id = bridged.id();
    let other = Terminal::start(&bridged.home, &bridged.model, &[]);
    let other_id = other.folder.id();
    bridged.pilot.wait_bridges(1, &other_id);
    kill(bridged.terminal.extension());
    let rogue = Rogue::start(&bridged, "bridge", &other_id);
    rogue.wait(&bridged, "the tray greets it", |note| note["message"]["t"] == "welcome");
    other.enter("SCRIPT:tool Paint the gate");
    other.wait_screen(DIALOG);
    bridged.pilot.wait_status(&other_id, "needs-permission", "");
    // The tool claimed that it may answer. The other session's real bridge may not.
    let ran = bridged.pilot.run(&["approve", "--yes", &other_id]);
    assert_ne!(ran.code, Some(0), "{ran:?}");
    bridged.run_ok(&["stop", &other_id]);
    other.folder.wait("abort");
    let ran = bridged.pilot.run(&["stop", &id]);
    assert_ne!(ran.code, Some(0), "{ran:?}");
    let ordered = rogue.notes().iter().any(|note| note["from"] == "tray" && note["message"]["t"] != "welcome");
    assert!(!ordered, "{:?}", rogue.notes());
}

/// Connects as the current user, sends a line, and prints the answer.
const CALLER: &str = r#"use IO::Socket::UNIX; $SIG{PIPE} = "IGNORE"; $s = IO::Socket::UNIX->new(Peer => $ARGV[0]) or die "not let in: $!";
    print $s "$ARGV[1]\n"; $s->flush; print "answered: ", <$s>"#;

/// Neither another program of the same user, which may know the key, nor one of another user is an extension.
#[test]
#[ignore = "tests/long.sh"]
fn a_program_that_is_no_extension_gets_no_welcome() {
    let bridged = Bridged::new(&[]);
    let socket = bridged.pilot.user().join("run/pilotlight/bridge.sock");
    let hello = json!({"t": "hello", "v": 2, "session": bridged.id(), "pid": bridged.terminal.extension(), "ppid": bridged.terminal.pid(),
        "elevated": true, "nonce": "00"});
    let call =
        |mut command: Command| command.args(["-e", CALLER]).arg(&socket).arg(hello.to_string()).output().unwrap();
    let output = call(Command::new("perl"));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "answered: ", "{output:?}");
    let log = || bridged.pilot.log();
    wait_until(SOON, "that is logged", log, || log().contains("a bridge was turned away").then_some(()));
    if !rustix::process::geteuid().is_root() {
        return; // another user's process cannot be made without being root
    }
    let another = || {
        let mut command = Command::new("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all", "perl"]);
        call(command)
    };
    assert!(String::from_utf8_lossy(&another().stderr).contains("not let in"));
    // Even if the permissions of all folders are open.
    for path in socket.ancestors().take_while(|path| path.starts_with(bridged.pilot.user())) {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o777)).unwrap();
    }
    let output = another();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "answered: ", "{output:?}");
    for path in socket.parent().unwrap().ancestors().take_while(|path| path.starts_with(bridged.pilot.user())) {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o700)).unwrap();
    }
    bridged.terminal.enter("SCRIPT:tool Paint the fence");
    bridged.terminal.wait_screen(DIALOG);
    bridged.pilot.wait_status(&bridged.id(), "needs-permission", "");
    bridged.run_ok(&["stop", &bridged.id()]);
    bridged.terminal.folder.wait("abort");
}

/// Something that poses as the tray, run by the test, and what it printed.
struct Impostor(Child, BufReader<ChildStdout>);

impl Impostor {
    /// Runs `program`, which is Python, by these words before it.
    fn start(bridged: &Bridged, before: &[&str], program: &Path) -> Self {
        let user = bridged.pilot.user();
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/e2e/bridge/impostor.py");
        let mut command = Command::new(before.first().map_or(program.as_os_str(), |first| first.as_ref()));
        command.args(before.get(1..).unwrap_or_default());
        if !before.is_empty() {
            command.arg(program);
        }
        command
            .arg(script)
            .arg(user.join("run/pilotlight/bridge.sock"))
            .arg(user.join(".local/state/pilotlight/bridge.key"));
        command.env("PYTHONHOME", "/usr").stdout(Stdio::piped());
        // A child that another test forks at this moment may briefly hold the new program open for writing.
        let mut child = wait_until(SOON, "it can be started", String::new, || match command.spawn() {
            Err(error) if error.kind() == std::io::ErrorKind::ExecutableFileBusy => None,
            started => Some(started.unwrap()),
        });
        let out = BufReader::new(child.stdout.take().unwrap());
        Self(child, out)
    }

    /// What became of the bridge's first connection to it.
    fn first(&mut self) -> String {
        let mut line = String::new();
        self.1.read_line(&mut line).unwrap();
        line.trim().to_owned()
    }
}

impl Drop for Impostor {
    fn drop(&mut self) {
        let _ = self.0.kill(); // it may have ended
        self.0.wait().unwrap();
    }
}

/// A program beside ours whose name ends like that of a deleted one, and one that is mounted over ours where only it sees
/// that.
#[test]
fn case_197_only_the_very_program_is_obeyed() {
    let mut bridged = Bridged::new(&[]);
    let installed = std::fs::read_to_string(extension_in(bridged.pilot.user()).join("bridge.json")).unwrap();
    let program: Value = serde_json::from_str(&installed).unwrap();
    let program = PathBuf::from(program["program"].as_str().unwrap());
    bridged.pilot.end_tray();
    let python = Path::new("/usr/bin/python3").canonicalize().unwrap();
    let beside = program.with_file_name("pilotlight (deleted)");
    copy_program(&python, &beside);
    let first = Impostor::start(&bridged, &[], &beside).first();
    std::fs::remove_file(&beside).unwrap();
    assert_eq!(first, "left");

    let over = format!("mount --bind {python:?} {program:?} && exec \"$@\"");
    let first = Impostor::start(&bridged, &["unshare", "-Urm", "sh", "-c", &over, "sh"], &program).first();
    assert_eq!(first, "left");
}
