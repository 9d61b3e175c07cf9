//! Other machines: what they tell, and what is asked of them.

use crate::Engine;
use crate::control::HostReport;
use crate::control::pipe::lines::{FromHost, SHOWN_MAX};
use crate::control::{PendingOrder, RetryHost, origin};
use crate::hosts::{HostEvent, HostEventKind, ToLink, command};
use crate::parts::hosts::Hosts;
use crate::parts::settings_file::SettingsFile;
use crate::terminal::Terminals;
use crate::world::World;
use pilotlight_agents::adapter::agent_named;
use pilotlight_core::action::{ActionFlag, offer};
use pilotlight_core::order::{Operation, OrderReport, Outcome};
use pilotlight_core::remote::RemoteHost;
use pilotlight_core::remote::{self, Clocks, SessionReport};
use pilotlight_core::session::Key;
use pilotlight_core::text::is_uuid;
use pilotlight_core::time::Span;
use pilotlight_system::clock::slept;
use pilotlight_system::log::{self, private};
use std::collections::BTreeMap;

/// What our own commands are told of a machine that was not reached yet.
const AWAITED: &str = "the tray is still connecting to it";

/// Other machines, and the parts that are needed for what they tell and are asked.
pub(crate) struct Machines<'a> {
    hosts: &'a mut Hosts,
    world: &'a mut World,
    settings_file: Option<&'a SettingsFile>,
}

impl Engine {
    pub(crate) fn machines(&mut self) -> Machines<'_> {
        Machines { hosts: &mut self.hosts, world: &mut self.world, settings_file: self.disk.settings_file.as_ref() }
    }
}

impl Machines<'_> {
    /// Connects to exactly the machines that the settings name.
    pub(crate) fn follow(&mut self) {
        for gone in self.hosts.follow(&self.world.config.hosts) {
            self.forget_sessions_of(&gone);
        }
        self.note_twins();
        self.show_troubles();
    }

    fn forget_sessions_of(&mut self, host: &str) {
        let keys: Vec<_> = self.world.fleet.keys_at(host).cloned().collect();
        for key in keys {
            self.world.fleet.remove_remote(&key);
            self.world.changes.removed.push(key);
        }
    }

    /// Says which machines are known already by another name.
    fn note_twins(&mut self) {
        let twins = self.hosts.twins();
        for twin in twins.iter().filter(|twin| !self.world.fleet.twins().contains(twin)) {
            log::info!(tag = "host", host = private(&twin.host), "{}", private(&twin));
        }
        self.world.changes.redraw |= self.world.fleet.set_twins(twins);
    }

    fn show_troubles(&mut self) {
        self.world.changes.redraw |= self.world.fleet.set_untold(self.hosts.has_untold());
        self.world.changes.redraw |= self.world.fleet.set_troubles(self.hosts.troubles());
    }

    /// Takes up what a machine tells.
    pub(super) fn take_host_event(&mut self, mut event: HostEvent) {
        let now = self.world.now();
        for said in std::mem::take(&mut event.said) {
            let Some(host) = self.hosts.of_event(&event) else { return };
            host.heard(now.awake);
            match said {
                HostEventKind::Hello(hello) => {
                    host.connected(Clocks::behind(now, hello.now));
                    host.machine = hello.machine;
                    self.note_twins();
                }
                HostEventKind::Line(line) => {
                    let is_answer = matches!(line, FromHost::Ready | FromHost::Pong(_));
                    self.take_line(&event, line);
                    if is_answer {
                        self.answer_awaited(&event.host);
                    }
                }
                HostEventKind::Lost { why, again_in } => {
                    let again = again_in.map(|again_in| now.wall + Span::of(again_in));
                    host.lose(&why, again, now);
                    self.show_lost();
                    self.answer_awaited(&event.host);
                }
            }
        }
    }

    fn take_line(&mut self, event: &HostEvent, line: FromHost) {
        let now = self.world.now();
        let Some(host) = self.hosts.of_event(event) else { return };
        match line {
            FromHost::Session(report) => self.take_report(event, *report),
            FromHost::Gone(id) => {
                host.told.remove(&id);
                let key = host.key(&id);
                if self.world.fleet.remove_remote(&key) {
                    self.world.changes.removed.push(key);
                }
            }
            FromHost::Heard(heard) => {
                let clocks = host.clocks(now);
                let heard: Vec<_> = heard.iter().map(|(id, at)| (host.key(id), clocks.here(*at))).collect();
                for (key, at) in heard {
                    self.world.changes.ended_lull |= self.world.fleet.note_remote_activity(&key, at);
                }
            }
            FromHost::Ready => {
                host.ready();
                let told = &host.told;
                let stale = self.world.fleet.keys_at(&event.host).filter(|key| !told.contains(&*key.id));
                for key in stale.cloned().collect::<Vec<_>>() {
                    self.world.fleet.remove_remote(&key);
                    self.world.changes.removed.push(key);
                }
                self.show_troubles();
            }
            // What was not asked for, and what concerns the link alone.
            FromHost::Past(_) | FromHost::AllPast => {}
            FromHost::Pilotlight(_) | FromHost::Report { .. } | FromHost::Pong(_) | FromHost::Over(_) => {}
        }
    }

    /// Takes up what a machine tells of a session.
    fn take_report(&mut self, event: &HostEvent, report: SessionReport) {
        let now = self.world.now();
        let Some(host) = self.hosts.of_event(event) else { return };
        // Counted by what is held: a machine may break off before it has told of all, again and again.
        let is_new = self.world.fleet.shown_as(&host.key(report.id())).is_none();
        if is_new && self.world.fleet.keys_at(&event.host).nth(SHOWN_MAX - 1).is_some() {
            return;
        }
        let (clocks, name) = (host.clocks(now), host.config.name.as_str().into());
        let remote_host = RemoteHost { name, has_terminal: command::has_terminal(&host.config) };
        match remote::read(&remote_host, report.clone(), &clocks, agent_named) {
            Ok(session) => {
                let key = host.key(report.id());
                // Only what is held counts as told: the limit above bounds both.
                if !self.hosts.is_wanted_agent(&session.observed.agent) {
                    return;
                }
                let Some(host) = self.hosts.of_event(event) else { return };
                host.told.insert(report.id().into());
                if self.world.fleet.put_remote(&key, session, report, &clocks) {
                    self.world.changes.updated.push(key);
                }
            }
            Err(what) if !std::mem::replace(&mut host.said_nonsense, true) => {
                log::info!(tag = "host", host = private(&event.host), "of what it tells, {}", what);
            }
            Err(_) => {}
        }
    }

    /// Tells those that wait for it what came of trying this machine again.
    fn answer_awaited(&mut self, name: &str) {
        for reply in self.hosts.take_awaited(name) {
            // Who asked may have gone.
            drop(reply.send(self.reports().into_iter().find(|report| *report.host == *name)));
        }
    }

    /// Tries a machine again, and tells what came of it once that is known.
    pub(super) fn retry(&mut self, RetryHost { host, anew, reply }: RetryHost) {
        self.hosts.retry(Some(&host), anew);
        if let Some(reply) = reply {
            self.hosts.await_answer(&host, reply);
        }
    }

    /// Shows those as lost that are due: what is known of their sessions stays, as from before.
    fn show_lost(&mut self) {
        let now = self.world.now();
        self.hosts.show_due(now.awake);
        for trouble in self.hosts.troubles() {
            let (event, differs) = self.world.fleet.set_unreached(&trouble.host, &trouble.unreached(now.wall), now);
            self.world.changes.updated.extend(event);
            self.world.changes.redraw |= differs;
        }
        self.show_troubles();
    }

    /// Does what is due for other machines: after a sleep, they are tried at once.
    pub(super) fn look_after(&mut self) {
        self.hosts.wake(slept(self.world.now()));
        if self.hosts.wake_at().is_some_and(|at| at <= self.world.now().awake) {
            self.show_lost();
        }
    }

    /// Tells the machines that the user has seen their sessions.
    pub(super) fn mark_seen(&self, keys: &[Key]) {
        let mut by_host: BTreeMap<&str, Vec<Box<str>>> = BTreeMap::new();
        for key in keys {
            if let Some(host) = &key.host {
                by_host.entry(host).or_default().push((*key.id).into());
            }
        }
        for (host, ids) in by_host {
            if let Some(host) = self.hosts.get(host) {
                host.tell(ToLink::Seen(ids));
            }
        }
    }

    /// What is known of other machines, for our own commands.
    pub(super) fn reports(&self) -> Vec<HostReport> {
        let now = self.world.now();
        let report = |(name, host): (&std::sync::Arc<str>, &crate::parts::hosts::LinkedHost)| {
            let clocks = host.clocks(now);
            HostReport {
                host: (**name).into(),
                behind: host.behind,
                sessions: self.world.fleet.reports_at(name, &clocks).collect(),
                trouble: host.trouble().or_else(|| host.is_awaited().then_some(AWAITED)).map(Into::into),
                since: host.lost().map(|(since, _)| since),
                again: host.lost().and_then(|(_, again)| again),
                machine: host.machine.clone(),
            }
        };
        self.hosts.all().map(report).collect()
    }

    /// Has an order carried out on another machine, which checks it as its own.
    pub(super) fn hand_on(&mut self, name: &str, pending: PendingOrder) {
        if let Err(outcome) = self.check_order(name, &pending) {
            // Where it is not reached, that may be over.
            if let Some(host) = self.hosts.get(name).filter(|host| !host.is_reached()) {
                host.tell(ToLink::Retry);
            }
            let action = pending.order.operation.action().name();
            log::info!(tag = "refused", action = action, host = private(&name), "{}", private(&outcome.words()));
            return pending.report(OrderReport::End(outcome));
        }
        let Some(host) = self.hosts.get(name) else { return };
        if pending.order.operation == Operation::Resume {
            let words = command::resume(&host.config, &pending.order.id).unwrap_or_default();
            let terminals = Terminals::new(Some(self.world.config.actions.terminal.clone()));
            let shown = host.config.name.clone();
            let open = move || {
                let outcome = match terminals.open(&words, None, &[]) {
                    Ok(_) => Outcome::Done(format!("a terminal resumes it on {shown}")),
                    Err(why) => Outcome::Failed(why),
                };
                pending.report(OrderReport::End(outcome));
            };
            drop(std::thread::Builder::new().name("terminal".into()).spawn(open));
            return;
        }
        host.tell(ToLink::Order(Box::new(pending)));
    }

    /// Checks here what can be checked here.
    fn check_order(&self, name: &str, pending: &PendingOrder) -> Result<(), Outcome> {
        let refuse = |why: String| Err(Outcome::Refused(why));
        let (order, action) = (&pending.order, pending.order.operation.action());
        let Some(host) = self.hosts.get(name) else {
            return refuse(format!("no machine in the settings is called {name}"));
        };
        let Some(shown) = self.world.fleet.shown_as(&Key::remote(name, &*order.id)) else {
            return refuse(if host.is_reached() {
                format!("{name} has no such session any more")
            } else {
                let why = host.trouble().unwrap_or("the tray is still connecting to it");
                format!("{name} is not reached: {why}; Pilotlight tries again now")
            });
        };
        if action.is(ActionFlag::OpensWindow) {
            if let Err(why) = offer(action, shown.session, shown.row.status) {
                return refuse(why.to_string());
            }
            if !is_uuid(&order.id) {
                return refuse("its id is not valid for its agent".into());
            }
        }
        // No tool of a session there can have started this program here. Those of the sessions here can start commands.
        if pending.is_by_command() && origin::answers_for_user(&order.operation) {
            let settings = self.settings_file.filter(|_| self.world.config.actions.scripts_may_answer);
            let allowed = settings.and_then(SettingsFile::changed);
            let judged = origin::check(pending.caller, false, allowed, shown.session, self.world.now().wall);
            if let Err(why) = judged {
                return refuse(format!(
                    "a tool of a session may have started this program: it {why}. Answer in Pilotlight's menu or popup, or in a shell that is older than the session"
                ));
            }
        }
        Ok(())
    }
}
