//! A bug report leaks nothing.

use crate::support::synthetic::User;
use std::fs;
use std::process::Command;

/// Texts that must not be in a report, wherever they occur.
const SECRETS: [&str; 12] = [
    "alice",
    "launchcodes",
    "hunter2",
    "ghp_16C7e42F292c",
    "wiki.internal",
    "Project Zebra",
    "feature/takeover",
    "s3cret",
    "acme_deploy",
    "rm -rf",
    "4155550123",
    "/home/",
];

#[test]
fn hostile_contents_leak_nothing() {
    let user = User::new();
    let scratch = user.scratch.path();
    let session = user.session(1);
    session.workspace(&format!(
        "id: {}\ncwd: /home/alice/launchcodes\nbranch: feature/takeover\nclient_name: github/cli\nname: Project Zebra\n",
        session.id
    ));
    let _owner = session.owner(&user);
    session.log_event("user.message", r#"{"content":"hunter2 is the password of wiki.internal, call 4155550123"}"#);
    session.log_event(
        "tool.execution_start",
        r#"{"toolCallId":"c","toolName":"acme_deploy","arguments":{"command":"rm -rf /home/alice/launchcodes"}}"#,
    );
    session.log_event(
        "permission.requested",
        r#"{"requestId":"s3cret","permissionRequest":{"kind":"launchcodes","toolCallId":"c","fullCommandText":"rm -rf hunter2"}}"#,
    );
    let failed = user.session(2);
    let _other = failed.owner(&user);
    failed.prompt();
    failed.log_event(
        "session.error",
        r#"{"errorType":"launchcodes","message":"no: hunter2 ghp_16C7e42F292c","statusCode":401}"#,
    );
    let odd = user.sessions().join("launchcodes of alice\nhunter2");
    fs::create_dir(&odd).unwrap();
    Command::new("mkfifo").arg(odd.join("events.jsonl")).status().unwrap();
    let servers = user.home().join("servers");
    fs::create_dir(&servers).unwrap();
    fs::write(servers.join("1.json"), r#"{"pid":1,"port":4321,"token":"s3cret"}"#).unwrap();
    let config = scratch.join("alice.toml");
    fs::write(
        &config,
        "homes = [\"/home/alice/launchcodes\"]\nhunter2 = \"s3cret\"\n[limits]\nfresh-stuck = \"90s\"\n[owners]\nnames = [\"acme_deploy\"]\n\
         [actions]\ncopilot = \"/home/alice/ghp_16C7e42F292c\"\n[[server]]\naddress = \"127.0.0.1:9\"\ntoken-file = \"/home/alice/s3cret\"\n",
    )
    .unwrap();
    let state = scratch.join(".local/state/pilotlight");
    fs::create_dir_all(&state).unwrap();
    let mut log = String::from("hunter2 at the start of a line\n");
    let at = "2026-11-20T18:07:25.003Z";
    for secret in SECRETS {
        log += &format!("{at}  WARN: the menu cannot be shown: «{secret}» tag=menu session=«{secret}»\n");
        // An older version wrote this one, and a full disk cut off those.
        log += &format!("{at}  WARN the menu: {secret} tag=\"{secret}\" {secret}=\"x\" session={secret}\n");
        log += &format!("{at}  WARN: the menu: «{secret}\n{at}  WARN: the menu: «{secret}{at}  WARN: «{secret}»\n");
        log += &format!("{at}  WARN: the menu: {secret}» tag=menu\n");
    }
    fs::write(state.join("pilotlight.log"), log).unwrap();

    let output = user
        .pilotlight(&["diagnostics"])
        .env("PILOTLIGHT_CONFIG", &config)
        .env("XDG_CURRENT_DESKTOP", "alice-launchcodes:XFCE")
        .env("XDG_SESSION_TYPE", "hunter2")
        .env("LANG", "alice.UTF-8")
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    for secret in SECRETS {
        assert!(!text.to_lowercase().contains(&secret.to_lowercase()), "{secret} is in:\n{text}");
    }
    for path in [user.home(), scratch.to_owned()] {
        assert!(!text.contains(path.to_str().unwrap()), "{path:?} is in:\n{text}");
    }
    assert!(!text.contains(&session.id) && !text.contains("00000001"), "{text}");
    // It has what a maintainer needs.
    for needed in [
        concat!("Pilotlight ", env!("CARGO_PKG_VERSION")),
        "Desktop: another, XFCE; session: another",
        "needs-permission 1",
        "failed           1",
        "limits.fresh-stuck = \"1m30s\"",
        "homes.also = …",
        "something is wrong in line 2",
        "WARN: the menu cannot be shown: … tag=menu session=#1(no-uuid)\n",
    ] {
        assert!(text.contains(needed), "{needed:?} is not in:\n{text}");
    }
    assert!(output.stderr.is_empty(), "{:?}", String::from_utf8_lossy(&output.stderr));
}
