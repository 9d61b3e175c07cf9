//! How a thread is resumed: by Codex's own command, in a terminal. It refuses by itself where another process has it.

use pilotlight_core::text::is_uuid;
use std::ffi::OsString;
use std::path::Path;

/// The command that resumes a thread. `None` if its id must not reach a command line.
pub(crate) fn command(program: &Path, id: &str) -> Option<Vec<OsString>> {
    is_uuid(id).then(|| vec![program.into(), "resume".into(), id.into()])
}

/// The same for the user to type.
pub(crate) fn line(id: &str) -> Option<String> {
    is_uuid(id).then(|| format!("codex resume {id}"))
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
}
