//! The task that keeps what popups are shown like what is wanted: it closes what is wanted no more, shows what is new, and tells
//! what the user did.
//!
//! Every call to the server has its time, and signals are taken up while one is under way.
//!
//! What a server refuses, or takes along when it goes, or what finds none, stays wanted: it is tried again, ever more seldom,
//! and soon where another server comes.

mod lost;
mod sheet;

use super::popups::{State, Wanted, lock};
use super::server::{Bus, Event, Server, Signal};
use super::{Clicked, Means, PATIENCE, SILENT};
use crate::core::action::Action;
use crate::core::alert::{Button, Popup, PopupId};
use lost::{Failure, WENT_AWAY};
use sheet::sheet;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant as Moment};
use tokio::sync::mpsc;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{Instant, sleep_until, timeout};
use zbus::names::OwnedUniqueName;

/// So long one is kept; a server that forgot to tell of its end is not waited for for ever.
const LASTS: Duration = Duration::from_secs(12 * 3600);
/// What a server tells before it has answered which popup that is about: so much is remembered.
const EARLY: usize = 16;
/// So much of what came before an answer is taken up with it, and the rest in its turn.
const BESIDE: usize = 64;
/// So many answers that came too late are still waited for, to close what they name. Nothing more is sent meanwhile.
const LATE: usize = 4;
/// What could not be shown is tried again after this, then after twice as long, and so on.
const SOON: Duration = Duration::from_secs(5);
/// However often it could not, it is tried again after this.
const LATER: Duration = Duration::from_secs(300);
/// A popup that comes, or is there, this soon after another went may stand where that one stood: a click that follows at once
/// was aimed at what is no longer there.
const SETTLES: Duration = Duration::from_millis(1200);
/// A popup that was sent this short a while ago may have come under a pointer that was on its way down.
const FRESH: Duration = Duration::from_millis(700);
/// The task, and what it knows.
pub(super) struct Keeper {
    wanted: Arc<Mutex<Wanted>>,
    means: Means,
    bus: Option<Bus>,
    server: Option<Server>,
    /// The last that the bus told of the server, while it was looked for.
    announced: Option<Option<OwnedUniqueName>>,
    on_screen: BTreeMap<PopupId, OnScreen>,
    /// Popups, by the server's numbers, that are nobody's any more.
    to_close: Vec<u32>,
    /// When one last went.
    closed: Option<Moment>,
    /// When what is lost is tried again.
    again_at: Option<Instant>,
    /// How long it is waited then, if it is lost again.
    wait: Duration,
    /// When it was last tried again.
    tried: Option<Instant>,
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
    /// Before, a click on what answers only shows it anew.
    settled: Moment,
    until: Instant,
}

enum Step {
    Close(u32),
    Show(Box<Popup>),
}

impl Keeper {
    /// Nothing is shown yet.
    pub(super) fn new(wanted: Arc<Mutex<Wanted>>, means: Means) -> Self {
        Self {
            wanted,
            means,
            bus: None,
            server: None,
            announced: None,
            on_screen: BTreeMap::new(),
            to_close: Vec::new(),
            closed: None,
            again_at: None,
            wait: SOON,
            tried: None,
            early: Vec::new(),
            late: JoinSet::new(),
            told: false,
        }
    }

    /// Keeps what is shown like what is wanted, whenever it is nudged, until nobody can nudge it any more.
    pub(super) async fn run(mut self, mut nudges: mpsc::Receiver<()>) {
        loop {
            let until = self.on_screen.values().map(|shown| shown.until).chain(self.again_at).min();
            tokio::select! {
                biased;
                event = next(&mut self.bus) => self.take(event),
                nudge = nudges.recv() => match nudge {
                    Some(()) => {}
                    None => break,
                },
                () = sleep_until(until.unwrap_or_else(Instant::now)), if until.is_some() => {
                    self.let_go();
                    self.try_again();
                }
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
                    if let Err(why) = self.show(&popup).await {
                        self.failed(popup.id, &why);
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
        let (popup, state) = wanted.values_mut().find(|(_, state)| *state == State::New)?;
        *state = State::Told;
        Some(Step::Show(Box::new(popup.clone())))
    }

    async fn show(&mut self, popup: &Popup) -> Result<(), Failure> {
        while self.late.try_join_next().is_some() {}
        if self.late.len() >= LATE {
            return Err(Failure::Silent(SILENT));
        }
        let server = self.meet().await?;
        let replaces = self.on_screen.get(&popup.id).map_or(0, |shown| shown.number);
        let buttons = self.buttons(popup, &server);
        let sheet = sheet(popup, &buttons, &server, replaces);
        self.early.clear();
        let sent = self.now();
        let of = server.clone();
        let mut call = tokio::spawn(async move { of.notify(&sheet).await });
        let Some(answer) = self.during(timeout(PATIENCE, &mut call)).await.ok() else {
            self.close_when_late(call, server);
            return Err(Failure::Silent(SILENT));
        };
        let number = match answer.map_err(anyhow::Error::from)? {
            Err(error) if server.refused(&error) => return Err(Failure::Refused(error)),
            answer => answer.map_err(anyhow::Error::from)?,
        };
        if self.server.as_ref().map(|now| &now.owner) != Some(&server.owner) {
            return Err(anyhow::anyhow!(WENT_AWAY).into());
        }
        (self.told, self.wait) = (false, SOON);
        self.again_at = self.again_at.map(|at| at.min(Instant::now() + SOON));
        // A server that gives one number twice shows the second in place of the first.
        let replaced: Vec<_> =
            self.on_screen.extract_if(.., |id, shown| *id != popup.id && shown.number == number).collect();
        for (id, _) in replaced {
            self.went();
            self.tell(id, Clicked::Closed { by_user: false });
        }
        let now = self.now();
        let moved = self.closed.filter(|closed| now < *closed + SETTLES).map_or(now, |_| now + SETTLES);
        let settled = moved.max(sent + FRESH);
        self.on_screen.insert(popup.id, OnScreen { number, buttons, settled, until: Instant::now() + LASTS });
        for (_, signal) in self.early.extract_if(.., |(of, _)| *of == number).collect::<Vec<_>>() {
            self.heard(number, signal);
        }
        Ok(())
    }

    /// The server that is there, over a bus that is there.
    async fn meet(&mut self) -> Result<Server, Failure> {
        if self.bus.is_none() {
            let bus = timeout(PATIENCE, Bus::connect(self.means.bus.as_deref())).await;
            let bus = bus.map_err(|_| Failure::Silent("the session bus does not answer"))?;
            self.bus = Some(bus.map_err(anyhow::Error::from)?);
        }
        if let Some(server) = &self.server {
            return Ok(server.clone());
        }
        let bus = self.bus.as_ref().ok_or_else(|| anyhow::anyhow!("the session bus went away"))?;
        let meeting = bus.meet();
        self.announced = None;
        let server = self.during(timeout(PATIENCE, meeting)).await.map_err(|_| Failure::Silent(SILENT))?;
        let server = server.map_err(anyhow::Error::from)?;
        // Another one may have taken its place before it answered.
        if self.bus.is_none() || self.announced.as_ref().is_some_and(|owner| owner.as_ref() != Some(&server.owner)) {
            return Err(anyhow::anyhow!(WENT_AWAY).into());
        }
        self.server = Some(server.clone());
        Ok(server)
    }

    /// Waits for a call, and takes up meanwhile what comes over the bus: also what came just before the answer, so that a popup
    /// that is raised next knows what went.
    async fn during<T>(&mut self, call: impl Future<Output = T>) -> T {
        let mut call = std::pin::pin!(call);
        let answer = loop {
            tokio::select! {
                biased;
                answer = &mut call => break answer,
                event = next(&mut self.bus) => self.take(event),
            }
        };
        for _ in 0..BESIDE {
            tokio::select! {
                biased;
                event = next(&mut self.bus) => self.take(event),
                () = std::future::ready(()) => break,
            }
        }
        answer
    }

    async fn close(&mut self, number: u32) {
        let Some(server) = self.server.clone() else { return };
        self.went();
        // One that is gone already is an error to some servers. One that does not answer will hear it all the same.
        let _ = self.during(timeout(PATIENCE, server.close(number))).await;
        self.went(); // it went in between
    }

    /// A popup went, and what is on the screen may have moved to where it stood.
    fn went(&mut self) {
        let now = self.now();
        self.closed = Some(now);
        for shown in self.on_screen.values_mut() {
            shown.settled = now + SETTLES;
        }
    }

    /// A popup that a slow server shows after all is closed then: nobody knows of it any more.
    fn close_when_late(&mut self, call: JoinHandle<zbus::Result<u32>>, server: Server) {
        self.late.spawn(async move {
            // What is not answered by then will not be shown.
            if let Ok(Ok(Ok(number))) = timeout(LATER, call).await {
                let _ = server.close(number).await;
            }
        });
    }

    fn take(&mut self, event: Event) {
        match event {
            Event::Signal(message) => {
                if let Some((number, signal)) = self.server.as_ref().and_then(|server| server.read(&message)) {
                    self.heard(number, signal);
                }
            }
            Event::Owner(owner) => {
                if owner.is_some() {
                    self.try_soon();
                }
                self.announced = Some(owner.clone());
                if self.server.as_ref().is_some_and(|server| Some(&server.owner) != owner.as_ref()) {
                    self.all_gone();
                }
            }
            Event::Lost => {
                self.bus = None;
                self.all_gone();
            }
        }
    }

    fn heard(&mut self, number: u32, signal: Signal) {
        let found = self.on_screen.iter().find(|(_, shown)| shown.number == number);
        let Some((id, shown)) = found.map(|(id, shown)| (*id, shown)) else {
            if matches!(signal, Signal::Closed { .. }) {
                self.went(); // one that we closed, or another program's
            }
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
                Some(button) if button.answers() && self.now() < shown.settled => {
                    tracing::info!("a click came just after its popup, or where another had stood: it is shown again");
                    return self.show_anew(id, number);
                }
                Some(button) => Clicked::Action(button),
                None => return, // no button of ours
            },
        };
        if !matches!(clicked, Clicked::Closed { .. }) {
            self.to_close.push(number); // some servers leave it to us
        }
        self.on_screen.remove(&id);
        self.went();
        self.tell(id, clicked);
    }

    /// A popup was clicked before it could be read. Some servers take it away with the click, so it is closed and raised.
    fn show_anew(&mut self, id: PopupId, number: u32) {
        self.on_screen.remove(&id);
        self.to_close.push(number);
        self.went();
        if let Some((popup, state)) = lock(&self.wanted).get_mut(&id) {
            (popup.sound, *state) = (false, State::New);
        }
    }

    /// The server is gone, and every popup with it. What was seen and heard is only seen again.
    fn all_gone(&mut self) {
        self.server = None;
        self.early.clear();
        self.to_close.clear();
        let gone = std::mem::take(&mut self.on_screen);
        if gone.is_empty() {
            return;
        }
        self.went();
        for (popup, state) in lock(&self.wanted).values_mut().filter(|(popup, _)| gone.contains_key(&popup.id)) {
            (popup.sound, *state) = (false, State::Lost);
        }
        self.wait_for_another_try();
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

    fn now(&self) -> Moment {
        (self.means.now)()
    }

    fn tell(&self, id: PopupId, clicked: Clicked) {
        if lock(&self.wanted).remove(&id).is_some() {
            (self.means.clicked)(id, clicked);
        }
    }

    /// The buttons that the server can show; what answers only where it shows what they answer, and where what it
    /// says of a click can be believed.
    fn buttons(&self, popup: &Popup, server: &Server) -> Vec<Button> {
        let believed = server.can.body && server.pid.is_some_and(|pid| (self.means.may_answer)(pid));
        let mut buttons = if server.can.actions { popup.buttons.clone() } else { Vec::new() };
        if buttons.iter().any(|button| button.answers()) && !believed {
            let is_request = buttons.contains(&Button::Act(Action::Approve));
            let elsewhere = if is_request { Button::Review } else { Button::Act(Action::Answer) };
            buttons.retain(|button| !button.answers() && *button != elsewhere);
            buttons.insert(0, elsewhere);
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
