//! `pilotlight host test`: connects as the tray would, and says each step.

use super::super::context::{Context, runtime};
use super::super::hosts::ask_tray;
use super::super::report::{FAILED, USAGE, say};
use super::talk::{tell, wait};
use super::{same_as, tell_tray};
use pilotlight_core::text::{counted, plain};
use pilotlight_engine::config::Reach;
use pilotlight_engine::control::pipe::lines::{FromHost, Hello};
use pilotlight_engine::hosts::{HostEventKind, Link, Purpose};
use std::collections::BTreeSet;
use std::io;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use tokio::sync::mpsc::channel;
use tokio::time::timeout;

/// How long the machine may take until it has told of all its sessions.
const TOLD_WITHIN: Duration = Duration::from_secs(30);
/// Maximum length of what the machine calls itself, in characters.
const NAME_MAX: usize = 20;

pub(super) fn run(context: &Context, name: &str) -> anyhow::Result<ExitCode> {
    context.report_problems();
    let Some(host) = context.config.hosts.iter().find(|host| host.name == name) else {
        say(&format!("no machine in the settings is called {name:?}: `pilotlight host list` lists them"));
        return Ok(ExitCode::from(USAGE));
    };
    let how = match &host.reach {
        Reach::Ssh { to, program, .. } => format!("ssh {to} {program}"),
        Reach::Command(words) => words.join(" "),
    };
    tell(&format!("{name}: connecting with `{how}`"))?;
    let runtime = runtime()?;
    let (sender, mut news) = channel(4);
    let link = runtime.block_on(async { Link::start(host.clone(), 0, Purpose::Look, sender) });
    let (began, mut sessions, mut machine) = (Instant::now(), BTreeSet::<Box<str>>::new(), None);
    let tried = async {
        while let Some(news) = news.recv().await {
            for said in news.said {
                match said {
                    HostEventKind::Hello(hello) => {
                        tell(&greeting(&hello, began.elapsed()))?;
                        machine = hello.machine;
                    }
                    HostEventKind::Line(FromHost::Session(report)) => _ = sessions.insert(report.id().into()),
                    HostEventKind::Line(FromHost::Gone(id)) => _ = sessions.remove(&id),
                    HostEventKind::Line(FromHost::Ready) => return Ok(None),
                    HostEventKind::Line(_) => {}
                    HostEventKind::Lost { why, .. } => return Ok(Some(why)),
                }
            }
        }
        Ok::<_, io::Error>(Some("the connection ended".to_owned()))
    };
    let late = format!("it did not send its sessions within {} s", TOLD_WITHIN.as_secs());
    let why = match wait(&runtime, async { timeout(TOLD_WITHIN, tried).await }) {
        Some(Ok(told)) => told?,
        Some(Err(_)) => Some(late),
        None => Some("interrupted".to_owned()),
    };
    drop(link);
    if let Some(why) = why {
        say(&format!("{name} is not reached: {why}"));
        return Ok(ExitCode::from(FAILED));
    }
    tell(&format!("  it tells of {}", counted(sessions.len(), "session")))?;
    let Some(reports) = runtime.block_on(ask_tray()) else { return Ok(ExitCode::SUCCESS) };
    if let Some(other) = machine.and_then(|machine| same_as(&machine, name, &reports)) {
        tell(&match &*other {
            "" => "  it is this machine itself, whose sessions are listed anyway".to_owned(),
            other => format!("  it is the same machine as {other}"),
        })?;
    }
    // What was found out here is true for the tray as well.
    if reports.iter().any(|report| *report.host == *name && report.trouble.is_some()) {
        let words = match wait(&runtime, tell_tray(name, false)).flatten() {
            Some(report) if report.trouble.is_none() => "the tray that runs here reaches it again",
            _ => "the tray that runs here does not reach it yet",
        };
        tell(&format!("  {words}"))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn greeting(hello: &Hello, took: Duration) -> String {
    let shown = |text: &str| plain(text, NAME_MAX);
    let tray = if hello.has_tray { "a tray runs there" } else { "no tray runs there, so it watches by itself" };
    format!(
        "  reached in {:.1} s: Pilotlight {} on {} {}; {tray}",
        took.as_secs_f32(),
        shown(&hello.version),
        shown(&hello.system),
        shown(&hello.architecture)
    )
}
