//! What the file of a program says about which program it is.

#![allow(clippy::disallowed_methods, reason = "`/proc` holds no pipes")]

use std::ffi::OsStr;
use std::path::Path;

/// The shortest file that may be an agent's program with all that it needs in it: a real one has some hundred megabytes.
#[cfg(target_os = "linux")]
const LENGTH_MIN: u64 = 32 << 20;
/// How much of its end is read, in bytes. Its list of what is in it is within the last 300 kB.
#[cfg(target_os = "linux")]
const END: u64 = 1 << 20;

/// Whether the file of the program that a process runs has `content` near its end, where such programs list what is in them.
/// Each file is read once. `is_local`: whether it can be read without waiting.
#[cfg(target_os = "linux")]
pub(crate) fn contains_near_end(pid: u32, content: &'static [u8], is_local: impl Fn() -> bool) -> bool {
    use pilotlight_core::time::Time;
    use pilotlight_system::file_times::modified;
    use pilotlight_system::identity::Identity;
    use std::fs::File;
    use std::io::{Read, Seek, SeekFrom};
    use std::sync::{Mutex, PoisonError};
    /// What is known of files: which, how long, of when, what was looked for, and whether it was there.
    type Known = Vec<((Identity, u64, Time, &'static [u8]), bool)>;
    /// How many files are remembered.
    const KNOWN_MAX: usize = 256;
    static KNOWN: Mutex<Known> = Mutex::new(Vec::new());
    if !is_local() {
        return false;
    }
    // Another user's is not shown.
    let Ok(meta) = std::fs::metadata(format!("/proc/{pid}/exe")) else { return false };
    if meta.len() < LENGTH_MIN {
        return false;
    }
    let file = (Identity::of(&meta), meta.len(), modified(&meta), content);
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, is_there)) = known.iter().find(|(known, _)| *known == file) {
        return *is_there;
    }
    let read = || {
        let mut program = File::open(format!("/proc/{pid}/exe"))?;
        program.seek(SeekFrom::Start(meta.len() - END))?;
        let mut end = Vec::with_capacity(END as usize);
        program.take(END).read_to_end(&mut end)?;
        std::io::Result::Ok(memchr::memmem::find(&end, content).is_some())
    };
    let Ok(is_there) = read() else { return false };
    if known.len() >= KNOWN_MAX {
        known.remove(0);
    }
    known.push((file, is_there));
    is_there
}

/// Whether the file of the program that a process runs has this content: only Linux shows that file.
#[cfg(not(target_os = "linux"))]
pub(crate) fn contains_near_end(_: u32, _: &'static [u8], _: impl Fn() -> bool) -> bool {
    false
}

/// Whether an executable's file name is `wanted`: exactly on Linux, ignoring case elsewhere, and on Windows also
/// ignoring `.exe`.
pub(crate) fn is_named(name: &OsStr, wanted: &str) -> bool {
    #[cfg(target_os = "linux")]
    return name == wanted;
    #[cfg(not(target_os = "linux"))]
    {
        let bare = |name: &str| {
            let name = name.to_ascii_lowercase();
            let suffix = if cfg!(windows) { ".exe" } else { "" };
            name.strip_suffix(suffix).map_or(name.clone(), str::to_owned)
        };
        bare(&name.to_string_lossy()) == bare(wanted)
    }
}

/// Whether this executable is node, which runs agents as scripts.
pub(crate) fn is_node(executable: &Path) -> bool {
    executable.file_name().is_some_and(|name| is_named(name, "node") || is_named(name, "nodejs"))
}

/// Whether an argument is a path into this npm package, as `.../node_modules/@scope/name/index.js` is into
/// `@scope/name`.
pub(crate) fn is_script_of(argument: &OsStr, package: &str) -> bool {
    let is_separator = |byte: &u8| *byte == b'/' || (cfg!(windows) && *byte == b'\\');
    let parts: Vec<_> = argument.as_encoded_bytes().split(is_separator).filter(|part| !part.is_empty()).collect();
    let package: Vec<_> = package.split('/').map(str::as_bytes).collect();
    parts.windows(package.len()).any(|parts| parts == package)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_of_a_package_is_known_by_its_path() {
        let is = |path: &str, package| is_script_of(OsStr::new(path), package);
        assert!(is("/usr/lib/node_modules/@github/copilot/index.js", "@github/copilot"));
        assert!(!is("/usr/lib/node_modules/@github/copilot-language-server/index.js", "@github/copilot"));
        assert!(!is("/home/me/@github/x/copilot/index.js", "@github/copilot") && !is("--copilot", "@github/copilot"));
        assert!(is("node_modules//opencode-ai/bin/opencode", "opencode-ai"));
        assert_eq!(is(r"C:\npm\@github\copilot\index.js", "@github/copilot"), cfg!(windows));
    }
}
