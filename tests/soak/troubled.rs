//! A server that is given trouble: it is frozen while orders are on their way, ordered the same twice at once, has its home
//! copied, and asks its user what no log says. Each time a session is made for that, and held to what may have come of it.

use super::actor::Chance;
use super::deeds::Deeds;
use super::pilots::Pilots;
use crate::support::freeze::freeze;
use crate::support::home::{Folder, Home};
use crate::support::model::Model;
use crate::support::person::{Manner, Person};
use crate::support::process::{is_live, signal};
use crate::support::server::{Client, Server, Session};
use crate::support::{SOON, wait};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

/// By then an event that is going to be written is: four times as long as any took.
const WRITTEN: Duration = Duration::from_millis(600);

/// One server, and one session at a time.
pub(crate) struct Troubled<'a> {
    home: &'a Home,
    pilots: &'a Pilots,
    deeds: &'a Deeds,
    chance: Chance,
    _model: Model,
    client: Client,
    server: Server,
    /// A process by Copilot's name that has nothing to do with any session.
    bystander: Child,
    made: usize,
}

impl Drop for Troubled<'_> {
    fn drop(&mut self) {
        signal(self.server.pid(), Signal::CONT);
        let _ = self.bystander.kill();
        let _ = self.bystander.wait();
    }
}

impl<'a> Troubled<'a> {
    /// A server without a session.
    pub(crate) fn new(home: &'a Home, pilots: &'a Pilots, deeds: &'a Deeds, chance: Chance) -> Self {
        let model = Model::start();
        let server = Server::start(home, &model);
        let program = pilots.scratch().join("copilot");
        let sleep = ["/bin/sleep", "/usr/bin/sleep"].into_iter().find(|path| std::path::Path::new(path).is_file());
        std::fs::copy(sleep.unwrap(), &program).unwrap();
        let bystander = Command::new(program).arg("7200").stdin(Stdio::null()).spawn().unwrap();
        Self { home, pilots, deeds, chance, _model: model, client: server.connect(), server, bystander, made: 0 }
    }

    /// Gives trouble once.
    pub(crate) fn act(&mut self) {
        self.made += 1;
        let session = match self.chance.below(7) {
            0 => self.frozen_approval(),
            1 => self.frozen_stop(),
            2 => self.frozen_continue(),
            3 | 4 => self.continued_twice(),
            5 => self.copied(),
            _ => self.asks(),
        };
        let (server, bystander) = (is_live(self.server.pid()), self.bystander.try_wait().unwrap().is_none());
        self.deeds.must(server && bystander, "a process ended that no session's order was for", || {
            format!("the server lives: {server}; the bystander: {bystander}")
        });
        self.client.delete(&session.id());
    }

    /// Words that no other prompt has, first of which those by which the row is found in the menu.
    fn words(&self, script: &str) -> String {
        format!("Trouble {} SCRIPT:{script} Paint it", self.made)
    }

    fn person(&self, manner: Manner) -> Person {
        Person::who(manner)
    }

    fn below(&mut self, most: u64) -> Duration {
        Duration::from_millis(self.chance.below(most as usize) as u64)
    }

    /// Freezes the server while these are on their way, and continues it a while later. What they came to.
    fn frozen(&mut self, session: &Session, commands: Vec<Command>) -> Vec<Output> {
        let (pid, before, span) = (self.server.pid(), self.below(250), self.below(7000));
        let started: Vec<Child> = commands.into_iter().map(|mut command| command.spawn().unwrap()).collect();
        wait(before, || None::<()>);
        freeze(pid);
        wait(span, || None::<()>);
        signal(pid, Signal::CONT);
        let outputs = started.into_iter().map(|child| child.wait_with_output().unwrap()).collect();
        self.deeds.count("frozen");
        settle(session);
        outputs
    }

    /// What an order says and what came of it agree: done is done, refused or failed is not done; what may have happened is once
    /// at most.
    fn agrees(&self, outputs: &[Output], effects: usize, what: &str, folder: &Folder) {
        let codes: Vec<_> = outputs.iter().map(|output| output.status.code()).collect();
        codes.iter().for_each(|code| self.deeds.count(format!("{what} exit {}", code.unwrap_or(-1))));
        let done = codes.iter().filter(|code| **code == Some(0)).count();
        let maybe = codes.iter().filter(|code| **code == Some(5)).count();
        let so = effects <= 1 && effects >= done.min(1) && (effects == 0 || done + maybe > 0);
        let dump = || format!("{effects} effects of {what}: {outputs:#?}\n{}", folder.dump());
        self.deeds.must(so, "what an order said is not what came of it", dump);
    }

    /// Two requests, of which one command is to answer the first, whose text it shows.
    fn frozen_approval(&mut self) -> Session {
        let session = self.server.create(&self.client, Some(&self.person(Manner::Waits)));
        session.send(&self.words("two"));
        session.folder.wait_nth("permission.requested", 2);
        let beside = self.chance.below(2) == 0;
        let commands = vec![self.pilots.command(beside, None, &["approve", &session.id()])];
        let outputs = self.frozen(&session, commands);
        let answered = answered(&session.folder);
        self.agrees(&outputs, answered.len(), "approve", &session.folder);
        let shown: Vec<_> = outputs.iter().map(said).collect();
        for text in &answered {
            self.deeds.count("requests answered");
            let so = shown.iter().any(|shown| shown.contains(text));
            self.deeds.must(so, "a request was answered that was not shown", || format!("{text:?} in {shown:?}"));
        }
        self.deeds.look(&session.folder, None);
        session
    }

    fn frozen_stop(&mut self) -> Session {
        let session = self.server.create(&self.client, Some(&self.person(Manner::Waits)));
        session.send(&self.words("hang"));
        let beside = self.chance.below(2) == 0;
        let commands = vec![self.pilots.command(beside, None, &["stop", &session.id()])];
        let outputs = self.frozen(&session, commands);
        self.agrees(&outputs, count(&session.folder, "abort"), "stop", &session.folder);
        self.deeds.look(&session.folder, None);
        session
    }

    /// A session that nobody could be asked for, after the turn that was denied.
    fn denied(&mut self) -> (Session, String) {
        let session = self.server.create(&self.client, None);
        let words = self.words("denied3");
        session.send(&words);
        session.folder.wait_nth("assistant.turn_end", 4);
        (session, words)
    }

    fn frozen_continue(&mut self) -> Session {
        let (session, words) = self.denied();
        // Beside the tray: one that holds the connection itself would stay.
        let commands = vec![self.pilots.command(true, None, &["reconnect", "--continue", &session.id()])];
        let outputs = self.frozen(&session, commands);
        self.agrees(&outputs, count(&session.folder, "user.message") - 1, "continue", &session.folder);
        self.deeds.look(&session.folder, Some(&words));
        session
    }

    /// By two commands, or by a click and a command: its prompt is sent once.
    fn continued_twice(&mut self) -> Session {
        let (session, words) = self.denied();
        let id = session.id();
        let clicked = self.chance.below(2) == 0
            && self.pilots.click(&format!("Trouble {} ", self.made), "Reconnect and continue");
        let command = || self.pilots.command(true, None, &["reconnect", "--continue", &id]);
        let mut started = vec![command().spawn().unwrap()];
        if !clicked {
            wait(self.below(300), || None::<()>);
            started.push(command().spawn().unwrap());
        }
        let outputs: Vec<Output> = started.into_iter().map(|child| child.wait_with_output().unwrap()).collect();
        let dump = || format!("clicked: {clicked}, {outputs:#?}\n{}", session.folder.dump());
        let sent = || (count(&session.folder, "user.message") > 1).then_some(());
        let so = wait(SOON, sent).is_some();
        self.deeds.must(so, "continued twice, it was not continued at all", dump);
        settle(&session);
        self.deeds.count(if clicked { "continued by a click and a command" } else { "continued by two commands" });
        // A click that the menu took for a stray one did nothing: what was sent tells.
        let done = outputs.iter().filter(|output| output.status.success()).count();
        self.deeds.must(done <= 1, "two orders at once were both carried out", dump);
        self.deeds.look(&session.folder, Some(&words));
        session
    }

    /// The whole home is copied, locks and all, and orders are given there, for this session and all others.
    fn copied(&mut self) -> Session {
        let person = self.person(Manner::Waits);
        let session = self.server.create(&self.client, Some(&person));
        session.send(&self.words("denied1"));
        session.folder.wait("permission.requested");
        let copy = self.pilots.scratch().join(format!("copy-{}", self.made));
        // What goes while it is copied is missed: that is no failure.
        let copied = Command::new("cp").arg("-a").arg(self.home.dir()).arg(&copy).stderr(Stdio::null()).status();
        copied.unwrap();
        self.deeds.count("homes copied");
        let before = session.folder.types();
        let of = |id: &str| copy.join("session-state").join(id);
        let (planted, beside) = (self.chance.below(2) == 0, self.chance.below(2) == 0);
        if planted {
            let pid = self.bystander.id();
            std::fs::write(of(&session.id()).join(format!("inuse.{pid}.lock")), format!("{pid}\n")).unwrap();
        }
        let order = |beside: bool, arguments: &[&str]| {
            let output = self.pilots.command(beside, Some(&copy), arguments).output().unwrap();
            let code = output.status.code();
            self.deeds.count(format!("in a copy: {} exit {}", arguments[0], code.unwrap_or(-1)));
            (code, format!("{arguments:?}, beside the tray: {beside}, planted: {planted}: {output:#?}"))
        };
        let id = session.id();
        for arguments in
            [&["stop", "--yes", &id][..], &["approve", &id], &["deny", &id], &["reconnect", &id], &["resume", &id]]
        {
            let (code, what) = order(beside, arguments);
            self.deeds.must(code == Some(4), "an order in a copy was not refused", || what);
        }
        let others = std::fs::read_dir(copy.join("session-state")).unwrap();
        let others = others.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        for other in others.filter(|other| !other.starts_with('.') && *other != id).take(6) {
            let (code, what) = order(!beside, &["stop", "--yes", &other]);
            self.deeds.must(code != Some(0), "a session was stopped in a copy", || what);
        }
        settle(&session);
        let same = session.folder.types() == before;
        self.deeds.must(same, "an order in a copy had an effect", || session.folder.dump());
        person.now(Manner::Approves);
        session.folder.wait_nth("assistant.turn_end", 2);
        self.deeds.look(&session.folder, None);
        std::fs::remove_dir_all(copy).unwrap();
        session
    }

    /// A question that is on no disk, waited for beyond the limit of a tool that does nothing: to reconnect aborts nothing.
    fn asks(&mut self) -> Session {
        let person = self.person(Manner::Waits);
        let session = self.server.create_with_asker(&self.client, &person);
        session.send(&self.words("mcp"));
        session.folder.wait("tool.execution_start");
        let id = session.id();
        self.deeds.count("questions asked");
        let row = |fits: &dyn Fn(&Value) -> bool| wait(SOON, || self.pilots.row(&id).filter(fits));
        let dump = || format!("{:?}\n{}", self.pilots.row(&id), session.folder.dump());
        if self.chance.below(2) == 0 {
            let says =
                |row: &Value| row["because"].as_str().is_some_and(|why| why.contains("busy, or asking you there"));
            let told = row(&|row| row["status"] == "stuck" || says(row));
            let quiet = told.is_some_and(|row| row["status"] == "quiet");
            self.deeds.must(quiet, "what only asks is not told as busy, or asking", dump);
        }
        let output = self.pilots.command(true, None, &["reconnect", &id]).output().unwrap();
        self.deeds.must(output.status.success(), "a session that asks is not reconnected", || format!("{output:#?}"));
        let asked = json!({"text": "Which database shall I drop?", "choices": ["test", "prod"]});
        let told = row(&|row| row["status"] == "needs-input" && row["question"] == asked).is_some();
        self.deeds.must(told, "a question is not told in its own words", dump);
        // Nothing is open that could be approved.
        let output = self.pilots.command(true, None, &["approve", "--all", &id]).output().unwrap();
        self.deeds.must(output.status.code() == Some(4), "a question was approved", || format!("{output:#?}"));
        settle(&session);
        let waits = count(&session.folder, "abort") + count(&session.folder, "tool.execution_complete") == 0;
        self.deeds.must(waits, "what waits for its user was ended", dump);
        person.now(Manner::Approves);
        let done = session.folder.wait("tool.execution_complete");
        self.deeds.must(done["data"]["success"] == true, "its answer did not reach the tool", dump);
        session.folder.wait_nth("assistant.turn_end", 2);
        self.deeds.look(&session.folder, None);
        session
    }
}

/// The server has done all that it was sent, and written it.
fn settle(session: &Session) {
    session.call("session.metadata.activity", json!({}));
    wait(WRITTEN, || None::<()>);
}

fn count(folder: &Folder, kind: &str) -> usize {
    folder.types().iter().filter(|other| *other == kind).count()
}

/// The texts of the requests that were answered.
fn answered(folder: &Folder) -> Vec<String> {
    let events = folder.events();
    let of = |kind: &str| events.iter().filter(|event| event["type"] == kind).collect::<Vec<_>>();
    let text = |done: &&Value| {
        let id = &done["data"]["requestId"];
        let asked = of("permission.requested").into_iter().find(|event| event["data"]["requestId"] == *id)?;
        Some(asked["data"]["permissionRequest"]["fullCommandText"].as_str()?.to_owned())
    };
    of("permission.completed").iter().filter_map(text).collect()
}

fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}
