//! The sessions on other machines, for commands that look once: as the running tray knows them, else asked of each machine
//! that the settings name, with a limit.

use super::context::{Context, runtime};
use super::report::say;
use crate::agent::wing::agent_named;
use crate::config::Host;
use crate::control::pipe::lines::FromHost;
use crate::control::{self, HostReport};
use crate::core::far::{Account, Clocks, read};
use crate::core::fleet::Session;
use crate::core::session::far::Host as FarHost;
use crate::core::text::plain;
use crate::core::time::{Moment, Span};
use crate::hosts::{Link, News, Said, command};
use crate::system::clock::Clock;
use crate::system::paths;
use crate::system::runtime::Runtime;
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::sync::mpsc::channel;
use tokio::time::{Instant, timeout, timeout_at};

/// How long the tray may take to say what it knows.
const TRAY_TIMEOUT: Duration = Duration::from_secs(1);
/// How long a machine may take to tell of its sessions.
const TOLD_WITHIN: Duration = Duration::from_secs(3);
/// Maximum number of sessions that are taken up of one machine.
const SESSIONS_MAX: usize = 1000;
/// Maximum length of a reason, in characters.
const WHY_MAX: usize = 300;

/// What a machine told.
#[derive(Default)]
struct Told {
    accounts: BTreeMap<Box<str>, Account>,
    behind: Span,
    is_complete: bool,
    trouble: Option<String>,
}

/// The sessions on these machines, or on all that are to be shown; and a line for each machine that is not reached.
pub(super) fn sessions(context: &Context, only: Option<&str>, now: Moment) -> (Vec<Session>, Vec<String>) {
    let hosts: Vec<&Host> = context.hosts().filter(|host| only.is_none_or(|only| *only == *host.name)).collect();
    if hosts.is_empty() {
        return (Vec::new(), Vec::new());
    }
    let Ok(runtime) = runtime() else { return (Vec::new(), Vec::new()) };
    let reports = runtime.block_on(async {
        match ask_tray().await {
            // The tray may have other settings by now, or have been started with others.
            Some(reports) if hosts.iter().all(|host| reports.iter().any(|report| *report.host == *host.name)) => {
                reports
            }
            _ => ask_hosts(&hosts).await,
        }
    });
    // Ends what runs for them.
    drop(runtime);
    let (mut sessions, mut troubles) = (Vec::new(), Vec::new());
    for report in reports {
        let Some(host) = hosts.iter().find(|host| *host.name == *report.host) else { continue };
        let far = FarHost { name: report.host.clone(), has_terminal: command::has_terminal(host) };
        let clocks = Clocks { now, behind: report.behind };
        let told = report.sessions.into_iter().take(SESSIONS_MAX);
        let read = told.filter_map(|account| read(&far, account, &clocks, agent_named).ok());
        sessions.extend(read.filter(|session| context.is_wanted_agent(&session.observed.agent)));
        let words = |why: Box<str>| format!("{} is not reached: {}", report.host, plain(&why, WHY_MAX));
        troubles.extend(report.trouble.map(words));
    }
    (sessions, troubles)
}

/// The same, and says which machines are not reached.
pub(super) fn sessions_or_say(context: &Context, only: Option<&str>, now: Moment) -> Vec<Session> {
    let (sessions, troubles) = sessions(context, only, now);
    troubles.iter().for_each(|trouble| say(trouble));
    sessions
}

async fn ask_tray() -> Option<Vec<HostReport>> {
    for folder in paths::project().as_ref().map(paths::runtime_folders).unwrap_or_default() {
        let Ok(Some(_checked)) = Runtime::open(&folder) else { continue };
        if let Ok(Ok(Some(reports))) = timeout(TRAY_TIMEOUT, control::ask_for_hosts(&folder)).await {
            return Some(reports);
        }
    }
    None
}

/// Asks each machine itself, all at once.
async fn ask_hosts(hosts: &[&Host]) -> Vec<HostReport> {
    let (sender, mut news) = channel(hosts.len());
    let links: Vec<_> = hosts.iter().map(|host| Link::start((*host).clone(), 0, false, sender.clone())).collect();
    let mut told: BTreeMap<Box<str>, Told> =
        hosts.iter().map(|host| (host.name.as_str().into(), Told::default())).collect();
    let until = Instant::now() + TOLD_WITHIN;
    while told.values().any(|told| !told.is_complete) {
        let Ok(Some(News { host, said, .. })) = timeout_at(until, news.recv()).await else { break };
        let Some(told) = told.get_mut(&*host) else { continue };
        said.into_iter().for_each(|said| told.take(said));
    }
    drop(links);
    let late = || format!("it did not tell of its sessions within {} s", TOLD_WITHIN.as_secs());
    let report = |(host, told): (Box<str>, Told)| HostReport {
        host,
        behind: told.behind,
        sessions: told.accounts.into_values().collect(),
        trouble: told.trouble.or_else(|| (!told.is_complete).then(late)).map(Into::into),
    };
    told.into_iter().map(report).collect()
}

impl Told {
    fn take(&mut self, said: Said) {
        match said {
            Said::Hello(hello) => self.behind = Clocks::behind(Clock::start().now(), hello.now),
            Said::Line(FromHost::Session(account)) if self.accounts.len() < SESSIONS_MAX => {
                self.accounts.insert(account.id().into(), *account);
            }
            Said::Line(FromHost::Gone(id)) => _ = self.accounts.remove(&id),
            Said::Line(FromHost::Ready) => self.is_complete = true,
            Said::Line(_) => {}
            Said::Lost { why } => (self.trouble, self.is_complete) = (Some(why), true),
        }
    }
}
