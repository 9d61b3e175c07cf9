//! The claims of SECURITY.md, in tables, and of docs/bridge-tests.md, in a list: each names its tests, and these exist. Also
//! the tests of claims about the whole program: what it never writes, and what it never logs.

use super::listing::{self, Test};
use crate::support::synthetic::User;
use crate::support::{SOON, wait_until};
use rustix::process::Signal;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The tests that a text names, as `path/to/file.rs::name` in backquotes.
fn named_tests(text: &str) -> Vec<(String, String)> {
    let quoted = text.split('`').skip(1).step_by(2);
    quoted.filter_map(|word| word.split_once(".rs::").map(|(file, name)| (format!("{file}.rs"), name.into()))).collect()
}

/// The tests that the rows of SECURITY.md's tables name, each with its row.
fn shown_by(text: &str) -> Vec<(&str, Vec<&str>)> {
    let is_head = |row: &str| row == "| threat | what stops it | test |" || row.starts_with("|-");
    let rows = text.lines().filter(|line| line.starts_with('|') && !is_head(line));
    rows.map(|row| {
        let cells: Vec<&str> = row.trim_matches('|').trim().split(" | ").collect();
        assert_eq!(cells.len(), 3, "this row has other columns:\n{row}");
        (row, cells[2].split(", ").collect())
    })
    .collect()
}

/// Whether the tests exist that an item names: `84 (16)` are 16 tests of a case, or more by now; `a_name…` is the one test
/// whose name begins so, with its file where the names of others do, too.
fn exists(item: &str) -> bool {
    let Some(name) = item.strip_prefix('`').and_then(|rest| rest.strip_suffix('`')) else {
        let several = item.strip_suffix(')').and_then(|rest| rest.split_once(" ("));
        let (case, count) = several.map_or((item, 1), |(case, count)| (case, count.parse::<usize>().unwrap()));
        let there = listing::tests().iter().filter(|test| test.cases().contains(&case)).count();
        return there >= count.max(1);
    };
    let (file, name) = name.rsplit_once("::").map_or((None, name), |(file, name)| (Some(file), name));
    let is_meant = |test: &&Test| {
        let fits = name.strip_suffix('…').map_or(test.name() == name, |begins| test.name().starts_with(begins));
        fits && file.is_none_or(|file| test.is_in(file))
    };
    listing::tests().iter().filter(is_meant).count() == 1
}

#[test]
fn every_threat_names_tests_and_every_test_exists() {
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("SECURITY.md")).unwrap();
    let rows = shown_by(&text);
    assert!(rows.len() > 50, "{} threats were found", rows.len());
    for (row, items) in rows {
        for item in items {
            assert!(item == "`deny.toml`" || exists(item), "{item} is not such a test, or not so many:\n{row}");
        }
    }
    assert!(exists("`every_threat_names_tests…`") && !exists("`every_…`") && !exists("`no_such_test`"));
    assert!(exists("700") && !exists("700 (999)") && !exists("0") && !exists(""));
}

#[test]
fn every_promise_of_the_bridge_names_tests_and_every_test_exists() {
    let bridge = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/bridge-tests.md")).unwrap();
    let mut promises = 0;
    for promise in bridge.split("\n- ").skip(1) {
        let promise = promise.split("\n\n").next().unwrap();
        let tests = named_tests(promise);
        assert!(!tests.is_empty(), "no test is named for this promise:\n{promise}");
        for (file, name) in tests {
            let exists = listing::tests().iter().any(|test| test.name() == name && test.is_in(&file));
            assert!(exists, "{file} has no test {name}");
        }
        promises += 1;
    }
    assert!(promises > 15, "{promises} promises were found");
}

/// Inode, times and size of every file below a folder.
fn tree(folder: &Path) -> BTreeMap<PathBuf, (u64, i64, i64, i64, u64)> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()) {
            let meta = entry.symlink_metadata().unwrap();
            found.insert(entry.clone(), (meta.ino(), meta.mtime(), meta.mtime_nsec(), meta.ctime(), meta.size()));
            if meta.is_dir() {
                folders.push(entry);
            }
        }
    }
    found
}

#[test]
fn nothing_is_written_into_copilots_folders() {
    let user = User::new();
    let (open, over) = (user.session(1), user.session(2));
    let _owner = open.owner(&user);
    open.prompt();
    open.log_event("tool.execution_start", r#"{"toolCallId":"c","toolName":"bash"}"#);
    over.ended(std::time::Duration::from_secs(3600));
    let before = tree(&user.home());
    let watch = user.watch();
    watch.wait_status(&open, "working");
    for args in [&["status"][..], &["status", "--json", "--all"], &["explain", &open.id], &["stop", &over.id, "--yes"]]
    {
        user.run(args);
    }
    let mut tray = user.pilotlight(&[]).stderr(std::process::Stdio::null()).spawn().unwrap();
    let log = user.scratch.path().join(".local/state/pilotlight/pilotlight.log");
    let read = || fs::read_to_string(&log).unwrap_or_default();
    wait_until(SOON, "the tray is up", read, || read().contains("bus").then_some(()));
    rustix::process::kill_process(rustix::process::Pid::from_child(&tray), Signal::TERM).unwrap();
    assert!(tray.wait().unwrap().success());
    assert_eq!(watch.end(Signal::TERM), Some(0));
    assert_eq!(tree(&user.home()), before);
}

/// At no log level: neither prompts, commands, results nor titles.
#[test]
fn no_log_contains_what_sessions_say() {
    let user = User::new();
    let session = user.session(1);
    session.workspace("name: mute-title\ncwd: /home/dev/mute-folder\nclient_name: github/cli\n");
    let _owner = session.owner(&user);
    session.log_event("user.message", r#"{"content":"mute-prompt"}"#);
    let stderr = user.scratch.path().join("stderr");
    let mut watch = user.pilotlight(&["watch", "--json"]);
    watch.env("PILOTLIGHT_LOG", "trace").stderr(fs::File::create(&stderr).unwrap());
    let watch = crate::support::synthetic::Watch::start(watch);
    let mut tray = user.pilotlight(&[]);
    tray.env("PILOTLIGHT_LOG", "trace").stdout(std::process::Stdio::null());
    tray.stderr(fs::File::options().append(true).open(&stderr).unwrap());
    let mut tray = tray.spawn().unwrap();
    watch.wait_status(&session, "working");
    session.log_event(
        "tool.execution_start",
        r#"{"toolCallId":"c","toolName":"bash","arguments":{"command":"mute-command"}}"#,
    );
    let asked =
        r#"{"requestId":"r","permissionRequest":{"kind":"shell","toolCallId":"c","fullCommandText":"mute-command"}}"#;
    session.log_event("permission.requested", asked);
    watch.wait_status(&session, "needs-permission");
    session.log_event("permission.completed", r#"{"requestId":"r","result":{"kind":"approved"}}"#);
    session.log_event(
        "tool.execution_complete",
        r#"{"toolCallId":"c","success":true,"result":{"content":"mute-result"}}"#,
    );
    session.append("{\"type\":\"broken\",\"mute-line\n");
    session.log_event("assistant.message", r#"{"content":"mute-answer","toolRequests":[]}"#);
    session.log_event("session.error", r#"{"errorType":"query","message":"mute-error"}"#);
    watch.wait_status(&session, "failed");
    let log = user.scratch.path().join(".local/state/pilotlight/pilotlight.log");
    let read = |path: &Path| fs::read_to_string(path).unwrap_or_default();
    wait_until(SOON, "the tray is up", || read(&log), || read(&log).contains("bus").then_some(()));
    rustix::process::kill_process(rustix::process::Pid::from_child(&tray), Signal::TERM).unwrap();
    assert!(tray.wait().unwrap().success());
    assert_eq!(watch.end(Signal::TERM), Some(0));
    for path in [&log, &stderr] {
        let text = read(path);
        assert!(!text.contains("mute"), "{}: {text}", path.display());
    }
}
