//! A log with arbitrary edits: reading it incrementally gives the same facts as reading it from scratch after each
//! edit.
#![no_main]

#[path = "../../tests/tail/edits.rs"]
mod edits;

use libfuzzer_sys::fuzz_target;
use std::cell::RefCell;
use tempfile::TempDir;

thread_local! {
    static SCRATCH: RefCell<(TempDir, Vec<u8>)> = RefCell::new((
        // In memory, if the system supports that.
        TempDir::new_in("/dev/shm").or_else(|_| TempDir::new()).expect("a folder for the log"),
        Vec::new(),
    ));
}

fuzz_target!(|data: &[u8]| SCRATCH.with_borrow_mut(|(folder, buffer)| edits::play(data, folder.path(), buffer)));
