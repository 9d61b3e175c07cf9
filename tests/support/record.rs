//! Saves what Copilot wrote during a test as a trace for `tests/traces/`.
//!
//! With `PILOTLIGHT_RECORD=<folder>` set, [`keep`] copies every session folder of a home to `<folder>/<name>/<id>/`, as
//! it is on disk at that moment. Otherwise it does nothing. Long texts (the vendor's) are replaced by filler of the
//! same length, and paths of the machine by `/home/dev/...`. Everything else stays as Copilot wrote it.

use super::home::Home;
use serde_json::Value;
use std::fs;
use std::path::Path;

/// Longer texts are the vendor's: prompts, reminders, lists of tools. The texts of our scripts are shorter.
const LONG: usize = 300;

/// The file that the terminal interface writes next to the session folders.
const OPEN_SESSIONS: &str = "open-sessions-state.json";

/// Whether Pilotlight reads this file of a session folder.
fn is_kept(name: &str) -> bool {
    matches!(name, "events.jsonl" | "workspace.yaml") || name.starts_with("inuse.")
}

/// Copies the session folders of `home` as the trace `name`, if recording is enabled.
pub(crate) fn keep(home: &Home, name: &str) {
    let Some(out) = std::env::var_os("PILOTLIGHT_RECORD") else { return };
    let out = Path::new(&out).join(name);
    for folder in home.sessions() {
        let to = out.join(folder.id());
        fs::create_dir_all(&to).unwrap();
        for entry in fs::read_dir(&folder.path).unwrap().map(Result::unwrap) {
            let file = entry.file_name().to_string_lossy().into_owned();
            if !is_kept(&file) {
                continue;
            }
            let text = fs::read_to_string(entry.path()).unwrap();
            let text = if file == "events.jsonl" { text.lines().map(clean).collect() } else { text };
            fs::write(to.join(&file), without_paths(&text, home)).unwrap();
        }
    }
    if let Ok(text) = fs::read_to_string(home.dir().join(OPEN_SESSIONS)) {
        fs::write(out.join(OPEN_SESSIONS), text).unwrap();
    }
}

/// One line of a log, with every long text replaced by filler.
fn clean(line: &str) -> String {
    let mut event: Value = serde_json::from_str(line).unwrap();
    fill(&mut event);
    event.to_string() + "\n"
}

/// Replaces every long text in `value` by filler of the same length.
fn fill(value: &mut Value) {
    match value {
        Value::String(text) if text.len() > LONG => *text = "s".repeat(text.len()),
        Value::Array(items) => items.iter_mut().for_each(fill),
        Value::Object(fields) => fields.values_mut().for_each(fill),
        _ => {}
    }
}

fn without_paths(text: &str, home: &Home) -> String {
    text.replace(&*home.project().to_string_lossy(), "/home/dev/project")
        .replace(&*home.dir().to_string_lossy(), "/home/dev/.copilot")
        .replace(&*home.root().to_string_lossy(), "/home/dev")
}
