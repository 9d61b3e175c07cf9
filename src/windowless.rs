//! `pilotlightw`: the same program, for Windows to start without a console window (packaging/windows says when which one is).
#![windows_subsystem = "windows"]

use std::process::ExitCode;

fn main() -> ExitCode {
    pilotlight::cli::run()
}
