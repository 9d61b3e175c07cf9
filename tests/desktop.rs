//! The tray on a private session bus, with the test as its panel and its notification server. `tests/visible.sh` covers
//! real panels.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failing test should say where")]

mod support;

use support::desktop as desk;

mod desktop {
    mod alerts;
    mod autostart;
    mod bus;
    mod figures;
    mod idle;
    mod life;
    mod menu;
    mod places;
    mod popups;
    mod settings;
}
