//! Runs the program in private namespaces, with limits and mounts of the test's choice.

use std::process::Command;

/// Whether user namespaces are available, in which the inotify limits of one program can be set.
pub(super) fn limits_can_be_set() -> bool {
    works(&["-U", "-r"])
}

/// Whether mount namespaces are available without a user namespace: the session bus checks the user's id.
pub(super) fn mounts_can_be_made() -> bool {
    rustix::process::geteuid().is_root() && works(&["-m"])
}

fn works(arguments: &[&str]) -> bool {
    Command::new("unshare").args(arguments).arg("true").status().is_ok_and(|status| status.success())
}

/// Runs this command after `script` in private namespaces, under the pid of the started process.
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
