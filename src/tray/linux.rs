//! The main thread on Linux: one runtime with an event channel and the icon's connection to the session bus. It needs
//! no display.
//!
//! Showing the icon calls the panel and waits for its answer without a timeout. That may block this thread, which does
//! nothing else; the bus monitor notices a panel that does not answer, and reports it.

use super::bus;
use super::controller::TrayController;
use super::messages::{BusEvent, DesktopEvent, EventSender, MainEvent};
use super::sni::Tray;
use super::view::MenuView;
use crate::config::Tray as Settings;
use crate::engine::Command;
use std::future::Future;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};

/// Minimum interval between two registrations with a panel that does not read the menu, or on a bus that closes the icon's
/// connection.
const RENEW_INTERVAL: Duration = Duration::from_secs(60);
const WORKS_WITHOUT_ICON: &str = "`pilotlight live`, `status` and `watch` still work";

/// The loop of the main thread.
pub(super) struct Loop {
    runtime: Rc<Runtime>,
    receiver: UnboundedReceiver<MainEvent>,
    sender: UnboundedSender<MainEvent>,
    /// The folder for the icon's files, which some panels need, and the settings of the icon.
    pictures: (Option<PathBuf>, Settings),
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
            pictures: (None, Settings::default()),
        })
    }

    /// The same loop, with a folder for the icon's files, and the settings of the icon.
    pub(super) fn with_pictures(self, state_folder: Option<PathBuf>, settings: Settings) -> Self {
        Self { pictures: (state_folder, settings), ..self }
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
        let (folder, settings) = std::mem::take(&mut self.pictures);
        let create =
            |view: &MenuView| Tray::new(view, Rc::clone(&runtime), Arc::clone(&clicks), folder.as_deref(), settings);
        let mut renewed: Option<Instant> = None;
        if let Err(error) = controller.show_icon(create) {
            tracing::debug!("no icon yet: {error:#}"); // the bus monitor reports why
        }
        while let Some(event) = runtime.block_on(self.receiver.recv()) {
            // Of several queued views only the last one is shown; a click applies to the view queued before it.
            let mut view = None;
            for event in std::iter::once(event).chain(std::iter::from_fn(|| self.receiver.try_recv().ok())) {
                match event {
                    MainEvent::View(next) => view = Some(next),
                    other => {
                        show(&mut controller, view.take());
                        match other {
                            MainEvent::Click(click) => controller.click(click),
                            MainEvent::Bus(event) => handle_bus(&mut controller, &event, create),
                            MainEvent::IconClosed => match rest_of_interval(renewed) {
                                None => {
                                    tracing::warn!("the bus closed the icon's connection: the icon is shown again");
                                    renewed = Some(Instant::now());
                                    handle_bus(&mut controller, &BusEvent::Panel(true), create);
                                }
                                Some(rest) => {
                                    let sender = self.sender.clone();
                                    runtime.spawn(async move {
                                        tokio::time::sleep(rest).await;
                                        let _ = sender.send(MainEvent::IconClosed); // fails only when the loop has ended
                                    });
                                }
                            },
                            MainEvent::MenuUnread => {
                                if rest_of_interval(renewed).is_none() {
                                    tracing::info!("the panel does not read the menu: the icon is shown again");
                                    renewed = Some(Instant::now());
                                    handle_bus(&mut controller, &BusEvent::Panel(true), create);
                                }
                            }
                            MainEvent::End | MainEvent::View(_) => return Ok(()),
                        }
                    }
                }
            }
            show(&mut controller, view);
        }
        Ok(())
    }
}

/// How much of the interval since the last renewal is left.
fn rest_of_interval(renewed: Option<Instant>) -> Option<Duration> {
    RENEW_INTERVAL.checked_sub(renewed?.elapsed()).filter(|rest| !rest.is_zero())
}

fn show(controller: &mut TrayController, view: Option<Arc<MenuView>>) {
    if let Some(view) = view {
        controller.show(view);
    }
}

fn handle_bus(
    controller: &mut TrayController,
    event: &BusEvent,
    create: impl FnOnce(&MenuView) -> anyhow::Result<Tray>,
) {
    match event {
        BusEvent::Connected { panel: true } => {}
        // It may be a new panel, where the icon is not registered.
        BusEvent::Panel(true) => controller.remove_icon(),
        // Also at the start: the panel that took the icon may have gone since.
        BusEvent::Connected { panel: false } | BusEvent::Panel(false) | BusEvent::Lost => {
            return controller.remove_icon();
        }
        BusEvent::Unavailable(_) | BusEvent::PanelUnresponsive | BusEvent::MenuCapacity(_) | BusEvent::SessionOver => {
            return;
        }
    }
    match controller.show_icon(create) {
        Ok(()) => controller.report(DesktopEvent::IconShown),
        Err(error) => {
            let line = format!("the panel refuses the icon ({error:#}); {WORKS_WITHOUT_ICON}");
            controller.report(DesktopEvent::IconMissing(line));
        }
    }
}

/// Monitors the bus, on the engine's thread: the main thread, which may be blocked on the panel, could not report what
/// is missing.
pub(super) fn follow_bus(
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

/// The line for the user: what is missing, and what still works.
fn missing(event: &BusEvent) -> Option<String> {
    Some(match event {
        BusEvent::Unavailable(reason) => {
            format!("no icon and no notifications, because there is no session bus ({reason}); {WORKS_WITHOUT_ICON}")
        }
        BusEvent::Connected { panel: false } => format!(
            "no icon yet, because no panel with a tray is here (GNOME needs its AppIndicator extension); it comes when one \
             does, and {WORKS_WITHOUT_ICON}"
        ),
        BusEvent::Panel(false) => format!("the panel went away; the icon comes back with it, and {WORKS_WITHOUT_ICON}"),
        BusEvent::Lost => format!("the session bus went away; the icon comes back with it, and {WORKS_WITHOUT_ICON}"),
        BusEvent::PanelUnresponsive => format!("no icon, because the panel does not answer; {WORKS_WITHOUT_ICON}"),
        BusEvent::Connected { panel: true }
        | BusEvent::Panel(true)
        | BusEvent::MenuCapacity(_)
        | BusEvent::SessionOver => return None,
    })
}
