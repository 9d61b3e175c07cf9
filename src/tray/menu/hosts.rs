//! The rows of machines that are not reached.

use crate::tray::view::{COLUMNS, Effect, Item, ItemId, Kind};
use pilotlight_core::remote::Unreached;
use pilotlight_core::text::{lines, plain};
use pilotlight_core::time::Time;
use pilotlight_engine::Trouble;

/// Maximum number of such machines with a row of their own.
pub(super) const ROWS_MAX: usize = 2;
/// Maximum number of lines of a reason.
const LINES_MAX: usize = 4;

/// A row for each, up to `max` of them, and one for those that are too many.
pub(super) fn rows(troubles: &[Trouble], max: usize, now: Time) -> Vec<Item> {
    let mut rows: Vec<_> = (0..).zip(troubles.iter().take(max)).map(|(n, trouble)| row(n, trouble, now)).collect();
    let more = &troubles[rows.len()..];
    if !more.is_empty() {
        let more_than = if rows.is_empty() { "" } else { "more " };
        let text = match more.len() {
            1 => format!("1 {more_than}machine is not reached"),
            n => format!("{n} {more_than}machines are not reached"),
        };
        let number = |n: usize| u8::try_from(max + n).unwrap_or(u8::MAX - 1);
        // Where no machine has a row, submenus have none in them.
        let item = |(n, trouble): (usize, &Trouble)| match max {
            0 => retry(number(n), format!("{}: try again", trouble.host), trouble),
            _ => row(number(n), trouble, now),
        };
        let items = more.iter().take(10).enumerate().map(item).collect();
        rows.push(Item::submenu(ItemId::own(Kind::Host(u8::MAX)), text, items));
    }
    rows
}

/// `devbox is not reached`, with the reason, since when, and what may be done about it.
fn row(number: u8, trouble: &Trouble, now: Time) -> Item {
    let Trouble { host, why, .. } = trouble;
    let why = lines(&plain(why, 300), COLUMNS, LINES_MAX);
    let Unreached { since, again } = trouble.unreached(now);
    let since = match again {
        Some(again) => format!("Since {since}, next try at {again}"),
        None => format!("Since {since}"),
    };
    let facts = why.into_iter().chain([since]);
    let fact = |(n, text)| Item::action(ItemId::own(Kind::HostFact(number, n)), text, Effect::Seen);
    let mut items: Vec<_> = (0..).zip(facts).map(fact).collect();
    items.push(Item::Separator);
    items.push(retry(number, "Try again now".into(), trouble));
    Item::submenu(ItemId::own(Kind::Host(number)), format!("{host} is not reached"), items)
}

fn retry(number: u8, text: String, trouble: &Trouble) -> Item {
    Item::action(ItemId::own(Kind::RetryHost(number)), text, Effect::RetryHost((*trouble.host).into()))
}
