//! One log that grows, is cut, replaced and damaged: each case on a real file, with the program's own reader.

mod cut;
#[cfg(unix)]
mod edits;
mod pieces;

use pilotlight_agents::copilot::log_format::LOG_FORMAT;
use pilotlight_agents::tail::{ReadContext, ReadOutcome, Tail};
use pilotlight_core::facts::Facts;
use pilotlight_core::limits::Limits;
use pilotlight_core::owner::Owner;
use pilotlight_core::time::{Moment, Span, Time};
use pilotlight_core::verdict::{Liveness, Observations, Status, judge};
use proptest::prelude::*;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::PathBuf;
use std::time::Instant;
use tempfile::TempDir;

/// The start of the made-up logs.
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

    fn write(&mut self, kind: &str, data: &str) {
        let line = self.line(kind, data);
        self.append(&line);
    }

    fn prompt(&mut self) {
        self.write("user.message", r#"{"content":"do it","delivery":"idle"}"#);
    }

    fn tool(&mut self, call: &str) {
        self.write(
            "tool.execution_start",
            &format!(r#"{{"toolCallId":"{call}","toolName":"bash","arguments":{{"command":"x"}}}}"#),
        );
    }

    fn answer(&mut self) {
        self.write("assistant.message", r#"{"content":"Done.","toolRequests":[]}"#);
        self.write("assistant.turn_end", "{}");
    }

    /// The time of the last line.
    fn time(&self) -> Time {
        START + Span::seconds(self.lines.into())
    }

    /// Sets the time of the file's last write.
    fn set_modified(&self, at: Time) {
        let at = std::time::UNIX_EPOCH + at.0.try_into().map(std::time::Duration::from_millis).unwrap();
        File::options().append(true).open(self.path()).unwrap().set_modified(at).unwrap();
    }

    fn read(&mut self) -> Result<ReadOutcome, String> {
        self.read_until(None)
    }

    /// Reads the smallest slice.
    fn read_slice(&mut self) -> Result<ReadOutcome, String> {
        self.read_until(Some(Instant::now()))
    }

    fn read_until(&mut self, until: Option<Instant>) -> Result<ReadOutcome, String> {
        self.now = Moment::of(self.time());
        let context = ReadContext { now: self.now, limits: &self.limits, until };
        let (path, buffer) = (self.path(), &mut Vec::new());
        self.tail.read(&LOG_FORMAT, &path, &mut self.facts, context, buffer).map_err(|error| error.to_string())
    }

    /// Reads to the end in the smallest slices. Returns their number.
    fn read_in_slices(&mut self) -> u32 {
        (1..).find(|_| self.read_slice().unwrap() != ReadOutcome::More).unwrap()
    }

    fn status(&mut self) -> Status {
        self.read().unwrap();
        let owner = Owner::Alive { pid: 1, started: None };
        judge(Observations::by_log(&self.facts), &owner, &Liveness::default(), None, self.now, &self.limits).status
    }

    /// The facts of a new reader.
    fn fresh_facts(&self) -> Facts {
        let mut facts = Facts::default();
        let context = ReadContext { now: self.now, limits: &self.limits, until: None };
        Tail::default().read(&LOG_FORMAT, &self.path(), &mut facts, context, &mut Vec::new()).unwrap();
        facts
    }
}

/// The log is read as far back as needed.
#[test]
fn case_65_a_last_line_of_any_length_is_read() {
    for length in [50_000, 430_000, 20_000_000] {
        let mut log = Log::new();
        log.prompt();
        log.tool("call_1");
        let long =
            format!(r#"{{"toolCallId":"call_1","success":true,"result":{{"content":"{}"}}}}"#, "x".repeat(length));
        log.write("tool.execution_complete", &long);
        assert_eq!(log.status(), Status::Working, "{length}");
        assert_eq!(log.facts.skipped, 0, "{length}");
        let turn = log.facts.turn.as_ref().unwrap();
        assert!(turn.tools.is_empty() && turn.used == 1, "the completion was read, {length}");
        log.answer();
        assert_eq!(log.status(), Status::Idle, "{length}");
    }
}

#[test]
fn cases_76_and_83_half_a_line_is_progress_and_is_completed_later() {
    let mut log = Log::new();
    log.prompt();
    log.tool("call_1");
    assert_eq!(log.status(), Status::Working);
    let line = log.line("tool.execution_complete", r#"{"toolCallId":"call_1","success":true}"#);
    let (half, rest) = line.split_at(40);
    log.append(half);
    log.lines += 30;
    assert_eq!(log.read(), Ok(ReadOutcome::Grown));
    assert_eq!(log.facts.progress, Some(log.now), "its arrival is progress");
    assert_eq!((log.facts.turn.as_ref().unwrap().tools.len(), log.facts.skipped), (1, 0));
    log.append(rest);
    log.read().unwrap();
    assert!(log.facts.turn.as_ref().unwrap().tools.is_empty(), "its end completes it");
    assert_eq!(log.facts.skipped, 0);
}

/// Even if the clock was set.
#[test]
fn case_75_a_touched_file_is_no_progress() {
    let mut log = Log::new();
    log.prompt();
    log.read().unwrap();
    let progress = log.facts.progress;
    log.lines += 130;
    log.set_modified(log.time() + Span::seconds(3600));
    log.read().unwrap();
    assert_eq!(log.facts.progress, progress);
    assert_eq!(log.status(), Status::Stuck);
}

#[test]
fn case_140_a_log_rewritten_with_the_same_length_and_end_is_read_from_scratch() {
    let mut log = Log::new();
    log.prompt();
    log.write("assistant.message", r#"{"content":"Done.","toolRequests":[]}"#);
    log.write("assistant.turn_end", "{}");
    log.write("session.info", r#"{"message":"the end stays the same, and is longer than what is compared"}"#);
    assert_eq!(log.status(), Status::Idle);
    let answered = fs::read(log.path()).unwrap();
    let text = String::from_utf8(answered.clone()).unwrap();
    let unanswered = text.replacen("assistant.turn_end\",\"data\":{}", "assistant.intent\",\"data\":{  }", 1);
    assert_eq!(unanswered.len(), answered.len());
    for _ in 0..20 {
        // At once, within a tick of the clock of file times, and after it.
        for wait in [0, 0, 30] {
            #[expect(clippy::disallowed_methods, reason = "the clock of file times has to advance")]
            std::thread::sleep(std::time::Duration::from_millis(wait));
            fs::write(log.path(), &unanswered).unwrap();
            assert_eq!(log.status(), Status::Finishing, "{:?}", log.facts);
            fs::write(log.path(), &answered).unwrap();
            assert_eq!(log.status(), Status::Idle);
            assert_eq!(log.status(), Status::Idle, "and again without a change");
        }
    }
}

/// Given: a schedule and a background shell from before the last prompt, in a log that may have been rewritten, by its times
/// alone. -> Both stay known. Where the last turn is another one, neither is.
#[test]
fn case_830_what_outlives_a_turn_stays_known_of_a_log_that_is_read_again() {
    let mut log = Log::new();
    log.prompt();
    log.write("session.schedule_created", r#"{"id":1,"intervalMs":3600000,"prompt":"look"}"#);
    log.write(
        "tool.execution_start",
        r#"{"toolCallId":"s1","toolName":"bash","arguments":{"command":"x","mode":"async"}}"#,
    );
    log.write("tool.execution_complete", r#"{"toolCallId":"s1","success":true}"#);
    log.answer();
    log.read().unwrap();
    // Longer than a sub-agent may work in the background: a log is read at least as far back as that.
    log.lines += 1300;
    log.prompt();
    log.read().unwrap();
    log.set_modified(log.time() + Span::minutes(30));
    log.read().unwrap();
    log.answer();
    log.read().unwrap();
    let known = |facts: &Facts| (facts.wakes_at(None).is_some(), facts.shells.len());
    assert_eq!((known(&log.facts), known(&log.fresh_facts())), ((true, 1), (false, 0)), "it is in no last turn");
    for hours in 1..4 {
        log.set_modified(log.time() + Span::hours(hours));
        assert_eq!(log.read(), Ok(ReadOutcome::Grown), "it is read again");
        assert_eq!(known(&log.facts), (true, 1));
    }
    let text = fs::read_to_string(log.path()).unwrap();
    let (before, turn) = text.rsplit_once("user.message").unwrap();
    let turn = turn.replacen("\"id\":\"id-", "\"id\":\"ID-", 1);
    fs::write(log.path(), format!("{before}user.message{turn}")).unwrap();
    log.read().unwrap();
    assert_eq!(known(&log.facts), known(&log.fresh_facts()));
}

#[test]
fn case_141_an_event_is_no_newer_than_its_file() {
    let mut log = Log::new();
    log.prompt();
    let written = log.time();
    log.lines += 7200;
    log.prompt();
    log.set_modified(written);
    log.lines = 5400;
    assert_eq!(log.status(), Status::Stuck);
    assert_eq!(log.facts.progress, Some(Moment::of(written)));
    // A small difference is normal: the clock of file times is slightly behind.
    let mut log = Log::new();
    log.prompt();
    log.set_modified(log.time() - Span::seconds(1));
    log.read().unwrap();
    assert_eq!(log.facts.progress, Some(Moment::of(log.time())));
}

/// A read past its deadline reads one block.
#[test]
fn case_134_an_interrupted_read_continues_where_it_stopped() {
    let mut log = Log::new();
    for _ in 0..3 {
        log.prompt();
        log.tool("call_1");
        let long =
            format!(r#"{{"toolCallId":"call_1","success":true,"result":{{"content":"{}"}}}}"#, "x".repeat(300_000));
        log.write("tool.execution_complete", &long);
    }
    assert!(log.read_in_slices() > 4, "it is longer than a block");
    assert_eq!(log.facts, log.fresh_facts());
    // The same for what is appended. While a replaced log is read, the previous facts stay in force.
    let before = log.facts.clone();
    log.write("session.info", &format!(r#"{{"message":"{}"}}"#, "x".repeat(300_000)));
    log.answer();
    assert!(log.read_in_slices() > 4);
    assert!(log.facts != before && log.facts.turn.is_none());
    let before = log.facts.clone();
    log.prompt();
    log.write("session.info", &format!(r#"{{"message":"{}"}}"#, "x".repeat(300_000)));
    let text = fs::read(log.path()).unwrap();
    let temporary = log.folder.path().join("temporary");
    fs::write(&temporary, text).unwrap();
    fs::rename(temporary, log.path()).unwrap();
    assert_eq!(log.read_slice(), Ok(ReadOutcome::More));
    assert_eq!(log.facts, before);
    log.read_in_slices();
    assert_eq!(log.facts, log.fresh_facts());
}

/// Only longer ones are interrupted.
#[test]
fn a_log_of_one_block_is_read_completely_even_past_the_deadline() {
    let mut log = Log::new();
    log.prompt();
    assert_eq!(log.read_slice(), Ok(ReadOutcome::Grown));
    assert_eq!(log.facts, log.fresh_facts());
    log.answer();
    assert_eq!(log.read_slice(), Ok(ReadOutcome::Grown));
    assert_eq!(log.facts, log.fresh_facts());
}

/// An event dated in the future counts as of now, but the offset of the clocks that results must not outlive a rewrite.
#[test]
fn a_rewritten_log_whose_last_event_was_dated_ahead_has_correct_times() {
    let mut log = Log::new();
    log.prompt();
    let read = |log: &mut Log, now| {
        log.set_modified(log.time());
        log.now = Moment::of(now);
        let (path, context) = (log.path(), ReadContext { now: log.now, limits: &log.limits, until: None });
        log.tail.read(&LOG_FORMAT, &path, &mut log.facts, context, &mut Vec::new()).unwrap();
    };
    let early = log.time() - Span(500);
    read(&mut log, early);
    let text = fs::read_to_string(log.path()).unwrap();
    fs::write(log.path(), text.replace("do it", "do so")).unwrap();
    let later = log.time() + Span::seconds(10);
    read(&mut log, later);
    assert_eq!(log.facts.progress, Some(Moment::of(log.time())));
    assert_eq!(log.facts, log.fresh_facts());
}

/// As by a new reader. When it is cut back, it is what it was before.
#[test]
#[cfg(target_os = "linux")]
fn case_134_a_log_of_a_terabyte_is_read_from_its_end() {
    let mut log = Log::new();
    log.prompt();
    assert_eq!(log.status(), Status::Working);
    let (file, length) =
        (File::options().write(true).open(log.path()).unwrap(), fs::metadata(log.path()).unwrap().len());
    file.set_len(1 << 40).unwrap();
    assert!(log.read_in_slices() <= 2 * 1024 + 8, "64 MB backwards, then forwards");
    assert!(log.tail.is_inside_line() && log.facts.turn.is_none());
    log.append(b"\n");
    log.prompt();
    assert_eq!(log.status(), Status::Working);
    assert!(!log.tail.is_inside_line());
    file.set_len(length).unwrap();
    assert_eq!(log.status(), Status::Working);
    assert_eq!(log.facts, log.fresh_facts());
}

/// UP. Later lines are read.
#[test]
fn case_84_broken_lines_are_counted_and_skipped() {
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

/// UP: CRLF, U+2028 and invalid UTF-8 inside strings, and unknown types.
#[test]
fn case_84_odd_lines_are_read() {
    let mut log = Log::new();
    log.prompt();
    let mut line = log.line("assistant.message", "{\"content\":\"a\u{2028}b\",\"toolRequests\":[]}");
    line.insert(line.len() - 1, b'\r');
    log.append(&line);
    log.write("brand.new_event", r#"{"anything":[1,2,{"type":"abort"}]}"#);
    let line =
        log.line("tool.execution_complete", "{\"toolCallId\":\"c\",\"success\":true,\"result\":{\"content\":\"?\"}}");
    log.append(&line.iter().map(|&byte| if byte == b'?' { 0xff } else { byte }).collect::<Vec<_>>());
    log.write("assistant.turn_end", "{}");
    assert_eq!(log.status(), Status::Idle);
    assert_eq!((log.facts.skipped, log.facts.events), (0, 5));
}

/// UP: a writer died in the middle of a line.
#[test]
fn case_84_a_line_after_a_torn_one_is_read() {
    for torn in [
        &b"{\"type\":\"assistant.message\",\"data\":{\"content\":\"half a sen"[..],
        b"\0\0\0\0\0\0\0\0",
        b"\xef\xbb\xbf",
    ] {
        let mut log = Log::new();
        log.prompt();
        log.append(torn);
        log.write("abort", r#"{"reason":"user_initiated"}"#);
        assert_eq!(log.status(), Status::Idle, "{}", String::from_utf8_lossy(torn));
        assert_eq!(log.facts.skipped, 0);
    }
}

/// UP.
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

/// UP: cut, replaced, rewritten, deleted, recreated.
#[test]
fn case_86_a_log_that_is_no_longer_the_same_is_read_from_scratch() {
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

    // Rewritten in place between two reads, and longer than before.
    fs::write(log.path(), &longer[..longer.len() / 2]).unwrap();
    log.read().unwrap();
    let mut longest = Log::new();
    longest.prompt();
    longest.write("session.info", &format!(r#"{{"message":"{}"}}"#, "x".repeat(5000)));
    longest.answer();
    fs::copy(longest.path(), log.path()).unwrap();
    assert_eq!(log.status(), Status::Idle, "rewritten, and longer");

    fs::remove_file(log.path()).unwrap();
    assert_eq!(log.read(), Ok(ReadOutcome::Absent));
    assert_eq!(log.facts, Facts::default(), "nothing outlives the log");
    fs::write(log.path(), &longer).unwrap();
    assert_eq!(log.status(), Status::Working, "recreated");
}

/// UP: it is named in the error, never followed, never waited for.
#[cfg(unix)]
#[test]
fn case_88_a_log_that_is_no_regular_file_is_left_alone() {
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
    // `rustix` makes none on macOS.
    assert!(std::process::Command::new("mkfifo").arg(path).status().unwrap().success());
    assert!(pipe.read().unwrap_err().contains("a pipe"));

    let (mut missing, _) = log();
    assert_eq!(missing.read(), Ok(ReadOutcome::Absent));
}

/// UP: the lines after it are read. The line is a hole in a sparse file. What it costs is measured in a process of its own
/// (`tests/faults/swept.rs`).
#[test]
#[cfg(target_os = "linux")]
fn case_89_a_line_of_2_gb_is_skipped() {
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
}

#[test]
fn case_28_a_verdict_says_that_the_start_of_the_turn_was_cut_off() {
    let mut log = Log::new();
    log.write("assistant.turn_start", "{}");
    log.lines += 700;
    log.read().unwrap();
    let owner = Owner::Alive { pid: 1, started: None };
    let verdict = judge(Observations::by_log(&log.facts), &owner, &Liveness::default(), None, log.now, &log.limits);
    assert_eq!(verdict.status, Status::Stuck);
    assert!(verdict.because.to_string().contains("start of its turn is unknown"), "{}", verdict.because.to_string());
}

/// On disk: a log is read back at most 64 MiB from its end, and here the tools start before that.
#[test]
fn case_148_denials_of_tools_that_start_too_far_back_count() {
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
        log.write("tool.execution_complete", &format!(r#"{{"toolCallId":"{call}","success":false,"error":{error}}}"#));
    }
    assert_eq!(log.status(), Status::PermissionLost);
    assert_eq!((log.facts.events, log.facts.whole), (3, false), "the lines before were not read");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

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
        let fresh = log.fresh_facts();
        prop_assert_eq!(&log.facts.turn, &fresh.turn);
        prop_assert_eq!(&log.facts.closed, &fresh.closed);
        prop_assert_eq!(&log.facts.model, &fresh.model);
        prop_assert_eq!(log.facts.skipped, 0);
    }
}

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
            let backwards = forwards.fresh_facts();
            let relevant =
                |facts: &Facts| (facts.turn.clone(), facts.closed.clone(), facts.requests.clone(), facts.progress);
            assert_eq!(relevant(&forwards.facts), relevant(&backwards), "{}", folder.display());
        }
    }
}
