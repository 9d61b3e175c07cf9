//! What to watch in the homes of an agent, as its adapter gives it: plain data.

use std::path::Path;

/// What to watch in the homes of an agent.
#[derive(Clone, Copy, Debug)]
pub struct WatchPlan {
    /// Where a home keeps its sessions.
    pub layout: Layout,
    /// Where each of its processes writes a file of its own, if they do.
    pub logs: Option<Logs>,
    /// The file of a home in which its terminals note the sessions that they have open, if there is one.
    pub notes: Option<&'static str>,
    /// Where each session that is open has a file of its own, such as its owner's lock, if not beside the sessions.
    pub locks: Option<Locks>,
}

/// A folder of a home in which each session that is open has a file of its own. When that changes, the session is read.
#[derive(Clone, Copy, Debug)]
pub struct Locks {
    /// Its name.
    pub folder: &'static str,
    /// The session whose file there has this name.
    pub session_of: fn(&str) -> Option<&str>,
}

impl WatchPlan {
    /// Sessions that are files, with this many folders between the folder of the sessions and a file, and nothing else to
    /// watch. `session_of`: the id of the session whose file has this name.
    pub const fn files(depth: usize, session_of: fn(&str) -> Option<&str>) -> Self {
        Self { layout: Layout::Files { depth, session_of, beside: None }, logs: None, notes: None, locks: None }
    }

    /// The folders of a home, besides that of the sessions, in which each change of a file matters, each with whether its
    /// first file may follow on the last event of its session.
    pub(super) fn folders(&self) -> impl Iterator<Item = (&'static str, bool)> {
        let logs = self.logs.map(|logs| (logs.folder, logs.names_session));
        logs.into_iter().chain(self.locks.map(|locks| (locks.folder, true)))
    }

    /// Whether its sessions share folders. All of those are watched before the sessions in them are listed.
    pub const fn shares_folders(&self) -> bool {
        matches!(self.layout, Layout::Files { .. })
    }

    /// Whether its processes name the sessions that they run, or lock them, which may have nothing else yet.
    pub(super) fn names_sessions(&self) -> bool {
        self.locks.is_some() || self.logs.is_some_and(|logs| logs.names_session)
    }
}

/// A folder of a home in which each of its processes writes a file of its own. When one changes, the session that it names
/// is read, or, where it names none, all processes are scanned.
#[derive(Clone, Copy, Debug)]
pub struct Logs {
    /// Its name.
    pub folder: &'static str,
    /// The process whose file there has this name.
    pub pid: fn(&str) -> Option<u32>,
    /// The file names the session that its process runs. On Linux, the folder of the first one is then seen to be made; else
    /// it is found at the next event in the home.
    pub names_session: bool,
}

/// The id of the session that a path below the folder of the sessions belongs to, by its parts.
type Beside = for<'a> fn(&[&'a str]) -> Option<&'a str>;

/// Where a home keeps its sessions, below its folder for them.
#[derive(Clone, Copy, Debug)]
pub enum Layout {
    /// Each has a folder of its own, directly in that folder, named by its id.
    Folders {
        /// Whether a file in it, by its name, is ever read.
        is_session_file: fn(&str) -> bool,
    },
    /// Each is a file, in folders that sessions share.
    Files {
        /// How many folders lie between that folder and a file.
        depth: usize,
        /// The id of the session whose file has this name.
        session_of: fn(&str) -> Option<&str>,
        /// The id of the session that other paths beside the files belong to, by their parts: those that are ever read.
        beside: Option<Beside>,
    },
}

/// What an event below the folder of the sessions is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Subject<'a> {
    /// The session with this id.
    Session(&'a str),
    /// Which sessions there are.
    List,
    /// Nothing that is ever read.
    Nothing,
}

impl Layout {
    /// What an event on this path, below the folder of the sessions, is about.
    pub(super) fn subject<'a>(&self, inside: &'a Path) -> Subject<'a> {
        let mut parts = inside.components().map(|part| part.as_os_str().to_str());
        match *self {
            Self::Folders { is_session_file } => match (parts.next(), parts.next(), parts.next()) {
                (None, ..) => Subject::List,
                (Some(Some(id)), file, None) if !id.starts_with('.') => {
                    let is_read = file.is_none_or(|file| file.is_some_and(is_session_file));
                    if is_read { Subject::Session(id) } else { Subject::Nothing }
                }
                _ => Subject::Nothing,
            },
            Self::Files { depth, session_of, beside } => {
                let below: Option<Vec<_>> = parts.skip(depth).collect();
                let id = match below.as_deref() {
                    Some([]) => return Subject::List,
                    Some([file]) => session_of(file).or_else(|| beside?(&[file])),
                    Some(below) => beside.and_then(|beside| beside(below)),
                    None => None,
                };
                id.map_or(Subject::Nothing, Subject::Session)
            }
        }
    }
}

/// Logs that are named after their processes.
#[cfg(test)]
pub(super) const TEST_LOGS: Logs = Logs {
    folder: "logs",
    pid: |file| file.strip_suffix(".log")?.rsplit_once('-')?.1.parse().ok(),
    names_session: false,
};

/// Sessions with files of three kinds, and logs that are named after their processes.
#[cfg(test)]
pub(super) const TEST_PLAN: WatchPlan = WatchPlan {
    layout: Layout::Folders {
        is_session_file: |file| [".jsonl", ".yaml", ".lock"].iter().any(|end| file.ends_with(end)),
    },
    logs: Some(TEST_LOGS),
    notes: Some("open.json"),
    locks: None,
};

/// Sessions that their processes name.
#[cfg(test)]
pub(super) const TEST_NAMES: WatchPlan =
    WatchPlan { logs: Some(Logs { names_session: true, ..TEST_LOGS }), notes: None, ..TEST_PLAN };

/// Sessions that are files in folders of months.
#[cfg(test)]
pub(super) const TEST_FILES: WatchPlan = WatchPlan {
    layout: Layout::Files {
        depth: 2,
        session_of: |file| file.strip_suffix(".json"),
        beside: Some(|parts| parts.first().copied().filter(|id| !id.contains('.') && parts.len() < 4)),
    },
    logs: None,
    notes: None,
    locks: Some(Locks { folder: "locks", session_of: |file| file.strip_suffix(".lock") }),
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_about_a_session_the_list_of_them_or_nothing() {
        let subject = |plan: &WatchPlan, path: &'static str| plan.layout.subject(Path::new(path));
        for (path, about) in [
            ("", Subject::List),
            ("a", Subject::Session("a")),
            ("a/x.jsonl", Subject::Session("a")),
            ("a/x.png", Subject::Nothing),
            (".a/x.jsonl", Subject::Nothing),
            ("a/b/x.jsonl", Subject::Nothing),
        ] {
            assert_eq!(subject(&TEST_PLAN, path), about, "{path:?}");
        }
        for (path, about) in [
            ("", Subject::List),
            ("2026", Subject::List),
            ("2026/11", Subject::List),
            ("2026/11/a.json", Subject::Session("a")),
            ("2026/11/a.txt", Subject::Nothing),
            ("2026/11/a", Subject::Session("a")),
            ("2026/11/a/agents/b.json", Subject::Session("a")),
            ("2026/11/a/agents/b/c.json", Subject::Nothing),
        ] {
            assert_eq!(subject(&TEST_FILES, path), about, "{path:?}");
        }
    }
}
