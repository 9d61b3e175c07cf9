//! Opens folders and logs in the desktop's programs.
//!
//! Each is opened on its own thread, so that a slow file manager does not block the menu. No shell is involved, and the
//! path is checked first.

use pilotlight_system::paths::is_local_folder;
#[cfg(target_os = "linux")]
use pilotlight_system::{deadline::run_within, descriptors};
use std::path::{Path, PathBuf};

/// Opens a folder in the file manager.
///
/// # Errors
/// Where it is not a local folder, or no program opens folders.
pub(crate) fn folder(path: &Path) -> anyhow::Result<()> {
    let shown = path.display();
    anyhow::ensure!(is_local_folder(path), "there is no folder {shown} here");
    // On macOS a folder may be an application bundle, which would be started: Finder only shows it.
    #[cfg(target_os = "macos")]
    let opened = open::with_detached(path, "Finder");
    #[cfg(not(target_os = "macos"))]
    let opened = open_with_default(path);
    opened.map_err(|error| open_error("the folder", path, &error))
}

/// Opens a text file of ours in the default program.
///
/// # Errors
/// Where it is not a file, or no program opens it.
pub(crate) fn text(path: &Path) -> anyhow::Result<()> {
    anyhow::ensure!(path.is_file(), "there is no file {}", path.display());
    open_with_default(path).map_err(|error| open_error("the file", path, &error))
}

/// Opens a log in the default program.
///
/// # Errors
/// Where it is not a regular file (a symlink is refused), or no program opens it.
pub(crate) fn log(path: &Path) -> anyhow::Result<()> {
    let is_regular = std::fs::symlink_metadata(path).is_ok_and(|meta| meta.is_file());
    anyhow::ensure!(is_regular, "there is no log {}", path.display());
    open_with_default(path).map_err(|error| open_error("the log", path, &error))
}

/// The error if no program opens it, with what to install.
fn open_error(what: &str, path: &Path, error: &std::io::Error) -> anyhow::Error {
    let help = if cfg!(target_os = "linux") { "; install the package xdg-utils for that" } else { "" };
    anyhow::anyhow!("nothing here can open {what} {} ({error}){help}", path.display())
}

#[cfg(target_os = "linux")]
fn open_with_default(path: &Path) -> std::io::Result<()> {
    run_first(open::commands(path), FAILS_WITHIN)
}

#[cfg(not(target_os = "linux"))]
fn open_with_default(path: &Path) -> std::io::Result<()> {
    open::that_detached(path)
}

/// An opener that finds no program fails within this time; one that runs for longer has opened the path.
#[cfg(target_os = "linux")]
const FAILS_WITHIN: std::time::Duration = std::time::Duration::from_secs(2);

/// Runs one opener after another until one does not fail. That one is left running, in its own process group, so that a
/// Ctrl-C for us does not end it.
#[cfg(target_os = "linux")]
fn run_first(openers: Vec<std::process::Command>, fails_within: std::time::Duration) -> std::io::Result<()> {
    use std::os::unix::process::CommandExt;
    use std::process::Stdio;
    let mut failed = std::io::Error::from(std::io::ErrorKind::NotFound);
    for mut opener in openers {
        opener.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
        descriptors::restore(&mut opener);
        let mut running = match opener.spawn() {
            Ok(running) => running,
            Err(error) => {
                failed = error;
                continue;
            }
        };
        match run_within("opener", fails_within, move || running.wait())? {
            Some(Ok(status)) if !status.success() => {
                failed = std::io::Error::other(format!("{} failed with {status}", opener.get_program().display()));
            }
            _ => return Ok(()),
        }
    }
    Err(failed)
}

/// Opens a path on its own thread. If that fails, `failed` is called there with the reason.
pub(crate) fn spawn(
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
    fn an_opener_that_fails_is_followed_by_the_next() {
        use std::process::Command;
        let shell = |script: &str| {
            let mut command = Command::new("sh");
            command.args(["-c", script]);
            command
        };
        let soon = std::time::Duration::from_millis(500);
        let missing = || Command::new("/nonexistent/opener");
        assert!(run_first(Vec::new(), soon).is_err());
        assert!(run_first(vec![missing()], soon).is_err());
        let failed = run_first(vec![missing(), shell("exit 3")], FAILS_WITHIN).unwrap_err();
        assert!(failed.to_string().contains("exit status: 3"), "{failed}");
        assert!(run_first(vec![shell("exit 3"), shell("exit 0")], FAILS_WITHIN).is_ok());
        assert!(run_first(vec![shell("sleep 3")], soon).is_ok(), "it keeps running");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn case_153_the_error_without_an_opener_names_the_path_and_the_package() {
        let failed = run_first(Vec::new(), FAILS_WITHIN).unwrap_err();
        let message = open_error("the folder", Path::new("/code/billing-api"), &failed).to_string();
        assert!(
            message.contains("/code/billing-api") && message.ends_with("install the package xdg-utils for that"),
            "{message}"
        );
    }

    #[test]
    fn only_existing_local_folders_and_logs_are_opened() {
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
