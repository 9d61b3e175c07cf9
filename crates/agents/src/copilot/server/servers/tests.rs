//! These tests use listeners of the test process, which is also the owner, and registry files about them.

use crate::channel::endpoint::{Endpoint, ServerSetting, Token, TokenSource};
use std::fs::File;
use std::io::Write;
use std::net::TcpListener;
#[cfg(unix)]
use std::process::Command;

use super::*;
use pilotlight_system::process::testing::{self, alone};

const SECRET: &str = "4f1c-secret";

/// A listener of this process, and a home whose registry may have an entry about it.
struct Fixture {
    _listener: TcpListener,
    address: SocketAddr,
    home: tempfile::TempDir,
}

impl Fixture {
    fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let home = tempfile::tempdir().unwrap();
        fs::create_dir(home.path().join("servers")).unwrap();
        Self { _listener: listener, address, home }
    }

    fn entry(&self) -> PathBuf {
        self.home.path().join("servers").join(format!("{}.json", std::process::id()))
    }

    /// The entry as Copilot writes it, with this token.
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

    /// The endpoint of this fixture's listener.
    fn endpoint(&self, settings: &[ServerSetting]) -> Option<Endpoint> {
        let homes = [self.home.path().join("none"), self.home.path().to_owned()];
        let all = endpoints(std::process::id(), true, &homes, settings, None);
        let untrusted = endpoints(std::process::id(), false, &homes, settings, None);
        // Other tests listen and stop listening meanwhile.
        assert!(
            untrusted.all().contains(&Endpoint { address: self.address, token: None }),
            "it can be reached all the same"
        );
        assert!(
            untrusted.all().iter().all(|it| it.token.is_none()),
            "who is not trusted is shown no token: {untrusted:?}"
        );
        all.all().iter().find(|endpoint| endpoint.address == self.address).cloned()
    }

    fn token(&self, settings: &[ServerSetting]) -> Option<String> {
        let endpoint = self.endpoint(settings).expect("it is an endpoint in any case");
        endpoint.token.map(|token| token.expose().to_owned())
    }

    /// A setting for the listener, with the token in a file.
    fn setting(&self, token: &str) -> ServerSetting {
        let file = self.home.path().join("token");
        fs::write(&file, token).unwrap();
        ServerSetting { address: self.address, token: Some(TokenSource::File(file)) }
    }
}

#[test]
fn a_token_is_bounded_and_never_printed() {
    alone!();
    for text in ["", "a\nb", "a\0", "\u{7f}", "\u{9b}x", &"x".repeat(Token::LENGTH_MAX + 1)] {
        assert_eq!(Token::new(text), None);
    }
    let token = Token::new(&"x".repeat(Token::LENGTH_MAX)).unwrap();
    assert_eq!(token.expose().len(), Token::LENGTH_MAX);
    let endpoint = Endpoint { address: "127.0.0.1:1".parse().unwrap(), token: Some(token) };
    assert_eq!(format!("{endpoint:?}"), "Endpoint { address: 127.0.0.1:1, token: Some(Token(…)) }");
}

#[test]
fn a_listener_is_an_endpoint_and_the_registry_has_its_token() {
    alone!();
    let fixture = Fixture::new();
    assert_eq!(fixture.token(&[]), None);
    fixture.write(&fixture.text(&format!("{SECRET:?}")));
    assert_eq!(fixture.token(&[]).as_deref(), Some(SECRET));
    let other = Fixture::new();
    let homes = [fixture.home.path().to_owned()];
    let all = endpoints(std::process::id(), true, &homes, &[], None);
    let other_endpoint = all.all().iter().find(|endpoint| endpoint.address == other.address).unwrap();
    assert_eq!(other_endpoint.token, None, "it is for one port");
}

#[test]
fn the_registry_overrides_the_config() {
    alone!();
    let fixture = Fixture::new();
    let setting = [fixture.setting("other")];
    assert_eq!(fixture.token(&setting).as_deref(), Some("other"));
    fixture.write(&fixture.text(&format!("{SECRET:?}")));
    assert_eq!(fixture.token(&setting).as_deref(), Some(SECRET));
    let without = Fixture::new();
    without.write(&without.text("null"));
    assert_eq!(without.token(&[without.setting("other")]), None, "it requires none");
}

#[test]
fn malformed_entries_are_ignored() {
    alone!();
    let pid = std::process::id();
    let broken = |change: &dyn Fn(String) -> String| {
        let fixture = Fixture::new();
        fixture.write(&change(fixture.text(&format!("{SECRET:?}"))));
        assert_eq!(fixture.token(&[]), None);
        // A malformed entry does not override the config.
        assert_eq!(fixture.token(&[fixture.setting("other")]).as_deref(), Some("other"));
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
    // With a malformed token, the entry still overrides the config.
    let fixture = Fixture::new();
    fixture.write(&fixture.text(r#""a\nb""#));
    assert_eq!(fixture.token(&[fixture.setting("other")]), None);
}

#[cfg(unix)]
#[test]
fn entries_that_others_can_access_are_ignored() {
    alone!();
    for mode in [0o640, 0o604, 0o620, 0o660, 0o777] {
        let fixture = Fixture::new();
        fixture.write(&fixture.text(&format!("{SECRET:?}")));
        let mode = std::os::unix::fs::PermissionsExt::from_mode(mode);
        fs::set_permissions(fixture.entry(), mode).unwrap();
        assert_eq!(fixture.token(&[]), None);
    }
    // Another user's file, which only root can create.
    let fixture = Fixture::new();
    fixture.write(&fixture.text(&format!("{SECRET:?}")));
    if rustix::process::geteuid().is_root() {
        std::os::unix::fs::chown(fixture.entry(), Some(65534), None).unwrap();
        assert_eq!(fixture.token(&[]), None);
    }
}

#[cfg(unix)]
#[test]
fn only_regular_files_are_opened() {
    alone!();
    let setups: [fn(&Fixture); 4] = [
        |fixture| fs::create_dir(fixture.entry()).unwrap(),
        |fixture| assert!(Command::new("mkfifo").arg(fixture.entry()).status().unwrap().success()),
        |fixture| std::os::unix::fs::symlink("/dev/zero", fixture.entry()).unwrap(),
        |fixture| {
            fixture.write(&fixture.text(&format!("{SECRET:?}")));
            let real = fixture.home.path().join("real.json");
            fs::rename(fixture.entry(), &real).unwrap();
            std::os::unix::fs::symlink(real, fixture.entry()).unwrap();
        },
    ];
    for setup in setups {
        let fixture = Fixture::new();
        setup(&fixture);
        assert_eq!(fixture.token(&[]), None);
    }
    // The same for a token's file, except that a symlink is followed, because the user named it.
    let fixture = Fixture::new();
    let (fifo, link) = (fixture.home.path().join("fifo"), fixture.home.path().join("link"));
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let setting = |file: &Path| ServerSetting { address: fixture.address, token: Some(TokenSource::File(file.into())) };
    assert_eq!(fixture.token(&[setting(&fifo)]), None);
    fs::write(fixture.home.path().join("token"), " other\n").unwrap();
    std::os::unix::fs::symlink(fixture.home.path().join("token"), &link).unwrap();
    assert_eq!(fixture.token(&[setting(&link)]).as_deref(), Some("other"));
}

/// The entry's port now belongs to this process, and its pid to a process that listens nowhere, or to none.
#[test]
fn case_107f_a_stale_entry_gives_no_endpoint() {
    alone!();
    let fixture = Fixture::new();
    let idle = testing::waiting();
    let text = fixture.text(&format!("{SECRET:?}"));
    let text = text.replace(&format!("\"pid\": {}", std::process::id()), &format!("\"pid\": {}", idle.pid()));
    fixture.write(&text);
    fs::rename(fixture.entry(), fixture.home.path().join("servers").join(format!("{}.json", idle.pid()))).unwrap();
    let (homes, setting) = ([fixture.home.path().to_owned()], [fixture.setting("other")]);
    assert_eq!(endpoints(idle.pid(), true, &homes, &setting, Some(fixture.home.path())).all(), []);
    assert_eq!(fixture.token(&[]), None, "nor is it sent to the port's new owner");
    for nobody in [0, u32::MAX] {
        assert_eq!(endpoints(nobody, true, &homes, &setting, None).all(), []);
    }
}

#[test]
fn a_setting_gives_its_token_only_to_its_own_address() {
    alone!();
    let fixture = Fixture::new();
    let elsewhere = Fixture::new();
    assert_eq!(fixture.token(&[elsewhere.setting("other")]), None);
    assert_eq!(fixture.endpoint(&[ServerSetting { address: fixture.address, token: None }]).unwrap().token, None);
    for file in ["", " \n", "a\nb", &"x".repeat(Token::LENGTH_MAX * 2)] {
        assert_eq!(fixture.token(&[fixture.setting(file)]), None);
    }
    let missing = TokenSource::File(fixture.home.path().join("missing"));
    let missing = ServerSetting { address: fixture.address, token: Some(missing) };
    assert_eq!(fixture.token(&[missing, fixture.setting(" other \n")]).as_deref(), Some("other"));
}

#[test]
fn a_token_may_be_in_the_environment() {
    alone!();
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
fn likely_addresses_are_tried_without_a_token() {
    alone!();
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("token");
    fs::write(&file, SECRET).unwrap();
    let setting = |address: &str| ServerSetting {
        address: address.parse().unwrap(),
        token: Some(TokenSource::File(file.clone())),
    };
    let settings = [setting("127.0.0.1:7"), setting("192.168.1.2:7"), setting("127.0.0.1:7"), setting("[::1]:7")];
    let addresses = |pid: &str| {
        fs::create_dir_all(home.path().join(".polypilot")).unwrap();
        fs::write(home.path().join(".polypilot").join("server.pid"), pid).unwrap();
        let all = likely(42, &settings, Some(home.path()));
        assert!(all.iter().all(|endpoint| endpoint.token.is_none()));
        all.iter().map(|endpoint| endpoint.address.to_string()).collect::<Vec<_>>()
    };
    for pid in ["", "43\n", "x", "43\n42\n", "-42", &format!("42{}", " ".repeat(100))] {
        assert_eq!(addresses(pid), ["127.0.0.1:7", "[::1]:7"], "{pid}");
    }
    for pid in ["42", "42\n", "42\r\nx"] {
        assert_eq!(addresses(pid), ["127.0.0.1:7", "127.0.0.1:4321", "[::1]:7"], "{pid}");
    }
    assert_eq!(addresses("42\n5000"), ["127.0.0.1:7", "127.0.0.1:5000", "[::1]:7"]);
    assert_eq!(likely(42, &[], None), []);
}

#[test]
fn no_log_line_contains_a_token() {
    alone!();
    let fixture = Fixture::new();
    // The parser's error quotes the unexpected value.
    let text = fixture.text(&format!("{SECRET:?}")).replace("\"port\":", &format!("\"port\": {SECRET:?}, \"was\":"));
    fixture.write(&text);
    let log = log::captured(|| assert_eq!(fixture.token(&[fixture.setting(&format!("{SECRET}\n{SECRET}"))]), None));
    assert!(log.contains("ignored a server") && log.contains("no token for this"), "{log}");
    assert!(!log.contains(SECRET), "{log}");
}
