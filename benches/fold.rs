//! Measures how fast a log is folded, compared with only finding its line ends; and how fast the facts of a long log
//! are found, which is only read from its end.
//!
//! The log is a recorded one, repeated to 64 MiB, so that answers, tool results and system prompts have realistic
//! lengths.

#![expect(clippy::unwrap_used, reason = "a failing benchmark stops")]

use divan::counter::BytesCount;
use divan::{Bencher, black_box};
use pilotlight_agents::copilot::log_format;
use pilotlight_agents::copilot::log_format::LOG_FORMAT;
use pilotlight_agents::tail::{ReadContext, ReadOutcome, Tail};
use pilotlight_core::facts::Facts;
use pilotlight_core::limits::Limits;
use pilotlight_core::time::Moment;
use pilotlight_system::clock::Clock;
use std::io::Write;

fn main() {
    divan::main();
}

fn log() -> Vec<u8> {
    let recorded =
        include_bytes!("../tests/traces/30-big-lines-compaction/c9001944-311c-4606-b961-6954580f3881/events.jsonl");
    recorded.repeat((64 << 20) / recorded.len())
}

#[divan::bench(sample_count = 10)]
fn newlines_only(bencher: Bencher<'_, '_>) {
    let log = log();
    bencher.counter(BytesCount::of_slice(&log)).bench(|| memchr::memchr_iter(b'\n', black_box(&log)).count());
}

#[divan::bench(sample_count = 10)]
fn fold(bencher: Bencher<'_, '_>) {
    let (log, limits) = (log(), Limits::default());
    bencher.counter(BytesCount::of_slice(&log)).bench(|| {
        let mut facts = Facts::default();
        let mut rest = black_box(&log[..]);
        while let Some(end) = memchr::memchr(b'\n', rest) {
            if let Ok(event) = log_format::parse(&rest[..end]) {
                facts.fold(&event, Moment::of(event.at.unwrap_or_default()), &limits);
            }
            rest = &rest[end + 1..];
        }
        facts
    });
}

/// Finds the facts of a log of this size in the page cache, like a scan of its folder: reads backwards to the start of
/// what is open, and folds from there.
#[divan::bench(sample_count = 20, sample_size = 1, args = [50, 1000])]
fn facts_of_megabytes(bencher: Bencher<'_, '_>, megabytes: usize) {
    let (log, limits, now) = (log(), Limits::default(), Clock::start().now());
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = folder.path().join("events.jsonl");
    let mut file = std::fs::File::create(&path).unwrap();
    for _ in 0..(megabytes * 1_000_000).div_ceil(log.len()) {
        file.write_all(&log).unwrap();
    }
    drop(file);
    bencher.with_inputs(Vec::new).bench_local_values(|mut buffer| {
        let mut facts = Facts::default();
        let context = ReadContext { now, limits: &limits, until: None };
        assert_eq!(
            Tail::default().read(&LOG_FORMAT, &path, &mut facts, context, &mut buffer).unwrap(),
            ReadOutcome::Grown
        );
        facts
    });
}
