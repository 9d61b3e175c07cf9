//! Everything that a demo's menu and popups offer, clicked as a newcomer may.

use super::{Demo, user};
use crate::support::desktop::panel::Entry;
use crate::support::desktop::popups::Popups;
use crate::support::executable::executable;
use std::collections::{BTreeSet, HashSet};
use std::fs;
use std::time::{Duration, Instant};

/// For how long new things are clicked: at this speed, the script is played twice.
const WALK: Duration = Duration::from_secs(30);
const SPEED: &str = "8";
/// When too little was clicked, on a busy machine too.
const LATEST: Duration = Duration::from_secs(240);
/// What clicks run in a terminal, at least.
const VERBS: [&str; 3] = [" approve ", " answer ", " live"];
/// What a click does that a test must not repeat: it ends the demo, or hides what is to be clicked.
const LEFT_OUT: [&str; 4] = ["Quit", "Mute", "Pause", "Stop with them"];

/// What a text says, without what differs each time.
fn kind(text: &str) -> String {
    text.chars().filter(|c| !c.is_ascii_digit()).collect()
}

/// The entries that can be clicked, each with the kind of its label.
fn offers(entries: &[Entry], found: &mut Vec<(String, i32)>) {
    for entry in entries.iter().filter(|entry| entry.enabled && !entry.separator) {
        match &entry.entries[..] {
            [] => found.push((kind(&entry.shown()), entry.id)),
            inner => offers(inner, found),
        }
    }
}

/// Given: a demo. -> Whatever is clicked, in the menu and on popups, does what it says: in its own world, and never "could
/// not".
#[test]
fn case_658_every_click_of_a_demo_works_in_its_world() {
    let user = user();
    let at = |name: &str| user.scratch.path().join(name);
    let note = |name: &str| {
        format!(
            "#!/bin/sh\nprintf '%s ' {name} \"$@\" >>'{0}'; echo >>'{0}'; [ {name} != wl-copy ] || cat >/dev/null\n",
            at("run-by-clicks").display()
        )
    };
    fs::create_dir_all(at("bin")).unwrap();
    for program in ["terminal", "xdg-open", "wl-copy", "xclip", "xsel", "copilot", "claude", "codex"] {
        executable(&at("bin").join(program), &note(program));
    }
    let config = at(".config/pilotlight/config.toml");
    fs::create_dir_all(config.parent().unwrap()).unwrap();
    fs::write(config, format!("[actions]\nterminal = [{:?}, \"{{command}}\"]\n", at("bin/terminal"))).unwrap();
    let (bin, clicked_path) = (at("bin"), at("run-by-clicks"));
    let demo = Demo::of(user, SPEED, |command| {
        let path = std::env::var("PATH").unwrap();
        command.env("PATH", format!("{}:{path}", bin.display())).env("WAYLAND_DISPLAY", "wayland-test");
    });
    let popups = Popups::start(&demo.bus);
    let (begun, mut clicked, mut answered) = (Instant::now(), HashSet::new(), HashSet::new());
    let stage = demo.left()[0].clone();
    // Each round clicks, so there is nothing to wait for between two.
    loop {
        demo.panel.open();
        let (mut found, menu) = (Vec::new(), demo.panel.layout().1);
        offers(std::slice::from_ref(&menu), &mut found);
        let is_new =
            |(kind, _): &&(String, i32)| !clicked.contains(kind) && !LEFT_OUT.iter().any(|left| kind.starts_with(left));
        // From the end: what belongs to no session is offered at all times.
        if let Some((kind, id)) = found.iter().rev().find(is_new) {
            demo.panel.click_unopened(*id);
            clicked.insert(kind.clone());
        }
        demo.panel.close();
        let popup = popups.received().into_iter().rev().find_map(|popup| {
            let action = popup
                .actions
                .iter()
                .step_by(2)
                .find(|action| !answered.contains(&(kind(&popup.title), (*action).clone())))?;
            Some((popup.number, kind(&popup.title), action.clone()))
        });
        if let Some((number, title, action)) = popup {
            popups.click(number, &action);
            answered.insert((title, action));
        }
        let run = fs::read_to_string(&clicked_path).unwrap_or_default();
        let has_run =
            |verb: &&str| run.lines().any(|line| line.contains(" demo --part command ") && line.contains(verb));
        let is_much = clicked.len() > 100 && answered.len() > 8 && VERBS.iter().all(has_run);
        if begun.elapsed() > WALK && is_much {
            break;
        }
        assert!(begun.elapsed() < LATEST, "too little was clicked: {clicked:#?} {answered:#?}\n{}", demo.tray.output());
    }
    let told: BTreeSet<String> =
        popups.received().iter().map(|popup| format!("{}: {}", popup.title, popup.body)).collect();
    let failed: Vec<_> = told
        .iter()
        .filter(|text| ["could not", "cannot be", "not valid for its agent"].iter().any(|word| text.contains(word)))
        .collect();
    assert!(failed.is_empty(), "{failed:#?}");
    let run = fs::read_to_string(&clicked_path).unwrap_or_default();
    let is_inside = |line: &str| match line.split_once(' ').unwrap().0 {
        "terminal" => line.contains(" demo --part command ") || line.contains(&format!("{}/", stage.display())),
        "xdg-open" => line.contains(&*stage.to_string_lossy()),
        "wl-copy" | "xclip" | "xsel" => true,
        _ => false,
    };
    let outside: Vec<_> = run.lines().filter(|line| !is_inside(line)).collect();
    assert!(outside.is_empty(), "{outside:#?}");
    println!(
        "{} entries and {} buttons were clicked; popups said {told:#?}; run: {run}",
        clicked.len(),
        answered.len()
    );
}
