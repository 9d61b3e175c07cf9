//! Stops a turn.

use crate::channel::action_context::{ActionContext, EFFECT_TIMEOUT, LogView, POLL_INTERVAL};
use crate::channel::failure::Failure;
use crate::copilot::server::client::ServerClient;
use pilotlight_core::order::Step;
use tokio::time::{sleep, timeout};

/// Aborts the running turn, and verifies that it ended.
pub(in crate::copilot::server) async fn abort(link: &ServerClient, context: &ActionContext) -> Result<String, Failure> {
    let next = "reconnect the session, or end its process";
    context.may_send(Step::Abort).await?;
    let mut log_view = context.log_view.clone();
    let before = log_view.borrow_and_update().clone();
    let has_ended = |log_view: &LogView| log_view.aborted != before.aborted || before.turn_open && !log_view.turn_open;
    let failed = |step, fault| Failure { next: Some(next.to_owned()), ..Failure::of(step, fault) };
    context.step(Step::Abort, "tells it to stop");
    let response = match link.abort(&context.id).await {
        Err(fault) if !fault.may_have_succeeded() => return Err(failed(Step::Abort, fault)),
        response => response,
    };
    let ended = async {
        response?;
        loop {
            let on_disk = has_ended(&log_view.borrow_and_update());
            if on_disk || !link.activity(&context.id).await?.has_active_work {
                return Ok(());
            }
            // A change on disk wakes us early. If the log view is no longer updated, only the server is polled.
            if let Ok(Err(_)) = timeout(POLL_INTERVAL, log_view.changed()).await {
                sleep(POLL_INTERVAL).await;
            }
        }
    };
    match timeout(EFFECT_TIMEOUT, ended).await {
        Ok(Ok(())) => context.step(Step::Verify, "the turn has ended"),
        Ok(Err(fault)) if context.log_shows(has_ended).await => {
            context.step(Step::Verify, format!("its log says that the turn has ended, though {fault}"));
        }
        Ok(Err(fault)) => return Err(failed(Step::Verify, fault).unconfirmed()),
        Err(_) => {
            let why = format!("the session was told to stop, and still works after {} s", EFFECT_TIMEOUT.as_secs());
            return Err(Failure::because(Step::Verify, &why, next).unconfirmed());
        }
    }
    Ok("stopped".to_owned())
}
