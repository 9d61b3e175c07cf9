//! Reads the sessions that an engine does not hold, because they are over and not among the last: there may be tens of
//! thousands. They are read for whoever asks, and nobody keeps them.

use crate::config::Config;
use crate::last_seen::{HomeHash, Seen};
use crate::parts::shares::for_shares;
use pilotlight_agents::listing::Listing;
use pilotlight_agents::openings::OpenSessions;
use pilotlight_agents::reading::{LogPaths, Reading};
use pilotlight_agents::source::Source;
use pilotlight_agents::tail::ReadContext;
use pilotlight_core::fleet::Session;
use pilotlight_core::session::{Key, SourceId};
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
    sources: &'a [Source],
    keys: Vec<Key>,
    /// Where each home's logs are.
    logs: Vec<LogPaths>,
}

impl<'a> OnDisk<'a> {
    /// Lists them. A home that cannot be listed has none here: the caller reports that.
    pub fn list(sources: &'a [Source]) -> Self {
        let (mut keys, mut logs) = (Vec::new(), Vec::new());
        for (number, source) in sources.iter().enumerate() {
            let listed = source.list().ok();
            logs.push(listed.as_ref().map(Listing::logs).unwrap_or_default());
            let listed = listed.into_iter().flatten().filter(|id| !source.is_read_by(id, sources.iter()));
            keys.extend(listed.map(|id| Key::new(SourceId(number), id)));
        }
        let mut disk = Self { sources, keys, logs };
        if (0..sources.len()).any(|number| disk.has_namesake(number)) {
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
        (config, seen): (&Config, &Seen),
        now: Moment,
    ) -> Vec<Session> {
        let hashes: Vec<_> = self.sources.iter().map(|source| HomeHash::of(source.home())).collect();
        let (known, openings) = (HashSet::new(), OpenSessions::default());
        let reading = Reading {
            context: ReadContext { now, limits: &config.limits, until: None },
            owner_names: &config.owners.names,
            known: &known,
            openings: &openings,
            all: depth == Depth::Whole,
        };
        let scans = iter::zip(self.sources, &self.logs).map(|(source, logs)| source.quick_scan(Some(logs)));
        let scans: Vec<_> = scans.collect();
        let read = |Key { source: SourceId(number), id, .. }: &Key, buffer: &mut Vec<u8>| {
            let source = &self.sources[*number];
            let (mut reader, mut session) = (source.reader_among(id, &self.logs[*number]), source.session(id));
            match scans[*number].past(id, &reading) {
                Some(past) => past.note(&mut session.observed),
                // One that has just been removed is not a session.
                None => drop(reader.refresh(&reading, &mut session.observed, buffer).ok()?),
            }
            seen.recall(hashes[*number], &mut session, now.wall);
            Some(session)
        };
        let past: Vec<_> = self.keys.iter().filter(|key| !is_held(key.source.0, &key.id)).collect();
        in_shares(&past, read)
    }

    /// Whether an earlier home is of the same agent: homes that share logs list the same sessions.
    fn has_namesake(&self, number: usize) -> bool {
        let source = &self.sources[number];
        !source.is_by_reports() && self.sources[..number].iter().any(|other| other.adapter() == source.adapter())
    }

    /// The session in the first home that has it.
    fn first(&self, key: Key) -> Key {
        let SourceId(number) = key.source;
        let log = self.logs[number].get(&key.id).map(PathBuf::as_path);
        let mut earlier = self.sources[..number].iter();
        let shares = |other: &Source| self.sources[number].shares(other, &key.id, log);
        let first = earlier.position(shares).map(SourceId);
        Key { source: first.unwrap_or(key.source), ..key }
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
