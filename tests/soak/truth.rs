//! What was true, what was said, and how far the one agrees with the other. Times are milliseconds of the wall clock, which
//! Copilot writes on its events.

use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Mutex;

/// So long after a change of the truth nothing is judged. The promise is milliseconds; the rest is for a machine that runs
/// three servers and a build.
pub(crate) const REACTION: i64 = 1000;

/// What is true of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Truth {
    /// It has this status.
    Is(&'static str),
    /// It is not listed.
    Absent,
    /// Something is being done to it.
    Unknown,
}

/// Now, as the ledger counts.
pub(crate) fn now() -> i64 {
    jiff::Timestamp::now().as_millisecond()
}

/// When an event was written.
pub(crate) fn time_of(event: &Value) -> i64 {
    event["timestamp"].as_str().unwrap().parse::<jiff::Timestamp>().unwrap().as_millisecond()
}

/// What was true of each session, from when on.
pub(crate) type Story = BTreeMap<String, Vec<(i64, Truth)>>;

/// Where actors write down what is true.
#[derive(Default)]
pub(crate) struct Ledger(Mutex<Story>);

impl Ledger {
    /// From this time on, this is true of the session.
    pub(crate) fn note(&self, id: &str, at: i64, truth: Truth) {
        self.0.lock().unwrap().entry(id.to_owned()).or_default().push((at, truth));
    }

    /// The whole story, up to now.
    pub(crate) fn end(&self) -> Story {
        let mut story = self.0.lock().unwrap().clone();
        story.values_mut().for_each(|truths| truths.push((now(), Truth::Unknown)));
        story
    }
}

/// Something that Pilotlight said.
#[derive(Clone, Debug)]
pub(crate) enum Said {
    /// A line of `watch --json`.
    Line { at: i64, id: String, status: Option<String>, because: String },
    /// All that `status --json --all` printed between two times.
    Asked { from: i64, to: i64, rows: BTreeMap<String, String> },
}

/// How far it agrees.
#[derive(Debug, Default)]
pub(crate) struct Score {
    judged: i64,
    agreed: i64,
    sessions: usize,
    /// Changes of the truth that were judged.
    pub(crate) changes: usize,
    /// Answers of `status --json` on a session that were judged.
    pub(crate) asked: usize,
    asked_agreed: usize,
    statuses: BTreeMap<&'static str, i64>,
    /// What did not agree, in words.
    pub(crate) deviations: Vec<String>,
}

impl Score {
    /// The agreement, in percent: the lower of the two.
    pub(crate) fn percent(&self) -> f64 {
        let of = |part: f64, whole: f64| part * 100.0 / whole.max(1.0);
        of(self.agreed as f64, self.judged as f64).min(of(self.asked_agreed as f64, self.asked as f64))
    }
}

impl fmt::Display for Score {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = |ms: i64| ms as f64 / 1000.0;
        write!(
            f,
            "{:.3} % agree: watch for {:.1} of {:.1} s of {} sessions with {} changes, status for {} of {} answers; by status:",
            self.percent(),
            seconds(self.agreed),
            seconds(self.judged),
            self.sessions,
            self.changes,
            self.asked_agreed,
            self.asked
        )?;
        self.statuses.iter().try_for_each(|(status, ms)| write!(f, " {status} {:.0} s", seconds(*ms)))
    }
}

/// Whether what was said is what is true. The milliseconds between an answer and the end of its turn are work as well.
fn agrees(truth: Truth, said: Option<&str>) -> bool {
    match truth {
        Truth::Is("working") => matches!(said, Some("working" | "finishing")),
        Truth::Is(status) => said == Some(status),
        Truth::Absent => said.is_none(),
        Truth::Unknown => true,
    }
}

/// Holds what was said against the truth.
pub(crate) fn score(story: &Story, said: &[Said]) -> Score {
    let mut score = Score { sessions: story.len(), ..Score::default() };
    for (id, truths) in story {
        let lines: Vec<(i64, Option<&str>, &str)> = said
            .iter()
            .filter_map(|said| match said {
                Said::Line { at, id: of, status, because } if of == id => {
                    Some((*at, status.as_deref(), because.as_str()))
                }
                _ => None,
            })
            .collect();
        for pair in truths.windows(2) {
            let [(since, truth), (until, _)] = *pair else { unreachable!() };
            let from = since + REACTION;
            // What is gone stays gone: of that, more than a moment proves nothing.
            let until = if truth == Truth::Absent { until.min(from + REACTION) } else { until };
            if truth == Truth::Unknown || from >= until {
                continue;
            }
            score.changes += 1;
            judge(&mut score, id, truth, from, until, &lines);
            for said in said {
                if let Said::Asked { from: asked, to, rows } = said
                    && *asked >= from
                    && *to < until
                {
                    let answer = rows.get(id).map(String::as_str);
                    score.asked += 1;
                    score.asked_agreed += usize::from(agrees(truth, answer));
                    if !agrees(truth, answer) {
                        score.deviations.push(format!("{id} at {asked}: status said {answer:?}, true is {truth:?}"));
                    }
                }
            }
        }
    }
    score
}

/// Judges what `watch` said of a session in a time in which one thing was true.
fn judge(score: &mut Score, id: &str, truth: Truth, from: i64, until: i64, lines: &[(i64, Option<&str>, &str)]) {
    let name = if let Truth::Is(status) = truth { status } else { "absent" };
    let begins = lines.partition_point(|(at, ..)| *at <= from);
    let before = begins.checked_sub(1).map(|index| lines[index]);
    let mut says = before.map_or((None, ""), |(_, status, because)| (status, because));
    let mut at = from;
    let inside = lines[begins..].iter().take_while(|(at, ..)| *at < until);
    for (next, status, because) in inside.copied().chain([(until, None, "")]) {
        let span = next - at;
        score.judged += span;
        *score.statuses.entry(name).or_default() += span;
        if agrees(truth, says.0) {
            score.agreed += span;
        } else if span > 0 {
            let (status, because) = says;
            score
                .deviations
                .push(format!("{id} at {at} for {span} ms: watch said {status:?} ({because}), true is {truth:?}"));
        }
        (at, says) = (next, (status, because));
    }
}

#[test]
fn a_score_counts_the_time_that_agrees() {
    let story = Story::from([(
        "a".to_owned(),
        vec![(0, Truth::Is("working")), (11_000, Truth::Is("idle")), (21_000, Truth::Unknown)],
    )]);
    let line =
        |at, status: &str| Said::Line { at, id: "a".into(), status: Some(status.into()), because: String::new() };
    let asked = |at, status: &str| Said::Asked { from: at, to: at + 1, rows: [("a".into(), status.into())].into() };
    // Too early counts when it shows while the former still holds; late, from the end of the reaction time on.
    let lines = [line(10, "working"), line(10_000, "idle"), asked(11_500, "working"), asked(13_000, "working")];
    let found = score(&story, &lines);
    assert_eq!((found.judged, found.agreed, found.changes), (19_000, 18_000, 2));
    assert_eq!((found.asked, found.asked_agreed), (1, 0));
    assert_eq!(found.deviations.len(), 2);
    let nothing = score(&story, &[]);
    assert_eq!((nothing.judged, nothing.agreed), (19_000, 0));
}
