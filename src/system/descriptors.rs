//! File descriptors: as many as the system allows, a reserve of them, and the old limit for what we start.
//!
//! Every owner costs a descriptor for as long as it lives, and many systems begin at 1,024 of them. So the soft limit is raised
//! to the hard one at the start. What we start gets the old one back: programs that wait with `select` break above 1,024.
//!
//! What is kept open for long leaves a reserve free. Logs, `/proc` and the connections of commands need descriptors for
//! moments, and would otherwise find none: a session could not be read because of the others.
#![cfg_attr(unix, allow(unsafe_code))]

#[cfg(unix)]
pub(crate) use unix::{give_back, is_scarce, raise};
#[cfg(target_os = "linux")]
pub(crate) use unix::{limit, reserve};

/// Nothing to raise here.
#[cfg(not(unix))]
pub(crate) fn raise() {}

/// Nothing to give back here.
#[cfg(not(unix))]
pub(crate) fn give_back(_command: &mut std::process::Command) {}

#[cfg(unix)]
mod unix {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    use std::os::fd::{AsFd, AsRawFd};
    use std::os::unix::process::CommandExt;
    use std::process::Command;
    use std::sync::OnceLock;

    /// So many descriptors stay free for what needs them for a moment.
    const RESERVE: u64 = 24;
    /// macOS refuses a limit without an end, and more than this.
    const MOST: Option<u64> = if cfg!(target_os = "macos") { Some(10_240) } else { None };

    /// The limits that we were started with.
    static BEFORE: OnceLock<Rlimit> = OnceLock::new();

    /// Raises the soft limit to the hard one, once.
    pub(crate) fn raise() {
        let before = *BEFORE.get_or_init(|| getrlimit(Resource::Nofile));
        let current = before.maximum.into_iter().chain(MOST).min();
        // A system that refuses leaves it as it was.
        let _ = setrlimit(Resource::Nofile, Rlimit { current, ..before });
    }

    /// Has this command run with the limits that we were started with.
    pub(crate) fn give_back(command: &mut Command) {
        let Some(before) = BEFORE.get().copied() else { return };
        let lower = move || Ok(setrlimit(Resource::Nofile, before)?);
        // SAFETY: between fork and exec only this one system call is made, and no memory is allocated.
        unsafe { command.pre_exec(lower) };
    }

    /// How many descriptors there may be, where that is bounded.
    pub(crate) fn limit() -> Option<u64> {
        getrlimit(Resource::Nofile).current
    }

    /// How many of so many stay free.
    pub(crate) fn reserve(limit: u64) -> u64 {
        RESERVE.min(limit / 8 * 3)
    }

    /// Whether this descriptor, which is new, was taken from the reserve: the system hands out the lowest number that is free.
    pub(crate) fn is_scarce(descriptor: &impl AsFd) -> bool {
        let number = u64::try_from(descriptor.as_fd().as_raw_fd()).unwrap_or_default();
        limit().is_some_and(|limit| number >= limit - reserve(limit))
    }
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_any_limit_is_reserved() {
        assert_eq!([0, 8, 32, 64, 1024, 1 << 20].map(reserve), [0, 3, 12, 24, 24, 24]);
        assert!(!is_scarce(&std::io::stdin()));
    }
}
