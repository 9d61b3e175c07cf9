//! Another machine over the real OpenSSH: a server of the test's own on loopback, with keys of its own.

use super::hosts::{child_of, has_ended};
use super::trays::Tray;
use crate::program::resume::user as resumable;
use crate::support::executable::executable;
use crate::support::freeze::freeze;
use crate::support::synthetic::User;
use crate::support::tmux::Tmux;
use crate::support::{SOON, wait_until};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Where Debian has it.
const SSHD: &str = "/usr/sbin/sshd";

/// A server that runs, with its keys.
struct Sshd {
    scratch: TempDir,
    port: u16,
    child: Option<Child>,
    /// The user's `ssh-agent`, if there is one.
    agent: Option<Child>,
}

impl Sshd {
    fn new() -> Self {
        let scratch = tempfile::tempdir().unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let sshd = Self { scratch, port, child: None, agent: None };
        for key in ["host", "other-host", "user"] {
            sshd.make_key(key);
        }
        fs::copy(sshd.path("user.pub"), sshd.path("authorized")).unwrap();
        sshd.trust("host");
        sshd
    }

    fn path(&self, name: &str) -> PathBuf {
        self.scratch.path().join(name)
    }

    fn make_key(&self, name: &str) {
        let made =
            Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(self.path(name)).status();
        assert!(made.unwrap().success());
    }

    /// Takes this key for the server's.
    fn trust(&self, key: &str) {
        let key = fs::read_to_string(self.path(&format!("{key}.pub"))).unwrap();
        fs::write(self.path("known"), format!("[127.0.0.1]:{} {key}", self.port)).unwrap();
    }

    /// Starts it, with this line more in its settings.
    fn start(&mut self, more: &str) {
        let config = format!(
            "ListenAddress 127.0.0.1\nPort {}\nHostKey {}\nAuthorizedKeysFile {}\nStrictModes no\nUsePAM no\nPidFile none\n{more}\n",
            self.port,
            self.path("host").display(),
            self.path("authorized").display()
        );
        fs::write(self.path("sshd_config"), config).unwrap();
        fs::create_dir_all("/run/sshd").ok();
        let mut command = Command::new(SSHD);
        command.args(["-D", "-e", "-f"]).arg(self.path("sshd_config")).stdin(Stdio::null());
        command.stdout(Stdio::null()).stderr(fs::File::create(self.path("log")).unwrap());
        self.child = Some(command.spawn().unwrap());
        let listens = || std::net::TcpStream::connect(("127.0.0.1", self.port)).is_ok().then_some(());
        wait_until(SOON, "sshd listens", || self.log(), listens);
    }

    fn stop(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    fn log(&self) -> String {
        fs::read_to_string(self.path("log")).unwrap_or_default()
    }

    /// What to set PATH to, so that `ssh` is [`client`](Self::client)'s.
    fn search_path(&self) -> String {
        format!("{}:{}", self.client().display(), std::env::var("PATH").unwrap_or_default())
    }

    /// From now on, the user's own settings have these lines, too.
    fn prefer(&self, lines: &str) {
        fs::write(self.path("preferred"), lines).unwrap();
        self.client();
    }

    /// The real `ssh` with the test's own settings in place of the developer's, as a folder for PATH.
    fn client(&self) -> PathBuf {
        let preferred = fs::read_to_string(self.path("preferred")).unwrap_or_default();
        let folder = self.path("bin");
        fs::create_dir_all(&folder).unwrap();
        let config = format!(
            "Host devbox\n HostName 127.0.0.1\n Port {}\n IdentityFile {}\n IdentitiesOnly yes\n UserKnownHostsFile {}\n GlobalKnownHostsFile /dev/null\n StrictHostKeyChecking yes\n{preferred}\n",
            self.port,
            self.path("user").display(),
            self.path("known").display()
        );
        fs::write(self.path("ssh_config"), config).unwrap();
        let script = format!("#!/bin/sh\nexec /usr/bin/ssh -F {} \"$@\"\n", self.path("ssh_config").display());
        executable(&folder.join("ssh"), &script);
        folder
    }
}

impl Drop for Sshd {
    fn drop(&mut self) {
        self.stop();
        if let Some(mut agent) = self.agent.take() {
            let _ = agent.kill();
            let _ = agent.wait();
        }
    }
}

/// The user there: what `ssh` starts is Pilotlight with that user's home.
fn program(remote: &User) -> String {
    let path = remote.scratch.path().join("pilotlight");
    let home = remote.scratch.path().display();
    let program = env!("CARGO_BIN_EXE_pilotlight");
    executable(
        &path,
        &format!(
            "#!/bin/sh\nexec env -i HOME={home} PATH=\"$PATH\" LANG=C.UTF-8 PILOTLIGHT_DISCOVER=false TERM=\"$TERM\" {program} \"$@\"\n"
        ),
    );
    path.display().to_string()
}

/// Gives a user the machine behind the `sshd`, where this program is Pilotlight.
fn name_devbox(near: &User, program: &str) {
    let folder = near.scratch.path().join(".config/pilotlight");
    fs::create_dir_all(&folder).unwrap();
    let config = format!("[[host]]\nname = \"devbox\"\nprogram = \"{program}\"\n");
    fs::write(folder.join("config.toml"), config).unwrap();
}

/// The agent there has this terminal, over `ssh -t`.
#[test]
#[ignore = "tests/long.sh"]
fn case_453_a_session_that_ended_there_is_chosen_and_resumed_in_a_terminal_here() {
    if !Path::new(SSHD).exists() {
        return; // tests/long.sh installs it, as root
    }
    let (near, (remote, sessions), mut sshd) = (User::new(), resumable(&["Write the migration", "Old"]), Sshd::new());
    sshd.start("");
    name_devbox(&near, &program(&remote));
    let mut resume = near.pilotlight(&["resume"]);
    resume.env("PATH", sshd.search_path());
    let terminal = Tmux::with_exit_code(&resume, 120, 12);
    terminal.shows("2 sessions");
    terminal.text("old @devbox");
    terminal.shows("1 of 2");
    terminal.press(&["Enter"]);
    let work = remote.scratch.path().join("work-2");
    terminal.shows(&format!("run with --resume={} in {}", sessions[1].id, work.display()));
    terminal.text("hello");
    terminal.press(&["Enter"]);
    terminal.shows("read hello");
    terminal.shows("exited with 7");
}

#[test]
#[ignore = "tests/long.sh"]
fn case_417_another_machine_is_reached_by_the_users_own_ssh() {
    if !Path::new(SSHD).exists() {
        return; // tests/long.sh installs it, as root
    }
    let (near, remote, mut sshd) = (User::new(), User::new(), Sshd::new());
    sshd.start("");
    let config = |program: &str| name_devbox(&near, program);
    config(&program(&remote));
    let path = sshd.search_path();
    let run = |args: &[&str]| {
        let ran = near.pilotlight(args).env("PATH", &path).output().unwrap();
        String::from_utf8_lossy(&[ran.stdout, ran.stderr].concat()).into_owned()
    };
    let session = remote.session(2);
    let owner = session.owner(&remote);
    session.prompt();
    let mut watch = near.pilotlight(&["watch", "--json"]);
    watch.env("PATH", &path);
    let watch = crate::support::synthetic::Watch::start(watch);
    let row = watch.wait_status(&session, "working");
    assert_eq!(row["host"], "devbox", "{}", sshd.log());
    // A login shell there that says something first, and one connection for all that follows.
    session.asks_permission("r1");
    watch.wait_status(&session, "needs-permission");
    let logins = || sshd.log().matches("Accepted publickey").count();
    assert_eq!(logins(), 1, "{}", sshd.log());
    // The connection is cut: it is made anew, and nothing is removed meanwhile.
    let child = i32::try_from(child_of(watch.pid())).unwrap();
    kill_process(Pid::from_raw(child).unwrap(), Signal::KILL).unwrap();
    session.log_event("permission.completed", r#"{"requestId":"r1","result":{"kind":"approved"}}"#);
    watch.wait_status(&session, "working");
    assert!(watch.lines().iter().all(|line| line["removed"] != true), "{:?}", watch.lines());
    let text = run(&["resume", "--here", &session.id]);
    assert!(text.contains("runs it") || text.contains("terminal"), "{text}");
    let (pid, text) = (owner.pid(), run(&["stop", "--end", "--yes", &session.id]));
    wait_until(SOON, "its process ends", || text.clone(), || has_ended(pid).then_some(()));
    drop(owner);
    assert_eq!(watch.end(Signal::TERM), Some(0));

    // What keeps it from working is said.
    config("no-such-program");
    let text = run(&["status"]);
    assert!(text.contains("devbox is not reached: there is no program `no-such-program` there"), "{text}");
    config(&program(&remote));
    sshd.trust("other-host");
    let text = run(&["status"]);
    assert!(text.contains("devbox is not reached: its host key has changed"), "{text}");
    fs::write(sshd.path("known"), "").unwrap();
    let text = run(&["status"]);
    assert!(text.contains("devbox is not reached: its host key is not known"), "{text}");
    sshd.trust("host");
    fs::write(sshd.path("authorized"), "").unwrap();
    let text = run(&["status"]);
    assert!(text.contains("devbox is not reached: it asks for a password"), "{text}");
    sshd.stop();
    let text = run(&["status"]);
    assert!(text.contains("devbox is not reached: nothing listens for ssh there"), "{text}");
}

/// The process of `serve` that runs as this user.
fn serve_of(remote: &User) -> u32 {
    let home = format!("HOME={}", remote.scratch.path().display());
    let is_it = |pid: u32| {
        let has = |file: &str, word: &str| {
            let text = fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
            text.split(|byte| *byte == 0).any(|part| part == word.as_bytes())
        };
        let runs = fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|path| path.ends_with("pilotlight"));
        runs && has("cmdline", "serve") && has("environ", &home)
    };
    let pids = || fs::read_dir("/proc").unwrap().filter_map(|entry| entry.unwrap().file_name().to_str()?.parse().ok());
    wait_until(SOON, "it serves", || home.clone(), || pids().find(|pid| is_it(*pid)))
}

#[test]
#[ignore = "tests/long.sh"]
fn case_478_another_version_a_frozen_far_side_and_a_password_are_said_over_ssh() {
    if !Path::new(SSHD).exists() {
        return; // tests/long.sh installs it, as root
    }
    let (near, remote, mut sshd) = (User::new(), User::new(), Sshd::new());
    sshd.start("");
    let config = |program: &str| name_devbox(&near, program);
    let path = sshd.search_path();
    let run = |args: &[&str]| {
        let ran = near.pilotlight(args).env("PATH", &path).output().unwrap();
        (ran.status.code(), String::from_utf8_lossy(&[ran.stdout, ran.stderr].concat()).into_owned())
    };
    let says = |words: &str, sshd: &Sshd| {
        let (_, text) = run(&["status"]);
        assert_eq!(text.matches("devbox is not reached: ").count(), 1, "{text}");
        assert!(text.contains(&format!("devbox is not reached: {words}")), "{text}\n{}", sshd.log());
    };
    let session = remote.session(2);
    let _owner = session.owner(&remote);
    session.prompt();

    // A program of another version.
    let program = program(&remote);
    let other = remote.scratch.path().join("other");
    let later = "s/\"version\":\"[^\"]*\",\"schema\":[0-9]*/\"version\":\"9.9.0\",\"schema\":99/";
    executable(&other, &format!("#!/bin/sh\n{program} \"$@\" | sed -u '{later}'\n"));
    config(&other.display().to_string());
    let here = env!("CARGO_PKG_VERSION");
    says(&format!("its Pilotlight 9.9.0 and your {here} do not understand each other: update the older one"), &sshd);

    // The program there is frozen while it is asked for something.
    config(&program);
    let mut tray = near.pilotlight(&["tray"]);
    tray.env("PATH", &path);
    let tray = Tray::start_from(&near, tray);
    wait_until(SOON, "the tray knows it", || tray.output(), || near.row(&session).map(drop));
    let frozen = serve_of(&remote);
    freeze(frozen);
    let began = Instant::now();
    let (code, text) = run(&["stop", &session.id]);
    assert!(code == Some(5) && text.contains("may have happened"), "{code:?} {text}");
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    // Another connection is made at once.
    let again = || near.row(&session).filter(|row| row["reached"] == true).map(drop);
    wait_until(SOON, "it is reached again", || tray.output(), again);
    kill_process(Pid::from_raw(i32::try_from(frozen).unwrap()).unwrap(), Signal::CONT).unwrap();
    wait_until(SOON, "it ends", || frozen.to_string(), || has_ended(frozen).then_some(()));
    tray.end(Signal::TERM);

    // A server that wants a password, which nobody could type.
    sshd.stop();
    sshd.start("PubkeyAuthentication no\nKbdInteractiveAuthentication no\nPasswordAuthentication yes");
    says("it asks for a password: use a key that needs none, or an ssh agent that holds the key", &sshd);
}

/// From a home with nothing in it, by one login.
#[test]
#[ignore = "tests/long.sh"]
fn case_434_a_machine_is_added_over_the_users_own_ssh() {
    if !Path::new(SSHD).exists() {
        return; // tests/long.sh installs it, as root
    }
    let (near, remote, mut sshd) = (User::new(), User::new(), Sshd::new());
    let home = remote.scratch.path();
    sshd.start(&format!(
        "ForceCommand env -i HOME={} LANG=C.UTF-8 PILOTLIGHT_DISCOVER=false PATH=/usr/bin:/bin sh -c \"$SSH_ORIGINAL_COMMAND\"",
        home.display()
    ));
    let path = sshd.search_path();
    let run = |args: &[&str]| {
        let ran = near.pilotlight(args).env("PATH", &path).output().unwrap();
        (ran.status.code(), String::from_utf8_lossy(&[ran.stdout, ran.stderr].concat()).into_owned())
    };
    let config = || fs::read_to_string(near.scratch.path().join(".config/pilotlight/config.toml"));
    let own = home.join(".local/bin/pilotlight");
    let session = remote.session(2);
    let _owner = session.owner(&remote);
    session.prompt();
    let (code, text) = run(&["host", "add", "devbox"]);
    assert!(code == Some(4) && !own.exists() && config().is_err(), "{text}");
    let logins = || sshd.log().matches("Accepted publickey").count();
    let before = logins();
    let (code, text) = run(&["host", "add", "devbox", "--yes"]);
    assert!(code == Some(0) && own.is_file(), "{text}\n{}", sshd.log());
    assert_eq!(logins() - before, 1, "{}", sshd.log());
    let (code, text) = run(&["host", "test", "devbox"]);
    assert!(code == Some(0) && text.contains("it tells of 1 session"), "{text}");
    assert!(run(&["status"]).1.contains("@devbox"), "{}", run(&["status"]).1);
    let (code, text) = run(&["host", "list"]);
    assert!(code == Some(0) && text.contains("devbox  ssh devbox  not asked"), "{text}");

    // What keeps it from working is said, and changes nothing.
    let fails = |args: &[&str], words: &str| {
        let (code, text) = run(args);
        assert!(code == Some(1) && text.contains(words), "{text}");
    };
    let again = ["host", "add", "again", "--ssh", "devbox", "--yes"];
    fs::write(sshd.path("known"), "").unwrap();
    fails(&again, "again is not reached: its host key is not known");
    sshd.trust("host");
    let keys = fs::read(sshd.path("authorized")).unwrap();
    fs::write(sshd.path("authorized"), "").unwrap();
    fails(&again, "again is not reached: it asks for a password");
    fails(&["host", "test", "devbox"], "devbox is not reached: it asks for a password");
    fs::write(sshd.path("authorized"), keys).unwrap();
    assert!(!config().unwrap().contains("name = \"again\""));

    let (code, text) = run(&["host", "remove", "devbox", "--yes"]);
    assert!(code == Some(0) && !own.exists() && config().is_err(), "{text}");
    sshd.stop();
    fails(&["host", "add", "devbox", "--yes"], "devbox is not reached: nothing listens for ssh there");
}

/// What a program there sees of the user's machine: a wrapper that writes down its environment first.
fn telling_program(remote: &User) -> (String, PathBuf) {
    let (told, path) = (remote.scratch.path().join("environment"), remote.scratch.path().join("telling"));
    let script = format!("#!/bin/sh\nenv >>'{}'\nexec {} \"$@\"\n", told.display(), program(remote));
    executable(&path, &script);
    (path.display().to_string(), told)
}

/// Each of these would end, keep out, or use something of the user's own `ssh`, or keep ours from working.
#[test]
#[ignore = "tests/long.sh"]
fn case_602_what_the_user_set_for_their_own_ssh_is_theirs() {
    if !Path::new(SSHD).exists() {
        return; // tests/long.sh installs it, as root
    }
    let (near, remote, mut sshd) = (User::new(), User::new(), Sshd::new());
    sshd.start("X11Forwarding yes\nAllowTcpForwarding yes\nAllowAgentForwarding yes");
    let (program, told) = telling_program(&remote);
    name_devbox(&near, &program);
    let path = sshd.search_path();
    let socket = sshd.path("agent");
    let agent = Command::new("ssh-agent").args(["-D", "-a"]).arg(&socket).stdout(Stdio::null()).spawn().unwrap();
    sshd.agent = Some(agent);
    wait_until(SOON, "an agent runs", String::new, || socket.exists().then_some(()));
    let command = |args: &[&str]| {
        let mut command = near.pilotlight(args);
        command.env("PATH", &path).env("SSH_AUTH_SOCK", &socket).env("DISPLAY", "127.0.0.1:99");
        command
    };
    let run = |args: &[&str]| {
        let ran = command(args).output().unwrap();
        (ran.status.code(), String::from_utf8_lossy(&[ran.stdout, ran.stderr].concat()).into_owned())
    };
    let session = remote.session(2);
    let _owner = session.owner(&remote);
    session.prompt();
    let held = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = held.local_addr().unwrap().port();
    let (touched, control) = (sshd.path("touched"), sshd.path("control"));
    for lines in [
        format!("ControlMaster auto\n ControlPath {}\n ControlPersist 60", control.display()),
        format!("LocalForward 127.0.0.1:{port} 127.0.0.1:9\n ExitOnForwardFailure yes"),
        "ForwardAgent yes".to_owned(),
        "ForwardX11 yes\n ForwardX11Trusted yes".to_owned(),
        "RemoteCommand echo mine; cat".to_owned(),
        format!("PermitLocalCommand yes\n LocalCommand touch {}", touched.display()),
        "RequestTTY force".to_owned(),
    ] {
        sshd.prefer(&format!(" {lines}"));
        let _ = fs::remove_file(&told);
        let (code, text) = run(&["status"]);
        assert!(code == Some(0) && text.contains("@devbox"), "{lines}: {text}\n{}", sshd.log());
        // The same of what looks and copies.
        let (code, text) = run(&["host", "add", "again", "--ssh", "devbox"]);
        assert!(code == Some(4) && text.contains("linux on"), "{lines}: {text}\n{}", sshd.log());
        let environment = fs::read_to_string(&told).unwrap();
        assert!(!environment.contains("SSH_AUTH_SOCK=") && !environment.contains("DISPLAY="), "{lines}: {environment}");
        assert!(!environment.contains("SSH_TTY="), "{lines}: {environment}");
        assert!(!touched.exists() && !control.exists(), "{lines}");
    }
    drop(held);

    // A tray's stays as long as the tray does, and holds nothing of these meanwhile.
    sshd.prefer(&format!(
        " LocalForward 127.0.0.1:{port} 127.0.0.1:9\n ExitOnForwardFailure yes\n ControlMaster auto\n ControlPath {}",
        control.display()
    ));
    let watch = crate::support::synthetic::Watch::start(command(&["watch", "--json"]));
    watch.wait_status(&session, "working");
    let mut user =
        Command::new(sshd.client().join("ssh")).args(["devbox", "cat"]).stdin(Stdio::piped()).spawn().unwrap();
    wait_until(SOON, "the user's own is the master", || sshd.log(), || control.exists().then_some(()));
    let logins = || sshd.log().matches("Accepted publickey").count();
    let before = logins();
    let (code, text) = run(&["status"]);
    assert!(code == Some(0) && text.contains("@devbox"), "{text}");
    assert_eq!(logins(), before, "a master that is there is used");
    assert_eq!(watch.end(Signal::TERM), Some(0));
    assert!(user.try_wait().unwrap().is_none(), "the user's own goes on");
    drop(user.stdin.take());
    assert!(user.wait().unwrap().success());
}

/// What starts with a shell there prints, reads, or puts another shell in its place; and shells of all kinds.
#[test]
#[ignore = "tests/long.sh"]
fn case_603_whatever_starts_with_the_shell_there_the_machine_is_added_and_reached() {
    if !Path::new(SSHD).exists() {
        return; // tests/long.sh installs it, as root
    }
    let banner = tempfile::NamedTempFile::new().unwrap();
    fs::write(banner.path(), "All of this is private property.\n".repeat(500)).unwrap();
    let sourced = r#"bash -c '. ~/.bashrc; eval "$0"' "$SSH_ORIGINAL_COMMAND""#;
    for (rc, shell) in [
        ("printf Welcome", sourced),
        ("printf 'Last login: now '; seq 10000", sourced),
        ("read -r line", sourced),
        ("exec sh", sourced),
        ("exec zsh", sourced),
        ("exec tcsh", sourced),
        ("", r#"fish -c "$SSH_ORIGINAL_COMMAND""#),
        ("", r#"tcsh -c "$SSH_ORIGINAL_COMMAND""#),
        ("", r#"zsh -c "$SSH_ORIGINAL_COMMAND""#),
    ] {
        let needed = if rc.starts_with("exec") { rc.rsplit(' ').next() } else { shell.split(' ').next() };
        if !Path::new("/usr/bin").join(needed.unwrap()).exists() {
            continue;
        }
        let (near, remote, mut sshd) = (User::new(), User::new(), Sshd::new());
        let home = remote.scratch.path();
        fs::write(home.join(".bashrc"), format!("{rc}\n")).unwrap();
        sshd.start(&format!(
            "Banner {}\nForceCommand env -i HOME={} LANG=C.UTF-8 PILOTLIGHT_DISCOVER=false PATH=/usr/bin:/bin SSH_ORIGINAL_COMMAND=\"$SSH_ORIGINAL_COMMAND\" {}",
            banner.path().display(),
            home.display(),
            shell
        ));
        let path = sshd.search_path();
        for args in [
            &["host", "add", "devbox", "--yes"][..],
            &["host", "test", "devbox"],
            &["host", "remove", "devbox", "--yes"],
        ] {
            let ran = near.pilotlight(args).env("PATH", &path).output().unwrap();
            let text = String::from_utf8_lossy(&[ran.stdout, ran.stderr].concat()).into_owned();
            assert!(ran.status.success(), "{rc:?} {shell} {args:?}: {text}\n{}", sshd.log());
        }
        let left = [".local/bin", ".local/state"].map(|folder| home.join(folder).exists());
        assert_eq!(left, [false, false], "{rc:?} {shell}: it leaves nothing");
    }
}

/// It takes all that is sent, and says so.
#[test]
#[ignore = "tests/long.sh"]
fn case_604_what_reads_all_that_is_sent_there_is_said_to() {
    if !Path::new(SSHD).exists() {
        return; // tests/long.sh installs it, as root
    }
    let (near, remote, mut sshd) = (User::new(), User::new(), Sshd::new());
    sshd.start(&format!(
        "ForceCommand env -i HOME={} PATH=/usr/bin:/bin sh -c 'cat >/dev/null'",
        remote.scratch.path().display()
    ));
    let ran = near.pilotlight(&["host", "add", "devbox"]).env("PATH", sshd.search_path()).output().unwrap();
    let text = String::from_utf8_lossy(&ran.stderr).into_owned();
    assert!(ran.status.code() == Some(1) && text.contains("no shell answered there within 30 s; "), "{text}");
    assert!(text.contains(".bashrc"), "{text}");
}
