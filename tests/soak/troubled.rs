//! A server in trouble: it is frozen during orders, gets the same order twice at once, has its home copied, and asks
//! its user a question that is not in the log. Each time a new session is created, and its log is checked for harm.

use super::actor::Rng;
use super::audit::Audit;
use super::pilots::Pilots;
use crate::support::executable::copy_program;
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

/// How long the server may take to write an event: four times the longest time measured.
const WRITTEN: Duration = Duration::from_millis(600);

/// One server, and one session at a time.
pub(crate) struct Troubled<'a> {
    home: &'a Home,
    pilots: &'a Pilots,
    audit: &'a Audit,
    rng: Rng,
    _model: Model,
    client: Client,
    server: Server,
    /// A process with Copilot's name that has no session.
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
    /// Starts a server without a session.
    pub(crate) fn new(home: &'a Home, pilots: &'a Pilots, audit: &'a Audit, rng: Rng) -> Self {
        let model = Model::start();
        let server = Server::start(home, &model);
        let program = pilots.scratch().join("copilot");
        let sleep = ["/bin/sleep", "/usr/bin/sleep"].into_iter().find(|path| std::path::Path::new(path).is_file());
        copy_program(sleep.unwrap(), &program);
        let bystander = Command::new(program).arg("7200").stdin(Stdio::null()).spawn().unwrap();
        Self { home, pilots, audit, rng, _model: model, client: server.connect(), server, bystander, made: 0 }
    }

    /// Makes one kind of trouble.
    pub(crate) fn act(&mut self) {
        self.made += 1;
        let session = match self.rng.below(7) {
            0 => self.frozen_approval(),
            1 => self.frozen_stop(),
            2 => self.frozen_continue(),
            3 | 4 => self.continued_twice(),
            5 => self.copied(),
            _ => self.asks(),
        };
        let (server, bystander) = (is_live(self.server.pid()), self.bystander.try_wait().unwrap().is_none());
        self.audit.require(server && bystander, "a process ended that no order was for", || {
            format!("the server lives: {server}; the bystander: {bystander}")
        });
        self.client.delete(&session.id());
    }

    /// A unique prompt, which starts with the words by which its row is found in the menu.
    fn words(&self, script: &str) -> String {
        format!("Trouble {} SCRIPT:{script} Paint it", self.made)
    }

    fn person(&self, manner: Manner) -> Person {
        Person::new(manner)
    }

    /// A random duration below `limit` milliseconds.
    fn below(&mut self, limit: u64) -> Duration {
        Duration::from_millis(self.rng.below(limit as usize) as u64)
    }

    /// Freezes the server while these commands run, and continues it after a while. Returns their outputs.
    fn frozen(&mut self, session: &Session, commands: Vec<Command>) -> Vec<Output> {
        let (pid, before, span) = (self.server.pid(), self.below(250), self.below(7000));
        let started: Vec<Child> = commands.into_iter().map(|mut command| command.spawn().unwrap()).collect();
        wait(before, || None::<()>);
        freeze(pid);
        wait(span, || None::<()>);
        signal(pid, Signal::CONT);
        let outputs = started.into_iter().map(|child| child.wait_with_output().unwrap()).collect();
        self.audit.count("frozen");
        settle(session);
        outputs
    }

    /// Requires that the reported results and the effects agree: a reported success has an effect, a refusal or failure
    /// has none, an uncertain result has at most one.
    fn check_effects(&self, outputs: &[Output], effects: usize, what: &str, folder: &Folder) {
        let codes: Vec<_> = outputs.iter().map(|output| output.status.code()).collect();
        codes.iter().for_each(|code| self.audit.count(format!("{what} exit {}", code.unwrap_or(-1))));
        let done = codes.iter().filter(|code| **code == Some(0)).count();
        let maybe = codes.iter().filter(|code| **code == Some(5)).count();
        let ok = effects <= 1 && effects >= done.min(1) && (effects == 0 || done + maybe > 0);
        let dump = || format!("{effects} effects of {what}: {outputs:#?}\n{}", folder.dump());
        self.audit.require(ok, "an order's result and its effects differ", dump);
    }

    /// Two requests are open. A command answers the first, whose text it shows.
    fn frozen_approval(&mut self) -> Session {
        let session = self.server.create(&self.client, Some(&self.person(Manner::Waits)));
        session.send(&self.words("two"));
        session.folder.wait_nth("permission.requested", 2);
        let with_tray = self.rng.below(2) == 0;
        let commands = vec![self.pilots.command(with_tray, None, &["approve", "--yes", &session.id()])];
        let outputs = self.frozen(&session, commands);
        let answered = answered(&session.folder);
        self.check_effects(&outputs, answered.len(), "approve", &session.folder);
        let shown: Vec<_> = outputs.iter().map(text_of).collect();
        for text in &answered {
            self.audit.count("requests answered");
            let is_shown = shown.iter().any(|shown| shown.contains(text));
            self.audit
                .require(is_shown, "a request was answered that was not shown", || format!("{text:?} in {shown:?}"));
        }
        self.audit.check_log(&session.folder, None);
        session
    }

    fn frozen_stop(&mut self) -> Session {
        let session = self.server.create(&self.client, Some(&self.person(Manner::Waits)));
        session.send(&self.words("hang"));
        let with_tray = self.rng.below(2) == 0;
        let commands = vec![self.pilots.command(with_tray, None, &["stop", &session.id()])];
        let outputs = self.frozen(&session, commands);
        self.check_effects(&outputs, count(&session.folder, "abort"), "stop", &session.folder);
        self.audit.check_log(&session.folder, None);
        session
    }

    /// A session after a denied turn in which nobody could be asked.
    fn denied(&mut self) -> (Session, String) {
        let session = self.server.create(&self.client, None);
        let words = self.words("denied3");
        session.send(&words);
        session.folder.wait_nth("assistant.turn_end", 4);
        (session, words)
    }

    fn frozen_continue(&mut self) -> Session {
        let (session, words) = self.denied();
        // With the tray: a command that holds the connection itself would stay connected.
        let commands = vec![self.pilots.command(true, None, &["reconnect", "--continue", &session.id()])];
        let outputs = self.frozen(&session, commands);
        self.check_effects(&outputs, count(&session.folder, "user.message") - 1, "continue", &session.folder);
        self.audit.check_log(&session.folder, Some(&words));
        session
    }

    /// Continued twice at once, by two commands or by a click and a command: the prompt is sent once.
    fn continued_twice(&mut self) -> Session {
        let (session, words) = self.denied();
        let id = session.id();
        let clicked =
            self.rng.below(2) == 0 && self.pilots.click(&format!("Trouble {} ", self.made), "Reconnect and continue");
        let command = || self.pilots.command(true, None, &["reconnect", "--continue", &id]);
        let mut started = vec![command().spawn().unwrap()];
        if !clicked {
            wait(self.below(300), || None::<()>);
            started.push(command().spawn().unwrap());
        }
        let outputs: Vec<Output> = started.into_iter().map(|child| child.wait_with_output().unwrap()).collect();
        let dump = || format!("clicked: {clicked}, {outputs:#?}\n{}", session.folder.dump());
        let sent = || (count(&session.folder, "user.message") > 1).then_some(());
        let is_sent = wait(SOON, sent).is_some();
        self.audit.require(is_sent, "continued twice, it was not continued at all", dump);
        settle(&session);
        self.audit.count(if clicked { "continued by a click and a command" } else { "continued by two commands" });
        // A click that the menu took for a stray one has no effect, so only the log shows what was sent.
        let done = outputs.iter().filter(|output| output.status.success()).count();
        self.audit.require(done <= 1, "two orders at once were both carried out", dump);
        self.audit.check_log(&session.folder, Some(&words));
        session
    }

    /// The whole home is copied, including locks, and orders are given in the copy, for this session and some others.
    fn copied(&mut self) -> Session {
        let person = self.person(Manner::Waits);
        let session = self.server.create(&self.client, Some(&person));
        session.send(&self.words("denied1"));
        session.folder.wait("permission.requested");
        let copy = self.pilots.scratch().join(format!("copy-{}", self.made));
        // Files that are removed during the copy make `cp` fail. That does not matter.
        let copied = Command::new("cp").arg("-a").arg(self.home.dir()).arg(&copy).stderr(Stdio::null()).status();
        copied.unwrap();
        self.audit.count("homes copied");
        let before = session.folder.types();
        let of = |id: &str| copy.join("session-state").join(id);
        let (planted, with_tray) = (self.rng.below(2) == 0, self.rng.below(2) == 0);
        if planted {
            let pid = self.bystander.id();
            std::fs::write(of(&session.id()).join(format!("inuse.{pid}.lock")), format!("{pid}\n")).unwrap();
        }
        let order = |with_tray: bool, arguments: &[&str]| {
            let output = self.pilots.command(with_tray, Some(&copy), arguments).output().unwrap();
            let code = output.status.code();
            self.audit.count(format!("in a copy: {} exit {}", arguments[0], code.unwrap_or(-1)));
            (code, format!("{arguments:?}, with the tray: {with_tray}, planted: {planted}: {output:#?}"))
        };
        let id = session.id();
        for arguments in [
            &["stop", "--yes", &id][..],
            &["approve", "--yes", &id],
            &["deny", "--yes", &id],
            &["reconnect", &id],
            &["resume", &id],
        ] {
            let (code, what) = order(with_tray, arguments);
            self.audit.require(code == Some(4), "an order in a copy was not refused", || what);
        }
        let others = std::fs::read_dir(copy.join("session-state")).unwrap();
        let others = others.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        for other in others.filter(|other| !other.starts_with('.') && *other != id).take(6) {
            let (code, what) = order(!with_tray, &["stop", "--yes", &other]);
            self.audit.require(code != Some(0), "a session was stopped in a copy", || what);
        }
        settle(&session);
        let same = session.folder.types() == before;
        self.audit.require(same, "an order in a copy had an effect", || session.folder.dump());
        person.set_manner(Manner::Approves);
        session.folder.wait_nth("assistant.turn_end", 2);
        self.audit.check_log(&session.folder, None);
        std::fs::remove_dir_all(copy).unwrap();
        session
    }

    /// A question that is not in the log, open for longer than the limit of a silent tool. Reconnecting aborts nothing.
    fn asks(&mut self) -> Session {
        let person = self.person(Manner::Waits);
        let session = self.server.create_with_asker(&self.client, &person);
        session.send(&self.words("mcp"));
        session.folder.wait("tool.execution_start");
        let id = session.id();
        self.audit.count("questions asked");
        let row = |fits: &dyn Fn(&Value) -> bool| wait(SOON, || self.pilots.row(&id).filter(fits));
        let dump = || format!("{:?}\n{}", self.pilots.row(&id), session.folder.dump());
        if self.rng.below(2) == 0 {
            let is_unclear = |row: &Value| {
                row["because"].as_str().is_some_and(|why| why.contains("it may be busy, or waiting for you"))
            };
            let row = row(&|row| row["status"] == "stuck" || is_unclear(row));
            let quiet = row.is_some_and(|row| row["status"] == "quiet");
            self.audit.require(quiet, "a session with a question is not reported as busy or asking", dump);
        }
        let output = self.pilots.command(true, None, &["reconnect", &id]).output().unwrap();
        self.audit.require(output.status.success(), "a session with a question was not reconnected", || {
            format!("{output:#?}")
        });
        let asks = |row: &Value| {
            let question = &row["question"];
            question["text"] == "Which database shall I drop?" && question["choices"] == json!(["test", "prod"])
        };
        let is_reported = row(&|row| row["status"] == "needs-input" && asks(row)).is_some();
        self.audit.require(is_reported, "a question is not reported with its own text", dump);
        // No request is open that could be approved.
        let output = self.pilots.command(true, None, &["approve", "--yes", "--all", &id]).output().unwrap();
        self.audit.require(output.status.code() == Some(4), "a question was approved", || format!("{output:#?}"));
        settle(&session);
        let waits = count(&session.folder, "abort") + count(&session.folder, "tool.execution_complete") == 0;
        self.audit.require(waits, "a session that waits for its user was aborted", dump);
        person.set_manner(Manner::Approves);
        let done = session.folder.wait("tool.execution_complete");
        self.audit.require(done["data"]["success"] == true, "its answer did not reach the tool", dump);
        session.folder.wait_nth("assistant.turn_end", 2);
        self.audit.check_log(&session.folder, None);
        session
    }
}

/// Waits until the server has handled all requests and written their events.
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

/// The standard output and error of a command.
fn text_of(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}
