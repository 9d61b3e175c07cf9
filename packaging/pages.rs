//! Writes what comes with the program beside itself: the manual's pages and the completions of three shells, made of the
//! command line as the program itself knows it.
//!
//!     cargo run --example pages -- FOLDER
//!
//! An example, so that what makes them is no part of the program.
#![allow(clippy::print_stderr, reason = "its user reads it in a terminal")]

use clap::Command;
use clap_complete::Shell;
use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let Some(folder) = std::env::args_os().nth(1) else {
        eprintln!("pages: name the folder that the pages are written to");
        return ExitCode::from(2);
    };
    match write(Path::new(&folder)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("pages: {} cannot be written to: {error}", folder.display());
            ExitCode::FAILURE
        }
    }
}

fn write(folder: &Path) -> std::io::Result<()> {
    let [man, completions] = ["man", "completions"].map(|name| folder.join(name));
    for made in [&man, &completions] {
        std::fs::create_dir_all(made)?;
    }
    let command = pilotlight::cli::command();
    clap_mangen::generate_to(command.clone(), &man)?;
    for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
        clap_complete::generate_to(shell, &mut visible(&command), "pilotlight", &completions)?;
    }
    Ok(())
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
