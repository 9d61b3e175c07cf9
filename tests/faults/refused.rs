//! Refused resources: threads, memory and output. A line and the exit code report it, and nothing panics.

use crate::support::synthetic::User;
use crate::support::{SOON, wait_until};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// The commands without side effects.
const COMMANDS: [&[&str]; 12] = [
    &["--help"],
    &["--version"],
    &["help", "status"],
    &["status"],
    &["status", "--json"],
    &["status", "--format", "waybar"],
    &["explain", "00000001"],
    &["doctor"],
    &["doctor", "--json"],
    &["diagnostics"],
    &["config", "--print"],
    &["replay", "LOG"],
];

/// These arguments, with the path of the session's log for `LOG`.
fn arguments(user: &User, args: &[&str]) -> Vec<String> {
    let log = user.session(1).log().display().to_string();
    args.iter().map(|arg| if *arg == "LOG" { log.clone() } else { (*arg).to_owned() }).collect()
}

#[test]
fn case_145_output_that_cannot_be_written_is_reported() {
    let user = User::new();
    let session = user.session(1);
    let _owner = session.owner(&user);
    session.prompt();
    let further: [&[&str]; 3] = [&["replay", "--json", "LOG"], &["watch", "--json"], &["watch", "--format", "tmux"]];
    for args in COMMANDS.iter().chain(&further) {
        let full = fs::File::options().write(true).open("/dev/full").unwrap();
        let args = arguments(&user, args);
        let args: Vec<_> = args.iter().map(String::as_str).collect();
        let output = user.pilotlight(&args).stdout(full).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{args:?}: {stderr}");
        assert!(stderr.lines().any(|line| line.contains("No space left on device")), "{args:?}: {stderr}");
        // A closed pipe is no error, or exit code 1.
        let mut command = user.pilotlight(&args);
        command.stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        drop(child.stdout.take());
        let status = child.wait().unwrap();
        assert!(matches!(status.code(), Some(0 | 1)), "{args:?}: {status}");
    }
}

/// The account of another user without other processes.
pub(super) struct Account {
    pub(super) user: User,
    program: PathBuf,
}

/// The account's user and group id.
const NUMBER: u32 = 61_042;

/// The commands that run until they are ended.
const LONG_RUNNING: [&str; 4] = ["watch", "live", "tray", "demo"];

/// Whether this process catches SIGTERM, which is signal 15.
fn catches_term(pid: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    caught.and_then(|caught| u64::from_str_radix(caught.trim(), 16).ok()).is_some_and(|caught| caught >> 14 & 1 == 1)
}

impl Account {
    /// `None` if the test may not become another user.
    pub(super) fn new() -> Option<Self> {
        if !rustix::process::geteuid().is_root() {
            return None;
        }
        let user = User::new();
        let program = user.scratch.path().join("pilotlight");
        fs::copy(env!("CARGO_BIN_EXE_pilotlight"), &program).unwrap();
        let session = user.session(1);
        session.prompt();
        session.append(session.line(Duration::ZERO, "session.shutdown", "{}"));
        let owner = format!("{NUMBER}:{NUMBER}");
        assert!(Command::new("chown").args(["-R", &owner]).arg(user.scratch.path()).status().unwrap().success());
        Some(Self { user, program })
    }

    /// A command that becomes this user, then execs the program in its next arguments.
    fn setpriv(&self) -> Command {
        let given = self.user.pilotlight(&[]);
        let mut command = Command::new("setpriv");
        command.env_clear().envs(given.get_envs().filter_map(|(key, value)| Some((key, value?))));
        command.args([format!("--reuid={NUMBER}"), format!("--regid={NUMBER}"), "--clear-groups".into()]);
        command
    }

    /// Makes the system refuse further threads to this process of the user.
    pub(super) fn forbid_threads(&self, pid: u32) {
        let done = self.setpriv().args(["prlimit", "--nproc=1", &format!("--pid={pid}")]).status().unwrap();
        assert!(done.success());
    }

    /// Pilotlight as this user runs it.
    pub(super) fn command(&self, args: &[&str]) -> Command {
        let mut command = self.setpriv();
        command.arg(&self.program).args(args);
        command
    }

    /// Runs Pilotlight with an option of `prlimit`. A long-running command is sent SIGTERM after five seconds, once it
    /// catches it.
    fn run(&self, limit: &str, args: &[&str]) -> (ExitStatus, String, String) {
        let at = |name: &str| self.user.scratch.path().join(name);
        let to = |name: &str| fs::File::create(at(name)).unwrap();
        let mut command = self.setpriv();
        command.args(["prlimit", limit]).arg(&self.program).args(args);
        let mut child = command.stdin(Stdio::null()).stdout(to("out")).stderr(to("err")).spawn().unwrap();
        let start = Instant::now();
        let is_long = LONG_RUNNING.iter().any(|name| args.contains(name));
        let time = if is_long { Duration::from_secs(5) } else { SOON };
        let exited = crate::support::wait(time, || child.try_wait().unwrap());
        let status = exited.unwrap_or_else(|| {
            let mut is_ready = || child.try_wait().unwrap().is_some() || catches_term(child.id());
            wait_until(SOON, "it catches SIGTERM", || format!("{args:?}"), || is_ready().then_some(()));
            kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
            wait_until(SOON, "it exits", || format!("{args:?} {:?}", start.elapsed()), || child.try_wait().unwrap())
        });
        let read = |name| String::from_utf8_lossy(&fs::read(at(name)).unwrap()).into_owned();
        (status, read("out"), read("err"))
    }

    /// Asserts that every run with one of these limits succeeds or reports an error. Returns how many succeeded.
    fn run_limited(&self, limits: &[String], args: &[&str]) -> usize {
        let mut succeeded = 0;
        for limit in limits {
            let (status, out, err) = self.run(limit, args);
            let what = format!("{limit}, {args:?}: {status}\n{out}\n{err}");
            // If glibc has no memory for a starting thread, it prints an error and aborts the program.
            let by_libc = err.contains("Fatal glibc error") && err.contains("out of memory");
            assert!(!err.contains("panicked") && (status.signal().is_none() || by_libc), "{what}");
            match status.code() {
                Some(0) => succeeded += 1,
                // `doctor` prints its findings to stdout.
                _ => assert!(!err.trim().is_empty() || args[0] == "doctor", "it fails without a message: {what}"),
            }
            if status.success() && args == ["status", "--json"] {
                let rows: serde_json::Value = serde_json::from_str(&out).unwrap();
                assert_eq!(rows[0]["status"], "ended", "{what}");
            }
        }
        succeeded
    }
}

#[test]
fn case_142_without_threads_an_error_is_reported_without_a_panic() {
    let Some(account) = Account::new() else { return };
    let limits: Vec<_> = (1..=4).map(|most| format!("--nproc={most}")).collect();
    for args in COMMANDS.iter().filter(|args| !args.contains(&"LOG") && args[0] != "explain") {
        account.run_limited(&limits, args);
    }
    assert_eq!(account.run_limited(&limits, &["status", "--json"]), limits.len(), "`status` needs one thread");
    let further: [&[&str]; 5] = [&["watch", "--json"], &["live"], &["tray"], &["demo"], &["stop", "00000001"]];
    for args in further {
        account.run_limited(&limits, args);
    }
    let (status, _, err) = account.run("--nproc=1", &["watch", "--json"]);
    assert_eq!(status.code(), Some(1));
    assert_eq!(
        err.lines().filter(|line| line.starts_with("pilotlight: the system refuses a thread")).count(),
        1,
        "{err}"
    );
}

#[test]
fn case_142_without_memory_an_error_is_reported_without_a_panic() {
    let Some(account) = Account::new() else { return };
    // First find the least address space with which the program starts.
    let starts = |most: &u32| account.run(&format!("--as={}", most << 10), &["--version"]).0.success();
    let least = (1..200).map(|n| n * 4096).find(starts).expect("it runs with some memory");
    let limits: Vec<_> = (0..12).map(|n| format!("--as={}", (least + n * 1024) << 10)).collect();
    let mut refused = 0;
    for args in [&["status", "--json"][..], &["doctor"], &["watch", "--json"]] {
        refused += limits.len() - account.run_limited(&limits, args);
    }
    println!("least {least} KiB, refused {refused} of {}", limits.len() * 3);
    assert!(refused > 0, "nothing was refused");
}
