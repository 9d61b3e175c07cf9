//! What the file of a program says about which program it is.

use std::ffi::OsStr;
use std::path::Path;

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
