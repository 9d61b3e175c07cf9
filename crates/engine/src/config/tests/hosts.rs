//! `[[host]]`.

use proptest::prelude::*;

use super::*;
use crate::config::edit::{WrongPart, with_host, without_host, wrong_host};
use crate::config::{HostSetting, Reach};

fn by_ssh(name: &str, to: &str, program: &str) -> HostSetting {
    HostSetting { name: name.into(), reach: Reach::Ssh { to: to.into(), program: program.into(), last_message: false } }
}

#[test]
fn hosts_are_read() {
    let config = right(
        r#"
        [[host]]
        name = "devbox"
        [[host]]
        name = "gpu"
        ssh = "ada@10.0.0.7"
        program = "~/.local/bin/pilotlight"
        [[host]]
        name = "box"
        command = ["docker", "exec", "-i", "box", "pilotlight", "serve", "--stdio"]
        "#,
    );
    let words = ["docker", "exec", "-i", "box", "pilotlight", "serve", "--stdio"].map(str::to_owned).to_vec();
    let boxed = HostSetting { name: "box".into(), reach: Reach::Command(words) };
    let gpu = by_ssh("gpu", "ada@10.0.0.7", "~/.local/bin/pilotlight");
    assert_eq!(config.hosts, [by_ssh("devbox", "devbox", "pilotlight"), gpu, boxed]);
}

#[test]
fn case_401_a_wrong_host_is_left_out_and_nothing_of_it_reaches_a_shell_or_an_option() {
    let problem = |entry: &str| {
        let problems = wrong(&format!("[[host]]\n{entry}\n"));
        assert_eq!(problems.len(), 1, "{problems:?}");
        problems.into_iter().next().unwrap()
    };
    for bad in ["-oProxyCommand=x", "a b", "a;reboot", "$(x)", "", "a\u{1b}"] {
        let quoted = toml::Value::from(bad).to_string();
        for entry in [
            format!("name = {quoted}"),
            format!("name = \"a\"\nssh = {quoted}"),
            format!("name = \"a\"\nprogram = {quoted}"),
        ] {
            assert!(problem(&entry).ends_with("This machine is ignored."), "{entry}");
        }
    }
    assert_eq!(problem("ssh = \"devbox\""), "1:1: a machine needs a `name`. This machine is ignored.");
    let both = problem("name = \"a\"\nssh = \"a\"\ncommand = [\"x\"]");
    assert_eq!(both, "1:1: `ssh` and `command` both say how it is reached. This machine is ignored.");
    let told = problem("name = \"a\"\nlast-message = true\ncommand = [\"x\"]");
    assert_eq!(
        told,
        "1:1: instead of `last-message`, add \"--messages\" to the end of `command`. This machine is ignored."
    );
    assert!(problem("name = \"a\"\ncommand = []").contains("it is empty"));
    assert!(problem("name = \"a\"\ncommand = [\"-x\"]").contains("This machine is ignored"));
    let (config, problems) = read_text("[[host]]\nname = \"a\"\n[[host]]\nname = \"a\"\nssh = \"b\"\n");
    assert_eq!(problems, ["3:1: there is a machine called a already. This one is ignored."]);
    assert_eq!(config.hosts, [by_ssh("a", "a", "pilotlight")]);
}

#[test]
fn case_423_a_host_is_added_and_removed_and_nothing_else_is_touched() {
    let devbox = by_ssh("devbox", "ada@10.0.0.7", "~/.local/bin/pilotlight");
    let words = ["docker", "exec", "-i", "a \"b\"", "/p", "serve", "--stdio"].map(str::to_owned).to_vec();
    let boxed = HostSetting { name: "box".into(), reach: Reach::Command(words) };
    for text in [
        "",
        "# mine\n[limits] # so\nfresh-quiet = 30\n",
        "[tray]\ncount = true",
        "\u{feff}[[host]]\nname = \"gpu\" # hot\n# ssh = \"x\"\n\n# the list\n[list]\nended-most = 3\n",
        "[limits]\r\nfresh-quiet = 30\r\n\r\n# dear\r\n[[host]]\r\nname = \"gpu\"\r\n",
        "nonsense = 1\n[[host]]\nname = \"gpu\"\nssh = \"-x\"\n",
    ] {
        let one = with_host(text, &devbox).unwrap();
        assert!(one.starts_with(text), "{one}");
        let both = with_host(&one, &boxed).unwrap();
        assert_eq!(read_text(&both).0.hosts.iter().rev().take(2).collect::<Vec<_>>(), [&boxed, &devbox]);
        let without = without_host(&both, "devbox").unwrap();
        assert_eq!(without_host(&without, "box").unwrap().trim_end(), text.trim_end());
        assert_eq!(without_host(&without, "devbox"), None);
        assert_eq!(with_host(&one, &devbox), None, "two of one name");
    }
    let with_comments = "[[host]]\nname = \"a\"\n# about a\nssh = \"b\"\n\n# about c\n[[host]]\nname = \"c\"\n";
    assert_eq!(without_host(with_comments, "a").unwrap(), "# about c\n[[host]]\nname = \"c\"\n");
    assert_eq!(
        without_host(with_comments, "c").unwrap(),
        "[[host]]\nname = \"a\"\n# about a\nssh = \"b\"\n\n# about c\n"
    );
}

#[test]
fn case_423_what_cannot_be_edited_is_left_to_the_user() {
    let devbox = by_ssh("devbox", "devbox", "pilotlight");
    let inline = "host = [{ name = \"gpu\" }, { name = \"a\" }]\n";
    for text in [inline, "host = 1\n", "not TOML", "host.name = \"gpu\"\n"] {
        assert_eq!(with_host(text, &devbox), None, "{text}");
        assert_eq!(without_host(text, "gpu"), None, "{text}");
    }
    // A value that looks like a head.
    let text = "[[host]]\nname = \"gpu\"\ncommand = [\n  \"x\",\n  \"\"\"\n[[host]]\nname = 'a'\"\"\"\n]\n[tray]\ncount = true\n";
    let without = without_host(text, "gpu");
    assert!(without.is_none_or(|text| right(&text).hosts.is_empty() && right(&text).tray.count));
    assert_eq!(wrong_host(&devbox), None);
    for bad in [".", "..."] {
        assert_eq!(wrong_host(&by_ssh(bad, "devbox", "pilotlight")), Some(WrongPart::Name));
    }
    for bad in ["", "-x", "a b", "../x", "a\nb", "\u{202e}", &"x".repeat(25)] {
        assert!(wrong_host(&by_ssh(bad, "devbox", "pilotlight")).is_some(), "{bad}");
        assert!(bad == "../x" || bad.len() > 24 || wrong_host(&by_ssh("a", bad, "pilotlight")).is_some(), "{bad}");
    }
}

pub(super) fn any_hosts() -> impl Strategy<Value = Vec<HostSetting>> {
    let ssh = ("[a-z@.][a-z0-9@.:-]{0,8}", "[~a-z/][a-z/.-]{0,8}", any::<bool>())
        .prop_map(|(to, program, last_message)| Reach::Ssh { to, program, last_message });
    let command = ("[a-z]{1,8}", prop::collection::vec("\\PC{0,4}", 0..3))
        .prop_map(|(program, words)| Reach::Command([vec![program], words].concat()));
    let name = "[a-z0-9._][a-z0-9._-]{0,8}".prop_filter("dots alone", |name| name.chars().any(|c| c != '.'));
    prop::collection::btree_map(name, prop_oneof![ssh, command], 0..3)
        .prop_map(|hosts| hosts.into_iter().map(|(name, reach)| HostSetting { name, reach }).collect())
}
