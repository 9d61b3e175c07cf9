//! A FUSE file system over folders, for one program only: in its mount namespace each folder is shown through `bindfs`,
//! while the test writes beneath it. So the program sees every change, and no file event of any, as on a folder that is
//! shared with another machine.

use super::freeze::freeze;
use super::synthetic::{User, Watch};
use rustix::process::{Pid, Signal, kill_process};
use std::path::Path;
use std::process::{Command, Output};

/// Mounts a folder over itself. The file system ends with the program that the shell becomes.
const MOUNT: &str = r#"setpriv --pdeathsig KILL bindfs -f -o nonempty "$0" "$0" &
while ! mountpoint -q "$0"; do kill -0 $! || exit; done; "#;
/// The program.
const RUN: &str = r#"exec "$@""#;
/// The same, after the file system has stopped answering.
const RUN_FROZEN: &str = r#"kill -STOP $!; exec "$@""#;

/// Whether a FUSE file system can be mounted here: by root, with `bindfs`.
pub(crate) fn is_possible() -> bool {
    let runs = |command: &str, arguments: &[&str]| {
        Command::new(command).args(arguments).output().is_ok_and(|output| output.status.success())
    };
    let is_possible = rustix::process::geteuid().is_root()
        && Path::new("/dev/fuse").exists()
        && runs("unshare", &["-m", "true"])
        && runs("bindfs", &["--version"]);
    assert!(is_possible || std::env::var_os("PILOTLIGHT_TEST_FUSE").is_none(), "no FUSE file system can be mounted");
    is_possible
}

/// Runs `watch --json`, for which this folder is on FUSE.
pub(crate) fn watch(user: &User, folder: &Path) -> Watch {
    start(user, folder, &[], RUN)
}

/// The same for these homes.
pub(crate) fn watch_homes(user: &User, folder: &Path, homes: &[&Path]) -> Watch {
    start(user, folder, homes, RUN)
}

/// The same, with a file system that has stopped answering before the program starts.
pub(crate) fn watch_frozen(user: &User, folder: &Path, homes: &[&Path]) -> (Watch, Frozen) {
    let watch = start(user, folder, homes, RUN_FROZEN);
    let frozen = Frozen(server(&watch));
    (watch, frozen)
}

fn start(user: &User, folder: &Path, homes: &[&Path], run: &str) -> Watch {
    let mut plain = user.pilotlight(&["watch", "--json"]);
    for home in homes {
        plain.arg("--home").arg(home);
    }
    let mut inside = Command::new("unshare");
    inside.args(["-m", "sh", "-c", &[MOUNT, run].concat()]).arg(folder).arg(plain.get_program()).args(plain.get_args());
    inside.env_clear().envs(plain.get_envs().filter_map(|(key, value)| Some((key, value?))));
    Watch::start(inside)
}

/// Runs a command where a program sees its mounts. Returns what it prints.
pub(crate) fn beside(watch: &Watch, command: &Command) -> String {
    let mut inside = Command::new("nsenter");
    inside.args([&*format!("--target={}", watch.pid()), "--mount"]).arg(command.get_program()).args(command.get_args());
    inside.envs(command.get_envs().filter_map(|(key, value)| Some((key, value?))));
    String::from_utf8(inside.output().unwrap().stdout).unwrap()
}

/// Runs Pilotlight where a program sees its mounts. It must end within a minute.
pub(crate) fn pilotlight_beside(watch: &Watch, user: &User, args: &[&str]) -> Output {
    let plain = user.pilotlight(args);
    let mut inside = Command::new("nsenter");
    inside.args([&*format!("--target={}", watch.pid()), "--mount", "timeout", "--kill-after=1", "60"]);
    inside.arg(plain.get_program()).args(plain.get_args()).env_clear();
    let output = inside.envs(plain.get_envs().filter_map(|(key, value)| Some((key, value?)))).output().unwrap();
    assert!(!matches!(output.status.code(), Some(124 | 137) | None), "{args:?} did not end: {output:?}");
    output
}

/// A file system that does not answer until this is dropped.
pub(crate) struct Frozen(u32);

impl Frozen {
    /// Stops the file system of a program.
    pub(crate) fn of(watch: &Watch) -> Self {
        let frozen = Self(server(watch));
        freeze(frozen.0);
        frozen
    }
}

impl Drop for Frozen {
    fn drop(&mut self) {
        // Fails if it has ended with the program.
        let _ = kill_process(Pid::from_raw(self.0.cast_signed()).unwrap(), Signal::CONT);
    }
}

/// The process that serves the file system of a program: the only child that the shell had.
fn server(watch: &Watch) -> u32 {
    let is_server = |pid: &u32| std::fs::read(format!("/proc/{pid}/comm")).is_ok_and(|name| name == b"bindfs\n");
    super::wait_until(super::SOON, "the file system is served", String::new, || {
        let pid = watch.pid();
        let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).ok()?;
        children.split_whitespace().filter_map(|child| child.parse().ok()).find(is_server)
    })
}
