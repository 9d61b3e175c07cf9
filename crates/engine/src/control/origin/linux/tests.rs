use super::*;

/// The session's process started at 100.
const SINCE: Time = Time(100);
/// The session was created at 30, and resumed since.
const FIRST: Time = Time(30);
/// Its control group.
const OWNERS: &str = "/user.slice/user-1.slice/user@1.service/app.slice/vte-spawn-1.scope";
/// The id of our user's processes that are no shells, beside those below 5.
const NO_SHELL: u32 = 66;

/// Processes as (id, start, name, leader), nearest first, in the foreground of a terminal; of our user, but for those whose
/// names begin with `root:`.
fn line<const N: usize>(of: [(u32, i64, &str, u32); N]) -> Vec<ProcessInfo> {
    let parents: Vec<u32> = of.iter().skip(1).map(|process| process.0).chain([0]).collect();
    let process = |((pid, at, name, leader), parent): ((u32, i64, &str, u32), u32)| {
        let (name, is_ours) = name.strip_prefix("root:").map_or((name, true), |name| (name, false));
        ProcessInfo {
            pid,
            parent,
            at: Time(at),
            name: name.into(),
            leader,
            has_terminal: true,
            is_in_foreground: true,
            is_ours,
        }
    };
    of.into_iter().zip(parents).map(process).collect()
}

fn without_terminal<const N: usize>(of: [(u32, i64, &str, u32); N]) -> Vec<ProcessInfo> {
    let mut line = line(of);
    line.iter_mut().for_each(|process| (process.has_terminal, process.is_in_foreground) = (false, false));
    line
}

struct Case<'a> {
    line: &'a [ProcessInfo],
    group: Option<&'a str>,
    caller: Caller,
    ssh_to_itself: bool,
}

impl Case<'_> {
    fn judged(&self) -> Result<(), &'static str> {
        judge(&Found {
            line: self.line,
            since: SINCE,
            first: FIRST,
            group: self.group,
            owners_group: Some(OWNERS),
            caller: self.caller,
            is_typed_into: &|pid| (5..NO_SHELL).contains(&pid),
            has_ssh_to_itself: &|| self.ssh_to_itself,
        })
    }
}

const fn case(line: &[ProcessInfo]) -> Case<'_> {
    Case { line, group: Some(OWNERS), caller: Caller::Command, ssh_to_itself: false }
}

fn judged(line: &[ProcessInfo]) -> Result<(), &'static str> {
    case(line).judged()
}

#[test]
fn case_196_what_the_user_types_is_not_asked_about() {
    let shell_before =
        line([(9, 200, "pilotlight", 5), (5, 50, "bash", 5), (4, 20, "xterm", 4), (1, 0, "root:init", 1)]);
    assert_eq!(judged(&shell_before), Ok(()), "a shell that was open before");
    let by_script =
        line([(9, 200, "pilotlight", 5), (8, 200, "python3", 5), (5, 50, "bash", 5), (4, 20, "tmux: server", 4)]);
    assert_eq!(judged(&by_script), Ok(()), "a script that was typed there");
    let outside = line([(9, 200, "pilotlight", 0)]);
    assert_eq!(judged(&outside), Ok(()), "from outside of the container");
    let entered = line([(9, 200, "pilotlight", 8), (8, 150, "bash", 8)]);
    assert_eq!(judged(&entered), Ok(()), "the same, with a terminal");
    let older = without_terminal([(9, 20, "pilotlight", 9), (1, 0, "root:init", 1)]);
    assert_eq!(judged(&older), Ok(()), "older than the session: another machine's connection");
}

#[test]
fn case_565_a_login_is_the_users_and_what_is_made_within_the_machine_is_not() {
    let remote = [
        without_terminal([
            (9, 200, "pilotlight", 9),
            (8, 150, "sshd", 7),
            (7, 150, "root:sshd", 7),
            (2, 20, "root:sshd", 2),
            (1, 0, "root:init", 1),
        ]),
        without_terminal([
            (9, 200, "pilotlight", 8),
            (8, 200, "bash", 8),
            (7, 150, "sshd-session", 7),
            (6, 150, "root:sshd-session", 6),
            (1, 0, "root:init", 1),
        ]),
        line([(9, 200, "pilotlight", 8), (8, 200, "bash", 8), (7, 20, "root:dropbear", 7), (1, 0, "root:init", 1)]),
    ];
    for line in &remote {
        assert_eq!(judged(line), Ok(()), "{line:#?}");
        let why = Case { ssh_to_itself: true, ..case(line) }.judged().unwrap_err();
        assert!(why.contains("ssh connection to itself"), "{why}");
    }
    // `sudo -i`, before the session and since.
    for (started, is_users) in [(50, true), (150, false)] {
        let other = line([
            (9, 200, "pilotlight", 7),
            (8, started, "bash", 7),
            (7, started, "root:sudo", 7),
            (4, 20, "xterm", 4),
        ]);
        assert_eq!(judged(&other).is_ok(), is_users, "{started}");
    }
    let console =
        line([(9, 200, "pilotlight", 8), (8, 150, "bash", 8), (7, 150, "root:login", 7), (1, 0, "root:init", 1)]);
    assert_eq!(Case { ssh_to_itself: true, ..case(&console) }.judged(), Ok(()));
    let mut desktop = line([
        (9, 200, "pilotlight", 5),
        (8, 20, "openbox", 5),
        (7, 20, "xinit", 5),
        (5, 10, "bash", 5),
        (3, 5, "root:login", 3),
        (1, 0, "root:init", 1),
    ]);
    desktop[0].is_in_foreground = false;
    assert!(judged(&desktop).is_err(), "a desktop that was started from the console");
    let posing = line([(9, 200, "pilotlight", 8), (8, 150, "bash", 8), (7, 150, "sshd", 7), (1, 0, "root:init", 1)]);
    assert!(judged(&posing).is_err(), "a program of ours that is called sshd");
    let in_ours = line([
        (9, 200, "pilotlight", 8),
        (8, 150, "bash", 8),
        (7, 150, "root:sshd", 7),
        (6, 140, "sh", 6),
        (1, 0, "root:init", 1),
    ]);
    assert!(judged(&in_ours).is_err(), "below a program of ours");
    let display = without_terminal([
        (9, 200, "pilotlight", 7),
        (7, 20, "i3", 7),
        (6, 15, "root:lightdm", 6),
        (1, 0, "root:init", 1),
    ]);
    assert!(judged(&display).is_err(), "a desktop's login");
    let sudo = line([(9, 200, "pilotlight", 8), (8, 200, "sh", 8), (7, 200, "root:sudo", 7), (1, 0, "root:init", 1)]);
    assert!(judged(&sudo).is_err(), "another program that changes its user");
}

#[test]
fn case_196a_what_an_earlier_run_left_behind_is_unclear() {
    let mut detached = without_terminal([(9, 200, "pilotlight", 8), (8, 50, "sh", 8), (1, 0, "root:init", 1)]);
    assert!(judged(&detached).is_err(), "setsid -f sh -c 'sleep 9h; pilotlight approve'");
    detached[0].at = Time(60);
    assert!(judged(&detached).is_err(), "the same, by an older Pilotlight");
    let kept = line([(9, 200, "pilotlight", 5), (8, 50, "sh", 5), (1, 0, "root:init", 1)]);
    assert!(judged(&kept).is_err(), "nohup, in a terminal whose leader has ended");
    let script = line([
        (9, 200, "pilotlight", NO_SHELL),
        (NO_SHELL, 50, "sh", NO_SHELL),
        (7, 50, "script", 7),
        (1, 0, "root:init", 1),
    ]);
    assert!(judged(&script).is_err(), "script -c '...; pilotlight approve'");
    let shell = line([(9, 200, "pilotlight", 5), (5, 50, "bash", 5), (4, 40, "xterm", 4), (1, 0, "root:init", 1)]);
    assert_eq!(judged(&shell), Ok(()), "a shell that was open before the session was resumed");
}

/// Each of these is started, or opened, by something older than the session that does what any program asks of it.
#[test]
fn case_566_what_something_older_than_the_session_started_is_unclear() {
    let new_shell_of = |name: &'static str| {
        line([(9, 200, "pilotlight", 8), (8, 150, "bash", 8), (4, 20, name, 4), (1, 0, "root:init", 1)])
    };
    for name in ["tmux: server", "screen", "gnome-terminal-", "kitty", "emacs", "systemd", "mosh-server"] {
        assert!(judged(&new_shell_of(name)).is_err(), "a new window of an older {name}");
    }
    let bus = line([(9, 200, "pilotlight", 8), (8, 150, "bash", 8), (7, 150, "script", 7), (4, 20, "dbus-daemon", 4)]);
    assert!(judged(&bus).is_err(), "a service of the bus that makes a terminal");
    for name in ["i3", "sway", "sxhkd", "emacs", "systemd", "dbus-daemon"] {
        let direct = without_terminal([(9, 200, "pilotlight", 9), (4, 20, name, 4), (1, 0, "root:init", 1)]);
        assert!(judged(&direct).is_err(), "a command of an older {name}");
        let kept = without_terminal([(9, 200, "pilotlight", 4), (4, 20, name, 4), (1, 0, "root:init", 1)]);
        assert!(judged(&kept).is_err(), "the same, in its session of processes: {name}");
    }
    let direct = line([(9, 200, "pilotlight", 9), (4, 20, "tmux: server", 4), (1, 0, "root:init", 1)]);
    assert!(judged(&direct).is_err(), "tmux new-window pilotlight");
    let given = line([(9, 200, "pilotlight", NO_SHELL), (NO_SHELL, 200, "sh", NO_SHELL), (4, 20, "tmux: server", 4)]);
    assert!(judged(&given).is_err(), "tmux new-window 'pilotlight; true'");
    for timer in ["root:cron", "atd"] {
        let timer =
            without_terminal([(9, 200, "pilotlight", 9), (8, 200, "sh", 8), (4, 20, timer, 4), (1, 0, "root:init", 1)]);
        assert_eq!(Case { group: None, ..case(&timer) }.judged(), Err("was started by a timer"));
    }
    let mut background = line([(9, 200, "pilotlight", 5), (5, 50, "bash", 5), (4, 20, "xterm", 4)]);
    background[0].is_in_foreground = false;
    assert!(judged(&background).is_err(), "in the background of an older terminal");
    assert_eq!(Case { caller: Caller::Listener, ..case(&background) }.judged(), Ok(()), "where a tray may run");
}

#[test]
fn case_196_what_a_tool_can_have_started_is_unclear() {
    let detached = without_terminal([(9, 200, "pilotlight", 9), (1, 0, "root:init", 1)]);
    for group in [
        Some(OWNERS),
        None,
        Some("/user@1.service/run-u3.scope"),
        Some("/user@1.service/session-1.scope"),
        Some("/user@1.service"),
        Some("/user@1.service/app.slice/x.service"),
        Some("/user.slice/user-1.slice/session-7.scope"),
    ] {
        assert!(Case { group, ..case(&detached) }.judged().is_err(), "setsid -f: {group:?}");
    }
    let kept = line([(9, 200, "pilotlight", 5), (1, 0, "root:init", 1)]);
    assert!(judged(&kept).is_err(), "left behind in a terminal whose shell is none of its ancestors");
    let pseudo = line([(9, 200, "pilotlight", 8), (8, 200, "bash", 8), (7, 200, "script", 7), (1, 0, "root:init", 1)]);
    assert!(judged(&pseudo).is_err(), "setsid -f script -qc bash");
    let new_window =
        line([(9, 200, "pilotlight", 8), (8, 150, "bash", 8), (7, 150, "alacritty", 7), (3, 1, "systemd", 3)]);
    let unit = "/user.slice/user-1.slice/user@1.service/app.slice/app-gnome-Alacritty-7.scope";
    assert!(Case { group: Some(unit), ..case(&new_window) }.judged().is_err(), "a window that was opened since");
    assert!(judged(&[]).is_err(), "gone");
}

/// It has its user's clicks; what a tool can have started is told by its unit.
#[test]
fn case_196_a_tray_that_the_desktop_starts_later_is_the_users() {
    let mut tray = without_terminal([(9, 200, "pilotlight", 9), (3, 1, "systemd", 3), (1, 0, "root:init", 1)]);
    let of = |line: &[ProcessInfo], group| Case { group: Some(group), caller: Caller::Tray, ..case(line) }.judged();
    assert_eq!(of(&tray, "/user@1.service/app.slice/app-pilotlight@autostart.service"), Ok(()));
    for group in [OWNERS, "/user@1.service/run-r1.scope"] {
        assert!(of(&tray, group).is_err(), "{group}");
    }
    tray[0].at = Time(50);
    assert_eq!(of(&tray, OWNERS), Ok(()), "it was there before the session was resumed");
}
