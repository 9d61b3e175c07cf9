//! `wait`, run by the real program: it ends when what it waits for is true, and not before.

use crate::control::hosts::{name_hosts, serves};
use crate::control::trays::Tray;
use crate::support::synthetic::{Folder, User};
use crate::support::{SOON, wait, wait_until};
use serde_json::Value;
use std::fs;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::process::{Child, Stdio};
use std::time::Duration;

/// A `wait` that runs.
struct Waiting(Child);

impl Waiting {
    fn start(user: &User, args: &[&str]) -> Self {
        let mut command = user.pilotlight(&[&["wait"], args].concat());
        Self(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap())
    }

    /// Waits until it follows the files of these sessions. Until then, it does not know what it had to be told of.
    fn follows(&self, sessions: &[&Folder]) {
        let watched = || {
            let infos =
                fs::read_dir(format!("/proc/{}/fdinfo", self.0.id())).into_iter().flatten().filter_map(Result::ok);
            infos.filter_map(|info| fs::read_to_string(info.path()).ok()).collect::<String>()
        };
        let ino = |session: &&Folder| format!(" ino:{:x} ", fs::metadata(&session.path).unwrap().ino());
        let follows = || sessions.iter().all(|session| watched().contains(&ino(session))).then_some(());
        wait_until(SOON, "it follows them", watched, follows);
    }

    /// Asserts that it is not over.
    fn still_waits(&mut self) {
        let ended = wait(Duration::from_millis(700), || self.0.try_wait().unwrap());
        assert!(ended.is_none(), "{ended:?}: {}", self.said());
    }

    fn said(&mut self) -> String {
        let mut said = String::new();
        self.0.stdout.take().unwrap().read_to_string(&mut said).unwrap();
        self.0.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        said
    }

    /// How it ends, and what it says.
    fn end(mut self) -> (Option<i32>, String) {
        let ended = wait_until(SOON, "it ends", String::new, || self.0.try_wait().unwrap());
        (ended.code(), self.said())
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn run(user: &User, args: &[&str]) -> (Option<i32>, String) {
    Waiting::start(user, args).end()
}

fn ids(said: &str) -> Vec<Value> {
    said.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["id"].clone()).collect()
}

fn both() -> (User, Folder, Folder) {
    let user = User::new();
    let (a, b) = (user.session(1), user.session(2));
    a.prompt();
    b.prompt();
    (user, a, b)
}

#[test]
fn case_760_it_returns_at_once_if_it_is_so_already() {
    let (user, a, b) = both();
    let _owners = (a.owner(&user), b.owner(&user));
    a.answer();
    assert_eq!(run(&user, &["Session 1"]), (Some(0), "project · Session 1: idle, done, your turn\n".into()));
    let (code, said) = run(&user, &["--json", "--until", "working,idle", "--all"]);
    assert_eq!((code, ids(&said)), (Some(0), vec![a.id.clone().into(), b.id.clone().into()]));
    let (code, said) = run(&user, &["--json", "--until", "working", &a.id, &b.id]);
    assert_eq!((code, ids(&said)), (Some(0), vec![Value::from(b.id)]));
    let old = user.session(3);
    old.ended(Duration::from_hours(24 * 30));
    assert_eq!(run(&user, &["--until", "ended", &old.id]).0, Some(0), "one that is not watched any more");
}

/// Without a tray, and beside one.
#[test]
fn case_760_it_ends_when_it_becomes_so() {
    for has_tray in [false, true] {
        let (user, a, b) = both();
        let (_owner, other) = (a.owner(&user), b.owner(&user));
        let _tray = has_tray.then(|| Tray::start(&user));
        let mut any = Waiting::start(&user, &[]);
        let mut all = Waiting::start(&user, &["--all", "--until", "idle", "--json"]);
        let mut end = Waiting::start(&user, &["--until", "ended", "--json"]);
        any.still_waits();
        a.asks_permission("r1");
        let (code, said) = any.end();
        assert_eq!((code, &*said), (Some(0), "project · Session 1: needs-permission, asks for permission: shell\n"));
        a.log_event("permission.completed", r#"{"requestId":"r1","result":{"kind":"approved"}}"#);
        a.answer();
        all.still_waits();
        end.still_waits();
        b.log_event("session.shutdown", "{}");
        other.kill();
        assert_eq!(ids(&end.end().1), [Value::from(b.id.as_str())]);
        let (code, said) = all.end();
        assert_eq!((code, ids(&said)), (Some(0), vec![Value::from(a.id.as_str())]), "the other one is over");
    }
}

#[test]
fn case_760_a_session_that_begins_later_counts() {
    let user = User::new();
    let mut waiting = Waiting::start(&user, &["--json"]);
    waiting.still_waits();
    let session = user.session(1);
    let _owner = session.owner(&user);
    session.prompt();
    session.asks_permission("r1");
    let (code, said) = waiting.end();
    assert_eq!((code, ids(&said)), (Some(0), vec![Value::from(session.id)]));
}

#[test]
fn case_761_what_is_not_so_in_time_ends_with_a_code_of_its_own() {
    let (user, a, b) = both();
    let _owners = (a.owner(&user), b.owner(&user));
    let (now, later) = ("no session has that status now", "timed out after 1 s");
    for (timeout, why) in [("0", now), ("0s", now), ("0 ms", now), ("300ms", now), ("1s", later)] {
        let (code, said) = run(&user, &["--timeout", timeout, "--json", "Session 1"]);
        assert!(code == Some(6) && said.contains(&format!("{why}: project · Session 1 is working")), "{said}");
        assert!(!said.contains('{'), "nothing came true: {said}");
    }
    for wrong in ["soon", "-1", "", "5 weeks", "99999999999d", "1e99", "0e", "-0s"] {
        assert_eq!(run(&user, &[&format!("--timeout={wrong}")]).0, Some(2), "{wrong}");
    }
}

#[test]
fn case_761_nothing_of_that_name_and_no_such_status() {
    let (user, a, _) = both();
    let _owner = a.owner(&user);
    let (code, said) = run(&user, &["nobody"]);
    assert!(code == Some(3) && said.contains("no session has \"nobody\""), "{said}");
    let (code, said) = run(&user, &["Session 1", "nobody"]);
    assert!(code == Some(3), "{said}");
    let (code, said) = run(&user, &["project"]);
    assert!(code == Some(2) && said.contains("means 2 sessions"), "{said}");
    assert_eq!(run(&user, &[""]).0, Some(2), "an unset variable names nothing");
    for wrong in ["dance", "idle,dance", "", "n\u{1b}[31mobody"] {
        let (code, said) = run(&user, &["--until", wrong]);
        assert!(code == Some(2) && said.contains("needs-permission") && !said.contains('\u{1b}'), "{said}");
    }
    let empty = User::new();
    fs::remove_dir_all(empty.home()).unwrap();
    assert_eq!(run(&empty, &[]).0, Some(3), "there is no home");
}

#[test]
fn case_761_a_session_whose_folder_is_removed() {
    let (user, a, b) = both();
    let _owners = (a.owner(&user), b.owner(&user));
    let mut idle = Waiting::start(&user, &["--until", "idle", &a.id]);
    let mut ended = Waiting::start(&user, &["--until", "ended", "--json", &a.id]);
    idle.still_waits();
    ended.still_waits();
    // At once, and not one file after another.
    fs::rename(&a.path, user.scratch.path().join("removed")).unwrap();
    let (code, said) = idle.end();
    assert!(code == Some(3) && said.contains("is gone"), "{said}");
    let (code, said) = ended.end();
    assert_eq!((code, said), (Some(0), format!("{{\"id\":\"{}\",\"removed\":true}}\n", a.id)));
}

#[test]
fn case_762_a_session_on_another_machine() {
    for has_tray in [false, true] {
        let (near, remote) = (User::new(), User::new());
        name_hosts(&near, &[("devbox", serves(&remote))]);
        let there = remote.session(2);
        let _owner = there.owner(&remote);
        there.prompt();
        let _tray = has_tray.then(|| Tray::start(&near));
        // No session is open here: that is not yet all.
        let mut all = Waiting::start(&near, &["--all", "--until", "idle"]);
        let mut named = Waiting::start(&near, &["--host", "devbox", "--json", "Session 2"]);
        all.still_waits();
        named.still_waits();
        there.answer();
        let (code, said) = named.end();
        assert_eq!((code, ids(&said)), (Some(0), vec![Value::from(there.id.as_str())]), "{said}");
        assert_eq!(all.end().0, Some(0));
        assert_eq!(run(&near, &["--host", "nowhere"]).0, Some(2));
    }
}

#[test]
fn case_762_a_machine_that_is_not_reached_is_named_and_holds_nothing_up() {
    let near = User::new();
    name_hosts(&near, &[("devbox", vec!["false".into()])]);
    let (code, said) = run(&near, &["--all", "--until", "idle"]);
    assert!(code == Some(0) && said.contains("devbox is not reached"), "{said}");
    let (code, said) = run(&near, &["--host", "devbox", "nobody"]);
    assert!(code == Some(1) && said.contains("devbox is not reached"), "it may be there: {said}");
}

/// Given: sessions at work, whose folders are deleted file by file, the log first. -> None of them is idle for an instant: `wait`
/// for that says that they are gone.
#[test]
fn case_799_a_session_whose_folder_is_deleted_is_not_idle_meanwhile() {
    let (user, a, b) = both();
    let _owners = (a.owner(&user), b.owner(&user));
    let watch = user.watch();
    watch.wait_status(&a, "working");
    watch.wait_status(&b, "working");
    let waiting = Waiting::start(&user, &["--until", "idle", &a.id, &b.id]);
    waiting.follows(&[&a, &b]);
    for session in [&a, &b] {
        fs::remove_file(session.log()).unwrap();
        // Long enough to be noticed, and far from as long as a folder may take: the machine may be busy.
        wait::<()>(Duration::from_millis(100), || None);
        fs::remove_dir_all(&session.path).unwrap();
        watch.wait_row(session, "removed", |row| row["removed"] == true);
    }
    let (code, said) = waiting.end();
    assert_eq!(code, Some(3), "{said}");
    let idle: Vec<_> = watch.lines().into_iter().filter(|line| line["status"] == "idle").collect();
    assert_eq!(idle, Vec::<Value>::new());
}

/// The same where that takes longer than a moment.
#[test]
fn case_840_a_session_whose_folder_is_deleted_slowly_is_not_idle_meanwhile() {
    let (user, a, _) = both();
    let _owner = a.owner(&user);
    let watch = user.watch();
    watch.wait_status(&a, "working");
    let files: Vec<_> = (0..5).map(|n| a.path.join(format!("file-{n}"))).collect();
    files.iter().for_each(|file| fs::write(file, "").unwrap());
    let mut waiting = Waiting::start(&user, &["--until", "idle", &a.id]);
    waiting.follows(&[&a]);
    for file in [&[a.log()], &files[..]].concat() {
        fs::remove_file(file).unwrap();
        // All together longer than a folder may take without a change, and each much shorter: the machine may be busy.
        let ended = wait(Duration::from_millis(450), || waiting.0.try_wait().unwrap());
        assert!(ended.is_none(), "{ended:?}: {}", waiting.said());
    }
    fs::remove_dir_all(&a.path).unwrap();
    assert_eq!(waiting.end().0, Some(3));
    let idle: Vec<_> = watch.lines().into_iter().filter(|line| line["status"] == "idle").collect();
    assert_eq!(idle, Vec::<Value>::new());
}

/// A log that stays away is none: the session is as one that was not prompted yet.
#[test]
fn case_799_a_log_that_stays_away_is_gone_after_a_moment() {
    let (user, a, _) = both();
    let _owner = a.owner(&user);
    let watch = user.watch();
    watch.wait_status(&a, "working");
    fs::remove_file(a.log()).unwrap();
    watch.wait_status(&a, "idle");
}
