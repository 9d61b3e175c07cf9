//! kitty, over its remote control. A window of kitty's is a pane; what the desktop calls a window it calls an OS window.

use super::{Place, ProcessInTerminal, Program, Selector, TerminalVariables, text};
use crate::terminal::show::asked::is_our_socket;
use serde::Deserialize;
use std::path::Path;

/// Where it listens: `unix:/path`, or `unix:@name` in the abstract namespace.
pub(super) const TO: &str = "KITTY_LISTEN_ON";

#[derive(Deserialize)]
struct OsWindow {
    platform_window_id: Option<u32>,
    tabs: Vec<Tab>,
}

#[derive(Deserialize)]
struct Tab {
    #[serde(default)]
    is_active_tab: Option<bool>,
    windows: Vec<Window>,
}

#[derive(Deserialize)]
struct Window {
    id: u64,
    #[serde(default)]
    is_active_window: Option<bool>,
    pid: u32,
}

pub(super) fn find(
    told: &TerminalVariables,
    programs: Option<&Path>,
    process: &ProcessInTerminal<'_>,
) -> Result<Option<Place>, String> {
    let Some(to) = text(told, TO).filter(|to| is_local(to)) else { return Ok(None) };
    let program = Program { name: "kitty", env: None };
    let ask = |words: &[&str]| [&["@", "--to", to], words].concat().into_iter().map(str::to_owned).collect::<Vec<_>>();
    let Some(answer) = program.ask(programs, &ask(&["ls"]))? else { return Ok(None) };
    let windows: Vec<OsWindow> = serde_json::from_str(&answer).map_err(|_| "kitty answers nothing that makes sense")?;
    let tabs = windows.iter().flat_map(|os| os.tabs.iter().map(move |tab| (os, tab)));
    let all = tabs.flat_map(|(os, tab)| tab.windows.iter().map(move |window| (os, tab, window)));
    let near = |window: &Window| process.chain.iter().position(|pid| *pid == window.pid);
    let found = all.filter_map(|(os, tab, window)| Some((near(window)?, os, tab, window))).min_by_key(|found| found.0);
    Ok(found.map(|(_, os, tab, window)| Place {
        name: "its window in kitty",
        is_shown: tab.is_active_tab.zip(window.is_active_window).map(|(tab, window)| tab && window),
        window: os.platform_window_id,
        client: None,
        how: Selector::Run(program, ask(&["focus-window", "--match", &format!("id:{}", window.id)])),
    }))
}

/// Whether an address is a socket on this machine, and of this user if it is a file.
fn is_local(to: &str) -> bool {
    let place = to.strip_prefix("unix:");
    place.is_some_and(|place| place.starts_with('@') || is_our_socket(Path::new(place)))
}
