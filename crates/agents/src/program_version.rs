//! What a program prints when it is asked for its version.

use pilotlight_system::descriptors;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::process::Command;
use tokio::time::timeout;

/// How much of that is read, in bytes.
const OUTPUT_MAX: u64 = 4096;

/// Asks a program for its version.
///
/// # Errors
/// What is wrong with the program, to follow its name.
pub async fn printed_version(program: &Path, within: Duration) -> Result<String, String> {
    let mut command = Command::new(program);
    command.arg("--version").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true);
    descriptors::restore(command.as_std_mut());
    let asked = async {
        let mut child = command.spawn()?;
        let mut printed = Vec::new();
        if let Some(output) = child.stdout.take() {
            output.take(OUTPUT_MAX).read_to_end(&mut printed).await?;
        }
        std::io::Result::Ok(printed)
    };
    match timeout(within, asked).await {
        Ok(Ok(printed)) => Ok(String::from_utf8_lossy(&printed).into_owned()),
        Ok(Err(error)) => Err(format!("does not start: {error}")),
        Err(_) => Err(format!("does not say its version within {} s", within.as_secs())),
    }
}
