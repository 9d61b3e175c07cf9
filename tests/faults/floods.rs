//! More data on disk than can be read: whatever the files of one session are, the others are reported at once, and the
//! program exits on SIGTERM. The limits here are generous for busy machines. The bench `floods` prints exact figures.

use crate::support::running_time::running_time;
use crate::support::synthetic::{Folder, User, Watch};
use crate::support::{self, SOON};
use rustix::process::Signal;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{Seek, SeekFrom, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How late a change may be reported. A loop that is blocked by what the tests do is seconds late, or never reports it.
pub(super) const LATE: Duration = Duration::from_secs(2);
/// How long the exit may take.
const END: Duration = Duration::from_secs(2);

/// A session that alternates between working and idle while something else goes wrong.
pub(super) struct Pulse<'a> {
    pub(super) session: &'a Folder,
    pub(super) watch: &'a Watch,
}

impl Pulse<'_> {
    /// Changes its status `times` times. Returns the longest time until a change was reported.
    pub(super) fn beat(&self, times: u32) -> Duration {
        let mut worst = Duration::ZERO;
        for n in 0..times {
            let status = if n % 2 == 0 { "working" } else { "idle" };
            let start = running_time();
            if n % 2 == 0 {
                self.session.prompt();
            } else {
                self.session.answer();
            }
            self.watch.wait_status(self.session, status);
            worst = worst.max(running_time() - start);
        }
        worst
    }
}

/// Runs [`Pulse::beat`] while another thread calls `harm` again and again.
pub(super) fn beat_while(pulse: &Pulse<'_>, times: u32, mut harm: impl FnMut(u32) + Send) -> Duration {
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for n in 0.. {
                harm(n);
                if done.load(Ordering::Relaxed) {
                    break;
                }
            }
        });
        let worst = pulse.beat(times);
        done.store(true, Ordering::Relaxed);
        worst
    })
}

/// Asserts that it exits in time after SIGTERM.
pub(super) fn assert_exits(watch: Watch) {
    let start = running_time();
    assert_eq!(watch.end(Signal::TERM), Some(0));
    let took = running_time() - start;
    assert!(took < END, "it exited after {took:.1?}");
}

/// Case 134: a watched log that grows to a terabyte from one moment to the next.
#[test]
fn case_134_a_log_of_a_terabyte_delays_nothing() {
    let user = User::new();
    let (huge, other) = (user.session(1), user.session(2));
    let _owners = (huge.owner(&user), other.owner(&user));
    huge.prompt();
    let watch = user.watch();
    watch.wait_status(&huge, "working");
    let length = fs::metadata(huge.log()).unwrap().len();
    let file = OpenOptions::new().write(true).open(huge.log()).unwrap();
    let pulse = Pulse { session: &other, watch: &watch };
    let worst = beat_while(&pulse, 20, |n| file.set_len((1 << 40) + u64::from(n)).unwrap());
    println!("with a log of a terabyte: reported within {worst:.1?}");
    assert!(worst < LATE, "{worst:.1?}");
    // Its end contains no event. Both the running `watch` and a new `status` report that.
    watch.wait_row(&huge, "not judged", |row| row["because"].as_str().unwrap().contains("line of more than 64 MB"));
    assert_eq!(user.status_and_reason(&huge).0, "quiet");
    file.set_len(length).unwrap();
    watch.wait_status(&huge, "working");
    assert_eq!(user.status_and_reason(&huge).0, "working");
    file.set_len(1 << 40).unwrap();
    assert_exits(watch);
}

/// Case 134: SIGTERM arrives while file events come faster than they are read, so there is always more work.
#[test]
fn case_134_a_storm_of_events_does_not_prevent_the_exit() {
    let user = User::new();
    let (full, done) = (user.session(1), AtomicBool::new(false));
    let _owner = full.owner(&user);
    full.prompt();
    let watch = user.watch();
    watch.wait_status(&full, "working");
    for n in 0..20_000_u32 {
        File::create(full.path.join(format!("inuse.{}.lock", 2_000_000_000 + n))).unwrap();
    }
    std::thread::scope(|scope| {
        for kind in 0..2_u32 {
            let (full, done) = (&full, &done);
            scope.spawn(move || {
                let path = full.path.join(format!("inuse.{}.lock", 2_100_000_000 + kind));
                while !done.load(Ordering::Relaxed) {
                    drop(File::create(&path).unwrap());
                    fs::remove_file(&path).unwrap();
                }
            });
        }
        let start = running_time();
        let code = watch.end(Signal::TERM);
        let took = running_time() - start;
        done.store(true, Ordering::Relaxed);
        assert_eq!(code, Some(0));
        assert!(took < END, "it exited after {took:.1?}");
    });
}

/// Case 134: a log that grows faster than it can be read.
#[test]
fn case_134_a_log_that_grows_faster_than_it_is_read_delays_nothing() {
    let user = User::new();
    let (fast, other) = (user.session(1), user.session(2));
    let _owners = (fast.owner(&user), other.owner(&user));
    fast.prompt();
    let watch = user.watch();
    watch.wait_status(&fast, "working");
    let mut file = OpenOptions::new().write(true).open(fast.log()).unwrap();
    let line = fast.line(Duration::ZERO, "session.info", r#"{"message":"on and on"}"#);
    let pulse = Pulse { session: &other, watch: &watch };
    // Each time by more than is ever read at once, with a separate line at the end.
    let worst = beat_while(&pulse, 20, |_| {
        file.seek(SeekFrom::End(100 << 20)).unwrap();
        file.write_all(format!("\n{line}").as_bytes()).unwrap();
    });
    println!("with a log that grows by 100 MB at a time: reported within {worst:.1?}");
    assert!(worst < LATE, "{worst:.1?}");
    fast.prompt();
    fast.answer();
    watch.wait_status(&fast, "idle");
    assert_exits(watch);
}

/// Case 136: twenty thousand locks in a session's folder, created and read while others work. Its owner is known
/// throughout.
#[test]
fn case_136_twenty_thousand_locks_delay_nothing() {
    let user = User::new();
    let (full, other) = (user.session(1), user.session(2));
    let _owners = (full.owner(&user), other.owner(&user));
    full.prompt();
    let watch = user.watch();
    watch.wait_status(&full, "working");
    let pulse = Pulse { session: &other, watch: &watch };
    let worst = beat_while(&pulse, 30, |n| {
        for pid in 0..1000 {
            drop(
                File::create(full.path.join(format!("inuse.{}.lock", 2_000_000_000 + 1000 * (n % 20) + pid))).unwrap(),
            );
        }
    });
    println!("while locks are created: reported within {worst:.1?}");
    assert!(worst < LATE, "{worst:.1?}");
    for pid in 0..20_000 {
        drop(File::create(full.path.join(format!("inuse.{}.lock", 2_000_000_000 + pid))).unwrap());
    }
    full.answer();
    watch.wait_status(&full, "idle");
    let row = watch.latest().remove(&full.id).unwrap();
    assert_eq!(row["owner"]["state"], "alive", "{row}");
    assert_eq!(user.row(&full).unwrap()["owner"]["state"], "alive");
    let worst = pulse.beat(10);
    assert!(worst < LATE, "{worst:.1?}");
    assert_exits(watch);
}

/// A process that wrote a lock may need some milliseconds to hold the session. The program does not wait for five
/// hundred new ones in turn, which would take three seconds.
#[test]
fn five_hundred_new_locks_delay_nothing() {
    let (user, other, owner, watch) = User::working(0);
    let pulse = Pulse { session: &other, watch: &watch };
    let copies: Vec<_> = (1..=500).map(|n| user.session(n)).collect();
    let worst = beat_while(&pulse, 10, |_| {
        for copy in &copies {
            copy.lock(owner.pid());
        }
    });
    println!("while five hundred locks are created again and again: reported within {worst:.1?}");
    assert!(worst < LATE, "{worst:.1?}");
    let (copies, rest) = copies.split_at(100);
    rest.iter().for_each(|copy| fs::remove_dir_all(&copy.path).unwrap());
    copies.iter().for_each(|copy| drop(copy.lock(owner.pid())));
    let start = running_time();
    let late = user.watch();
    late.wait_status(&other, "idle");
    let took = running_time() - start;
    assert!(took < LATE, "a new `watch` reports after {took:.1?}");
    let held = |rows: &BTreeMap<String, Value>| rows.values().filter(|row| row["owner"]["state"] == "alive").count();
    let dump = || format!("{} reported, {} of them held", late.latest().len(), held(&late.latest()));
    let rows = support::wait_until(SOON, "all are reported, and only the owner's session as held", dump, || {
        Some(late.latest()).filter(|rows| rows.len() == copies.len() + 1 && held(rows) == 1)
    });
    for row in user.rows(&[]) {
        assert_eq!(rows[row["id"].as_str().unwrap()]["status"], row["status"], "{row}");
    }
    assert_exits(late);
    assert_exits(watch);
}

/// A storm of created and removed folders, with more events than the system queues.
#[test]
fn a_storm_of_folders_delays_nothing() {
    storm_of_folders(1500);
}

#[test]
#[ignore = "five thousand folders, again and again"]
fn a_storm_of_five_thousand_folders_delays_nothing() {
    for _ in 0..3 {
        storm_of_folders(5000);
    }
}

fn storm_of_folders(folders: u32) {
    let (user, other, _owner, watch) = User::working(0);
    let pulse = Pulse { session: &other, watch: &watch };
    pulse.session.answer();
    let worst = beat_while(&pulse, 20, |n| {
        for k in 1..=folders {
            let session = user.session(k);
            if n == 0 && k % 2 == 0 {
                session.ended(Duration::from_secs(3600));
            }
        }
        for k in (1..=folders).filter(|k| k % 3 == 0) {
            fs::remove_dir_all(user.session(k).path).unwrap();
        }
    });
    println!("in a storm of {folders} folders: reported within {worst:.1?}");
    assert!(worst < LATE, "{worst:.1?}");
    // All removals were reported, and a later session is reported too.
    let left = || {
        let listed = watch.latest().into_values().filter(|row| row["removed"] != true);
        listed.filter(|row| !user.sessions().join(row["id"].as_str().unwrap()).exists()).collect::<Vec<_>>()
    };
    support::wait_until(
        SOON,
        "all removals are reported",
        || format!("{:?}", left()),
        || left().is_empty().then_some(()),
    );
    let new = user.session(folders + 1);
    let _owner_of_new = new.owner(&user);
    watch.wait_status(&new, "idle");
    assert_exits(watch);
}
