//! Where things are: the homes of Copilot that are watched, our config file, our folder for state.
//!
//! What the environment says enters as arguments, so that each rule can be tested; [`user_home`] and [`project`] alone ask
//! the system.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::path::{Component, Path, PathBuf, Prefix};

use directories::{BaseDirs, ProjectDirs};

/// The user's home folder, if the system knows one.
pub(crate) fn user_home() -> Option<PathBuf> {
    BaseDirs::new().map(|dirs| dirs.home_dir().to_owned())
}

/// The folders that the system's conventions give us: the XDG base directories on Linux, `Application Support` on macOS,
/// `AppData` on Windows. `None` where the user has no home folder.
pub(crate) fn project() -> Option<ProjectDirs> {
    ProjectDirs::from("", "", "pilotlight")
}

/// The config file: what `PILOTLIGHT_CONFIG` names (`env_config`; empty counts as unset), else `config.toml` in our folder
/// of settings.
pub(crate) fn config_file(env_config: Option<OsString>, project: Option<&ProjectDirs>) -> Option<PathBuf> {
    let named = env_config.map(PathBuf::from).and_then(|path| absolute(&path));
    named.or_else(|| Some(project?.config_dir().join("config.toml")))
}

/// The folder for what is remembered over restarts. Systems that know no such folder have it where data goes that belongs
/// to this machine alone.
pub(crate) fn state_folder(project: &ProjectDirs) -> PathBuf {
    project.state_dir().unwrap_or_else(|| project.data_local_dir()).to_owned()
}

/// The folders for what is of this login session alone (a lock, a note, a socket), the best first: that of the system, where
/// it has one, and that for state. The first one counts that [is ours alone](crate::system::runtime).
pub(crate) fn runtime_folders(project: &ProjectDirs) -> Vec<PathBuf> {
    project.runtime_dir().map(Path::to_owned).into_iter().chain([state_folder(project)]).collect()
}

/// Makes a folder of ours where there is none, and what is missing above it, for nobody but the user: other users may not
/// even look into it, whatever the umask says.
///
/// # Errors
/// Where it cannot be made.
pub(crate) fn make_folder(folder: &Path) -> std::io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(folder)
}

/// The homes of Copilot to watch: those of the command line (`--home`) replace all others; else `COPILOT_HOME` (empty
/// counts as unset), else `.copilot` in the user's home, and with it those that the config adds, where a leading `~` is the
/// user's home.
///
/// All are absolute; one that is the same folder as another, be it by a link, is left out. They need not exist.
pub(crate) fn homes(
    cli: &[PathBuf],
    env_copilot_home: Option<OsString>,
    config: &[PathBuf],
    user_home: Option<PathBuf>,
) -> Vec<PathBuf> {
    let wanted: Vec<PathBuf> = if cli.is_empty() {
        let added: Vec<_> = config.iter().filter_map(|path| expand(path, user_home.as_deref())).collect();
        let named = env_copilot_home.filter(|home| !home.is_empty()).map(PathBuf::from);
        named.or_else(|| Some(user_home?.join(".copilot"))).into_iter().chain(added).collect()
    } else {
        cli.to_vec()
    };
    let (mut homes, mut seen) = (Vec::new(), BTreeSet::new());
    for home in wanted.iter().filter_map(|path| absolute(path)) {
        // What does not exist has no canonical form; it may come to exist, and is told apart by its name until then.
        if seen.insert(home.canonicalize().unwrap_or_else(|_| home.clone())) {
            homes.push(home);
        }
    }
    homes
}

/// The path with a leading `~` replaced by the user's home; `None` where that is not known.
pub(crate) fn expand(path: &Path, user_home: Option<&Path>) -> Option<PathBuf> {
    match path.strip_prefix("~") {
        Ok(rest) => Some(user_home?.join(rest)),
        Err(_) => Some(path.to_owned()),
    }
}

/// The file of a program, as the system would find it: a path stands for itself, a name for the first such program in
/// `path`, the value of `PATH`. Folders in it that are not absolute are left out: what is found must not depend on where we
/// were started.
pub(crate) fn program(name: &Path, path: Option<&OsStr>) -> Option<PathBuf> {
    /// A program that was started from the Finder or the Dock is not given the folders that a shell adds.
    const MORE: &[&str] = if cfg!(target_os = "macos") { &["/opt/homebrew/bin", "/usr/local/bin"] } else { &[] };
    if name.is_absolute() {
        return with_ending(name);
    }
    let mut parts = name.components();
    let is_name = matches!((parts.next(), parts.next()), (Some(Component::Normal(_)), None));
    let folders = path.into_iter().flat_map(std::env::split_paths).chain(MORE.iter().map(PathBuf::from));
    folders.filter(|folder| is_name && folder.is_absolute()).find_map(|folder| with_ending(&folder.join(name)))
}

/// The program at `path`, on Windows with the ending that may be left out.
fn with_ending(path: &Path) -> Option<PathBuf> {
    #[cfg(unix)]
    let is_program = |path: &Path| path.is_file() && rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok();
    #[cfg(not(unix))]
    let is_program = Path::is_file;
    let endings: &[&str] = if cfg!(windows) { &[".exe", ".cmd", ".bat"] } else { &[] };
    let bare = !cfg!(windows) || path.extension().is_some();
    let with = endings.iter().map(|ending| {
        let mut path = path.as_os_str().to_owned();
        path.push(ending);
        PathBuf::from(path)
    });
    bare.then(|| path.to_owned()).into_iter().chain(with).find(|path| is_program(path))
}

/// The path from the root on, without `.` and closing slashes, links left as they are; `None` for an empty one, and where
/// a relative one is given and the current folder is gone.
fn absolute(path: &Path) -> Option<PathBuf> {
    Some(std::path::absolute(path).ok()?.components().collect())
}

/// Where this program is, for others to start it. After an upgrade Linux says of the program that runs that it is deleted,
/// though its successor has its place.
pub(crate) fn own_program() -> Option<PathBuf> {
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

/// Whether this is the path, from the root on, of a folder that is here. One that leads to another machine or a device by its
/// form alone (`\\server\share`, `\\.\pipe`) is not even looked at.
pub(crate) fn is_local_folder(path: &Path) -> bool {
    let is_here = match path.components().next() {
        Some(Component::Prefix(prefix)) => matches!(prefix.kind(), Prefix::Disk(_) | Prefix::VerbatimDisk(_)),
        _ => true,
    };
    is_here && path.is_absolute() && path.is_dir()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(paths: &[&str]) -> Vec<PathBuf> {
        paths.iter().map(PathBuf::from).collect()
    }

    /// A user's home that exists nowhere, absolute on every system.
    fn home() -> PathBuf {
        std::env::temp_dir().join("pilotlight-no-such-home")
    }

    #[test]
    fn the_command_line_replaces_all_other_homes() {
        let (one, two) = (home().join("one"), home().join("two"));
        let found = homes(&[one.clone(), two.clone()], Some("/env".into()), &paths(&["/config"]), Some(home()));
        assert_eq!(found, [one, two]);
    }

    #[test]
    fn copilot_home_comes_before_the_usual_one_and_the_config_adds() {
        let (env, added) = (home().join("env"), home().join("added"));
        let env_var = Some(env.clone().into_os_string());
        assert_eq!(homes(&[], env_var, std::slice::from_ref(&added), Some(home())), [env, added.clone()]);
        assert_eq!(homes(&[], None, std::slice::from_ref(&added), Some(home())), [home().join(".copilot"), added]);
    }

    #[test]
    fn an_empty_copilot_home_counts_as_unset() {
        assert_eq!(homes(&[], Some(OsString::new()), &[], Some(home())), [home().join(".copilot")]);
    }

    #[test]
    fn a_tilde_in_the_config_is_the_users_home() {
        let config = paths(&["~/a/b", "~", "~user/x"]);
        let there = std::env::current_dir().unwrap();
        assert_eq!(
            homes(&[], None, &config, Some(home())),
            [home().join(".copilot"), home().join("a").join("b"), home(), there.join("~user").join("x")]
        );
        assert_eq!(homes(&[], None, &paths(&["~/a"]), None), paths(&[]), "no home to put in its place");
    }

    #[test]
    fn homes_are_absolute() {
        let there = std::env::current_dir().unwrap();
        assert_eq!(homes(&paths(&["x/./y/", ""]), None, &[], None), [there.join("x").join("y")]);
        assert_eq!(homes(&[], Some("rel".into()), &[], None), [there.join("rel")]);
    }

    #[test]
    fn the_same_home_is_watched_once() {
        let folder = tempfile::tempdir().unwrap();
        let real = folder.path().join("real");
        std::fs::create_dir(&real).unwrap();
        let again = real.join("..").join("real");
        assert_eq!(homes(&[real.clone(), real.join(""), again], None, &[], None), std::slice::from_ref(&real));
        let absent = folder.path().join("absent");
        assert_eq!(homes(&[absent.clone(), absent.clone()], None, &[], None), [absent]);
    }

    #[cfg(unix)]
    #[test]
    fn a_home_behind_a_link_is_the_same_home() {
        let folder = tempfile::tempdir().unwrap();
        let (real, link) = (folder.path().join("real"), folder.path().join("link"));
        std::fs::create_dir(&real).unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        assert_eq!(homes(&[link.clone(), real], None, &[], None), [link], "the first one, as it was named");
    }

    #[cfg(unix)]
    #[test]
    fn a_home_need_not_be_unicode() {
        use std::os::unix::ffi::OsStringExt;
        let odd = OsString::from_vec(b"/tmp/\xff".to_vec());
        assert_eq!(homes(&[], Some(odd.clone()), &[], None), [PathBuf::from(odd)]);
    }

    #[test]
    fn the_config_file_can_be_named() {
        let named = home().join("mine.toml");
        assert_eq!(config_file(Some(named.clone().into()), None), Some(named));
        assert_eq!(config_file(None, None), None);
        let project = ProjectDirs::from_path("pilotlight".into()).unwrap();
        for unset in [None, Some(OsString::new())] {
            let file = config_file(unset, Some(&project)).unwrap();
            assert!(file.is_absolute() && file.ends_with("config.toml"), "{file:?}");
            assert!(file.components().any(|part| part.as_os_str() == "pilotlight"), "{file:?}");
        }
    }

    #[test]
    fn state_is_kept_in_a_folder_of_ours() {
        let project = ProjectDirs::from_path("pilotlight".into()).unwrap();
        let folder = state_folder(&project);
        assert!(folder.components().any(|part| part.as_os_str() == "pilotlight"), "{folder:?}");
        assert_eq!(project.state_dir().is_some_and(|state| state == folder), cfg!(target_os = "linux"));
    }

    #[cfg(unix)]
    #[test]
    fn a_program_is_found_where_the_system_would() {
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
        assert_eq!(program(Path::new("Cargo.toml"), Some(OsStr::new("."))), None, "not where we were started");
        assert_eq!(program(Path::new("x"), None), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn an_upgraded_program_is_still_where_it_was() {
        let scratch = tempfile::tempdir().unwrap();
        let program = scratch.path().join("pilotlight");
        let gone = scratch.path().join("pilotlight (deleted)");
        assert_eq!(successor(&gone), None, "removed, and nothing came in its place");
        std::fs::write(&program, "").unwrap();
        assert_eq!(successor(&gone), Some(program.clone()));
        assert_eq!(successor(&program), None);
        std::fs::write(&gone, "").unwrap();
        assert_eq!(successor(&gone), None, "a program may be called so");
    }
}
