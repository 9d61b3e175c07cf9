//! How a thread is resumed: by Codex's own command, in a terminal. It refuses by itself where another process has it.

use super::profile::PROFILE;
use crate::core::text::is_uuid;
use crate::system::paths;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// The program's name.
const PROGRAM: &str = "codex";
/// Where installers put it, below the user's home; a tray that the desktop started may have a shorter search path.
const USUAL: [&str; 3] = [".local/bin", ".npm-global/bin", ".bun/bin"];

/// The command that resumes a thread. `None` if its id must not reach a command line.
pub(crate) fn command(program: &Path, id: &str) -> Option<Vec<OsString>> {
    is_uuid(id).then(|| vec![program.into(), "resume".into(), id.into()])
}

/// The same for the user to type.
pub(crate) fn line(id: &str) -> Option<String> {
    is_uuid(id).then(|| format!("{PROGRAM} resume {id}"))
}

/// The variables for that command: none if Codex uses this home by default. `inherited` is our own `CODEX_HOME`, which a
/// terminal may pass on.
pub(crate) fn env(folder: &Path, user_home: Option<&Path>, inherited: Option<&OsStr>) -> Vec<(OsString, OsString)> {
    let is_default = user_home.is_some_and(|user_home| paths::is_same(&user_home.join(PROFILE.home), folder));
    if is_default && inherited.is_none_or(OsStr::is_empty) {
        return Vec::new();
    }
    vec![(PROFILE.home_variable.into(), folder.into())]
}

/// Finds the program on this search path, or where installers put it.
///
/// # Errors
/// What was tried, and what to do.
pub(crate) fn program(path: Option<&OsStr>, user_home: Option<&Path>) -> Result<PathBuf, String> {
    let file = format!("{PROGRAM}{}", std::env::consts::EXE_SUFFIX);
    let on_path = path.into_iter().flat_map(std::env::split_paths).filter(|folder| folder.is_absolute());
    let usual = user_home.into_iter().flat_map(|home| USUAL.map(|folder| home.join(folder)));
    let mut candidates = on_path.chain(usual).map(|folder| folder.join(&file));
    candidates.find(|program| is_program(program)).ok_or_else(|| {
        format!("no `{PROGRAM}` was found on the search path: resume it in a terminal where that command works")
    })
}

#[cfg(unix)]
fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_program(path: &Path) -> bool {
    path.is_file()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "01a20053-8e6c-7863-a4ca-0d958e862685";

    #[test]
    fn only_a_uuid_reaches_a_command_line() {
        for id in ["", "--last", &format!("{ID} --last"), &format!("{ID}\n"), "$(id)"] {
            assert_eq!((command(Path::new("/bin/codex"), id), line(id)), (None, None), "{id:?}");
        }
        assert_eq!(command(Path::new("/bin/codex"), ID).unwrap(), ["/bin/codex", "resume", ID]);
        assert_eq!(line(ID).unwrap(), format!("codex resume {ID}"));
    }

    #[test]
    fn the_home_is_named_where_codex_would_use_another_one() {
        let user = Path::new("/home/dev");
        let named = |home: &str| vec![(OsString::from("CODEX_HOME"), OsString::from(home))];
        assert_eq!(env(&user.join(".codex"), Some(user), None), []);
        assert_eq!(env(&user.join(".codex"), Some(user), Some(OsStr::new("/srv"))), named("/home/dev/.codex"));
        assert_eq!(env(Path::new("/srv/codex"), Some(user), None), named("/srv/codex"));
    }

    #[cfg(unix)]
    #[test]
    fn the_first_program_on_the_path_is_taken_and_no_other_file() {
        use std::os::unix::fs::PermissionsExt;
        let scratch = tempfile::tempdir().unwrap();
        let [first, second] = ["a", "b"].map(|name| scratch.path().join(name));
        let path = std::env::join_paths([&first, &second]).unwrap();
        for folder in [&first, &second] {
            std::fs::create_dir(folder).unwrap();
            std::fs::write(folder.join("codex"), "").unwrap();
        }
        assert!(program(Some(&path), None).unwrap_err().contains("no `codex` was found"));
        std::fs::set_permissions(second.join("codex"), std::fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(program(Some(&path), None), Ok(second.join("codex")));
    }
}
