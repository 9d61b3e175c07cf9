//! All sessions together: their rows, order and names, and what changed between two rows.

mod background;
mod finder;
mod label;
mod naming;
mod remote_row;
mod row;
mod summary;

pub use super::session::{About, Kind, Session};
pub use super::short_reason::TurnView;
pub use super::verdict::status::Group;
pub use background::{BackgroundView, SubAgentView};
pub use finder::Finder;
pub use label::{LABEL_DISTINCT_WIDTH, Label, ShortIds, short_id};
pub use naming::distinguish;
pub use row::{Background, NEARLY_FULL, OwnerView, RequestView, Row};
pub use summary::folded;
pub use summary::{State, Summary, limit_ended, sort};
