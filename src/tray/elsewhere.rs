//! The main thread on macOS and Windows: winit's loop, which sleeps until it is told something.

use super::controller::{Told, TrayController};
use super::feed::News;
use super::native::Tray;
use anyhow::Context;
use tray_icon::menu::MenuEvent;
use winit::application::ApplicationHandler;
use winit::event::{StartCause, WindowEvent};
use winit::event_loop::{ActiveEventLoop, ControlFlow, EventLoop, EventLoopProxy};
use winit::window::WindowId;

/// The loop of the main thread.
pub(super) struct Loop {
    events: EventLoop<Told>,
}

impl Loop {
    /// An event loop without a window.
    ///
    /// # Errors
    /// Where the system has no desktop for us.
    pub(super) fn new() -> anyhow::Result<Self> {
        let mut builder = EventLoop::<Told>::with_user_event();
        #[cfg(target_os = "macos")]
        {
            use winit::platform::macos::{ActivationPolicy, EventLoopBuilderExtMacOS};
            builder.with_activation_policy(ActivationPolicy::Accessory).with_default_menu(false);
        }
        let events = builder.build().context("there is no desktop to show an icon on")?;
        events.set_control_flow(ControlFlow::Wait);
        Ok(Self { events })
    }

    /// Tells this loop something, from any thread.
    pub(super) fn sender(&self) -> impl Fn(Told) + Clone + Send + Sync + use<> {
        let proxy: EventLoopProxy<Told> = self.events.create_proxy();
        move |told| {
            let _ = proxy.send_event(told); // fails only when the loop has ended
        }
    }

    /// Runs until the engine has ended.
    ///
    /// # Errors
    /// Where the system ends the loop.
    pub(super) fn run(self, controller: TrayController) -> anyhow::Result<()> {
        let item = self.sender();
        MenuEvent::set_event_handler(Some(move |event: MenuEvent| item(Told::Item { item: event.id.0, aimed: true })));
        self.events.run_app(&mut App { controller }).context("the desktop ended the event loop")
    }
}

struct App {
    controller: TrayController,
}

impl ApplicationHandler<Told> for App {
    fn new_events(&mut self, _events: &ActiveEventLoop, cause: StartCause) {
        if cause == StartCause::Init {
            let news = match self.controller.light(Tray::new) {
                Ok(()) => News::Lit,
                Err(error) => News::Dark(format!("no icon ({error:#}); `pilotlight live`, `status` and `watch` work")),
            };
            self.controller.tell(news);
        }
    }

    fn user_event(&mut self, events: &ActiveEventLoop, told: Told) {
        match told {
            Told::View(view) => self.controller.show(view),
            Told::Item { item, aimed } => {
                let aimed = aimed && self.controller.tray().is_some_and(Tray::has_rested);
                self.controller.item(&item, aimed);
            }
            Told::End => {
                self.controller.put_out();
                events.exit();
            }
        }
    }

    fn resumed(&mut self, _events: &ActiveEventLoop) {}

    fn window_event(&mut self, _events: &ActiveEventLoop, _window: WindowId, _event: WindowEvent) {}
}
