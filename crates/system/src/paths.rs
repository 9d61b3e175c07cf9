//! Paths: the homes that are watched, our config file, and our folders.
//!
//! Environment variables are passed as arguments, so that each rule can be tested. Only [`user_home`] and [`project`]
//! ask the system.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::path::{Component, Path, PathBuf, Prefix};
use std::sync::OnceLock;

use super::mounts::Mounts;
use directories::{BaseDirs, ProjectDirs};

/// The user's home folder. `None` if it is unknown.
pub fn user_home() -> Option<PathBuf> {
    BaseDirs::new().map(|dirs| dirs.home_dir().to_owned())
}

/// Our folders.
#[derive(Clone, Debug)]
pub struct Folders {
    config: PathBuf,
    data: PathBuf,
    state: PathBuf,
    runtime: Option<PathBuf>,
}

/// The folder that replaces all of [`Folders`] in this process.
static SCRATCH: OnceLock<PathBuf> = OnceLock::new();

/// From now on, every file of ours is in this folder, and none is in the user's. For a demo, before anything else is done.
pub fn move_into(folder: PathBuf) {
    let _ = SCRATCH.set(folder); // a process takes part in one demo at most
}

/// Our folders by the system's conventions: the XDG base directories on Linux, `Application Support` on macOS,
/// `AppData` on Windows. `None` if the user has no home folder.
pub fn project() -> Option<Folders> {
    if let Some(scratch) = SCRATCH.get() {
        let of = |name| scratch.join(name);
        return Some(Folders { config: of("config"), data: of("data"), state: scratch.clone(), runtime: None });
    }
    let dirs = ProjectDirs::from("", "", "pilotlight")?;
    let local = dirs.data_local_dir();
    Some(Folders {
        config: dirs.config_dir().to_owned(),
        data: local.to_owned(),
        state: dirs.state_dir().unwrap_or(local).to_owned(),
        runtime: dirs.runtime_dir().map(Path::to_owned),
    })
}

/// The config file: the value of `PILOTLIGHT_CONFIG` (`env_config`; empty counts as unset), else `config.toml` in our
/// config folder.
pub fn config_file(env_config: Option<OsString>, project: Option<&Folders>) -> Option<PathBuf> {
    let named = env_config.map(PathBuf::from).and_then(|path| absolute(&path));
    named.or_else(|| Some(project?.config.join("config.toml")))
}

/// The folder for state that survives restarts. On systems that define no such folder, the one for local data.
pub fn state_folder(project: &Folders) -> PathBuf {
    project.state.clone()
}

/// The folder of the config file, unless that is elsewhere.
pub fn config_folder(project: &Folders) -> PathBuf {
    project.config.clone()
}

/// The folder for local data.
pub fn data_folder(project: &Folders) -> PathBuf {
    project.data.clone()
}

/// The file in the state folder that says which runtime folder the tray uses.
const RUNTIME_NOTE: &str = "runtime-folder";

/// The candidates for the folder of this login session's files (a lock, a note, a socket), best first: the system's
/// runtime folder, if there is one, and the state folder. The first that [belongs to us alone](crate::runtime)
/// is used. Last is the one that the tray said it uses, which started with another environment, as a desktop's differs from
/// that of `ssh`.
pub fn runtime_folders(project: &Folders) -> Vec<PathBuf> {
    let state = state_folder(project);
    let noted = noted_runtime_folder(&state);
    let mut folders: Vec<_> = project.runtime.clone().into_iter().chain([state]).collect();
    let noted = noted.filter(|noted| !folders.contains(noted));
    folders.extend(noted);
    folders
}

/// The runtime folder that the last tray said it uses.
fn noted_runtime_folder(state: &Path) -> Option<PathBuf> {
    let text = super::state_file::read(&state.join(RUNTIME_NOTE));
    Some(PathBuf::from(text.strip_suffix('\n')?)).filter(|folder| folder.is_absolute())
}

/// Notes which runtime folder the tray uses, for commands that start with another environment.
///
/// # Errors
/// It cannot be written, or its path is not UTF-8.
pub fn note_runtime_folder(project: &Folders, folder: &Path) -> anyhow::Result<()> {
    let state = state_folder(project);
    if noted_runtime_folder(&state).as_deref() == Some(folder) {
        return Ok(());
    }
    let text = folder.to_str().ok_or_else(|| anyhow::anyhow!("the path {} is not UTF-8", folder.display()))?;
    make_folder(&state)?;
    super::state_file::replace_without_sync(&state.join(RUNTIME_NOTE), format!("{text}\n").as_bytes())
}

/// Creates a folder of ours and its missing parents, if necessary. Only the user can access it, whatever the umask is.
///
/// # Errors
/// It cannot be created.
pub fn make_folder(folder: &Path) -> std::io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(folder)
}

/// The homes to watch. Those on the command line (`--home`) replace all others. Otherwise those that are `usual`, and
/// those that the config adds, in which a leading `~` is the user's home.
///
/// All are absolute, and need not exist. If two are the same folder, even by a symlink, only the first is kept.
pub fn homes(cli: &[PathBuf], usual: Vec<PathBuf>, config: &[PathBuf], user_home: Option<&Path>) -> Vec<PathBuf> {
    let wanted: Vec<PathBuf> = if cli.is_empty() {
        usual.into_iter().chain(config.iter().filter_map(|path| expand(path, user_home))).collect()
    } else {
        cli.to_vec()
    };
    let (mounts, mut homes, mut seen) = (Mounts::read(), Vec::new(), BTreeSet::new());
    for home in wanted.iter().filter_map(|path| absolute(path)) {
        // A folder that does not exist yet has no canonical path, and is identified by its name.
        if seen.insert(mounts.real(&home)) {
            homes.push(home);
        }
    }
    homes
}

/// The real path of a folder, to compare folders that may be named differently. If it does not exist, the path itself.
/// Where it is on a file system that may not answer, that is not touched.
pub fn canonical(folder: &Path) -> Box<str> {
    Mounts::read().real(folder).to_string_lossy().into()
}

/// Whether both paths lead to the same existing file or folder, or are equal.
pub fn is_same(one: &Path, other: &Path) -> bool {
    one == other || one.canonicalize().is_ok_and(|one| other.canonicalize().is_ok_and(|other| one == other))
}

/// Replaces a leading `~` by the user's home. `None` if that is unknown.
pub fn expand(path: &Path, user_home: Option<&Path>) -> Option<PathBuf> {
    match path.strip_prefix("~") {
        Ok(rest) => Some(user_home?.join(rest)),
        Err(_) => Some(path.to_owned()),
    }
}

/// Finds a program's file as the system would: by its absolute path, or by its name in `path`, the value of `PATH`.
/// Relative folders in `path` are skipped, so that the result does not depend on the current folder.
pub fn program(name: &Path, path: Option<&OsStr>) -> Option<PathBuf> {
    /// A program started from the Finder or the Dock lacks the folders that a shell adds to `PATH`.
    const EXTRA_FOLDERS: &[&str] =
        if cfg!(target_os = "macos") { &["/opt/homebrew/bin", "/usr/local/bin"] } else { &[] };
    if name.is_absolute() {
        return with_extension(name);
    }
    let mut parts = name.components();
    let is_name = matches!((parts.next(), parts.next()), (Some(Component::Normal(_)), None));
    let folders = path.into_iter().flat_map(std::env::split_paths).chain(EXTRA_FOLDERS.iter().map(PathBuf::from));
    folders.filter(|folder| is_name && folder.is_absolute()).find_map(|folder| with_extension(&folder.join(name)))
}

/// The program at `path`; on Windows also with an extension that was left out.
fn with_extension(path: &Path) -> Option<PathBuf> {
    #[cfg(unix)]
    let is_program = |path: &Path| path.is_file() && rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok();
    #[cfg(not(unix))]
    let is_program = Path::is_file;
    let extensions: &[&str] = if cfg!(windows) { &[".exe", ".cmd", ".bat"] } else { &[] };
    let is_complete = !cfg!(windows) || path.extension().is_some();
    let extended = extensions.iter().map(|extension| {
        let mut path = path.as_os_str().to_owned();
        path.push(extension);
        PathBuf::from(path)
    });
    is_complete.then(|| path.to_owned()).into_iter().chain(extended).find(|path| is_program(path))
}

/// The absolute path, without `.` and trailing slashes; symlinks are not resolved. `None` if it is empty, or relative
/// and the current folder is gone.
pub fn absolute(path: &Path) -> Option<PathBuf> {
    Some(std::path::absolute(path).ok()?.components().collect())
}

/// The path of this program's file, for others to start it. After an upgrade, Linux reports the running program's file
/// as deleted; then it is the path of the new one.
pub fn own_program() -> Option<PathBuf> {
    let program = std::env::current_exe().ok()?;
    Some(successor(&program).unwrap_or(program))
}

#[cfg(target_os = "linux")]
fn successor(program: &Path) -> Option<PathBuf> {
    use std::os::unix::ffi::{OsStrExt, OsStringExt};
    let path = program.as_os_str().as_bytes().strip_suffix(b" (deleted)")?;
    let path = PathBuf::from(OsString::from_vec(path.to_vec()));
    (!program.exists() && path.is_file()).then_some(path)
}

#[cfg(not(target_os = "linux"))]
fn successor(_program: &Path) -> Option<PathBuf> {
    None
}

/// Whether this is the absolute path of a folder on this machine. A path that names another machine or a device
/// (`\\server\share`, `\\.\pipe`) is not accessed at all.
pub fn is_local_folder(path: &Path) -> bool {
    let is_local = match path.components().next() {
        Some(Component::Prefix(prefix)) => matches!(prefix.kind(), Prefix::Disk(_) | Prefix::VerbatimDisk(_)),
        _ => true,
    };
    is_local && path.is_absolute() && path.is_dir()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(paths: &[&str]) -> Vec<PathBuf> {
        paths.iter().map(PathBuf::from).collect()
    }

    /// A home folder that does not exist, absolute on every system.
    fn home() -> PathBuf {
        std::env::temp_dir().join("pilotlight-no-such-home")
    }

    #[test]
    fn the_command_line_replaces_all_other_homes_and_the_config_adds_some() {
        let (one, two, usual) = (home().join("one"), home().join("two"), home().join("usual"));
        let found = homes(&[one.clone(), two.clone()], vec![usual.clone()], &paths(&["/config"]), Some(&home()));
        assert_eq!(found, [one.clone(), two]);
        assert_eq!(homes(&[], vec![usual.clone()], std::slice::from_ref(&one), Some(&home())), [usual, one]);
    }

    #[test]
    fn a_tilde_in_the_config_is_the_users_home() {
        let config = paths(&["~/a/b", "~", "~user/x"]);
        let there = std::env::current_dir().unwrap();
        assert_eq!(
            homes(&[], Vec::new(), &config, Some(&home())),
            [home().join("a").join("b"), home(), there.join("~user").join("x")]
        );
        assert_eq!(homes(&[], Vec::new(), &paths(&["~/a"]), None), paths(&[]), "the home is unknown");
    }

    #[test]
    fn homes_are_absolute() {
        let there = std::env::current_dir().unwrap();
        assert_eq!(homes(&paths(&["x/./y/", ""]), Vec::new(), &[], None), [there.join("x").join("y")]);
        assert_eq!(homes(&[], vec!["rel".into()], &[], None), [there.join("rel")]);
    }

    #[test]
    fn the_same_home_is_watched_once() {
        let folder = tempfile::tempdir().unwrap();
        let real = folder.path().join("real");
        std::fs::create_dir(&real).unwrap();
        let again = real.join("..").join("real");
        assert_eq!(homes(&[real.clone(), real.join(""), again], Vec::new(), &[], None), std::slice::from_ref(&real));
        let absent = folder.path().join("absent");
        assert_eq!(homes(&[absent.clone(), absent.clone()], Vec::new(), &[], None), [absent]);
    }

    #[cfg(unix)]
    #[test]
    fn a_home_behind_a_symlink_is_the_same_home() {
        let folder = tempfile::tempdir().unwrap();
        let (real, link) = (folder.path().join("real"), folder.path().join("link"));
        std::fs::create_dir(&real).unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        assert_eq!(homes(&[link.clone(), real], Vec::new(), &[], None), [link], "the first one, by its given name");
    }

    #[cfg(unix)]
    #[test]
    fn a_home_need_not_be_unicode() {
        use std::os::unix::ffi::OsStringExt;
        let odd = OsString::from_vec(b"/tmp/\xff".to_vec());
        assert_eq!(homes(&[], vec![odd.clone().into()], &[], None), [PathBuf::from(odd)]);
    }

    #[test]
    fn the_config_file_can_be_named() {
        let named = home().join("mine.toml");
        assert_eq!(config_file(Some(named.clone().into()), None), Some(named));
        assert_eq!(config_file(None, None), None);
        let project = project().unwrap();
        for unset in [None, Some(OsString::new())] {
            let file = config_file(unset, Some(&project)).unwrap();
            assert!(file.is_absolute() && file.ends_with("config.toml"), "{file:?}");
            assert!(file.components().any(|part| part.as_os_str() == "pilotlight"), "{file:?}");
        }
    }

    #[test]
    fn the_state_folder_is_named_after_us() {
        let folder = state_folder(&project().unwrap());
        assert!(folder.components().any(|part| part.as_os_str() == "pilotlight"), "{folder:?}");
    }

    #[cfg(unix)]
    #[test]
    fn a_program_is_found_as_the_system_would() {
        use std::os::unix::fs::PermissionsExt;
        let scratch = tempfile::tempdir().unwrap();
        let put = |folder: &str, name: &str, mode| {
            let file = scratch.path().join(folder).join(name);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(&file, "").unwrap();
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
            file
        };
        put("one", "no-program", 0o644);
        let (first, second) = (put("one", "x", 0o755), put("two", "no-program", 0o755));
        put("two", "x", 0o755);
        let path = std::env::join_paths(["one", "two"].map(|folder| scratch.path().join(folder))).unwrap();
        let find = |name: &str| program(Path::new(name), Some(&path));
        assert_eq!(find("x"), Some(first.clone()));
        assert_eq!(find("no-program"), Some(second));
        assert_eq!(find(first.to_str().unwrap()), Some(first));
        for nothing in ["", ".", "..", "absent", "two/x", "./x", "/", scratch.path().to_str().unwrap()] {
            assert_eq!(find(nothing), None, "{nothing}");
        }
        assert_eq!(program(Path::new("Cargo.toml"), Some(OsStr::new("."))), None, "not in the current folder");
        assert_eq!(program(Path::new("x"), None), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn an_upgraded_program_keeps_its_path() {
        let scratch = tempfile::tempdir().unwrap();
        let program = scratch.path().join("pilotlight");
        let gone = scratch.path().join("pilotlight (deleted)");
        assert_eq!(successor(&gone), None, "removed and not replaced");
        std::fs::write(&program, "").unwrap();
        assert_eq!(successor(&gone), Some(program.clone()));
        assert_eq!(successor(&program), None);
        std::fs::write(&gone, "").unwrap();
        assert_eq!(successor(&gone), None, "that is the program's real name");
    }
}
