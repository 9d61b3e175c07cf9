//! Files and folders that go, or are replaced, while they are read.

use crate::support::made_up::{Folder, User};
use crate::support::{SOON, wait_until};
use rustix::process::Signal;
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Says at its end that all is done, though that be a panic: whoever waits for it would wait for ever.
struct Done<'a>(&'a AtomicBool);

impl Drop for Done<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Calls `write` again and again on a thread of its own while `look` looks.
fn while_written(mut write: impl FnMut(u32) + Send, look: impl FnOnce()) {
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut n = 0;
            while !done.load(Ordering::Relaxed) {
                write(n);
                n += 1;
            }
        });
        let _done = Done(&done);
        look();
    });
}

/// The rows of so many runs of `status --json`, each of which succeeds, without a word of panic.
fn looks(user: &User, times: u32) -> Vec<Vec<serde_json::Value>> {
    let look = |_| {
        let output = user.run(&["status", "--json"]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && !said.contains("panicked"), "{output:?}");
        serde_json::from_slice(&output.stdout).unwrap()
    };
    (0..times).map(look).collect()
}

/// Case 86 (UP): a log that is replaced, cut and grown all the time, in every way, while it is read.
#[test]
fn case_86_a_log_that_is_replaced_while_it_is_read() {
    let user = User::new();
    let session = user.session(1);
    let _owner = session.owner(&user);
    let turn = |n: u32| {
        let filler = format!(r#"{{"message":"{}"}}"#, "x".repeat((n as usize % 7) * 40_000));
        session.line(Duration::ZERO, "user.message", r#"{"content":"do it"}"#)
            + &session.line(Duration::ZERO, "session.info", &filler)
    };
    fs::write(session.log(), turn(0)).unwrap();
    let watch = user.watch();
    watch.told(&session, "working");
    let beside = user.scratch.path().join("beside");
    let write = |n: u32| match n % 5 {
        0 => {
            fs::write(&beside, turn(n)).unwrap();
            fs::rename(&beside, session.log()).unwrap();
        }
        1 => session.append(turn(n)),
        2 => fs::write(session.log(), turn(n)).unwrap(),
        3 => File::options().write(true).open(session.log()).unwrap().set_len(200).unwrap(),
        _ => drop(fs::remove_file(session.log())),
    };
    while_written(write, || {
        // Whatever of it is read, it is a turn that is open, or nothing yet.
        for rows in looks(&user, 40) {
            let status = rows[0]["status"].as_str().unwrap();
            assert!(matches!(status, "working" | "idle"), "{rows:?}");
        }
    });
    let _ = fs::remove_file(session.log());
    session.prompt();
    session.answer();
    watch.told(&session, "idle");
    assert_eq!(user.told(&session).0, "idle");
    session.prompt();
    watch.told(&session, "working");
    assert_eq!(watch.end(Signal::TERM), Some(0));
}

/// Case 86 (UP): folders that come and go while they are read.
#[test]
fn case_86_folders_that_go_while_they_are_read() {
    let (user, stays, _owner, watch) = User::working(0);
    let write = |n: u32| {
        let session = user.session(1 + n % 50);
        session.prompt();
        session.lock(1);
        fs::remove_dir_all(&session.path).unwrap();
    };
    while_written(write, || {
        for rows in looks(&user, 40) {
            assert!(rows.iter().any(|row| row["id"] == stays.id && row["status"] == "working"), "{rows:?}");
        }
    });
    // What is told last of each that went is that it went.
    let left = || {
        let rows = watch.latest();
        rows.into_values().filter(|row| row["id"] != stays.id && row["removed"] != true).collect::<Vec<_>>()
    };
    wait_until(SOON, "all are gone", || format!("{:?}", left()), || left().is_empty().then_some(()));
    stays.answer();
    watch.told(&stays, "idle");
}

#[test]
fn two_thousand_folders_that_go_at_once_are_told() {
    go_at_once(2000);
}

#[test]
#[ignore = "makes twenty thousand files, which takes half a minute"]
fn ten_thousand_folders_that_go_at_once_are_told() {
    go_at_once(10_000);
}

fn go_at_once(folders: u32) {
    let user = User::new();
    let stays = user.session(folders);
    let _owner = stays.owner(&user);
    stays.prompt();
    for n in 0..folders {
        user.session(n).ended(Duration::from_secs(40 * 86_400));
    }
    let watch = user.watch();
    let listed = || watch.latest().len();
    let soon = |what, so: &dyn Fn() -> usize, wanted: u32| {
        wait_until(SOON, what, || so().to_string(), || (so() == wanted as usize).then_some(()));
    };
    soon("all are listed", &listed, folders + 1);
    for n in 0..folders {
        fs::remove_dir_all(user.sessions().join(format!("{n:08x}-0000-4000-a000-000000000000"))).unwrap();
    }
    let removed = || watch.latest().values().filter(|row| row["removed"] == true).count();
    soon("all are gone", &removed, folders);
    stays.answer();
    watch.told(&stays, "idle");
    assert_eq!(user.rows(&["--all"]).len(), 1);
    assert_eq!(watch.end(Signal::TERM), Some(0));
}

/// The most memory that a process had, in KiB.
fn peak(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    peak.trim().trim_end_matches(" kB").parse().unwrap()
}

/// Case 89 (UP): a line of 2 GB, most of it a hole, that grows and ends while we watch.
#[test]
fn case_89_a_line_of_2_gb_costs_the_program_no_memory() {
    let user = User::new();
    let (huge, other) = (user.session(1), user.session(2));
    let _owners = (huge.owner(&user), other.owner(&user));
    huge.prompt();
    let watch = user.watch();
    watch.told(&huge, "working");
    let before = peak(watch.pid());
    grow(&huge, 2 << 30);
    // It is read to its end in the meantime, or passed over: what comes behind it counts.
    huge.append("\"}}\n");
    huge.answer();
    let told = || watch.latest()[&huge.id]["status"] == "idle";
    let begun = std::time::Instant::now();
    wait_until(SOON, "it is idle", || format!("{:?}", watch.latest()), || told().then_some(()));
    println!("a line of 2 GB is passed over in {:.1?}", begun.elapsed());
    other.prompt();
    watch.told(&other, "working");
    let grown = peak(watch.pid()).saturating_sub(before);
    assert!(grown < 16 << 10, "{grown} KiB for a line of 2 GB");
    // Who comes now finds the same.
    assert_eq!(user.told(&huge).0, "idle");
    assert_eq!(user.told(&other).0, "working");
}

/// Begins a tool's line and makes it this long.
fn grow(session: &Folder, length: u64) {
    session.append(r#"{"type":"tool.execution_start","data":{"toolCallId":"c","toolName":"bash","x":""#);
    let mut log = OpenOptions::new().read(true).write(true).open(session.log()).unwrap();
    log.set_len(length).unwrap();
    log.seek(SeekFrom::End(0)).unwrap();
    log.write_all(b"x").unwrap();
    log.seek(SeekFrom::End(-1)).unwrap();
    log.read_exact(&mut [0]).unwrap();
}
