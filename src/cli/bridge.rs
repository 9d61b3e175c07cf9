//! `pilotlight bridge`: installs or removes what reaches sessions in terminals, with their agents' own commands, and reports
//! where it runs.

use super::ask::{CANNOT_ASK, confirm, prompt};
use super::bridges::announce_bridge_change;
use super::context::{Context, runtime};
use super::fold::{on_stderr, on_stdout};
use super::json;
use super::observe::{Effort, Picture, observe};
use super::report::{LINE_MAX, REFUSED, say};
use anyhow::{Context as _, anyhow};
use pilotlight_agents::adapter::FIRST;
use pilotlight_agents::bridge::{self, Installed, Installer, environment, installers, words};
use pilotlight_agents::home::Home;
use pilotlight_core::action::{Bridge, OTHER_VERSION};
use pilotlight_core::fleet::{Kind, Session, short_id};
use pilotlight_core::owner::Owner;
use pilotlight_core::text::plain;
use pilotlight_core::time::Time;
use pilotlight_system::paths::{self, canonical};
use serde::Serialize;
use serde_json::{Map, Value};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The longest source of a marketplace that is shown.
const SOURCE_MAX: usize = 200;

/// Arguments of `bridge`.
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Install the bridge, for terminal sessions that start from now on
    Install(Change),
    /// Remove the bridge
    Remove(Change),
    /// Show which homes have the bridge, and which terminal sessions it covers
    Status(Status),
}

#[derive(Debug, clap::Args)]
struct Change {
    /// Only for this agent. Default: for each agent that you use, one after another
    #[arg(long, value_name = "AGENT", value_parser = ["copilot", "claude-code", "opencode"])]
    agent: Option<String>,
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
    home: PathBuf,
    installed: Installed,
    /// Whether the installed files are of this program's version.
    current: bool,
    version: &'static str,
    /// Its live sessions in plain terminals.
    sessions: Vec<Terminal<'a>>,
    /// The agent, as settings name it.
    agent: &'static str,
    #[serde(skip)]
    installer: &'a dyn Installer,
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
    /// Whether its process is older than the bridge in its home. `None`: that is not known.
    #[serde(skip)]
    is_older: Option<bool>,
    /// The release that it runs, if the bridge was not tried with that and leaves it alone.
    #[serde(skip)]
    untried: Option<&'a str>,
}

/// What may be done with the bridge of an agent.
type Doing = fn(&Context, &dyn Installer, bool) -> anyhow::Result<ExitCode>;

pub(super) fn run(context: &Context, arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let project = paths::project().context("there is no folder to put the bridge into: set HOME")?;
    let installers = installers(&project);
    let (result, waits) = match &arguments.action {
        Action::Install(_) if cfg!(not(unix)) => {
            say("the bridge is for Linux and macOS so far: nothing was done");
            return Ok(ExitCode::FAILURE);
        }
        Action::Install(change) => (each(context, &installers, change, install), change.wait),
        Action::Remove(change) => (each(context, &installers, change, remove), change.wait),
        Action::Status(arguments) => (status(context, &installers, arguments.json), false),
    };
    if waits {
        if let Err(error) = &result {
            say(&format!("{error:#}"));
        }
        prompt("Press Enter to close this window. ");
    }
    result
}

/// Does this for the agent that is named, or for each that is used, one after another: each asks for itself.
fn each(
    context: &Context,
    installers: &[Box<dyn Installer>],
    change: &Change,
    work: Doing,
) -> anyhow::Result<ExitCode> {
    let is_wanted = |installer: &dyn Installer| match &change.agent {
        Some(name) => installer.adapter().name() == name,
        None => {
            let used = installer.used(&chosen(context), !context.named_homes.is_empty());
            !used.is_empty() || installer.is_installed()
        }
    };
    let wanted: Vec<_> = installers.iter().filter(|installer| is_wanted(installer.as_ref())).collect();
    let Some((last, before)) = wanted.split_last() else {
        let names: Vec<_> = installers.iter().map(|installer| installer.adapter().agent().to_string()).collect();
        return Err(anyhow!("nothing was done: neither {} is used here", names.join(" nor ")));
    };
    let mut code = ExitCode::SUCCESS;
    for installer in before {
        let its = work(context, &***installer, change.yes).unwrap_or_else(|error| {
            say(&format!("{}: {error:#}", installer.adapter().agent()));
            ExitCode::FAILURE
        });
        if its != ExitCode::SUCCESS {
            code = its;
        }
        let _ = writeln!(io::stderr()); // if stderr is closed, nobody is listening
    }
    let its = work(context, &***last, change.yes)?;
    Ok(if its == ExitCode::SUCCESS { code } else { its })
}

fn install(context: &Context, installer: &dyn Installer, yes: bool) -> anyhow::Result<ExitCode> {
    let mut homes = used_homes(context, installer)?;
    check_settings(&homes, installer)?;
    let is_refused = leave_foreign(&mut homes, installer);
    if homes.is_empty() {
        return Ok(ExitCode::FAILURE);
    }
    let work = Work {
        installer,
        about: installer.about(),
        program: program(context, installer, &homes)?,
        commands: commands(&homes, |home| installer.to_install(home)),
        files: ("written", homes.iter().filter_map(|home| Some((&**home, installer.file(home)?))).collect()),
    };
    if !work.is_confirmed(yes) {
        return Ok(ExitCode::from(REFUSED));
    }
    let uses_it = |home: &&PathBuf| installer.installed(home) != Installed::No;
    let before: Vec<_> = homes.iter().filter(uses_it).collect();
    let real: Vec<_> = homes.iter().map(|home| PathBuf::from(&*canonical(home))).collect();
    installer.homes().add(&real)?;
    let settings = kept(installer, &homes);
    let mut failed = match installer.write() {
        Ok(()) => work.carry_out(|home| installer.put(home))?,
        Err(error) => {
            clean_up(context, installer)?;
            return Err(error);
        }
    };
    for home in homes.iter().filter(|home| installer.installed(home) == Installed::No) {
        if !failed.contains(&&**home) {
            let agent = installer.adapter().agent();
            say(&format!("{}: {agent} reported success, but has not installed the bridge", home.display()));
            failed.push(home);
        }
    }
    // Where the bridge was not installed before, a failed installation is taken back.
    for home in failed.iter().filter(|home| !before.iter().any(|before| before == *home)) {
        let commands = installer.to_remove(home).into_iter().map(|command| (*home, command)).collect();
        Work { commands, program: work.program.clone(), files: ("", Vec::new()), ..work }.carry_out(|_| Ok(()))?;
    }
    say_what_changed(installer, &homes, &settings);
    if failed.is_empty() {
        announce_bridge_change();
        say(installer.what_next());
        return Ok(if is_refused { ExitCode::FAILURE } else { ExitCode::SUCCESS });
    }
    clean_up(context, installer)?;
    Ok(ExitCode::FAILURE)
}

fn remove(context: &Context, installer: &dyn Installer, yes: bool) -> anyhow::Result<ExitCode> {
    let mut homes = chosen_homes(context, installer);
    let all = context.bridged_homes(installer).into_iter();
    let is_there = |home: &PathBuf| !homes.contains(home) && installer.installed(home) != Installed::No;
    let others: Vec<_> = all.filter(is_there).collect();
    homes.extend(others);
    if homes.is_empty() {
        homes = installer.homes().all(); // the agent may not be used any more
    }
    check_settings(&homes, installer)?;
    let is_refused = leave_foreign(&mut homes, installer);
    let has_file = |home: &&PathBuf| installer.installed(home) != Installed::No;
    let files = homes.iter().filter(has_file).filter_map(|home| Some((&**home, installer.file(home)?)));
    let files: Vec<_> = files.collect();
    let commands = commands(&homes, |home| installer.to_remove(home));
    if commands.is_empty() && files.is_empty() {
        clean_up(context, installer)?;
        say(&format!("no home of {} has the bridge: nothing was removed", installer.adapter().agent()));
        return Ok(if is_refused { ExitCode::FAILURE } else { ExitCode::SUCCESS });
    }
    let work = Work {
        installer,
        about: installer.what_stays(),
        program: program(context, installer, &homes)?,
        commands,
        files: ("deleted", files),
    };
    if !work.is_confirmed(yes) {
        return Ok(ExitCode::from(REFUSED));
    }
    let settings = kept(installer, &homes);
    let failed = work.carry_out(|home| installer.take(home))?;
    let users = clean_up(context, installer)?;
    say_what_changed(installer, &homes, &settings);
    for home in &homes {
        if let Some(entries) = installer.by_hand(home) {
            let agent = installer.adapter().agent();
            say(&format!(
                "{}: {agent} did not remove {entries} from its settings: remove them by hand",
                home.display()
            ));
        }
    }
    if !failed.is_empty() || is_refused && homes.is_empty() {
        return Ok(ExitCode::FAILURE);
    }
    say(&format!("the bridge of {} is removed", installer.adapter().agent()));
    for home in users {
        say(&format!("its files stay, because {} still uses them", plain(&home.display().to_string(), LINE_MAX)));
    }
    Ok(if is_refused { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Leaves out the homes whose marketplace of our name is not ours: the agent's commands would replace or remove that one, and
/// its plugins. Says so, and returns whether there are any.
fn leave_foreign(homes: &mut Vec<PathBuf>, installer: &dyn Installer) -> bool {
    let count = homes.len();
    homes.retain(|home| {
        let Some(source) = installer.foreign(home) else { return true };
        let by_hand = words(&["plugin", "marketplace", "remove", "pilotlight"]);
        let program = Path::new(installer.adapter().profile().program);
        say(&format!(
            "{}: its marketplace \"pilotlight\" is not this Pilotlight's, but from {}: nothing is done there. `{}` removes it with \
             its plugins; then run this again",
            home.display(),
            plain(&source, SOURCE_MAX),
            command_line(installer, home, program, &by_hand)
        ));
        false
    });
    homes.len() < count
}

/// How a command of an agent reads.
fn command_line(installer: &dyn Installer, home: &Path, program: &Path, command: &[String]) -> String {
    let set = environment(installer.adapter(), home);
    let set: String = set
        .iter()
        .map(|(name, value)| format!("{}={} ", Path::new(name).display(), Path::new(value).display()))
        .collect();
    format!("{set}{} {}", program.display(), command.join(" "))
}

/// What the settings of these homes have besides the bridge.
fn kept(installer: &dyn Installer, homes: &[PathBuf]) -> Vec<Map<String, Value>> {
    homes.iter().map(|home| installer.kept(home)).collect()
}

/// Says which other settings of these homes are no longer as they were before.
fn say_what_changed(installer: &dyn Installer, homes: &[PathBuf], before: &[Map<String, Value>]) {
    for (home, before) in homes.iter().zip(before) {
        let after = installer.kept(home);
        for (key, value) in before.iter().filter(|(key, value)| after.get(*key) != Some(*value)) {
            let (home, agent) = (home.display(), installer.adapter().agent());
            let line = format!("{home}: {agent} changed its setting {key:?}, which was {value}");
            say(&plain(&line, LINE_MAX));
        }
    }
}

/// The homes that are the user's choice: of one that a process was seen to use, nobody knows what it is for.
fn chosen(context: &Context) -> Vec<Home> {
    let is_chosen = |home: &&Home| !context.discovered.as_ref().is_some_and(|discovered| discovered.has(home));
    context.homes.iter().filter(is_chosen).cloned().collect()
}

/// Those of them that are its agent's.
fn chosen_homes(context: &Context, installer: &dyn Installer) -> Vec<PathBuf> {
    installer.used(&chosen(context), false)
}

/// The homes of its agent that it is installed into.
fn used_homes(context: &Context, installer: &dyn Installer) -> anyhow::Result<Vec<PathBuf>> {
    let homes = chosen_homes(context, installer);
    let all = context.bridged_homes(installer);
    for home in all.iter().filter(|home| !homes.contains(home) && installer.installed(home) == Installed::No) {
        let left = format!("skipped {}: name it with `--home` or in the settings to include it", home.display());
        say(&plain(&left, LINE_MAX));
    }
    if homes.is_empty() {
        let agent = installer.adapter().agent();
        let named = if installer.adapter().is_by_reports() { "" } else { ", or name its home with `--home`" };
        return Err(anyhow!("{agent} has no home here: start it once{named}; nothing was done"));
    }
    Ok(homes)
}

/// Checks that the agent's settings can be read: its own commands could only guess at what they say, too.
fn check_settings(homes: &[PathBuf], installer: &dyn Installer) -> anyhow::Result<()> {
    let unreadable = |home: &&PathBuf| installer.installed(home) == Installed::Unreadable;
    match homes.iter().find(unreadable) {
        Some(home) => Err(anyhow!(
            "{} cannot be read: correct the mistake in it, and run this again; nothing was done",
            home.join("settings.json").display()
        )),
        None => Ok(()),
    }
}

/// Removes the bridge's files once no home refers to them: an agent may warn at each start about a missing marketplace.
/// Returns the homes that do.
fn clean_up(context: &Context, installer: &dyn Installer) -> anyhow::Result<Vec<PathBuf>> {
    let mut homes: Vec<_> = installer
        .homes()
        .all()
        .into_iter()
        .chain(installer.used(&context.all_homes(), false))
        .map(|home| PathBuf::from(&*canonical(&home)))
        .collect();
    homes.sort();
    homes.dedup();
    let is_others = |state| matches!(state, Installed::No | Installed::Elsewhere | Installed::Foreign);
    homes.retain(|home| !is_others(installer.installed(home)));
    if homes.is_empty() {
        installer.remove()?;
    }
    announce_bridge_change();
    Ok(homes)
}

/// The agent's program, if its commands are needed.
fn program(context: &Context, installer: &dyn Installer, homes: &[PathBuf]) -> anyhow::Result<Option<PathBuf>> {
    if homes.iter().any(|home| installer.file(home).is_some()) {
        return Ok(None);
    }
    let named = context.config.actions.program.as_deref();
    let named = named.and_then(|path| paths::expand(path, paths::user_home().as_deref()));
    runtime()?.block_on(installer.adapter().program(named.as_deref())).map(Some).map_err(|why| anyhow!(why))
}

/// The agent's commands to run, in order: each with its home and its arguments.
type Commands<'a> = Vec<(&'a Path, Vec<String>)>;

fn commands(homes: &[PathBuf], of: impl Fn(&Path) -> Vec<Vec<String>>) -> Commands<'_> {
    homes.iter().flat_map(|home| of(home).into_iter().map(move |command| (&**home, command))).collect()
}

/// What is to be done with the bridge of an agent.
struct Work<'a> {
    installer: &'a dyn Installer,
    /// What the user is told before.
    about: &'a str,
    /// The agent's program, which runs the commands.
    program: Option<PathBuf>,
    commands: Commands<'a>,
    /// What becomes of which files of ours, each with its home.
    files: (&'a str, Vec<(&'a Path, PathBuf)>),
}

impl<'a> Work<'a> {
    /// Shows it, and asks whether to do it.
    fn is_confirmed(&self, yes: bool) -> bool {
        let (installer, (what, files)) = (self.installer, &self.files);
        let mut err = io::stderr();
        let mut print = |line: &str| {
            let _ = writeln!(err, "{}", on_stderr(line)); // if stderr is closed, nobody is listening
        };
        print(self.about);
        let mut homes: Vec<_> = self.commands.iter().map(|(home, _)| *home).collect();
        homes.extend(files.iter().map(|(home, _)| *home));
        homes.dedup();
        for home in homes {
            for remark in installer.remarks(home) {
                print(&format!("- {}: {}", plain(&home.display().to_string(), LINE_MAX), plain(&remark, LINE_MAX)));
            }
        }
        match &self.program {
            Some(program) => {
                print("\nThese commands will be run:");
                for (home, command) in &self.commands {
                    let line = command_line(installer, home, program, command);
                    print(&format!("  {}", plain(&line, LINE_MAX)));
                }
            }
            None => {
                print(&format!("\nThis file will be {what}:"));
                for (_, file) in files {
                    print(&format!("  {}", plain(&file.display().to_string(), LINE_MAX)));
                }
            }
        }
        if yes {
            return true;
        }
        match confirm(if self.program.is_some() { "Run these commands?" } else { "Do it?" }) {
            Some(true) => true,
            Some(false) => {
                say("nothing was done");
                false
            }
            None => {
                say(&format!("{CANNOT_ASK}, so nothing was done: add `--yes` if you agree"));
                false
            }
        }
    }

    /// Runs the commands, and does this with the files. Returns the homes in which something failed.
    fn carry_out(&self, to_file: impl Fn(&Path) -> anyhow::Result<()>) -> anyhow::Result<Vec<&'a Path>> {
        let installer = self.installer;
        let mut failed: Vec<&Path> = Vec::new();
        for (home, _) in &self.files.1 {
            if let Err(error) = to_file(home) {
                say(&plain(&format!("{error:#}"), LINE_MAX));
                failed.push(home);
            }
        }
        let Some(program) = &self.program else { return Ok(failed) };
        let runtime = runtime()?;
        for (home, command) in &self.commands {
            // A home's later commands depend on its earlier ones.
            if failed.contains(home) {
                continue;
            }
            match runtime.block_on(bridge::run(installer.adapter(), program, home, command)) {
                Ok(warnings) => {
                    for warning in warnings {
                        say(&format!("{} warns: {}", installer.adapter().agent(), plain(&warning, LINE_MAX)));
                    }
                }
                Err(why) => match installer.tidies(command) {
                    Some(entry) => say(&format!(
                        "{}: this {} cannot remove {entry} from its settings.json; it has no effect there",
                        home.display(),
                        installer.adapter().agent()
                    )),
                    None => {
                        say(&format!("{}: {why}", home.display()));
                        failed.push(home);
                    }
                },
            }
        }
        Ok(failed)
    }
}

fn status(context: &Context, installers: &[Box<dyn Installer>], as_json: bool) -> anyhow::Result<ExitCode> {
    let Picture { mut sessions, now, are_bridges_known: are_known, .. } = observe(context, Effort::Ask, None)?;
    let is_reported = |session: &Session| session.observed.hook_report.is_some();
    let is_in_terminal = |session: &Session| session.observed.about.kind == Kind::Terminal || is_reported(session);
    sessions.retain(|session| is_in_terminal(session) && session.observed.owner.live().is_some());
    let sessions_of = |installer: &dyn Installer, home: &Path| -> Vec<Terminal<'_>> {
        let since = installer.installed_at(home);
        let is_its = |session: &&Session| match installer.adapter().is_by_reports() {
            true => is_reported(session) && session.observed.agent == installer.adapter().agent(),
            false => !is_reported(session) && context.home_of(session).is_some_and(|its| its.folder() == home),
        };
        sessions
            .iter()
            .filter(is_its)
            .map(|session| {
                let name = session.row(now, &context.config.limits).0.label.cut(40);
                terminal(session, since, context.config.actions.bridge_untried, name)
            })
            .collect()
    };
    let homes = installers.iter().flat_map(|installer| {
        let homes = context.bridged_homes(&**installer).into_iter();
        homes.map(move |home| (&**installer, home))
    });
    let rows: Vec<_> = homes
        .map(|(installer, home)| Row {
            installed: installer.installed(&home),
            current: installer.is_current(),
            version: env!("CARGO_PKG_VERSION"),
            sessions: sessions_of(installer, &home),
            agent: installer.adapter().name(),
            home,
            installer,
        })
        .collect();
    let mut out = io::stdout().lock();
    if as_json {
        json::write_pretty(&mut out, &rows)?;
        writeln!(out)?;
        return Ok(ExitCode::SUCCESS);
    }
    for row in &rows {
        writeln!(out, "{}", on_stdout(&row.words()))?;
        for session in &row.sessions {
            let state = session.words(row, are_known);
            let line = format!("  {}  {}: {state}", short_id(session.id), session.name);
            writeln!(out, "{}", on_stdout(&line))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

impl Row<'_> {
    fn words(&self) -> String {
        let agent = self.installer.adapter().agent();
        let state = match self.installed {
            Installed::No => "not installed; `pilotlight bridge install` installs it".into(),
            Installed::Yes if self.current => "on".into(),
            Installed::Yes if self.installer.is_changed() => {
                let runs = if self.installer.adapter() == FIRST { ", so it does not run" } else { "" };
                format!("changed since it was installed{runs}; `pilotlight bridge install` puts it back")
            }
            Installed::Yes => "on, in another version; `pilotlight bridge install` updates it".into(),
            Installed::SwitchedOff => format!("switched off in {agent}"),
            Installed::Forbidden => "not started: a policy of your organisation forbids it".into(),
            Installed::Unreadable => {
                format!("unknown: {agent}'s settings.json cannot be read; correct the mistake in it")
            }
            Installed::Foreign => {
                format!("not installed: {agent} has another marketplace of the name \"pilotlight\" there")
            }
            Installed::Elsewhere => {
                "installed from another folder; `pilotlight bridge install` replaces it with this one".into()
            }
        };
        let home = plain(&self.home.display().to_string(), LINE_MAX);
        if self.installer.adapter() == FIRST {
            format!("{home}: {state}")
        } else {
            format!("{home} ({agent}): {state}")
        }
    }
}

/// `since`: when the bridge was installed in its home. `acts_untried`: also in releases that it was not tried with.
fn terminal(session: &Session, since: Option<Time>, acts_untried: bool, name: String) -> Terminal<'_> {
    let bridge = session.control.bridge;
    let started = match session.observed.owner {
        Owner::Alive { started, .. } => started,
        _ => None,
    };
    Terminal {
        id: &session.id,
        name,
        bridge: bridge.map(Bridge::name),
        copilot: session.control.release.as_deref(),
        watches: bridge == Some(Bridge::Watches),
        old: session.control.old_bridge,
        is_older: since.zip(started).map(|(since, started)| started < since),
        untried: session.observed.untried.as_deref().filter(|_| !acts_untried),
    }
}

impl Terminal<'_> {
    /// `are_known`: whether the bridges were asked, by the tray or by us.
    fn words(&self, row: &Row<'_>, are_known: bool) -> String {
        let installed = row.installed;
        let words = match (self.bridge, self.copilot) {
            (None, _) if installed == Installed::No => {
                "not covered: run `pilotlight bridge install`, then restart it".into()
            }
            (None, _) if installed != Installed::Yes => "not covered".into(),
            (None, _) if row.installer.adapter() != FIRST && let Some(release) = self.untried => {
                format!("not covered: the bridge is untested with {release}")
            }
            (None, _) if let Some(is_older) = self.is_older => match is_older {
                true => "not covered: it started before the bridge was installed; enter /reload-plugins in it, or restart it".into(),
                false => "covered; you can answer what it asks".into(),
            },
            (None, _) if row.installer.adapter() != FIRST => "covered, if it started after the bridge was installed".into(),
            (None, _) if are_known => {
                "not covered yet: a bridge connects some seconds after a session starts; if it does not, restart the session".into()
            }
            (None, _) => "unknown: another command is using the bridges; try again when it has ended".into(),
            (_, Some(release)) if self.watches => format!("untested with {release}: it only watches"),
            (Some("elevated"), _) => "covered; you can answer its permission requests".into(),
            (Some(_), _) => "covered; to approve from here, run `pilotlight let-answer NAME`".into(),
        };
        if self.old { format!("{words} ({OTHER_VERSION})") } else { words }
    }
}
