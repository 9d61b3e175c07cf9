//! Copilot servers: where a process that owns sessions can be reached, and what it wants to be told first.
//!
//! Where is told by the system: the addresses on which that very process listens. A server may want a token, a secret
//! that whoever started it made up, and that opens everything the server can do. It goes only where it belongs: to an
//! address on which the verified owner of the session listens *now*. A file that says where a server listens outlives
//! the server, and by then another program may have the port; so no file is believed about that. What is read of files
//! is the token alone:
//!
//! - `<home>/servers/<pid>.json`, which Copilot writes of a server that it manages itself. It is private to the user.
//! - A `[[server]]` of the config, which names an address and where its token is.
//!
//! Where the system does not tell on what the process listens, addresses that are merely likely are still worth a try,
//! but without a token: those of the config, and that of PolyPilot's server, which has none.

use std::ffi::OsString;
use std::fmt;
use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::system::paths;
use crate::system::process::{is_of_our_user, listening};

/// The most that is read of an entry of the registry. The real ones have 300 bytes.
const ENTRY_LIMIT: u64 = 64 * 1024;
/// PolyPilot's port, where its file names none.
const POLYPILOT_PORT: u16 = 4321;

/// A server's secret. It is shown to nobody: neither logs nor messages can print it by mistake.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(Box<str>);

/// An address where a server can be reached, and the token that it is told first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// On loopback.
    pub address: SocketAddr,
    /// `None` where it wants none, or none is known.
    pub token: Option<Token>,
}

/// A server that the config names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerSetting {
    /// Where it listens.
    pub address: SocketAddr,
    /// Where its token is; `None` for a server without one.
    pub token: Option<TokenSource>,
}

/// Where a token is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TokenSource {
    /// In this file, with white space around it or not.
    File(PathBuf),
    /// In this variable of our environment.
    Env(String),
}

impl Token {
    /// The most bytes that a token may have.
    pub(crate) const MOST: usize = 4096;

    /// A token of this text. `None` if it is empty, longer than [`Token::MOST`] bytes, or has control characters.
    pub fn new(text: &str) -> Option<Self> {
        let fits = !text.is_empty() && text.len() <= Self::MOST && !text.chars().any(char::is_control);
        fits.then(|| Self(text.into()))
    }

    /// The secret itself, for the server alone.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

/// Where the process `owner` can be reached, in order of address. The caller has verified that it is Copilot; an owner
/// that is not of our user has no endpoints.
///
/// `homes` are Copilot's homes, `settings` what the config says, `user_home` is where PolyPilot keeps its file. Files that
/// are not as they should be are passed over, with a line in the log at most. Takes under a millisecond on Linux.
pub fn endpoints(owner: u32, homes: &[PathBuf], settings: &[ServerSetting], user_home: Option<&Path>) -> Vec<Endpoint> {
    if !is_of_our_user(owner) {
        tracing::debug!(owner, "not asked where it listens: it is not of our user");
        return Vec::new();
    }
    match listening(owner) {
        Ok(addresses) => {
            let entry = homes.iter().find_map(|home| registered(home, owner, &addresses));
            verified(&addresses, entry.as_ref(), settings, |name| std::env::var_os(name))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(), // it has ended
        Err(error) => {
            tracing::debug!(owner, %error, "the system does not tell where it listens");
            likely(owner, settings, user_home)
        }
    }
}

/// What an entry of the registry says: `{"pid", "host", "port", "token", ...}`. The host is not read: where the owner
/// listens on that port is known better.
#[derive(Deserialize)]
struct Entry {
    pid: u32,
    port: u16,
    token: Option<String>,
}

/// The addresses on which the owner listens, each with the token that belongs to it. What the registry says of a port, a
/// token or none, was written by the server itself and goes before the config.
fn verified(
    addresses: &[SocketAddr],
    entry: Option<&Entry>,
    settings: &[ServerSetting],
    variable: impl Fn(&str) -> Option<OsString>,
) -> Vec<Endpoint> {
    let token = |address: &SocketAddr| match entry {
        Some(entry) if entry.port == address.port() => entry.token.as_deref().and_then(Token::new),
        _ => settings.iter().filter(|setting| setting.address == *address).find_map(|setting| {
            let source = setting.token.as_ref()?;
            read_source(source, &variable)
                .inspect_err(|error| tracing::debug!(%address, %error, "no token for this [[server]]"))
                .ok()
        }),
    };
    addresses.iter().map(|address| Endpoint { address: *address, token: token(address) }).collect()
}

/// Where the owner may be, when the system does not tell. Never with a token.
fn likely(owner: u32, settings: &[ServerSetting], user_home: Option<&Path>) -> Vec<Endpoint> {
    let mut addresses: Vec<SocketAddr> = settings.iter().map(|setting| setting.address).collect();
    addresses.extend(user_home.and_then(|home| polypilot(home, owner)));
    addresses.retain(|address| address.ip().is_loopback());
    addresses.sort_unstable();
    addresses.dedup();
    addresses.into_iter().map(|address| Endpoint { address, token: None }).collect()
}

/// The entry that Copilot's registry has of this process, if it is to be believed: a private file of ours about this very
/// process, which listens on the port that it tells.
fn registered(home: &Path, owner: u32, addresses: &[SocketAddr]) -> Option<Entry> {
    let path = home.join("servers").join(format!("{owner}.json"));
    let refused =
        |reason: &str| tracing::debug!(path = %path.display(), reason, "this entry of a server is passed over");
    let text = match read_plain(&path, ENTRY_LIMIT, is_private) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
        Err(error) => {
            refused(&error.to_string());
            return None;
        }
    };
    let entry: Entry = match serde_json::from_slice(&text) {
        Ok(entry) => entry,
        Err(error) => {
            // Not the error itself: it may quote what stands there, and that may be a token.
            refused(&format!("it is broken at line {}, column {}", error.line(), error.column()));
            return None;
        }
    };
    if entry.pid != owner {
        refused("it tells of another process");
        return None;
    }
    if !addresses.iter().any(|address| address.port() == entry.port) {
        refused("the process does not listen on its port");
        return None;
    }
    Some(entry)
}

/// The entries of Copilot's registry in a home, each with the reason why it is not believed; `None` where it would be. Nothing
/// of what stands in them is told.
pub(crate) fn registry(home: &Path) -> Vec<(PathBuf, Option<&'static str>)> {
    let Ok(files) = fs::read_dir(home.join("servers")) else { return Vec::new() };
    let paths = files.filter_map(|file| Some(file.ok()?.path()));
    let mut entries: Vec<_> = paths
        .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
        .map(|path| {
            let trouble = distrust(&path);
            (path, trouble)
        })
        .collect();
    entries.sort();
    entries
}

fn distrust(path: &Path) -> Option<&'static str> {
    let Some(owner) = path.file_stem().and_then(|stem| stem.to_str()?.parse::<u32>().ok()) else {
        return Some("its name is no process");
    };
    let Ok(text) = read_plain(path, ENTRY_LIMIT, is_private) else {
        return Some("it is not a private file of yours, or cannot be read");
    };
    let Ok(entry) = serde_json::from_slice::<Entry>(&text) else { return Some("it is broken") };
    if entry.pid != owner {
        return Some("it tells of another process than its name");
    }
    match listening(owner) {
        Ok(addresses) if addresses.iter().any(|address| address.port() == entry.port) => None,
        Ok(_) => Some("its process does not listen there"),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Some("its process is gone"),
        Err(_) => Some("where its process listens cannot be told"),
    }
}

/// Why the token of a server cannot be had, in words that tell nothing of it; `None` where it can, or there is none.
pub(crate) fn token_trouble(setting: &ServerSetting) -> Option<String> {
    let source = setting.token.as_ref()?;
    let error = read_source(source, |name| std::env::var_os(name)).err()?;
    Some(match source {
        TokenSource::File(path) => format!("{}: {error}", path.display()),
        TokenSource::Env(name) => format!("${name}: {error}"),
    })
}

fn read_source(source: &TokenSource, variable: impl Fn(&str) -> Option<OsString>) -> io::Result<Token> {
    let text = match source {
        TokenSource::File(path) => {
            // A link is what the user says it is, and so is who may read it. White space around the token is no part of it.
            let path = paths::expand(path, paths::user_home().as_deref());
            let path = path.ok_or(io::ErrorKind::NotFound)?.canonicalize()?;
            String::from_utf8(read_plain(&path, Token::MOST as u64 + 64, |_| Ok(()))?).ok()
        }
        TokenSource::Env(name) => variable(name).and_then(|value| value.into_string().ok()),
    };
    let token = text.as_deref().map(str::trim).and_then(Token::new);
    token.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "empty, too long or no plain text"))
}

/// Where PolyPilot's server is, if it is this process: `~/.polypilot/server.pid` has its id on the first line, and may have
/// its port on the second.
fn polypilot(user_home: &Path, owner: u32) -> Option<SocketAddr> {
    const LIMIT: u64 = 64;
    let text = read_plain(&user_home.join(".polypilot").join("server.pid"), LIMIT, |_| Ok(())).ok()?;
    let mut lines = std::str::from_utf8(&text).ok()?.lines().map(str::trim);
    let names_it = lines.next()?.parse() == Ok(owner);
    let port = lines.next().and_then(|port| port.parse().ok()).unwrap_or(POLYPILOT_PORT);
    names_it.then(|| SocketAddr::from((Ipv4Addr::LOCALHOST, port)))
}

/// Reads a plain file of at most `limit` bytes about which `check` says nothing against it. What is no plain file is not
/// even opened, as that may wait for somebody, or have effects; and a link is not followed.
fn read_plain(path: &Path, limit: u64, check: impl Fn(&Metadata) -> io::Result<()>) -> io::Result<Vec<u8>> {
    let no = |reason| Err(io::Error::new(io::ErrorKind::InvalidInput, reason));
    if !fs::symlink_metadata(path)?.is_file() {
        return no("it is no plain file");
    }
    let mut options = File::options();
    options.read(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        // It may have been replaced since.
        let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
        options.custom_flags(flags.bits().cast_signed());
    }
    let file = options.open(path)?;
    let meta = file.metadata()?;
    if !meta.is_file() {
        return no("it is no plain file");
    }
    check(&meta)?;
    let mut bytes = Vec::new();
    file.take(limit + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit { no("it is too long") } else { Ok(bytes) }
}

/// Whether a file is ours and nobody else may read or write it. Not told on Windows, where the user's own folders are
/// private.
fn is_private(meta: &Metadata) -> io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        const OTHERS: u32 = 0o077;
        let no = |reason| Err(io::Error::new(io::ErrorKind::PermissionDenied, reason));
        if meta.uid() != rustix::process::geteuid().as_raw() {
            return no("it is another user's");
        }
        if meta.mode() & OTHERS != 0 {
            return no("others may read or write it");
        }
    }
    #[cfg(not(unix))]
    let _ = meta;
    Ok(())
}

#[cfg(test)]
mod tests;
