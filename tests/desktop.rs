//! The light on a desktop of the test's own: the real program on a private session bus, the test as its panel and its
//! notification server. What a real panel makes of it is for `tests/visible.sh`, and for eyes.

#![cfg(target_os = "linux")]

mod support;
#[path = "support/desktop/mod.rs"]
mod desk;

#[path = "desktop/bus.rs"]
mod bus;
#[path = "desktop/life.rs"]
mod life;
#[path = "desktop/menu.rs"]
mod menu;
#[path = "desktop/places.rs"]
mod places;
