//! The sessions as metrics, in the text that both OpenMetrics and older readers of Prometheus take, such as the textfile
//! collector of its node exporter: gauges alone, without timestamps.
//!
//! One reading knows how many sessions there are, and how long they have been waiting so far; how long they were waited
//! for in a day follows from many readings, which Prometheus keeps. Sessions that ended are left out: only the last few are
//! listed, so their number says nothing.

use pilotlight_core::fleet::Row;
use pilotlight_core::time::{Span, Time};
use pilotlight_core::verdict::Status;
use std::collections::BTreeMap;
use std::fmt::Write;

/// The sessions of an agent on a machine that have one status.
#[derive(Clone, Copy, Default)]
struct Gauges {
    sessions: usize,
    waited: Span,
    longest: Span,
}

/// The name of the machine, if it is another one, and the name of the agent.
type MetricLabels<'a> = (Option<&'a str>, &'a str);

/// A family of metrics: its name, its unit, what it means, the statuses that it has, and its value in seconds or sessions.
struct Family {
    name: &'static str,
    unit: Option<&'static str>,
    help: &'static str,
    has: fn(Status) -> bool,
    value: fn(&Gauges) -> i64,
}

const FAMILIES: [Family; 3] = [
    Family {
        name: "pilotlight_sessions",
        unit: None,
        help: "Sessions that have not ended, by machine, agent and status.",
        has: |status| !status.has_ended(),
        value: |gauges| i64::try_from(gauges.sessions).unwrap_or(i64::MAX),
    },
    Family {
        name: "pilotlight_waiting_seconds",
        unit: Some("seconds"),
        help: "How long the sessions that wait for their user have waited so far, all together.",
        has: Status::waits,
        value: |gauges| gauges.waited.0 / 1000,
    },
    Family {
        name: "pilotlight_longest_wait_seconds",
        unit: Some("seconds"),
        help: "How long the session that has waited longest for its user has waited so far.",
        has: Status::waits,
        value: |gauges| gauges.longest.0 / 1000,
    },
];

/// Whether a machine is reached: 1 or 0.
const REACHED: &str = "pilotlight_host_reached";

/// Another machine, and whether it is reached.
pub(super) struct Host<'a> {
    pub(super) name: &'a str,
    pub(super) is_reached: bool,
}

/// The metrics of these sessions and of these other machines. An agent with any session on a machine has every status
/// there, so that a series does not end when its value is 0. Sessions of this machine have no host among their labels:
/// Prometheus adds where it has them from.
pub(super) fn text<'a>(rows: impl Iterator<Item = &'a Row>, hosts: &[Host<'_>], now: Time) -> String {
    let mut agents: BTreeMap<MetricLabels<'_>, Vec<(Status, Gauges)>> = BTreeMap::new();
    let mut unknown: BTreeMap<MetricLabels<'_>, usize> = BTreeMap::new();
    for row in rows {
        let none = || Status::ALL.map(|status| (status, Gauges::default())).to_vec();
        let gauges = agents.entry((row.host.as_deref(), row.agent.name())).or_insert_with(none);
        if !row.reached {
            *unknown.entry((row.host.as_deref(), row.agent.name())).or_default() +=
                usize::from(!row.status.has_ended());
            continue;
        }
        let waited = (now - row.since).max(Span::ZERO);
        for (_, gauges) in gauges.iter_mut().filter(|(status, _)| *status == row.status) {
            gauges.sessions += 1;
            gauges.waited = gauges.waited + waited;
            gauges.longest = gauges.longest.max(waited);
        }
    }
    let mut out = String::new();
    // Writing to a String cannot fail.
    for Family { name, unit, help, has, value } in FAMILIES {
        let _ = writeln!(out, "# TYPE {name} gauge");
        if let Some(unit) = unit {
            let _ = writeln!(out, "# UNIT {name} {unit}");
        }
        let _ = writeln!(out, "# HELP {name} {help}");
        for ((host, agent), gauges) in &agents {
            let unknown = unknown.get(&(*host, *agent)).copied().unwrap_or_default();
            let is_remote = host.is_some();
            let host = host.map(|host| format!("host=\"{}\",", escaped(host))).unwrap_or_default();
            let agent = escaped(agent);
            // What their status is now is unknown while their machine is not reached.
            if is_remote && name == FAMILIES[0].name {
                let _ = writeln!(out, "{name}{{{host}agent=\"{agent}\",status=\"unknown\"}} {unknown}");
            }
            for (status, gauges) in gauges.iter().filter(|(status, _)| has(*status)) {
                let _ = writeln!(out, "{name}{{{host}agent=\"{agent}\",status=\"{status}\"}} {}", value(gauges));
            }
        }
    }
    let _ =
        writeln!(out, "# TYPE {REACHED} gauge\n# HELP {REACHED} Whether another machine of the settings is reached.");
    for Host { name, is_reached } in hosts {
        let _ = writeln!(out, "{REACHED}{{host=\"{}\"}} {}", escaped(name), u8::from(*is_reached));
    }
    out + "# EOF\n"
}

/// A label's value.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use pilotlight_core::agent::Agent;
    use pilotlight_core::fleet::Session;
    use pilotlight_core::limits::Limits;
    use pilotlight_core::time::Moment;

    fn row(agent: &str, status: Status, since: Time) -> Row {
        let row = Session::default().row(Moment::default(), &Limits::default()).0;
        Row { agent: Agent::reported(agent).unwrap(), status, since, ..row }
    }

    #[test]
    fn case_308_sessions_are_counted_and_their_waits_added() {
        let now = Time(1_000_000);
        let rows = [
            row("one", Status::NeedsPermission, Time(900_000)),
            row("one", Status::NeedsPermission, Time(970_500)),
            row("one", Status::Working, Time(0)),
            row("one", Status::Stuck, Time(0)),
            // The clock was set back.
            row("two", Status::NeedsInput, Time(2_000_000)),
            row("two", Status::Ended, Time(0)),
        ];
        let text = text(rows.iter(), &[], now);
        for line in [
            "pilotlight_sessions{agent=\"one\",status=\"needs-permission\"} 2",
            "pilotlight_sessions{agent=\"one\",status=\"idle\"} 0",
            "pilotlight_sessions{agent=\"one\",status=\"stuck\"} 1",
            "pilotlight_waiting_seconds{agent=\"one\",status=\"needs-permission\"} 129",
            "pilotlight_longest_wait_seconds{agent=\"one\",status=\"needs-permission\"} 100",
            "pilotlight_waiting_seconds{agent=\"one\",status=\"permission-lost\"} 0",
            "pilotlight_sessions{agent=\"two\",status=\"needs-input\"} 1",
            "pilotlight_longest_wait_seconds{agent=\"two\",status=\"needs-input\"} 0",
        ] {
            assert!(text.lines().any(|it| it == line), "{line} is missing:\n{text}");
        }
        assert!(
            !text.contains("status=\"ended\"") && !text.contains("seconds{agent=\"one\",status=\"stuck\"}"),
            "{text}"
        );
        assert!(text.ends_with("\n# EOF\n"));
    }

    #[test]
    fn case_308_the_name_of_an_agent_is_escaped() {
        let rows = [row("a \"b\\", Status::Idle, Time(0))];
        assert!(
            text(rows.iter(), &[], Time(0)).contains("pilotlight_sessions{agent=\"a \\\"b\\\\\",status=\"idle\"} 1\n")
        );
        assert_eq!(escaped("a\nb"), "a\\nb");
    }

    #[test]
    fn case_447_sessions_of_other_machines_are_apart_and_a_machine_that_is_not_reached_is_told() {
        let remote = |host: &str, status| Row { host: Some(host.into()), ..row("one", status, Time(0)) };
        let rows = [
            row("one", Status::Idle, Time(0)),
            remote("devbox", Status::Idle),
            remote("devbox", Status::Stuck),
            remote("a\"b", Status::Idle),
        ];
        let hosts = [Host { name: "devbox", is_reached: true }, Host { name: "gpu", is_reached: false }];
        let text = text(rows.iter(), &hosts, Time(0));
        for line in [
            "pilotlight_sessions{agent=\"one\",status=\"idle\"} 1",
            "pilotlight_sessions{host=\"devbox\",agent=\"one\",status=\"idle\"} 1",
            "pilotlight_sessions{host=\"devbox\",agent=\"one\",status=\"stuck\"} 1",
            "pilotlight_sessions{host=\"a\\\"b\",agent=\"one\",status=\"idle\"} 1",
            "pilotlight_sessions{agent=\"one\",status=\"stuck\"} 0",
            "pilotlight_host_reached{host=\"devbox\"} 1",
            "pilotlight_host_reached{host=\"gpu\"} 0",
        ] {
            assert!(text.lines().any(|it| it == line), "{line} is missing:\n{text}");
        }
    }

    #[test]
    fn without_a_session_there_are_families_without_samples() {
        let text = text([].iter(), &[], Time(0));
        assert!(text.lines().all(|line| line.starts_with("# ")) && text.matches("# TYPE").count() == 4, "{text}");
    }
}
