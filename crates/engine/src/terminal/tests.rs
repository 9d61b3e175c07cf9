//! Tests with fake terminals that record how they were started. `tests/visible/terminal.sh` tests real ones.

mod choosing;
mod display;
mod words;

use super::*;
use pilotlight_system::process::testing;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::time::Instant;
use tempfile::TempDir;

/// How long a test waits for something that should happen at once. Only a failure takes this long.
const TIMEOUT: Duration = Duration::from_secs(20);

/// Words that terminals, shells or the system may interpret. Each must arrive unchanged, and no file called `pwned` may
/// be created.
const HOSTILE: &[&str] = &[
    "-e",
    "--",
    "--working-directory=/",
    "$(touch pwned)",
    "`touch pwned`",
    "; touch pwned",
    "a b;c",
    "two\nlines",
    "'",
    "\"q'",
    "*",
    "$HOME",
    "~",
    "%f",
    "\\x\\",
    "",
    "{command}",
    "{folder}",
    "ä\u{202e}",
];

/// A folder of programs, a home, and a session folder with a hostile name.
struct Scene {
    scratch: TempDir,
}

impl Scene {
    fn new() -> Self {
        let scene = Self { scratch: tempfile::tempdir().unwrap() };
        for folder in [scene.bin(), scene.home(), scene.folder()] {
            fs::create_dir(folder).unwrap();
        }
        scene
    }

    fn bin(&self) -> PathBuf {
        self.scratch.path().join("bin")
    }

    fn home(&self) -> PathBuf {
        self.scratch.path().join("home")
    }

    fn folder(&self) -> PathBuf {
        self.scratch.path().join("-e $(touch pwned) a b;c\n'\"")
    }

    /// Adds a program to PATH: a shell script.
    fn program(&self, name: &str, script: &str) -> PathBuf {
        let path = self.bin().join(name);
        write_program(&path, &format!("#!/bin/sh\n{script}\n"));
        path
    }

    /// Adds a program that records its working folder and arguments, and then runs `then`.
    fn recorder(&self, name: &str, then: &str) -> PathBuf {
        let record = self.scratch.path().join("record");
        let record = record.display();
        self.program(name, &format!("printf '%s\\0' \"$PWD\" \"$@\" >{record}.new\nmv {record}.new {record}\n{then}"))
    }

    /// The recorded working folder and arguments.
    fn recorded(&self) -> (PathBuf, Vec<String>) {
        let record = self.scratch.path().join("record");
        wait_until("the record", || record.exists());
        let text = fs::read_to_string(record).unwrap();
        let mut words = text.strip_suffix('\0').unwrap().split('\0').map(str::to_owned);
        (words.next().unwrap().into(), words.collect())
    }

    /// Terminals with only these programs on PATH. The watch time is long enough for every fake to end.
    fn terminals(&self, setting: &[&str]) -> Terminals {
        let setting = setting.iter().map(|&word| word.to_owned()).collect();
        let (home, settings) = (Some(self.home()), Some(self.home().join(".config")));
        Terminals {
            setting,
            environment: Environment {
                path: Some(self.bin().into()),
                x11: true,
                home,
                settings,
                ..Environment::default()
            },
            watch_time: TIMEOUT,
        }
    }

    /// Asserts that no argument was executed.
    fn assert_unharmed(&self) {
        for folder in [self.scratch.path().to_owned(), self.bin(), self.home(), self.folder(), ".".into()] {
            assert!(!folder.join("pwned").exists(), "{}", folder.display());
        }
    }
}

pub(super) fn write_program(path: &Path, text: &str) {
    testing::write_program(path, text.as_bytes());
}

pub(super) fn wait_until(description: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + TIMEOUT;
    while !condition() {
        assert!(Instant::now() < deadline, "waited {TIMEOUT:?} for: {description}");
        std::thread::park_timeout(Duration::from_millis(2));
    }
}

fn os(words: &[&str]) -> Vec<OsString> {
    words.iter().map(OsString::from).collect()
}

#[test]
fn hostile_words_and_folders_arrive_as_they_are() {
    for (name, setting) in [("xterm", vec!["xterm"]), ("odd", vec!["odd", "{command}"]), ("kitty", vec![])] {
        let scene = Scene::new();
        scene.recorder(name, "sleep 3");
        let program = scene.program("copilot", "").display().to_string();
        let command: Vec<&str> = std::iter::once("copilot").chain(HOSTILE.iter().copied()).collect();
        let env = [(OsString::from("COPILOT_HOME"), OsString::from("$(touch pwned) b;c"))];
        let mut terminals = scene.terminals(&setting);
        terminals.environment.terminal = setting.is_empty().then(|| name.into());
        terminals.watch_time = WATCH_TIME;
        let opened = terminals.open(&os(&command), Some(&scene.folder()), &env).unwrap();
        assert_eq!(opened, Opened { terminal: name.into(), elsewhere: None });
        let folder = scene.folder();
        let first: &[&str] = match name {
            "xterm" => &["-e"],
            "kitty" => &[&format!("--directory={}", folder.display())],
            _ => &[],
        };
        let set = ["/usr/bin/env", "COPILOT_HOME=$(touch pwned) b;c", &program];
        let words: Vec<_> = first.iter().copied().chain(set).chain(HOSTILE.iter().copied()).collect();
        assert_eq!(scene.recorded(), (folder.clone(), words.iter().map(|&word| word.to_owned()).collect()));
        scene.assert_unharmed();
    }
}

/// Terminals that join their command into a line for a shell.
#[test]
fn a_terminal_is_not_used_for_a_word_that_is_unsafe_for_it() {
    let scene = Scene::new();
    scene.recorder("terminology", "");
    scene.recorder("konsole", "");
    scene.program("copilot", "");
    for word in HOSTILE {
        if quote::is_literal(OsStr::new(word)) {
            continue;
        }
        for setting in [&["terminology"][..], &["terminology", "-e", "{command}"], &["odd"]] {
            scene.recorder("odd", "");
            let refused = scene.terminals(setting).open(&os(&["copilot", word]), None, &[]).unwrap_err();
            assert!(refused.contains(" its command as one line of text, in which "), "{refused}");
        }
        let launch = scene.terminals(&[]).launch(&os(&["copilot", word]), &scene.home(), &[]);
        let is_safe_for_konsole = !word.contains('$');
        assert_eq!(launch.is_ok_and(|launch| launch.name == "konsole"), is_safe_for_konsole, "{word:?}");
    }
    assert!(!scene.scratch.path().join("record").exists());
    scene.assert_unharmed();
}

#[test]
fn an_opened_terminal_is_independent_of_us() {
    let scene = Scene::new();
    let about = scene.scratch.path().join("about");
    let files = "files=$(readlink /proc/$$/fd/0 /proc/$$/fd/1 /proc/$$/fd/2)";
    let lines = "cut -d' ' -f6 /proc/$$/stat; echo $$; echo \"$files\"";
    let about_us = format!("{files}\n{{ {lines}; }} >{0}.new\nmv {0}.new {0}", about.display());
    scene.program("xterm", &about_us);
    scene.program("copilot", "");
    scene.terminals(&["xterm"]).open(&os(&["copilot"]), None, &[]).unwrap();
    let about = fs::read_to_string(about).unwrap();
    let [session, pid, files @ ..] = &about.lines().collect::<Vec<_>>()[..] else { panic!("{about}") };
    assert_eq!(session, pid, "it leads a session of its own");
    assert_eq!(files, ["/dev/null"; 3]);
    let process = PathBuf::from(format!("/proc/{pid}"));
    wait_until("the end of the zombie", || !process.exists());
}

#[test]
fn errors_include_the_command_to_type() {
    let scene = Scene::new();
    let program = scene.program("copilot", "");
    let (command, type_it) = (os(&["copilot", "--resume=1"]), ". In a terminal, type: cd ");
    let open = |setting: &[&str]| scene.terminals(setting).open(&command, Some(&scene.home()), &[]).unwrap_err();
    let home = scene.home();
    let typed = format!("{type_it}{} && copilot --resume=1", home.display());
    assert_eq!(
        open(&["absent"]),
        format!("the terminal in the settings, absent (actions.terminal), was not found{typed}")
    );
    scene.program("xterm", "exit 3");
    assert_eq!(open(&["xterm"]), format!("xterm ended at once, with the exit code 3{typed}"));
    scene.program("xterm", "kill -9 $$");
    assert_eq!(open(&["xterm"]), format!("xterm ended at once, by signal 9{typed}"));
    write_program(&scene.bin().join("xterm"), "#!/absent\n");
    assert!(open(&["xterm"]).starts_with("xterm cannot be started in "));
    fs::remove_file(program).unwrap();
    let gone = open(&["xterm"]);
    assert!(gone.starts_with("there is no program copilot here (actions.copilot can name it)."), "{gone}");
}

/// A terminal that asks a running process for a window exits at once, with success.
#[test]
fn a_terminal_that_succeeds_or_keeps_running_has_opened() {
    let scene = Scene::new();
    scene.program("copilot", "");
    for then in ["exit 0", "exec sleep 8"] {
        scene.program("gnome-terminal", then);
        let begun = Instant::now();
        let terminals = Terminals { watch_time: WATCH_TIME, ..scene.terminals(&[]) };
        terminals.open(&os(&["copilot"]), Some(&scene.home()), &[]).unwrap();
        assert!(begun.elapsed() < Duration::from_secs(6), "its end is not waited for");
    }
}

#[test]
fn without_a_display_the_command_is_named() {
    let scene = Scene::new();
    scene.recorder("xterm", "");
    scene.recorder("mine", "");
    scene.program("copilot", "");
    let open = |setting: &[&str]| {
        let mut terminals = scene.terminals(setting);
        terminals.environment.x11 = false;
        terminals.open(&os(&["copilot", "--resume=1"]), None, &[])
    };
    assert_eq!(
        open(&[]).unwrap_err(),
        "no terminal can be opened, because there is no display (neither DISPLAY nor WAYLAND_DISPLAY is set). In a terminal, \
         type: copilot --resume=1"
    );
    assert!(open(&["xterm"]).unwrap_err().contains("no display (DISPLAY is not set)"));
    open(&["mine"]).unwrap(); // such as tmux, which needs none
    assert_eq!(scene.recorded().1[0], "-e");
}

#[test]
fn a_missing_folder_is_replaced_by_the_home() {
    let scene = Scene::new();
    scene.program("copilot", "");
    let file = scene.bin().join("copilot");
    let absent = scene.home().join("absent\n\u{202e}");
    for folder in [Some(Path::new("bin")), Some(Path::new("")), Some(Path::new("-e")), Some(&file), Some(&absent), None]
    {
        scene.recorder("xterm", "");
        let opened = scene.terminals(&["xterm"]).open(&os(&["copilot"]), folder, &[]).unwrap();
        assert_eq!(scene.recorded().0, scene.home());
        fs::remove_file(scene.scratch.path().join("record")).unwrap();
        let message = opened.to_string();
        assert!(message.starts_with("opened in xterm, in your home, because ") && !message.contains('\n'), "{message}");
    }
}

#[test]
fn a_new_terminal_does_not_inherit_tmux() {
    let scene = Scene::new();
    scene.program("copilot", "");
    let script = format!("printf %s \"$TMUX\" >{0}/inside\n: >{0}/done", scene.scratch.path().display());
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["terminal::tests::opens_the_named_terminal", "--exact", "--ignored"]);
    for (name, expected) in [("xterm", ""), ("mine", "/tmp/s,1,2")] {
        let terminal = scene.program(name, &script);
        command.env("TMUX", "/tmp/s,1,2").env("DISPLAY", ":0").env("OPEN", terminal);
        assert!(command.output().unwrap().status.success());
        let (inside, done) = (scene.scratch.path().join("inside"), scene.scratch.path().join("done"));
        wait_until("the terminal's environment", || done.exists());
        assert_eq!(fs::read_to_string(inside).unwrap(), expected);
        fs::remove_file(done).unwrap();
    }
}

/// Part of the test above, in a process with an environment of its own.
#[test]
#[ignore = "started by another test"]
fn opens_the_named_terminal() {
    if let Ok(terminal) = std::env::var("OPEN") {
        Terminals::new(Some(vec![terminal])).open(&os(&["/bin/true"]), None, &[]).unwrap();
    }
}
