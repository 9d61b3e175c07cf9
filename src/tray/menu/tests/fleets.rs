//! Properties of the menu for random fleets: its bounds and its consistency.

use super::*;
use crate::tray::menu::remedies::REMEDIES_MAX;
use crate::tray::view::{COLUMNS, ROWS};
use pilotlight_agents;
use pilotlight_agents::copilot::log_format::parse;
use pilotlight_core::agent::Agent;
use pilotlight_core::fleet::distinguish;
use pilotlight_core::owner::HoldProof;
use pilotlight_core::session::{HomeId, Key, Observed};
use proptest::prelude::*;
use serde_json::json;
use std::collections::HashSet;
use unicode_width::UnicodeWidthStr;

const WORDS: [&str; 7] = [
    "infra",
    "billing-api-of-the-european-branch",
    "日本語の長い名前のフォルダ",
    "_a__b & <b>",
    "rm -rf build",
    "",
    "x\u{202e}y\nz",
];
const NOW: Moment = Moment::of(Time(1_700_000_000_000));

/// A line of a log: the kind of event, the index of its word, the seconds since the line before.
type Line = (u8, u8, u16);
/// A session: its log, its owner and server, the words of its folder and title, when it was seen.
type SessionSpec = (Vec<Line>, u8, u8, u8, u8, Option<u16>);

fn word(n: u8) -> &'static str {
    WORDS[usize::from(n) % WORDS.len()]
}

fn event(line: Line, call: usize) -> (&'static str, serde_json::Value) {
    let (kind, n, _) = line;
    let denied = json!({"code": "denied", "message": "Permission denied and could not request permission from user."});
    match kind % 11 {
        0 | 1 => ("user.message", json!({"content": "go"})),
        2 => (
            "tool.execution_start",
            json!({"toolCallId": format!("t{call}"), "toolName": "bash", "arguments": {"command": word(n)}}),
        ),
        3 => {
            ("tool.execution_complete", json!({"toolCallId": format!("t{}", call.saturating_sub(1)), "success": true}))
        }
        4 => (
            "tool.execution_complete",
            json!({"toolCallId": format!("t{}", call.saturating_sub(1)), "success": false, "error": denied}),
        ),
        5 => (
            "permission.requested",
            json!({"requestId": format!("r{call}"), "permissionRequest": {"kind": "shell", "fullCommandText": word(n).repeat(usize::from(n % 9) + 1)}}),
        ),
        6 => (
            "tool.execution_start",
            json!({"toolCallId": format!("t{call}"), "toolName": "ask_user", "arguments": {"question": word(n), "choices": ["a", word(n)]}}),
        ),
        7 => {
            ("assistant.message", json!({"content": if n % 2 == 0 { "Done." } else { "Shall I?" }, "toolRequests": []}))
        }
        8 => ("assistant.turn_end", json!({"turnId": "0"})),
        9 => ("session.error", json!({"errorType": "rate_limit", "message": word(n)})),
        _ => ("session.shutdown", json!({"shutdownType": "routine"})),
    }
}

fn session(n: usize, (log, owner, server, folder, title, seen): &SessionSpec) -> Session {
    let length: i64 = log.iter().map(|line| i64::from(line.2)).sum();
    let mut at = NOW.wall - Span::seconds(length);
    let mut session = Session {
        id: format!("36535f61-5c7b-4f09-a70b-2f8aed97{n:04}").into(),
        seen: seen.map(|ago| NOW.wall - Span::seconds(ago.into())),
        observed: Observed {
            agent: Agent::reported(["aider", "a-name-of-an-agent"][usize::from(*owner >= 128)]).unwrap(),
            about: About {
                name: Some(word(*title).into()),
                cwd: Some(format!("/code/{}", word(*folder)).into()),
                kind: [Use::Terminal, Use::Sdk, Use::Unknown][n % 3],
                ..About::default()
            },
            owner: match owner % 4 {
                0 | 1 => Owner::Alive { pid: 7, started: None },
                2 => Owner::Gone { pid: 7, at: None },
                _ => Owner::Unknown { pid: 7 },
            },
            held: [HoldProof::Pending, HoldProof::Unverified, HoldProof::Verified][usize::from(*owner) % 3],
            has_log: true,
            ..Observed::default()
        },
        ..Session::default()
    };
    session.control.server = match server % 5 {
        0 => ServerState::NotListening,
        1 => ServerState::Listening,
        2 => ServerState::Attached,
        3 => ServerState::Hosted(7),
        _ => ServerState::Refused("no".into()),
    };
    for (call, line) in log.iter().enumerate() {
        at = at + Span::seconds(line.2.into());
        let (kind, data) = event(*line, call);
        let parent = call.checked_sub(1).map(|before| format!("e{before}"));
        let text = json!({"type": kind, "data": data, "id": format!("e{call}"), "parentId": parent, "timestamp": at.to_string()});
        session.observed.facts.fold(&parse(text.to_string().as_bytes()).unwrap(), Moment::of(at), &Limits::default());
    }
    session
}

fn spec() -> impl Strategy<Value = SessionSpec> {
    let log = prop::collection::vec((any::<u8>(), any::<u8>(), prop_oneof![0u16..30, 0u16..900]), 1..14);
    (log, any::<u8>(), any::<u8>(), any::<u8>(), any::<u8>(), prop::option::of(0u16..2000))
}

/// The rows of all sessions in order, including those in submenus.
fn rows(items: &[Item]) -> Vec<&Item> {
    let mut out = Vec::new();
    for item in items {
        match item.id() {
            Some(ItemId { session: Some(_), kind: Kind::Row }) => out.push(item),
            Some(ItemId { session: None, .. }) => out.extend(rows(item.children())),
            _ => {}
        }
    }
    out
}

fn check_bounds(items: &[Item], top: bool, ids: &mut HashSet<ItemId>) -> Result<(), TestCaseError> {
    prop_assert!(top || (1..=ROWS).contains(&items.len()), "{} entries: {items:#?}", items.len());
    for item in items {
        for later in [Span::ZERO, Span::seconds(55), Span::hours(30)] {
            let words = item.words().map(|text| text.at(NOW.plus(later))).unwrap_or_default();
            prop_assert!(words.width() <= COLUMNS, "{words:?} is {} wide", words.width());
            prop_assert!(!words.chars().any(|c| c.is_control() || c == '\u{202e}'), "{words:?}");
        }
        if let Some(id) = item.id() {
            prop_assert!(ids.insert(id.clone()), "{id:?} is used twice");
        }
        if let Item::Submenu { items, .. } = item {
            check_bounds(items, false, ids)?;
        }
    }
    Ok(())
}

/// Checks the menu of these sessions, with this capacity.
fn check_menu(sessions: &[Session], capacity: usize) -> Result<(), TestCaseError> {
    let mut all: Vec<_> = sessions.iter().map(|session| session.row(NOW, &Limits::default()).0).collect();
    distinguish(&mut all);
    let keys: Vec<Key> = sessions.iter().map(|session| Key::new(HomeId::default(), &*session.id)).collect();
    let (home, last_progress) = (pilotlight_agents::home::Home::at(Path::new("/nowhere")), &LastProgress::default());
    let readers: Vec<_> = keys.iter().map(|key| home.reader(&key.id)).collect();
    let sources = keys.iter().zip(&all).zip(sessions).zip(&readers);
    let sources = sources.map(|(((key, row), session), reader)| Source {
        key,
        row,
        session,
        last_progress,
        reader: Some(reader),
    });
    let mut menu = Menu::new(Limits::default(), List::default(), None, false);
    menu.capacity = capacity;
    let view = menu.update(sources, NOW).unwrap();
    let row_of = |item: &Item| {
        let id = item.id().and_then(|id| id.session.clone()).unwrap();
        all.iter().find(|row| *row.id == *id.id).unwrap()
    };

    // Bounds.
    check_bounds(&view.items, true, &mut HashSet::new())?;
    let entries = view.items.iter().filter(|item| **item != Item::Separator).count();
    prop_assert!(entries <= capacity, "{entries} entries at once, of {capacity}");
    let at_once: Vec<_> = view.items.iter().filter(|item| item.id().is_some_and(|id| id.kind == Kind::Row)).collect();
    prop_assert!(at_once.iter().filter(|item| row_of(item).needs_you()).count() <= NEED_MAX);
    let is_remedy = |item: &&Item| item.id().is_some_and(|id| id.kind == Kind::Remedy);
    prop_assert!(view.items.iter().filter(is_remedy).count() <= REMEDIES_MAX);

    // Header, tooltip, icon and rows agree.
    let summary = Summary::of(all.iter());
    let header = text(&view.items[0]);
    let counts = summary.counts();
    if summary.need_you > 0 {
        // The first session that needs the user follows, in both.
        let start = format!("{} · ", counts[0]);
        prop_assert!(header.starts_with(&start) && view.tooltip.starts_with(&start), "{header}; {}", view.tooltip);
        prop_assert!(view.tooltip.ends_with(&counts[1..].join(" · ")), "{}", view.tooltip);
    } else {
        prop_assert_eq!((&header, &view.tooltip), (&capital(&summary.to_string()), &summary.to_string()));
    }
    let needed = matches!(view.icon.state, State::NeedsYou | State::Trouble);
    prop_assert_eq!((view.icon.state, needed), (summary.state, summary.need_you > 0));
    let rows = rows(&view.items);
    let open = |row: &&Row| row.status != Status::Ended;
    let shown: Vec<_> = rows.iter().map(|item| row_of(item)).filter(open).collect();
    let mut sorted: Vec<_> = all.iter().filter(open).collect();
    sorted.sort_by(|a, b| a.sort_key().cmp(&b.sort_key()));
    let ids = |rows: &[&Row]| rows.iter().map(|row| row.id.clone()).collect::<Vec<_>>();
    prop_assert_eq!(ids(&shown), ids(&sorted), "every session, in the order of all lists");
    for item in &rows {
        let (row, words) = (row_of(item), text(item));
        prop_assert!(words.starts_with(row.status.mark().0), "{} is {}", words, row.status);
        prop_assert!(words.contains('●') == row.unseen && !words.contains(row.status.name()));
        // The first entry of a submenu is harmless: it may open under the pointer.
        let harmless = matches!(item.children()[0], Item::Action { effect: Effect::Seen, .. });
        prop_assert!(harmless, "{:#?}", item.children());
    }
    let texts: HashSet<_> =
        rows.iter().map(|item| text(item).split(" — ").next().unwrap_or_default().to_owned()).collect();
    prop_assert_eq!(
        texts.len(),
        rows.len(),
        "no two look alike: {:?}",
        rows.iter().map(|item| text(item)).collect::<Vec<_>>()
    );

    // A remedy belongs to the row above it, whose status calls for one.
    for pair in view.items.windows(2).filter(|pair| is_remedy(&&pair[1])) {
        let row = row_of(&pair[0]);
        prop_assert_eq!(pair[0].id().map(|id| &id.session), pair[1].id().map(|id| &id.session));
        let Item::Action { effect: Effect::Act(order), .. } = &pair[1] else { panic!("{pair:?}") };
        prop_assert!(!matches!(order.operation, Operation::Approve(_) | Operation::Answer(_)), "{order:?}");
        let needs_remedy =
            matches!(row.status, Status::PermissionLost | Status::Crashed | Status::Stuck) || row.ended_denied();
        prop_assert!(
            needs_remedy && !matches!(row.short_reason, ShortReason::Silent { runs_long: true, .. }),
            "{row:?}"
        );
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_menu_keeps_its_bounds_and_is_consistent(
        fleet in prop::collection::vec(spec(), 0..50),
        capacity in 12..=ENTRIES_MAX,
    ) {
        let sessions: Vec<_> = fleet.iter().enumerate().map(|(n, spec)| session(n, spec)).collect();
        check_menu(&sessions, capacity)?;
    }
}

/// Case 667: nothing is said of what either asks for.
#[test]
fn case_667_two_agents_with_one_title_in_one_folder_do_not_look_alike() {
    let fleet = [(vec![(5, 145, 0)], 83, 0, 207, 74, None), (vec![(5, 159, 0)], 128, 0, 165, 46, None)];
    let sessions: Vec<_> = fleet.iter().enumerate().map(|(n, spec)| session(n, spec)).collect();
    check_menu(&sessions, 12).unwrap();
}
