//! `pilotlight config`: the settings, with their meaning.

use super::{Context, USAGE};
use std::io::{self, Write};
use std::process::ExitCode;

/// Arguments of `config`.
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Print every setting with its meaning and its present value, as a valid config.toml
    #[arg(long, required = true)]
    print: bool,
}

pub(super) fn run(context: &Context, _arguments: &Arguments) -> anyhow::Result<ExitCode> {
    context.tell_problems();
    let mut out = io::stdout().lock();
    if let Some(path) = &context.config_path {
        writeln!(out, "# Read from {}", path.display())?;
    }
    write!(out, "{}", crate::config::print(&context.config))?;
    Ok(if context.problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(USAGE) })
}
