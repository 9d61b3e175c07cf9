//! `pilotlight diagnostics`: prints the text of a bug report, safe for anybody to read.

use super::context::Context;
use crate::doctor::{examine, report::report};
use std::io::{self, Write};
use std::process::ExitCode;

pub(super) fn run(context: &Context) -> anyhow::Result<ExitCode> {
    let ground = context.ground();
    write!(io::stdout(), "{}", report(&ground, &examine(&ground)))?;
    Ok(ExitCode::SUCCESS)
}
