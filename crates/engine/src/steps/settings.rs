//! Puts changed settings in force: new limits, other homes, other servers.

use crate::config::Config;
use crate::parts::settings_file::Reloaded;
use crate::{Engine, View};
use pilotlight_core::action::ServerState;
use pilotlight_system::log::{self, private};

impl Engine {
    /// Reads the file if it is due.
    pub(crate) fn reload_config_if_due(&mut self, view: &mut dyn View) {
        let now = self.world.now().awake;
        let Some(read) = self.disk.settings_file.as_mut().and_then(|file| file.read(now)) else { return };
        // The file may be a symlink that points elsewhere now.
        self.disk.watch_config();
        let later = match read {
            Reloaded::Unchanged => return,
            Reloaded::Unreadable => Vec::new(),
            Reloaded::Settings(read) => {
                let later = self.apply_settings(*read);
                log::info!(tag = "settings", "the settings were changed");
                later.iter().for_each(|line| log::warn!("{}", private(&line)));
                later
            }
        };
        if let Some(file) = &self.disk.settings_file {
            file.notify(view, &self.world.config, &later, false);
        }
        self.world.changes.redraw = true;
    }

    /// Puts settings in force. Returns, in words, what must wait for the next start.
    fn apply_settings(&mut self, read: Config) -> Vec<String> {
        let mut later = Vec::new();
        let before = std::mem::replace(&mut self.world.config, read);
        if self.world.config.owners != before.owners {
            // Several places decide by this who may answer a request, and none of them may use an older value than
            // another.
            later.push("owners.names takes effect when Pilotlight starts next.".to_owned());
            self.world.config.owners = before.owners;
        }
        if self.world.config.actions.permissions != before.actions.permissions {
            // Otherwise whatever can write the file could have its own requests approved at once.
            later.push("actions.permissions takes effect when Pilotlight starts next.".to_owned());
            self.world.config.actions.permissions = before.actions.permissions;
        }
        let actions = &mut self.world.config.actions;
        if actions.scripts_may_answer && !before.actions.scripts_may_answer {
            // For the same reason. It is withdrawn at once.
            later.push("actions.scripts-may-answer takes effect when Pilotlight starts next.".to_owned());
            actions.scripts_may_answer = false;
        }
        self.connections.configure_bridges(&self.world.config);
        self.world.fleet.set_limits(self.world.config.limits);
        self.disk.discovery_changed(&mut self.world);
        later.extend(
            self.disk.follow_homes(&mut self.world, |key| self.connections.tasks.connection_state(key).is_some()),
        );
        self.machines().follow();
        if self.world.config.service != before.service {
            // Each of them may have a service that is to be listened to from now on.
            self.world.changes.updated.extend(self.world.fleet.keys());
        }
        if self.world.config.list != before.list {
            self.disk.search_recent_again();
        }
        for key in self.world.fleet.keys().collect::<Vec<_>>() {
            if self.world.config.servers != before.servers
                && let Some(session) = self.world.fleet.session(&key)
                && matches!(session.control.server, ServerState::Refused(_) | ServerState::NotListening)
            {
                session.control.server = ServerState::Unknown;
            }
            self.disk.update_session(&mut self.world, &key);
        }
        self.take_up_disk_changes();
        later
    }
}
