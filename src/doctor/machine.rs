//! The machine's limits: whether every session folder can be watched, and every owner waited for.

use super::check::CheckContext;
use super::finding::Finding;
use pilotlight_system::watcher::POLLING;

/// Each session folder takes one inotify watch, and all programs of a user share one limit.
#[cfg(target_os = "linux")]
pub(super) fn watches(context: &CheckContext) -> Vec<Finding> {
    use rustix::fs::inotify;
    const CHECK: &str = "watches";
    /// A home, our state folder, and the folder of the settings.
    const OTHERS: usize = 3;
    let folders = context.homes.iter().map(|home| 1 + home.list().map_or(0, Iterator::count));
    let need = folders.sum::<usize>() + OTHERS;
    let limits = ["fs/inotify/max_user_watches", "user/max_inotify_watches"];
    let finding = match limits.into_iter().filter_map(number).min() {
        None => Finding::warning(
            CHECK,
            format!("Pilotlight needs {need} file watches; the limit cannot be read"),
            format!("if there are too few, Pilotlight says so, and {POLLING}"),
        ),
        Some(limit) if limit < need => Finding::problem(
            CHECK,
            format!("Pilotlight needs {need} file watches, but all your programs together may have only {limit}"),
            format!(
                "raise the limit: `sudo sysctl fs.inotify.max_user_watches={}`; beyond it, {POLLING}",
                (need * 2).next_power_of_two()
            ),
        ),
        Some(limit) if limit / 2 < need => Finding::warning(
            CHECK,
            format!("Pilotlight needs {need} of the {limit} file watches that your programs share"),
            format!("raise the limit before it is reached: `sudo sysctl fs.inotify.max_user_watches={}`", limit * 4),
        ),
        Some(limit) => {
            Finding::ok(CHECK, format!("Pilotlight needs {need} of the {limit} file watches that your programs share"))
        }
    };
    let mut findings = vec![finding.public()];
    // Whether another instance is available can only be found out by taking one.
    if let Err(error) = inotify::init(inotify::CreateFlags::CLOEXEC) {
        let most = number("fs/inotify/max_user_instances");
        let most = most.map_or(String::new(), |most| format!(" (fs.inotify.max_user_instances is {most})"));
        let text = format!("file changes cannot be watched at all{most}");
        let remedy = format!("{POLLING}; end programs that watch files, or raise fs.inotify.max_user_instances");
        findings.push(Finding::problem(CHECK, format!("{text}: {error}"), remedy).redacted(text));
    }
    findings
}

/// Each owner that is waited for takes one of the tray's descriptors.
#[cfg(target_os = "linux")]
pub(super) fn descriptors(context: &CheckContext) -> Vec<Finding> {
    use pilotlight_system::descriptors::{limit, reserve};
    use pilotlight_system::runtime::Runtime;
    use std::fs;
    const CHECK: &str = "descriptors";
    let notes = context.runtime_folders.iter().filter_map(|folder| Runtime::open(folder).ok()??.note());
    let tray = notes.map(|note| note.process).find_map(|tray| {
        let open = fs::read_dir(format!("/proc/{tray}/fd")).ok()?.count() as u64;
        let limits = fs::read_to_string(format!("/proc/{tray}/limits")).ok()?;
        let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
        Some((open, line.split_whitespace().next()?.parse::<u64>().unwrap_or(u64::MAX)))
    });
    let finding = match (tray, limit()) {
        (Some((open, limit)), _) => {
            let text = format!("the tray has {open} of at most {limit} files open");
            if open + reserve(limit) >= limit {
                let remedy = "Pilotlight checks every 2 s whether some agents still run. Raise the limit (`ulimit -n`, or LimitNOFILE= \
                              of a service), and restart the tray";
                Finding::warning(CHECK, format!("{text}, and keeps the rest in reserve"), remedy)
            } else {
                Finding::ok(CHECK, text)
            }
        }
        (None, Some(limit)) if limit < 256 => {
            let remedy = "with many sessions, Pilotlight checks every 2 s whether some agents still run: raise the limit with \
                          `ulimit -n`";
            Finding::warning(CHECK, format!("your programs may open no more than {limit} files each"), remedy)
        }
        _ => Finding::ok(CHECK, "the limit on open files is high enough".to_owned()),
    };
    vec![finding.public()]
}

#[cfg(target_os = "linux")]
fn number(limit: &str) -> Option<usize> {
    std::fs::read_to_string(format!("/proc/sys/{limit}")).ok()?.trim().parse().ok()
}

/// Elsewhere, waiting for an owner takes no descriptor.
#[cfg(not(target_os = "linux"))]
pub(super) fn descriptors(_ground: &CheckContext) -> Vec<Finding> {
    Vec::new()
}

/// Elsewhere, the system watches whole trees and has no such limit.
#[cfg(not(target_os = "linux"))]
pub(super) fn watches(_ground: &CheckContext) -> Vec<Finding> {
    let text = "file changes cannot be watched";
    vec![match notify::recommended_watcher(|_: notify::Result<notify::Event>| ()) {
        Ok(_) => Finding::ok("watches", "files can be watched"),
        Err(error) => Finding::problem("watches", format!("{text}: {error}"), POLLING).redacted(text),
    }]
}
