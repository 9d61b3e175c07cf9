//! Scripts for tests to run.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// Writes a script that can be run at once. Another program writes it: if this process had it open for writing, a child
/// that another test forks at that moment would briefly inherit the descriptor, and the system refuses to run a file
/// that is open for writing ("Text file busy").
pub(crate) fn executable(path: &Path, script: &str) {
    let mut install = Command::new("install");
    install.args(["-m", "755", "/dev/stdin"]).arg(path).stdin(Stdio::piped());
    let mut install = install.spawn().expect("coreutils are installed");
    install
        .stdin
        .take()
        .expect("its standard input is a pipe")
        .write_all(script.as_bytes())
        .expect("install reads its standard input");
    assert!(install.wait().expect("install can be waited for").success(), "{} cannot be written", path.display());
}
