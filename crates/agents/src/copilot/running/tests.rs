//! A search for real processes, on Linux.

use std::fs;

use super::programs;
use crate::copilot::owner::testing::World;
use pilotlight_system::process::testing::{after, now};

#[test]
fn every_copilot_is_found_with_its_home_and_its_log() {
    let world = World::new();
    let log = format!(r#"open(L, ">", "{}/logs/process-1700000000000-$$.log") or die;"#, world.home("home").display());
    let opens = format!(r#"open(D, ">", "{}/session-store.db") or die;"#, world.home("home").display());
    let process = after(&(log + &opens), &world.program(), &["-".as_ref()]);
    let found = programs(&[], now());
    let program = found.iter().find(|program| program.pid == process.pid()).unwrap();
    assert_eq!(program.parent, std::process::id());
    assert!(program.homes.contains(&world.home("home")) && !program.hidden && !program.is_script, "{program:?}");
    assert!(program.log.as_ref().is_some_and(|log| log.starts_with("/proc") && fs::read(log).is_ok()), "{program:?}");
    assert_eq!(program.arguments[1], "-");
    assert!((program.started.unwrap() - now()).0.abs() < 20_000);
    assert!(!found.iter().any(|program| program.pid == std::process::id()));
}
