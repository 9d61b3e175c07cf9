//! What stands below the sessions: always the same entries in the same places, so that a hand finds them.

use crate::act::Order;
use crate::core::text::plain;
use crate::desktop::actions;
use crate::desktop::autostart::State as Login;
use crate::desktop::details::Source;
use crate::desktop::hush::Notices;
use crate::desktop::view::{Effect, Item, ItemId, Kind};

/// The entries below the sessions. `ends` are those that may end with the program, `wrong` is what is wrong with the settings.
pub(super) fn footer(
    any_unseen: bool,
    left_open: Vec<Order>,
    ends: &[&Source<'_>],
    notices: &Notices,
    login: &Login,
    wrong: Option<&str>,
) -> Vec<Item> {
    let own = ItemId::own;
    let version = format!("Pilotlight {}", crate::VERSION);
    let about = [version.as_str(), env!("CARGO_PKG_DESCRIPTION"), "It reads, and touches nothing until you click"];
    vec![
        Item::action(own(Kind::SeenAll), "Mark all as seen", any_unseen, Effect::SeenAll),
        Item::action(own(Kind::Refresh), "Refresh", true, Effect::Refresh),
        notices.submenu(),
        actions::reopen(left_open),
        login.item(),
        settings(wrong),
        Item::action(own(Kind::OwnLog), "Open log", true, Effect::OwnLog),
        diagnostics(),
        Item::Submenu {
            id: own(Kind::About),
            text: "About".into(),
            enabled: true,
            items: about.iter().map(|line| Item::text(plain(line, 130))).collect(),
        },
        quit(ends),
    ]
}

/// Opens the settings; where they are wrong, it says where.
fn settings(wrong: Option<&str>) -> Item {
    let text = match wrong {
        None => "Settings…".to_owned(),
        // The file's name and place come first, after the folders that it is in.
        Some(wrong) => format!(
            "Settings: {}",
            plain(wrong.rsplit_once(std::path::MAIN_SEPARATOR).map_or(wrong, |(_, name)| name), 110)
        ),
    };
    Item::action(ItemId::own(Kind::Settings), text, true, Effect::OpenSettings)
}

/// What a bug report needs: shown first, copied then.
fn diagnostics() -> Item {
    let own = ItemId::own;
    let items = vec![
        Item::text("What a bug report needs, without names, paths, prompts or commands"),
        Item::action(own(Kind::ShowDiagnostics), "Show diagnostics", true, Effect::ShowDiagnostics),
        Item::action(own(Kind::CopyDiagnostics), "Copy what was shown", true, Effect::CopyDiagnostics),
    ];
    Item::Submenu { id: own(Kind::Diagnostics), text: "Diagnostics".into(), enabled: true, items }
}

/// The end of the program; where sessions would end with it, they are named, and it takes a second click.
fn quit(ends: &[&Source<'_>]) -> Item {
    let quit = |text: &str| Item::action(ItemId::own(Kind::Quit), text, true, Effect::Quit);
    if ends.is_empty() {
        return quit("Quit");
    }
    let mut names: Vec<_> = ends.iter().map(|source| source.row.label.cut(60)).collect();
    names.sort_unstable();
    let mut items: Vec<_> = names.iter().map(|name| Item::text(format!("This may end: {name}"))).collect();
    items.push(quit("Quit all the same: what ends can be resumed"));
    Item::Submenu { id: ItemId::own(Kind::Quitting), text: "Quit…".into(), enabled: true, items }
}
