//! The seam between the agents and everything else.

use crate::{code_of, root, sources};
use std::collections::BTreeSet;

/// Names of agents, in lower case.
const AGENTS: [&str; 6] = ["copilot", "claude", "codex", "gemini", "opencode", "sundial"];

/// Where one agent is named, and why.
const PAGES: [(&str, &str); 5] = [
    ("src/cli/bridge.rs", "the page of the bridge, which is an extension of one agent"),
    ("src/cli/demo.rs", "the demo, whose stage is one agent's"),
    ("src/doctor/bridge.rs", "the page of the bridge"),
    ("src/doctor/program.rs", "the page of one agent's program"),
    ("src/doctor/servers.rs", "the page of one agent's servers"),
];

/// The code without what is inside of quotes.
fn without_strings(code: &str) -> String {
    let (mut out, mut rest) = (String::new(), code);
    while let Some(at) = rest.find('"') {
        let raw = rest[..at].len() - rest[..at].trim_end_matches('#').len();
        let is_raw = rest[..at - raw].ends_with('r');
        out += &rest[..at];
        // A quote as a character does not begin a string.
        if rest[..at].ends_with('\'') && rest[at + 1..].starts_with('\'') || rest[..at].ends_with("b'") {
            rest = &rest[at + 1..];
            continue;
        }
        let mut end = at + 1;
        let close = format!("\"{}", "#".repeat(raw));
        loop {
            let quote = rest[end..].find(if is_raw { &close } else { "\"" }).map_or(rest.len(), |quote| end + quote);
            let escapes = rest[end..quote].len() - rest[end..quote].trim_end_matches('\\').len();
            end = (quote + 1).min(rest.len());
            if is_raw || escapes % 2 == 0 || quote == rest.len() {
                break;
            }
        }
        rest = &rest[end..];
    }
    out + rest
}

/// The identifiers of this code that name an agent.
fn agents_in(code: &str) -> BTreeSet<String> {
    let code = without_strings(code);
    let words = code.split(|it: char| !it.is_ascii_alphanumeric() && it != '_');
    words.filter(|word| AGENTS.iter().any(|agent| word.to_ascii_lowercase().contains(agent))).map(Into::into).collect()
}

#[test]
fn nothing_outside_the_agents_names_one() {
    let mut needed = BTreeSet::new();
    for path in sources(&root().join("src")) {
        let name = path.strip_prefix(root()).unwrap().to_str().unwrap();
        if name.starts_with("crates/agents/src/") || name.contains("/tests/") || name.ends_with("tests.rs") {
            continue;
        }
        let named = agents_in(&code_of(&path));
        match PAGES.iter().find(|(page, _)| *page == name) {
            Some((page, _)) if !named.is_empty() => drop(needed.insert(*page)),
            _ => {
                assert!(named.is_empty(), "{name} names {named:?}: say it through `agent::adapter` and what uses that")
            }
        }
    }
    let unneeded: Vec<_> = PAGES.iter().filter(|(page, _)| !needed.contains(page)).collect();
    assert!(unneeded.is_empty(), "these name none any more: {unneeded:?}");
}

#[test]
fn an_agent_is_found_in_code_and_not_in_words() {
    let words = r##"say("Copilot \"asks\""); let x = r#"a "codex" b"#; if c == '"' || b == b'"' {}"##;
    assert_eq!(agents_in(words), BTreeSet::new());
    assert_eq!(agents_in("use crate::agent::copilot::{store}; let is_codex_home = 1;").len(), 2);
    assert_eq!(agents_in(&format!("{words} Wing::ClaudeCode")).len(), 1);
}

#[test]
fn the_agents_of_the_table_are_those_that_are_looked_for() {
    let table = std::fs::read_to_string(root().join("crates/agents/src/adapter.rs")).unwrap();
    let variants = table.split_once("enum Wing {").unwrap().1.split_once("\n}").unwrap().0;
    let variants = variants.lines().map(str::trim).filter(|line| line.starts_with(|it: char| it.is_ascii_uppercase()));
    // What hooks report is of no agent in particular.
    let variants = variants.filter(|line| *line != "Reported,");
    let unknown: Vec<_> = variants.filter(|line| agents_in(line).is_empty()).collect();
    assert!(unknown.is_empty(), "AGENTS lacks {unknown:?}");
}
