//! What the system refuses: threads, memory, and somewhere to write to. A line says so, and the exit code; nothing panics.

use crate::support::made_up::User;
use crate::support::{SOON, wait_until};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// The commands that do not act on anything.
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

/// These arguments, with the session's log in its place.
fn arguments(user: &User, args: &[&str]) -> Vec<String> {
    let log = user.session(1).log().display().to_string();
    args.iter().map(|arg| if *arg == "LOG" { log.clone() } else { (*arg).to_owned() }).collect()
}

#[test]
fn case_145_output_that_cannot_be_written_is_told() {
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
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{args:?}: {said}");
        assert!(said.lines().any(|line| line.contains("No space left on device")), "{args:?}: {said}");
        // Who reads no more has had enough.
        let mut command = user.pilotlight(&args);
        command.stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        drop(child.stdout.take());
        let status = child.wait().unwrap();
        assert!(matches!(status.code(), Some(0 | 1)), "{args:?}: {status}");
    }
}

/// Another user's account, in which nothing else runs.
pub(super) struct Account {
    pub(super) user: User,
    program: PathBuf,
}

const NUMBER: u32 = 61_042;

/// The commands that stay.
const STAYING: [&str; 4] = ["watch", "live", "tray", "demo"];

/// Whether SIGTERM, the fifteenth, would be caught by this process.
fn hears_term(pid: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    caught.and_then(|caught| u64::from_str_radix(caught.trim(), 16).ok()).is_some_and(|caught| caught >> 14 & 1 == 1)
}

impl Account {
    /// `None` without the right to become another user.
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

    /// What becomes this user, and then the program that is named next.
    fn setpriv(&self) -> Command {
        let given = self.user.pilotlight(&[]);
        let mut command = Command::new("setpriv");
        command.env_clear().envs(given.get_envs().filter_map(|(key, value)| Some((key, value?))));
        command.args([format!("--reuid={NUMBER}"), format!("--regid={NUMBER}"), "--clear-groups".into()]);
        command
    }

    /// From now on this process of the user's is refused every further thread.
    pub(super) fn allows_no_more_threads(&self, pid: u32) {
        let done = self.setpriv().args(["prlimit", "--nproc=1", &format!("--pid={pid}")]).status().unwrap();
        assert!(done.success());
    }

    /// Pilotlight as this user runs it.
    pub(super) fn command(&self, args: &[&str]) -> Command {
        let mut command = self.setpriv();
        command.arg(&self.program).args(args);
        command
    }

    /// Runs this with an option of `prlimit`. What stays until it is ended is asked to after five seconds, once it can hear that.
    fn run(&self, limit: &str, args: &[&str]) -> (ExitStatus, String, String) {
        let at = |name: &str| self.user.scratch.path().join(name);
        let to = |name: &str| fs::File::create(at(name)).unwrap();
        let mut command = self.setpriv();
        command.args(["prlimit", limit]).arg(&self.program).args(args);
        let mut child = command.stdin(Stdio::null()).stdout(to("out")).stderr(to("err")).spawn().unwrap();
        let begun = Instant::now();
        let stays = STAYING.iter().any(|name| args.contains(name));
        let time = if stays { Duration::from_secs(5) } else { SOON };
        let ended = crate::support::wait(time, || child.try_wait().unwrap());
        let status = ended.unwrap_or_else(|| {
            let mut listens = || child.try_wait().unwrap().is_some() || hears_term(child.id());
            wait_until(SOON, "it can be asked to end", || format!("{args:?}"), || listens().then_some(()));
            kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
            wait_until(SOON, "it ends", || format!("{args:?} {:?}", begun.elapsed()), || child.try_wait().unwrap())
        });
        let read = |name| String::from_utf8_lossy(&fs::read(at(name)).unwrap()).into_owned();
        (status, read("out"), read("err"))
    }

    /// What it does with every limit is told; how often it went well.
    fn refuses(&self, limits: &[String], args: &[&str]) -> usize {
        let mut well = 0;
        for limit in limits {
            let (status, out, said) = self.run(limit, args);
            let what = format!("{limit}, {args:?}: {status}\n{out}\n{said}");
            // Where the C library has no memory for a thread that is just starting, it says so and ends the program by itself.
            let by_libc = said.contains("Fatal glibc error") && said.contains("out of memory");
            assert!(!said.contains("panicked") && (status.signal().is_none() || by_libc), "{what}");
            match status.code() {
                Some(0) => well += 1,
                // What `doctor` finds is its output.
                _ => assert!(!said.trim().is_empty() || args[0] == "doctor", "it fails without a word: {what}"),
            }
            if status.success() && args == ["status", "--json"] {
                let rows: serde_json::Value = serde_json::from_str(&out).unwrap();
                assert_eq!(rows[0]["status"], "ended", "{what}");
            }
        }
        well
    }
}

#[test]
fn case_142_without_threads_there_is_a_word_and_no_panic() {
    let Some(account) = Account::new() else { return };
    let limits: Vec<_> = (1..=4).map(|most| format!("--nproc={most}")).collect();
    for args in COMMANDS.iter().filter(|args| !args.contains(&"LOG") && args[0] != "explain") {
        account.refuses(&limits, args);
    }
    assert_eq!(account.refuses(&limits, &["status", "--json"]), limits.len(), "one thread is enough for it");
    let further: [&[&str]; 5] = [&["watch", "--json"], &["live"], &["tray"], &["demo"], &["stop", "00000001"]];
    for args in further {
        account.refuses(&limits, args);
    }
    let (status, _, said) = account.run("--nproc=1", &["watch", "--json"]);
    assert_eq!(status.code(), Some(1));
    assert_eq!(
        said.lines().filter(|line| line.starts_with("pilotlight: the system refuses a thread")).count(),
        1,
        "{said}"
    );
}

#[test]
fn case_142_without_memory_there_is_a_word_and_no_panic() {
    let Some(account) = Account::new() else { return };
    // What the program itself takes, as the system counts it, is measured first.
    let works = |most: &u32| account.run(&format!("--as={}", most << 10), &["--version"]).0.success();
    let least = (1..200).map(|n| n * 4096).find(works).expect("it runs with some memory");
    let limits: Vec<_> = (0..12).map(|n| format!("--as={}", (least + n * 1024) << 10)).collect();
    let mut refused = 0;
    for args in [&["status", "--json"][..], &["doctor"], &["watch", "--json"]] {
        refused += limits.len() - account.refuses(&limits, args);
    }
    println!("least {least} KiB, refused {refused} of {}", limits.len() * 3);
    assert!(refused > 0, "nothing was refused");
}
