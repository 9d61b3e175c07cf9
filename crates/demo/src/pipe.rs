//! What the demo and its stage tell each other over the stage's standard input and output: one JSON object a line.

use pilotlight_agents::copilot::bridge::wire::Order;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::PathBuf;

/// What the stage tells the demo.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "t", rename_all = "kebab-case")]
pub enum StageEvent {
    /// It is ready, and plays in this folder. This comes first.
    Ready { folder: PathBuf },
    /// A process owns this session from now on. A bridge would connect now.
    Joined { session: Box<str>, owner: u32 },
    /// It does no more.
    Left { session: Box<str> },
    /// What a bridge would report of the session, in its own words.
    Reported { session: Box<str>, message: Value },
    /// What became of an order.
    Did { id: u64, error: Option<Box<str>> },
}

/// What the demo has the stage do in a session.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct StageOrder {
    pub id: u64,
    pub session: Box<str>,
    pub order: Order,
}
