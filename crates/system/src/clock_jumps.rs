//! Tells at once when this machine may have been asleep. On Linux, a timer on the wall clock can be asked to be cancelled
//! whenever that clock jumps, and it does when the machine wakes up (timerfd_create(2), `TFD_TIMER_CANCEL_ON_SET`): neither
//! a bus nor a service is needed. Elsewhere it is not told.
//!
//! Whoever is told must find out whether it slept: setting the clock is told as well.

/// Jumps of the wall clock.
#[derive(Debug, Default)]
pub struct ClockJumps {
    #[cfg(target_os = "linux")]
    jumps: linux::Jumps,
}

impl ClockJumps {
    /// Waits until the wall clock jumps. Cancel-safe.
    pub async fn may_have_happened(&mut self) {
        #[cfg(target_os = "linux")]
        if self.jumps.next().await.is_ok() {
            return;
        }
        std::future::pending::<()>().await;
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use crate::readiness::wait_for;
    use rustix::io::Errno;
    use rustix::time::{
        Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
    };
    use std::io;
    use std::os::fd::OwnedFd;
    use std::sync::Arc;
    use tokio::io::Interest;
    use tokio::io::unix::AsyncFd;

    /// When the timer expires, in seconds since 1970: later than anybody waits.
    const NEVER: i64 = 8_000_000_000;

    #[derive(Debug, Default)]
    pub(super) struct Jumps {
        timer: Option<AsyncFd<Arc<OwnedFd>>>,
    }

    impl Jumps {
        pub(super) async fn next(&mut self) -> io::Result<()> {
            let timer = match &mut self.timer {
                Some(timer) => timer,
                none => none.insert(wait_for(Arc::new(create()?), Interest::READABLE)?),
            };
            loop {
                let mut ready = timer.readable().await?;
                match rustix::io::read(ready.get_inner(), &mut [0; 8]) {
                    Err(Errno::CANCELED) => return Ok(()),
                    Err(Errno::AGAIN) => ready.clear_ready(),
                    Err(Errno::INTR) => {}
                    Err(error) => return Err(error.into()),
                    Ok(_) => return Err(io::ErrorKind::TimedOut.into()),
                }
            }
        }
    }

    fn create() -> io::Result<OwnedFd> {
        let timer = timerfd_create(TimerfdClockId::Realtime, TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC)?;
        let once = Itimerspec {
            it_interval: Timespec { tv_sec: 0, tv_nsec: 0 },
            it_value: Timespec { tv_sec: NEVER, tv_nsec: 0 },
        };
        timerfd_settime(&timer, TimerfdTimerFlags::ABSTIME | TimerfdTimerFlags::CANCEL_ON_SET, &once)?;
        Ok(timer)
    }

    #[cfg(test)]
    mod tests {
        use super::*;
        use std::os::fd::AsRawFd;

        /// A test cannot set the clock. That the kernel was asked can be read.
        #[test]
        fn case_452_the_kernel_is_asked_to_tell_of_jumps_of_the_wall_clock() {
            let timer = create().unwrap();
            let asked = std::fs::read_to_string(format!("/proc/self/fdinfo/{}", timer.as_raw_fd())).unwrap();
            assert!(asked.contains("clockid: 0\n") && asked.contains("settime flags: 03\n"), "{asked}");
            assert_eq!(rustix::io::read(&timer, &mut [0; 8]), Err(Errno::AGAIN));
        }
    }
}
