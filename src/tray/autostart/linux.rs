//! Start at login on a Linux desktop: a desktop entry of the user, which overrides one of the system, or our systemd
//! unit if it is enabled.

use super::arguments;
use super::entry::{self, EntryStatus};
use super::state::State;
use super::window_manager::WindowManager;
use anyhow::Context;
use pilotlight_system::{paths, state_file};
use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use rustix::io::Errno;
use std::env;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use tokio::net::unix::pipe::Receiver;

/// The name of the entry, and of the one in the applications menu.
const ENTRY: &str = "pilotlight.desktop";
const UNIT: &str = "pilotlight.service";
/// The targets that the unit can be enabled for.
const TARGETS: [&str; 2] = ["graphical-session.target.wants", "default.target.wants"];

/// The files that decide what the desktop starts.
#[derive(Debug)]
pub(super) struct Backend {
    program: PathBuf,
    /// The homes to pass on, if any were named.
    homes: Vec<PathBuf>,
    /// The user's entry, whether it exists or not.
    user: PathBuf,
    /// The system's entries, by precedence.
    system: Vec<PathBuf>,
    /// The folders of systemd user units, the user's own first.
    units: [PathBuf; 2],
    /// `XDG_CURRENT_DESKTOP`.
    desktops: String,
    /// `PATH`.
    path: Option<OsString>,
    /// What runs in place of a desktop and reads no entries.
    window_manager: Option<WindowManager>,
}

impl Backend {
    /// Finds the files for this program. `None` if the user has no home.
    pub(super) fn find(program: PathBuf, homes: Vec<PathBuf>) -> Option<Self> {
        let absolute = |name| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let settings = absolute("XDG_CONFIG_HOME").or_else(|| Some(paths::user_home()?.join(".config")))?;
        let system =
            env::var_os("XDG_CONFIG_DIRS").filter(|dirs| !dirs.is_empty()).unwrap_or_else(|| "/etc/xdg".into());
        let system = env::split_paths(&system).filter(|path| path.is_absolute());
        let desktops = env::var("XDG_CURRENT_DESKTOP").unwrap_or_default();
        let is_set = |name: &str| env::var_os(name).is_some_and(|value| !value.is_empty());
        Some(Self {
            program,
            homes,
            user: settings.join("autostart").join(ENTRY),
            system: system.map(|folder| folder.join("autostart").join(ENTRY)).collect(),
            units: [settings.join("systemd/user"), PathBuf::from("/etc/systemd/user")],
            window_manager: WindowManager::find(&desktops, is_set, &settings),
            desktops,
            path: env::var_os("PATH"),
        })
    }

    /// What the desktop would do at the next login.
    pub(super) fn read(&self) -> State {
        let by_manager = |manager: &WindowManager| manager.read(&self.program, &self.homes, self.unit_is_enabled());
        match self.window_manager.as_ref().map(by_manager) {
            Some(Ok(Some(state))) => return state,
            Some(Err(error)) => return State { can_change: false, ..State::off() }.because(error.to_string()),
            Some(Ok(None)) | None => {}
        }
        let text = match self.effective_entry() {
            None if self.unit_is_enabled() => {
                return State { can_change: false, ..State::on() }.because("by its systemd unit");
            }
            None => return State::off(),
            Some(file) => state_file::read(file),
        };
        match self.status(&text) {
            EntryStatus::Starts(program) if paths::is_same(&program, &self.program) => State::on(),
            _ if self.unit_is_enabled() => State { can_change: false, ..State::on() }.because("by its systemd unit"),
            EntryStatus::Starts(program) => State::off().because(format!("its entry starts {}", program.display())),
            EntryStatus::Missing(_) => State::off().because("its program is gone"),
            EntryStatus::Inactive(why) => State::off().because(why),
        }
    }

    fn status(&self, text: &str) -> EntryStatus {
        entry::read(text, &self.desktops, |name| paths::program(name, self.path.as_deref()))
    }

    /// The user's entries that point to a missing program of our name, each with the path of that program. The entry of
    /// another copy may have any name.
    pub(super) fn stale_entries(&self) -> Vec<(PathBuf, PathBuf)> {
        let entries = self.user.parent().and_then(|folder| fs::read_dir(folder).ok()).into_iter().flatten().flatten();
        let files = entries.map(|entry| entry.path()).filter(|file| file.extension().is_some_and(|it| it == "desktop"));
        let mut stale: Vec<_> = files
            .filter_map(|file| match self.status(&state_file::read(&file)) {
                EntryStatus::Missing(program) if file == self.user || program.ends_with("pilotlight") => {
                    Some((file, program))
                }
                _ => None,
            })
            .collect();
        stale.sort_unstable();
        stale
    }

    /// The entry that applies: the user's, or else the first of the system's.
    fn effective_entry(&self) -> Option<&Path> {
        let files = std::iter::once(&self.user).chain(&self.system);
        files.map(PathBuf::as_path).find(|file| file.symlink_metadata().is_ok())
    }

    /// Whether the unit is enabled and not masked. A masked unit is a symlink to `/dev/null`.
    pub(super) fn unit_is_enabled(&self) -> bool {
        let masked = |folder: &PathBuf| fs::read_link(folder.join(UNIT)).is_ok_and(|to| to == Path::new("/dev/null"));
        let wanted = |folder: &PathBuf| TARGETS.iter().any(|target| folder.join(target).join(UNIT).exists());
        self.units.iter().any(wanted) && !self.units.iter().any(masked)
    }

    /// Turns the start at login on or off.
    pub(super) fn write(&self, on: bool) -> anyhow::Result<()> {
        // A symlink of the user's is kept.
        let file = self.user.canonicalize().unwrap_or_else(|_| self.user.clone());
        let existing = file.is_file().then(|| state_file::read(&file));
        let after = if on {
            let program = self
                .program
                .to_str()
                .context("the path of this program is not valid UTF-8, which a desktop entry needs")?;
            Some(entry::turned_on(existing.as_deref(), program, &arguments(&self.homes)?))
        } else {
            let system = self.system.iter().find(|file| file.is_file()).map(|file| state_file::read(file));
            let overrides = system.is_some();
            let Some(text) = existing.or(system) else { return Ok(()) };
            entry::turned_off(&text, overrides)
        };
        let written = match after {
            Some(text) => state_file::replace(&file, text.as_bytes()),
            None => fs::remove_file(&self.user).map_err(Into::into),
        };
        let shown = file.display();
        written.with_context(|| format!("cannot change {shown}; the desktop's own settings may be able to"))
    }

    /// The folders to watch: those of the entries, of the target of a symlink in the user's entry, and of the units.
    fn folders(&self) -> Vec<PathBuf> {
        let linked = self.user.canonicalize().ok();
        let entries = [&self.user].into_iter().chain(&self.system).chain(&linked);
        let units = self
            .units
            .iter()
            .flat_map(|folder| TARGETS.iter().map(|target| folder.join(target)).chain([folder.clone()]));
        let manager = self.window_manager.as_ref().and_then(WindowManager::folder);
        entries.filter_map(|file| Some(file.parent()?.to_owned())).chain(units).chain(manager).collect()
    }

    /// Calls `on_change` whenever something may have changed.
    ///
    /// # Errors
    /// Where the system refuses a watch.
    pub(super) async fn follow(&self, on_change: impl Fn()) -> io::Result<()> {
        // `Receiver` works for any pollable, readable descriptor, not only for pipes.
        let watch = Receiver::from_owned_fd_unchecked(inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?)?;
        loop {
            // Folders may have been created since. Adding a watch twice does no harm.
            for folder in self.folders() {
                add(&watch, &folder)?;
            }
            on_change();
            watch.readable().await?;
            // The events do not matter, as everything is read again.
            while watch.try_read(&mut [0; 4096]).is_ok_and(|read| read > 0) {}
        }
    }
}

/// Watches a folder for all changes. If it does not exist, watches its nearest existing ancestor for its creation.
fn add(watch: &Receiver, folder: &Path) -> io::Result<()> {
    let (created, removed) = (WatchFlags::CREATE | WatchFlags::MOVED_TO, WatchFlags::DELETE | WatchFlags::MOVED_FROM);
    let common = WatchFlags::ONLYDIR | WatchFlags::MASK_ADD;
    for (n, folder) in folder.ancestors().enumerate() {
        let own = created | removed | WatchFlags::CLOSE_WRITE | WatchFlags::DELETE_SELF;
        match inotify::add_watch(watch, folder, common | if n == 0 { own } else { created }) {
            Ok(_) => return Ok(()),
            Err(Errno::NOENT | Errno::NOTDIR | Errno::ACCESS) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::{Login, MAX_AGE};
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::sync::atomic::Ordering;

    struct Desk {
        scratch: tempfile::TempDir,
        backend: Backend,
    }

    impl Desk {
        fn new() -> Self {
            let scratch = tempfile::tempdir().unwrap();
            let at = |path: &str| scratch.path().join(path);
            for program in ["pilotlight", "other"] {
                fs::write(at(program), "").unwrap();
                fs::set_permissions(at(program), fs::Permissions::from_mode(0o755)).unwrap();
            }
            let backend = Backend {
                program: at("pilotlight"),
                homes: Vec::new(),
                user: at("config/autostart/pilotlight.desktop"),
                system: vec![at("etc/autostart/pilotlight.desktop")],
                units: [at("config/systemd/user"), at("etc/systemd/user")],
                desktops: "XFCE".into(),
                path: None,
                window_manager: None,
            };
            Self { scratch, backend }
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
    fn turning_it_on_and_off_leaves_nothing_behind() {
        let desk = Desk::new();
        assert_eq!(desk.backend.read(), State::off());
        desk.backend.write(false).unwrap();
        desk.backend.write(true).unwrap();
        assert_eq!(desk.backend.read(), State::on());
        desk.backend.write(false).unwrap();
        assert_eq!(desk.backend.read(), State::off());
        assert!(!desk.backend.user.exists());
    }

    #[test]
    fn an_entry_for_another_copy_is_not_ours() {
        let desk = Desk::new();
        desk.put("config/autostart/pilotlight.desktop", &desk.entry("other"));
        let state = desk.backend.read();
        assert!(!state.on && state.note.as_ref().is_some_and(|note| note.contains("its entry starts /")), "{state:?}");
        desk.backend.write(true).unwrap();
        assert_eq!(desk.backend.read(), State::on());
        assert!(state_file::read(&desk.backend.user).contains("Name=x"), "changed, not replaced");
        let link = desk.scratch.path().join("link");
        symlink(&desk.backend.program, &link).unwrap();
        desk.put("config/autostart/pilotlight.desktop", &desk.entry("link"));
        assert_eq!(desk.backend.read(), State::on(), "another name of the same program");
    }

    #[test]
    fn a_user_entry_overrides_one_of_the_system() {
        let desk = Desk::new();
        desk.put("etc/autostart/pilotlight.desktop", &desk.entry("pilotlight"));
        assert_eq!(desk.backend.read(), State::on());
        desk.backend.write(false).unwrap();
        assert_eq!(desk.backend.read(), State::off().because("its entry is hidden"));
        desk.backend.write(true).unwrap();
        assert_eq!(desk.backend.read(), State::on());
        desk.backend.write(false).unwrap();
        assert!(!desk.backend.read().on, "it must stay, hidden, to override the other one");
    }

    #[test]
    fn a_symlink_is_kept() {
        let desk = Desk::new();
        desk.put("dotfiles/light", &desk.entry("other"));
        fs::create_dir_all(desk.backend.user.parent().unwrap()).unwrap();
        symlink(desk.scratch.path().join("dotfiles/light"), &desk.backend.user).unwrap();
        desk.backend.write(true).unwrap();
        assert_eq!(desk.backend.read(), State::on());
        assert!(desk.backend.user.is_symlink());
        fs::remove_file(desk.scratch.path().join("dotfiles/light")).unwrap();
        assert_eq!(desk.backend.read(), State::off().because("its file is no desktop entry"), "a dangling symlink");
    }

    #[test]
    fn an_enabled_unit_is_shown_and_not_touched() {
        let desk = Desk::new();
        desk.put("etc/systemd/user/graphical-session.target.wants/pilotlight.service", "");
        let by_unit = State { can_change: false, ..State::on() }.because("by its systemd unit");
        assert_eq!(desk.backend.read(), by_unit);
        desk.put("config/autostart/pilotlight.desktop", "[Desktop Entry]\nHidden=true\n");
        assert_eq!(desk.backend.read(), by_unit);
        fs::create_dir_all(&desk.backend.units[0]).unwrap();
        symlink("/dev/null", desk.backend.units[0].join(UNIT)).unwrap();
        assert_eq!(desk.backend.read(), State::off().because("its entry is hidden"), "masked");
    }

    #[test]
    fn only_an_active_entry_for_a_missing_pilotlight_is_stale() {
        let desk = Desk::new();
        let stale = |text: &str| {
            desk.put("config/autostart/x.desktop", &format!("[Desktop Entry]\n{text}\n"));
            desk.backend
                .stale_entries()
                .into_iter()
                .map(|(_, program)| program.display().to_string())
                .collect::<String>()
        };
        assert_eq!(stale("Exec=/no/pilotlight tray"), "/no/pilotlight");
        assert_eq!(stale(r#"Exec=env A=b "/no where/pilotlight" tray"#), "/no where/pilotlight");
        let fine = format!("Exec={}", desk.backend.program.display());
        let of_action = "[Desktop Action x]\nExec=/no/pilotlight";
        let others = ["Exec=/no/pilotlight\nHidden=True", "Exec=/no/pilotlight\nOnlyShowIn=KDE;", "Exec=/no/other"];
        for text in others.into_iter().chain(["Name=pilotlight", of_action, fine.as_str()]) {
            assert_eq!(stale(text), "", "{text}");
        }
        desk.put("dotfiles/light", "[Desktop Entry]\nExec=/no/other tray\n");
        symlink(desk.scratch.path().join("dotfiles/light"), &desk.backend.user).unwrap();
        assert_eq!(
            desk.backend.stale_entries(),
            [(desk.backend.user.clone(), "/no/other".into())],
            "our own, through a symlink"
        );
    }

    #[test]
    fn the_state_is_read_every_time_if_not_followed_and_at_intervals_if_followed() {
        let mut desk = Desk::new();
        // Watching fails: the name is too long.
        desk.backend.system.push(desk.scratch.path().join("x".repeat(300)).join("autostart/pilotlight.desktop"));
        let (on, off) = (desk.entry("pilotlight"), "[Desktop Entry]\nHidden=true\n");
        desk.put("config/autostart/pilotlight.desktop", &on);
        let file = desk.backend.user.clone();
        let login = Login::of(Some(desk.backend), "");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().unwrap();
        runtime.block_on(login.clone().follow(|| {}));
        assert!(login.state().on);
        fs::write(&file, off).unwrap();
        assert!(!login.state().on, "changes are no longer watched");
        fs::write(&file, on).unwrap();
        login.followed.store(true, Ordering::Relaxed);
        assert!(!login.state().on, "read a moment ago");
        login.last.lock().unwrap().at -= MAX_AGE;
        assert!(login.state().on);
    }

    #[test]
    fn all_folders_that_matter_are_watched() {
        let desk = Desk::new();
        desk.put("dotfiles/light", &desk.entry("pilotlight"));
        fs::create_dir_all(desk.backend.user.parent().unwrap()).unwrap();
        symlink(desk.scratch.path().join("dotfiles/light"), &desk.backend.user).unwrap();
        let folders = desk.backend.folders();
        let root = desk.scratch.path().canonicalize().unwrap();
        assert!(folders.contains(&root.join("dotfiles")), "{folders:?}");
        for folder in
            ["config/autostart", "etc/autostart", "config/systemd/user", "etc/systemd/user/default.target.wants"]
        {
            assert!(folders.contains(&desk.scratch.path().join(folder)), "{folder} in {folders:?}");
        }
    }

    #[test]
    fn a_failed_write_names_the_file() {
        let desk = Desk::new();
        desk.put("config", "a file where the folder should be");
        let error = format!("{:#}", desk.backend.write(true).unwrap_err());
        assert!(error.contains("cannot change") && error.contains("pilotlight.desktop"), "{error}");
        assert_eq!(desk.backend.read(), State::off());
    }
}
