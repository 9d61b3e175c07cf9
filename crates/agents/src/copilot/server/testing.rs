//! The context of an action, with the servers that may have its session loaded: for tests with made-up servers, and with
//! real ones.

use super::servers::Endpoints;
use crate::channel::action_context::{ActionContext, LogView, Permit, PermitQuestion, ReportSink};
use crate::channel::endpoint::Endpoint;
use pilotlight_core::order::{OrderReport, Step};
use std::ops::{Deref, DerefMut};
use tokio::sync::{mpsc, watch};

/// The context of an action on a session, and the servers that may have the session loaded.
#[derive(Clone)]
pub struct TestContext {
    pub servers: Endpoints,
    context: ActionContext,
}

impl TestContext {
    /// The context as the engine would pass it on. What it reports goes nowhere.
    pub fn new(id: &str, owned: bool, endpoints: Vec<Endpoint>, log_view: watch::Receiver<LogView>) -> Self {
        let context = ActionContext {
            id: id.into(),
            cwd: None,
            owned,
            log_view,
            probe_result: None,
            drawn_by: None,
            permit: granted(),
            reports: ReportSink::to(drop),
        };
        Self { servers: Endpoints::at(endpoints), context }
    }

    /// The same, whose reports go there.
    pub fn with(&self, reports: ReportSink) -> Self {
        Self { servers: self.servers.clone(), context: ActionContext { reports, ..self.context.clone() } }
    }

    /// The same, with this done at each step.
    pub fn at_steps(&self, act: impl Fn(Step) + Send + Sync + 'static) -> Self {
        self.with(ReportSink::to(move |report| {
            if let OrderReport::Step(step, _) = report {
                act(step);
            }
        }))
    }
}

impl Deref for TestContext {
    type Target = ActionContext;

    fn deref(&self) -> &ActionContext {
        &self.context
    }
}

impl DerefMut for TestContext {
    fn deref_mut(&mut self) -> &mut ActionContext {
        &mut self.context
    }
}

/// A permit that is granted each time.
fn granted() -> Permit {
    let (ask, mut questions) = mpsc::unbounded_channel::<PermitQuestion>();
    std::thread::spawn(move || {
        while let Some(question) = questions.blocking_recv() {
            let _ = question.send(Ok(())); // fails only when whoever asked has gone
        }
    });
    Permit::from(ask)
}
