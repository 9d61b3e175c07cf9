//! `pilotlight serve --stdio`: tells a Pilotlight on another machine of the sessions here, and takes its orders, over
//! standard input and output. That Pilotlight starts it, over `ssh` or the like.
//!
//! If a tray runs here, this only relays to it: no second process acts on sessions. Else it runs an engine of its own for as
//! long as the pipe lives, and ends when a tray is started, so that the next one relays.

mod relay;

#[cfg(unix)]
use super::bridges::listen_to_hooks;
use super::bridges::shared_place;
use super::context::{Context, runtime};
use super::report::{USAGE, say};
use pilotlight_agents::copilot::bridge::Bridges;
use pilotlight_core::session::Key;
use pilotlight_core::time::{Moment, Span, Time};
use pilotlight_engine::control::caller::CallerPolicy;
use pilotlight_engine::control::pipe::{Service, serve_pipe};
use pilotlight_engine::control::{self, Command, SocketState};
use pilotlight_engine::{Fleet, View};
use pilotlight_system::paths;
use pilotlight_system::runtime::Runtime;
use pilotlight_system::signals::Signals;
use relay::relay;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::pin::pin;
use std::process::ExitCode;
use tokio::io::{duplex, split};

/// How often to look whether a tray was started.
const LOOK_INTERVAL: Span = Span::seconds(30);

/// How many bytes may be on their way between the engine of this process and what passes them on.
const PIPE: usize = 64 << 10;

/// Arguments of `serve`.
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Use standard input and output, with one line of JSON for each message
    #[arg(long)]
    stdio: bool,
    /// Also send the beginning of each session's last message
    #[arg(long)]
    messages: bool,
}

pub(super) fn run(context: &Context, arguments: &Arguments) -> anyhow::Result<ExitCode> {
    if !arguments.stdio {
        say("`serve` needs `--stdio`: Pilotlight on another machine runs it with that option");
        return Ok(ExitCode::from(USAGE));
    }
    let runtime = runtime()?;
    let served = runtime.block_on(serve(context, arguments.messages));
    // Standard input is read on a thread that may wait for ever.
    runtime.shutdown_background();
    served.map(|()| ExitCode::SUCCESS)
}

async fn serve(context: &Context, messages: bool) -> anyhow::Result<()> {
    let folders = paths::project().as_ref().map(paths::runtime_folders).unwrap_or_default();
    // A demo shows its own sessions alone.
    for folder in folders.iter().filter(|_| context.demo.is_none()) {
        // A runtime folder that fails its check is not used.
        let Ok(Some(_checked)) = Runtime::open(folder) else { continue };
        if let Some(tray) = control::ask_to_serve(folder, messages).await? {
            let mut signals = Signals::new()?;
            return tokio::select! {
                relayed = relay(tray, context) => relayed,
                () = signals.end() => Ok(()),
            };
        }
    }
    with_own_engine(context, folders, messages).await
}

async fn with_own_engine(context: &Context, folders: Vec<PathBuf>, messages: bool) -> anyhow::Result<()> {
    let mut engine = context.engine();
    if let Some(place) = shared_place() {
        #[cfg(unix)]
        if let Some(project) = paths::project() {
            listen_to_hooks(&mut engine, &project, &place.folder, true);
        }
        engine.listen_to_bridges(Bridges::at(place));
    }
    engine.forward_to_holders(folders);
    let (commander, policy) = (engine.command_sender(), CallerPolicy { names: context.agent_names().to_vec() });
    let send = |command| {
        let _ = commander.send(command); // fails only when the engine has ended
    };
    let service =
        Service { caller: Some(std::process::id()), policy: &policy, has_tray: false, messages, handle: &send };
    let mut view = Waiting { looked: None };
    let mut running = pin!(engine.run(Signals::new()?, &mut view));
    let (outer, inner) = duplex(PIPE);
    let (from, to) = split(inner);
    // When one ends, the other does: what is still to be told is passed on.
    let mut serving = pin!(async { tokio::join!(serve_pipe(from, to, &service), relay(outer, context)) });
    let relayed = tokio::select! {
        () = &mut running => return Ok(()),
        // Whoever reads has gone, however that shows.
        (_, relayed) = &mut serving => relayed,
    };
    send(Command::End);
    running.await;
    relayed
}

/// Shows nothing, and waits for a tray.
struct Waiting {
    looked: Option<Time>,
}

impl View for Waiting {
    fn show(&mut self, _fleet: &Fleet, _changed: &[Key], _removed: &[Key], now: Moment) -> ControlFlow<()> {
        if self.looked.is_some_and(|looked| now.awake < looked + LOOK_INTERVAL) {
            return ControlFlow::Continue(());
        }
        self.looked = Some(now.awake);
        let is_served = |folder: &PathBuf| matches!(control::socket_state(folder), Ok(SocketState::Served));
        // One that starts says where it is, which may be a place of another environment.
        let folders = paths::project().as_ref().map(paths::runtime_folders).unwrap_or_default();
        if folders.iter().any(is_served) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}
