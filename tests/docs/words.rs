//! Words are made last: no code takes our own sentences apart again, or compares them.

use crate::{code_of, root, sources};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// What takes text apart, or looks for something in it.
const READS: [&str; 13] = [
    "contains",
    "starts_with",
    "ends_with",
    "strip_prefix",
    "strip_suffix",
    "split",
    "split_once",
    "rsplit",
    "rsplit_once",
    "trim_start_matches",
    "trim_end_matches",
    "find",
    "matches",
];

/// Where text is read all the same: what others wrote, how often, and what it is.
const FOREIGN: [(&str, usize, &str); 99] = [
    ("src/agent/claude_code/dialect.rs", 2, "a line of Claude Code's log"),
    ("src/agent/claude_code/dialect/line.rs", 4, "a line of Claude Code's log"),
    ("src/agent/claude_code/jobs.rs", 2, "what Claude Code says that it needs"),
    ("src/agent/claude_code/pid_file.rs", 5, "Claude Code's files, and their names"),
    ("src/agent/claude_code/head.rs", 1, "how Claude Code was started"),
    ("src/agent/claude_code/store.rs", 3, "names of Claude Code's files"),
    ("src/agent/claude_code/sub_agents.rs", 2, "names of Claude Code's files"),
    ("src/agent/codex/dialect.rs", 1, "the beginning of a line of Codex's log"),
    ("src/agent/codex/dialect/payload.rs", 4, "a line of Codex's log"),
    ("src/agent/codex/lock.rs", 1, "names of Codex's files"),
    ("src/core/agent.rs", 1, "the first letter of a name"),
    ("src/system/process/locks.rs", 1, "`/proc`"),
    ("src/agent/codex/thread/owner.rs", 1, "the version of Codex in its log"),
    ("src/agent/codex/store.rs", 5, "names of Codex's files, and its ids"),
    ("src/agent/copilot/bridge/peer.rs", 1, "the program that Copilot starts"),
    ("src/agent/copilot/demo/server.rs", 1, "a frame's head"),
    ("src/agent/copilot/demo/session.rs", 1, "names of Copilot's files"),
    ("src/agent/copilot/demo/stage.rs", 1, "a method's name"),
    ("src/agent/copilot/demo/window.rs", 2, "names of Copilot's files, and an argument of its"),
    ("src/agent/copilot/dialect.rs", 10, "a line of Copilot's log"),
    ("src/agent/copilot/dialect/data.rs", 6, "a line of Copilot's log"),
    ("src/agent/copilot/dialect/types.rs", 2, "a line of Copilot's log"),
    ("src/agent/copilot/opened/arguments.rs", 4, "Copilot's arguments"),
    ("src/agent/copilot/opened/log.rs", 7, "the log of a Copilot process, and its name"),
    ("src/agent/copilot/program.rs", 3, "names and answers of programs"),
    ("src/agent/copilot/prompt.rs", 1, "a line of Copilot's log"),
    ("src/agent/copilot/running/elsewhere.rs", 1, "a process's environment"),
    ("src/agent/copilot/running/linux.rs", 1, "names of Copilot's files"),
    ("src/agent/copilot/server/frame.rs", 1, "a frame's head"),
    ("src/agent/copilot/server/peers.rs", 1, "the kernel's table of connections"),
    ("src/agent/copilot/server/request.rs", 2, "what a session asks"),
    ("src/agent/copilot/store/glimpse/linux.rs", 1, "names of Copilot's files"),
    ("src/agent/copilot/store/layout.rs", 3, "names of Copilot's files"),
    ("src/agent/copilot/workspace.rs", 8, "Copilot's YAML"),
    ("src/agent/program_file.rs", 1, "the path of a program"),
    ("src/agent/reported/caller.rs", 4, "a process's arguments"),
    ("src/agent/reported/places.rs", 3, "names of files"),
    ("src/agent/reported/record.rs", 1, "an id"),
    ("src/cli/act/output.rs", 1, "the text of a request"),
    ("src/cli/act/reply.rs", 2, "what the user types"),
    ("src/cli/charset.rs", 2, "the locale"),
    ("src/cli/demo.rs", 1, "what another process wrote to its standard error"),
    ("src/cli/pick.rs", 1, "a path"),
    ("src/cli/replay.rs", 1, "what the user types"),
    ("src/cli/resume/typing.rs", 1, "what the user types"),
    ("src/cli/setup.rs", 1, "a path"),
    ("src/cli/setup/file.rs", 1, "a file, and its sum"),
    ("src/config/form.rs", 8, "the user's settings"),
    ("src/config/host_keys.rs", 1, "the user's settings"),
    ("src/config/mod.rs", 1, "the user's settings"),
    ("src/config/problem.rs", 1, "the user's settings"),
    ("src/config/server_keys.rs", 1, "the user's settings"),
    ("src/control/origin.rs", 8, "arguments and control groups of processes"),
    ("src/core/alert/words.rs", 1, "what a session asks"),
    ("src/core/closing_question.rs", 10, "what a session says"),
    ("src/core/fleet/label.rs", 2, "an id, and a path"),
    ("src/core/scan.rs", 2, "JSON"),
    ("src/core/text.rs", 4, "text of any kind, where it is cut"),
    ("src/doctor/desktop.rs", 1, "an error of the bus"),
    ("src/doctor/fix.rs", 7, "the user's settings"),
    ("src/doctor/machine.rs", 1, "`/proc`"),
    ("src/doctor/redact.rs", 5, "the log's words, of which only known ones pass, and names that a desktop has"),
    ("src/doctor/report.rs", 1, "the locale"),
    ("src/engine/exit_note.rs", 2, "names of files"),
    ("src/engine/ledger.rs", 1, "names of files"),
    ("src/cli/host/talk.rs", 1, "spaces, to be kept as they are"),
    ("src/config/edit.rs", 8, "the user's settings"),
    ("src/hosts/command.rs", 1, "a path"),
    ("src/hosts/suggest.rs", 4, "what other programs call machines"),
    ("src/hosts/suggest/ssh_config.rs", 9, "the user's ssh config"),
    ("src/hosts/there.rs", 10, "what a shell on another machine says"),
    ("src/hosts/why.rs", 2, "what ssh says"),
    ("src/system/mounts.rs", 1, "the kernel's names of file systems"),
    ("src/system/paths.rs", 2, "a path"),
    ("src/system/process/container.rs", 7, "control groups of processes, and a path"),
    ("src/system/process/elsewhere.rs", 1, "a process's environment"),
    ("src/system/process/files.rs", 4, "`/proc`"),
    ("src/system/process/lineage.rs", 4, "`/proc`"),
    ("src/system/process/linux.rs", 2, "`/proc`"),
    ("src/system/process/ports/linux.rs", 1, "`/proc`"),
    ("src/system/process/scripts.rs", 1, "a process's arguments"),
    ("src/system/process/terminal.rs", 1, "the name of a terminal"),
    ("src/system/runtime.rs", 1, "the name of a file"),
    ("src/system/watcher/plan.rs", 1, "names of folders"),
    ("src/terminal/choice.rs", 5, "names of desktops and programs, and their settings"),
    ("src/terminal/known.rs", 4, "names of programs, and words for a command line"),
    ("src/terminal/mod.rs", 1, "a path"),
    ("src/terminal/quote.rs", 1, "words for a command line"),
    ("src/terminal/show/places/kitty.rs", 2, "an address"),
    ("src/terminal/show/places/konsole.rs", 2, "an address, and the name of an object on the bus"),
    ("src/terminal/show/x11.rs", 2, "names of hosts and windows"),
    ("src/tray/autostart/entry.rs", 12, "desktop entries"),
    ("src/tray/autostart/linux.rs", 1, "the name of a program"),
    ("src/tray/autostart/macos.rs", 5, "a launch agent"),
    ("src/tray/autostart/windows.rs", 4, "a command in the registry"),
    ("src/tray/bus.rs", 3, "an error of the bus, and the name of a display"),
    ("src/tray/bus/menu_capacity.rs", 1, "names of desktops"),
    ("src/tray/details.rs", 1, "a path"),
    ("src/tray/instance.rs", 1, "the kernel's table of sockets"),
];

/// The places in this code that read text by a literal or a constant, and those that compare it with a sentence.
fn reads(code: &str) -> Vec<&str> {
    let line = |at: usize| code[at..].lines().next().unwrap_or_default();
    let mut found = Vec::new();
    for name in READS {
        for (at, call) in code.match_indices(&format!(".{name}(")) {
            let argument = code[at + call.len()..].trim_start();
            let is_constant = argument.len() > 1 && argument.bytes().take(2).all(|byte| byte.is_ascii_uppercase());
            let is_literal = argument.trim_start_matches(['&', '[', 'b']).starts_with(['"', '\'']);
            if is_literal || is_constant || name.ends_with("split_once") {
                found.push(line(at));
            }
        }
    }
    for (at, _) in code.match_indices("= \"").filter(|(at, _)| code[..*at].ends_with(['=', '!'])) {
        if code[at + 3..].split('"').next().unwrap_or_default().contains(' ') {
            found.push(line(at));
        }
    }
    found
}

/// The files that are compiled for tests alone.
fn test_files(files: &[PathBuf]) -> BTreeSet<PathBuf> {
    let declared = files.iter().flat_map(|path| {
        let is_root = path.ends_with("mod.rs") || path.ends_with("lib.rs");
        let folder = if is_root { path.parent().unwrap().to_owned() } else { path.with_extension("") };
        let text = std::fs::read_to_string(path).unwrap();
        let modules = text.split("#[cfg(test)]\n").skip(1).filter_map(|rest| {
            let line = rest.lines().find(|line| !line.trim_start().starts_with("#["))?.trim();
            Some(line.trim_start_matches("pub(crate) ").strip_prefix("mod ")?.strip_suffix(';')?.to_owned())
        });
        modules.map(|name| folder.join(format!("{name}.rs"))).collect::<Vec<_>>()
    });
    declared.collect()
}

/// The files of the program, without those for tests alone.
pub(super) fn shipped() -> Vec<PathBuf> {
    let mut files = sources(&root().join("src"));
    let tests = test_files(&files);
    assert!(tests.len() > 20, "{tests:?}");
    files.retain(|path| !tests.contains(path) && !path.iter().any(|part| part == "tests"));
    files
}

#[test]
fn our_own_words_are_never_read_again() {
    let (mut seen, mut others) = (BTreeMap::new(), Vec::new());
    for path in &shipped() {
        let name = path.strip_prefix(root()).unwrap().to_str().unwrap().to_owned();
        let code = code_of(path);
        let (reads, allowed) = (reads(&code), FOREIGN.iter().find(|(file, ..)| *file == name).map_or(0, |file| file.1));
        if reads.len() != allowed {
            others.push(format!("{name} reads text {} times, not {allowed}: {reads:#?}", reads.len()));
        }
        seen.insert(name, reads.len());
    }
    assert!(
        others.is_empty(),
        "If others wrote the text, name the file in tests/docs/words.rs; of our own words ask the value that they are made \
         of: {}",
        others.join("\n")
    );
    for (file, ..) in FOREIGN {
        assert!(seen.contains_key(file), "{file} is not there");
    }
}

#[test]
fn reading_text_is_found() {
    for code in [
        "does.contains(\"even if\")",
        "does\n    .starts_with(\n        \"asks \")",
        "why.split(';')",
        "because.split_once(mark)",
        "offered.contains(&\"stop\")",
        "does.contains(EVEN_IF_WAITING)",
        "why.trim_start_matches(\", \")",
        "why == \"running long\"",
        "line.find(\" ago\")",
    ] {
        assert_eq!(reads(code).len(), 1, "{code}");
    }
    for code in [
        "rows.contains(&row)",
        "limits.contains(&MOST)",
        "path.starts_with(folder)",
        "name == \"copilot\"",
        "a = \"b c\"",
    ] {
        assert_eq!(reads(code).len(), 0, "{code}");
    }
}
