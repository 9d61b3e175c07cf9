//! The notification server of a Linux desktop, as far as we speak with it: `org.freedesktop.Notifications`, version 1.2.
//!
//! Spoken over zbus itself. notify-rust takes a click from whoever sends one (it does not ask who emitted `ActionInvoked`,
//! so any program on the bus, an agent's own shell among them, could press Approve), opens a connection a popup, and
//! panics where the bus goes away while it begins to listen. Here what did not come from the server that showed the popup
//! is dropped.

use crate::tray::icon::{Icon, State};
use std::collections::HashMap;
use std::future::poll_fn;
use std::pin::Pin;
use std::time::Duration;
use zbus::export::futures_core::Stream;
use zbus::fdo::DBusProxy;
use zbus::message::Message;
use zbus::names::{BusName, OwnedUniqueName, UniqueName};
use zbus::zvariant::Value;
use zbus::{Connection, MatchRule, MessageStream};

const NAME: &str = "org.freedesktop.Notifications";
const PATH: &str = "/org/freedesktop/Notifications";
/// Urgencies of the specification. The third, critical, breaks into whatever the user does, even where that asks for no disturbance.
const LOW: u8 = 0;
const NORMAL: u8 = 1;
/// How long a popup stays, as the specification has it.
const NEVER_EXPIRES: i32 = 0;
const AS_THE_SERVER_LIKES: i32 = -1;
/// How long a server may take to say its name.
const NAMED_WITHIN: Duration = Duration::from_secs(1);

/// A connection to the bus, and what comes over it of notifications.
pub(super) struct Bus {
    connection: Connection,
    signals: MessageStream,
    owners: MessageStream,
}

/// What came over the bus.
#[derive(Debug)]
pub(super) enum Event {
    /// A signal that claims to be of a notification server.
    Signal(Message),
    /// Another server is there now, or none.
    Owner(Option<OwnedUniqueName>),
    /// The bus is gone.
    Lost,
}

/// What a server tells of a popup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Signal {
    /// The user clicked this.
    Invoked(String),
    /// It is closed.
    Closed {
        /// The user put it away.
        by_user: bool,
    },
}

/// One notification server: the process that owns the name, for as long as it does.
#[derive(Clone, Debug)]
pub(super) struct Server {
    connection: Connection,
    /// Its own name on the bus, which no other process ever has.
    pub(super) owner: OwnedUniqueName,
    /// Its process, where the bus tells.
    pub(super) pid: Option<u32>,
    /// What it can do.
    pub(super) can: Can,
}

/// What a server can do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Can {
    /// Show more than a title.
    pub(super) body: bool,
    /// Read markup in it: what is no markup must be escaped. One that cannot shows an escape as it is.
    pub(super) markup: bool,
    /// Show buttons, and tell of clicks.
    pub(super) actions: bool,
    /// Play a sound by its name. Some play none unless they are given one.
    pub(super) sound: bool,
    /// Draw three buttons at most: LXQt's makes a list of four, with an OK beside it, and each click is two.
    pub(super) few: bool,
}

/// What a server is given to show.
#[derive(Clone, Debug)]
pub(super) struct Sheet {
    /// The popup whose place it takes, by the server's number; 0 for none.
    pub(super) replaces: u32,
    pub(super) title: String,
    pub(super) body: String,
    /// Each action's name and what stands on it, one after the other.
    pub(super) actions: Vec<String>,
    pub(super) icon: State,
    /// It is good to know, and no more.
    pub(super) is_quiet: bool,
    /// It stays until it is answered.
    pub(super) waits: bool,
    /// What kind of thing it tells, for the server's rules.
    pub(super) category: Option<String>,
    /// The server may play a sound of its own.
    pub(super) sound: bool,
    /// It is told which.
    pub(super) plays: bool,
}

/// Connects to the bus at an address, or to the session's.
pub(super) async fn connect(address: Option<&str>) -> zbus::Result<Connection> {
    match address {
        Some(address) => zbus::connection::Builder::address(address)?.build().await,
        None => Connection::session().await,
    }
}

/// Looks for the server, which the bus may start for that, and asks what it can do.
pub(super) async fn meet(connection: Connection) -> zbus::Result<Server> {
    let answer = connection.call_method(Some(NAME), PATH, Some(NAME), "GetCapabilities", &()).await?;
    let can: Vec<String> = answer.body().deserialize()?;
    let nobody = || zbus::Error::Failure("the answer is nobody's".into());
    let owner = OwnedUniqueName::from(answer.header().sender().ok_or_else(nobody)?.to_owned());
    let process = DBusProxy::new(&connection).await?.get_connection_unix_process_id(BusName::from(&owner)).await;
    let can = |what: &str| can.iter().any(|one| one == what);
    let can =
        Can { body: can("body"), markup: can("body-markup"), actions: can("actions"), sound: can("sound"), few: false };
    let mut server = Server { owner, pid: process.ok(), can, connection };
    // One that does not say its name is one like most.
    let about = tokio::time::timeout(NAMED_WITHIN, server.about()).await;
    server.can.few = matches!(about, Ok(Ok(name)) if name.starts_with("lxqt-notificationd "));
    Ok(server)
}

impl Bus {
    /// Connects to the bus at an address, or to the session's.
    pub(super) async fn connect(address: Option<&str>) -> zbus::Result<Self> {
        let connection = connect(address).await?;
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

    /// What comes next. Nothing is lost where this is given up before anything came.
    pub(super) async fn next(&mut self) -> Event {
        let signals = poll_fn(|context| Pin::new(&mut self.signals).poll_next(context));
        let owners = poll_fn(|context| Pin::new(&mut self.owners).poll_next(context));
        tokio::select! {
            biased;
            owner = owners => match owner {
                Some(Ok(message)) => Event::Owner(new_owner(&message)),
                Some(Err(_)) | None => Event::Lost,
            },
            signal = signals => match signal {
                Some(Ok(message)) => Event::Signal(message),
                Some(Err(_)) | None => Event::Lost,
            },
        }
    }

    /// Looks for the server, as [`meet`] does: once for each that comes.
    pub(super) fn meet(&self) -> impl Future<Output = zbus::Result<Server>> + Send + 'static {
        meet(self.connection.clone())
    }
}

impl Server {
    /// Shows a popup; the server's number for it.
    pub(super) async fn notify(&self, sheet: &Sheet) -> zbus::Result<u32> {
        let category = sheet.category.as_deref();
        let mut hints: HashMap<&str, Value<'_>> = HashMap::from([
            ("desktop-entry", Value::from("pilotlight")),
            ("urgency", Value::from(if sheet.is_quiet { LOW } else { NORMAL })),
            ("suppress-sound", Value::from(!sheet.sound)),
        ]);
        hints.extend(category.map(|category| ("category", Value::from(category))));
        if sheet.plays {
            hints.insert("sound-name", Value::from("message-new-instant"));
        }
        if let Some(picture) = picture(sheet.icon) {
            hints.insert("image-data", picture);
        }
        let lasts = if sheet.waits { NEVER_EXPIRES } else { AS_THE_SERVER_LIKES };
        let call =
            ("Pilotlight", sheet.replaces, "pilotlight", &sheet.title, &sheet.body, &sheet.actions, hints, lasts);
        let owner = UniqueName::from(&self.owner);
        let answer = self.connection.call_method(Some(owner), PATH, Some(NAME), "Notify", &call).await?;
        answer.body().deserialize()
    }

    /// Whether an error is this server's own answer, not one of the bus or of the way there.
    pub(super) fn refused(&self, error: &zbus::Error) -> bool {
        let zbus::Error::MethodError(_, _, answer) = error else { return false };
        answer.header().sender().map(UniqueName::as_str) == Some(self.owner.as_str())
    }

    /// Its name and version.
    pub(super) async fn about(&self) -> zbus::Result<String> {
        let owner = UniqueName::from(&self.owner);
        let answer = self.connection.call_method(Some(owner), PATH, Some(NAME), "GetServerInformation", &()).await?;
        let (name, _, version, _): (String, String, String, String) = answer.body().deserialize()?;
        Ok(format!("{name} {version}"))
    }

    /// Takes a popup away. An error where the server, or the popup, is not there any more.
    pub(super) async fn close(&self, number: u32) -> zbus::Result<()> {
        let owner = UniqueName::from(&self.owner);
        self.connection.call_method(Some(owner), PATH, Some(NAME), "CloseNotification", &number).await.map(drop)
    }

    /// What a signal says, and of which popup, if it is this server's.
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
                /// "The notification was dismissed by the user", of the four reasons that the specification has.
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

/// The flame, in the form of the hint `image-data`: width, height, bytes a row, opacity, bits, channels, pixels.
fn picture(state: State) -> Option<Value<'static>> {
    let picture = Icon::of(state).picture().ok()?;
    let (width, height) = (i32::try_from(picture.width).ok()?, i32::try_from(picture.height).ok()?);
    Some(Value::from((width, height, width * 4, true, 8i32, 4i32, picture.rgba)))
}
