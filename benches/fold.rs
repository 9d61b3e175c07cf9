//! How fast a log is folded, against the plainest thing that can be done with the same bytes: finding its line ends.
//!
//! The log is a recorded one, repeated to some tens of megabytes: answers, tool results and system prompts of the length that
//! they have in real logs.

use divan::counter::BytesCount;
use divan::{Bencher, black_box};
use pilotlight::core::event;
use pilotlight::core::limits::Limits;
use pilotlight::core::session::Facts;
use pilotlight::core::time::Moment;

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
            if let Ok(event) = event::parse(&rest[..end]) {
                facts.fold(&event, Moment::of(event.at), &limits);
            }
            rest = &rest[end + 1..];
        }
        facts
    });
}
