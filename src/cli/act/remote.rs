//! Orders for a session on another machine, where no tray runs here: over a connection of this command's own, which lasts
//! as long as the order.

use super::output::Reporter;
use crate::cli::context::{Context, runtime};
use pilotlight_core::action::ActionFlag;
use pilotlight_core::order::{Order, OrderReport, Outcome};
use pilotlight_core::session::Key;
use pilotlight_core::time::Moment;
use pilotlight_engine::control::{Command, PendingOrder};
use pilotlight_engine::hosts::Purpose;
use pilotlight_engine::{Fleet, View};
use pilotlight_system::signals::Signals;
use std::ops::ControlFlow;
use std::pin::pin;
use tokio::sync::mpsc::unbounded_channel;
use tokio::sync::watch;

/// Has an order carried out, and passes the reports on but for the end.
pub(super) fn carry_out(
    context: &Context,
    host: &str,
    order: Order,
    reporter: &mut dyn Reporter,
) -> anyhow::Result<Outcome> {
    let action = order.operation.action();
    if action.is(ActionFlag::Recovery) && !action.is(ActionFlag::OpensWindow) {
        return Ok(Outcome::Refused(
            "it lasts only as long as a connection, and no tray runs here to keep one: start `pilotlight` first".into(),
        ));
    }
    runtime()?.block_on(async {
        let mut engine = context.engine();
        engine.show_hosts(vec![host.to_owned()], Vec::new(), Purpose::Act);
        let (commander, (reply, mut reports)) = (engine.command_sender(), unbounded_channel());
        let (sender, mut state) = watch::channel(State::Waits);
        let mut view = Reached { key: Key::remote(host, &*order.id), host: host.into(), sender };
        let mut running = pin!(engine.run(Signals::new()?, &mut view));
        let mut pending = Some(PendingOrder::by_caller(order, reply, std::process::id()));
        let mut outcome = Outcome::Failed("interrupted; nothing was sent".into());
        loop {
            tokio::select! {
                biased;
                Some(report) = reports.recv() => match report {
                    OrderReport::End(end) => {
                        outcome = end;
                        break;
                    }
                    step => reporter.report(&step),
                },
                changed = state.changed(), if pending.is_some() => {
                    if changed.is_err() {
                        break;
                    }
                    let state = state.borrow_and_update().clone();
                    match state {
                        State::Waits => {}
                        State::Reached => {
                            // Fails only when the engine has ended.
                            pending.take().into_iter().for_each(|pending| drop(commander.send(Command::Act(pending))));
                        }
                        State::Not(why) => {
                            outcome = Outcome::Failed(format!("{why}; nothing was sent"));
                            break;
                        }
                    }
                }
                () = &mut running => return Ok(outcome),
            }
        }
        let _ = commander.send(Command::Quit);
        running.await;
        Ok(outcome)
    })
}

/// Whether the machine is reached, and has told of the session.
#[derive(Clone, PartialEq)]
enum State {
    Waits,
    Reached,
    /// It is not, and why.
    Not(String),
}

/// Shows nothing, and says when the session can be reached.
struct Reached {
    key: Key,
    host: Box<str>,
    sender: watch::Sender<State>,
}

impl View for Reached {
    fn show(&mut self, fleet: &Fleet, _changed: &[Key], _removed: &[Key], now: Moment) -> ControlFlow<()> {
        let trouble = fleet.troubles().iter().find(|trouble| *trouble.host == *self.host);
        let state = match trouble {
            _ if fleet.shown_as(&self.key).is_some_and(|shown| shown.row.reached) => State::Reached,
            Some(trouble) => State::Not(trouble.words(now.wall)),
            None => State::Waits,
        };
        self.sender.send_if_modified(|before| {
            let differs = *before != state;
            *before = state;
            differs
        });
        ControlFlow::Continue(())
    }

    fn asks_servers(&self) -> bool {
        false
    }
}
