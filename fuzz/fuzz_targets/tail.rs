//! A log of any bytes, appended in any pieces: reading it as it grows gives the same as parsing its lines one by one.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pilotlight_agents::copilot::log_format::parse;
use pilotlight_core::limits::Limits;
use pilotlight_core::facts::Facts;
use pilotlight_core::time::{Moment, Time};
use pilotlight_agents::copilot::log_format::LOG_FORMAT;
use pilotlight_agents::tail::{ReadContext, Tail};
use std::cell::RefCell;
use std::fs::{File, OpenOptions};
use std::io::Write;
use tempfile::TempDir;

thread_local! {
    static SCRATCH: RefCell<(TempDir, Vec<u8>)> = RefCell::new((
        // In memory, if the system supports that.
        TempDir::new_in("/dev/shm").or_else(|_| TempDir::new()).expect("a folder for the log"),
        Vec::new(),
    ));
}

/// The latest time that a log can contain, so that no line is in the future.
const NOW: Moment = Moment { wall: Time(253_402_300_799_999), awake: Time(253_402_300_799_999) };

fuzz_target!(|data: &[u8]| {
    let (&count, data) = data.split_first().unwrap_or((&0, data));
    let (cuts, log) = data.split_at_checked(usize::from(count % 8)).unwrap_or((&[], data));
    SCRATCH.with_borrow_mut(|(folder, buffer)| {
        let path = folder.path().join("events.jsonl");
        drop(File::create(&path).expect("the log is made"));
        let limits = Limits::default();
        let (mut tail, mut facts) = (Tail::default(), Facts::default());
        let context = ReadContext { now: NOW, limits: &limits, until: None };
        tail.read(&LOG_FORMAT, &path, &mut facts, context, buffer).expect("an empty log is read");
        let mut from = 0;
        let mut ends: Vec<_> = cuts.iter().map(|&cut| usize::from(cut) * log.len() / 255).chain([log.len()]).collect();
        ends.sort_unstable();
        for end in ends {
            let mut file = OpenOptions::new().append(true).open(&path).expect("the log is there");
            file.write_all(&log[from..end]).expect("the log is written");
            from = end;
            tail.read(&LOG_FORMAT, &path, &mut facts, context, buffer).expect("a log is read");
        }
        let (mut events, mut skipped) = (0, 0);
        for line in log.split_inclusive(|&byte| byte == b'\n').filter_map(|line| line.strip_suffix(b"\n")) {
            match parse(line) {
                Ok(_) => events += 1,
                Err(_) => skipped += u64::from(!line.trim_ascii().is_empty()),
            }
        }
        assert_eq!(facts.skipped, skipped);
        assert!(facts.events <= events, "{} of {events}", facts.events);
        // Reading backwards from the end finds no more either.
        let mut from_end = Facts::default();
        Tail::default().read(&LOG_FORMAT, &path, &mut from_end, context, buffer).expect("a log is read from its end");
        assert!(from_end.events + from_end.skipped <= events + skipped);
    });
});
