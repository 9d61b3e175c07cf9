//! `[actions]` and `[[server]]`.

use proptest::prelude::*;

use super::*;
use pilotlight_agents::channel::endpoint::{ServerSetting, TokenSource};

/// The only problem of a `text` that sets nothing.
fn problem(text: &str) -> String {
    let mut problems = wrong(text);
    assert_eq!(problems.len(), 1, "{problems:?}");
    problems.remove(0)
}

#[test]
fn actions_are_read() {
    let config = right(
        r#"
        [actions]
        terminal = ["kitty", "--hold", "{command}", "{folder}", ""]
        copilot = "~/bin/copilot"
        permissions = "approve-all"
        auto-reconnect = true
        resend = true
        continue-prompt = "Carry on.\nQuietly."
        ask-servers = false
        bridge-untried = true
        scripts-may-answer = true
        [claude-code]
        hold-sub-agents = "5s"
        "#,
    );
    let read = Actions {
        terminal: ["kitty", "--hold", COMMAND, FOLDER, ""].map(str::to_owned).to_vec(),
        program: Some(PathBuf::from("~/bin/copilot")),
        permissions: Permissions::ApproveAll,
        auto_reconnect: true,
        resend: true,
        continue_prompt: Some("Carry on.\nQuietly.".to_owned()),
        ask_servers: false,
        bridge_untried: true,
        scripts_may_answer: true,
        hold_sub_agents: Span::seconds(5),
    };
    assert_eq!(config.actions, read);
    for permissions in Permissions::ALL {
        let read = right(&format!("actions.permissions = \"{}\"", permissions.word())).actions;
        assert_eq!(read, Actions { permissions, ..Actions::default() });
    }
    assert_eq!(
        right("actions.copilot = \"\"\nactions.terminal = []\nactions.continue-prompt = \"\"").actions,
        Actions::default()
    );
}

/// By default nothing is approved or reconnected without the user.
#[test]
fn nothing_is_done_unasked_by_default() {
    let Actions { permissions, auto_reconnect, resend, .. } = Actions::default();
    assert_eq!((permissions, auto_reconnect, resend), (Permissions::Ask, false, false));
    let problems = wrong("actions.continue-prompt = \" \\n\"");
    assert!(
        problems[0].contains("`actions.continue-prompt` must be a text that is not blank, or \"\"; this is blank."),
        "{problems:?}"
    );
    for text in ["\"Approve-All\"", "\"approve\"", "true", "\"\"", "[\"approve-all\"]", "1"] {
        let problems = wrong(&format!("actions.permissions = {text}"));
        assert!(problems[0].contains("`actions.permissions` must be \"ask\", \"approve-all\" or \"observe\"; "));
        assert!(problems[0].ends_with(" The default, \"ask\", is used."), "{problems:?}");
    }
    assert_eq!(
        problem("actions.auto-reconnect = \"true\""),
        "1:26: `actions.auto-reconnect` must be true or false; this is of type string. The default, false, is used."
    );
}

#[test]
fn a_terminal_is_a_command_line() {
    for (value, what) in [
        ("\"xterm -e\"", "this is of type string"),
        ("[\"xterm\", 3]", "this is of type integer"),
        ("[\"\"]", "its first word is not a program"),
        ("[\"-e\"]", "its first word is not a program"),
        ("[\"{command}\"]", "its first word is not a program"),
        ("[\"bin/xterm\"]", "its first word is a path, but neither absolute nor beginning with ~/"),
        ("[\"xterm\", \"{command}\", \"{command}\"]", "it has the command twice"),
        (
            "[\"sh\", \"-c\", \"cd {folder}\"]",
            "\"cd {folder}\" has more than its placeholder, which must be a word of its own",
        ),
        ("[\"xterm\", \"a\\u0000b\"]", "\"a\\0b\" has a null character"),
    ] {
        let problem = problem(&format!("actions.terminal = {value}"));
        assert!(problem.contains(&format!("; {what}. The default, [], is used.")), "{problem}");
    }
    let full = format!("[\"{ROOT}usr/bin/xterm\"]");
    for value in [full.as_str(), "[\"~/bin/xterm\", \"-e\"]", "[\"xterm\", \"{folder}\", \"{folder}\"]"] {
        assert!(!right(&format!("actions.terminal = {value}")).actions.terminal.is_empty());
    }
}

#[test]
fn the_copilot_cli_is_named_by_its_full_path() {
    for value in ["\"copilot\"", "\"./copilot\"", "\"~user/copilot\""] {
        assert!(problem(&format!("actions.copilot = {value}")).contains("is neither"));
    }
    assert!(problem("actions.copilot = \"/a\\u0000\"").contains("has a null character"));
}

#[test]
fn servers_are_read() {
    let config = right(
        r#"
        [[server]]
        address = "127.0.0.1:4321"
        [[server]]
        address = "[::1]:4321"
        token-file = "~/token"
        [[server]]
        address = "[::ffff:127.1.2.3]:1"
        token-env = "A_TOKEN"
        "#,
    );
    let server = |address: &str, token| ServerSetting { address: address.parse().unwrap(), token };
    assert_eq!(
        config.servers,
        [
            server("127.0.0.1:4321", None),
            server("[::1]:4321", Some(TokenSource::File("~/token".into()))),
            server("127.1.2.3:1", Some(TokenSource::Env("A_TOKEN".into()))),
        ]
    );
}

/// A token is sent unencrypted, and whoever reads it can run anything here.
#[test]
fn only_loopback_is_a_servers_address() {
    let form = "must be an address of this machine with its port, such as \"127.0.0.1:4321\" or \"[::1]:4321\"";
    for (address, what) in [
        ("10.0.0.1:80", "10.0.0.1:80 is not on this machine's loopback, and nothing is sent anywhere else"),
        ("0.0.0.0:80", "0.0.0.0:80 is not on this machine's loopback, and nothing is sent anywhere else"),
        ("[::]:80", "[::]:80 is not on this machine's loopback, and nothing is sent anywhere else"),
        ("[::ffff:8.8.8.8]:80", "8.8.8.8:80 is not on this machine's loopback, and nothing is sent anywhere else"),
        ("127.0.0.1:0", "0 is not a port"),
        ("127.0.0.1", "this is not one"),
        ("127.0.0.1:99999", "this is not one"),
        ("localhost:80", "names are not looked up"),
        ("http://user:secret@127.0.0.1:80/", "this is not one"),
        ("", "this is not one"),
    ] {
        assert_eq!(
            problem(&format!("[[server]]\naddress = \"{address}\"")),
            format!("2:11: `server.address` {form}; {what}. This server is ignored.")
        );
    }
    assert!(problem("[[server]]\naddress = 4321").contains("this is of type integer. This server is ignored."));
    assert_eq!(problem("[[server]]\n"), "1:1: a server needs an `address`. This server is ignored.");
}

/// A value that may be a token by mistake is not quoted: problems go to logs and terminals.
#[test]
fn a_token_is_neither_taken_from_the_config_nor_quoted() {
    let hidden = "s3cr3t-t0k3n";
    for entry in [
        "token = \"s3cr3t-t0k3n\"",
        "token = [\"s3cr3t-t0k3n\"]",
        "token.file = \"s3cr3t-t0k3n\"",
        "token-env = \"s3cr3t-t0k3n\"",
        "token-file = \"s3cr3t-t0k3n\"",
        "token-file = \"~/a\"\ntoken-env = \"s3cr3t-t0k3n\"",
        "token-file = \"~/a\"\ntoken = \"s3cr3t-t0k3n\"",
    ] {
        let problem = problem(&format!("[[server]]\naddress = \"127.0.0.1:1\"\n{entry}"));
        assert!(!problem.contains(hidden) && problem.ends_with(" This server is ignored."), "{problem}");
    }
    let bare = wrong("[[server]]\ntoken = s3cr3t-t0k3n");
    assert!(!bare[0].contains(hidden), "{bare:?}");
    let (config, problems) = read_text("[[server]]\naddress = \"127.0.0.1:1\"\ntokens = \"s3cr3t-t0k3n\"");
    assert_eq!(problems, ["3:1: unknown key `server.tokens`, did you mean `token-env`? It is ignored."]);
    assert_eq!(config.servers.len(), 1);
    let line = problem("[[server]]\naddress = \"127.0.0.1:1\"\ntoken = \"x\"");
    assert!(line.starts_with("3:1: a token must not be in the settings: `token-file` names a file"), "{line}");
    let line = problem("[[server]]\naddress = \"127.0.0.1:1\"\ntoken-file = \"~/t\"\ntoken-env = \"T\"");
    assert!(line.contains("`token-file` and `token-env` both say where the token is"), "{line}");
}

#[test]
fn a_wrong_server_costs_no_other() {
    let (config, problems) = read_text(
        "[[server]]\naddress = \"127.0.0.1:1\"\n[[server]]\nadress = \"127.0.0.1:2\"\n[[server]]\n\
         address = \"127.0.0.1:1\"\ntoken-env = \"T\"\n[[server]]\naddress = \"127.0.0.1:3\"\n",
    );
    assert_eq!(
        problems,
        [
            "3:1: a server needs an `address`. This server is ignored.",
            "4:1: unknown key `server.adress`, did you mean `address`? It is ignored.",
            "5:1: there is a server at 127.0.0.1:1 already. This one is ignored.",
        ]
    );
    let ports: Vec<_> = config.servers.iter().map(|server| server.address.port()).collect();
    assert_eq!(ports, [1, 3]);
}

#[test]
fn servers_are_tables() {
    for (text, kind) in
        [("[server]\naddress = \"127.0.0.1:1\"", "table"), ("server = 3", "integer"), ("server = [1, {}]", "array")]
    {
        let problem = problem(text);
        let what =
            format!("`server` must be tables, each written `[[server]]`; this is of type {kind}. It is ignored.");
        assert!(problem.ends_with(&what), "{problem}");
    }
    assert_eq!(problem("[[servers]]"), "1:3: unknown key `servers`, did you mean `[[server]]`? It is ignored.");
}

/// Any `[actions]` that a file could set.
pub(super) fn any_actions() -> impl Strategy<Value = Actions> {
    let path = if cfg!(windows) { "(C:/|~/)[^\0{}]{0,10}" } else { "(/|~/)[^\0{}]{0,10}" };
    let program = prop_oneof!["[a-z][^\0/\\\\{}]{0,10}", path];
    let words = prop::collection::vec(prop_oneof!["[^\0{}]{0,10}", Just(FOLDER.to_owned())], 0..4);
    let terminal = prop::option::of((program, words, any::<bool>()));
    let terminal = terminal.prop_map(|terminal| {
        terminal.map_or(Vec::new(), |(program, words, placed)| {
            let command = placed.then(|| COMMAND.to_owned());
            std::iter::once(program).chain(words).chain(command).collect()
        })
    });
    let copilot = prop::option::of(FULL.prop_map(PathBuf::from));
    let permissions = (0..Permissions::ALL.len()).prop_map(|at| Permissions::ALL[at]);
    let prompt = prop::option::of("[^\0]{0,10}[a-z]");
    let held = (0..=15i64).prop_map(Span::seconds);
    (terminal, copilot, permissions, any::<[bool; 5]>(), prompt, held).prop_map(
        |(terminal, copilot, permissions, switches, continue_prompt, hold_sub_agents)| {
            let [auto_reconnect, resend, ask_servers, bridge_untried, scripts_may_answer] = switches;
            Actions {
                terminal,
                program: copilot,
                permissions,
                auto_reconnect,
                resend,
                continue_prompt,
                ask_servers,
                bridge_untried,
                scripts_may_answer,
                hold_sub_agents,
            }
        },
    )
}

/// Any `[[server]]`s that a file could set.
pub(super) fn any_servers() -> impl Strategy<Value = Vec<ServerSetting>> {
    let token = prop::option::of(prop_oneof![
        FULL.prop_map(|path| TokenSource::File(path.into())),
        "[A-Za-z_][A-Za-z0-9_]{0,10}".prop_map(TokenSource::Env),
    ]);
    let address = prop_oneof![
        (any::<u8>(), 1u16..).prop_map(|(last, port)| ([127, 0, 0, last], port).into()),
        (1u16..).prop_map(|port| (std::net::Ipv6Addr::LOCALHOST, port).into()),
    ];
    prop::collection::btree_map(address, token, 0..4)
        .prop_map(|servers| servers.into_iter().map(|(address, token)| ServerSetting { address, token }).collect())
}
