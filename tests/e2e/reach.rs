//! What the stories of recovery begin with: a session of a server, and what Pilotlight's engine would tell of it.

use crate::support::home::{Folder, Home};
use crate::support::model::Model;
use crate::support::person::{Manner, Person};
use crate::support::server::{Client, Server, Session};
use crate::support::{SOON, spawn, wait_until};
use pilotlight::agent::copilot::server::attached::{Event, What};
use pilotlight::agent::copilot::server::recover::{Permit, RequestAnswer, Sight, Site};
use pilotlight::agent::copilot::server::servers::Endpoint;
use pilotlight::core::order::{Step, Which};
use pilotlight::core::time::Time;
use serde_json::Value;
use std::collections::HashSet;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::{mpsc, watch};

/// One session of a server, without a Pilotlight beside it. Fields drop from the top.
pub(crate) struct Reach {
    pub(crate) session: Session,
    pub(crate) client: Client,
    pub(crate) person: Person,
    pub(crate) server: Server,
    pub(crate) model: Model,
    pub(crate) home: Home,
}

impl Reach {
    /// A session whose person answers in this manner.
    pub(crate) fn set(manner: Manner) -> Self {
        Self::with(manner, true)
    }

    /// A session of a client that cannot ask anybody.
    pub(crate) fn without_person() -> Self {
        Self::with(Manner::Leaves, false)
    }

    fn with(manner: Manner, asked: bool) -> Self {
        let (home, model, person) = (Home::new("project"), Model::start(), Person::who(manner));
        let server = Server::start(&home, &model);
        let client = server.connect();
        let session = server.create(&client, asked.then_some(&person));
        Self { session, client, person, server, model, home }
    }

    /// The session as the engine would hand it over.
    pub(crate) fn site(&self) -> Site {
        site(&self.session.folder, &[self.server.address()], true)
    }

    /// Sends the prompt of a tool that works until told, and waits until it asks for permission.
    pub(crate) fn ask(&self) {
        self.session.send("SCRIPT:tool Paint the fence");
        self.session.folder.wait("permission.requested");
    }
}

/// A session where these servers may have it.
pub(crate) fn site(folder: &Folder, at: &[SocketAddr], owned: bool) -> Site {
    site_seen(folder, at, owned, |_| ())
}

/// The same, with what else is seen of it.
pub(crate) fn site_seen(
    folder: &Folder,
    at: &[SocketAddr],
    owned: bool,
    more: impl Fn(&mut Sight) + Send + 'static,
) -> Site {
    let see = {
        let folder = folder.clone();
        move || {
            let mut sight = seen(&folder.events());
            more(&mut sight);
            sight
        }
    };
    let (sender, sight) = watch::channel(see());
    spawn(async move {
        while !sender.is_closed() {
            let now = see();
            sender.send_if_modified(|sight| std::mem::replace(sight, now.clone()) != now);
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    let endpoints = at.iter().map(|&address| Endpoint { address, token: None }).collect();
    Site { id: folder.id().into(), cwd: None, endpoints, owned, sight, permit: Permit::default() }
}

/// What a log tells, as far as it matters here.
fn seen(events: &[Value]) -> Sight {
    let mut sight = Sight { events: events.len() as u64, ..Sight::default() };
    let mut tools = HashSet::new();
    let mut answered = false;
    for event in events {
        let data = &event["data"];
        match event["type"].as_str().unwrap() {
            "user.message" => (sight.turn_open, sight.ran) = (true, 0),
            "assistant.turn_start" => (sight.turn_open, answered) = (true, false),
            "assistant.message" => answered = data["toolRequests"].as_array().is_none_or(Vec::is_empty),
            "assistant.turn_end" if answered => sight.turn_open = false,
            "tool.execution_start" => {
                tools.insert(data["toolCallId"].to_string());
                sight.ran += 1;
            }
            "tool.execution_complete" => {
                tools.remove(&data["toolCallId"].to_string());
                sight.ran -= u32::from(data["error"]["code"] == "denied");
            }
            kind @ ("abort" | "session.error" | "session.shutdown") => {
                sight.turn_open = false;
                tools.clear();
                if kind == "abort" {
                    sight.aborted = Time::parse(event["timestamp"].as_str().unwrap().as_bytes());
                }
            }
            _ => {}
        }
    }
    sight.tools_open = tools.len();
    sight
}

/// The requests that are open in a session's log, all of them.
pub(crate) fn open(folder: &Folder) -> Which {
    let events = folder.events();
    let ids = |kind: &str| -> Vec<String> {
        let of_kind = events.iter().filter(|event| event["type"] == kind);
        of_kind.map(|event| event["data"]["requestId"].as_str().unwrap().to_owned()).collect()
    };
    let done = ids("permission.completed");
    Which::These(ids("permission.requested").into_iter().filter(|id| !done.contains(id)).collect())
}

/// Keeps the steps that are reported.
#[derive(Clone, Default)]
pub(crate) struct Steps(Arc<Mutex<Vec<(Step, String)>>>);

impl Steps {
    pub(crate) fn take(&self) -> impl Fn(Step, String) + Send + Sync + 'static {
        let steps = Arc::clone(&self.0);
        move |step, words| steps.lock().unwrap().push((step, words))
    }

    /// How often a step was reported.
    pub(crate) fn count(&self, step: Step) -> usize {
        self.0.lock().unwrap().iter().filter(|(other, _)| *other == step).count()
    }
}

/// For steps that do not matter.
pub(crate) fn ignored(_: Step, _: String) {}

/// Open requests, answered for a user who does not look at them, nor at the steps.
pub(crate) fn answering<'a>(site: &'a Site, which: &'a Which, approve: bool) -> RequestAnswer<'a> {
    RequestAnswer { site, which, approve, show: &|_| (), steps: &ignored }
}

/// Takes the events of an attachment.
pub(crate) struct Heard {
    events: Mutex<mpsc::UnboundedReceiver<Event>>,
    so_far: Mutex<Vec<Event>>,
}

/// Where an attachment sends its events, and where they are heard.
pub(crate) fn hearing() -> (mpsc::UnboundedSender<Event>, Heard) {
    let (sender, events) = mpsc::unbounded_channel();
    (sender, Heard { events: Mutex::new(events), so_far: Mutex::default() })
}

impl Heard {
    /// Everything so far.
    pub(crate) fn all(&self) -> Vec<Event> {
        let (mut events, mut so_far) = (self.events.lock().unwrap(), self.so_far.lock().unwrap());
        while let Ok(event) = events.try_recv() {
            so_far.push(event);
        }
        so_far.clone()
    }

    /// Waits for an event.
    pub(crate) fn wait(&self, what: &str, is: impl Fn(&What) -> bool) -> Event {
        let dump = || format!("{:?}", self.all());
        wait_until(SOON, what, dump, || self.all().into_iter().find(|event| is(&event.what)))
    }
}
