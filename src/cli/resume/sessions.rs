//! All sessions that can be chosen: those of this machine, and those of other machines as they come in. Nothing waits for
//! another machine, and nothing that one tells is read on the thread that takes the keys: of thousands of sessions, that
//! takes longer than a key may.

use crate::cli::context::{Context, runtime};
use crate::cli::hosts::{Query, TOLD_WITHIN, Which, ask_tray};
use pilotlight_core::fleet::{Finder, Row, Session, distinguish};
use pilotlight_core::limits::Limits;
use pilotlight_core::text::listed;
use pilotlight_core::time::Moment;
use pilotlight_engine::config::HostSetting;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::time::{Instant, sleep_until};

/// What machines tell within this is shown at once: with many, each change costs more than it shows.
const GATHERED: Duration = Duration::from_millis(50);

/// The sessions of other machines that are known, and what is told of them.
pub(super) struct Sessions {
    /// `None` while they are left.
    changes: Option<Receiver<Change>>,
    /// Which machines are not reached, or late, in a line.
    note: Option<String>,
    thread: Option<JoinHandle<()>>,
}

struct Change {
    /// A finder of more sessions.
    finder: Option<Finder>,
    note: Option<String>,
}

/// What is gathered from which machines, for which list.
#[derive(Clone)]
struct Gathering {
    hosts: Vec<HostSetting>,
    /// The agents whose sessions are shown; none: all.
    agents: Vec<Box<str>>,
    /// The sessions of this machine, with their names before they were made unique.
    here: Vec<Row>,
    now: Moment,
    limits: Limits,
}

impl Sessions {
    /// Begins to ask the other machines. Returns a finder of the sessions of this one, too.
    ///
    /// # Errors
    /// Where the system refuses a thread or an event loop.
    pub(super) fn start(context: &Context, here: Vec<Row>, now: Moment) -> anyhow::Result<(Self, Finder)> {
        let (hosts, limits) = (context.hosts().cloned().collect(), context.config.limits);
        Self::ask(Gathering { hosts, agents: context.only.clone(), here, now, limits })
    }

    fn ask(gathering: Gathering) -> anyhow::Result<(Self, Finder)> {
        let finder = gathering.finder(&[]);
        let (sender, changes) = channel(1);
        let thread = if gathering.hosts.is_empty() {
            None
        } else {
            let runtime = runtime()?;
            let follow = move || runtime.block_on(gathering.follow(sender));
            Some(thread::Builder::new().name("hosts".into()).spawn(follow)?)
        };
        Ok((Self { changes: Some(changes), note: None, thread }, finder))
    }

    /// Waits until there is a finder of more sessions, or another note. Cancel-safe.
    pub(super) async fn change(&mut self) -> Option<Finder> {
        let change = match &mut self.changes {
            Some(changes) => changes.recv().await,
            None => None,
        };
        let Some(Change { finder, note }) = change else { return std::future::pending().await };
        self.note = note;
        finder
    }

    /// Which machines are not reached, or late, in a line.
    pub(super) fn note(&self) -> Option<&str> {
        self.note.as_deref()
    }
}

/// What runs for the other machines is ended then.
impl Drop for Sessions {
    fn drop(&mut self) {
        self.changes = None;
        let _ = self.thread.take().map(JoinHandle::join); // it has said what went wrong
    }
}

impl Gathering {
    /// A finder of the sessions of this machine and of others.
    fn finder(&self, remote: &[Arc<Session>]) -> Finder {
        let remote = remote.iter().map(|session| session.row(self.now, &self.limits).0);
        let mut rows: Vec<_> = self.here.iter().cloned().chain(remote).collect();
        distinguish(&mut rows);
        Finder::new(rows)
    }

    /// Asks the machines, and tells of what they tell, until nobody wants to know.
    async fn follow(self, tell: Sender<Change>) {
        let mut query = Query::start(&self.hosts.iter().collect::<Vec<_>>(), Which::All, self.now);
        let patient_until = Instant::now() + TOLD_WITHIN;
        let mut due = None;
        if let Some(reports) = ask_tray().await {
            query.recall(reports);
            due = Some(Instant::now());
        }
        let mut is_patient = true;
        loop {
            let finder = tokio::select! {
                () = tell.closed() => return,
                is_news = query.next() => {
                    if is_news {
                        due.get_or_insert_with(|| Instant::now() + GATHERED);
                    }
                    continue;
                }
                () = sleep_until(due.unwrap_or(patient_until)), if due.is_some() => {
                    due = None;
                    let is_wanted = |session: &&Arc<Session>| self.wants(session);
                    Some(self.finder(&query.sessions().filter(is_wanted).cloned().collect::<Vec<_>>()))
                }
                () = sleep_until(patient_until), if is_patient => {
                    is_patient = false;
                    None
                }
            };
            if tell.send(Change { finder, note: note(&query, is_patient) }).await.is_err() {
                return;
            }
        }
    }

    fn wants(&self, session: &Session) -> bool {
        self.agents.is_empty() || self.agents.iter().any(|name| **name == *session.observed.agent.name())
    }
}

/// Which machines are not reached, or late, in a line.
fn note(query: &Query, is_patient: bool) -> Option<String> {
    let mut notes: Vec<_> = query.troubles().map(|(host, why)| format!("{host} is not reached: {why}")).collect();
    let late: Vec<_> = query.late().filter(|_| !is_patient).collect();
    if !late.is_empty() {
        let has = if late.len() == 1 { "has" } else { "have" };
        notes.push(format!("{} {has} not told of all sessions yet", listed(&late)));
    }
    (!notes.is_empty()).then(|| notes.join("; "))
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;
    use pilotlight_core::remote::SessionReport;
    use pilotlight_engine::config::Reach;
    use pilotlight_engine::control::pipe::lines::FromHost;
    use pilotlight_system::clock::Clock;
    use std::fmt::Write as _;

    /// How long this thread has used a processor.
    fn used() -> Duration {
        let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
        Duration::from_nanos(stat.split(' ').next().unwrap().parse().unwrap())
    }

    /// A machine that tells of so many old sessions.
    fn told(folder: &std::path::Path, count: usize) -> HostSetting {
        let mut said = String::from(
            r#"{"pilotlight":{"version":"0.1.0","schema":3,"now":"2026-01-01T00:00:00Z","system":"linux","architecture":"x86_64","has-tray":false}}"#,
        );
        for n in 0..count {
            let session = Session { id: format!("{n:08x}").into(), ..Session::default() };
            let row = session.row(Moment::default(), &Limits::default()).0;
            let report = SessionReport::of(&session, &row, (&row.name, &row.label), Moment::default());
            let _ = write!(said, "\n{}", serde_json::to_string(&FromHost::Past(Box::new(report))).unwrap());
        }
        std::fs::write(folder.join("said"), said + "\n\"ready\"\n\"all-past\"\n").unwrap();
        let words = format!("cat {}; cat >/dev/null", folder.join("said").display());
        HostSetting { name: "devbox".into(), reach: Reach::Command(["sh", "-c", &words].map(Into::into).into()) }
    }

    /// While the sessions come in, the thread that takes the keys does hardly anything, however busy the machine is.
    #[test]
    fn case_475_sessions_that_come_in_cost_no_key_anything() {
        const COUNT: usize = 5000;
        let folder = tempfile::tempdir().unwrap();
        let hosts = vec![told(folder.path(), COUNT)];
        let (now, limits) = (Clock::start().now(), Limits::default());
        let gathering = Gathering { hosts, agents: Vec::new(), here: Vec::new(), now, limits };
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
            let (mut sessions, _) = Sessions::ask(gathering).unwrap();
            let mut finders = Vec::new();
            let before = used();
            while finders.last().is_none_or(|finder: &Finder| finder.count().1 < COUNT) {
                finders.extend(sessions.change().await);
            }
            let used = used() - before;
            assert!(used < Duration::from_millis(50), "{used:?}");
        });
    }
}
