//! The desktop that is not there, goes away, comes back, or does not answer. Cases 104 and 105.

use crate::desk::bus::Bus;
use crate::desk::light::User;
use crate::desk::panel::Panel;
use crate::desk::sessions::Sessions;
use crate::support::tmux::Tmux;
use crate::support::{SOON, wait_until};
use rustix::process::Signal;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

/// Case 104.
#[test]
fn case_104_the_icon_returns_with_the_panel() {
    let (bus, sessions) = (Bus::start(), Sessions::new());
    let (user, panel) = (User::new(&sessions), Panel::start(&bus));
    let session = sessions.add("one");
    let light = user.light(&bus);
    panel.wait_for_icon();
    user.agrees(&panel, &session, "idle");
    panel.end();
    // A program that is slow to look for panels finds none.
    wait_until(
        SOON,
        "it says that there is no panel",
        || light.said(),
        || {
            let said = light.said();
            (said.contains("the panel went away") || said.contains("no panel with a tray is here")).then_some(())
        },
    );
    session.prompt();
    let panel = Panel::start(&bus);
    panel.wait_for_icon();
    user.agrees(&panel, &session, "working");
}

#[test]
fn the_icon_returns_with_the_bus() {
    let (mut bus, sessions) = (Bus::start(), Sessions::new());
    let (user, panel) = (User::new(&sessions), Panel::start(&bus));
    let session = sessions.add("one");
    let light = user.light(&bus);
    panel.wait_for_icon();
    user.agrees(&panel, &session, "idle");
    bus.end();
    light.says("the session bus went away");
    session.prompt();
    // What it has to do meanwhile it does, and then it rests: who tries without end would not.
    wait_until(
        SOON,
        "it uses less than 5 of 60 ticks without a bus",
        || light.said(),
        || {
            let before = light.ticks();
            #[expect(clippy::disallowed_methods, reason = "looks at what is used while nothing happens")]
            std::thread::sleep(Duration::from_millis(600));
            (light.ticks() - before < 5).then_some(())
        },
    );
    bus.begin();
    let panel = Panel::start(&bus);
    panel.wait_for_icon();
    user.agrees(&panel, &session, "working");
}

/// Case 105.
#[test]
fn case_105_without_a_bus_one_line_says_so_and_the_rest_goes_on() {
    let sessions = Sessions::new();
    let user = User::new(&sessions);
    let mut command = user.command(None, &[]);
    command.env("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nowhere/bus");
    let mut light = user.light_from(command);
    light.says("there is no session bus");
    let said = light.said();
    assert_eq!(said.lines().filter(|line| line.contains("bus")).count(), 1, "{said}");
    assert!(said.contains("`pilotlight live`, `status` and `watch` still work"), "{said}");
    let session = sessions.add("one");
    assert_eq!(user.row(&session).unwrap()["status"], "idle");
    assert!(light.runs(), "it waits for a bus");
    light.signal(Signal::TERM);
    let (status, took) = light.ended();
    assert!(status.success() && took < Duration::from_secs(1), "{status} after {took:?}");
}

#[test]
fn without_a_bus_the_table_takes_over_on_a_terminal() {
    let sessions = Sessions::new();
    let user = User::new(&sessions);
    let session = sessions.add("a session");
    let table = Tmux::start(&user.command(None, &[]), 150, 30);
    let shows = |what: &str| wait_until(SOON, what, || table.screen(), || table.screen().contains(what).then_some(()));
    shows("a session");
    shows("there is no session bus");
    session.prompt();
    shows("working");
}

#[test]
fn a_panel_that_comes_late_gets_the_icon_and_until_then_the_table_is_there() {
    let (bus, sessions) = (Bus::start(), Sessions::new());
    let user = User::new(&sessions);
    let session = sessions.add("a session");
    let table = Tmux::start(&user.command(Some(&bus), &[]), 150, 30);
    let shows = |what: &str| wait_until(SOON, what, || table.screen(), || table.screen().contains(what).then_some(()));
    shows("a session");
    shows("no panel with a tray is here");
    let panel = Panel::start(&bus);
    panel.wait_for_icon();
    shows("The icon is in your panel");
    user.agrees(&panel, &session, "idle");
}

/// A panel that comes at any moment of the start finds the icon, or is told of it: whoever first looks for one and then begins
/// to listen would miss the one that comes in between.
#[test]
fn a_panel_that_comes_at_any_moment_gets_the_icon() {
    let sessions = Sessions::new();
    let user = User::new(&sessions);
    for n in 0..12 {
        let bus = Bus::start();
        let light = user.light(&bus);
        #[expect(clippy::disallowed_methods, reason = "another moment each time is what is tried")]
        std::thread::sleep(Duration::from_millis(8 * n));
        let panel = Panel::start(&bus);
        panel.wait_for_icon();
        drop(light);
    }
}

#[test]
fn without_a_panel_there_is_no_icon_to_be_missed_by_one() {
    let (bus, sessions) = (Bus::start(), Sessions::new());
    let user = User::new(&sessions);
    let light = user.light(&bus);
    light.says("no panel with a tray is here");
    let panel = Panel::start(&bus);
    panel.wait_for_icon();
    // Who was about to put it up as the panel came does so once more when that is told: it is there under another name then.
    let says = || format!("{} in {:?}", panel.icon(), bus.names());
    let is_there = || Some(panel.icon()).filter(|icon| icon.starts_with(':') && bus.names().contains(icon));
    let icon = wait_until(SOON, "the icon is there, by the name of its connection", says, is_there);
    let names = bus.names();
    let named = names.iter().any(|name| name.starts_with("org.kde.StatusNotifierItem"));
    assert!(!named, "GNOME's extension loses icons with a name: {names:?}");
    panel.end();
    let names = || format!("{:?}", bus.names());
    wait_until(SOON, "the icon goes with the panel", names, || (!bus.names().contains(&icon)).then_some(()));
}

#[test]
fn a_bus_that_comes_late_gets_the_icon() {
    let (mut bus, sessions) = (Bus::address_only(), Sessions::new());
    let user = User::new(&sessions);
    let light = user.light(&bus);
    light.says("there is no session bus");
    bus.begin();
    let panel = Panel::start(&bus);
    panel.wait_for_icon();
}

#[test]
fn a_bus_that_refuses_is_told() {
    let (bus, sessions) = (Bus::address_only(), Sessions::new());
    let user = User::new(&sessions);
    let listener = UnixListener::bind(bus.socket()).unwrap();
    let refuses = std::thread::spawn(move || {
        for connection in listener.incoming().take(2) {
            let mut connection = connection.unwrap();
            let _ = connection.read(&mut [0; 64]);
            let _ = connection.write_all(b"REJECTED\r\n");
        }
    });
    let mut light = user.light(&bus);
    light.says("there is no session bus (");
    light.signal(Signal::TERM);
    assert!(light.ended().0.success());
    drop(refuses);
}

#[test]
fn a_bus_that_never_answers_holds_nothing_up() {
    let (bus, sessions) = (Bus::address_only(), Sessions::new());
    let user = User::new(&sessions);
    let _listener = UnixListener::bind(bus.socket()).unwrap();
    let mut light = user.light(&bus);
    light.says("it does not answer");
    light.signal(Signal::TERM);
    let (status, took) = light.ended();
    assert!(status.success() && took < Duration::from_secs(1), "{status} after {took:?}");
}

#[test]
fn a_panel_that_never_answers_holds_nothing_up() {
    let (bus, sessions) = (Bus::start(), Sessions::new());
    let user = User::new(&sessions);
    let _panel = Panel::deaf(&bus);
    let session = sessions.add("a session");
    let table = Tmux::start(&user.command(Some(&bus), &[]), 150, 30);
    let shows = |what: &str| wait_until(SOON, what, || table.screen(), || table.screen().contains(what).then_some(()));
    shows("the panel does not answer");
    shows("a session");
    session.prompt();
    shows("working");
    table.press(&["C-c"]);
    // A process that has ended may wait a while for its parent to take note.
    let stat = std::path::Path::new("/proc").join(table.pid.to_string()).join("stat");
    let runs = || std::fs::read_to_string(&stat).is_ok_and(|stat| !stat.contains(") Z "));
    wait_until(Duration::from_secs(1), "it ends", || table.screen(), || (!runs()).then_some(()));
}

#[test]
fn a_panel_that_comes_late_and_never_answers_is_told_and_another_one_gets_the_icon() {
    let (bus, sessions) = (Bus::start(), Sessions::new());
    let user = User::new(&sessions);
    let light = user.light(&bus);
    light.says("no panel with a tray is here");
    let deaf = Panel::deaf(&bus);
    light.says("the panel does not answer");
    deaf.end();
    light.says("the panel went away");
    let panel = Panel::start(&bus);
    panel.wait_for_icon();
}

/// A bus that goes just as it is listened to, which nothing tells the listener of: it is looked for again.
#[test]
fn a_bus_that_goes_as_soon_as_it_is_listened_to_is_missed() {
    let (bus, front, sessions) = (Bus::start(), Bus::address_only(), Sessions::new());
    let (user, _panel) = (User::new(&sessions), Panel::start(&bus));
    let listener = UnixListener::bind(front.socket()).unwrap();
    let (real, listened) = (bus.socket(), Arc::new(AtomicUsize::new(0)));
    let counted = Arc::clone(&listened);
    std::thread::spawn(move || {
        for client in listener.incoming() {
            let (client, server, counted) =
                (client.unwrap(), UnixStream::connect(&real).unwrap(), Arc::clone(&counted));
            std::thread::spawn(move || cut_where_it_listens(&client, &server, &counted));
        }
    });
    let light = user.light(&front);
    let again = || (listened.load(Ordering::SeqCst) > 1).then_some(());
    wait_until(SOON, "it listens once more", || light.said(), again);
}

/// ClickHandler on what both say, and cuts the first connection that asks for the owners of the panel's name behind the answer to that.
fn cut_where_it_listens(client: &UnixStream, server: &UnixStream, listened: &AtomicUsize) {
    const LISTENS: &[u8] = b"arg0='org.kde.StatusNotifierWatcher'";
    let ends = AtomicBool::new(false);
    let hand_on = |mut from: &UnixStream, mut to: &UnixStream, is_client: bool| {
        let mut bytes = [0; 65536];
        while let Ok(read @ 1..) = from.read(&mut bytes) {
            let asks = is_client && bytes[..read].windows(LISTENS.len()).any(|bytes| bytes == LISTENS);
            if asks && listened.fetch_add(1, Ordering::SeqCst) == 0 {
                ends.store(true, Ordering::SeqCst);
            }
            let cuts = !is_client && ends.load(Ordering::SeqCst);
            if to.write_all(&bytes[..read]).is_err() || cuts {
                break;
            }
        }
        let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
    };
    std::thread::scope(|scope| {
        scope.spawn(|| hand_on(client, server, true));
        hand_on(server, client, false);
    });
}

/// A desktop session that ends without a signal takes its display and its bus along.
#[test]
fn it_ends_with_the_desktop_session() {
    let (mut bus, sessions) = (Bus::start(), Sessions::new());
    let (user, panel) = (User::new(&sessions), Panel::start(&bus));
    let display = user.scratch.path().join("run").join("wayland-7");
    let listener = UnixListener::bind(&display).unwrap();
    let mut command = user.command(Some(&bus), &[]);
    command.env("WAYLAND_DISPLAY", "wayland-7");
    let mut light = user.light_from(command);
    panel.wait_for_icon();
    drop(listener);
    bus.end();
    let (status, took) = light.ended();
    assert!(status.success() && took < Duration::from_secs(1), "{status} after {took:?}\n{}", light.said());
}

/// A session that is over as soon as it began: its bus went before it was reached.
#[test]
fn it_ends_with_a_desktop_session_whose_bus_it_never_reached() {
    let sessions = Sessions::new();
    let user = User::new(&sessions);
    let listener = UnixListener::bind(user.scratch.path().join("run").join("wayland-7")).unwrap();
    let mut command = user.command(None, &[]);
    command.env("WAYLAND_DISPLAY", "wayland-7").env("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nowhere/bus");
    let mut light = user.light_from(command);
    light.says("there is no session bus");
    assert!(light.runs(), "the display is there: the bus may come");
    drop(listener);
    let (status, _) = light.ended();
    assert!(status.success(), "{status}\n{}", light.said());
}
