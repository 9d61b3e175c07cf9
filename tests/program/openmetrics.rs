//! The metrics of the real program, and the rules of docs/metrics.md. What Prometheus' own tools say of both is a test
//! that needs them: `promtool`, in the Debian package `prometheus`.

use crate::control::hosts::{name_hosts, serves};
use crate::support::desktop::sessions::Sessions;
use crate::support::desktop::tray::User;
use crate::support::synthetic::User as NearUser;
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn metrics(user: &User) -> Output {
    user.command(None, &["status", "--openmetrics"]).output().unwrap()
}

/// Sessions that work, ask and rest, and the metrics of them.
fn some_metrics() -> String {
    let sessions = Sessions::new();
    let user = User::new(&sessions);
    let (asks, works) = (sessions.add("secret-title"), sessions.add("two"));
    let _idle = sessions.add_answered("three");
    for session in [&asks, &works] {
        session.prompt();
        session.tool("c", "bash", "secret-command");
    }
    asks.ask_for("r", "c", "secret-command");
    let output = metrics(&user);
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn case_308_the_sessions_are_metrics_without_anything_that_they_say() {
    let text = some_metrics();
    let value = |metric: &str, status: &str| {
        let series = format!("{metric}{{agent=\"copilot\",status=\"{status}\"}} ");
        let line = text.lines().find_map(|line| line.strip_prefix(&series));
        line.unwrap_or_else(|| panic!("{series} is missing:\n{text}")).parse::<u64>().unwrap()
    };
    assert_eq!(
        ["needs-permission", "working", "idle", "stuck"].map(|it| value("pilotlight_sessions", it)),
        [1, 1, 1, 0]
    );
    assert!(value("pilotlight_waiting_seconds", "needs-permission") < 600);
    assert_eq!(value("pilotlight_longest_wait_seconds", "needs-input"), 0);
    assert!(text.ends_with("\n# EOF\n") && !text.contains("secret"), "{text}");
    let user = User::new(&Sessions::new());
    // The home was deleted with the sessions.
    let output = metrics(&user);
    assert_eq!((output.status.code(), output.stdout.ends_with(b"\n# EOF\n")), (Some(3), true), "{output:?}");
}

#[test]
fn case_447_sessions_of_other_machines_are_metrics_with_their_machine() {
    let (near, remote) = (NearUser::new(), NearUser::new());
    let session = remote.session(1);
    let _owner = session.owner(&remote);
    session.prompt();
    session.asks_permission("r1");
    name_hosts(&near, &[("devbox", serves(&remote)), ("gpu", vec!["false".into()])]);
    let output = near.run(&["status", "--openmetrics"]);
    let text = String::from_utf8(output.stdout).unwrap();
    for line in [
        "pilotlight_sessions{host=\"devbox\",agent=\"copilot\",status=\"needs-permission\"} 1",
        "pilotlight_waiting_seconds{host=\"devbox\",agent=\"copilot\",status=\"needs-input\"} 0",
        "pilotlight_host_reached{host=\"devbox\"} 1",
        "pilotlight_host_reached{host=\"gpu\"} 0",
    ] {
        assert!(text.lines().any(|it| it == line), "{line} is missing:\n{text}");
    }
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() && said.contains("gpu is not reached"), "{said}");
}

/// The output of `promtool` with these arguments in a folder, which must succeed without a word of complaint.
fn promtool(folder: &Path, arguments: &[&str], input: Option<&str>) -> String {
    let mut command = Command::new("promtool");
    command.current_dir(folder).args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut running = command.spawn().expect("promtool is installed");
    std::io::Write::write_all(&mut running.stdin.take().unwrap(), input.unwrap_or_default().as_bytes()).unwrap();
    let output = running.wait_with_output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
#[ignore = "needs promtool; run by tests/long.sh"]
fn case_308_prometheus_takes_the_metrics_and_the_rules_of_the_recipe() {
    let scratch = tempfile::tempdir().unwrap();
    assert_eq!(promtool(scratch.path(), &["check", "metrics"], Some(&some_metrics())), "");
    let (near, remote) = (NearUser::new(), NearUser::new());
    remote.session(1).prompt();
    name_hosts(&near, &[("devbox", serves(&remote)), ("gpu", vec!["false".into()])]);
    let output = near.run(&["status", "--openmetrics"]).stdout;
    assert_eq!(promtool(scratch.path(), &["check", "metrics"], Some(&String::from_utf8(output).unwrap())), "");
    let page = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/metrics.md")).unwrap();
    let (_, rules) = page.split_once("    groups:\n").unwrap();
    let rules = rules.lines().map_while(|line| line.strip_prefix("    ")).map(|line| format!("{line}\n"));
    let rules = format!("groups:\n{}", rules.collect::<String>());
    std::fs::write(scratch.path().join("rules.yml"), rules).unwrap();
    promtool(scratch.path(), &["check", "rules", "rules.yml"], None);
    let tests = r#"
rule_files: [rules.yml]
evaluation_interval: 1m
tests:
  - interval: 1m
    input_series:
      - series: 'pilotlight_longest_wait_seconds{agent="copilot",status="needs-permission",instance="devbox"}'
        values: '0+60x30'
      - series: 'pilotlight_longest_wait_seconds{agent="copilot",status="needs-input",instance="devbox"}'
        values: '0x30'
      - series: 'pilotlight_longest_wait_seconds{host="gpu",agent="codex",status="needs-input",instance="laptop"}'
        values: '0x20 901x10'
      - series: 'pilotlight_host_reached{host="gpu",instance="laptop"}'
        values: '1x20 0x20'
      - series: 'node_textfile_mtime_seconds{file="/x/pilotlight.prom",instance="devbox"}'
        values: '0x30'
    alert_rule_test:
      - {eval_time: 15m, alertname: SessionWaits}
      - eval_time: 16m
        alertname: SessionWaits
        exp_alerts:
          - exp_labels: {agent: copilot, instance: devbox}
            exp_annotations: {summary: 'A session of copilot on devbox has waited for 16m 0s'}
      - eval_time: 21m
        alertname: SessionWaits
        exp_alerts:
          - exp_labels: {agent: copilot, instance: devbox}
            exp_annotations: {summary: 'A session of copilot on devbox has waited for 21m 0s'}
          - exp_labels: {host: gpu, agent: codex, instance: laptop}
            exp_annotations: {summary: 'A session of codex on gpu has waited for 15m 1s'}
      - {eval_time: 35m, alertname: MachineNotReached}
      - eval_time: 36m
        alertname: MachineNotReached
        exp_alerts:
          - exp_labels: {host: gpu, instance: laptop}
            exp_annotations: {summary: 'Pilotlight on laptop does not reach gpu'}
      - {eval_time: 9m, alertname: SessionMetricsOld}
      - eval_time: 12m
        alertname: SessionMetricsOld
        exp_alerts:
          - exp_labels: {file: /x/pilotlight.prom, instance: devbox}
            exp_annotations: {summary: 'Pilotlight on devbox has written no metrics for 12m 0s'}
"#;
    std::fs::write(scratch.path().join("tests.yml"), tests).unwrap();
    promtool(scratch.path(), &["test", "rules", "tests.yml"], None);
}
