//! What is around the files of processes: their folder, and who runs.

use super::faults::{ID, NOW, Scene, busy, prompt, tool};
use super::*;
use pilotlight_core::action::{Action, offer};
use pilotlight_core::agent::Agent;
use pilotlight_core::verdict::Status;
use pilotlight_core::words::refusal::{Instead, Refusal, Remedy};
use pilotlight_system::process::testing::{copy, wait_until};
use std::process::Command;

/// Case 322: any tool of a session can write such a file, about any process.
#[test]
fn case_322_a_process_that_does_not_run_the_agent_is_not_offered_to_be_ended() {
    let mut scene = Scene::new(&busy(), &prompt());
    assert!(!scene.row().actions.contains(&Action::End));
    let refusal = offer(Action::End, &scene.world.readers[0].1, Status::Working).unwrap_err().to_string();
    assert!(refusal.contains(&format!("process {} may not be", scene.process.pid())), "{refusal}");
}

/// Case 323. Root may list any folder, so that another thing is in its place.
#[test]
fn case_323_where_the_files_of_processes_cannot_be_listed_it_is_not_known_who_runs_a_session() {
    let mut scene = Scene::new(&busy(), &prompt());
    assert_eq!(scene.row().status, Status::Working);
    let [folder, aside] = [pid_file::FOLDER, "aside"].map(|name| scene.world.home().join(name));
    fs::rename(&folder, &aside).unwrap();
    fs::write(&folder, "").unwrap();
    for _ in 0..2 {
        let now = Moment::of(NOW);
        scene.world.refresh(now);
        let row = scene.world.row(0, now).unwrap();
        let because = row.because.to_string();
        assert!(row.status == Status::Quiet && because.contains("who runs it is not known"), "{because}");
        assert!(!row.actions.contains(&Action::Resume), "a second process would corrupt its history");
        assert_eq!(row.owner.map(|owner| owner.pid), None, "nothing names a process");
        // A reader that comes later says so, too.
        let (home, root) = (scene.world.home(), scene.world.home().join(store::PROJECTS));
        scene.world.readers[0].0 = ClaudeReader::new(home, &root, ID, store::path(home, &root, ID));
    }
    fs::remove_file(&folder).unwrap();
    fs::rename(&aside, &folder).unwrap();
    assert_eq!(scene.row().status, Status::Working);
}

/// Case 324.
#[test]
fn case_324_a_session_without_a_log_is_gone_with_the_file_of_its_process_though_that_lives() {
    let mut scene = Scene::new(&busy(), "");
    fs::remove_file(scene.world.home().join(format!("projects/-work-shop/{ID}.jsonl"))).unwrap();
    assert_eq!(scene.row().status, Status::Working);
    fs::remove_file(pid_file::path(scene.world.home(), scene.process.pid())).unwrap();
    let is_there = |scene: &mut Scene, at: Time| scene.world.refresh(Moment::of(at))[0].is_ok();
    assert!(is_there(&mut scene, NOW), "it may be about to end");
    let at = scene.world.readers[0].0.owner_recheck_at().unwrap();
    assert_eq!(at, NOW + ENDS_WITHIN);
    assert!(!is_there(&mut scene, at));
    // It says again what it does.
    scene.says(&busy());
    assert!(is_there(&mut scene, at));
}

/// Case 363: what a refusal advises is not refused in turn.
#[test]
fn case_363_what_is_advised_for_a_run_and_for_a_background_session_can_be_done() {
    let refused = |state: &Value, actions: &[Action]| -> Vec<Refusal> {
        let mut scene = Scene::new(state, &prompt());
        let row = scene.row();
        let shown = &mut scene.world.readers[0].1;
        shown.observed.is_foreign = false;
        actions.iter().map(|action| offer(*action, shown, row.status).unwrap_err()).collect()
    };
    let agent = Agent::default();
    let run = serde_json::json!({"entrypoint": "sdk-cli"});
    let instead = |instead| Refusal::Unreachable { instead, remedy: Remedy::None };
    let none_resumed = Refusal::NoOrders { agent, resumable: false };
    let said = refused(&run, &[Action::Approve, Action::Answer, Action::Stop, Action::Reconnect, Action::Continue]);
    let there = || instead(Instead::AnswerThere);
    let expected = [there(), there(), instead(Instead::StopThere), none_resumed.clone(), none_resumed.clone()];
    assert_eq!(said, expected);
    let by_program = |it: &Refusal| matches!(it, Refusal::NoTerminal { .. });
    assert!(refused(&run, &[Action::End, Action::ForceQuit]).iter().all(by_program), "not: end it instead");

    let background = serde_json::json!({"kind": "bg"});
    let seen = Refusal::InBackground { attach: format!("claude attach {}", &ID[..8]).into() };
    let said = refused(&background, &[Action::Approve, Action::Stop, Action::ShowTerminal]);
    assert_eq!(said, [seen.clone(), seen.clone(), seen], "neither Esc in its terminal, nor to end it here");
    let stop = Refusal::Supervised { stop: format!("claude stop {}", &ID[..8]).into() };
    let said = refused(&background, &[Action::End, Action::ForceQuit, Action::Resume, Action::Reconnect]);
    assert_eq!(said, [stop.clone(), stop.clone(), stop, none_resumed], "not: end it instead, or: resume it");
}

/// Case 364: a log that is read for the history alone, of a run whose tools were denied up to its end.
#[test]
fn case_364_an_old_log_offers_to_be_resumed_and_no_connection() {
    let world = World::new();
    let denied = |call: &str| {
        let decision = serde_json::json!({"decision": "reject", "source": "config"});
        let content =
            serde_json::json!([{"type": "tool_result", "tool_use_id": call, "content": "x", "is_error": true}]);
        let result = serde_json::json!({
            "type": "user", "uuid": format!("{call}-done"), "timestamp": "2026-11-23T19:17:02.000Z", "sessionId": ID,
            "message": {"role": "user", "content": content}, "permissionDecision": decision,
        });
        tool(call, "Bash", &serde_json::json!({"command": "make"})) + &format!("{result}\n")
    };
    let log = (prompt() + &["t1", "t2", "t3"].map(denied).concat()).replace("\"cli\"", "\"sdk-cli\"");
    world.write(&format!("projects/-work-shop/{ID}.jsonl"), log.as_bytes());
    let mut shown = Shown { id: ID.into(), ..Shown::default() };
    let (known, mut buffer) = (HashSet::new(), Vec::new());
    let reading = Reading {
        context: ReadContext { now: Moment::of(NOW), limits: &world.limits, until: None },
        owner_names: &[],
        known: &known,
        openings: OpenSessions::NONE,
        all: false,
    };
    shown.observed.has_log = true;
    session(world.home(), ID).read_history(&reading, &mut shown.observed, &mut buffer);
    let row = shown.row(Moment::of(NOW), &world.limits).0;
    assert_eq!((row.status, row.actions), (Status::Failed, vec![Action::Resume]), "{}", row.because);
}

/// Case 341: the supervisor starts a process again that was killed, and the file of the killed one stays.
#[test]
fn case_341_a_background_session_that_its_user_stopped_has_not_crashed_however_it_was_killed_before() {
    let mut scene = Scene::new(&serde_json::json!({"kind": "bg"}), &prompt());
    scene.process = waiting(); // the one that is in the file has been killed
    let job = |state: &str| serde_json::json!({"sessionId": ID, "state": state}).to_string();
    for (state, expected) in [("working", Status::Crashed), ("stopped", Status::Ended)] {
        scene.world.write(&format!("jobs/{}/state.json", &ID[..8]), job(state).as_bytes());
        scene.world.readers.clear();
        assert_eq!(scene.row().status, expected, "{state}");
    }
}

/// Case 347: a copy of a home names processes that have gone on, perhaps with another session.
#[test]
fn case_347_a_process_with_another_home_is_not_ended() {
    let scratch = tempfile::tempdir().unwrap();
    let scene = Scene::new(&busy(), &prompt());
    for (home, is_its) in [(scene.world.home(), true), (scratch.path(), false)] {
        let process = lookalike(scratch.path(), home);
        assert_eq!(runs_it(process.pid(), scene.world.home()), is_its);
    }
}

/// A process that looks like Claude Code with this home.
fn lookalike(scratch: &Path, home: &Path) -> Running {
    let claude = scratch.join("claude");
    copy("/bin/sleep", &claude);
    let process = Running::start(Command::new(&claude).arg("100").env("CLAUDE_CONFIG_DIR", home));
    wait_until("the program", || runs_it(process.pid(), home));
    process
}

/// Case 351: the file of its process is cut or empty for longer than a moment.
#[test]
fn case_351_who_comes_while_a_file_is_half_written_does_not_call_its_session_ended() {
    let scratch = tempfile::tempdir().unwrap();
    let mut scene = Scene::new(&serde_json::json!({"status": "idle"}), &prompt());
    fs::remove_file(pid_file::path(scene.world.home(), scene.process.pid())).unwrap();
    scene.process = lookalike(scratch.path(), scene.world.home());
    let now = pilotlight_system::process::testing::now();
    scene.says(&serde_json::json!({"status": "waiting", "waitingFor": "permission prompt"}));
    let file = pid_file::path(scene.world.home(), scene.process.pid());
    let whole = fs::read(&file).unwrap();
    scene.row_at(now);
    for bad in [&b""[..], b"{", &whole[..whole.len() / 2]] {
        fs::write(&file, bad).unwrap();
        // One that knows it goes on as it was.
        let row = scene.row_at(now);
        assert_eq!(row.status, Status::NeedsPermission, "{}", row.because);
        // One that does not know it says that it cannot be known.
        let (home, root) = (scene.world.home().to_owned(), scene.world.home().join(store::PROJECTS));
        scene.world.readers[0].0 = ClaudeReader::new(&home, &root, ID, store::path(&home, &root, ID));
        let row = scene.row_at(now);
        let because = row.because.to_string();
        assert!(
            row.status == Status::Quiet && because.contains("who runs it is not known"),
            "{}: {because}",
            row.status
        );
        assert!(!row.actions.contains(&Action::Resume), "a second process would corrupt its history");
        assert_eq!(owner_now(&home, &root, ID, now), Owner::Unknown { pid: scene.process.pid() });
        fs::write(&file, &whole).unwrap();
        let row = scene.row_at(now);
        assert_eq!(row.status, Status::NeedsPermission, "{}", row.because);
    }
    // A log that was last written before it started is none of its own.
    fs::write(&file, "").unwrap();
    let log = scene.world.home().join(format!("projects/-work-shop/{ID}.jsonl"));
    fs::File::options().write(true).open(log).unwrap().set_modified(std::time::UNIX_EPOCH).unwrap();
    scene.world.readers.clear();
    let reader = session(scene.world.home(), ID);
    scene.world.readers.push((reader, Shown { id: ID.into(), ..Shown::default() }));
    assert_eq!(scene.row_at(now).status, Status::Ended);
}

/// A sub-agent of a workflow, which has a shell open since ten seconds ago.
fn workflow_agent(scene: &Scene, path: &str, command: &str) {
    let log = prompt() + &tool(&format!("t-{command}"), "Bash", &serde_json::json!({"command": command}));
    scene.world.write(&format!("projects/-work-shop/{ID}/subagents/{path}"), log.as_bytes());
}

/// A turn that is over.
fn over() -> String {
    prompt()
        + &(serde_json::json!({
            "type": "assistant", "uuid": "a1", "timestamp": "2026-11-23T19:17:01.000Z", "sessionId": ID,
            "message": {"id": "m1", "model": "m", "stop_reason": "end_turn", "content": [{"type": "text", "text": "It runs."}]},
        })
        .to_string()
            + "\n")
}

/// Given: the turn is over, and two agents of a workflow work. -> They count, what one asks is theirs, and after eleven
/// minutes in a shell the session still works. Seen with 2.1.332: `subagents/workflows/<run>/agent-<id>.jsonl`.
#[test]
fn case_530_agents_of_a_workflow_count_however_deep_their_logs_lie() {
    let mut scene = Scene::new(&busy(), &over());
    workflow_agent(&scene, "workflows/wf_1/agent-a1.jsonl", "make");
    workflow_agent(&scene, "workflows/wf_1/deeper/agent-a2.jsonl", "make test");
    scene.world.write(&format!("projects/-work-shop/{ID}/subagents/workflows/wf_1/journal.jsonl"), b"{}\n");
    for silence in [Span::ZERO, Span::seconds(11 * 60)] {
        let row = scene.row_at(NOW + silence);
        let because = row.because.to_string();
        assert_eq!((row.status, &*because), (Status::Working, "2 background agents"), "{silence}");
        assert_eq!(row.background.agents, 2);
    }
    scene.says(&serde_json::json!({"status": "waiting", "waitingFor": "permission prompt"}));
    let row = scene.row();
    assert_eq!((row.status, &*row.because.to_string()), (Status::NeedsPermission, "asks for permission: Bash"));
    // What is silent for twenty minutes no longer counts.
    scene.says(&busy());
    assert_eq!(scene.row_at(NOW + Span::seconds(21 * 60)).background.agents, 0);
    // The folders are watched, those that are made later, too.
    let folders = scene.world.readers[0].0.folders();
    let inside = |path: &str| scene.world.home().join(format!("projects/-work-shop/{ID}{path}"));
    let expected =
        ["", "/subagents", "/subagents/workflows", "/subagents/workflows/wf_1", "/subagents/workflows/wf_1/deeper"];
    assert_eq!(folders, expected.map(inside));
    for path in ["subagents/workflows", "subagents/workflows/wf_1", "subagents/workflows/wf_1/agent-a1.jsonl"] {
        let parts: Vec<_> = std::iter::once(ID).chain(path.split('/')).collect();
        assert_eq!(store::subject_inside(&parts), Some(ID), "{path}");
    }
}

/// Given: two agents of a workflow work, of which one is described. -> Each is a line: what it is for, and what it does.
#[test]
fn case_767_agents_of_a_workflow_are_listed_one_by_one() {
    let mut scene = Scene::new(&busy(), &over());
    workflow_agent(&scene, "workflows/wf_1/agent-a1.jsonl", "make");
    workflow_agent(&scene, "workflows/wf_1/agent-a2.jsonl", "make test");
    let meta = br#"{"agentType":"general-purpose","description":"Build \u001b[31mit","spawnDepth":1}"#;
    scene.world.write(&format!("projects/-work-shop/{ID}/subagents/workflows/wf_1/agent-a1.meta.json"), meta);
    let row = scene.row();
    let lines: Vec<_> = row.background.list.iter().map(|it| (&*it.name, it.does.as_deref())).collect();
    let name = lines[0].0;
    assert!(name.starts_with("Build ") && !name.contains('\u{1b}'), "{name:?}");
    assert_eq!((lines[0].1, lines[1]), (Some("Bash: make"), ("a2", Some("Bash: make test"))));
    assert_eq!(scene.row_at(NOW + Span::seconds(21 * 60)).background.list, []);
}

/// Given: the session waits for a permission, its turn is over, and one sub-agent has a tool open, then two. -> The one is named;
/// of two, which of them asks is not known.
#[test]
fn case_831_a_sub_agent_that_asks_is_named_if_no_other_can_be_meant() {
    let mut scene = Scene::new(&serde_json::json!({"status": "waiting", "waitingFor": "permission prompt"}), &over());
    workflow_agent(&scene, "agent-a1.jsonl", "make");
    let meta = br#"{"agentType":"general-purpose","description":"Build \u001b[31mit\n"}"#;
    scene.world.write(&format!("projects/-work-shop/{ID}/subagents/agent-a1.meta.json"), meta);
    let because = scene.row().because.to_string();
    assert!(because.starts_with("asks for permission: Bash; by its sub-agent: Build "), "{because:?}");
    assert!(because.ends_with("it") && !because.contains(['\u{1b}', '\n']), "{because:?}");
    workflow_agent(&scene, "agent-a2.jsonl", "make test");
    assert_eq!(scene.row().because.to_string(), "asks for permission: Bash");
}

/// Given: a tree of links in a circle, of folders without end, and of more logs than are followed. -> Those are left out;
/// of the logs, those that wrote last count.
#[test]
fn case_531_a_hostile_tree_below_the_sub_agents_is_left_alone() {
    let mut scene = Scene::new(&busy(), &over());
    let folder = scene.world.home().join(format!("projects/-work-shop/{ID}/subagents"));
    fs::create_dir_all(&folder).unwrap();
    std::os::unix::fs::symlink(&folder, folder.join("round")).unwrap();
    let deep = (0..40).fold(folder.clone(), |path, _| path.join("d"));
    fs::create_dir_all(&deep).unwrap();
    fs::write(deep.join("agent-deep.jsonl"), prompt()).unwrap();
    (0..300).for_each(|run| fs::create_dir(folder.join(format!("r{run}"))).unwrap());
    for agent in 0..300 {
        fs::write(folder.join(format!("agent-{agent}.jsonl")), over()).unwrap();
    }
    workflow_agent(&scene, "agent-last.jsonl", "make");
    for agent in 0..300 {
        let file = fs::File::options().write(true).open(folder.join(format!("agent-{agent}.jsonl"))).unwrap();
        file.set_modified(std::time::UNIX_EPOCH).unwrap();
    }
    let row = scene.row();
    assert_eq!((row.status, row.background.agents), (Status::Working, 1), "{}", row.because);
    let (reader, _) = &scene.world.readers[0];
    assert!(reader.folders().len() < 200, "{}", reader.folders().len());
    assert!(reader.sub_agents.known().count() <= 256);
}
