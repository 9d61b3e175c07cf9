//! Ours: this program, its settings, what it remembers, and the tray that runs.

use super::{Finding, Fix, Ground};
use crate::core::alert::Quiet;
use crate::desktop::herald;
use crate::{log, seen};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::path::Path;

/// Files in the state folder are small; a larger one is not ours. In bytes.
const LENGTH_MAX: u64 = 1 << 20;

pub(super) fn version() -> Finding {
    let said =
        format!("pilotlight {}, {} on {}", env!("CARGO_PKG_VERSION"), std::env::consts::ARCH, std::env::consts::OS);
    Finding::ok("version", said).told_to_all()
}

/// The settings, and each thing that is wrong with them.
pub(super) fn config(ground: &Ground) -> Vec<Finding> {
    const CHECK: &str = "config";
    let Some(path) = &ground.config_path else {
        return vec![
            Finding::warning(
                CHECK,
                "no folder for settings is known: all have their defaults",
                "set HOME, or name a file with PILOTLIGHT_CONFIG",
            )
            .told_to_all(),
        ];
    };
    if ground.problems.is_empty() {
        let there = path.exists();
        let state = if there { "nothing is wrong with it" } else { "not there; all settings have their defaults" };
        return vec![Finding::ok(CHECK, format!("{}: {state}", path.display())).discreet(state)];
    }
    let lines: Vec<usize> = ground.problems.iter().filter_map(|problem| Some(problem.at?.line)).collect();
    let mut findings: Vec<_> = ground
        .problems
        .iter()
        .map(|problem| {
            let line = problem.at.map_or("as a whole".to_owned(), |at| format!("in line {}", at.line));
            Finding::problem(CHECK, problem.to_string(), "`pilotlight config --edit` opens it; --print shows every key")
                .discreet(format!("something is wrong {line}"))
        })
        .collect();
    // One offer for the whole file: each line that is put right may uncover the next.
    if let Some(last) = findings.last_mut().filter(|_| !lines.is_empty()) {
        last.fix = Some(Fix::ConfigLines(path.clone()));
    }
    findings
}

/// What is remembered, and the tray that runs.
pub(super) fn state(ground: &Ground) -> Vec<Finding> {
    let mut findings = Vec::new();
    match &ground.state_folder {
        None => findings.push(
            Finding::warning("state", "no folder to remember things in is known", "set HOME, or XDG_STATE_HOME")
                .told_to_all(),
        ),
        Some(folder) => {
            findings.push(writable(folder));
            findings.extend(remembered(&folder.join(seen::FILE), "what was looked at", |text| {
                serde_json::from_str::<BTreeMap<String, String>>(text).is_ok()
            }));
            findings.extend(remembered(&folder.join(herald::FILE), "what is muted or paused", |text| {
                serde_json::from_str::<Quiet>(text).is_ok()
            }));
            findings.push(own_log(&folder.join(log::FILE)));
        }
    }
    findings.extend(ground.runtime_folder.as_deref().map(tray_that_runs));
    findings
}

fn writable(folder: &Path) -> Finding {
    const CHECK: &str = "state";
    let shown = folder.display();
    match fs::metadata(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            Finding::ok(CHECK, format!("{shown} is made when there is something to remember")).discreet("not made yet")
        }
        Ok(meta) if meta.is_dir() && may_write(folder) => {
            Finding::ok(CHECK, format!("{shown} can be written")).discreet("can be written")
        }
        _ => Finding::problem(
            CHECK,
            format!("{shown} cannot be written"),
            "what you looked at and muted is forgotten, and no log is kept: make it a folder of yours",
        )
        .discreet("cannot be written"),
    }
}

fn may_write(folder: &Path) -> bool {
    #[cfg(unix)]
    return rustix::fs::access(folder, rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK).is_ok();
    #[cfg(not(unix))]
    fs::metadata(folder).is_ok_and(|meta| !meta.permissions().readonly())
}

/// A small file of ours, if there is anything wrong with it.
fn remembered(path: &Path, what: &str, is_sound: impl Fn(&str) -> bool) -> Option<Finding> {
    let meta = fs::symlink_metadata(path).ok()?;
    // What is no plain file is not opened: that may wait for somebody.
    let text = meta.is_file().then(|| {
        let mut text = String::new();
        let read = File::open(path).and_then(|file| file.take(LENGTH_MAX).read_to_string(&mut text));
        read.ok().map(|_| text)
    });
    if text.flatten().is_some_and(|text| is_sound(&text)) {
        return None;
    }
    Some(
        Finding::problem(
            "state",
            format!("{} is broken: {what} is forgotten", path.display()),
            "`pilotlight doctor --fix` moves it aside; the next run begins a new one",
        )
        .discreet(format!("broken: {what}"))
        .fixed_by(Fix::Aside(path.to_owned())),
    )
}

fn own_log(path: &Path) -> Finding {
    const CHECK: &str = "own log";
    match fs::symlink_metadata(path) {
        Ok(meta) if meta.is_file() => {
            let length = meta.len() >> 10;
            Finding::ok(CHECK, format!("{}, {length} KiB", path.display())).discreet(format!("{length} KiB"))
        }
        Ok(_) => Finding::problem(
            CHECK,
            format!("{} is not a plain file, so no log is kept", path.display()),
            "`pilotlight doctor --fix` moves it aside; the next start of the tray begins a new one",
        )
        .discreet("not a plain file")
        .fixed_by(Fix::Aside(path.to_owned())),
        Err(_) => Finding::ok(CHECK, "none yet: the tray keeps one").told_to_all(),
    }
}

/// Whether a tray runs and takes orders, and what a dead one left behind.
#[cfg(unix)]
fn tray_that_runs(folder: &Path) -> Finding {
    use crate::desktop::instance::NOTE;
    const CHECK: &str = "tray";
    let socket = folder.join(crate::control::SOCKET);
    match std::os::unix::net::UnixStream::connect(&socket) {
        Ok(_) => {
            let note = crate::kept::read(&folder.join(NOTE));
            let note = crate::core::text::plain(&note, 200);
            Finding::ok(CHECK, format!("runs: {note}")).discreet("runs")
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {
            Finding::ok(CHECK, "does not run: `pilotlight` starts it").told_to_all()
        }
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => Finding::warning(
            CHECK,
            format!("does not run, and {} was left behind by one that did", socket.display()),
            "the next start replaces it; `pilotlight doctor --fix` removes it",
        )
        .discreet("does not run, and a control socket was left behind")
        .fixed_by(Fix::Socket(socket)),
        Err(error) => Finding::problem(
            CHECK,
            format!("its control socket {} cannot be reached: {error}", socket.display()),
            "commands carry out what they are asked by themselves; look who owns that file",
        )
        .discreet("its control socket cannot be reached"),
    }
}

#[cfg(not(unix))]
fn tray_that_runs(folder: &Path) -> Finding {
    const CHECK: &str = "tray";
    match crate::kept::read(&folder.join(crate::desktop::instance::NOTE)) {
        note if note.is_empty() => Finding::ok(CHECK, "does not run: `pilotlight` starts it").told_to_all(),
        note => Finding::ok(CHECK, format!("runs, by its note: {}", crate::core::text::plain(&note, 200)))
            .discreet("runs, by its note"),
    }
}
