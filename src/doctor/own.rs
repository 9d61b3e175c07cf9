//! Ours: this program, its settings, what it remembers, and the tray that runs.

use super::fix::can_comment_out;
use super::{Finding, Fix, Ground};
use crate::control::{Probe, probe};
use crate::core::alert::Quiet;
use crate::core::text;
use crate::engine::last_seen;
use crate::system::log;
use crate::system::runtime::{self, Runtime, SOCKET, is_stopped};
#[cfg(target_os = "linux")]
use crate::tray::autostart::Login;
use crate::tray::notifier;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

/// Files in the state folder are small; a larger one is not ours. In bytes.
const LENGTH_MAX: u64 = 1 << 20;

/// A file of ours, by what it holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ours {
    /// What was looked at.
    Seen,
    /// What is muted or paused.
    Quiet,
    /// Our own log.
    Log,
    /// What starts us at login.
    #[cfg(target_os = "linux")]
    Entry,
}

impl Ours {
    /// Whether the file there is of no use. A link is as good as what it leads to, and one that is not there is not broken.
    pub(super) fn is_broken(self, path: &Path) -> bool {
        match self {
            Self::Seen => is_unreadable::<BTreeMap<String, String>>(path),
            Self::Quiet => is_unreadable::<Quiet>(path),
            Self::Log => takes_no_log(path),
            #[cfg(target_os = "linux")]
            Self::Entry => Login::find(&[]).astray().iter().any(|(entry, _)| entry == path),
        }
    }
}

fn is_unreadable<T: DeserializeOwned>(path: &Path) -> bool {
    let Ok(meta) = fs::metadata(path) else { return false };
    let mut text = String::new();
    // What is no plain file is not opened: that may wait for somebody.
    let read =
        meta.is_file() && File::open(path).and_then(|file| file.take(LENGTH_MAX).read_to_string(&mut text)).is_ok();
    !read || serde_json::from_str::<T>(&text).is_err()
}

/// What is no plain file takes none, nor does a link where no file can be made.
fn takes_no_log(path: &Path) -> bool {
    let leads_nowhere = |error: &ErrorKind| {
        let to = fs::read_link(path).ok().zip(path.parent()).map(|(to, folder)| folder.join(to));
        to.is_some_and(|to| *error != ErrorKind::NotFound || !to.parent().is_some_and(Path::is_dir))
    };
    match fs::metadata(path) {
        Ok(meta) => !meta.is_file(),
        Err(error) => leads_nowhere(&error.kind()),
    }
}

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
        return vec![Finding::ok(CHECK, format!("{}: {state}", path.display())).redacted(state)];
    }
    let lines: Vec<usize> = ground.problems.iter().filter_map(|problem| Some(problem.at?.line)).collect();
    let mut findings: Vec<_> = ground
        .problems
        .iter()
        .map(|problem| {
            let line = problem.at.map_or("as a whole".to_owned(), |at| format!("in line {}", at.line));
            Finding::problem(CHECK, problem.to_string(), "`pilotlight config --edit` opens it; --print shows every key")
                .redacted(format!("something is wrong {line}"))
        })
        .collect();
    // One offer for the whole file: each line that is put right may uncover the next.
    if let Some(last) = findings.last_mut().filter(|_| !lines.is_empty() && can_comment_out(path)) {
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
            findings.extend(remembered(&folder.join(last_seen::FILE), "what was looked at", Ours::Seen));
            findings.extend(remembered(&folder.join(notifier::FILE), "what is muted or paused", Ours::Quiet));
            findings.push(own_log(&folder.join(log::FILE)));
        }
    }
    findings.extend(tray_that_runs(&ground.runtime_folders));
    findings
}

fn writable(folder: &Path) -> Finding {
    const CHECK: &str = "state";
    let shown = folder.display();
    match fs::metadata(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            Finding::ok(CHECK, format!("{shown} is created when needed")).redacted("not made yet")
        }
        Ok(meta) if meta.is_dir() && may_write(folder) => {
            Finding::ok(CHECK, format!("{shown} can be written")).redacted("can be written")
        }
        _ => Finding::problem(
            CHECK,
            format!("{shown} cannot be written"),
            "what you looked at and muted is forgotten, and no log is kept: make it a folder that you own",
        )
        .redacted("cannot be written"),
    }
}

fn may_write(folder: &Path) -> bool {
    #[cfg(unix)]
    return rustix::fs::access(folder, rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK).is_ok();
    #[cfg(not(unix))]
    fs::metadata(folder).is_ok_and(|meta| !meta.permissions().readonly())
}

/// A small file of ours, if there is anything wrong with it.
fn remembered(path: &Path, what: &str, ours: Ours) -> Option<Finding> {
    ours.is_broken(path).then(|| {
        Finding::problem(
            "state",
            format!("{} is broken: {what} is forgotten", path.display()),
            "`pilotlight doctor --fix` moves it aside; the next run begins a new one",
        )
        .redacted(format!("broken: {what}"))
        .fixed_by(Fix::Aside(path.to_owned(), ours))
    })
}

fn own_log(path: &Path) -> Finding {
    const CHECK: &str = "own log";
    if Ours::Log.is_broken(path) {
        return Finding::problem(
            CHECK,
            format!("{} is not a plain file, so no log is kept", path.display()),
            "`pilotlight doctor --fix` moves it aside; the next start of the tray begins a new one",
        )
        .redacted("not a plain file")
        .fixed_by(Fix::Aside(path.to_owned(), Ours::Log));
    }
    match fs::metadata(path) {
        Ok(meta) => {
            let length = meta.len() >> 10;
            Finding::ok(CHECK, format!("{}, {length} KiB", path.display())).redacted(format!("{length} KiB"))
        }
        Err(_) => Finding::ok(CHECK, "none yet: the tray keeps one").told_to_all(),
    }
}

/// Whether a tray runs and takes orders, and what a dead one left behind. Of its folders the first one counts that is ours
/// alone.
fn tray_that_runs(folders: &[PathBuf]) -> Vec<Finding> {
    const CHECK: &str = "tray";
    let mut findings = Vec::new();
    for folder in folders {
        let runtime = match Runtime::open(folder) {
            Ok(runtime) => runtime,
            Err(error) => {
                findings.push(
                    Finding::warning(CHECK, error.to_string(), "until then its lock and its socket are not kept there")
                        .redacted("a runtime folder is not the user's alone"),
                );
                continue;
            }
        };
        let Some(runtime) = runtime else { continue };
        findings.push(match probe(folder) {
            Ok(Probe::Nobody) => continue,
            Ok(Probe::Served) => {
                let note = runtime.note();
                runs(&text::plain(&note, 200), runtime::process_in(&note))
            }
            Ok(Probe::LeftBehind) => {
                let socket = folder.join(SOCKET);
                Finding::warning(
                    CHECK,
                    format!("not running; {} was left behind by one that was", socket.display()),
                    "the next start replaces it; `pilotlight doctor --fix` removes it",
                )
                .redacted("not running; a control socket was left behind")
                .fixed_by(Fix::Socket(socket))
            }
            Err(error) => Finding::problem(
                CHECK,
                format!("its control socket in {} cannot be reached: {error}", folder.display()),
                "commands act by themselves; check who owns that file",
            )
            .redacted("its control socket cannot be reached"),
        });
        return findings;
    }
    findings.push(Finding::ok(CHECK, "not running: `pilotlight` starts it").told_to_all());
    findings
}

/// A tray that runs, or was stopped.
fn runs(note: &str, process: Option<u32>) -> Finding {
    const CHECK: &str = "tray";
    match process.filter(|process| is_stopped(*process)) {
        Some(process) => Finding::problem(
            CHECK,
            format!("does not answer: process {process} is stopped"),
            format!("`kill -CONT {process}` lets it go on"),
        )
        .redacted("is stopped"),
        None => Finding::ok(CHECK, format!("runs: {note}")).redacted("runs"),
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::super::Level;
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_link_is_as_good_as_what_it_leads_to() {
        let scratch = tempfile::tempdir().unwrap();
        let at = |name: &str| scratch.path().join(name);
        for (name, to) in
            [("seen.json", "seen"), ("log", "real.log"), ("new.log", "not-yet.log"), ("gone.log", "x/log")]
        {
            symlink(to, at(name)).unwrap();
        }
        fs::write(at("seen"), "{}").unwrap();
        fs::write(at("real.log"), "").unwrap();
        assert_eq!(remembered(&at("seen.json"), "", Ours::Seen), None);
        assert_eq!([at("log"), at("new.log")].map(|path| own_log(&path).level), [Level::Ok; 2]);
        assert_eq!(own_log(&at("gone.log")).level, Level::Problem);
        fs::write(at("seen"), "{").unwrap();
        assert!(remembered(&at("seen.json"), "", Ours::Seen).is_some());
    }
}
