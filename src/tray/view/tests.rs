//! Tests of the view's shape, and of the words of a row.

use super::*;
use pilotlight_core::fleet::TurnView;
use pilotlight_core::session::{HomeId, Key};

#[test]
fn the_shape_depends_on_the_order_but_not_on_the_texts() {
    let row = |id: &str, text: &str| {
        Item::submenu(ItemId::of(&Key::new(HomeId::default(), id), Kind::Row), text, vec![Item::text("x")])
    };
    let one = [row("a", "1"), row("b", "2")];
    assert!(same_shape(&one, &[row("a", "other"), row("b", "words")]));
    assert!(!same_shape(&one, &[row("b", "2"), row("a", "1")]), "another order is another shape");
    assert!(!same_shape(&one, &one[..1]));
}

/// Progress alone sends no menu.
#[test]
fn case_162_a_row_says_when_something_last_happened_as_of_the_moment_it_is_shown() {
    let turn = TurnView { since: Time(0), tools: 8, older: false };
    let last = LastProgress::at(Time(100_000));
    let row = |name: &str, since: i64| Text::row(WORKS, named(name, 0), ShortReason::Turn(turn, Time(since)), &last);
    let now = Moment::of(Time(151_000));
    assert_eq!(row("a", 0).at(now), "▶ a — 150 s, 8 tools, last seen 50 s ago");
    assert_eq!(row("a", 0), row("a", 100_000), "a view does not differ by progress alone");
    assert_ne!(
        row("a", 0),
        Text::row(WORKS, named("a", 0), ShortReason::Turn(turn, Time(0)), &LastProgress::default())
    );
    // Of words that are too long, that is the last to go.
    assert_eq!(row(&"n".repeat(99), 0).at(now), format!("▶ {}… — last seen 50 s ago", "n".repeat(24)));
    let older = TurnView { since: Time(-4_500_000), tools: 12, older: true };
    let row = Text::row(WORKS, named(&"n".repeat(99), 0), ShortReason::Turn(older, Time(0)), &last);
    assert_eq!(row.at(now), format!("▶ {}… — last seen 50 s ago", "n".repeat(24)));
    let last = Text::since_last("Last activity", &last);
    assert_eq!(last.at(now), "Last activity, 50 s ago");
}

const WORKS: Lead = Lead { status: Status::Working, unseen: false };

fn named(name: &str, alone: usize) -> RowName {
    RowName { whole: name.into(), alone, least: 24, mark: String::new() }
}

fn asks(name: &str, alone: usize, short_reason: &str) -> String {
    let lead = Lead { status: Status::NeedsPermission, unseen: false };
    Text::row(lead, named(name, alone), ShortReason::of(short_reason), &LastProgress::default()).at(Moment::of(Time(0)))
}

#[test]
fn of_a_row_that_is_too_long_the_title_is_cut_before_the_command() {
    let title = "billing-api · Write the migration of invoices";
    let row = |short_reason: &str| asks(title, "billing-api".len(), short_reason);
    assert_eq!(row("ls"), "⚑ billing-api · Write the migration of inv… — ls");
    assert_eq!(row("rm -rf build"), "⚑ billing-api · Write the migrat… — rm -rf build");
    assert_eq!(row("rm -rf build && cargo t"), "⚑ billing-api · Write… — rm -rf build && cargo t");
    assert_eq!(row("rm -rf build && cargo test"), "⚑ billing-api — rm -rf build && cargo test");
    assert_eq!(row(&"r".repeat(99)), format!("⚑ billing-api — {}…", "r".repeat(31)));
    // Where another session has the same folder, its title stays.
    assert_eq!(asks(title, 0, &"r".repeat(99)), format!("⚑ billing-api · Write the… — {}…", "r".repeat(18)));
}

#[test]
fn case_667_the_agent_is_the_first_to_be_left_out_of_a_row() {
    let row = |short_reason: &str, least| {
        let name = RowName { whole: "web-shop · Fix the tests".into(), alone: 0, least, mark: " (Claude)".into() };
        Text::row(WORKS, name, ShortReason::of(short_reason), &LastProgress::default()).at(Moment::of(Time(0)))
    };
    assert_eq!(row("npm test", 24), "▶ web-shop · Fix the tests (Claude) — npm test");
    assert_eq!(row("npm run test", 24), "▶ web-shop · Fix the tests — npm run test");
    assert_eq!(row(&"r".repeat(99), 24), format!("▶ web-shop · Fix the tests — {}…", "r".repeat(18)));
    // Where only the agent tells two sessions apart, it stays.
    assert_eq!(row(&"r".repeat(99), 33), format!("▶ web-shop · Fix the tests (Claude) — {}…", "r".repeat(9)));
}

#[test]
fn a_long_row_is_cut_in_both_its_name_and_its_reason() {
    assert_eq!(asks("a", 0, "40 s"), "⚑ a — 40 s");
    let long = "n".repeat(99);
    assert_eq!(asks(&long, 99, &"r".repeat(99)), format!("⚑ {}… — {}…", "n".repeat(23), "r".repeat(18)));
    assert_eq!(asks("a", 1, &"r".repeat(99)).width(), COLUMNS);
    for (name, short_reason) in
        [("日".repeat(40), "ls".into()), ("a".into(), "本".repeat(40)), ("日".repeat(40), "本".repeat(40))]
    {
        for alone in [0, name.len()] {
            let row = asks(&name, alone, &short_reason);
            assert!((COLUMNS - 2..=COLUMNS).contains(&row.width()), "{row}");
        }
    }
}

#[test]
fn case_172_right_to_left_names_and_commands_are_isolated() {
    let row = asks("שלום · עולם", 0, "rm -rf build");
    assert_eq!(row, "⚑ \u{2068}שלום · עולם\u{2069} — rm -rf build");
    assert_eq!(asks("api", 3, "rm שלום"), "⚑ api — \u{2068}rm שלום\u{2069}");
    let long = asks(&"ש".repeat(99), 0, &"ל".repeat(99));
    assert_eq!((long.matches('\u{2068}').count(), long.matches('\u{2069}').count(), long.width()), (2, 2, COLUMNS));
}

#[test]
fn case_798_the_mark_at_the_end_of_a_row_is_never_cut() {
    for (reason, name) in
        [("done", "billing-api"), (&*"very long ".repeat(20), "billing-api"), ("done", &*"n".repeat(90)), ("", "x")]
    {
        let row = Text::row(WORKS, named(name, 0), ShortReason::of(reason), &LastProgress::default());
        let (plain, marked) = (row.clone().at(Moment::of(Time(0))), row.ending("◕").at(Moment::of(Time(0))));
        assert!(marked.ends_with(" ◕") && marked.width() <= COLUMNS, "{marked}");
        assert!(!plain.contains('◕'));
    }
}
