//! The limit of file descriptors, and a reserve below it.
//!
//! Each watched owner takes a descriptor, and many systems start programs with a soft limit of 1,024. So at startup the
//! soft limit is raised to the hard one. Child processes get the original limit back: programs that call `select` break
//! above 1,024.
//!
//! Long-lived descriptors leave a reserve free for short-lived ones: logs, `/proc` and the connections of commands.
//! Otherwise many sessions could keep another one from being read.
#![cfg_attr(unix, allow(unsafe_code))]

#[cfg(unix)]
pub use unix::{are_left, is_of_want, is_scarce, limit, raise, reserve, restore};

/// There is no limit.
///
/// # Errors
/// None.
#[cfg(not(unix))]
pub fn are_left(_wanted: usize) -> std::io::Result<()> {
    Ok(())
}

/// Whether an error is that no descriptor is left: there is no such limit.
#[cfg(not(unix))]
pub fn is_of_want(_error: &std::io::Error) -> bool {
    false
}

/// Does nothing: there is no such limit.
#[cfg(not(unix))]
pub fn raise() {}

/// Does nothing: there is no such limit.
#[cfg(not(unix))]
pub fn restore(_command: &mut std::process::Command) {}

#[cfg(unix)]
mod unix {
    use rustix::io::Errno;
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    use std::io;
    use std::os::fd::{AsFd, AsRawFd};
    use std::os::unix::process::CommandExt;
    use std::process::Command;
    use std::sync::OnceLock;

    /// How many descriptors are reserved for short-lived use.
    const RESERVE: u64 = 24;
    /// The highest limit to set. macOS refuses `unlimited`, and anything above `OPEN_MAX`.
    const MAX: Option<u64> = if cfg!(target_os = "macos") { Some(10_240) } else { None };

    /// The limits that this process was started with.
    static BEFORE: OnceLock<Rlimit> = OnceLock::new();

    /// Raises the soft limit to the hard one.
    pub fn raise() {
        let before = *BEFORE.get_or_init(|| getrlimit(Resource::Nofile));
        let current = before.maximum.into_iter().chain(MAX).min();
        let _ = setrlimit(Resource::Nofile, Rlimit { current, ..before }); // if refused, the limit stays as it was
    }

    /// Makes a command run with the limits that this process was started with.
    pub fn restore(command: &mut Command) {
        let Some(before) = BEFORE.get().copied() else { return };
        let set_limits = move || Ok(setrlimit(Resource::Nofile, before)?);
        // SAFETY: between fork and exec only this one system call is made, and no memory is allocated.
        unsafe { command.pre_exec(set_limits) };
    }

    /// The soft limit. `None` if there is none.
    pub fn limit() -> Option<u64> {
        getrlimit(Resource::Nofile).current
    }

    /// How many descriptors are reserved under this limit: at most 3 in 8.
    pub fn reserve(limit: u64) -> u64 {
        RESERVE.min(limit / 8 * 3)
    }

    /// Checks that this many more descriptors may be opened now.
    ///
    /// # Errors
    /// If the system refuses one of them.
    pub fn are_left(wanted: usize) -> io::Result<()> {
        let stdin = io::stdin();
        let opened: Result<Vec<_>, _> = (0..wanted).map(|_| stdin.as_fd().try_clone_to_owned()).collect();
        opened.map(drop)
    }

    /// Whether an error is that no descriptor is left, of this process or of the system.
    pub fn is_of_want(error: &io::Error) -> bool {
        [Errno::MFILE, Errno::NFILE].map(Errno::raw_os_error).map(Some).contains(&error.raw_os_error())
    }

    /// Whether a new descriptor was taken from the reserve: the system assigns the lowest free number.
    pub fn is_scarce(descriptor: &impl AsFd) -> bool {
        let number = u64::try_from(descriptor.as_fd().as_raw_fd()).unwrap_or_default();
        limit().is_some_and(|limit| number >= limit - reserve(limit))
    }
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;

    #[test]
    fn part_of_any_limit_is_reserved() {
        assert_eq!([0, 8, 32, 64, 1024, 1 << 20].map(reserve), [0, 3, 12, 24, 24, 24]);
        assert!(!is_scarce(&std::io::stdin()));
        are_left(8).unwrap();
    }
}
