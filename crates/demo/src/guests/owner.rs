//! A process that runs a guest: the player that the stage starts, or what a terminal shows in which the user resumed it.
//! It is known as the agent's by the name of its program, holds the session as that program does, and does nothing else.

use super::cast::by_id;
use crate::wait::Until;
use anyhow::Context;
use std::ffi::OsString;
use std::io::{self, Write};
use std::path::Path;

/// Runs a guest for the stage, until standard input closes.
///
/// # Errors
/// If there is no such guest, or it cannot be held.
pub fn play(folder: &Path, id: &str) -> anyhow::Result<()> {
    let (part, post) = by_id(folder, id).context("the demo has no such session")?;
    let hold = (part.hold)(&post, false)?;
    let until = Until { signal: part.ends_by_signals, ..Until::default() };
    until.wait(|| {
        println!();
        io::stdout().flush()
    })?;
    hold();
    Ok(())
}

/// Runs with the arguments that the agent's program would get in a terminal, until Enter is pressed, the terminal is closed,
/// or the stage, which is this process, ends.
///
/// # Errors
/// If they name no guest, or one that somebody else runs.
pub fn resume(folder: &Path, stage: u32, arguments: &[OsString]) -> anyhow::Result<()> {
    let words: Vec<_> = arguments.iter().map(|argument| argument.to_string_lossy()).collect();
    let [word, id] = words.as_slice() else { anyhow::bail!("the demo can only resume a session here") };
    let found = by_id(folder, id).filter(|(part, _)| part.resumes_with == Some(&**word));
    let (part, post) = found.with_context(|| format!("the demo has no such session: {id}"))?;
    let hold = (part.hold)(&post, true)?;
    let agent = part.adapter.agent();
    let until = Until { line: true, exit: Some(stage), signal: part.ends_by_signals };
    until.wait(|| {
        let mut out = io::stdout();
        writeln!(out, "{}\n", post.title)?;
        writeln!(out, "The demo has resumed this session here, as {agent} does with a real one.")?;
        write!(out, "Press Enter to end it. ")?;
        out.flush()
    })?;
    hold();
    Ok(())
}
