//! What leaves the program on a click: a folder or a log is opened.
//!
//! Each runs on a thread of its own, for as long as it takes: a slow file manager may not hold the menu. No shell is in
//! between, and what is opened is looked at first.

#[cfg(target_os = "linux")]
use crate::system::descriptors;
use crate::system::paths::is_local_folder;
use std::path::{Path, PathBuf};

/// Opens a folder in the file manager.
///
/// # Errors
/// Where it is no folder of this machine, or nothing opens folders.
pub(crate) fn folder(path: &Path) -> anyhow::Result<()> {
    let shown = path.display();
    anyhow::ensure!(is_local_folder(path), "there is no folder {shown} here");
    // On macOS a folder can be a program, which opening would start.
    #[cfg(target_os = "macos")]
    let opened = open::with_detached(path, "Finder");
    #[cfg(not(target_os = "macos"))]
    let opened = that(path);
    opened.map_err(|error| unopened("the folder", path, &error))
}

/// Opens a text of ours in whatever shows text.
///
/// # Errors
/// Where it is no plain file, or nothing opens it.
pub(crate) fn text(path: &Path) -> anyhow::Result<()> {
    anyhow::ensure!(path.is_file(), "there is no file {}", path.display());
    that(path).map_err(|error| unopened("the file", path, &error))
}

/// Opens a log in whatever shows text.
///
/// # Errors
/// Where it is no plain file, or nothing opens it.
pub(crate) fn log(path: &Path) -> anyhow::Result<()> {
    let plain = std::fs::symlink_metadata(path).is_ok_and(|meta| meta.is_file());
    anyhow::ensure!(plain, "there is no log {}", path.display());
    that(path).map_err(|error| unopened("the log", path, &error))
}

/// What to do where nothing is installed that opens it.
fn unopened(what: &str, path: &Path, error: &std::io::Error) -> anyhow::Error {
    let help = if cfg!(target_os = "linux") { "; install the package xdg-utils for that" } else { "" };
    anyhow::anyhow!("nothing here can open {what} {} ({error}){help}", path.display())
}

#[cfg(target_os = "linux")]
fn that(path: &Path) -> std::io::Result<()> {
    first_of(open::commands(path), FAILS_WITHIN)
}

#[cfg(not(target_os = "linux"))]
fn that(path: &Path) -> std::io::Result<()> {
    open::that_detached(path)
}

/// An opener that finds nothing to open with says so within this; one that runs for longer shows what it was given.
#[cfg(target_os = "linux")]
const FAILS_WITHIN: std::time::Duration = std::time::Duration::from_secs(2);

/// Runs one opener after the other until one does not fail. It is left running, and is not ended by a Ctrl-C that is for us.
#[cfg(target_os = "linux")]
fn first_of(openers: Vec<std::process::Command>, fails_within: std::time::Duration) -> std::io::Result<()> {
    use std::os::unix::process::CommandExt;
    use std::process::Stdio;
    let mut failed = std::io::Error::from(std::io::ErrorKind::NotFound);
    for mut opener in openers {
        opener.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
        descriptors::give_back(&mut opener);
        let mut running = match opener.spawn() {
            Ok(running) => running,
            Err(error) => {
                failed = error;
                continue;
            }
        };
        let (tell, ended) = std::sync::mpsc::channel();
        let wait = move || {
            let _ = tell.send(running.wait()); // fails only where it ran for long
        };
        std::thread::Builder::new().name("opener".into()).spawn(wait)?;
        match ended.recv_timeout(fails_within) {
            Ok(Ok(status)) if !status.success() => {
                failed = std::io::Error::other(format!("{} failed with {status}", opener.get_program().display()));
            }
            _ => return Ok(()),
        }
    }
    Err(failed)
}

/// Opens something on a thread of its own. `failed` is called there with the reason where that cannot be done.
pub(crate) fn apart(
    path: PathBuf,
    open: fn(&Path) -> anyhow::Result<()>,
    failed: impl FnOnce(String) + Send + 'static,
) -> std::io::Result<()> {
    let work = move || {
        if let Err(error) = open(&path) {
            failed(format!("{error:#}"));
        }
    };
    std::thread::Builder::new().name("open".into()).spawn(work).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_os = "linux")]
    #[test]
    fn what_no_opener_opens_is_not_open() {
        use std::process::Command;
        let shell = |script: &str| {
            let mut command = Command::new("sh");
            command.args(["-c", script]);
            command
        };
        let soon = std::time::Duration::from_millis(500);
        let missing = || Command::new("/nonexistent/opener");
        assert!(first_of(Vec::new(), soon).is_err());
        assert!(first_of(vec![missing()], soon).is_err());
        let failed = first_of(vec![missing(), shell("exit 3")], FAILS_WITHIN).unwrap_err();
        assert!(failed.to_string().contains("exit status: 3"), "{failed}");
        assert!(first_of(vec![shell("exit 3"), shell("exit 0")], FAILS_WITHIN).is_ok());
        assert!(first_of(vec![shell("sleep 3")], soon).is_ok(), "it shows it still");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn case_153_where_nothing_opens_it_the_path_and_the_package_are_said() {
        let failed = first_of(Vec::new(), FAILS_WITHIN).unwrap_err();
        let said = unopened("the folder", Path::new("/code/billing-api"), &failed).to_string();
        assert!(
            said.contains("/code/billing-api") && said.ends_with("install the package xdg-utils for that"),
            "{said}"
        );
    }

    #[test]
    fn only_what_is_here_is_opened() {
        let scratch = tempfile::tempdir().unwrap();
        let file = scratch.path().join("a.jsonl");
        std::fs::write(&file, "").unwrap();
        for no_folder in [Path::new("relative"), Path::new(""), &file, &scratch.path().join("absent")] {
            assert!(folder(no_folder).is_err(), "{}", no_folder.display());
        }
        for no_log in [scratch.path(), &scratch.path().join("absent")] {
            assert!(log(no_log).is_err(), "{}", no_log.display());
        }
    }
}
