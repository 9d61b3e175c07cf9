//! A timer that wakes its thread only once.
//!
//! Tokio keeps timers in hierarchical wheels: a timer that is due in a minute wakes its thread up to twice before, to
//! be moved to a finer wheel. For a program that sleeps for minutes, this is most of its wakeups. So on Linux a timerfd
//! is used instead; elsewhere, and if there is none, tokio's timer.

use std::time::Instant;
use tokio::time::sleep_until;

/// A reusable timer on the monotonic clock, like [`Instant`].
#[derive(Debug, Default)]
pub struct Alarm {
    #[cfg(target_os = "linux")]
    timer: linux::Timer,
}

impl Alarm {
    /// Waits until `at`. Cancel-safe; may be called again with the same or another time.
    pub async fn until(&mut self, at: Instant) {
        #[cfg(target_os = "linux")]
        if self.timer.until(at).await.is_ok() {
            return;
        }
        sleep_until(at.into()).await;
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use rustix::time::{
        Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
    };
    use std::io;
    use std::os::fd::OwnedFd;
    use std::time::Instant;
    use tokio::io::unix::AsyncFd;

    /// A timerfd, created at the first wait because it is registered with the runtime that waits.
    #[derive(Debug, Default)]
    pub(super) struct Timer {
        timer: Option<AsyncFd<OwnedFd>>,
        /// The time for which it is set.
        set: Option<Instant>,
    }

    impl Timer {
        pub(super) async fn until(&mut self, at: Instant) -> io::Result<()> {
            loop {
                let wait = at.saturating_duration_since(Instant::now());
                if wait.is_zero() {
                    return Ok(());
                }
                let timer = match &mut self.timer {
                    Some(timer) => timer,
                    none => none.insert(create()?),
                };
                if self.set != Some(at) {
                    let once = Itimerspec {
                        it_interval: Timespec { tv_sec: 0, tv_nsec: 0 },
                        it_value: wait.try_into().map_err(|_| io::ErrorKind::InvalidInput)?,
                    };
                    timerfd_settime(&*timer, TimerfdTimerFlags::empty(), &once)?;
                    self.set = Some(at);
                }
                let mut ready = timer.readable().await?;
                // If it expired for an earlier time, there is nothing to read, and it is set again.
                let _ = rustix::io::read(ready.get_inner(), &mut [0; 8]);
                ready.clear_ready();
                self.set = None;
            }
        }
    }

    #[expect(deprecated, reason = "the replacement is unsafe, for types whose descriptor may change; this one cannot")]
    fn create() -> io::Result<AsyncFd<OwnedFd>> {
        AsyncFd::new(timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn block_on(future: impl Future<Output = ()>) {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future);
    }

    #[test]
    fn an_alarm_expires_when_it_is_due_and_not_before() {
        block_on(async {
            let mut alarm = Alarm::default();
            for wait in [20, 1, 0] {
                let at = Instant::now() + Duration::from_millis(wait);
                alarm.until(at).await;
                assert!(Instant::now() >= at);
            }
            alarm.until(Instant::now() - Duration::from_secs(1)).await;
        });
    }

    #[test]
    fn an_alarm_may_be_changed_before_it_expires() {
        block_on(async {
            let mut alarm = Alarm::default();
            let begun = Instant::now();
            let (soon, late) = (begun + Duration::from_millis(10), begun + Duration::from_secs(3600));
            for at in [late, soon, late] {
                tokio::select! {
                    biased;
                    () = alarm.until(at) => panic!("it is not due"),
                    () = std::future::ready(()) => {}
                }
            }
            alarm.until(soon).await;
            let at = Instant::now() + Duration::from_millis(10);
            tokio::select! {
                () = alarm.until(late) => panic!("it expired for the earlier time"),
                () = sleep_until(at.into()) => {}
            }
        });
    }

    /// Tokio's own timer wakes up to three times for the same wait.
    #[cfg(target_os = "linux")]
    #[test]
    fn an_alarm_wakes_its_thread_once() {
        let sleeps = || -> u64 {
            let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
            let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:")).unwrap();
            line.trim().parse().unwrap()
        };
        block_on(async {
            let mut alarm = Alarm::default();
            // On a busy machine, nearly every wait includes waits for memory or the disk, which count as well. The
            // lowest count is the timer's own.
            let (mut wakeups, begun) = (Vec::new(), Instant::now());
            while !wakeups.contains(&1) && begun.elapsed() < Duration::from_secs(30) {
                let before = sleeps();
                alarm.until(Instant::now() + Duration::from_millis(150)).await;
                wakeups.push(sleeps() - before);
            }
            assert_eq!(wakeups.iter().min(), Some(&1), "{wakeups:?}");
        });
    }
}
