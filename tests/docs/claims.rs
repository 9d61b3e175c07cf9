//! The claims of SECURITY.md and docs/bridge.md: each names its tests, and these exist. Also the tests of claims about
//! the whole program: what it never writes, and what it never logs.

use super::listing;
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

#[test]
fn every_claim_names_tests_and_every_test_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let bridge = fs::read_to_string(root.join("docs/bridge.md")).unwrap();
    let promised = bridge.split_once("## What is promised").unwrap().1;
    let text = fs::read_to_string(root.join("SECURITY.md")).unwrap() + promised;
    let mut claims = 0;
    for claim in text.split("\n- ").skip(1) {
        let claim = claim.split("\n\n").next().unwrap();
        let tests = named_tests(claim);
        assert!(!tests.is_empty() || claim.contains("deny.toml"), "no test is named for this claim:\n{claim}");
        for (file, name) in tests {
            let exists = listing::tests().iter().any(|test| test.name() == name && test.is_in(&file));
            assert!(exists, "{file} has no test {name}");
        }
        claims += 1;
    }
    assert!(claims > 15, "{claims} claims were found");
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
