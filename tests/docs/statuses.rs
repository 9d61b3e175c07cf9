//! A new status is sorted nowhere by default: the compiler names every place that must say what it does with it.

use super::words::shipped;
use crate::{code_of, root};
use pilotlight::core::verdict::Status;

/// Where statuses are told apart without naming all of them.
fn defaults(code: &str) -> Vec<&str> {
    let lines: Vec<&str> = code.lines().collect();
    let indent = |line: &str| line.len() - line.trim_start().len();
    let names: Vec<_> = Status::ALL.iter().map(|status| format!("Status::{status:?}")).collect();
    let mut found = Vec::new();
    for (n, line) in lines.iter().enumerate() {
        let same_match =
            || lines[n..].iter().take_while(|other| other.trim().is_empty() || indent(other) >= indent(line));
        let is_arm = names.iter().any(|name| line.trim_start().starts_with(name));
        let has_default =
            || same_match().any(|other| indent(other) == indent(line) && other.trim_start().starts_with("_ =>"));
        if is_arm && has_default() {
            found.push(*line);
        }
    }
    found.extend(matched(code).filter(|inside| names.iter().any(|name| inside.contains(name))));
    found
}

/// What is between the parentheses of each `matches!`.
fn matched(code: &str) -> impl Iterator<Item = &str> {
    code.match_indices("matches!(").map(|(at, call)| {
        let (inside, mut depth) = (&code[at + call.len()..], 1);
        let end = inside.find(|c| {
            depth += i32::from(c == '(') - i32::from(c == ')');
            depth == 0
        });
        &inside[..end.unwrap_or(inside.len())]
    })
}

#[test]
fn no_status_is_sorted_by_default() {
    for path in shipped() {
        let code = code_of(&path);
        let name = path.strip_prefix(root()).unwrap();
        assert_eq!(defaults(&code), [""; 0], "{} sorts a new status by default", name.display());
    }
    for code in [
        "matches!(status, Status::Quiet | Status::Stuck)",
        "!matches!(row(status), Status::Ended)",
        "matches!(\n    status,\n    Status::Quiet\n)",
        "    Status::Idle => 1,\n    _ => 2,\n",
        "  Status::Idle\n  | Status::Quiet => 1,\n  _ => 2,\n",
    ] {
        assert_eq!(defaults(code).len(), 1, "{code}");
    }
    let code = "    Status::Idle => match other {\n        _ => 1,\n    },\n    Status::Quiet => 2,\n}\n_ => 3";
    assert_eq!(defaults(code).len(), 0);
    assert_eq!(defaults("matches!(it, Some(_)) && status == Status::Idle").len(), 0);
}
