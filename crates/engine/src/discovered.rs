//! The homes that nobody named: a process of an agent was seen to use each. They are kept across restarts in the state folder, so
//! that a session in one of them is still there when its process is gone.
//!
//! A home that is gone, or is another user's folder by now, is forgotten. When there are too many, the one that no process has used
//! for longest is. A broken file counts as empty: whatever is in use is found again.

use pilotlight_agents::adapter::ADAPTERS;
use pilotlight_agents::home::Home;
use pilotlight_agents::homes::{is_same, is_still_own};
use pilotlight_agents::runners::HomeInUse;
use pilotlight_core::time::{Span, Time};
use pilotlight_system::mounts::Mounts;
use pilotlight_system::state_file;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// The file's name in the state folder.
pub const FILE: &str = "homes.json";
/// The version of the file's format.
const VERSION: u32 = 1;
/// The most homes that are followed without having been named.
pub const MOST: usize = 16;
/// How exactly it is kept when a home was last in use: it is not written for each look.
const USED_STEP: Span = Span::hours(1);

/// A home that nobody named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiscoveredHome {
    pub home: Home,
    /// When a process was first seen to use it, by the wall clock.
    pub since: Time,
    /// That process.
    pub pid: u32,
    /// When a process was last seen to use it.
    used: Time,
}

/// As it is kept.
#[derive(Serialize, Deserialize)]
struct Record {
    agent: Box<str>,
    path: Box<str>,
    since: Time,
    pid: u32,
    used: Time,
}

/// The homes that nobody named.
#[derive(Clone, Debug, Default)]
pub struct Discovered {
    /// Where they are kept. `None`: nowhere.
    path: Option<PathBuf>,
    homes: Vec<DiscoveredHome>,
    /// They are others than those that are kept.
    is_unsaved: bool,
}

impl Discovered {
    /// Those that are kept in this file and still there.
    pub fn load(path: Option<PathBuf>) -> Self {
        let text = path.as_deref().map(state_file::read).unwrap_or_default();
        let records: Vec<Record> = state_file::parse(&text, VERSION).unwrap_or_default();
        let mut homes: Vec<DiscoveredHome> = Vec::new();
        for record in records {
            let adapter = ADAPTERS.iter().find(|adapter| adapter.name() == &*record.agent);
            let Some(adapter) = adapter.filter(|adapter| !adapter.profile().home_variable.is_empty()) else { continue };
            let home = Home::of(*adapter, PathBuf::from(&*record.path));
            if home.folder().is_absolute() && homes.len() < MOST && homes.iter().all(|known| known.home != home) {
                homes.push(DiscoveredHome { home, since: record.since, pid: record.pid, used: record.used });
            }
        }
        let (there, mounts) = (homes.len(), Mounts::read());
        homes.retain(|known| is_still_own(&known.home, &mounts));
        Self { path, is_unsaved: homes.len() != there, homes }
    }

    /// Each with when and by which process it was found.
    pub fn all(&self) -> &[DiscoveredHome] {
        &self.homes
    }

    /// The homes.
    pub fn homes(&self) -> Vec<Home> {
        self.homes.iter().map(|known| known.home.clone()).collect()
    }

    /// Whether this home is one of them.
    pub fn has(&self, home: &Home) -> bool {
        self.homes.iter().any(|known| known.home == *home)
    }

    /// Takes up what processes use now, and what other processes of ours have kept, and keeps it. `named` are the homes that are
    /// followed in any case. Returns whether there are others than before.
    pub(crate) fn note(&mut self, in_use: &[HomeInUse], named: &[&Home], now: Time) -> bool {
        let before = self.homes();
        for kept in Self::load(self.path.clone()).homes {
            if !self.has(&kept.home) && self.homes.len() < MOST {
                self.homes.push(kept);
            }
        }
        self.look(in_use, named, now);
        if std::mem::take(&mut self.is_unsaved) {
            self.save();
        }
        self.homes() != before
    }

    /// Takes up what processes use now.
    pub fn look(&mut self, in_use: &[HomeInUse], named: &[&Home], now: Time) {
        let mounts = Mounts::read();
        let is_named = |home: &Home| named.iter().any(|named| is_same(named, home, &mounts));
        let before = self.homes.len();
        self.homes.retain(|known| is_still_own(&known.home, &mounts) && !is_named(&known.home));
        self.is_unsaved |= self.homes.len() != before;
        let in_use: Vec<_> =
            in_use.iter().map(|found| (Home::of(found.adapter, found.folder.clone()), found.pid)).collect();
        for known in self.homes.iter_mut().filter(|known| in_use.iter().any(|(home, _)| known.home == *home)) {
            self.is_unsaved |= now - known.used >= USED_STEP;
            known.used = now;
        }
        for (home, pid) in in_use {
            if !self.has(&home) && !is_named(&home) && self.makes_room(now) {
                self.homes.push(DiscoveredHome { home, since: now, pid, used: now });
                self.is_unsaved = true;
            }
        }
    }

    /// Whether one more has room. The one that was not in use for longest goes for it, if one is not in use `now`.
    fn makes_room(&mut self, now: Time) -> bool {
        if self.homes.len() < MOST {
            return true;
        }
        let idle = self.homes.iter().enumerate().filter(|(_, known)| known.used != now);
        let Some((oldest, _)) = idle.min_by_key(|(_, known)| known.used) else { return false };
        self.homes.remove(oldest);
        true
    }

    /// Forgets all of them.
    pub fn clear(&mut self) {
        if !self.homes.is_empty() {
            self.homes.clear();
            self.save();
        }
    }

    /// Keeps them for the next start. What is not text in a path is not kept: its process is found again while it runs.
    fn save(&self) {
        let Some(path) = &self.path else { return };
        let record = |known: &DiscoveredHome| {
            let folder = known.home.folder().to_str()?;
            let agent = known.home.adapter().name().into();
            Some(Record { agent, path: folder.into(), since: known.since, pid: known.pid, used: known.used })
        };
        let records: Vec<_> = self.homes.iter().filter_map(record).collect();
        if let Err(error) = text_of(path, &records).and_then(|text| state_file::replace(path, &text)) {
            pilotlight_system::log::warn!(
                "homes that nobody named are not remembered: {}",
                pilotlight_system::log::cause(&*error)
            );
        }
    }
}

/// The text of the file, unless a later version of Pilotlight wrote the one that is there: it would lose what that one added.
fn text_of(path: &Path, records: &[Record]) -> anyhow::Result<Vec<u8>> {
    if let Err(unusable @ state_file::Unusable::Later(_)) =
        state_file::parse::<Vec<Record>>(&state_file::read(path), VERSION)
    {
        return Err(unusable.into());
    }
    state_file::text_of(VERSION, &records)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pilotlight_agents::codex::Codex;
    use std::fs;

    fn in_use(folder: &Path, pid: u32) -> HomeInUse {
        HomeInUse { adapter: &Codex, folder: folder.to_owned(), pid }
    }

    fn at(minutes: i64) -> Time {
        Time(0) + Span::minutes(minutes)
    }

    #[test]
    #[cfg(unix)]
    fn case_797_discovered_homes_are_kept_by_the_latest_use_and_bounded() {
        let scratch = tempfile::tempdir().unwrap();
        let base = scratch.path().canonicalize().unwrap();
        let folder = |n: usize| base.join(format!("home-{n}"));
        (0..MOST + 3).for_each(|n| fs::create_dir(folder(n)).unwrap());
        let path = Some(base.join("state").join(FILE));
        let mut discovered = Discovered::load(path.clone());
        for n in 0..MOST {
            let minute = i64::try_from(n).unwrap();
            assert!(discovered.note(&[in_use(&folder(n), 7)], &[], at(minute)));
        }
        let kept = || Discovered::load(path.clone());
        assert_eq!(kept().homes(), discovered.homes());
        assert_eq!((kept().all()[3].since, kept().all()[3].pid), (at(3), 7));
        // The first is in use again: the second goes. Those that are in use stay.
        let first_and_new = [in_use(&folder(MOST), 8), in_use(&folder(0), 9)];
        assert!(discovered.note(&first_and_new, &[], at(100)));
        let has = |discovered: &Discovered, n: usize| discovered.has(&Home::of(&Codex, folder(n)));
        assert_eq!([0, 1, 2, MOST].map(|n| has(&discovered, n)), [true, false, true, true]);
        assert_eq!(discovered.all()[0].pid, 7, "who used it first");
        let all: Vec<_> = (0..MOST + 3).map(|n| in_use(&folder(n), 9)).collect();
        discovered.note(&all, &[], at(101));
        assert_eq!(discovered.all().len(), MOST);
        assert!(!discovered.note(&all, &[], at(102)), "all others are in use, too");

        // One that is gone is forgotten, one that is named, and one that is behind a link by now.
        let mut left = discovered.homes();
        let [gone, named, linked] = [0, 1, 2].map(|_| left.remove(0));
        fs::remove_dir(gone.folder()).unwrap();
        fs::rename(linked.folder(), base.join("moved")).unwrap();
        std::os::unix::fs::symlink(base.join("moved"), linked.folder()).unwrap();
        std::os::unix::fs::symlink(named.folder(), base.join("name")).unwrap();
        let by_link = Home::of(&Codex, base.join("name"));
        assert!(discovered.note(&[in_use(named.folder(), 9)], &[&by_link], at(103)));
        assert_eq!((discovered.homes(), kept().homes()), (left.clone(), left));
        discovered.clear();
        assert!(kept().all().is_empty() && discovered.all().is_empty());
    }

    #[test]
    #[cfg(unix)]
    fn case_797_what_other_processes_of_ours_keep_is_taken_up_and_what_is_broken_counts_as_empty() {
        let scratch = tempfile::tempdir().unwrap();
        let base = scratch.path().canonicalize().unwrap();
        let (one, other, path) = (base.join("one"), base.join("other"), base.join(FILE));
        [&one, &other].iter().for_each(|folder| fs::create_dir(folder).unwrap());
        let [mut tray, mut watch] = [0, 1].map(|_| Discovered::load(Some(path.clone())));
        assert!(tray.note(&[in_use(&one, 1)], &[], at(0)));
        assert!(watch.note(&[in_use(&other, 2)], &[], at(1)));
        assert_eq!(watch.all().len(), 2);
        assert!(tray.note(&[], &[], at(2)) && tray.all().len() == 2);
        // A look of a command keeps nothing.
        let before = fs::read(&path).unwrap();
        let mut command = Discovered::load(Some(path.clone()));
        fs::remove_dir(&other).unwrap();
        command.look(&[], &[], at(3));
        assert_eq!((command.all().len(), fs::read(&path).unwrap()), (1, before));
        for broken in [
            "",
            "{",
            "[1]",
            r#"{"version":1,"content":[{"agent":"nobody","path":"/","since":"2026-11-29T10:00:00.000Z","pid":1,"used":"2026-11-29T10:00:00.000Z"}]}"#,
        ] {
            fs::write(&path, broken).unwrap();
            assert!(Discovered::load(Some(path.clone())).all().is_empty(), "{broken}");
        }
        let relative = r#"[{"agent":"codex","path":"one","since":"2026-11-29T10:00:00.000Z","pid":1,"used":"2026-11-29T10:00:00.000Z"}]"#;
        fs::write(&path, relative).unwrap();
        assert_eq!(state_file::parse::<Vec<Record>>(relative, VERSION).unwrap().len(), 1);
        assert!(Discovered::load(Some(path.clone())).all().is_empty());
        assert!(Discovered::default().note(&[in_use(&one, 1)], &[], at(0)), "without a place for it");
    }
}
