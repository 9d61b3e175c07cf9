//! Foreign text in the output: JSON without invisible or control characters, and names that are never blank.

use crate::support::synthetic::User;
use crate::support::tmux::Tmux;
use crate::support::{SOON, wait_until};

/// Whether our JSON must escape this character.
fn is_escaped(c: char) -> bool {
    c != '\n' && (c.is_control() || pilotlight_core::text::is_invisible(c))
}

#[test]
fn case_144_names_are_never_blank() {
    let user = User::new();
    let (filler, braille, mark) = ("\u{3164}", "\u{2800}\u{2800}", "\u{301}");
    let owners: Vec<_> = [
        (1, filler, "/home/dev/project", "project"),
        (2, braille, "/home/dev/\u{3164}", "00000002"),
        (3, mark, "/", "00000003"),
        (4, "\u{200d}\u{fe0f}", "/home/dev/\u{2800}x", "\u{2800}x"),
    ]
    .into_iter()
    .map(|(n, title, cwd, name)| {
        let session = user.session(n);
        session.workspace(&format!("id: {}\ncwd: {cwd}\nclient_name: github/cli\nname: \"{title}\"\n", session.id));
        session.prompt();
        let owner = session.owner(&user);
        assert_eq!(user.row(&session).unwrap()["name"], name, "{title:?} in {cwd:?}");
        owner
    })
    .collect();
    assert_eq!(owners.len(), 4);
}

#[test]
fn case_144_json_escapes_invisible_and_control_characters() {
    let user = User::new();
    let session = user.session(1);
    let cwd = "/home/dev/\u{202e}txt\u{9b}31m\u{7f}\u{2066}";
    session.workspace(&format!(
        "id: {}\ncwd: \"{cwd}\"\nbranch: \"ma\u{200b}in\u{85}\"\nclient_name: github/cli\nname: \"Ti\u{202e}tle\"\n",
        session.id
    ));
    let _owner = session.owner(&user);
    session.prompt();
    session.log_event(
        "tool.execution_start",
        "{\"toolCallId\":\"c\",\"toolName\":\"ba\u{202e}\u{9b}sh\",\"arguments\":{}}",
    );
    let row = user.row(&session).unwrap();
    assert_eq!(row["cwd"], cwd, "a parser reads the original");
    let log = session.log().display().to_string();
    let odd_home = user.scratch.path().join("\u{202e}home\u{9b}");
    let odd_home = odd_home.to_str().unwrap();
    for args in [
        &["status", "--json"][..],
        &["status", "--format", "waybar"],
        &["replay", "--json", &log],
        &["--home", odd_home, "doctor", "--json"],
    ] {
        let output = user.run(args);
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(!text.contains(is_escaped) && text.len() > 2, "{args:?}: {text:?}");
        for line in text.lines().filter(|_| args[0] == "replay") {
            serde_json::from_str::<serde_json::Value>(line).unwrap();
        }
    }
    let path = user.scratch.path().join("watched");
    let mut command = user.pilotlight(&["watch", "--json"]);
    let mut watch = command.stdout(std::fs::File::create(&path).unwrap()).spawn().unwrap();
    let text = || std::fs::read_to_string(&path).unwrap();
    wait_until(SOON, "it is reported", text, || text().contains("working").then_some(()));
    watch.kill().unwrap();
    watch.wait().unwrap();
    assert!(!text().contains(is_escaped) && text().contains("\\u202e"), "{:?}", text());
}

/// Case 227: in the locale C, by each command that prints for people. JSON, text for bars and requests are not altered.
#[test]
fn case_227_what_commands_print_is_ascii_in_the_locale_c() {
    let user = User::new();
    let session = user.session(1);
    session.workspace(&format!(
        "id: {}\ncwd: /home/dev/caf\u{e9}\nclient_name: github/cli\nname: \"Fix it \u{2014} \u{5831}\u{544a}\"\n",
        session.id
    ));
    let _owner = session.owner(&user);
    session.prompt();
    let ask = r#"{"requestId":"r","permissionRequest":{"kind":"shell","toolCallId":"c","fullCommandText":"ls"}}"#;
    session.log_event("permission.requested", ask);
    let log = session.log();
    let log = log.to_str().unwrap();
    for arguments in [
        &["status", "--all"][..],
        &["explain", "00000001"],
        &["replay", log],
        &["approve", "--yes", "Fix"],
        &["approve", "--yes", "00000001"],
        &["stop", "00000001"],
        &["resume", "00000001"],
        &["doctor"],
        &["diagnostics"],
        &["bridge", "status"],
        &["config", "--print"],
        &["config", "--edit"],
        &["setup", "--yes"],
        &["setup", "--remove", "--yes"],
        &["notify-test"],
        &["help"],
        &["man"],
        &["tray", "--nonsense"],
    ] {
        let output = user.pilotlight(arguments).env("LC_ALL", "C").output().unwrap();
        assert!(!output.stdout.is_empty() || !output.stderr.is_empty(), "{arguments:?}");
        for printed in [output.stdout, output.stderr] {
            assert!(printed.is_ascii(), "{arguments:?}: {}", String::from_utf8_lossy(&printed));
        }
    }
    let mut stop = user.pilotlight(&["stop", "00000001"]);
    stop.env("LC_ALL", "C");
    let terminal = Tmux::with_exit_code(&stop, 120, 20);
    terminal.shows("End the session \"caf? - Fix it - ????\"? You can resume it later. [y/N]");
}
