//! Start at login: whether the desktop starts this program, and how that is changed.
//!
//! Nothing of it is remembered by us. What the menu says is what the system would do at the next login, read from where the
//! system reads it, also after somebody else has changed it; [`Login`] holds the last reading, is told when to read again
//! where the system tells that, and reads now and then by itself.
//!
//! - `entry` reads and writes the desktop entry, which is the form of it on Linux; `linux` knows where such entries are.
//! - `macos` and `windows` do the same with a launch agent, and with the registry.

#[cfg(any(target_os = "linux", test))]
mod entry;
#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "macos")]
mod macos;
#[cfg(windows)]
mod windows;

#[cfg(target_os = "linux")]
pub(crate) use entry::{entry_for, unit_for};
#[cfg(target_os = "linux")]
use linux::Place;
#[cfg(target_os = "macos")]
use macos::Place;
#[cfg(windows)]
use windows::Place;

use super::view::{COLUMNS, Effect, Item, ItemId, Kind};
use crate::core::text::{lines, plain};
use crate::system::paths::own_program;
use anyhow::Context;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use unicode_width::UnicodeWidthStr;

/// A note in the menu is at most this long, in characters.
const NOTE: usize = 96;
/// What was read so long before is read again, also where changes are told: not all that decides can be watched, such as the
/// program itself. It is read at menus that are made anyway; between them nothing wakes.
const AGE: Duration = Duration::from_secs(1);

/// Whether this program is started at login.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// It is.
    pub on: bool,
    /// It can be changed from the menu.
    pub can: bool,
    /// What the check mark does not say: why it is not started though it looks so, or who else sees to it.
    pub note: Option<String>,
}

impl State {
    /// It is, and the menu can change that.
    pub(crate) const fn on() -> Self {
        Self { on: true, can: true, note: None }
    }

    /// It is not, and the menu can change that.
    pub(crate) const fn off() -> Self {
        Self { on: false, can: true, note: None }
    }

    fn because(self, note: impl Into<String>) -> Self {
        Self { note: Some(note.into()), ..self }
    }

    /// The entry of the menu; a note that does not fit it stands below.
    pub(crate) fn items(&self) -> Vec<Item> {
        let (id, effect) = (ItemId::own(Kind::StartAtLogin), Effect::StartAtLogin(!self.on));
        let note = self.note.as_ref().map(|note| plain(note, NOTE));
        let whole = note.as_ref().map(|note| format!("Start at login ({note})")).filter(|text| text.width() <= COLUMNS);
        let below = note.filter(|_| whole.is_none());
        let text = whole.unwrap_or_else(|| "Start at login".into()).into();
        let below = below.iter().flat_map(|note| lines(note, COLUMNS - 2, 2));
        let below = below.map(|line| Item::text(format!("  {line}")));
        [Item::Check { id, text, enabled: self.can, checked: self.on, effect }].into_iter().chain(below).collect()
    }
}

/// What starts this program at login, for whoever shows or changes it. Copies share what was read last.
#[derive(Clone, Debug)]
pub(crate) struct Login {
    place: Option<Arc<Place>>,
    /// Why it cannot be changed, where there is no place.
    without: &'static str,
    read: Arc<Mutex<Reading>>,
    /// Changes are told: [`follow`](Self::follow) runs.
    followed: Arc<AtomicBool>,
}

/// How it was, and when.
#[derive(Debug)]
struct Reading {
    state: State,
    at: Instant,
}

impl Reading {
    fn now(place: Option<&Place>, without: &str) -> Self {
        let unknown = || State { can: false, ..State::off() }.because(without);
        Self { state: place.map_or_else(unknown, Place::read), at: Instant::now() }
    }
}

impl Login {
    /// Reads how it is now. Where the system does not say who we are or where the user's settings are, it cannot be changed.
    /// What is switched on looks at these homes, where any was named.
    pub(crate) fn find(homes: &[PathBuf]) -> Self {
        let homes = homes.iter().map(|home| std::path::absolute(home).unwrap_or_else(|_| home.clone())).collect();
        let place = own_program().and_then(|program| Place::find(program, homes));
        Self::of(place, "the system does not say where that is set")
    }

    /// Nothing is read, and it cannot be changed, for this reason.
    pub(crate) fn none(why: &'static str) -> Self {
        Self::of(None, why)
    }

    fn of(place: Option<Place>, without: &'static str) -> Self {
        let read = Arc::new(Mutex::new(Reading::now(place.as_ref(), without)));
        Self { place: place.map(Arc::new), without, read, followed: Arc::default() }
    }

    /// How it is. Where changes are told, it may have been otherwise for as long as a second.
    pub(crate) fn state(&self) -> State {
        let is_followed = self.followed.load(Ordering::Relaxed);
        if !is_followed || self.reading().at.elapsed() >= AGE {
            self.look();
        }
        self.reading().state.clone()
    }

    /// Reads it again; whether it is otherwise now.
    pub(crate) fn look(&self) -> bool {
        // Held meanwhile: else an older reading could take the place of a later one.
        let mut read = self.reading();
        let before = std::mem::replace(&mut *read, Reading::now(self.place.as_deref(), self.without));
        before.state != read.state
    }

    fn reading(&self) -> MutexGuard<'_, Reading> {
        self.read.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The user's entries that would start a program of our name, were it there: each with that program.
    #[cfg(target_os = "linux")]
    pub(crate) fn astray(&self) -> Vec<(PathBuf, PathBuf)> {
        self.place.as_ref().map(|place| place.astray()).unwrap_or_default()
    }

    /// Whether somebody enabled our systemd unit, whatever else starts us.
    #[cfg(target_os = "linux")]
    pub(crate) fn unit_is_enabled(&self) -> bool {
        self.place.as_ref().is_some_and(|place| place.unit_is_enabled())
    }

    /// Makes it so.
    ///
    /// # Errors
    /// Where it cannot be written, and what to do by hand.
    pub(crate) fn set(&self, on: bool) -> anyhow::Result<()> {
        let set = self.place.as_ref().map_or(Ok(()), |place| place.write(on));
        self.look();
        set
    }

    /// Reads it again whenever its files change, and calls `changed` where it is otherwise then. Ends where nothing can tell.
    #[cfg(target_os = "linux")]
    pub(crate) async fn follow(self, changed: impl Fn() + Send) {
        let Some(place) = self.place.clone() else { return };
        let told = || {
            if self.look() {
                changed();
            }
        };
        self.followed.store(true, Ordering::Relaxed);
        let ended = place.follow(told).await;
        self.followed.store(false, Ordering::Relaxed);
        if let Err(error) = ended {
            tracing::info!("changes to \"Start at login\" go unnoticed: {error}");
        }
    }
}

/// What stands behind the program where it is started at login.
///
/// # Errors
/// Where a home's path is no text, which is all that can be written there.
fn arguments(homes: &[PathBuf]) -> anyhow::Result<Vec<&str>> {
    let mut words = vec!["tray"];
    for home in homes {
        let home = home.to_str().with_context(|| format!("the path of {} is not valid UTF-8", home.display()))?;
        words.extend(["--home", home]);
    }
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::time::Moment;

    #[test]
    fn the_entry_says_how_it_is() {
        let says = |state: &State| {
            let items = state.items();
            let Item::Check { enabled, checked, effect, .. } = &items[0] else { panic!("{items:?}") };
            let words = items.iter().filter_map(Item::words).map(|text| text.at(Moment::default())).collect::<Vec<_>>();
            (words, *enabled, *checked, effect.clone())
        };
        assert_eq!(says(&State::on()), (vec!["Start at login".into()], true, true, Effect::StartAtLogin(false)));
        let off = State::off().because("its entry starts /old/pilot");
        let words = vec!["Start at login (its entry starts /old/pilot)".into()];
        assert_eq!(says(&off), (words, true, false, Effect::StartAtLogin(true)));
        let long = State::off().because("its entry starts a program that is not there any more");
        let words = ["Start at login", "  its entry starts a program that is not there", "  any more"];
        assert_eq!(says(&long).0, words);
    }
}
