//! One look at every session, for the commands that do not stay.

use crate::agent::copilot::opened::Openers;
use crate::agent::copilot::owner::GRACE;
use crate::agent::copilot::server::servers::endpoints;
use crate::agent::copilot::store::{Folder, Glimpse, Reading, Root, SESSIONS, session_ids};
use crate::agent::copilot::tail::Look;
use crate::config::Config;
use crate::core::action::ServerState;
use crate::core::fleet::Session;
use crate::core::owner::Held;
use crate::core::time::{Moment, Span, Time};
use crate::core::verdict::{SAMPLE_TAKES, Sample};
use crate::engine::last_seen::Seen;
use crate::engine::ledger::Ledger;
use crate::engine::{BUSY, resumed_lately};
use crate::system::clock::Clock;
use crate::system::paths;
use crate::system::process::cpu_of_descendants;
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What was seen.
pub(crate) struct Snapshot {
    /// The sessions, in no order of interest.
    pub sessions: Vec<Session>,
    /// The ids of all folders, those included whose sessions were not kept.
    pub ids: Vec<Arc<str>>,
    /// When.
    pub now: Moment,
}

/// How long a single look watches the CPU use of a tool that has been silent up to its limit. The live program takes five
/// seconds; a command that is asked once must not, and a tenth of that tells a busy process as well.
const GLANCE: Span = Span(500);
/// How long after its lock Copilot holds the session: three times as long as it took at worst on a busy machine.
const BLINK: Span = Span(6);
/// Folders that are read by one thread; fewer are not worth another.
const SHARE: usize = 64;

/// Looks into every session folder of these homes. `all`: even into the logs that are too old to matter.
pub(crate) fn take(homes: &[PathBuf], config: &Config, seen: &Seen, all: bool) -> Snapshot {
    look_around(homes, config, seen, all, Time(i64::MIN))
}

/// The same, but keeps only the sessions that a list shows: of tens of thousands most are none of them.
pub(crate) fn take_listed(homes: &[PathBuf], config: &Config, seen: &Seen) -> Snapshot {
    look_around(homes, config, seen, false, Clock::start().now().wall - config.list.ended_for)
}

/// Of the sessions that are history, those are kept that were touched since `earliest`.
fn look_around(homes: &[PathBuf], config: &Config, seen: &Seen, all: bool, earliest: Time) -> Snapshot {
    let clock = Clock::start();
    let now = clock.now();
    let known = HashSet::new();
    let roots: Vec<_> = homes.iter().map(|home| home.join(SESSIONS)).collect();
    let openings = Openers::default().look(&roots, &config.owners.names, now.wall);
    let reading = Reading {
        look: Look { now, limits: &config.limits, until: None },
        owner_names: &config.owners.names,
        known: &known,
        openings: &openings,
        all,
    };
    let mut ids = Vec::new();
    for (root, path) in roots.iter().enumerate() {
        // Why it cannot be listed was said before, by whoever asks for the snapshot.
        ids.extend(session_ids(path).into_iter().flatten().map(|id| (root, id)));
    }
    // For a few sessions no descriptor is worth it.
    let open = if ids.len() > SHARE { Root::open } else { Root::at };
    let opened: Vec<_> = roots.iter().map(|root| open(root)).collect();
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(ids.len().div_ceil(SHARE)).max(1);
    let share = ids.len().div_ceil(threads).max(1);
    let is_kept = |past: Glimpse| earliest == Time(i64::MIN) || past.has_log && past.touched >= earliest;
    let look = |ids: &[(usize, Arc<str>)]| {
        let (mut buffer, mut folders) = (Vec::new(), Vec::new());
        for (root, id) in ids {
            let past = opened[*root].past(id, &reading);
            if past.is_some_and(|past| !is_kept(past)) {
                continue;
            }
            let mut folder = Folder::new(&roots[*root], id);
            match past {
                Some(past) => folder.is_past(past),
                None if folder.look(&reading, &mut buffer).is_ok() => {}
                // A folder that has just gone is no session.
                None => continue,
            }
            let Session { unread, touched, has_log, .. } = folder.session;
            if !unread || is_kept(Glimpse { touched, has_log }) {
                seen.recall(&mut folder.session);
                folder.forget_log();
                folders.push(folder);
            }
        }
        folders
    };
    let look = &look;
    let mut folders: Vec<Folder> = std::thread::scope(|scope| {
        let mut shares = ids.chunks(share);
        let here = shares.next().unwrap_or_default();
        // What the system refuses a thread for is looked at here.
        let apart = |ids| std::thread::Builder::new().spawn_scoped(scope, move || look(ids)).map_err(|_| ids);
        let threads: Vec<_> = shares.map(apart).collect();
        let mut folders = look(here);
        for thread in threads {
            folders.extend(match thread {
                // A thread that panicked has said so, and the program with it.
                Ok(thread) => thread.join().unwrap_or_default(),
                Err(ids) => look(ids),
            });
        }
        folders
    });
    look_at_new(&mut folders, reading, &clock);
    if !all {
        read_recent(&mut folders, &reading, now.wall - config.list.ended_for, config.list.ended_most);
    }
    note_resumed(&mut folders, &Ledger::new(seen.path().and_then(Path::parent)), now.wall);
    let mut sessions: Vec<_> = folders.into_iter().map(|folder| folder.session).collect();
    find_servers(&mut sessions, homes, config);
    let now = sample(&mut sessions, &clock, config);
    Snapshot { sessions, ids: ids.into_iter().map(|(_, id)| id).collect(), now }
}

/// Looks again where a lock was too new to tell who holds the session: after as long as Copilot takes, and where that was not
/// enough, when it can take no longer. All of them together are waited for.
fn look_at_new(folders: &mut [Folder], mut reading: Reading<'_>, clock: &Clock) {
    let mut new: Vec<_> = folders.iter_mut().collect();
    let mut buffer = Vec::new();
    for wait in [BLINK, GRACE] {
        new.retain(|folder| folder.session.held == Held::Soon);
        if new.is_empty() {
            return;
        }
        #[expect(clippy::disallowed_methods, reason = "nothing tells that a file was locked")]
        std::thread::sleep(wait.to_std());
        reading.look.now = clock.now();
        for folder in &mut new {
            // One that has gone meanwhile is as it was seen.
            let _ = folder.look(&reading, &mut buffer);
            folder.forget_log();
        }
    }
}

/// Reads how the last ended sessions ended: those that a list shows.
fn read_recent(folders: &mut [Folder], reading: &Reading<'_>, earliest: Time, most: usize) {
    let is_recent = |folder: &&mut Folder| {
        let session = &folder.session;
        session.unread && session.has_log && session.touched >= earliest
    };
    let mut recent: Vec<_> = folders.iter_mut().filter(is_recent).collect();
    recent.sort_unstable_by_key(|folder| std::cmp::Reverse(folder.session.touched));
    let mut buffer = Vec::new();
    for folder in recent.into_iter().take(most) {
        folder.read_history(reading, &mut buffer);
    }
}

/// Takes over which sessions were resumed lately by us, and are still to show their new owner.
fn note_resumed(folders: &mut [Folder], ledger: &Ledger, now: Time) {
    for resumed in resumed_lately(ledger, now) {
        for folder in folders.iter_mut().filter(|folder| folder.session.id == resumed.id) {
            let home = folder.path().parent().and_then(Path::parent);
            if home.is_some_and(|home| ledger.page(home, &resumed.id).key() == &*resumed.page) {
                folder.session.control.resumed = Some(resumed.at);
            }
        }
    }
}

/// Finds out which owners run several sessions, and which of them have a server, without connecting to any.
fn find_servers(sessions: &mut [Session], homes: &[PathBuf], config: &Config) {
    let mut owners: HashMap<u32, (usize, Option<ServerState>)> = HashMap::new();
    for pid in sessions.iter().flat_map(|session| &session.holders) {
        owners.entry(*pid).or_default().0 += 1;
    }
    let user_home = paths::user_home();
    for session in sessions {
        let Some((count, server)) = session.owner.pid().and_then(|pid| owners.get_mut(&pid)) else { continue };
        session.control.others = count.saturating_sub(1);
        if let Some(pid) = session.owner.live() {
            let look = || match endpoints(pid, homes, &config.servers, user_home.as_deref()).is_empty() {
                true => ServerState::Nowhere,
                false => ServerState::Listens,
            };
            session.control.server = server.get_or_insert_with(look).clone();
        }
    }
}

/// Looks at the CPU use of the open tools whose silence has come to the point where that decides.
fn sample(sessions: &mut [Session], clock: &Clock, config: &Config) -> Moment {
    let now = clock.now();
    let wants = |session: &Session| session.row(now, &config.limits).1.sample_at.is_some_and(|at| at <= now.awake);
    let mut begun = Vec::new();
    for (index, session) in sessions.iter().enumerate() {
        if let Some(pid) = session.owner.pid().filter(|_| wants(session))
            && let Some(before) = cpu_of_descendants(pid)
        {
            begun.push((index, pid, before));
        }
    }
    if begun.is_empty() {
        return now;
    }
    #[expect(clippy::disallowed_methods, reason = "CPU use is measured over a time, and nothing can happen meanwhile")]
    std::thread::sleep(GLANCE.to_std());
    let now = clock.now();
    for (index, pid, before) in begun {
        let used = cpu_of_descendants(pid).map_or(Span::ZERO, |after| after.used_since(&before));
        let busy = used.0 * SAMPLE_TAKES.0 >= BUSY.0 * GLANCE.0;
        sessions[index].live.busy = Some(Sample { busy, at: now });
    }
    now
}
