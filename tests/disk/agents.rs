//! Which agents are shown: filters, and agents that are switched off.

use crate::support::executable::copy_program;
use crate::support::running_time::running_time;
use crate::support::synthetic::{User, Watch};
use crate::support::{SOON, wait, wait_until};
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[test]
fn case_285_a_command_is_limited_to_agents_that_are_known() {
    let user = User::new();
    user.session(1).ended(Duration::from_secs(60));
    assert_eq!(user.rows(&["--agent", "copilot"]), user.rows(&[]));
    assert_eq!(user.rows(&[])[0]["agent"], "copilot");
    for command in [&["status", "--agent", "n\u{1b}[31mobody"][..], &["watch", "--json", "--agent", "n\u{1b}[31mobody"]]
    {
        let output = user.run(command);
        let said = stderr(&output);
        assert!(output.status.code() == Some(2) && said.contains("copilot") && !said.contains("\u{1b}[31m"), "{said}");
    }
}

#[test]
fn case_286_an_agent_that_is_switched_off_is_not_watched_until_it_is_switched_on() {
    let user = User::new();
    let session = user.session(1);
    let _owner = session.owner(&user);
    session.prompt();
    let config = user.scratch.path().join("config.toml");
    let path = config.to_str().unwrap();
    fs::write(&config, "[agents]\ncopilot = true\n").unwrap();
    let mut command = user.pilotlight(&["watch", "--json"]);
    command.env("PILOTLIGHT_CONFIG", path);
    let watch = Watch::start(command);
    watch.wait_status(&session, "working");
    let is_gone = |gone: bool| {
        let latest = || watch.latest().get(&session.id).cloned();
        wait_until(
            SOON,
            "the switch takes effect",
            || format!("{:?}", latest()),
            || (latest()?["removed"].as_bool().unwrap_or(false) == gone).then_some(()),
        );
    };
    fs::write(&config, "[agents]\ncopilot = false\n").unwrap();
    is_gone(true);
    let status = |args: &[&str]| user.pilotlight(args).env("PILOTLIGHT_CONFIG", path).output().unwrap();
    let off = status(&["status", "--json"]);
    assert!(off.status.code() == Some(3) && stderr(&off).contains("switches copilot off"), "{off:?}");
    let limited = status(&["status", "--agent", "copilot"]);
    assert!(limited.status.code() == Some(2) && stderr(&limited).contains("is switched off"), "{limited:?}");
    let named = status(&["status", "--json", "--home", user.home().to_str().unwrap()]);
    assert!(String::from_utf8(named.stdout).unwrap().contains(&session.id), "the command line was meant so");
    let doctor = String::from_utf8(status(&["doctor"]).stdout).unwrap();
    assert!(doctor.contains("Copilot is switched off"), "{doctor}");
    fs::write(&config, "").unwrap();
    is_gone(false);
}

/// Given: a folder of Claude Code's projects that is a link. -> Its sessions are shown, and `doctor` does not deny it.
#[test]
fn case_636_what_is_behind_a_linked_project_folder_is_shown_and_not_denied() {
    const ID: &str = "36535f61-5c7b-4f09-a70b-2f8aed970001";
    let user = User::new();
    let (projects, elsewhere) = (user.scratch.path().join(".claude/projects"), user.scratch.path().join("elsewhere"));
    fs::create_dir_all(&projects).unwrap();
    fs::create_dir(&elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, projects.join("-srv-api")).unwrap();
    let line = format!(
        r#"{{"type":"user","uuid":"u1","sessionId":"{ID}","cwd":"/srv/api","timestamp":"2026-11-27T10:00:00.000Z","message":{{"role":"user","content":"Paint it"}}}}"#
    );
    fs::write(elsewhere.join(format!("{ID}.jsonl")), line + "\n").unwrap();
    let shown = String::from_utf8(user.run(&["status", "--all", "--json"]).stdout).unwrap();
    assert!(shown.contains(ID), "{shown}");
    let doctor = String::from_utf8(user.run(&["doctor"]).stdout).unwrap();
    assert!(!doctor.contains("symbolic link"), "{doctor}");
    // Copilot's are not followed, which it says.
    user.session(1);
    std::os::unix::fs::symlink(&elsewhere, user.home().join("session-state").join(ID)).unwrap();
    let doctor = String::from_utf8(user.run(&["doctor"]).stdout).unwrap();
    assert!(doctor.contains("is a symbolic link, so Pilotlight does not show"), "{doctor}");
}

/// Given: a `watch`, and agents that are used for the first time meanwhile: one while a session of another is open, one while
/// none is. -> Their sessions are told within two seconds.
#[test]
fn case_538_an_agent_that_is_used_for_the_first_time_is_seen_within_two_seconds() {
    const IDS: [&str; 2] = ["36535f61-5c7b-4f09-a70b-2f8aed970001", "01a20053-8e6c-7863-a4ca-0d958e862685"];
    for has_another in [true, false] {
        let user = User::new();
        let session = user.session(1);
        let _owner = has_another.then(|| session.owner(&user));
        if has_another {
            session.prompt();
        } else {
            session.ended(Duration::from_secs(3600));
        }
        let watch = user.watch();
        watch.wait_status(&session, if has_another { "working" } else { "ended" });
        let now = jiff::Timestamp::now();
        let claude = format!(
            r#"{{"type":"user","message":{{"role":"user","content":"do it"}},"uuid":"u1","cwd":"/srv","timestamp":"{now:.3}","sessionId":"{}"}}"#,
            IDS[0]
        );
        let codex = format!(
            r#"{{"timestamp":"{now:.3}","type":"session_meta","payload":{{"id":"{}","session_id":"{0}","cwd":"/srv","originator":"codex-tui","cli_version":"0.171.0"}}}}"#,
            IDS[1]
        );
        let logs = [
            (format!(".claude/projects/-srv/{}.jsonl", IDS[0]), claude),
            (format!(".codex/sessions/2026/11/21/rollout-2026-11-21T22-56-45-{}.jsonl", IDS[1]), codex),
        ];
        for ((log, line), id) in logs.into_iter().zip(IDS) {
            let log = user.scratch.path().join(log);
            fs::create_dir_all(log.parent().unwrap()).unwrap();
            fs::write(&log, line + "\n").unwrap();
            let made = running_time();
            wait_until(SOON, "it is told", || format!("{:?}", watch.latest()), || watch.latest().get(id).map(drop));
            let took = running_time() - made;
            assert!(took < Duration::from_secs(2), "after {took:?}");
        }
    }
}

/// Given: a `watch` and a session of Claude Code, whose process has another run of a workflow begin: a folder in a folder that
/// is not there yet, and a log in it. -> The agent counts, though nothing is written afterwards.
#[test]
fn case_543_folders_that_are_made_below_a_sessions_own_are_watched() {
    const ID: &str = "36535f61-5c7b-4f09-a70b-2f8aed970001";
    let user = User::new();
    let project = user.scratch.path().join(".claude/projects/-srv");
    let line = |id: &str, kind: &str, message: &str| {
        let now = jiff::Timestamp::now();
        format!(
            r#"{{"type":"{kind}","message":{message},"uuid":"{id}","cwd":"/srv","timestamp":"{now:.3}","sessionId":"{ID}"}}"#
        ) + "\n"
    };
    let prompt = line("u1", "user", r#"{"role":"user","content":"do it"}"#);
    let answer = r#"{"id":"m1","model":"m","stop_reason":"end_turn","content":[{"type":"text","text":"It runs."}]}"#;
    fs::create_dir_all(&project).unwrap();
    fs::write(project.join(format!("{ID}.jsonl")), prompt.clone() + &line("a1", "assistant", answer)).unwrap();
    let watch = user.watch();
    let agents = |wanted: u64| {
        let latest = || watch.latest().get(ID).cloned();
        let has = || (latest()?["background"]["agents"] == wanted).then_some(());
        wait_until(SOON, "they count", || format!("{:?}", latest()), has);
    };
    agents(0);
    for run in 1..4 {
        let folder = project.join(format!("{ID}/subagents/workflows/wf_{run}"));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join(format!("agent-a{run}.jsonl")), &prompt).unwrap();
        agents(run);
    }
}

/// Given: a live process without a file that names it, and the log that it wrote, which says that they work in one folder.
/// That folder is removed, as with `git worktree remove`. -> The session is not called ended, and not resumed.
#[test]
fn case_718_a_process_whose_folder_is_removed_still_works_there() {
    const ID: &str = "36535f61-5c7b-4f09-a70b-2f8aed970718";
    let user = User::new();
    let (worktree, home) = (user.scratch.path().join("worktree"), user.scratch.path().join(".claude"));
    let (logs, program) = (home.join("projects/-project"), user.scratch.path().join("claude"));
    for folder in [&worktree, &logs] {
        fs::create_dir_all(folder).unwrap();
    }
    copy_program("/bin/sh", &program);
    let mut command = Command::new(&program);
    let mut process =
        command.env("CLAUDE_CONFIG_DIR", &home).current_dir(&worktree).stdin(Stdio::piped()).spawn().unwrap();
    let line = format!(
        r#"{{"type":"user","uuid":"u1","sessionId":"{ID}","cwd":"{}","timestamp":"{:.3}","message":{{"role":"user","content":"Paint it"}}}}"#,
        worktree.display(),
        jiff::Timestamp::now()
    );
    fs::write(logs.join(format!("{ID}.jsonl")), line + "\n").unwrap();
    fs::remove_dir(&worktree).unwrap();
    let output = user.pilotlight(&["status", "--json"]).output().unwrap();
    let rows: Vec<serde_json::Value> = serde_json::from_slice(&output.stdout).unwrap();
    let row = rows.iter().find(|row| row["id"] == ID).unwrap();
    assert!(row["because"].as_str().unwrap().contains("works in its folder"), "{row}");
    assert!(row["status"] == "working" && !row["actions"].as_array().unwrap().contains(&"resume".into()), "{row}");
    drop(process.stdin.take());
    process.wait().unwrap();
}

/// Given: a home of Codex without a folder for logs, as before its first prompt. -> A thread that waits for that prompt is shown
/// by its lock: to a `watch` that runs already, and to one look.
#[test]
fn case_719_the_first_thread_of_a_home_is_seen_before_its_first_prompt() {
    const ID: &str = "01a2243b-85bc-7000-a000-000000000422";
    let user = User::new();
    let home = user.scratch.path().join(".codex");
    let (locks, program) = (home.join("thread-writer-locks"), user.scratch.path().join("codex"));
    fs::create_dir_all(&home).unwrap();
    fs::write(home.join("config.toml"), "").unwrap();
    copy_program("/usr/bin/perl", &program);
    let watch = Watch::start(user.pilotlight(&["watch", "--json"]));
    // Makes the folder and the lock, which it holds until its input ends.
    let script =
        r#"my $d = shift; mkdir $d or die; open(F, ">", "$d/" . shift) or die; flock(F, 6) or die; my $l = <STDIN>"#;
    let mut command = Command::new(&program);
    command.args(["-e", script]).arg(&locks).arg(format!("{ID}.lock")).stdin(Stdio::piped());
    let mut process = command.spawn().unwrap();
    let status = || watch.latest().get(ID).map(|row| row["status"].clone());
    wait_until(SOON, "its row", || format!("{:?}", watch.latest()), || (status()? == "idle").then_some(()));
    let output = user.pilotlight(&["status", "--json"]).output().unwrap();
    let rows: Vec<serde_json::Value> = serde_json::from_slice(&output.stdout).unwrap();
    assert!(rows.iter().any(|row| row["id"] == ID && row["status"] == "idle"), "{rows:?}");
    drop(process.stdin.take());
    process.wait().unwrap();
}

/// Given: a `watch`, a session that ended, and a profile that shares its log by a link and is not followed. A process goes on
/// with the session there and writes nothing, as it waits at a question: of a program on the search path, of that program
/// after an update put another in its place, and of one that was found running before. -> The session is not called ended.
#[test]
fn case_720_a_process_that_goes_on_with_a_session_and_writes_nothing_is_seen_when_it_starts() {
    const ID: &str = "36535f61-5c7b-4f09-a70b-2f8aed970001";
    let user = User::new();
    let (project, bin) = (user.scratch.path().join("project"), user.scratch.path().join("bin"));
    let (home, work) = (user.scratch.path().join(".claude"), user.scratch.path().join(".claude-work"));
    let (logs, elsewhere) = (home.join("projects/-project"), user.scratch.path().join("elsewhere"));
    for folder in [&project, &bin, &logs, &work, &elsewhere] {
        fs::create_dir_all(folder).unwrap();
    }
    std::os::unix::fs::symlink("../.claude/projects", work.join("projects")).unwrap();
    let at = jiff::Timestamp::now() - jiff::SignedDuration::from_mins(5);
    let line = format!(
        r#"{{"type":"user","uuid":"u1","sessionId":"{ID}","cwd":"{}","timestamp":"{at:.3}","message":{{"role":"user","content":"Paint it"}}}}"#,
        project.display()
    );
    let log = logs.join(format!("{ID}.jsonl"));
    fs::write(&log, line + "\n").unwrap();
    let log = fs::File::options().append(true).open(log).unwrap();
    log.set_modified(at.into()).unwrap();

    // It waits for a line that never comes, as it does for an answer. With `-c`, it goes on with the last session.
    let start = |program: &Path| -> Child {
        let mut command = Command::new(program);
        command.args(["-c", "read line"]).env("CLAUDE_CONFIG_DIR", &work).current_dir(&project);
        command.stdin(Stdio::piped()).spawn().unwrap()
    };
    let program = bin.join("claude");
    copy_program("/bin/sh", &program);
    let mut command = user.pilotlight(&["watch", "--json"]);
    command.env("PATH", &bin);
    let watch = Watch::start(command);
    let says = |words: &str| {
        let because = || watch.latest().get(ID)?["because"].as_str().map(str::to_owned);
        let fits = || because()?.contains(words).then_some(());
        wait_until(SOON, words, || format!("{:?}", watch.latest()), fits);
    };
    let starts = |program: &Path| {
        says("no process runs it any more");
        // Processes are looked at for other reasons until it has settled, as because another one ended.
        wait(Duration::from_secs(3), || None::<()>);
        let started = running_time();
        let mut process = start(program);
        says("works in its folder");
        let took = running_time() - started;
        assert!(took < Duration::from_secs(3), "{}: after {took:?}", program.display());
        let row = watch.latest().remove(ID).unwrap();
        assert!(row["status"] != "ended" && row["status"] != "crashed", "{row}");
        process.kill().unwrap();
        process.wait().unwrap();
    };
    starts(&program);
    copy_program("/bin/sh", bin.join("update"));
    fs::rename(bin.join("update"), &program).unwrap();
    starts(&program);

    let other = elsewhere.join("claude");
    copy_program("/bin/sh", &other);
    let mut process = start(&other);
    // It is seen because another starts, which the search path leads to.
    let mut known = start(&program);
    says(&format!("process {}", process.id().min(known.id())));
    known.kill().unwrap();
    known.wait().unwrap();
    process.kill().unwrap();
    process.wait().unwrap();
    starts(&other);
}
