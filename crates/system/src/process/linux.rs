//! Reading processes on Linux, directly from `/proc`.
//!
//! Three traps. `/proc/<id>` exists for the id of every thread too, though it is never listed: only the `Tgid` in
//! `status` distinguishes them. With the mount option `hidepid`, other users' processes are missing: testing a signal
//! (number 0, which sends nothing) shows whether the id is in use. And `comm` in `stat` may contain anything, including
//! spaces, brackets and line breaks: fields are counted from the last `)`.
//!
//! CPU time is read from `stat` (in ticks of 10 ms, but exact sums over all threads), not from the finer `schedstat`:
//! that one counts only the first thread, and says little about a build on eight cores. Children are listed in
//! `/proc/<id>/task/<tid>/children`; a kernel built without it needs a pass over all of `/proc`.

#![allow(clippy::disallowed_methods, reason = "`/proc` holds no pipes")]

use crate::identity::Identity;
use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::Duration;

use rustix::process::{Pid, test_kill_process};
use rustix::time::{ClockId, clock_gettime};

use super::cpu::{CpuSample, Key, Usage};
use super::files::without_deleted;
use super::reading::{Birth, Family, PidStatus, ProcessInfo};
use super::scripts::with_real_scripts;
use pilotlight_core::time::{Span, Time};

/// The most bytes of a command line that are read: the script comes first, prompts later.
const ARGUMENTS_LIMIT: u64 = 64 * 1024;
/// The most bytes of an environment that are read: more than the kernel lets a program start with (6 MiB).
const ENVIRONMENT_LIMIT: u64 = 8 * 1024 * 1024;

/// `PF_KTHREAD` of the kernel's `sched.h`.
const KERNEL_THREAD: u64 = 0x0020_0000;

/// What `/proc` shows of `pid`; `now` is the wall clock. The start is known as time since boot and is counted back from
/// `now`, so it shifts when the wall clock is set.
pub fn read(pid: u32, now: Time) -> PidStatus {
    let Ok(stat) = Stat::read(pid) else { return without_stat(pid) };
    if stat.has_ended() || is_thread(pid) {
        return PidStatus::Absent;
    }
    // The kernel's own threads have no executable, and the ids that a container's first processes have there.
    if stat.flags & KERNEL_THREAD != 0 {
        return PidStatus::Absent;
    }
    let executable = executable(pid);
    // Another user's (EACCES), a kernel thread (ENOENT), or it has just ended.
    if executable.is_none() && !Stat::read(pid).is_ok_and(|still| !still.has_ended()) {
        return PidStatus::Absent;
    }
    PidStatus::Process { started: Some(now - (since_boot() - stat.started())), executable }
}

/// Whether the process is exiting: its first thread has ended or is ending, or a SIGKILL is pending. Until its other
/// threads have ended too, the process exists but shows no executable.
pub fn is_ending(pid: u32) -> bool {
    /// `PF_EXITING` of the kernel's `sched.h`.
    const EXITING: u64 = 0x4;
    /// The bit of signal 9; bit 0 is signal 1.
    const KILLED: u64 = 1 << 8;
    let Ok(stat) = Stat::read(pid) else { return false };
    let is_killed = || {
        let status = fs::read(format!("/proc/{pid}/status")).unwrap_or_default();
        let pending = |name| u64::from_str_radix(std::str::from_utf8(line_of(&status, name)?).ok()?.trim(), 16).ok();
        [&b"SigPnd:"[..], b"ShdPnd:"].into_iter().filter_map(pending).any(|pending| pending & KILLED != 0)
    };
    !stat.has_ended() && (matches!(stat.state, b'Z' | b'X' | b'x') || stat.flags & EXITING != 0 || is_killed())
}

/// Whether the process is stopped, by a signal or a debugger.
pub fn is_stopped(pid: u32) -> bool {
    Stat::read(pid).is_ok_and(|stat| matches!(stat.state, b'T' | b't'))
}

/// Whether a process in another PID namespace, as of a container on this machine, has this id there. The kernel lists a
/// process's ids from our namespace inwards.
pub fn is_inside_container(pid: u32) -> bool {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let mut pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.any(|other| other != pid && inner_id(other) == pid)
}

/// The process that has this id in another PID namespace, and started then, in the system's own unit: it runs in a container.
/// `None` where that cannot be told: a container does not see all processes, and those of others may be hidden.
pub fn contained(inner: u32, started: u64) -> Option<Option<u32>> {
    let entries = fs::read_dir("/proc").ok().filter(|_| sees_all())?;
    let mut pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    Some(pids.find(|pid| is_contained(*pid, inner, started)))
}

/// Whether all processes of the machine are listed here: not in a container, nor where those of others are hidden.
pub fn sees_all() -> bool {
    /// What the kernel calls its first PID namespace: `PROC_PID_INIT_INO` of `proc_ns.h`.
    const FIRST: &str = "pid:[4026531836]";
    fs::read_link("/proc/self/ns/pid").is_ok_and(|own| own.as_os_str() == FIRST) && Stat::read(1).is_ok()
}

/// Whether this process has another id in its own PID namespace, `inner`, and started then by its own clock.
pub fn is_contained(pid: u32, inner: u32, started: u64) -> bool {
    start_ticks(pid).is_some_and(|ticks| is_own_start(pid, ticks, started)) && inner_id(pid) == inner && !is_thread(pid)
}

/// Whether a process that started at these clock ticks since boot would say that it started at `claimed`. A process in a
/// time namespace counts from a boot of its own (time_namespaces(7)).
pub fn is_own_start(pid: u32, ticks: u64, claimed: u64) -> bool {
    static OURS: OnceLock<Span> = OnceLock::new();
    if ticks == claimed {
        return true;
    }
    let offset = boot_offset(&pid.to_string()) - *OURS.get_or_init(|| boot_offset("self"));
    let per_second = i64::try_from(rustix::param::clock_ticks_per_second()).unwrap_or(100);
    ticks.checked_add_signed(offset.0.saturating_mul(per_second) / 1000) == Some(claimed)
}

/// How far the boot of a process's time namespace lies before that of the machine.
fn boot_offset(pid: &str) -> Span {
    let offsets = fs::read_to_string(format!("/proc/{pid}/timens_offsets")).unwrap_or_default();
    let offset = || {
        let mut words = offsets.lines().find_map(|line| line.strip_prefix("boottime"))?.split_whitespace();
        let (seconds, nanoseconds): (i64, i64) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        Some(Span(seconds.checked_mul(1000)? + nanoseconds / 1_000_000))
    };
    offset().unwrap_or_default()
}

/// The id that a process has in its own PID namespace: another one where it runs in a container.
pub fn inner_id(pid: u32) -> u32 {
    let status = fs::read(format!("/proc/{pid}/status")).unwrap_or_default();
    let ids = line_of(&status, b"NSpid:").and_then(|ids| std::str::from_utf8(ids).ok());
    ids.and_then(|ids| ids.split_whitespace().next_back()?.parse().ok()).unwrap_or(pid)
}

/// The path of the executable of `pid`. `None` if it cannot be read.
pub fn executable(pid: u32) -> Option<PathBuf> {
    executable_link(pid).ok()
}

/// The same, or why it cannot be read.
pub fn executable_link(pid: u32) -> io::Result<PathBuf> {
    // An update removes the file of a running program.
    fs::read_link(format!("/proc/{pid}/exe")).map(|link| without_deleted(link).0)
}

/// Whether `pid` runs the very file that this process runs, whatever its path is there.
pub fn runs_our_program(pid: u32) -> bool {
    let program = |process: &str| fs::metadata(format!("/proc/{process}/exe")).ok().map(|meta| Identity::of(&meta));
    program(&pid.to_string()).is_some_and(|its| program("self") == Some(its))
}

/// The command line of `pid`, followed by the real paths of its scripts. `None` if it cannot be read, or is empty as
/// that of an exiting process.
pub fn arguments(pid: u32) -> Option<Vec<OsString>> {
    let folder = fs::read_link(format!("/proc/{pid}/cwd")).ok();
    Some(with_real_scripts(command_line(pid)?, folder.as_deref()))
}

/// The command line of `pid` as it is.
pub fn command_line(pid: u32) -> Option<Vec<OsString>> {
    let mut line = Vec::new();
    File::open(format!("/proc/{pid}/cmdline")).ok()?.take(ARGUMENTS_LIMIT).read_to_end(&mut line).ok()?;
    let line = line.strip_suffix(b"\0").unwrap_or(&line);
    if line.is_empty() {
        return None;
    }
    Some(line.split(|byte| *byte == 0).map(|argument| OsStr::from_bytes(argument).to_owned()).collect())
}

/// The folder that the process works in. `None` if it cannot be read.
pub fn folder_of(pid: u32) -> Option<PathBuf> {
    // Its folder may have been removed, as with `git worktree remove`.
    fs::read_link(format!("/proc/{pid}/cwd")).ok().map(|link| without_deleted(link).0)
}

/// Whether the process runs as our user. `false` if that cannot be read or there is no such process.
pub fn is_of_our_user(pid: u32) -> bool {
    // Not the owner of `/proc/<pid>`: that is root for a process that forbids being inspected (PR_SET_DUMPABLE).
    status_line(pid, b"Uid:").is_some_and(|ids| {
        let effective = ids.split(u8::is_ascii_whitespace).filter(|id| !id.is_empty()).nth(1).and_then(number);
        effective == Some(rustix::process::geteuid().as_raw())
    })
}

/// Whether one of the user ids of the process, real, effective or saved, is ours.
fn has_id_of_our_user(pid: u32) -> bool {
    let own = rustix::process::geteuid().as_raw();
    status_line(pid, b"Uid:")
        .is_some_and(|ids| ids.split(u8::is_ascii_whitespace).filter_map(number).take(3).any(|id: u32| id == own))
}

/// Looks up the parent and the start of a process.
pub(super) fn families() -> impl Fn(u32) -> Option<Family> {
    |pid| Stat::read(pid).ok().map(|stat| Family { parent: stat.parent, started: stat.started })
}

/// Looks up births, counted back from `now`, the wall clock. `None` for a process that has ended.
pub fn births(now: Time) -> impl Fn(u32) -> Option<Birth> {
    let booted = now - since_boot();
    move |pid| {
        let stat = Stat::read(pid).ok().filter(|stat| !stat.has_ended())?;
        Some(Birth { ticks: stat.started, at: booted + stat.started(), parent: stat.parent })
    }
}

/// The variables of these names in the environment that `pid` was started with. `None` if that cannot be read.
pub fn variables(pid: u32, names: &[&str]) -> Option<Vec<(OsString, OsString)>> {
    let environment = environment(pid)?;
    let wanted = |variable: &[u8]| {
        let (name, value) = variable.split_at_checked(memchr::memchr(b'=', variable)?)?;
        let is_wanted = names.iter().any(|wanted| wanted.as_bytes() == name);
        is_wanted.then(|| (OsStr::from_bytes(name).to_owned(), OsStr::from_bytes(&value[1..]).to_owned()))
    };
    Some(environment.split(|byte| *byte == 0).filter_map(wanted).collect())
}

/// A process as one of another's ancestors; `now` is the wall clock.
pub(super) fn process_info(pid: u32, now: Time) -> Option<ProcessInfo> {
    let stat = Stat::read(pid).ok()?;
    let name = fs::read(format!("/proc/{pid}/comm")).ok()?;
    Some(ProcessInfo {
        pid,
        parent: stat.parent,
        at: now - (since_boot() - stat.started()),
        name: String::from_utf8_lossy(&name).trim_end().to_owned(),
        leader: stat.leader,
        has_terminal: stat.terminal != 0,
        is_in_foreground: stat.terminal != 0 && stat.group == stat.foreground,
        is_ours: has_id_of_our_user(pid),
    })
}

fn environment(pid: u32) -> Option<Vec<u8>> {
    let mut environment = Vec::new();
    File::open(format!("/proc/{pid}/environ")).ok()?.take(ENVIRONMENT_LIMIT).read_to_end(&mut environment).ok()?;
    Some(environment)
}

/// Whether one of these variables is set, and not empty, in the environment that `pid` was started with. `false` if
/// that cannot be read.
pub fn is_started_with(pid: u32, names: &[&str]) -> bool {
    variables(pid, names).is_some_and(|set| set.iter().any(|(_, value)| !value.is_empty()))
}

/// The device number of the controlling terminal, as in [`Stat`]. `None` if there is no such process or it has no
/// terminal.
pub(super) fn terminal(pid: u32) -> Option<u32> {
    Stat::read(pid).ok().map(|stat| stat.terminal).filter(|terminal| *terminal != 0)
}

/// How long the main thread of `pid`, or each of its threads, has run or waited to run. `None` if that cannot be read.
pub fn thread_times(pid: u32, of_all: bool) -> Option<HashMap<u32, Duration>> {
    let time = |task: u32| {
        let shown = fs::read_to_string(format!("/proc/{pid}/task/{task}/schedstat")).ok()?;
        let mut times = shown.split(' ').map_while(|time| time.parse().ok());
        Some((task, Duration::from_nanos(times.next()?) + Duration::from_nanos(times.next()?)))
    };
    let main = time(pid)?;
    let tasks = of_all.then(|| fs::read_dir(format!("/proc/{pid}/task")).ok()).flatten();
    let tasks = tasks.into_iter().flatten().filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    Some(tasks.filter_map(time).chain([main]).collect())
}

/// CPU time used so far by each descendant of `pid`: its children, their children and so on, not the process itself.
/// `None` if the process does not exist or cannot be read.
///
/// Costs some 35 us a descendant: take a sample when a deadline needs one, not for every event. A process that was
/// handed to init when its parent ended is no longer a descendant.
pub fn cpu_of_descendants(pid: u32) -> Option<CpuSample> {
    sample(pid, &mut Children::of(pid))
}

/// Whether a child of `pid` was started with this variable set to this value. `None` if that cannot be read of one of
/// them, and no other was.
pub fn has_child_with(pid: u32, name: &str, value: &str) -> Option<bool> {
    Stat::read(pid).ok()?;
    let children = Children::of(pid).list(pid);
    let has = |child: u32| Some(variables(child, &[name])?.iter().any(|(_, is)| *is == *value));
    let answers: Vec<_> = children.into_iter().map(|child| (child, has(child))).collect();
    if answers.iter().any(|(_, answer)| *answer == Some(true)) {
        return Some(true);
    }
    // One that has just ended cannot be read either.
    let is_hidden = |(child, answer): &(u32, Option<bool>)| {
        answer.is_none() && Stat::read(*child).is_ok_and(|stat| !stat.has_ended())
    };
    (!answers.iter().any(is_hidden)).then_some(false)
}

/// When a process started, in clock ticks since boot, which tells it apart from a later one with its id.
pub fn start_ticks(pid: u32) -> Option<u64> {
    Some(Stat::read(pid).ok().filter(|stat| !stat.has_ended())?.started)
}

/// The same, with a given lookup of children.
fn sample(pid: u32, children: &mut Children) -> Option<CpuSample> {
    let root: Key = (pid, Stat::read(pid).ok()?.started);
    let mut found = HashMap::new();
    let mut parents = vec![root];
    while let Some(parent) = parents.pop() {
        for child in children.list(parent.0) {
            // Check the parent again: the id may have been reused since.
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

/// How the children of a process are found.
enum Children {
    /// In the list that the kernel keeps for each thread.
    Listed,
    /// In a table built in one pass over all processes.
    Scanned(HashMap<u32, Vec<u32>>),
}

impl Children {
    /// The kernel's lists if it has them; `pid` is a process to try them on.
    fn of(pid: u32) -> Self {
        if fs::exists(format!("/proc/{pid}/task/{pid}/children")).unwrap_or(false) {
            Self::Listed
        } else {
            Self::scan()
        }
    }

    fn scan() -> Self {
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

/// The fields of `/proc/<pid>/stat` that are needed here, as proc_pid_stat(5) numbers them. Times are in clock ticks.
#[derive(Debug, PartialEq, Eq)]
struct Stat {
    state: u8,
    parent: u32,
    /// Its process group.
    group: i32,
    /// The process that leads its session.
    leader: u32,
    /// The device number of the controlling terminal: minor in bits 0 to 7 and 20 to 31, major in 8 to 19; 0 for none.
    terminal: u32,
    /// The process group in the foreground of that terminal; -1 for none.
    foreground: i32,
    /// The kernel's `PF_*` flags.
    flags: u64,
    threads: u32,
    /// Since boot.
    started: u64,
    /// User and system time of all threads, including those that ended.
    own: u64,
    /// The same for children that ended and were waited for, and for theirs.
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
            group: fields.get(2).copied().and_then(number)?,
            leader: u32::try_from(field(6)?).ok()?,
            terminal: fields.get(4).copied().and_then(number::<i32>)?.cast_unsigned(),
            foreground: fields.get(5).copied().and_then(number)?,
            flags: field(9)?,
            threads: u32::try_from(field(20)?).ok()?,
            started: field(22)?,
            own: field(14)? + field(15)?,
            waited_for: field(16)? + field(17)?,
        })
    }

    /// A zombie, or dead. A process of which only the first thread has ended lives on in the others.
    fn has_ended(&self) -> bool {
        matches!(self.state, b'Z' | b'X' | b'x') && self.threads <= 1
    }

    fn started(&self) -> Span {
        Span(milliseconds(self.started))
    }
}

/// The reading where `stat` cannot be read: there is no such process, or it is hidden.
fn without_stat(pid: u32) -> PidStatus {
    match i32::try_from(pid).ok().and_then(Pid::from_raw).map(test_kill_process) {
        None | Some(Err(rustix::io::Errno::SRCH)) => PidStatus::Absent,
        Some(_) => PidStatus::Hidden,
    }
}

/// Whether `pid` is provably the id of a thread other than its process's first.
fn is_thread(pid: u32) -> bool {
    status_line(pid, b"Tgid:").and_then(|group| number::<u32>(&group)).is_some_and(|group| group != pid)
}

/// The value of a line near the beginning of `/proc/<pid>/status`: `Tgid:` or `Uid:`.
fn status_line(pid: u32, name: &[u8]) -> Option<Vec<u8>> {
    let mut status = [0; 512]; // Name, Umask, State, Tgid, ..., Uid: line breaks in the name are escaped
    let length = File::open(format!("/proc/{pid}/status")).and_then(|mut file| file.read(&mut status)).ok()?;
    line_of(&status[..length], name).map(<[u8]>::to_vec)
}

fn line_of<'a>(status: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    status.split(|byte| *byte == b'\n').find_map(|line| line.strip_prefix(name))
}

/// Time since boot, including sleep, which is what process starts are counted in.
fn since_boot() -> Span {
    let now = clock_gettime(ClockId::Boottime);
    Span(now.tv_sec * 1000 + now.tv_nsec / 1_000_000)
}

fn milliseconds(ticks: u64) -> i64 {
    let per_second = rustix::param::clock_ticks_per_second().max(1); // 100 except on Alpha
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
            group: 1,
            leader: 1,
            terminal: 34816,
            foreground: 1,
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
    fn the_folder_of_a_process_keeps_its_name_once_it_is_removed() {
        let scratch = tempfile::tempdir().unwrap();
        let folder = scratch.path().join("worktree");
        fs::create_dir(&folder).unwrap();
        let mut child = std::process::Command::new("cat");
        let mut child = child.current_dir(&folder).stdin(std::process::Stdio::piped()).spawn().unwrap();
        fs::remove_dir(&folder).unwrap();
        assert_eq!(folder_of(child.id()), Some(folder));
        drop(child.stdin.take());
        child.wait().unwrap();
    }

    #[test]
    fn a_zombie_with_threads_left_has_not_ended() {
        let stat = |state, threads| {
            let (parent, leader, terminal, flags, started) = (1, 1, 0, 0, 1);
            let (group, foreground) = (1, -1);
            Stat { state, parent, group, leader, terminal, foreground, flags, threads, started, own: 0, waited_for: 0 }
        };
        assert!(stat(b'Z', 1).has_ended());
        assert!(stat(b'X', 0).has_ended());
        assert!(!stat(b'Z', 3).has_ended());
        assert!(!stat(b'D', 1).has_ended());
    }

    #[test]
    fn a_thread_group_is_found_whatever_the_name_contains() {
        let status = b"Name:\tx\\nTgid:\t9\nUmask:\t0022\nState:\tS\nTgid:\t42\nNgid:\t0\n";
        assert_eq!(line_of(status, b"Tgid:").and_then(number), Some(42));
        assert_eq!(line_of(b"Name:\tx\n", b"Tgid:"), None);
    }

    /// On a kernel without lists of children.
    #[test]
    fn a_scan_finds_the_same_descendants() {
        crate::process::testing::alone!();
        let mut child = std::process::Command::new("cat").stdin(std::process::Stdio::piped()).spawn().unwrap();
        let me = std::process::id();
        for mut children in [Children::of(me), Children::scan()] {
            let sample = sample(me, &mut children).unwrap();
            assert!(sample.descendants() >= 1);
            assert!(sample.has(child.id()));
        }
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
