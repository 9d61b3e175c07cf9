//! What reaches the tray as a hook of Claude Code: the real tray, and real hooks, which a program starts under Claude
//! Code's name. A hook that is nothing to the tray ends by itself and says nothing: so the dialog in the terminal decides.

use super::trays::{Tray, folder};
use crate::support::executable::copy_program;
use crate::support::synthetic::User;
use crate::support::tmux::Tmux;
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
    claude: Claude,
    tray: Tray,
    user: User,
}

/// A process of Claude Code's name, with a session.
struct Claude {
    process: Child,
    id: String,
    home: PathBuf,
    release: String,
}

impl Drop for Claude {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Claude {
    fn start(user: &User, id: &str, release: &str) -> Self {
        let home = user.scratch.path().join(".claude");
        let program = user.scratch.path().join("claude");
        if !program.exists() {
            copy_program("/usr/bin/perl", &program);
        }
        // Each line that it reads is a way, a program and a name: it starts the hook beside it, with that input, either over
        // sockets of its own, as Claude Code does, or with files, as a tool in the place of its own shell.
        let script = r#"
            use Socket; $| = 1; $SIG{CHLD} = "IGNORE";
            while (my $line = <STDIN>) {
                my ($way, $program, $name) = split " ", $line;
                my ($in, $to, $from, $out);
                if ($way eq "hook") {
                    socketpair $in, $to, AF_UNIX, SOCK_STREAM, 0 or die; socketpair $from, $out, AF_UNIX, SOCK_STREAM, 0 or die;
                } else { open $in, "<", "$name.in" or die; open $out, ">", "$name.out" or die }
                my $pid = fork;
                if (!$pid) {
                    open STDIN, "<&", $in; open STDOUT, ">&", $out; open STDERR, ">&", $out;
                    close $to if $to; close $from if $from;
                    exec $program, "hook", "claude-code" or die;
                }
                close $in; close $out;
                if ($way eq "hook" && !fork) {
                    open my $asked, "<", "$name.in" or die; local $/; print {$to} <$asked>; close $to;
                    open my $said, ">", "$name.out" or die; print {$said} <$from>; exit;
                }
                open my $number, ">", "$name.pid" or die; print {$number} "$pid\n";
            }"#;
        let mut process = Command::new(program);
        process.args(["-e", script]).env_clear().env("HOME", user.scratch.path()).env("CLAUDE_CONFIG_DIR", &home);
        let process = process.current_dir(user.scratch.path()).stdin(Stdio::piped()).spawn().unwrap();
        let claude = Self { process, id: id.to_owned(), home, release: release.to_owned() };
        claude.waits();
        let now = jiff::Timestamp::now();
        let line = json!({"type": "user", "uuid": "u1", "sessionId": id, "cwd": "/srv", "timestamp": format!("{now:.3}"),
            "message": {"role": "user", "content": "Paint it"}});
        fs::write(claude.home.join(format!("projects/-srv/{id}.jsonl")), format!("{line}\n")).unwrap();
        claude
    }

    /// It waits for its user, since now.
    fn waits(&self) {
        let now = jiff::Timestamp::now().as_millisecond();
        let said = json!({"pid": self.process.id(), "sessionId": self.id, "cwd": "/srv", "version": self.release,
            "kind": "interactive", "entrypoint": "cli", "status": "waiting", "waitingFor": "permission prompt",
            "startedAt": now, "statusUpdatedAt": now});
        fs::write(self.home.join(format!("sessions/{}.json", self.process.id())), said.to_string()).unwrap();
    }

    /// Has it start this program as its hook, with this input. `way`: `hook`, or `tool`.
    fn starts(&mut self, way: &str, program: &Path, name: &str) {
        writeln!(self.process.stdin.as_mut().unwrap(), "{way} {} {name}", program.display()).unwrap();
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
        let claude = Claude::start(&user, ID, release);
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
        self.claude.starts("hook", program, name);
    }

    /// Whether a hook was started, and still runs: it is no zombie of a shell that does not look.
    fn runs(&self, name: &str) -> Option<bool> {
        let pid = self.read(&format!("{name}.pid"));
        let stat = fs::read_to_string(format!("/proc/{}/stat", pid.strip_suffix('\n')?)).unwrap_or_default();
        Some(stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X'])))
    }

    /// Ends a hook, as its program does.
    fn end(&self, name: &str) {
        let pid = rustix::process::Pid::from_raw(self.read(&format!("{name}.pid")).trim().parse().unwrap());
        rustix::process::kill_process(pid.unwrap(), rustix::process::Signal::TERM).unwrap();
    }

    /// Waits until a hook has ended without a word.
    fn wait_silent(&self, name: &str) {
        let ended = || (!self.runs(name)?).then_some(());
        wait_until(SOON, &format!("{name} has ended"), || self.tray.output(), ended);
        assert_eq!(self.read(&format!("{name}.out")), "", "{name}");
    }

    /// Starts a hook, and waits until the tray has its request.
    fn ask(&mut self, name: &str, command: &str) {
        self.claude.waits();
        self.start(name, Path::new(PROGRAM), &asked(ID, command));
        let asks = || self.request().filter(|text| text == command);
        wait_until(SOON, "the tray has the request", || self.tray.output(), asks);
    }

    fn explained(&self, id: &str) -> String {
        String::from_utf8(self.user.run(&["explain", id]).stdout).unwrap()
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
    place.ask("own", "touch made");

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
    place.ask("next", "touch next");
    place.wait_silent("own");
}

/// Claude Code is its parent, too, in the place of the tool's own shell.
#[test]
fn case_861_a_tool_that_is_the_hook_shows_nothing() {
    let mut place = Place::with("2.1.332");
    fs::write(place.path("forged.in"), asked(ID, "rm -r .").to_string()).unwrap();
    place.claude.starts("tool", Path::new(PROGRAM), "forged");
    place.wait_silent("forged");
    assert_eq!(place.request(), None);
    place.ask("own", "touch made");
    place.claude.starts("tool", Path::new(PROGRAM), "forged");
    place.wait_silent("forged");
    assert_eq!((place.request().as_deref(), place.runs("own")), (Some("touch made"), Some(true)));
}

/// By what else Claude Code runs, as another hook or a server of tools.
#[test]
fn case_861_a_forged_request_takes_no_place_and_what_is_in_doubt_is_left_to_the_terminal() {
    let mut place = Place::with("2.1.332");
    place.ask("own", "touch made");
    // No longer at the same time.
    let began = std::time::Instant::now();
    wait_until(SOON, "a while", String::new, || (began.elapsed() > std::time::Duration::from_secs(1)).then_some(()));
    place.start("forged", Path::new(PROGRAM), &asked(ID, "rm -r ."));
    place.wait_silent("forged");
    assert_eq!((place.request().as_deref(), place.runs("own")), (Some("touch made"), Some(true)));
    place.ask("next", "touch next");
    place.wait_silent("own");

    place.claude.waits();
    place.start("one", Path::new(PROGRAM), &asked(ID, "touch one"));
    place.start("two", Path::new(PROGRAM), &asked(ID, "touch two"));
    for name in ["next", "one", "two"] {
        place.wait_silent(name);
    }
    assert_eq!(place.request(), None);
    let page = place.explained(ID);
    assert!(page.contains("two hooks ask in its name at once: answer in its terminal"), "{page}");
    place.ask("last", "touch last");
}

#[test]
fn case_862_what_waits_takes_a_bounded_memory_and_what_has_no_room_is_said() {
    let mut place = Place::with("2.1.332");
    let ids: Vec<_> = (1..=12).map(|n| format!("36535f61-5c7b-4f09-a70b-2f8aed97{n:04x}")).collect();
    let mut sessions: Vec<_> = ids[1..].iter().map(|id| Claude::start(&place.user, id, "2.1.332")).collect();
    for (at, id) in ids.iter().enumerate() {
        let asks = json!({"session_id": id, "hook_event_name": "PermissionRequest", "tool_name": "Write",
            "tool_input": {"file_path": "/srv/a", "content": "x".repeat(900_000)}});
        fs::write(place.path(&format!("large{at}.in")), asks.to_string()).unwrap();
        match at.checked_sub(1) {
            None => place.claude.starts("hook", Path::new(PROGRAM), "large0"),
            Some(other) => sessions[other].starts("hook", Path::new(PROGRAM), &format!("large{at}")),
        }
    }
    let open = || (0..ids.len()).filter(|at| place.runs(&format!("large{at}")) == Some(true)).count();
    let shown = || place.user.rows(&[]).iter().filter(|row| row["request"].is_object()).count();
    let told = || format!("{} open, {} shown: {}", open(), shown(), place.tray.output());
    wait_until(SOON, "the memory is full", told, || ((open(), shown()) == (9, 9)).then_some(()));
    let left = (0..ids.len()).find(|at| place.runs(&format!("large{at}")) == Some(false)).unwrap();
    let page = || place.explained(&ids[left]);
    let says = || page().contains("too much else waits for you: answer in its terminal").then_some(());
    wait_until(SOON, "it is said", page, says);
}

/// The socket is made again, and what waits stays.
#[test]
fn case_864_a_socket_that_is_removed_is_made_again() {
    let mut place = Place::with("2.1.332");
    place.ask("own", "touch made");
    for name in ["hooks.sock", "pilotlight.sock"] {
        let socket = folder(&place.user).join(name);
        fs::remove_file(&socket).unwrap();
        let listens = || std::os::unix::net::UnixStream::connect(&socket).is_ok().then_some(());
        wait_until(SOON, &format!("{name} is made again"), || place.tray.output(), listens);
    }
    assert_eq!((place.request().as_deref(), place.runs("own")), (Some("touch made"), Some(true)));
    // It was answered in the terminal.
    place.end("own");
    place.wait_silent("own");
    place.ask("next", "touch next");
}

#[test]
#[ignore = "tests/long.sh"]
fn case_817_a_session_of_a_release_that_was_not_tried_is_said_not_to_be_covered() {
    let mut place = Place::with("9.9.9");
    let status = || String::from_utf8(place.user.run(&["bridge", "status"]).stdout).unwrap();
    let says = || status().contains("not covered: the bridge is untested with 9.9.9").then_some(());
    wait_until(SOON, "it is said", status, says);
    place.start("own", Path::new(PROGRAM), &asked(ID, "touch made"));
    place.wait_silent("own");
    assert_eq!(place.request(), None);
}

/// The tray stands still, so that it makes none again.
#[test]
#[cfg(target_os = "linux")]
fn case_864_doctor_says_that_a_socket_of_the_tray_is_gone() {
    let place = Place::with("2.1.332");
    let doctor = || String::from_utf8(place.user.run(&["doctor"]).stdout).unwrap();
    assert!(!doctor().contains(".sock is gone"));
    place.tray.freeze();
    for name in ["hooks.sock", "pilotlight.sock"] {
        fs::remove_file(folder(&place.user).join(name)).unwrap();
    }
    let said = doctor();
    for words in ["Claude Code cannot reach the running tray: ", "runs, but commands cannot reach it: "] {
        assert!(said.contains(words), "{said}");
    }
}

/// No redraw reads what is installed from disk.
#[test]
fn case_866_the_live_table_looks_for_bridges_at_its_start_and_at_keys() {
    let place = Place::with("2.1.332");
    let bridge = place.path(".local/share/pilotlight/bridge-claude-code");
    fs::rename(&bridge, place.path("away")).unwrap();
    let mut live = place.user.pilotlight(&["live"]);
    live.env("TERM", "xterm-256color");
    let table = Tmux::start(&live, 100, 40);
    table.shows("needs-permission");
    table.shows("Enter explain");
    fs::rename(place.path("away"), &bridge).unwrap();
    // Its row makes the table be drawn anew.
    let _other = Claude::start(&place.user, "36535f61-5c7b-4f09-a70b-2f8aed970002", "2.1.332");
    table.shows("2 need");
    assert!(!table.screen().contains("a approve"), "{}", table.screen());
    table.press(&["Down"]);
    table.shows("a approve");
}
