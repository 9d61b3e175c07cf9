//! How an order is carried out: by the tray that runs, where connections stay, else by an engine of the command's own.

use super::tell::Tell;
use crate::act::{Given, Order, Outcome, Report};
use crate::cli::{Context, runtime, say};
use crate::control::{self, Asked};
use crate::core::time::Moment;
use crate::engine::{Command, Fleet, Key, View};
use crate::paths;
use crate::runtime::{Runtime, is_stopped, process_in};
use std::io;
use std::ops::ControlFlow;
use std::path::Path;
use std::pin::pin;
use std::time::Duration;
use tokio::sync::mpsc::unbounded_channel;
use tokio::time::{Instant, timeout, timeout_at};

/// What is waited for longer than this is said: that the tray hears of the order, and that it does something about it.
const SILENCE: Duration = Duration::from_secs(2);

/// Carries an order out, tells of it, and returns how it ended. `stays`: what is done depends on a connection, so that where
/// the command had to do it itself, it goes on until a signal.
pub(super) fn carry_out(context: &Context, order: Order, stays: bool, tell: &mut dyn Tell) -> anyhow::Result<Outcome> {
    runtime()?.block_on(async {
        // The tray goes by the id alone, and may watch the other home.
        if context.has_namesake(&order.id) {
            return by_ourselves(context, order, stays, tell).await;
        }
        match by_the_tray(&order, tell).await {
            // A tray that watches other homes leaves it to us.
            None | Some(Outcome::Unknown) => {}
            Some(outcome) => return Ok(outcome),
        }
        by_ourselves(context, order, stays, tell).await
    })
}

/// `None` where no tray runs.
async fn by_the_tray(order: &Order, tell: &mut dyn Tell) -> Option<Outcome> {
    for folder in paths::runtime_folders(&paths::project()?) {
        match Runtime::open(&folder) {
            Ok(Some(runtime)) => match hand_over(&folder, &runtime, order, tell).await {
                Ok(None) => {}
                Ok(outcome) => return outcome,
                Err(error) => {
                    let outcome = Outcome::Failed(error.to_string());
                    tell.report(&Report::End(outcome.clone()));
                    return Some(outcome);
                }
            },
            Ok(None) => {}
            Err(error) => say(&format!("no tray is looked for there: {error}")),
        }
    }
    None
}

async fn hand_over(
    folder: &Path,
    runtime: &Runtime,
    order: &Order,
    tell: &mut dyn Tell,
) -> io::Result<Option<Outcome>> {
    let said_at = Instant::now() + SILENCE;
    let mut asking = pin!(control::ask(folder, order));
    let (asked, let_in) = match timeout_at(said_at, &mut asking).await {
        Ok(asked) => (asked?, true),
        Err(_) => {
            say(&unheard(process_in(&runtime.note())));
            (asking.await?, false)
        }
    };
    let Some(mut asked) = asked else { return Ok(None) };
    match timeout_at(said_at, asked.heard()).await {
        Ok(heard) => heard?,
        Err(_) => {
            if let_in {
                say(&unheard(asked.tray()));
            }
            asked.heard().await?;
        }
    }
    let first = match timeout(SILENCE, asked.next()).await {
        Ok(first) => first?,
        Err(_) => {
            say("the tray is at work on it; Ctrl-C leaves it to the tray");
            asked.next().await?
        }
    };
    follow(asked, first, tell).await.map(Some)
}

/// What to say of a tray that does not answer, and what to do.
fn unheard(tray: Option<u32>) -> String {
    const WAITS: &str = "this command waits for it, and Ctrl-C ends the wait";
    match tray {
        Some(process) if is_stopped(process) => {
            format!("Pilotlight's tray (process {process}) is stopped: `kill -CONT {process}` lets it go on; {WAITS}")
        }
        Some(process) => format!(
            "Pilotlight's tray (process {process}) does not answer; {WAITS}; if it hangs, end process {process} and try again"
        ),
        None => format!("Pilotlight's tray does not answer; {WAITS}; if it hangs, end it and try again"),
    }
}

/// Tells every report up to the end.
async fn follow(mut asked: Asked, mut report: Option<Report>, tell: &mut dyn Tell) -> io::Result<Outcome> {
    while let Some(it) = report {
        if it == Report::End(Outcome::Unknown) {
            return Ok(Outcome::Unknown);
        }
        tell.report(&it);
        if let Report::End(outcome) = it {
            return Ok(outcome);
        }
        report = asked.next().await?;
    }
    Err(io::Error::other("the tray did not say how it ended"))
}

async fn by_ourselves(context: &Context, order: Order, stays: bool, tell: &mut dyn Tell) -> anyhow::Result<Outcome> {
    let engine = context.engine();
    let commander = engine.commander();
    let send = |command| {
        let _ = commander.send(command); // fails only when the engine has ended
    };
    let (reply, mut reports) = unbounded_channel();
    send(Command::Act(Given { order, reply }));
    let mut nobody = Nobody;
    let mut run = pin!(engine.run(&mut nobody));
    let mut ended = None;
    loop {
        tokio::select! {
            // What was reported before the engine ended is told.
            biased;
            report = reports.recv(), if ended.is_none() => {
                let unsaid = || Report::End(Outcome::Failed("it broke off before it was over".into()));
                let report = report.unwrap_or_else(unsaid);
                tell.report(&report);
                if let Report::End(outcome) = report {
                    if stays && matches!(outcome, Outcome::Done(_)) {
                        say("no tray runs to keep the connection: this command stays connected; Ctrl-C lets go");
                    } else {
                        send(Command::Quit);
                    }
                    ended = Some(outcome);
                }
            }
            ran = &mut run => {
                ran?;
                return Ok(ended.unwrap_or_else(|| {
                    let outcome = Outcome::Failed("interrupted before it was over".into());
                    tell.report(&Report::End(outcome.clone()));
                    outcome
                }));
            }
        }
    }
}

/// Nobody looks.
struct Nobody;

impl View for Nobody {
    fn show(&mut self, _fleet: &Fleet, _changed: &[Key], _removed: &[Key], _now: Moment) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    fn asks_servers(&self) -> bool {
        false
    }
}
