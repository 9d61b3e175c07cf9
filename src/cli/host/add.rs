//! `pilotlight host add`: tries a machine, copies a program there if none is there that can be used, and writes the machine
//! into the settings. What will be done is shown first, and asked in one question: after a no, nothing has changed.

use super::super::ask::prompt;
use super::super::context::{Context, runtime};
use super::super::hosts::ask_tray;
use super::super::report::{FAILED, REFUSED, USAGE, say};
use super::suggest;
use super::talk::{check_settings, hold_off_others, is_confirmed, replaced, state_folder, tell, wait, write_settings};
use super::{same_as, tell_tray};
use crate::tray::open_files::make_config;
use anyhow::{Context as _, anyhow, bail, ensure};
use pilotlight_core::text::plain;
use pilotlight_engine::config::edit::{WrongPart, host_entry, with_host, wrong_host};
use pilotlight_engine::config::{self, HostSetting};
use pilotlight_engine::hosts::command::Way;
use pilotlight_engine::hosts::copied::{Additions, Copied, Copies};
use pilotlight_engine::hosts::remote_shell::{RemoteInfo, RemoteShell};
use pilotlight_engine::hosts::suggest::Candidate;
use pilotlight_system::paths;
use pilotlight_system::plain_file::{self, Links, OpenError};
use std::io::{self, IsTerminal, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tokio::runtime::Runtime;

/// Larger files are no program of ours. In bytes.
const PROGRAM_MAX: u64 = 512 << 20;
/// Maximum length of what is quoted, in characters.
const QUOTED_MAX: usize = 80;
/// How archives begin: gzip, zip, xz.
const ARCHIVES: [&[u8]; 3] = [b"\x1f\x8b", b"PK\x03\x04", b"\xfd7zXZ"];
/// How programs begin: ELF, Mach-O of one architecture and of several.
const PROGRAMS: [&[u8]; 3] = [b"\x7fELF", b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe"];

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// The name that Pilotlight shows for the machine. Without it, choose from the list of `host suggest`
    name: Option<String>,
    /// The destination for `ssh`, if it is not NAME: a host of your ssh config, or user@address
    #[arg(long, value_name = "DEST", conflicts_with = "command", requires = "name")]
    ssh: Option<String>,
    /// A `pilotlight` unpacked from a release, to copy if this program cannot run on the machine
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
    /// Do not ask first
    #[arg(long)]
    yes: bool,
    /// Wait for Enter at the end: the terminal was opened for this
    #[arg(long, hide = true)]
    wait: bool,
    /// The command that reaches the machine instead of `ssh`, such as `docker exec -i box`
    #[arg(last = true, value_name = "COMMAND", requires = "name")]
    command: Vec<String>,
}

/// What is to be done on the machine.
enum Plan {
    /// Nothing: the program at this path can be used.
    Use(String),
    /// To copy this program there.
    Copy(Vec<u8>),
}

pub(super) fn run(context: &Context, arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let result = add(context, arguments);
    if arguments.wait {
        if let Err(error) = &result {
            say(&format!("{error:#}"));
        }
        prompt("Press Enter to close this window. ");
    }
    result
}

fn add(context: &Context, arguments: &Arguments) -> anyhow::Result<ExitCode> {
    context.report_problems();
    let (name, way) = match &arguments.name {
        Some(name) => (name.clone(), way(name, arguments)),
        None => match suggest::choose(context)? {
            Some(Candidate { name, way, .. }) => (name, way),
            None => return Ok(ExitCode::from(REFUSED)),
        },
    };
    add_named(context, arguments, &name, way)
}

/// Whether a machine can be added so, as far as that is known here. If not, the exit code: the user has been told then.
fn check(context: &Context, path: &Path, name: &str, way: &Way) -> anyhow::Result<Result<(), ExitCode>> {
    if context.config.hosts.iter().any(|host| host.name == name) {
        say(&format!("there is a machine called {name} already: `pilotlight host test {name}` tries it"));
        return Ok(Err(ExitCode::from(USAGE)));
    }
    let candidate = way.host(name, "/pilotlight", "/");
    if let Some(wrong) = wrong(&candidate, way) {
        say(&wrong);
        return Ok(Err(ExitCode::from(USAGE)));
    }
    replaced(path)?;
    let text = config::read(path).map_err(|why| anyhow!("{} {why}", path.display()))?;
    if with_host(&text, &candidate).is_none() {
        say(&format!("no machine can be added to {}: see `pilotlight config --edit`", path.display()));
        return Ok(Err(ExitCode::FAILURE));
    }
    Ok(Ok(()))
}

fn add_named(context: &Context, arguments: &Arguments, name: &str, way: Way) -> anyhow::Result<ExitCode> {
    let path = context.config_path.as_deref().context("no folder for settings is known: set HOME")?;
    if let Err(code) = check(context, path, name, &way)? {
        return Ok(code);
    }
    let runtime = runtime()?;
    let Some((mut shell, info)) = look(&runtime, name, &way)? else { return Ok(ExitCode::from(FAILED)) };
    // What it is known as already, if it is.
    let reports = runtime.block_on(ask_tray()).unwrap_or_default();
    if let Some(other) = info.machine.as_deref().and_then(|machine| same_as(machine, name, &reports)) {
        tell(&match &*other {
            "" => "  it is this machine itself, whose sessions are listed anyway".to_owned(),
            other => format!("  it is the machine that is called {other} already: its sessions would be listed twice"),
        })?;
    }
    let plan = match plan(arguments, &info)? {
        Ok(plan) => plan,
        Err(why) => {
            say(&format!("{why}; nothing was changed"));
            return Ok(ExitCode::from(REFUSED));
        }
    };
    let program = match &plan {
        Plan::Use(path) => path.clone(),
        Plan::Copy(_) => info.own_path(),
    };
    let host = way.host(name, &program, &info.home);
    // What is shown is what is written.
    let is_hidden = *plain(&program, program.len()) != *program;
    if wrong_host(&host).is_some() || is_hidden {
        let why = if is_hidden { "not all of it can be shown" } else { "it needs quotes in a shell" };
        say(&format!("{program:?} there cannot be named in the settings, so nothing was changed: {why}"));
        return Ok(ExitCode::from(REFUSED));
    }
    if matches!(plan, Plan::Copy(_)) {
        copies().context("nothing was changed")?;
    }
    show(arguments, &plan, &info, path, &host_entry(&host))?;
    if !is_confirmed("Do it?", arguments.yes) {
        return Ok(ExitCode::from(REFUSED));
    }
    // Before anything is changed there.
    drop(hold_off_others()?);
    check_settings(path)?;
    let copied = match &plan {
        Plan::Use(_) => None,
        Plan::Copy(bytes) => match copy(&runtime, &mut shell, bytes) {
            Ok(sum) => Some(Copied { way, sum, made: info.absent.clone() }),
            Err(why) => {
                say(&format!("the program was not copied: {why}"));
                return Ok(ExitCode::from(FAILED));
            }
        },
    };
    let is_copied = copied.is_some();
    keep(path, &host, copied).inspect_err(|_| {
        if is_copied {
            say(&format!("the program was copied to {program} there: remove it yourself, or try again"));
        }
    })?;
    say(&format!("{name} is added: a running Pilotlight shows its sessions now"));
    // One that knew the name already, such as from settings that were changed back.
    wait(&runtime, tell_tray(name, true));
    Ok(ExitCode::SUCCESS)
}

/// Looks what is there. `None` if it is not reached, which is said.
pub(super) fn look(runtime: &Runtime, name: &str, way: &Way) -> io::Result<Option<(RemoteShell, RemoteInfo)>> {
    tell(&format!("{name}: connecting with `{way}`"))?;
    match wait(runtime, RemoteShell::start(way.clone())).unwrap_or_else(|| Err("interrupted".into())) {
        Ok((shell, info)) => {
            tell(&format!("  {}", words_of(&info)))?;
            Ok(Some((shell, info)))
        }
        Err(why) => {
            say(&format!("{name} is not reached: {why}"));
            Ok(None)
        }
    }
}

/// Writes the machine into the settings, and notes what was copied there.
fn keep(path: &Path, host: &HostSetting, copied: Option<Copied>) -> anyhow::Result<()> {
    let _held_off = hold_off_others()?;
    copied.map_or(Ok(()), |copied| note(&host.name, copied))?;
    write(path, host)
}

/// Notes that the program there is from here. What was made for an earlier one was made for this one.
fn note(name: &str, mut copied: Copied) -> anyhow::Result<()> {
    let mut copies = copies()?;
    if let Some(before) = copies.of(name).filter(|before| before.way == copied.way) {
        copied.made.extend(before.made.iter().filter(|made| !copied.made.contains(made)).cloned().collect::<Vec<_>>());
    }
    copies.note(name, Some(copied))
}

/// What was copied before.
pub(super) fn copies() -> anyhow::Result<Copies> {
    Copies::read(&state_folder()?)
}

/// Writes a host into the settings, as they are now: the question may have waited for long.
fn write(path: &Path, host: &HostSetting) -> anyhow::Result<()> {
    let is_first = make_config(path)?;
    let text = config::read(path).map_err(|why| anyhow!("{} {why}", path.display()))?;
    let changed = || format!("{} has changed: add the lines above to it yourself", path.display());
    let added = with_host(&text, host).with_context(changed)?;
    write_settings(path, &added)?;
    Additions::read(&state_folder()?).note(&host.name, &text, &added, &host_entry(host), is_first);
    Ok(())
}

/// What is wrong with the arguments, if anything is, by their names.
fn wrong(host: &HostSetting, way: &Way) -> Option<String> {
    if matches!(way, Way::Command(words) if words.is_empty()) {
        return Some(
            "the words after `--` run Pilotlight on this machine: begin with what runs a command there, such as `docker exec -i box`"
                .into(),
        );
    }
    let shown = |text: &str| format!("{:?}", plain(text, QUOTED_MAX));
    Some(match wrong_host(host)? {
        WrongPart::Name => format!(
            "{} cannot be a machine's name: use up to 24 letters, digits, \"-\", \"_\" and \".\", without \"-\" in front, and not dots alone",
            shown(&host.name)
        ),
        WrongPart::Ssh | WrongPart::Program => format!(
            "{} is neither a host of your ssh config nor user@address, as `--ssh` takes it",
            if let Way::Ssh(to) = way { shown(to) } else { shown(&host.name) }
        ),
        WrongPart::Command(why) => format!("the words after `--` are no command: {why}"),
    })
}

/// How the machine is reached. Of a whole command that serves, only what is before Pilotlight.
fn way(name: &str, arguments: &Arguments) -> Way {
    match &*arguments.command {
        [] => Way::Ssh(arguments.ssh.clone().unwrap_or_else(|| name.to_owned())),
        [before @ .., _, serve, stdio] if serve == "serve" && stdio == "--stdio" => Way::Command(before.to_vec()),
        [before @ .., _, serve, stdio, messages]
            if serve == "serve" && stdio == "--stdio" && messages == "--messages" =>
        {
            Way::Command(before.to_vec())
        }
        words => Way::Command(words.to_vec()),
    }
}

fn words_of(info: &RemoteInfo) -> String {
    let mut words = format!("{} on {}", info.system, info.architecture);
    if info.programs.is_empty() {
        words += ", no Pilotlight";
    }
    for found in &info.programs {
        let note = if found.is_understood { "" } else { ", which this one does not understand" };
        words += &format!(", Pilotlight {} at {}{note}", found.version, found.path);
    }
    words
}

/// What is to be done there, or why nothing can be.
fn plan(arguments: &Arguments, info: &RemoteInfo) -> anyhow::Result<Result<Plan, String>> {
    if let (None, Some(found)) = (&arguments.program, info.usable()) {
        return Ok(Ok(Plan::Use(found.path.clone())));
    }
    if info.is_taken {
        let path = info.own_path();
        return Ok(Err(format!("{path} there is a link, or no program of ours, and is left alone: move it away")));
    }
    Ok(program_for(arguments.program.as_deref(), info)?.map(Plan::Copy))
}

/// The program to copy there, the named one or this one, or why there is none.
pub(super) fn program_for(named: Option<&Path>, info: &RemoteInfo) -> anyhow::Result<Result<Vec<u8>, String>> {
    let file = match named {
        Some(file) => file.to_owned(),
        None if info.is_like_here() => paths::own_program().context("the system does not say where this program is")?,
        None => return Ok(Err(elsewhere(info))),
    };
    let program = read_program(&file)?;
    if ARCHIVES.iter().any(|start| program.starts_with(start)) {
        return Ok(Err(format!("{} is an archive: unpack it, and name the program in it", file.display())));
    }
    // A shell would run the lines of any text.
    if !PROGRAMS.iter().any(|start| program.starts_with(start)) {
        return Ok(Err(format!("{} is no program for Linux or macOS", file.display())));
    }
    Ok(Ok(program))
}

/// Where to get a program that runs there.
fn elsewhere(info: &RemoteInfo) -> String {
    let version = env!("CARGO_PKG_VERSION");
    let (os, arch) = (std::env::consts::OS, std::env::consts::ARCH);
    let get = match (&*info.system, &*info.architecture) {
        ("linux", their @ ("x86_64" | "aarch64")) => {
            format!(
                "unpack pilotlight-{version}-{their}-unknown-linux-musl.tar.gz of the release, and add `--program FILE`"
            )
        }
        ("macos", _) => {
            format!(
                "unpack pilotlight-{version}-macos.zip of the release, and add `--program Pilotlight.app/Contents/MacOS/pilotlight`"
            )
        }
        _ => "releases have none for it: build one there with cargo, and try again".to_owned(),
    };
    format!("this program is for {os} on {arch}, and does not run there: {get}")
}

fn read_program(file: &Path) -> anyhow::Result<Vec<u8>> {
    let unreadable = || format!("{} cannot be read", file.display());
    let (opened, _) = match plain_file::open(file, Links::Followed) {
        Ok(opened) => opened,
        Err(OpenError::Io(error)) => return Err(error).with_context(unreadable),
        Err(OpenError::NotAFile(what)) => bail!("{} is {what}, not a program", file.display()),
    };
    let mut program = Vec::new();
    opened.take(PROGRAM_MAX + 1).read_to_end(&mut program).with_context(unreadable)?;
    ensure!(!program.is_empty() && program.len() as u64 <= PROGRAM_MAX, "{} is no program", file.display());
    Ok(program)
}

/// Shows what will be done.
fn show(arguments: &Arguments, plan: &Plan, info: &RemoteInfo, path: &Path, entry: &str) -> io::Result<()> {
    if let Plan::Copy(bytes) = plan {
        let own = info.own_path();
        let verb = if info.programs.iter().any(|found| found.path == own) { "replace" } else { "write" };
        let which =
            arguments.program.as_ref().map_or_else(|| "this program".to_owned(), |file| file.display().to_string());
        tell(&format!("  {verb} {own} there: a copy of {which} ({})", megabytes(bytes.len())))?;
    }
    tell(&format!("  add to {} here:", path.display()))?;
    entry.lines().try_for_each(|line| tell(&format!("    {line}")))
}

pub(super) fn megabytes(bytes: usize) -> String {
    format!("{:.1} MB", bytes as f64 / 1e6)
}

/// Copies the program. Ctrl-C undoes what was begun.
pub(super) fn copy(runtime: &Runtime, shell: &mut RemoteShell, program: &[u8]) -> Result<String, String> {
    let (all, is_shown) = (program.len(), io::stderr().is_terminal());
    let mut last = None;
    let progress = |sent: usize| {
        let percent = sent * 100 / all;
        if is_shown && last.replace(percent) != Some(percent) {
            let _ = write!(io::stderr(), "\rcopying: {percent} %"); // it is a terminal
        }
    };
    let copied = wait(runtime, shell.copy(program, progress));
    if is_shown {
        let _ = writeln!(io::stderr());
    }
    let Some(copied) = copied else {
        runtime.block_on(shell.give_up());
        return Err("interrupted; nothing was changed".to_owned());
    };
    copied
}
