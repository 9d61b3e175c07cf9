//! Reads every session once, for commands that do not keep running.

use crate::config::{Config, ServiceUse};
use crate::last_seen::{HomeHash, Seen};
use crate::ledger::Ledger;
use crate::parts::fleet::{count_holders, end_sample, find_terminal, others_of_owner};
use crate::parts::looks::{SocketReader, asked_by};
use crate::parts::resumes::RecentResumes;
use crate::parts::server_searches::server_state;
use crate::parts::shares::for_shares;
use pilotlight_agents::copilot;
use pilotlight_agents::copilot::server::servers::endpoints;
use pilotlight_agents::listing::Listing;
use pilotlight_agents::openings::OpenSessions;
use pilotlight_agents::reader::Reader;
use pilotlight_agents::reading::GRACE;
use pilotlight_agents::reading::{Glimpse, LogPaths, Reading};
use pilotlight_agents::scanner::OpenScanner;
use pilotlight_agents::source::Source;
use pilotlight_agents::tail::ReadContext;
use pilotlight_core::fleet::{Kind, Session};
use pilotlight_core::owner::Held;
use pilotlight_core::session::{Key, NoAnswer, Observed, SourceId};
use pilotlight_core::time::{Moment, Span, Time};
use pilotlight_core::verdict::Reception;
use pilotlight_system::clock::Clock;
use pilotlight_system::mounts::{Mounts, silent_mount};
use pilotlight_system::paths;
use pilotlight_system::process::cpu_of_descendants;
use std::collections::{HashMap, HashSet};
use std::iter;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// The state of all sessions at one time.
pub struct Snapshot {
    /// The sessions, in no meaningful order.
    pub sessions: Vec<Session>,
    /// The ids of all session folders, including those whose sessions were not kept.
    pub ids: Vec<Arc<str>>,
    /// When the snapshot was taken.
    pub now: Moment,
}

/// How long a snapshot samples the CPU use of a tool that has been silent up to its limit. The live program takes five
/// seconds. A command must not take that long, and a tenth of it reveals a busy process as well.
const CPU_SAMPLE_TIME: Span = Span(500);
/// How long to wait after a new lock before it is checked again: three times the longest time that Copilot took to hold
/// the session on a busy machine.
const FIRST_LOCK_RECHECK: Span = Span(6);

/// A session that was read.
pub struct Found {
    source: SourceId,
    reader: Reader,
    session: Session,
}

/// Reads every session folder of these homes. With `all`, it also reads logs that are too old to matter.
pub fn take(sources: &[Source], config: &Config, seen: &Seen, all: bool) -> Snapshot {
    read_all(sources, config, seen, all, Time(i64::MIN))
}

/// Like [`take`], but keeps only the sessions that a list shows: of tens of thousands, most are not.
pub fn take_listed(sources: &[Source], config: &Config, seen: &Seen) -> Snapshot {
    read_all(sources, config, seen, false, Clock::start().now().wall - config.list.ended_for)
}

/// Reads every session folder. Sessions of the history are kept only if they were modified since `earliest`.
fn read_all(sources: &[Source], config: &Config, seen: &Seen, all: bool, earliest: Time) -> Snapshot {
    let clock = Clock::start();
    let now = clock.now();
    let known = HashSet::new();
    let hashes: Vec<_> = sources.iter().map(|source| HomeHash::of(source.home())).collect();
    let openings = OpenScanner::default().scan(&sources.iter().collect::<Vec<_>>(), &config.owners.names, now.wall);
    let reading = Reading {
        context: ReadContext { now, limits: &config.limits, until: None },
        owner_names: &config.owners.names,
        known: &known,
        openings: &openings,
        all,
    };
    let mut silent = silent_sessions(sources, now);
    let (mut ids, logs) = list(sources, &openings);
    let all_ids: Vec<_> = ids.iter().map(|key| Arc::clone(&key.id)).collect();
    ids.retain(|key| !silent.contains_key(key));
    let glimpses: Vec<_> = iter::zip(sources, &logs).map(|(source, logs)| source.quick_scan(Some(logs))).collect();
    let is_kept = |past: Glimpse| earliest == Time(i64::MIN) || past.has_log && past.touched >= earliest;
    let read = |Key { source, id, .. }: &Key, buffer: &mut Vec<u8>| {
        let past = glimpses[source.0].past(id, &reading);
        if past.is_some_and(|past| !is_kept(past)) {
            return None;
        }
        let (mut reader, mut session) =
            (sources[source.0].reader_among(id, &logs[source.0]), sources[source.0].session(id));
        match past {
            Some(past) => past.note(&mut session.observed),
            // One that has just been removed is not a session.
            None => drop(reader.refresh(&reading, &mut session.observed, buffer).ok()?),
        }
        let Observed { unread, touched, has_log, .. } = session.observed;
        (!unread || is_kept(Glimpse { touched, has_log })).then(|| {
            seen.recall(hashes[source.0], &mut session, now.wall);
            reader.forget_log();
            Found { source: *source, reader, session }
        })
    };
    let mut found = read_in_shares(&ids, read);
    recheck_new_locks(&mut found, reading, &clock);
    if !all {
        read_recent(&mut found, &reading, now.wall - config.list.ended_for, config.list.ended_most);
    }
    mark_resumed(&mut found, sources, &Ledger::new(seen.path().and_then(Path::parent)), now);
    find_servers(&mut found, sources, config);
    let mut sessions: Vec<_> = found.into_iter().map(|one| one.session).collect();
    sessions.extend(silent.drain().map(|(_, session)| session));
    let owners = count_holders(sessions.iter());
    for session in &mut sessions {
        session.control.other_sessions = others_of_owner(session, &owners);
        find_terminal(session);
    }
    look_once(&mut sessions, clock.now(), config);
    let now = sample_cpu(&mut sessions, &clock, config);
    Snapshot { sessions, ids: all_ids, now }
}

/// The session folders of all homes, and where each home's logs are.
fn list(sources: &[Source], openings: &OpenSessions) -> (Vec<Key>, Vec<LogPaths>) {
    let (mut ids, mut logs) = (Vec::new(), Vec::new());
    for (number, source) in sources.iter().enumerate() {
        // An unlistable home was reported before, by the caller.
        let listed = source.list().ok();
        logs.push(listed.as_ref().map(Listing::logs).unwrap_or_default());
        let listed = listed.into_iter().flatten().filter(|id| !source.is_read_by(id, sources.iter()));
        ids.extend(listed.map(|id| Key::new(SourceId(number), id)));
    }
    let besides = openings.homes_besides().map(|(adapter, home)| Source::of(adapter, home.to_owned()));
    let besides: Vec<_> = besides.filter(|beside| sources.iter().any(|other| beside.shares_all(other))).collect();
    let is_alone = |(number, source): (usize, &Source)| {
        !sources[..number].iter().any(|other| other.adapter() == source.adapter() && !source.is_by_reports())
    };
    if besides.is_empty() && sources.iter().enumerate().all(is_alone) {
        return (ids, logs);
    }
    // Homes that share logs list the same sessions. Each session is read once, in the first home that has it.
    let claimed = besides.iter().flat_map(|beside| beside.claimed().into_iter().map(move |id| (beside, id)));
    let claimed = claimed.filter_map(|(beside, id)| {
        let number = sources.iter().position(|source| beside.shares_all(source))?;
        Some(Key::new(SourceId(number), id))
    });
    let all: HashSet<_> = ids.iter().cloned().collect();
    let claimed: Vec<_> = claimed.filter(|key| !all.contains(key)).collect();
    let first = |key: Key| {
        let (source, log) = (&sources[key.source.0], logs[key.source.0].get(&key.id));
        let mut earlier = sources[..key.source.0].iter();
        let number = earlier.position(|other| source.shares(other, &key.id, log.map(PathBuf::as_path)));
        number.map_or_else(|| key.clone(), |number| Key::new(SourceId(number), Arc::clone(&key.id)))
    };
    let mut known = HashSet::new();
    let ids = ids.into_iter().chain(claimed).map(first).filter(|key| known.insert(key.clone())).collect();
    (ids, logs)
}

/// Reads the sessions, on several threads if they are many. `read` gets a buffer that it can use again and again.
fn read_in_shares(ids: &[Key], read: impl Fn(&Key, &mut Vec<u8>) -> Option<Found> + Sync) -> Vec<Found> {
    let found = Mutex::new(Vec::new());
    for_shares(ids.len(), || {
        let (mut buffer, read, found) = (Vec::new(), &read, &found);
        move |share| {
            let read = |at: usize| Some((at, read(&ids[at], &mut buffer)?));
            let read: Vec<_> = share.filter_map(read).collect();
            found.lock().unwrap_or_else(PoisonError::into_inner).extend(read);
            ControlFlow::Continue(())
        }
    });
    let mut found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    // Whichever thread was faster: what lists them must say the same each time.
    found.sort_unstable_by_key(|(at, _)| *at);
    found.into_iter().map(|(_, found)| found).collect()
}

/// The sessions with a file system at or below their folder that does not answer, of which nothing is known.
fn silent_sessions(sources: &[Source], now: Moment) -> HashMap<Key, Session> {
    let mounts = Mounts::read();
    let mut sessions = HashMap::new();
    for (home, source) in sources.iter().enumerate() {
        let Ok(real) = mounts.resolve(source.root()) else { continue };
        for mount in mounts.below(&real).cloned() {
            let first = mount.path.strip_prefix(&real).ok().and_then(|path| path.components().next());
            let Some(id) = first.and_then(|first| first.as_os_str().to_str()).map(Arc::<str>::from) else { continue };
            let Some(mount) = silent_mount(Some(mount)) else { continue };
            let no_answer = NoAnswer { file_system: mount.kind, since: now, is_behind: false };
            let mut session = Session { no_answer: Some(no_answer), ..source.session(&id) };
            session.observed.touched = now.wall;
            sessions.insert(Key::new(SourceId(home), id), session);
        }
    }
    sessions
}

/// Reads sessions again whose lock was too new to show who holds them: first after the time that Copilot usually takes,
/// then, if necessary, after the longest time it can take. Waits for all of them together.
fn recheck_new_locks(found: &mut [Found], mut reading: Reading<'_>, clock: &Clock) {
    let mut new: Vec<_> = found.iter_mut().collect();
    let mut buffer = Vec::new();
    for wait in [FIRST_LOCK_RECHECK, GRACE] {
        new.retain(|one| one.session.observed.held == Held::Pending);
        if new.is_empty() {
            return;
        }
        #[expect(clippy::disallowed_methods, reason = "nothing tells that a file was locked")]
        std::thread::sleep(wait.to_std());
        reading.context.now = clock.now();
        for Found { reader, session, .. } in &mut new {
            // A session that has been removed stays as it was read.
            let _ = reader.refresh(&reading, &mut session.observed, &mut buffer);
            reader.forget_log();
        }
    }
}

/// Reads the last ended sessions, as many as a list shows.
fn read_recent(found: &mut [Found], reading: &Reading<'_>, earliest: Time, most: usize) {
    let is_recent = |one: &&mut Found| {
        let observed = &one.session.observed;
        observed.unread && observed.has_log && observed.touched >= earliest
    };
    let mut recent: Vec<_> = found.iter_mut().filter(is_recent).collect();
    recent.sort_unstable_by_key(|one| std::cmp::Reverse(one.session.observed.touched));
    let mut buffer = Vec::new();
    for Found { reader, session, .. } in recent.into_iter().take(most) {
        reader.read_history(reading, &mut session.observed, &mut buffer);
    }
}

/// Marks the sessions that were resumed recently by us and wait for their new owner.
fn mark_resumed(found: &mut [Found], sources: &[Source], ledger: &Ledger, now: Moment) {
    let mut resumes = RecentResumes::default();
    resumes.refresh(ledger, now);
    for Found { source, session, .. } in found {
        session.control.resumed = resumes.at(&session.id, || ledger.page(&sources[source.0], &session.id));
    }
}

/// Determines which of the sessions have a server or a service, without connecting to any.
fn find_servers(found: &mut [Found], sources: &[Source], config: &Config) {
    let homes = copilot::homes(sources);
    let (user_home, mut servers) = (paths::user_home(), HashMap::new());
    for Found { source, reader, session } in found {
        let has_service = || {
            let service = || sources[source.0].service(&session.id, &**reader, &session.observed);
            config.service != ServiceUse::Off && service().is_some()
        };
        session.control.server = server_state(&session.observed, has_service, |pid| {
            let listens = || !endpoints(pid, false, &homes, &config.servers, user_home.as_deref()).all().is_empty();
            *servers.entry(pid).or_insert_with(listens)
        });
    }
}

/// Looks once whether silent sessions receive their model's answer.
fn look_once(sessions: &mut [Session], now: Moment, config: &Config) {
    let is_due = |session: &Session| {
        session.observed.facts.waits_for_model()
            && session.row(now, &config.limits).1.look.and_then(|look| look.at).is_some_and(|at| at <= now.awake)
    };
    let due: Vec<_> = (0..sessions.len()).filter(|&index| is_due(&sessions[index])).collect();
    let mut reader = SocketReader::default();
    for index in due {
        let session = &sessions[index];
        let (Some(pid), Some(progress)) = (session.observed.owner.live(), session.observed.facts.progress) else {
            continue;
        };
        let others = sessions.iter().enumerate().filter(|(other, _)| *other != index).map(|(_, session)| session);
        let asked = asked_by(pid, session, progress.wall, others);
        let has_client = session.observed.about.kind == Kind::Sdk;
        let found = reader.view(pid).found(&asked, has_client, now.wall).with_word(None, session.streams());
        sessions[index].vitals.reception = Some(Reception::new(found, progress.wall, now));
    }
}

/// Samples the CPU use of open tools whose silence has reached the limit at which it decides.
fn sample_cpu(sessions: &mut [Session], clock: &Clock, config: &Config) -> Moment {
    let now = clock.now();
    let wants = |session: &Session| session.row(now, &config.limits).1.sample_at.is_some_and(|at| at <= now.awake);
    let mut samples = Vec::new();
    for (index, session) in sessions.iter().enumerate() {
        if let Some(pid) = session.observed.owner.pid().filter(|_| wants(session))
            && let Some(before) = cpu_of_descendants(pid)
        {
            samples.push((index, before, clock.now().awake));
        }
    }
    if samples.is_empty() {
        return now;
    }
    #[expect(clippy::disallowed_methods, reason = "CPU use is measured over a time, and nothing can happen meanwhile")]
    std::thread::sleep(CPU_SAMPLE_TIME.to_std());
    for (index, before, started) in samples {
        let now = clock.now();
        end_sample(&mut sessions[index], &before, now.awake - started, now);
    }
    clock.now()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Several processors read them, and whichever is faster must not decide which one is named first.
    #[test]
    fn sessions_come_in_the_order_in_which_they_are_listed() {
        let scratch = tempfile::tempdir().unwrap();
        let source = Source::at(scratch.path());
        for n in 0..500 {
            let folder = source.path(&format!("{n:03}"));
            std::fs::create_dir_all(&folder).unwrap();
            let events = if n % 7 == 0 { 4000 } else { 1 };
            let line = "{\"type\":\"user.message\",\"data\":{},\"id\":\"\",\"timestamp\":\"2026-11-25T10:00:00Z\"}\n";
            std::fs::write(source.log(&format!("{n:03}")), line.repeat(events)).unwrap();
        }
        let taken = take(&[source], &Config::default(), &Seen::default(), true);
        let sessions: Vec<&str> = taken.sessions.iter().map(|session| &*session.id).collect();
        assert_eq!(sessions, taken.ids.iter().map(|id| &**id).collect::<Vec<_>>());
    }
}
