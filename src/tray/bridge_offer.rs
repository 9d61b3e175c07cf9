//! The offer to install the bridge of an agent to its terminals: a row of the menu while a session in a terminal has none. It
//! goes for good once it was clicked, whatever the user then decided, and once that bridge is installed; the entry under
//! Settings stays.

use pilotlight_agents::adapter::{Adapter, FIRST};
use pilotlight_system::log::{self, cause};
use pilotlight_system::{paths, plain_file};
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The file in the state folder that marks the offer of the first agent's as settled. Those of others have its name behind it.
const SETTLED: &str = "bridge-offered";

/// Whether the bridge is still to be offered. Clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct BridgeOffer {
    /// The mark that survives restarts. Without a place for one, nothing is offered: the row would come back each time.
    marker: Option<PathBuf>,
    open: Arc<AtomicBool>,
}

impl BridgeOffer {
    /// Reads from the state folder whether the offer of this agent's bridge was settled by an earlier run.
    pub(crate) fn load(state_folder: Option<PathBuf>, agent: &'static dyn Adapter) -> Self {
        let name = if agent == FIRST { SETTLED.to_owned() } else { format!("{SETTLED}-{}", agent.name()) };
        let marker = state_folder.map(|folder| folder.join(name));
        let open = marker.as_ref().is_some_and(|marker| !marker.exists());
        Self { marker, open: Arc::new(AtomicBool::new(open)) }
    }

    /// Whether the offer stands.
    pub(crate) fn is_open(&self) -> bool {
        self.open.load(Ordering::Acquire)
    }

    /// The user knows of the bridge now: it is not offered again, by this run or a later one.
    pub(crate) fn settle(&self) {
        if !self.open.swap(false, Ordering::AcqRel) {
            return;
        }
        if let Some(marker) = &self.marker
            && let Err(error) = write(marker)
        {
            log::warn!(
                "the bridge cannot be noted as shown, so it is shown again at the next start: {}",
                cause(&error)
            );
        }
    }
}

fn write(marker: &std::path::Path) -> std::io::Result<()> {
    if let Some(folder) = marker.parent() {
        paths::make_folder(folder)?;
    }
    plain_file::create(marker)?.write_all(b"the bridge to terminals was offered\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use pilotlight_agents::adapter::ADAPTERS;

    #[test]
    fn a_settled_offer_stays_settled() {
        let scratch = tempfile::tempdir().unwrap();
        let state = Some(scratch.path().join("made"));
        let offer = BridgeOffer::load(state.clone(), FIRST);
        let clone = offer.clone();
        assert!(offer.is_open() && BridgeOffer::load(state.clone(), FIRST).is_open());
        clone.settle();
        assert!(!offer.is_open() && !BridgeOffer::load(state.clone(), FIRST).is_open());
        assert!(BridgeOffer::load(state, ADAPTERS[1]).is_open(), "another agent's is another offer");
        assert!(!BridgeOffer::load(None, FIRST).is_open(), "it could not be remembered");
    }
}
