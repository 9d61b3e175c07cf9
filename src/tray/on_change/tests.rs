use super::*;
use pilotlight_core::alert::Trigger;
use pilotlight_system::process::testing::wait_until;
use std::fs;
use std::path::Path;
use std::time::Instant;
use tokio::runtime::{Builder, Runtime};

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

/// A shell with this script, and `folder` as `$0`.
fn shell(script: &str, folder: &Path) -> Command {
    let run = ["sh", "-c", script, folder.to_str().unwrap()].map(str::to_owned).to_vec();
    Command { triggers: Trigger::usual(), run }
}

fn of_shell(script: &str, folder: &Path) -> Arc<Known> {
    Arc::new(Known::new(1, &shell(script, folder)))
}

fn is_alive(pid: i32) -> bool {
    rustix::process::test_kill_process(rustix::process::Pid::from_raw(pid).unwrap()).is_ok()
}

#[test]
fn case_300_a_command_has_the_line_on_its_input_and_its_arguments_as_written() {
    let scratch = tempfile::tempdir().unwrap();
    let mut command =
        shell("cat >\"$0/input\"; printf '%s|' \"$@\" >\"$0/arguments\"; pwd >\"$0/folder\"", scratch.path());
    command.run.extend(["$(id); `id`", "", "two words"].map(str::to_owned));
    runtime().block_on(run(&command, "{\"id\":\"a\"}\n", LIMIT)).unwrap();
    let read = |name: &str| fs::read_to_string(scratch.path().join(name)).unwrap();
    assert_eq!(read("input"), "{\"id\":\"a\"}\n");
    assert_eq!(read("arguments"), "$(id); `id`||two words|");
    assert_eq!(read("folder").trim(), paths::user_home().unwrap().to_str().unwrap());
}

#[test]
fn case_301_a_failure_says_why_and_quotes_no_argument() {
    let scratch = tempfile::tempdir().unwrap();
    let why = |command: &Command| runtime().block_on(run(command, "{}\n", LIMIT)).map_err(|error| error.to_string());
    assert_eq!(why(&shell("exit 3", scratch.path())), Err("it ended with exit status: 3".into()));
    assert_eq!(why(&shell("exit 0", scratch.path())), Ok(()), "it need not read its input");
    let missing = Command { run: vec!["/nowhere/program".into(), "s3cr3t".into()], ..shell("", scratch.path()) };
    assert_eq!(why(&missing), Err("there is no such program".into()));
    let known = Known::new(2, &missing);
    assert_eq!(known.name, "the on-change command 2 (program)");
}

/// With everything that it started, but for what left its process group.
#[test]
fn case_302_a_command_that_takes_too_long_is_killed_with_its_children() {
    let scratch = tempfile::tempdir().unwrap();
    let command = shell("trap '' TERM HUP; sleep 600 & echo $! >\"$0/child\"; wait", scratch.path());
    let (runtime, pid) = (runtime(), scratch.path().join("child"));
    let error = runtime.block_on(run(&command, "{}\n", Duration::from_secs(1))).unwrap_err();
    assert_eq!(error.to_string(), "it ran for longer than 1 s, and was killed");
    let child: i32 = fs::read_to_string(pid).unwrap().trim().parse().unwrap();
    wait_until("its child is killed", || !is_alive(child));
}

#[test]
fn a_command_ends_with_the_tray() {
    let scratch = tempfile::tempdir().unwrap();
    let runtime = runtime();
    let mut runner = Runner::new(runtime.handle().clone(), LIMIT);
    runner.start(
        // Its input ends once the tray has it in its hands.
        &of_shell(
            "cat >/dev/null; echo $$ >\"$0/pid.tmp\"; mv \"$0/pid.tmp\" \"$0/pid\"; exec sleep 600",
            scratch.path(),
        ),
        "".into(),
    );
    let pid = scratch.path().join("pid");
    runtime.block_on(async {
        while !pid.exists() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    runtime.shutdown_background();
    let pid: i32 = fs::read_to_string(pid).unwrap().trim().parse().unwrap();
    // It may stay a zombie: whoever would wait for it has ended, too.
    let stat = || fs::read_to_string(format!("/proc/{pid}/stat"));
    if cfg!(target_os = "linux") {
        wait_until("it is killed", || stat().map_or(true, |stat| stat.contains(") Z ")));
    }
}

#[test]
fn case_303_four_run_at_once_the_others_wait_and_a_storm_is_dropped() {
    let scratch = tempfile::tempdir().unwrap();
    let runtime = runtime();
    let mut runner = Runner::new(runtime.handle().clone(), LIMIT);
    let script = "echo >\"$0/ran.$$\"; while [ ! -e \"$0/go\" ]; do sleep 0.02; done";
    let known = of_shell(script, scratch.path());
    for _ in 0..MOST + 10 {
        runner.start(&known, "{}\n".into());
    }
    assert!(runner.drops);
    let ran =
        || fs::read_dir(scratch.path()).unwrap().filter(|entry| entry.as_ref().unwrap().file_name() != "go").count();
    let all_ended = |runner: &Runner| runner.accepted.available_permits() == MOST;
    runtime.block_on(async {
        let begun = Instant::now();
        while ran() < AT_ONCE || begun.elapsed() < Duration::from_millis(200) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        assert_eq!(ran(), AT_ONCE, "the others wait");
        fs::write(scratch.path().join("go"), "").unwrap();
        while !all_ended(&runner) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    assert_eq!(ran(), MOST, "those that were too many are not run later");
    runner.start(&known, "{}\n".into());
    assert!(!runner.drops);
}

#[test]
fn a_failure_is_logged_once_until_the_command_works() {
    let known = of_shell("", Path::new("/"));
    let failed = |known: &Known| known.has_failed.load(Ordering::Relaxed);
    known.note(&Err(io::Error::other("it ended")));
    assert!(failed(&known));
    known.note(&Ok(()));
    assert!(!failed(&known));
}
