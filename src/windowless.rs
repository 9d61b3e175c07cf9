//! `pilotlightw`: the same program without a console window, for Windows. packaging/windows says which of the two is
//! started when.
#![windows_subsystem = "windows"]

use std::process::ExitCode;

fn main() -> ExitCode {
    pilotlight::cli::run()
}
