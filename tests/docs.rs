//! The documents agree with the program as far as a test can check: links and named files exist, commands parse,
//! settings are known, and docs/config.md shows every key with its real default.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failing test should say where")]

mod support;

mod docs {
    mod claims;
    mod front;
    pub(crate) mod listing;
    mod schema;
    mod workflows;
}

use docs::listing::tests;
use pilotlight_core::verdict::Status;
use pilotlight_engine::config::{Config, parse, print};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Folders whose files the documents name by path.
const FOLDERS: [&str; 7] = ["src/", "crates/", "tests/", "docs/", "assets/", "benches/", "packaging/"];

/// Files whose tests are not compiled here.
const ELSEWHERE: [&str; 1] = ["crates/system/src/watcher/portable.rs"];

/// One of our documents.
struct Page {
    path: PathBuf,
    text: String,
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// All documents.
fn pages() -> Vec<Page> {
    let folders =
        ["", "docs", "benches", "packaging", "tests", "tests/cases", "tests/traces"].map(|folder| root().join(folder));
    let files = folders.iter().filter_map(|folder| std::fs::read_dir(folder).ok()).flatten();
    let paths = files.map(|entry| entry.unwrap().path()).filter(|path| path.extension().is_some_and(|it| it == "md"));
    let mut pages: Vec<Page> = paths.map(|path| Page { text: std::fs::read_to_string(&path).unwrap(), path }).collect();
    pages.sort_by(|a, b| a.path.cmp(&b.path));
    assert!(pages.len() >= 4, "documents were found");
    pages
}

impl Page {
    fn name(&self) -> String {
        self.path.strip_prefix(root()).unwrap().display().to_string()
    }

    /// The code blocks, indented or fenced. Continuation lines of a list are indented less.
    fn blocks(&self) -> Vec<String> {
        let (mut blocks, mut fenced, mut before_blank) = (vec![String::new()], false, true);
        for line in self.text.lines() {
            if line.starts_with("```") {
                fenced = !fenced;
                blocks.push(String::new());
                continue;
            }
            let open = blocks.last().is_some_and(|block| !block.is_empty());
            match line.strip_prefix("    ") {
                _ if fenced => *blocks.last_mut().unwrap() += &format!("{line}\n"),
                Some(code) if before_blank || open => *blocks.last_mut().unwrap() += &format!("{code}\n"),
                _ if line.is_empty() && open => blocks.last_mut().unwrap().push('\n'),
                _ => blocks.push(String::new()),
            }
            before_blank = line.is_empty();
        }
        blocks.into_iter().filter(|block| !block.trim().is_empty()).collect()
    }

    /// The lines of prose, without blocks of code.
    fn prose(&self) -> impl Iterator<Item = &str> {
        let mut fenced = false;
        self.text.lines().filter(move |line| {
            fenced ^= line.starts_with("```");
            !fenced && !line.starts_with("    ")
        })
    }

    /// The code spans in prose, line by line.
    fn spans(&self) -> Vec<&str> {
        self.prose().flat_map(|line| line.split('`').skip(1).step_by(2)).collect()
    }

    /// The `pilotlight` commands in it.
    fn commands(&self) -> Vec<String> {
        let mut found = Vec::new();
        for block in self.blocks() {
            found.extend(block.lines().filter_map(command_in));
        }
        for line in self.prose() {
            // In a table of commands they are all in the first cell; an option may have a span of its own.
            let cell = line.replace("\\|", "\u{0}");
            let is_table = cell.starts_with("| `pilotlight");
            let cell = if is_table { cell.split('|').nth(1).unwrap_or_default() } else { &cell };
            for span in cell.split('`').skip(1).step_by(2) {
                let span = span.replace('\u{0}', "|");
                if let Some(command) = command_in(&span) {
                    found.push(command);
                } else if is_table && span.starts_with('[') {
                    *found.last_mut().unwrap() += &format!(" {span}");
                } else if is_table {
                    found.push(span);
                }
            }
        }
        found
    }
}

/// The arguments of a `pilotlight` command in a line of code.
fn command_in(line: &str) -> Option<String> {
    let at = line.match_indices("pilotlight").map(|(at, _)| at).find(|&at| {
        let before = line[..at].chars().next_back();
        let after = line[at + "pilotlight".len()..].chars().next();
        before.is_none_or(|c| " \"'(=".contains(c)) && after.is_none_or(|c| c == ' ')
    })?;
    let before = line[..at].trim_end_matches(['"', '\'', '(', '=', '#']);
    let is_command = before.is_empty() || !line[..at].ends_with(' ') || before.ends_with(" exec ") || before == "exec ";
    if !is_command || line.trim_start().starts_with("# <") {
        return None;
    }
    let rest = &line[at + "pilotlight".len()..];
    let end = rest.find([')', '"', '\'', '#', ';', '>']).unwrap_or(rest.len());
    // A pipe with spaces leads to another program; one inside a word separates alternatives.
    let rest = rest[..end].split(" | ").next().unwrap_or_default();
    Some(rest.trim().to_owned())
}

/// The words of a command, without brackets, with the first of several alternatives.
fn words(command: &str) -> Vec<String> {
    let plain = command.replace(['[', ']'], " ");
    plain.split_whitespace().map(|word| word.split('|').next().unwrap_or_default().to_owned()).collect()
}

/// A heading's anchor in links.
fn anchor(heading: &str) -> String {
    let lower = heading.trim().to_lowercase();
    lower
        .chars()
        .filter(|c| c.is_alphanumeric() || " -_".contains(*c))
        .map(|c| if c == ' ' { '-' } else { c })
        .collect()
}

#[test]
fn links_lead_to_files_and_headings() {
    for page in pages() {
        for line in page.prose() {
            for link in line.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
                if link.contains("://") || link.starts_with("mailto:") {
                    continue;
                }
                let (file, heading) =
                    link.split_once('#').map_or((link, None), |(file, heading)| (file, Some(heading)));
                let target = if file.is_empty() { page.path.clone() } else { page.path.parent().unwrap().join(file) };
                assert!(target.exists(), "{}: {link} leads nowhere", page.name());
                if let Some(heading) = heading {
                    let text = std::fs::read_to_string(&target).unwrap();
                    let mut headings = text.lines().filter(|line| line.starts_with('#'));
                    let exists = headings.any(|line| anchor(line.trim_start_matches('#')) == heading);
                    assert!(exists, "{}: there is no heading for {link}", page.name());
                }
            }
        }
    }
}

#[test]
fn named_files_exist() {
    for page in pages() {
        for span in page.spans() {
            let is_path =
                FOLDERS.iter().any(|folder| span.starts_with(folder)) && !span.contains([' ', '*', '<', '{', '…']);
            let path = span.split([':', '#']).next().unwrap_or_default();
            assert!(!is_path || root().join(path).exists(), "{} names {span}, which does not exist", page.name());
        }
        for line in page.text.lines() {
            for (option, folder) in [("--test ", "tests"), ("--bench ", "benches")] {
                let Some(rest) = line.split(option).nth(1).filter(|_| line.contains("cargo ")) else { continue };
                let name: String = rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
                let file = root().join(folder).join(format!("{name}.rs"));
                assert!(name.chars().all(char::is_uppercase) || file.exists(), "{}: {line}", page.name());
            }
        }
    }
}

#[test]
fn commands_parse() {
    let scratch = tempfile::tempdir().unwrap();
    let mut parsed = 0;
    for page in pages() {
        for command in page.commands() {
            // With `--help` at its end, a command is parsed but not run.
            let mut program = Command::new(env!("CARGO_BIN_EXE_pilotlight"));
            program.env_clear().env("HOME", scratch.path()).args(words(&command)).arg("--help");
            let output = program.output().unwrap();
            let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(output.status.success(), "{}: pilotlight {command}\n{stderr}", page.name());
            parsed += 1;
        }
    }
    assert!(parsed > 20, "commands were found: {parsed}");
}

/// The keys in settings, each with its table.
fn keys(settings: &str) -> BTreeSet<(String, String)> {
    let tables: toml::Table = toml::from_str(settings).unwrap();
    let tables = tables.iter().flat_map(|(table, keys)| keys.as_table().unwrap().keys().map(move |key| (table, key)));
    tables.map(|(table, key)| (table.clone(), key.clone())).collect()
}

#[test]
fn settings_are_known_and_the_documented_defaults_are_correct() {
    let mut found = 0;
    for page in pages() {
        for block in page.blocks() {
            // Settings that are commented out count, too.
            let is_setting = |line: &str| line.starts_with("[[") || line.split(' ').nth(1) == Some("=");
            let uncomment =
                |line: &str| line.strip_prefix("# ").filter(|rest| is_setting(rest)).unwrap_or(line).to_owned() + "\n";
            let whole: String = block.lines().map(uncomment).collect();
            if toml::from_str::<toml::Table>(&block).is_err_and(|_| !whole.contains("[limits]"))
                || !block.contains(" = ")
            {
                continue;
            }
            for text in [&block, &whole] {
                let (_, problems) = parse(text, Path::new("config.toml"));
                let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
                assert!(problems.is_empty(), "{}: {problems:?}\n{text}", page.name());
            }
            if page.name() == "docs/config.md" && block.contains("[limits]") {
                assert_eq!(
                    parse(&block, Path::new("config.toml")).0,
                    Config::default(),
                    "docs/config.md shows other defaults"
                );
                assert_eq!(keys(&block), keys(&print(&Config::default())), "docs/config.md shows other keys");
            }
            found += 1;
        }
    }
    assert!(found > 0, "settings were found");
}

#[test]
fn every_status_is_explained() {
    let pages = pages();
    let readme = pages.iter().find(|page| page.name() == "README.md").unwrap();
    for status in Status::ALL {
        let row = format!(" {status}` |");
        assert!(readme.text.lines().any(|line| line.starts_with("| `") && line.contains(&row)), "{status} is missing");
    }
}

/// It is the first document that people read, and should take a few minutes.
#[test]
fn the_readme_is_short_and_so_are_its_sentences() {
    let pages = pages();
    let readme = pages.iter().find(|page| page.name() == "README.md").unwrap();
    assert!(readme.text.lines().count() <= 120, "{} lines", readme.text.lines().count());
    assert!(readme.text.len() <= 7_000, "{} bytes", readme.text.len());
    let long = long_sentences(readme);
    assert!(long.is_empty(), "{long:#?}");
}

/// The sentences of more than 25 words. Table cells, headings and list items end a sentence.
fn long_sentences(page: &Page) -> Vec<String> {
    let mut text = String::new();
    for line in page.prose() {
        let ends = line.is_empty() || line.starts_with(['#', '|', '!']);
        text += if ends || line.starts_with("- ") { "\n" } else { " " };
        text += &line.replace('|', "\n");
        text += if ends { "\n" } else { "" };
    }
    let is_word = |word: &&str| word.contains(char::is_alphanumeric);
    let text = text.replace(". ", ".\n").replace("! ", "!\n").replace("? ", "?\n");
    text.lines()
        .filter(|sentence| sentence.split_whitespace().filter(is_word).count() > 25)
        .map(str::to_owned)
        .collect()
}

/// Whether a file that is no program has the case: a script, or a page that says how it is tried by hand.
fn mentions(file: &str, case: &str) -> bool {
    let text = std::fs::read_to_string(root().join(file)).unwrap_or_default();
    text.split(|c: char| !c.is_alphanumeric()).any(|word| word == case)
}

#[test]
fn every_case_has_its_tests_and_no_test_names_an_unknown_case() {
    let pages = pages();
    let list = pages.iter().find(|page| page.name() == "tests/cases/README.md").unwrap();
    let rows = list.text.lines().filter(|line| line.starts_with("| ")).map(|line| line.split('|').map(str::trim));
    let rows: Vec<Vec<&str>> = rows.map(Iterator::collect).filter(|row: &Vec<_>| !row[1].is_empty()).collect();
    let known: BTreeSet<&str> = rows.iter().map(|row| row[1]).collect();
    assert!(known.len() > 100 && known.len() == rows.len(), "each case has one row");
    for test in tests() {
        let unknown: Vec<_> = test.cases().into_iter().filter(|case| !known.contains(case)).collect();
        assert!(
            unknown.is_empty(),
            "{} names cases that tests/cases/README.md does not have: {unknown:?}",
            test.name()
        );
    }
    let in_file = |file: &str| tests().iter().filter(|test| test.is_in(file)).collect::<Vec<_>>();
    for row in &rows {
        let (case, files) = (row[1], row[5].split('`').skip(1).step_by(2));
        let has_test = |file: &str| match file.ends_with(".rs") {
            true => ELSEWHERE.contains(&file) || in_file(file).iter().any(|test| test.cases().contains(&case)),
            false => mentions(file, case),
        };
        let (tested, without): (Vec<&str>, Vec<_>) = files.partition(|file| has_test(file));
        assert!(!tested.is_empty() && without.is_empty(), "case {case} has no test in {without:?}");
    }
}

#[test]
fn the_checks_find_mistakes() {
    let page = |text: &str| Page { path: root().join("README.md"), text: text.into() };
    let wrong = page(
        "See `pilotlight dance` and `~/.config/pilotlight/`.\n\n    pilotlight status --bogus | jq .  # no\n\ntext\n",
    );
    assert_eq!(wrong.commands(), ["status --bogus", "dance"]);
    let table = page("| `pilotlight a ID`, `b ID` `[--c x\\|y]` | `no` |");
    assert_eq!(table.commands(), ["a ID", "b ID [--c x|y]"]);
    assert_eq!(words("b ID [--c x|y]"), ["b", "ID", "--c", "x"]);
    assert_eq!(command_in("set -g status-right '#(pilotlight watch --format tmux)'").unwrap(), "watch --format tmux");
    assert_eq!(command_in("\"exec\": \"pilotlight watch --format waybar\",").unwrap(), "watch --format waybar");
    assert_eq!(command_in("exec pilotlight status").unwrap(), "status");
    assert_eq!(command_in("cd pilotlight"), None);
    assert_eq!(anchor("What was tried?"), "what-was-tried");
    let long = "word ".repeat(26);
    for (text, count) in [(long.clone(), 1), (format!("A. {long}\n\n    {long}"), 1), (long.replacen(' ', " | ", 1), 0)]
    {
        assert_eq!(long_sentences(&page(&text)).len(), count, "{text}");
    }
    assert!(!parse("[limits]\nfresh = 1\n", Path::new("x")).1.is_empty());
}
