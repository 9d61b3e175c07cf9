//! `pilotlight completions` and `pilotlight man`: what a shell and `man` know of the command line, made from the command
//! line itself.

use super::Arguments as CommandLine;
use super::help::{ENVIRONMENT, EXAMPLES, EXIT_CODES, FILES};
use anyhow::Context as _;
use clap::{Command, CommandFactory};
use clap_complete::Shell;
use clap_mangen::roff::{Roff, bold, roman};
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

/// Arguments of `completions`.
#[derive(Debug, clap::Args)]
pub(super) struct Completions {
    /// The shell to complete for
    shell: Shell,
}

/// Arguments of `man`.
#[derive(Debug, clap::Args)]
pub(super) struct Man {
    /// Write a page for the program and for each of its commands into this folder, which is made where it is missing
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

pub(super) fn completions(arguments: &Completions) -> anyhow::Result<ExitCode> {
    // In memory first: what generates it does not expect that writing can fail.
    print(&script(arguments.shell))
}

/// What completes the command line in this shell.
pub(super) fn script(shell: Shell) -> Vec<u8> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut visible(&CommandLine::command()), "pilotlight", &mut script);
    script
}

pub(super) fn man(arguments: &Man) -> anyhow::Result<ExitCode> {
    let page = main_page()?;
    let Some(dir) = &arguments.dir else {
        return print(&page);
    };
    std::fs::create_dir_all(dir)
        .and_then(|()| clap_mangen::generate_to(CommandLine::command(), dir))
        .and_then(|()| std::fs::write(dir.join("pilotlight.1"), page))
        .with_context(|| format!("the manual cannot be written into {}", dir.display()))?;
    Ok(ExitCode::SUCCESS)
}

/// The page of the program itself: what its commands have in common stands there.
fn main_page() -> io::Result<Vec<u8>> {
    let (man, mut page) = (clap_mangen::Man::new(CommandLine::command()), Vec::new());
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

/// The command as its user sees it: what is hidden in its help would be offered by a shell.
fn visible(command: &Command) -> Command {
    let name: &'static str = command.get_name().to_owned().leak(); // one for each command, and then this program ends
    let about = command.get_about().cloned().unwrap_or_default();
    let arguments = command.get_arguments().filter(|argument| !argument.is_hide_set()).cloned();
    let commands = command.get_subcommands().filter(|command| !command.is_hide_set()).map(visible);
    let new = Command::new(name).about(about).args(arguments).subcommands(commands);
    match command.get_version() {
        Some(_) => new.version(env!("CARGO_PKG_VERSION")),
        None => new,
    }
}

#[cfg(test)]
mod tests {
    use super::visible;
    use clap::{Arg, Command};

    #[test]
    fn what_the_help_hides_is_not_offered() {
        let hidden = Command::new("secret").hide(true);
        let shown =
            Command::new("status").arg(Arg::new("part").long("part").hide(true)).arg(Arg::new("all").long("all"));
        let seen = visible(&Command::new("pilotlight").version("1").subcommands([hidden, shown]));
        let commands: Vec<_> = seen.get_subcommands().collect();
        assert_eq!(commands.len(), 1);
        let arguments: Vec<_> = commands[0].get_arguments().map(|argument| argument.get_id().as_str()).collect();
        assert_eq!(arguments, ["all"]);
    }
}
