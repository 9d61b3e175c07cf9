//! The shell here is the one there, with another home.

use super::*;
use pilotlight_system::process::testing::write_program;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A home there, and what runs commands in it.
struct Remote {
    scratch: TempDir,
    way: Way,
}

impl Remote {
    /// `more` are variables and words before `sh`.
    fn new(more: &[&str]) -> Self {
        let scratch = tempfile::tempdir().unwrap();
        let home = format!("HOME={}", scratch.path().display());
        let words = ["env", "-i", &home, "PATH=/usr/bin:/bin"].into_iter().chain(more.iter().copied());
        let way = Way::Command(words.map(str::to_owned).collect());
        Self { scratch, way }
    }

    fn own(&self) -> PathBuf {
        self.scratch.path().join(".local/bin/pilotlight")
    }

    /// What is in the folder of the program.
    fn files(&self) -> Vec<String> {
        let entries = fs::read_dir(self.scratch.path().join(".local/bin")).into_iter().flatten().flatten();
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
    }

    fn copy(&self, program: &[u8]) -> Result<String, String> {
        wait(async { RemoteShell::start(self.way.clone()).await?.0.copy(program, |_| {}).await })
    }

    fn look(&self) -> Result<RemoteInfo, String> {
        wait(async { Ok(RemoteShell::start(self.way.clone()).await?.1) })
    }
}

fn wait<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

/// A Pilotlight of this version and schema, with some bytes more.
fn program(version: &str, schema: u32, more: usize) -> Vec<u8> {
    let hello = format!(r#"{{"pilotlight":{{"version":"{version}","schema":{schema},"now":0}}}}"#);
    let script = format!("#!/bin/sh\n[ \"$1\" = serve ] && echo '{hello}' || echo 'pilotlight {version}'\nexit\n");
    [script.into_bytes(), vec![b'#'; more]].concat()
}

#[test]
fn case_424_a_program_is_copied_found_replaced_and_removed() {
    let remote = Remote::new(&[]);
    let info = remote.look().unwrap();
    assert!(info.is_like_here() && info.programs.is_empty() && !info.is_taken, "{info:?}");
    assert_eq!(Path::new(&info.own_path()), remote.own());
    let mut sent = 0;
    let big = program("0.9.0", SCHEMA, 1 << 20);
    let sum =
        wait(async { RemoteShell::start(remote.way.clone()).await.unwrap().0.copy(&big, |bytes| sent = bytes).await });
    let (sum, info) = (sum.unwrap(), remote.look().unwrap());
    assert_eq!((sent, fs::read(remote.own()).unwrap() == big), (big.len(), true));
    let found = RemoteProgram { path: info.own_path(), version: "0.9.0".into(), is_understood: true };
    assert_eq!(info.usable(), Some(&found));
    assert_eq!(remote.files(), ["pilotlight"]);

    // Some end their line with a space; a machine may have none.
    let bin = remote.scratch.path().join("bin");
    write_program(&bin.join("cksum"), b"#!/bin/sh\n/usr/bin/cksum | tr '\\n' ' '\n");
    let Way::Command(words) = &remote.way else { unreachable!() };
    let path = format!("PATH={}:/usr/bin:/bin", bin.display());
    let other = Way::Command(
        words.iter().map(|word| if word.starts_with("PATH=") { path.clone() } else { word.clone() }).collect(),
    );
    let kept = remote.copy(&program("0.9.5", SCHEMA, 0)).unwrap();
    let remove =
        |way: &Way, sum: &str| wait(async { RemoteShell::start(way.clone()).await.unwrap().0.remove(sum, &[]).await });
    write_program(&bin.join("cksum"), b"#!/bin/sh\nexit 127\n");
    assert_eq!((remove(&other, &kept), remove(&other, " ")), (Ok(Removed::Changed), Ok(Removed::Changed)));
    write_program(&bin.join("cksum"), b"#!/bin/sh\n/usr/bin/cksum | tr '\\n' ' '\n");
    assert_eq!(remove(&other, &kept), Ok(Removed::Now));

    let newer = remote.copy(&program("1.0.0", SCHEMA, 0)).unwrap();
    let remove = |sum: &str| remove(&remote.way, sum);
    assert_eq!(remove(&sum), Ok(Removed::Changed));
    assert!(remote.own().exists());
    assert_eq!(remove(&newer), Ok(Removed::Now));
    assert_eq!(remove(&newer), Ok(Removed::Before));
    assert!(remote.files().is_empty());
}

#[test]
fn case_425_what_is_not_pilotlight_is_never_replaced() {
    let remote = Remote::new(&[]);
    write_program(&remote.own(), b"#!/bin/sh\necho mine\n");
    assert!(remote.look().unwrap().is_taken);
    assert!(remote.copy(&program("1.0.0", SCHEMA, 0)).unwrap_err().contains("left alone"));
    assert_eq!(fs::read(remote.own()).unwrap(), b"#!/bin/sh\necho mine\n");
    // A link is somebody's arrangement, even to Pilotlight.
    let elsewhere = remote.scratch.path().join("checkout/pilotlight");
    write_program(&elsewhere, &program("0.1.0", SCHEMA + 1, 0));
    fs::remove_file(remote.own()).unwrap();
    symlink(&elsewhere, remote.own()).unwrap();
    let info = remote.look().unwrap();
    assert!(info.is_taken && info.usable().is_none() && &*info.programs[0].version == "0.1.0", "{info:?}");
    assert!(remote.copy(&program("1.0.0", SCHEMA, 0)).is_err());
    assert_eq!(fs::read_link(remote.own()).unwrap(), elsewhere);
    fs::remove_file(remote.own()).unwrap();
    fs::create_dir(remote.own()).unwrap();
    assert!(remote.copy(&program("1.0.0", SCHEMA, 0)).is_err());
    assert!(remote.own().is_dir());
}

#[test]
fn case_426_a_copy_that_fails_leaves_nothing() {
    let (remote, good) = (Remote::new(&[]), program("1.0.0", SCHEMA, 0));
    let old = program("0.1.0", SCHEMA + 1, 0);
    write_program(&remote.own(), &old);
    let unchanged = |words: &str, error: Result<String, String>| {
        let error = error.unwrap_err();
        assert!(error.contains(words), "{error}");
        assert!(!error.chars().any(char::is_control), "{error:?}");
        assert_eq!(remote.files(), ["pilotlight"], "{error}");
        assert_eq!(fs::read(remote.own()).unwrap(), old, "{error}");
    };
    unchanged("it does not run there, or is not Pilotlight: ", remote.copy(b"\x7fELF nonsense"));
    unchanged(
        "it does not run there, or is not Pilotlight: no \u{fffd}[31mglibc",
        remote.copy(b"#!/bin/sh\nprintf 'no \\233[31mglibc\\007\\n'\n"),
    );
    unchanged("do not understand each other", remote.copy(&program("9.9.9", SCHEMA + 9, 0)));
    let empty = Remote::new(&[]);
    assert!(empty.copy(b"\x7fELF nonsense").is_err());
    assert_eq!(fs::read_dir(empty.scratch.path()).unwrap().count(), 0, "not even a folder");
    // The connection is cut before everything arrived: the shell sees an end.
    let cut = wait(async {
        let (mut shell, _) = RemoteShell::start(remote.way.clone()).await.unwrap();
        shell.send(format!("copy {} {SCHEMA}\n", good.len() + 1).as_bytes()).await.unwrap();
        assert_eq!(shell.line().await.as_deref(), Some("send"));
        shell.send(&good).await.unwrap();
        shell.give_up().await;
        let said = shell.line().await;
        Err(shell.refused(said).await)
    });
    unchanged("did not arrive whole", cut);
    // The file may not become larger than that, as on a full disk.
    let full = Remote::new(&["sh", "-c", "ulimit -f 8; trap '' XFSZ; exec \"$@\"", "sh"]);
    write_program(&full.own(), &old);
    let error = full.copy(&program("1.0.0", SCHEMA, 1 << 20)).unwrap_err();
    assert!(error.starts_with("it cannot be written there: ") && error.ends_with("; nothing was changed"), "{error}");
    assert_eq!((full.files(), fs::read(full.own()).unwrap()), (vec!["pilotlight".to_owned()], old));
}

/// On a busy machine a warning may come first; and what says nothing is not another version.
#[test]
fn case_501_a_copy_that_warns_is_understood_and_one_that_does_not_answer_says_so() {
    let remote = Remote::new(&[]);
    let serves = |script: &str| {
        format!("#!/bin/sh\n[ \"$1\" = serve ] || {{ echo 'pilotlight 1.0.0'; exit; }}\n{script}\n").into_bytes()
    };
    let hello = format!(r#"{{"pilotlight":{{"version":"1.0.0","schema":{SCHEMA},"now":0}}}}"#);
    remote.copy(&serves(&format!("echo 'a warning' >&2; echo '{hello}'; echo more"))).unwrap();
    assert!(remote.look().unwrap().usable().is_some());
    for (script, said) in [("exit", "it said nothing"), ("echo 'set HOME' >&2; exit 1", "it said: set HOME")] {
        let why = format!(
            "it runs there, but `serve --stdio` does not answer as Pilotlight does ({said}); nothing was changed"
        );
        assert_eq!(remote.copy(&serves(script)), Err(why));
    }
    assert!(remote.look().unwrap().usable().is_some(), "what was there stays");
}

#[test]
fn case_427_no_shell_no_home_and_hostile_words_are_told() {
    let error = |words: &[&str]| {
        let way = Way::Command(words.iter().map(|word| (*word).to_owned()).collect());
        wait(RemoteShell::start(way)).map(|(_, info)| info).unwrap_err()
    };
    let error_of = |script: &str| error(&["/bin/sh", "-c", script]);
    let windows = error_of("echo \"'sh' is not recognized as an internal or external command\" >&2; exit 1");
    assert!(windows.starts_with("no POSIX shell") && windows.ends_with("external command"), "{windows}");
    assert!(error(&["/no/such/program"]).contains("cannot be started"));
    assert_eq!(error(&["env", "-i", "PATH=/usr/bin:/bin"]), "the user has no home there");
    assert!(error_of("exit 127").starts_with("no POSIX shell"));
    for flood in ["yes", "echo pilotlight-there; yes x | tr -d '\\n'"] {
        assert!(error_of(flood).starts_with("a startup file there prints too much"), "{}", error_of(flood));
    }
    let said = "pilotlight-shell\npilotlight-there\nsystem \\033[31mDarwin\nmachine arm64\nhome /h\nprogram /p\nversion pilotlight \\033]0;x\\007\nhello {\nready\n";
    let way = ["/bin/sh", "-c", &format!("echo motd; printf '{said}'; read x")].map(str::to_owned).to_vec();
    let info = wait(async { Ok::<_, String>(RemoteShell::start(Way::Command(way)).await?.1) }).unwrap();
    assert!(!format!("{}{}", info.system, info.programs[0].version).chars().any(char::is_control), "{info:?}");
    assert_eq!((&*info.architecture, info.usable()), ("aarch64", None));
    assert_eq!((&*system("Linux"), &*system("Darwin"), &*architecture("amd64")), ("linux", "macos", "x86_64"));
}

#[test]
fn case_458_a_command_that_ends_and_one_that_stops_answering_are_told_apart() {
    let error = |script: &str| {
        let way = Way::Command(["/bin/sh", "-c", script].map(str::to_owned).to_vec());
        wait(RemoteShell::start(way)).map(|(_, info)| info).unwrap_err()
    };
    assert_eq!(error("exit 3"), "`/bin/sh -c exit 3 sh` ended with exit code 3");
    let said = error("echo 'no such box' >&2; exit 1");
    assert!(said.ends_with(" ended with exit code 1: no such box"), "{said}");
    let said = error("echo 'ada@box: Permission denied (publickey).' >&2; exit 255");
    assert!(said.starts_with("it asks for a password"), "{said}");
    let mute = "printf 'pilotlight-shell\npilotlight-there\nsystem Linux\nmachine x86_64\nhome /h\nready\n'; while read -r line; do :; done; sleep 60";
    let way = Way::Command(["/bin/sh", "-c", mute].map(str::to_owned).to_vec());
    let (copied, removed) = wait(async {
        let mut errands = Vec::new();
        for _ in 0..2 {
            let mut shell = RemoteShell::start(way.clone()).await.unwrap().0;
            shell.patience = Duration::from_millis(50);
            errands.push(shell);
        }
        (errands[0].copy(b"x", |_| {}).await, errands[1].remove("1 2", &[]).await)
    });
    let said = "its shell was reached, and did not answer within 0 s";
    assert_eq!((copied, removed), (Err(format!("{said}; nothing was changed")), Err(said.to_owned())));
}

#[test]
fn case_462_a_home_with_a_line_break_is_refused() {
    let scratch = tempfile::tempdir().unwrap();
    let home = scratch.path().join("a\nsystem Plan9");
    fs::create_dir(&home).unwrap();
    let home = format!("HOME={}", home.display());
    let way = Way::Command(["env", "-i", &home, "PATH=/usr/bin:/bin"].map(str::to_owned).to_vec());
    let error = wait(RemoteShell::start(way)).map(|(_, info)| info).unwrap_err();
    assert_eq!(error, "the name of the user's home there has a line break, which no setting can name");
}
