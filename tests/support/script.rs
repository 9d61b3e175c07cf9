//! The scripts that the model plays: its answers, round by round, to a prompt that names a script.
//!
//! A prompt names its script anywhere in its text: `SCRIPT:two Paint the fence`. A round's number is the number of
//! answers since that prompt. So a script continues across tool results, autopilot's continuations and system
//! notifications, and a prompt that names a script starts it from its first round. A number at the end of the word is
//! the script's argument: `SCRIPT:sleep60`.
//!
//! Tools that "work until told" wait for a file named `go` in the session's project folder (see [`GO`]).

use serde_json::{Value, json};

/// An answer of the model.
#[derive(Clone, Debug)]
pub(crate) enum Answer {
    /// Text, and the tools to call. Without tools, the turn is over.
    Say(String, Vec<(&'static str, Value)>),
    /// An HTTP error.
    Status(u16),
    /// Half an answer, then a broken connection.
    Broken,
    /// Nothing, ever.
    Silence,
}

/// The file in the project folder that ends the tools that "work until told".
pub(crate) const GO: &str = "go";

/// A shell command that needs a permission and runs until the file [`GO`] appears. It gives up after two minutes, or
/// when the test's folder (with its `seed.txt`) is gone: a tool's shell outlives a killed CLI, and must not outlive the
/// test.
pub(crate) const UNTIL_GO: &str =
    "for i in $(seq 600); do [ -e go ] && break; [ -e seed.txt ] || break; sleep 0.2; done; echo done";

/// The prompt in screenshots, which plays a script without naming it.
pub(crate) const STORY: &str = "Roll out the new invoices";

/// The script that a prompt names, and its number: `SCRIPT:sleep60 ...` names `sleep`, with 60.
pub(crate) fn named_in(prompt: &str) -> Option<(String, u64)> {
    if prompt.contains(STORY) {
        return Some(("deploy".to_owned(), 0));
    }
    let word: String =
        prompt.split("SCRIPT:").nth(1)?.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '-').collect();
    let name = word.trim_end_matches(|c: char| c.is_ascii_digit());
    Some((name.to_owned(), word[name.len()..].parse().unwrap_or(0)))
}

/// The model's answer in this round of a script. An unknown script is answered like `plain`.
pub(crate) fn answer(script: &str, number: u64, round: usize) -> Answer {
    match (script, round) {
        ("hang", _) => Answer::Silence,
        ("err", _) => Answer::Status(u16::try_from(number).unwrap_or(500)),
        ("gone", _) => Answer::Broken,

        ("question", 0) => say("There are two ways to paint it. Which one do you prefer?"),
        // A client accepts one of two forms. If the model uses the other, the CLI tells it to ask again.
        ("ask", 0) => call("ask_user", json!({"question": "Which color?", "choices": ["red", "blue"]})),
        ("form", 0) => call(
            "ask_user",
            json!({"message": "Which color?", "requestedSchema": {"properties": {"color": {"type": "string",
                "enum": ["red", "blue"], "title": "Color"}}, "required": ["color"]}}),
        ),
        ("name", 0) => call(
            "ask_user",
            json!({"message": "Which name?", "requestedSchema": {"properties": {"name": {"type": "string",
                "title": "Name"}}, "required": ["name"]}}),
        ),
        ("fields", 0) => call(
            "ask_user",
            json!({"message": "How shall it look?", "requestedSchema": {"properties": {
                "color": {"type": "string", "enum": ["red", "blue"], "title": "Color"},
                "coats": {"type": "integer", "minimum": 1, "maximum": 5},
                "rooms": {"type": "array", "items": {"type": "string", "enum": ["hall", "attic"]}},
                "note": {"type": "string"}}, "required": ["color", "coats"]}}),
        ),
        // Choices that the terminal shows by their titles.
        ("titled", 0) => call(
            "ask_user",
            json!({"message": "Which color?", "requestedSchema": {"properties": {"color": {"type": "string",
                "oneOf": [{"const": "r", "title": "Red"}, {"const": "b", "title": "Blue"}]}}, "required": ["color"]}}),
        ),
        ("limits", 0) => call(
            "ask_user",
            json!({"message": "How many?", "requestedSchema": {"properties": {"coats": {"type": "integer",
                "minimum": 1, "maximum": 5}}, "required": ["coats"]}}),
        ),
        ("yesno", 0) => call(
            "ask_user",
            json!({"message": "Shall I?", "requestedSchema": {"properties": {"sure": {"type": "boolean"}},
                "required": ["sure"]}}),
        ),
        ("named", 0) => call(
            "ask_user",
            json!({"message": "Which color?", "requestedSchema": {"properties": {"color": {"type": "string",
                "enum": ["r", "b"], "enumNames": ["Red", "Blue"]}}, "required": ["color"]}}),
        ),
        ("plan", 0) => call(
            "exit_plan_mode",
            json!({"summary": "Paint the fence white.", "actions": ["interactive", "exit_only"],
                "recommendedAction": "interactive"}),
        ),

        // As opencode asks.
        ("choose", 0) => call(
            "question",
            json!({"questions": [{"question": "Which colour?", "header": "Colour", "options": [
                {"label": "Red", "description": "warm"}, {"label": "Blue", "description": "cold"}]}]}),
        ),
        ("write", 0) => call("write", json!({"filePath": "new.txt", "content": "hello\nworld\n"})),

        ("two", 0) => Answer::Say(
            "I will run two tools.".to_owned(),
            vec![bash("echo one > one.txt; echo hi", "write one"), bash("echo two > two.txt", "write two")],
        ),
        ("many", 0) => {
            let one = |n| bash(&format!("echo {n} > many{n}.txt"), "write one of many");
            Answer::Say(String::new(), (1..=number).map(one).collect())
        }
        ("seq", 0) => calls(bash("echo a > a.txt", "write a")),
        ("seq", 1) => calls(bash("exit 3", "fail")),
        ("sleep", 0) => calls(bash(&format!("sleep {number}; echo slept"), "sleep")),
        ("tool", 0) => calls(bash(UNTIL_GO, "work until told")),
        ("deploy", 0) => calls(bash("./deploy.sh --to staging", "roll out")),
        ("script", 0) => calls(bash("sh ./script.sh", "run the script")),
        // The tool's shell, which Copilot started itself, becomes the script by exec; a second tool asks for
        // permission.
        ("become", 0) => {
            call("bash", json!({"command": "exec ./script.sh", "description": "become the script", "mode": "async"}))
        }
        ("become", 1) => calls(bash(UNTIL_GO, "work until told")),
        ("spin", 0) => calls(bash("until [ -e go ] || [ ! -e seed.txt ]; do :; done", "spin until told")),
        ("big", 0) => calls(bash("head -c 400000 /dev/zero | tr '\\0' x", "write much")),
        // A path outside the session's folder: Copilot asks first for the path, then for the command.
        ("outside", 0) => calls(bash("cat /etc/hostname", "look outside")),
        ("long", 0) => {
            let text = "A line of forty bytes, with its break.\n\n".repeat(usize::try_from(number).unwrap_or(1) * 25);
            calls(bash(&format!("cat >long.txt <<'END'\n{text}END"), "write a long text"))
        }
        // A new file of this many kB, and a command beside it.
        ("file", 0) => calls(file(number)),
        ("beside", 0) => Answer::Say(String::new(), vec![file(number), bash("echo small > small.txt", "write one")]),
        ("mcp", 0) => call("asker-ask", json!({})),
        // The first tool needs no permission and runs; the others are denied if nobody can be asked.
        ("mixed", 0) => call("list_bash", json!({})),
        ("mixed", round) if (round as u64) <= number => calls(bash(&format!("touch mixed{round}.txt"), "touch")),
        ("denied", round) if (round as u64) < number => calls(bash(&format!("touch denied{round}.txt"), "touch")),

        // The same in autopilot, which continues until the model completes the task.
        ("giveup", round) if (round as u64) < number => calls(bash(&format!("touch giveup{round}.txt"), "touch")),
        ("giveup", round) if round as u64 == number => call("task_complete", json!({"summary": "I may do nothing."})),

        ("bg", 0) => {
            call("bash", json!({"command": UNTIL_GO, "description": "work in the background", "mode": "async"}))
        }
        ("sub", 0) => call("task", sub_agent("sync")),
        ("subbg", 0) => call("task", sub_agent("background")),
        ("subtool", 0) => call(
            "task",
            json!({"agent_type": "general-purpose", "name": "painter", "description": "paint it",
                "prompt": "SCRIPT:tool Paint it", "mode": "sync"}),
        ),
        ("inner", 0) => say("The sub-agent found it."),

        ("autopilot", 0) => calls(bash("echo part > part.txt", "do the first part")),
        ("autopilot", 1) => say("The first part is done."),
        ("autopilot", 2) => call("task_complete", json!({"summary": "Everything is done."})),

        _ => say("Done."),
    }
}

fn say(text: &str) -> Answer {
    Answer::Say(text.to_owned(), Vec::new())
}

fn calls(tool: (&'static str, Value)) -> Answer {
    Answer::Say(String::new(), vec![tool])
}

fn call(tool: &'static str, arguments: Value) -> Answer {
    calls((tool, arguments))
}

fn bash(command: &str, description: &str) -> (&'static str, Value) {
    // The CLI moves a shell to the background after `initial_wait` seconds; these must stay in the foreground.
    ("bash", json!({"command": command, "description": description, "initial_wait": 300}))
}

/// A new file of this many kB.
fn file(number: u64) -> (&'static str, Value) {
    let text: String = (0..number * 16)
        .map(|line| format!("This is line {line:>10} of the new file, which is long.......\n"))
        .collect();
    ("create", json!({"path": "new.txt", "file_text": text}))
}

fn sub_agent(mode: &str) -> Value {
    json!({"agent_type": "explore", "name": "finder", "description": "find it", "prompt": "SCRIPT:inner Find it", "mode": mode})
}
