//! A session whose process is gone, in a server of our own.
//!
//! The server is a child that speaks over its standard input and output: it listens nowhere, and ends by itself when that
//! input ends, so that it does not outlive us whatever happens. It has a process group of its own: Ctrl-C in our terminal is
//! for us, and we end the server gently.
//!
//! Resuming writes nothing and owns nothing before the first prompt. Until then the session's log and locks are as its dead
//! process left them, and it can be resumed elsewhere; see [`Attached::send`].

use super::attached::{Attached, Event, Policy};
use super::client::{LOADED_WITHIN, Link};
use super::fault::Fault;
use super::recover::{Failure, Site, Steps};
use crate::core::order::Step;
use crate::system::descriptors;
use crate::system::process::ancestors;
use github_copilot_sdk::{ProviderConfig, ResumeSessionConfig, SessionId};
use std::io;
use std::ops::Deref;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;
use tokio::process::{Child, Command};
use tokio::sync::mpsc::UnboundedSender;
use tokio::time::timeout;

/// How long the server may take to end once its input has ended, and once it was told to. Copilot takes a tenth of a second, and on
/// a machine with ten times the work that it can do, some seconds.
const ENDED_WITHIN: [Duration; 2] = [Duration::from_secs(10), Duration::from_secs(5)];

/// A session in a server of our own. When dropped, the server's input ends, and with it, in its own time, the server: killed, it
/// would leave a crashed session. [`Hosted::end`] sees to it that it does.
#[derive(Debug)]
pub struct Hosted {
    // Dropped first: its connection is the server's input.
    attached: Attached,
    server: Child,
}

impl Deref for Hosted {
    type Target = Attached;

    fn deref(&self) -> &Attached {
        &self.attached
    }
}

/// Resumes a session in a server that is started for it: `program` with this Copilot home. The caller has made sure that
/// the session's process is gone.
///
/// What was open when that process went is over; if the server takes it for work that still runs, it is aborted once, before
/// any prompt. A session that was made with a model provider of its client's own can be resumed, but its prompts fail,
/// unless our environment names a provider too: only that client knows it.
pub async fn host(
    program: &Path,
    home: &Path,
    site: &Site,
    policy: Policy,
    events: UnboundedSender<Event>,
    generation: u64,
    steps: Steps<'_>,
) -> Result<Hosted, Failure> {
    let failed = |fault| Failure {
        next: Some("resume the session in a terminal".to_owned()),
        ..Failure::of(Step::Resume, fault)
    };
    let cwd = site.cwd.as_deref().filter(|cwd| cwd.is_dir()).unwrap_or(home);
    let mut server = start(program, home, cwd)
        .map_err(|error| failed(Fault::NotStarted(format!("{} does not start: {error}", program.display()).into())))?;
    let (Some(input), Some(output)) = (server.stdin.take(), server.stdout.take()) else {
        return Err(failed(Fault::Gone(super::fault::Place::Own)));
    };
    let loaded = async {
        let link = Link::over_stdio(output, input, cwd, LOADED_WITHIN).await.map_err(failed)?;
        steps(Step::Resume, "a server was started".to_owned());
        let taken = link.in_use_elsewhere(&site.id).await.map_err(failed)?;
        let how = with_provider(ResumeSessionConfig::new(SessionId::new(&*site.id)), |name| std::env::var(name).ok());
        let mut attached = Attached::to(link, site, policy, how, events, generation).await.map_err(failed)?;
        attached.taken_before = Some(taken);
        steps(Step::Resume, "the session is loaded".to_owned());
        if site.sight.borrow().unmatched_tools {
            attached.abort_if_busy(site, steps).await?;
        }
        attached.take_over(steps).await?;
        Ok(attached)
    };
    match loaded.await {
        Ok(attached) => Ok(Hosted { attached, server }),
        Err(failure) => {
            tokio::spawn(end(server));
            Err(failure)
        }
    }
}

/// The model provider that the environment names, by the variables that Copilot's own terminal takes it from: a server does
/// not look at them, and leaves it to its clients.
fn with_provider(how: ResumeSessionConfig, env: impl Fn(&str) -> Option<String>) -> ResumeSessionConfig {
    let env = |name: &str| env(&format!("COPILOT_{name}")).filter(|value| !value.is_empty());
    let Some(url) = env("PROVIDER_BASE_URL") else { return how };
    let mut provider = ProviderConfig::new(url)
        .with_provider_type(env("PROVIDER_TYPE").unwrap_or_else(|| "openai".into()))
        .with_wire_api(env("PROVIDER_WIRE_API").unwrap_or_else(|| "completions".into()));
    if let Some(key) = env("PROVIDER_API_KEY") {
        provider = provider.with_api_key(key);
    }
    if let Some(token) = env("PROVIDER_BEARER_TOKEN") {
        provider = provider.with_bearer_token(token);
    }
    let how = how.with_provider(provider);
    match env("MODEL") {
        Some(model) => how.with_model(model),
        None => how,
    }
}

fn start(program: &Path, home: &Path, cwd: &Path) -> io::Result<Child> {
    let mut command = Command::new(program);
    command.args(["--server", "--stdio", "--no-auto-update"]).current_dir(cwd).env("COPILOT_HOME", home);
    // A token is for servers that listen; this one would want it of us.
    command.env_remove("COPILOT_CONNECTION_TOKEN");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    #[cfg(unix)]
    command.process_group(0);
    #[cfg(windows)]
    {
        // CREATE_NEW_PROCESS_GROUP and CREATE_NO_WINDOW, of the Windows API's process creation flags.
        command.creation_flags(0x0000_0200 | 0x0800_0000);
    }
    descriptors::give_back(command.as_std_mut());
    command.spawn()
}

impl Hosted {
    /// The server's process.
    pub fn pid(&self) -> Option<u32> {
        self.server.id()
    }

    /// Ends the server: closes its input, which ends its sessions in good order; tells it to end if that is not enough; and
    /// kills it in the last resort.
    pub async fn end(self) {
        let Self { attached, server } = self;
        drop(attached);
        end(server).await;
    }
}

/// Sees to it that a server ends whose input has ended.
async fn end(mut server: Child) {
    let [gently, told] = ENDED_WITHIN;
    if timeout(gently, server.wait()).await.is_ok() {
        return;
    }
    tracing::warn!("the Copilot server that Pilotlight started does not end with its input; it is told to end");
    terminate(&server);
    if timeout(told, server.wait()).await.is_err() {
        // Fails only where it is gone already.
        let _ = server.kill().await;
    }
}

/// Whether a process is a server that we started, or what a script started that the settings name as Copilot: it is in the process
/// group of a child of ours, which nothing is that runs in a terminal.
#[cfg(unix)]
pub(crate) fn is_of_our_server(pid: u32) -> bool {
    let own = std::process::id();
    let line = ancestors(pid);
    let is_child = |pid: u32| ancestors(pid).first() == Some(&own);
    let group = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw);
    let group = group.and_then(|pid| rustix::process::getpgid(Some(pid)).ok());
    line.contains(&own) && group.is_some_and(|group| is_child(group.as_raw_nonzero().get().cast_unsigned()))
}

/// The same by its parent alone.
#[cfg(not(unix))]
pub(crate) fn is_of_our_server(pid: u32) -> bool {
    ancestors(pid).first() == Some(&std::process::id())
}

/// Tells the server, and what it started in its process group, to end. Its pid is its own for as long as it was not waited for.
#[cfg(unix)]
fn terminate(server: &Child) {
    use rustix::process::{Pid, Signal, kill_process_group};
    let group = server.id().and_then(|pid| i32::try_from(pid).ok()).and_then(Pid::from_raw);
    if let Some(group) = group {
        // Fails only where it is gone already.
        let _ = kill_process_group(group, Signal::TERM);
    }
}

/// There is nothing gentler here than to kill it.
#[cfg(not(unix))]
fn terminate(_: &Child) {}
