//! Compares what `status` says with the tray, which asks that, with what it says without, which runs an engine of its own:
//! every field of every row, at many moments.

use super::audit::Audit;
use super::pilots::Pilots;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::sync::Mutex;

/// The rows that differed, and how many were compared.
#[derive(Default)]
pub(crate) struct Compared(Mutex<Record>);

#[derive(Default)]
struct Record {
    moments: usize,
    rows: usize,
    differing: Vec<String>,
}

impl Compared {
    /// Compares once. Sessions change meanwhile: what counts are the rows that each of the two says the same twice, in
    /// turns. How a session is named depends on the others, and so counts where these are the same four times.
    pub(crate) fn compare(&self, pilots: &Pilots, audit: &Audit) {
        let mut looks = [true, false, true, false].map(|with_tray| rows(pilots, with_tray));
        audit.count("moments compared");
        if !looks.iter().all(|look| look.keys().eq(looks[0].keys())) {
            looks.iter_mut().flat_map(|look| look.values_mut()).for_each(forget_name);
        }
        let mut record = self.0.lock().unwrap();
        record.moments += 1;
        for (id, told) in &looks[0] {
            // One that came or went in between.
            let [Some(alone), Some(told_again), Some(alone_again)] = [1, 2, 3].map(|look: usize| looks[look].get(id))
            else {
                continue;
            };
            if !is_same(told, told_again) || !is_same(alone, alone_again) {
                continue;
            }
            if is_known_by_the_tray_alone(told) {
                audit.count("rows of connections of the tray");
                continue;
            }
            record.rows += 1;
            if !is_same(told, alone) {
                record.differing.push(format!("alone {alone}\n  told {told}"));
            }
        }
    }

    /// The numbers of moments and of rows, and the rows that differed.
    pub(crate) fn end(self) -> (usize, usize, Vec<String>) {
        let Record { moments, rows, differing } = self.0.into_inner().unwrap();
        (moments, rows, differing)
    }
}

fn rows(pilots: &Pilots, with_tray: bool) -> BTreeMap<String, Value> {
    let output = pilots.command(with_tray, None, &["status", "--json"]).output().unwrap();
    let rows: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    rows.into_iter().map(|row| (row["id"].as_str().unwrap().to_owned(), row)).collect()
}

fn forget_name(row: &mut Value) {
    for key in ["name", "label"] {
        row[key] = Value::Null;
    }
}

/// A connection of the tray tells it more than anybody else can know.
fn is_known_by_the_tray_alone(row: &Value) -> bool {
    row["actions"].as_array().is_some_and(|actions| actions.iter().any(|action| action == "detach"))
}

/// Whether two rows are the same, but for ages within one step.
fn is_same(one: &Value, other: &Value) -> bool {
    let without_ages = |row: &Value| {
        let mut row: Map<String, Value> = row.as_object().unwrap().clone();
        let because = row.remove("because").unwrap_or_default();
        let text = because.as_str().unwrap_or_default().to_owned();
        (row, ages_of(&text))
    };
    let ((row, (words, ages)), (other, (its_words, its_ages))) = (without_ages(one), without_ages(other));
    let is_near = |(age, its): (&u64, &u64)| age.abs_diff(*its) <= 1.max(age / 4);
    row == other && words == its_words && ages.len() == its_ages.len() && ages.iter().zip(&its_ages).all(is_near)
}

/// A text without its numbers, and these.
fn ages_of(text: &str) -> (String, Vec<u64>) {
    let (mut words, mut ages) = (String::new(), Vec::new());
    for word in text.split(' ') {
        match word.parse() {
            Ok(age) => ages.push(age),
            Err(_) => words += word,
        }
        words.push(' ');
    }
    (words, ages)
}

#[test]
fn rows_are_the_same_but_for_ages() {
    let row = |status: &str, because: &str| serde_json::json!({"id": "a", "status": status, "because": because});
    assert!(is_same(&row("quiet", "silent for 8 min"), &row("quiet", "silent for 9 min")));
    assert!(!is_same(&row("quiet", "silent for 8 min"), &row("quiet", "silent for 5 min")));
    assert!(!is_same(&row("quiet", "silent for 8 min"), &row("stuck", "silent for 8 min")));
    assert!(!is_same(&row("quiet", "silent for 8 min"), &row("quiet", "mute for 8 min")));
}
