//! The test as the notification server: takes what is sent, shows nothing, and clicks as the test says.

use super::bus::Bus;
use crate::support::{SOON, block_on, wait_until};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;
use zbus::zvariant::OwnedValue;

/// Nobody reads a popup and clicks sooner; a click that comes sooner only shows it anew.
const READ: Duration = Duration::from_secs(2);
const NAME: &str = "org.freedesktop.Notifications";
const PATH: &str = "/org/freedesktop/Notifications";

/// What was sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Popup {
    pub(crate) title: String,
    pub(crate) body: String,
    pub(crate) actions: Vec<String>,
    /// The number that it got: the one that it replaces, or the next.
    pub(crate) number: u32,
    pub(crate) replaces: u32,
    pub(crate) icon: String,
    /// Who sent it, by its name on the bus.
    pub(crate) sender: String,
    /// How long it stays, in milliseconds: 0 until it is closed, -1 as long as the server likes.
    pub(crate) lasts: i32,
    /// The hints, as they are written for people; of pictures only that there is one.
    pub(crate) hints: Vec<(String, String)>,
}

impl Popup {
    /// A hint, if there is one.
    pub(crate) fn hint(&self, name: &str) -> Option<&str> {
        self.hints.iter().find(|(hint, _)| hint == name).map(|(_, value)| &**value)
    }
}

/// How a server behaves.
#[derive(Clone)]
pub(crate) struct Manner {
    /// What it says its name is.
    pub(crate) name: &'static str,
    pub(crate) can: Vec<&'static str>,
    /// Answers to `Notify` wait for a permit.
    pub(crate) held: Option<Arc<Semaphore>>,
    /// Refuses what has this in its title.
    pub(crate) refuses: Option<&'static str>,
    /// Says what it can do only with a permit.
    pub(crate) hesitates: Option<Arc<Semaphore>>,
    /// Each popup is closed, as expired, before the call is answered.
    pub(crate) closes_at_once: bool,
    /// `CloseNotification` is never answered.
    pub(crate) closes_in_silence: bool,
}

impl Default for Manner {
    fn default() -> Self {
        Self {
            name: "test",
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
    taken: Arc<Mutex<Taken>>,
}

#[derive(Default)]
struct Taken {
    popups: Vec<Popup>,
    closed: Vec<u32>,
    asked: usize,
    refused: usize,
    last: u32,
}

struct Server {
    taken: Arc<Mutex<Taken>>,
    manner: Manner,
}

#[zbus::interface(name = "org.freedesktop.Notifications")]
impl Server {
    async fn get_capabilities(&self) -> Vec<&'static str> {
        self.taken.lock().unwrap().asked += 1;
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
            self.taken.lock().unwrap().refused += 1;
            return Err(zbus::fdo::Error::LimitsExceeded("no more".into()));
        }
        let written = |(name, value): (String, OwnedValue)| {
            let value = if name.starts_with("image") { "a picture".to_owned() } else { value.to_string() };
            (name, value)
        };
        let number = {
            let mut taken = self.taken.lock().unwrap();
            if replaces == 0 {
                taken.last += 1;
            }
            let number = if replaces == 0 { taken.last } else { replaces };
            let hints = hints.into_iter().map(written).collect();
            let sender = header.sender().unwrap().to_string();
            taken.popups.push(Popup { title, body, actions, number, replaces, icon, sender, lasts, hints });
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
        self.taken.lock().unwrap().closed.push(id);
        if self.manner.closes_in_silence {
            std::future::pending::<()>().await;
        }
        let _ = connection.emit_signal(None::<&str>, PATH, NAME, "NotificationClosed", &(id, 3u32)).await;
    }
}

impl Popups {
    /// A server on this bus.
    pub(crate) fn start(bus: &Bus) -> Self {
        Self::with(bus, Manner::default())
    }

    /// A server on this bus that behaves so.
    pub(crate) fn with(bus: &Bus, manner: Manner) -> Self {
        let taken = Arc::new(Mutex::new(Taken::default()));
        let server = Server { taken: Arc::clone(&taken), manner };
        let connection = block_on(async {
            let connection = bus.connect().await;
            connection.object_server().at(PATH, server).await.unwrap();
            connection.request_name(NAME).await.unwrap();
            connection
        });
        Self { connection, taken }
    }

    /// Its number for new popups goes on from here.
    pub(crate) fn counts_from(&self, last: u32) {
        self.taken.lock().unwrap().last = last;
    }

    /// What was sent so far.
    pub(crate) fn taken(&self) -> Vec<Popup> {
        self.taken.lock().unwrap().popups.clone()
    }

    /// The numbers of the popups that it was told to close, in order.
    pub(crate) fn closed(&self) -> Vec<u32> {
        self.taken.lock().unwrap().closed.clone()
    }

    /// How often it was asked what it can do.
    pub(crate) fn asked(&self) -> usize {
        self.taken.lock().unwrap().asked
    }

    /// How often it refused one.
    pub(crate) fn refused(&self) -> usize {
        self.taken.lock().unwrap().refused
    }

    /// Is the server no longer, and stays on the bus.
    pub(crate) fn abdicates(&self) {
        block_on(self.connection.release_name(NAME)).unwrap();
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

    /// Waits until it was told to close these.
    pub(crate) fn wait_for_closed(&self, numbers: &[u32]) {
        let what = format!("it is told to close {numbers:?}");
        wait_until(SOON, &what, || format!("{:?}", self.closed()), || (self.closed() == numbers).then_some(()));
    }

    /// The user clicks: on `default`, or on a button.
    pub(crate) fn click(&self, number: u32, action: &str) {
        Self::forge(&self.connection, number, action);
    }

    /// The same, of a user who has read what stands there now.
    pub(crate) fn click_read(&self, number: u32, action: &str) {
        self.read();
        self.click(number, action);
    }

    /// What stands there is read.
    pub(crate) fn read(&self) {
        let begun = Instant::now();
        wait_until(SOON, "it is read", String::new, || (begun.elapsed() > READ).then_some(()));
    }

    /// Says that the user clicked, over this connection.
    pub(crate) fn forge(connection: &zbus::Connection, number: u32, action: &str) {
        block_on(connection.emit_signal(None::<&str>, PATH, NAME, "ActionInvoked", &(number, action))).unwrap();
    }

    /// A popup is closed: 1 as expired, 2 by the user.
    pub(crate) fn close(&self, number: u32, reason: u32) {
        let signal = (number, reason);
        block_on(self.connection.emit_signal(None::<&str>, PATH, NAME, "NotificationClosed", &signal)).unwrap();
    }

    /// Goes away, with all that it shows.
    pub(crate) fn end(self) {
        block_on(self.connection.close()).unwrap();
    }
}
