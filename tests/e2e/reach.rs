//! The setup of the recovery tests: a session of a server, and the view that Pilotlight's engine would have of it.

use crate::support::home::{Folder, Home};
use crate::support::model::Model;
use crate::support::person::{Manner, Person};
use crate::support::server::{Client, Server, Session};
use crate::support::{SOON, spawn, wait_until};
use pilotlight_agents::channel::action_context::{LogView, ReportSink};
use pilotlight_agents::channel::connection_event::{ConnectionEvent, ConnectionEventKind};
use pilotlight_agents::channel::endpoint::Endpoint;
use pilotlight_agents::channel::failure::Failure;
use pilotlight_agents::channel::order::Policy;
use pilotlight_agents::channel::{Channel, Keep};
use pilotlight_agents::copilot::server::attached::{self, Attached};
use pilotlight_agents::copilot::server::testing::TestContext;
use pilotlight_core::order::{Decision, OrderReport, Step, Which};
use pilotlight_core::time::Time;
use serde_json::Value;
use std::collections::HashSet;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::{mpsc, watch};

/// One session of a server, without Pilotlight. Fields drop from the top.
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
    pub(crate) fn new(manner: Manner) -> Self {
        Self::with(manner, true)
    }

    /// A session of a client that cannot ask anybody.
    pub(crate) fn without_person() -> Self {
        Self::with(Manner::Leaves, false)
    }

    fn with(manner: Manner, can_ask: bool) -> Self {
        let (home, model, person) = (Home::new("project"), Model::start(), Person::new(manner));
        let server = Server::start(&home, &model);
        let client = server.connect();
        let session = server.create(&client, can_ask.then_some(&person));
        Self { session, client, person, server, model, home }
    }

    /// The session as the engine would pass it on.
    pub(crate) fn context(&self) -> TestContext {
        context(&self.session.folder, &[self.server.address()], true)
    }

    /// Sends a prompt for a long-running tool, and waits until it asks for permission.
    pub(crate) fn ask(&self) {
        self.session.send("SCRIPT:tool Paint the fence");
        self.session.folder.wait("permission.requested");
    }
}

/// The context of an action on a session that may be loaded in these servers.
pub(crate) fn context(folder: &Folder, at: &[SocketAddr], owned: bool) -> TestContext {
    context_with(folder, at, owned, |_| ())
}

/// As [`context`], with changes to the view of its log.
pub(crate) fn context_with(
    folder: &Folder,
    at: &[SocketAddr],
    owned: bool,
    more: impl Fn(&mut LogView) + Send + 'static,
) -> TestContext {
    let read = {
        let folder = folder.clone();
        move || {
            let mut log_view = view_of(&folder.events());
            more(&mut log_view);
            log_view
        }
    };
    let (sender, log_view) = watch::channel(read());
    spawn(async move {
        while !sender.is_closed() {
            let now = read();
            sender.send_if_modified(|log_view| std::mem::replace(log_view, now.clone()) != now);
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    let endpoints = at.iter().map(|&address| Endpoint { address, token: None }).collect();
    TestContext::new(&folder.id(), owned, endpoints, log_view)
}

/// Answers requests without attaching.
pub(crate) async fn answer(context: &TestContext, which: &Which, approve: bool) -> Result<String, Failure> {
    let decision = if approve { Decision::Approve } else { Decision::DENY };
    context.servers.answer(context, which, &decision).await
}

/// Stops a turn without attaching.
pub(crate) async fn stop(context: &TestContext) -> Result<String, Failure> {
    context.servers.stop(context).await
}

/// Attaches, and expects what was done about a silent turn to have worked.
pub(crate) async fn attach(
    context: &TestContext,
    policy: Policy,
    events: mpsc::UnboundedSender<ConnectionEvent>,
    generation: u64,
) -> Result<Attached, Failure> {
    let (attached, silent) = attached::attach(&context.servers, context, Keep { policy, events, generation }).await?;
    silent.map(|_| attached)
}

/// The view of a log, as far as the tests need it.
fn view_of(events: &[Value]) -> LogView {
    let mut log_view = LogView { events: events.len() as u64, ..LogView::default() };
    let mut tools = HashSet::new();
    let mut answered = false;
    for event in events {
        let data = &event["data"];
        match event["type"].as_str().unwrap() {
            "user.message" => (log_view.turn_open, log_view.ran) = (true, 0),
            "assistant.turn_start" => (log_view.turn_open, answered) = (true, false),
            "assistant.message" => answered = data["toolRequests"].as_array().is_none_or(Vec::is_empty),
            "assistant.turn_end" if answered => log_view.turn_open = false,
            "tool.execution_start" => {
                tools.insert(data["toolCallId"].to_string());
                log_view.ran += 1;
            }
            "tool.execution_complete" => {
                tools.remove(&data["toolCallId"].to_string());
                log_view.ran -= u32::from(data["error"]["code"] == "denied");
            }
            kind @ ("abort" | "session.error" | "session.shutdown") => {
                log_view.turn_open = false;
                tools.clear();
                if kind == "abort" {
                    log_view.aborted = Time::parse(event["timestamp"].as_str().unwrap().as_bytes());
                }
            }
            _ => {}
        }
    }
    log_view.tools_open = tools.len();
    log_view
}

/// All open requests in a session's log.
pub(crate) fn open(folder: &Folder) -> Which {
    let events = folder.events();
    let ids = |kind: &str| -> Vec<String> {
        let of_kind = events.iter().filter(|event| event["type"] == kind);
        of_kind.map(|event| event["data"]["requestId"].as_str().unwrap().to_owned()).collect()
    };
    let done = ids("permission.completed");
    Which::These(ids("permission.requested").into_iter().filter(|id| !done.contains(id)).collect())
}

/// Records what is reported.
#[derive(Clone, Default)]
pub(crate) struct Recorder(Arc<Mutex<Vec<OrderReport>>>);

impl Recorder {
    /// The context, whose reports are recorded here.
    pub(crate) fn at(&self, context: &TestContext) -> TestContext {
        let reports = Arc::clone(&self.0);
        context.with(ReportSink::to(move |report| reports.lock().unwrap().push(report)))
    }

    /// How many times a step was reported.
    pub(crate) fn count(&self, step: Step) -> usize {
        let reports = self.0.lock().unwrap();
        reports.iter().filter(|report| matches!(report, OrderReport::Step(other, _) if *other == step)).count()
    }

    /// The requests that were shown.
    pub(crate) fn shown(&self) -> String {
        let reports = self.0.lock().unwrap();
        let shown = reports.iter().filter_map(|report| match report {
            OrderReport::Request(request) => Some(request.text.as_str()),
            _ => None,
        });
        shown.collect()
    }
}

/// The context, with this done at one step.
pub(crate) fn at_step(context: &TestContext, step: Step, act: impl Fn() + Send + Sync + 'static) -> TestContext {
    context.at_steps(move |now| {
        if now == step {
            act();
        }
    })
}

/// The received events of an attachment.
pub(crate) struct Received {
    events: Mutex<mpsc::UnboundedReceiver<ConnectionEvent>>,
    so_far: Mutex<Vec<ConnectionEvent>>,
}

/// A channel for the events of an attachment.
pub(crate) fn event_channel() -> (mpsc::UnboundedSender<ConnectionEvent>, Received) {
    let (sender, events) = mpsc::unbounded_channel();
    (sender, Received { events: Mutex::new(events), so_far: Mutex::default() })
}

impl Received {
    /// Everything so far.
    pub(crate) fn all(&self) -> Vec<ConnectionEvent> {
        let (mut events, mut so_far) = (self.events.lock().unwrap(), self.so_far.lock().unwrap());
        while let Ok(event) = events.try_recv() {
            so_far.push(event);
        }
        so_far.clone()
    }

    /// Waits for an event that fits.
    pub(crate) fn wait(&self, what: &str, fits: impl Fn(&ConnectionEventKind) -> bool) -> ConnectionEvent {
        let dump = || format!("{:?}", self.all());
        wait_until(SOON, what, dump, || self.all().into_iter().find(|event| fits(&event.kind)))
    }
}
