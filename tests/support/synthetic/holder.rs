//! A process that passes for Copilot's: it holds a session's folder as Copilot does, and only sleeps.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Locks a hold file next to the session's lock, keeps it open, and execs the program under the same pid.
const HOLD: &str = r#"$^F = 255; $SIG{INT} = "IGNORE" if $ARGV[2];
    open(F, ">", "$ARGV[0]/inuse.$$.hold") or die; flock(F, 6) or die;
    exec { $ARGV[1] } "copilot", 3600; die"#;

/// Starts `program`, a copy of sleep(1), as a process that holds this session's folder. If `deaf`, it ignores Ctrl-C.
pub(crate) fn start(program: &Path, folder: &Path, deaf: bool) -> Child {
    let mut command = Command::new("perl");
    command.args(["-e", HOLD]).arg(folder).arg(program).args(deaf.then_some("deaf")).stdin(Stdio::null());
    let mut child = command.spawn().expect("perl is needed for processes that hold a lock");
    let (exe, start) = (format!("/proc/{}/exe", child.id()), Instant::now());
    while std::fs::read_link(&exe).ok().is_none_or(|exe| exe.file_name() != program.file_name()) {
        assert!(child.try_wait().unwrap().is_none(), "it cannot hold {}", folder.display());
        assert!(start.elapsed() < Duration::from_secs(30), "it does not become {}", program.display());
        std::thread::park_timeout(Duration::from_millis(2));
    }
    child
}
