use super::*;
use crate::codex::Codex;
use std::os::unix::fs::symlink;

#[test]
fn case_510_homes_share_a_log_by_a_link_to_all_of_them_to_a_folder_or_by_a_relative_one() {
    let scratch = tempfile::tempdir().unwrap();
    let at = |path: &str| scratch.path().join(path);
    fs::create_dir_all(at("one/projects/-a")).unwrap();
    fs::write(at("one/projects/-a/x.jsonl"), "").unwrap();
    for home in ["whole", "relative", "part", "copy", "loop"] {
        fs::create_dir(at(home)).unwrap();
    }
    symlink(at("one/projects"), at("whole/projects")).unwrap();
    symlink("../one/projects", at("relative/projects")).unwrap();
    fs::create_dir(at("part/projects")).unwrap();
    symlink(at("one/projects/-a"), at("part/projects/-a")).unwrap();
    fs::create_dir_all(at("copy/projects/-a")).unwrap();
    fs::write(at("copy/projects/-a/x.jsonl"), "").unwrap();
    symlink(at("loop/projects"), at("loop/projects")).unwrap();
    let (root, log) = (at("one/projects"), at("one/projects/-a/x.jsonl"));
    for (home, is_shared) in [
        ("one", true),
        ("whole", true),
        ("relative", true),
        ("part", true),
        ("copy", false),
        ("loop", false),
        ("absent", false),
    ] {
        assert_eq!(shares(&at(home).join("projects"), &root, &log), is_shared, "{home}");
        let there = at(home).join("projects");
        assert_eq!(shares(&root, &there, &there.join("-a/x.jsonl")), is_shared, "from {home}");
    }
    // A session that was not prompted yet has no log.
    assert!(shares(&at("whole/projects"), &root, &root.join("-a/none.jsonl")));
    assert!(!shares(&at("part/projects"), &root, &root.join("-a/none.jsonl")));
}

#[test]
fn a_home_is_named_by_its_variable_or_is_in_the_users() {
    let variables =
        |set: &[(&str, &str)]| set.iter().map(|(name, value)| (name.into(), value.into())).collect::<Vec<_>>();
    let home = |set: &[(&str, &str)]| home_in(&variables(set), "CODEX_HOME", ".codex");
    assert_eq!(home(&[("HOME", "/h"), ("CODEX_HOME", "/c")]), Some("/c".into()));
    assert_eq!(home(&[("HOME", "/h"), ("CODEX_HOME", "")]), Some("/h/.codex".into()));
    assert_eq!(home(&[]), None);
}

/// When it started is counted back from now, so it comes out a little different at each scan.
#[test]
fn case_527_a_process_that_runs_on_is_no_other_one() {
    use crate::openings::OpenSessions;
    let runner = |born, started, folder: &str| Runner {
        adapter: &Codex,
        pid: 7,
        born,
        started: Time(started),
        home: None,
        folder: Some(folder.into()),
        named: None,
        claims: Vec::new(),
        logs: Vec::new(),
        continues: false,
        is_helper: false,
    };
    let scan = |runners: Vec<Runner>| OpenSessions::default().with(runners, Vec::new());
    let before = scan(vec![runner(1, 1000, "/a")]);
    assert!(!scan(vec![runner(1, 1013, "/a")]).has_other_runners(&before));
    for others in [vec![runner(2, 1000, "/a")], vec![runner(1, 1000, "/b")], vec![]] {
        assert!(scan(others.clone()).has_other_runners(&before), "{others:?}");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn case_528_a_launcher_is_not_taken_for_the_program_that_it_started() {
    use pilotlight_system::clock::Clock;
    use pilotlight_system::process::testing::copy;
    use std::process::{Command, Stdio};
    pilotlight_system::process::testing::alone!();
    let scratch = tempfile::tempdir().unwrap();
    let at = |path: &str| scratch.path().join(path);
    fs::create_dir_all(at("node_modules/@openai/codex/bin")).unwrap();
    let script = at("node_modules/@openai/codex/bin/codex.js");
    // A shell by the name of node, which runs its script, as the launcher of an older Node does.
    for (from, to) in [("/bin/bash", "node"), ("/bin/sleep", "codex")] {
        copy(from, &at(to));
    }
    fs::write(&script, format!("{} 600 & wait\n", at("codex").display())).unwrap();
    let mut launcher = Command::new(at("node"));
    let mut launcher = launcher.arg(&script).stdin(Stdio::null()).spawn().unwrap();
    let home = Home::of(&Codex, at("home/.codex"));
    let found = || {
        let runners = scan(&[&home], &[], Clock::start().now().wall).runners;
        let of_ours = |runner: &Runner| executable_below(runner.pid, scratch.path());
        runners.into_iter().filter(of_ours).map(|runner| runner.pid).collect::<Vec<_>>()
    };
    let begun = std::time::Instant::now();
    let pids = loop {
        let pids = found();
        if pids.first().is_some_and(|pid| *pid != launcher.id()) || begun.elapsed().as_secs() > 30 {
            break pids;
        }
        std::thread::yield_now();
    };
    for pid in &pids {
        let _ = Command::new("kill").arg(pid.to_string()).status();
    }
    launcher.kill().unwrap();
    launcher.wait().unwrap();
    assert!(pids.len() == 1 && pids[0] != launcher.id(), "{pids:?}, and {} is the launcher", launcher.id());
}

#[cfg(target_os = "linux")]
fn executable_below(pid: u32, folder: &Path) -> bool {
    pilotlight_system::process::executable(pid).is_some_and(|program| program.starts_with(folder))
}
