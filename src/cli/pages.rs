//! `pilotlight completions` and `pilotlight man`: shell completions and manual pages, generated from the command line's
//! definition.

use super::help::{ENVIRONMENT, EXAMPLES, EXIT_CODES, FILES};
use anyhow::Context as _;
use clap::{Arg, ArgAction, Command};
use clap_complete::Shell;
use clap_complete::env::Shells;
use clap_mangen::roff::{Roff, bold, roman};
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

const NAME: &str = "pilotlight";

/// Arguments of `completions`.
#[derive(Debug, clap::Args)]
pub(super) struct Completions {
    /// The shell to complete for
    shell: Shell,
}

/// Arguments of `man`.
#[derive(Debug, clap::Args)]
pub(super) struct Man {
    /// Write a page for the program and one for each command into this folder, which is created if missing
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

/// The variable that makes the program complete a command line. The completion scripts set it.
pub(super) const COMPLETES: &str = "PILOTLIGHT_COMPLETE";

/// Prints a script that makes the shell call this program at each Tab, so that ids, folders and titles are current.
pub(super) fn completions(arguments: &Completions) -> anyhow::Result<ExitCode> {
    print(&script(arguments.shell))
}

/// The completion script for a shell.
pub(super) fn script(shell: Shell) -> Vec<u8> {
    let (shells, mut script) = (Shells::builtins(), Vec::new());
    if let Some(completer) = shells.completer(&shell.to_string()) {
        let _ = completer.write_registration(COMPLETES, NAME, NAME, NAME, &mut script); // writing to a Vec cannot fail
    }
    if shell == Shell::Zsh {
        // zsh autoloads the file as the function `_pilotlight` at the first Tab, which must then complete, too.
        script.extend(b"[[ $funcstack[1] != _pilotlight ]] || _clap_dynamic_completer_pilotlight \"$@\"\n");
    }
    script
}

/// `command` is the whole command line.
pub(super) fn man(arguments: &Man, command: Command) -> anyhow::Result<ExitCode> {
    let mut command = command.disable_help_subcommand(true);
    command.build();
    let command = with_synopses(command);
    let page = main_page(command.clone())?;
    let Some(dir) = &arguments.dir else {
        return print(&page);
    };
    std::fs::create_dir_all(dir)
        .and_then(|()| clap_mangen::generate_to(command, dir))
        .and_then(|()| std::fs::write(dir.join("pilotlight.1"), page))
        .with_context(|| format!("the manual cannot be written into {}", dir.display()))?;
    Ok(ExitCode::SUCCESS)
}

/// The commands, with a synopsis each that names the values of its options: `clap_mangen` leaves them out.
fn with_synopses(command: Command) -> Command {
    let name = command.get_bin_name().unwrap_or(NAME).to_owned();
    let is_own = |arg: &&Arg| !arg.is_hide_set() && !["help", "version"].contains(&arg.get_id().as_str());
    let words = command.get_arguments().filter(is_own).map(|arg| {
        let word = if arg.is_positional() || arg.is_required_set() { arg.to_string() } else { format!("[{arg}]") };
        word + if matches!(arg.get_action(), ArgAction::Append) { "..." } else { "" }
    });
    let mut synopsis = words.fold(name, |synopsis, word| synopsis + " " + &word);
    if command.has_subcommands() {
        synopsis += if command.is_subcommand_required_set() { " <COMMAND>" } else { " [COMMAND]" };
    }
    command.override_usage(synopsis).mut_subcommands(with_synopses)
}

/// The page of the program itself, with what its commands have in common.
fn main_page(command: Command) -> io::Result<Vec<u8>> {
    let (man, mut page) = (clap_mangen::Man::new(command), Vec::new());
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    man.render_subcommands_section(&mut page)?;
    man.render_options_section(&mut page)?;
    let mut roff = Roff::new();
    let sections =
        [("EXAMPLES", &EXAMPLES[..]), ("EXIT STATUS", &EXIT_CODES), ("ENVIRONMENT", &ENVIRONMENT), ("FILES", &FILES)];
    for (name, entries) in sections {
        roff.control("SH", [name]);
        for (term, meaning) in entries {
            roff.control("TP", []).text([bold(*term)]).text([roman(*meaning)]);
        }
    }
    roff.to_writer(&mut page)?;
    man.render_version_section(&mut page)?;
    Ok(page)
}

fn print(bytes: &[u8]) -> anyhow::Result<ExitCode> {
    let mut out = io::stdout().lock();
    out.write_all(bytes)?;
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}
