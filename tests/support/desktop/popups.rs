//! The test as the notification server: takes what is sent, and shows nothing.

use super::bus::Bus;
use crate::support::{SOON, block_on, wait_until};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use zbus::zvariant::OwnedValue;

/// What was sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Popup {
    pub(crate) title: String,
    pub(crate) body: String,
    pub(crate) actions: Vec<String>,
}

/// A notification server.
pub(crate) struct Popups {
    _connection: zbus::Connection,
    taken: Arc<Mutex<Vec<Popup>>>,
}

struct Server {
    taken: Arc<Mutex<Vec<Popup>>>,
}

#[zbus::interface(name = "org.freedesktop.Notifications")]
impl Server {
    fn get_capabilities(&self) -> Vec<String> {
        ["body", "body-markup", "actions"].map(str::to_owned).into()
    }

    fn get_server_information(&self) -> (String, String, String, String) {
        ("test".into(), "pilotlight".into(), "1".into(), "1.2".into())
    }

    #[expect(clippy::too_many_arguments, reason = "the specification has that many")]
    fn notify(
        &self,
        _app: String,
        _replaces: u32,
        _icon: String,
        title: String,
        body: String,
        actions: Vec<String>,
        _hints: HashMap<String, OwnedValue>,
        _timeout: i32,
    ) -> u32 {
        let mut taken = self.taken.lock().unwrap();
        taken.push(Popup { title, body, actions });
        u32::try_from(taken.len()).unwrap()
    }

    fn close_notification(&self, _id: u32) {}
}

impl Popups {
    /// A server on this bus.
    pub(crate) fn start(bus: &Bus) -> Self {
        let taken = Arc::new(Mutex::new(Vec::new()));
        let server = Server { taken: Arc::clone(&taken) };
        let connection = block_on(async {
            let connection = bus.connect().await;
            connection.object_server().at("/org/freedesktop/Notifications", server).await.unwrap();
            connection.request_name("org.freedesktop.Notifications").await.unwrap();
            connection
        });
        Self { _connection: connection, taken }
    }

    /// What was sent so far.
    pub(crate) fn taken(&self) -> Vec<Popup> {
        self.taken.lock().unwrap().clone()
    }

    /// Waits until so many were sent, and returns the last of them.
    pub(crate) fn wait_for(&self, count: usize) -> Popup {
        let what = format!("{count} notifications are sent");
        wait_until(
            SOON,
            &what,
            || format!("{:#?}", self.taken()),
            || {
                let taken = self.taken();
                if taken.len() >= count { taken.into_iter().nth(count - 1) } else { None }
            },
        )
    }
}
