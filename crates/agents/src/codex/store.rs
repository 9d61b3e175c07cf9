//! Where a home keeps its threads: a log for each, in a folder for each day.

use super::head::{Head, is_left_open};
use super::lock::{self, Holder, Lock};
use crate::codex::Codex;
use crate::listing::QuickScan;
use crate::listing_cache::ListingCache;
use crate::reading::{LogPaths, PastSession, Reading};
use crate::walk;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};
use pilotlight_core::owner::Owner;
use pilotlight_core::text::is_uuid;
use pilotlight_core::time::Time;
use pilotlight_system::file_times::modified;
use pilotlight_system::plain_file::is_absence;
use pilotlight_system::process;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// The folder of a home that holds the logs.
pub(crate) const SESSIONS: &str = "sessions";
/// How many folders lie between that folder and a log: year, month and day.
pub(super) const DEPTH: usize = 3;
/// The length of a thread's id.
const ID: usize = 36;
/// How deep sub-agents may be nested; deeper ones form a loop.
const DEEP: usize = 8;
/// How many folders of a day may get another log: that of today and, by the clock of another time zone, the one before.
const CHANGING_DAYS: usize = 2;

/// How the name of a log ends, and of one that Codex has packed: its thread was over for long.
const LOG: &str = ".jsonl";
const PACKED: &str = ".jsonl.zst";

/// Whether a log is packed.
pub(super) fn is_packed(log: &Path) -> bool {
    log.as_os_str().as_encoded_bytes().ends_with(PACKED.as_bytes())
}

/// The thread whose log has this name: `rollout-<local time>-<id>.jsonl`, packed or not.
pub(super) fn session_of(file: &str) -> Option<&str> {
    let named = file.strip_prefix("rollout-")?;
    let stem = named.strip_suffix(LOG).or_else(|| named.strip_suffix(PACKED))?;
    stem.get(stem.len().checked_sub(ID)?..).filter(|id| is_uuid(id))
}

/// The ids of the threads of a home: those that have a log, and those that are open without one. And where the logs are,
/// and what of it may change, as far as `cache` notes it. From the folder of a day that is over a log can only be taken
/// away; that shows with the next listing, and at once where the folder is watched.
///
/// # Errors
/// Where the folder of the logs cannot be listed.
pub(crate) fn list(root: &Path, mut cache: ListingCache) -> io::Result<(Vec<Arc<str>>, LogPaths, ListingCache)> {
    let mut logs = HashMap::<Arc<str>, PathBuf>::new();
    root.parent().into_iter().for_each(|home| cache.note(&home.join(lock::LOCKS)));
    let open: Vec<_> = root.parent().into_iter().flat_map(lock::ids).collect();
    let walked = walk::files(root, DEPTH, session_of, &mut |folder| cache.note(folder), &mut |id, log| {
        // While one is packed, both are there.
        if !is_packed(&log) || !logs.contains_key(id) {
            logs.insert(id.into(), log);
        }
        true
    });
    // Before the first prompt in a home there is no folder for logs, but a lock of the thread that waits for it.
    if let Err(error) = walked
        && (open.is_empty() || !is_absence(&error))
    {
        return Err(error);
    }
    cache.retain_last(CHANGING_DAYS, |folder| {
        folder.strip_prefix(root).is_ok_and(|day| day.components().count() == DEPTH)
    });
    let ids: BTreeSet<_> = logs.keys().cloned().chain(open).collect();
    Ok((ids.into_iter().collect(), logs.into(), cache))
}

/// The day on which a thread was created, by the time in its id (UUID version 7); in local time it may be the one
/// before or after.
fn day_of(id: &str) -> Option<Date> {
    let (high, rest) = id.split_once('-')?;
    let (low, rest) = rest.split_once('-')?;
    rest.starts_with('7').then_some(())?;
    let millis = i64::from_str_radix(&format!("{high}{low}"), 16).ok()?;
    Some(Timestamp::from_millisecond(millis).ok()?.to_zoned(TimeZone::UTC).date())
}

/// The log of a thread, if it has one.
pub(super) fn log_of(root: &Path, id: &str) -> Option<PathBuf> {
    find_log(root, id, |file| session_of(file).filter(|_| file.ends_with(LOG)))
        .or_else(|| find_log(root, id, session_of))
}

/// The log of a thread among those whose names tell it so.
fn find_log(root: &Path, id: &str, session_of: fn(&str) -> Option<&str>) -> Option<PathBuf> {
    let Some(day) = day_of(id) else { return walk::find(root, DEPTH, session_of, id) };
    let mut days = [0, -1, 1].into_iter().filter_map(|offset: i64| day.checked_add(offset.days()).ok());
    days.find_map(|day| {
        let folder = root.join(format!("{:04}/{:02}/{:02}", day.year(), day.month(), day.day()));
        walk::find(&folder, 0, session_of, id)
    })
}

/// Tells at once whether threads are history: what is asked of all of them is read once.
#[derive(Debug)]
pub(crate) struct SessionScan<'a> {
    root: &'a Path,
    /// Where the logs are, and which threads have a lock. `None`: few are asked about, and each is looked for.
    listed: Option<(LogPaths, HashSet<Arc<str>>)>,
    /// Which threads have a lock in another home.
    locked_elsewhere: OnceLock<HashSet<Arc<str>>>,
}

impl<'a> SessionScan<'a> {
    pub(crate) fn new(root: &'a Path, listed: Option<&LogPaths>) -> Self {
        let locks = || root.parent().into_iter().flat_map(lock::ids).collect();
        Self { root, listed: listed.map(|logs| (Arc::clone(logs), locks())), locked_elsewhere: OnceLock::new() }
    }

    /// Whether a process shows that it has to do with a thread, or another home has a lock of it.
    fn is_run_elsewhere(&self, id: &str, reading: &Reading<'_>) -> bool {
        let locks = || {
            let others = reading.openings.homes(&Codex).filter(|home| Some(*home) != self.root.parent());
            others.flat_map(lock::ids).collect()
        };
        reading.openings.runners(&Codex).any(|runner| runner.mentions(id))
            || self.locked_elsewhere.get_or_init(locks).contains(id)
    }
}

/// Whether a thread without a lock has ended, whatever else its log says: that is old, and its last turn is over, or was
/// left open so long ago that this is no news.
pub(super) fn is_over(log: &Path, touched: Time, reading: &Reading<'_>) -> bool {
    let is_news = reading.context.now.wall - touched <= reading.context.limits.crashed;
    reading.is_past(touched) && !(is_news && is_left_open(log))
}

impl QuickScan for SessionScan<'_> {
    fn past(&self, id: &str, reading: &Reading<'_>) -> Option<PastSession> {
        let is_locked = || match &self.listed {
            Some((_, locks)) => locks.contains(id),
            None => self.root.parent().is_none_or(|home| Lock::of(home, id).is_some()),
        };
        if reading.all || is_locked() || self.is_run_elsewhere(id, reading) {
            return None;
        }
        let log = match &self.listed {
            Some((logs, _)) => logs.get(id).cloned(),
            None => log_of(self.root, id),
        }?;
        let touched = modified(&fs::symlink_metadata(&log).ok()?);
        let head = Head::read(&log)?;
        let cwd = head.cwd.as_deref().map(Path::new);
        let mut runners = reading.openings.runners(&Codex);
        let may_be_run = runners.any(|runner| runner.may_have_written(touched, |folder| cwd == Some(folder)));
        let is_past = !may_be_run && is_over(&log, touched, reading) && !head.is_part_of_another(id);
        is_past.then_some(PastSession { touched, has_log: true })
    }
}

/// The threads that have a lock in a home.
pub(crate) fn claimed(home: &Path) -> Vec<Arc<str>> {
    lock::ids(home).collect()
}

/// Where a thread's log is, or would be if it had one.
pub(crate) fn path(root: &Path, id: &str) -> PathBuf {
    log_of(root, id).unwrap_or_else(|| root.join(id))
}

/// Who has a thread loaded now.
pub(crate) fn owner_now(root: &Path, id: &str, now: Time) -> Owner {
    let holder = root.parent().and_then(|home| Lock::of(home, id)).map(|lock| lock.holder());
    match holder {
        Some(Holder::Process(pid)) => match process::read(pid, now) {
            process::PidStatus::Process { started, .. } => Owner::Alive { pid, started },
            process::PidStatus::Hidden => Owner::Unknown { pid },
            process::PidStatus::Absent => Owner::Gone { pid, at: None },
        },
        Some(Holder::Hidden) => Owner::Unknown { pid: Owner::UNNAMED },
        Some(Holder::Nobody | Holder::Untold) | None => Owner::Never,
    }
}

/// The thread whose sub-agent this one is.
pub(crate) fn whole(root: &Path, id: &str) -> Option<Arc<str>> {
    let head = Head::read(&log_of(root, id)?)?;
    let whole = head.is_part_of_another(id).then(|| whole_of(root, head))??;
    (*whole != *id).then(|| whole.into())
}

/// The thread that a log with this head is a part of in the end: a sub-agent may start others, and where its log does not
/// name the root, it names the one that started it. `None` for those that name each other.
pub(super) fn whole_of(root: &Path, head: Head) -> Option<Box<str>> {
    let mut whole = head.session;
    for _ in 0..DEEP {
        let above = log_of(root, &whole).as_deref().and_then(Head::read);
        let Some(above) = above.filter(|above| above.session != whole) else { return Some(whole) };
        whole = above.session;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::openings::OpenSessions;
    use crate::reader::SessionReader;
    use crate::tail::ReadContext;
    use pilotlight_core::limits::Limits;
    use pilotlight_core::time::{Moment, Span};
    use std::collections::HashSet;

    const ID: &str = "01a20053-8e6c-7863-a4ca-0d958e862685";

    #[test]
    fn a_log_is_named_by_its_thread() {
        let name = format!("rollout-2026-11-21T22-56-45-{ID}.jsonl");
        assert_eq!(session_of(&name), Some(ID));
        for other in ["", "rollout-.jsonl", "rollout-2026-11-21T22-56-45-x.jsonl", &name[1..], &name[..name.len() - 1]]
        {
            assert_eq!(session_of(other), None, "{other}");
        }
        let cut_in_a_letter = "rollout-éééééééééééééééééé5-0d958e862685.jsonl";
        assert_eq!(session_of(cut_in_a_letter), None);
    }

    #[test]
    fn a_log_is_found_by_the_day_in_its_id_or_the_next_by_local_time() {
        assert_eq!(day_of(ID), Some(jiff::civil::date(2026, 11, 21)));
        assert_eq!(day_of("01a20053-8e6c-4863-a4ca-0d958e862685"), None, "another version of UUIDs has no time");
        for (id, day) in
            [(ID, "2026/11/21"), (ID, "2026/11/22"), ("01a20053-8e6c-4863-a4ca-0d958e862685", "2019/01/02")]
        {
            let home = tempfile::tempdir().unwrap();
            let root = home.path().join(SESSIONS);
            assert_eq!((log_of(&root, id), path(&root, id)), (None, root.join(id)));
            let log = root.join(day).join(format!("rollout-2026-11-21T22-56-45-{id}.jsonl"));
            fs::create_dir_all(log.parent().unwrap()).unwrap();
            fs::write(&log, "").unwrap();
            fs::write(root.join("note.txt"), "").unwrap();
            assert_eq!(log_of(&root, id).as_ref(), Some(&log), "{day}");
            let (ids, logs, _) = list(&root, ListingCache::default()).unwrap();
            assert_eq!((&*ids, &logs[id]), (&[Arc::from(id)][..], &log));
        }
    }

    #[test]
    fn case_365_a_day_that_is_over_is_not_looked_at_again() {
        let home = tempfile::tempdir().unwrap();
        let root = home.path().join(SESSIONS);
        let put = |day: &str, at: &str| {
            let folder = root.join(day);
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join(format!("rollout-2026-11-21T{at}-{ID}.jsonl")), "").unwrap();
        };
        for day in ["2025/12/31", "2026/10/30", "2026/11/20", "2026/11/21"] {
            put(day, "22-56-45");
        }
        for (change, is_seen) in [
            ("2025/12/31", false),
            ("2026/10/30", false),
            ("2026/11/20", true),
            ("2026/11/21", true),
            ("2026/11/22", true),
        ] {
            let (_, _, listed) = list(&root, ListingCache::kept()).unwrap();
            assert!(listed.stand());
            put(change, "22-56-46");
            assert_eq!(!listed.stand(), is_seen, "{change}");
        }
    }

    /// Case 348: what `status` shows of it does not depend on who else was asked about.
    #[test]
    fn case_348_a_thread_that_was_left_in_its_turn_is_news_for_a_day_and_no_history() {
        let log = tempfile::NamedTempFile::new().unwrap();
        let (limits, known, touched) = (Limits::default(), HashSet::new(), Time(1_795_000_000_000));
        let is_over = |after| {
            let context = ReadContext { now: Moment::of(touched + after), limits: &limits, until: None };
            let reading =
                Reading { context, owner_names: &[], known: &known, openings: OpenSessions::NONE, all: false };
            is_over(log.path(), touched, &reading)
        };
        let line = |kind: &str| format!(r#"{{"type":"event_msg","payload":{{"type":"{kind}"}}}}"#) + "\n";
        let quoted = r#"{"type":"response_item","payload":{"text":"\"type\":\"task_complete\""}}"#.to_owned() + "\n";
        for (text, is_left) in [
            (line("task_started") + &line("task_complete"), false),
            (line("task_started") + &line("turn_aborted") + &line("token_count"), false),
            (line("task_complete") + &line("task_started") + &quoted, true),
            (String::new(), false),
            (quoted.repeat(2000), true),
        ] {
            fs::write(log.path(), text).unwrap();
            let ages = [Span::seconds(1), Span::hours(1), Span::hours(25)];
            assert_eq!(ages.map(is_over), [false, !is_left, true]);
        }
    }

    /// Case 297.
    #[test]
    fn case_297_an_old_log_without_a_lock_is_history_and_nothing_else_is() {
        let home = tempfile::tempdir().unwrap();
        let root = home.path().join(SESSIONS);
        fs::create_dir_all(root.join("2026/11/21")).unwrap();
        fs::create_dir(home.path().join(lock::LOCKS)).unwrap();
        let begin = |id: &str, of: &str| {
            let meta = format!(
                r#"{{"timestamp":"2026-11-21T22:56:45.000Z","type":"session_meta","payload":{{"id":"{id}","session_id":"{of}"}}}}"#
            );
            let log = root.join(format!("2026/11/21/rollout-2026-11-21T22-56-45-{id}.jsonl"));
            fs::write(&log, meta + "\n").unwrap();
            log
        };
        let [sub, left, broken, absent] = ["1", "2", "3", "4"].map(|end| ID.replace("685", &format!("68{end}")));
        let log = begin(ID, ID);
        begin(&sub, ID);
        begin(&left, &left);
        fs::write(begin(&broken, &broken), "no JSON\n").unwrap();
        fs::write(home.path().join(format!("{}/{left}.lock", lock::LOCKS)), "").unwrap();
        let touched = modified(&fs::metadata(&log).unwrap());
        let (limits, known) = (Limits::default(), HashSet::new());
        let reading = |after: Span, all| Reading {
            context: ReadContext { now: Moment::of(touched + after), limits: &limits, until: None },
            owner_names: &[],
            known: &known,
            openings: OpenSessions::NONE,
            all,
        };
        let (_, logs, _) = list(&root, ListingCache::default()).unwrap();
        for listed in [None, Some(&logs)] {
            let scans = SessionScan::new(&root, listed);
            let is_past = |id: &str, after, all| scans.past(id, &reading(after, all)).is_some();
            assert!(is_past(ID, Span::hours(1), false));
            assert!(!is_past(ID, Span::seconds(1), false) && !is_past(ID, Span::hours(1), true));
            for other in [&sub, &left, &broken, &absent] {
                assert!(!is_past(other, Span::hours(1), false), "{other}");
            }
        }
    }

    /// Given: the log of a sub-agent without the root's id, as some releases write it, and one of a sub-agent of that. -> Both
    /// are part of the root's thread.
    #[test]
    fn case_539_a_log_that_names_the_thread_that_started_it_is_a_part_of_that() {
        let home = tempfile::tempdir().unwrap();
        let root = home.path().join(SESSIONS);
        let folder = root.join("2026/11/21");
        fs::create_dir_all(&folder).unwrap();
        let [child, grandchild, nested, one, other] =
            ["1", "2", "3", "7", "8"].map(|end| ID.replace("685", &format!("68{end}")));
        let spawned = format!(r#""source":{{"subagent":{{"thread_spawn":{{"depth":1,"parent_thread_id":"{ID}"}}}}}},"#);
        for (id, more) in [
            (ID, String::new()),
            (&child, format!(r#""parent_thread_id":"{ID}","#)),
            (&grandchild, format!(r#""parent_thread_id":"{child}","#)),
            (&nested, spawned),
            (&one, format!(r#""parent_thread_id":"{other}","#)),
            (&other, format!(r#""parent_thread_id":"{one}","#)),
        ] {
            let meta = format!(
                r#"{{"timestamp":"2026-11-21T22:56:45.000Z","type":"session_meta","payload":{{"id":"{id}",{more}"cwd":"/srv","originator":"x","cli_version":"1"}}}}"#
            );
            fs::write(folder.join(format!("rollout-2026-11-21T22-56-45-{id}.jsonl")), meta + "\n").unwrap();
        }
        for id in [ID, &one, &other] {
            assert_eq!(whole(&root, id), None, "{id} is a thread of its own, or one of a loop");
        }
        for part in [&child, &grandchild, &nested] {
            assert_eq!(whole(&root, part).as_deref(), Some(ID), "{part}");
        }
    }

    /// Given: a log that Codex has packed, whole or cut. -> Its thread has ended; its title and folder are read; while one is
    /// being packed, the log itself counts.
    #[test]
    fn case_541_a_packed_log_is_one_of_a_thread_that_has_ended() {
        let home = tempfile::tempdir().unwrap();
        let root = home.path().join(SESSIONS);
        let folder = root.join("2026/11/21");
        fs::create_dir_all(&folder).unwrap();
        let text = format!(
            r#"{{"timestamp":"2026-11-21T22:56:45.000Z","type":"session_meta","payload":{{"id":"{ID}","cwd":"/srv","originator":"codex-tui","cli_version":"1"}}}}
{{"timestamp":"2026-11-21T22:56:46.000Z","type":"event_msg","payload":{{"type":"task_started","turn_id":"t"}}}}
{{"timestamp":"2026-11-21T22:56:46.000Z","type":"event_msg","payload":{{"type":"item_completed","item":{{"type":"UserMessage","content":[{{"type":"text","text":"Paint it"}}]}}}}}}
"#
        );
        let packed = folder.join(format!("rollout-2026-11-21T22-56-45-{ID}.jsonl.zst"));
        let whole = pilotlight_system::packed::testing::pack(text.as_bytes());
        let (limits, known, mut buffer) = (Limits::default(), HashSet::new(), Vec::new());
        for (bytes, title) in
            [(&whole[..], Some("Paint it")), (&whole[..whole.len() / 2], None), (&b"no log"[..], None)]
        {
            fs::write(&packed, bytes).unwrap();
            let (ids, logs, _) = list(&root, ListingCache::default()).unwrap();
            assert_eq!((&*ids, &logs[ID], log_of(&root, ID).as_ref()), (&[Arc::from(ID)][..], &packed, Some(&packed)));
            let touched = modified(&fs::metadata(&packed).unwrap());
            for all in [false, true] {
                let context = ReadContext { now: Moment::of(touched), limits: &limits, until: None };
                let reading = Reading { context, owner_names: &[], known: &known, openings: OpenSessions::NONE, all };
                let mut thread = crate::codex::thread::Thread::new(&root, ID, packed.clone());
                let mut shown = pilotlight_core::session::Session { id: ID.into(), ..Default::default() };
                thread.refresh(&reading, &mut shown.observed, &mut buffer).unwrap();
                thread.read_history(&reading, &mut shown.observed, &mut buffer);
                let row = shown.row(Moment::of(touched), &limits).0;
                assert_eq!(row.status, pilotlight_core::verdict::Status::Ended, "{}", row.because);
                if title.is_some() {
                    assert_eq!((row.name.as_ref(), row.cwd.as_deref()), ("Paint it", Some("/srv")));
                }
            }
        }
        let log = folder.join(format!("rollout-2026-11-21T22-56-45-{ID}.jsonl"));
        fs::write(&log, text).unwrap();
        let (_, logs, _) = list(&root, ListingCache::default()).unwrap();
        assert_eq!((&logs[ID], log_of(&root, ID).as_ref()), (&log, Some(&log)));
    }
}
