//! The machine's limits: whether every session folder can be watched, and every owner waited for.

use super::{Finding, Ground};

/// On Linux each session folder takes one watch, and all of them share the user's limit with every other program.
#[cfg(target_os = "linux")]
pub(super) fn watches(ground: &Ground) -> Vec<Finding> {
    use crate::agent::copilot::store::{SESSIONS, session_ids};
    use rustix::fs::inotify;
    use std::path::Path;
    const CHECK: &str = "watches";
    /// A home, the folder of what was looked at, and that of the settings.
    const BESIDE: usize = 3;
    let folders: usize =
        ground.homes.iter().map(|home| 1 + session_ids(&home.join(SESSIONS)).map_or(0, Iterator::count)).sum();
    let need = folders + BESIDE;
    let limits = ["/proc/sys/fs/inotify/max_user_watches", "/proc/sys/user/max_inotify_watches"];
    let limit = limits.iter().filter_map(|path| number(Path::new(path))).min();
    let instances = number(Path::new("/proc/sys/fs/inotify/max_user_instances"));
    let mut findings = vec![match limit {
        None => Finding::warning(
            CHECK,
            format!("{need} needed; the limit cannot be read"),
            "where they run out, Pilotlight says so and looks once a minute",
        )
        .told_to_all(),
        Some(limit) if limit < need => Finding::problem(
            CHECK,
            format!("{need} needed, but all your programs together may have only {limit}"),
            format!(
                "raise the limit: `sudo sysctl fs.inotify.max_user_watches={}`; the sessions beyond it are looked at once a minute",
                (need * 2).next_power_of_two()
            ),
        )
        .told_to_all(),
        Some(limit) if limit / 2 < need => Finding::warning(
            CHECK,
            format!("{need} needed, of {limit} for all your programs together"),
            format!("raise the limit before it is reached: `sudo sysctl fs.inotify.max_user_watches={}`", limit * 4),
        )
        .told_to_all(),
        Some(limit) => Finding::ok(CHECK, format!("{need} needed, of {limit} allowed")).told_to_all(),
    }];
    // The only way to know whether one more may be had is to take it, and let it go.
    if let Err(error) = inotify::init(inotify::CreateFlags::CLOEXEC) {
        let most = instances.map_or(String::new(), |most| format!(" (fs.inotify.max_user_instances is {most})"));
        findings.push(
            Finding::problem(
                CHECK,
                format!("file changes cannot be watched at all{most}: {error}"),
                "sessions are looked at once a minute; end programs that watch files, or raise fs.inotify.max_user_instances",
            )
            .redacted(format!("file changes cannot be watched at all{most}")),
        );
    }
    findings
}

/// Every owner that is waited for takes a descriptor of the tray's.
#[cfg(target_os = "linux")]
pub(super) fn descriptors(ground: &Ground) -> Vec<Finding> {
    use crate::system::descriptors::{limit, reserve};
    use crate::system::runtime::{Runtime, process_in};
    use std::fs;
    const CHECK: &str = "descriptors";
    let notes = ground.runtime_folders.iter().filter_map(|folder| Some(Runtime::open(folder).ok()??.note()));
    let tray = notes.filter_map(|note| process_in(&note)).find_map(|tray| {
        let open = fs::read_dir(format!("/proc/{tray}/fd")).ok()?.count() as u64;
        let limits = fs::read_to_string(format!("/proc/{tray}/limits")).ok()?;
        let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
        Some((open, line.split_whitespace().next()?.parse::<u64>().unwrap_or(u64::MAX)))
    });
    let Some((open, limit)) = tray else {
        return vec![match limit() {
            Some(limit) if limit < 256 => Finding::warning(
                CHECK,
                format!("your programs may open no more than {limit} files each"),
                "with many sessions their owners are looked at every 2 s instead of waited for: raise the limit with `ulimit -n`",
            )
            .told_to_all(),
            _ => Finding::ok(CHECK, "enough files may be open").told_to_all(),
        }];
    };
    vec![if open + reserve(limit) >= limit {
        Finding::warning(
            CHECK,
            format!("the tray has {open} files open, of {limit} that it may have: it keeps the rest in reserve"),
            "owners beyond that are looked at every 2 s instead of waited for: raise the limit (`ulimit -n`, or LimitNOFILE= of a service) and start it again",
        )
        .told_to_all()
    } else {
        Finding::ok(CHECK, format!("the tray has {open} files open, of {limit} that it may have")).told_to_all()
    }]
}

/// Elsewhere an owner that is waited for takes none.
#[cfg(not(target_os = "linux"))]
pub(super) fn descriptors(_ground: &Ground) -> Vec<Finding> {
    Vec::new()
}

#[cfg(target_os = "linux")]
fn number(path: &std::path::Path) -> Option<usize> {
    std::fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// The system watches whole trees, and knows no such limit.
#[cfg(not(target_os = "linux"))]
pub(super) fn watches(_ground: &Ground) -> Vec<Finding> {
    match notify::recommended_watcher(|_: notify::Result<notify::Event>| ()) {
        Ok(_) => vec![Finding::ok("watches", "files can be watched").told_to_all()],
        Err(error) => vec![
            Finding::problem(
                "watches",
                format!("file changes cannot be watched: {error}"),
                "sessions are looked at once a minute",
            )
            .redacted("file changes cannot be watched"),
        ],
    }
}
