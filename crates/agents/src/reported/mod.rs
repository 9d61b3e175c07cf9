//! Any other agent: its sessions as its own hook reports them, by `pilotlight report`.
//!
//! A report is a small file of ours, one a session, in the folder `reports` of our runtime folder. There it is found by
//! whoever looks: a tray that runs is told of it by the system as of any other file, one that is started later reads it,
//! and `status` needs no tray. So nobody who reports waits for a tray, and nothing is lost while none runs. The folder is
//! made by the first report.
//!
//! - `record`: what a report says, and what is read of it. Everything in it is hostile input.
//! - `places`: where reports are.
//! - `store`: puts a report in its place. Reports of one session may overtake each other.
//! - `caller`: the process that the report is from, with which its session ends.
//! - `reader`: reads one.
//!
//! A report changes nothing but its own row. Nothing is done with its session, no process is signalled for it, and one
//! with the id of a session that is read itself is not shown at all.

mod adapter;
mod caller;
mod places;
mod reader;
mod record;
mod store;

pub use adapter::Reported;
pub use caller::caller;
pub use places::homes;
pub(super) use places::{given_id, list, path};
pub(crate) use reader::ReportReader;
pub use record::{Process, Report, State, agent_name, session_id};
pub use store::put;

use super::profile::Profile;
use pilotlight_core::agent::Names;
use pilotlight_core::time::Time;
use pilotlight_system::watcher::WatchPlan;
use places::{FOLDER, session_of};
use record::Record;
use std::path::Path;

/// The agents of the sessions that are reported to this home, and are not over. `now` is the wall clock.
pub(super) fn agents(home: &Path, now: Time) -> impl Iterator<Item = Box<str>> {
    let folder = home.join(FOLDER);
    let ids = list(&folder).into_iter().flatten();
    let records = ids.filter_map(move |id| Record::read(&path(&folder, &id)));
    records.filter(move |record| record.is_current(now)).map(|record| record.agent)
}

/// What is the same about all its homes, which are our own runtime folders.
pub(crate) const PROFILE: Profile = Profile {
    // Each session has the name that its reports give its agent.
    names: Names { left_behind: "its hook said no more", ..Names::new("hook", "another agent", "other") },
    is_home: |home| homes().iter().any(|ours| ours == home),
    sessions: FOLDER,
    watch_plan: WatchPlan::files(0, session_of),
    ..Profile::SHOWN
};
