//! What `--help` and the manual contain besides the options: examples, commands in groups, exit codes, files, and
//! environment variables.

use clap::builder::StyledStr;
use clap::builder::styling::Style;
use clap::{Arg, Command};
use std::fmt::Write;

/// The commands by purpose, in the order of the help.
const GROUPS: [(&str, &[&str]); 4] = [
    ("Look", &["tray", "live", "status", "watch", "wait", "explain", "replay", "demo"]),
    ("Act", &["approve", "deny", "answer", "let-answer", "stop", "reconnect", "resume", "show", "next"]),
    ("Set up", &["bridge", "config", "host", "doctor", "diagnostics", "notify-test", "setup"]),
    ("For hooks, other machines, shells and packages", &["report", "serve", "completions", "man", "help"]),
];

/// Example command lines, with what each does.
pub(super) const EXAMPLES: [(&str, &str); 9] = [
    ("pilotlight", "show an icon in the panel, or a table if there is no panel"),
    ("pilotlight status", "list all sessions once"),
    ("pilotlight explain 3aac", "explain a session's status; 3aac is the beginning of its id"),
    ("pilotlight approve", "show what a session wants to do, and ask you to approve it"),
    ("pilotlight answer 3aac", "show the session's question, and ask you for the answer"),
    ("pilotlight reconnect 3aac --continue", "restore lost permissions, and let the session continue"),
    ("pilotlight watch --json", "print a line of JSON for each change, for scripts"),
    ("pilotlight wait 3aac", "wait until the session is done or needs you, for scripts"),
    ("pilotlight doctor", "find what keeps Pilotlight from working, and say what to do"),
];

/// Exit codes, with their meaning.
pub(super) const EXIT_CODES: [(&str, &str); 7] = [
    ("0", "Done."),
    ("1", "Failed."),
    ("2", "Bad usage: a name that is unknown or ambiguous, an unknown agent, or a wrong setting."),
    ("3", "No home could be read, and no hook reports a session. For 'wait': there is no such session."),
    ("4", "Refused, with the reason. Also: the command has to ask you, but runs without a terminal."),
    ("5", "The order was sent, but nothing confirms that it took effect."),
    ("6", "'wait' timed out."),
];

/// Environment variables that have an effect.
pub(super) const ENVIRONMENT: [(&str, &str); 8] = [
    ("COPILOT_HOME, CLAUDE_CONFIG_DIR, CODEX_HOME", "The homes to watch, unless --home names one."),
    ("PILOTLIGHT_CONFIG", "The settings file to use instead of the usual one."),
    ("PILOTLIGHT_DISCOVER", "'false': watch no home that is not named, whatever the settings say."),
    ("NO_COLOR", "If not empty: no colours, unless --color says otherwise."),
    ("CLICOLOR_FORCE", "If neither empty nor 0: colours, even when the output is not a terminal."),
    ("CLICOLOR", "If 0: no colours."),
    ("VISUAL, EDITOR", "The editor that 'config --edit' uses."),
    ("XDG_CONFIG_HOME, XDG_STATE_HOME, XDG_DATA_HOME, XDG_RUNTIME_DIR", "Where Pilotlight's own files are, on Linux."),
];

/// Pilotlight's own files, on Linux.
pub(super) const FILES: [(&str, &str); 4] = [
    ("~/.config/pilotlight/config.toml", "The settings; 'config --print' shows all of them."),
    ("~/.local/state/pilotlight/", "What you looked at, muted and paused; the log."),
    ("~/.local/share/", "Completions, desktop entry and systemd unit, if 'setup' wrote them."),
    ("~/.copilot/, ~/.claude/, ~/.codex/", "The agents' sessions: read, never written."),
];

/// The command line, with single quotes where our comments, from which its help is made, have backquotes.
pub(super) fn quoted(command: Command) -> Command {
    let quoted = |text: Option<&StyledStr>| text.map(|text| text.to_string().replace('`', "'"));
    let (about, long_about) = (quoted(command.get_about()), quoted(command.get_long_about()));
    let command = about.into_iter().fold(command, Command::about);
    let command = long_about.into_iter().fold(command, Command::long_about);
    let command = command.mut_args(|arg| {
        let (help, long_help) = (quoted(arg.get_help()), quoted(arg.get_long_help()));
        let arg = help.into_iter().fold(arg, Arg::help);
        long_help.into_iter().fold(arg, Arg::long_help)
    });
    command.mut_subcommands(self::quoted)
}

/// The command line, with grouped commands in its help.
pub(super) fn command(command: Command) -> Command {
    let styles = command.get_styles();
    let (header, literal) = (*styles.get_header(), *styles.get_literal());
    let mut text = format!("{{about}}\n\n{{usage-heading}} {{usage}}\n\n{header}Examples:{header:#}\n");
    list(&mut text, &EXAMPLES, literal);
    for (group, names) in GROUPS {
        let about = |name: &&'static str| {
            let found = command.find_subcommand(name).and_then(Command::get_about);
            (*name, found.map_or_else(|| "Print this help, or the help of a command".to_owned(), ToString::to_string))
        };
        let _ = write!(text, "\n{header}{group}:{header:#}\n"); // writing to a String cannot fail
        list(&mut text, &names.iter().map(about).collect::<Vec<_>>(), literal);
    }
    let _ = write!(text, "\n{header}Options:{header:#}\n{{options}}\n\n{header}Exit codes:{header:#}\n");
    list(&mut text, &EXIT_CODES, literal);
    command.help_template(text)
}

fn list<T: AsRef<str>>(text: &mut String, entries: &[(&str, T)], literal: Style) {
    let width = entries.iter().map(|(name, _)| name.len()).max().unwrap_or_default();
    for (name, about) in entries {
        let _ = writeln!(text, "  {literal}{name}{literal:#}{:1$}  {2}", "", width - name.len(), about.as_ref());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{Arguments, command_line};
    use clap::CommandFactory;
    use pilotlight_agents::adapter::ADAPTERS;

    #[test]
    fn every_command_is_in_one_group() {
        let mut grouped: Vec<_> = GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        let mut command = Arguments::command();
        command.build();
        let mut known: Vec<_> =
            command.get_subcommands().filter(|it| !it.is_hide_set()).map(Command::get_name).collect();
        grouped.sort_unstable();
        known.sort_unstable();
        assert_eq!(grouped, known);
    }

    #[test]
    fn examples_come_first_and_no_line_is_too_long() {
        let help = command(Arguments::command()).render_help().to_string();
        let at = |what: &str| help.find(what).unwrap_or_else(|| panic!("{what}: {help}"));
        assert!(at("Examples:") < at("Look:") && at("Look:") < at("Act:") && at("Act:") < at("Set up:"));
        assert!(at("Set up:") < at("--home") && at("--home") < at("nothing confirms"));
        assert!(help.lines().all(|line| line.len() <= 100), "{help}");
    }

    /// Case 234: clap shows them as they are.
    #[test]
    fn case_234_no_help_contains_a_backquote() {
        fn check(command: &mut Command) {
            let help = command.render_long_help().to_string() + &command.render_help().to_string();
            assert!(!help.contains('`'), "{help}");
            command.get_subcommands_mut().for_each(check);
        }
        check(&mut command(command_line()));
        let texts = EXAMPLES.iter().chain(&EXIT_CODES).chain(&ENVIRONMENT).chain(&FILES);
        for (_, text) in texts {
            assert!(!text.contains('`'), "{text}");
        }
    }

    #[test]
    fn the_home_of_every_agent_is_named_and_its_variable() {
        let profiles = ADAPTERS.iter().map(|adapter| adapter.profile()).filter(|profile| !profile.home.is_empty());
        let profiles: Vec<_> = profiles.filter(|profile| profile.names.name != "sundial").collect(); // it is made up
        let (variables, _) = ENVIRONMENT[0];
        assert_eq!(variables, profiles.iter().map(|profile| profile.home_variable).collect::<Vec<_>>().join(", "));
        let homes = profiles.iter().map(|profile| format!("~/{}/", profile.home)).collect::<Vec<_>>().join(", ");
        assert!(FILES.iter().any(|(files, _)| *files == homes), "{homes}");
    }

    #[test]
    fn each_example_parses() {
        for (example, _) in EXAMPLES {
            let parsed = command(Arguments::command()).try_get_matches_from(example.split(' '));
            assert!(parsed.is_ok(), "{example}");
        }
    }
}
