//! The main thread on Linux: one runtime with an event channel and the icon's connection to the session bus. It needs
//! no display.
//!
//! Showing the icon calls the panel and waits for its answer without a timeout. That may block this thread, which does
//! nothing else; the bus monitor notices a panel that does not answer, and reports it.

use super::autostart::Login;
use super::bus;
use super::controller::TrayController;
use super::messages::{BusEvent, DesktopEvent, EventSender, MainEvent};
use super::sni::{NoPanel, Tray};
use super::view::MenuView;
use pilotlight_engine::control::Command;
use pilotlight_system::log::{self, cause};
use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use tokio::task::JoinHandle;

/// Minimum interval between the first two registrations with a panel that does not read the menu, or on a bus that closes
/// the icon's connection. It doubles with each further one.
const RENEW_INTERVAL: Duration = Duration::from_secs(60);
/// Maximum of that interval.
const RENEW_INTERVAL_MAX: Duration = Duration::from_secs(900);
/// Delays in seconds before a registration that failed is tried again; the last one repeats.
const RETRY_DELAYS: [u64; 6] = [1, 2, 5, 15, 60, 300];

/// A task that follows the desktop beside the engine.
pub(super) type Follower = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The loop of the main thread.
pub(super) struct Loop {
    runtime: Rc<Runtime>,
    receiver: UnboundedReceiver<MainEvent>,
    sender: UnboundedSender<MainEvent>,
    /// The folder for the icon's files, which some panels need.
    state_folder: Option<PathBuf>,
}

impl Loop {
    /// Creates the loop.
    ///
    /// # Errors
    /// Where the system refuses what a runtime needs.
    pub(super) fn new() -> anyhow::Result<Self> {
        let (sender, receiver) = mpsc::unbounded_channel();
        Ok(Self {
            runtime: Rc::new(Builder::new_current_thread().enable_all().build()?),
            receiver,
            sender,
            state_folder: None,
        })
    }

    /// The same loop, with a folder for the icon's files.
    pub(super) fn with_state_folder(self, state_folder: Option<PathBuf>) -> Self {
        Self { state_folder, ..self }
    }

    /// Returns a function that sends events to this loop, from any thread.
    pub(super) fn sender(&self) -> impl Fn(MainEvent) + Clone + Send + Sync + use<> {
        let sender = self.sender.clone();
        move |event| {
            let _ = sender.send(event); // fails only when the loop has ended
        }
    }

    /// Runs until the engine has ended.
    pub(super) fn run(mut self, mut controller: TrayController) -> anyhow::Result<()> {
        let clicks: EventSender = Arc::new(self.sender());
        let runtime = Rc::clone(&self.runtime);
        let folder = self.state_folder.take();
        let create = |view: &MenuView| Tray::new(view, Rc::clone(&runtime), Arc::clone(&clicks), folder.as_deref());
        let mut icon = IconKeeper::new(&self, create);
        if let Err(error) = controller.show_icon(create) {
            log::debug!("no icon yet: {}", cause(&*error)); // the bus monitor reports why
        }
        while let Some(event) = runtime.block_on(self.receiver.recv()) {
            // Of several queued views only the last one is shown; a click applies to the view queued before it.
            let mut view = None;
            for event in std::iter::once(event).chain(std::iter::from_fn(|| self.receiver.try_recv().ok())) {
                if let MainEvent::View(next) = event {
                    view = Some(next);
                    continue;
                }
                icon.show_view(&mut controller, view.take());
                match event {
                    MainEvent::Click(click, clicker) => controller.click_of(clicker, click),
                    MainEvent::IconClicked => controller.click_icon(),
                    MainEvent::Bus(event) => icon.handle_bus(&mut controller, &event),
                    MainEvent::IconClosed => icon.closed(&mut controller),
                    MainEvent::MenuUnread => icon.unread(&mut controller),
                    MainEvent::ShowIcon => icon.try_again(&mut controller),
                    MainEvent::End | MainEvent::View(_) => return Ok(()),
                }
            }
            icon.show_view(&mut controller, view);
        }
        Ok(())
    }
}

/// Keeps the icon in the panel: registers it with each new panel, again with one that does not read its menu, and again
/// after a failure.
struct IconKeeper<F> {
    create: F,
    sender: UnboundedSender<MainEvent>,
    runtime: Rc<Runtime>,
    renewals: Renewals,
    /// How many registrations failed since the last one that succeeded.
    failures: usize,
    /// Waits for the next try.
    retry: Option<JoinHandle<()>>,
}

impl<F: Fn(&MenuView) -> anyhow::Result<Tray> + Copy> IconKeeper<F> {
    fn new(main_loop: &Loop, create: F) -> Self {
        let (sender, runtime) = (main_loop.sender.clone(), Rc::clone(&main_loop.runtime));
        Self { create, sender, runtime, renewals: Renewals::default(), failures: 0, retry: None }
    }

    /// Shows another view. After a change of its settings the icon is registered anew, with other files: GTK looks into a
    /// folder of icons only every 5 s, and draws "image missing" for one that came in between.
    fn show_view(&mut self, controller: &mut TrayController, view: Option<Arc<MenuView>>) {
        let Some(view) = view else { return };
        let is_new = controller.shows_icon() && controller.view().icon_settings != view.icon_settings;
        if is_new {
            controller.remove_icon();
        }
        controller.show(view);
        if is_new {
            self.show(controller);
        }
    }

    fn handle_bus(&mut self, controller: &mut TrayController, event: &BusEvent) {
        match event {
            BusEvent::Connected { panel: true } => {}
            // It may be a new panel, where the icon is not registered.
            BusEvent::Panel(true) => controller.remove_icon(),
            // Also at the start: the panel that took the icon may have gone since.
            BusEvent::Connected { panel: false } | BusEvent::Panel(false) | BusEvent::Lost => {
                self.settle();
                return controller.remove_icon();
            }
            BusEvent::Unavailable(_)
            | BusEvent::PanelUnresponsive
            | BusEvent::MenuCapacity(_)
            | BusEvent::SessionOver => {
                return;
            }
        }
        self.settle();
        self.show(controller);
    }

    /// The bus closed the connection of the icon.
    fn closed(&mut self, controller: &mut TrayController) {
        match self.renewals.renew(Instant::now()) {
            Ok(()) => {
                log::warn!("the bus closed the icon's connection: the icon is shown again");
                self.renew(controller);
            }
            Err(rest) => drop(self.send_after(rest, MainEvent::IconClosed)),
        }
    }

    /// A panel does not read the menu.
    fn unread(&mut self, controller: &mut TrayController) {
        if self.renewals.renew(Instant::now()).is_ok() {
            log::info!("the panel does not read the menu: the icon is shown again");
            self.renew(controller);
        }
    }

    /// The last registration failed a while ago.
    fn try_again(&mut self, controller: &mut TrayController) {
        self.retry = None;
        if !controller.shows_icon() {
            self.show(controller);
        }
    }

    fn renew(&mut self, controller: &mut TrayController) {
        controller.remove_icon();
        self.show(controller);
    }

    fn show(&mut self, controller: &mut TrayController) {
        let Err(error) = controller.show_icon(self.create) else {
            self.settle();
            return controller.report(DesktopEvent::IconShown);
        };
        controller.report(DesktopEvent::IconMissing(format!("no icon, because the panel refuses it: {error:#}")));
        // The bus monitor reports when there is a panel.
        if !error.is::<NoPanel>() {
            let delay = RETRY_DELAYS[self.failures.min(RETRY_DELAYS.len() - 1)];
            self.failures += 1;
            self.retry = Some(self.send_after(Duration::from_secs(delay), MainEvent::ShowIcon));
        }
    }

    /// Nothing is to be tried again.
    fn settle(&mut self) {
        self.failures = 0;
        if let Some(retry) = self.retry.take() {
            retry.abort();
        }
    }

    fn send_after(&self, delay: Duration, event: MainEvent) -> JoinHandle<()> {
        let sender = self.sender.clone();
        self.runtime.spawn(async move {
            tokio::time::sleep(delay).await;
            let _ = sender.send(event); // fails only when the loop has ended
        })
    }
}

/// When the icon was last shown again although its panel had it, and how long that lasts: twice as long each time, as
/// such a panel may be one that never does what we wait for.
#[derive(Debug, Default)]
struct Renewals {
    last: Option<(Instant, Duration)>,
}

impl Renewals {
    /// Records a renewal at this time.
    ///
    /// # Errors
    /// How long it must wait.
    fn renew(&mut self, now: Instant) -> Result<(), Duration> {
        let interval = match self.last {
            None => RENEW_INTERVAL,
            Some((at, interval)) => {
                let passed = now.saturating_duration_since(at);
                if let Some(rest) = interval.checked_sub(passed).filter(|rest| !rest.is_zero()) {
                    return Err(rest);
                }
                if passed < RENEW_INTERVAL_MAX * 2 { RENEW_INTERVAL_MAX.min(interval * 2) } else { RENEW_INTERVAL }
            }
        };
        self.last = Some((now, interval));
        Ok(())
    }
}

/// What follows the desktop beside the engine: the bus, and whether this program starts at login.
pub(super) fn followers(
    to_main: impl Fn(MainEvent) + Send + Sync + 'static,
    report_desktop: impl Fn(DesktopEvent) + Send + Sync + 'static,
    commander: UnboundedSender<Command>,
    has_icon: Arc<AtomicBool>,
    login: Login,
) -> Vec<Follower> {
    let bus = follow_bus(to_main, report_desktop, commander.clone(), has_icon);
    let login = login.follow(move || {
        let _ = commander.send(Command::Redraw); // fails only when the engine has ended
    });
    vec![Box::pin(bus), Box::pin(login)]
}

/// Monitors the bus, on the engine's thread: the main thread, which may be blocked on the panel, could not report what
/// is missing.
fn follow_bus(
    to_main: impl Fn(MainEvent) + Send + Sync + 'static,
    report_desktop: impl Fn(DesktopEvent) + Send + Sync + 'static,
    commander: UnboundedSender<Command>,
    has_icon: Arc<AtomicBool>,
) -> impl Future<Output = ()> + Send + 'static {
    let report = move |event: BusEvent| {
        if let BusEvent::MenuCapacity(entries) = event {
            return report_desktop(DesktopEvent::MenuCapacity(entries));
        }
        if let Some(line) = missing(&event) {
            report_desktop(DesktopEvent::IconMissing(line));
        }
        if event == BusEvent::SessionOver {
            let _ = commander.send(Command::Quit); // fails only when the engine has ended
        } else {
            to_main(MainEvent::Bus(event));
        }
    };
    // Checked now, before the icon is visible: whoever sees it may end the session.
    let had_display = bus::has_display() == Some(true);
    async move { bus::monitor(report, || has_icon.load(Ordering::Acquire), had_display).await }
}

/// What is missing, and why, for the user.
fn missing(event: &BusEvent) -> Option<String> {
    Some(match event {
        BusEvent::Unavailable(reason) => {
            format!("no icon and no notifications, because there is no session bus: {reason}")
        }
        BusEvent::Connected { panel: false } => {
            "no icon yet, because there is no panel with a system tray. GNOME needs the extension AppIndicator. The icon comes \
             when a panel does"
                .into()
        }
        BusEvent::Panel(false) => "the panel went away. The icon comes back with the panel".into(),
        BusEvent::Lost => "the session bus went away. The icon comes back with the bus".into(),
        BusEvent::PanelUnresponsive => "no icon, because the panel does not answer".into(),
        BusEvent::Connected { panel: true }
        | BusEvent::Panel(true)
        | BusEvent::MenuCapacity(_)
        | BusEvent::SessionOver => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_211_an_icon_is_shown_again_ever_more_seldom() {
        let begun = Instant::now();
        let after = |seconds| begun + Duration::from_secs(seconds);
        let mut renewals = Renewals::default();
        assert_eq!(renewals.renew(begun), Ok(()));
        assert_eq!(renewals.renew(after(50)), Err(Duration::from_secs(10)));
        assert_eq!(renewals.renew(after(60)), Ok(()));
        assert_eq!(renewals.renew(after(160)), Err(Duration::from_secs(20)));
        let (mut now, mut renewed) = (180, 0);
        while now < 180 + 24 * 3600 {
            renewed += usize::from(renewals.renew(after(now)).is_ok());
            now += 10;
        }
        assert!((90..110).contains(&renewed), "{renewed} in a day");
        assert_eq!(renewals.renew(after(now + 7200)), Ok(()));
        assert_eq!(renewals.renew(after(now + 7200 + 60)), Ok(()), "it was well for long");
    }
}
