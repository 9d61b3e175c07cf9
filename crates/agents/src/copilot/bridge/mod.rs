//! The bridge to sessions in plain terminals.
//!
//! Copilot's own interface has no server that we could talk to, but it has extensions: programs that Copilot starts
//! with each interactive session, and that may do there what its user may. Ours (`crates/agents/src/copilot/bridge/extension.mjs`)
//! connects to our socket and does what the user clicks in Pilotlight.
//!
//! - [`files`] writes the extension, in a marketplace of ours, and the key.
//! - [`plugin`] has Copilot install and remove the extension, and reads whether it is enabled.
//! - [`Bridges`] are those that are connected. [`known`] holds the session's state as reported by the extension, and
//!   `carry` carries out orders over it.
//! - [`wire`] is the protocol, [`socket`] our end of it, and `peer` decides which processes may connect.

mod bridges;
pub(crate) mod carry;
pub mod files;
pub mod known;
#[cfg(unix)]
pub mod peer;
pub mod plugin;
pub mod socket;
pub mod wire;

pub use bridges::{BridgeConfig, Bridges};
pub use files::Files;
pub use socket::{BridgeEvent, is_listened_to};

/// The name of the plugin and of its marketplace.
pub(crate) const NAME: &str = "pilotlight";
/// Copilot's id for the plugin.
pub const PLUGIN: &str = "pilotlight@pilotlight";
/// Copilot's id for the extension, shown when it asks for the user's consent and recorded with the answer.
pub(crate) const EXTENSION: &str = "plugin:pilotlight:pilotlight";
/// The version of the protocol between the extension and us.
pub const PROTOCOL: u32 = 2;
/// The releases of the Copilot CLI that the bridge was tested with.
pub(crate) const TESTED_RELEASES: [&str; 4] = ["1.0.83", "1.0.86", "1.0.92", "1.0.102"];
/// The script with which Copilot runs an extension.
pub(super) const BOOTSTRAP: &str = "extension_bootstrap.mjs";
