//! The bridge to sessions in plain terminals: whether Copilot finds what it was told to start, and what runs of it.

use super::{Finding, Fix, Ground};
use crate::agent::copilot::bridge::files::Files;
use crate::agent::copilot::bridge::plugin::{Installed, installed};
use crate::core::fleet::{Kind, Session};
use crate::core::owner::Owner;
use crate::core::text::counted;
use crate::system::paths;

const CHECK: &str = "bridge";

/// What of it is on the disk, and in Copilot's settings.
pub(super) fn bridge(ground: &Ground) -> Vec<Finding> {
    let Some(project) = paths::project() else { return Vec::new() };
    let files = Files::new(&project);
    let (is_there, is_current) = (files.extension().is_file(), files.is_current());
    let other_program = files.other_program();
    let of_home = |(number, home): (usize, &std::path::PathBuf)| {
        let (shown, place) = (home.display(), format!("home {}", number + 1));
        let finding = match installed(home, &files.marketplace) {
            Installed::No => return None,
            Installed::Yes if !is_there => Finding::problem(
                CHECK,
                format!("{shown}: Copilot looks for the bridge in {}, which is gone", files.marketplace.display()),
                "`pilotlight bridge install` puts it back; `pilotlight bridge remove` takes it out of Copilot's settings, which \
                 else complains at each start",
            )
            .redacted(format!("{place}: the bridge's folder is gone"))
            .fixed_by(Fix::Bridge(files.clone())),
            Installed::Yes if files.key().is_none() => Finding::problem(
                CHECK,
                format!("{shown}: the bridge is installed, and its key is gone: it reaches nobody"),
                "run `pilotlight bridge install`, and start your sessions anew",
            )
            .redacted(format!("{place}: the bridge's key is gone"))
            .fixed_by(Fix::Bridge(files.clone())),
            Installed::Yes if !is_current => Finding::warning(
                CHECK,
                format!("{shown}: the bridge is of another version than this program"),
                "run `pilotlight bridge install`: it counts for sessions that are started from then on",
            )
            .redacted(format!("{place}: the bridge is of another version"))
            .fixed_by(Fix::Bridge(files.clone())),
            Installed::Yes if let Some(program) = &other_program => Finding::warning(
                CHECK,
                format!("{shown}: the bridge takes {} for Pilotlight, and not this program", program.display()),
                "where that is not the tray that you run, `pilotlight bridge install` by the right one mends it",
            )
            .redacted(format!("{place}: the bridge takes another program for Pilotlight"))
            .fixed_by(Fix::Bridge(files.clone())),
            Installed::Yes => Finding::ok(CHECK, format!("{shown}: sessions in plain terminals have the bridge"))
                .redacted(format!("{place}: the bridge is on")),
            Installed::Forbidden => Finding::warning(
                CHECK,
                format!("{shown}: a policy of your organisation keeps Copilot from starting the bridge"),
                "ask whoever made /etc/github-copilot/managed-settings.json, or run `pilotlight bridge remove`",
            )
            .redacted(format!("{place}: a policy forbids the bridge")),
            Installed::SwitchedOff => Finding::warning(
                CHECK,
                format!("{shown}: the bridge is switched off in Copilot"),
                "`copilot plugin enable pilotlight@pilotlight` switches it on, where extensions are not switched off as a whole \
                 (`extensions` in its settings.json); `pilotlight bridge remove` removes it",
            )
            .redacted(format!("{place}: the bridge is switched off in Copilot")),
            Installed::Elsewhere => Finding::warning(
                CHECK,
                format!("{shown}: a bridge is installed there from another folder than {}", files.marketplace.display()),
                "`pilotlight bridge install` puts this one in its place",
            )
            .redacted(format!("{place}: the bridge is installed from another folder")),
        };
        Some(finding)
    };
    let found: Vec<_> = ground.homes.iter().enumerate().filter_map(of_home).collect();
    if found.is_empty() {
        let said = "not installed: sessions in plain terminals are watched, and `pilotlight bridge install` lets you answer them";
        return vec![Finding::ok(CHECK, said).redacted("the bridge is not installed")];
    }
    found
}

/// What runs of it, as the tray knows: `sessions` have taken that over.
pub(crate) fn running(sessions: &[Session]) -> Option<Finding> {
    let bridged: Vec<_> = sessions.iter().filter(|session| session.control.bridge.is_some()).collect();
    let is_bare = |session: &&Session| {
        let alive = matches!(session.owner, Owner::Alive { .. } | Owner::Opened { .. });
        alive && session.about.kind == Kind::Terminal && session.control.bridge.is_none()
    };
    let bare = sessions.iter().filter(is_bare).count();
    let old = bridged.iter().filter(|session| session.control.old_bridge).count();
    if bridged.is_empty() {
        return None;
    }
    Some(if old > 0 {
        let said = format!("an older version of the bridge runs in {}", counted(old, "session"));
        Finding::warning(CHECK, said, "it goes on working; start these sessions anew to have the newer one")
            .told_to_all()
    } else if bare > 0 {
        let said = format!(
            "{} in a terminal without a bridge: started before it, or extensions are off",
            counted(bare, "session")
        );
        Finding::warning(CHECK, said, "start them anew, where you want to answer them from here").told_to_all()
    } else {
        Finding::ok(CHECK, format!("it runs in {}", counted(bridged.len(), "session"))).told_to_all()
    })
}
