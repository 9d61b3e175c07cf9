//! A log that is edited in any way, read as it changes and read anew after each edit: both come to the same.
#![no_main]

#[path = "../../tests/tail/edits.rs"]
mod edits;

use libfuzzer_sys::fuzz_target;
use std::cell::RefCell;
use tempfile::TempDir;

thread_local! {
    static PLACE: RefCell<(TempDir, Vec<u8>)> = RefCell::new((
        // A file in memory, where the system has such a place.
        TempDir::new_in("/dev/shm").or_else(|_| TempDir::new()).expect("a folder for the log"),
        Vec::new(),
    ));
}

fuzz_target!(|data: &[u8]| PLACE.with_borrow_mut(|(folder, buffer)| edits::play(data, folder.path(), buffer)));
