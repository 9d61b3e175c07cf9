//! Listeners of this process, which is its own owner here, and files that tell of them.

use std::io::Write;
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use super::*;

const SECRET: &str = "4f1c-secret";

/// A listener of this process, a home, and an entry of it in the home's registry.
struct Stage {
    _listener: TcpListener,
    address: SocketAddr,
    home: tempfile::TempDir,
}

impl Stage {
    fn set() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let home = tempfile::tempdir().unwrap();
        fs::create_dir(home.path().join("servers")).unwrap();
        Self { _listener: listener, address, home }
    }

    fn entry(&self) -> PathBuf {
        self.home.path().join("servers").join(format!("{}.json", std::process::id()))
    }

    /// What Copilot writes, with this token.
    fn text(&self, token: &str) -> String {
        let (pid, port) = (std::process::id(), self.address.port());
        format!(
            r#"{{"schemaVersion": 2, "pid": {pid}, "host": "127.0.0.1", "port": {port}, "token": {token},
            "startedAt": "2026-11-21T11:14:52.251Z", "kind": "managed-server", "cwd": "/x", "status": "waiting"}}"#
        )
    }

    fn write(&self, text: &str) {
        let mut options = File::options();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        options.open(self.entry()).unwrap().write_all(text.as_bytes()).unwrap();
    }

    /// Where this process can be reached, by the listener of this stage.
    fn found(&self, settings: &[ServerSetting]) -> Option<Endpoint> {
        let homes = [self.home.path().join("none"), self.home.path().to_owned()];
        let all = endpoints(std::process::id(), &homes, settings, None);
        all.into_iter().find(|endpoint| endpoint.address == self.address)
    }

    fn token(&self, settings: &[ServerSetting]) -> Option<String> {
        let endpoint = self.found(settings).expect("it is an endpoint in any case");
        endpoint.token.map(|token| token.expose().to_owned())
    }

    /// A setting for the listener, with the token in a file.
    fn setting(&self, token: &str) -> ServerSetting {
        let file = self.home.path().join("token");
        fs::write(&file, token).unwrap();
        ServerSetting { address: self.address, token: Some(TokenSource::File(file)) }
    }
}

/// A process that listens nowhere.
struct Idle(Child);

impl Idle {
    fn start() -> Self {
        let program = if cfg!(windows) { "cmd" } else { "cat" };
        Self(Command::new(program).stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap())
    }
}

impl Drop for Idle {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_token_is_bounded_and_shown_to_nobody() {
    for text in ["", "a\nb", "a\0", "\u{7f}", "\u{9b}x", &"x".repeat(Token::MOST + 1)] {
        assert_eq!(Token::new(text), None);
    }
    let token = Token::new(&"x".repeat(Token::MOST)).unwrap();
    assert_eq!(token.expose().len(), Token::MOST);
    let endpoint = Endpoint { address: "127.0.0.1:1".parse().unwrap(), token: Some(token) };
    assert_eq!(format!("{endpoint:?}"), "Endpoint { address: 127.0.0.1:1, token: Some(Token(…)) }");
}

#[test]
fn a_listener_is_an_endpoint_and_the_registry_has_its_token() {
    let stage = Stage::set();
    assert_eq!(stage.token(&[]), None);
    stage.write(&stage.text(&format!("{SECRET:?}")));
    assert_eq!(stage.token(&[]).as_deref(), Some(SECRET));
    let other = Stage::set();
    let homes = [stage.home.path().to_owned()];
    let all = endpoints(std::process::id(), &homes, &[], None);
    let beside = all.iter().find(|endpoint| endpoint.address == other.address).unwrap();
    assert_eq!(beside.token, None, "it is for one port");
}

#[test]
fn what_the_server_says_of_itself_goes_before_the_config() {
    let stage = Stage::set();
    let setting = [stage.setting("other")];
    assert_eq!(stage.token(&setting).as_deref(), Some("other"));
    stage.write(&stage.text(&format!("{SECRET:?}")));
    assert_eq!(stage.token(&setting).as_deref(), Some(SECRET));
    let without = Stage::set();
    without.write(&without.text("null"));
    assert_eq!(without.token(&[without.setting("other")]), None, "it wants none");
}

#[test]
fn entries_that_are_not_as_they_should_be_are_passed_over() {
    let pid = std::process::id();
    let broken = |change: &dyn Fn(String) -> String| {
        let stage = Stage::set();
        stage.write(&change(stage.text(&format!("{SECRET:?}"))));
        assert_eq!(stage.token(&[]), None);
        // And one that is wrong hides nothing.
        assert_eq!(stage.token(&[stage.setting("other")]).as_deref(), Some("other"));
    };
    broken(&|_| String::new());
    broken(&|text| text.replace('}', ""));
    broken(&|text| format!("[{text}]"));
    broken(&|text| text.replace(&format!("\"pid\": {pid}"), &format!("\"pid\": {}", pid + 1)));
    broken(&|text| text.replace(&format!("\"pid\": {pid}"), &format!("\"pid\": \"{pid}\"")));
    broken(&|text| text.replace("\"port\":", "\"port\": 1, \"was\":"));
    broken(&|text| text.replace("\"port\":", "\"port\": 70000, \"was\":"));
    broken(&|text| text.replace(&format!("{SECRET:?}"), "17"));
    broken(&|text| text + &" ".repeat(ENTRY_LIMIT as usize));
    // A token that is none is no reason to look elsewhere: the entry itself is right.
    let stage = Stage::set();
    stage.write(&stage.text(r#""a\nb""#));
    assert_eq!(stage.token(&[stage.setting("other")]), None);
}

#[cfg(unix)]
#[test]
fn entries_that_others_may_read_are_passed_over() {
    for mode in [0o640, 0o604, 0o620, 0o660, 0o777] {
        let stage = Stage::set();
        stage.write(&stage.text(&format!("{SECRET:?}")));
        let mode = std::os::unix::fs::PermissionsExt::from_mode(mode);
        fs::set_permissions(stage.entry(), mode).unwrap();
        assert_eq!(stage.token(&[]), None);
    }
    // Another user's; only root can make one.
    let stage = Stage::set();
    stage.write(&stage.text(&format!("{SECRET:?}")));
    if rustix::process::geteuid().is_root() {
        std::os::unix::fs::chown(stage.entry(), Some(65534), None).unwrap();
        assert_eq!(stage.token(&[]), None);
    }
}

#[cfg(unix)]
#[test]
fn what_is_no_plain_file_is_not_opened() {
    let made: [fn(&Stage); 4] = [
        |stage| fs::create_dir(stage.entry()).unwrap(),
        |stage| assert!(Command::new("mkfifo").arg(stage.entry()).status().unwrap().success()),
        |stage| std::os::unix::fs::symlink("/dev/zero", stage.entry()).unwrap(),
        |stage| {
            stage.write(&stage.text(&format!("{SECRET:?}")));
            let real = stage.home.path().join("real.json");
            fs::rename(stage.entry(), &real).unwrap();
            std::os::unix::fs::symlink(real, stage.entry()).unwrap();
        },
    ];
    for make in made {
        let stage = Stage::set();
        make(&stage);
        assert_eq!(stage.token(&[]), None);
    }
    // The same for a token's file, but that a link is followed there: the user named it.
    let stage = Stage::set();
    let (fifo, link) = (stage.home.path().join("fifo"), stage.home.path().join("link"));
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let setting = |file: &Path| ServerSetting { address: stage.address, token: Some(TokenSource::File(file.into())) };
    assert_eq!(stage.token(&[setting(&fifo)]), None);
    fs::write(stage.home.path().join("token"), " other\n").unwrap();
    std::os::unix::fs::symlink(stage.home.path().join("token"), &link).unwrap();
    assert_eq!(stage.token(&[setting(&link)]).as_deref(), Some("other"));
}

/// Its port is this process's by now, and its id another process's or that of a process which listens nowhere.
#[test]
fn case_107f_a_stale_entry_gives_no_endpoint() {
    let stage = Stage::set();
    let idle = Idle::start();
    let text = stage.text(&format!("{SECRET:?}"));
    let text = text.replace(&format!("\"pid\": {}", std::process::id()), &format!("\"pid\": {}", idle.0.id()));
    stage.write(&text);
    fs::rename(stage.entry(), stage.home.path().join("servers").join(format!("{}.json", idle.0.id()))).unwrap();
    let (homes, setting) = ([stage.home.path().to_owned()], [stage.setting("other")]);
    assert_eq!(endpoints(idle.0.id(), &homes, &setting, Some(stage.home.path())), []);
    assert_eq!(stage.token(&[]), None, "nor does the one who has the port now get it");
    for nobody in [0, u32::MAX] {
        assert_eq!(endpoints(nobody, &homes, &setting, None), []);
    }
}

#[test]
fn a_setting_gives_its_token_to_its_own_address_alone() {
    let stage = Stage::set();
    let elsewhere = Stage::set();
    assert_eq!(stage.token(&[elsewhere.setting("other")]), None);
    assert_eq!(stage.found(&[ServerSetting { address: stage.address, token: None }]).unwrap().token, None);
    for file in ["", " \n", "a\nb", &"x".repeat(Token::MOST * 2)] {
        assert_eq!(stage.token(&[stage.setting(file)]), None);
    }
    let missing = TokenSource::File(stage.home.path().join("missing"));
    let missing = ServerSetting { address: stage.address, token: Some(missing) };
    assert_eq!(stage.token(&[missing, stage.setting(" other \n")]).as_deref(), Some("other"));
}

#[test]
fn a_token_may_be_in_the_environment() {
    let address = "127.0.0.1:4321".parse().unwrap();
    let setting = [ServerSetting { address, token: Some(TokenSource::Env("MY_TOKEN".into())) }];
    let with = |value: Option<&str>| {
        let variable = |name: &str| value.filter(|_| name == "MY_TOKEN").map(OsString::from);
        verified(&[address], None, &setting, variable).remove(0).token
    };
    assert_eq!(with(Some(SECRET)), Token::new(SECRET));
    assert_eq!(with(Some("")), None);
    assert_eq!(with(None), None);
}

#[test]
fn where_the_system_does_not_tell_addresses_are_tried_without_a_token() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("token");
    fs::write(&file, SECRET).unwrap();
    let setting = |address: &str| ServerSetting {
        address: address.parse().unwrap(),
        token: Some(TokenSource::File(file.clone())),
    };
    let settings = [setting("127.0.0.1:7"), setting("192.168.1.2:7"), setting("127.0.0.1:7"), setting("[::1]:7")];
    let found = |pid: &str| {
        fs::create_dir_all(home.path().join(".polypilot")).unwrap();
        fs::write(home.path().join(".polypilot").join("server.pid"), pid).unwrap();
        let all = likely(42, &settings, Some(home.path()));
        assert!(all.iter().all(|endpoint| endpoint.token.is_none()));
        all.iter().map(|endpoint| endpoint.address.to_string()).collect::<Vec<_>>()
    };
    for pid in ["", "43\n", "x", "43\n42\n", "-42", &format!("42{}", " ".repeat(100))] {
        assert_eq!(found(pid), ["127.0.0.1:7", "[::1]:7"], "{pid}");
    }
    for pid in ["42", "42\n", "42\r\nx"] {
        assert_eq!(found(pid), ["127.0.0.1:7", "127.0.0.1:4321", "[::1]:7"], "{pid}");
    }
    assert_eq!(found("42\n5000"), ["127.0.0.1:7", "127.0.0.1:5000", "[::1]:7"]);
    assert_eq!(likely(42, &[], None), []);
}

/// Everything that is said at the lowest level while `run` runs.
fn said(run: impl FnOnce()) -> String {
    #[derive(Clone, Default)]
    struct Log(Arc<Mutex<Vec<u8>>>);
    impl Write for Log {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let log = Log::default();
    let writer = log.clone();
    // Beside one subscriber alone, whether a line is wanted is asked of the thread that comes to it first, which may be another
    // test's (tracing-core 0.1, `Rebuilder::JustOne`).
    let _second = tracing::Dispatch::new(tracing_subscriber::registry());
    let subscriber =
        tracing_subscriber::fmt().with_max_level(tracing::Level::TRACE).with_writer(move || writer.clone()).finish();
    tracing::subscriber::with_default(subscriber, run);
    let bytes = log.0.lock().unwrap().clone();
    String::from_utf8(bytes).unwrap()
}

#[test]
fn no_line_of_the_log_has_a_token() {
    let stage = Stage::set();
    // An error of the parser quotes the value that it did not expect.
    let text = stage.text(&format!("{SECRET:?}")).replace("\"port\":", &format!("\"port\": {SECRET:?}, \"was\":"));
    stage.write(&text);
    let log = said(|| assert_eq!(stage.token(&[stage.setting(&format!("{SECRET}\n{SECRET}"))]), None));
    assert!(log.contains("passed over") && log.contains("no token for this"), "{log}");
    assert!(!log.contains(SECRET), "{log}");
}
