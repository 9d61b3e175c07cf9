//! The entries below the sessions: always the same ones in the same order, so that they are easy to find.

use crate::tray::autostart::State as Login;
use crate::tray::details::Source;
use crate::tray::notifications::NotificationState;
use crate::tray::view::{COLUMNS, Effect, Item, ItemId, Kind, ROWS};
use pilotlight_agents::adapter::Adapter;
use pilotlight_core::fleet::LABEL_DISTINCT_WIDTH;
use pilotlight_core::text::{counted, fit, isolated, lines, plain};

/// The entries below the sessions. `ends` are the sessions that may end with the program. `edits_settings`: there is a
/// settings file, or a place for one.
pub(super) fn footer(
    any_unseen: bool,
    ends: &[&Source<'_>],
    notifications: &NotificationState,
    login: &Login,
    bridges: &[AgentBridge],
    edits_settings: bool,
) -> [Item; 3] {
    [notifications.submenu(), settings(any_unseen, login, bridges, edits_settings), quit(ends)]
}

/// An entry with an error in the settings; a click opens them.
pub(super) fn settings_error(complaint: &str) -> Item {
    let text = fit(&format!("Settings: {}", plain(complaint, 110)), COLUMNS);
    Item::action(ItemId::own(Kind::WrongSettings), text, Effect::OpenSettings)
}

fn text_lines(text: &str, max: usize) -> impl Iterator<Item = Item> {
    lines(&plain(text, 200), COLUMNS, max).into_iter().map(Item::text)
}

/// The files of the bridge to terminals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bridge {
    /// Not installed.
    Off,
    /// Installed, in this version.
    On,
    /// Installed in another version, or incomplete.
    Old,
}

/// The bridge to terminals of one agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AgentBridge {
    pub agent: &'static dyn Adapter,
    pub state: Bridge,
    /// Whether it is still to be offered.
    pub is_offered: bool,
}

/// The entry that installs or removes a bridge, in a terminal that says what it does and what it costs, and asks. `are_several`:
/// the agent is named, as others have one, too.
pub(super) fn bridge(kind: Kind, bridge: &AgentBridge, are_several: bool) -> Item {
    let which = if are_several { bridge.agent.agent().to_string() } else { "terminal".into() };
    let (text, installs) = match bridge.state {
        Bridge::Off => (format!("Answer {which} sessions from here…"), true),
        Bridge::On | Bridge::Old => (format!("Stop answering {which} sessions…"), false),
    };
    Item::action(ItemId::own(kind), text, Effect::Bridge(bridge.agent.name(), installs))
}

/// The submenu of settings. `bridges` are those that can be installed or removed.
fn settings(any_unseen: bool, login: &Login, bridges: &[AgentBridge], edits_settings: bool) -> Item {
    let own = ItemId::own;
    let mut items = login.items();
    let are_several = bridges.len() > 1;
    for (number, bridge) in (0..).zip(bridges) {
        if bridge.state == Bridge::Old {
            let text = match are_several {
                true => format!("Renew {}'s bridge (another version)", bridge.agent.agent()),
                false => "Renew the bridge (another version)".into(),
            };
            items.push(Item::action(own(Kind::RenewBridge(number)), text, Effect::RenewBridge(bridge.agent.name())));
        }
        items.push(self::bridge(Kind::Bridge(number), bridge, are_several));
    }
    if edits_settings {
        items.push(Item::action(own(Kind::AddHost), "Add a machine…", Effect::AddHost));
        items.push(Item::action(own(Kind::EditSettings), "Edit settings…", Effect::OpenSettings));
    }
    items.extend([diagnostics(), Item::action(own(Kind::Refresh), "Refresh", Effect::Refresh)]);
    if any_unseen {
        items.push(Item::action(own(Kind::SeenAll), "Mark all as seen", Effect::SeenAll));
    }
    let version = format!("Pilotlight {}", crate::VERSION);
    let about = [version.as_str(), env!("CARGO_PKG_DESCRIPTION"), "It reads, and touches nothing until you click"];
    let about = about.into_iter().flat_map(|line| text_lines(line, 3)).collect();
    items.push(Item::submenu(own(Kind::About), "About", about));
    Item::submenu(own(Kind::Settings), "Settings", items)
}

/// The submenu of diagnostics: they are shown before they can be copied.
fn diagnostics() -> Item {
    let own = ItemId::own;
    let description = "What a bug report needs, without names, paths, prompts or commands";
    let mut items: Vec<_> = text_lines(description, 2).collect();
    items.push(Item::action(own(Kind::ShowDiagnostics), "Show diagnostics", Effect::ShowDiagnostics));
    items.push(Item::action(own(Kind::CopyDiagnostics), "Copy what was shown", Effect::CopyDiagnostics));
    items.push(Item::action(own(Kind::OwnLog), "Open log", Effect::OwnLog));
    Item::submenu(own(Kind::Diagnostics), "Diagnostics", items)
}

/// The entry that ends the program. If sessions may end with it, it is a submenu that names them and asks for a second
/// click.
fn quit(ends: &[&Source<'_>]) -> Item {
    let mut keys: Vec<_> = ends.iter().map(|source| source.key.clone()).collect();
    keys.sort_unstable();
    let quit = |text: &str| Item::action(ItemId::own(Kind::Quit), text, Effect::Quit(keys));
    if ends.is_empty() {
        return quit("Quit");
    }
    let mut names: Vec<_> = ends.iter().map(|source| source.row.label.cut(LABEL_DISTINCT_WIDTH)).collect();
    names.sort_unstable();
    let left_out = names.len().saturating_sub(ROWS - 2);
    let mut items: Vec<_> =
        names.iter().take(ROWS - 2).map(|name| Item::text(format!("This may end: {}", isolated(name)))).collect();
    if left_out > 0 {
        items.push(Item::text(format!("and {}", counted(left_out, "more session"))));
    }
    items.push(quit("Quit anyway: what ends can be resumed"));
    Item::submenu(ItemId::own(Kind::Quitting), "Quit…", items)
}
