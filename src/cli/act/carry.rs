//! Carries out an order: through the running tray, which keeps connections, else with an engine of the command's own.

use super::evidence::{Evidence, evidence};
use super::output::Reporter;
use super::remote;
use super::staying::{self, SessionWatch, answer_requests_here, connection_lost, socket_server};

use crate::cli::bridges::{has_bridge, place_for_bridges};
use crate::cli::context::{Context, runtime};
use crate::cli::observe::{Effort, Observer};
use crate::cli::pick::Picked;
use crate::cli::report::say;
use crate::cli::trays::unresponsive;
use pilotlight_agents::copilot::bridge::{BridgeConfig, Bridges};
use pilotlight_core::action::ActionFlag;
use pilotlight_core::fleet::{Kind, Session};
use pilotlight_core::order::{Order, OrderReport, Outcome};
use pilotlight_engine::Engine;
use pilotlight_engine::control::{self, Command, OrderConnection, PendingOrder};
use pilotlight_system::paths;
use pilotlight_system::process::is_stopped;
use pilotlight_system::runtime::Runtime;
use pilotlight_system::signals::Signals;
use std::io;
use std::path::Path;
use std::pin::pin;
use std::time::Duration;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep, timeout, timeout_at};

/// The user is told what is being waited for once the tray takes longer than this, to receive the order or to act on
/// it.
const NOTICE_AFTER: Duration = Duration::from_secs(2);

/// How long a tray has to tell what became of an order that was taken back: a second longer than it takes at most.
const TAKEN_BACK_WITHIN: Duration = Duration::from_secs(4);
/// How long reading an acceptance that has already arrived may take.
const ACCEPTANCE_READ_WITHIN: Duration = Duration::from_millis(100);
/// How long the log has to show an order's effect before it is said that it does not.
const LOGGED_WITHIN: Duration = Duration::from_secs(2);
/// How long an answer waits for another command that listens for bridges.
const PLACE_WITHIN: Duration = Duration::from_secs(20);
/// How often something is looked at again.
const LOOK_INTERVAL: Duration = Duration::from_millis(200);

/// Carries out an order for `session`, prints its reports, and returns the outcome. With `stays`, the result depends on
/// a connection: if this process holds it, because no tray does, it then runs until a signal.
pub(super) fn carry_out(
    context: &Context,
    session: &Picked,
    order: &Order,
    stays: bool,
    reporter: &mut dyn Reporter,
) -> anyhow::Result<Outcome> {
    if let Some(host) = &order.host {
        return to_host(context, host, order, reporter);
    }
    let order = &context.with_home(order.clone());
    let delivery = runtime()?.block_on(async {
        // A command that holds the session comes first: only it can act on a session that depends on its connection.
        // What the tray opened a window for, it also hands on: only it knows that the window is the user's.
        let holders = if context.window.is_some() { Vec::new() } else { staying::folders(context, &order.id) };
        for folder in holders {
            match through_socket(&folder, order, reporter).await? {
                Delivery::NoServer | Delivery::Ended(Outcome::Unknown) => {}
                delivery => return Ok(delivery),
            }
        }
        match through_tray(order, reporter).await? {
            // The tray may be watching other homes.
            Delivery::NoServer | Delivery::Ended(Outcome::Unknown) => {}
            delivery => return Ok(delivery),
        }
        with_own_engine(context, session, order.clone(), stays, reporter).await
    })?;
    let outcome = match delivery {
        Delivery::Ended(outcome) => return Ok(outcome),
        Delivery::NoServer => Outcome::Failed("neither the tray nor this command could carry it out".into()),
        Delivery::NotSent(why) => Outcome::Failed(format!("{why}; nothing was sent")),
        Delivery::MaybeSent(why) => outcome_on_disk(context, session, order, &why)?,
    };
    reporter.report(&OrderReport::End(outcome.clone()));
    Ok(outcome)
}

/// Carries out an order for a session on another machine.
fn to_host(context: &Context, host: &str, order: &Order, reporter: &mut dyn Reporter) -> anyhow::Result<Outcome> {
    let outcome = match runtime()?.block_on(through_tray(order, reporter))? {
        Delivery::Ended(outcome) if outcome != Outcome::Unknown => return Ok(outcome),
        Delivery::Ended(_) | Delivery::NoServer => remote::carry_out(context, host, order.clone(), reporter)?,
        Delivery::NotSent(why) => Outcome::Failed(format!("{why}; nothing was sent")),
        Delivery::MaybeSent(why) => Outcome::Unconfirmed(format!(
            "may have happened: {why}; `pilotlight explain {}` tells how it is now",
            order.id
        )),
    };
    reporter.report(&OrderReport::End(outcome.clone()));
    Ok(outcome)
}

/// How far an order got.
enum Delivery {
    /// Nobody serves the socket.
    NoServer,
    /// It has ended, and the outcome was reported.
    Ended(Outcome),
    /// It was interrupted before anything was sent, for this reason.
    NotSent(String),
    /// It was interrupted when something may have been sent, for this reason.
    MaybeSent(String),
}

async fn through_tray(order: &Order, reporter: &mut dyn Reporter) -> anyhow::Result<Delivery> {
    let Some(project) = paths::project() else { return Ok(Delivery::NoServer) };
    for folder in paths::runtime_folders(&project) {
        match through_socket(&folder, order, reporter).await? {
            Delivery::NoServer => {}
            delivery => return Ok(delivery),
        }
    }
    Ok(Delivery::NoServer)
}

/// Has the order carried out by whoever serves the control socket in this folder.
async fn through_socket(folder: &Path, order: &Order, reporter: &mut dyn Reporter) -> anyhow::Result<Delivery> {
    let runtime = match Runtime::open(folder) {
        Ok(Some(runtime)) => runtime,
        Ok(None) => return Ok(Delivery::NoServer),
        Err(error) => {
            say(&format!("no tray can be asked: {error}"));
            return Ok(Delivery::NoServer);
        }
    };
    let (mut signals, mut connection) = (Signals::new()?, None);
    let result = tokio::select! {
        result = submit(folder, &runtime, order, reporter, &mut connection) => Some(result),
        () = signals.end() => None,
    };
    let is_accepted = connection.as_ref().is_some_and(OrderConnection::is_acknowledged);
    // Dropping the connection closes it. A tray that has not accepted the order by now never will.
    Ok(match result {
        Some(Ok(Some(outcome))) => Delivery::Ended(outcome),
        Some(Ok(None)) => Delivery::NoServer,
        Some(Err(error)) if is_accepted => Delivery::MaybeSent(error.to_string()),
        Some(Err(error)) => Delivery::NotSent(error.to_string()),
        None => match connection {
            Some(connection) => take_back(connection, reporter).await,
            None => Delivery::NotSent("interrupted".into()),
        },
    })
}

/// Takes an order back that the tray may have begun, and finds out what happened to it.
async fn take_back(mut connection: OrderConnection, reporter: &mut dyn Reporter) -> Delivery {
    let is_open = connection.take_back().await;
    // On a busy machine, the tray may have accepted the order long before this command gets to read that.
    if !matches!(timeout(ACCEPTANCE_READ_WITHIN, connection.acknowledged()).await, Ok(Ok(()))) {
        return Delivery::NotSent("interrupted".into());
    }
    let told = async {
        if !is_open {
            return None;
        }
        let first = connection.next().await.ok()?;
        follow(&mut connection, first, reporter).await.ok().filter(|outcome| *outcome != Outcome::Unknown)
    };
    match timeout(TAKEN_BACK_WITHIN, told).await {
        Ok(Some(outcome)) => Delivery::Ended(outcome),
        Ok(None) | Err(_) => Delivery::MaybeSent("interrupted while the tray was working on it".into()),
    }
}

/// Sends the order, and reports up to its end. `None` if no tray runs. `connection` is set to what the tray reports over.
async fn submit(
    folder: &Path,
    runtime: &Runtime,
    order: &Order,
    reporter: &mut dyn Reporter,
    connection: &mut Option<OrderConnection>,
) -> io::Result<Option<Outcome>> {
    let notice_at = Instant::now() + NOTICE_AFTER;
    let mut connecting = pin!(control::ask(folder, order));
    let (asked, in_time) = match timeout_at(notice_at, &mut connecting).await {
        Ok(asked) => (asked?, true),
        Err(_) => {
            say(&waiting_for(runtime.note().map(|note| note.process)));
            (connecting.await?, false)
        }
    };
    let Some(asked) = asked else { return Ok(None) };
    let asked = connection.insert(asked);
    match timeout_at(notice_at, asked.acknowledged()).await {
        Ok(heard) => heard?,
        Err(_) => {
            if in_time {
                say(&waiting_for(asked.tray()));
            }
            asked.acknowledged().await?;
        }
    }
    let first = match timeout(NOTICE_AFTER, asked.next()).await {
        Ok(first) => first?,
        Err(_) => {
            match asked.tray().filter(|process| is_stopped(*process)) {
                Some(_) => say(&waiting_for(asked.tray())),
                None => say("the tray is working on your order; until it sends something, Ctrl-C cancels the order"),
            }
            asked.next().await?
        }
    };
    follow(asked, first, reporter).await.map(Some)
}

/// The message about a tray that does not accept the order.
fn waiting_for(tray: Option<u32>) -> String {
    unresponsive(tray, "this command waits for it; Ctrl-C cancels")
}

/// Passes on every report, to the end.
async fn follow(
    asked: &mut OrderConnection,
    mut report: Option<OrderReport>,
    reporter: &mut dyn Reporter,
) -> io::Result<Outcome> {
    while let Some(it) = report {
        if it == OrderReport::End(Outcome::Unknown) {
            return Ok(Outcome::Unknown);
        }
        reporter.report(&it);
        if let OrderReport::End(outcome) = it {
            return Ok(outcome);
        }
        report = asked.next().await?;
    }
    Err(io::Error::other("the tray did not report the outcome"))
}

/// What is known of an order that this command carries out itself.
#[derive(Default)]
struct Progress {
    ended: Option<Outcome>,
    /// Whether something was sent.
    sent: bool,
    /// Whether the session is to be told to go on, once its turn is over.
    goes_on_later: bool,
}

impl Progress {
    /// Passes a report on; without one, the engine broke off.
    fn pass_on(&mut self, report: Option<OrderReport>, reporter: &mut dyn Reporter) {
        let broken_off = || {
            OrderReport::End(match self.sent {
                true => Outcome::Unconfirmed("may have happened: Pilotlight broke off before it was done".into()),
                false => Outcome::Failed("Pilotlight broke off before it was done".into()),
            })
        };
        let report = report.unwrap_or_else(broken_off);
        self.sent |= matches!(report, OrderReport::Step(step, _) if step.sends());
        reporter.report(&report);
        if let OrderReport::End(outcome) = report {
            self.ended = Some(outcome);
        }
    }

    /// How far the order got, now that the engine has ended; `reports` may hold some that it left. `undone`: the session
    /// was not told to go on.
    fn finish(
        mut self,
        reports: &mut UnboundedReceiver<OrderReport>,
        undone: bool,
        reporter: &mut dyn Reporter,
    ) -> Delivery {
        while let Ok(report) = reports.try_recv() {
            self.pass_on(Some(report), reporter);
        }
        if self.goes_on_later && undone {
            let outcome = Outcome::Failed("its turn was not over, so it was not told to continue".into());
            reporter.report(&OrderReport::End(outcome.clone()));
            return Delivery::Ended(outcome);
        }
        match self.ended {
            Some(outcome) => Delivery::Ended(outcome),
            None if self.sent => Delivery::MaybeSent("interrupted before it was confirmed".into()),
            None => Delivery::NotSent("interrupted".into()),
        }
    }
}

async fn with_own_engine(
    context: &Context,
    session: &Picked,
    order: Order,
    stays: bool,
    reporter: &mut dyn Reporter,
) -> anyhow::Result<Delivery> {
    let mut signals = Signals::new()?;
    let Some(mut engine) = own_engine(context, session, &order, &mut signals).await else {
        return Ok(Delivery::NotSent("interrupted".into()));
    };
    let commander = engine.command_sender();
    let send = |command| {
        let _ = commander.send(command); // fails only when the engine has ended
    };
    let (reply, mut reports) = unbounded_channel();
    let id = order.id.clone();
    let (begin, mut begun) = oneshot::channel();
    if stays {
        let serve = socket_server(context, &id, commander.clone());
        engine.on_first_attach(move || drop(begin.send(serve()))); // the receiver outlives the engine
    }
    send(Command::Act(PendingOrder::by_caller(order, reply, std::process::id())));
    let (mut view, observed) = SessionWatch::new(&id);
    let mut run = pin!(engine.run(signals, &mut view));
    let mut answering = pin!(answer_requests_here(context, session, commander.clone(), observed.clone()));
    let mut lost = pin!(connection_lost(observed.clone()));
    let (mut progress, mut holding, mut reachable) = (Progress::default(), false, None);
    loop {
        tokio::select! {
            // Reports come first, so that those sent before the engine ended are not lost.
            biased;
            report = reports.recv(), if progress.ended.is_none() => {
                progress.pass_on(report, reporter);
                let Some(outcome) = &progress.ended else { continue };
                // Serving only began if this process, and not another command, holds the session.
                let served = begun.try_recv().ok();
                let confirmed = matches!(outcome, Outcome::Done(_));
                let may_run = confirmed || matches!(outcome, Outcome::Unconfirmed(_));
                progress.goes_on_later = confirmed && observed.borrow().waits;
                holding = served.is_some() && may_run && observed.borrow().held;
                if holding {
                    reachable = served;
                    staying::announce(&id, confirmed);
                } else {
                    send(Command::Quit);
                }
            }
            () = &mut lost, if holding => {
                say("the connection is gone, so this command ends");
                holding = false;
                send(Command::Quit);
            }
            () = &mut answering, if holding => {}
            () = &mut run => break,
        }
    }
    drop(reachable);
    let undone = observed.borrow().undone;
    Ok(progress.finish(&mut reports, undone, reporter))
}

/// An engine that reaches whatever can carry out the order. `None` if a signal ended the wait for its place.
async fn own_engine(context: &Context, session: &Session, order: &Order, signals: &mut Signals) -> Option<Engine> {
    let mut engine = context.engine();
    let place = tokio::select! {
        place = wait_for_place(session, order) => place,
        () = signals.end() => return None,
    };
    if let Some(listening) = place {
        engine.listen_to_bridges(Bridges::at(listening));
    }
    // Another command may have taken the session since we searched for a holder.
    engine.forward_to_holders(paths::project().iter().flat_map(paths::runtime_folders).collect());
    Some(engine)
}

/// The place to listen for bridges. Another command may be answering the same terminal there: an answer waits for it.
async fn wait_for_place(session: &Session, order: &Order) -> Option<BridgeConfig> {
    let may_wait = order.operation.action().is(ActionFlag::Queued)
        && session.observed.about.kind == Kind::Terminal
        && has_bridge();
    let began = Instant::now();
    let mut is_noticed = false;
    loop {
        match place_for_bridges() {
            None if may_wait && began.elapsed() < PLACE_WITHIN => {
                if began.elapsed() >= NOTICE_AFTER && !is_noticed {
                    is_noticed = true;
                    say(
                        "another Pilotlight is using the bridges, a command or one on another machine: this command waits for it; Ctrl-C cancels. If you start `pilotlight`, both can use that",
                    );
                }
                sleep(LOOK_INTERVAL).await;
            }
            place => return place,
        }
    }
}

/// The outcome, by what is on disk, of an order that was interrupted when something may have been sent.
fn outcome_on_disk(context: &Context, before: &Session, order: &Order, why: &str) -> anyhow::Result<Outcome> {
    let until = Instant::now() + LOGGED_WITHIN;
    loop {
        let now = Observer::of(context).observe_alone(Effort::Look, None)?.sessions;
        let Some(now) = now.into_iter().find(|session| session.id == order.id) else {
            return Ok(Outcome::Unconfirmed(format!("may have happened: {why}; the session no longer exists")));
        };
        match evidence(&order.operation, before, &now) {
            Evidence::Done(words) => return Ok(Outcome::Done(format!("{words} ({why})"))),
            // What was sent takes a moment to be logged.
            Evidence::Inconclusive(_) if Instant::now() < until => {
                runtime()?.block_on(async { sleep(LOOK_INTERVAL).await });
            }
            Evidence::Inconclusive(words) => {
                let look = match now.observed.about.kind {
                    Kind::Terminal => "look at its terminal".to_owned(),
                    _ => format!("`pilotlight explain {}` shows what it does", order.id),
                };
                return Ok(Outcome::Unconfirmed(format!("may have happened: {why}; {words}; {look}")));
            }
        }
    }
}
