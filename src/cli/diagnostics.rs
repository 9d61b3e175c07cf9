//! `pilotlight diagnostics`: prints the text of a bug report, safe for anybody to read.

use super::context::Context;
use crate::doctor::{examine, report::report};
use std::io::{self, Write};
use std::process::ExitCode;

pub(super) fn run(context: &Context) -> anyhow::Result<ExitCode> {
    let check_context = context.check_context();
    write!(io::stdout(), "{}", report(&check_context, &examine(&check_context)))?;
    Ok(ExitCode::SUCCESS)
}
