//! `pilotlight notify-test`: sends a test notification, and reports what this desktop supports.

use super::context::{Context, runtime};
use super::fold::on_stdout;
use crate::tray::notify;
use anyhow::Context as _;
use std::io::{self, Write};
use std::process::ExitCode;

pub(super) fn run(context: &Context) -> anyhow::Result<ExitCode> {
    context.report_problems();
    let runtime = runtime()?;
    let tried = runtime.block_on(notify::send_test());
    let mut tried = tried.context("no notification can be shown, but `pilotlight live` shows what needs you")?;
    let mut out = io::stdout().lock();
    for line in std::mem::take(&mut tried.lines) {
        writeln!(out, "{}", on_stdout(&line))?;
    }
    if !context.config.notifications.enabled {
        writeln!(out, "Notifications of sessions are off: `notifications.enabled` is false in the settings")?;
    }
    drop(out);
    runtime.block_on(tried.keep_visible());
    Ok(ExitCode::SUCCESS)
}
