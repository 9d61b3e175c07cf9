//! A made-up agent, for tests alone: all that an agent needs that is only shown.
//!
//! Its home has a file `sundial.toml`. A session is a file `days/<year>/<month>/<day>/<id>.json`, which is written anew
//! whenever something happens; a process that runs a session names it in `running/<pid>`.

use super::adapter::{Adapter, SessionScanner};
use super::home::Home;
use super::profile::Profile;
use super::reader::Reader;
use super::shown::{self, Contents};
use pilotlight_core::agent::Names;
use pilotlight_core::event::{Body, Event, ToolResult};
use pilotlight_core::scan::Text;
use pilotlight_core::session::{About, Kind};
use pilotlight_core::time::Time;
use pilotlight_system::watcher::{Logs, WatchPlan};
use serde::Deserialize;
use std::path::PathBuf;

/// What is the same about all its homes.
const PROFILE: Profile = Profile {
    names: Names { no_owner: "no process names it", ..Names::new("sundial", "Sundial", "Sundial") },
    gaps: Some("it can only be looked at"),
    home: ".sundial",
    home_variable: "SUNDIAL_HOME",
    is_home: |home| home.join("sundial.toml").is_file(),
    sessions: "days",
    watch_plan: WatchPlan {
        logs: Some(Logs { folder: "running", pid: |file| file.parse().ok(), names_session: false }),
        // Year, month and day lie between.
        ..WatchPlan::files(3, |file| file.strip_suffix(".json").filter(|id| !id.starts_with('.')))
    },
    ..Profile::SHOWN
};

/// The made-up agent.
pub struct Sundial;

impl Adapter for Sundial {
    fn profile(&self) -> &'static Profile {
        &PROFILE
    }

    fn open(&self, home: &Home, id: &str, path: PathBuf) -> Reader {
        shown::reader(home, id, path, Contents::Whole(parse), "a sundial only shows the time")
    }

    fn scanner(&self) -> Option<Box<dyn SessionScanner>> {
        shown::scanner(|text| Some(text.trim()))
    }
}

/// A session, as its file has it.
#[derive(Deserialize)]
struct File {
    title: Box<str>,
    folder: Box<str>,
    events: Vec<Happening>,
}

/// Something that happened in a session.
#[derive(Deserialize)]
struct Happening {
    at: Box<str>,
    what: Box<str>,
    #[serde(default)]
    text: Box<str>,
}

fn parse(text: &[u8], fold: &mut dyn FnMut(&Event<'_>)) -> Result<About, String> {
    let File { title, folder, events } = serde_json::from_slice(text).map_err(|error| error.to_string())?;
    events.iter().filter_map(Happening::event).for_each(|event| fold(&event));
    Ok(About { name: Some(title), cwd: Some(folder), kind: Kind::Terminal, ..About::default() })
}

impl Happening {
    /// The same as the neutral event. `None` for what is not known.
    fn event(&self) -> Option<Event<'_>> {
        let (text, only) = (Text(self.text.as_bytes()), Text(b"shadow"));
        let body = match &*self.what {
            "prompt" => Body::prompt(),
            "tool" => Body::tool(only, only, Some(text)),
            "tool over" => Body::tool_done(only, ToolResult::Success),
            "answer" => Body::Message { requests_tools: false, asks: self.text.ends_with('?'), model: None },
            "turn over" => Body::RoundEnd,
            "error" => Body::Error { kind: None, message: Some(text), status: None },
            "end" => Body::Shutdown,
            _ => return None,
        };
        Some(Event::of(self.what.as_bytes(), Time::parse(self.at.as_bytes())?, body))
    }
}
