//! Terminals on macOS: Terminal, iTerm and others run a script that is opened with them. AppleScript would need the
//! command quoted twice; a shell script needs it quoted once, and `'` is the only character to escape.
//!
//! The script is in the user's temporary folder, is accessible to nobody else, and first removes itself.

#![allow(clippy::disallowed_methods, reason = "a file of a new name")]

#[cfg(target_os = "macos")]
use super::start::{WATCH_TIME, run};
use std::ffi::{OsStr, OsString};
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Opens a terminal that runs `command` in `folder`: the application of this name, or the default one for scripts.
///
/// # Errors
/// If the script cannot be written, or nothing opens it.
#[cfg(target_os = "macos")]
pub(super) fn open(app: Option<&str>, command: &[OsString], folder: &Path) -> Result<(), String> {
    let script =
        write_script(&script(command, folder)).map_err(|error| format!("the script for the terminal: {error}"))?;
    let mut words = vec![OsString::from("/usr/bin/open")];
    if let Some(app) = app {
        words.extend(["-a".into(), app.into()]);
    }
    words.push(script.clone().into_os_string());
    run(app.unwrap_or("the terminal"), &words, Path::new("/"), &[], WATCH_TIME).inspect_err(|_| {
        let _ = std::fs::remove_file(&script);
    })
}

/// The script, which replaces its shell by the command.
pub(super) fn script(command: &[OsString], folder: &Path) -> Vec<u8> {
    let mut out = b"#!/bin/sh\nrm -f -- \"$0\"\ncd -- ".to_vec();
    quote(folder.as_os_str(), &mut out);
    out.extend_from_slice(b" || exit\nexec");
    for word in command {
        out.push(b' ');
        quote(word, &mut out);
    }
    out.push(b'\n');
    out
}

fn quote(word: &OsStr, out: &mut Vec<u8>) {
    out.push(b'\'');
    for &byte in word.as_bytes() {
        if byte == b'\'' { out.extend_from_slice(br"'\''") } else { out.push(byte) }
    }
    out.push(b'\'');
}

/// Writes the script to a new executable file.
pub(super) fn write_script(script: &[u8]) -> io::Result<PathBuf> {
    let folder = std::env::temp_dir();
    let mut number = 0;
    let (mut file, path) = loop {
        let path = folder.join(format!("pilotlight-{}-{number}.command", std::process::id()));
        // Never opens an existing file, nor the target of a link.
        match OpenOptions::new().write(true).create_new(true).mode(0o700).open(&path) {
            Ok(file) => break (file, path),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && number < 1000 => number += 1,
            Err(error) => return Err(error),
        }
    };
    file.write_all(script)?;
    Ok(path)
}
