//! The test as a panel: accepts icons, reads their menus from the bus, and clicks.

use super::bus::Bus;
use crate::support::{SOON, block_on, spawn, wait_until};
use pilotlight_core::verdict::Status;
use std::collections::HashMap;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use zbus::export::futures_core::Stream;
use zbus::message::{Header, Message};
use zbus::zvariant::{DynamicType, OwnedValue, Value};

const WATCHER: &str = "org.kde.StatusNotifierWatcher";
const ITEM: &str = "org.kde.StatusNotifierItem";
const MENU: &str = "com.canonical.dbusmenu";
/// A signal that the panel emits and receives itself.
const MARK: &str = "Mark";

/// A panel with a tray.
pub(crate) struct Panel {
    connection: zbus::Connection,
    seen: Arc<Mutex<Seen>>,
}

/// What the panel received over the bus.
#[derive(Default)]
struct Seen {
    /// The registered name of each icon, and its sender.
    icons: Vec<(String, String)>,
    /// The names of the signals, in order.
    signals: Vec<String>,
    /// How many of the panel's own signals came back.
    marks: usize,
    /// How many of the next registrations it refuses, and how many it has.
    refuses: usize,
    refused: usize,
}

struct Watcher {
    seen: Arc<Mutex<Seen>>,
    answers: bool,
}

#[zbus::interface(name = "org.kde.StatusNotifierWatcher")]
impl Watcher {
    async fn register_status_notifier_item(
        &self,
        service: &str,
        #[zbus(header)] header: Header<'_>,
    ) -> zbus::fdo::Result<()> {
        if !self.answers {
            std::future::pending::<()>().await;
        }
        let mut seen = self.seen.lock().unwrap();
        if let Some(left) = seen.refuses.checked_sub(1) {
            seen.refuses = left;
            seen.refused += 1;
            return Err(zbus::fdo::Error::LimitsExceeded("not now".into()));
        }
        let sender = header.sender().unwrap().to_string();
        seen.icons.push((service.to_owned(), sender));
        Ok(())
    }

    #[zbus(property)]
    fn is_status_notifier_host_registered(&self) -> bool {
        true
    }
}

/// A menu entry as sent over the bus.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Entry {
    pub(crate) id: i32,
    pub(crate) label: String,
    pub(crate) enabled: bool,
    pub(crate) separator: bool,
    /// Whether it is checked, if it can be.
    pub(crate) checked: Option<bool>,
    pub(crate) entries: Vec<Self>,
}

impl Panel {
    /// Starts a panel on this bus.
    pub(crate) fn start(bus: &Bus) -> Self {
        Self::with_watcher(bus, true)
    }

    /// Starts a panel that never answers a registration.
    pub(crate) fn deaf(bus: &Bus) -> Self {
        Self::with_watcher(bus, false)
    }

    fn with_watcher(bus: &Bus, answers: bool) -> Self {
        let seen = Arc::new(Mutex::new(Seen::default()));
        let watcher = Watcher { seen: Arc::clone(&seen), answers };
        let connection = block_on(async {
            let connection = bus.connect().await;
            connection.object_server().at("/StatusNotifierWatcher", watcher).await.unwrap();
            let rule = "type='signal',interface='com.canonical.dbusmenu'";
            let signals = zbus::MessageStream::for_match_rule(rule, &connection, Some(4096)).await.unwrap();
            let sni = "type='signal',interface='org.kde.StatusNotifierItem'";
            let sni = zbus::MessageStream::for_match_rule(sni, &connection, Some(4096)).await.unwrap();
            for stream in [signals, sni] {
                spawn(collect(stream, Arc::clone(&seen)));
            }
            connection.request_name(WATCHER).await.unwrap();
            connection
        });
        Self { connection, seen }
    }

    /// Disconnects the panel.
    pub(crate) fn end(self) {
        block_on(self.connection.close()).unwrap();
    }

    /// Refuses the next registrations.
    pub(crate) fn refuse(&self, registrations: usize) {
        self.seen.lock().unwrap().refuses = registrations;
    }

    /// How many registrations it refused.
    pub(crate) fn refused(&self) -> usize {
        self.seen.lock().unwrap().refused
    }

    /// How many icons have registered so far.
    pub(crate) fn registered(&self) -> usize {
        self.seen.lock().unwrap().icons.len()
    }

    /// Waits until an icon has registered.
    pub(crate) fn wait_for_icon(&self) {
        wait_until(SOON, "an icon registers", String::new, || (self.registered() > 0).then_some(()));
    }

    /// The bus name of the last registered icon.
    pub(crate) fn icon(&self) -> String {
        self.seen.lock().unwrap().icons.last().expect("an icon has registered").0.clone()
    }

    /// A property of the icon.
    pub(crate) fn property(&self, name: &str) -> OwnedValue {
        let reply = self.ask("/StatusNotifierItem", "org.freedesktop.DBus.Properties", "Get", &(ITEM, name));
        reply.body().deserialize::<OwnedValue>().unwrap()
    }

    /// The icon's tooltip, on a panel that shows its title alone.
    pub(crate) fn tooltip(&self) -> String {
        let value = self.property("ToolTip");
        let (_, _, title, _): (String, Vec<Picture>, String, String) = value.try_into().unwrap();
        title
    }

    /// The icon's pixels, read from the icon file as some panels do.
    pub(crate) fn picture(&self) -> Option<Vec<u8>> {
        let text = |name| String::try_from(self.property(name)).unwrap();
        let file = Path::new(&text("IconThemePath")).join(text("IconName")).with_extension("png");
        let mut reader = png::Decoder::new(BufReader::new(File::open(file).ok()?)).read_info().unwrap();
        let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
        reader.next_frame(&mut pixels).unwrap();
        for pixel in pixels.chunks_exact_mut(4) {
            pixel.rotate_right(1);
        }
        Some(pixels)
    }

    /// The icon's pixels as sent over the bus.
    pub(crate) fn pixels(&self) -> Vec<u8> {
        let pictures: Vec<Picture> = self.property("IconPixmap").try_into().unwrap();
        pictures.into_iter().next().map(|(_, _, pixels)| pixels).unwrap_or_default()
    }

    /// The layout's revision, and the current menu.
    pub(crate) fn layout(&self) -> (u32, Entry) {
        let reply = self.ask("/MenuBar", MENU, "GetLayout", &(0i32, -1i32, Vec::<String>::new()));
        let (revision, (id, properties, children)): (u32, Raw) = reply.body().deserialize().unwrap();
        (revision, entry(id, &properties, children))
    }

    /// Reads only the first level of the menu, as Plasma does.
    pub(crate) fn read_level(&self) {
        self.ask("/MenuBar", MENU, "GetLayout", &(0i32, 1i32, Vec::<String>::new()));
    }

    /// Reads the types of the entries, as GNOME's extension does first.
    pub(crate) fn read_types(&self) {
        self.ask("/MenuBar", MENU, "GetLayout", &(0i32, -1i32, vec!["type", "children-display"]));
    }

    /// Reads the menu as MATE's notification area does.
    pub(crate) fn read_like_mate(&self) {
        let names = "accessible-desc children-display disposition enabled icon-data icon-name label shortcut toggle-type \
                     toggle-state type visible";
        let names: Vec<_> = names.split_whitespace().collect();
        self.ask("/MenuBar", MENU, "GetLayout", &(0i32, -1i32, names));
    }

    /// Reads all properties of these entries, as GNOME's extension does next.
    pub(crate) fn read_properties(&self, ids: &[i32]) -> Vec<(i32, HashMap<String, OwnedValue>)> {
        let reply = self.ask("/MenuBar", MENU, "GetGroupProperties", &(ids, Vec::<String>::new()));
        reply.body().deserialize().unwrap()
    }

    /// Calls the last registered icon. An icon on a slow bus may be registering again; then the call is repeated for
    /// the new registration.
    fn ask<B: serde::Serialize + DynamicType>(&self, path: &str, interface: &str, method: &str, body: &B) -> Message {
        let reply = || {
            let icon = self.icon();
            match block_on(self.connection.call_method(Some(&*icon), path, Some(interface), method, body)) {
                Err(zbus::Error::MethodError(name, ..))
                    if name.ends_with(".ServiceUnknown") || name.ends_with(".NoReply") =>
                {
                    None
                }
                answer => Some(answer.unwrap()),
            }
        };
        wait_until(SOON, "the icon answers", || self.icon(), reply)
    }

    /// The entries of the menu, from top to bottom.
    pub(crate) fn menu(&self) -> Vec<Entry> {
        self.layout().1.entries
    }

    /// Opens the menu, reads it if it is new, and clicks an entry by its id, as most panels do. Returns whether the
    /// program knows the id.
    pub(crate) fn click(&self, id: i32) -> bool {
        if self.about_to_show() {
            self.layout();
        }
        self.click_unopened(id)
    }

    /// Clicks an entry by its id, as a panel that never reports that it opens the menu.
    pub(crate) fn click_unopened(&self, id: i32) -> bool {
        self.event(id, "clicked")
    }

    /// Reports that the menu was opened, as some panels do.
    pub(crate) fn open(&self) {
        assert!(self.event(0, "opened"));
    }

    /// Reports that the submenu of this entry was opened.
    pub(crate) fn open_submenu(&self, id: i32) {
        assert!(self.event(id, "opened"));
    }

    /// Reports that the menu was closed.
    pub(crate) fn close(&self) {
        assert!(self.event(0, "closed"));
    }

    /// Asks whether the layout must be read again, as panels do before they show the menu.
    pub(crate) fn about_to_show(&self) -> bool {
        let icon = self.icon();
        let call = self.connection.call_method(Some(&*icon), "/MenuBar", Some(MENU), "AboutToShow", &(0i32,));
        block_on(call).unwrap().body().deserialize().unwrap()
    }

    /// Whether the program told that the layout is new before it answered the call that the menu is about to be shown.
    pub(crate) fn is_told_before_the_answer(&self) -> bool {
        let (icon, connection) = (self.icon(), self.connection.clone());
        block_on(async {
            let mut messages = zbus::MessageStream::from(&connection);
            let call = connection.call_method(Some(&*icon), "/MenuBar", Some(MENU), "AboutToShow", &(0i32,));
            let reply = call.await.unwrap();
            assert!(reply.body().deserialize::<bool>().unwrap(), "the menu is new");
            loop {
                let next = std::future::poll_fn(|context| std::pin::Pin::new(&mut messages).poll_next(context)).await;
                let message = next.unwrap().unwrap();
                if message.header().member().is_some_and(|member| member == "LayoutUpdated") {
                    return message.recv_position() < reply.recv_position();
                }
            }
        })
    }

    /// Reports what happened to an entry. Returns whether the program knows its id.
    fn event(&self, id: i32, event: &str) -> bool {
        let icon = self.icon();
        let event = (id, event, Value::from(0i32), 0u32);
        block_on(self.connection.call_method(Some(&*icon), "/MenuBar", Some(MENU), "Event", &event)).is_ok()
    }

    /// Waits until the layout has been unchanged for as long as a click on a session requires.
    pub(crate) fn wait_menu_stable(&self) {
        let mut last = (0, Instant::now());
        wait_until(SOON, "the menu is stable", String::new, || {
            let laid_out = self.signals("LayoutUpdated");
            if laid_out != last.0 {
                last = (laid_out, Instant::now());
            }
            (last.1.elapsed() > Duration::from_millis(1400)).then_some(())
        });
    }

    /// Left-clicks the icon, as a panel that does not check first whether the icon is only a menu.
    pub(crate) fn click_icon(&self) -> zbus::Result<Message> {
        let icon = self.icon();
        block_on(self.connection.call_method(
            Some(&*icon),
            "/StatusNotifierItem",
            Some(ITEM),
            "Activate",
            &(0i32, 0i32),
        ))
    }

    /// How many times this signal was received.
    pub(crate) fn signals(&self, name: &str) -> usize {
        self.seen.lock().unwrap().signals.iter().filter(|signal| *signal == name).count()
    }

    /// How many signals were received.
    pub(crate) fn all_signals(&self) -> usize {
        self.seen.lock().unwrap().signals.len()
    }

    /// Waits until an entry of the menu fits, at any depth.
    pub(crate) fn wait_for(&self, what: &str, fits: impl Fn(&Entry) -> bool) -> Entry {
        let dump = || format!("{:#?}", self.layout().1);
        wait_until(SOON, what, dump, || self.layout().1.find(&fits).cloned())
    }

    /// Waits until the program sends no more signals.
    pub(crate) fn wait_idle(&self) {
        let mut last = (self.all_signals_so_far(), Instant::now());
        wait_until(SOON, "no more signals come", String::new, || {
            let so_far = self.all_signals_so_far();
            if so_far != last.0 {
                last = (so_far, Instant::now());
            }
            (last.1.elapsed() > Duration::from_millis(500)).then_some(())
        });
    }

    /// The number of signals that the program sent before it answered a call made now.
    fn all_signals_so_far(&self) -> usize {
        self.layout();
        // The bus delivers messages in order: signals sent before the answer arrive before these marks.
        let marks = self.seen.lock().unwrap().marks + 2;
        for interface in [MENU, ITEM] {
            block_on(self.connection.emit_signal(None::<&str>, "/Panel", interface, MARK, &())).unwrap();
        }
        let returned = || (self.seen.lock().unwrap().marks >= marks).then_some(());
        wait_until(SOON, "the panel's own signals come back", String::new, returned);
        self.all_signals()
    }
}

async fn collect(mut signals: zbus::MessageStream, seen: Arc<Mutex<Seen>>) {
    loop {
        let next = std::future::poll_fn(|context| std::pin::Pin::new(&mut signals).poll_next(context)).await;
        let Some(Ok(message)) = next else { return };
        let name = message.header().member().map(ToString::to_string).unwrap_or_default();
        let mut seen = seen.lock().unwrap();
        if name == MARK {
            seen.marks += 1;
        } else {
            seen.signals.push(name);
        }
    }
}

/// Width, height, pixels.
type Picture = (i32, i32, Vec<u8>);
/// Id, properties, entries.
type Raw = (i32, HashMap<String, OwnedValue>, Vec<OwnedValue>);

fn entry(id: i32, properties: &HashMap<String, OwnedValue>, children: Vec<OwnedValue>) -> Entry {
    let text = |name: &str| properties.get(name).and_then(|value| <&str>::try_from(value).ok()).map(str::to_owned);
    let children = children.into_iter().map(|child| {
        let (id, properties, children): Raw = child.try_into().unwrap();
        entry(id, &properties, children)
    });
    Entry {
        id,
        label: text("label").unwrap_or_default(),
        enabled: properties.get("enabled").is_none_or(|value| bool::try_from(value).unwrap()),
        checked: text("toggle-type").map(|_| {
            let state = properties.get("toggle-state").and_then(|value| i32::try_from(value).ok());
            state == Some(1)
        }),
        separator: text("type").as_deref() == Some("separator"),
        entries: children.collect(),
    }
}

impl Entry {
    /// The first fitting entry, at any depth.
    pub(crate) fn find(&self, fits: &impl Fn(&Self) -> bool) -> Option<&Self> {
        self.entries.iter().find_map(|entry| if fits(entry) { Some(entry) } else { entry.find(fits) })
    }

    /// The entry whose label starts with this text, at any depth.
    pub(crate) fn get(&self, label: &str) -> &Self {
        self.find(&|entry| entry.label.starts_with(label)).unwrap_or_else(|| panic!("no {label:?} in {self:#?}"))
    }

    /// The text of its submenu, at any depth. Words that were broken over two lines (the first ends in a backslash) are
    /// joined.
    pub(crate) fn words(&self) -> String {
        let words = self.entries.iter().map(|entry| format!("{} {}", entry.shown(), entry.words()));
        // Further lines of a text are indented.
        words.collect::<String>().split_whitespace().collect::<Vec<_>>().join(" ").replace("\\ ", "")
    }

    /// Whether it is the row of the session with this label. Rows cut long labels, leave out an agent or a title for which
    /// there is no room, and a folder that all sessions share.
    pub(crate) fn is_row_of<'a>(&self, label: &'a str) -> bool {
        let shown = self.shown();
        let Some((_, name)) = shown.split_once(' ').filter(|_| !self.entries.is_empty()) else { return false };
        let name = name.strip_prefix("● ").unwrap_or(name);
        let (folder, title) = label.split_once(" · ").unwrap_or((label, label));
        let without_agent = |label: &'a str| label.rsplit_once(" (").map_or(label, |(label, _)| label);
        [label, folder, title, without_agent(label), without_agent(title)].into_iter().any(|label| {
            name.starts_with(&format!("{label} — "))
                || name.split_once("… — ").is_some_and(|(cut, _)| !cut.is_empty() && label.starts_with(cut))
        })
    }

    /// Whether it shows the same session as this row of `status --json`, with the same mark and unseen dot, and the
    /// same status and reason in `Why`. Only the age of a silence is worded differently, so it is ignored.
    pub(crate) fn matches_row(&self, row: &serde_json::Value) -> bool {
        let text = |key: &str| row[key].as_str().unwrap_or_default();
        let (because, status) = (text("because"), text("status"));
        let because = match because.split_once(", ") {
            Some((age, because)) if age.starts_with("silent ") => because,
            _ => because,
        };
        let reason: String = format!("{status}: {because}").chars().take(40).collect();
        let mark = Status::ALL.into_iter().find(|one| one.name() == status).map_or("", |status| status.mark().0);
        let shown = self.shown();
        let is_row = self.is_row_of(text("label")) && shown.starts_with(&format!("{mark} "));
        let why = self.entries.iter().find(|entry| entry.label == "Why").map(Self::words).unwrap_or_default();
        is_row && shown.contains('●') == (row["unseen"] == true) && why.contains(reason.trim_end())
    }

    /// The label as the user reads it: an underscore that marks an access key is not shown, a double one is one.
    pub(crate) fn shown(&self) -> String {
        let mut out = String::new();
        let mut chars = self.label.chars().peekable();
        while let Some(c) = chars.next() {
            if c == '_' && chars.next_if_eq(&'_').is_none() {
                continue;
            }
            out.push(c);
        }
        out
    }
}
