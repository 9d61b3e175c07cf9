//! Where a Linux desktop is told what to start at login: a desktop entry in the user's folder, one of the system's that holds
//! as long as the user has none, and our systemd unit, where somebody enabled that.

use super::State;
use super::entry::{self, Says};
use crate::system::{paths, state_file};
use anyhow::Context;
use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use rustix::io::Errno;
use std::env;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use tokio::net::unix::pipe::Receiver;

/// The entry's name; that of the program in the menu of programs as well.
const ENTRY: &str = "pilotlight.desktop";
const UNIT: &str = "pilotlight.service";
/// What a unit is enabled for.
const TARGETS: [&str; 2] = ["graphical-session.target.wants", "default.target.wants"];

/// What tells the desktop.
#[derive(Debug)]
pub(super) struct Place {
    program: PathBuf,
    /// Those that it is to look at, where any was named.
    homes: Vec<PathBuf>,
    /// The user's entry, whether it is there or not.
    user: PathBuf,
    /// The system's, the one that counts first.
    system: Vec<PathBuf>,
    /// The folders with systemd's units of users, the user's own first.
    units: [PathBuf; 2],
    /// `XDG_CURRENT_DESKTOP`.
    desktops: String,
    /// `PATH`.
    path: Option<OsString>,
}

impl Place {
    /// For this program; `None` where the user has no home.
    pub(super) fn find(program: PathBuf, homes: Vec<PathBuf>) -> Option<Self> {
        let absolute = |name| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let settings = absolute("XDG_CONFIG_HOME").or_else(|| Some(paths::user_home()?.join(".config")))?;
        let system =
            env::var_os("XDG_CONFIG_DIRS").filter(|dirs| !dirs.is_empty()).unwrap_or_else(|| "/etc/xdg".into());
        let system = env::split_paths(&system).filter(|path| path.is_absolute());
        Some(Self {
            program,
            homes,
            user: settings.join("autostart").join(ENTRY),
            system: system.map(|folder| folder.join("autostart").join(ENTRY)).collect(),
            units: [settings.join("systemd/user"), PathBuf::from("/etc/systemd/user")],
            desktops: env::var("XDG_CURRENT_DESKTOP").unwrap_or_default(),
            path: env::var_os("PATH"),
        })
    }

    /// What the desktop would do at the next login.
    pub(super) fn read(&self) -> State {
        let text = match self.counts() {
            None if self.unit_is_enabled() => {
                return State { can: false, ..State::on() }.because("by its systemd unit");
            }
            None => return State::off(),
            Some(file) => state_file::read(file),
        };
        match self.says(&text) {
            Says::Starts(program) if same(&program, &self.program) => State::on(),
            _ if self.unit_is_enabled() => State { can: false, ..State::on() }.because("by its systemd unit"),
            Says::Starts(program) => State::off().because(format!("its entry starts {}", program.display())),
            Says::Gone(_) => State::off().because("its program is gone"),
            Says::Nothing(why) => State::off().because(why),
        }
    }

    fn says(&self, text: &str) -> Says {
        entry::read(text, &self.desktops, |name| paths::program(name, self.path.as_deref()))
    }

    /// The user's entries that would start a program of our name, were it there: each with that program. Another copy may
    /// have been entered under another name.
    pub(super) fn astray(&self) -> Vec<(PathBuf, PathBuf)> {
        let entries = self.user.parent().and_then(|folder| fs::read_dir(folder).ok()).into_iter().flatten().flatten();
        let files = entries.map(|entry| entry.path()).filter(|file| file.extension().is_some_and(|it| it == "desktop"));
        let mut astray: Vec<_> = files
            .filter_map(|file| match self.says(&state_file::read(&file)) {
                Says::Gone(program) if file == self.user || program.ends_with("pilotlight") => Some((file, program)),
                _ => None,
            })
            .collect();
        astray.sort_unstable();
        astray
    }

    /// The entry that counts: the user's, else the first of the system's.
    fn counts(&self) -> Option<&Path> {
        let files = std::iter::once(&self.user).chain(&self.system);
        files.map(PathBuf::as_path).find(|file| file.symlink_metadata().is_ok())
    }

    /// Enabled, and not masked: a masked unit is a link to nowhere.
    pub(super) fn unit_is_enabled(&self) -> bool {
        let masked = |folder: &PathBuf| fs::read_link(folder.join(UNIT)).is_ok_and(|to| to == Path::new("/dev/null"));
        let wanted = |folder: &PathBuf| TARGETS.iter().any(|target| folder.join(target).join(UNIT).exists());
        self.units.iter().any(wanted) && !self.units.iter().any(masked)
    }

    /// Makes the desktop start this program, or not.
    pub(super) fn write(&self, on: bool) -> anyhow::Result<()> {
        // A link of the user's stays one.
        let file = self.user.canonicalize().unwrap_or_else(|_| self.user.clone());
        let before = file.is_file().then(|| state_file::read(&file));
        let after = if on {
            let program = self
                .program
                .to_str()
                .context("the path of this program is not valid UTF-8, which a desktop entry needs")?;
            Some(entry::turned_on(before.as_deref(), program, &super::arguments(&self.homes)?))
        } else {
            let system = self.system.iter().find(|file| file.is_file()).map(|file| state_file::read(file));
            let covers = system.is_some();
            let Some(text) = before.or(system) else { return Ok(()) };
            entry::turned_off(&text, covers)
        };
        let written = match after {
            Some(text) => state_file::replace(&file, text.as_bytes()),
            None => fs::remove_file(&self.user).map_err(Into::into),
        };
        let shown = file.display();
        written.with_context(|| format!("cannot change {shown}; the desktop's own settings may be able to"))
    }

    /// Where something may change: the folders of the entries, that of the file which a link of the user's leads to, and those
    /// of the units.
    fn folders(&self) -> Vec<PathBuf> {
        let linked = self.user.canonicalize().ok();
        let entries = [&self.user].into_iter().chain(&self.system).chain(&linked);
        let units = self
            .units
            .iter()
            .flat_map(|folder| TARGETS.iter().map(|target| folder.join(target)).chain([folder.clone()]));
        entries.filter_map(|file| Some(file.parent()?.to_owned())).chain(units).collect()
    }

    /// Calls `told` whenever something may have changed.
    ///
    /// # Errors
    /// Where the system watches no more.
    pub(super) async fn follow(&self, told: impl Fn()) -> io::Result<()> {
        // Anything that can be waited for and read passes for a pipe.
        let watch = Receiver::from_owned_fd_unchecked(inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?)?;
        loop {
            // Folders come and go; one that is watched already stays so.
            for folder in self.folders() {
                add(&watch, &folder)?;
            }
            told();
            watch.readable().await?;
            // What happened is not of interest: everything is looked at again.
            while watch.try_read(&mut [0; 4096]).is_ok_and(|read| read > 0) {}
        }
    }
}

/// Watches a folder for every change; one that is not there, through the nearest folder above it that is, for its coming.
fn add(watch: &Receiver, folder: &Path) -> io::Result<()> {
    let (comes, goes) = (WatchFlags::CREATE | WatchFlags::MOVED_TO, WatchFlags::DELETE | WatchFlags::MOVED_FROM);
    let usual = WatchFlags::ONLYDIR | WatchFlags::MASK_ADD;
    for (n, folder) in folder.ancestors().enumerate() {
        let wanted = if n == 0 { comes | goes | WatchFlags::CLOSE_WRITE | WatchFlags::DELETE_SELF } else { comes };
        match inotify::add_watch(watch, folder, wanted | usual) {
            Ok(_) => return Ok(()),
            Err(Errno::NOENT | Errno::NOTDIR | Errno::ACCESS) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

fn same(one: &Path, other: &Path) -> bool {
    one == other || one.canonicalize().is_ok_and(|one| other.canonicalize().is_ok_and(|other| one == other))
}

#[cfg(test)]
mod tests {
    use super::super::{AGE, Login};
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::sync::atomic::Ordering;

    struct Desk {
        scratch: tempfile::TempDir,
        place: Place,
    }

    impl Desk {
        fn new() -> Self {
            let scratch = tempfile::tempdir().unwrap();
            let at = |path: &str| scratch.path().join(path);
            for program in ["pilotlight", "other"] {
                fs::write(at(program), "").unwrap();
                fs::set_permissions(at(program), fs::Permissions::from_mode(0o755)).unwrap();
            }
            let place = Place {
                program: at("pilotlight"),
                homes: Vec::new(),
                user: at("config/autostart/pilotlight.desktop"),
                system: vec![at("etc/autostart/pilotlight.desktop")],
                units: [at("config/systemd/user"), at("etc/systemd/user")],
                desktops: "XFCE".into(),
                path: None,
            };
            Self { scratch, place }
        }

        fn put(&self, path: &str, text: &str) {
            let file = self.scratch.path().join(path);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        }

        fn entry(&self, program: &str) -> String {
            format!("[Desktop Entry]\nName=x\nExec={} tray\n", self.scratch.path().join(program).display())
        }
    }

    #[test]
    fn turned_on_and_off_it_leaves_nothing() {
        let desk = Desk::new();
        assert_eq!(desk.place.read(), State::off());
        desk.place.write(false).unwrap();
        desk.place.write(true).unwrap();
        assert_eq!(desk.place.read(), State::on());
        desk.place.write(false).unwrap();
        assert_eq!(desk.place.read(), State::off());
        assert!(!desk.place.user.exists());
    }

    #[test]
    fn an_entry_for_another_copy_is_not_ours() {
        let desk = Desk::new();
        desk.put("config/autostart/pilotlight.desktop", &desk.entry("other"));
        let state = desk.place.read();
        assert!(!state.on && state.note.as_ref().is_some_and(|note| note.contains("its entry starts /")), "{state:?}");
        desk.place.write(true).unwrap();
        assert_eq!(desk.place.read(), State::on());
        assert!(state_file::read(&desk.place.user).contains("Name=x"), "changed, not replaced");
        let link = desk.scratch.path().join("link");
        symlink(&desk.place.program, &link).unwrap();
        desk.put("config/autostart/pilotlight.desktop", &desk.entry("link"));
        assert_eq!(desk.place.read(), State::on(), "another name of the same program");
    }

    #[test]
    fn an_entry_of_the_system_is_covered_by_one_of_the_users() {
        let desk = Desk::new();
        desk.put("etc/autostart/pilotlight.desktop", &desk.entry("pilotlight"));
        assert_eq!(desk.place.read(), State::on());
        desk.place.write(false).unwrap();
        assert_eq!(desk.place.read(), State::off().because("its entry is hidden"));
        desk.place.write(true).unwrap();
        assert_eq!(desk.place.read(), State::on());
        desk.place.write(false).unwrap();
        assert!(!desk.place.read().on, "it must stay, hidden, for the other one not to count");
    }

    #[test]
    fn a_link_stays_a_link() {
        let desk = Desk::new();
        desk.put("dotfiles/light", &desk.entry("other"));
        fs::create_dir_all(desk.place.user.parent().unwrap()).unwrap();
        symlink(desk.scratch.path().join("dotfiles/light"), &desk.place.user).unwrap();
        desk.place.write(true).unwrap();
        assert_eq!(desk.place.read(), State::on());
        assert!(desk.place.user.is_symlink());
        fs::remove_file(desk.scratch.path().join("dotfiles/light")).unwrap();
        assert_eq!(desk.place.read(), State::off().because("its file is no desktop entry"), "a link to nowhere");
    }

    #[test]
    fn an_enabled_unit_is_told_and_not_touched() {
        let desk = Desk::new();
        desk.put("etc/systemd/user/graphical-session.target.wants/pilotlight.service", "");
        let by_unit = State { can: false, ..State::on() }.because("by its systemd unit");
        assert_eq!(desk.place.read(), by_unit);
        desk.put("config/autostart/pilotlight.desktop", "[Desktop Entry]\nHidden=true\n");
        assert_eq!(desk.place.read(), by_unit);
        fs::create_dir_all(&desk.place.units[0]).unwrap();
        symlink("/dev/null", desk.place.units[0].join(UNIT)).unwrap();
        assert_eq!(desk.place.read(), State::off().because("its entry is hidden"), "masked");
    }

    #[test]
    fn an_entry_that_points_nowhere_is_astray_and_one_of_others_or_for_others_is_not() {
        let desk = Desk::new();
        let astray = |text: &str| {
            desk.put("config/autostart/x.desktop", &format!("[Desktop Entry]\n{text}\n"));
            desk.place.astray().into_iter().map(|(_, program)| program.display().to_string()).collect::<String>()
        };
        assert_eq!(astray("Exec=/no/pilotlight tray"), "/no/pilotlight");
        assert_eq!(astray(r#"Exec=env A=b "/no where/pilotlight" tray"#), "/no where/pilotlight");
        let fine = format!("Exec={}", desk.place.program.display());
        let of_action = "[Desktop Action x]\nExec=/no/pilotlight";
        let others = ["Exec=/no/pilotlight\nHidden=True", "Exec=/no/pilotlight\nOnlyShowIn=KDE;", "Exec=/no/other"];
        for text in others.into_iter().chain(["Name=pilotlight", of_action, fine.as_str()]) {
            assert_eq!(astray(text), "", "{text}");
        }
        desk.put("dotfiles/light", "[Desktop Entry]\nExec=/no/other tray\n");
        symlink(desk.scratch.path().join("dotfiles/light"), &desk.place.user).unwrap();
        assert_eq!(desk.place.astray(), [(desk.place.user.clone(), "/no/other".into())], "our own, through a link");
    }

    #[test]
    fn it_is_read_again_always_where_nobody_follows_and_now_and_then_where_somebody_does() {
        let mut desk = Desk::new();
        // A name that no system takes cannot be watched.
        desk.place.system.push(desk.scratch.path().join("x".repeat(300)).join("autostart/pilotlight.desktop"));
        let (on, off) = (desk.entry("pilotlight"), "[Desktop Entry]\nHidden=true\n");
        desk.put("config/autostart/pilotlight.desktop", &on);
        let file = desk.place.user.clone();
        let login = Login::of(Some(desk.place), "");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().unwrap();
        runtime.block_on(login.clone().follow(|| {}));
        assert!(login.state().on);
        fs::write(&file, off).unwrap();
        assert!(!login.state().on, "nothing tells of changes any more");
        fs::write(&file, on).unwrap();
        login.followed.store(true, Ordering::Relaxed);
        assert!(!login.state().on, "read a moment ago");
        login.read.lock().unwrap().at -= AGE;
        assert!(login.state().on);
    }

    #[test]
    fn all_that_decides_is_watched() {
        let desk = Desk::new();
        desk.put("dotfiles/light", &desk.entry("pilotlight"));
        fs::create_dir_all(desk.place.user.parent().unwrap()).unwrap();
        symlink(desk.scratch.path().join("dotfiles/light"), &desk.place.user).unwrap();
        let folders = desk.place.folders();
        let root = desk.scratch.path().canonicalize().unwrap();
        assert!(folders.contains(&root.join("dotfiles")), "{folders:?}");
        for folder in
            ["config/autostart", "etc/autostart", "config/systemd/user", "etc/systemd/user/default.target.wants"]
        {
            assert!(folders.contains(&desk.scratch.path().join(folder)), "{folder} in {folders:?}");
        }
    }

    #[test]
    fn what_cannot_be_written_is_said() {
        let desk = Desk::new();
        desk.put("config", "a file where the folder should be");
        let error = format!("{:#}", desk.place.write(true).unwrap_err());
        assert!(error.contains("cannot change") && error.contains("pilotlight.desktop"), "{error}");
        assert_eq!(desk.place.read(), State::off());
    }
}
