//! The main thread on macOS and Windows: winit's loop, which sleeps until an event arrives.

use super::controller::TrayController;
use super::messages::{DesktopEvent, MainEvent};
use super::native::Tray;
use anyhow::Context;
use tray_icon::menu::MenuEvent;
use winit::application::ApplicationHandler;
use winit::event::{StartCause, WindowEvent};
use winit::event_loop::{ActiveEventLoop, ControlFlow, EventLoop, EventLoopProxy};
use winit::window::WindowId;

/// There is no task beside the engine: the desktop reports to the loop by itself.
pub(super) type Follower = std::future::Pending<()>;

/// The loop of the main thread.
pub(super) struct Loop {
    events: EventLoop<MainEvent>,
}

impl Loop {
    /// Creates an event loop without a window.
    ///
    /// # Errors
    /// Where there is no desktop.
    pub(super) fn new() -> anyhow::Result<Self> {
        let mut builder = EventLoop::<MainEvent>::with_user_event();
        #[cfg(target_os = "macos")]
        {
            use winit::platform::macos::{ActivationPolicy, EventLoopBuilderExtMacOS};
            builder.with_activation_policy(ActivationPolicy::Accessory).with_default_menu(false);
        }
        let events = builder.build().context("there is no desktop to show an icon on")?;
        events.set_control_flow(ControlFlow::Wait);
        Ok(Self { events })
    }

    /// Returns a function that sends events to this loop, from any thread.
    pub(super) fn sender(&self) -> impl Fn(MainEvent) + Clone + Send + Sync + use<> {
        let proxy: EventLoopProxy<MainEvent> = self.events.create_proxy();
        move |event| {
            let _ = proxy.send_event(event); // fails only when the loop has ended
        }
    }

    /// Runs until the engine has ended.
    ///
    /// # Errors
    /// Where the system ends the loop.
    pub(super) fn run(self, controller: TrayController) -> anyhow::Result<()> {
        let send = self.sender();
        MenuEvent::set_event_handler(Some(move |event: MenuEvent| {
            send(MainEvent::Click(event.id));
        }));
        self.events.run_app(&mut App { controller }).context("the desktop ended the event loop")
    }
}

struct App {
    controller: TrayController,
}

impl ApplicationHandler<MainEvent> for App {
    fn new_events(&mut self, _events: &ActiveEventLoop, cause: StartCause) {
        if cause == StartCause::Init {
            let event = match self.controller.show_icon(Tray::new) {
                Ok(()) => DesktopEvent::IconShown,
                Err(error) => DesktopEvent::IconMissing(format!("no icon: {error:#}")),
            };
            self.controller.report(event);
        }
    }

    fn user_event(&mut self, events: &ActiveEventLoop, event: MainEvent) {
        match event {
            MainEvent::View(view) => self.controller.show(view),
            MainEvent::Click(id) => self.controller.click_entry(&id),
            MainEvent::End => {
                self.controller.remove_icon();
                events.exit();
            }
        }
    }

    fn resumed(&mut self, _events: &ActiveEventLoop) {}

    fn window_event(&mut self, _events: &ActiveEventLoop, _window: WindowId, _event: WindowEvent) {}
}
