//! The schema of the JSON that scripts rely on, docs/watch.schema.json: it is generated here from the types, and the
//! program's real output is checked against it.
//!
//! `PILOTLIGHT_BLESS=1 cargo test --test docs schema` rewrites the file.

use crate::support::desktop::sessions::Sessions;
use crate::support::desktop::tray::User;
use crate::support::wait_until;
use pilotlight_core::action::Action;
use pilotlight_core::agent::Agent;
use pilotlight_core::facts::ContextUse;
use pilotlight_core::fleet::{BackgroundView, Kind, Label, OwnerView, RequestView, Row, SubAgentView, TurnView};
use pilotlight_core::question::Question;
use pilotlight_core::short_reason::ShortReason;
use pilotlight_core::time::Time;
use pilotlight_core::verdict::Status;
use serde_json::{Map, Value, json};
use std::io::{BufRead, BufReader};
use std::process::Stdio;

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/watch.schema.json");

/// A session with every field present.
fn row() -> Row {
    Row {
        id: "x".into(),
        name: "x".into(),
        cwd: Some("/x".into()),
        branch: Some("main".into()),
        kind: Kind::Terminal,
        status: Status::Idle,
        since: Time(0),
        last_progress: Some(Time(0)),
        because: "x".into(),
        unseen: false,
        owner: Some(OwnerView { pid: 1, state: "alive", attachable: Some(true), bridge: Some("joined") }),
        background: BackgroundView {
            list: vec![SubAgentView { name: "x".into(), does: Some("x".into()), since: Time(0), last: Time(0) }],
            ..BackgroundView::default()
        },
        actions: vec![Action::Stop],
        label: Label { who: "x".into(), agent: None, title: None },
        turn: Some(TurnView { since: Time(0), tools: 1, older: false }),
        short_reason: ShortReason::default(),
        is_seen: false,
        request: Some(RequestView {
            id: "r".into(),
            kind: "shell".into(),
            text: Some("x".into()),
            paths: vec!["/x".into()],
            reads_plain: true,
            by: Some("x".into()),
        }),
        question: Some(Question { id: Some("r".into()), text: "x".into(), choices: vec!["y".into()] }),
        agent: Agent::default(),
        host: Some("x".into()),
        reached: true,
        wakes_at: Some(Time(0)),
        limit_until: Some(Time(0)),
        context: Some(ContextUse { used: 1, window: Some(2) }),
    }
}

/// The schema, generated from the types.
fn schema() -> Value {
    let to_json = |value| serde_json::to_value(value).unwrap();
    let row = to_json(row());
    let one_of = |values: Vec<Value>| json!({"enum": values});
    let time = json!({"type": "string", "format": "date-time"});
    let text = json!({"type": "string"});
    let optional_text = json!({"type": ["string", "null"]});
    let count = json!({"type": "integer", "minimum": 0});
    let kinds = [Kind::Terminal, Kind::Sdk, Kind::Unknown].map(|kind| serde_json::to_value(kind).unwrap()).to_vec();
    let statuses = Status::ALL.map(|status| json!(status.name())).to_vec();
    let actions = Action::ALL.map(|action| json!(action.name())).to_vec();
    let owner_field = |name: &str| match name {
        "pid" => json!({"type": "integer", "minimum": 1}),
        "state" => json!({"enum": ["alive", "gone", "unknown"]}),
        "attachable" => described(
            json!({"type": ["boolean", "null"]}),
            "whether it is a server to which Pilotlight can attach; null: not tried yet",
        ),
        "bridge" => described(
            json!({"enum": ["joined", "elevated", null]}),
            "the bridge to its terminal; an elevated bridge may answer permission requests; null: no bridge, or no \
             tray to ask",
        ),
        other => panic!("{other} of an owner is new: describe it here and in docs/json.md"),
    };
    let field = |name: &str| match name {
        "id" => described(text.clone(), "the name of the session's folder"),
        "name" => {
            described(text.clone(), "its title, or its folder if it has no title; made unique among all sessions")
        }
        "cwd" => described(optional_text.clone(), "its working folder"),
        "branch" => described(optional_text.clone(), "the git branch in that folder"),
        "kind" => described(one_of(kinds.clone()), "the kind of program that runs it"),
        "status" => described(one_of(statuses.clone()), "what it does, or what it needs"),
        "since" => described(time.clone(), "when it got this status"),
        "last_progress" => described(
            json!({"type": ["string", "null"], "format": "date-time"}),
            "when it last did something: a step in its log, or data of an answer that was arriving; null: never seen",
        ),
        "because" => described(text.clone(), "the reason for the status; its wording may change"),
        "unseen" => described(
            json!({"type": "boolean"}),
            "whether it became idle, or asked something, since the user last looked",
        ),
        "owner" => {
            let owner = object(&row["owner"], &owner_field);
            described(
                json!({"anyOf": [owner, {"type": "null"}]}),
                "the process that runs it, or ran it last; null: unknown",
            )
        }
        "background" => {
            let line = |name: &str| match name {
                "name" => described(text.clone(), "its task, else its name, kind or id"),
                "does" => described(
                    optional_text.clone(),
                    "the tool that it is running, and what the tool works on; null: none",
                ),
                "since" => described(time.clone(), "when it began"),
                "last" => described(time.clone(), "its last sign of life when this line was printed"),
                other => panic!("{other} of a sub-agent is new: describe it here and in docs/json.md"),
            };
            let line = object(&row["background"]["list"][0], &line);
            let list = described(
                json!({"type": "array", "items": line}),
                "at most 50 working sub-agents, including those that the turn waits for",
            );
            let part = |name: &str| if name == "list" { list.clone() } else { count.clone() };
            described(object(&row["background"], &part), "its work in the background")
        }
        "context" => {
            let part = |name: &str| match name {
                "used" => described(count.clone(), "how many tokens the last request to the model used"),
                "window" => described(
                    json!({"type": ["integer", "null"], "minimum": 0}),
                    "the size of the context, in tokens; null: its log does not have it",
                ),
                other => panic!("{other} of a context is new: describe it here and in docs/json.md"),
            };
            let context = object(&row["context"], &part);
            described(
                json!({"anyOf": [context, {"type": "null"}]}),
                "how much of its context it used when this line was printed; null: not known",
            )
        }
        "actions" => {
            let action = one_of(actions.clone());
            described(json!({"type": "array", "items": action}), "the actions that are possible now")
        }
        "label" => described(
            text.clone(),
            "the name shown to people: its folder, then its title; made unique among all sessions",
        ),
        "turn" => {
            let turn = object(&row["turn"], &|name| match name {
                "since" => time.clone(),
                "tools" => count.clone(),
                other => panic!("{other} of a turn is new: describe it here and in docs/json.md"),
            });
            described(
                json!({"anyOf": [turn, {"type": "null"}]}),
                "the open turn, and the number of tools it has used; null: no turn is open",
            )
        }
        "request" => {
            let part = |name: &str| match name {
                "id" => described(text.clone(), "what `approve --request` and `deny --request` take"),
                "kind" => {
                    described(text.clone(), "the kind of permission, as Copilot names it: `shell`, `read`, `write`")
                }
                "text" => described(
                    optional_text.clone(),
                    "the full request as the log has it, unaltered: a command, an address, a path with what needs it; \
                     null: no single text describes it, or it is longer than 2000 characters",
                ),
                "paths" => described(
                    json!({"type": "array", "items": text.clone()}),
                    "the paths that it asks to reach, read or write; it cannot list the paths that a command will \
                     touch",
                ),
                "reads_plain" => described(
                    json!({"type": "boolean"}),
                    "`text` is not null, every character of it is visible, and none can be mistaken for another",
                ),
                "by" => described(
                    json!({"type": ["string", "null"]}),
                    "the sub-agent that asks: its task, else its name, kind or id; null: the session itself asks",
                ),
                other => panic!("{other} of a request is new: describe it here and in docs/json.md"),
            };
            let request = object(&row["request"], &part);
            described(
                json!({"anyOf": [request, {"type": "null"}]}),
                "the oldest permission request of a `needs-permission` session; null: its log has none",
            )
        }
        "wakes_at" => described(
            json!({"type": ["string", "null"], "format": "date-time"}),
            "when an idle session will prompt itself, because a schedule in its log says so; null: no schedule, or \
             not known",
        ),
        "limit_until" => described(
            json!({"type": ["string", "null"], "format": "date-time"}),
            "when the usage limit ends, or ended, that made its last turn fail; null: it failed for another reason, \
             or its log does not say",
        ),
        "reached" => described(
            json!({"type": "boolean"}),
            "whether its machine is reached; if not, the other fields say what was known last",
        ),
        "host" => described(
            optional_text.clone(),
            "the machine that it is on, by its name in the settings; null: this machine",
        ),
        "agent" => described(
            text.clone(),
            "the agent that runs it: `copilot`, `claude-code`, `codex`, or the name that `pilotlight report` gave",
        ),
        "question" => {
            let words = |name: &str| match name {
                "id" => described(
                    optional_text.clone(),
                    "what `answer --request` takes; null: Pilotlight cannot answer it, or no tray runs",
                ),
                "text" => text.clone(),
                "choices" => json!({"type": "array", "items": text.clone()}),
                other => panic!("{other} of a question is new: describe it here and in docs/json.md"),
            };
            let question = object(&row["question"], &words);
            described(
                json!({"anyOf": [question, {"type": "null"}]}),
                "the question of a `needs-input` session; null: Pilotlight does not know one",
            )
        }
        other => panic!("{other} of a session is new: describe it here and in docs/json.md"),
    };
    let session = object(&row, &field);
    let removed = json!({
        "description": "the session's folder is gone; only `watch` prints this",
        "type": "object",
        "properties": {"id": text, "removed": {"enum": [true]}, "host": text},
        "required": ["id", "removed"],
        "additionalProperties": false,
    });
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A line of `pilotlight watch --json`, or an element of the array that `pilotlight status --json` \
         prints",
        "anyOf": [session, removed],
    })
}

fn described(mut schema: Value, description: &str) -> Value {
    schema["description"] = description.into();
    schema
}

/// The schema of an object with exactly the fields of this example.
fn object(example: &Value, field: &dyn Fn(&str) -> Value) -> Value {
    let names: Vec<&String> = example.as_object().unwrap().keys().collect();
    let properties: Map<String, Value> = names.iter().map(|name| ((*name).clone(), field(name))).collect();
    json!({"type": "object", "properties": properties, "required": names, "additionalProperties": false})
}

/// The first mistake in a value, by the keywords of JSON Schema that the file uses. It panics at any other keyword, so
/// that none goes unchecked.
fn mistake(schema: &Value, value: &Value) -> Option<String> {
    let is = |kind: &Value| match kind.as_str().unwrap() {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "null" => value.is_null(),
        other => panic!("unknown JSON type: {other}"),
    };
    schema.as_object().unwrap().iter().find_map(|(keyword, rule)| {
        let holds = match keyword.as_str() {
            "$schema" | "title" | "description" => true,
            "type" => rule.as_array().map_or_else(|| is(rule), |kinds| kinds.iter().any(is)),
            "enum" => rule.as_array().unwrap().contains(value),
            "anyOf" => {
                let mistakes: Option<Vec<String>> =
                    rule.as_array().unwrap().iter().map(|schema| mistake(schema, value)).collect();
                return mistakes.map(|mistakes| mistakes.join("\nand "));
            }
            "minimum" => value.as_i64().is_none_or(|number| number >= rule.as_i64().unwrap()),
            "format" => value.as_str().is_none_or(|text| text.parse::<jiff::Timestamp>().is_ok()),
            "items" => {
                return value.as_array().into_iter().flatten().find_map(|item| mistake(rule, item));
            }
            "required" => rule.as_array().unwrap().iter().all(|name| value.get(name.as_str().unwrap()).is_some()),
            "properties" => {
                let fields = value.as_object().into_iter().flatten();
                let mut known = fields.filter_map(|(name, field)| Some((name, rule.get(name)?, field)));
                return known.find_map(|(name, rule, field)| Some(format!("{name}: {}", mistake(rule, field)?)));
            }
            "additionalProperties" => {
                let known = schema["properties"].as_object().unwrap();
                value.as_object().is_none_or(|fields| fields.keys().all(|name| known.contains_key(name)))
            }
            other => panic!("{other} is not checked here yet"),
        };
        (!holds).then(|| format!("{value} is not {keyword} {rule}"))
    })
}

#[track_caller]
fn assert_matches_schema(value: &Value) {
    if let Some(mistake) = mistake(&schema(), value) {
        panic!("{value}\ndoes not match: {mistake}");
    }
}

#[test]
fn the_schema_file_is_up_to_date() {
    let text = serde_json::to_string_pretty(&schema()).unwrap() + "\n";
    if std::env::var_os("PILOTLIGHT_BLESS").is_some() {
        std::fs::write(FILE, &text).unwrap();
    }
    let written: Value = serde_json::from_str(&std::fs::read_to_string(FILE).unwrap_or_default()).unwrap_or_default();
    assert!(
        written == schema(),
        "docs/watch.schema.json is out of date: PILOTLIGHT_BLESS=1 cargo test --test docs schema"
    );
}

#[test]
fn the_schema_rejects_mistakes() {
    let good = serde_json::to_value(row()).unwrap();
    assert_matches_schema(&good);
    let with = |pointer: &str, value: Value| {
        let mut bad = good.clone();
        *bad.pointer_mut(pointer).unwrap() = value;
        bad
    };
    let mut without = good.clone();
    without.as_object_mut().unwrap().remove("because");
    let mut more = good.clone();
    more["more"] = json!(1);
    let bad = [
        with("/status", json!("asleep")),
        with("/since", json!("yesterday")),
        with("/owner/pid", json!(0)),
        with("/owner/state", Value::Null),
        with("/background/agents", json!(-1)),
        with("/actions/0", json!("dance")),
        with("/unseen", json!("no")),
        without,
        more,
        json!({"id": "x", "removed": false}),
        json!([]),
    ];
    for bad in bad {
        assert!(mistake(&schema(), &bad).is_some(), "{bad}");
    }
}

/// The demo has every status, and sessions that crash and return.
#[test]
fn every_line_that_the_program_prints_matches_the_schema() {
    let user = User::new(&Sessions::new());
    let tmp = user.scratch.path().join("tmp");
    std::fs::create_dir(&tmp).unwrap();
    let mut demo = user.command_without_home(None, &["demo", "--speed", "8"]);
    demo.env("TMPDIR", &tmp).env("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nowhere");
    let _demo = user.start_tray_as(demo);
    let home = wait_until(crate::support::SOON, "the demo plays", String::new, || {
        let home = std::fs::read_dir(&tmp).unwrap().next()?.unwrap().path().join("copilot");
        home.join("session-state").is_dir().then_some(home)
    });
    let config = user.scratch.path().join("config.toml");
    std::fs::write(&config, "[owners]\nnames = ['pilotlight']\n[limits]\nthinking-quiet = 2\nthinking-stuck = 4\n")
        .unwrap();
    let command = |arguments: &[&str]| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_pilotlight"));
        command.env("PILOTLIGHT_CONFIG", &config).env("COPILOT_HOME", &home).env("HOME", user.scratch.path());
        command.env("PILOTLIGHT_DISCOVER", "false").args(arguments);
        command
    };
    let mut watch = command(&["watch", "--json"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut missing: Vec<&str> =
        ["ended", "crashed", "failed", "needs-permission", "permission-lost", "needs-input", "idle", "working"].into();
    let (mut listed, mut removed) = (false, false);
    for line in BufReader::new(watch.stdout.take().unwrap()).lines() {
        let line: Value = serde_json::from_str(&line.unwrap()).unwrap();
        assert_matches_schema(&line);
        missing.retain(|status| line["status"] != *status);
        removed |= line["removed"] == true;
        if missing.is_empty() && !listed {
            listed = true;
            let rows = command(&["status", "--json", "--all"]).output().unwrap();
            let rows: Value = serde_json::from_slice(&rows.stdout).unwrap();
            assert!(rows.as_array().unwrap().len() > 8, "{rows}");
            rows.as_array().unwrap().iter().for_each(assert_matches_schema);
            // A folder disappears. Other lines may come before the one that says so.
            let folder = home.join("session-state").join(rows[0]["id"].as_str().unwrap());
            std::fs::rename(&folder, user.scratch.path().join("gone")).unwrap();
        }
        if removed {
            break;
        }
    }
    watch.kill().unwrap();
    watch.wait().unwrap();
    assert!(removed, "`watch` ended before it had printed everything");
}
