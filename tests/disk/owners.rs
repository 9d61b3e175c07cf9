//! Locks, and the processes they name.

use crate::support::made_up::{Folder, Owner, User};
use crate::support::{SOON, wait_until};
use rustix::process::Signal;
use serde_json::json;
use std::io::{BufRead, BufReader, Lines, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

/// Cases 3 (PP#141) and 60: the owner dies in the middle of a turn; told at once, by an event and not by a look.
#[test]
fn case_3_an_owner_that_dies_in_a_turn_has_crashed() {
    let (user, session, owner, watch) = User::working(1);
    let row = watch.told(&session, "working");
    assert_eq!(row["owner"], json!({"pid": owner.pid(), "state": "alive", "attachable": false, "bridge": null}));
    let pid = owner.kill();
    let row = watch.told(&session, "crashed");
    assert_eq!(row["owner"], json!({"pid": pid, "state": "gone", "attachable": false, "bridge": null}));
    assert_eq!(user.told(&session).0, "crashed");
}

/// Case 71 (PP#417): a dead pid is not running.
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
    assert_eq!(user.told(&idle).0, "ended");
    assert_eq!(user.told(&open).0, "crashed");
}

/// Case 72 (PP#417): a pid that now is another program's, or that started after the lock, is not the owner.
#[test]
fn case_72_a_recycled_pid_is_not_the_owner() {
    let user = User::new();
    let (other_program, too_young) = (user.session(1), user.session(2));
    let not_copilot = Owner::start(user.scratch.path(), "firefox");
    other_program.lock(not_copilot.pid());
    other_program.prompt();
    assert_eq!(user.told(&other_program).0, "crashed");

    let young = Owner::start(user.scratch.path(), "copilot");
    let lock = too_young.lock(young.pid());
    let hour_ago = std::fs::metadata(&lock).unwrap().modified().unwrap() - Duration::from_secs(3600);
    std::fs::File::options().write(true).open(&lock).unwrap().set_modified(hour_ago).unwrap();
    too_young.prompt();
    assert_eq!(user.told(&too_young).0, "crashed");
}

/// Case 68 (PP#402): the wall clock was set forward since the lock was made, so that the owner seems to have started after
/// it; but it holds the lock that Copilot keeps beside, so it is the owner.
#[test]
fn case_68_an_owner_that_holds_its_lock_is_the_owner_whatever_the_clock_says() {
    let user = User::new();
    let session = user.session(1);
    let program = user.scratch.path().join("copilot");
    std::fs::copy("/bin/sleep", &program).unwrap();
    // It takes the lock itself, keeps it open, and becomes the owner under the same pid.
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
    let told = user.told(&session);
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(told.0, "working", "{}", told.1);
}

/// Case 73 (PP#417): of two locks the live one counts.
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

/// Case 87 (UP): two live owners, or a forked log, are shown as a conflict.
#[test]
fn case_87_two_writers_are_a_conflict() {
    let user = User::new();
    let (locked, forked) = (user.session(1), user.session(2));
    let _owners = (locked.owner(&user), locked.owner(&user), forked.owner(&user));
    locked.prompt();
    let (status, because) = user.told(&locked);
    assert!(status == "working" && because.contains("conflict"), "{because}");

    forked.prompt();
    forked.say("assistant.turn_start", "{}");
    let line = |id: &str| {
        let event = forked.line(Duration::ZERO, "session.info", "{}");
        let mut event: serde_json::Value = serde_json::from_str(&event).unwrap();
        (event["id"], event["parentId"]) = (json!(id), json!("2"));
        format!("{event}\n")
    };
    forked.append(line("one"));
    assert!(!user.told(&forked).1.contains("conflict"));
    forked.append(line("two"));
    let (status, because) = user.told(&forked);
    assert!(status == "working" && because.contains("conflict"), "{because}");
}

/// A Copilot that was started to resume this session, and was not prompted.
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
        wait_until(SOON, "its command line shows", String::new, || {
            std::fs::read(&line).unwrap().ends_with(b"0000\0").then_some(())
        });
        // As Copilot's terminal notes it.
        let (state, beside) = (user.home().join("open-sessions-state.json"), user.home().join("state.tmp"));
        let at = jiff::Timestamp::now();
        std::fs::write(&beside, json!({&session.id: {"openedAt": at.to_string()}}).to_string()).unwrap();
        std::fs::rename(beside, state).unwrap();
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

/// Case 119: told at once when it is opened, by the file that Copilot notes it in, and when it is closed, by its end.
#[test]
fn case_119_a_terminal_just_resumed_is_idle_and_closed_again_it_can_be_resumed() {
    let user = User::new();
    let (ended, crashed) = (user.session(1), user.session(2));
    ended.ended(Duration::from_secs(60));
    let owner = crashed.owner(&user);
    crashed.prompt();
    let watch = user.watch();
    watch.told(&ended, "ended");
    owner.kill();
    watch.told(&crashed, "crashed");
    for (session, before) in [(&ended, "ended"), (&crashed, "crashed")] {
        let resumed = Resumed::start(&user, session);
        let row = watch.told(session, "idle");
        assert!(row["because"].as_str().unwrap().starts_with("opened, not prompted yet"), "{row}");
        assert_eq!(row["owner"], json!({"pid": resumed.0.id(), "state": "alive", "attachable": false, "bridge": null}));
        assert_eq!(row["actions"], json!(["show-terminal"]));
        assert_eq!(user.row(session).unwrap(), row, "status says the same");
        let refused = user.run(&["resume", &session.id]);
        assert_eq!(refused.status.code(), Some(4), "{refused:?}");
        assert!(String::from_utf8_lossy(&refused.stderr).contains("has it open, not prompted yet"), "{refused:?}");
        resumed.close();
        let row = watch.told(session, before);
        assert!(row["actions"].as_array().unwrap().contains(&json!("resume")), "{row}");
        assert_eq!(user.row(session).unwrap()["actions"], row["actions"]);
    }
}

/// Case 124: a lock that names another session's process. It is shown, nothing is done with it, and the session whose
/// process it is can be ended as before.
#[test]
fn case_124_a_planted_lock_does_nothing_and_takes_nothing_away() {
    let user = User::new();
    let (session, planted) = (user.session(1), user.session(2));
    let owner = session.owner(&user);
    session.prompt();
    planted.prompt();
    planted.lock(owner.pid());
    let told = user.told(&planted);
    assert!(told.1.contains("the process that its lock names does not hold it"), "{told:?}");
    assert_eq!(user.row(&planted).unwrap()["actions"], json!([]));
    let actions = user.row(&session).unwrap()["actions"].clone();
    assert!(actions.as_array().unwrap().contains(&json!("end")), "{actions}");
    for command in ["stop", "reconnect", "resume"] {
        let yes = if command == "stop" { &["--yes"][..] } else { &[] };
        let refused = user.run(&[&[command, &planted.id], yes].concat());
        assert_eq!(refused.status.code(), Some(4), "{refused:?}");
        assert!(String::from_utf8_lossy(&refused.stderr).contains("does not hold it"), "{refused:?}");
    }
    assert_eq!(user.told(&session).0, "working");
    let ended = user.run(&["stop", "--yes", &session.id]);
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
    assert_eq!(user.told(&session).0, "crashed");
}

/// A terminal makes the lock of a further session a moment before it holds that one: ended in that moment, it would take both
/// with it. A lock that nothing comes of keeps nobody from ending it.
#[test]
fn a_process_that_is_just_opening_another_session_is_not_ended() {
    /// For so long after its lock a process may come to hold a session.
    const GRACE: Duration = Duration::from_millis(250);
    /// The lock looks as new as this is long for so much longer: the command needs some time.
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
            // The machine was busy, and the lock is no longer new: once more.
            continue;
        }
        assert_eq!(ran.status.code(), Some(4), "{ran:?}");
        assert!(String::from_utf8_lossy(&ran.stderr).contains("just opening another session"), "{ran:?}");
        assert_eq!(user.told(&session).0, "working");
        another.lock(owner.pid());
        let ran = user.run(&["stop", "--yes", &session.id]);
        assert_eq!(ran.status.code(), Some(0), "{ran:?}");
        return;
    }
    panic!("this machine is too slow to try it");
}

/// What is interrupted has some seconds to end before it is terminated, and may open another session meanwhile.
#[test]
fn a_process_that_opens_another_session_while_it_is_being_ended_is_signalled_no_further() {
    let user = User::new();
    let (session, another) = (user.session(1), user.session(2));
    let mut owner = Slow::start(&user, &session);
    owner.does("hold");
    session.lock(owner.process.id());
    session.prompt();
    let ran = std::thread::scope(|scope| {
        let stop = scope.spawn(|| user.run(&["stop", "--yes", &session.id]));
        assert_eq!(owner.told.next().unwrap().unwrap(), "interrupted");
        owner.does(&another.path.display().to_string());
        another.lock(owner.process.id());
        another.prompt();
        stop.join().unwrap()
    });
    assert_eq!(ran.status.code(), Some(4), "{ran:?}");
    assert!(String::from_utf8_lossy(&ran.stderr).contains("has opened another session"), "{ran:?}");
    // It was not terminated.
    owner.does("hold");
    assert_eq!(user.told(&another).0, "working");
}

/// A program that makes a session's lock, and holds the session when it is told to; another one, when it is told that one's folder.
struct Slow {
    process: Child,
    tell: ChildStdin,
    told: Lines<BufReader<ChildStdout>>,
}

impl Slow {
    fn start(user: &User, session: &Folder) -> Self {
        let program = user.scratch.path().join("slow").join("copilot");
        std::fs::create_dir(program.parent().unwrap()).unwrap();
        // By `cp`: what this process had open for writing may not run (ETXTBSY).
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
        let (tell, told) = (process.stdin.take().unwrap(), BufReader::new(process.stdout.take().unwrap()).lines());
        let mut slow = Self { process, tell, told };
        assert_eq!(slow.told.next().unwrap().unwrap(), "open");
        slow
    }

    fn does(&mut self, what: &str) {
        writeln!(self.tell, "{what}").unwrap();
        assert_eq!(self.told.next().unwrap().unwrap(), "done");
    }
}

impl Drop for Slow {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Nothing tells that a hold was locked. A Copilot that is slow about it, so that it was looked at in vain meanwhile, is found to
/// be the owner all the same.
#[test]
fn who_is_slow_to_hold_its_session_is_its_owner_when_it_does() {
    /// For so long after its lock it is looked at again.
    const LOOKED_AT: Duration = Duration::from_secs(2);
    let user = User::new();
    let session = user.session(1);
    let mut slow = Slow::start(&user, &session);
    session.prompt();
    let watch = user.watch();
    let is = |state: &str| watch.until(&session, state, |row| row["owner"]["state"] == state);
    for _ in 0..30 {
        let lock = session.lock(slow.process.id());
        is("unknown");
        slow.does("hold");
        if std::fs::metadata(lock).unwrap().modified().unwrap().elapsed().unwrap() < LOOKED_AT {
            is("alive");
            return;
        }
        // The machine was busy, and it held the session too late to be looked at: once more.
        slow.does("let go");
    }
    panic!("this machine is too slow to try it");
}

/// Case 123: a home that was copied while its terminal ran.
#[test]
fn case_123_in_a_copied_home_nothing_is_stopped() {
    let user = User::new();
    let session = user.session(1);
    let owner = session.owner(&user);
    session.prompt();
    let copy = user.scratch.path().join("copy");
    for how in ["-a", "-r"] {
        assert!(Command::new("cp").arg(how).arg(user.home()).arg(&copy).status().unwrap().success());
        let home = copy.display().to_string();
        let refused = user.run(&["--home", &home, "stop", "--yes", &session.id]);
        assert_eq!(refused.status.code(), Some(4), "{refused:?}");
        assert!(String::from_utf8_lossy(&refused.stderr).contains("does not hold it"), "{refused:?}");
        std::fs::remove_dir_all(&copy).unwrap();
    }
    assert_eq!(user.told(&session).0, "working");
    drop(owner);
}

/// Case 125: a program that has nothing of Copilot's but the name.
#[test]
fn case_125_a_sleep_renamed_copilot_is_not_signalled() {
    let user = User::new();
    let session = user.session(1);
    let sleep = Owner::start(user.scratch.path(), "copilot");
    session.lock(sleep.pid());
    session.prompt();
    assert!(user.told(&session).1.contains("the process that its lock names does not hold it"));
    let refused = user.run(&["stop", "--yes", &session.id]);
    assert_eq!(refused.status.code(), Some(4), "{refused:?}");
    assert!(std::fs::read_link(format!("/proc/{}/exe", sleep.pid())).is_ok_and(|exe| exe.ends_with("copilot")));
}

/// Case 107g: an owner that cannot be looked at is unknown, not crashed.
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
    // The program must be where another user can run it.
    let program = user.scratch.path().join("pilotlight");
    std::fs::copy(env!("CARGO_BIN_EXE_pilotlight"), &program).unwrap();
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

/// A session without a prompt shows while its owner lives, and only then.
#[test]
fn a_session_without_a_prompt_shows_while_its_owner_lives() {
    let user = User::new();
    let (live, dead) = (user.session(1), user.session(2));
    let watch = user.watch();
    let owner = live.owner(&user);
    let row = watch.told(&live, "idle");
    assert_eq!(row["because"], "no prompt yet");
    assert!(user.row(&dead).is_none());
    owner.kill();
    wait_until(SOON, "it is no longer listed", String::new, || user.row(&live).is_none().then_some(()));
    watch.until(&live, "it is told as removed", |row| row["removed"] == true);
}

/// Ended by a signal, it stops at once and cleanly.
#[test]
fn signals_end_the_watch_cleanly() {
    let user = User::new();
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        let session = user.session(1);
        let _owner = session.owner(&user);
        let watch = user.watch();
        watch.told(&session, "idle");
        assert_eq!(watch.end(signal), Some(0));
    }
}
