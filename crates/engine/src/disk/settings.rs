//! Follows the settings file, and the homes that the settings lead to.

use crate::disk::Disk;
use crate::parts::settings_file::{SettingsFile, SettingsSource};
use crate::view::View;
use crate::world::World;
use pilotlight_agents::home::Home;
use pilotlight_agents::homes::Followed;
use pilotlight_core::session::{HomeId, Key};
use pilotlight_system::paths;
use std::collections::HashSet;

impl Disk {
    /// Follows a settings file.
    pub(crate) fn follow_settings(&mut self, world: &World, source: SettingsSource) {
        let file = self.settings_file.insert(SettingsFile::new(source, &world.config));
        let homes = file.homes(&world.config, &[]);
        self.await_homes(homes);
    }

    /// Watches the folder that the file is in now: the file may be a symlink.
    pub(crate) fn watch_config(&mut self) {
        if let Some(file) = &self.settings_file {
            self.watcher.watch_config(file.path());
        }
    }

    /// Starts to watch the file, and reports its problems to the view.
    pub(crate) fn start_following_config(&mut self, world: &World, view: &mut dyn View) {
        let Some(file) = &self.settings_file else { return };
        // If our own folder does not exist yet, the file may be created in it later.
        if let (Some(folder), Some(project)) = (file.path().parent(), paths::project())
            && *folder == paths::config_folder(&project)
        {
            let _ = paths::make_folder(folder); // if that fails, no file can be created in it either
        }
        file.notify(view, &world.config, &[], true);
        self.watch_config();
    }

    /// Notes that the file has changed: it is read once it stays unchanged.
    pub(super) fn config_was_written(&mut self, world: &World) {
        if let Some(file) = &mut self.settings_file {
            file.was_written(world.now().awake);
        }
    }

    /// Checks whether the file was written without an event, and whether it is still watched.
    pub(super) fn check_config(&mut self, world: &World) {
        if self.settings_file.as_ref().is_some_and(SettingsFile::missed_a_write) {
            // The watched folder may have been replaced.
            self.watcher.renew();
            self.config_was_written(world);
        }
        self.watch_config();
    }

    /// Follows exactly the homes that the settings lead to now, and those with a session that `is_attached` says we are
    /// attached to. Returns, in words, what must wait for the next start.
    pub(crate) fn follow_homes(&mut self, world: &mut World, is_attached: impl Fn(&Key) -> bool) -> Vec<String> {
        let mut later = Vec::new();
        let discovered = self.discovered_homes(world);
        let wanted = self.settings_file.as_ref().map(|file| file.homes(&world.config, &discovered));
        let Some(wanted) = wanted else { return later };
        let wanted = self.await_homes(wanted);
        for home in self.homes.wanted() {
            if self.homes.is_beside(home) || wanted.iter().any(|wanted| self.homes.home(home).is(wanted)) {
                continue;
            }
            if world.fleet.keys().any(|key| key.home == home && is_attached(&key)) {
                later.push(
                    "A home that was taken out stays until the next start: Pilotlight is attached to a session in it."
                        .into(),
                );
                continue;
            }
            self.leave_home(world, home);
        }
        self.follow_more(wanted);
        self.check_homes(world);
        self.start_listing(world, &self.homes.numbers());
        later
    }

    /// Follows what the settings lead to now with these homes that nobody named, and no longer those of them that `left` names.
    pub(super) fn follow_discovered(&mut self, world: &mut World, discovered: &[Home], left: &[Home]) {
        let Some(file) = &self.settings_file else { return };
        let wanted = file.homes(&world.config, discovered);
        let wanted = self.await_homes(wanted);
        for home in self.homes.wanted() {
            let its = self.homes.home(home);
            if !self.homes.is_beside(home) && left.contains(its) && !wanted.iter().any(|wanted| its.is(wanted)) {
                self.leave_home(world, home);
            }
        }
        self.follow_more(wanted);
        self.check_homes(world);
    }

    /// Follows a home no longer.
    fn leave_home(&mut self, world: &mut World, home: HomeId) {
        let of_home = |key: &Key| key.home == home;
        let keys: HashSet<_> = self.history.iter().chain(world.fleet.keys()).filter(of_home).collect();
        for key in keys {
            self.remove_session(world, &key);
        }
        self.history.forget_home(home);
        self.stop_following(home);
    }

    /// Follows the homes that agents have made since: one that is used for the first time. Called when something appears
    /// where one would be, and with the rescan, for places that cannot be watched.
    pub(super) fn follow_new_homes(&mut self, world: &World) {
        if self.file_systems.is_any_silent() {
            return; // it may be asked for one
        }
        let Some(file) = self.settings_file.as_ref().filter(|file| file.may_grow()) else { return };
        let (wanted, awaited) = (file.homes(&world.config, &self.discovered_homes(world)), self.awaited.len());
        let wanted = self.await_homes(wanted);
        if self.follow_more(wanted) {
            self.check_homes(world);
        } else if self.awaited.len() != awaited {
            self.watch_home_paths(world, false);
        }
    }

    fn stop_following(&mut self, home: HomeId) {
        self.agenda.forget_home(home);
        self.homes.unfollow(home);
        self.watcher.set_followed(home, self.homes.home(home).watch_plan(), None);
        // Another home may be the same folder by another name, or below it: it is watched again when it is next read.
        self.watcher.forget(self.homes.root(home));
    }

    /// Follows the homes of live processes that share sessions with one that is followed.
    pub(super) fn follow_homes_besides(&mut self, world: &World) {
        // The home of a process in another mount namespace is below `/proc/PID/root`, and gone with the process.
        let is_gone = |home: &HomeId| self.homes.is_beside(*home) && !self.homes.home(*home).folder().is_dir();
        let gone: Vec<_> = self.homes.numbers().into_iter().filter(is_gone).collect();
        gone.into_iter().for_each(|home| self.stop_following(home));
        let besides = self.process_scans.openings().homes_besides().map(|(adapter, home)| (adapter, home.to_owned()));
        let followed = besides.collect::<Vec<_>>().into_iter().filter_map(|(adapter, home)| {
            let number = self.homes.follow_beside(Home::of(adapter, home))?;
            let home = self.homes.home(number);
            self.watcher.set_followed(number, home.watch_plan(), Some(home.root()));
            Some(number)
        });
        if followed.count() > 0 {
            self.check_homes(world);
        }
    }

    /// Notes where homes are made that are still to come. Returns those to follow now.
    fn await_homes(&mut self, wanted: Followed) -> Vec<Home> {
        let may_grow = self.settings_file.as_ref().is_some_and(SettingsFile::may_grow);
        let awaited = wanted.awaited.iter().filter(|_| may_grow);
        self.awaited = awaited.map(|home| home.folder().to_owned()).collect();
        wanted.homes
    }

    /// Follows these, too. Returns whether one of them was not followed.
    fn follow_more(&mut self, wanted: Vec<Home>) -> bool {
        let mut is_new = false;
        for home in wanted {
            let is_it = |number: HomeId| self.homes.home(number).is(&home) && !self.homes.is_beside(number);
            if self.homes.wanted().into_iter().any(is_it) {
                continue;
            }
            if let Some(number) = self.homes.follow(home) {
                let home = self.homes.home(number);
                self.watcher.set_followed(number, home.watch_plan(), Some(home.root()));
                is_new = true;
            }
        }
        is_new
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::last_seen::LastSeen;
    use pilotlight_core::session::HomeId;
    use std::fs;
    use std::time::Duration;
    use tokio::time::timeout;

    #[test]
    fn case_287_the_home_of_an_agent_that_is_used_for_the_first_time_is_followed_with_the_next_rescan() {
        let scratch = tempfile::tempdir().unwrap();
        let (first, later) = (Home::at(&scratch.path().join("first")), Home::at(&scratch.path().join("later")));
        let (mut disk, world) = Disk::alone(std::slice::from_ref(&first), Config::default(), LastSeen::default());
        let made = later.clone();
        let homes = move |_: &Config, _: &[Home]| {
            let there = [&made].into_iter().filter(|home| home.root().is_dir());
            let homes = [&first].into_iter().chain(there).cloned().collect();
            Followed { homes, awaited: Vec::new() }
        };
        let (path, problems) = (scratch.path().join("config.toml"), Vec::new());
        disk.follow_settings(
            &world,
            SettingsSource { path, problems, homes: Box::new(homes), saved: None, may_grow: true },
        );
        disk.rescan(&world);
        assert_eq!(disk.homes.numbers(), [HomeId(0)]);
        fs::create_dir_all(later.path("one")).unwrap();
        disk.rescan(&world);
        assert_eq!(disk.homes.numbers(), [HomeId(0), HomeId(1)]);
        assert!(disk.agenda.listings.iter().any(|listing| listing.home == HomeId(1)), "its sessions are listed");
    }

    /// Given: a folder in which an agent would make its home, itself not there yet. -> What happens beside it causes no hint;
    /// the home is followed as soon as it is made.
    #[tokio::test]
    async fn case_537_the_home_of_an_agent_that_is_used_for_the_first_time_is_followed_when_it_is_made() {
        let scratch = tempfile::tempdir().unwrap();
        let base = scratch.path().canonicalize().unwrap();
        let (first, later) = (Home::at(&base.join("first")), Home::at(&base.join("user/later")));
        fs::create_dir_all(first.root()).unwrap();
        let (mut disk, mut world) = Disk::alone(std::slice::from_ref(&first), Config::default(), LastSeen::default());
        let (followed, made) = (first.clone(), later.clone());
        let homes = move |_: &Config, _: &[Home]| match made.folder().is_dir() {
            true => Followed { homes: vec![followed.clone(), made.clone()], awaited: Vec::new() },
            false => Followed { homes: vec![followed.clone()], awaited: vec![made.clone()] },
        };
        let (path, problems) = (base.join("config.toml"), Vec::new());
        disk.follow_settings(
            &world,
            SettingsSource { path, problems, homes: Box::new(homes), saved: None, may_grow: true },
        );
        disk.check_homes(&world);
        while let Ok(hints) = timeout(Duration::from_millis(50), disk.watcher.changed(true)).await {
            disk.handle_file_events(&mut world, hints);
        }
        fs::write(base.join("beside"), "").unwrap();
        assert!(timeout(Duration::from_millis(100), disk.watcher.changed(true)).await.is_err(), "the loop sleeps");
        fs::create_dir_all(later.path("one")).unwrap();
        while disk.homes.numbers().len() < 2 {
            let hints = timeout(Duration::from_secs(2), disk.watcher.changed(true)).await.unwrap();
            disk.handle_file_events(&mut world, hints);
        }
        assert!(disk.awaited.is_empty());
        assert!(disk.agenda.listings.iter().any(|listing| listing.home == HomeId(1)), "its sessions are listed");
    }
}
