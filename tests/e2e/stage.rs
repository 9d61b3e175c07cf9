//! The setup of most tests: a home, a model, a server, one client, one session, and Pilotlight.

use crate::support::home::Home;
use crate::support::model::Model;
use crate::support::person::{Manner, Person};
use crate::support::pilotlight::Pilot;
use crate::support::record;
use crate::support::server::{Client, Server, Session};
use serde_json::Value;

/// The folder that most sessions work in.
const PROJECT: &str = "project";

/// One session of a server. Fields drop from the top: Pilotlight first, the home last.
pub(crate) struct Stage {
    pub(crate) pilot: Pilot,
    pub(crate) session: Session,
    pub(crate) client: Client,
    pub(crate) person: Person,
    pub(crate) server: Server,
    pub(crate) model: Model,
    pub(crate) home: Home,
}

impl Stage {
    /// A session whose person answers in this manner.
    pub(crate) fn new(manner: Manner) -> Self {
        let person = Person::new(manner);
        let handler = person.clone();
        Self::with(PROJECT, person, Some(&handler), "")
    }

    /// A session whose person approves, watched by a Pilotlight with this config.
    pub(crate) fn configured(config: &str) -> Self {
        let person = Person::new(Manner::Approves);
        let handler = person.clone();
        Self::with(PROJECT, person, Some(&handler), config)
    }

    /// A session whose person answers in this manner, watched by a Pilotlight with this config.
    pub(crate) fn with_config(manner: Manner, config: &str) -> Self {
        Self::in_project(PROJECT, manner, config)
    }

    /// As [`with_config`](Self::with_config), in a project folder with this name.
    pub(crate) fn in_project(project: &str, manner: Manner, config: &str) -> Self {
        let person = Person::new(manner);
        let handler = person.clone();
        Self::with(project, person, Some(&handler), config)
    }

    /// A session of a client that cannot ask anybody.
    pub(crate) fn without_person() -> Self {
        Self::without_person_configured("")
    }

    /// As [`without_person`](Self::without_person), watched by a Pilotlight with this config.
    pub(crate) fn without_person_configured(config: &str) -> Self {
        Self::with(PROJECT, Person::new(Manner::Leaves), None, config)
    }

    fn with(project: &str, person: Person, handler: Option<&Person>, config: &str) -> Self {
        let home = Home::new(project);
        let model = Model::start();
        let server = Server::start(&home, &model);
        let pilot = Pilot::configured(&[&home], config);
        let client = server.connect();
        let session = server.create(&client, handler);
        Self { pilot, session, client, person, server, model, home }
    }

    /// Waits until all views show this status of the session, with a reason that contains `because`.
    pub(crate) fn wait_status(&self, status: &str, because: &str) -> Value {
        self.pilot.wait_status(&self.session.id(), status, because)
    }

    /// Every reported status so far, without repetitions.
    pub(crate) fn history(&self) -> Vec<String> {
        self.pilot.history(&self.session.id())
    }

    /// Saves the session's folder as a trace, if recording is enabled.
    pub(crate) fn record(&self, name: &str) {
        record::keep(&self.home, name);
    }
}
