//! How a session is resumed in a terminal.

use super::home;
use crate::core::text::is_uuid;
use crate::system::paths;
use std::ffi::{OsStr, OsString};
use std::path::Path;

/// The command that resumes a session in a terminal. `None` if the id is not a UUID, as Copilot's are: nothing else may
/// reach a command line.
pub(crate) fn command(program: &Path, id: &str) -> Option<Vec<OsString>> {
    is_uuid(id).then(|| vec![program.into(), format!("--resume={id}").into()])
}

/// The same for the user to type.
pub(crate) fn line(id: &str) -> Option<String> {
    is_uuid(id).then(|| format!("copilot --resume={id}"))
}

/// The variables for the command that resumes a session in this home: none if Copilot uses that home by default.
/// `inherited` is our own `COPILOT_HOME`, which a terminal may pass on.
pub(crate) fn env(folder: &Path, user_home: Option<&Path>, inherited: Option<&OsStr>) -> Vec<(OsString, OsString)> {
    let is_default = user_home.is_some_and(|user_home| paths::is_same(&user_home.join(home::NAME), folder));
    if is_default && inherited.is_none_or(OsStr::is_empty) {
        return Vec::new();
    }
    vec![(home::VARIABLE.into(), folder.into())]
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "36535f61-5c7b-4f09-a70b-2f8aed970001";

    #[test]
    fn only_an_id_of_copilots_form_reaches_a_command_line() {
        for id in ["", "36535f61", "--yolo", &format!("{ID} --yolo"), &format!("{ID}\n"), &format!("{ID};id"), "$(id)"]
        {
            assert_eq!(command(Path::new("/bin/copilot"), id), None, "{id:?}");
        }
        let resumed = command(Path::new("/bin/copilot"), ID).unwrap();
        assert_eq!(resumed, ["/bin/copilot".into(), OsString::from(format!("--resume={ID}"))]);
    }

    #[cfg(unix)]
    #[test]
    fn copilot_home_is_set_if_copilot_would_use_another_home() {
        let scratch = tempfile::tempdir().unwrap();
        let default = scratch.path().join(".copilot");
        std::fs::create_dir(&default).unwrap();
        std::os::unix::fs::symlink(&default, scratch.path().join("link")).unwrap();
        let of = |home: &Path, inherited: Option<&str>| env(home, Some(scratch.path()), inherited.map(OsStr::new));
        let named = |home: &Path| vec![(OsString::from(home::VARIABLE), home.as_os_str().to_owned())];
        for same in [&default, &scratch.path().join("link")] {
            assert_eq!(of(same, None), []);
            assert_eq!(of(same, Some("")), []);
            assert_eq!(of(same, Some("/elsewhere")), named(same), "the terminal would pass ours on");
        }
        assert_eq!(of(Path::new("/srv/copilot"), None), named(Path::new("/srv/copilot")));
        assert_eq!(env(&default, None, None), named(&default));
    }
}
