//! The test as the notification server: receives popups, shows nothing, and clicks on demand.

use super::bus::Bus;
use crate::support::{SOON, block_on, wait_until};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;
use zbus::zvariant::OwnedValue;

/// The minimum time to read a popup before a click counts. An earlier click only shows the popup again.
const READ: Duration = Duration::from_secs(2);
const NAME: &str = "org.freedesktop.Notifications";
const PATH: &str = "/org/freedesktop/Notifications";

/// A received popup.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Popup {
    pub(crate) title: String,
    pub(crate) body: String,
    pub(crate) actions: Vec<String>,
    /// Its number: that of the popup that it replaces, or the next one.
    pub(crate) number: u32,
    pub(crate) replaces: u32,
    pub(crate) icon: String,
    /// The sender's bus name.
    pub(crate) sender: String,
    /// Its timeout in milliseconds: 0 means until closed, -1 the server's default.
    pub(crate) lasts: i32,
    /// The hints in readable form. A picture's data is left out.
    pub(crate) hints: Vec<(String, String)>,
}

impl Popup {
    /// The value of a hint.
    pub(crate) fn hint(&self, name: &str) -> Option<&str> {
        self.hints.iter().find(|(hint, _)| hint == name).map(|(_, value)| &**value)
    }
}

/// The behaviour of a server.
#[derive(Clone)]
pub(crate) struct Manner {
    /// The name that it reports.
    pub(crate) name: &'static str,
    /// Its capabilities.
    pub(crate) can: Vec<&'static str>,
    /// Each answer to `Notify` waits for a permit.
    pub(crate) held: Option<Arc<Semaphore>>,
    /// Refuses popups with this text in their title.
    pub(crate) refuses: Option<&'static str>,
    /// Each answer about its capabilities waits for a permit.
    pub(crate) hesitates: Option<Arc<Semaphore>>,
    /// Closes each popup as expired before it answers the call.
    pub(crate) closes_at_once: bool,
    /// Never answers `CloseNotification`.
    pub(crate) closes_in_silence: bool,
}

impl Default for Manner {
    fn default() -> Self {
        Self {
            name: "Plasma",
            can: vec!["body", "body-markup", "actions"],
            held: None,
            refuses: None,
            hesitates: None,
            closes_at_once: false,
            closes_in_silence: false,
        }
    }
}

/// A notification server.
pub(crate) struct Popups {
    connection: zbus::Connection,
    received: Arc<Mutex<Received>>,
}

#[derive(Default)]
struct Received {
    popups: Vec<Popup>,
    closed: Vec<u32>,
    capability_requests: usize,
    refused: usize,
    last: u32,
}

struct Server {
    received: Arc<Mutex<Received>>,
    manner: Manner,
}

#[zbus::interface(name = "org.freedesktop.Notifications")]
impl Server {
    async fn get_capabilities(&self) -> Vec<&'static str> {
        self.received.lock().unwrap().capability_requests += 1;
        if let Some(permits) = &self.manner.hesitates {
            permits.acquire().await.unwrap().forget();
        }
        self.manner.can.clone()
    }

    fn get_server_information(&self) -> (String, String, String, String) {
        (self.manner.name.into(), "pilotlight".into(), "1".into(), "1.2".into())
    }

    #[expect(clippy::too_many_arguments, reason = "the specification has that many")]
    async fn notify(
        &self,
        _app: String,
        replaces: u32,
        icon: String,
        title: String,
        body: String,
        actions: Vec<String>,
        hints: HashMap<String, OwnedValue>,
        lasts: i32,
        #[zbus(connection)] connection: &zbus::Connection,
        #[zbus(header)] header: zbus::message::Header<'_>,
    ) -> zbus::fdo::Result<u32> {
        if self.manner.refuses.is_some_and(|refused| title.contains(refused)) {
            self.received.lock().unwrap().refused += 1;
            return Err(zbus::fdo::Error::LimitsExceeded("no more".into()));
        }
        let written = |(name, value): (String, OwnedValue)| {
            let value = if name.starts_with("image") { "a picture".to_owned() } else { value.to_string() };
            (name, value)
        };
        let number = {
            let mut received = self.received.lock().unwrap();
            if replaces == 0 {
                received.last += 1;
            }
            let number = if replaces == 0 { received.last } else { replaces };
            let hints = hints.into_iter().map(written).collect();
            let sender = header.sender().unwrap().to_string();
            received.popups.push(Popup { title, body, actions, number, replaces, icon, sender, lasts, hints });
            number
        };
        if self.manner.closes_at_once {
            connection.emit_signal(None::<&str>, PATH, NAME, "NotificationClosed", &(number, 1u32)).await?;
        }
        if let Some(held) = &self.manner.held {
            held.acquire().await.unwrap().forget();
        }
        Ok(number)
    }

    async fn close_notification(&self, id: u32, #[zbus(connection)] connection: &zbus::Connection) {
        self.received.lock().unwrap().closed.push(id);
        if self.manner.closes_in_silence {
            std::future::pending::<()>().await;
        }
        let _ = connection.emit_signal(None::<&str>, PATH, NAME, "NotificationClosed", &(id, 3u32)).await;
    }
}

impl Popups {
    /// Starts a server on this bus.
    pub(crate) fn start(bus: &Bus) -> Self {
        Self::with(bus, Manner::default())
    }

    /// Starts a server with this behaviour on this bus.
    pub(crate) fn with(bus: &Bus, manner: Manner) -> Self {
        let received = Arc::new(Mutex::new(Received::default()));
        let server = Server { received: Arc::clone(&received), manner };
        let connection = block_on(async {
            let connection = bus.connect().await;
            connection.object_server().at(PATH, server).await.unwrap();
            connection.request_name(NAME).await.unwrap();
            connection
        });
        Self { connection, received }
    }

    /// Continues the numbers of new popups after this one.
    pub(crate) fn set_last_number(&self, last: u32) {
        self.received.lock().unwrap().last = last;
    }

    /// The popups so far.
    pub(crate) fn received(&self) -> Vec<Popup> {
        self.received.lock().unwrap().popups.clone()
    }

    /// The numbers in the requests to close a popup, in order.
    pub(crate) fn closed(&self) -> Vec<u32> {
        self.received.lock().unwrap().closed.clone()
    }

    /// How many times its capabilities were requested.
    pub(crate) fn capability_requests(&self) -> usize {
        self.received.lock().unwrap().capability_requests
    }

    /// How many popups it refused.
    pub(crate) fn refused(&self) -> usize {
        self.received.lock().unwrap().refused
    }

    /// Gives up the server's bus name, and stays connected.
    pub(crate) fn release_name(&self) {
        block_on(self.connection.release_name(NAME)).unwrap();
    }

    /// Waits until `count` popups were received, and returns the last of them.
    pub(crate) fn wait_for(&self, count: usize) -> Popup {
        let what = format!("{count} notifications are sent");
        wait_until(
            SOON,
            &what,
            || format!("{:#?}", self.received()),
            || {
                let received = self.received();
                if received.len() >= count { received.into_iter().nth(count - 1) } else { None }
            },
        )
    }

    /// Waits until exactly these popups were requested to be closed.
    pub(crate) fn wait_for_closed(&self, numbers: &[u32]) {
        let what = format!("{numbers:?} are requested to be closed");
        wait_until(SOON, &what, || format!("{:?}", self.closed()), || (self.closed() == numbers).then_some(()));
    }

    /// The user clicks `default` or a button.
    pub(crate) fn click(&self, number: u32, action: &str) {
        Self::forge(&self.connection, number, action);
    }

    /// The user reads the popup, then clicks.
    pub(crate) fn click_after_reading(&self, number: u32, action: &str) {
        self.read();
        self.click(number, action);
    }

    /// Waits until the popup has been shown long enough to be read.
    pub(crate) fn read(&self) {
        let start = Instant::now();
        wait_until(SOON, "it is read", String::new, || (start.elapsed() > READ).then_some(()));
    }

    /// Reports a click of the user over this connection.
    pub(crate) fn forge(connection: &zbus::Connection, number: u32, action: &str) {
        block_on(connection.emit_signal(None::<&str>, PATH, NAME, "ActionInvoked", &(number, action))).unwrap();
    }

    /// Reports that a popup was closed: 1 means expired, 2 by the user.
    pub(crate) fn close(&self, number: u32, reason: u32) {
        let signal = (number, reason);
        block_on(self.connection.emit_signal(None::<&str>, PATH, NAME, "NotificationClosed", &signal)).unwrap();
    }

    /// Disconnects the server.
    pub(crate) fn end(self) {
        block_on(self.connection.close()).unwrap();
    }
}
