//! The bridges to sessions in terminals: whether their agents find what their settings start, and where they run.

use super::check::CheckContext;
use super::finding::{Finding, Level};
use super::fix::Fix;
use super::program::is_used;
use pilotlight_agents::adapter::FIRST;
use pilotlight_agents::bridge::{Installed, Installer};
use pilotlight_agents::claude_code::bridge::files::{Files as HookFiles, HookProgram};
use pilotlight_agents::copilot::bridge::files::Files;
use pilotlight_agents::opencode::bridge::files::{Files as PluginFiles, PluginFile};
#[cfg(unix)]
use pilotlight_agents::{claude_code, copilot, opencode};
use pilotlight_core::fleet::{Kind, Session};
use pilotlight_core::owner::Owner;
use pilotlight_core::session::{Allows, Observed};
use pilotlight_core::text::counted;
use pilotlight_system::paths;
#[cfg(unix)]
use pilotlight_system::paths::Folders;
#[cfg(unix)]
use pilotlight_system::runtime::{Runtime, is_listened_to, is_tray_of};
use std::path::Path;
#[cfg(unix)]
use std::path::PathBuf;

const CHECK: &str = "bridge";

/// The bridges on disk, and in the agents' settings.
pub(super) fn bridge(context: &CheckContext) -> Vec<Finding> {
    let Some(project) = paths::project() else { return Vec::new() };
    let mut findings = Vec::new();
    if is_used(context) {
        let files = Files::new(&project);
        findings.extend(of_agent(context, &files, |_| of_extension(&files)));
    }
    let hook = HookFiles::new(&project);
    if !hook.used(&context.homes, false).is_empty() {
        findings.extend(of_agent(context, &hook, |_| of_hook(&hook)));
    }
    let plugin = PluginFiles::new(&project);
    if !plugin.used(&context.homes, false).is_empty() {
        findings.extend(of_agent(context, &plugin, |home| of_plugin(&plugin, home)));
    }
    #[cfg(unix)]
    findings.extend(unheard(context, &project));
    findings
}

/// The bridges that the running tray does not listen for, although they are installed: their socket is gone.
#[cfg(unix)]
fn unheard(context: &CheckContext, project: &Folders) -> Vec<Finding> {
    let note = |folder: &&PathBuf| Runtime::open(folder).ok()??.note();
    let is_trays = |folder: &&PathBuf| note(folder).is_some_and(|note| is_tray_of(folder, note.process));
    let Some(folder) = context.runtime_folders.iter().find(is_trays) else { return Vec::new() };
    let bridges: [(Box<dyn Installer>, &str); 3] = [
        (Box::new(Files::new(project)), copilot::bridge::socket::SOCKET),
        (Box::new(HookFiles::new(project)), claude_code::bridge::SOCKET),
        (Box::new(PluginFiles::new(project)), opencode::bridge::SOCKET),
    ];
    let is_unheard = |(installer, socket): &(Box<dyn Installer>, &str)| {
        installer.is_installed() && !is_listened_to(&folder.join(socket))
    };
    let unheard = bridges.into_iter().filter(is_unheard).map(|(installer, socket)| {
        let (agent, path) = (installer.adapter().agent(), folder.join(socket));
        let text = format!("{agent} cannot reach the running tray: {} is gone", path.display());
        Finding::problem(CHECK, text, "quit the tray from its menu, and start it again")
            .redacted("the tray runs, and a socket of a bridge is gone")
    });
    unheard.collect()
}

/// What was found: how bad it is, what to tell the user, the same for strangers, and what to do about it.
type Found = (Level, String, &'static str, String);

/// The bridge of one agent. `of_files`: what our own files say of a bridge that the agent is set to start.
fn of_agent(context: &CheckContext, installer: &dyn Installer, of_files: impl Fn(&Path) -> Found) -> Vec<Finding> {
    let homes = installer.used(&context.homes, false);
    // By the number that the home has in the check of homes, if it is among them.
    let name = |home: &Path| {
        let at = context.homes.iter().position(|other| other.folder() == home);
        at.map_or_else(|| "a home".to_owned(), |at| format!("home {}", at + 1))
    };
    let of_homes = homes.iter().flat_map(|home| of_home(installer, &name(home), home, &of_files));
    let mut findings: Vec<_> = of_homes.collect();
    if findings.is_empty() {
        let what = match installer.adapter() == FIRST {
            true => "sessions in plain terminals are watched".into(),
            false if installer.adapter().is_by_reports() => {
                format!("{} is shown only if its own hook reports it", installer.adapter().agent())
            }
            false => format!("what {} asks is shown", installer.adapter().agent()),
        };
        let text = format!("not installed: {what}, and `pilotlight bridge install` lets you answer from Pilotlight");
        findings.push(Finding::ok(CHECK, text).redacted("the bridge is not installed"));
    }
    findings
}

/// The bridge in one of an agent's homes; nothing if it is not installed there.
fn of_home(installer: &dyn Installer, name: &str, home: &Path, of_files: impl Fn(&Path) -> Found) -> Vec<Finding> {
    let agent = installer.adapter().agent();
    let state = installer.installed(home);
    let (level, text, redacted, remedy) = match state {
        Installed::No => return Vec::new(),
        Installed::Yes => of_files(home),
        Installed::Forbidden => (
            Level::Warning,
            format!("a policy of your organisation keeps {agent} from starting the bridge"),
            "a policy forbids the bridge",
            format!("ask whoever made {}, or run `pilotlight bridge remove`", installer.policy().display()),
        ),
        Installed::SwitchedOff => (
            Level::Warning,
            format!("the bridge is switched off in {agent}"),
            "the bridge is switched off in its agent",
            format!("{}; `pilotlight bridge remove` removes it", installer.to_switch_on()),
        ),
        Installed::Unreadable => (
            Level::Warning,
            format!("{agent}'s settings.json cannot be read: whether the bridge is installed is unknown"),
            "the agent's settings cannot be read",
            "correct the mistake in that file".into(),
        ),
        Installed::Elsewhere => (
            Level::Warning,
            format!("a bridge is installed there from another folder than {}", installer.folder().display()),
            "the bridge is installed from another folder",
            "`pilotlight bridge install` puts this one in its place".into(),
        ),
        Installed::Foreign => (
            Level::Warning,
            format!("{agent} has another marketplace of the name \"pilotlight\" there: the bridge cannot be installed"),
            "another marketplace has the bridge's name",
            "`pilotlight bridge install` says what it is, and how to remove it".into(),
        ),
    };
    let is_well = level == Level::Ok;
    let others = if state == Installed::Yes { installer.others(home) } else { Vec::new() };
    let finding = Finding {
        check: CHECK,
        level,
        said: format!("{}: {text}", home.display()),
        remedy: (!is_well).then_some(remedy),
        redacted: format!("{name}: {redacted}"),
        fix: (state == Installed::Yes && !is_well).then(|| Fix::Bridge(installer.adapter())),
    };
    let another = |other: String| {
        let text = format!("{}: another program also answers: {other}", home.display());
        let remedy = "the first answer counts, its or yours: remove it there if you do not want it";
        Finding::warning(CHECK, text, remedy).redacted(format!("{name}: another program also answers"))
    };
    [finding].into_iter().chain(others.into_iter().map(another)).collect()
}

/// What our own files say of a bridge that Copilot is set to start. The first trouble hides the others.
fn of_extension(files: &Files) -> Found {
    let folder = files.marketplace.display();
    if !files.extension().is_file() {
        return (
            Level::Problem,
            format!("Copilot looks for the bridge in {folder}, which is gone"),
            "the bridge's folder is gone",
            "`pilotlight bridge install` puts it back; `pilotlight bridge remove` takes it out of Copilot's settings, which otherwise complains at each start".into(),
        );
    }
    if files.key().is_none() {
        return (
            Level::Problem,
            "the bridge is installed, but cannot connect, because its key is gone".into(),
            "the bridge's key is gone",
            "run `pilotlight bridge install`, and restart your sessions".into(),
        );
    }
    if files.is_changed() {
        return (
            Level::Problem,
            format!("the bridge in {folder} was changed since it was installed: it does not run"),
            "the bridge was changed since it was installed",
            "if that was not you, find out who did; `pilotlight bridge install` puts it back".into(),
        );
    }
    if !files.is_current() {
        return of_another_version("the bridge".into());
    }
    if let Some(program) = files.other_program() {
        return (
            Level::Warning,
            format!("the bridge accepts {} as Pilotlight, not this program", program.display()),
            "the bridge accepts another program as Pilotlight",
            "if that is not the tray that you run, run `pilotlight bridge install` with the right program".into(),
        );
    }
    (Level::Ok, "sessions in plain terminals have the bridge".into(), "the bridge is on", String::new())
}

/// `bridge`: what is of another version.
fn of_another_version(bridge: String) -> Found {
    (
        Level::Warning,
        bridge + " comes from another version of Pilotlight",
        "the bridge comes from another version of Pilotlight",
        "run `pilotlight bridge install`, and restart your sessions".into(),
    )
}

/// What is said where an agent starts this program instead.
fn of_another_program(agent: &str, program: &Path) -> Found {
    (
        Level::Warning,
        format!("{agent} starts {}, not this program", program.display()),
        "the bridge starts another program",
        "if that is not the Pilotlight whose tray you run, run `pilotlight bridge install` with the right one".into(),
    )
}

/// What our own files say of a hook that Claude Code is set to start.
fn of_hook(files: &HookFiles) -> Found {
    let folder = files.marketplace.display();
    match files.hook_program() {
        HookProgram::Current => {
            (Level::Ok, "Claude Code passes its requests to Pilotlight".into(), "the bridge is on", String::new())
        }
        HookProgram::Outdated => of_another_version(format!("the bridge in {folder}")),
        HookProgram::Other(program) => of_another_program("Claude Code", &program),
        HookProgram::Missing(program) => (
            Level::Problem,
            format!("Claude Code cannot start {}, which is gone: you can answer only in its terminal", program.display()),
            "the program that the bridge starts is gone",
            "run `pilotlight bridge install`, and restart your sessions".into(),
        ),
        HookProgram::None => (
            Level::Problem,
            format!("Claude Code looks for the bridge in {folder}, which is gone or broken"),
            "the bridge's folder is gone",
            "`pilotlight bridge install` puts it back; `pilotlight bridge remove` takes it out of Claude Code's settings".into(),
        ),
    }
}

/// What opencode's plugin is like in a config folder of opencode's.
fn of_plugin(files: &PluginFiles, home: &Path) -> Found {
    match files.plugin_file(home) {
        PluginFile::Current => {
            (Level::Ok, "opencode passes its requests to Pilotlight".into(), "the bridge is on", String::new())
        }
        PluginFile::Outdated => of_another_version("the bridge".into()),
        PluginFile::Changed => (
            Level::Problem,
            "the bridge's plugin was changed since it was installed, and opencode runs it".into(),
            "the bridge was changed since it was installed",
            "if that was not you, find out who did; `pilotlight bridge install` puts it back".into(),
        ),
        PluginFile::Other(program) => of_another_program("opencode", &program),
        PluginFile::Missing(program) => (
            Level::Problem,
            format!("opencode cannot start {}, which is gone: its sessions are not shown", program.display()),
            "the program that the bridge starts is gone",
            "run `pilotlight bridge install`, and restart your sessions".into(),
        ),
        PluginFile::Users | PluginFile::None => (
            Level::Problem,
            "the bridge's plugin has just gone".into(),
            "the bridge's plugin is gone",
            "run this again".into(),
        ),
    }
}

/// Where the bridge runs, by what the tray knows of `sessions`.
pub(crate) fn running(sessions: &[Session]) -> Option<Finding> {
    // The other agents' bridges run only while their sessions ask.
    let stays = |session: &&Session| session.observed.allows == Allows::All;
    let (bridged, others): (Vec<_>, Vec<_>) =
        sessions.iter().filter(stays).partition(|session| session.control.bridge.is_some());
    let is_open = |owner: &Owner| matches!(owner, Owner::Alive { .. } | Owner::Opened { .. });
    let is_bare = |session: &&&Session| {
        let Observed { owner, about, .. } = &session.observed;
        is_open(owner) && about.kind == Kind::Terminal
    };
    let bare = others.iter().filter(is_bare).count();
    let old = bridged.iter().filter(|session| session.control.old_bridge).count();
    let finding = if bridged.is_empty() {
        return None;
    } else if old > 0 {
        let text = format!("another version of the bridge runs in {}", counted(old, "session"));
        Finding::warning(CHECK, text, "it still works; restart these sessions to get this version")
    } else if bare > 0 {
        let text = format!(
            "{} in a terminal without a bridge: started before it, or extensions are off",
            counted(bare, "session")
        );
        Finding::warning(CHECK, text, "restart those that you want to answer from here")
    } else {
        Finding::ok(CHECK, format!("it runs in {}", counted(bridged.len(), "session")))
    };
    Some(finding.public())
}

#[cfg(test)]
mod tests {
    use super::*;
    use pilotlight_core::session::Bridge;

    #[test]
    fn the_hooks_program_may_be_moved_updated_or_gone() {
        let scratch = tempfile::tempdir().unwrap();
        let at = |name: &str| scratch.path().join(name);
        let files = |program: &str| HookFiles::at(at("bridge"), at("homes"), Some(at(program)));
        let told = |program: &str| {
            let (level, text, redacted, _) = of_hook(&files(program));
            assert!(!redacted.contains('/'));
            (level, text.replace(&scratch.path().display().to_string(), "~"))
        };
        let is = |level, text: &str| (level, text.to_owned());
        assert_eq!(
            told("ours"),
            is(Level::Problem, "Claude Code looks for the bridge in ~/bridge, which is gone or broken")
        );
        std::fs::write(at("ours"), "").unwrap();
        files("ours").write().unwrap();
        assert_eq!(told("ours"), is(Level::Ok, "Claude Code passes its requests to Pilotlight"));
        assert_eq!(told("other"), is(Level::Warning, "Claude Code starts ~/ours, not this program"));
        let text = std::fs::read_to_string(files("ours").hook()).unwrap();
        std::fs::write(files("ours").hook(), text.replace("86400", "60")).unwrap();
        assert_eq!(told("ours"), is(Level::Warning, "the bridge in ~/bridge comes from another version of Pilotlight"));
        std::fs::remove_file(at("ours")).unwrap();
        let (level, text) = told("ours");
        assert!(
            level == Level::Problem && text.starts_with("Claude Code cannot start ~/ours, which is gone"),
            "{text}"
        );
    }

    #[test]
    fn case_786_the_plugin_may_be_changed_of_another_version_or_start_what_is_gone() {
        let scratch = tempfile::tempdir().unwrap();
        let at = |name: &str| scratch.path().join(name);
        let files = |program: &str| PluginFiles::at(at("opencode"), at("homes"), Some(at(program)));
        let told = |program: &str| {
            let (level, text, redacted, _) = of_plugin(&files(program), &at("opencode"));
            assert!(!redacted.contains('/'));
            (level, text.replace(&scratch.path().display().to_string(), "~"))
        };
        let is = |level, text: &str| (level, text.to_owned());
        std::fs::write(at("ours"), "").unwrap();
        files("ours").put(&at("opencode")).unwrap();
        assert_eq!(told("ours"), is(Level::Ok, "opencode passes its requests to Pilotlight"));
        assert_eq!(told("other"), is(Level::Warning, "opencode starts ~/ours, not this program"));
        std::fs::remove_file(at("ours")).unwrap();
        let (level, text) = told("ours");
        assert!(level == Level::Problem && text.starts_with("opencode cannot start ~/ours, which is gone"), "{text}");
        let plugin = files("ours").main_file();
        let text = std::fs::read_to_string(&plugin).unwrap();
        std::fs::write(&plugin, text.replace("once", "always")).unwrap();
        assert_eq!(told("ours").1, "the bridge's plugin was changed since it was installed, and opencode runs it");
    }

    #[test]
    fn case_560_sessions_of_agents_that_have_no_bridge_are_not_missing_one() {
        let open = |allows, bridge| {
            let mut session = Session::default();
            session.observed.owner = Owner::Alive { pid: 7, started: None };
            (session.observed.about.kind, session.observed.allows) = (Kind::Terminal, allows);
            session.control.bridge = bridge;
            session
        };
        let told = |sessions: &[Session]| running(sessions).unwrap().said;
        let bridged = || open(Allows::All, Some(Bridge::Joined));
        let others =
            [Allows::Process, Allows::Only { actions: [].as_slice().into(), why: "its agent has none".into() }];
        let others: Vec<_> = others.map(|allows| open(allows, None)).into_iter().chain([bridged()]).collect();
        assert_eq!(told(&others), "it runs in 1 session");
        assert!(told(&[bridged(), open(Allows::All, None)]).starts_with("1 session in a terminal without a bridge"));
    }
}
