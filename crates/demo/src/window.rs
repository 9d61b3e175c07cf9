//! What a terminal shows in which a scripted session was resumed. It stands for `copilot --resume=ID`, and owns the
//! session until Enter is pressed, the terminal is closed, or the demo ends.

#![allow(clippy::disallowed_methods, reason = "a scratch folder of its own")]

use crate::HOME;
use crate::events::Log;
use crate::script::{Act, CAST, id_of};
use crate::wait::Until;
use anyhow::{Context, bail};
use pilotlight_agents::adapter::Adapter;
use pilotlight_agents::copilot::Copilot;
use pilotlight_agents::copilot::store::{LOG, SESSIONS};
use pilotlight_system::clock::Clock;
use std::ffi::OsString;
use std::fs;
use std::io::{self, Write};
use std::path::Path;

/// Runs with the arguments that Copilot would get. `stage` is the stage's process, and `folder` its folder.
///
/// # Errors
/// If they name no scripted session, or one that somebody else runs.
pub fn run(folder: &Path, stage: u32, arguments: &[OsString]) -> anyhow::Result<()> {
    let mut out = io::stdout();
    let argument = arguments.first().and_then(|argument| argument.to_str()).unwrap_or_default();
    if argument == "--version" {
        let release = Copilot.profile().tried;
        return Ok(writeln!(out, "GitHub Copilot CLI {release} (the demo's)")?);
    }
    let Some(index) = (0..CAST.len()).find(|index| argument.strip_prefix("--resume=") == Some(&*id_of(*index))) else {
        bail!("the demo has no such session: {argument}");
    };
    let (role, id) = (&CAST[index], id_of(index));
    let session = folder.join(HOME).join(SESSIONS).join(&id);
    let clock = Clock::start();
    let (mut log, lock) = take(&session)?;
    append(&session, &log.resumed(&id, clock.now().wall))?;
    writeln!(out, "{}\n", role.title)?;
    writeln!(out, "The demo has resumed this session here, as Copilot does with a real one.")?;
    write!(out, "Press Enter to end it. ")?;
    Until { line: true, exit: Some(stage), signal: false }.wait(|| out.flush())?;
    let ended = append(&session, &log.lines(&id, role, Act::ShutDown, clock.now().wall));
    let _ = fs::remove_file(lock); // gone with the demo
    ended.or_else(|error| if session.exists() { Err(error.into()) } else { Ok(()) })
}

/// Locks the session, as Copilot does.
fn take(session: &Path) -> anyhow::Result<(Log, std::path::PathBuf)> {
    let written = fs::read_to_string(session.join(LOG)).context("this session has not begun")?;
    for entry in fs::read_dir(session)?.flatten() {
        if entry.file_name().to_string_lossy().starts_with("inuse.") {
            fs::remove_file(entry.path())?;
        }
    }
    let pid = std::process::id();
    let lock = session.join(format!("inuse.{pid}.lock"));
    fs::write(&lock, format!("{pid}\n"))?;
    Ok((Log::of_lines(written.lines().count() as u64), lock))
}

fn append(session: &Path, lines: &str) -> io::Result<()> {
    fs::File::options().append(true).open(session.join(LOG))?.write_all(lines.as_bytes())
}
