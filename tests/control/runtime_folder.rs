//! The runtime folder contains, or is, something that we did not make.

use super::trays::{Tray, socket};
use crate::support::running_time::running_time;
use crate::support::synthetic::User;
use crate::support::{SOON, wait_until};
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

/// A user whose login session has a runtime folder.
struct Place {
    user: User,
    runtime: PathBuf,
}

impl Place {
    fn new() -> Self {
        let user = User::new();
        let runtime = user.scratch.path().join("run");
        fs::create_dir(&runtime).unwrap();
        fs::set_permissions(&runtime, Permissions::from_mode(0o700)).unwrap();
        Self { user, runtime }
    }

    /// The tray's own folder.
    fn folder(&self) -> PathBuf {
        self.runtime.join("pilotlight")
    }

    fn create_folder(&self) -> PathBuf {
        fs::create_dir(self.folder()).unwrap();
        fs::set_permissions(self.folder(), Permissions::from_mode(0o700)).unwrap();
        self.folder()
    }

    fn pilotlight(&self, args: &[&str]) -> Command {
        let mut command = self.user.pilotlight(args);
        command.env("XDG_RUNTIME_DIR", &self.runtime);
        command
    }

    fn run(&self, args: &[&str]) -> Output {
        self.pilotlight(args).output().unwrap()
    }

    /// Asserts that the tray starts, reports why it does not use that folder, and is found elsewhere.
    fn is_not_used(&self, because: &str) {
        let begun = running_time();
        let tray = Tray::start_from(&self.user, self.pilotlight(&["tray"]));
        let elsewhere = socket(&self.user);
        wait_until(SOON, "it serves its socket elsewhere", || tray.output(), || elsewhere.exists().then_some(()));
        let took = running_time() - begun;
        assert!(took < Duration::from_secs(10), "{took:?}");
        tray.wait_output(because);
        tray.wait_output(&format!("using {} instead", elsewhere.parent().unwrap().display()));
        let second = self.run(&["tray"]);
        let stdout = String::from_utf8_lossy(&second.stdout);
        assert!(second.status.success() && stdout.contains(&format!("process {}", tray.pid())), "{second:?}");
        // A command cannot send it an order, and says why.
        let session = self.user.session(1);
        let _owner = session.owner(&self.user);
        session.prompt();
        let begun = running_time();
        let approve = self.run(&["approve", "--yes", "00000001"]);
        let took = running_time() - begun;
        assert!(took < Duration::from_secs(5), "{took:?}");
        assert_eq!(approve.status.code(), Some(4), "{approve:?}");
        let stderr = String::from_utf8_lossy(&approve.stderr);
        assert!(stderr.contains("no tray can be asked") && stderr.contains(because), "{stderr}");
        let doctor = self.run(&["doctor"]);
        let stdout = String::from_utf8_lossy(&doctor.stdout);
        assert!(stdout.contains(because) && stdout.contains(&format!("runs: process {}", tray.pid())), "{stdout}");
    }
}

#[test]
fn case_143_a_symlink_in_place_of_the_runtime_folder_is_not_followed() {
    let place = Place::new();
    let target = place.user.scratch.path().join("target");
    fs::create_dir(&target).unwrap();
    fs::set_permissions(&target, Permissions::from_mode(0o700)).unwrap();
    symlink(&target, place.folder()).unwrap();
    place.is_not_used("is not a folder, or a link to one");
    assert_eq!(fs::read_dir(target).unwrap().count(), 0, "nothing was written there");
}

#[test]
fn case_143_a_fifo_is_not_waited_for() {
    for name in ["pilotlight.lock", "pilotlight.pid", "pilotlight.sock"] {
        let place = Place::new();
        let fifo = place.create_folder().join(name);
        assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
        place.is_not_used(&format!("{name} is a FIFO, which Pilotlight did not put there: remove it"));
    }
}

#[test]
fn case_143_a_symlink_to_a_file_of_the_user_is_not_written_to() {
    for name in ["pilotlight.lock", "pilotlight.pid"] {
        let place = Place::new();
        let precious = place.user.scratch.path().join("precious");
        fs::write(&precious, "as it was").unwrap();
        symlink(&precious, place.create_folder().join(name)).unwrap();
        place.is_not_used(&format!("{name} is a link, which Pilotlight did not put there: remove it"));
        assert_eq!(fs::read_to_string(&precious).unwrap(), "as it was");
    }
}

#[test]
fn case_143_another_users_files_do_not_prevent_a_start() {
    if !rustix::process::geteuid().is_root() {
        return; // only root can create another user's files
    }
    let give_away = |path: &Path| std::os::unix::fs::chown(path, Some(65534), Some(65534)).unwrap();
    let place = Place::new();
    give_away(&place.create_folder());
    place.is_not_used("belongs to another user (number 65534)");
    let place = Place::new();
    let lock = place.create_folder().join("pilotlight.lock");
    fs::write(&lock, "").unwrap();
    give_away(&lock);
    place.is_not_used("pilotlight.lock belongs to another user (number 65534): remove it");
}

/// It reports that commands cannot reach it.
#[test]
fn case_143_without_a_usable_folder_the_tray_still_runs() {
    let user = User::new();
    let folder = super::trays::folder(&user);
    fs::create_dir_all(&folder).unwrap();
    symlink("/nowhere", folder.join("pilotlight.lock")).unwrap();
    let tray = Tray::start_from(&user, user.pilotlight(&["tray"]));
    tray.wait_output("commands cannot reach this tray: ");
    tray.wait_output("pilotlight.lock is a link");
    tray.wait_output("no icon and no notifications"); // it continued its start up to the panel
}
