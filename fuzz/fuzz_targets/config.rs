//! A config file: whatever stands there, what is wrong is named by its line, and what is said is what can be said again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pilotlight::config;
use std::path::Path;

fuzz_target!(|text: &str| {
    let path = Path::new("/nowhere/config.toml");
    let (settings, problems) = config::parse(text, path);
    for problem in &problems {
        assert!(!problem.to_string().is_empty());
    }
    // Printed whole, it reads as the same again, without a problem.
    let printed = config::print(&settings);
    let (again, problems) = config::parse(&printed, path);
    assert!(problems.is_empty(), "{problems:?}\n{printed}");
    assert_eq!(format!("{again:?}"), format!("{settings:?}"), "{printed}");
});
