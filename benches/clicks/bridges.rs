//! Measures one tray with thirty idle sessions, with and without a bridge for each. The sessions are fakes: a process
//! that poses as Copilot owns the session, and starts another one that speaks the extension's protocol.

use crate::clicks::timing::wait;
use crate::support::desktop::bus::Bus;
use crate::support::desktop::panel::Panel;
use crate::support::desktop::sessions::Sessions;
use crate::support::desktop::tray::{User, sum};
use crate::support::listener::proof;
use crate::support::{SOON, wait_until};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const SESSIONS: usize = 30;
/// How long the idle cost is measured.
const IDLE: Duration = Duration::from_secs(60);
/// Long enough for delayed tasks to have started.
const SETTLE: Duration = Duration::from_secs(8);
/// The roles of a fake process, as arguments.
const OWNER: &str = "--fake-owner";
const EXTENSION: &str = "--fake-extension";

pub(crate) fn measure(_clicks: usize) {
    for has_bridges in [false, true] {
        measure_idle(has_bridges);
    }
}

/// Measures the cost of the tray with idle sessions, all with a bridge or all without.
fn measure_idle(has_bridges: bool) {
    let (bus, sessions) = (Bus::start(), Sessions::new());
    let (user, panel) = (User::new(&sessions), Panel::start(&bus));
    std::fs::create_dir_all(user.state()).unwrap();
    let key = user.state().join("bridge.key");
    std::fs::write(&key, [7; 32]).unwrap();
    let program = sessions.home().with_file_name("copilot");
    std::fs::remove_file(&program).unwrap();
    std::fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    let paths = [user.scratch.path().join("run/pilotlight/bridge.sock"), key];
    let paths = if has_bridges { &paths[..] } else { &[] };
    let tray = user.start_tray(&bus);
    panel.wait_for_icon();
    let start = |id: &str, folder: &Path| owner(&program, id, folder, paths);
    let made: Vec<_> = (0..SESSIONS).map(|n| sessions.add_owned(&format!("session {n}"), start)).collect();
    for session in &made {
        session.prompt();
        session.answer("Done.");
    }
    let bridges = if has_bridges { SESSIONS } else { 0 };
    let is_ready = || {
        let rows = user.rows();
        let joined = rows.iter().filter(|row| row["owner"]["bridge"] == "joined").count();
        (rows.len() == SESSIONS && joined == bridges).then_some(())
    };
    wait_until(SOON, "the sessions and their bridges are there", || format!("{:#?}", user.rows()), is_ready);
    panel.wait_idle();
    wait(SETTLE);
    let before = tray.switches();
    wait(IDLE);
    let switches = sum(&tray.switches().since(&before)) as f64 / IDLE.as_secs_f64();
    println!(
        "{:<46} {switches:.2} context switches a second over {IDLE:?} ({})",
        format!("the tray, {SESSIONS} idle sessions, {bridges} bridges"),
        tray.memory()
    );
}

/// Starts a process that owns the session in this folder. With `paths`, its socket and its key, it also starts an
/// extension.
fn owner(program: &Path, id: &str, folder: &Path, paths: &[PathBuf]) -> Child {
    let mut command = Command::new(program);
    command.arg(OWNER).arg(id).arg(folder).args(paths).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "held\n");
    child
}

/// Plays the role that the arguments name, until the parent process ends. Returns `false` if they name none.
pub(crate) fn run_fake(arguments: &[String]) -> bool {
    match &arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [OWNER, id, folder, rest @ ..] => {
            let hold =
                std::fs::File::create(Path::new(folder).join(format!("inuse.{}.hold", std::process::id()))).unwrap();
            rustix::fs::flock(&hold, rustix::fs::FlockOperation::LockExclusive).unwrap();
            let mut extension = Command::new(std::env::current_exe().unwrap());
            extension.args([EXTENSION, id]).args(rest).arg("/preloads/extension_bootstrap.mjs").stdin(Stdio::piped());
            let extension = (!rest.is_empty()).then(|| extension.spawn().unwrap());
            println!("held");
            let _ = std::io::stdin().read_line(&mut String::new());
            if let Some(mut extension) = extension {
                drop(extension.stdin.take());
                let _ = extension.wait();
            }
        }
        [EXTENSION, id, socket, key, ..] => {
            let (id, key) = ((*id).to_owned(), std::fs::read(key).unwrap());
            let stream = wait_until(SOON, "the tray listens", String::new, || UnixStream::connect(socket).ok());
            std::thread::spawn(move || extension(&stream, &id, &key));
            let _ = std::io::stdin().read_line(&mut String::new());
        }
        _ => return false,
    }
    true
}

fn extension(stream: &UnixStream, id: &str, key: &[u8]) {
    let (nonce, pid, ppid) = ("00", std::process::id(), std::os::unix::process::parent_id());
    let send = |message: Value| writeln!(&*stream, "{message}").unwrap();
    send(
        json!({"t": "hello", "v": 1, "session": id, "pid": pid, "ppid": ppid, "cli": "1.0.102", "elevated": false, "nonce": nonce}),
    );
    let mut lines = BufReader::new(stream).lines();
    let welcome: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
    send(json!({"t": "proof", "proof": proof(key, "ext", welcome["nonce"].as_str().unwrap(), id)}));
    send(json!({"t": "pending", "items": []}));
    while lines.next().is_some() {}
}
