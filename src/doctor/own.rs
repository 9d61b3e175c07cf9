//! Our own parts: this program, its settings, its state, and the running tray.

use super::check::CheckContext;
use super::finding::Finding;
use super::fix::{Fix, can_comment_out};
use super::ours::Ours;
use crate::tray::notifier;
use pilotlight_core::text::counted;
use pilotlight_engine::config::OnChange;
use pilotlight_engine::control::{SocketState, socket_state};
use pilotlight_engine::last_seen;
use pilotlight_system::log;
use pilotlight_system::note::Note;
use pilotlight_system::process::is_stopped;
use pilotlight_system::runtime::{Runtime, SOCKET, is_tray_of};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

pub(super) fn version() -> Finding {
    let (arch, os) = (std::env::consts::ARCH, std::env::consts::OS);
    Finding::ok("version", format!("pilotlight {}, {arch} on {os}", env!("CARGO_PKG_VERSION"))).public()
}

/// The settings, and each problem in them.
pub(super) fn config(context: &CheckContext) -> Vec<Finding> {
    const CHECK: &str = "config";
    const REMEDY: &str = "`pilotlight config --edit` opens it, `pilotlight config --print` shows every key";
    let Some(path) = &context.config_path else {
        let text = "there is no folder for settings, so all have their defaults";
        return vec![Finding::warning(CHECK, text, "set HOME, or name a file with PILOTLIGHT_CONFIG")];
    };
    if context.problems.is_empty() {
        let state = match path.exists() {
            true => "no errors",
            false => "not there, so all settings have their defaults",
        };
        return vec![Finding::ok(CHECK, format!("{}: {state}", path.display())).redacted(state)];
    }
    let findings = context.problems.iter().map(|problem| {
        let place = problem.at.map_or("as a whole".to_owned(), |at| format!("in line {}", at.line));
        Finding::problem(CHECK, problem.to_string(), REMEDY).redacted(format!("something is wrong {place}"))
    });
    let mut findings: Vec<_> = findings.collect();
    // One offer for the whole file: each line that is fixed may uncover the next.
    if let Some(last) = findings.last_mut().filter(|_| can_comment_out(path)) {
        last.fix = Some(Fix::ConfigLines(path.clone()));
    }
    findings
}

/// Whether the program of each command of the settings is there.
pub(super) fn on_change(context: &CheckContext) -> Vec<Finding> {
    const CHECK: &str = "on-change";
    const REMEDY: &str = "install it, or name it with its whole path: at login, PATH may be shorter than in a shell";
    let commands = &context.config.on_change;
    let missing = (1..).zip(commands).filter(|(_, command)| command.program().is_none());
    let finding = |(number, command): (usize, &OnChange)| {
        let text = format!("command {number}: there is no program {}", command.run.first().map_or("", String::as_str));
        Finding::problem(CHECK, text, REMEDY).redacted(format!("command {number}: there is no such program"))
    };
    let mut findings: Vec<_> = missing.map(finding).collect();
    if findings.is_empty() && !commands.is_empty() {
        findings.push(
            Finding::ok(CHECK, format!("{}: every program was found", counted(commands.len(), "command"))).public(),
        );
    }
    findings
}

/// The state folder with its files, and the running tray.
pub(super) fn state(context: &CheckContext) -> Vec<Finding> {
    let mut findings = Vec::new();
    if let Some(folder) = &context.state_folder {
        findings.push(writable(folder));
        findings.extend(remembered(&folder.join(last_seen::FILE), "which sessions you have seen", Ours::Seen));
        findings.extend(remembered(&folder.join(notifier::FILE), "what is muted or paused", Ours::Quiet));
        findings.push(own_log(&folder.join(log::FILE)));
    } else {
        let text = "there is no folder for state, so nothing is remembered";
        findings.push(Finding::warning("state", text, "set HOME, or XDG_STATE_HOME"));
    }
    findings.extend(running_tray(&context.runtime_folders));
    findings
}

fn writable(folder: &Path) -> Finding {
    const CHECK: &str = "state";
    let shown = folder.display();
    match fs::metadata(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            Finding::ok(CHECK, format!("{shown} is created when needed")).redacted("not created yet")
        }
        Ok(meta) if meta.is_dir() && may_write(folder) => {
            Finding::ok(CHECK, format!("{shown} can be written")).redacted("can be written")
        }
        _ => {
            let remedy =
                "Pilotlight forgets what you have seen and muted, and keeps no log. Make it a folder that you own";
            Finding::problem(CHECK, format!("{shown} cannot be written"), remedy).redacted("cannot be written")
        }
    }
}

pub(super) fn may_write(folder: &Path) -> bool {
    #[cfg(unix)]
    return rustix::fs::access(folder, rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK).is_ok();
    #[cfg(not(unix))]
    fs::metadata(folder).is_ok_and(|meta| !meta.permissions().readonly())
}

/// A small file of ours, if it is broken.
fn remembered(path: &Path, what: &str, ours: Ours) -> Option<Finding> {
    ours.is_broken(path).then(|| {
        let text = format!("{} is broken: {what} is forgotten", path.display());
        Finding::problem("state", text, "`pilotlight doctor --fix` moves it aside; the next start creates a new one")
            .redacted(format!("broken: {what}"))
            .fixed_by(Fix::Aside(path.to_owned(), ours))
    })
}

fn own_log(path: &Path) -> Finding {
    const CHECK: &str = "own log";
    let shown = path.display();
    if Ours::Log.is_broken(path) {
        let text = format!("{shown} is not a plain file, so no log is kept");
        let remedy = "`pilotlight doctor --fix` moves it aside; the next start of the tray creates a new one";
        return Finding::problem(CHECK, text, remedy)
            .redacted("not a plain file")
            .fixed_by(Fix::Aside(path.to_owned(), Ours::Log));
    }
    let Ok(meta) = fs::metadata(path) else { return Finding::ok(CHECK, "none yet: the tray writes it") };
    let length = format!("{} KiB", meta.len() >> 10);
    Finding::ok(CHECK, format!("{shown}, {length}")).redacted(length)
}

/// Whether a tray runs and takes orders, and what a dead one left behind. The first usable runtime folder counts.
fn running_tray(folders: &[PathBuf]) -> Vec<Finding> {
    const CHECK: &str = "tray";
    let mut findings = Vec::new();
    for folder in folders {
        let runtime = match Runtime::open(folder) {
            Ok(Some(runtime)) => runtime,
            Ok(None) => continue,
            Err(error) => {
                let remedy = "until that is corrected, Pilotlight does not use this folder";
                let finding = Finding::warning(CHECK, error.to_string(), remedy);
                findings.push(finding.redacted("a runtime folder is not the user's alone"));
                continue;
            }
        };
        findings.push(match socket_state(folder) {
            Ok(SocketState::Absent) => match runtime.note().filter(|note| is_tray_of(folder, note.process)) {
                Some(note) => {
                    let text = format!(
                        "runs, but commands cannot reach it: {} is gone ({note})",
                        folder.join(SOCKET).display()
                    );
                    Finding::problem(CHECK, text, "quit the tray from its menu, and start it again")
                        .redacted("runs, but its control socket is gone")
                }
                None => continue,
            },
            Ok(SocketState::Served) => served(runtime.note()),
            Ok(SocketState::Stale) => {
                let socket = folder.join(SOCKET);
                let text = format!("not running; an earlier one left {} behind", socket.display());
                let remedy = "the next start replaces it; `pilotlight doctor --fix` removes it";
                Finding::warning(CHECK, text, remedy)
                    .redacted("not running; a control socket was left behind")
                    .fixed_by(Fix::Socket(socket))
            }
            Err(error) => {
                let text = format!("its control socket in {} cannot be reached: {error}", folder.display());
                Finding::problem(CHECK, text, "commands act without the tray. Check who owns that file")
                    .redacted("its control socket cannot be reached")
            }
        });
        return findings;
    }
    findings.push(Finding::ok(CHECK, "not running: `pilotlight` starts it"));
    findings
}

/// A tray that runs, or that a signal stopped.
fn served(note: Option<Note>) -> Finding {
    const CHECK: &str = "tray";
    match note {
        Some(Note { process, .. }) if is_stopped(process) => {
            let remedy = format!("`kill -CONT {process}` continues it");
            Finding::problem(CHECK, format!("does not answer: process {process} is stopped"), remedy)
                .redacted("is stopped")
        }
        Some(note) => Finding::ok(CHECK, format!("runs: {note}")).redacted("runs"),
        None => Finding::ok(CHECK, "runs"),
    }
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::super::finding::Level;
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_link_is_judged_by_its_target() {
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
