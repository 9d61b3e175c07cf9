//! Follows the homes that nobody named, as long as the settings say so: those that live processes use, and those that were used
//! before and are still there.

use crate::discovered::Discovered;
use crate::disk::Disk;
use crate::parts::settings_file::SettingsFile;
use crate::world::World;
use pilotlight_agents::adapter::Adapter;
use pilotlight_agents::home::Home;
use pilotlight_agents::homes::sought;
use pilotlight_system::log::{self, private};
use std::path::PathBuf;

impl Disk {
    /// Also follows the homes that nobody named, if the settings say so. Those that are known are followed already.
    pub(crate) fn discover_homes(&mut self, world: &World, mut discovered: Discovered) {
        // A mistake in the settings, which switches it off as well, forgets nothing.
        if !world.config.homes.discover && self.settings_file.as_ref().is_some_and(SettingsFile::is_valid) {
            discovered.clear();
        }
        self.discovered = Some(discovered);
        self.seek_homes(world);
    }

    /// Applies the settings: whoever switches it off has all of these homes forgotten.
    pub(crate) fn discovery_changed(&mut self, world: &mut World) {
        let is_off = !world.config.homes.discover && self.settings_file.as_ref().is_some_and(SettingsFile::is_valid);
        if let Some(discovered) = self.discovered.as_mut().filter(|_| is_off) {
            world.changes.homes |= !discovered.all().is_empty();
            discovered.clear();
        }
        self.seek_homes(world);
        self.starts.forget_installed();
        if !self.sought(world).is_empty() {
            self.process_scans.request(world.now().awake);
        }
    }

    /// Looks for the homes of all agents that are switched on from now on, or for none.
    pub(super) fn seek_homes(&mut self, world: &World) {
        self.process_scans.seek(self.sought(world));
    }

    /// The agents whose homes are looked for.
    pub(super) fn sought(&self, world: &World) -> Vec<&'static dyn Adapter> {
        let is_on = self.discovered.is_some() && world.config.homes.discover;
        if is_on { sought(&world.config.agents.off) } else { Vec::new() }
    }

    /// The homes that nobody named, and that are to be followed now.
    pub(super) fn discovered_homes(&self, world: &World) -> Vec<Home> {
        let known = self.discovered.as_ref().filter(|_| world.config.homes.discover);
        known.map(Discovered::homes).unwrap_or_default()
    }

    /// The folders of those that are followed.
    pub(crate) fn discovered_folders(&self) -> Vec<PathBuf> {
        let homes = self.discovered.iter().flat_map(Discovered::homes);
        homes.map(|home| home.folder().to_owned()).collect()
    }

    /// Takes up the homes that the last scan found in use.
    pub(super) fn take_homes_in_use(&mut self, world: &mut World) {
        if self.sought(world).is_empty() {
            return;
        }
        let (homes, now) = (&self.homes, world.now().wall);
        let Some(discovered) = &mut self.discovered else { return };
        let before = discovered.homes();
        let is_named = |home: &&Home| !discovered.has(home);
        let named = homes.wanted().into_iter().filter(|number| !homes.is_beside(*number));
        let named: Vec<Home> = named.map(|number| homes.home(number)).filter(is_named).cloned().collect();
        let in_use = self.process_scans.openings().homes_in_use();
        if !discovered.note(in_use, &named.iter().collect::<Vec<_>>(), now) {
            return;
        }
        let after = discovered.homes();
        for home in after.iter().filter(|home| !before.contains(home)) {
            let (agent, folder) = (home.adapter().name(), home.folder().display());
            log::info!(tag = "homes", "a home of {} that nobody named is followed: {}", agent, private(&folder));
        }
        let left: Vec<Home> = before.into_iter().filter(|home| !after.contains(home)).collect();
        world.changes.homes = true;
        self.follow_discovered(world, &after, &left);
    }
}
