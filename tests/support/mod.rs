//! Support for the tests that drive real programs: waiting, scratch folders, test doubles, and the programs themselves.
//!
//! The tests run the real Copilot CLI against a model that is a script ([`model`], [`script`]), in a Copilot home of
//! their own ([`home`]): as a server that the SDK talks to ([`server`], with a [`person`] who answers) or as the
//! terminal interface inside tmux ([`terminal`]). The real Pilotlight ([`pilotlight`]) runs at the same time, and its
//! reports are compared with what was done. What Copilot does not do on demand is fabricated ([`synthetic`]).
//! [`record`] saves the files that Copilot writes as new traces.
//!
//! No test sleeps and hopes. A test either *holds* something (the model's answer, a tool that waits for a file, a
//! permission request) and checks the state while it is held, or waits for a condition with [`wait_until`].
//!
//! Test code is synchronous; the few async parts live on one runtime thread that all tests share ([`block_on`]).

#![allow(dead_code, reason = "each test binary uses only a part of the support code")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failing test should panic where it fails")]

use running_time::running_time;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

pub(crate) mod claude;
pub(crate) mod codex;
pub(crate) mod desktop;
pub(crate) mod executable;
pub(crate) mod freeze;
pub(crate) mod fuse;
pub(crate) mod home;
pub(crate) mod listener;
pub(crate) mod model;
pub(crate) mod network;
pub(crate) mod person;
pub(crate) mod pilotlight;
pub(crate) mod process;
pub(crate) mod record;
pub(crate) mod responses;
pub(crate) mod running_time;
pub(crate) mod script;
pub(crate) mod server;
pub(crate) mod stream;
pub(crate) mod synthetic;
pub(crate) mod terminal;
pub(crate) mod tmux;

/// Deadline for a condition that normally holds within a second. It only keeps a failing test from waiting for ever.
pub(crate) const SOON: Duration = Duration::from_secs(30);
/// Deadline for what Copilot does. Several run at a time, and each needs seconds of CPU time to start.
pub(crate) const COPILOT: Duration = Duration::from_secs(120);

/// Polls `condition` every 20 ms, or more rarely if it takes longer itself, until it returns a value. After `timeout`, by a clock that runs slower on a busy machine
/// ([`running_time`]), panics with `what` was awaited and the state that `dump` describes.
pub(crate) fn wait_until<T>(
    timeout: Duration,
    what: &str,
    dump: impl Fn() -> String,
    condition: impl FnMut() -> Option<T>,
) -> T {
    let start = running_time();
    poll(|| running_time() - start >= timeout, condition)
        .unwrap_or_else(|| panic!("timed out after {timeout:?} waiting until {what}\n{}", dump()))
}

/// As [`wait_until`], but returns `None` after `timeout`, by the clock on the wall.
pub(crate) fn wait<T>(timeout: Duration, condition: impl FnMut() -> Option<T>) -> Option<T> {
    let start = Instant::now();
    poll(|| start.elapsed() >= timeout, condition)
}

fn poll<T>(is_over: impl Fn() -> bool, mut condition: impl FnMut() -> Option<T>) -> Option<T> {
    loop {
        let begun = Instant::now();
        let value = condition();
        if value.is_some() || is_over() {
            return value;
        }
        // A condition that runs programs would otherwise take the processor from what is waited for.
        let pause = Duration::from_millis(20).max(2 * begun.elapsed());
        #[expect(clippy::disallowed_methods, reason = "the one place that waits: between two polls")]
        std::thread::sleep(pause);
    }
}

/// Runs `future` to completion on the runtime that all tests share.
pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    RUNTIME.block_on(future)
}

/// Spawns `future` on the runtime that all tests share.
pub(crate) fn spawn<F: Future<Output = ()> + Send + 'static>(future: F) -> tokio::task::JoinHandle<()> {
    RUNTIME.spawn(future)
}

static RUNTIME: LazyLock<tokio::runtime::Handle> = LazyLock::new(|| {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let handle = runtime.handle().clone();
    std::thread::spawn(move || runtime.block_on(std::future::pending::<()>()));
    handle
});

/// Cargo's target folder. Whatever is costly to make (the unpacked CLI) is cached there between runs.
pub(crate) fn target_dir() -> PathBuf {
    // `CARGO_TARGET_TMPDIR` is `<target dir>/tmp`.
    Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap().to_owned()
}
