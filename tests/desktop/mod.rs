//! The tray on a private session bus, with the test as its panel and its notification server. `tests/visible.sh` covers
//! real panels.

mod alerts;
mod autostart;
mod bus;
mod clicks;
mod figures;
mod idle;
mod life;
mod menu;
mod places;
mod popups;
mod settings;
