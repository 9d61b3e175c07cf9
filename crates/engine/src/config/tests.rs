//! What is read from a config, the problems of a wrong one, and that a printed config is read back.

mod actions;
mod hosts;
mod notifications;
mod on_change;

use proptest::prelude::*;

use super::problem::Position;
use super::values::{Homes, Owners, ServiceUse};
use super::*;
use pilotlight_core::limits::Limits;
use pilotlight_core::time::Span;
use std::fs;
use std::path::PathBuf;

/// Where full paths begin.
const ROOT: &str = if cfg!(windows) { "C:/" } else { "/" };
/// A pattern of full paths, and of paths in the home folder.
const FULL: &str = if cfg!(windows) { "(C:/|~/)[^\0]{0,20}" } else { "(/|~/)[^\0]{0,20}" };

/// The config of `text`, and its problems as shown, without the name of the file.
fn read_text(text: &str) -> (Config, Vec<String>) {
    let (config, problems) = parse(text, Path::new("c"));
    let shown = problems.iter().map(|problem| problem.to_string().strip_prefix("c:").unwrap().trim().to_owned());
    (config, shown.collect())
}

/// The config of a `text` without problems.
fn right(text: &str) -> Config {
    let (config, problems) = read_text(text);
    assert_eq!(problems, [""; 0], "{text}");
    config
}

/// The problems of a `text` that sets nothing.
fn wrong(text: &str) -> Vec<String> {
    let (mut config, problems) = read_text(text);
    // These may hide more than usual then (case 621).
    config.notifications.rules.detail = Config::default().notifications.rules.detail;
    config.actions.ask_servers = Config::default().actions.ask_servers;
    config.homes.discover = Config::default().homes.discover;
    config.list.last_message = Config::default().list.last_message;
    config.service = Config::default().service;
    assert_eq!(config, Config::default(), "{text}");
    problems
}

#[test]
fn an_empty_config_has_the_defaults() {
    for text in ["", "\n\n", "# only words\n", "[limits]\n[owners]\n[list]\n[actions]\n", "server = []", "\u{feff}"] {
        assert_eq!(right(text), Config::default());
    }
}

#[test]
fn every_kind_of_setting_is_read() {
    let config = right(&format!(
        r#"
        homes = ["{ROOT}srv/copilot", '~/other']
        owners.names = ["copilot-nightly"]
        list = {{ ended-for = "2d", ended-most = 0, last-message = false }}
        [limits]
        fresh-quiet = 30
        fresh-stuck = "1m30s"
        tool-busy-stuck = 0x1c20
        "#
    ));
    let limits = Limits {
        fresh_quiet: Span::seconds(30),
        fresh_stuck: Span::seconds(90),
        tool_busy_stuck: Span::seconds(7200),
        ..Limits::default()
    };
    assert_eq!(
        config,
        Config {
            homes: Homes { also: vec![format!("{ROOT}srv/copilot").into(), "~/other".into()], discover: true },
            limits,
            owners: Owners { names: vec!["copilot-nightly".into()] },
            list: List { ended_for: Span::hours(48), ended_most: 0, last_message: false },
            ..Config::default()
        }
    );
}

/// A limit without a key could not be set; two keys of one limit would overwrite each other.
#[test]
fn every_limit_has_one_key() {
    let keys: Vec<_> = SETTINGS.iter().filter(|setting| setting.table == "limits").collect();
    assert_eq!(keys.len(), size_of::<Limits>() / size_of::<Span>(), "each field of Limits is a span");
    let text: String = keys.iter().enumerate().map(|(at, s)| format!("{} = {}\n", s.key, at + 1)).collect();
    let config = right(&format!("[limits]\n{text}"));
    for (at, setting) in keys.iter().enumerate() {
        assert_eq!(setting.show(&config), format!("\"{}s\"", at + 1));
        let field = setting.key.replace('-', "_");
        assert!(format!("{:?}", config.limits).contains(&format!("{field}: ")), "{field}");
    }
}

#[test]
fn the_list_of_settings_is_in_order() {
    let mut tables: Vec<_> = SETTINGS.iter().map(|setting| setting.table).collect();
    tables.dedup();
    assert_eq!(
        tables,
        [
            "homes",
            "limits",
            "owners",
            "list",
            "tray",
            "actions",
            "claude-code",
            "codex",
            "notifications",
            "log",
            "agents"
        ],
        "the settings of a table are together"
    );
    for setting in SETTINGS.iter() {
        assert!(!setting.meaning.contains('\n'));
    }
}

#[test]
fn an_unknown_key_is_reported_with_its_position_and_the_nearest_key() {
    let (config, problems) = read_text("# words\n[limits]\nfresh-stuck = 90\n  fresh-qiet = \"60s\"\n");
    assert_eq!(problems, ["4:3: unknown key `limits.fresh-qiet`, did you mean `fresh-quiet`? It is ignored."]);
    assert_eq!(config.limits.fresh_stuck, Span::seconds(90), "the rest of the file counts");
    let path = Path::new("/home/u/.config/pilotlight/config.toml");
    assert_eq!(
        parse("home = []", path).1[0].to_string(),
        "/home/u/.config/pilotlight/config.toml:1:1: unknown key `home`, did you mean `[homes]`? It is ignored."
    );
}

#[test]
fn a_key_that_resembles_no_other_gets_no_hint() {
    assert_eq!(wrong("zzz.y = 1"), ["1:1: unknown key `zzz`. It is ignored."]);
    assert_eq!(
        wrong("[zzz]\na = 1\nb = 1"),
        ["1:2: unknown key `zzz`. It is ignored."],
        "its keys are not reported too"
    );
}

#[test]
fn a_wrong_value_costs_only_its_key() {
    let (config, problems) = read_text(
        "homes = \"/a\"\nowners.names = [\"ok\", 3]\n[limits]\nfresh-quiet = true\nfresh-stuck = \"soon\"\ntool-quiet = -1\n\
         tool-stuck = 1.5\ncrashed = \"1x\"\nanswered = 9223372036854775807\nresumed = []\nownerless = \"5m\"\n\
         [list]\nended-for = 2020-01-01\nended-most = -3\n",
    );
    let span = "must be a span of time, such as \"90s\" or \"1h30m\", or an integer of seconds";
    assert_eq!(
        problems,
        [
            "1:9: `homes` must be a list of folders, each absolute or beginning with ~/; this is of type string. \
             The default, [], is used."
                .to_owned(),
            "2:23: `owners.names` must be a list of file names of programs; this is of type integer. \
             The default, [], is used."
                .to_owned(),
            format!("4:15: `limits.fresh-quiet` {span}; this is of type boolean. The default, \"1m\", is used."),
            format!(
                "5:15: `limits.fresh-stuck` {span}; \"soon\" is not a number with a unit. The default, \"2m\", is used."
            ),
            format!("6:14: `limits.tool-quiet` {span}; this is not positive. The default, \"10m\", is used."),
            format!("7:14: `limits.tool-stuck` {span}; this is of type float. The default, \"11m\", is used."),
            format!(
                "8:11: `limits.crashed` {span}; \"1x\" has an unknown unit (known are ms, s, m, h and d). \
                 The default, \"1d\", is used."
            ),
            format!("9:12: `limits.answered` {span}; this is longer than 36500d. The default, \"5m\", is used."),
            format!("10:11: `limits.resumed` {span}; this is of type array. The default, \"30s\", is used."),
            format!("13:13: `list.ended-for` {span}; this is of type datetime. The default, \"1d\", is used."),
            "14:14: `list.ended-most` must be an integer, 0 or more; this is out of range. The default, 10, is used."
                .to_owned(),
        ]
    );
    let limits = Limits { ownerless: Span::minutes(5), ..Limits::default() };
    assert_eq!(config, Config { limits, ..Config::default() });
}

#[test]
fn folders_and_programs_are_checked() {
    let says = |text: &str, what: &str| {
        let problems = wrong(text);
        assert!(problems.len() == 1 && problems[0].contains(what), "{problems:?}");
    };
    says(r#"homes = ["~/a", "b/c"]"#, "1:17: `homes` must be a list");
    says(r#"homes = ["b/c"]"#, "\"b/c\" is neither.");
    says(r#"homes = ["~user/x"]"#, "\"~user/x\" is neither.");
    says(r#"homes = [""]"#, "\"\" is neither.");
    says(r#"homes = ["/a\u0000b"]"#, "\"/a\\0b\" has a null character.");
    says(r#"owners.names = [""]"#, "\"\" is empty.");
    says(r#"owners.names = ["/bin/x"]"#, "\"/bin/x\" is a path.");
    says(r#"owners.names = ['bin\x']"#, r#""bin\x" is a path."#);
    says(r#"owners.names = ["x\n"]"#, "\"x\\n\" has control characters.");
}

#[test]
fn a_table_must_be_a_table() {
    assert_eq!(
        wrong("limits = 3\n[[list]]\nended-most = 1\n"),
        [
            "1:1: `limits` must be a table, written `[limits]`; this is of type integer. It is ignored.",
            "2:3: `list` must be a table, written `[list]`; this is of type array. It is ignored.",
        ]
    );
}

#[test]
fn quiet_above_stuck_resets_both() {
    assert_eq!(
        wrong("[limits]\nfresh-stuck = \"2m\"\nfresh-quiet = \"10m\"\n"),
        ["3:1: `limits.fresh-quiet` (\"10m\") is above `limits.fresh-stuck` (\"2m\"). \
          Both get their defaults, \"1m\" and \"2m\"."]
    );
    assert_eq!(
        wrong("[limits]\nthinking-stuck = \"1m\""),
        ["2:1: `limits.thinking-quiet` (\"2m\", its default) is above `limits.thinking-stuck` (\"1m\"). \
          Both get their defaults, \"2m\" and \"10m\"."]
    );
    assert_eq!(
        wrong("[limits]\ntool-busy-stuck = \"1m\""),
        ["2:1: `limits.tool-quiet` (\"10m\", its default) is above `limits.tool-busy-stuck` (\"1m\"). \
          Both get their defaults, \"10m\" and \"1h\"."]
    );
    let problems = wrong("[limits]\nfresh-quiet = true\nfresh-stuck = 1\n");
    assert!(problems[1].starts_with("3:1: `limits.fresh-quiet` (\"1m\", its default) is above"), "{problems:?}");
    let equal = right("[limits]\nfresh-quiet = \"2m\"\n").limits;
    assert_eq!(equal.fresh_quiet, equal.fresh_stuck, "equal limits are no contradiction");
}

/// Resetting one pair can put its lower limit above a third: here tool-quiet, reset to 10 min, above tool-stuck.
#[test]
fn limits_agree_in_the_end() {
    let (config, problems) =
        read_text("[limits]\ntool-quiet = 50\ntool-stuck = 55\ntool-busy-stuck = 10\nfinishing = 5\n");
    let limits = Limits { finishing: Span::seconds(5), ..Limits::default() };
    assert_eq!(config.limits, limits);
    assert_eq!(
        problems,
        [
            "2:1: `limits.tool-quiet` (\"50s\") is above `limits.tool-busy-stuck` (\"10s\"). \
             Both get their defaults, \"10m\" and \"1h\".",
            "3:1: `limits.tool-quiet` (\"10m\", its default) is above `limits.tool-stuck` (\"55s\"). \
             Both get their defaults, \"10m\" and \"11m\".",
        ]
    );
}

#[test]
fn a_file_that_is_not_toml_sets_nothing_and_says_where() {
    let says = |text: &str, what: &str| {
        let (config, problems) = read_text(text);
        assert_eq!((config, problems.len()), (Config::careful(), 1), "{problems:?}");
        assert!(problems[0].starts_with(what), "{problems:?}");
        assert!(problems[0].contains(". Until you repair it, the defaults apply, "), "{problems:?}");
    };
    says("[limits]\nfresh-quiet = 30\nfresh-stuck = = 2\n", "3:15: not TOML: ");
    says("[limits]\nfresh-quiet = 30\nfresh-quiet = 31\n", "3:1: not TOML: duplicate key");
    says("[limits]\nfresh-quiet = 30\n[limits]\n", "3:2: not TOML: duplicate key");
    says("limits.crashed = 30\n[limits]\nfinishing = 9\n", "2:2: not TOML: duplicate key");
    says("homes = [\"/a\"", "1:");
    says("\0", "1:");
    says("<<<<<<< HEAD\n", "1:");
    says(&format!("{}x = 1", "a.".repeat(100_000)), "not TOML: ");
    says(&format!("homes = {}", "[".repeat(100_000)), "1:");
}

#[test]
fn messages_escape_and_cut_what_they_quote() {
    let problems = wrong("\"\\u001b[2J\\n\\u202e\" = 1\n[limits]\n\"a\\u0007\" = 2\ncrashed = \"\\u001b[1m\"\n");
    assert_eq!(problems[0], r"1:1: unknown key `\u{1b}[2J\n\u{202e}`. It is ignored.");
    assert_eq!(problems[1], r"3:1: unknown key `limits.a\u{7}`. It is ignored.");
    assert!(problems[2].contains(r#""\u{1b}[1m" is not a number"#), "{problems:?}");
    let long = wrong(&format!("{} = 1", "k".repeat(500_000)));
    assert!(long.len() == 1 && long[0].len() < 200, "{}", long[0].len());
}

#[test]
fn the_first_of_very_many_problems_are_reported_and_the_rest_counted() {
    let problems = wrong(&(0..1000).rev().map(|n| format!("zz{n} = 1\n")).collect::<String>());
    assert_eq!(problems.len(), 21);
    assert!(problems[0].starts_with("1:1: ") && problems[19].starts_with("20:1: "), "{problems:?}");
    assert_eq!(problems[20], "980 more like these.");
}

#[test]
fn a_missing_file_is_no_problem() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(load(&folder.path().join("none").join("config.toml"), None), (Config::default(), vec![]));
}

#[test]
fn a_file_is_loaded() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config.toml");
    fs::write(&file, "list.ended-most = 3\nnonsense = 1\n").unwrap();
    let (config, problems) = load(&file, None);
    assert_eq!(config.list.ended_most, 3);
    assert_eq!((problems.len(), problems[0].at), (1, Some(Position { line: 2, column: 1 })));
    assert_eq!(problems[0].path, file);
}

#[test]
fn a_file_that_cannot_be_used_is_one_problem() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config.toml");
    let says = |path: &Path, what: &str| {
        let (config, problems) = load(path, None);
        assert_eq!(config, Config::careful());
        let problems: Vec<_> = problems.iter().map(ToString::to_string).collect();
        let instead = "Until you repair it, the defaults apply, with these exceptions: popups show neither titles nor \
                       commands, no last message is shown, and Pilotlight looks for no further homes, asks no server \
                       about a silent session, and does not use Codex's daemon.";
        assert_eq!(problems, [format!("{}: {what}. {instead}", path.display())]);
    };
    says(folder.path(), "is a folder, not a file");
    fs::write(&file, b"# words\n# more\n\xff = 1\n").unwrap();
    says(&file, "is not UTF-8 text (line 3)");
    fs::write(&file, " ".repeat(LARGEST as usize + 1)).unwrap();
    says(&file, "is larger than 1 MiB");
    fs::write(&file, " ".repeat(LARGEST as usize)).unwrap();
    assert_eq!(load(&file, None), (Config::default(), vec![]));
}

/// Opening a FIFO would wait for a writer forever.
#[cfg(target_os = "linux")]
#[test]
fn only_a_plain_file_is_opened() {
    use rustix::fs::{CWD, FileType, Mode};
    let folder = tempfile::tempdir().unwrap();
    let fifo = folder.path().join("config.toml");
    rustix::fs::mknodat(CWD, &fifo, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    for path in [&fifo, Path::new("/dev/zero")] {
        let (config, problems) = load(path, None);
        assert_eq!(config, Config::careful());
        assert_eq!(problems[0].what, "is a pipe or a device, not a file");
    }
}

#[cfg(unix)]
#[test]
fn an_unreadable_file_says_why() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("file"), "").unwrap();
    let (config, problems) = load(&folder.path().join("file").join("config.toml"), None);
    assert_eq!(config, Config::careful());
    assert!(problems[0].what.starts_with("cannot be read: Not a directory"), "{problems:?}");
}

#[test]
fn the_printed_config_explains_each_key() {
    let text = print(&Config::default());
    assert_eq!(right(&text), Config::default());
    for setting in SETTINGS.iter() {
        assert!(text.contains(&format!("\n# {}\n# Takes ", setting.meaning)), "{}", setting.key);
    }
    assert!(text.contains(
        "\n[limits]\n# No tool used in this turn: `quiet` after this silence.\n# Takes a span of time, such as \"90s\" or \
         \"1h30m\", or an integer of seconds. Default: \"1m\"\nfresh-quiet = \"1m\"\n"
    ));
}

/// Only free text can hold a name or a path.
#[test]
fn settings_that_take_free_text_are_private() {
    let takes = |setting: &Setting, value: &str| {
        let text = format!("{} = {value}", setting.name());
        parse(&text, Path::new("c")).1.is_empty()
    };
    for setting in SETTINGS.iter() {
        let is_free = ["\"~/a\"", "[\"~/a\"]", "[\"a\"]"].iter().any(|value| takes(setting, value));
        assert_eq!(is_free, printed::PRIVATE.contains(&setting.name().as_str()), "{}", setting.name());
    }
}

/// Any config that a file could set.
fn any_config() -> impl Strategy<Value = Config> {
    let folder = prop_oneof![FULL.boxed(), Just("~".to_owned()).boxed()].prop_map(PathBuf::from);
    let program = "[^/\\\\\\p{Cc}]{1,20}";
    let span = || (1i64..=36_500 * 86_400_000).prop_map(Span);
    let limits = prop::array::uniform13(span()).prop_map(|mut spans| {
        // Sorted, so that no `quiet` is above its `stuck`.
        spans.sort_unstable();
        let keys = SETTINGS.iter().filter(|setting| setting.table == "limits");
        let lines = keys.zip(spans).map(|(setting, at)| format!("{} = \"{}\"\n", setting.key, span::text(at)));
        right(&format!("[limits]\n{}", lines.collect::<String>())).limits
    });
    let homes = (prop::collection::vec(folder, 0..4), any::<bool>());
    let homes = homes.prop_map(|(also, discover)| Homes { also, discover });
    let names = prop::collection::vec(program, 0..4);
    let list = (span(), 0..usize::MAX >> 1, any::<bool>());
    let list = list.prop_map(|(ended_for, ended_most, last_message)| List { ended_for, ended_most, last_message });
    let rest = (actions::any_actions(), actions::any_servers(), notifications::any_notifications());
    let tables = (on_change::any_commands(), hosts::any_hosts());
    (homes, names, limits, list, rest, tables).prop_map(|(homes, names, limits, list, rest, (on_change, hosts))| {
        let (actions, servers, notifications) = rest;
        let owners = Owners { names };
        Config { homes, limits, owners, list, actions, notifications, servers, on_change, hosts, ..Config::default() }
    })
}

#[test]
fn case_796_homes_are_a_list_or_a_table() {
    let homes = |text: &str| right(text).homes;
    let also = |also: &[&str], discover| Homes { also: also.iter().map(PathBuf::from).collect(), discover };
    assert_eq!(homes(""), also(&[], true));
    assert_eq!(homes("homes = ['~/a']"), also(&["~/a"], true));
    assert_eq!(homes("[homes]\nalso = ['~/a']\ndiscover = false"), also(&["~/a"], false));
    assert_eq!(homes("homes.discover = false"), also(&[], false));
    // A mistake discovers nothing that was not discovered before.
    let after = |text: &str| parse(text, Path::new("config.toml")).0.homes.discover;
    assert!(!after("[homes]\ndiscover = 1") && !after("[homes]\ndiscovr = false") && !after("[homes"));
}

/// What shows a session's words, or connects to an agent's service, is not switched on by a mistake.
#[test]
fn case_800_a_mistake_shows_no_message_and_asks_no_daemon() {
    let shows = |text: &str| parse(text, Path::new("config.toml")).0.list.last_message;
    assert!(shows("") && shows("[list]\nended-most = 1\nnonsense = 2"));
    assert!(!shows("[list]\nlast-message = 'no'") && !shows("list.last-mesage = false") && !shows("[list"));
    assert!(!shows("[lisst]\nlast-message = false"));
    let uses = |text: &str| parse(text, Path::new("config.toml")).0.service;
    assert_eq!((uses(""), uses("[codex]\ndaemon = 'ask'")), (ServiceUse::Ask, ServiceUse::Ask));
    for mistake in ["[codex]\ndaemon = 'of'", "codex.deamon = 'off'", "[codx]\ndaemon = 'off'", "[codex"] {
        assert_eq!(uses(mistake), ServiceUse::Off, "{mistake}");
    }
    // Both are as they were last valid.
    let before = Config { service: ServiceUse::Watch, ..Config::default() };
    let (config, _) = parse_after("list.last-message = 1\ncodex.daemon = 1", Path::new("config.toml"), Some(&before));
    assert_eq!(config, before);
    let (_, problems) = read_text("[list]\nlast-message = 'no'");
    assert!(problems[0].ends_with(" Until you repair it, false is used."), "{problems:?}");
}

proptest! {
    #[test]
    fn a_printed_config_is_read_back(config in any_config()) {
        let text = print(&config);
        let (read, problems) = read_text(&text);
        prop_assert_eq!(problems, vec![""; 0], "{}", text);
        prop_assert_eq!(read, config);
    }

    /// Each problem is one line without control characters, whatever the file.
    #[test]
    fn problems_are_single_lines(text in "(\\[(limits|list|actions|\\[(server|on-change|host)\\])\\]|run|status|homes|fresh-quiet|ended-most|terminal|token(-env)?|address|=|\"|\\[|\\]|\n|\\.|1|-|\\PC|\\p{Cc}){0,40}") {
        for problem in read_text(&text).1 {
            prop_assert!(!problem.contains(char::is_control), "{problem:?}");
        }
    }
}
