//! Files and folders that are removed or replaced while they are read.

use crate::support::synthetic::{Folder, User};
use crate::support::{SOON, wait_until};
use rustix::fs::{CWD, FileType, Mode, RenameFlags, mknodat, renameat_with};
use rustix::process::Signal;
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Sets the flag when dropped, even by a panic: otherwise the other thread would never end.
struct Done<'a>(&'a AtomicBool);

impl Drop for Done<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Calls `write` again and again on another thread while `read` runs.
fn while_written(mut write: impl FnMut(u32) + Send, read: impl FnOnce()) {
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
        read();
    });
}

/// The rows of several runs of `status --json`, each of which must succeed without a panic.
fn status_runs(user: &User, times: u32) -> Vec<Vec<serde_json::Value>> {
    let run = |_| {
        let output = user.run(&["status", "--json"]);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && !stderr.contains("panicked"), "{output:?}");
        serde_json::from_slice(&output.stdout).unwrap()
    };
    (0..times).map(run).collect()
}

/// Case 86: a log that is replaced, truncated, extended and removed all the time while it is read.
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
    watch.wait_status(&session, "working");
    let new = user.scratch.path().join("new");
    let write = |n: u32| match n % 5 {
        0 => {
            fs::write(&new, turn(n)).unwrap();
            fs::rename(&new, session.log()).unwrap();
        }
        1 => session.append(turn(n)),
        2 => fs::write(session.log(), turn(n)).unwrap(),
        3 => File::options().write(true).open(session.log()).unwrap().set_len(200).unwrap(),
        _ => drop(fs::remove_file(session.log())),
    };
    while_written(write, || {
        // Whatever part is read is an open turn, or no prompt yet.
        for rows in status_runs(&user, 40) {
            let status = rows[0]["status"].as_str().unwrap();
            assert!(matches!(status, "working" | "idle"), "{rows:?}");
        }
    });
    let _ = fs::remove_file(session.log());
    session.prompt();
    session.answer();
    watch.wait_status(&session, "idle");
    assert_eq!(user.status_and_reason(&session).0, "idle");
    session.prompt();
    watch.wait_status(&session, "working");
    assert_eq!(watch.end(Signal::TERM), Some(0));
}

/// Case 86: folders that are created and removed while they are read.
#[test]
fn case_86_folders_that_are_removed_while_they_are_read() {
    let (user, stays, _owner, watch) = User::working(0);
    let write = |n: u32| {
        let session = user.session(1 + n % 50);
        session.prompt();
        session.lock(1);
        fs::remove_dir_all(&session.path).unwrap();
    };
    while_written(write, || {
        for rows in status_runs(&user, 40) {
            assert!(rows.iter().any(|row| row["id"] == stays.id && row["status"] == "working"), "{rows:?}");
        }
    });
    // The last line of each removed session reports its removal.
    let left = || {
        let rows = watch.latest();
        rows.into_values().filter(|row| row["id"] != stays.id && row["removed"] != true).collect::<Vec<_>>()
    };
    wait_until(SOON, "all are gone", || format!("{:?}", left()), || left().is_empty().then_some(()));
    stays.answer();
    watch.wait_status(&stays, "idle");
}

#[test]
fn two_thousand_folders_that_are_removed_at_once_are_reported() {
    remove_at_once(2000);
}

#[test]
#[ignore = "makes twenty thousand files, which takes half a minute"]
fn ten_thousand_folders_that_are_removed_at_once_are_reported() {
    remove_at_once(10_000);
}

fn remove_at_once(folders: u32) {
    let user = User::new();
    let stays = user.session(folders);
    let _owner = stays.owner(&user);
    stays.prompt();
    for n in 0..folders {
        user.session(n).ended(Duration::from_secs(40 * 86_400));
    }
    let watch = user.watch();
    let listed = || watch.latest().len();
    let wait_count = |what, count: &dyn Fn() -> usize, expected: u32| {
        wait_until(SOON, what, || count().to_string(), || (count() == expected as usize).then_some(()));
    };
    wait_count("all are listed", &listed, folders + 1);
    for n in 0..folders {
        fs::remove_dir_all(user.sessions().join(format!("{n:08x}-0000-4000-a000-000000000000"))).unwrap();
    }
    let removed = || watch.latest().values().filter(|row| row["removed"] == true).count();
    wait_count("all are gone", &removed, folders);
    stays.answer();
    watch.wait_status(&stays, "idle");
    assert_eq!(user.rows(&["--all"]).len(), 1);
    assert_eq!(watch.end(Signal::TERM), Some(0));
}

/// A process's peak resident memory, in KiB.
fn peak(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    peak.trim().trim_end_matches(" kB").parse().unwrap()
}

/// Case 89: a line of 2 GB, most of it a hole, that grows and ends while it is watched.
#[test]
fn case_89_a_line_of_2_gb_costs_the_program_no_memory() {
    let user = User::new();
    let (huge, other) = (user.session(1), user.session(2));
    let _owners = (huge.owner(&user), other.owner(&user));
    huge.prompt();
    let watch = user.watch();
    watch.wait_status(&huge, "working");
    let before = peak(watch.pid());
    grow(&huge, 2 << 30);
    // It is read to its end or skipped. The lines after it count.
    huge.append("\"}}\n");
    huge.answer();
    let is_idle = || watch.latest()[&huge.id]["status"] == "idle";
    let start = std::time::Instant::now();
    wait_until(SOON, "it is idle", || format!("{:?}", watch.latest()), || is_idle().then_some(()));
    println!("a line of 2 GB is skipped in {:.1?}", start.elapsed());
    other.prompt();
    watch.wait_status(&other, "working");
    let grown = peak(watch.pid()).saturating_sub(before);
    assert!(grown < 16 << 10, "{grown} KiB for a line of 2 GB");
    // A new reader finds the same.
    assert_eq!(user.status_and_reason(&huge).0, "idle");
    assert_eq!(user.status_and_reason(&other).0, "working");
}

/// Starts the line of a tool and extends it to this length.
fn grow(session: &Folder, length: u64) {
    session.append(r#"{"type":"tool.execution_start","data":{"toolCallId":"c","toolName":"bash","x":""#);
    let mut log = OpenOptions::new().read(true).write(true).open(session.log()).unwrap();
    log.set_len(length).unwrap();
    log.seek(SeekFrom::End(0)).unwrap();
    log.write_all(b"x").unwrap();
    log.seek(SeekFrom::End(-1)).unwrap();
    log.read_exact(&mut [0]).unwrap();
}

/// Exchanges two files.
fn exchange(one: &Path, other: &Path) {
    renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE).unwrap();
}

/// Case 178: whatever the engine looks at and then opens may be a pipe by then. Other sessions' news still arrive.
#[test]
fn case_178_files_that_are_exchanged_for_pipes_keep_nobody_waiting() {
    let user = User::new();
    let (attacked, other) = (user.session(1), user.session(2));
    let _owners = (attacked.owner(&user), other.owner(&user));
    attacked.prompt();
    other.prompt();
    let watch = user.watch();
    watch.wait_status(&other, "working");
    let places = [attacked.path.join("workspace.yaml"), attacked.log()];
    let pipes = ["one pipe", "other pipe"].map(|name| user.scratch.path().join(name));
    for pipe in &pipes {
        mknodat(CWD, pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    }
    while_written(
        |n| exchange(&places[n as usize % 2], &pipes[n as usize % 2]),
        || {
            for _ in 0..50 {
                other.answer();
                watch.wait_status(&other, "idle");
                other.prompt();
                watch.wait_status(&other, "working");
            }
            for rows in status_runs(&user, 20) {
                assert!(rows.iter().any(|row| row["id"] == other.id && row["status"] == "working"), "{rows:?}");
            }
        },
    );
    for (place, pipe) in places.iter().zip(&pipes).filter(|(place, _)| !place.is_file()) {
        exchange(place, pipe);
    }
    attacked.answer();
    watch.wait_status(&attacked, "idle");
    assert_eq!(watch.end(Signal::TERM), Some(0));
}
