//! WezTerm, over its command line. Its windows are those of one process; which has a pane it does not tell.

use super::{Place, ProcessInTerminal, Program, Selector, TerminalVariables};
use crate::terminal::show::asked::is_our_socket;
use serde::Deserialize;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// Its socket.
pub(super) const SOCKET: &str = "WEZTERM_UNIX_SOCKET";

#[derive(Deserialize)]
struct Pane {
    pane_id: u64,
    tty_name: Option<PathBuf>,
}

pub(super) fn find(
    told: &TerminalVariables,
    programs: Option<&Path>,
    process: &ProcessInTerminal<'_>,
) -> Result<Option<Place>, String> {
    let Some(socket) = told.get(OsStr::new(SOCKET)).filter(|socket| is_our_socket(Path::new(socket))) else {
        return Ok(None);
    };
    let Some(tty) = process.tty else { return Ok(None) };
    let program = Program { name: "wezterm", env: Some((SOCKET, socket.clone())) };
    let Some(answer) = program.ask(programs, &["cli", "--no-auto-start", "list", "--format", "json"])? else {
        return Ok(None);
    };
    let panes: Vec<Pane> = serde_json::from_str(&answer).map_err(|_| "wezterm answers nothing that makes sense")?;
    let pane = panes.into_iter().find(|pane| pane.tty_name.as_deref() == Some(tty));
    Ok(pane.map(|pane| {
        let words = ["cli", "--no-auto-start", "activate-pane", "--pane-id"].map(str::to_owned).into_iter();
        let words = words.chain([pane.pane_id.to_string()]).collect();
        Place {
            name: "its pane in WezTerm",
            is_shown: None,
            window: None,
            client: None,
            how: Selector::Run(program, words),
        }
    }))
}
