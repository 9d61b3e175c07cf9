//! The true statuses, the reported ones, and how well they agree. Times are milliseconds of the wall clock, as in
//! Copilot's events.

use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Mutex;
use std::thread::{self, ThreadId};

/// How long after a change of the truth nothing is judged. The promise is milliseconds; the rest is for a machine that
/// runs three servers and a build.
pub(crate) const REACTION: i64 = 1000;

/// What is true of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Truth {
    /// It has this status.
    Is(&'static str),
    /// It is not listed.
    Absent,
    /// It is changing.
    Unknown,
}

/// The current time of the ledger's clock.
pub(crate) fn now() -> i64 {
    jiff::Timestamp::now().as_millisecond()
}

/// When an event was written.
pub(crate) fn time_of(event: &Value) -> i64 {
    event["timestamp"].as_str().unwrap().parse::<jiff::Timestamp>().unwrap().as_millisecond()
}

/// The truths of each session, each with its start.
pub(crate) type Story = BTreeMap<String, Vec<(i64, Truth)>>;

/// The record of the truth, written by the actors.
#[derive(Default)]
pub(crate) struct Ledger(Mutex<Observations>);

#[derive(Default)]
struct Observations {
    story: Story,
    /// Who told of each session last.
    tellers: BTreeMap<String, ThreadId>,
}

impl Ledger {
    /// Records a new truth of a session from this time on.
    pub(crate) fn note(&self, id: &str, at: i64, truth: Truth) {
        let mut told = self.0.lock().unwrap();
        told.story.entry(id.to_owned()).or_default().push((at, truth));
        told.tellers.insert(id.to_owned(), thread::current().id());
    }

    /// Takes back what this thread last told of each session: it lost track of them since.
    pub(crate) fn lose(&self) {
        let mut told = self.0.lock().unwrap();
        let Observations { story, tellers } = &mut *told;
        let is_ours = |id: &String| tellers.get(id) == Some(&thread::current().id());
        let last = story.iter_mut().filter(|(id, _)| is_ours(id)).filter_map(|(_, truths)| truths.last_mut());
        last.for_each(|(_, truth)| *truth = Truth::Unknown);
    }

    /// The whole story, up to now.
    pub(crate) fn end(&self) -> Story {
        let mut story = self.0.lock().unwrap().story.clone();
        story.values_mut().for_each(|truths| truths.push((now(), Truth::Unknown)));
        story
    }
}

/// A report of Pilotlight.
#[derive(Clone, Debug)]
pub(crate) enum Report {
    /// A line of `watch --json`.
    Line { at: i64, id: String, status: Option<String>, because: String },
    /// The rows of one `status --json --all`, run between two times.
    Status { from: i64, to: i64, rows: BTreeMap<String, String> },
}

/// Stands before the status of a row that says itself that it is not known who runs the session.
pub(crate) const UNCERTAIN: &str = "uncertain: ";

/// How well the reports agree with the truth.
#[derive(Debug, Default)]
pub(crate) struct Score {
    judged: i64,
    agreed: i64,
    sessions: usize,
    /// Changes of the truth that were judged.
    pub(crate) changes: usize,
    /// Rows of `status --json` that were judged.
    pub(crate) rows: usize,
    rows_agreed: usize,
    statuses: BTreeMap<&'static str, i64>,
    /// The deviations, in words.
    pub(crate) deviations: Vec<String>,
}

impl Score {
    /// The agreement in percent: the lower one of `watch` and `status`.
    pub(crate) fn percent(&self) -> f64 {
        let of = |part: f64, whole: f64| part * 100.0 / whole.max(1.0);
        of(self.agreed as f64, self.judged as f64).min(of(self.rows_agreed as f64, self.rows as f64))
    }
}

impl fmt::Display for Score {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = |ms: i64| ms as f64 / 1000.0;
        write!(
            f,
            "{:.3} % agree: watch for {:.1} of {:.1} s of {} sessions with {} changes, status for {} of {} rows; by status:",
            self.percent(),
            seconds(self.agreed),
            seconds(self.judged),
            self.sessions,
            self.changes,
            self.rows_agreed,
            self.rows
        )?;
        self.statuses.iter().try_for_each(|(status, ms)| write!(f, " {status} {:.0} s", seconds(*ms)))
    }
}

/// Whether a reported status agrees with the truth. The milliseconds between an answer and the end of its turn count as
/// work.
fn agrees(truth: Truth, reported: Option<&str>) -> bool {
    match truth {
        Truth::Is("working") => matches!(reported, Some("working" | "finishing")),
        Truth::Is(status) => reported == Some(status),
        Truth::Absent => reported.is_none(),
        Truth::Unknown => true,
    }
}

/// Compares the reports with the truth.
pub(crate) fn score(story: &Story, reports: &[Report]) -> Score {
    let mut score = Score { sessions: story.len(), ..Score::default() };
    for (id, truths) in story {
        let lines: Vec<(i64, Option<&str>, &str)> = reports
            .iter()
            .filter_map(|report| match report {
                Report::Line { at, id: of, status, because } if of == id => {
                    Some((*at, status.as_deref(), because.as_str()))
                }
                _ => None,
            })
            .collect();
        for pair in truths.windows(2) {
            let [(since, truth), (until, _)] = *pair else { unreachable!() };
            let from = since + REACTION;
            // A removed session stays removed: a longer time proves nothing more.
            let until = if truth == Truth::Absent { until.min(from + REACTION) } else { until };
            if truth == Truth::Unknown || from >= until {
                continue;
            }
            score.changes += 1;
            judge(&mut score, id, truth, from, until, &lines);
            for report in reports {
                if let Report::Status { from: asked, to, rows } = report
                    && *asked >= from
                    && *to < until
                {
                    let answer = rows.get(id).map(String::as_str);
                    let doubted = answer.and_then(|answer| answer.strip_prefix(UNCERTAIN));
                    // A turn that failed may have ended with its process.
                    if doubted.is_some() && matches!(truth, Truth::Is("ended" | "crashed" | "failed")) {
                        continue;
                    }
                    let answer = doubted.or(answer);
                    score.rows += 1;
                    score.rows_agreed += usize::from(agrees(truth, answer));
                    if !agrees(truth, answer) {
                        score
                            .deviations
                            .push(format!("{id} at {asked}: status reported {answer:?}, the truth is {truth:?}"));
                    }
                }
            }
        }
    }
    score
}

/// Judges the lines of `watch` about a session during one truth.
fn judge(score: &mut Score, id: &str, truth: Truth, from: i64, until: i64, lines: &[(i64, Option<&str>, &str)]) {
    let name = if let Truth::Is(status) = truth { status } else { "absent" };
    let begins = lines.partition_point(|(at, ..)| *at <= from);
    let before = begins.checked_sub(1).map(|index| lines[index]);
    let mut reported = before.map_or((None, ""), |(_, status, because)| (status, because));
    let mut at = from;
    let inside = lines[begins..].iter().take_while(|(at, ..)| *at < until);
    for (next, status, because) in inside.copied().chain([(until, None, "")]) {
        let span = next - at;
        score.judged += span;
        *score.statuses.entry(name).or_default() += span;
        if agrees(truth, reported.0) {
            score.agreed += span;
        } else if span > 0 {
            let (status, because) = reported;
            score.deviations.push(format!(
                "{id} at {at} for {span} ms: watch reported {status:?} ({because}), the truth is {truth:?}"
            ));
        }
        (at, reported) = (next, (status, because));
    }
}

#[test]
fn a_score_counts_the_time_that_agrees() {
    let story = Story::from([(
        "a".to_owned(),
        vec![(0, Truth::Is("working")), (11_000, Truth::Is("idle")), (21_000, Truth::Unknown)],
    )]);
    let line =
        |at, status: &str| Report::Line { at, id: "a".into(), status: Some(status.into()), because: String::new() };
    let asked = |at, status: &str| Report::Status { from: at, to: at + 1, rows: [("a".into(), status.into())].into() };
    // A report that is too early counts while the former truth holds, one that is late counts after the reaction time.
    let lines = [line(10, "working"), line(10_000, "idle"), asked(11_500, "working"), asked(13_000, "working")];
    let found = score(&story, &lines);
    assert_eq!((found.judged, found.agreed, found.changes), (19_000, 18_000, 2));
    assert_eq!((found.rows, found.rows_agreed), (1, 0));
    assert_eq!(found.deviations.len(), 2);
    let nothing = score(&story, &[]);
    assert_eq!((nothing.judged, nothing.agreed), (19_000, 0));
}
