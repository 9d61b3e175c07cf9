//! `--agent NAME`: limits a command to the sessions of some agents.

use super::context::Context;
use super::report::{USAGE, say};
use crate::agent::homes::usual_home;
use crate::agent::wing::Wing;
use crate::core::text::{any_of, plain};
use clap_complete::{ArgValueCompleter, CompletionCandidate};
use std::ffi::OsStr;
use std::process::ExitCode;

/// Maximum length of a name in a message, in characters.
const NAME_MAX: usize = 40;

/// The agents that a command is limited to.
#[derive(Clone, Debug, Default, clap::Args)]
pub(super) struct Agents {
    /// Only the sessions of this agent; repeat it for several
    #[arg(long = "agent", value_name = "NAME", add = ArgValueCompleter::new(complete))]
    names: Vec<String>,
}

impl Agents {
    /// The same context with these agents alone.
    ///
    /// # Errors
    /// The exit code, if one is not known or is switched off. The user has been told then.
    pub(super) fn limit(&self, mut context: Context) -> Result<Context, ExitCode> {
        for name in &self.names {
            let Some(wing) = Wing::ALL.iter().find(|wing| wing.profile().names.name == name) else {
                let known: Vec<_> = names().collect();
                say(&format!("no agent is called {:?}: name {}", plain(name, NAME_MAX), any_of(&known)));
                return Err(ExitCode::from(USAGE));
            };
            let (agent, is_named) = (wing.agent(), !context.named_homes.is_empty());
            if !is_named && context.config.agents.off.contains(&wing.profile().names.name) {
                say(&format!("{agent} is switched off: `[agents] {name} = false` in the settings"));
                return Err(ExitCode::from(USAGE));
            }
            context.only.push(*wing);
        }
        if context.only.is_empty() {
            return Ok(context);
        }
        let only = context.only.clone();
        context.homes.retain(|home| only.contains(&home.wing()));
        context.unread.retain(|home| only.contains(&home.wing()));
        let unread: Vec<_> = context.unread.iter().map(|source| source.home().to_owned()).collect();
        context.silent.retain(|silent| unread.contains(&silent.home));
        if context.homes.is_empty() && context.unread.is_empty() {
            // Where it would be.
            context.homes.extend(only.iter().filter_map(|wing| usual_home(*wing)));
        }
        Ok(context)
    }
}

/// The names of all agents.
fn names() -> impl Iterator<Item = &'static str> {
    Wing::ALL.iter().map(|wing| wing.profile().names.name)
}

fn complete(typed: &OsStr) -> Vec<CompletionCandidate> {
    let typed = typed.to_string_lossy();
    let fits = names().filter(|name| name.starts_with(&*typed));
    fits.map(CompletionCandidate::new).collect()
}
