//! The findings, their levels, and that no check blocks.

use crate::support::executable::executable;
use crate::support::running_time::running_time;
use crate::support::synthetic::{Owner, User};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// The findings of `doctor --json`, and its exit code.
pub(super) fn examined(command: &mut Command) -> (Vec<Value>, Option<i32>) {
    let output = command.args(["doctor", "--json"]).output().unwrap();
    let found = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"));
    (found, output.status.code())
}

fn doctor(user: &User) -> Vec<Value> {
    examined(&mut user.pilotlight(&[])).0
}

/// The findings of a check that contain these words.
fn matching<'a>(found: &'a [Value], check: &str, words: &str) -> Vec<&'a Value> {
    found.iter().filter(|it| it["check"] == check && it["said"].as_str().unwrap().contains(words)).collect()
}

fn level(found: &[Value], check: &str, words: &str) -> String {
    let matches = matching(found, check, words);
    assert_eq!(matches.len(), 1, "one {check} says {words:?}: {found:#?}");
    matches[0]["level"].as_str().unwrap().to_owned()
}

/// Installs a fake Copilot CLI that prints its version.
fn install_copilot(user: &User) {
    let bin = user.scratch.path().join(".local/bin");
    fs::create_dir_all(&bin).unwrap();
    let program = bin.join("copilot");
    executable(&program, "#!/bin/sh\necho 'GitHub Copilot CLI 1.0.102.'\n");
}

#[test]
fn each_finding_has_the_promised_fields_and_problems_decide_the_exit_code() {
    let user = User::new();
    install_copilot(&user);
    let (found, code) = examined(&mut user.pilotlight(&[]));
    assert_eq!(level(&found, "copilot", ".local/bin/copilot, version 1.0.102"), "ok");
    assert_eq!(level(&found, "home", ".copilot: 0 sessions"), "ok");
    // There is no bus here: no icon.
    assert_eq!((level(&found, "bus", "no session bus").as_str(), code), ("problem", Some(1)));
    for one in &found {
        let mut keys: Vec<_> = one.as_object().unwrap().keys().map(String::as_str).collect();
        keys.sort_unstable();
        assert_eq!(keys, ["check", "level", "remedy", "said"]);
        let level = one["level"].as_str().unwrap();
        assert!(["ok", "warning", "problem"].contains(&level));
        assert_eq!(one["remedy"].is_null(), level == "ok", "every warning and problem has a remedy: {one}");
    }
    let text = String::from_utf8(user.run(&["doctor"]).stdout).unwrap();
    assert!(text.contains("problem  bus") && text.contains("→ ") && !text.contains('\u{1b}'), "{text}");
    assert!(!user.scratch.path().join(".local/state").exists(), "checks leave nothing behind");
}

/// Case 88: a log that is not a file is named, never followed, and never waited for.
#[test]
fn case_88_a_log_that_is_not_a_file_is_named_and_never_waited_for() {
    let user = User::new();
    let logs: Vec<_> = (1..=5).map(|n| user.session(n).log()).collect();
    fs::create_dir(&logs[0]).unwrap();
    Command::new("mkfifo").arg(&logs[1]).status().unwrap();
    let secret = user.scratch.path().join("elsewhere.jsonl");
    Command::new("mkfifo").arg(&secret).status().unwrap();
    symlink(&secret, &logs[2]).unwrap();
    fs::File::create(&logs[3]).unwrap().set_len(2 << 30).unwrap();
    symlink(user.scratch.path(), user.sessions().join("a-link")).unwrap();
    Command::new("mkfifo").arg(user.session(6).path.join("inuse.1.lock")).status().unwrap();
    let broken = user.session(7);
    broken.prompt();
    broken.append("{\"type\":\"user.mess\n\0\0\0\n");
    let begun = running_time();
    let found = doctor(&user);
    let took = running_time() - begun;
    assert!(took < Duration::from_secs(8), "{took:?}");
    let log = |n: u32, words: &str| level(&found, "log", &format!("{n:08x}-0000-4000-a000-000000000000/{words}"));
    assert_eq!(log(1, "events.jsonl is a folder"), "problem");
    assert_eq!(log(2, "events.jsonl is a pipe"), "problem");
    assert_eq!(log(3, "events.jsonl is a symbolic link"), "problem");
    assert_eq!(log(4, "events.jsonl is 2048 MiB long"), "warning");
    assert_eq!(log(7, "events.jsonl: skipped 2 lines that are no events"), "warning");
    assert_eq!(level(&found, "log", "2 sessions have no log"), "ok");
    assert_eq!(level(&found, "session", "a-link is a symbolic link"), "warning");
    assert!(matching(&found, "log", "elsewhere").is_empty(), "the link is not followed");
}

/// Codex keeps the log of a sub-agent beside those of the sessions.
#[test]
fn case_870_the_log_of_a_sub_agent_is_no_session() {
    let user = User::new();
    let day = user.scratch.path().join(".codex/sessions/2026/11/21");
    fs::create_dir_all(&day).unwrap();
    for name in ["agent", "agent-sub"] {
        let recorded =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/traces-codex").join(name).join("rollout.jsonl");
        let log = fs::read_to_string(recorded).unwrap();
        let meta: Value = serde_json::from_str(log.lines().next().unwrap()).unwrap();
        let id = meta["payload"]["id"].as_str().unwrap();
        fs::write(day.join(format!("rollout-2026-11-21T22-59-11-{id}.jsonl")), log).unwrap();
    }
    assert_eq!(level(&doctor(&user), "home", ".codex: 1 session ("), "ok");
}

#[test]
fn an_unreadable_log_is_a_problem() {
    if rustix::process::geteuid().is_root() {
        return; // root can read everything
    }
    let user = User::new();
    let session = user.session(1);
    session.prompt();
    fs::set_permissions(session.log(), fs::Permissions::from_mode(0o000)).unwrap();
    assert_eq!(level(&doctor(&user), "log", "cannot be read"), "problem");
}

/// Cases 71, 73, 87.
#[test]
fn case_71_73_and_87_stale_locks_are_named_and_conflicting_ones_are_a_problem() {
    let user = User::new();
    let (stale, contested) = (user.session(0xa1), user.session(0xb2));
    let owner = stale.owner(&user);
    stale.prompt();
    owner.kill();
    let (_one, _two) = (contested.owner(&user), contested.owner(&user));
    contested.prompt();
    let found = doctor(&user);
    assert_eq!(level(&found, "lock", "1 session has a lock of a process that is gone: 000000a1"), "warning");
    assert_eq!(level(&found, "lock", "session 000000b2: two live processes have a lock on it"), "problem");
}

/// Case 107f: a stale entry of the registry is named without its token.
#[test]
fn case_107f_stale_registry_entries_are_named_without_their_tokens() {
    let user = User::new();
    let servers = user.home().join("servers");
    fs::create_dir(&servers).unwrap();
    let owner = Owner::start(user.scratch.path(), "copilot");
    let put = |name: String, text: String| {
        fs::write(servers.join(&name), text).unwrap();
        fs::set_permissions(servers.join(name), fs::Permissions::from_mode(0o600)).unwrap();
    };
    let entry = |pid: u32| json!({"pid": pid, "port": 4321, "token": "s3cret-token"}).to_string();
    put("2147483600.json".into(), entry(2_147_483_600));
    put(format!("{}.json", owner.pid()), entry(owner.pid()));
    put("7.json".into(), "s3cret-token".into());
    Command::new("mkfifo").arg(servers.join("8.json")).status().unwrap();
    let found = doctor(&user);
    assert_eq!(level(&found, "registry", "2147483600.json is ignored: its process is gone"), "warning");
    assert_eq!(level(&found, "registry", "its process does not listen there"), "warning");
    assert_eq!(level(&found, "registry", "7.json is ignored: it is broken"), "warning");
    assert_eq!(level(&found, "registry", "8.json is ignored: it is not a private file"), "warning");
    assert!(!format!("{found:?}").contains("s3cret"));
}

#[test]
fn settings_and_state_files_are_checked() {
    let user = User::new();
    let config = user.scratch.path().join("config.toml");
    fs::write(
        &config,
        "[limits]\nfresh-qiet = \"1s\"\n[[server]]\naddress = \"127.0.0.1:9\"\ntoken-env = \"NOT_SET\"\n",
    )
    .unwrap();
    let state = user.scratch.path().join(".local/state/pilotlight");
    fs::create_dir_all(&state).unwrap();
    fs::write(state.join("quiet.json"), "{").unwrap();
    Command::new("mkfifo").arg(state.join("seen.json")).status().unwrap();
    let autostart = user.scratch.path().join(".config/autostart");
    fs::create_dir_all(&autostart).unwrap();
    fs::write(autostart.join("pilotlight.desktop"), "[Desktop Entry]\nExec=/nowhere/pilotlight\n").unwrap();
    let found = examined(user.pilotlight(&[]).env("PILOTLIGHT_CONFIG", &config)).0;
    assert_eq!(level(&found, "config", "config.toml:2:1: unknown key `limits.fresh-qiet`"), "problem");
    assert_eq!(level(&found, "[[server]]", "$NOT_SET"), "problem");
    assert_eq!(level(&found, "state", "quiet.json is broken: what is muted or paused"), "problem");
    assert_eq!(level(&found, "state", "seen.json is broken"), "problem");
    assert_eq!(level(&found, "autostart", "starts /nowhere/pilotlight, which is not there"), "problem");
}

#[test]
fn what_is_remembered_of_sessions_is_not_broken() {
    let user = User::new();
    let state = user.scratch.path().join(".local/state/pilotlight");
    fs::create_dir_all(&state).unwrap();
    let time = "2026-11-26T01:02:03.000Z";
    let seen = format!(r#"{{"one/0123456789abcdef": {{"approved": "{time}", "seen": "{time}"}}}}"#);
    fs::write(state.join("seen.json"), seen).unwrap();
    let found = examined(&mut user.pilotlight(&[])).0;
    assert!(!format!("{found:?}").contains("seen.json"), "{found:?}");
}

/// The same words as in the menu.
#[test]
fn autostart_entries_are_read_as_the_desktop_reads_them() {
    let user = User::new();
    let entry = user.scratch.path().join(".config/autostart/pilotlight.desktop");
    fs::create_dir_all(entry.parent().unwrap()).unwrap();
    let program = user.pilotlight(&[]).get_program().to_str().unwrap().to_owned();
    for (lines, said) in [
        (format!("Exec=env A=b {program} tray"), "started at login"),
        (format!("Exec={program} tray\nOnlyShowIn=KDE;"), "not started at login: its entry is for other desktops"),
        (format!("Exec={program} tray\nHidden=True"), "not started at login: its entry is hidden"),
        (format!("Exec={program} tray\nTryExec=/gone"), "not started at login: its program is gone"),
    ] {
        fs::write(&entry, format!("[Desktop Entry]\n{lines}\n")).unwrap();
        let found = examined(user.pilotlight(&[]).env("XDG_CURRENT_DESKTOP", "XFCE")).0;
        let first = found.iter().find(|it| it["check"] == "autostart").unwrap();
        assert_eq!(first["said"], said, "{lines}");
    }
}

/// A Copilot CLI that never prints its version costs only its own check.
#[test]
fn a_program_that_hangs_does_not_delay_the_other_checks() {
    let user = User::new();
    install_copilot(&user);
    let program = user.scratch.path().join(".local/bin/copilot");
    executable(&program, "#!/bin/sh\nexec sleep 600\n");
    let begun = running_time();
    let found = doctor(&user);
    let took = running_time() - begun;
    assert!(took < Duration::from_secs(12), "{took:?}");
    assert_eq!(level(&found, "copilot", "does not say its version within 5 s"), "problem");
    assert_eq!(level(&found, "home", "0 sessions"), "ok");
}
