//! `--agent NAME`: limits a command to the sessions of some agents.

use super::context::{Context, is_among};
use super::report::{USAGE, say};
use clap_complete::{ArgValueCompleter, CompletionCandidate};
use pilotlight_agents::adapter::ADAPTERS;
use pilotlight_agents::home::is_reported;
use pilotlight_agents::homes::usual_home;
use pilotlight_agents::reported::agent_name;
use pilotlight_core::text::{any_of, listed, plain};
use pilotlight_system::clock::Clock;
use std::ffi::OsStr;
use std::process::ExitCode;
use std::slice;

/// Maximum length of a name in a message, in characters.
const NAME_MAX: usize = 40;
/// The most slips of the keyboard in a name that is still taken for the one that was meant. Names of other agents (`cody`)
/// differ in two letters.
const SLIPS_MAX: usize = 1;

/// The agents that a command is limited to.
#[derive(Clone, Debug, Default, clap::Args)]
pub(super) struct Agents {
    /// Only the sessions of this agent, such as `codex` or one that uses `pilotlight report`; repeat the option for several
    #[arg(long = "agent", value_name = "NAME", add = ArgValueCompleter::new(complete))]
    names: Vec<String>,
    /// Only the sessions on the machine with this name in the settings; repeat the option for several
    #[arg(long = "host", value_name = "HOST")]
    hosts: Vec<String>,
}

impl Agents {
    /// The only machine whose sessions are wanted, if one is named.
    pub(super) fn only_host(&self) -> Option<&str> {
        let [host] = &*self.hosts else { return None };
        Some(host)
    }

    /// The same context with these agents alone.
    ///
    /// # Errors
    /// The exit code, if one cannot be the name of an agent, or is switched off. The user has been told then.
    pub(super) fn limit(&self, mut context: Context) -> Result<Context, ExitCode> {
        for name in &self.hosts {
            if !context.hosts().any(|host| host.name == *name) {
                // The settings may name it, and not be understood.
                context.report_problems();
                say(&format!("no machine in the settings is called {:?}", plain(name, NAME_MAX)));
                return Err(ExitCode::from(USAGE));
            }
        }
        context.only_hosts.clone_from(&self.hosts);
        if !self.hosts.is_empty() {
            (context.homes, context.unread, context.silent) = (Vec::new(), Vec::new(), Vec::new());
        }
        for name in &self.names {
            let Ok(name) = agent_name(name) else {
                let (name, known) = (plain(name, NAME_MAX), any_of(&names().collect::<Vec<_>>()));
                say(&format!("no agent is called {name:?}: name {known}, or an agent that a hook reports"));
                return Err(ExitCode::from(USAGE));
            };
            let adapter = ADAPTERS.iter().find(|adapter| is_among(slice::from_ref(&name), **adapter));
            context.only.push(name.clone());
            let Some(adapter) = adapter else {
                if !is_reported(&name, Clock::start().now().wall) {
                    if let Some(meant) = meant(&name) {
                        let known = listed(&names().collect::<Vec<_>>());
                        say(&format!("no agent is called {name}: did you mean {meant}? The agents are {known}"));
                        return Err(ExitCode::from(USAGE));
                    }
                    let known = listed(&names().collect::<Vec<_>>());
                    say(&format!("no hook reports a session of {name} yet; agents that need no hook: {known}"));
                }
                continue;
            };
            let (agent, is_named) = (adapter.agent(), !context.named_homes.is_empty());
            if !is_named && context.config.agents.off.contains(&adapter.profile().names.name) {
                say(&format!("{agent} is switched off: `[agents] {name} = false` in the settings"));
                return Err(ExitCode::from(USAGE));
            }
        }
        if context.only.is_empty() || !self.hosts.is_empty() {
            return Ok(context);
        }
        let only = context.only.clone();
        context.homes.retain(|home| is_among(&only, home.adapter()));
        context.unread.retain(|home| is_among(&only, home.adapter()));
        let unread: Vec<_> = context.unread.iter().map(|home| home.folder().to_owned()).collect();
        context.silent.retain(|silent| unread.contains(&silent.home));
        if context.homes.is_empty() && context.unread.is_empty() {
            // Where it would be.
            let adapters = ADAPTERS.iter().filter(|adapter| is_among(&only, **adapter));
            context.homes.extend(adapters.filter_map(|adapter| usual_home(*adapter)));
        }
        Ok(context)
    }
}

/// The agent with a home that is meant by the name of none: a part of its name, or a slip in it or in its first word.
fn meant(name: &str) -> Option<&'static str> {
    let is_near = |known: &str| strsim::damerau_levenshtein(known, name) <= SLIPS_MAX;
    let is_part = |known: &&str| known.split('-').any(|part| part == name);
    let is_slip = |known: &&str| is_near(known) || known.split('-').next().is_some_and(is_near);
    names().find(is_part).or_else(|| names().find(is_slip))
}

/// The names of all agents that have homes.
fn names() -> impl Iterator<Item = &'static str> {
    ADAPTERS.iter().map(|adapter| adapter.profile()).filter(|profile| !profile.home.is_empty()).map(|it| it.names.name)
}

fn complete(typed: &OsStr) -> Vec<CompletionCandidate> {
    let typed = typed.to_string_lossy();
    let fits = names().filter(|name| name.starts_with(&*typed));
    fits.map(CompletionCandidate::new).collect()
}
