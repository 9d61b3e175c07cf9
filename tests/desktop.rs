//! The light on a desktop of the test's own: the real program on a private session bus, the test as its panel and its
//! notification server. What a real panel makes of it is for `tests/visible.sh`, and for eyes.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on should say where")]

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
