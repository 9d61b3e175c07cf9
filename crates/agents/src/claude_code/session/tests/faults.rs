//! Bad input around one session: a clear word, and no wrong one.

use super::*;
use crate::claude_code::ClaudeCode;
use crate::listing::QuickScan;
use crate::runners::Runner;
use pilotlight_core::action::{Action, offer};
use pilotlight_core::verdict::Status;
use pilotlight_system::process::testing::{ended, make_pipe};
use pilotlight_system::process::{self, executable, start_ticks};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

pub(super) const ID: &str = "36535f61-5c7b-4f09-a70b-2f8aed970001";
pub(super) const NOW: Time = Time(1_795_461_440_000);

/// What a process of ours would write about a session that does this.
fn file(process: &Running, more: &Value) -> String {
    let mut json = serde_json::json!({
        "pid": 1, "sessionId": ID, "cwd": "/srv/shop", "startedAt": NOW.0 - 60_000, "procStart": "1", "version": "2.1.330",
        "kind": "interactive", "entrypoint": "cli", "pidDomain": "x", "status": "busy", "statusUpdatedAt": NOW.0 - 10_000,
    });
    json.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    as_if_by(&json.to_string(), process)
}

fn line(json: &Value) -> String {
    format!("{json}\n")
}

pub(super) fn prompt() -> String {
    prompt_at("u1", NOW - Span::seconds(20))
}

fn prompt_at(id: &str, at: Time) -> String {
    line(&serde_json::json!({
        "type": "user", "message": {"role": "user", "content": "do it"}, "uuid": id, "cwd": "/srv/shop", "entrypoint": "cli",
        "timestamp": at.to_string(), "sessionId": ID,
    }))
}

pub(super) fn tool(id: &str, name: &str, input: &Value) -> String {
    line(&serde_json::json!({
        "type": "assistant", "uuid": id, "timestamp": "2026-11-23T19:17:01.000Z", "sessionId": ID,
        "message": {"model": "m", "stop_reason": "tool_use", "content": [{"type": "tool_use", "id": id, "name": name, "input": input}]},
    }))
}

pub(super) struct Scene {
    pub(super) world: World,
    pub(super) process: Running,
}

impl Scene {
    pub(super) fn new(state: &Value, log: &str) -> Self {
        let scene = Self { world: World::new(), process: waiting() };
        scene.says(state);
        scene.world.write(&format!("projects/-work-shop/{ID}.jsonl"), log.as_bytes());
        scene
    }

    pub(super) fn says(&self, state: &Value) {
        let pid = self.process.pid();
        self.world.write(&format!("sessions/{pid}.json"), file(&self.process, state).as_bytes());
    }

    fn append(&self, text: &str) {
        let log = self.world.home().join(format!("projects/-work-shop/{ID}.jsonl"));
        let mut log = fs::OpenOptions::new().append(true).open(log).unwrap();
        io::Write::write_all(&mut log, text.as_bytes()).unwrap();
    }

    /// Another process of the session, with a file of its own.
    fn second(&self, started: Time) -> Running {
        let second = waiting();
        let state = serde_json::json!({"status": "idle", "startedAt": started.0, "statusUpdatedAt": started.0 + 1000});
        self.world.write(&format!("sessions/{}.json", second.pid()), file(&second, &state).as_bytes());
        second
    }

    /// Ends a process, which deletes its file first.
    fn ends(&mut self, mut process: Running, at: Time) {
        fs::remove_file(pid_file::path(self.world.home(), process.pid())).unwrap();
        let pid = process.pid();
        process.end();
        self.world.ended(pid, at);
    }

    pub(super) fn row(&mut self) -> Row {
        self.row_at(NOW)
    }

    pub(super) fn row_at(&mut self, at: Time) -> Row {
        let now = Moment::of(at);
        self.world.find_sessions();
        self.world.refresh(now);
        self.world.row(0, now).unwrap()
    }

    /// The row, where these processes of agents run.
    fn row_with(&mut self, openings: &OpenSessions) -> Row {
        let now = Moment::of(NOW);
        self.world.refresh_with(now, openings);
        self.world.row(0, now).unwrap()
    }
}

pub(super) fn busy() -> Value {
    serde_json::json!({})
}

fn waits(what: &str) -> Value {
    serde_json::json!({"status": "waiting", "waitingFor": what})
}

/// Case 252.
#[test]
fn case_252_a_file_that_is_cut_empty_or_another_agents_changes_nothing_that_is_known() {
    let mut scene = Scene::new(&busy(), &prompt());
    assert_eq!(scene.row().status, Status::Working);
    let pid = scene.process.pid();
    let whole = file(&scene.process, &busy());
    for bad in ["", "{", &whole[..whole.len() / 2], "[]", "null", "{\"pid\":\"x\"}"] {
        scene.world.write(&format!("sessions/{pid}.json"), bad.as_bytes());
        let row = scene.row();
        assert!(matches!(row.status, Status::Working | Status::Quiet), "{bad:?}: {}", row.because);
    }
    scene.says(&serde_json::json!({"status": "idle"}));
    assert_eq!(scene.row().status, Status::Idle);
}

/// Case 351: it was killed in the middle of writing.
#[test]
fn case_351_a_killed_process_that_leaves_half_a_file_has_crashed() {
    let mut scene = Scene::new(&busy(), &prompt());
    assert_eq!(scene.row().status, Status::Working);
    let pid = scene.process.pid();
    scene.world.write(&format!("sessions/{pid}.json"), b"{");
    scene.process.end();
    scene.world.ended(pid, NOW);
    let row = scene.row();
    assert_eq!(row.status, Status::Crashed, "{}", row.because);
}

/// Case 252: a file is written in place, and may be read in the middle of that.
#[test]
fn case_252_a_file_that_is_being_written_is_no_end() {
    let mut scene = Scene::new(&busy(), &prompt());
    assert_eq!(scene.row().status, Status::Working);
    let path = scene.world.home().join(format!("sessions/{}.json", scene.process.pid()));
    let (whole, is_over) = (file(&scene.process, &busy()), AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Relaxed) {
                fs::write(&path, "").unwrap();
                std::thread::yield_now();
                fs::write(&path, &whole).unwrap();
            }
        });
        let statuses: Vec<_> = (0..2000).map(|_| scene.row().status).collect();
        is_over.store(true, Relaxed);
        assert!(statuses.iter().all(|status| matches!(status, Status::Working | Status::Quiet)), "{statuses:?}");
    });
}

/// Case 253.
#[test]
fn case_253_a_dead_or_another_process_under_a_files_id_is_a_crash_and_never_signalled() {
    let mut scene = Scene::new(&busy(), &prompt());
    assert_eq!(scene.row().status, Status::Working);
    let pid = scene.process.pid();
    // A tool of a session may write a file about any process.
    let (reader, shown) = &scene.world.readers[0];
    let refused = reader.claim(&shown.observed).unwrap().open(&[], NOW, false).unwrap_err();
    assert!(refused.contains("is not known to run Claude Code with this home. Nothing was signalled"), "{refused}");
    // Another process has the id by now.
    let text = file(&scene.process, &busy());
    let mut json: Value = serde_json::from_str(&text).unwrap();
    json["procStart"] = "1".into();
    scene.world.write(&format!("sessions/{pid}.json"), json.to_string().as_bytes());
    let row = scene.row();
    assert_eq!(row.status, Status::Crashed, "{}", row.because);
    let (reader, shown) = &scene.world.readers[0];
    assert!(reader.claim(&shown.observed).is_none());
    let gone = ended();
    let home = scene.world.home().to_owned();
    let claim = Claim::new(&PidFile { home, pid: gone, session: ID.into(), ..PidFile::default() });
    assert!(claim.open(&[], NOW, false).unwrap_err().ends_with("Nothing was signalled"));
}

/// Case 254.
#[test]
fn case_254_a_process_of_another_container_is_neither_dead_nor_signalled() {
    let mut scene = Scene::new(&busy(), &prompt());
    let pid = scene.process.pid();
    let mut json: Value = serde_json::from_str(&file(&scene.process, &busy())).unwrap();
    json["pidDomain"] = "linux:0123:pid:[1]".into();
    scene.world.write(&format!("sessions/{pid}.json"), json.to_string().as_bytes());
    let row = scene.row();
    assert_eq!(row.status, Status::Working, "{}", row.because);
    let shown = &scene.world.readers[0].1;
    assert_eq!(shown.observed.owner, Owner::Unknown { pid });
    assert!(offer(Action::End, shown, row.status).is_err() && offer(Action::Resume, shown, row.status).is_err());
}

/// A process in a container of this machine, which has another id there. Nothing is checked where the system makes none, or
/// shows not all processes.
#[test]
fn case_577_a_process_of_a_container_that_ended_is_dead() {
    let Ok(machine) = fs::read_to_string("/etc/machine-id") else { return };
    let mut command = std::process::Command::new("unshare");
    command.args(["--user", "--map-root-user", "--pid", "--fork", "--kill-child", "sleep", "600"]);
    let Ok(mut child) = command.stderr(std::process::Stdio::null()).spawn() else { return };
    let outer = child.id();
    let children = || fs::read_to_string(format!("/proc/{outer}/task/{outer}/children")).unwrap_or_default();
    let runs = |pid: u32| executable(pid).is_some_and(|path| path.ends_with("sleep"));
    let until = std::time::Instant::now() + std::time::Duration::from_secs(10);
    let inside = loop {
        if let Some(pid) = children().split_whitespace().find_map(|pid| pid.parse().ok()).filter(|pid| runs(*pid)) {
            break pid;
        }
        if child.try_wait().unwrap().is_some() || std::time::Instant::now() > until {
            return;
        }
        std::thread::yield_now();
    };
    let namespace = fs::read_link(format!("/proc/{inside}/ns/pid")).unwrap();
    let ticks = start_ticks(inside).unwrap();
    let mut scene = Scene::new(&busy(), &prompt());
    let mut json: Value = serde_json::from_str(&file(&scene.process, &waits("permission prompt"))).unwrap();
    fs::remove_file(pid_file::path(scene.world.home(), scene.process.pid())).unwrap();
    json["pidDomain"] = format!("linux:{}:{}", machine.trim(), namespace.display()).into();
    (json["pid"], json["procStart"]) = (1.into(), ticks.to_string().into());
    scene.world.write("sessions/1.json", json.to_string().as_bytes());
    let bash = tool("t1", "Bash", &serde_json::json!({"command": "make"}));
    scene.append(&bash);
    let row = scene.row();
    assert_eq!(
        (row.status, row.actions.contains(&Action::Resume)),
        (Status::NeedsPermission, false),
        "{}",
        row.because
    );
    if process::contained(1, ticks).is_some() {
        let (reader, shown) = &scene.world.readers[0];
        assert_eq!(shown.observed.owner, Owner::Unknown { pid: 1 });
        assert_eq!(reader.pids(), [inside], "its end is waited for");
        child.kill().unwrap();
        child.wait().unwrap();
        let is_gone = || process::contained(1, ticks) == Some(None);
        while !is_gone() && std::time::Instant::now() < until {
            std::thread::yield_now();
        }
        scene.world.ended(inside, NOW);
        let row = scene.row();
        assert_eq!((row.status, row.actions.contains(&Action::Resume)), (Status::Crashed, true), "{}", row.because);
    }
    let _ = (child.kill(), child.wait());
}

/// A process in a time namespace writes when it started by a boot of its own. Nothing is checked where the system makes none.
#[test]
fn case_717_a_process_of_another_time_namespace_is_alive() {
    let mut command = std::process::Command::new("unshare");
    command.args(["--user", "--map-root-user", "--time", "--boottime", "5000", "--fork", "--kill-child"]);
    command.args(["perl", "-e", "$| = 1; open(F, '/proc/self/stat'); print <F>; sleep 600"]);
    command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::null());
    let Ok(mut child) = command.spawn() else { return };
    let mut stat = String::new();
    io::BufRead::read_line(&mut io::BufReader::new(child.stdout.take().unwrap()), &mut stat).unwrap();
    // Field 22 of proc_pid_stat(5), where the name of the program has no blank.
    let fields: Vec<_> = stat.split_whitespace().collect();
    if let (Some(Ok(pid)), Some(start)) = (fields.first().map(|pid| pid.parse()), fields.get(21)) {
        let mut scene = Scene::new(&busy(), &prompt());
        let mut json: Value = serde_json::from_str(&file(&scene.process, &busy())).unwrap();
        fs::remove_file(pid_file::path(scene.world.home(), scene.process.pid())).unwrap();
        assert_ne!(
            Some((*start).to_owned()),
            start_ticks(pid).map(|ticks| ticks.to_string()),
            "it has a boot of its own"
        );
        (json["pid"], json["procStart"]) = (pid.into(), (*start).into());
        scene.world.write(&format!("sessions/{pid}.json"), json.to_string().as_bytes());
        let row = scene.row();
        let (_, shown) = &scene.world.readers[0];
        assert!(matches!(shown.observed.owner, Owner::Alive { .. }), "{:?}", shown.observed.owner);
        assert!(!row.actions.contains(&Action::Resume));
    }
    let _ = (child.kill(), child.wait());
}

/// A later process that resumed a session has no file: the one of the process that was killed before says nothing of it.
#[test]
fn case_578_what_a_kill_left_does_not_hide_a_later_process_without_a_file() {
    let bash = tool("t1", "Bash", &serde_json::json!({"command": "make"}));
    let mut scene = Scene::new(&busy(), &(prompt() + &bash));
    let home = scene.world.home().to_owned();
    scene.process.end();
    let find = |started, named: Option<&str>| Runner {
        adapter: &ClaudeCode,
        pid: std::process::id(),
        born: start_ticks(std::process::id()).unwrap(),
        started,
        home: Some(home.clone()),
        folder: Some("/elsewhere".into()),
        named: named.map(Into::into),
        continues: false,
        claims: Vec::new(),
        logs: Vec::new(),
        is_helper: false,
    };
    let later = NOW - Span::seconds(5);
    // At the dialog whether a folder is trusted, it has no file yet.
    let continues = |folder: &str| Runner { continues: true, folder: Some(folder.into()), ..find(later, None) };
    let works_there = Owner::Doubtful { pid: std::process::id(), why: Doubt::WorksThere };
    for (runner, owner) in [
        (continues("/srv/shop"), works_there),
        (continues("/srv/other"), Owner::Gone { pid: scene.process.pid(), at: None }),
        (find(later, Some(ID)), Owner::Doubtful { pid: std::process::id(), why: Doubt::Named }),
        (find(NOW - Span::seconds(60), Some(ID)), Owner::Gone { pid: scene.process.pid(), at: None }),
        (find(later, Some("other")), Owner::Gone { pid: scene.process.pid(), at: None }),
    ] {
        let openings = OpenSessions::default().with(vec![runner], Vec::new());
        scene.world.readers.clear();
        scene.world.find_sessions();
        let row = scene.row_with(&openings);
        let observed = &scene.world.readers[0].1.observed;
        assert_eq!(observed.owner, owner);
        let is_doubtful = matches!(owner, Owner::Doubtful { .. });
        assert_eq!(
            (row.status == Status::Crashed, row.actions.contains(&Action::Resume)),
            (!is_doubtful, !is_doubtful)
        );
    }
}

/// Case 255.
#[test]
fn case_255_a_pipe_in_the_logs_place_is_not_waited_for() {
    let mut scene = Scene::new(&busy(), "");
    let log = scene.world.home().join(format!("projects/-work-shop/{ID}.jsonl"));
    fs::remove_file(&log).unwrap();
    make_pipe(&log);
    let row = scene.row();
    assert_eq!((row.status, row.because.to_string().contains("not a file")), (Status::Quiet, true), "{}", row.because);
}

/// Case 256: what is asked is named, with its command; a plan and a question are no permissions.
#[test]
fn case_256_what_is_asked_is_named_and_only_what_asks_for_a_permission_is_one() {
    let bash = tool("t1", "Bash", &serde_json::json!({"command": "rm -rf build", "description": "clean"}));
    let mut scene = Scene::new(&waits("permission prompt"), &(prompt() + &bash));
    let row = scene.row();
    assert_eq!((row.status, row.because.to_string()), (Status::NeedsPermission, "asks for permission: Bash".into()));
    assert_eq!(row.request, None, "it cannot be answered from here");
    let shown = &scene.world.readers[0].1;
    for action in [Action::Approve, Action::Deny, Action::Answer] {
        let refusal = offer(action, shown, row.status).unwrap_err().to_string();
        assert!(refusal.starts_with("answer it in its terminal"), "{refusal}");
    }
    assert!(offer(Action::Stop, shown, row.status).unwrap_err().to_string().starts_with("press Esc"));
    let mut shown = shown.clone();
    shown.observed.is_foreign = false;
    assert!(offer(Action::End, &shown, row.status).is_ok());

    let asks = serde_json::json!({"questions": [{"question": "Which colour?", "options": [{"label": "Red"}, {"label": "Blue"}]}]});
    let asks = tool("t1", "AskUserQuestion", &asks);
    for why in ["input needed", "permission prompt"] {
        let row = Scene::new(&waits(why), &(prompt() + &asks)).row();
        let question = row.question.unwrap();
        assert_eq!((row.status, &*question.text, question.choices.len()), (Status::NeedsInput, "Which colour?", 2));
    }
    let plan = tool("t1", "ExitPlanMode", &serde_json::json!({"plan": "1. Do it."}));
    assert_eq!(Scene::new(&waits("permission prompt"), &(prompt() + &plan)).row().status, Status::NeedsInput);
    // A dialog is a question of work only where a tool waits for it.
    let row = Scene::new(&waits("dialog open"), &(prompt() + &bash)).row();
    assert_eq!(row.status, Status::NeedsInput);
    let row = Scene::new(&waits("dialog open"), "").row();
    assert_eq!((row.status, row.because.to_string().contains("a dialog is open")), (Status::Idle, true));
}

/// Case 257.
#[test]
fn case_257_a_session_without_a_file_has_ended_and_one_that_was_killed_stays_crashed() {
    let bash = tool("t1", "Bash", &serde_json::json!({"command": "make"}));
    let mut scene = Scene::new(&busy(), &(prompt() + &bash));
    assert_eq!(scene.row().status, Status::Working);
    let pid = scene.process.pid();
    scene.process.end();
    scene.world.ended(pid, NOW);
    let row = scene.row();
    assert_eq!(row.status, Status::Crashed, "{}", row.because);
    // Another session's start sweeps the file.
    fs::remove_file(pid_file::path(scene.world.home(), pid)).unwrap();
    let row = scene.row_at(NOW + Span::seconds(5));
    assert_eq!(row.status, Status::Crashed, "{}", row.because);
    assert!(row.actions.contains(&Action::Resume), "{:?}", row.actions);
    // Who comes later sees no trace of a kill.
    scene.world.readers.clear();
    let reader = session(scene.world.home(), ID);
    scene.world.readers.push((reader, Shown { id: ID.into(), ..Shown::default() }));
    let row = scene.row_at(NOW + Span::seconds(5));
    let because = row.because.to_string();
    assert_eq!((row.status, &*because), (Status::Ended, "no process runs it any more; unfinished: Bash"));
}

/// Case 296.
#[test]
fn case_296_of_a_session_with_sub_agents_that_is_removed_after_its_end_nothing_is_left() {
    let mut scene = Scene::new(&busy(), &prompt());
    scene.world.write(&format!("projects/-work-shop/{ID}/subagents/agent-a1.jsonl"), prompt().as_bytes());
    assert_eq!(scene.row().status, Status::Working);
    let pid = scene.process.pid();
    fs::remove_file(pid_file::path(scene.world.home(), pid)).unwrap();
    scene.process.end();
    scene.world.ended(pid, NOW);
    let row = scene.row();
    assert_eq!((row.status, row.owner), (Status::Ended, None), "who comes later knows of no process either");
    fs::remove_dir_all(scene.world.home().join("projects/-work-shop")).unwrap();
    assert!(scene.world.refresh(Moment::of(NOW)).pop().unwrap().is_err());
}

/// Case 258.
#[test]
fn case_258_a_background_session_is_ended_shown_and_resumed_by_its_supervisors_commands() {
    let mut scene = Scene::new(&serde_json::json!({"kind": "bg"}), &prompt());
    let row = scene.row();
    let shown = &scene.world.readers[0].1;
    let refusal = |action| offer(action, shown, row.status).unwrap_err().to_string();
    assert!(refusal(Action::End).contains("`claude stop 36535f61`"));
    assert!(refusal(Action::ShowTerminal).contains("`claude attach 36535f61`"));
    let claim = scene.world.readers[0].0.claim(&shown.observed).unwrap();
    assert!(claim.open(&[], NOW, false).is_err(), "not even where the offer was made before");
}

/// Case 259.
#[test]
fn case_259_an_untried_version_and_a_stopped_process_are_said() {
    let mut scene =
        Scene::new(&serde_json::json!({"version": "9.9.9", "new": [1, {"x": 2}], "tmux": "s:@0.%3"}), &prompt());
    signal(&scene.process, "19");
    let because = loop {
        let row = scene.row();
        if scene.world.readers[0].1.observed.is_stopped {
            break row.because.to_string();
        }
        std::thread::yield_now();
    };
    assert!(because.contains("9.9.9, which is untested") && because.contains("its process is stopped"), "{because}");
    assert_eq!(scene.world.readers[0].1.observed.pane.as_deref(), Some("%3"));
}

/// Case 251: two processes of one session.
#[test]
fn a_session_that_two_processes_have_open_is_not_resumed() {
    let mut scene = Scene::new(&waits("permission prompt"), &prompt());
    let second = waiting();
    let text = file(&second, &serde_json::json!({"status": "idle"}));
    scene.world.write(&format!("sessions/{}.json", second.pid()), text.as_bytes());
    let row = scene.row();
    assert_eq!(row.status, Status::NeedsPermission, "the one that waits counts: {}", row.because);
    assert!(row.because.to_string().contains("two live processes have it open"));
    let shown = &scene.world.readers[0].1;
    assert!(offer(Action::End, shown, row.status).is_err() && offer(Action::Resume, shown, row.status).is_err());
}

/// Case 288.
#[test]
fn case_288_what_a_kill_left_is_no_crash_of_a_later_process_that_ended_cleanly() {
    let at = |seconds| NOW + Span::seconds(seconds);
    let bash = tool("t1", "Bash", &serde_json::json!({"command": "make"}));
    let mut scene = Scene::new(&busy(), &(prompt() + &bash));
    let killed = scene.process.pid();
    scene.process.end();
    assert_eq!(scene.row().status, Status::Crashed);
    // Who sees that it was opened again, and closed, knows that the user has seen what was left.
    let second = scene.second(at(2));
    assert_eq!(scene.row_at(at(4)).status, Status::Idle);
    scene.ends(second, at(6));
    let row = scene.row_at(at(8));
    assert_eq!(
        (row.status, &*row.because.to_string()),
        (Status::Ended, "no process runs it any more; unfinished: Bash")
    );
    // Who comes later knows it by the prompt, which the first process was not given.
    let anew = |scene: &mut Scene, seconds| {
        scene.world.readers.clear();
        scene.row_at(at(seconds))
    };
    assert_eq!(anew(&mut scene, 8).status, Status::Crashed, "nothing was done about it");
    scene.append(&prompt_at("u2", at(10)));
    let row = anew(&mut scene, 12);
    assert_eq!(
        (row.status, &*row.because.to_string()),
        (Status::Ended, "no process runs it any more; in the middle of a turn")
    );
    assert!(row.owner.is_none(), "not the one that was killed: {:?}", row.owner);
    assert!(row.actions.contains(&Action::Resume), "{:?}", row.actions);
    // A later process that is killed, too, has crashed. So has one that nobody else prompted: its own prompt is there a
    // moment later.
    let second = scene.second(at(20));
    let text = file(&second, &serde_json::json!({"startedAt": at(20).0, "statusUpdatedAt": at(22).0}));
    let path = pid_file::path(scene.world.home(), second.pid());
    fs::write(&path, text).unwrap();
    scene.append(&prompt_at("u3", at(22) + Span(1400)));
    drop(second);
    let row = anew(&mut scene, 24);
    assert_eq!(row.status, Status::Crashed, "{}", row.because);
    assert_ne!(row.owner.unwrap().pid, killed);
}

fn shells(scene: &mut Scene) -> usize {
    scene.row().background.shells
}

/// Case 289.
#[test]
fn case_289_a_background_shell_ends_by_its_notice_by_a_tool_or_by_its_process() {
    let starts = |call: &str, shell: &str| {
        tool(call, "Bash", &serde_json::json!({"command": "sleep 9", "run_in_background": true}))
            + &done(call, &serde_json::json!({"stdout": "", "backgroundTaskId": shell}))
    };
    let notice = |shell: &str, more: &str| {
        let text = format!(
            "<task-notification>\n<task-id>{shell}</task-id>\n{more}<summary>x</summary>\n</task-notification>"
        );
        line(
            &serde_json::json!({"type": "queue-operation", "operation": "enqueue", "timestamp": NOW.to_string(), "content": text}),
        )
    };
    let agent = tool("t0", "Agent", &serde_json::json!({"prompt": "x", "run_in_background": true}))
        + &done("t0", &serde_json::json!({"status": "async_launched", "agentId": "a1"}));
    let mut scene =
        Scene::new(&busy(), &(prompt() + &agent + &starts("t1", "b1") + &starts("t2", "b2") + &starts("t3", "b3")));
    assert_eq!(shells(&mut scene), 3);
    scene.append(&notice("b1", ""));
    assert_eq!(shells(&mut scene), 3, "it waits for input, say");
    scene.append(&notice("b1", "<status>completed</status>\n"));
    assert_eq!(shells(&mut scene), 2);
    let stop = tool("t4", "TaskStop", &serde_json::json!({"task_id": "b2"}));
    scene.append(
        &(stop + &done("t4", &serde_json::json!({"message": "stopped", "task_id": "b2", "task_type": "local_bash"}))),
    );
    assert_eq!(shells(&mut scene), 1);
    scene.says(&serde_json::json!({"status": "shell"}));
    assert_eq!(shells(&mut scene), 1);
    scene.says(&serde_json::json!({"status": "idle"}));
    assert_eq!(shells(&mut scene), 0);
}

/// What a tool did.
fn done(call: &str, result: &Value) -> String {
    line(&serde_json::json!({
        "type": "user", "uuid": format!("{call}-done"), "timestamp": "2026-11-23T19:17:02.000Z", "sessionId": ID,
        "message": {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call, "content": "x"}]},
        "toolUseResult": result,
    }))
}

/// Case 290: what is read of it is bounded, as of any log (case 134); a file with a hole costs no disk.
#[test]
fn case_290_a_line_without_an_end_is_said_and_what_was_known_is_back_when_it_is_gone() {
    let mut scene = Scene::new(&busy(), &prompt());
    assert_eq!(scene.row().status, Status::Working);
    let log = scene.world.home().join(format!("projects/-work-shop/{ID}.jsonl"));
    let length = fs::metadata(&log).unwrap().len();
    let file = fs::OpenOptions::new().write(true).open(&log).unwrap();
    file.set_len(1 << 40).unwrap();
    let is_said = |row: &Row| row.because.to_string().contains("a line of more than 64 MB, which is not read");
    let row = scene.row();
    assert!(row.status == Status::Quiet && is_said(&row), "{}", row.because);
    // So it is to who comes later, and when its process waits for its user.
    scene.world.readers.clear();
    assert!(is_said(&scene.row()));
    scene.says(&waits("permission prompt"));
    assert!(is_said(&scene.row()));
    file.set_len(length).unwrap();
    scene.says(&busy());
    assert_eq!(scene.row().status, Status::Working);
}

/// Case 582: of a session that nobody is known to run, that is not enough to call it history.
#[test]
fn case_582_nothing_is_history_at_a_glance_where_the_files_of_processes_cannot_be_listed() {
    let world = World::new();
    let log = format!("projects/-work-shop/{ID}.jsonl");
    world.write(&log, prompt().as_bytes());
    let written = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1);
    fs::File::open(world.home().join(log)).unwrap().set_modified(written).unwrap();
    let is_past = || {
        let known = HashSet::new();
        let reading = Reading {
            context: ReadContext { now: Moment::of(NOW), limits: &world.limits, until: None },
            owner_names: &[],
            known: &known,
            openings: OpenSessions::NONE,
            all: false,
        };
        store::SessionScan::new(world.home(), &world.home().join(store::PROJECTS), None).past(ID, &reading).is_some()
    };
    assert!(is_past());
    let folder = world.home().join(pid_file::FOLDER);
    fs::remove_dir(&folder).unwrap();
    fs::write(&folder, "").unwrap();
    assert!(!is_past());
}
