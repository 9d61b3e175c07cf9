//! Orders to act on a session, and the reports that come back: one vocabulary for the menu, the commands and the
//! control socket.

pub use super::action::{Decision, Denial, Operation, Reply, Which};

use super::action::ActionFlag;
use super::fleet::Label;
use super::form::Form;
use super::text::{NAME_MAX, plain};
use serde::{Deserialize, Serialize};

/// An order to do something with one session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Order {
    /// The session's full id.
    pub id: Box<str>,
    /// The real path of the Copilot home that the session is in, because a copy of a home has a session of the same id.
    /// `None` if the sender and the receiver watch the same homes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub home: Option<Box<str>>,
    /// The machine that the session is on, by its name in the settings. `None`: this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<Box<str>>,
    /// What is to be done. Named `ask` on the wire.
    #[serde(rename = "ask")]
    pub operation: Operation,
    /// The turn that it is for, by the id of the event that opened it; any other turn is left alone. `None` if the turn
    /// does not matter, or is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<Box<str>>,
    /// A turn that receives its model's answer is left alone. Set where a stop was offered because the session was silent.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unless_receiving: bool,
    /// What the user was asked about beforehand, and agreed to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agreed: Vec<Risk>,
    /// The folder in which a terminal resumes it, in place of the session's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<Box<str>>,
    /// A tray passes it on for a command, and not because the user clicked.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_command: bool,
    /// The session's label, for a sender that reports the outcome later. Never serialized.
    #[serde(skip)]
    pub who: Box<str>,
}

/// What is done only after the user agreed to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Risk {
    /// A Copilot that does not show what it has open may have the session open.
    OtherOwner,
    /// Only a file says that the process that is to end runs the session.
    OtherProcess,
    /// A session of a program goes on without what only that program knew.
    WithoutProgram,
}

/// A report on an order. Any number of reports, then exactly one end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OrderReport {
    /// A step of the work.
    Step(Step, String),
    /// The permission request about to be answered.
    Request(ShownRequest),
    Question(Box<Form>),
    /// The end of the work.
    End(Outcome),
}

/// Why a request is refused if its log entry differs from the server's text.
pub const LOG_DIFFERS: &str = "nothing was approved: its log says something else than the request, so one of them is broken or forged. Read it where it runs, and answer it there";

/// A whole permission request, in words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct ShownRequest {
    /// All of it.
    pub text: String,
    /// Whether every part of it reads as it is.
    #[serde(default)]
    pub verbatim: bool,
    /// What the session's log says of it in other words than its server or bridge, whose text this is: then one of them
    /// is wrong, and it is not approved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_log: Option<String>,
}

impl ShownRequest {
    /// One that reads as it is, and that the log has in the same words.
    pub fn verbatim(text: impl Into<String>) -> Self {
        Self { text: text.into(), verbatim: true, in_log: None }
    }
}

/// The steps of a recovery. Their names are the tags in the log. A step that sends something is reported beforehand,
/// because from then on it may have had its effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Step {
    /// Connect to the session's server as another client.
    Attach,
    /// Answer what it asks, or become the client that answers.
    #[serde(rename = "take-over")]
    Answer,
    /// Stop the running turn.
    Abort,
    /// Load the session in a server of our own, or in a terminal.
    Resume,
    /// Send the last prompt again.
    Resend,
    /// Check whether that took effect.
    Verify,
    /// Stop trying.
    GiveUp,
}

/// How an order ended, in words for the user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// Done as asked.
    Done(String),
    /// Failed: which step, why, and what to do next.
    Failed(String),
    /// Sent but not confirmed: what may have happened, and what is known.
    Unconfirmed(String),
    /// Not attempted, and why.
    Refused(String),
    /// The receiver does not watch this session.
    Unknown,
}

impl Order {
    /// Creates an order for no particular turn.
    pub fn new(id: &str, operation: Operation) -> Self {
        Self {
            id: id.into(),
            home: None,
            host: None,
            operation,
            turn: None,
            unless_receiving: false,
            agreed: Vec::new(),
            folder: None,
            by_command: false,
            who: "".into(),
        }
    }

    /// Adds the session's label.
    #[must_use]
    pub fn to(self, label: &Label) -> Self {
        Self { who: plain(&label.who, NAME_MAX), ..self }
    }

    /// Restricts the order to the home with this real path.
    pub fn in_home(self, home: &str) -> Self {
        Self { home: Some(home.into()), ..self }
    }

    /// Names the machine that the session is on.
    #[must_use]
    pub fn at(self, host: Option<&str>) -> Self {
        Self { host: host.map(Into::into), ..self }
    }

    /// Whether it may be for a session in the home with this real path.
    pub fn is_for(&self, home: &str) -> bool {
        self.home.as_ref().is_none_or(|meant| **meant == *home)
    }

    /// Whether both ask for the same, of a session that may be called differently by now.
    pub fn is_same_as(&self, other: &Self) -> bool {
        *self == Self { who: self.who.clone(), ..other.clone() }
    }

    /// Makes a stop leave a turn alone that receives its model's answer.
    pub fn unless_receiving(self) -> Self {
        Self { unless_receiving: self.operation == Operation::Stop, ..self }
    }

    /// Restricts the order to one turn, if its operation affects a turn.
    pub fn on(mut self, turn: Option<&str>) -> Self {
        self.turn = turn.filter(|_| self.operation.action().is(ActionFlag::ForTurn)).map(Into::into);
        self
    }
}

impl Step {
    /// Whether the step sends something to the session.
    pub const fn sends(self) -> bool {
        matches!(self, Self::Answer | Self::Abort | Self::Resume | Self::Resend)
    }

    /// Its tag in the log.
    pub const fn tag(self) -> &'static str {
        match self {
            Self::Attach => "attach",
            Self::Answer => "take-over",
            Self::Abort => "abort",
            Self::Resume => "resume",
            Self::Resend => "resend",
            Self::Verify => "verify",
            Self::GiveUp => "give-up",
        }
    }

    /// What is done in it, for people.
    pub const fn doing(self) -> &'static str {
        match self {
            Self::Attach => "connecting",
            Self::Answer => "answering",
            Self::Abort => "stopping",
            Self::Resume => "resuming",
            Self::Resend => "prompting",
            Self::Verify => "checked",
            Self::GiveUp => "giving up",
        }
    }
}

impl Outcome {
    /// Its words for the user.
    pub fn words(&self) -> &str {
        match self {
            Self::Done(words) | Self::Failed(words) | Self::Unconfirmed(words) | Self::Refused(words) => words,
            Self::Unknown => "this session no longer exists",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::action::Action;
    use serde_json::json;

    #[test]
    fn orders_that_are_carried_out_differently_are_not_the_same() {
        let stop = Order::new("a", Operation::Stop);
        assert!(stop.is_same_as(&Order { who: "another name".into(), ..stop.clone() }));
        assert!(!stop.is_same_as(&stop.clone().unless_receiving()));
    }

    #[test]
    fn an_order_is_for_the_home_that_it_names() {
        let any = Order::new("a", Operation::Stop);
        assert!(any.is_for("/home/dev/.copilot") && any.is_for("/srv/copy"));
        let one = any.in_home("/home/dev/.copilot");
        assert!(one.is_for("/home/dev/.copilot") && !one.is_for("/srv/copy"));
    }

    #[test]
    fn only_an_order_about_a_turn_names_it() {
        for operation in Action::ALL.into_iter().filter_map(|action| action.spec().operation.clone()) {
            let turn = Order::new("a", operation.clone()).on(Some("turn")).turn;
            let is_about_one = !matches!(
                operation,
                Operation::End { .. }
                    | Operation::ForceQuit
                    | Operation::Resume
                    | Operation::ShowTerminal
                    | Operation::Detach
            );
            assert_eq!(turn.is_some(), is_about_one, "{operation:?}");
            assert_eq!(Order::new("a", operation).on(None).turn, None);
        }
    }

    #[test]
    fn an_order_arrives_as_it_was_sent_but_for_the_label() {
        let label = Label { who: "billing\napi".into(), agent: None, title: Some("Write the migration".into()) };
        let order = Order::new("a", Operation::Continue).in_home("/home/dev").on(Some("turn")).to(&label);
        assert_eq!(&*order.who, "billing api");
        let sent = serde_json::to_string(&order).unwrap();
        assert!(!sent.contains("billing"), "{sent}");
        assert_eq!(serde_json::from_str::<Order>(&sent).unwrap(), Order { who: "".into(), ..order });
    }

    /// From such a step on, it may have had its effect.
    #[test]
    fn a_step_that_reaches_the_session_is_one_that_sends() {
        let sends = [Step::Answer, Step::Abort, Step::Resume, Step::Resend];
        let sends_nothing = [Step::Attach, Step::Verify, Step::GiveUp];
        assert!(sends.into_iter().all(Step::sends) && !sends_nothing.into_iter().any(Step::sends));
        for step in sends.into_iter().chain(sends_nothing) {
            assert_eq!(json!(step), json!(step.tag()), "in the log and on the wire");
        }
    }

    #[test]
    fn every_outcome_has_words() {
        let outcomes: [fn(String) -> Outcome; 4] =
            [Outcome::Done, Outcome::Failed, Outcome::Unconfirmed, Outcome::Refused];
        for outcome in outcomes {
            assert_eq!(outcome("it has ended".into()).words(), "it has ended");
        }
        assert!(!Outcome::Unknown.words().is_empty());
    }

    #[test]
    fn an_order_names_the_machine_that_it_is_for() {
        let host = |host| Order::new("a", Operation::Stop).at(host).host;
        assert_eq!((host(None), host(Some("devbox"))), (None, Some("devbox".into())));
    }
}
