//! `[[host]]`.

use proptest::prelude::*;

use super::*;
use crate::config::{Host, Reach};

fn by_ssh(name: &str, to: &str, program: &str) -> Host {
    Host { name: name.into(), reach: Reach::Ssh { to: to.into(), program: program.into() } }
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
    let boxed = Host { name: "box".into(), reach: Reach::Command(words) };
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
            assert!(problem(&entry).ends_with("This host is ignored."), "{entry}");
        }
    }
    assert_eq!(problem("ssh = \"devbox\""), "1:1: a host needs a `name`. This host is ignored.");
    let both = problem("name = \"a\"\nssh = \"a\"\ncommand = [\"x\"]");
    assert_eq!(both, "1:1: `ssh` and `command` both say how it is reached. This host is ignored.");
    assert!(problem("name = \"a\"\ncommand = []").contains("it is empty"));
    assert!(problem("name = \"a\"\ncommand = [\"-x\"]").contains("This host is ignored"));
    let (config, problems) = read_text("[[host]]\nname = \"a\"\n[[host]]\nname = \"a\"\nssh = \"b\"\n");
    assert_eq!(problems, ["3:1: there is a host called a already. This one is ignored."]);
    assert_eq!(config.hosts, [by_ssh("a", "a", "pilotlight")]);
}

pub(super) fn any_hosts() -> impl Strategy<Value = Vec<Host>> {
    let ssh = ("[a-z@.][a-z0-9@.:-]{0,8}", "[~a-z/][a-z/.-]{0,8}").prop_map(|(to, program)| Reach::Ssh { to, program });
    let command = ("[a-z]{1,8}", prop::collection::vec("\\PC{0,4}", 0..3))
        .prop_map(|(program, words)| Reach::Command([vec![program], words].concat()));
    prop::collection::btree_map("[a-z0-9._][a-z0-9._-]{0,8}", prop_oneof![ssh, command], 0..3)
        .prop_map(|hosts| hosts.into_iter().map(|(name, reach)| Host { name, reach }).collect())
}
