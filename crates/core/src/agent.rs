//! Which agent a session is of: what it is called. Which agents there are is not known here.

use super::text::{counted, fit, plain};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// Maximum length of a name that a report gives, in characters.
pub const NAME_MAX: usize = 32;
/// Maximum width of a [mark](Agent::mark), in columns.
pub(crate) const MARK_MAX: usize = 8;

/// What an agent is called, and what is said of its sessions alone: given by its adapter.
#[derive(Debug)]
pub struct Names {
    /// In JSON, in filters and in the settings: `claude-code`.
    pub name: &'static str,
    /// For people: `Claude Code`.
    pub word: &'static str,
    /// The same in at most [`MARK_MAX`] columns, for narrow rows: `Claude`.
    pub mark: &'static str,
    /// Why no process is known to run a session: `no process has locked it`.
    pub no_owner: &'static str,
    /// How a process that is gone is known to have run it: `its lock was left behind`.
    pub left_behind: &'static str,
    /// What shows that two processes run one session: `two live processes have a lock on it`.
    pub contested: &'static str,
}

impl Names {
    /// These, where nothing else is said of its sessions alone.
    pub const fn new(name: &'static str, word: &'static str, mark: &'static str) -> Self {
        Self {
            name,
            word,
            mark,
            no_owner: "no process is known to run it",
            left_behind: "it said no more",
            contested: "two live processes have it open",
        }
    }
}

/// An agent. Two of the same name are the same.
#[derive(Clone, Debug)]
pub enum Agent {
    /// One with an adapter.
    Known(&'static Names),
    /// Any other, by the name that its own reports give it.
    Reported(Arc<str>),
}

/// The agent of a session of which none is known. No session that is shown is of it.
static UNKNOWN: Names = Names::new("agent", "agent", "agent");
/// One that is known by its reports alone.
static REPORTED: Names =
    Names { contested: "two programs say that this session is theirs", ..Names::new("agent", "agent", "agent") };

impl Default for Agent {
    fn default() -> Self {
        Self::ANY
    }
}

impl Agent {
    /// One of which nothing is known.
    pub(super) const ANY: Self = Self::Known(&UNKNOWN);

    /// One that has no adapter, by the name that its reports give it: one line, bounded. `None` if nothing of it is visible.
    pub fn reported(name: &str) -> Option<Self> {
        let name = plain(name.trim(), NAME_MAX);
        (!name.trim().is_empty()).then(|| Self::Reported(name.into()))
    }

    /// Its name in JSON, in filters and in the settings.
    pub fn name(&self) -> &str {
        match self {
            Self::Known(names) => names.name,
            Self::Reported(name) => name,
        }
    }

    /// Its name for people.
    pub fn word(&self) -> &str {
        match self {
            Self::Known(names) => names.word,
            Self::Reported(name) => name,
        }
    }

    /// Why no process is known to run a session of it.
    pub(crate) fn no_owner(&self) -> &'static str {
        self.names().no_owner
    }

    /// How a process that is gone is known to have run one.
    pub(crate) fn left_behind(&self) -> &'static str {
        self.names().left_behind
    }

    /// What shows that two processes run one.
    pub fn contested(&self) -> &'static str {
        self.names().contested
    }

    fn names(&self) -> &'static Names {
        match self {
            Self::Known(names) => names,
            Self::Reported(_) => &REPORTED,
        }
    }

    /// One of its sessions: `a Claude Code session`.
    pub fn a_session(&self) -> String {
        let article =
            if self.word().starts_with(['a', 'e', 'i', 'o', 'u', 'A', 'E', 'I', 'O', 'U']) { "an" } else { "a" };
        format!("{article} {self} session")
    }

    /// The one that all are of, if it is one.
    pub fn common<'a>(mut agents: impl Iterator<Item = &'a Self>) -> Option<&'a Self> {
        let first = agents.next()?;
        agents.all(|agent| agent == first).then_some(first)
    }

    /// Its name for people in at most [`MARK_MAX`] columns.
    pub fn mark(&self) -> String {
        match self {
            Self::Known(names) => names.mark.to_owned(),
            Self::Reported(name) => fit(name, MARK_MAX),
        }
    }
}

/// `1 Copilot session`, and `4 sessions` of several agents.
pub fn counted_sessions<'a>(agents: impl ExactSizeIterator<Item = &'a Agent>) -> String {
    let n = agents.len();
    match Agent::common(agents) {
        Some(agent) => counted(n, &format!("{agent} session")),
        None => counted(n, "session"),
    }
}

impl fmt::Display for Agent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

impl PartialEq for Agent {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl Eq for Agent {}

impl Hash for Agent {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name().hash(state);
    }
}

impl PartialOrd for Agent {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Agent {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.name().cmp(other.name())
    }
}

impl Serialize for Agent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// Only the name is written: whoever reads it knows which agents there are, and takes the known one of that name.
impl<'de> Deserialize<'de> for Agent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = Box::<str>::deserialize(deserializer)?;
        Self::reported(&name).ok_or_else(|| serde::de::Error::custom("an agent has no name"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::hash::DefaultHasher;
    use unicode_width::UnicodeWidthStr;

    static ROBOT: Names = Names {
        name: "robot",
        no_owner: "nobody holds it",
        left_behind: "its lock was left",
        contested: "two have a lock on it",
        ..UNKNOWN
    };

    #[test]
    fn a_reported_name_is_one_bounded_line() {
        let named = |name: &str| Agent::reported(name).map(|agent| agent.word().to_owned());
        assert_eq!(named(" aider "), Some("aider".into()));
        assert_eq!(named(""), None);
        assert_eq!(named(" \n\t"), None);
        let hostile = named(&format!("a\u{1b}[31m\n\u{202e}{}", "x".repeat(500))).unwrap();
        assert!(hostile.chars().count() <= NAME_MAX && !hostile.contains(['\u{1b}', '\n', '\u{202e}']), "{hostile:?}");
    }

    #[test]
    fn a_mark_is_narrow() {
        for name in ["aider", "something-quite-long", "漢字漢字漢字"] {
            let mark = Agent::reported(name).unwrap().mark();
            assert!(mark.width() <= MARK_MAX, "{mark}");
        }
    }

    #[test]
    fn agents_of_one_name_are_the_same() {
        static NAMES: Names = Names { name: "aider", ..UNKNOWN };
        assert_eq!(Agent::Known(&NAMES), Agent::reported("aider").unwrap());
        assert_ne!(Agent::Known(&NAMES), Agent::default());
    }

    #[test]
    fn what_is_said_of_an_agent_alone_comes_from_its_wing() {
        let (robot, other) = (Agent::Known(&ROBOT), Agent::reported("aider").unwrap());
        let said = |agent: &Agent| [agent.no_owner(), agent.left_behind(), agent.contested()];
        assert_eq!(said(&robot), ["nobody holds it", "its lock was left", "two have a lock on it"]);
        assert_eq!(said(&other)[..2], said(&Agent::default())[..2], "nothing is known of it");
        assert_eq!(other.contested(), "two programs say that this session is theirs");
    }

    #[test]
    fn agents_are_in_the_order_of_their_names() {
        let (robot, other) = (Agent::Known(&ROBOT), Agent::reported("aider").unwrap());
        assert!(other < robot);
        let hash = |agent: &Agent| {
            let mut hasher = DefaultHasher::new();
            agent.hash(&mut hasher);
            hasher.finish()
        };
        assert_eq!(hash(&robot), hash(&Agent::reported("robot").unwrap()));
        assert_ne!(hash(&robot), hash(&other));
    }
}
