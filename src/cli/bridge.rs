//! `pilotlight bridge`: has Copilot start our extension beside each session in a terminal, or no longer, and says where it runs.

use super::ask::{confirm, line};
use super::beside::take_over_from_tray;
use super::{Context, LINE_MAX, USAGE, beside, json, runtime, say};
use crate::agent::copilot::bridge::files::Files;
use crate::agent::copilot::bridge::plugin::{self, Installed};
use crate::agent::copilot::program::{SAID_LATE, find_program};
use crate::agent::copilot::store::SESSIONS;
use crate::core::action::Bridge;
use crate::core::fleet::{Kind, Session, short_id};
use crate::core::text::plain;
use crate::engine::snapshot::{self, Snapshot};
use crate::system::paths;
use anyhow::{Context as _, anyhow};
use serde::Serialize;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// What can be done with the bridge.
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// Install it in Copilot; it covers sessions started in terminals from then on
    Install(Sure),
    /// Remove it from Copilot
    Remove(Sure),
    /// Say for each home whether it is installed
    Status(Status),
}

#[derive(Debug, clap::Args)]
struct Sure {
    /// Do not ask
    #[arg(long)]
    yes: bool,
    /// Wait for Enter at the end: the terminal was opened for this
    #[arg(long, hide = true)]
    wait: bool,
}

#[derive(Debug, clap::Args)]
struct Status {
    /// As a JSON array: one object per home
    #[arg(long)]
    json: bool,
}

/// What is said of a home.
#[derive(Serialize)]
struct Row<'a> {
    home: &'a Path,
    installed: Installed,
    /// The version of what lies on our disk is this program's.
    current: bool,
    version: &'static str,
    /// Its live sessions in plain terminals.
    sessions: Vec<Terminal<'a>>,
}

/// What is said of a session.
#[derive(Serialize)]
struct Terminal<'a> {
    id: &'a str,
    #[serde(skip)]
    name: String,
    /// As in the row's owner.
    bridge: Option<&'static str>,
    /// The release of Copilot that its bridge runs in, and whether the bridge was tried with that.
    copilot: Option<&'a str>,
    watches: bool,
    /// Its bridge is of another version than this program.
    old: bool,
}

const WHAT_IT_IS: &str = "\
The bridge lets Pilotlight stop, answer and (after you allow it in the terminal) approve in Copilot sessions that run in
plain terminals. It is an extension of Copilot's, experimental there:
  - one process a session, about 40 MB, without CPU use while nothing happens
  - the model is offered two more tools, extensions_manage and extensions_reload
  - Copilot rewrites its settings.json, and drops comments in it
Sessions that already run are not covered until they are restarted.";

const WHAT_STAYS: &str = "\
What stays: your consent for folders, in Copilot's permissions-config.json, and an empty \"extraKnownMarketplaces\" in its
settings. Sessions that run keep the extension until they end.";

pub(super) fn run(context: &Context, arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let project = paths::project().context("there is no folder to put the bridge into: set HOME")?;
    let files = Files::new(&project);
    let (ended, waits) = match &arguments.what {
        What::Install(_) if cfg!(not(unix)) => {
            say("the bridge is for Linux and macOS so far: nothing was done");
            return Ok(ExitCode::FAILURE);
        }
        What::Install(sure) => (install(context, &files, sure.yes), sure.wait),
        What::Remove(sure) => (remove(context, &files, sure.yes), sure.wait),
        What::Status(arguments) => (status(context, &files, arguments.json), false),
    };
    if waits {
        if let Err(error) = &ended {
            say(&format!("{error:#}"));
        }
        line("Enter closes this. ");
    }
    ended
}

fn install(context: &Context, files: &Files, yes: bool) -> anyhow::Result<ExitCode> {
    let program = program(context)?;
    let commands = commands(context, |home| plugin::to_install(home, &files.marketplace));
    if !agreed(&program, WHAT_IT_IS, &commands, yes) {
        return Ok(ExitCode::from(USAGE));
    }
    files.write()?;
    beside::have_it_listen();
    carry_out(&program, &commands, "the bridge is on: start your sessions anew to have them covered")
}

fn remove(context: &Context, files: &Files, yes: bool) -> anyhow::Result<ExitCode> {
    let program = program(context)?;
    let commands = commands(context, plugin::to_remove);
    if !agreed(&program, WHAT_STAYS, &commands, yes) {
        return Ok(ExitCode::from(USAGE));
    }
    let code = carry_out(&program, &commands, "the bridge is removed")?;
    // A marketplace that a home still names, and that is gone, is a warning at each of its starts.
    if context.homes.iter().all(|home| plugin::installed(home, &files.marketplace) == Installed::No) {
        files.remove()?;
        beside::have_it_listen();
    }
    Ok(code)
}

fn program(context: &Context) -> anyhow::Result<PathBuf> {
    let named = context.config.actions.copilot.as_deref();
    let named = named.and_then(|path| paths::expand(path, paths::user_home().as_deref()));
    runtime()?.block_on(find_program(named.as_deref(), SAID_LATE)).map_err(|why| anyhow!(why))
}

/// What will be run: for each home, in order, the arguments of one command.
type Commands<'a> = Vec<(&'a Path, Vec<String>)>;

fn commands(context: &Context, of: impl Fn(&Path) -> Vec<Vec<String>>) -> Commands<'_> {
    context.homes.iter().flat_map(|home| of(home).into_iter().map(move |command| (&**home, command))).collect()
}

/// Shows what will be run, and asks.
fn agreed(program: &Path, about: &str, commands: &Commands<'_>, yes: bool) -> bool {
    let mut err = io::stderr();
    let _ = writeln!(err, "{about}\n\nWill be run:"); // without a standard error there is nobody to tell
    for (home, command) in commands {
        let line = format!("COPILOT_HOME={} {} {}", home.display(), program.display(), command.join(" "));
        let _ = writeln!(err, "  {}", plain(&line, LINE_MAX));
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
            say("there is no terminal to ask on; `--yes` says that it is meant");
            false
        }
    }
}

fn carry_out(program: &Path, commands: &Commands<'_>, done: &str) -> anyhow::Result<ExitCode> {
    let runtime = runtime()?;
    let mut failed: Vec<&Path> = Vec::new();
    for (home, command) in commands {
        // The next one of a home takes the one before for done.
        if failed.contains(home) {
            continue;
        }
        if let Err(why) = runtime.block_on(plugin::run(program, home, command)) {
            say(&format!("{}: {why}", home.display()));
            failed.push(home);
        }
    }
    if !failed.is_empty() {
        return Ok(ExitCode::FAILURE);
    }
    say(done);
    Ok(ExitCode::SUCCESS)
}

fn status(context: &Context, files: &Files, as_json: bool) -> anyhow::Result<ExitCode> {
    let current = files.is_current();
    let Snapshot { mut sessions, now, .. } = snapshot::take(&context.homes, &context.config, &context.seen, false);
    sessions.retain(|session| session.about.kind == Kind::Terminal && session.owner.live().is_some());
    let listens = take_over_from_tray(&mut sessions, &context.homes);
    let home_of = |home: &PathBuf| -> Vec<Terminal<'_>> {
        let is_there = |session: &&Session| home.join(SESSIONS).join(&*session.id).is_dir();
        sessions
            .iter()
            .filter(is_there)
            .map(|session| terminal(session, session.row(now, &context.config.limits).0.label.cut(40)))
            .collect()
    };
    let rows: Vec<_> = context
        .homes
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
        let said = match installed {
            Installed::No => "not installed; `pilotlight bridge install` does it",
            Installed::Yes if *current => "on",
            Installed::Yes => "on, in another version; `pilotlight bridge install` renews it",
            Installed::SwitchedOff => "switched off in Copilot",
            Installed::Forbidden => "not started: a policy of your organisation forbids it",
            Installed::Elsewhere => {
                "installed from another folder; `pilotlight bridge install` puts this one in its place"
            }
        };
        writeln!(out, "{}: {said}", plain(&home.display().to_string(), LINE_MAX))?;
        for session in sessions {
            writeln!(out, "  {}  {}: {}", short_id(session.id), session.name, session.words(listens))?;
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
    /// `listens`: a tray runs, to which bridges come.
    fn words(&self, listens: bool) -> String {
        let words = match (self.bridge, self.copilot) {
            (None, _) if listens => "not covered; start it anew, where the bridge is on".into(),
            (None, _) => "not known: bridges come to the tray, and none runs".into(),
            (_, Some(release)) if self.watches => format!("not tried with {release}: watching only"),
            (Some("elevated"), _) => "covered; permission requests can be answered".into(),
            (Some(_), _) => "covered; permission requests are answered there, until you let Pilotlight answer".into(),
        };
        if self.old { format!("{words} (an older version of the bridge)") } else { words }
    }
}
