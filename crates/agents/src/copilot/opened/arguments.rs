//! Parses a Copilot's command line: what it was started for, and the session that it starts with.
//!
//! The same program is a terminal, a server, a prompt that is run once, each of its commands (`copilot update`), and what it
//! starts for itself (`copilot …/extension_bootstrap.mjs`). Only a terminal records in a home which sessions it has open.

use crate::copilot::bridge::BOOTSTRAP;
use pilotlight_core::text::is_uuid;
use std::borrow::Cow;
use std::ffi::OsString;
use std::path::Path;

/// What a command line asks for.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Arguments {
    /// The session of this id.
    pub(super) id: Option<Box<str>>,
    /// An existing session that only Copilot can identify: the last one, or one given by its name or the beginning of
    /// its id.
    pub(super) some: bool,
    /// Not to log which sessions it loads.
    pub(super) unlogged: bool,
    /// To answer none but the program that started it: nobody else can ask it what it has open.
    pub(super) private: bool,
    /// What it is.
    pub(super) role: Role,
}

/// What a Copilot was started for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Role {
    /// To show sessions to a user.
    #[default]
    Terminal,
    /// To serve sessions to other programs.
    Server,
    /// To serve them to an editor, in the protocol of editors.
    Editors,
    /// To run one prompt and end.
    Prompt,
    /// To run a command of Copilot's or a script: it has no session.
    Helper,
}

/// The options that take a session's id, in the order of `copilot --help`. The value of the first may be left out.
const RESUME: [&str; 2] = ["--resume", "-r"];
const BY_ID: &str = "--session-id";
/// The levels at which a Copilot logs which sessions it loads, of `--log-level`.
const LOGGED: [&str; 5] = ["info", "debug", "all", "default", "trace"];
/// The options that make it a server.
const SERVES: [&str; 4] = ["--server", "--headless", "--managed-server", "--environment-host"];
/// The option that makes it one for editors.
const SERVES_EDITORS: &str = "--acp";
/// The option that has it talk to the program alone that started it.
const PRIVATE: &str = "--stdio";
/// The options that have it print something and end.
const PRINTS: [&str; 4] = ["-h", "--help", "-v", "--version"];
/// The options that have it run one prompt and end.
const PROMPTS: [&str; 2] = ["-p", "--prompt"];
/// Its commands, of `copilot --help`.
const COMMANDS: [&str; 18] = [
    "app",
    "completion",
    "config",
    "help",
    "init",
    "instruction",
    "login",
    "logout",
    "lsp",
    "mcp",
    "memories",
    "plugin",
    "sandbox",
    "sessions",
    "skill",
    "update",
    "version",
    "workflow",
];
/// The options whose value is the next word, whatever it is, of `copilot --help`.
const WITH_VALUE: [&str; 31] = [
    "-C",
    "-i",
    "-n",
    "--add-dir",
    "--add-github-mcp-tool",
    "--add-github-mcp-toolset",
    "--additional-mcp-config",
    "--agent",
    "--attachment",
    "--auto-tier",
    "--context",
    "--disable-mcp-server",
    "--dynamic-retrieval",
    "--enable-mcp-server",
    "--environment-compute-id",
    "--extension-sdk-path",
    "--host",
    "--interactive",
    "--log-dir",
    "--max-ai-credits",
    "--max-autopilot-continues",
    "--mcp-github-auth",
    "--mode",
    "--model",
    "--name",
    "--output-format",
    "--plugin-dir",
    "--port",
    "--reasoning-effort",
    "--stream",
    "--usage-output-file",
];

/// The options that take any number of words.
const WITH_LIST: [&str; 7] = [
    "--allow-tool",
    "--allow-url",
    "--available-tools",
    "--deny-tool",
    "--deny-url",
    "--excluded-tools",
    "--secret-env-vars",
];

/// Parses a command line, including the program's name: `--resume=ID`, `--resume ID`, `-r ID`, `-rID`, `--session-id
/// ID`, `--continue`, `--log-level LEVEL`, `--server`, `-p PROMPT`, `update`. Stops at `--`. `is_script`: the program is a
/// node, whose first word that is no option names Copilot's script.
pub(super) fn parse(arguments: &[OsString], is_script: bool) -> Arguments {
    let mut parsed = Arguments::default();
    let words = arguments.iter().skip(1).map(|word| word.to_string_lossy()).take_while(|word| word != "--");
    let mut words = words.peekable();
    if is_script {
        while words.next().is_some_and(|word| word.starts_with('-')) {}
    }
    // A terminal takes no word without an option.
    if words.peek().is_some_and(|first| !first.starts_with('-')) {
        return Arguments { role: Role::Helper, ..parsed };
    }
    while let Some(word) = words.next() {
        let (name, joined) = match word.split_once('=') {
            Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
            None => match word.strip_prefix("-r") {
                Some(value) if !value.is_empty() => ("-r".to_owned(), Some(value.to_owned())),
                _ => (word.into_owned(), None),
            },
        };
        let may_follow = |next: &Cow<'_, str>| !next.starts_with('-');
        parsed.private |= name == PRIVATE || name == SERVES_EDITORS;
        if name == "--continue" {
            parsed.some = true;
        } else if SERVES.contains(&&*name) {
            parsed.role = Role::Server;
        } else if name == SERVES_EDITORS {
            parsed.role = Role::Editors;
        } else if PRINTS.contains(&&*name) || COMMANDS.contains(&&*name) || Path::new(&name).ends_with(BOOTSTRAP) {
            return Arguments { role: Role::Helper, ..Arguments::default() };
        } else if PROMPTS.contains(&&*name) {
            parsed.role = Role::Prompt;
            let _ = joined.or_else(|| words.next().map(Into::into)); // its prompt, which may read like an option
        } else if WITH_LIST.contains(&&*name) {
            while words.next_if(may_follow).is_some() {}
        } else if WITH_VALUE.contains(&&*name) {
            let _ = joined.or_else(|| words.next().map(Into::into));
        } else if name == "--log-level" {
            let level = joined.or_else(|| words.next_if(may_follow).map(Into::into));
            parsed.unlogged = level.is_some_and(|level| !LOGGED.contains(&&*level));
        } else if RESUME.contains(&&*name) || name == BY_ID {
            let value = joined.or_else(|| words.next_if(may_follow).map(Into::into));
            match value {
                Some(value) if is_uuid(&value) => parsed.id = Some(value.to_ascii_lowercase().into()),
                _ => parsed.some = true,
            }
        }
    }
    parsed
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: &str = "beabf016-0350-4b30-ae8f-181db7acd479";

    fn parsed(line: &str) -> Arguments {
        parse(&line.split_whitespace().map(OsString::from).collect::<Vec<_>>(), line.starts_with("node"))
    }

    #[test]
    fn case_550_a_command_line_says_what_a_copilot_was_started_for() {
        for (line, role) in [
            ("copilot", Role::Terminal),
            ("copilot --no-auto-update --allow-all", Role::Terminal),
            ("copilot --resume update", Role::Terminal),
            ("copilot --name update --model version -C plugin", Role::Terminal),
            ("copilot -i update", Role::Terminal),
            ("copilot --ui-server --port 0", Role::Terminal),
            ("node --no-warnings /lib/@github/copilot/index.js --continue", Role::Terminal),
            ("copilot --server --log-level error", Role::Server),
            ("copilot --headless --stdio", Role::Server),
            ("copilot --acp", Role::Editors),
            ("copilot -p update", Role::Prompt),
            ("copilot --allow-all --prompt=update", Role::Prompt),
            ("copilot update", Role::Helper),
            ("copilot --no-auto-update update", Role::Helper),
            ("copilot --log-level error plugin install x", Role::Helper),
            ("copilot mcp list", Role::Helper),
            ("copilot --version", Role::Helper),
            ("copilot workflow run x", Role::Helper),
            ("copilot a-command-of-a-later-release", Role::Helper),
            ("copilot /cache/preloads/extension_bootstrap.mjs", Role::Helper),
            ("copilot --no-warnings /cache/preloads/extension_bootstrap.mjs", Role::Helper),
            ("node /lib/@github/copilot/index.js update", Role::Helper),
        ] {
            assert_eq!(parsed(line).role, role, "{line}");
        }
    }

    #[test]
    fn case_711_a_server_of_one_program_answers_nobody_else() {
        for (line, private) in [
            ("copilot --acp", true),
            ("copilot --acp --port 3000", true),
            ("copilot --headless --stdio --log-level error", true),
            ("copilot --server --port 0", false),
            ("copilot -p --stdio", false),
            ("copilot", false),
        ] {
            assert_eq!(parsed(line).private, private, "{line}");
        }
    }

    #[test]
    fn case_550_what_a_prompt_or_a_name_says_is_no_option() {
        for line in ["copilot -p -rest", "copilot -p --continue", "copilot -i --resume", "copilot --name -r"] {
            assert_eq!((parsed(line).id, parsed(line).some), (None, false), "{line}");
        }
        let listed = parsed(&format!("copilot --resume {A} --excluded-tools skill update --allow-all"));
        assert_eq!((listed.id.as_deref(), listed.role), (Some(A), Role::Terminal), "a list has any number of words");
        let with = parsed(&format!("copilot -p hello --resume={A} --log-level none"));
        assert_eq!((with.id.as_deref(), with.role, with.unlogged), (Some(A), Role::Prompt, true));
    }
}
