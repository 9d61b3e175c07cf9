//! `pilotlight bridge`: installs or removes the extension that Copilot starts with each session in a terminal, and
//! reports where it runs.

use super::ask::{confirm, prompt};
use super::bridges::announce_bridge_change;
use super::context::{Context, runtime};
use super::fold::{on_stderr, on_stdout};
use super::json;
use super::observe::{Effort, Picture, observe};
use super::report::{LINE_MAX, REFUSED, say};
use anyhow::{Context as _, anyhow};
use pilotlight_agents::copilot;
use pilotlight_agents::copilot::bridge::PLUGIN;
use pilotlight_agents::copilot::bridge::files::Files;
use pilotlight_agents::copilot::bridge::plugin::{self, Installed};
use pilotlight_agents::copilot::program::{VERSION_TIMEOUT_LONG, find_program};
use pilotlight_core::action::{Bridge, OTHER_VERSION};
use pilotlight_core::fleet::{Kind, Session, short_id};
use pilotlight_core::text::plain;
use pilotlight_system::paths::{self, canonical};
use serde::Serialize;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Arguments of `bridge`.
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Install it in Copilot; it covers sessions started in terminals from then on
    Install(Change),
    /// Remove it from Copilot
    Remove(Change),
    /// Say for each home whether it is installed, and for each session in a terminal whether it is covered
    Status(Status),
}

#[derive(Debug, clap::Args)]
struct Change {
    /// Do not ask first
    #[arg(long)]
    yes: bool,
    /// Wait for Enter at the end: the terminal was opened for this
    #[arg(long, hide = true)]
    wait: bool,
}

#[derive(Debug, clap::Args)]
struct Status {
    /// Print a JSON array: one object per home
    #[arg(long)]
    json: bool,
}

/// The status of a home, in the JSON.
#[derive(Serialize)]
struct Row<'a> {
    home: &'a Path,
    installed: Installed,
    /// Whether the installed files are of this program's version.
    current: bool,
    version: &'static str,
    /// Its live sessions in plain terminals.
    sessions: Vec<Terminal<'a>>,
}

/// The status of a session, in the JSON.
#[derive(Serialize)]
struct Terminal<'a> {
    id: &'a str,
    #[serde(skip)]
    name: String,
    /// The same as in the owner of `status --json`.
    bridge: Option<&'static str>,
    /// The release of Copilot that its bridge runs in.
    copilot: Option<&'a str>,
    /// Whether the bridge only watches, because it was not tested with that release.
    watches: bool,
    /// Whether its bridge is of another version than this program.
    old: bool,
}

const WHAT_IT_IS: &str = "\
The bridge lets Pilotlight stop, answer and (after you allow it in the terminal) approve in Copilot sessions that run in \
plain terminals. It is a Copilot extension; in a release of Copilot that it was not tested with, it only watches.
What it costs:
- one process per session, about 40 MB, no CPU use while nothing happens
- the model is offered two more tools, extensions_manage and extensions_reload
- Copilot rewrites its settings.json, and drops comments in it
- any installed extension, this one included, gives the tools that you approve a way to switch approvals off and, once \
you let Pilotlight answer there, to approve. The real fence is Copilot's sandbox, and its --deny-tool
Sessions that already run are not covered until they are restarted.";

const WHAT_STAYS: &str = "\
What stays: your consent for folders, in Copilot's permissions-config.json, and an empty \"extraKnownMarketplaces\" in its \
settings. Sessions that run keep the extension until they end.";

pub(super) fn run(context: &Context, arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let project = paths::project().context("there is no folder to put the bridge into: set HOME")?;
    let files = Files::new(&project);
    let (result, waits) = match &arguments.action {
        Action::Install(_) if cfg!(not(unix)) => {
            say("the bridge is for Linux and macOS so far: nothing was done");
            return Ok(ExitCode::FAILURE);
        }
        Action::Install(change) => (install(context, &files, change.yes), change.wait),
        Action::Remove(change) => (remove(context, &files, change.yes), change.wait),
        Action::Status(arguments) => (status(context, &files, arguments.json), false),
    };
    if waits {
        if let Err(error) = &result {
            say(&format!("{error:#}"));
        }
        prompt("Press Enter to close this window. ");
    }
    result
}

fn install(context: &Context, files: &Files, yes: bool) -> anyhow::Result<ExitCode> {
    let homes = copilot::homes(&context.homes);
    check_settings(&homes, files)?;
    let program = program(context)?;
    let commands = commands(&homes, |home| plugin::to_install(home, &files.marketplace));
    if !is_confirmed(&program, WHAT_IT_IS, &commands, yes) {
        return Ok(ExitCode::from(REFUSED));
    }
    let uses_it = |home: &&PathBuf| plugin::installed(home, &files.marketplace) != Installed::No;
    let before: Vec<_> = homes.iter().filter(uses_it).collect();
    let real: Vec<_> = homes.iter().map(|home| PathBuf::from(&*canonical(home))).collect();
    files.add_homes(&real)?;
    let failed = match files.write() {
        Ok(()) => carry_out(&program, &commands)?,
        Err(error) => {
            clean_up(context, files)?;
            return Err(error);
        }
    };
    // Where the bridge was not installed before, a failed installation is taken back.
    for home in failed.iter().filter(|home| !before.iter().any(|before| before == *home)) {
        carry_out(&program, &plugin::to_remove(home).into_iter().map(|command| (*home, command)).collect())?;
    }
    if failed.is_empty() {
        announce_bridge_change();
        say("the bridge is on: restart your sessions to have them covered");
        return Ok(ExitCode::SUCCESS);
    }
    clean_up(context, files)?;
    Ok(ExitCode::FAILURE)
}

fn remove(context: &Context, files: &Files, yes: bool) -> anyhow::Result<ExitCode> {
    let homes = copilot::homes(&context.homes);
    check_settings(&homes, files)?;
    let program = program(context)?;
    let commands = commands(&homes, plugin::to_remove);
    if !is_confirmed(&program, WHAT_STAYS, &commands, yes) {
        return Ok(ExitCode::from(REFUSED));
    }
    let failed = carry_out(&program, &commands)?;
    let users = clean_up(context, files)?;
    if !failed.is_empty() {
        return Ok(ExitCode::FAILURE);
    }
    say("the bridge is removed");
    for home in users {
        say(&format!("its files stay: {} still uses it", plain(&home.display().to_string(), LINE_MAX)));
    }
    Ok(ExitCode::SUCCESS)
}

/// Checks that Copilot's settings can be read: its own commands could only guess at what they say, too.
fn check_settings(homes: &[PathBuf], files: &Files) -> anyhow::Result<()> {
    let unreadable = |home: &&PathBuf| plugin::installed(home, &files.marketplace) == Installed::Unreadable;
    match homes.iter().find(unreadable) {
        Some(home) => Err(anyhow!(
            "{} cannot be read: correct the mistake in it, and run this again; nothing was done",
            home.join("settings.json").display()
        )),
        None => Ok(()),
    }
}

/// Removes the bridge's files once no home refers to them: Copilot warns at each start about a missing marketplace.
/// Returns the homes that do.
fn clean_up(context: &Context, files: &Files) -> anyhow::Result<Vec<PathBuf>> {
    let mut homes: Vec<_> = files
        .homes()
        .into_iter()
        .chain(copilot::homes(&context.all_homes()))
        .map(|home| PathBuf::from(&*canonical(&home)))
        .collect();
    homes.sort();
    homes.dedup();
    homes.retain(|home| !matches!(plugin::installed(home, &files.marketplace), Installed::No | Installed::Elsewhere));
    if homes.is_empty() {
        files.remove()?;
    }
    announce_bridge_change();
    Ok(homes)
}

fn program(context: &Context) -> anyhow::Result<PathBuf> {
    let named = context.config.actions.program.as_deref();
    let named = named.and_then(|path| paths::expand(path, paths::user_home().as_deref()));
    runtime()?.block_on(find_program(named.as_deref(), VERSION_TIMEOUT_LONG)).map_err(|why| anyhow!(why))
}

/// The Copilot commands to run, in order: each with its home and its arguments.
type Commands<'a> = Vec<(&'a Path, Vec<String>)>;

fn commands(homes: &[PathBuf], of: impl Fn(&Path) -> Vec<Vec<String>>) -> Commands<'_> {
    homes.iter().flat_map(|home| of(home).into_iter().map(move |command| (&**home, command))).collect()
}

/// Shows the commands, and asks whether to run them.
fn is_confirmed(program: &Path, about: &str, commands: &Commands<'_>, yes: bool) -> bool {
    let mut err = io::stderr();
    let _ = writeln!(err, "{}\n\nThese commands will be run:", on_stderr(about)); // if stderr is closed, nobody is listening
    for (home, command) in commands {
        let line = format!("COPILOT_HOME={} {} {}", home.display(), program.display(), command.join(" "));
        let _ = writeln!(err, "{}", on_stderr(&format!("  {}", plain(&line, LINE_MAX))));
    }
    if commands.is_empty() {
        let _ = writeln!(err, "  nothing: no home has it");
    }
    if yes {
        return true;
    }
    match confirm("Run it?") {
        Some(true) => true,
        Some(false) => {
            say("nothing was done");
            false
        }
        None => {
            say("there is no terminal here to ask you on, so nothing was done: add `--yes` if you mean it");
            false
        }
    }
}

/// Runs the commands. Returns the homes in which one failed.
fn carry_out<'a>(program: &Path, commands: &Commands<'a>) -> anyhow::Result<Vec<&'a Path>> {
    let runtime = runtime()?;
    let mut failed: Vec<&Path> = Vec::new();
    for (home, command) in commands {
        // A home's later commands depend on its earlier ones.
        if failed.contains(home) {
            continue;
        }
        match runtime.block_on(plugin::run(program, home, command)) {
            Ok(()) => {}
            Err(_) if plugin::only_tidies(command) => say(&format!(
                "{}: this Copilot cannot remove \"enabledPlugins.{PLUGIN}\" from its settings.json; it has no effect there",
                home.display()
            )),
            Err(why) => {
                say(&format!("{}: {why}", home.display()));
                failed.push(home);
            }
        }
    }
    Ok(failed)
}

fn status(context: &Context, files: &Files, as_json: bool) -> anyhow::Result<ExitCode> {
    let current = files.is_current();
    let Picture { mut sessions, now, are_bridges_known: are_known, .. } = observe(context, Effort::Ask, None)?;
    sessions.retain(|session| session.observed.about.kind == Kind::Terminal && session.observed.owner.live().is_some());
    let home_of = |home: &PathBuf| -> Vec<Terminal<'_>> {
        sessions
            .iter()
            .filter(|session| context.home_of(session).is_some_and(|its| its.folder() == home))
            .map(|session| terminal(session, session.row(now, &context.config.limits).0.label.cut(40)))
            .collect()
    };
    let homes = copilot::homes(&context.homes);
    let rows: Vec<_> = homes
        .iter()
        .map(|home| Row {
            home,
            installed: plugin::installed(home, &files.marketplace),
            current,
            version: env!("CARGO_PKG_VERSION"),
            sessions: home_of(home),
        })
        .collect();
    let mut out = io::stdout().lock();
    if as_json {
        json::write_pretty(&mut out, &rows)?;
        writeln!(out)?;
        return Ok(ExitCode::SUCCESS);
    }
    for Row { home, installed, current, sessions, .. } in &rows {
        let state = match installed {
            Installed::No => "not installed; `pilotlight bridge install` does it",
            Installed::Yes if *current => "on",
            Installed::Yes if files.is_changed() => {
                "changed since it was installed, so it does not run; `pilotlight bridge install` puts it back"
            }
            Installed::Yes => "on, in another version; `pilotlight bridge install` updates it",
            Installed::SwitchedOff => "switched off in Copilot",
            Installed::Forbidden => "not started: a policy of your organisation forbids it",
            Installed::Unreadable => "unknown: Copilot's settings.json cannot be read; correct the mistake in it",
            Installed::Elsewhere => {
                "installed from another folder; `pilotlight bridge install` replaces it with this one"
            }
        };
        writeln!(out, "{}", on_stdout(&format!("{}: {state}", plain(&home.display().to_string(), LINE_MAX))))?;
        for session in sessions {
            let state = session.words(*installed, are_known);
            let line = format!("  {}  {}: {state}", short_id(session.id), session.name);
            writeln!(out, "{}", on_stdout(&line))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn terminal(session: &Session, name: String) -> Terminal<'_> {
    let bridge = session.control.bridge;
    Terminal {
        id: &session.id,
        name,
        bridge: bridge.map(Bridge::name),
        copilot: session.control.release.as_deref(),
        watches: bridge == Some(Bridge::Watches),
        old: session.control.old_bridge,
    }
}

impl Terminal<'_> {
    /// `are_known`: whether the bridges were asked, by the tray or by us.
    fn words(&self, installed: Installed, are_known: bool) -> String {
        let words = match (self.bridge, self.copilot) {
            (None, _) if installed == Installed::No => {
                "not covered; would be, if it is started anew after `pilotlight bridge install`".into()
            }
            (None, _) if installed != Installed::Yes => "not covered".into(),
            (None, _) if are_known => {
                "not covered; a bridge connects some seconds after the session's start: if it does not, restart the session".into()
            }
            (None, _) => "unknown: another command has the bridges; try again when it has ended".into(),
            (_, Some(release)) if self.watches => format!("not tried with {release}: watching only"),
            (Some("elevated"), _) => "covered; permission requests can be answered".into(),
            (Some(_), _) => "covered; permission requests are answered there, until you let Pilotlight answer".into(),
        };
        if self.old { format!("{words} ({OTHER_VERSION})") } else { words }
    }
}
