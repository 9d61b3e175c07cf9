//! The main thread on Linux: a channel, what is told on it, and beside it the icon's connection to the session bus, in one
//! runtime. No display is needed.
//!
//! Putting the icon up talks to the panel and waits for its answer, without a limit. It is done here all the same, because
//! this thread does nothing else; that the panel does not answer is noticed, and said, by who watches the bus.

use super::bus::{self, Bus};
use super::controller::{Told, TrayController};
use super::feed::News;
use super::sni::{Tell, Tray};
use super::view::MenuView;
use crate::engine::Command;
use std::future::Future;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};

const STILL: &str = "`pilotlight live`, `status` and `watch` still work";

/// The loop of the main thread.
pub(super) struct Loop {
    runtime: Rc<Runtime>,
    told: UnboundedReceiver<Told>,
    tell: UnboundedSender<Told>,
    /// Where the icon's picture is put for panels that want a file.
    state_folder: Option<PathBuf>,
}

impl Loop {
    /// A loop that is told nothing yet.
    ///
    /// # Errors
    /// Where the system refuses what a runtime needs.
    pub(super) fn new() -> anyhow::Result<Self> {
        let (tell, told) = mpsc::unbounded_channel();
        Ok(Self {
            runtime: Rc::new(Builder::new_current_thread().enable_all().build()?),
            told,
            tell,
            state_folder: None,
        })
    }

    /// The same, where things can be put into this folder.
    pub(super) fn with_state_folder(self, state_folder: Option<PathBuf>) -> Self {
        Self { state_folder, ..self }
    }

    /// Tells this loop something, from any thread.
    pub(super) fn sender(&self) -> impl Fn(Told) + Clone + Send + Sync + use<> {
        let tell = self.tell.clone();
        move |told| {
            let _ = tell.send(told); // fails only when the loop has ended
        }
    }

    /// Runs until the engine has ended.
    pub(super) fn run(mut self, mut controller: TrayController) -> anyhow::Result<()> {
        let clicks: Tell = Arc::new(self.sender());
        let runtime = Rc::clone(&self.runtime);
        let folder = self.state_folder.take();
        let raise = |view: &MenuView| Tray::new(view, Rc::clone(&runtime), Arc::clone(&clicks), folder.as_deref());
        if let Err(error) = controller.light(raise) {
            tracing::debug!("no icon yet: {error:#}"); // why is found out, and said, by who follows the bus
        }
        while let Some(told) = runtime.block_on(self.told.recv()) {
            // Of several views that wait only the last one counts; a click counts in the view that came before it.
            let mut view = None;
            for told in std::iter::once(told).chain(std::iter::from_fn(|| self.told.try_recv().ok())) {
                match told {
                    Told::View(next) => view = Some(next),
                    other => {
                        show(&mut controller, view.take());
                        match other {
                            Told::Item { item, aimed } => controller.item(&item, aimed),
                            Told::Bus(bus) => follow(&mut controller, &bus, raise),
                            Told::End | Told::View(_) => return Ok(()),
                        }
                    }
                }
            }
            show(&mut controller, view);
        }
        Ok(())
    }
}

fn show(controller: &mut TrayController, view: Option<Arc<MenuView>>) {
    if let Some(view) = view {
        controller.show(view);
    }
}

fn follow(controller: &mut TrayController, bus: &Bus, raise: impl FnOnce(&MenuView) -> anyhow::Result<Tray>) {
    match bus {
        Bus::There { panel: true } => {}
        // Another one than before, perhaps: what was registered with that is gone with it.
        Bus::Panel(true) => controller.put_out(),
        // At the start, too: the one that took the icon may have gone since.
        Bus::There { panel: false } | Bus::Panel(false) | Bus::Lost => return controller.put_out(),
        Bus::Missing(_) | Bus::Deaf | Bus::Room(_) | Bus::SessionOver => return,
    }
    match controller.light(raise) {
        Ok(()) => controller.tell(News::Lit),
        Err(error) => controller.tell(News::Dark(format!("the panel refuses the icon ({error:#}); {STILL}"))),
    }
}

/// Follows the bus, on the engine's thread: what is missing is said from there, because the main thread may be waiting for
/// the panel.
pub(super) fn follow_bus(
    to_main: impl Fn(Told) + Send + Sync + 'static,
    news: impl Fn(News) + Send + Sync + 'static,
    commander: UnboundedSender<Command>,
    has_icon: Arc<AtomicBool>,
) -> impl Future<Output = ()> + Send + 'static {
    let report = move |bus: Bus| {
        if let Bus::Room(most) = bus {
            return news(News::Room(most));
        }
        if let Some(line) = missing(&bus) {
            news(News::Dark(line));
        }
        if bus == Bus::SessionOver {
            let _ = commander.send(Command::Quit); // fails only when the engine has ended
        } else {
            to_main(Told::Bus(bus));
        }
    };
    // Now, before anybody sees the icon: whoever does may end the session.
    let had_display = bus::has_display() == Some(true);
    async move { bus::follow(report, || has_icon.load(Ordering::Acquire), had_display).await }
}

/// What is missing, and what still works.
fn missing(bus: &Bus) -> Option<String> {
    Some(match bus {
        Bus::Missing(reason) => {
            format!("no icon and no notifications, because there is no session bus ({reason}); {STILL}")
        }
        Bus::There { panel: false } => format!(
            "no icon yet, because no panel with a tray is here (GNOME needs its AppIndicator extension); it comes when one \
             does, and {STILL}"
        ),
        Bus::Panel(false) => format!("the panel went away; the icon comes back with it, and {STILL}"),
        Bus::Lost => format!("the session bus went away; the icon comes back with it, and {STILL}"),
        Bus::Deaf => format!("no icon, because the panel does not answer; {STILL}"),
        Bus::There { panel: true } | Bus::Panel(true) | Bus::Room(_) | Bus::SessionOver => return None,
    })
}
