//! How the program of an agent is found, and told which home to use: the same for all that are started from here.

use super::profile::Profile;
use pilotlight_system::paths;
use std::env::consts::EXE_SUFFIX;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// The variables for a command of an agent in this home: none if the agent uses that home by default. `inherited` is our
/// own variable for another home, which a terminal may pass on.
pub(super) fn env(
    profile: &Profile,
    home: &Path,
    user_home: Option<&Path>,
    inherited: Option<&OsStr>,
) -> Vec<(OsString, OsString)> {
    let is_default = user_home.is_some_and(|user| paths::is_same(&user.join(profile.home), home));
    if is_default && inherited.is_none_or(OsStr::is_empty) {
        return Vec::new();
    }
    vec![(profile.home_variable.into(), home.into())]
}

/// Finds an agent's program: the first of its name on this search path, or where its installers put it. A tray that the
/// desktop started may have a shorter search path than a shell.
///
/// # Errors
/// What was looked for, and what to do.
pub(super) fn program(profile: &Profile, path: Option<&OsStr>, user_home: Option<&Path>) -> Result<PathBuf, String> {
    candidates(profile, path, user_home).find(|program| is_program(program)).ok_or_else(|| {
        format!(
            "no program `{}` was found on PATH or where its installer puts it: install it, or start Pilotlight where it is \
             on PATH",
            profile.program
        )
    })
}

/// Where an agent's program may be, whether it is there or not, in the order in which one is taken.
pub(super) fn candidates<'a>(
    profile: &'a Profile,
    path: Option<&'a OsStr>,
    user_home: Option<&'a Path>,
) -> impl Iterator<Item = PathBuf> {
    let name = format!("{}{EXE_SUFFIX}", profile.program);
    let listed = path.into_iter().flat_map(std::env::split_paths).filter(|folder| folder.is_absolute());
    let installed = user_home.into_iter().flat_map(|home| profile.installed.iter().map(|folder| home.join(folder)));
    let common = ["/usr/local/bin", "/opt/homebrew/bin"].map(PathBuf::from);
    listed.chain(installed).chain(common).map(move |folder| folder.join(&name))
}

#[cfg(unix)]
pub(super) fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
pub(super) fn is_program(path: &Path) -> bool {
    path.is_file()
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;
    use crate::adapter::ADAPTERS;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    fn with_homes() -> impl Iterator<Item = &'static Profile> {
        ADAPTERS.iter().map(|adapter| adapter.profile()).filter(|profile| !profile.home_variable.is_empty())
    }

    #[test]
    fn the_variable_is_set_if_the_agent_would_use_another_home() {
        for profile in with_homes() {
            let scratch = tempfile::tempdir().unwrap();
            let default = scratch.path().join(profile.home);
            fs::create_dir(&default).unwrap();
            std::os::unix::fs::symlink(&default, scratch.path().join("link")).unwrap();
            let of = |home: &Path, inherited: Option<&str>| {
                env(profile, home, Some(scratch.path()), inherited.map(OsStr::new))
            };
            let named = |home: &Path| vec![(OsString::from(profile.home_variable), home.as_os_str().to_owned())];
            for same in [&default, &scratch.path().join("link")] {
                assert_eq!(of(same, None), []);
                assert_eq!(of(same, Some("")), []);
                assert_eq!(of(same, Some("/elsewhere")), named(same), "the terminal would pass ours on");
            }
            assert_eq!(of(Path::new("/srv/other"), None), named(Path::new("/srv/other")));
            assert_eq!(env(profile, &default, None, None), named(&default));
        }
    }

    #[test]
    fn the_first_program_on_the_path_is_taken_then_an_installed_one_and_no_other_file() {
        for profile in with_homes().filter(|profile| !profile.installed.is_empty()) {
            let scratch = tempfile::tempdir().unwrap();
            let put = |folder: &str, mode| {
                let folder = scratch.path().join(folder);
                fs::create_dir_all(&folder).unwrap();
                let program = folder.join(profile.program);
                fs::write(&program, "").unwrap();
                fs::set_permissions(&program, fs::Permissions::from_mode(mode)).unwrap();
                program
            };
            let [plain, listed] = [put("plain", 0o644), put("listed", 0o755)];
            let path = std::env::join_paths([plain.parent().unwrap(), listed.parent().unwrap()]).unwrap();
            let home = scratch.path().join("home");
            assert_eq!(program(profile, Some(&path), Some(&home)), Ok(listed));
            let installed = put(&format!("home/{}", profile.installed[0]), 0o755);
            assert_eq!(program(profile, Some(plain.parent().unwrap().as_os_str()), Some(&home)), Ok(installed));
        }
        let nowhere = Profile { program: "no-such-agent", ..crate::codex::PROFILE };
        assert!(program(&nowhere, None, None).unwrap_err().starts_with("no program `no-such-agent` was found"));
    }
}
