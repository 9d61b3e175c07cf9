//! The `pilotlight` program. Everything is in the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    pilotlight::cli::run()
}
