//! Scripts that tests run.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// Makes a script that can be run at once. Another program writes it: while it is open for writing here, whatever another test
/// starts at that moment has it open for a blink, too, and the system runs no file that somebody may write ("Text file busy").
pub(crate) fn executable(path: &Path, script: &str) {
    let mut install = Command::new("install");
    install.args(["-m", "755", "/dev/stdin"]).arg(path).stdin(Stdio::piped());
    let mut install = install.spawn().expect("coreutils are there");
    install.stdin.take().expect("it is piped").write_all(script.as_bytes()).expect("it reads");
    assert!(install.wait().expect("it ends").success(), "{} cannot be made", path.display());
}
