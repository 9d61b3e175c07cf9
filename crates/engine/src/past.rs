//! Reads the sessions that an engine does not hold, because they are over and not among the last: there may be tens of
//! thousands. They are read for whoever asks, and nobody keeps them.

use crate::config::Config;
use crate::last_seen::{HomeHash, LastSeen};
use crate::parts::shares::for_shares;
use pilotlight_agents::home::Home;
use pilotlight_agents::listing::Listing;
use pilotlight_agents::openings::OpenSessions;
use pilotlight_agents::reading::{LogPaths, Reading};
use pilotlight_agents::tail::ReadContext;
use pilotlight_core::fleet::Session;
use pilotlight_core::session::{HomeId, Key};
use pilotlight_core::time::Moment;
use std::collections::HashSet;
use std::iter;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// How much is read of each session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// When it was last written.
    Quick,
    /// Its log.
    Whole,
}

/// All sessions of these homes on disk.
pub struct OnDisk<'a> {
    homes: &'a [Home],
    keys: Vec<Key>,
    /// Where each home's logs are.
    logs: Vec<LogPaths>,
}

impl<'a> OnDisk<'a> {
    /// Lists them. A home that cannot be listed has none here: the caller reports that.
    pub fn list(homes: &'a [Home]) -> Self {
        let (mut keys, mut logs) = (Vec::new(), Vec::new());
        for (number, home) in homes.iter().enumerate() {
            let listed = home.list().ok();
            logs.push(listed.as_ref().map(Listing::logs).unwrap_or_default());
            let listed = listed.into_iter().flatten().filter(|id| !home.is_read_by(id, homes.iter()));
            keys.extend(listed.map(|id| Key::new(HomeId(number), id)));
        }
        let mut disk = Self { homes, keys, logs };
        if (0..homes.len()).any(|number| disk.has_namesake(number)) {
            let mut known = HashSet::new();
            let keys = std::mem::take(&mut disk.keys).into_iter().map(|key| disk.first(key));
            disk.keys = keys.filter(|key| known.insert(key.clone())).collect();
        }
        disk
    }

    /// The ids of all of them.
    pub fn ids(&self) -> Vec<Arc<str>> {
        self.keys.iter().map(|key| Arc::clone(&key.id)).collect()
    }

    /// Reads those that are not held. `is_held` is asked with the number of the home.
    pub fn read(
        &self,
        is_held: impl Fn(usize, &str) -> bool,
        depth: Depth,
        (config, seen): (&Config, &LastSeen),
        now: Moment,
    ) -> Vec<Session> {
        let hashes: Vec<_> = self.homes.iter().map(|home| HomeHash::of(home.folder())).collect();
        let (known, openings) = (HashSet::new(), OpenSessions::default());
        let reading = Reading {
            context: ReadContext { now, limits: &config.limits, until: None },
            owner_names: &config.owners.names,
            known: &known,
            openings: &openings,
            all: depth == Depth::Whole,
        };
        let scans = iter::zip(self.homes, &self.logs).map(|(home, logs)| home.quick_scan(Some(logs)));
        let scans: Vec<_> = scans.collect();
        let read = |Key { home: HomeId(number), id, .. }: &Key, buffer: &mut Vec<u8>| {
            let home = &self.homes[*number];
            let (mut reader, mut session) = (home.reader_among(id, &self.logs[*number]), home.session(id));
            match scans[*number].past(id, &reading) {
                Some(past) => past.note(&mut session.observed),
                // One that has just been removed is not a session.
                None => drop(reader.refresh(&reading, &mut session.observed, buffer).ok()?),
            }
            seen.recall(hashes[*number], &mut session, now.wall);
            Some(session)
        };
        let past: Vec<_> = self.keys.iter().filter(|key| !is_held(key.home.0, &key.id)).collect();
        in_shares(&past, read)
    }

    /// Whether an earlier home is of the same agent: homes that share logs list the same sessions.
    fn has_namesake(&self, number: usize) -> bool {
        let home = &self.homes[number];
        !home.is_by_reports() && self.homes[..number].iter().any(|other| other.adapter() == home.adapter())
    }

    /// The session in the first home that has it.
    fn first(&self, key: Key) -> Key {
        let HomeId(number) = key.home;
        let log = self.logs[number].get(&key.id).map(PathBuf::as_path);
        let mut earlier = self.homes[..number].iter();
        let shares = |other: &Home| self.homes[number].shares(other, &key.id, log);
        let first = earlier.position(shares).map(HomeId);
        Key { home: first.unwrap_or(key.home), ..key }
    }
}

/// Reads the sessions, on several threads if they are many. `read` gets a buffer that it can use again and again.
fn in_shares(keys: &[&Key], read: impl Fn(&Key, &mut Vec<u8>) -> Option<Session> + Sync) -> Vec<Session> {
    let found = Mutex::new(Vec::new());
    for_shares(keys.len(), || {
        let (mut buffer, read, found) = (Vec::new(), &read, &found);
        move |share| {
            let read = |at: usize| Some((at, read(keys[at], &mut buffer)?));
            let read: Vec<_> = share.filter_map(read).collect();
            found.lock().unwrap_or_else(PoisonError::into_inner).extend(read);
            ControlFlow::Continue(())
        }
    });
    let mut found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    // Whichever thread was faster: what lists them must say the same each time.
    found.sort_unstable_by_key(|(at, _)| *at);
    found.into_iter().map(|(_, session)| session).collect()
}
