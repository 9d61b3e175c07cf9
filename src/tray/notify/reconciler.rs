//! The task that reconciles the popups on the screen with the wanted set: it closes those that are no longer wanted,
//! shows new ones, and reports what the user did.
//!
//! Every call to the server has a timeout, and signals are handled while one is pending.
//!
//! A popup that a server refuses, that is lost with its server, or for which there is no server stays wanted. It is
//! retried with exponential backoff, and soon after a new server appears.

mod notification;
mod retry;

use super::PopupConfig;
use super::server::{Bus, ButtonRow, NO_REPLY, Server, ServerEvent, Signal, TIMEOUT};
use crate::tray::messages::PopupEvent;
use notification::{FEW_ACTIONS, LATER, notification};
use pilotlight_core::action::Action;
use pilotlight_core::alert::{Button, Popup, PopupId, ShownRequest};
use pilotlight_system::log;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant as Moment};
use tokio::sync::mpsc;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{Instant, sleep_until, timeout};
use zbus::names::OwnedUniqueName;

/// How long a popup is tracked: a server may never report that it was closed.
const MAX_AGE: Duration = Duration::from_secs(12 * 3600);
/// Maximum number of signals kept that arrive before the reply with their popup's number.
const EARLY_SIGNALS_MAX: usize = 16;
/// Maximum number of queued events handled together with a reply; the rest is handled later.
const DRAIN_MAX: usize = 64;
/// Maximum number of late replies to wait for, in order to close their popups. At the limit, nothing more is sent.
const LATE_REPLIES_MAX: usize = 4;
/// The delay before the first retry; it doubles with each further one.
const RETRY_MIN: Duration = Duration::from_secs(5);
/// Maximum delay before a retry.
const RETRY_MAX: Duration = Duration::from_secs(300);
/// For this long after a popup was closed, another one may be in its place: a click in that time may have been meant
/// for the closed one.
const SETTLE_TIME: Duration = Duration::from_millis(1200);
/// For this long after a popup was sent, a click may be one that was already under way when it appeared.
const FRESH: Duration = Duration::from_millis(700);

const SERVER_GONE: &str = "the notification server went away";

/// The popups that should be on the screen.
pub(super) type Wanted = BTreeMap<PopupId, (Popup, State)>;

/// The state of a wanted popup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Not sent to the server yet.
    New,
    Sent,
    /// Could not be shown, or was lost with its server. It is retried.
    Lost,
}

/// Ignores poisoning: the set is valid after a panic.
pub(super) fn lock(wanted: &Mutex<Wanted>) -> MutexGuard<'_, Wanted> {
    wanted.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The task and its state.
pub(super) struct Reconciler {
    wanted: Arc<Mutex<Wanted>>,
    config: PopupConfig,
    bus: Option<Bus>,
    server: Option<Server>,
    /// The latest change of the server's owner, if there was one during the search for it.
    announced: Option<Option<OwnedUniqueName>>,
    on_screen: BTreeMap<PopupId, OnScreen>,
    /// The server's numbers of popups that are to be closed and no longer tracked.
    to_close: Vec<u32>,
    /// When a popup was last closed.
    last_closed: Option<Moment>,
    /// When lost popups are retried.
    retry_at: Option<Instant>,
    /// The delay before the next retry.
    backoff: Duration,
    last_retry: Option<Instant>,
    /// Signals since the last call for unknown popups.
    early_signals: Vec<(u32, Signal)>,
    late_replies: JoinSet<()>,
    /// It was logged that popups cannot be shown.
    warned: bool,
}

/// A popup on the screen.
struct OnScreen {
    /// The server's number for it.
    number: u32,
    buttons: Vec<Button>,
    /// Before this, a click on a button that answers only shows the popup again.
    settled: Moment,
    expires: Instant,
}

/// Why a popup could not be shown.
enum Failure {
    /// The server refused it.
    Refused(zbus::Error),
    /// The call timed out; with the reason.
    NoReply(&'static str),
    /// The server or the bus is gone.
    Gone(anyhow::Error),
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        Self::Gone(error)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(error) => write!(out, "{error}"),
            Self::NoReply(reason) => out.write_str(reason),
            Self::Gone(error) => write!(out, "{error:#}"),
        }
    }
}

enum Step {
    Close(u32),
    Show(Box<Popup>),
}

impl Reconciler {
    /// Creates the task without any popup.
    pub(super) fn new(wanted: Arc<Mutex<Wanted>>, config: PopupConfig) -> Self {
        Self {
            wanted,
            config,
            bus: None,
            server: None,
            announced: None,
            on_screen: BTreeMap::new(),
            to_close: Vec::new(),
            last_closed: None,
            retry_at: None,
            backoff: RETRY_MIN,
            last_retry: None,
            early_signals: Vec::new(),
            late_replies: JoinSet::new(),
            warned: false,
        }
    }

    /// Reconciles whenever it is woken, until the senders of `wakes` are dropped.
    pub(super) async fn run(mut self, mut wakes: mpsc::Receiver<()>) {
        loop {
            let deadline = self.on_screen.values().map(|shown| shown.expires).chain(self.retry_at).min();
            tokio::select! {
                biased;
                event = next(&mut self.bus) => self.handle_event(event),
                wake = wakes.recv() => match wake {
                    Some(()) => {}
                    None => break,
                },
                () = sleep_until(deadline.unwrap_or_else(Instant::now)), if deadline.is_some() => {
                    self.expire();
                    self.retry();
                }
            }
            self.reconcile().await;
        }
        self.close_all().await;
    }

    /// Closes all popups, at exit. The calls are sent together, so that a server that is slow to answer still gets all
    /// of them.
    async fn close_all(self) {
        let Some(server) = self.server else { return };
        let numbers = self.on_screen.values().map(|shown| shown.number).chain(self.to_close);
        let mut closes = JoinSet::new();
        for number in numbers {
            let server = server.clone();
            closes.spawn(async move { server.close(number).await });
        }
        while closes.join_next().await.is_some() {}
    }

    async fn reconcile(&mut self) {
        while let Some(step) = self.next_step() {
            match step {
                Step::Close(number) => self.close(number).await,
                Step::Show(popup) => {
                    if let Err(failure) = self.show(&popup).await {
                        self.failed(popup.id, &failure);
                    }
                }
            }
        }
    }

    /// The next step: closing comes before showing.
    fn next_step(&mut self) -> Option<Step> {
        let mut wanted = lock(&self.wanted);
        if let Some(number) = self.to_close.pop() {
            return Some(Step::Close(number));
        }
        if let Some(id) = self.on_screen.keys().find(|id| !wanted.contains_key(id)).copied() {
            return self.on_screen.remove(&id).map(|shown| Step::Close(shown.number));
        }
        let (popup, state) = wanted.values_mut().find(|(_, state)| *state == State::New)?;
        *state = State::Sent;
        Some(Step::Show(Box::new(popup.clone())))
    }

    async fn show(&mut self, popup: &Popup) -> Result<(), Failure> {
        while self.late_replies.try_join_next().is_some() {}
        if self.late_replies.len() >= LATE_REPLIES_MAX {
            return Err(Failure::NoReply(NO_REPLY));
        }
        let server = self.server().await?;
        let replaces = self.on_screen.get(&popup.id).map_or(0, |shown| shown.number);
        let buttons = self.buttons(popup, &server);
        let notification = notification(popup, &buttons, &server, replaces);
        self.early_signals.clear();
        let sent = self.now();
        let receiver = server.clone();
        let mut call = tokio::spawn(async move { receiver.notify(&notification).await });
        let Some(reply) = self.wait_for(timeout(TIMEOUT, &mut call)).await.ok() else {
            self.close_when_late(call, server);
            return Err(Failure::NoReply(NO_REPLY));
        };
        let number = match reply.map_err(anyhow::Error::from)? {
            Err(error) if server.refused(&error) => return Err(Failure::Refused(error)),
            reply => reply.map_err(anyhow::Error::from)?,
        };
        if self.server.as_ref().map(|current| &current.owner) != Some(&server.owner) {
            return Err(anyhow::anyhow!(SERVER_GONE).into());
        }
        (self.warned, self.backoff) = (false, RETRY_MIN);
        self.retry_at = self.retry_at.map(|at| at.min(Instant::now() + RETRY_MIN));
        // A server that returns a number again has replaced the popup with that number.
        let replaced: Vec<_> =
            self.on_screen.extract_if(.., |id, shown| *id != popup.id && shown.number == number).collect();
        for (id, _) in replaced {
            self.note_closed();
            self.report(id, PopupEvent::Closed { by_user: false });
        }
        let now = self.now();
        let moved = self.last_closed.filter(|closed| now < *closed + SETTLE_TIME).map_or(now, |_| now + SETTLE_TIME);
        let settled = moved.max(sent + FRESH);
        self.on_screen.insert(popup.id, OnScreen { number, buttons, settled, expires: Instant::now() + MAX_AGE });
        for (_, signal) in self.early_signals.extract_if(.., |(of, _)| *of == number).collect::<Vec<_>>() {
            self.handle_signal(number, signal);
        }
        Ok(())
    }

    /// Returns the current server. Connects to the bus and finds the server if necessary.
    async fn server(&mut self) -> Result<Server, Failure> {
        if self.bus.is_none() {
            let bus = timeout(TIMEOUT, Bus::connect(self.config.bus.as_deref())).await;
            let bus = bus.map_err(|_| Failure::NoReply("the session bus does not answer"))?;
            self.bus = Some(bus.map_err(anyhow::Error::from)?);
        }
        if let Some(server) = &self.server {
            return Ok(server.clone());
        }
        let bus = self.bus.as_ref().ok_or_else(|| anyhow::anyhow!("the session bus went away"))?;
        let search = bus.find_server();
        self.announced = None;
        let server = self.wait_for(timeout(TIMEOUT, search)).await.map_err(|_| Failure::NoReply(NO_REPLY))?;
        let server = server.map_err(anyhow::Error::from)?;
        // Another server may have replaced it before its reply arrived.
        if self.bus.is_none() || self.announced.as_ref().is_some_and(|owner| owner.as_ref() != Some(&server.owner)) {
            return Err(anyhow::anyhow!(SERVER_GONE).into());
        }
        self.server = Some(server.clone());
        Ok(server)
    }

    /// Waits for a call and handles events in the meantime, including those that arrived just before the reply: the
    /// next popup must know which ones were closed.
    async fn wait_for<T>(&mut self, call: impl Future<Output = T>) -> T {
        let mut call = std::pin::pin!(call);
        let reply = loop {
            tokio::select! {
                biased;
                reply = &mut call => break reply,
                event = next(&mut self.bus) => self.handle_event(event),
            }
        };
        for _ in 0..DRAIN_MAX {
            tokio::select! {
                biased;
                event = next(&mut self.bus) => self.handle_event(event),
                () = std::future::ready(()) => break,
            }
        }
        reply
    }

    async fn close(&mut self, number: u32) {
        let Some(server) = self.server.clone() else { return };
        self.note_closed();
        // Some servers fail if the popup is already gone. After a timeout, the call may still arrive.
        let _ = self.wait_for(timeout(TIMEOUT, server.close(number))).await;
        self.note_closed(); // it may have happened at any time during the call
    }

    /// Records that a popup was closed: the others may have moved into its place.
    fn note_closed(&mut self) {
        let now = self.now();
        self.last_closed = Some(now);
        for shown in self.on_screen.values_mut() {
            shown.settled = now + SETTLE_TIME;
        }
    }

    /// Waits for a late reply, to close its popup, which is no longer tracked.
    fn close_when_late(&mut self, call: JoinHandle<zbus::Result<u32>>, server: Server) {
        self.late_replies.spawn(async move {
            // A call without a reply by then is not going to be carried out.
            if let Ok(Ok(Ok(number))) = timeout(RETRY_MAX, call).await {
                let _ = server.close(number).await;
            }
        });
    }

    fn handle_event(&mut self, event: ServerEvent) {
        match event {
            ServerEvent::Signal(message) => {
                if let Some((number, signal)) = self.server.as_ref().and_then(|server| server.read(&message)) {
                    self.handle_signal(number, signal);
                }
            }
            ServerEvent::Owner(owner) => {
                if owner.is_some() {
                    self.retry_soon();
                }
                self.announced = Some(owner.clone());
                if self.server.as_ref().is_some_and(|server| Some(&server.owner) != owner.as_ref()) {
                    self.server_gone();
                }
            }
            ServerEvent::Lost => {
                self.bus = None;
                self.server_gone();
            }
        }
    }

    fn handle_signal(&mut self, number: u32, signal: Signal) {
        let found = self.on_screen.iter().find(|(_, shown)| shown.number == number);
        let Some((id, shown)) = found.map(|(id, shown)| (*id, shown)) else {
            if matches!(signal, Signal::Closed { .. }) {
                self.note_closed(); // one that we closed, or another program's
            }
            if self.early_signals.len() < EARLY_SIGNALS_MAX {
                self.early_signals.push((number, signal));
            }
            return;
        };
        let is_invoked = matches!(signal, Signal::Invoked(_));
        let button = |name: &str| shown.buttons.iter().copied().find(|button| button.name() == name);
        let event = match signal {
            Signal::Closed { by_user } => PopupEvent::Closed { by_user },
            Signal::Invoked(action) if action == LATER => PopupEvent::Closed { by_user: true },
            Signal::Invoked(action) if action == "default" => PopupEvent::Default,
            Signal::Invoked(action) => match button(&action) {
                Some(button) if button.answers() && self.now() < shown.settled => {
                    log::info!("a click came too soon after its popup was shown or moved: the popup is shown again");
                    return self.show_again(id, number);
                }
                Some(button) => PopupEvent::Action(button),
                None => return, // an unknown action
            },
        };
        if is_invoked {
            self.to_close.push(number); // some servers leave closing to us
        }
        self.on_screen.remove(&id);
        self.note_closed();
        self.report(id, event);
    }

    /// Shows a popup again that was clicked before it could be read. It is closed first, as some servers close it on a
    /// click.
    fn show_again(&mut self, id: PopupId, number: u32) {
        self.on_screen.remove(&id);
        self.to_close.push(number);
        self.note_closed();
        if let Some((popup, state)) = lock(&self.wanted).get_mut(&id) {
            (popup.sound, *state) = (false, State::New);
        }
    }

    /// Handles the loss of the server and all its popups. They are retried without a sound.
    fn server_gone(&mut self) {
        self.server = None;
        self.early_signals.clear();
        self.to_close.clear();
        let gone = std::mem::take(&mut self.on_screen);
        if gone.is_empty() {
            return;
        }
        self.note_closed();
        for (popup, state) in lock(&self.wanted).values_mut().filter(|(popup, _)| gone.contains_key(&popup.id)) {
            (popup.sound, *state) = (false, State::Lost);
        }
        self.schedule_retry();
    }

    /// Closes popups that have reached [`MAX_AGE`].
    fn expire(&mut self) {
        let now = Instant::now();
        let old: Vec<_> = self.on_screen.extract_if(.., |_, shown| shown.expires <= now).collect();
        for (id, shown) in old {
            self.to_close.push(shown.number);
            self.report(id, PopupEvent::Closed { by_user: false });
        }
    }

    fn now(&self) -> Moment {
        (self.config.now)()
    }

    fn report(&self, id: PopupId, event: PopupEvent) {
        if lock(&self.wanted).remove(&id).is_some() {
            (self.config.clicked)(id, event);
        }
    }

    /// The buttons that the server can show. Those that answer are left out unless it shows the body, which says what
    /// they answer, and its clicks can be trusted.
    fn buttons(&self, popup: &Popup, server: &Server) -> Vec<Button> {
        let trusted = server.capabilities.body && server.pid.is_some_and(|pid| (self.config.may_answer)(pid));
        let mut buttons = if server.capabilities.actions { popup.buttons.clone() } else { Vec::new() };
        if buttons.iter().any(|button| button.answers()) && !trusted {
            answer_elsewhere(&mut buttons);
        }
        // "Not now" takes one of the three buttons that such a server draws. A question with an answer that is not drawn
        // would seem to have only the others, so it is answered where all of them are.
        let is_answer = |button: &Button| matches!(button, Button::Choice(_) | Button::Act(Action::Answer));
        if server.capabilities.drops_actions && buttons.iter().filter(|button| is_answer(button)).count() >= FEW_ACTIONS
        {
            answer_elsewhere(&mut buttons);
        }
        if let Some(row) = server.capabilities.button_row {
            fit(&mut buttons, &row, popup.asked.as_ref());
        }
        buttons
    }
}

/// Replaces the buttons that answer by the one that shows the request or question in a terminal.
fn answer_elsewhere(buttons: &mut Vec<Button>) {
    let is_request = buttons.contains(&Button::Act(Action::Approve));
    let elsewhere = if is_request { Button::Review } else { Button::Act(Action::Answer) };
    buttons.retain(|button| !button.answers() && *button != elsewhere);
    buttons.insert(0, elsewhere);
}

/// Leaves out buttons until the rest can be read side by side: muting first, which comes last, then the terminal. Answers
/// are all there, or one button shows them elsewhere.
fn fit(buttons: &mut Vec<Button>, row: &ButtonRow, asked: Option<&ShownRequest>) {
    let labels_fit = |buttons: &[Button]| row.fits(buttons.iter().map(|button| button.label_among(buttons, asked)));
    let is_answer = |button: &Button| button.answers() || *button == Button::Act(Action::Answer);
    let answers: Vec<_> = buttons.iter().copied().filter(is_answer).collect();
    if !labels_fit(&answers) {
        answer_elsewhere(buttons);
    }
    while !labels_fit(buttons) && buttons.len() > 1 {
        buttons.pop();
    }
}

/// The next event of a bus; never resolves if there is none.
async fn next(bus: &mut Option<Bus>) -> ServerEvent {
    match bus {
        Some(bus) => bus.next().await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_660_no_more_buttons_than_can_be_read() {
        use Button::{Act, Choice, Mute, Review};
        let row = |server| ButtonRow::of(server).unwrap();
        let fitted = |server, buttons: &[Button], choices: &[&str]| {
            let choices = choices.iter().map(|&words| words.to_owned()).collect();
            let asked = ShownRequest { request: 1, text: "x".into(), choices };
            let mut buttons = buttons.to_vec();
            fit(&mut buttons, &row(server), Some(&asked));
            buttons
        };
        let (cinnamon, budgie) = ("cinnamon", "Budgie Notification Server");
        let terminal = Act(Action::ShowTerminal);
        let request = [Act(Action::Approve), Act(Action::Deny), terminal, Mute];
        assert_eq!(fitted(cinnamon, &request, &[]), request);
        assert_eq!(fitted(budgie, &request, &[]), request[..2]);
        let question = [Choice(0), Choice(1), Choice(2), terminal, Mute];
        assert_eq!(fitted(cinnamon, &question, &["Red", "Green", "Blue"]), question[..4]);
        assert_eq!(fitted(budgie, &question, &["Red", "Green", "Blue"]), question[..3]);
        let long = ["A colour that is warm", "A colour that is cold", "None of these"];
        assert_eq!(fitted(cinnamon, &question, &long), [Act(Action::Answer), terminal, Mute]);
        assert_eq!(fitted(budgie, &question, &long), [Act(Action::Answer), terminal]);
        let stuck = [Act(Action::Continue), Act(Action::Reconnect), terminal, Mute];
        assert_eq!(fitted(budgie, &stuck, &[]), stuck[..1]);
        assert_eq!(fitted(budgie, &[Review, Mute], &[]), [Review, Mute]);
        assert_eq!(ButtonRow::of("gnome-shell"), None);
    }
}
