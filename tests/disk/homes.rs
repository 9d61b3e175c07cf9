//! Homes that are removed, replaced, mounted over or redirected while they are followed.

use crate::support::running_time::running_time;
use crate::support::synthetic::{Folder, User, Watch};
use crate::support::{SOON, wait_until};
use rustix::process::Signal;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

/// Shorter than any interval of rescans and of the poll for homes without file events.
const AT_ONCE: Duration = Duration::from_secs(3);

/// A user with a Copilot home at a chosen path.
struct Stage {
    user: User,
    home: PathBuf,
}

impl Stage {
    fn new(home: &str) -> Self {
        let user = User::new();
        let home = user.scratch.path().join(home);
        Self { user, home }
    }

    fn watch(&self) -> Watch {
        let home = self.home.to_str().unwrap();
        Watch::start(self.user.pilotlight(&["watch", "--json", "--home", home]))
    }

    /// Makes another home with one working session.
    fn other_home(&self, name: &str, n: u32) -> (PathBuf, Folder) {
        let home = self.user.scratch.path().join(name);
        fs::create_dir_all(home.join("session-state")).unwrap();
        let session = self.user.session(n);
        let path = home.join("session-state").join(&session.id);
        fs::rename(&session.path, &path).unwrap();
        let session = session.moved(path);
        session.prompt();
        (home, session)
    }
}

/// The ids and last statuses of the sessions that were not removed.
fn statuses(watch: &Watch) -> Vec<(String, String)> {
    let listed = watch.latest().into_iter().filter(|(_, row)| row["removed"] != true);
    listed.map(|(id, row)| (id, row["status"].as_str().unwrap().to_owned())).collect()
}

#[track_caller]
fn reports_at_once(watch: &Watch, sessions: &[(&Folder, &str)]) {
    let expected: Vec<_> =
        sessions.iter().map(|(session, status)| (session.id.clone(), (*status).to_owned())).collect();
    let start = running_time();
    let is_reported = || (statuses(watch) == expected).then_some(());
    wait_until(SOON, "the home is followed", || format!("{:?}", statuses(watch)), is_reported);
    let took = running_time() - start;
    println!("followed within {took:.1?}");
    assert!(took < AT_ONCE, "followed after {took:.1?}");
}

/// Case 139: a home is renamed, replaced by another, and put back.
#[test]
fn case_139_a_home_that_is_replaced_is_followed() {
    for home in ["home", "deep/er/home"] {
        let stage = Stage::new(home);
        fs::create_dir_all(stage.home.parent().unwrap()).unwrap();
        let ((first, one), (second, two)) = (stage.other_home("first", 1), stage.other_home("second", 2));
        let _owners = (one.owner(&stage.user), two.owner(&stage.user));
        fs::rename(&first, &stage.home).unwrap();
        let (one, two) = (one.in_home(&stage.home), two.in_home(&stage.home));
        let watch = stage.watch();
        reports_at_once(&watch, &[(&one, "working")]);
        let (mut here, mut there) = (&one, &two);
        for n in 0..6 {
            let (away, next) = if n % 2 == 0 { (&first, &second) } else { (&second, &first) };
            fs::rename(&stage.home, away).unwrap();
            fs::rename(next, &stage.home).unwrap();
            (here, there) = (there, here);
            reports_at_once(&watch, &[(here, if n < 2 { "working" } else { "idle" })]);
            // The new home is watched.
            here.answer();
            reports_at_once(&watch, &[(here, "idle")]);
        }
        // Its parent folder is renamed, with nothing in its place for a while.
        let parent = stage.home.parent().unwrap().to_owned();
        if parent != stage.user.scratch.path() {
            let away = stage.user.scratch.path().join("away");
            fs::rename(&parent, &away).unwrap();
            reports_at_once(&watch, &[]);
            fs::rename(&away, &parent).unwrap();
            reports_at_once(&watch, &[(here, "idle")]);
        }
        assert_eq!(watch.end(Signal::TERM), Some(0));
    }
}

/// Case 139: a home becomes a symlink, the symlink changes, and its target is renamed.
#[test]
fn case_139_a_home_that_is_a_symlink_is_followed_to_its_target() {
    let stage = Stage::new("home");
    let ((first, one), (second, two)) = (stage.other_home("first", 1), stage.other_home("second", 2));
    let _owners = (one.owner(&stage.user), two.owner(&stage.user));
    std::os::unix::fs::symlink("first", &stage.home).unwrap();
    let watch = stage.watch();
    reports_at_once(&watch, &[(&one, "working")]);
    // First as `ln -sfn` does it, then atomically.
    fs::remove_file(&stage.home).unwrap();
    std::os::unix::fs::symlink(&second, &stage.home).unwrap();
    reports_at_once(&watch, &[(&two, "working")]);
    let new = stage.user.scratch.path().join("new");
    std::os::unix::fs::symlink(&first, &new).unwrap();
    fs::rename(&new, &stage.home).unwrap();
    reports_at_once(&watch, &[(&one, "working")]);
    one.answer();
    reports_at_once(&watch, &[(&one, "idle")]);
    // Its target is renamed, and another folder takes that name.
    fs::rename(&first, stage.user.scratch.path().join("old")).unwrap();
    reports_at_once(&watch, &[]);
    fs::rename(&second, &first).unwrap();
    reports_at_once(&watch, &[(&two.in_home(&first), "working")]);
    // A folder replaces the symlink.
    fs::remove_file(&stage.home).unwrap();
    fs::rename(&first, &stage.home).unwrap();
    two.in_home(&stage.home).answer();
    reports_at_once(&watch, &[(&two, "idle")]);
    assert_eq!(watch.end(Signal::TERM), Some(0));
}

/// Case 139: a folder is mounted over a home, and unmounted.
#[test]
fn case_139_a_home_that_is_mounted_over_is_followed() {
    let unshared = |arguments: &[&str]| Command::new("unshare").args(arguments).arg("true").status();
    if !rustix::process::geteuid().is_root() || !unshared(&["-m"]).is_ok_and(|status| status.success()) {
        return;
    }
    let stage = Stage::new("home");
    let ((first, one), (second, two)) = (stage.other_home("first", 1), stage.other_home("second", 2));
    let _owners = (one.owner(&stage.user), two.owner(&stage.user));
    fs::rename(&first, &stage.home).unwrap();
    let one = one.in_home(&stage.home);
    // In its own mount namespace, which the test enters to mount.
    let plain = stage.user.pilotlight(&["watch", "--json", "--home", stage.home.to_str().unwrap()]);
    let mut inside = Command::new("unshare");
    inside.arg("-m").arg(plain.get_program()).args(plain.get_args()).env_clear();
    inside.envs(plain.get_envs().filter_map(|(key, value)| Some((key, value?))));
    let watch = Watch::start(inside);
    reports_at_once(&watch, &[(&one, "working")]);
    let mount = |command: &str, arguments: &[&std::ffi::OsStr]| {
        let pid = format!("--target={}", watch.pid());
        let done = Command::new("nsenter").args([&*pid, "--mount", command]).args(arguments).status().unwrap();
        assert!(done.success());
    };
    for _ in 0..3 {
        mount("mount", &["--bind".as_ref(), second.as_ref(), stage.home.as_ref()]);
        reports_at_once(&watch, &[(&two, "working")]);
        mount("umount", &[stage.home.as_ref()]);
        reports_at_once(&watch, &[(&one, "working")]);
    }
    one.answer();
    reports_at_once(&watch, &[(&one, "idle")]);
    // An empty file system is mounted over it.
    mount("mount", &["-t".as_ref(), "tmpfs".as_ref(), "none".as_ref(), stage.home.as_ref()]);
    reports_at_once(&watch, &[]);
    assert_eq!(watch.end(Signal::TERM), Some(0));
}

/// Files that are created and removed in a home do not wake the program. In the folder above it, a home of another agent may
/// be made.
#[test]
fn changes_in_a_home_do_not_wake_the_program() {
    for has_logs in [true, false] {
        assert_not_woken(has_logs);
    }
}

/// `has_logs`: whether the home has a `logs` folder, as after a run of Copilot, unless it was removed or is elsewhere.
fn assert_not_woken(has_logs: bool) {
    let user = User::new();
    let session = user.session(1);
    let _owner = session.owner(&user);
    if has_logs {
        fs::create_dir(user.home().join("logs")).unwrap();
    }
    let watch = user.watch();
    watch.wait_status(&session, "idle");
    let switches = || {
        let status = fs::read_to_string(format!("/proc/{}/status", watch.pid())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:")).unwrap();
        line.trim().parse::<u64>().unwrap()
    };
    // Startup is over when nothing wakes it for a while.
    let mut last = 0;
    wait_until(SOON, "it is idle", String::new, || (std::mem::replace(&mut last, switches()) == last).then_some(()));
    let before = switches();
    for n in 0..500 {
        fs::write(user.home().join(format!("file {n}")), "x").unwrap();
        fs::remove_file(user.home().join(format!("file {n}"))).unwrap();
    }
    session.prompt();
    watch.wait_status(&session, "working");
    let woken = switches() - before;
    assert!(woken < 50, "woken {woken} times, logs: {has_logs}");
}
