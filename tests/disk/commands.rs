//! Arguments, exit codes and output formats: what scripts rely on.

use crate::support::synthetic::User;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::time::Duration;

fn code(user: &User, args: &[&str]) -> Option<i32> {
    user.run(args).status.code()
}

#[test]
fn unknown_flags_and_commands_fail_and_help_succeeds() {
    let user = User::new();
    for args in [&["--bogus"][..], &["status", "--bogus"], &["bogus"], &["watch"], &["replay"], &["explain"]] {
        assert_eq!(code(&user, args), Some(2), "{args:?}");
    }
    let help = user.run(&["--help"]);
    let text = String::from_utf8(help.stdout).unwrap();
    assert!(help.status.success() && text.contains("Examples:") && text.contains("pilotlight status"));
    for (bare, options) in [("watch", ["--json", "--format"]), ("config", ["--print", "--edit"])] {
        let ran = user.run(&[bare]);
        let stderr = String::from_utf8(ran.stderr).unwrap();
        assert!(ran.status.code() == Some(2) && options.iter().all(|option| stderr.contains(option)), "{stderr}");
    }
    let version = String::from_utf8(user.run(&["--version"]).stdout).unwrap();
    assert_eq!(version.trim(), format!("pilotlight {}", env!("CARGO_PKG_VERSION")));
}

#[test]
fn completions_and_the_manual_cover_the_help() {
    let user = User::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = String::from_utf8(user.run(&["completions", shell]).stdout).unwrap();
        assert!(script.contains("PILOTLIGHT_COMPLETE") && script.contains("pilotlight"), "{shell}: {script}");
    }
    let completed = |words: &[&str]| completed(&user, words);
    assert_eq!(completed(&["re"]), ["reconnect", "resume", "report", "replay"]);
    let options = completed(&["demo", "--"]);
    assert!(
        options.iter().any(|option| option == "--home") && !options.iter().any(|option| option == "--part"),
        "{options:?}"
    );
    assert_eq!(code(&user, &["completions", "nonsense"]), Some(2));
    let page = String::from_utf8(user.run(&["man"]).stdout).unwrap();
    assert!(page.starts_with(".ie") && page.contains("pilotlight\\-status"), "{page}");
    for section in ["EXAMPLES", "EXIT STATUS", "ENVIRONMENT", "FILES"] {
        assert!(page.contains(section), "{section}: {page}");
    }
    let folder = user.scratch.path().join("manual");
    assert_eq!(code(&user, &["man", "--dir", folder.to_str().unwrap()]), Some(0));
    assert_eq!(fs::read_to_string(folder.join("pilotlight.1")).unwrap(), page);
    // Case 234: each synopsis names the arguments.
    for (name, synopsis) in [
        ("pilotlight", "pilotlight [\\-\\-home <DIR>]... [\\-\\-color <WHEN>] [COMMAND]"),
        (
            "pilotlight-approve",
            "approve [NAME] [\\-\\-host <HOST>] [\\-\\-request <RID>] [\\-\\-all] [\\-\\-yes] [\\-\\-ask] [\\-\\-sha256 <HASH>]",
        ),
        ("pilotlight-answer", "answer [NAME] [\\-\\-host <HOST>] [ANSWER] "),
        ("pilotlight-bridge", " <COMMAND>"),
        ("pilotlight-replay", "<FILE> [\\-\\-owner <OWNER>] [\\-\\-until <+DURATION>]"),
    ] {
        let page = fs::read_to_string(folder.join(format!("{name}.1"))).unwrap();
        let usage = page.split(".SH ").find(|section| section.starts_with("SYNOPSIS")).unwrap().replace("\\fR", "");
        assert!(usage.contains(synopsis), "{name}: {synopsis}\n{usage}");
        assert!(!page.contains('`'), "{name}: {page}");
    }
    assert!(folder.join("pilotlight.1").is_file() && folder.join("pilotlight-status.1").is_file());
    assert_eq!(code(&user, &["man", "--dir", "/proc/nowhere"]), Some(1));
}

#[test]
fn without_a_readable_home_status_exits_with_3() {
    let user = User::new();
    fs::remove_dir_all(user.home()).unwrap();
    let output = user.run(&["status", "--json"]);
    assert_eq!(output.status.code(), Some(3));
    assert_eq!(serde_json::from_slice::<Value>(&output.stdout).unwrap(), json!([]));
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(stderr.contains("there is no Copilot home at") && stderr.contains("--home"), "{stderr}");

    // One readable home is enough, and the other is still reported.
    let other = User::new();
    let home = other.home();
    let output = user.run(&["status", "--home", home.to_str().unwrap(), "--home", "/nonexistent"]);
    assert_eq!(output.status.code(), Some(0));
    assert!(String::from_utf8(output.stderr).unwrap().contains("/nonexistent"));

    // A home without any session is a home.
    fs::remove_dir_all(other.sessions()).unwrap();
    let output = other.run(&["status", "--json"]);
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(0), &b"[]\n"[..]));

    // A file in place of the session folders.
    fs::write(other.sessions(), "").unwrap();
    assert_eq!(code(&other, &["status"]), Some(3));
}

#[test]
fn homes_come_from_the_flag_then_the_environment_then_the_default() {
    let (one, two) = (User::new(), User::new());
    one.session(1).ended(Duration::from_secs(60));
    two.session(2).ended(Duration::from_secs(60));
    let ids = |output: std::process::Output| -> Vec<String> {
        let rows: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
        rows.iter().map(|row| row["id"].as_str().unwrap()[..8].to_owned()).collect()
    };
    let mut command = one.pilotlight(&["status", "--json"]);
    assert_eq!(ids(command.output().unwrap()), ["00000001"]);
    assert_eq!(ids(command.env("COPILOT_HOME", two.home()).output().unwrap()), ["00000002"]);
    assert_eq!(ids(command.arg("--home").arg(one.home()).output().unwrap()), ["00000001"]);
    let config = one.scratch.path().join("config.toml");
    fs::write(&config, format!("homes = [{:?}]", two.home())).unwrap();
    let both = one.pilotlight(&["status", "--json"]).env("PILOTLIGHT_CONFIG", &config).output().unwrap();
    let mut both = ids(both);
    both.sort();
    assert_eq!(both, ["00000001", "00000002"]);
}

#[test]
fn a_row_has_the_promised_fields() {
    let user = User::new();
    let session = user.session(1);
    let owner = session.owner(&user);
    session.prompt();
    let row = user.row(&session).unwrap();
    let mut keys: Vec<_> = row.as_object().unwrap().keys().map(String::as_str).collect();
    let mut promised = [
        "id",
        "name",
        "cwd",
        "branch",
        "kind",
        "status",
        "since",
        "last_progress",
        "because",
        "unseen",
        "owner",
        "background",
        "actions",
        "agent",
        "host",
        "label",
        "turn",
        "request",
        "question",
        "reached",
        "wakes_at",
        "limit_until",
        "context",
    ];
    promised.sort_unstable();
    keys.sort_unstable();
    assert_eq!(keys, promised);
    assert_eq!((&row["kind"], &row["branch"]), (&json!("terminal"), &Value::Null));
    assert_eq!(row["owner"]["pid"], owner.pid());
    assert_eq!(row["background"], json!({"agents": 0, "shells": 0, "list": []}));
    let since: jiff::Timestamp = row["since"].as_str().unwrap().parse().unwrap();
    assert!(row["since"].as_str().unwrap().ends_with('Z') && since <= jiff::Timestamp::now());
}

#[test]
fn only_the_last_ten_sessions_that_ended_within_a_day_are_listed() {
    let user = User::new();
    for n in 1..=14 {
        user.session(n).ended(Duration::from_secs(3600 * u64::from(n)));
    }
    user.session(15).ended(Duration::from_secs(25 * 3600));
    user.session(99); // never prompted and not open
    let ids: Vec<_> = user.rows(&[]).iter().map(|row| row["id"].as_str().unwrap()[..8].to_owned()).collect();
    assert_eq!(ids, (1..=10).map(|n| format!("{n:08x}")).collect::<Vec<_>>());
    let all = user.rows(&["--all"]);
    assert_eq!(all.len(), 15);
    assert!(all.iter().all(|row| row["status"] == "ended" && row["because"] == "shut down"));
}

#[test]
fn unambiguous_prefixes_of_ids_are_accepted() {
    let user = User::new();
    for n in [0xab00, 0xab01] {
        user.session(n).ended(Duration::from_secs(60));
    }
    assert_eq!(code(&user, &["explain", "0000ab01"]), Some(0));
    let ambiguous = user.run(&["explain", "0000ab"]);
    assert_eq!(ambiguous.status.code(), Some(2));
    assert!(String::from_utf8(ambiguous.stderr).unwrap().contains("means 2 sessions"));
    assert_eq!(code(&user, &["explain", "ffff"]), Some(2));

    // A copied home has the same ids.
    let copy = User::new();
    copy.session(0xab00).ended(Duration::from_secs(60));
    let homes = [user.home(), copy.home()].map(|home| home.to_str().unwrap().to_owned());
    let twice = user.run(&["explain", "0000ab00", "--home", &homes[0], "--home", &homes[1]]);
    assert_eq!(twice.status.code(), Some(2));
    let stderr = String::from_utf8(twice.stderr).unwrap();
    assert!(stderr.contains("2 homes have a session") && stderr.contains("--home"), "{stderr}");
}

#[test]
fn explain_prints_facts_limits_and_the_next_change() {
    let user = User::new();
    let session = user.session(1);
    let _owner = session.owner(&user);
    session.prompt();
    session.log_event(
        "tool.execution_start",
        r#"{"toolCallId":"c","toolName":"bash","arguments":{"command":"make all"}}"#,
    );
    let output = String::from_utf8(user.run(&["explain", "00000001"]).stdout).unwrap();
    for words in
        ["status          working", "bash, started ", "make all", "quiet after 10 min", "at the latest in ", "alive"]
    {
        assert!(output.contains(words), "{words} is not in:\n{output}");
    }
}

#[test]
fn replay_prints_each_change_in_the_logs_own_time() {
    let user = User::new();
    let log = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/traces/10a-model-hang-live/73a6896d-2f6d-44f7-9970-27e603b52479/events.jsonl"
    );
    let changes = |args: &[&str]| -> Vec<(String, String)> {
        let output = user.run(&[&["replay", log, "--json"], args].concat());
        assert!(output.status.success(), "{output:?}");
        let lines = String::from_utf8(output.stdout).unwrap();
        let rows = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        rows.map(|row| (row["at"].as_str().unwrap()[11..].to_owned(), row["status"].as_str().unwrap().to_owned()))
            .collect()
    };
    let change = |at: &str, status: &str| (at.to_owned(), status.to_owned());
    let recorded = [change("18:09:48.997Z", "idle"), change("18:09:49.091Z", "working")];
    assert_eq!(changes(&[]), recorded);
    let silent = [change("18:10:49.098Z", "quiet"), change("18:11:49.098Z", "stuck")];
    assert_eq!(changes(&["--until", "+2m"]), [&recorded[..], &silent].concat());
    assert_eq!(changes(&["--until", "+119999ms"]), [&recorded[..], &silent[..1]].concat());
    assert_eq!(changes(&["--owner", "dead"]), [&recorded[..], &[change("18:09:49.099Z", "crashed")]].concat());
    let ended = [&recorded[..], &silent, &[change("18:19:49.099Z", "ended")]].concat();
    assert_eq!(changes(&["--owner", "unknown", "--until", "+11m"]), ended);
    assert_eq!(code(&user, &["replay", "/nonexistent"]), Some(1));
    assert_eq!(code(&user, &["replay", log, "--until", "soon"]), Some(2));
}

#[test]
fn case_311_replay_says_whose_log_it_is() {
    let user = User::new();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let other = user.scratch.path().join("other.jsonl");
    fs::write(&other, "{}\n").unwrap();
    for (log, heading, name) in [
        (
            root.join("traces/10a-model-hang-live/73a6896d-2f6d-44f7-9970-27e603b52479/events.jsonl"),
            "a log of Copilot",
            "copilot",
        ),
        (
            root.join("claude-code/2.1.330/plain/files/-lab-plain-proj/8181ad48-f4af-4cf5-9364-a18001305422.jsonl"),
            "a log of Claude Code",
            "claude-code",
        ),
        (root.join("traces-codex/plain/rollout.jsonl"), "a log of Codex", "codex"),
        (other, "its beginning does not tell whose log it is: read as one of Copilot", ""),
    ] {
        let said = |args: &[&str]| {
            let output = user.run(&[&["replay", log.to_str().unwrap()], args].concat());
            String::from_utf8(output.stdout).unwrap()
        };
        assert_eq!(said(&[]).lines().next(), Some(heading));
        for line in said(&["--json"]).lines() {
            assert_eq!(serde_json::from_str::<Value>(line).unwrap()["agent"], name, "{line}");
        }
        assert_eq!(said(&["--json"]).is_empty(), name.is_empty());
    }
}

/// Given: a log that Codex has packed, and one that is cut. -> It is read as one of Codex; what is missing is an error.
#[test]
fn case_544_replay_reads_a_packed_log() {
    let user = User::new();
    let log = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/traces-codex/plan-proposed/rollout.jsonl");
    let packed =
        ruzstd::encoding::compress_to_vec(&fs::read(&log).unwrap()[..], ruzstd::encoding::CompressionLevel::Fastest);
    let path = user.scratch.path().join("rollout.jsonl.zst");
    let replay = |bytes: &[u8]| {
        fs::write(&path, bytes).unwrap();
        user.run(&["replay", path.to_str().unwrap()])
    };
    let output = replay(&packed);
    let said = String::from_utf8(output.stdout.clone()).unwrap();
    assert!(
        output.status.success() && said.starts_with("a log of Codex\n") && said.contains("needs-input"),
        "{output:?}"
    );
    let plain = user.run(&["replay", log.to_str().unwrap()]);
    assert_eq!(output.stdout, plain.stdout);
    assert_eq!(replay(&packed[..packed.len() / 2]).status.code(), Some(1));
}

#[test]
fn case_362_replay_refuses_what_may_never_end() {
    let user = User::new();
    let pipe = user.scratch.path().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    for file in [pipe.to_str().unwrap(), "/dev/zero", user.scratch.path().to_str().unwrap()] {
        let output = user.run(&["replay", file]);
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code() == Some(1) && output.stdout.is_empty() && said.contains("not a file"), "{said}");
        assert!(said.contains("`-` for standard input"), "{said}");
    }
}

/// The line is larger than the memory that it is given; the file has a hole and takes no disk.
#[test]
fn case_340_replay_keeps_no_line_without_an_end() {
    let user = User::new();
    let log = user.scratch.path().join("endless.jsonl");
    let recorded = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/traces/10a-model-hang-live/73a6896d-2f6d-44f7-9970-27e603b52479/events.jsonl");
    fs::copy(recorded, &log).unwrap();
    let file = fs::File::options().append(true).open(&log).unwrap();
    file.set_len(file.metadata().unwrap().len() + (200 << 20)).unwrap();
    let mut command = std::process::Command::new("sh");
    command.args(["-c", "ulimit -v 300000; exec \"$0\" replay \"$1\""]).arg(env!("CARGO_BIN_EXE_pilotlight")).arg(&log);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stdout).contains("working"), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("skipped 1 of 5 lines: no event"), "{output:?}");
}

#[test]
fn a_config_error_is_reported_and_the_rest_takes_effect() {
    let user = User::new();
    let config = user.scratch.path().join("config.toml");
    fs::write(&config, "[limits]\nfresh-qiet = \"1s\"\nfresh-stuck = \"90s\"\n").unwrap();
    let output = user.pilotlight(&["config", "--print"]).env("PILOTLIGHT_CONFIG", &config).output().unwrap();
    let (stderr, printed) = (String::from_utf8(output.stderr).unwrap(), String::from_utf8(output.stdout).unwrap());
    assert!(stderr.contains("config.toml:2:") && stderr.contains("did you mean `fresh-quiet`"), "{stderr}");
    assert!(printed.contains("fresh-stuck = \"1m30s\"") && printed.contains("fresh-quiet = \"1m\""), "{printed}");
    assert_eq!(output.status.code(), Some(2));
    assert!(
        String::from_utf8(user.pilotlight(&["status"]).env("PILOTLIGHT_CONFIG", &config).output().unwrap().stderr)
            .unwrap()
            .contains("fresh-qiet")
    );
}

#[test]
fn output_to_a_pipe_has_no_colour() {
    let user = User::new();
    let session = user.session(1);
    let _owner = session.owner(&user);
    session.prompt();
    let table = String::from_utf8(user.run(&["status"]).stdout).unwrap();
    assert!(table.starts_with("1 working\n") && table.contains("▶ working"), "{table}");
    assert!(!table.contains('\u{1b}'));
}

/// The program's shell completions for the last of these words.
fn completed(user: &User, words: &[&str]) -> Vec<String> {
    let mut line = vec!["--", "pilotlight"];
    line.extend(words);
    let ran = user
        .pilotlight(&line)
        .env("PILOTLIGHT_COMPLETE", "bash")
        .env("_CLAP_COMPLETE_INDEX", words.len().to_string())
        .env("_CLAP_COMPLETE_COMP_TYPE", "9")
        .env("_CLAP_IFS", "\n")
        .output()
        .unwrap();
    assert!(ran.status.success(), "{ran:?}");
    String::from_utf8(ran.stdout).unwrap().lines().map(|line| line.trim_end().to_owned()).collect()
}

/// By its id, its folder or its title. Each is completed, accepted, and suggested for a typing error.
#[test]
fn a_session_can_be_named_by_its_id_folder_or_title() {
    let user = User::new();
    let (one, other) = (user.session(1), user.session(2));
    for (folder, cwd, title) in
        [(&one, "/code/billing-api", "Write the migration"), (&other, "/code/infra", "Load test")]
    {
        folder.workspace(&format!("cwd: {cwd}\nname: {title}\n"));
        folder.prompt();
    }
    for named in [&one.id[..], "billing-api", "/code/billing-api", "Write the migration", "write the MIGRATION"] {
        let ran = user.run(&["explain", named]);
        let stdout = String::from_utf8(ran.stdout).unwrap();
        assert!(ran.status.success() && stdout.contains(&*one.id), "{named}: {stdout}");
    }
    let refused = |named: &str| {
        let ran = user.run(&["stop", named]);
        assert_eq!(ran.status.code(), Some(2), "{ran:?}");
        String::from_utf8(ran.stderr).unwrap()
    };
    let stderr = refused("biling-api");
    assert!(
        stderr.contains("no session has \"biling-api\"") && stderr.contains("billing-api · Write the migration"),
        "{stderr}"
    );
    other.workspace("cwd: /code/billing-api\nname: Load test\n");
    let stderr = refused("billing-api");
    assert!(
        stderr.contains("means 2 sessions: ") && stderr.contains("Name one by its id, folder or title"),
        "{stderr}"
    );
    other.workspace("cwd: /code/infra\nname: Load test\n");
    assert_eq!(completed(&user, &["stop", "bil"]), ["billing-api"]);
    assert_eq!(completed(&user, &["explain", "Write"]), ["Write\\ the\\ migration"]);
    let all = completed(&user, &["approve", "--yes", ""]);
    assert!(["infra", "Load\\ test"].iter().all(|name| all.iter().any(|one| one == name)), "{all:?}");
}
