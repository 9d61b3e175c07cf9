//! One server and its sessions, worked at random. An actor does one thing at a time; while it does, its other sessions rest
//! as they are, and what is true of them is known as well.

use super::deeds::Deeds;
use super::truth::{Ledger, Truth, now, time_of};
use crate::support::home::{Folder, Home};
use crate::support::model::Model;
use crate::support::person::{Manner, Person};
use crate::support::server::{Client, Server, Session};
use crate::support::{SOON, wait, wait_until};
use serde_json::Value;
use std::time::Duration;

/// An actor keeps so many sessions, ended ones included.
const SESSIONS: usize = 7;

/// Choices that a seed repeats (Marsaglia's xorshift).
pub(crate) struct Chance(u64);

impl Chance {
    /// The choices of this seed.
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    /// A number below `most`.
    pub(crate) fn below(&mut self, most: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) as usize % most
    }
}

/// One server, and its sessions.
pub(crate) struct Actor<'a> {
    home: &'a Home,
    ledger: &'a Ledger,
    deeds: &'a Deeds,
    chance: Chance,
    model: Model,
    server: Server,
    client: Client,
    sessions: Vec<Kept>,
    prompts: usize,
}

/// A session that the actor made.
struct Kept {
    folder: Folder,
    person: Person,
    /// The session in the server that runs now; `None` where that is gone.
    live: Option<Session>,
    prompted: bool,
    /// Nobody could be asked in its last turn.
    denied: bool,
}

impl<'a> Actor<'a> {
    /// An actor with a server and no session.
    pub(crate) fn new(home: &'a Home, ledger: &'a Ledger, deeds: &'a Deeds, chance: Chance) -> Self {
        let model = Model::start();
        let server = Server::start(home, &model);
        let client = server.connect();
        Self { home, ledger, deeds, chance, model, server, client, sessions: Vec::new(), prompts: 0 }
    }

    /// Does one thing.
    pub(crate) fn act(&mut self) {
        let live = self.sessions.iter().filter(|kept| kept.live.is_some()).count();
        match self.chance.below(20) {
            _ if self.sessions.is_empty() => self.make(),
            0..3 if self.sessions.len() < SESSIONS => self.make(),
            0..3 => self.delete(),
            3 if live > 1 => self.end_server(false),
            4 if live > 1 => self.end_server(true),
            _ => self.prompt(),
        }
    }

    /// Leaves everything as it is for a while, and ends the server in good order.
    pub(crate) fn settle(&mut self) {
        self.rest();
        for kept in &self.sessions {
            self.deeds.look(&kept.folder, None);
            self.ledger.note(&kept.folder.id(), now(), Truth::Unknown);
        }
    }

    /// Lets what is true hold for a moment.
    fn rest(&mut self) {
        let time = Duration::from_millis(1200 + self.chance.below(2500) as u64);
        wait(time, || None::<()>);
    }

    fn make(&mut self) {
        let person = Person::who(Manner::Approves);
        let session = self.server.create(&self.client, Some(&person));
        let folder = session.folder.clone();
        wait_until(SOON, "the session has an owner", || folder.dump(), || (!folder.locks().is_empty()).then_some(()));
        self.ledger.note(&folder.id(), now(), Truth::Is("idle"));
        self.sessions.push(Kept { folder, person, live: Some(session), prompted: false, denied: false });
        self.rest();
    }

    fn delete(&mut self) {
        let kept = self.sessions.remove(self.chance.below(self.sessions.len()));
        let id = kept.folder.id();
        self.deeds.look(&kept.folder, None);
        self.ledger.note(&id, now(), Truth::Unknown);
        match kept.live {
            Some(_) => self.client.delete(&id),
            None => std::fs::remove_dir_all(&kept.folder.path).unwrap(),
        }
        let folder = &kept.folder;
        wait_until(SOON, "the folder is gone", || folder.dump(), || (!folder.path.exists()).then_some(()));
        self.ledger.note(&id, now(), Truth::Absent);
        self.rest();
    }

    /// Ends the server while nothing runs in it, and starts another.
    fn end_server(&mut self, kill: bool) {
        self.bring_down(kill, None);
        self.rest();
        self.start_server();
    }

    fn start_server(&mut self) {
        self.server = Server::start(self.home, &self.model);
        self.client = self.server.connect();
    }

    /// Ends the server, with this session in the middle of something.
    fn bring_down(&mut self, kill: bool, at_work: Option<usize>) {
        for kept in self.sessions.iter().filter(|kept| kept.live.is_some()) {
            self.ledger.note(&kept.folder.id(), now(), Truth::Unknown);
        }
        if kill {
            self.server.kill();
        } else {
            self.server.terminate();
        }
        let at = now();
        for (index, kept) in self.sessions.iter_mut().enumerate() {
            if kept.live.take().is_none() {
                continue;
            }
            let truth = match (kept.prompted, at_work == Some(index) && kill) {
                (false, _) => Truth::Absent,
                (true, true) => Truth::Is("crashed"),
                // Not one that was killed: that wrote nothing.
                (true, false)
                    if kept.denied && kept.folder.types().last().is_some_and(|last| last == "session.shutdown") =>
                {
                    Truth::Is("failed")
                }
                (true, false) => Truth::Is("ended"),
            };
            self.ledger.note(&kept.folder.id(), at, truth);
        }
    }

    /// Sends a prompt to a session, resumed if need be, and sees it through.
    fn prompt(&mut self) {
        let index = self.chance.below(self.sessions.len());
        let choice = self.chance.below(10);
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
        let kept = &mut self.sessions[index];
        (kept.prompted, kept.denied) = (true, script == "denied3");
        kept.person.now(manner);
        let folder = kept.folder.clone();
        let note = |event: &Value, status| self.ledger.note(&folder.id(), time_of(event), Truth::Is(status));
        if let Some(session) = &kept.live {
            session.send(&words);
        }
        let since = Since::prompt(&folder, &words);
        note(&since.nth("user.message", 1), "working");
        match script {
            "ask" => {
                note(&since.nth("tool.execution_start", 1), "needs-input");
                self.rest();
                self.sessions[index].person.now(Manner::Approves);
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

    /// A permission is waited for, and then given; or the server is killed meanwhile.
    fn permission(&mut self, index: usize, since: &Since<'_>) {
        let id = since.folder.id();
        self.ledger.note(&id, time_of(&since.nth("permission.requested", 1)), Truth::Is("needs-permission"));
        self.rest();
        if self.chance.below(4) == 0 {
            return self.crash(index);
        }
        self.sessions[index].person.now(Manner::Approves);
        self.ledger.note(&id, time_of(&since.nth("permission.completed", 1)), Truth::Is("working"));
        if self.chance.below(5) == 0 {
            // Well before the tool's three seconds are over.
            wait(Duration::from_millis(1800), || None::<()>);
            return self.crash(index);
        }
        self.ledger.note(&id, time_of(&since.end_of_turn()), Truth::Is("idle"));
    }

    /// The model is silent: the turn is aborted, or the server killed.
    fn interrupt(&mut self, index: usize, since: &Since<'_>) {
        self.rest();
        if self.chance.below(3) == 0 {
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

    /// The server is killed with a session in the middle of something.
    fn crash(&mut self, index: usize) {
        self.bring_down(true, Some(index));
        self.rest();
        self.start_server();
    }

    /// Takes a session up again whose server is gone. Whether it was there to be taken up.
    fn resume(&mut self, index: usize) -> bool {
        let kept = &mut self.sessions[index];
        let id = kept.folder.id();
        if !kept.prompted {
            // Nothing of it is worth keeping: its folder says nothing.
            self.sessions.remove(index);
            return false;
        }
        self.ledger.note(&id, now(), Truth::Unknown);
        kept.live = Some(self.server.resume(&self.client, &id, &kept.person, None));
        true
    }
}

/// What a session's log says from this event on.
pub(crate) struct Since<'a> {
    folder: &'a Folder,
    begins: usize,
}

impl<'a> Since<'a> {
    /// From this prompt on: whoever resumes a session writes down first what was broken off.
    pub(crate) fn prompt(folder: &'a Folder, words: &str) -> Self {
        let is_it = |event: &Value| event["type"] == "user.message" && event["data"]["content"] == *words;
        let begins =
            wait_until(SOON, "the prompt is in the log", || folder.dump(), || folder.events().iter().position(is_it));
        Self { folder, begins }
    }

    fn find(&self, what: &str, find: impl Fn(&[Value]) -> Option<Value>) -> Value {
        wait_until(
            SOON,
            what,
            || self.folder.dump(),
            || {
                let events = self.folder.events();
                find(events.get(self.begins..)?)
            },
        )
    }

    /// The `count`th event of this type.
    pub(crate) fn nth(&self, kind: &str, count: usize) -> Value {
        self.find(&format!("there is {kind}, {count} times"), |events| {
            events.iter().filter(|event| event["type"] == kind).nth(count - 1).cloned()
        })
    }

    /// The end of the turn: that of the round in which the model asked for no more tools.
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
