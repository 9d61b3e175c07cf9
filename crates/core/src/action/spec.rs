//! The actions: each is listed once, and one table holds everything about it that does not depend on a session.
//!
//! A new action needs a row in the table and a variant of [`Operation`], both of them here; a rule that
//! says when it is [offered](super::offer); and the code that carries it out (`engine/parts/tasks/order_task.rs`). The command line,
//! the menu and the popups choose which actions they have.

use crate::form::FormAnswer;
use ActionFlag::{
    AsksServer, Counted, EndsOwner, ForTurn, LeavesMarks, OnlyShows, OpensWindow, OverBridge, Queued, Recovery,
};
use serde::{Deserialize, Serialize};

/// Defines [`Action`] with the list and the table of all actions, so that none can be missing there. The columns are the
/// fields of [`ActionSpec`].
macro_rules! actions {
    ($($(#[$doc:meta])* $action:ident: $name:literal, $label:literal, $menu_label:expr, $done:literal, $callers:ident,
        $operation:expr, [$($flag:ident),*];)*) => {
        /// Something that can be done with a session.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Action {
            $($(#[$doc])* $action,)*
        }

        impl Action {
            /// Every action, in display order.
            pub const ALL: [Self; [$(Self::$action),*].len()] = [$(Self::$action),*];

            /// Its entry in the table.
            pub const fn spec(self) -> &'static ActionSpec {
                match self {
                    $(Self::$action => &ActionSpec {
                        name: $name,
                        label: $label,
                        menu_label: $menu_label,
                        done: $done,
                        callers: Callers::$callers,
                        operation: $operation,
                        flags: &[$($flag),*],
                    },)*
                }
            }
        }
    };
}

actions! {
    /// Allow the requested permission, once.
    Approve: "approve", "Approve once", None, "approved", People,
        None, [AsksServer, OverBridge, Queued];
    /// Refuse the requested permission.
    Deny: "deny", "Deny", None, "denied", People,
        None, [AsksServer, OverBridge, LeavesMarks, Queued];
    /// Answer the question it asks its user.
    Answer: "answer", "Answer…", None, "answered", People,
        None, [OverBridge, Queued];
    /// Bring it back under control, and have it continue its work.
    Continue: "continue", "Reconnect and continue", None, "continues its work", People,
        Some(Operation::Continue), [ForTurn, AsksServer, OverBridge, Recovery, Counted, LeavesMarks];
    /// Bring it back under control: attach to its server, or resume it.
    Reconnect: "reconnect", "Reconnect", None, "reconnected", People,
        Some(Operation::Reconnect { resend: false }), [ForTurn, AsksServer, Recovery, Counted, LeavesMarks];
    /// [`Reconnect`](Self::Reconnect), and send the last prompt again.
    Resend: "resend", "Send the last prompt again", None, "its last prompt was sent again", People,
        Some(Operation::Reconnect { resend: true }), [ForTurn, AsksServer, Recovery, Counted, LeavesMarks];
    /// Abort the running turn.
    Stop: "stop", "Stop", Some("Stop the turn"), "stopped", People,
        Some(Operation::Stop), [ForTurn, AsksServer, OverBridge, LeavesMarks];
    /// Interrupt its process, then terminate it.
    End: "end", "End it", None, "ended", People,
        Some(Operation::End { confirmed: false }), [EndsOwner];
    /// Kill its process.
    ForceQuit: "force-quit", "Force quit: nothing is saved", None, "ended", People,
        Some(Operation::ForceQuit), [EndsOwner];
    /// Resume it in a terminal.
    Resume: "resume", "Resume", Some("Resume in a terminal"), "resumed", Anyone,
        Some(Operation::Resume), [Recovery, OpensWindow];
    /// Bring its terminal to the front.
    ShowTerminal: "show-terminal", "Show terminal", Some("Show its terminal"), "its terminal is shown", Anyone,
        Some(Operation::ShowTerminal), [OnlyShows, OpensWindow];
    /// Detach from it.
    Detach: "detach", "Detach", None, "detached", People,
        Some(Operation::Detach), [];
    /// Have Copilot ask in its terminal whether Pilotlight may answer its permission requests.
    LetAnswer: "let-answer", "Let Pilotlight answer here…", None, "it asks in its terminal", People,
        Some(Operation::LetAnswer), [ForTurn, OverBridge];
}

impl Serialize for Action {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for Action {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = Box::<str>::deserialize(deserializer)?;
        Self::named(&name).ok_or_else(|| serde::de::Error::custom("no action has this name"))
    }
}

/// What an order is to do: an action, with whatever it takes. The names are those on the wire: a change of one changes the
/// control socket's protocol.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Operation {
    /// Show the open request with this id, and leave it open.
    Look(String),
    /// Allow open requests, once.
    Approve(Which),
    /// Allow an open request, and have its agent allow from now on what these rules say.
    Always {
        which: Which,
        /// The rules, as the user was shown them.
        rules: String,
    },
    /// Refuse open requests.
    Deny(Which),
    /// Refuse open requests, and more.
    DenyWith { which: Which, denial: Denial },
    /// Answer an open question, or only show it.
    Answer(Reply),
    /// Bring the session back under control.
    Reconnect {
        /// Send the last prompt again, if no tool ran since.
        resend: bool,
    },
    /// Bring the session back under control, and have it continue its work.
    Continue,
    /// Abort the running turn.
    Stop,
    /// Interrupt the owner, then terminate it.
    End {
        /// The user confirmed that this session is to be ended.
        confirmed: bool,
    },
    /// Kill the owner.
    ForceQuit,
    /// Resume the session in a terminal.
    Resume,
    /// Bring the session's terminal to the front.
    ShowTerminal,
    /// Have Copilot ask in the session's terminal whether we may answer its permission requests.
    LetAnswer,
    /// Detach from a session that we are attached to.
    Detach,
}

/// Which open permission requests to answer. Each is named by its id, so that one that arrives later is never included.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Which {
    /// Those with these ids.
    These(Vec<String>),
    /// The one with this id, provided that it asks for exactly what the user was shown.
    Shown {
        id: String,
        /// What the user was shown.
        text: String,
    },
}

/// How open permission requests are answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Allowed, once.
    Approve,
    /// Allowed, and from now on whatever these rules say, in the words that the user was shown.
    Always { rules: String },
    /// Refused.
    Deny(Denial),
}

/// What goes with a refusal.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Denial {
    /// What the agent is told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Whether its turn is stopped. Its agent may then not hear the note.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stop: bool,
}

impl Decision {
    /// A plain refusal.
    pub const DENY: Self = Self::Deny(Denial { note: None, stop: false });

    /// Whether it allows what is requested.
    pub const fn approves(&self) -> bool {
        matches!(self, Self::Approve | Self::Always { .. })
    }

    /// Whether it says more than yes or no, which not every agent takes.
    pub fn says_more(&self) -> bool {
        *self != Self::Approve && *self != Self::DENY
    }
}

/// What to do about an open question. It is named by its id, so that one that arrives later is never answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reply {
    /// Show it and leave it open: the one with this id, or the oldest that can be answered.
    Look(Option<String>),
    /// Answer it, provided that it is the one that the user was shown.
    Give {
        /// Its id.
        request: String,
        /// [`Form::mark`](crate::form::Form::mark) of what the user was shown.
        shown: u64,
        /// The answer.
        with: Box<FormAnswer>,
    },
}

/// What is the same about an action for every session.
pub struct ActionSpec {
    /// Its name in JSON and on the command line.
    pub name: &'static str,
    /// Its label on a button that stands alone.
    pub label: &'static str,
    /// Its label in a session's menu, if it has another one there.
    menu_label: Option<&'static str>,
    /// What is said once it was carried out, after the session's name.
    done: &'static str,
    /// Who may ask for it.
    pub callers: Callers,
    /// What it orders. `None` if that takes a request or a question to answer.
    pub operation: Option<Operation>,
    flags: &'static [ActionFlag],
}

/// Who may ask for an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Callers {
    /// Anything that runs as the user.
    Anyone,
    /// Only a person: it answers what the user is asked, sends what counts as the user's word, or takes over or ends
    /// the work of a session.
    People,
}

/// Something that is true of some actions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ActionFlag {
    /// It is for one turn, and does nothing to a later one.
    ForTurn,
    /// A bridge can carry it out.
    OverBridge,
    /// It talks to the session's server, unless we are attached already. Success shows that the server works.
    AsksServer,
    /// It brings the session back, and gives it an owner if it has none. Few of these run at a time.
    Recovery,
    /// It is a recovery that counts as an attempt ([`Attempts`](crate::attempts::Attempts)).
    Counted,
    /// It may leave a prompt or an abort in the log, which must not count as the user's.
    LeavesMarks,
    /// It ends the owner's process, and with it every session that the process has open.
    EndsOwner,
    /// It shows something and changes nothing, so it is possible while something else is being done with the session.
    OnlyShows,
    /// It answers one of several things, each by its id: several of these wait for each other.
    Queued,
    /// It opens a window, so that its success shows without a report.
    OpensWindow,
}

impl Action {
    /// Its name in JSON and on the command line.
    pub const fn name(self) -> &'static str {
        self.spec().name
    }

    /// Its label on a button that stands alone.
    pub const fn label(self) -> &'static str {
        self.spec().label
    }

    /// What is said once it was carried out, after the session's name and a colon.
    pub const fn done(self) -> &'static str {
        self.spec().done
    }

    /// Its label in a session's menu.
    pub fn menu_label(self) -> &'static str {
        let spec = self.spec();
        spec.menu_label.unwrap_or(spec.label)
    }

    /// Whether this is true of it.
    pub fn is(self, wanted: ActionFlag) -> bool {
        self.spec().flags.contains(&wanted)
    }

    /// The action with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|action| action.name() == name)
    }

    /// Whether it keeps everything else from being done with the session meanwhile.
    pub fn excludes_others(self) -> bool {
        !self.is(OnlyShows)
    }
}

impl Operation {
    /// The requests that it answers, and how.
    pub fn decision(&self) -> Option<(&Which, Decision)> {
        Some(match self {
            Self::Approve(which) => (which, Decision::Approve),
            Self::Always { which, rules } => (which, Decision::Always { rules: rules.clone() }),
            Self::Deny(which) => (which, Decision::DENY),
            Self::DenyWith { which, denial } => (which, Decision::Deny(denial.clone())),
            _ => return None,
        })
    }

    /// The requests that it allows.
    pub const fn approved(&self) -> Option<&Which> {
        match self {
            Self::Approve(which) | Self::Always { which, .. } => Some(which),
            _ => None,
        }
    }

    /// The action that orders it.
    pub const fn action(&self) -> Action {
        match self {
            // What can be approved can be looked at.
            Self::Look(_) | Self::Approve(_) | Self::Always { .. } => Action::Approve,
            Self::Deny(_) | Self::DenyWith { .. } => Action::Deny,
            Self::Answer(_) => Action::Answer,
            Self::Continue => Action::Continue,
            Self::Reconnect { resend: false } => Action::Reconnect,
            Self::Reconnect { resend: true } => Action::Resend,
            Self::Stop => Action::Stop,
            Self::End { .. } => Action::End,
            Self::ForceQuit => Action::ForceQuit,
            Self::Resume => Action::Resume,
            Self::ShowTerminal => Action::ShowTerminal,
            Self::LetAnswer => Action::LetAnswer,
            Self::Detach => Action::Detach,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_action_has_its_own_name_and_its_own_operation() {
        for (index, action) in Action::ALL.into_iter().enumerate() {
            let earlier = &Action::ALL[..index];
            assert!(earlier.iter().all(|other| other.name() != action.name()), "{action:?}");
            if let Some(operation) = &action.spec().operation {
                assert_eq!(operation.action(), action);
            }
        }
    }

    #[test]
    fn an_order_names_its_action_on_the_wire() {
        for action in Action::ALL {
            let Some(operation) = &action.spec().operation else { continue };
            let name = match serde_json::to_value(operation).unwrap() {
                serde_json::Value::String(name) => name,
                value => value.as_object().unwrap().keys().next().unwrap().clone(),
            };
            // Sending the last prompt again is an option of `reconnect`.
            assert_eq!(name, if action == Action::Resend { "reconnect" } else { action.name() });
        }
    }

    #[test]
    fn a_counted_action_is_a_recovery_that_leaves_marks() {
        for action in Action::ALL.into_iter().filter(|action| action.is(Counted)) {
            assert!(action.is(Recovery) && action.is(LeavesMarks), "{action:?}");
        }
    }

    #[test]
    fn no_two_labels_read_alike() {
        for (index, action) in Action::ALL.into_iter().enumerate() {
            let earlier = &Action::ALL[..index];
            assert!(!action.label().is_empty() && !action.menu_label().is_empty(), "{action:?}");
            assert!(earlier.iter().all(|other| other.label() != action.label()), "{action:?}");
            assert!(earlier.iter().all(|other| other.menu_label() != action.menu_label()), "{action:?}");
        }
    }

    #[test]
    fn what_was_done_is_said_of_the_session() {
        let done = [Action::Approve, Action::Continue, Action::ForceQuit].map(Action::done);
        assert_eq!(done, ["approved", "continues its work", "ended"]);
        assert!(Action::ALL.into_iter().all(|action| !action.done().is_empty()));
    }
}
