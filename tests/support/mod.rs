//! What the tests that drive real programs stand on: waiting, scratch folders, the doubles, and the programs themselves.
//!
//! The tests run the real Copilot CLI against a model that is a script ([`model`], [`script`]), in a Copilot home of
//! their own ([`home`]): as a server that the SDK talks to ([`server`], with a [`person`] who answers) or as the terminal
//! interface inside tmux ([`terminal`]). Beside it runs the real Pilotlight ([`pilotlight`]), and what it tells is
//! compared with what was done. What Copilot does not do on demand is made up ([`made_up`]). [`record`] keeps what Copilot wrote
//! on the way, as new traces.
//!
//! No test sleeps and hopes. A test either *holds* something (the model's answer, a tool that waits for a file, a
//! permission request) and looks while it is held, or it waits for a condition with [`wait_until`].
//!
//! Test code is synchronous; the few async parts live on one runtime thread that all tests share ([`block_on`]).

#![allow(dead_code, reason = "each test binary uses its own part of the support")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on should say where")]

use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

pub(crate) mod desktop;
pub(crate) mod executable;
pub(crate) mod freeze;
pub(crate) mod home;
pub(crate) mod listener;
pub(crate) mod made_up;
pub(crate) mod model;
pub(crate) mod person;
pub(crate) mod pilotlight;
pub(crate) mod process;
pub(crate) mod ran;
pub(crate) mod record;
pub(crate) mod script;
pub(crate) mod server;
pub(crate) mod terminal;
pub(crate) mod tmux;

/// How long a condition may take that normally holds within a second. Generous: the machine may be busy with a build.
pub(crate) const SOON: Duration = Duration::from_secs(30);
/// The same for what Copilot does, several of them at a time: each takes seconds of a processor to start.
pub(crate) const COPILOT: Duration = Duration::from_secs(120);

/// Looks at `condition` every 20 ms until it gives a value. Panics after `timeout` with `what` was waited for and what
/// `dump` tells of the state of things.
pub(crate) fn wait_until<T>(
    timeout: Duration,
    what: &str,
    dump: impl Fn() -> String,
    condition: impl FnMut() -> Option<T>,
) -> T {
    wait(timeout, condition).unwrap_or_else(|| panic!("waited {timeout:?} in vain until {what}\n{}", dump()))
}

/// The same for where nothing depends on it: `None` when the time is over.
pub(crate) fn wait<T>(timeout: Duration, mut condition: impl FnMut() -> Option<T>) -> Option<T> {
    let start = Instant::now();
    loop {
        let value = condition();
        if value.is_some() || start.elapsed() >= timeout {
            return value;
        }
        #[expect(clippy::disallowed_methods, reason = "the one place that waits: between two looks at a condition")]
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Runs `future` on the runtime that all tests share, and waits for it.
pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    RUNTIME.block_on(future)
}

/// Starts `future` on the runtime that all tests share.
pub(crate) fn spawn<F: Future<Output = ()> + Send + 'static>(future: F) -> tokio::task::JoinHandle<()> {
    RUNTIME.spawn(future)
}

static RUNTIME: LazyLock<tokio::runtime::Handle> = LazyLock::new(|| {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let handle = runtime.handle().clone();
    std::thread::spawn(move || runtime.block_on(std::future::pending::<()>()));
    handle
});

/// The folder that cargo builds into: what is costly to make (the unpacked CLI) is kept there between runs.
pub(crate) fn target_dir() -> PathBuf {
    // The integration tests' own scratch folder is `<target dir>/tmp`.
    Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap().to_owned()
}
