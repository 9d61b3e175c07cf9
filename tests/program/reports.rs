//! `pilotlight report`: what an agent's own hook reports is shown, until it is over, and changes nothing else.

use crate::support::executable::copy_program;
use crate::support::synthetic::{User, Watch};
use crate::support::{SOON, wait_until};
use serde_json::Value;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Reports, and checks what a hook must be: silent and without failure.
fn report(user: &User, agent: &str, session: &str, state: &str, more: &[&str]) {
    let given = ["report", "--agent", agent, "--session", session, "--state", state];
    quiet(&user.run(&[&given, more].concat()));
}

fn quiet(ran: &Output) {
    assert!(ran.status.success() && ran.stdout.is_empty() && ran.stderr.is_empty(), "{ran:?}");
}

fn row(user: &User, id: &str) -> Option<Value> {
    user.rows(&[]).into_iter().find(|row| row["id"] == id)
}

/// Waits until `watch` has reported this of a session, and `status` says the same.
fn both(user: &User, watch: &Watch, id: &str, fits: impl Fn(&Value) -> bool) -> Value {
    let latest = || watch.latest().get(id).cloned();
    let agreed = || {
        let (watched, row) = (latest().filter(|row| fits(row))?, row(user, id)?);
        (row["status"] == watched["status"] && row["because"] == watched["because"]).then_some(row)
    };
    wait_until(SOON, &format!("{id} is shown"), || format!("{:?}", latest()), agreed)
}

fn is_removed(watch: &Watch, id: &str) {
    let is_gone = || watch.latest().get(id).is_some_and(|line| line["removed"] == true).then_some(());
    wait_until(SOON, &format!("{id} is gone"), || format!("{:?}", watch.latest().get(id)), is_gone);
}

fn gone(user: &User, watch: &Watch, id: &str) {
    is_removed(watch, id);
    assert_eq!(row(user, id), None);
}

fn reports(user: &User) -> PathBuf {
    user.scratch.path().join(".local/state/pilotlight/reports")
}

/// A process that looks like an agent: it runs the commands that it is sent, as `sh -c`, and lives on.
struct Agent(Child, &'static str);

impl Agent {
    fn start(user: &User) -> Self {
        Self::named("someagent", user)
    }

    fn named(name: &'static str, user: &User) -> Self {
        let program = user.scratch.path().join(name);
        if !program.exists() {
            copy_program("/bin/sh", &program);
        }
        let mut command = Command::new(program);
        let loops = r#"while read -r line; do /bin/sh -c "$line; :"; done"#;
        command
            .args(["-c", loops])
            .env_clear()
            .envs(user.pilotlight(&[]).get_envs().filter_map(|(k, v)| Some((k, v?))));
        Self(command.stdin(Stdio::piped()).spawn().unwrap(), name)
    }

    fn hook(&mut self, line: &str) {
        let program = env!("CARGO_BIN_EXE_pilotlight");
        writeln!(self.0.stdin.as_mut().unwrap(), "{program} report --agent {} {line}", self.1).unwrap();
    }

    fn kill(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        self.kill();
    }
}

#[test]
fn case_276_what_a_hook_reports_is_shown_as_such_until_it_is_over() {
    let user = User::new();
    // It runs before the folder of the reports is there.
    let watch = user.watch();
    let (id, is) = ("ses_1", |status: &'static str| move |row: &Value| row["status"] == status);
    report(&user, "aider", id, "working", &["--title", "Fix the parser", "--cwd", "/srv/parser", "--reason", "pytest"]);
    let works = both(&user, &watch, id, is("working"));
    assert_eq!(works["because"], "working, says its hook: pytest");
    assert_eq!((&works["agent"], &works["cwd"]), (&"aider".into(), &"/srv/parser".into()));
    assert_eq!(works["label"], "parser · Fix the parser");
    assert_eq!((&works["owner"]["pid"], &works["owner"]["state"]), (&std::process::id().into(), &"alive".into()));
    let actions = works["actions"].as_array().unwrap();
    assert!(actions.iter().all(|action| action == "show-terminal"), "{actions:?}");

    report(&user, "aider", id, "blocked", &[]);
    let asks = both(&user, &watch, id, is("needs-input"));
    assert_eq!((&asks["because"], &asks["label"]), (&"waits for you, says its hook".into(), &works["label"]));
    report(&user, "aider", id, "idle", &[]);
    let idle = both(&user, &watch, id, is("idle"));
    assert_eq!((&idle["because"], &idle["unseen"]), (&"idle, says its hook".into(), &true.into()));

    let refusal = "its hook only sends reports";
    for command in [&["stop"][..], &["approve", "--yes"]] {
        let ran = user.run(&[command, &[id]].concat());
        let words = String::from_utf8_lossy(&ran.stderr).into_owned();
        assert!(ran.status.code() == Some(4) && words.contains(refusal), "{command:?}: {ran:?}");
    }
    let page = String::from_utf8(user.run(&["explain", id]).stdout).unwrap();
    assert!(page.contains("by its hook") && page.contains("none is read"), "{page}");

    report(&user, "aider", id, "ended", &[]);
    gone(&user, &watch, id);
}

#[test]
fn case_276_a_reported_session_is_gone_with_the_process_that_ran_its_hook() {
    let (user, mut agent) = (User::new(), None);
    let agent = agent.insert(Agent::start(&user));
    let watch = user.watch();
    agent.hook("--session one --state working");
    agent.hook("--session two --state blocked");
    for id in ["one", "two"] {
        let row = both(&user, &watch, id, |row| row["status"] == if id == "one" { "working" } else { "needs-input" });
        assert_eq!(row["owner"]["pid"], agent.0.id(), "the shell of the hook was passed over");
    }
    agent.kill();
    gone(&user, &watch, "one");
    gone(&user, &watch, "two");
    // Neither is there for whoever looks later.
    assert_eq!(user.rows(&["--all"]), Vec::<Value>::new());
}

/// A tool below a program of opencode's name reports another one's session.
#[test]
fn case_860_a_session_of_an_agent_that_asks_over_a_hook_stays_with_its_process() {
    let user = User::new();
    let (mut own, mut other) = (Agent::named("opencode", &user), Agent::named("opencode", &user));
    let watch = user.watch();
    own.hook("--session ses_1 --state blocked --title 'Paint the fence'");
    both(&user, &watch, "ses_1", |row| row["status"] == "needs-input");
    other.hook("--session ses_1 --state blocked --title 'Another title' --reason 'rm -r .'");
    let row = both(&user, &watch, "ses_1", |row| row["because"].as_str().unwrap().contains("conflict"));
    assert_eq!(row["because"], "waits for you, says its hook; conflict: two programs say that this session is theirs");
    assert_eq!((&row["name"], &row["owner"]["pid"]), (&"Paint the fence".into(), &own.0.id().into()));
    let refused = user.run(&["approve", "--yes", "ses_1"]);
    let why = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(why.contains("two programs say that this session is theirs: close one in its terminal"), "{why}");
    other.kill();
    let is_own = |row: &Value| !row["because"].as_str().unwrap().contains("conflict");
    assert_eq!(both(&user, &watch, "ses_1", is_own)["owner"]["pid"], own.0.id());
    own.kill();
    gone(&user, &watch, "ses_1");
}

#[test]
fn case_276_the_id_may_come_from_the_json_of_the_hook() {
    let user = User::new();
    let mut hook = user.pilotlight(&["report", "--agent", "codex", "--session", "-", "--state", "working"]);
    let mut hook = hook.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let long = "x".repeat(3 << 20);
    let json = format!(r#"{{"session_id":"t-1","cwd":"/srv/a","tool_response":"{long}"}}"#);
    hook.stdin.take().unwrap().write_all(json.as_bytes()).unwrap();
    quiet(&hook.wait_with_output().unwrap());
    assert_eq!(row(&user, "t-1").unwrap()["cwd"], "/srv/a");
}

#[test]
fn case_277_a_wrong_report_fails_with_1_and_never_with_2() {
    let user = User::new();
    let good = ["report", "--agent", "aider", "--session", "s", "--state", "idle"];
    let with = |at: usize, word: &'static str| {
        let mut words = good;
        words[at] = word;
        words
    };
    let wrong = [
        with(2, "Aider"),
        with(2, "../x"),
        with(4, "a/b"),
        with(4, ""),
        with(4, "-"),
        with(6, "dead"),
        with(1, "--bogus"),
    ];
    let bare: [&[&str]; 3] = [&["report"], &["report", "--agent", "aider"], &["report", "x"]];
    for words in wrong.iter().map(|words| &words[..]).chain(bare) {
        let ran = user.run(words);
        let said = String::from_utf8(ran.stderr).unwrap();
        assert!(ran.status.code() == Some(1) && ran.stdout.is_empty(), "{words:?}: {said}");
        assert!(said.starts_with("pilotlight: ") && said.lines().count() == 1, "{words:?}: {said}");
    }
    let said = String::from_utf8(user.run(&with(6, "dead")).stderr).unwrap();
    assert!(said.contains("--state <STATE> dead") && said.contains("working, blocked, idle, ended"), "{said}");
    assert!(!reports(&user).exists());
    // No place to write to.
    fs::create_dir_all(user.scratch.path().join(".local")).unwrap();
    fs::write(user.scratch.path().join(".local/state"), "").unwrap();
    let ran = user.run(&good);
    assert!(ran.status.code() == Some(1) && ran.stdout.is_empty(), "{ran:?}");
}

#[test]
fn case_278_a_report_changes_nothing_of_a_session_that_is_read() {
    let (user, session, _owner, watch) = User::working(1);
    let before = user.row(&session).unwrap();
    for agent in ["copilot", "claude-code", "other"] {
        for state in ["blocked", "idle", "ended", "working", "blocked"] {
            report(&user, agent, &session.id, state, &["--title", "Not its title"]);
        }
    }
    let rows = user.rows(&["--all"]);
    assert_eq!(rows.len(), 1, "{rows:?}");
    for key in ["status", "because", "label", "owner", "actions", "since", "agent"] {
        assert_eq!(rows[0][key], before[key], "{key}");
    }
    // `watch` has read the reports as soon as it shows one that came after them.
    report(&user, "other", "later", "idle", &[]);
    both(&user, &watch, "later", |row| row["status"] == "idle");
    let others = watch.latest().into_iter().filter(|(id, line)| *id != "later" && line["removed"] != true);
    assert_eq!(others.map(|(id, _)| id).collect::<Vec<_>>(), std::slice::from_ref(&session.id));
}

#[test]
fn case_278_one_that_is_read_from_now_on_takes_the_place_of_its_reports() {
    let user = User::new();
    let watch = user.watch();
    let id = "00000007-0000-4000-a000-000000000000";
    report(&user, "copilot", id, "blocked", &[]);
    both(&user, &watch, id, |row| row["status"] == "needs-input");
    let session = user.session(7);
    let _owner = session.owner(&user);
    session.prompt();
    let shown = || watch.lines().into_iter().rfind(|line| line["id"] == id && line["status"] == "working").map(drop);
    wait_until(SOON, "it is read", || format!("{:?}", watch.lines()), shown);
    let rows = user.rows(&[]);
    assert!(rows.len() == 1 && rows[0]["status"] == "working", "{rows:?}");
}

#[test]
fn case_279_whatever_lies_among_the_reports_is_no_session_and_stops_nothing() {
    let user = User::new();
    let watch = user.watch();
    report(&user, "aider", "good", "working", &[]);
    both(&user, &watch, "good", |row| row["status"] == "working");
    let at = |name: &str| reports(&user).join(name);
    fs::write(at("half.json"), r#"{"version":1,"agent":"a"#).unwrap();
    fs::write(at("huge.json"), "[".repeat(50 << 20)).unwrap();
    fs::create_dir(at("folder.json")).unwrap();
    std::os::unix::fs::symlink("good.json", at("link.json")).unwrap();
    assert!(Command::new("mkfifo").arg(at("pipe.json")).status().unwrap().success());
    let good: Value = serde_json::from_slice(&fs::read(at("good.json")).unwrap()).unwrap();
    let mut forged = good;
    forged["title"] = "\u{1b}[2J\u{202e}evil\n".into();
    forged["process"]["pid"] = 1.into();
    write(&at("forged.json"), &forged);
    forged["process"] = Value::Null;
    forged["at"] = i64::MAX.into();
    write(&at("future.json"), &forged);
    report(&user, "aider", "good", "idle", &[]);
    both(&user, &watch, "good", |row| row["status"] == "idle");
    let mut ids: Vec<_> = user.rows(&["--all"]).into_iter().map(|row| row["id"].as_str().unwrap().to_owned()).collect();
    ids.sort_unstable();
    assert_eq!(ids, ["future", "good"]);
    let future = row(&user, "future").unwrap();
    assert_eq!(future["name"].as_str().unwrap().trim(), "[2Jevil");
}

fn write(path: &Path, value: &Value) {
    fs::write(path, value.to_string()).unwrap();
}

/// A flood of reports costs whoever sends it, and delays nobody.
#[test]
fn case_279_many_reports_at_once_leave_the_newest() {
    let user = User::new();
    let watch = user.watch();
    let spawn = |n: u32| {
        let reason = n.to_string();
        let words = ["report", "--agent", "aider", "--session", "s", "--state", "working", "--reason", &reason];
        user.pilotlight(&words).spawn().unwrap()
    };
    let running: Vec<_> = (0..50).map(spawn).collect();
    for mut child in running {
        assert!(child.wait().unwrap().success());
    }
    let record: Value = serde_json::from_slice(&fs::read(reports(&user).join("s.json")).unwrap()).unwrap();
    report(&user, "aider", "s", "blocked", &["--reason", "last"]);
    let last = both(&user, &watch, "s", |row| row["status"] == "needs-input");
    assert_eq!(last["because"], "waits for you, says its hook: last");
    assert!(record["reason"].as_str().unwrap().parse::<u32>().unwrap() < 50, "{record}");
    let lone = fs::read_dir(reports(&user)).unwrap().count();
    assert_eq!(lone, 2, "the record and the lock");
}

/// A hook runs at each tool. Measured in a debug build on a busy machine, so the bound is far above what it takes.
#[test]
fn a_report_does_not_keep_its_agent_waiting() {
    let user = User::new();
    report(&user, "aider", "s", "working", &[]);
    let took = (0..10).map(|_| {
        let started = Instant::now();
        report(&user, "aider", "s", "working", &[]);
        started.elapsed()
    });
    let best = took.min().unwrap();
    assert!(best < Duration::from_millis(500), "{best:?}");
}

fn ids(user: &User, args: &[&str]) -> Vec<String> {
    let mut ids: Vec<_> = user.rows(args).iter().map(|row| row["id"].as_str().unwrap().to_owned()).collect();
    ids.sort_unstable();
    ids
}

#[test]
fn case_310_a_filter_takes_the_name_of_any_agent_that_is_reported() {
    let user = User::new();
    let session = user.session(1);
    let _owner = session.owner(&user);
    session.prompt();
    report(&user, "goose", "g-1", "working", &[]);
    report(&user, "aider", "a-1", "blocked", &[]);
    assert_eq!(ids(&user, &["--agent", "goose"]), ["g-1"]);
    assert_eq!(ids(&user, &["--agent", "goose", "--agent", "copilot"]), [&*session.id, "g-1"]);
    assert_eq!(ids(&user, &["--agent", "copilot"]), [&*session.id]);
    // Of a name that nobody reports there is nothing, and that is said.
    let output = user.run(&["status", "--json", "--agent", "nobody"]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() && said.contains("no hook reports a session of nobody"), "{said}");
    assert_eq!(output.stdout, b"[]\n");
    // A watcher sees those that come later, too.
    let watch = Watch::start(user.pilotlight(&["watch", "--json", "--agent", "goose"]));
    report(&user, "aider", "a-2", "working", &[]);
    report(&user, "goose", "g-2", "working", &[]);
    let known = || watch.latest().keys().cloned().collect::<std::collections::BTreeSet<_>>();
    let has_both = || known().contains("g-1") && known().contains("g-2");
    wait_until(SOON, "both are shown", || format!("{:?}", known()), || has_both().then_some(()));
    assert_eq!(known().len(), 2, "{:?}", known());
}

#[test]
fn case_312_doctor_counts_what_hooks_report_and_says_where_it_lies() {
    let user = User::new();
    let probe_result = || {
        let output = user.run(&["doctor", "--json"]);
        let found: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
        let its: Vec<_> = found.into_iter().filter(|it| it["check"] == "reports").collect();
        let [only] = &its[..] else { panic!("{its:?}") };
        (only["level"].as_str().unwrap().to_owned(), only["said"].as_str().unwrap().to_owned())
    };
    let place = reports(&user).display().to_string();
    let none = format!("no hook reports a session; the first report creates {place}");
    assert_eq!(probe_result(), ("ok".into(), none));
    report(&user, "goose", "g-1", "working", &[]);
    report(&user, "goose", "g-2", "idle", &[]);
    report(&user, "goose", "g-3", "working", &[]);
    report(&user, "goose", "g-3", "ended", &[]);
    assert_eq!(probe_result(), ("ok".into(), format!("hooks report 2 sessions; their reports are in {place}")));
    fs::remove_dir_all(reports(&user)).unwrap();
    fs::write(reports(&user), "").unwrap();
    assert_eq!(
        probe_result(),
        ("problem".into(), format!("{place}, the folder for the reports of hooks, cannot be written"))
    );
}

/// Case 360: an agent that was used once is no home for ever.
#[test]
fn case_360_where_no_agent_has_a_home_status_exits_with_3_unless_a_hook_reports_a_session_now() {
    let user = User::new();
    fs::remove_dir_all(user.home()).unwrap();
    let status = || user.run(&["status", "--json"]).status.code();
    assert_eq!(status(), Some(3));
    report(&user, "goose", "g-1", "working", &[]);
    assert_eq!(status(), Some(0));
    report(&user, "goose", "g-1", "ended", &[]);
    assert_eq!(status(), Some(3));
}

#[test]
fn case_361_a_reported_session_does_not_take_the_place_of_one_whose_id_begins_with_its_own() {
    let (user, session, _owner, _watch) = User::working(1);
    let short = &session.id[..4];
    let explain = || user.run(&["explain", short]);
    let page = String::from_utf8(explain().stdout).unwrap();
    assert!(page.contains(&session.id), "{page}");
    report(&user, "goose", short, "working", &["--title", "Mine"]);
    let ran = explain();
    let said = String::from_utf8(ran.stderr).unwrap();
    assert!(ran.status.code() == Some(2) && said.contains("means 2 sessions"), "{said}");
    let page = String::from_utf8(user.run(&["explain", "Mine"]).stdout).unwrap();
    assert!(page.contains("by its hook"), "{page}");
}

#[test]
fn case_313_a_session_is_reported_and_shown_where_no_agent_has_a_home() {
    let user = User::new();
    fs::remove_dir_all(user.home()).unwrap();
    let watch = Watch::start(user.pilotlight(&["watch", "--json"]));
    report(&user, "goose", "g-1", "working", &[]);
    both(&user, &watch, "g-1", |row| row["status"] == "working");
    report(&user, "goose", "g-1", "ended", &[]);
    is_removed(&watch, "g-1");
    assert_eq!(user.run(&["status"]).status.code(), Some(3), "there is nothing to tell of any more");
}
