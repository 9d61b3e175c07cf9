//! Listens whether a session receives an answer, by the pieces that Copilot itself reports over a server or a bridge.

use pilotlight_core::stream_probe::Word;
use pilotlight_core::time::Span;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// The event for each piece of an answer. Covers text, reasoning, arguments of tools and sub-agents. Never on disk.
pub(crate) const PIECE: &str = "assistant.streaming_delta";
/// How long to wait for a second piece, to measure the rate: at one piece a second, 92 of 92 came within this.
const SECOND_PIECE: Duration = Duration::from_millis(1500);
/// A rate is measured over at least this long.
const MEASURED: Duration = Duration::from_secs(1);

/// Listens for `window`, and a little longer to measure a rate. `next_piece` waits for the next piece, for at most the
/// given time, and returns the size of the answer so far.
pub(crate) async fn listen<F, E>(window: Duration, next_piece: impl Fn(Duration) -> F) -> Result<Word, E>
where
    F: Future<Output = Result<Option<u64>, E>>,
{
    let begun = Instant::now();
    let Some(first) = next_piece(window).await? else { return Ok(Word::Silent) };
    let heard = Instant::now();
    sleep(window.saturating_sub(heard - begun)).await;
    let second = next_piece(SECOND_PIECE).await?;
    let (now, measured) = (Instant::now(), heard.elapsed());
    // A smaller answer is another one.
    let bytes = second.and_then(|second| second.checked_sub(first)).filter(|_| measured >= MEASURED);
    let last = if second.is_some() { Duration::ZERO } else { now - heard };
    let span = |duration: Duration| Span(i64::try_from(duration.as_millis()).unwrap_or(i64::MAX));
    Ok(Word::Receives { bytes, within: span(measured), last: span(last) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    /// Listens for 1.5 s to a session that reports these pieces, each after so many ms.
    async fn heard(pieces: &[Option<(u64, u64)>]) -> Word {
        let next = Cell::new(0);
        let word = listen(Duration::from_millis(1500), |wait| {
            let piece = pieces[next.replace(next.get() + 1)];
            async move {
                let Some((after, bytes)) = piece else {
                    sleep(wait).await;
                    return Ok::<_, ()>(None);
                };
                sleep(Duration::from_millis(after)).await;
                Ok(Some(bytes))
            }
        });
        word.await.unwrap()
    }

    /// The bytes that came, if they were measured for long enough, and whether the last piece came just now.
    fn received(word: Word) -> (Option<u64>, bool) {
        let Word::Receives { bytes, within, last } = word else { panic!("nothing was heard") };
        assert!(last <= within && (bytes.is_none() || within.0 >= 1000), "{within:?} {last:?}");
        (bytes, last == Span::ZERO)
    }

    #[tokio::test(start_paused = true)]
    async fn an_answers_rate_is_measured_by_two_pieces() {
        assert_eq!(heard(&[None]).await, Word::Silent);
        assert_eq!(received(heard(&[Some((5, 7_000)), Some((3, 9_280))]).await), (Some(2_280), true));
        assert_eq!(
            received(heard(&[Some((1400, 7_000)), Some((800, 9_280))]).await),
            (None, true),
            "too soon after it"
        );
        assert_eq!(received(heard(&[Some((5, 7_000)), None]).await), (None, false));
        assert_eq!(received(heard(&[Some((5, 7_000)), Some((1, 300))]).await), (None, true), "another answer");
    }

    #[tokio::test]
    async fn a_failure_is_no_word() {
        assert_eq!(listen(Duration::ZERO, |_| async { Err::<Option<u64>, _>("gone") }).await, Err("gone"));
    }
}
