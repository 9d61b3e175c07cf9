//! Finds the server of a session.

use crate::channel::failure::{Failure, FailureKind};
use crate::channel::site::Site;
use crate::copilot::server::client::{Activity, Link};
use pilotlight_core::order::Step;
use std::path::Path;

/// Finds the server that has the session loaded, and connects to it.
pub(in crate::copilot::server) async fn find(site: &Site) -> Result<(Link, Activity), Failure> {
    let cwd = site.cwd.as_deref().unwrap_or(Path::new(""));
    let mut faults = Vec::new();
    for endpoint in &site.endpoints {
        let attempt = async {
            let link = Link::open(endpoint, cwd).await?;
            let activity = link.reach(&site.id, site.owned).await?;
            Ok((link, activity))
        };
        match attempt.await {
            Ok((link, activity)) => {
                site.step(Step::Attach, format!("connected to {}", link.place()));
                return Ok((link, activity));
            }
            Err(fault) => faults.push(fault),
        }
    }
    if faults.is_empty() {
        return Err(Failure::refusal(Step::Attach, "no known server could have this session"));
    }
    let why = faults.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
    Err(Failure { step: Step::Attach, why, next: None, kind: FailureKind::Failed, faults })
}
