//! The bridge to sessions in plain terminals.
//!
//! Copilot's own interface has no server that we could talk to. What it has are extensions: a program that Copilot starts
//! beside each interactive session and that may ask it for what its user may. Ours (`assets/bridge/extension.mjs`) connects out
//! to us, and does what the user clicked here.
//!
//! - [`files`] is what lies on our disk: the extension in a marketplace of ours, and the key.
//! - [`plugin`] has Copilot install and remove it, and reads whether it is on.
//! - [`known`] is what it told of its session, and [`carry`] what is done over it.
//! - [`wire`] is what both say to each other, [`socket`] our end of it, and `peer` who may be at the other.

pub mod carry;
pub mod files;
pub mod known;
#[cfg(unix)]
pub mod peer;
pub mod plugin;
pub mod socket;
pub mod wire;

/// What the plugin is called, and its marketplace.
pub(crate) const NAME: &str = "pilotlight";
/// The plugin in Copilot's words.
pub(crate) const PLUGIN: &str = "pilotlight@pilotlight";
/// The extension in Copilot's words: where it asks its user, and where it keeps what was answered.
pub(crate) const EXTENSION: &str = "plugin:pilotlight:pilotlight";
/// The version of the protocol between the extension and us.
pub(crate) const PROTOCOL: u32 = 1;
/// The releases of the Copilot CLI that the bridge was tried with.
pub(crate) const TRIED: [&str; 4] = ["1.0.83", "1.0.86", "1.0.92", "1.0.102"];
