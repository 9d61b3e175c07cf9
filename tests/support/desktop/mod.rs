//! A desktop of a test's own: a private session bus, on which the test is the panel and the notification server.
//!
//! [`bus`] is the bus, [`panel`] reads menus and clicks as a panel would, [`popups`] takes notifications, [`sessions`] makes
//! up session folders that grow by events of the real form, and [`light`] is the real program.

#![allow(dead_code, reason = "not every test needs every part")]

pub(crate) mod bus;
pub(crate) mod light;
pub(crate) mod panel;
pub(crate) mod popups;
pub(crate) mod sessions;
