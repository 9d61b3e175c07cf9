//! A timer that wakes the program once.
//!
//! Tokio's own timers are kept in wheels: one that is a minute away wakes its thread up to twice on the way, to be moved to a
//! finer wheel. For a program that sleeps for minutes that is most of what it does. On Linux the system's own timer is waited
//! for instead; elsewhere, and where it cannot be had, tokio's.

use std::time::Instant;
use tokio::time::sleep_until;

/// One alarm clock, set anew as often as one likes. It goes by the monotonic clock, as [`Instant`] does.
#[derive(Debug, Default)]
pub(crate) struct Alarm {
    #[cfg(target_os = "linux")]
    timer: linux::Timer,
}

impl Alarm {
    /// Waits until then. May be dropped at any time, and called again with the same or another time.
    pub(crate) async fn until(&mut self, at: Instant) {
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

    /// The system's timer, made when it is first waited for: it belongs to the runtime that waits.
    #[derive(Debug, Default)]
    pub(super) struct Timer {
        timer: Option<AsyncFd<OwnedFd>>,
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
                // It may have rung for an earlier time: then there is nothing to read, and it is set once more.
                let _ = rustix::io::read(ready.get_inner(), &mut [0; 8]);
                ready.clear_ready();
                self.set = None;
            }
        }
    }

    #[expect(deprecated, reason = "what replaces it is unsafe, for types whose descriptor may change: this one cannot")]
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
    fn it_rings_when_it_is_due_and_not_before() {
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
    fn it_may_be_set_anew_before_it_rang() {
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
                () = alarm.until(late) => panic!("an earlier ringing is no ringing of this one"),
                () = sleep_until(at.into()) => {}
            }
        });
    }

    /// Tokio's own timer comes back up to three times for the same wait.
    #[cfg(target_os = "linux")]
    #[test]
    fn it_wakes_its_thread_once() {
        let sleeps = || -> u64 {
            let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
            let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:")).unwrap();
            line.trim().parse().unwrap()
        };
        block_on(async {
            let mut alarm = Alarm::default();
            // A wait for memory or for the disk counts too, on a busy machine at nearly every turn: the best is what the timer takes.
            let (mut took, begun) = (Vec::new(), Instant::now());
            while !took.contains(&1) && begun.elapsed() < Duration::from_secs(30) {
                let before = sleeps();
                alarm.until(Instant::now() + Duration::from_millis(150)).await;
                took.push(sleeps() - before);
            }
            assert_eq!(took.iter().min(), Some(&1), "{took:?}");
        });
    }
}
