//! How a session is resumed in a terminal.

use pilotlight_core::text::is_uuid;
use std::ffi::OsString;
use std::path::Path;

/// The command that resumes a session. `None` if the id is not a UUID: nothing else may reach a command line.
pub(crate) fn command(program: &Path, id: &str) -> Option<Vec<OsString>> {
    is_uuid(id).then(|| vec![program.into(), "--resume".into(), id.into()])
}

/// The same for the user to type.
pub(crate) fn line(id: &str) -> Option<String> {
    is_uuid(id).then(|| format!("claude --resume {id}"))
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
}
