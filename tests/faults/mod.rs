//! Faults in the program's environment, and the program itself stopped and killed: nothing is lost, nothing is
//! invented, and whatever no longer works is reported.
//!
//! System limits are set for the program alone, in private namespaces or as resource limits. Tests that need namespaces
//! pass without checking anything on systems that do not allow them. Faults of the bus, the panel and the notification
//! server are tested in `tests/desktop`, those of Copilot's servers in `tests/e2e`.

mod beside;
mod disk;
mod floods;
mod killed;
mod limits;
mod memory;
mod refused;
mod spaces;
mod stopped;
mod storms;
mod swept;
