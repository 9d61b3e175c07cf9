//! The system's events in a home become hints.

use super::super::filter::Home;
use super::super::plan::{TEST_FILES, TEST_PLAN};
use super::*;
use pilotlight_core::session::{HomeId, Key, NoFileEvents};
use std::fs;

fn of(root: &Path) -> Home {
    Home { plan: &TEST_PLAN, names: vec![root.to_owned()] }
}

/// A home with one session, watched as the engine does it.
fn watched() -> (tempfile::TempDir, PathBuf, Source) {
    let scratch = tempfile::tempdir().unwrap();
    let (root, seen) = (scratch.path().join("sessions"), scratch.path().join("state/seen.json"));
    let session = root.join("one");
    fs::create_dir_all(&session).unwrap();
    fs::create_dir(seen.parent().unwrap()).unwrap();
    fs::write(session.join("events.jsonl"), "{}\n").unwrap();
    let mut source =
        Source::new(Filter { homes: vec![of(&root)], seen: Some(seen.clone()), ..Filter::default() }).unwrap();
    for path in [&*root, seen.parent().unwrap()] {
        assert!(source.watch(path).is_ok() && source.folders.contains_key(path));
    }
    assert!(matches!(source.watch_session(&one(), &session), Ok(true)));
    (scratch, session, source)
}

fn one() -> Key {
    Key::new(HomeId::default(), "one")
}

fn hints(source: &mut Source) -> Hints {
    assert!(source.read());
    source.look_for_missing();
    std::mem::take(&mut source.hints)
}

#[test]
fn readers_cause_no_events() {
    let (scratch, session, mut source) = watched();
    for _ in 0..100 {
        assert_eq!(fs::read_dir(scratch.path().join("sessions")).unwrap().count(), 1);
        assert_eq!(fs::read_dir(&session).unwrap().count(), 1);
        assert_eq!(fs::read(session.join("events.jsonl")).unwrap(), b"{}\n");
    }
    let mut events = [MaybeUninit::uninit(); 512];
    let mut events = Reader::new(&*source.inotify, &mut events);
    assert_eq!(events.next().err(), Some(Errno::AGAIN), "not even an event to drop");
    assert!(!hints(&mut source).any());
}

#[test]
fn writes_creations_and_removals_become_hints() {
    let (scratch, session, mut source) = watched();
    let root = session.parent().unwrap().to_owned();
    let key = |id: &str| [Key::new(HomeId::default(), id)].into();
    let log = session.join("events.jsonl");
    io::Write::write_all(&mut fs::File::options().append(true).open(&log).unwrap(), b"{}\n").unwrap();
    let received = hints(&mut source);
    assert!(received.folders == key("one") && received.homes.is_empty() && !received.all, "{received:?}");
    for (name, is_relevant) in [("inuse.17.lock", true), ("workspace.yaml", true), ("inuse.17.hold", false)] {
        fs::write(session.join(name), "x").unwrap();
        assert_eq!(hints(&mut source).any(), is_relevant, "{name}");
    }
    fs::create_dir(root.join("two")).unwrap();
    let received = hints(&mut source);
    assert!(received.folders == key("two") && received.homes.is_empty() && received.gone.is_empty(), "{received:?}");
    fs::write(scratch.path().join("state/other"), "x").unwrap();
    assert!(!hints(&mut source).any());
    fs::rename(scratch.path().join("state/other"), scratch.path().join("state/seen.json")).unwrap();
    assert!(hints(&mut source).seen);
    fs::remove_dir_all(&session).unwrap();
    let received = hints(&mut source);
    assert!(received.gone.contains(&session) && received.folders == key("one"), "{received:?}");
    assert!(source.held.is_empty() && source.places.len() == 2, "its watch went with it");
    fs::create_dir(&session).unwrap();
    assert!(source.watch_session(&one(), &session).is_ok());
    hints(&mut source);
    fs::write(&log, "{}\n").unwrap();
    assert_eq!(hints(&mut source).folders, key("one"));
}

#[test]
fn a_new_folder_of_logs_is_found_at_the_next_event() {
    let scratch = tempfile::tempdir().unwrap();
    let home = scratch.path().canonicalize().unwrap();
    let (root, logs) = (home.join("session-state"), home.join("logs"));
    fs::create_dir(&root).unwrap();
    let mut source = Source::new(Filter { homes: vec![of(&root)], ..Filter::default() }).unwrap();
    let kept = BTreeSet::new();
    assert!(source.watch_routes(&[(&TEST_PLAN, &root)], &[], &kept).is_empty() && !source.folders.contains_key(&*logs));
    // Other entries of the home do not even cause events.
    for name in ["session-store.db-journal", "logs"] {
        fs::create_dir(home.join(name)).unwrap();
        let mut events = [MaybeUninit::uninit(); 512];
        assert_eq!(Reader::new(&*source.inotify, &mut events).next().err(), Some(Errno::AGAIN), "{name}");
    }
    fs::write(home.join("made"), "{}").unwrap();
    fs::rename(home.join("made"), home.join("open-sessions-state.json")).unwrap();
    assert!(hints(&mut source).routes);
    assert!(source.watch_routes(&[(&TEST_PLAN, &root)], &[], &kept).is_empty() && source.folders.contains_key(&*logs));
    fs::write(logs.join("process-1700000000000-17.log"), "x").unwrap();
    assert_eq!(hints(&mut source).logs, [(HomeId(0), 17)].into());
    fs::create_dir(root.join("one")).unwrap();
    assert!(!hints(&mut source).routes, "once found, they are not checked for");
}

/// It may be made after the last line of a log, with nothing that follows.
#[test]
fn a_new_folder_of_locks_is_seen_at_once_with_what_is_in_it_already() {
    let scratch = tempfile::tempdir().unwrap();
    let home = scratch.path().canonicalize().unwrap();
    let (root, locks) = (home.join("sessions"), home.join("locks"));
    fs::create_dir(&root).unwrap();
    let of = Home { plan: &TEST_FILES, names: vec![root.clone()] };
    let mut source = Source::new(Filter { homes: vec![of], ..Filter::default() }).unwrap();
    let kept = BTreeSet::new();
    let follow = |source: &mut Source| {
        assert!(source.watch_routes(&[(&TEST_FILES, &root)], &[], &kept).is_empty());
        source.folders.contains_key(&*locks)
    };
    let key = |id: &str| [Key::new(HomeId::default(), id)].into();
    assert!(!follow(&mut source));
    fs::write(home.join("other"), "").unwrap();
    assert!(!hints(&mut source).any());
    fs::create_dir(&locks).unwrap();
    fs::write(locks.join("a.lock"), "").unwrap();
    assert!(hints(&mut source).routes);
    assert!(follow(&mut source));
    assert_eq!(hints(&mut source).folders, key("a"), "it was there before the watch");
    fs::write(locks.join("b.lock"), "").unwrap();
    assert_eq!(hints(&mut source).folders, key("b"));
    assert!(follow(&mut source) && !hints(&mut source).any(), "once is enough");
    // What else is in the home causes events only until then.
    fs::write(home.join("one more"), "").unwrap();
    let mut events = [MaybeUninit::uninit(); 512];
    assert_eq!(Reader::new(&*source.inotify, &mut events).next().err(), Some(Errno::AGAIN));
}

#[test]
fn renewed_watches_are_on_the_current_folders() {
    let (scratch, session, mut source) = watched();
    fs::rename(&session, scratch.path().join("away")).unwrap();
    fs::create_dir(&session).unwrap();
    hints(&mut source); // as if they had been lost
    source.renew();
    assert!(matches!(source.watch_session(&one(), &session), Ok(true)));
    assert_eq!((source.folders.len(), source.held.len(), source.places.len()), (2, 1, 3));
    hints(&mut source);
    fs::write(session.join("events.jsonl"), "{}\n").unwrap();
    assert!(hints(&mut source).any());
    fs::write(scratch.path().join("away/events.jsonl"), "{}\n").unwrap();
    assert!(!hints(&mut source).any());
    source.forget(session.parent().unwrap());
    assert_eq!((source.folders.len(), source.held.len(), source.places.len()), (1, 0, 1));
}

#[test]
fn a_folder_with_two_names_is_watched_by_both() {
    let (scratch, session, mut source) = watched();
    let link = scratch.path().join("link");
    std::os::unix::fs::symlink(&session, &link).unwrap();
    assert!(source.watch(&link).is_ok());
    assert_eq!(source.places.len(), 3);
    source.unwatch(&link);
    fs::write(session.join("events.jsonl"), "{}\n").unwrap();
    assert!(hints(&mut source).any(), "it is still watched by its other name");
    source.forget(&session);
    fs::write(session.join("events.jsonl"), "{}\n").unwrap();
    assert!(!hints(&mut source).any());
    assert_eq!((source.folders.len(), source.held.len(), source.places.len()), (2, 0, 2));
}

#[test]
fn a_home_that_is_replaced_while_it_is_being_watched_is_watched_or_reported() {
    let scratch = tempfile::tempdir().unwrap();
    let scratch = scratch.path().canonicalize().unwrap();
    let [home, away, between] = ["home", "away", "between"].map(|name| scratch.join(name));
    let root = home.join("session-state");
    for home in [&home, &away] {
        fs::create_dir_all(home.join("session-state")).unwrap();
    }
    let swap = || {
        for (from, to) in [(&home, &between), (&away, &home), (&between, &away)] {
            fs::rename(from, to).unwrap();
        }
    };
    let mut source = Source::new(Filter { homes: vec![of(&root)], ..Filter::default() }).unwrap();
    let kept = BTreeSet::new();
    for round in 0..1000_u32 {
        let refused = std::thread::scope(|scope| {
            scope.spawn(|| (0..round % 16).for_each(|_| swap()));
            source.unwatch_routes(&kept);
            source.watch_routes(&[(&TEST_PLAN, &root)], &[], &kept)
        });
        if !hints(&mut source).routes && refused.is_empty() {
            fs::create_dir(root.join(round.to_string())).unwrap();
            assert!(hints(&mut source).any(), "round {round}: the sessions of a former home are watched");
            swap();
            assert!(hints(&mut source).routes, "round {round}: the last replacement was missed");
        }
    }
}

/// Sub-agents write beside the log of their session.
#[test]
fn what_changes_beside_a_shared_file_is_its_sessions() {
    let scratch = tempfile::tempdir().unwrap();
    let root = scratch.path().join("sessions");
    let folder = root.join("2026/11");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("a.json"), "{}").unwrap();
    let home = Home { plan: &TEST_FILES, names: vec![root] };
    let mut source = Source::new(Filter { homes: vec![home], ..Filter::default() }).unwrap();
    let key = Key::new(HomeId::default(), "a");
    assert!(matches!(source.watch_session(&key, &folder.join("a.json")), Ok(true)));
    let beside = [folder.join("a"), folder.join("a/agents")];
    assert!(!source.watch_beside(&key, &beside), "they are not there yet");
    fs::create_dir(&beside[0]).unwrap();
    assert_eq!(hints(&mut source).folders, [key.clone()].into());
    assert!(source.watch_beside(&key, &beside));
    fs::create_dir(&beside[1]).unwrap();
    assert_eq!(hints(&mut source).folders, [key.clone()].into());
    assert!(source.watch_beside(&key, &beside) && !source.watch_beside(&key, &beside));
    hints(&mut source);
    fs::write(beside[1].join("b.json"), "{}").unwrap();
    assert_eq!(hints(&mut source).folders, [key.clone()].into());
    source.mark_old(&key);
    fs::write(beside[1].join("b.json"), "{}").unwrap();
    assert!(!hints(&mut source).any());
}

#[test]
fn a_program_tells_once_that_it_was_opened_and_is_watched_through_its_links() {
    let (scratch, _, mut source) = watched();
    let at = |name: &str| scratch.path().join(name);
    fs::create_dir(at("bin")).unwrap();
    for program in ["claude-1", "claude-2"] {
        fs::write(at(program), "x").unwrap();
    }
    std::os::unix::fs::symlink("../claude-1", at("bin/claude")).unwrap();
    let programs = [at("bin/claude"), at("missing")];
    assert!(source.watch_programs(&programs) && !source.watch_programs(&programs), "it is new once");
    assert!(!hints(&mut source).any());
    let is_told = |source: &mut Source| std::mem::take(&mut source.hints).started;
    for is_first in [true, false] {
        for _ in 0..10 {
            fs::read(at("bin/claude")).unwrap();
        }
        assert!(source.read());
        assert_eq!(is_told(&mut source), is_first, "once until it is watched again");
    }
    assert!(source.watch_programs(&programs) && !is_told(&mut source));

    // An update.
    std::os::unix::fs::symlink("../claude-2", at("bin/new")).unwrap();
    fs::rename(at("bin/new"), at("bin/claude")).unwrap();
    assert!(source.read() && is_told(&mut source) && source.watch_programs(&programs));
    fs::read(at("claude-1")).unwrap();
    assert!(source.read() && !is_told(&mut source), "nothing leads to it any more");
    fs::rename(at("claude-1"), at("claude-2")).unwrap();
    assert!(source.read() && is_told(&mut source), "another file in its place");

    // It was opened, and is watched again before that was read.
    source.watch_programs(&programs);
    fs::read(at("bin/claude")).unwrap();
    assert!(source.watch_programs(&programs), "it may have been started unseen");
    assert!(source.read());
    source.watch_programs(&[]);
    fs::read(at("bin/claude")).unwrap();
    source.hints = Hints::default();
    assert!(source.read() && !is_told(&mut source) && source.programs.is_empty());
}

/// Nothing has been written of it, and nothing is there to be watched.
#[test]
fn case_865_a_session_whose_folder_is_not_there_yet_is_not_looked_at_again_and_again() {
    let scratch = tempfile::tempdir().unwrap();
    let root = scratch.path().canonicalize().unwrap().join("sessions");
    fs::create_dir(&root).unwrap();
    let of = Home { plan: &TEST_FILES, names: vec![root.clone()] };
    let mut source = Source::new(Filter { homes: vec![of], ..Filter::default() }).unwrap();
    let (folder, log) = (root.join("2026/11"), root.join("2026/11/one.json"));
    assert!(matches!(source.watch_session(&one(), &log), Err(Refusal::Gone)));
    let refused = Some(NoFileEvents::Refused);
    assert_eq!(source.no_file_events(&one(), &log), refused, "nothing reports that the folder appears");
    assert!(source.watch(&root).is_ok());
    assert_eq!((source.no_file_events(&one(), &log), source.lacks_watch(&one())), (None, true));
    fs::create_dir_all(&folder).unwrap();
    assert_eq!(hints(&mut source).homes, [HomeId::default()].into());
    assert_eq!(source.no_file_events(&one(), &log), refused, "it could be watched, and is not");
    assert!(matches!(source.watch_session(&one(), &log), Ok(true)));
    assert_eq!((source.no_file_events(&one(), &log), source.lacks_watch(&one())), (None, false));
    fs::write(&log, "{}\n").unwrap();
    assert_eq!(hints(&mut source).folders, [one()].into());
}

#[test]
fn case_864_a_socket_that_is_removed_or_replaced_is_told_and_nothing_else_of_its_folder() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path().canonicalize().unwrap();
    let socket = folder.join("a.sock");
    let mut source = Source::new(Filter { sockets: vec![socket.clone()], ..Filter::default() }).unwrap();
    assert!(source.watch_entries(&folder).is_ok());
    fs::write(&socket, "").unwrap();
    fs::write(folder.join("other"), "").unwrap();
    fs::remove_file(folder.join("other")).unwrap();
    assert!(!hints(&mut source).any(), "it is there, and others do not matter");
    fs::write(folder.join("new"), "").unwrap();
    fs::rename(folder.join("new"), &socket).unwrap();
    assert!(hints(&mut source).sockets);
    fs::remove_file(&socket).unwrap();
    assert!(hints(&mut source).sockets && !hints(&mut source).any());
}
