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

struct World {
    scratch: tempfile::TempDir,
}

impl World {
    fn new() -> Self {
        let world = Self { scratch: tempfile::tempdir().unwrap() };
        fs::create_dir_all(world.session()).unwrap();
        world
    }

    fn home(&self) -> PathBuf {
        self.scratch.path().join("home")
    }

    fn session(&self) -> PathBuf {
        self.home().join("session-state").join(ID)
    }

    fn page(&self) -> Page {
        Ledger::new(Some(&self.scratch.path().join("state"))).page(&self.home(), ID)
    }

    fn file(&self, ending: &str) -> PathBuf {
        self.scratch.path().join("state").join(FOLDER).join(self.page().key()).with_extension(ending)
    }
}

#[test]
fn sections_are_kept_beside_each_other_and_by_home_and_id() {
    let world = World::new();
    let page = world.page();
    assert_eq!(page.read::<Count>(), None);
    let hold = page.try_lock("test").unwrap();
    hold.write(&Count(2)).unwrap();
    hold.write(&Word("two".into())).unwrap();
    assert_eq!((page.read(), page.read()), (Some(Count(2)), Some(Word("two".into()))));
    hold.remove::<Count>().unwrap();
    assert_eq!((page.read::<Count>(), page.read()), (None, Some(Word("two".into()))));
    let ledger = Ledger::new(Some(&world.scratch.path().join("state")));
    assert_eq!(ledger.page(&world.home(), "other").read::<Word>(), None);
    assert_eq!(ledger.page(&world.scratch.path().join("copy"), ID).read::<Word>(), None);
    let link = world.scratch.path().join("link");
    symlink(world.home(), &link).unwrap();
    assert_eq!(ledger.page(&link, ID).read(), Some(Word("two".into())), "the same home by another name");
    let mode = fs::metadata(world.file("lock")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn one_at_a_time_and_the_next_when_that_is_over() {
    let world = World::new();
    let hold = world.page().try_lock("reconnect").unwrap();
    let Err(Locked::ByAnother(who)) = world.page().try_lock("stop") else { panic!("it is locked") };
    assert_eq!(who, format!("reconnect by process {}", std::process::id()));
    drop(hold);
    let hold = world.page().try_lock("stop").unwrap();
    // Whatever environment another process has its state folder from, it is the same session.
    let elsewhere = Ledger::new(Some(&world.scratch.path().join("elsewhere"))).page(&world.home(), ID);
    assert!(matches!(elsewhere.try_lock("stop"), Err(Locked::ByAnother(_))));
    let nowhere = Ledger::default().page(&world.home(), ID);
    assert!(matches!(nowhere.try_lock("stop"), Err(Locked::ByAnother(_))));
    drop(hold);
    drop(nowhere.try_lock("stop").unwrap());
    assert!(elsewhere.try_lock("stop").is_ok());
}

/// Puts something in a lock file's place.
type Spoil = Box<dyn Fn(&Path)>;

/// A lock file that is none is no refusal for ever, and lets no two in.
#[test]
fn a_lock_file_that_is_none_neither_refuses_nor_lets_two_in() {
    let link_to = |target: &Path| {
        let target = target.to_owned();
        Box::new(move |path: &Path| symlink(&target, path).unwrap()) as Spoil
    };
    let world = World::new();
    let victim = world.scratch.path().join("victim");
    fs::write(&victim, "not ours").unwrap();
    let spoilt: Vec<Spoil> = vec![
        Box::new(|path| fs::write(path, [0xff; 4096]).unwrap()),
        Box::new(|path| fs::write(path, "version 9: locked for ever").unwrap()),
        Box::new(|path| fs::create_dir(path).unwrap()),
        Box::new(|path| {
            rustix::fs::mknodat(rustix::fs::CWD, path, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        }),
        Box::new(|path| {
            fs::write(path, "").unwrap();
            fs::set_permissions(path, fs::Permissions::from_mode(0o000)).unwrap();
        }),
        link_to(&victim),
        link_to(Path::new("/dev/tty")),
        link_to(Path::new("nowhere")),
    ];
    for (n, spoil) in spoilt.iter().enumerate() {
        let path = world.file("lock");
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let _ = fs::remove_file(&path);
        let _ = fs::remove_dir(&path);
        spoil(&path);
        let hold = world.page().try_lock("one").unwrap_or_else(|why| panic!("{n}: {why:?}"));
        assert!(matches!(world.page().try_lock("two"), Err(Locked::ByAnother(_))), "{n}");
        hold.write(&Count(7)).unwrap();
        drop(hold);
        // A test that forks at this moment holds the lock, too, until it execs.
        let begun = std::time::Instant::now();
        while world.page().try_lock("three").is_err() {
            assert!(begun.elapsed() < Duration::from_secs(30), "{n}");
            std::thread::park_timeout(Duration::from_millis(5));
        }
    }
    assert_eq!(fs::read_to_string(victim).unwrap(), "not ours");
    // Not even the folder of the pages need be there to be made.
    let state = world.scratch.path().join("state");
    fs::remove_dir_all(&state).unwrap();
    fs::write(&state, "").unwrap();
    let hold = world.page().try_lock("one").unwrap();
    assert!(hold.write(&Count(1)).is_err());
    assert!(matches!(world.page().try_lock("two"), Err(Locked::ByAnother(_))));
}

#[test]
fn a_page_that_is_broken_or_of_another_version_counts_as_empty_and_is_replaced() {
    let world = World::new();
    let hold = world.page().try_lock("test").unwrap();
    let other = |version: u32, id: &str| format!(r#"{{"version":{version},"id":"{id}","count":3}}"#);
    let broken = ["", "[]", "\0\0\0", r#"{"version":1"#, r#"{"count":3}"#];
    let broken = broken.map(str::to_owned).into_iter().chain([other(2, ID), other(0, ID), other(1, "another")]);
    for text in broken {
        fs::write(world.file("json"), &text).unwrap();
        assert_eq!(world.page().read::<Count>(), None, "{text}");
        hold.write(&Count(5)).unwrap();
        assert_eq!(world.page().read(), Some(Count(5)), "{text}");
    }
    fs::write(world.file("json"), other(1, ID)).unwrap();
    assert_eq!(world.page().read(), Some(Count(3)));
    // A section of another form is not there; the others are.
    fs::write(world.file("json"), format!(r#"{{"version":1,"id":"{ID}","count":"three","word":"w","more":[1]}}"#))
        .unwrap();
    assert_eq!((world.page().read::<Count>(), world.page().read()), (None, Some(Word("w".into()))));
    hold.write(&Count(6)).unwrap();
    assert!(fs::read_to_string(world.file("json")).unwrap().contains(r#""more":[1]"#), "what is not known is kept");
}

#[test]
fn only_what_is_old_and_free_is_swept() {
    let world = World::new();
    let hold = world.page().try_lock("test").unwrap();
    let folder = world.file("lock").parent().unwrap().to_owned();
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
    let stands = |name: &str| folder.join(name).exists();
    assert_eq!((stands("old.lock"), stands("old.json"), stands("held.lock")), (false, false, true));
    assert!(stands(&format!("{:016x}.lock", 1)) && world.file("lock").exists());
}

/// What a sweep removes between opening and locking is no lock.
#[test]
fn a_lock_whose_file_is_gone_locks_nothing() {
    let world = World::new();
    let path = world.file("lock");
    let first = lock_file(&path).unwrap();
    fs::remove_file(&path).unwrap();
    assert!(!stands(&first, &path).unwrap());
    let second = lock_file(&path).unwrap();
    assert!(stands(&second, &path).unwrap());
    assert!(matches!(lock_file(&path), Err(TryLockError::WouldBlock)));
}
