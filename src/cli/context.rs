//! What every command starts from: Copilot's homes, the settings, and what the user has seen; and the engine on them.

use super::bridges::installed_bridges;
use super::observe::{Effort, observe};
use super::report::{LINE_MAX, say};
use crate::doctor::{CheckContext, HomeOrigin, HomeReason};
use anyhow::Context as _;
use clap::ColorChoice;
use pilotlight_agents::adapter::{ADAPTERS, Adapter};
use pilotlight_agents::bridge::Installer;
use pilotlight_agents::home::{Home, report_homes, reported_sessions};
use pilotlight_agents::homes::{self, Found, HomeSources};
use pilotlight_agents::runners::DISCOVER;
use pilotlight_agents::scanner::homes_in_use;
use pilotlight_core::agent::Agent;
use pilotlight_core::fleet::Session;
use pilotlight_core::order::Order;
use pilotlight_core::session::Observed;
use pilotlight_core::text::{any_of, listed, plain};
use pilotlight_core::time::Time;
use pilotlight_engine::config::{self, Config, HostSetting, Problem, last_valid};
use pilotlight_engine::discovered::{self, Discovered};
use pilotlight_engine::hosts::Purpose;
use pilotlight_engine::last_seen::{self, LastSeen};
use pilotlight_engine::ledger::{Ledger, Page};
use pilotlight_engine::past::Depth;
use pilotlight_engine::{Engine, SettingsSource, View, exit_note};
use pilotlight_system::clock::Clock;
use pilotlight_system::descriptors;
use pilotlight_system::mounts::{Mounts, SilentHome};
use pilotlight_system::paths;
use pilotlight_system::signals::Signals;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::{io, iter};

/// Reads the config at `path`. What cannot be read is as it was last valid.
fn load(path: &Path, state_folder: Option<&Path>) -> (Config, Vec<Problem>) {
    let saved = state_folder.and_then(|state| last_valid::load(&state.join(last_valid::FILE), path));
    config::load(path, saved.as_ref())
}

/// What every command gets.
pub(super) struct Context {
    /// The homes given with `--home`.
    pub(super) named_homes: Vec<PathBuf>,
    /// The homes that can be read.
    pub(super) homes: Vec<Home>,
    /// The names of the agents that the command is limited to; none: all.
    pub(super) only: Vec<Box<str>>,
    /// The names of the machines that the command is limited to; none: all, and this one.
    pub(super) only_hosts: Vec<String>,
    /// Those besides: a home whose file system does not answer is taken up when it does.
    pub(super) unread: Vec<Home>,
    /// The homes whose file system does not answer: a command that touched one would never end.
    pub(super) silent: Vec<SilentHome>,
    pub(super) config: Config,
    pub(super) config_path: Option<PathBuf>,
    pub(super) seen: LastSeen,
    /// The homes that nobody named, those of [`homes`](Self::homes) among them. `None`: they are not wanted.
    pub(super) discovered: Option<Discovered>,
    pub(super) problems: Vec<Problem>,
    /// The demo, with scripted sessions, if this is one.
    pub(super) demo: Option<World>,
    pub(super) color: ColorChoice,
    /// The ticket, if the tray opened a window for this command at a click; empty if one in such a window started it.
    pub(super) window: Option<String>,
}

impl Context {
    pub(super) fn new(homes: &[PathBuf]) -> Self {
        let env = |name| std::env::var_os(name).filter(|value| !value.is_empty());
        let project = paths::project();
        let config_path = paths::config_file(env("PILOTLIGHT_CONFIG"), project.as_ref());
        let state = project.as_ref().map(paths::state_folder);
        let (config, problems) = config_path.as_deref().map(|path| load(path, state.as_deref())).unwrap_or_default();
        let named_homes = homes.to_vec();
        let user_home = paths::user_home();
        let mut found = homes::find(&wanted(&named_homes, &config, &[], user_home.as_deref()));
        let is_sought = named_homes.is_empty() && config.homes.discover && may_discover();
        let discovered = is_sought.then(|| discover(&found.homes, &config, state.as_deref()));
        if let Some(discovered) = &discovered {
            found.add(&discovered.homes(), &config.agents.off);
        }
        let Found { homes, unread, silent, .. } = found;
        let seen = LastSeen::load(state.map(|state| state.join(last_seen::FILE)));
        Self {
            named_homes,
            homes,
            only: Vec::new(),
            only_hosts: Vec::new(),
            unread,
            silent,
            config,
            config_path,
            seen,
            discovered,
            problems,
            demo: None,
            color: ColorChoice::Auto,
            window: None,
        }
    }

    /// Adds to an order the home that its session was found in. The tray that receives it may watch a copy of that
    /// home, with a session of the same id.
    pub(super) fn with_home(&self, order: Order) -> Order {
        match self.readable().iter().find(|home| home.has(&order.id)) {
            Some(home) => order.in_home(&paths::canonical(home.folder())),
            None => order,
        }
    }

    /// What `doctor` and `diagnostics` examine.
    pub(super) fn check_context(&self) -> CheckContext {
        let project = paths::project();
        let (sessions, followed) = self.sessions_or_say();
        CheckContext {
            homes: self.homes.clone(),
            origins: iter::zip(&self.homes, followed).map(|(home, since)| self.origin(home, since)).collect(),
            are_discovered_full: self.discovered.as_ref().is_some_and(|it| it.all().len() >= discovered::MOST),
            silent: self.silent.clone(),
            config: self.config.clone(),
            config_path: self.config_path.clone(),
            problems: self.problems.clone(),
            sessions,
            state_folder: project.as_ref().map(paths::state_folder),
            runtime_folders: project.as_ref().map(paths::runtime_folders).unwrap_or_default(),
            user_home: paths::user_home(),
            is_home_optional: self.is_home_optional(),
        }
    }

    /// The sessions, and since when the tray follows each home. None, if they cannot be read, which is said.
    fn sessions_or_say(&self) -> (Vec<Session>, Vec<Option<Time>>) {
        match observe(self, Effort::Look, Some(Depth::Quick)) {
            Ok(picture) => {
                let since = self.homes.iter().map(|home| picture.followed_since(home)).collect();
                (picture.sessions, since)
            }
            Err(error) => {
                say(&format!("{error:#}"));
                (Vec::new(), vec![None; self.homes.len()])
            }
        }
    }

    /// Why a home is followed, and since when a tray follows it.
    fn origin(&self, home: &Home, followed: Option<Time>) -> HomeOrigin {
        let user_home = paths::user_home();
        let is_here = |path: &Path| {
            let path = paths::expand(path, user_home.as_deref());
            path.and_then(|path| paths::absolute(&path)).as_deref() == Some(home.folder())
        };
        let found = self.discovered.iter().flat_map(Discovered::all).find(|known| known.home == *home);
        let variable = home.adapter().profile().home_variable;
        let why = if !self.named_homes.is_empty() {
            HomeReason::Named("--home".into())
        } else if let Some(found) = found {
            HomeReason::Discovered { since: found.since, pid: found.pid }
        } else if self.config.homes.also.iter().any(|path| is_here(path)) {
            HomeReason::Named("the settings".into())
        } else if std::env::var_os(variable).is_some_and(|value| is_here(Path::new(&value))) {
            HomeReason::Named(variable.into())
        } else {
            HomeReason::Default
        };
        HomeOrigin { why, followed }
    }

    pub(super) fn engine(&self) -> Engine {
        let reports = self.reports();
        let followed = [self.followed(), reports.clone()].concat();
        let mut engine = Engine::new(&followed, self.config.clone(), self.seen.clone());
        engine.note_bridges(if self.demo.is_none() { installed_bridges() } else { Vec::new() });
        if let Some(path) = self.config_path.clone() {
            let named = self.named_homes.clone();
            let may_grow = named.is_empty() && self.demo.is_none();
            let only = self.only.clone();
            let is_elsewhere = !self.only_hosts.is_empty();
            let is_wanted = move |home: &Home| !is_elsewhere && (only.is_empty() || is_among(&only, home.adapter()));
            let homes = move |config: &Config, discovered: &[Home]| {
                let user_home = paths::user_home();
                let mut homes = homes::find_untouched(&wanted(&named, config, discovered, user_home.as_deref()));
                homes.homes.retain(&is_wanted);
                homes.awaited.retain(&is_wanted);
                homes.homes.extend(reports.iter().cloned());
                homes
            };
            let (problems, homes) = (self.problems.clone(), Box::new(homes));
            let state = self.seen.path().and_then(Path::parent).filter(|_| self.demo.is_none());
            let saved = state.map(|state| state.join(last_valid::FILE));
            engine.follow_settings(SettingsSource { path, problems, homes, saved, may_grow });
            // Whoever switches it on while the program runs has them looked for, too.
            if may_grow && may_discover() {
                let state = self.seen.path().and_then(Path::parent).map(|state| state.join(discovered::FILE));
                engine.discover_homes(self.discovered.clone().unwrap_or_else(|| Discovered::load(state)));
            }
        }
        engine
    }

    /// The machines whose sessions are shown as well. None in a demo.
    pub(super) fn hosts(&self) -> impl Iterator<Item = &HostSetting> {
        let hosts = self.config.hosts.iter().filter(|_| self.demo.is_none());
        hosts.filter(|host| self.only_hosts.is_empty() || self.only_hosts.contains(&host.name))
    }

    /// An engine that shows their sessions as well.
    pub(super) fn engine_with_hosts(&self, purpose: Purpose) -> Engine {
        let mut engine = self.engine();
        if self.demo.is_none() {
            engine.show_hosts(self.only_hosts.clone(), self.only.clone(), purpose);
        }
        engine
    }

    /// Whether sessions of this agent are shown.
    pub(super) fn is_wanted_agent(&self, agent: &Agent) -> bool {
        self.only.is_empty() || self.only.iter().any(|name| **name == *agent.name())
    }

    /// The homes that are followed.
    pub(super) fn followed(&self) -> Vec<Home> {
        self.homes.iter().chain(&self.unread).cloned().collect()
    }

    /// Everything that can be read: the homes, and what hooks report.
    pub(super) fn readable(&self) -> Vec<Home> {
        [self.homes.clone(), self.reports()].concat()
    }

    /// The folders of what hooks report, which is in no home. In a demo that is its own.
    fn reports(&self) -> Vec<Home> {
        if !self.only_hosts.is_empty() {
            return Vec::new();
        }
        if self.only.is_empty() {
            return report_homes();
        }
        report_homes().into_iter().map(|home| home.limited_to(&self.only)).collect()
    }

    /// Whether it is limited to agents without homes: all that is known of those are reports.
    fn wants_reports_alone(&self) -> bool {
        !self.only_hosts.is_empty()
            || !self.only.is_empty() && !ADAPTERS.iter().any(|adapter| is_among(&self.only, *adapter))
    }

    /// Whether some hook reports a session that is not over.
    fn has_reports(&self) -> bool {
        let now = Clock::start().now().wall;
        self.reports().iter().any(|reports| reported_sessions(reports, now) > 0)
    }

    /// What our processes know of a session. `None` if its home is not known.
    pub(super) fn page_of(&self, session: &Session) -> Option<Page> {
        let home = self.home_of(session)?;
        Some(Ledger::new(self.seen.path().and_then(Path::parent)).page(&home, &session.id))
    }

    /// The homes in which an agent may have a bridge.
    pub(super) fn bridged_homes(&self, installer: &dyn Installer) -> Vec<PathBuf> {
        installer.used(&self.homes, false)
    }

    pub(super) fn home_of(&self, session: &Session) -> Option<Home> {
        let Observed { agent, hook_report, .. } = &session.observed;
        let is_its = |home: &Home| if hook_report.is_some() { home.is_by_reports() } else { home.agent() == *agent };
        self.readable().into_iter().find(|home| is_its(home) && home.has(&session.id))
    }

    /// Reports, once, which sessions ended together with the last Pilotlight.
    pub(super) fn report_ended(&self) {
        let project = paths::project();
        let ended =
            project.as_ref().map(|project| exit_note::take_all(&paths::state_folder(project))).unwrap_or_default();
        ended.iter().for_each(|ended| say(&ended.words()));
    }

    /// Reports mistakes in the config.
    pub(super) fn report_problems(&self) {
        for problem in &self.problems {
            say(&problem.to_string());
        }
    }

    /// Whether there is nothing to tell of: no home can be read at all, and no hook reports a session.
    pub(super) fn has_no_home(&self) -> bool {
        !self.wants_reports_alone()
            && self.silent.is_empty()
            && self.unreadable_homes().len() >= self.homes.len()
            && !self.has_reports()
    }

    /// A message for each home that cannot be read, but for those on a file system that may have stopped answering
    /// since the start.
    pub(super) fn unreadable_local_homes(&self) -> Vec<String> {
        let mounts = Mounts::read();
        self.problems_of(self.homes.iter().filter(|home| mounts.of(home.folder()).is_none()))
    }

    /// A message for each home that cannot be read.
    pub(super) fn unreadable_homes(&self) -> Vec<String> {
        self.problems_of(self.homes.iter())
    }

    /// Whether what is followed is whatever home there is, since none was named.
    fn follows_any(&self) -> bool {
        self.named_homes.is_empty() && self.only.is_empty() && self.homes.len() == 1
    }

    /// Whether a home that is absent is no trouble: none was named, and other machines are watched.
    fn is_home_optional(&self) -> bool {
        self.follows_any() && self.hosts().next().is_some()
    }

    fn problems_of<'a>(&self, homes: impl Iterator<Item = &'a Home>) -> Vec<String> {
        if self.wants_reports_alone() {
            return Vec::new();
        }
        if self.homes.is_empty() && self.silent.is_empty() {
            return vec![no_home(&self.config)];
        }
        // Where no agent has a home yet, any of them may make the first one.
        let is_any = self.follows_any();
        let is_missed = |home: &&Home| !(self.is_home_optional() && home.is_absent());
        let problems = homes.filter(is_missed).filter_map(|home| home_problem(home, is_any, &self.config.agents.off));
        let silent = self.silent.iter().map(SilentHome::words);
        problems.chain(silent).map(|line| plain(&line, LINE_MAX).into()).collect()
    }
}

impl Context {
    /// The names of further programs that count as agents, and may not answer for the user. The players of a demo start
    /// nothing, and are the same program as its commands.
    pub(super) fn agent_names(&self) -> &[String] {
        if self.demo.is_some() { &[] } else { &self.config.owners.names }
    }

    /// All homes of which anything is known: also those that `--home` leaves out.
    pub(super) fn all_homes(&self) -> Vec<Home> {
        let user_home = paths::user_home();
        let others = homes::find(&wanted(&[], &self.config, &[], user_home.as_deref())).followed();
        self.homes.iter().cloned().chain(others).collect()
    }
}

/// What leads to homes: those given with `--home`, else those from the environment and the settings, and these that nobody named.
fn wanted<'a>(
    named: &'a [PathBuf],
    config: &'a Config,
    discovered: &'a [Home],
    user_home: Option<&'a Path>,
) -> HomeSources<'a> {
    HomeSources { named, added: &config.homes.also, discovered, off: &config.agents.off, user_home }
}

/// Whether homes may be discovered by this process, whatever the settings say.
fn may_discover() -> bool {
    std::env::var_os(DISCOVER).is_none_or(|value| value != "false")
}

/// The homes that nobody named: those that a tray remembers, and those that processes use now. `named` are the others.
fn discover(named: &[Home], config: &Config, state: Option<&Path>) -> Discovered {
    let mut discovered = Discovered::load(state.map(|state| state.join(discovered::FILE)));
    let named: Vec<_> = named.iter().collect();
    let in_use = homes_in_use(&named, &homes::sought(&config.agents.off));
    discovered.look(&in_use, &named, Clock::start().now().wall);
    discovered
}

/// Whether one of these names is that of an agent with homes.
pub(super) fn is_among(names: &[Box<str>], adapter: &'static dyn Adapter) -> bool {
    !adapter.profile().home.is_empty() && names.iter().any(|name| **name == *adapter.profile().names.name)
}

/// Why there is no home at all.
fn no_home(config: &Config) -> String {
    if !config.agents.off.is_empty() {
        return format!(
            "no home is left to watch: `[agents]` in the settings switches {} off",
            listed(&config.agents.off)
        );
    }
    let variables = ADAPTERS.iter().map(|adapter| adapter.profile().home_variable);
    let variables: Vec<_> = variables.filter(|variable| !variable.is_empty()).collect();
    format!("cannot find the home of any agent: name one with --home DIR or {}", any_of(&variables))
}

/// Why a home cannot be read. `is_any`: it stands for those of all agents but these, which are switched off.
fn home_problem(home: &Home, is_any: bool, off: &[&str]) -> Option<String> {
    let (folder, profile) = (home.folder(), home.adapter().profile());
    let (shown, word) = (folder.display(), profile.names.word);
    let error = std::fs::read_dir(home.root()).err()?;
    let sessions = home.root().file_name().unwrap_or_default();
    Some(match (error.kind(), folder.is_dir()) {
        // The folder above the agent's.
        (io::ErrorKind::NotFound, true) if let Some(meant) = homes::below(folder) => {
            format!("no {} in {shown}: did you mean {}?", sessions.display(), meant.display())
        }
        // The folder in it.
        (io::ErrorKind::NotFound, true) if folder.ends_with(sessions) => {
            let above = folder.parent().unwrap_or(folder);
            format!("{shown} holds the sessions of a home: did you mean {}?", above.display())
        }
        // No session was ever started in this home.
        (io::ErrorKind::NotFound, true) => return None,
        (io::ErrorKind::NotFound, false) if is_any && ADAPTERS.len() > 1 => {
            let profiles =
                ADAPTERS.iter().map(|adapter| adapter.profile()).filter(|profile| !off.contains(&profile.names.name));
            let programs = profiles.map(|profile| profile.program).filter(|program| !program.is_empty());
            let programs: Vec<_> = programs.map(|program| format!("`{program}`")).collect();
            let start = any_of(&programs);
            let mut problem = format!(
                "there is no {word} home at {shown}, and none of another agent: start {start} once, or name one with --home DIR"
            );
            if !off.is_empty() {
                problem += &format!(" (`[agents]` in the settings switches {} off)", listed(off));
            }
            problem
        }
        (io::ErrorKind::NotFound, false) => format!(
            "there is no {word} home at {shown}: start `{}` once, or name another with --home DIR or {}",
            profile.program, profile.home_variable
        ),
        _ => format!("the {word} home {shown} cannot be read: {error}"),
    })
}

/// The hint that is shown if there is no Copilot home.
pub(super) fn demo_hint() -> String {
    // Cargo sets this variable for programs that it runs.
    let command = if std::env::var_os("CARGO").is_some() { "cargo run --release -- demo" } else { "pilotlight demo" };
    format!("To see what this looks like without an agent: {command}")
}

/// Runs the engine with this view, until the view or a signal ends it.
pub(super) fn watch_until_stopped(engine: Engine, view: &mut dyn View) -> anyhow::Result<()> {
    runtime()?.block_on(async {
        engine.run(Signals::new()?, view).await;
        Ok(())
    })
}

/// A single-threaded runtime for commands that wait for events.
pub(super) fn runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    let build = || {
        // Where descriptors run out midway, tokio panics.
        descriptors::are_left(DESCRIPTORS_OF_LOOP)?;
        tokio::runtime::Builder::new_current_thread().enable_all().build()
    };
    build().context("the system refuses the resources for an event loop")
}

/// How many file descriptors an event loop needs at its start: six on Linux, and some to spare.
const DESCRIPTORS_OF_LOOP: usize = 8;

/// A demo that runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct World {
    /// The stage's folder.
    pub folder: PathBuf,
    /// How many times the usual pace.
    pub speed: u32,
}

impl World {
    /// The arguments that come before those of a command, to run it inside of the demo.
    pub(crate) fn inside(&self) -> Vec<OsString> {
        let speed = self.speed.to_string();
        let mut words: Vec<OsString> =
            ["demo", "--part", "command", "--speed", &speed, "--stage"].map(Into::into).into();
        words.extend([self.folder.clone().into(), "--".into()]);
        words
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn the_folder_above_a_home_names_the_home_that_was_meant() {
        let user = tempfile::tempdir().unwrap();
        let home = user.path().join(".copilot");
        fs::create_dir(&home).unwrap();
        let problem_at = |home: &Path| home_problem(&Home::at(home), false, &[]);
        assert_eq!(problem_at(user.path()), None, "a home in which no session was started yet");
        fs::create_dir(Home::at(&home).root()).unwrap();
        let problem = format!("no session-state in {}: did you mean {}?", user.path().display(), home.display());
        assert_eq!((problem_at(user.path()), problem_at(&home)), (Some(problem), None));
        let sessions = Home::at(&home).root().to_owned();
        let problem = format!("{} holds the sessions of a home: did you mean {}?", sessions.display(), home.display());
        assert_eq!(problem_at(&sessions), Some(problem));
    }
}
