//! The other files of a session's folder: its description, and the names of its locks.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pilotlight_core::text::NAME_MAX;
use pilotlight_agents::copilot::store::lock_pid;
use pilotlight_agents::copilot::workspace::parse;

fuzz_target!(|data: &[u8]| {
    let about = parse(data);
    for shown in [&about.name, &about.branch].into_iter().flatten() {
        assert!(shown.chars().count() <= NAME_MAX + 1, "too long");
        assert!(!shown.chars().any(char::is_control), "{shown:?}");
    }
    let name = String::from_utf8_lossy(data);
    if let Some(pid) = lock_pid(&name) {
        let digits = name.strip_prefix("inuse.").and_then(|rest| rest.strip_suffix(".lock"));
        assert_eq!(digits.and_then(|digits| digits.parse().ok()), Some(pid));
    }
});
