//! The sessions of other agents in a demo, and what each does when: a table like that of the
//! [`script`](crate::script), which has the same length and repeats with it.

use super::guest::{Act, Part, Post};
use super::{claude_code, codex, reported};
use crate::script::{CAST, LENGTH, id_of};
use pilotlight_agents::home::Home;
use pilotlight_core::time::Span;
use std::path::Path;

/// A session.
pub(crate) struct Role {
    pub part: &'static Part,
    /// Its title. It says that this is a demo, wherever it is shown.
    pub title: &'static str,
    /// The name of its working folder.
    pub folder: &'static str,
}

/// The agents.
pub(crate) const PARTS: [&Part; 3] = [&claude_code::PART, &codex::PART, &reported::PART];

/// All of them.
pub(crate) const GUESTS: [Role; 5] = [
    role(&claude_code::PART, "Demo: Rename the settings", "editor"),
    role(&claude_code::PART, "Demo: Publish the handbook", "handbook"),
    role(&codex::PART, "Demo: Speed up the search", "search"),
    role(&codex::PART, "Demo: Fetch the fonts", "paint-shop"),
    role(&reported::PART, "Demo: Sort the recipes", "kitchen"),
];

/// Works steadily.
const SETTINGS: usize = 0;
/// Asks for a permission.
const HANDBOOK: usize = 1;
/// Works steadily.
const SEARCH: usize = 2;
/// Probably asks for a permission.
const FONTS: usize = 3;
/// Is reported.
const RECIPES: usize = 4;

/// A line of the table: the seconds from the start, whose it is, and the act.
pub(crate) type Beat = (u32, usize, Act);

/// The table, in chronological order.
pub(crate) const BEATS: &[Beat] = &{
    use Act::{Asks, Done, Enter, Prompt, Runs, Says};
    [
        (0, SETTINGS, Enter),
        (0, HANDBOOK, Enter),
        (0, SEARCH, Enter),
        (0, FONTS, Enter),
        (0, RECIPES, Enter),
        // The first prompt brings the title.
        (0, SEARCH, Prompt("Find out why the search is slow, and speed it up.")),
        (0, FONTS, Prompt("Fetch the fonts that the shop window needs.")),
        (0, RECIPES, Prompt("Sort the recipes by season.")),
        (1, SETTINGS, Prompt("Rename the setting `tabs` to `indent`.")),
        (3, SETTINGS, Runs("grep -rn tabs settings")),
        (4, HANDBOOK, Prompt("Publish the handbook.")),
        (5, SETTINGS, Done),
        (5, RECIPES, Runs("reads the recipes")),
        (6, SEARCH, Runs("rg -n 'fn search' src")),
        (9, SEARCH, Done),
        (10, FONTS, Runs("ls fonts")),
        (10, HANDBOOK, Runs("mdbook build")),
        (11, FONTS, Done),
        (14, HANDBOOK, Done),
        (15, SETTINGS, Runs("sed -i s/tabs/indent/ settings/*.toml")),
        (17, SEARCH, Runs("cargo bench search")),
        (18, HANDBOOK, Asks("rsync -a book/ web:handbook")),
        (20, SETTINGS, Done),
        (22, FONTS, Asks("curl -O https://example.org/fonts.zip")),
        (24, SETTINGS, Runs("cargo test settings")),
        (34, RECIPES, Done),
        (36, RECIPES, Asks("may it change index.md?")),
        (50, SEARCH, Done),
        (55, SETTINGS, Done),
        (60, SEARCH, Runs("cargo bench search -- --save-baseline new")),
        (62, SETTINGS, Runs("cargo test")),
        (84, HANDBOOK, Done),
        (86, FONTS, Done),
        (88, RECIPES, Done),
        (90, HANDBOOK, Says("The handbook is published.")),
        (94, FONTS, Says("The fonts are in `fonts`.")),
        (95, SETTINGS, Done),
        (98, SEARCH, Done),
        (100, SETTINGS, Says("The setting is called `indent` everywhere.")),
        (102, RECIPES, Says("The recipes are sorted.")),
        (106, SEARCH, Says("The search takes a third of the time.")),
    ]
};

const fn role(part: &'static Part, title: &'static str, folder: &'static str) -> Role {
    Role { part, title, folder }
}

/// A line of the table that repeats endlessly, at `speed` times the usual pace: with its time from the start.
pub(crate) fn beat(index: usize, speed: u32) -> (Span, Beat) {
    let beat = BEATS[index % BEATS.len()];
    let repetition = i64::try_from(index / BEATS.len()).unwrap_or(i64::MAX);
    let due = repetition.saturating_mul(i64::from(LENGTH)).saturating_add(i64::from(beat.0));
    (Span(due.saturating_mul(1000) / i64::from(speed.max(1))), beat)
}

/// Where one of them is, in the stage's folder. Their ids follow those of the stage's own sessions.
pub(crate) fn post(folder: &Path, index: usize) -> Post {
    let role = &GUESTS[index];
    Post {
        home: Home::of(role.part.adapter, folder.join(role.part.home)),
        work: folder.join("work").join(role.folder),
        id: id_of(CAST.len() + index).into(),
        title: role.title,
    }
}

/// The one with this id.
pub(crate) fn by_id(folder: &Path, id: &str) -> Option<(&'static Part, Post)> {
    (0..GUESTS.len()).map(|index| (GUESTS[index].part, post(folder, index))).find(|(_, post)| *post.id == *id)
}
