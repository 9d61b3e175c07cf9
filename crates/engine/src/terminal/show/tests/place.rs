//! Tabs and panes of terminals that can be asked: with programs that answer as those of kitty, WezTerm and zellij do; with
//! the real kitty and Konsole, if `tests/visible/terminal.sh` provides a display.

use super::*;
use pilotlight_system::process::testing::copy;

/// A folder with a program of this name, which writes down what it is asked and prints this.
struct Fake {
    scratch: TempDir,
    _listener: UnixListener,
}

impl Fake {
    fn new(name: &str, answer: &str) -> Self {
        let scratch = tempfile::tempdir().unwrap();
        let _listener = UnixListener::bind(scratch.path().join("socket")).unwrap();
        let fake = Self { scratch, _listener };
        let asked = fake.path("asked");
        let script = format!(
            "#!/bin/sh\necho \"$WEZTERM_UNIX_SOCKET $*\" >>'{}'\ncat <<'END'\n{answer}\nEND\n",
            asked.display()
        );
        std::fs::create_dir(fake.path("bin")).unwrap();
        write_program(&fake.path("bin").join(name), &script);
        fake
    }

    fn path(&self, name: &str) -> PathBuf {
        self.scratch.path().join(name)
    }

    /// What was asked last.
    fn asked(&self) -> String {
        let asked = std::fs::read_to_string(self.path("asked")).unwrap_or_default();
        asked.lines().last().unwrap_or_default().trim().replace(self.scratch.path().to_str().unwrap(), "*")
    }

    fn show(&self, pid: u32, chain: &[u32], tty: Option<&Path>) -> String {
        let programs = self.path("bin");
        let desktop = Desktop { programs: Some(&programs), ..Desktop::none() };
        desktop.show(pid, chain, tty).unwrap_or_else(|why| why)
    }
}

fn kitty(pid: u32) -> String {
    format!(
        r#"[{{"id": 1, "platform_window_id": 41, "tabs": [{{"is_active_tab": false, "windows": [
            {{"id": 3, "is_active_window": true, "pid": 1}}, {{"id": 7, "is_active_window": true, "pid": {pid}}}]}}]}}]"#
    )
}

#[test]
fn case_342_a_window_of_kitty_is_found_by_its_process_and_selected() {
    let shell = std::process::id();
    let fake = Fake::new("kitty", &kitty(shell));
    let told = |to: &str| Running::with("KITTY_LISTEN_ON", to.replace('*', fake.scratch.path().to_str().unwrap()));
    let process = told("unix:*/socket");
    let pid = process.0.id();
    let shown = fake.show(pid, &[shell, 1], None);
    assert!(shown.starts_with("its window in kitty is selected, but its window could not be brought"), "{shown}");
    assert_eq!(fake.asked(), "@ --to unix:*/socket focus-window --match id:7");
    // What does not hold the process is asked, and left alone: its environment is inherited.
    let shown = fake.show(pid, &[], None);
    assert!(shown.contains("it runs in no tmux pane, and there is no display"), "{shown}");
    assert_eq!(fake.asked(), "@ --to unix:*/socket ls");
    // Not beyond this machine, and no file of somebody else's.
    std::fs::remove_file(fake.path("asked")).unwrap();
    for to in ["tcp:example.org:1", "unix:/dev/null", "unix:*/absent", "fd:3", "--help"] {
        let process = told(to);
        fake.show(process.0.id(), &[shell], None);
        assert_eq!(fake.asked(), "", "{to}");
    }
}

#[test]
fn case_342_a_kitty_that_answers_nonsense_or_not_at_all_is_said_and_its_window_raised() {
    for (answer, says) in [("no JSON", "kitty answers nothing that makes sense"), ("[]", "it runs in no tmux pane")] {
        let fake = Fake::new("kitty", answer);
        let process = Running::with("KITTY_LISTEN_ON", format!("unix:{}", fake.path("socket").display()));
        let shown = fake.show(process.0.id(), &[], None);
        assert!(shown.contains(says) && shown.contains("there is no display"), "{shown}");
    }
}

#[test]
fn case_343_a_pane_of_wezterm_is_found_by_its_terminal() {
    let panes =
        r#"[{"pane_id": 2, "tty_name": "/dev/pts/998"}, {"pane_id": 5, "tty_name": "/dev/pts/999"}, {"pane_id": 6}]"#;
    let fake = Fake::new("wezterm", panes);
    let process = Running::with("WEZTERM_UNIX_SOCKET", fake.path("socket"));
    let show = |tty: &str| fake.show(process.0.id(), &[], Some(Path::new(tty)));
    assert!(show("/dev/pts/999").starts_with("its pane in WezTerm is selected"));
    assert_eq!(fake.asked(), "*/socket cli --no-auto-start activate-pane --pane-id 5");
    assert!(!show("/dev/pts/997").contains("selected"));
    assert_eq!(fake.asked(), "*/socket cli --no-auto-start list --format json");
}

#[test]
fn case_344_a_pane_of_zellij_is_selected_for_a_descendant_of_its_server_alone() {
    let fake = Fake::new("zellij", "");
    let server = fake.path("zellij");
    copy("/bin/sh", &server);
    let script = "ZELLIJ_SESSION_NAME='a b' ZELLIJ_PANE_ID=4 sleep 60 & echo $! >\"$1\"; wait";
    let pid = fake.path("pid");
    let mut command = Command::new(&server);
    let command = command.args(["-c", script, "zellij"]).arg(&pid).arg("--server").process_group(0);
    let server = KilledOnDrop(command.spawn().unwrap());
    let mut found = None;
    wait_until("the program in zellij", || {
        found = std::fs::read_to_string(&pid).ok().and_then(|pid| pid.trim().parse().ok());
        found.is_some_and(|pid| variable(pid, "ZELLIJ_PANE_ID").is_some())
    });
    let shown = fake.show(found.unwrap(), &[server.0.id()], None);
    assert!(shown.starts_with("its pane in zellij is selected"), "{shown}");
    assert_eq!(fake.asked(), "--session=a b action focus-pane-id terminal_4");
    std::fs::remove_file(fake.path("asked")).unwrap();
    fake.show(found.unwrap(), &[1], None);
    assert_eq!(fake.asked(), "");
}

struct KilledOnDrop(Child);

impl Drop for KilledOnDrop {
    fn drop(&mut self) {
        let _ = rustix::process::kill_process_group(
            rustix::process::Pid::from_child(&self.0),
            rustix::process::Signal::KILL,
        );
        self.0.wait().unwrap();
    }
}

/// Waits for the pid that a program writes to a file.
fn pid_in(file: &Path) -> u32 {
    let mut found = None;
    wait_until("a program in a terminal", || {
        found = std::fs::read_to_string(file).ok().and_then(|pid| pid.trim().parse().ok());
        found.is_some()
    });
    found.unwrap()
}

/// With the real kitty: two tabs of one window, and another window.
#[test]
#[ignore = "wants a display: tests/visible/terminal.sh"]
fn case_342_a_real_kitty_shows_the_tab_of_a_process() {
    if std::env::var_os("PILOTLIGHT_TEST_DISPLAY").is_none() {
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    let path = |name: &str| scratch.path().join(name);
    let to = format!("unix:{}", path("socket").display());
    let lasting = |name: &str| format!("echo $$ >'{}'; exec sleep 60", path(name).display());
    let mut kitty = Command::new("kitty");
    kitty.args(["--listen-on", &to, "-o", "allow_remote_control=socket-only", "-o", "update_check_interval=0"]);
    kitty.args(["sh", "-c", &lasting("one")]).process_group(0).stderr(Stdio::null()).env_remove("TMUX");
    let _kitty = KilledOnDrop(kitty.spawn().unwrap());
    let mut pids = vec![pid_in(&path("one"))];
    for (kind, name) in [("tab", "two"), ("os-window", "three")] {
        let launch = ["@", "--to", &to, "launch", "--type", kind, "sh", "-c", &lasting(name)];
        assert!(Command::new("kitty").args(launch).stdout(Stdio::null()).status().unwrap().success());
        pids.push(pid_in(&path(name)));
    }
    shows_each(&pids);
}

/// With the real Konsole: two tabs of one window, and another window.
#[test]
#[ignore = "wants a display: tests/visible/terminal.sh"]
fn case_345_a_real_konsole_shows_the_tab_of_a_process() {
    if std::env::var_os("PILOTLIGHT_TEST_DISPLAY").is_none() {
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    let path = |name: &str| scratch.path().join(name);
    let tabs = ["one", "two"].map(|name| {
        let program = path(&format!("{name}.sh"));
        write_program(&program, &format!("#!/bin/sh\necho $$ >'{}'\nexec sleep 60\n", path(name).display()));
        format!("title: {name};; command: {}\n", program.display())
    });
    std::fs::write(path("tabs"), tabs.concat()).unwrap();
    let mut konsole = Command::new("konsole");
    konsole.arg("--separate").arg("--tabs-from-file").arg(path("tabs")).args(["-e", "sleep", "60"]);
    konsole.process_group(0).stderr(Stdio::null()).stdout(Stdio::null()).env_remove("TMUX");
    let _konsole = KilledOnDrop(konsole.spawn().unwrap());
    shows_each(&["one", "two"].map(|name| pid_in(&path(name))));
}

/// Shows each of these processes in turn: it has the focus then, and no other.
fn shows_each(pids: &[u32]) {
    let focused = || pids.iter().map(|pid| has_focus(*pid, &ancestors(*pid), None, None)).collect::<Vec<_>>();
    for shown in (0..pids.len()).chain((0..pids.len()).rev()) {
        let words = show(pids[shown], &ancestors(pids[shown]), None, None).unwrap();
        assert!(words.contains("is selected, and the window of k"), "{words}");
        let expected: Vec<_> = (0..pids.len()).map(|index| index == shown).collect();
        wait_until("the focus", || focused() == expected);
    }
}
