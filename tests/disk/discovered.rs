//! Homes that nobody named: those that agents' processes use.

use crate::support::running_time::running_time;
use crate::support::synthetic::{Owner, User, Watch};
use crate::support::{SOON, wait, wait_until};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// A user who discovers homes, with Codex on the search path, and a home that nobody names. Other tests' agents may be found, too:
/// each has an id of its own.
struct Stage {
    user: User,
    home: PathBuf,
    id: String,
}

impl Stage {
    fn new(number: u32) -> Self {
        let user = User::new();
        user.configure("");
        let home = user.scratch.path().canonicalize().unwrap().join("work/.codex-of-work");
        fs::create_dir(user.scratch.path().join("bin")).unwrap();
        // The file is there before it is watched.
        drop(Owner::start(&user.scratch.path().join("bin"), "codex"));
        let id = format!("01a20053-8e6c-7863-a4ca-{:08x}{number:04x}", std::process::id());
        write_thread(&home, &id);
        Self { user, home, id }
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = self.user.pilotlight(args);
        command.env("PATH", self.user.scratch.path().join("bin")).env_remove("PILOTLIGHT_DISCOVER");
        command
    }

    fn watch(&self) -> Watch {
        let session = self.user.session(1);
        session.prompt();
        let watch = Watch::start(self.command(&["watch", "--json"]));
        watch.wait_row(&session, "told", |_| true);
        watch
    }

    /// Starts a process of Codex with this home, and something that is nobody's business in its environment.
    fn codex(&self, home: &Path) -> Owner {
        let variables =
            [("CODEX_HOME", home), ("OPENAI_API_KEY", Path::new("sk-secret")), ("HOME", Path::new("/nobody"))];
        Owner::start_with(&self.user.scratch.path().join("bin"), "codex", &variables)
    }

    /// Starts a process of Codex with this home that is not to be followed.
    fn private_codex(&self, home: &Path) -> Owner {
        let variables = [("CODEX_HOME", home), ("PILOTLIGHT_DISCOVER", Path::new("false"))];
        Owner::start_with(&self.user.scratch.path().join("bin"), "codex", &variables)
    }

    fn ids(&self, args: &[&str]) -> Vec<String> {
        let output = self.run(&[&["status", "--json"], args].concat());
        let rows: Vec<Value> = serde_json::from_str(&output).unwrap_or_else(|error| panic!("{error}: {output}"));
        rows.iter().map(|row| row["id"].as_str().unwrap().to_owned()).collect()
    }

    fn shows(&self, args: &[&str]) -> bool {
        self.ids(args).contains(&self.id)
    }

    fn state(&self, name: &str) -> String {
        fs::read_to_string(self.user.scratch.path().join(".local/state/pilotlight").join(name)).unwrap_or_default()
    }

    fn run(&self, args: &[&str]) -> String {
        String::from_utf8(self.command(args).output().unwrap().stdout).unwrap()
    }

    fn doctor(&self) -> String {
        self.run(&["doctor"])
    }
}

/// Writes the log of a thread that was just prompted.
fn write_thread(home: &Path, id: &str) {
    let day = home.join("sessions/2026/11/21");
    fs::create_dir_all(&day).unwrap();
    let now = jiff::Timestamp::now();
    let meta = format!(
        r#"{{"timestamp":"{now:.3}","type":"session_meta","payload":{{"id":"{id}","session_id":"{id}","cwd":"/srv/work","originator":"codex-tui","cli_version":"0.171.0"}}}}"#
    );
    fs::write(day.join(format!("rollout-2026-11-21T22-56-45-{id}.jsonl")), meta + "\n").unwrap();
}

fn wait_for(watch: &Watch, id: &str, what: &str, is_so: impl Fn(Option<&Value>) -> bool) {
    let latest = || watch.latest();
    wait_until(SOON, what, || format!("{:?}", latest()), || is_so(latest().get(id)).then_some(()));
}

fn is_told(row: Option<&Value>) -> bool {
    row.is_some_and(|row| row["removed"] != true)
}

/// The demo's players are such agents.
#[test]
fn case_871_an_agent_may_keep_its_home_from_being_followed() {
    let stage = Stage::new(871);
    let _codex = stage.private_codex(&stage.home);
    assert!(!stage.shows(&[]));
    let _another = stage.codex(&stage.home);
    assert!(stage.shows(&[]), "another process names the same home");
}

/// Given: a `watch`, and an agent that starts with a home of its own. -> Its session is told within two seconds, and by commands,
/// also when the process is gone; `doctor` says why; and nothing else of its environment is kept.
#[test]
fn case_791_a_home_that_an_agents_process_names_is_followed_and_remembered() {
    let stage = Stage::new(791);
    let watch = stage.watch();
    assert!(!watch.latest().contains_key(&stage.id) && !stage.shows(&[]), "nobody names it");
    let started = running_time();
    let codex = stage.codex(&stage.home);
    wait_for(&watch, &stage.id, "its session is told", is_told);
    let took = running_time() - started;
    println!("followed within {took:.1?}");
    assert!(took < Duration::from_secs(10), "found by the start of the program, not by a rescan: after {took:?}");
    assert!(stage.shows(&[]) && stage.shows(&["--agent", "codex"]) && !stage.shows(&["--agent", "copilot"]));
    assert!(!stage.shows(&["--home", stage.user.home().to_str().unwrap()]), "these homes and no other");
    assert!(stage.run(&["explain", &stage.id]).contains("Codex"));
    assert!(!stage.user.rows(&[]).iter().any(|row| row["id"] == *stage.id), "unless its environment says no");

    let pid = codex.kill();
    wait_until(SOON, "it is kept", || stage.state("homes.json"), || stage.shows(&[]).then_some(()));
    drop(watch);
    assert!(stage.shows(&[]), "without a process of either");
    let doctor = stage.doctor();
    let why = format!(", by process {pid} of Codex)");
    let home = stage.home.display().to_string();
    let line = doctor.lines().find(|line| line.contains(&home)).unwrap_or_default();
    assert!(line.contains("1 session (discovered ") && line.contains(&why), "{doctor}");
    assert!(doctor.contains("(the default home)"), "{doctor}");
    let diagnostics = stage.run(&["diagnostics"]);
    assert!(diagnostics.contains("1 session, discovered") && !diagnostics.contains("codex-of-work"), "{diagnostics}");
    let kept: Value = serde_json::from_str(&stage.state("homes.json")).unwrap();
    let names: Vec<_> = kept["content"][0].as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!((names, &kept["version"]), (vec!["agent", "path", "since", "pid", "used"], &Value::from(1)));
    assert!(!stage.state("homes.json").contains("secret"));

    // It is gone, and another that is none.
    fs::remove_dir_all(stage.home.parent().unwrap()).unwrap();
    assert!(!stage.shows(&[]) && !stage.doctor().contains(home.as_str()));
}

/// Given: the home of a live process. -> A command that looks once finds it without a tray, and remembers nothing.
#[test]
fn case_792_a_command_finds_the_homes_of_live_processes_itself() {
    let stage = Stage::new(792);
    let codex = stage.codex(&stage.home);
    assert!(stage.shows(&[]));
    let doctor = stage.doctor();
    assert!(doctor.contains("(discovered "), "{doctor}");
    codex.kill();
    assert!(!stage.shows(&[]) && stage.state("homes.json").is_empty());
}

/// Given: `discover = false`, written while a `watch` runs. -> The home is left and forgotten; switched on again, it is followed
/// again as long as a process uses it.
#[test]
fn case_793_discovering_is_switched_off_and_on_while_it_runs() {
    let stage = Stage::new(793);
    let watch = stage.watch();
    let codex = stage.codex(&stage.home);
    wait_for(&watch, &stage.id, "it is followed", is_told);
    stage.user.configure("[homes]\ndiscover = false\n");
    wait_for(&watch, &stage.id, "it is left", |row| !is_told(row));
    wait_until(
        SOON,
        "it is forgotten",
        || stage.state("homes.json"),
        || (!stage.state("homes.json").contains("codex-of-work")).then_some(()),
    );
    assert!(!stage.shows(&[]));
    stage.user.configure("homes.discover = true\n");
    wait_for(&watch, &stage.id, "it is followed again", is_told);
    codex.kill();
    assert!(stage.shows(&[]));
    // A mistake shows no more than before.
    stage.user.configure("[homes]\ndiscover = false\n");
    wait_for(&watch, &stage.id, "it is left", |row| !is_told(row));
    stage.user.configure("[homes]\ndiscover = maybe\n");
    let codex = stage.codex(&stage.home);
    assert!(wait(Duration::from_secs(1), || is_told(watch.latest().get(&stage.id)).then_some(())).is_none());
    codex.kill();
}

/// Given: processes that name what is no home to follow: a relative path, a file, a folder of another user, one in a sandbox, an
/// agent that is switched off. -> None is followed.
#[test]
fn case_794_what_is_no_home_of_our_users_is_not_followed() {
    let stage = Stage::new(794);
    let bin = stage.user.scratch.path().join("bin");
    let is_so = |command: &mut Command, is_so: &dyn Fn() -> bool| {
        let mut process = command.stdin(std::process::Stdio::null()).spawn().unwrap();
        let exe = || fs::read_link(format!("/proc/{}/exe", process.id())).unwrap_or_default();
        wait_until(SOON, "it runs", String::new, || exe().ends_with("codex").then_some(()));
        let is_so = is_so();
        process.kill().and_then(|()| process.wait()).unwrap();
        is_so
    };
    let is_found = |command: &mut Command| is_so(command, &|| stage.shows(&[]));
    let codex = |home: &str| {
        let mut command = Command::new(bin.join("codex"));
        command.arg("600").env("CODEX_HOME", home).current_dir(stage.home.parent().unwrap());
        command
    };
    let home = stage.home.to_str().unwrap();
    assert!(is_found(&mut codex(home)));
    assert!(is_found(&mut codex(&format!("{home}/../.codex-of-work/"))), "the same by another path");
    let link = stage.user.scratch.path().join("link");
    std::os::unix::fs::symlink(&stage.home, &link).unwrap();
    assert!(is_found(&mut codex(link.to_str().unwrap())), "the same by a link");
    let times = stage.ids(&["--all"]).iter().filter(|id| **id == stage.id).count();
    assert!(times <= 1, "{times}");
    assert!(!is_found(&mut codex(".codex-of-work")), "a relative path");
    assert!(!is_found(&mut codex(&format!(
        "{home}/sessions/2026/11/21/rollout-2026-11-21T22-56-45-{}.jsonl",
        stage.id
    ))));
    let follows_processes = || stage.doctor().contains("home           /proc/");
    assert!(!is_so(&mut codex("/proc/self"), &follows_processes), "a folder of the process that reads its name");
    for confined in [&["setpriv", "--no-new-privs"][..], &["unshare", "-rm"]] {
        let inner = codex(home);
        let mut command = Command::new(confined[0]);
        command.args(&confined[1..]).arg(inner.get_program()).args(inner.get_args()).env("CODEX_HOME", home);
        assert!(!is_found(&mut command), "{confined:?}");
    }
    stage.user.configure("[agents]\ncodex = false\n");
    assert!(!is_found(&mut codex(home)), "switched off");
    stage.user.configure("[homes]\ndiscover = false\n");
    assert!(!is_found(&mut codex(home)), "switched off");
    stage.user.configure("");
    if rustix::process::geteuid().is_root() {
        std::os::unix::fs::chown(&stage.home, Some(65534), None).unwrap();
        assert!(!is_found(&mut codex(home)), "another user's");
    }
}

/// Given: as many homes that nobody named as are followed. -> `doctor` says that there will be no more, and names none to strangers.
#[test]
fn case_795_doctor_says_when_no_more_homes_are_discovered() {
    let stage = Stage::new(795);
    let folder = stage.user.scratch.path().canonicalize().unwrap();
    let homes = (0..16).map(|n| folder.join(format!("home\u{1b}[31m-{n}")));
    let record = |home: PathBuf| {
        fs::create_dir(&home).unwrap();
        serde_json::json!({"agent": "codex", "path": home, "since": "2026-11-29T10:00:00.000Z", "pid": 4242, "used": "2026-11-29T10:00:00.000Z"})
    };
    let content: Vec<_> = homes.map(record).collect();
    let state = stage.user.scratch.path().join(".local/state/pilotlight");
    fs::create_dir_all(&state).unwrap();
    let kept = serde_json::json!({"version": 1, "content": content});
    fs::write(state.join("homes.json"), kept.to_string()).unwrap();
    let doctor = stage.doctor();
    assert!(doctor.contains("Pilotlight follows 16 discovered homes"), "{doctor}");
    assert!(doctor.contains("by process 4242 of Codex") && !doctor.contains('\u{1b}'), "{doctor}");
    // A later version's file is left as it is.
    let later = serde_json::json!({"version": 2, "content": {"homes": []}}).to_string();
    fs::write(state.join("homes.json"), &later).unwrap();
    stage.user.configure("");
    let watch = stage.watch();
    let codex = stage.codex(&stage.home);
    wait_for(&watch, &stage.id, "it is followed", is_told);
    codex.kill();
    assert_eq!(stage.state("homes.json"), later);
}
