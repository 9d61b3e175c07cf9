//! Resumes that must wait briefly: for an owner that is exiting, or for a new owner that is not visible yet.

use super::trays::Tray;
use crate::support::executable::{copy_program, executable};
use crate::support::synthetic::{Folder, User};
use crate::support::{SOON, wait_until};
use serde_json::json;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Configures stand-ins for Copilot and for a terminal that do nothing.
fn doubles(user: &User) {
    let script = |name: &str, text: &str| {
        let path = user.scratch.path().join(name);
        executable(&path, &format!("#!/bin/sh\n{text}\n"));
        path.display().to_string()
    };
    let copilot = script("copilot-double", "echo 'GitHub Copilot CLI 1.0.102.'");
    let terminal = script("terminal-double", "exit 0");
    let config = user.scratch.path().join(".config/pilotlight/config.toml");
    fs::create_dir_all(config.parent().unwrap()).unwrap();
    fs::write(config, format!("[actions]\ncopilot = {copilot:?}\nterminal = [{terminal:?}]\n")).unwrap();
}

/// An owner whose main thread exits at the first line of its input, and whose process exits at the end of its input.
struct Dying(Child);

impl Dying {
    fn start(user: &User, session: &Folder) -> Self {
        const SCRIPT: &str = r#"use threads; open(F, ">", "$ARGV[0]/inuse.$$.hold") or die; flock(F, 6) or die;
            open(R, ">", "$ARGV[0]/ready"); close R; sysread STDIN, my $line, 1;
            threads->create(sub { sysread STDIN, my $rest, 9; kill KILL => $$ }); syscall(60, 0);"#;
        let program = user.scratch.path().join("copilot");
        if !program.exists() {
            copy_program("/usr/bin/perl", &program);
        }
        let mut command = Command::new(&program);
        command.args(["-e", SCRIPT]).arg(&session.path).stdin(Stdio::piped());
        let dying = Self(command.spawn().unwrap());
        let ready = session.path.join("ready");
        wait_until(SOON, "the owner holds it", String::new, || ready.exists().then_some(()));
        session.lock(dying.0.id());
        dying
    }

    /// Ends the main thread: the process is a zombie while another thread lives.
    fn dies(&mut self) {
        use std::io::Write;
        self.0.stdin.as_mut().unwrap().write_all(b"\n").unwrap();
        let stat = format!("/proc/{}/stat", self.0.id());
        let is_zombie = || fs::read_to_string(&stat).unwrap().contains(") Z ").then_some(());
        wait_until(SOON, "its main thread has exited", String::new, is_zombie);
    }

    /// Ends the process.
    fn end(mut self) {
        drop(self.0.stdin.take());
        self.0.wait().unwrap();
    }
}

impl Drop for Dying {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// With and without a tray, but not for long: an owner may hang while exiting.
#[test]
fn case_117_a_resume_waits_for_an_owner_that_is_exiting() {
    for with_tray in [false, true] {
        let user = User::new();
        doubles(&user);
        let [soon, never] = [1, 2].map(|n| user.session(n));
        let [mut ends, mut hangs] = [&soon, &never].map(|session| Dying::start(&user, session));
        soon.prompt();
        never.prompt();
        let _tray = with_tray.then(|| Tray::start(&user));
        ends.dies();
        hangs.dies();
        let mut resume = user.pilotlight(&["resume", &soon.id]);
        let resume = resume.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        // The order must not be refused while the owner is exiting.
        std::thread::park_timeout(Duration::from_millis(400));
        ends.end();
        let output = resume.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "with a tray: {with_tray}: {output:?}");
        let output = user.run(&["resume", &never.id]);
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        // A tray that saw the owner alive regards it as such until the system reports its exit.
        let reasons = ["cannot be inspected", "runs it: a second process"];
        assert!(output.status.code() == Some(4) && reasons.iter().any(|reason| stderr.contains(reason)), "{output:?}");
    }
}

/// The session's page in the ledger.
fn page(user: &User) -> PathBuf {
    let folder = user.scratch.path().join(".local/state/pilotlight/sessions");
    let is_page = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "json");
    fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).find(is_page).unwrap()
}

/// Dates the resume on that page back to `seconds` ago.
fn age(page: &Path, seconds: i64) {
    let mut saved: serde_json::Value = serde_json::from_slice(&fs::read(page).unwrap()).unwrap();
    saved["resumed"]["at"] = json!(jiff::Timestamp::now().as_millisecond() - seconds * 1000);
    fs::write(page, saved.to_string()).unwrap();
}

/// Until a minute has passed.
#[test]
fn case_117_a_session_that_was_just_resumed_does_not_offer_resume() {
    let user = User::new();
    doubles(&user);
    let session = user.session(1);
    session.prompt();
    session.owner(&user).kill();
    let offers = |row: &serde_json::Value| row["actions"].as_array().unwrap().contains(&json!("resume"));
    let row = user.row(&session).unwrap();
    assert!(row["status"] == "crashed" && offers(&row), "{row}");
    let watch = user.watch();
    watch.wait_row(&session, "offered", offers);
    let output = user.run(&["resume", &session.id]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let row = user.row(&session).unwrap();
    assert!(!offers(&row), "{row}");
    let explained = user.run(&["explain", &session.id]);
    assert!(String::from_utf8_lossy(&explained.stdout).contains("it was just resumed"), "{explained:?}");
    drop(watch);
    age(&page(&user), 48);
    let watch = user.watch();
    watch.wait_row(&session, "not offered", |row| !offers(row));
    watch.wait_row(&session, "offered when the minute is over", offers);
    assert!(offers(&user.row(&session).unwrap()));
}
