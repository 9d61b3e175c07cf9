//! All sessions together: their rows, order and names, and what changed between two rows.

mod far_row;
mod finder;
mod glance;
mod label;
mod naming;
mod row;

pub use super::gist::TurnView;
pub use super::session::{About, Kind, Session};
pub use super::verdict::status::Group;
pub use finder::Finder;
pub use glance::folded;
pub use glance::{Glance, State, limit_ended, sort};
pub use label::{LABEL_DISTINCT_WIDTH, Label, ShortIds, short_id};
pub use naming::distinguish;
pub use row::{Background, OwnerView, Row};
