//! The remedies that stand below rows, one click from the open menu.

use super::names::Names;
use crate::tray::actions;
use crate::tray::details::Source;
use crate::tray::view::Item;

/// Maximum number of remedies.
pub(super) const REMEDIES_MAX: usize = 3;

/// The remedies of these sessions, below those rows that can be shown. What mends a session comes before what only
/// shows it.
pub(super) fn remedies<'a, 'b: 'a>(
    need: impl Iterator<Item = &'a &'a Source<'b>>,
    names: &Names<'_>,
) -> Vec<Option<Item>> {
    let remedy = |source: &&Source<'_>| actions::remedy(source, |room| names.in_action(&source.row.label, room));
    let mut remedies: Vec<_> = need.map(remedy).collect();
    let mends = remedies.iter().flatten().filter(|remedy| !actions::only_shows(remedy)).count();
    let (mut mend, mut show) = (REMEDIES_MAX, REMEDIES_MAX.saturating_sub(mends));
    for remedy in &mut remedies {
        let Some(item) = remedy else { continue };
        let left = if actions::only_shows(item) { &mut show } else { &mut mend };
        match left.checked_sub(1) {
            Some(less) => *left = less,
            None => *remedy = None,
        }
    }
    remedies
}
