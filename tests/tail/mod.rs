//! One log, read as it grows, is cut, replaced and broken: each case on a real file, through the same reader that the program
//! uses.

mod cut;
#[cfg(unix)]
mod edits;
mod pieces;

use pilotlight::agent::copilot::tail::{Found, Look, Tail};
use pilotlight::core::limits::Limits;
use pilotlight::core::owner::Owner;
use pilotlight::core::session::Facts;
use pilotlight::core::time::{Moment, Span, Time};
use pilotlight::core::verdict::{Live, Status, judge};
use proptest::prelude::*;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::PathBuf;
use std::time::Instant;
use tempfile::TempDir;

/// When the made-up logs begin.
const START: Time = Time(1_790_000_000_000);

/// A log on disk, and the reader that follows it.
struct Log {
    folder: TempDir,
    tail: Tail,
    facts: Facts,
    limits: Limits,
    now: Moment,
    lines: u32,
}

impl Log {
    fn new() -> Self {
        let (folder, tail) = (tempfile::tempdir().unwrap(), Tail::default());
        Self { folder, tail, facts: Facts::default(), limits: Limits::default(), now: Moment::of(START), lines: 0 }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("events.jsonl")
    }

    /// A line as Copilot writes it, a second after the last one.
    fn line(&mut self, kind: &str, data: &str) -> Vec<u8> {
        self.lines += 1;
        let (n, at) = (self.lines, START + Span::seconds(self.lines.into()));
        let parent = if n == 1 { "null".to_owned() } else { format!("\"id-{}\"", n - 1) };
        format!(
            "{{\"type\":\"{kind}\",\"data\":{data},\"id\":\"id-{n}\",\"timestamp\":\"{at}\",\"parentId\":{parent}}}\n"
        )
        .into()
    }

    fn append(&self, bytes: &[u8]) {
        OpenOptions::new().append(true).create(true).open(self.path()).unwrap().write_all(bytes).unwrap();
    }

    fn say(&mut self, kind: &str, data: &str) {
        let line = self.line(kind, data);
        self.append(&line);
    }

    fn prompt(&mut self) {
        self.say("user.message", r#"{"content":"do it","delivery":"idle"}"#);
    }

    fn tool(&mut self, call: &str) {
        self.say(
            "tool.execution_start",
            &format!(r#"{{"toolCallId":"{call}","toolName":"bash","arguments":{{"command":"x"}}}}"#),
        );
    }

    fn answer(&mut self) {
        self.say("assistant.message", r#"{"content":"Done.","toolRequests":[]}"#);
        self.say("assistant.turn_end", "{}");
    }

    /// When the last line was written.
    fn time(&self) -> Time {
        START + Span::seconds(self.lines.into())
    }

    /// Says of the file that it was written then.
    fn dated(&self, at: Time) {
        let at = std::time::UNIX_EPOCH + at.0.try_into().map(std::time::Duration::from_millis).unwrap();
        File::options().append(true).open(self.path()).unwrap().set_modified(at).unwrap();
    }

    fn read(&mut self) -> Result<Found, String> {
        self.read_until(None)
    }

    /// Reads as little as can be.
    fn slice(&mut self) -> Result<Found, String> {
        self.read_until(Some(Instant::now()))
    }

    fn read_until(&mut self, until: Option<Instant>) -> Result<Found, String> {
        self.now = Moment::of(self.time());
        let look = Look { now: self.now, limits: &self.limits, until };
        let (path, buffer) = (self.path(), &mut Vec::new());
        self.tail.read(&path, &mut self.facts, look, buffer).map_err(|error| error.to_string())
    }

    /// Reads to the end, as little as can be at a time; how often.
    fn read_in_slices(&mut self) -> u32 {
        (1..).find(|_| self.slice().unwrap() != Found::More).unwrap()
    }

    fn status(&mut self) -> Status {
        self.read().unwrap();
        let owner = Owner::Alive { pid: 1, started: None };
        judge(&self.facts, &owner, &Live::default(), None, self.now, &self.limits).status
    }

    /// What a reader that comes now makes of the log.
    fn facts_afresh(&self) -> Facts {
        let mut facts = Facts::default();
        let look = Look { now: self.now, limits: &self.limits, until: None };
        Tail::default().read(&self.path(), &mut facts, look, &mut Vec::new()).unwrap();
        facts
    }
}

/// Case 65 (PP#402): the tail is read as far back as needed.
#[test]
fn case_65_a_last_line_of_any_length_is_read() {
    for length in [50_000, 430_000, 20_000_000] {
        let mut log = Log::new();
        log.prompt();
        log.tool("call_1");
        let long =
            format!(r#"{{"toolCallId":"call_1","success":true,"result":{{"content":"{}"}}}}"#, "x".repeat(length));
        log.say("tool.execution_complete", &long);
        assert_eq!(log.status(), Status::Working, "{length}");
        assert_eq!(log.facts.skipped, 0, "{length}");
        let turn = log.facts.turn.as_ref().unwrap();
        assert!(turn.tools.is_empty() && turn.used == 1, "the completion was read, {length}");
        log.answer();
        assert_eq!(log.status(), Status::Idle, "{length}");
    }
}

/// Case 76 (PP#426): half a line is progress; case 83 (UP): it is waited for.
#[test]
fn cases_76_and_83_half_a_line_is_progress_and_is_waited_for() {
    let mut log = Log::new();
    log.prompt();
    log.tool("call_1");
    assert_eq!(log.status(), Status::Working);
    let line = log.line("tool.execution_complete", r#"{"toolCallId":"call_1","success":true}"#);
    let (half, rest) = line.split_at(40);
    log.append(half);
    log.lines += 30;
    assert_eq!(log.read(), Ok(Found::Grown));
    assert_eq!(log.facts.progress, Some(log.now), "its arrival is progress");
    assert_eq!((log.facts.turn.as_ref().unwrap().tools.len(), log.facts.skipped), (1, 0));
    log.append(rest);
    log.read().unwrap();
    assert!(log.facts.turn.as_ref().unwrap().tools.is_empty(), "its end completes it");
    assert_eq!(log.facts.skipped, 0);
}

/// Case 75 (PP#426): a fresh mtime without growth is no progress, also where the clocks were set since.
#[test]
fn case_75_a_touched_file_is_no_progress() {
    let mut log = Log::new();
    log.prompt();
    log.read().unwrap();
    let progress = log.facts.progress;
    log.lines += 130;
    log.dated(log.time() + Span::seconds(3600));
    log.read().unwrap();
    assert_eq!(log.facts.progress, progress);
    assert_eq!(log.status(), Status::Stuck);
}

/// Case 140: rewritten in place, as long as it was and with the same end, a log is what it is now.
#[test]
fn case_140_a_log_that_is_rewritten_with_its_length_and_its_end_is_read_anew() {
    let mut log = Log::new();
    log.prompt();
    log.say("assistant.message", r#"{"content":"Done.","toolRequests":[]}"#);
    log.say("assistant.turn_end", "{}");
    log.say("session.info", r#"{"message":"the end of it stays as it is, and is longer than a mark"}"#);
    assert_eq!(log.status(), Status::Idle);
    let answered = fs::read(log.path()).unwrap();
    let text = String::from_utf8(answered.clone()).unwrap();
    let unanswered = text.replacen("assistant.turn_end\",\"data\":{}", "assistant.intent\",\"data\":{  }", 1);
    assert_eq!(unanswered.len(), answered.len());
    for _ in 0..20 {
        // At once, within a tick of the clock of files, and a good while later.
        for wait in [0, 0, 30] {
            #[expect(clippy::disallowed_methods, reason = "the clock of files has to go on")]
            std::thread::sleep(std::time::Duration::from_millis(wait));
            fs::write(log.path(), &unanswered).unwrap();
            assert_eq!(log.status(), Status::Finishing, "{:?}", log.facts);
            fs::write(log.path(), &answered).unwrap();
            assert_eq!(log.status(), Status::Idle);
            assert_eq!(log.status(), Status::Idle, "and that is told again");
        }
    }
}

/// Case 141: an event is no newer than the file that it stands in.
#[test]
fn case_141_an_event_is_no_newer_than_its_file() {
    let mut log = Log::new();
    log.prompt();
    let written = log.time();
    log.lines += 7200;
    log.prompt();
    log.dated(written);
    log.lines = 5400;
    assert_eq!(log.status(), Status::Stuck);
    assert_eq!(log.facts.progress, Some(Moment::of(written)));
    // A blink is no lie: the clock of files is a little behind.
    let mut log = Log::new();
    log.prompt();
    log.dated(log.time() - Span::seconds(1));
    log.read().unwrap();
    assert_eq!(log.facts.progress, Some(Moment::of(log.time())));
}

/// Case 134: whatever a log is, a reading that is to be over reads one block, and is continued where it broke off.
#[test]
fn case_134_a_reading_that_is_broken_off_goes_on_where_it_was() {
    let mut log = Log::new();
    for _ in 0..3 {
        log.prompt();
        log.tool("call_1");
        let long =
            format!(r#"{{"toolCallId":"call_1","success":true,"result":{{"content":"{}"}}}}"#, "x".repeat(300_000));
        log.say("tool.execution_complete", &long);
    }
    assert!(log.read_in_slices() > 4, "it is longer than a block");
    assert_eq!(log.facts, log.facts_afresh());
    // What it grows by, too; and while it is rewritten, what was known stands.
    let before = log.facts.clone();
    log.say("session.info", &format!(r#"{{"message":"{}"}}"#, "x".repeat(300_000)));
    log.answer();
    assert!(log.read_in_slices() > 4);
    assert!(log.facts != before && log.facts.turn.is_none());
    let before = log.facts.clone();
    log.prompt();
    log.say("session.info", &format!(r#"{{"message":"{}"}}"#, "x".repeat(300_000)));
    let text = fs::read(log.path()).unwrap();
    let beside = log.folder.path().join("beside");
    fs::write(&beside, text).unwrap();
    fs::rename(beside, log.path()).unwrap();
    assert_eq!(log.slice(), Ok(Found::More));
    assert_eq!(log.facts, before);
    log.read_in_slices();
    assert_eq!(log.facts, log.facts_afresh());
}

/// Only what is longer than a block is broken off: a machine that has no time for us does not make a log long.
#[test]
fn a_log_of_one_block_is_read_whole_however_late_it_is() {
    let mut log = Log::new();
    log.prompt();
    assert_eq!(log.slice(), Ok(Found::Grown));
    assert_eq!(log.facts, log.facts_afresh());
    log.answer();
    assert_eq!(log.slice(), Ok(Found::Grown));
    assert_eq!(log.facts, log.facts_afresh());
}

/// An event that is dated ahead of us is one of now. That says nothing of our clocks: rewritten, its log is dated as ever.
#[test]
fn a_log_whose_last_event_came_early_is_rewritten() {
    let mut log = Log::new();
    log.prompt();
    let look = |log: &mut Log, now| {
        log.dated(log.time());
        log.now = Moment::of(now);
        let (path, look) = (log.path(), Look { now: log.now, limits: &log.limits, until: None });
        log.tail.read(&path, &mut log.facts, look, &mut Vec::new()).unwrap();
    };
    let early = log.time() - Span(500);
    look(&mut log, early);
    let text = fs::read_to_string(log.path()).unwrap();
    fs::write(log.path(), text.replace("do it", "do so")).unwrap();
    let later = log.time() + Span::seconds(10);
    look(&mut log, later);
    assert_eq!(log.facts.progress, Some(Moment::of(log.time())));
    assert_eq!(log.facts, log.facts_afresh());
}

/// Case 134: a log that has become endless is read from its end, as one who comes now reads it; it is what it was when it is
/// cut again.
#[test]
#[cfg(target_os = "linux")]
fn case_134_a_log_of_a_terabyte_is_read_from_its_end() {
    let mut log = Log::new();
    log.prompt();
    assert_eq!(log.status(), Status::Working);
    let (file, length) =
        (File::options().write(true).open(log.path()).unwrap(), fs::metadata(log.path()).unwrap().len());
    file.set_len(1 << 40).unwrap();
    assert!(log.read_in_slices() <= 2 * 1024 + 8, "64 MB backwards, and forwards");
    assert!(log.tail.is_inside_line() && log.facts.turn.is_none());
    log.append(b"\n");
    log.prompt();
    assert_eq!(log.status(), Status::Working);
    assert!(!log.tail.is_inside_line());
    file.set_len(length).unwrap();
    assert_eq!(log.status(), Status::Working);
    assert_eq!(log.facts, log.facts_afresh());
}

/// Case 84 (UP): what is broken is skipped and counted, later lines are read.
#[test]
fn case_84_broken_lines_are_counted_and_passed() {
    let broken: [&[u8]; 9] = [
        b"\0\0\0\0\0\0\n",
        b"{\"type\":\"user.message\",\"data\":{\n",
        b"\xff\xfe\xfd\n",
        b"not json at all\n",
        b"[]\n",
        b"{\"type\":5,\"data\":{},\"timestamp\":\"2026-11-20T18:07:25.003Z\"}\n",
        b"{\"type\":\"abort\",\"data\":{},\"timestamp\":1234}\n",
        b"{\"type\":\"tool.execution_start\",\"data\":{\"toolCallId\":7},\"id\":\"x\",\"timestamp\":\"2026-11-20T18:07:25.003Z\",\"parentId\":null}\n",
        "{\"type\":\"abort\u{2028}\n".as_bytes(),
    ];
    for bytes in broken {
        let mut log = Log::new();
        log.prompt();
        log.append(bytes);
        assert_eq!(log.status(), Status::Working, "{}", String::from_utf8_lossy(bytes));
        assert_eq!(log.facts.skipped, 1, "{}", String::from_utf8_lossy(bytes));
        log.answer();
        assert_eq!(log.status(), Status::Idle);
    }
}

/// Case 84 (UP): CRLF, U+2028 inside strings, invalid UTF-8 inside strings and unknown types are no reason to skip.
#[test]
fn case_84_odd_lines_are_read() {
    let mut log = Log::new();
    log.prompt();
    let mut line = log.line("assistant.message", "{\"content\":\"a\u{2028}b\",\"toolRequests\":[]}");
    line.insert(line.len() - 1, b'\r');
    log.append(&line);
    log.say("brand.new_event", r#"{"anything":[1,2,{"type":"abort"}]}"#);
    let line =
        log.line("tool.execution_complete", "{\"toolCallId\":\"c\",\"success\":true,\"result\":{\"content\":\"?\"}}");
    log.append(&line.iter().map(|&byte| if byte == b'?' { 0xff } else { byte }).collect::<Vec<_>>());
    log.say("assistant.turn_end", "{}");
    assert_eq!(log.status(), Status::Idle);
    assert_eq!((log.facts.skipped, log.facts.events), (0, 5));
}

/// Case 84 (UP): a writer that died in the middle of a line does not swallow the next one.
#[test]
fn case_84_a_line_behind_a_torn_one_is_read() {
    for torn in [
        &b"{\"type\":\"assistant.message\",\"data\":{\"content\":\"half a sen"[..],
        b"\0\0\0\0\0\0\0\0",
        b"\xef\xbb\xbf",
    ] {
        let mut log = Log::new();
        log.prompt();
        log.append(torn);
        log.say("abort", r#"{"reason":"user_initiated"}"#);
        assert_eq!(log.status(), Status::Idle, "{}", String::from_utf8_lossy(torn));
        assert_eq!(log.facts.skipped, 0);
    }
}

/// Case 85 (UP): the same line twice counts once.
#[test]
fn case_85_a_repeated_line_counts_once() {
    let mut log = Log::new();
    log.prompt();
    let start = log.line("tool.execution_start", r#"{"toolCallId":"c","toolName":"bash"}"#);
    let done = log.line("tool.execution_complete", r#"{"toolCallId":"c","success":true}"#);
    for line in [&start, &start, &done, &start, &done] {
        log.append(line);
    }
    log.read().unwrap();
    let turn = log.facts.turn.as_ref().unwrap();
    assert_eq!((turn.used, turn.succeeded, turn.tools.len()), (1, 1, 0));
}

/// Case 86 (UP): cut, replaced, rewritten, deleted, made again.
#[test]
fn case_86_a_log_that_is_not_the_one_it_was_is_read_afresh() {
    let mut log = Log::new();
    log.prompt();
    log.tool("call_1");
    assert_eq!(log.status(), Status::Working);
    let longer = fs::read(log.path()).unwrap();

    // A history truncation: another file, with fewer lines, takes its name.
    let mut other = Log::new();
    other.prompt();
    other.answer();
    fs::rename(other.path(), log.path()).unwrap();
    assert_eq!(log.status(), Status::Idle, "replaced by rename");
    assert!(log.facts.turn.is_none());

    // Cut in place.
    fs::write(log.path(), &longer).unwrap();
    assert_eq!(log.status(), Status::Working, "rewritten in place");
    File::options().write(true).open(log.path()).unwrap().set_len(0).unwrap();
    log.read().unwrap();
    assert_eq!(log.facts.progress, None, "cut to nothing");

    // Rewritten in place between two looks, and longer than before.
    fs::write(log.path(), &longer[..longer.len() / 2]).unwrap();
    log.read().unwrap();
    let mut longest = Log::new();
    longest.prompt();
    longest.say("session.info", &format!(r#"{{"message":"{}"}}"#, "x".repeat(5000)));
    longest.answer();
    fs::copy(longest.path(), log.path()).unwrap();
    assert_eq!(log.status(), Status::Idle, "rewritten, and longer");

    fs::remove_file(log.path()).unwrap();
    assert_eq!(log.read(), Ok(Found::Absent));
    assert_eq!(log.facts, Facts::default(), "nothing outlives the log");
    fs::write(log.path(), &longer).unwrap();
    assert_eq!(log.status(), Status::Working, "made again");
}

/// Case 88 (UP): what is no file is named, never followed, never waited for.
#[cfg(unix)]
#[test]
fn case_88_what_is_no_file_is_left_alone() {
    let log = || {
        let log = Log::new();
        let path = log.path();
        (log, path)
    };
    let (mut a_folder, path) = log();
    fs::create_dir(path).unwrap();
    assert!(a_folder.read().unwrap_err().contains("a folder"));

    let (mut link, path) = log();
    let elsewhere = link.folder.path().join("elsewhere");
    fs::write(&elsewhere, "{}").unwrap();
    std::os::unix::fs::symlink(elsewhere, path).unwrap();
    assert!(link.read().unwrap_err().contains("a symbolic link"));

    let (mut pipe, path) = log();
    rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR, 0).unwrap();
    assert!(pipe.read().unwrap_err().contains("a pipe"));

    let (mut missing, _) = log();
    assert_eq!(missing.read(), Ok(Found::Absent));
}

/// Case 89 (UP): a line of 2 GB costs neither memory nor time; what comes after it is read. The file is sparse: the line
/// is a hole.
#[test]
#[cfg(target_os = "linux")]
fn case_89_a_line_of_2_gb_is_passed_over() {
    let mut log = Log::new();
    log.prompt();
    log.append(br#"{"type":"tool.execution_start","data":{"toolCallId":"c","toolName":"bash","x":""#);
    File::options().write(true).open(log.path()).unwrap().set_len(2 << 30).unwrap();
    log.read().unwrap();
    log.append(b"\"}}\n");
    log.read().unwrap();
    log.prompt();
    assert_eq!(log.status(), Status::Working);
    log.answer();
    assert_eq!(log.status(), Status::Idle);
    let peak = fs::read_to_string("/proc/self/status").unwrap();
    let peak =
        peak.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap().trim().trim_end_matches(" kB").to_owned();
    assert!(peak.parse::<u64>().unwrap() < 256 << 10, "peak memory {peak} kB, of all tests of this file");
}

/// Case 28 (PP#230), on disk: where the beginning of the turn is cut off, that is said.
#[test]
fn case_28_a_log_cut_at_its_front_says_so() {
    let mut log = Log::new();
    log.say("assistant.turn_start", "{}");
    log.lines += 700;
    log.read().unwrap();
    let owner = Owner::Alive { pid: 1, started: None };
    let verdict = judge(&log.facts, &owner, &Live::default(), None, log.now, &log.limits);
    assert_eq!(verdict.status, Status::Stuck);
    assert!(verdict.because.contains("start of its turn is unknown"), "{}", verdict.because);
}

/// On disk: what is read from its end reaches back 64 MiB. Where the tools' starts lie beyond, their denials count all the same.
#[test]
fn case_148_denials_whose_starts_lie_too_far_back_count() {
    let mut log = Log::new();
    log.prompt();
    for call in ["a", "b", "c"] {
        log.tool(call);
    }
    let line = log.line("session.info", r#"{"message":""}"#);
    let at = line.windows(11).position(|bytes| bytes == br#""message":""#).unwrap();
    log.append(&line[..at + 11]);
    let mebibyte = vec![b'x'; 1 << 20];
    for _ in 0..65 {
        log.append(&mebibyte);
    }
    log.append(&line[at + 11..]);
    for call in ["a", "b", "c"] {
        let message = "Permission denied because no interactive user response was available.";
        let error = format!(r#"{{"code":"denied","message":"{message}"}}"#);
        log.say("tool.execution_complete", &format!(r#"{{"toolCallId":"{call}","success":false,"error":{error}}}"#));
    }
    assert_eq!(log.status(), Status::PermissionLost);
    assert_eq!((log.facts.events, log.facts.whole), (3, false), "what lies beyond was not read");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// However a log arrives, in whatever pieces, the facts are those of the log.
    #[test]
    fn any_pieces_give_the_same_facts(cuts in proptest::collection::vec(1usize..2000, 0..40)) {
        let recording = include_bytes!(
            "../traces/07-resume-after-sigkill-then-send/80d93c19-a6a9-4bb4-8313-f7c19f88f049/events.jsonl"
        );
        let mut log = Log::new();
        let mut rest = &recording[..];
        for cut in cuts {
            let (piece, after) = rest.split_at(cut.min(rest.len()));
            log.append(piece);
            log.read().unwrap();
            rest = after;
        }
        log.append(rest);
        log.read().unwrap();
        let afresh = log.facts_afresh();
        prop_assert_eq!(&log.facts.turn, &afresh.turn);
        prop_assert_eq!(&log.facts.closed, &afresh.closed);
        prop_assert_eq!(&log.facts.model, &afresh.model);
        prop_assert_eq!(log.facts.skipped, 0);
    }
}

/// A log read backwards, from its end, gives the verdict of the same log read from its beginning.
#[test]
fn reading_backwards_gives_what_reading_forwards_gives() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/traces");
    for folder in fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()) {
        let session =
            fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).find(|path| path.is_dir()).unwrap();
        let recording = fs::read(session.join("events.jsonl")).unwrap();
        let mut forwards = Log::new();
        for line in recording.split_inclusive(|&byte| byte == b'\n') {
            forwards.append(line);
            forwards.read().unwrap();
            let backwards = forwards.facts_afresh();
            let kept =
                |facts: &Facts| (facts.turn.clone(), facts.closed.clone(), facts.requests.clone(), facts.progress);
            assert_eq!(kept(&forwards.facts), kept(&backwards), "{}", folder.display());
        }
    }
}
