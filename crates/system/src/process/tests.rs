//! Processes that really run.

#[cfg(target_os = "linux")]
mod cpu;
mod exits;
#[cfg(unix)]
mod ports;

use super::testing::{alone, waiting};
use super::*;

#[test]
fn our_children_are_our_descendants_until_they_end() {
    alone!();
    let mut child = waiting();
    let sample = cpu_of_descendants(std::process::id()).unwrap();
    assert!(sample.has(child.pid()));
    assert!(!sample.has(std::process::id()));
    child.end();
    assert!(!cpu_of_descendants(std::process::id()).unwrap().has(child.pid()));
    assert_eq!(cpu_of_descendants(child.pid()).map(|sample| sample.descendants()), None);
    assert!(cpu_of_descendants(u32::MAX).is_none());
}

#[cfg(target_os = "linux")]
#[test]
fn ancestors_begin_with_the_parent() {
    let mut child = waiting();
    let found = ancestors(child.pid());
    assert_eq!(found[..2], [std::process::id(), std::os::unix::process::parent_id()]);
    assert_eq!(found[1..], ancestors(std::process::id()));
    child.end();
    assert!(ancestors(child.pid()).is_empty() && ancestors(0).is_empty());
}

#[cfg(target_os = "linux")]
#[test]
fn our_own_processes_are_of_our_user() {
    assert!(is_of_our_user(std::process::id()));
    let mut child = waiting();
    assert!(is_of_our_user(child.pid()));
    child.end();
    assert!(!is_of_our_user(child.pid()) && !is_of_our_user(0));
}
