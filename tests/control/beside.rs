//! Orders that come while another one is being carried out, over the real tray's socket.

use super::trays::{Tray, answer, connect, socket};
use crate::support::executable::executable;
use crate::support::made_up::{Folder, User, holder};
use crate::support::{SOON, wait_until};
use pilotlight::core::order::{Ask, Order, Outcome, Report};
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::process::Child;

/// A Copilot that takes no notice of Ctrl-C; ended with the test.
struct Deaf(Child);

impl Deaf {
    fn start(user: &User, session: &Folder) -> Self {
        let program = user.scratch.path().join("copilot");
        std::fs::copy("/bin/sleep", &program).unwrap();
        Self(holder::start(&program, &session.path, true))
    }
}

impl Drop for Deaf {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn give(user: &User, id: &str, ask: Ask) -> UnixStream {
    let mut stream = connect(user);
    let mut line = serde_json::to_vec(&Order::new(id, ask)).unwrap();
    line.push(b'\n');
    stream.write_all(&line).unwrap();
    stream
}

fn end(stream: UnixStream) -> Outcome {
    let answer = answer(stream);
    let last = answer.lines().last().unwrap_or_default();
    match serde_json::from_str(last) {
        Ok(Report::End(outcome)) => outcome,
        other => panic!("{other:?}: {answer:?}"),
    }
}

/// A look at the terminal takes nothing away from what is being done: that goes on, nothing is begun beside it, and whoever
/// asked for it is told how it ended.
#[test]
fn what_is_under_way_survives_a_look_at_the_terminal() {
    let user = User::new();
    let session = user.session(1);
    let deaf = Deaf::start(&user, &session);
    session.lock(deaf.0.id());
    session.prompt();
    let tray = Tray::start(&user);
    let ending = give(&user, &session.id, Ask::End { confirmed: true });
    let under_way = || {
        let outcome = end(give(&user, &session.id, Ask::Stop));
        matches!(&outcome, Outcome::Refused(why) if why == "end is under way").then_some(())
    };
    wait_until(SOON, "its end is under way", || tray.said(), under_way);
    let shown = end(give(&user, &session.id, Ask::ShowTerminal));
    assert!(matches!(&shown, Outcome::Failed(why) if why.contains("cannot be shown")), "{shown:?}");
    let again = end(give(&user, &session.id, Ask::End { confirmed: true }));
    assert_eq!(again, Outcome::Refused("end is under way".into()));
    let pid = deaf.0.id();
    assert_eq!(end(ending), Outcome::Done(format!("process {pid} has ended; the session can be resumed")));
    // Nothing is left under way.
    let after = end(give(&user, &session.id, Ask::End { confirmed: true }));
    assert!(matches!(&after, Outcome::Refused(why) if why.contains("nothing to end")), "{after:?}");
}

/// A copy of the user's home, with the same sessions in it.
fn copied(user: &User, id: &str) -> std::path::PathBuf {
    let copy = user.scratch.path().join("copy");
    let folder = copy.join("session-state").join(id);
    std::fs::create_dir_all(&folder).unwrap();
    for file in ["workspace.yaml", "events.jsonl"] {
        std::fs::copy(user.sessions().join(id).join(file), folder.join(file)).unwrap();
    }
    copy
}

/// An order names a session by its id: where that is not one session, nothing is done to either.
#[test]
fn of_two_sessions_with_one_id_none_is_guessed() {
    let user = User::new();
    let session = user.session(1);
    session.prompt();
    let copy = copied(&user, &session.id);
    let owner = session.owner(&user);
    let homes = [user.home().display().to_string(), copy.display().to_string()];
    let tray = Tray::start_from(&user, user.pilotlight(&["--home", &homes[0], "--home", &homes[1], "tray"]));
    wait_until(SOON, "the tray serves", || tray.said(), || socket(&user).exists().then_some(()));
    let ended = end(give(&user, &session.id, Ask::ForceQuit));
    assert!(
        matches!(&ended, Outcome::Refused(why) if why.contains("two homes have a session of this id")),
        "{ended:?}"
    );
    assert!(std::path::Path::new(&format!("/proc/{}/exe", owner.pid())).exists());
}

/// Case 123: what is asked of a copy is not done by the tray to the session that was copied, whichever home is the usual one.
#[test]
fn case_123_what_is_asked_of_a_copy_is_not_done_by_a_tray_that_watches_the_other_home() {
    let user = User::new();
    let session = user.session(1);
    session.prompt();
    let copy = copied(&user, &session.id);
    let owner = session.owner(&user);
    let lives = || std::path::Path::new(&format!("/proc/{}/exe", owner.pid())).exists();
    let tray = Tray::start(&user);
    wait_until(SOON, "the tray serves", || tray.said(), || socket(&user).exists().then_some(()));
    for usual in [&copy, &user.home()] {
        let mut command = user.pilotlight(&["--home", copy.to_str().unwrap(), "stop", "00000001", "--yes"]);
        let output = command.env("COPILOT_HOME", usual).output().unwrap();
        assert!(output.status.code() == Some(4) && lives(), "{usual:?}: {output:?}");
    }
    // The home itself may be named by another path.
    let link = user.scratch.path().join("link");
    std::os::unix::fs::symlink(user.home(), &link).unwrap();
    let output = user.run(&["--home", link.to_str().unwrap(), "stop", "00000001", "--yes"]);
    assert!(output.status.success(), "{output:?}");
    wait_until(SOON, "its owner is gone", || format!("{output:?}"), || (!lives()).then_some(()));
}

/// Case 69: however many are to be resumed, three are at a time, and all of them in the end.
#[test]
fn case_69_what_is_resumed_together_is_resumed_three_at_a_time() {
    const SESSIONS: u32 = 10;
    let user = User::new();
    let file = |name: &str| user.scratch.path().join(name);
    let script = |name: &str, text: &str| {
        executable(&file(name), &format!("#!/bin/sh\n{text}\n"));
        file(name).display().to_string()
    };
    std::fs::create_dir(file("now")).unwrap();
    let (now, counts) = (file("now").display().to_string(), file("counts").display().to_string());
    let copilot = script(
        "copilot-double",
        &format!(
            "mkdir {now}/$$; ls {now} | wc -l >>{counts}; sleep 0.2; rmdir {now}/$$; echo 'GitHub Copilot CLI 1.0.102.'"
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
    wait_until(SOON, "the tray serves", || tray.said(), || socket(&user).exists().then_some(()));
    let given: Vec<_> = sessions.iter().map(|session| give(&user, &session.id, Ask::Resume)).collect();
    for stream in given {
        let outcome = end(stream);
        assert!(matches!(&outcome, Outcome::Done(words) if words.contains("opened in")), "{outcome:?}");
    }
    let counts = std::fs::read_to_string(counts).unwrap();
    let counts: Vec<u32> = counts.lines().map(|line| line.trim().parse().unwrap()).collect();
    assert_eq!(counts.len(), SESSIONS as usize);
    assert!(counts.iter().all(|count| *count <= 3), "{counts:?}");
}
