//! What ended with Pilotlight when it was told to end by a signal, and nobody could be asked: kept in the state folder, and told
//! once by whatever of Pilotlight starts next.

use crate::core::text::{NAME_MAX, plain};
use crate::core::time::Time;
use crate::system::state_file;
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::Path;

/// How a note's file begins; each process has one of its own.
const PREFIX: &str = "ended-";
/// So many notes are told at once; there is one for each process that was ended since.
const TOLD_MAX: usize = 8;

/// What ended with a process of ours.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Ended {
    /// When.
    pub at: Time,
    /// Which sessions.
    pub sessions: Vec<One>,
}

/// One session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct One {
    /// Its id.
    pub id: Box<str>,
    /// What it is called, and what it did: "Paint the fence (working)".
    pub name: String,
}

impl Ended {
    /// As a line for the user.
    pub(crate) fn words(&self) -> String {
        let names: Vec<_> = self.sessions.iter().map(|one| plain(&one.name, NAME_MAX).into_string()).collect();
        let ids: Vec<_> = self.sessions.iter().map(|one| plain(&one.id, NAME_MAX).into_string()).collect();
        format!(
            "Pilotlight was told to end at {}, and what only it kept alive ended with it: {}; `pilotlight reconnect ID` brings it back: {}",
            self.at,
            names.join(", "),
            ids.join(", ")
        )
    }
}

/// Keeps a note for the next start.
///
/// # Errors
/// Where the state folder cannot be written.
pub(crate) fn keep(state: &Path, ended: &Ended) -> anyhow::Result<()> {
    let file = state.join(format!("{PREFIX}{}.json", std::process::id()));
    state_file::replace(&file, &serde_json::to_vec(ended)?)
}

/// Takes the notes that nobody has told yet, the oldest first. What cannot be taken away is not told: it would be told for ever.
pub(crate) fn take(state: &Path) -> Vec<Ended> {
    let is_note = |name: &str| name.starts_with(PREFIX) && name.ends_with(".json");
    let entries = fs::read_dir(state).into_iter().flatten().flatten();
    let notes = entries.filter(|entry| entry.file_name().to_str().is_some_and(is_note));
    let taken = notes.filter_map(|entry| {
        let text = state_file::read(&entry.path());
        fs::remove_file(entry.path()).ok()?;
        serde_json::from_str::<Ended>(&text).ok()
    });
    let mut taken: Vec<_> = taken.take(TOLD_MAX).collect();
    taken.sort_by_key(|ended| ended.at);
    taken
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ended_is_told_once_and_what_is_no_note_never() {
        let state = tempfile::tempdir().unwrap();
        let one = One { id: "36535f61".into(), name: "Paint\u{1b}[31m the fence (working)".into() };
        let ended = Ended { at: Time(1_700_000_000_000), sessions: vec![one] };
        keep(state.path(), &ended).unwrap();
        for (name, text) in [("ended-1.json", "garbage"), ("ended-2.json", "{}"), ("seen.json", "{}")] {
            fs::write(state.path().join(name), text).unwrap();
        }
        let taken = take(state.path());
        assert_eq!(taken, [ended]);
        let words = taken[0].words();
        assert!(words.contains("2023-11-14T22:13:20.000Z") && words.contains("the fence (working)"), "{words}");
        assert!(words.contains("36535f61") && !words.contains('\u{1b}'), "{words}");
        assert_eq!(take(state.path()), []);
        assert_eq!(fs::read_dir(state.path()).unwrap().count(), 1, "what is not ours stays");
    }
}
