//! Tests of the menu, without a desktop or a clock. Answers are tested in `answers`, random fleets in `fleets`, the headline,
//! remedies, folds and names in `rows`. Their sessions are in `world`.

mod answers;
mod fleets;
mod hosts;
mod rows;
mod world;

use super::*;
use pilotlight_agents::copilot::log_format;
use pilotlight_core::action::{Action, ServerState};
use pilotlight_core::alert::Pause;
use pilotlight_core::fleet::Kind as Use;
use pilotlight_core::fleet::{About, Label, Row, Session, State};
use pilotlight_core::order::{Operation, Order};
use pilotlight_core::owner::Owner;
use pilotlight_core::session::HomeId;
use pilotlight_core::session::{Allows, Key, NoFileEvents};
use pilotlight_core::short_reason::ShortReason;
use pilotlight_core::turn::{Call, Request};
use pilotlight_core::verdict::Status;
use pilotlight_core::words::reason::Reason;
use pilotlight_engine::LastProgress;
use pilotlight_engine::config::{Problem, parse};
use std::path::Path;
use world::{World, names, text};

#[test]
fn case_152_sessions_that_need_the_user_come_first_by_urgency_and_age_then_working_then_idle_ones() {
    let mut world = World::new();
    for (name, status) in [
        ("idle", Status::Idle),
        ("asks", Status::NeedsInput),
        ("works", Status::Working),
        ("over", Status::Ended),
        ("late", Status::NeedsPermission),
        ("early", Status::NeedsPermission),
        ("silent", Status::Quiet),
    ] {
        world.add(name, status);
    }
    world.row("early").since = world.now.wall - Span::minutes(9);
    world.update().unwrap();
    let expected = [
        "3 need you · early asks for permission",
        "",
        "⚑ early — is needs-permission",
        "⚑ late — is needs-permission",
        "? asks — is needs-input",
        "",
        "◌ silent — is quiet",
        "▶ works — is working",
        "✓ idle — is idle",
        "1 ended",
        "",
        "Notifications",
        "Settings",
        "Quit",
    ];
    assert_eq!(world.entries(), expected);
    assert_eq!(names(world.submenu(Kind::Fold(40))), ["over"]);
}

#[test]
fn four_idle_sessions_are_folded_together_with_ended_ones() {
    let mut world = World::all(&["a", "b", "c", "d"], Status::Idle);
    world.add("over", Status::Ended);
    world.row("b").unseen = true;
    world.update().unwrap();
    assert_eq!(world.entries()[..3], ["4 idle", "", "4 idle, 1 new, 1 ended"]);
    assert_eq!(names(world.submenu(Kind::Fold(40))), ["a", "b", "c", "d", "over"]);
}

#[test]
fn working_and_quiet_sessions_that_are_all_folded_are_counted_as_in_the_header() {
    let mut world = World::all(&["a", "b", "c"], Status::NeedsInput);
    world.add("slow", Status::Quiet);
    for name in ["d", "e", "f"] {
        world.add(name, Status::Working);
    }
    world.menu.capacity = 8;
    world.update().unwrap();
    let entries = world.entries();
    assert_eq!(entries[0], "3 need you · a waits for your answer");
    assert!(entries.contains(&"1 quiet · 3 working".to_owned()), "{entries:?}");
    let rows = names(world.submenu(Kind::Fold(20)));
    assert_eq!(rows, ["slow", "d", "e", "f"]);
}

#[test]
fn three_rows_have_a_remedy_below_them() {
    let mut world = World::new();
    let ids: Vec<_> = (0..5).map(|n| format!("36535f61-5c7b-4f09-a70b-2f8aed97280{n}")).collect();
    for id in &ids {
        world.add(id, Status::Crashed);
        world.session(id).observed.owner = Owner::Gone { pid: 1, at: None };
        world.row(id).label = Label { who: "infra".into(), agent: None, title: Some(format!("Part {id}").into()) };
    }
    world.row(&ids[0]).label = Label { who: "infra (main)".into(), agent: None, title: Some("Rotate TLS".into()) };
    world.update().unwrap();
    let shown = names(&world.menu.shown.as_ref().unwrap().items);
    assert_eq!(shown, [&*ids[0], "+", &ids[1], "+", &ids[2], "+", &ids[3], &ids[4]]);
    let remedies: Vec<_> = world.entries().into_iter().filter(|entry| entry.starts_with("     ")).collect();
    let titles = ["infra (main)", "Part 36535f61-5c7b-4f…", "Part 36535f61-5c7b-4f…"];
    assert_eq!(remedies, titles.map(|name| format!("     Resume {name} in a terminal")));
    let resume = Effect::Act(Box::new(Order { who: "infra (main)".into(), ..Order::new(&ids[0], Operation::Resume) }));
    assert_eq!(world.effect(&ids[0], Kind::Remedy), Some(&resume));
}

#[test]
fn an_approval_is_no_remedy_and_a_long_running_session_has_none() {
    let mut world = World::all(&["asks", "slow", "stuck", "may wait"], Status::Stuck);
    world.ask("asks", 1, "make");
    for name in ["slow", "stuck", "may wait"] {
        let now = world.now;
        let session = world.session(name);
        session.observed.owner = Owner::Alive { pid: 1, started: None };
        session.control.server = if name == "may wait" { ServerState::Listening } else { ServerState::Attached };
        let prompt =
            br#"{"type":"user.message","data":{"content":"go"},"id":"e1","timestamp":"2023-11-14T22:13:20.000Z"}"#;
        let tool = br#"{"type":"tool.execution_start","data":{"toolCallId":"t","toolName":"bash","arguments":{"command":"x"}},"id":"e2","timestamp":"2023-11-14T22:13:20.000Z","parentId":"e1"}"#;
        for line in [&prompt[..], tool] {
            session.observed.facts.fold(&log_format::parse(line).unwrap(), now, &Limits::default());
        }
        let runs_long = name == "slow";
        world.row(name).short_reason = ShortReason::Silent { since: now, what: "running bash".into(), runs_long };
    }
    world.after(Span::minutes(12)).unwrap();
    let entries = world.entries();
    let expected = [
        "⚑ asks — is needs-permission",
        "◷ may wait — silent 12 min",
        "     Stop may wait, even if it waits",
        "◷ slow — running long, 12 min",
        "◷ stuck — silent 12 min",
        "     Stop the turn in stuck",
    ];
    assert_eq!(entries[2..8], expected);
}

/// The turn of such a session can only be stopped in its own terminal.
#[test]
fn the_remedy_of_a_session_stuck_in_a_plain_terminal_shows_the_terminal() {
    let mut world = World::all(&["api"], Status::Stuck);
    world.session("api").observed.owner = Owner::Alive { pid: 1, started: None };
    world.session("api").observed.about.kind = Use::Terminal;
    world.session("api").control.server = ServerState::NotListening;
    world.after(Span::minutes(1)).unwrap();
    assert_eq!(world.entries()[3], "     Show the terminal of api");
    let show = Effect::Act(Box::new(Order { who: "api".into(), ..Order::new("api", Operation::ShowTerminal) }));
    assert_eq!(world.effect("api", Kind::Remedy), Some(&show));
}

#[test]
fn case_151_a_failure_that_was_seen_no_longer_affects_icon_header_or_order() {
    let mut world = World::all(&["works", "failed"], Status::Working);
    world.set("failed", Status::Failed);
    let view = world.update().unwrap();
    assert_eq!((view.icon.state, &*world.entries()[0]), (State::Trouble, "1 needs you · failed failed"));
    world.row("failed").is_seen = true;
    let view = world.after(SHAPE_INTERVAL).unwrap();
    assert_eq!((view.icon.state, &*world.entries()[0]), (State::Working, "1 working · 1 set aside"));
    assert_eq!(names(&view.items), ["works", "failed"]);
}

#[test]
fn further_changes_of_shape_are_shown_once_a_second() {
    let mut world = World::all(&["a"], Status::Working);
    world.update().unwrap();
    world.after(Span::seconds(5));
    world.add("b", Status::Working);
    assert!(world.update().is_some(), "at once");
    let shaped = world.now.awake;
    for n in 0..20 {
        world.add(&format!("n{n}"), Status::Working);
        assert!(world.after(Span(10)).is_none());
        assert_eq!(world.menu.wake_at(), Some(shaped + SHAPE_INTERVAL));
    }
    world.after(shaped + SHAPE_INTERVAL - world.now.awake).unwrap();
    assert_eq!((&*world.entries()[0], world.menu.wake_at()), ("22 working", None));
}

#[test]
fn an_age_alone_neither_sends_a_menu_nor_wakes() {
    let mut world = World::all(&["a", "b"], Status::Working);
    let begun = world.now;
    world.row("a").short_reason = ShortReason::Silent { since: begun, what: "x".into(), runs_long: false };
    world.update().unwrap();
    for _ in 0..600 {
        let sent = world.after(Span::seconds(1)).is_some();
        assert!((!sent || cfg!(not(target_os = "linux"))) && world.menu.wake_at().is_none());
    }
    assert!(world.entries().contains(&"▶ a — silent 10 min".into()), "{:?}", world.entries());
}

#[test]
fn the_header_the_tooltip_and_the_icon_say_the_same() {
    let mut world = World::new();
    let view = world.update().unwrap();
    assert_eq!((&*text(&view.items[0]), &*view.tooltip), ("No session is open", "no session is open"));
    assert_eq!(text(&view.items[2]), "Start an agent in a terminal: it will show here");
    world.add("a", Status::Stuck);
    world.add("b", Status::NeedsInput);
    world.add("c", Status::Working);
    world.row("c").unseen = true;
    let view = world.after(Span::seconds(2)).unwrap();
    let (headline, tooltip) =
        ("2 need you · b waits for your answer", "2 need you · b waits for your answer · 1 working");
    assert_eq!((&*text(&view.items[0]), &*view.tooltip), (headline, tooltip));
    assert_eq!(view.icon, Icon { unseen: true, ..Icon::of(State::NeedsYou) });
}

#[test]
fn the_icon_counts_sessions_that_need_the_user_if_configured() {
    let mut world = World::all(&["stuck", "failed", "idle"], Status::Stuck);
    world.set("failed", Status::Failed);
    world.set("idle", Status::Idle);
    assert_eq!(world.update().unwrap().icon, Icon::of(State::Trouble), "off by default");
    world.menu = world.menu.with_icon(Tray { count: true, high_contrast: true });
    let icon = world.update().unwrap().icon;
    assert_eq!((icon.count, icon.contrast), (2, true));
    world.row("failed").is_seen = true;
    assert_eq!(world.after(SHAPE_INTERVAL).unwrap().icon.count, 1, "a failure that was seen is not counted");
}

#[test]
fn case_154_a_mistake_in_the_settings_is_shown_in_the_first_row() {
    let mut world = World::all(&["a"], Status::Working);
    let path = Path::new("pilotlight").join("config.toml");
    let (_, problems) = parse("\n\nlog = \"a/b\"\n", &path);
    world.menu.configure(&Config::default(), problems.first().map(Problem::brief));
    world.update().unwrap();
    assert!(world.entries()[0].starts_with("Settings: config.toml:3:1: "), "{:?}", world.entries());
    assert_eq!(world.entries()[1], "1 working");
    let open = world.menu.shown.as_ref().unwrap().effect_of(&ItemId::own(Kind::WrongSettings));
    assert_eq!(open, Some(&Effect::OpenSettings));
}

/// Cases 154, 658: without a settings file, as in a demo, nothing is offered that needs one.
#[test]
fn case_154_nothing_is_edited_where_there_is_no_place_for_settings() {
    let labels = |edits: bool| {
        let mut world = World::all(&["a"], Status::Working);
        world.menu = std::mem::replace(&mut world.menu, Menu::new(Limits::default(), List::default(), None, false))
            .editing_settings(edits);
        world.menu.configure(&Config::default(), Some("config.toml:3:1: a mistake".into()));
        world.update().unwrap();
        format!("{:?} {:?}", world.entries(), world.submenu(Kind::Settings))
    };
    for entry in ["Settings: config.toml:3:1", "Edit settings…", "Add a machine…"] {
        assert_eq!((labels(true).contains(entry), labels(false).contains(entry)), (true, false), "{entry}");
    }
}

#[test]
fn only_items_in_the_menu_can_be_clicked() {
    let mut world = World::new();
    world.add("36535f61-5c7b-4f09-a70b-2f8aed97280f", Status::Working);
    world.add("../no-id; rm -rf", Status::Working);
    let view = world.update().unwrap();
    let item = |id: &str, kind| ItemId::of(&Key::new(HomeId::default(), id), kind);
    let (id, odd) = ("36535f61-5c7b-4f09-a70b-2f8aed97280f", "../no-id; rm -rf");
    let resume = Effect::Copy(format!("copilot --resume={id}"));
    assert_eq!(view.effect_of(&item(id, Kind::CopyResume)), Some(&resume));
    assert_eq!(view.effect_of(&item(odd, Kind::CopyResume)), None, "only an id reaches a command line");
    assert_eq!(view.effect_of(&item(id, Kind::Seen)), None, "there is nothing to mark");
    assert_eq!(view.effect_of(&item("another", Kind::CopyId)), None);
    assert_eq!(view.effect_of(&ItemId::own(Kind::Quit)), Some(&Effect::Quit(Vec::new())));
    let folder = Effect::OpenFolder("/home/dev/x".into());
    // On Windows a full path begins with a drive.
    assert_eq!(view.effect_of(&item(id, Kind::OpenFolder)), cfg!(unix).then_some(&folder));
}

#[test]
fn the_menu_shows_what_is_muted_or_paused() {
    let mut world = World::all(&["a"], Status::Working);
    let muted = |view: &MenuView| {
        let row = view.items[2].children();
        let why = row.iter().find(|item| text(item) == "Why").unwrap();
        why.children().iter().any(|item| text(item) == "Muted: no popups")
    };
    let view = world.update().unwrap();
    assert!(!view.icon.paused && !view.tooltip.contains("paused") && !muted(&view));
    let mut notifications = NotificationState::default();
    notifications.quiet.mute_session("a");
    notifications.quiet.pause(Pause::UntilResumed);
    world.menu.set_notifications(&notifications);
    let view = world.after(SHAPE_INTERVAL).unwrap();
    assert!(view.icon.paused && view.tooltip.ends_with("; notifications are paused until resumed"), "{}", view.tooltip);
    assert!(muted(&view) && world.entries().contains(&"Notifications: paused until resumed".into()));
}

/// Case 161.
#[test]
fn case_161_why_says_that_a_sessions_files_may_change_without_an_event() {
    let mut world = World::all(&["a", "b", "c"], Status::Working);
    let causes = [Some(NoFileEvents::FileSystem("NFS".into())), Some(NoFileEvents::Refused), None];
    for ((_, session, _), no_file_events) in world.sessions.iter_mut().zip(causes) {
        session.no_file_events = no_file_events;
    }
    world.sessions[0].1.observed.owner = Owner::Alive { pid: 1, started: None };
    let view = world.update().unwrap();
    let said = |row: usize| {
        let why = view.items[2 + row].children().iter().find(|item| text(item) == "Why").unwrap();
        let lines = why.children().iter().map(text).skip_while(|text| !text.starts_with("Files: "));
        let lines: Vec<_> = lines.take_while(|text| !text.starts_with("Model: ")).collect();
        (!lines.is_empty()).then(|| lines.join(" "))
    };
    assert_eq!(
        [said(0), said(1), said(2)],
        [
            Some("Files: NFS reports no changes of files; read every 5 s".into()),
            Some("Files: the system cannot watch them; read once a minute".into()),
            None
        ]
    );
}

#[test]
fn case_107e_quitting_names_the_sessions_that_may_end_and_takes_a_second_click() {
    let mut world = World::new();
    world.add("a", Status::Working);
    world.update().unwrap();
    let quit = |view: &MenuView| view.items.last().cloned().unwrap();
    assert!(matches!(quit(world.menu.shown.as_ref().unwrap()), Item::Action { effect: Effect::Quit(_), .. }));
    world.sessions[0].1.control.server = ServerState::Hosted(7);
    let view = world.after(Span::seconds(2)).unwrap();
    let Item::Submenu { items, .. } = quit(&view) else { panic!("{:?}", quit(&view)) };
    assert_eq!(text(&items[0]), "This may end: a");
    assert!(matches!(items[1], Item::Action { effect: Effect::Quit(_), .. }));
}

#[test]
fn sessions_left_open_when_the_machine_went_down_are_reopened_together() {
    let mut world = World::new();
    let ids = ["36535f61-5c7b-4f09-a70b-2f8aed972800", "36535f61-5c7b-4f09-a70b-2f8aed972801", "not-an-id"];
    for id in ids {
        world.add(id, Status::Crashed);
        let (_, session, _) = world.sessions.last_mut().unwrap();
        session.observed.owner = Owner::Gone { pid: 1, at: None };
    }
    world.update().unwrap();
    let orders = ids[..2].iter().map(|id| Order { who: (*id).into(), ..Order::new(id, Operation::Resume) }).collect();
    let item = ItemId::own(Kind::Reopen);
    assert_eq!(world.menu.shown.as_ref().unwrap().effect_of(&item), Some(&Effect::Reopen(orders)));
}

/// Building a menu of twenty sessions takes milliseconds, and busy ones change their order many times a second.
#[test]
fn no_menu_is_built_while_a_change_of_shape_is_pending() {
    let mut world = World::all(&["a", "b"], Status::Idle);
    world.update().unwrap();
    world.set("b", Status::Stuck);
    assert!(world.update().is_none());
    let due = world.menu.wake_at().unwrap();
    let untouched = std::iter::from_fn(|| panic!("a menu is built"));
    assert!(world.menu.update(untouched, world.now).is_none() && world.menu.wake_at() == Some(due));
    assert!(world.after(SHAPE_INTERVAL).is_some());
}

/// As of Claude Code without its bridge, whose permissions are given in its terminal.
#[test]
fn the_submenu_says_all_of_the_command_that_only_the_agent_tells() {
    let lines = |command: &str| {
        let mut world = World::all(&["handbook"], Status::NeedsPermission);
        let reason = Reason::AsksPermission { kind: "Bash".into(), text: Some(command.into()) };
        world.row("handbook").because = reason.into();
        world.update().unwrap();
        let items = world.menu.shown.as_ref().unwrap().items.clone();
        let row = items.iter().find(|item| item.id().is_some_and(|id| id.kind == Kind::Row)).unwrap();
        let lines = row.children().iter().take_while(|item| **item != Item::Separator);
        lines.map(|item| item.words().unwrap().at(world.now)).collect::<Vec<_>>()
    };
    let long = "rsync --archive --delete --exclude drafts book/ web:handbook";
    assert_eq!(lines(long), ["Asks for Bash: rsync --archive --delete", "  --exclude drafts book/ web:handbook"]);
    let doubtful = lines("make\u{200b}");
    assert!(doubtful[0].starts_with("Asks for Bash. It may not be what it looks"), "{doubtful:?}");
    assert_eq!(lines(&"make ".repeat(99)), ["Asks for Bash. Too long to show here"]);
}

/// How many rows there are at once if the submenus are opened that take the most.
fn height(items: &[Item]) -> usize {
    let rows = items.iter().filter(|item| **item != Item::Separator).count();
    rows + items.iter().map(|item| height(item.children())).max().unwrap_or_default()
}

#[test]
fn case_655_where_submenus_open_below_their_rows_each_has_room() {
    for rows in [14, 15, 16, 17, 18, 22, 26, 40] {
        let names: Vec<_> = (0..20).map(|n| format!("36535f61-5c7b-4f09-a70b-2f8aed9728{n:02}")).collect();
        let mut world = World::new();
        for (n, name) in names.iter().enumerate() {
            world.add(name, [Status::Stuck, Status::Working, Status::Idle][n % 3]);
        }
        world.ask(&names[0], 1, "cargo test --workspace --all-features && cargo clippy --all-targets");
        world.session(&names[3]).observed.owner = Owner::Gone { pid: 1, at: None };
        world.set(&names[3], Status::Crashed);
        world.menu.set_capacity(rows);
        world.update().unwrap();
        let items = &world.menu.shown.as_ref().unwrap().items;
        assert!(height(items) <= rows, "{} of {rows}: {items:#?}", height(items));
        let root = items.iter().filter(|item| **item != Item::Separator).count();
        assert!((6..=10).contains(&root), "{root} of {rows}");
        let fold = world.submenu(Kind::Fold(0));
        assert!(fold.iter().all(|item| item.children().is_empty()), "{fold:#?}");
        // What is asked can be read and answered, and the rest be reached.
        for kind in [Kind::Approve(Call::from_number(1)), Kind::Deny(Call::from_number(1)), Kind::LiveTable] {
            assert!(world.effect(&names[0], kind).is_some(), "{kind:?} of {rows}");
        }
        for kind in [Kind::PauseHour, Kind::EditSettings, Kind::ShowDiagnostics, Kind::Quit] {
            assert!(world.menu.shown.as_ref().unwrap().effect_of(&ItemId::own(kind)).is_some(), "{kind:?} of {rows}");
        }
    }
}
