//! The sessions on other machines, for commands that look once: as the running tray knows them, else asked of each machine
//! that the settings name, with a limit. Those that ended long ago are always asked for.

use super::context::{Context, runtime};
use super::report::say;
use super::trays::ask_first;
use pilotlight_agents::adapter::agent_named;
use pilotlight_core::fleet::Session;
use pilotlight_core::remote::{Clocks, SessionReport, read};
use pilotlight_core::remote::{RemoteHost, Unreached};
use pilotlight_core::text::plain;
use pilotlight_core::time::{Moment, Span, Time};
use pilotlight_engine::config::HostSetting;
use pilotlight_engine::control::pipe::lines::{FromHost, PAST_MAX, SHOWN_MAX};
use pilotlight_engine::control::{self, HostReport};
use pilotlight_engine::hosts::{HostEvent, HostEventKind, Link, Purpose, ToLink, command};
use pilotlight_engine::unreached;
use pilotlight_system::clock::Clock;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc::{Receiver, channel};
use tokio::time::{Instant, timeout_at};

/// How long a machine may take to tell of its sessions.
pub(super) const TOLD_WITHIN: Duration = Duration::from_secs(3);
/// Maximum length of a reason, in characters.
const WHY_MAX: usize = 300;

/// What is known of a machine.
#[derive(Clone)]
pub(super) struct Known {
    pub(super) host: Box<str>,
    pub(super) sessions: Vec<Session>,
    /// Why it is not reached, if it is not.
    pub(super) trouble: Option<Box<str>>,
    /// Since when, and when it is tried again, where a tray knows.
    pub(super) unreached: Option<Unreached>,
}

/// Which sessions are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Which {
    /// Those that a list shows: that have not ended, or ended not long ago.
    Recent,
    /// All.
    All,
}

/// The sessions on these machines, or on all that are to be shown, and which machines are not reached.
pub(super) fn known(context: &Context, only: Option<&str>, which: Which, now: Moment) -> Vec<Known> {
    let hosts: Vec<&HostSetting> = context.hosts().filter(|host| only.is_none_or(|only| *only == *host.name)).collect();
    if hosts.is_empty() {
        return Vec::new();
    }
    let Ok(runtime) = runtime() else { return Vec::new() };
    let mut known = runtime.block_on(async {
        match ask_tray().await {
            // The tray has none of the past. It may have other settings by now, or have been started with others.
            Some(reports)
                if which == Which::Recent
                    && hosts.iter().all(|host| reports.iter().any(|report| *report.host == *host.name)) =>
            {
                let known = |report: HostReport| {
                    Some(report_read(hosts.iter().find(|host| *host.name == *report.host)?, report, now))
                };
                reports.into_iter().filter_map(known).collect()
            }
            reports => {
                let mut query = Query::start(&hosts, which, now);
                query.recall(reports.unwrap_or_default());
                let until = Instant::now() + TOLD_WITHIN;
                while !query.is_complete() && timeout_at(until, query.next()).await.is_ok() {}
                query.known()
            }
        }
    });
    // Ends what runs for them.
    drop(runtime);
    for known in &mut known {
        known.sessions.retain(|session| context.is_wanted_agent(&session.observed.agent));
    }
    known
}

/// The sessions alone; and says which machines are not reached.
pub(super) fn sessions_or_say(context: &Context, only: Option<&str>, which: Which, now: Moment) -> Vec<Session> {
    let mut sessions = Vec::new();
    for known in known(context, only, which, now) {
        known.not_reached().iter().for_each(|trouble| say(trouble));
        sessions.extend(known.sessions);
    }
    sessions
}

impl Known {
    /// That the machine is not reached, and why.
    pub(super) fn not_reached(&self) -> Option<String> {
        let why = self.trouble.as_deref()?;
        let since = self.unreached.as_ref().map_or_else(|| "not reached".to_owned(), ToString::to_string);
        Some(format!("{} is {since}: {}", self.host, plain(why, WHY_MAX)))
    }

    /// The same, to whoever wanted something done there.
    pub(super) fn nothing_done(&self) -> Option<String> {
        let why = self.trouble.as_deref()?;
        Some(format!("{} is not reached ({}), so nothing was done", self.host, plain(why, WHY_MAX)))
    }
}

/// What the running tray knows of them; `None` without one.
pub(super) async fn ask_tray() -> Option<Vec<HostReport>> {
    ask_first(control::ask_for_hosts).await.ok().flatten()
}

/// Since when a machine is not reached, and when it is tried again, if it is not reached.
pub(super) fn unreached_of(report: &HostReport, now: Time) -> Option<Unreached> {
    report.trouble.as_ref()?;
    Some(unreached(report.since?, report.again, now))
}

fn report_read(host: &HostSetting, report: HostReport, now: Moment) -> Known {
    let unreached = unreached_of(&report, now.wall);
    let (clocks, remote) = (Clocks { now, behind: report.behind }, remote_host(host));
    let sessions = sessions_of(report.sessions, &remote, &clocks);
    let sessions = sessions.map(|session| as_unreached(session, unreached.as_ref())).collect();
    Known { host: report.host, sessions, trouble: report.trouble, unreached }
}

/// The session as its machine told it last, if that is not reached.
fn as_unreached(mut session: Session, unreached: Option<&Unreached>) -> Session {
    if let Some(remote) = &mut session.remote {
        remote.unreached = unreached.cloned();
    }
    session
}

/// The sessions that the tray tells of.
fn sessions_of(told: Vec<SessionReport>, remote: &RemoteHost, clocks: &Clocks) -> impl Iterator<Item = Session> {
    told.into_iter().take(SHOWN_MAX).filter_map(|report| read(remote, report, clocks, agent_named).ok())
}

fn remote_host(host: &HostSetting) -> RemoteHost {
    RemoteHost { name: host.name.as_str().into(), has_terminal: command::has_terminal(host) }
}

/// A query of other machines, all at once.
pub(super) struct Query {
    news: Receiver<HostEvent>,
    hosts: BTreeMap<Box<str>, Queried>,
    which: Which,
}

/// A machine that is queried, or has told everything.
struct Queried {
    remote: RemoteHost,
    /// Ends the connection when it is dropped.
    link: Option<Link>,
    clocks: Clocks,
    sessions: BTreeMap<Box<str>, Arc<Session>>,
    trouble: Option<Box<str>>,
    /// The tray does not reach it: since when.
    recalled: Option<Unreached>,
}

impl Query {
    /// Connects to these machines, on the current runtime.
    pub(super) fn start(hosts: &[&HostSetting], which: Which, now: Moment) -> Self {
        let (sender, news) = channel(hosts.len().max(1));
        let ask = |host: &&HostSetting| {
            let link = Link::start((*host).clone(), 0, Purpose::Look, sender.clone());
            if which == Which::All {
                link.tell(ToLink::History);
            }
            let clocks = Clocks { now, behind: Span::ZERO };
            let queried = Queried {
                remote: remote_host(host),
                link: Some(link),
                clocks,
                sessions: BTreeMap::new(),
                trouble: None,
                recalled: None,
            };
            (host.name.as_str().into(), queried)
        };
        Self { news, hosts: hosts.iter().map(ask).collect(), which }
    }

    /// Takes up what the tray knows. Its connection may lead to what no other does, such as a container that was made for it:
    /// there, other processes run, with the sessions that they report.
    pub(super) fn recall(&mut self, reports: Vec<HostReport>) {
        for report in reports {
            let Some(queried) = self.hosts.get_mut(&report.host) else { continue };
            let clocks = Clocks { behind: report.behind, ..queried.clocks };
            let unreached = unreached_of(&report, clocks.now.wall);
            queried.recalled = unreached.clone();
            for session in sessions_of(report.sessions, &queried.remote, &clocks) {
                let session = as_unreached(session, unreached.as_ref());
                queried.sessions.entry(session.id.clone()).or_insert_with(|| Arc::new(session));
            }
        }
    }

    /// Takes up what is told next. Returns whether a machine has told what it tells in one go, or is not reached.
    pub(super) async fn next(&mut self) -> bool {
        let Some(HostEvent { host, said, .. }) = self.news.recv().await else { return std::future::pending().await };
        let Some(queried) = self.hosts.get_mut(&*host) else { return false };
        let mut is_news = false;
        for said in said {
            is_news |= queried.take(said, self.which);
        }
        is_news
    }

    /// Whether every machine has told of its sessions, or is not reached.
    pub(super) fn is_complete(&self) -> bool {
        self.late().next().is_none()
    }

    /// The machines that have not told of all their sessions yet.
    pub(super) fn late(&self) -> impl Iterator<Item = &str> {
        self.hosts.iter().filter(|(_, queried)| queried.link.is_some()).map(|(name, _)| &**name)
    }

    /// The sessions that were told of so far.
    pub(super) fn sessions(&self) -> impl Iterator<Item = &Arc<Session>> {
        self.hosts.values().flat_map(|queried| queried.sessions.values())
    }

    /// What is known by now.
    pub(super) fn known(self) -> Vec<Known> {
        let late = || format!("it did not send its sessions within {} s", TOLD_WITHIN.as_secs()).into();
        let known = |(host, queried): (Box<str>, Queried)| Known {
            host,
            sessions: queried.sessions.into_values().map(Arc::unwrap_or_clone).collect(),
            unreached: queried.recalled.filter(|_| queried.trouble.is_some()),
            trouble: queried.trouble.or_else(|| queried.link.is_some().then(late)),
        };
        self.hosts.into_iter().map(known).collect()
    }

    /// Why machines are not reached.
    pub(super) fn troubles(&self) -> impl Iterator<Item = (&str, &str)> {
        self.hosts.iter().filter_map(|(name, queried)| Some((&**name, queried.trouble.as_deref()?)))
    }
}

impl Queried {
    fn take(&mut self, said: HostEventKind, which: Which) -> bool {
        match said {
            HostEventKind::Hello(hello) => self.clocks.behind = Clocks::behind(Clock::start().now(), hello.now),
            HostEventKind::Line(FromHost::Session(report)) => self.keep(*report, which),
            // Of one that is watched, more is known already.
            HostEventKind::Line(FromHost::Past(report))
                if which == Which::All && !self.sessions.contains_key(report.id()) =>
            {
                self.keep(*report, which);
            }
            HostEventKind::Line(FromHost::Gone(id)) => drop(self.sessions.remove(&id)),
            HostEventKind::Line(FromHost::Ready) => {
                // What the tray knew from before, and is no more.
                let is_here =
                    |session: &Session| session.remote.as_ref().is_none_or(|remote| remote.unreached.is_none());
                self.sessions.retain(|_, session| is_here(session));
                self.link.take_if(|_| which == Which::Recent);
                return true;
            }
            HostEventKind::Line(FromHost::AllPast) => return self.link.take().is_some(),
            HostEventKind::Line(_) => {}
            HostEventKind::Lost { why, .. } => {
                self.trouble = Some(plain(&why, WHY_MAX)).filter(|_| self.link.take().is_some());
                return true;
            }
        }
        false
    }

    fn keep(&mut self, report: SessionReport, which: Which) {
        let most = if which == Which::All { PAST_MAX } else { SHOWN_MAX };
        if (self.sessions.len() < most || self.sessions.contains_key(report.id()))
            && let Ok(session) = read(&self.remote, report, &self.clocks, agent_named)
        {
            self.sessions.insert(session.id.clone(), Arc::new(session));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pilotlight_core::limits::Limits;

    fn report(id: &str) -> Box<SessionReport> {
        let session = Session { id: id.into(), ..Session::default() };
        let row = session.row(Moment::default(), &Limits::default()).0;
        Box::new(SessionReport::of(&session, &row, (&row.name, &row.label), Moment::default()))
    }

    fn queried() -> Queried {
        let remote = RemoteHost { name: "devbox".into(), has_terminal: true };
        let clocks = Clocks { now: Moment::default(), behind: Span::ZERO };
        Queried { remote, link: None, clocks, sessions: BTreeMap::new(), trouble: None, recalled: None }
    }

    #[test]
    fn case_450_a_machine_tells_of_no_more_sessions_than_are_asked_for() {
        let (mut recent, mut all) = (queried(), queried());
        for n in 0..PAST_MAX + 5 {
            recent.take(HostEventKind::Line(FromHost::Session(report(&n.to_string()))), Which::Recent);
            all.take(HostEventKind::Line(FromHost::Past(report(&n.to_string()))), Which::All);
        }
        assert_eq!((recent.sessions.len(), all.sessions.len()), (SHOWN_MAX, PAST_MAX));
        let mut other = queried();
        other.take(HostEventKind::Line(FromHost::Past(report("1"))), Which::Recent);
        assert_eq!(other.sessions.len(), 0, "what was not asked for");
        other.take(HostEventKind::Line(FromHost::Past(Box::new(SessionReport::clone(&report("a\nb"))))), Which::All);
        assert_eq!(other.sessions.len(), 0, "what is not an id");
    }

    #[test]
    fn of_a_session_that_is_watched_more_is_known_than_of_a_past_one() {
        let mut queried = queried();
        queried.take(HostEventKind::Line(FromHost::Session(report("1"))), Which::All);
        let offers = |queried: &Queried| queried.sessions["1"].remote.as_ref().unwrap().offers.len();
        let before = offers(&queried);
        queried.take(HostEventKind::Line(FromHost::Past(Box::new(report("1").in_brief()))), Which::All);
        assert!(before > 0 && offers(&queried) == before);
    }
}
