//! A command that keeps running to hold a session's connection, because no tray does. The session's requests are put to
//! the user here, and other commands reach this one over a control socket of the session's own, as they would reach the
//! tray. Others look in the session's folder of the runtime folder before they ask the tray, and the tray forwards what it
//! is asked.
//!
//! Copilot writes neither lock nor log when a session is resumed, only at the first prompt: until then the disk says that
//! it crashed. This process knows better, and others see that a server has the session open. The first Ctrl-C lists what
//! would end with this process. What a signal ended is noted, and reported once at the next start.

use super::output::{Printer, Reporter, RequestReader};
use crate::cli::ask::{discard_typeahead, has_terminal};
use crate::cli::context::Context;
use crate::cli::fold::on_stderr;
use crate::cli::pick::Picked;
use crate::cli::report::say;
use pilotlight_core::action::questions;
use pilotlight_core::order::{LOG_DIFFERS, Operation, Order, OrderReport, Outcome, ShownRequest, Which};
use pilotlight_core::session::Key;
use pilotlight_core::time::Moment;
use pilotlight_engine::control::caller::{CallerPolicy, agent_behind};
use pilotlight_engine::control::{self, Command, ControlServer, PendingOrder};
use pilotlight_engine::ledger::Ledger;
use pilotlight_engine::{Fleet, View};
use pilotlight_system::paths;
use pilotlight_system::runtime::{Runtime, is_tray_of};
use std::collections::HashSet;
use std::io::{self, BufRead, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::watch;

/// The folders in which a command that holds this session may serve its socket, the usual one first.
pub(super) fn folders(context: &Context, id: &str) -> Vec<PathBuf> {
    let Some(project) = paths::project() else { return Vec::new() };
    let homes = context.homes.iter().filter(|home| home.has(id));
    let keys: Vec<_> = homes.map(|home| Ledger::default().page(home, id)).collect();
    let folders = paths::runtime_folders(&project).into_iter();
    folders.flat_map(|folder| keys.iter().map(move |page| folder.join(page.key())).collect::<Vec<_>>()).collect()
}

/// A session's control socket and its folder; both are removed on drop.
pub(super) struct Reachable {
    served: Option<ControlServer>,
    folder: PathBuf,
}

impl Drop for Reachable {
    fn drop(&mut self) {
        drop(self.served.take());
        let _ = std::fs::remove_dir(&self.folder); // a folder that remains is reused
    }
}

/// Returns a function that serves the session's control socket from the moment it is called, and tells the user on
/// failure.
pub(super) fn socket_server(
    context: &Context,
    id: &str,
    commander: UnboundedSender<Command>,
) -> impl FnOnce() -> Option<Reachable> + Send + 'static {
    let folder = folders(context, id).into_iter().next();
    let judge = CallerPolicy { names: context.agent_names().to_vec() };
    let trays = folder.as_deref().and_then(Path::parent).map(Path::to_owned);
    let handle = move |mut command| {
        if let (Command::Act(pending), Some(trays)) = (&mut command, &trays) {
            pending.is_from_tray = is_tray_of(trays, pending.caller);
        }
        let _ = commander.send(command); // fails only when the engine has ended
    };
    move || {
        let folder = folder?;
        let parent = folder.parent().map_or(Ok(()), |parent| Runtime::make(parent).map(drop));
        let served = parent.and_then(|()| Runtime::make(&folder)).and_then(|_| control::serve(&folder, judge, handle));
        match served {
            Ok(served) => Some(Reachable { served: Some(served), folder }),
            Err(error) => {
                say(&format!("other commands cannot reach this one: {error}"));
                None
            }
        }
    }
}

/// Something that the session waits for, by id.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Open {
    Request(String),
    Question(String),
}

/// The observed state of the session.
#[derive(Default, PartialEq, Eq)]
pub(super) struct Observed {
    /// Its open requests and questions.
    open: Vec<Open>,
    /// Whether we hold a connection to it.
    pub(super) held: bool,
    /// Whether it is to go on when its turn is over.
    pub(super) waits: bool,
    /// Whether its last prompt was not carried out when it was reconnected, and still is not.
    pub(super) undone: bool,
}

/// An engine view that publishes the state of one session.
pub(super) struct SessionWatch {
    id: Box<str>,
    sender: watch::Sender<Observed>,
}

impl SessionWatch {
    pub(super) fn new(id: &str) -> (Self, watch::Receiver<Observed>) {
        let (sender, receiver) = watch::channel(Observed::default());
        (Self { id: id.into(), sender }, receiver)
    }
}

/// Waits until the connection is gone. Never returns once the view is dropped.
pub(super) async fn connection_lost(mut observed: watch::Receiver<Observed>) {
    if observed.wait_for(|observed| !observed.held).await.is_err() {
        std::future::pending::<()>().await;
    }
}

impl View for SessionWatch {
    fn show(&mut self, fleet: &Fleet, _changed: &[Key], _removed: &[Key], _now: Moment) -> ControlFlow<()> {
        let session = fleet.entries().find(|(key, _)| *key.id == *self.id).map(|(_, entry)| entry.session());
        let requests = session.into_iter().flat_map(|session| &session.observed.facts.requests);
        let requests = requests.filter(|request| !request.is_consent());
        let requests = requests.map(|request| Open::Request(request.request.to_string()));
        let questions = session.into_iter().flat_map(questions).filter_map(|asking| asking.form.as_ref().ok());
        let questions = questions.map(|form| Open::Question(form.request.to_string()));
        let now = Observed {
            open: requests.chain(questions).collect(),
            held: session.is_some_and(|session| session.control.server.is_attached()),
            waits: session.is_some_and(|session| session.control.pending_continue.is_some()),
            undone: session.is_some_and(|session| session.observed.facts.is_left_undone(session.liveness.left_undone)),
        };
        self.sender.send_if_modified(|observed| {
            let differs = *observed != now;
            *observed = now;
            differs
        });
        ControlFlow::Continue(())
    }

    fn show_exit_notice(&mut self, line: &str) {
        say(line);
    }

    fn asks_servers(&self) -> bool {
        false
    }
}

/// Asks on the terminal about each request that opens, and for each question tells how to answer it. Never returns.
pub(super) async fn answer_requests_here(
    context: &Context,
    session: &Picked,
    commander: UnboundedSender<Command>,
    mut observed: watch::Receiver<Observed>,
) {
    let id = &*session.id;
    let may_ask = has_terminal() && agent_behind(std::process::id(), context.agent_names()).is_none();
    let (mut asked, mut stdin) = (HashSet::new(), None);
    loop {
        let next = observed.borrow_and_update().open.iter().find(|next| !asked.contains(*next)).cloned();
        let Some(next) = next else {
            if observed.changed().await.is_err() {
                return std::future::pending().await;
            }
            continue;
        };
        asked.insert(next.clone());
        let request = match next {
            Open::Request(request) => request,
            Open::Question(_) => {
                say(&format!(
                    "it asks you something: `pilotlight answer {id}` in another shell shows it and takes your answer"
                ));
                continue;
            }
        };
        if !may_ask {
            say(&format!("it asks for a permission: `pilotlight approve {id}` shows it and answers it"));
            continue;
        }
        // Shows the request first: only what was shown is answered.
        let Some(text) = shown_text(session, &request, &commander).await else { continue };
        let lines = stdin.get_or_insert_with(stdin_lines);
        put_question(lines);
        let answer = tokio::select! {
            line = lines.recv() => line,
            _ = observed.wait_for(|observed| !observed.open.contains(&Open::Request(request.clone()))) => {
                let _ = writeln!(io::stderr());
                say("the request is no longer open: somebody answered it elsewhere, or its turn has ended");
                continue;
            }
        };
        let which = Which::Shown { id: request, text };
        let operation = match answer.unwrap_or_default().trim().to_ascii_lowercase().as_str() {
            "y" | "yes" => Operation::Approve(which),
            "n" | "no" => Operation::Deny(which),
            _ => {
                say(&format!("the request was left open: `pilotlight approve {id}` shows it again"));
                continue;
            }
        };
        run_order(&commander, Order::new(id, operation), &mut Printer).await;
    }
}

/// Shows a request to the user, and returns the text that was shown. `None` if it is gone, could not be written out, or is
/// not what the log says.
async fn shown_text(session: &Picked, request: &str, commander: &UnboundedSender<Command>) -> Option<String> {
    let mut reader = RequestReader::new(session, &session.label, request);
    run_order(commander, Order::new(&session.id, Operation::Look(request.to_owned())), &mut reader).await;
    let ShownRequest { text, in_log, .. } = reader.request?;
    if let Some(error) = reader.failed {
        say(&format!("the request could not be written out ({error}): it was left open"));
        return None;
    }
    if in_log.is_some() {
        say(LOG_DIFFERS);
        return None;
    }
    Some(text)
}

/// Asks what is to become of the request that was just shown. What was typed before is no answer to it.
fn put_question(lines: &mut UnboundedReceiver<String>) {
    discard_typeahead();
    while lines.try_recv().is_ok() {}
    let mut stderr = io::stderr();
    let question = "Approve this request, once? y approves, n denies, anything else leaves it open: ";
    let _ = write!(stderr, "{}", on_stderr(question)).and_then(|()| stderr.flush()); // it is a terminal
}

/// Has this command's engine carry out an order, and passes on the reports.
async fn run_order(commander: &UnboundedSender<Command>, order: Order, reporter: &mut dyn Reporter) -> Option<Outcome> {
    let (reply, mut reports) = unbounded_channel();
    commander.send(Command::Act(PendingOrder::by_us(order, reply))).ok()?;
    loop {
        let report = reports.recv().await?;
        reporter.report(&report);
        if let OrderReport::End(outcome) = report {
            return Some(outcome);
        }
    }
}

/// Reads lines from standard input on a thread, for the rest of this process's life.
fn stdin_lines() -> UnboundedReceiver<String> {
    let (lines, received) = unbounded_channel();
    let read = move || {
        for line in io::stdin().lock().lines().map_while(Result::ok) {
            if lines.send(line).is_err() {
                return;
            }
        }
    };
    if let Err(error) = std::thread::Builder::new().name("typed".into()).spawn(read) {
        say(&format!("what is typed here cannot be read: {error}"));
    }
    received
}

/// Tells the user that this command keeps running, and why. `confirmed`: whether what was sent is known to have
/// arrived.
pub(super) fn announce(id: &str, confirmed: bool) {
    let why = match confirmed {
        true => "no tray runs to keep the connection",
        false => "no tray runs to keep the connection, and what was sent may still be carried out",
    };
    let asks = if has_terminal() { "its requests appear here, and " } else { "" };
    say(&format!(
        "{why}: this command stays connected; {asks}`pilotlight approve {id}`, `deny`, `answer` and `stop` reach it from any other shell; Ctrl-C disconnects"
    ));
}
