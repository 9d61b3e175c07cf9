//! Reading processes on Linux: plain reads of `/proc`, with no library between.
//!
//! Three traps. `/proc/<id>` exists for every thread's id too, though it is never listed: only the `Tgid` in `status` tells
//! them apart. With the mount option `hidepid` other users' processes are not there at all: a signal that is only tested
//! for (number 0, nothing is sent) says whether the id is in use. And `comm` in `stat` may hold anything, spaces, brackets
//! and line breaks included: fields are counted from the last `)`.
//!
//! CPU time is `stat`'s (ticks of 10 ms, but exact sums of all threads), not the finer `schedstat`'s: that one counts the
//! first thread alone, and says next to nothing about a build on eight cores. Children come from
//! `/proc/<id>/task/<tid>/children`; where the kernel was built without it, from one pass over all of `/proc`.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use rustix::process::{Pid, test_kill_process};
use rustix::time::{ClockId, clock_gettime};

use super::ancestry::Family;
use super::cpu::{CpuSample, Key, Usage};
use super::{Reading, with_real_scripts};
use crate::core::time::{Span, Time};

/// What the kernel appends to the path of an executable whose file was removed, as an update does.
const DELETED: &[u8] = b" (deleted)";
/// How much of a command line is looked at: the script comes first, prompts later.
const ARGUMENTS_LIMIT: u64 = 64 * 1024;
/// How much of an environment is looked at: the most that the kernel lets a program start with (6 MiB), and more.
const ENVIRONMENT_LIMIT: u64 = 8 * 1024 * 1024;

/// What `/proc` shows of `pid`; `now` is the wall clock.
pub(super) fn read(pid: u32, now: Time) -> Reading {
    let Ok(stat) = Stat::read(pid) else { return without_stat(pid) };
    if stat.has_ended() || is_thread(pid) {
        return Reading::Absent;
    }
    let executable = executable(pid);
    // Another user's (EACCES), a kernel thread (ENOENT), or it ended this very moment.
    if executable.is_none() && !Stat::read(pid).is_ok_and(|still| !still.has_ended()) {
        return Reading::Absent;
    }
    Reading::Process { started: Some(now - (since_boot() - stat.started())), executable }
}

/// Whether the process is on its way out: its first thread has ended, or is ending, or has a SIGKILL waiting for it.
pub(super) fn is_ending(pid: u32) -> bool {
    /// `PF_EXITING` of the kernel's `sched.h`.
    const EXITING: u64 = 0x4;
    /// SIGKILL is number 9, and the first bit is that of number 1.
    const KILLED: u64 = 1 << 8;
    let Ok(stat) = Stat::read(pid) else { return false };
    let is_killed = || {
        let status = fs::read(format!("/proc/{pid}/status")).unwrap_or_default();
        let pending = |name| u64::from_str_radix(std::str::from_utf8(line_of(&status, name)?).ok()?.trim(), 16).ok();
        [&b"SigPnd:"[..], b"ShdPnd:"].into_iter().filter_map(pending).any(|pending| pending & KILLED != 0)
    };
    !stat.has_ended() && (matches!(stat.state, b'Z' | b'X' | b'x') || stat.flags & EXITING != 0 || is_killed())
}

/// Whether a process that is in another namespace than ours has this id there: the last of the ids that the kernel lists.
pub(super) fn is_inside_container(pid: u32) -> bool {
    let inner = |entry: fs::DirEntry| {
        let status = fs::read(entry.path().join("status")).ok()?;
        let ids = std::str::from_utf8(line_of(&status, b"NSpid:")?).ok()?.split_whitespace().skip(1);
        ids.last()?.parse::<u32>().ok()
    };
    fs::read_dir("/proc").into_iter().flatten().flatten().any(|entry| inner(entry) == Some(pid))
}

/// The path of the executable of `pid`. `None` where it cannot be read.
pub(super) fn executable(pid: u32) -> Option<PathBuf> {
    fs::read_link(format!("/proc/{pid}/exe")).ok().map(without_deleted)
}

/// The command line of `pid`, and behind it the real paths of its scripts. `None` where it cannot be read; a process
/// that is ending has an empty one, which proves nothing either.
pub(super) fn arguments(pid: u32) -> Option<Vec<OsString>> {
    let mut line = Vec::new();
    File::open(format!("/proc/{pid}/cmdline")).ok()?.take(ARGUMENTS_LIMIT).read_to_end(&mut line).ok()?;
    let line = line.strip_suffix(b"\0").unwrap_or(&line);
    if line.is_empty() {
        return None;
    }
    let arguments = line.split(|byte| *byte == 0).map(|argument| OsStr::from_bytes(argument).to_owned()).collect();
    let folder = fs::read_link(format!("/proc/{pid}/cwd")).ok();
    Some(with_real_scripts(arguments, folder.as_deref()))
}

/// Whether the process runs as the user that we run as.
pub(super) fn is_of_our_user(pid: u32) -> bool {
    // Not the owner of `/proc/<pid>`: that is root for a process that does not let itself be looked into.
    status_line(pid, b"Uid:").is_some_and(|ids| {
        let effective = ids.split(u8::is_ascii_whitespace).filter(|id| !id.is_empty()).nth(1).and_then(number);
        effective == Some(rustix::process::geteuid().as_raw())
    })
}

/// What each process is told of: its parent, and when it started.
pub(super) fn families() -> impl Fn(u32) -> Option<Family> {
    |pid| Stat::read(pid).ok().map(|stat| Family { parent: stat.parent, started: stat.started })
}

/// When a process started, and which one started it.
pub(super) struct Birth {
    /// In clock ticks since boot: no two processes of one id have the same.
    pub(super) ticks: u64,
    pub(super) at: Time,
    pub(super) parent: u32,
}

/// The births of processes; `now` is the wall clock. `None` for one that has ended.
pub(super) fn births(now: Time) -> impl Fn(u32) -> Option<Birth> {
    let booted = now - since_boot();
    move |pid| {
        let stat = Stat::read(pid).ok().filter(|stat| !stat.has_ended())?;
        Some(Birth { ticks: stat.started, at: booted + stat.started(), parent: stat.parent })
    }
}

/// These variables, as far as they are set in the environment that `pid` was started with. `None` where that cannot be read.
pub(super) fn variables(pid: u32, names: &[&str]) -> Option<Vec<(OsString, OsString)>> {
    let environment = environment(pid)?;
    let wanted = |variable: &[u8]| {
        let (name, value) = variable.split_at_checked(memchr::memchr(b'=', variable)?)?;
        let is_wanted = names.iter().any(|wanted| wanted.as_bytes() == name);
        is_wanted.then(|| (OsStr::from_bytes(name).to_owned(), OsStr::from_bytes(&value[1..]).to_owned()))
    };
    Some(environment.split(|byte| *byte == 0).filter_map(wanted).collect())
}

fn environment(pid: u32) -> Option<Vec<u8>> {
    let mut environment = Vec::new();
    File::open(format!("/proc/{pid}/environ")).ok()?.take(ENVIRONMENT_LIMIT).read_to_end(&mut environment).ok()?;
    Some(environment)
}

/// Whether one of these variables is set, and not empty, in the environment that `pid` was started with. `false` where
/// that cannot be read.
pub(super) fn is_started_with(pid: u32, names: &[&str]) -> bool {
    variables(pid, names).is_some_and(|set| set.iter().any(|(_, value)| !value.is_empty()))
}

/// The number of the controlling terminal's device, as [`Stat`] has it. `None` where there is no such process, or it
/// has no terminal.
pub(super) fn terminal(pid: u32) -> Option<u32> {
    Stat::read(pid).ok().map(|stat| stat.terminal).filter(|terminal| *terminal != 0)
}

/// CPU time of all descendants of `pid`.
pub(super) fn descendants(pid: u32) -> Option<CpuSample> {
    descendants_by(pid, &mut Children::of(pid))
}

/// The same, with a given way to find children.
pub(super) fn descendants_by(pid: u32, children: &mut Children) -> Option<CpuSample> {
    let root: Key = (pid, Stat::read(pid).ok()?.started);
    let mut found = HashMap::new();
    let mut parents = vec![root];
    while let Some(parent) = parents.pop() {
        for child in children.list(parent.0) {
            // Its parent is asked for again: by now the id may be another process's.
            let Some(stat) = Stat::read(child).ok().filter(|stat| stat.parent == parent.0) else { continue };
            let key = (child, stat.started);
            let usage = Usage { parent, own: milliseconds(stat.own), waited_for: milliseconds(stat.waited_for) };
            if found.insert(key, usage).is_none() {
                parents.push(key);
            }
        }
    }
    Some(CpuSample::new(root, found))
}

/// Where children are looked up.
pub(super) enum Children {
    /// In each thread's own list of those it started.
    Listed,
    /// In a table made by one pass over all processes.
    Scanned(HashMap<u32, Vec<u32>>),
}

impl Children {
    /// The better way that this kernel has; `pid` is a process to try it on.
    fn of(pid: u32) -> Self {
        if fs::exists(format!("/proc/{pid}/task/{pid}/children")).unwrap_or(false) {
            Self::Listed
        } else {
            Self::scan()
        }
    }

    pub(super) fn scan() -> Self {
        let mut table: HashMap<u32, Vec<u32>> = HashMap::new();
        for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
            let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
            if let Ok(stat) = Stat::read(pid) {
                table.entry(stat.parent).or_default().push(pid);
            }
        }
        Self::Scanned(table)
    }

    fn list(&mut self, parent: u32) -> Vec<u32> {
        if let Self::Scanned(table) = self {
            return table.remove(&parent).unwrap_or_default();
        }
        let mut children = Vec::new();
        for thread in fs::read_dir(format!("/proc/{parent}/task")).into_iter().flatten().flatten() {
            let list = fs::read(thread.path().join("children")).unwrap_or_default();
            let ids = list.split(|byte| *byte == b' ').filter_map(number::<u32>);
            children.extend(ids);
        }
        children
    }
}

/// What is needed of `/proc/<pid>/stat`; proc_pid_stat(5) numbers its fields. Times are in clock ticks.
#[derive(Debug, PartialEq, Eq)]
struct Stat {
    state: u8,
    parent: u32,
    /// The device number of the controlling terminal: minor in bits 0 to 7 and 20 to 31, major in 8 to 19; 0 for none.
    terminal: u32,
    /// The kernel's `PF_*`.
    flags: u64,
    threads: u32,
    /// Since boot.
    started: u64,
    /// User and system time of all threads, those that ended included.
    own: u64,
    /// The same of children that ended and were waited for, and of theirs.
    waited_for: u64,
}

impl Stat {
    fn read(pid: u32) -> io::Result<Self> {
        let mut line = [0; 1024]; // 52 numbers and a name of at most 64 bytes
        let length = File::open(format!("/proc/{pid}/stat"))?.read(&mut line)?;
        Self::parse(&line[..length]).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    fn parse(line: &[u8]) -> Option<Self> {
        let after_name = line.get(memchr::memrchr(b')', line)? + 2..)?;
        let fields: Vec<&[u8]> = after_name.split(|byte| *byte == b' ').take(20).collect();
        // The state, the first after the name, is field 3.
        let field = |n: usize| fields.get(n - 3).copied().and_then(number::<u64>);
        Some(Self {
            state: *fields.first()?.first()?,
            parent: u32::try_from(field(4)?).ok()?,
            terminal: fields.get(4).copied().and_then(number::<i32>)?.cast_unsigned(),
            flags: field(9)?,
            threads: u32::try_from(field(20)?).ok()?,
            started: field(22)?,
            own: field(14)? + field(15)?,
            waited_for: field(16)? + field(17)?,
        })
    }

    /// A zombie, or dead. One whose first thread alone has ended lives on in the others.
    fn has_ended(&self) -> bool {
        matches!(self.state, b'Z' | b'X' | b'x') && self.threads <= 1
    }

    fn started(&self) -> Span {
        Span(milliseconds(self.started))
    }
}

/// No `stat` to read: no such process, or one that is hidden.
fn without_stat(pid: u32) -> Reading {
    match i32::try_from(pid).ok().and_then(Pid::from_raw).map(test_kill_process) {
        None | Some(Err(rustix::io::Errno::SRCH)) => Reading::Absent,
        Some(_) => Reading::Hidden,
    }
}

/// Whether `pid` is provably the id of a thread that is not its process's first.
fn is_thread(pid: u32) -> bool {
    status_line(pid, b"Tgid:").and_then(|group| number::<u32>(&group)).is_some_and(|group| group != pid)
}

/// The line of `/proc/<pid>/status` that begins with `name`, without it: `Tgid:` or `Uid:`.
fn status_line(pid: u32, name: &[u8]) -> Option<Vec<u8>> {
    let mut status = [0; 512]; // Name, Umask, State, Tgid, ..., Uid: line breaks in the name are escaped
    let length = File::open(format!("/proc/{pid}/status")).and_then(|mut file| file.read(&mut status)).ok()?;
    line_of(&status[..length], name).map(<[u8]>::to_vec)
}

fn line_of<'a>(status: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    status.split(|byte| *byte == b'\n').find_map(|line| line.strip_prefix(name))
}

fn without_deleted(path: PathBuf) -> PathBuf {
    let mut path = path.into_os_string().into_vec();
    if path.ends_with(DELETED) {
        path.truncate(path.len() - DELETED.len());
    }
    OsString::from_vec(path).into()
}

/// Time since boot, sleep included: what a process's start is counted in.
fn since_boot() -> Span {
    let now = clock_gettime(ClockId::Boottime);
    Span(now.tv_sec * 1000 + now.tv_nsec / 1_000_000)
}

fn milliseconds(ticks: u64) -> i64 {
    let per_second = rustix::param::clock_ticks_per_second().max(1); // 100 but on Alpha
    i64::try_from(ticks.saturating_mul(1000) / per_second).unwrap_or(i64::MAX)
}

fn number<T: std::str::FromStr>(text: &[u8]) -> Option<T> {
    std::str::from_utf8(text).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stat_line_is_read_by_its_fields() {
        let line =
            b"4321 (Main) Thread (x)) S 77 1 1 34816 1 4194304 900 5000 0 3 250 50 1000 200 20 0 11 0 987654 1 2 3\n";
        let stat = Stat {
            state: b'S',
            parent: 77,
            terminal: 34816,
            flags: 4_194_304,
            threads: 11,
            started: 987_654,
            own: 300,
            waited_for: 1200,
        };
        assert_eq!(Stat::parse(line), Some(stat));
        for broken in [&b""[..], b"1 (x", b"1 (x)", b"1 (x) S 77 1", b"1 (x) S a b c d e f g h i j k l m n o p q r s"] {
            assert_eq!(Stat::parse(broken), None);
        }
    }

    #[test]
    fn a_zombie_with_threads_left_has_not_ended() {
        let stat = |state, threads| {
            let (parent, terminal, flags, started) = (1, 0, 0, 1);
            Stat { state, parent, terminal, flags, threads, started, own: 0, waited_for: 0 }
        };
        assert!(stat(b'Z', 1).has_ended());
        assert!(stat(b'X', 0).has_ended());
        assert!(!stat(b'Z', 3).has_ended());
        assert!(!stat(b'D', 1).has_ended());
    }

    #[test]
    fn a_thread_group_is_read_past_any_name() {
        let status = b"Name:\tx\\nTgid:\t9\nUmask:\t0022\nState:\tS\nTgid:\t42\nNgid:\t0\n";
        assert_eq!(line_of(status, b"Tgid:").and_then(number), Some(42));
        assert_eq!(line_of(b"Name:\tx\n", b"Tgid:"), None);
    }

    #[test]
    fn only_the_kernels_own_words_are_cut_off_a_path() {
        for (path, expected) in
            [("/a/copilot (deleted)", "/a/copilot"), ("/a/copilot", "/a/copilot"), ("/a (deleted)/b", "/a (deleted)/b")]
        {
            assert_eq!(without_deleted(path.into()), PathBuf::from(expected));
        }
    }

    /// On a kernel without lists of children.
    #[test]
    fn a_scan_finds_the_same_descendants() {
        let mut child = std::process::Command::new("cat").stdin(std::process::Stdio::piped()).spawn().unwrap();
        let me = std::process::id();
        for mut way in [Children::of(me), Children::scan()] {
            let sample = descendants_by(me, &mut way).unwrap();
            assert!(sample.descendants() >= 1);
            assert!(sample.has(child.id()));
        }
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
