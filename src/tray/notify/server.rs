//! A client for the notification server of a Linux desktop: `org.freedesktop.Notifications`, version 1.2.
//!
//! This uses zbus directly. notify-rust accepts a click from any sender: it does not check who emitted `ActionInvoked`,
//! so any program on the bus, such as an agent's own shell, could press Approve. It also opens a connection per popup,
//! and panics if the bus goes away while it subscribes. Here, signals that are not from the server that showed the
//! popup are dropped.

use crate::tray::icon::{Icon, State};
use std::collections::HashMap;
use std::future::poll_fn;
use std::pin::Pin;
use std::time::Duration;
use unicode_width::UnicodeWidthStr;
use zbus::export::futures_core::Stream;
use zbus::fdo::DBusProxy;
use zbus::message::Message;
use zbus::names::{BusName, OwnedUniqueName, UniqueName};
use zbus::zvariant::Value;
use zbus::{Connection, MatchRule, MessageStream};

const NAME: &str = "org.freedesktop.Notifications";
const PATH: &str = "/org/freedesktop/Notifications";
/// Urgencies of the specification. The third one, critical, is not used: it interrupts even a user who asked not to be
/// disturbed.
const LOW: u8 = 0;
const NORMAL: u8 = 1;
/// The expiry timeout of the specification that means never.
const NEVER_EXPIRES: i32 = 0;
/// How long what only tells is shown, in milliseconds: as long as most servers show one by themselves. Without a time of
/// its own, mako shows it until it is closed.
const TELLS_FOR: i32 = 10_000;
/// How long a server may take to answer.
pub(super) const TIMEOUT: Duration = Duration::from_secs(5);
/// The reason for a timeout.
pub(super) const NO_REPLY: &str = "the notification server does not answer";
/// The servers whose popups never take the keyboard by themselves: their windows refuse it, or, as Cinnamon's banners,
/// ask for none. Of any other that is not known: compositors give it to SwayNotificationCenter's window, for example, once
/// that takes replies.
const NEVER_FOCUS: [&str; 8] = [
    "Plasma",
    "Xfce Notify Daemon",
    "Notification Daemon",
    "lxqt-notificationd",
    "cinnamon",
    "dunst",
    "mako",
    "Budgie Notification Server",
];
/// The buttons that can be read side by side, by server. Measured at the default size of text: Cinnamon 6.6 cuts the
/// labels of wider ones, Budgie 10.10 draws them beyond the edge of the screen.
const BUTTON_ROWS: [(&str, ButtonRow); 2] = [
    ("cinnamon", ButtonRow { columns: 53, around: 5, are_equal: false }),
    ("Budgie Notification Server", ButtonRow { columns: 45, around: 5, are_equal: true }),
];
/// How long a server may take to return its name.
const NAME_TIMEOUT: Duration = Duration::from_secs(1);

/// A connection to the bus, subscribed to the signals of notification servers.
pub(super) struct Bus {
    connection: Connection,
    signals: MessageStream,
    owners: MessageStream,
}

/// An event from the bus.
#[derive(Debug)]
pub(super) enum ServerEvent {
    /// A signal that claims to be from a notification server.
    Signal(Message),
    /// The server changed; `None` if it is gone.
    Owner(Option<OwnedUniqueName>),
    /// The connection was lost.
    Lost,
}

/// A signal about a popup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Signal {
    /// The user invoked this action.
    Invoked(String),
    Closed {
        /// The user dismissed it.
        by_user: bool,
    },
}

/// A notification server: the process that owns the well-known name.
#[derive(Clone, Debug)]
pub(super) struct Server {
    connection: Connection,
    /// Its unique bus name, which is never reused.
    pub(super) owner: OwnedUniqueName,
    /// Its process id, if the bus knows it.
    pub(super) pid: Option<u32>,
    pub(super) capabilities: Capabilities,
}

/// The capabilities of a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Capabilities {
    /// Shows a body.
    pub(super) body: bool,
    /// Interprets markup in the body, so that text must be escaped. Others would show the escapes.
    pub(super) markup: bool,
    /// Shows buttons and reports clicks.
    pub(super) actions: bool,
    /// Plays a sound by name. Some play none unless one is named.
    pub(super) sound: bool,
    /// Draws at most three buttons: LXQt's turns four into a list with an OK button, which takes two clicks.
    pub(super) few_actions: bool,
    /// May give the keyboard to the first button of a popup that appears: GNOME Shell does, and Return then presses it.
    pub(super) focuses_first: bool,
    /// Draws the first three buttons and drops the rest, as GNOME Shell does.
    pub(super) drops_actions: bool,
    /// Shows a body on one line until the pointer is on it, as GNOME Shell does: its lines are to be told apart there, too.
    pub(super) joins_lines: bool,
    /// Ignores a default action without a label, as swaync does; others may draw one with a label as a button.
    pub(super) names_default: bool,
    /// Draws the default action as a button, also without a label, as xfce4-notifyd does.
    pub(super) draws_default: bool,
    /// Drops the button that follows the default action, as Budgie does.
    pub(super) drops_after_default: bool,
    /// Draws a picture so large beside an icon that buttons lose half of their room, and as the icon where none is named, as
    /// Cinnamon does.
    pub(super) enlarges_picture: bool,
    /// The room for buttons, if it draws them in one row of a limited width.
    pub(super) button_row: Option<ButtonRow>,
}

/// A row of buttons, measured in columns of text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ButtonRow {
    /// The width of the row.
    columns: usize,
    /// What a button takes besides its label.
    around: usize,
    /// All are as wide as the widest.
    are_equal: bool,
}

impl ButtonRow {
    /// That of the server with this name.
    pub(super) fn of(server: &str) -> Option<Self> {
        BUTTON_ROWS.iter().find(|(name, _)| *name == server).map(|(_, row)| *row)
    }

    /// Whether buttons with these labels can be read side by side.
    pub(super) fn fits<'a>(&self, labels: impl IntoIterator<Item = &'a str>) -> bool {
        let widths: Vec<_> = labels.into_iter().map(|label| label.width() + self.around).collect();
        let all = if self.are_equal {
            widths.iter().max().map_or(0, |widest| widest * widths.len())
        } else {
            widths.iter().sum()
        };
        all <= self.columns
    }
}

/// The arguments of `Notify`.
#[derive(Clone, Debug)]
pub(super) struct Notification {
    /// The number of the popup that it replaces; 0 for none.
    pub(super) replaces: u32,
    pub(super) title: String,
    pub(super) body: String,
    /// Names and labels of the actions, alternating.
    pub(super) actions: Vec<String>,
    pub(super) icon: State,
    pub(super) low_urgency: bool,
    /// Stays until it is answered.
    pub(super) persistent: bool,
    /// The category, for the server's rules.
    pub(super) category: Option<String>,
    /// Allows the server to play its own sound.
    pub(super) sound: bool,
    /// Names the sound to play.
    pub(super) names_sound: bool,
}

/// Connects to the bus at an address, or to the session's.
pub(super) async fn connect(address: Option<&str>) -> zbus::Result<Connection> {
    match address {
        Some(address) => zbus::connection::Builder::address(address)?.build().await,
        None => Connection::session().await,
    }
}

/// Finds the server, which the bus may have to start, and queries its capabilities.
pub(super) async fn find_server(connection: Connection) -> zbus::Result<Server> {
    let reply = connection.call_method(Some(NAME), PATH, Some(NAME), "GetCapabilities", &()).await?;
    let supported: Vec<String> = reply.body().deserialize()?;
    let no_sender = || zbus::Error::Failure("the reply has no sender".into());
    let owner = OwnedUniqueName::from(reply.header().sender().ok_or_else(no_sender)?.to_owned());
    let pid = DBusProxy::new(&connection).await?.get_connection_unix_process_id(BusName::from(&owner)).await;
    let supports = |capability: &str| supported.iter().any(|name| name == capability);
    let capabilities = Capabilities {
        body: supports("body"),
        markup: supports("body-markup"),
        actions: supports("actions"),
        sound: supports("sound"),
        few_actions: false,
        focuses_first: true,
        drops_actions: true,
        joins_lines: false,
        names_default: false,
        draws_default: false,
        drops_after_default: false,
        enlarges_picture: false,
        button_row: None,
    };
    let mut server = Server { owner, pid: pid.ok(), capabilities, connection };
    // A server that does not return its name may be any.
    if let Ok(Ok((name, _))) = tokio::time::timeout(NAME_TIMEOUT, server.name()).await {
        server.capabilities.few_actions = name == "lxqt-notificationd";
        server.capabilities.focuses_first = !NEVER_FOCUS.contains(&&*name);
        server.capabilities.drops_actions = name == "gnome-shell";
        server.capabilities.joins_lines = name == "gnome-shell";
        server.capabilities.names_default = name == "SwayNotificationCenter";
        server.capabilities.draws_default = name == "Xfce Notify Daemon";
        server.capabilities.drops_after_default = name == "Budgie Notification Server";
        server.capabilities.enlarges_picture = name == "cinnamon";
        server.capabilities.button_row = ButtonRow::of(&name);
    }
    Ok(server)
}

impl Bus {
    /// Connects to the bus at an address, or to the session's.
    pub(super) async fn connect(address: Option<&str>) -> zbus::Result<Self> {
        Self::on(connect(address).await?).await
    }

    /// Subscribes on a connection.
    pub(super) async fn on(connection: Connection) -> zbus::Result<Self> {
        let of_server =
            MatchRule::builder().msg_type(zbus::message::Type::Signal).sender(NAME)?.interface(NAME)?.build();
        let signals = MessageStream::for_match_rule(of_server, &connection, None).await?;
        let of_owner = MatchRule::builder()
            .msg_type(zbus::message::Type::Signal)
            .sender("org.freedesktop.DBus")?
            .interface("org.freedesktop.DBus")?
            .member("NameOwnerChanged")?
            .arg(0, NAME)?
            .build();
        let owners = MessageStream::for_match_rule(of_owner, &connection, None).await?;
        Ok(Self { connection, signals, owners })
    }

    /// Waits for the next event. Cancel safe.
    pub(super) async fn next(&mut self) -> ServerEvent {
        let signals = poll_fn(|context| Pin::new(&mut self.signals).poll_next(context));
        let owners = poll_fn(|context| Pin::new(&mut self.owners).poll_next(context));
        tokio::select! {
            biased;
            owner = owners => match owner {
                Some(Ok(message)) => ServerEvent::Owner(new_owner(&message)),
                Some(Err(_)) | None => ServerEvent::Lost,
            },
            signal = signals => match signal {
                Some(Ok(message)) => ServerEvent::Signal(message),
                Some(Err(_)) | None => ServerEvent::Lost,
            },
        }
    }

    /// Finds the server, as [`find_server`] does.
    pub(super) fn find_server(&self) -> impl Future<Output = zbus::Result<Server>> + Send + 'static {
        find_server(self.connection.clone())
    }
}

impl Server {
    /// Shows a popup. Returns the server's number for it.
    pub(super) async fn notify(&self, notification: &Notification) -> zbus::Result<u32> {
        let category = notification.category.as_deref();
        let mut hints: HashMap<&str, Value<'_>> = HashMap::from([
            ("desktop-entry", Value::from("pilotlight")),
            ("urgency", Value::from(if notification.low_urgency { LOW } else { NORMAL })),
            ("suppress-sound", Value::from(!notification.sound)),
        ]);
        hints.extend(category.map(|category| ("category", Value::from(category))));
        if notification.names_sound {
            hints.insert("sound-name", Value::from("message-new-instant"));
        }
        if let Some(picture) = picture(notification.icon) {
            hints.insert("image-data", picture);
        }
        let expiry = if notification.persistent { NEVER_EXPIRES } else { TELLS_FOR };
        let Notification { replaces, title, body, actions, .. } = notification;
        let icon = if self.capabilities.enlarges_picture { "" } else { "pilotlight" };
        let arguments = ("Pilotlight", replaces, icon, title, body, actions, hints, expiry);
        let owner = UniqueName::from(&self.owner);
        let reply = self.connection.call_method(Some(owner), PATH, Some(NAME), "Notify", &arguments).await?;
        reply.body().deserialize()
    }

    /// Whether an error was returned by this server, and not by the bus or the connection.
    pub(super) fn refused(&self, error: &zbus::Error) -> bool {
        let zbus::Error::MethodError(_, _, reply) = error else { return false };
        reply.header().sender().map(UniqueName::as_str) == Some(self.owner.as_str())
    }

    pub(super) async fn name_and_version(&self) -> zbus::Result<String> {
        self.name().await.map(|(name, version)| format!("{name} {version}"))
    }

    async fn name(&self) -> zbus::Result<(String, String)> {
        let owner = UniqueName::from(&self.owner);
        let reply = self.connection.call_method(Some(owner), PATH, Some(NAME), "GetServerInformation", &()).await?;
        let (name, _, version, _): (String, String, String, String) = reply.body().deserialize()?;
        Ok((name, version))
    }

    /// Closes a popup. Fails if the server is gone; some servers also fail if the popup is.
    pub(super) async fn close(&self, number: u32) -> zbus::Result<()> {
        let owner = UniqueName::from(&self.owner);
        self.connection.call_method(Some(owner), PATH, Some(NAME), "CloseNotification", &number).await.map(drop)
    }

    /// Decodes a signal, with the number of its popup, if this server sent it.
    pub(super) fn read(&self, message: &Message) -> Option<(u32, Signal)> {
        let header = message.header();
        if header.sender().map(UniqueName::as_str) != Some(self.owner.as_str()) {
            return None;
        }
        let body = message.body();
        match header.member()?.as_str() {
            "ActionInvoked" => {
                let (number, action): (u32, String) = body.deserialize().ok()?;
                Some((number, Signal::Invoked(action)))
            }
            "NotificationClosed" => {
                /// "The notification was dismissed by the user", one of the four reasons in the specification.
                const DISMISSED: u32 = 2;
                let (number, reason): (u32, u32) = body.deserialize().ok()?;
                Some((number, Signal::Closed { by_user: reason == DISMISSED }))
            }
            _ => None,
        }
    }
}

fn new_owner(message: &Message) -> Option<OwnedUniqueName> {
    let (_, _, owner): (String, String, String) = message.body().deserialize().ok()?;
    OwnedUniqueName::try_from(owner).ok()
}

/// The icon as the hint `image-data`: width, height, row stride, has alpha, bits per sample, channels, pixels.
fn picture(state: State) -> Option<Value<'static>> {
    let picture = Icon::of(state).picture().ok()?;
    let (width, height) = (i32::try_from(picture.width).ok()?, i32::try_from(picture.height).ok()?);
    Some(Value::from((width, height, width * 4, true, 8i32, 4i32, picture.rgba)))
}
