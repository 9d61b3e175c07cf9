//! Locks, and the processes that they name.

use crate::support::executable::copy_program;
use crate::support::synthetic::{Folder, Owner, User};
use crate::support::{SOON, wait_until};
use rustix::process::Signal;
use serde_json::json;
use std::io::{BufRead, BufReader, Lines, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

/// Cases 3 and 60: the owner dies in the middle of a turn. That is reported at once, by an event and not by a
/// poll.
#[test]
fn case_3_and_60_an_owner_that_dies_mid_turn_is_crashed() {
    let (user, session, owner, watch) = User::working(1);
    let row = watch.wait_status(&session, "working");
    assert_eq!(row["owner"], json!({"pid": owner.pid(), "state": "alive", "attachable": false, "bridge": null}));
    let pid = owner.kill();
    let row = watch.wait_status(&session, "crashed");
    assert_eq!(row["owner"], json!({"pid": pid, "state": "gone", "attachable": false, "bridge": null}));
    assert_eq!(user.status_and_reason(&session).0, "crashed");
}

/// Case 71: a dead pid is not running.
#[test]
fn case_71_a_dead_pid_is_not_running() {
    let user = User::new();
    let (idle, open) = (user.session(1), user.session(2));
    let dead = Owner::start(user.scratch.path(), "copilot").kill();
    for session in [&idle, &open] {
        session.lock(dead);
        session.prompt();
    }
    idle.answer();
    assert_eq!(user.status_and_reason(&idle).0, "ended");
    assert_eq!(user.status_and_reason(&open).0, "crashed");
}

/// Case 72: a pid that now belongs to another program, or whose process started after the lock, is not the
/// owner.
#[test]
fn case_72_a_recycled_pid_is_not_the_owner() {
    let user = User::new();
    let (other_program, too_young) = (user.session(1), user.session(2));
    let not_copilot = Owner::start(user.scratch.path(), "firefox");
    other_program.lock(not_copilot.pid());
    other_program.prompt();
    assert_eq!(user.status_and_reason(&other_program).0, "crashed");

    let young = Owner::start(user.scratch.path(), "copilot");
    let lock = too_young.lock(young.pid());
    let hour_ago = std::fs::metadata(&lock).unwrap().modified().unwrap() - Duration::from_secs(3600);
    std::fs::File::options().write(true).open(&lock).unwrap().set_modified(hour_ago).unwrap();
    too_young.prompt();
    assert_eq!(user.status_and_reason(&too_young).0, "crashed");
}

/// Case 68: the wall clock was set forward since the lock was written, so the owner seems to have started
/// after it. It is the owner because it holds the hold file that Copilot keeps next to the lock.
#[test]
fn case_68_a_process_that_holds_the_lock_is_the_owner_whatever_the_clock_says() {
    let user = User::new();
    let session = user.session(1);
    let program = user.scratch.path().join("copilot");
    copy_program("/bin/sleep", &program);
    // Locks the hold file, keeps it open, and execs the owner under the same pid.
    let script = r#"$^F = 255; open(F, ">", "$ARGV[0]/inuse.$$.hold") or die; flock(F, 6) or die; exec $ARGV[1], 600"#;
    let mut child = Command::new("perl").args(["-e", script]).arg(&session.path).arg(&program).spawn().unwrap();
    let pid = child.id();
    let exe = format!("/proc/{pid}/exe");
    wait_until(SOON, "the owner runs", String::new, || {
        std::fs::read_link(&exe).ok().filter(|path| path.ends_with("copilot"))
    });
    let lock = session.lock(pid);
    let hour_ago = std::fs::metadata(&lock).unwrap().modified().unwrap() - Duration::from_secs(3600);
    std::fs::File::options().write(true).open(&lock).unwrap().set_modified(hour_ago).unwrap();
    session.prompt();
    let (status, because) = user.status_and_reason(&session);
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(status, "working", "{because}");
}

/// Case 73: of two locks the live one counts.
#[test]
fn case_73_of_two_locks_the_live_one_counts() {
    let user = User::new();
    let session = user.session(1);
    let dead = Owner::start(user.scratch.path(), "copilot").kill();
    let owner = session.owner(&user);
    session.lock(dead);
    session.prompt();
    let row = user.row(&session).unwrap();
    assert_eq!((row["status"].as_str(), row["owner"]["pid"].as_u64()), (Some("working"), Some(owner.pid().into())));
}

/// Case 87: two live owners, or a forked log, are shown as a conflict.
#[test]
fn case_87_two_writers_are_a_conflict() {
    let user = User::new();
    let (locked, forked) = (user.session(1), user.session(2));
    let _owners = (locked.owner(&user), locked.owner(&user), forked.owner(&user));
    locked.prompt();
    let (status, because) = user.status_and_reason(&locked);
    assert!(status == "working" && because.contains("conflict"), "{because}");

    forked.prompt();
    forked.log_event("assistant.turn_start", "{}");
    let line = |id: &str| {
        let event = forked.line(Duration::ZERO, "session.info", "{}");
        let mut event: serde_json::Value = serde_json::from_str(&event).unwrap();
        (event["id"], event["parentId"]) = (json!(id), json!("2"));
        format!("{event}\n")
    };
    forked.append(line("one"));
    assert!(!user.status_and_reason(&forked).1.contains("conflict"));
    forked.append(line("two"));
    let (status, because) = user.status_and_reason(&forked);
    assert!(status == "working" && because.contains("conflict"), "{because}");
}

/// A Copilot that was started to resume a session, and has no prompt yet.
struct Resumed(Child);

impl Resumed {
    fn start(user: &User, session: &Folder) -> Self {
        let folder = user.scratch.path().join("resumed");
        std::fs::create_dir_all(&folder).unwrap();
        let program = folder.join("copilot");
        if !program.exists() {
            assert!(Command::new("cp").arg("/bin/sh").arg(&program).status().unwrap().success());
        }
        let mut command = Command::new(&program);
        command.args(["-c", "read line", &format!("--resume={}", session.id)]).stdin(Stdio::piped());
        let resumed = Self(command.env("COPILOT_HOME", user.home()).spawn().unwrap());
        let line = format!("/proc/{}/cmdline", resumed.0.id());
        wait_until(SOON, "its command line is visible", String::new, || {
            std::fs::read(&line).unwrap().ends_with(b"0000\0").then_some(())
        });
        // Copilot's terminal interface records it like this.
        let (state, new) = (user.home().join("open-sessions-state.json"), user.home().join("state.tmp"));
        let at = jiff::Timestamp::now();
        std::fs::write(&new, json!({&session.id: {"openedAt": at.to_string()}}).to_string()).unwrap();
        std::fs::rename(new, state).unwrap();
        resumed
    }

    fn close(mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Resumed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Case 119: the opening is noticed at once by the file in which Copilot records it, the closing by the process's exit.
#[test]
fn case_119_a_resumed_terminal_is_idle_and_can_be_resumed_after_it_is_closed() {
    let user = User::new();
    let (ended, crashed) = (user.session(1), user.session(2));
    ended.ended(Duration::from_secs(60));
    let owner = crashed.owner(&user);
    crashed.prompt();
    let watch = user.watch();
    watch.wait_status(&ended, "ended");
    owner.kill();
    watch.wait_status(&crashed, "crashed");
    for (session, before) in [(&ended, "ended"), (&crashed, "crashed")] {
        let resumed = Resumed::start(&user, session);
        let row = watch.wait_status(session, "idle");
        assert!(row["because"].as_str().unwrap().starts_with("opened, not prompted yet"), "{row}");
        assert_eq!(row["owner"], json!({"pid": resumed.0.id(), "state": "alive", "attachable": false, "bridge": null}));
        assert_eq!(row["actions"], json!([]), "there is no desktop here to show its terminal on");
        assert_eq!(user.row(session).unwrap(), row, "`status` agrees");
        let refused = user.run(&["resume", &session.id]);
        assert_eq!(refused.status.code(), Some(4), "{refused:?}");
        assert!(String::from_utf8_lossy(&refused.stderr).contains("has it open, not prompted yet"), "{refused:?}");
        resumed.close();
        let row = watch.wait_status(session, before);
        assert!(row["actions"].as_array().unwrap().contains(&json!("resume")), "{row}");
        assert_eq!(user.row(session).unwrap()["actions"], row["actions"]);
    }
}

/// Case 119: what was prompted in the second in which the next process started was not prompted by that.
#[test]
fn case_119_a_terminal_that_is_resumed_within_a_second_of_the_last_prompt_is_idle() {
    let user = User::new();
    let session = user.session(1);
    let owner = session.owner(&user);
    session.prompt();
    owner.kill();
    let resumed = Resumed::start(&user, &session);
    let row = user.row(&session).unwrap();
    assert_eq!((&row["status"], &row["owner"]["pid"]), (&json!("idle"), &json!(resumed.0.id())), "{row}");
}

/// Case 124: a lock that names another session's process. It is reported and nothing is done to that process, and the
/// session that it really owns can be ended as before.
#[test]
fn case_124_a_planted_lock_neither_ends_nor_protects_a_process() {
    let user = User::new();
    let (session, planted) = (user.session(1), user.session(2));
    let owner = session.owner(&user);
    session.prompt();
    planted.prompt();
    planted.lock(owner.pid());
    let (_, because) = user.status_and_reason(&planted);
    assert!(because.contains("its lock names a process that does not have it open"), "{because}");
    assert_eq!(user.row(&planted).unwrap()["actions"], json!([]));
    let actions = user.row(&session).unwrap()["actions"].clone();
    assert!(actions.as_array().unwrap().contains(&json!("end")), "{actions}");
    for command in ["stop", "reconnect", "resume"] {
        let yes = if command == "stop" { &["--yes"][..] } else { &[] };
        let refused = user.run(&[&[command, &planted.id], yes].concat());
        assert_eq!(refused.status.code(), Some(4), "{refused:?}");
        assert!(String::from_utf8_lossy(&refused.stderr).contains("does not have it open"), "{refused:?}");
    }
    assert_eq!(user.status_and_reason(&session).0, "working");
    let ended = user.run(&["stop", "--yes", &session.id]);
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
    assert_eq!(user.status_and_reason(&session).0, "crashed");
}

/// Where the bridge is installed, its terminals' turns are stopped over it. If that is not possible, nothing ends.
#[test]
fn case_191_stop_ends_no_session_that_may_have_a_bridge() {
    let user = User::new();
    let session = user.session(1);
    let _owner = session.owner(&user);
    session.prompt();
    let key = user.scratch.path().join(".local/state/pilotlight/bridge.key");
    std::fs::create_dir_all(key.parent().unwrap()).unwrap();
    for content in [&b"broken"[..], &[7; 32]] {
        std::fs::write(&key, content).unwrap();
        for arguments in [&["stop", "--yes"][..], &["stop"]] {
            let refused = user.run(&[arguments, &[&session.id]].concat());
            assert_eq!(refused.status.code(), Some(4), "{refused:?}");
            let said = String::from_utf8_lossy(&refused.stderr);
            assert!(said.contains("pilotlight stop --end") && !said.contains("ends it"), "{refused:?}");
        }
        assert_eq!(user.status_and_reason(&session).0, "working");
    }
    let ended = user.run(&["stop", "--end", "--yes", &session.id]);
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
    assert_eq!(user.status_and_reason(&session).0, "crashed");
}

/// A terminal writes the lock of a further session a moment before it holds that session. Ending the terminal then
/// would end both. But a lock that stays without a hold does not keep the terminal from being ended.
#[test]
fn a_process_that_is_opening_another_session_is_not_ended() {
    /// How long after writing its lock a process may take to hold a session.
    const GRACE: Duration = Duration::from_millis(250);
    /// How far in the future the lock is dated, because the command takes some time.
    const AHEAD: Duration = Duration::from_millis(1500);
    for _ in 0..30 {
        let user = User::new();
        let (session, another) = (user.session(1), user.session(2));
        let owner = session.owner(&user);
        session.prompt();
        another.prompt();
        let lock = another.lock(owner.pid());
        let made = std::fs::metadata(&lock).unwrap().modified().unwrap() + AHEAD;
        std::fs::File::options().write(true).open(lock).unwrap().set_modified(made).unwrap();
        let ran = user.run(&["stop", "--yes", &session.id]);
        if made.elapsed().is_ok_and(|age| age >= GRACE) {
            // On a busy machine the lock is no longer new: try again.
            continue;
        }
        assert_eq!(ran.status.code(), Some(4), "{ran:?}");
        assert!(String::from_utf8_lossy(&ran.stderr).contains("just opening another session"), "{ran:?}");
        assert_eq!(user.status_and_reason(&session).0, "working");
        another.lock(owner.pid());
        let ran = user.run(&["stop", "--yes", &session.id]);
        assert_eq!(ran.status.code(), Some(0), "{ran:?}");
        return;
    }
    panic!("this machine is too slow to try it");
}

/// An interrupted process has some seconds to exit before it is terminated, and may open another session during that
/// time.
#[test]
fn a_process_that_opens_another_session_while_being_ended_is_not_signalled_again() {
    let user = User::new();
    let (session, another) = (user.session(1), user.session(2));
    let mut owner = Slow::start(&user, &session);
    owner.execute("hold");
    session.lock(owner.process.id());
    session.prompt();
    let ran = std::thread::scope(|scope| {
        let stop = scope.spawn(|| user.run(&["stop", "--yes", &session.id]));
        assert_eq!(owner.output.next().unwrap().unwrap(), "interrupted");
        owner.execute(&another.path.display().to_string());
        another.lock(owner.process.id());
        another.prompt();
        stop.join().unwrap()
    });
    assert_eq!(ran.status.code(), Some(4), "{ran:?}");
    assert!(String::from_utf8_lossy(&ran.stderr).contains("has opened another session"), "{ran:?}");
    // It was not terminated.
    owner.execute("hold");
    assert_eq!(user.status_and_reason(&another).0, "working");
}

/// A program that creates a session's hold file and locks it on command. Given the folder of another session, it holds
/// that too.
struct Slow {
    process: Child,
    commands: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
}

impl Slow {
    fn start(user: &User, session: &Folder) -> Self {
        let program = user.scratch.path().join("slow").join("copilot");
        std::fs::create_dir(program.parent().unwrap()).unwrap();
        // By `cp`: a file that this process has open for writing cannot be run (ETXTBSY).
        assert!(Command::new("cp").arg("/usr/bin/perl").arg(&program).status().unwrap().success());
        let script = r#"$| = 1; $SIG{INT} = sub { print "interrupted\n" };
            open(F, ">", "$ARGV[0]/inuse.$$.hold") or die; print "open\n";
            while (<STDIN>) { chomp; if (m{^/}) { open(G, ">", "$_/inuse.$$.hold") or die; flock(G, 6) or die }
                else { flock(F, /hold/ ? 6 : 8) or die } print "done\n" }"#;
        let mut process = Command::new(program)
            .args(["-e", script])
            .arg(&session.path)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (commands, output) =
            (process.stdin.take().unwrap(), BufReader::new(process.stdout.take().unwrap()).lines());
        let mut slow = Self { process, commands, output };
        assert_eq!(slow.output.next().unwrap().unwrap(), "open");
        slow
    }

    fn execute(&mut self, command: &str) {
        writeln!(self.commands, "{command}").unwrap();
        assert_eq!(self.output.next().unwrap().unwrap(), "done");
    }
}

impl Drop for Slow {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// No file event reports that a hold file was locked. A Copilot that locks it late, after an unsuccessful check, is
/// still found to be the owner.
#[test]
fn a_process_that_holds_its_session_late_becomes_its_owner() {
    /// How long after the lock the owner is checked again.
    const CHECKED_FOR: Duration = Duration::from_secs(2);
    let user = User::new();
    let session = user.session(1);
    let mut slow = Slow::start(&user, &session);
    session.prompt();
    let watch = user.watch();
    let wait_state = |state: &str| watch.wait_row(&session, state, |row| row["owner"]["state"] == state);
    for _ in 0..30 {
        let lock = session.lock(slow.process.id());
        wait_state("unknown");
        slow.execute("hold");
        if std::fs::metadata(lock).unwrap().modified().unwrap().elapsed().unwrap() < CHECKED_FOR {
            wait_state("alive");
            return;
        }
        // On a busy machine it held the session too late to be checked: try again.
        slow.execute("let go");
    }
    panic!("this machine is too slow to try it");
}

/// Case 123: a home that was copied while its terminal was running.
#[test]
fn case_123_in_a_copied_home_nothing_is_stopped() {
    let user = User::new();
    let session = user.session(1);
    let owner = session.owner(&user);
    session.prompt();
    let copy = user.scratch.path().join("copy");
    for flag in ["-a", "-r"] {
        assert!(Command::new("cp").arg(flag).arg(user.home()).arg(&copy).status().unwrap().success());
        let home = copy.display().to_string();
        let refused = user.run(&["--home", &home, "stop", "--yes", &session.id]);
        assert_eq!(refused.status.code(), Some(4), "{refused:?}");
        assert!(String::from_utf8_lossy(&refused.stderr).contains("does not have it open"), "{refused:?}");
        std::fs::remove_dir_all(&copy).unwrap();
    }
    assert_eq!(user.status_and_reason(&session).0, "working");
    drop(owner);
}

/// Case 125: a program that only has Copilot's name.
#[test]
fn case_125_a_sleep_renamed_copilot_is_not_signalled() {
    let user = User::new();
    let session = user.session(1);
    let sleep = Owner::start(user.scratch.path(), "copilot");
    session.lock(sleep.pid());
    session.prompt();
    assert!(user.status_and_reason(&session).1.contains("its lock names a process that does not have it open"));
    let refused = user.run(&["stop", "--yes", &session.id]);
    assert_eq!(refused.status.code(), Some(4), "{refused:?}");
    assert!(std::fs::read_link(format!("/proc/{}/exe", sleep.pid())).is_ok_and(|exe| exe.ends_with("copilot")));
}

/// Case 107g: an owner that cannot be inspected is unknown, not crashed.
#[test]
fn case_107g_an_unreadable_owner_is_unknown() {
    if !rustix::process::geteuid().is_root() {
        return; // another user's process cannot be made without being root
    }
    let user = User::new();
    let session = user.session(1);
    let _owner = session.owner(&user);
    session.prompt();
    let everyone = |path: &std::path::Path| Command::new("chmod").args(["-R", "a+rX"]).arg(path).status().unwrap();
    everyone(user.scratch.path());
    // The program must be at a path where another user can run it.
    let program = user.scratch.path().join("pilotlight");
    copy_program(env!("CARGO_BIN_EXE_pilotlight"), &program);
    everyone(&program);
    let output = Command::new("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all"])
        .arg(&program)
        .args(["status", "--json", "--home"])
        .arg(user.home())
        .env_clear()
        .env("HOME", "/nonexistent")
        .output()
        .unwrap();
    let rows: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"));
    assert_eq!((&rows[0]["owner"]["state"], &rows[0]["status"]), (&json!("unknown"), &json!("working")), "{rows}");
}

/// A session without a prompt is listed only while its owner lives.
#[test]
fn a_session_without_a_prompt_is_listed_while_its_owner_lives() {
    let user = User::new();
    let (live, dead) = (user.session(1), user.session(2));
    let watch = user.watch();
    let owner = live.owner(&user);
    let row = watch.wait_status(&live, "idle");
    assert_eq!(row["because"], "no prompt yet");
    assert!(user.row(&dead).is_none());
    owner.kill();
    wait_until(SOON, "it is no longer listed", String::new, || user.row(&live).is_none().then_some(()));
    watch.wait_row(&live, "removed", |row| row["removed"] == true);
}

/// A signal ends it at once, with exit code 0.
#[test]
fn signals_end_watch_cleanly() {
    let user = User::new();
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        let session = user.session(1);
        let _owner = session.owner(&user);
        let watch = user.watch();
        watch.wait_status(&session, "idle");
        assert_eq!(watch.end(signal), Some(0));
    }
}
