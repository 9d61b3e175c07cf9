//! A config file with any text: each problem has a message, and the printed settings parse to the same settings.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pilotlight_engine::config;
use std::path::Path;

fuzz_target!(|text: &str| {
    let path = Path::new("/nowhere/config.toml");
    let (settings, problems) = config::parse(text, path);
    for problem in &problems {
        assert!(!problem.to_string().is_empty());
    }
    // The printed settings parse without a problem.
    let printed = config::print(&settings);
    let (again, problems) = config::parse(&printed, path);
    assert!(problems.is_empty(), "{problems:?}\n{printed}");
    assert_eq!(format!("{again:?}"), format!("{settings:?}"), "{printed}");
});
