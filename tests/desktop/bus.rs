//! A bus or a panel that is missing, goes away, returns, or does not answer. Cases 104 and 105.

use super::one_idle_session;
use crate::desk::bus::Bus;
use crate::desk::panel::Panel;
use crate::desk::sessions::Sessions;
use crate::desk::tray::User;
use crate::support::tmux::Tmux;
use crate::support::{SOON, wait_until};
use rustix::process::Signal;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tempfile::TempDir;

#[test]
fn case_104_the_icon_returns_with_the_panel() {
    let (bus, _sessions, user, panel, session, tray) = one_idle_session();
    panel.end();
    // If the tray is slow to look for panels, it finds none.
    wait_until(
        SOON,
        "it says that there is no panel",
        || tray.output(),
        || {
            let printed = tray.output();
            (printed.contains("the panel went away") || printed.contains("there is no panel with a system tray"))
                .then_some(())
        },
    );
    session.prompt();
    let panel = Panel::start(&bus);
    panel.wait_for_icon();
    user.wait_status(&panel, &session, "working");
}

#[test]
fn the_icon_returns_with_the_bus() {
    let (mut bus, _sessions, user, _panel, session, tray) = one_idle_session();
    bus.end();
    tray.wait_output("the session bus went away");
    session.prompt();
    // After its remaining work it must be idle, not retry without end.
    wait_until(
        SOON,
        "it uses less than 5 of 60 ticks without a bus",
        || tray.output(),
        || {
            let before = tray.ticks();
            #[expect(clippy::disallowed_methods, reason = "CPU use while nothing happens is measured")]
            std::thread::sleep(Duration::from_millis(600));
            (tray.ticks() - before < 5).then_some(())
        },
    );
    bus.begin();
    let panel = Panel::start(&bus);
    panel.wait_for_icon();
    user.wait_status(&panel, &session, "working");
}

#[test]
fn case_105_without_a_bus_one_line_says_so_and_the_rest_works() {
    let sessions = Sessions::new();
    let user = User::new(&sessions);
    let mut command = user.command(None, &[]);
    command.env("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nowhere/bus");
    let mut tray = user.start_tray_as(command);
    tray.wait_output("there is no session bus");
    let printed = tray.output();
    assert_eq!(printed.lines().filter(|line| line.contains("bus")).count(), 1, "{printed}");
    assert!(printed.contains("`pilotlight live`, `status` and `watch` still work"), "{printed}");
    let session = sessions.add("one");
    assert_eq!(user.row(&session).unwrap()["status"], "idle");
    assert!(tray.is_running(), "it waits for a bus");
    tray.signal(Signal::TERM);
    let (status, took) = tray.wait_exit();
    assert!(status.success() && took < Duration::from_secs(1), "{status} after {took:?}");
}

#[test]
fn case_237_without_a_bus_the_table_takes_over_on_a_terminal() {
    let sessions = Sessions::new();
    let user = User::new(&sessions);
    let session = sessions.add("a session");
    let table = Tmux::start(&user.command(None, &[]), 150, 30);
    let shows = |what: &str| wait_until(SOON, what, || table.screen(), || table.screen().contains(what).then_some(()));
    shows("a session");
    shows("there is no session bus");
    session.prompt();
    shows("working");
    // Case 237: the popup that it could not show is in the log, not on the table.
    session.tool("call", "bash", "ls");
    session.ask("request", "call");
    shows("needs-permission");
    let log = || std::fs::read_to_string(user.state().join("pilotlight.log")).unwrap_or_default();
    wait_until(SOON, "it is logged", log, || log().contains("notifications cannot be shown").then_some(()));
    session.permit("request");
    shows("running bash");
    assert!(!table.screen().contains("WARN"), "{}", table.screen());
}

/// GNOME's extension loses a reply now and then, and then waits for it for ever: its menu stays as it was.
#[test]
fn case_167_a_panel_that_no_longer_reads_the_menu_gets_a_new_registration() {
    let (_bus, sessions, _user, panel, _session, tray) = one_idle_session();
    let (before, icon) = (panel.registered(), panel.icon());
    let _new = sessions.add("new");
    wait_until(SOON, "it knows", || panel.tooltip(), || (panel.tooltip() == "2 idle").then_some(()));
    assert!(panel.about_to_show(), "there is a new menu");
    panel.close();
    wait_until(SOON, "it registers again", || tray.output(), || (panel.registered() > before).then_some(()));
    assert_ne!(panel.icon(), icon);
    panel.wait_for("the new one", |entry| entry.shown().contains("new — "));
}

/// The reply to a reading is lost: the extension never asks for the properties of the new entries.
#[test]
fn case_211_a_panel_that_lost_a_layout_gets_a_new_registration() {
    let (_bus, sessions, _user, panel, _session, tray) = one_idle_session();
    panel.read_types();
    panel.read_properties(&[]);
    panel.wait_idle();
    let before = panel.registered();
    let _new = sessions.add("new");
    wait_until(SOON, "it knows", || panel.tooltip(), || (panel.tooltip() == "2 idle").then_some(()));
    panel.read_types();
    wait_until(SOON, "it registers again", || tray.output(), || (panel.registered() > before).then_some(()));
    panel.wait_for("the new one", |entry| entry.shown().contains("new — "));
}

/// A panel that is still starting may refuse an icon.
#[test]
fn case_211_a_registration_that_failed_is_tried_again() {
    let (bus, sessions) = (Bus::start(), Sessions::new());
    let (user, panel) = (User::new(&sessions), Panel::start(&bus));
    let session = sessions.add("one");
    panel.refuse(3);
    let tray = user.start_tray(&bus);
    tray.wait_output("no icon, because the panel refuses it");
    panel.wait_for_icon();
    assert_eq!((panel.refused(), panel.registered()), (3, 1));
    user.wait_status(&panel, &session, "idle");
}

/// Plasma reads a menu when it is told so by the answer, and then ignores the next signal that says the same.
#[test]
fn case_215_a_panel_that_reads_levels_is_told_after_the_answer_that_the_menu_is_new() {
    let (_bus, sessions, _user, panel, _session, _tray) = one_idle_session();
    let add = |title: &str, tooltip: &str| {
        let session = sessions.add(title);
        wait_until(SOON, "it knows", || panel.tooltip(), || (panel.tooltip() == tooltip).then_some(()));
        session
    };
    let _two = add("two", "2 idle");
    assert!(panel.is_told_before_the_answer(), "others read when they are told");
    panel.close();
    panel.read_level();
    let _three = add("three", "3 idle");
    assert!(!panel.is_told_before_the_answer());
}

/// Passes on what a program and its bus say to each other.
struct Relay {
    folder: TempDir,
    /// Where the connections that registered an icon end.
    icons: Arc<Mutex<Vec<UnixStream>>>,
}

impl Relay {
    fn start(bus: &Bus) -> Self {
        let relay = Self { folder: tempfile::tempdir().unwrap(), icons: Arc::default() };
        let listener = UnixListener::bind(relay.folder.path().join("bus")).unwrap();
        let (bus, icons) = (bus.socket(), Arc::clone(&relay.icons));
        std::thread::spawn(move || {
            for near in listener.incoming().map_while(Result::ok) {
                let remote = UnixStream::connect(&bus).unwrap();
                let (from_bus, to_program) = (remote.try_clone().unwrap(), near.try_clone().unwrap());
                let icons = Arc::clone(&icons);
                std::thread::spawn(move || pass(from_bus, to_program, |_, _| {}));
                std::thread::spawn(move || {
                    pass(near, remote, |near, bytes| {
                        if memchr::memmem::find(bytes, b"RegisterStatusNotifierItem").is_some() {
                            icons.lock().unwrap().push(near.try_clone().unwrap());
                        }
                    });
                });
            }
        });
        relay
    }

    fn address(&self) -> String {
        format!("unix:path={}", self.folder.path().join("bus").display())
    }

    /// Closes the connection of the icon, and no other.
    fn close_icon(&self) {
        self.icons.lock().unwrap().last().unwrap().shutdown(Shutdown::Both).unwrap();
    }
}

/// Passes bytes on until either end is closed, and closes the other.
fn pass(mut from: UnixStream, mut to: UnixStream, seen: impl Fn(&UnixStream, &[u8])) {
    let mut bytes = vec![0; 65_536];
    while let Ok(read @ 1..) = from.read(&mut bytes) {
        seen(&from, &bytes[..read]);
        if to.write_all(&bytes[..read]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Both); // it may be closed
}

/// The bus closes the connection of whoever sends it something that it does not understand, and goes on.
#[test]
fn the_icon_returns_when_the_bus_closes_its_connection() {
    let (bus, sessions) = (Bus::start(), Sessions::new());
    let (user, panel, relay) = (User::new(&sessions), Panel::start(&bus), Relay::start(&bus));
    let session = sessions.add("one");
    let mut command = user.command(None, &[]);
    command.env("DBUS_SESSION_BUS_ADDRESS", relay.address());
    let tray = user.start_tray_as(command);
    panel.wait_for_icon();
    user.wait_status(&panel, &session, "idle");
    relay.close_icon();
    wait_until(SOON, "it registers again", || tray.output(), || (panel.registered() == 2).then_some(()));
    user.wait_status(&panel, &session, "idle");
}

#[test]
fn a_panel_that_starts_late_gets_the_icon_and_until_then_the_table_is_shown() {
    let (bus, sessions) = (Bus::start(), Sessions::new());
    let user = User::new(&sessions);
    let session = sessions.add("a session");
    let table = Tmux::start(&user.command(Some(&bus), &[]), 150, 30);
    let shows = |what: &str| wait_until(SOON, what, || table.screen(), || table.screen().contains(what).then_some(()));
    shows("a session");
    shows("there is no panel with a system tray");
    let panel = Panel::start(&bus);
    panel.wait_for_icon();
    shows("The icon is in your panel");
    user.wait_status(&panel, &session, "idle");
}

/// A tray that first looks for a panel and only then subscribes to signals would miss a panel that starts in between.
#[test]
fn a_panel_that_starts_at_any_moment_gets_the_icon() {
    let sessions = Sessions::new();
    let user = User::new(&sessions);
    for n in 0..12 {
        let bus = Bus::start();
        let tray = user.start_tray(&bus);
        #[expect(clippy::disallowed_methods, reason = "each round tries another moment")]
        std::thread::sleep(Duration::from_millis(8 * n));
        let panel = Panel::start(&bus);
        panel.wait_for_icon();
        drop(tray);
    }
}

#[test]
fn the_icon_exists_only_while_there_is_a_panel() {
    let (bus, sessions) = (Bus::start(), Sessions::new());
    let user = User::new(&sessions);
    let tray = user.start_tray(&bus);
    tray.wait_output("there is no panel with a system tray");
    let panel = Panel::start(&bus);
    panel.wait_for_icon();
    // A tray that was just registering when the panel started registers again at the signal, on a new connection.
    let says = || format!("{} in {:?}", panel.icon(), bus.names());
    let is_there = || Some(panel.icon()).filter(|icon| icon.starts_with(':') && bus.names().contains(icon));
    let icon = wait_until(SOON, "the icon is there, by the name of its connection", says, is_there);
    let names = bus.names();
    let named = names.iter().any(|name| name.starts_with("org.kde.StatusNotifierItem"));
    assert!(!named, "GNOME's extension loses icons with a name: {names:?}");
    panel.end();
    let names = || format!("{:?}", bus.names());
    wait_until(SOON, "the icon is removed with the panel", names, || (!bus.names().contains(&icon)).then_some(()));
}

#[test]
fn a_bus_that_starts_late_gets_the_icon() {
    let (mut bus, sessions) = (Bus::address_only(), Sessions::new());
    let user = User::new(&sessions);
    let tray = user.start_tray(&bus);
    tray.wait_output("there is no session bus");
    bus.begin();
    let panel = Panel::start(&bus);
    panel.wait_for_icon();
}

#[test]
fn a_bus_that_refuses_is_reported() {
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
    let mut tray = user.start_tray(&bus);
    tray.wait_output("there is no session bus: ");
    tray.signal(Signal::TERM);
    assert!(tray.wait_exit().0.success());
    drop(refuses);
}

#[test]
fn a_bus_that_never_answers_delays_nothing() {
    let (bus, sessions) = (Bus::address_only(), Sessions::new());
    let user = User::new(&sessions);
    let _listener = UnixListener::bind(bus.socket()).unwrap();
    let mut tray = user.start_tray(&bus);
    tray.wait_output("it does not answer");
    tray.signal(Signal::TERM);
    let (status, took) = tray.wait_exit();
    assert!(status.success() && took < Duration::from_secs(1), "{status} after {took:?}");
}

#[test]
fn a_panel_that_never_answers_delays_nothing() {
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
    // It may remain a zombie until its parent reaps it.
    let stat = std::path::Path::new("/proc").join(table.pid.to_string()).join("stat");
    let runs = || std::fs::read_to_string(&stat).is_ok_and(|stat| !stat.contains(") Z "));
    wait_until(Duration::from_secs(1), "it ends", || table.screen(), || (!runs()).then_some(()));
}

#[test]
fn a_late_panel_that_never_answers_is_reported_and_another_one_gets_the_icon() {
    let (bus, sessions) = (Bus::start(), Sessions::new());
    let user = User::new(&sessions);
    let tray = user.start_tray(&bus);
    tray.wait_output("there is no panel with a system tray");
    let deaf = Panel::deaf(&bus);
    tray.wait_output("the panel does not answer");
    deaf.end();
    tray.wait_output("the panel went away");
    let panel = Panel::start(&bus);
    panel.wait_for_icon();
}

/// The connection breaks right after the subscription, which no signal reports.
#[test]
fn a_bus_lost_right_after_subscribing_is_connected_to_again() {
    let (bus, front, sessions) = (Bus::start(), Bus::address_only(), Sessions::new());
    let (user, _panel) = (User::new(&sessions), Panel::start(&bus));
    let listener = UnixListener::bind(front.socket()).unwrap();
    let (real, subscriptions) = (bus.socket(), Arc::new(AtomicUsize::new(0)));
    let counter = Arc::clone(&subscriptions);
    std::thread::spawn(move || {
        for client in listener.incoming() {
            let (client, server, counter) =
                (client.unwrap(), UnixStream::connect(&real).unwrap(), Arc::clone(&counter));
            std::thread::spawn(move || cut_first_subscription(&client, &server, &counter));
        }
    });
    let tray = user.start_tray(&front);
    let again = || (subscriptions.load(Ordering::SeqCst) > 1).then_some(());
    wait_until(SOON, "it subscribes again", || tray.output(), again);
}

/// A proxy that cuts the first connection to subscribe to owners of the panel's name, after the bus has answered that.
fn cut_first_subscription(client: &UnixStream, server: &UnixStream, subscriptions: &AtomicUsize) {
    const SUBSCRIPTION: &[u8] = b"arg0='org.kde.StatusNotifierWatcher'";
    let cut = AtomicBool::new(false);
    let forward = |mut from: &UnixStream, mut to: &UnixStream, is_client: bool| {
        let mut bytes = [0; 65536];
        while let Ok(read @ 1..) = from.read(&mut bytes) {
            let subscribes = is_client && bytes[..read].windows(SUBSCRIPTION.len()).any(|bytes| bytes == SUBSCRIPTION);
            if subscribes && subscriptions.fetch_add(1, Ordering::SeqCst) == 0 {
                cut.store(true, Ordering::SeqCst);
            }
            let is_last = !is_client && cut.load(Ordering::SeqCst);
            if to.write_all(&bytes[..read]).is_err() || is_last {
                break;
            }
        }
        let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
    };
    std::thread::scope(|scope| {
        scope.spawn(|| forward(client, server, true));
        forward(server, client, false);
    });
}

/// A desktop session may end without a signal: only its display and its bus disappear.
#[test]
fn it_exits_with_the_desktop_session() {
    let (mut bus, sessions) = (Bus::start(), Sessions::new());
    let (user, panel) = (User::new(&sessions), Panel::start(&bus));
    let display = user.scratch.path().join("run").join("wayland-7");
    let listener = UnixListener::bind(&display).unwrap();
    let mut command = user.command(Some(&bus), &[]);
    command.env("WAYLAND_DISPLAY", "wayland-7");
    let mut tray = user.start_tray_as(command);
    panel.wait_for_icon();
    drop(listener);
    bus.end();
    let (status, took) = tray.wait_exit();
    assert!(status.success() && took < Duration::from_secs(1), "{status} after {took:?}\n{}", tray.output());
}

/// The bus of a very short desktop session may disappear before the tray connects.
#[test]
fn it_exits_with_a_desktop_session_whose_bus_it_never_reached() {
    let sessions = Sessions::new();
    let user = User::new(&sessions);
    let listener = UnixListener::bind(user.scratch.path().join("run").join("wayland-7")).unwrap();
    let mut command = user.command(None, &[]);
    command.env("WAYLAND_DISPLAY", "wayland-7").env("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nowhere/bus");
    let mut tray = user.start_tray_as(command);
    tray.wait_output("there is no session bus");
    assert!(tray.is_running(), "the display exists, so a bus may still start");
    drop(listener);
    let (status, _) = tray.wait_exit();
    assert!(status.success(), "{status}\n{}", tray.output());
}
