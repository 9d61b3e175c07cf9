//! How an order is carried out: by the tray that runs, where connections stay, else by an engine of the command's own.

use super::staying::{self, Watching, ask_here, is_let_go, serving};
use super::tell::Tell;
use crate::agent::copilot::bridge::files::Files;
use crate::agent::copilot::bridge::socket::is_listened_to;
use crate::cli::beside::silent;
use crate::cli::pick::Picked;
use crate::cli::{Context, runtime, say};
use crate::control::{self, Asked};
use crate::core::fleet::Session;
use crate::core::order::{Ask, Given, Order, Outcome, Report, Which};
use crate::core::owner::Owner;
use crate::core::turn::Call;
use crate::engine::snapshot;
use crate::engine::{Command, Listening};
use crate::system::paths;
use crate::system::runtime::{Runtime, process_in};
use crate::system::signals::Signals;
use std::io;
use std::path::Path;
use std::pin::pin;
use std::time::Duration;
use tokio::sync::{mpsc::unbounded_channel, oneshot};
use tokio::time::{Instant, timeout, timeout_at};

/// What is waited for longer than this is said: that the tray hears of the order, and that it does something about it.
const SILENCE: Duration = Duration::from_secs(2);

/// Carries an order out for `session` as it was picked, tells of it, and returns how it ended. `stays`: what is done depends on a
/// connection, so that where the command had to do it itself, it goes on until a signal.
pub(super) fn carry_out(
    context: &Context,
    session: &Picked,
    order: &Order,
    stays: bool,
    tell: &mut dyn Tell,
) -> anyhow::Result<Outcome> {
    let order = &context.in_its_home(order.clone());
    let carried = runtime()?.block_on(async {
        // Whoever holds the session alone can do anything with it.
        for folder in staying::folders(context, &order.id) {
            match by_the_one_in(&folder, order, tell).await? {
                Carried::Nobody | Carried::Over(Outcome::Unknown) => {}
                carried => return Ok(carried),
            }
        }
        match by_the_tray(order, tell).await? {
            // A tray that watches other homes leaves it to us.
            Carried::Nobody | Carried::Over(Outcome::Unknown) => {}
            carried => return Ok(carried),
        }
        by_ourselves(context, session, order.clone(), stays, tell).await
    })?;
    let outcome = match carried {
        Carried::Over(outcome) => return Ok(outcome),
        Carried::Nobody => Outcome::Failed("nothing carried it out".into()),
        Carried::NotSent(why) => Outcome::Failed(format!("{why}; nothing was sent")),
        Carried::Sent(why) => looked_up(context, session, order, &why),
    };
    tell.report(&Report::End(outcome.clone()));
    Ok(outcome)
}

/// What came of an order.
enum Carried {
    /// Nobody is there to do it.
    Nobody,
    /// It is over, and was told.
    Over(Outcome),
    /// It was broken off before anything was sent, for this reason.
    NotSent(String),
    /// It was broken off when something may have been sent.
    Sent(String),
}

async fn by_the_tray(order: &Order, tell: &mut dyn Tell) -> anyhow::Result<Carried> {
    let Some(project) = paths::project() else { return Ok(Carried::Nobody) };
    for folder in paths::runtime_folders(&project) {
        match by_the_one_in(&folder, order, tell).await? {
            Carried::Nobody => {}
            carried => return Ok(carried),
        }
    }
    Ok(Carried::Nobody)
}

/// By whoever serves the control socket in this folder.
async fn by_the_one_in(folder: &Path, order: &Order, tell: &mut dyn Tell) -> anyhow::Result<Carried> {
    let runtime = match Runtime::open(folder) {
        Ok(Some(runtime)) => runtime,
        Ok(None) => return Ok(Carried::Nobody),
        Err(error) => {
            say(&format!("no tray can be asked: {error}"));
            return Ok(Carried::Nobody);
        }
    };
    let (mut signals, mut heard) = (Signals::new()?, false);
    let carried = tokio::select! {
        carried = hand_over(folder, &runtime, order, tell, &mut heard) => Some(carried),
        () = signals.end() => None,
    };
    // With that the connection is closed, and a tray that has not heard of the order never does.
    Ok(match carried {
        Some(Ok(Some(outcome))) => Carried::Over(outcome),
        Some(Ok(None)) => Carried::Nobody,
        Some(Err(error)) if heard => Carried::Sent(error.to_string()),
        Some(Err(error)) => Carried::NotSent(error.to_string()),
        None if heard => Carried::Sent("interrupted while the tray was working on it".into()),
        None => Carried::NotSent("interrupted".into()),
    })
}

/// `None` where no tray runs. `heard` tells whether the tray has the order.
async fn hand_over(
    folder: &Path,
    runtime: &Runtime,
    order: &Order,
    tell: &mut dyn Tell,
    heard: &mut bool,
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
    *heard = true;
    let first = match timeout(SILENCE, asked.next()).await {
        Ok(first) => first?,
        Err(_) => {
            say("the tray is working on it; Ctrl-C cancels it as long as nothing was sent");
            asked.next().await?
        }
    };
    follow(asked, first, tell).await.map(Some)
}

/// What to say of a tray that does not hear of the order.
fn unheard(tray: Option<u32>) -> String {
    silent(tray, "this command waits for it; Ctrl-C cancels")
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

async fn by_ourselves(
    context: &Context,
    session: &Picked,
    order: Order,
    stays: bool,
    tell: &mut dyn Tell,
) -> anyhow::Result<Carried> {
    let (signals, mut engine) = (Signals::new()?, context.engine());
    let commander = engine.commander();
    if let Some(listening) = place_for_bridges() {
        engine.listen_to_bridges(listening);
    }
    // Another command may come to hold the session between our look for one and our turn to act.
    engine.hand_to_holders(paths::project().iter().flat_map(paths::runtime_folders).collect());
    let send = |command| {
        let _ = commander.send(command); // fails only when the engine has ended
    };
    let (reply, mut reports) = unbounded_channel();
    let id = order.id.clone();
    let (begin, mut begun) = oneshot::channel();
    if stays {
        let serve = serving(context, &id, commander.clone());
        engine.before_holding(move || drop(begin.send(serve()))); // whoever waits for it ends after the engine
    }
    send(Command::Act(Given::by_caller(order, reply)));
    let (mut watching, seen) = Watching::new(&id);
    let mut run = pin!(engine.run(signals, &mut watching));
    let mut asking = pin!(ask_here(context, session, commander.clone(), seen.clone()));
    let mut let_go = pin!(is_let_go(seen.clone()));
    let (mut ended, mut sent, mut stays_on, mut reachable) = (None, false, false, None);
    loop {
        tokio::select! {
            // What was reported before the engine ended is told.
            biased;
            report = reports.recv(), if ended.is_none() => {
                let unsaid = || Report::End(match sent {
                    true => Outcome::Unconfirmed("may have happened: it broke off before it was done".into()),
                    false => Outcome::Failed("it broke off before it was done".into()),
                });
                let report = report.unwrap_or_else(unsaid);
                sent |= matches!(report, Report::Step(step, _) if step.sends());
                tell.report(&report);
                if let Report::End(outcome) = report {
                    // Where another command holds it, nothing was begun here.
                    let served = begun.try_recv().ok();
                    let confirmed = matches!(outcome, Outcome::Done(_));
                    let may_run = confirmed || matches!(outcome, Outcome::Unconfirmed(_));
                    stays_on = served.is_some() && may_run && seen.borrow().held;
                    if stays_on {
                        reachable = served;
                        staying::stays(&id, confirmed);
                    } else {
                        send(Command::Quit);
                    }
                    ended = Some(outcome);
                }
            }
            () = &mut let_go, if stays_on => {
                say("the connection is gone, so this command ends");
                stays_on = false;
                send(Command::Quit);
            }
            () = &mut asking, if stays_on => {}
            () = &mut run => {
                drop(reachable);
                while let Ok(report) = reports.try_recv() {
                    sent |= matches!(report, Report::Step(step, _) if step.sends());
                    tell.report(&report);
                    if let Report::End(outcome) = report {
                        ended = Some(outcome);
                    }
                }
                return Ok(match ended {
                    Some(outcome) => Carried::Over(outcome),
                    None if sent => Carried::Sent("interrupted before it was confirmed".into()),
                    None => Carried::NotSent("interrupted".into()),
                });
            }
        }
    }
}

/// Where bridges are listened for by a command, where one was installed and nobody listens.
pub(in crate::cli) fn place_for_bridges() -> Option<Listening> {
    let project = paths::project()?;
    let (files, folders) = (Files::new(&project), paths::runtime_folders(&project));
    files.key()?;
    if folders.iter().any(|folder| is_listened_to(folder)) {
        return None;
    }
    let folder = folders.into_iter().find(|folder| Runtime::make(folder).is_ok())?;
    Some(Listening { folder, files, briefly: true })
}

/// What the disk says of an order that was broken off when something may have been sent.
fn looked_up(context: &Context, before: &Session, order: &Order, why: &str) -> Outcome {
    let now = snapshot::take(&context.homes, &context.config, &context.seen, false).sessions;
    let Some(now) = now.into_iter().find(|session| session.id == order.id) else {
        return Outcome::Unconfirmed(format!("may have happened: {why}; the session no longer exists"));
    };
    match came_of(&order.ask, before, &now) {
        Came::Done(words) => Outcome::Done(format!("{words} ({why})")),
        Came::Open(words) => Outcome::Unconfirmed(format!("may have happened: {why}; {words}")),
    }
}

/// What a log tells of something that was sent.
#[derive(Debug, PartialEq, Eq)]
enum Came {
    /// It happened.
    Done(&'static str),
    /// It is not known: what is.
    Open(&'static str),
}

fn came_of(ask: &Ask, before: &Session, now: &Session) -> Came {
    let (before, facts) = (&before.facts, &now.facts);
    match ask {
        Ask::Approve(which) | Ask::Deny(which) => {
            let wanted = matches!(ask, Ask::Approve(_));
            let ids: Vec<&str> = match which {
                Which::These(ids) => ids.iter().map(String::as_str).collect(),
                Which::Shown { id, .. } => vec![id],
            };
            let answer = |id: &&str| {
                let call = Call::of(id);
                facts.answered.iter().rev().find(|(other, _)| *other == call).map(|(_, allowed)| *allowed)
            };
            let answers: Vec<_> = ids.iter().map(answer).collect();
            match wanted {
                _ if answers.contains(&None) => Came::Open("its log has no answer yet"),
                true if answers.iter().all(|answer| *answer == Some(true)) => Came::Done("approved: its log says so"),
                false if answers.iter().all(|answer| *answer == Some(false)) => Came::Done("denied: its log says so"),
                _ => Came::Open("its log has another answer"),
            }
        }
        Ask::Answer(_) => Came::Open("its log does not record answers to questions"),
        Ask::Stop if before.turn.is_none() => Came::Open("its log has no turn that could end"),
        Ask::Stop if facts.root == before.root && facts.turn.is_some() => {
            Came::Open("its log says that the turn goes on")
        }
        Ask::Stop => Came::Done("its log says that the turn has ended"),
        Ask::End { .. } | Ask::ForceQuit if !matches!(now.owner, Owner::Alive { .. }) => {
            Came::Done("its process has ended")
        }
        Ask::End { .. } | Ask::ForceQuit => Came::Open("its process lives"),
        Ask::Reconnect { .. } | Ask::Continue if facts.marks.prompt != before.marks.prompt => {
            Came::Open("its log has another prompt now")
        }
        Ask::Reconnect { .. } | Ask::Continue => Came::Open("its log has no new prompt"),
        Ask::Resume | Ask::ShowTerminal | Ask::LetAnswer | Ask::Detach | Ask::Listen | Ask::Said => {
            Came::Open("check whether it did")
        }
    }
}
