//! How a session is resumed in a terminal, and the program that does it.

use super::profile::{HOME, VARIABLE};
use crate::core::text::is_uuid;
use crate::system::paths;
use std::env::consts::EXE_SUFFIX;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// The command that resumes a session. `None` if the id is not a UUID: nothing else may reach a command line.
pub(crate) fn command(program: &Path, id: &str) -> Option<Vec<OsString>> {
    is_uuid(id).then(|| vec![program.into(), "--resume".into(), id.into()])
}

/// The same for the user to type.
pub(crate) fn line(id: &str) -> Option<String> {
    is_uuid(id).then(|| format!("claude --resume {id}"))
}

/// The variables for the command that resumes a session in this home: none if that is the home by default. `inherited`
/// is our own variable for another home, which a terminal may pass on.
pub(crate) fn env(home: &Path, user_home: Option<&Path>, inherited: Option<&OsStr>) -> Vec<(OsString, OsString)> {
    let is_default = user_home.is_some_and(|user| paths::is_same(&user.join(HOME), home));
    if is_default && inherited.is_none_or(OsStr::is_empty) {
        return Vec::new();
    }
    vec![(VARIABLE.into(), home.into())]
}

/// The program: the first of its name on the search path, or where its installer puts it.
///
/// # Errors
/// What was looked for, and what to do.
pub(crate) fn find_program(path: Option<&OsStr>, user_home: Option<&Path>) -> Result<PathBuf, String> {
    let name = format!("claude{EXE_SUFFIX}");
    let listed = path.map(std::env::split_paths).into_iter().flatten().filter(|folder| folder.is_absolute());
    let installed =
        [".local/bin", ".claude/local", ".npm-global/bin"].map(|folder| user_home.map(|home| home.join(folder)));
    let common = ["/usr/local/bin", "/opt/homebrew/bin"].map(|folder| Some(PathBuf::from(folder)));
    let folders = listed.chain(installed.into_iter().chain(common).flatten());
    let found = folders.map(|folder| folder.join(&name)).find(|program| program.is_file());
    found.ok_or_else(|| {
        "no program `claude` was found on PATH or where its installer puts it: install it, or start Pilotlight where it is \
         on PATH"
            .to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "36535f61-5c7b-4f09-a70b-2f8aed970001";

    /// Case 250.
    #[test]
    fn case_250_only_a_uuid_reaches_a_command_line() {
        for id in ["", "36535f61", "--dangerously-skip-permissions", &format!("{ID} -p"), &format!("{ID};id"), "$(id)"]
        {
            assert_eq!((command(Path::new("/bin/claude"), id), line(id)), (None, None), "{id:?}");
        }
        let resumed = command(Path::new("/bin/claude"), ID).unwrap();
        assert_eq!(resumed, ["/bin/claude", "--resume", ID]);
    }

    #[test]
    fn the_program_is_found_on_the_path_first() {
        let scratch = tempfile::tempdir().unwrap();
        let put = |folder: &str| {
            let folder = scratch.path().join(folder);
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(folder.join(format!("claude{EXE_SUFFIX}")), "").unwrap();
            folder
        };
        let (own, listed) = (put("home/.local/bin"), put("listed"));
        let find = |path: Option<&OsStr>| find_program(path, Some(&scratch.path().join("home"))).unwrap();
        assert_eq!(find(Some(listed.as_os_str())).parent(), Some(&*listed));
        assert_eq!(find(None).parent(), Some(&*own));
    }
}
