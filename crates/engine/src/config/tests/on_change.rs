//! `[[on-change]]`.

use proptest::prelude::*;

use super::*;
use pilotlight_core::alert::Trigger;

fn command(names: &[&str], run: &[&str]) -> OnChange {
    let named = |name: &&str| Trigger::all().find(|trigger| trigger.name() == *name).unwrap();
    OnChange { triggers: names.iter().map(named).collect(), run: run.iter().map(|&word| word.to_owned()).collect() }
}

#[test]
fn commands_are_read() {
    let config = right(
        r#"
        [[on-change]]
        run = ["~/bin/phone"]
        [[on-change]]
        status = ["needs-permission", "idle", "done"]
        run = ["paplay", "", "a $(b)"]
        "#,
    );
    let usual = ["needs-permission", "needs-input", "permission-lost", "stuck", "crashed", "failed"];
    let named = command(&["needs-permission", "idle", "done"], &["paplay", "", "a $(b)"]);
    assert_eq!(config.on_change, [command(&usual, &["~/bin/phone"]), named]);
    assert_eq!(config.on_change[0].program_name(), "phone");
    assert_eq!(right("on-change = []"), Config::default());
}

#[test]
fn a_wrong_command_is_left_out_and_costs_no_other() {
    let (config, problems) = read_text(
        "[[on-change]]\nstatus = [\"idle\"]\n[[on-change]]\nrun = [\"a\"]\nwhen = 1\n[[on-change]]\nstatus = [\"idl\"]\nrun = [\"b\"]\n",
    );
    let status = "`on-change.status` must be a list of statuses, such as [\"needs-permission\", \"idle\"], or \"done\" for a long turn that ended";
    assert_eq!(
        problems,
        [
            "1:1: a command needs a `run`. This command is ignored.".to_owned(),
            "5:1: unknown key `on-change.when`. It is ignored.".to_owned(),
            format!("7:11: {status}; \"idl\" is not a status. This command is ignored."),
        ]
    );
    assert_eq!(config.on_change.len(), 1);
    let problem = |entry: &str| {
        let problems = wrong(&format!("[[on-change]]\n{entry}\n"));
        assert_eq!(problems.len(), 1, "{problems:?}");
        problems.into_iter().next().unwrap()
    };
    assert!(problem("status = []\nrun = [\"a\"]").contains("it is empty"));
    assert!(problem("status = \"idle\"\nrun = [\"a\"]").contains("this is of type string"));
    assert_eq!(
        wrong("[on-change]\nrun = [\"a\"]"),
        ["1:2: `on-change` must be tables, each written `[[on-change]]`; this is of type table. It is ignored."]
    );
}

/// They may hold the address of a webhook.
#[test]
fn case_301_no_problem_quotes_a_word_of_a_command() {
    for (run, what) in [
        ("[]", "it is empty"),
        ("[\"\", \"s3cr3t\"]", "its first word is not a program"),
        ("[\"-s3cr3t\"]", "its first word is not a program"),
        ("[\"bin/s3cr3t\"]", "its first word is a path, but neither absolute nor beginning with ~/"),
        ("[\"a\", \"s3cr3t\\u0000\"]", "this has a null character"),
        ("[\"a s3cr3t\", 3]", "this is of type integer"),
        ("\"a s3cr3t\"", "this is of type string"),
    ] {
        let problems = wrong(&format!("[[on-change]]\nrun = {run}"));
        let is_told =
            problems.len() == 1 && problems[0].contains(what) && problems[0].ends_with("This command is ignored.");
        assert!(is_told && !problems[0].contains("s3cr3t"), "{run}: {problems:?}");
    }
    let config = right("[[on-change]]\nrun = [\"a\", \"s3cr3t\"]");
    assert_eq!(redacted(&config), ["[[on-change]] = 1"]);
}

/// Any commands that a file could set.
pub(super) fn any_commands() -> impl Strategy<Value = Vec<OnChange>> {
    let trigger = prop::sample::select(Trigger::all().collect::<Vec<_>>());
    let words = ("[a-z~][^\0/\\\\]{0,9}", prop::collection::vec("[^\0]{0,9}", 0..3));
    let run = words.prop_map(|(program, words)| [program].into_iter().chain(words).collect());
    let command = (prop::collection::vec(trigger, 1..4), run);
    prop::collection::vec(command.prop_map(|(triggers, run)| OnChange { triggers, run }), 0..3)
}
