//! Has Copilot ask in a session's terminal whether we may answer there, once nobody types into it: what is typed while the
//! question opens counts as its answer.
//!
//! Copilot tells nobody what its prompt holds. But the system notes when a terminal was last read.

use super::{OrderResult, OrderTask, done};
use pilotlight_agents::channel::failure::Failure;
use pilotlight_core::order::Step;
use pilotlight_core::time::{Span, Time};
use pilotlight_system::clock::Clock;
use pilotlight_system::process::{last_read, terminal_of};
use std::time::{Duration, Instant};

/// Within this, aligned to the epoch, Linux notes only the first read of a terminal.
const NOTED_EVERY: i64 = 8000;
/// How long nobody must have typed.
const QUIET: Span = Span::seconds(2);
/// How long to wait for that.
const QUIET_WITHIN: Duration = Duration::from_secs(60);
/// How soon to look again whether a prompt was sent.
const LOOK_AGAIN: Span = Span::seconds(1);

/// When nobody has typed for long enough, by what is known of the last read. `None` if what was read last is the prompt.
fn quiet_from(read: Time, prompt: Option<Time>) -> Option<Time> {
    let latest = Time((read.0.div_euclid(NOTED_EVERY) + 1) * NOTED_EVERY);
    prompt.is_none_or(|prompt| read > prompt).then(|| latest + QUIET)
}

impl OrderTask {
    /// Has Copilot ask in the session's terminal whether we may answer its permission requests.
    pub(super) async fn let_answer(&self) -> OrderResult {
        let Some(bridge) = &self.reach.bridge else {
            return Err(Failure::refused("the bridge to its terminal has gone"));
        };
        self.wait_while_typed().await?;
        done(bridge.let_answer(&self.context).await?)
    }

    /// Waits until nobody types into the session's terminal.
    async fn wait_while_typed(&self) -> Result<(), Failure> {
        let (started, mut is_said) = (Instant::now(), false);
        loop {
            let read = self.context.drawn_by.and_then(terminal_of).and_then(|terminal| last_read(&terminal));
            let prompt = self.context.log_view.borrow().prompt.map(|prompt| prompt.at);
            let wait = read.and_then(|read| quiet_from(read, prompt)).map(|from| from - Clock::start().now().wall);
            // A time further ahead is from before the clock was set back.
            let is_ahead = |wait: &Span| *wait > Span::ZERO && *wait <= Span(NOTED_EVERY) + QUIET;
            let Some(wait) = wait.filter(is_ahead) else { return Ok(()) };
            if started.elapsed() > QUIET_WITHIN {
                return Err(Failure::refused(
                    "somebody is typing in its terminal, so Copilot was not told to ask: try again later",
                ));
            }
            if !std::mem::replace(&mut is_said, true) {
                self.context.step(Step::Verify, "somebody just typed in its terminal: waiting until nobody types");
            }
            // A prompt ends the wait.
            let wait = wait.min(LOOK_AGAIN);
            tokio::time::sleep(Duration::from_millis(wait.0.unsigned_abs())).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_209_what_is_read_after_the_last_prompt_is_waited_for() {
        let at = |seconds: i64| Time(1_795_617_360_000 + seconds * 1000); // a multiple of eight seconds
        assert_eq!(quiet_from(at(0), Some(at(1))), None, "the prompt itself");
        assert_eq!(quiet_from(at(2), Some(at(1))), Some(at(10)), "it may have been typed until the eighth second");
        assert_eq!(quiet_from(at(8), None), Some(at(18)), "no prompt yet");
    }
}
