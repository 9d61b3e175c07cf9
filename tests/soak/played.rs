//! What the actors have in common that play other agents than Copilot. Their real programs start in seconds and need a
//! model each; a recording of one is laid down anew instead, at its own pace, with a real process in place of the
//! recorded one. So the order of its files and lines is the real program's, and what is true is what the recording's
//! labels say. The processes die, and the sessions are resumed, at random.

use super::actor::Rng;
use super::truth::{Ledger, Truth, now};
use crate::support::wait;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

/// The longest gap between two steps of a recording that is kept, in milliseconds. A longer one was a person, or a
/// program that took its time.
pub(crate) const GAP: i64 = 1500;
/// Where the time stands in a line of any agent's log.
const TIMESTAMP: &str = "\"timestamp\":\"";
/// The length of such a time.
const TIME: usize = "2026-11-21T22:54:46.113Z".len();

/// Where an actor plays, and for how long.
pub(crate) struct Stage<'a> {
    /// The agent's home.
    pub(crate) home: &'a Path,
    pub(crate) ledger: &'a Ledger,
    pub(crate) over: &'a AtomicBool,
    pub(crate) rng: Rng,
}

impl Stage<'_> {
    /// Records a truth from now on.
    pub(crate) fn note(&self, id: &str, truth: Truth) {
        self.ledger.note(id, now(), truth);
    }

    /// Whether it is over.
    pub(crate) fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    /// Waits, unless all is over. Returns whether it goes on.
    pub(crate) fn wait(&self, ms: i64) -> bool {
        wait(Duration::from_millis(ms.try_into().unwrap_or_default()), || self.is_over().then_some(())).is_none()
    }

    /// Keeps the truth unchanged for a moment. Returns whether it goes on.
    pub(crate) fn rest(&mut self) -> bool {
        let ms = 1500 + self.rng.below(2000) as i64;
        self.wait(ms)
    }

    /// Waits as long as the recording did. Returns whether it goes on.
    pub(crate) fn follow(&mut self, gap: i64) -> bool {
        if gap > GAP { self.rest() } else { self.wait(gap) }
    }

    /// One of these.
    pub(crate) fn one_of<'n>(&mut self, names: &[&'n str]) -> &'n str {
        names[self.rng.below(names.len())]
    }
}

/// The same lines, with a blank before and after each colon and comma: a log that another program has written anew.
pub(crate) fn spaced(lines: &str) -> String {
    let (mut text, mut inside, mut escaped) = (String::with_capacity(lines.len()), false, false);
    for letter in lines.chars() {
        if !inside && [':', ','].contains(&letter) {
            text.extend([' ', letter, ' ']);
        } else {
            text.push(letter);
        }
        inside ^= letter == '"' && !escaped;
        escaped = inside && letter == '\\' && !escaped;
    }
    text
}

/// A line that was cut in two by a line break.
pub(crate) fn torn(line: &str) -> String {
    let half = (line.len() / 2..).find(|at| line.is_char_boundary(*at)).unwrap_or_default();
    format!("{}\n{}", &line[..half], &line[half..])
}

/// An id that no other session has, of this version of UUIDs. One of version 7 begins with the time.
pub(crate) fn new_id(version: u8) -> String {
    static MADE: AtomicU32 = AtomicU32::new(1);
    let (ms, n) = (now(), MADE.fetch_add(1, Ordering::Relaxed));
    format!("{:08x}-{:04x}-{version}000-a000-{n:012x}", ms >> 16, ms & 0xffff)
}

/// A folder of recordings of these tests.
pub(crate) fn recordings(folder: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(folder)
}

/// These lines, with all their times later by so many milliseconds.
pub(crate) fn later(lines: &str, by: i64) -> String {
    let mut moved = String::with_capacity(lines.len());
    let mut rest = lines;
    while let Some(at) = rest.find(TIMESTAMP) {
        let (before, time) = rest.split_at(at + TIMESTAMP.len());
        moved.push_str(before);
        rest = time;
        if let Some((time, after)) = rest.split_at_checked(TIME)
            && let Some(time) = millis(time)
        {
            moved.push_str(&format!("{:.3}", jiff::Timestamp::from_millisecond(time + by).unwrap()));
            rest = after;
        }
    }
    moved + rest
}

/// A time of a log as a number.
pub(crate) fn millis(time: &str) -> Option<i64> {
    time.parse::<jiff::Timestamp>().ok().map(jiff::Timestamp::as_millisecond)
}

#[test]
fn the_times_of_lines_move_and_nothing_else_does() {
    let line = |at| format!("{{\"a\":1,\"timestamp\":\"2026-11-21T22:54:{at}Z\",\"b\":{{\"timestamp\":\"x\"}}}}\n");
    assert_eq!(later(&(line("46.113") + &line("47.000")), 900), line("47.013") + &line("47.900"));
    assert_eq!(later(&line("46.113")[..20], 900), line("46.113")[..20]);
}
