//! How a session is resumed in a terminal.

use pilotlight_core::text::is_uuid;
use std::ffi::OsString;
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
}
