//! What `/proc` says of the processes around a terminal.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::ffi::OsStringExt;

/// How much of an environment is read, in bytes.
const LARGEST: u64 = 1024 * 1024;

/// The process that started this one, or that took it over. `None` for the first one, and where that cannot be read.
pub(super) fn parent(pid: u32) -> Option<u32> {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    // The name before it, in brackets, may hold anything.
    let after_name = stat.get(memchr::memrchr(b')', &stat)? + 2..)?;
    let parent = after_name.split(|byte| *byte == b' ').nth(1)?;
    std::str::from_utf8(parent).ok()?.parse().ok().filter(|parent| *parent != 0)
}

/// A variable of the environment that the process was started with. `None` where it has none, or shows none to us.
pub(super) fn variable(pid: u32, name: &str) -> Option<OsString> {
    let mut all = Vec::new();
    File::open(format!("/proc/{pid}/environ")).ok()?.take(LARGEST).read_to_end(&mut all).ok()?;
    let value = all.split(|byte| *byte == 0).find_map(|pair| pair.strip_prefix(name.as_bytes())?.strip_prefix(b"="))?;
    Some(OsString::from_vec(value.to_vec()))
}

/// The name of what the process runs, at most 15 bytes of it.
pub(super) fn name(pid: u32) -> Option<String> {
    let name = fs::read(format!("/proc/{pid}/comm")).ok()?;
    Some(String::from_utf8_lossy(&name).trim().to_owned()).filter(|name| !name.is_empty())
}
