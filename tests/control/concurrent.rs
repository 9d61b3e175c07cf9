//! Orders sent over the real tray's socket while another one is under way, or for one of several homes.

use super::trays::{Tray, answer, connect, socket};
use crate::support::executable::{copy_program, executable};
use crate::support::synthetic::{Folder, User, holder};
use crate::support::{SOON, wait_until};
use pilotlight_core::order::{Operation, Order, OrderReport, Outcome, Which};
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::process::Child;
use std::time::Duration;

/// A Copilot that ignores Ctrl-C. Killed when dropped.
struct IgnoresInterrupt(Child);

impl IgnoresInterrupt {
    fn start(user: &User, session: &Folder) -> Self {
        let program = user.scratch.path().join("copilot");
        copy_program("/bin/sleep", &program);
        Self(holder::start(&program, &session.path, true))
    }
}

impl Drop for IgnoresInterrupt {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn send(user: &User, id: &str, operation: Operation) -> UnixStream {
    let mut stream = connect(user);
    let mut line = serde_json::to_vec(&Order::new(id, operation)).unwrap();
    line.push(b'\n');
    stream.write_all(&line).unwrap();
    stream
}

fn outcome(stream: UnixStream) -> Outcome {
    let answer = answer(stream);
    let last = answer.lines().last().unwrap_or_default();
    match serde_json::from_str(last) {
        Ok(OrderReport::End(outcome)) => outcome,
        other => panic!("{other:?}: {answer:?}"),
    }
}

/// The order continues, no second one is begun, and the client that sent it receives its outcome.
#[test]
fn showing_the_terminal_does_not_disturb_an_order_under_way() {
    let user = User::new();
    let session = user.session(1);
    let copilot = IgnoresInterrupt::start(&user, &session);
    session.lock(copilot.0.id());
    session.prompt();
    let tray = Tray::start(&user);
    let ending = send(&user, &session.id, Operation::End { confirmed: true });
    let under_way = || {
        let stop = outcome(send(&user, &session.id, Operation::Stop));
        matches!(&stop, Outcome::Refused(why) if why == "end is under way").then_some(())
    };
    wait_until(SOON, "its end is under way", || tray.output(), under_way);
    let shown = outcome(send(&user, &session.id, Operation::ShowTerminal));
    assert!(matches!(&shown, Outcome::Refused(why) if why.contains("no X11 desktop")), "{shown:?}");
    let again = outcome(send(&user, &session.id, Operation::End { confirmed: true }));
    assert_eq!(again, Outcome::Refused("end is under way".into()));
    let pid = copilot.0.id();
    assert_eq!(outcome(ending), Outcome::Done(format!("process {pid} has ended; the session can be resumed")));
    // Nothing is under way any more.
    let after = outcome(send(&user, &session.id, Operation::End { confirmed: true }));
    assert!(matches!(&after, Outcome::Refused(why) if why.contains("nothing to end")), "{after:?}");
}

/// A tray that was just started has read nothing yet of a log that it takes longer to read.
#[test]
fn case_208_an_order_waits_for_the_end_of_its_sessions_log() {
    let user = User::new();
    let session = user.session(1);
    let _owner = session.owner(&user);
    session.prompt();
    session.asks_permission("r-1");
    // The turn is as long as what is read of a log at most.
    let line = session.line(Duration::ZERO, "tool.execution_partial_result", r#"{"toolCallId":"c"}"#);
    session.append(line.repeat((60 << 20) / line.len()));
    let deny = || outcome(send(&user, &session.id, Operation::Deny(Which::These(vec!["r-1".into()]))));
    let tray = Tray::start(&user);
    let early = deny();
    let later = wait_until(
        SOON,
        "its log is read",
        || tray.output(),
        || Some(deny()).filter(|outcome| !matches!(outcome, Outcome::Refused(why) if why.contains("still being read"))),
    );
    assert!(matches!(&later, Outcome::Refused(why) if why.contains("answer it")), "{later:?}");
    let is_said = matches!(&early, Outcome::Refused(why) if why.contains("its log is long, and still being read"));
    assert!(early == later || is_said, "{early:?} {later:?}");
}

/// A copy of the user's home, with this session in it.
fn copy_home(user: &User, id: &str) -> std::path::PathBuf {
    let copy = user.scratch.path().join("copy");
    let folder = copy.join("session-state").join(id);
    std::fs::create_dir_all(&folder).unwrap();
    for file in ["workspace.yaml", "events.jsonl"] {
        std::fs::copy(user.sessions().join(id).join(file), folder.join(file)).unwrap();
    }
    copy
}

/// An order without a home names a session by its id alone.
#[test]
fn an_order_for_an_id_that_two_homes_have_is_refused() {
    let user = User::new();
    let session = user.session(1);
    session.prompt();
    let copy = copy_home(&user, &session.id);
    let owner = session.owner(&user);
    let homes = [user.home().display().to_string(), copy.display().to_string()];
    let tray = Tray::start_from(&user, user.pilotlight(&["--home", &homes[0], "--home", &homes[1], "tray"]));
    wait_until(SOON, "the tray serves", || tray.output(), || socket(&user).exists().then_some(()));
    let ended = outcome(send(&user, &session.id, Operation::ForceQuit));
    assert!(
        matches!(&ended, Outcome::Refused(why) if why.contains("two homes have a session with this id")),
        "{ended:?}"
    );
    assert!(std::path::Path::new(&format!("/proc/{}/exe", owner.pid())).exists());
}

/// Whichever of the two is the default home.
#[test]
fn case_123_an_order_for_a_copied_home_does_not_affect_the_original() {
    let user = User::new();
    let session = user.session(1);
    session.prompt();
    let copy = copy_home(&user, &session.id);
    let owner = session.owner(&user);
    let lives = || std::path::Path::new(&format!("/proc/{}/exe", owner.pid())).exists();
    let tray = Tray::start(&user);
    wait_until(SOON, "the tray serves", || tray.output(), || socket(&user).exists().then_some(()));
    for default in [&copy, &user.home()] {
        let mut command = user.pilotlight(&["--home", copy.to_str().unwrap(), "stop", "00000001", "--yes"]);
        let output = command.env("COPILOT_HOME", default).output().unwrap();
        assert!(output.status.code() == Some(4) && lives(), "{default:?}: {output:?}");
    }
    // The original may be named by another path.
    let link = user.scratch.path().join("link");
    std::os::unix::fs::symlink(user.home(), &link).unwrap();
    let output = user.run(&["--home", link.to_str().unwrap(), "stop", "00000001", "--yes"]);
    assert!(output.status.success(), "{output:?}");
    wait_until(SOON, "its owner is gone", || format!("{output:?}"), || (!lives()).then_some(()));
}

#[test]
fn case_69_many_sessions_are_resumed_three_at_a_time() {
    const SESSIONS: u32 = 10;
    let user = User::new();
    let file = |name: &str| user.scratch.path().join(name);
    let script = |name: &str, text: &str| {
        executable(&file(name), &format!("#!/bin/sh\n{text}\n"));
        file(name).display().to_string()
    };
    std::fs::create_dir(file("running")).unwrap();
    let (running, counts) = (file("running").display().to_string(), file("counts").display().to_string());
    let copilot = script(
        "copilot-double",
        &format!(
            "mkdir {running}/$$; ls {running} | wc -l >>{counts}; sleep 0.2; rmdir {running}/$$; echo 'GitHub Copilot CLI 1.0.102.'"
        ),
    );
    let terminal = script("terminal-double", "exit 0");
    std::fs::write(file("config.toml"), format!("[actions]\ncopilot = {copilot:?}\nterminal = [{terminal:?}]\n"))
        .unwrap();
    let sessions: Vec<_> = (1..=SESSIONS).map(|n| user.session(n)).collect();
    for session in &sessions {
        session.prompt();
        let gone = session.owner(&user).kill();
        assert!(session.path.join(format!("inuse.{gone}.lock")).exists());
    }
    let mut tray = user.pilotlight(&["tray"]);
    tray.env("PILOTLIGHT_CONFIG", file("config.toml"));
    let tray = Tray::start_from(&user, tray);
    wait_until(SOON, "the tray serves", || tray.output(), || socket(&user).exists().then_some(()));
    let orders: Vec<_> = sessions.iter().map(|session| send(&user, &session.id, Operation::Resume)).collect();
    for stream in orders {
        let resumed = outcome(stream);
        assert!(matches!(&resumed, Outcome::Done(words) if words.contains("opened in")), "{resumed:?}");
    }
    let counts = std::fs::read_to_string(counts).unwrap();
    let counts: Vec<u32> = counts.lines().map(|line| line.trim().parse().unwrap()).collect();
    assert_eq!(counts.len(), SESSIONS as usize);
    assert!(counts.iter().all(|count| *count <= 3), "{counts:?}");
}
