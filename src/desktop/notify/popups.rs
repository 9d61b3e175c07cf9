//! The popups of [`alert`](crate::core::alert) on a Linux desktop.
//!
//! One task keeps what is shown like what is wanted: it closes what is wanted no more, shows what is new, and tells what
//! the user did. Whoever wants something only writes it down and is never held up; between two looks of the task at most
//! [`AT_MOST`] popups are written down, however many changes there were. Every call to the server has its time, and signals
//! are taken up while one is under way.

use super::server::{Bus, Event, Server, Sheet, Signal};
use super::{Clicked, Means, PATIENCE, TITLE, body};
use crate::core::alert::{Button, Cause, Change, Popup, PopupId};
use crate::core::text::plain;
use crate::desktop::icon::State;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{Instant, sleep_until, timeout};

/// So many popups are kept; what comes on top counts as closed.
const AT_MOST: usize = 32;
/// So long one is kept; a server that forgot to tell of its end is not waited for for ever.
const LASTS: Duration = Duration::from_secs(12 * 3600);
/// What a server tells before it has answered which popup that is about: so much is remembered.
const EARLY: usize = 16;
/// So many answers that came too late are still waited for, to close what they name.
const LATE: usize = 8;
/// A popup with Approve that comes this soon after another went may stand where that one stood: a click that follows at once
/// was aimed at what is no longer there.
const SETTLES: Duration = Duration::from_millis(1200);
/// The end of the program waits so long for popups to go.
const FAREWELL: Duration = Duration::from_millis(500);

/// What is to be on the screen; `true` where the server was not told yet.
type Wanted = BTreeMap<PopupId, (Popup, bool)>;

/// Shows popups, takes them back, and tells what the user does with them.
pub struct Popups {
    wanted: Arc<Mutex<Wanted>>,
    nudge: mpsc::Sender<()>,
    task: JoinHandle<()>,
    means: Arc<Means>,
}

impl Popups {
    /// Nothing is shown yet, and no bus is looked for before the first popup.
    pub fn start(means: Means) -> Self {
        let (nudge, nudges) = mpsc::channel(1);
        let (wanted, means) = (Arc::<Mutex<Wanted>>::default(), Arc::new(means));
        let keeper = Keeper {
            wanted: Arc::clone(&wanted),
            means: Arc::clone(&means),
            bus: None,
            server: None,
            on_screen: BTreeMap::new(),
            to_close: Vec::new(),
            closed: None,
            early: Vec::new(),
            late: JoinSet::new(),
            told: false,
        };
        let task = means.runtime.spawn(keeper.run(nudges));
        Self { wanted, nudge, task, means }
    }

    /// Makes a change; returns at once.
    pub fn apply(&self, change: Change) {
        let mut wanted = lock(&self.wanted);
        match change {
            Change::Raise(popup) if wanted.len() >= AT_MOST => {
                drop(wanted);
                return (self.means.clicked)(popup.id, Clicked::Closed { by_user: false });
            }
            Change::Raise(popup) => drop(wanted.insert(popup.id, (popup, true))),
            // One that was closed meanwhile does not come back by saying something else.
            Change::Replace(popup) => {
                if let Some(known) = wanted.get_mut(&popup.id) {
                    *known = (popup, true);
                }
            }
            Change::Withdraw(id) => drop(wanted.remove(&id)),
        }
        drop(wanted);
        let _ = self.nudge.try_send(()); // full: the task is about to look anyway
    }

    /// Takes all popups away, for the end of the program: nobody would hear a click any more.
    pub async fn end(self) {
        let Self { nudge, task, .. } = self;
        drop(nudge);
        let _ = timeout(FAREWELL, task).await;
    }
}

/// The task, and what it knows.
struct Keeper {
    wanted: Arc<Mutex<Wanted>>,
    means: Arc<Means>,
    bus: Option<Bus>,
    server: Option<Server>,
    on_screen: BTreeMap<PopupId, OnScreen>,
    /// Popups, by the server's numbers, that are nobody's any more.
    to_close: Vec<u32>,
    /// When one was last closed.
    closed: Option<Instant>,
    /// Signals, since the last call, of popups that are not known.
    early: Vec<(u32, Signal)>,
    late: JoinSet<()>,
    /// It was said that popups cannot be shown.
    told: bool,
}

/// A popup that the server shows.
struct OnScreen {
    /// The server's number for it.
    number: u32,
    buttons: Vec<Button>,
    /// Before, a click on Approve or Deny only leads to the request.
    settled: Instant,
    until: Instant,
}

enum Step {
    Close(u32),
    Show(Box<Popup>),
}

impl Keeper {
    async fn run(mut self, mut nudges: mpsc::Receiver<()>) {
        loop {
            let until = self.on_screen.values().map(|shown| shown.until).min();
            tokio::select! {
                biased;
                event = next(&mut self.bus) => self.take(event),
                nudge = nudges.recv() => match nudge {
                    Some(()) => {}
                    None => break,
                },
                () = sleep_until(until.unwrap_or_else(Instant::now)), if until.is_some() => self.let_go(),
            }
            self.settle().await;
        }
        self.farewell().await;
    }

    /// Closes all, at the end of the program. Each call goes out at once: a server that is slow to answer closes them all the
    /// same.
    async fn farewell(self) {
        let Some(server) = self.server else { return };
        let numbers = self.on_screen.values().map(|shown| shown.number).chain(self.to_close);
        let mut closes = JoinSet::new();
        for number in numbers {
            let server = server.clone();
            closes.spawn(async move { server.close(number).await });
        }
        while closes.join_next().await.is_some() {}
    }

    /// Makes what is shown what is wanted.
    async fn settle(&mut self) {
        while let Some(step) = self.next_step() {
            match step {
                Step::Close(number) => self.close(number).await,
                Step::Show(popup) => {
                    if let Err(error) = self.show(&popup).await {
                        self.failed(&error);
                    }
                }
            }
        }
    }

    /// First what goes, then what comes, each in its order.
    fn next_step(&mut self) -> Option<Step> {
        let mut wanted = lock(&self.wanted);
        if let Some(number) = self.to_close.pop() {
            return Some(Step::Close(number));
        }
        if let Some(id) = self.on_screen.keys().find(|id| !wanted.contains_key(id)).copied() {
            return self.on_screen.remove(&id).map(|shown| Step::Close(shown.number));
        }
        let (popup, is_new) = wanted.values_mut().find(|(_, is_new)| *is_new)?;
        *is_new = false;
        Some(Step::Show(Box::new(popup.clone())))
    }

    async fn show(&mut self, popup: &Popup) -> anyhow::Result<()> {
        let server = self.meet().await?;
        let replaces = self.on_screen.get(&popup.id).map_or(0, |shown| shown.number);
        let buttons = self.buttons(popup, &server);
        let sheet = sheet(popup, &buttons, &server, replaces);
        self.early.clear();
        let of = server.clone();
        let mut call = tokio::spawn(async move { of.notify(&sheet).await });
        let Some(answer) = self.during(timeout(PATIENCE, &mut call)).await.ok() else {
            self.close_when_late(call, server);
            anyhow::bail!("the notification server does not answer");
        };
        let number = answer??;
        self.told = false;
        if self.server.as_ref().map(|now| &now.owner) != Some(&server.owner) {
            anyhow::bail!("the notification server went away");
        }
        // A server that gives one number twice shows the second in place of the first.
        let replaced: Vec<_> =
            self.on_screen.extract_if(.., |id, shown| *id != popup.id && shown.number == number).collect();
        for (id, _) in replaced {
            self.closed = Some(Instant::now());
            self.tell(id, Clicked::Closed { by_user: false });
        }
        let now = Instant::now();
        let settled = self.closed.filter(|closed| now < *closed + SETTLES).map_or(now, |_| now + SETTLES);
        self.on_screen.insert(popup.id, OnScreen { number, buttons, settled, until: now + LASTS });
        for (_, signal) in self.early.extract_if(.., |(of, _)| *of == number).collect::<Vec<_>>() {
            self.heard(number, signal);
        }
        Ok(())
    }

    /// The server that is there, over a bus that is there.
    async fn meet(&mut self) -> anyhow::Result<Server> {
        if self.bus.is_none() {
            let bus = timeout(PATIENCE, Bus::connect(self.means.bus.as_deref())).await;
            self.bus = Some(bus.map_err(|_| anyhow::anyhow!("the session bus does not answer"))??);
        }
        if let Some(server) = &self.server {
            return Ok(server.clone());
        }
        let bus = self.bus.as_ref().ok_or_else(|| anyhow::anyhow!("the session bus went away"))?;
        let server = self.during(timeout(PATIENCE, bus.meet())).await;
        let server = server.map_err(|_| anyhow::anyhow!("the notification server does not answer"))??;
        self.server = Some(server.clone());
        Ok(server)
    }

    /// Waits for a call, and takes up meanwhile what comes over the bus.
    async fn during<T>(&mut self, call: impl Future<Output = T>) -> T {
        let mut call = std::pin::pin!(call);
        loop {
            tokio::select! {
                biased;
                answer = &mut call => return answer,
                event = next(&mut self.bus) => self.take(event),
            }
        }
    }

    async fn close(&mut self, number: u32) {
        let Some(server) = self.server.clone() else { return };
        self.closed = Some(Instant::now());
        // One that is gone already is an error to some servers. One that does not answer will hear it all the same.
        let _ = self.during(timeout(PATIENCE, server.close(number))).await;
    }

    /// A popup that a slow server shows after all is closed then: nobody knows of it any more.
    fn close_when_late(&mut self, call: JoinHandle<zbus::Result<u32>>, server: Server) {
        while self.late.try_join_next().is_some() {}
        if self.late.len() < LATE {
            self.late.spawn(async move {
                if let Ok(Ok(number)) = call.await {
                    let _ = server.close(number).await;
                }
            });
        }
    }

    fn take(&mut self, event: Event) {
        match event {
            Event::Signal(message) => {
                if let Some((number, signal)) = self.server.as_ref().and_then(|server| server.read(&message)) {
                    self.heard(number, signal);
                }
            }
            Event::Owner(owner) => {
                if self.server.as_ref().is_some_and(|server| Some(&server.owner) != owner.as_ref()) {
                    self.server = None;
                    self.all_gone();
                }
            }
            Event::Lost => {
                self.bus = None;
                self.server = None;
                self.all_gone();
            }
        }
    }

    fn heard(&mut self, number: u32, signal: Signal) {
        let found = self.on_screen.iter().find(|(_, shown)| shown.number == number);
        let Some((id, shown)) = found.map(|(id, shown)| (*id, shown)) else {
            if self.early.len() < EARLY {
                self.early.push((number, signal));
            }
            return;
        };
        let button = |name: &str| shown.buttons.iter().copied().find(|button| button.name() == name);
        let clicked = match signal {
            Signal::Closed { by_user } => Clicked::Closed { by_user },
            Signal::Invoked(action) if action == "default" => Clicked::Default,
            Signal::Invoked(action) => match button(&action) {
                Some(Button::Approve | Button::Deny) if Instant::now() < shown.settled => {
                    tracing::info!("a click came just after one popup took the place of another: it answers nothing");
                    Clicked::Action(Button::Details)
                }
                Some(button) => Clicked::Action(button),
                None => return, // no button of ours
            },
        };
        if !matches!(clicked, Clicked::Closed { .. }) {
            self.to_close.push(number); // some servers leave it to us
        }
        self.on_screen.remove(&id);
        self.tell(id, clicked);
    }

    /// With its server every popup went.
    fn all_gone(&mut self) {
        self.early.clear();
        self.to_close.clear();
        for id in std::mem::take(&mut self.on_screen).into_keys() {
            self.tell(id, Clicked::Closed { by_user: false });
        }
    }

    /// Lets go of what has been there for too long.
    fn let_go(&mut self) {
        let now = Instant::now();
        let old: Vec<_> = self.on_screen.extract_if(.., |_, shown| shown.until <= now).collect();
        for (id, shown) in old {
            self.to_close.push(shown.number);
            self.tell(id, Clicked::Closed { by_user: false });
        }
    }

    /// A popup could not be shown, nor can those be that wait behind it. The next one is tried anew.
    fn failed(&mut self, error: &anyhow::Error) {
        if !std::mem::replace(&mut self.told, true) {
            tracing::warn!("notifications cannot be shown: {error:#}; everything else goes on");
        }
        let waiting: Vec<_> = {
            let mut wanted = lock(&self.wanted);
            wanted.extract_if(.., |id, _| !self.on_screen.contains_key(id)).map(|(id, _)| id).collect()
        };
        for id in waiting {
            (self.means.clicked)(id, Clicked::Closed { by_user: false });
        }
    }

    fn tell(&self, id: PopupId, clicked: Clicked) {
        if lock(&self.wanted).remove(&id).is_some() {
            (self.means.clicked)(id, clicked);
        }
    }

    /// The buttons that the server can show; Approve and Deny only where it shows what they answer, and where what it
    /// says of a click can be believed.
    fn buttons(&self, popup: &Popup, server: &Server) -> Vec<Button> {
        let believed = server.can.body && server.pid.is_some_and(|pid| (self.means.may_answer)(pid));
        let mut buttons = if server.can.actions { popup.buttons.clone() } else { Vec::new() };
        if buttons.contains(&Button::Approve) && !believed {
            buttons.retain(|button| !matches!(button, Button::Approve | Button::Deny));
            buttons.insert(0, Button::Details);
        }
        buttons
    }
}

/// What comes next over a bus; nothing where there is none.
async fn next(bus: &mut Option<Bus>) -> Event {
    match bus {
        Some(bus) => bus.next().await,
        None => std::future::pending().await,
    }
}

fn sheet(popup: &Popup, buttons: &[Button], server: &Server, replaces: u32) -> Sheet {
    // A click beside the buttons; xfce4-notifyd knows none, and makes a button of it where it has a label.
    let label = if buttons.contains(&Button::Details) { "" } else { "Open" };
    let click = server.can.actions.then_some(["default", label]);
    let buttons = buttons.iter().map(|button| [button.name(), button.label()]);
    Sheet {
        replaces,
        title: plain(&popup.title, TITLE).into(),
        body: if server.can.body { body(&popup.body, server.can.markup) } else { String::new() },
        actions: buttons.chain(click).flatten().collect(),
        icon: match popup.cause {
            Cause::NeedsPermission | Cause::NeedsInput | Cause::PermissionLost => State::NeedsYou,
            Cause::Stuck | Cause::Crashed | Cause::Failed => State::Trouble,
            Cause::Done => State::Well,
        },
        urgency: popup.urgency,
        category: Some(format!("x-pilotlight.{}", popup.cause.name())),
        sound: popup.sound,
    }
}

/// What one thread wrote down before it broke is as good as ever.
fn lock(wanted: &Mutex<Wanted>) -> MutexGuard<'_, Wanted> {
    wanted.lock().unwrap_or_else(PoisonError::into_inner)
}
