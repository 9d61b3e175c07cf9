//! `pilotlight host retry`: has the running tray try again at once to reach a machine, and says what came of it.

use super::super::context::{Context, runtime};
use super::super::hosts::ask_tray;
use super::super::report::{FAILED, USAGE, say};
use super::talk::{tell, wait};
use super::{Row, tell_tray};
use futures_util::future::join_all;
use pilotlight_engine::config::HostSetting;
use pilotlight_system::clock::Clock;
use std::process::ExitCode;

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// The machine's name in the settings. Default: all machines that are not reached
    name: Option<String>,
}

pub(super) fn run(context: &Context, arguments: &Arguments) -> anyhow::Result<ExitCode> {
    context.report_problems();
    if let Some(name) = &arguments.name
        && !context.config.hosts.iter().any(|host| host.name == *name)
    {
        say(&format!("no machine in the settings is called {name:?}: `pilotlight host list` lists them"));
        return Ok(ExitCode::from(USAGE));
    }
    let runtime = runtime()?;
    let Some(reports) = runtime.block_on(ask_tray()) else {
        say("no tray is running. To try a machine now: `pilotlight host test NAME`");
        return Ok(ExitCode::from(FAILED));
    };
    let is_lost = |host: &&HostSetting| {
        reports.iter().find(|report| *report.host == *host.name).is_some_and(|report| report.trouble.is_some())
    };
    let is_meant =
        |host: &&HostSetting| arguments.name.as_ref().map_or_else(|| is_lost(host), |name| host.name == *name);
    let hosts: Vec<_> = context.config.hosts.iter().filter(is_meant).collect();
    if hosts.is_empty() {
        tell("every machine in the settings is reached")?;
    }
    let mut code = ExitCode::SUCCESS;
    let tried = join_all(hosts.iter().map(|host| tell_tray(&host.name, false)));
    let Some(reports) = wait(&runtime, tried) else { return Ok(ExitCode::from(FAILED)) };
    for (host, report) in hosts.into_iter().zip(reports) {
        let now = Clock::start().now().wall;
        let words = report.as_ref().map(|report| Row::new(host, Some(report), None, now).words());
        if report.is_none_or(|report| report.trouble.is_some()) {
            code = ExitCode::from(FAILED);
        }
        let words = words.unwrap_or_else(|| "the tray that runs does not know it, or does not answer".to_owned());
        tell(&format!("{}: {words}", host.name))?;
    }
    Ok(code)
}
