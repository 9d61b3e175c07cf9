//! What most stories begin with: a home, a model, a server, one client, one session, and Pilotlight beside them.

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
    pub(crate) fn set(manner: Manner) -> Self {
        let person = Person::who(manner);
        let asked = person.clone();
        Self::with(PROJECT, person, Some(&asked), "")
    }

    /// A session whose person approves, watched by a Pilotlight with this config.
    pub(crate) fn configured(config: &str) -> Self {
        let person = Person::who(Manner::Approves);
        let asked = person.clone();
        Self::with(PROJECT, person, Some(&asked), config)
    }

    /// A session whose person answers in this manner, watched by a Pilotlight with this config.
    pub(crate) fn set_configured(manner: Manner, config: &str) -> Self {
        Self::in_project(PROJECT, manner, config)
    }

    /// The same in a folder of this name.
    pub(crate) fn in_project(project: &str, manner: Manner, config: &str) -> Self {
        let person = Person::who(manner);
        let asked = person.clone();
        Self::with(project, person, Some(&asked), config)
    }

    /// A session of a client that cannot ask anybody.
    pub(crate) fn without_person() -> Self {
        Self::without_person_configured("")
    }

    /// The same, watched by a Pilotlight with this config.
    pub(crate) fn without_person_configured(config: &str) -> Self {
        Self::with(PROJECT, Person::who(Manner::Leaves), None, config)
    }

    fn with(project: &str, person: Person, asked: Option<&Person>, config: &str) -> Self {
        let home = Home::new(project);
        let model = Model::start();
        let server = Server::start(&home, &model);
        let pilot = Pilot::configured(&[&home], config);
        let client = server.connect();
        let session = server.create(&client, asked);
        Self { pilot, session, client, person, server, model, home }
    }

    /// Waits until the session is told to be so, for a reason that contains `because`.
    pub(crate) fn told(&self, status: &str, because: &str) -> Value {
        self.pilot.told(&self.session.id(), status, because)
    }

    /// Every status told so far, each change once.
    pub(crate) fn history(&self) -> Vec<String> {
        self.pilot.history(&self.session.id())
    }

    /// Keeps the session's folder as a trace, where recording is wanted.
    pub(crate) fn record(&self, name: &str) {
        record::keep(&self.home, name);
    }
}
