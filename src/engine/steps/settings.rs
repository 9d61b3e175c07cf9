//! Puts changed settings in force: new limits, other homes, other servers.

use crate::agent::source::Source;
use crate::config::Config;
use crate::core::action::ServerState;
use crate::core::session::{Key, SourceId};
use crate::engine::parts::settings_file::{Reloaded, SettingsFile, SettingsSource};
use crate::engine::{Changes, Engine, View};
use crate::system::paths;
use std::collections::HashSet;

impl Engine {
    /// Follows a settings file. Must be called before [`run`](Self::run).
    pub(crate) fn follow_settings(&mut self, source: SettingsSource) {
        self.settings_file = Some(SettingsFile::new(source, &self.config));
    }

    pub(super) fn watch_config(&mut self) {
        if let Some(file) = &self.settings_file {
            self.watcher.watch_config(file.path());
        }
    }

    /// Starts to watch the file, and reports its problems to the view.
    pub(in crate::engine) fn start_following_config(&mut self, view: &mut dyn View) {
        let Some(file) = &self.settings_file else { return };
        // If our own folder does not exist yet, the file may be created in it later.
        if let (Some(folder), Some(project)) = (file.path().parent(), paths::project())
            && *folder == paths::config_folder(&project)
        {
            let _ = paths::make_folder(folder); // if that fails, no file can be created in it either
        }
        file.notify(view, &self.config, &[], true);
        self.watch_config();
    }

    /// Notes that the file has changed: it is read once it stays unchanged.
    pub(super) fn config_was_written(&mut self) {
        if let Some(file) = &mut self.settings_file {
            file.was_written(self.clock.now().awake);
        }
    }

    /// Checks whether the file was written without an event, and whether it is still watched.
    pub(super) fn check_config(&mut self) {
        if self.settings_file.as_ref().is_some_and(SettingsFile::missed_a_write) {
            // The watched folder may have been replaced.
            self.watcher.renew();
            self.config_was_written();
        }
        self.watch_config();
    }

    /// Reads the file if it is due.
    pub(in crate::engine) fn reload_config_if_due(&mut self, view: &mut dyn View, changes: &mut Changes) {
        let now = self.clock.now().awake;
        let Some(read) = self.settings_file.as_mut().and_then(|file| file.read(now)) else { return };
        // The file may be a symlink that points elsewhere now.
        self.watch_config();
        let later = match read {
            Reloaded::Unchanged => return,
            Reloaded::Unreadable => Vec::new(),
            Reloaded::Settings(read) => {
                let later = self.apply_settings(*read, changes);
                tracing::info!(tag = "settings", "the settings were changed");
                later.iter().for_each(|line| tracing::warn!("{line}"));
                later
            }
        };
        if let Some(file) = &self.settings_file {
            file.notify(view, &self.config, &later, false);
        }
        changes.redraw = true;
    }

    /// Puts settings in force. Returns, in words, what must wait for the next start.
    fn apply_settings(&mut self, read: Config, changes: &mut Changes) -> Vec<String> {
        let mut later = Vec::new();
        let before = std::mem::replace(&mut self.config, read);
        if self.config.owners != before.owners {
            // Several places decide by this who may answer a request, and none of them may use an older value than
            // another.
            later.push("owners.names takes effect when Pilotlight starts next.".to_owned());
            self.config.owners = before.owners;
        }
        if self.config.actions.permissions != before.actions.permissions {
            // Otherwise whatever can write the file could have its own requests approved at once.
            later.push("actions.permissions takes effect when Pilotlight starts next.".to_owned());
            self.config.actions.permissions = before.actions.permissions;
        }
        let actions = &mut self.config.actions;
        if actions.scripts_may_answer && !before.actions.scripts_may_answer {
            // For the same reason. It is withdrawn at once.
            later.push("actions.scripts-may-answer takes effect when Pilotlight starts next.".to_owned());
            actions.scripts_may_answer = false;
        }
        self.fleet.set_limits(self.config.limits);
        self.follow_homes(&mut later, changes);
        self.machines().follow(changes);
        if self.config.service != before.service {
            // Each of them may have a service that is to be listened to from now on.
            changes.updated.extend(self.fleet.keys());
        }
        if self.config.list != before.list {
            self.search_recent_again();
        }
        for key in self.fleet.keys().collect::<Vec<_>>() {
            if self.config.servers != before.servers
                && let Some(session) = self.fleet.session(&key)
                && matches!(session.control.server, ServerState::Refused(_) | ServerState::NotListening)
            {
                session.control.server = ServerState::Unknown;
            }
            self.update_session(&key, changes);
        }
        later
    }

    /// Follows exactly the homes that the settings lead to now.
    fn follow_homes(&mut self, later: &mut Vec<String>, changes: &mut Changes) {
        let Some(wanted) = self.settings_file.as_ref().map(|file| file.sources(&self.config)) else { return };
        let is_held = |engine: &Self, home: SourceId| {
            engine.fleet.keys().any(|key| key.source == home && engine.tasks.connection_state(&key).is_some())
        };
        for home in self.homes.wanted() {
            if wanted.iter().any(|wanted| self.homes.source(home).is(wanted)) {
                continue;
            }
            if is_held(self, home) {
                later.push(
                    "A home that was taken out stays until the next start: Pilotlight is attached to a session in it."
                        .into(),
                );
                continue;
            }
            let of_home = |key: &Key| key.source == home;
            let keys: HashSet<_> = self.history.iter().chain(self.fleet.keys()).filter(of_home).collect();
            for key in keys {
                self.remove_session(&key, changes);
            }
            self.history.forget_home(home);
            self.agenda.forget_home(home);
            self.homes.unfollow(home);
            self.watcher.set_followed(home, self.homes.source(home).watch_plan(), None);
            // Another home may be the same folder by another name, or below it: it is watched again when it is next
            // read.
            self.watcher.forget(self.homes.root(home));
        }
        self.follow_more(wanted);
        self.check_homes();
        self.start_listing(&self.homes.numbers());
    }

    /// Follows the homes that agents have made since: one that is used for the first time. Called with the rescan: a
    /// watch for that would wake for everything else that happens in the user's home.
    pub(super) fn follow_new_homes(&mut self) {
        if self.file_systems.is_any_silent() {
            return; // it may be asked for one
        }
        let wanted = self.settings_file.as_ref().filter(|file| file.may_grow()).map(|file| file.sources(&self.config));
        if self.follow_more(wanted.unwrap_or_default()) {
            self.check_homes();
        }
    }

    /// Follows these, too. Returns whether one of them was not followed.
    fn follow_more(&mut self, wanted: Vec<Source>) -> bool {
        let mut is_new = false;
        for source in wanted {
            if self.homes.wanted().into_iter().any(|home| self.homes.source(home).is(&source)) {
                continue;
            }
            if let Some(home) = self.homes.follow(source) {
                let source = self.homes.source(home);
                self.watcher.set_followed(home, source.watch_plan(), Some(source.root()));
                is_new = true;
            }
        }
        is_new
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::last_seen::Seen;
    use std::fs;

    #[test]
    fn case_287_the_home_of_an_agent_that_is_used_for_the_first_time_is_followed_with_the_next_rescan() {
        let scratch = tempfile::tempdir().unwrap();
        let (first, later) = (Source::at(&scratch.path().join("first")), Source::at(&scratch.path().join("later")));
        let mut engine = Engine::new(std::slice::from_ref(&first), Config::default(), Seen::default());
        let made = later.clone();
        let homes = move |_: &Config| {
            let there = [&made].into_iter().filter(|source| source.root().is_dir());
            [&first].into_iter().chain(there).cloned().collect::<Vec<_>>()
        };
        let (path, problems) = (scratch.path().join("config.toml"), Vec::new());
        engine.follow_settings(SettingsSource { path, problems, homes: Box::new(homes), may_grow: true });
        engine.rescan();
        assert_eq!(engine.homes.numbers(), [SourceId(0)]);
        fs::create_dir_all(later.path("one")).unwrap();
        engine.rescan();
        assert_eq!(engine.homes.numbers(), [SourceId(0), SourceId(1)]);
        assert!(engine.agenda.listings.iter().any(|listing| listing.home == SourceId(1)), "its sessions are listed");
    }
}
