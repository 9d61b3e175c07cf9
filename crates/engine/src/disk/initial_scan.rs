//! The first scan of all session folders. There may be tens of thousands, nearly all of them history, and nothing can
//! be shown before it is known which are not. So all processors take quick scans of them, one thread each.

use super::reading;
use super::scan::NAMES_PER_STEP;
use crate::disk::Disk;
use crate::parts::shares::for_shares;
use crate::steps::wakeups::SignalSource;
use crate::world::World;
use pilotlight_agents::listing::QuickScan;
use pilotlight_agents::reading::{PastSession, Reading};
use pilotlight_core::session::Key;
use std::iter;
use std::ops::{ControlFlow, Range};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// How long the first display may be delayed by logs that are still being read. After that, rows say that they are
/// incomplete.
const FIRST_READ_LIMIT: Duration = Duration::from_millis(200);
/// At most this many folders are processed before signals are handled again, for at most this long.
const FOLDERS_PER_STEP: usize = 4096;
const STEP_TIME: Duration = Duration::from_millis(20);

impl Disk {
    /// Reads everything for the first time. Breaks if a signal ends the program in the meantime.
    pub(crate) async fn run_initial_scan(&mut self, world: &mut World, signals: &mut SignalSource) -> ControlFlow<()> {
        self.check_homes(world);
        let started = Instant::now();
        while self.agenda.is_busy() && !(self.agenda.only_long_reads() && started.elapsed() >= FIRST_READ_LIMIT) {
            if !self.take_glimpses(world) {
                self.work_on_agenda(world);
            }
            tokio::select! {
                biased;
                () = signals.end() => return ControlFlow::Break(()),
                () = tokio::task::yield_now() => {}
            }
        }
        if self.history.seeks_recent() {
            self.load_recent(world);
        }
        self.warn_of_watch_trouble();
        ControlFlow::Continue(())
    }

    /// Takes quick scans of some of the folders that are listed, and queues those that must be read. Returns false if none
    /// are left or the agenda is full.
    fn take_glimpses(&mut self, world: &World) -> bool {
        if self.agenda.others_len() >= NAMES_PER_STEP {
            return false;
        }
        let Some(mut listing) = self.agenda.listings.pop_front() else { return false };
        let home = listing.home;
        let ids: Vec<_> = iter::from_fn(|| listing.next()).take(FOLDERS_PER_STEP).collect();
        let reading = reading(&world.config, &self.owners, &self.process_scans, world.now());
        let logs = listing.ids.logs();
        let scans = scans(&*self.homes.home(home).quick_scan(Some(&logs)), &ids, &reading);
        let may_be_more = ids.len() == FOLDERS_PER_STEP;
        for (id, past) in iter::zip(ids, scans) {
            match past.into_inner() {
                Some(Some(_))
                    if self
                        .homes
                        .stand_in(&Key::new(home, Arc::clone(&id)), logs.get(&id).map(PathBuf::as_path))
                        .is_some() => {}
                Some(Some(past)) => self.add_to_history(world, &Key::new(home, id), past),
                Some(None) => self.agenda.push_other(Key::new(home, id)),
                None => listing.left.push(id),
            }
        }
        // No sessions are known yet that the listing could miss, so it is simply dropped at its end.
        if may_be_more || !listing.left.is_empty() {
            self.agenda.listings.push_front(listing);
        }
        true
    }
}

/// Takes quick scans of these sessions. A result stays unset if there was no time.
fn scans(scan: &dyn QuickScan, ids: &[Arc<str>], reading: &Reading<'_>) -> Vec<OnceLock<Option<PastSession>>> {
    let scans: Vec<_> = iter::repeat_with(OnceLock::new).take(ids.len()).collect();
    let until = Instant::now() + STEP_TIME;
    let take = |share: Range<usize>| {
        for number in share {
            let _ = scans[number].set(scan.past(&ids[number], reading)); // each is set by only one thread
            if Instant::now() >= until {
                return ControlFlow::Break(());
            }
        }
        ControlFlow::Continue(())
    };
    for_shares(ids.len(), || take);
    scans
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::last_seen::LastSeen;
    use pilotlight_agents::home::Home;
    use pilotlight_core::session::HomeId;
    use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
    use std::collections::BTreeSet;
    use std::fs;
    use std::mem::MaybeUninit;
    use std::os::fd::OwnedFd;
    use std::path::Path;
    use std::time::UNIX_EPOCH;

    /// Of agents whose sessions share folders, there may be hundreds of those: each is a day, or a project.
    #[test]
    fn case_318_a_folder_that_sessions_share_is_listed_once_and_watched_before_that() {
        let home = tempfile::tempdir().unwrap();
        let day = home.path().join("sessions/2026/11/21");
        fs::create_dir_all(&day).unwrap();
        let ids = ["1", "2", "3"].map(|end| format!("01a20053-8e6c-7863-a4ca-0d958e86268{end}"));
        for id in &ids {
            let line = format!(r#"{{"type":"session_meta","payload":{{"id":"{id}"}}}}"#) + "\n";
            let log = day.join(format!("rollout-2026-11-21T22-56-45-{id}.jsonl"));
            fs::write(&log, line).unwrap();
            let log = fs::File::options().append(true).open(&log).unwrap();
            log.set_modified(UNIX_EPOCH).unwrap();
        }
        let listings = inotify::init(CreateFlags::NONBLOCK).unwrap();
        inotify::add_watch(&listings, &day, WatchFlags::OPEN | WatchFlags::CLOSE).unwrap();

        let (mut disk, world) = Disk::alone(&[Home::at(home.path())], Config::default(), LastSeen::default());
        disk.check_homes(&world);
        while disk.take_glimpses(&world) {}
        assert_eq!(disk.history.of_home(HomeId(0)).map(|key| key.id.to_string()).collect::<Vec<_>>(), ids);

        assert_eq!(opened(&listings), 1);
        // What comes later is seen, also in a folder that is made for it.
        assert!(!disk.history.has_unwatched(), "they share a watch that is there");
        let later = home.path().join("sessions/2026/12/01");
        for (folder, id) in [(&day, &ids[0]), (&later, &ids[1])] {
            fs::create_dir_all(folder).unwrap();
            fs::write(folder.join(format!("rollout-2026-11-21T22-56-45-{id}.jsonl")), "{}\n").unwrap();
        }
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let hints = runtime.block_on(disk.watcher.changed(true));
        assert!(hints.folders.contains(&Key::new(HomeId(0), &*ids[0])) && hints.homes.contains(&HomeId(0)));
    }

    /// Case 390: with 150 of them, listing them all each minute was a third of what an idle watch costs.
    #[test]
    fn case_390_a_rescan_lists_shared_folders_again_if_one_has_changed() {
        let home = tempfile::tempdir().unwrap();
        let [day, other] = ["21", "22"].map(|day| home.path().join("sessions/2026/11").join(day));
        let ids = ["1", "2", "3"].map(|end| format!("01a20053-8e6c-7863-a4ca-0d958e86268{end}"));
        let log = |day: &Path, id: &str| day.join(format!("rollout-2026-11-21T22-56-45-{id}.jsonl"));
        let write = |folder: &Path, id: &str| {
            fs::create_dir_all(folder).unwrap();
            let line = format!(r#"{{"type":"session_meta","payload":{{"id":"{id}"}}}}"#) + "\n";
            fs::write(log(folder, id), line).unwrap();
            fs::File::open(log(folder, id)).unwrap().set_modified(UNIX_EPOCH).unwrap();
        };
        write(&day, &ids[0]);
        write(&other, &ids[1]);
        let settle = |folders: &[&str]| {
            for it in folders {
                fs::File::open(home.path().join("sessions").join(it)).unwrap().set_modified(UNIX_EPOCH).unwrap();
            }
        };
        settle(&["", "2026", "2026/11", "2026/11/21", "2026/11/22"]);
        let listings = inotify::init(CreateFlags::NONBLOCK).unwrap();
        inotify::add_watch(&listings, &day, WatchFlags::OPEN | WatchFlags::CLOSE).unwrap();
        let (mut disk, mut world) = Disk::alone(&[Home::at(home.path())], Config::default(), LastSeen::default());
        let rescan = |disk: &mut Disk, world: &mut World| {
            disk.rescan_now(world);
            let sessions = disk.history.of_home(HomeId(0)).map(|key| key.id.to_string()).collect::<BTreeSet<_>>();
            (opened(&listings) > 0, sessions)
        };
        let known = |ids: &[String]| ids.iter().cloned().collect::<BTreeSet<_>>();
        assert_eq!(rescan(&mut disk, &mut world), (true, known(&ids[..2])));
        assert_eq!(rescan(&mut disk, &mut world), (false, known(&ids[..2])), "nothing has changed");

        // No event is handled: what comes and goes is found by the folders' times.
        write(&other, &ids[2]);
        fs::remove_file(log(&day, &ids[0])).unwrap();
        // Just changed: a change within the same tick of the clock would not show, so it is listed again.
        for _ in 0..2 {
            assert_eq!(rescan(&mut disk, &mut world), (true, known(&ids[1..])));
        }
        settle(&["2026/11/21", "2026/11/22"]);
        assert!(rescan(&mut disk, &mut world).0);
        assert!(!rescan(&mut disk, &mut world).0);
        // A folder of the same times in its place is another one.
        fs::rename(home.path().join("sessions"), home.path().join("away")).unwrap();
        fs::create_dir_all(home.path().join("sessions/2026/11")).unwrap();
        settle(&["", "2026", "2026/11"]);
        assert_eq!(rescan(&mut disk, &mut world), (false, BTreeSet::new()));
    }

    /// How often the watched folder was opened since this was last asked.
    fn opened(listings: &OwnedFd) -> usize {
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let (mut events, mut opened) = (Reader::new(listings, &mut buffer), 0);
        while let Ok(event) = events.next() {
            opened += usize::from(event.file_name().is_none() && event.events().contains(ReadFlags::OPEN));
        }
        opened
    }
}
