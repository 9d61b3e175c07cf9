//! One server and its sessions, driven at random. An actor does one thing at a time. Its other sessions do not change
//! during that time, so their true status is known too.

use super::audit::Audit;
use super::truth::{Ledger, Truth, now, time_of};
use crate::support::home::{Folder, Home};
use crate::support::model::Model;
use crate::support::person::{Manner, Person};
use crate::support::server::{Client, Server, Session};
use crate::support::terminal::Terminal;
use crate::support::{SOON, wait, wait_until};
use serde_json::Value;
use std::time::Duration;

/// How many sessions an actor keeps, including ended ones.
const SESSIONS: usize = 7;

/// A random generator with reproducible choices (Marsaglia's xorshift).
pub(crate) struct Rng(u64);

impl Rng {
    /// Starts the sequence of this seed.
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    /// A number below `limit`.
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) as usize % limit
    }
}

/// One server and its sessions.
pub(crate) struct Actor<'a> {
    home: &'a Home,
    ledger: &'a Ledger,
    audit: &'a Audit,
    rng: Rng,
    model: Model,
    server: Server,
    client: Client,
    sessions: Vec<Created>,
    prompts: usize,
}

/// A session that the actor created.
struct Created {
    folder: Folder,
    person: Person,
    /// The session in the running server. `None` if its server is gone.
    live: Option<Session>,
    prompted: bool,
    /// Whether nobody could be asked in its last turn.
    denied: bool,
    /// Whether a server that had it was killed.
    killed: bool,
}

impl Created {
    fn check(&self, audit: &Audit) {
        if self.killed {
            audit.check_log_of_killed(&self.folder);
        } else {
            audit.check_log(&self.folder, None);
        }
    }
}

impl<'a> Actor<'a> {
    /// Starts an actor with a server and no session.
    pub(crate) fn new(home: &'a Home, ledger: &'a Ledger, audit: &'a Audit, rng: Rng) -> Self {
        let model = Model::start();
        let server = Server::start(home, &model);
        let client = server.connect();
        Self { home, ledger, audit, rng, model, server, client, sessions: Vec::new(), prompts: 0 }
    }

    /// Does one random thing.
    pub(crate) fn act(&mut self) {
        let live = self.sessions.iter().filter(|created| created.live.is_some()).count();
        match self.rng.below(20) {
            _ if self.sessions.is_empty() => self.make(),
            0..3 if self.sessions.len() < SESSIONS => self.make(),
            0..3 => self.delete(),
            3 if live > 1 => self.end_server(false),
            4 if live > 1 => self.end_server(true),
            _ => self.prompt(),
        }
    }

    /// Ends the actor: checks all logs after a pause. The server is terminated when the actor is dropped.
    pub(crate) fn settle(&mut self) {
        self.rest();
        for created in &self.sessions {
            created.check(self.audit);
            self.ledger.note(&created.folder.id(), now(), Truth::Unknown);
        }
    }

    /// Keeps the truth unchanged for a moment.
    fn rest(&mut self) {
        let time = Duration::from_millis(1200 + self.rng.below(2500) as u64);
        wait(time, || None::<()>);
    }

    fn make(&mut self) {
        let person = Person::new(Manner::Approves);
        let session = self.server.create(&self.client, Some(&person));
        let folder = session.folder.clone();
        wait_until(SOON, "the session has an owner", || folder.dump(), || (!folder.locks().is_empty()).then_some(()));
        self.ledger.note(&folder.id(), now(), Truth::Is("idle"));
        self.sessions.push(Created {
            folder,
            person,
            live: Some(session),
            prompted: false,
            denied: false,
            killed: false,
        });
        self.rest();
    }

    fn delete(&mut self) {
        let created = self.sessions.remove(self.rng.below(self.sessions.len()));
        let id = created.folder.id();
        created.check(self.audit);
        self.ledger.note(&id, now(), Truth::Unknown);
        match created.live {
            Some(_) => self.client.delete(&id),
            None => std::fs::remove_dir_all(&created.folder.path).unwrap(),
        }
        let folder = &created.folder;
        wait_until(SOON, "the folder is gone", || folder.dump(), || (!folder.path.exists()).then_some(()));
        self.ledger.note(&id, now(), Truth::Absent);
        self.rest();
    }

    /// Ends the server while no turn is open, and starts another.
    fn end_server(&mut self, kill: bool) {
        self.bring_down(kill, None);
        self.rest();
        self.start_server();
    }

    fn start_server(&mut self) {
        self.server = Server::start(self.home, &self.model);
        self.client = self.server.connect();
    }

    /// Ends the server. `working` is the session with an open turn.
    fn bring_down(&mut self, kill: bool, working: Option<usize>) {
        for created in self.sessions.iter().filter(|created| created.live.is_some()) {
            self.ledger.note(&created.folder.id(), now(), Truth::Unknown);
        }
        if kill {
            self.server.kill();
        } else {
            self.server.terminate();
        }
        let at = now();
        for (index, created) in self.sessions.iter_mut().enumerate() {
            if created.live.take().is_none() {
                continue;
            }
            created.killed |= kill;
            let truth = match (created.prompted, working == Some(index) && kill) {
                (false, _) => Truth::Absent,
                (true, true) => Truth::Is("crashed"),
                // Case 183: with a shutdown or without.
                (true, false) if created.denied => Truth::Is("failed"),
                (true, false) => Truth::Is("ended"),
            };
            self.ledger.note(&created.folder.id(), at, truth);
        }
    }

    /// Sends a prompt to a session, which is resumed if necessary, and follows the turn to its end.
    fn prompt(&mut self) {
        let index = self.rng.below(self.sessions.len());
        let choice = self.rng.below(10);
        let (script, manner) = match choice {
            0 | 1 => ("plain", Manner::Approves),
            2 => ("question", Manner::Approves),
            3 => ("ask", Manner::Waits),
            4 | 5 => ("sleep3", Manner::Waits),
            6 => ("err401", Manner::Approves),
            7 => ("denied3", Manner::Away),
            _ => ("hang", Manner::Approves),
        };
        if self.sessions[index].live.is_none() && !self.resume(index) {
            return;
        }
        self.prompts += 1;
        let words = format!("SCRIPT:{script} Paint fence {}", self.prompts);
        let held = (choice == 0).then(|| self.model.hold("plain", 0));
        let created = &mut self.sessions[index];
        (created.prompted, created.denied) = (true, script == "denied3");
        created.person.set_manner(manner);
        let folder = created.folder.clone();
        let note = |event: &Value, status| self.ledger.note(&folder.id(), time_of(event), Truth::Is(status));
        if let Some(session) = &created.live {
            session.send(&words);
        }
        let since = Since::prompt(&folder, &words);
        note(&since.nth("user.message", 1), "working");
        match script {
            "ask" => {
                note(&since.nth("tool.execution_start", 1), "needs-input");
                self.rest();
                self.sessions[index].person.set_manner(Manner::Approves);
                let note = |event: &Value, status| self.ledger.note(&folder.id(), time_of(event), Truth::Is(status));
                note(&since.nth("tool.execution_complete", 1), "working");
                note(&since.end_of_turn(), "idle");
            }
            "sleep3" => self.permission(index, &since),
            "err401" => note(&since.nth("session.error", 1), "failed"),
            "denied3" => {
                note(&since.nth("tool.execution_complete", 3), "permission-lost");
                since.end_of_turn();
            }
            "hang" => self.interrupt(index, &since),
            _ => {
                if held.is_some() {
                    self.rest();
                }
                drop(held);
                let status = if script == "question" { "needs-input" } else { "idle" };
                self.ledger.note(&folder.id(), time_of(&since.end_of_turn()), Truth::Is(status));
            }
        }
        self.rest();
    }

    /// A permission is pending, then granted, or the server is killed before or after that.
    fn permission(&mut self, index: usize, since: &Since<'_>) {
        let id = since.folder.id();
        self.ledger.note(&id, time_of(&since.nth("permission.requested", 1)), Truth::Is("needs-permission"));
        self.rest();
        if self.rng.below(4) == 0 {
            return self.crash(index);
        }
        self.sessions[index].person.set_manner(Manner::Approves);
        self.ledger.note(&id, time_of(&since.nth("permission.completed", 1)), Truth::Is("working"));
        if self.rng.below(5) == 0 {
            // Well before the tool's three seconds have passed.
            wait(Duration::from_millis(1800), || None::<()>);
            return self.crash(index);
        }
        self.ledger.note(&id, time_of(&since.end_of_turn()), Truth::Is("idle"));
    }

    /// The model is silent. The turn is aborted, or the server is killed.
    fn interrupt(&mut self, index: usize, since: &Since<'_>) {
        self.rest();
        if self.rng.below(3) == 0 {
            return self.crash(index);
        }
        let id = since.folder.id();
        self.ledger.note(&id, now(), Truth::Unknown);
        if let Some(session) = &self.sessions[index].live {
            session.abort();
        }
        let aborted = time_of(&since.nth("abort", 1));
        self.ledger.note(&id, aborted, Truth::Is("idle"));
    }

    /// Kills the server while this session has an open turn.
    fn crash(&mut self, index: usize) {
        self.bring_down(true, Some(index));
        self.rest();
        self.start_server();
    }

    /// Resumes a session whose server is gone. Returns whether it could be resumed.
    fn resume(&mut self, index: usize) -> bool {
        let created = &mut self.sessions[index];
        let id = created.folder.id();
        if !created.prompted {
            // Copilot keeps nothing of a session without a prompt.
            self.sessions.remove(index);
            return false;
        }
        self.ledger.note(&id, now(), Truth::Unknown);
        created.live = Some(self.server.resume(&self.client, &id, &created.person, None));
        true
    }
}

/// The log of a session from an event on.
pub(crate) struct Since<'a> {
    folder: &'a Folder,
    start: usize,
    /// The state of the session, for when it is waited for in vain.
    dump: Box<dyn Fn() -> String + 'a>,
}

impl<'a> Since<'a> {
    /// From this prompt on: a resuming process first logs what was interrupted.
    pub(crate) fn prompt(folder: &'a Folder, words: &str) -> Self {
        Self::logged(folder, words, Box::new(|| folder.dump()))
    }

    /// From this prompt on, which was typed in a terminal.
    pub(crate) fn typed(terminal: &'a Terminal, words: &str) -> Self {
        Self::logged(&terminal.folder, words, Box::new(|| terminal.dump()))
    }

    fn logged(folder: &'a Folder, words: &str, dump: Box<dyn Fn() -> String + 'a>) -> Self {
        let is_prompt = |event: &Value| event["type"] == "user.message" && event["data"]["content"] == *words;
        let start = wait_until(SOON, "the prompt is in the log", &dump, || folder.events().iter().position(is_prompt));
        Self { folder, start, dump }
    }

    fn find(&self, what: &str, find: impl Fn(&[Value]) -> Option<Value>) -> Value {
        wait_until(SOON, what, &self.dump, || {
            let events = self.folder.events();
            find(events.get(self.start..)?)
        })
    }

    /// The `count`th event of this type.
    pub(crate) fn nth(&self, kind: &str, count: usize) -> Value {
        self.find(&format!("{kind} is logged {count} times"), |events| {
            events.iter().filter(|event| event["type"] == kind).nth(count - 1).cloned()
        })
    }

    /// The end of the turn: the end of the round in which the model requested no more tools.
    pub(crate) fn end_of_turn(&self) -> Value {
        self.find("the turn ends", |events| {
            let answer = |event: &Value| {
                event["type"] == "assistant.message"
                    && event["data"]["toolRequests"].as_array().is_none_or(Vec::is_empty)
            };
            let answered = events.iter().position(answer)?;
            events[answered..].iter().find(|event| event["type"] == "assistant.turn_end").cloned()
        })
    }
}
