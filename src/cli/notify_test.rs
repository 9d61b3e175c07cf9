//! `pilotlight notify-test`: sends a notification, and says what is possible on this desktop.

use super::{Context, runtime};
use crate::tray::notify;
use anyhow::Context as _;
use std::io::{self, Write};
use std::process::ExitCode;

pub(super) fn run(context: &Context) -> anyhow::Result<ExitCode> {
    context.tell_problems();
    let runtime = runtime()?;
    let tried = runtime.block_on(notify::try_out());
    let mut tried = tried.context("no notification can be shown; the menu and `pilotlight live` show the same")?;
    let mut out = io::stdout().lock();
    for line in std::mem::take(&mut tried.lines) {
        writeln!(out, "{line}")?;
    }
    if !context.config.notifications.enabled {
        writeln!(out, "Notifications of sessions are off: `notifications.enabled` is false in the config")?;
    }
    drop(out);
    runtime.block_on(tried.be_seen());
    Ok(ExitCode::SUCCESS)
}
