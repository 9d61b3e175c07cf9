//! What reaches the tray as a hook of Claude Code: the real tray, and real hooks, which a shell starts under Claude Code's
//! name. A hook that is nothing to the tray ends by itself and says nothing: so the dialog in the terminal decides.

use super::trays::{Tray, folder};
use crate::support::executable::copy_program;
use crate::support::synthetic::User;
use crate::support::{SOON, wait_until};
use serde_json::{Value, json};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

const ID: &str = "36535f61-5c7b-4f09-a70b-2f8aed970001";
const PROGRAM: &str = env!("CARGO_BIN_EXE_pilotlight");

/// A user who has the bridge, and a session of theirs. Fields drop from the top.
struct Place {
    claude: Child,
    tray: Tray,
    user: User,
}

impl Drop for Place {
    fn drop(&mut self) {
        drop(self.claude.stdin.take());
        let _ = self.claude.kill();
        let _ = self.claude.wait();
    }
}

impl Place {
    /// A session of this release of Claude Code that waits for its user, and the tray.
    fn with(release: &str) -> Self {
        let user = User::new();
        let home = user.scratch.path().join(".claude");
        let bridge = user.scratch.path().join(".local/share/pilotlight/bridge-claude-code");
        for folder in [&home.join("projects/-srv"), &home.join("sessions"), &bridge] {
            fs::create_dir_all(folder).unwrap();
        }
        let settings = json!({"extraKnownMarketplaces": {"pilotlight": {"source": {"source": "directory", "path": bridge}}},
            "enabledPlugins": {"pilotlight@pilotlight": true}});
        fs::write(home.join("settings.json"), settings.to_string()).unwrap();
        let tray = Tray::start(&user);
        let listens = || folder(&user).join("hooks.sock").exists().then_some(());
        wait_until(SOON, "the tray listens for hooks", || tray.output(), listens);
        let program = user.scratch.path().join("claude");
        copy_program("/bin/sh", &program);
        // Each line that it reads is a program and a name: it starts the hook beside it, with that input.
        let script = "while read -r program name; do \"$program\" hook claude-code <\"$name.in\" >\"$name.out\" 2>&1 & \
                      echo $! >\"$name.pid\"; done";
        let mut claude = Command::new(program);
        claude.args(["-c", script]).env_clear().env("HOME", user.scratch.path()).env("CLAUDE_CONFIG_DIR", &home);
        let claude = claude.current_dir(user.scratch.path()).stdin(Stdio::piped()).spawn().unwrap();
        let now = jiff::Timestamp::now();
        let said = json!({"pid": claude.id(), "sessionId": ID, "cwd": "/srv", "version": release, "kind": "interactive",
            "entrypoint": "cli", "status": "waiting", "waitingFor": "permission prompt", "startedAt": now.as_millisecond(),
            "statusUpdatedAt": now.as_millisecond()});
        fs::write(home.join(format!("sessions/{}.json", claude.id())), said.to_string()).unwrap();
        let line = json!({"type": "user", "uuid": "u1", "sessionId": ID, "cwd": "/srv", "timestamp": format!("{now:.3}"),
            "message": {"role": "user", "content": "Paint it"}});
        fs::write(home.join(format!("projects/-srv/{ID}.jsonl")), format!("{line}\n")).unwrap();
        Self { claude, tray, user }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.user.scratch.path().join(name)
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    /// Has the session's process start this program as its hook, to hand this over.
    fn start(&mut self, name: &str, program: &Path, asked: &Value) {
        fs::write(self.path(&format!("{name}.in")), asked.to_string()).unwrap();
        writeln!(self.claude.stdin.as_mut().unwrap(), "{} {name}", program.display()).unwrap();
    }

    /// Whether a hook was started, and still runs: it is no zombie of a shell that does not look.
    fn runs(&self, name: &str) -> Option<bool> {
        let pid = self.read(&format!("{name}.pid"));
        let stat = fs::read_to_string(format!("/proc/{}/stat", pid.strip_suffix('\n')?)).unwrap_or_default();
        Some(stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X'])))
    }

    /// Waits until a hook has ended without a word.
    fn wait_silent(&self, name: &str) {
        let ended = || (!self.runs(name)?).then_some(());
        wait_until(SOON, &format!("{name} has ended"), || self.tray.output(), ended);
        assert_eq!(self.read(&format!("{name}.out")), "", "{name}");
    }

    /// What the session asks, by the tray.
    fn request(&self) -> Option<String> {
        let row = self.user.rows(&[]).into_iter().find(|row| row["id"] == ID)?;
        row["request"]["text"].as_str().map(str::to_owned)
    }
}

/// What Claude Code hands to a hook of this session.
fn asked(session: &str, command: &str) -> Value {
    json!({"session_id": session, "hook_event_name": "PermissionRequest", "tool_name": "Bash",
        "tool_input": {"command": command, "description": "paint"}})
}

#[test]
fn case_811_hooks_that_are_nothing_to_the_tray_end_in_silence_beside_the_one_that_asks() {
    let mut place = Place::with("2.1.332");
    place.start("own", Path::new(PROGRAM), &asked(ID, "touch made"));
    wait_until(SOON, "the tray has the request", || place.tray.output(), || place.request());

    // Another version of the program is another file.
    let other = place.path("pilotlight-other");
    copy_program(PROGRAM, &other);
    place.start("version", &other, &asked(ID, "touch version"));
    place.start("large", Path::new(PROGRAM), &asked(ID, &"x".repeat(10 << 20)));
    place.wait_silent("version");
    place.wait_silent("large");
    let all: Vec<_> = (0..200).map(|n| format!("flood{n}")).collect();
    for (n, name) in all.iter().enumerate() {
        place.start(name, Path::new(PROGRAM), &asked(&format!("{n:08x}-5c7b-4f09-a70b-2f8aed970001"), "touch flood"));
    }
    for name in &all {
        place.wait_silent(name);
    }
    assert_eq!((place.request().as_deref(), place.runs("own")), (Some("touch made"), Some(true)));
    place.start("next", Path::new(PROGRAM), &asked(ID, "touch next"));
    let next = || place.request().filter(|text| text == "touch next");
    wait_until(SOON, "the next request takes its place", || place.tray.output(), next);
    place.wait_silent("own");
}

#[test]
#[ignore = "tests/long.sh"]
fn case_817_a_session_of_a_release_that_was_not_tried_is_said_not_to_be_covered() {
    let mut place = Place::with("9.9.9");
    let status = || String::from_utf8(place.user.run(&["bridge", "status"]).stdout).unwrap();
    let says = || status().contains("not covered: the bridge was not tried with 9.9.9").then_some(());
    wait_until(SOON, "it is said", status, says);
    place.start("own", Path::new(PROGRAM), &asked(ID, "touch made"));
    place.wait_silent("own");
    assert_eq!(place.request(), None);
}
