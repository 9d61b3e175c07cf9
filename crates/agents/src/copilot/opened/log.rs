//! Reads from a Copilot process's own log which sessions the process has open.
//!
//! The lines that matter, in the tested releases (1.0.86, 1.0.102):
//!
//! ```text
//! 2026-11-22T01:02:18.498Z [INFO] Workspace initialized: beabf016-0350-4b30-ae8f-181db7acd479 (checkpoints: 0)
//! 2026-11-22T01:08:10.407Z [INFO] Closing session beabf016-0350-4b30-ae8f-181db7acd479
//! ```
//!
//! The first is written when a session is loaded, new or resumed, in a terminal or a server, in the foreground or not.
//! Switching to another session closes none. With `--log-level none` or `error` there are no such lines.
//!
//! A server for editors (`--acp`) writes neither. Each session that it makes or loads shows in warnings alone (1.0.102), and
//! nothing shows that it closes one:
//!
//! ```text
//! 2026-11-28T15:37:20.423Z [INFO] Starting ACP server (stdio)
//! 2026-11-28T15:37:20.669Z [WARNING] [rust:...] Failed to reload managed hooks ... {"error":"no hook session for session id beabf016-0350-4b30-ae8f-181db7acd479"}
//! ```

use crate::copilot::owner::Lock;
use crate::copilot::running::Program;
use pilotlight_core::text::is_uuid;
use pilotlight_core::time::Time;
use pilotlight_system::log::{self, cause, private};
use pilotlight_system::plain_file::{self, Links};
use pilotlight_system::process::SLACK;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// The folder of a home that holds the logs of its processes.
pub(crate) const LOGS: &str = "logs";

/// How much of a log's end is read, in bytes.
const TAIL_MAX: u64 = 64 << 20;
/// The longest line, in bytes. Longer ones are not of interest.
const LINE_MAX: u64 = 64 << 10;
/// The length of the timestamp at a line's beginning, including the space after it.
const STAMP: usize = "2026-11-22T01:02:18.498Z ".len();
/// The length of a session's id.
const UUID: usize = 36;
/// The beginnings of the lines about a session, and whether they open (`true`) or close it.
const PREFIXES: [(&str, bool); 4] = [
    ("[INFO] Workspace initialized: ", true),
    ("[INFO] Registering foreground session: ", true),
    ("[INFO] Resumed session: ", true),
    ("[INFO] Closing session ", false),
];

/// The beginning of a line of a server for editors.
const EDITORS: &[u8] = b"[INFO] Starting ACP server";
/// The words in whose place its warnings name a session.
const NAMED_AFTER: [&str; 2] = [" session id ", " for session "];

/// A process's log, as read so far.
#[derive(Debug, Default)]
pub(super) struct Log {
    path: Option<PathBuf>,
    read: u64,
    /// The sessions that it has open, each with when it opened it.
    open: Vec<(Box<str>, Option<Time>)>,
    closed: Vec<Box<str>>,
    /// It has lines of the level at which sessions are logged.
    informs: bool,
    /// It is a server for editors, which does not log what it closes.
    is_for_editors: bool,
}

impl Log {
    /// Reads the whole log of a process that may have ended. `None` where it cannot be read.
    pub(super) fn whole(path: &Path) -> Option<Self> {
        let mut log = Self::default();
        log.read_from(&mut open(path).ok()?, None).ok()?;
        Some(log)
    }

    /// The sessions that the process has open, in the order in which it opened them, each with when it did.
    pub(super) fn open(&self) -> impl Iterator<Item = (&str, Option<Time>)> {
        self.open.iter().map(|(id, at)| (&**id, *at))
    }

    /// Whether the process closed this session.
    pub(super) fn closed(&self, id: &str) -> bool {
        self.closed.iter().any(|closed| **closed == *id)
    }

    /// Whether the log was found.
    pub(super) const fn exists(&self) -> bool {
        self.path.is_some()
    }

    /// Whether the log mentions any session.
    pub(super) fn has_entries(&self) -> bool {
        !self.open.is_empty() || !self.closed.is_empty()
    }

    /// Whether the process logs which sessions it loads, as far as its log shows.
    pub(super) const fn informs(&self) -> bool {
        self.informs
    }

    /// Whether the process is a server for editors, which may have closed any of the sessions that it logged.
    pub(super) const fn is_for_editors(&self) -> bool {
        self.is_for_editors
    }

    /// Reads what is new, until the deadline `until`. Returns whether the end was reached. A log that cannot be found
    /// or read counts as empty.
    pub(super) fn follow(&mut self, program: &Program, homes: &[PathBuf], until: Option<Instant>) -> bool {
        if self.path.is_none() {
            self.path = program.log.clone().or_else(|| homes.iter().find_map(|home| find(&home.join(LOGS), program)));
        }
        let Some(path) = &self.path else { return true };
        open(path).and_then(|mut file| self.read_from(&mut file, until)).unwrap_or_else(|error| {
            log::debug!(pid = private(&program.pid), "the log of a Copilot process cannot be read: {}", cause(&error));
            true
        })
    }

    /// Reads what is new, until the deadline `until`. Returns `false` only if certainly no session was opened or
    /// closed.
    pub(super) fn may_have_changed(&mut self, until: Option<Instant>) -> bool {
        let Some(path) = self.path.clone() else { return true };
        let before = (self.open.clone(), self.closed.clone());
        let complete = open(&path).and_then(|mut file| self.read_from(&mut file, until)).unwrap_or(false);
        !complete || before != (self.open.clone(), self.closed.clone())
    }

    /// Reads on. Returns whether the end was reached.
    fn read_from(&mut self, file: &mut File, until: Option<Instant>) -> io::Result<bool> {
        let length = file.metadata()?.len();
        if length < self.read {
            *self = Self { path: self.path.take(), ..Self::default() };
        }
        self.read = self.read.max(length.saturating_sub(TAIL_MAX));
        file.seek(SeekFrom::Start(self.read))?;
        let mut reader = BufReader::with_capacity(64 << 10, file.take(length - self.read));
        let mut line = Vec::new();
        for n in 1_u32.. {
            // Reading the clock takes as long as reading a line.
            if n.is_multiple_of(64) && until.is_some_and(|until| until <= Instant::now()) {
                return Ok(false);
            }
            line.clear();
            let count = reader.by_ref().take(LINE_MAX).read_until(b'\n', &mut line)? as u64;
            // A line that is still being written is read once it is complete.
            if count == 0 || !line.ends_with(b"\n") && count < LINE_MAX {
                break;
            }
            self.read += count;
            self.take(&line);
        }
        Ok(true)
    }

    fn take(&mut self, line: &[u8]) {
        self.informs |= line.get(STAMP..).is_some_and(|rest| rest.starts_with(b"[INFO] "));
        self.is_for_editors |= line.get(STAMP..).is_some_and(|rest| rest.starts_with(EDITORS));
        let warned = || warned(line).filter(|_| self.is_for_editors).map(|id| (id, true));
        let Some((id, opens)) = parse(line).or_else(warned) else { return };
        if opens {
            self.closed.retain(|other| **other != *id);
            // It is mentioned again each time that it comes to the foreground.
            if !self.open.iter().any(|(other, _)| **other == *id) {
                self.open.push((id.into(), Time::parse(&line[..STAMP - 1])));
            }
        } else {
            self.open.retain(|(other, _)| **other != *id);
            if !self.closed(id) {
                self.closed.push(id.into());
            }
        }
    }
}

/// The process id in `process-<milliseconds since 1970>-<pid>.log`.
pub(crate) fn log_pid(file_name: &str) -> Option<u32> {
    log_lock(file_name).map(|lock| lock.pid)
}

/// The process that a log's name identifies, in the form of a lock: its id, and a time at which it ran.
pub(super) fn log_lock(file_name: &str) -> Option<Lock> {
    let (at, pid) = file_name.strip_prefix("process-")?.strip_suffix(".log")?.split_once('-')?;
    Some(Lock { pid: pid.parse().ok()?, made: Time(at.parse().ok()?) })
}

/// Parses a line: the session, and whether it was opened (`true`) or closed.
fn parse(line: &[u8]) -> Option<(&str, bool)> {
    let text = std::str::from_utf8(line.get(STAMP..)?).ok()?;
    if line[STAMP - 2..STAMP] != *b"Z " || !line[0].is_ascii_digit() {
        return None;
    }
    let (rest, opens) = PREFIXES.iter().find_map(|(prefix, opens)| Some((text.strip_prefix(prefix)?, *opens)))?;
    let id = rest.split([' ', '\n', '\r']).next()?;
    is_uuid(id).then_some((id, opens))
}

/// The session that a warning names.
fn warned(line: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(line.get(STAMP..)?).ok()?.strip_prefix("[WARNING] ")?;
    let after = NAMED_AFTER.iter().find_map(|words| text.split_once(words)).map(|(_, after)| after)?;
    after.get(..UUID).filter(|id| is_uuid(id))
}

/// Finds the newest log of this process: `process-<milliseconds since 1970>-<pid>.log`. A log older than the process
/// belongs to an earlier process of the same id.
fn find(folder: &Path, program: &Program) -> Option<PathBuf> {
    let ending = format!("-{}.log", program.pid);
    let began =
        |name: &str| -> Option<Time> { name.strip_prefix("process-")?.strip_suffix(&*ending)?.parse().ok().map(Time) };
    let newest = |entry: fs::DirEntry| Some((began(entry.file_name().to_str()?)?, entry.path()));
    let (at, path) = fs::read_dir(folder).ok()?.flatten().filter_map(newest).max()?;
    program.started.is_none_or(|started| at + SLACK >= started).then_some(path)
}

/// Opens a log. Links are followed.
fn open(path: &Path) -> io::Result<File> {
    Ok(plain_file::open(path, Links::Followed)?.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: &str = "beabf016-0350-4b30-ae8f-181db7acd479";
    const B: &str = "09930f7c-0850-4aeb-88e2-3afa9e38248d";

    fn line(words: &str) -> String {
        format!("2026-11-22T01:02:18.498Z {words}\n")
    }

    fn opened(log: &mut Log, path: &Path) -> Vec<String> {
        assert!(log.read_from(&mut File::open(path).unwrap(), None).unwrap());
        log.open().map(|(id, _)| id.to_owned()).collect()
    }

    #[test]
    fn the_open_sessions_are_followed_as_a_log_grows() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("log");
        let mut log = Log::default();
        let mut text = line("[INFO] Starting") + &line(&format!("[INFO] Workspace initialized: {A} (checkpoints: 0)"));
        fs::write(&path, &text).unwrap();
        assert_eq!(opened(&mut log, &path), [A]);
        text += &line(&format!("[INFO] Unregistering foreground session: {A}"));
        text += &line(&format!("[INFO] Registering foreground session: {B}"));
        let half = line(&format!("[INFO] Closing session {A}"));
        fs::write(&path, text.clone() + &half[..half.len() - 9]).unwrap();
        assert_eq!(opened(&mut log, &path), [A, B], "both are loaded, and a partial line is not read");
        fs::write(&path, text.clone() + &half).unwrap();
        assert_eq!(opened(&mut log, &path), [B]);
        assert!(log.closed(A) && log.has_entries());
        text = line(&format!("[INFO] Workspace initialized: {A} (checkpoints: 0)"));
        fs::write(&path, &text).unwrap();
        assert_eq!(opened(&mut log, &path), [A], "the log was truncated and started again");
    }

    #[test]
    fn only_copilots_own_lines_count() {
        for not in [
            format!("Workspace initialized: {A}\n"),
            line(&format!("[DEBUG] said: [INFO] Workspace initialized: {A}")),
            line(&format!("[INFO] Workspace initialized: {}", &A[1..])),
            line("[INFO] Workspace initialized: "),
            format!("x026-11-22T01:02:18.498Z [INFO] Closing session {A}\n"),
            String::new(),
        ] {
            assert_eq!(parse(not.as_bytes()), None, "{not}");
        }
        assert_eq!(parse(b"2026-11-22T01:02:18.498Z \xff\n"), None);
        assert_eq!(parse(line(&format!("[INFO] Closing session {A}")).as_bytes()), Some((A, false)));
    }

    #[test]
    fn case_710_a_server_for_editors_names_its_sessions_in_warnings_alone() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("log");
        let warning = |id: &str| {
            line(&format!(
                "[WARNING] [rust:events_engine::host_delivery] event was not delivered to its registered session host \
                 {{\"error\":\"GenericFailure, no session host is registered for session {id}\"}}"
            ))
        };
        let hooks = line(&format!(
            "[WARNING] [rust:copilot_runtime::session] Failed to reload managed hooks after enabling managed settings \
             {{\"error\":\"no hook session for session id {B}\"}}"
        ));
        let begins = line("[INFO] Starting ACP server (stdio)");
        fs::write(&path, begins.clone() + &warning(A) + &warning(A) + &hooks + &warning("x")).unwrap();
        let mut log = Log::default();
        assert_eq!(opened(&mut log, &path), [A, B]);
        assert!(log.is_for_editors());
        fs::write(&path, warning(A)).unwrap();
        let mut other = Log::default();
        assert!(opened(&mut other, &path).is_empty(), "any other says so itself");
        let failed =
            format!("[ERROR] [rust:acp::connection] ACP request failed {{\"error\":\"Session {A} not found\"}}");
        fs::write(&path, begins + &line(&failed)).unwrap();
        assert!(opened(&mut Log::default(), &path).is_empty(), "it was not loaded");
    }

    #[test]
    fn reading_a_long_log_resumes_where_the_deadline_stopped_it() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("log");
        let text = line("[INFO] on and on").repeat(10_000) + &line(&format!("[INFO] Resumed session: {A}"));
        fs::write(&path, text).unwrap();
        let (mut log, mut slices) = (Log::default(), 1);
        while !log.read_from(&mut File::open(&path).unwrap(), Some(Instant::now())).unwrap() {
            slices += 1;
        }
        assert!(slices > 100, "{slices}");
        assert_eq!(log.open().collect::<Vec<_>>(), [(A, Time::parse(b"2026-11-22T01:02:18.498Z"))]);
    }

    #[test]
    fn a_long_line_is_skipped_and_of_a_long_log_only_the_end_is_read() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("log");
        let long = "x".repeat(LINE_MAX as usize * 3 + 7) + "\n";
        fs::write(&path, long + &line(&format!("[INFO] Resumed session: {A}"))).unwrap();
        assert_eq!(opened(&mut Log::default(), &path), [A]);
        let file = File::options().append(true).open(&path).unwrap();
        file.set_len(TAIL_MAX * 1024).unwrap(); // a hole
        let mut log = Log { read: TAIL_MAX * 1023, ..Log::default() };
        assert!(opened(&mut log, &path).is_empty());
    }
}
