//! The plugin alone, in Node.js: events that say less than they should, titles that no process takes, and a report that hangs.

use crate::support::executable::executable;
use std::fs;
use std::process::Command;

const PLUGIN: &str = include_str!("../../../crates/agents/src/opencode/bridge/plugin.js");

/// Gives the plugin these events, a JSON array, one after another. It ends once all reports have ended.
const DRIVER: &str = "\
import { readFileSync } from \"node:fs\"
import { Pilotlight } from \"./plugin.mjs\"
const { event } = await Pilotlight({ directory: \"/p\" })
for (const it of JSON.parse(readFileSync(\"events.json\", \"utf8\"))) await event({ event: it })
";

/// What the plugin reports after these events, each without what all have in common. `then`: what a report does at its end.
fn reports(events: &str, then: &str) -> Vec<String> {
    let scratch = tempfile::tempdir().unwrap();
    let at = |name: &str| scratch.path().join(name);
    executable(&at("report"), &format!("#!/bin/sh\nprintf '%s\\n' \"$*\" >>\"$0s\"\n{then}\n"));
    let program = serde_json::to_string(&at("report")).unwrap();
    fs::write(at("plugin.mjs"), PLUGIN.replacen("\"@PROGRAM@\"", &program, 1)).unwrap();
    fs::write(at("driver.mjs"), DRIVER).unwrap();
    fs::write(at("events.json"), events).unwrap();
    let ran = Command::new("timeout").args(["60", "node", "driver.mjs"]).current_dir(scratch.path()).output().unwrap();
    let reports = fs::read_to_string(at("reports")).unwrap_or_default();
    assert!(ran.status.success(), "{ran:?}\n{reports}");
    let common = |line: &str| line.replace("report --agent=opencode --session=", "").replace(" --cwd=/p", "");
    reports.lines().map(common).collect()
}

fn status(session: &str, state: &str) -> String {
    format!(
        r#"{{"type": "session.status", "properties": {{"sessionID": "{session}", "status": {{"type": "{state}"}}}}}}"#
    )
}

#[test]
fn case_851_events_that_say_too_little_are_passed_over() {
    let odd = [
        r#"{"type": "session.status"}"#,
        r#"{"type": "session.status", "properties": {"sessionID": "a"}}"#,
        r#"{"type": "session.status", "properties": {"sessionID": "a", "status": null}}"#,
    ];
    assert_eq!(reports(&format!("[{}, {}]", odd.join(", "), status("a", "busy")), ""), ["a --state=working"]);
}

#[test]
fn case_852_titles_that_no_process_takes_are_cut_and_cleaned() {
    let titled = |session: &str, title: &str| {
        let info = format!(r#"{{"id": "{session}", "title": "{title}"}}"#);
        let updated = format!(r#"{{"type": "session.updated", "properties": {{"info": {info}}}}}"#);
        format!("{updated}, {}", status(session, "idle"))
    };
    let all = [
        titled("a", r"Paint\u0000the\n\u001b[31mfence"),
        titled("b", &"😀".repeat(75_000)),
        titled("c", r"half \ud83d one"),
    ];
    let long = format!("b --state=idle --title={}", "😀".repeat(300));
    let expected = ["a --state=idle --title=Paint the [31mfence", &long, "c --state=idle --title=half   one"];
    assert_eq!(reports(&format!("[{}]", all.join(", ")), ""), expected);
}

#[test]
fn case_853_a_report_that_hangs_is_ended_and_holds_up_no_other_for_long() {
    let hangs = "case $* in *=working*) exec sleep 600;; esac";
    let events = format!("[{}, {}]", status("a", "busy"), status("a", "idle"));
    assert_eq!(reports(&events, hangs), ["a --state=working", "a --state=idle"]);
}
