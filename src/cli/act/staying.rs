//! A command that holds a session's connection, because no tray does: what the session asks is asked here, and other commands
//! reach it over a control socket of this session's own, as they would reach the tray.

use super::UNSHOWN;
use super::tell::{Shown, Tell, Teller};
use crate::agent::copilot::store::SESSIONS;
use crate::cli::ask::{forget_typed, has_terminal};
use crate::cli::pick::Picked;
use crate::cli::{Context, say};
use crate::config::Permissions;
use crate::control::caller::{Judge, agent_behind};
use crate::control::{self, Served};
use crate::core::action::questions;
use crate::core::order::{Ask, Given, Order, Outcome, Report, Which};
use crate::core::time::Moment;
use crate::engine::ledger::Ledger;
use crate::engine::{Command, Fleet, Key, View};
use crate::system::{paths, runtime::Runtime};
use std::collections::HashSet;
use std::io::{self, BufRead, Write};
use std::ops::ControlFlow;
use std::path::PathBuf;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::watch;

/// The folders in which whoever holds this session may serve it, the usual one first.
pub(super) fn folders(context: &Context, id: &str) -> Vec<PathBuf> {
    let Some(project) = paths::project() else { return Vec::new() };
    let has_it = |home: &&PathBuf| home.join(SESSIONS).join(id).is_dir();
    let keys: Vec<_> = context.homes.iter().filter(has_it).map(|home| Ledger::default().page(home, id)).collect();
    let folders = paths::runtime_folders(&project).into_iter();
    folders.flat_map(|folder| keys.iter().map(move |page| folder.join(page.key())).collect::<Vec<_>>()).collect()
}

/// A session's control socket, and its folder, which goes with it.
pub(super) struct Reachable {
    served: Option<Served>,
    folder: PathBuf,
}

impl Drop for Reachable {
    fn drop(&mut self) {
        drop(self.served.take());
        let _ = std::fs::remove_dir(&self.folder); // what stays is empty, and used again
    }
}

/// Has other commands reach what this one is about to hold, from the moment at which it is called.
pub(super) fn serving(
    context: &Context,
    id: &str,
    commander: UnboundedSender<Command>,
) -> impl FnOnce() -> Option<Reachable> + Send + 'static {
    let folder = folders(context, id).into_iter().next();
    let judge = Judge {
        names: context.config.owners.names.clone(),
        approves_all: context.config.actions.permissions == Permissions::ApproveAll,
    };
    let orders = move |given| {
        let _ = commander.send(Command::Act(given)); // fails only when the engine has ended
    };
    move || {
        let folder = folder?;
        let parent = folder.parent().map_or(Ok(()), |parent| Runtime::make(parent).map(drop));
        let served = parent.and_then(|()| Runtime::make(&folder)).and_then(|_| control::serve(&folder, judge, orders));
        match served {
            Ok(served) => Some(Reachable { served: Some(served), folder }),
            Err(error) => {
                say(&format!("other commands cannot reach this one: {error}"));
                None
            }
        }
    }
}

/// Something that the session waits for, by its id.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Open {
    Request(String),
    Question(String),
}

/// What is seen of the session.
#[derive(Default, PartialEq, Eq)]
pub(super) struct Seen {
    /// Its open requests and questions.
    open: Vec<Open>,
    /// We hold a connection to it.
    pub(super) held: bool,
}

/// Sees what becomes of the session, and says what ends with this command.
pub(super) struct Watching {
    id: Box<str>,
    seen: watch::Sender<Seen>,
}

impl Watching {
    pub(super) fn new(id: &str) -> (Self, watch::Receiver<Seen>) {
        let (sender, seen) = watch::channel(Seen::default());
        (Self { id: id.into(), seen: sender }, seen)
    }
}

/// Waits until the connection is gone. Never ends where it is not known any more.
pub(super) async fn is_let_go(mut seen: watch::Receiver<Seen>) {
    if seen.wait_for(|seen| !seen.held).await.is_err() {
        std::future::pending::<()>().await;
    }
}

impl View for Watching {
    fn show(&mut self, fleet: &Fleet, _changed: &[Key], _removed: &[Key], _now: Moment) -> ControlFlow<()> {
        let session = fleet.entries().find(|(key, _)| *key.1 == *self.id).map(|(_, entry)| entry.session());
        let requests = session.into_iter().flat_map(|session| &session.facts.requests);
        let requests = requests.filter(|request| !request.is_consent());
        let requests = requests.map(|request| Open::Request(request.request.to_string()));
        let asked = session.into_iter().flat_map(questions).filter_map(|asking| asking.form.as_ref().ok());
        let asked = asked.map(|form| Open::Question(form.request.to_string()));
        let now = Seen {
            open: requests.chain(asked).collect(),
            held: session.is_some_and(|session| session.control.server.is_attached()),
        };
        self.seen.send_if_modified(|seen| {
            let differs = *seen != now;
            *seen = now;
            differs
        });
        ControlFlow::Continue(())
    }

    fn part(&mut self, line: &str) {
        say(line);
    }

    fn asks_servers(&self) -> bool {
        false
    }
}

/// Asks on the terminal about each request that opens, and says how a question is answered. Never ends.
pub(super) async fn ask_here(
    context: &Context,
    session: &Picked,
    commander: UnboundedSender<Command>,
    mut seen: watch::Receiver<Seen>,
) {
    let id = &*session.id;
    let may_ask = has_terminal() && agent_behind(std::process::id(), &context.config.owners.names).is_none();
    let (mut asked, mut typed) = (HashSet::new(), None);
    loop {
        let next = seen.borrow_and_update().open.iter().find(|next| !asked.contains(*next)).cloned();
        let Some(next) = next else {
            if seen.changed().await.is_err() {
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
        // Only what was shown is answered.
        let mut shown = Shown::of(&session.label);
        let look = Which::Shown { id: request.clone(), text: UNSHOWN.into() };
        give(&commander, Order::new(id, Ask::Approve(look)), &mut shown).await;
        let Some(text) = shown.request else { continue };
        if let Some(error) = shown.failed {
            say(&format!("the request could not be written out ({error}): it was left open"));
            continue;
        }
        let lines = typed.get_or_insert_with(typed_lines);
        forget_typed();
        while lines.try_recv().is_ok() {}
        let mut stderr = io::stderr();
        let question = "Approve this request, once? y approves, n denies, anything else leaves it open: ";
        let _ = write!(stderr, "{question}").and_then(|()| stderr.flush()); // it is a terminal
        let answer = tokio::select! {
            line = lines.recv() => line,
            _ = seen.wait_for(|seen| !seen.open.contains(&Open::Request(request.clone()))) => {
                let _ = writeln!(stderr);
                say("it is no longer open: it was answered elsewhere, or its turn has ended");
                continue;
            }
        };
        let which = Which::Shown { id: request, text };
        let ask = match answer.unwrap_or_default().trim().to_ascii_lowercase().as_str() {
            "y" | "yes" => Ask::Approve(which),
            "n" | "no" => Ask::Deny(which),
            _ => {
                say(&format!("the request was left open: `pilotlight approve {id}` shows it again"));
                continue;
            }
        };
        give(&commander, Order::new(id, ask), &mut Teller).await;
    }
}

/// Gives an order to the engine of this command, and tells what comes of it.
async fn give(commander: &UnboundedSender<Command>, order: Order, tell: &mut dyn Tell) -> Option<Outcome> {
    let (reply, mut reports) = unbounded_channel();
    commander.send(Command::Act(Given::by_us(order, reply))).ok()?;
    loop {
        let report = reports.recv().await?;
        tell.report(&report);
        if let Report::End(outcome) = report {
            return Some(outcome);
        }
    }
}

/// What is typed, line by line, for as long as this process lives.
fn typed_lines() -> UnboundedReceiver<String> {
    let (lines, typed) = unbounded_channel();
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
    typed
}

/// Says that this command stays, and what that means. `confirmed`: what was sent is known to have arrived.
pub(super) fn stays(id: &str, confirmed: bool) {
    let why = match confirmed {
        true => "no tray runs to keep the connection",
        false => "no tray runs to keep the connection, and what was sent may still be carried out",
    };
    let asks = if has_terminal() { "its requests appear here, and " } else { "" };
    say(&format!(
        "{why}: this command stays connected; {asks}`pilotlight approve {id}`, `deny`, `answer` and `stop` reach it from any other shell; \
         Ctrl-C lets go"
    ));
}
