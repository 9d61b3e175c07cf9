//! Which agents are shown: filters, and agents that are switched off.

use crate::support::synthetic::{User, Watch};
use crate::support::{SOON, wait_until};
use std::fs;
use std::process::Output;
use std::time::Duration;

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[test]
fn case_285_a_command_is_limited_to_agents_that_are_known() {
    let user = User::new();
    user.session(1).ended(Duration::from_secs(60));
    assert_eq!(user.rows(&["--agent", "copilot"]), user.rows(&[]));
    assert_eq!(user.rows(&[])[0]["agent"], "copilot");
    for command in [&["status", "--agent", "n\u{1b}[31mobody"][..], &["watch", "--json", "--agent", "n\u{1b}[31mobody"]]
    {
        let output = user.run(command);
        let said = stderr(&output);
        assert!(output.status.code() == Some(2) && said.contains("copilot") && !said.contains("\u{1b}[31m"), "{said}");
    }
}

#[test]
fn case_286_an_agent_that_is_switched_off_is_not_watched_until_it_is_switched_on() {
    let user = User::new();
    let session = user.session(1);
    let _owner = session.owner(&user);
    session.prompt();
    let config = user.scratch.path().join("config.toml");
    let path = config.to_str().unwrap();
    fs::write(&config, "[agents]\ncopilot = true\n").unwrap();
    let mut command = user.pilotlight(&["watch", "--json"]);
    command.env("PILOTLIGHT_CONFIG", path);
    let watch = Watch::start(command);
    watch.wait_status(&session, "working");
    let is_gone = |gone: bool| {
        let latest = || watch.latest().get(&session.id).cloned();
        wait_until(
            SOON,
            "the switch takes effect",
            || format!("{:?}", latest()),
            || (latest()?["removed"].as_bool().unwrap_or(false) == gone).then_some(()),
        );
    };
    fs::write(&config, "[agents]\ncopilot = false\n").unwrap();
    is_gone(true);
    let status = |args: &[&str]| user.pilotlight(args).env("PILOTLIGHT_CONFIG", path).output().unwrap();
    let off = status(&["status", "--json"]);
    assert!(off.status.code() == Some(3) && stderr(&off).contains("switches copilot off"), "{off:?}");
    let limited = status(&["status", "--agent", "copilot"]);
    assert!(limited.status.code() == Some(2) && stderr(&limited).contains("is switched off"), "{limited:?}");
    let named = status(&["status", "--json", "--home", user.home().to_str().unwrap()]);
    assert!(String::from_utf8(named.stdout).unwrap().contains(&session.id), "the command line was meant so");
    let doctor = String::from_utf8(status(&["doctor"]).stdout).unwrap();
    assert!(doctor.contains("Copilot is switched off"), "{doctor}");
    fs::write(&config, "").unwrap();
    is_gone(false);
}
