//! The note about sessions that ended with Pilotlight when a signal ended it, so that nobody could be asked. It is kept
//! in the state folder and reported once by the next Pilotlight that starts.

use pilotlight_core::text::{NAME_MAX, plain};
use pilotlight_core::time::Time;
use pilotlight_system::state_file::{self, Unusable};
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::Path;

/// Prefix of a note's file name; each process has a file of its own.
const PREFIX: &str = "ended-";
/// The version of a note's format. Version 0 had no version.
const VERSION: u32 = 1;
/// At most this many notes are reported at once. There is one for each process that was ended since the last start.
const NOTES_MAX: usize = 8;

/// The sessions that ended with a process of ours.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExitNote {
    /// When it was ended.
    pub at: Time,
    pub sessions: Vec<EndedSession>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndedSession {
    pub id: Box<str>,
    /// Its name and status: "Paint the fence (working)".
    pub name: String,
}

impl ExitNote {
    /// The note as a line for the user.
    pub fn words(&self) -> String {
        let names: Vec<_> = self.sessions.iter().map(|session| plain(&session.name, NAME_MAX).into_string()).collect();
        let ids: Vec<_> = self.sessions.iter().map(|session| plain(&session.id, NAME_MAX).into_string()).collect();
        format!(
            "Pilotlight was told to end at {}. Sessions that only it kept alive ended with it: {}. To bring one back, use `pilotlight reconnect ID`: {}",
            self.at,
            names.join(", "),
            ids.join(", ")
        )
    }
}

/// Saves a note for the next start.
///
/// # Errors
/// If the state folder cannot be written.
pub(crate) fn save(state: &Path, ended: &ExitNote) -> anyhow::Result<()> {
    let file = state.join(format!("{PREFIX}{}.json", std::process::id()));
    state_file::replace(&file, &state_file::text_of(VERSION, ended)?)
}

/// Takes the notes that were not reported yet, the oldest first. A note that cannot be removed is not returned: it
/// would be reported at every start.
pub fn take_all(state: &Path) -> Vec<ExitNote> {
    let is_note = |name: &str| name.starts_with(PREFIX) && name.ends_with(".json");
    let entries = fs::read_dir(state).into_iter().flatten().flatten();
    let notes = entries.filter(|entry| entry.file_name().to_str().is_some_and(is_note));
    let taken = notes.filter_map(|entry| {
        let text = state_file::read(&entry.path());
        let ended = state_file::parse::<ExitNote>(&text, VERSION);
        if matches!(ended, Err(Unusable::Later(_))) {
            return None; // for the version that wrote it
        }
        fs::remove_file(entry.path()).ok()?;
        ended.ok()
    });
    let mut taken: Vec<_> = taken.take(NOTES_MAX).collect();
    taken.sort_by_key(|ended| ended.at);
    taken
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_is_reported_once_and_other_files_never() {
        let state = tempfile::tempdir().unwrap();
        let session = EndedSession { id: "36535f61".into(), name: "Paint\u{1b}[31m the fence (working)".into() };
        let ended = ExitNote { at: Time(1_700_000_000_000), sessions: vec![session] };
        save(state.path(), &ended).unwrap();
        for (name, text) in [("ended-1.json", "garbage"), ("ended-2.json", "{}"), ("seen.json", "{}")] {
            fs::write(state.path().join(name), text).unwrap();
        }
        let taken = take_all(state.path());
        assert_eq!(taken, [ended]);
        let words = taken[0].words();
        assert!(words.contains("2023-11-14T22:13:20.000Z") && words.contains("the fence (working)"), "{words}");
        assert!(words.contains("36535f61") && !words.contains('\u{1b}'), "{words}");
        assert_eq!(take_all(state.path()), []);
        assert_eq!(fs::read_dir(state.path()).unwrap().count(), 1, "other files stay");
    }
}
