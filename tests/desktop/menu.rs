//! The menu's contents: the same as `status --json` at every step, and plain text whatever a session writes.

use crate::desk::bus::Bus;
use crate::desk::panel::{Entry, Panel};
use crate::desk::popups::Popups;
use crate::desk::sessions::Sessions;
use crate::desk::tray::User;
use crate::support::executable::executable;
use crate::support::{SOON, tmux, wait_until};
use unicode_width::UnicodeWidthStr;

#[test]
fn the_menu_agrees_with_status_at_every_step_of_a_session() {
    let (bus, sessions) = (Bus::start(), Sessions::new());
    let (user, panel) = (User::new(&sessions), Panel::start(&bus));
    let _tray = user.start_tray(&bus);
    panel.wait_for_icon();
    panel.wait_for("an empty menu", |entry| entry.label == "No session is open");
    let idle = panel.pixels();
    let session = sessions.add("Fix the parser");
    user.wait_status(&panel, &session, "idle");
    session.prompt();
    user.wait_status(&panel, &session, "working");
    assert_ne!(panel.pixels(), idle, "the icon changes too");
    // Panels that load the icon by its name show the same picture.
    assert_eq!(panel.picture(), Some(panel.pixels()));
    assert_eq!(panel.tooltip(), "1 working");
    session.tool("a", "bash", "cargo test");
    let row = user.wait_status(&panel, &session, "working");
    assert_eq!(row.get("Now:").shown(), "Now: bash: cargo test");
    session.ask("r", "a");
    let row = user.wait_status(&panel, &session, "needs-permission");
    assert!(row.shown().starts_with('⚑') && row.enabled, "{row:#?}");
    assert_eq!(panel.tooltip(), "1 needs you · work wants to run x");
    session.permit("r");
    session.tool_done("a");
    user.wait_status(&panel, &session, "working");
    session.answer("Shall I go on?");
    user.wait_status(&panel, &session, "needs-input");
    session.prompt();
    session.answer("Done.");
    user.wait_status(&panel, &session, "idle");
    session.prompt();
    session.fail("it is broken");
    user.wait_status(&panel, &session, "failed");
    session.prompt();
    session.tool("b", "bash", "sleep 60");
    user.wait_status(&panel, &session, "working");
    session.kill();
    user.wait_status(&panel, &session, "crashed");
}

#[test]
fn case_247_a_panel_that_reads_tooltips_as_markup_is_sent_markup_as_soon_as_it_is_recognised() {
    let (bus, sessions) = (Bus::start(), Sessions::new());
    let (user, panel) = (User::new(&sessions), Panel::start(&bus));
    let _tray = user.start_tray(&bus);
    panel.wait_for_icon();
    let session = sessions.add("Fix the parser");
    session.prompt();
    session.tool("a", "bash", "make && make check");
    session.ask_for("r", "a", "make && make check");
    user.wait_status(&panel, &session, "needs-permission");
    let plain = "1 needs you · work wants to run make && make check";
    wait_until(SOON, "the tooltip", || panel.tooltip(), || (panel.tooltip() == plain).then_some(()));
    let told = panel.signals("NewToolTip");
    panel.read_like_mate();
    let is_told = || (panel.signals("NewToolTip") > told).then_some(());
    wait_until(SOON, "it to be told to read the tooltip again", String::new, is_told);
    assert_eq!(panel.tooltip(), plain.replace('&', "&amp;"));
}

/// Panels leave the tooltip where it is when the menu opens, over its first rows.
#[test]
fn case_661_the_tooltip_is_blank_while_the_menu_is_open() {
    let (bus, sessions) = (Bus::start(), Sessions::new());
    let (user, panel) = (User::new(&sessions), Panel::start(&bus));
    let _session = sessions.add_answered("Fix the parser");
    let _tray = user.start_tray(&bus);
    panel.wait_for_icon();
    let reads = |tooltip: &str| {
        wait_until(SOON, tooltip, || panel.tooltip(), || (panel.tooltip() == tooltip).then_some(()));
    };
    reads("1 idle");
    let told = panel.signals("NewToolTip");
    panel.about_to_show();
    reads("\u{200b}");
    // Such a panel reports no end: a click does.
    let refresh = panel.wait_for("Refresh", |entry| entry.label == "Refresh");
    assert!(panel.click_unopened(refresh.id));
    reads("1 idle");
    let is_told_twice = || (panel.signals("NewToolTip") >= told + 2).then_some(());
    wait_until(SOON, "it to be told both times", String::new, is_told_twice);
}

#[test]
fn the_submenu_has_the_details_and_the_actions() {
    let (bus, sessions) = (Bus::start(), Sessions::new());
    let (user, panel) = (User::new(&sessions), Panel::start(&bus));
    let session = sessions.add_answered("Fix the parser");
    let _tray = user.start_tray(&bus);
    panel.wait_for_icon();
    let row = user.wait_status(&panel, &session, "idle");
    let pid = user.row(&session).unwrap()["owner"]["pid"].clone();
    let words = |entries: &[Entry]| entries.iter().map(Entry::shown).collect::<Vec<_>>();
    // There is no desktop here to show a terminal on.
    let expected = ["done, your turn", "“Done.”", "", "End this session…", "Why", "More"];
    assert_eq!(words(&row.entries), expected);
    let why = row.get("Why");
    assert_eq!(why.entries[0].shown(), "idle: done, your turn");
    let folder = format!("Folder: {} (main)", sessions.work().display());
    for says in [&*folder, "Model: gpt-5.2", &format!("Run by: process {pid}"), "Last activity, "] {
        assert!(why.words().contains(says), "{says:?} is not in {why:#?}");
    }
    // Case 70: refused actions are listed with their reasons, and cannot be clicked.
    let refused = row.get("What cannot be done now").words();
    for reason in [
        "Reconnect: this would start a second process, which would corrupt its history",
        "Stop the turn: press Esc in its terminal, or end it with `pilotlight stop --end`",
        &format!("Resume in a terminal: process {pid} runs it"),
    ] {
        let text = refused.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains(reason), "{reason:?} is not in {text}");
    }
    let more = ["Open folder", "Open log", "Copy id", "Copy resume command", "Mute this session", "Mute its folder"];
    assert_eq!(words(&row.get("More").entries)[..6], more);
    let footer: Vec<_> = words(&panel.menu()).into_iter().rev().take(4).collect();
    assert_eq!(footer, ["Quit", "Settings", "Notifications", "Answer terminal sessions from here…"]);
    let settings = panel.menu().into_iter().find(|entry| entry.label == "Settings").unwrap();
    let expected = [
        "Start at login",
        "Answer terminal sessions from here…",
        "Add a machine…",
        "Edit settings…",
        "Diagnostics",
        "Refresh",
        "Mark all as seen",
        "About",
    ];
    assert_eq!(words(&settings.entries), expected);
}

/// Case 496: from the click to the question, in a terminal that stands for xterm.
#[test]
fn case_496_add_a_machine_opens_a_terminal_that_asks_which_one() {
    let (bus, sessions) = (Bus::start(), Sessions::new());
    let (user, panel) = (User::new(&sessions), Panel::start(&bus));
    let bin = user.scratch.path().join("bin");
    let server = Server(user.scratch.path().join("tmux"));
    let socket = &server.0;
    std::fs::create_dir(&bin).unwrap();
    let opens = "#!/bin/sh\nwhile [ \"$1\" != -e ]; do shift; done; shift\n";
    let opens =
        format!("{opens}exec tmux -S {} -f /dev/null new-session -d -x 120 -y 30 -- \"$@\"\n", socket.display());
    executable(&bin.join("xterm"), &opens);
    std::fs::create_dir(user.scratch.path().join(".ssh")).unwrap();
    std::fs::write(user.scratch.path().join(".ssh/config"), "Host devbox\n").unwrap();
    let mut tray = user.command(Some(&bus), &[]);
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap_or_default());
    tray.env("PATH", path).env("DISPLAY", ":0").env("TERMINAL", "xterm");
    let _tray = user.start_tray_as(tray);
    panel.wait_for_icon();
    let adds = panel.wait_for("the entry", |entry| entry.label == "Add a machine…");
    panel.open();
    assert!(panel.click(adds.id));
    panel.close();
    let screen = || tmux::on(socket, &["capture-pane", "-p"]);
    let asks = || {
        let screen = screen();
        (screen.contains("devbox") && screen.contains("Which one?")).then_some(())
    };
    wait_until(SOON, "the terminal asks which machine to add", screen, asks);
    tmux::on(socket, &["send-keys", "Enter"]);
    wait_until(SOON, "it stays open until it was read", screen, || screen().contains("Press Enter").then_some(()));
}

/// A server of tmux that the program under test may have started, ended with this.
struct Server(std::path::PathBuf);

impl Drop for Server {
    fn drop(&mut self) {
        tmux::on(&self.0, &["kill-server"]);
    }
}

#[test]
fn case_103_hostile_titles_are_text_and_bounded() {
    let (bus, sessions) = (Bus::start(), Sessions::new());
    let (user, panel, popups) = (User::new(&sessions), Panel::start(&bus), Popups::start(&bus));
    let titles = [
        "<b>bold</b> & <i>x</i>",
        "_under__lined & _Quit",
        "two\nlines\t\u{1b}[31mred\u{7}",
        "\u{202e}txt.exe\u{2066}",
        &"long ".repeat(2000),
    ];
    let made: Vec<_> = titles.iter().map(|title| sessions.add(title)).collect();
    let config = user.scratch.path().join(".config/pilotlight");
    std::fs::create_dir_all(&config).unwrap();
    std::fs::write(config.join("config.toml"), "[notifications]\nafter-start = \"1ms\"\n").unwrap();
    let _tray = user.start_tray(&bus);
    panel.wait_for_icon();
    for session in &made {
        session.prompt();
        let shown = user.wait_status(&panel, session, "working").shown();
        assert!(shown.width() <= 48, "{shown}");
        assert!(
            !shown.chars().any(|c| c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'))
        );
    }
    let shown = panel.layout().1.words();
    assert!(shown.contains("<b>bold</b> & <i>x</i> — "), "{shown}");
    assert!(shown.contains("_under__lined & _Quit — "), "{shown}");
    assert!(shown.contains("two lines [31mred — "), "{shown}");
    // In a popup, neither the title nor the error is markup.
    made[0].fail("<img src=x> & more");
    user.wait_status(&panel, &made[0], "failed");
    let popup = popups.wait_for(2);
    let markup = popup.body.contains("<img") || popup.body.contains("<b>");
    assert!(popup.body.contains("&lt;img src=x&gt; &amp; more") && !markup, "{popup:?}");
}

#[test]
fn the_first_run_is_welcomed_once() {
    let (bus, sessions) = (Bus::start(), Sessions::new());
    let (user, panel, popups) = (User::new(&sessions), Panel::start(&bus), Popups::start(&bus));
    let one = sessions.add("one");
    one.prompt();
    one.answer("Shall I?");
    let _two = sessions.add("two");
    let mut tray = user.start_tray(&bus);
    let welcome = popups.wait_for(1);
    assert_eq!(welcome.title, "Pilotlight is running: 2 Copilot sessions, 1 needs you");
    assert_eq!(welcome.body, "The icon in your panel shows how they are. Click it for the menu.");
    tray.signal(rustix::process::Signal::TERM);
    tray.wait_exit();
    let _tray = user.start_tray(&bus);
    wait_until(SOON, "it is back", String::new, || (panel.registered() == 2).then_some(()));
    user.wait_status(&panel, &one, "needs-input");
    // The test notification comes after anything sent before it.
    let test = panel.wait_for("the test of notifications", |entry| entry.shown() == "Test notification");
    assert!(panel.click(test.id));
    assert_eq!(popups.wait_for(2).title, "Pilotlight: a test", "{:?}", popups.received());
}

/// Plasma draws pictures next to rows, GNOME's extension does not, and both read at once.
#[test]
fn case_210_each_panel_gets_the_picture_or_the_mark() {
    let (bus, sessions) = (Bus::start(), Sessions::new());
    let (user, panel) = (User::new(&sessions), Panel::start(&bus));
    let session = sessions.add("one");
    session.prompt();
    let _tray = user.start_tray(&bus);
    panel.wait_for_icon();
    let row = user.wait_status(&panel, &session, "working").id;
    let label = |properties: &std::collections::HashMap<String, zbus::zvariant::OwnedValue>| {
        (String::try_from(properties["label"].clone()).unwrap(), properties.contains_key("icon-data"))
    };
    panel.read_types();
    assert_eq!(panel.read_properties(&[row]).len(), 0, "GNOME's extension got it with the layout (case 650)");
    let (shown, has_picture) = label(&panel.read_properties(&[row])[0].1);
    assert!(shown.starts_with("▶ work · one — ") && !has_picture, "{shown}");
    panel.read_level();
    let (shown, has_picture) = label(&panel.read_properties(&[row])[0].1);
    assert!(shown.starts_with("work · one — ") && has_picture, "{shown}");
}

#[test]
fn a_click_on_the_icon_opens_the_menu() {
    let (bus, sessions) = (Bus::start(), Sessions::new());
    let (user, panel) = (User::new(&sessions), Panel::start(&bus));
    let _tray = user.start_tray(&bus);
    panel.wait_for_icon();
    assert_eq!(bool::try_from(panel.property("ItemIsMenu")), Ok(true));
    // A panel that calls `Activate` anyway opens the menu if it fails in this way.
    let refused = panel.click_icon().unwrap_err();
    assert!(refused.to_string().contains("UnknownMethod"), "{refused}");
}

#[test]
fn marking_as_seen_applies_everywhere() {
    let (bus, sessions) = (Bus::start(), Sessions::new());
    let (user, panel, popups) = (User::new(&sessions), Panel::start(&bus), Popups::start(&bus));
    let (done, failed) = (sessions.add("done"), sessions.add("failed"));
    let mut watch = user.command(None, &["watch", "--json"]);
    let watched = user.scratch.path().join("watched");
    let mut watch = watch.stdout(std::fs::File::create(&watched).unwrap()).spawn().unwrap();
    let _tray = user.start_tray(&bus);
    popups.wait_for(1);
    done.prompt();
    done.answer("Done.");
    failed.prompt();
    failed.fail("broken");
    user.wait_status(&panel, &done, "idle");
    user.wait_status(&panel, &failed, "failed");
    let trouble = panel.pixels();
    assert!(panel.click(user.wait_status(&panel, &failed, "failed").get("Mark as seen").id));
    // It is still failed, but seen, so the icon changes its colour.
    wait_until(SOON, "the icon changes", String::new, || (panel.pixels() != trouble).then_some(()));
    assert_eq!(user.row(&failed).unwrap()["status"], "failed");
    assert!(panel.click(user.wait_status(&panel, &done, "idle").get("Mark as seen").id));
    user.wait_seen(&done);
    user.wait_status(&panel, &done, "idle");
    // `watch`, another process, reads it from the file.
    let output = || std::fs::read_to_string(&watched).unwrap_or_default();
    wait_until(SOON, "watch says that it was seen", output, || {
        let output = output();
        let last = output.lines().rfind(|line| line.contains(&done.id))?;
        last.contains(r#""unseen":false"#).then_some(())
    });
    watch.kill().unwrap();
    watch.wait().unwrap();
}

#[test]
fn clicks_in_the_menu_do_what_they_say() {
    let (bus, sessions) = (Bus::start(), Sessions::new());
    let (user, panel) = (User::new(&sessions), Panel::start(&bus));
    let (one, two) = (sessions.add_answered("one"), sessions.add_answered("two"));
    let mut tray = user.start_tray(&bus);
    panel.wait_for_icon();
    let row = user.wait_status(&panel, &one, "idle");
    assert!(row.get("Mark as seen").enabled);
    assert!(panel.click(row.get("Mark as seen").id));
    user.wait_seen(&one);
    assert_eq!(user.row(&two).unwrap()["unseen"], true);
    // Until the menu counts as closed, it stays as it was shown.
    let menu = || format!("{:#?}", panel.menu());
    wait_until(SOON, "there is nothing left to mark", menu, || {
        let row = user.wait_status(&panel, &one, "idle");
        row.find(&|entry| entry.label == "Mark as seen").is_none().then_some(())
    });
    let all = panel.wait_for("Mark all", |entry| entry.label == "Mark all as seen");
    assert!(all.enabled && panel.click(all.id));
    user.wait_seen(&two);
    let refresh = panel.wait_for("Refresh", |entry| entry.label == "Refresh");
    assert!(panel.click(refresh.id));
    let quit = panel.wait_for("Quit", |entry| entry.label == "Quit");
    assert!(panel.click(quit.id));
    let (status, took) = tray.wait_exit();
    assert!(status.success() && took.as_millis() < 1000, "{status} after {took:?}\n{}", tray.output());
}
