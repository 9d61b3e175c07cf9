//! The lines of the pipe between two machines. Both ends speak one schema, and no other: the first line says which.

use pilotlight_core::order::{Order, OrderReport};
use pilotlight_core::remote::SessionReport;
use pilotlight_core::time::Time;
use pilotlight_system::identity;
use serde::{Deserialize, Serialize};

/// The number of the schema. It changes with each change of these lines, of an order or of a report.
pub(crate) const SCHEMA: u32 = 3;

/// What the machine with the sessions says.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FromHost {
    /// The first line.
    Pilotlight(Hello),
    /// A session, new or changed.
    Session(Box<SessionReport>),
    /// A session that is gone, by its id.
    Gone(Box<str>),
    /// Every session was told once.
    Ready,
    /// When something was last heard of these sessions, which did not change otherwise.
    Heard(Vec<(Box<str>, Time)>),
    /// A session of those that were asked for by `history`. It may have been told as one that is watched, too.
    Past(Box<SessionReport>),
    /// All of these were told.
    AllPast,
    /// A report on the order of this number.
    Report { n: u64, report: OrderReport },
    /// The answer to a ping.
    Pong(u64),
    /// It ends, and why.
    Over(String),
}

/// What the machine with the user says.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ToHost {
    /// An order, with a number for its reports.
    Order { n: u64, order: Box<Order> },
    /// The order of this number is not wanted any more.
    TakeBack(u64),
    /// The user has seen the sessions of these ids.
    Seen(Vec<Box<str>>),
    /// To be answered at once.
    Ping(u64),
    /// Whoever asks gives orders: the bridges to terminals are listened for.
    Acts,
    /// To be told of all sessions once, also of those that ended long ago.
    History,
}

/// How a line begins that is for a shell in place of `serve`, if one reads it.
pub const STARTS_AGAIN: &str = "exec ";

/// Maximum number of sessions that are shown of one machine, besides those that are told of as past.
pub const SHOWN_MAX: usize = 1000;
/// Maximum number of sessions that are told of as past.
pub const PAST_MAX: usize = 10_000;

/// The first line: who speaks, and how.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Hello {
    pub version: Box<str>,
    pub(crate) schema: u32,
    /// The wall clock there.
    pub now: Time,
    pub system: Box<str>,
    pub architecture: Box<str>,
    /// A tray runs there, and does what is asked.
    pub has_tray: bool,
    /// By which the machine and its user are known again under another name, if they can be.
    #[serde(default)]
    pub machine: Option<Box<str>>,
}

/// As much of a first line as every version has.
#[derive(Debug, Deserialize)]
pub(crate) struct AnyHello {
    pub(crate) pilotlight: AnyVersion,
}

#[derive(Debug, Deserialize)]
pub(crate) struct AnyVersion {
    pub(crate) version: Box<str>,
    pub(crate) schema: u32,
}

impl Hello {
    pub(super) fn new(now: Time, has_tray: bool) -> Self {
        Self {
            version: env!("CARGO_PKG_VERSION").into(),
            schema: SCHEMA,
            now,
            system: std::env::consts::OS.into(),
            architecture: std::env::consts::ARCH.into(),
            has_tray,
            machine: identity::own_machine(),
        }
    }
}
