//! Checks for what may keep Pilotlight from seeing, showing or doing its work: `pilotlight doctor`, and the body of a
//! bug report.
//!
//! A check only inspects. It runs on its own thread with a deadline: a folder on a server that is down, a bus that does
//! not answer or a program that hangs costs that check alone, and is itself reported. The result is a list of
//! [`Finding`]s: what was seen, how bad it is, and what to do. Nothing is ever written into Copilot's folders; a
//! [`Fix`](fix::Fix) repairs only our own files, after the user's consent.
//!
//! Each finding has two texts: one for the user, with paths and names, and one for the strangers who read a bug report.
//! The second is composed of fixed words and numbers, never derived from the first: what is not put in cannot leak.
//!
//! - `program`, `agents`, `containers`, `homes`, `reports`, `servers`, `desktop`, `bridge`, `machine`, `autostart` and `own` are the checks, one file a
//!   subject.
//! - [`check`] is what each of them is given and returns, [`finding`] one result.
//! - [`fix`] repairs our files, after [`ours`] found them broken; [`report`] writes a bug report, and [`redact`] chooses
//!   its words.

mod agents;
mod autostart;
pub mod bridge;
mod check;
#[cfg(target_os = "linux")]
pub(crate) mod containers;
mod desktop;
mod finding;
pub mod fix;
mod homes;
mod machine;
mod ours;
mod own;
mod program;
pub mod redact;
pub mod report;
mod reports;
mod servers;

pub(crate) use check::{CheckContext, HomeOrigin, HomeReason};
pub(crate) use finding::{Finding, Level};

use pilotlight_system::deadline::start;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A check that takes longer is reported as unfinished. Longer than the five seconds that a program has to print its
/// version.
const DEADLINE: Duration = Duration::from_secs(8);

/// A check: its name, its subject for a report that it did not finish, and its function.
type Check = (&'static str, &'static str, fn(&CheckContext) -> Vec<Finding>);

const CHECKS: [Check; 14] = [
    ("version", "this program", |_| vec![own::version()]),
    ("config", "the settings", |context| own::config(context)),
    ("on-change", "the commands of the settings", |context| own::on_change(context)),
    ("state", "what Pilotlight remembers", |context| own::state(context)),
    ("copilot", "the Copilot CLI", |context| program::program(context)),
    ("agents", "the other agents", |context| agents::agents(context)),
    ("sessions", "the agents' homes", homes_and_servers),
    ("reports", "what hooks report", |context| reports::reports(context)),
    ("containers", "agents in containers", |context| containers(context)),
    ("bridge", "the bridge to terminals", |context| bridge::bridge(context)),
    ("watches", "the limit of file watches", |context| machine::watches(context)),
    ("descriptors", "the limit of open files", |context| machine::descriptors(context)),
    ("desktop", "the session bus", |_| desktop::desktop()),
    ("autostart", "what is started at login", |_| autostart::autostart()),
];

#[cfg(target_os = "linux")]
use containers::containers;

/// Elsewhere, containers run in a machine of their own.
#[cfg(not(target_os = "linux"))]
fn containers(_: &CheckContext) -> Vec<Finding> {
    Vec::new()
}

fn homes_and_servers(context: &CheckContext) -> Vec<Finding> {
    let mut findings = homes::homes(context);
    findings.extend(servers::servers(context, &context.sessions));
    findings
}

/// Runs all checks at the same time. Takes as long as the slowest, at most [`DEADLINE`].
pub(crate) fn examine(context: &CheckContext) -> Vec<Finding> {
    let context = Arc::new(context.clone());
    let deadline = Instant::now() + DEADLINE;
    let running = CHECKS.map(|(check, subject, run)| {
        let context = Arc::clone(&context);
        (check, subject, start(check, move || run(&context)))
    });
    let mut findings = Vec::new();
    for (check, subject, receiver) in running {
        let left = deadline.saturating_duration_since(Instant::now());
        let (why, remedy) = match receiver.map(|receiver| receiver.recv_timeout(left)) {
            Ok(Ok(result)) => {
                findings.extend(result);
                continue;
            }
            Ok(Err(_)) => (
                format!(" within {} s", DEADLINE.as_secs()),
                "something there does not answer: a folder on another machine, or a program that hangs; check it and try again",
            ),
            Err(error) => (
                format!(": the system allows no further thread ({error})"),
                "raise the limit of your processes (`ulimit -u`), or of memory (`ulimit -v`), or end some; and try again",
            ),
        };
        let text = format!("{subject} could not be checked{why}");
        findings.push(Finding::problem(check, text, remedy).public());
    }
    findings
}
