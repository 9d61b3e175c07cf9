//! The program in namespaces of its own, where limits and file systems are the test's.

use std::process::Command;

/// Whether a program can be given a user namespace, in which the limits of inotify can be set for it.
pub(super) fn limits_can_be_set() -> bool {
    works(&["-U", "-r"])
}

/// Whether a program can be given mounts of its own, without another user's eyes: the session bus asks who it is.
pub(super) fn mounts_can_be_made() -> bool {
    rustix::process::geteuid().is_root() && works(&["-m"])
}

fn works(arguments: &[&str]) -> bool {
    Command::new("unshare").args(arguments).arg("true").status().is_ok_and(|status| status.success())
}

/// The same command, run after `script` in namespaces of its own. Its process is the one that is started.
pub(super) fn after(script: &str, namespaces: &[&str], command: &Command) -> Command {
    let mut inside = Command::new("unshare");
    inside.args(namespaces).args(["sh", "-c", &format!("{script}; exec \"$@\""), "sh"]);
    inside.arg(command.get_program()).args(command.get_args());
    inside.env_clear();
    inside.envs(command.get_envs().filter_map(|(key, value)| Some((key, value?))));
    if let Some(folder) = command.get_current_dir() {
        inside.current_dir(folder);
    }
    inside
}
