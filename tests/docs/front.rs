//! What a newcomer meets first: README's path, the index, pictures, the comparison, and the questions that docs/faq.md answers.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn files(folder: &str, ends: &[&str]) -> Vec<PathBuf> {
    let entries = fs::read_dir(root().join(folder)).unwrap().map(|entry| entry.unwrap().path());
    let has_end = |path: &PathBuf| path.extension().is_some_and(|it| ends.iter().any(|end| it == *end));
    entries.filter(has_end).collect()
}

/// The part of README below this heading.
fn section(heading: &str) -> String {
    let readme = read("README.md");
    let (_, after) = readme.split_once(&format!("\n## {heading}\n")).unwrap_or_else(|| panic!("no {heading}"));
    after.split("\n## ").next().unwrap().to_owned()
}

/// The cells of each row of the first table in a text, without its head.
fn rows(text: &str) -> Vec<Vec<String>> {
    let lines = text.lines().skip_while(|line| !line.starts_with('|')).take_while(|line| line.starts_with('|'));
    let cells = |line: &str| line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect();
    lines.skip(2).map(cells).collect()
}

#[test]
fn the_path_of_a_newcomer_is_complete() {
    let first = section("First five minutes");
    let at = |what: &str| first.find(what).unwrap_or_else(|| panic!("{what}: {first}"));
    assert!(at("git clone https://") < at("cargo run --release") && at("cargo run --release") < at("bridge install"));
    assert!(at("bridge install") < at("Let Pilotlight answer here"));
    assert!(section("Install").contains("pilotlight bridge remove"));
    let installed = read("docs/packages.md");
    let (before, after) = installed.split_once("packaging/program.sh ").unwrap();
    let target = after.split('`').next().unwrap();
    assert!(before.contains(&format!("`rustup target add {target}`")), "{installed}");
    let readme = read("README.md");
    assert!(readme.contains("/actions/workflows/ci.yml/badge.svg") && readme.contains("docs/agents.md"));
    assert!(readme.contains(" MB of memory") && readme.contains("wake-ups a minute"), "no figures");
    assert!(rows(&section("What works with which agent")).iter().all(|row| row.len() == 6));
}

/// Each page is found from the index.
#[test]
fn the_index_names_every_page() {
    let index = read("docs/README.md");
    for page in files("docs", &["md"]) {
        let name = page.file_name().unwrap().to_str().unwrap();
        assert!(name == "README.md" || index.contains(&format!("]({name})")), "{name} is missing");
    }
}

/// What was looked at, and when, can be seen in each row.
#[test]
fn each_row_of_the_comparison_says_as_of_when_it_holds() {
    let compared = rows(&read("docs/comparison.md"));
    assert!(compared.len() > 8, "{compared:?}");
    for row in compared.iter().skip(1) {
        let seen = row.last().unwrap();
        assert!(row.len() == 5 && (seen.contains("2026") || seen.contains("README")), "{row:?}");
    }
    for peer in ["Irrlicht", "herdr", "CodexBar", "copilot-cli-tray", "AgentBar", "Superset"] {
        assert!(compared.iter().any(|row| row[0].contains(peer)), "{peer} is missing");
    }
}

#[test]
fn every_picture_is_shown_and_the_moving_one_is_small() {
    let pages: Vec<_> = ["", "docs"].into_iter().flat_map(|folder| files(folder, &["md"])).collect();
    let text: String = pages.iter().map(|page| fs::read_to_string(page).unwrap()).collect();
    let pictures =
        files("assets", &["svg", "png", "gif"]).into_iter().chain(files("assets/screenshots", &["png", "gif"]));
    let unused: BTreeSet<_> =
        pictures.filter(|path| !text.contains(path.file_name().unwrap().to_str().unwrap())).collect();
    assert!(unused.is_empty(), "no page shows {unused:?}");
    let film = root().join("assets/screenshots/approve.gif");
    assert!((100_000..2_000_000).contains(&fs::metadata(film).unwrap().len()));
}

#[test]
fn the_bridge_is_no_experiment_and_is_tried_with_the_newest_copilot() {
    for path in ["docs/bridge.md", "README.md"] {
        assert!(!read(path).to_lowercase().contains("experimental"), "{path}");
    }
    let weekly = read(".github/workflows/drift.yml");
    assert!(weekly.contains("cron:") && weekly.contains("PILOTLIGHT_TEST_RELEASE=$(npm view @github/copilot version)"));
    assert!(
        ["@anthropic-ai/claude-code", "@openai/codex"]
            .iter()
            .all(|it| weekly.contains(&format!("npm view {it} version")))
    );
}

#[test]
fn what_people_ask_has_an_answer() {
    let answers = read("docs/faq.md");
    for (question, words) in [
        ("Is it safe?", "SECURITY.md"),
        ("What does it cost a battery?", "an hour"),
        ("Can my phone tell me?", "jq"),
        ("Can it show sessions on another machine?", "ssh -t"),
        ("Does it work with VS Code?", "dev container"),
        ("Does it show other agents?", "Claude Code and Codex"),
        ("I have two Copilot homes", "homes = ["),
        ("Can it be quiet at night?", "quiet-hours = \""),
    ] {
        let (_, answer) = answers.split_once(&format!("\n## {question}\n")).unwrap_or_else(|| panic!("{question}"));
        assert!(answer.split("\n## ").next().unwrap().contains(words), "{question}: {words}");
    }
    assert!(read("README.md").contains("docs/faq.md") && read("docs/bars.md").contains("type = custom/script"));
    assert!(read("docs/notifications.md").contains("quiet-hours"));
}
