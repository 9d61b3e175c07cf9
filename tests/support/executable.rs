//! Programs for tests to run: scripts, and copies of others.
//!
//! Another program writes them: if this process had one open for writing, a child that another test forks at that moment
//! would briefly inherit the descriptor, and the system refuses to run a file that is open for writing ("Text file
//! busy").

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// Writes a script that can be run at once.
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

/// Copies a program, which can be run at once by its new name.
pub(crate) fn copy_program(from: impl AsRef<Path>, to: impl AsRef<Path>) {
    let (from, to) = (from.as_ref(), to.as_ref());
    let copied = Command::new("cp").args(["--dereference", "--"]).args([from, to]).status();
    assert!(copied.expect("coreutils are installed").success(), "{} cannot be copied", from.display());
}
