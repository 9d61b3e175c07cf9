//! A private desktop for one test: a session bus on which the test is the panel and the notification server.
//!
//! [`bus`] is the bus, [`panel`] reads menus and clicks as a panel would, [`popups`] receives notifications,
//! [`sessions`] makes session folders whose logs grow by realistic events, and [`tray`] is the real program.

#![allow(dead_code, reason = "no test uses all of it")]

pub(crate) mod bus;
pub(crate) mod panel;
pub(crate) mod popups;
pub(crate) mod sessions;
pub(crate) mod tray;
