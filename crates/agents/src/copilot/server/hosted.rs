//! Hosts a session whose process is gone, in a server of our own.
//!
//! The server is a child process that communicates over its standard input and output. It listens nowhere, and exits
//! when its input ends, or when we do, so it never outlives us. It has its own process group, so that Ctrl-C in our terminal reaches
//! only us, and we shut the server down gracefully.
//!
//! Resuming writes no log and takes no lock before the first prompt. Until then the session's files are as its dead
//! process left them, and it can be resumed elsewhere; see [`Attached::send`].

use super::attached::Attached;
use super::client::{LOAD_TIMEOUT, ServerClient};
use crate::channel::Keep;
use crate::channel::action_context::ActionContext;
use crate::channel::failure::Failure;
use crate::channel::fault::{Fault, Place};
use crate::copilot::prompt::system_message;
use crate::copilot::store::{LOG, SESSIONS};
use github_copilot_sdk::{ProviderConfig, ResumeSessionConfig, SessionId, SystemMessageConfig};
use pilotlight_core::order::Step;
use pilotlight_core::words::offer::without_program;
use pilotlight_system::descriptors;
use pilotlight_system::log;
use pilotlight_system::process::{ancestors, end_with_us};
use std::io;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;
use tokio::process::{Child, Command};
use tokio::time::timeout;

/// How long the server may take to exit after its input ended, and after the signal. Copilot takes a tenth of a second,
/// or some seconds on a machine with ten times the load that it can handle.
const EXIT_TIMEOUTS: [Duration; 2] = [Duration::from_secs(10), Duration::from_secs(5)];

/// A session in a server of our own. Dropping it ends the server's input, and the server then exits in its own time. It
/// is not killed, because that would leave a crashed session. [`Hosted::end`] also waits for the exit.
#[derive(Debug)]
pub struct Hosted {
    // Dropped first: its connection is the server's input.
    attached: Attached,
    server: Child,
    has_instructions: bool,
}

/// Starts a server, `program` with this Copilot home, and resumes a session in it. The caller has verified that the
/// session's process is gone.
///
/// What was open in that process is over. If the server takes it for running work, it is aborted once, before any
/// prompt. If the session's client had its own model provider, only that client knows it: the session can be resumed,
/// but its prompts fail, unless our environment names a provider too. The system message that it had is taken from its log.
pub async fn host(program: &Path, home: &Path, context: &ActionContext, keep: Keep) -> Result<Hosted, Failure> {
    let failed = |fault| Failure {
        next: Some("resume the session in a terminal".to_owned()),
        ..Failure::of(Step::Resume, fault)
    };
    let log = home.join(SESSIONS).join(&*context.id).join(LOG);
    // Reading a long log takes time.
    let instructions = tokio::task::spawn_blocking(move || system_message(&log)).await.ok().and_then(Result::ok);
    let has_instructions = instructions.is_some();
    context.step(Step::Resume, format!("resumes it {}", without_program(has_instructions)));
    let cwd = context.cwd.as_deref().filter(|cwd| cwd.is_dir()).unwrap_or(home);
    let mut server = start(program, home, cwd)
        .map_err(|error| failed(Fault::NotStarted(format!("{} does not start: {error}", program.display()).into())))?;
    let (Some(input), Some(output)) = (server.stdin.take(), server.stdout.take()) else {
        return Err(failed(Fault::Gone(Place::Own)));
    };
    let loaded = async {
        let link = ServerClient::over_stdio(output, input, cwd, LOAD_TIMEOUT).await.map_err(failed)?;
        context.step(Step::Resume, "a server was started");
        let in_use = link.in_use_elsewhere(&context.id).await.map_err(failed)?;
        let mut config =
            with_provider(ResumeSessionConfig::new(SessionId::new(&*context.id)), |name| std::env::var(name).ok());
        if let Some(text) = instructions {
            config = config.with_system_message(SystemMessageConfig::new().with_mode("replace").with_content(text));
        }
        let mut attached = Attached::over(link, context, config, keep).await.map_err(failed)?;
        attached.in_use_before = Some(in_use);
        context.step(Step::Resume, "the session is loaded");
        // Its process is gone, so they never end.
        if context.log_view.borrow().tools_open > 0 {
            attached.abort_if_busy(context).await?;
        }
        attached.take_over(context).await?;
        Ok(attached)
    };
    match loaded.await {
        Ok(attached) => Ok(Hosted { attached, server, has_instructions }),
        Err(failure) => {
            tokio::spawn(end(server));
            Err(failure)
        }
    }
}

/// Adds the model provider that the environment names, by the variables of Copilot's own terminal. A server ignores
/// them and leaves the provider to its clients.
fn with_provider(config: ResumeSessionConfig, env: impl Fn(&str) -> Option<String>) -> ResumeSessionConfig {
    let env = |name: &str| env(&format!("COPILOT_{name}")).filter(|value| !value.is_empty());
    let Some(url) = env("PROVIDER_BASE_URL") else { return config };
    let mut provider = ProviderConfig::new(url)
        .with_provider_type(env("PROVIDER_TYPE").unwrap_or_else(|| "openai".into()))
        .with_wire_api(env("PROVIDER_WIRE_API").unwrap_or_else(|| "completions".into()));
    if let Some(key) = env("PROVIDER_API_KEY") {
        provider = provider.with_api_key(key);
    }
    if let Some(token) = env("PROVIDER_BEARER_TOKEN") {
        provider = provider.with_bearer_token(token);
    }
    let config = config.with_provider(provider);
    match env("MODEL") {
        Some(model) => config.with_model(model),
        None => config,
    }
}

fn start(program: &Path, home: &Path, cwd: &Path) -> io::Result<Child> {
    let mut command = Command::new(program);
    command.args(["--server", "--stdio", "--no-auto-update"]).current_dir(cwd).env("COPILOT_HOME", home);
    // The token is for servers that listen. This one would require it of us.
    command.env_remove("COPILOT_CONNECTION_TOKEN");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    #[cfg(unix)]
    command.process_group(0);
    #[cfg(windows)]
    {
        // CREATE_NEW_PROCESS_GROUP and CREATE_NO_WINDOW, of the Windows API's process creation flags.
        command.creation_flags(0x0000_0200 | 0x0800_0000);
    }
    descriptors::restore(command.as_std_mut());
    end_with_us(command.as_std_mut());
    command.spawn()
}

impl Hosted {
    /// The attached client.
    pub const fn attached(&self) -> &Attached {
        &self.attached
    }

    /// The pid of the server's process.
    pub fn pid(&self) -> Option<u32> {
        self.server.id()
    }

    /// Whether it has the instructions that its program gave it: the system message in its log.
    pub const fn has_instructions(&self) -> bool {
        self.has_instructions
    }

    /// Ends the server: closes its input, which ends its sessions in good order; then signals it, and kills it as a
    /// last resort.
    pub async fn end(self) {
        let Self { attached, server, .. } = self;
        drop(attached);
        end(server).await;
    }
}

/// Waits for a server to exit whose input has ended, and ends it otherwise.
async fn end(mut server: Child) {
    let [after_input, after_signal] = EXIT_TIMEOUTS;
    if timeout(after_input, server.wait()).await.is_ok() {
        return;
    }
    log::warn!("the Copilot server that Pilotlight started does not end with its input; signalling it");
    terminate(&server);
    if timeout(after_signal, server.wait()).await.is_err() {
        // Fails only if it is gone already.
        let _ = server.kill().await;
    }
}

/// Whether a process is a server that we started, or was started by a script that the settings name as Copilot. Such a
/// process is in the process group of one of our children. A process in a terminal never is.
#[cfg(unix)]
pub fn is_of_our_server(pid: u32) -> bool {
    let own = std::process::id();
    let line = ancestors(pid);
    let is_child = |pid: u32| ancestors(pid).first() == Some(&own);
    let group = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw);
    let group = group.and_then(|pid| rustix::process::getpgid(Some(pid)).ok());
    line.contains(&own) && group.is_some_and(|group| is_child(group.as_raw_nonzero().get().cast_unsigned()))
}

/// Whether a process is a server that we started, by its parent alone.
#[cfg(not(unix))]
pub fn is_of_our_server(pid: u32) -> bool {
    ancestors(pid).first() == Some(&std::process::id())
}

/// Sends SIGTERM to the server's process group. Its pid cannot be reused before it was waited for.
#[cfg(unix)]
fn terminate(server: &Child) {
    use rustix::process::{Pid, Signal, kill_process_group};
    let group = server.id().and_then(|pid| i32::try_from(pid).ok()).and_then(Pid::from_raw);
    if let Some(group) = group {
        // Fails only if it is gone already.
        let _ = kill_process_group(group, Signal::TERM);
    }
}

/// This system has nothing gentler than killing it.
#[cfg(not(unix))]
fn terminate(_: &Child) {}
