//! The facts about the real CLI that actions rely on: where it listens, which processes run below it, and how it exits.

use crate::support::home::Home;
use crate::support::model::Model;
use crate::support::person::{Manner, Person};
use crate::support::process::end;
use crate::support::server::Server;
use crate::support::terminal::Terminal;
use crate::support::{SOON, block_on, wait_until};
use github_copilot_sdk::Client as Sdk;
use pilotlight_agents::callers::agent_above;
use pilotlight_agents::channel::endpoint::{Endpoint, ServerSetting};
use pilotlight_agents::copilot::owner::Lock;
use pilotlight_agents::copilot::server::servers::endpoints;
use pilotlight_agents::copilot::target::Target;
use pilotlight_agents::evidence::Target as _;
use pilotlight_core::time::Time;
use pilotlight_system::process::{Force, ancestors, is_of_our_user, listening, terminal_of};
use serde_json::json;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::UNIX_EPOCH;
use tokio::net::TcpStream;

/// Connects to a Copilot server at this endpoint, with its token if it has one.
fn greet(endpoint: &Endpoint) {
    block_on(async {
        let (read, write) = TcpStream::connect(endpoint.address).await.unwrap().into_split();
        let sdk = Sdk::from_streams(read, write, std::env::temp_dir()).unwrap();
        match &endpoint.token {
            Some(token) => drop(sdk.call("connect", Some(json!({"token": token.expose()}))).await.unwrap()),
            None => sdk.verify_protocol_version().await.unwrap(),
        }
        sdk.force_stop();
    });
}

/// The only endpoint of a process.
fn endpoint_of(pid: u32, homes: &[PathBuf], settings: &[ServerSetting]) -> Endpoint {
    let found = endpoints(pid, true, homes, settings, None);
    let [endpoint] = found.all() else { panic!("{found:?}") };
    assert_eq!(listening(pid).unwrap(), [endpoint.address]);
    endpoint.clone()
}

fn millis(time: std::time::SystemTime) -> Time {
    Time(time.duration_since(UNIX_EPOCH).unwrap().as_millis() as i64)
}

fn now() -> Time {
    Time(jiff::Timestamp::now().as_millisecond())
}

/// The owner of the session's lock, as a target for signals.
fn target(folder: &Path, pid: u32) -> Target {
    let file = |kind: &str| folder.join(format!("inuse.{pid}.{kind}"));
    let made = millis(std::fs::metadata(file("lock")).unwrap().modified().unwrap());
    Target::open(Lock { pid, made }, folder, &[], now(), false).unwrap()
}

#[test]
fn a_server_is_found_by_its_process() {
    let (home, model) = (Home::new("project"), Model::start());
    let mut server = Server::start(&home, &model);
    let endpoint = endpoint_of(server.pid(), &[home.dir()], &[]);
    assert!(endpoint.address.ip() == Ipv4Addr::LOCALHOST && endpoint.token.is_none(), "{endpoint:?}");
    greet(&endpoint);
    assert!(is_of_our_user(server.pid()));
    let pid = server.pid();
    server.kill();
    assert_eq!(endpoints(pid, true, &[home.dir()], &[], None).all(), []);
}

#[test]
#[ignore = "tests/long.sh"]
fn a_terminal_with_a_server_is_found() {
    let (home, model) = (Home::new("project"), Model::start());
    let terminal = Terminal::start(&home, &model, &["--ui-server", "--port", "0"]);
    greet(&endpoint_of(terminal.pid(), &[home.dir()], &[]));
    assert!(terminal_of(terminal.pid()).is_some());
}

#[test]
fn a_plain_terminal_does_not_listen_and_exits_when_interrupted() {
    let (home, model) = (Home::new("project"), Model::start());
    let terminal = Terminal::start(&home, &model, &[]);
    let pid = terminal.pid();
    assert_eq!(listening(pid).unwrap(), []);
    let stdin = std::fs::read_link(format!("/proc/{pid}/fd/0")).unwrap();
    assert_eq!(terminal_of(pid), Some(stdin));

    terminal.enter("SCRIPT:plain Paint the fence");
    terminal.folder.wait("assistant.turn_end");
    let target = target(&terminal.folder.path, pid);
    target.signal(Force::Interrupt).unwrap();
    wait_until(SOON, "the terminal has ended", || terminal.screen(), || target.has_ended().then_some(()));
    terminal.folder.wait("session.shutdown");
    assert!(terminal.folder.locks().is_empty());
    assert!(target.signal(Force::Kill).is_err());
}

#[test]
fn the_token_of_a_managed_server_is_in_its_registry() {
    const TOKEN: &str = "not-a-secret";
    let (home, model) = (Home::new("project"), Model::start());
    let mut command: tokio::process::Command = home.copilot(&model).into();
    command
        .args(["--server", "--managed-server", "--port", "0"])
        .env("COPILOT_CLI_ENABLED_FEATURE_FLAGS", "SESSIONS_SIDEBAR_TAB")
        .env("COPILOT_CONNECTION_TOKEN", TOKEN)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true);
    let mut server = block_on(async { command.spawn().unwrap() });
    let (pid, homes) = (server.id().unwrap(), [home.dir()]);
    let entry = home.dir().join("servers").join(format!("{pid}.json"));
    let known = wait_until(
        SOON,
        "the server is in the registry",
        || format!("{} {:?}", entry.display(), listening(pid)),
        || endpoints(pid, true, &homes, &[], None).all().iter().find(|endpoint| endpoint.token.is_some()).cloned(),
    );
    assert_eq!(known.token.as_ref().unwrap().expose(), TOKEN);
    assert!(!format!("{known:?}").contains(TOKEN));
    greet(&known);

    // Case 107f: the same registry file with the port of another program.
    let other = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let SocketAddr::V4(taken) = other.local_addr().unwrap() else { panic!("asked for IPv4") };
    let stale = std::fs::read_to_string(&entry).unwrap();
    let stale = stale.replace(&known.address.port().to_string(), &taken.port().to_string());
    std::fs::write(&entry, stale).unwrap();
    assert_eq!(endpoint_of(pid, &homes, &[]).token, None);
    end(&mut server);
}

#[test]
fn case_107c_a_tool_is_recognised_as_copilots_even_when_copilot_is_gone() {
    let (home, model) = (Home::new("project"), Model::start());
    let mut server = Server::start(&home, &model);
    let (client, person) = (server.connect(), Person::new(Manner::Approves));
    let session = server.create(&client, Some(&person));
    session.send("SCRIPT:tool Paint the fence");
    session.folder.wait("permission.completed");
    let pid = server.pid();
    let tool = wait_until(SOON, "the tool runs", || session.folder.dump(), || tool_of(pid));
    let behind = |pid| agent_above(pid, &[]).map(|behind| (behind.pid, behind.agent));
    assert_eq!(behind(tool), Some((pid, "Copilot")));
    assert_eq!(behind(pid), Some((pid, "Copilot")));
    assert_eq!(terminal_of(tool), None);

    // The kill makes the tool a child of init. A tool may also detach itself.
    server.kill();
    wait_until(
        SOON,
        "the tool has another parent",
        || format!("{:?}", ancestors(tool)),
        || (!ancestors(tool).contains(&pid)).then_some(()),
    );
    assert_eq!(behind(tool), Some((tool, "Copilot")), "by the marks in its environment");
    home.release_tools();
}

/// The pid of the shell that runs a tool of this process.
fn tool_of(pid: u32) -> Option<u32> {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let mut pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.find(|child| {
        let line = std::fs::read(format!("/proc/{child}/cmdline")).unwrap_or_default();
        ancestors(*child).first() == Some(&pid) && String::from_utf8_lossy(&line).contains("seq 600")
    })
}
