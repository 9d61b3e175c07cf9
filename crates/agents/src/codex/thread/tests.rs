use super::*;
use crate::codex::Codex;
use crate::codex::fake;
use crate::openings::OpenSessions;
use crate::runners::Runner;
use crate::tail::ReadContext;
use pilotlight_core::action::Action;
use pilotlight_core::agent::Agent;
use pilotlight_core::facts::LastWritten;
use pilotlight_core::fleet::Row;
use pilotlight_core::limits::Limits;
use pilotlight_core::owner::Doubt;
use pilotlight_core::owner::HoldProof;
use pilotlight_core::session::Session;
use pilotlight_core::time::Moment;
use pilotlight_core::verdict::{Answer, Liveness, Observations, Status, judge};
use pilotlight_core::words::reason::Reason;
use pilotlight_system::clock::Clock;
use pilotlight_system::process::testing::{alone, copy, make_pipe, wait_until};
use rustix::process::{Pid, Signal, kill_process_group};
use std::collections::HashSet;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::time::{Duration, Instant, UNIX_EPOCH};
use tempfile::TempDir;

const ID: &str = "01a20053-8e6c-7863-a4ca-0d958e862685";
const SUB: &str = "01a20053-9e6c-7863-a4ca-0d958e862685";

fn thread(root: &Path, id: &str) -> Thread {
    Thread { runs_codex: fake::runs_codex, ..Thread::new(root, id, store::path(root, id)) }
}

/// A home with one thread.
struct Stage {
    home: TempDir,
    thread: Thread,
    observed: Observed,
    limits: Limits,
    known: HashSet<u32>,
}

impl Stage {
    fn new() -> Self {
        let home = fake::home(std::process::id());
        let thread = thread(&home.path().join("sessions"), ID);
        Self { home, thread, observed: Observed::default(), limits: Limits::default(), known: HashSet::new() }
    }

    fn log(&self, id: &str) -> PathBuf {
        let folder = self.home.path().join("sessions/2026/11/21");
        fs::create_dir_all(&folder).unwrap();
        folder.join(format!("rollout-2026-11-21T22-56-45-{id}.jsonl"))
    }

    /// Writes lines that happen this many milliseconds ago.
    fn write(&self, id: &str, ago: i64, lines: &[(&str, &str)]) {
        let at = Clock::start().now().wall - Span(ago);
        let mut log = OpenOptions::new().append(true).create(true).open(self.log(id)).unwrap();
        for (kind, payload) in lines {
            writeln!(log, r#"{{"timestamp":"{at}","ordinal":1,"type":"{kind}","payload":{payload}}}"#).unwrap();
        }
    }

    fn begin(&self, id: &str, ago: i64) {
        self.begin_by("0.169.0", id, ago);
    }

    fn begin_by(&self, version: &str, id: &str, ago: i64) {
        let meta = format!(
            r#"{{"session_id":"{ID}","id":"{id}","cwd":"/p","originator":"codex-tui","cli_version":"{version}","git":{{"branch":"main"}}}}"#
        );
        self.write(id, ago, &[("session_meta", &meta)]);
    }

    fn prompt(&self, id: &str, ago: i64) {
        let context = r#"{"approval_policy":"on-request","approvals_reviewer":"user","model":"m","cwd":"/p"}"#;
        let prompt =
            r#"{"type":"item_completed","item":{"type":"UserMessage","content":[{"type":"text","text":"Fix it"}]}}"#;
        let started = r#"{"type":"task_started","turn_id":"t1"}"#;
        self.write(id, ago, &[("event_msg", started), ("turn_context", context), ("event_msg", prompt)]);
    }

    fn call(&self, id: &str, ago: i64, call: &str, more: &str) {
        let call = format!(
            r#"{{"type":"function_call","name":"exec_command","arguments":"{{\"cmd\": \"touch x\"{more}}}","call_id":"{call}"}}"#
        );
        self.write(id, ago, &[("response_item", &call)]);
    }

    fn complete(&self, id: &str, ago: i64) {
        self.write(id, ago, &[("event_msg", r#"{"type":"task_complete","last_agent_message":"Done."}"#)]);
    }

    /// A lock that was made this many milliseconds ago, and is held until it is dropped.
    fn lock(&self, id: &str, ago: u64) -> File {
        let file = File::create(self.home.path().join(format!("thread-writer-locks/{id}.lock"))).unwrap();
        let made = u64::try_from(Clock::start().now().wall.0).unwrap() - ago;
        file.set_modified(UNIX_EPOCH + Duration::from_millis(made)).unwrap();
        file.lock().unwrap();
        file
    }

    fn refresh(&mut self) -> io::Result<ReadStatus> {
        self.refresh_with(OpenSessions::NONE)
    }

    fn refresh_with(&mut self, openings: &OpenSessions) -> io::Result<ReadStatus> {
        let now = Clock::start().now();
        let reading = Reading {
            context: ReadContext { now, limits: &self.limits, until: None },
            owner_names: &[],
            known: &self.known,
            openings,
            all: false,
        };
        self.thread.refresh(&reading, &mut self.observed, &mut Vec::new())
    }

    /// The status and its reason, read anew.
    fn status(&mut self) -> (Status, String) {
        self.refresh().unwrap();
        let (observed, now) = (&self.observed, Clock::start().now());
        let verdict = judge(
            Observations::by_log(&observed.facts),
            &observed.owner,
            &Liveness::default(),
            None,
            now,
            &self.limits,
        );
        (verdict.status, verdict.because.to_string())
    }

    fn is(&mut self, status: Status, says: &str) {
        let (is, because) = self.status();
        assert!(is == status && because.contains(says), "{is}, {because}");
    }
}

/// Makes a log one that was last written four seconds ago.
fn rest(log: &Path) {
    let at = u64::try_from(Clock::start().now().wall.0 - 4000).unwrap();
    let log = OpenOptions::new().append(true).open(log).unwrap();
    log.set_modified(UNIX_EPOCH + Duration::from_millis(at)).unwrap();
}

/// A child of ours that carries out a call.
fn child(call: &str) -> Child {
    let child = Command::new("sleep").arg("100").env("CODEX_TOOL_CALL_ID", call).spawn().unwrap();
    // Its environment is set a moment after it was started.
    let environment = format!("/proc/{}/environ", child.id());
    let is_set = |text: Vec<u8>| text.windows(call.len()).any(|part| part == call.as_bytes());
    wait_until("the child", || fs::read(&environment).is_ok_and(is_set));
    child
}

fn end(mut child: Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn case_260_the_lock_and_the_last_turn_say_whether_a_thread_runs_rests_crashed_or_ended() {
    alone!();
    let mut stage = Stage::new();
    let held = stage.lock(ID, 9000);
    stage.begin(ID, 8000);
    stage.prompt(ID, 8000);
    stage.is(Status::Working, "the model thinks");
    let me = std::process::id();
    assert!(matches!(stage.observed.owner, Owner::Alive { pid, .. } if pid == me));
    assert_eq!((stage.observed.held, stage.observed.is_served), (HoldProof::Verified, false));
    assert_eq!(stage.observed.about.name.as_deref(), Some("Fix it"));
    assert_eq!((stage.observed.about.branch.as_deref(), stage.observed.untried.as_deref()), (Some("main"), None));
    drop(held); // a process that is killed leaves the file
    stage.is(Status::Crashed, "its process is gone");
    assert_eq!(stage.observed.owner.pid(), None, "who comes later does not know it either");
    let held = stage.lock(ID, 7000);
    stage.is(Status::Idle, "opened, not prompted yet; in the middle of a turn");
    stage.prompt(ID, 6000);
    stage.is(Status::Working, "the model thinks");
    stage.complete(ID, 5000);
    stage.is(Status::Idle, "done");
    drop(held);
    stage.is(Status::Ended, "its process is gone");
    let held = stage.lock(ID, 4000);
    stage.is(Status::Idle, "opened, not prompted yet");
    fs::remove_file(stage.home.path().join(format!("thread-writer-locks/{ID}.lock"))).unwrap();
    drop(held);
    stage.is(Status::Ended, "shut down");
    // The next process that starts deletes what a killed one left behind.
    stage.write(ID, 3500, &[("event_msg", r#"{"type":"task_started","turn_id":"t2"}"#)]);
    stage.is(Status::Crashed, "its process is gone");
    assert!(matches!(stage.observed.owner, Owner::Gone { at: Some(_), .. }), "it was seen to end");
    let error = r#"{"type":"task_complete","error":{"message":"no","codex_error_info":"usage_limit_exceeded"}}"#;
    stage.prompt(ID, 3000);
    stage.write(ID, 3000, &[("event_msg", error)]);
    stage.is(Status::Ended, "usage limit exceeded");
}

#[test]
fn case_292_a_release_that_makes_no_locks_is_not_judged_by_the_lack_of_one() {
    alone!();
    for (version, status, says) in [
        ("0.169.0", Status::Crashed, "its process is gone"),
        ("1.0.0-alpha.2", Status::Crashed, "its process is gone"),
        ("0.20.0", Status::Working, "no process is known to run it"),
        ("", Status::Working, "no process is known to run it"),
    ] {
        let mut stage = Stage::new();
        stage.begin_by(version, ID, 3000);
        stage.prompt(ID, 3000);
        rest(&stage.log(ID));
        stage.is(status, says);
        let session = Session { observed: stage.observed.clone(), ..Session::new(Agent::default(), ID) };
        let because = session.row(Clock::start().now(), &stage.limits).0.because.to_string();
        let is_said = because.contains("does not say which process runs it");
        assert_eq!(is_said, status == Status::Working, "{because}");
        // One that was seen with a lock makes locks, whoever wrote the beginning of its log.
        let held = stage.lock(ID, 2000);
        stage.prompt(ID, 1000);
        stage.is(Status::Working, "the model thinks");
        fs::remove_file(stage.home.path().join(format!("thread-writer-locks/{ID}.lock"))).unwrap();
        drop(held);
        stage.is(Status::Crashed, "its process is gone");
        assert!(!stage.observed.is_untold);
    }
    let mut stage = Stage::new();
    stage.begin_by("0.20.0", ID, 3000);
    stage.prompt(ID, 3000);
    stage.complete(ID, 2000);
    stage.is(Status::Idle, "done");
}

/// A profile whose `sessions` is a link: its lock is in a home that nothing names any more once its process is gone.
#[test]
fn case_715_a_thread_that_no_process_can_have_loaded_is_over_wherever_its_lock_is() {
    alone!();
    let runner = |claims: Vec<Box<str>>, is_helper| Runner {
        adapter: &Codex,
        pid: 7,
        born: 1,
        started: Clock::start().now().wall,
        home: None,
        folder: Some("/elsewhere".into()),
        named: None,
        continues: false,
        claims,
        logs: Vec::new(),
        is_helper,
    };
    for (runners, is_over) in [
        (vec![], true),
        (vec![runner(vec!["another".into()], false)], true),
        (vec![runner(vec![], true)], true),
        (vec![runner(vec![], false)], false),
    ] {
        for is_open in [true, false] {
            let openings = OpenSessions::default().with(runners.clone(), Vec::new());
            let mut stage = Stage::new();
            fs::remove_dir(stage.home.path().join("thread-writer-locks")).unwrap();
            stage.begin(ID, 8000);
            stage.prompt(ID, 8000);
            if !is_open {
                stage.complete(ID, 7000);
            }
            stage.refresh_with(&openings).unwrap();
            assert!(matches!(stage.observed.owner, Owner::Doubtful { .. }) == is_over, "it was just written");
            rest(&stage.log(ID));
            stage.refresh_with(&openings).unwrap();
            let expected = if is_over { Owner::Gone { pid: Owner::UNNAMED, at: None } } else { Owner::Never };
            assert_eq!((&stage.observed.owner, stage.observed.is_untold), (&expected, !is_over), "{runners:?}");
        }
    }
}

/// As of a process that clears up: the lock is not the thread.
#[test]
fn case_579_a_thread_whose_lock_is_deleted_is_not_over_while_its_process_has_its_log_open() {
    alone!();
    let mut stage = Stage::new();
    let held = stage.lock(ID, 9000);
    stage.begin(ID, 8000);
    stage.prompt(ID, 8000);
    let log = OpenOptions::new().append(true).open(stage.log(ID)).unwrap();
    stage.is(Status::Working, "the model thinks");
    rest(&stage.log(ID));
    fs::remove_file(stage.home.path().join(format!("thread-writer-locks/{ID}.lock"))).unwrap();
    for _ in 0..2 {
        stage.is(Status::Working, "the model thinks");
        let me = std::process::id();
        assert_eq!(stage.observed.owner, Owner::Doubtful { pid: me, why: Doubt::HasOpen });
        assert_eq!(
            (stage.thread.pids().first().copied(), stage.thread.owner_recheck_at().is_some()),
            (Some(me), true),
            "its end is waited for"
        );
    }
    drop((log, held));
    stage.is(Status::Crashed, "its process is gone");
}

/// Nobody holds a lock of it, and yet it is written.
#[test]
fn case_519_a_thread_without_a_lock_is_not_over_while_its_log_grows() {
    alone!();
    let mut stage = Stage::new();
    stage.begin_by("0.169.0", ID, 3000);
    stage.prompt(ID, 3000);
    stage.is(Status::Working, "");
    assert_eq!(stage.observed.owner, Owner::Doubtful { pid: Owner::UNNAMED, why: Doubt::Growing });
    assert!(stage.thread.owner_recheck_at().is_some(), "that it rests is no event");
    rest(&stage.log(ID));
    stage.is(Status::Crashed, "its process is gone");
}

/// As a new reader sees it, without the memory of one that saw the process.
#[test]
fn case_261_a_lock_that_nobody_holds_names_no_process() {
    alone!();
    let mut stage = Stage::new();
    drop(stage.lock(ID, 0));
    stage.begin(ID, 3000);
    stage.prompt(ID, 3000);
    stage.is(Status::Crashed, "its process is gone");
    assert_eq!((stage.observed.owner.pid(), &stage.observed.owner), (None, &Owner::Gone { pid: 0, at: None }));
    assert!(stage.thread.owner_recheck_at().is_some(), "it was made a moment ago, and is held without an event");
    let session = Session { observed: stage.observed.clone(), ..Session::new(Agent::default(), ID) };
    assert!(session.row(Moment::default(), &stage.limits).0.owner.is_none(), "no process 0 is shown");
}

#[test]
fn case_261_what_is_no_log_and_no_lock_is_said_or_left_alone() {
    alone!();
    let mut stage = Stage::new();
    assert!(stage.refresh().is_err(), "there is nothing");
    let lock = stage.home.path().join(format!("thread-writer-locks/{ID}.lock"));
    make_pipe(&lock);
    make_pipe(&stage.log(ID));
    stage.refresh().unwrap();
    let problem = stage.observed.problem.as_deref().unwrap();
    assert!(problem.contains("a pipe or a device"), "{problem}");
    assert_eq!(stage.observed.owner, Owner::Never, "a pipe is no lock");
    fs::remove_file(stage.log(ID)).unwrap();
    for odd in [
        "",
        "\n\n",
        "not JSON\n",
        "{\"timestamp\":\"x\"}\n",
        "{\"timestamp\":\"2026-11-21T22:56:48.299Z\",\"type\":\"session_meta\",\"payload\":null}",
    ] {
        fs::write(stage.log(ID), odd).unwrap();
        stage.refresh().unwrap();
    }
    // Half a line is progress, and not an event yet.
    fs::remove_file(stage.log(ID)).unwrap();
    stage.begin(ID, 0);
    stage.prompt(ID, 0);
    let mut log = OpenOptions::new().append(true).open(stage.log(ID)).unwrap();
    write!(log, r#"{{"timestamp":"2026-11-21T22"#).unwrap();
    stage.refresh().unwrap();
    assert!(stage.observed.facts.turn.is_some());
    fs::remove_file(stage.log(ID)).unwrap();
    assert!(stage.refresh().is_err(), "archived");
}

#[test]
fn case_260_a_thread_without_a_prompt_is_known_by_its_own_process_alone() {
    alone!();
    let mut stage = Stage::new();
    let _held = stage.lock(ID, 9000);
    stage.is(Status::Idle, "no prompt yet");
    assert_eq!(stage.observed.about.cwd.as_deref(), std::env::current_dir().unwrap().to_str());
}

#[test]
fn case_264_a_sub_agent_is_its_threads_work_and_no_session() {
    alone!();
    let mut stage = Stage::new();
    let _held = stage.lock(ID, 9000);
    let _sub_held = stage.lock(SUB, 8000);
    stage.begin(ID, 0);
    stage.prompt(ID, 0);
    stage.begin(SUB, 0);
    stage.prompt(SUB, 0);
    stage.complete(ID, 0);
    stage.is(Status::Working, "1 background agent");
    let mut sub = thread(&stage.home.path().join("sessions"), SUB);
    std::mem::swap(&mut sub, &mut stage.thread);
    assert!(stage.refresh().is_err(), "it is none of its own");
    std::mem::swap(&mut sub, &mut stage.thread);
    assert_eq!(store::whole(&stage.home.path().join("sessions"), SUB).as_deref(), Some(ID));
    assert_eq!(store::whole(&stage.home.path().join("sessions"), ID), None);
    // Its approval is the root's.
    stage.call(SUB, 2000, "call_s", r#", \"sandbox_permissions\": \"require_escalated\""#);
    stage.is(Status::NeedsPermission, "probably asks in its terminal: touch x");
    assert_eq!(stage.observed.facts.requests[0].sub_agent.as_deref(), Some(SUB));
    stage.complete(SUB, 0);
    stage.is(Status::Idle, "done");
}

#[test]
fn case_325_what_a_sub_agent_writes_is_progress_of_its_root() {
    alone!();
    let mut stage = Stage::new();
    let (_held, _sub_held) = (stage.lock(ID, 90_000), stage.lock(SUB, 80_000));
    stage.begin(ID, 70_000);
    stage.prompt(ID, 70_000);
    stage.begin(SUB, 60_000);
    stage.prompt(SUB, 60_000);
    stage.complete(ID, 50_000);
    let ago = |stage: &mut Stage| {
        stage.refresh().unwrap();
        Clock::start().now().wall - stage.observed.facts.progress.unwrap().wall
    };
    assert!(ago(&mut stage) >= Span::seconds(50));
    stage.call(SUB, 0, "call_s", "");
    assert!(ago(&mut stage) < Span::seconds(50));
    assert!(matches!(stage.observed.facts.last_written, LastWritten::Event { by_sub_agent: true, .. }));
}

/// A process that holds the thread's lock, and is a program of this name.
fn holder(stage: &Stage, name: &str) -> Child {
    let program = stage.home.path().join(name);
    copy("/usr/bin/flock", &program);
    let lock = stage.home.path().join(format!("thread-writer-locks/{ID}.lock"));
    Command::new(program).arg(&lock).args(["sleep", "100"]).process_group(0).spawn().unwrap()
}

impl Stage {
    fn wait(&mut self, holds: fn(&Observed) -> bool) {
        let started = Instant::now();
        while self.refresh().is_err() || !holds(&self.observed) {
            assert!(started.elapsed() < Duration::from_secs(30), "{:?}", self.observed);
            std::thread::yield_now();
        }
    }

    fn row(&self) -> Row {
        let session = Session { observed: self.observed.clone(), ..Session::new(Agent::default(), ID) };
        session.row(Clock::start().now(), &self.limits).0
    }
}

#[test]
fn case_326_a_stopped_process_is_said() {
    alone!();
    let mut stage = Stage::new();
    stage.begin(ID, 0);
    stage.prompt(ID, 0);
    let holder = holder(&stage, "codex");
    let group = Pid::from_child(&holder);
    stage.wait(|observed| observed.owner.live().is_some() && !observed.is_stopped);
    stage.prompt(ID, 0);
    stage.refresh().unwrap();
    assert!(stage.row().actions.contains(&Action::End));
    kill_process_group(group, Signal::STOP).unwrap();
    stage.wait(|observed| observed.is_stopped);
    kill_process_group(group, Signal::KILL).unwrap();
    end(holder);
    stage.wait(|observed| !observed.is_stopped && observed.owner.live().is_none());
}

/// Case 326: any program can lock a file.
#[test]
fn case_326_another_program_that_holds_a_threads_lock_has_not_opened_it() {
    alone!();
    let mut stage = Stage::new();
    stage.begin(ID, 3000);
    stage.prompt(ID, 3000);
    stage.complete(ID, 2000);
    let holder = holder(&stage, "backup");
    let group = Pid::from_child(&holder);
    stage.wait(|observed| matches!(observed.owner, Owner::Unknown { pid } if pid > 0));
    let row = stage.row();
    assert_eq!((row.status, &*row.because.to_string()), (Status::Idle, "done, your turn"));
    assert_eq!(row.owner.map(|owner| owner.state), Some("unknown"));
    assert!(!row.actions.iter().any(|action| matches!(action, Action::End | Action::Resume)), "{:?}", row.actions);
    kill_process_group(group, Signal::KILL).unwrap();
    end(holder);
    stage.wait(|observed| matches!(observed.owner, Owner::Gone { .. }));
}

#[test]
fn case_265_a_call_that_leaves_the_sandbox_probably_asks_until_a_child_carries_it_out() {
    alone!();
    let mut stage = Stage::new();
    let _held = stage.lock(ID, 9000);
    stage.begin(ID, 0);
    stage.prompt(ID, 0);
    let escalated = r#", \"sandbox_permissions\": \"require_escalated\""#;
    stage.call(ID, 0, "call_1", escalated);
    stage.is(Status::Working, "running exec_command");
    assert!(stage.thread.owner_recheck_at().is_some(), "no event says when a second has passed");
    stage.call(ID, 2000, "call_2", escalated);
    let other = child("call_9");
    stage.is(Status::NeedsPermission, "probably asks in its terminal: touch x");
    let request = &stage.observed.facts.requests[0];
    assert_eq!((&*request.request, request.is_probable, &request.asks), ("call_2", true, &None));
    let its = child("call_2");
    stage.is(Status::Working, "running 2 exec_command calls");
    end(its);
    end(other);
    stage.is(Status::Working, "running "); // it was allowed, and its result is not written yet
    // What needs no permission asks for none.
    let output = |call: &str| format!(r#"{{"type":"function_call_output","call_id":"{call}","output":"x"}}"#);
    stage.write(ID, 0, &[("response_item", &output("call_1")), ("response_item", &output("call_2"))]);
    stage.call(ID, 2000, "call_3", "");
    stage.is(Status::Working, "running exec_command");
    let nobody = r#"{"approval_policy":"on-request","approvals_reviewer":"auto_review","model":"m","cwd":"/p"}"#;
    stage.write(ID, 0, &[("turn_context", nobody)]);
    stage.call(ID, 2000, "call_4", escalated);
    stage.is(Status::Working, "running ");
}

#[test]
fn case_327_what_the_daemon_confirms_keeps_the_command_of_the_log() {
    alone!();
    let mut stage = Stage::new();
    let _held = stage.lock(ID, 9000);
    stage.begin(ID, 2000);
    stage.prompt(ID, 2000);
    stage.call(ID, 2000, "call_327", r#", \"sandbox_permissions\": \"require_escalated\""#);
    stage.refresh().unwrap();
    let (facts, now) = (&stage.observed.facts, Clock::start().now());
    let answer = Answer { progress: facts.progress.unwrap().wall, active: true, requests: 1 };
    let liveness = Liveness { answer: Some(answer), ..Liveness::default() };
    let verdict = judge(Observations::by_log(facts), &stage.observed.owner, &liveness, None, now, &stage.limits);
    let Reason::AsksPermission { text, .. } = &verdict.because.reason else { panic!("{}", verdict.because) };
    assert_eq!(text.as_deref(), Some("touch x"));
}

#[test]
fn case_291_of_several_calls_that_ask_the_one_that_is_still_open_is_named() {
    alone!();
    let mut stage = Stage::new();
    let _held = stage.lock(ID, 9000);
    stage.begin(ID, 0);
    stage.prompt(ID, 0);
    for call in ["call_291a", "call_291b"] {
        stage.call(ID, 2000, call, r#", \"sandbox_permissions\": \"require_escalated\""#);
    }
    stage.is(Status::NeedsPermission, "2 requests are open");
    // It ran, and was over before anybody looked. Its output is written with that of the others.
    let ran = r#"{"type":"item_completed","item":{"type":"CommandExecution","id":"call_291a","process_id":"7","status":"completed","exit_code":0}}"#;
    stage.write(ID, 0, &[("event_msg", ran)]);
    stage.is(Status::NeedsPermission, "probably asks in its terminal: touch x");
    let open: Vec<_> = stage.observed.facts.requests.iter().map(|request| &*request.request).collect();
    assert_eq!(open, ["call_291b"]);
    stage.write(ID, 0, &[("event_msg", &ran.replace("call_291a", "call_291b"))]);
    stage.is(Status::Working, "running 2 exec_command calls");
}

/// As a daemon with many threads forks children all the time.
#[test]
fn case_504_a_child_of_which_nothing_can_be_seen_yet_is_looked_at_again() {
    alone!();
    let mut stage = Stage::new();
    let _held = stage.lock(ID, 9000);
    stage.begin(ID, 0);
    stage.prompt(ID, 0);
    stage.call(ID, 2000, "call_504", r#", \"sandbox_permissions\": \"require_escalated\""#);
    stage.thread.asking.runs = |_, _| None;
    stage.is(Status::Working, "running exec_command");
    assert!(stage.thread.owner_recheck_at().is_some(), "no event says when it can be seen");
    stage.thread.asking.runs = |_, _| Some(false);
    stage.is(Status::NeedsPermission, "probably asks in its terminal: touch x");
}
