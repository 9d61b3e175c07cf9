//! Start at login: whether the desktop starts this program, and how to change that.
//!
//! We store nothing ourselves. The menu shows what the system would do at the next login, read from where the system
//! reads it, even if another program changed it. [`Login`] caches the last reading; it reads again when the files
//! change, where that can be watched, and at intervals.
//!
//! - `state` is what is read, with its menu entry.
//! - `entry` reads and writes desktop entries, which Linux uses; `linux` finds them. `window_manager` is for those that
//!   read no entries.
//! - `macos` uses a launch agent, `windows` the registry.

#[cfg(any(target_os = "linux", test))]
mod entry;
#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "macos")]
mod macos;
mod state;
#[cfg(target_os = "linux")]
mod window_manager;
#[cfg(windows)]
mod windows;

#[cfg(target_os = "linux")]
pub(crate) use entry::{entry_for, unit_for};
pub use state::{StartLine, State};

#[cfg(target_os = "linux")]
use linux::Backend;
#[cfg(target_os = "macos")]
use macos::Backend;
#[cfg(target_os = "linux")]
use pilotlight_system::log::{self, cause};
#[cfg(windows)]
use windows::Backend;

use anyhow::Context;
use pilotlight_system::paths::own_program;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A reading older than this is stale even if changes are watched, as not everything can be: the program itself, for
/// one. A stale reading is refreshed only when a menu is built; it wakes nothing.
const MAX_AGE: Duration = Duration::from_secs(1);

/// The arguments of the program when it is started at login.
///
/// # Errors
/// Where a home's path is not valid UTF-8, which the entry needs.
fn arguments(homes: &[PathBuf]) -> anyhow::Result<Vec<&str>> {
    let mut words = vec!["tray"];
    for home in homes {
        let home = home.to_str().with_context(|| format!("the path of {} is not valid UTF-8", home.display()))?;
        words.extend(["--home", home]);
    }
    Ok(words)
}

/// Reads and changes the start at login. Clones share the last reading.
#[derive(Clone, Debug)]
pub(crate) struct Login {
    backend: Option<Arc<Backend>>,
    /// Why it cannot be changed, if there is no backend.
    unavailable: &'static str,
    last: Arc<Mutex<CachedState>>,
    /// Whether changes are watched, by [`follow`](Self::follow).
    followed: Arc<AtomicBool>,
}

/// A state, and when it was read.
#[derive(Debug)]
struct CachedState {
    state: State,
    at: Instant,
}

impl CachedState {
    fn now(backend: Option<&Backend>, unavailable: &str) -> Self {
        let unknown = || State { can_change: false, ..State::off() }.because(unavailable);
        Self { state: backend.map_or_else(unknown, Backend::read), at: Instant::now() }
    }
}

impl Login {
    /// Reads the current state. It cannot be changed if the path of this program or the user's settings folder is
    /// unknown. An entry that is written passes on these homes.
    pub(crate) fn find(homes: &[PathBuf]) -> Self {
        let homes = homes.iter().map(|home| std::path::absolute(home).unwrap_or_else(|_| home.clone())).collect();
        let backend = own_program().and_then(|program| Backend::find(program, homes));
        Self::of(backend, "the system does not say where that is set")
    }

    /// A state that is off and cannot be changed, for this reason.
    pub(crate) fn none(why: &'static str) -> Self {
        Self::of(None, why)
    }

    fn of(backend: Option<Backend>, unavailable: &'static str) -> Self {
        let last = Arc::new(Mutex::new(CachedState::now(backend.as_ref(), unavailable)));
        Self { backend: backend.map(Arc::new), unavailable, last, followed: Arc::default() }
    }

    /// The state, which may be up to [`MAX_AGE`] old if changes are watched.
    pub(crate) fn state(&self) -> State {
        let is_followed = self.followed.load(Ordering::Relaxed);
        if !is_followed || self.last_reading().at.elapsed() >= MAX_AGE {
            self.refresh();
        }
        self.last_reading().state.clone()
    }

    /// Reads the state again. Returns whether it changed.
    pub(crate) fn refresh(&self) -> bool {
        // Locked while reading: otherwise an older reading could replace a newer one.
        let mut last = self.last_reading();
        let previous = std::mem::replace(&mut *last, CachedState::now(self.backend.as_deref(), self.unavailable));
        previous.state != last.state
    }

    fn last_reading(&self) -> MutexGuard<'_, CachedState> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The user's entries that point to a missing program of our name, each with the path of that program.
    #[cfg(target_os = "linux")]
    pub(crate) fn stale_entries(&self) -> Vec<(PathBuf, PathBuf)> {
        self.backend.as_ref().map(|backend| backend.stale_entries()).unwrap_or_default()
    }

    /// Whether our systemd unit is enabled, regardless of any entry.
    #[cfg(target_os = "linux")]
    pub(crate) fn unit_is_enabled(&self) -> bool {
        self.backend.as_ref().is_some_and(|backend| backend.unit_is_enabled())
    }

    /// Turns it on or off.
    ///
    /// # Errors
    /// Why that cannot be written, and what to do instead.
    pub(crate) fn set(&self, on: bool) -> anyhow::Result<()> {
        let written = self.backend.as_ref().map_or(Ok(()), |backend| backend.write(on));
        self.refresh();
        written
    }

    /// Refreshes the state whenever its files change, and calls `changed` if it differs. Returns only if watching
    /// fails.
    #[cfg(target_os = "linux")]
    pub(crate) async fn follow(self, changed: impl Fn() + Send) {
        let Some(backend) = self.backend.clone() else { return };
        let on_change = || {
            if self.refresh() {
                changed();
            }
        };
        self.followed.store(true, Ordering::Relaxed);
        let result = backend.follow(on_change).await;
        self.followed.store(false, Ordering::Relaxed);
        if let Err(error) = result {
            log::info!("changes to \"Start at login\" go unnoticed: {}", cause(&error));
        }
    }
}
