//! What to watch in the homes of an agent, as its wing gives it: plain data.

/// What to watch in the homes of an agent, besides the folder of each session.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WatchPlan {
    /// Whether a file in a session's folder, by its name, is ever read.
    pub is_session_file: fn(&str) -> bool,
    /// The folder of a home in which its processes write logs of their own.
    pub logs: &'static str,
    /// The process whose log has this file name.
    pub log_pid: fn(&str) -> Option<u32>,
    /// The file of a home in which its terminals note the sessions that they have open.
    pub notes: &'static str,
}

/// Sessions with files of three kinds, and logs that are named after their processes.
#[cfg(test)]
pub(super) const TEST_PLAN: WatchPlan = WatchPlan {
    is_session_file: |file| [".jsonl", ".yaml", ".lock"].iter().any(|end| file.ends_with(end)),
    logs: "logs",
    log_pid: |file| file.strip_suffix(".log")?.rsplit_once('-')?.1.parse().ok(),
    notes: "open.json",
};
