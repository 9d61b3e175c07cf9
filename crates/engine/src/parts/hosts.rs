//! The connections to other machines, as the settings name them.

use super::fleet::{Fleet, Trouble, Twin};
use crate::config;
use crate::control::HostReport;
use crate::hosts::{HostEvent, Link, Purpose, ToLink};
use pilotlight_core::agent::Agent;
use pilotlight_core::remote::Clocks;
use pilotlight_core::session::Key;
use pilotlight_core::time::{Moment, Span, Time};
use pilotlight_system::clock_jumps::ClockJumps;
use pilotlight_system::identity;
use pilotlight_system::log;
use pilotlight_system::network::Network;
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::sync::oneshot;

/// How long the sessions of a machine stay while its connection is made anew: a short interruption is nobody's news.
const GRACE: Span = Span::seconds(10);
/// A machine on which a session works, or waits for its user, is asked whether it is still there when nothing was heard of it for as long.
const QUIET: Span = Span::seconds(55);
/// Less sleep than this does not count: the machine was only about to sleep.
const SLEEP_MIN: Span = Span::seconds(5);
/// How much news may wait for the loop.
const QUEUED: usize = 16;

/// Takes what is known of a machine once it was tried again.
pub(crate) type Answer = oneshot::Sender<Option<HostReport>>;

/// One machine.
#[derive(Debug)]
pub(crate) struct LinkedHost {
    pub(crate) config: config::HostSetting,
    generation: u64,
    link: Link,
    /// How far its wall clock is behind ours.
    pub(crate) behind: Span,
    /// Identifies the machine even under another name.
    pub(crate) machine: Option<Box<str>>,
    /// The sessions that it told of since it was connected.
    pub(crate) told: HashSet<Box<str>>,
    /// It sent an unusable report, and the log already says so.
    pub(crate) said_nonsense: bool,
    is_connected: bool,
    /// It has told of all its sessions at least once.
    has_told: bool,
    /// When it was last heard of, by the awake clock.
    heard: Time,
    lost: Option<Lost>,
}

/// A connection that is lost, or was never made.
#[derive(Debug)]
struct Lost {
    why: Box<str>,
    since: Time,
    /// Until then, by the awake clock, it is hoped that it comes back.
    until: Time,
    is_shown: bool,
    /// When it is tried again, by the wall clock.
    again: Option<Time>,
}

/// All machines.
#[derive(Debug)]
pub(crate) struct Hosts {
    hosts: BTreeMap<Arc<str>, LinkedHost>,
    news: Receiver<HostEvent>,
    sender: Sender<HostEvent>,
    generation: u64,
    /// Whether any are to be connected to, and which. `None`: none.
    wanted: Option<Vec<String>>,
    purpose: Purpose,
    /// The agents whose sessions are shown; none: all.
    agents: Vec<Box<str>>,
    /// Who wants to know what comes of trying a machine again.
    awaited: Vec<(Box<str>, Answer)>,
    /// For how long the machine had slept when that was last looked at.
    asleep: Option<Span>,
    clock_jumps: ClockJumps,
    network: Network,
}

impl Default for Hosts {
    fn default() -> Self {
        let (sender, news) = channel(QUEUED);
        Self {
            hosts: BTreeMap::new(),
            news,
            sender,
            generation: 0,
            wanted: None,
            purpose: Purpose::Watch,
            agents: Vec::new(),
            awaited: Vec::new(),
            asleep: None,
            clock_jumps: ClockJumps::default(),
            network: Network::default(),
        }
    }
}

impl Hosts {
    /// Connects to the machines in the settings from now on. If `only` has names, connects to just those. `agents` limits the
    /// sessions shown to these agents; empty means all.
    pub(crate) fn want(&mut self, only: Vec<String>, agents: Vec<Box<str>>, purpose: Purpose) {
        (self.wanted, self.agents, self.purpose) = (Some(only), agents, purpose);
    }

    /// Whether sessions of this agent are shown.
    pub(crate) fn is_wanted_agent(&self, agent: &Agent) -> bool {
        self.agents.is_empty() || self.agents.iter().any(|wanted| **wanted == *agent.name())
    }

    /// Connects to exactly these machines, on the current runtime. Returns those that are none any more, or others.
    pub(crate) fn follow(&mut self, named: &[config::HostSetting]) -> Vec<Arc<str>> {
        let only = self.wanted.as_ref();
        let is_wanted =
            |host: &&config::HostSetting| only.is_some_and(|only| only.is_empty() || only.contains(&host.name));
        let wanted: Vec<_> = named.iter().filter(is_wanted).cloned().collect();
        let is_kept = |host: &LinkedHost| wanted.contains(&host.config);
        let gone: Vec<_> =
            self.hosts.iter().filter(|(_, host)| !is_kept(host)).map(|(name, _)| Arc::clone(name)).collect();
        for name in &gone {
            self.hosts.remove(name);
        }
        for config in wanted {
            let name: Arc<str> = config.name.as_str().into();
            if self.hosts.contains_key(&name) {
                continue;
            }
            self.generation += 1;
            let link = Link::start(config.clone(), self.generation, self.purpose, self.sender.clone());
            let host = LinkedHost {
                config,
                generation: self.generation,
                link,
                behind: Span::ZERO,
                machine: None,
                told: HashSet::new(),
                said_nonsense: false,
                is_connected: false,
                has_told: false,
                heard: Time::default(),
                lost: None,
            };
            self.hosts.insert(name, host);
        }
        gone
    }

    /// Waits for news. `None`: this machine may have been asleep. In a new network, those that are not reached are tried
    /// again meanwhile. Cancel-safe.
    pub(crate) async fn next_news(&mut self) -> Option<HostEvent> {
        loop {
            let (has_any, has_lost) = (!self.hosts.is_empty(), self.hosts.values().any(|host| host.lost.is_some()));
            if !has_lost {
                self.network.rest();
            }
            tokio::select! {
                // Always one: there is a sender here.
                Some(news) = self.news.recv() => return Some(news),
                () = self.clock_jumps.may_have_happened(), if has_any => return None,
                () = self.network.changed(), if has_lost => {
                    log::info!(tag = "host", "this machine has a new address");
                    let lost = self.hosts.values().filter(|host| host.lost.is_some());
                    lost.for_each(|host| host.link.tell(ToLink::Retry));
                }
            }
        }
    }

    /// Tries all again if this machine was asleep since this was called last. `asleep`: for how long it was in total.
    pub(crate) fn wake(&mut self, asleep: Span) {
        if self.asleep.replace(asleep).is_some_and(|before| asleep - before > SLEEP_MIN) {
            self.retry(None, false);
        }
    }

    /// The machine that news is of, if it is still of this connection.
    pub(crate) fn of_event(&mut self, event: &HostEvent) -> Option<&mut LinkedHost> {
        self.hosts.get_mut(&event.host).filter(|host| host.generation == event.generation)
    }

    pub(crate) fn get(&self, name: &str) -> Option<&LinkedHost> {
        self.hosts.get(name)
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = (&Arc<str>, &LinkedHost)> {
        self.hosts.iter()
    }

    /// Tries one again now, or all. `anew`: by another connection.
    pub(crate) fn retry(&self, name: Option<&str>, anew: bool) {
        for (_, host) in self.hosts.iter().filter(|(one, _)| name.is_none_or(|name| ***one == *name)) {
            host.link.tell(if anew { ToLink::Anew } else { ToLink::Retry });
        }
    }

    /// Asks those whether they are still there on which a session works or waits for its user, and of which nothing was heard.
    pub(crate) fn check(&self, fleet: &Fleet, now: Time) {
        for (name, host) in &self.hosts {
            if host.is_connected && host.heard + QUIET <= now && fleet.matters_at(name) {
                host.link.tell(ToLink::Retry);
            }
        }
    }

    /// Whether there are none. Else the rescan looks after them: a connection may have died while this machine slept, and
    /// nothing says so.
    pub(crate) fn is_empty(&self) -> bool {
        self.hosts.is_empty()
    }

    /// Registers a caller that waits for the result of trying this machine again.
    pub(crate) fn await_answer(&mut self, name: &str, reply: Answer) {
        if self.hosts.contains_key(name) {
            self.awaited.push((name.into(), reply));
        }
    }

    /// Those who want to know what came of trying this machine again.
    pub(crate) fn take_awaited(&mut self, name: &str) -> Vec<Answer> {
        self.awaited.extract_if(.., |(host, _)| **host == *name).map(|(_, reply)| reply).collect()
    }

    /// When a lost connection is to be shown as lost, by the awake clock.
    pub(crate) fn wake_at(&self) -> Option<Time> {
        let lost = self.hosts.values().filter_map(|host| host.lost.as_ref());
        lost.filter(|lost| !lost.is_shown).map(|lost| lost.until).min()
    }

    /// From now on, shows those as lost that are due.
    pub(crate) fn show_due(&mut self, now: Time) {
        for lost in self.hosts.values_mut().filter_map(|host| host.lost.as_mut()) {
            lost.is_shown |= lost.until <= now;
        }
    }

    /// Which are known as another one, or are this machine.
    pub(crate) fn twins(&self) -> Vec<Twin> {
        let known: Vec<_> =
            self.hosts.iter().filter_map(|(name, host)| Some((name, host.machine.as_deref()?))).collect();
        if known.is_empty() {
            return Vec::new();
        }
        let own = identity::own_machine();
        let twin = |(n, (name, machine)): (usize, &(&Arc<str>, &str))| {
            let before = known[..n].iter().find(|(_, other)| other == machine);
            let other = before.map(|(other, _)| Arc::clone(other));
            (other.is_some() || own.as_deref() == Some(*machine)).then(|| Twin { host: Arc::clone(name), other })
        };
        known.iter().enumerate().filter_map(twin).collect()
    }

    /// Whether one is yet to tell of its sessions, and may be reached.
    pub(crate) fn has_untold(&self) -> bool {
        self.hosts.values().any(|host| !host.has_told && host.lost.is_none())
    }

    /// Which are not reached.
    pub(crate) fn troubles(&self) -> Vec<Trouble> {
        let trouble = |(name, host): (&Arc<str>, &LinkedHost)| {
            let lost = host.lost.as_ref().filter(|lost| lost.is_shown)?;
            Some(Trouble { host: Arc::clone(name), why: lost.why.clone(), since: lost.since, again: lost.again })
        };
        self.hosts.iter().filter_map(trouble).collect()
    }
}

impl LinkedHost {
    /// It is connected, and tells of all its sessions now.
    pub(crate) fn connected(&mut self, behind: Span) {
        (self.is_connected, self.said_nonsense, self.behind) = (true, false, behind);
        self.told.clear();
    }

    /// Something was heard of it.
    pub(crate) fn heard(&mut self, now: Time) {
        self.heard = now;
    }

    /// It has told of all its sessions.
    pub(crate) fn ready(&mut self) {
        (self.has_told, self.lost) = (true, None);
    }

    /// Its connection is lost, and made again then. What is shown of it counts for a moment, if there is anything.
    pub(crate) fn lose(&mut self, why: &str, again: Option<Time>, now: Moment) {
        let had = std::mem::take(&mut self.is_connected) || self.lost.as_ref().is_some_and(|lost| !lost.is_shown);
        let until = if had { now.awake + GRACE } else { now.awake };
        match &mut self.lost {
            Some(lost) => (lost.why, lost.again) = (why.into(), again),
            None => self.lost = Some(Lost { why: why.into(), since: now.wall, until, is_shown: false, again }),
        }
    }

    /// Why it is not reached, if it is not.
    pub(crate) fn trouble(&self) -> Option<&str> {
        self.lost.as_ref().map(|lost| &*lost.why)
    }

    /// Since when it is not reached, and when it is tried again, by the wall clock.
    pub(crate) fn lost(&self) -> Option<(Time, Option<Time>)> {
        self.lost.as_ref().map(|lost| (lost.since, lost.again))
    }

    /// Whether the first connection to it is still being made.
    pub(crate) const fn is_awaited(&self) -> bool {
        !self.is_connected && self.lost.is_none()
    }

    /// Whether it has told of all its sessions, and can be told something.
    pub(crate) const fn is_reached(&self) -> bool {
        self.is_connected
    }

    pub(crate) fn clocks(&self, now: Moment) -> Clocks {
        Clocks { now, behind: self.behind }
    }

    pub(crate) fn tell(&self, told: ToLink) {
        self.link.tell(told);
    }

    pub(crate) fn key(&self, id: &str) -> Key {
        Key::remote(self.config.name.as_str(), id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Reach;
    use std::time::{Duration, Instant};

    /// A link that fails at once waits 1 s, then 2 s, then 5 s.
    #[cfg(unix)]
    #[test]
    fn case_452_after_a_sleep_a_machine_is_tried_again_at_once() {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
            let mut hosts = Hosts::default();
            hosts.want(Vec::new(), Vec::new(), Purpose::Watch);
            hosts.follow(&[config::HostSetting { name: "devbox".into(), reach: Reach::Command(vec!["false".into()]) }]);
            let lost = async |hosts: &mut Hosts| {
                let event = hosts.next_news().await.unwrap();
                hosts.of_event(&event).unwrap().lose("gone", None, Moment::default());
            };
            hosts.wake(Span::hours(1));
            for _ in 0..3 {
                lost(&mut hosts).await;
            }
            hosts.wake(Span::hours(1) + Span::seconds(4));
            let begun = Instant::now();
            hosts.wake(Span::hours(2));
            lost(&mut hosts).await;
            assert!(begun.elapsed() < Duration::from_secs(4), "{:?}", begun.elapsed());
            // And soon once more: what is needed may take a moment to be there.
            lost(&mut hosts).await;
            assert!(begun.elapsed() < Duration::from_secs(4), "{:?}", begun.elapsed());
        });
    }
}
