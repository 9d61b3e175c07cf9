//! Names of rows: the title, else the folder, and how names that read alike are distinguished.

use super::story::{START, Story};
use pilotlight_core::agent::Agent;
use pilotlight_core::fleet::{About, LABEL_DISTINCT_WIDTH, Row, Session, distinguish, short_id};
use pilotlight_core::session::Observed;
use proptest::prelude::*;
use std::collections::HashSet;

/// A row with a title, a folder and a branch, each of them possibly empty.
fn row(id: &str, title: &str, folder: &str, branch: &str) -> Row {
    let some = |text: &str| (!text.is_empty()).then(|| Box::from(text));
    let about =
        About { name: some(title), cwd: some(folder), branch: some(branch), created: Some(START), ..About::default() };
    let session = Session { id: id.into(), observed: Observed { about, ..Observed::default() }, ..Session::default() };
    session.row(Story::new().moment(0), &Story::new().limits).0
}

fn named(mut rows: Vec<Row>) -> Vec<String> {
    distinguish(&mut rows);
    rows.into_iter().map(|row| row.name).collect()
}

fn labels(mut rows: Vec<Row>) -> Vec<String> {
    distinguish(&mut rows);
    rows.into_iter().map(|row| row.label.to_string()).collect()
}

const A: &str = "aaaaaaaa-1111-4000-8000-000000000001";
const B: &str = "bbbbbbbb-2222-4000-8000-000000000002";
const C: &str = "cccccccc-3333-4000-8000-000000000003";

#[test]
fn a_row_is_named_by_its_title_else_its_folder() {
    assert_eq!(row(A, "Paint the fence", "/home/dev/garden", "main").name, "Paint the fence");
    assert_eq!(row(A, "", "/home/dev/garden", "main").name, "garden");
    assert_eq!(row(A, "", "/home/dev/garden/", "").name, "garden");
    assert_eq!(row(A, "", "C:\\Users\\dev\\garden", "").name, "garden");
    assert_eq!(row(A, "\n ", "/home/dev/garden", "").name, "garden");
    assert_eq!(row(A, "", "", "").name, "aaaaaaaa");
    let mut session = Session {
        id: A.into(),
        observed: Observed { facts: Story::new().facts(0), ..Observed::default() },
        ..Session::default()
    };
    session.observed.about.created = Some(START);
    let (from_log, _) = session.row(Story::new().moment(0), &Story::new().limits);
    assert_eq!((&*from_log.name, from_log.branch.as_deref()), ("project", Some("main")));
}

#[test]
fn case_282_rows_of_several_agents_name_theirs_and_read_differently() {
    let of = |agent: &str, mut row: Row| {
        row.agent = Agent::reported(agent).unwrap();
        row
    };
    let one = |id| row(id, "", "/home/dev/shed", "main");
    let alone = vec![of("aider", one(A)), of("aider", row(B, "Paint", "/home/dev/fence", ""))];
    assert_eq!(labels(alone), ["shed", "fence · Paint"], "nothing to tell apart");
    let both = || vec![of("aider", one(A)), of("goose", one(B))];
    assert_eq!(labels(both()), ["shed (aider)", "shed (goose)"]);
    assert_eq!(named(both()), ["shed · aider", "shed · goose"]);
    let more = vec![of("aider", one(A)), of("goose", row(B, "", "/home/dev/shed", "dev")), of("goose", one(C))];
    assert_eq!(labels(more), ["shed (aider)", "shed (dev) (goose)", "shed (main) (goose)"]);
    let long = |id| row(id, "", "/home/dev/a-shed-with-a-name-that-is-long", "main");
    let cut: HashSet<_> = {
        let mut rows = vec![of("aider", long(A)), of("goose", long(B))];
        distinguish(&mut rows);
        rows.iter().map(|row| row.label.cut(LABEL_DISTINCT_WIDTH)).collect()
    };
    assert_eq!(cut.len(), 2, "{cut:?}");
}

/// The title is what people know a session by. The agent follows it, and nothing else stands in between unless two labels
/// would read the same.
#[test]
fn case_667_the_title_comes_before_the_agent_and_what_is_not_needed_is_left_out() {
    let of = |agent: &str, id, title| {
        let mut row = row(id, title, "/home/dev/web-shop", "main");
        row.agent = Agent::reported(agent).unwrap();
        row
    };
    let titles = vec![of("aider", A, "Fix the tests"), of("goose", B, "Fix the docs"), of("goose", C, "Fix the test")];
    assert_eq!(
        labels(titles),
        ["web-shop · Fix the tests (aider)", "web-shop · Fix the docs (goose)", "web-shop · Fix the test (goose)"]
    );
    let same = vec![of("aider", A, "Fix it"), of("goose", B, "Fix it")];
    assert_eq!(labels(same), ["web-shop · Fix it (aider)", "web-shop · Fix it (goose)"], "the agent tells them apart");
    let same = vec![of("goose", A, "Fix it"), of("goose", B, "Fix it"), of("aider", C, "Fix it")];
    assert_eq!(
        labels(same),
        ["web-shop (aaaaaaaa) · Fix it (goose)", "web-shop (bbbbbbbb) · Fix it (goose)", "web-shop · Fix it (aider)"]
    );
}

#[test]
fn case_111_a_label_has_the_folder_first_then_the_title() {
    let label = |title: &str, folder: &str| row(A, title, folder, "main").label.to_string();
    assert_eq!(label("Write the migration", "/home/dev/billing-api"), "billing-api · Write the migration");
    assert_eq!(label("billing-api", "/home/dev/billing-api"), "billing-api");
    assert_eq!(label("", "/home/dev/billing-api"), "billing-api");
    assert_eq!(label("Write the migration", ""), "Write the migration");
    assert_eq!(label("", ""), "aaaaaaaa");
    // An invisible name does not count.
    for blank in ["\u{3164}", "\u{2800}\u{2800}", "\u{200d}", " \n"] {
        assert_eq!(label(blank, "/home/dev/shed"), "shed");
        assert_eq!(label(blank, &format!("/home/{blank}")), "aaaaaaaa");
    }
}

#[test]
fn case_111_what_distinguishes_labels_precedes_any_cut() {
    let title = "Write the migration of the billing tables to the new schema, and its tests";
    let two = |a: [&str; 2], b: [&str; 2]| labels(vec![row(A, title, a[0], a[1]), row(B, title, b[0], b[1])]);
    let starts = |labels: Vec<String>, starts: [&str; 2]| {
        for (label, start) in labels.iter().zip(starts) {
            assert_eq!(*label, format!("{start} · {title}"));
        }
    };
    starts(two(["/w/billing-api", "x"], ["/w/billing-web", "x"]), ["billing-api", "billing-web"]);
    starts(two(["/w/api", "main"], ["/w/api", "fix"]), ["api (main)", "api (fix)"]);
    starts(two(["/w/api", "main"], ["/w/api", ""]), ["api (main)", "api"]);
    starts(two(["/w/api", "x"], ["/w/api", "x"]), ["api (x, aaaaaaaa)", "api (x, bbbbbbbb)"]);
    starts(two(["/w/billing-api", "x"], ["/v/billing-api", "x"]), ["billing-api (aaaaaaaa)", "billing-api (bbbbbbbb)"]);
    let long = ["/w/the-service-that-sends-the-bills-one", "x"];
    let other = ["/w/the-service-that-sends-the-bills-two", "x"];
    starts(two(long, other), ["the-service-… (aaaaaaaa)", "the-service-… (bbbbbbbb)"]);
    let wide = ["/w/請求書を送るサービスの本体と試験", "x"];
    starts(two(wide, wide), ["請求書を送る… (aaaaaaaa)", "請求書を送る… (bbbbbbbb)"]);
    let twin = "aaaaaaaa-1111-4000-8000-000000000009";
    let twins = labels(vec![row(A, title, "/w/api", ""), row(twin, title, "/w/api", "")]);
    starts(twins, ["api (…00000001)", "api (…00000009)"]);
}

#[test]
fn rows_that_differ_keep_their_names() {
    assert_eq!(named(vec![row(A, "Paint", "/a", "x"), row(B, "Sweep", "/a", "x")]), ["Paint", "Sweep"]);
    assert_eq!(named(vec![row(A, "Paint", "/a", "x")]), ["Paint"]);
    assert_eq!(named(vec![]), [""; 0]);
}

#[test]
fn rows_that_read_alike_get_their_folder_first() {
    let names =
        named(vec![row(A, "Paint", "/home/shed", "x"), row(B, "Paint", "/home/barn", "x"), row(C, "Sweep", "/a", "x")]);
    assert_eq!(names[2], "Sweep");
    assert!(names[0].starts_with("Paint") && names[0].contains("shed") && !names[0].contains('x'), "{names:?}");
    assert!(names[1].starts_with("Paint") && names[1].contains("barn"), "{names:?}");
}

#[test]
fn rows_of_one_folder_get_their_branch() {
    let names = named(vec![row(A, "Paint", "/home/shed", "main"), row(B, "Paint", "/home/shed", "green")]);
    assert!(names[0].contains("main") && names[1].contains("green"), "{names:?}");
    assert!(!names[0].contains("aaaaaaaa"), "the id is not needed: {names:?}");
    assert!(!names[0].contains("shed"), "the folder does not distinguish them: {names:?}");
    let names = named(vec![row(A, "", "/home/shed", "main"), row(B, "", "/home/shed", "green")]);
    assert!(names[0].contains("shed") && names[0].contains("main") && names[1].contains("green"), "{names:?}");
}

#[test]
fn rows_of_one_branch_get_their_short_id() {
    let names = named(vec![row(A, "Paint", "/home/shed", "main"), row(B, "Paint", "/home/shed", "main")]);
    assert!(names[0].contains(short_id(A)) && names[1].contains(short_id(B)), "{names:?}");
    let names = named(vec![row(A, "Paint", "", ""), row(B, "Paint", "", "")]);
    assert!(names[0].contains("aaaaaaaa") && names[1].contains("bbbbbbbb"), "{names:?}");
}

#[test]
fn rows_whose_ids_begin_alike_get_more_of_the_id() {
    let alike = "aaaaaaaa-1111-4000-8000-000000000009";
    let names = named(vec![row(A, "Paint", "/home/shed", "main"), row(alike, "Paint", "/home/shed", "main")]);
    assert_ne!(names[0], names[1]);
}

#[test]
fn some_rows_of_a_group_may_lack_what_distinguishes_the_others() {
    let names =
        named(vec![row(A, "Paint", "/home/shed", ""), row(B, "Paint", "", ""), row(C, "Paint", "/home/shed", "x")]);
    assert_eq!(names.iter().collect::<HashSet<_>>().len(), 3, "{names:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_two_rows_read_alike(rows in prop::collection::vec(("[ab]?", "(/[abc]){0,2}", "[ab]?"), 0..12)) {
        let rows: Vec<_> = rows
            .iter()
            .enumerate()
            .map(|(n, (title, folder, branch))| row(&format!("{n:08x}-0000-4000-8000-000000000000"), title, folder, branch))
            .collect();
        let names = named(rows.clone());
        let different: HashSet<_> = names.iter().collect();
        prop_assert_eq!(different.len(), names.len(), "{:?}", names);
        for (row, name) in rows.iter().zip(&names) {
            prop_assert!(name.starts_with(&row.name), "{} is called {}", row.name, name);
        }
    }

    /// At every width that labels are cut to.
    #[test]
    fn case_111_no_two_labels_read_alike_when_cut(
        rows in prop::collection::vec(("[ab]{0,30}", "(/[abc請]{1,30}){0,2}", "([ab]{1,20})?"), 0..12),
        few in prop::collection::vec(("[a]?", "(/[ab])?", "[ab]?"), 0..12),
    ) {
        for rows in [rows, few] {
            let rows: Vec<_> = rows
                .iter()
                .enumerate()
                .map(|(n, (title, folder, branch))| {
                    let agent = Agent::reported(if n % 2 == 0 { "aider" } else { "goose" }).unwrap();
                    Row { agent, ..row(&format!("{n:08x}-0000-4000-8000-000000000000"), title, folder, branch) }
                })
                .collect();
            let mut rows = rows;
            distinguish(&mut rows);
            for columns in [LABEL_DISTINCT_WIDTH, 30, 36, 44, 60, 120] {
                let cut: HashSet<_> = rows.iter().map(|row| row.label.cut(columns)).collect();
                prop_assert_eq!(cut.len(), rows.len(), "{} columns: {:?}", columns, cut);
            }
        }
    }

    #[test]
    fn a_name_does_not_depend_on_the_order(rows in prop::collection::vec(("[ab]?", "(/[abc]){0,2}", "[ab]?"), 0..8)) {
        let rows: Vec<_> = rows
            .iter()
            .enumerate()
            .map(|(n, (title, folder, branch))| row(&format!("{n:08x}-0000-4000-8000-000000000000"), title, folder, branch))
            .collect();
        let reversed = |name: fn(Vec<Row>) -> Vec<String>| {
            let mut names = name(rows.iter().rev().cloned().collect());
            names.reverse();
            names
        };
        prop_assert_eq!(named(rows.clone()), reversed(named));
        prop_assert_eq!(labels(rows.clone()), reversed(labels));
    }
}
