use super::*;

/// The session's process started at 100.
const SINCE: Time = Time(100);
/// The session was created at 30, and resumed since.
const FIRST: Time = Time(30);
/// Its control group.
const OWNERS: &str = "/user.slice/user-1.slice/user@1.service/app.slice/vte-spawn-1.scope";

/// A process as (id, start, name, leader), in a terminal, of our user.
fn kin((pid, at, name, leader): (u32, i64, &str, u32)) -> Kin {
    Kin { pid, at: Time(at), name: name.into(), leader, has_terminal: true, is_ours: true }
}

fn judged(line: &[Kin], group: Option<&str>) -> Result<(), &'static str> {
    let (owners_group, runs_script) = (Some(OWNERS), |pid| pid == 66);
    judge(&Found { line, since: SINCE, first: FIRST, group, owners_group, is_click: false, runs_script })
}

fn line<const N: usize>(of: [(u32, i64, &str, u32); N]) -> Vec<Kin> {
    of.map(kin).into()
}

#[test]
fn case_196_what_the_user_types_is_not_asked_about() {
    let same = Some(OWNERS);
    let shell_before = line([(9, 200, "pilotlight", 5), (5, 50, "bash", 5), (4, 20, "xterm", 4), (1, 0, "init", 1)]);
    assert_eq!(judged(&shell_before, same), Ok(()), "a shell that was open before");
    let new_pane =
        line([(9, 200, "pilotlight", 8), (8, 150, "bash", 8), (4, 20, "tmux: server", 4), (1, 0, "init", 1)]);
    assert_eq!(judged(&new_pane, same), Ok(()), "a new pane of an older tmux");
    let mut login = line([(9, 200, "pilotlight", 9), (8, 150, "sshd", 8), (7, 20, "sshd", 7), (1, 0, "init", 1)]);
    login.iter_mut().for_each(|kin| kin.has_terminal = false);
    login[2].is_ours = false;
    assert_eq!(judged(&login, None), Ok(()), "over ssh, without a terminal");
    let console = line([(9, 200, "pilotlight", 8), (8, 150, "bash", 8), (7, 150, "login", 7), (1, 0, "init", 1)]);
    assert_eq!(judged(&console, Some("/user.slice/user-1.slice/session-7.scope")), Ok(()), "another login session");
    let outside = line([(9, 200, "pilotlight", 0)]);
    assert_eq!(judged(&outside, None), Ok(()), "from outside of the container");
    let mut hotkeys = line([(9, 200, "pilotlight", 7), (7, 20, "sxhkd", 7), (1, 0, "init", 1)]);
    hotkeys.iter_mut().for_each(|kin| kin.has_terminal = false);
    assert_eq!(judged(&hotkeys, same), Ok(()), "a shortcut, by what is older than the session");
}

#[test]
fn case_196a_what_an_earlier_run_left_behind_is_unclear() {
    let same = Some(OWNERS);
    let mut detached = line([(9, 200, "pilotlight", 8), (8, 50, "sh", 8), (1, 0, "init", 1)]);
    detached.iter_mut().for_each(|kin| kin.has_terminal = false);
    assert!(judged(&detached, same).is_err(), "setsid -f sh -c 'sleep 9h; pilotlight approve'");
    detached[0].at = Time(60);
    assert!(judged(&detached, same).is_err(), "the same, by an older Pilotlight");
    let kept = line([(9, 200, "pilotlight", 5), (8, 50, "sh", 5), (1, 0, "init", 1)]);
    assert!(judged(&kept, same).is_err(), "nohup, in a terminal whose leader has ended");
    let script = line([(9, 200, "pilotlight", 66), (66, 50, "sh", 66), (7, 50, "script", 7), (1, 0, "init", 1)]);
    assert!(judged(&script, same).is_err(), "script -c '...; pilotlight approve'");
    // Those are not of a tool.
    let shell = line([(9, 200, "pilotlight", 5), (5, 50, "bash", 5), (4, 40, "xterm", 4), (1, 0, "init", 1)]);
    assert_eq!(judged(&shell, same), Ok(()), "a shell that was open before the session was resumed");
}

#[test]
fn case_196_what_a_tool_can_have_started_is_unclear() {
    let same = Some(OWNERS);
    let mut detached = line([(9, 200, "pilotlight", 9), (1, 0, "init", 1)]);
    detached[0].has_terminal = false;
    for group in [
        same,
        None,
        Some("/user@1.service/run-u3.scope"),
        Some("/user@1.service/session-1.scope"),
        Some("/user@1.service"),
    ] {
        assert!(judged(&detached, group).is_err(), "setsid -f: {group:?}");
    }
    let kept = line([(9, 200, "pilotlight", 5), (1, 0, "init", 1)]);
    assert!(judged(&kept, same).is_err(), "left behind in a terminal whose shell is none of its ancestors");
    let direct = line([(9, 200, "pilotlight", 9), (4, 20, "tmux: server", 4), (1, 0, "init", 1)]);
    assert!(judged(&direct, same).is_err(), "tmux new-window pilotlight");
    let script = line([(9, 200, "pilotlight", 66), (66, 200, "sh", 66), (4, 20, "tmux: server", 4), (1, 0, "init", 1)]);
    assert!(judged(&script, same).is_err(), "tmux new-window 'pilotlight; true'");
    let pseudo = line([(9, 200, "pilotlight", 8), (8, 200, "bash", 8), (7, 200, "script", 7), (1, 0, "init", 1)]);
    assert!(judged(&pseudo, same).is_err(), "setsid -f script -qc bash");
    let mut timer = line([(9, 200, "pilotlight", 9), (8, 200, "sh", 8), (4, 20, "cron", 4), (1, 0, "init", 1)]);
    timer[2].is_ours = false;
    assert!(judged(&timer, None).is_err(), "cron");
    let renamed = line([(9, 200, "pilotlight", 9), (8, 150, "systemd", 8), (1, 0, "init", 1)]);
    assert!(judged(&renamed, same).is_err(), "a tool that calls itself systemd");
    // `systemd-run --user --scope --unit=app-x bash` looks the same.
    let new_window =
        line([(9, 200, "pilotlight", 8), (8, 150, "bash", 8), (7, 150, "alacritty", 7), (3, 1, "systemd", 3)]);
    let unit = "/user.slice/user-1.slice/user@1.service/app.slice/app-gnome-Alacritty-7.scope";
    assert!(judged(&new_window, Some(unit)).is_err(), "a window that was opened since");
    let mut unit = line([(9, 200, "pilotlight", 9), (3, 1, "systemd", 3), (1, 0, "init", 1)]);
    unit[0].has_terminal = false;
    let group = Some("/user@1.service/app.slice/x.service");
    assert!(judged(&unit, group).is_err(), "systemd-run --user --unit=x pilotlight");
    assert!(judged(&[], None).is_err(), "gone");
}

/// It has its user's clicks; what a tool can have started is told by its unit.
#[test]
fn case_196_a_tray_that_the_desktop_starts_later_is_the_users() {
    let mut tray = line([(9, 200, "pilotlight", 9), (3, 1, "systemd", 3), (1, 0, "init", 1)]);
    tray[0].has_terminal = false;
    let of = |line: &[Kin], group| {
        judge(&Found {
            line,
            since: SINCE,
            first: FIRST,
            group,
            owners_group: Some(OWNERS),
            is_click: true,
            runs_script: |_| false,
        })
    };
    assert_eq!(of(&tray, Some("/user@1.service/app.slice/app-pilotlight@autostart.service")), Ok(()));
    for group in [OWNERS, "/user@1.service/run-r1.scope"] {
        assert!(of(&tray, Some(group)).is_err(), "{group}");
    }
    tray[0].at = Time(50);
    assert_eq!(of(&tray, Some(OWNERS)), Ok(()), "it was there before the session was resumed");
}
