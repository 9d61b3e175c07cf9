//! A file system that blocks whoever touches it, as one does whose server has stopped.

use super::*;
use pilotlight_agents::home::Home;
use pilotlight_core::session::{HomeId, Key};
use pilotlight_core::time::Time;
use std::path::PathBuf;

/// Those that block now, each with whether the thread waits for it.
static BLOCKED: (Mutex<BTreeMap<PathBuf, bool>>, Condvar) = (Mutex::new(BTreeMap::new()), Condvar::new());

pub(crate) fn block(path: &Path) {
    BLOCKED.0.lock().unwrap().insert(path.to_owned(), false);
}

pub(crate) fn release(path: &Path) {
    BLOCKED.0.lock().unwrap().remove(path);
    BLOCKED.1.notify_all();
}

fn ask(path: &Path) {
    let mut blocked = BLOCKED.0.lock().unwrap();
    if let Some(is_waited_for) = blocked.get_mut(path) {
        *is_waited_for = true;
        BLOCKED.1.notify_all();
    }
    drop(BLOCKED.1.wait_while(blocked, |blocked| blocked.contains_key(path)).unwrap());
}

/// Waits until the thread waits for it.
fn wait_blocked(path: &Path) {
    let blocked = BLOCKED.0.lock().unwrap();
    drop(BLOCKED.1.wait_while(blocked, |blocked| !blocked[path]).unwrap());
}

/// Waits until what this session is on has answered, however busy the machine is.
async fn wait_answered(file_systems: &mut FileSystems, key: &Key) {
    while !file_systems.answers_for(key) {
        file_systems.answered().await;
        file_systems.take_answers();
    }
}

fn moment(seconds: i64) -> Moment {
    Moment { wall: Time(1_000_000_000 + seconds * 1000), awake: Time(seconds * 1000) }
}

/// A home on each of these.
pub(crate) fn on(mounts: &[&str]) -> FileSystems {
    let mut file_systems = FileSystems::new(ask);
    let mounts = mounts.iter().enumerate();
    file_systems.homes = mounts.map(|(home, path)| (HomeId(home), mount(home, path))).collect();
    file_systems
}

fn mount(home: usize, path: &str) -> Mount {
    Mount { id: home as u64, path: path.into(), kind: "FUSE" }
}

#[tokio::test]
async fn case_179_one_that_does_not_answer_is_waited_for_once_and_said_after_its_patience() {
    let mut file_systems = on(&["/one/hangs"]);
    let (path, key): (_, Key) = (Path::new("/one/hangs"), Key::new(HomeId::default(), "a"));
    file_systems.ask(moment(0));
    wait_answered(&mut file_systems, &key).await;
    assert!(file_systems.wake_at(Time(0)).is_none());
    block(path);
    file_systems.states.clear(); // as if its answer were old
    file_systems.ask(moment(10));
    assert!(!file_systems.answers_for(&key) && file_systems.no_answer(&key, Time(11_999)).is_none());
    assert_eq!(file_systems.wake_at(Time(10_000)), Some(Time(12_000)));
    let began = Instant::now();
    for second in 11..1000 {
        file_systems.ask(moment(second));
    }
    assert!(began.elapsed() < WAIT * 500, "it is not waited for again");
    let no_answer = NoAnswer { file_system: "FUSE".into(), since: moment(10), is_behind: false };
    assert_eq!(file_systems.no_answer(&key, Time(12_000)), Some(no_answer));
    assert_eq!(file_systems.silent_homes(Time(12_000)).count(), 1);
    assert_eq!(file_systems.wake_at(Time(12_000)), None, "it is said, and nothing wakes for it");
    release(path);
    wait_answered(&mut file_systems, &key).await;
    assert!(file_systems.no_answer(&key, Time(1_000_000)).is_none());
}

#[tokio::test]
async fn case_179_one_thread_asks_them_all_and_those_behind_a_silent_one_say_so() {
    let mut file_systems = on(&["/two/hangs", "/two/answers"]);
    let (silent, behind): (Key, Key) = (Key::new(HomeId::default(), "a"), Key::new(HomeId(1), "b"));
    block(Path::new("/two/hangs"));
    file_systems.homes.remove(&HomeId(1));
    file_systems.ask(moment(0));
    wait_blocked(Path::new("/two/hangs"));
    file_systems.homes.insert(HomeId(1), mount(1, "/two/answers"));
    file_systems.ask(moment(1));
    assert!(!file_systems.answers_for(&silent) && !file_systems.answers_for(&behind));
    let is_behind = |key| file_systems.no_answer(key, Time(9000)).unwrap().is_behind;
    assert_eq!((is_behind(&silent), is_behind(&behind)), (false, true));
    release(Path::new("/two/hangs"));
    wait_answered(&mut file_systems, &silent).await;
    wait_answered(&mut file_systems, &behind).await;
}

/// Unmounted without ever answering (`umount -l`), or exchanged for another at the same place: it keeps its thread, and
/// the others are asked by another one.
#[tokio::test]
async fn case_202_one_that_is_unmounted_without_an_answer_holds_up_no_other() {
    let mut file_systems = on(&["/three/hangs", "/three/answers"]);
    let (path, other): (_, Key) = (Path::new("/three/hangs"), Key::new(HomeId(1), "b"));
    for round in 0..LEFT_MAX {
        block(path);
        file_systems.homes.insert(HomeId(0), Mount { id: 10 + round as u64, ..mount(0, "/three/hangs") });
        file_systems.states.clear(); // as if all answers were old
        file_systems.ask(moment(0));
        wait_blocked(path);
        file_systems.homes.remove(&HomeId(0));
        file_systems.forget_unused();
        wait_answered(&mut file_systems, &other).await;
        assert_eq!(file_systems.asker.shared.lock().left, round + 1);
    }
    // There is an end to that.
    block(path);
    file_systems.homes.insert(HomeId(0), mount(0, "/three/hangs"));
    file_systems.ask(moment(1));
    wait_blocked(path);
    file_systems.homes.remove(&HomeId(0));
    file_systems.forget_unused();
    assert_eq!(file_systems.asker.shared.lock().left, LEFT_MAX);
    release(path);
    wait_answered(&mut file_systems, &other).await;
    while file_systems.asker.shared.lock().left > 0 {
        tokio::task::yield_now().await;
    }
    assert!(!file_systems.asker.take().iter().any(|(mount, _)| *mount >= 10), "an answer that nobody waits for");
}

#[test]
fn case_179_where_nothing_is_on_such_a_file_system_there_is_no_thread() {
    let mut file_systems = FileSystems::default();
    let scratch = tempfile::tempdir().unwrap();
    file_systems.reload(&Homes::new(&[Home::at(scratch.path())], Time(0)));
    file_systems.ask(moment(0));
    assert!(file_systems.is_empty() && file_systems.asker.jobs.is_none() && file_systems.wake_at(Time(0)).is_none());
    assert!(file_systems.answers_for(&Key::new(HomeId::default(), "a")));
}
