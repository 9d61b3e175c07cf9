//! Where a process comes from: what the kernel keeps of it even after its parents have ended.

#![allow(clippy::disallowed_methods, reason = "`/proc` holds no pipes")]

use super::ancestry::ancestors;
use super::reading::ProcessInfo;
use pilotlight_core::time::Time;

/// The process, its parent and so on, nearest first, as far as they can be read. Empty if there is no such process.
/// `now` is the wall clock.
pub fn lineage(pid: u32, now: Time) -> Vec<ProcessInfo> {
    let mut line = vec![pid];
    line.extend(ancestors(pid));
    line.into_iter().map_while(|pid| super::linux::process_info(pid, now)).collect()
}

/// The path of a process's control group, whose names are systemd's slices and units. `None` without systemd.
pub fn group_of(pid: u32) -> Option<String> {
    let groups = std::fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()?;
    // Version 2, or version 1's hierarchy of systemd.
    let version_2 = groups.lines().find_map(|line| line.strip_prefix("0::"));
    let version_1 = || groups.lines().find_map(|line| line.split_once(":name=systemd:")).map(|(_, path)| path);
    let is_known = |path: &&str| path.contains(".scope") || path.contains(".service");
    version_2.filter(is_known).or_else(|| version_1().filter(is_known)).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_begins_with_the_process_and_its_parent() {
        let mut child = std::process::Command::new("cat").stdin(std::process::Stdio::piped()).spawn().unwrap();
        let now = crate::clock::Clock::start().now().wall;
        let line = lineage(child.id(), now);
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!((line[0].pid, line[1].pid), (child.id(), std::process::id()));
        assert_eq!(line[0].leader, line[1].leader, "no new session was made");
        assert!(line[1].at <= line[0].at && line[0].at <= now && line[0].is_ours);
        assert!(lineage(u32::MAX, now).is_empty());
    }
}
