//! Scans of live processes: shells named `copilot`, with or without a log.

#![cfg(target_os = "linux")]

use super::*;
use crate::copilot::running::programs;
use crate::copilot::store::SESSIONS;
use pilotlight_core::owner::{Doubt, Owner};
use pilotlight_system::process::testing::{copy, now};
use std::fs;
use std::process::{Child, Command, Stdio};

const A: &str = "beabf016-0350-4b30-ae8f-181db7acd479";
const B: &str = "09930f7c-0850-4aeb-88e2-3afa9e38248d";

/// Homes, and processes that are killed when this is dropped.
struct World {
    scratch: tempfile::TempDir,
    scanner: OpenScanner,
    processes: Vec<Child>,
}

impl World {
    fn new() -> Self {
        let scratch = tempfile::tempdir().unwrap();
        copy("/bin/sh", &scratch.path().join("copilot"));
        Self { scratch, scanner: OpenScanner::default(), processes: Vec::new() }
    }

    fn home(&self, name: &str) -> PathBuf {
        let home = self.scratch.path().join(name);
        fs::create_dir_all(home.join(SESSIONS)).unwrap();
        fs::create_dir_all(home.join("logs")).unwrap();
        home
    }

    /// Starts a Copilot of this home, with this command line.
    fn start(&mut self, home: &Path, arguments: &[&str]) -> u32 {
        let program = self.scratch.path().join("copilot");
        let mut command = Command::new(&program);
        command.args(["-c", "read line"]).args(arguments).env_clear().env("COPILOT_HOME", home);
        let child = command.stdin(Stdio::piped()).spawn().unwrap();
        let pid = child.id();
        self.processes.push(child);
        // The kernel shows a new program a moment before its command line.
        let [exe, line] = ["exe", "cmdline"].map(|file| format!("/proc/{pid}/{file}"));
        while !(fs::read_link(&exe).is_ok_and(|exe| exe == program) && fs::read(&line).is_ok_and(|it| !it.is_empty())) {
            std::thread::park_timeout(std::time::Duration::from_millis(1));
        }
        pid
    }

    fn log(&self, home: &Path, pid: u32, lines: &[&str]) {
        let lines: String = lines.iter().map(|line| format!("2126-11-22T01:02:18.498Z [INFO] {line}\n")).collect();
        fs::write(home.join("logs").join(format!("process-4951000000000-{pid}.log")), lines).unwrap();
    }

    /// The open sessions of this test's processes.
    fn scan(&mut self, homes: &[&Path]) -> OpenSessions {
        let roots: Vec<_> = homes.iter().map(|home| home.join(SESSIONS)).collect();
        let mut found = self.scanner.scan(&roots, &[], now());
        found.retain(|opening| self.processes.iter().any(|child| child.id() == opening.pid));
        found
    }
}

impl Drop for World {
    fn drop(&mut self) {
        for child in &mut self.processes {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// The sessions in a home, each with its process.
fn of(found: &OpenSessions, home: &Path) -> Vec<(String, u32)> {
    let root = home.join(SESSIONS);
    let of_home = found.all().iter().filter(|opening| opening.root == root);
    let mut all: Vec<_> = of_home.map(|it| (it.opened.id().unwrap_or("some").to_owned(), it.pid)).collect();
    all.sort();
    all
}

fn one(id: &str, pid: u32) -> Vec<(String, u32)> {
    vec![(id.to_owned(), pid)]
}

#[test]
fn case_116_a_command_line_names_the_session_and_the_environment_its_home() {
    let mut world = World::new();
    let (home, other) = (world.home("home"), world.home("other"));
    let forms: [&[&str]; 6] = [
        &[&format!("--resume={A}")],
        &["--no-auto-update", "--resume", A],
        &["-r", A, "--allow-all"],
        &[&format!("-r{A}")],
        &["--session-id", A],
        &["--resume", &A.to_uppercase()],
    ];
    for form in forms {
        let pid = world.start(&home, form);
        let found = world.scan(&[&home, &other]);
        assert_eq!(of(&found, &home), one(A, pid), "{form:?}");
        assert!(of(&found, &other).is_empty());
        let opening = &found.all()[0];
        assert!(matches!(opening.owner(None), Owner::Opened { started: Some(_), .. }));
        let root = home.join(SESSIONS);
        assert!(found.of(&root, A) == Some(opening) && found.of(&root, B).is_none() && found.of(&other, A).is_none());
        let mut child = world.processes.pop().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(world.scan(&[&home]).all().is_empty(), "and ends with it");
    }
    for none in [&["-p", "hello"][..], &["--", "--resume", A], &[]] {
        world.start(&home, none);
        assert!(world.scan(&[&home]).all().is_empty(), "{none:?}");
    }
}

#[test]
fn case_116_the_log_shows_which_session_was_chosen_and_which_was_closed() {
    let mut world = World::new();
    let home = world.home("home");
    let pid = world.start(&home, &["--resume"]);
    let opens = |id: &str| format!("Workspace initialized: {id} (checkpoints: 0)");
    let (a, b, closes) = (opens(A), opens(B), format!("Closing session {A}"));
    world.log(&home, pid, &[&a]);
    assert_eq!(of(&world.scan(&[&home]), &home), one(A, pid));
    world.log(&home, pid, &[&a, &b]);
    assert_eq!(of(&world.scan(&[&home]), &home).len(), 2, "the first stays loaded");
    world.log(&home, pid, &[&a, &b, &closes]);
    assert_eq!(of(&world.scan(&[&home]), &home), one(B, pid));
    // A session that was closed is not open, though the command line names it.
    let named = world.start(&home, &[&format!("--resume={A}")]);
    assert_eq!(of(&world.scan(&[&home]), &home).len(), 2);
    world.log(&home, named, &[&a, &closes]);
    assert_eq!(of(&world.scan(&[&home]), &home), one(B, pid));
    // The log of an earlier process of the same id is ignored.
    let late = world.start(&home, &[]);
    fs::write(home.join("logs").join(format!("process-1700000000000-{late}.log")), "").unwrap();
    world.scanner = OpenScanner::default();
    assert_eq!(of(&world.scan(&[&home]), &home), one(B, pid));
}

#[test]
fn case_116_recorded_sessions_count_only_for_a_process_without_other_evidence() {
    let mut world = World::new();
    let home = world.home("home");
    let note =
        |at: Time| format!(r#"{{"{A}":{{"schemaVersion":1,"openedAt":"{at}","refreshedAt":"{at}","working":false}}}}"#);
    fs::write(home.join(OPEN_SESSIONS), note(now())).unwrap();
    assert!(world.scan(&[&home]).all().is_empty(), "a record without a process");
    let pid = world.start(&home, &["--continue"]);
    assert_eq!(of(&world.scan(&[&home]), &home), one(A, pid));
    fs::write(home.join(OPEN_SESSIONS), note(now() - Span::minutes(5))).unwrap();
    assert_eq!(
        of(&world.scan(&[&home]), &home),
        one("some", pid),
        "recorded before it started: which one it opens is unknown yet"
    );
    let found = world.scan(&[&home]);
    let root = home.join(SESSIONS);
    assert!(found.opener(&root, A).is_some() && found.opener(&root, B).is_some());
    let mut program = programs(&[], now()).into_iter().find(|program| program.pid == pid).unwrap();
    program.started = program.started.map(|at| at - STARTING);
    assert!(
        KnownProcess::default().sessions_of(&program, std::slice::from_ref(&home), now()).is_empty(),
        "and stays unknown"
    );
    for broken in ["", "[]", "{\"a\":1}", "{\"a\":{\"openedAt\":7}}"] {
        fs::write(home.join(OPEN_SESSIONS), broken).unwrap();
        assert!(noted(&home).is_empty(), "{broken}");
    }
}

/// While a process starts, a session opened by another terminal is not taken for its own: its log will show which are.
#[test]
fn case_116_recorded_sessions_do_not_count_for_a_process_whose_log_has_just_begun() {
    let mut world = World::new();
    let home = world.home("home");
    let pid = world.start(&home, &[]);
    world.log(&home, pid, &["Starting"]);
    let note = format!(r#"{{"{A}":{{"schemaVersion":1,"openedAt":"{}","working":false}}}}"#, now());
    fs::write(home.join(OPEN_SESSIONS), note).unwrap();
    assert_eq!(of(&world.scan(&[&home]), &home), one("some", pid));
    // A process that has run for long without such lines does not log them.
    let mut program = programs(&[], now()).into_iter().find(|program| program.pid == pid).unwrap();
    program.started = program.started.map(|at| at - STARTING);
    let long = KnownProcess::default().sessions_of(&program, std::slice::from_ref(&home), now());
    let [Shown { opened, guessed: Some(_), .. }] = &*long else { panic!("{long:?}") };
    assert_eq!(*opened, Opened::Session(A.into()));
}

/// The same program does more than showing sessions, and of the rest nothing is recorded in its home.
#[test]
fn case_551_helpers_servers_and_prompts_own_nothing_by_what_their_home_records() {
    let mut world = World::new();
    let home = world.home("home");
    // Each process is older than what is recorded once it runs.
    let record = || {
        let note =
            format!(r#"{{"{A}":{{"schemaVersion":1,"openedAt":"{}","working":true}}}}"#, now() + Span::seconds(1));
        fs::write(home.join(OPEN_SESSIONS), note).unwrap();
    };
    for line in [
        &["update"][..],
        &["--version"],
        &["--log-level", "error", "plugin", "install", "x"],
        &["mcp", "list"],
        &["-p", "hello"],
        &["-p", "hello", "--log-level", "none"],
        &["/x/preloads/extension_bootstrap.mjs"],
        &["--server", "--log-level", "error"],
        &["--acp"],
    ] {
        let pid = world.start(&home, line);
        record();
        let found = world.scan(&[&home]);
        let root = home.join(SESSIONS);
        assert!(!found.has(&root, A) && found.opener(&root, A).is_none(), "{line:?}: {:?}", found.all());
        // Only of a server nobody knows what it has open.
        let suspects: Vec<_> = found.suspects(&root, A, None, None).collect();
        let serves = line[0] == "--server" || line[0] == "--acp";
        assert_eq!(suspects, if serves { vec![pid] } else { vec![] }, "{line:?}");
        let mut child = world.processes.pop().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let pid = world.start(&home, &["--log-level", "error"]);
    record();
    let found = world.scan(&[&home]);
    let root = home.join(SESSIONS);
    assert!(found.of(&root, A).is_none(), "a terminal's is no more than a guess");
    assert_eq!(found.guess(&root, A, None).map(|(opening, _)| opening.pid), Some(pid));
    assert_eq!(found.guess(&root, A, Some(now() + Span::seconds(5))), None, "older than what is known");
}

/// What it has open shows in its warnings alone, and nothing shows what it closes.
#[test]
fn case_710_a_server_for_editors_may_have_what_it_named_or_anything_of_its_folder() {
    let mut world = World::new();
    let home = world.home("home");
    let root = home.join(SESSIONS);
    let pid = world.start(&home, &["--acp"]);
    let warning = format!("no session host is registered for session {A}\"}}");
    let begins = "2126-11-22T01:02:18.498Z [INFO] Starting ACP server (stdio)\n";
    let path = home.join("logs").join(format!("process-4951000000000-{pid}.log"));
    fs::write(&path, format!("{begins}2126-11-22T01:02:19.498Z [WARNING] [rust:x] {{\"error\":\"{warning}\n")).unwrap();
    let found = world.scan(&[&home]);
    let opening = found.of(&root, A).unwrap();
    assert_eq!(opening.owner(None), Owner::Doubtful { pid, why: Doubt::HadOpen });
    assert_eq!(opening.owner(Some(1)), Owner::Doubtful { pid, why: Doubt::HadOpen }, "a crash of another may be over");
    assert!(found.of(&root, B).is_none() && found.mute(&root, None).is_none(), "its warnings name what it opens");
    assert!(found.opener(&root, A).is_none(), "it is not about to open it");
    let terminal = world.start(&home, &["--resume", A]);
    let found = world.scan(&[&home]);
    assert_eq!(found.of(&root, A).map(|opening| opening.pid), Some(terminal), "one that certainly has it open counts");
    world.processes.pop().unwrap().kill().unwrap();
    // One that has named nothing for a while may be of a release that names nothing.
    fs::write(&path, begins).unwrap();
    let mut program = programs(&[], now()).into_iter().find(|program| program.pid == pid).unwrap();
    program.started = program.started.map(|at| at - STARTING);
    let mut known = KnownProcess::default();
    assert!(known.log.follow(&program, std::slice::from_ref(&home), None));
    let shown = known.sessions_of(&program, std::slice::from_ref(&home), now());
    assert_eq!(shown, [Shown::of(Opened::Untold { folder: program.folder.clone(), may_answer: false })]);
}

/// One that listens is asked before an order. One that talks to its own program alone cannot be.
#[test]
fn case_711_a_server_that_logs_nothing_and_cannot_be_asked_may_have_any_session_of_its_folder() {
    let opening = |folder: &str, may_answer| OpenSession {
        pid: 7,
        inside: None,
        root: "/home/session-state".into(),
        opened: Opened::Untold { folder: Some(folder.into()), may_answer },
        since: None,
        is_uncertain: false,
        may_be_closed: false,
        guessed: None,
    };
    let root = Path::new("/home/session-state");
    let mute = |folder: &str, may_answer, ours: Option<&str>| {
        OpenSessions::new(vec![opening(folder, may_answer)]).mute(root, ours.map(Path::new))
    };
    assert_eq!(mute("/srv/shop", false, Some("/srv/shop")), Some(7));
    assert_eq!(mute("/srv/shop", false, Some("/srv/shop/lib")), Some(7));
    assert_eq!(mute("/srv/shop", false, None), Some(7), "whose folder is not known");
    assert_eq!(mute("/srv/shop", false, Some("/srv/other")), None);
    assert_eq!(mute("/srv/shop", true, Some("/srv/shop")), None, "it is asked");
    let before = OpenSessions::new(vec![opening("/srv/shop", false)]);
    assert!(OpenSessions::default().has_other_runners(&before), "its sessions are looked at again once it has ended");
    assert!(!before.has_other_runners(&before));
}

/// A terminal whose log has lines of that level would have logged what it opened: it waits at a dialog, or at the list.
#[test]
fn case_551_a_terminal_that_logs_owns_nothing_that_it_did_not_log() {
    let mut world = World::new();
    let home = world.home("home");
    let pid = world.start(&home, &["--resume"]);
    world.log(&home, pid, &["Starting"]);
    let note = format!(r#"{{"{A}":{{"schemaVersion":1,"openedAt":"{}","working":true}}}}"#, now());
    fs::write(home.join(OPEN_SESSIONS), note).unwrap();
    let mut program = programs(&[], now()).into_iter().find(|program| program.pid == pid).unwrap();
    let mut known = KnownProcess::default();
    assert!(known.log.follow(&program, std::slice::from_ref(&home), None));
    program.started = program.started.map(|at| at - STARTING);
    assert_eq!(known.sessions_of(&program, std::slice::from_ref(&home), now()), []);
}

#[test]
fn sessions_that_differ_between_two_scans_are_reported() {
    let opening = |pid, id: &str| OpenSession {
        pid,
        inside: None,
        root: "/home/session-state".into(),
        opened: Opened::Session(id.into()),
        since: None,
        is_uncertain: false,
        may_be_closed: false,
        guessed: None,
    };
    let before = OpenSessions::new(vec![opening(1, A), opening(2, B)]);
    let after = OpenSessions::new(vec![opening(1, A), opening(3, B)]);
    let root = Path::new("/home/session-state");
    assert_eq!(after.differing(&before), [(root, B)].into());
    assert!(before.differing(&before).is_empty());
    let mut less = before.clone();
    less.forget(1);
    assert_eq!(less.differing(&before), [(root, A)].into());
}

#[test]
fn an_open_session_is_found_by_its_folder_and_its_id() {
    let opening = |pid, root: &str, id: Option<&str>| OpenSession {
        pid,
        inside: None,
        root: root.into(),
        opened: id.map_or(Opened::Some, |id| Opened::Session(id.into())),
        since: None,
        is_uncertain: false,
        may_be_closed: false,
        guessed: None,
    };
    let (one, other) = (Path::new("/one"), Path::new("/other"));
    let all =
        [(1, "/other", Some(B)), (2, "/one", None), (3, "/one", Some(A)), (4, "/other", Some(A)), (5, "/one", Some(A))];
    let found = OpenSessions::new(all.map(|(pid, root, id)| opening(pid, root, id)).into());
    let pid = |root, id| found.of(root, id).map(|opening| opening.pid);
    assert_eq!((pid(one, A), pid(other, A), pid(other, B), pid(one, B)), (Some(3), Some(4), Some(1), None));
    let opener = |root, id| found.opener(root, id).map(|opening| opening.pid);
    assert_eq!((opener(one, A), opener(one, B), opener(other, "x")), (Some(3), Some(2), None));
}
