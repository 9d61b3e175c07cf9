//! Opens a console window for a command on Windows. The user's Windows settings decide which terminal draws it.
//!
//! The standard library would let the new process inherit our console's handles and write to it. So this calls the
//! system directly, with no inherited handles, and with a command line that splits into exactly the given words.
#![cfg_attr(windows, allow(unsafe_code))]

#[cfg(windows)]
pub(super) use console::open;

/// Appends a word to a command line, quoted for `CommandLineToArgvW` and every C library: a quote is escaped with a
/// backslash, and so are the backslashes before a quote, but no others.
pub(super) fn quote(word: impl Iterator<Item = u16>, line: &mut Vec<u16>) {
    const QUOTE: u16 = b'"' as u16;
    const BACKSLASH: u16 = b'\\' as u16;
    if !line.is_empty() {
        line.push(u16::from(b' '));
    }
    line.push(QUOTE);
    let mut backslashes = 0;
    for unit in word {
        match unit {
            BACKSLASH => backslashes += 1,
            QUOTE => {
                line.extend(std::iter::repeat_n(BACKSLASH, backslashes + 1));
                backslashes = 0;
            }
            _ => backslashes = 0,
        }
        line.push(unit);
    }
    line.extend(std::iter::repeat_n(BACKSLASH, backslashes));
    line.push(QUOTE);
}

#[cfg(windows)]
mod console {
    use super::super::choice::is_batch;
    use super::super::quote::{is_literal, shown};
    use super::super::start::WATCH_TIME;
    use super::quote;
    use std::collections::BTreeMap;
    use std::ffi::{OsStr, OsString};
    use std::io;
    use std::os::windows::ffi::OsStrExt;
    use std::os::windows::io::{AsRawHandle, FromRawHandle, OwnedHandle};
    use std::path::Path;
    use std::ptr::null;
    use windows_sys::Win32::Foundation::WAIT_OBJECT_0;
    use windows_sys::Win32::System::Threading::{
        CREATE_NEW_CONSOLE, CREATE_UNICODE_ENVIRONMENT, CreateProcessW, GetExitCodeProcess, PROCESS_INFORMATION,
        STARTUPINFOW, WaitForSingleObject,
    };

    /// Runs the command in a console window of its own, and watches it for a while. The first word is the path of a
    /// program.
    ///
    /// # Errors
    /// If it cannot be started with these words, or fails at once.
    pub(in super::super) fn open(
        command: &[OsString],
        folder: &Path,
        env: &[(OsString, OsString)],
    ) -> Result<(), String> {
        let Some((program, arguments)) = command.split_first() else { return Err("there is nothing to run".into()) };
        let name = shown(program);
        let set = env.iter().flat_map(|(name, value)| [name, value]);
        if command.iter().chain(set).any(|word| word.encode_wide().any(|unit| unit == 0)) {
            return Err(format!("{name} cannot be given a null character"));
        }
        // Windows runs a batch file with its shell, which interprets most punctuation.
        let is_special = |c: char| c.is_control() || "\"%&|<>^!".contains(c);
        if is_batch(command)
            && (program.to_string_lossy().contains(is_special) || !arguments.iter().all(|word| is_literal(word)))
        {
            return Err(format!("{name} is a batch file, which cannot be given these words as they are"));
        }
        let failed = |error: io::Error| format!("{name} cannot be started in {}: {error}", shown(folder));
        let process = create(command, folder, env).map_err(failed)?;
        let milliseconds = u32::try_from(WATCH_TIME.as_millis()).unwrap_or(u32::MAX);
        // SAFETY: the handle is open, and has the access rights of the process's creator.
        let code = unsafe {
            let mut code = 0;
            let ended = WaitForSingleObject(process.as_raw_handle(), milliseconds) == WAIT_OBJECT_0;
            let known = ended && GetExitCodeProcess(process.as_raw_handle(), &raw mut code) != 0;
            if known { code } else { 0 }
        };
        if code == 0 { Ok(()) } else { Err(format!("{name} ended at once, with the exit code {code}")) }
    }

    fn create(command: &[OsString], folder: &Path, env: &[(OsString, OsString)]) -> io::Result<OwnedHandle> {
        let mut line = Vec::new();
        for word in command {
            quote(word.encode_wide(), &mut line);
        }
        line.push(0);
        let folder: Vec<u16> = folder.as_os_str().encode_wide().chain([0]).collect();
        let block = block(env);
        let startup = STARTUPINFOW { cb: size_of::<STARTUPINFOW>() as u32, ..Default::default() };
        let mut process = PROCESS_INFORMATION::default();
        let flags = CREATE_NEW_CONSOLE | CREATE_UNICODE_ENVIRONMENT;
        // SAFETY: all strings are null-terminated and outlive the call, which may write to the command line; no handle
        // is inherited; both returned handles are ours, and are closed on drop.
        unsafe {
            let (line, env) = (line.as_mut_ptr(), block.as_ptr().cast());
            let started = CreateProcessW(
                null(),
                line,
                null(),
                null(),
                0,
                flags,
                env,
                folder.as_ptr(),
                &raw const startup,
                &raw mut process,
            );
            if started == 0 {
                return Err(io::Error::last_os_error());
            }
            drop(OwnedHandle::from_raw_handle(process.hThread));
            Ok(OwnedHandle::from_raw_handle(process.hProcess))
        }
    }

    /// Our environment with `env` set, as an environment block: sorted, ignoring case.
    fn block(env: &[(OsString, OsString)]) -> Vec<u16> {
        let key = |name: &OsStr| name.to_string_lossy().to_uppercase();
        let mut all: BTreeMap<String, (OsString, OsString)> =
            std::env::vars_os().map(|(name, value)| (key(&name), (name, value))).collect();
        all.extend(env.iter().map(|(name, value)| (key(name), (name.clone(), value.clone()))));
        let mut block = Vec::new();
        for (name, value) in all.values() {
            block.extend(name.encode_wide());
            block.push(u16::from(b'='));
            block.extend(value.encode_wide());
            block.push(0);
        }
        block.push(0);
        block
    }
}
