//! The runtime folder: something of somebody else's stands in it, or in its place.

use super::trays::{Tray, socket};
use crate::support::made_up::User;
use crate::support::ran::ran;
use crate::support::{SOON, wait_until};
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

/// A user whose login session has a runtime folder.
struct Place {
    user: User,
    run: PathBuf,
}

impl Place {
    fn new() -> Self {
        let user = User::new();
        let run = user.scratch.path().join("run");
        fs::create_dir(&run).unwrap();
        fs::set_permissions(&run, Permissions::from_mode(0o700)).unwrap();
        Self { user, run }
    }

    /// Where the tray's things belong.
    fn folder(&self) -> PathBuf {
        self.run.join("pilotlight")
    }

    fn made(&self) -> PathBuf {
        fs::create_dir(self.folder()).unwrap();
        fs::set_permissions(self.folder(), Permissions::from_mode(0o700)).unwrap();
        self.folder()
    }

    fn pilotlight(&self, args: &[&str]) -> Command {
        let mut command = self.user.pilotlight(args);
        command.env("XDG_RUNTIME_DIR", &self.run);
        command
    }

    fn run(&self, args: &[&str]) -> Output {
        self.pilotlight(args).output().unwrap()
    }

    /// The tray starts, says why that folder is not used, and is found by others where it is instead.
    fn is_passed_over(&self, because: &str) {
        let begun = ran();
        let tray = Tray::start_from(&self.user, self.pilotlight(&["tray"]));
        let elsewhere = socket(&self.user);
        wait_until(SOON, "it serves its socket elsewhere", || tray.said(), || elsewhere.exists().then_some(()));
        let took = ran() - begun;
        assert!(took < Duration::from_secs(10), "{took:?}");
        tray.says(because);
        tray.says(&format!("using {} instead", elsewhere.parent().unwrap().display()));
        let second = self.run(&["tray"]);
        let said = String::from_utf8_lossy(&second.stdout);
        assert!(second.status.success() && said.contains(&format!("process {}", tray.pid())), "{second:?}");
        // A command hands its order to it: the tray refuses, and not the command.
        let session = self.user.session(1);
        let _owner = session.owner(&self.user);
        session.prompt();
        let begun = ran();
        let approve = self.run(&["approve", "00000001"]);
        let took = ran() - begun;
        assert!(took < Duration::from_secs(5), "{took:?}");
        assert_eq!(approve.status.code(), Some(4), "{approve:?}");
        let said = String::from_utf8_lossy(&approve.stderr);
        assert!(said.contains("no tray can be asked") && said.contains(because), "{said}");
        let doctor = self.run(&["doctor"]);
        let said = String::from_utf8_lossy(&doctor.stdout);
        assert!(said.contains(because) && said.contains(&format!("runs: process {}", tray.pid())), "{said}");
    }
}

#[test]
fn case_143_a_link_in_the_place_of_the_runtime_folder_is_not_followed() {
    let place = Place::new();
    let target = place.user.scratch.path().join("target");
    fs::create_dir(&target).unwrap();
    fs::set_permissions(&target, Permissions::from_mode(0o700)).unwrap();
    symlink(&target, place.folder()).unwrap();
    place.is_passed_over("is not a folder, or a link to one");
    assert_eq!(fs::read_dir(target).unwrap().count(), 0, "nothing was put there");
}

#[test]
fn case_143_a_fifo_is_not_waited_for() {
    for name in ["pilotlight.lock", "pilotlight.pid", "pilotlight.sock"] {
        let place = Place::new();
        let fifo = place.made().join(name);
        assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
        place.is_passed_over(&format!("{name} is a FIFO, which Pilotlight did not put there: remove it"));
    }
}

#[test]
fn case_143_a_link_to_something_precious_is_not_written_to() {
    for name in ["pilotlight.lock", "pilotlight.pid"] {
        let place = Place::new();
        let precious = place.user.scratch.path().join("precious");
        fs::write(&precious, "as it was").unwrap();
        symlink(&precious, place.made().join(name)).unwrap();
        place.is_passed_over(&format!("{name} is a link, which Pilotlight did not put there: remove it"));
        assert_eq!(fs::read_to_string(&precious).unwrap(), "as it was");
    }
}

#[test]
fn case_143_another_users_things_are_no_reason_not_to_start() {
    if !rustix::process::geteuid().is_root() {
        return; // what is another user's cannot be made without being root
    }
    let theirs = |path: &Path| std::os::unix::fs::chown(path, Some(65534), Some(65534)).unwrap();
    let place = Place::new();
    theirs(&place.made());
    place.is_passed_over("belongs to another user (number 65534)");
    let place = Place::new();
    let lock = place.made().join("pilotlight.lock");
    fs::write(&lock, "").unwrap();
    theirs(&lock);
    place.is_passed_over("pilotlight.lock belongs to another user (number 65534): remove it");
}

/// There is nowhere else: the light is shown all the same, and says what does not work.
#[test]
fn case_143_without_any_folder_of_ours_the_tray_still_runs() {
    let user = User::new();
    let folder = super::trays::folder(&user);
    fs::create_dir_all(&folder).unwrap();
    symlink("/nowhere", folder.join("pilotlight.lock")).unwrap();
    let tray = Tray::start_from(&user, user.pilotlight(&["tray"]));
    tray.says("commands cannot reach this tray: ");
    tray.says("pilotlight.lock is a link");
    tray.says("no icon and no notifications"); // it went on to look for a panel
}
