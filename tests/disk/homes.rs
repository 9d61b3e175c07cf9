//! Homes that are taken away, replaced, mounted over and led elsewhere while they are followed.

use crate::support::made_up::{Folder, User, Watch};
use crate::support::ran::ran;
use crate::support::{SOON, wait_until};
use rustix::process::Signal;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

/// Sooner than any rescan, and than homes are looked at where no event tells of them.
const AT_ONCE: Duration = Duration::from_secs(3);

/// A user whose home is at a path of our choice, with a session that works.
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

    /// Makes a home with one session, which works, elsewhere.
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

/// The sessions that are told to be there, and what they do.
fn told(watch: &Watch) -> Vec<(String, String)> {
    let there = watch.latest().into_iter().filter(|(_, row)| row["removed"] != true);
    there.map(|(id, row)| (id, row["status"].as_str().unwrap().to_owned())).collect()
}

#[track_caller]
fn tells_at_once(watch: &Watch, sessions: &[(&Folder, &str)]) {
    let wanted: Vec<_> = sessions.iter().map(|(session, status)| (session.id.clone(), (*status).to_owned())).collect();
    let begun = ran();
    wait_until(SOON, "the home is followed", || format!("{:?}", told(watch)), || (told(watch) == wanted).then_some(()));
    let took = ran() - begun;
    println!("followed within {took:.1?}");
    assert!(took < AT_ONCE, "followed after {took:.1?}");
}

/// Case 139: a home renamed away, another one put there, and changed back again.
#[test]
fn case_139_a_home_renamed_away_and_another_put_there_is_followed() {
    for home in ["home", "deep/er/home"] {
        let stage = Stage::new(home);
        fs::create_dir_all(stage.home.parent().unwrap()).unwrap();
        let ((first, one), (second, two)) = (stage.other_home("first", 1), stage.other_home("second", 2));
        let _owners = (one.owner(&stage.user), two.owner(&stage.user));
        fs::rename(&first, &stage.home).unwrap();
        let (one, two) = (one.in_home(&stage.home), two.in_home(&stage.home));
        let watch = stage.watch();
        tells_at_once(&watch, &[(&one, "working")]);
        let (mut here, mut there) = (&one, &two);
        for n in 0..6 {
            let (away, next) = if n % 2 == 0 { (&first, &second) } else { (&second, &first) };
            fs::rename(&stage.home, away).unwrap();
            fs::rename(next, &stage.home).unwrap();
            (here, there) = (there, here);
            tells_at_once(&watch, &[(here, if n < 2 { "working" } else { "idle" })]);
            // It is watched, and the one that went is not.
            here.answer();
            tells_at_once(&watch, &[(here, "idle")]);
        }
        // With all that is above it, and nothing in its place for a while.
        let above = stage.home.parent().unwrap().to_owned();
        if above != stage.user.scratch.path() {
            let away = stage.user.scratch.path().join("away");
            fs::rename(&above, &away).unwrap();
            tells_at_once(&watch, &[]);
            fs::rename(&away, &above).unwrap();
            tells_at_once(&watch, &[(here, "idle")]);
        }
        assert_eq!(watch.end(Signal::TERM), Some(0));
    }
}

/// Case 139: a home that becomes a link, a link that leads elsewhere, and what it leads to renamed.
#[test]
fn case_139_a_home_that_is_a_link_is_followed_wherever_it_leads() {
    let stage = Stage::new("home");
    let ((first, one), (second, two)) = (stage.other_home("first", 1), stage.other_home("second", 2));
    let _owners = (one.owner(&stage.user), two.owner(&stage.user));
    std::os::unix::fs::symlink("first", &stage.home).unwrap();
    let watch = stage.watch();
    tells_at_once(&watch, &[(&one, "working")]);
    // As `ln -sfn` does it, and at one go.
    fs::remove_file(&stage.home).unwrap();
    std::os::unix::fs::symlink(&second, &stage.home).unwrap();
    tells_at_once(&watch, &[(&two, "working")]);
    let beside = stage.user.scratch.path().join("beside");
    std::os::unix::fs::symlink(&first, &beside).unwrap();
    fs::rename(&beside, &stage.home).unwrap();
    tells_at_once(&watch, &[(&one, "working")]);
    one.answer();
    tells_at_once(&watch, &[(&one, "idle")]);
    // What it leads to goes, and another one takes its name.
    fs::rename(&first, stage.user.scratch.path().join("old")).unwrap();
    tells_at_once(&watch, &[]);
    fs::rename(&second, &first).unwrap();
    tells_at_once(&watch, &[(&two.in_home(&first), "working")]);
    // A folder takes the place of the link.
    fs::remove_file(&stage.home).unwrap();
    fs::rename(&first, &stage.home).unwrap();
    two.in_home(&stage.home).answer();
    tells_at_once(&watch, &[(&two, "idle")]);
    assert_eq!(watch.end(Signal::TERM), Some(0));
}

/// Case 139: something is mounted over a home, and taken away again.
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
    // In mounts of its own, which the test reaches into.
    let plain = stage.user.pilotlight(&["watch", "--json", "--home", stage.home.to_str().unwrap()]);
    let mut inside = Command::new("unshare");
    inside.arg("-m").arg(plain.get_program()).args(plain.get_args()).env_clear();
    inside.envs(plain.get_envs().filter_map(|(key, value)| Some((key, value?))));
    let watch = Watch::start(inside);
    tells_at_once(&watch, &[(&one, "working")]);
    let mount = |command: &str, arguments: &[&std::ffi::OsStr]| {
        let pid = format!("--target={}", watch.pid());
        let done = Command::new("nsenter").args([&*pid, "--mount", command]).args(arguments).status().unwrap();
        assert!(done.success());
    };
    for _ in 0..3 {
        mount("mount", &["--bind".as_ref(), second.as_ref(), stage.home.as_ref()]);
        tells_at_once(&watch, &[(&two, "working")]);
        mount("umount", &[stage.home.as_ref()]);
        tells_at_once(&watch, &[(&one, "working")]);
    }
    one.answer();
    tells_at_once(&watch, &[(&one, "idle")]);
    // Over what is above it, with nothing there.
    mount("mount", &["-t".as_ref(), "tmpfs".as_ref(), "none".as_ref(), stage.home.as_ref()]);
    tells_at_once(&watch, &[]);
    assert_eq!(watch.end(Signal::TERM), Some(0));
}

/// What comes and goes beside a home wakes nobody.
#[test]
fn what_happens_beside_a_home_wakes_nobody() {
    for has_logs in [true, false] {
        wakes_nobody(has_logs);
    }
}

/// `has_logs`: as every home has in which Copilot ran, unless they were removed, or go elsewhere.
fn wakes_nobody(has_logs: bool) {
    let user = User::new();
    let session = user.session(1);
    let _owner = session.owner(&user);
    if has_logs {
        fs::create_dir(user.home().join("logs")).unwrap();
    }
    let watch = user.watch();
    watch.told(&session, "idle");
    let switches = || {
        let status = fs::read_to_string(format!("/proc/{}/status", watch.pid())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:")).unwrap();
        line.trim().parse::<u64>().unwrap()
    };
    // Its beginning is over when nothing wakes it for a while.
    let mut last = 0;
    wait_until(SOON, "it rests", String::new, || (std::mem::replace(&mut last, switches()) == last).then_some(()));
    let before = switches();
    for n in 0..500 {
        for folder in [user.scratch.path().to_owned(), user.home()] {
            fs::write(folder.join(format!("file {n}")), "x").unwrap();
            fs::remove_file(folder.join(format!("file {n}"))).unwrap();
        }
    }
    session.prompt();
    watch.told(&session, "working");
    let woken = switches() - before;
    assert!(woken < 50, "woken {woken} times, logs: {has_logs}");
}
