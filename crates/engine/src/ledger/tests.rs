use super::*;
use std::os::unix::fs::{PermissionsExt, symlink};

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Count(u32);
impl Section for Count {
    const NAME: &'static str = "count";
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Word(String);
impl Section for Word {
    const NAME: &'static str = "word";
}

const ID: &str = "36535f61-5c7b-4f09-a70b-2f8aed972800";

struct Fixture {
    scratch: tempfile::TempDir,
}

impl Fixture {
    fn new() -> Self {
        let fixture = Self { scratch: tempfile::tempdir().unwrap() };
        fs::create_dir_all(fixture.session()).unwrap();
        fixture
    }

    fn home(&self) -> PathBuf {
        self.scratch.path().join("home")
    }

    fn session(&self) -> PathBuf {
        self.home().join("session-state").join(ID)
    }

    fn page(&self) -> Page {
        Ledger::new(Some(&self.scratch.path().join("state"))).page(&Home::at(&self.home()), ID)
    }

    fn file(&self, ending: &str) -> PathBuf {
        self.scratch.path().join("state").join(FOLDER).join(self.page().key()).with_extension(ending)
    }
}

#[test]
fn sections_are_independent_and_kept_by_home_and_id() {
    let fixture = Fixture::new();
    let page = fixture.page();
    assert_eq!(page.read::<Count>(), None);
    let hold = page.try_lock("test").unwrap();
    hold.write(&Count(2)).unwrap();
    hold.write(&Word("two".into())).unwrap();
    assert_eq!((page.read(), page.read()), (Some(Count(2)), Some(Word("two".into()))));
    hold.remove::<Count>().unwrap();
    assert_eq!((page.read::<Count>(), page.read()), (None, Some(Word("two".into()))));
    let ledger = Ledger::new(Some(&fixture.scratch.path().join("state")));
    assert_eq!(ledger.page(&Home::at(&fixture.home()), "other").read::<Word>(), None);
    assert_eq!(ledger.page(&Home::at(&fixture.scratch.path().join("copy")), ID).read::<Word>(), None);
    let link = fixture.scratch.path().join("link");
    symlink(fixture.home(), &link).unwrap();
    assert_eq!(ledger.page(&Home::at(&link), ID).read(), Some(Word("two".into())), "the same home by another name");
    let mode = fs::metadata(fixture.file("lock")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn only_one_process_at_a_time_holds_the_lock() {
    let fixture = Fixture::new();
    let hold = fixture.page().try_lock("reconnect").unwrap();
    let Err(LockError::Taken(who)) = fixture.page().try_lock("stop") else { panic!("it is locked") };
    assert_eq!(who, Some(Note::of_this_process("reconnect")));
    drop(hold);
    assert!(fixture.page().try_lock("stop").is_ok());
    let nowhere = Ledger::default().page(&Home::at(&fixture.home()), ID);
    assert!(matches!(nowhere.try_lock("stop"), Err(LockError::Unknown(None, _))));
}

/// Case 38: otherwise a command that only looks would refuse the order of another one.
#[test]
fn whether_recoveries_can_be_counted_is_found_out_without_the_lock() {
    let fixture = Fixture::new();
    fixture.page().check_countable().unwrap();
    assert!(!fixture.file("lock").exists());
    let _hold = fixture.page().try_lock("reconnect").unwrap();
    fixture.page().check_countable().unwrap();
    assert_eq!(
        Ledger::default().page(&Home::at(&fixture.home()), ID).check_countable().unwrap_err(),
        "there is no state folder"
    );
    fs::create_dir(fixture.file("json")).unwrap();
    assert!(fixture.page().check_countable().unwrap_err().ends_with("is a folder"));
}

/// Puts something in a lock file's place.
type Spoil = Box<dyn Fn(&Path)>;

/// Whatever a lock file contains, it locks; where something else is in its place, nothing is done, and it stays as it was.
#[test]
fn a_broken_lock_file_locks_and_what_is_none_is_named() {
    let link_to = |target: &Path| {
        let target = target.to_owned();
        Box::new(move |path: &Path| symlink(&target, path).unwrap()) as Spoil
    };
    let fixture = Fixture::new();
    let victim = fixture.scratch.path().join("victim");
    fs::write(&victim, "not ours").unwrap();
    let spoilt: Vec<(bool, Spoil)> = vec![
        (true, Box::new(|path| fs::write(path, [0xff; 4096]).unwrap())),
        (true, Box::new(|path| fs::write(path, "version 9: locked for ever").unwrap())),
        (false, Box::new(|path| fs::create_dir(path).unwrap())),
        (false, Box::new(pilotlight_system::process::testing::make_pipe)),
        (false, link_to(&victim)),
        (false, link_to(Path::new("/dev/tty"))),
        (false, link_to(Path::new("nowhere"))),
    ];
    let path = fixture.file("lock");
    for (n, (locks, spoil)) in spoilt.iter().enumerate() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let _ = fs::remove_file(&path);
        let _ = fs::remove_dir(&path);
        spoil(&path);
        match fixture.page().try_lock("one") {
            Ok(_guard) if *locks => {
                assert!(matches!(fixture.page().try_lock("two"), Err(LockError::Taken(_))), "{n}");
            }
            Err(LockError::Unknown(named, _)) if !*locks => assert_eq!(named.as_deref(), Some(&*path), "{n}"),
            other => panic!("{n}: {other:?}"),
        }
    }
    assert_eq!(fs::read_to_string(victim).unwrap(), "not ours");
    // The folder of the pages cannot be created.
    let state = fixture.scratch.path().join("state");
    fs::remove_dir_all(&state).unwrap();
    fs::write(&state, "").unwrap();
    assert!(matches!(fixture.page().try_lock("one"), Err(LockError::Unknown(Some(_), _))));
}

#[test]
fn a_page_that_is_broken_or_of_another_version_counts_as_empty_and_is_replaced() {
    let fixture = Fixture::new();
    let hold = fixture.page().try_lock("test").unwrap();
    let other = |version: u32, id: &str| format!(r#"{{"version":{version},"id":"{id}","count":3}}"#);
    let broken = ["", "[]", "\0\0\0", r#"{"version":1"#, r#"{"count":3}"#];
    let broken = broken.map(str::to_owned).into_iter().chain([other(2, ID), other(0, ID), other(1, "another")]);
    for text in broken {
        fs::write(fixture.file("json"), &text).unwrap();
        assert_eq!(fixture.page().read::<Count>(), None, "{text}");
        hold.write(&Count(5)).unwrap();
        assert_eq!(fixture.page().read(), Some(Count(5)), "{text}");
    }
    fs::write(fixture.file("json"), other(1, ID)).unwrap();
    assert_eq!(fixture.page().read(), Some(Count(3)));
    // A section of another type is ignored; the others can be read.
    fs::write(fixture.file("json"), format!(r#"{{"version":1,"id":"{ID}","count":"three","word":"w","more":[1]}}"#))
        .unwrap();
    assert_eq!((fixture.page().read::<Count>(), fixture.page().read()), (None, Some(Word("w".into()))));
    hold.write(&Count(6)).unwrap();
    assert!(fs::read_to_string(fixture.file("json")).unwrap().contains(r#""more":[1]"#), "unknown sections are kept");
}

#[test]
fn only_old_unlocked_files_are_swept() {
    let fixture = Fixture::new();
    let hold = fixture.page().try_lock("test").unwrap();
    let folder = fixture.file("lock").parent().unwrap().to_owned();
    for n in 0..FILES_MAX {
        File::create(folder.join(format!("{n:016x}.lock"))).unwrap();
    }
    let old = |name: &str| {
        let file = File::create(folder.join(name)).unwrap();
        file.set_modified(std::time::UNIX_EPOCH).unwrap();
        file
    };
    let (_free, _page, held) = (old("old.lock"), old("old.json"), old("held.lock"));
    held.lock().unwrap();
    hold.write(&Count(1)).unwrap();
    let exists = |name: &str| folder.join(name).exists();
    assert_eq!((exists("old.lock"), exists("old.json"), exists("held.lock")), (false, false, true));
    assert!(exists(&format!("{:016x}.lock", 1)) && fixture.file("lock").exists());
}

/// A lock on a file that a sweep removed between opening and locking does not count.
#[test]
fn a_lock_whose_file_is_gone_locks_nothing() {
    let fixture = Fixture::new();
    let path = fixture.file("lock");
    let first = lock_file(&path).unwrap();
    fs::remove_file(&path).unwrap();
    assert!(!is_still_at(&first, &path).unwrap());
    let second = lock_file(&path).unwrap();
    assert!(is_still_at(&second, &path).unwrap());
    assert!(matches!(lock_file(&path), Err(TryLockError::WouldBlock)));
}
