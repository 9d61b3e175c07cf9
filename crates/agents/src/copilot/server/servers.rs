//! Finds the Copilot servers of a process that owns sessions: their addresses, and the token for each.
//!
//! The system reports the addresses on which the process listens. A server may require a token: a secret, chosen by
//! whoever started it, that grants everything the server can do. So it is only sent to an address on which the verified
//! owner of the session listens *now*. A file that names an address outlives its server, and another program may then
//! have the port. So only the token is read from files:
//!
//! - `<home>/servers/<pid>.json`, which Copilot writes for a server that it manages itself. It is private to the user.
//! - A `[[server]]` of the config, which names an address and the place of its token.
//!
//! If the system does not report where the process listens, likely addresses are tried without a token: those of the
//! config, and that of PolyPilot's server, which has none.

use crate::channel::endpoint::{Endpoint, ServerSetting, Token, TokenSource};
use pilotlight_system::log::{self, Public, cause, private};
use pilotlight_system::plain_file::{self, Links};
use std::ffi::OsString;
use std::fs::{self, Metadata};
use std::io::{self, Read};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use serde::Deserialize;

use pilotlight_system::paths;
use pilotlight_system::process::{is_of_our_user, listening};

/// The longest registry entry that is read, in bytes. Real ones have 300.
const ENTRY_LIMIT: u64 = 64 * 1024;
/// PolyPilot's port if its file names none.
const POLYPILOT_PORT: u16 = 4321;

/// The servers of a process.
#[derive(Clone, Debug)]
pub struct Endpoints {
    /// In the order in which they are tried.
    all: Vec<Endpoint>,
    /// Whether the system lists them.
    pub(super) are_listed: bool,
}

impl Endpoints {
    /// Those at these endpoints, where the process is known to listen.
    pub fn at(all: Vec<Endpoint>) -> Self {
        Self { all, are_listed: true }
    }

    /// The endpoints, in order.
    pub fn all(&self) -> &[Endpoint] {
        &self.all
    }
}

/// The endpoints of the process `owner`, in order of address. The caller has verified that it is Copilot. A process of
/// another user has no endpoints.
///
/// Without `is_trusted`, none has a token: it is not shown on behalf of a session that the process may not hold.
///
/// `homes` are Copilot's homes, `settings` the servers of the config, and `user_home` is where PolyPilot keeps its
/// file. Malformed files are ignored, with a debug line in the log. Takes under a millisecond on Linux.
pub fn endpoints(
    owner: u32,
    is_trusted: bool,
    homes: &[PathBuf],
    settings: &[ServerSetting],
    user_home: Option<&Path>,
) -> Endpoints {
    if !is_of_our_user(owner) {
        log::debug!(owner = private(&owner), "it belongs to another user: its addresses are not read");
        return Endpoints::at(Vec::new());
    }
    let mut endpoints = match listening(owner) {
        Ok(addresses) => {
            let entry = homes.iter().find_map(|home| registered(home, owner, &addresses));
            Endpoints::at(verified(&addresses, entry.as_ref(), settings, |name| std::env::var_os(name)))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Endpoints::at(Vec::new()), // it has ended
        Err(error) => {
            log::debug!(owner = private(&owner), "the system does not report where it listens: {}", cause(&error));
            Endpoints { all: likely(owner, settings, user_home), are_listed: false }
        }
    };
    if !is_trusted {
        endpoints.all.iter_mut().for_each(|endpoint| endpoint.token = None);
    }
    endpoints
}

/// A registry entry: `{"pid", "host", "port", "token", ...}`. The host is not read, because the system reports the
/// addresses with that port.
#[derive(Deserialize)]
struct Entry {
    pid: u32,
    port: u16,
    token: Option<String>,
}

/// The addresses on which the owner listens, each with its token. The server itself wrote its registry entry, so the
/// token there, or its absence, overrides the config.
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
                .inspect_err(|error| {
                    log::debug!(address = private(&address), "no token for this [[server]]: {}", cause(error));
                })
                .ok()
        }),
    };
    addresses.iter().map(|address| Endpoint { address: *address, token: token(address) }).collect()
}

/// The likely endpoints if the system does not report the addresses. Never with a token.
fn likely(owner: u32, settings: &[ServerSetting], user_home: Option<&Path>) -> Vec<Endpoint> {
    let mut addresses: Vec<SocketAddr> = settings.iter().map(|setting| setting.address).collect();
    addresses.extend(user_home.and_then(|home| polypilot(home, owner)));
    addresses.retain(|address| address.ip().is_loopback());
    addresses.sort_unstable();
    addresses.dedup();
    addresses.into_iter().map(|address| Endpoint { address, token: None }).collect()
}

/// The entry of this process in Copilot's registry, if it is trustworthy: a private file of our user, with the pid of
/// this process and a port on which it listens.
fn registered(home: &Path, owner: u32, addresses: &[SocketAddr]) -> Option<Entry> {
    let path = home.join("servers").join(format!("{owner}.json"));
    let ignored = |reason: &dyn Public| {
        log::debug!(path = private(&path.display()), "ignored a server's registry entry: {}", *reason);
    };
    let text = match read_plain(&path, ENTRY_LIMIT, is_private) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
        Err(error) => {
            ignored(&cause(&error));
            return None;
        }
    };
    let entry: Entry = match serde_json::from_slice(&text) {
        Ok(entry) => entry,
        Err(error) => {
            // The error itself may quote the text, which may be a token.
            ignored(&private(&format_args!("it is broken at line {}, column {}", error.line(), error.column())));
            return None;
        }
    };
    if entry.pid != owner {
        ignored(&"it is about another process");
        return None;
    }
    if !addresses.iter().any(|address| address.port() == entry.port) {
        ignored(&"the process does not listen on its port");
        return None;
    }
    Some(entry)
}

/// The entries of a home's registry, each with the reason why it is not trusted, `None` if it is. The reasons contain
/// nothing of the entries' text.
pub fn registry(home: &Path) -> Vec<(PathBuf, Option<&'static str>)> {
    let Ok(files) = fs::read_dir(home.join("servers")) else { return Vec::new() };
    let paths = files.filter_map(|file| Some(file.ok()?.path()));
    let mut entries: Vec<_> = paths
        .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
        .map(|path| {
            let reason = distrust(&path);
            (path, reason)
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
        return Some("it is about another process than its name says");
    }
    match listening(owner) {
        Ok(addresses) if addresses.iter().any(|address| address.port() == entry.port) => None,
        Ok(_) => Some("its process does not listen there"),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Some("its process is gone"),
        Err(_) => Some("it is unknown where its process listens"),
    }
}

/// Why a server's token cannot be read, in words that reveal nothing of it. `None` if it can be, or the server has
/// none.
pub fn token_error(setting: &ServerSetting) -> Option<String> {
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
            // The user named the file, so a symlink is followed, and its permissions are not checked. The limit allows
            // for white space around the token.
            let path = paths::expand(path, paths::user_home().as_deref());
            let path = path.ok_or(io::ErrorKind::NotFound)?.canonicalize()?;
            String::from_utf8(read_plain(&path, Token::LENGTH_MAX as u64 + 64, |_| Ok(()))?).ok()
        }
        TokenSource::Env(name) => variable(name).and_then(|value| value.into_string().ok()),
    };
    let token = text.as_deref().map(str::trim).and_then(Token::new);
    token.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "empty, too long or not plain text"))
}

/// The address of PolyPilot's server, if it is this process. `~/.polypilot/server.pid` has its pid on the first line,
/// and may have its port on the second.
fn polypilot(user_home: &Path, owner: u32) -> Option<SocketAddr> {
    const LIMIT: u64 = 64;
    let text = read_plain(&user_home.join(".polypilot").join("server.pid"), LIMIT, |_| Ok(())).ok()?;
    let mut lines = std::str::from_utf8(&text).ok()?.lines().map(str::trim);
    let is_owner = lines.next()?.parse() == Ok(owner);
    let port = lines.next().and_then(|port| port.parse().ok()).unwrap_or(POLYPILOT_PORT);
    is_owner.then(|| SocketAddr::from((Ipv4Addr::LOCALHOST, port)))
}

/// Reads a regular file of at most `limit` bytes that passes `check`. A symlink is not followed.
fn read_plain(path: &Path, limit: u64, check: impl Fn(&Metadata) -> io::Result<()>) -> io::Result<Vec<u8>> {
    let (file, meta) = plain_file::open(path, Links::Refused)?;
    check(&meta)?;
    let mut bytes = Vec::new();
    file.take(limit + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is too long"));
    }
    Ok(bytes)
}

/// Fails unless a file is ours and nobody else can read or write it. Not checked on Windows, where the user's folders
/// are private.
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
